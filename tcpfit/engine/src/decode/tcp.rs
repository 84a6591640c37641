//! The TCP header (RFC 9293, 3.1).

use super::{be16, be32, options, Datagram, Skip};
use crate::capture::Packet;
use crate::segment::{Direction, Segment};

const SMALLEST: usize = 20;

/// What must have been captured: up to the window. The checksum may be cut off.
const NEEDED: usize = 16;

#[inline(always)] // once, where most packets go; elsewhere `inner_segment`
pub(super) fn segment(
    packet: &Packet<'_>,
    direction: Direction,
    datagram: &Datagram<'_>,
    around: u32,
    segment: &mut Segment,
) -> Result<(), Skip> {
    let data = datagram.within();
    if (datagram.length as usize) < SMALLEST {
        return Err(Skip::BadTcpHeader);
    }
    let header = data.get(..NEEDED).ok_or(Skip::TruncatedHeader)?;
    let offset_and_flags = be16(header, 12);
    let header_length = usize::from(offset_and_flags >> 12) * 4;
    if header_length < SMALLEST {
        return Err(Skip::BadTcpHeader);
    }
    let Some(payload) = datagram.length.checked_sub(header_length as u32) else {
        return Err(Skip::BadTcpHeader);
    };
    segment.frame = packet.frame;
    segment.time_ns = packet.time_ns;
    segment.src = datagram.src.to_be_bytes();
    segment.dst = datagram.dst.to_be_bytes();
    segment.sport = be16(header, 0);
    segment.dport = be16(header, 2);
    segment.seq = be32(header, 4);
    segment.ack = be32(header, 8);
    segment.flags = offset_and_flags & 0x1ff;
    segment.window = be16(header, 14);
    segment.payload = payload;
    segment.wire_bytes = packet.wire_len;
    segment.ip_id = datagram.ip_id;
    segment.ttl = datagram.ttl;
    segment.ecn = datagram.ecn;
    segment.checksum = data.get(16..18).map_or(0, |field| be16(field, 0));
    segment.direction = direction;
    segment.around = around;
    let options = data.get(SMALLEST..).unwrap_or_default();
    options::parse(options, header_length - SMALLEST, &mut segment.options);
    Ok(())
}

/// As `segment`, where tunnels and fragments lead.
#[inline(never)]
pub(super) fn inner_segment(
    packet: &Packet<'_>,
    direction: Direction,
    datagram: &Datagram<'_>,
    around: u32,
    into: &mut Segment,
) -> Result<(), Skip> {
    segment(packet, direction, datagram, around, into)
}
