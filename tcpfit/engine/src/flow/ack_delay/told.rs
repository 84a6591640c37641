//! How the way of an ACK was told, with timestamps.

/// The segment that told the way of an ACK, as it passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stamped {
    pub(super) tsval: u32,
    pub(super) time_ns: i64,
}

impl Stamped {
    /// How much longer another was under way than this one. A stamp is up to a tick old when its segment is sent.
    pub(super) fn longer_ns(self, other: Self, tick_ns: i64) -> i64 {
        let ticks = i64::from(other.tsval.wrapping_sub(self.tsval) as i32);
        other.time_ns - self.time_ns - ticks * tick_ns
    }
}

/// How an ACK's way was told, on the sender's own clock too.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    pub(super) by: Stamped,
    pub(super) tick_ns: i64,
    /// By so much less than it seems a segment was longer under way, and up to so much more or less is nothing.
    pub(super) seems_ns: i64,
    pub(super) open_ns: i64,
    /// None was sooner than the one that told it.
    pub(super) soonest: bool,
    /// When the ACK came if its way was the same. It came sooner where the data before it were still in a queue.
    pub came_ns: i64,
}

impl Told {
    /// By a segment that an ACK let go, which came at `came_ns` if its way was the same.
    pub(super) fn by_answer(by: Stamped, tick_ns: i64, came_ns: i64) -> Self {
        Self {
            by,
            tick_ns,
            seems_ns: 0,
            open_ns: 2 * tick_ns,
            soonest: false,
            came_ns,
        }
    }

    /// How much longer a segment was under way to the capture point than the one that told the way: the sender sent both
    /// when their stamps say. Within two ticks 0, within one from the soonest of all.
    pub fn longer_ns(&self, tsval: u32, time_ns: i64) -> i64 {
        let longer_ns = self.by.longer_ns(Stamped { tsval, time_ns }, self.tick_ns) - self.seems_ns;
        if longer_ns.abs() <= self.open_ns || self.soonest && longer_ns < 0 {
            0
        } else {
            longer_ns
        }
    }
}
