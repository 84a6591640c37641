//! Which shifts the receiver's window field can have (RFC 7323, 2), where the SYNs do not say.
//!
//! No sender goes beyond the highest right edge advertised, `ack + (window << shift)` (RFC 9293, 3.8.6): data that do
//! show that a shift is too small. The capture point sees every ACK before the data it lets go, wherever it is. No
//! receiver takes back room it has offered (RFC 9293, 3.8.6, but for rounding to the shift): a window that shrinks by
//! more than was acknowledged shows that a shift is too large. Both rules leave a range, since larger shifts reach
//! further; what is against a shift counts when it was seen twice, because a capture can miss an ACK.
//!
//! Not seen: the shift of a window that neither limits nor fills.

use crate::segment::Segment;

/// RFC 7323, 2.3: shifts above 14 are used as 14.
pub const LARGEST: u8 = 14;
const SHIFTS: usize = LARGEST as usize + 1;
/// Times that packets spoke against a shift before it is left out.
const TIMES: u8 = 2;

/// Shifts that are possible: from `low` to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub low: u8,
    pub high: u8,
}

impl Range {
    pub fn known(shift: u8) -> Self {
        Self {
            low: shift,
            high: shift,
        }
    }

    pub fn exact(self) -> Option<u8> {
        (self.low == self.high).then_some(self.low)
    }
}

#[derive(Clone, Debug)]
pub struct WindowScale {
    range: Range,
    /// Highest right edge advertised, for each shift; 0 before the first ACK.
    edges: [u64; SHIFTS],
    passed: [u8; SHIFTS],
    taken_back: [u8; SHIFTS],
    last: Option<(u64, u16)>,
}

impl WindowScale {
    /// `range` is what the SYNs leave open.
    pub fn new(range: Range) -> Self {
        Self {
            range,
            edges: [0; SHIFTS],
            passed: [0; SHIFTS],
            taken_back: [0; SHIFTS],
            last: None,
        }
    }

    pub fn range(&self) -> Range {
        self.range
    }

    /// The receiver acknowledges up to `at` and offers `segment.window`.
    pub fn on_ack(&mut self, at: u64, segment: &Segment) {
        let (last_at, last_window) = self.last.unwrap_or((at, segment.window));
        if at < last_at {
            return; // overtaken on the way
        }
        self.last = Some((at, segment.window));
        let shrunk = u64::from(last_window.saturating_sub(segment.window));
        for shift in self.shifts() {
            let edge = &mut self.edges[shift];
            *edge = (*edge).max(at + (u64::from(segment.window) << shift));
            // a unit is lost where the window is rounded down
            if shrunk > 1 && (shrunk - 1) << shift > at - last_at {
                self.taken_back[shift] = self.taken_back[shift].saturating_add(1);
            }
        }
        while self.range.low < self.range.high && self.taken_back[usize::from(self.range.high)] >= TIMES {
            self.range.high -= 1;
        }
    }

    /// New data up to `right` pass.
    pub fn on_data(&mut self, right: u64) {
        if self.last.is_none() {
            return;
        }
        let low = usize::from(self.range.low);
        if right <= self.edges[low] {
            return;
        }
        for shift in self.shifts().take_while(|&shift| right > self.edges[shift]) {
            self.passed[shift] = self.passed[shift].saturating_add(1);
        }
        while self.range.low < self.range.high && self.passed[usize::from(self.range.low)] >= TIMES {
            self.range.low += 1;
        }
    }

    fn shifts(&self) -> std::ops::RangeInclusive<usize> {
        usize::from(self.range.low)..=usize::from(self.range.high)
    }
}

/// What the SYNs leave open of the shift that the end with SYN `own` uses; both must offer one (RFC 7323, 2.2). The
/// offers are `None` where the SYN was not seen, `Some(None)` where it had no such option.
pub fn offered(own: Option<Option<u8>>, peer: Option<Option<u8>>, own_answers: bool) -> Range {
    match (own, peer) {
        (Some(None), _) | (_, Some(None)) => Range::known(0),
        (Some(Some(shift)), Some(Some(_))) => Range::known(shift),
        // a SYN-ACK has the option only where the SYN had it
        (Some(Some(shift)), None) if own_answers => Range::known(shift),
        (Some(Some(shift)), None) => Range { low: 0, high: shift },
        (None, _) => Range { low: 0, high: LARGEST },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(window: u16) -> Segment {
        Segment {
            window,
            ..Segment::default()
        }
    }

    #[test]
    fn data_beyond_the_edge_and_room_taken_back_leave_one_shift() {
        let mut scale = WindowScale::new(Range { low: 0, high: LARGEST });
        scale.on_ack(1000, &ack(100));
        // 6401 bytes: more than 100 << 6
        scale.on_data(7401);
        scale.on_data(7401);
        assert_eq!(scale.range(), Range { low: 7, high: 14 });
        // 1408 bytes acknowledged, 11 units less twice: 10 units of 256 were more
        scale.on_ack(2408, &ack(89));
        scale.on_ack(3816, &ack(78));
        assert_eq!(scale.range().exact(), Some(7));
    }

    #[test]
    fn syns_leave_open_what_only_one_of_them_says() {
        assert_eq!(offered(Some(Some(7)), None, true), Range::known(7));
        assert_eq!(offered(Some(Some(7)), None, false), Range { low: 0, high: 7 });
        assert_eq!(offered(None, Some(Some(3)), false), Range { low: 0, high: 14 });
        assert_eq!(offered(None, Some(None), true), Range::known(0));
    }
}
