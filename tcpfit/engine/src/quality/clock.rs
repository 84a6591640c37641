//! The capture's clock: time stamps out of order, and steps.
//!
//! A capture's packets come in order but for a little, where queues of an interface are read in turn; such a packet gets
//! the time of the one before. A clock that is set while it captures makes a gap, or goes back. A gap is a step where two
//! hosts' timestamp clocks (RFC 7323) agree that less time has passed: the path can hold up the packets of one host, and
//! a busy capturing host stamps packets late, but then its clock is right again at once. Times after a step are moved
//! back to where they would have been, so that durations are right everywhere.
//!
//! Not seen: steps of less than a quarter of a second, and steps forward where hosts send no timestamps.

use crate::segment::{Address, Segment};

/// No smaller step is looked for: NTP sets a clock that is off by more than 128 ms and slews the others (RFC 5905, 11.3).
const STEP_NS: i64 = 250_000_000;
/// Two hosts agree on a step within this much, or a tenth.
const AGREE_NS: i64 = 50_000_000;
/// Clocks of hosts differ in rate by less than one in so many.
const RATES_DIFFER: i64 = 100;
/// Segments held while a step is doubtful, and the time they span at least.
const HELD: usize = 64;
const SPAN_NS: i64 = 20_000_000;

/// What a host's timestamp says: how far the capture's clock has run ahead of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Witness {
    pub host: (Address, u16),
    pub ahead_ns: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    frame: u64,
    by_ns: i64,
    /// Hosts agree on it.
    sure: bool,
}

/// What has become of a segment.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    /// Go on waiting.
    Hold,
    /// Follow all that were held.
    Release,
}

#[derive(Debug, Default)]
pub struct Clock {
    /// Time of the last segment that was followed, and how far from it the next one is followed as it is: 0 before the
    /// first, while others wait, and where times are moved.
    newest_ns: i64,
    plain_ns: u64,
    /// Added to every time stamp.
    moved_ns: i64,
    started: bool,
    held: Vec<Segment>,
    witnesses: Vec<Witness>,
    steps: Vec<Step>,
    steps_seen: u64,
    disordered: u64,
    first_disordered: u64,
    largest_ns: i64,
    /// Packets whose times are beyond those that are followed, and the frame of the first.
    beyond: u64,
    first_beyond: u64,
}

/// Queues that are read in turn disorder packets by less, which does not matter.
const DISORDER_NS: i64 = 100_000;
/// Times end here, in 1827 and 2112, years after the last one that a pcap record can hold: differences of times must not
/// overflow. An interface of a pcapng file can have any offset and any unit.
const LATEST_NS: i64 = 4_500_000_000_000_000_000;
/// Steps told one by one.
const TOLD: usize = 3;

impl Clock {
    /// The segment is followed at its own time: nothing is odd about it, as about most. One question for all of that.
    #[inline]
    pub fn takes(&mut self, time_ns: i64) -> bool {
        let plain = (time_ns.wrapping_sub(self.newest_ns) as u64) < self.plain_ns;
        if plain {
            self.newest_ns = time_ns;
        }
        plain
    }

    /// The time at which any segment is followed, if nothing is odd about it.
    pub fn moved(&mut self, time_ns: i64) -> Option<i64> {
        let time_ns = time_ns.wrapping_add(self.moved_ns);
        let plain = match self.last_ns() {
            Some(last_ns) => (0..STEP_NS).contains(&time_ns.wrapping_sub(last_ns)) && self.held.is_empty(),
            None => (-LATEST_NS..=LATEST_NS).contains(&time_ns),
        };
        plain.then(|| {
            self.follow_at(time_ns);
            time_ns
        })
    }

    /// Time of the last segment that was followed.
    pub fn last_ns(&self) -> Option<i64> {
        self.started.then_some(self.newest_ns)
    }

    fn follow_at(&mut self, time_ns: i64) {
        (self.newest_ns, self.started) = (time_ns, true);
        let plain = self.moved_ns == 0 && self.held.is_empty();
        self.plain_ns = if plain { STEP_NS as u64 } else { 0 };
    }

    fn time_ns(&self, segment: &Segment) -> i64 {
        let time_ns = segment.time_ns.saturating_add(self.moved_ns);
        time_ns.clamp(-LATEST_NS, LATEST_NS)
    }

    /// Takes a segment that may not be followed as it is; `ahead_ns` is what its host's clock says.
    pub fn take(&mut self, segment: &Segment, ahead_ns: Option<i64>) -> Verdict {
        let since_ns = self
            .last_ns()
            .map(|last_ns| self.time_ns(segment).saturating_sub(last_ns));
        self.held.push(*segment);
        self.plain_ns = 0;
        let (Some(last_ns), Some(since_ns)) = (self.last_ns(), since_ns) else {
            return Verdict::Release;
        };
        if self.held.len() == 1 && (-STEP_NS..STEP_NS).contains(&since_ns) {
            return Verdict::Release;
        }
        if let Some(ahead_ns) = ahead_ns.map(|ahead_ns| ahead_ns.saturating_add(self.moved_ns)) {
            let host = (segment.src, segment.sport);
            self.witnesses.retain(|witness| witness.host != host);
            self.witnesses.push(Witness { host, ahead_ns });
        }
        let doubt_ns = STEP_NS.max(since_ns.abs() / RATES_DIFFER);
        let denies = |witness: &Witness| witness.ahead_ns.abs() < doubt_ns / 2;
        if self.witnesses.iter().any(denies) {
            return Verdict::Release;
        }
        let first_ns = self.time_ns(&self.held[0]);
        let agreed = self.agreed().filter(|step_ns| step_ns.abs() >= doubt_ns);
        if agreed.is_some() && self.time_ns(segment) - first_ns >= SPAN_NS || self.held.len() >= HELD {
            self.judge(agreed, last_ns);
            return Verdict::Release;
        }
        Verdict::Hold
    }

    /// The step that two hosts agree on.
    fn agreed(&self) -> Option<i64> {
        let pairs = self
            .witnesses
            .iter()
            .enumerate()
            .flat_map(|(n, a)| self.witnesses[n + 1..].iter().map(move |b| (a, b)));
        let apart = |a: &Witness, b: &Witness| a.host.0 != b.host.0 || a.host.1 != b.host.1 && self.is_loopback();
        let agree = |a: i64, b: i64| (a - b).abs() < AGREE_NS.max(a.abs() / 10);
        let step = |(a, b): (&Witness, &Witness)| if a.ahead_ns.abs() < b.ahead_ns.abs() { a } else { b }.ahead_ns;
        pairs
            .filter(|(a, b)| apart(a, b) && agree(a.ahead_ns, b.ahead_ns))
            .map(step)
            .find(|step_ns| step_ns.abs() >= STEP_NS)
    }

    fn is_loopback(&self) -> bool {
        self.held.iter().all(|segment| segment.src == segment.dst)
    }

    /// Decides on what is held: a step that hosts agree on, or a clock that went back and stayed there.
    fn judge(&mut self, agreed: Option<i64>, last_ns: i64) {
        let first_ns = self.time_ns(&self.held[0]);
        let behind = self.held.iter().all(|segment| self.time_ns(segment) < last_ns);
        let step_ns = match agreed {
            // what comes after a step comes after what was before it
            Some(step_ns) => step_ns.min(first_ns - last_ns),
            None if behind => first_ns - last_ns,
            None => return,
        };
        self.moved_ns = self.moved_ns.saturating_sub(step_ns);
        self.steps_seen += 1;
        if self.steps.len() < TOLD {
            self.steps.push(Step {
                frame: self.held[0].frame,
                by_ns: step_ns,
                sure: agreed.is_some(),
            });
        }
    }

    /// The capture ends: what is held is judged with what is known.
    pub fn end(&mut self) {
        if let (Some(last_ns), false) = (self.last_ns(), self.held.is_empty()) {
            let agreed = self.agreed();
            self.judge(agreed, last_ns);
        }
    }

    /// What was held, in order, with times that do not go back.
    pub fn release(&mut self) -> Vec<Segment> {
        self.witnesses.clear();
        let mut released = std::mem::take(&mut self.held);
        for segment in &mut released {
            let time_ns = self.time_ns(segment);
            if time_ns != segment.time_ns.saturating_add(self.moved_ns) {
                self.beyond += 1;
                if self.beyond == 1 {
                    self.first_beyond = segment.frame;
                }
            }
            let last_ns = self.last_ns().unwrap_or(time_ns);
            if time_ns < last_ns {
                self.disordered += 1;
                if self.disordered == 1 {
                    self.first_disordered = segment.frame;
                }
                self.largest_ns = self.largest_ns.max(last_ns - time_ns);
            }
            segment.time_ns = time_ns.max(last_ns);
            self.follow_at(segment.time_ns);
        }
        released
    }

    /// What was odd, a sentence each.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self.steps.iter().map(Step::sentence).collect();
        if self.steps_seen > TOLD as u64 {
            sentences.push(format!("the capture's clock was set {} times in all", self.steps_seen));
        }
        if self.largest_ns >= DISORDER_NS {
            sentences.push(format!(
                "frame {}: the time stamp is before the last one's ({} in all, up to {:.6} s); such packets are given \
                 the last one's time, and what came just before or after them may not be right: reordercap puts a \
                 capture in order",
                self.first_disordered,
                self.disordered,
                self.largest_ns as f64 / 1e9
            ));
        }
        if self.beyond > 0 {
            sentences.push(format!(
                "frame {}: the time stamp is before 1827 or after 2112 ({} in all); such packets are given the nearest \
                 time between, and no duration among them is right: the unit or the offset that the capture gives for \
                 its times is damaged",
                self.first_beyond, self.beyond
            ));
        }
        sentences
    }
}

impl Step {
    fn sentence(&self) -> String {
        let way = if self.by_ns > 0 { "forward" } else { "back" };
        let what = if self.sure {
            "; times from here on are moved so that durations are right"
        } else {
            ", or captures were put one behind the other, which no time stamps of hosts tell apart here; times from here \
             on are moved as if it was set, and of such captures no time is right: reordercap puts packets in order"
        };
        let by_s = self.by_ns.abs() as f64 / 1e9;
        format!(
            "frame {}: the capture's clock was set {way} by {by_s:.3} s{what}",
            self.frame
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(frame: u64, time_ms: i64, host: u8) -> Segment {
        let mut segment = Segment {
            frame,
            time_ns: time_ms * 1_000_000,
            sport: u16::from(host),
            ..Segment::default()
        };
        (segment.src[15], segment.dst[15]) = (host, 9 - host);
        segment
    }

    /// When the segment is followed, if nothing is odd about it; both questions say the same.
    fn plain_ns(clock: &mut Clock, time_ns: i64) -> Option<i64> {
        if clock.takes(time_ns) {
            assert_eq!(Some(time_ns), clock.moved(time_ns));
            return Some(time_ns);
        }
        clock.moved(time_ns)
    }

    fn run(packets: &[(i64, u8, Option<i64>)]) -> (Vec<i64>, Clock) {
        let mut clock = Clock::default();
        let mut times = Vec::new();
        for (n, &(time_ms, host, ahead_ms)) in packets.iter().enumerate() {
            let segment = segment(n as u64 + 1, time_ms, host);
            if let Some(time_ns) = plain_ns(&mut clock, segment.time_ns) {
                times.push(time_ns / 1_000_000);
            } else if clock.take(&segment, ahead_ms.map(|ms| ms * 1_000_000)) == Verdict::Release {
                times.extend(clock.release().iter().map(|s| s.time_ns / 1_000_000));
            }
        }
        clock.end();
        times.extend(clock.release().iter().map(|s| s.time_ns / 1_000_000));
        (times, clock)
    }

    #[test]
    fn absurd_times_stay_within_bounds() {
        // forward to the end of a pcap's time and back, again and again: each way back moves what follows
        let last_ms = 4_294_967_295_000;
        let packets: Vec<_> = (0..40 * HELD as i64)
            .map(|n| (n / (2 * HELD as i64) % 2 * last_ms + n, 1 + (n % 2) as u8, None))
            .collect();
        let (times, clock) = run(&packets);
        assert_eq!(times.len(), packets.len());
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(clock.steps_seen > 2, "{} steps", clock.steps_seen);
        assert!(
            *times.last().unwrap() <= LATEST_NS / 1_000_000 + 3_600_000,
            "{:?}",
            times.last()
        );
    }

    #[test]
    fn the_first_time_is_bounded_too() {
        for absurd_ns in [i64::MAX, i64::MIN] {
            let mut clock = Clock::default();
            assert_eq!(plain_ns(&mut clock, absurd_ns), None);
            let first = Segment {
                time_ns: absurd_ns,
                ..segment(1, 0, 1)
            };
            assert_eq!(clock.take(&first, None), Verdict::Release);
            assert_eq!(clock.release()[0].time_ns.abs(), LATEST_NS);
            assert!(clock.sentences()[0].starts_with("frame 1: the time stamp is before 1827 or after 2112 (1 in all)"));
        }
    }

    #[test]
    fn two_hosts_agree_on_a_step() {
        let (times, clock) = run(&[
            (0, 1, None),
            (10, 2, None),
            (3030, 1, Some(3000)),
            (3040, 2, Some(3001)),
            (3055, 1, Some(3000)),
            (3060, 2, None),
        ]);
        assert_eq!(times, [0, 10, 30, 40, 55, 60]);
        assert_eq!(
            clock.steps,
            [Step {
                frame: 3,
                by_ns: 3_000_000_000,
                sure: true,
            }]
        );
        assert!(clock.sentences()[0].ends_with("so that durations are right"));
    }

    #[test]
    fn a_pause_or_a_path_that_held_one_host_up_is_no_step() {
        let pause = [(0, 1, None), (3000, 1, Some(0)), (3050, 2, Some(0))];
        let outage = [(0, 1, None), (3000, 1, Some(2990)), (3001, 2, Some(0)), (3002, 1, None)];
        for packets in [&pause[..], &outage[..]] {
            let (times, clock) = run(packets);
            assert_eq!(times, packets.iter().map(|p| p.0).collect::<Vec<_>>());
            assert!(clock.sentences().is_empty());
        }
    }

    #[test]
    fn a_clock_that_goes_back_and_stays_there_was_set() {
        let (times, clock) = run(&[(5000, 1, None), (5010, 2, None), (1020, 1, None), (1030, 2, None)]);
        assert_eq!(times, [5000, 5010, 5010, 5020]);
        assert_eq!(
            clock.steps,
            [Step {
                frame: 3,
                by_ns: -3_990_000_000,
                sure: false,
            }]
        );
        // or captures were put one behind the other
        assert!(clock.sentences()[0].ends_with("reordercap puts packets in order"));
    }

    #[test]
    fn a_packet_out_of_order_takes_the_time_of_the_one_before() {
        let (times, clock) = run(&[(0, 1, None), (10, 2, None), (9, 1, None), (11, 2, None)]);
        assert_eq!(times, [0, 10, 10, 11]);
        assert!(clock.steps.is_empty());
        assert_eq!(clock.sentences().len(), 1);
    }
}
