//! Where on a board a byte lies.

use super::{Scoreboard, Unit};
use crate::flow::ring::Ring;

/// Units at the front that are looked at one by one.
pub(super) const NEAR: usize = 8;

impl Scoreboard {
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
}

/// Index of the first unit that is not `below`, which has `at` near one of its edges. Halving a board reads from all over
/// it: where units are of about one size, where to begin can be reckoned.
#[inline]
pub(super) fn first_not(units: &Ring<Unit>, at: u64, below: impl Fn(&Unit) -> bool) -> usize {
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
    use crate::flow::scoreboard::tests::unit;

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
}
