//! TCP options (RFC 9293, 3.2; RFC 7323; RFC 2018).

use super::{be16, be32};
use crate::segment::Options;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

const FIXED_HEADER: usize = 20;

/// Options of a header of `header_length` bytes (at least 20), of which `data` may hold fewer.
#[inline]
pub(super) fn parse(data: &[u8], header_length: usize, options: &mut Options) {
    *options = Options::default();
    if header_length == FIXED_HEADER {
        return;
    }
    let captured = data.get(FIXED_HEADER..).unwrap_or_default();
    let area = header_length - FIXED_HEADER;
    // what most segments of a connection with timestamps carry (RFC 7323, appendix A)
    if let (12, [NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10, values @ ..]) = (area, captured) {
        if values.len() >= 8 {
            options.timestamps = Some((be32(values, 0), be32(values, 4)));
            return;
        }
    }
    any(captured, area, options);
}

#[inline(never)]
fn any(captured: &[u8], area: usize, options: &mut Options) {
    let mut rest = &captured[..captured.len().min(area)];
    loop {
        let (kind, length) = match rest {
            [] => {
                options.incomplete = captured.len() < area;
                return;
            }
            [END, ..] => return,
            [NO_OPERATION, after @ ..] => {
                rest = after;
                continue;
            }
            [kind, length, ..] => (*kind, usize::from(*length)),
            [_] => {
                options.incomplete = true;
                return;
            }
        };
        // a length counts its own two octets; less would not move on, more leads outside
        let Some(value) = rest.get(2..length) else {
            options.incomplete = true;
            return;
        };
        rest = &rest[length..];
        match (kind, value.len()) {
            (MAXIMUM_SEGMENT_SIZE, 2) => options.mss = Some(be16(value, 0)),
            (WINDOW_SCALE, 1) => options.window_scale = Some(value[0]),
            (SACK_PERMITTED, 0) => options.sack_permitted = true,
            (TIMESTAMPS, 8) => options.timestamps = Some((be32(value, 0), be32(value, 4))),
            (SACK, _) => sack(options, value),
            _ => {}
        }
    }
}

fn sack(options: &mut Options, value: &[u8]) {
    options.sack_len = 0;
    for (slot, block) in options.sack.iter_mut().zip(value.chunks_exact(8)) {
        *slot = (be32(block, 0), be32(block, 4));
        options.sack_len += 1;
    }
}
