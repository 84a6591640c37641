//! How a value of a row becomes an Arrow column.

use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::{Float64Type, Int64Type, UInt16Type, UInt32Type, UInt64Type, UInt8Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, PrimitiveArray, StringArray, UInt8Array,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field};

use crate::rows::{Feedback, Kind, Phase, Reason, Vantage};
use crate::segment::{Address, Direction, V4_MAPPED};

/// A value that fills a column of its own type.
pub trait Value: Copy {
    fn field(name: &str) -> Field;
    /// `len` values; `None` is null. Asked for each more than once.
    fn array(len: usize, value: impl Fn(usize) -> Option<Self>) -> ArrayRef;
}

macro_rules! primitive {
    ($($native:ty => $arrow:ty),+ $(,)?) => {
        $(impl Value for $native {
            fn field(name: &str) -> Field {
                Field::new(name, <$arrow as ArrowPrimitiveType>::DATA_TYPE, true)
            }

            fn array(len: usize, value: impl Fn(usize) -> Option<Self>) -> ArrayRef {
                let values: Vec<$native> = (0..len).map(|row| value(row).unwrap_or_default()).collect();
                Arc::new(PrimitiveArray::<$arrow>::new(values.into(), nulls(len, value)))
            }
        })+
    };
}

primitive!(
    u8 => UInt8Type,
    u16 => UInt16Type,
    u32 => UInt32Type,
    u64 => UInt64Type,
    i64 => Int64Type,
    f64 => Float64Type,
);

/// Which of `len` values are null, if any is.
fn nulls<T>(len: usize, value: impl Fn(usize) -> Option<T>) -> Option<NullBuffer> {
    let nulls = NullBuffer::new(BooleanBuffer::collect_bool(len, |row| value(row).is_some()));
    (nulls.null_count() > 0).then_some(nulls)
}

impl Value for bool {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Boolean, true)
    }

    fn array(len: usize, value: impl Fn(usize) -> Option<Self>) -> ArrayRef {
        let values = BooleanBuffer::collect_bool(len, |row| value(row).unwrap_or_default());
        Arc::new(BooleanArray::new(values, nulls(len, value)))
    }
}

/// Addresses are text in the tables, IPv6 as RFC 5952 writes it.
impl Value for Address {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Utf8, true)
    }

    fn array(len: usize, value: impl Fn(usize) -> Option<Self>) -> ArrayRef {
        let mut column = StringBuilder::with_capacity(len, len * 12);
        // packets come in trains of one address, and writing it out is what costs
        let mut last = ([0; 16], text(&[0; 16]));
        for value in (0..len).map(value) {
            if let Some(address) = value.filter(|address| *address != last.0) {
                last = (address, text(&address));
            }
            column.append_option(value.map(|_| &last.1));
        }
        Arc::new(column.finish())
    }
}

fn text(address: &Address) -> String {
    match address.strip_prefix(&V4_MAPPED) {
        Some(&[a, b, c, d]) => {
            let mut text = String::with_capacity(15);
            for (n, octet) in [a, b, c, d].into_iter().enumerate() {
                if n > 0 {
                    text.push('.');
                }
                for (unit, least) in [(100, 100), (10, 10), (1, 0)] {
                    if octet >= least {
                        text.push(char::from(b'0' + octet / unit % 10));
                    }
                }
            }
            text
        }
        _ => Ipv6Addr::from(*address).to_string(),
    }
}

impl Value for Direction {
    fn field(name: &str) -> Field {
        u8::field(name)
    }

    fn array(len: usize, value: impl Fn(usize) -> Option<Self>) -> ArrayRef {
        u8::array(len, |row| value(row).map(|direction| direction as u8))
    }
}

macro_rules! vocabulary {
    ($($name:ty),+) => {
        $(impl Value for $name {
            fn field(name: &str) -> Field {
                enum_field(name, Self::WORDS)
            }

            fn array(len: usize, value: impl Fn(usize) -> Option<Self>) -> ArrayRef {
                let keys = (0..len).map(|row| value(row).map_or(0, |word| word as u8)).collect::<Vec<u8>>();
                let keys = UInt8Array::new(keys.into(), nulls(len, value));
                let words = StringArray::from(Self::WORDS.to_vec());
                Arc::new(DictionaryArray::new(keys, Arc::new(words)))
            }
        })+
    };
}

vocabulary!(Vantage, Feedback, Kind, Reason, Phase);

/// A dictionary whose metadata tells polars that it is an Enum of these words: `length;word` for each.
fn enum_field(name: &str, words: &[&str]) -> Field {
    let kind = DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8));
    let listed: String = words.iter().map(|word| format!("{};{word}", word.len())).collect();
    Field::new(name, kind, true).with_metadata(HashMap::from([("_PL_ENUM_VALUES2".to_owned(), listed)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_the_library_writes_them() {
        for octets in [[0, 9, 10, 99], [100, 101, 109, 110], [199, 200, 255, 1]] {
            let v4 = std::net::Ipv4Addr::from(octets);
            assert_eq!(v4.to_string(), text(&v4.to_ipv6_mapped().octets()));
        }
        assert_eq!("fe80::1", text(&"fe80::1".parse::<Ipv6Addr>().unwrap().octets()));
    }
}
