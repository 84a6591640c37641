//! Probes of new data: a host that has more to send does not repeat the last segment, it sends the next, though the window has no
//! room for it (RFC 8985, 7.3).

use super::label::PROBE_DELAYED_ACK_S;
use super::timer::TIMER_SHARE;
use crate::flow::scoreboard::Unit;
use crate::flow::sender::{Sender, Sent};
use crate::rows::{Phase, Sink};

/// What comes later than the timer by this share and this much, a tick of a slow clock, is the application's.
const LATE: f64 = 1.5;
const LATE_S: f64 = 0.01;

impl Sender {
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
        // a single segment's answer may be a delayed ACK (RFC 8985, 7.2)
        let delayed_s = if units.len() == 2 { PROBE_DELAYED_ACK_S } else { 0.0 };
        let least_s = (2.0 * self.rtt.srtt_s + delayed_s).min(self.rtt.rto_s());
        let due = timer_s >= TIMER_SHARE * least_s && timer_s <= LATE * least_s + LATE_S;
        due.then_some((last.frame, timer_s))
    }
}
