//! What the fuzz targets do with their bytes. `tests/fuzz.rs` does the same with the corpora and with every input that once
//! found an error.

#![allow(dead_code)] // each target uses one

use std::io::Cursor;

use tcpfit_engine::analysis::{Analysis, Selection};
use tcpfit_engine::capture::{Capture, Packet};
use tcpfit_engine::decode::Decoder;
use tcpfit_engine::flow::Settings;
use tcpfit_engine::segment::{flags, Direction, Options, Segment, V4_MAPPED};

/// Packets of one input: a small compressed file may hold any number.
const MOST: u64 = 100_000;

fn analysis(packed_from: usize) -> Analysis {
    // few, so that the bound is reached
    let settings = Settings {
        max_flows: 16,
        packed_from,
        ..Settings::default()
    };
    Analysis::new(Selection::default(), settings, true)
}

/// The bytes of a file.
pub fn capture(data: &[u8]) {
    let Ok(mut capture) = Capture::from_reader(Cursor::new(data.to_vec())) else {
        return;
    };
    let (mut analysis, mut decoder, mut segment) = (analysis(0), Decoder::default(), Segment::default());
    let mut seen = 0;
    while let Ok(Some(packet)) = capture.next() {
        seen += 1;
        assert!(packet.data.len() <= 1 << 20);
        if decoder.decode_into(&packet, &mut segment).is_ok() {
            analysis.push(&segment);
        }
        if seen == MOST {
            return;
        }
    }
    assert!(capture.info().packets >= seen);
    analysis.finish();
}

const LINKS: [u32; 32] = [
    0, 1, 6, 9, 10, 12, 14, 50, 51, 100, 101, 104, 105, 107, 108, 113, 119, 122, 127, 163, 192, 204, 219, 228, 229,
    239, 258, 276, 147, 1, 1, 1,
];

/// Packets of one link type: its number, then for each packet two bytes of length and the packet.
pub fn decode(data: &[u8]) {
    let Some((link, mut rest)) = data.split_first() else {
        return;
    };
    let (mut decoder, mut segment) = (Decoder::default(), Segment::default());
    let mut frame = 0;
    while let Some((head, after)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*head)).min(after.len());
        let (bytes, others) = after.split_at(length);
        rest = others;
        frame += 1;
        let packet = Packet {
            frame,
            time_ns: frame as i64,
            link_type: LINKS[usize::from(link % 32)],
            wire_len: (length as u32).wrapping_add(u32::from(link >> 5) * 500),
            direction: Direction::Unknown,
            data: bytes,
        };
        if decoder.decode_into(&packet, &mut segment).is_ok() {
            assert!(segment.options.sack_len <= 4);
            assert!(segment.frame == frame);
        }
    }
}

/// The options of a TCP header; the first byte says how many of them were captured.
pub fn options(data: &[u8]) {
    let Some((cut, options)) = data.split_first() else {
        return;
    };
    let area = options.len().min(40) / 4 * 4;
    let mut bytes = vec![
        0x45,
        0,
        0,
        (40 + area) as u8,
        0,
        1,
        0,
        0,
        64,
        6,
        0,
        0,
        10,
        0,
        0,
        1,
        10,
        0,
        0,
        2,
    ];
    bytes.extend([0; 12]);
    bytes.extend([(((20 + area) / 4) << 4) as u8, 0x10, 1, 0, 0, 0, 0, 0]);
    bytes.extend(&options[..area]);
    let kept = bytes.len() - usize::from(*cut).min(area + 4);
    let packet = Packet {
        frame: 1,
        time_ns: 0,
        link_type: 101,
        wire_len: bytes.len() as u32,
        direction: Direction::Unknown,
        data: &bytes[..kept],
    };
    let segment = tcpfit_engine::decode::decode(&packet).expect("a whole header is decoded");
    assert!(segment.options.sack_blocks().len() <= 4);
}

/// Bytes as they are asked for; zeros when there are no more.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }
}

/// One end of the conversation: what it has sent, resends from, and has got.
#[derive(Clone, Copy)]
struct End {
    isn: u32,
    next: u32,
    acknowledged: u32,
    id: u16,
}

/// A conversation that begins well: bytes say what happens next, and sometimes what a header has instead of what is right.
/// Connections that are kept packed, and segments that come together, are followed as others are.
pub fn conversation(data: &[u8]) {
    let segments = segments(data);
    let mut together = analysis(0);
    together.push_all(&segments);
    let mut alone = analysis(usize::MAX);
    segments.iter().for_each(|segment| alone.push(segment));
    let (packed, whole) = (together.finish(), alone.finish());
    for (packed, whole) in [
        (packed.flows, whole.flows),
        (packed.events, whole.events),
        (packed.rounds, whole.rounds),
    ] {
        assert_eq!(
            packed.batches().collect::<Vec<_>>(),
            whole.batches().collect::<Vec<_>>()
        );
    }
    assert_eq!(packed.warnings, whole.warnings);
}

fn segments(data: &[u8]) -> Vec<Segment> {
    let mut script = Script(data);
    let mut segments = Vec::new();
    let size = 1 + u32::from(script.byte()) * 8;
    let mode = script.byte();
    let mut time_ns = 1_700_000_000_000_000_000;
    let mut frame = 0;
    let isn = if mode & 1 == 0 { 1000 } else { u32::MAX - 3000 };
    let end = End {
        isn,
        next: isn,
        acknowledged: isn,
        id: 1,
    };
    let mut ends = [end; 2];
    let mut started = mode & 2 != 0; // in the middle
    while !script.0.is_empty() {
        let what = script.byte();
        let from = usize::from(what & 1);
        let (this, that) = (ends[from], ends[1 - from]);
        let mut segment = template(from, mode, size, this);
        match what >> 1 & 0x0f {
            _ if !started => {
                segment.flags = if from == 0 { flags::SYN } else { flags::SYN | flags::ACK };
                segment.seq = this.isn;
                ends[from].next = this.isn.wrapping_add(1);
                segment.options.mss = Some(1460);
                segment.options.window_scale = (mode & 4 != 0).then_some(script.byte());
                segment.options.sack_permitted = mode & 8 != 0;
                started = from == 1;
            }
            0..=3 => {
                segment.payload = size;
                ends[from].next = this.next.wrapping_add(size);
            }
            4 => {
                // again, from somewhere before
                let back = u32::from(script.byte()) * size;
                segment.seq = this.next.wrapping_sub(back);
                segment.payload = size;
            }
            5 | 6 => {
                segment.ack = that.next;
                ends[from].acknowledged = that.next;
            }
            7 => {
                let back = u32::from(script.byte()) * size;
                segment.ack = that.next.wrapping_sub(back);
                ends[from].acknowledged = segment.ack;
            }
            8 => {
                let (left, blocks) = (u32::from(script.byte()) * size, script.byte() % 5);
                for n in 0..usize::from(blocks.min(4)) {
                    let at = segment.ack.wrapping_add(left).wrapping_add(n as u32 * 2 * size);
                    segment.options.sack[n] = (at, at.wrapping_add(size));
                    segment.options.sack_len += 1;
                }
            }
            9 => {
                // data that never came by
                ends[from].next = this.next.wrapping_add(u32::from(script.byte()) * size);
                continue;
            }
            10 => {
                time_ns += i64::from(script.byte()) << (script.byte() % 40);
                continue;
            }
            11 => {
                time_ns -= i64::from(script.byte()) << (script.byte() % 40);
                continue;
            }
            12 => {
                segment.flags |= [flags::FIN, flags::RST, flags::SYN, flags::URG][usize::from(script.byte() % 4)];
                segment.payload = u32::from(script.byte() % 2) * size;
            }
            13 => {
                segment.window = script.word() as u16;
                segment.flags |= flags::ECE | flags::CWR;
                segment.ecn = script.byte() & 3;
            }
            14 => {
                // nothing is right
                segment.seq = script.word();
                segment.ack = script.word();
                segment.flags = script.word() as u16;
                segment.payload = script.word() % 100_000;
                segment.ip_id = (mode & 16 != 0).then_some(script.word() as u16);
                segment.options.timestamps = Some((script.word(), script.word()));
                segment.options.sack[0] = (script.word(), script.word());
                segment.options.sack_len = 1;
            }
            _ => {
                segment.sport = segment.sport.wrapping_add(u16::from(script.byte()));
                segment.around = u32::from(script.byte() & 1);
                segment.payload = size;
            }
        }
        time_ns += 1000 * i64::from(what);
        frame += 1;
        segment.frame = frame;
        segment.time_ns = time_ns;
        if mode & 32 != 0 {
            segment.options.timestamps = segment.options.timestamps.or(Some(((time_ns / 1_000_000) as u32, 7)));
        }
        ends[from].id = this.id.wrapping_add(1);
        segments.push(segment);
    }
    segments
}

fn template(from: usize, mode: u8, size: u32, this: End) -> Segment {
    let mut address = [0; 16];
    address[..12].copy_from_slice(&V4_MAPPED);
    let (mut src, mut dst) = (address, address);
    (src[15], dst[15]) = (1 + from as u8, 2 - from as u8);
    Segment {
        src,
        dst,
        sport: 1000 + from as u16,
        dport: 1001 - from as u16,
        seq: this.next,
        ack: this.acknowledged,
        flags: flags::ACK,
        window: 60_000,
        wire_bytes: 54 + size,
        ip_id: (mode & 16 != 0).then_some(this.id),
        ttl: 64,
        checksum: this.id,
        options: Options::default(),
        ..Segment::default()
    }
}
