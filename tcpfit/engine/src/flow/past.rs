//! Connections that were settled, known for as long as their late packets could be taken for a new connection.

use crate::flow::index::Index;
use crate::flow::seed::Hashes;
use crate::segment::{flags, Segment};
use std::collections::VecDeque;

/// They are numbered below this, and then from 0 again.
const NUMBERS: u32 = 1 << 31;

struct Entry {
    /// All of the hash stands for the ends: of 65,536 connections another's is the same once in 2^48.
    hash: u64,
    /// Initial sequence number of each end, as far as known.
    isns: [Option<u32>; 2],
    /// When it can be forgotten.
    due_ns: i64,
    /// The connection before, by the tunnels of its other direction.
    again: bool,
}

/// In the order in which they are forgotten. They are many more than those that are followed, and seldom asked for: an
/// index of their own keeps the other small.
#[derive(Default)]
pub struct Past {
    entries: VecDeque<Entry>,
    /// Number of the first.
    first: u32,
    index: Index,
}

impl Past {
    /// Adds a connection that was known under the hashes.
    pub fn add(&mut self, hashes: Hashes, isns: [Option<u32>; 2], due_ns: i64) {
        for (n, hash) in hashes.into_iter().flatten().enumerate() {
            self.index.insert(hash, self.number(self.entries.len()));
            self.entries.push_back(Entry {
                hash,
                isns,
                due_ns,
                again: n > 0,
            });
        }
    }

    /// Asks for where the hash is looked for.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// When the first can be forgotten.
    pub fn due_ns(&self) -> i64 {
        self.entries.front().map_or(i64::MAX, |first| first.due_ns)
    }

    /// Forgets those that are due, and the first of more than `most`.
    pub fn forget(&mut self, now_ns: i64, most: usize) {
        while self.due_ns() <= now_ns || self.entries.len() > most {
            let Some(entry) = self.entries.pop_front() else { return };
            self.index.remove(entry.hash, self.first);
            self.first = (self.first + 1) % NUMBERS;
        }
    }

    /// The segment, of this hash, is a late one of a connection that was settled: not the SYN of another between the same
    /// ends, which has another initial sequence number.
    pub fn takes(&mut self, hash: u64, segment: &Segment) -> bool {
        let place = |number: u32| (number.wrapping_sub(self.first) % NUMBERS) as usize;
        let known = |number| Some(place(number)).filter(|&place| self.entries[place].hash == hash);
        let Some(place) = self.index.find(hash, known) else {
            return false;
        };
        let opens = segment.has(flags::SYN) && !segment.has(flags::ACK);
        if !opens || self.entries[place].isns.contains(&Some(segment.seq)) {
            return true;
        }
        // of the connection before nothing is known any more, by either hash
        let first = place - usize::from(self.entries[place].again);
        for place in first..=first + 1 {
            if let Some(entry) = self.entries.get(place).filter(|entry| place == first || entry.again) {
                self.index.remove(entry.hash, self.number(place));
            }
        }
        false
    }

    /// Of the entry at that place.
    fn number(&self, place: usize) -> u32 {
        (self.first + place as u32) % NUMBERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::listing::Listing;
    use crate::flow::seed::Seed;

    /// The SYN of a connection that the port tells.
    fn syn(port: u16, seq: u32) -> Segment {
        Segment {
            src: [1; 16],
            dst: [2; 16],
            sport: port,
            dport: 80,
            seq,
            flags: flags::SYN,
            ..Segment::default()
        }
    }

    #[test]
    fn late_packets_are_known_until_they_are_due_and_another_syn_never() {
        let (seed, mut past) = (Seed::default(), Past::default());
        let takes = |past: &mut Past, segment: &Segment| past.takes(seed.of(segment), segment);
        past.first = NUMBERS - 3; // the numbers begin again among these
        for port in 0..10 {
            let listing = Listing::new(u32::from(port), [None; 2], &syn(port, 7));
            past.add(seed.all(&listing.ends), [Some(7), None], i64::from(port) * 10);
        }
        let late = |port| Segment {
            flags: flags::ACK,
            ..syn(port, 99)
        };
        assert!((0..10).all(|port| takes(&mut past, &late(port))));
        assert!(takes(&mut past, &syn(4, 7)), "the same SYN once more");
        assert!(!takes(&mut past, &late(11)));

        // another connection: the one before is not known any more
        assert!(!takes(&mut past, &syn(4, 8)));
        assert!(!takes(&mut past, &late(4)));

        // the same of a connection whose directions come through different tunnels, whichever is asked
        let around = |port, around| Segment { around, ..late(port) };
        for port in [20, 21] {
            let mut listing = Listing::new(u32::from(port), [None; 2], &syn(port, 7));
            listing.ends.arounds[1] = 5;
            past.add(seed.all(&listing.ends), [Some(7), None], 90);
        }
        assert!([(20, 0), (20, 5), (21, 0), (21, 5)].map(|(port, n)| takes(&mut past, &around(port, n))) == [true; 4]);
        assert!(!takes(&mut past, &syn(20, 8)));
        let another = Segment {
            around: 5,
            ..syn(21, 8)
        };
        assert!(!takes(&mut past, &another));
        assert!([(20, 0), (20, 5), (21, 0), (21, 5)].map(|(port, n)| takes(&mut past, &around(port, n))) == [false; 4]);

        past.forget(20, 10);
        assert_eq!(40, past.due_ns(), "one more goes because they are too many");
        let known: Vec<u16> = (0..10).filter(|&port| takes(&mut past, &late(port))).collect();
        assert_eq!(vec![5, 6, 7, 8, 9], known);
        past.forget(90, 6);
        assert_eq!(i64::MAX, past.due_ns());
    }
}
