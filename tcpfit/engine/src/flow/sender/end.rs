//! What was outstanding when the capture, or what it has of the flow, ended.
//!
//! A sender that recovers sends one hole after the other again, without SACK one a round trip (RFC 6582). What it did not come
//! to was lost as well, if what was sent after it has arrived, and so was a resend that should have been answered by then.

use super::Sender;
use crate::events::cause::DUPTHRESH;
use crate::flow::scoreboard::Unit;
use crate::rows::{Reason, Vantage};

/// What shows a loss, and how surely: SACK blocks, as many as the sender asks for or one with the order of sending; silence; the
/// count of duplicate ACKs.
const SACKED_ABOVE: (Reason, f64) = (Reason::NotResent, 0.8);
const SENT_BEFORE_SACKED: (Reason, f64) = (Reason::NotResent, 0.7);
const UNANSWERED: (Reason, f64) = (Reason::NotResent, 0.5);
const NOT_HELD: (Reason, f64) = (Reason::NotHeld, 0.5);

/// Without SACK, what of the segments outstanding the receiver does not hold, as duplicate ACKs say.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotHeld {
    /// How many, at least and at most, of those sent until then, which have had the time to be answered. They are taken to be
    /// the lowest, as a hole is below what is held.
    least: u32,
    most: u32,
    latest_ns: i64,
}

impl NotHeld {
    const NONE: Self = Self {
        least: 0,
        most: 0,
        latest_ns: i64::MIN,
    };

    /// Whether the next unit, of so many segments, is held or is not, if that is known.
    fn take(&mut self, unit: &Unit, segments: u32) -> Option<bool> {
        if unit.time_ns > self.latest_ns {
            return None;
        }
        let held = match (self.least, self.most) {
            (1.., _) => Some(false),
            (0, 0) => Some(true),
            _ => None,
        };
        self.least = self.least.saturating_sub(segments);
        self.most = self.most.saturating_sub(segments);
        held
    }
}

/// Until when a transmission was sent of which the sender has the answer at the end, if it arrived.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// What is not the next that is waited for, or has something above it, is acknowledged at once (RFC 5681, 4.2).
    at_once_ns: i64,
    /// Whatever it is: a timer would have run out since.
    at_all_ns: i64,
    /// Something that was sent then has arrived.
    passed_ns: i64,
}

impl Due {
    /// A transmission of `sent_ns` that has no answer was lost.
    fn is_past(&self, sent_ns: i64, at_once: bool) -> bool {
        sent_ns < self.passed_ns || sent_ns <= self.at_all_ns || at_once && sent_ns <= self.at_once_ns
    }
}

impl Sender {
    /// Takes everything off the board: what was sent again waits for its verdict, and what must have been lost is.
    pub(super) fn end_board(&mut self, not_held: Option<NotHeld>) {
        if self.board.units.is_empty() {
            return;
        }
        let mut not_held = not_held.unwrap_or(NotHeld::NONE);
        let (due, context) = (self.due(), self.context());
        let loses = self.fates.get().is_some_and(|fates| fates.lost > 0);
        let (mut sacked, mut asked_for) = (self.sacked, self.unexplained_acks > 0);
        while let Some(unit) = self.board.units.pop_front() {
            let segments = unit.segments(self.smss);
            let held = not_held.take(&unit, segments);
            if unit.sacked_ns != 0 {
                sacked = sacked.saturating_sub(segments);
            }
            // without SACK, what duplicate ACKs ask for is the lowest
            let at_once = if self.sack { sacked > 0 } else { asked_for };
            asked_for = false;
            let last_ns = self.board.last(&unit).time_ns;
            let due = due.filter(|_| unit.sacked_ns == 0);
            let lost = due.is_some_and(|due| due.is_past(last_ns, at_once));
            if !unit.is_plain() {
                let history = self.board.history(unit);
                match held {
                    Some(true) if history.first().seen() => self.fates.on_held(history),
                    _ if lost => self.fates.on_unanswered(history),
                    _ => self.fates.on_undelivered(history),
                }
                continue;
            }
            let shown_by = match held {
                Some(false) => NOT_HELD,
                _ if !self.sack || due.is_none() => continue,
                // RFC 6675, 4: IsLost
                _ if sacked >= DUPTHRESH => SACKED_ABOVE,
                _ if !lost || !loses => continue,
                _ if sacked > 0 => SENT_BEFORE_SACKED,
                _ => UNANSWERED,
            };
            self.fates.not_resent(&unit, shown_by, &context);
        }
    }

    /// At the sender, where the path keeps the order: where segments come late, a hole may be filled after the end. Where few
    /// blocks fit into an ACK it may be none, and what a closed window does not take is not lost.
    fn due(&self) -> Option<Due> {
        let in_order = self.reordering.segments == 0 && !self.few_blocks;
        if self.vantage != Vantage::Sender || !in_order || self.may_be_refused() {
            return None;
        }
        let end_ns = self.last_ack_ns.max(self.last_sent_ns);
        let arrived = self
            .board
            .units
            .iter()
            .filter(|unit| unit.sacked_ns != 0 && unit.is_plain());
        Some(Due {
            at_once_ns: end_ns - self.rtt.answer_ns(),
            at_all_ns: end_ns - (self.rtt.rto_s() * 1e9) as i64,
            passed_ns: arrived.map(|unit| unit.time_ns).max().unwrap_or(i64::MIN),
        })
    }

    /// Segments of the units from the `first` on that were sent by then.
    fn sent_by(&self, time_ns: i64, first: usize) -> u32 {
        let units = self.board.units.iter().skip(first);
        let sent = units.take_while(|unit| unit.time_ns <= time_ns);
        sent.map(|unit| unit.segments(self.smss)).sum()
    }

    /// Without SACK: segments outstanding above the hole for which duplicate ACKs can have come.
    pub(super) fn may_be_held(&self) -> u32 {
        if self.unexplained_acks == 0 {
            return 0;
        }
        self.sent_by(self.last_ack_ns - self.rtt.floor().ns(), 1)
    }

    /// At the sender, in a recovery of which no ACK is missing, or before it, when a duplicate ACK has come.
    pub(super) fn not_held(&self) -> Option<NotHeld> {
        let hole = self.resends_under_way() || self.unexplained_acks > 0 && self.reordering.segments == 0;
        if self.sack || self.vantage != Vantage::Sender || !hole {
            return None;
        }
        let answers = &self.fates.get().filter(|fates| fates.answers.all_are_heard())?.answers;
        let latest_ns = self.last_ack_ns.max(self.last_sent_ns) - self.rtt.answer_ns();
        let sent = self.sent_by(latest_ns, 0);
        // where copies may have been answered, nothing is surely held
        let exact = answers.only_originals_are_answered();
        let held = if exact { self.unexplained_acks } else { 0 };
        // the lowest is what they ask for
        let hole = sent.min(1);
        Some(NotHeld {
            least: sent.saturating_sub(self.unexplained_acks).max(hole),
            most: sent.saturating_sub(held).max(hole),
            latest_ns,
        })
    }
}
