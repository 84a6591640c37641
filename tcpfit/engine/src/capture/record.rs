//! What a format's reader gives for one step through the capture.

use crate::segment::Direction;

/// Longest record believed. Linux hands over offloaded packets of up to 512 KiB (BIG TCP); more is damage.
pub const MAX_RECORD: usize = 1 << 20;

/// Where a packet lies in the block.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub at: usize,
    pub len: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Record {
    pub time_ns: i64,
    pub link_type: u32,
    pub wire_len: u32,
    pub direction: Direction,
    pub place: Place,
}

#[derive(Debug)]
pub enum Step {
    Record(Record),
    End,
    /// Nothing further can be read, and why.
    Damaged(String),
}

impl Step {
    /// The stream ended inside `what`, or before it.
    #[cold]
    pub fn short(available: usize, needed: usize, what: &str) -> Self {
        match (available, what) {
            (0, "record header" | "block header") => Self::End,
            _ => Self::Damaged(format!("{what} cut, {available} of {needed} bytes")),
        }
    }
}

/// The little-endian words of a header at once.
#[inline]
pub fn words<const BYTES: usize, const WORDS: usize>(header: &[u8; BYTES]) -> [u32; WORDS] {
    const { assert!(BYTES == 4 * WORDS) };
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(header.as_chunks().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words
}
