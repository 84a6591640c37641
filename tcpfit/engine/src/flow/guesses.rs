//! What the sender must have sent that never passed the capture point: guessed from what it knew, taken back where what
//! passes later shows better.

use crate::events::cause::DUPTHRESH;
use crate::flow::arrivals::Missing;
use crate::flow::scoreboard::{segments, Scoreboard, Transmission, Unit, EARNED};
use crate::flow::sender::{Sender, Sent, LOOKED_AT};
use crate::rows::Phase;

impl Sender {
    /// Data the sender most likely sent again in a resend nobody saw: the lowest range that has not arrived and was not
    /// resent yet below `before` (SACK senders walk through the holes), otherwise the lowest one.
    pub fn likely_resend(&mut self, below: u64) -> Option<(u64, u64)> {
        let many = self.board.at_or_after(below);
        let many = self.board.searchable(many);
        let units = self.board.units.range(0..many);
        let range = |u: &Unit| (u.left, u.right());
        if self.phase == Phase::Loss && !self.sack {
            // after the timer all that is outstanding is sent again, one after the other (RFC 5681, 3.1)
            if let Some(unit) = units.clone().find(|u| !self.has_resent(u)) {
                return Some(range(unit));
            }
        }
        let mut missing = units.clone().filter(|u| !self.board.seen(u));
        let in_turn = missing.clone().find(|u| self.sack && !u.is_resent());
        in_turn.or_else(|| missing.next()).map(range)
    }

    /// Segments below `below` that a sender with SACK sends again before it (RFC 6675, 4: NextSeg) and that have not been.
    pub fn passed_over(&mut self, below: u64) -> u32 {
        let many = self.board.at_or_after(below);
        let many = self.board.searchable(many);
        let units = self.board.units.range(0..many);
        let due = units.filter(|u| self.sack && !self.board.seen(u) && !u.is_resent());
        due.map(|u| u.segments(self.smss)).sum()
    }

    /// Resends of the head, at `left`, and of holes above it that duplicate ACKs or SACK blocks had asked for (RFC 5681,
    /// 3.2; RFC 6675, 5), or the partial ACK that made it the head (RFC 6582, 3.2), and that have not been seen.
    pub fn asked_for(&mut self, left: u64) -> (usize, u64) {
        let many = self.board.searchable(self.board.units.len());
        let head = self.board.units.front().filter(|u| u.left == left && !u.is_resent());
        if self.phase == Phase::Loss && !self.sack {
            // partial ACKs after the timer let go what was outstanding then, one after the other (RFC 5681, 3.1)
            let again = self
                .board
                .units
                .range(0..many)
                .filter(|u| !self.has_resent(u) && u.left < self.episodes.recover);
            return (again.count(), self.nxt);
        }
        let Some(head) = head.filter(|_| self.phase != Phase::Loss) else {
            return (0, left);
        };
        if !self.sack {
            let enough = match self.answers_third_with_new_data() {
                true if self.episodes.asked_by <= DUPTHRESH => u32::MAX,
                true => self.episodes.asked_by,
                false => DUPTHRESH,
            };
            let asked = self.phase == Phase::Recovery || self.duplicate_acks >= enough;
            return (usize::from(asked), head.right());
        }
        // in a recovery one below what was SACKed is enough (RFC 6675, 4, NextSeg)
        if self.phase == Phase::Open && self.sacked < DUPTHRESH {
            return (0, left);
        }
        let sacked = self.board.units.iter().rev().take(many).find(|u| u.sacked_ns != 0);
        let below = sacked.map_or(head.right(), |u| u.left);
        let holes = self.board.units.range(0..many).take_while(|u| u.left < below);
        (holes.filter(|u| !u.first_seen() && !u.is_resent()).count(), below)
    }

    /// With the third duplicate ACK the sender let new data go, and sent nothing again (RFC 5681, 3.2): it waits for more of them.
    /// Away from the sender what echoes an ACK passes with it (RFC 7323, 4.3).
    fn answers_third_with_new_data(&self) -> bool {
        let third_ns = self.duplicates.third_ns;
        let units = self.board.units.iter().rev().take(LOOKED_AT);
        self.timestamps
            && units
                .take_while(|u| u.time_ns >= third_ns)
                .any(|u| u.time_ns == third_ns)
    }

    /// Segments that ACKs must have let go after the newest data seen: while no loss is known the window does not shrink (RFC
    /// 5681, 3.1), and each ACK that moves the left edge lets as much go as it acknowledges. 0 where the application or the
    /// receiver may have held the sender.
    pub fn least_tail(&self) -> usize {
        let smss = u64::from(self.smss);
        let room = self
            .window
            .map_or(0, |window| self.una + u64::from(window))
            .saturating_sub(self.nxt);
        if self.phase != Phase::Open || self.has_ended() {
            return 0;
        }
        let outstanding = f64::from(segments(self.nxt - self.una, self.smss));
        let tail = (self.rounds.steady_flight() - outstanding) as usize;
        tail.min((room / smss.max(1)) as usize)
    }

    /// When a resend was sent of which is known that it came after what passed last and before `until_ns`: the first of an
    /// episode at the third duplicate ACK (RFC 5681, 3.2), without SACK the next at the partial ACK (RFC 6582, 3.2), others as
    /// late as can be.
    pub fn fast_retransmit_ns(&self, until_ns: i64) -> i64 {
        let asked_ns = match self.phase {
            Phase::Open if self.duplicate_acks >= DUPTHRESH => self.duplicates.third_ns,
            Phase::Recovery if !self.sack => self.last_advance_ns,
            _ => return until_ns,
        };
        if asked_ns > self.last_sent_ns {
            asked_ns.min(until_ns)
        } else {
            until_ns
        }
    }

    /// The left edge, if three duplicate ACKs without SACK ask for a recovery that has not begun (RFC 5681, 3.2).
    pub fn due_edge(&self) -> Option<u64> {
        let due = !self.sack && self.phase == Phase::Open && self.duplicate_acks >= DUPTHRESH;
        due.then_some(self.una)
    }

    /// A resend of `left` would be the first of an episode.
    pub fn opens_recovery(&self, left: u64) -> bool {
        let head = self.board.units.front().filter(|u| u.left == left);
        self.phase == Phase::Open && head.is_some_and(|u| !u.is_resent())
    }

    /// Data at `left` that were sent once are sent again at `now_ns`, and no episode is under way. A host that may wait for more
    /// than three duplicate ACKs sends new data upon each, and then its timer may end no silence.
    pub fn opens_episode(&self, left: u64, now_ns: i64) -> bool {
        let may_wait = || self.duplicates.get().is_some_and(|duplicates| duplicates.beyond);
        let timer = || may_wait() && self.timer_may_have_run(now_ns);
        !self.waits_for_more() && self.may_open_episode(left) && !timer()
    }

    /// The host waits for more than three duplicate ACKs. Without SACK a late segment shows none that it came late.
    pub fn waits_for_more(&self) -> bool {
        self.sack && self.waits_longer()
    }

    /// The same of any host, whatever ended a silence.
    pub fn may_open_episode(&self, left: u64) -> bool {
        self.phase == Phase::Open && self.is_sent_once(left)
    }

    /// Data at `left` that were sent once are sent again in a recovery that is under way, without SACK.
    pub fn goes_on_by(&self, left: u64) -> bool {
        self.phase == Phase::Recovery && !self.sack && self.is_sent_once(left)
    }

    /// Data at `left` seem to be known to have arrived, while no recovery is under way.
    pub fn is_thought_to_know(&self, left: u64) -> bool {
        self.phase == Phase::Open && left < self.una
    }

    fn is_sent_once(&self, left: u64) -> bool {
        let unit = || self.board.units.get(self.board.find(left));
        left < self.nxt && unit().is_some_and(|u| !u.is_resent())
    }

    /// A copy of data that are acknowledged, sent at `time_ns` before the sender knew that, never passed; `frame` shows it.
    pub fn lost_copy(&mut self, left: u64, right: u64, time_ns: i64, frame: u64) {
        let lost = Transmission {
            flight: self.flight() as f32,
            ..Transmission::unseen(time_ns, self.order)
        };
        self.order += u64::from(segments(right - left, self.smss));
        self.fates.lost_copy(left, right, lost, frame);
    }

    /// The lowest unit outstanding.
    pub fn head(&self) -> Option<(u64, u64)> {
        self.board.units.front().map(|u| (u.left, u.right()))
    }

    /// The guess that the transmission `order` carried the range at `left` was wrong.
    pub fn forget(&mut self, order: u64, left: u64) {
        self.board.forget(order, left);
        if let Some(fates) = self.fates.changed() {
            fates.forget(order);
        }
    }

    /// The newest data were never seen.
    pub fn ends_in_guesses(&self) -> bool {
        self.board.units.back().is_some_and(|unit| !self.board.seen(unit))
    }

    /// From `left` on nothing was ever seen or sent again.
    pub fn only_guesses_from(&mut self, left: u64) -> bool {
        let (from, to) = (self.board.find(left), self.board.units.len());
        let all = from < to && self.board.searchable(to - from) == to - from;
        all && self
            .board
            .units
            .range(from..to)
            .all(|u| !self.board.seen(u) && !u.is_resent())
    }

    /// When the hole was sent that the data at `left`, not seen so far, belong to.
    pub fn hole_ns(&self, left: u64) -> Option<i64> {
        let unit = self.board.units.get(self.board.find(left));
        unit.filter(|u| !self.board.seen(u)).map(|u| u.time_ns)
    }

    /// Data of the hole sent then, of which those at `left` are, have still not come.
    pub fn hole_is_open(&mut self, left: u64, hole_ns: i64) -> bool {
        // what was sent at one time lies side by side
        let (at, many) = (self.board.find(left), self.board.searchable(self.board.units.len()));
        let units = &self.board.units;
        let hole = |u: &&Unit| u.time_ns == hole_ns;
        let below = units.range(0..at).rev().take_while(hole).take(many);
        let above = units.range(at..units.len()).take_while(hole).take(many);
        below.chain(above).any(|u| !self.board.seen(u))
    }

    /// Data of the hole that `missing` is one of the packets of, but cut in other pieces than was guessed: their first
    /// transmission has come. False where the data are not of that hole, or had come before.
    pub fn fill(&mut self, missing: &Missing, sent: Sent) -> bool {
        let units = self.board.cut(sent.left, sent.right);
        let same_hole = |unit: &Unit| !self.board.seen(unit) && unit.time_ns == missing.hole_ns;
        if units.is_empty() || !self.board.units.range(units.clone()).all(same_hole) {
            return false;
        }
        for n in units {
            let unit = &mut self.board.units[n];
            unit.frame = sent.frame;
            unit.order = missing.order;
            unit.tsval = sent.tsval;
            unit.ip_id = sent.ip_id;
        }
        true
    }

    /// A packet without data says that nothing at or above `left` had been sent: what was guessed there was wrong.
    pub fn retract(&mut self, left: u64) {
        self.catch_up();
        let unsent = |board: &Scoreboard| {
            let last = board.units.back().filter(|u| u.right() > left && !board.seen(u));
            last.copied()
        };
        while let Some(unit) = unsent(&self.board) {
            let right = unit.left.max(left);
            self.outstanding = self
                .outstanding
                .saturating_sub(segments(unit.right() - right, self.smss));
            self.nxt = right;
            if unit.left < left {
                self.board.split(left);
            }
            self.board.drop_back();
        }
        if let Some(covered) = &mut self.covered {
            covered.retract(self.nxt);
        }
    }

    /// Bytes from `left` to `right` of which no copy has been seen, as far as is remembered, and as a search may look: a
    /// segment lies on more units than any may look at where a sender sent bytes one by one before.
    pub fn unseen_bytes(&mut self, left: u64, right: u64) -> u64 {
        let (from, to) = (self.board.beyond(left), self.board.at_or_after(right));
        let many = match to.saturating_sub(from) {
            few @ ..EARNED => few,
            many => self.board.searchable(many),
        };
        let units = self.board.units.range(from..from + many);
        let known = units.filter(|u| !self.board.seen(u));
        let known: u64 = known.map(|u| u.right().min(right) - u.left.max(left)).sum();
        known + right.saturating_sub(left.max(self.nxt))
    }

    pub fn seen_before(&self, left: u64, right: u64) -> bool {
        left < self.una || {
            let first = self.board.beyond(left);
            let mut units = self.board.units.range(first..self.board.units.len());
            units
                .by_ref()
                .take_while(|u| u.left < right)
                .any(|u| self.board.seen(u))
        }
    }

    /// The capture has no data up to `left`: nothing is known of them.
    pub fn skip_to(&mut self, left: u64) {
        self.catch_up();
        while let Some(unit) = self.board.units.pop_front() {
            if !unit.is_plain() {
                let history = self.board.history(unit);
                self.fates.on_undelivered(history);
            }
        }
        self.outstanding = 0;
        self.sacked = 0;
        self.covered = None;
        self.una = left;
        self.nxt = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Vantage;

    #[test]
    fn a_segment_upon_thousands_of_others_is_looked_through_as_far_as_there_is_credit() {
        let mut sender = Sender::new(0, 0, 1448, Vantage::Sender);
        let unseen = Transmission::unseen(0, 0);
        let bytes = (0..10_000).map(|left| Unit::new(left, left + 1, &unseen));
        sender.board.units.extend(bytes);
        sender.nxt = 10_000;
        assert_eq!(10_005, sender.unseen_bytes(0, 10_005));
        let mut known = (0..1000).map(|_| sender.unseen_bytes(0, 10_000));
        assert!(known.any(|bytes| bytes == EARNED as u64));
        // what usual segments lie on is looked at in any case
        assert_eq!(vec![1000; 9], [0; 9].map(|_| sender.unseen_bytes(7, 1007)));
        assert_eq!(EARNED as u64, sender.unseen_bytes(0, 10_000));
    }
}
