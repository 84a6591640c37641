//! Ranges that were sent, with their transmissions: as a board holds them, and as they leave it.

use crate::rows::Reason;

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
    /// One that did not pass the capture point.
    pub fn unseen(time_ns: i64, order: u64) -> Self {
        Self {
            time_ns,
            order,
            frame: 0,
            tsval: 0,
            flight: 0.0,
            ip_id: 0,
            cause: Reason::Unknown,
            doubtful: false,
        }
    }

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
    pub(super) flags: u8,
}

/// It was sent again.
pub(super) const AGAIN: u8 = 1;
/// A copy came too late for the receiver to take it, and was answered.
const DISCARDED: u8 = 2;
/// Its left edge is a cut.
pub(super) const PIECE: u8 = 4;

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
pub(super) fn add(
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

/// ceil(bytes / smss): segments of a range.
pub fn segments(bytes: u64, smss: u32) -> u32 {
    if bytes <= u64::from(smss) {
        u32::from(bytes > 0)
    } else {
        bytes.div_ceil(u64::from(smss.max(1))).min(u64::from(u32::MAX)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::scoreboard::tests::unit;
    use crate::flow::scoreboard::Scoreboard;

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
