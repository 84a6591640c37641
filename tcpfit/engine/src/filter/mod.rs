//! The everyday part of pcap-filter(7) over segments: which of them are analysed.
//!
//! As there, `and` and `or` have the same precedence and bind from the left, `not` binds closest, and qualifiers
//! left out are those of the primitive before (`port 80 or 443`).

mod address;
mod lexer;
mod parser;

use std::fmt;

use crate::segment::{Address, Segment, V4_MAPPED};

/// A parsed filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(Expression);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
    /// True of every segment (`tcp`) or of none (`udp`).
    Constant(bool),
    Version4(bool),
    Net(Side, Net),
    Ports(Side, u16, u16),
    LongerOrEqual(u32),
    ShorterOrEqual(u32),
}

/// Which end of the segment a primitive looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Source,
    Destination,
    Either,
    Both,
}

impl Side {
    fn holds<T>(self, source: T, destination: T, test: impl Fn(T) -> bool) -> bool {
        match self {
            Self::Source => test(source),
            Self::Destination => test(destination),
            Self::Either => test(source) || test(destination),
            Self::Both => test(source) && test(destination),
        }
    }
}

/// Addresses that agree with `bits` where `mask` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Net {
    bits: u128,
    mask: u128,
    v4: bool,
}

impl Net {
    fn new(address: Address, mask: u128) -> Self {
        Self {
            bits: u128::from_be_bytes(address) & mask,
            mask,
            v4: address.starts_with(&V4_MAPPED),
        }
    }

    /// A wide IPv6 network holds the IPv4-mapped form too, but no IPv4 address is meant by it.
    fn contains(&self, address: &Address) -> bool {
        u128::from_be_bytes(*address) & self.mask == self.bits && address.starts_with(&V4_MAPPED) == self.v4
    }
}

/// Why a filter cannot be read: one sentence with the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Characters before the place, from 0.
    pub position: usize,
    expected: String,
    found: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "filter, character {}: expected {}, got {}",
            self.position + 1,
            self.expected,
            self.found
        )
    }
}

impl std::error::Error for FilterError {}

impl Filter {
    /// An empty filter matches everything.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        parser::parse(text).map(Self)
    }

    pub fn matches(&self, segment: &Segment) -> bool {
        self.0.matches(segment)
    }
}

impl Expression {
    fn matches(&self, segment: &Segment) -> bool {
        match self {
            Self::And(left, right) => left.matches(segment) && right.matches(segment),
            Self::Or(left, right) => left.matches(segment) || right.matches(segment),
            Self::Not(inner) => !inner.matches(segment),
            Self::Constant(value) => *value,
            Self::Version4(v4) => segment.is_v4() == *v4,
            Self::Net(side, net) => side.holds(&segment.src, &segment.dst, |address| net.contains(address)),
            Self::Ports(side, low, high) => {
                side.holds(segment.sport, segment.dport, |port| (*low..=*high).contains(&port))
            }
            Self::LongerOrEqual(bytes) => segment.wire_bytes >= *bytes,
            Self::ShorterOrEqual(bytes) => segment.wire_bytes <= *bytes,
        }
    }
}

#[cfg(test)]
mod tests;
