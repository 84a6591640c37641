//! Tunnels over IP: IP in IP, GRE, and over UDP VXLAN, Geneve, GTP-U, L2TP and Teredo. Told by protocol and port; a header that
//! does not fit is counted under its protocol.

use super::around::{Around, Kind};
use super::{be16, be32, ethernet, link, protocol, Datagram, Network, Skip, Version};

const VXLAN: u16 = 4789;
/// Linux's default before the port was assigned.
const VXLAN_LINUX: u16 = 8472;
const VXLAN_GPE: u16 = 4790;
const GENEVE: u16 = 6081;
const GTP_U: u16 = 2152;
const L2TP: u16 = 1701;
const TEREDO: u16 = 3544;

/// What the datagram carries, if that is a network again.
#[cold]
#[inline(never)]
pub(super) fn inside<'a>(outer: &Datagram<'a>, around: Around) -> Result<Network<'a>, Skip> {
    let payload = outer.within();
    match outer.protocol {
        protocol::IPV4 => ip(
            Version::Four,
            payload,
            around.between(Kind::IpInIp, outer.src, outer.dst)?,
        ),
        protocol::IPV6 => ip(
            Version::Six,
            payload,
            around.between(Kind::IpInIp, outer.src, outer.dst)?,
        ),
        protocol::GRE => gre(payload, outer, around),
        protocol::UDP => udp(payload, around),
        other => Err(Skip::of_protocol(other)),
    }
}

fn ip(version: Version, data: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    Ok(Network::new(version, data, around))
}

/// RFC 2784 with key and sequence number (RFC 2890), and PPTP's version 1 (RFC 2637, 4.1).
fn gre<'a>(data: &'a [u8], outer: &Datagram<'_>, around: Around) -> Result<Network<'a>, Skip> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGED: u16 = 0x0080;
    let not_followed = Skip::of_protocol(protocol::GRE);
    let (header, rest) = data.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
    let (flags, kind) = (be16(header, 0), be16(header, 2));
    let version = flags & 7;
    // the old routing field has no length that could be passed over
    if version > 1 || flags & ROUTING != 0 {
        return Err(not_followed);
    }
    let size = |flag: u16| if flags & flag != 0 { 4 } else { 0 };
    let before = size(CHECKSUM);
    let after = before + size(KEY) + size(SEQUENCE) + if version == 1 { size(ACKNOWLEDGED) } else { 0 };
    let (fields, inner) = rest.split_at_checked(after).ok_or(Skip::TruncatedHeader)?;
    let key = (version == 0 && flags & KEY != 0).then(|| be32(fields, before));
    let around = match key {
        // NVGRE: the low octet tells flows apart (RFC 7637, 3.2)
        Some(key) if kind == ethernet::TRANSPARENT_BRIDGING => around.inside(Kind::GreKey, key >> 8)?,
        Some(key) => around
            .between(Kind::Gre, outer.src, outer.dst)?
            .tagged(Kind::GreKey, key),
        None => around.between(Kind::Gre, outer.src, outer.dst)?,
    };
    match kind {
        PPP => link::ppp_hdlc(inner, around),
        // ERSPAN without header of its own (type I) or with one of 8 octets (type II)
        ERSPAN_II if flags & SEQUENCE == 0 => ethernet::frame(inner, around),
        ERSPAN_II => ethernet::frame(inner.get(8..).ok_or(Skip::TruncatedHeader)?, around),
        ERSPAN_III => {
            let (header, inner) = inner.split_first_chunk::<12>().ok_or(Skip::TruncatedHeader)?;
            let subheader = if header[11] & 1 == 1 { 8 } else { 0 };
            ethernet::frame(inner.get(subheader..).ok_or(Skip::TruncatedHeader)?, around)
        }
        kind => ethernet::ether_type(kind, inner, around).map_err(|skip| match skip {
            Skip::NotIp => not_followed,
            other => other,
        }),
    }
}

/// EtherTypes of GRE.
const PPP: u16 = 0x880b;
const ERSPAN_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;

fn udp(data: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    let (header, inner) = data.split_first_chunk::<8>().ok_or(Skip::Udp)?;
    let (from, to) = (be16(header, 0), be16(header, 2));
    match (from, to) {
        (_, VXLAN | VXLAN_LINUX | VXLAN_GPE) => vxlan(inner, to == VXLAN_GPE, around),
        (_, GENEVE) => geneve(inner, around),
        (GTP_U, _) | (_, GTP_U) => gtp_u(inner, around),
        (L2TP, _) | (_, L2TP) => l2tp(inner, around),
        (TEREDO, _) | (_, TEREDO) => teredo(inner, around),
        _ => Err(Skip::Udp),
    }
}

/// RFC 7348, 5; the generic extension names what follows (draft-ietf-nvo3-vxlan-gpe).
fn vxlan(data: &[u8], generic: bool, around: Around) -> Result<Network<'_>, Skip> {
    let (header, inner) = data.split_first_chunk::<8>().ok_or(Skip::Udp)?;
    let has_number = header[0] & 0x08 != 0;
    if !has_number || header[7] != 0 {
        return Err(Skip::Udp);
    }
    let around = around.inside(Kind::Vxlan, be32(header, 4) >> 8)?;
    match (generic, header[3]) {
        (false, _) | (true, 3) => ethernet::frame(inner, around),
        (true, 1) => ip(Version::Four, inner, around),
        (true, 2) => ip(Version::Six, inner, around),
        _ => Err(Skip::Udp),
    }
}

/// RFC 8926, 3.4.
fn geneve(data: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    let (header, rest) = data.split_first_chunk::<8>().ok_or(Skip::Udp)?;
    let (version, options) = (header[0] >> 6, usize::from(header[0] & 0x3f) * 4);
    if version != 0 {
        return Err(Skip::Udp);
    }
    let inner = rest.get(options..).ok_or(Skip::TruncatedHeader)?;
    ethernet::ether_type(
        be16(header, 2),
        inner,
        around.inside(Kind::Geneve, be32(header, 4) >> 8)?,
    )
}

/// A user's packet in GTPv1 (3GPP TS 29.281, 5.1 and 5.2).
fn gtp_u(data: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    const G_PDU: u8 = 255;
    let (header, mut rest) = data.split_first_chunk::<8>().ok_or(Skip::Udp)?;
    if header[0] & 0xf0 != 0x30 || header[1] != G_PDU {
        return Err(Skip::Udp);
    }
    if header[0] & 7 != 0 {
        let (optional, after) = rest.split_first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
        rest = after;
        let mut next = if header[0] & 4 != 0 { optional[3] } else { 0 };
        while next != 0 {
            let length = usize::from(*rest.first().ok_or(Skip::TruncatedHeader)?) * 4;
            let (extension, after) = rest.split_at_checked(length).ok_or(Skip::TruncatedHeader)?;
            // a length of 0 would not move on
            next = *extension.last().ok_or(Skip::Udp)?;
            rest = after;
        }
    }
    ip(Version::InHeader, rest, around.inside(Kind::Gtp, 0)?)
}

/// A data message of L2TPv2 (RFC 2661, 3.1): PPP.
fn l2tp(data: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let flags = be16(data.get(..2).ok_or(Skip::Udp)?, 0);
    if flags & CONTROL != 0 || flags & 0x0f != 2 {
        return Err(Skip::Udp);
    }
    let size = |flag: u16, octets: usize| if flags & flag != 0 { octets } else { 0 };
    let mut header = 6 + size(LENGTH, 2) + size(SEQUENCE, 4);
    if flags & OFFSET != 0 {
        let field = data.get(header..header + 2).ok_or(Skip::TruncatedHeader)?;
        header += 2 + usize::from(be16(field, 0));
    }
    let inner = data.get(header..).ok_or(Skip::TruncatedHeader)?;
    link::ppp_hdlc(inner, around.inside(Kind::L2tp, 0)?)
}

/// IPv6, perhaps behind an authentication and an origin indication (RFC 4380, 5.1.1).
fn teredo(data: &[u8], around: Around) -> Result<Network<'_>, Skip> {
    let mut rest = data;
    if let [0, 1, client, authentication, ..] = *rest {
        let length = 13 + usize::from(client) + usize::from(authentication);
        rest = rest.get(length..).ok_or(Skip::TruncatedHeader)?;
    }
    if let [0, 0, ..] = rest {
        rest = rest.get(8..).ok_or(Skip::TruncatedHeader)?;
    }
    match rest.first() {
        Some(byte) if byte >> 4 == 6 => ip(Version::Six, rest, around.inside(Kind::Teredo, 0)?),
        _ => Err(Skip::Udp),
    }
}
