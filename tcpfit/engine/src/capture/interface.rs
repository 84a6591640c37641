//! A pcapng interface: link type, clock and drop counters.

pub struct Interface {
    pub link_type: u32,
    /// 0 for no limit.
    pub snap_len: u32,
    clock: Clock,
    offset_ns: i64,
    /// From an interface statistics block: the total at its time.
    reported_drops: Option<u64>,
    /// Added up from packets' own counters.
    counted_drops: Option<u64>,
}

/// How ticks become nanoseconds (`if_tsresol`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Multiply(u64),
    Divide(u64),
    /// Ticks of 2^-n seconds.
    Binary(u32),
    /// Finer than a nanosecond can tell: 64 bits of ticks are under 1 ns.
    Nothing,
}

impl Interface {
    pub fn new(link_type: u32, snap_len: u32) -> Self {
        // microseconds unless if_tsresol says otherwise
        let clock = Clock::Multiply(1000);
        Self {
            link_type,
            snap_len,
            clock,
            offset_ns: 0,
            reported_drops: None,
            counted_drops: None,
        }
    }

    /// `if_tsresol`: a negative power of 10, or of 2 where the top bit is set.
    pub fn set_resolution(&mut self, resolution: u8) {
        let exponent = u32::from(resolution & 0x7f);
        self.clock = match (resolution & 0x80 != 0, exponent) {
            (true, 0..=94) => Clock::Binary(exponent),
            (false, 0..=9) => Clock::Multiply(10u64.pow(9 - exponent)),
            (false, 10..=28) => Clock::Divide(10u64.pow(exponent - 9)),
            _ => Clock::Nothing,
        };
    }

    /// `if_tsoffset`: seconds to add.
    pub fn set_offset(&mut self, seconds: i64) {
        self.offset_ns = seconds.saturating_mul(1_000_000_000);
    }

    /// Where packets are read only what clocks of whole nanoseconds take is compiled in, and times that 64 bits can tell.
    #[inline(always)]
    pub fn time_ns(&self, ticks: u64) -> i64 {
        let usual = match self.clock {
            Clock::Multiply(factor) => ticks
                .checked_mul(factor)
                .and_then(|since| i64::try_from(since).ok())
                .and_then(|since| since.checked_add(self.offset_ns)),
            _ => None,
        };
        usual.unwrap_or_else(|| self.bounded_time_ns(ticks))
    }

    /// By whatever clock; a time that 64 bits cannot tell is the nearest that they can.
    #[inline(never)]
    fn bounded_time_ns(&self, ticks: u64) -> i64 {
        let since = match self.clock {
            Clock::Multiply(factor) => ticks.saturating_mul(factor),
            Clock::Divide(divisor) => ticks / divisor,
            Clock::Binary(shift) => u64::try_from((u128::from(ticks) * 1_000_000_000) >> shift).unwrap_or(u64::MAX),
            Clock::Nothing => 0,
        };
        i64::try_from(since).unwrap_or(i64::MAX).saturating_add(self.offset_ns)
    }

    pub fn report_dropped(&mut self, total: u64) {
        self.reported_drops = Some(total);
    }

    pub fn count_dropped(&mut self, more: u64) {
        self.counted_drops = Some(self.counted_drops.unwrap_or(0).saturating_add(more));
    }

    /// The interface's own total where it gives one, else the packets' sum.
    pub fn dropped(&self) -> Option<u64> {
        self.reported_drops.or(self.counted_drops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(resolution: u8, ticks: u64) -> i64 {
        let mut interface = Interface::new(1, 0);
        interface.set_resolution(resolution);
        interface.time_ns(ticks)
    }

    #[test]
    fn resolutions_of_both_powers() {
        assert_eq!(1_500_000_000, Interface::new(1, 0).time_ns(1_500_000));
        assert_eq!(7_000_000_000, time(0, 7));
        assert_eq!(1_500_000_000, time(9, 1_500_000_000));
        assert_eq!(1_500_000_000, time(12, 1_500_000_000_000));
        assert_eq!(1_500_000_000, time(0x80 | 10, 1536));
        assert_eq!(999_999_999, time(0x80 | 32, (1 << 32) - 1));
    }

    #[test]
    fn times_of_every_clock_are_bounded() {
        for resolution in 0..=255 {
            let mut interface = Interface::new(1, 0);
            interface.set_resolution(resolution);
            for seconds in [0, 2, -2, i64::MAX, i64::MIN] {
                interface.set_offset(seconds);
                for ticks in (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1, u64::MAX >> bit]) {
                    assert_eq!(interface.bounded_time_ns(ticks), interface.time_ns(ticks));
                }
            }
        }
    }

    #[test]
    fn offset_is_added_in_seconds() {
        let mut interface = Interface::new(1, 0);
        interface.set_offset(-2);
        assert_eq!(-1_000_000_000, interface.time_ns(1_000_000));
        interface.set_offset(i64::MAX);
        assert_eq!(i64::MAX, interface.time_ns(u64::MAX));
    }
}
