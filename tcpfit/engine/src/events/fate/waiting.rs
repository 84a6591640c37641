//! What waits until the evidence is in: units in the order in which they left the board.

use super::Context;
use crate::flow::scoreboard::{History, Transmission, KEPT};
use crate::rows::{Reason, Vantage};
use std::collections::vec_deque::{IterMut, VecDeque};

/// Round trips to wait at the sender, after the last resend: for the answers to needless copies, and for the DSACK, or
/// without SACK the duplicate ACK, that a late original brings.
const WAIT_ANSWER: f64 = 2.0;
const WAIT_LATE: f64 = 8.0;
/// How long a path holds a packet back at most for it still to be known when it comes.
const WAIT_LATE_NS: i64 = 1_000_000_000;
/// Times in seconds and in nanoseconds are the same to within this.
const ROUNDING_NS: i64 = 1_000;
/// Units that one ACK is held against, where it may concern any.
const NEWEST: usize = 256;
/// Units that wait at most; beyond, the oldest is settled with what is known.
const WAITING: usize = 8192;

/// A delivered (or abandoned) unit that waits for the rest of the evidence.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) unit: History,
    /// Index of the transmission that delivered it, if known.
    pub(super) filler: Option<usize>,
    pub(super) filler_reason: Reason,
    pub(super) ack_frame: Option<u64>,
    pub(super) delivered_ns: i64,
    /// When the original was answered that came after its resend; 0 if that is not known.
    pub(super) answered_ns: i64,
    /// When it was last sent, or delivered: what more there is to know of it comes after that.
    pub(super) since_ns: i64,
    pub(super) dsacks: u32,
    pub(super) delivered: bool,
    /// It was the lowest that its ACK covered.
    pub(super) head: bool,
    /// Of its needless copies, a bit for each that should have been answered and was not.
    pub(super) unanswered: u64,
    /// Stretch of resends it belongs to; it waits until that is over.
    pub(super) stretch: u32,
}

const _: () = assert!(KEPT <= u64::BITS as usize, "`unanswered` has a bit for each copy");

impl Waiting {
    /// The transmission that delivered it, and what says so. An answer that was too early for a resend when it came was not
    /// if a round trip since was as short.
    pub(super) fn filled_by(&self, least_s: f64) -> (Option<usize>, Reason) {
        let (Some(mut filler), Reason::TooEarly) = (self.filler, self.filler_reason) else {
            return (self.filler, self.filler_reason);
        };
        let least_ns = (least_s * 1e9) as i64;
        for (k, t) in self.unit.copies.iter().enumerate().skip(filler + 1) {
            if t.seen() && self.delivered_ns - t.time_ns + ROUNDING_NS < least_ns {
                return (Some(filler), Reason::TooEarly);
            }
            let may_have_come = t.seen() && self.unanswered >> k & 1 == 0;
            filler = if may_have_come { k } else { filler };
        }
        (Some(filler), Reason::Resent)
    }

    /// The transmission before the one that seemed to deliver it had arrived, late; the frame and the time of its answer, if they
    /// are known.
    pub(super) fn came_late(&mut self, answer: Option<(u64, i64)>) {
        self.filler = self.filler.map(|filler| filler.saturating_sub(1));
        self.filler_reason = Reason::Answered;
        if let Some((frame, time_ns)) = answer {
            (self.ack_frame, self.answered_ns) = (Some(frame), time_ns);
        }
    }

    /// Of the copies beyond the one that delivered it, how many were not answered when they should have been.
    pub(super) fn unanswered_beyond(&self) -> u32 {
        self.filler
            .map_or(0, |filler| (self.unanswered >> filler >> 1).count_ones())
    }

    /// The copies beyond the one that delivered it of which nothing says so.
    pub(super) fn answered_beyond(&self) -> impl Iterator<Item = &Transmission> {
        let first = self.filler.map_or(self.unit.copies.len(), |filler| filler + 1);
        let copies = self.unit.copies.iter().enumerate().skip(first);
        copies.filter(|&(k, _)| self.unanswered >> k & 1 == 0).map(|(_, t)| t)
    }

    /// The resend `order` was never made, unless it passed: those behind it move up.
    pub(super) fn forget(&mut self, order: u64) {
        let guessed = |t: &Transmission| t.order == order && !t.seen();
        let Some(k) = self.unit.copies.iter().skip(1).position(guessed).map(|n| n + 1) else {
            return;
        };
        self.unit.copies.remove(k);
        self.filler = self.filler.map(|filler| filler - usize::from(k < filler));
        let before = (1 << k) - 1;
        self.unanswered = self.unanswered & before | self.unanswered >> 1 & !before;
    }
}

#[derive(Clone, Debug)]
pub(super) struct Queue {
    units: VecDeque<Waiting>,
    /// Of the units that wait: how many came before it, and when it was first sent; only those that no later one undercuts.
    oldest: VecDeque<(u64, i64)>,
    /// Units that no longer wait.
    decided: u64,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self {
            units: VecDeque::new(),
            oldest: VecDeque::new(),
            decided: 0,
        }
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        let first_ns = waiting.unit.first().time_ns;
        while self.oldest.back().is_some_and(|&(_, time_ns)| time_ns >= first_ns) {
            self.oldest.pop_back();
        }
        self.oldest
            .push_back((self.decided + self.units.len() as u64, first_ns));
        self.units.push_back(waiting);
    }

    /// The unit that has waited longest.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.units.pop_front()?;
        if self.oldest.front().is_some_and(|&(n, _)| n == self.decided) {
            self.oldest.pop_front();
        }
        self.decided += 1;
        Some(waiting)
    }

    /// The same, to look at.
    #[inline]
    pub(super) fn front(&self) -> Option<&Waiting> {
        self.units.front()
    }

    /// The unit that was delivered last.
    pub(super) fn back_mut(&mut self) -> Option<&mut Waiting> {
        self.units.back_mut()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    #[inline]
    pub(super) fn overflows(&self) -> bool {
        self.units.len() > WAITING
    }

    /// When the first transmission of all that wait was sent.
    #[inline]
    pub(super) fn oldest_ns(&self) -> Option<i64> {
        self.oldest.front().map(|&(_, time_ns)| time_ns)
    }

    pub(super) fn iter_mut(&mut self) -> IterMut<'_, Waiting> {
        self.units.iter_mut()
    }

    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Waiting> {
        self.units.iter().rev()
    }

    /// Those that were delivered last, as many as one ACK is held against.
    pub(super) fn newest(&mut self) -> IterMut<'_, Waiting> {
        self.units.range_mut(self.units.len().saturating_sub(NEWEST)..)
    }

    pub(super) fn iter_mut_from(&mut self, place: usize) -> IterMut<'_, Waiting> {
        self.units.range_mut(place..)
    }

    /// The place from which on all that were delivered are of this stretch.
    pub(super) fn place_of(&self, stretch: u32) -> usize {
        let before = |w: &Waiting| w.delivered && w.stretch != stretch;
        self.units.iter().rposition(before).map_or(0, |n| n + 1)
    }
}

impl Context {
    /// How long a unit waits.
    #[inline]
    pub(super) fn wait_ns(&self) -> i64 {
        let wait_ns = match self.vantage {
            Vantage::Sender => late_ns(self.srtt_s),
            _ => (self.srtt_s * 4e9).max(WAIT_LATE_NS as f64),
        };
        wait_ns as i64
    }
}

/// How long after a resend its original may come, at the sender, for it still to be known.
#[inline]
pub(crate) fn late_ns(srtt_s: f64) -> f64 {
    let round_trips_ns = |count: f64| srtt_s * count * 1e9;
    round_trips_ns(WAIT_LATE).min(round_trips_ns(WAIT_ANSWER).max(WAIT_LATE_NS as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_a_wrong_guess_moves_up() {
        let copy = |order, frame| Transmission {
            frame,
            ..Transmission::unseen(0, order)
        };
        let mut waiting = Waiting {
            unit: History {
                left: 0,
                right: 1,
                sacked_ns: 0,
                discarded: false,
                dsacks: 0,
                // the first two never passed
                copies: vec![copy(5, 0), copy(2, 0), copy(3, 3), copy(4, 4)],
            },
            filler: Some(2),
            filler_reason: Reason::Resent,
            ack_frame: None,
            delivered_ns: 0,
            answered_ns: 0,
            since_ns: 0,
            dsacks: 0,
            delivered: true,
            head: false,
            unanswered: 0b1001,
            stretch: 1,
        };
        // what passed stays, and so does the first transmission
        waiting.forget(3);
        waiting.forget(5);
        assert_eq!((4, Some(2)), (waiting.unit.copies.len(), waiting.filler));
        waiting.forget(2);
        let orders: Vec<u64> = waiting.unit.copies.iter().map(|t| t.order).collect();
        assert_eq!((vec![5, 3, 4], Some(1)), (orders, waiting.filler));
        assert_eq!(0b101, waiting.unanswered);
        // beyond the one that delivered it is the last; where none was seen to, none is beyond it
        assert_eq!(1, waiting.unanswered_beyond());
        waiting.filler = None;
        assert_eq!(0, waiting.unanswered_beyond());
    }
}
