//! Without SACK: whom duplicate ACKs answer. A receiver acknowledges at once what lies above a hole, and what it has
//! already (RFC 5681, 4.2); both look the same. Here is who is known to be answered: copies that were needless, and
//! those that the path makes. What is left over at the end of a stretch of resends says how many of these were needless.

use crate::flow::sender::Sent;
use std::collections::VecDeque;

/// Duplicates reported of data sent once, or duplicate ACKs that nothing else explains, that show a path which makes copies.
const PATH_COPIES: u32 = 2;
/// Copies that the path makes for each that showed while nothing was sent again. Delayed ACKs hide most: the next one
/// covers two segments, as if the second had come before the first. From 4 to 8 the measured flows come out the same.
const COPIES_UNSEEN: f64 = 5.0;
/// Needless copies remembered that have not been answered.
const DUE: usize = 64;

#[derive(Clone, Debug)]
pub struct Answers {
    /// Needless copies still to be answered: not before when, and whether they belong to the stretch under way.
    due: VecDeque<(i64, bool)>,
    /// Those of the stretch under way that were.
    answered: u32,
    /// Data that came twice and were sent once.
    path_copies: u32,
    /// Number of the stretch of resends that is under way, or of the next.
    stretch: u32,
    under_way: bool,
    /// Transmissions before the last stretch began or, if it is over, before it ended; and those between stretches.
    order: u64,
    calm: u64,
    last_resend_ns: i64,
    resent_to: u64,
}

/// A stretch of resends that is over.
pub struct Stretch {
    pub number: u32,
    /// Its copies known to be needless that were answered.
    pub answered: u32,
    /// How many copies the path made of its transmissions at most, mostly.
    pub path_copies: i64,
}

impl Answers {
    pub const fn new() -> Self {
        Self {
            due: VecDeque::new(),
            answered: 0,
            path_copies: 0,
            stretch: 1,
            under_way: false,
            order: 0,
            calm: 0,
            last_resend_ns: i64::MIN / 2,
            resent_to: 0,
        }
    }

    /// Data that were sent once came twice.
    pub fn on_path_copy(&mut self) {
        self.path_copies = self.path_copies.saturating_add(1);
    }

    pub fn path_makes_copies(&self) -> bool {
        self.path_copies >= PATH_COPIES
    }

    /// A needless copy is to be answered, not before `time_ns`; `counts` if it belongs to the stretch under way.
    pub fn expect(&mut self, time_ns: i64, counts: bool) {
        if self.due.len() >= DUE {
            self.due.pop_front();
        }
        self.due.push_back((time_ns, counts));
    }

    /// A duplicate ACK at `now_ns` answers a copy known to be needless, if one is due (within half a round trip).
    pub fn take(&mut self, now_ns: i64, srtt_s: f64) -> bool {
        let late_ns = (srtt_s * 5e8) as i64;
        while self.due.front().is_some_and(|&(due_ns, _)| due_ns + late_ns < now_ns) {
            self.due.pop_front();
        }
        let Some(&(_, counts)) = self.due.front().filter(|&&(due_ns, _)| due_ns <= now_ns) else {
            return false;
        };
        self.due.pop_front();
        self.answered += u32::from(counts);
        true
    }

    /// The stretch of resends under way.
    pub fn under_way(&self) -> Option<u32> {
        self.under_way.then_some(self.stretch)
    }

    /// The stretch under way, or the next.
    pub fn stretch(&self) -> u32 {
        self.stretch
    }

    /// `order`: transmissions before it.
    pub fn on_resend(&mut self, sent: &Sent, order: u64) {
        if !std::mem::replace(&mut self.under_way, true) {
            self.calm += order.saturating_sub(self.order);
            self.order = order;
        }
        self.last_resend_ns = sent.time_ns;
        self.resent_to = self.resent_to.max(sent.right);
    }

    /// All that was sent again is acknowledged up to `una`, and `quiet_s` have passed since.
    pub fn is_quiet(&self, una: u64, now_ns: i64, quiet_s: f64) -> bool {
        una >= self.resent_to && now_ns > self.last_resend_ns + (quiet_s * 1e9) as i64
    }

    /// The stretch under way is over; `order`: transmissions so far.
    pub fn close(&mut self, order: u64) -> Stretch {
        let closed = Stretch {
            number: self.stretch,
            answered: std::mem::take(&mut self.answered),
            path_copies: self.likely_copies(order.saturating_sub(self.order)),
        };
        self.stretch += 1;
        self.under_way = false;
        self.order = order;
        closed
    }

    /// How many copies the path makes of so many transmissions at most, mostly.
    fn likely_copies(&self, sent: u64) -> i64 {
        if !self.path_makes_copies() {
            return 0;
        }
        let share = COPIES_UNSEEN * f64::from(self.path_copies) / self.calm.max(1) as f64;
        let likely = share.min(1.0) * sent as f64;
        (likely + 2.0 * likely.sqrt()).ceil() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_expected_as_the_path_was_seen_to_make_them() {
        let mut answers = Answers {
            calm: 1000,
            ..Answers::new()
        };
        let mut likely = Vec::new();
        for _ in 0..4 {
            likely.push(answers.likely_copies(100));
            answers.on_path_copy();
        }
        // one copy shows no such path; 2 of 1000 that show are 10, of which 100 transmissions have 1, and mostly at most 3
        assert_eq!(likely, [0, 0, 3, 4]);
        assert_eq!(answers.likely_copies(0), 0);
        // no more than one each
        answers.calm = 1;
        assert_eq!(answers.likely_copies(100), 120);
    }

    #[test]
    fn an_answer_is_taken_once_when_it_is_due() {
        let mut answers = Answers::new();
        answers.expect(100, true);
        answers.expect(100, false);
        assert!(!answers.take(99, 20e-9));
        assert!(answers.take(100, 20e-9));
        assert!(answers.take(110, 20e-9));
        assert!(!answers.take(110, 20e-9));
        // of two one belonged to the stretch
        assert_eq!(answers.close(0).answered, 1);
        // what was not answered in half a round trip was lost
        answers.expect(200, true);
        assert!(!answers.take(211, 20e-9));
        assert_eq!(answers.close(0).answered, 0);
    }
}
