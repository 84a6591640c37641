//! Connections that were settled, known for as long as their late packets could be taken for a new connection.

use crate::flow::index::Index;
use crate::flow::listing::Listing;
use crate::flow::seed::Seed;
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
    pub fn add(&mut self, listing: &Listing, isns: [Option<u32>; 2], due_ns: i64, seed: &Seed) {
        for (n, hash) in seed.all(&listing.ends).enumerate() {
            self.index.insert(hash, self.number(self.entries.len()));
            self.entries.push_back(Entry {
                hash,
                isns,
                due_ns,
                again: n > 0,
            });
        }
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

    /// The segment is a late one of a connection that was settled: not the SYN of another between the same ends, which has
    /// another initial sequence number.
    pub fn takes(&mut self, segment: &Segment, seed: &Seed) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        let hash = seed.of(segment);
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
        past.first = NUMBERS - 3; // the numbers begin again among these
        for port in 0..10 {
            let listing = Listing::new(u32::from(port), [None; 2], &syn(port, 7));
            past.add(&listing, [Some(7), None], i64::from(port) * 10, &seed);
        }
        let late = |port| Segment {
            flags: flags::ACK,
            ..syn(port, 99)
        };
        assert!((0..10).all(|port| past.takes(&late(port), &seed)));
        assert!(past.takes(&syn(4, 7), &seed), "the same SYN once more");
        assert!(!past.takes(&late(11), &seed));

        // another connection: the one before is not known any more
        assert!(!past.takes(&syn(4, 8), &seed));
        assert!(!past.takes(&late(4), &seed));

        // the same of a connection whose directions come through different tunnels, whichever is asked
        let around = |port, around| Segment { around, ..late(port) };
        for port in [20, 21] {
            let mut listing = Listing::new(u32::from(port), [None; 2], &syn(port, 7));
            listing.ends.arounds[1] = 5;
            past.add(&listing, [Some(7), None], 90, &seed);
        }
        assert!([(20, 0), (20, 5), (21, 0), (21, 5)].map(|(port, n)| past.takes(&around(port, n), &seed)) == [true; 4]);
        assert!(!past.takes(&syn(20, 8), &seed));
        let another = Segment {
            around: 5,
            ..syn(21, 8)
        };
        assert!(!past.takes(&another, &seed));
        assert!(
            [(20, 0), (20, 5), (21, 0), (21, 5)].map(|(port, n)| past.takes(&around(port, n), &seed)) == [false; 4]
        );

        past.forget(20, 10);
        assert_eq!(40, past.due_ns(), "one more goes because they are too many");
        let known: Vec<u16> = (0..10).filter(|&port| past.takes(&late(port), &seed)).collect();
        assert_eq!(vec![5, 6, 7, 8, 9], known);
        past.forget(90, 6);
        assert_eq!(i64::MAX, past.due_ns());
    }
}
