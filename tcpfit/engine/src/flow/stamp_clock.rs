//! A host's timestamp clock, as the TSvals of a connection tell it (RFC 7323, 5.4: a tick takes 1 ms to 1 s).

/// Ticks in use: 1000, 500, 300, 250, 100, 10 and 2 a second.
const TICKS_NS: [i64; 7] = [
    1_000_000,
    2_000_000,
    3_333_333,
    4_000_000,
    10_000_000,
    100_000_000,
    500_000_000,
];
/// Least time to learn the tick from, and how near the rate must come to one.
const LONG_NS: i64 = 500_000_000;
const NEAR: f64 = 0.06;

/// A tick so long says little of a round trip.
const FINE_NS: i64 = 4_000_000;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct StampClock {
    last: (u32, i64),
    /// 0 while not known.
    pub tick_ns: i64,
    /// When the tick may be found: `i64::MIN` before the first stamp, `i64::MAX` once it is.
    due_ns: i64,
    first_ns: i64,
    first: u32,
}

impl Default for StampClock {
    fn default() -> Self {
        Self::NEW
    }
}

impl StampClock {
    pub const NEW: Self = Self {
        last: (0, 0),
        tick_ns: 0,
        due_ns: i64::MIN,
        first_ns: 0,
        first: 0,
    };

    /// The tick, if it is known and fine enough for round trips.
    pub fn fine_tick_ns(&self) -> Option<i64> {
        (1..=FINE_NS).contains(&self.tick_ns).then_some(self.tick_ns)
    }

    /// Learns from a packet that passes. It may have been under way longer than the first, or the first longer than it, by
    /// `slack_ns`: in slow start every answer lets two segments go, and the time between those doubles in a queue.
    #[inline]
    pub fn learn(&mut self, stamp: u32, time_ns: i64, slack_ns: impl FnOnce() -> i64) {
        self.last = (stamp, time_ns);
        if time_ns >= self.due_ns {
            self.find_tick(stamp, time_ns, slack_ns);
        }
    }

    /// The stamp that was learnt last.
    pub fn last_stamp(&self) -> Option<u32> {
        (self.due_ns != i64::MIN).then_some(self.last.0)
    }

    /// The first stamp, and when it passed.
    pub fn first(&self) -> Option<(u32, i64)> {
        (self.due_ns != i64::MIN).then_some((self.first, self.first_ns))
    }

    fn find_tick(&mut self, stamp: u32, time_ns: i64, slack_ns: impl FnOnce() -> i64) {
        if self.due_ns == i64::MIN {
            (self.first, self.first_ns) = (stamp, time_ns);
            self.due_ns = time_ns.saturating_add(LONG_NS);
            return;
        }
        let (ticks, since_ns) = (
            i64::from(stamp.wrapping_sub(self.first) as i32),
            time_ns - self.first_ns,
        );
        if ticks < 2 {
            return;
        }
        let slack_ns = slack_ns();
        let near = |tick_ns: &&i64| {
            let ran_ns = ticks * **tick_ns;
            (since_ns - ran_ns).abs() < slack_ns + (ran_ns as f64 * NEAR) as i64
        };
        let mut possible = TICKS_NS.iter().filter(near);
        if let (Some(&tick_ns), None) = (possible.next(), possible.next()) {
            (self.tick_ns, self.due_ns) = (tick_ns, i64::MAX);
        }
    }

    /// When a segment with that stamp was sent, but for a constant.
    pub fn sent_ns(&self, stamp: u32) -> Option<i64> {
        let ticks = i64::from(stamp.wrapping_sub(self.first) as i32);
        (self.tick_ns != 0).then(|| self.first_ns + ticks * self.tick_ns)
    }

    /// How much longer the capture's clock says it is since the host's last packet than the host's own clock.
    pub fn ahead_ns(&self, stamp: u32, time_ns: i64) -> Option<i64> {
        let (last, last_ns) = self.last;
        let ticks = i64::from(stamp.wrapping_sub(last) as i32);
        (self.tick_ns != 0).then(|| time_ns - last_ns - ticks * self.tick_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_is_one_of_those_in_use() {
        let mut clock = StampClock::default();
        clock.learn(u32::MAX, 0, || 0);
        clock.learn(24, 99_000_000, || 0);
        assert_eq!(clock.sent_ns(24), None);
        clock.learn(149, 601_000_000, || 0);
        assert_eq!(clock.tick_ns, 4_000_000);
        assert_eq!(clock.sent_ns(149), Some(600_000_000));
        assert_eq!(clock.ahead_ns(150, 1_605_000_000), Some(1_000_000_000));
        // 3 ms is no tick of any stack
        let mut odd = StampClock::default();
        odd.learn(0, 0, || 0);
        odd.learn(200, 600_000_000, || 0);
        assert_eq!(odd.tick_ns, 0);
    }

    #[test]
    fn a_queue_that_grows_is_not_taken_for_a_longer_tick() {
        // slow start at a bottleneck: what a sender's clock says to be 260 ms apart comes in 520, as if a tick took 2 ms
        let mut clock = StampClock::default();
        clock.learn(0, 0, || 0);
        clock.learn(260, 520_000_000, || 270_000_000);
        assert_eq!(clock.tick_ns, 0);
        clock.learn(740, 1_000_000_000, || 270_000_000);
        assert_eq!(clock.tick_ns, 1_000_000);
    }
}
