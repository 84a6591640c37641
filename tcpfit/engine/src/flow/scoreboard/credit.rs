//! What searching a board, cutting its units and sending them again may cost.

use super::unit::PIECE;
use super::{Disturbed, Scoreboard, Unit};
use crate::flow::ring::Ring;

/// Units that a flow's searches may look at, or move, before they are held to what they earn.
const CREDIT: usize = 1 << 22;
/// Units that each search earns, and may look at in any case.
pub const EARNED: usize = 1 << 10;
/// To write down that a unit was sent again costs as much as to look at so many.
const RESEND: usize = 16;
/// Pieces of cut units at most; beyond, a unit stays whole.
const PIECES: usize = 4096;

/// What the searches of a flow may cost: a window has at most a million units, and a packet may ask for all of them. A
/// search that finds little saves for one that has to look at all; whoever asks for all every time gets `EARNED`.
#[derive(Clone, Debug)]
pub(super) struct Credit(usize);

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

impl Disturbed {
    /// Another cut that moves `moved` units leaves few enough pieces, and costs no more than there is to spend.
    pub(super) fn may_cut(&mut self, units: &Ring<Unit>, moved: usize) -> bool {
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
    /// How many of `units` a search may look at.
    pub fn searchable(&mut self, units: usize) -> usize {
        self.disturbed().credit.spend(units)
    }

    /// How many of `units` may be sent again at once.
    pub fn resendable(&mut self, units: usize) -> usize {
        self.searchable(units * RESEND) / RESEND
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::scoreboard::tests::{edges, unit};

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
}
