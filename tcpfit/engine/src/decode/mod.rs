//! Packets -> segments: one file a layer. No length field is trusted: every read is checked against the bytes at hand.

mod ethernet;
mod ipv4;
mod ipv6;
mod link;
mod options;
mod skip;
mod tcp;

pub use skip::{Skip, SkipCounts};

use crate::capture::Packet;
use crate::segment::Segment;

/// What the link layer carries.
struct Network<'a> {
    version: Version,
    data: &'a [u8],
    /// Bytes of `data` on the wire, where the link layer says so: devices that pad packets correct it but not IP's length.
    limit: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Four,
    Six,
    /// It stands in the first nibble of the header.
    InHeader,
}

impl<'a> Network<'a> {
    fn new(version: Version, data: &'a [u8]) -> Self {
        Self {
            version,
            data,
            limit: None,
        }
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

/// IP protocol numbers.
mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ICMP: u8 = 1;
    pub const IGMP: u8 = 2;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const ESP: u8 = 50;
    pub const AUTHENTICATION: u8 = 51;
    pub const ICMPV6: u8 = 58;
    pub const DESTINATION_OPTIONS: u8 = 60;
    pub const SCTP: u8 = 132;
}

/// Decodes one packet; what is no TCP segment is skipped with a reason.
pub fn decode(packet: &Packet<'_>) -> Result<Segment, Skip> {
    let mut segment = Segment::default();
    decode_into(packet, &mut segment)?;
    Ok(segment)
}

/// As `decode`, into a segment that is used again: moving one just written costs as much as decoding it, for the
/// processor cannot forward many small stores to the wide loads of a copy. After `Err` the segment is meaningless.
#[inline]
pub fn decode_into(packet: &Packet<'_>, segment: &mut Segment) -> Result<(), Skip> {
    let mut direction = packet.direction;
    let network = link::network(packet, &mut direction)?;
    let data = network.data;
    let captured = packet.data.len();
    // a header that leaves out its length, as offloading does, means up to the end of the frame
    let on_wire = packet.wire_len.max(captured as u32) - (captured - data.len()) as u32;
    let version = match (network.version, data.first()) {
        (Version::InHeader, Some(byte)) if byte >> 4 == 4 => Version::Four,
        (Version::InHeader, Some(byte)) if byte >> 4 == 6 => Version::Six,
        (known, _) => known,
    };
    let mut datagram = match version {
        Version::Four => ipv4::datagram(data, on_wire)?,
        Version::Six => ipv6::datagram(data, on_wire)?,
        Version::InHeader if data.is_empty() => return Err(Skip::TruncatedHeader),
        Version::InHeader => return Err(Skip::NotIp),
    };
    if let Some(limit) = network.limit {
        let headers = (data.len() - datagram.data.len()) as u32;
        datagram.length = datagram.length.min(limit.saturating_sub(headers));
    }
    match datagram.protocol {
        protocol::TCP => tcp::segment(packet, direction, &datagram, segment),
        other => Err(Skip::of_protocol(other)),
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

#[cfg(test)]
mod tests;
