//! Link layers other than Ethernet: Linux cooked, BSD loopback, PPP, raw IP, and what firewalls and macOS write.

use super::around::Around;
use super::{be16, ethernet, wlan, Network, Skip, Version};
use crate::capture::{link_type, Packet};
use crate::segment::Direction;

/// Takes off the link layer. Some formats say which way the packet went.
pub(super) fn network<'a>(packet: &Packet<'a>, direction: &mut Direction) -> Result<Network<'a>, Skip> {
    by_type(packet.link_type, packet.data, direction, true)
}

/// `outermost` where another link type may be named within.
fn by_type<'a>(kind: u32, data: &'a [u8], direction: &mut Direction, outermost: bool) -> Result<Network<'a>, Skip> {
    let nothing = Around::default();
    match kind {
        link_type::ETHERNET => ethernet::frame(data, nothing),
        link_type::RAW | link_type::RAW_BSD | link_type::RAW_OPENBSD => {
            Ok(Network::new(Version::InHeader, data, nothing))
        }
        link_type::IPV4 => Ok(Network::new(Version::Four, data, nothing)),
        link_type::IPV6 => Ok(Network::new(Version::Six, data, nothing)),
        link_type::LINUX_SLL => cooked(data, direction),
        link_type::LINUX_SLL2 => cooked_v2(data, direction),
        link_type::NULL | link_type::LOOP => loopback(data),
        link_type::PPP | link_type::PPP_HDLC => ppp_hdlc(data, nothing),
        link_type::PPP_WITH_DIRECTION => {
            let (sent, rest) = data.split_first().ok_or(Skip::TruncatedHeader)?;
            *direction = if *sent == 0 {
                Direction::Inbound
            } else {
                Direction::Outbound
            };
            ppp_hdlc(rest, nothing)
        }
        link_type::PPP_ETHER => ethernet::pppoe(data, nothing),
        link_type::C_HDLC => cisco_hdlc(data, nothing),
        link_type::FRAME_RELAY => frame_relay(data),
        link_type::IEEE802_11 => wlan::data_frame(data, false),
        link_type::IEEE802_11_RADIO => wlan::radiotap(data),
        link_type::IEEE802_11_PRISM | link_type::IEEE802_11_AVS => wlan::prism(data),
        link_type::NFLOG => nflog(data),
        link_type::MPLS => ethernet::mpls(data, nothing),
        // the frame of FDDI and of a token ring: control, two addresses, LLC
        link_type::FDDI => ethernet::llc(data.get(13..).ok_or(Skip::TruncatedHeader)?, nothing),
        link_type::TOKEN_RING => token_ring(data),
        link_type::ATM_RFC1483 => ethernet::llc(data, nothing),
        link_type::IP_OVER_FC => ethernet::llc(data.get(16..).ok_or(Skip::TruncatedHeader)?, nothing),
        link_type::IP_OVER_INFINIBAND => {
            // a route of 40 octets, EtherType, two reserved (RFC 4391)
            let (header, rest) = data.split_first_chunk::<44>().ok_or(Skip::TruncatedHeader)?;
            ethernet::ether_type(be16(header, 40), rest, nothing)
        }
        link_type::JUNIPER_ETHER => juniper(data, direction),
        link_type::PKTAP | link_type::PPI if outermost => {
            let (kind, rest) = if kind == link_type::PPI {
                ppi(data)?
            } else {
                pktap(data, direction)?
            };
            by_type(kind, rest, direction, false)
        }
        other => Err(Skip::UnsupportedLinkType(other)),
    }
}

/// Juniper's Ethernet: a magic number, flags (1: came in, 2: without link layer, 128: extensions), the extensions' length
/// and they themselves; then the frame, or four octets and the datagram.
fn juniper<'a>(data: &'a [u8], direction: &mut Direction) -> Result<Network<'a>, Skip> {
    let Some((&[b'M', b'G', b'C', flags], mut rest)) = data.split_first_chunk() else {
        return Err(Skip::TruncatedHeader);
    };
    *direction = if flags & 1 == 0 {
        Direction::Outbound
    } else {
        Direction::Inbound
    };
    if flags & 128 != 0 {
        let (length, after) = rest.split_first_chunk().ok_or(Skip::TruncatedHeader)?;
        let length = usize::from(u16::from_be_bytes(*length));
        rest = after.get(length..).ok_or(Skip::TruncatedHeader)?;
    }
    if flags & 2 == 0 {
        return ethernet::frame(rest, Around::default());
    }
    let datagram = rest.get(4..).ok_or(Skip::TruncatedHeader)?;
    Ok(Network::new(Version::InHeader, datagram, Around::default()))
}

/// Linux cooked v1: packet type, ARPHRD, address length, address, protocol.
fn cooked<'a>(data: &'a [u8], direction: &mut Direction) -> Result<Network<'a>, Skip> {
    const HEADER: usize = 16;
    let (header, rest) = data.split_at_checked(HEADER).ok_or(Skip::TruncatedHeader)?;
    *direction = way(be16(header, 0)).unwrap_or(*direction);
    ethernet::ether_type(be16(header, 14), rest, Around::default())
}

/// Linux cooked v2: protocol, reserved, interface index, ARPHRD, packet type, address length, address.
fn cooked_v2<'a>(data: &'a [u8], direction: &mut Direction) -> Result<Network<'a>, Skip> {
    const HEADER: usize = 20;
    let (header, rest) = data.split_at_checked(HEADER).ok_or(Skip::TruncatedHeader)?;
    *direction = way(u16::from(header[10])).unwrap_or(*direction);
    ethernet::ether_type(be16(header, 0), rest, Around::default())
}

/// Packet types of Linux: PACKET_HOST and PACKET_OUTGOING say which way; the others are not of this host's connections.
fn way(packet_type: u16) -> Option<Direction> {
    match packet_type {
        0 => Some(Direction::Inbound),
        4 => Some(Direction::Outbound),
        _ => None,
    }
}

/// BSD loopback: an address family in the byte order of the capturing host (NULL) or of the network (LOOP).
fn loopback(data: &[u8]) -> Result<Network<'_>, Skip> {
    let (family, rest) = data.split_first_chunk().ok_or(Skip::TruncatedHeader)?;
    // families are small numbers, so either order can be told from the other
    let family = u32::from_be_bytes(*family);
    match if family > 0xffff { family.swap_bytes() } else { family } {
        2 => Ok(Network::new(Version::Four, rest, Around::default())),
        // AF_INET6 of Linux; NetBSD and OpenBSD; FreeBSD; macOS
        10 | 24 | 28 | 30 => Ok(Network::new(Version::Six, rest, Around::default())),
        _ => Err(Skip::NotIp),
    }
}

/// PPP with or without the address and control octets (RFC 1662, 3.1), or Cisco's framing in its place.
pub(super) fn ppp_hdlc(data: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    match data {
        [0xff, 0x03, rest @ ..] => ppp(rest, around),
        [0x0f | 0x8f, 0x00, ..] => cisco_hdlc(data, around),
        _ => ppp(data, around),
    }
}

/// The PPP protocol field, which may be compressed to one octet (RFC 1661, 6.5).
pub(super) fn ppp(data: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    match data {
        [0x00, 0x21, rest @ ..] | [0x21, rest @ ..] => Ok(Network::new(Version::Four, rest, around)),
        [0x00, 0x57, rest @ ..] | [0x57, rest @ ..] => Ok(Network::new(Version::Six, rest, around)),
        // RFC 3032, 4.3
        [0x02, 0x81, rest @ ..] => ethernet::mpls(rest, around),
        [_, _, ..] => Err(Skip::NotIp),
        _ => Err(Skip::TruncatedHeader),
    }
}

/// Cisco's framing of a serial line: address, control, EtherType.
fn cisco_hdlc(data: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    let (header, rest) = data.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
    match be16(header, 2) {
        // no length: what is no EtherType is another protocol of Cisco's
        kind if kind < 1536 => Err(Skip::NotIp),
        kind => ethernet::ether_type(kind, rest, around),
    }
}

/// An address of two to four octets, the last odd; then RFC 2427's identifier, or an EtherType as Cisco writes it.
fn frame_relay(data: &[u8]) -> Result<Network<'_>, Skip> {
    let address = data
        .iter()
        .take(4)
        .position(|octet| octet & 1 == 1)
        .ok_or(Skip::TruncatedHeader)?
        + 1;
    let (kind, rest) = match &data[address..] {
        [0x03, 0xcc, rest @ ..] => return Ok(Network::new(Version::Four, rest, Around::default())),
        [0x03, 0x8e, rest @ ..] => return Ok(Network::new(Version::Six, rest, Around::default())),
        // padding, then SNAP
        [0x03, 0x00, 0x80, 0, 0, 0, high, low, rest @ ..] => ([*high, *low], rest),
        [high, low, rest @ ..] if *high >= 0x08 => ([*high, *low], rest),
        [_, _, ..] => return Err(Skip::NotIp),
        _ => return Err(Skip::TruncatedHeader),
    };
    ethernet::ether_type(u16::from_be_bytes(kind), rest, Around::default())
}

/// Access and frame control, two addresses, the first bit of the source announcing a route, LLC.
fn token_ring(data: &[u8]) -> Result<Network<'_>, Skip> {
    let (header, rest) = data.split_first_chunk::<14>().ok_or(Skip::TruncatedHeader)?;
    let route = match (header[8] & 0x80 != 0, rest.first()) {
        (false, _) => 0,
        (true, Some(control)) => usize::from(control & 0x1f),
        (true, None) => return Err(Skip::TruncatedHeader),
    };
    ethernet::llc(rest.get(route..).ok_or(Skip::TruncatedHeader)?, Around::default())
}

/// What Linux's netfilter logs: family, version, group, then attributes in the host's byte order, one of them the packet.
fn nflog(data: &[u8]) -> Result<Network<'_>, Skip> {
    const PAYLOAD: u16 = 9;
    let (header, mut rest) = data.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
    let version = match header[0] {
        2 => Version::Four,
        10 => Version::Six,
        _ => return Err(Skip::NotIp),
    };
    // the first attribute is short, so that its length tells the byte order
    let big_endian = matches!(rest, [0, low, ..] if *low >= 4);
    let number = |at: &[u8]| {
        let field = [at[0], at[1]];
        if big_endian {
            u16::from_be_bytes(field)
        } else {
            u16::from_le_bytes(field)
        }
    };
    loop {
        let attribute = rest.get(..4).ok_or(Skip::TruncatedHeader)?;
        let (length, kind) = (usize::from(number(attribute)), number(&attribute[2..]));
        if length < 4 {
            return Err(Skip::TruncatedHeader);
        }
        if kind & 0x7fff == PAYLOAD {
            return Ok(Network::new(
                version,
                &rest[4..rest.len().min(length)],
                Around::default(),
            ));
        }
        rest = rest.get(length.next_multiple_of(4)..).ok_or(Skip::TruncatedHeader)?;
    }
}

/// macOS's header: length, type, link type, the interface's name, flags that say which way.
fn pktap<'a>(data: &'a [u8], direction: &mut Direction) -> Result<(u32, &'a [u8]), Skip> {
    const SMALLEST: usize = 40;
    let header = data.get(..SMALLEST).ok_or(Skip::TruncatedHeader)?;
    let number = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    *direction = match number(36) & 3 {
        1 => Direction::Inbound,
        2 => Direction::Outbound,
        _ => *direction,
    };
    let length = (number(0) as usize).max(SMALLEST);
    Ok((number(8), data.get(length..).ok_or(Skip::TruncatedHeader)?))
}

/// Per-packet information: version, flags, length, link type, fields.
fn ppi(data: &[u8]) -> Result<(u32, &[u8]), Skip> {
    let header = data.get(..8).ok_or(Skip::TruncatedHeader)?;
    let length = usize::from(u16::from_le_bytes([header[2], header[3]])).max(8);
    let kind = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
    Ok((kind, data.get(length..).ok_or(Skip::TruncatedHeader)?))
}
