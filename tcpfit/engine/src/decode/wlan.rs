//! 802.11 data frames and what capturing drivers put before them: radiotap, Prism, AVS.

use super::around::Around;
use super::{be32, ethernet, Network, Skip};

/// Radiotap (radiotap.org): version, padding, length, words that say which fields are there, then these.
pub(super) fn radiotap(data: &[u8]) -> Result<Network<'_>, Skip> {
    let header = data.get(..8).ok_or(Skip::TruncatedHeader)?;
    let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
    let (fields, frame) = data.split_at_checked(length).ok_or(Skip::TruncatedHeader)?;
    let padded = radiotap_flags(fields).is_some_and(|flags| flags & 0x20 != 0);
    data_frame(frame, padded)
}

/// The field of flags, which only a time of 8 octets can precede.
fn radiotap_flags(fields: &[u8]) -> Option<u8> {
    const TIME: u8 = 1;
    const FLAGS: u8 = 2;
    let present = *fields.get(4)?;
    // the top bit of a word says that another follows
    let mut at = 8;
    while fields.get(at - 1)? & 0x80 != 0 {
        at += 4;
    }
    if present & TIME != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    (present & FLAGS != 0).then(|| fields.get(at).copied())?
}

/// Prism's header counts itself in the byte order of the host; AVS's, which comes under the same link type, in that of the
/// network.
pub(super) fn prism(data: &[u8]) -> Result<Network<'_>, Skip> {
    const AVS: [u8; 3] = [0x80, 0x21, 0x10];
    let header = data.get(..8).ok_or(Skip::TruncatedHeader)?;
    let length = be32(header, 4);
    let length = if header.starts_with(&AVS) || length <= 0xffff {
        length
    } else {
        length.swap_bytes()
    };
    data_frame(data.get(length as usize..).ok_or(Skip::TruncatedHeader)?, false)
}

/// A frame (IEEE 802.11-2020, 9.3.2.1); `padded` where the header fills up to 32 bits.
pub(super) fn data_frame(data: &[u8], padded: bool) -> Result<Network<'_>, Skip> {
    let control = data.get(..2).ok_or(Skip::TruncatedHeader)?;
    let (subtype, flags) = (control[0] >> 4, control[1]);
    let is_data = control[0] & 0x0f == 0x08;
    let no_data = subtype & 4 != 0;
    if !is_data || no_data {
        return Err(Skip::NotIp);
    }
    if flags & 0x40 != 0 {
        return Err(Skip::EncryptedFrame);
    }
    let between_access_points = flags & 3 == 3;
    let mut header = if between_access_points { 30 } else { 24 };
    let quality_of_service = subtype & 8 != 0;
    if quality_of_service {
        let field = data.get(header).ok_or(Skip::TruncatedHeader)?;
        if field & 0x80 != 0 {
            return Err(Skip::AggregateFrame);
        }
        header += 2;
        // the order bit announces the HT control field
        if flags & 0x80 != 0 {
            header += 4;
        }
    }
    if padded {
        header = usize::next_multiple_of(header, 4);
    }
    ethernet::llc(data.get(header..).ok_or(Skip::TruncatedHeader)?, Around::default())
}
