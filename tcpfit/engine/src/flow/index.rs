//! Where connections are, by the hash of their ends: open addressing in one array, so that a look is one line of memory,
//! which can be asked for ahead.

use crate::prefetch::prefetch;

/// An entry of no connection.
const EMPTY: u32 = u32::MAX;
const SMALLEST: usize = 64;

/// Where a connection is, and the lower half of its hash. The table holds nothing else: the connection itself says whose it is, and it is needed anyway.
#[derive(Clone, Copy)]
struct Entry {
    hash: u32,
    place: u32,
}

const VACANT: Entry = Entry { hash: 0, place: EMPTY };

/// Places by hash, linear probing.
pub struct Index {
    /// As many as a power of two, at most half of them taken.
    entries: Box<[Entry]>,
    taken: usize,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            entries: vec![VACANT; SMALLEST].into(),
            taken: 0,
        }
    }
}

impl Index {
    #[inline]
    fn mask(&self) -> usize {
        self.entries.len() - 1
    }

    /// Asks for the line where `find` begins.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&self.entries[hash as usize & self.mask()]);
    }

    /// What `known` makes of the first place under the hash that it knows.
    #[inline]
    pub fn find<T>(&self, hash: u64, mut known: impl FnMut(u32) -> Option<T>) -> Option<T> {
        let mut at = hash as usize & self.mask();
        loop {
            let entry = self.entries[at];
            if entry.place == EMPTY {
                return None;
            }
            if entry.hash == hash as u32 {
                if let Some(found) = known(entry.place) {
                    return Some(found);
                }
            }
            at = (at + 1) & self.mask();
        }
    }

    pub fn insert(&mut self, hash: u64, place: u32) {
        if (self.taken + 1) * 2 > self.entries.len() {
            let larger = vec![VACANT; self.entries.len() * 2].into();
            for entry in std::mem::replace(&mut self.entries, larger) {
                if entry.place != EMPTY {
                    self.put(entry);
                }
            }
        }
        self.put(Entry {
            hash: hash as u32,
            place,
        });
        self.taken += 1;
    }

    fn put(&mut self, entry: Entry) {
        let mut at = entry.hash as usize & self.mask();
        while self.entries[at].place != EMPTY {
            at = (at + 1) & self.mask();
        }
        self.entries[at] = entry;
    }

    pub fn remove(&mut self, hash: u64, place: u32) {
        let mask = self.mask();
        let mut hole = hash as usize & mask;
        while self.entries[hole].place != place || self.entries[hole].hash != hash as u32 {
            if self.entries[hole].place == EMPTY {
                return;
            }
            hole = (hole + 1) & mask;
        }
        self.taken -= 1;
        // what was put further on because of it moves up (Knuth, The Art of Computer Programming 3, algorithm 6.4 R)
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry.place == EMPTY {
                break;
            }
            let away = at.wrapping_sub(entry.hash as usize) & mask;
            if away >= (at.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole] = VACANT;
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_a_map_holds() {
        let mut state = 1u64;
        let mut chance = |below: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        let mut index = Index::default();
        let mut kept: Vec<(u64, u32)> = Vec::new();
        for place in 0..5_000 {
            // few hashes, some at the array's end: chains that run into one another and around
            let hash = u64::from((chance(300) as u32).wrapping_sub(100));
            index.insert(hash, place);
            kept.push((hash, place));
            if chance(3) > 0 {
                let (hash, place) = kept.swap_remove(chance(kept.len() as u64) as usize);
                index.remove(hash, place);
                index.remove(hash, place);
                assert_eq!(None, index.find(hash, |found| (found == place).then_some(found)));
            }
        }
        for &(hash, place) in &kept {
            assert_eq!(Some(place), index.find(hash, |found| (found == place).then_some(found)));
        }
        assert_eq!(kept.len(), index.taken);
    }
}
