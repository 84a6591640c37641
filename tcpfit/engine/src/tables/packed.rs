//! Rows that wait for others, packed: most of a row's values are small numbers, zero, or not known.
//!
//! A value is a number of up to eight bytes, of which those above the highest that is not zero are left out; a byte before
//! each two of them has their lengths.

use std::marker::PhantomData;

use crate::nullable::{self, Nullable};
use crate::rows::{Ending, Feedback, Kind, Phase, Reason, Vantage};
use crate::segment::Address;

/// Bytes of a block of rows.
const BLOCK: usize = 8 << 10;

/// In the place of a length: there is no value.
const NONE: usize = 9;

/// A row whose values can be packed.
pub trait Pack: Sized {
    /// Bytes that a row takes at most.
    const LONGEST: usize;

    fn write(&self, writer: &mut Writer);
    fn read(reader: &mut Reader) -> Self;
}

/// Packed rows, in the order in which they came.
pub struct Packed<R> {
    blocks: Vec<Box<[u8]>>,
    /// Where the next row begins in the last block.
    at: usize,
    rows: usize,
    last_ns: i64,
    row: PhantomData<R>,
}

impl<R> Default for Packed<R> {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            at: BLOCK,
            rows: 0,
            last_ns: 0,
            row: PhantomData,
        }
    }
}

impl<R: Pack> Packed<R> {
    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn push(&mut self, row: &R) {
        if self.at + R::LONGEST > BLOCK {
            self.blocks.push(vec![0; BLOCK].into_boxed_slice());
            self.at = 0;
        }
        let Some(bytes) = self.blocks.last_mut() else { return };
        let mut writer = Writer {
            bytes: &mut bytes[self.at..],
            at: 0,
            lengths: 0,
            second: false,
            last_ns: self.last_ns,
        };
        row.write(&mut writer);
        self.last_ns = writer.last_ns;
        self.at += writer.at;
        self.rows += 1;
    }

    /// The rows as they were; a block's memory is given back when the rows in it have been taken.
    pub fn unpack(self, into: &mut Vec<R>) {
        into.reserve_exact(self.rows);
        let (mut left, mut last_ns) = (self.rows, 0);
        for bytes in self.blocks {
            let mut at = 0;
            while left > 0 && at + R::LONGEST <= BLOCK {
                let mut reader = Reader {
                    bytes: &bytes[at..],
                    at: 0,
                    lengths: 0,
                    second: false,
                    last_ns,
                };
                into.push(R::read(&mut reader));
                last_ns = reader.last_ns;
                at += reader.at;
                left -= 1;
            }
        }
    }
}

/// Takes the values of a row.
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
    /// Where the byte is that has the lengths of this value and its neighbour.
    lengths: usize,
    /// This is the second of the two.
    second: bool,
    /// The time that was written last.
    last_ns: i64,
}

impl Writer<'_> {
    // inlined, whether a value is the second of two is known where the row's code is made
    #[inline(always)]
    fn length(&mut self, length: usize) {
        if self.second {
            self.bytes[self.lengths] |= (length as u8) << 4;
        } else {
            self.lengths = self.at;
            self.bytes[self.at] = length as u8;
            self.at += 1;
        }
        self.second = !self.second;
    }

    #[inline(always)]
    fn number(&mut self, number: u64) {
        let length = (u64::BITS - number.leading_zeros()).div_ceil(8) as usize;
        self.length(length);
        if length == 0 {
            return;
        }
        self.bytes[self.at..][..8].copy_from_slice(&number.to_le_bytes());
        self.at += length;
    }
}

/// Gives the values of a row in their order.
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    lengths: u8,
    second: bool,
    last_ns: i64,
}

impl Reader<'_> {
    #[inline(always)]
    fn number(&mut self) -> Option<u64> {
        if !self.second {
            self.lengths = self.bytes[self.at];
            self.at += 1;
        }
        let length = usize::from(self.lengths & 15);
        self.lengths >>= 4;
        self.second = !self.second;
        if length == 0 {
            return Some(0);
        }
        if length == NONE {
            return None;
        }
        let mut number = [0; 8];
        number.copy_from_slice(&self.bytes[self.at..][..8]);
        self.at += length;
        // what comes after it belongs to others
        Some(u64::from_le_bytes(number) & u64::MAX >> ((64 - 8 * length as u32) & 63))
    }
}

/// A value that is a number; times are told from the time before.
trait Number: Copy {
    fn word(self, last_ns: &mut i64) -> u64;
    fn of(number: u64, last_ns: &mut i64) -> Self;
}

macro_rules! numbers {
    ($($native:ty: |$value:ident| $to:expr, |$number:ident| $from:expr;)+) => {
        $(impl Number for $native {
            #[inline]
            fn word(self, _: &mut i64) -> u64 {
                let $value = self;
                $to
            }

            #[inline]
            fn of($number: u64, _: &mut i64) -> Self {
                $from
            }
        })+
    };
}

numbers! {
    u8: |value| u64::from(value), |number| number as u8;
    u16: |value| u64::from(value), |number| number as u16;
    u32: |value| u64::from(value), |number| number as u32;
    u64: |value| value, |number| number;
    bool: |value| u64::from(value), |number| number != 0;
    // whole numbers end in zeros
    f64: |value| value.to_bits().swap_bytes(), |number| f64::from_bits(number.swap_bytes());
    Vantage: |value| value as u64, |number| Self::ALL[number as usize];
    Feedback: |value| value as u64, |number| Self::ALL[number as usize];
    Ending: |value| value as u64, |number| Self::ALL[number as usize];
    Kind: |value| value as u64, |number| Self::ALL[number as usize];
    Reason: |value| value as u64, |number| Self::ALL[number as usize];
    Phase: |value| value as u64, |number| Self::ALL[number as usize];
}

impl Number for i64 {
    #[inline]
    fn word(self, last_ns: &mut i64) -> u64 {
        let since = self.wrapping_sub(*last_ns);
        *last_ns = self;
        // the sign in the lowest bit: small ones of either sign are short
        (since << 1 ^ since >> 63) as u64
    }

    #[inline]
    fn of(number: u64, last_ns: &mut i64) -> Self {
        let since = (number >> 1) as i64 ^ -((number & 1) as i64);
        *last_ns = last_ns.wrapping_add(since);
        *last_ns
    }
}

/// What a row has in a column.
pub trait Packable {
    /// Bytes, with its part of the lengths.
    const LONGEST: usize;

    fn write(self, writer: &mut Writer);
    fn read(reader: &mut Reader) -> Self;
}

impl<T: Number> Packable for T {
    const LONGEST: usize = 9;

    #[inline(always)]
    fn write(self, writer: &mut Writer) {
        let number = self.word(&mut writer.last_ns);
        writer.number(number);
    }

    #[inline(always)]
    fn read(reader: &mut Reader) -> Self {
        let number = reader.number().unwrap_or_default();
        T::of(number, &mut reader.last_ns)
    }
}

impl<T: Number> Packable for Option<T> {
    const LONGEST: usize = T::LONGEST;

    #[inline(always)]
    fn write(self, writer: &mut Writer) {
        match self {
            Some(value) => value.write(writer),
            None => writer.length(NONE),
        }
    }

    #[inline(always)]
    fn read(reader: &mut Reader) -> Self {
        let number = reader.number()?;
        Some(T::of(number, &mut reader.last_ns))
    }
}

impl<T: Number + nullable::Number> Packable for Nullable<T> {
    const LONGEST: usize = T::LONGEST;

    #[inline(always)]
    fn write(self, writer: &mut Writer) {
        self.get().write(writer);
    }

    #[inline(always)]
    fn read(reader: &mut Reader) -> Self {
        Option::<T>::read(reader).into()
    }
}

impl Packable for Address {
    const LONGEST: usize = 18;

    #[inline(always)]
    fn write(self, writer: &mut Writer) {
        let number = u128::from_be_bytes(self);
        writer.number((number >> 64) as u64);
        writer.number(number as u64);
    }

    #[inline(always)]
    fn read(reader: &mut Reader) -> Self {
        let (high, low) = (reader.number(), reader.number());
        (u128::from(high.unwrap_or_default()) << 64 | u128::from(low.unwrap_or_default())).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{EventRow, FlowRow, RoundRow};

    fn back<R: Pack + Clone>(rows: &[R]) -> Vec<R> {
        let mut packed = Packed::default();
        rows.iter().for_each(|row| packed.push(row));
        assert_eq!(rows.len(), packed.len());
        let mut unpacked = Vec::new();
        packed.unpack(&mut unpacked);
        unpacked
    }

    #[test]
    fn numbers_of_every_length_come_back() {
        let rows: Vec<_> = (0..5_000u32)
            .map(|n| {
                let number = u64::MAX.rotate_right(n / 64) >> (n % 64);
                FlowRow {
                    flow: n,
                    src: [n as u8; 16],
                    dst: [0; 16],
                    first_ns: [i64::MIN, i64::MAX, -1, 0, 1_700_000_000_000_000_000][n as usize % 5],
                    last_ns: i64::from(n),
                    handshake_rtt_s: (n % 3 > 0).then_some(f64::from(n) / 7.0).into(),
                    mss_bytes: (n % 2 > 0).then_some(n % 5).into(),
                    sack_permitted: [None, Some(false), Some(true)][n as usize % 3],
                    mptcp: [Some(true), None, Some(false)][n as usize % 3],
                    vantage: Vantage::ALL[n as usize % Vantage::ALL.len()],
                    ecn_feedback: Feedback::ALL.get(n as usize % 5).copied(),
                    ending: Ending::ALL[n as usize % Ending::ALL.len()],
                    reset_frame: (n % 11 > 0).then_some(number).into(),
                    data_segments: number,
                    ece_acks: (n % 7 > 0).then_some(number).into(),
                    rwnd_max: [0.0, -0.0, f64::INFINITY, 65_535.0][n as usize % 4].into(),
                    busy_s: f64::MIN_POSITIVE,
                    ..FlowRow::default()
                }
            })
            .collect();
        // as text: zeros have signs
        assert!(format!("{rows:?}") == format!("{:?}", back(&rows)));
    }

    #[test]
    fn a_row_of_the_longest_values_fits() {
        let long = EventRow {
            flow: u32::MAX,
            time_ns: i64::MIN,
            kind: Kind::EcnResponse,
            reason: Reason::Unknown,
            left: u64::MAX,
            right: u64::MAX,
            frame: u64::MAX.into(),
            cause_frame: u64::MAX.into(),
            segments: u32::MAX,
            doublings: u32::MAX.into(),
            flight: -1.0 / 3.0,
            phase: Phase::Loss,
            confidence: -1.0 / 3.0,
            value: (-1.0 / 3.0).into(),
            timeout_follows: Some(true),
            replayed_s: (-1.0 / 3.0).into(),
            replayed_rfc_s: (-1.0 / 3.0).into(),
            order: u64::MAX.into(),
            arrival: u64::MAX.into(),
            end_ns: i64::MAX.into(),
            flight_after: (-1.0 / 3.0).into(),
        };
        let rows = [[long; 100], [EventRow::NONE; 100]].concat();
        assert_eq!(rows, back(&rows));
        assert_eq!(Vec::<RoundRow>::new(), back::<RoundRow>(&[]));
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        let row = FlowRow {
            flight_max: f64::NAN,
            ..FlowRow::default()
        };
        assert_eq!(f64::NAN.to_bits(), back(&[row])[0].flight_max.to_bits());
    }
}
