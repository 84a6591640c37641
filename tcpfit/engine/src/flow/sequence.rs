//! 64-bit sequence numbers: the 32-bit field unwrapped against the last one seen (RFC 9293, 3.4).

/// Added to every offset, so that data older than the first packet seen stay above zero.
const BIAS: u64 = 1 << 32;

/// Unwraps the sequence numbers of one direction. Offset 0 is the initial sequence number, the first data byte is 1.
#[derive(Clone, Copy, Debug)]
pub struct Unwrap {
    isn: u32,
    last: u64,
}

impl Unwrap {
    pub fn new(isn: u32) -> Self {
        Self { isn, last: BIAS }
    }

    pub fn isn(&self) -> u32 {
        self.isn
    }

    /// Nearest 64-bit number to the last one; the last one moves on only forwards.
    pub fn advance(&mut self, seq: u32) -> u64 {
        let at = self.near(seq);
        self.last = self.last.max(at);
        at
    }

    pub fn near(&self, seq: u32) -> u64 {
        let last = self.isn.wrapping_add((self.last - BIAS) as u32);
        self.last.wrapping_add_signed(i64::from(seq.wrapping_sub(last) as i32))
    }
}

/// An offset as users see it: bytes from the initial sequence number.
pub fn offset(at: u64) -> u64 {
    at.saturating_sub(BIAS)
}

/// a < b for 32-bit counters that wrap (RFC 7323, 5.2).
pub fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwraps_across_the_end_and_keeps_older_data_apart() {
        let mut u = Unwrap::new(u32::MAX - 10);
        assert_eq!(offset(u.advance(u32::MAX - 10)), 0);
        assert_eq!(offset(u.advance(5)), 16);
        assert_eq!(offset(u.near(u32::MAX)), 10);
        assert_eq!(u.near(u32::MAX - 11), BIAS - 1);
    }

    #[test]
    fn follows_more_than_four_gigabytes() {
        let mut u = Unwrap::new(7);
        let mut seq = 7u32;
        for _ in 0..9 {
            seq = seq.wrapping_add(1 << 30);
            u.advance(seq);
        }
        assert_eq!(offset(u.near(seq)), 9 << 30);
    }
}
