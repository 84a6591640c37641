//! The retransmission timer: its expiries, how long it ran, and what shows it where nothing else does (RFC 6298).

use super::question::Question;
use super::{frame, Episodes};
use crate::flow::scoreboard::Transmission;
use crate::flow::sender::{Sender, Sent, LOOKED_AT};
use crate::flow::sequence::offset;
use crate::rows::{EventRow, Kind, Phase, Reason, Sink, Vantage};

/// Share of the replayed timer that must have passed for a resend to be the timer's.
pub(super) const TIMER_SHARE: f64 = 0.85;
/// No timer runs shorter than this on a stack as it comes (RFC 6298 asks for 1 s, Linux takes 200 ms).
pub const SHORTEST_TIMER_S: f64 = 0.15;
/// Doublings of the timer that still tell anything.
const LARGEST_BACKOFF: u32 = 16;
/// Least timer that RFC 6298 (2.4) asks for.
const RFC_FLOOR_S: f64 = 1.0;
/// Ticks that timestamps and the times of two packets differ by without a longer way.
const STAMPS_OFF: i64 = 2;
/// A timer is doubled to 64 times its length at most (Padhye et al. 1998, section II-B; Linux: 120 s).
const MOST_DOUBLINGS: u32 = 6;

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

impl Sender {
    /// The timer as it is replayed, or as short as this host was seen to let it run.
    pub(super) fn shortest_timer_s(&self) -> f64 {
        let seen_s = self.episodes.timer_s;
        let replayed_s = self.rtt.rto_s();
        if seen_s > 0.0 {
            replayed_s.min(seen_s)
        } else {
            replayed_s
        }
    }

    /// A timer that has run for so long is taken for one that ran to its end.
    pub(super) fn full_timer_s(&self) -> f64 {
        (TIMER_SHARE * self.shortest_timer_s()).max(self.episodes.least_timer_s)
    }

    /// The timer, last started as far as is known, would have run out by now.
    pub fn timer_may_have_run(&self, now_ns: i64) -> bool {
        let ran_s = (now_ns - self.timer_start_ns()) as f64 / 1e9;
        ran_s >= self.full_timer_s()
    }

    /// So may one that the last transmission of the head did not start, unless that was an expiry of its own: it runs since the
    /// left edge moved or, without SACK, since the first partial ACK (RFC 6582, 4: the impatient variant).
    pub fn other_timer_may_have_run(&self, last: &Transmission, now_ns: i64) -> bool {
        let (start_ns, least_s) = match (last.cause, self.episodes.partial_ns) {
            (Reason::Rto, _) => (last.time_ns, self.full_timer_s()),
            (_, partial_ns) if partial_ns > 0 && !self.sack => (partial_ns, SHORTEST_TIMER_S),
            _ => (self.last_advance_ns, self.full_timer_s()),
        };
        (now_ns - start_ns) as f64 / 1e9 >= least_s
    }

    pub(super) fn on_timeout(&mut self, sent: &Sent, q: &Question, sink: &mut dyn Sink) {
        let doubled = self.has_doubled(q);
        if doubled || self.has_waited_out(q) {
            self.episodes.on_waited_out(self.vantage);
        }
        if doubled {
            self.episodes.doublings = self.episodes.doublings.max(1);
        }
        let timer_s = self.ran_s(q) - self.longer_way_s(sent);
        let whole = timer_s >= self.least_round_trip_s();
        let head = if self.one_way { sent.left } else { self.una };
        let again = self.episodes.timer_una == head;
        self.episodes.backoff = if again { self.episodes.backoff + 1 } else { 0 };
        self.episodes.timer_una = head;
        self.episodes.timeouts += 1;
        self.correct(|drift, seen| drift.on_timeout(sent.time_ns, seen));
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
            doublings: doublings.into(),
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
        let under_way = self.phase != Phase::Open;
        let (begun_una, unreported) = (self.episodes.begun_una, self.episodes.unreported);
        self.close_episode(sent.time_ns, true, sink);
        self.open_episode(Phase::Loss, sent.tsval, row);
        if under_way {
            // what had been sent again before may have been needed all the same
            (self.episodes.begun_una, self.episodes.unreported) = (begun_una, unreported);
        }
    }

    /// No timer is shorter (RFC 6298, 2.3): of what looks so a queue took the beginning, or it was started by what is not seen.
    pub(super) fn least_round_trip_s(&self) -> f64 {
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

    /// Away from the sender: how much longer the resend was under way than the newest data, by the sender's own clock (RFC 7323, 4.1),
    /// as far as that is more than the ticks leave open. What was under way for less had a queue before it that has emptied
    /// since, and the start of the timer may be known from what passed it sooner.
    fn longer_way_s(&self, sent: &Sent) -> f64 {
        let tick_ns = i64::from(self.stamp_tick_ns);
        // what a path held that stood still is taken off already
        if tick_ns == 0 || sent.tsval == 0 || self.episodes.passage.held_ns > 0 {
            return 0.0;
        }
        let mut newest = self.board.units.iter().rev().take(LOOKED_AT);
        let Some(newest) = newest.find(|unit| unit.tsval != 0) else {
            return 0.0;
        };
        let ticks = i64::from(sent.tsval.wrapping_sub(newest.tsval) as i32);
        let longer_ns = sent.time_ns - newest.time_ns - ticks * tick_ns;
        if longer_ns > STAMPS_OFF * tick_ns {
            longer_ns as f64 / 1e9
        } else {
            0.0
        }
    }

    /// Away from the sender: the ACK of data that are sent again was lost on its way to it, and its timer has run out (RFC 6298,
    /// 5.4). A probe would repeat the newest data (RFC 8985, 7.3).
    pub(super) fn timer_unheard(&self, sent: &Sent) -> Option<Question> {
        let since_sent_s = (sent.time_ns - self.last_sent_ns) as f64 / 1e9;
        let tail = sent.right >= self.nxt;
        if self.vantage == Vantage::Sender || tail && self.sack || since_sent_s < self.full_timer_s() {
            return None;
        }
        Some(self.question_of_arrived(sent))
    }
}
