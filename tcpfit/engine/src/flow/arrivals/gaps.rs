//! Which transmissions are missing in what passed, and where they were sent: identifications that were skipped and holes
//! in the data show them, and a silence shows that the retransmission timer or a probe had to send again.

use super::{Arrivals, Passing};
use crate::events::cause::SHORTEST_TIMER_S;
use crate::flow::scoreboard::segments;
use crate::flow::sender::{Sender, Sent};
use crate::rows::{Sink, Vantage};

/// Missing transmissions remembered; older ones are lost for good.
const REMEMBERED: usize = 4096;
/// Round trips that a silence lasts at least where the timer ends it.
const TIMER_ROUND_TRIPS: f64 = 1.2;
/// Round trips of silence before a tail loss probe (RFC 8985, 7.2: two; the smoothed one may be high).
const PROBE_ROUND_TRIPS: f64 = 1.8;
/// A hole without identifications longer than this is not filled with guesses (the capture started or stopped there).
const LARGEST_GAP: u32 = 1000;
/// Missing transmissions for each packet that passes: no sender goes on where fewer come through. More are not seen for
/// another reason, a capture of every n-th packet for one.
const MOST_MISSING: u64 = 8;

/// Expiries that were lost in a silence, from which on its length alone tells them.
const SERIES: usize = 2;
/// Segments that a sender has under way at its start (RFC 6928).
const INITIAL_WINDOW: usize = 10;

/// A transmission that was made and has not come by.
#[derive(Clone, Copy, Debug)]
pub struct Missing {
    /// Its IP identification (unwrapped), where known.
    pub index: Option<i64>,
    pub order: u64,
    pub left: u64,
    /// It carried data that had been sent before, and where the newest of these ended.
    pub again: bool,
    pub newest: u64,
    /// These were acknowledged, which the sender did not know: that it sent them again has not been said.
    pub needless: bool,
    /// When its absence showed, the frame that showed it, and arrivals until then.
    pub time_ns: i64,
    /// When the hole that it belongs to was sent, as far as was guessed.
    pub hole_ns: i64,
    pub frame: u64,
    pub arrivals: u64,
    /// TSval of that frame, which was sent after it.
    pub shown_tsval: Option<u32>,
}

/// A silence before a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    pub(super) start_ns: i64,
    /// When the timer was last started.
    timer_ns: i64,
    /// Long enough for the retransmission timer.
    pub(super) timer: bool,
    /// Expiries before the one that sent the segment.
    lost_expiries: usize,
    /// As long as they take.
    fits: bool,
}

impl Arrivals {
    /// Identifications skipped and not yet explained by data.
    #[inline]
    pub(super) fn skipped(&self) -> usize {
        self.uncommon.as_ref().map_or(0, |uncommon| uncommon.skipped.len())
    }

    pub(super) fn forget_skipped(&mut self) {
        if let Some(uncommon) = &mut self.uncommon {
            uncommon.skipped.clear();
        }
    }

    /// The number of the next transmission that is missing, if one is.
    pub(super) fn next_skipped(&mut self) -> Option<i64> {
        self.uncommon.as_mut()?.skipped.pop_front()
    }

    #[inline]
    pub(super) fn skip(&mut self, index: i64, missing: u32) {
        if missing > 0 && self.believes(missing) {
            let skipped = &mut self.uncommon().skipped;
            skipped.extend(index - i64::from(missing)..index);
            while skipped.len() > REMEMBERED {
                skipped.pop_front();
            }
        }
    }

    /// Puts the transmissions that are missing before `passing` into their place: lost resends, the new data of the hole
    /// up to it, and after a silence the tail that the timer or a probe sends again.
    /// `before` passed last.
    pub(super) fn fill_gap(
        &mut self,
        passing: &Passing,
        before: Option<Passing>,
        sender: &mut Sender,
        sink: &mut dyn Sink,
    ) {
        let hole = passing.left - sender.nxt;
        let new = segments(hole, sender.smss);
        if !self.believes(new) {
            // the capture has a gap, or began in the middle: go on from here
            self.forget_skipped();
            sender.skip_to(passing.left);
            return;
        }
        if new > 0 {
            // resends that are due can have been lost with it
            let surplus = self.id.unexplained() > new;
            let due = if surplus { sender.passed_over(passing.left) } else { 0 };
            self.id.explain(new, new + due);
        }
        let before_recovery = self.take_back(new, sender);
        let spare = self.skipped().saturating_sub(new as usize);
        let silence = self.silence(passing, sender);
        let enough = |s: &Silence| spare > s.lost_expiries;
        let tail = spare > 0 && !self.two_way && (new == 0 || sender.sack) && silence.as_ref().is_some_and(enough);
        let back = self.repeats(spare, passing, before, sender).is_some();
        if !tail && new > 0 && !self.two_way && sender.likely_resend(passing.left).is_none() && !back {
            // nothing could have been sent again: as many segments are missing as numbers, whatever their sizes
            let pieces = (self.skipped() as u64).clamp(u64::from(new), hole);
            let size = hole.div_ceil(pieces);
            for _ in 0..pieces {
                let right = passing.left.min(sender.nxt + size);
                if right > sender.nxt {
                    self.missing_data(1, right, passing.time_ns, passing, sender);
                }
            }
            self.forget_skipped();
            return;
        }
        if !tail {
            self.lost_resends(spare, passing, before, sender, sink);
        }
        let sent_ns = match tail {
            false => passing.time_ns,
            // what the first data are sent for, a request, was acknowledged alone
            true if sender.order == 0 => sender.last_advance_ns,
            true => sender.last_sent_ns,
        };
        self.missing_data(new, passing.left, sent_ns, passing, sender);
        if before_recovery {
            sender.extend_recovery();
        }
        if let Some(silence) = silence.filter(|_| tail) {
            // what passes now is itself sent again: its first copy was lost with the tail
            let expiries = silence.lost_expiries.min(spare - 1);
            self.missing_data(1, passing.right, sent_ns, passing, sender);
            let smss = u64::from(sender.smss);
            for _ in 1..spare - expiries {
                self.missing_data(1, sender.nxt + smss, sent_ns, passing, sender);
            }
            self.expiries(expiries, &silence, passing, sender, sink);
        }
    }

    /// More new data are missing than identifications were skipped since the last resend passed. What was skipped before
    /// that and after the newest data seen was new data then, not resends that were lost. True if some of it was skipped together
    /// with the resend that began the recovery under way: with SACK holes are filled before new data are sent (RFC 6675, 4,
    /// NextSeg), so it had gone before.
    fn take_back(&mut self, new: u32, sender: &mut Sender) -> bool {
        let Some(uncommon) = &mut self.uncommon else {
            return false;
        };
        let began = uncommon
            .began
            .filter(|&(order, _)| sender.began_recovery() == Some(order));
        let mut before_recovery = false;
        let mut n = uncommon.missing.len();
        while n > 0 && uncommon.skipped.len() < new as usize && uncommon.missing[n - 1].newest >= sender.nxt {
            n -= 1;
            let Missing {
                index,
                order,
                left,
                again,
                frame,
                ..
            } = uncommon.missing[n];
            if let (Some(index), true) = (index, again) {
                before_recovery |= began.is_some_and(|(first, shown_by)| order != first && frame == shown_by);
                uncommon.missing.remove(n);
                uncommon.skipped.push_front(index);
                sender.forget(order, left);
            }
        }
        let lacking = u64::from(new).saturating_sub(uncommon.skipped.len() as u64);
        uncommon.counts.unplaced = uncommon.counts.unplaced.saturating_sub(lacking);
        before_recovery
    }

    /// A resend passes and identifications are missing before it: earlier expiries of the timer, the tail that was lost
    /// before the timer ran out, or resends of the same recovery.
    pub(super) fn lost_below(
        &mut self,
        passing: &Passing,
        before: Option<Passing>,
        sender: &mut Sender,
        sink: &mut dyn Sink,
    ) {
        let spare = self.skipped();
        if spare == 0 {
            self.lost_series(passing, sender, sink);
            return;
        }
        let Some(silence) = self.silence(passing, sender).filter(|s| !self.two_way && s.timer) else {
            let goes_back = self.repeats(spare, passing, before, sender).is_some();
            if self.two_way || goes_back || !sender.opens_recovery(passing.left) {
                let due = sender.passed_over(passing.left);
                self.id.explain(due, due);
                self.lost_resends(spare, passing, before, sender, sink);
                return;
            }
            // nothing was sent again before the first resend: new data, as duplicate ACKs let go (RFC 3042)
            for _ in 0..spare {
                let right = sender.nxt + u64::from(sender.smss);
                self.missing_data(1, right, passing.time_ns, passing, sender);
            }
            return;
        };
        let (asked, below) = sender.asked_for(passing.left);
        // what was asked for was sent, and what ACKs had let go, where the length of the silence does not say otherwise
        let sure = if silence.fits {
            0
        } else {
            asked.min(1) + sender.least_tail()
        };
        let expiries = silence.lost_expiries.min(spare.saturating_sub(sure));
        let asked = asked.min(spare - expiries);
        for _ in 0..asked {
            // a fast retransmit that was lost is why the timer had to run out
            self.lost_resend(below, silence.start_ns, passing, sender, sink);
        }
        let (sent_ns, smss) = (sender.last_sent_ns, u64::from(sender.smss));
        for _ in 0..spare - expiries - asked {
            self.missing_data(1, sender.nxt + smss, sent_ns, passing, sender);
        }
        self.expiries(expiries, &silence, passing, sender, sink);
    }

    /// Without identifications: the first hole is filled after a silence as long as a timer that doubles takes for three expiries
    /// and more (RFC 6298, 5.5). Two take as long as one of a timer that is thrice as long as it seems. Not where the packets are
    /// sent, and all expiries pass.
    pub(super) fn lost_series(&mut self, passing: &Passing, sender: &mut Sender, sink: &mut dyn Sink) {
        let behind = matches!(sender.vantage, Vantage::Receiver | Vantage::Middle);
        if !behind || self.id.dense() || self.two_way || sender.head().is_none_or(|(left, _)| left != passing.left) {
            return;
        }
        let series = |s: &Silence| s.timer && s.fits && s.lost_expiries >= SERIES;
        if let Some(silence) = self.silence(passing, sender).filter(series) {
            self.expiries(silence.lost_expiries, &silence, passing, sender, sink);
        }
    }

    /// `count` new segments up to `right` that never passed.
    fn missing_data(&mut self, count: u32, right: u64, time_ns: i64, passing: &Passing, sender: &mut Sender) {
        let smss = u64::from(sender.smss);
        for k in 0..count {
            let left = sender.nxt;
            let right = if k + 1 == count { right } else { left + smss };
            let index = self.next_skipped();
            self.remember(index, left, time_ns, passing, sender);
            sender.send_new(&Sent::unseen(left, right, time_ns));
        }
    }

    /// Resends of the timer that were lost too, at the times at which a timer that doubles ran out.
    fn expiries(
        &mut self,
        count: usize,
        silence: &Silence,
        passing: &Passing,
        sender: &mut Sender,
        sink: &mut dyn Sink,
    ) {
        let Some((left, right)) = sender.head() else { return };
        let length_ns = passing.time_ns - silence.timer_ns;
        let first_ns = length_ns as f64 / (2f64.powi(count as i32 + 1) - 1.0);
        let numbered = self.skipped() > 0;
        if numbered && count > 0 && count == silence.lost_expiries {
            sender.episodes.saw_series(first_ns / 1e9);
        }
        for k in 1..=count {
            let time_ns = silence.timer_ns + (first_ns * (2f64.powi(k as i32) - 1.0)) as i64;
            let index = self.next_skipped();
            self.remember(index, left, time_ns, passing, sender);
            let expiry = Sent {
                doubtful: !numbered,
                ..Sent::unseen_expiry(left, right, time_ns)
            };
            sender.send_again(&expiry, sink);
        }
    }

    /// Whether nothing happened for so long before `passing` that a probe or the timer must have sent it.
    pub(super) fn silence(&self, passing: &Passing, sender: &Sender) -> Option<Silence> {
        let start_ns = sender.last_sent_ns.max(sender.last_advance_ns);
        let (length_s, srtt_s) = ((passing.time_ns - start_ns) as f64 / 1e9, sender.rtt.srtt_s);
        if start_ns <= i64::MIN / 2 || srtt_s == 0.0 {
            return None;
        }
        // where nothing seen is outstanding no resend was asked for, and the least timer is a round trip (RFC 6298, 2.3); the
        // smoothed one may have waited for delayed ACKs
        let timer_s = if sender.una == sender.nxt {
            sender.rtt.min_s.min(TIMER_ROUND_TRIPS * srtt_s)
        } else {
            TIMER_ROUND_TRIPS * srtt_s
        };
        let timer = length_s >= SHORTEST_TIMER_S.max(timer_s);
        // of the first data none comes as soon: it sends the last of them again, and a single one later (RFC 8985, 7.2)
        let probe = sender.sack && sender.order > 0 && length_s >= PROBE_ROUND_TRIPS * srtt_s;
        (timer || probe).then(|| {
            let timer_ns = sender.timer_start_ns();
            let timer_s = (passing.time_ns - timer_ns) as f64 / 1e9;
            let expiries = sender.episodes.expiries(timer_s, sender.rtt.rto_s());
            Silence {
                start_ns,
                timer_ns,
                timer,
                lost_expiries: expiries.count.saturating_sub(1),
                fits: expiries.fit(),
            }
        })
    }

    /// So many more transmissions can have been lost.
    fn believes(&self, missing: u32) -> bool {
        let most = u64::from(LARGEST_GAP) + MOST_MISSING * self.packets;
        missing <= LARGEST_GAP && {
            let guessed = self.uncommon.as_ref().map_or(0, |uncommon| uncommon.guessed);
            guessed + u64::from(missing) <= most
        }
    }

    pub(super) fn remember(&mut self, index: Option<i64>, left: u64, hole_ns: i64, passing: &Passing, sender: &Sender) {
        let missing = Missing {
            index,
            order: sender.order,
            left,
            again: left < sender.nxt,
            newest: sender.nxt,
            needless: left < sender.una,
            time_ns: passing.time_ns,
            hole_ns,
            frame: passing.frame,
            arrivals: self.arrived(),
            shown_tsval: passing.tsval,
        };
        let uncommon = self.uncommon();
        uncommon.guessed += 1;
        if uncommon.missing.len() >= REMEMBERED {
            uncommon.missing.pop_front();
        }
        uncommon.missing.push_back(missing);
    }

    /// `count` skipped identifications that no new data explain: resends that were lost again. `before` passed last.
    fn lost_resends(
        &mut self,
        count: usize,
        passing: &Passing,
        before: Option<Passing>,
        sender: &mut Sender,
        sink: &mut dyn Sink,
    ) {
        if count == 0 {
            return;
        }
        let repeats = self.repeats(count, passing, before, sender);
        if sender.likely_resend(passing.left).is_none() {
            let many = count > INITIAL_WINDOW.max(sender.flight_max as usize);
            if !many && !self.two_way && repeats.is_none() {
                self.id.count_strange();
            }
            if many || self.id.is_shared() {
                // more than was ever under way, or time and again, and none of it is missing: other packets have these numbers
                self.share_counter();
                return;
            }
        }
        for k in 0..count {
            let (below, time_ns) = (passing.left, sender.fast_retransmit_ns(passing.time_ns));
            match repeats.filter(|repeats| repeats.exact || sender.likely_resend(below).is_none()) {
                Some(repeats) => self.lost_repeat(k, &repeats, passing, sender, sink),
                None => self.lost_resend(below, time_ns, passing, sender, sink),
            }
        }
    }

    /// A resend of data below `below`, sent at `time_ns`, that never passed.
    fn lost_resend(&mut self, below: u64, time_ns: i64, passing: &Passing, sender: &mut Sender, sink: &mut dyn Sink) {
        let Some(range) = sender.likely_resend(below) else {
            // nothing is missing that could have been sent again: a packet without data, or data not yet known to be missing
            self.next_skipped();
            self.uncommon().counts.unplaced += u64::from(!self.two_way);
            return;
        };
        self.lost_again(range, time_ns, passing, sender, sink);
    }

    /// A resend of a range, sent at `time_ns`, that never passed.
    pub(super) fn lost_again(
        &mut self,
        (left, right): (u64, u64),
        time_ns: i64,
        passing: &Passing,
        sender: &mut Sender,
        sink: &mut dyn Sink,
    ) {
        let (index, order) = (self.next_skipped(), sender.order);
        self.remember(index, left, time_ns, passing, sender);
        sender.send_again(&Sent::unseen(left, right, time_ns), sink);
        if sender.began_recovery() == Some(order) {
            self.uncommon().began = Some((order, passing.frame));
        }
    }
}
