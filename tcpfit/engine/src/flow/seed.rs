//! The hash under which a connection is found.

use crate::flow::listing::Ends;
use crate::segment::{Address, Segment};
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// Under which a connection is known: one, or two where its directions came through different tunnels.
pub type Hashes = [Option<u64>; 2];

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
    /// Of address and port of each end, in any order.
    #[inline]
    pub fn hash(&self, [a, b]: [(&Address, u16); 2], around: u32) -> u64 {
        let sum = self
            .end(a)
            .wrapping_add(self.end(b))
            .wrapping_add(u64::from(around) << 32);
        fold(sum ^ self.0[2], self.0[0] | 1)
    }

    #[inline]
    pub fn of(&self, segment: &Segment) -> u64 {
        self.hash(segment.ends(), segment.around)
    }

    #[inline]
    pub fn all(&self, ends: &Ends) -> Hashes {
        let names = ends.names.each_ref().map(|(address, port)| (address, *port));
        let [around, alias] = ends.arounds;
        [Some(around), Some(alias).filter(|&alias| alias != around)]
            .map(|around| around.map(|around| self.hash(names, around)))
    }

    /// Of a host.
    #[inline]
    pub fn of_host(&self, address: &Address) -> u64 {
        self.end((address, 0))
    }

    #[inline]
    fn end(&self, (address, port): (&Address, u16)) -> u64 {
        let address = u128::from_ne_bytes(*address);
        let (low, high) = (address as u64, (address >> 64) as u64);
        fold(low ^ self.0[0] ^ u64::from(port) << 48, high ^ self.0[1])
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
