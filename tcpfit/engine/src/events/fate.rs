//! What became of each transmission: arrived, or lost on the way.
//!
//! A unit that was sent more than once, or that did not pass the capture point, waits here after its delivery until the
//! evidence is in: a DSACK (RFC 2883) needs a round trip after the last resend, a late original as long as the path can
//! hold a packet back. Then every transmission that did not arrive is a loss of its own, and every resend beyond the
//! first arrival is spurious.
//!
//! Away from the sender a transmission that the sender made and the capture point did not see was lost before it; at the
//! receiver everything seen has arrived. For what was seen before the loss, the arrivals are told by (in this order)
//! DSACK, the timestamp that the covering ACK echoes (RFC 3522; it speaks of the lowest range the ACK covers), the least
//! round trip (an answer cannot come sooner), the receiver's silence where it would have answered at once, and the ACK's jump:
//! what it covers beyond the filled hole had been held by the receiver before. A second go-back pass without SACK or
//! timestamps cannot be settled; then the counts are a range.

use crate::events::answers::Answers;
use crate::events::ledger::Ledger;
use crate::events::loss_event::{Loss, LossEvents};
use crate::flow::drift::Drift;
use crate::flow::rare::Blank;
use crate::flow::rounds::Rounds;
use crate::flow::sender::Sender;
use crate::rows::{Reason, Sink, Vantage};
use std::collections::VecDeque;

mod delivery;
mod pieces;
mod spurious;
mod verdict;
mod waiting;

use pieces::{Parts, Pieces};
pub(crate) use waiting::late_ns;
use waiting::{Queue, Waiting};

/// Transmissions remembered that were settled in pieces, or sent after their ACK: evidence of one comes close together.
const PIECES: usize = 64;

/// The fate of a first transmission whose range was sent again.
#[derive(Clone, Copy, Debug)]
pub struct Original {
    pub order: u64,
    pub left: u64,
    /// What shows that it arrived; `None` if it was lost.
    pub arrived: Option<Reason>,
    pub ack_frame: Option<u64>,
    /// When it was answered, if it came after its resend; else 0.
    pub answered_ns: i64,
    pub confidence: f64,
}

/// Segments sent again that duplicate ACKs had asked for, and of these, those whose originals came late, as DSACKs say and the
/// path's copies do not explain.
#[derive(Clone, Copy, Debug)]
struct Held {
    asked: u32,
    late: u32,
}

/// A unit whose original was called lost.
#[derive(Clone, Copy, Debug)]
struct CalledLost {
    left: u64,
    right: u64,
    segments: u32,
    /// When it was sent for the last time, or delivered.
    since_ns: i64,
}

#[derive(Clone, Debug)]
pub struct Fates {
    flow: u32,
    waiting: Queue,
    ledger: Ledger,
    pub loss_events: LossEvents,
    pieces: Pieces,
    parts: Parts,
    /// Resends of acknowledged data: range and time.
    unneeded: VecDeque<(u64, u64, i64)>,
    called_lost: VecDeque<CalledLost>,
    /// How long a DSACK has come after a unit had been sent for the last time, whose original had been called lost.
    held_ns: i64,
    pub answers: Answers,
    dsack_seen: bool,
    held: Held,
    /// Packets of the receiver that its identifications have skipped before the ACK that comes now.
    pub acks_lost: u16,
    pub lost: u64,
    pub lost_upstream: u64,
    /// Losses that could also be late arrivals: only time told, and their bytes came once more.
    pub doubtful: u64,
    /// Of the losses, those that only a resend speaks for: no ACK was seen, or those that were say no more.
    pub unproven: u64,
    pub spurious: u64,
    pub missing: u64,
    /// At the sender: what became of originals that were sent again.
    pub originals: Vec<Original>,
}

/// What settling needs to know of the sender.
pub struct Context {
    pub smss: u32,
    pub vantage: Vantage,
    /// Least round trip so far.
    pub least_s: f64,
    /// Smoothed round trip; of a flow without ACKs the least time to a resend.
    pub srtt_s: f64,
    pub sack: bool,
    pub one_way: bool,
}

impl Blank for Fates {
    const BLANK: &'static Self = &Self::of(0);

    fn new(flow: u32) -> Self {
        Self::of(flow)
    }
}

impl Fates {
    const fn of(flow: u32) -> Self {
        Self {
            flow,
            waiting: Queue::new(),
            ledger: Ledger::new(),
            loss_events: LossEvents::new(flow),
            pieces: Pieces::new(),
            parts: Parts::new(),
            unneeded: VecDeque::new(),
            called_lost: VecDeque::new(),
            held_ns: 0,
            answers: Answers::new(),
            dsack_seen: false,
            held: Held { asked: 0, late: 0 },
            acks_lost: 0,
            lost: 0,
            lost_upstream: 0,
            doubtful: 0,
            unproven: 0,
            spurious: 0,
            missing: 0,
            originals: Vec::new(),
        }
    }

    /// The transmission `order` of a unit that waits and holds the byte `at` passed after all. False if there is none.
    pub fn arrived(&mut self, order: u64, at: u64, frame: u64) -> bool {
        let holds = |w: &&mut Waiting| w.unit.left <= at && at < w.unit.right;
        let mut copies = self
            .waiting
            .iter_mut()
            .rev()
            .filter(holds)
            .flat_map(|w| &mut w.unit.copies);
        copies.find(|t| t.order == order).is_some_and(|transmission| {
            transmission.frame = frame;
            true
        })
    }

    /// When the sender knew that data had arrived of which a unit that waits holds the byte `at`.
    pub fn delivered_ns(&self, at: u64) -> Option<i64> {
        let holds = |w: &&Waiting| w.unit.left <= at && at < w.unit.right;
        let waiting = self.waiting.newest_first().find(holds);
        waiting.filter(|w| w.delivered).map(|w| w.delivered_ns)
    }

    /// Nothing waits for evidence.
    pub fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.ledger.is_empty()
    }

    /// A unit's evidence is in at `now_ns`, or what is settled has not been given out.
    #[inline]
    pub fn is_due(&self, now_ns: i64, context: &Context) -> bool {
        !self.ledger.is_empty() || !self.originals.is_empty() || self.is_next_due(now_ns, context)
    }

    /// The evidence of the unit that has waited longest is in.
    #[inline]
    fn is_next_due(&self, now_ns: i64, context: &Context) -> bool {
        let Some(next) = self.waiting.front() else {
            return false;
        };
        if now_ns == i64::MAX || self.waiting.overflows() {
            return true;
        }
        // without SACK the end of a stretch of resends tells more of them
        let under_way = self.answers.under_way().filter(|_| !context.sack);
        let wait_ns = context.wait_ns().max(self.held_ns);
        Some(next.stretch) != under_way && next.since_ns.saturating_add(wait_ns) < now_ns
    }

    /// Every transmission before this time has its fate; `open_ns` is the time of the oldest one still outstanding.
    #[inline]
    pub fn known_ns(&self, open_ns: i64) -> i64 {
        open_ns.min(self.waiting.oldest_ns().unwrap_or(i64::MAX))
    }

    /// Settles the units whose evidence is in at `now_ns`, then gives out losses in sending order. Every transmission
    /// before the returned time has its fate; `open_ns` as in `known_ns`. What `drift` has learned of a loss's time it tells.
    #[inline]
    pub fn settle(
        &mut self,
        now_ns: i64,
        open_ns: i64,
        context: &Context,
        drift: Option<&Drift>,
        rounds: &mut Rounds,
        sink: &mut dyn Sink,
    ) -> i64 {
        while self.is_next_due(now_ns, context) {
            self.settle_next(context, sink);
        }
        let known_ns = self.known_ns(open_ns);
        while let Some(mut loss) = self.ledger.pop_before(known_ns) {
            loss.rtt_s = rounds.lost(loss.time_ns, loss.segments).unwrap_or(loss.rtt_s);
            if let Some(then) = drift.and_then(|drift| drift.then(loss.time_ns)) {
                (loss.rtt_s, loss.flight) = (then.srtt_s, then.flight(loss.flight));
            }
            self.give_out(&loss, sink);
        }
        known_ns
    }

    #[inline(never)]
    fn settle_next(&mut self, context: &Context, sink: &mut dyn Sink) {
        if let Some(waiting) = self.waiting.pop() {
            self.verdict(&waiting, context, sink);
        }
    }

    #[inline(never)]
    fn give_out(&mut self, loss: &Loss, sink: &mut dyn Sink) {
        self.lost += u64::from(loss.segments);
        self.loss_events.on_loss(loss, sink);
        sink.event(loss.event(self.flow));
    }

    pub fn finish(&mut self, smss: u32, sink: &mut dyn Sink) {
        self.close_parts(u64::MAX, smss, |_| false, sink);
        self.loss_events.close(sink);
    }
}

impl Sender {
    pub fn context(&self) -> Context {
        Context {
            smss: self.smss,
            vantage: self.vantage,
            least_s: self.path_least_s(),
            srtt_s: if !self.one_way {
                self.rtt.srtt_s
            } else if self.least_resend_s.is_finite() {
                self.least_resend_s
            } else {
                0.0
            },
            sack: self.sack,
            one_way: self.one_way,
        }
    }
}
