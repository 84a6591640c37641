//! Rows -> Arrow: the columns of `tcpfit/schema.py`, in its order and with its types.

mod column;
mod read;
mod write;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub use read::read_segments;

use crate::quality::directions::Directions;
use crate::rows::{EventRow, FlowRow, RoundRow, Sink};
use crate::segment::Segment;
use write::Rows;

/// Rows of a batch: large enough that handing one over costs nothing a row, small enough to stay in the cache.
const BATCH: usize = 16 << 10;

/// Batches of a piece of the segments, where these are handed out as they come: some 20 MB.
const PIECE: usize = 8;

/// A finished table.
#[derive(Clone)]
pub struct Table {
    pub schema: SchemaRef,
    pub batches: Arc<[RecordBatch]>,
}

impl Table {
    fn new<R: Rows>(batches: Vec<RecordBatch>) -> Self {
        Self {
            schema: R::schema(),
            batches: batches.into(),
        }
    }

    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// Every table of one analysis.
pub struct Tables {
    pub flows: Table,
    pub events: Table,
    pub rounds: Table,
    pub segments: Option<Table>,
    /// What is odd about the packets, a sentence each.
    pub warnings: Vec<String>,
}

/// Flows whose rows become columns together, as soon as the last of them is over: so many rows fit the cache.
const PART: usize = 1024;

/// Collects rows; the tracker settles them in no particular order.
#[derive(Default)]
pub struct Collector {
    /// Part n holds the flows numbered from n * `PART`.
    parts: Vec<Part>,
    directions: Directions,
}

impl Sink for Collector {
    fn flow(&mut self, row: FlowRow) {
        self.directions.add(&row);
        let part = self.part(row.flow);
        part.flows.rows.push(row);
        if part.flows.rows.len() == PART {
            // a flow's row is its last: each of these has one
            part.settle();
        }
    }

    fn event(&mut self, row: EventRow) {
        self.part(row.flow).events.rows.push(row);
    }

    fn round(&mut self, row: RoundRow) {
        self.part(row.flow).rounds.rows.push(row);
    }
}

impl Collector {
    #[inline]
    fn part(&mut self, flow: u32) -> &mut Part {
        let n = flow as usize / PART;
        if n >= self.parts.len() {
            self.parts.resize_with(n + 1, Part::default);
        }
        &mut self.parts[n]
    }

    /// The same capture gives the same tables however rows were settled.
    pub fn finish(self, segments: Option<SegmentTable>, mut warnings: Vec<String>) -> Tables {
        warnings.extend(self.directions.sentences());
        let (mut flows, mut events, mut rounds) = (Vec::new(), Vec::new(), Vec::new());
        for mut part in self.parts {
            part.settle();
            flows.append(&mut part.flows.batches);
            events.append(&mut part.events.batches);
            rounds.append(&mut part.rounds.batches);
        }
        Tables {
            flows: Table::new::<FlowRow>(flows),
            events: Table::new::<EventRow>(events),
            rounds: Table::new::<RoundRow>(rounds),
            segments: segments.map(SegmentTable::finish),
            warnings,
        }
    }
}

/// Rows of some flows.
#[derive(Default)]
struct Part {
    flows: Grown<FlowRow>,
    events: Grown<EventRow>,
    rounds: Grown<RoundRow>,
}

impl Part {
    /// Sorts the rows and turns them into columns.
    fn settle(&mut self) {
        self.flows.settle(|row| row.flow);
        self.events.settle(|row| {
            (
                row.flow,
                row.time_ns,
                row.kind,
                row.frame,
                row.left,
                row.right,
                row.reason,
            )
        });
        self.rounds.settle(|row| (row.flow, row.round));
    }
}

/// Rows, and those of them that are columns already.
struct Grown<R> {
    rows: Vec<R>,
    batches: Vec<RecordBatch>,
}

impl<R> Default for Grown<R> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            batches: Vec::new(),
        }
    }
}

impl<R: Rows> Grown<R> {
    fn settle<K: Ord>(&mut self, key: impl Fn(&R) -> K) {
        let mut rows = std::mem::take(&mut self.rows);
        if !rows.is_sorted_by_key(&key) {
            // rows are large: the keys are sorted, and each row is moved once
            rows.sort_by_cached_key(&key);
        }
        // from the end, giving their memory back on the way
        let first = self.batches.len();
        while !rows.is_empty() {
            let start = (rows.len() - 1) / BATCH * BATCH;
            self.batches.push(R::batch(&rows[start..]));
            rows.truncate(start);
            rows.shrink_to_fit();
        }
        self.batches[first..].reverse();
    }
}

/// Segments in the capture's order, turned into columns as they come.
#[derive(Default)]
pub struct SegmentTable {
    rows: Vec<Segment>,
    batches: Vec<RecordBatch>,
}

impl SegmentTable {
    pub fn push(&mut self, segment: &Segment) {
        self.rows.push(*segment);
        if self.rows.len() == BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.batches.push(Segment::batch(&self.rows));
        self.rows.clear();
    }

    /// What came since the last call, once that is a piece; it is not kept.
    pub fn take_piece(&mut self) -> Option<Table> {
        (self.batches.len() >= PIECE).then(|| Table::new::<Segment>(std::mem::take(&mut self.batches)))
    }

    fn finish(mut self) -> Table {
        if !self.rows.is_empty() {
            self.flush();
        }
        Table::new::<Segment>(self.batches)
    }
}

#[cfg(test)]
mod tests;
