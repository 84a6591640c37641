//! A segment in some dozen bytes: what is new in it beside the segments of its connection before it.
//!
//! Three bytes say which fields follow and how many bytes each takes; a field that is as expected takes none. Fields are
//! written and read as words, of which the bytes beyond the field belong to the next.

use crate::segment::{flags, Options, Segment};

const WORD: usize = 8;
/// Bytes of a connection that are read, at most.
pub const MOST: usize = 2048;
/// They, and the word that begins at the last.
pub type Bytes = [u8; MOST + WORD];
/// More than a record with every field at its widest takes.
const LONGEST: usize = 64;
/// Where a record is written, and what is written behind it.
pub type Place = [u8; LONGEST + WORD];

// the first three bytes: bits, and the places of widths of four bits (up to eight bytes) and three (up to four)
const HEAD: usize = 3;
const END: u32 = 1;
const SHARED: u32 = 1 << 1;
const TIMESTAMPS: u32 = 1 << 2;
const SEQ: u32 = 1 << 3;
const WINDOW: u32 = 1 << 4;
const KIND: u32 = 1 << 5;
const IP_ID: u32 = 1 << 6;
const TIME: u32 = 7;
const FRAME: u32 = 11;
const ACK: u32 = 15;
const TSVAL: u32 = 18;
const TSECR: u32 = 21;

// options of a SYN
const MSS: u64 = 1;
const WINDOW_SCALE: u64 = 2;
const SACK_PERMITTED: u64 = 4;
const MPTCP: u64 = 8;
const SYN_OPTIONS: usize = 4;

/// What is mostly as in the end's segment before.
#[derive(Clone, Copy, Default, PartialEq)]
struct Kind {
    payload: u16,
    flags: u16,
    ttl: u8,
    ecn: u8,
}

impl Kind {
    const BYTES: usize = 6;

    #[inline]
    fn of(segment: &Segment) -> Self {
        Self {
            payload: segment.payload as u16,
            flags: segment.flags,
            ttl: segment.ttl,
            ecn: segment.ecn,
        }
    }

    #[inline]
    fn word(self) -> u64 {
        let around = u64::from(self.ttl) << 32 | u64::from(self.ecn) << 40;
        u64::from(self.payload) | u64::from(self.flags) << 16 | around
    }

    #[inline]
    fn set(word: u64, segment: &mut Segment) {
        segment.payload = u32::from(word as u16);
        segment.flags = (word >> 16) as u16;
        (segment.ttl, segment.ecn) = ((word >> 32) as u8, (word >> 40) as u8);
    }
}

/// What an end's last segment was, as far as the next is measured by it.
#[derive(Clone, Copy, Default)]
pub struct Last {
    /// The sequence number after it.
    seq: u32,
    ack: u32,
    tsval: u32,
    tsecr: u32,
    kind: Kind,
    window: u16,
    pub ip_id: u16,
}

/// Where a record is written: fields behind one another, each as a word that the next overlaps.
struct Writer<'a> {
    bytes: &'a mut Place,
    at: usize,
    head: u32,
}

impl Writer<'_> {
    #[inline]
    fn put(&mut self, value: u64, width: usize) {
        self.bytes[self.at % LONGEST..][..WORD].copy_from_slice(&value.to_le_bytes());
        self.at += width;
    }

    /// A field, unless it is as expected.
    #[inline]
    fn put_if(&mut self, differs: bool, bit: u32, value: u64, width: usize) {
        if differs {
            self.head |= bit;
            self.put(value, width);
        }
    }

    /// As narrow as it can be: no byte for 0.
    #[inline]
    fn put_narrow(&mut self, value: u64, place: u32) {
        let width = u64::BITS.wrapping_sub(value.leading_zeros()).div_ceil(8);
        self.head |= width << place;
        self.put(value, width as usize);
    }
}

/// Writes the record of a segment that came `since` (ns, frames) the connection's packet before it; how many bytes it has.
/// The segment has no SACK blocks, its options are whole, and its payload is below 65,536 bytes.
#[inline]
pub fn write(
    place: &mut Place,
    last: &mut Last,
    end: usize,
    segment: &Segment,
    since: (u64, u64),
    shared: bool,
) -> usize {
    let mut record = Writer {
        bytes: place,
        at: HEAD,
        head: if shared { SHARED } else { 0 } | if end == 0 { 0 } else { END },
    };
    record.put_narrow(since.0, TIME);
    record.put_narrow(since.1, FRAME);
    let difference = |new: u32, old: u32| u64::from(new.wrapping_sub(old));
    record.put_narrow(difference(segment.ack, last.ack), ACK);
    if let Some((tsval, tsecr)) = segment.options.timestamps {
        record.head |= TIMESTAMPS;
        record.put_narrow(difference(tsval, last.tsval), TSVAL);
        record.put_narrow(difference(tsecr, last.tsecr), TSECR);
        (last.tsval, last.tsecr) = (tsval, tsecr);
    }
    let kind = Kind::of(segment);
    record.put_if(segment.seq != last.seq, SEQ, segment.seq.into(), 4);
    record.put_if(kind != last.kind, KIND, kind.word(), Kind::BYTES);
    record.put_if(segment.window != last.window, WINDOW, segment.window.into(), 2);
    if let Some(id) = segment.ip_id {
        record.put_if(id != last.ip_id.wrapping_add(1), IP_ID, id.into(), 2);
        last.ip_id = id;
    }
    record.put(segment.checksum.into(), 2);
    if segment.has(flags::SYN) {
        record.put(syn_options(&segment.options), SYN_OPTIONS);
    }
    let Writer { bytes, at, head } = record;
    bytes[..HEAD].copy_from_slice(&head.to_le_bytes()[..HEAD]);
    last.seq = segment.seq.wrapping_add(segment.seq_len());
    (last.ack, last.kind, last.window) = (segment.ack, kind, segment.window);
    at % LONGEST
}

fn syn_options(options: &Options) -> u64 {
    let known = |bit, known| if known { bit } else { 0 };
    known(MSS, options.mss.is_some())
        | known(WINDOW_SCALE, options.window_scale.is_some())
        | known(SACK_PERMITTED, options.sack_permitted)
        | known(MPTCP, options.mptcp)
        | u64::from(options.window_scale.unwrap_or(0)) << 8
        | u64::from(options.mss.unwrap_or(0)) << 16
}

/// Bytes that are read field by field.
struct Fields<'a> {
    bytes: &'a Bytes,
    at: usize,
    head: u32,
}

impl Fields<'_> {
    #[inline]
    fn word(&mut self, width: usize) -> u64 {
        let mut word = [0; WORD];
        word.copy_from_slice(&self.bytes[self.at % MOST..][..WORD]);
        self.at += width;
        u64::from_le_bytes(word)
    }

    /// The field whose width stands at the place, in so many bits.
    #[inline]
    fn narrow(&mut self, place: u32, bits: u32) -> u64 {
        const MASKS: [u64; 16] = {
            let mut masks = [u64::MAX; 16];
            let mut width = 0;
            while width < WORD {
                masks[width] = (1 << (8 * width)) - 1;
                width += 1;
            }
            masks
        };
        let width = (self.head >> place & ((1 << bits) - 1)) as usize;
        self.word(width) & MASKS[width]
    }
}

/// Records, read in the order in which they were written.
pub struct Reader<'a> {
    fields: Fields<'a>,
    /// Where the last record ends.
    end: usize,
    /// The last segment of each end; before it the segment that has both ends' addresses.
    pub last: [Segment; 2],
    /// Timestamps of the last segments that had some.
    stamps: [(u32, u32); 2],
    time_ns: i64,
    frame: u64,
    identified: bool,
}

impl<'a> Reader<'a> {
    /// The first record counts from 0 ns and frame 0. `end`: bytes that are records. `identified`: the segments have an IP
    /// identification.
    pub fn new(bytes: &'a Bytes, end: usize, ends: [Segment; 2], identified: bool) -> Self {
        Self {
            fields: Fields { bytes, at: 0, head: 0 },
            end: end.min(MOST),
            last: ends,
            stamps: [(0, 0); 2],
            time_ns: 0,
            frame: 0,
            identified,
        }
    }

    /// The end that sent the next segment, which is in `last` then, and whether its host was known to share its counter of
    /// identifications.
    #[inline]
    pub fn next(&mut self) -> Option<(usize, bool)> {
        let fields = &mut self.fields;
        if fields.at >= self.end {
            return None;
        }
        let head = fields.word(HEAD) as u32;
        fields.head = head;
        let end = (head & END) as usize;
        let segment = &mut self.last[end];
        self.time_ns = self.time_ns.wrapping_add(fields.narrow(TIME, 4) as i64);
        self.frame += fields.narrow(FRAME, 4);
        (segment.time_ns, segment.frame) = (self.time_ns, self.frame);
        segment.ack = segment.ack.wrapping_add(fields.narrow(ACK, 3) as u32);
        segment.options.timestamps = None;
        if head & TIMESTAMPS != 0 {
            let stamps = &mut self.stamps[end];
            stamps.0 = stamps.0.wrapping_add(fields.narrow(TSVAL, 3) as u32);
            stamps.1 = stamps.1.wrapping_add(fields.narrow(TSECR, 3) as u32);
            segment.options.timestamps = Some(*stamps);
        }
        segment.seq = segment.seq.wrapping_add(segment.seq_len());
        if head & SEQ != 0 {
            segment.seq = fields.word(4) as u32;
        }
        if head & KIND != 0 {
            Kind::set(fields.word(Kind::BYTES), segment);
        }
        if head & WINDOW != 0 {
            segment.window = fields.word(2) as u16;
        }
        if self.identified {
            let counted = segment.ip_id.unwrap_or(0).wrapping_add(1);
            segment.ip_id = Some(if head & IP_ID == 0 {
                counted
            } else {
                fields.word(2) as u16
            });
        }
        segment.checksum = fields.word(2) as u16;
        let is_syn = segment.has(flags::SYN);
        let syn = if is_syn { fields.word(SYN_OPTIONS) } else { 0 };
        let options = &mut segment.options;
        options.mss = (syn & MSS != 0).then_some((syn >> 16) as u16);
        options.window_scale = (syn & WINDOW_SCALE != 0).then_some((syn >> 8) as u8);
        options.sack_permitted = syn & SACK_PERMITTED != 0;
        options.mptcp = syn & MPTCP != 0;
        Some((end, head & SHARED != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number below `below`.
    fn chance(state: &mut u64, below: u64) -> u64 {
        *state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (*state >> 33) % below
    }

    /// Any value of so many bits, small ones as often as large ones.
    fn any(state: &mut u64, bits: u64) -> u64 {
        let width = chance(state, bits + 1);
        (chance(state, 1 << 31) << 33 | chance(state, 1 << 31)) & !u64::MAX.checked_shl(width as u32).unwrap_or(0)
    }

    #[test]
    fn what_is_read_is_what_was_written() {
        let mut state = 5;
        for connection in 0..200 {
            let identified = connection % 2 == 0;
            let names = [1, 2].map(|n: u16| Segment {
                src: [n as u8; 16],
                dst: [3 - n as u8; 16],
                sport: n,
                dport: 3 - n,
                ..Segment::default()
            });
            let (mut bytes, mut last, mut sent) = (Vec::new(), [Last::default(); 2], Vec::new());
            let (mut time_ns, mut frame) = (0, 0);
            let mut usual = names;
            for _ in 0..MOST / LONGEST {
                let end = chance(&mut state, 2) as usize;
                let since = (any(&mut state, 50), any(&mut state, 40));
                time_ns += since.0 as i64;
                frame += since.1;
                let segment = &mut usual[end];
                (segment.time_ns, segment.frame) = (time_ns, frame);
                segment.seq = segment.seq.wrapping_add(segment.seq_len());
                // one field after the other is another than expected
                match chance(&mut state, 12) {
                    0 => segment.seq = any(&mut state, 32) as u32,
                    1 => segment.ack = any(&mut state, 32) as u32,
                    2 => segment.payload = any(&mut state, 16) as u32,
                    3 => segment.window = any(&mut state, 16) as u16,
                    4 => segment.flags = any(&mut state, 9) as u16,
                    5 => segment.checksum = any(&mut state, 16) as u16,
                    6 => segment.ttl = any(&mut state, 8) as u8,
                    7 => segment.ecn = any(&mut state, 2) as u8,
                    8 => segment.options.timestamps = None,
                    9 => segment.options.timestamps = Some((any(&mut state, 32) as u32, any(&mut state, 32) as u32)),
                    10 => segment.ip_id = Some(any(&mut state, 16) as u16),
                    _ => segment.ack = segment.ack.wrapping_add(any(&mut state, 12) as u32),
                }
                segment.ip_id = identified.then(|| segment.ip_id.unwrap_or(0).wrapping_add(1));
                (segment.options.mss, segment.options.window_scale) = (None, None);
                (segment.options.sack_permitted, segment.options.mptcp) = (false, false);
                if segment.has(flags::SYN) {
                    segment.options.mss = (chance(&mut state, 2) > 0).then(|| any(&mut state, 16) as u16);
                    segment.options.window_scale = (chance(&mut state, 2) > 0).then(|| any(&mut state, 8) as u8);
                    segment.options.sack_permitted = chance(&mut state, 2) > 0;
                    segment.options.mptcp = chance(&mut state, 2) > 0;
                }
                let shared = chance(&mut state, 2) > 0;
                let mut place = [0; LONGEST + WORD];
                let length = write(&mut place, &mut last[end], end, segment, since, shared);
                bytes.extend(&place[..length]);
                sent.push((end, *segment, shared));
            }
            let mut records = [0; MOST + WORD];
            records[..bytes.len()].copy_from_slice(&bytes);
            let mut reader = Reader::new(&records, bytes.len(), names, identified);
            let mut read = Vec::new();
            while let Some((end, shared)) = reader.next() {
                read.push((end, reader.last[end], shared));
            }
            assert_eq!(sent, read);
        }
    }
}
