//! Finished columns until somebody asks for them: numbers in as few bytes as they need. A table has 8 bytes for a count of
//! segments, and of a flow that is over little more is left than its row.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, SchemaRef};

/// Rows of a table.
#[derive(Clone)]
pub struct Batch {
    pub rows: usize,
    /// Each may be longer than the batch, which has its beginning.
    pub columns: Vec<Arc<Kept>>,
}

impl Batch {
    pub fn record_batch(&self, schema: SchemaRef) -> RecordBatch {
        let columns = self.columns.iter().map(|column| column.first(self.rows)).collect();
        RecordBatch::try_new(schema, columns).expect("columns follow the schema beside them")
    }
}

/// A finished column, which batches may share.
pub struct Kept(Mutex<Form>);

enum Form {
    Array(ArrayRef),
    Narrow(Narrow),
}

impl Kept {
    pub fn new(column: ArrayRef) -> Self {
        Self(Mutex::new(Form::Array(column)))
    }

    fn form(&self) -> MutexGuard<'_, Form> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The column, as wide as its type. It stays so: whoever asks keeps it.
    fn first(&self, rows: usize) -> ArrayRef {
        let mut form = self.form();
        let array = match &*form {
            Form::Array(array) => Arc::clone(array),
            Form::Narrow(narrow) => narrow.widened(),
        };
        *form = Form::Array(Arc::clone(&array));
        if rows == array.len() {
            return array;
        }
        array.slice(0, rows)
    }

    /// Gives back the memory that its values do not need.
    pub fn narrow(&self) {
        let mut form = self.form();
        if let Form::Array(array) = &*form {
            if let Some(narrow) = Narrow::of(array) {
                *form = Form::Narrow(narrow);
            }
        }
    }
}

/// What is added to the least of the numbers.
enum Numbers {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
}

struct Narrow {
    kind: DataType,
    numbers: Numbers,
    least: u64,
    nulls: Option<NullBuffer>,
}

/// Values that are whole numbers.
trait Whole: ArrowPrimitiveType {
    /// Two that the values lie between, if all of them are whole.
    fn ends(values: &[Self::Native]) -> Option<(u64, u64)>;
    fn number(value: Self::Native) -> u64;
    fn value(number: u64) -> Self::Native;
}

macro_rules! unsigned {
    ($($arrow:ty),+) => {
        $(impl Whole for $arrow {
            fn ends(values: &[Self::Native]) -> Option<(u64, u64)> {
                // not the largest, but as long in bits
                Some((0, u64::from(values.iter().fold(0, |bits, value| bits | value))))
            }

            fn number(value: Self::Native) -> u64 {
                u64::from(value)
            }

            fn value(number: u64) -> Self::Native {
                number as Self::Native
            }
        })+
    };
}

unsigned!(UInt32Type, UInt64Type);

impl Whole for Int64Type {
    fn ends(values: &[i64]) -> Option<(u64, u64)> {
        Some((*values.iter().min()? as u64, *values.iter().max()? as u64))
    }

    fn number(value: i64) -> u64 {
        value as u64
    }

    fn value(number: u64) -> i64 {
        number as i64
    }
}

impl Whole for Float64Type {
    fn ends(values: &[f64]) -> Option<(u64, u64)> {
        // zeros have signs
        let whole = |value: f64| Self::value(Self::number(value)).to_bits() == value.to_bits();
        let mut bits = 0;
        values
            .iter()
            .all(|&value| {
                bits |= Self::number(value);
                whole(value)
            })
            .then_some((0, bits))
    }

    fn number(value: f64) -> u64 {
        u64::from(value as u32)
    }

    fn value(number: u64) -> f64 {
        f64::from(number as u32)
    }
}

impl Narrow {
    fn of(column: &ArrayRef) -> Option<Self> {
        match column.data_type() {
            DataType::UInt32 => Self::of_type(column.as_primitive::<UInt32Type>()),
            DataType::UInt64 => Self::of_type(column.as_primitive::<UInt64Type>()),
            DataType::Int64 => Self::of_type(column.as_primitive::<Int64Type>()),
            DataType::Float64 => Self::of_type(column.as_primitive::<Float64Type>()),
            _ => None,
        }
    }

    fn of_type<T: Whole>(column: &PrimitiveArray<T>) -> Option<Self> {
        let (least, most) = T::ends(column.values())?;
        let numbers = column
            .values()
            .iter()
            .map(|&value| T::number(value).wrapping_sub(least));
        let numbers = match most.wrapping_sub(least) {
            0..=0xff => Numbers::One(numbers.map(|number| number as u8).collect()),
            0x100..=0xffff => Numbers::Two(numbers.map(|number| number as u16).collect()),
            0x1_0000..=0xffff_ffff if size_of::<T::Native>() > 4 => {
                Numbers::Four(numbers.map(|number| number as u32).collect())
            }
            _ => return None,
        };
        Some(Self {
            kind: T::DATA_TYPE,
            numbers,
            least,
            nulls: column.nulls().cloned(),
        })
    }

    fn widened(&self) -> ArrayRef {
        match self.kind {
            DataType::UInt32 => self.as_type::<UInt32Type>(),
            DataType::UInt64 => self.as_type::<UInt64Type>(),
            DataType::Int64 => self.as_type::<Int64Type>(),
            _ => self.as_type::<Float64Type>(),
        }
    }

    fn as_type<T: Whole>(&self) -> ArrayRef {
        let value = |number| T::value(self.least.wrapping_add(number));
        let values: Vec<T::Native> = match &self.numbers {
            Numbers::One(numbers) => numbers.iter().map(|&number| value(u64::from(number))).collect(),
            Numbers::Two(numbers) => numbers.iter().map(|&number| value(u64::from(number))).collect(),
            Numbers::Four(numbers) => numbers.iter().map(|&number| value(u64::from(number))).collect(),
        };
        Arc::new(PrimitiveArray::<T>::new(values.into(), self.nulls.clone()))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, Int64Array, StringArray, UInt32Array, UInt64Array};

    use super::*;

    /// Bytes a number takes, 0 for a column that stays as it is.
    fn width(array: ArrayRef) -> usize {
        let kept = Kept::new(Arc::clone(&array));
        kept.narrow();
        let width = match &*kept.form() {
            Form::Array(_) => 0,
            Form::Narrow(narrow) => match narrow.numbers {
                Numbers::One(_) => 1,
                Numbers::Two(_) => 2,
                Numbers::Four(_) => 4,
            },
        };
        let again = kept.first(array.len());
        // the bytes: zeros have signs
        assert_eq!(array.to_data().buffers(), again.to_data().buffers());
        assert_eq!((array.data_type(), array.nulls()), (again.data_type(), again.nulls()));
        assert!(kept.first(1).to_data() == array.slice(0, 1).to_data());
        width
    }

    #[test]
    fn numbers_come_back_as_they_went() {
        let u64s = |values: &[u64]| width(Arc::new(UInt64Array::from(values.to_vec())));
        let widths = [
            &[0, 255][..],
            &[256, 0],
            &[65_535],
            &[65_536, 1],
            &[u64::from(u32::MAX)],
            &[1 << 32],
            &[u64::MAX],
        ];
        assert_eq!([1, 2, 2, 4, 4, 0, 0], widths.map(u64s));
        let u32s = |values: &[u32]| width(Arc::new(UInt32Array::from(values.to_vec())));
        assert_eq!(
            [1, 2, 0, 0],
            [&[7, 0][..], &[65_535], &[65_536], &[u32::MAX, 0]].map(u32s)
        );
        let i64s = |values: &[i64]| width(Arc::new(Int64Array::from(values.to_vec())));
        let times = 1_700_000_000_000_000_000;
        let widths = [
            &[-5, 250][..],
            &[-5, 251],
            &[times + 70_000, times],
            &[i64::MIN, i64::MAX],
            &[times, 0],
            &[-1, 4_294_967_294],
        ];
        assert_eq!([1, 2, 4, 0, 0, 4], widths.map(i64s));
        let f64s = |values: &[f64]| width(Arc::new(Float64Array::from(values.to_vec())));
        let widths = [
            &[0.0, 255.0][..],
            &[65_535.0],
            &[4_294_967_295.0],
            &[4_294_967_296.0],
            &[0.5],
            &[-0.0],
            &[-1.0],
            &[f64::NAN],
            &[f64::INFINITY],
        ];
        assert_eq!([1, 2, 4, 0, 0, 0, 0, 0, 0], widths.map(f64s));
    }

    #[test]
    fn what_is_null_stays_null() {
        assert_eq!(1, width(Arc::new(UInt64Array::from(vec![Some(3), None, Some(0)]))));
        assert_eq!(1, width(Arc::new(Float64Array::from(vec![None, Some(2.0)]))));
        assert_eq!(0, width(Arc::new(StringArray::from(vec!["a", "b"]))));
    }
}
