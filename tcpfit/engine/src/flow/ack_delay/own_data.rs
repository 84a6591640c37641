//! Without timestamps: what the host at the capture point sends itself tells how long its ACKs are under way.
//!
//! ```text
//!  capture point    --- data, which carry an ACK --->    sender
//!                   <--- data, which acknowledge these --
//! ```
//! Data that acknowledge a segment were sent after it had come (RFC 9293, 3.4), so its number does what the echo of a timestamp
//! does: what went before it has come as well, what went after a segment that is not acknowledged has not, unless that was lost.
//! Pure ACKs tell nothing here: the sender may have waited with them (RFC 5681, 4.2).
//!
//! What is sent at once waits for its own first segments; ACKs that go alone later do not. So the way is the shortest that a round
//! trip has told.

use super::{AckDelay, Answer, LONGEST_WAY_S};
use crate::events::cause::SHORTEST_TIMER_S;
use crate::flow::sequence::before;

/// What is known to one in so many of it tells the way; own data that ACKs had before them may be as much.
const NEAR: i64 = 8;

/// What data acknowledge of the other direction's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnData {
    /// Up to this number, while nothing before it is missing.
    pub to: u32,
    /// How long ago the last of it had passed, if these data are the first to acknowledge it, and the first beyond it.
    pub took_ns: Option<i64>,
    pub beyond_ns: Option<i64>,
}

/// The least that own data took, and since when. Whether any told the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shortest {
    since_ns: i64,
    took_ns: i64,
    told: bool,
}

impl Shortest {
    pub(super) const NONE: Self = Self {
        since_ns: i64::MIN / 2,
        took_ns: 0,
        told: false,
    };
}

impl AckDelay {
    /// `answer` acknowledges what passed the other way: how long ACKs are under way. What it does not acknowledge had not come, nor
    /// had what it does when the sender sent the data before, a silence ago.
    pub fn on_own_data(&mut self, answer: &Answer) -> Option<i64> {
        let OwnData { took_ns, beyond_ns, .. } = answer.own_data?;
        let took_ns = took_ns.filter(|took_ns| (1..(LONGEST_WAY_S * 1e9) as i64).contains(took_ns))?;
        if answer.older {
            return None;
        }
        let least_ns = beyond_ns.unwrap_or(0).max(took_ns - answer.silence_ns);
        if answer.time_ns - self.own.since_ns > self.way_ns {
            (self.own.since_ns, self.own.took_ns) = (answer.time_ns, took_ns);
        }
        self.own.took_ns = self.own.took_ns.min(took_ns);
        let shortest_ns = self.own.took_ns;
        let told = took_ns - least_ns <= took_ns / NEAR;
        self.own.told |= told;
        let way_ns = self.way_ns.clamp(least_ns.clamp(0, shortest_ns), shortest_ns);
        let before_ns = std::mem::replace(&mut self.way_ns, way_ns);
        self.least_ns = self.least_ns.min(took_ns);
        (told || way_ns != before_ns).then_some(way_ns)
    }

    /// Own data have told the way, which is that of ACKs that had more of them before them.
    pub fn is_told_by_own_data(&self) -> bool {
        self.own.told
    }

    /// The way of ACKs that had few of them before them.
    pub(super) fn least_of_own_data_ns(&self) -> i64 {
        self.least_ns.max(self.way_ns - self.way_ns / NEAR)
    }

    /// Whether an ACK with that number, due at `due_ns`, had come when `answer` was sent, if that tells. What an ACK lets go does not
    /// acknowledge the data yet that came with it.
    pub(super) fn came_with_own_data(number: u32, due_ns: i64, answer: &Answer) -> Option<bool> {
        let own = answer.own_data?;
        if before(number, own.to) {
            return Some(true);
        }
        // what was lost the timer will show
        let soon = answer.time_ns < due_ns + (SHORTEST_TIMER_S * 1e9) as i64;
        (number != own.to && soon).then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{resend, MS};
    use super::*;

    /// New data that acknowledge own data so old.
    fn data(time_ns: i64, silence_ns: i64, took_ns: i64, beyond_ns: Option<i64>) -> Answer {
        Answer {
            nxt: 0,
            own_data: Some(OwnData {
                to: 100,
                took_ns: Some(took_ns),
                beyond_ns,
            }),
            ..resend(time_ns, silence_ns)
        }
    }

    fn told(answers: &[Answer]) -> (Vec<Option<i64>>, bool) {
        let mut acks = AckDelay::NONE;
        acks.set_way(0.02);
        let ways = answers.iter().map(|answer| Some(acks.on_own_data(answer)? / MS));
        (ways.collect(), acks.is_told_by_own_data())
    }

    #[test]
    fn the_way_is_between_what_had_come_and_what_had_not() {
        let first =
            |silence: i64, beyond: Option<i64>| data(1000 * MS, silence * MS, 80 * MS, beyond.map(|ms| ms * MS));
        assert_eq!((vec![Some(75)], true), told(&[first(5, None)]));
        assert_eq!((vec![Some(78)], true), told(&[first(60, Some(78))]));
        // the server was thinking
        assert_eq!((vec![None], false), told(&[first(60, None)]));
        // a handshake took longer than the path
        let sooner = data(1000 * MS, 60 * MS, 15 * MS, None);
        assert_eq!((vec![Some(15)], false), told(&[sooner]));
    }

    #[test]
    fn of_data_sent_at_once_the_first_tell_it() {
        let burst = |n: i64| data((1000 + n) * MS, MS, (80 + n) * MS, Some((80 + n) * MS));
        let (ways, _) = told(&(0..60).map(burst).collect::<Vec<_>>());
        assert!(ways.iter().all(|&way| way == Some(80)), "{ways:?}");
        let later = |n: i64| data((1000 + 20 * n) * MS, MS, (80 + n) * MS, Some((80 + n) * MS));
        let (ways, _) = told(&(0..60).map(later).collect::<Vec<_>>());
        // of the round trip before it
        assert!(matches!(ways.last(), Some(Some(131..=139))), "{ways:?}");
    }

    #[test]
    fn an_ack_has_come_with_the_data_behind_it_and_not_before_those_before_it() {
        let answer = data(1000 * MS, MS, 80 * MS, None);
        let came = |number: u32, due_ms: i64| AckDelay::came_with_own_data(number, due_ms * MS, &answer);
        assert_eq!((Some(true), None), (came(99, 2000), came(100, 900)));
        assert_eq!((Some(false), None), (came(101, 900), came(101, 700)));
        let one_way = Answer {
            own_data: None,
            ..answer
        };
        assert_eq!(None, AckDelay::came_with_own_data(99, 0, &one_way));
    }
}
