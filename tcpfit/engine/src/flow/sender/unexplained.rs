//! Without SACK: duplicate ACKs that nothing held above a hole explains were answers to copies of data that had arrived.

use super::{Ack, Sender, LOOKED_AT};
use crate::events::answers::{Filling, Moment};
use crate::events::fate::Fates;
use crate::events::lone_answers::LoneAnswer;
use crate::flow::scoreboard::Unit;
use crate::rows::{Phase, Vantage};

/// Unexplained duplicate ACKs that are remembered.
const LONE: usize = 64;
/// For each duplicate ACK, segments that are acknowledged one by one before it is taken for the answer to a copy.
const STEPS: u32 = 8;
/// What comes so much later than the usual round trip has waited for another segment.
const LATE_ANSWER_NS: i64 = 20_000_000;
/// Round trips after the last resend until answers to needless copies have come.
const QUIET_ROUND_TRIPS: f64 = 1.5;

impl Sender {
    /// Without SACK: an ACK that moves nothing came because of data above a hole, unless it answers a copy.
    #[inline(never)]
    pub(super) fn count_unexplained(&mut self, ack: &Ack, duplicate: bool) {
        if self.is_window_update(ack) {
            return;
        }
        let (srtt_s, least_ns) = (self.rtt.srtt_s, self.rtt.floor().ns());
        let due = self.fates.changed();
        if due.is_some_and(|fates| fates.answers.take(ack.time_ns, srtt_s, least_ns)) {
            return;
        }
        if self.unexplained_acks == 0 && self.phase == Phase::Open {
            self.duplicates.first_ns = ack.time_ns;
        }
        self.unexplained_acks += 1;
        self.duplicates.steps = 0;
        if duplicate && self.fates.answers.under_way().is_none() && self.duplicates.lone.len() < LONE {
            let (time_ns, frame, nxt) = (ack.time_ns, ack.frame, self.nxt);
            self.duplicates.lone.push_back(LoneAnswer { time_ns, frame, nxt });
        }
        self.duplicates.held_to = self.nxt;
        self.duplicates.held_ns = ack.time_ns;
    }

    /// An answer to a segment may move the window a little; an update alone comes when it has doubled at least (Linux), or by half
    /// the receiver's buffer (RFC 9293, 3.8.6.2.2), as far as the field can say.
    fn is_window_update(&self, ack: &Ack) -> bool {
        match (ack.window, self.window) {
            (Some(window), Some(before)) => {
                let more = window.saturating_sub(before);
                more > 0 && more >= if ack.field == u16::MAX { before / 2 } else { before }
            }
            (Some(_), None) => true,
            (None, _) => ack.field != self.window_field,
        }
    }

    /// Without SACK: what an ACK at `now_ns`, which covers so many units, shows of what the receiver held before.
    #[inline(never)]
    pub(super) fn note_held(&mut self, units: usize, now_ns: i64) {
        let (board, least_ns) = (&self.board, self.rtt.floor().ns());
        let Some((first, last)) = board.units.get(0).zip(board.units.get(units - 1)) else {
            return;
        };
        // a resend that can have been answered by now
        let heard = |unit: &Unit| {
            let resent = board.resends(unit).iter().rev();
            resent.copied().find(|t| t.time_ns + least_ns <= now_ns)
        };
        let filler = heard(first);
        // its first transmission came
        let had_come = heard(last).is_none() && filler.is_some_and(|copy| last.order < copy.order);
        let filling = match (filler, units == 1 || had_come) {
            (None, _) => Filling::No,
            (Some(_), false) => Filling::Perhaps,
            (Some(_), true) => Filling::Hole,
        };
        // the resend was the last that was sent, and its answer waited for no queue
        let last_copy = board.last(first);
        let took_ns = now_ns - last_copy.time_ns;
        let alone = first.is_resent() && last_copy.order + u64::from(first.segments(self.smss)) == self.order;
        let late = alone
            && self.unexplained_acks as usize >= units
            && took_ns > (self.rtt.srtt_s * 1e9) as i64 + LATE_ANSWER_NS;
        if self.has_few_answers_for(units) {
            self.fates.acks_lost = board.resends(first).len() as u16;
        }
        let held_ns = (units > 2 && had_come).then_some(last.time_ns + least_ns);
        let answers = &mut self.fates.answers;
        answers.on_filling(filling, late);
        if let Some(held_ns) = held_ns {
            answers.on_held(held_ns);
        }
    }

    /// At the sender, nothing but numbers tells of ACKs that were lost: the first segment was not, if the receiver has sent fewer
    /// packets since the last that came than those above it would have brought from above a hole. Each of these was sent once,
    /// since that packet came and before the first was sent again.
    fn has_few_answers_for(&self, units: usize) -> bool {
        let Some(first) = self
            .board
            .units
            .front()
            .filter(|_| self.vantage == Vantage::Sender && !self.timestamps)
        else {
            return false;
        };
        let again = self.board.resends(first).first().map_or(0, |t| t.order);
        let above = self.board.units.iter().take(units.min(LOOKED_AT)).skip(1);
        let above = above.filter(|u| u.is_plain() && u.order < again && u.time_ns > self.last_ack_ns);
        let above = above.map(|unit| unit.segments(self.smss)).sum();
        self.fates.answers.are_too_few_for(above, self.smss)
    }

    /// Without SACK: what is left of duplicate ACKs when data that brought them cannot be held any longer.
    #[inline(never)]
    pub(super) fn close_unexplained(&mut self, now_ns: i64) {
        while let Some(&answer) = self.duplicates.lone.front().filter(|answer| answer.nxt <= self.una) {
            // no ACK has jumped over what would have been held: some copy was answered
            self.duplicates.lone.pop_front();
            self.unexplained_acks = self.unexplained_acks.saturating_sub(1);
            let now = self.moment(now_ns);
            self.fates.on_lone_answer(Some(&answer), &now);
        }
        if self.resends_under_way() {
            let (acks, bytes) = (self.totals.acks, self.totals.acked_bytes);
            let answers = &mut self.fates.answers;
            answers.on_counted(now_ns, acks, bytes, self.smss);
            answers.take_together(now_ns, self.rtt.srtt_s);
            self.close_stretch(now_ns);
        } else if self.una >= self.duplicates.held_to {
            self.unexplained_acks = 0;
        }
        if self.unexplained_acks == 0 {
            self.end_unexplained();
        }
    }

    /// Without SACK: after a duplicate ACK the left edge moves by a segment each time. Where something is held above a hole it
    /// jumps when the hole is filled, and few segments make up a hole that one has overtaken; some copy was answered.
    pub(super) fn count_steps(&mut self, single: bool) {
        if self.unexplained_acks == 0 {
            return;
        }
        self.duplicates.steps = if single { self.duplicates.steps + 1 } else { 0 };
        if self.duplicates.steps <= STEPS.saturating_mul(self.unexplained_acks) || self.resends_under_way() {
            return;
        }
        let lone = std::mem::take(&mut self.duplicates.lone);
        let copies = lone.len().min(self.unexplained_acks as usize);
        for answer in lone.iter().take(copies) {
            let now = self.moment(self.last_advance_ns);
            self.fates.on_lone_answer(Some(answer), &now);
        }
        self.unexplained_acks -= copies as u32;
        if self.unexplained_acks == 0 {
            self.end_unexplained();
        }
    }

    /// An ACK has released data that had brought all but `left` of the unexplained duplicate ACKs.
    pub(super) fn explain(&mut self, left: u32) {
        let explained = (self.unexplained_acks - left) as usize;
        self.unexplained_acks = left;
        let lone = &mut self.duplicates.lone;
        lone.drain(..explained.min(lone.len()));
        if let Some(reordering) = self.reordering.changed() {
            reordering.explain();
        }
    }

    pub(super) fn end_unexplained(&mut self) {
        if let Some(duplicates) = self.duplicates.changed() {
            duplicates.lone.clear();
        }
        if let Some(reordering) = self.reordering.changed() {
            reordering.forget_unexplained();
        }
    }

    /// Without SACK: a packet of the receiver comes, which sent as many before that did not come as `skipped` tells; to answer data,
    /// unless the sender has `ended` with a FIN.
    #[inline(never)]
    pub fn count_skipped(&mut self, ended: bool, now_ns: i64, skipped: impl Fn() -> Option<u16>) {
        if self.resends_under_way() {
            let now = (now_ns, self.rtt.srtt_s);
            self.fates.answers.on_numbered(skipped(), !ended, now);
        } else if let Some(missing) = skipped() {
            self.acks_missing = self.acks_missing.saturating_add(missing.into());
        }
    }

    /// Without SACK: a stretch of resends is under way.
    pub(super) fn resends_under_way(&self) -> bool {
        let under_way = |fates: &Fates| fates.answers.under_way().is_some();
        self.fates.get().is_some_and(under_way)
    }

    /// What a stretch of resends is judged by that begins or ends at `time_ns`.
    pub(super) fn moment(&self, time_ns: i64) -> Moment {
        Moment {
            time_ns,
            srtt_s: self.rtt.srtt_s,
            least_ns: self.rtt.floor().ns(),
            smss: self.smss,
            order: self.order,
            outstanding: self.outstanding,
            held: self.unexplained_acks,
            acks: self.totals.acks,
            bytes: self.totals.acked_bytes,
            missing: u64::from(self.acks_missing),
        }
    }

    /// Without SACK: a stretch of resends is over, a round trip after the last of them, when everything is acknowledged
    /// that was under way at the last duplicate ACK. The duplicate ACKs that nothing held explains were answers to copies
    /// of data that had arrived (RFC 5681, 4.2: those are acknowledged at once), so as many resends were not needed.
    fn close_stretch(&mut self, now_ns: i64) {
        let quiet_s = self.rtt.srtt_s * QUIET_ROUND_TRIPS;
        let explained = self.una >= self.duplicates.held_to;
        if self.phase == Phase::Open && explained && self.fates.answers.is_quiet(self.una, now_ns, quiet_s) {
            let now = self.moment(now_ns);
            self.fates
                .close_stretch(self.unexplained_acks, self.duplicates.held_ns, &now);
            self.unexplained_acks = 0;
        }
    }
}
