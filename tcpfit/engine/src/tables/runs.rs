//! Rows that were stowed, each chunk of them in order, brought into one order: as runs of a chunk's rows, which columns
//! take over whole.
//!
//! Rows of a flow come nearly in order, so that of two chunks the second mostly goes on where the first ends.

use std::ops::Range;

use super::part::{sort, Placed, Stowable, STOW};

/// Rows of a chunk, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    pub chunk: u32,
    begin: u32,
    end: u32,
}

impl Run {
    #[inline]
    pub fn rows(self) -> Range<usize> {
        self.begin as usize..self.end as usize
    }

    fn len(self) -> usize {
        (self.end - self.begin) as usize
    }

    /// Its rows as numbers of all.
    fn numbers(self) -> impl Iterator<Item = u32> {
        let first = self.chunk * STOW as u32;
        first + self.begin..first + self.end
    }

    fn first(self) -> Row {
        (self.chunk, self.begin)
    }

    fn last(self) -> Row {
        (self.chunk, self.end - 1)
    }

    /// Its first rows, of which the last is before `at`, and the others.
    fn split(self, at: u32) -> (Self, Self) {
        (Self { end: at, ..self }, Self { begin: at, ..self })
    }
}

/// Runs of so few rows, on average, are not worth taking over whole.
const SHORT: usize = 8;

/// A chunk and one of its rows.
type Row = (u32, u32);

/// Rows of a batch, in their order.
pub enum Order {
    Runs(Vec<Run>),
    /// Each row alone: its chunk times `STOW`, and where it is in that.
    Rows(Vec<u32>),
}

impl Order {
    fn new(runs: Vec<Run>) -> Self {
        let rows = runs.iter().map(|run| run.len()).sum::<usize>();
        if runs.len() < rows / SHORT {
            Self::Runs(runs)
        } else {
            Self::Rows(runs.into_iter().flat_map(Run::numbers).collect())
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Runs(runs) => runs.iter().map(|run| run.len()).sum(),
            Self::Rows(rows) => rows.len(),
        }
    }
}

/// The rows in the order of their flows, their places in these, and their keys, equals as they came, batch by batch. Every
/// chunk is in that order; all but the last have `STOW` rows. So have the batches: a column of theirs then finds the memory
/// that a chunk's has left.
pub fn in_batches<R: Stowable>(chunks: &[R::Columns], rows: usize) -> Vec<Order> {
    let runs = by_flow::<R>(chunks, rows);
    let flows = runs.chunk_by(|(a, _), (b, _)| a == b);
    let order = flows.flat_map(|runs| merged::<R>(chunks, runs.iter().map(|&(_, run)| run)));
    let (mut batches, mut batch, mut room) = (Vec::new(), Vec::new(), STOW);
    for mut run in order {
        while run.len() > 0 {
            let (first, others) = run.split(run.end.min(run.begin + room as u32));
            push(&mut batch, first);
            room -= first.len();
            run = others;
            if room == 0 {
                batches.push(Order::new(std::mem::take(&mut batch)));
                room = STOW;
            }
        }
    }
    if !batch.is_empty() {
        batches.push(Order::new(batch));
    }
    batches
}

/// Flows with their runs, the flows in order and a flow's runs as they came.
fn by_flow<R: Stowable>(chunks: &[R::Columns], rows: usize) -> Vec<(u32, Run)> {
    let mut runs = Vec::new();
    for (chunk, columns) in chunks.iter().enumerate() {
        let end = STOW.min(rows - chunk * STOW);
        let mut begin = 0;
        while begin < end {
            let flow = R::flow_at(columns, begin);
            let next = (begin + 1..end).find(|&row| R::flow_at(columns, row) != flow);
            let end = next.unwrap_or(end);
            let run = Run {
                chunk: chunk as u32,
                begin: begin as u32,
                end: end as u32,
            };
            runs.push((flow, run));
            begin = end;
        }
    }
    runs.sort_by_key(|&(flow, _)| flow);
    runs
}

/// Adds a run behind the others, as a part of the last one if it goes on there.
fn push(order: &mut Vec<Run>, run: Run) {
    match order.last_mut() {
        _ if run.len() == 0 => {}
        Some(last) if last.chunk == run.chunk && last.end == run.begin => last.end = run.end,
        _ => order.push(run),
    }
}

/// The runs of a flow in one order.
fn merged<R: Stowable>(chunks: &[R::Columns], runs: impl Iterator<Item = Run> + Clone) -> Vec<Run> {
    let rows = Sorted::<R> { chunks };
    let (mut order, mut tail) = (Vec::<Run>::new(), Vec::new());
    // what it may cost to put runs in their places, before all rows are sorted instead
    let mut credit = 0;
    for run in runs.clone() {
        credit += run.len();
        while let Some(last) = order.pop_if(|last| rows.before(run.first(), last.last())) {
            tail.push(last);
        }
        if tail.len() > credit {
            return by_row::<R>(chunks, runs);
        }
        credit -= tail.len();
        rows.merge(tail.drain(..).rev(), run, &mut order);
    }
    order
}

/// The runs of a flow, its rows sorted one by one.
#[cold]
fn by_row<R: Stowable>(chunks: &[R::Columns], runs: impl Iterator<Item = Run>) -> Vec<Run> {
    let at = |row: u32| (&chunks[row as usize / STOW], row as usize % STOW);
    let place = |row| R::place_at(at(row).0, at(row).1);
    let placed = |row| {
        let (place, rank) = place(row);
        (place, rank, row)
    };
    let mut rows: Vec<Placed> = runs.flat_map(Run::numbers).map(placed).collect();
    sort(&mut rows, |row| R::key_at(at(row).0, at(row).1));
    let mut order = Vec::new();
    for (.., row) in rows {
        let (chunk, begin) = (row / STOW as u32, row % STOW as u32);
        let end = begin + 1;
        push(&mut order, Run { chunk, begin, end });
    }
    order
}

/// The order of a flow's rows.
struct Sorted<'a, R: Stowable> {
    chunks: &'a [R::Columns],
}

impl<R: Stowable> Sorted<'_, R> {
    /// The row `a` comes before `b`; not if they are equal.
    fn before(&self, a: Row, b: Row) -> bool {
        let [(a, row), (b, other)] = [a, b].map(|(chunk, row)| (&self.chunks[chunk as usize], row as usize));
        let (place, others) = (R::place_at(a, row), R::place_at(b, other));
        place < others || place == others && R::key_at(a, row) < R::key_at(b, other)
    }

    /// Adds the runs, which are in order, and `new` among them, its rows behind their equals, which came earlier.
    fn merge(&self, runs: impl Iterator<Item = Run>, mut new: Run, order: &mut Vec<Run>) {
        for mut run in runs {
            while run.len() > 0 && new.len() > 0 {
                let next = new.first();
                let first;
                (first, run) = run.split(first_not(run.rows(), |row| !self.before(next, (run.chunk, row))));
                push(order, first);
                if run.len() > 0 {
                    let next = run.first();
                    let first;
                    (first, new) = new.split(first_not(new.rows(), |row| self.before((new.chunk, row), next)));
                    push(order, first);
                }
            }
            push(order, run);
        }
        push(order, new);
    }
}

/// The first of the rows for which that is not so, as it is for all those before it. Mostly it is near.
fn first_not(rows: Range<usize>, so: impl Fn(u32) -> bool) -> u32 {
    let (mut low, end) = (rows.start as u32, rows.end as u32);
    let (mut high, mut step) = (low, 1);
    while high < end && so(high) {
        low = high + 1;
        high = end.min(low + step);
        step *= 2;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if so(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
