//! Why a segment was sent again, and the episodes of loss recovery that follow from it.
//!
//! ```text
//!            third duplicate ACK, SACK or RACK                 timer
//!  open -------------------------------------> recovery ----------------> loss
//!    ^ <---- left edge reaches `recover`, or the     |                     |  timer: back-off + 1
//!    |       original turns out to have arrived      |                     |
//!    +-----------------------------------------------+---------------------+
//! ```
//! RFC 5681 (3.2), RFC 6582 (3.2) and RFC 6675 (5) for recovery, RFC 6298 (5) for the timer, RFC 8985 for RACK and the
//! tail loss probe, RFC 5827 for early retransmit. Senders differ, so each rule asks what the capture shows (how long the
//! silence was, whether an ACK had just come, whether something sent later had arrived) and none asks who the sender is.
//!
//! At a capture point away from the sender the moment at which an ACK reached it is an estimate; then "an ACK had just
//! come" is taken loosely. A resend that nobody could see (lost before the capture point, no usable IP identification)
//! has no cause here.

use crate::flow::ack_delay::Passage;
use crate::flow::rare::Blank;
use crate::flow::scoreboard::{segments, Transmission, Unit};
use crate::flow::sender::{Ack, Sender, Sent, LOOKED_AT};
use crate::flow::sequence::offset;
use crate::rows::{EventRow, Kind, Phase, Reason, Sink, Vantage};
use std::ops::Range;

mod label;
mod lost_resend;

/// Share of the replayed timer that must have passed for a resend to be the timer's.
const TIMER_SHARE: f64 = 0.85;
/// No timer runs shorter than this on a stack as it comes (RFC 6298 asks for 1 s, Linux takes 200 ms).
pub const SHORTEST_TIMER_S: f64 = 0.15;
/// Doublings of the timer that still tell anything.
const LARGEST_BACKOFF: u32 = 16;
/// Least timer that RFC 6298 (2.4) asks for.
const RFC_FLOOR_S: f64 = 1.0;
/// Without ACKs: least resends take about a round trip, and a silence this many times as long is the timer's.
const ONE_WAY_ROUND_TRIPS: f64 = 1.5;
/// The same where no resend has shown one: few paths are longer.
const UNKNOWN_ROUND_TRIP_S: f64 = 0.6;
/// A timer is doubled to 64 times its length at most (Padhye et al. 1998, section II-B; Linux: 120 s).
const MOST_DOUBLINGS: u32 = 6;
/// Resends that show a host to go on with recoveries whose originals had come, where the path may have brought these
/// together with the ACKs; at the sender one shows it.
const GONE_ON_AWAY: u32 = 3;
/// Hosts that answer ACKs sooner, on average, do not pace what they send.
const AT_ONCE_NS: i64 = 1_000_000;
/// Duplicate ACKs, or SACKed segments above, that trigger a fast retransmit (RFC 5681, 3.2).
pub const DUPTHRESH: u32 = 3;

#[derive(Clone, Debug)]
pub struct Episodes {
    /// RFC 6582's recover: highest byte sent when the episode began.
    pub recover: u64,
    /// The recovery or timeout under way, given out when it ends.
    opened: Option<Box<EventRow>>,
    /// Transmission order when the episode began.
    order: u64,
    /// Left edge at the last expiry, and how many expiries it has seen.
    timer_una: u64,
    backoff: u32,
    /// Left edge when the last tail loss probe was sent.
    probe_una: u64,
    /// When that was.
    pub probe_ns: i64,
    /// A recovery was taken back: the host takes late segments for possible.
    taken_back: bool,
    /// When the last such ACK came in the middle of a recovery, without SACK.
    undone_ns: i64,
    /// Resends that followed upon such ACKs all the same.
    gone_on: u32,
    /// Recoveries that RACK has begun, as fewer SACKed segments than `DUPTHRESH` had asked for them.
    begun_by_rack: u32,
    /// Doublings of the timer (RFC 6298, 5.5), that last until data sent once are acknowledged (5, the note on 5.5; Karn).
    pub doublings: u32,
    /// Smoothed length of the timers seen from start to end, undoubled, the host's own floor included; 0 while none was.
    timer_s: f64,
    /// What runs shorter is no timer of this host.
    least_timer_s: f64,
    /// When the first partial ACK of the recovery under way came; 0 before it.
    partial_ns: i64,
    /// How the segment that passes now came, as far as a path stood still.
    passage: Passage,
    /// When a resend passed that duplicate ACKs had asked for, as no silence came before it.
    pub answered_ns: i64,
    pub recoveries: u64,
    pub timeouts: u64,
    pub probes: u64,
}

impl Blank for Episodes {
    const BLANK: &'static Self = &Self {
        recover: 0,
        opened: None,
        order: 0,
        timer_una: u64::MAX,
        backoff: 0,
        probe_una: u64::MAX,
        probe_ns: i64::MIN / 2,
        taken_back: false,
        undone_ns: 0,
        gone_on: 0,
        begun_by_rack: 0,
        doublings: 0,
        timer_s: 0.0,
        least_timer_s: SHORTEST_TIMER_S,
        partial_ns: 0,
        passage: Passage::NONE,
        answered_ns: i64::MIN,
        recoveries: 0,
        timeouts: 0,
        probes: 0,
    };

    fn new(_flow: u32) -> Self {
        Self::BLANK.clone()
    }
}

impl Episodes {
    /// Without a timer seen from start to end: a series of expiries that all left numbers, the first after `first_s`.
    pub fn saw_series(&mut self, first_s: f64) {
        if self.timer_s == 0.0 {
            self.timer_s = first_s / f64::from(self.doublings).exp2();
        }
    }

    /// Expiries of a doubling timer that fill a silence: after n of them RTO (2^n - 1) has passed (RFC 6298, 5.5). RTO is
    /// what earlier expiries took, or before one was seen the replayed timer or RFC 6298's floor of 1 s (2.4), whichever
    /// divides the silence better; doubled as often as it still is.
    pub fn expiries(&self, silence_s: f64, replayed_s: f64) -> Expiries {
        let doubled = f64::from(self.doublings).exp2();
        let fit = |rto_s: f64| {
            let rto_s = rto_s * doubled;
            let n = (silence_s / rto_s + 1.0).log2().round().max(1.0);
            Expiries {
                count: n as usize,
                off: (silence_s / (rto_s * (n.exp2() - 1.0))).ln().abs(),
            }
        };
        if self.timer_s > 0.0 {
            return fit(self.timer_s);
        }
        let (replayed, floor) = (fit(replayed_s), fit(replayed_s.max(RFC_FLOOR_S)));
        if floor.off < replayed.off {
            floor
        } else {
            replayed
        }
    }
}

/// Expiries of the timer that fill a silence.
#[derive(Clone, Copy, Debug)]
pub struct Expiries {
    pub count: usize,
    /// Logarithm of how much longer or shorter the silence is than they take.
    off: f64,
}

impl Expiries {
    /// They take as long as the silence; another number would take half as long, or twice.
    pub fn fit(self) -> bool {
        self.off < std::f64::consts::LN_2 / 4.0
    }
}

/// What the rules ask about a resend.
struct Question {
    time_ns: i64,
    head: bool,
    tail: bool,
    /// Transmissions of the unit so far, and the last of them.
    copies: usize,
    last: Transmission,
    sacked: bool,
    /// Segments SACKed above it, counted up to `DUPTHRESH`.
    sacked_above: u32,
    since_ack_s: f64,
    since_sent_s: f64,
    /// Nothing came and nothing was sent.
    silence_s: f64,
    since_advance_s: f64,
    /// Since the timer was last started: an advance of the left edge or the last transmission of the head.
    timer_s: f64,
    /// An ACK had just come.
    clocked: bool,
}

impl Sender {
    /// The unit was sent again since the episode began.
    pub fn has_resent(&self, unit: &Unit) -> bool {
        unit.is_resent() && self.board.last(unit).order >= self.episodes.order
    }

    /// What a path that stood still held was sent earlier than it passes.
    pub fn passes(&mut self, passage: Passage) {
        if passage.held_ns > 0 {
            self.episodes.passage = passage;
        } else if self.episodes.passage.held_ns > 0 {
            self.episodes.passage = Passage::NONE;
        }
    }

    /// The units that a resend repeats.
    pub fn repeated(&mut self, sent: &Sent) -> Range<usize> {
        self.board.touch(sent.left.max(self.una), sent.right)
    }

    fn question(&mut self, sent: &Sent) -> Option<Question> {
        let units = self.repeated(sent);
        self.question_of(sent, units)
    }

    /// What the rules ask about a resend of `range`.
    fn question_of(&self, sent: &Sent, range: Range<usize>) -> Option<Question> {
        // what had arrived of it comes along, and is not what it was sent for
        let sacked = |n: &usize| self.board.units.get(*n).is_some_and(|unit| unit.sacked_ns != 0);
        let n = range
            .clone()
            .take(LOOKED_AT)
            .find(|n| !sacked(n))
            .unwrap_or(range.start);
        let unit = self.board.units.get(n).filter(|_| !range.is_empty())?;
        // what passed after it was sent was held as well, and sent before it
        let Passage { held_ns, quiet_ns, .. } = self.episodes.passage;
        let since_ns = |from: i64| match sent.time_ns - held_ns - from {
            ..0 if held_ns > 0 => quiet_ns,
            since_ns => since_ns,
        };
        let seconds = |from: i64| since_ns(from) as f64 / 1e9;
        let head = unit.left == self.una;
        let resent = self.board.resends(unit);
        let last = resent.last().copied().unwrap_or_else(|| unit.first());
        let (since_ack_s, since_sent_s) = (seconds(self.last_ack_ns), seconds(self.last_sent_ns));
        let sacked_above = if self.sacked > 0 {
            self.sacked_from(range.end)
        } else {
            0
        };
        Some(Question {
            time_ns: sent.time_ns,
            head,
            tail: sent.right >= self.nxt,
            copies: 1 + resent.len(),
            sacked: unit.sacked_ns != 0,
            sacked_above,
            since_ack_s,
            since_sent_s,
            silence_s: since_ack_s.min(since_sent_s),
            since_advance_s: seconds(self.last_advance_ns),
            timer_s: seconds(self.timer_start_ns()),
            clocked: since_ns(self.last_ack_ns) <= self.clock_tolerance_ns(),
            last,
        })
    }

    /// Segments SACKed from the n-th unit on, counted up to `DUPTHRESH`. Each covered range has one at least.
    fn sacked_from(&self, n: usize) -> u32 {
        let (Some(covered), Some(unit)) = (&self.covered, self.board.units.get(n)) else {
            return 0;
        };
        let mut count = 0;
        for (left, right) in covered.above(unit.left).take(DUPTHRESH as usize) {
            let from = self.board.at_or_after(left.max(unit.left));
            let units = self
                .board
                .units
                .range(from..self.board.units.len())
                .take_while(|u| u.left < right);
            let sacked = units.filter(|u| u.sacked_ns != 0).take(DUPTHRESH as usize);
            count += sacked.map(|u| u.segments(self.smss)).sum::<u32>();
            if count >= DUPTHRESH {
                break;
            }
        }
        count
    }

    /// Labels a resend of those units, moves the episode on and gives out its events.
    pub fn on_resend(&mut self, sent: &Sent, units: Range<usize>, sink: &mut dyn Sink) -> Reason {
        let asked = self.question_of(sent, units);
        if self.one_way {
            return self.on_resend_one_way(sent, asked, sink);
        }
        let Some(question) = asked else {
            if self.begun_before && self.totals.acks == 0 {
                // data older than the capture, of which no ACK has been seen
                self.resend_event(sent, None, Reason::Unknown, sink);
                return Reason::Unknown;
            }
            let unheard = self.timer_unheard(sent);
            let reason = if unheard.is_some() {
                Reason::Rto
            } else {
                Reason::Unneeded
            };
            if let Some(question) = &unheard {
                self.on_timeout(sent, question, sink);
            }
            self.resend_event(sent, unheard.as_ref(), reason, sink);
            self.fates.unneeded(sent, self.smss, self.rtt.floor().ns(), sink);
            return reason;
        };
        let reason = match self.label(&question) {
            // duplicate ACKs of what was under way may still come when the timer runs out
            Reason::FastDupthresh | Reason::PartialAck if sent.by_timer => Reason::Rto,
            reason => reason,
        };
        match reason {
            Reason::Rto => self.on_timeout(sent, &question, sink),
            Reason::Tlp => self.on_probe(sent, &question, sink),
            Reason::FastDupthresh | Reason::FastRack | Reason::EarlyRetransmit => {
                self.close_episode(sent.time_ns, false, sink);
                let row = self.recovery(sent, &question, reason);
                self.open_episode(Phase::Recovery, row);
                self.episodes.recoveries += 1;
                self.episodes.begun_by_rack += u32::from(reason == Reason::FastRack);
            }
            Reason::PartialAck if self.phase == Phase::Open => self.episodes.gone_on += 1,
            _ => {}
        }
        if let Some(recovery) = self.episodes.opened.as_mut().filter(|row| row.kind == Kind::Recovery) {
            recovery.segments += segments(sent.right - sent.left, self.smss);
        }
        self.resend_event(sent, Some(&question), reason, sink);
        reason
    }

    /// Away from the sender: the ACK of data that are sent again was lost on its way to it, and its timer has run out (RFC 6298,
    /// 5.4). A probe would repeat the newest data (RFC 8985, 7.3).
    fn timer_unheard(&self, sent: &Sent) -> Option<Question> {
        let since_sent_s = (sent.time_ns - self.last_sent_ns) as f64 / 1e9;
        let full_s = (TIMER_SHARE * self.shortest_timer_s()).max(self.episodes.least_timer_s);
        let tail = sent.right >= self.nxt;
        if self.vantage == Vantage::Sender || tail && self.sack || since_sent_s < full_s {
            return None;
        }
        Some(Question {
            time_ns: sent.time_ns,
            head: true,
            tail,
            copies: 2,
            last: Transmission::unseen(self.last_sent_ns, self.order),
            sacked: false,
            sacked_above: 0,
            since_ack_s: since_sent_s,
            since_sent_s,
            silence_s: since_sent_s,
            since_advance_s: since_sent_s,
            timer_s: since_sent_s,
            clocked: false,
        })
    }

    /// Without ACKs nothing shows why data were sent again, but for the timer: it ends a silence longer than any answer
    /// takes, and then all that is outstanding may be sent again (RFC 5681, 3.1). What ends with the newest data may
    /// be a probe as well (RFC 8985, 7).
    fn on_resend_one_way(&mut self, sent: &Sent, asked: Option<Question>, sink: &mut dyn Sink) -> Reason {
        let Some(q) = asked.map(|q| Question {
            timer_s: q.since_sent_s,
            ..q
        }) else {
            self.resend_event(sent, None, Reason::Unknown, sink);
            return Reason::Unknown;
        };
        let answer_s = if self.least_resend_s.is_finite() {
            self.least_resend_s
        } else {
            UNKNOWN_ROUND_TRIP_S
        };
        let silence = q.since_sent_s >= (ONE_WAY_ROUND_TRIPS * answer_s).max(SHORTEST_TIMER_S);
        let reason = if silence && !(q.tail && q.copies == 1) {
            self.on_timeout(sent, &q, sink);
            Reason::Rto
        } else if self.phase == Phase::Loss && q.copies == 1 {
            Reason::RtoRecovery
        } else {
            Reason::Unknown
        };
        if q.copies == 1 {
            let took_s = (sent.time_ns - q.last.time_ns) as f64 / 1e9;
            self.least_resend_s = self.least_resend_s.min(took_s);
        }
        self.resend_event(sent, Some(&q), reason, sink);
        reason
    }

    /// New data were sent since the last ACK; elsewhere than at the sender, those that echo it pass with it.
    fn has_sent_new(&self) -> bool {
        let newest_ns = self.board.units.back().map_or(i64::MIN, |u| u.time_ns);
        newest_ns > self.last_ack_ns || newest_ns == self.last_ack_ns && self.vantage != Vantage::Sender
    }

    /// The timer as it is replayed, or as short as this host was seen to let it run.
    fn shortest_timer_s(&self) -> f64 {
        let seen_s = self.episodes.timer_s;
        let replayed_s = self.rtt.rto_s();
        if seen_s > 0.0 {
            replayed_s.min(seen_s)
        } else {
            replayed_s
        }
    }

    /// The timer, last started as far as is known, would have run out by now.
    pub fn timer_may_have_run(&self, now_ns: i64) -> bool {
        let ran_s = (now_ns - self.timer_start_ns()) as f64 / 1e9;
        ran_s >= (TIMER_SHARE * self.shortest_timer_s()).max(self.episodes.least_timer_s)
    }

    /// Sent now, no rule would explain it: nothing had asked for it, and no timer had run out.
    pub fn nothing_asked_for(&mut self, sent: &Sent) -> bool {
        self.question(sent).is_some_and(|q| self.label(&q) == Reason::Unknown)
    }

    /// Sent now, it would be a further hole of the recovery under way.
    pub fn is_further_hole(&mut self, sent: &Sent) -> bool {
        self.question(sent).is_some_and(|q| self.label(&q) == Reason::Recovery)
    }

    fn open_episode(&mut self, phase: Phase, row: EventRow) {
        self.phase = phase;
        self.episodes.recover = self.nxt;
        self.episodes.order = self.order;
        self.episodes.partial_ns = 0;
        self.episodes.opened = Some(Box::new(row));
    }

    fn recovery(&self, sent: &Sent, q: &Question, reason: Reason) -> EventRow {
        EventRow {
            flow: self.flow,
            time_ns: sent.time_ns,
            kind: Kind::Recovery,
            reason,
            left: offset(sent.left),
            frame: frame(sent.frame).into(),
            cause_frame: frame(q.last.frame).into(),
            flight: if self.duplicate_acks > 0 {
                self.duplicates.undisturbed_flight
            } else {
                self.flight()
            },
            phase: Phase::Recovery,
            confidence: 0.9,
            ..EventRow::NONE
        }
    }

    fn on_timeout(&mut self, sent: &Sent, q: &Question, sink: &mut dyn Sink) {
        let timer_s = self.ran_s(q);
        let whole = timer_s >= self.least_round_trip_s();
        let head = if self.one_way { sent.left } else { self.una };
        let again = self.episodes.timer_una == head;
        self.episodes.backoff = if again { self.episodes.backoff + 1 } else { 0 };
        self.episodes.timer_una = head;
        self.episodes.timeouts += 1;
        if self.phase == Phase::Open && self.is_silent(q) {
            let least_s = &mut self.episodes.least_timer_s;
            *least_s = least_s.min(TIMER_SHARE * q.timer_s);
        }
        if !again && sent.frame != 0 && whole {
            let (seen_s, mean_s) = (
                timer_s / f64::from(self.episodes.doublings).exp2(),
                &mut self.episodes.timer_s,
            );
            *mean_s = if *mean_s == 0.0 {
                seen_s
            } else {
                *mean_s + (seen_s - *mean_s) / 4.0
            };
        }
        // RFC 6298, 5.5; an ACK of what was sent again leaves the timer doubled where it gives no sample (the note on 5.5)
        let doublings = self.episodes.backoff.min(LARGEST_BACKOFF).max(self.episodes.doublings);
        let backed_off = f64::from(doublings).exp2();
        let replayed = self.rtt.srtt_s > 0.0;
        self.episodes.doublings = (self.episodes.doublings + 1).min(MOST_DOUBLINGS);
        let row = EventRow {
            flow: self.flow,
            time_ns: sent.time_ns,
            kind: Kind::Timeout,
            reason: Reason::Rto,
            left: offset(sent.left),
            right: offset(sent.right),
            frame: frame(sent.frame).into(),
            cause_frame: frame(q.last.frame).into(),
            segments: self.episodes.backoff,
            flight: self.flight(),
            phase: self.phase,
            confidence: if self.one_way {
                0.6
            } else if q.clocked || timer_s < SHORTEST_TIMER_S {
                0.8
            } else {
                0.95
            },
            value: whole.then_some(timer_s).into(),
            replayed_s: replayed.then(|| self.rtt.rto_s() * backed_off).into(),
            replayed_rfc_s: replayed.then(|| self.rtt.rfc_rto_s() * backed_off).into(),
            ..EventRow::NONE
        };
        self.close_episode(sent.time_ns, true, sink);
        self.open_episode(Phase::Loss, row);
    }

    /// No timer is shorter (RFC 6298, 2.3): of what looks so a queue took the beginning, or it was started by what is not seen.
    fn least_round_trip_s(&self) -> f64 {
        if self.rtt.min_s.is_finite() {
            self.rtt.min_s
        } else {
            0.0
        }
    }

    /// How long the timer ran that has expired: no shorter than a round trip (RFC 6298, 2.3), or else since the first partial
    /// ACK of the recovery (RFC 6582, 4: the impatient variant).
    fn ran_s(&self, q: &Question) -> f64 {
        let partial_ns = self.episodes.partial_ns;
        if self.phase == Phase::Recovery && partial_ns > 0 && q.timer_s < self.rtt.srtt_s {
            (q.time_ns - partial_ns) as f64 / 1e9
        } else {
            q.timer_s
        }
    }

    fn on_probe(&mut self, sent: &Sent, q: &Question, sink: &mut dyn Sink) {
        self.episodes.probe_una = self.una;
        self.episodes.probe_ns = sent.time_ns;
        self.episodes.probes += 1;
        sink.event(EventRow {
            flow: self.flow,
            time_ns: sent.time_ns,
            kind: Kind::TailLossProbe,
            reason: Reason::Tlp,
            left: offset(sent.left),
            right: offset(sent.right),
            frame: frame(sent.frame).into(),
            cause_frame: frame(q.last.frame).into(),
            segments: segments(sent.right - sent.left, self.smss),
            flight: self.flight(),
            phase: self.phase,
            confidence: if q.head { 0.7 } else { 0.9 },
            value: q.timer_s.into(),
            ..EventRow::NONE
        });
    }

    fn resend_event(&self, sent: &Sent, q: Option<&Question>, reason: Reason, sink: &mut dyn Sink) {
        if sent.frame == 0 {
            return;
        }
        sink.event(EventRow {
            flow: self.flow,
            time_ns: sent.time_ns,
            kind: Kind::Retransmission,
            reason,
            left: offset(sent.left),
            right: offset(sent.right),
            frame: frame(sent.frame).into(),
            cause_frame: q.and_then(|q| frame(q.last.frame)).into(),
            segments: segments(sent.right - sent.left, self.smss),
            flight: self.flight(),
            phase: self.phase,
            confidence: if reason == Reason::Unknown { 0.0 } else { 0.9 },
            value: q.map(|q| (sent.time_ns - q.last.time_ns) as f64 / 1e9).into(),
            ..EventRow::NONE
        });
    }

    /// An ACK came just before: a paced sender acts on it a little later, while a timer would have to run to its end. Away
    /// from the sender only timestamps tell when that was. A host known to act at once does so here.
    fn is_just_told(&self, q: &Question) -> bool {
        let dated = self.vantage == Vantage::Sender || self.timestamps;
        let at_once = self.vantage == Vantage::Sender && (1..AT_ONCE_NS).contains(&self.response_ns);
        dated && q.since_ack_s < self.rtt.srtt_s / 2.0 && (!at_once || self.is_prompt(q.since_ack_s))
    }

    /// The left edge has moved: a full ACK ends the episode (RFC 6582, 3.2; RFC 6675, 5).
    pub fn on_advance(&mut self, time_ns: i64, sink: &mut dyn Sink) {
        if !self.sack {
            self.keep_reno(self.una);
        }
        if self.phase == Phase::Recovery && self.episodes.partial_ns == 0 {
            self.episodes.partial_ns = time_ns;
        }
        if self.phase != Phase::Open && self.una >= self.episodes.recover {
            let again = self.phase == Phase::Recovery && self.sack;
            let hole = again.then(|| self.board.first_missing(LOOKED_AT)).flatten();
            self.close_episode(time_ns, false, sink);
            if let Some(hole) = hole {
                self.recover_again(time_ns, hole);
            }
        }
    }

    /// Data sent during a recovery were lost and sent again, and are still missing at its end: the loss that they show
    /// begins another (RFC 6675, 5).
    fn recover_again(&mut self, time_ns: i64, hole: u64) {
        let copies = self.board.copies(hole);
        let (earlier, last) = copies.fold((0, 0), |(_, earlier), copy| (earlier, copy.frame));
        let order = self.episodes.order;
        let row = EventRow {
            flow: self.flow,
            time_ns,
            kind: Kind::Recovery,
            reason: Reason::Recovery,
            left: offset(hole),
            frame: frame(last).into(),
            cause_frame: frame(earlier).into(),
            flight: self.flight(),
            phase: Phase::Recovery,
            confidence: 0.8,
            ..EventRow::NONE
        };
        self.open_episode(Phase::Recovery, row);
        // what is missing was sent again before, and is this recovery's
        self.episodes.order = order;
        self.episodes.recoveries += 1;
    }

    /// The ACK shows that the original had arrived: a sender that looks takes its reduction back (RFC 3522).
    pub fn on_eifel(&mut self, ack: &Ack, sink: &mut dyn Sink) {
        let recovery = self.phase == Phase::Recovery;
        let partial = recovery && !self.sack && ack.ack < self.episodes.recover;
        let shown = match self.vantage {
            Vantage::Sender => 1,
            _ => GONE_ON_AWAY,
        };
        if self.phase == Phase::Open || partial && self.episodes.gone_on >= shown {
            return;
        }
        if partial {
            self.episodes.undone_ns = ack.time_ns;
        }
        self.episodes.taken_back |= recovery;
        if !self.sack {
            self.keep_reno(ack.ack);
        }
        self.close_episode(ack.time_ns, false, sink);
    }

    /// Ends the episode under way and gives it out; `broken` says that a timeout ended it.
    pub fn close_episode(&mut self, time_ns: i64, broken: bool, sink: &mut dyn Sink) {
        self.phase = Phase::Open;
        let Some(mut row) = self.episodes.changed().and_then(|episodes| episodes.opened.take()) else {
            return;
        };
        let end_ns = time_ns.max(row.time_ns);
        row.end_ns = end_ns.into();
        row.flight_after = self.flight().into();
        if row.kind == Kind::Recovery {
            row.right = offset(self.episodes.recover);
            row.value = ((end_ns - row.time_ns) as f64 / 1e9).into();
            row.timeout_follows = Some(broken);
        }
        sink.event(*row);
    }
}

fn frame(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

#[cfg(test)]
mod tests;
