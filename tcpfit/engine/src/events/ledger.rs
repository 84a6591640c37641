//! Losses whose fate is known, until all that were sent before them are known too: given out in sending order.

use crate::events::loss_event::Loss;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// Fates are known nearly in sending order: what comes behind all others waits in a queue, only the rest in a heap.
#[derive(Clone, Debug)]
pub struct Ledger {
    in_order: VecDeque<Loss>,
    others: BinaryHeap<Reverse<Settled>>,
}

#[derive(Clone, Copy, Debug)]
struct Settled(Loss);

impl Settled {
    fn place(&self) -> (i64, u64, u64) {
        place(&self.0)
    }
}

impl PartialEq for Settled {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}
impl Eq for Settled {}
impl PartialOrd for Settled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Settled {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

/// Where a loss belongs.
fn place(loss: &Loss) -> (i64, u64, u64) {
    (loss.time_ns, loss.order, loss.left)
}

impl Ledger {
    pub const fn new() -> Self {
        Self {
            in_order: VecDeque::new(),
            others: BinaryHeap::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.others.is_empty()
    }

    pub fn push(&mut self, loss: Loss) {
        if self.in_order.back().is_none_or(|last| place(last) <= place(&loss)) {
            self.in_order.push_back(loss);
        } else {
            self.others.push(Reverse(Settled(loss)));
        }
    }

    /// The loss that was sent first, if that was before `known_ns`.
    #[inline]
    pub fn pop_before(&mut self, known_ns: i64) -> Option<Loss> {
        let queued = self.in_order.front();
        let heaped = self.others.peek().map(|Reverse(Settled(loss))| loss);
        let from_queue = match (queued, heaped) {
            (Some(queued), Some(heaped)) => place(queued) <= place(heaped),
            (queued, _) => queued.is_some(),
        };
        let first = if from_queue { queued } else { heaped };
        first.filter(|loss| loss.time_ns < known_ns)?;
        if from_queue {
            self.in_order.pop_front()
        } else {
            self.others.pop().map(|Reverse(Settled(loss))| loss)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Reason;

    fn loss(time_ns: i64, order: u64) -> Loss {
        Loss {
            time_ns,
            order,
            left: 0,
            right: 0,
            frame: None,
            cause_frame: None,
            segments: 1,
            flight: 0.0,
            rtt_s: 0.0,
            reason: Reason::Resent,
            confidence: 0.9,
            by_timeout: false,
        }
    }

    #[test]
    fn losses_come_in_sending_order_however_they_were_settled() {
        let (mut ledger, mut state, mut given) = (Ledger::new(), 1u64, Vec::new());
        let mut expected = Vec::new();
        for n in 0..2000i64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // one in four is settled late, none after those of 20 later have been given out
            let time_ns = if state >> 62 == 0 {
                n - (state >> 40) as i64 % 20
            } else {
                n
            };
            expected.push((time_ns, n as u64));
            ledger.push(loss(time_ns, n as u64));
            while let Some(first) = ledger.pop_before(n - 20) {
                assert!(first.time_ns < n - 20);
                given.push((first.time_ns, first.order));
            }
        }
        assert!(!ledger.is_empty());
        while let Some(first) = ledger.pop_before(i64::MAX) {
            given.push((first.time_ns, first.order));
        }
        assert!(ledger.is_empty());
        expected.sort_unstable();
        assert_eq!(expected, given);
    }
}
