//! What SACK blocks have covered: a block grows with every ACK, and only what is new in it has to be looked at.

use std::collections::BTreeMap;

/// Ranges that are known by heart: beside timestamps an option has room for three blocks, of which one grows.
const OTHERS: usize = 2;

/// Ranges above the left edge that SACK blocks have covered.
#[derive(Clone, Debug)]
pub struct Covered {
    /// Left to right; no two touch. Where `growing` ends is not kept up to date.
    ranges: BTreeMap<u64, u64>,
    /// The range that grew last, and where the one above it begins.
    growing: (u64, u64),
    above_growing: u64,
    /// Other ranges, which the last blocks lay in that brought nothing new: they are reported again and again (RFC 2018, 4).
    others: [(u64, u64); OTHERS],
    fresh: Vec<(u64, u64)>,
}

impl Default for Covered {
    fn default() -> Self {
        Self {
            ranges: BTreeMap::new(),
            growing: Self::NONE,
            above_growing: 0,
            others: [Self::NONE; OTHERS],
            fresh: Vec::new(),
        }
    }
}

impl Covered {
    /// No range.
    const NONE: (u64, u64) = (u64::MAX, u64::MAX);

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds [left, right) if that does no more than to lengthen the range that grew last, or repeats another, which most
    /// blocks do. Gives the part, which may be empty, that no block had covered.
    #[inline]
    pub fn grow(&mut self, left: u64, right: u64) -> Option<(u64, u64)> {
        let (from, to) = self.growing;
        if from <= left && left <= to && right < self.above_growing {
            self.growing.1 = to.max(right);
            return Some((to, to.max(right)));
        }
        let repeats = self.others.iter().any(|other| other.0 <= left && right <= other.1);
        repeats.then_some((right, right))
    }

    /// Adds [left, right) and gives the parts that no block had covered.
    #[inline(never)]
    pub fn add(&mut self, left: u64, right: u64) -> &[(u64, u64)] {
        self.fresh.clear();
        let (mut from, mut to, mut at) = (left, right, left);
        if let Some(range) = self.ranges.range(..=left).next_back() {
            let (l, r) = self.current(range);
            if r >= right {
                self.others.rotate_right(1);
                self.others[0] = (l, r);
                return &self.fresh;
            }
            if r >= left {
                (from, at) = (l, r);
            }
        }
        self.write_growing();
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
        self.growing = (from, to);
        self.above_growing = self.ranges.range(to..).next().map_or(u64::MAX, |(&l, _)| l);
        &self.fresh
    }

    /// A range as it is now.
    fn current(&self, (&left, &right): (&u64, &u64)) -> (u64, u64) {
        let grown = left == self.growing.0;
        (left, if grown { self.growing.1 } else { right })
    }

    /// Brings the range that grew last up to date. None grows until one is added.
    fn write_growing(&mut self) {
        let (left, right) = std::mem::replace(&mut self.growing, Self::NONE);
        if let Some(written) = self.ranges.get_mut(&left) {
            *written = right;
        }
    }

    /// Ranges above `at`, the one that holds it included.
    pub fn above(&self, at: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let before = self.ranges.range(..at).next_back();
        let holds = before.map(|range| self.current(range)).filter(|range| range.1 > at);
        let others = self.ranges.range(at..).map(|range| self.current(range));
        holds.into_iter().chain(others)
    }

    /// Where the highest range begins.
    pub fn highest(&self) -> Option<u64> {
        self.ranges.last_key_value().map(|(&left, _)| left)
    }

    /// Forgets what lies above `nxt`.
    pub fn retract(&mut self, nxt: u64) {
        self.write_growing();
        self.others = [Self::NONE; OTHERS];
        while let Some(mut last) = self.ranges.last_entry().filter(|last| *last.get() > nxt) {
            if *last.key() < nxt {
                *last.get_mut() = nxt;
                return;
            }
            last.remove();
        }
    }

    /// Forgets what lies below the left edge.
    pub fn below(&mut self, una: u64) {
        while let Some(range) = self.ranges.first_key_value() {
            let (left, right) = self.current(range);
            if right > una {
                return;
            }
            self.ranges.pop_first();
            if left == self.growing.0 {
                self.growing = Self::NONE;
            }
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
        let (mut last, mut una, mut grown) = (0, 0, 0);
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (any, length) = (state >> 40 & 0xff, 1 + (state >> 50 & 15));
            // every second block takes up where one before it ended
            let left = if state >> 35 & 1 == 0 { any } else { last }.max(una).min(255);
            let right = (left + length).min(256);
            last = if state >> 36 & 1 == 0 { right } else { last };
            let new = (left..right).filter(|&at| !bytes[at as usize]);
            let fresh: Vec<u64> = match covered.grow(left, right) {
                Some((l, r)) => {
                    grown += usize::from(l < r);
                    (l..r).collect()
                }
                None => covered.add(left, right).iter().flat_map(|&(l, r)| l..r).collect(),
            };
            assert_eq!(new.collect::<Vec<u64>>(), fresh);
            bytes[left as usize..right as usize].fill(true);
            match state >> 57 {
                0 => (covered, bytes, una) = (Covered::default(), [false; 256], 0),
                1..8 => {
                    una = any.min(una + 8).max(una);
                    covered.below(una);
                }
                8..10 => {
                    covered.retract(any);
                    bytes[any as usize..].fill(false);
                }
                _ => {}
            }
            let above = covered.above(any).flat_map(|(l, r)| l.max(any)..r);
            let expected = (any.max(una)..256).filter(|&at| bytes[at as usize]);
            assert!(expected.eq(above.filter(|&at| at >= una)));
        }
        assert!(grown > 1000, "{grown}");
    }

    #[test]
    fn blocks_that_are_reported_again_are_known_by_heart() {
        let mut covered = Covered::default();
        for left in [10, 30, 50] {
            covered.add(left, left + 10);
        }
        // the first ACK looks for them
        assert_eq!((covered.grow(30, 40), covered.grow(10, 20)), (None, None));
        assert_eq!((covered.add(30, 40).len(), covered.add(10, 20).len()), (0, 0));
        let mut acks = (61..70).map(|right| [(50, right), (30, 40), (10, 20)].map(|(l, r)| covered.grow(l, r)));
        assert!(acks.all(|blocks| blocks.iter().all(Option::is_some)));
    }

    #[test]
    fn covered_ranges_above_a_byte() {
        let mut covered = Covered::default();
        for left in [10, 30, 50] {
            covered.add(left, left + 10);
        }
        let above = |covered: &Covered, at: u64| covered.above(at).collect::<Vec<_>>();
        assert_eq!(above(&covered, 10), [(10, 20), (30, 40), (50, 60)]);
        assert_eq!(above(&covered, 19), [(10, 20), (30, 40), (50, 60)]);
        assert_eq!(above(&covered, 20), [(30, 40), (50, 60)]);
        assert_eq!(above(&covered, 60), []);
        covered.retract(35);
        assert_eq!(above(&covered, 0), [(10, 20), (30, 35)]);
        covered.retract(30);
        assert_eq!(above(&covered, 0), [(10, 20)]);
    }
}
