//! Transmissions that are settled in pieces: what was sent as one is counted as one.

use super::PIECES;
use crate::flow::scoreboard::segments;
use crate::rows::Reason;
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

/// A part of a resend, or all of it, that had arrived before.
#[derive(Clone, Debug)]
pub(super) struct Needless {
    pub(super) time_ns: i64,
    pub(super) left: u64,
    pub(super) right: u64,
    pub(super) frame: Option<u64>,
    pub(super) ack_frame: Option<u64>,
    pub(super) reason: Reason,
    pub(super) confidence: f64,
}

/// Resends that are settled part by part. One that brought what was missing was needed, whatever came along with it: where
/// an application writes less than segments hold, hosts fill these up when they send again.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// Resends of the unit that was settled last, and their needless parts by their orders.
    open: Vec<Open>,
    needless: Vec<(u64, Needless)>,
}

#[derive(Clone, Debug)]
struct Open {
    order: u64,
    /// Where its next part begins.
    right: u64,
    /// Of the segment that these parts are of: a packet may be several, where the host cuts them behind the capture point.
    bytes: u64,
    needed: bool,
}

impl Parts {
    pub(super) const fn new() -> Self {
        Self {
            open: Vec::new(),
            needless: Vec::new(),
        }
    }

    /// Resends that the unit which begins at `left`, with these orders, has no part of: what of them was needless for good.
    pub(super) fn close(&mut self, left: u64, smss: u32, is_part: impl Fn(u64) -> bool) -> Vec<(u64, Needless)> {
        let goes_on = |o: &Open| o.right == left && !o.bytes.is_multiple_of(u64::from(smss)) && is_part(o.order);
        let Self { open, needless } = self;
        let mut known = Vec::new();
        open.retain(|o| {
            let stays = goes_on(o);
            if !stays {
                let parts = needless.extract_if(.., |(order, _)| *order == o.order);
                known.extend(parts.filter(|_| !o.needed));
            }
            stays
        });
        known
    }

    /// The part [left, right) of the resend `order` was `needless`, or else was needed or lost.
    pub(super) fn settle(&mut self, order: u64, (left, right): (u64, u64), needless: Option<Needless>) {
        let needed = needless.is_none();
        self.needless.extend(needless.map(|needless| (order, needless)));
        if let Some(open) = self.open.iter_mut().find(|o| o.order == order) {
            open.right = right;
            open.bytes += right - left;
            open.needed |= needed;
        } else {
            self.open.push(Open {
                order,
                right,
                bytes: right - left,
                needed,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u32 = 1000;

    /// Segments that were needless of the resend 9, which is settled in these parts: their lengths, and whether each was.
    fn needless(parts: &[(u64, bool)]) -> Vec<(u64, u64)> {
        let (mut settled, mut known, mut left) = (Parts::new(), Vec::new(), 0);
        for &(length, is_needless) in parts {
            known.extend(settled.close(left, SMSS, |order| order == 9));
            let part = Needless {
                time_ns: 0,
                left,
                right: left + length,
                frame: None,
                ack_frame: None,
                reason: Reason::Dsack,
                confidence: 0.9,
            };
            settled.settle(9, (left, left + length), is_needless.then_some(part));
            left += length;
        }
        known.extend(settled.close(left, SMSS, |_| false));
        known.iter().map(|(_, part)| (part.left, part.right)).collect()
    }

    #[test]
    fn what_came_along_with_what_was_missing_was_not_needless() {
        assert_eq!([(0, 300), (300, 1000)], needless(&[(300, true), (700, true)])[..]);
        assert!(needless(&[(300, true), (700, false)]).is_empty());
        assert!(needless(&[(300, false), (700, true)]).is_empty());
        assert!(needless(&[(300, true), (300, false), (400, true)]).is_empty());
    }

    #[test]
    fn segments_that_are_captured_as_one_are_each_needed_or_not() {
        assert_eq!([(0, 1000)], needless(&[(1000, true), (1000, false)])[..]);
        assert_eq!(
            [(1000, 3000)],
            needless(&[(1000, false), (2000, true), (500, false)])[..]
        );
    }
}
