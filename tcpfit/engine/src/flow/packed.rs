//! A connection kept packed: its segments, some 15 bytes each, which are followed at once when it has ended.
//!
//! What is known of a connection that is followed takes some 4 KB in dozens of places. Where many are open none of it is
//! near when a segment comes. A short connection's segments fit into a tenth of that; followed one after the other, they
//! find all they need near, and the memory taken for it is the last one's. What is unusual has to be followed from the
//! beginning at once: the results are the same, packed or not.

mod pool;
mod record;

use crate::flow::connection::{Connection, Numbers};
use crate::flow::hosts::Known;
use crate::flow::listing::{Listing, Name};
use crate::flow::vantage::Position;
use crate::nullable::Nullable;
use crate::rows::Sink;
use crate::segment::{flags, Segment};
use pool::{Chain, Pool};
use record::{Bytes, Last, Place, Reader};

/// Bytes of records: a connection that is longer is followed as it goes.
const ROOM: usize = 1024;

/// What of the handshake is there. Anything but this order is unusual.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Nothing,
    Syn,
    Answer,
    Open,
}

/// What packed connections share.
pub struct Store {
    pool: Pool,
    /// The last record.
    record: Place,
    /// Records of the connection that is followed now.
    records: Box<Bytes>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            pool: Pool::default(),
            record: [0; size_of::<Place>()],
            records: Box::new([0; size_of::<Bytes>()]),
        }
    }
}

impl Store {
    /// No connection gets any more segments.
    pub fn end(&mut self) {
        self.pool.end();
    }
}

pub struct Packed {
    stage: Stage,
    /// Its IP headers have identifications.
    identified: bool,
    /// What was known of the hosts when it began.
    known: [Known; 2],
    /// The end at the capture point.
    local: Option<u8>,
    /// From the SYN to its answer.
    answered_ns: i64,
    frame: u64,
    /// Numbers of the flows that have begun.
    flows: [Nullable<u32>; 2],
    /// Sequence number after each end's FIN, and whether it was acknowledged.
    fins: [Option<u32>; 2],
    acknowledged: [bool; 2],
    last: [Last; 2],
    records: Chain,
}

// for more than that the allocator takes 160: 6 MiB where 200,000 connections are open
const _: () = assert!(size_of::<Packed>() == 128);

impl Packed {
    /// A connection of which the segment is the first, if it can be kept so.
    pub fn begins_with(segment: &Segment) -> bool {
        let others = flags::ACK | flags::FIN | flags::RST;
        segment.has(flags::SYN) && !segment.has(others) && segment.around == 0
    }

    pub fn new(first: &Segment, known: [Known; 2]) -> Self {
        Self {
            stage: Stage::Nothing,
            identified: first.ip_id.is_some(),
            known,
            local: None,
            answered_ns: 0,
            frame: 0,
            flows: [Nullable::NONE; 2],
            fins: [None; 2],
            acknowledged: [false; 2],
            last: [Last::default(); 2],
            records: Chain::default(),
        }
    }

    /// The end that sent the segment, if nothing of it is in the capture yet.
    pub fn lacks(&self, listing: &Listing, segment: &Segment) -> Option<usize> {
        listing
            .ends
            .between(segment)
            .filter(|&end| end == 1 && self.stage == Stage::Syn)
    }

    /// Asks for where the next record goes.
    #[inline]
    pub fn prefetch(&self, store: &Store) {
        store.pool.prefetch(&self.records);
    }

    /// Asks for the records.
    #[inline]
    pub fn prefetch_all(&self, store: &Store) {
        store.pool.prefetch_all(&self.records);
    }

    /// Some flow of it has begun.
    pub fn carries_data(&self) -> bool {
        self.flows.iter().any(|flow| flow.get().is_some())
    }

    /// Both ends have said that they are done.
    pub fn closed(&self) -> bool {
        self.fins[0].is_some() && self.fins[1].is_some()
    }

    /// Each end has the other's FIN.
    pub fn is_over(&self) -> bool {
        self.acknowledged[0] && self.acknowledged[1]
    }

    /// End at the capture point, once the handshake has told.
    pub fn local_end(&self) -> Option<usize> {
        self.local.map(usize::from)
    }

    /// A SYN of this connection as it is expected.
    pub fn expects(&self, end: usize, segment: &Segment) -> bool {
        let answer = segment.has(flags::ACK);
        match self.stage {
            Stage::Nothing => end == 0 && !answer,
            Stage::Syn => end == 1 && answer,
            _ => false,
        }
    }

    /// The segment has to be followed at once, with what came before: it cannot be recorded, or could change which flows and
    /// connections there are.
    #[inline]
    pub fn is_unusual(&self, end: usize, segment: &Segment, last_ns: i64) -> bool {
        let options = &segment.options;
        let in_order = match self.stage {
            Stage::Open => !segment.has(flags::SYN),
            Stage::Answer => end == 0 && !segment.has(flags::SYN),
            _ => segment.has(flags::SYN) && self.expects(end, segment) && segment.payload == 0,
        };
        // the capture may have taken a packet twice
        let copied = segment.ip_id == Some(self.last[end].ip_id) && self.last[end].ip_id != 0;
        !in_order
            || copied
            || segment.has(flags::RST)
            || options.sack_len > 0
            || options.incomplete
            || segment.payload > u32::from(u16::MAX)
            || segment.ip_id.is_some() != self.identified
            || segment.time_ns < self.since(last_ns).0
            || segment.frame < self.frame
            || self.records.len() > ROOM
    }

    /// Time and frame that the next record counts from.
    #[inline]
    fn since(&self, last_ns: i64) -> (i64, u64) {
        match self.stage {
            Stage::Nothing => (0, 0),
            _ => (last_ns, self.frame),
        }
    }

    /// Takes the next segment, which `end` sent, and which is not unusual; `shared`: its host was known to share its counter
    /// of identifications.
    #[inline]
    pub fn push(
        &mut self,
        end: usize,
        segment: &Segment,
        last_ns: i64,
        shared: bool,
        numbers: &mut Numbers,
        store: &mut Store,
    ) {
        let before = self.since(last_ns);
        let since_ns = segment.time_ns - before.0;
        match self.stage {
            Stage::Open => {}
            Stage::Nothing => self.stage = Stage::Syn,
            Stage::Syn => (self.stage, self.answered_ns) = (Stage::Answer, since_ns),
            Stage::Answer => self.open(since_ns),
        }
        self.frame = segment.frame;
        if segment.has(flags::ACK) && !segment.has(flags::SYN) && self.fins[1 - end] == Some(segment.ack) {
            self.acknowledged[1 - end] = true;
        }
        if segment.has(flags::FIN) {
            self.fins[end] = Some(segment.seq.wrapping_add(segment.seq_len()));
        }
        if segment.payload > 0 && self.flows[end].get().is_none() {
            self.flows[end] = numbers.take().into();
        }
        let since = (since_ns as u64, segment.frame - before.1);
        let length = record::write(&mut store.record, &mut self.last[end], end, segment, since, shared);
        store.pool.append(&mut self.records, &store.record, length);
    }

    /// The first packet after the handshake tells where the capture was taken.
    #[cold]
    fn open(&mut self, since_ns: i64) {
        let position = Position::from_halves(since_ns as f64 / 1e9, self.answered_ns as f64 / 1e9);
        self.local = position.local_end().map(|end| end as u8);
        self.stage = Stage::Open;
    }

    /// Follows what was packed; nothing of it is left in the store.
    #[inline(never)]
    pub fn unpack(
        &mut self,
        listing: &Listing,
        store: &mut Store,
        numbers: &mut Numbers,
        sink: &mut dyn Sink,
    ) -> Box<Connection> {
        let [a, b] = &listing.ends.names;
        let ends = [addressed(a, b), addressed(b, a)];
        let mut connection = numbers.spare.connection(Connection::new(self.known));
        let next = numbers.next_flow;
        let mut begun = [false; 2];
        let length = self.records.len();
        store.pool.take(&mut self.records, &mut store.records[..]);
        let mut records = Reader::new(&store.records, length, ends, self.identified);
        while let Some((end, shared)) = records.next() {
            let segment = &records.last[end];
            if let (true, false, Some(number)) = (segment.payload > 0, begun[end], self.flows[end].get()) {
                // its number was taken when it came
                numbers.next_flow = number;
                begun[end] = true;
            }
            if shared {
                connection.share_counter(end);
            }
            connection.push_packed(end, segment, numbers, sink);
        }
        numbers.next_flow = next;
        connection
    }
}

/// A segment from one to the other, of which nothing else is known.
#[inline]
fn addressed(from: &Name, to: &Name) -> Segment {
    Segment {
        src: from.0,
        dst: to.0,
        sport: from.1,
        dport: to.1,
        ..Segment::default()
    }
}
