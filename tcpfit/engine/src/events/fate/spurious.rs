//! Needless resends: what DSACKs and answered copies say of them, and the event of each.

use super::pieces::Needless;
use super::waiting::Waiting;
use super::{CalledLost, Fates, Held, PIECES};
use crate::events::answers::{Moment, Stretch};
use crate::events::lone_answers::LoneAnswer;
use crate::flow::rtt::Floor;
use crate::flow::scoreboard::{segments, History, Scoreboard, Transmission};
use crate::flow::sender::{Ack, Sent, LOOKED_AT};
use crate::flow::sequence::offset;
use crate::rows::{EventRow, Kind, Phase, Reason, Sink};
use std::collections::BTreeSet;

/// How much more often originals must come late, as few of them come right behind the resends.
const HELD_ODDS: u64 = 8;

/// How much longer than it was seen to, the path may hold a packet back.
const HELD_LONGER: f64 = 1.25;
/// What waits longer keeps all that came later waiting, too.
const LONGEST_HELD_NS: i64 = 10_000_000_000;

/// Why a resend of a stretch may not have been needed, the surest first.
#[derive(Clone, Copy)]
enum Doubt {
    Late,
    Unheard,
    Above,
    Head,
}

impl Fates {
    /// The receiver reports that [left, right) arrived twice (RFC 2883, 4); `order` is that of the next transmission. True if it
    /// was sent twice.
    #[inline(never)]
    pub fn on_dsack(
        &mut self,
        left: u64,
        right: u64,
        ack: &Ack,
        order: u64,
        floor: Floor,
        board: &mut Scoreboard,
    ) -> bool {
        self.dsack_seen = true;
        // a resend of what had been acknowledged, if a round trip has passed since
        let least_ns = floor.ns();
        let answered =
            |&(from, to, time_ns): &(u64, u64, i64)| from < right && left < to && ack.time_ns - time_ns >= least_ns;
        if let Some(n) = self.unneeded.iter().position(answered) {
            self.unneeded.remove(n);
            return false;
        }
        // where the path makes copies, the one that comes right behind a needed resend is such a copy, or a late original
        let path_copies = self.answers.path_makes_copies();
        let copied = !self.held.come_late_more_often(self.answers.all_path_copies(), order);
        let behind = |last: &Transmission, delivered_ns: i64| {
            path_copies && ack.time_ns - delivered_ns < least_ns / 4 && delivered_ns - last.time_ns >= least_ns
        };
        let covers = |unit: &History| unit.left < right && left < unit.right;
        let mut resent = false;
        for w in self.waiting.iter_mut().filter(|w| covers(&w.unit)) {
            resent = true;
            let behind = behind(w.unit.last(), w.delivered_ns);
            self.held.late += u32::from(!behind && was_asked_for(w.unit.last()));
            if !behind || !copied {
                w.dsacks += 1;
                w.ack_frame = Some(ack.frame);
            }
        }
        board.cut(left, right);
        board.resent(left, right, LOOKED_AT, |unit, last| {
            resent = true;
            let behind = unit.sacked_ns != 0 && behind(last, unit.sacked_ns);
            self.held.late += u32::from(!behind && was_asked_for(last));
            if !behind || !copied {
                unit.dsacks = unit.dsacks.saturating_add(1);
            }
        });
        if !resent && !self.came_after_all(left, right, ack.time_ns) {
            self.answers.on_path_copy();
        }
        resent
    }

    /// What has come twice was called lost before that: the path holds packets back for longer than others do. From now on units
    /// wait for as long. False if no such unit is known.
    fn came_after_all(&mut self, left: u64, right: u64, now_ns: i64) -> bool {
        let covered = |unit: &CalledLost| unit.left < right && left < unit.right;
        let found = self.called_lost.iter().position(covered);
        let Some(unit) = found.and_then(|n| self.called_lost.remove(n)) else {
            return false;
        };
        self.doubtful += u64::from(unit.segments);
        let held_ns = (now_ns - unit.since_ns) as f64 * HELD_LONGER;
        self.held_ns = self.held_ns.max((held_ns as i64).min(LONGEST_HELD_NS));
        true
    }

    pub fn has_seen_dsack(&self) -> bool {
        self.dsack_seen
    }

    /// A stretch of resends is over; `needless` duplicate ACKs, the last of them at `last_ns`, answered copies of data that
    /// had arrived. Resends judged needed beyond what that leaves were not. Which ones, nothing shows: the latest are taken,
    /// at low confidence, as what a queue drops that overflows was sent before the sender slowed down, and what followed that
    /// found room. Where the path makes copies, as many of these may have been answered as it makes of the stretch's
    /// transmissions: then there may be so many losses less. Where more of the stretch was lost than that, needless copies
    /// were.
    pub fn close_stretch(&mut self, needless: u32, last_ns: i64, now: &Moment) {
        let (stretch, smss) = (self.answers.close(now), now.smss);
        // what is left over of the duplicate ACKs may have answered some of these later
        let lost_copies = stretch.unheard_copies.len().saturating_sub(needless as usize);
        self.note_unheard(stretch.number, &stretch.unheard_copies[..lost_copies]);
        let mine = |w: &&mut Waiting| w.stretch == stretch.number && w.delivered && w.unit.is_resent();
        let size = |w: &Waiting| segments(w.unit.right - w.unit.left, smss);
        let (mut left, mut surplus) = (i64::from(needless) + i64::from(stretch.answered), stretch.surplus);
        // its answer, which moved the left edge by what had waited for its ACK, came after all of the duplicate ACKs
        let hidden = |t: &Transmission| t.time_ns + now.least_ns > last_ns && stretch.unanswered.contains(&t.order);
        // they are the last that were delivered
        let first = self.waiting.place_of(stretch.number);
        let mut lost = 0;
        for w in self.waiting.iter_mut_from(first).filter(mine) {
            let size = i64::from(size(w));
            left -= w.answered_beyond().filter(|&t| !hidden(t)).count() as i64 * size;
            surplus -= w.answered_beyond().count() as i64 * size;
            lost += (w.filler.unwrap_or(0) as i64 + i64::from(w.unanswered_beyond())) * size;
        }
        left = left.max(surplus).max(stretch.most_lost.map_or(0, |most| lost - most));
        let mut unproven = 0;
        // a copy that was sent before the one before it can have been answered was sent by a timer, not for a loss of that;
        // what was acknowledged together with data below it may have been there before; the lowest filled the hole
        let unheard = |w: &Waiting, filler: usize| {
            let copies = &w.unit.copies;
            copies[filler].time_ns - copies[filler - 1].time_ns < now.least_ns
        };
        let mut late = self.late_in_a_row(stretch.surplus, stretch.number, first, smss);
        for doubt in [Doubt::Late, Doubt::Unheard, Doubt::Above, Doubt::Head] {
            let units = self.waiting.iter_mut_from(first).filter(mine);
            let units: Box<dyn Iterator<Item = &mut Waiting>> = match doubt {
                Doubt::Above => Box::new(units.rev()),
                _ => Box::new(units),
            };
            for w in units {
                while let Some(filler) = w.filler.filter(|&f| f > 0 && left > 0) {
                    let so = match doubt {
                        // an original comes once, however often it was sent again
                        Doubt::Late => late.remove(&w.unit.first().order),
                        Doubt::Unheard => unheard(w, filler),
                        Doubt::Above => !w.head,
                        Doubt::Head => w.head,
                    };
                    if !so {
                        break;
                    }
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
        if left > stretch.path_copies && self.answers.lone.may_be_late() {
            // three of them ask for another resend, of which there is a stretch of its own
            self.came_late(left - stretch.path_copies, stretch.number, None, smss);
        }
        let units = self.waiting.iter_mut_from(first).filter(mine);
        let needed = units.filter(|w| seems_needed(w)).map(|w| u64::from(size(w))).sum();
        self.answers.lone.on_stretch(needed);
        self.lose_needless(&stretch, first, smss);
    }

    /// What should have been answered after its unit had been delivered was lost too, and so were these transmissions.
    fn note_unheard(&mut self, stretch: u32, lost: &[u64]) {
        let first = self.waiting.place_of(stretch);
        for w in self.waiting.iter_mut_from(first).filter(|w| w.stretch == stretch) {
            w.unanswered |= self.answers.unheard_of(&w.unit.copies);
            for (k, t) in w.unit.copies.iter().enumerate() {
                w.unanswered |= u64::from(lost.contains(&t.order)) << k;
            }
        }
    }

    /// Of originals that came late, as many as duplicate ACKs of the stretch tell for certain: those that were sent one behind the
    /// other, as what holds one holds the next, by their order. None where there is no such row, or it may be any one of them.
    fn late_in_a_row(&mut self, count: i64, stretch: u32, first: usize, smss: u32) -> BTreeSet<u64> {
        if count < 2 {
            return BTreeSet::new();
        }
        let mine = |w: &&mut Waiting| w.stretch == stretch && seems_needed(w) && w.unit.first().seen();
        let size = |w: &Waiting| u64::from(segments(w.unit.right - w.unit.left, smss));
        let units = self.waiting.iter_mut_from(first).filter(mine);
        let mut originals: Vec<_> = units.map(|w| (w.unit.first().order, size(w))).collect();
        originals.sort_unstable();
        let in_a_row = |run: &&[(u64, u64)]| run.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0);
        let run = originals.windows(count as usize).find(in_a_row);
        run.into_iter().flatten().map(|&(order, _)| order).collect()
    }

    /// A duplicate ACK came while nothing was sent again, and no data held above a hole explain it: it answers what the
    /// path copied, or an original that came after its resend. `None`: it is one of several.
    pub fn on_lone_answer(&mut self, answer: Option<&LoneAnswer>, now: &Moment) {
        let stretch = self.answers.stretch();
        let after = self.waiting.newest().any(|w| w.stretch < stretch && seems_needed(w));
        let overtaken = self.waiting.newest().any(|w| w.stretch < stretch && was_overtaken(w));
        if self.answers.are_late(after, overtaken, now) {
            self.came_late(1, stretch, answer, now.smss);
        }
    }

    /// The same of so many, which came in any order with others. Where there are more of them than originals can have come late,
    /// the path makes copies.
    pub fn on_lone_answers(&mut self, count: u32, now: &Moment) {
        let stretch = self.answers.stretch();
        let over = |w: &&mut Waiting| w.stretch < stretch && seems_needed(w);
        let originals = self
            .of_last_stretch(over)
            .map(|w| segments(w.unit.right - w.unit.left, now.smss));
        let copied = count > originals.sum();
        for _ in 0..count {
            if copied {
                self.answers.lone.on_copy();
            } else {
                self.on_lone_answer(None, now);
            }
        }
    }

    /// Of these units those of the last stretch that has any.
    fn of_last_stretch(&mut self, which: impl Fn(&&mut Waiting) -> bool) -> impl Iterator<Item = &mut Waiting> {
        let last = self.waiting.newest().filter(&which).map(|w| w.stretch).max();
        self.waiting
            .newest()
            .filter(which)
            .filter(move |w| Some(w.stretch) == last)
    }

    /// With SACK, but neither timestamps nor DSACKs: an ACK at `now_ns` says nothing new, and no copy known to be needless is
    /// due to be answered. It answers an original that came after its resend, if one can have, or what the path copied.
    pub fn on_silent_answer(&mut self, now_ns: i64, frame: u64, least_ns: i64) {
        if self.may_tell_of_late() && !self.one_came_late(now_ns, frame, least_ns) {
            self.answers.on_path_copy();
        }
    }

    /// What came at `now_ns` to a receiver that had all was an original, if one can have come after its resend.
    pub fn on_closed_answer(&mut self, now_ns: i64, frame: u64, least_ns: i64) {
        if self.may_tell_of_late() {
            self.one_came_late(now_ns, frame, least_ns);
        }
    }

    /// A timer goes back over what had come: any of those copies may be the one that was answered, and so may the path's.
    fn may_tell_of_late(&mut self) -> bool {
        let by_timer = |w: &mut Waiting| matches!(w.unit.last().cause, Reason::Rto | Reason::RtoRecovery);
        !self.waiting.newest().any(by_timer) && !self.answers.path_makes_copies()
    }

    /// An original came after its resend: the earliest resent that was delivered. False if none can have.
    fn one_came_late(&mut self, now_ns: i64, frame: u64, least_ns: i64) -> bool {
        let may_be_late = |w: &&mut Waiting| {
            was_overtaken(w)
                && w.unit.first().seen()
                && w.answered_ns == 0
                && now_ns - w.unit.last().time_ns >= least_ns
        };
        let found = self.waiting.newest().find(may_be_late);
        found.map(|w| w.came_late(Some((frame, now_ns)))).is_some()
    }

    /// So many duplicate ACKs answered originals that came after their resends: those of the last stretch before `stretch`,
    /// the earliest first.
    fn came_late(&mut self, answers: i64, stretch: u32, answer: Option<&LoneAnswer>, smss: u32) {
        let any = self.answers.lone.come_after_stretches();
        let over = |w: &&mut Waiting| w.stretch < stretch && (was_overtaken(w) || any && seems_needed(w));
        let mut late = 0;
        for w in self.of_last_stretch(over) {
            if late >= answers {
                break;
            }
            late += i64::from(segments(w.unit.right - w.unit.left, smss));
            w.came_late(answer.map(|answer| (answer.frame, answer.time_ns)));
        }
        self.answers.lone.on_late(late as u64);
    }

    /// What was lost of the stretch beyond the known losses of its units, which wait from `first` on, were copies that were
    /// needless: those whose answer is overdue, then others.
    fn lose_needless(&mut self, stretch: &Stretch, first: usize, smss: u32) {
        let Some(lost) = stretch.lost else { return };
        let mine = |w: &&mut Waiting| w.stretch == stretch.number && w.delivered && w.unit.is_resent();
        let size = |w: &Waiting| i64::from(segments(w.unit.right - w.unit.left, smss));
        let units = self.waiting.iter_mut_from(first).filter(mine);
        let count = |w: &Waiting| w.filler.unwrap_or(0) as i64 + i64::from(w.unanswered_beyond());
        let known: i64 = units.map(|w| count(w) * size(w)).sum();
        let mut lacking = lost - known;
        for overdue in [true, false] {
            for w in self.waiting.iter_mut_from(first).filter(mine) {
                let beyond = w.filler.map_or(usize::MAX, |f| f + 1);
                for (k, t) in w.unit.copies.iter().enumerate().skip(beyond) {
                    if lacking <= 0 {
                        return;
                    }
                    if w.unanswered & (1 << k) == 0 && stretch.unanswered.contains(&t.order) == overdue {
                        w.unanswered |= 1 << k;
                        lacking -= size(w);
                    }
                }
            }
        }
    }

    /// Data that the sender knew to be acknowledged were sent again.
    pub fn unneeded(&mut self, sent: &Sent, smss: u32, least_ns: i64, sink: &mut dyn Sink) {
        if self.unneeded.len() >= PIECES {
            self.unneeded.pop_front();
        }
        self.unneeded.push_back((sent.left, sent.right, sent.time_ns));
        self.answers.expect(sent.time_ns, least_ns, None);
        let count = segments(sent.right - sent.left, smss);
        self.spurious += u64::from(count);
        let needless = Needless {
            time_ns: sent.time_ns,
            left: sent.left,
            right: sent.right,
            frame: (sent.frame != 0).then_some(sent.frame),
            ack_frame: None,
            reason: Reason::Unneeded,
            confidence: 0.9,
        };
        self.spurious_event(&needless, count, sink);
    }

    pub(super) fn spurious_event(&self, needless: &Needless, count: u32, sink: &mut dyn Sink) {
        sink.event(EventRow {
            flow: self.flow,
            time_ns: needless.time_ns,
            kind: Kind::Spurious,
            reason: needless.reason,
            left: offset(needless.left),
            right: offset(needless.right),
            frame: needless.frame.into(),
            cause_frame: needless.ack_frame.into(),
            segments: count,
            flight: 0.0,
            phase: Phase::Open,
            confidence: needless.confidence,
            ..EventRow::NONE
        });
    }
}

impl Held {
    /// Of resends that duplicate ACKs asked for, a larger share had originals that came late than the path has copied of all
    /// transmissions before `order`.
    fn come_late_more_often(self, path_copies: u32, order: u64) -> bool {
        u64::from(self.late) * order > HELD_ODDS * u64::from(path_copies) * u64::from(self.asked)
    }
}

/// Duplicate ACKs, or SACK blocks, asked for it: no timer.
pub(super) fn was_asked_for(resend: &Transmission) -> bool {
    !matches!(resend.cause, Reason::Rto | Reason::RtoRecovery | Reason::Tlp)
}

/// It was sent again, and nothing has shown that the copy before the one that was acknowledged had arrived.
fn seems_needed(waiting: &Waiting) -> bool {
    waiting.delivered && waiting.filler.is_some_and(|filler| filler > 0)
}

/// The same, and duplicate ACKs had asked for it: the timer runs out when nothing comes.
fn was_overtaken(waiting: &Waiting) -> bool {
    let asked_for = |filler: usize| waiting.unit.copies[filler].cause != Reason::Rto;
    seems_needed(waiting) && waiting.filler.is_some_and(asked_for)
}
