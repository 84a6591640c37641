//! A window over the capture's bytes: large reads into one reused buffer, records parsed where they lie.

use std::io::{self, Read};

use super::input::Source;
use super::pipe::{Pipe, HEADROOM};
use crate::prefetch::prefetch;

/// As cheap as mmap on snapped captures and cheaper on full packets, where half of it costs 6 % more. Mapped, full packets whose
/// lengths repeat cost 1.1 of `cat` if the header of the sixth large record ahead is asked for where the sixth before lay, but
/// 1.7 if they do not repeat; read, 1.2 of it both ways.
const SIZE: usize = 1 << 20;

/// Bytes of the next record that are asked for ahead: the headers of most.
const NEXT: usize = 128;

pub struct Block {
    source: Source,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the (decompressed) stream that have come, up to `buffer[end]`.
    come: u64,
    ended: bool,
    failure: Option<io::Error>,
}

impl Block {
    pub fn new(source: Source) -> Self {
        let own = match source {
            Source::Reader(_) => SIZE,
            Source::Pipe(_) => 0, // its blocks are taken as they come
        };
        Self {
            source,
            buffer: vec![0; own],
            start: 0,
            end: 0,
            come: 0,
            ended: false,
            failure: None,
        }
    }

    /// Place of the next byte in the (decompressed) stream.
    pub fn offset(&self) -> u64 {
        self.come - (self.end - self.start) as u64
    }

    /// What ended the stream before its end, if anything did.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// The bytes at hand, at least `n` of them unless the stream ends before.
    #[inline]
    pub fn peek(&mut self, n: usize) -> &[u8] {
        if self.end - self.start < n {
            self.fill(n);
        }
        &self.buffer[self.start..self.end]
    }

    /// The bytes at hand, however many.
    #[inline]
    pub fn at_hand(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    #[cold]
    fn fill(&mut self, n: usize) {
        let before = self.end - self.start;
        while self.end - self.start < n && !self.ended {
            let (bytes, start, end) = (&mut self.buffer, &mut self.start, &mut self.end);
            let more = match &mut self.source {
                Source::Reader(reader) => read(reader, bytes, start, end, n),
                Source::Pipe(pipe) => take(pipe, bytes, start, end),
            };
            match more {
                Ok(more) => self.ended = !more,
                Err(error) => {
                    self.ended = true;
                    self.failure = Some(error);
                }
            }
        }
        self.come += (self.end - self.start - before) as u64;
    }

    /// Passes over `n` bytes that `peek` has shown; they stay readable by `shown` until the next `peek`.
    #[inline]
    pub fn consume(&mut self, n: usize) -> usize {
        let at = self.start;
        let n = n.min(self.end - self.start);
        self.start += n;
        at
    }

    /// Asks for the first bytes at hand.
    #[inline]
    pub fn prefetch(&self) {
        if let Some(next) = self.at_hand().first_chunk::<NEXT>() {
            prefetch(next);
        }
    }

    /// Bytes of the last consumed record, by the place that `consume` gave.
    #[inline]
    pub fn shown(&self, at: usize, len: usize) -> &[u8] {
        &self.buffer[at..at + len]
    }

    /// Passes over `n` bytes however many they are; returns how many there were.
    pub fn skip(&mut self, n: u64) -> u64 {
        let mut left = n;
        while left > 0 {
            let available = self.peek(1).len() as u64;
            if available == 0 {
                break;
            }
            let step = available.min(left);
            self.consume(step as usize);
            left -= step;
        }
        n - left
    }
}

/// Moves what is left to the front and reads behind it; false at the end.
fn read(
    reader: &mut dyn Read,
    bytes: &mut Vec<u8>,
    start: &mut usize,
    end: &mut usize,
    needed: usize,
) -> io::Result<bool> {
    bytes.copy_within(*start..*end, 0);
    (*start, *end) = (0, *end - *start);
    if needed > bytes.len() {
        bytes.resize(needed, 0);
    }
    let read = reader.read(&mut bytes[*end..])?;
    *end += read;
    Ok(read > 0)
}

/// Takes the pipe's next block in exchange for this one, what is left before its bytes; false at the end.
fn take(pipe: &mut Pipe, bytes: &mut Vec<u8>, start: &mut usize, end: &mut usize) -> io::Result<bool> {
    let Some(mut block) = pipe.next()? else {
        return Ok(false);
    };
    let left = &bytes[*start..*end];
    if let Some(first) = HEADROOM.checked_sub(left.len()) {
        block[first..HEADROOM].copy_from_slice(left);
        std::mem::swap(bytes, &mut block);
        *start = first;
    } else {
        // a record as long as blocks are
        bytes.truncate(*end);
        bytes.drain(..*start);
        bytes.extend_from_slice(&block[HEADROOM..]);
        *start = 0;
    }
    *end = bytes.len();
    pipe.give_back(block);
    Ok(true)
}
