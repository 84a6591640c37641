//! The data sender of a flow, followed from outside: what it has outstanding, what its congestion control felt.
//!
//! Everything here happens on the sender's clock as seen from the capture point: `arrivals` puts transmissions into
//! sending order (those that never came by included), `ack_delay` holds each ACK until the sender can have had it. At a
//! sender's capture both do nothing, and one state machine serves every vantage point. All state is `inferred`.

use crate::events::cause::{Episodes, DUPTHRESH};
use crate::events::fate::{least_ns, Fates};
use crate::events::marks::{Echo, Marks, State};
use crate::events::reordering::Reordering;
use crate::flow::rare::{Blank, Rare};
use crate::flow::rounds::Rounds;
use crate::flow::rtt::Rtt;
use crate::flow::scoreboard::{segments, Covered, Scoreboard, Transmission, Unit};
use crate::flow::sequence::before;
use crate::rows::{Phase, Reason, Sink, Vantage};

/// An answer is prompt within so many mean response times, or within so long on any host.
const PROMPT_RESPONSES: i64 = 8;
const PROMPT_NS: i64 = 200_000;
/// Units kept of a flow without ACKs, to know data sent again: 90 MB of segments on Ethernet.
const HELD_ONE_WAY: usize = 65_536;
/// Time in which an answer to an ACK counts as sent because of it, at least: at the sender;
/// elsewhere four times as long.
const CLOCK_FLOOR_NS: i64 = 1_000_000;
/// Units that one ACK is held against, where it may concern any.
pub const LOOKED_AT: usize = 4096;
/// Segments below the advertised window at which it was not what held the sender.
const WINDOW_ROOM: u64 = 3;
/// Round trips after the last resend until answers to needless copies have come.
const EPOCH_ROUND_TRIPS: f64 = 1.5;

/// An acknowledgement as it reached the sender.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    pub time_ns: i64,
    pub frame: u64,
    pub ack: u64,
    /// Window after scaling, in bytes, below 2^30 (RFC 7323, 2.3); `None` if the scale is not known.
    pub window: Option<u32>,
    pub tsecr: Option<u32>,
    /// It carried no payload, SYN or FIN.
    pub pure: bool,
    pub sack: [(u64, u64); 4],
    pub sack_len: u8,
    /// AE, CWR and ECE.
    pub ace: u8,
}

/// SACK blocks, and how many there are.
type Blocks = ([(u64, u64); 4], u8);

impl Ack {
    /// What it says of marks; `progress` as in `Echo`.
    pub fn echo(&self, progress: bool) -> Echo {
        Echo {
            time_ns: self.time_ns,
            frame: self.frame,
            ack: self.ack,
            ace: self.ace,
            progress,
        }
    }
}

/// A range that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub left: u64,
    pub right: u64,
    pub time_ns: i64,
    /// 0: it did not pass the capture point.
    pub frame: u64,
    pub tsval: u32,
    pub ip_id: u16,
    /// Nothing but time tells it from the first copy of its range.
    pub doubtful: bool,
}

impl Sent {
    /// A transmission that never passed the capture point.
    pub fn unseen(left: u64, right: u64, time_ns: i64) -> Self {
        Self {
            left,
            right,
            time_ns,
            frame: 0,
            tsval: 0,
            ip_id: 0,
            doubtful: false,
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

pub struct Sender {
    pub flow: u32,
    pub smss: u32,
    pub vantage: Vantage,
    pub sack: bool,
    pub timestamps: bool,
    /// Nothing of the receiver is in the capture: no left edge, no round trip, no flight.
    pub one_way: bool,
    /// Least time between a segment and its first resend, which is at least a round trip; infinite before one was seen.
    pub least_resend_s: f64,
    pub board: Scoreboard,
    /// RFC 9293's SND.UNA and SND.NXT, the latter as the highest byte sent.
    pub una: u64,
    pub nxt: u64,
    /// Transmissions so far, in segments.
    pub order: u64,
    pub rtt: Rtt,
    /// Segments sent and not acknowledged; of these, SACKed ones.
    pub outstanding: u32,
    pub sacked: u32,
    /// Since the left edge moved (RFC 5681, 2).
    pub duplicate_acks: u32,
    pub duplicates: Rare<Duplicates>,
    /// Flight just before the last ACK that moved the left edge in phase open, while it is not known whether it let
    /// anything go; and whether the receiver's window had room.
    held_back: Option<(f64, bool)>,
    /// Highest byte that SACK reported of data sent once.
    pub heard: u64,
    /// Mean time from an ACK to what it let go; 0 while none was seen.
    response_ns: i64,
    /// What SACK blocks have covered above the left edge.
    pub covered: Option<Box<Covered>>,
    /// More was outstanding than is followed.
    pub overfull: bool,
    /// SACK blocks of the last ACK, if it had any.
    last_sack: Option<Box<Blocks>>,
    /// Without SACK: duplicate ACKs not yet explained by data that the receiver held above a hole. What is left of them
    /// when all holes are filled came from copies of data that had arrived before.
    pub unexplained_acks: u32,
    pub last_ack_ns: i64,
    pub last_advance_ns: i64,
    pub last_sent_ns: i64,
    /// Order of the newest transmission known to have been delivered.
    pub delivered_order: u64,
    /// Window of the last ACK, in bytes.
    pub window: Option<u32>,
    pub phase: Phase,
    pub episodes: Rare<Episodes>,
    pub fates: Rare<Fates>,
    pub rounds: Rounds,
    pub reordering: Rare<Reordering>,
    pub marks: Marks,
    pub totals: Totals,
    clock_ns: i64,
}

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
}

impl Blank for Duplicates {
    const BLANK: &'static Self = &Self {
        count: 0,
        undisturbed_flight: 0.0,
        first_ns: 0,
        third_ns: i64::MIN / 2,
        held_to: 0,
        held_ns: i64::MIN / 2,
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
    pub flight_max: f64,
}

impl Sender {
    pub fn new(flow: u32, start: u64, smss: u32, vantage: Vantage) -> Self {
        Self {
            flow,
            smss,
            vantage,
            sack: false,
            timestamps: false,
            one_way: false,
            least_resend_s: f64::INFINITY,
            board: Scoreboard::default(),
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
            phase: Phase::Open,
            episodes: Rare::new(flow),
            fates: Rare::new(flow),
            rounds: Rounds::new(flow),
            reordering: Rare::new(flow),
            marks: Marks::new(flow),
            totals: Totals::default(),
            clock_ns: 0,
        }
    }

    /// Gives back what is held in reserve.
    pub fn shrink(&mut self) {
        if self.board.units.is_empty() {
            self.board = Scoreboard::default();
        }
    }

    /// Segments outstanding at the sender: RFC 6675's pipe as far as SACKs and duplicate ACKs tell; NaN without ACKs.
    #[inline]
    pub fn flight(&self) -> f64 {
        self.flight_without(self.received())
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

    /// Without SACK, which few do without: by the duplicate ACKs.
    #[inline(never)]
    fn thought_received(&self) -> u32 {
        match self.phase {
            Phase::Open => self.duplicate_acks,
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
            flight: self.flight(),
            phase: self.phase,
            rtt_s: self.rtt.srtt_s,
            exact: self.vantage == Vantage::Sender,
        }
    }

    /// Before new data up to `right` go out: nothing that is integrated changes with them, unless they are the first
    /// outstanding or fill the window. Most of the time of a flow is integrated at its ACKs.
    #[inline(always)]
    fn tick_at_new_data(&mut self, time_ns: i64, right: u64) {
        let fills = |window: u32| !self.one_way && self.una + u64::from(window) < right + u64::from(self.smss);
        if self.outstanding == 0 || self.window.is_some_and(fills) {
            self.tick(time_ns);
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

    /// Another segment would not fit into the advertised window (RFC 9293, 3.8.6.2.1: the usable window).
    fn window_is_full(&self) -> bool {
        self.window
            .is_some_and(|window| !self.one_way && self.una + u64::from(window) < self.nxt + u64::from(self.smss))
    }

    #[inline(always)]
    fn transmission(&self, sent: &Sent, cause: Reason, flight: f64) -> Transmission {
        Transmission {
            time_ns: sent.time_ns,
            order: self.order,
            frame: sent.frame,
            tsval: sent.tsval,
            flight: flight as f32,
            ip_id: sent.ip_id,
            cause,
            doubtful: sent.doubtful,
        }
    }

    /// New data: `sent.left` is `nxt`.
    #[inline(never)]
    pub fn send_new(&mut self, sent: &Sent) {
        let count = segments(sent.right - sent.left, self.smss);
        let full = self.board.is_full();
        let mut received = self.received();
        self.put_on_board(sent, count, self.flight_without(received));
        if full {
            self.let_go();
            received = self.received();
        }
        self.last_sent_ns = sent.time_ns;
        let flight = self.flight_without(received);
        if self.one_way {
            return;
        }
        self.note_flight(sent, count, flight);
    }

    /// The same, in line, for what most are: `count` segments of which the ACKs are seen, while the board is not full.
    #[inline(always)]
    pub fn send_next(&mut self, sent: &Sent, count: u32) {
        let received = self.received();
        let flight = |sender: &Self| f64::from(sender.outstanding.saturating_sub(received));
        self.put_on_board(sent, count, flight(self));
        self.last_sent_ns = sent.time_ns;
        self.note_flight(sent, count, flight(self));
    }

    /// `flight` is what was outstanding before.
    #[inline(always)]
    fn put_on_board(&mut self, sent: &Sent, count: u32, flight: f64) {
        self.tick_at_new_data(sent.time_ns, sent.right);
        self.learn_response(sent.time_ns - self.last_ack_ns);
        let first = self.transmission(sent, Reason::Unknown, flight);
        *self.board.units.push_back() = Unit::new(sent.left, sent.right, &first);
        self.order += u64::from(count);
        self.nxt = sent.right;
        self.outstanding += count;
    }

    /// New data have brought the flight to `flight`.
    #[inline(always)]
    fn note_flight(&mut self, sent: &Sent, count: u32, flight: f64) {
        if flight > self.totals.flight_max {
            self.totals.flight_max = flight;
        }
        self.bound_window(sent);
        self.rounds.sent(sent.time_ns, count, false, self.nxt, flight);
        // elsewhere, and without timestamps, when an ACK came to the sender is not known well enough
        let dated = self.vantage == Vantage::Sender || self.timestamps;
        match self.phase {
            Phase::Open if dated => self.rounds.window_reached(flight),
            Phase::Open => {}
            _ => self.rounds.disturbed(),
        }
    }

    /// More is outstanding than any window holds: the oldest is.
    #[cold]
    fn let_go(&mut self) {
        self.catch_up();
        let Some(unit) = self.board.units.pop_front() else {
            return;
        };
        let count = unit.segments(self.smss);
        self.overfull = true;
        self.una = unit.right();
        self.outstanding = self.outstanding.saturating_sub(count);
        if unit.sacked_ns != 0 {
            self.sacked = self.sacked.saturating_sub(count);
        }
        if let Some(covered) = &mut self.covered {
            covered.below(self.una);
        }
        if !unit.is_plain() {
            let history = self.board.history(unit);
            self.fates.on_undelivered(history);
        }
    }

    /// What an ACK let go had been waiting for it: before, the window was full. What comes at another time waited for the
    /// application, or was paced, and says nothing.
    #[inline(always)]
    fn bound_window(&mut self, sent: &Sent) {
        if self.vantage != Vantage::Sender {
            return;
        }
        if self.order > 0 && sent.time_ns - self.last_ack_ns > PROMPT_NS {
            self.rounds.unclocked();
            return;
        }
        let Some((full, room)) = self.held_back.take() else {
            return;
        };
        if room {
            self.rounds.cwnd_full(full, self.last_ack_ns);
        } else {
            self.rounds.unclocked();
        }
    }

    /// New data without ACKs: the timer's resends are over, and what is older than any window is let go.
    pub fn send_new_one_way(&mut self, sent: &Sent, sink: &mut dyn Sink) {
        self.close_episode(sent.time_ns, false, sink);
        self.send_new(sent);
        while self.board.units.len() > HELD_ONE_WAY {
            let Some(unit) = self.board.units.pop_front() else {
                break;
            };
            self.una = unit.right();
            self.outstanding = self.outstanding.saturating_sub(unit.segments(self.smss));
            if !unit.is_plain() {
                let history = self.board.history(unit);
                self.fates.on_undelivered(history);
                self.settle(sent.time_ns, sink);
            }
        }
    }

    /// Data below `nxt` again. Returns the label and the earlier transmission it repeats.
    pub fn send_again(&mut self, sent: &Sent, sink: &mut dyn Sink) -> Reason {
        self.tick(sent.time_ns);
        let count = segments(sent.right - sent.left, self.smss);
        let reason = self.on_resend(sent, sink);
        self.fates.on_resend(sent);
        let transmission = self.transmission(sent, reason, self.flight());
        let units = self.board.touch(sent.left.max(self.una), sent.right);
        let many = self.board.resendable(units.len());
        for n in units.take(many) {
            if let Some((old, next)) = self.board.resend(n, transmission) {
                let range = (self.board.units[n].left, self.board.units[n].right());
                let context = self.context();
                self.fates.give_up(range, &old, &next, &context, sink);
            }
        }
        self.order += u64::from(count);
        self.last_sent_ns = sent.time_ns;
        if !self.one_way {
            let flight = self.flight();
            self.rounds.sent(sent.time_ns, count, true, self.nxt, flight);
            self.rounds.disturbed();
        }
        reason
    }

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
    }

    /// Any ACK.
    #[inline(always)]
    pub fn on_ack(&mut self, ack: &Ack, sink: &mut dyn Sink) {
        self.one_way = false;
        self.tick_in_line(ack.time_ns);
        let (sacked_before, flight_before) = (self.sacked, self.flight());
        if ack.ack > self.una {
            self.hold_back(flight_before);
        }
        let heard = self.heard;
        if ack.sack_len > 0 {
            self.on_sack(ack);
        }
        if self.vantage == Vantage::Sender && self.marks.listens(ack.ace) {
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
            let same_window = ack.window == self.window;
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
            }
            if !self.sack {
                self.count_unexplained(ack);
            }
        }
        self.end_ack(ack.time_ns, ack.window);
    }

    /// Without SACK: an ACK that moves nothing came because of data above a hole, unless it answers a copy.
    #[inline(never)]
    fn count_unexplained(&mut self, ack: &Ack) {
        // an answer to a segment may move the window a little; an update alone comes only when it has grown a lot
        if ack.window > self.window.map(|w| 2 * w) {
            return;
        }
        if self.fates.expects_answers() && self.fates.is_answer(ack.time_ns, self.rtt.srtt_s) {
            return;
        }
        self.unexplained_acks += 1;
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
        if !self.sack && self.fates.get().is_some_and(Fates::epoch_open) {
            self.close_epoch(time_ns);
        }
        self.window = window;
        self.last_ack_ns = time_ns;
    }

    /// The ACK has the SACK blocks of the one before.
    #[inline]
    fn repeats_sack(&mut self, ack: &Ack) -> bool {
        if ack.sack_len == 0 {
            return self.last_sack.take().is_none();
        }
        let blocks = (ack.sack, ack.sack_len);
        let last = self.last_sack.get_or_insert_with(|| Box::new(([(0, 0); 4], 0)));
        // most often the first block differs
        let same = last.0[0] == blocks.0[0] && **last == blocks;
        **last = blocks;
        same
    }

    /// An ACK that says nothing new answers a segment that the receiver did not take: its timestamp was older than one
    /// taken before (RFC 7323, 5.3), so an original has come after a later-sent segment had moved the left edge.
    #[inline(never)]
    fn on_discarded(&mut self, ack: &Ack) {
        let Some(echo) = ack.tsecr.filter(|_| self.timestamps) else {
            return;
        };
        let latest_ns = ack.time_ns - least_ns(self.rtt.min_s);
        let late = |u: &Unit| u.sacked_ns == 0 && !u.is_discarded() && u.first_seen() && before(u.tsval, echo);
        let units = &mut self.board.units;
        let mut old = units.iter().take_while(|u| u.time_ns <= latest_ns).take(LOOKED_AT);
        let found = old.position(late);
        drop(old);
        if let Some(n) = found {
            units[n].discard();
        }
    }

    #[inline]
    fn on_sack(&mut self, ack: &Ack) {
        let blocks = &ack.sack[..ack.sack_len as usize];
        self.sack = true;
        let mut first_sample: Option<i64> = None;
        let (heard, mut covered) = (self.heard, self.covered.take().unwrap_or_default());
        for (i, &(left, right)) in blocks.iter().enumerate() {
            // RFC 2883, 4: a duplicate is reported by the first block, below the ACK or inside the second block
            let inside = || blocks.get(1).is_some_and(|b| b.0 <= left && right <= b.1);
            if i == 0 && (right <= ack.ack || inside()) {
                self.fates.on_dsack(left, right, ack, self.rtt.min_s, &mut self.board);
                continue;
            }
            if left >= right || left < self.una || right > self.nxt {
                continue;
            }
            if let Some((left, right)) = covered.grow(left, right) {
                if left < right {
                    self.on_first_covered(left, right, ack, heard, &mut first_sample);
                }
                continue;
            }
            for &(left, right) in covered.add(left, right) {
                self.on_first_covered(left, right, ack, heard, &mut first_sample);
            }
        }
        self.covered = Some(covered);
        if let Some(sent_ns) = first_sample.filter(|_| ack.ack <= self.una) {
            let rtt_s = (ack.time_ns - sent_ns) as f64 / 1e9;
            self.rtt.smooth(rtt_s, self.una, self.nxt);
        }
    }

    /// SACK blocks cover [left, right), of which nothing was covered. They are held against `heard`; `first_sample` is when
    /// the first of the units was sent that was sent once.
    #[inline(never)]
    fn on_first_covered(&mut self, left: u64, right: u64, ack: &Ack, heard: u64, first_sample: &mut Option<i64>) {
        for n in self.board.cut(left, right) {
            let unit = &mut self.board.units[n];
            unit.sacked_ns = ack.time_ns;
            self.sacked += unit.segments(self.smss);
            if unit.is_resent() {
                self.on_resent_covered(n, ack.time_ns);
            } else {
                self.heard = self.heard.max(unit.right());
                self.delivered_order = self.delivered_order.max(unit.order);
                if unit.first_seen() && first_sample.is_none() {
                    *first_sample = Some(unit.time_ns);
                }
            }
            if self.board.units[n].left < heard {
                let unit = self.board.units[n];
                self.on_overtaken(&unit, ack, heard);
            }
        }
    }

    /// The n-th unit, which was sent again, is covered: if time allows, by the last of its copies.
    #[inline(never)]
    fn on_resent_covered(&mut self, n: usize, now_ns: i64) {
        let last = self.board.last(&self.board.units[n]);
        if now_ns - last.time_ns >= (self.rtt.min_s * 1e9) as i64 {
            self.delivered_order = self.delivered_order.max(last.order);
        }
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
        if let Some(sent_ns) = sample_ns {
            let rtt_s = (time_ns - sent_ns) as f64 / 1e9;
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
                if unit.sacked_ns == 0 {
                    taken.oldest.get_or_insert(unit.time_ns);
                }
            } else {
                taken.resent |= unit.is_resent();
                let history = self.board.history(unit);
                if let Some(echo) = ack.tsecr.filter(|_| self.timestamps) {
                    if let Some(t) = history.copies.iter().rfind(|t| t.seen() && t.tsval == echo) {
                        taken.echoed = Some(t.time_ns);
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
                    .on_delivered(history, delivered_ns, head, before, ack, self.rtt.min_s);
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
            let least_ns = least_ns(self.rtt.min_s);
            if !head && unit.time_ns + least_ns <= self.duplicates.held_ns {
                held = held.saturating_sub(count);
            }
        }
        // one segment filled the hole, each of the others it released had brought a duplicate ACK
        self.unexplained_acks = held;
        if taken.resent {
            (None, taken.echoed)
        } else {
            (taken.oldest, None)
        }
    }

    /// A round-trip sample restarts the timer's computation (RFC 6298, 5.7).
    fn restart_timer(&mut self) {
        if let Some(episodes) = self.episodes.changed() {
            episodes.doublings = 0;
        }
    }

    /// Without SACK: a stretch of resends is over, a round trip after the last of them, when everything is acknowledged
    /// that was under way at the last duplicate ACK. The duplicate ACKs that nothing held explains were answers to copies
    /// of data that had arrived (RFC 5681, 4.2: those are acknowledged at once), so as many resends were not needed.
    fn close_epoch(&mut self, now_ns: i64) {
        let quiet_ns = self.fates.last_resend_ns + (self.rtt.srtt_s * EPOCH_ROUND_TRIPS * 1e9) as i64;
        let explained = self.una >= self.duplicates.held_to && !self.fates.resend_outstanding(self.una);
        if self.phase == Phase::Open && explained && now_ns > quiet_ns {
            self.fates.close_epoch(self.unexplained_acks, self.smss);
            self.unexplained_acks = 0;
        }
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

    fn settle_waiting(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        let open_ns = self.board.units.front().map_or(i64::MAX, |u| u.time_ns);
        let mut known_ns = open_ns;
        if !self.fates.is_settled() {
            let context = self.context();
            known_ns = self.fates.settle(now_ns, open_ns, &context, &mut self.rounds, sink);
        }
        self.rounds.settle(known_ns, sink);
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
        let old = self.unexplained_acks.saturating_sub(self.duplicate_acks);
        if let Some(fates) = self.fates.changed() {
            fates.close_epoch(if self.sack { 0 } else { old }, self.smss);
        }
        while let Some(unit) = self.board.units.pop_front() {
            if !unit.is_plain() {
                let history = self.board.history(unit);
                self.fates.on_undelivered(history);
            }
        }
        self.settle(i64::MAX, sink);
        if let Some(fates) = self.fates.changed() {
            fates.finish(sink);
        }
        if let Some(reordering) = self.reordering.changed() {
            reordering.close(sink);
        }
        self.marks.close(sink);
        self.rounds.finish(self.phase, sink);
    }

    /// When the retransmission timer was last started: by an ACK that moved the left edge, or with the head of what is
    /// outstanding (RFC 6298, 5.1 to 5.3).
    pub fn timer_start_ns(&self) -> i64 {
        let head = self.board.units.front();
        let head_ns = head.map_or(i64::MIN / 2, |u| self.board.last(u).time_ns);
        self.last_advance_ns.max(head_ns)
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
}
