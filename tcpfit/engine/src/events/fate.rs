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
//! round trip (an answer cannot come sooner), and the ACK's jump: what it covers beyond the filled hole had been held by
//! the receiver before. A second go-back pass without SACK or timestamps cannot be settled; then the counts are a range.

use crate::events::answers::Answers;
use crate::events::ledger::Ledger;
use crate::events::loss_event::{Loss, LossEvents};
use crate::flow::rare::Blank;
use crate::flow::rounds::Rounds;
use crate::flow::rtt::Floor;
use crate::flow::scoreboard::{segments, History, Scoreboard, Transmission, KEPT};
use crate::flow::sender::{Ack, Sender, Sent, LOOKED_AT};
use crate::flow::sequence::{before, offset};
use crate::rows::{EventRow, Kind, Phase, Reason, Sink, Vantage};
use std::collections::VecDeque;

/// Round trips to wait at the sender, after the last resend: without SACK for the answers to needless copies, with it for
/// the DSACK that a late original brings.
const WAIT_ANSWER: f64 = 2.0;
const WAIT_DSACK: f64 = 8.0;
/// How long a path holds a packet back at most for it still to be known when it comes.
const WAIT_LATE_NS: i64 = 1_000_000_000;
/// Transmissions remembered that were settled in pieces, or sent after their ACK: evidence of one comes close together.
const PIECES: usize = 64;
/// Times in seconds and in nanoseconds are the same to within this.
const ROUNDING_NS: i64 = 1_000;
/// Confidence of a fate that the capture shows.
const SURE: f64 = 0.95;
/// Confidence of a loss that only the sender's own resends say.
const GIVEN_UP: f64 = 0.6;
/// Confidence of a loss that may as well have been a late arrival.
const DOUBTFUL: f64 = 0.5;
/// Without ACKs a resend alone says so.
const UNPROVEN: f64 = 0.5;
/// Units that wait at most; beyond, the oldest is settled with what is known.
const WAITING: usize = 8192;

/// A delivered (or abandoned) unit that waits for the rest of the evidence.
#[derive(Clone, Debug)]
struct Waiting {
    unit: History,
    /// Index of the transmission that delivered it, if known.
    filler: Option<usize>,
    filler_reason: Reason,
    ack_frame: Option<u64>,
    delivered_ns: i64,
    /// When it was last sent, or delivered: what more there is to know of it comes after that.
    since_ns: i64,
    dsacks: u32,
    delivered: bool,
    /// It was the lowest that its ACK covered.
    head: bool,
    /// Stretch of resends it belongs to; it waits until that is over.
    stretch: u32,
}

impl Waiting {
    /// The transmission that delivered it, and what says so. An answer that was too early for a resend when it came was not
    /// if a round trip since was as short.
    fn filled_by(&self, least_s: f64) -> (Option<usize>, Reason) {
        let (Some(mut filler), Reason::TooEarly) = (self.filler, self.filler_reason) else {
            return (self.filler, self.filler_reason);
        };
        let least_ns = (least_s * 1e9) as i64;
        for (k, t) in self.unit.copies.iter().enumerate().skip(filler + 1) {
            if t.seen() && self.delivered_ns - t.time_ns + ROUNDING_NS < least_ns {
                return (Some(filler), Reason::TooEarly);
            }
            filler = if t.seen() { k } else { filler };
        }
        (Some(filler), Reason::Resent)
    }
}

/// What a delivery showed at once.
pub struct Delivered {
    /// Order of the transmission that delivered the unit.
    pub order: Option<u64>,
    /// The original had arrived although it was sent again.
    pub original: bool,
}

/// The fate of a first transmission whose range was sent again.
#[derive(Clone, Copy, Debug)]
pub struct Original {
    pub order: u64,
    pub left: u64,
    /// What shows that it arrived; `None` if it was lost.
    pub arrived: Option<Reason>,
    pub ack_frame: Option<u64>,
    pub confidence: f64,
}

#[derive(Clone, Debug)]
pub struct Fates {
    flow: u32,
    waiting: VecDeque<Waiting>,
    /// Of the units that wait: how many came before it, and when it was first sent; only those that no later one undercuts.
    oldest: VecDeque<(u64, i64)>,
    /// Units that no longer wait.
    decided: u64,
    ledger: Ledger,
    pub loss_events: LossEvents,
    /// Bytes counted of transmissions that were settled in pieces: order, lost or needless, bytes.
    pieces: VecDeque<(u64, bool, u64)>,
    /// Highest order that any of these has had.
    newest_piece: u64,
    /// Resends of acknowledged data: range and time.
    unneeded: VecDeque<(u64, u64, i64)>,
    pub answers: Answers,
    dsack_seen: bool,
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
            waiting: VecDeque::new(),
            oldest: VecDeque::new(),
            decided: 0,
            ledger: Ledger::new(),
            loss_events: LossEvents::new(flow),
            pieces: VecDeque::new(),
            newest_piece: 0,
            unneeded: VecDeque::new(),
            answers: Answers::new(),
            dsack_seen: false,
            lost: 0,
            lost_upstream: 0,
            doubtful: 0,
            unproven: 0,
            spurious: 0,
            missing: 0,
            originals: Vec::new(),
        }
    }

    /// The receiver reports that [left, right) arrived twice (RFC 2883, 4).
    #[inline(never)]
    pub fn on_dsack(&mut self, left: u64, right: u64, ack: &Ack, floor: Floor, board: &mut Scoreboard) {
        self.dsack_seen = true;
        // a resend of what had been acknowledged, if a round trip has passed since
        let least_ns = floor.ns();
        let answered =
            |&(from, to, time_ns): &(u64, u64, i64)| from < right && left < to && ack.time_ns - time_ns >= least_ns;
        if let Some(n) = self.unneeded.iter().position(answered) {
            self.unneeded.remove(n);
            return;
        }
        // where the path makes copies, the one that comes right behind a needed resend is such a copy
        let path_copies = self.answers.path_makes_copies();
        let behind = |last: &Transmission, delivered_ns: i64| {
            path_copies && ack.time_ns - delivered_ns < least_ns / 4 && delivered_ns - last.time_ns >= least_ns
        };
        let covers = |unit: &History| unit.left < right && left < unit.right;
        let mut resent = false;
        for w in self.waiting.iter_mut().filter(|w| covers(&w.unit)) {
            resent = true;
            if !behind(w.unit.last(), w.delivered_ns) {
                w.dsacks += 1;
                w.ack_frame = Some(ack.frame);
            }
        }
        board.cut(left, right);
        board.resent(left, right, LOOKED_AT, |unit, last| {
            resent = true;
            if unit.sacked_ns == 0 || !behind(last, unit.sacked_ns) {
                unit.dsacks = unit.dsacks.saturating_add(1);
            }
        });
        if !resent {
            self.answers.on_path_copy();
        }
    }

    pub fn has_seen_dsack(&self) -> bool {
        self.dsack_seen
    }

    /// A stretch of resends is over; `needless` duplicate ACKs answered copies of data that had arrived. Resends judged
    /// needed beyond what that leaves were not. Which ones, nothing shows: the earliest are taken, at low confidence. Where
    /// the path makes copies, as many of these may have been answered as it makes of `order` transmissions, less those before
    /// the stretch: then there may be so many losses less.
    pub fn close_stretch(&mut self, needless: u32, smss: u32, order: u64) {
        let stretch = self.answers.close(order);
        let mine = |w: &&mut Waiting| w.stretch == stretch.number && w.delivered && w.unit.is_resent();
        let size = |w: &Waiting| segments(w.unit.right - w.unit.left, smss);
        let mut left = i64::from(needless) + i64::from(stretch.answered);
        // they are the last that were delivered
        let before = |w: &Waiting| w.delivered && w.stretch != stretch.number;
        let first = self.waiting.iter().rposition(before).map_or(0, |n| n + 1);
        for w in self.waiting.range_mut(first..).filter(mine) {
            let beyond = w.filler.map_or(0, |f| w.unit.copies.len() - 1 - f);
            left -= (beyond as u32 * size(w)) as i64;
        }
        let mut unproven = 0;
        // what was acknowledged together with data below it may have been there before; the lowest filled the hole
        for head in [false, true] {
            for w in self.waiting.range_mut(first..).filter(mine).filter(|w| w.head == head) {
                while let Some(filler) = w.filler.filter(|&f| f > 0 && left > 0) {
                    left -= i64::from(size(w));
                    if left < stretch.path_copies {
                        unproven += u64::from(size(w));
                        break;
                    }
                    w.filler = Some(filler - 1);
                    w.filler_reason = Reason::AckJump;
                }
            }
        }
        self.unproven += unproven;
    }

    /// A unit that was resent or never seen is acknowledged. `filler_of_head` is the order of the transmission that
    /// delivered the head of this ACK, if the receiver held this unit by then (`u64::MAX` if not).
    pub fn on_delivered(
        &mut self,
        unit: History,
        delivered_ns: i64,
        head: bool,
        filler_of_head: u64,
        ack: &Ack,
        floor: Floor,
    ) -> Delivered {
        let least_ns = floor.ns();
        let held = unit.sacked_ns == 0 && filler_of_head != u64::MAX;
        let mut filler = 0;
        let mut reason = Reason::Resent;
        let resends = unit.is_resent();
        for (k, t) in unit.copies.iter().enumerate() {
            if !t.seen() {
                continue;
            }
            // what fills a hole is echoed (RFC 7323, 4.3): data above it are not
            let echo = ack
                .tsecr
                .filter(|_| t.tsval != 0 && k > 0 && head && unit.sacked_ns == 0);
            if echo.is_some_and(|echo| before(echo, t.tsval)) {
                reason = Reason::Eifel;
                break;
            }
            // a flow's least round trip so far may be longer than its path's
            if k > 0 && delivered_ns - t.time_ns < least_ns && echo != Some(t.tsval) {
                reason = Reason::TooEarly;
                break;
            }
            if k > 0 && held && t.order > filler_of_head {
                reason = Reason::AckJump;
                break;
            }
            filler = k;
        }
        let filled = unit.copies.get(filler).filter(|t| t.seen());
        let delivered = Delivered {
            order: filled.map(|t| t.order),
            original: resends && filler == 0 && filled.is_some() && reason == Reason::Eifel,
        };
        for t in unit.copies.iter().skip(filler + 1).filter(|t| t.seen()) {
            self.answers.expect(t.time_ns + least_ns, true);
        }
        self.wait(Waiting {
            dsacks: u32::from(unit.dsacks),
            filler: filled.map(|_| filler),
            since_ns: unit.last().time_ns.max(delivered_ns),
            unit,
            filler_reason: reason,
            ack_frame: Some(ack.frame),
            delivered_ns,
            delivered: true,
            head,
            stretch: self.answers.stretch(),
        });
        delivered
    }

    /// The flow ended with the unit outstanding, of which there is more to say than that it was sent once.
    pub fn on_undelivered(&mut self, unit: History) {
        let last_ns = unit.last().time_ns;
        self.wait(Waiting {
            delivered_ns: last_ns,
            since_ns: last_ns,
            unit,
            filler: None,
            filler_reason: Reason::Resent,
            ack_frame: None,
            dsacks: 0,
            delivered: false,
            head: false,
            stretch: 0,
        });
    }

    fn wait(&mut self, waiting: Waiting) {
        let first_ns = waiting.unit.first().time_ns;
        while self.oldest.back().is_some_and(|&(_, time_ns)| time_ns >= first_ns) {
            self.oldest.pop_back();
        }
        self.oldest
            .push_back((self.decided + self.waiting.len() as u64, first_ns));
        self.waiting.push_back(waiting);
    }

    /// The unit that has waited longest.
    fn next(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        if self.oldest.front().is_some_and(|&(n, _)| n == self.decided) {
            self.oldest.pop_front();
        }
        self.decided += 1;
        Some(waiting)
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

    /// Data that the sender knew to be acknowledged were sent again.
    pub fn unneeded(&mut self, sent: &Sent, smss: u32, least_ns: i64, sink: &mut dyn Sink) {
        if self.unneeded.len() >= PIECES {
            self.unneeded.pop_front();
        }
        self.unneeded.push_back((sent.left, sent.right, sent.time_ns));
        self.answers.expect(sent.time_ns + least_ns, false);
        let count = segments(sent.right - sent.left, smss);
        self.spurious += u64::from(count);
        let (frame, left, right) = ((sent.frame != 0).then_some(sent.frame), sent.left, sent.right);
        self.spurious_event(
            sent.time_ns,
            left,
            right,
            frame,
            None,
            count,
            Reason::Unneeded,
            0.9,
            sink,
        );
    }

    #[allow(clippy::too_many_arguments)] // one event, spelled out
    fn spurious_event(
        &self,
        time_ns: i64,
        left: u64,
        right: u64,
        frame: Option<u64>,
        cause_frame: Option<u64>,
        count: u32,
        reason: Reason,
        confidence: f64,
        sink: &mut dyn Sink,
    ) {
        sink.event(EventRow {
            flow: self.flow,
            time_ns,
            kind: Kind::Spurious,
            reason,
            left: offset(left),
            right: offset(right),
            frame: frame.into(),
            cause_frame: cause_frame.into(),
            segments: count,
            flight: 0.0,
            phase: Phase::Open,
            confidence,
            ..EventRow::NONE
        });
    }

    /// Nothing waits for evidence.
    pub fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.ledger.is_empty()
    }

    /// Settles the units whose evidence is in at `now_ns`, then gives out losses in sending order. Every transmission
    /// before the returned time has its fate; `open_ns` is the time of the oldest one still outstanding.
    #[inline]
    pub fn settle(
        &mut self,
        now_ns: i64,
        open_ns: i64,
        context: &Context,
        rounds: &mut Rounds,
        sink: &mut dyn Sink,
    ) -> i64 {
        let round_trips_ns = |count: f64| (context.srtt_s * count * 1e9) as i64;
        let wait_ns = match (context.vantage, context.sack) {
            (Vantage::Sender, false) => round_trips_ns(WAIT_ANSWER),
            (Vantage::Sender, true) => round_trips_ns(WAIT_DSACK).min(WAIT_LATE_NS.max(round_trips_ns(WAIT_ANSWER))),
            _ => WAIT_LATE_NS.max(round_trips_ns(4.0)),
        };
        // without SACK the end of a stretch of resends tells more of them
        let under_way = self.answers.under_way().filter(|_| !context.sack);
        let due = |w: &Waiting| {
            now_ns == i64::MAX || Some(w.stretch) != under_way && w.since_ns.saturating_add(wait_ns) < now_ns
        };
        while self.waiting.len() > WAITING || self.waiting.front().is_some_and(due) {
            self.settle_next(context, sink);
        }
        let waiting_ns = self.oldest.front().map_or(i64::MAX, |&(_, time_ns)| time_ns);
        let known_ns = open_ns.min(waiting_ns);
        while let Some(loss) = self.ledger.pop_before(known_ns) {
            self.give_out(&loss, rounds, sink);
        }
        known_ns
    }

    #[inline(never)]
    fn settle_next(&mut self, context: &Context, sink: &mut dyn Sink) {
        if let Some(waiting) = self.next() {
            self.verdict(&waiting, context, sink);
        }
    }

    fn verdict(&mut self, w: &Waiting, context: &Context, sink: &mut dyn Sink) {
        let unit = &w.unit;
        let (filler, filler_reason) = w.filled_by(context.least_s);
        let count = segments(unit.right - unit.left, context.smss);
        if w.delivered && !unit.seen() {
            // acknowledged although no copy passed: it did, and the capture missed it
            self.missing += u64::from(count);
            return;
        }
        let n = unit.copies.len();
        let lost = &mut [false; KEPT][..n];
        let mut confidence = SURE;
        if context.vantage == Vantage::Receiver || unit.copies.iter().any(|t| !t.seen()) {
            for (k, t) in unit.copies.iter().enumerate() {
                lost[k] = !t.seen();
            }
        }
        // a late first copy, and then its resend, look the same as a loss and two resends
        let mut arrived = unit.copies.iter().filter(|t| t.seen());
        let doubtful = !unit.first().seen() && arrived.next().is_some_and(|t| t.doubtful) && arrived.next().is_some();
        self.doubtful += if doubtful { u64::from(count) } else { 0 };
        if context.vantage != Vantage::Receiver {
            let seen = unit.copies.iter().filter(|t| t.seen()).count();
            if w.dsacks > 0 || unit.discarded || (self.dsack_seen && w.delivered && context.sack) {
                // each DSACK is one arrival beyond the first; the rest of the copies did not arrive
                let arrived = 1 + w.dsacks as usize + usize::from(w.unit.discarded);
                let by_time = filler.unwrap_or(usize::MAX);
                let mut to_lose = seen.saturating_sub(arrived).min(by_time);
                for (k, t) in unit.copies.iter().enumerate() {
                    if t.seen() && to_lose > 0 {
                        lost[k] = true;
                        to_lose -= 1;
                    }
                }
            } else if let Some(filler) = filler {
                for slot in lost.iter_mut().take(filler) {
                    *slot = true;
                }
                confidence = if filler_reason == Reason::AckJump { 0.7 } else { 0.9 };
            } else {
                // never acknowledged: all but the last were given up by the sender
                for slot in lost.iter_mut().take(n - 1) {
                    *slot = true;
                }
                confidence = GIVEN_UP;
            }
        }
        let copies = &unit.copies;
        let bytes = unit.right - unit.left;
        for (k, t) in copies.iter().enumerate() {
            let next = copies.get(k + 1);
            if lost[k] {
                let count = self.of_pieces(t.order, true, bytes, context.smss);
                if count == 0 {
                    continue;
                }
                // a hole alone could have been filled late, where nothing tells the order of sending
                let ordered = next.is_some_and(|n| n.tsval != 0 || n.ip_id != 0);
                let unproven = context.one_way && (t.seen() || !ordered);
                if unproven {
                    self.unproven += u64::from(count);
                }
                self.ledger.push(Loss {
                    time_ns: t.time_ns,
                    order: t.order,
                    left: unit.left,
                    right: unit.right,
                    frame: (t.frame != 0).then_some(t.frame),
                    cause_frame: next.map(|n| n.frame).filter(|&f| f != 0).or(w.ack_frame),
                    segments: count,
                    flight: f64::from(t.flight),
                    rtt_s: context.srtt_s,
                    reason: match (t.seen(), k, next) {
                        (true, _, _) => Reason::Resent,
                        (false, 0, Some(_)) => Reason::Hole,
                        (false, 0, None) => Reason::NeverArrived,
                        (false, _, _) => Reason::IpIdGap,
                    },
                    confidence: match (unproven, doubtful && k == 0) {
                        (true, _) => UNPROVEN,
                        (false, true) => DOUBTFUL,
                        (false, false) => confidence,
                    },
                    by_timeout: next.is_some_and(|n| n.cause == Reason::Rto),
                });
                if !t.seen() {
                    self.lost_upstream += u64::from(count);
                }
            }
        }
        let arrived = copies.iter().enumerate().filter(|&(k, t)| t.seen() && !lost[k]).count();
        let mut beyond_first = arrived.saturating_sub(1);
        let mut original_arrived = None;
        for (k, t) in copies.iter().enumerate().rev() {
            if beyond_first == 0 || k == 0 {
                break;
            }
            if t.seen() && !lost[k] {
                beyond_first -= 1;
                let count = self.of_pieces(t.order, false, bytes, context.smss);
                if count == 0 {
                    continue;
                }
                self.spurious += u64::from(count);
                let reason = match (w.dsacks > 0, context.vantage) {
                    (true, _) => Reason::Dsack,
                    (_, Vantage::Receiver) => Reason::SeenTwice,
                    _ if unit.discarded => Reason::Discarded,
                    _ => filler_reason,
                };
                original_arrived = (!lost[0]).then_some(reason);
                self.spurious_event(
                    t.time_ns,
                    unit.left,
                    unit.right,
                    (t.frame != 0).then_some(t.frame),
                    w.ack_frame,
                    count,
                    reason,
                    confidence,
                    sink,
                );
            }
        }
        if context.vantage == Vantage::Sender && n > 1 {
            self.originals.push(Original {
                order: unit.first().order,
                left: unit.left,
                arrived: original_arrived,
                ack_frame: w.ack_frame,
                confidence,
            });
        }
    }

    /// A resend of which no more is kept. At the receiver what was seen has arrived; elsewhere a segment that had to be
    /// sent so often again was lost.
    pub fn give_up(
        &mut self,
        (left, right): (u64, u64),
        old: &Transmission,
        next: &Transmission,
        context: &Context,
        sink: &mut dyn Sink,
    ) {
        let arrived = old.seen() && context.vantage == Vantage::Receiver;
        let count = self.of_pieces(old.order, !arrived, right - left, context.smss);
        if count == 0 {
            return;
        }
        let frame = (old.frame != 0).then_some(old.frame);
        if arrived {
            self.spurious += u64::from(count);
            self.spurious_event(
                old.time_ns,
                left,
                right,
                frame,
                None,
                count,
                Reason::SeenTwice,
                SURE,
                sink,
            );
            return;
        }
        if !old.seen() {
            self.lost_upstream += u64::from(count);
        }
        let unproven = context.one_way && (old.seen() || next.tsval == 0 && next.ip_id == 0);
        self.unproven += if unproven { u64::from(count) } else { 0 };
        self.ledger.push(Loss {
            time_ns: old.time_ns,
            order: old.order,
            left,
            right,
            frame,
            cause_frame: (next.frame != 0).then_some(next.frame),
            segments: count,
            flight: f64::from(old.flight),
            rtt_s: context.srtt_s,
            reason: if old.seen() { Reason::Resent } else { Reason::IpIdGap },
            confidence: match (unproven, context.vantage) {
                (true, _) => UNPROVEN,
                (false, Vantage::Receiver) => SURE,
                (false, _) => GIVEN_UP,
            },
            by_timeout: next.cause == Reason::Rto,
        });
    }

    /// Segments that `bytes` more of a transmission make: what was sent as one is one, however it was cut later.
    fn of_pieces(&mut self, order: u64, lost: bool, bytes: u64, smss: u32) -> u32 {
        // most are settled in the order in which they were sent
        if order <= self.newest_piece {
            let mut pieces = self.pieces.iter_mut().rev();
            if let Some(piece) = pieces.find(|p| (p.0, p.1) == (order, lost)) {
                let before = segments(piece.2, smss);
                piece.2 += bytes;
                return segments(piece.2, smss) - before;
            }
        }
        self.newest_piece = self.newest_piece.max(order);
        if self.pieces.len() >= PIECES {
            self.pieces.pop_front();
        }
        self.pieces.push_back((order, lost, bytes));
        segments(bytes, smss)
    }

    #[inline(never)]
    fn give_out(&mut self, loss: &Loss, rounds: &mut Rounds, sink: &mut dyn Sink) {
        self.lost += u64::from(loss.segments);
        rounds.lost(loss.time_ns, loss.segments);
        self.loss_events.on_loss(loss, sink);
        sink.event(loss.event(self.flow));
    }

    pub fn finish(&mut self, sink: &mut dyn Sink) {
        self.loss_events.close(sink);
    }
}

impl Sender {
    pub fn context(&self) -> Context {
        Context {
            smss: self.smss,
            vantage: self.vantage,
            least_s: self.rtt.min_s,
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
