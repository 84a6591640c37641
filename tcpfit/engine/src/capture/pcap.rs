//! pcap records (draft-ietf-opsawg-pcap): both byte orders, microseconds and nanoseconds, Kuznetzov's variant.

use super::block::Block;
use super::format::PcapVariant;
use super::record::{Place, Record, Step, MAX_RECORD};
use crate::segment::Direction;

const FILE_HEADER: usize = 24;
/// What record headers of every variant begin with: seconds, fraction, captured and original length.
const RECORD_HEADER: usize = 16;

pub struct Pcap {
    variant: PcapVariant,
    header: usize,
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
        block.consume(FILE_HEADER);
        Ok(Self {
            variant,
            header: if variant.modified { 24 } else { 16 },
            link_type,
        })
    }

    pub fn link_type(&self) -> u32 {
        self.link_type
    }

    #[inline]
    pub fn step(&self, block: &mut Block) -> Step {
        let header = self.header;
        let bytes = block.peek(header);
        let Some((fields, _)) = bytes.split_first_chunk().filter(|_| bytes.len() >= header) else {
            return Step::short(bytes.len(), header, "record header");
        };
        let variant = self.variant;
        let [seconds, fraction, captured, wire_len] = variant.words(fields);
        let captured = captured as usize;
        if captured > MAX_RECORD {
            return Step::Damaged(format!(
                "record length {captured} is beyond {MAX_RECORD}, the capture is damaged"
            ));
        }
        let fraction = i64::from(fraction);
        let nanoseconds = if variant.nanoseconds { fraction } else { fraction * 1000 };
        let time_ns = i64::from(seconds) * 1_000_000_000 + nanoseconds;
        let direction = match variant.modified.then(|| bytes[22]) {
            Some(0) => Direction::Inbound,
            Some(4) => Direction::Outbound,
            _ => Direction::Unknown,
        };
        let total = header + captured;
        let available = block.peek(total).len();
        if available < total {
            return Step::short(available - header, captured, "record");
        }
        let at = block.consume(total);
        Step::Record(Record {
            time_ns,
            link_type: self.link_type,
            wire_len,
            direction,
            place: Place {
                at: at + header,
                len: captured,
            },
        })
    }
}

impl PcapVariant {
    /// The words of a record header at once: one question for the byte order.
    #[inline]
    fn words(self, fields: &[u8; RECORD_HEADER]) -> [u32; 4] {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(fields.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
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
