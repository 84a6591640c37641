//! Ethernet and what may stand between it and IP: VLAN tags in any depth, PPPoE, MPLS.

use super::{be16, link, Network, Skip, Version};

const HEADER: usize = 14;

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
/// 802.1ad, and what was used before it.
const QINQ: u16 = 0x88a8;
const QINQ_OLD: u16 = 0x9100;
const MPLS: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;
const PPPOE_SESSION: u16 = 0x8864;

#[inline]
pub(super) fn frame(data: &[u8]) -> Result<Network<'_>, Skip> {
    let (header, rest) = data.split_first_chunk::<HEADER>().ok_or(Skip::TruncatedHeader)?;
    ether_type(be16(header, 12), rest)
}

/// Follows EtherTypes until IP; each step takes bytes, so it ends.
#[inline]
pub(super) fn ether_type(mut kind: u16, mut rest: &[u8]) -> Result<Network<'_>, Skip> {
    loop {
        match kind {
            IPV4 => return Ok(Network::new(Version::Four, rest)),
            IPV6 => return Ok(Network::new(Version::Six, rest)),
            VLAN | QINQ | QINQ_OLD => {
                let (tag, inner) = rest.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
                kind = be16(tag, 2);
                rest = inner;
            }
            PPPOE_SESSION => return pppoe(rest),
            MPLS | MPLS_MULTICAST => return mpls(rest),
            ARP => return Err(Skip::Arp),
            _ => return Err(Skip::NotIp),
        }
    }
}

/// Version and type, code, session, length (RFC 2516, 4), then PPP.
fn pppoe(data: &[u8]) -> Result<Network<'_>, Skip> {
    let (header, inner) = data.split_first_chunk::<6>().ok_or(Skip::TruncatedHeader)?;
    let mut network = link::ppp(inner)?;
    let protocol_field = inner.len() - network.data.len();
    network.limit = Some(u32::from(be16(header, 4)).saturating_sub(protocol_field as u32));
    Ok(network)
}

/// Labels up to the bottom of the stack (RFC 3032, 2.1). What follows is not announced: IP shows in its version.
fn mpls(mut rest: &[u8]) -> Result<Network<'_>, Skip> {
    loop {
        let (label, inner) = rest.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
        rest = inner;
        let bottom = label[2] & 1 == 1;
        if bottom {
            return Ok(Network::new(Version::InHeader, rest));
        }
    }
}
