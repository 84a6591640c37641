//! Bytes -> packets. A capture is read once, in blocks, and never held in memory.

mod block;
mod error;
mod format;
mod frames;
mod input;
mod interface;
pub mod link_type;
mod mapped;
mod pcap;
mod pcapng;
mod pipe;
mod record;
mod snoop;
mod view;
mod warnings;

use block::Block;
pub use error::CaptureError;
use format::Format;
use input::Input;
pub use input::{Compression, Interrupt, Position};
use record::Step;
pub use warnings::Warnings;

use std::path::Path;

use crate::segment::Direction;

/// Link types that are told.
const LINK_TYPES: usize = 64;

/// One packet, borrowed from the capture until the next is read.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// From 1, as Wireshark counts.
    pub frame: u64,
    pub time_ns: i64,
    pub link_type: u32,
    /// Bytes on the wire; `data` may be shorter (snapshot length).
    pub wire_len: u32,
    pub direction: Direction,
    pub data: &'a [u8],
}

/// What is known of a capture besides its packets.
#[derive(Clone, Debug)]
pub struct Info {
    pub format: &'static str,
    pub compression: Compression,
    /// In order of appearance.
    pub link_types: Vec<u32>,
    pub packets: u64,
    pub wire_bytes: u64,
    /// Earliest and latest time of a packet; packets may lie out of order.
    pub times_ns: Option<(i64, i64)>,
    /// Packets that the capturing interfaces say they dropped; `None` if the capture does not say.
    pub interface_drops: Option<u64>,
    pub warnings: Warnings,
}

impl Info {
    /// Of what packets follow.
    fn add_link_type(&mut self, link_type: u32) {
        if self.link_types.len() < LINK_TYPES && !self.link_types.contains(&link_type) {
            self.link_types.push(link_type);
        }
    }

    /// Of a packet whose time is not the latest.
    #[cold]
    fn widen(&mut self, time_ns: i64) {
        let (start_ns, end_ns) = self.times_ns.unwrap_or((time_ns, time_ns));
        self.times_ns = Some((start_ns.min(time_ns), end_ns.max(time_ns)));
    }
}

enum Reader {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
    Snoop(snoop::Snoop),
}

pub struct Capture {
    block: Block,
    reader: Reader,
    info: Info,
    ended: bool,
    position: Position,
    size: u64,
}

impl Capture {
    /// Opens a capture by its path; `-` is standard input.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        Self::open_interruptible(path.as_ref(), Box::new(|| false))
    }

    /// As `open`; `interrupt` is asked again and again while a read waits for a pipe.
    pub fn open_interruptible(path: &Path, interrupt: Interrupt) -> Result<Self, CaptureError> {
        Self::from_input(Input::open(path, interrupt)?, path)
    }

    /// Reads a capture from any stream.
    pub fn from_reader(reader: impl std::io::Read + Send + 'static) -> Result<Self, CaptureError> {
        let input = Input::from_reader(reader).map_err(|error| input::open_failed(Path::new("capture"), &error))?;
        Self::from_input(input, Path::new("capture"))
    }

    fn from_input(input: Input, path: &Path) -> Result<Self, CaptureError> {
        let rejected = |sentence: String| input::rejected(path, sentence);
        let mut block = Block::new(input.source);
        let head = block.peek(format::HEAD);
        let head = &head[..head.len().min(format::HEAD)];
        let recognised = Format::recognise(head).ok_or_else(|| format::explain(head, input.compression.name()));
        let opened = recognised.and_then(|format| match format {
            Format::Pcap(variant) => pcap::Pcap::open(&mut block, variant).map(|pcap| (format, Reader::Pcap(pcap))),
            Format::Pcapng => pcapng::Pcapng::open(&mut block).map(|pcapng| (format, Reader::Pcapng(pcapng))),
            Format::Snoop => snoop::Snoop::open(&mut block).map(|snoop| (format, Reader::Snoop(snoop))),
        });
        let (format, reader) = opened.map_err(|sentence| match block.failure() {
            Some(error) if input::is_stop(error) => CaptureError::Stopped,
            Some(error) => match input.compression.name() {
                Some(name) => rejected(format!("damaged {name} data ({error}); copy or compress it again")),
                None => rejected(format!("cannot be read ({error})")),
            },
            None => rejected(sentence),
        })?;
        let link_types = match &reader {
            Reader::Pcap(pcap) => vec![pcap.link_type()],
            Reader::Snoop(snoop) => vec![snoop.link_type()],
            Reader::Pcapng(_) => Vec::new(),
        };
        let info = Info {
            format: format.name(),
            compression: input.compression,
            link_types,
            packets: 0,
            wire_bytes: 0,
            times_ns: None,
            interface_drops: None,
            warnings: Warnings::default(),
        };
        Ok(Self {
            block,
            reader,
            info,
            ended: false,
            position: input.position,
            size: input.size,
        })
    }

    /// What is known so far; complete once `next` has given `None`.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// How far into the (compressed) file reading is.
    pub fn position(&self) -> u64 {
        self.position.bytes()
    }

    /// Size of the (compressed) file; 0 where it is not known.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The next packet, `None` at the end. Damage ends the capture with a warning; only the interrupt hook makes an error.
    #[inline(always)]
    #[allow(clippy::should_implement_trait)] // it lends, which Iterator cannot
    pub fn next(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        let record = loop {
            if self.ended {
                return Ok(None);
            }
            if let Reader::Pcap(pcap) = &self.reader {
                if let Some(record) = pcap.record(&mut self.block) {
                    break record;
                }
            }
            let step = match &mut self.reader {
                Reader::Pcap(pcap) => pcap.step(&mut self.block, &mut self.info),
                Reader::Pcapng(pcapng) => pcapng.step(&mut self.block, &mut self.info),
                Reader::Snoop(snoop) => snoop.step(&mut self.block, &mut self.info),
            };
            match step {
                Step::Record(record) => break record,
                Step::End => self.end(None)?,
                Step::Damaged(sentence) => self.end(Some(sentence))?,
            }
        };
        let info = &mut self.info;
        info.packets += 1;
        info.wire_bytes += u64::from(record.wire_len);
        match &mut info.times_ns {
            Some((_, end_ns)) if *end_ns <= record.time_ns => *end_ns = record.time_ns,
            _ => info.widen(record.time_ns),
        }
        Ok(Some(Packet {
            frame: info.packets,
            time_ns: record.time_ns,
            link_type: record.link_type,
            wire_len: record.wire_len,
            direction: record.direction,
            data: self.block.shown(record.place.at, record.place.len),
        }))
    }

    /// Ends the capture; what the record's reader saw is the consequence where the stream itself failed.
    #[cold]
    fn end(&mut self, damage: Option<String>) -> Result<(), CaptureError> {
        self.ended = true;
        let what = match self.block.failure() {
            Some(error) if input::is_stop(error) => return Err(CaptureError::Stopped),
            Some(error) => Some(match self.info.compression.name() {
                Some(name) => format!("damaged or cut {name} data ({error})"),
                None => format!("the file cannot be read further ({error})"),
            }),
            None => damage,
        };
        if let Some(what) = what {
            let (frame, byte) = (self.info.packets + 1, self.block.offset());
            self.info.warnings.add("end", || {
                format!("frame {frame} (byte {byte}): {what}; the capture ends here")
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
