//! How values of rows become an Arrow column: 64 at a time, so that the rows they come from are still in the cache when the
//! next column takes its values from them, and a word says which of them are null.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{Float64Type, Int64Type, UInt16Type, UInt32Type, UInt64Type, UInt8Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, LargeListArray, PrimitiveArray, StringArray,
    UInt32Array, UInt8Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};

use super::address::Written;
use crate::nullable::{Nullable, Number};
use crate::rows::{Ending, Feedback, Kind, Phase, Reason, Vantage};
use crate::segment::{Address, Options};

/// Rows of a block.
pub const BLOCK: usize = 64;

/// A value that fills a column of its own type.
pub trait Value: Copy {
    type Column: Column<Self>;

    fn field(name: &str) -> Field;
}

/// What a row has for a column: a value, or perhaps none.
pub trait Cell {
    type Value;
    const NULLABLE: bool;

    fn value(self) -> Option<Self::Value>;
}

impl<V> Cell for Option<V> {
    type Value = V;
    const NULLABLE: bool = true;

    #[inline]
    fn value(self) -> Option<V> {
        self
    }
}

impl<N: Number> Cell for Nullable<N> {
    type Value = N;
    const NULLABLE: bool = true;

    #[inline]
    fn value(self) -> Option<N> {
        self.get()
    }
}

/// A column that is being filled.
pub trait Column<V> {
    /// Empty, with room for so many values.
    fn with_room(rows: usize) -> Self;
    /// Takes a block, or at the end less than one.
    fn extend<C: Cell<Value = V>>(&mut self, cells: impl Iterator<Item = C>);
    fn finish(self) -> ArrayRef;
}

/// A column whose values can be asked for while it is being filled.
pub trait Readable<V>: Column<V> {
    fn get(&self, row: usize) -> Option<V>;
    /// Takes those rows of another.
    fn append(&mut self, other: &Self, rows: Range<usize>);
}

/// Which values there are, a bit each; empty where none can be missing.
#[derive(Default)]
struct Validity(Vec<u64>);

impl Validity {
    #[inline]
    fn get(&self, row: usize) -> bool {
        self.0.is_empty() || self.0[row / BLOCK] >> (row % BLOCK) & 1 != 0
    }

    /// Those rows of another come behind `count`.
    #[inline]
    fn append(&mut self, count: usize, other: &Self, rows: Range<usize>) {
        if !other.0.is_empty() {
            append_bits(&mut self.0, count, &other.0, rows);
        }
    }

    fn finish(self, rows: usize) -> Option<NullBuffer> {
        if self.0.is_empty() {
            return None;
        }
        Some(NullBuffer::new(bits(self.0, rows))).filter(|nulls| nulls.null_count() > 0)
    }
}

/// Adds bits of other words behind `count`.
fn append_bits(words: &mut Vec<u64>, mut count: usize, others: &[u64], mut bits: Range<usize>) {
    while !bits.is_empty() {
        let (from, to) = (bits.start % BLOCK, count % BLOCK);
        let length = bits.len().min(BLOCK - from.max(to));
        let taken = others[bits.start / BLOCK] >> from & u64::MAX >> (BLOCK - length);
        if to == 0 {
            words.push(0);
        }
        words[count / BLOCK] |= taken << to;
        (bits.start, count) = (bits.start + length, count + length);
    }
}

/// Words of bits, as Arrow has them: the first in the lowest bit of the first byte.
fn bits(mut words: Vec<u64>, rows: usize) -> BooleanBuffer {
    words.iter_mut().for_each(|word| *word = word.to_le());
    BooleanBuffer::new(Buffer::from_vec(words), 0, rows)
}

/// Numbers.
pub struct Numbers<T> {
    values: Vec<T>,
    validity: Validity,
}

impl<T: Copy + Default> Numbers<T> {
    fn new(rows: usize) -> Self {
        Self {
            values: Vec::with_capacity(rows),
            validity: Validity::default(),
        }
    }

    #[inline]
    fn add<C: Cell>(&mut self, cells: impl Iterator<Item = C>, number: impl Fn(C::Value) -> T) {
        let (mut valid, mut next) = (0, 1u64);
        self.values.extend(cells.map(|cell| {
            let value = cell.value();
            if C::NULLABLE {
                valid |= if value.is_some() { next } else { 0 };
                next <<= 1;
            }
            value.map_or_else(T::default, &number)
        }));
        if C::NULLABLE {
            self.validity.0.push(valid);
        }
    }

    #[inline]
    fn append_rows(&mut self, other: &Self, rows: Range<usize>) {
        self.validity.append(self.values.len(), &other.validity, rows.clone());
        self.values.extend_from_slice(&other.values[rows]);
    }

    #[inline]
    fn number(&self, row: usize) -> Option<T> {
        self.validity.get(row).then(|| self.values[row])
    }
}

macro_rules! plain {
    ($($native:ty),+ $(,)?) => {
        $(impl Cell for $native {
            type Value = Self;
            const NULLABLE: bool = false;

            #[inline]
            fn value(self) -> Option<Self> {
                Some(self)
            }
        })+
    };
}

plain!(u8, u16, u32, u64, i64, f64, bool, Address, Vantage, Ending, Kind, Reason, Phase);

macro_rules! numbers {
    ($($native:ty => $arrow:ty),+ $(,)?) => {
        $(impl Value for $native {
            type Column = Numbers<Self>;

            fn field(name: &str) -> Field {
                Field::new(name, <$arrow as ArrowPrimitiveType>::DATA_TYPE, true)
            }
        }

        impl Column<$native> for Numbers<$native> {
            fn with_room(rows: usize) -> Self {
                Self::new(rows)
            }

            #[inline]
            fn extend<C: Cell<Value = $native>>(&mut self, cells: impl Iterator<Item = C>) {
                self.add(cells, |value| value);
            }

            fn finish(self) -> ArrayRef {
                let nulls = self.validity.finish(self.values.len());
                Arc::new(PrimitiveArray::<$arrow>::new(self.values.into(), nulls))
            }
        }

        impl Readable<$native> for Numbers<$native> {
            #[inline]
            fn get(&self, row: usize) -> Option<$native> {
                self.number(row)
            }

            #[inline]
            fn append(&mut self, other: &Self, rows: Range<usize>) {
                self.append_rows(other, rows);
            }
        })+
    };
}

numbers!(
    u8 => UInt8Type,
    u16 => UInt16Type,
    u32 => UInt32Type,
    u64 => UInt64Type,
    i64 => Int64Type,
    f64 => Float64Type,
);

/// Yes or no, a bit each.
pub struct Bits {
    words: Vec<u64>,
    rows: usize,
    validity: Validity,
}

impl Value for bool {
    type Column = Bits;

    fn field(name: &str) -> Field {
        Field::new(name, DataType::Boolean, true)
    }
}

impl Column<bool> for Bits {
    fn with_room(rows: usize) -> Self {
        Self {
            words: Vec::with_capacity(rows.div_ceil(BLOCK)),
            rows: 0,
            validity: Validity::default(),
        }
    }

    #[inline]
    fn extend<C: Cell<Value = bool>>(&mut self, cells: impl Iterator<Item = C>) {
        let (mut word, mut valid) = (0, 0);
        for (bit, cell) in cells.enumerate() {
            let value = cell.value();
            word |= u64::from(value == Some(true)) << bit;
            valid |= u64::from(value.is_some()) << bit;
            self.rows += 1;
        }
        self.words.push(word);
        if C::NULLABLE {
            self.validity.0.push(valid);
        }
    }

    fn finish(self) -> ArrayRef {
        let nulls = self.validity.finish(self.rows);
        Arc::new(BooleanArray::new(bits(self.words, self.rows), nulls))
    }
}

impl Readable<bool> for Bits {
    fn get(&self, row: usize) -> Option<bool> {
        self.validity
            .get(row)
            .then(|| self.words[row / BLOCK] >> (row % BLOCK) & 1 != 0)
    }

    fn append(&mut self, other: &Self, rows: Range<usize>) {
        self.validity.append(self.rows, &other.validity, rows.clone());
        append_bits(&mut self.words, self.rows, &other.words, rows.clone());
        self.rows += rows.len();
    }
}

/// Words of a vocabulary, by their numbers.
pub struct Words<V> {
    numbers: Numbers<u8>,
    vocabulary: PhantomData<V>,
}

macro_rules! vocabularies {
    ($($name:ty),+) => {
        $(impl Value for $name {
            type Column = Words<Self>;

            fn field(name: &str) -> Field {
                enum_field(name, Self::WORDS)
            }
        }

        impl Column<$name> for Words<$name> {
            fn with_room(rows: usize) -> Self {
                Self { numbers: Numbers::new(rows), vocabulary: PhantomData }
            }

            #[inline]
            fn extend<C: Cell<Value = $name>>(&mut self, cells: impl Iterator<Item = C>) {
                self.numbers.add(cells, |word| word as u8);
            }

            fn finish(self) -> ArrayRef {
                let nulls = self.numbers.validity.finish(self.numbers.values.len());
                let keys = UInt8Array::new(self.numbers.values.into(), nulls);
                let words = StringArray::from(<$name>::WORDS.to_vec());
                Arc::new(DictionaryArray::new(keys, Arc::new(words)))
            }
        }

        impl Readable<$name> for Words<$name> {
            fn get(&self, row: usize) -> Option<$name> {
                self.numbers.number(row).map(|number| <$name>::ALL[usize::from(number)])
            }

            fn append(&mut self, other: &Self, rows: Range<usize>) {
                self.numbers.append_rows(&other.numbers, rows);
            }
        })+
    };
}

vocabularies!(Vantage, Ending, Feedback, Kind, Reason, Phase);

/// A dictionary whose metadata tells polars that it is an Enum of these words: `length;word` for each.
fn enum_field(name: &str, words: &[&str]) -> Field {
    let kind = DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8));
    let listed: String = words.iter().map(|word| format!("{};{word}", word.len())).collect();
    Field::new(name, kind, true).with_metadata(HashMap::from([("_PL_ENUM_VALUES2".to_owned(), listed)]))
}

/// Addresses, which are text in the tables; in the form that polars has text in.
pub struct Texts {
    texts: StringViewBuilder,
    written: Written,
}

/// Bytes of text that are kept together; an address of up to 12 characters needs none of them.
const TEXT_BYTES: u32 = 4 << 10;

impl Value for Address {
    type Column = Texts;

    fn field(name: &str) -> Field {
        Field::new(name, DataType::Utf8View, true)
    }
}

impl Column<Address> for Texts {
    fn with_room(rows: usize) -> Self {
        Self {
            texts: StringViewBuilder::with_capacity(rows).with_fixed_block_size(TEXT_BYTES),
            written: Written::default(),
        }
    }

    fn extend<C: Cell<Value = Address>>(&mut self, cells: impl Iterator<Item = C>) {
        // taken out of their rows first: what comes from far comes at the same time
        let near: Vec<_> = cells.map(Cell::value).collect();
        // packets come in trains of one address
        let (mut last, mut times) = (None, 0);
        for address in near {
            if address != last && times > 0 {
                self.append(last, times);
                times = 0;
            }
            last = address;
            times += 1;
        }
        self.append(last, times);
    }

    fn finish(mut self) -> ArrayRef {
        Arc::new(self.texts.finish())
    }
}

impl Texts {
    fn append(&mut self, address: Option<Address>, times: usize) {
        match address {
            Some(address) => {
                let appended = self.texts.try_append_value_n(self.written.text(&address), times);
                appended.expect("a column of addresses is far below 4 GB");
            }
            None => (0..times).for_each(|_| self.texts.append_null()),
        }
    }
}

/// Left, right, left, right, ... of each segment's SACK blocks.
pub struct Edges {
    edges: Vec<u32>,
    ends: Vec<i64>,
}

impl Edges {
    pub fn with_room(rows: usize) -> Self {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        Self {
            edges: Vec::new(),
            ends,
        }
    }

    fn item() -> Field {
        Field::new("item", DataType::UInt32, true)
    }

    pub fn field(name: &str) -> Field {
        Field::new(name, DataType::LargeList(Arc::new(Self::item())), true)
    }

    pub fn extend<'a>(&mut self, options: impl Iterator<Item = &'a Options>) {
        for options in options {
            for (left, right) in options.sack_blocks() {
                self.edges.extend([*left, *right]);
            }
            self.ends.push(self.edges.len() as i64);
        }
    }

    pub fn finish(self) -> ArrayRef {
        let edges = UInt32Array::from(self.edges);
        let ends = OffsetBuffer::new(self.ends.into());
        Arc::new(LargeListArray::new(Arc::new(Self::item()), ends, Arc::new(edges), None))
    }
}
