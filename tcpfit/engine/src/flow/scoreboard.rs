//! What the sender has sent and the receiver has not yet acknowledged: one unit a range, with every transmission of it.
//!
//! Units follow each other without gaps in sequence order, so a ring serves as the map. Ranges are split where a
//! resend, a SACK block or an ACK cuts them (a super-segment is often resent in part).

use crate::flow::ring::Ring;
use crate::rows::Reason;
use std::collections::BTreeMap;

/// Units at the front that are looked at one by one.
const NEAR: usize = 8;
/// Units that a flow's searches may look at, or move, before they are held to what they earn.
const CREDIT: usize = 1 << 22;
/// Units that each search earns, and may look at in any case.
pub const EARNED: usize = 1 << 10;
/// To write down that a unit was sent again costs as much as to look at so many.
const RESEND: usize = 16;
/// Pieces of cut units at most; beyond, a unit stays whole.
const PIECES: usize = 4096;
/// Units outstanding: a window has at most 1 GiB (RFC 7323, 2.3), which is 741,455 segments of 1448 bytes. Beyond it the
/// oldest have been acknowledged by ACKs that the capture missed.
const OUTSTANDING: usize = 1 << 20;
/// Transmissions of a unit that are kept, at most.
pub const KEPT: usize = 64;

/// One transmission of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transmission {
    /// When it passed the capture point; for one that never did, when its absence showed.
    pub time_ns: i64,
    /// Position in the sending order, in transmissions.
    pub order: u64,
    /// 0: it did not pass the capture point.
    pub frame: u64,
    pub tsval: u32,
    /// Data outstanding when it was sent, in segments.
    pub flight: f32,
    pub ip_id: u16,
    /// Why it was sent; of a first transmission `Reason::Unknown`.
    pub cause: Reason,
    /// Whether it was sent again or is the first copy, late, only time could tell.
    pub doubtful: bool,
}

impl Transmission {
    pub fn seen(&self) -> bool {
        self.frame != 0
    }
}

/// A range and its first transmission. There is one for every segment outstanding: what few have is kept elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unit {
    pub left: u64,
    /// The first transmission, as in `Transmission`.
    pub time_ns: i64,
    pub order: u64,
    pub frame: u64,
    /// When a SACK block first covered it; 0 before.
    pub sacked_ns: i64,
    pub length: u32,
    pub tsval: u32,
    pub flight: f32,
    pub ip_id: u16,
    /// DSACKs that reported it while it was outstanding (RFC 2883).
    pub dsacks: u8,
    flags: u8,
}

/// It was sent again.
const AGAIN: u8 = 1;
/// A copy came too late for the receiver to take it, and was answered.
const DISCARDED: u8 = 2;
/// Its left edge is a cut.
const PIECE: u8 = 4;

impl Unit {
    #[inline]
    pub fn new(left: u64, right: u64, first: &Transmission) -> Self {
        Self {
            left,
            time_ns: first.time_ns,
            order: first.order,
            frame: first.frame,
            sacked_ns: 0,
            length: (right - left) as u32,
            tsval: first.tsval,
            flight: first.flight,
            ip_id: first.ip_id,
            dsacks: 0,
            flags: 0,
        }
    }

    #[inline]
    pub fn right(&self) -> u64 {
        self.left + u64::from(self.length)
    }

    #[inline]
    pub fn segments(&self, smss: u32) -> u32 {
        segments(u64::from(self.length), smss)
    }

    /// The first transmission passed the capture point.
    #[inline]
    pub fn first_seen(&self) -> bool {
        self.frame != 0
    }

    #[inline]
    pub fn is_resent(&self) -> bool {
        self.flags & AGAIN != 0
    }

    pub fn is_discarded(&self) -> bool {
        self.flags & DISCARDED != 0
    }

    pub fn discard(&mut self) {
        self.flags |= DISCARDED;
    }

    /// It was sent once and passed the capture point: nothing but time decides on it.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.is_resent() && self.first_seen()
    }

    pub fn first(&self) -> Transmission {
        Transmission {
            time_ns: self.time_ns,
            order: self.order,
            frame: self.frame,
            tsval: self.tsval,
            flight: self.flight,
            ip_id: self.ip_id,
            cause: Reason::Unknown,
            doubtful: false,
        }
    }
}

/// Adds a transmission to the later ones of a unit. Gives back the one that is kept no longer, the oldest, and the one
/// after it; but the first that passed stays.
fn add(
    resent: &mut Vec<Transmission>,
    first_seen: bool,
    transmission: Transmission,
) -> Option<(Transmission, Transmission)> {
    resent.push(transmission);
    if resent.len() < KEPT {
        return None;
    }
    let oldest = usize::from(!first_seen && resent[0].seen());
    Some((resent.remove(oldest), resent[oldest]))
}

/// A unit that has left the board, with every transmission of it.
#[derive(Clone, Debug)]
pub struct History {
    pub left: u64,
    pub right: u64,
    pub sacked_ns: i64,
    pub discarded: bool,
    pub dsacks: u8,
    /// Oldest first; there is one at least.
    pub copies: Vec<Transmission>,
}

impl History {
    pub fn first(&self) -> &Transmission {
        &self.copies[0]
    }

    pub fn last(&self) -> &Transmission {
        &self.copies[self.copies.len() - 1]
    }

    pub fn is_resent(&self) -> bool {
        self.copies.len() > 1
    }

    /// Some transmission of it passed the capture point.
    pub fn seen(&self) -> bool {
        self.copies.iter().any(Transmission::seen)
    }
}

/// What the searches of a flow may cost: a window has at most a million units, and a packet may ask for all of them. A
/// search that finds little saves for one that has to look at all; whoever asks for all every time gets `EARNED`.
#[derive(Clone, Debug)]
struct Credit(usize);

impl Default for Credit {
    fn default() -> Self {
        Self(CREDIT)
    }
}

impl Credit {
    /// How many of `units` may be looked at.
    fn spend(&mut self, units: usize) -> usize {
        self.0 += EARNED;
        let granted = units.min(self.0);
        self.0 -= granted;
        granted
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

impl Disturbed {
    /// Another cut that moves `moved` units leaves few enough pieces, and costs no more than there is to spend.
    fn may_cut(&mut self, units: &Ring<Unit>, moved: usize) -> bool {
        if self.pieces + self.cuts >= PIECES {
            // some may have been acknowledged since they were counted; that is looked at now and then
            self.cuts += 1;
            if self.cuts < PIECES / 2 {
                return false;
            }
            (self.cuts, self.pieces) = (0, units.iter().filter(|u| u.flags & PIECE != 0).count());
            if self.pieces >= PIECES {
                return false;
            }
        }
        let may = self.credit.spend(moved) == moved;
        self.cuts += usize::from(may);
        may
    }
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

    /// Index of the unit that holds the byte `at`; `units.len()` if none does.
    pub fn find(&self, at: u64) -> usize {
        let n = self.beyond(at);
        if self.units.get(n).is_some_and(|u| u.left <= at) {
            n
        } else {
            self.units.len()
        }
    }

    /// Index of the first unit that begins at or after `at`.
    pub fn at_or_after(&self, at: u64) -> usize {
        first_not(&self.units, at, |u| u.left < at)
    }

    /// Index of the first unit that ends beyond `at`.
    pub fn beyond(&self, at: u64) -> usize {
        first_not(&self.units, at, |u| u.right() <= at)
    }

    /// Number of units below `at`, which is made an edge. An ACK covers few: looking from the front finds them soonest.
    #[inline]
    pub fn below(&mut self, at: u64) -> usize {
        let near = self.units.iter().take(NEAR).take_while(|u| u.right() <= at).count();
        if near == self.units.len() || near < NEAR && self.units[near].left >= at {
            return near;
        }
        self.split(at);
        self.at_or_after(at)
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

    /// How many of `units` a search may look at.
    pub fn searchable(&mut self, units: usize) -> usize {
        self.disturbed().credit.spend(units)
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

    /// How many of `units` may be sent again at once.
    pub fn resendable(&mut self, units: usize) -> usize {
        self.searchable(units * RESEND) / RESEND
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

/// Index of the first unit that is not `below`, which has `at` near one of its edges. Halving a board reads from all over
/// it: where units are of about one size, where to begin can be reckoned.
#[inline]
fn first_not(units: &Ring<Unit>, at: u64, below: impl Fn(&Unit) -> bool) -> usize {
    let count = units.len();
    // the first is asked for more than any other
    if count == 0 || !below(&units[0]) {
        return 0;
    }
    if count < NEAR {
        return units.partition_point(below);
    }
    let (start, end) = (units[0].left, units[count - 1].right());
    let share = at.clamp(start, end) - start;
    // where that is too much for a number the guess is bad, and only takes longer
    let guess = (share.saturating_mul(count as u64) / (end - start).max(1)) as usize;
    // all before `low` are below, none from `high` on; steps double until they enclose the unit
    let (mut low, mut high, mut step) = (guess.min(count), guess.min(count), 1);
    while low > 0 && !below(&units[low - 1]) {
        high = low - 1;
        low = high.saturating_sub(step);
        step *= 2;
    }
    while high < count && below(&units[high]) {
        low = high + 1;
        high = (low + step).min(count);
        step *= 2;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if below(&units[middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(left: u64, right: u64) -> Unit {
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

    fn edges(board: &Scoreboard) -> Vec<(u64, u64)> {
        board.units.iter().map(|u| (u.left, u.right())).collect()
    }

    #[test]
    fn a_large_board_is_looked_through_as_a_small_one() {
        let (mut board, mut at, mut state) = (Scoreboard::default(), 1000, 1u64);
        for n in 0..4000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // now long units, now short ones
            let length = 1 + (state >> 40) % if n / 100 % 2 == 0 { 10 } else { 60_000 };
            *board.units.push_back() = unit(at, at + length);
            at += length;
        }
        let edges: Vec<u64> = board
            .units
            .iter()
            .flat_map(|u| [u.left - 1, u.left, u.left + 1])
            .collect();
        for at in edges.into_iter().chain([0, 999, at - 1, at, at + 1, u64::MAX]) {
            assert_eq!(board.units.partition_point(|u| u.left < at), board.at_or_after(at));
            assert_eq!(board.units.partition_point(|u| u.right() <= at), board.beyond(at));
        }
    }

    #[test]
    fn a_unit_stays_whole_where_there_are_too_many_pieces() {
        let mut board = Scoreboard::default();
        board
            .units
            .extend([unit(0, 20_000), unit(20_000, 20_010), unit(20_010, 20_020)]);
        for n in 0..10_000 {
            board.cut(2 * n, 2 * n + 1);
        }
        assert_eq!(board.units.len(), 3 + PIECES);
        let whole = board.units.len() - 2;
        // what lies inside, and what is touched, of a range that is no longer cut out
        assert_eq!(board.cut(20_005, 20_020), whole + 1..whole + 2);
        assert_eq!(board.touch(20_005, 20_015), whole..whole + 2);
        assert!(board.cut(20_001, 20_009).is_empty());
        // room again, but the pieces are counted now and then only
        board.units.skip_front(whole);
        let cut = |board: &mut Scoreboard| {
            board.cut(20_005, 20_010);
            board.units.len() == 3
        };
        assert!(!cut(&mut board));
        assert!((0..PIECES).any(|_| cut(&mut board)));
        assert_eq!(edges(&board), [(20_000, 20_005), (20_005, 20_010), (20_010, 20_020)]);
    }

    #[test]
    fn what_searches_save_pays_for_a_long_one() {
        let mut credit = Credit::default();
        assert_eq!(credit.spend(CREDIT), CREDIT);
        assert_eq!(credit.spend(usize::MAX), 2 * EARNED);
        assert_eq!(credit.spend(usize::MAX), EARNED);
        for _ in 0..9 {
            assert_eq!(credit.spend(24), 24);
        }
        assert_eq!(credit.spend(usize::MAX), 9 * (EARNED - 24) + EARNED);
    }

    #[test]
    fn a_cut_that_moves_too_much_is_not_made() {
        let mut board = Scoreboard::default();
        board.units.extend((0..4000).map(|n| unit(10 * n, 10 * n + 10)));
        board.searchable(CREDIT + EARNED);
        board.cut(20_005, 20_010);
        assert_eq!(board.units.len(), 4000);
        // near an end it costs nothing
        assert_eq!(board.cut(105, 110), 11..12);
        assert_eq!(board.units.len(), 4001);
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

    #[test]
    fn the_newest_transmissions_are_kept_and_the_first_that_passed() {
        for (first_seen, second_seen, gone) in [
            (true, true, [(1, 2), (2, 3)]),
            (false, false, [(1, 2), (3, 4)]),
            (false, true, [(2, 3), (3, 4)]),
        ] {
            let mut board = Scoreboard::default();
            *board.units.push_back() = Unit {
                frame: u64::from(first_seen),
                ..unit(0, 10)
            };
            let mut given = Vec::new();
            for order in 1..=(KEPT + 1) as u64 {
                let transmission = Transmission {
                    order,
                    frame: u64::from(order > 1 || second_seen),
                    ..board.units[0].first()
                };
                given.extend(board.resend(0, transmission).map(|(old, next)| (old.order, next.order)));
            }
            assert_eq!(given, gone);
            assert_eq!(board.copies(9).count(), KEPT);
            assert_eq!(board.last(&board.units[0]).order, KEPT as u64 + 1);
        }
    }

    #[test]
    fn segments_of_a_range_round_up() {
        assert_eq!([0, 1, 1448, 1449, 4344].map(|b| segments(b, 1448)), [0, 1, 1, 2, 3]);
    }
}
