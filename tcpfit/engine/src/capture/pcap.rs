//! pcap records (draft-ietf-opsawg-pcap): both byte orders, microseconds and nanoseconds, old versions, and the longer
//! record headers of patched libpcaps (Kuznetzov's, Nokia's), which some wrote without saying so.

use super::block::{Block, NEAR};
use super::format::{Format, PcapVariant};
use super::record::{words, Place, Record, Step, MAX_RECORD};
use super::Info;
use crate::segment::Direction;

const FILE_HEADER: usize = 24;
/// Record headers known: the standard's, Kuznetzov's of 1999-10-29 and 1999-04-17, his of 1999-09-15, and Nokia's.
const HEADERS: [usize; 4] = [16, 24, 28, 20];
/// Records looked at to tell which of them a file has, and bytes at most.
const LOOKED_AT: usize = 4;
const WINDOW: usize = 64 << 10;

/// The lengths of a record changed places between versions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    WireFirst,
    /// Version 2.3 was written in both ways: the smaller is what was captured.
    Either,
}
/// What record headers of every variant begin with: seconds, fraction, captured and original length.
const RECORD_HEADER: usize = 16;

pub struct Pcap {
    /// Little-endian, with the standard's record header: what nearly all are.
    usual: bool,
    /// Nanoseconds of what the fraction of a second counts.
    fraction_ns: i64,
    variant: PcapVariant,
    header: usize,
    lengths: Lengths,
    link_type: u32,
}

impl Pcap {
    /// Reads the file header; `Err` says why it is none.
    pub fn open(block: &mut Block, variant: PcapVariant) -> Result<Self, String> {
        let head = block.peek(FILE_HEADER);
        let Some(head) = head.get(..FILE_HEADER) else {
            return Err(format!(
                "pcap file header cut, {} of {FILE_HEADER} bytes; copy the capture again",
                head.len()
            ));
        };
        // the upper half holds the length of the frame check sequence, which no IP length counts
        let link_type = variant.u32(head, 20) & 0xffff;
        // libpcap, sf-pcap.c: before 2.3, and on Digital Unix (543.0), the length on the wire came first
        let lengths = match (variant.u16(head, 4), variant.u16(head, 6)) {
            (2, 0..=2) | (543, 0) => Lengths::WireFirst,
            (2, 3) => Lengths::Either,
            _ => Lengths::CapturedFirst,
        };
        block.consume(FILE_HEADER);
        let mut pcap = Self {
            usual: false,
            fraction_ns: if variant.nanoseconds { 1 } else { 1000 },
            variant,
            header: if variant.modified { 24 } else { 16 },
            lengths,
            link_type,
        };
        let window = block.peek(WINDOW);
        if pcap.records(window, pcap.header).is_none() {
            let fits = |&header: &usize| pcap.records(window, header).is_some_and(|records| records >= 2);
            pcap.header = HEADERS.into_iter().find(fits).unwrap_or(pcap.header);
        }
        let standard = pcap.header == RECORD_HEADER && lengths == Lengths::CapturedFirst;
        pcap.usual = standard && !variant.big_endian;
        Ok(pcap)
    }

    /// Whole records at the beginning with headers of this length, `None` where one of them makes no sense.
    fn records(&self, window: &[u8], header: usize) -> Option<usize> {
        let fraction_ends = if self.variant.nanoseconds {
            1_000_000_000
        } else {
            1_000_000
        };
        let mut rest = window;
        for whole in 0..LOOKED_AT {
            let Some(fields) = rest.first_chunk().filter(|_| rest.len() >= header) else {
                return Some(whole);
            };
            let words = self.variant.words(fields);
            let (captured, wire) = self.lengths(words);
            if captured > MAX_RECORD || captured > wire as usize || words[1] >= fraction_ends {
                return None;
            }
            match rest.get(header + captured..) {
                Some(after) => rest = after,
                None => return Some(whole),
            }
        }
        Some(LOOKED_AT)
    }

    /// Bytes captured and bytes on the wire.
    #[inline]
    fn lengths(&self, [_, _, first, second]: [u32; 4]) -> (usize, u32) {
        let swapped = match self.lengths {
            Lengths::CapturedFirst => false,
            Lengths::WireFirst => true,
            Lengths::Either => first > second,
        };
        if swapped {
            (second as usize, first)
        } else {
            (first as usize, second)
        }
    }

    pub fn link_type(&self) -> u32 {
        self.link_type
    }

    /// Makes sure that the next record is at hand, or is another file's; what is said otherwise.
    #[cold]
    #[inline(never)]
    pub fn step(&mut self, block: &mut Block, info: &mut Info) -> Step {
        while let Some(variant) = PcapVariant::of_another_file(block.peek(FILE_HEADER)) {
            let (frame, byte) = (info.packets + 1, block.offset());
            let there = block.at_hand().len();
            match Self::open(block, variant) {
                Ok(pcap) => *self = pcap,
                Err(_) => return Step::Damaged(format!("pcap file header cut, {there} of {FILE_HEADER} bytes")),
            }
            info.add_link_type(self.link_type);
            info.warnings.add("another file", || {
                format!("frame {frame} (byte {byte}): another pcap file begins here; it is read as part of this one")
            });
        }
        let header = self.header;
        let bytes = block.peek(header);
        let Some(fields) = bytes.first_chunk().filter(|_| bytes.len() >= header) else {
            return Step::short(bytes.len(), header, "record header");
        };
        let (captured, _) = self.lengths(self.variant.words(fields));
        if captured > MAX_RECORD {
            return Step::Damaged(format!(
                "record length {captured} is beyond {MAX_RECORD}, the capture is damaged"
            ));
        }
        let available = block.peek(header + captured).len();
        if available < header + captured {
            return Step::short(available - header, captured, "record");
        }
        Step::Record(self.whole_record(block))
    }

    /// The next record, if all of it is at hand and it has bytes: one of none may be the header of another file.
    #[inline(always)]
    pub fn record(&self, block: &mut Block) -> Option<Record> {
        if !self.usual {
            return self.any_record(block);
        }
        let bytes = block.at_hand();
        let fields = words(bytes.first_chunk::<RECORD_HEADER>()?);
        let captured = fields[2] as usize;
        if RECORD_HEADER + captured > bytes.len() {
            return None;
        }
        // a question less than asking every record both: the small may have no bytes, the large too many
        let at = if captured > NEAR {
            if captured > MAX_RECORD {
                return None;
            }
            let at = block.consume(RECORD_HEADER + captured);
            block.prefetch_apart();
            at
        } else {
            if captured == 0 {
                return None;
            }
            let at = block.consume(RECORD_HEADER + captured);
            block.prefetch();
            at
        } + RECORD_HEADER;
        Some(self.record_of(fields, at, captured, fields[3], Direction::Unknown))
    }

    /// The same of any variant.
    #[inline(never)]
    fn any_record(&self, block: &mut Block) -> Option<Record> {
        let bytes = block.at_hand();
        let (captured, _) = self.lengths(self.variant.words(bytes.first_chunk()?));
        let believed = (1..=MAX_RECORD).contains(&captured);
        (believed && self.header + captured <= bytes.len()).then(|| self.whole_record(block))
    }

    /// The record of any variant that is at hand.
    fn whole_record(&self, block: &mut Block) -> Record {
        let header = self.header;
        let bytes = block.at_hand();
        let fields = self
            .variant
            .words(&bytes[..RECORD_HEADER].try_into().expect("as many bytes"));
        let (captured, wire_len) = self.lengths(fields);
        let direction = match (header >= 24).then(|| bytes[22]) {
            Some(0) => Direction::Inbound,
            Some(4) => Direction::Outbound,
            _ => Direction::Unknown,
        };
        let at = block.consume(header + captured) + header;
        self.record_of(fields, at, captured, wire_len, direction)
    }

    #[inline(always)]
    fn record_of(
        &self,
        [seconds, fraction, ..]: [u32; 4],
        at: usize,
        len: usize,
        wire_len: u32,
        direction: Direction,
    ) -> Record {
        Record {
            time_ns: i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * self.fraction_ns,
            link_type: self.link_type,
            wire_len,
            direction,
            place: Place { at, len },
        }
    }
}

impl PcapVariant {
    /// What a record's place holds that is the header of another file, as `cat` leaves it: the magic, a version, and no
    /// accuracy of times, which every known program writes as 0. As a record it would be of 2055 or later, and a packet
    /// that had no bytes.
    fn of_another_file(head: &[u8]) -> Option<Self> {
        let Some(Format::Pcap(variant)) = Format::recognise(head) else {
            return None;
        };
        let head: &[u8; RECORD_HEADER] = head.first_chunk()?;
        let version = (variant.u16(head, 4), variant.u16(head, 6));
        (matches!(version, (2, 0..=4) | (543, 0)) && variant.u32(head, 12) == 0).then_some(variant)
    }

    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let field = [bytes[at], bytes[at + 1]];
        if self.big_endian {
            u16::from_be_bytes(field)
        } else {
            u16::from_le_bytes(field)
        }
    }

    /// The words of a record header at once: one question for the byte order.
    fn words(self, fields: &[u8; RECORD_HEADER]) -> [u32; 4] {
        let words = words(fields);
        if self.big_endian {
            words.map(u32::swap_bytes)
        } else {
            words
        }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.big_endian {
            u32::from_be_bytes(field)
        } else {
            u32::from_le_bytes(field)
        }
    }
}
