use super::part::STOW;
use super::*;
use crate::nullable::Nullable;
use crate::rows::{Kind, Phase, Reason};
use crate::segment::{Direction, Options, V4_MAPPED};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};

fn segment(frame: u64) -> Segment {
    let mut src = [0; 16];
    src[..12].copy_from_slice(&V4_MAPPED);
    src[15] = 9;
    let mut options = Options {
        mss: Some(1460),
        timestamps: Some((1, u32::MAX)),
        ..Options::default()
    };
    if frame.is_multiple_of(2) {
        options = Options {
            sack_permitted: true,
            mptcp: true,
            window_scale: Some(7),
            incomplete: true,
            ..Options::default()
        };
        options.sack[..2].copy_from_slice(&[(5, 6), (1, 2)]);
        options.sack_len = 2;
    }
    Segment {
        frame,
        time_ns: -5,
        src,
        dst: [0x20; 16],
        sport: 1,
        dport: 65535,
        seq: u32::MAX,
        ack: 3,
        flags: 0x1ff,
        window: 7,
        payload: 70_000,
        wire_bytes: 70_054,
        ip_id: frame.is_multiple_of(2).then_some(0),
        ttl: 255,
        ecn: 3,
        checksum: 1,
        direction: Direction::Outbound,
        around: 7,
        options,
    }
}

#[test]
fn segments_come_back_as_they_went() {
    let mut table = SegmentTable::default();
    let count = BATCH as u64 + 3;
    (1..=count).for_each(|frame| table.push(&segment(frame)));
    let table = table.finish();
    assert_eq!((2, BATCH + 3), (table.batches().count(), table.rows()));
    let mut next = 1;
    for batch in table.batches() {
        read_segments(&batch, |read| {
            assert_eq!(segment(next), *read);
            next += 1;
        })
        .unwrap();
    }
    assert_eq!(count + 1, next);
}

#[test]
fn a_wrong_column_is_named() {
    let mut table = SegmentTable::default();
    table.push(&segment(1));
    let batch = table.finish().batches().next().unwrap();
    let without = batch.project(&[1, 2]).unwrap();
    assert_eq!(
        "segments have no column \"frame\"",
        read_segments(&without, |_| ()).unwrap_err()
    );
    let mut columns = batch.columns().to_vec();
    columns.swap(0, 1);
    let fields: Vec<_> = ["frame", "time_ns"]
        .iter()
        .zip(&columns)
        .map(|(name, c)| arrow_schema::Field::new(*name, c.data_type().clone(), true))
        .collect();
    let swapped = RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), columns[..2].to_vec()).unwrap();
    assert_eq!(
        "column \"frame\" of segments must be UInt64, got Int64",
        read_segments(&swapped, |_| ()).unwrap_err()
    );
}

/// Rows that may wait in chunks: none, so that they are stowed, some of them, all.
const CHUNKS: [usize; 3] = [0, 2 * STOW, 1 << 20];

fn where_wait(chunks: usize) -> Collector {
    Collector {
        room: Room::for_chunks(chunks),
        ..Collector::default()
    }
}

#[test]
fn rows_are_sorted_however_they_were_settled() {
    let event = |flow, time_ns, frame| EventRow {
        flow,
        time_ns,
        kind: Kind::Loss,
        reason: Reason::Hole,
        left: 1,
        right: 2,
        frame,
        segments: 1,
        flight: 2.0,
        phase: Phase::Open,
        confidence: 1.0,
        ..EventRow::NONE
    };
    let rows: Vec<_> = (0..40_000)
        .map(|i| event(i % 3, i64::from(i % 7), u64::from(i).into()))
        .collect();
    let tables = |rows: &[EventRow], chunks| {
        let mut collector = where_wait(chunks);
        rows.iter().for_each(|row| collector.event(*row));
        collector.finish(None, Vec::new()).events
    };
    for chunks in CHUNKS {
        let forward = tables(&rows, chunks);
        let backward = tables(&rows.iter().rev().copied().collect::<Vec<_>>(), chunks);
        assert_eq!((10, 40_000), (forward.batches().count(), forward.rows()));
        assert!(forward.batches().eq(backward.batches()));
    }
}

#[test]
fn late_rows_come_to_their_places_and_equals_stay_as_they_came() {
    let mut state = 1u64;
    let mut chance = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    // of the flows one comes in order, others with some or many late rows, and one from behind
    let mut rows: Vec<EventRow> = (0..60_000)
        .map(|n: i64| {
            let flow = chance(5) as u32;
            let late = match flow {
                1 if chance(300) == 0 => chance(60_000) as i64,
                2 if chance(3) == 0 => chance(9_000) as i64,
                3 => 2 * n,
                _ => 0,
            };
            EventRow {
                flow,
                time_ns: (n - late) / 10,
                left: chance(2),
                value: (n as f64).into(),
                timeout_follows: (n % 3 > 0).then_some(n % 2 > 0),
                ..EventRow::NONE
            }
        })
        .collect();
    let tables = CHUNKS.map(|chunks| {
        let mut collector = where_wait(chunks);
        rows.iter().for_each(|row| collector.event(*row));
        collector.finish(None, Vec::new()).events
    });
    rows.sort_by_key(|row| (row.flow, row.time_ns, row.left));
    for table in tables {
        let mut next = rows.iter();
        for batch in table.batches() {
            let values = batch.column_by_name("value").unwrap().as_primitive::<Float64Type>();
            let follows = batch.column_by_name("timeout_follows").unwrap().as_boolean();
            for (value, follows) in values.iter().zip(follows) {
                let row = next.next().unwrap();
                assert_eq!((row.value.get(), row.timeout_follows), (value, follows));
            }
        }
        assert!(next.next().is_none());
    }
}

#[test]
fn rows_that_were_stowed_come_back_as_they_went() {
    let row = |n: u64| EventRow {
        flow: 5,
        time_ns: n as i64,
        kind: Kind::ALL[n as usize % Kind::ALL.len()],
        reason: Reason::ALL[n as usize % Reason::ALL.len()],
        left: n,
        frame: (!n.is_multiple_of(3)).then_some(n).into(),
        flight: if n.is_multiple_of(5) { f64::NAN } else { n as f64 },
        timeout_follows: [None, Some(false), Some(true)][n as usize % 3],
        end_ns: n.is_multiple_of(2).then_some(-(n as i64)).into(),
        ..EventRow::NONE
    };
    let columns = |count: u64, chunks| {
        let mut collector = where_wait(chunks);
        (0..count).for_each(|n| collector.event(row(n)));
        let table = collector.finish(None, Vec::new()).events;
        assert_eq!(count as usize, table.rows());
        table.batches().collect::<Vec<_>>()
    };
    // so few that they are not stowed
    let few = columns(3_000, 0);
    for chunks in CHUNKS {
        let many = columns(10_000, chunks);
        assert_eq!((3, 1), (many.len(), few.len()));
        assert_eq!(few[0], many[0].slice(0, 3_000));
        let place = many[1].column_by_name("left").unwrap().as_primitive::<UInt64Type>();
        assert!(place.values().iter().copied().eq(STOW as u64..2 * STOW as u64));
    }
}

#[test]
fn columns_that_are_alike_share_their_memory() {
    let mut collector = Collector::default();
    for flow in 0..2 * PART as u32 + 100 {
        let busy_s = if flow == PART as u32 + 900 { -0.0 } else { 0.0 };
        collector.flow(FlowRow {
            flow,
            data_segments: u64::from(flow),
            sent_segments: u64::from(flow),
            acks: u64::from(flow % 7 == 3),
            ece_acks: u64::from(flow % 7 == 3).into(),
            cwr_segments: (flow != 9).then_some(u64::from(flow % 7 == 3)).into(),
            busy_s,
            ..FlowRow::default()
        });
    }
    let flows = collector.finish(None, Vec::new()).flows;
    let batches: Vec<_> = flows.batches().collect();
    let [first, second, rest] = &batches[..] else {
        panic!("{} batches", batches.len());
    };
    let at = |batch: &RecordBatch, name: &str| batch.column_by_name(name).unwrap().to_data().buffers()[0].as_ptr();
    let share = |name: &str, batches: [&RecordBatch; 2]| at(batches[0], name) == at(batches[1], name);
    assert_eq!(
        [false, true, true, true, false],
        ["flow", "src", "vantage", "closed", "busy_s"].map(|name| share(name, [first, second]))
    );
    // the last is shorter
    assert_eq!(
        [false, true, true, true],
        ["flow", "vantage", "lost_low", "rto_s"].map(|name| share(name, [second, rest]))
    );
    // another column's; the third has the same numbers, but one of them is null
    for (name, others) in [("data_segments", "sent_segments"), ("acks", "ece_acks")] {
        assert_eq!(at(first, name), at(first, others));
        assert_eq!(first.column_by_name(name), first.column_by_name(others));
    }
    assert_ne!(at(first, "acks"), at(first, "cwr_segments"));
    // numbers of words are not shared with other words
    assert_ne!(first.column_by_name("vantage"), first.column_by_name("ecn_feedback"));
}

/// Tables of flows that end in an order that jumps from part to part, with a round each and many of some, where so many
/// flows' rows may wait unpacked, and so many rounds in chunks.
fn tables_where_rows_wait(many: usize, chunks: usize) -> Tables {
    const FLOWS: u32 = 6 * PART as u32 + 100;
    let mut collector = Collector {
        many,
        ..where_wait(chunks)
    };
    let mut packed = 0;
    for n in 0..FLOWS {
        // 5,003 has no factor in common with the number of flows; in the end parts are completed flow after flow
        let flow = n * 5_003 % FLOWS;
        let rounds = [1, 9, 20_000][usize::from(flow % 4 == 3) + usize::from(flow == 3_003)];
        for round in (0..rounds).rev() {
            collector.round(RoundRow {
                flow,
                round,
                start_ns: i64::from(n) * 1_000_000 + i64::from(round),
                end_ns: i64::from(n) * 1_000_000 + 500,
                sent_segments: round % 9,
                resent_segments: 0,
                lost_segments: 0,
                acked_bytes: u64::from(round) * 1448,
                acks: 1,
                rtt_s: (round % 3 > 0).then_some(f64::from(flow) / 7e3).into(),
                flight: f64::from(round * 1448),
                rwnd: 65_535.0.into(),
                phase: Phase::ALL[flow as usize % 3],
                limited: round % 2 > 0,
                idle_s: 0.0,
                window_full_s: -0.0,
                estimated: false,
                cwnd_low: Nullable::NONE,
                cwnd_high: f64::from(flow).into(),
            });
        }
        if flow.is_multiple_of(5) {
            collector.event(EventRow {
                flow,
                time_ns: i64::from(n),
                kind: Kind::Loss,
                frame: u64::from(n).into(),
                ..EventRow::NONE
            });
        }
        collector.flow(FlowRow {
            flow,
            connection: flow / 2,
            src: segment(0).src,
            dst: [flow as u8; 16],
            first_ns: 1_700_000_000_000_000_000 + i64::from(n),
            last_ns: -i64::from(n),
            ece_acks: (flow & 1 > 0).then_some(u64::from(flow)).into(),
            flight_max: [f64::from(flow), f64::NAN][flow as usize % 2],
            ..FlowRow::default()
        });
        packed += usize::from(collector.pack);
    }
    assert_eq!(packed > 0, many < FLOWS as usize);
    collector.finish(None, Vec::new())
}

#[test]
fn rows_that_wait_packed_come_back_as_they_went() {
    let plain = tables_where_rows_wait(usize::MAX, usize::MAX);
    assert_eq!(6 * PART + 100, plain.flows.rows());
    // packed from the first on, or as they become many and fewer again
    let cases = [0, 3_000, 9_000, usize::MAX]
        .into_iter()
        .flat_map(|many| CHUNKS.map(|chunks| (many, chunks)));
    for (many, chunks) in cases {
        let packed = tables_where_rows_wait(many, chunks);
        for (one, other) in [
            (&plain.flows, &packed.flows),
            (&plain.events, &packed.events),
            (&plain.rounds, &packed.rounds),
        ] {
            assert!(one.batches().eq(other.batches()), "{many} {chunks}");
        }
    }
}
