//! The data sender of a flow, followed from outside: what it has outstanding, what its congestion control felt.
//!
//! Everything here happens on the sender's clock as seen from the capture point: `arrivals` puts transmissions into
//! sending order (those that never came by included), `ack_delay` holds each ACK until the sender can have had it. At a
//! sender's capture both do nothing, and one state machine serves every vantage point. All state is `inferred`.
//!
//! Here is the state, with its clock and what is given out; `data` is what the sender sends, `ack` what comes back, and
//! `sack` what that says of data out of order.

use crate::events::cause::{Episodes, DUPTHRESH};
use crate::events::fate::Fates;
use crate::events::lone_answers::LoneAnswer;
use crate::events::marks::{Marks, State};
use crate::events::reordering::Reordering;
use crate::flow::covered::Covered;
use crate::flow::drift::{By, Drift, Seen};
use crate::flow::hosts::Least;
use crate::flow::rare::{Blank, Rare};
use crate::flow::ring::Ring;
use crate::flow::rounds::Rounds;
use crate::flow::rtt::Rtt;
use crate::flow::scoreboard::{Scoreboard, Unit};
use crate::flow::sequence::before;
use crate::rows::{Phase, Sink, Vantage};
use std::collections::VecDeque;

mod ack;
mod data;
mod end;
mod reno;
mod sack;
mod taken;
mod unexplained;

pub use ack::Ack;
pub use data::Sent;
pub use sack::is_dsack;

/// An answer is prompt within so many mean response times, or within so long on any host.
const PROMPT_RESPONSES: i64 = 8;
const PROMPT_NS: i64 = 200_000;
/// Time in which an answer to an ACK counts as sent because of it, at least: at the sender;
/// elsewhere four times as long.
const CLOCK_FLOOR_NS: i64 = 1_000_000;
/// Keep-alive timers count in seconds.
const KEEP_ALIVE_NS: i64 = 1_000_000_000;
/// Units that one ACK is held against, where it may concern any.
pub const LOOKED_AT: usize = 4096;

#[repr(C)]
pub struct Sender {
    // what ACKs need
    pub rtt: Rtt,
    pub totals: Totals,
    /// Highest byte that SACK reported of data sent once.
    pub heard: u64,
    /// Order of the newest transmission known to have been delivered.
    pub delivered_order: u64,
    clock_ns: i64,
    /// What SACK blocks have covered above the left edge.
    pub covered: Option<Box<Covered>>,
    /// SACK blocks of the last ACK, if it had any.
    last_sack: Option<Box<sack::Blocks>>,
    pub episodes: Rare<Episodes>,
    pub fates: Rare<Fates>,
    pub reordering: Rare<Reordering>,
    pub marks: Marks,
    // what few need
    /// Least time between a segment and its first resend, which is at least a round trip; infinite before one was seen.
    pub least_resend_s: f64,
    // a line for ACKs, one for all, and what few need, of which there is more behind it
    pub rounds: Rounds,
    pub duplicates: Rare<Duplicates>,
    pub flow: u32,
    pub timestamps: bool,
    /// More was outstanding than is followed.
    pub overfull: bool,
    /// The handshake is not, or not whole, in the capture: nothing says whether SACK may be used.
    pub begun_before: bool,
    /// Nothing has told how long ACKs are under way: no round trip is known.
    pub way_unknown: bool,
    // what ACKs need
    /// Since the left edge moved (RFC 5681, 2).
    pub duplicate_acks: u32,
    /// Without SACK: duplicate ACKs not yet explained by data that the receiver held above a hole. What is left of them
    /// when all holes are filled came from copies of data that had arrived before.
    pub unexplained_acks: u32,
    pub last_advance_ns: i64,
    // a line for all
    /// RFC 9293's SND.UNA and SND.NXT, the latter as the highest byte sent.
    pub una: u64,
    pub nxt: u64,
    /// Window of the last ACK, in bytes.
    pub window: Option<u32>,
    /// Flight just before the last ACK that moved the left edge in phase open, while it is not known whether it let
    /// anything go; and whether the receiver's window had room.
    held_back: Option<(f64, bool)>,
    pub last_ack_ns: i64,
    /// Segments sent and not acknowledged; of these, SACKed ones.
    pub outstanding: u32,
    pub sacked: u32,
    pub smss: u32,
    pub phase: Phase,
    pub vantage: Vantage,
    pub sack: bool,
    /// Nothing of the receiver is in the capture: no left edge, no round trip, no flight.
    pub one_way: bool,
    // another line for all
    /// Transmissions so far, in segments.
    pub order: u64,
    /// Mean time from an ACK to what it let go; 0 while none was seen.
    pub response_ns: i64,
    pub last_sent_ns: i64,
    pub board: Scoreboard,
    /// Most that was outstanding, in segments.
    pub flight_max: f64,
    /// The window field of the last ACK.
    window_field: u16,
    /// Other options leave room for a SACK block or two in an ACK: the blocks do not tell of all that has arrived.
    pub few_blocks: bool,
    /// Other connections have shown that the host sends no tail loss probes.
    pub waits_out: bool,
    /// Away from the sender: a tick of its timestamps; 0 while none is known, or none fine enough for round trips.
    pub stamp_tick_ns: u32,
    /// Without SACK: packets of the receiver that were missing while nothing was sent again.
    pub acks_missing: u32,
    /// At the sender: what it took to answer in the handshake, with the way to it and back; it knows of no ACK sooner.
    pub near_s: f64,
    /// At the sender: the least round trip that other connections had to the receiver.
    pub known_least: Least,
    /// Away from the sender, without timestamps.
    pub drift: Rare<Drift>,
}

/// Where pointers take eight bytes, these begin a line of a cache.
#[cfg(target_pointer_width = "64")]
const _: () = {
    use std::mem::offset_of;
    const LINE: usize = 64;
    assert!(offset_of!(Sender, rounds) % LINE == 0);
    assert!(offset_of!(Sender, una) % LINE == 0);
    assert!(offset_of!(Sender, order) % LINE == 0);
};

/// What duplicate ACKs have shown.
#[derive(Clone, Debug)]
pub struct Duplicates {
    /// All so far.
    pub count: u64,
    /// Flight when the first since the left edge moved came: what the sender had outstanding before it knew of a hole.
    pub undisturbed_flight: f64,
    /// When that came, without a resend outstanding.
    pub first_ns: i64,
    /// When the last third one came.
    pub third_ns: i64,
    /// Highest byte sent at the last unexplained one: nothing above it was held then.
    held_to: u64,
    pub held_ns: i64,
    /// Without SACK: of the unexplained ones, those that nothing sent again can have brought.
    lone: VecDeque<LoneAnswer>,
    /// ACKs in a row since then that covered a segment each.
    steps: u32,
    /// Without SACK: segments that Linux takes for received above the left edge `reno_una`, one for each duplicate ACK.
    pub reno: u32,
    pub reno_una: u64,
    /// They were more once than segments outstanding: answers to needless copies, which a host may take for reordering.
    pub beyond: bool,
}

impl Blank for Duplicates {
    const BLANK: &'static Self = &Self {
        count: 0,
        undisturbed_flight: 0.0,
        first_ns: 0,
        third_ns: i64::MIN / 2,
        held_to: 0,
        held_ns: i64::MIN / 2,
        lone: VecDeque::new(),
        steps: 0,
        reno: 0,
        reno_una: 0,
        beyond: false,
    };

    fn new(_flow: u32) -> Self {
        Self::BLANK.clone()
    }
}

/// Counters that need no hindsight.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub acks: u64,
    pub acked_bytes: u64,
    pub busy_s: f64,
    /// Busy time since the first sample of the round trip.
    pub measured_s: f64,
    /// Integral of the smoothed round trip over measured time.
    pub srtt_integral: f64,
    /// Integral of the replayed timer over measured time.
    pub rto_integral: f64,
}

impl Sender {
    #[inline]
    pub fn new(flow: u32, start: u64, smss: u32, vantage: Vantage) -> Self {
        Self {
            flow,
            smss,
            vantage,
            sack: false,
            begun_before: false,
            way_unknown: false,
            timestamps: false,
            few_blocks: false,
            stamp_tick_ns: 0,
            acks_missing: 0,
            near_s: 0.0,
            one_way: false,
            waits_out: false,
            known_least: Least::default(),
            least_resend_s: f64::INFINITY,
            board: Scoreboard::new(smss),
            una: start,
            nxt: start,
            order: 0,
            rtt: Rtt::default(),
            outstanding: 0,
            sacked: 0,
            duplicate_acks: 0,
            duplicates: Rare::new(flow),
            held_back: None,
            heard: start,
            response_ns: 0,
            covered: None,
            overfull: false,
            last_sack: None,
            unexplained_acks: 0,
            last_ack_ns: i64::MIN / 2,
            last_advance_ns: i64::MIN / 2,
            last_sent_ns: i64::MIN / 2,
            delivered_order: 0,
            window: None,
            window_field: 0,
            phase: Phase::Open,
            episodes: Rare::new(flow),
            fates: Rare::new(flow),
            rounds: Rounds::new(flow),
            reordering: Rare::new(flow),
            marks: Marks::new(flow),
            totals: Totals::default(),
            clock_ns: 0,
            flight_max: 0.0,
            drift: Rare::new(flow),
        }
    }

    /// A full segment carries `smss` bytes, as is known now: what is outstanding is counted by that.
    pub fn count_by(&mut self, smss: u32) {
        self.catch_up();
        self.smss = smss;
        self.board.count_by(smss);
        self.board.take_more();
        let units = self.board.units.iter();
        (self.outstanding, self.sacked) = units.fold((0, 0), |(all, sacked), unit| {
            let count = unit.segments(smss);
            (all + count, sacked + if unit.sacked_ns == 0 { 0 } else { count })
        });
    }

    /// Gives back what is held in reserve: where its outstanding segments were, of which there is none.
    pub fn shrunk(&mut self) -> Ring<Unit> {
        std::mem::replace(&mut self.board, Scoreboard::new(self.smss)).units
    }

    /// Segments outstanding at the sender: RFC 6675's pipe as far as SACKs and duplicate ACKs tell; NaN without ACKs.
    #[inline]
    pub fn flight(&self) -> f64 {
        self.flight_without(self.received())
    }

    /// Nothing was sent for as long as keep-alive timers run at least.
    pub fn is_quiet(&self, now_ns: i64) -> bool {
        now_ns - self.last_sent_ns >= KEEP_ALIVE_NS
    }

    /// The same, and nothing is outstanding.
    pub fn is_idle(&self, now_ns: i64) -> bool {
        self.una == self.nxt && self.is_quiet(now_ns)
    }

    /// The least round trip that this connection and, at the sender, others have shown.
    pub fn path_least_s(&self) -> f64 {
        let others = self.known_least.seconds().filter(|_| self.vantage == Vantage::Sender);
        others.map_or(self.rtt.min_s, |least_s| least_s.min(self.rtt.min_s))
    }

    /// So many least round trips; 0 before one was seen.
    pub fn round_trips_ns(&self, count: f64) -> i64 {
        if self.rtt.min_s.is_finite() {
            (self.rtt.min_s * count * 1e9) as i64
        } else {
            0
        }
    }

    /// Segments outstanding that the receiver is known, or thought, to have.
    #[inline]
    fn received(&self) -> u32 {
        if self.sack {
            self.sacked
        } else {
            self.thought_received()
        }
    }

    /// Without SACK, which few do without: by the duplicate ACKs. Those of a recovery that was taken back still count.
    #[inline(never)]
    fn thought_received(&self) -> u32 {
        match self.phase {
            Phase::Open => self.duplicate_acks.max(self.reno_received()),
            _ => self.unexplained_acks,
        }
    }

    #[inline]
    fn flight_without(&self, received: u32) -> f64 {
        if self.one_way {
            return f64::NAN;
        }
        f64::from(self.outstanding.saturating_sub(received))
    }

    /// What an event of marks says of the sender.
    pub fn state(&self) -> State {
        State {
            una: self.una,
            nxt: self.nxt,
            smss: self.smss,
            flight: self.flight(),
            phase: self.phase,
            rtt_s: self.rtt.srtt_s,
            exact: self.vantage == Vantage::Sender,
        }
    }

    /// Integrates what is left since the last new data, before something else changes what is outstanding.
    pub fn catch_up(&mut self) {
        self.tick(self.last_sent_ns);
    }

    /// Moves the clock and integrates over the time with data outstanding.
    #[inline(never)]
    fn tick(&mut self, time_ns: i64) {
        self.tick_in_line(time_ns);
    }

    #[inline(always)]
    fn tick_in_line(&mut self, time_ns: i64) {
        let since_ns = time_ns - self.clock_ns;
        if since_ns <= 0 || std::mem::replace(&mut self.clock_ns, time_ns) == 0 {
            return;
        }
        let seconds = since_ns as f64 / 1e9;
        if self.outstanding > 0 {
            self.totals.busy_s += seconds;
            if self.rtt.srtt_s > 0.0 {
                self.totals.measured_s += seconds;
                self.totals.srtt_integral += self.rtt.srtt_s * seconds;
                self.totals.rto_integral += self.rtt.rto_s() * seconds;
            }
        } else {
            self.rounds.idle(seconds);
        }
        if self.window_is_full() {
            self.rounds.window_full(seconds);
        }
    }

    /// New data that pass at `time_ns` were held so much longer than what passed before them: if nothing is outstanding,
    /// they were on their way while the sender seemed to have nothing to send.
    pub fn was_not_idle(&mut self, longer_ns: i64, time_ns: i64) {
        if self.outstanding == 0 && self.clock_ns != 0 {
            self.clock_ns = (self.clock_ns + longer_ns.max(0)).min(time_ns);
        }
    }

    /// Another segment would not fit into the advertised window (RFC 9293, 3.8.6.2.1: the usable window).
    fn window_is_full(&self) -> bool {
        self.window
            .is_some_and(|window| !self.one_way && self.una + u64::from(window) < self.nxt + u64::from(self.smss))
    }

    /// A transmission thought missing arrived after all.
    pub fn arrived(&mut self, order: u64, left: u64, frame: u64) -> bool {
        self.board.arrived(order, left, frame) || self.fates.arrived(order, left, frame)
    }

    /// Gives out what no later packet can change.
    #[inline]
    pub fn settle(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        let fates_wait = |fates: &Fates| !fates.is_settled() || !fates.originals.is_empty();
        let late_wait = |reordering: &Reordering| !reordering.is_settled();
        if self.rounds.waits()
            || self.fates.get().is_some_and(fates_wait)
            || self.reordering.get().is_some_and(late_wait)
        {
            self.settle_waiting(now_ns, sink);
        }
    }

    /// Where losses are many something always waits, and rarely is due.
    #[inline(never)]
    fn settle_waiting(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        if self.is_due(now_ns) {
            self.settle_due(now_ns, sink);
        }
    }

    fn is_due(&self, now_ns: i64) -> bool {
        let mut known_ns = self.open_ns();
        if let Some(fates) = self.fates.get() {
            if fates.is_due(now_ns, &self.context()) {
                return true;
            }
            known_ns = fates.known_ns(known_ns);
        }
        let late_due = |reordering: &Reordering| reordering.is_due(known_ns);
        self.rounds.is_due(self.rounds_known_ns(known_ns)) || self.reordering.get().is_some_and(late_due)
    }

    /// Rounds that ended before are known, round trips and all, where losses are known of what was sent before `known_ns`.
    fn rounds_known_ns(&self, known_ns: i64) -> i64 {
        self.drift.get().map_or(known_ns, |drift| drift.held_ns.min(known_ns))
    }

    /// When the oldest segment that is outstanding was sent.
    #[inline]
    fn open_ns(&self) -> i64 {
        self.board.units.front().map_or(i64::MAX, |u| u.time_ns)
    }

    #[inline(never)]
    fn settle_due(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        let mut known_ns = self.open_ns();
        if !self.fates.is_settled() {
            let context = self.context();
            let drift = self.drift.get();
            known_ns = self
                .fates
                .settle(now_ns, known_ns, &context, drift, &mut self.rounds, sink);
        }
        self.rounds.settle(self.rounds_known_ns(known_ns), sink);
        let late_due = |reordering: &Reordering| reordering.is_due(known_ns);
        let fates_known = |fates: &Fates| !fates.originals.is_empty();
        if self.reordering.get().is_some_and(late_due) || self.fates.get().is_some_and(fates_known) {
            self.settle_reordering(known_ns, sink);
        }
    }

    /// The flow is over: everything is given out with what is known.
    pub fn finish(&mut self, sink: &mut dyn Sink) {
        self.catch_up();
        self.close_episode(self.last_sent_ns.max(self.last_ack_ns), false, sink);
        let held = self.duplicate_acks.max(self.may_be_held());
        let old = self.unexplained_acks.saturating_sub(held);
        if let Some(reordering) = self.reordering.changed() {
            reordering.forget_unexplained();
        }
        let not_held = self.not_held();
        if !self.sack && self.fates.get().is_some() {
            let now = self.moment(self.last_ack_ns);
            self.fates.close_stretch(old, self.duplicates.held_ns, &now);
        }
        if !self.board.units.is_empty() {
            // whether the path loses segments is known of what was delivered
            self.settle(i64::MAX, sink);
        }
        self.end_board(not_held);
        self.settle(i64::MAX, sink);
        if let Some(fates) = self.fates.changed() {
            fates.finish(self.smss, sink);
        }
        if let Some(reordering) = self.reordering.changed() {
            reordering.close(sink);
        }
        self.marks.close(sink);
        let busy_s = self.totals.measured_s;
        self.correct(|drift, seen| drift.on_end(busy_s, seen));
        self.rounds.finish(self.phase, sink);
    }

    /// Without timestamps: a sample of the round trip, which what is told later corrects.
    #[inline(never)]
    pub(super) fn on_drifting_sample(&mut self, time_ns: i64, rtt_s: f64) {
        let busy_s = self.totals.measured_s;
        self.drift.hold(self.rounds.ended_ns());
        self.drift.on_sample(time_ns, busy_s, rtt_s);
        if self.rounds.are_many() {
            self.correct(|drift, seen| drift.on_many_rounds(seen));
        }
    }

    /// Nothing is known to be missing: else an ACK may cover what has long come.
    pub fn is_undisturbed(&self) -> bool {
        self.phase == Phase::Open && self.duplicate_acks == 0 && self.sacked == 0
    }

    /// When the byte `at` passed that is outstanding, if it did once.
    pub fn sent_ns(&self, at: u64) -> Option<i64> {
        let unit = self.board.units.get(self.board.find(at))?;
        unit.is_plain().then_some(unit.time_ns)
    }

    /// A resend, or what the other end sends, tells how long ACKs are under way.
    pub fn on_way_told(&mut self, time_ns: i64, way_ns: i64, unsent: u32, by: By) {
        self.correct(|drift, seen| drift.on_told(time_ns, way_ns as f64 / 1e9, unsent, by, seen));
    }

    /// Without timestamps: a third duplicate ACK has asked for the resend that passes, when `outstanding` bytes had been sent from
    /// it on. Where ACKs were under way for longer than was known, the first came when fewer of these had passed, or so it seemed;
    /// between it and the resend the sender sent a segment for it and for the second (RFC 3042).
    pub fn on_asked(&mut self, outstanding: u64) {
        let undisturbed = (outstanding / u64::from(self.smss)).saturating_sub(u64::from(DUPTHRESH) - 1) as f64;
        if undisturbed > self.duplicates.undisturbed_flight {
            self.duplicates.undisturbed_flight = undisturbed;
        }
    }

    /// The receiver's window has no room for another segment behind so many bytes.
    pub fn fills_window(&self, outstanding: u64) -> bool {
        let more = outstanding + u64::from(self.smss);
        self.window.is_some_and(|window| more > u64::from(window))
    }

    /// Without timestamps: corrects what was seen since the way was told last.
    pub fn correct(&mut self, by: impl FnOnce(&mut Drift, Seen)) {
        let window = self.window.map(|window| f64::from(window) / f64::from(self.smss));
        let seen = Seen {
            rtt: &mut self.rtt,
            rounds: &mut self.rounds,
            flight_max: &mut self.flight_max,
            window,
        };
        if let Some(drift) = self.drift.changed() {
            by(drift, seen);
        }
    }

    /// When the retransmission timer was last started: by an ACK that moved the left edge, or with the head of what is
    /// outstanding (RFC 6298, 5.1 to 5.3).
    pub fn timer_start_ns(&self) -> i64 {
        let head = self.board.units.front();
        let head_ns = head.map_or(i64::MIN / 2, |u| self.board.last(u).time_ns);
        self.last_advance_ns.max(head_ns).max(self.episodes.probe_ns)
    }

    /// Time an answer to an ACK may take and still count as sent because of it.
    pub fn clock_tolerance_ns(&self) -> i64 {
        let share = if self.vantage == Vantage::Sender { 0.05 } else { 0.1 };
        let floor = if self.vantage == Vantage::Sender {
            CLOCK_FLOOR_NS
        } else {
            4 * CLOCK_FLOOR_NS
        };
        floor.max((self.rtt.srtt_s * share * 1e9) as i64)
    }

    /// How soon the host sends what an ACK lets go: mean of the answers that come within the tolerance.
    #[inline(always)]
    fn learn_response(&mut self, took_ns: i64) {
        // the floor of the tolerance is the host's own business, and spares most the product
        if (0..CLOCK_FLOOR_NS).contains(&took_ns) || (0..self.clock_tolerance_ns()).contains(&took_ns) {
            self.response_ns = if self.response_ns == 0 {
                took_ns.max(1)
            } else {
                self.response_ns + (took_ns - self.response_ns) / 16
            };
        }
    }

    /// As soon after an ACK as this host answers.
    pub fn is_prompt(&self, since_ack_s: f64) -> bool {
        (since_ack_s * 1e9) as i64 <= (self.response_ns * PROMPT_RESPONSES).max(PROMPT_NS)
    }

    /// Eifel (RFC 3522): the covering ACK echoes a timestamp older than the first resend's.
    pub fn echoes_original(echo: Option<u32>, first_resend_tsval: u32) -> bool {
        echo.is_some_and(|echo| before(echo, first_resend_tsval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_take_longer_where_the_time_of_its_ack_is_an_estimate() {
        let tolerance_ns = |vantage: Vantage, srtt_s: f64| {
            let mut sender = Sender::new(0, 0, 1448, vantage);
            sender.rtt.srtt_s = srtt_s;
            sender.clock_tolerance_ns()
        };
        assert_eq!(tolerance_ns(Vantage::Sender, 0.01), 1_000_000);
        assert_eq!(tolerance_ns(Vantage::Sender, 0.1), 5_000_000);
        for vantage in [Vantage::Receiver, Vantage::Middle, Vantage::Unknown] {
            assert_eq!(tolerance_ns(vantage, 0.01), 4_000_000);
            assert_eq!(tolerance_ns(vantage, 0.1), 10_000_000);
        }
    }

    #[test]
    fn counters_of_marks_leave_little_room_for_sack_blocks() {
        let few_blocks = |timestamps: bool, ce_bytes: Option<u32>| {
            let mut sender = Sender::new(0, 0, 1448, Vantage::Sender);
            sender.timestamps = timestamps;
            sender.note_room(&Ack {
                ce_bytes: ce_bytes.into(),
                ..Ack::NONE
            });
            sender.few_blocks
        };
        assert!(few_blocks(true, Some(0)));
        assert!(!few_blocks(false, Some(0)) && !few_blocks(true, None));
    }
}
