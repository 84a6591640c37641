//! pcapng blocks (draft-ietf-opsawg-pcapng): several sections, each with its byte order, and several interfaces.

use super::block::{Block, NEAR};
use super::interface::Interface;
use super::record::{words, Place, Record, Step, MAX_RECORD};
use super::Info;
use crate::segment::Direction;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
/// Obsolete, as old dumpcap wrote it.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Type, length and the length again at the end.
const SMALLEST: usize = 12;
/// Type, length and the fields of an enhanced packet block; its data follow.
const PACKET_HEADER: usize = 28;
/// A record and generous options; blocks of other types may have any length, they are passed over.
const LONGEST: usize = MAX_RECORD + (256 << 10);

/// Interfaces of a section that are remembered.
const INTERFACES: usize = 1 << 16;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

#[derive(Default)]
pub struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Interface>,
    /// Time of the last packet, for blocks that have none.
    last_ns: i64,
}

impl Pcapng {
    /// Looks at the first section header; `Err` says why it is none.
    pub fn open(block: &mut Block) -> Result<Self, String> {
        let head = block.peek(SMALLEST);
        let Some(head) = head.get(..SMALLEST) else {
            return Err(format!(
                "pcapng section header cut, {} of 28 bytes; copy the capture again",
                head.len()
            ));
        };
        let order =
            ByteOrder::of_section(head).ok_or("pcapng section header without byte-order magic; copy it again")?;
        let total = order.u32(head, 4) as usize;
        let available = block.peek(total.min(LONGEST)).len();
        if available < total {
            return Err(format!(
                "pcapng section header cut, {available} of {total} bytes; copy the capture again"
            ));
        }
        Ok(Self {
            order,
            ..Self::default()
        })
    }

    /// The next packet. Nearly every block of a capture is one that `record` reads; all others have the long way.
    #[inline(always)]
    pub fn step(&mut self, block: &mut Block, info: &mut Info) -> Step {
        match self.record(block) {
            Some(record) => Step::Record(record),
            None => self.any_block(block, info),
        }
    }

    /// The next record, if it is a little-endian enhanced packet block that is whole and at hand, and there is nothing to
    /// warn of and no drop to count. All that is asked here is asked by `any_block` too, which tells what is amiss.
    #[inline(always)]
    pub fn record(&mut self, block: &mut Block) -> Option<Record> {
        if self.order != ByteOrder::Little {
            return None;
        }
        let bytes = block.at_hand();
        let header = bytes.first_chunk::<PACKET_HEADER>()?;
        let [kind, length, interface_id, upper, lower, captured, wire_len] = words(header);
        if kind != ENHANCED_PACKET {
            return None;
        }
        // in 64 bits, which no length overflows
        let data_end = PACKET_HEADER as u64 + u64::from(captured).next_multiple_of(4);
        let options_length = u64::from(length).checked_sub(data_end + 4)?;
        let (total, captured) = (length as usize, captured as usize);
        if total > LONGEST {
            return None;
        }
        let (body, repeated) = bytes.get(..total)?.split_last_chunk()?;
        if u32::from_le_bytes(*repeated) != length {
            return None;
        }
        let interface = self.interfaces.get(interface_id as usize)?;
        let direction = if options_length == 0 {
            Direction::Unknown
        } else {
            self.order.direction_alone(body.get(data_end as usize..)?)?
        };
        let time_ns = interface.time_ns(u64::from(upper) << 32 | u64::from(lower));
        self.last_ns = time_ns;
        let at = block.consume(total);
        if total > NEAR {
            block.prefetch_apart();
        } else {
            block.prefetch();
        }
        Some(Record {
            time_ns,
            link_type: interface.link_type,
            wire_len,
            direction,
            place: Place {
                at: at + PACKET_HEADER,
                len: captured,
            },
        })
    }

    /// The next packet, whatever blocks are before it; what is said where there is none.
    #[inline(never)]
    fn any_block(&mut self, block: &mut Block, info: &mut Info) -> Step {
        loop {
            let byte = block.offset();
            let bytes = block.peek(SMALLEST);
            let Some(head) = bytes.get(..SMALLEST) else {
                return Step::short(bytes.len(), SMALLEST, "block header");
            };
            let is_section = head[..4] == SECTION_HEADER.to_be_bytes();
            if is_section {
                match ByteOrder::of_section(head) {
                    Some(order) => self.order = order,
                    None => return Step::Damaged("section header without byte-order magic".into()),
                }
            }
            let kind = self.order.u32(head, 0);
            let length = self.order.u32(head, 4);
            if (length as usize) < SMALLEST {
                return Step::Damaged(format!(
                    "block length {length} is under {SMALLEST}, the capture is damaged"
                ));
            }
            // lengths that are no multiple of 4 have been seen; the block is padded all the same
            let total = (length as usize).next_multiple_of(4);
            if !matches!(
                kind,
                SECTION_HEADER | INTERFACE_DESCRIPTION..=SIMPLE_PACKET | INTERFACE_STATISTICS | ENHANCED_PACKET
            ) {
                let passed = block.skip(total as u64) as usize;
                if passed < total {
                    return Step::short(passed, total, "block");
                }
                continue;
            }
            if total > LONGEST {
                return Step::Damaged(format!(
                    "block length {length} is beyond {LONGEST}, the capture is damaged"
                ));
            }
            let bytes = block.peek(total);
            let Some(bytes) = bytes.get(..total) else {
                return Step::short(bytes.len(), total, "block");
            };
            let repeated = self.order.u32(bytes, total - 4);
            if repeated != length {
                return Step::Damaged(format!("block length {length} at its start, {repeated} at its end"));
            }
            let body = &bytes[8..total - 4];
            let step = match kind {
                ENHANCED_PACKET => self.enhanced_packet(body, info, byte),
                SIMPLE_PACKET => self.simple_packet(body, info, byte),
                PACKET => self.packet(body, info, byte),
                SECTION_HEADER => {
                    self.interfaces.clear();
                    None
                }
                INTERFACE_DESCRIPTION => self.interface_description(body, info).err(),
                _ => {
                    self.interface_statistics(body, info);
                    None
                }
            };
            match step {
                // what cannot be read further stays unread, so that its place can be told
                Some(Step::Damaged(sentence)) => return Step::Damaged(sentence),
                Some(Step::Record(mut record)) => {
                    record.place.at += block.consume(total) + 8;
                    return Step::Record(record);
                }
                Some(step) => {
                    block.consume(total);
                    return step;
                }
                None => block.consume(total),
            };
        }
    }

    #[inline]
    fn enhanced_packet(&mut self, body: &[u8], info: &mut Info, byte: u64) -> Option<Step> {
        const FIXED: usize = 20;
        let Some(fields) = body.get(..FIXED) else {
            return Some(Step::Damaged("enhanced packet block cut short".into()));
        };
        let order = self.order;
        let captured = order.u32(fields, 12) as usize;
        let Some(options) = padded(FIXED, captured).and_then(|end| body.get(end..)) else {
            return Some(beyond(captured, body));
        };
        let interface_id = order.u32(fields, 0) as usize;
        let Some(interface) = self.interfaces.get_mut(interface_id) else {
            return undescribed(info, byte);
        };
        let ticks = u64::from(order.u32(fields, 4)) << 32 | u64::from(order.u32(fields, 8));
        let time_ns = interface.time_ns(ticks);
        let link_type = interface.link_type;
        let mut direction = Direction::Unknown;
        if !options.is_empty() {
            let mut dropped = None;
            for (code, value) in order.options(options) {
                match (code, value.len()) {
                    (2, 4) => direction = inbound_or_outbound(order.u32(value, 0)),
                    (4, 8) => dropped = Some(order.u64(value)),
                    _ => {}
                }
            }
            if let Some(dropped) = dropped {
                count(info, interface, |interface| interface.count_dropped(dropped));
            }
        }
        self.last_ns = time_ns;
        Some(Step::Record(Record {
            time_ns,
            link_type,
            wire_len: order.u32(fields, 16),
            direction,
            place: Place {
                at: FIXED,
                len: captured,
            },
        }))
    }

    /// A simple packet block has neither time nor interface: it belongs to the section's first.
    #[cold]
    fn simple_packet(&mut self, body: &[u8], info: &mut Info, byte: u64) -> Option<Step> {
        const FIXED: usize = 4;
        let Some(fields) = body.get(..FIXED) else {
            return Some(Step::Damaged("simple packet block cut short".into()));
        };
        let Some(interface) = self.interfaces.first() else {
            return undescribed(info, byte);
        };
        let wire_len = self.order.u32(fields, 0);
        let snap_len = if interface.snap_len == 0 {
            u32::MAX
        } else {
            interface.snap_len
        };
        let captured = (wire_len.min(snap_len) as usize).min(body.len() - FIXED);
        let frame = info.packets + 1;
        info.warnings.add("no time", || {
            format!("frame {frame}: a simple packet block has no time; the time of the packet before it is used")
        });
        Some(Step::Record(Record {
            time_ns: self.last_ns,
            link_type: interface.link_type,
            wire_len,
            direction: Direction::Unknown,
            place: Place {
                at: FIXED,
                len: captured,
            },
        }))
    }

    /// The obsolete packet block: as the enhanced one, with 16 bits for the interface and 16 for drops.
    #[cold]
    fn packet(&mut self, body: &[u8], info: &mut Info, byte: u64) -> Option<Step> {
        const FIXED: usize = 20;
        let Some(fields) = body.get(..FIXED) else {
            return Some(Step::Damaged("packet block cut short".into()));
        };
        let order = self.order;
        let captured = order.u32(fields, 12) as usize;
        let Some(options) = padded(FIXED, captured).and_then(|end| body.get(end..)) else {
            return Some(beyond(captured, body));
        };
        let interface_id = usize::from(order.u16(fields, 0));
        let Some(interface) = self.interfaces.get_mut(interface_id) else {
            return undescribed(info, byte);
        };
        let flags = order
            .options(options)
            .find(|(code, value)| (*code, value.len()) == (2, 4));
        let direction = flags.map_or(Direction::Unknown, |(_, value)| {
            inbound_or_outbound(order.u32(value, 0))
        });
        let ticks = u64::from(order.u32(fields, 4)) << 32 | u64::from(order.u32(fields, 8));
        let time_ns = interface.time_ns(ticks);
        let link_type = interface.link_type;
        let dropped = order.u16(fields, 2);
        if dropped != u16::MAX {
            count(info, interface, |interface| interface.count_dropped(u64::from(dropped)));
        }
        self.last_ns = time_ns;
        Some(Step::Record(Record {
            time_ns,
            link_type,
            wire_len: order.u32(fields, 16),
            direction,
            place: Place {
                at: FIXED,
                len: captured,
            },
        }))
    }

    #[cold]
    fn interface_description(&mut self, body: &[u8], info: &mut Info) -> Result<(), Step> {
        let Some(fields) = body.get(..8) else {
            return Err(Step::Damaged("interface description block cut short".into()));
        };
        let order = self.order;
        let link_type = u32::from(order.u16(fields, 0));
        let mut interface = Interface::new(link_type, order.u32(fields, 4));
        for (code, value) in order.options(&body[8..]) {
            match (code, value) {
                (9, [resolution]) => interface.set_resolution(*resolution),
                (14, [_, _, _, _, _, _, _, _]) => interface.set_offset(order.u64(value) as i64),
                _ => {}
            }
        }
        if self.interfaces.len() == INTERFACES {
            info.warnings.add("interfaces", || {
                format!("a section describes more than {INTERFACES} interfaces; packets of further ones are skipped")
            });
            return Ok(());
        }
        self.interfaces.push(interface);
        info.add_link_type(link_type);
        Ok(())
    }

    #[cold]
    fn interface_statistics(&mut self, body: &[u8], info: &mut Info) {
        let (Some(fields), Some(options)) = (body.get(..12), body.get(12..)) else {
            return;
        };
        let order = self.order;
        let Some(interface) = self.interfaces.get_mut(order.u32(fields, 0) as usize) else {
            return;
        };
        let mut dropped = None;
        for (code, value) in order.options(options) {
            // isb_ifdrop and isb_osdrop: by the interface and by the operating system
            if matches!((code, value.len()), (5 | 7, 8)) {
                dropped = Some(dropped.unwrap_or(0u64).saturating_add(order.u64(value)));
            }
        }
        if let Some(dropped) = dropped {
            count(info, interface, |interface| interface.report_dropped(dropped));
        }
    }
}

/// Passes over the packet in the block at that byte: it is counted, and cannot be read.
#[cold]
fn undescribed(info: &mut Info, byte: u64) -> Option<Step> {
    info.packets += 1;
    let frame = info.packets;
    info.warnings.add("undescribed", || {
        format!("frame {frame} (byte {byte}): packet of an interface that was not described; packet skipped")
    });
    None
}

#[cold]
fn beyond(captured: usize, body: &[u8]) -> Step {
    Step::Damaged(format!(
        "captured length {captured} is beyond its block of {}",
        body.len()
    ))
}

/// Changes what an interface dropped, and the sum of all.
#[cold]
fn count(info: &mut Info, interface: &mut Interface, change: impl FnOnce(&mut Interface)) {
    let before = interface.dropped().unwrap_or(0);
    change(interface);
    let after = interface.dropped().unwrap_or(0);
    let sum = info.interface_drops.unwrap_or(0).saturating_sub(before);
    info.interface_drops = Some(sum.saturating_add(after));
}

/// Bits 0-1 of `epb_flags` (section 4.3.1).
fn inbound_or_outbound(flags: u32) -> Direction {
    match flags & 3 {
        1 => Direction::Inbound,
        2 => Direction::Outbound,
        _ => Direction::Unknown,
    }
}

/// End of `captured` bytes from `start`, padded to 32 bits.
#[inline]
fn padded(start: usize, captured: usize) -> Option<usize> {
    start.checked_add(captured)?.checked_next_multiple_of(4)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ByteOrder {
    #[default]
    Little,
    Big,
}

impl ByteOrder {
    fn of_section(head: &[u8]) -> Option<Self> {
        [Self::Little, Self::Big]
            .into_iter()
            .find(|order| order.u32(head, 8) == BYTE_ORDER_MAGIC)
    }

    #[inline]
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Self::Little => u32::from_le_bytes(field),
            Self::Big => u32::from_be_bytes(field),
        }
    }

    #[inline]
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let field = [bytes[at], bytes[at + 1]];
        match self {
            Self::Little => u16::from_le_bytes(field),
            Self::Big => u16::from_be_bytes(field),
        }
    }

    /// Options hold 64-bit numbers in the section's byte order.
    fn u64(self, value: &[u8]) -> u64 {
        let (first, second) = (u64::from(self.u32(value, 0)), u64::from(self.u32(value, 4)));
        match self {
            Self::Little => second << 32 | first,
            Self::Big => first << 32 | second,
        }
    }

    /// The direction that a packet's options tell; `None` where they count drops too, or have not the length of options.
    #[inline(never)]
    fn direction_alone(self, options: &[u8]) -> Option<Direction> {
        if !options.len().is_multiple_of(4) {
            return None;
        }
        let mut direction = Direction::Unknown;
        for (code, value) in self.options(options) {
            match (code, value.len()) {
                (2, 4) => direction = inbound_or_outbound(self.u32(value, 0)),
                (4, 8) => return None,
                _ => {}
            }
        }
        Some(direction)
    }

    /// Code and value of each option (section 3.5); ends at the end marker or where a length leads outside.
    fn options(self, mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
        std::iter::from_fn(move || {
            let head = rest.get(..4)?;
            let (code, length) = (self.u16(head, 0), usize::from(self.u16(head, 2)));
            if code == 0 {
                return None;
            }
            let value = rest.get(4..4 + length)?;
            rest = rest.get(padded(4, length)?..).unwrap_or_default();
            Some((code, value))
        })
    }
}
