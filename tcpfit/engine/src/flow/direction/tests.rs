//! That the short ways of data and ACKs lead where the long ones do.

use super::*;
use crate::rows::{FlowRow, RoundRow};
use crate::segment::Options;

#[derive(Default)]
struct Rows(String);

impl Sink for Rows {
    fn flow(&mut self, _: FlowRow) {}

    fn event(&mut self, row: EventRow) {
        self.0 += &format!("{row:?}\n");
    }

    fn round(&mut self, row: RoundRow) {
        self.0 += &format!("{row:?}\n");
    }
}

const SMSS: u32 = 1448;

fn flow(vantage: Vantage, start: u64) -> Flow {
    let mut flow = Flow::new(0, start, SMSS, vantage);
    flow.sender.timestamps = true;
    flow.timestamps = true;
    flow.smss_known = true;
    flow
}

/// All of the flow's state that tells.
fn state(flow: &Flow) -> String {
    let sender = &flow.sender;
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        (
            sender.una,
            sender.nxt,
            sender.order,
            sender.outstanding,
            sender.sacked,
            sender.heard
        ),
        (
            sender.duplicate_acks,
            sender.unexplained_acks,
            sender.delivered_order,
            sender.window,
            sender.phase
        ),
        (
            sender.last_ack_ns,
            sender.last_advance_ns,
            sender.last_sent_ns,
            flow.first_ns,
            flow.last_ns
        ),
        (
            flow.offload,
            flow.newest_ack,
            flow.acks_seen,
            &flow.windows.zero_count,
            flow.early().segments
        ),
        (&sender.rtt, &sender.totals, &sender.covered),
        sender.board.units.iter().collect::<Vec<_>>(),
        (&sender.rounds, &sender.marks),
        &flow.arrivals,
    )
}

/// What data and ACKs of a flow may be, most of them in order.
struct Traffic {
    state: u64,
    time_ns: i64,
    ip_id: u16,
    frame: u64,
    /// ACKs may come before their data: from then on these are watched.
    early: bool,
}

impl Traffic {
    /// One of `many`.
    fn pick(&mut self, many: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) % many
    }

    /// A segment, and whether the flow's sender sent it; `una` and `nxt` are numbers of its data.
    fn segment(&mut self, una: u32, nxt: u32) -> (Segment, bool) {
        self.time_ns += 1000 * self.pick(2000) as i64;
        self.frame += 1;
        let sent = self.pick(5) < 3;
        let rare = self.pick(40);
        let mut segment = Segment {
            frame: self.frame,
            time_ns: self.time_ns,
            flags: flags::ACK,
            window: if rare == 1 { 0 } else { 200 + 100 * (rare == 2) as u16 },
            checksum: self.pick(9) as u16,
            options: Options {
                timestamps: Some(((self.time_ns / 1_000_000) as u32, (self.time_ns / 1_000_000) as u32)),
                ..Options::default()
            },
            ..Segment::default()
        };
        let somewhere = una.wrapping_add(nxt.wrapping_sub(una) / SMSS * (rare as u32 % 4) / 4 * SMSS);
        if sent {
            self.ip_id = self.ip_id.wrapping_add(1 + u16::from(rare == 3) * 3);
            segment.ip_id = (rare != 4).then_some(self.ip_id);
            segment.payload = [SMSS, SMSS, SMSS, 2 * SMSS, 100, 1][self.pick(6) as usize];
            segment.seq = match self.pick(12) {
                0 => somewhere,
                1 => nxt.wrapping_add(SMSS),
                2 if rare < 8 => una.wrapping_sub(1),
                _ => nxt,
            };
            segment.flags |= if rare == 5 { flags::CWR } else { 0 };
            segment.ecn = if rare == 6 { marks::CE } else { 0 };
        } else {
            segment.ack = match self.pick(8) {
                0 => una,
                1 => nxt,
                2 if rare < 8 && self.early => nxt.wrapping_add(SMSS),
                _ => somewhere,
            };
            segment.flags |= if rare == 7 { flags::ECE } else { 0 };
            if self.pick(3) == 0 && nxt.wrapping_sub(una) > 4 * SMSS {
                let left = una.wrapping_add(SMSS * (1 + self.pick(3) as u32));
                segment.options.sack[0] = (left, left.wrapping_add(SMSS));
                segment.options.sack[1] = (left.wrapping_add(2 * SMSS), nxt);
                segment.options.sack_len = 1 + self.pick(2) as u8;
            }
        }
        (segment, sent)
    }
}

#[test]
fn the_short_ways_of_data_and_acks_lead_where_the_long_ones_do() {
    for (seed, vantage) in [(1, Vantage::Sender), (2, Vantage::Sender), (3, Vantage::Receiver)] {
        let mut unwrap = Unwrap::new(u32::MAX - 50_000);
        let start = unwrap.near(unwrap.isn()) + 1;
        let (mut short, mut long) = (flow(vantage, start), flow(vantage, start));
        let (mut rows, mut long_rows) = (Rows::default(), Rows::default());
        let mut traffic = Traffic {
            state: seed,
            time_ns: 1_000_000_000,
            ip_id: 1,
            frame: 0,
            early: seed == 2,
        };
        let mut ways = [0; 2];
        for step in 0..6000 {
            let (una, nxt) = (short.sender.una as u32, short.sender.nxt as u32);
            let field = |at: u32| at.wrapping_add(unwrap.isn());
            let (segment, sent) = traffic.segment(field(una), field(nxt));
            if sent {
                let left = unwrap.advance(segment.seq);
                ways[0] += usize::from(!short.watched && left == short.sender.nxt);
                short.on_segment(left, &segment, &mut rows);
                if vantage != Vantage::Sender {
                    long.deliver_acks(left, &segment, &mut long_rows);
                }
                long.on_other_segment(left, &segment, &mut long_rows);
            } else {
                let at = unwrap.near(segment.ack);
                ways[1] += usize::from(short.sender.una < at && at <= short.sender.nxt);
                short.on_ack(&unwrap, &segment, Some(7), &mut rows);
                long.arrivals.two_way |= segment.payload > 0;
                long.acks_seen = true;
                long.on_other_ack(at, &unwrap, &segment, Some(7), &mut long_rows);
            }
            if step % 16 == 0 {
                assert_eq!(state(&short), state(&long), "{segment:?}");
            }
        }
        short.finish(&mut rows);
        long.finish(&mut long_rows);
        assert_eq!(rows.0, long_rows.0);
        let least = if traffic.early { 20 } else { 1000 };
        assert!(
            ways[0] > least && ways[1] > 1000 && rows.0.len() > 100_000,
            "{ways:?} {}",
            rows.0.len()
        );
    }
}
