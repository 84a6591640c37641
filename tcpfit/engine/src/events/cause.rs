//! Why a segment was sent again, and the episodes of loss recovery that follow from it.
//!
//! ```text
//!            third duplicate ACK, SACK or RACK                 timer
//!  open -------------------------------------> recovery ----------------> loss
//!    ^ <---- left edge reaches `recover`, or the     |                     |  timer: back-off + 1
//!    |       original turns out to have arrived      |                     |
//!    +-----------------------------------------------+---------------------+
//! ```
//! RFC 5681 (3.2), RFC 6582 (3.2) and RFC 6675 (5) for recovery, RFC 6298 (5) for the timer, RFC 8985 for RACK and the
//! tail loss probe, RFC 5827 for early retransmit. Senders differ, so each rule asks what the capture shows (how long the
//! silence was, whether an ACK had just come, whether something sent later had arrived) and none asks who the sender is.
//!
//! At a capture point away from the sender the moment at which an ACK reached it is an estimate; then "an ACK had just
//! come" is taken loosely. A resend that nobody could see (lost before the capture point, no usable IP identification)
//! has no cause here.

use crate::flow::scoreboard::segments;
use crate::flow::sender::{Sender, Sent, LOOKED_AT};
use crate::flow::sequence::offset;
use crate::rows::{EventRow, Kind, Phase, Reason, Sink, Vantage};
use std::ops::Range;

mod episode;
mod label;
mod lost_resend;
mod probe;
mod question;
mod timer;

pub use episode::{Episodes, WAITED_OUT};
use question::Question;
pub use timer::SHORTEST_TIMER_S;

/// Without ACKs: least resends take about a round trip, and a silence this many times as long is the timer's.
const ONE_WAY_ROUND_TRIPS: f64 = 1.5;
/// The same where no resend has shown one: few paths are longer.
const UNKNOWN_ROUND_TRIP_S: f64 = 0.6;
/// Resends under way that are looked at: an episode has few when it begins, or is taken back.
const RESENDS: usize = 64;
/// Duplicate ACKs, or SACKed segments above, that trigger a fast retransmit (RFC 5681, 3.2).
pub const DUPTHRESH: u32 = 3;

impl Sender {
    /// Labels a resend of those units, moves the episode on and gives out its events.
    pub fn on_resend(&mut self, sent: &Sent, units: Range<usize>, sink: &mut dyn Sink) -> Reason {
        let asked = self.question_of(sent, units);
        if self.one_way {
            return self.on_resend_one_way(sent, asked, sink);
        }
        let Some(question) = asked else {
            if self.begun_before && self.totals.acks == 0 {
                // data older than the capture, of which no ACK has been seen
                self.resend_event(sent, None, Reason::Unknown, sink);
                return Reason::Unknown;
            }
            let unheard = self.timer_unheard(sent);
            let reason = if let Some(question) = &unheard {
                self.on_timeout(sent, question, sink);
                Reason::Rto
            } else if self.phase == Phase::Open && self.episodes.answered_ns == sent.time_ns {
                // what followed the duplicate ACKs that asked for it is thought to have come too, a little too soon
                self.begin_recovery(sent, &self.question_of_arrived(sent), Reason::FastDupthresh, sink);
                self.count_in_recovery(sent);
                Reason::FastDupthresh
            } else {
                Reason::Unneeded
            };
            self.resend_event(sent, unheard.as_ref(), reason, sink);
            self.fates.unneeded(sent, self.smss, self.rtt.floor().ns(), sink);
            return reason;
        };
        let reason = match self.label(&question) {
            // duplicate ACKs of what was under way may still come when the timer runs out
            Reason::FastDupthresh | Reason::PartialAck if sent.by_timer => Reason::Rto,
            reason => reason,
        };
        match reason {
            Reason::Rto => self.on_timeout(sent, &question, sink),
            Reason::Tlp => self.on_probe(sent, question.last.frame, question.timer_s, question.head, sink),
            Reason::FastDupthresh | Reason::FastRack | Reason::EarlyRetransmit => {
                self.begin_recovery(sent, &question, reason, sink);
            }
            // RACK sees that what followed the timer was lost again (RFC 8985, 6.2): that loss begins a recovery
            Reason::LostRetransmission if self.phase == Phase::Loss && self.is_passed(&question) => {
                self.begin_recovery(sent, &question, Reason::FastRack, sink);
            }
            Reason::PartialAck if self.phase == Phase::Open => self.episodes.gone_on += 1,
            Reason::PartialAck if self.duplicate_acks == 0 => self.episodes.by_partial += 1,
            _ => {}
        }
        if self.sack && self.phase != Phase::Open {
            self.episodes.unreported += segments(sent.right - sent.left, self.smss);
        }
        self.count_in_recovery(sent);
        self.resend_event(sent, Some(&question), reason, sink);
        reason
    }

    /// The recovery under way, if one is, has sent that again.
    fn count_in_recovery(&mut self, sent: &Sent) {
        let count = segments(sent.right - sent.left, self.smss);
        if let Some(recovery) = self.episodes.opened.as_mut().filter(|row| row.kind == Kind::Recovery) {
            recovery.segments += count;
        }
    }

    /// Without ACKs nothing shows why data were sent again, but for the timer: it ends a silence longer than any answer
    /// takes, and then all that is outstanding may be sent again (RFC 5681, 3.1). What ends with the newest data may
    /// be a probe as well (RFC 8985, 7).
    fn on_resend_one_way(&mut self, sent: &Sent, asked: Option<Question>, sink: &mut dyn Sink) -> Reason {
        let Some(q) = asked.map(|q| Question {
            timer_s: q.since_sent_s,
            ..q
        }) else {
            self.resend_event(sent, None, Reason::Unknown, sink);
            return Reason::Unknown;
        };
        let answer_s = if self.least_resend_s.is_finite() {
            self.least_resend_s
        } else {
            UNKNOWN_ROUND_TRIP_S
        };
        let silence = q.since_sent_s >= (ONE_WAY_ROUND_TRIPS * answer_s).max(SHORTEST_TIMER_S);
        let reason = if silence && !(q.tail && q.copies == 1) {
            self.on_timeout(sent, &q, sink);
            Reason::Rto
        } else if self.phase == Phase::Loss && q.copies == 1 {
            Reason::RtoRecovery
        } else {
            Reason::Unknown
        };
        if q.copies == 1 {
            let took_s = (sent.time_ns - q.last.time_ns) as f64 / 1e9;
            self.least_resend_s = self.least_resend_s.min(took_s);
        }
        self.resend_event(sent, Some(&q), reason, sink);
        reason
    }

    /// Sent now, no rule would explain it: nothing had asked for it, and no timer had run out.
    pub fn nothing_asked_for(&mut self, sent: &Sent) -> bool {
        self.question(sent).is_some_and(|q| self.label(&q) == Reason::Unknown)
    }

    /// The same, or none but a timer whose silence a queue has taken: an ACK that is thought to be under way may have asked for it.
    pub fn is_asked_for_by_more(&mut self, sent: &Sent) -> bool {
        self.question(sent).is_some_and(|q| match self.label(&q) {
            Reason::Unknown => true,
            Reason::Rto => q.clocked && self.is_hidden_timer(&q),
            _ => false,
        })
    }

    /// Sent now, it would be a further hole, of which the sender could not know, or that it could not come to, before the answer
    /// to what filled the first.
    pub fn is_further_unasked(&mut self, sent: &Sent) -> bool {
        let Some(q) = self.question(sent) else { return false };
        let first = match self.label(&q) {
            // without SACK the next hole is known at that (RFC 6582, 3.2)
            Reason::Recovery if !self.sack => [Reason::FastDupthresh, Reason::EarlyRetransmit],
            // the timer lets one segment go (RFC 5681, 3.1)
            Reason::RtoRecovery => [Reason::Rto; 2],
            _ => return false,
        };
        self.unheard_head(&q).is_some_and(|reason| first.contains(&reason))
    }

    /// Without timestamps: what made the sender send it was no ACK and no timer. It knew that these data had arrived, even if what
    /// passes now has come through the longest queue.
    pub fn knows_arrived(&self, sent: &Sent) -> bool {
        if sent.right > self.una || self.timestamps || self.timer_unheard(sent).is_some() {
            return false;
        }
        let queue_ns = self.drift.longest_queue_ns(sent.time_ns);
        let told_ns = self.fates.get().and_then(|fates| fates.delivered_ns(sent.left));
        queue_ns
            .zip(told_ns)
            .is_some_and(|(queue_ns, told_ns)| told_ns + queue_ns <= sent.time_ns)
    }

    /// Sent now, it would be a further hole of the recovery under way.
    pub fn is_further_hole(&mut self, sent: &Sent) -> bool {
        self.question(sent).is_some_and(|q| self.label(&q) == Reason::Recovery)
    }

    fn begin_recovery(&mut self, sent: &Sent, q: &Question, reason: Reason, sink: &mut dyn Sink) {
        self.close_episode(sent.time_ns, false, sink);
        let row = self.recovery(sent, q, reason);
        self.open_episode(Phase::Recovery, sent.tsval, row);
        self.episodes.recoveries += 1;
        if reason == Reason::FastDupthresh && sent.frame != 0 {
            self.episodes.asked_by = self.duplicate_acks;
            self.episodes.unseen = false;
        }
        self.episodes.begun_by_rack += u32::from(reason == Reason::FastRack);
    }

    fn recovery(&self, sent: &Sent, q: &Question, reason: Reason) -> EventRow {
        EventRow {
            flow: self.flow,
            time_ns: sent.time_ns,
            kind: Kind::Recovery,
            reason,
            left: offset(sent.left),
            frame: frame(sent.frame).into(),
            cause_frame: frame(q.last.frame).into(),
            flight: self.flight_at_loss(),
            phase: Phase::Recovery,
            confidence: 0.9,
            ..EventRow::NONE
        }
    }

    /// Flight at which the sender learns of the loss: when the first duplicate ACK came. With SACK, which tells the pipe (RFC
    /// 6675), no more than when the last three came: a host that takes the path to reorder waits for more of them.
    fn flight_at_loss(&self) -> f64 {
        if self.duplicate_acks == 0 {
            return self.flight();
        }
        let first = self.duplicates.undisturbed_flight;
        let undisturbed = match self.vantage {
            Vantage::Sender => first,
            _ if self.timestamps => self.flight_since_first_duplicate().max(first),
            // when an ACK came is not known well enough
            _ => return first,
        };
        if self.sack {
            undisturbed.min(self.flight() + f64::from(DUPTHRESH))
        } else {
            undisturbed
        }
    }

    /// Away from the sender the first duplicate ACK and the one before it may seem to come together. What new data have brought
    /// the flight to since then: each further duplicate ACK lets go as much as it takes away (RFC 3042).
    fn flight_since_first_duplicate(&self) -> f64 {
        let since_ns = self.duplicates.first_ns.max(self.last_advance_ns);
        let units = self.board.units.iter().rev().take(LOOKED_AT);
        units
            .take_while(|unit| unit.time_ns >= since_ns)
            .map(|unit| f64::from(unit.flight) + f64::from(unit.segments(self.smss)))
            .fold(0.0, f64::max)
    }

    fn resend_event(&self, sent: &Sent, q: Option<&Question>, reason: Reason, sink: &mut dyn Sink) {
        if sent.frame == 0 {
            return;
        }
        sink.event(EventRow {
            flow: self.flow,
            time_ns: sent.time_ns,
            kind: Kind::Retransmission,
            reason,
            left: offset(sent.left),
            right: offset(sent.right),
            frame: frame(sent.frame).into(),
            cause_frame: q.and_then(|q| frame(q.last.frame)).into(),
            segments: segments(sent.right - sent.left, self.smss),
            flight: self.flight(),
            phase: self.phase,
            confidence: if reason == Reason::Unknown { 0.0 } else { 0.9 },
            value: q.map(|q| (sent.time_ns - q.last.time_ns) as f64 / 1e9).into(),
            ..EventRow::NONE
        });
    }
}

fn frame(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

#[cfg(test)]
mod tests;
