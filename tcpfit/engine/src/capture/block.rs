//! A window over the capture's bytes: the file's own pages, or large reads into one reused buffer. Records are parsed where
//! they lie.
#![allow(unsafe_code)] // a view of its own bytes

use std::io::{self, Read};

use super::input::Source;
use super::pipe::{Pipe, HEADROOM};
use super::view::View;
use crate::prefetch::prefetch_at;

/// Of full packets half of it costs 6 % more.
const SIZE: usize = 1 << 20;

/// Records of up to so many bytes lie so near one another that what comes after them is asked for in the order of the bytes, so
/// many ahead: mapped pages are as far as memory, and the processor by itself reads on to the end of a page.
pub const NEAR: usize = 256;
const DISTANCE: usize = 1536;

/// So many larger records ahead the memory has answered when the record's turn comes.
const AHEAD: usize = 6;

/// Bytes of a record that are asked for: the headers of most.
const HEADERS: usize = 128;

pub struct Block {
    source: Source,
    buffer: Vec<u8>,
    /// The mapped pages, or the buffer: made anew by whoever changes either, which is `fill`.
    bytes: View,
    start: usize,
    end: usize,
    /// Bytes of the (decompressed) stream that have come, up to `buffer[end]`.
    come: u64,
    ended: bool,
    failure: Option<io::Error>,
    /// Where the last large records ended, the oldest at `oldest`.
    large: [usize; AHEAD],
    oldest: usize,
}

impl Block {
    pub fn new(source: Source) -> Self {
        let own = match source {
            Source::Reader(_) => SIZE,
            Source::Mapped(_) | Source::Pipe(_) => 0, // its pages are looked at where they are, its blocks taken as they come
        };
        Self {
            source,
            buffer: vec![0; own],
            bytes: View::default(),
            start: 0,
            end: 0,
            come: 0,
            ended: false,
            failure: None,
            large: [0; AHEAD],
            oldest: 0,
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
        &self.bytes[self.start..self.end]
    }

    /// The bytes at hand, however many.
    #[inline]
    pub fn at_hand(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    #[cold]
    fn fill(&mut self, n: usize) {
        let before = self.end - self.start;
        while self.end - self.start < n && !self.ended {
            let (bytes, start, end) = (&mut self.buffer, &mut self.start, &mut self.end);
            let more = match &mut self.source {
                Source::Mapped(mapped) => match mapped.more(*start) {
                    Some(come) => {
                        let more = come > *end;
                        *end = come;
                        Ok(more)
                    }
                    None => self.read_on(),
                },
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
        let bytes = match &self.source {
            Source::Mapped(mapped) => mapped,
            Source::Reader(_) | Source::Pipe(_) => &self.buffer[..],
        };
        // SAFETY: both stay where they are while the block does not change, and nothing else changes them
        self.bytes = unsafe { View::of(bytes) };
        self.come += (self.end - self.start - before) as u64;
    }

    /// From here on the file is read that was mapped.
    fn read_on(&mut self) -> io::Result<bool> {
        let nothing = Source::Reader(Box::new(io::empty()));
        if let Source::Mapped(mapped) = std::mem::replace(&mut self.source, nothing) {
            let left = &mapped[self.start..self.end];
            self.buffer = vec![0; left.len() + SIZE];
            self.buffer[..left.len()].copy_from_slice(left);
            (self.start, self.end) = (0, left.len());
            self.source = Source::Reader(Box::new(mapped.rest()?));
        }
        Ok(true)
    }

    /// Passes over `n` bytes that `peek` has shown; they stay readable by `shown` until the next `peek`.
    #[inline]
    pub fn consume(&mut self, n: usize) -> usize {
        let at = self.start;
        let n = n.min(self.end - self.start);
        self.start += n;
        at
    }

    /// Behind a record of up to `NEAR` bytes: asks for what comes some records later.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch_at(&self.bytes, self.start + DISTANCE, HEADERS);
    }

    /// Behind a larger one: asks for the headers of the next record, and for those of the sixth large record ahead, where it lies
    /// if the records' lengths repeat.
    #[inline]
    pub fn prefetch_apart(&mut self) {
        let ahead = 2 * self.start - self.large[self.oldest].min(self.start);
        self.large[self.oldest] = self.start;
        self.oldest = (self.oldest + 1) % AHEAD;
        prefetch_at(&self.bytes, self.start, HEADERS);
        prefetch_at(&self.bytes, ahead, HEADERS);
    }

    /// Bytes of the last consumed record, by the place that `consume` gave.
    #[inline]
    pub fn shown(&self, at: usize, len: usize) -> &[u8] {
        &self.bytes[at..at + len]
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
