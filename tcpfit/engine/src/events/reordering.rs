//! Reordering: segments that arrived after a later-sent one (RFC 4737, 3), and the events that delay several together.
//!
//! Late segments belong to one event when they were sent next to each other (at most three apart: what one hold-up on
//! the path catches) or come within one round trip. At the sender nothing of this is seen directly.

use crate::rows::{EventRow, Kind, Phase, Reason, Sink};

/// Transmissions between two late ones of the same event at most.
const NEIGHBOURS: u64 = 3;

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
    pub late_s: f64,
    pub reason: Reason,
    pub confidence: f64,
}

#[derive(Clone, Debug)]
pub struct Reordering {
    flow: u32,
    open: Option<Open>,
    pub events: u64,
    pub segments: u64,
}

#[derive(Clone, Debug)]
struct Open {
    first: Late,
    last: Late,
    depth: u32,
}

impl Reordering {
    pub fn new(flow: u32) -> Self {
        Self {
            flow,
            open: None,
            events: 0,
            segments: 0,
        }
    }

    pub fn on_late(&mut self, late: Late, rtt_s: f64, flight: f64, sink: &mut dyn Sink) {
        self.segments += u64::from(late.segments);
        sink.event(EventRow {
            flow: self.flow,
            time_ns: late.time_ns,
            kind: Kind::Reordering,
            reason: late.reason,
            left: crate::flow::sequence::offset(late.left),
            right: crate::flow::sequence::offset(late.right),
            frame: Some(late.frame),
            cause_frame: late.cause_frame,
            segments: late.extent,
            flight,
            phase: Phase::Open,
            confidence: late.confidence,
            value: Some(late.late_s),
            timeout_follows: None,
            order: None,
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
                self.open = Some(Open {
                    first: late,
                    last: late,
                    depth: late.segments,
                });
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
            frame: Some(event.first.frame),
            cause_frame: event.first.cause_frame,
            segments: event.depth,
            flight: 0.0,
            phase: Phase::Open,
            confidence: event.first.confidence.min(event.last.confidence),
            value: Some(event.last.late_s),
            timeout_follows: None,
            order: None,
        });
    }
}
