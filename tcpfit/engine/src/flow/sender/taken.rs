//! What an ACK that moves the left edge takes off the board, and what it tells of that: the round trip, and which copy came.

use super::{Ack, Sender, LOOKED_AT};
use crate::flow::scoreboard::{segments, History, Unit};
use crate::rows::{Phase, Sink, Vantage};

/// What an ACK that moved the left edge has covered so far.
#[derive(Default)]
struct Taken {
    /// Nothing yet: the next unit is the head.
    head: bool,
    /// Karn: no sample from resent data; the oldest unit never resent is the estimator's.
    oldest: Option<i64>,
    resent: bool,
    /// When the resend was sent whose timestamp the ACK echoes, and that.
    echoed: Option<(i64, u32)>,
}

/// Least round trips that an answer takes to a segment that others may have overtaken, by a queue or because it was held.
const HELD: f64 = 1.0625;

impl Sender {
    /// Takes off what most ACKs cover, if nothing is known to have come out of order: units sent once, of which nothing has
    /// been heard, nor of anything beyond. When the oldest and the newest of them were sent.
    #[inline]
    pub(super) fn take_plain(&mut self, to: u64, heard: u64) -> Option<(i64, i64)> {
        let units = self.board.units.first_near();
        let oldest = units
            .first()
            .filter(|u| u.left >= heard && self.unexplained_acks == 0)?;
        let oldest_ns = oldest.time_ns;
        let (taken, _, newest_ns) = self.take_run(to, false);
        (taken > 0).then_some((oldest_ns, newest_ns))
    }

    /// Takes off the first units up to `to`, as far as they lie side by side, were sent once, and SACK blocks had covered
    /// them, or had not. How many units and segments, and when the last was sent.
    #[inline(always)]
    fn take_run(&mut self, to: u64, sacked: bool) -> (usize, u32, i64) {
        let (mut taken, mut count, mut newest) = (0, 0, self.delivered_order);
        let mut newest_ns = 0;
        for unit in self.board.units.first_near() {
            if unit.right() > to || (unit.sacked_ns != 0) != sacked || !unit.is_plain() {
                break;
            }
            taken += 1;
            count += unit.segments(self.smss);
            newest = newest.max(unit.order);
            newest_ns = unit.time_ns;
        }
        self.delivered_order = newest;
        self.outstanding = self.outstanding.saturating_sub(count);
        self.board.units.skip_front(taken);
        (taken, count, newest_ns)
    }

    /// Takes off all that the ACK covers, after what `take_plain` took. When the unit was sent that a sample of the round
    /// trip is of; without one, when the resend was sent whose timestamp the ACK echoes, and that.
    #[inline(never)]
    pub(super) fn take_any(
        &mut self,
        ack: &Ack,
        heard: u64,
        oldest_ns: Option<i64>,
        sink: &mut dyn Sink,
    ) -> (Option<i64>, Option<(i64, u32)>) {
        let mut taken = Taken {
            head: oldest_ns.is_none(),
            oldest: oldest_ns,
            ..Taken::default()
        };
        let least_ns = self.rtt.floor().ns();
        let mut filler = u64::MAX;
        let mut held = if self.sack { 0 } else { self.unexplained_acks };
        let mut below = self.board.below(ack.ack);
        let mut alone = false;
        if !self.sack && taken.head && self.resends_under_way() {
            self.note_held(below, ack.time_ns);
            alone = self
                .fates
                .answers
                .one_has_come(segments(ack.ack - self.una, self.smss), self.smss);
        }
        self.outstanding += self.board.take_more();
        let single = below == 1
            && self
                .board
                .units
                .front()
                .is_some_and(|unit| unit.segments(self.smss) == 1);
        while below > 0 {
            if self.sacked > 0 {
                // a filled hole sets free what SACK blocks had covered above it
                let (units, count, _) = self.take_run(ack.ack, true);
                self.sacked = self.sacked.saturating_sub(count);
                if units > 0 {
                    below -= units;
                    taken.head = false;
                    continue;
                }
            }
            let Some(unit) = self.board.units.pop_front() else {
                break;
            };
            below -= 1;
            let head = std::mem::take(&mut taken.head);
            let count = unit.segments(self.smss);
            self.outstanding = self.outstanding.saturating_sub(count);
            if taken.resent && unit.is_plain() {
                self.fates.came_whole(&unit, self.smss, least_ns);
            }
            // what most are, here too: sent once, and nothing has been heard of them or beyond
            let unheard = unit.sacked_ns == 0 && unit.left >= heard && self.unexplained_acks == 0;
            if unheard && unit.is_plain() {
                self.delivered_order = self.delivered_order.max(unit.order);
                taken.oldest.get_or_insert(unit.time_ns);
                continue;
            }
            if unit.sacked_ns != 0 {
                self.sacked = self.sacked.saturating_sub(count);
            }
            if unit.sacked_ns == 0 && (unit.left < heard || head && self.unexplained_acks > 0 || unit.is_resent()) {
                self.on_overtaken(&unit, ack, heard);
            }
            if unit.is_plain() {
                self.delivered_order = self.delivered_order.max(unit.order);
                if head && !self.sack && self.phase == Phase::Recovery {
                    self.on_late_original(&unit, ack);
                }
                if unit.sacked_ns == 0 {
                    taken.oldest.get_or_insert(unit.time_ns);
                }
            } else {
                taken.resent |= unit.is_resent();
                let history = self.board.history(unit);
                if let Some(echo) = ack.tsecr.filter(|_| self.timestamps) {
                    let mut echoed = history.copies.iter().rev().filter(|t| t.seen() && t.tsval == echo);
                    if let Some(t) = echoed.next() {
                        // a later copy may have brought the answer: the sender does not know (RFC 7323, 4.1), and its timer follows
                        taken.echoed = Some((t.time_ns, echo));
                        // no earlier one can have: it bounds the path's round trip for what comes next
                        if head && self.vantage == Vantage::Sender && unit.sacked_ns == 0 && echoed.next().is_none() {
                            self.rtt.least((ack.time_ns - t.time_ns) as f64 / 1e9);
                        }
                    }
                }
                if head && !self.sack && self.vantage == Vantage::Sender {
                    self.on_hole_filled(&history, count, ack);
                }
                let delivered_ns = if unit.sacked_ns != 0 {
                    unit.sacked_ns
                } else {
                    ack.time_ns
                };
                let before = if (held > 0 || alone) && !head { filler } else { u64::MAX };
                let floor = self.rtt.floor().at_most(self.path_least_s());
                let this = self.fates.on_delivered(history, delivered_ns, head, before, ack, floor);
                if let Some(order) = this.order {
                    self.delivered_order = self.delivered_order.max(order);
                    if head {
                        filler = order;
                    }
                }
                if this.original && self.timestamps && head {
                    self.on_eifel(ack, sink);
                }
            }
            // sent too late to have brought one of the duplicate ACKs: the receiver got it in order
            if !head && unit.time_ns + least_ns <= self.duplicates.held_ns {
                held = held.saturating_sub(count);
            }
        }
        self.count_steps(single);
        // one segment filled the hole, each of the others it released had brought a duplicate ACK
        if held < self.unexplained_acks {
            self.explain(held);
            if held == 0 {
                self.end_unexplained();
            }
        }
        if held > 0 && taken.resent && !self.sack {
            self.answer_copies(ack);
        }
        if taken.resent {
            (None, taken.echoed)
        } else {
            (taken.oldest, None)
        }
    }

    /// Without SACK: the ACK covers the head, which was sent again. The echo tells what filled the hole (RFC 7323, 4.3).
    #[inline(never)]
    fn on_hole_filled(&mut self, head: &History, count: u32, ack: &Ack) {
        let by = ack.tsecr.filter(|_| self.timestamps).and_then(|echo| {
            let mut newest = head.copies.iter().skip(1).rev();
            newest.find(|t| t.seen() && t.tsval == echo)
        });
        // what was sent after it can have come before it only if it took longer than the way takes
        let heard_ns = ack.time_ns - self.round_trips_ns(HELD);
        let newest = self.board.units.iter().rev().take(LOOKED_AT);
        let newest = newest.take_while(|u| by.is_some_and(|t| u.order > t.order));
        let after = newest.filter(|u| u.time_ns <= heard_ns);
        let after = after.map(|u| u64::from(u.segments(self.smss))).sum();
        self.fates.answers.on_filled(by, count, after, ack.time_ns);
    }

    /// Without SACK: what is left of the duplicate ACKs where the first resend of a stretch has just filled the hole came
    /// before that could answer anything, and nothing outstanding has brought it: it has answered what the path copied, or an
    /// original of a stretch before.
    #[inline(never)]
    fn answer_copies(&mut self, ack: &Ack) {
        let least_ns = self.rtt.floor().ns();
        let held_ns = self.duplicates.held_ns;
        let may_be_held = self
            .board
            .units
            .front()
            .is_some_and(|u| u.time_ns + least_ns <= held_ns);
        if may_be_held || !self.fates.answers.first_was_needed() {
            return;
        }
        let (count, now) = (std::mem::take(&mut self.unexplained_acks), self.moment(ack.time_ns));
        self.fates.on_lone_answers(count, &now);
        self.end_unexplained();
    }

    /// Without SACK, in a recovery: the head that an ACK covers was never sent again.
    #[inline(never)]
    fn on_late_original(&mut self, unit: &Unit, ack: &Ack) {
        // with timestamps the echo says which copy came
        if self.timestamps || self.vantage != Vantage::Sender || ack.ack >= self.episodes.recover {
            return;
        }
        let (smss, at_once_ns, floor) = (self.smss, self.clock_tolerance_ns(), self.rtt.floor());
        if let Some(fates) = self.fates.changed() {
            fates.came_with(unit, smss, ack.time_ns, at_once_ns, floor);
        }
    }
}
