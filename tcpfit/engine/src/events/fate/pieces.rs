//! Transmissions that are settled in pieces: what was sent as one is counted as one.

use super::PIECES;
use crate::flow::scoreboard::segments;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(super) struct Pieces {
    /// Bytes counted of transmissions that were settled in pieces: order, lost or needless, bytes.
    counted: VecDeque<(u64, bool, u64)>,
    /// Highest order that any of these has had.
    newest: u64,
}

impl Pieces {
    pub(super) const fn new() -> Self {
        Self {
            counted: VecDeque::new(),
            newest: 0,
        }
    }

    /// Segments that `bytes` more of a transmission make: what was sent as one is one, however it was cut later.
    pub(super) fn count(&mut self, order: u64, lost: bool, bytes: u64, smss: u32) -> u32 {
        // most are settled in the order in which they were sent
        if order <= self.newest {
            let mut pieces = self.counted.iter_mut().rev();
            if let Some(piece) = pieces.find(|p| (p.0, p.1) == (order, lost)) {
                let before = segments(piece.2, smss);
                piece.2 += bytes;
                return segments(piece.2, smss) - before;
            }
        }
        self.newest = self.newest.max(order);
        if self.counted.len() >= PIECES {
            self.counted.pop_front();
        }
        self.counted.push_back((order, lost, bytes));
        segments(bytes, smss)
    }
}
