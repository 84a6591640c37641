//! Packets -> segments: one file a layer. No length field is trusted: every read is checked against the bytes at hand.

mod around;
mod ethernet;
mod fragments;
mod ipv4;
mod ipv6;
mod link;
mod options;
mod plain;
mod skip;
mod tcp;
mod tunnel;
mod wlan;

pub use fragments::Decoder;
pub use skip::{Skip, SkipCounts};

use crate::capture::Packet;
use crate::segment::{Direction, Segment};
use around::Around;

/// What the link layer carries.
struct Network<'a> {
    version: Version,
    data: &'a [u8],
    /// Bytes of `data` on the wire, where the link layer says so: devices that pad packets correct it but not IP's length.
    limit: Option<u32>,
    around: Around,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Four,
    Six,
    /// It stands in the first nibble of the header.
    InHeader,
}

impl<'a> Network<'a> {
    fn new(version: Version, data: &'a [u8], around: Around) -> Self {
        Self {
            version,
            data,
            limit: None,
            around,
        }
    }

    /// Version of IP, as far as it is one.
    #[inline]
    fn version(&self) -> Result<Version, Skip> {
        match (self.version, self.data.first()) {
            (Version::InHeader, Some(byte)) => match byte >> 4 {
                4 => Ok(Version::Four),
                6 => Ok(Version::Six),
                _ => Err(Skip::NotIp),
            },
            (Version::InHeader, None) => Err(Skip::TruncatedHeader),
            (known, _) => Ok(known),
        }
    }

    /// What the link layer says of the length is believed where it is less.
    #[inline]
    fn limited(&self, mut datagram: Datagram<'a>) -> Datagram<'a> {
        if let Some(limit) = self.limit {
            let headers = (self.data.len() - datagram.data.len()) as u32;
            datagram.length = datagram.length.min(limit.saturating_sub(headers));
        }
        datagram
    }
}

/// Where a network's datagram stands: what it is the end of, and how long that was on the wire.
#[derive(Clone, Copy)]
struct Place {
    captured: usize,
    on_wire: u32,
}

impl Place {
    #[inline]
    fn of_packet(packet: &Packet<'_>) -> Self {
        let captured = packet.data.len();
        Self {
            captured,
            on_wire: packet.wire_len.max(captured as u32),
        }
    }

    #[inline]
    fn of_datagram(outer: &Datagram<'_>) -> Self {
        Self {
            captured: outer.within().len(),
            on_wire: outer.length,
        }
    }

    /// A header that leaves out its length, as offloading does, means up to the end.
    #[inline]
    fn left(self, data: &[u8]) -> u32 {
        self.on_wire - (self.captured - data.len()) as u32
    }
}

/// What later layers need of the IP header.
struct Datagram<'a> {
    /// As numbers, so that they stay in registers until the segment is written.
    src: u128,
    dst: u128,
    ip_id: Option<u16>,
    ttl: u8,
    ecn: u8,
    protocol: u8,
    /// Bytes after the IP header(s) on the wire, from the IP length; `data` may be shorter (snapshot length) or longer
    /// (Ethernet padding).
    length: u32,
    data: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// What was captured of it; padding of short Ethernet frames lies beyond the IP length.
    #[inline]
    fn within(&self) -> &'a [u8] {
        &self.data[..self.data.len().min(self.length as usize)]
    }
}

/// Which part of a datagram this is (RFC 791, 3.2; RFC 8200, 4.5).
#[derive(Clone, Copy)]
struct Fragment {
    id: u32,
    /// Bytes before it.
    offset: u32,
    more: bool,
}

/// IP protocol numbers.
mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ICMP: u8 = 1;
    pub const IGMP: u8 = 2;
    pub const IPV4: u8 = 4;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const IPV6: u8 = 41;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const GRE: u8 = 47;
    pub const ESP: u8 = 50;
    pub const AUTHENTICATION: u8 = 51;
    pub const ICMPV6: u8 = 58;
    pub const DESTINATION_OPTIONS: u8 = 60;
    pub const SCTP: u8 = 132;
}

/// Decodes one packet on its own; what is no TCP segment is skipped with a reason.
pub fn decode(packet: &Packet<'_>) -> Result<Segment, Skip> {
    let mut segment = Segment::default();
    if !plain::segment(packet, &mut segment) {
        layers(packet, &mut segment)?;
    }
    Ok(segment)
}

/// One layer after the other.
#[inline(never)]
fn layers(packet: &Packet<'_>, segment: &mut Segment) -> Result<(), Skip> {
    let mut direction = packet.direction;
    let network = link::network(packet, &mut direction)?;
    let datagram = whole(&network, Place::of_packet(packet))?;
    if datagram.protocol == protocol::TCP {
        return tcp::inner_segment(packet, direction, &datagram, network.around.identity, segment);
    }
    tunnelled(packet, direction, datagram, network.around, segment)
}

fn whole<'a>(network: &Network<'a>, place: Place) -> Result<Datagram<'a>, Skip> {
    let left = place.left(network.data);
    let datagram = match network.version()? {
        Version::Six => ipv6::datagram(network.data, left)?,
        _ => ipv4::datagram(network.data, left)?,
    };
    Ok(network.limited(datagram))
}

/// A datagram that is no TCP: through tunnels, as deep as `around` allows, to one that is.
fn tunnelled(
    packet: &Packet<'_>,
    direction: Direction,
    mut datagram: Datagram<'_>,
    mut around: Around,
    segment: &mut Segment,
) -> Result<(), Skip> {
    loop {
        let network = tunnel::inside(&datagram, around)?;
        around = network.around;
        datagram = whole(&network, Place::of_datagram(&datagram))?;
        if datagram.protocol == protocol::TCP {
            return tcp::inner_segment(packet, direction, &datagram, around.identity, segment);
        }
    }
}

/// 16 bits in network byte order; the caller has checked the length.
#[inline]
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// 32 bits in network byte order; the caller has checked the length.
#[inline]
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// 64 bits in network byte order; the caller has checked the length.
#[inline]
fn be64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(word)
}

#[cfg(test)]
mod tests;
