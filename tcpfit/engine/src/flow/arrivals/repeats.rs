//! Copies of data that had arrived, lost on their way: what a sender sends that goes back, without SACK or, having forgotten
//! what was SACKed, after a timeout (RFC 2018, 8).

use super::{Arrivals, Passing};
use crate::flow::scoreboard::segments;
use crate::flow::sender::Sender;
use crate::rows::Sink;

/// Where a sender that goes back has been between two segments that passed. It sends one segment after the other (RFC 5681,
/// 3.1), whether that had arrived or not, but leaves out what ACKs have told it of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeats {
    /// Behind what passed last, and what passes now.
    left: u64,
    right: u64,
    /// What it knew to be acknowledged at the end.
    una: u64,
    /// Segments between `una` and `right`.
    above: usize,
    /// As many numbers were skipped as there are segments.
    pub exact: bool,
    time_ns: i64,
    count: usize,
}

impl Arrivals {
    /// Where the sender may have sent again what takes `count` numbers, if it goes back: what passed last, or passes now, had
    /// passed before. Behind new data it is what lies between the last copy and this one, if there are as many segments.
    pub(super) fn repeats(
        &self,
        count: usize,
        passing: &Passing,
        before: Option<Passing>,
        sender: &mut Sender,
    ) -> Option<Repeats> {
        let before = before.filter(|_| count > 0 && !self.two_way)?;
        let copy = self.uncommon.as_ref().filter(|u| u.repeated > 0);
        let repeated = copy.is_some_and(|u| u.repeated == before.frame);
        let repeats = passing.left < sender.nxt && sender.seen_before(passing.left, passing.right.min(sender.nxt));
        let (right, una) = (passing.left.min(sender.nxt), sender.una);
        let many = |from: u64| segments(right.saturating_sub(from), sender.smss) as usize;
        // new data may have gone out between its copies
        let between = copy.map(|u| u.repeated_right).filter(|&end| many(end) == count);
        let left = between
            .filter(|_| repeats && before.right > right)
            .unwrap_or(before.right);
        (many(left) >= count && (repeated || repeats)).then(|| Repeats {
            left,
            right,
            una,
            above: many(left.max(una)),
            exact: many(left) == count,
            time_ns: before.time_ns,
            count,
        })
    }

    /// The k-th of these copies, which never passed: below what passes now as far as the sender knew of no ACK at the end,
    /// the others behind what passed last.
    pub(super) fn lost_repeat(
        &mut self,
        k: usize,
        repeats: &Repeats,
        passing: &Passing,
        sender: &mut Sender,
        sink: &mut dyn Sink,
    ) {
        let smss = u64::from(sender.smss);
        let to_come = repeats.count - k;
        let left = if to_come <= repeats.above {
            repeats.right - (to_come as u64 * smss).min(repeats.right - repeats.left)
        } else {
            repeats.left + k as u64 * smss
        };
        let right = (left + smss).min(repeats.right);
        if left >= repeats.una {
            self.lost_again((left, right), repeats.time_ns, passing, sender, sink);
        } else {
            let index = self.next_skipped();
            self.remember(index, left, repeats.time_ns, passing, sender);
            sender.lost_copy(left, right, repeats.time_ns, passing.frame);
        }
    }
}
