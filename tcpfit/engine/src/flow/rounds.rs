//! Rounds: a round trip from the sending of one segment to its acknowledgement (algorithms as in RFC 5681's per-RTT rules).
//!
//! A round that is over waits until the fate of everything sent in it is known, so that its losses can be counted.

use crate::rows::{Phase, RoundRow, Sink};
use std::collections::VecDeque;

/// The flight counts as limited by the window when it comes this close to it, in segments.
const LIMIT_MARGIN: f64 = 3.0;
/// Rounds of one and the same flight after which the send buffer may hold it, not the congestion window.
const FLAT_ROUNDS: u32 = 8;
/// Rounds whose round trips are not known yet that are kept at most: the queue of them has room for 256, and is not to double.
const HELD: usize = 254;
/// Rounds that wait for their losses at most; beyond, the oldest goes out as it is.
const WAITING: usize = 4096;

/// What a round shows of the congestion window, in segments.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    low: f64,
    unclocked: bool,
    disturbed: bool,
}

impl Window {
    /// Everything in the round was sent because an ACK had come, and nothing was sent again.
    fn clean(&self) -> bool {
        !self.unclocked && !self.disturbed
    }
}

/// Upper bounds of the rounds in a row that were equal: a window that does not grow may be the send buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    last: f32,
    equal: u32,
}

impl Bounds {
    fn add(&mut self, bound: f64) -> Option<f64> {
        self.equal = if (bound - f64::from(self.last)).abs() < 0.5 {
            self.equal + 1
        } else {
            0
        };
        self.last = bound as f32;
        (self.equal < FLAT_ROUNDS).then_some(bound)
    }
}

/// A round under way, or over; what is not known of it is NaN, which takes half of what an `Option` does.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Round {
    end_ns: i64,
    acked_bytes: u64,
    /// Infinite while it is not known.
    rwnd: f64,
    flight: f64,
    acks: u32,
    sent_segments: u32,
    resent_segments: u32,
    limited: bool,
    estimated: bool,
    phase: Phase,
    lost_segments: u32,
    number: u32,
    start_ns: i64,
    idle_s: f64,
    window_full_s: f64,
    rtt_s: f64,
    /// Smoothed, when it began; 0 while none was known.
    srtt_s: f64,
    cwnd_low: f64,
    cwnd_high: f64,
}

impl Round {
    fn begin(number: u32, time_ns: i64, srtt_s: f64) -> Self {
        Self {
            start_ns: time_ns,
            end_ns: time_ns,
            acked_bytes: 0,
            flight: 0.0,
            idle_s: 0.0,
            window_full_s: 0.0,
            rtt_s: f64::NAN,
            srtt_s,
            rwnd: f64::INFINITY,
            cwnd_low: f64::NAN,
            cwnd_high: f64::NAN,
            number,
            sent_segments: 0,
            resent_segments: 0,
            lost_segments: 0,
            acks: 0,
            limited: false,
            estimated: false,
            phase: Phase::Open,
        }
    }

    fn row(&self, flow: u32) -> RoundRow {
        RoundRow {
            flow,
            round: self.number,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            sent_segments: self.sent_segments,
            resent_segments: self.resent_segments,
            lost_segments: self.lost_segments,
            acked_bytes: self.acked_bytes,
            acks: self.acks,
            rtt_s: self.rtt_s.into(),
            flight: self.flight,
            rwnd: Some(self.rwnd).filter(|window| window.is_finite()).into(),
            phase: self.phase,
            limited: self.limited,
            idle_s: self.idle_s,
            window_full_s: self.window_full_s,
            estimated: self.estimated,
            cwnd_low: self.cwnd_low.into(),
            cwnd_high: self.cwnd_high.into(),
        }
    }
}

/// A line of a cache for ACKs, one for all, and what few need.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Rounds {
    waiting: VecDeque<Round>,
    rtt_sum: f64,
    rtt_count: u32,
    flow: u32,
    /// Rounds that are over, and those of them in which the advertised window was the limit.
    pub count: u32,
    pub limited: u32,
    /// The sequence number whose ACK ends the round under way.
    ends_at: u64,
    /// What the round under way shows of the congestion window.
    window: Window,
    /// The round under way.
    current: Option<Round>,
    /// What the one before it showed of the window.
    ended: Window,
    bounds: Bounds,
}

impl Rounds {
    pub fn new(flow: u32) -> Self {
        Self {
            flow,
            current: None,
            ends_at: 0,
            rtt_sum: 0.0,
            rtt_count: 0,
            waiting: VecDeque::new(),
            window: Window::default(),
            ended: Window::default(),
            bounds: Bounds::default(),
            limited: 0,
            count: 0,
        }
    }

    /// When the last round ended.
    pub fn ended_ns(&self) -> i64 {
        self.waiting.back().map_or(i64::MIN, |row| row.end_ns)
    }

    /// More rounds wait than are kept for their round trips to be known.
    pub fn are_many(&self) -> bool {
        self.waiting.len() > HELD
    }

    /// Corrects the rounds that ended since: `corrected_s` says what a round trip was that seemed so long, between two times.
    /// What passed was the same, so the flight was larger, up to the window, or smaller (Little's law). The largest.
    pub fn correct(&mut self, since_ns: i64, corrected_s: impl Fn(f64, i64, i64) -> f64) -> f64 {
        let from = self.waiting.partition_point(|row| row.end_ns < since_ns);
        let mut most = 0.0f64;
        for row in self.waiting.range_mut(from..).filter(|row| row.rtt_s > 0.0) {
            let ratio = corrected_s(row.rtt_s, row.start_ns, row.end_ns) / row.rtt_s;
            row.rtt_s *= ratio;
            row.flight = (row.flight * ratio).min(row.rwnd.max(row.flight));
            row.cwnd_low *= ratio.min(1.0);
            most = most.max(row.flight);
            self.limited -= u32::from(row.limited);
            row.limited = row.flight + LIMIT_MARGIN >= row.rwnd;
            self.limited += u32::from(row.limited);
        }
        most
    }

    /// Nothing tells the round trips of the rounds that ended since, if between their beginning and end the path was `full`.
    pub fn are_estimated(&mut self, since_ns: i64, full: impl Fn(i64, i64) -> bool) {
        let from = self.waiting.partition_point(|row| row.end_ns < since_ns);
        for row in self.waiting.range_mut(from..) {
            row.estimated = full(row.start_ns, row.end_ns);
        }
    }

    /// `segments` were sent; a round begins if none is under way, at the smoothed round trip `srtt_s`, and ends when `nxt` is
    /// acknowledged.
    #[inline(always)]
    pub fn sent(&mut self, time_ns: i64, segments: u32, again: bool, nxt: u64, flight: f64, srtt_s: f64) {
        if self.current.is_none() {
            self.begin(time_ns, nxt, srtt_s);
        }
        if let Some(row) = &mut self.current {
            row.sent_segments += segments;
            row.resent_segments += if again { segments } else { 0 };
            if flight > row.flight {
                row.flight = flight;
            }
        }
    }

    #[inline(never)]
    fn begin(&mut self, time_ns: i64, nxt: u64, srtt_s: f64) {
        self.current = Some(Round::begin(self.count, time_ns, srtt_s));
        self.ends_at = nxt;
        self.window = Window::default();
    }

    /// New data brought the flight to `flight`: the window is no smaller.
    #[inline(always)]
    pub fn window_reached(&mut self, flight: f64) {
        if flight > self.window.low {
            self.window.low = flight;
        }
    }

    /// Data had to wait at a flight of `full` for the ACK that came at `ack_ns`: the window was no larger until then.
    #[inline(never)]
    pub fn cwnd_full(&mut self, full: f64, ack_ns: i64) {
        // the ACK that ended the last round; the next has just begun
        let ended = |row: &&mut Round| row.end_ns == ack_ns;
        if self.window.low == 0.0 && self.ended.clean() {
            if let Some(row) = self.waiting.back_mut().filter(ended) {
                row.cwnd_high = self.bounds.add(full.max(self.ended.low)).unwrap_or(f64::NAN);
            }
        }
    }

    /// Data were sent when no ACK had let them go.
    pub fn unclocked(&mut self) {
        self.window.unclocked = true;
    }

    /// Loss recovery: the flight does not tell the window.
    pub fn disturbed(&mut self) {
        self.window.disturbed = true;
    }

    /// Most that was outstanding in the round under way and in the one before it, as far as no loss recovery lowered it.
    pub fn steady_flight(&self) -> f64 {
        let current = self.current.as_ref().filter(|_| !self.window.disturbed);
        let before = self.waiting.back().filter(|_| !self.ended.disturbed);
        let rows = current.into_iter().chain(before);
        rows.fold(0.0, |most, row| row.flight.max(most))
    }

    pub fn sample(&mut self, rtt_s: f64) {
        self.rtt_sum += rtt_s;
        self.rtt_count += 1;
    }

    /// Time in which nothing was outstanding.
    #[inline(never)]
    pub fn idle(&mut self, seconds: f64) {
        if let Some(row) = self.latest() {
            row.idle_s += seconds;
        }
    }

    /// Time in which the advertised window had no room for another segment.
    #[inline(never)]
    pub fn window_full(&mut self, seconds: f64) {
        if let Some(row) = self.latest() {
            row.window_full_s += seconds;
        }
    }

    /// The round under way or, until the next one starts, the last.
    fn latest(&mut self) -> Option<&mut Round> {
        match &mut self.current {
            Some(row) => Some(row),
            None => self.waiting.back_mut(),
        }
    }

    /// An ACK moved the left edge to `una`; `rwnd` is the window then, in segments.
    pub fn acked(&mut self, time_ns: i64, bytes: u64, una: u64, rwnd: Option<f64>, phase: Phase) {
        let Some(row) = &mut self.current else {
            self.acked_between(bytes);
            return;
        };
        row.acked_bytes += bytes;
        row.acks += 1;
        row.end_ns = time_ns;
        if let Some(now) = rwnd.filter(|&now| now < row.rwnd) {
            row.rwnd = now;
        }
        if una >= self.ends_at {
            row.phase = phase;
            self.close();
        }
    }

    /// The round is over, and the next one has not begun: what it sent after its first segment is its own.
    #[inline(never)]
    fn acked_between(&mut self, bytes: u64) {
        if let Some(row) = self.waiting.back_mut() {
            row.acked_bytes += bytes;
            row.acks += 1;
        }
    }

    /// The room that rounds wait in, of a flow that was given out.
    pub fn room(&mut self) -> VecDeque<Round> {
        self.waiting.clear();
        std::mem::take(&mut self.waiting)
    }

    /// Rounds wait there: none does so far.
    pub fn reuse(&mut self, room: VecDeque<Round>) {
        self.waiting = room;
    }

    fn close(&mut self) {
        let Some(mut row) = self.current.take() else {
            return;
        };
        if self.rtt_count > 0 {
            row.rtt_s = self.rtt_sum / f64::from(self.rtt_count);
        }
        (self.rtt_sum, self.rtt_count) = (0.0, 0);
        let window = std::mem::take(&mut self.window);
        if !window.disturbed && window.low > 0.0 {
            row.cwnd_low = window.low;
        }
        self.ended = window;
        row.limited = row.flight + LIMIT_MARGIN >= row.rwnd;
        self.limited += u32::from(row.limited);
        self.count += 1;
        if self.waiting.capacity() == 0 {
            // most flows never have more of them waiting
            self.waiting.reserve_exact(2);
        }
        self.waiting.push_back(row);
    }

    /// A transmission sent at `time_ns` was lost: it belongs to the last round that began before it. Gives the smoothed round trip
    /// when that began, if one was known.
    pub fn lost(&mut self, time_ns: i64, segments: u32) -> Option<f64> {
        let started = |row: &Round| row.start_ns <= time_ns;
        let row = match self.current.as_mut().filter(|row| started(row)) {
            Some(row) => row,
            None => {
                let n = self.waiting.partition_point(started);
                self.waiting.get_mut(n.saturating_sub(1))?
            }
        };
        row.lost_segments += segments;
        Some(row.srtt_s).filter(|&srtt_s| srtt_s > 0.0)
    }

    /// Some round that is over has not been given out, the last left aside.
    #[inline]
    pub fn waits(&self) -> bool {
        self.waiting.len() > 1
    }

    /// A round can be given out: its losses are all known, as it was over before `known_ns`. The last one stays, since what
    /// follows until the next one starts is still its own.
    #[inline]
    pub fn is_due(&self, known_ns: i64) -> bool {
        let over = |row: &Round| row.end_ns < known_ns;
        self.waits() && (self.waiting.len() > WAITING || self.waiting.front().is_some_and(over))
    }

    /// Gives out the rounds that are due.
    #[inline]
    pub fn settle(&mut self, known_ns: i64, sink: &mut dyn Sink) {
        while self.is_due(known_ns) {
            self.give_out_first(sink);
        }
    }

    #[inline(never)]
    fn give_out_first(&mut self, sink: &mut dyn Sink) {
        if let Some(row) = self.waiting.pop_front() {
            sink.round(row.row(self.flow));
        }
    }

    pub fn finish(&mut self, phase: Phase, sink: &mut dyn Sink) {
        if let Some(row) = &mut self.current {
            row.phase = phase;
        }
        self.close();
        for row in self.waiting.drain(..) {
            sink.round(row.row(self.flow));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrected_rounds_carry_what_they_carried_up_to_the_window() {
        let mut rounds = Rounds::new(0);
        for n in 0..4i64 {
            rounds.sent(n * 100, 1, false, n as u64 + 1, 10.0, 0.0);
            rounds.window_reached(10.0);
            rounds.sample(0.1);
            let room = if n == 3 { 12.0 } else { 40.0 };
            rounds.acked(n * 100 + 50, 1000, n as u64 + 1, Some(room), Phase::Open);
        }
        assert_eq!((rounds.ended_ns(), rounds.limited), (350, 1));
        // the first two had been known, the third was shorter than it seemed
        let corrected_s = |rtt_s: f64, start_ns: i64, _| if start_ns == 200 { rtt_s / 2.0 } else { rtt_s * 3.0 };
        let most = rounds.correct(150, corrected_s);
        let seen = |row: &Round| (row.flight, row.rtt_s, row.cwnd_low, row.limited);
        let seen: Vec<_> = rounds.waiting.iter().map(seen).collect();
        let known = (10.0, 0.1, 10.0, false);
        assert_eq!(known, seen[0]);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        for (row, expected) in seen[1..]
            .iter()
            .zip([(30.0, 0.3, 10.0), (5.0, 0.05, 5.0), (12.0, 0.3, 10.0)])
        {
            assert!(
                close(row.0, expected.0) && close(row.1, expected.1) && close(row.2, expected.2),
                "{row:?}"
            );
        }
        assert!(close(most, 30.0) && rounds.limited == 1);
    }
}
