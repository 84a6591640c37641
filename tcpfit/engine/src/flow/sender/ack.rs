//! What ACKs tell the sender: the left edge, round trips, what has left the board.

use super::{Sender, LOOKED_AT};
use crate::events::cause::DUPTHRESH;
use crate::events::fate::Fates;
use crate::events::marks::{Echo, State};
use crate::flow::ack_delay::Told;
use crate::flow::scoreboard::Unit;
use crate::flow::sequence::before;
use crate::nullable::Nullable;
use crate::rows::{Phase, Sink, Vantage};

/// Segments below the advertised window at which it was not what held the sender.
const WINDOW_ROOM: u64 = 3;

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
    /// It carried no payload, SYN or FIN, and was not the first that acknowledged a FIN.
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

    /// The round trip of a segment that passed at `sent_ns` with that timestamp, and which the ACK answers: longer than it
    /// seems by what the segment was longer under way than the one that told the ACK's way.
    pub fn round_trip_s(&self, sent_ns: i64, tsval: u32) -> f64 {
        let told = self.told.filter(|_| tsval != 0);
        let told_ns = told.map(|told| told.came_ns + told.longer_ns(tsval, sent_ns));
        (told_ns.unwrap_or(self.time_ns) - sent_ns) as f64 / 1e9
    }

    /// Up to where its window has room; 0 if that is not known.
    pub fn room_to(&self) -> u64 {
        self.window.map_or(0, |window| self.ack + u64::from(window))
    }

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
        let reported = if ack.sack_len > 0 { self.on_sack(ack) } else { None };
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
        if let Some((left, right)) = reported {
            self.on_reported(left, right, ack.time_ns, sink);
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
        let floor_ns = self.rtt.floor().ns();
        // what is late comes in the order in which it was sent, for the most part
        let last_late = self.reordering.get().map_or(0, |reordering| reordering.last_late);
        let board = &self.board;
        // it is another copy that SACK has reported, if any
        let taken = |u: &Unit| u.sacked_ns != 0 && !(u.is_resent() && u.sacked_ns - board.last(u).time_ns >= floor_ns);
        let late = |u: &Unit| !taken(u) && !u.is_discarded() && u.first_seen() && before(u.tsval, echo);
        let mut found = None;
        for (n, unit) in board.units.iter().enumerate().take(LOOKED_AT) {
            if unit.time_ns > ack.time_ns - floor_ns {
                break;
            }
            if late(unit) && unit.order > last_late {
                found = Some(n);
                break;
            }
            if late(unit) && found.is_none() {
                found = Some(n);
            }
        }
        if let Some(n) = found {
            self.board.units[n].discard();
        }
    }

    /// The receiver has acknowledged all and closed, and something came that was sent before that.
    pub fn on_closed_answer(&mut self, time_ns: i64, frame: u64) {
        let least_ns = self.rtt.floor().ns();
        if let Some(fates) = self.fates.changed().filter(|_| self.vantage == Vantage::Sender) {
            fates.on_closed_answer(time_ns, frame, least_ns);
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
        let taken = self.take_plain(at, heard);
        // samples are longer by what the receiver has waited for the newest (RFC 5681, 4.2)
        let undercut = taken.filter(|&(_, newest_ns)| self.rtt.is_undercut(time_ns - newest_ns));
        if let Some((_, newest_ns)) = undercut.filter(|_| self.sees_answers()) {
            self.rtt.least((time_ns - newest_ns) as f64 / 1e9);
        }
        let mut sample_ns = taken.map(|(oldest_ns, _)| oldest_ns);
        let mut echoed = None;
        let more = self.board.units.front().is_some_and(|unit| unit.left < at);
        if more {
            (sample_ns, echoed) = self.take_any(&whole(), heard, sample_ns, sink);
        } else {
            self.unexplained_acks = if self.sack { 0 } else { self.unexplained_acks };
        }
        if !self.sack && self.resends_under_way() {
            let plain = taken.filter(|_| !more);
            self.fates.answers.on_taken(plain.map(|(_, newest_ns)| newest_ns));
        }
        self.una = at;
        if let Some(covered) = self.covered.as_mut().filter(|covered| !covered.is_empty()) {
            covered.below(self.una);
        }
        if let Some(sent_ns) = sample_ns.filter(|_| !self.way_unknown) {
            let stamped = first.filter(|first| first.time_ns == sent_ns);
            let seems_s = (time_ns - sent_ns) as f64 / 1e9;
            let mut rtt_s = stamped.map_or(seems_s, |first| whole().round_trip_s(sent_ns, first.tsval));
            let drifts = first.is_some() && !self.timestamps;
            if drifts {
                rtt_s += self.drift.waited_s(sent_ns);
            }
            self.rtt.sample(rtt_s, self.una, self.nxt);
            self.restart_timer();
            self.rounds.sample(rtt_s);
            if drifts {
                self.on_drifting_sample(time_ns, rtt_s);
            }
        } else if let Some((sent_ns, tsval)) = echoed {
            self.rtt
                .smooth(whole().round_trip_s(sent_ns, tsval), self.una, self.nxt);
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

    /// ACKs pass when they come to the sender, as far as is known.
    #[cold]
    fn sees_answers(&self) -> bool {
        matches!(self.vantage, Vantage::Sender | Vantage::Unknown) && !self.way_unknown
    }

    /// A sample of the round trip computes the timer anew, without its doublings (RFC 6298, 5, the note on 5.5).
    fn restart_timer(&mut self) {
        if let Some(episodes) = self.episodes.changed() {
            episodes.doublings = 0;
        }
    }
}
