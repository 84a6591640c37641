//! pcap records (draft-ietf-opsawg-pcap): both byte orders, microseconds and nanoseconds, Kuznetzov's variant.

use super::block::Block;
use super::format::PcapVariant;
use super::record::{Place, Record, Step, MAX_RECORD};
use crate::segment::Direction;

const FILE_HEADER: usize = 24;

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
        let Some(fields) = bytes.get(..header) else {
            return Step::short(bytes.len(), header, "record header");
        };
        let variant = self.variant;
        let captured = variant.u32(fields, 8) as usize;
        if captured > MAX_RECORD {
            return Step::Damaged(format!(
                "record length {captured} is beyond {MAX_RECORD}, the capture is damaged"
            ));
        }
        let fraction = i64::from(variant.u32(fields, 4));
        let nanoseconds = if variant.nanoseconds { fraction } else { fraction * 1000 };
        let time_ns = i64::from(variant.u32(fields, 0)) * 1_000_000_000 + nanoseconds;
        let wire_len = variant.u32(fields, 12);
        let direction = match variant.modified.then(|| fields[22]) {
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
    #[inline]
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.big_endian {
            u32::from_be_bytes(field)
        } else {
            u32::from_le_bytes(field)
        }
    }
}
