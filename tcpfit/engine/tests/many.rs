//! Many connections open at once are followed as few are, though their memory is asked for ahead and connections are packed.

use std::io::Cursor;

use arrow_array::RecordBatch;
use tcpfit_engine::analysis::{Analysis, Selection};
use tcpfit_engine::capture::Capture;
use tcpfit_engine::decode::{Decoder, SkipCounts};
use tcpfit_engine::flow::Settings;
use tcpfit_engine::segment::{flags, Segment, V4_MAPPED};
use tcpfit_engine::tables::Tables;

/// More than are open before memory is asked for ahead.
const MANY: u32 = 17_000;
const STEPS: u32 = 12;

/// The step-th packet of a connection: a handshake, data of which one segment is sent again, ACKs, FINs.
fn packet(connection: u32, step: u32) -> Segment {
    let address = |last: u8| {
        let mut address = [0; 16];
        address[..12].copy_from_slice(&V4_MAPPED);
        address[12..].copy_from_slice(&[10, 0, 0, last]);
        address
    };
    let ends = [(address(1), 1000 + connection as u16), (address(2), 80)];
    let (client, flag, seq, ack, payload) = match step {
        0 => (true, flags::SYN, 0, 0, 0),
        1 => (false, flags::SYN | flags::ACK, 0, 1, 0),
        2 => (true, flags::ACK, 1, 1, 0),
        3 => (true, flags::ACK, 1, 1, 1000),
        4 => (true, flags::ACK, 1001, 1, 1000),
        5 => (false, flags::ACK, 1, 1001, 0),
        6 => (true, flags::ACK, 2001, 1, 1000 - connection % 7),
        7 => (false, flags::ACK, 1, 1001, 0),
        8 => (true, flags::ACK, 1001, 1, 1000),
        9 => (false, flags::ACK, 1, 3001 - connection % 7, 0),
        10 => (true, flags::ACK | flags::FIN, 3001 - connection % 7, 1, 0),
        _ => (false, flags::ACK | flags::FIN, 1, 3002 - connection % 7, 0),
    };
    let ((src, sport), (dst, dport)) = if client { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
    Segment {
        frame: u64::from(step * MANY + connection + 1),
        time_ns: i64::from(step) * 400_000_000 + i64::from(connection) * 1000,
        src,
        dst,
        sport,
        dport,
        seq,
        ack,
        flags: flag,
        window: 60_000,
        payload,
        wire_bytes: 54 + payload,
        ttl: 64,
        ..Segment::default()
    }
}

/// Tables of the segments, taken one by one or `together` at a time.
fn tables(segments: &[Segment], together: Option<usize>, settings: Settings) -> Tables {
    let mut analysis = Analysis::new(Selection::default(), settings, false);
    match together {
        Some(together) => segments.chunks(together).for_each(|some| analysis.push_all(some)),
        None => segments.iter().for_each(|segment| analysis.push(segment)),
    }
    analysis.finish()
}

/// Segments of the connections below `count`, all open at once.
fn segments(count: u32) -> Vec<Segment> {
    let mut segments = Vec::new();
    for step in 0..STEPS {
        // the order of the connections changes, so that none follows the same one twice
        for place in 0..MANY {
            let connection = (place * 7 + step * 11) % MANY;
            if connection < count {
                let time_ns = i64::from(step) * 400_000_000 + i64::from(place) * 1000;
                segments.push(Segment {
                    time_ns,
                    ..packet(connection, step)
                });
            }
        }
    }
    segments
}

/// Rows of the flows that both have, without the numbers that count flows and connections.
fn flows(tables: &Tables, ports_below: u16) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in tables.flows.batches() {
        let known = batch.schema().index_of("src_port").expect("flows have ports");
        let ports = arrow_array::cast::AsArray::as_primitive::<arrow_array::types::UInt16Type>(batch.column(known));
        rows.extend(
            (0..batch.num_rows())
                .filter(|&row| ports.value(row) < ports_below)
                .map(|row| text(&batch, row)),
        );
    }
    rows.sort();
    rows
}

fn text(batch: &RecordBatch, row: usize) -> String {
    let named = batch.schema();
    let columns = named.fields().iter().zip(batch.columns());
    columns
        .filter(|(field, _)| field.name() != "flow" && field.name() != "connection")
        .map(|(field, column)| format!("{}={:?} ", field.name(), column.slice(row, 1)))
        .collect()
}

#[test]
fn flows_do_not_depend_on_how_many_are_open() {
    let whole = Settings {
        packed_from: usize::MAX,
        ..Settings::default()
    };
    let few = tables(&segments(1000), None, whole);
    let many = tables(&segments(MANY), Some(100), Settings::default());
    assert_eq!((1000, MANY as usize), (few.flows.rows(), many.flows.rows()));
    assert!(few.events.rows() >= 2 * 1000, "a loss and a resend each");
    let (few, many) = (flows(&few, 2000), flows(&many, 2000));
    assert_eq!(1000, few.len());
    assert!(few.iter().zip(&many).all(|(a, b)| a == b), "{}\n{}", few[0], many[0]);
    assert!(few[0].contains("retransmitted_segments"));
}

/// A capture of the segments: raw IPv4 and TCP, without options.
fn capture(segments: &[Segment]) -> Capture {
    let words = |words: [u32; 6]| words.map(u32::to_le_bytes).concat();
    let mut bytes = words([0xa1b2_3c4d, 2 | 4 << 16, 0, 0, 65535, 101]);
    for segment in segments {
        let (seconds, fraction) = (segment.time_ns / 1_000_000_000, segment.time_ns % 1_000_000_000);
        let length = 40 + segment.payload;
        for word in [seconds as u32, fraction as u32, 40, length] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0x45, 0]);
        bytes.extend((length as u16).to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        bytes.extend([&segment.src[12..], &segment.dst[12..]].concat());
        for port in [segment.sport, segment.dport] {
            bytes.extend(port.to_be_bytes());
        }
        for number in [segment.seq, segment.ack] {
            bytes.extend(number.to_be_bytes());
        }
        for field in [5 << 12 | segment.flags, segment.window, 0, 0] {
            bytes.extend(field.to_be_bytes());
        }
    }
    Capture::from_reader(Cursor::new(bytes)).expect("a pcap file header")
}

#[test]
fn what_is_read_ahead_is_what_is_taken_one_by_one() {
    let segments = segments(MANY);
    let mut decoder = Decoder::default();
    let mut alone = Analysis::new(Selection::default(), Settings::default(), false);
    let (mut one_by_one, mut segment) = (capture(&segments), Segment::default());
    while let Some(packet) = one_by_one.next().expect("nobody interrupts") {
        decoder.decode_into(&packet, &mut segment).expect("every packet is TCP");
        alone.push(&segment);
    }
    let mut ahead = Analysis::new(Selection::default(), Settings::default(), false);
    let (mut all, mut skipped) = (capture(&segments), SkipCounts::default());
    // neither a whole number of batches, nor does the capture end with one
    while ahead
        .read(&mut all, &mut decoder, &mut skipped, 999)
        .expect("nobody interrupts")
    {}
    assert_eq!(segments.len() as u64, all.info().packets);
    assert_eq!(segments.len() as u64, ahead.tcp_segments());
    let (alone, ahead) = (alone.finish(), ahead.finish());
    assert_eq!(MANY as usize, ahead.flows.rows());
    for (alone, ahead) in [
        (alone.flows, ahead.flows),
        (alone.events, ahead.events),
        (alone.rounds, ahead.rounds),
    ] {
        assert!(alone.batches().eq(ahead.batches()));
    }
}

#[test]
fn a_connection_that_takes_the_ports_of_another_is_found_in_the_same_batch() {
    // three connections on the same ports, one after the other
    let again = |n: u32| {
        (0..STEPS).map(move |step| {
            let segment = packet(5, step);
            Segment {
                time_ns: segment.time_ns + i64::from(n) * 20_000_000_000,
                seq: segment.seq.wrapping_add(n << 20),
                ack: segment.ack.wrapping_add(n << 20),
                ..segment
            }
        })
    };
    let segments: Vec<_> = (0..3).flat_map(again).collect();
    let whole = Settings {
        packed_from: usize::MAX,
        ..Settings::default()
    };
    let alone = flows(&tables(&segments, None, whole), u16::MAX);
    assert_eq!(3, alone.len());
    for together in [1, 5, 24, 36] {
        for settings in [
            whole,
            Settings {
                packed_from: 0,
                ..whole
            },
        ] {
            assert_eq!(alone, flows(&tables(&segments, Some(together), settings), u16::MAX));
        }
    }
}

#[test]
fn what_comes_when_a_connection_is_due_is_none_of_it_however_many_wait_to_be_settled() {
    const LAST: u32 = STEPS;
    let over = |connection: u32, late_ns: Option<i64>| {
        let acknowledged = Segment {
            flags: flags::ACK,
            seq: 3002 - connection % 7,
            ack: 2,
            payload: 0,
            ..packet(connection, LAST - 2)
        };
        let last = Segment {
            time_ns: i64::from(LAST) * 400_000_000 + i64::from(connection) * 1000,
            frame: u64::from(LAST * MANY + connection + 1),
            ..acknowledged
        };
        let late = late_ns.map(|late_ns| Segment {
            time_ns: last.time_ns + late_ns,
            frame: last.frame + u64::from(MANY),
            ..packet(connection, 8)
        });
        let all = (0..STEPS).map(move |step| packet(connection, step));
        all.chain([last]).chain(late)
    };
    let read = |others: u32, late_ns: Option<i64>, packed_from: usize| {
        let mut segments: Vec<_> = over(0, late_ns).collect();
        segments.extend((1..=others).flat_map(|connection| over(connection, None)));
        segments.sort_by_key(|segment| segment.time_ns);
        let settings = Settings {
            packed_from,
            ..Settings::default()
        };
        flows(&tables(&segments, None, settings), 1001)
    };
    for others in [0, 1, 14, 15, 16, 40] {
        for packed_from in [0, usize::MAX] {
            let read = |late_ns| read(others, late_ns, packed_from);
            assert_eq!(1, read(None).len());
            assert_ne!(read(None), read(Some(990_000_000)), "{others} others");
            assert_eq!(read(None), read(Some(1_000_000_000)), "{others} others");
        }
    }
}
