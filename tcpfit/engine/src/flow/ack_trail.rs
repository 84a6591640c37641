//! A flow of which the capture has the ACKs only: what the receiver showed of data that never passed.
//!
//! ```text
//!  in order --SACK block above the left edge, or a third duplicate ACK--> hole --filled by a SACK block--> in order
//!                                                                           |----by an ACK--> in order
//! ```
//! The left edge gives the bytes that arrived and when. A hole with three segments above it is what makes a sender
//! resend (RFC 6675, IsLost; RFC 5681, 3.2); whether it was a loss or a late original the timestamps show: the ACK that
//! fills it echoes the TSval of what filled it (RFC 7323, 4.3). A late original was on its way for about as long as the
//! hole was open beyond what segments in order take, a resend not.
//!
//! Not seen: what was sent and lost again, resends that were not needed (but for DSACKs), holes below a partial ACK
//! without SACK, the round trip. Losses are therefore the fewest there can have been, where the timestamps speak.

use crate::events::cause::DUPTHRESH;
use crate::events::loss_event::{Loss, LossEvents};
use crate::flow::direction::COMMON_SMSS;
use crate::flow::rare::Blank;
use crate::flow::scoreboard::segments;
use crate::flow::sender::is_dsack;
use crate::flow::sequence::{offset, Unwrap};
use crate::flow::stamp_clock::StampClock;
use crate::flow::zero_windows::ZeroWindows;
use crate::rows::{EventRow, FlowRow, Phase, Reason, Sink, Vantage};
use crate::segment::{flags, Segment};
use std::collections::VecDeque;

/// Holes and SACKed ranges remembered; the oldest go.
const REMEMBERED: usize = 1024;
/// Filled holes kept until the flow ends.
const KEPT: usize = 65_536;
/// Steps of the sender's clock that a hole is open at least for the clock to tell anything.
const CLOCK_STEPS: i64 = 4;
/// Advances of the left edge over which the least time on the way is taken, and the latest.
const LEAST_OF: u32 = 256;
const LATEST_OF: u32 = 16;
/// An ACK this long after the one before answers a keep-alive.
const PAUSE_NS: i64 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
struct Hole {
    left: u64,
    right: u64,
    /// When and by which frame it showed.
    time_ns: i64,
    frame: u64,
}

/// Least of the last `size` to `2 * size` values.
#[derive(Clone, Copy, Debug)]
struct Least {
    size: u32,
    count: u32,
    before: i64,
    now: i64,
}

impl Least {
    fn of(size: u32) -> Self {
        Self {
            size,
            count: 0,
            before: i64::MAX,
            now: i64::MAX,
        }
    }

    fn add(&mut self, value: i64) {
        if self.count == self.size {
            (self.before, self.now, self.count) = (self.now, i64::MAX, 0);
        }
        self.count += 1;
        self.now = self.now.min(value);
    }

    fn value(&self) -> Option<i64> {
        Some(self.before.min(self.now)).filter(|&least| least != i64::MAX)
    }
}

/// A hole that was filled, by what the capture does not show.
#[derive(Clone, Copy, Debug)]
struct Filled {
    hole: Hole,
    time_ns: i64,
    frame: u64,
    /// The timestamps prove that it was sent again.
    proven: bool,
}

#[derive(Clone, Debug)]
pub struct AckTrail {
    /// Number of the flow, once anything was acknowledged.
    pub flow: Option<u32>,
    unwrap: Unwrap,
    start: u64,
    una: u64,
    /// Highest byte SACKed.
    top: u64,
    window: u16,
    first_ns: i64,
    last_ns: i64,
    clock: StampClock,
    /// Time on the way of segments that came in order, but for a constant.
    least: Least,
    latest: Least,
    timestamps: bool,
    sack: bool,
    /// Ranges SACKed above the left edge, in order, apart from each other.
    ranges: VecDeque<(u64, u64)>,
    holes: VecDeque<Hole>,
    filled: Vec<Filled>,
    /// Duplicate ACKs since the left edge moved.
    run: u32,
    /// ACKs whose advance is a multiple of each of the common sizes, and all that moved the edge by one at least.
    multiples: [u32; 6],
    advances: u32,
    pub windows: ZeroWindows,
    acks: u64,
    duplicate_acks: u64,
    duplicates: u64,
    late: u64,
}

impl AckTrail {
    /// Begins at the acknowledgement number `ack`, up to which nothing is known.
    pub fn new(ack: u32) -> Self {
        let unwrap = Unwrap::new(ack.wrapping_sub(1));
        let start = unwrap.near(ack);
        Self {
            flow: None,
            unwrap,
            start,
            una: start,
            top: start,
            window: 0,
            first_ns: 0,
            last_ns: 0,
            clock: StampClock::default(),
            least: Least::of(LEAST_OF),
            latest: Least::of(LATEST_OF),
            timestamps: false,
            sack: false,
            ranges: VecDeque::new(),
            holes: VecDeque::new(),
            filled: Vec::new(),
            run: 0,
            multiples: [0; 6],
            advances: 0,
            windows: ZeroWindows::BLANK.clone(),
            acks: 0,
            duplicate_acks: 0,
            duplicates: 0,
            late: 0,
        }
    }

    /// Bytes acknowledged since the trail began.
    pub fn acked_bytes(&self) -> u64 {
        self.una - self.start
    }

    /// The size that most ACKs cover a multiple of; 1460 where none stands out.
    fn smss(&self) -> u32 {
        let best = (0..COMMON_SMSS.len()).rev().max_by_key(|&k| self.multiples[k]);
        let found = best.filter(|&k| self.multiples[k] * 2 > self.advances);
        found.map_or(COMMON_SMSS[1], |k| COMMON_SMSS[k])
    }

    pub fn on_ack(&mut self, segment: &Segment, sink: &mut dyn Sink) {
        let at = self.unwrap.advance(segment.ack);
        let echo = segment.options.timestamps.map(|(_, tsecr)| tsecr);
        let sacked_before: u64 = self.ranges.iter().map(|(left, right)| right - left).sum();
        let quiet_ns = segment.time_ns - self.last_ns;
        let pure = segment.payload == 0 && !segment.has(flags::FIN);
        if self.first_ns == 0 {
            self.first_ns = segment.time_ns;
        }
        self.on_window(at, segment, sink);
        if at > self.una {
            let in_order = self.holes.is_empty() && self.run == 0;
            self.advance(at, segment, echo);
            if let Some(echo) = echo.filter(|_| in_order) {
                self.timestamps = true;
                self.clock.learn(echo, segment.time_ns, || 0);
                if let Some(sent_ns) = self.clock.sent_ns(echo) {
                    self.least.add(segment.time_ns - sent_ns);
                    self.latest.add(segment.time_ns - sent_ns);
                }
            }
        }
        self.on_sack(at, segment, echo);
        let sacked: u64 = self.ranges.iter().map(|(left, right)| right - left).sum();
        let again = at == self.una && self.run_continues(segment, quiet_ns);
        if again && pure && (sacked > sacked_before || !self.sack && segment.window == self.window) {
            self.run += 1;
            self.duplicate_acks += 1;
            if self.run == DUPTHRESH && !self.sack {
                self.show(self.una, self.una + u64::from(self.smss()), segment);
            }
        }
        if at > self.una {
            self.una = at;
            self.run = 0;
            self.last_ns = segment.time_ns;
        }
        self.window = segment.window;
    }

    fn run_continues(&self, segment: &Segment, quiet_ns: i64) -> bool {
        self.acks > 0 && quiet_ns < PAUSE_NS && !segment.has(flags::SYN)
    }

    fn advance(&mut self, at: u64, segment: &Segment, echo: Option<u32>) {
        let bytes = at - self.una;
        self.acks += 1;
        self.advances += 1;
        for (count, &size) in self.multiples.iter_mut().zip(&COMMON_SMSS) {
            *count += u32::from(bytes.is_multiple_of(u64::from(size)));
        }
        self.fill(self.una, at, true, segment, echo);
        while let Some(range) = self.ranges.front_mut().filter(|range| range.0 < at) {
            if range.1 <= at {
                self.ranges.pop_front();
            } else {
                range.0 = at;
            }
        }
        self.top = self.top.max(at);
    }

    fn on_sack(&mut self, at: u64, segment: &Segment, echo: Option<u32>) {
        let blocks = segment.options.sack_blocks();
        let near: Vec<(u64, u64)> = blocks
            .iter()
            .map(|&(left, right)| (self.unwrap.near(left), self.unwrap.near(right)))
            .collect();
        for (i, &(left, right)) in near.iter().enumerate() {
            self.sack = true;
            if left >= right {
                continue;
            }
            if i == 0 && is_dsack(&near, at) {
                self.on_dsack(left, right);
                continue;
            }
            if right <= at {
                continue;
            }
            let left = left.max(at);
            if left > self.top {
                self.show(self.top.max(at), left, segment);
            }
            self.fill(left, right, false, segment, echo);
            self.merge(left, right);
            self.top = self.top.max(right);
        }
    }

    fn merge(&mut self, left: u64, right: u64) {
        let first = self.ranges.partition_point(|range| range.1 < left);
        let end = self.ranges.partition_point(|range| range.0 <= right);
        let merged = self
            .ranges
            .range(first..end.max(first))
            .fold((left, right), |all, range| (all.0.min(range.0), all.1.max(range.1)));
        self.ranges.drain(first..end.max(first));
        self.ranges.insert(first, merged);
        if self.ranges.len() > REMEMBERED {
            self.ranges.pop_front();
        }
    }

    fn show(&mut self, left: u64, right: u64, segment: &Segment) {
        if self.holes.len() >= REMEMBERED {
            self.holes.pop_front();
        }
        self.holes.push_back(Hole {
            left,
            right,
            time_ns: segment.time_ns,
            frame: segment.frame,
        });
    }

    /// What lay open in [left, right) has come; `head` says that the left edge moved over it.
    fn fill(&mut self, left: u64, right: u64, head: bool, segment: &Segment, echo: Option<u32>) {
        let una = self.una;
        let enough = u64::from((DUPTHRESH - 1) * self.smss());
        let mut rest = VecDeque::new();
        for hole in std::mem::take(&mut self.holes) {
            let (from, to) = (hole.left.max(left), hole.right.min(right));
            if from >= to {
                rest.push_back(hole);
                continue;
            }
            if hole.left < from {
                rest.push_back(Hole { right: from, ..hole });
            }
            if to < hole.right {
                rest.push_back(Hole { left: to, ..hole });
            }
            let above: u64 = self.ranges.iter().filter(|r| r.0 >= to).map(|r| r.1 - r.0).sum();
            if self.sack && above <= enough {
                continue; // too few above for the sender to have thought it lost
            }
            let open_ns = segment.time_ns - hole.time_ns;
            let stamped = echo.filter(|_| head && from == una);
            let resent = stamped.and_then(|echo| self.was_resent(echo, segment.time_ns, open_ns));
            if resent == Some(false) {
                self.late += u64::from(segments(to - from, self.smss()));
            } else if self.filled.len() < KEPT {
                self.filled.push(Filled {
                    hole: Hole {
                        left: from,
                        right: to,
                        ..hole
                    },
                    time_ns: segment.time_ns,
                    frame: segment.frame,
                    proven: resent == Some(true),
                });
            }
        }
        // a block in the middle of a hole makes two of it
        rest.drain(..rest.len().saturating_sub(REMEMBERED));
        self.holes = rest;
    }

    /// Whether what filled a hole, stamped `echo`, was sent again: compared with segments that came in order it was on its
    /// way for less than half of the time that the hole was open. `None` where the sender's clock or a queue hides it.
    fn was_resent(&self, echo: u32, time_ns: i64, open_ns: i64) -> Option<bool> {
        let on_its_way = time_ns - self.clock.sent_ns(echo)?;
        let (least_ns, latest_ns) = (self.least.value()?, self.latest.value()?);
        if open_ns < CLOCK_STEPS * self.clock.tick_ns {
            return None;
        }
        if on_its_way - least_ns < open_ns / 2 {
            Some(true)
        } else if on_its_way - latest_ns >= open_ns / 4 * 3 {
            Some(false)
        } else {
            None
        }
    }

    fn on_dsack(&mut self, left: u64, right: u64) {
        self.duplicates += u64::from(segments(right - left, self.smss()));
        // the original had come too: nothing was lost there, or the path makes copies
        for filled in self.filled.iter_mut().rev().take(REMEMBERED) {
            if filled.hole.left < right && left < filled.hole.right {
                filled.proven = false;
            }
        }
    }

    /// The window of an ACK up to `at`, unless a newer one has overtaken it (RFC 9293, 3.10.7.4).
    fn on_window(&mut self, at: u64, segment: &Segment, sink: &mut dyn Sink) {
        if at < self.una || segment.window > 0 && !self.windows.is_closed() {
            return;
        }
        let state = EventRow {
            left: offset(at),
            right: offset(at),
            flight: f64::NAN,
            phase: Phase::Open,
            ..EventRow::NONE
        };
        self.windows.on_ack(segment, state);
        if let Some(flow) = self.flow {
            self.windows.give_out(flow, sink);
        }
    }

    /// Gives out the losses and what is known of the flow; the connection adds who the ends are. `closed`: the receiver has
    /// sent its FIN, and no reset came; then the last number is that of the other FIN, which is no data (RFC 9293, 3.6).
    pub fn finish(mut self, flow: u32, closed: bool, sink: &mut dyn Sink) -> FlowRow {
        self.windows.finish(flow, self.last_ns, sink);
        let smss = self.smss();
        self.filled.sort_by_key(|f| (f.hole.time_ns, f.hole.left));
        // a hole stays open for a round trip at least when a resend fills it
        let least_ns = self.filled.iter().map(|f| f.time_ns - f.hole.time_ns).min();
        let mut events = LossEvents::new(flow);
        let (mut lost, mut proven) = (0, 0);
        for filled in &self.filled {
            let hole = &filled.hole;
            let count = segments(hole.right - hole.left, smss);
            lost += u64::from(count);
            proven += if filled.proven { u64::from(count) } else { 0 };
            let loss = Loss {
                time_ns: hole.time_ns,
                order: 0,
                left: hole.left,
                right: hole.right,
                frame: Some(hole.frame),
                cause_frame: Some(filled.frame),
                segments: count,
                flight: f64::NAN,
                rtt_s: least_ns.unwrap_or(0) as f64 / 1e9,
                reason: Reason::Hole,
                confidence: if filled.proven { 0.9 } else { 0.5 },
                by_timeout: false,
            };
            events.on_loss(&loss, sink);
            sink.event(loss.event(flow));
        }
        events.close(sink);
        let acked = self.acked_bytes() - u64::from(closed);
        FlowRow {
            flow,
            first_ns: self.first_ns,
            last_ns: self.last_ns.max(self.first_ns),
            smss_bytes: smss,
            sack_permitted: self.sack.then_some(true),
            timestamps: self.timestamps,
            acks_seen: true,
            one_way: true,
            sent_segments: acked.div_ceil(u64::from(smss)) + lost,
            acked_bytes: acked,
            lost_segments: lost,
            lost_low: proven,
            lost_high: lost,
            spurious_retransmissions: self.duplicates,
            loss_events: events.count,
            reordered_segments: self.late,
            zero_window_episodes: self.windows.zero_count,
            acks: self.acks,
            duplicate_acks: self.duplicate_acks,
            vantage: Vantage::Unknown,
            flight_max: f64::NAN,
            limited_share: f64::NAN,
            busy_s: f64::NAN,
            ..FlowRow::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_cut_into_pieces_does_not_grow_without_end() {
        let mut trail = AckTrail::new(1000);
        let segment = Segment::default();
        let far = trail.start + (1 << 20);
        trail.show(trail.start, far, &segment);
        for n in 1..3 * REMEMBERED as u64 {
            trail.fill(far - 100 * n, far - 100 * n + 1, false, &segment, None);
        }
        assert_eq!(trail.holes.len(), REMEMBERED);
    }
}
