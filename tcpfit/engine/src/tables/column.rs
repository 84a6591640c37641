//! How a value of a row becomes an Arrow column.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::{Float64Type, Int64Type, UInt16Type, UInt32Type, UInt64Type, UInt8Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BooleanArray, DictionaryArray, PrimitiveArray, StringArray, UInt8Array,
};
use arrow_schema::{DataType, Field};

use crate::rows::{Feedback, Kind, Phase, Reason, Vantage};
use crate::segment::{Address, Direction, V4_MAPPED};

/// A value that fills a column of its own type.
pub trait Value: Copy {
    fn field(name: &str) -> Field;
    /// `None` is null.
    fn array(values: impl ExactSizeIterator<Item = Option<Self>>) -> ArrayRef;
}

macro_rules! primitive {
    ($($native:ty => $arrow:ty),+ $(,)?) => {
        $(impl Value for $native {
            fn field(name: &str) -> Field {
                Field::new(name, <$arrow as ArrowPrimitiveType>::DATA_TYPE, true)
            }

            fn array(values: impl ExactSizeIterator<Item = Option<Self>>) -> ArrayRef {
                Arc::new(values.collect::<PrimitiveArray<$arrow>>())
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

impl Value for bool {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Boolean, true)
    }

    fn array(values: impl ExactSizeIterator<Item = Option<Self>>) -> ArrayRef {
        Arc::new(values.collect::<BooleanArray>())
    }
}

/// Addresses are text in the tables, IPv6 as RFC 5952 writes it.
impl Value for Address {
    fn field(name: &str) -> Field {
        Field::new(name, DataType::Utf8, true)
    }

    fn array(values: impl ExactSizeIterator<Item = Option<Self>>) -> ArrayRef {
        let mut column = StringBuilder::with_capacity(values.len(), values.len() * 12);
        // packets come in trains of one address, and writing it out is what costs
        let mut last = ([0; 16], text(&[0; 16]));
        for value in values {
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
        Some(&[a, b, c, d]) => Ipv4Addr::new(a, b, c, d).to_string(),
        _ => Ipv6Addr::from(*address).to_string(),
    }
}

impl Value for Direction {
    fn field(name: &str) -> Field {
        u8::field(name)
    }

    fn array(values: impl ExactSizeIterator<Item = Option<Self>>) -> ArrayRef {
        u8::array(values.map(|value| value.map(|direction| direction as u8)))
    }
}

macro_rules! vocabulary {
    ($($name:ty),+) => {
        $(impl Value for $name {
            fn field(name: &str) -> Field {
                enum_field(name, Self::WORDS)
            }

            fn array(values: impl ExactSizeIterator<Item = Option<Self>>) -> ArrayRef {
                let keys: UInt8Array = values.map(|value| value.map(|word| word as u8)).collect();
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
