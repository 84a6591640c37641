//! What most packets are: Ethernet, IPv4 without options or IPv6 without extensions, in one piece, TCP. All of it up to TCP's
//! options is at fixed places, so one look decides, and nothing is measured again on the way. The layers give the same for
//! these packets, in three times the instructions; everything else is theirs.

use super::{be16, be32, be64, options, protocol};
use crate::capture::{link_type, Packet};
use crate::segment::{Address, Segment};

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
/// Without options.
const TCP: usize = 20;

/// The type of a frame, then version 4 and five words.
const ETHERNET_IPV4: u64 = 0x0800 << 8 | 0x45;
const ETHER_TYPE_IPV6: u16 = 0x86dd;
/// A fragment's place, that more follow, and the protocol.
const FRAGMENT_AND_PROTOCOL: u32 = 0x3fff_00ff;

/// What the headers below TCP's say.
struct Network {
    src: Address,
    dst: Address,
    /// Bytes behind the IP header.
    length: i32,
    ip_id: Option<u16>,
    ttl: u8,
    ecn: u8,
}

/// Decodes the packet if it is such a one. Headers are read in wide words: most of what a segment is made of is cut out of
/// one that was looked at anyway.
#[inline(always)]
pub(super) fn segment(packet: &Packet<'_>, segment: &mut Segment) -> bool {
    version_4(packet, segment) || version_6(*packet, segment)
}

#[inline(always)]
fn version_4(packet: &Packet<'_>, segment: &mut Segment) -> bool {
    let Some((headers, options)) = packet.data.split_first_chunk::<{ ETHERNET + IPV4 + TCP }>() else {
        return false;
    };
    // type of the frame, version and length, traffic class, total length, identification
    let first = be64(headers, 12);
    // fragment, time to live, protocol
    let second = be32(headers, 20);
    let other = first >> 40 ^ ETHERNET_IPV4 | u64::from(second & FRAGMENT_AND_PROTOCOL ^ u32::from(protocol::TCP));
    let total = (first >> 16) as u16;
    // what the frame cannot hold is looked at closely
    let fits = u32::from(total) + ETHERNET as u32 <= packet.wire_len;
    if other != 0 || !fits {
        return false;
    }
    let (ip, tcp) = headers[ETHERNET..].split_at(IPV4);
    let network = Network {
        src: mapped([ip[12], ip[13], ip[14], ip[15]]),
        dst: mapped([ip[16], ip[17], ip[18], ip[19]]),
        length: i32::from(total) - IPV4 as i32,
        ip_id: Some(first as u16),
        ttl: (second >> 8) as u8,
        ecn: (first >> 32) as u8 & 3,
    };
    carried(packet, &network, tcp, options, segment)
}

/// The IPv4-mapped address, as two words: what is written in pieces the processor cannot read as one soon.
#[inline(always)]
fn mapped(v4: [u8; 4]) -> Address {
    const PREFIX: u128 = 0xffff << 80;
    (PREFIX | u128::from(u32::from_le_bytes(v4)) << 96).to_le_bytes()
}

/// The packet comes by value, as the others need not be written to memory.
#[inline(never)] // few, beside the others
fn version_6(packet: Packet<'_>, segment: &mut Segment) -> bool {
    let Some((headers, options)) = packet.data.split_first_chunk::<{ ETHERNET + IPV6 + TCP }>() else {
        return false;
    };
    let (ip, tcp) = headers[ETHERNET..].split_at(IPV6);
    let other =
        u32::from(be16(headers, 12) ^ ETHER_TYPE_IPV6) | u32::from(ip[0] >> 4 ^ 6) | u32::from(ip[6] ^ protocol::TCP);
    let length = be16(ip, 4);
    let fits = u32::from(length) + (ETHERNET + IPV6) as u32 <= packet.wire_len;
    if other != 0 || !fits {
        return false;
    }
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    src.copy_from_slice(&ip[8..24]);
    dst.copy_from_slice(&ip[24..40]);
    let network = Network {
        src,
        dst,
        length: i32::from(length),
        ip_id: None,
        ttl: ip[7],
        ecn: ip[1] >> 4 & 3,
    };
    carried(&packet, &network, tcp, options, segment)
}

/// `tcp`: the header without its options, which may be cut off.
#[inline(always)]
fn carried(packet: &Packet<'_>, network: &Network, tcp: &[u8], options: &[u8], segment: &mut Segment) -> bool {
    // acknowledgement, offset and flags, window
    let second = be64(tcp, 8);
    let header = (second >> 28 & 0xf) as i32 * 4;
    let area = header - TCP as i32;
    let payload = network.length - header;
    if packet.link_type != link_type::ETHERNET || area | payload < 0 {
        return false;
    }
    // ports and sequence number
    let first = be64(tcp, 0);
    segment.frame = packet.frame;
    segment.time_ns = packet.time_ns;
    segment.src = network.src;
    segment.dst = network.dst;
    segment.seq = first as u32;
    segment.dport = (first >> 32) as u16;
    segment.sport = (first >> 48) as u16;
    segment.ack = (second >> 32) as u32;
    segment.flags = (second >> 16) as u16 & 0x1ff;
    segment.window = second as u16;
    segment.payload = payload as u32;
    segment.wire_bytes = packet.wire_len;
    segment.ip_id = network.ip_id;
    segment.ttl = network.ttl;
    segment.ecn = network.ecn;
    segment.checksum = be16(tcp, 16);
    segment.direction = packet.direction;
    segment.around = 0;
    options::parse(options, area as usize, &mut segment.options);
    true
}

#[cfg(test)]
mod tests {
    use super::super::layers;
    use super::*;
    use crate::decode::options::tests::LAYOUTS;
    use crate::segment::Direction;

    /// A packet with these TCP options and four bytes of payload.
    fn packet(version: u8, options: &[u8]) -> Vec<u8> {
        let length = TCP + options.len() + 4;
        let mut bytes = vec![7; ETHERNET];
        match version {
            4 => {
                (bytes[12], bytes[13]) = (8, 0);
                bytes.extend([0x45, 7, 0, (IPV4 + length) as u8, 7, 7, 0x40, 0, 7, 6]);
                bytes.extend([7; 10]);
            }
            _ => {
                (bytes[12], bytes[13]) = (0x86, 0xdd);
                bytes.extend([0x62, 7, 7, 7, 0, length as u8, 6, 7]);
                bytes.extend([7; 32]);
            }
        }
        bytes.extend([7; 12]);
        bytes.extend([((TCP + options.len()) as u8 / 4) << 4, 0x18, 7, 7, 7, 7, 7, 7]);
        bytes.extend(options);
        bytes.extend([7; 4]);
        bytes
    }

    /// Whether the packet is plain; if so, the layers give the same.
    fn is_plain(data: &[u8], wire_len: usize) -> bool {
        let packet = Packet {
            frame: 9,
            time_ns: -4,
            link_type: link_type::ETHERNET,
            wire_len: wire_len as u32,
            direction: Direction::Outbound,
            data,
        };
        // of the segment before nothing may stay
        let mut short = Segment {
            around: 3,
            ..Segment::default()
        };
        let options = &mut short.options;
        (options.mss, options.window_scale, options.timestamps) = (Some(1), Some(2), Some((3, 4)));
        (options.sack_permitted, options.mptcp, options.incomplete) = (true, true, true);
        (options.sack, options.sack_len) = ([(5, 6); 4], 1);
        let plain = segment(&packet, &mut short);
        if plain {
            let mut long = Segment::default();
            assert_eq!(Ok(()), layers(&packet, &mut long));
            assert_eq!(long, short);
        }
        plain
    }

    #[test]
    fn the_layers_give_the_same() {
        for (version, options) in LAYOUTS.iter().flat_map(|options| [(4, options), (6, options)]) {
            let whole = packet(version, options);
            assert!(is_plain(&whole, whole.len()), "{version} {options:?}");
            // each byte changed, and cut at each place
            let mut plain = 0;
            for at in 0..whole.len() {
                for change in [1, 2, 4, 0x10, 0x80, 0xff] {
                    let mut bytes = whole.clone();
                    bytes[at] ^= change;
                    plain += usize::from(is_plain(&bytes, whole.len()));
                    plain += usize::from(is_plain(&bytes[..at], whole.len()));
                }
            }
            assert!(plain > whole.len(), "{version} {options:?}: {plain}");
        }
    }
}
