//! Reordering: segments that arrived after a later-sent one (RFC 4737, 3), and the events that delay several together.
//!
//! Late segments belong to one event when they were sent next to each other (at most three apart: what one hold-up on
//! the path catches) or come within one round trip.
//!
//! At the sender the acknowledgements tell. A segment that was sent once is late if a later one was SACKed by an earlier
//! ACK (RFC 2018; what Linux calls SACK reordering), or, without SACK, if duplicate ACKs end with nothing sent again
//! (RFC 5681, 2). One that was sent again waits until the evidence of its resend is in: if the original had arrived
//! (`fate`), it had been late. Seen so are the depth and the time; not seen are segments that were overtaken between two
//! ACKs, and without SACK those behind the first of a hole that were not sent again.
//!
//! Where other options leave room for a SACK block or two, an ACK that answers several segments does not name all that came,
//! and what it left out is not named by the next ones (RFC 2018, 4, has each block in three). What was not named may have
//! come in order: no segment of such a flow is called late at the sender, each of them may have been.

use crate::flow::rare::Blank;
use crate::flow::scoreboard::{segments, Unit};
use crate::flow::sender::{Ack, Sender};
use crate::rows::{EventRow, Kind, Phase, Reason, Sink, Vantage};

/// Transmissions between two late ones of the same event at most.
const NEIGHBOURS: u64 = 3;
/// Below this confidence it is counted as ambiguous.
const AMBIGUOUS: f64 = 0.75;
/// Late segments at the sender that wait at most for the fate of earlier ones.
const PENDING: usize = 4096;

/// A segment that came late.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    pub time_ns: i64,
    pub order: u64,
    pub left: u64,
    pub right: u64,
    pub frame: u64,
    /// Packet that showed its absence.
    pub cause_frame: Option<u64>,
    pub segments: u32,
    /// Segments that arrived between its absence and itself (RFC 4737's extent).
    pub extent: u32,
    /// Number of its first segment among those that arrived, from 1, copies left out; `None` where arrivals are not seen.
    pub arrival: Option<u64>,
    pub late_s: f64,
    pub reason: Reason,
    pub confidence: f64,
}

#[derive(Clone, Debug)]
pub struct Reordering {
    flow: u32,
    open: Option<Box<Open>>,
    /// At the sender: late segments that were sent once, until the fate of those sent before them is known.
    pending: Vec<Seen>,
    /// When the first of these was sent, or some time before.
    pending_ns: i64,
    /// At the sender, without SACK: late segments that may as well have been in order, until an ACK jumps over the data that
    /// had brought the duplicate ACKs.
    unexplained: Vec<Seen>,
    /// At the sender: segments that were sent again and came after later ones, whichever copy it was.
    suspects: Vec<Seen>,
    /// At the sender: the last transmission of those that were sent once and came late.
    pub last_late: u64,
    pub events: u64,
    pub segments: u64,
    /// Of these, those that may have been in order or sent again; and of these, those whose first copy then was lost.
    pub doubtful: u64,
    pub doubtful_losses: u64,
    /// Segments that ACKs with room for few SACK blocks named after later ones.
    pub unnamed: u64,
}

/// A late segment as the sender's capture shows it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    sent_ns: i64,
    late: Late,
    rtt_s: f64,
    flight: f64,
}

#[derive(Clone, Debug)]
struct Open {
    first: Late,
    last: Late,
    depth: u32,
}

impl Blank for Reordering {
    const BLANK: &'static Self = &Self::of(0);

    fn new(flow: u32) -> Self {
        Self::of(flow)
    }
}

impl Reordering {
    const fn of(flow: u32) -> Self {
        Self {
            flow,
            open: None,
            pending: Vec::new(),
            pending_ns: i64::MAX,
            unexplained: Vec::new(),
            suspects: Vec::new(),
            last_late: 0,
            events: 0,
            segments: 0,
            doubtful: 0,
            doubtful_losses: 0,
            unnamed: 0,
        }
    }

    /// Nothing waits for evidence.
    pub fn is_settled(&self) -> bool {
        self.pending.is_empty()
    }

    /// Some late segment sent before `known_ns` waits.
    #[inline]
    pub fn is_due(&self, known_ns: i64) -> bool {
        self.pending_ns < self.up_to(known_ns)
    }

    /// They are given out in the order of sending, so none that was sent after one that may still become late.
    fn up_to(&self, known_ns: i64) -> i64 {
        known_ns.min(self.unexplained.first().map_or(i64::MAX, |seen| seen.sent_ns))
    }

    /// Some duplicate ACKs were brought by data that came out of order.
    pub fn explain(&mut self) {
        for seen in std::mem::take(&mut self.unexplained) {
            self.wait(seen);
        }
    }

    /// None of them was.
    pub fn forget_unexplained(&mut self) {
        self.unexplained.clear();
    }

    fn wait(&mut self, seen: Seen) {
        self.pending_ns = self.pending_ns.min(seen.sent_ns);
        self.pending.push(seen);
    }

    pub fn on_late(&mut self, late: Late, rtt_s: f64, flight: f64, sink: &mut dyn Sink) {
        self.segments += u64::from(late.segments);
        if late.confidence < AMBIGUOUS {
            self.doubtful += u64::from(late.segments);
            let copied = late.reason == Reason::DupAcks;
            self.doubtful_losses += if copied { 0 } else { u64::from(late.segments) };
        }
        sink.event(EventRow {
            flow: self.flow,
            time_ns: late.time_ns,
            kind: Kind::Reordering,
            reason: late.reason,
            left: crate::flow::sequence::offset(late.left),
            right: crate::flow::sequence::offset(late.right),
            frame: late.frame.into(),
            cause_frame: late.cause_frame.into(),
            segments: late.extent,
            flight,
            phase: Phase::Open,
            confidence: late.confidence,
            value: late.late_s.into(),
            arrival: late.arrival.into(),
            ..EventRow::NONE
        });
        match &mut self.open {
            Some(event)
                if late.order.abs_diff(event.last.order) <= NEIGHBOURS
                    || ((late.time_ns - event.last.time_ns) as f64) < rtt_s * 1e9 =>
            {
                event.depth += late.segments;
                event.last = late;
            }
            _ => {
                self.close(sink);
                self.events += 1;
                self.open = Some(Box::new(Open {
                    first: late,
                    last: late,
                    depth: late.segments,
                }));
            }
        }
    }

    pub fn close(&mut self, sink: &mut dyn Sink) {
        let Some(event) = self.open.take() else { return };
        sink.event(EventRow {
            flow: self.flow,
            time_ns: event.first.time_ns - (event.first.late_s * 1e9) as i64,
            kind: Kind::ReorderEvent,
            reason: event.first.reason,
            left: crate::flow::sequence::offset(event.first.left),
            right: crate::flow::sequence::offset(event.last.right.max(event.first.right)),
            frame: event.first.frame.into(),
            cause_frame: event.first.cause_frame.into(),
            segments: event.depth,
            flight: 0.0,
            phase: Phase::Open,
            confidence: event.first.confidence.min(event.last.confidence),
            value: event.last.late_s.into(),
            ..EventRow::NONE
        });
    }
}

/// ACKs tell of segments that were overtaken behind the capture point.
pub fn tells_by_acks(vantage: Vantage) -> bool {
    matches!(vantage, Vantage::Sender | Vantage::Middle)
}

impl Sender {
    /// A unit was delivered by this ACK while later data were known to have come: up to `heard` by SACK, otherwise by
    /// duplicate ACKs.
    pub fn on_overtaken(&mut self, unit: &Unit, ack: &Ack, heard: u64) {
        if !tells_by_acks(self.vantage) || !unit.first_seen() || ack.ack < self.una || self.came_overtaken(unit) {
            return;
        }
        let again = self.board.resends(unit).first().map(|resend| resend.cause);
        let listed = match again {
            None => self.reordering.pending.len() + self.reordering.unexplained.len(),
            Some(_) => self.reordering.suspects.len(),
        };
        if listed >= PENDING {
            return;
        }
        let found = if self.sack {
            self.sacked_above(unit, ack, heard)
                .map(|(n, ns)| (n, ns, Reason::SackOrder, 0.9))
        } else {
            self.duplicates_above(unit, again, ack)
                .map(|(n, ns, confidence)| (n, ns, Reason::DupAcks, confidence))
        };
        let Some((extent, since_ns, reason, confidence)) = found else {
            return;
        };
        let seen = Seen {
            sent_ns: unit.time_ns,
            late: Late {
                time_ns: ack.time_ns,
                order: unit.order,
                left: unit.left,
                right: unit.right(),
                frame: unit.frame,
                cause_frame: Some(ack.frame),
                segments: unit.segments(self.smss),
                extent,
                arrival: None,
                late_s: (ack.time_ns - since_ns) as f64 / 1e9,
                reason,
                confidence,
            },
            rtt_s: self.rtt.srtt_s,
            flight: self.flight(),
        };
        if again.is_none() && reason == Reason::SackOrder {
            self.reordering.last_late = self.reordering.last_late.max(unit.order);
        }
        match again {
            None if confidence < AMBIGUOUS => self.reordering.unexplained.push(seen),
            None => self.reordering.wait(seen),
            Some(_) => self.reordering.suspects.push(seen),
        }
    }

    /// On the path: the unit had been overtaken when it came to the capture point.
    fn came_overtaken(&mut self, unit: &Unit) -> bool {
        if self.vantage == Vantage::Sender {
            return false;
        }
        let first = self.board.at_or_after(unit.right());
        let many = self.board.searchable(self.board.units.len().saturating_sub(first));
        let mut above = self.board.units.range(first..first + many);
        above.any(|later| later.first_seen() && later.frame < unit.frame)
    }

    /// Segments above the unit that earlier ACKs had SACKed, and since when.
    fn sacked_above(&mut self, unit: &Unit, ack: &Ack, heard: u64) -> Option<(u32, i64)> {
        let (from, to) = (self.board.at_or_after(unit.right()), self.board.at_or_after(heard));
        let many = self.board.searchable(to.saturating_sub(from));
        let (mut count, mut since_ns) = (0, i64::MAX);
        self.board.units.each(from..from + many, |u| {
            if !u.is_resent() && u.sacked_ns != 0 && u.sacked_ns < ack.time_ns {
                count += u.segments(self.smss);
                since_ns = since_ns.min(u.sacked_ns);
            }
        });
        (count > 0).then_some((count, since_ns))
    }

    /// Without SACK: duplicate ACKs that data above the unit had brought, since when, and how sure that is. Only the
    /// lowest unit is known not to have come when these were sent, and only data sent after it can have brought them. `again`
    /// is why it was first sent again, if it was.
    fn duplicates_above(&self, unit: &Unit, again: Option<Reason>, ack: &Ack) -> Option<(u32, i64, f64)> {
        let head = unit.left == self.una;
        let above = self.duplicate_acks.max(self.unexplained_acks);
        if above == 0 || unit.time_ns + self.rtt.floor().ns() > self.duplicates.held_ns {
            return None;
        }
        let Some(again) = again else {
            let original = match self.phase {
                Phase::Open => self.fates.answers.under_way().is_none(),
                Phase::Recovery => true,
                Phase::Loss => false,
            };
            // what filled the hole acknowledges all that had come above it; a hole of several is filled step by step
            let covered = segments(ack.ack - unit.left, self.smss);
            let confidence = if covered > above { 0.8 } else { 0.5 };
            return (head && original).then_some((above, self.duplicates.first_ns, confidence));
        };
        let hole = match again {
            Reason::FastDupthresh | Reason::EarlyRetransmit | Reason::PartialAck => true,
            _ => head && self.duplicate_acks > 0,
        };
        hole.then_some((above, self.duplicates.first_ns, 0.8))
    }

    /// Gives out the late segments sent before `known_ns`, in the order in which they were sent.
    #[inline(never)]
    pub fn settle_reordering(&mut self, known_ns: i64, sink: &mut dyn Sink) {
        let known_ns = self.reordering.up_to(known_ns);
        for original in self.fates.originals.drain(..) {
            let suspects = &mut self.reordering.suspects;
            let same = |s: &Seen| (s.late.order, s.late.left) == (original.order, original.left);
            let Some(n) = suspects.iter().position(same) else {
                continue;
            };
            let mut seen = suspects.swap_remove(n);
            // an ACK that jumps says that a copy was needless, not which: too little to call the first one late; where ACKs
            // were lost, nothing was
            let late = |&reason: &Reason| !matches!(reason, Reason::AckJump | Reason::AcksLost);
            if let Some(reason) = original.arrived.filter(late) {
                seen.late.reason = reason;
                seen.late.cause_frame = original.ack_frame;
                let later_ns = original.answered_ns - seen.late.time_ns;
                if later_ns > 0 {
                    seen.late.time_ns = original.answered_ns;
                    seen.late.late_s += later_ns as f64 / 1e9;
                }
                seen.late.confidence = seen.late.confidence.min(original.confidence);
                self.reordering.wait(seen);
            }
        }
        if self.reordering.pending.is_empty() {
            return;
        }
        let mut pending = std::mem::take(&mut self.reordering.pending);
        pending.sort_by_key(|seen| (seen.late.order, seen.late.left));
        let settled = pending.partition_point(|seen| seen.sent_ns < known_ns);
        for seen in pending.drain(..settled) {
            if self.few_blocks {
                self.reordering.unnamed += u64::from(seen.late.segments);
            } else {
                self.reordering.on_late(seen.late, seen.rtt_s, seen.flight, sink);
            }
        }
        self.reordering.pending_ns = pending.iter().map(|seen| seen.sent_ns).min().unwrap_or(i64::MAX);
        self.reordering.pending = pending;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{FlowRow, RoundRow};

    struct Depths(Vec<u32>);

    impl Sink for Depths {
        fn flow(&mut self, _: FlowRow) {}

        fn event(&mut self, row: EventRow) {
            if row.kind == Kind::ReorderEvent {
                self.0.push(row.segments);
            }
        }

        fn round(&mut self, _: RoundRow) {}
    }

    /// Depths of the events that late segments of these orders and times make, a round trip being 1 s.
    fn depths(late: &[(u64, i64)]) -> Vec<u32> {
        let (mut reordering, mut depths) = (Reordering::of(0), Depths(Vec::new()));
        for &(order, time_ns) in late {
            let late = Late {
                time_ns,
                order,
                left: 100 * order,
                right: 100 * order + 100,
                frame: order,
                cause_frame: None,
                segments: 1,
                extent: 1,
                arrival: None,
                late_s: 0.0,
                reason: Reason::IpId,
                confidence: 0.98,
            };
            reordering.on_late(late, 1.0, 0.0, &mut depths);
        }
        reordering.close(&mut depths);
        depths.0
    }

    #[test]
    fn neighbours_and_those_of_one_round_trip_are_one_event() {
        let second = 1_000_000_000;
        assert_eq!(depths(&[(10, 0), (13, second), (10, 2 * second)]), [3]);
        assert_eq!(depths(&[(10, 0), (14, second)]), [1, 1]);
        assert_eq!(depths(&[(10, 0), (99, second - 1), (9, 2 * second)]), [2, 1]);
    }
}
