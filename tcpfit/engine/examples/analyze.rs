//! The engine without Python: `analyze FILE [TIMES]` reads a capture into tables and says what a packet costs and what was
//! found. The fastest of the runs is told; one run is what `benchmarks/instructions.py` counts the instructions of.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tcpfit_engine::analysis::{Analysis, Selection};
use tcpfit_engine::capture::{Capture, CaptureError};
use tcpfit_engine::decode::{Decoder, SkipCounts};
use tcpfit_engine::flow::Settings;
use tcpfit_engine::tables::Tables;

/// Packets that are read at a time.
const PACKETS: u64 = 1024;

/// Packets and tables of one pass.
fn pass(path: &str) -> Result<(u64, Tables), CaptureError> {
    let mut capture = Capture::open(path)?;
    let mut analysis = Analysis::new(Selection::default(), Settings::default(), false);
    let (mut decoder, mut skipped) = (Decoder::default(), SkipCounts::default());
    while analysis.read(&mut capture, &mut decoder, &mut skipped, PACKETS)? {}
    Ok((capture.info().packets, analysis.finish()))
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: analyze FILE [TIMES]");
        std::process::exit(2);
    };
    let times: u32 = arguments.next().and_then(|times| times.parse().ok()).unwrap_or(1);
    let mut best = Duration::MAX;
    let mut found = (0, [0; 3]);
    for _ in 0..times.max(1) {
        let start = Instant::now();
        let (packets, tables) = pass(&path).unwrap_or_else(|error| {
            eprintln!("{error}");
            std::process::exit(1);
        });
        best = best.min(start.elapsed());
        found = (
            packets,
            [&tables.flows, &tables.events, &tables.rounds].map(|table| table.rows()),
        );
        black_box(&tables);
    }
    let (packets, [flows, events, rounds]) = found;
    let cost = best.as_secs_f64() * 1e9 / packets.max(1) as f64;
    println!("{packets} packets, {flows} flows, {events} events, {rounds} rounds, {cost:.1} ns/packet");
}
