//! The verdict on a unit whose evidence is in: each transmission that did not arrive is lost, each arrival beyond the
//! first was needless.

use super::pieces::Needless;
use super::waiting::Waiting;
use super::{CalledLost, Context, Fates, Original, PIECES};
use crate::events::loss_event::Loss;
use crate::events::reordering::tells_by_acks;
use crate::flow::scoreboard::{segments, History, Transmission, KEPT};
use crate::rows::{Reason, Sink, Vantage};

/// Confidence of a fate that the capture shows.
const SURE: f64 = 0.95;
/// Confidence of a loss that only the sender's own resends say.
const GIVEN_UP: f64 = 0.6;
/// Confidence of a loss that may as well have been a late arrival.
const DOUBTFUL: f64 = 0.5;
/// Confidence that a needless copy was lost, which its answer may have been instead.
const UNANSWERED: f64 = 0.7;
/// Without ACKs a resend alone says so.
const UNPROVEN: f64 = 0.5;

/// What became of the transmissions of a unit.
struct Verdict<'a> {
    waiting: &'a Waiting,
    /// Of each transmission, whether it was lost.
    lost: [bool; KEPT],
    confidence: f64,
    /// What says which transmission delivered the unit.
    filler: Option<usize>,
    filler_reason: Reason,
    doubtful: bool,
}

impl<'a> Verdict<'a> {
    fn of(waiting: &'a Waiting, context: &Context, dsack_seen: bool) -> Self {
        let unit = &waiting.unit;
        let (filler, filler_reason) = waiting.filled_by(context.least_s);
        let mut verdict = Self {
            waiting,
            lost: [false; KEPT],
            confidence: SURE,
            filler,
            filler_reason,
            doubtful: is_doubtful(unit),
        };
        if context.vantage == Vantage::Receiver || unit.copies.iter().any(|t| !t.seen()) {
            verdict.lose_unseen();
        }
        if context.vantage == Vantage::Receiver {
            return verdict;
        }
        if waiting.dsacks > 0 || unit.discarded || (dsack_seen && waiting.delivered && context.sack) {
            verdict.lose_unreported(filler);
        } else if let Some(filler) = filler {
            verdict.lose_first(filler);
            let guessed = matches!(filler_reason, Reason::AckJump | Reason::AcksLost | Reason::Answered);
            verdict.confidence = if guessed { 0.7 } else { 0.9 };
        } else {
            // never acknowledged: all but the last were given up by the sender, which may not have come to it
            let spared = usize::from(filler_reason != Reason::NotResent);
            verdict.lose_first(unit.copies.len() - spared);
            verdict.confidence = GIVEN_UP;
        }
        verdict
    }

    /// What did not pass the capture point was lost before it.
    fn lose_unseen(&mut self) {
        for (lost, t) in self.lost.iter_mut().zip(&self.waiting.unit.copies) {
            *lost = !t.seen();
        }
    }

    /// Each DSACK is one arrival beyond the first; the rest of the copies did not arrive. What was dropped for its timestamp was
    /// the original.
    fn lose_unreported(&mut self, filler: Option<usize>) {
        let unit = &self.waiting.unit;
        let seen = unit.copies.iter().filter(|t| t.seen()).count();
        let arrived = 1 + self.waiting.dsacks as usize + usize::from(unit.discarded);
        let by_time = filler.unwrap_or(usize::MAX);
        let mut to_lose = seen.saturating_sub(arrived).min(by_time);
        for (k, t) in unit.copies.iter().enumerate().skip(usize::from(unit.discarded)) {
            if t.seen() && to_lose > 0 {
                self.lost[k] = true;
                to_lose -= 1;
            }
        }
    }

    fn lose_first(&mut self, count: usize) {
        for lost in self.lost.iter_mut().take(count) {
            *lost = true;
        }
    }

    fn arrived(&self, k: usize) -> bool {
        self.waiting.unit.copies[k].seen() && !self.lost[k]
    }

    /// A copy that was needless was lost on its way: nothing answered it.
    fn is_lost_copy(&self, k: usize, context: &Context) -> bool {
        let unanswered = self.waiting.unanswered & (1 << k) != 0 && context.vantage == Vantage::Sender;
        unanswered && self.filler.is_some_and(|filler| k > filler)
    }

    fn next(&self, k: usize) -> Option<&Transmission> {
        self.waiting.unit.copies.get(k + 1)
    }

    /// That the transmission `k` was lost, only a resend says.
    fn is_unproven(&self, k: usize, context: &Context) -> bool {
        // a hole alone could have been filled late, where nothing tells the order of sending
        let ordered = self.next(k).is_some_and(|n| n.tsval != 0 || n.ip_id != 0);
        context.one_way && (self.waiting.unit.copies[k].seen() || !ordered)
    }

    /// The loss of the transmission `k`, as far as it was not counted before.
    fn loss(&self, k: usize, count: u32, unproven: bool, context: &Context) -> Loss {
        let unit = &self.waiting.unit;
        let (t, next) = (&unit.copies[k], self.next(k));
        // a resend that no number speaks for, only that the sender must have made it
        let inferred = k > 0 && !t.seen() && (t.doubtful || next.is_some_and(|n| n.seen() && n.ip_id == 0));
        Loss {
            time_ns: t.time_ns,
            order: t.order,
            left: unit.left,
            right: unit.right,
            frame: (t.frame != 0).then_some(t.frame),
            cause_frame: next.map(|n| n.frame).filter(|&f| f != 0).or(self.waiting.ack_frame),
            segments: count,
            flight: f64::from(t.flight),
            rtt_s: context.srtt_s,
            reason: match (t.seen(), k, next) {
                _ if !self.lost[k] => Reason::Unanswered,
                (true, _, None) => Reason::NotResent,
                (true, _, _) => Reason::Resent,
                (false, 0, Some(_)) => Reason::Hole,
                (false, 0, None) => Reason::NeverArrived,
                (false, _, Some(_)) if inferred => Reason::Hole,
                (false, _, _) => Reason::IpIdGap,
            },
            confidence: match (unproven, self.doubtful && k == 0) {
                (true, _) => UNPROVEN,
                (false, true) => DOUBTFUL,
                _ if !self.lost[k] => UNANSWERED,
                (false, false) if inferred => self.confidence.min(GIVEN_UP),
                (false, false) => self.confidence,
            },
            by_timeout: next.is_some_and(|n| n.cause == Reason::Rto),
        }
    }

    /// What says that transmissions were needless.
    fn spurious_reason(&self, vantage: Vantage) -> Reason {
        match (self.waiting.dsacks > 0, vantage) {
            (true, _) => Reason::Dsack,
            (_, Vantage::Receiver) => Reason::SeenTwice,
            _ if self.waiting.unit.discarded => Reason::Discarded,
            _ => self.filler_reason,
        }
    }
}

/// A late first copy, and then its resend, look the same as a loss and two resends.
fn is_doubtful(unit: &History) -> bool {
    let mut arrived = unit.copies.iter().filter(|t| t.seen());
    !unit.first().seen() && arrived.next().is_some_and(|t| t.doubtful) && arrived.next().is_some()
}

impl Fates {
    pub(super) fn verdict(&mut self, waiting: &Waiting, context: &Context, sink: &mut dyn Sink) {
        let unit = &waiting.unit;
        let count = segments(unit.right - unit.left, context.smss);
        if waiting.delivered && !unit.seen() {
            // acknowledged although no copy passed: it did, and the capture missed it
            self.missing += u64::from(count);
            return;
        }
        let verdict = Verdict::of(waiting, context, self.dsack_seen);
        if verdict.lost[0] && waiting.delivered && context.sack && context.vantage == Vantage::Sender {
            self.called_lost.truncate(PIECES - 1);
            self.called_lost.push_front(CalledLost {
                left: unit.left,
                right: unit.right,
                segments: count,
                since_ns: waiting.since_ns,
            });
        }
        self.doubtful += if verdict.doubtful { u64::from(count) } else { 0 };
        self.count_lost(&verdict, context);
        let original_arrived = self.count_needless(&verdict, context, sink);
        if tells_by_acks(context.vantage) && unit.is_resent() {
            self.originals.push(Original {
                order: unit.first().order,
                left: unit.left,
                arrived: original_arrived,
                ack_frame: waiting.ack_frame,
                answered_ns: waiting.answered_ns,
                confidence: verdict.confidence,
            });
        }
    }

    /// Every transmission that did not arrive is a loss of its own.
    fn count_lost(&mut self, verdict: &Verdict, context: &Context) {
        let unit = &verdict.waiting.unit;
        let lost = |&(k, _): &(usize, &Transmission)| verdict.lost[k] || verdict.is_lost_copy(k, context);
        for (k, t) in unit.copies.iter().enumerate().filter(lost) {
            let count = self.pieces.count(t.order, true, unit.right - unit.left, context.smss);
            if count == 0 {
                continue;
            }
            let unproven = verdict.is_unproven(k, context);
            if unproven {
                self.unproven += u64::from(count);
            }
            self.ledger.push(verdict.loss(k, count, unproven, context));
            if !t.seen() {
                self.lost_upstream += u64::from(count);
            }
        }
    }

    /// Every arrival beyond the first is needless, the last ones first. What shows that the original arrived, if it did.
    fn count_needless(&mut self, verdict: &Verdict, context: &Context, sink: &mut dyn Sink) -> Option<Reason> {
        let unit = &verdict.waiting.unit;
        let copies = &unit.copies;
        self.close_parts(
            unit.left,
            context.smss,
            |order| copies.iter().any(|t| t.order == order),
            sink,
        );
        let arrived = (0..copies.len()).filter(|&k| verdict.arrived(k)).count();
        let mut beyond_first = arrived.saturating_sub(1);
        let mut original_arrived = None;
        for (k, t) in copies.iter().enumerate().skip(1).rev() {
            let needless = (beyond_first > 0 && verdict.arrived(k)).then(|| {
                beyond_first -= 1;
                let reason = verdict.spurious_reason(context.vantage);
                original_arrived = (!verdict.lost[0]).then_some(reason);
                Needless {
                    time_ns: t.time_ns,
                    left: unit.left,
                    right: unit.right,
                    frame: (t.frame != 0).then_some(t.frame),
                    ack_frame: verdict.waiting.ack_frame,
                    reason,
                    confidence: verdict.confidence,
                }
            });
            self.parts.settle(t.order, (unit.left, unit.right), needless);
        }
        original_arrived
    }

    /// Resends of which the next unit to be settled, from `left` on, has no part have been needless, or have not.
    pub(super) fn close_parts(&mut self, left: u64, smss: u32, is_part: impl Fn(u64) -> bool, sink: &mut dyn Sink) {
        for (order, needless) in self.parts.close(left, smss, is_part) {
            let count = self.pieces.count(order, false, needless.right - needless.left, smss);
            if count > 0 {
                self.spurious += u64::from(count);
                self.spurious_event(&needless, count, sink);
            }
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
        let count = self.pieces.count(old.order, !arrived, right - left, context.smss);
        if count == 0 {
            return;
        }
        let frame = (old.frame != 0).then_some(old.frame);
        if arrived {
            self.spurious += u64::from(count);
            let needless = Needless {
                time_ns: old.time_ns,
                left,
                right,
                frame,
                ack_frame: None,
                reason: Reason::SeenTwice,
                confidence: SURE,
            };
            self.spurious_event(&needless, count, sink);
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
}
