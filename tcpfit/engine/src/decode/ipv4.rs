//! IPv4 (RFC 791).

use super::{be16, be32, Datagram, Fragment, Skip};

const SMALLEST: usize = 20;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// `on_wire` counts the bytes from the IP header to the end of the frame.
#[inline(always)]
pub(super) fn datagram(data: &[u8], on_wire: u32) -> Result<Datagram<'_>, Skip> {
    let datagram = whole_or_part(data, on_wire)?;
    if be16(data, 6) & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0 {
        return Err(Skip::IpFragment);
    }
    Ok(datagram)
}

/// As `datagram`, and which part of one it is.
pub(super) fn fragment(data: &[u8], on_wire: u32) -> Result<(Datagram<'_>, Option<Fragment>), Skip> {
    let datagram = whole_or_part(data, on_wire)?;
    let field = be16(data, 6);
    let fragment = (field & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0).then(|| Fragment {
        id: u32::from(be16(data, 4)),
        offset: u32::from(field & FRAGMENT_OFFSET) * 8,
        more: field & MORE_FRAGMENTS != 0,
    });
    Ok((datagram, fragment))
}

#[inline(always)]
fn whole_or_part(data: &[u8], on_wire: u32) -> Result<Datagram<'_>, Skip> {
    let header = data.get(..SMALLEST).ok_or(Skip::TruncatedHeader)?;
    let header_length = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_length < SMALLEST {
        return Err(Skip::BadIpHeader);
    }
    // 0 where the interface is left to fill it in (TSO), and for packets over 64 KiB (BIG TCP)
    let total = match be16(header, 2) {
        0 => on_wire,
        total if u32::from(total) > on_wire && data.get(..header_length).is_some_and(is_damaged) => on_wire,
        total => u32::from(total),
    };
    let Some(length) = total.checked_sub(header_length as u32) else {
        return Err(Skip::BadIpHeader);
    };
    Ok(Datagram {
        src: mapped(be32(header, 12)),
        dst: mapped(be32(header, 16)),
        ip_id: Some(be16(header, 4)),
        ttl: header[8],
        ecn: header[1] & 3,
        protocol: header[9],
        length,
        data: data.get(header_length..).ok_or(Skip::TruncatedHeader)?,
    })
}

/// The checksum of the header is wrong (RFC 1071), and is there: hosts leave 0 to the network card.
#[cold]
fn is_damaged(header: &[u8]) -> bool {
    let sum: u32 = (0..header.len()).step_by(2).map(|at| u32::from(be16(header, at))).sum();
    be16(header, 10) != 0 && (sum & 0xffff) + (sum >> 16) != 0xffff
}

/// The IPv4-mapped address as a number.
#[inline]
pub(super) fn mapped(v4: u32) -> u128 {
    const PREFIX: u128 = 0xffff << 32;
    PREFIX | u128::from(v4)
}
