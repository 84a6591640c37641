//! zstd (RFC 8878), decoded where the bytes stay until the last packet of them was looked at.
//!
//! A decoder looks back over what it has written, a window of it. The library's streams keep that window themselves and
//! copy all that comes out of it. Here its blocks are written one behind the other into a segment as long as the window,
//! then into the next one. It looks back into these two at most, so one before them can go to whoever reads packets.
#![allow(unsafe_code)] // the library's functions that write to where they are told to have no safe name

use std::collections::VecDeque;
use std::io::{self, BufReader, Cursor, Read};
use std::ptr::NonNull;

use zstd::zstd_safe::{get_error_name, zstd_sys};

use super::pipe::{fill, Blocks, HEADROOM};

/// Longest block (RFC 8878, 3.1.1.2.4), and room behind it, which the library likes to have for copies in wide words.
const BLOCK: usize = 128 << 10;
const BEHIND: usize = 64;
/// Shortest segment, and the longest window that has segments of its own, of zstd's levels up to 15: five of them are under
/// way at a time, some 20 MiB. What looks back further goes through a stream of the library's.
const LEAST: usize = 256 << 10;
const LONGEST: u64 = 4 << 20;
/// Windows up to 128 MiB: beyond that a small file could ask for any memory.
const WINDOW_LOG: u32 = 27;
/// Compressed bytes that are read at a time: many blocks, of which the last alone is cut.
const READ: usize = 1 << 20;
/// The longest header of a frame (RFC 8878, 3.1.1.1).
const HEADER: usize = 18;
/// Skippable frames (RFC 8878, 3.1.2) begin with this and any four bits, and their length.
const SKIPPABLE: u32 = 0x184d_2a50;
const SKIPPABLE_HEADER: usize = 8;

/// The frames of a file, which follow each other (RFC 8878, 3).
pub struct Frames {
    compressed: Compressed,
    decoder: Decoder,
    /// Some of a frame has been decoded, and some is still to come.
    within: bool,
    /// The segment that is written to, up to `end`, and the one before it.
    current: Vec<u8>,
    end: usize,
    before: Vec<u8>,
    /// A segment is full with so many bytes.
    full: usize,
    /// Segments that nothing looks back into.
    ready: VecDeque<Vec<u8>>,
    /// What is left of the file where a window is longer.
    stream: Option<Box<dyn Read>>,
    ended: Option<io::Result<bool>>,
}

impl Frames {
    pub fn new(reader: impl Read + 'static) -> io::Result<Self> {
        Ok(Self {
            compressed: Compressed {
                reader: Box::new(reader),
                bytes: vec![0; READ],
                at: 0,
                end: 0,
            },
            decoder: Decoder::new()?,
            within: false,
            current: Vec::new(),
            end: HEADROOM,
            before: Vec::new(),
            full: 0,
            ready: VecDeque::new(),
            stream: None,
            ended: None,
        })
    }

    /// Begins a frame, or decodes a block; false at the end of the file.
    fn step(&mut self, spare: &mut dyn FnMut() -> Vec<u8>) -> io::Result<bool> {
        if !self.within {
            return self.begin();
        }
        let wanted = self.decoder.wanted();
        if wanted == 0 {
            self.within = false;
            return Ok(true);
        }
        if self.end - HEADROOM >= self.full || self.current.is_empty() {
            self.begin_segment(spare);
        }
        let block = self.compressed.peek(wanted)?;
        let block = &block[..block.len().min(wanted)];
        // `current` and `before` are where they were when they were written, and as they were then
        let written = self.decoder.decode(block, &mut self.current, self.end);
        self.end += match written {
            Ok(written) if !block.is_empty() => written,
            // of a block that is cut only what was not compressed can be had
            _ if block.len() < wanted => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete frame")),
            _ => written?,
        };
        self.compressed.at += block.len();
        Ok(true)
    }

    fn begin(&mut self) -> io::Result<bool> {
        let head = self.compressed.peek(HEADER)?;
        if head.is_empty() {
            return Ok(false);
        }
        if let Some(length) = skippable(head) {
            return self.compressed.skip(SKIPPABLE_HEADER as u64 + length);
        }
        // of a header that is none the decoder says what is wrong
        let window = window(head).unwrap_or(0);
        // nothing looks back beyond a frame
        self.let_go();
        if window > LONGEST {
            self.stream = Some(self.compressed.stream()?);
            return Ok(true);
        }
        self.full = LEAST.max(window as usize);
        self.decoder.begin()?;
        self.within = true;
        Ok(true)
    }

    /// The segment before goes, this one takes its place.
    fn begin_segment(&mut self, spare: &mut dyn FnMut() -> Vec<u8>) {
        let room = HEADROOM + self.full + BLOCK + BEHIND;
        let mut next = spare();
        if next.capacity() < room {
            next = vec![0; room];
        }
        next.resize(room, 0);
        let mut current = std::mem::replace(&mut self.current, next);
        current.truncate(self.end);
        self.ready.push_back(std::mem::replace(&mut self.before, current));
        self.end = HEADROOM;
    }

    /// Nothing will look back into what was decoded.
    fn let_go(&mut self) {
        self.ready.push_back(std::mem::take(&mut self.before));
        self.current.truncate(self.end);
        self.ready.push_back(std::mem::take(&mut self.current));
        self.end = HEADROOM;
    }
}

impl Blocks for Frames {
    fn next(&mut self, spare: &mut dyn FnMut() -> Vec<u8>) -> (Vec<u8>, io::Result<bool>) {
        loop {
            while let Some(block) = self.ready.pop_front() {
                if block.len() > HEADROOM {
                    return (block, Ok(true));
                }
            }
            if let Some(stream) = &mut self.stream {
                let mut block = spare();
                let read = fill(stream, &mut block, true);
                return (block, read);
            }
            if let Some(ended) = self.ended.take() {
                return (Vec::new(), ended);
            }
            match self.step(spare) {
                Ok(true) => {}
                ended => {
                    self.let_go();
                    self.ended = Some(ended);
                }
            }
        }
    }
}

/// The library's stream of a file's frames.
pub fn stream(compressed: impl Read) -> io::Result<impl Read> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(READ, compressed))?;
    decoder.window_log_max(WINDOW_LOG)?;
    Ok(decoder)
}

/// The bytes of a file.
struct Compressed {
    reader: Box<dyn Read>,
    bytes: Vec<u8>,
    at: usize,
    end: usize,
}

impl Compressed {
    /// The next bytes, at least `n` unless the file ends before.
    fn peek(&mut self, n: usize) -> io::Result<&[u8]> {
        if self.end - self.at < n {
            self.bytes.copy_within(self.at..self.end, 0);
            (self.at, self.end) = (0, self.end - self.at);
            if self.bytes.len() < n {
                self.bytes.resize(n, 0);
            }
            while self.end < n {
                match self.reader.read(&mut self.bytes[self.end..]) {
                    Ok(0) => break,
                    Ok(read) => self.end += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(&self.bytes[self.at..self.end])
    }

    /// Passes over `n` bytes.
    fn skip(&mut self, mut n: u64) -> io::Result<bool> {
        while n > 0 {
            let step = self.peek(1)?.len().min(usize::try_from(n).unwrap_or(usize::MAX));
            if step == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete frame"));
            }
            self.at += step;
            n -= step as u64;
        }
        Ok(true)
    }

    /// What is left of the file.
    fn stream(&mut self) -> io::Result<Box<dyn Read>> {
        let head = self.bytes[self.at..self.end].to_vec();
        let rest = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        Ok(Box::new(stream(Cursor::new(head).chain(rest))?))
    }
}

/// Length of a skippable frame without its header, if it is one.
fn skippable(head: &[u8]) -> Option<u64> {
    let (magic, rest) = head.split_first_chunk()?;
    let length = rest.first_chunk()?;
    (u32::from_le_bytes(*magic) & !0xf == SKIPPABLE).then_some(u32::from_le_bytes(*length).into())
}

/// How far a frame's blocks look back (RFC 8878, 3.1.1.1).
fn window(head: &[u8]) -> Option<u64> {
    let (&[_, _, _, _, descriptor], rest) = head.split_first_chunk()?;
    let size_flag = descriptor >> 6;
    let single_segment = descriptor & 0x20 != 0;
    if !single_segment {
        let (exponent, mantissa) = (rest.first()? >> 3, u64::from(rest.first()? & 7));
        let base = 1 << (10 + exponent);
        return Some(base + base / 8 * mantissa);
    }
    // all of the content, whose size stands behind the number of a dictionary
    let rest = rest.get([0, 1, 2, 4][usize::from(descriptor & 3)]..)?;
    let little_endian = |bytes: &[u8]| bytes.iter().rev().fold(0, |size, &byte| size << 8 | u64::from(byte));
    let size = little_endian(rest.get(..1 << size_flag)?);
    Some(if size_flag == 1 { size + 256 } else { size })
}

/// The library's decoder of one block after the other.
struct Decoder(NonNull<zstd_sys::ZSTD_DCtx>);

impl Decoder {
    fn new() -> io::Result<Self> {
        // SAFETY: it asks for nothing; null where there is no memory.
        let context = unsafe { zstd_sys::ZSTD_createDCtx() };
        NonNull::new(context)
            .map(Self)
            .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// A frame begins.
    fn begin(&mut self) -> io::Result<()> {
        // SAFETY: the context is this decoder's own. It forgets what was decoded before.
        let code = unsafe { zstd_sys::ZSTD_decompressBegin(self.0.as_ptr()) };
        said(code, 0).map(|_| ())
    }

    /// Bytes that it wants next; 0 at the end of the frame.
    fn wanted(&self) -> usize {
        // SAFETY: the context is this decoder's own; it is only looked at.
        unsafe { zstd_sys::ZSTD_nextSrcSizeToDecompress(self.0.as_ptr()) }
    }

    /// Decodes `block`, the bytes that it wanted, to `segment` from `at` on; how many it wrote. Since the frame began, all
    /// that it wrote to `segment` and to the one before this must be there still, where it was written.
    fn decode(&mut self, block: &[u8], segment: &mut Vec<u8>, at: usize) -> io::Result<usize> {
        let room = segment.len() - at;
        // SAFETY: it reads `block` and writes at most `room` bytes from `at` on, all of them initialised and inside
        // `segment`. It remembers where it wrote: this segment, and the last before it that did not end where this one begins.
        // Of these two it may read what it wrote, never more (its sequences are checked against that), and `Frames` keeps
        // both, in vectors that neither grow nor are written to otherwise while the frame lasts.
        let code = unsafe {
            let to = segment.as_mut_ptr().add(at).cast();
            zstd_sys::ZSTD_decompressContinue(self.0.as_ptr(), to, room, block.as_ptr().cast(), block.len())
        };
        said(code, room)
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: the context is this decoder's own, and nothing uses it any more.
        unsafe { zstd_sys::ZSTD_freeDCtx(self.0.as_ptr()) };
    }
}

/// A size up to `most`; any other number is an error's.
fn said(code: usize, most: usize) -> io::Result<usize> {
    if code <= most {
        Ok(code)
    } else {
        Err(io::Error::other(get_error_name(code)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out, and how it ends; `Blocks` give back what they can have again.
    fn decoded(compressed: &[u8]) -> (Vec<u8>, Option<String>) {
        let mut frames = Frames::new(Cursor::new(compressed.to_vec())).unwrap();
        let (mut all, mut spare) = (Vec::new(), Vec::new());
        loop {
            let (block, read) = frames.next(&mut || spare.pop().unwrap_or_default());
            all.extend_from_slice(block.get(HEADROOM..).unwrap_or_default());
            match read {
                Ok(true) => {
                    // whoever has it may write to it
                    let mut block = block;
                    block.fill(0xaa);
                    spare.push(block);
                }
                Ok(false) => return (all, None),
                Err(error) => return (all, Some(error.to_string())),
            }
        }
    }

    fn streamed(compressed: &[u8]) -> (Vec<u8>, Option<String>) {
        let mut all = Vec::new();
        let ended = stream(compressed).unwrap().read_to_end(&mut all);
        (all, ended.err().map(|error| error.to_string()))
    }

    /// Bytes of which some repeat what came before, near and far.
    fn content(length: usize, mut state: u64) -> Vec<u8> {
        let mut bytes: Vec<u8> = Vec::with_capacity(length + 300);
        while bytes.len() < length {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let run = 1 + (state >> 40) as usize % 300;
            let back = (state >> 20) as usize % (4 << 20);
            if state >> 62 != 0 && back + run <= bytes.len() && back >= run {
                bytes.extend_from_within(bytes.len() - back..bytes.len() - back + run);
            } else {
                bytes.extend((0..run).map(|n| (state >> (n % 56)) as u8));
            }
        }
        bytes.truncate(length);
        bytes
    }

    fn compressed(content: &[u8], window_log: u32, checksum: bool) -> Vec<u8> {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(window_log).unwrap();
        encoder.long_distance_matching(window_log > 20).unwrap();
        encoder.include_checksum(checksum).unwrap();
        io::Write::write_all(&mut encoder, content).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn it_gives_what_a_stream_gives() {
        let mut all = Vec::new();
        for (length, window_log) in [
            (0, 10),
            (1, 10),
            (300_000, 10),
            (3_000_000, 17),
            (9_000_000, 21),
            (18_000_000, 22),
        ] {
            let content = content(length, length as u64 + 1);
            let frame = compressed(&content, window_log, window_log % 2 == 0);
            assert!(decoded(&frame) == (content, None), "{length} {window_log}");
            all.extend([0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9]);
            all.extend(frame);
        }
        // one behind the other, windows growing, then one that is too long for segments, and others behind it
        let long = compressed(&content(20_000_000, 5), 23, true);
        all.extend([&long[..], &compressed(&content(70_000, 6), 12, true)].concat());
        let (ours, theirs) = (decoded(&all), streamed(&all));
        assert_eq!((None, theirs.0.len()), (ours.1.clone(), ours.0.len()));
        assert!(ours == theirs);
        // all of the content is the window where its size is known and it is no longer
        let known = zstd::bulk::compress(&content(700_000, 7), 3).unwrap();
        assert!(decoded(&known) == streamed(&known));
    }

    #[test]
    fn a_damaged_file_gives_what_a_stream_gives() {
        let content = content(600_000, 3);
        let whole = [compressed(&content, 17, true), compressed(b"behind it", 10, true)].concat();
        for cut in (1..whole.len())
            .step_by(997)
            .chain(1..64)
            .chain(whole.len() - 64..whole.len())
        {
            assert!(streamed(&whole[..cut]) == decoded(&whole[..cut]), "{cut}");
        }
        let (mut tried, mut failed) = (0, 0);
        for at in (0..whole.len()).step_by(2003).chain(0..32) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x41;
            let (ours, theirs) = (decoded(&bytes), streamed(&bytes));
            // a stream keeps to itself what it decoded in the call that fails
            assert!(ours.0.starts_with(&theirs.0), "{at}");
            assert_eq!(theirs.1.is_some(), ours.1.is_some(), "{at}");
            (tried, failed) = (tried + 1, failed + usize::from(ours.1.is_some()));
        }
        // bits of a header that say what is so anyway can change
        assert!(tried > 70 && failed + 4 > tried, "{failed} of {tried}");
        let noise = [&whole[..], b"no frame at all"].concat();
        assert_eq!(streamed(&noise), decoded(&noise));
    }

    #[test]
    fn windows_are_what_headers_say() {
        for window_log in 10..=27 {
            assert_eq!(Some(1 << window_log), window(&compressed(&[1; 100], window_log, true)));
        }
        for length in [0, 1, 255, 256, 300, 65_791, 65_792, 200_000] {
            let frame = zstd::bulk::compress(&vec![7; length], 3).unwrap();
            let least = window(&frame).unwrap();
            assert!(
                (length as u64..=(length as u64).max(1024)).contains(&least),
                "{length} {least}"
            );
        }
        assert_eq!(None, window(&[0x28, 0xb5, 0x2f, 0xfd, 0xe0, 1]));
    }
}
