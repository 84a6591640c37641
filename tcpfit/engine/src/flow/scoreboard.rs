//! What the sender has sent and the receiver has not yet acknowledged: one unit a range, with every transmission of it.
//!
//! Units follow each other without gaps in sequence order, so a ring serves as the map. Ranges are split where a
//! resend, a SACK block or an ACK cuts them (a super-segment is often resent in part).

mod credit;
mod search;
mod unit;

pub use credit::EARNED;
pub use unit::{segments, History, Transmission, Unit, KEPT};

use crate::flow::ring::Ring;
use credit::Credit;
use search::{first_not, NEAR};
use std::collections::BTreeMap;
use unit::{add, AGAIN, PIECE};

/// Units outstanding: a window has at most 1 GiB (RFC 7323, 2.3), which is 741,455 segments of 1448 bytes. Beyond it the
/// oldest have been acknowledged by ACKs that the capture missed.
const OUTSTANDING: usize = 1 << 20;

#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Scoreboard {
    pub units: Ring<Unit>,
    /// Boxed, because most flows lose nothing.
    disturbed: Option<Box<Disturbed>>,
    /// Size of a full segment, and how many more of these the pieces make up that units were cut into since that was asked.
    smss: u32,
    more: u32,
}

/// What a board needs on which units were cut, or sent again.
#[derive(Clone, Debug, Default)]
struct Disturbed {
    credit: Credit,
    /// Later transmissions of the units that were sent again, oldest first, by the units' left edges.
    again: BTreeMap<u64, Vec<Transmission>>,
    /// Cuts since the pieces were counted, and how many these were.
    cuts: usize,
    pieces: usize,
    /// Place of the unit behind the last range that was cut out; it may be another unit's by now.
    behind: u32,
}

impl Scoreboard {
    pub fn new(smss: u32) -> Self {
        Self {
            smss,
            ..Self::default()
        }
    }

    pub fn count_by(&mut self, smss: u32) {
        self.smss = smss;
    }

    /// Segments that what is outstanding counts more since this was asked: pieces that do not end where the sender's
    /// segments do make up more of them than the whole.
    #[inline]
    pub fn take_more(&mut self) -> u32 {
        std::mem::take(&mut self.more)
    }

    /// No unit was cut or sent again.
    pub fn is_plain(&self) -> bool {
        self.disturbed.is_none()
    }

    fn disturbed(&mut self) -> &mut Disturbed {
        self.disturbed.get_or_insert_with(Box::default)
    }

    /// There are as many units as any window can hold: with another one, the oldest is let go.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.units.len() >= OUTSTANDING
    }

    /// Makes `at` an edge: the unit that holds it becomes two.
    pub fn split(&mut self, at: u64) {
        let n = self.find(at);
        if self.units.get(n).is_some_and(|u| u.left < at) {
            self.split_unit(n, at);
        }
    }

    fn split_unit(&mut self, n: usize, at: u64) {
        let unit = &mut self.units[n];
        let mut tail = *unit;
        tail.length = (unit.right() - at) as u32;
        tail.left = at;
        tail.flags |= PIECE;
        let whole = unit.segments(self.smss);
        unit.length -= tail.length;
        self.more += unit.segments(self.smss) + tail.segments(self.smss) - whole;
        if tail.is_resent() {
            let left = unit.left;
            let again = &mut self.disturbed().again;
            if let Some(resent) = again.get(&left).cloned() {
                again.insert(at, resent);
            }
        }
        self.units.insert(n + 1, tail);
    }

    /// The same, if it costs no more than the flow has to spend. Index of the first unit that ends beyond `at`.
    fn try_split(&mut self, at: u64) -> usize {
        let n = self.beyond(at);
        self.try_split_unit(n, at)
    }

    /// The same, not below the unit `from`, and most often near it.
    fn try_split_from(&mut self, from: usize, at: u64) -> usize {
        let ends_below = |n: &usize| self.units.get(*n).is_some_and(|u| u.right() <= at);
        let near = (from..from + NEAR).find(|n| !ends_below(n));
        let n = near.unwrap_or_else(|| self.beyond(at));
        self.try_split_unit(n, at)
    }

    fn try_split_unit(&mut self, n: usize, at: u64) -> usize {
        if self.units.get(n).is_none_or(|u| u.left >= at) {
            return n;
        }
        let moved = n.min(self.units.len() - n);
        let disturbed = self.disturbed.get_or_insert_with(Box::default);
        if !disturbed.may_cut(&self.units, moved) {
            return n;
        }
        self.split_unit(n, at);
        n + 1
    }

    /// Units that lie inside [left, right), after making both ends edges where that may be. A SACK block that grows takes
    /// in one segment after the other: most often the range is the unit behind the last one.
    #[inline]
    pub fn cut(&mut self, left: u64, right: u64) -> std::ops::Range<usize> {
        if let Some(disturbed) = &mut self.disturbed {
            let n = self.units.at_place(disturbed.behind);
            if self.units.get(n).is_some_and(|u| u.left == left && u.right() == right) {
                disturbed.behind = self.units.place(n + 1);
                return n..n + 1;
            }
        }
        self.cut_any(left, right)
    }

    #[inline(never)]
    fn cut_any(&mut self, left: u64, right: u64) -> std::ops::Range<usize> {
        let from = self.try_split(left);
        let to = self.try_split_from(from, right.max(left));
        self.disturbed().behind = self.units.place(to);
        // where the edge could not be made, the unit that holds it lies outside
        from + usize::from(self.units.get(from).is_some_and(|u| u.left < left))..to
    }

    /// The n-th unit is sent again; what is kept of it no longer as `add` gives it.
    pub fn resend(&mut self, n: usize, transmission: Transmission) -> Option<(Transmission, Transmission)> {
        let unit = &mut self.units[n];
        unit.flags |= AGAIN;
        let (left, first_seen) = (unit.left, unit.first_seen());
        add(
            self.disturbed().again.entry(left).or_default(),
            first_seen,
            transmission,
        )
    }

    /// Units sent again that begin in [left, right), at most `many`, each with its last transmission.
    pub fn resent(&mut self, left: u64, right: u64, many: usize, mut each: impl FnMut(&mut Unit, &Transmission)) {
        let again = self.disturbed.iter().flat_map(|d| d.again.range(left..right.max(left)));
        for (&at, resent) in again.take(many) {
            let n = first_not(&self.units, at, |u| u.left < at);
            if let (Some(unit), Some(last)) = (self.units.get_mut(n), resent.last()) {
                each(unit, last);
            }
        }
    }

    /// Where the first of the first `many` units begins that were sent again and that nothing covers.
    pub fn first_missing(&self, many: usize) -> Option<u64> {
        let again = self.disturbed.iter().flat_map(|d| d.again.keys().copied());
        again.take(many).find(|&at| {
            let n = first_not(&self.units, at, |u| u.left < at);
            self.units.get(n).is_some_and(|unit| unit.sacked_ns == 0)
        })
    }

    /// Of the first `many` units from `left` on that were sent again, those that nothing covers.
    pub fn missing_resends(&self, left: u64, many: usize) -> impl Iterator<Item = &Unit> {
        let again = self.disturbed.iter().flat_map(move |d| d.again.range(left..));
        let units = again
            .map(|(&at, _)| first_not(&self.units, at, |u| u.left < at))
            .take(many)
            .filter_map(|n| self.units.get(n));
        units.filter(|unit| unit.sacked_ns == 0)
    }

    /// Later transmissions of the unit, oldest first.
    #[inline]
    pub fn resends(&self, unit: &Unit) -> &[Transmission] {
        if !unit.is_resent() {
            return &[];
        }
        let resent = self.disturbed.as_ref().and_then(|d| d.again.get(&unit.left));
        resent.map_or(&[], |resent| resent)
    }

    pub fn last(&self, unit: &Unit) -> Transmission {
        self.resends(unit).last().copied().unwrap_or_else(|| unit.first())
    }

    /// Some transmission of the unit passed the capture point.
    pub fn seen(&self, unit: &Unit) -> bool {
        unit.first_seen() || self.resends(unit).iter().any(Transmission::seen)
    }

    /// Transmissions of the unit that holds the byte `at`, oldest first.
    pub fn copies(&self, at: u64) -> impl Iterator<Item = Transmission> + '_ {
        let unit = self.units.get(self.find(at));
        let all = |unit| std::iter::once(Unit::first(unit)).chain(self.resends(unit).iter().copied());
        unit.into_iter().flat_map(all)
    }

    /// The last transmission of that range, if it passed the capture point.
    pub fn last_of(&self, left: u64, right: u64) -> Option<Transmission> {
        let unit = self.units.get(self.find(left))?;
        let last = self.last(unit);
        Some(last).filter(|last| (unit.left, unit.right()) == (left, right) && last.seen())
    }

    /// The transmission `order` of the unit that holds the byte `at` passed after all. False if there is none.
    pub fn arrived(&mut self, order: u64, at: u64, frame: u64) -> bool {
        let n = self.find(at);
        let Some(unit) = self.units.get_mut(n) else {
            return false;
        };
        if unit.order == order {
            unit.frame = frame;
            return true;
        }
        let left = unit.left;
        let resent = self.disturbed.as_mut().and_then(|d| d.again.get_mut(&left));
        let found = resent.and_then(|resent| resent.iter_mut().find(|t| t.order == order));
        found.is_some_and(|transmission| {
            transmission.frame = frame;
            true
        })
    }

    /// The transmission `order` of the unit that holds the byte `at` was never made, unless it passed.
    pub fn forget(&mut self, order: u64, at: u64) {
        let n = self.find(at);
        let Some(unit) = self.units.get_mut(n).filter(|u| u.is_resent()) else {
            return;
        };
        let again = &mut self.disturbed.get_or_insert_with(Box::default).again;
        if let Some(resent) = again.get_mut(&unit.left) {
            resent.retain(|t| t.order != order || t.seen());
            if resent.is_empty() {
                again.remove(&unit.left);
                unit.flags &= !AGAIN;
            }
        }
    }

    /// A unit that was just taken off, with what was kept of it elsewhere.
    pub fn history(&mut self, unit: Unit) -> History {
        let mut copies = self.take_resends(&unit);
        copies.reserve_exact(1);
        copies.insert(0, unit.first());
        History {
            left: unit.left,
            right: unit.right(),
            sacked_ns: unit.sacked_ns,
            discarded: unit.is_discarded(),
            dsacks: unit.dsacks,
            copies,
        }
    }

    fn take_resends(&mut self, unit: &Unit) -> Vec<Transmission> {
        let disturbed = self.disturbed.as_mut().filter(|_| unit.is_resent());
        disturbed.and_then(|d| d.again.remove(&unit.left)).unwrap_or_default()
    }

    /// Takes off the last unit; nothing more will be asked of it.
    pub fn drop_back(&mut self) {
        if let Some(unit) = self.units.pop_back() {
            self.take_resends(&unit);
        }
    }

    /// Units that [left, right) touches, after making both ends edges where that may be.
    pub fn touch(&mut self, left: u64, right: u64) -> std::ops::Range<usize> {
        let from = self.try_split(left);
        if self.units.get(from).is_some_and(|u| u.right() == right) {
            return from..from + 1;
        }
        self.try_split_from(from, right.max(left));
        from..self.at_or_after(right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn unit(left: u64, right: u64) -> Unit {
        Unit {
            left,
            length: (right - left) as u32,
            order: left,
            frame: left,
            ..Unit::default()
        }
    }

    #[test]
    fn cutting_splits_only_where_an_edge_is_missing() {
        let mut board = Scoreboard::default();
        board.units.extend([unit(10, 20), unit(20, 50), unit(50, 60)]);
        assert_eq!(board.cut(20, 50), 1..2);
        assert_eq!(board.units.len(), 3);
        assert_eq!(board.cut(30, 55), 2..4);
        let edges: Vec<_> = board.units.iter().map(|u| (u.left, u.right())).collect();
        assert_eq!(edges, [(10, 20), (20, 30), (30, 50), (50, 55), (55, 60)]);
        assert_eq!(board.find(60), 5);
        assert_eq!(board.find(9), 5);
    }

    #[test]
    fn a_range_behind_the_last_is_cut_out_as_any_other() {
        let (mut quick, mut state) = (Scoreboard::default(), 1u64);
        let (mut una, mut nxt, mut behind) = (0, 0, 0);
        for _ in 0..5000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            for _ in 0..state >> 33 & 3 {
                *quick.units.push_back() = unit(nxt, nxt + 10);
                nxt += 10;
            }
            if state >> 36 & 7 == 0 {
                una = nxt.min(una + (state >> 40 & 255));
                let below = quick.below(una);
                quick.units.skip_front(below);
            }
            let left = if state >> 50 & 3 > 0 {
                behind
            } else {
                una + (state >> 52 & 255)
            }
            .clamp(una, nxt);
            let right = nxt.min(left + [10, 10, 20, 7][(state >> 60 & 3) as usize]);
            behind = right;
            let mut any = quick.clone();
            let range = any.cut_any(left, right);
            assert_eq!(range, quick.cut(left, right));
            assert_eq!(edges(&any), edges(&quick));
        }
    }

    pub(super) fn edges(board: &Scoreboard) -> Vec<(u64, u64)> {
        board.units.iter().map(|u| (u.left, u.right())).collect()
    }

    #[test]
    fn units_sent_again_are_found() {
        let mut board = Scoreboard::default();
        board.units.extend((0..100).map(|n| unit(10 * n, 10 * n + 10)));
        for n in [3, 50, 70, 71] {
            assert!(board.resend(n, unit(0, 1).first()).is_none());
        }
        board.cut(505, 708);
        let found = |board: &mut Scoreboard, left: u64, right: u64, many: usize| {
            let mut found = Vec::new();
            board.resent(left, right, many, |unit, _| found.push((unit.left, unit.right())));
            found
        };
        assert_eq!(
            found(&mut board, 31, 710, 9),
            [(500, 505), (505, 510), (700, 708), (708, 710)]
        );
        assert_eq!(found(&mut board, 0, 1000, 2), [(30, 40), (500, 505)]);
        board.units[3].sacked_ns = 1;
        assert_eq!(board.first_missing(9), Some(500));
        assert_eq!(board.first_missing(1), None);
        for _ in 0..55 {
            let unit = board.units.pop_front().unwrap();
            board.history(unit);
        }
        assert_eq!(found(&mut board, 0, 1000, 9), [(700, 708), (708, 710), (710, 720)]);
        board.resend(0, unit(0, 1).first());
        assert_eq!(board.disturbed().again.len(), 4);
    }
}
