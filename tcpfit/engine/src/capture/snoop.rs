//! Records of snoop (RFC 1761), Solaris's capture program: everything in network byte order.

use super::block::Block;
use super::link_type;
use super::record::{Place, Record, Step, MAX_RECORD};
use super::Info;
use crate::segment::Direction;

const FILE_HEADER: usize = 16;
const RECORD_HEADER: usize = 24;
const VERSION: u32 = 2;

pub struct Snoop {
    link_type: u32,
    /// The interface's count so far, as the last record has it.
    drops: u32,
}

impl Snoop {
    /// Reads the file header; `Err` says why its records cannot be read.
    pub fn open(block: &mut Block) -> Result<Self, String> {
        let head = block.peek(FILE_HEADER);
        let Some(head) = head.get(..FILE_HEADER) else {
            return Err(format!(
                "snoop file header cut, {} of {FILE_HEADER} bytes; copy the capture again",
                head.len()
            ));
        };
        let (version, data_link) = (be32(head, 8), be32(head, 12));
        // the registry of RFC 1761, section 4
        let link_type = match data_link {
            0 | 4 => link_type::ETHERNET,
            2 => link_type::TOKEN_RING,
            8 => link_type::FDDI,
            _ => {
                return Err(format!(
                    "a snoop capture of data link {data_link}, which tcpfit does not read; convert it with editcap"
                ))
            }
        };
        if version != VERSION {
            return Err(format!(
                "a snoop capture of version {version}, and tcpfit reads {VERSION}; convert it with editcap"
            ));
        }
        block.consume(FILE_HEADER);
        Ok(Self { link_type, drops: 0 })
    }

    pub fn link_type(&self) -> u32 {
        self.link_type
    }

    #[cold]
    pub fn step(&mut self, block: &mut Block, info: &mut Info) -> Step {
        let bytes = block.peek(RECORD_HEADER);
        let Some(fields) = bytes.get(..RECORD_HEADER) else {
            return Step::short(bytes.len(), RECORD_HEADER, "record header");
        };
        let (wire_len, captured, total) = (be32(fields, 0), be32(fields, 4) as usize, be32(fields, 8) as usize);
        let drops = be32(fields, 12);
        let time_ns = i64::from(be32(fields, 16)) * 1_000_000_000 + i64::from(be32(fields, 20)) * 1000;
        // the record is padded, by RFC 1761 to 32 bits
        if captured > MAX_RECORD || total < RECORD_HEADER + captured || total > RECORD_HEADER + 2 * MAX_RECORD {
            return Step::Damaged(format!(
                "record length {total} around {captured} bytes is impossible, the capture is damaged"
            ));
        }
        let available = block.peek(total).len();
        // the padding of the last may be missing
        if available < RECORD_HEADER + captured {
            return Step::short(available - RECORD_HEADER, captured, "record");
        }
        let at = block.consume(total);
        if drops > self.drops {
            self.drops = drops;
            info.interface_drops = Some(u64::from(drops));
        }
        Step::Record(Record {
            time_ns,
            link_type: self.link_type,
            wire_len,
            direction: Direction::Unknown,
            place: Place {
                at: at + RECORD_HEADER,
                len: captured,
            },
        })
    }
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
