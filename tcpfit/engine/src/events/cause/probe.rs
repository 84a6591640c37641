//! Tail loss probes: about two round trips after the last segment a host repeats it, or sends the next where it has more to send,
//! though the window has no room for it (RFC 8985, 7.3).

use super::question::Question;
use super::timer::TIMER_SHARE;
use super::{frame, WAITED_OUT};
use crate::flow::scoreboard::{segments, Unit};
use crate::flow::sender::{Sender, Sent};
use crate::flow::sequence::offset;
use crate::rows::{EventRow, Kind, Phase, Reason, Sink};

/// A probe of a single segment waits this much for a delayed ACK (RFC 8985, 7.2: WCDelAckT), and may come so much later.
const DELAYED_ACK_S: f64 = 0.2;
const MARGIN: f64 = 1.25;
/// New data that come later than the timer by this share and this much, a tick of a slow clock, are the application's.
const LATE: f64 = 1.5;
const LATE_S: f64 = 0.01;
/// A doubled timer is longer than this many undoubled ones.
const DOUBLED: f64 = 1.6;

impl Sender {
    /// A probe, `timer_s` after the frame `tail`, the end of what was outstanding; `doubtful` where something else may have sent it.
    pub(super) fn on_probe(&mut self, sent: &Sent, tail: u64, timer_s: f64, doubtful: bool, sink: &mut dyn Sink) {
        self.episodes.probe_una = self.una;
        self.episodes.probe_ns = sent.time_ns;
        self.episodes.probes += 1;
        self.episodes.probed |= !doubtful;
        self.episodes.probe_s = if doubtful { timer_s } else { 0.0 };
        sink.event(EventRow {
            flow: self.flow,
            time_ns: sent.time_ns,
            kind: Kind::TailLossProbe,
            reason: Reason::Tlp,
            left: offset(sent.left),
            right: offset(sent.right),
            frame: frame(sent.frame).into(),
            cause_frame: frame(tail).into(),
            segments: segments(sent.right - sent.left, self.smss),
            flight: self.flight(),
            phase: self.phase,
            confidence: if doubtful { 0.7 } else { 0.9 },
            value: timer_s.into(),
            ..EventRow::NONE
        });
    }

    /// What the timer sends again now was a lost tail's first segment, and a probe of the last was due long before (RFC 8985, 7.2).
    pub(super) fn has_waited_out(&self, q: &Question) -> bool {
        let quiet = self.phase == Phase::Open && self.sacked == 0 && self.duplicate_acks == 0;
        let tail = self.sack && q.head && q.copies == 1 && self.episodes.probe_una != self.una;
        quiet && tail && self.rtt.srtt_s > 0.0 && q.silence_s >= LATE * self.least_probe_s(q.tail) + LATE_S
    }

    /// What seemed to be a probe was the timer's, which has doubled since (RFC 6298, 5.5): behind a probe it does not.
    pub(super) fn has_doubled(&self, q: &Question) -> bool {
        let probe_s = self.episodes.probe_s;
        let behind = probe_s > 0.0 && self.episodes.probe_una == self.una && q.copies == 2;
        behind && self.phase == Phase::Open && q.timer_s >= DOUBLED * probe_s
    }

    /// The host is known to send none.
    pub(super) fn sends_no_probes(&self) -> bool {
        self.waits_out
            || self
                .episodes
                .get()
                .is_some_and(|episodes| episodes.waited_out >= WAITED_OUT && !episodes.probed)
    }

    /// A probe of a single segment waits for a delayed ACK besides two round trips, but no longer than the timer that it
    /// comes before (RFC 8985, 7.2).
    pub(super) fn longest_probe_s(&self) -> f64 {
        let probe_s = 2.0 * self.rtt.srtt_s + DELAYED_ACK_S;
        MARGIN * probe_s.max(self.rtt.rto_s())
    }

    /// At the sender no ACK had let the newest data go: the application may have written them, or the timer of a probe.
    #[cold]
    #[inline(never)]
    pub fn on_unclocked(&mut self, sink: &mut dyn Sink) {
        let Some(&newest) = self.board.units.back() else {
            return;
        };
        if self.last_ack_ns + (self.rtt.srtt_s * 1e9) as i64 > newest.time_ns {
            return;
        }
        if let Some((frame, timer_s)) = self.probe_of_new(&newest) {
            let sent = Sent {
                frame: newest.frame,
                ..Sent::unseen(newest.left, newest.right(), newest.time_ns)
            };
            self.on_probe(&sent, frame, timer_s, true, sink);
        }
    }

    /// When a probe is due: of a `single` segment the answer may be a delayed ACK (RFC 8985, 7.2).
    fn least_probe_s(&self, single: bool) -> f64 {
        let delayed_s = if single { DELAYED_ACK_S } else { 0.0 };
        (2.0 * self.rtt.srtt_s + delayed_s).min(self.rtt.rto_s())
    }

    /// The newest data are such a probe: the frame that was the last before them, and for how long the timer ran.
    fn probe_of_new(&self, newest: &Unit) -> Option<(u64, f64)> {
        let quiet = self.phase == Phase::Open && self.sacked == 0 && self.duplicate_acks == 0;
        if !self.sack || !quiet || self.rtt.srtt_s <= 0.0 || self.episodes.probe_una == self.una {
            return None;
        }
        let units = &self.board.units;
        let last = units.get(units.len().checked_sub(2)?)?;
        // an application that had no more ended its writing with less than a full segment
        let full = |unit: &Unit| unit.length >= self.smss && unit.length.is_multiple_of(self.smss);
        if last.is_resent() || !full(last) || !full(newest) {
            return None;
        }
        let start_ns = last.time_ns.max(self.last_advance_ns);
        let timer_s = (newest.time_ns - start_ns) as f64 / 1e9;
        let least_s = self.least_probe_s(units.len() == 2);
        let due = timer_s >= TIMER_SHARE * least_s && timer_s <= LATE * least_s + LATE_S;
        due.then_some((last.frame, timer_s))
    }
}
