//! How long ACKs were under way between two resends, or data of the receiver's, that tell it, away from the sender and without
//! timestamps.
//!
//! ```text
//!  way  | told                    told         a queue is as long as the window is wider than the path:
//!       |   *                     /*            it falls with the window when a loss is felt (RFC 5681, 3.1, eq. 4),
//!       |   |\                  /               and grows as the window grows until the next one is
//!       |   |  \___________   /
//!       |   |   path's own |/                   <- from here on data come as fast as the link sends them
//!       +----------------------------- ACKs
//! ```
//! While a queue never empties, data come as fast as the link sends them, however long it is: nothing but its two ends shows it.
//! What is told at the next loss therefore corrects the samples before it. The window grows by a segment a round trip at
//! least (RFC 5681, 3.1), which is all there is behind the last resend, up to the way that one told; before the first up to what
//! the receiver's window allows. Data that come slower than the link sends show a link with no queue of their own.
//!
//! Rounds are held until then, as far as there is room for them.
//!
//! A queue that others fill is taken for the flow's own: what overflows it has all of them lose.
//!
//! What the segments of a flight wait for each other, that is sent at once after a rest, is in `flights`.
//!
//! Not seen: what other flows' queues do between two losses of this one.

use crate::flow::rare::Blank;
use crate::flow::rounds::Rounds;
use crate::flow::rtt::Rtt;

mod flights;

use flights::Flights;
pub use flights::Newest;

/// Points kept between two tellings; with more, neighbours are joined. As many are kept, corrected, for losses whose fate is not
/// known yet.
const KEPT: usize = 128;
/// Packets over which the link's rate is taken.
const RUN: usize = 8;
/// The link's rate is that of one run in twenty: it follows a faster one by so much, a slower one by a twentieth of that. The
/// step is larger at first, as one over the number of packets.
const STEP: f64 = 0.02;
const FIRST_STEP: f64 = 0.3;
const STEPS: f64 = 5.0;
/// Packets at equal distances, but for one in `EVEN`, from which a link is known that has become slower.
const EVENLY: u32 = 8;
const EVEN: i64 = 16;
/// Packets from which the rate is known.
const KNOWN: u32 = 256;
/// Share of the link's rate from which on its queue does not empty.
const BUSY: f64 = 0.85;
/// Segments over which the rate of arrivals is taken, at least, and as many round trips.
const RATE_OF: u64 = 16;
/// What is left of the window after a loss: between half of it (RFC 5681, eq. 4) and 0.7 (CUBIC: RFC 9438, 4.6).
const DECREASE: f64 = 0.6;
/// A link without a queue was idle for so much of the shortest way at least, or for as many segments.
const IDLE: i64 = 4;
const IDLE_SEGMENTS: f64 = 3.0;
/// A busy link sends one in less than the time of so many.
const GAP_SEGMENTS: f64 = 2.0;
/// Segments that the path holds without a queue: fewer, sent as an application writes them, may seem to fill a link.
const LEAST_PIPE: f64 = 12.0;
/// So much longer than what was told a way can be that slow start would have come to, if it went on to the end.
const SLOW_START: f64 = 1.1;
/// The estimator's gain (RFC 6298, 2.3).
const GAIN: f64 = 1.0 / 8.0;

/// A point, now that the way is known.
#[derive(Clone, Copy, Debug)]
struct Corrected {
    time_ns: i64,
    /// The smoothed round trip.
    srtt_s: f32,
    /// By how much the round trip was longer than it seemed.
    ratio: f32,
}

/// What a segment that was lost has seen.
#[derive(Clone, Copy, Debug)]
pub struct Then {
    /// Its own round trip, had it come, smoothed. In that time arrive what the sender sends in the one it knew: a queue that grows
    /// has the data come more slowly than they are sent.
    pub srtt_s: f64,
    ratio: f64,
    window: f64,
}

impl Then {
    /// What was outstanding, of which so many segments seemed to be. What passed was the same (Little's law), up to the window.
    pub fn flight(&self, seemed: f64) -> f64 {
        (seemed * self.ratio).min(self.window.max(seemed))
    }
}

/// What told the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    /// The first resend of a recovery, before the sender felt the loss.
    Loss,
    /// Another, after it.
    Recovery,
    /// No resend: what the host at the capture point sends itself.
    OwnData,
}

/// A sample, or neighbours.
#[derive(Clone, Copy, Debug)]
struct Point {
    time_ns: i64,
    /// Busy time of the flow.
    busy_s: f64,
    /// Segments that had passed.
    passed: u64,
    rtt_s: f64,
    weight: u32,
}

/// What tells the way now, and whether it is that of the receiver's window.
#[derive(Clone, Copy, Debug)]
struct Telling {
    way_s: f64,
    limited: bool,
    by: By,
}

/// What was told last.
#[derive(Clone, Copy, Debug)]
struct Told {
    way_s: f64,
    /// What was told last before the sender felt a loss, if any was.
    loss_s: Option<f64>,
    by: By,
    /// The link had a queue then.
    queued: bool,
}

#[derive(Clone, Debug)]
pub struct Drift {
    points: Vec<Point>,
    /// Samples that a point is of.
    stride: u32,
    told: Option<Told>,
    /// What the last stretches were, the last of which ended then, at that smoothed round trip and with that window.
    corrected: Vec<Corrected>,
    closed_ns: i64,
    srtt_s: f64,
    window: f64,
    /// Rounds that end then or later are held: their round trips are not known yet.
    pub held_ns: i64,
    /// The way of ACKs since, and that of the path without a queue.
    way_ns: i64,
    path_ns: i64,
    /// Shortest of all that was told.
    shortest_s: f64,
    /// A timer has run out since: the window began anew, and the queue was empty.
    expired: bool,
    /// Segments that have passed, and that had at the times of the last packets; the oldest at `at`.
    passed: u64,
    run: [(i64, u64); RUN],
    at: usize,
    runs: u32,
    /// Segments a second of all but the fastest runs; 0 before the first. And the highest that it ever was.
    rate: f64,
    peak: f64,
    /// How long before the last packet the one before it came, how many came as evenly, and since when.
    gap_ns: i64,
    evenly: u32,
    even_since_ns: i64,
    /// When the first packet came after the link was idle.
    busy_since_ns: i64,
    /// The first and the last packet of the time before that in which it was busy.
    busy_before_ns: (i64, i64),
    /// When the first packet came after none had for a round trip.
    stood_until_ns: i64,
    /// By how much the smoothed round trip was too low after the last point, since the flow had been busy so long.
    lag_s: f64,
    lag_since_s: f64,
    /// Integral of that over busy time.
    pub lag_integral: f64,
    pub flights: Flights,
}

impl Blank for Drift {
    const BLANK: &'static Self = &Self {
        points: Vec::new(),
        stride: 1,
        told: None,
        corrected: Vec::new(),
        closed_ns: 0,
        srtt_s: 0.0,
        window: 0.0,
        held_ns: i64::MAX,
        way_ns: 0,
        path_ns: 0,
        shortest_s: f64::INFINITY,
        expired: false,
        passed: 0,
        run: [(0, 0); RUN],
        at: 0,
        runs: 0,
        rate: 0.0,
        peak: 0.0,
        gap_ns: 0,
        evenly: 0,
        even_since_ns: 0,
        busy_since_ns: i64::MIN / 2,
        busy_before_ns: (0, 0),
        stood_until_ns: i64::MAX,
        lag_s: 0.0,
        lag_since_s: 0.0,
        lag_integral: 0.0,
        flights: Flights::NONE,
    };

    fn new(_flow: u32) -> Self {
        Self::BLANK.clone()
    }
}

/// What holds between two tellings, in seconds.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// The way that samples were taken with.
    assumed_s: f64,
    /// That of the path without a queue, as far as is known.
    least_s: f64,
    /// The receiver's window, in segments.
    window: Option<f64>,
}

impl Stretch {
    /// What a round trip was if ACKs were under way for `way_s`: no less than on the path without a queue.
    fn corrected_s(&self, rtt_s: f64, way_s: f64) -> f64 {
        (rtt_s + way_s - self.assumed_s).max(self.least_s.min(rtt_s))
    }
}

/// What a stretch shows of the link.
#[derive(Clone, Debug)]
struct Link {
    /// Whether data came about as fast as the link sends them, at each point.
    full: Vec<bool>,
    /// They did at the end.
    queued: bool,
}

impl Link {
    /// The first point at which they did.
    fn fills(&self) -> Option<usize> {
        self.full.iter().position(|&full| full)
    }
}

/// A stretch from where the link's queue does not empty.
#[derive(Clone, Copy, Debug)]
struct Filled {
    segments: f64,
    open_s: f64,
    /// Segments a second.
    rate: f64,
}

impl Filled {
    /// The way of a segment that has come when a share of these had, in slow start.
    fn doubled_s(self, start_s: f64, share: f64) -> f64 {
        start_s + share * self.segments / (2.0 * self.rate)
    }

    /// The way at the end before the first loss. In slow start a segment that was answered lets two go (RFC 5681, 3.1), of which
    /// the second waits for the first; when the resend that told `told_s` was sent, a round trip after the last segment that was
    /// answered, the queue was twice as long.
    fn slow_start_s(self, start_s: f64, told_s: f64) -> f64 {
        let end_s = self.doubled_s(start_s, 1.0);
        if end_s < SLOW_START * told_s {
            end_s.min(told_s)
        } else {
            told_s
        }
    }
}

/// What is corrected, by what is known now.
pub struct Seen<'a> {
    pub rtt: &'a mut Rtt,
    pub rounds: &'a mut Rounds,
    pub flight_max: &'a mut f64,
    /// The receiver's window, in segments.
    pub window: Option<f64>,
}

impl Drift {
    /// A packet with so many segments passes, while ACKs are thought to be under way for `way_ns`, and on the path without a
    /// queue for `path_ns`, if that is not 0. For how long the link has been busy: no queue is longer.
    pub fn on_data(&mut self, time_ns: i64, segments: u32, way_ns: i64, path_ns: i64) -> i64 {
        (self.way_ns, self.path_ns) = (way_ns, path_ns);
        self.passed += u64::from(segments);
        let (before_ns, _) = self.run[(self.at + RUN - 1) % RUN];
        let (oldest_ns, since) = std::mem::replace(&mut self.run[self.at], (time_ns, self.passed));
        self.at = (self.at + 1) % RUN;
        let slower_since_ns = self.slow_down(before_ns, time_ns, segments);
        let mut idle_ns = path_ns / IDLE;
        if self.rate > 0.0 {
            idle_ns = idle_ns.max((IDLE_SEGMENTS / self.rate * 1e9) as i64);
        }
        if before_ns == 0 || time_ns - before_ns > path_ns {
            self.stood_until_ns = time_ns;
        }
        if before_ns == 0 || time_ns - before_ns > idle_ns {
            self.busy_before_ns = (self.busy_since_ns, before_ns);
            self.busy_since_ns = time_ns;
        }
        self.busy_since_ns = slower_since_ns.map_or(self.busy_since_ns, |since_ns| since_ns.min(self.busy_since_ns));
        let busy_ns = time_ns - self.busy_since_ns;
        if oldest_ns == 0 {
            return busy_ns;
        }
        let rate = (self.passed - since) as f64 * 1e9 / (time_ns - oldest_ns).max(100) as f64;
        self.runs = self.runs.saturating_add(1);
        let step = (STEPS / f64::from(self.runs)).clamp(STEP, FIRST_STEP);
        self.rate = match self.rate {
            0.0 => rate,
            known if rate > known => known * (1.0 + step),
            known => known * (1.0 - step / 20.0),
        };
        if self.runs >= KNOWN {
            self.peak = self.peak.max(self.rate);
        }
        busy_ns
    }

    /// A packet comes after another. One after the other at the same distance is how a link sends what waits for it; what delayed
    /// ACKs let go comes in pairs (RFC 5681, 4.2). Since when it has, if that shows a slower link than was known.
    fn slow_down(&mut self, before_ns: i64, time_ns: i64, segments: u32) -> Option<i64> {
        if before_ns == 0 {
            return None;
        }
        let gap_ns = time_ns - before_ns;
        let even = segments == 1 && (gap_ns - self.gap_ns).abs() <= self.gap_ns / EVEN;
        if !even {
            (self.evenly, self.even_since_ns) = (0, before_ns);
        }
        self.gap_ns = gap_ns;
        self.evenly += 1;
        let rate = f64::from(self.evenly) * 1e9 / (time_ns - self.even_since_ns).max(1) as f64;
        if self.evenly < EVENLY || rate >= BUSY * self.rate {
            return None;
        }
        self.rate = rate;
        Some(self.even_since_ns)
    }

    /// How long a segment that passed then had waited in a queue of its own flight, while nothing but the handshake has told the way.
    pub fn waited_s(&self, passed_ns: i64) -> f64 {
        if self.told.is_some() || self.way_ns > self.path_ns {
            return 0.0;
        }
        self.flights.longer_ns(passed_ns, self.way_ns) as f64 / 1e9
    }

    /// For how long no data pass while the link sends; 0 while that is not known.
    pub fn gap_ns(&self) -> i64 {
        if self.rate > 0.0 {
            (GAP_SEGMENTS * 1e9 / self.rate) as i64
        } else {
            0
        }
    }

    /// For how long data had come when a packet did, never a round trip apart: a path that holds all it gets had not stood still.
    pub fn unbroken_ns(&self, time_ns: i64) -> i64 {
        time_ns.saturating_sub(self.stood_until_ns)
    }

    /// When the last packet passed before the link was idle; 0 if none had.
    pub fn idle_since_ns(&self) -> i64 {
        self.busy_before_ns.1
    }

    /// How long the queue was at most that a packet had come through which passed then, if that was not long ago: as long as the
    /// link had been busy.
    pub fn longest_queue_ns(&self, time_ns: i64) -> Option<i64> {
        let (first_ns, last_ns) = self.busy_before_ns;
        if time_ns >= self.busy_since_ns {
            Some(time_ns - self.busy_since_ns)
        } else {
            (first_ns..=last_ns).contains(&time_ns).then(|| time_ns - first_ns)
        }
    }

    /// The timer has run out: nothing tells the way, and the queue is empty when the window begins anew.
    pub fn on_timeout(&mut self, time_ns: i64, seen: Seen) {
        self.close(time_ns, None, seen);
        self.expired = true;
    }

    /// Rounds that end after `ended_ns` are held, if none are yet.
    pub fn hold(&mut self, ended_ns: i64) {
        if self.held_ns == i64::MAX {
            self.held_ns = ended_ns + 1;
        }
    }

    /// A sample of the round trip, when the flow had been busy for so long.
    pub fn on_sample(&mut self, time_ns: i64, busy_s: f64, rtt_s: f64) {
        if let Some(last) = self.points.last_mut().filter(|last| last.weight < self.stride) {
            last.rtt_s += (rtt_s - last.rtt_s) / f64::from(last.weight + 1);
            last.weight += 1;
            return;
        }
        if self.points.len() == KEPT {
            let pairs = self.points.chunks_exact(2);
            let join = |pair: &[Point]| {
                let weight = pair[0].weight + pair[1].weight;
                let sum = pair.iter().map(|point| point.rtt_s * f64::from(point.weight));
                Point {
                    rtt_s: sum.sum::<f64>() / f64::from(weight),
                    weight,
                    ..pair[0]
                }
            };
            self.points = pairs.map(join).collect();
            self.stride *= 2;
        }
        self.points.push(Point {
            time_ns,
            busy_s,
            passed: self.passed,
            rtt_s,
            weight: 1,
        });
    }

    /// A resend tells the way: `way_s`. Behind a queue what was sent before it came so many segments later, `unsent`, that were not
    /// sent for the duplicate ACKs that asked for it.
    pub fn on_told(&mut self, time_ns: i64, way_s: f64, unsent: u32, by: By, seen: Seen) {
        let queued = self.close(time_ns, Some((way_s, unsent, by)), seen);
        let before_s = self.told.filter(|_| !self.expired).and_then(|told| told.loss_s);
        let loss_s = match by {
            By::Loss => Some(way_s),
            By::Recovery => before_s.or(Some(way_s)),
            By::OwnData => before_s,
        };
        self.told = Some(Told {
            way_s,
            loss_s,
            by,
            queued,
        });
        self.shortest_s = self.shortest_s.min(way_s);
        self.expired = false;
    }

    /// The flow ends.
    pub fn on_end(&mut self, busy_s: f64, seen: Seen) {
        self.close(i64::MAX, None, seen);
        self.lag_until(busy_s);
    }

    /// What a segment has seen that was to pass at that time, if it is of one of the last stretches.
    pub fn then(&self, time_ns: i64) -> Option<Then> {
        let end = self.corrected.partition_point(|point| point.time_ns <= time_ns);
        let point = self.corrected[..end].last().filter(|_| time_ns <= self.closed_ns)?;
        Some(Then {
            srtt_s: point.srtt_s.into(),
            ratio: point.ratio.into(),
            window: self.window,
        })
    }

    /// So many rounds are held that some have to go: they get what can be told now.
    pub fn on_many_rounds(&mut self, seen: Seen) {
        let (link, stretch) = self.look(&self.points, seen.window);
        let ended_ns = seen.rounds.ended_ns();
        let ways = self.ways(&self.points, &link, None, stretch);
        self.correct_rounds(seen, &self.points, ways.as_deref(), &link, stretch);
        self.held_ns = ended_ns + 1;
    }

    /// Corrects what was seen since the way was told last. Whether the link had a queue at the end.
    fn close(&mut self, time_ns: i64, told: Option<(f64, u32, By)>, seen: Seen) -> bool {
        let points = std::mem::take(&mut self.points);
        let (link, stretch) = self.look(&points, seen.window);
        let told = told.map(|(way_s, unsent, by)| {
            let more_s = f64::from(unsent) / self.rate;
            let queued = link.queued && way_s - stretch.least_s >= more_s;
            let limited = unsent > 0 && queued;
            Telling {
                way_s: way_s + if limited { more_s } else { 0.0 },
                limited,
                by,
            }
        });
        let ways = self.ways(&points, &link, told, stretch);
        let old = (self.corrected.len() + points.len()).saturating_sub(KEPT);
        self.corrected.drain(..old);
        self.closed_ns = time_ns;
        self.window = stretch.window.unwrap_or(f64::INFINITY);
        for (n, point) in points.iter().enumerate() {
            let way_s = ways.as_ref().map_or(stretch.assumed_s, |ways| ways[n]);
            let rtt_s = stretch.corrected_s(point.rtt_s, way_s);
            let more_s = rtt_s - point.rtt_s;
            seen.rtt.revise(point.rtt_s, rtt_s, point.weight);
            self.lag_until(point.busy_s);
            let left = (1.0 - GAIN).powi(point.weight as i32);
            self.lag_s = more_s + (self.lag_s - more_s) * left;
            self.srtt_s = match self.srtt_s {
                0.0 => rtt_s,
                before_s => rtt_s + (before_s - rtt_s) * left,
            };
            self.corrected.push(Corrected {
                time_ns: point.time_ns,
                srtt_s: self.srtt_s as f32,
                ratio: if point.rtt_s > 0.0 {
                    (rtt_s / point.rtt_s) as f32
                } else {
                    1.0
                },
            });
        }
        self.correct_rounds(seen, &points, ways.as_deref(), &link, stretch);
        (self.stride, self.held_ns) = (1, i64::MAX);
        link.queued
    }

    /// The rounds that are held get the ways at their points. Where these are not known, rounds in which the link was full may have
    /// had a queue of any length.
    fn correct_rounds(&self, seen: Seen, points: &[Point], ways: Option<&[f64]>, link: &Link, stretch: Stretch) {
        let Some(last) = points.len().checked_sub(1) else {
            return;
        };
        let within = |start_ns: i64, end_ns: i64| {
            let begin = points.partition_point(|point| point.time_ns < start_ns).min(last);
            begin..points.partition_point(|point| point.time_ns <= end_ns).max(begin + 1)
        };
        let Some(ways) = ways else {
            let full = |start_ns, end_ns| link.full[within(start_ns, end_ns)].iter().any(|&full| full);
            seen.rounds.are_estimated(self.held_ns, full);
            return;
        };
        let corrected_s = |rtt_s: f64, start_ns: i64, end_ns: i64| {
            let ways = &ways[within(start_ns, end_ns)];
            stretch.corrected_s(rtt_s, ways.iter().sum::<f64>() / ways.len() as f64)
        };
        let most = seen.rounds.correct(self.held_ns, corrected_s);
        *seen.flight_max = seen.flight_max.max(most);
    }

    fn look(&self, points: &[Point], window: Option<f64>) -> (Link, Stretch) {
        let assumed_s = self.way_ns as f64 / 1e9;
        let stretch = Stretch {
            assumed_s,
            least_s: match self.path_ns {
                0 => self.shortest_s.min(assumed_s),
                path_ns => path_ns as f64 / 1e9,
            },
            window,
        };
        (self.link(points, stretch.least_s), stretch)
    }

    fn lag_until(&mut self, busy_s: f64) {
        self.lag_integral += self.lag_s * (busy_s - self.lag_since_s).max(0.0);
        self.lag_since_s = busy_s;
    }

    /// What the rate at which data came says of the link.
    fn link(&self, points: &[Point], least_s: f64) -> Link {
        let least_ns = (least_s * 1e9) as i64;
        let (mut from, mut known) = (0, false);
        let mut full = vec![false; points.len()];
        for (n, point) in points.iter().enumerate() {
            let long = |from: usize| {
                let start = &points[from];
                point.time_ns - start.time_ns >= least_ns && point.passed - start.passed >= RATE_OF
            };
            while from + 1 < n && long(from + 1) {
                from += 1;
            }
            if !long(from) {
                continue;
            }
            let start = &points[from];
            let rate = (point.passed - start.passed) as f64 * 1e9 / (point.time_ns - start.time_ns) as f64;
            if rate >= BUSY * self.rate {
                // before the first rate there is that one
                let first = if known { n } else { 0 };
                full[first..=n].fill(true);
            }
            known = true;
        }
        let queued = if known {
            full.iter().rev().take(3).any(|&full| full)
        } else {
            self.told.is_some_and(|told| told.queued)
        };
        Link { full, queued }
    }

    /// The way at each point, if it can be told.
    fn ways(&self, points: &[Point], link: &Link, told: Option<Telling>, stretch: Stretch) -> Option<Vec<f64>> {
        let (first, last) = (points.first()?, points.last()?);
        if self.way_ns == 0 || self.rate == 0.0 {
            return None;
        }
        let fills = link.fills();
        let from = match (fills, told) {
            (Some(n), Some(_)) if link.queued => n,
            // another flow's queue
            (_, Some(_)) => 0,
            (Some(n), None) => n,
            (None, None) => points.len() - 1,
        };
        let begin = &points[from];
        let at_once = fills.is_some().then_some(begin.time_ns - first.time_ns);
        let start_s = self.start_s(at_once, stretch.least_s);
        let mut filled = Filled {
            segments: (last.passed - begin.passed) as f64,
            open_s: (last.time_ns - begin.time_ns) as f64 / 1e9,
            rate: self.rate,
        };
        // while there is a queue the link's rate is that of all
        let mean = filled.segments / filled.open_s;
        if mean >= BUSY * self.rate {
            filled.rate = mean;
        }
        let (end_s, limited) = match told {
            // in slow start the last that was answered is not the one that tells
            Some(told) if !told.limited && told.by != By::OwnData && !self.has_felt_loss() => {
                (filled.slow_start_s(start_s, told.way_s), false)
            }
            Some(told) => (told.way_s, told.limited),
            None => self.untold_s(start_s, filled, stretch)?,
        };
        let slow_start = limited && !self.has_felt_loss();
        let (mut grown_s, mut before_ns) = (start_s, begin.time_ns);
        let ways = points.iter().enumerate().map(|(n, point)| {
            if n < from {
                return start_s;
            }
            if told.is_none() && !limited && !link.full[n] {
                // the queue has run empty
                grown_s = stretch.least_s.min(start_s);
            }
            // a segment more a round trip
            grown_s += (point.time_ns - before_ns) as f64 / 1e9 / grown_s.max(1e-4) / filled.rate;
            before_ns = point.time_ns;
            let share = (point.passed - begin.passed) as f64 / filled.segments.max(1.0);
            let straight_s = if told.is_none() && !limited {
                0.0
            } else {
                start_s + (end_s - start_s) * share
            };
            // slow start comes to the receiver's window at once
            let doubled_s = if slow_start {
                filled.doubled_s(start_s, share)
            } else {
                0.0
            };
            straight_s.max(grown_s.max(doubled_s).min(end_s))
        });
        Some(ways.collect())
    }

    /// A resend has told the way.
    fn has_felt_loss(&self) -> bool {
        self.told.is_some_and(|told| told.loss_s.is_some())
    }

    /// The way at the first point that had a queue, `since_ns` after the first of all, if one had.
    fn start_s(&self, since_ns: Option<i64>, least_s: f64) -> f64 {
        match self.told {
            None => least_s,
            Some(_) if self.expired => least_s,
            // no queue of its own, or told all the while
            Some(told) if !told.queued || told.by == By::OwnData => told.way_s,
            Some(told) => {
                let loss_s = told.loss_s.unwrap_or(told.way_s);
                let at_once = |&since_ns: &i64| since_ns <= (1.5e9 * loss_s.max(least_s)) as i64;
                let left_s = since_ns.filter(at_once).map_or(0.0, |_| DECREASE * loss_s);
                let drained_s = if told.by == By::Recovery { told.way_s } else { least_s };
                drained_s.max(left_s)
            }
        }
    }

    /// The way at the end where nothing tells it, and whether it is that of the receiver's window: if there was the time to fill
    /// it. Or it is no longer than what was told last.
    fn untold_s(&self, start_s: f64, filled: Filled, stretch: Stretch) -> Option<(f64, bool)> {
        let window_s = stretch.window.map_or(f64::INFINITY, |window| window / filled.rate);
        let grows_s = (window_s - start_s) * (window_s + start_s) / 2.0 * filled.rate;
        let queued = || self.told.is_some_and(|told| told.queued);
        let known = self.rate >= BUSY * self.peak && (stretch.least_s * self.rate >= LEAST_PIPE || queued());
        if known && window_s > start_s && grows_s < filled.open_s / 2.0 {
            return Some((window_s, true));
        }
        Some((self.told?.loss_s?.max(start_s), false))
    }
}

#[cfg(test)]
mod tests;
