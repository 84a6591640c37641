//! Without timestamps: a handshake that took longer than the path does, as a host looked its neighbour up or a radio woke up.
//!
//! Then resends come sooner than it allows after the ACK that asked for them, and data beyond the windows that the sender seems
//! to know. Two of these that agree, a round trip apart or more, tell the shorter way; three, where that is less than half of it.

use super::{AckDelay, Answer, SAME};
use crate::events::cause::SHORTEST_TIMER_S;
use crate::flow::sender::Ack;

/// Two ways that a queue has lengthened a little, by one in so many.
const NEAR: i64 = 64;

/// A handshake is not taken to last so many times as long as the path does: what comes as soon as that was not asked for.
const LONGER: i64 = 16;

/// What came sooner than the handshake allows: how long after the ACK that let it go, when, and how often others took as long. Those
/// that take longer waited for more; each takes one off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sooner {
    took_ns: i64,
    time_ns: i64,
    times: u8,
}

impl Sooner {
    pub(super) const NONE: Self = Self {
        took_ns: 0,
        time_ns: 0,
        times: 0,
    };

    fn after(&self, took_ns: i64, time_ns: i64, near: i64) -> Self {
        if self.times > 1 && took_ns - self.took_ns > took_ns / near {
            let times = self.times - 1;
            return Self {
                time_ns,
                times,
                ..*self
            };
        }
        let alike = (took_ns - self.took_ns).abs() <= took_ns / near;
        let times = if alike { self.times.saturating_add(1) } else { 1 };
        Self {
            took_ns,
            time_ns,
            times,
        }
    }
}

impl AckDelay {
    /// Next ACK of those up to the first whose window has room for what `answer` brings, where no earlier one has:
    /// nothing is sent beyond the window (RFC 9293, 3.8.4), so these have come. Where that took less than the shortest way, time and
    /// again, the handshake was slow.
    pub fn next_with_room(&mut self, answer: &Answer) -> Option<Ack> {
        if self.room_to == 0 || self.room_to >= answer.right {
            return None;
        }
        let asked = self.queue.iter().find(|u| u.ack.room_to() >= answer.right)?;
        let took_ns = answer.time_ns - asked.ack.time_ns;
        let possible = took_ns >= self.least_ns / LONGER;
        if self.way_ns > took_ns && !(possible && self.came_sooner_before(answer, took_ns, NEAR)) {
            return None;
        }
        self.shorten(took_ns);
        let mut ack = self.pop()?;
        ack.time_ns = answer.time_ns;
        Some(ack)
    }

    /// A resend comes sooner than the handshake allows after the first ACK that can have asked for it, as one did before: that was
    /// slow. No timer has run out, which an ACK has started that came the same way. Without identifications it may be an original
    /// that the path has held, which takes no time near a round trip but by chance; so one is enough that takes as long as the
    /// handshake but for a little.
    pub(super) fn is_shorter(&mut self, answer: &Answer, took_ns: i64, since_edge_ns: i64) -> bool {
        let (from_ns, near) = if answer.newest {
            (self.least_ns / LONGER, NEAR)
        } else {
            (self.least_ns - self.least_ns / 8, SAME)
        };
        let little = self.way_ns <= self.path_ns && (self.least_ns..self.way_ns).contains(&took_ns);
        let no_timer = since_edge_ns < took_ns + (SHORTEST_TIMER_S * 1e9) as i64;
        let shown = answer.may_open && no_timer && took_ns >= from_ns;
        shown && (little || self.came_sooner_before(answer, took_ns, near))
    }

    /// `answer` came sooner than the handshake allows after an ACK that it shows to have come, as others did a round trip ago or more;
    /// `near`: how much they may differ. A single one may be of a sender that has its own rules.
    fn came_sooner_before(&mut self, answer: &Answer, took_ns: i64, near: i64) -> bool {
        if took_ns >= self.least_ns || answer.time_ns < self.sooner.time_ns + took_ns {
            return false;
        }
        self.sooner = self.sooner.after(took_ns, answer.time_ns, near);
        self.sooner.took_ns == took_ns && self.sooner.times >= if took_ns < self.least_ns / 2 { 3 } else { 2 }
    }

    /// The handshake took longer than an ACK has taken.
    pub(super) fn shorten(&mut self, took_ns: i64) {
        for way_ns in [&mut self.way_ns, &mut self.least_ns, &mut self.path_ns] {
            *way_ns = took_ns.min(*way_ns);
        }
    }
}
