use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::{Mapped, WINDOW};
use crate::capture::input::Position;
use crate::capture::Capture;

const MAGIC: [u8; 24] = [
    0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0,
];

/// A file of its own, gone with the value.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("tcpfit-{name}-{}.pcap", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    /// Bytes of it that are in this process's memory.
    fn resident(&self) -> usize {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let of = &maps[maps.find(self.0.to_str().unwrap()).unwrap()..];
        let rss = of.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
        1024 * rss.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
    }

    fn mapped(&self) -> Option<Mapped> {
        Mapped::open(File::open(&self.0).unwrap(), Position::default())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn record(number: u32, length: usize) -> Vec<u8> {
    let captured = (length as u32).to_le_bytes();
    let header = [number.to_le_bytes(), 0u32.to_le_bytes(), captured, captured].concat();
    [header, vec![number as u8; length]].concat()
}

/// Records of all lengths, over several windows, none of which ends where a record does.
fn capture() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for number in 0.. {
        bytes.extend(record(number, 1 + (number as usize * 7919) % 3000));
        if number % 500 == 499 {
            bytes.extend(record(number, 1 << 20));
        }
        if bytes.len() > 7 << 20 {
            return bytes;
        }
    }
    unreachable!()
}

/// Time, length and first byte of the packets, and what was warned of.
fn all_of(mut capture: Capture) -> (Vec<(i64, usize, u8)>, Vec<String>) {
    let mut seen = Vec::new();
    while let Some(packet) = capture.next().unwrap() {
        seen.push((packet.time_ns, packet.data.len(), packet.data[0]));
    }
    (seen, capture.info().warnings.sentences())
}

#[test]
fn a_mapped_file_gives_what_is_read_of_it() {
    let bytes = capture();
    let file = Temporary::new("same", &bytes);
    let mut mapped = file.mapped().expect("on a disk of this machine");
    let mut looked_at = 0;
    while looked_at < bytes.len() {
        let come = mapped.more(looked_at).unwrap();
        assert!(mapped[looked_at..come] == bytes[looked_at..come]);
        assert!(file.resident() <= 2 * WINDOW, "what was looked at is given back");
        looked_at = come;
    }
    assert_eq!(mapped.more(looked_at), Some(bytes.len()), "and no more");
    assert!(mapped[..] == bytes, "what was given back comes again");
    drop(mapped);
    let read = all_of(Capture::from_reader(File::open(&file.0).unwrap()).unwrap());
    assert!(read.0.len() > 1500 && read.1.is_empty());
    let mut capture = Capture::open(&file.0).unwrap();
    assert_eq!(capture.position(), WINDOW as u64, "the first window alone has come");
    capture.next().unwrap();
    assert!(all_of(Capture::open(&file.0).unwrap()) == read);
}

#[test]
fn a_cut_file_ends_as_if_it_were_read() {
    let bytes = capture();
    let file = Temporary::new("cut", &bytes[..bytes.len() - 1]);
    let read = all_of(Capture::from_reader(File::open(&file.0).unwrap()).unwrap());
    assert_eq!(read.1.len(), 1);
    assert!(all_of(Capture::open(&file.0).unwrap()) == read);
}

#[test]
fn what_is_being_written_and_what_is_small_is_read() {
    let file = Temporary::new("open", &capture());
    let writer = OpenOptions::new().append(true).open(&file.0).unwrap();
    assert!(file.mapped().is_none());
    drop(writer);
    assert!(file.mapped().is_some());
    assert!(Temporary::new("small", &MAGIC).mapped().is_none());
}

/// What is seen of a file that somebody opens for writing while its first window is looked at, and who changes it before the
/// rest is read: packets that it had, packets seen, what was warned of.
fn changed_while_read(name: &str, change: impl FnOnce(File) + Send + 'static) -> (usize, usize, Vec<String>) {
    let file = Temporary::new(name, &capture());
    let whole = all_of(Capture::open(&file.0).unwrap()).0.len();
    let mut capture = Capture::open(&file.0).unwrap();
    let (window, path) = (capture.position(), file.0.clone());
    let writer = thread::spawn(move || change(OpenOptions::new().append(true).open(path).unwrap()));
    thread::sleep(Duration::from_millis(200));
    assert!(!writer.is_finished(), "the writer has to wait");
    let mut seen = 0;
    while capture.position() == window && capture.next().unwrap().is_some() {
        seen += 1;
    }
    for _ in 0..1000 {
        thread::sleep(Duration::from_millis(10));
        if writer.is_finished() {
            writer.join().unwrap();
            let (rest, warnings) = all_of(capture);
            return (whole, seen + rest.len(), warnings);
        }
    }
    panic!("the writer still waits");
}

#[test]
fn who_shortens_the_file_meanwhile_does_not_end_the_process() {
    let (whole, seen, warnings) = changed_while_read("shortened", |file| file.set_len(1000).unwrap());
    // the window that was looked at, and what had been read behind it
    assert!(seen > 500 && seen < whole, "{seen} of {whole}");
    assert_eq!(warnings.len(), 1);
}

#[test]
fn what_is_appended_meanwhile_is_read() {
    let (whole, seen, warnings) = changed_while_read("longer", |mut file| file.write_all(&record(1, 9)).unwrap());
    assert_eq!((seen, warnings.len()), (whole + 1, 0));
}
