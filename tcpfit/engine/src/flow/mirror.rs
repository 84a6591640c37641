//! Captures that have every packet twice: a mirror port that copies what comes and what goes, or two interfaces.
//!
//! That a host's own packets come twice where it captures cannot be the path's doing. Then the other end's are looked at
//! too: an ACK that is there twice was sent once, and a second one would stand for data that arrived out of order.

use crate::segment::Segment;

/// Packets of an end that are remembered, and for how long: a mirror port of a busy switch has others in between.
const REMEMBERED: usize = 64;
const BEHIND_NS: i64 = 10_000_000;

/// What a packet has in common with its copy, and hardly with another. Where the card fills in checksums, packets of one length
/// have the same: their numbers tell them apart. A true checksum falls as these grow; the factor (of the golden ratio) keeps
/// the one from making up for the other.
#[inline]
pub fn print(segment: &Segment) -> u32 {
    let numbers = segment.seq.wrapping_mul(0x9e37_79b1).wrapping_add(segment.ack);
    numbers.wrapping_mul(0x9e37_79b1) ^ u32::from(segment.checksum)
}

#[derive(Clone, Copy, Default)]
struct Seen {
    time_ns: i64,
    ip_id: u16,
    print: u32,
    /// Its copy has come.
    copied: bool,
}

/// The last packets of an end.
pub struct Mirror {
    seen: [Seen; REMEMBERED],
    next: usize,
}

impl Default for Mirror {
    fn default() -> Self {
        Self {
            seen: [Seen::default(); REMEMBERED],
            next: 0,
        }
    }
}

impl Mirror {
    /// The packet is a copy of one before. Without an identification an answer to each of two segments looks the same:
    /// then of two in a row one is a copy.
    pub fn has_seen(&mut self, segment: &Segment) -> bool {
        let ip_id = segment.ip_id.unwrap_or(0);
        let before = self.seen.iter_mut().find(|seen| {
            (seen.ip_id, seen.print) == (ip_id, print(segment))
                && (ip_id != 0 || !seen.copied)
                && (0..BEHIND_NS).contains(&(segment.time_ns - seen.time_ns))
        });
        if let Some(before) = before {
            before.copied = true;
            return true;
        }
        self.seen[self.next % REMEMBERED] = Seen {
            time_ns: segment.time_ns,
            ip_id,
            print: print(segment),
            copied: false,
        };
        self.next += 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_has_its_copies() {
        let packet = |time_ns, id: u16, checksum| Segment {
            time_ns,
            ip_id: (id != 0).then_some(id),
            checksum,
            ..Segment::default()
        };
        let mut mirror = Mirror::default();
        let mut has_seen = |time_ns, id, checksum| mirror.has_seen(&packet(time_ns, id, checksum));
        assert!(!has_seen(BEHIND_NS, 1, 7));
        assert!(!has_seen(BEHIND_NS + 1, 2, 7));
        assert!(has_seen(BEHIND_NS + 2, 1, 7));
        assert!(has_seen(BEHIND_NS + 3, 2, 7));
        assert!(has_seen(BEHIND_NS + 4, 1, 7));
        // the same number with other contents, or much later, is another packet
        assert!(!has_seen(BEHIND_NS + 5, 1, 8));
        assert!(!has_seen(3 * BEHIND_NS, 2, 7));
        // without numbers two of a kind are a packet and its copy, and two more are so again
        let unnumbered = [4, 4, 4, 4, 5].map(|checksum| has_seen(4 * BEHIND_NS, 0, checksum));
        assert_eq!(unnumbered, [false, true, false, true, false]);
    }
}
