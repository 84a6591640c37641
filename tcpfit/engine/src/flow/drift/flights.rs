//! Away from the sender and without timestamps: how long segments waited in a queue of their own that were sent at once after a rest.
//!
//! ```text
//!  sent     ||||||||                        |
//!  passes        | | | | | | | |                    |
//!                <-------------> at the link's rate: the last has waited so long
//! ```
//! Until an ACK of the first can have come to the sender and what it let go have passed, nothing is an ACK's doing. What passes then
//! as close as the link sends it was sent with the first, or an application writes just as fast as the link sends: so the link's
//! own distance is taken from full segments without PSH, which have more of the same write behind them (RFC 9293, 3.9.1.2).
//!
//! A sender sends a window at once: ten segments (RFC 6928, 2), or a few more that it sent before, unless it has rested for as long as
//! its timer takes (RFC 5681, 4.1). What comes behind that is taken to be let go in slow start, two by each that was acknowledged.
//!
//! The first flight of all is left out: most transfers begin so, and go on. Not seen: a window that stays small, and a pacer, whose
//! flights pass as close and wait for less.

use crate::events::cause::SHORTEST_TIMER_S;

/// Segments of a first window after those that were sent before it (RFC 6928, 2).
const WINDOW: i64 = 10;
/// Segments of a flight that may be sent at once the next time: more were let go by ACKs.
const MOST: i64 = 2 * WINDOW;
/// A longer flight is a transfer, whose queue its losses tell.
const LONGEST: i64 = 64;
/// Times the link's distance up to which its queue has not emptied.
const CLOSE: f64 = 1.5;
/// The link's distance is the shortest, which grows by one in so many of what longer ones are longer.
const SLOWER: i64 = 16;
const TIMER_NS: i64 = (SHORTEST_TIMER_S * 1e9) as i64;

/// A segment of new data, as it passes.
#[derive(Clone, Copy, Debug)]
pub struct Newest {
    pub time_ns: i64,
    pub payload: u32,
    /// It has PSH.
    pub push: bool,
    /// After a rest: all before it had been acknowledged, and the sender knew, and nothing had passed for so long.
    pub rested_ns: Option<i64>,
}

/// Segments that passed one after the other at the link's rate, from one that was sent after a rest.
#[derive(Clone, Copy, Debug)]
struct Flight {
    from_ns: i64,
    to_ns: i64,
    /// So long after the first passed what was sent with it.
    at_once_ns: i64,
}

impl Flight {
    const NONE: Self = Self {
        from_ns: i64::MAX,
        to_ns: i64::MIN,
        at_once_ns: 0,
    };
}

#[derive(Clone, Copy, Debug)]
pub struct Flights {
    last: Option<Newest>,
    /// Payload of the largest so far.
    largest: u32,
    /// The host sets PSH.
    pushes: bool,
    /// Time that the link takes for a full segment; 0 while not known.
    spacing_ns: i64,
    /// The one that passes, or the last, and the one before it.
    flights: [Flight; 2],
    /// Nothing has come between its segments so far.
    goes_on: bool,
}

impl Flights {
    pub const NONE: Self = Self {
        last: None,
        largest: 0,
        pushes: false,
        spacing_ns: 0,
        flights: [Flight::NONE; 2],
        goes_on: false,
    };

    /// New data pass in order, while ACKs are under way for `way_ns`.
    pub fn on_data(&mut self, newest: Newest, way_ns: i64) {
        let gap_ns = self.last.map_or(i64::MAX, |last| newest.time_ns - last.time_ns);
        let first = self.largest == 0;
        self.largest = self.largest.max(newest.payload);
        self.pushes |= newest.push;
        let of_one_write = |last: Newest| !last.push && last.payload == self.largest && newest.payload == self.largest;
        if self.pushes && self.last.is_some_and(of_one_write) && newest.rested_ns.is_none() {
            self.learn(gap_ns);
        }
        self.last = Some(newest);
        let [current, before] = &mut self.flights;
        let close = gap_ns as f64 <= CLOSE * self.spacing_ns as f64;
        if let Some(rested_ns) = newest.rested_ns.filter(|_| !first) {
            let lasted_ns = current.to_ns.saturating_sub(current.from_ns);
            let restarts = rested_ns >= TIMER_NS;
            let window = !restarts && lasted_ns <= MOST * self.spacing_ns;
            *before = *current;
            *current = Flight {
                from_ns: newest.time_ns,
                to_ns: newest.time_ns,
                at_once_ns: way_ns.max(if window { lasted_ns } else { 0 }),
            };
            self.goes_on = true;
        } else if self.goes_on && close && newest.time_ns - current.from_ns <= LONGEST * self.spacing_ns {
            current.to_ns = newest.time_ns;
        } else {
            self.goes_on = false;
        }
    }

    /// What passes is no new data in order.
    pub fn interrupt(&mut self) {
        (self.last, self.goes_on) = (None, false);
    }

    /// No time that a link takes is as long as a timer, and a clock that jumped back shows none.
    fn learn(&mut self, gap_ns: i64) {
        if !(1..TIMER_NS).contains(&gap_ns) {
            return;
        }
        self.spacing_ns = match self.spacing_ns {
            0 => gap_ns,
            known_ns if gap_ns < known_ns => gap_ns,
            known_ns => known_ns + (gap_ns - known_ns) / SLOWER,
        };
    }

    /// How much longer a segment that passed then was under way than one of the handshake, whose way is `way_ns`.
    pub fn longer_ns(&self, passed_ns: i64, way_ns: i64) -> i64 {
        let of = |flight: &&Flight| (flight.from_ns..=flight.to_ns).contains(&passed_ns);
        let Some(flight) = self.flights.iter().find(of) else {
            return 0;
        };
        let waited_ns = passed_ns - flight.from_ns;
        let at_once_ns = flight.at_once_ns.max((WINDOW - 1) * self.spacing_ns);
        if waited_ns <= at_once_ns {
            self.spacing_ns + waited_ns
        } else {
            self.spacing_ns + ((waited_ns + at_once_ns) / 2 - way_ns).max(0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const WAY_NS: i64 = 20 * MS;

    /// Flights of so many segments, 4 ms apart, after each of which the sender rests for so long; the last is half a segment,
    /// and every second has PSH if `pairs`, or only the last. When the segments of the last flight passed.
    fn flights(sizes: &[i64], rest_ms: i64, pairs: bool) -> (Flights, Vec<i64>) {
        let (mut flights, mut now_ms, mut times) = (Flights::NONE, 1000, Vec::new());
        for &size in sizes {
            times.clear();
            for n in 0..size {
                let last = n == size - 1;
                now_ms += if last { 2 } else { 4 };
                let newest = Newest {
                    time_ns: now_ms * MS,
                    payload: if last { 500 } else { 1000 },
                    push: last || pairs && n % 2 == 1,
                    rested_ns: (n == 0).then_some(rest_ms * MS),
                };
                flights.on_data(newest, WAY_NS);
                times.push(now_ms * MS);
            }
            now_ms += rest_ms;
        }
        (flights, times)
    }

    fn longer_ms(flights: &Flights, times: &[i64]) -> Vec<i64> {
        times
            .iter()
            .map(|&time_ns| flights.longer_ns(time_ns, WAY_NS) / MS)
            .collect()
    }

    #[test]
    fn what_is_sent_at_once_waits_for_what_is_before_it() {
        for pairs in [false, true] {
            let (flights, times) = flights(&[6, 6], 500, pairs);
            assert_eq!(vec![4, 8, 12, 16, 20, 22], longer_ms(&flights, &times));
            // of those that another connection's came between nothing is known
            assert_eq!(0, flights.longer_ns(times[0] - 1, WAY_NS));
        }
    }

    #[test]
    fn a_clock_that_jumps_back_shows_no_link() {
        let (mut jumped, times) = flights(&[6, 6], 500, false);
        let back = |time_ns: i64| Newest {
            time_ns,
            payload: 1000,
            push: false,
            rested_ns: None,
        };
        for time_ns in [times[5] - 100 * MS, times[5] - 200 * MS, times[5] + 10_000 * MS] {
            jumped.on_data(back(time_ns), WAY_NS);
        }
        assert_eq!(4 * MS, jumped.spacing_ns);
    }

    #[test]
    fn a_transfer_is_no_flight() {
        // nor is the first, as a transfer begins
        let (first, times) = flights(&[6], 500, false);
        assert_eq!(vec![0; 6], longer_ms(&first, &times));
        let (long, times) = flights(&[6, 80], 500, false);
        let longer = longer_ms(&long, &times);
        assert!(longer[63] > 0 && longer[65..].iter().all(|&ms| ms == 0), "{longer:?}");
    }

    #[test]
    fn beyond_the_first_window_two_are_let_go_by_each_that_was_acknowledged() {
        let (restarted, times) = flights(&[20, 20], 500, true);
        let longer = longer_ms(&restarted, &times);
        assert_eq!(
            [40, 4 + (40 + 36) / 2 - 20, 4 + (74 + 36) / 2 - 20],
            [longer[9], longer[10], longer[19]]
        );
        // the window is what it was after a shorter rest
        let (again, times) = flights(&[20, 20, 20], 100, true);
        assert_eq!(Some(78), longer_ms(&again, &times).last().copied());
        // but a long flight was let go by ACKs
        let (long, times) = flights(&[40, 40, 40], 100, true);
        assert_eq!(Some(4 + (154 + 36) / 2 - 20), longer_ms(&long, &times).last().copied());
    }

    #[test]
    fn what_comes_by_a_clock_has_not_waited() {
        // whose segments all have PSH: what the link takes is not known
        let mut clock = Flights::NONE;
        let newest = |n: i64, payload: u32, push: bool| Newest {
            time_ns: (1000 + 20 * n) * MS,
            payload,
            push,
            rested_ns: (n % 10 == 0).then_some(100 * MS),
        };
        for n in 0..30 {
            clock.on_data(newest(n, 200, true), WAY_NS);
        }
        assert_eq!(0, clock.longer_ns(newest(25, 0, true).time_ns, WAY_NS));
        // nor of a host that never sets it
        let mut plain = Flights::NONE;
        for n in 0..30 {
            plain.on_data(newest(n, 200, false), WAY_NS);
        }
        assert_eq!(0, plain.longer_ns(newest(25, 0, true).time_ns, WAY_NS));
    }

    #[test]
    fn the_queue_is_empty_after_a_gap_and_behind_a_resend_nothing_is_known() {
        let (mut gap, times) = flights(&[6, 6], 500, false);
        let last = times[5] + 7 * MS;
        let newest = Newest {
            time_ns: last,
            payload: 1000,
            push: true,
            rested_ns: None,
        };
        gap.on_data(newest, WAY_NS);
        assert_eq!(0, gap.longer_ns(last, WAY_NS));
        let (mut resent, times) = flights(&[6, 6], 500, false);
        resent.interrupt();
        resent.on_data(
            Newest {
                time_ns: times[5] + MS,
                ..newest
            },
            WAY_NS,
        );
        assert_eq!(0, resent.longer_ns(times[5] + MS, WAY_NS));
    }
}
