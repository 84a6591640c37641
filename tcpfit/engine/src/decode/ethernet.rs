//! Ethernet and what may stand between it and IP: VLAN tags in any depth, PPPoE, MPLS, LLC, other frames.

use super::around::{Around, Kind};
use super::{be16, be32, link, Network, Skip, Version};

pub(super) const HEADER: usize = 14;

pub(super) const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
pub(super) const TRANSPARENT_BRIDGING: u16 = 0x6558;
pub(super) const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
/// 802.1ad, and what was used before it.
const QINQ: u16 = 0x88a8;
const QINQ_OLD: u16 = 0x9100;
const QINQ_OLDER: u16 = 0x9200;
const MPLS: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;
const PPPOE_SESSION: u16 = 0x8864;
/// 802.1ah: the customer's frame behind a service identifier.
const BACKBONE: u16 = 0x88e7;
const MACSEC: u16 = 0x88e5;
/// Cisco's group tag.
const METADATA: u16 = 0x8909;
/// Smaller numbers are lengths (IEEE 802.3, 3.2.6).
const LEAST: u16 = 1536;

pub(super) fn frame(data: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    let (header, rest) = data.split_first_chunk::<HEADER>().ok_or(Skip::TruncatedHeader)?;
    ether_type(be16(header, 12), rest, around)
}

/// Follows EtherTypes until IP; each step takes bytes, so it ends.
pub(super) fn ether_type(kind: u16, rest: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    match kind {
        IPV4 => Ok(Network::new(Version::Four, rest, around)),
        IPV6 => Ok(Network::new(Version::Six, rest, around)),
        other => other_type(other, rest, around),
    }
}

fn other_type(mut kind: u16, mut rest: &[u8], mut around: Around) -> Result<Network<'_>, Skip> {
    loop {
        match kind {
            IPV4 | IPV6 => return ether_type(kind, rest, around),
            VLAN | QINQ | QINQ_OLD | QINQ_OLDER => {
                let (tag, inner) = rest.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
                let number = be16(tag, 0) & 0x0fff;
                // 0 gives a priority and no VLAN (IEEE 802.1Q, 9.6)
                if number != 0 {
                    around = around.tagged(Kind::Vlan, u32::from(number));
                }
                kind = be16(tag, 2);
                rest = inner;
            }
            METADATA => {
                let (tag, inner) = rest.split_first_chunk::<8>().ok_or(Skip::TruncatedHeader)?;
                kind = be16(tag, 6);
                rest = inner;
            }
            PPPOE_SESSION => return pppoe(rest, around),
            MPLS | MPLS_MULTICAST => return mpls(rest, around),
            BACKBONE => {
                let (tag, inner) = rest.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
                return frame(inner, around.inside(Kind::Service, be32(tag, 0) & 0x00ff_ffff)?);
            }
            TRANSPARENT_BRIDGING => return frame(rest, around.inside(Kind::Pseudowire, 0)?),
            MACSEC => return Err(Skip::EncryptedFrame),
            ARP => return Err(Skip::Arp),
            length if length < LEAST => return llc(rest, around),
            _ => return Err(Skip::NotIp),
        }
    }
}

/// LLC (IEEE 802.2): SNAP names an EtherType (RFC 1042), and IP has an access point of its own.
pub(super) fn llc(data: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    match data {
        [0xaa, 0xaa, 0x03, 0, 0, 0 | 0xf8, high, low, rest @ ..] => match u16::from_be_bytes([*high, *low]) {
            // no length within: it would lead here again
            length if length < LEAST => Err(Skip::NotIp),
            kind => ether_type(kind, rest, around),
        },
        [0x06, 0x06, 0x03, rest @ ..] => Ok(Network::new(Version::Four, rest, around)),
        [_, _, _, ..] => Err(Skip::NotIp),
        _ => Err(Skip::TruncatedHeader),
    }
}

/// Version and type, code, session, length (RFC 2516, 4), then PPP.
pub(super) fn pppoe(data: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    let (header, inner) = data.split_first_chunk::<6>().ok_or(Skip::TruncatedHeader)?;
    let session = u32::from(be16(header, 2));
    let mut network = link::ppp(inner, around.inside(Kind::Pppoe, session)?)?;
    let protocol_field = inner.len() - network.data.len();
    network.limit = Some(u32::from(be16(header, 4)).saturating_sub(protocol_field as u32));
    Ok(network)
}

/// Labels up to the bottom of the stack (RFC 3032, 2.1). What follows is not announced: IP shows in its version, and 0 is
/// the control word of a pseudowire (RFC 4385, 3), here of Ethernet (RFC 4448).
pub(super) fn mpls(mut rest: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    loop {
        let (label, inner) = rest.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
        rest = inner;
        let bottom = label[2] & 1 == 1;
        if bottom {
            break;
        }
    }
    match rest {
        [first, _, _, _, inner @ ..] if first >> 4 == 0 => frame(inner, around.inside(Kind::Pseudowire, 0)?),
        _ => Ok(Network::new(Version::InHeader, rest, around)),
    }
}
