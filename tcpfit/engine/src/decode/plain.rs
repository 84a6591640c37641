//! What most packets are: Ethernet, IPv4 without options, in one piece, TCP with timestamps and no other option. All of it is
//! at fixed places, so one look decides, and nothing is measured again on the way. The layers give the same for these
//! packets, in three times the instructions; everything else is theirs.

use super::{be16, be32, ipv4, protocol};
use crate::capture::{link_type, Packet};
use crate::segment::{Options, Segment};

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const TCP: usize = 32;

/// Version 4, five words.
const VERSION_AND_LENGTH: u8 = 0x45;
const ETHER_TYPE: u16 = 0x0800;
/// A fragment's place, and that more follow.
const FRAGMENT: u16 = 0x3fff;
/// No operation twice, timestamps, ten bytes (RFC 7323, appendix A).
const TIMESTAMPS: u32 = 0x0101_080a;

/// Decodes the packet if it is such a one.
#[inline(always)]
pub(super) fn segment(packet: &Packet<'_>, segment: &mut Segment) -> bool {
    let Some((headers, _)) = packet.data.split_first_chunk::<{ ETHERNET + IPV4 + TCP }>() else {
        return false;
    };
    let ip = &headers[ETHERNET..];
    let tcp = &ip[IPV4..];
    let other = u32::from(be16(headers, 12) ^ ETHER_TYPE)
        | u32::from(ip[0] ^ VERSION_AND_LENGTH)
        | u32::from(be16(ip, 6) & FRAGMENT)
        | u32::from(ip[9] ^ protocol::TCP)
        | u32::from(be16(tcp, 12) >> 12) ^ (TCP / 4) as u32
        | be32(tcp, 20) ^ TIMESTAMPS
        | packet.link_type ^ link_type::ETHERNET;
    let total = be16(ip, 2);
    let payload = i32::from(total) - (IPV4 + TCP) as i32;
    // what the frame cannot hold is looked at closely
    let fits = u32::from(total) + ETHERNET as u32 <= packet.wire_len;
    if other != 0 || payload < 0 || !fits {
        return false;
    }
    *segment = Segment {
        frame: packet.frame,
        time_ns: packet.time_ns,
        src: ipv4::mapped(be32(ip, 12)).to_be_bytes(),
        dst: ipv4::mapped(be32(ip, 16)).to_be_bytes(),
        sport: be16(tcp, 0),
        dport: be16(tcp, 2),
        seq: be32(tcp, 4),
        ack: be32(tcp, 8),
        flags: be16(tcp, 12) & 0x1ff,
        window: be16(tcp, 14),
        payload: payload as u32,
        wire_bytes: packet.wire_len,
        ip_id: Some(be16(ip, 4)),
        ttl: ip[8],
        ecn: ip[1] & 3,
        checksum: be16(tcp, 16),
        direction: packet.direction,
        around: 0,
        options: Options {
            timestamps: Some((be32(tcp, 24), be32(tcp, 28))),
            ..Options::default()
        },
    };
    true
}

#[cfg(test)]
mod tests {
    use super::super::layers;
    use super::*;
    use crate::segment::Direction;

    const PACKET: [u8; 70] = {
        let mut packet = [7; 70];
        (packet[12], packet[13], packet[14], packet[16], packet[17]) = (8, 0, 0x45, 0, 56);
        (packet[20], packet[21], packet[23]) = (0x40, 0, 6);
        (packet[46], packet[47]) = (0x80, 0x18);
        (packet[54], packet[55], packet[56], packet[57]) = (1, 1, 8, 10);
        packet
    };

    #[test]
    fn the_layers_give_the_same() {
        let mut plain = 0;
        // each byte changed in turn, and the whole cut at each place
        for at in 0..PACKET.len() {
            for change in [1, 0x10, 0x80, 0xff] {
                for captured in [PACKET.len(), at] {
                    let mut bytes = PACKET;
                    bytes[at] ^= change;
                    let packet = Packet {
                        frame: 9,
                        time_ns: -4,
                        link_type: link_type::ETHERNET,
                        wire_len: 70,
                        direction: Direction::Outbound,
                        data: &bytes[..captured],
                    };
                    let (mut short, mut long) = (Segment::default(), Segment::default());
                    if segment(&packet, &mut short) {
                        plain += 1;
                        assert_eq!(layers(&packet, &mut long), Ok(()));
                        assert_eq!(long, short);
                    }
                }
            }
        }
        assert!(plain > 100, "{plain}");
    }
}
