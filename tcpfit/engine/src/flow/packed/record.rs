//! A segment in some dozen bytes: what is new in it beside the segments of its connection before it.
//!
//! Two words are the beginning of a record, and of most all: flags, the time and frames that have passed, the checksum, and how
//! far acknowledgement and timestamps have moved; that part is not kept where they have not. The first bits say what follows:
//! higher bits of these differences, and what is not as expected.

use super::pool::bytes_of;
use crate::segment::{flags, Options, Segment};

const WORD: usize = 8;
/// Bytes of a connection that are read, at most.
pub const MOST: usize = 2048;
/// They, and the words that begin at the last.
pub type Bytes = [u8; MOST + 2 * WORD];
/// More than the fields behind a record's words take, and a word.
const REST_MOST: usize = 40;
/// More than a record with every field takes.
const LONGEST: usize = 2 * WORD + REST_MOST;

// the first word: the segment's flags, what else there is, low bits of time and frames
const FLAGS: u64 = 0x1ff;
const END: u64 = 1 << 9;
const SHARED: u64 = 1 << 10;
const TIMESTAMPS: u64 = 1 << 11;
const MOVED: u64 = 1 << 12;
const FAR: u64 = 1 << 13;
const JUMP: u64 = 1 << 14;
const SEQ: u64 = 1 << 15;
const WINDOW: u64 = 1 << 16;
const PAYLOAD: u64 = 1 << 17;
const HOPS: u64 = 1 << 18;
const IP_ID: u64 = 1 << 19;
const SYN: u64 = flags::SYN as u64;
const REST: u64 = FAR | JUMP | SEQ | WINDOW | HOPS | IP_ID | SYN;
const TIME: u32 = 20;
const FRAME: u32 = TIME + TIME_BITS;
const TIME_BITS: u32 = 28;
const FRAME_BITS: u32 = u64::BITS - FRAME;

// the second word: the checksum, low bits of the other differences
const ACK: u32 = 16;
const TSVAL: u32 = ACK + ACK_BITS;
const TSECR: u32 = TSVAL + STAMP_BITS;
const ACK_BITS: u32 = 14;
const STAMP_BITS: u32 = 9;
/// Bytes up to the checksum, and up to the differences behind it; the payload comes next.
const SHORT: usize = 10;
const LONG: usize = 14;
const PAYLOAD_BYTES: usize = 2;

/// Packets of a capture that are more than between two of a record.
pub const FRAMES: u64 = 1 << 44;

// options of a SYN
const MSS: u64 = 1;
const WINDOW_SCALE: u64 = 2;
const SACK_PERMITTED: u64 = 4;

/// The lowest bits of a number.
#[inline(always)]
fn low(value: u64, bits: u32) -> u64 {
    value & ((1 << bits) - 1)
}

/// Otherwise 0.
#[inline(always)]
fn only_if(is: bool, value: u64) -> u64 {
    if is {
        value
    } else {
        0
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
    payload: u16,
    window: u16,
    hops: u16,
    pub ip_id: u16,
}

impl Last {
    /// 0 if all that is mostly as before is.
    #[inline(always)]
    fn unlike(&self, segment: &Segment) -> u64 {
        let short = (segment.window ^ self.window) | (hops(segment) ^ self.hops) | self.skipped(segment);
        u64::from(short) | u64::from(segment.seq ^ self.seq)
    }

    /// 0 if the identification is the one after the last, or there is none.
    #[inline(always)]
    fn skipped(&self, segment: &Segment) -> u16 {
        segment.ip_id.map_or(0, |id| id ^ self.ip_id.wrapping_add(1))
    }

    /// Takes over what changes from segment to segment.
    #[inline(always)]
    fn follow(&mut self, segment: &Segment) {
        self.seq = segment.seq.wrapping_add(segment.seq_len());
        self.ack = segment.ack;
        self.payload = segment.payload as u16;
        if let Some(stamps) = segment.options.timestamps {
            (self.tsval, self.tsecr) = stamps;
        }
        if let Some(id) = segment.ip_id {
            self.ip_id = id;
        }
    }
}

/// Time to live and congestion notification.
#[inline(always)]
fn hops(segment: &Segment) -> u16 {
    u16::from_le_bytes([segment.ttl, segment.ecn])
}

/// How far a segment is from what it is measured by.
#[derive(Clone, Copy)]
struct Moved {
    time: u64,
    frames: u64,
    ack: u64,
    tsval: u64,
    tsecr: u64,
}

impl Moved {
    #[inline(always)]
    fn new(last: &Last, segment: &Segment, since: (u64, u64)) -> Self {
        let (tsval, tsecr) = match segment.options.timestamps {
            Some((tsval, tsecr)) => (tsval.wrapping_sub(last.tsval), tsecr.wrapping_sub(last.tsecr)),
            None => (0, 0),
        };
        Self {
            time: since.0,
            frames: since.1,
            ack: segment.ack.wrapping_sub(last.ack).into(),
            tsval: tsval.into(),
            tsecr: tsecr.into(),
        }
    }

    /// What does not fit into the words, mixed: 0 if all does.
    #[inline(always)]
    fn beyond(&self) -> u64 {
        self.time >> TIME_BITS
            | self.frames >> FRAME_BITS
            | self.ack >> ACK_BITS
            | (self.tsval | self.tsecr) >> STAMP_BITS
    }

    /// What the second word has of it.
    #[inline(always)]
    fn answer(&self) -> u64 {
        low(self.ack, ACK_BITS) << ACK | low(self.tsval, STAMP_BITS) << TSVAL | low(self.tsecr, STAMP_BITS) << TSECR
    }
}

/// The beginning of a record, and how many of its bytes are the record's. `rest`: what is behind it.
#[inline(always)]
fn words(last: &Last, end: usize, segment: &Segment, moved: &Moved, shared: bool, rest: u64) -> ([u64; 2], usize) {
    let answer = moved.answer();
    let is_new = segment.payload != u32::from(last.payload);
    let head = u64::from(segment.flags)
        | only_if(end != 0, END)
        | only_if(shared, SHARED)
        | only_if(segment.options.timestamps.is_some(), TIMESTAMPS)
        | only_if(answer != 0, MOVED)
        | only_if(is_new, PAYLOAD)
        | rest;
    let first = head | low(moved.time, TIME_BITS) << TIME | moved.frames << FRAME;
    let second = u64::from(segment.checksum) | answer;
    let length = if answer == 0 { SHORT } else { LONG };
    let payload = only_if(is_new, segment.payload.into());
    let bytes = length + PAYLOAD_BYTES * usize::from(is_new);
    ([first, second | payload << (8 * (length - WORD))], bytes)
}

/// The record of a segment that came `since` (ns, fewer than `FRAMES`) the connection's packet before it, if two words are all
/// of it; and how many of their bytes. The segment has no SACK blocks, its options are whole, its payload is below 65,536
/// bytes, and its flags are those of the field.
#[inline(always)]
pub fn usual(
    last: &mut Last,
    end: usize,
    segment: &Segment,
    since: (u64, u64),
    shared: bool,
) -> Option<([u64; 2], usize)> {
    let moved = Moved::new(last, segment, since);
    if last.unlike(segment) | moved.beyond() != 0 || segment.has(flags::SYN) {
        return None;
    }
    let words = words(last, end, segment, &moved, shared, 0);
    last.follow(segment);
    Some(words)
}

/// The record of any such segment: bytes, and how many they are. `both`: of each end.
#[inline(never)]
pub fn unusual(
    both: &mut [Last; 2],
    end: usize,
    segment: &Segment,
    since: (u64, u64),
    shared: bool,
) -> ([u8; LONGEST], usize) {
    let last = &mut both[end];
    let moved = Moved::new(last, segment, since);
    let mut rest = Rest {
        bytes: [0; REST_MOST],
        length: 0,
        has: 0,
    };
    let far = moved.time >> TIME_BITS | moved.frames >> FRAME_BITS << (u64::BITS - TIME_BITS);
    rest.put_if(far != 0, FAR, far, 8);
    let stamps = moved.tsval >> STAMP_BITS | moved.tsecr >> STAMP_BITS << (u32::BITS - STAMP_BITS);
    let jump = moved.ack >> ACK_BITS | stamps << (u32::BITS - ACK_BITS);
    rest.put_if(jump != 0, JUMP, jump, 8);
    rest.put_if(segment.seq != last.seq, SEQ, segment.seq.into(), 4);
    rest.put_if(segment.window != last.window, WINDOW, segment.window.into(), 2);
    rest.put_if(hops(segment) != last.hops, HOPS, hops(segment).into(), 2);
    let id = segment.ip_id.unwrap_or(0);
    rest.put_if(last.skipped(segment) != 0, IP_ID, id.into(), 2);
    rest.put_if(segment.has(flags::SYN), SYN, syn_options(&segment.options), 4);
    let (words, length) = words(last, end, segment, &moved, shared, rest.has);
    last.follow(segment);
    (last.window, last.hops) = (segment.window, hops(segment));
    if segment.has(flags::SYN) {
        // what the answer will be
        both[1 - end].ack = segment.seq.wrapping_add(1);
        both[1 - end].tsecr = segment.options.timestamps.map_or(0, |(tsval, _)| tsval);
    }
    let mut bytes = [0; LONGEST];
    bytes[..2 * WORD].copy_from_slice(&bytes_of(words));
    bytes[length..][..REST_MOST].copy_from_slice(&rest.bytes);
    (bytes, length + rest.length)
}

/// Fields behind one another, each as a word that the next overlaps.
struct Rest {
    bytes: [u8; REST_MOST],
    length: usize,
    /// Which fields these are.
    has: u64,
}

impl Rest {
    #[inline(always)]
    fn put_if(&mut self, there: bool, bit: u64, value: u64, width: usize) {
        if there {
            self.has |= bit;
            self.bytes[self.length % (REST_MOST - WORD)..][..WORD].copy_from_slice(&value.to_le_bytes());
            self.length += width;
        }
    }
}

fn syn_options(options: &Options) -> u64 {
    only_if(options.mss.is_some(), MSS)
        | only_if(options.window_scale.is_some(), WINDOW_SCALE)
        | only_if(options.sack_permitted, SACK_PERMITTED)
        | u64::from(options.window_scale.unwrap_or(0)) << 8
        | u64::from(options.mss.unwrap_or(0)) << 16
}

/// Records, read in the order in which they were written.
pub struct Reader<'a> {
    bytes: &'a Bytes,
    at: usize,
    /// Where the last record ends.
    end: usize,
    /// The last segment of each end; before it the segment that has both ends' addresses.
    pub last: [Segment; 2],
    /// Timestamps of the last segments that had some.
    stamps: [(u32, u32); 2],
    time_ns: i64,
    frame: u64,
}

impl<'a> Reader<'a> {
    /// The first record counts from 0 ns and frame 0. `end`: bytes that are records. `identified`: the segments have an IP
    /// identification.
    pub fn new(bytes: &'a Bytes, end: usize, ends: [Segment; 2], identified: bool) -> Self {
        Self {
            bytes,
            at: 0,
            end: end.min(MOST),
            // counted on from segment to segment
            last: ends.map(|end| Segment {
                ip_id: identified.then_some(0),
                ..end
            }),
            stamps: [(0, 0); 2],
            time_ns: 0,
            frame: 0,
        }
    }

    /// The word here, of which some bytes are passed over.
    #[inline(always)]
    fn word(&mut self, width: usize) -> u64 {
        let mut word = [0; WORD];
        word.copy_from_slice(&self.bytes[self.at % MOST..][..WORD]);
        self.at += width;
        u64::from_le_bytes(word)
    }

    /// The end that sent the next segment, which is in `last` then, and whether its host was known to share its counter of
    /// identifications.
    #[inline(always)]
    pub fn next(&mut self) -> Option<(usize, bool)> {
        if self.at >= self.end {
            return None;
        }
        let head = self.word(WORD);
        let has_moved = head & MOVED != 0;
        let second_bytes = if has_moved { LONG } else { SHORT } - WORD;
        let second = self.word(second_bytes);
        let answer = if has_moved { second } else { 0 };
        let end = usize::from(head & END != 0);
        let mut moved = Moved {
            time: low(head >> TIME, TIME_BITS),
            frames: head >> FRAME,
            ack: low(answer >> ACK, ACK_BITS),
            tsval: low(answer >> TSVAL, STAMP_BITS),
            tsecr: low(answer >> TSECR, STAMP_BITS),
        };
        let segment = &mut self.last[end];
        segment.seq = segment.seq.wrapping_add(segment.seq_len());
        segment.flags = (head & FLAGS) as u16;
        if head & PAYLOAD != 0 {
            segment.payload = u32::from((second >> (8 * second_bytes)) as u16);
            self.at += PAYLOAD_BYTES;
        }
        segment.checksum = second as u16;
        if let Some(id) = &mut segment.ip_id {
            *id = id.wrapping_add(1);
        }
        let options = &mut segment.options;
        (options.sack_permitted, options.incomplete, options.mss) = (false, false, None);
        (options.sack_len, options.window_scale) = (0, None);
        if head & REST != 0 {
            moved = self.rest(head, end, moved);
        }
        self.time_ns = self.time_ns.wrapping_add(moved.time as i64);
        self.frame += moved.frames;
        let (segment, stamps) = (&mut self.last[end], &mut self.stamps[end]);
        (segment.time_ns, segment.frame) = (self.time_ns, self.frame);
        segment.ack = segment.ack.wrapping_add(moved.ack as u32);
        stamps.0 = stamps.0.wrapping_add(moved.tsval as u32);
        stamps.1 = stamps.1.wrapping_add(moved.tsecr as u32);
        segment.options.timestamps = (head & TIMESTAMPS != 0).then_some(*stamps);
        Some((end, head & SHARED != 0))
    }

    /// The fields behind the words.
    #[inline(never)]
    fn rest(&mut self, head: u64, end: usize, mut moved: Moved) -> Moved {
        let has = |bit| head & bit != 0;
        if has(FAR) {
            let far = self.word(8);
            moved.time |= low(far, u64::BITS - TIME_BITS) << TIME_BITS;
            moved.frames |= far >> (u64::BITS - TIME_BITS) << FRAME_BITS;
        }
        if has(JUMP) {
            let jump = self.word(8);
            let stamps = jump >> (u32::BITS - ACK_BITS);
            let stamp_bits = u32::BITS - STAMP_BITS;
            moved.ack |= low(jump, u32::BITS - ACK_BITS) << ACK_BITS;
            moved.tsval |= low(stamps, stamp_bits) << STAMP_BITS;
            moved.tsecr |= low(stamps >> stamp_bits, stamp_bits) << STAMP_BITS;
        }
        if has(SEQ) {
            self.last[end].seq = self.word(4) as u32;
        }
        if has(WINDOW) {
            self.last[end].window = self.word(2) as u16;
        }
        if has(HOPS) {
            let [ttl, ecn] = (self.word(2) as u16).to_le_bytes();
            (self.last[end].ttl, self.last[end].ecn) = (ttl, ecn);
        }
        if has(IP_ID) {
            self.last[end].ip_id = Some(self.word(2) as u16);
        }
        if has(SYN) {
            let syn = self.word(4);
            let options = &mut self.last[end].options;
            options.mss = (syn & MSS != 0).then_some((syn >> 16) as u16);
            options.window_scale = (syn & WINDOW_SCALE != 0).then_some((syn >> 8) as u8);
            options.sack_permitted = syn & SACK_PERMITTED != 0;
            self.last[1 - end].ack = self.last[end].seq.wrapping_add(1);
            let tsval = self.stamps[end].0.wrapping_add(moved.tsval as u32);
            self.stamps[1 - end].1 = if has(TIMESTAMPS) { tsval } else { 0 };
        }
        moved
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
            let mut next = names;
            for _ in 0..MOST / LONGEST {
                let end = chance(&mut state, 2) as usize;
                let since = (any(&mut state, 50), any(&mut state, 40));
                time_ns += since.0 as i64;
                frame += since.1;
                let segment = &mut next[end];
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
                segment.options.sack_permitted = false;
                if segment.has(flags::SYN) {
                    segment.options.mss = (chance(&mut state, 2) > 0).then(|| any(&mut state, 16) as u16);
                    segment.options.window_scale = (chance(&mut state, 2) > 0).then(|| any(&mut state, 8) as u8);
                    segment.options.sack_permitted = chance(&mut state, 2) > 0;
                }
                let shared = chance(&mut state, 2) > 0;
                if let Some((words, length)) = usual(&mut last[end], end, segment, since, shared) {
                    bytes.extend(&bytes_of(words)[..length]);
                } else {
                    let (record, length) = unusual(&mut last, end, segment, since, shared);
                    bytes.extend(&record[..length]);
                }
                sent.push((end, *segment, shared));
            }
            let mut records = [0; size_of::<Bytes>()];
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
