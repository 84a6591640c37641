//! Rows -> Arrow: the columns of `tcpfit/schema.py`, in its order and with its types.

mod column;
mod read;
mod write;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub use read::read_segments;

use crate::rows::{EventRow, FlowRow, RoundRow, Sink};
use crate::segment::Segment;
use write::Rows;

/// Rows of a batch: large enough that handing one over costs nothing a row, small enough to stay in the cache.
const BATCH: usize = 16 << 10;

/// A finished table.
#[derive(Clone)]
pub struct Table {
    pub schema: SchemaRef,
    pub batches: Arc<[RecordBatch]>,
}

impl Table {
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

/// Collects rows; the tracker settles them in no particular order.
#[derive(Default)]
pub struct Collector {
    flows: Vec<FlowRow>,
    events: Vec<EventRow>,
    rounds: Vec<RoundRow>,
}

impl Sink for Collector {
    fn flow(&mut self, row: FlowRow) {
        self.flows.push(row);
    }

    fn event(&mut self, row: EventRow) {
        self.events.push(row);
    }

    fn round(&mut self, row: RoundRow) {
        self.rounds.push(row);
    }
}

impl Collector {
    /// Sorts the rows, so that the same capture gives the same tables however rows were settled.
    pub fn finish(mut self, segments: Option<SegmentTable>, warnings: Vec<String>) -> Tables {
        self.flows.sort_by_key(|row| row.flow);
        self.events.sort_by_key(|row| {
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
        self.rounds.sort_by_key(|row| (row.flow, row.round));
        Tables {
            flows: write_all(self.flows),
            events: write_all(self.events),
            rounds: write_all(self.rounds),
            segments: segments.map(SegmentTable::finish),
            warnings,
        }
    }

    /// The flows so far, in no particular order.
    pub fn flows(&self) -> &[FlowRow] {
        &self.flows
    }
}

/// Turns rows into batches from the end, giving their memory back on the way.
fn write_all<R: Rows>(mut rows: Vec<R>) -> Table {
    let mut batches = Vec::with_capacity(rows.len().div_ceil(BATCH));
    while !rows.is_empty() {
        let start = (rows.len() - 1) / BATCH * BATCH;
        batches.push(R::batch(&rows[start..]));
        rows.truncate(start);
        rows.shrink_to_fit();
    }
    batches.reverse();
    Table {
        schema: R::schema(),
        batches: batches.into(),
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

    fn finish(mut self) -> Table {
        if !self.rows.is_empty() {
            self.flush();
        }
        Table {
            schema: Segment::schema(),
            batches: self.batches.into(),
        }
    }
}

#[cfg(test)]
mod tests;
