//! Congestion marks (ECN): what arrived marked, what the receiver told the sender, and the sender's answer. Marks are no
//! losses; a window of them is one event, as the sender reduces its window once for all of them (RFC 3168, 6.1.2).
//!
//! ```text
//!  ce:        none --segment with CE--> event(end = + RTT) --CE after end--> give out, event    (RFC 5348, 5.2)
//!  ece, ace:  none --ACK that echoes--> event(recover = highest byte sent)
//!                                         |--echo up to recover--> the same event
//!                                         |--echo above recover--> give out, event
//! ```
//! Away from the sender, what it had sent when an echo reached it is not known. There an event lasts until the CWR
//! passes, whose first byte is `recover` (it goes out with the first new data), or for two round trips without one; of a
//! counter, which nothing answers, one round trip.
//!
//! Classic (RFC 3168, 6.1.3): the receiver sets ECE on every ACK from a mark until a segment with CWR comes, so ACKs
//! with ECE do not count marks. Accurate (RFC 9768, 3.2.2): AE, CWR and ECE are a counter of marked packets modulo 8
//! that starts from 5; there is no CWR. Which of the two it is, SYN and SYN-ACK say (RFC 9768, tables 2 and 3). An option may
//! count the marked bytes as well (3.2.3): they tell how often the counter went round between two ACKs that were seen.
//!
//! What a capture cannot show: marks behind the capture point, except through echoes; without SYN and SYN-ACK, what the
//! flags of an ACK mean; without the option, eight marks or more between two ACKs that were seen; how many segments stand
//! behind an ECE.

use crate::flow::rare::{Blank, Rare};
use crate::flow::sequence::offset;
use crate::nullable::Nullable;
use crate::rows::{EventRow, Feedback, Kind, Phase, Reason, Sink};
use crate::segment::flags;

/// CE, the ECN field of a packet that met congestion (RFC 3168, 5).
pub const CE: u8 = 3;
/// AE, CWR and ECE as three bits (RFC 9768, 3.1).
const ECE: u8 = 1;
const CWR: u8 = 2;
const COUNTER: u8 = 7;
/// RFC 9768, 3.2.1: first value of the counter.
const FIRST: u8 = 5;
/// The option's counters, modulo 2^24 (RFC 9768, 3.2.3), and half of that: what seems more has gone back.
const BYTES: u32 = 0xff_ffff;
const MOST_BYTES: u32 = 1 << 23;
/// Until a CWR must have come: from the receiver the echo's way and the CWR's are one, and the sender may have to wait.
const ANSWER_ROUND_TRIPS: f64 = 2.0;

/// The three flags of a segment as a number, AE first.
pub fn ace(segment_flags: u16) -> u8 {
    ((segment_flags & (flags::AE | flags::CWR | flags::ECE)) >> 6) as u8
}

/// What the flags of SYN and SYN-ACK agree on.
pub fn feedback(syn: u8, syn_ack: u8) -> Feedback {
    match (syn, syn_ack) {
        // RFC 9768, table 2: also what the SYN's IP field was; 5 is what a server of the ECN nonce says
        (7, 2 | 3 | 4 | 6) => Feedback::Accurate,
        (7, 1 | 5) => Feedback::Classic,
        // RFC 3168, 6.1.1: a server that sends both flags back has only copied them
        (3, 1 | 5) => Feedback::Classic,
        _ => Feedback::None,
    }
}

/// The sender when an ACK or a segment comes.
#[derive(Clone, Copy)]
pub struct State {
    pub una: u64,
    pub nxt: u64,
    pub smss: u32,
    pub flight: f64,
    pub phase: Phase,
    pub rtt_s: f64,
    /// The capture is at the sender: it had sent `nxt` and no more.
    pub exact: bool,
}

/// An ACK that may echo.
#[derive(Clone, Copy)]
pub struct Echo {
    pub time_ns: i64,
    pub frame: u64,
    pub ack: u64,
    pub ace: u8,
    /// Marked bytes, as the option counts them.
    pub ce_bytes: Option<u32>,
    /// It is no older than the ACKs before, nor the one of the SYN-ACK, whose flags are no count (RFC 9768, 3.2.2.1).
    pub progress: bool,
}

#[derive(Clone, Debug)]
struct Open {
    row: EventRow,
    last_ns: i64,
}

#[derive(Clone, Debug)]
pub struct Marks {
    /// `None`: SYN and SYN-ACK were not both seen.
    pub feedback: Option<Feedback>,
    seen: Rare<Seen>,
}

/// What marks and echoes a flow has had.
#[derive(Clone, Debug)]
pub struct Seen {
    flow: u32,
    arrived: Option<Box<Open>>,
    /// A round trip after the first mark of `arrived`.
    arrived_end_ns: i64,
    echoed: Option<Box<Open>>,
    /// Highest byte sent when the sender had the first echo of `echoed`; elsewhere first byte of the CWR.
    recover: u64,
    /// Away from the sender: what is echoed before is of `echoed`.
    echoed_end_ns: i64,
    counter: u8,
    /// What the option said last, and what the counter had by then.
    ce_bytes: u32,
    told_marks: u64,
    /// First marked segment since the last event of the echoes.
    marked_frame: Option<u64>,
    /// Echo that no CWR has answered.
    unanswered: Option<u64>,
    pub ce_segments: u64,
    pub ece_acks: u64,
    pub ace_marks: u64,
    pub cwr_segments: u64,
    pub arrived_events: u64,
    pub echoed_events: u64,
}

impl Blank for Seen {
    const BLANK: &'static Self = &Self::of(0);

    fn new(flow: u32) -> Self {
        Self::of(flow)
    }
}

impl Seen {
    const fn of(flow: u32) -> Self {
        Self {
            flow,
            arrived: None,
            arrived_end_ns: 0,
            echoed: None,
            recover: 0,
            echoed_end_ns: i64::MIN,
            counter: FIRST,
            ce_bytes: 0,
            told_marks: 0,
            marked_frame: None,
            unanswered: None,
            ce_segments: 0,
            ece_acks: 0,
            ace_marks: 0,
            cwr_segments: 0,
            arrived_events: 0,
            echoed_events: 0,
        }
    }
}

impl Marks {
    pub fn new(flow: u32) -> Self {
        Self {
            feedback: None,
            seen: Rare::new(flow),
        }
    }

    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// An ACK with these flags can say something about marks.
    pub fn listens(&self, ace: u8) -> bool {
        ace != 0 || self.feedback == Some(Feedback::Accurate)
    }

    /// `count` segments came marked.
    #[allow(clippy::too_many_arguments)] // one packet, spelled out
    pub fn on_ce(
        &mut self,
        time_ns: i64,
        frame: u64,
        (left, right): (u64, u64),
        count: u32,
        state: State,
        sink: &mut dyn Sink,
    ) {
        let feedback = self.feedback;
        let seen = &mut *self.seen;
        seen.ce_segments += u64::from(count);
        if feedback == Some(Feedback::None) {
            return; // nobody will hear of it
        }
        seen.marked_frame.get_or_insert(frame);
        match &mut seen.arrived {
            Some(event) if time_ns <= seen.arrived_end_ns => {
                event.row.segments += count;
                event.row.right = event.row.right.max(offset(right));
                event.last_ns = time_ns;
            }
            _ => {
                close(&mut seen.arrived, sink);
                seen.arrived_events += 1;
                seen.arrived_end_ns = time_ns + (state.rtt_s * 1e9) as i64;
                let row = seen.row(Reason::Ce, time_ns, frame, (left, right), state);
                seen.arrived = Some(Box::new(Open {
                    row: EventRow { segments: count, ..row },
                    last_ns: time_ns,
                }));
            }
        }
    }

    /// An ACK passed.
    pub fn on_ack(&mut self, echo: &Echo, state: State, sink: &mut dyn Sink) {
        let (reason, marks) = match self.feedback {
            Some(Feedback::Classic) if echo.ace & ECE != 0 => {
                self.seen.ece_acks += 1;
                (Reason::Ece, 0)
            }
            Some(Feedback::Accurate) if echo.progress => {
                let bytes = self.seen.more_bytes(echo);
                let marks = self.seen.told_by(echo, bytes, state.smss);
                if marks == 0 {
                    return; // that bytes came marked is told with the packets they came in
                }
                let seen = &mut *self.seen;
                seen.counter = echo.ace;
                seen.ace_marks += u64::from(marks);
                if let Some(bytes) = bytes {
                    seen.ce_bytes = seen.ce_bytes.wrapping_add(bytes) & BYTES;
                    seen.told_marks = seen.ace_marks;
                }
                (Reason::Ace, marks)
            }
            _ => return,
        };
        let seen = &mut *self.seen;
        match &mut seen.echoed {
            Some(event) if echo.ack <= seen.recover || echo.time_ns < seen.echoed_end_ns => {
                event.row.segments += marks;
                seen.marked_frame = seen.marked_frame.filter(|&frame| frame > echo.frame);
                event.last_ns = event.last_ns.max(echo.time_ns);
            }
            _ => {
                close(&mut seen.echoed, sink);
                seen.echoed_events += 1;
                if state.exact {
                    seen.recover = state.nxt;
                } else {
                    let round_trips = if reason == Reason::Ece { ANSWER_ROUND_TRIPS } else { 1.0 };
                    seen.echoed_end_ns = echo.time_ns + (round_trips * state.rtt_s * 1e9) as i64;
                }
                seen.unanswered = Some(echo.frame);
                let range = (state.una, echo.ack.max(state.una));
                let row = seen.row(reason, echo.time_ns, echo.frame, range, state);
                seen.echoed = Some(Box::new(Open {
                    row: EventRow {
                        segments: marks.max(1),
                        cause_frame: seen.marked_frame.take().filter(|&frame| frame < echo.frame).into(),
                        ..row
                    },
                    last_ns: echo.time_ns,
                }));
            }
        }
    }

    /// Data with these flags passed: CWR says that the sender has reduced its window (RFC 3168, 6.1.2).
    pub fn on_data(&mut self, time_ns: i64, frame: u64, range: (u64, u64), ace: u8, state: State, sink: &mut dyn Sink) {
        if ace & CWR == 0 || self.feedback != Some(Feedback::Classic) {
            return;
        }
        let seen = &mut *self.seen;
        seen.cwr_segments += 1;
        if seen.unanswered.is_some() && !state.exact {
            seen.recover = seen.recover.max(range.0);
            seen.echoed_end_ns = i64::MIN;
        }
        let row = seen.row(Reason::Cwr, time_ns, frame, range, state);
        sink.event(EventRow {
            kind: Kind::EcnResponse,
            cause_frame: seen.unanswered.take().into(),
            value: Nullable::NONE,
            ..row
        });
    }

    pub fn close(&mut self, sink: &mut dyn Sink) {
        if let Some(seen) = self.seen.changed() {
            close(&mut seen.arrived, sink);
            close(&mut seen.echoed, sink);
        }
    }
}

impl Seen {
    /// Bytes that came marked since the option was seen last.
    fn more_bytes(&self, echo: &Echo) -> Option<u32> {
        let bytes = echo.ce_bytes.map(|bytes| bytes.wrapping_sub(self.ce_bytes) & BYTES);
        bytes.filter(|&bytes| bytes < MOST_BYTES)
    }

    /// Marked packets that the ACK tells of: as the counter says, and eight more for each time that it went round unseen, as
    /// the bytes say.
    fn told_by(&self, echo: &Echo, bytes: Option<u32>, smss: u32) -> u32 {
        let counted = u32::from(echo.ace.wrapping_sub(self.counter) & COUNTER);
        let Some(bytes) = bytes else {
            return counted;
        };
        let known = self.ace_marks - self.told_marks + u64::from(counted);
        let round = u32::from(COUNTER) + 1;
        let unseen = u64::from(bytes / smss.max(1)).saturating_sub(known) as u32;
        counted + (unseen + round / 2) / round * round
    }

    fn row(&self, reason: Reason, time_ns: i64, frame: u64, (left, right): (u64, u64), state: State) -> EventRow {
        EventRow {
            flow: self.flow,
            time_ns,
            kind: Kind::EcnMark,
            reason,
            left: offset(left),
            right: offset(right),
            frame: frame.into(),
            segments: 1,
            flight: state.flight,
            phase: state.phase,
            confidence: 1.0,
            value: 0.0.into(),
            ..EventRow::NONE
        }
    }
}

fn close(open: &mut Option<Box<Open>>, sink: &mut dyn Sink) {
    if let Some(Open { row, last_ns }) = open.take().map(|open| *open) {
        sink.event(EventRow {
            value: ((last_ns - row.time_ns) as f64 / 1e9).into(),
            ..row
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_agree_as_the_tables_say() {
        let agreed: Vec<_> = (0..8).map(|syn_ack| feedback(7, syn_ack)).collect();
        use Feedback::{Accurate, Classic, None};
        assert_eq!(
            agreed,
            [None, Classic, Accurate, Accurate, Accurate, Classic, Accurate, None]
        );
        assert_eq!([1, 3, 0].map(|syn_ack| feedback(3, syn_ack)), [Classic, None, None]);
        assert_eq!(feedback(0, 1), None);
    }
}
