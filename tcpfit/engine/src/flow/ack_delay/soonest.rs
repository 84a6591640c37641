//! With timestamps: round trips of segments that no ACK let go, as an application sends that pauses.
//!
//! ```text
//!  under way   x   x                 x x          by the sender's stamps, a tick apart
//!  (+ constant)  x   x x         x x     x
//!              o           x x x                  o the handshake's: no longer than the path takes
//! ```
//! No answer shows the way of ACKs then. But the sender's stamps say how much longer each segment was under way than the soonest of all,
//! and the handshake's packets, which no data had before them, showed the way with a path that took no longer than that.
//!
//! Two hosts' clocks do not run alike: of two soonest segments a while apart, what the clocks may have made is taken for theirs.

use super::told::{Stamped, Told};

/// Two hosts' clocks differ by less than one in so many.
const SKEW: i64 = 10_000;

/// The packet that was under way for the shortest time, and the way of ACKs whose answers are as soon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Soonest {
    by: Stamped,
    way_ns: i64,
    /// The soonest since.
    next: Option<Stamped>,
    /// It is the soonest of many, so that its stamp was new when it was sent; else the only one.
    of_many: bool,
}

impl Soonest {
    /// A packet of the handshake, which showed the way; `None` if that is not known.
    pub(super) fn of_handshake(by: Stamped, way_ns: i64) -> Option<Self> {
        (way_ns > 0).then_some(Self {
            by,
            way_ns,
            next: None,
            of_many: false,
        })
    }

    /// How old a stamp is on average when a segment is sent, beside the soonest's.
    fn age_ns(&self, tick_ns: i64) -> i64 {
        if self.of_many {
            tick_ns / 2
        } else {
            0
        }
    }

    /// A segment passes. `None` if the way cannot be so short: the handshake's stamps were another host's.
    pub(super) fn after(mut self, stamped: Stamped, tick_ns: i64) -> Option<Self> {
        let later_ns = self.by.longer_ns(stamped, tick_ns);
        if later_ns < 0 {
            // what is not the stamps' has made the soonest so far later, and the way longer
            self.way_ns += (later_ns + tick_ns).min(0);
            (self.by, self.next, self.of_many) = (stamped, None, true);
            return Some(self).filter(|soonest| soonest.way_ns > 0);
        }
        let next = self.next.unwrap_or(stamped);
        self.next = Some(if next.longer_ns(stamped, tick_ns) < 0 {
            stamped
        } else {
            next
        });
        let since_ns = stamped.time_ns - self.by.time_ns;
        if since_ns >= SKEW * tick_ns {
            self.move_on(since_ns / SKEW, tick_ns);
        }
        Some(self)
    }

    /// Goes on with the soonest since, for the clocks may have gone apart by `skew_ns`. What data have before them that the
    /// handshake's packets have not was there from the first.
    fn move_on(&mut self, skew_ns: i64, tick_ns: i64) {
        let Some(next) = self.next.take() else { return };
        let later_ns = self.by.longer_ns(next, tick_ns);
        if !self.of_many || later_ns > skew_ns {
            self.way_ns += later_ns + tick_ns / 2 - self.age_ns(tick_ns);
        }
        (self.by, self.of_many) = (next, true);
    }

    /// An ACK and the first segment that shows it to have come were `went_ns` apart: its way was no longer.
    pub(super) fn at_most(mut self, went_ns: i64, by: Stamped, tick_ns: i64) -> Option<Self> {
        let least_ns = went_ns - self.by.longer_ns(by, tick_ns) + tick_ns;
        self.way_ns = self.way_ns.min(least_ns);
        Some(self).filter(|soonest| soonest.way_ns > 0)
    }

    /// The way of an ACK that let that segment go at once.
    pub(super) fn way_of_ns(&self, by: Stamped, tick_ns: i64) -> i64 {
        self.way_ns + self.by.longer_ns(by, tick_ns) - self.age_ns(tick_ns)
    }

    /// The way of an ACK that passed at `passed_ns`.
    pub(super) fn told(&self, passed_ns: i64, tick_ns: i64) -> Told {
        let seems_ns = self.age_ns(tick_ns);
        Told {
            by: self.by,
            tick_ns,
            seems_ns,
            open_ns: tick_ns - seems_ns,
            soonest: true,
            came_ns: passed_ns + self.way_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::MS;
    use super::*;

    const WAY_NS: i64 = 40 * MS;

    /// What is sent at `sent_ns`, by the capture's clock, and under way for `ms` to the capture point; `ppm`: how much faster the
    /// sender's clock runs.
    fn segment(sent_ns: i64, ms: i64, ppm: i64) -> Stamped {
        Stamped {
            tsval: 7000 + ((sent_ns + sent_ns / 1_000_000 * ppm) / MS) as u32,
            time_ns: sent_ns + ms * MS,
        }
    }

    /// After a handshake, whose packets take 10 ms, and ten segments a second for so long that take 15.
    fn after(seconds: i64, ppm: i64) -> Soonest {
        let handshake = Soonest::of_handshake(segment(0, 10, ppm), WAY_NS).unwrap();
        (1..seconds * 10).fold(handshake, |soonest, n| {
            soonest
                .after(segment(n * 100 * MS + n * 37 % 50 * MS / 50, 15, ppm), MS)
                .unwrap()
        })
    }

    /// How long the round trip was of what was under way for `ms` to the capture point, and answered at once.
    fn round_trip_ms(soonest: &Soonest, at_s: i64, ms: i64, ppm: i64) -> f64 {
        let sent = segment(at_s * 1000 * MS + 400_000, ms, ppm);
        let told = soonest.told(sent.time_ns, MS);
        (told.came_ns + told.longer_ns(sent.tsval, sent.time_ns) - sent.time_ns) as f64 / 1e6
    }

    #[test]
    fn round_trips_are_longer_by_what_segments_are_later_than_the_handshake() {
        for (seconds, ppm) in [(5, 0), (60, 0), (5, 50), (5, -50), (600, 50), (600, -50)] {
            let soonest = after(seconds, ppm);
            for (ms, rtt_ms) in [(15, 45.0), (20, 50.0), (200, 230.0)] {
                let found_ms = round_trip_ms(&soonest, seconds, ms, ppm);
                assert!(
                    (found_ms - rtt_ms).abs() < 1.5,
                    "{seconds} s, {ppm} ppm, {ms} ms: {found_ms}"
                );
            }
        }
    }

    #[test]
    fn what_a_tick_may_make_is_nothing() {
        let handshake = Soonest::of_handshake(segment(0, 10, 0), WAY_NS).unwrap();
        // sent in the midst of a tick
        let found_ms = [9, 10, 11].map(|ms| round_trip_ms(&handshake, 3, ms, 0));
        assert_eq!([40.0, 40.0, 41.4], found_ms);
        // one that passed before the tick was known
        assert_eq!(40.0, round_trip_ms(&handshake, 3, 7, 0));
    }

    #[test]
    fn no_way_is_known_by_another_hosts_stamps() {
        assert_eq!(None, Soonest::of_handshake(segment(0, 10, 0), 0));
        // what answered for the sender had its own clock
        let proxy = Soonest::of_handshake(segment(90_000 * MS, 10, 0), WAY_NS).unwrap();
        let ahead = Stamped {
            time_ns: 200 * MS,
            ..segment(90_001 * MS, 0, 0)
        };
        assert_eq!(None, proxy.after(ahead, MS));
    }

    #[test]
    fn a_slow_handshake_is_known_by_what_answers_an_ack_sooner() {
        let handshake = Soonest::of_handshake(segment(0, 10, 0), 3 * WAY_NS).unwrap();
        let sent = segment(2000 * MS, 15, 0);
        let told = handshake.at_most(WAY_NS + 5 * MS, sent, MS).unwrap().told(0, MS);
        assert_eq!(41 * MS, told.came_ns);
        assert_eq!(None, handshake.at_most(3 * MS, sent, MS));
        // one of its packets was late itself
        let late = Soonest::of_handshake(segment(0, 30, 0), WAY_NS + 20 * MS).unwrap();
        let told = late.after(segment(1000 * MS, 10, 0), MS).unwrap().told(0, MS);
        assert_eq!(WAY_NS + MS, told.came_ns);
    }
}
