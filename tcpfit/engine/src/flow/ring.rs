//! A queue that has room for a power of two: where an element lies costs one `and`.
//!
//! The standard library's queue takes any capacity and has to compare, for each segment that is sent and again for each
//! that is acknowledged. It also copies all that it has to grow, so that a large window would hold the memory of a
//! smaller one too; here slots beyond the near ones come in chunks, which stay where they are. Few slots are
//! touched before they are needed.

use std::ops::{Index, IndexMut, Range};

/// Room that the first element makes.
const LEAST: usize = 4;
/// Slots that lie in one block, at most; and slots of each further one. So many units of 56 bytes are seven times the
/// 64 KiB that the allocator gives large blocks in; half as many would leave an eighth of that over.
const CHUNK: usize = 8192;
/// Near slots that are touched at once, at most.
const STEP: usize = 64;

#[derive(Clone, Debug)]
#[repr(C)]
pub struct Ring<T> {
    near: Vec<T>,
    /// Room less one; of no use before there is a slot.
    mask: u32,
    /// Slot of the first element.
    front: u32,
    len: u32,
    far: Box<[Vec<T>]>,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self {
            near: Vec::new(),
            far: Box::default(),
            mask: 0,
            front: 0,
            len: 0,
        }
    }
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

    /// Where the n-th element lies: it stays there until the ring grows, or another is inserted.
    #[inline]
    pub fn place(&self, n: usize) -> u32 {
        self.slot(n) as u32
    }

    /// Which element lies there; not below `len` if none does.
    #[inline]
    pub fn at_place(&self, place: u32) -> usize {
        (place.wrapping_sub(self.front) & self.mask) as usize
    }

    #[inline]
    pub fn get(&self, n: usize) -> Option<&T> {
        (n < self.len()).then(|| &self[n])
    }

    #[inline]
    pub fn get_mut(&mut self, n: usize) -> Option<&mut T> {
        (n < self.len()).then(|| &mut self[n])
    }

    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    #[inline]
    pub fn back(&self) -> Option<&T> {
        self.get(self.len().wrapping_sub(1))
    }

    /// One more element at the end, to be written where it stays: a copy of what was just written waits for it.
    #[inline(always)]
    pub fn push_back(&mut self) -> &mut T {
        if self.len > self.mask {
            self.double();
        }
        let slot = self.slot(self.len());
        self.len += 1;
        if slot < self.near.len() {
            &mut self.near[slot]
        } else {
            self.slow_slot(slot)
        }
    }

    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = *self.front()?;
        self.skip_front(1);
        Some(first)
    }

    /// The first elements, as many as lie side by side in the near slots.
    #[inline]
    pub fn first_near(&self) -> &[T] {
        let (from, to) = (self.front as usize, (self.front + self.len) as usize);
        self.near.get(from..to.min(self.near.len())).unwrap_or(&[])
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
        self.push_back();
        let before = self.front.wrapping_sub(1) & self.mask;
        if n < self.len() / 2 && (before as usize) < self.touched() {
            self.front = before;
            self.move_back(n);
        } else {
            self.move_on(n);
        }
        self[n] = element;
    }

    /// The elements behind the first go one place back, up to the n-th's, as many at once as lie side by side.
    fn move_back(&mut self, n: usize) {
        let last = CHUNK.min(self.mask as usize + 1) - 1;
        let mut to = 0;
        while to < n {
            let slot = self.slot(to);
            let place = slot % CHUNK;
            let run = (last - place).min(n - to);
            if run == 0 {
                self[to] = self[to + 1];
                to += 1;
            } else {
                self.block_mut(slot).copy_within(place + 1..place + 1 + run, place);
                to += run;
            }
        }
    }

    /// The elements from the n-th on but the last go one place on.
    fn move_on(&mut self, n: usize) {
        let mut to = self.len() - 1;
        while to > n {
            let slot = self.slot(to);
            let place = slot % CHUNK;
            let run = place.min(to - n);
            if run == 0 {
                self[to] = self[to - 1];
                to -= 1;
            } else {
                self.block_mut(slot).copy_within(place - run..place, place - run + 1);
                to -= run;
            }
        }
    }

    /// The slots that lie in one block with that one.
    fn block(&self, slot: usize) -> &[T] {
        match slot / CHUNK {
            0 => &self.near,
            far => &self.far[far - 1],
        }
    }

    fn block_mut(&mut self, slot: usize) -> &mut [T] {
        match slot / CHUNK {
            0 => &mut self.near,
            far => &mut self.far[far - 1],
        }
    }

    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        self.range(0..self.len())
    }

    #[inline]
    pub fn range(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        range.map(|n| &self[n])
    }

    /// The elements of the range, run after run of what lies side by side: a quarter less to do than with `range`.
    #[inline]
    pub fn each(&self, range: Range<usize>, mut each: impl FnMut(&T)) {
        let mut n = range.start;
        while n < range.end {
            let slot = self.slot(n);
            let place = slot % CHUNK;
            let room = CHUNK.min(self.mask as usize + 1) - place;
            let run = room.min(range.end - n);
            self.block(slot)[place..place + run].iter().for_each(&mut each);
            n += run;
        }
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

    /// The ring without its elements, if it has room for one at least and for `most` at most: another can have it.
    pub fn emptied(self, most: usize) -> Option<Self> {
        self.is_small(most).then_some(Self {
            front: 0,
            len: 0,
            ..self
        })
    }

    /// It has room for an element, and for so many at most.
    pub fn is_small(&self, most: usize) -> bool {
        (1..=most).contains(&self.near.capacity())
    }

    /// Slots in use before another one is.
    fn touched(&self) -> usize {
        match self.far.last() {
            Some(last) => self.far.len() * CHUNK + last.len(),
            None => self.near.len(),
        }
    }

    /// All slots are taken: there will be as many more. What had gone round to the first of them goes on behind the last.
    #[cold]
    #[inline(never)]
    fn double(&mut self) {
        let room = self.mask + 1;
        self.mask = 2 * room - 1;
        for slot in 0..self.front {
            let element = self[(self.mask + 1 - self.front + slot) as usize];
            *self.slow_slot((room + slot) as usize) = element;
        }
    }

    /// A slot that is not near, or the first that was not touched so far.
    #[cold]
    #[inline(never)]
    fn slow_slot(&mut self, slot: usize) -> &mut T {
        if slot >= self.touched() {
            self.touch(slot);
        }
        if slot < CHUNK {
            &mut self.near[slot]
        } else {
            self.far_mut(slot)
        }
    }

    fn touch(&mut self, slot: usize) {
        if slot < CHUNK {
            if slot == self.near.capacity() {
                self.near.reserve_exact(slot.max(LEAST));
            }
            self.mask = self.mask.max(LEAST as u32 - 1);
            let room = (self.mask as usize + 1).min(CHUNK);
            let touched = (slot + slot.clamp(LEAST, STEP)).min(room);
            self.near.resize(touched, T::default());
            return;
        }
        if slot.is_multiple_of(CHUNK) {
            let mut far = std::mem::take(&mut self.far).into_vec();
            far.push(Vec::with_capacity(CHUNK));
            self.far = far.into_boxed_slice();
        }
        self.far[slot / CHUNK - 1].push(T::default());
    }

    #[cold]
    #[inline(never)]
    fn far(&self, slot: usize) -> &T {
        &self.far[slot / CHUNK - 1][slot % CHUNK]
    }

    #[cold]
    #[inline(never)]
    fn far_mut(&mut self, slot: usize) -> &mut T {
        &mut self.far[slot / CHUNK - 1][slot % CHUNK]
    }
}

impl<T: Copy + Default> Index<usize> for Ring<T> {
    type Output = T;

    #[inline]
    fn index(&self, n: usize) -> &T {
        let slot = self.slot(n);
        match self.near.get(slot) {
            Some(element) => element,
            None => self.far(slot),
        }
    }
}

impl<T: Copy + Default> IndexMut<usize> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, n: usize) -> &mut T {
        let slot = self.slot(n);
        if slot < self.near.len() {
            &mut self.near[slot]
        } else {
            self.far_mut(slot)
        }
    }
}

impl<T: Copy + Default> Extend<T> for Ring<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        for element in elements {
            *self.push_back() = element;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// The same steps with both queues, which hold `least` elements or more.
    fn compare(least: usize, steps: u64) {
        let (mut ring, mut queue, mut state) = (Ring::default(), VecDeque::new(), 1u64);
        ring.extend(0..least as u64);
        queue.extend(0..least as u64);
        for step in 0..steps {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // grows by some hundreds, then shrinks again, and so on; slowly it goes round
            let growing = queue.len() < least || step / 1000 % 2 == 0;
            let n = (state >> 20) as usize % (queue.len() + 1);
            match (state >> 60, growing) {
                (0..10, true) | (0..4, false) => {
                    *ring.push_back() = step;
                    queue.push_back(step);
                }
                (10, _) => {
                    ring.insert(n, step);
                    queue.insert(n, step);
                }
                (11, _) => assert_eq!(queue.pop_back(), ring.pop_back()),
                (12, false) => {
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
            assert!(ring.first_near().iter().eq(ring.iter().take(ring.first_near().len())));
            if step % 64 == 0 && (least < CHUNK || step % 4096 == 0) {
                let n = n.min(queue.len());
                assert!(queue.iter().eq(ring.iter()));
                assert!(queue.range(n..).rev().eq(ring.range(n..queue.len()).rev()));
                let mut each = Vec::new();
                ring.each(n..queue.len(), |&element| each.push(element));
                assert!(queue.range(n..).eq(&each));
            }
        }
    }

    #[test]
    fn it_does_what_the_standard_queue_does() {
        compare(0, 40_000);
        compare(3 * CHUNK, 30_000);
    }

    #[test]
    fn another_has_the_room_of_an_emptied_one() {
        let mut ring = Ring::default();
        for kept in [0u64, 5, 16, 11] {
            // its elements lie around the end of its slots, then come in order in the next one's
            ring.extend(0..16);
            ring.skip_front(16 - kept as usize);
            ring.extend(16..32 - kept);
            assert_eq!((16, 16), (ring.len(), ring.near.capacity()));
            ring = ring.emptied(16).unwrap_or_default();
            assert_eq!((None, 16), (ring.front(), ring.near.capacity()));
            ring.extend(100..103);
            assert!(ring.iter().eq(&[100, 101, 102]));
            ring = ring.emptied(16).unwrap_or_default();
        }
        ring.extend(0..17);
        assert!(ring.emptied(16).is_none());
    }

    #[test]
    fn what_it_holds_is_what_it_touches() {
        let mut ring = Ring::default();
        ring.extend(0..100_000u64);
        assert_eq!(ring.touched(), 100_000);
        assert_eq!(ring.partition_point(|&n| n < 77_777), 77_777);
        ring.skip_front(CHUNK - 3);
        assert_eq!(ring.first_near().len(), 3);
        ring.skip_front(3);
        assert!(ring.first_near().is_empty());
        // one in, one out: it goes round
        for n in 100_000..400_000u64 {
            *ring.push_back() = n;
            assert_eq!(ring.pop_front(), Some(n - 100_000 + CHUNK as u64));
        }
        assert_eq!(ring.touched(), 1 << 17);
    }
}
