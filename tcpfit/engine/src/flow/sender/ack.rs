//! What ACKs tell the sender: the left edge, round trips, what has left the board.

use super::{Sender, LOOKED_AT};
use crate::events::answers::{Filling, Moment};
use crate::events::cause::DUPTHRESH;
use crate::events::fate::Fates;
use crate::events::lone_answers::LoneAnswer;
use crate::events::marks::{Echo, State};
use crate::flow::ack_delay::Told;
use crate::flow::scoreboard::Unit;
use crate::flow::sequence::before;
use crate::nullable::Nullable;
use crate::rows::{Phase, Sink, Vantage};

/// Segments below the advertised window at which it was not what held the sender.
const WINDOW_ROOM: u64 = 3;
/// Unexplained duplicate ACKs that are remembered.
const LONE: usize = 64;
/// For each duplicate ACK, segments that are acknowledged one by one before it is taken for the answer to a copy.
const STEPS: u32 = 8;
/// Round trips after the last resend until answers to needless copies have come.
const QUIET_ROUND_TRIPS: f64 = 1.5;

/// An acknowledgement as it reached the sender.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    pub time_ns: i64,
    pub frame: u64,
    pub ack: u64,
    /// Window after scaling, in bytes, below 2^30 (RFC 7323, 2.3); `None` if the scale is not known.
    pub window: Option<u32>,
    /// As sent.
    pub field: u16,
    pub tsecr: Option<u32>,
    /// It carried no payload, SYN or FIN.
    pub pure: bool,
    pub sack: [(u64, u64); 4],
    pub sack_len: u8,
    /// AE, CWR and ECE.
    pub ace: u8,
    /// As in the segment's options.
    pub ce_bytes: Nullable<u32>,
    /// How it is known when it reached the sender, if that took a way.
    pub told: Option<Told>,
}

impl Ack {
    /// Says nothing but that it is an ACK.
    pub const NONE: Self = Self {
        time_ns: 0,
        frame: 0,
        ack: 0,
        window: None,
        field: 0,
        tsecr: None,
        pure: true,
        sack: [(0, 0); 4],
        sack_len: 0,
        ace: 0,
        ce_bytes: Nullable::NONE,
        told: None,
    };

    /// What it says of marks; `progress` as in `Echo`.
    pub fn echo(&self, progress: bool) -> Echo {
        Echo {
            time_ns: self.time_ns,
            frame: self.frame,
            ack: self.ack,
            ace: self.ace,
            ce_bytes: self.ce_bytes.get(),
            progress,
        }
    }
}

/// What an ACK that moved the left edge has covered so far.
#[derive(Default)]
struct Taken {
    /// Nothing yet: the next unit is the head.
    head: bool,
    /// Karn: no sample from resent data; the oldest unit never resent is the estimator's.
    oldest: Option<i64>,
    resent: bool,
    /// When the resend was sent whose timestamp the ACK echoes.
    echoed: Option<i64>,
}

impl Sender {
    /// An ACK that has waited to reach the sender.
    #[inline(never)]
    pub fn on_late_ack(&mut self, ack: &Ack, sink: &mut dyn Sink) {
        self.on_ack(ack, sink);
    }

    /// An ACK that moves the left edge over data that were seen, and says nothing else: what most do. `whole` gives it with
    /// all that it says, for the few that come upon more.
    #[inline(always)]
    pub fn on_next_ack(
        &mut self,
        time_ns: i64,
        at: u64,
        window: Option<u32>,
        whole: impl Fn() -> Ack,
        sink: &mut dyn Sink,
    ) {
        self.one_way = false;
        self.tick_in_line(time_ns);
        self.hold_back(f64::from(self.outstanding.saturating_sub(self.received())));
        self.last_sack = None;
        self.advance(time_ns, at, window, self.heard, whole, sink);
        self.end_ack(time_ns, window);
        self.last_ack_ns = time_ns;
    }

    /// Any ACK.
    #[inline(always)]
    pub fn on_ack(&mut self, ack: &Ack, sink: &mut dyn Sink) {
        self.one_way = false;
        self.tick_in_line(ack.time_ns);
        let (una_before, sacked_before, flight_before) = (self.una, self.sacked, self.flight());
        if ack.ack > self.una {
            self.hold_back(flight_before);
        }
        let heard = self.heard;
        if ack.sack_len > 0 {
            self.on_sack(ack);
        }
        if self.vantage == Vantage::Sender && self.marks.listens(ack.ace) {
            self.note_room(ack);
            let state = State {
                flight: flight_before,
                ..self.state()
            };
            self.marks.on_ack(
                &ack.echo(ack.ack > self.una || self.sacked > sacked_before),
                state,
                sink,
            );
        }
        let same_sack = self.sack && (ack.sack_len == 0 && self.last_sack.is_none() || self.repeats_sack(ack));
        if same_sack && ack.ack == self.una && ack.pure && ack.window == self.window {
            self.on_discarded(ack);
        }
        if ack.ack > self.una {
            self.advance(ack.time_ns, ack.ack, ack.window, heard, || *ack, sink);
        } else if ack.ack == self.una && ack.pure && self.order > 0 {
            // RFC 5681, 2: nothing new acknowledged, data outstanding, no payload, window unchanged
            let same_window = ack.window == self.window && (ack.window.is_some() || ack.field == self.window_field);
            let outstanding = !self.board.units.is_empty();
            if outstanding && (self.sacked > sacked_before || (same_window && !self.sack)) {
                if self.duplicate_acks == 0 {
                    self.duplicates.undisturbed_flight = flight_before;
                    if self.phase == Phase::Open {
                        self.duplicates.first_ns = ack.time_ns;
                    }
                }
                self.duplicate_acks += 1;
                self.duplicates.count += 1;
                if self.duplicate_acks == DUPTHRESH {
                    self.duplicates.third_ns = ack.time_ns;
                }
                if !self.sack {
                    self.count_reno();
                }
            }
            if !self.sack {
                self.count_unexplained(ack, outstanding && same_window);
            }
        }
        // of an ACK that another one overtook the window is an old one
        let (window, field) = if ack.ack < self.una {
            (self.window, self.window_field)
        } else {
            (ack.window, ack.field)
        };
        self.end_ack(ack.time_ns, window);
        // data of the other end carry an ACK too, which answers nothing unless it says something new
        if ack.pure || self.una > una_before || self.sacked > sacked_before {
            self.last_ack_ns = ack.time_ns;
        }
        self.window_field = field;
    }

    /// Beside timestamps the counters of accurate ECN leave room for a SACK block in an ACK (RFC 9768, 3.2.3).
    pub fn note_room(&mut self, ack: &Ack) {
        self.few_blocks |= self.timestamps && ack.ce_bytes.get().is_some();
    }

    /// Without SACK: an ACK that moves nothing came because of data above a hole, unless it answers a copy.
    #[inline(never)]
    fn count_unexplained(&mut self, ack: &Ack, duplicate: bool) {
        // an answer to a segment may move the window a little; an update alone comes when it has doubled at least (Linux), or
        // by half the receiver's buffer (RFC 9293, 3.8.6.2.2)
        let doubled = ack.window != self.window && ack.window >= self.window.map(|w| 2 * w);
        if doubled || ack.window.is_none() && ack.field != self.window_field {
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

    /// The left edge is about to move at a flight of `flight`.
    #[inline(always)]
    fn hold_back(&mut self, flight: f64) {
        let undisturbed = self.phase == Phase::Open && self.duplicate_acks == 0;
        let room_for = (u64::from(self.outstanding) + WINDOW_ROOM) * u64::from(self.smss);
        let room = self.window.is_some_and(|window| u64::from(window) >= room_for);
        self.held_back = undisturbed.then_some((flight, room));
    }

    #[inline(always)]
    fn end_ack(&mut self, time_ns: i64, window: Option<u32>) {
        if !self.sack && (self.unexplained_acks > 0 || self.resends_under_way()) {
            self.close_unexplained(time_ns);
        }
        self.window = window;
    }

    /// Data are outstanding that the receiver has no room for: it answers them with an ACK and does not take them (RFC 9293,
    /// 3.10.7.4).
    pub(super) fn may_be_refused(&self) -> bool {
        self.window
            .is_some_and(|window| self.una + u64::from(window) < self.nxt)
    }

    /// An ACK that says nothing new answers a segment that the receiver did not take: its timestamp was older than one
    /// taken before (RFC 7323, 5.3), so an original has come after a later-sent segment had moved the left edge.
    #[inline(never)]
    fn on_discarded(&mut self, ack: &Ack) {
        // a receiver that reports no duplicates (RFC 2883 is no must) answers needless copies so, too
        let (srtt_s, least_ns) = (self.rtt.srtt_s, self.rtt.floor().ns());
        let unreported = !self.fates.has_seen_dsack();
        let needless = |fates: &mut Fates| fates.answers.take_silent(ack.time_ns, srtt_s);
        let answered = unreported && self.fates.changed().is_some_and(needless);
        if unreported && !answered && !self.timestamps && !self.may_be_refused() {
            self.fates.on_silent_answer(ack.time_ns, ack.frame, least_ns);
        }
        let Some(echo) = ack.tsecr.filter(|_| self.timestamps && !answered) else {
            return;
        };
        let latest_ns = ack.time_ns - self.rtt.floor().ns();
        let late = |u: &Unit| u.sacked_ns == 0 && !u.is_discarded() && u.first_seen() && before(u.tsval, echo);
        let units = &mut self.board.units;
        let mut old = units.iter().take_while(|u| u.time_ns <= latest_ns).take(LOOKED_AT);
        let found = old.position(late);
        drop(old);
        if let Some(n) = found {
            units[n].discard();
        }
    }

    /// The SYN is acknowledged, the data that came with it are not.
    pub fn on_syn_alone(&mut self, time_ns: i64) {
        (self.last_ack_ns, self.last_advance_ns) = (time_ns, time_ns);
    }

    /// The receiver did not take the first segment that is outstanding, which came with the SYN.
    pub fn refuse(&mut self) {
        if self.board.units.front().is_some_and(|first| !first.is_resent()) {
            self.board.units[0].discard();
        }
    }

    /// All that is outstanding was acknowledged before it passed: nothing shows when that reached the sender.
    #[inline(never)]
    pub fn on_early_ack(&mut self, time_ns: i64, sink: &mut dyn Sink) {
        let (at, window) = (self.nxt, self.window);
        let ack = Ack {
            time_ns,
            ack: at,
            window,
            field: self.window_field,
            ..Ack::NONE
        };
        self.tick(time_ns);
        let way_unknown = std::mem::replace(&mut self.way_unknown, true);
        self.advance(time_ns, at, window, self.heard, || ack, sink);
        self.way_unknown = way_unknown;
    }

    /// The left edge moves to `at`.
    #[inline(always)]
    fn advance(
        &mut self,
        time_ns: i64,
        at: u64,
        window: Option<u32>,
        heard: u64,
        whole: impl Fn() -> Ack,
        sink: &mut dyn Sink,
    ) {
        if at > self.nxt {
            // acknowledged but never seen: the sender's data are not (all) in the capture
            return;
        }
        let from = self.una;
        let first = self
            .board
            .units
            .front()
            .filter(|_| self.vantage != Vantage::Sender)
            .copied();
        if self.begun_before {
            self.note_least(time_ns, at);
        }
        let mut sample_ns = self.take_plain(at, heard);
        let mut echoed_ns = None;
        if self.board.units.front().is_some_and(|unit| unit.left < at) {
            (sample_ns, echoed_ns) = self.take_any(&whole(), heard, sample_ns, sink);
        } else {
            self.unexplained_acks = if self.sack { 0 } else { self.unexplained_acks };
        }
        self.una = at;
        if let Some(covered) = self.covered.as_mut().filter(|covered| !covered.is_empty()) {
            covered.below(self.una);
        }
        if let Some(sent_ns) = sample_ns.filter(|_| !self.way_unknown) {
            let stamped = first.filter(|first| first.time_ns == sent_ns && first.tsval != 0);
            let longer = stamped.and_then(|first| Some(whole().told?.longer_ns(first.tsval, first.time_ns)));
            let rtt_s = (time_ns - sent_ns + longer.unwrap_or(0)) as f64 / 1e9;
            self.rtt.sample(rtt_s, self.una, self.nxt);
            self.restart_timer();
            self.rounds.sample(rtt_s);
        } else if let Some(sent_ns) = echoed_ns {
            self.rtt.smooth((time_ns - sent_ns) as f64 / 1e9, self.una, self.nxt);
            self.restart_timer();
        }
        let bytes = at - from;
        self.totals.acks += 1;
        self.totals.acked_bytes += bytes;
        self.duplicate_acks = 0;
        self.last_advance_ns = time_ns;
        if self.phase != Phase::Open {
            self.on_advance(time_ns, sink);
        }
        let window = window.map(|w| f64::from(w) / f64::from(self.smss));
        self.rounds.acked(time_ns, bytes, self.una, window, self.phase);
        self.settle(time_ns, sink);
    }

    /// Without a handshake: no answer comes sooner than the least round trip, and samples, of the oldest segment that an ACK
    /// covers, are longer by what the receiver has waited for the newest (RFC 5681, 4.2). That one's is none of the timer's.
    #[inline(never)]
    fn note_least(&mut self, time_ns: i64, at: u64) {
        if !matches!(self.vantage, Vantage::Sender | Vantage::Unknown) || self.way_unknown {
            return;
        }
        let covered = self.board.units.iter().take_while(|unit| unit.right() <= at);
        if let Some(newest) = covered.filter(|unit| unit.is_plain() && unit.sacked_ns == 0).last() {
            self.rtt.least((time_ns - newest.time_ns) as f64 / 1e9);
        }
    }

    /// Takes off what most ACKs cover, if nothing is known to have come out of order: units sent once, of which nothing has
    /// been heard, nor of anything beyond. When the oldest of them was sent.
    #[inline]
    fn take_plain(&mut self, to: u64, heard: u64) -> Option<i64> {
        let units = self.board.units.first_near();
        let oldest = units
            .first()
            .filter(|u| u.left >= heard && self.unexplained_acks == 0)?;
        let oldest_ns = oldest.time_ns;
        let (taken, _) = self.take_run(to, false);
        (taken > 0).then_some(oldest_ns)
    }

    /// Takes off the first units up to `to`, as far as they lie side by side, were sent once, and SACK blocks had covered
    /// them, or had not. How many units and segments.
    #[inline(always)]
    fn take_run(&mut self, to: u64, sacked: bool) -> (usize, u32) {
        let (mut taken, mut count, mut newest) = (0, 0, self.delivered_order);
        for unit in self.board.units.first_near() {
            if unit.right() > to || (unit.sacked_ns != 0) != sacked || !unit.is_plain() {
                break;
            }
            taken += 1;
            count += unit.segments(self.smss);
            newest = newest.max(unit.order);
        }
        self.delivered_order = newest;
        self.outstanding = self.outstanding.saturating_sub(count);
        self.board.units.skip_front(taken);
        (taken, count)
    }

    /// Takes off all that the ACK covers, after what `take_plain` took. When the unit was sent that a sample of the round
    /// trip is of; without one, when the resend was sent whose timestamp the ACK echoes.
    #[inline(never)]
    fn take_any(
        &mut self,
        ack: &Ack,
        heard: u64,
        oldest_ns: Option<i64>,
        sink: &mut dyn Sink,
    ) -> (Option<i64>, Option<i64>) {
        let mut taken = Taken {
            head: oldest_ns.is_none(),
            oldest: oldest_ns,
            ..Taken::default()
        };
        let mut filler = u64::MAX;
        let mut held = if self.sack { 0 } else { self.unexplained_acks };
        let mut below = self.board.below(ack.ack);
        if !self.sack && taken.head && self.resends_under_way() {
            self.note_held(below, ack.time_ns);
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
                let (units, count) = self.take_run(ack.ack, true);
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
                        taken.echoed = Some(t.time_ns);
                        // no other copy can have brought the answer: it bounds the path's round trip for what comes next
                        if head && self.vantage == Vantage::Sender && unit.sacked_ns == 0 && echoed.next().is_none() {
                            self.rtt.least((ack.time_ns - t.time_ns) as f64 / 1e9);
                        }
                    }
                }
                let delivered_ns = if unit.sacked_ns != 0 {
                    unit.sacked_ns
                } else {
                    ack.time_ns
                };
                let before = if held > 0 && !head { filler } else { u64::MAX };
                let this = self
                    .fates
                    .on_delivered(history, delivered_ns, head, before, ack, self.rtt.floor());
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
            let least_ns = self.rtt.floor().ns();
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
        if taken.resent {
            (None, taken.echoed)
        } else {
            (taken.oldest, None)
        }
    }

    /// Without SACK: what an ACK at `now_ns`, which covers so many units, shows of what the receiver held before.
    #[inline(never)]
    fn note_held(&mut self, units: usize, now_ns: i64) {
        let (board, least_ns) = (&self.board, self.rtt.floor().ns());
        let Some((first, last)) = board.units.get(0).zip(board.units.get(units - 1)) else {
            return;
        };
        // its first transmission came: no other can have been answered
        let by_the_first = |unit: &Unit| board.resends(unit).iter().all(|t| t.time_ns + least_ns > now_ns);
        let had_come = by_the_first(last) && last.order < board.last(first).order;
        let filling = match (first.is_resent(), units == 1 || had_come) {
            (false, _) => Filling::No,
            (true, false) => Filling::Perhaps,
            (true, true) => Filling::Hole,
        };
        let held_ns = (units > 2 && had_come).then_some(last.time_ns + least_ns);
        let answers = &mut self.fates.answers;
        answers.on_filling(filling);
        if let Some(held_ns) = held_ns {
            answers.on_held(held_ns);
        }
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

    /// A sample of the round trip computes the timer anew, without its doublings (RFC 6298, 5, the note on 5.5).
    fn restart_timer(&mut self) {
        if let Some(episodes) = self.episodes.changed() {
            episodes.doublings = 0;
        }
    }

    /// Without SACK: what is left of duplicate ACKs when data that brought them cannot be held any longer.
    #[inline(never)]
    fn close_unexplained(&mut self, now_ns: i64) {
        while let Some(&answer) = self.duplicates.lone.front().filter(|answer| answer.nxt <= self.una) {
            // no ACK has jumped over what would have been held: some copy was answered
            self.duplicates.lone.pop_front();
            self.unexplained_acks = self.unexplained_acks.saturating_sub(1);
            let now = self.moment(now_ns);
            self.fates.on_lone_answer(&answer, &now);
        }
        if self.resends_under_way() {
            let (acks, bytes) = (self.totals.acks, self.totals.acked_bytes);
            self.fates.answers.on_counted(now_ns, acks, bytes, self.smss);
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
    fn count_steps(&mut self, single: bool) {
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
            self.fates.on_lone_answer(answer, &now);
        }
        self.unexplained_acks -= copies as u32;
        if self.unexplained_acks == 0 {
            self.end_unexplained();
        }
    }

    /// An ACK has released data that had brought all but `left` of the unexplained duplicate ACKs.
    fn explain(&mut self, left: u32) {
        let explained = (self.unexplained_acks - left) as usize;
        self.unexplained_acks = left;
        let lone = &mut self.duplicates.lone;
        lone.drain(..explained.min(lone.len()));
        if let Some(reordering) = self.reordering.changed() {
            reordering.explain();
        }
    }

    fn end_unexplained(&mut self) {
        if let Some(duplicates) = self.duplicates.changed() {
            duplicates.lone.clear();
        }
        if let Some(reordering) = self.reordering.changed() {
            reordering.forget_unexplained();
        }
    }

    /// Without SACK: a packet of the receiver comes, which sent as many before that did not come as `skipped` tells.
    #[inline(never)]
    pub fn count_skipped(&mut self, skipped: impl Fn() -> Option<u16>) {
        if self.resends_under_way() {
            self.fates.answers.on_numbered(skipped());
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
            smss: self.smss,
            order: self.order,
            outstanding: self.outstanding,
            held: self.unexplained_acks,
            acks: self.totals.acks,
            bytes: self.totals.acked_bytes,
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
            self.fates.close_stretch(self.unexplained_acks, &now);
            self.unexplained_acks = 0;
        }
    }
}
