//! What the sender sends: new data, and data again.

use super::{Sender, PROMPT_NS};
use crate::flow::scoreboard::{segments, Transmission, Unit};
use crate::rows::{Phase, Reason, Sink, Vantage};

/// A probe's timer runs for two ticks of a clock at least, of a millisecond each at the fastest.
const LEAST_PROBE_NS: i64 = 2_000_000;
/// Units kept of a flow without ACKs, to know data sent again: 90 MB of segments on Ethernet.
const HELD_ONE_WAY: usize = 65_536;

/// A range that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub left: u64,
    pub right: u64,
    pub time_ns: i64,
    /// 0: it did not pass the capture point.
    pub frame: u64,
    pub tsval: u32,
    pub ip_id: u16,
    /// Nothing but time tells it from the first copy of its range or, if it did not pass, that it was sent.
    pub doubtful: bool,
    /// Found by the length of a silence: an expiry of the timer.
    pub by_timer: bool,
}

impl Sent {
    /// A transmission that never passed the capture point.
    pub fn unseen(left: u64, right: u64, time_ns: i64) -> Self {
        Self {
            left,
            right,
            time_ns,
            frame: 0,
            tsval: 0,
            ip_id: 0,
            doubtful: false,
            by_timer: false,
        }
    }

    /// The same, sent because the timer ran out.
    pub fn unseen_expiry(left: u64, right: u64, time_ns: i64) -> Self {
        Self {
            by_timer: true,
            ..Self::unseen(left, right, time_ns)
        }
    }
}

impl Sender {
    /// Before new data up to `right` go out: nothing that is integrated changes with them, unless they are the first
    /// outstanding or fill the window. Most of the time of a flow is integrated at its ACKs.
    #[inline(always)]
    fn tick_at_new_data(&mut self, time_ns: i64, right: u64) {
        let fills = |window: u32| !self.one_way && self.una + u64::from(window) < right + u64::from(self.smss);
        if self.outstanding == 0 || self.window.is_some_and(fills) {
            self.tick(time_ns);
        }
    }

    #[inline(always)]
    fn transmission(&self, sent: &Sent, cause: Reason, flight: f64) -> Transmission {
        Transmission {
            time_ns: sent.time_ns,
            order: self.order,
            frame: sent.frame,
            tsval: sent.tsval,
            flight: flight as f32,
            ip_id: sent.ip_id,
            cause,
            doubtful: sent.doubtful,
        }
    }

    /// New data: `sent.left` is `nxt`.
    #[inline(never)]
    pub fn send_new(&mut self, sent: &Sent) {
        let count = segments(sent.right - sent.left, self.smss);
        let full = self.board.is_full();
        let mut received = self.received();
        self.put_on_board(sent, count, self.flight_without(received));
        if full {
            self.let_go();
            received = self.received();
        }
        if !self.one_way {
            self.note_flight(sent, count, self.flight_without(received), |_| ());
        }
        self.last_sent_ns = sent.time_ns;
    }

    /// The same, in line, for what most are: `count` segments of which the ACKs are seen, while the board is not full.
    /// `by_timer` looks at what, at the sender, a timer may have let go.
    #[inline(always)]
    pub fn send_next(&mut self, sent: &Sent, count: u32, by_timer: impl FnOnce(&mut Self)) {
        let received = self.received();
        let flight = |sender: &Self| f64::from(sender.outstanding.saturating_sub(received));
        self.put_on_board(sent, count, flight(self));
        self.note_flight(sent, count, flight(self), by_timer);
        self.last_sent_ns = sent.time_ns;
    }

    /// `flight` is what was outstanding before.
    #[inline(always)]
    fn put_on_board(&mut self, sent: &Sent, count: u32, flight: f64) {
        self.tick_at_new_data(sent.time_ns, sent.right);
        self.learn_response(sent.time_ns - self.last_ack_ns);
        let first = self.transmission(sent, Reason::Unknown, flight);
        *self.board.units.push_back() = Unit::new(sent.left, sent.right, &first);
        self.order += u64::from(count);
        self.nxt = sent.right;
        self.outstanding += count;
    }

    /// New data have brought the flight to `flight`.
    #[inline(always)]
    fn note_flight(&mut self, sent: &Sent, count: u32, flight: f64, by_timer: impl FnOnce(&mut Self)) {
        if flight > self.flight_max {
            self.flight_max = flight;
        }
        self.bound_window(sent, by_timer);
        self.rounds
            .sent(sent.time_ns, count, false, self.nxt, flight, self.rtt.srtt_s);
        // elsewhere, and without timestamps, when an ACK came to the sender is not known well enough
        let dated = self.vantage == Vantage::Sender || self.timestamps;
        match self.phase {
            Phase::Open if dated => self.rounds.window_reached(flight),
            Phase::Open => {}
            _ => self.rounds.disturbed(),
        }
    }

    /// More is outstanding than any window holds: the oldest is.
    #[cold]
    fn let_go(&mut self) {
        self.catch_up();
        let Some(unit) = self.board.units.pop_front() else {
            return;
        };
        let count = unit.segments(self.smss);
        self.overfull = true;
        self.una = unit.right();
        self.outstanding = self.outstanding.saturating_sub(count);
        if unit.sacked_ns != 0 {
            self.sacked = self.sacked.saturating_sub(count);
        }
        if let Some(covered) = &mut self.covered {
            covered.below(self.una);
        }
        if !unit.is_plain() {
            let history = self.board.history(unit);
            self.fates.on_undelivered(history);
        }
    }

    /// What an ACK let go had been waiting for it: before, the window was full. What comes at another time waited for the
    /// application, or was paced, and says nothing: only where nothing passed for long may it be a timer's.
    #[inline(always)]
    fn bound_window(&mut self, sent: &Sent, by_timer: impl FnOnce(&mut Self)) {
        if self.vantage != Vantage::Sender {
            return;
        }
        if self.order > 0 && sent.time_ns - self.last_ack_ns > PROMPT_NS {
            self.rounds.unclocked();
            if sent.time_ns - self.last_sent_ns >= LEAST_PROBE_NS {
                by_timer(self);
            }
            return;
        }
        let Some((full, room)) = self.held_back.take() else {
            return;
        };
        if room {
            self.rounds.cwnd_full(full, self.last_ack_ns);
        } else {
            self.rounds.unclocked();
        }
    }

    /// New data without ACKs: the timer's resends are over, and what is older than any window is let go.
    pub fn send_new_one_way(&mut self, sent: &Sent, sink: &mut dyn Sink) {
        self.close_episode(sent.time_ns, false, sink);
        self.send_new(sent);
        while self.board.units.len() > HELD_ONE_WAY {
            let Some(unit) = self.board.units.pop_front() else {
                break;
            };
            self.una = unit.right();
            self.outstanding = self.outstanding.saturating_sub(unit.segments(self.smss));
            if !unit.is_plain() {
                let history = self.board.history(unit);
                self.fates.on_undelivered(history);
                self.settle(sent.time_ns, sink);
            }
        }
    }

    /// The newest data, as they passed, had been sent before, at `first_ns`, and that did not pass.
    pub fn sent_before(&mut self, first_ns: i64) {
        let units = &mut self.board.units;
        if let Some(newest) = units.get_mut(units.len().saturating_sub(1)) {
            let order = newest.order;
            *newest = Unit::new(newest.left, newest.right(), &Transmission::unseen(first_ns, order));
        }
    }

    /// The newest data, still outstanding, ended with less than a full segment.
    pub fn has_ended(&self) -> bool {
        let newest = self.board.units.back();
        newest.is_some_and(|newest| newest.length % self.smss.max(1) != 0)
    }

    /// At the sender: one segment is outstanding, and has been sent more than once.
    #[inline(always)]
    pub fn has_repeated_the_last(&self) -> bool {
        self.board.units.len() == 1 && self.repeats_the_first()
    }

    #[inline(never)]
    fn repeats_the_first(&self) -> bool {
        let first = self.board.units.front();
        let only = first.filter(|u| u.left == self.una && u.right() == self.nxt);
        self.vantage == Vantage::Sender && only.is_some_and(Unit::is_resent)
    }

    /// Data below `nxt` again. Returns the label.
    pub fn send_again(&mut self, sent: &Sent, sink: &mut dyn Sink) -> Reason {
        self.tick(sent.time_ns);
        let count = segments(sent.right - sent.left, self.smss);
        let units = self.repeated(sent);
        let reason = self.on_resend(sent, units.clone(), sink);
        let now = self.moment(sent.time_ns);
        self.fates.answers.on_resend(sent, &now);
        let transmission = self.transmission(sent, reason, self.flight());
        let many = self.board.resendable(units.len());
        for n in units.take(many) {
            if let Some((old, next)) = self.board.resend(n, transmission) {
                let range = (self.board.units[n].left, self.board.units[n].right());
                let context = self.context();
                self.fates.give_up(range, &old, &next, &context, sink);
            }
        }
        self.order += u64::from(count);
        self.last_sent_ns = sent.time_ns;
        if !self.one_way {
            let flight = self.flight();
            self.rounds
                .sent(sent.time_ns, count, true, self.nxt, flight, self.rtt.srtt_s);
            self.rounds.disturbed();
        }
        reason
    }
}
