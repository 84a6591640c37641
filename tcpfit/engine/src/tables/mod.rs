//! Rows -> Arrow: the columns of `tcpfit/schema.py`, in its order and with its types.

mod address;
mod column;
mod kept;
mod packed;
mod part;
mod read;
mod runs;
mod write;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub use read::read_segments;

use crate::flow::attempts::Attempts;
use crate::quality::directions::Directions;
use crate::rows::{EventRow, FlowRow, RoundRow, Sink};
use crate::segment::Segment;
use column::BLOCK;
use kept::Batch;
use part::{shared, Batches, Made, Part, Recent, Room, PART};
use write::{Columns, Rows, SegmentColumns};

/// Segments of a batch: so many that handing one over costs nothing a row.
const BATCH: usize = 16 << 10;

/// Batches of a piece of the segments, where these are handed out as they come: some 20 MB.
const PIECE: usize = 8;

/// Rows of flows that wait unpacked, over all parts: some 20 MB.
const MANY: usize = 30_000;

/// A finished table.
#[derive(Clone)]
pub struct Table {
    pub schema: SchemaRef,
    batches: Arc<[Batch]>,
}

impl Table {
    fn new<R: Rows>(batches: Vec<Batch>) -> Self {
        Self {
            schema: R::schema(),
            batches: batches.into(),
        }
    }

    pub fn rows(&self) -> usize {
        self.batches.iter().map(|batch| batch.rows).sum()
    }

    /// The table, made batch by batch as it is asked for.
    pub fn batches(&self) -> impl Iterator<Item = RecordBatch> + Send + use<> {
        let table = self.clone();
        (0..table.batches.len()).map(move |n| table.batches[n].record_batch(table.schema.clone()))
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
    /// Connections that no flow speaks of.
    pub attempts: Attempts,
}

/// Collects rows; the tracker settles them in no particular order.
pub struct Collector {
    /// Part n holds the flows numbered from n * `PART`.
    parts: Vec<Part>,
    /// Flows' rows that wait for others of their parts.
    waiting: usize,
    /// So many may wait as they are.
    many: usize,
    /// They are more.
    pack: bool,
    recent: Recent,
    room: Room,
    directions: Directions,
}

impl Default for Collector {
    fn default() -> Self {
        Self {
            parts: Vec::new(),
            waiting: 0,
            many: MANY,
            pack: false,
            recent: Recent::default(),
            room: Room::default(),
            directions: Directions::default(),
        }
    }
}

impl Sink for Collector {
    fn flow(&mut self, row: FlowRow) {
        self.directions.add(&row);
        let n = row.flow as usize / PART;
        self.waiting += 1;
        let pack = self.pack;
        let part = part(&mut self.parts, row.flow);
        let complete = if pack {
            part.pack_flow(&row)
        } else {
            part.flow(row, &mut self.room)
        };
        if complete {
            self.parts[n].settle(&mut self.recent, &mut self.room);
            self.waiting -= PART;
            self.pack &= self.waiting > self.many;
        } else if !pack && self.waiting > self.many {
            self.pack();
        }
    }

    fn event(&mut self, row: EventRow) {
        let pack = self.pack;
        part(&mut self.parts, row.flow).event(row, pack, &mut self.room);
    }

    fn round(&mut self, row: RoundRow) {
        let pack = self.pack;
        part(&mut self.parts, row.flow).round(row, pack, &mut self.room);
    }
}

impl Collector {
    #[cold]
    fn pack(&mut self) {
        self.pack = true;
        self.parts.iter_mut().for_each(|part| part.pack(&mut self.room));
    }

    /// The same capture gives the same tables however rows were settled.
    pub fn finish(mut self, segments: Option<SegmentTable>, mut warnings: Vec<String>) -> Tables {
        warnings.extend(self.directions.sentences());
        let mut whole = Batches::default();
        for mut part in self.parts {
            part.settle(&mut self.recent, &mut self.room);
            whole.append(part.batches);
        }
        Tables {
            flows: Table::new::<FlowRow>(whole.flows),
            events: Table::new::<EventRow>(whole.events),
            rounds: Table::new::<RoundRow>(whole.rounds),
            segments: segments.map(SegmentTable::finish),
            warnings,
            attempts: Attempts::default(),
        }
    }
}

/// The flow's part.
#[inline]
fn part(parts: &mut Vec<Part>, flow: u32) -> &mut Part {
    let n = flow as usize / PART;
    if n >= parts.len() {
        parts.resize_with(n + 1, Part::default);
    }
    &mut parts[n]
}

/// Segments in the capture's order, turned into columns as they come.
pub struct SegmentTable {
    block: Vec<Segment>,
    columns: SegmentColumns,
    /// Rows in the columns.
    rows: usize,
    batches: Vec<Batch>,
    recent: Vec<Made>,
}

impl Default for SegmentTable {
    fn default() -> Self {
        Self {
            block: Vec::with_capacity(BLOCK),
            columns: SegmentColumns::with_room(BATCH),
            rows: 0,
            batches: Vec::new(),
            recent: Vec::new(),
        }
    }
}

impl SegmentTable {
    #[inline]
    pub fn push(&mut self, segment: &Segment) {
        self.block.push(*segment);
        if self.block.len() == BLOCK {
            self.take_block();
        }
    }

    fn take_block(&mut self) {
        self.columns.extend(self.block.iter());
        self.rows += self.block.len();
        self.block.clear();
        if self.rows == BATCH {
            self.take_batch(SegmentColumns::with_room(BATCH));
        }
    }

    fn take_batch(&mut self, next: SegmentColumns) {
        let columns = std::mem::replace(&mut self.columns, next).finish();
        self.batches.push(shared(columns, &mut self.recent));
        self.rows = 0;
    }

    /// What came since the last call, once that is a piece; it is not kept.
    pub fn take_piece(&mut self) -> Option<Table> {
        (self.batches.len() >= PIECE).then(|| Table::new::<Segment>(std::mem::take(&mut self.batches)))
    }

    fn finish(mut self) -> Table {
        self.take_block();
        if self.rows > 0 {
            self.take_batch(SegmentColumns::with_room(0));
        }
        Table::new::<Segment>(self.batches)
    }
}

#[cfg(test)]
mod tests;
