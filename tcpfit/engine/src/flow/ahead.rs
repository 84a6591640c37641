//! Segments that wait while what is known of their connections comes from far memory.
//!
//! Of many connections a processor's caches hold few: each segment would wait for its entry in the index, its place, its
//! connection and its flow, one after the other. Asked for while other segments are followed, these come at the same time.

use crate::segment::Segment;

/// Segments that wait. Between two steps of a segment lie some hundred nanoseconds of other segments' work.
const LENGTH: usize = 16;
/// Segments after which the next thing is asked for: the place that the index names, the connection, its flow.
pub const PLACE: usize = 5;
pub const CONNECTION: usize = 8;
pub const FLOW: usize = 12;

#[derive(Clone, Copy, Default)]
pub struct Waiting {
    pub segment: Segment,
    pub hash: u64,
    /// Where its connection seems to be.
    pub place: u32,
}

/// The last `LENGTH` segments, the oldest first.
#[derive(Default)]
pub struct Ahead {
    /// Empty before the first.
    ring: Vec<Waiting>,
    /// Segments that ever came, and those of them that still wait.
    count: usize,
    waiting: usize,
}

impl Ahead {
    #[inline]
    pub fn waits(&self) -> bool {
        self.waiting > 0
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.waiting == LENGTH
    }

    /// Lets a segment wait, in the place of the oldest where it is full.
    #[inline]
    pub fn push(&mut self, segment: &Segment, hash: u64) {
        if self.ring.is_empty() {
            self.ring = vec![Waiting::default(); LENGTH];
        }
        let place = &mut self.ring[self.count % LENGTH];
        *place = Waiting {
            segment: *segment,
            hash,
            place: 0,
        };
        self.count = self.count.wrapping_add(1);
        self.waiting = LENGTH.min(self.waiting + 1);
    }

    /// The oldest, which waits no longer.
    #[inline]
    pub fn pop(&mut self) -> Option<&Waiting> {
        self.waiting = self.waiting.checked_sub(1)?;
        Some(&self.ring[self.count.wrapping_sub(1 + self.waiting) % LENGTH])
    }

    /// The segment that came `n` before the newest, while it waits.
    #[inline]
    pub fn back(&mut self, n: usize) -> Option<&mut Waiting> {
        (n < self.waiting).then(|| &mut self.ring[self.count.wrapping_sub(1 + n) % LENGTH])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_go_as_they_came() {
        let mut ahead = Ahead::default();
        let (mut given, mut frame) = (Vec::new(), 0);
        for many in [3, LENGTH, 2 * LENGTH + 1] {
            for _ in 0..many {
                frame += 1;
                let segment = Segment {
                    frame,
                    ..Segment::default()
                };
                if ahead.is_full() {
                    given.extend(ahead.pop().copied());
                }
                ahead.push(&segment, 0);
                assert_eq!(Some(frame), ahead.back(0).map(|newest| newest.segment.frame));
            }
            given.extend(std::iter::from_fn(|| ahead.pop().copied()));
            assert!(ahead.pop().is_none() && ahead.back(0).is_none());
        }
        let frames: Vec<u64> = given.iter().map(|waiting| waiting.segment.frame).collect();
        assert_eq!((1..=frame).collect::<Vec<_>>(), frames);
    }
}
