//! Rows of some flows on their way into columns: in the order in which the tracker settled them, then sorted.
//!
//! A flow may have any number of events and rounds. Where very many of them wait for their parts' last flows they wait as
//! columns, which take less, and are sorted at the end a column at a time. Where many parts wait for their last flow, rows are
//! packed.

use std::mem::take;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::{Buffer, NullBuffer};

use super::column::{Column, Readable, Value, BLOCK};
use super::kept::{Batch, Kept};
use super::packed::{Pack, Packed};
use super::runs::{self, Order};
use super::write::{Columns, Rows};
use crate::rows::{EventRow, FlowRow, RoundRow};

/// Flows whose rows become columns together, as soon as the last of them is over.
pub const PART: usize = 2048;

/// Rows that are stowed together, under a MiB, and rows of a batch.
pub const STOW: usize = 4096;

/// Events, or rounds, that may wait in chunks, over all parts: some 16 MB. Beyond, they are stowed.
const WAITING: usize = 32 * STOW;

/// Rows that few parts have.
const SEVERAL: usize = 512;

/// Packed rows that are stowed: some MiB when they are unpacked.
const PACKED: usize = 4 * STOW;

/// Rows that are sorted by flow, then by time or number, then by key.
pub trait Sorted: Rows + Pack {
    type Key: Ord;

    fn flow(&self) -> u32;
    /// Time or number in the flow, and what the key begins with.
    fn place(&self) -> Place;
    fn key(&self) -> Self::Key;
}

/// Rows that can wait as columns.
pub trait Stowable: Sorted<Columns: Gather> {
    fn flow_at(columns: &Self::Columns, row: usize) -> u32;
    fn place_at(columns: &Self::Columns, row: usize) -> Place;
    fn key_at(columns: &Self::Columns, row: usize) -> Self::Key;
}

/// Columns of which others are made.
pub trait Gather: Sized {
    /// The columns of batch after batch, each of those rows of `stowed`. Nothing is left in `stowed`.
    fn gather(stowed: &mut [Self], batches: &[Order]) -> Vec<Vec<ArrayRef>>;
}

/// Rows of `PART` flows.
#[derive(Default)]
pub struct Part {
    flows: Waiting<FlowRow>,
    events: Stowing<EventRow>,
    rounds: Stowing<RoundRow>,
    /// What has been settled.
    pub batches: Batches,
}

impl Part {
    /// Takes a flow's row, which is the last of its rows; true if no other flow of the part is still to come.
    #[inline]
    pub fn flow(&mut self, row: FlowRow, room: &mut Room) -> bool {
        if self.flows.rows.capacity() == 0 {
            self.flows.rows = room.flows.take(PART);
        }
        self.flows.rows.push(row);
        self.flows.len() == PART
    }

    /// As `flow`, where rows are packed.
    #[cold]
    pub fn pack_flow(&mut self, row: &FlowRow) -> bool {
        self.flows.packed.push(row);
        self.flows.len() == PART
    }

    #[inline]
    pub fn event(&mut self, row: EventRow, pack: bool, room: &mut Room) {
        self.events.push(row, pack, &mut room.events);
    }

    #[inline]
    pub fn round(&mut self, row: RoundRow, pack: bool, room: &mut Room) {
        self.rounds.push(row, pack, &mut room.rounds);
    }

    /// Packs the rows that wait.
    pub fn pack(&mut self, room: &mut Room) {
        self.flows.pack();
        self.events.pack(&mut room.events);
        self.rounds.pack(&mut room.rounds);
    }

    /// Sorts the rows and turns them into columns.
    #[cold]
    pub fn settle(&mut self, recent: &mut Recent, room: &mut Room) {
        self.batches.append(Batches {
            flows: take(&mut self.flows).settle(&mut recent.flows, &mut room.flows),
            events: take(&mut self.events).settle(&mut recent.events, &mut room.events),
            rounds: take(&mut self.rounds).settle(&mut recent.rounds, &mut room.rounds),
        });
    }
}

/// Where rows were that have become columns: those of the next parts take their place. Memory that was given back would
/// have to be cleared again by the kernel.
#[derive(Default)]
pub struct Room {
    flows: Rooms<FlowRow>,
    events: Rooms<EventRow>,
    rounds: Rooms<RoundRow>,
}

struct Rooms<R> {
    empty: Vec<Vec<R>>,
    /// Rows that wait, in chunks, and so many may.
    waiting: usize,
    most: usize,
}

impl<R> Default for Rooms<R> {
    fn default() -> Self {
        Self {
            empty: Vec::new(),
            waiting: 0,
            most: WAITING,
        }
    }
}

#[cfg(test)]
impl Room {
    /// Where so many rows of a kind may wait in chunks.
    pub fn for_chunks(most: usize) -> Self {
        let mut room = Self::default();
        (room.events.most, room.rounds.most) = (most, most);
        room
    }
}

impl<R> Rooms<R> {
    /// Parts that wait at once for their last flow, mostly.
    const MOST: usize = 2;

    fn take(&mut self, rows: usize) -> Vec<R> {
        let room = self.empty.pop().filter(|room| room.capacity() >= rows);
        room.unwrap_or_else(|| Vec::with_capacity(rows))
    }

    fn give(&mut self, mut room: Vec<R>) {
        room.clear();
        if self.empty.len() < Self::MOST && room.capacity() > SEVERAL {
            self.empty.push(room);
        }
    }
}

/// Columns of a part.
#[derive(Default)]
pub struct Batches {
    pub flows: Vec<Batch>,
    pub events: Vec<Batch>,
    pub rounds: Vec<Batch>,
}

impl Batches {
    pub fn append(&mut self, mut others: Self) {
        self.flows.append(&mut others.flows);
        self.events.append(&mut others.events);
        self.rounds.append(&mut others.rounds);
    }
}

/// The columns that were made last, for those that come to share memory with.
#[derive(Default)]
pub struct Recent {
    flows: Vec<Made>,
    events: Vec<Made>,
    rounds: Vec<Made>,
}

/// A finished column, and its bytes, which are compared: what they mean does not tell zeros of different signs.
#[derive(Clone)]
pub struct Made {
    kept: Arc<Kept>,
    column: ArrayRef,
    bytes: Vec<Buffer>,
    nulls: Option<NullBuffer>,
}

impl Made {
    fn of(column: ArrayRef) -> Self {
        let data = column.to_data();
        Self {
            bytes: data.buffers().to_vec(),
            nulls: data.nulls().cloned(),
            kept: Arc::new(Kept::new(Arc::clone(&column))),
            column,
        }
    }

    /// That it is as the beginning of the other, whose memory then can be its own; both have one type.
    fn begins(&self, other: &Self) -> bool {
        // beside values or views, texts may have bytes elsewhere
        other.bytes[0].starts_with(&self.bytes[0])
            && self.bytes[1..] == other.bytes[1..]
            && self.column.len() <= other.column.len()
            && self.nulls == other.first_nulls(self.column.len())
            && !self.column.data_type().is_nested()
    }

    fn first_nulls(&self, rows: usize) -> Option<NullBuffer> {
        let nulls = self.nulls.as_ref().map(|nulls| nulls.slice(0, rows));
        nulls.filter(|nulls| nulls.null_count() > 0)
    }

    /// As `begins`, for another column of numbers: words may differ that have the same numbers.
    fn counts_as(&self, other: &Self) -> bool {
        let (kind, others) = (self.column.data_type(), other.column.data_type());
        self.begins(other) && kind.is_primitive() && kind == others
    }
}

/// A batch of the columns. One that is as that of a batch before, or as another of this, takes no memory of its own: half of
/// the flows' columns are nothing but zeros, or null, in most captures, and bounds are mostly what they bound.
pub fn shared(columns: Vec<ArrayRef>, recent: &mut Vec<Made>) -> Batch {
    let rows = columns[0].len();
    let mut made: Vec<Made> = Vec::with_capacity(columns.len());
    for (n, column) in columns.into_iter().enumerate() {
        let new = Made::of(column);
        let before = recent.get(n).filter(|before| new.begins(before));
        let alike = before.or_else(|| made.iter().find(|other| new.counts_as(other)));
        made.push(alike.cloned().unwrap_or(new));
    }
    *recent = made;
    let columns = recent.iter().map(|made| Arc::clone(&made.kept)).collect();
    Batch { rows, columns }
}

/// As `shared`; what no batch will share any more is kept in as few bytes as it needs.
fn narrowed(columns: Vec<ArrayRef>, recent: &mut Vec<Made>) -> Batch {
    let before: Vec<_> = recent.iter().map(|made| Arc::clone(&made.kept)).collect();
    let batch = shared(columns, recent);
    let still = |kept: &Arc<Kept>| batch.columns.iter().any(|column| Arc::ptr_eq(column, kept));
    before.iter().filter(|kept| !still(kept)).for_each(|kept| kept.narrow());
    batch
}

/// Rows in the order in which they came.
struct Waiting<R> {
    /// Those that came first.
    packed: Packed<R>,
    rows: Vec<R>,
}

impl<R> Default for Waiting<R> {
    fn default() -> Self {
        Self {
            packed: Packed::default(),
            rows: Vec::new(),
        }
    }
}

impl<R: Pack> Waiting<R> {
    #[inline]
    fn len(&self) -> usize {
        self.packed.len() + self.rows.len()
    }

    fn pack(&mut self) {
        take(&mut self.rows).iter().for_each(|row| self.packed.push(row));
    }

    fn all(self) -> Vec<R> {
        if self.packed.len() == 0 {
            return self.rows;
        }
        let mut all = Vec::with_capacity(self.len());
        self.packed.unpack(&mut all);
        all.extend(self.rows);
        all
    }

    fn settle(self, recent: &mut Vec<Made>, room: &mut Rooms<R>) -> Vec<Batch>
    where
        R: Sorted,
    {
        let rows = self.all();
        let batches = settled(rows.len(), |n| &rows[n], recent);
        room.give(rows);
        batches
    }
}

/// Rows, of which there may be many: those that came first are stowed, those that came next in chunks.
struct Stowing<R: Rows> {
    /// Columns of `STOW` rows each, in order.
    stowed: Vec<R::Columns>,
    /// `STOW` rows each, as they came.
    chunks: Vec<Vec<R>>,
    rows: Waiting<R>,
}

impl<R: Rows> Default for Stowing<R> {
    fn default() -> Self {
        Self {
            stowed: Vec::new(),
            chunks: Vec::new(),
            rows: Waiting::default(),
        }
    }
}

impl<R: Stowable> Stowing<R> {
    #[inline]
    fn push(&mut self, row: R, pack: bool, room: &mut Rooms<R>) {
        if pack && self.rows.rows.is_empty() {
            self.rows.packed.push(&row);
        } else {
            let rows = &mut self.rows.rows;
            if rows.len() == SEVERAL && rows.capacity() < STOW {
                // more will come: they are not moved again
                let few = std::mem::replace(rows, room.take(STOW));
                rows.extend(few);
            }
            rows.push(row);
        }
        // packed they take less than columns
        if self.rows.rows.len() == STOW || self.rows.packed.len() >= PACKED {
            self.on_many(room);
        }
    }

    /// As many rows wait as are stowed together.
    #[cold]
    fn on_many(&mut self, room: &mut Rooms<R>) {
        if self.rows.packed.len() > 0 || room.waiting >= room.most {
            self.stow(room);
        } else {
            self.chunks
                .push(std::mem::replace(&mut self.rows.rows, room.take(STOW)));
            room.waiting += STOW;
        }
    }

    /// Packs the rows that wait; those in chunks are stowed.
    fn pack(&mut self, room: &mut Rooms<R>) {
        self.stow_chunks(room);
        self.rows.pack();
    }

    fn stow_chunks(&mut self, room: &mut Rooms<R>) {
        for rows in self.chunks.drain(..) {
            self.stowed.push(columns(&rows));
            room.waiting -= STOW;
            room.give(rows);
        }
    }

    /// As columns, whatever is as many as are stowed together.
    fn stow(&mut self, room: &mut Rooms<R>) {
        self.stow_chunks(room);
        let mut rows = take(&mut self.rows).all();
        let stowed = rows.len() / STOW * STOW;
        self.stowed.extend(rows[..stowed].chunks(STOW).map(columns));
        rows.drain(..stowed);
        // rows that were packed leave no room behind
        if rows.capacity() > STOW {
            rows.shrink_to_fit();
        }
        self.rows.rows = rows;
    }

    fn settle(mut self, recent: &mut Vec<Made>, room: &mut Rooms<R>) -> Vec<Batch> {
        if self.stowed.is_empty() {
            return self.settle_rows(recent, room);
        }
        self.stow(room);
        let last = take(&mut self.rows.rows);
        let rows = self.stowed.len() * STOW + last.len();
        if !last.is_empty() {
            self.stowed.push(columns(&last));
        }
        room.give(last);
        let batches = runs::in_batches::<R>(&self.stowed, rows);
        let batches = R::Columns::gather(&mut self.stowed, &batches).into_iter();
        batches.map(|columns| narrowed(columns, recent)).collect()
    }

    /// Where none are stowed.
    fn settle_rows(mut self, recent: &mut Vec<Made>, room: &mut Rooms<R>) -> Vec<Batch> {
        if self.chunks.is_empty() {
            return self.rows.settle(recent, room);
        }
        room.waiting -= self.chunks.len() * STOW;
        // where there are chunks, nothing is packed
        self.chunks.push(self.rows.rows);
        let count = self.chunks.iter().map(Vec::len).sum();
        let batches = settled(count, |n| &self.chunks[n / STOW][n % STOW], recent);
        self.chunks.into_iter().for_each(|rows| room.give(rows));
        batches
    }
}

/// Rows that are told by their number, sorted, as columns.
fn settled<'a, R: Sorted + 'a>(
    count: usize,
    row: impl Fn(usize) -> &'a R + Copy,
    recent: &mut Vec<Made>,
) -> Vec<Batch> {
    let order = sorted(count, row);
    let batches = order
        .chunks(STOW)
        .map(|rows| narrowed(filled(row, rows).finish(), recent));
    batches.collect()
}

/// As columns, sorted.
fn columns<R: Sorted>(rows: &[R]) -> R::Columns {
    let row = |n: usize| &rows[n];
    filled(row, &sorted(rows.len(), row))
}

/// Columns of those rows.
fn filled<'a, R: Rows + 'a>(row: impl Fn(usize) -> &'a R, rows: &[Placed]) -> R::Columns {
    let mut columns = R::Columns::with_room(rows.len());
    let mut block = Vec::with_capacity(BLOCK);
    for rows in rows.chunks(BLOCK) {
        block.extend(rows.iter().map(|&(.., n)| row(n as usize)));
        columns.extend(block.iter().copied());
        block.clear();
    }
    columns
}

/// The rows of a part, by their numbers, in the order of their flows, their places in these, and their keys; equals as they
/// came. The rows themselves are far: they are gone through as they lie, and their keys are asked for only where places are
/// the same.
fn sorted<'a, R: Sorted + 'a>(count: usize, row: impl Fn(usize) -> &'a R + Copy) -> Vec<Placed> {
    // by flow: where each one's rows begin, and then, one further, where they end
    let mut ends = [0; PART + 1];
    let number = |row: &R| row.flow() as usize % PART;
    (0..count).for_each(|n| ends[number(row(n)) + 1] += 1);
    (0..PART).for_each(|flow| ends[flow + 1] += ends[flow]);
    let mut order = vec![(0, 0, 0); count];
    for n in 0..count {
        let row = row(n);
        let end = &mut ends[number(row)];
        let (place, rank) = row.place();
        order[*end] = (place, rank, n as u32);
        *end += 1;
    }
    let mut begin = 0;
    for end in ends {
        sort(&mut order[begin..end], |n| row(n as usize).key());
        begin = end;
    }
    order
}

/// What decides most rows' order, small enough that it is sorted without them.
pub type Place = (i64, u8);

/// A row's place, and its number.
pub type Placed = (i64, u8, u32);

/// Sorts rows of a flow. A key is made of several columns: the place decides for most.
pub fn sort<K: Ord>(rows: &mut [Placed], key: impl Fn(u32) -> K) {
    if !rows.is_sorted() {
        rows.sort_unstable();
    }
    let same = |a: &Placed, b: &Placed| (a.0, a.1) == (b.0, b.1);
    for equal in rows.chunk_by_mut(same).filter(|equal| equal.len() > 1) {
        equal.sort_by_key(|&(.., row)| key(row));
    }
}

/// Adds to each batch the column of its rows.
pub fn gather_column<V: Value<Column: Readable<V>>>(
    stowed: &[V::Column],
    batches: &[Order],
    gathered: &mut [Vec<ArrayRef>],
) {
    let mut before: Option<Made> = None;
    for (order, batch) in batches.iter().zip(gathered) {
        let rows = order.len();
        let mut taken = V::Column::with_room(rows);
        match order {
            Order::Runs(runs) => {
                for run in runs {
                    taken.append(&stowed[run.chunk as usize], run.rows());
                }
            }
            Order::Rows(rows) => {
                for block in rows.chunks(BLOCK) {
                    taken.extend(
                        block
                            .iter()
                            .map(|&row| stowed[row as usize / STOW].get(row as usize % STOW)),
                    );
                }
            }
        }
        let new = Made::of(taken.finish());
        let made = before.filter(|before| new.begins(before)).unwrap_or(new);
        batch.push(made.column.slice(0, rows));
        before = Some(made);
    }
}
