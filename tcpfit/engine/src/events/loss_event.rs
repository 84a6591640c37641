//! Loss events: the losses within one round trip of the first lost transmission are one event (RFC 5348, 5.2; with the
//! window of W segments that start with the first lost one, Parvez et al. define the same thing in segments).
//!
//! ```text
//!  none --loss--> event(start, end = start + RTT) --loss sent by end--> event
//!                     |--loss sent after end--> give out, event(new start)
//! ```
//! Losses come in here in sending order, after their fate is settled, with the smoothed round trip from the beginning of the
//! round in which they were sent: by the time that their fate is settled the queue that they overflowed is gone. The rule is kind
//! to errors of a quarter, but where a queue overflows in two rounds one after the other: whether that is one event or two, a
//! hundredth of a round trip decides.

use crate::flow::sequence::offset;
use crate::rows::{EventRow, Kind, Phase, Reason, Sink};

/// A transmission that was lost, ready to be counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    pub time_ns: i64,
    pub order: u64,
    pub left: u64,
    pub right: u64,
    pub frame: Option<u64>,
    pub cause_frame: Option<u64>,
    pub segments: u32,
    pub flight: f64,
    /// The round trip then.
    pub rtt_s: f64,
    pub reason: Reason,
    pub confidence: f64,
    /// The transmission that replaced it was sent by the retransmission timer.
    pub by_timeout: bool,
}

impl Loss {
    pub fn event(&self, flow: u32) -> EventRow {
        EventRow {
            flow,
            time_ns: self.time_ns,
            kind: Kind::Loss,
            reason: self.reason,
            left: offset(self.left),
            right: offset(self.right),
            frame: self.frame.into(),
            cause_frame: self.cause_frame.into(),
            segments: self.segments,
            flight: self.flight,
            phase: Phase::Open,
            confidence: self.confidence,
            // in a flow of which one direction is missing neither is known
            value: (!self.flight.is_nan()).then_some(self.rtt_s).into(),
            order: self.order.into(),
            ..EventRow::NONE
        }
    }
}

#[derive(Clone, Debug)]
pub struct LossEvents {
    flow: u32,
    open: Option<Box<Open>>,
    pub count: u64,
}

#[derive(Clone, Debug)]
struct Open {
    first: Loss,
    end_ns: i64,
    last_ns: i64,
    right: u64,
    segments: u32,
    timeout: bool,
}

impl LossEvents {
    pub const fn new(flow: u32) -> Self {
        Self {
            flow,
            open: None,
            count: 0,
        }
    }

    pub fn on_loss(&mut self, loss: &Loss, sink: &mut dyn Sink) {
        match &mut self.open {
            Some(event) if loss.time_ns <= event.end_ns => {
                event.segments += loss.segments;
                event.last_ns = loss.time_ns;
                event.right = event.right.max(loss.right);
                event.timeout |= loss.by_timeout;
            }
            open => {
                self.count += 1;
                let next = Open {
                    first: *loss,
                    end_ns: loss.time_ns + (loss.rtt_s * 1e9) as i64,
                    last_ns: loss.time_ns,
                    right: loss.right,
                    segments: loss.segments,
                    timeout: loss.by_timeout,
                };
                match open {
                    // the next takes its place
                    Some(event) => {
                        sink.event(event.row(self.flow));
                        **event = next;
                    }
                    None => *open = Some(Box::new(next)),
                }
            }
        }
    }

    pub fn close(&mut self, sink: &mut dyn Sink) {
        if let Some(event) = self.open.take() {
            sink.event(event.row(self.flow));
        }
    }
}

impl Open {
    fn row(&self, flow: u32) -> EventRow {
        EventRow {
            flow,
            time_ns: self.first.time_ns,
            kind: Kind::LossEvent,
            reason: Reason::OneRtt,
            left: offset(self.first.left),
            right: offset(self.right),
            frame: self.first.frame.into(),
            cause_frame: self.first.cause_frame.into(),
            segments: self.segments,
            flight: self.first.flight,
            phase: Phase::Open,
            confidence: self.first.confidence,
            value: ((self.last_ns - self.first.time_ns) as f64 / 1e9).into(),
            // without ACKs not every timer shows
            timeout_follows: (!self.first.flight.is_nan()).then_some(self.timeout),
            order: self.first.order.into(),
            ..EventRow::NONE
        }
    }
}
