//! What most packets are: Ethernet, IPv4 without options or IPv6 without extensions, in one piece, TCP with timestamps and
//! no other option. All of it is at fixed places, so one look decides, and nothing is measured again on the way. The layers
//! give the same for these packets, in three times the instructions; everything else is theirs.

use super::{be16, be32, ipv4, protocol};
use crate::capture::{link_type, Packet};
use crate::segment::{Address, Options, Segment};

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const TCP: usize = 32;

/// Version 4, five words.
const VERSION_AND_LENGTH: u8 = 0x45;
const ETHER_TYPE: u16 = 0x0800;
const ETHER_TYPE_IPV6: u16 = 0x86dd;
/// A fragment's place, and that more follow.
const FRAGMENT: u16 = 0x3fff;
/// No operation twice, timestamps, ten bytes (RFC 7323, appendix A).
const TIMESTAMPS: u32 = 0x0101_080a;

/// What the IP header says.
struct Network {
    src: Address,
    dst: Address,
    /// Bytes behind the TCP header.
    payload: i32,
    ip_id: Option<u16>,
    ttl: u8,
    ecn: u8,
}

/// Decodes the packet if it is such a one.
#[inline(always)]
pub(super) fn segment(packet: &Packet<'_>, segment: &mut Segment) -> bool {
    version_4(packet, segment) || version_6(packet, segment)
}

#[inline(always)]
fn version_4(packet: &Packet<'_>, segment: &mut Segment) -> bool {
    let Some((headers, _)) = packet.data.split_first_chunk::<{ ETHERNET + IPV4 + TCP }>() else {
        return false;
    };
    let (ip, tcp) = headers[ETHERNET..].split_at(IPV4);
    let other = u32::from(be16(headers, 12) ^ ETHER_TYPE)
        | u32::from(ip[0] ^ VERSION_AND_LENGTH)
        | u32::from(be16(ip, 6) & FRAGMENT)
        | u32::from(ip[9] ^ protocol::TCP);
    let total = be16(ip, 2);
    let network = Network {
        src: ipv4::mapped(be32(ip, 12)).to_be_bytes(),
        dst: ipv4::mapped(be32(ip, 16)).to_be_bytes(),
        payload: i32::from(total) - (IPV4 + TCP) as i32,
        ip_id: Some(be16(ip, 4)),
        ttl: ip[8],
        ecn: ip[1] & 3,
    };
    // what the frame cannot hold is looked at closely
    let fits = u32::from(total) + ETHERNET as u32 <= packet.wire_len;
    fits && carried(packet, &network, tcp, other, segment)
}

#[inline(never)] // few, beside the others
fn version_6(packet: &Packet<'_>, segment: &mut Segment) -> bool {
    let Some((headers, _)) = packet.data.split_first_chunk::<{ ETHERNET + IPV6 + TCP }>() else {
        return false;
    };
    let (ip, tcp) = headers[ETHERNET..].split_at(IPV6);
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    src.copy_from_slice(&ip[8..24]);
    dst.copy_from_slice(&ip[24..40]);
    let other =
        u32::from(be16(headers, 12) ^ ETHER_TYPE_IPV6) | u32::from(ip[0] >> 4 ^ 6) | u32::from(ip[6] ^ protocol::TCP);
    let length = be16(ip, 4);
    let network = Network {
        src,
        dst,
        payload: i32::from(length) - TCP as i32,
        ip_id: None,
        ttl: ip[7],
        ecn: ip[1] >> 4 & 3,
    };
    let fits = u32::from(length) + (ETHERNET + IPV6) as u32 <= packet.wire_len;
    fits && carried(packet, &network, tcp, other, segment)
}

/// `other`: not 0 if the layers below are not plain. `tcp`: its header with the options.
#[inline(always)]
fn carried(packet: &Packet<'_>, network: &Network, tcp: &[u8], other: u32, segment: &mut Segment) -> bool {
    let other = other
        | u32::from(be16(tcp, 12) >> 12) ^ (TCP / 4) as u32
        | be32(tcp, 20) ^ TIMESTAMPS
        | packet.link_type ^ link_type::ETHERNET;
    if other != 0 || network.payload < 0 {
        return false;
    }
    *segment = Segment {
        frame: packet.frame,
        time_ns: packet.time_ns,
        src: network.src,
        dst: network.dst,
        sport: be16(tcp, 0),
        dport: be16(tcp, 2),
        seq: be32(tcp, 4),
        ack: be32(tcp, 8),
        flags: be16(tcp, 12) & 0x1ff,
        window: be16(tcp, 14),
        payload: network.payload as u32,
        wire_bytes: packet.wire_len,
        ip_id: network.ip_id,
        ttl: network.ttl,
        ecn: network.ecn,
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

    const PACKET_6: [u8; 90] = {
        let mut packet = [7; 90];
        (packet[12], packet[13], packet[14]) = (0x86, 0xdd, 0x62);
        (packet[18], packet[19], packet[20]) = (0, 36, 6);
        (packet[66], packet[67]) = (0x80, 0x18);
        (packet[74], packet[75], packet[76], packet[77]) = (1, 1, 8, 10);
        packet
    };

    /// Changes each byte in turn and cuts at each place; how many packets were plain.
    fn compared<const N: usize>(whole: [u8; N]) -> usize {
        let mut plain = 0;
        for at in 0..N {
            for change in [1, 0x10, 0x80, 0xff] {
                for captured in [N, at] {
                    let mut bytes = whole;
                    bytes[at] ^= change;
                    let packet = Packet {
                        frame: 9,
                        time_ns: -4,
                        link_type: link_type::ETHERNET,
                        wire_len: N as u32,
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
        plain
    }

    #[test]
    fn the_layers_give_the_same() {
        let plain = (compared(PACKET), compared(PACKET_6));
        assert!(plain.0 > 100 && plain.1 > 100, "{plain:?}");
    }
}
