//! TCP options (RFC 9293, 3.2; RFC 7323; RFC 2018), of accurate ECN the bytes that came marked (RFC 9768), and that there is
//! one of Multipath TCP (RFC 8684).

use super::{be16, be32};
use crate::segment::Options;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const MPTCP: u8 = 30;
/// RFC 9768, 3.2.3: kinds of the AccECN option, which differ in the order of the counters for ECT(0) and ECT(1).
const ACCURATE_ECN: [u8; 2] = [172, 174];

/// No operation twice, timestamps, ten bytes (RFC 7323, appendix A).
const TIMESTAMPS_ALONE: u32 = 0x0101_080a;
const SACK_PERMITTED_ALONE: u32 = 0x0101_0402;
const SACK_PERMITTED_TIMESTAMPS: u32 = 0x0402_080a;
/// Kind and length of the maximum segment size; no operation, kind and length of the window scale.
const MSS: u16 = 0x0204;
const SCALE: u32 = 0x01_0303;

/// Options in an area of so many bytes, of which `captured` may hold fewer, or more than the options.
#[inline(always)]
pub(super) fn parse(captured: &[u8], area: usize, options: &mut Options) {
    // what most segments of a connection with timestamps carry
    if let (12, Some(bytes)) = (area, captured.first_chunk::<12>()) {
        if be32(bytes, 0) == TIMESTAMPS_ALONE {
            *options = Options {
                timestamps: Some((be32(bytes, 4), be32(bytes, 8))),
                sack: options.sack,
                ..Options::default()
            };
            return;
        }
    }
    *options = Options::default();
    if area > 0 && !captured.get(..area).is_some_and(|bytes| in_usual_order(bytes, options)) {
        any(captured, area, options);
    }
}

/// Takes SACK blocks, and options of a SYN, where they stand in the order in which hosts send them.
#[inline(never)]
fn in_usual_order(bytes: &[u8], options: &mut Options) -> bool {
    if let Some((stamps, rest)) = bytes.split_first_chunk::<12>() {
        if be32(stamps, 0) == TIMESTAMPS_ALONE && only_sack(rest, options) {
            options.timestamps = Some((be32(stamps, 4), be32(stamps, 8)));
            return true;
        }
    }
    // Linux: MSS, SACK permitted, timestamps, window scale
    if let Some(syn) = bytes.first_chunk::<20>().filter(|_| bytes.len() == 20) {
        if be16(syn, 0) == MSS && be32(syn, 4) == SACK_PERMITTED_TIMESTAMPS && be32(syn, 16) >> 8 == SCALE {
            options.mss = Some(be16(syn, 2));
            options.window_scale = Some(syn[19]);
            options.sack_permitted = true;
            options.timestamps = Some((be32(syn, 8), be32(syn, 12)));
            return true;
        }
    }
    // Windows: MSS, window scale, SACK permitted
    if let Some(syn) = bytes.first_chunk::<12>().filter(|_| bytes.len() == 12) {
        if be16(syn, 0) == MSS && be32(syn, 4) >> 8 == SCALE && be32(syn, 8) == SACK_PERMITTED_ALONE {
            options.mss = Some(be16(syn, 2));
            options.window_scale = Some(syn[7]);
            options.sack_permitted = true;
            return true;
        }
    }
    only_sack(bytes, options)
}

/// Takes SACK blocks, if there is nothing else.
#[inline(always)]
fn only_sack(bytes: &[u8], options: &mut Options) -> bool {
    match bytes {
        [NO_OPERATION, NO_OPERATION, SACK, length, blocks @ ..] if usize::from(*length) == 2 + blocks.len() => {
            sack(options, blocks);
            true
        }
        _ => false,
    }
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
            (MPTCP, _) => options.mptcp = true,
            // three counters of three bytes, of which the last may be left out: that of CE is the second
            (kind, 6 | 9) if ACCURATE_ECN.contains(&kind) => options.ce_bytes = (be32(value, 2) & 0xff_ffff).into(),
            _ => {}
        }
    }
}

fn sack(options: &mut Options, value: &[u8]) {
    let (blocks, _) = value.as_chunks::<8>();
    for (slot, block) in options.sack.iter_mut().zip(blocks) {
        *slot = (be32(block, 0), be32(block, 4));
    }
    options.sack_len = blocks.len().min(options.sack.len()) as u8;
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Options in the orders in which hosts send them.
    pub const LAYOUTS: &[&[u8]] = &[
        &[],
        &[1, 1, 8, 10, 7, 7, 7, 7, 9, 9, 9, 9],
        &[1, 1, 8, 10, 7, 7, 7, 7, 9, 9, 9, 9, 1, 1, 5, 10, 7, 7, 7, 1, 7, 7, 7, 2],
        &[
            1, 1, 8, 10, 7, 7, 7, 7, 9, 9, 9, 9, 1, 1, 5, 26, 7, 7, 7, 1, 7, 7, 7, 2, 7, 7, 7, 3, 7, 7, 7, 4, 7, 7, 7,
            5, 7, 7, 7, 6,
        ],
        &[1, 1, 5, 10, 7, 7, 7, 1, 7, 7, 7, 2],
        &[
            1, 1, 5, 34, 7, 7, 7, 1, 7, 7, 7, 2, 7, 7, 7, 3, 7, 7, 7, 4, 7, 7, 7, 5, 7, 7, 7, 6, 7, 7, 7, 7, 7, 7, 7, 8,
        ],
        // SYNs of Linux, Windows and macOS
        &[2, 4, 5, 180, 4, 2, 8, 10, 7, 7, 7, 7, 9, 9, 9, 9, 1, 3, 3, 7],
        &[2, 4, 5, 180, 1, 3, 3, 8, 1, 1, 4, 2],
        &[
            2, 4, 5, 180, 1, 3, 3, 6, 1, 1, 8, 10, 7, 7, 7, 7, 9, 9, 9, 9, 4, 2, 0, 0,
        ],
        &[2, 4, 5, 180],
        &[1, 1, 1, 1, 8, 10, 7, 7, 7, 7, 9, 9, 9, 9, 0, 0],
        // Multipath TCP: capable; an ACK with one SACK block and what came of all subflows' data
        &[
            2, 4, 5, 180, 4, 2, 8, 10, 7, 7, 7, 7, 9, 9, 9, 9, 1, 3, 3, 7, 30, 4, 1, 1,
        ],
        &[
            1, 1, 8, 10, 7, 7, 7, 7, 9, 9, 9, 9, 1, 1, 5, 10, 7, 7, 7, 1, 7, 7, 7, 2, 30, 8, 32, 1, 7, 7, 7, 7,
        ],
        // accurate ECN, all three counters
        &[
            1, 1, 8, 10, 7, 7, 7, 7, 9, 9, 9, 9, 172, 11, 0, 0, 1, 0, 7, 8, 0, 0, 1, 1,
        ],
    ];

    #[test]
    fn known_layouts_are_what_their_options_are() {
        for layout in LAYOUTS {
            for at in 0..=layout.len() {
                for change in 0..=255 {
                    let mut bytes = [layout, &[1, 1, 5, 10][..]].concat();
                    bytes[at] ^= change;
                    for (captured, area) in [(bytes.len(), layout.len()), (at, layout.len()), (bytes.len(), at)] {
                        let (mut known, mut each) = (Options::default(), Options::default());
                        parse(&bytes[..captured], area, &mut known);
                        any(&bytes[..captured], area, &mut each);
                        assert_eq!(each, known, "{bytes:?} {captured} {area}");
                    }
                }
            }
        }
    }
}
