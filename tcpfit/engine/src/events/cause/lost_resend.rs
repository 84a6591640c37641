//! Resends that were lost before another passed, where no identification shows them: those that the sender must have made.

use super::DUPTHRESH;
use crate::flow::sender::{Sender, Sent};
use crate::flow::sequence::offset;
use crate::rows::{Phase, Reason, Vantage};

/// What was asked for and comes so many round trips later is sent for another reason.
const LATE_ROUND_TRIPS: f64 = 0.75;
/// What RACK's timer has let pass, the next SACK asks for a round trip later.
const LATE_FOR_RACK_ROUND_TRIPS: f64 = 1.25;
/// Duplicate ACKs that tell whether the window was reduced, and new data for each of them if it was not.
const UNREDUCED_ACKS: u32 = 10;
const UNREDUCED: f64 = 0.9;
/// A host that has begun so many recoveries by RACK uses it.
const RACK_RECOVERIES: u32 = 2;

impl Sender {
    /// Nothing tells how often data were sent of which no copy has passed. When a resend of them was sent that the sender
    /// must have made before this one: with the third duplicate ACK (RFC 5681, 3.2; RFC 6675, 5), or by RACK with the first
    /// SACK above (RFC 8985, 6.2), with the partial ACK that made them the head (RFC 6582, 3.2), or before what it has sent
    /// since it knew them to be lost, new data or what was sent after them (RFC 6675, 4, NextSeg). It was lost if what
    /// passes now is only the timer's, or comes most of a round trip later.
    pub fn lost_resend_ns(&mut self, sent: &Sent) -> Option<i64> {
        let q = self.question(sent)?;
        if q.copies > 1 || q.last.seen() || self.vantage == Vantage::Sender {
            return None;
        }
        // those of what an episode had outstanding may answer its copies, and begin no other (RFC 6582, 3.2)
        let waits = self.waits_longer();
        let answers = self.una <= self.episodes.recover;
        let told = self.duplicate_acks >= DUPTHRESH && !waits && !answers && !self.goes_on_unreduced();
        let srtt_s = self.rtt.srtt_s;
        let is_later = |from_ns: i64, round_trips: f64| sent.time_ns - from_ns >= (round_trips * srtt_s * 1e9) as i64;
        let is_late = |from_ns: i64| is_later(from_ns, LATE_ROUND_TRIPS);
        let label = self.label(&q);
        if self.phase == Phase::Open && q.head && self.uses_rack() && !waits {
            let asked_ns = self.sacked_above_ns(sent, 1);
            if let Some(asked_ns) = asked_ns.filter(|&ns| is_later(ns, LATE_FOR_RACK_ROUND_TRIPS)) {
                return Some(asked_ns);
            }
        }
        let asked_ns = match (self.phase, label) {
            (Phase::Open, Reason::Rto) if q.head && told => self.duplicates.third_ns,
            (Phase::Open, Reason::FastDupthresh) if q.head && told && self.timestamps => self.duplicates.third_ns,
            (Phase::Recovery, Reason::Rto) if q.head && !self.sack => self.last_advance_ns,
            // Reno would have sent it again with the third duplicate ACK since
            (Phase::Recovery, Reason::FastDupthresh)
                if q.head && self.timestamps && is_late(self.duplicates.third_ns) =>
            {
                self.last_advance_ns
            }
            (Phase::Recovery, Reason::Recovery | Reason::Rto) if self.sack && self.timestamps && !waits => {
                self.passed_over_ns(sent)?
            }
            _ => return None,
        };
        if !is_late(asked_ns) {
            return None;
        }
        if (self.phase, label) == (Phase::Open, Reason::Rto) && !self.sack {
            if self.episodes.unseen {
                // of two in a row both would have been lost: the host waits for more duplicate ACKs than come
                return None;
            }
            self.episodes.unseen = true;
        }
        Some(asked_ns)
    }

    /// Without SACK: each duplicate ACK since the third has let new data go. In a recovery every second one does (RFC 6937, 3, with
    /// half the window; CUBIC's leaves 0.7 of it: RFC 9438, 4.6), or none at first (RFC 5681, 3.2): the host waits for more of them.
    fn goes_on_unreduced(&self) -> bool {
        let more = self.duplicate_acks.saturating_sub(DUPTHRESH);
        if self.sack || !self.timestamps || more < UNREDUCED_ACKS {
            return false;
        }
        let newest = self.board.units.iter().rev().take(more as usize);
        let since = newest.filter(|unit| unit.time_ns > self.duplicates.third_ns).count();
        since as f64 >= UNREDUCED * f64::from(more)
    }

    /// The host resends what RACK finds lost, and RACK waits no longer than is late here: a quarter of a round trip, and for
    /// its timer (RFC 8985, 6.2).
    fn uses_rack(&self) -> bool {
        let seen = self.episodes.get().is_some_and(|e| e.begun_by_rack >= RACK_RECOVERIES);
        seen && self.sack && self.timestamps && self.longest_rack_s() <= (1.0 + LATE_ROUND_TRIPS) * self.rtt.srtt_s
    }

    /// A host that has seen reordering waits for more duplicate ACKs.
    pub fn waits_longer(&self) -> bool {
        let reordering = self.reordering.get().is_some_and(|reordering| reordering.segments > 0);
        reordering || self.episodes.get().is_some_and(|episodes| episodes.taken_back)
    }

    /// When a recovery had known that the data were lost, if it has sent new data since, or again what was sent after them.
    fn passed_over_ns(&mut self, sent: &Sent) -> Option<i64> {
        let segments = if self.uses_rack() { 1 } else { DUPTHRESH as usize };
        let sacked_ns = self.sacked_above_ns(sent, segments)?;
        let opened = self.episodes.opened.as_ref()?;
        let begun_ns = opened.time_ns;
        if opened.left >= offset(sent.right) {
            // the recovery seems to have begun above: what it began with was lost
            return (sacked_ns <= begun_ns).then_some(begun_ns);
        }
        let known_ns = begun_ns.max(sacked_ns);
        let newest_ns = self.board.units.back()?.time_ns.max(self.last_above_ns(sent));
        (newest_ns > known_ns.saturating_add(self.clock_tolerance_ns())).then_some(known_ns)
    }

    /// When the `n`-th unit above was SACKed.
    fn sacked_above_ns(&mut self, sent: &Sent, n: usize) -> Option<i64> {
        let above = self.board.at_or_after(sent.right);
        let many = self.board.searchable(self.board.units.len());
        let mut least = [i64::MAX; DUPTHRESH as usize];
        for unit in self.board.units.range(above.min(many)..many) {
            if unit.sacked_ns != 0 && unit.sacked_ns < least[2] {
                least[2] = unit.sacked_ns;
                least.sort_unstable();
            }
        }
        Some(least[n - 1]).filter(|&ns| ns < i64::MAX)
    }

    /// When something above was last sent again in the recovery under way.
    fn last_above_ns(&mut self, sent: &Sent) -> i64 {
        let above = self.board.at_or_after(sent.right);
        let many = self.board.searchable(self.board.units.len());
        let units = self.board.units.range(above.min(many)..many);
        let again = units.filter(|u| self.has_resent(u)).map(|u| self.board.last(u));
        let passed = again.filter(|t| t.seen()).map(|t| t.time_ns);
        passed.max().unwrap_or(i64::MIN)
    }
}
