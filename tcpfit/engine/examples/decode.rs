//! Reads and decodes a capture and says what a packet costs: `decode FILE [TIMES]`. The fastest of the runs is told.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tcpfit_engine::capture::{Capture, CaptureError};
use tcpfit_engine::decode::Decoder;
use tcpfit_engine::segment::Segment;

/// Packets and TCP segments of one pass.
fn pass(path: &str, decoding: bool) -> Result<(u64, u64), CaptureError> {
    let mut capture = Capture::open(path)?;
    let (mut segments, mut segment) = (0, Segment::default());
    let mut decoder = Decoder::default();
    while let Some(packet) = capture.next()? {
        if decoding {
            if decoder.decode_into(&packet, &mut segment).is_ok() {
                black_box(&segment);
                segments += 1;
            }
        } else {
            black_box(packet.data.len());
        }
    }
    Ok((capture.info().packets, segments))
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: decode FILE [TIMES]");
        std::process::exit(2);
    };
    let times: u32 = arguments.next().and_then(|times| times.parse().ok()).unwrap_or(5);
    for decoding in [false, true] {
        let mut best = Duration::MAX;
        let mut counts = (0, 0);
        for _ in 0..times.max(1) {
            let start = Instant::now();
            counts = pass(&path, decoding).unwrap_or_else(|error| {
                eprintln!("{error}");
                std::process::exit(1);
            });
            best = best.min(start.elapsed());
        }
        let (packets, segments) = counts;
        let what = if decoding { "read and decode" } else { "read" };
        let cost = best.as_secs_f64() * 1e9 / packets.max(1) as f64;
        println!("{what}: {packets} packets, {segments} TCP segments, {cost:.1} ns/packet");
    }
}
