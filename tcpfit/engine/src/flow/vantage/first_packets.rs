//! The capture point of a connection whose handshake is not in the capture, from its first packets.
//!
//! What passes between a packet and its answer is the path's, but also the answering host's: it may hold an ACK back, and its
//! application may think. Such a time bounds its half of the round trip from above, and only where the host has shown that
//! it answers at once is it that half. A bound is enough to say that an end is near, not that it is far.
//!
//! Besides, packets carry what tells where they have been: a checksum that the network card has still to compute, a time
//! to live from which no router has taken anything, the direction that some capture formats note.

use super::{Position, HOST_S};
use crate::flow::sequence::before;
use crate::segment::{flags, Address, Direction, Segment};

/// ACKs are held back by a timer for so long at least: 40 ms on Linux, more elsewhere (RFC 1122, 4.2.3.2 allows 500).
const DELAYED_ACK_S: f64 = 0.038;
/// Times to live with which hosts send.
const INITIAL_TTLS: [u8; 3] = [64, 128, 255];
/// Packets of an end that say something of it, at least.
const WITNESSES: u32 = 2;

/// Time from the packets of an end to the other's answers, at least.
#[derive(Clone, Copy, Default)]
struct Half {
    /// By all answers: the half is not longer.
    bound_s: Option<f64>,
    /// Some of them came at once: the half is the bound.
    prompt: bool,
}

impl Half {
    fn add(&mut self, took_ns: i64, prompt: impl FnOnce(f64) -> bool) {
        let took_s = took_ns.max(0) as f64 / 1e9;
        self.bound_s = Some(self.bound_s.map_or(took_s, |bound_s| bound_s.min(took_s)));
        self.prompt |= prompt(took_s);
    }

    fn known_s(&self) -> Option<f64> {
        self.bound_s.filter(|_| self.prompt)
    }
}

/// Position from the first packets of a connection, each with the end that sent it.
pub fn from_packets(packets: &[(usize, Segment)]) -> Position {
    if packets.iter().any(|(_, segment)| segment.src == segment.dst) {
        // one machine talks to itself
        return Position::from_halves(0.0, 0.0);
    }
    let halves = halves(packets);
    // a checksum not yet computed has not left its host
    if let Some(end) = unfinished(packets) {
        return at(end, 0.95, halves);
    }
    if let [Some(a), Some(b)] = halves.map(|half| half.known_s()) {
        return Position {
            confidence: 0.6,
            ..Position::from_halves(a, b)
        };
    }
    match (directed(packets), beside(packets)) {
        (Some(end), None) => at(end, 0.95, halves),
        (directed, Some(end)) if directed.is_none_or(|other| other == end) => at(end, 0.8, halves),
        _ => from_bounds(halves),
    }
}

/// The capture was taken at the end; what is known of the other's half is the whole round trip.
fn at(end: usize, confidence: f64, halves: [Half; 2]) -> Position {
    let mut halves_s = [None, None];
    if let Some(other_s) = halves[1 - end].known_s() {
        halves_s[end] = Some(0.0);
        halves_s[1 - end] = Some(other_s);
    }
    Position {
        halves_s,
        ..Position::at(end, confidence)
    }
}

/// Where at most one half is known, an end is near if even its bound is short.
fn from_bounds(halves: [Half; 2]) -> Position {
    let known_s = halves.map(|half| half.known_s());
    for end in 0..2 {
        if let (Some(bound_s), Some(other_s)) = (halves[end].bound_s, known_s[1 - end]) {
            let mut halves_s = [bound_s; 2];
            halves_s[1 - end] = other_s;
            let position = Position::from_halves(halves_s[0], halves_s[1]);
            if position.fraction(end).is_some_and(|share| share < super::AT_END) {
                return Position {
                    confidence: 0.6,
                    ..position
                };
            }
        }
    }
    let host = |half: Half| half.bound_s.is_some_and(|s| s < HOST_S);
    let local = match halves.map(host) {
        [true, false] => Position::at(0, 0.6),
        [false, true] => Position::at(1, 0.6),
        _ => Position::UNKNOWN,
    };
    Position {
        halves_s: if local.local.is_none() { known_s } else { [None, None] },
        ..local
    }
}

/// The half of each end.
fn halves(packets: &[(usize, Segment)]) -> [Half; 2] {
    let mut halves = [Half::default(); 2];
    let full = [0, 1].map(|end| {
        let sizes = packets.iter().filter(|packet| packet.0 == end);
        sizes.map(|packet| packet.1.payload).max().unwrap_or(0)
    });
    // sequence number behind the newest data of each end
    let mut newest = [None; 2];
    for (i, &(end, ref segment)) in packets.iter().enumerate() {
        let half = &mut halves[1 - end];
        // data -> ACK, of data sent once (Karn)
        let edge = segment.seq.wrapping_add(segment.seq_len());
        if segment.payload > 0 && newest[end].is_none_or(|newest| before(newest, edge)) {
            newest[end] = Some(edge);
            let answer = answer(packets, i, |s| s.has(flags::ACK) && !before(s.ack, edge));
            if let Some((j, s)) = answer.filter(|(_, s)| s.ack == edge) {
                half.add(s.time_ns - segment.time_ns, |took_s| {
                    let covers_two = || acknowledged(packets, j) >= full[end].saturating_mul(2);
                    s.payload == 0 && (took_s < DELAYED_ACK_S || covers_two())
                });
            }
        }
        // TSval -> its first echo, of what is the first to carry it
        let Some((tsval, _)) = segment.options.timestamps else {
            continue;
        };
        let earlier = packets[..i].iter().rev().find(|packet| packet.0 == end);
        let Some((earlier, _)) = earlier
            .and_then(|(_, s)| s.options.timestamps)
            .filter(|&(old, _)| old != tsval)
        else {
            continue;
        };
        let echoes = |s: &Segment, tsval| s.options.timestamps.is_some_and(|(_, tsecr)| tsecr == tsval);
        if let Some((j, s)) = answer(packets, i, |s| echoes(s, tsval)) {
            let streams = || {
                let echoed = packets[..j].iter().any(|(from, s)| *from != end && echoes(s, earlier));
                echoed && is_under_way(packets, j)
            };
            half.add(s.time_ns - segment.time_ns, |took_s| {
                match (segment.payload, s.payload) {
                    // an ACK
                    (1.., 0) => took_s < DELAYED_ACK_S,
                    // data that go out whenever ACKs come
                    (_, 1..) => streams(),
                    _ => false,
                }
            });
        }
    }
    halves
}

/// The first packet of the other end after this one that is such an answer, and its place.
fn answer(
    packets: &[(usize, Segment)],
    place: usize,
    is_answer: impl Fn(&Segment) -> bool,
) -> Option<(usize, &Segment)> {
    let end = packets[place].0;
    let later = packets.iter().enumerate().skip(place + 1);
    let of_other = later.filter(|(_, (from, _))| *from != end);
    of_other.map(|(j, (_, s))| (j, s)).find(|(_, s)| is_answer(s))
}

/// Bytes that the packet there acknowledges and none of its end before it did.
fn acknowledged(packets: &[(usize, Segment)], place: usize) -> u32 {
    let (end, ref segment) = packets[place];
    let before = packets[..place]
        .iter()
        .rev()
        .find(|(from, s)| *from == end && s.has(flags::ACK));
    before.map_or(0, |(_, s)| segment.ack.wrapping_sub(s.ack))
}

/// When the packet there was sent, data of its end were under way: its application does not wait for anything.
fn is_under_way(packets: &[(usize, Segment)], place: usize) -> bool {
    let end = packets[place].0;
    let passed = || packets[..place].iter().rev();
    let sent = passed().find(|(from, s)| *from == end && s.payload > 0);
    let heard = passed().find(|(from, s)| *from != end && s.has(flags::ACK));
    sent.zip(heard)
        .is_some_and(|((_, sent), (_, heard))| before(heard.ack, sent.seq.wrapping_add(sent.payload)))
}

/// The end whose packets pass without their checksum, if the other's have theirs: where the network card computes it, what is
/// captured on the way to it has the sum of the pseudo-header in its place.
fn unfinished(packets: &[(usize, Segment)]) -> Option<usize> {
    let (mut all, mut bare) = ([0; 2], [0; 2]);
    for &(end, ref segment) in packets.iter().filter(|packet| !packet.1.has(flags::SYN)) {
        all[end] += 1;
        bare[end] += u32::from(segment.checksum == pseudo_header_sum(segment));
    }
    (0..2).find(|&end| {
        bare[end] >= WITNESSES && bare[end] * 2 > all[end] && all[1 - end] >= WITNESSES && bare[1 - end] == 0
    })
}

/// Sum of the pseudo-header (RFC 9293, 3.1; RFC 8200, 8.1), its options those that are known, padded to words.
fn pseudo_header_sum(segment: &Segment) -> u16 {
    let options = &segment.options;
    let timestamps = if options.timestamps.is_some() { 12 } else { 0 };
    let sack = match options.sack_len {
        0 => 0,
        blocks => 4 + 8 * u32::from(blocks),
    };
    const HEADER: u32 = 20;
    const PROTOCOL: u32 = 6;
    let length = HEADER + timestamps + sack + segment.payload;
    let words = |address: &Address| -> u32 {
        let words = address.as_chunks::<2>().0;
        words.iter().map(|&word| u32::from(u16::from_be_bytes(word))).sum()
    };
    // what maps IPv4 addresses adds nothing to a sum of ones' complements
    let mut sum = words(&segment.src) + words(&segment.dst) + PROTOCOL + (length >> 16) + (length & 0xffff);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// The end whose packets go out and the other's come in, where the capture says so.
fn directed(packets: &[(usize, Segment)]) -> Option<usize> {
    let mut local = [0u32; 2];
    for &(end, ref segment) in packets {
        match segment.direction {
            Direction::Outbound => local[end] += 1,
            Direction::Inbound => local[1 - end] += 1,
            Direction::Unknown => {}
        }
    }
    (local[0] != local[1]).then(|| usize::from(local[1] > local[0]))
}

/// The end whose packets no router has passed on, if all of the other's have come through one (RFC 9293 leaves the time to
/// live to IP; RFC 1812, 5.3.1: each router takes one). Within a tunnel it says nothing: the outer path may be long.
fn beside(packets: &[(usize, Segment)]) -> Option<usize> {
    let (mut fresh, mut aged) = ([0; 2], [0; 2]);
    for &(end, ref segment) in packets.iter().filter(|packet| !packet.1.has(flags::RST)) {
        if segment.around != 0 || segment.ttl == 0 {
            return None;
        }
        let initial = INITIAL_TTLS.contains(&segment.ttl);
        fresh[end] += u32::from(initial);
        aged[end] += u32::from(!initial);
    }
    (0..2).find(|&end| fresh[end] >= WITNESSES && aged[end] == 0 && aged[1 - end] >= WITNESSES && fresh[1 - end] == 0)
}
