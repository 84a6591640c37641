//! The hash under which a connection is found.

use crate::flow::listing::{Ends, Name};
use crate::segment::Segment;
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// Hashes the ends of a connection, seeded because captures are untrusted input: a folded multiplication an end, as in
/// foldhash, and their sum, so that both directions have one hash and nothing asks which it is.
pub struct Seed([u64; 3]);

impl Default for Seed {
    fn default() -> Self {
        let random = RandomState::default();
        Self([0, 1, 2].map(|n: u64| random.hash_one(n)))
    }
}

impl Seed {
    #[inline]
    pub fn hash(&self, a: Name, b: Name, around: u32) -> u64 {
        let sum = self
            .end(a)
            .wrapping_add(self.end(b))
            .wrapping_add(u64::from(around) << 32);
        fold(sum ^ self.0[2], self.0[0] | 1)
    }

    #[inline]
    pub fn of(&self, segment: &Segment) -> u64 {
        self.hash(
            (segment.src, segment.sport),
            (segment.dst, segment.dport),
            segment.around,
        )
    }

    /// The hashes under which the connection is known: one, or two where its directions came through different tunnels.
    pub fn all(&self, ends: &Ends) -> impl Iterator<Item = u64> {
        let ([a, b], [around, alias]) = (ends.names, ends.arounds);
        let alias = Some(alias).filter(|&alias| alias != around);
        [Some(around), alias]
            .map(|around| around.map(|around| self.hash(a, b, around)))
            .into_iter()
            .flatten()
    }

    #[inline]
    fn end(&self, (address, port): Name) -> u64 {
        let address = u128::from_ne_bytes(address);
        let (low, high) = (address as u64, (address >> 64) as u64);
        fold(low ^ self.0[0] ^ u64::from(port) << 48, high ^ self.0[1])
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
