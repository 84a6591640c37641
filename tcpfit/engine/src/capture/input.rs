//! The capture's bytes: file or standard input, counted as they are read, gzip and zstd undone.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::frames::{self, Frames};
use super::mapped::Mapped;
use super::pipe::{Pipe, Reads};
use super::CaptureError;

/// Asked again and again while a read waits for a pipe; `true` ends the run.
pub type Interrupt = Box<dyn FnMut() -> bool + Send>;

/// Bytes handed to a decompressor at a time.
const COMPRESSED_BLOCK: usize = 128 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }

    /// By the first bytes (RFC 1952, 2.3.1; RFC 8878, 3.1.1 and 3.1.2), never by the file's name.
    fn recognise(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            // a skippable frame opens what pzstd and seekable zstd write
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// How far into the (compressed) file reading is; shared with whoever shows progress.
#[derive(Clone, Debug, Default)]
pub struct Position(Arc<AtomicU64>);

impl Position {
    pub fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Marks the error that the interrupt hook asks for, so that it is told apart from a failed read.
#[derive(Debug)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped")
    }
}

impl std::error::Error for Stopped {}

pub fn is_stop(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Stopped>())
}

pub struct Counted<R> {
    pub inner: R,
    pub position: Position,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.inner.read(buffer) {
                Ok(n) => {
                    self.position.0.fetch_add(n as u64, Ordering::Relaxed);
                    return Ok(n);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Where bytes come from.
pub enum Source {
    /// The file's own pages.
    Mapped(Mapped),
    Reader(Box<dyn Read + Send>),
    /// Another thread reads, and decompresses.
    Pipe(Pipe),
}

/// An open capture file before its format is known.
pub struct Input {
    pub source: Source,
    pub compression: Compression,
    pub position: Position,
    /// Size of the file as it lies on disk; 0 for a pipe.
    pub size: u64,
}

impl Input {
    /// Opens a file by its path; `-` is standard input.
    pub fn open(path: &Path, interrupt: Interrupt) -> Result<Self, CaptureError> {
        let failed = |error: io::Error| open_failed(path, &error);
        if path == Path::new("-") {
            return Self::from_pipe(|| Ok(io::stdin()), interrupt).map_err(failed);
        }
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if metadata.is_dir() {
            return Err(rejected(path, "a directory, not a capture; give the captures in it"));
        }
        if !metadata.is_file() {
            let name = path.to_owned();
            return Self::from_pipe(move || File::open(name), interrupt).map_err(failed);
        }
        let file = File::open(path).map_err(failed)?;
        let whole = file.try_clone().map_err(failed)?;
        let position = Position::default();
        let (bytes, compression) = recognised(file, position.clone()).map_err(failed)?;
        let piped = |pipe: io::Result<(Pipe, ())>| pipe.map(|(pipe, ())| Source::Pipe(pipe));
        let source = match compression {
            Compression::None => Ok(match Mapped::open(whole, position.clone()) {
                Some(mapped) => Source::Mapped(mapped),
                None => Source::Reader(bytes),
            }),
            Compression::Gzip => {
                let reader = gzip(bytes);
                piped(Pipe::new(|| Ok((Reads { reader, whole: true }, ())), interrupt))
            }
            Compression::Zstd => piped(Pipe::new(|| Ok((Frames::new(bytes)?, ())), interrupt)),
        };
        let source = source.map_err(failed)?;
        Ok(Self {
            source,
            compression,
            position,
            size: metadata.len(),
        })
    }

    /// What another thread opens and reads, since it may wait for its writer.
    pub fn from_pipe<R: Read + Send + 'static>(
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
        interrupt: Interrupt,
    ) -> io::Result<Self> {
        let position = Position::default();
        let shared = position.clone();
        let open = move || {
            let (reader, compression) = uncompressed(open()?, shared)?;
            Ok((Reads { reader, whole: false }, compression))
        };
        let (pipe, compression) = Pipe::new(open, interrupt)?;
        Ok(Self {
            source: Source::Pipe(pipe),
            compression,
            position,
            size: 0,
        })
    }

    /// Takes any stream of bytes, compressed or not.
    pub fn from_reader(inner: impl Read + Send + 'static) -> io::Result<Self> {
        let position = Position::default();
        let (reader, compression) = uncompressed(inner, position.clone())?;
        Ok(Self {
            source: Source::Reader(reader),
            compression,
            position,
            size: 0,
        })
    }
}

/// The stream's bytes as they are, and their compression, recognised by the first of them.
fn recognised(
    inner: impl Read + Send + 'static,
    position: Position,
) -> io::Result<(Box<dyn Read + Send>, Compression)> {
    let mut counted = Counted { inner, position };
    let mut head = Vec::with_capacity(4);
    (&mut counted).take(4).read_to_end(&mut head)?;
    let compression = Compression::recognise(&head);
    Ok((Box::new(io::Cursor::new(head).chain(counted)), compression))
}

/// The stream without its compression.
fn uncompressed(
    inner: impl Read + Send + 'static,
    position: Position,
) -> io::Result<(Box<dyn Read + Send>, Compression)> {
    let (bytes, compression) = recognised(inner, position)?;
    let reader: Box<dyn Read + Send> = match compression {
        Compression::None => bytes,
        Compression::Gzip => Box::new(gzip(bytes)),
        Compression::Zstd => Box::new(frames::stream(bytes)?),
    };
    Ok((reader, compression))
}

/// `MultiGzDecoder`: gzip members follow each other (RFC 1952, 2.2), as `cat a.gz b.gz` and bgzip write them.
fn gzip(compressed: impl Read + Send + 'static) -> impl Read + Send {
    flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(COMPRESSED_BLOCK, compressed))
}

/// How an error names the input.
fn place(path: &Path) -> Cow<'_, str> {
    match path.to_string_lossy() {
        Cow::Borrowed("-") => "standard input".into(),
        path => path,
    }
}

pub fn rejected(path: &Path, sentence: impl fmt::Display) -> CaptureError {
    CaptureError::Rejected(format!("{}: {sentence}", place(path)))
}

pub fn open_failed(path: &Path, error: &io::Error) -> CaptureError {
    match error.kind() {
        _ if is_stop(error) => CaptureError::Stopped,
        io::ErrorKind::NotFound => rejected(path, "no such file; check the path"),
        io::ErrorKind::PermissionDenied => rejected(path, "no permission to read it; check its mode and owner"),
        _ => rejected(path, format_args!("cannot be read ({error})")),
    }
}
