//! The receiver's window is closed: from the ACK that says so to the one that opens it (RFC 9293, 3.8.6.1).
//!
//! ```text
//!  open --ACK with window 0--> closed --ACK with a larger one, or the flow's end--> open, given out
//! ```
//! An ACK that a newer one has overtaken says nothing of the window (RFC 9293, 3.10.7.4: SND.WL2); its caller leaves it out.
//! Of two with the same number nothing tells which is newer.

use crate::flow::rare::Blank;
use crate::rows::{EventRow, Kind, Reason, Sink};
use crate::segment::Segment;

/// Periods kept of a flow that has no number yet.
const KEPT: usize = 16;

#[derive(Clone, Debug)]
pub struct ZeroWindows {
    /// The period under way.
    closed: Option<EventRow>,
    /// Last ACK that said so.
    last_ns: i64,
    /// When it opened again, as seen at the capture point.
    pub opened_ns: i64,
    pub zero_count: u64,
    /// Periods that have ended, until they are given out.
    ended: Vec<EventRow>,
}

impl Blank for ZeroWindows {
    const BLANK: &'static Self = &Self {
        closed: None,
        last_ns: i64::MIN / 2,
        opened_ns: i64::MIN / 2,
        zero_count: 0,
        ended: Vec::new(),
    };

    fn new(_flow: u32) -> Self {
        Self::BLANK.clone()
    }
}

impl ZeroWindows {
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Takes an ACK; `state` has the flow's bytes and flight as it finds them.
    pub fn on_ack(&mut self, segment: &Segment, state: EventRow) {
        if segment.window > 0 {
            if self.is_closed() {
                self.opened_ns = segment.time_ns;
                self.end(segment.time_ns, Some(segment.frame));
            }
            return;
        }
        self.last_ns = segment.time_ns;
        if !self.is_closed() {
            self.zero_count += 1;
            self.closed = Some(EventRow {
                time_ns: segment.time_ns,
                kind: Kind::ZeroWindow,
                reason: Reason::Advertised,
                frame: segment.frame.into(),
                segments: 0,
                confidence: 1.0,
                ..state
            });
        }
    }

    fn end(&mut self, time_ns: i64, frame: Option<u64>) {
        if let Some(row) = self.closed.take().filter(|_| self.ended.len() < KEPT) {
            self.ended.push(EventRow {
                cause_frame: frame.into(),
                value: ((time_ns - row.time_ns) as f64 / 1e9).into(),
                ..row
            });
        }
    }

    /// Gives out the periods that have ended, once the flow has a number.
    pub fn give_out(&mut self, flow: u32, sink: &mut dyn Sink) {
        for row in self.ended.drain(..) {
            sink.event(EventRow { flow, ..row });
        }
    }

    /// The flow is over; its last packet was at `last_ns`.
    pub fn finish(&mut self, flow: u32, last_ns: i64, sink: &mut dyn Sink) {
        self.end(last_ns.max(self.last_ns), None);
        self.give_out(flow, sink);
    }
}
