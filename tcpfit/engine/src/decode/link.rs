//! Link layers other than Ethernet: Linux cooked, BSD loopback, PPP, raw IP.

use super::{be16, ethernet, Network, Skip, Version};
use crate::capture::{link_type, Packet};
use crate::segment::Direction;

/// Takes off the link layer. The cooked formats say which way the packet went.
#[inline]
pub(super) fn network<'a>(packet: &Packet<'a>, direction: &mut Direction) -> Result<Network<'a>, Skip> {
    let data = packet.data;
    match packet.link_type {
        link_type::ETHERNET => ethernet::frame(data),
        link_type::RAW | link_type::RAW_BSD | link_type::RAW_OPENBSD => Ok(Network::new(Version::InHeader, data)),
        link_type::IPV4 => Ok(Network::new(Version::Four, data)),
        link_type::IPV6 => Ok(Network::new(Version::Six, data)),
        link_type::LINUX_SLL => cooked(data, direction),
        link_type::LINUX_SLL2 => cooked_v2(data, direction),
        link_type::NULL | link_type::LOOP => loopback(data),
        link_type::PPP | link_type::PPP_HDLC => ppp_hdlc(data),
        other => Err(Skip::UnsupportedLinkType(other)),
    }
}

/// Linux cooked v1: packet type, ARPHRD, address length, address, protocol.
fn cooked<'a>(data: &'a [u8], direction: &mut Direction) -> Result<Network<'a>, Skip> {
    const HEADER: usize = 16;
    let (header, rest) = data.split_at_checked(HEADER).ok_or(Skip::TruncatedHeader)?;
    *direction = way(be16(header, 0)).unwrap_or(*direction);
    ethernet::ether_type(be16(header, 14), rest)
}

/// Linux cooked v2: protocol, reserved, interface index, ARPHRD, packet type, address length, address.
fn cooked_v2<'a>(data: &'a [u8], direction: &mut Direction) -> Result<Network<'a>, Skip> {
    const HEADER: usize = 20;
    let (header, rest) = data.split_at_checked(HEADER).ok_or(Skip::TruncatedHeader)?;
    *direction = way(u16::from(header[10])).unwrap_or(*direction);
    ethernet::ether_type(be16(header, 0), rest)
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
        2 => Ok(Network::new(Version::Four, rest)),
        // AF_INET6 of Linux; NetBSD and OpenBSD; FreeBSD; macOS
        10 | 24 | 28 | 30 => Ok(Network::new(Version::Six, rest)),
        _ => Err(Skip::NotIp),
    }
}

/// PPP with or without the address and control octets (RFC 1662, 3.1).
fn ppp_hdlc(data: &[u8]) -> Result<Network<'_>, Skip> {
    ppp(data.strip_prefix(&[0xff, 0x03]).unwrap_or(data))
}

/// The PPP protocol field, which may be compressed to one octet (RFC 1661, 6.5).
pub(super) fn ppp(data: &[u8]) -> Result<Network<'_>, Skip> {
    match data {
        [0x00, 0x21, rest @ ..] | [0x21, rest @ ..] => Ok(Network::new(Version::Four, rest)),
        [0x00, 0x57, rest @ ..] | [0x57, rest @ ..] => Ok(Network::new(Version::Six, rest)),
        [_, _, ..] => Err(Skip::NotIp),
        _ => Err(Skip::TruncatedHeader),
    }
}
