//! A queue in one block of memory that has room for a power of two: where an element lies costs one `and`.
//!
//! The standard library's queue takes any capacity and has to compare, for each segment that is sent and again for each
//! that is acknowledged. Slots of this one are touched when they are first needed, not when room is made: what a large
//! window does not use stays with the system.

use std::ops::{Index, IndexMut, Range};

/// Room that the first element makes.
const LEAST: usize = 4;
/// Slots that are touched at once, at most.
const STEP: usize = 64;

#[derive(Clone, Debug, Default)]
pub struct Ring<T> {
    /// Those touched so far.
    slots: Vec<T>,
    /// Room less one; of no use before there is a slot.
    mask: u32,
    /// Slot of the first element.
    front: u32,
    len: u32,
}

impl<T: Copy + Default> Ring<T> {
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Slot of the n-th element.
    #[inline]
    fn slot(&self, n: usize) -> usize {
        (self.front.wrapping_add(n as u32) & self.mask) as usize
    }

    #[inline]
    pub fn get(&self, n: usize) -> Option<&T> {
        if n < self.len() {
            self.slots.get(self.slot(n))
        } else {
            None
        }
    }

    #[inline]
    pub fn get_mut(&mut self, n: usize) -> Option<&mut T> {
        if n < self.len() {
            let slot = self.slot(n);
            self.slots.get_mut(slot)
        } else {
            None
        }
    }

    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    #[inline]
    pub fn back(&self) -> Option<&T> {
        self.get(self.len().wrapping_sub(1))
    }

    #[inline]
    pub fn push_back(&mut self, element: T) {
        if self.len > self.mask || self.slot(self.len()) >= self.slots.len() {
            self.make_room();
        }
        let slot = self.slot(self.len());
        self.slots[slot] = element;
        self.len += 1;
    }

    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = *self.front()?;
        self.skip_front(1);
        Some(first)
    }

    /// Takes off the first `count`, which there must be.
    #[inline]
    pub fn skip_front(&mut self, count: usize) {
        debug_assert!(count <= self.len());
        self.front = self.slot(count) as u32;
        self.len -= count as u32;
    }

    pub fn pop_back(&mut self) -> Option<T> {
        let last = *self.back()?;
        self.len -= 1;
        Some(last)
    }

    /// The n-th is then `element`. Those before it or those behind make room, whatever is fewer.
    pub fn insert(&mut self, n: usize, element: T) {
        self.push_back(element);
        let before = self.front.wrapping_sub(1) & self.mask;
        if n < self.len() / 2 && (before as usize) < self.slots.len() {
            self.front = before;
            for k in 0..n {
                self[k] = self[k + 1];
            }
        } else {
            for k in (n + 1..self.len()).rev() {
                self[k] = self[k - 1];
            }
        }
        self[n] = element;
    }

    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        self.range(0..self.len())
    }

    #[inline]
    pub fn range(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        range.map(|n| &self[n])
    }

    /// How many of the elements are `below`: the first ones, and no others.
    pub fn partition_point(&self, below: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if below(&self[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// For one more element at the end.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        if self.slots.is_empty() || self.len > self.mask {
            let room = (2 * self.len()).max(LEAST);
            let mut slots = Vec::with_capacity(room);
            slots.extend(self.iter().copied());
            self.slots = slots;
            self.mask = room as u32 - 1;
            self.front = 0;
        }
        let touched = self.slots.len();
        let more = touched.clamp(LEAST, STEP).min(self.mask as usize + 1 - touched);
        self.slots.resize(touched + more, T::default());
    }
}

impl<T: Copy + Default> Index<usize> for Ring<T> {
    type Output = T;

    #[inline]
    fn index(&self, n: usize) -> &T {
        &self.slots[self.slot(n)]
    }
}

impl<T: Copy + Default> IndexMut<usize> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, n: usize) -> &mut T {
        let slot = self.slot(n);
        &mut self.slots[slot]
    }
}

impl<T: Copy + Default> Extend<T> for Ring<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        for element in elements {
            self.push_back(element);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn it_does_what_the_standard_queue_does() {
        let (mut ring, mut queue, mut state) = (Ring::default(), VecDeque::new(), 1u64);
        for step in 0..40_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // grows to some hundreds, then shrinks to nothing, and so on
            let growing = step / 1000 % 2 == 0;
            let n = (state >> 20) as usize % (queue.len() + 1);
            match (state >> 60, growing) {
                (0..10, true) | (0..4, false) => {
                    ring.push_back(step);
                    queue.push_back(step);
                }
                (10, _) => {
                    ring.insert(n, step);
                    queue.insert(n, step);
                }
                (11, _) => assert_eq!(queue.pop_back(), ring.pop_back()),
                (12, _) => {
                    ring.skip_front(n / 8);
                    queue.drain(..n / 8);
                }
                _ => assert_eq!(queue.pop_front(), ring.pop_front()),
            }
            assert_eq!((queue.len(), queue.is_empty()), (ring.len(), ring.is_empty()));
            assert_eq!((queue.front(), queue.back()), (ring.front(), ring.back()));
            assert_eq!(
                (queue.get(n), queue.get(queue.len())),
                (ring.get(n), ring.get(queue.len()))
            );
            if step % 64 == 0 {
                let n = n.min(queue.len());
                assert!(queue.iter().eq(ring.iter()));
                assert!(queue.range(n..).rev().eq(ring.range(n..queue.len()).rev()));
            }
        }
    }

    #[test]
    fn what_it_holds_is_what_it_touches() {
        let mut ring = Ring::default();
        ring.extend(0..100_000u64);
        assert!(ring.slots.len() < 100_000 + STEP);
        assert_eq!(ring.partition_point(|&n| n < 777), 777);
        // one in, one out: it goes round
        for n in 100_000..400_000 {
            ring.push_back(n);
            assert_eq!(ring.pop_front(), Some(n - 100_000));
        }
        assert_eq!(ring.slots.len(), 1 << 17);
    }
}
