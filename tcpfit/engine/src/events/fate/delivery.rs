//! The end of a unit on the board, delivered or not: from here on it waits for the rest of the evidence.

use super::spurious::was_asked_for;
use super::waiting::Waiting;
use super::{Context, Fates};
use crate::events::loss_event::Loss;
use crate::flow::rtt::Floor;
use crate::flow::scoreboard::{segments, History, Transmission, Unit};
use crate::flow::sender::Ack;
use crate::flow::sequence::before;
use crate::rows::Reason;

/// What a delivery showed at once.
pub struct Delivered {
    /// Order of the transmission that delivered the unit.
    pub order: Option<u64>,
    /// The original had arrived although it was sent again.
    pub original: bool,
}

impl Fates {
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
        let lost = self.answers.unheard_of(&unit.copies);
        let (filler, reason) = match std::mem::take(&mut self.acks_lost) as usize {
            lost if lost > 0 && unit.copies.len() == lost + 1 => (0, Reason::AcksLost),
            _ => filler_of(&unit, lost, delivered_ns, head, filler_of_head, ack, least_ns),
        };
        let filled = unit.copies.get(filler).filter(|t| t.seen());
        let delivered = Delivered {
            order: filled.map(|t| t.order),
            original: unit.is_resent() && filler == 0 && filled.is_some() && reason == Reason::Eifel,
        };
        self.held.asked += u32::from(unit.is_resent() && was_asked_for(unit.last()));
        let unheard = reason == Reason::AcksLost;
        let needless = unit.copies.iter().enumerate().skip(filler + 1);
        for (_, t) in needless.filter(|(k, t)| t.seen() && !unheard && lost >> k & 1 == 0) {
            self.answers.expect(t.time_ns, least_ns, Some(t.order));
        }
        self.waiting.push(Waiting {
            dsacks: u32::from(unit.dsacks),
            filler: filled.map(|_| filler),
            since_ns: unit.last().time_ns.max(delivered_ns),
            unit,
            filler_reason: reason,
            ack_frame: Some(ack.frame),
            delivered_ns,
            answered_ns: 0,
            delivered: true,
            head,
            unanswered: lost,
            stretch: self.answers.stretch(),
        });
        delivered
    }

    /// The original of `late`, which was never sent again, fills a hole of its own: it came late. If what was sent right before
    /// it filled the hole below just before, within `at_once_ns`, the path had held both, and let them go together: the
    /// original came, and only seemed to be its resend.
    pub fn came_with(&mut self, late: &Unit, smss: u32, now_ns: i64, at_once_ns: i64, floor: Floor) {
        let Some(below) = self.waiting.back_mut() else { return };
        let unit = &below.unit;
        let next = unit.first().order + u64::from(segments(unit.right - unit.left, smss));
        let together = (unit.right, next) == (late.left, late.order) && now_ns - below.delivered_ns <= at_once_ns;
        let by_time = below.filler == Some(1) && below.filler_reason == Reason::Resent;
        if together && by_time && unit.copies.len() == 2 && unit.first().seen() {
            let resent = *unit.last();
            below.filler = Some(0);
            below.filler_reason = Reason::AckJump;
            self.answers.expect(resent.time_ns, floor.ns(), Some(resent.order));
        }
    }

    /// The end of a segment is acknowledged that was sent once, and what began with it was sent again with what lies below:
    /// segments arrive whole, so the original had.
    pub fn came_whole(&mut self, end: &Unit, smss: u32, least_ns: i64) {
        let mut newest = self.waiting.newest().rev();
        let Some(begun) = newest.next() else { return };
        let unit = &begun.unit;
        let one =
            (unit.right, unit.first().order) == (end.left, end.order) && end.right() - unit.left <= u64::from(smss);
        if !one || !unit.first().seen() || begun.filler == Some(0) || !begun.delivered {
            return;
        }
        begun.filler = Some(0);
        begun.filler_reason = Reason::AckJump;
        // a resend that brought what was missing below is answered for that
        let below = newest.next();
        let brought = |t: &Transmission| {
            below.as_ref().is_some_and(|w| {
                let by = w.filler.and_then(|filler| w.unit.copies.get(filler));
                w.unit.right == unit.left && by.is_some_and(|by| by.order == t.order)
            })
        };
        for t in unit.copies.iter().skip(1).filter(|t| t.seen() && !brought(t)) {
            self.answers.expect(t.time_ns, least_ns, Some(t.order));
        }
    }

    /// A copy of data that had arrived before was lost before the capture point, as the frame shows; it may still come late.
    pub fn lost_copy(&mut self, left: u64, right: u64, lost: Transmission, frame: u64) {
        // of the copy that arrived no more is known
        let arrived = Transmission {
            frame,
            order: 0,
            ..lost
        };
        self.waiting.push(Waiting {
            unit: History {
                left,
                right,
                sacked_ns: 0,
                discarded: false,
                dsacks: 0,
                copies: vec![arrived, lost],
            },
            filler: Some(0),
            filler_reason: Reason::Resent,
            ack_frame: Some(frame),
            delivered_ns: lost.time_ns,
            answered_ns: 0,
            since_ns: lost.time_ns,
            dsacks: 0,
            delivered: true,
            head: false,
            unanswered: 0,
            stretch: 0,
        });
    }

    /// The guess that a copy of data which had arrived was the transmission `order` was wrong.
    pub fn forget(&mut self, order: u64) {
        for w in self.waiting.iter_mut() {
            w.forget(order);
        }
    }

    /// The flow ended with the unit outstanding, of which there is more to say than that it was sent once.
    pub fn on_undelivered(&mut self, unit: History) {
        self.end(unit, None, Reason::Resent);
    }

    /// The same, and its last copy should have been answered.
    pub fn on_unanswered(&mut self, unit: History) {
        self.end(unit, None, Reason::NotResent);
    }

    /// The same, and the receiver has it, from its first transmission.
    pub fn on_held(&mut self, unit: History) {
        self.end(unit, Some(0), Reason::AckJump);
    }

    fn end(&mut self, unit: History, filler: Option<usize>, filler_reason: Reason) {
        let last_ns = unit.last().time_ns;
        self.waiting.push(Waiting {
            delivered_ns: last_ns,
            answered_ns: 0,
            since_ns: last_ns,
            unit,
            filler,
            filler_reason,
            ack_frame: None,
            dsacks: 0,
            delivered: false,
            head: false,
            unanswered: 0,
            stretch: 0,
        });
    }

    /// The flow ended with the unit outstanding, which was sent once and must have been lost.
    pub fn not_resent(&mut self, unit: &Unit, (reason, confidence): (Reason, f64), context: &Context) {
        let count = self
            .pieces
            .count(unit.order, true, u64::from(unit.length), context.smss);
        if count == 0 {
            return;
        }
        self.ledger.push(Loss {
            time_ns: unit.time_ns,
            order: unit.order,
            left: unit.left,
            right: unit.right(),
            frame: unit.first_seen().then_some(unit.frame),
            cause_frame: None,
            segments: count,
            flight: f64::from(unit.flight),
            rtt_s: context.srtt_s,
            reason,
            confidence,
            by_timeout: false,
        });
    }
}

/// The transmission that delivered the unit, if one was seen: the last that nothing rules out; and what rules out the next. Of
/// the `lost`, a bit each, none did.
fn filler_of(
    unit: &History,
    lost: u64,
    delivered_ns: i64,
    head: bool,
    filler_of_head: u64,
    ack: &Ack,
    least_ns: i64,
) -> (usize, Reason) {
    let held = unit.sacked_ns == 0 && filler_of_head != u64::MAX;
    let (mut filler, mut reason) = (0, Reason::Resent);
    for (k, t) in unit.copies.iter().enumerate() {
        if !t.seen() {
            continue;
        }
        // what fills a hole is echoed (RFC 7323, 4.3): data above it are not
        let echo = ack
            .tsecr
            .filter(|_| t.tsval != 0 && k > 0 && head && unit.sacked_ns == 0);
        if echo.is_some_and(|echo| before(echo, t.tsval)) {
            return (filler, Reason::Eifel);
        }
        // a flow's least round trip so far may be longer than its path's
        if k > 0 && delivered_ns - t.time_ns < least_ns && echo != Some(t.tsval) {
            return (filler, Reason::TooEarly);
        }
        if k > 0 && held && t.order > filler_of_head {
            return (filler, Reason::AckJump);
        }
        if lost >> k & 1 != 0 {
            reason = Reason::AckJump;
            continue;
        }
        (filler, reason) = (k, Reason::Resent);
    }
    (filler, reason)
}
