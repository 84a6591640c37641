//! IPv4 (RFC 791).

use super::{be16, Datagram, Skip};
use crate::segment::{Address, V4_MAPPED};

const SMALLEST: usize = 20;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// `on_wire` counts the bytes from the IP header to the end of the frame.
#[inline]
pub(super) fn datagram(data: &[u8], on_wire: u32) -> Result<Datagram<'_>, Skip> {
    let header = data.get(..SMALLEST).ok_or(Skip::TruncatedHeader)?;
    let header_length = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || header_length < SMALLEST {
        return Err(Skip::BadIpHeader);
    }
    // 0 where the interface is left to fill it in (TSO), and for packets over 64 KiB (BIG TCP)
    let total = match be16(header, 2) {
        0 => on_wire,
        total => u32::from(total),
    };
    let Some(length) = total.checked_sub(header_length as u32) else {
        return Err(Skip::BadIpHeader);
    };
    if be16(header, 6) & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0 {
        return Err(Skip::IpFragment);
    }
    Ok(Datagram {
        src: mapped(&header[12..16]),
        dst: mapped(&header[16..20]),
        ip_id: Some(be16(header, 4)),
        ttl: header[8],
        ecn: header[1] & 3,
        protocol: header[9],
        length,
        data: data.get(header_length..).ok_or(Skip::TruncatedHeader)?,
    })
}

#[inline]
fn mapped(v4: &[u8]) -> Address {
    let mut address = [0; 16];
    address[..12].copy_from_slice(&V4_MAPPED);
    address[12..].copy_from_slice(v4);
    address
}
