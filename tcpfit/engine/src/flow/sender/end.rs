//! What was outstanding when the capture, or what it has of the flow, ended.
//!
//! A sender that recovers sends one hole after the other again, without SACK one a round trip (RFC 6582). What it did not come
//! to was lost as well, if what was sent after it has arrived.

use super::Sender;
use crate::events::cause::DUPTHRESH;
use crate::rows::Vantage;

/// Round trips after which a segment that arrived has been answered.
const ANSWER_ROUND_TRIPS: f64 = 2.0;
/// Confidence of a loss that SACK blocks show, and of one that the count of duplicate ACKs shows, somewhere in the window.
const SACKED_ABOVE: f64 = 0.8;
const NOT_HELD: f64 = 0.5;

/// Without SACK, what of the segments outstanding the receiver does not hold, as duplicate ACKs say.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotHeld {
    /// How many of those sent until then, which have had the time to be answered.
    segments: u32,
    latest_ns: i64,
    /// All duplicate ACKs are known to be for segments that are held: no copy can have been answered.
    exact: bool,
}

impl Sender {
    /// Takes everything off the board: what was sent again waits for its verdict, and what must have been lost is. Of segments
    /// that are not held the lowest are taken, as a hole is below what is held.
    pub(super) fn end_board(&mut self, not_held: Option<NotHeld>) {
        if self.board.units.is_empty() {
            return;
        }
        let not_held = not_held.unwrap_or(NotHeld {
            segments: 0,
            latest_ns: i64::MIN,
            exact: false,
        });
        let (mut left, mut sacked) = (not_held.segments, self.sacked);
        // where segments come late a hole may be filled after the end, and where few blocks fit it may be none
        let in_order = self.reordering.segments == 0 && !self.few_blocks;
        let sender = self.vantage == Vantage::Sender;
        let context = self.context();
        while let Some(unit) = self.board.units.pop_front() {
            let count = unit.segments(self.smss);
            if unit.sacked_ns != 0 {
                sacked = sacked.saturating_sub(count);
            }
            let missing = unit.time_ns <= not_held.latest_ns && left > 0;
            if missing {
                left = left.saturating_sub(count);
            }
            if !unit.is_plain() {
                let held = not_held.exact && unit.time_ns <= not_held.latest_ns && !missing && unit.first_seen();
                let history = self.board.history(unit);
                if held {
                    self.fates.on_held(history);
                } else {
                    self.fates.on_undelivered(history);
                }
            } else if sender && in_order && unit.sacked_ns == 0 && sacked >= DUPTHRESH {
                // RFC 6675, 4: IsLost
                self.fates.not_resent(&unit, SACKED_ABOVE, &context);
            } else if missing {
                self.fates.not_resent(&unit, NOT_HELD, &context);
            }
        }
    }

    /// Without SACK: segments outstanding above the hole for which duplicate ACKs can have come.
    pub(super) fn may_be_held(&self) -> u32 {
        if self.unexplained_acks == 0 {
            return 0;
        }
        let latest_ns = self.last_ack_ns - self.rtt.floor().ns();
        let units = self.board.units.iter().skip(1);
        let answered = units.take_while(|unit| unit.time_ns <= latest_ns);
        answered.map(|unit| unit.segments(self.smss)).sum()
    }

    /// At the sender, in a recovery of which no ACK is missing.
    pub(super) fn not_held(&self) -> Option<NotHeld> {
        let recovers = !self.sack && self.resends_under_way() && self.fates.answers.all_are_heard();
        if self.vantage != Vantage::Sender || !recovers {
            return None;
        }
        let end_ns = self.last_ack_ns.max(self.last_sent_ns);
        let latest_ns = end_ns - (self.rtt.srtt_s * ANSWER_ROUND_TRIPS * 1e9) as i64;
        let units = self.board.units.iter().take_while(|unit| unit.time_ns <= latest_ns);
        let sent: u32 = units.map(|unit| unit.segments(self.smss)).sum();
        Some(NotHeld {
            segments: sent.saturating_sub(self.unexplained_acks),
            latest_ns,
            exact: self.fates.answers.only_originals_are_answered(),
        })
    }
}
