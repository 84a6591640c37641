//! What the rules ask about a segment that is sent again: what had come before it, and how long ago.

use super::DUPTHRESH;
use crate::flow::ack_delay::Passage;
use crate::flow::scoreboard::Transmission;
use crate::flow::sender::{Sender, Sent, LOOKED_AT};
use crate::rows::Vantage;
use std::ops::Range;

/// Hosts that answer ACKs sooner, on average, do not pace what they send.
const AT_ONCE_NS: i64 = 1_000_000;

/// What the rules ask about a resend.
pub(super) struct Question {
    pub(super) time_ns: i64,
    pub(super) head: bool,
    pub(super) tail: bool,
    /// Transmissions of the unit so far, and the last of them.
    pub(super) copies: usize,
    pub(super) last: Transmission,
    pub(super) sacked: bool,
    /// Segments SACKed above it, counted up to `DUPTHRESH`.
    pub(super) sacked_above: u32,
    pub(super) since_ack_s: f64,
    pub(super) since_sent_s: f64,
    /// Nothing came and nothing was sent.
    pub(super) silence_s: f64,
    pub(super) since_advance_s: f64,
    /// Since the timer was last started: an advance of the left edge or the last transmission of the head.
    pub(super) timer_s: f64,
    /// An ACK had just come.
    pub(super) clocked: bool,
}

impl Sender {
    /// What a path that stood still held was sent earlier than it passes.
    pub fn passes(&mut self, passage: Passage) {
        if passage.held_ns > 0 {
            self.episodes.passage = passage;
        } else if self.episodes.passage.held_ns > 0 {
            self.episodes.passage = Passage::NONE;
        }
    }

    /// The units that a resend repeats.
    pub fn repeated(&mut self, sent: &Sent) -> Range<usize> {
        self.board.touch(sent.left.max(self.una), sent.right)
    }

    pub(super) fn question(&mut self, sent: &Sent) -> Option<Question> {
        let units = self.repeated(sent);
        self.question_of(sent, units)
    }

    /// What the rules ask about a resend of `range`.
    pub(super) fn question_of(&self, sent: &Sent, range: Range<usize>) -> Option<Question> {
        // what had arrived of it comes along, and is not what it was sent for
        let sacked = |n: &usize| self.board.units.get(*n).is_some_and(|unit| unit.sacked_ns != 0);
        let n = range
            .clone()
            .take(LOOKED_AT)
            .find(|n| !sacked(n))
            .unwrap_or(range.start);
        let unit = self.board.units.get(n).filter(|_| !range.is_empty())?;
        // what passed after it was sent was held as well, and sent before it
        let Passage { held_ns, quiet_ns, .. } = self.episodes.passage;
        let since_ns = |from: i64| match sent.time_ns - held_ns - from {
            ..0 if held_ns > 0 => quiet_ns,
            since_ns => since_ns,
        };
        let seconds = |from: i64| since_ns(from) as f64 / 1e9;
        let head = unit.left == self.una;
        let resent = self.board.resends(unit);
        let last = resent.last().copied().unwrap_or_else(|| unit.first());
        let (since_ack_s, since_sent_s) = (seconds(self.last_ack_ns), seconds(self.last_sent_ns));
        let sacked_above = if self.sacked > 0 {
            self.sacked_from(range.end)
        } else {
            0
        };
        Some(Question {
            time_ns: sent.time_ns,
            head,
            tail: sent.right >= self.nxt,
            copies: 1 + resent.len(),
            sacked: unit.sacked_ns != 0,
            sacked_above,
            since_ack_s,
            since_sent_s,
            silence_s: since_ack_s.min(since_sent_s),
            since_advance_s: seconds(self.last_advance_ns),
            timer_s: seconds(self.timer_start_ns()),
            clocked: since_ns(self.last_ack_ns) <= self.clock_tolerance_ns(),
            last,
        })
    }

    /// The same of a resend of what the sender is thought to know to have arrived.
    pub(super) fn question_of_arrived(&self, sent: &Sent) -> Question {
        let since_sent_s = (sent.time_ns - self.last_sent_ns) as f64 / 1e9;
        Question {
            time_ns: sent.time_ns,
            head: true,
            tail: sent.right >= self.nxt,
            copies: 2,
            last: Transmission::unseen(self.last_sent_ns, self.order),
            sacked: false,
            sacked_above: 0,
            since_ack_s: since_sent_s,
            since_sent_s,
            silence_s: since_sent_s,
            since_advance_s: since_sent_s,
            timer_s: since_sent_s,
            clocked: false,
        }
    }

    /// Segments SACKed from the n-th unit on, counted up to `DUPTHRESH`. Each covered range has one at least.
    fn sacked_from(&self, n: usize) -> u32 {
        let (Some(covered), Some(unit)) = (&self.covered, self.board.units.get(n)) else {
            return 0;
        };
        let mut count = 0;
        for (left, right) in covered.above(unit.left).take(DUPTHRESH as usize) {
            let from = self.board.at_or_after(left.max(unit.left));
            let units = self
                .board
                .units
                .range(from..self.board.units.len())
                .take_while(|u| u.left < right);
            let sacked = units.filter(|u| u.sacked_ns != 0).take(DUPTHRESH as usize);
            count += sacked.map(|u| u.segments(self.smss)).sum::<u32>();
            if count >= DUPTHRESH {
                break;
            }
        }
        count
    }

    /// New data were sent since the last ACK; elsewhere than at the sender, those that echo it pass with it.
    pub(super) fn has_sent_new(&self) -> bool {
        let newest_ns = self.board.units.back().map_or(i64::MIN, |u| u.time_ns);
        newest_ns > self.last_ack_ns || newest_ns == self.last_ack_ns && self.vantage != Vantage::Sender
    }

    /// An ACK came just before: a paced sender acts on it a little later, while a timer would have to run to its end. Away
    /// from the sender only timestamps tell when that was. A host known to act at once does so here.
    pub(super) fn is_just_told(&self, q: &Question) -> bool {
        let dated = self.vantage == Vantage::Sender || self.timestamps;
        let at_once = self.vantage == Vantage::Sender && (1..AT_ONCE_NS).contains(&self.response_ns);
        dated && q.since_ack_s < self.rtt.srtt_s / 2.0 && (!at_once || self.is_prompt(q.since_ack_s))
    }
}
