//! A window over the capture's bytes: large reads into one reused buffer, records parsed where they lie.

use std::io::{self, Read};

/// As cheap as mmap on snapped captures and cheaper on full packets; fits the level-2 cache beside the flows.
const SIZE: usize = 512 << 10;

pub struct Block {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Place of `buffer[start]` in the (decompressed) stream.
    offset: u64,
    ended: bool,
    failure: Option<io::Error>,
}

impl Block {
    pub fn new(reader: Box<dyn Read + Send>) -> Self {
        Self {
            reader,
            buffer: vec![0; SIZE],
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            failure: None,
        }
    }

    /// Place of the next byte in the (decompressed) stream.
    pub fn offset(&self) -> u64 {
        self.offset
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
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if n > self.buffer.len() {
            self.buffer.resize(n, 0);
        }
        while self.end < n && !self.ended {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) => {
                    self.ended = true;
                    self.failure = Some(error);
                }
            }
        }
    }

    /// Passes over `n` bytes that `peek` has shown; they stay readable by `shown` until the next `peek`.
    #[inline]
    pub fn consume(&mut self, n: usize) -> usize {
        let at = self.start;
        let n = n.min(self.end - self.start);
        self.start += n;
        self.offset += n as u64;
        at
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
