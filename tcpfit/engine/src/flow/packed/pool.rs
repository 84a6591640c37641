//! Memory of packed connections: chains of chunks as long as a cache line, in blocks that stay where they are.
//!
//! A connection grows by some bytes a packet, and thousands grow in turn. Buffers of their own would be moved each time
//! that they grow, and leave gaps behind.

use crate::prefetch::prefetch;

/// Bytes of a chunk that are records'; with the next one's number it is three cache lines.
const CHUNK: usize = 188;
/// Chunks of a block, 192 KiB.
const BLOCK: usize = 1024;
/// What is added has so many bytes at most, mostly.
const MOSTLY: usize = 32;
/// No chunk.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Chunk {
    bytes: [u8; CHUNK],
    next: u32,
}

/// Bytes in the pool, in the order in which they were added.
#[derive(Clone, Copy)]
pub struct Chain {
    first: u32,
    last: u32,
    length: u32,
    /// Bytes in the last chunk; where there is none, as many as in a full one.
    at: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
            length: 0,
            at: CHUNK as u32,
        }
    }
}

impl Chain {
    #[inline]
    pub fn len(&self) -> usize {
        self.length as usize
    }
}

#[derive(Default)]
pub struct Pool {
    blocks: Vec<Box<[Chunk]>>,
    /// Chunks of each block that are some chain's.
    used: Vec<u32>,
    /// Chunks that are free.
    free: Vec<u32>,
    /// No chain grows any more.
    ending: bool,
}

impl Pool {
    #[inline]
    fn chunk(&self, n: u32) -> &Chunk {
        &self.blocks[n as usize / BLOCK][n as usize % BLOCK]
    }

    #[inline]
    fn chunk_mut(&mut self, n: u32) -> &mut Chunk {
        &mut self.blocks[n as usize / BLOCK][n as usize % BLOCK]
    }

    /// Asks for the line that the next bytes go into.
    #[inline]
    pub fn prefetch(&self, chain: &Chain) {
        if chain.last != NONE {
            self.chunk(chain.last).bytes.get(chain.at as usize).map(prefetch);
        }
    }

    /// Asks for the first and the last chunk: those between are known by them only.
    #[inline]
    pub fn prefetch_all(&self, chain: &Chain) {
        if chain.first != NONE {
            prefetch(self.chunk(chain.first));
            prefetch(self.chunk(chain.last));
        }
    }

    /// Adds the first `length` of the bytes, at least one; a chunk has room for all of them.
    #[inline]
    pub fn append<const N: usize>(&mut self, chain: &mut Chain, bytes: &[u8; N], length: usize) {
        const { assert!(N >= MOSTLY) }
        if chain.at as usize == CHUNK {
            self.lengthen(chain);
        }
        let at = chain.at as usize;
        chain.length += length as u32;
        chain.at += length as u32;
        let chunk = &mut self.chunk_mut(chain.last).bytes;
        if let (Some(place), true) = (chunk.get_mut(at..at + MOSTLY), length <= MOSTLY) {
            // in a wide move or two: what is behind the first is written over next
            place.copy_from_slice(&bytes[..MOSTLY]);
            return;
        }
        let (here, next) = bytes[..length].split_at(length.min(CHUNK - at));
        chunk[at..][..here.len()].copy_from_slice(here);
        if !next.is_empty() {
            self.lengthen(chain);
            chain.at = next.len() as u32;
            self.chunk_mut(chain.last).bytes[..next.len()].copy_from_slice(next);
        }
    }

    #[cold]
    fn lengthen(&mut self, chain: &mut Chain) {
        let n = self.free.pop().unwrap_or_else(|| self.make_room());
        self.used[n as usize / BLOCK] += 1;
        self.chunk_mut(n).next = NONE;
        if chain.first == NONE {
            chain.first = n;
        } else {
            self.chunk_mut(chain.last).next = n;
        }
        (chain.last, chain.at) = (n, 0);
    }

    fn make_room(&mut self) -> u32 {
        let first = (self.blocks.len() * BLOCK) as u32;
        let empty = Chunk {
            bytes: [0; CHUNK],
            next: NONE,
        };
        self.blocks.push(vec![empty; BLOCK].into());
        self.used.push(0);
        self.free.extend((first + 1..first + BLOCK as u32).rev());
        first
    }

    /// Frees the chain; puts its bytes, and what else is in its last chunk, into `bytes`, as far as these go.
    pub fn take(&mut self, chain: &mut Chain, bytes: &mut [u8]) {
        let mut n = std::mem::take(chain).first;
        let mut places = bytes.chunks_exact_mut(CHUNK);
        while n != NONE {
            let chunk = self.chunk(n);
            if let Some(place) = places.next() {
                place.copy_from_slice(&chunk.bytes);
            }
            let next = chunk.next;
            self.release(n);
            n = next;
        }
    }

    /// No chain grows any more: the memory of blocks without chains goes to others at once.
    pub fn end(&mut self) {
        self.ending = true;
        self.free = Vec::new();
        for (block, &used) in self.blocks.iter_mut().zip(&self.used) {
            if used == 0 {
                *block = Box::default();
            }
        }
    }

    #[inline]
    fn release(&mut self, n: u32) {
        let block = n as usize / BLOCK;
        self.used[block] -= 1;
        if !self.ending {
            self.free.push(n);
        } else if self.used[block] == 0 {
            self.blocks[block] = Box::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_that_grow_in_turn_keep_their_bytes() {
        let mut pool = Pool::default();
        let (mut chains, mut bytes) = (vec![Chain::default(); 3000], [0; 8 * CHUNK]);
        let added = |n: usize, turn: usize| ([(n * 7 + turn) as u8; 64], 1 + (n + turn * 13) % 64);
        for life in 0..3 {
            for turn in 0..12 {
                for (n, chain) in chains.iter_mut().enumerate() {
                    pool.prefetch(chain);
                    let (bytes, length) = added(n, turn);
                    pool.append(chain, &bytes, length);
                }
            }
            for (n, chain) in chains.iter_mut().enumerate() {
                let added = (0..12).map(|turn| added(n, turn));
                let all: Vec<u8> = added.flat_map(|(bytes, length)| bytes[..length].to_vec()).collect();
                assert_eq!(all.len(), chain.len());
                pool.take(chain, &mut bytes);
                assert_eq!(all, bytes[..all.len()]);
                assert_eq!(0, chain.len());
            }
            assert_eq!(pool.free.len(), pool.blocks.len() * BLOCK, "life {life}");
        }
    }

    #[test]
    fn at_the_end_blocks_go_with_their_last_chain() {
        let (mut pool, mut bytes) = (Pool::default(), [0; 8 * CHUNK]);
        let mut chains = vec![Chain::default(); 2 * BLOCK + 1];
        chains.iter_mut().for_each(|chain| pool.append(chain, &[1; 64], 64));
        pool.take(&mut chains.pop().unwrap_or_default(), &mut bytes);
        let held = |pool: &Pool| pool.blocks.iter().map(|block| block.len()).sum::<usize>();
        assert_eq!(3 * BLOCK, held(&pool));
        pool.end();
        assert_eq!(2 * BLOCK, held(&pool), "one has no chain");
        for (n, chain) in chains.iter_mut().enumerate() {
            assert_eq!((2 - n / BLOCK) * BLOCK, held(&pool));
            pool.take(chain, &mut bytes);
            assert_eq!([1; 64], bytes[..64]);
        }
        assert_eq!(0, held(&pool));
    }
}
