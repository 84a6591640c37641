//! IPv6 and its extension headers (RFC 8200).

use super::{be16, be32, protocol, Datagram, Fragment, Skip};

const HEADER: usize = 40;

/// `on_wire` counts the bytes from the IP header to the end of the frame.
pub(super) fn datagram(data: &[u8], on_wire: u32) -> Result<Datagram<'_>, Skip> {
    match fragment(data, on_wire)? {
        (datagram, None) => Ok(datagram),
        _ => Err(Skip::IpFragment),
    }
}

/// As `datagram`, and which part of one it is.
pub(super) fn fragment(data: &[u8], on_wire: u32) -> Result<(Datagram<'_>, Option<Fragment>), Skip> {
    let fixed = fixed(data, on_wire)?;
    let first = Upper {
        protocol: fixed.protocol,
        length: fixed.length,
        data: fixed.data,
    };
    let (upper, part) = extensions(first)?;
    let datagram = Datagram {
        protocol: upper.protocol,
        length: upper.length,
        data: upper.data,
        ..fixed
    };
    Ok((datagram, part))
}

/// By the fixed header alone: its next header may be an extension.
#[inline(always)]
pub(super) fn fixed(data: &[u8], on_wire: u32) -> Result<Datagram<'_>, Skip> {
    let (header, rest) = data.split_first_chunk::<HEADER>().ok_or(Skip::TruncatedHeader)?;
    if header[0] >> 4 != 6 {
        return Err(Skip::BadIpHeader);
    }
    // 0 for a jumbogram (RFC 2675) and for what an interface is left to cut (BIG TCP)
    let length = match be16(header, 4) {
        0 => on_wire.saturating_sub(HEADER as u32),
        length => u32::from(length),
    };
    Ok(Datagram {
        src: address(&header[8..24]),
        dst: address(&header[24..40]),
        ip_id: None,
        ttl: header[7],
        ecn: (header[1] >> 4) & 3,
        protocol: header[6],
        length,
        data: rest,
    })
}

/// What follows a header: its protocol, its length on the wire and its bytes.
struct Upper<'a> {
    protocol: u8,
    length: u32,
    data: &'a [u8],
}

/// Passes over extension headers; each takes at least 8 bytes, so it ends.
fn extensions(mut upper: Upper<'_>) -> Result<(Upper<'_>, Option<Fragment>), Skip> {
    let mut part = None;
    loop {
        let length = match upper.protocol {
            protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION_OPTIONS => {
                let header = upper.data.get(..2).ok_or(Skip::TruncatedHeader)?;
                (usize::from(header[1]) + 1) * 8
            }
            // counted in 4 octets, less 2 (RFC 4302, 2.2)
            protocol::AUTHENTICATION => {
                let header = upper.data.get(..2).ok_or(Skip::TruncatedHeader)?;
                (usize::from(header[1]) + 2) * 4
            }
            protocol::FRAGMENT => {
                let header = upper.data.get(..8).ok_or(Skip::TruncatedHeader)?;
                let field = be16(header, 2);
                // offset 0 and no more to come: a whole packet all the same (RFC 6946)
                if field & 0xfff9 != 0 {
                    part = Some(Fragment {
                        id: be32(header, 4),
                        offset: u32::from(field & 0xfff8),
                        more: field & 1 != 0,
                    });
                }
                8
            }
            _ => return Ok((upper, part)),
        };
        let (header, data) = upper.data.split_at_checked(length).ok_or(Skip::TruncatedHeader)?;
        let remaining = upper.length.checked_sub(length as u32).ok_or(Skip::BadIpHeader)?;
        upper = Upper {
            protocol: header[0],
            length: remaining,
            data,
        };
        // what follows in a later part is no header
        if part.is_some_and(|part| part.offset > 0) {
            return Ok((upper, part));
        }
    }
}

#[inline]
fn address(bytes: &[u8]) -> u128 {
    let high = u128::from(be32(bytes, 0)) << 96 | u128::from(be32(bytes, 4)) << 64;
    high | u128::from(be32(bytes, 8)) << 32 | u128::from(be32(bytes, 12))
}
