//! Where on the path the capture was taken: the share of the round trip between the capture point and each end.
//!
//! The handshake says it best: SYN to SYN-ACK is the server's half, SYN-ACK to the client's next packet the client's.
//! Without a handshake another connection of the same host has told it, or the first packets are held back until they do.

use crate::rows::Vantage;

mod first_packets;

pub use first_packets::from_packets;

/// Below this share of the round trip an end counts as being at the capture point.
const AT_END: f64 = 0.05;
/// Half as short as this, and below such a share of the round trip, is the host itself.
pub const HOST_S: f64 = 0.0003;
const HOST_SHARE: f64 = 0.1;
/// A host takes no longer than this to answer itself; in a LAN that is much of the round trip.
const STACK_S: f64 = 0.0001;
/// A receiver farther away than this has a link before it that can lose what passed the capture point.
const LAST_HOP_S: f64 = 0.001;
/// A whole round trip as short as this is one machine talking to itself, if its halves are alike; on a LAN one of them is the
/// capturing host's own.
const LOOPBACK_S: f64 = 0.0002;
/// The shorter of two halves that are alike has at least this share of the whole.
const ALIKE: f64 = 0.3;

/// Nothing but a host at the capture point answers within `HOST_S` on a path with such a round trip.
pub fn tells_host(round_trip_s: f64) -> bool {
    HOST_S < HOST_SHARE * round_trip_s
}

/// The capture point relative to the two ends, end 0 being the one that sent the connection's first packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Round trip capture point -> end -> capture point, in seconds; `None` where not known.
    pub halves_s: [Option<f64>; 2],
    pub confidence: f64,
    /// The end at the capture point, where only that is known.
    pub local: Option<usize>,
    /// A half may be longer: what was answered had been sent twice.
    pub doubtful: bool,
}

impl Position {
    pub const UNKNOWN: Position = Position {
        halves_s: [None, None],
        confidence: 0.0,
        local: None,
        doubtful: false,
    };

    pub fn from_halves(first: f64, second: f64) -> Self {
        let total = first + second;
        let share = if total > 0.0 { first.min(second) / total } else { 0.5 };
        let confidence = if total < LOOPBACK_S {
            0.5
        } else if share < AT_END {
            0.98
        } else {
            0.8
        };
        Self {
            halves_s: [Some(first.max(0.0)), Some(second.max(0.0))],
            confidence,
            ..Self::UNKNOWN
        }
    }

    /// The halves are the shortest that there can have been: likely ones, but no round trip (Karn).
    pub fn in_doubt(self) -> Self {
        Self {
            confidence: self.confidence.min(0.8),
            doubtful: true,
            ..self
        }
    }

    pub fn at(end: usize, confidence: f64) -> Self {
        Self {
            confidence,
            local: Some(end),
            ..Self::UNKNOWN
        }
    }

    /// Only how long `end` took to answer is known.
    pub fn of_answer(end: usize, half_s: f64) -> Self {
        let mut position = Self::UNKNOWN;
        if half_s < HOST_S {
            position = Self::at(end, 0.8);
        }
        position.halves_s[end] = Some(half_s.max(0.0));
        position
    }

    /// Share of the round trip between the capture point and `end`.
    pub fn fraction(&self, end: usize) -> Option<f64> {
        if let [Some(a), Some(b)] = self.halves_s {
            let total = a + b;
            // where both ends are one host neither half is the path's
            if total >= LOOPBACK_S || a.min(b) < ALIKE * total {
                return Some(if end == 0 { a / total } else { b / total });
            }
            return Some(0.0);
        }
        self.local.map(|local| if local == end { 0.0 } else { 1.0 })
    }

    /// Vantage of the flow whose data sender is `end`.
    pub fn vantage(&self, end: usize) -> Vantage {
        let Some(fraction) = self.fraction(end) else {
            return Vantage::Unknown;
        };
        let near = |half: Option<f64>, share: f64| {
            half.is_some_and(|s| s < HOST_S && share < HOST_SHARE || s < STACK_S && share < 0.3)
        };
        if fraction < AT_END || near(self.halves_s[end], fraction) {
            Vantage::Sender
        } else if fraction > 1.0 - AT_END && self.halves_s[1 - end].is_none_or(|s| s < LAST_HOP_S)
            || near(self.halves_s[1 - end], 1.0 - fraction)
        {
            Vantage::Receiver
        } else {
            Vantage::Middle
        }
    }

    /// From where the flow of `end` is followed: where the capture was taken, but on the path too where that is a little away from
    /// the sender and the segments' echoes tell which ACKs have reached it (RFC 7323, 4.3). What passes may be under way yet
    /// when the sender answers what came before.
    pub fn standpoint(&self, end: usize, timestamps: bool) -> Vantage {
        match self.vantage(end) {
            Vantage::Sender if timestamps && self.is_apart(end) => Vantage::Middle,
            vantage => vantage,
        }
    }

    /// Where it was captured then: only ACKs that were answered `late` show that the handshake was not.
    #[inline]
    pub fn place(&self, end: usize, standpoint: Vantage, late: impl FnOnce() -> bool) -> Vantage {
        match standpoint {
            Vantage::Middle if !late() => self.vantage(end),
            _ => standpoint,
        }
    }

    /// The end answered the handshake later than a host at the capture point does.
    fn is_apart(&self, end: usize) -> bool {
        !self.doubtful && self.halves_s[end].is_some_and(|s| s >= HOST_S)
    }

    /// The end that is the capturing host, if one is.
    pub fn local_end(&self) -> Option<usize> {
        (0..2).find(|&end| self.vantage(end) == Vantage::Sender && self.confidence > 0.7)
    }

    pub fn round_trip_s(&self) -> Option<f64> {
        if self.doubtful {
            return None;
        }
        Some(self.halves_s[0]? + self.halves_s[1]?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handshake_halves_tell_the_end() {
        let at_client = Position::from_halves(0.00005, 0.05);
        assert_eq!(
            (at_client.vantage(0), at_client.vantage(1)),
            (Vantage::Sender, Vantage::Receiver)
        );
        assert_eq!(at_client.local_end(), Some(0));
        let middle = Position::from_halves(0.02, 0.03);
        assert_eq!(
            (middle.vantage(0), middle.vantage(1)),
            (Vantage::Middle, Vantage::Middle)
        );
        assert!((middle.fraction(0).unwrap() - 0.4).abs() < 1e-12);
        assert_eq!(Position::UNKNOWN.vantage(0), Vantage::Unknown);
    }

    #[test]
    fn where_one_end_has_answered_late_the_other_says_whether_it_captures() {
        let at_server = Position::of_answer(1, 0.00005);
        assert_eq!(
            (Vantage::Receiver, Vantage::Sender),
            (at_server.vantage(0), at_server.vantage(1))
        );
        assert_eq!((Some(1), None), (at_server.local_end(), at_server.round_trip_s()));
        let elsewhere = Position::of_answer(1, 0.05);
        assert_eq!([Vantage::Unknown; 2], [0, 1].map(|end| elsewhere.vantage(end)));
    }

    #[test]
    fn an_end_is_near_by_its_share_or_as_the_host_itself() {
        let of = |first_s, second_s| Position::from_halves(first_s, second_s).vantage(0);
        // a twentieth of the round trip
        assert_eq!(
            [of(0.0049, 0.0951), of(0.0051, 0.0949)],
            [Vantage::Sender, Vantage::Middle]
        );
        assert_eq!(
            [of(0.0191, 0.0009), of(0.0169, 0.0009)],
            [Vantage::Receiver, Vantage::Middle]
        );
        // a last hop of 2 ms can lose what has passed
        assert_eq!(of(0.098, 0.002), Vantage::Middle);
        // a host answers in 0.3 ms, if that is below a tenth
        assert_eq!(
            [of(0.00029, 0.0031), of(0.00031, 0.0031)],
            [Vantage::Sender, Vantage::Middle]
        );
        assert_eq!(
            [of(0.00029, 0.0025), of(0.0025, 0.00029)],
            [Vantage::Middle, Vantage::Middle]
        );
        assert_eq!(of(0.0031, 0.00029), Vantage::Receiver);
        // in a LAN the host itself may take a quarter of it
        assert_eq!(
            [of(0.00009, 0.00027), of(0.00027, 0.00009), of(0.00011, 0.00033)],
            [Vantage::Sender, Vantage::Receiver, Vantage::Middle]
        );
    }
}
