//! What the sender has sent and the receiver has not yet acknowledged: one unit a range, with every transmission of it.
//!
//! Units follow each other without gaps in sequence order, so a ring serves as the map. Ranges are split where a
//! resend, a SACK block or an ACK cuts them (a super-segment is often resent in part).

use crate::rows::Reason;
use std::collections::{BTreeMap, VecDeque};

/// Units at the front that are looked at one by one.
const NEAR: usize = 8;

/// One transmission of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmission {
    /// When it passed the capture point; for one that never did, when its absence showed.
    pub time_ns: i64,
    /// Position in the sending order, in transmissions.
    pub order: u64,
    /// 0: not in the capture.
    pub frame: u64,
    pub tsval: u32,
    /// Data outstanding when it was sent, in segments.
    pub flight: f32,
    pub ip_id: u16,
    /// Why it was sent; of a first transmission `Reason::Unknown`.
    pub cause: Reason,
    /// It passed the capture point.
    pub seen: bool,
    /// Whether it was sent again or is the first copy, late, only time could tell.
    pub doubtful: bool,
}

#[derive(Clone, Debug)]
pub struct Unit {
    pub left: u64,
    pub right: u64,
    pub first: Transmission,
    /// Later transmissions, oldest first. Boxed, because almost no unit has any.
    pub resent: Option<Box<Vec<Transmission>>>,
    /// When a SACK block first covered it; 0 before.
    pub sacked_ns: i64,
    /// DSACKs that reported it while it was outstanding (RFC 2883).
    pub dsacks: u8,
    /// A copy came too late for the receiver to take it, and was answered.
    pub discarded: bool,
}

impl Unit {
    pub const BLANK: Self = Self {
        left: 0,
        right: 0,
        first: Transmission {
            time_ns: 0,
            order: 0,
            frame: 0,
            tsval: 0,
            flight: 0.0,
            ip_id: 0,
            cause: Reason::Unknown,
            seen: true,
            doubtful: false,
        },
        resent: None,
        sacked_ns: 0,
        dsacks: 0,
        discarded: false,
    };

    pub fn transmissions(&self) -> usize {
        1 + self.resent.as_ref().map_or(0, |r| r.len())
    }

    pub fn last(&self) -> &Transmission {
        self.resent.as_ref().and_then(|r| r.last()).unwrap_or(&self.first)
    }

    /// It was sent once and passed the capture point: nothing but time decides on it.
    pub fn is_plain(&self) -> bool {
        self.resent.is_none() && self.first.seen
    }

    /// Some transmission of it passed the capture point.
    pub fn seen(&self) -> bool {
        self.first.seen || self.resent.as_ref().is_some_and(|r| r.iter().any(|t| t.seen))
    }

    pub fn all(&self) -> impl Iterator<Item = &Transmission> {
        std::iter::once(&self.first).chain(self.resent.iter().flat_map(|r| r.iter()))
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Transmission> {
        std::iter::once(&mut self.first).chain(self.resent.iter_mut().flat_map(|r| r.iter_mut()))
    }

    pub fn add(&mut self, transmission: Transmission) {
        self.resent.get_or_insert_with(Default::default).push(transmission);
    }
}

/// ceil(bytes / smss): segments of a range.
pub fn segments(bytes: u64, smss: u32) -> u32 {
    if bytes <= u64::from(smss) {
        u32::from(bytes > 0)
    } else {
        bytes.div_ceil(u64::from(smss.max(1))).min(u64::from(u32::MAX)) as u32
    }
}

#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    pub units: VecDeque<Unit>,
}

impl Scoreboard {
    /// Index of the unit that holds the byte `at`; `units.len()` if none does.
    pub fn find(&self, at: u64) -> usize {
        let n = self.units.partition_point(|u| u.right <= at);
        if self.units.get(n).is_some_and(|u| u.left <= at) {
            n
        } else {
            self.units.len()
        }
    }

    /// Index of the first unit that begins at or after `at`.
    pub fn at_or_after(&self, at: u64) -> usize {
        self.units.partition_point(|u| u.left < at)
    }

    /// Number of units below `at`, which is made an edge. An ACK covers few: looking from the front finds them soonest.
    #[inline]
    pub fn below(&mut self, at: u64) -> usize {
        let near = self.units.iter().take(NEAR).take_while(|u| u.right <= at).count();
        if near == self.units.len() || near < NEAR && self.units[near].left >= at {
            return near;
        }
        self.split(at);
        self.at_or_after(at)
    }

    /// Makes `at` an edge: the unit that holds it becomes two.
    pub fn split(&mut self, at: u64) {
        let n = self.find(at);
        let Some(unit) = self.units.get_mut(n) else { return };
        if unit.left == at {
            return;
        }
        let mut tail = unit.clone();
        unit.right = at;
        tail.left = at;
        self.units.insert(n + 1, tail);
    }

    /// Units that lie inside [left, right), after making both ends edges.
    pub fn cut(&mut self, left: u64, right: u64) -> std::ops::Range<usize> {
        self.split(left);
        self.split(right);
        self.at_or_after(left)..self.at_or_after(right)
    }
}

/// What SACK blocks have covered: a block grows with every ACK, and only what is new in it has to be looked at.
#[derive(Clone, Debug, Default)]
pub struct Covered {
    /// Left to right; no two touch.
    ranges: BTreeMap<u64, u64>,
    fresh: Vec<(u64, u64)>,
}

impl Covered {
    /// Adds [left, right) and gives the parts that no block had covered.
    pub fn add(&mut self, left: u64, right: u64) -> &[(u64, u64)] {
        self.fresh.clear();
        let (mut from, mut to, mut at) = (left, right, left);
        if let Some((&l, &r)) = self.ranges.range(..=left).next_back() {
            if r >= right {
                return &self.fresh;
            }
            if r >= left {
                (from, at) = (l, r);
            }
        }
        while let Some((&l, &r)) = self.ranges.range(from..=right).next() {
            self.ranges.remove(&l);
            if l > at {
                self.fresh.push((at, l));
            }
            at = at.max(r);
            to = to.max(r);
        }
        if at < right {
            self.fresh.push((at, right));
        }
        self.ranges.insert(from, to);
        &self.fresh
    }

    /// Forgets what lies below the left edge.
    pub fn below(&mut self, una: u64) {
        while let Some(first) = self.ranges.first_entry().filter(|first| *first.get() <= una) {
            first.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covered_ranges_give_what_is_new() {
        let mut covered = Covered::default();
        assert_eq!(covered.add(10, 20), [(10, 20)]);
        assert_eq!(covered.add(10, 30), [(20, 30)]);
        assert_eq!(covered.add(12, 18), []);
        assert_eq!(covered.add(40, 50), [(40, 50)]);
        assert_eq!(covered.add(5, 60), [(5, 10), (30, 40), (50, 60)]);
        assert_eq!(covered.add(5, 60), []);
        assert_eq!(covered.add(60, 61), [(60, 61)]);
        assert_eq!(covered.ranges.len(), 1);
        covered.below(60);
        assert_eq!(covered.ranges.len(), 1);
        covered.below(61);
        assert!(covered.ranges.is_empty());
    }

    #[test]
    fn covered_ranges_are_those_of_a_list_of_bytes() {
        let (mut covered, mut bytes, mut state) = (Covered::default(), [false; 256], 1u64);
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (left, length) = (state >> 40 & 0xff, 1 + (state >> 50 & 15));
            let right = (left + length).min(256);
            let new = (left..right).filter(|&at| !bytes[at as usize]).count() as u64;
            assert_eq!(new, covered.add(left, right).iter().map(|(l, r)| r - l).sum::<u64>());
            bytes[left as usize..right as usize].fill(true);
            if state >> 60 == 0 {
                (covered, bytes) = (Covered::default(), [false; 256]);
            }
        }
    }

    fn unit(left: u64, right: u64) -> Unit {
        let first = Transmission {
            order: left,
            frame: left,
            ..Unit::BLANK.first
        };
        Unit {
            left,
            right,
            first,
            ..Unit::BLANK
        }
    }

    #[test]
    fn cutting_splits_only_where_an_edge_is_missing() {
        let mut board = Scoreboard::default();
        board.units.extend([unit(10, 20), unit(20, 50), unit(50, 60)]);
        assert_eq!(board.cut(20, 50), 1..2);
        assert_eq!(board.units.len(), 3);
        assert_eq!(board.cut(30, 55), 2..4);
        let edges: Vec<_> = board.units.iter().map(|u| (u.left, u.right)).collect();
        assert_eq!(edges, [(10, 20), (20, 30), (30, 50), (50, 55), (55, 60)]);
        assert_eq!(board.find(60), 5);
        assert_eq!(board.find(9), 5);
    }

    #[test]
    fn segments_of_a_range_round_up() {
        assert_eq!([0, 1, 1448, 1449, 4344].map(|b| segments(b, 1448)), [0, 1, 1, 2, 3]);
    }
}
