//! What arrives below the highest byte sent: sent again, or late, because the path delivered later segments before it.

use super::{Arrivals, Missing, Passing, Proven};
use crate::events::reordering::Late;
use crate::flow::ip_id::Place;
use crate::flow::scoreboard::{segments, Transmission};
use crate::flow::sender::{Sender, Sent};
use crate::flow::sequence::before;
use crate::rows::{Reason, Sink, Vantage};

/// What the path held together comes within this share of a round trip.
pub(super) const TOGETHER: f64 = 0.25;
/// Confidence from which on a late segment says so of the next.
pub(super) const PROVEN: f64 = 0.8;

impl Arrivals {
    /// Identification older than the newest one: the segment was overtaken on the path.
    pub(super) fn late_by_id(
        &mut self,
        index: i64,
        passing: &Passing,
        count: u32,
        sender: &mut Sender,
        sink: &mut dyn Sink,
    ) -> bool {
        let Some(uncommon) = &mut self.uncommon else {
            return false;
        };
        let n = uncommon.missing.iter().position(|m| m.index == Some(index));
        let Some(missing) = n.and_then(|n| uncommon.missing.remove(n)) else {
            uncommon.skipped.retain(|&i| i != index);
            return false;
        };
        let right_place = missing.left == passing.left;
        let confidence = if right_place { 0.98 } else { 0.9 };
        // a needless copy is a resend only now that it is seen
        let kept = right_place && !missing.needless;
        if !kept && !self.one_fewer(&missing, passing, sender) {
            // the guess which data it carried was wrong: take it back, and put it where it belongs
            sender.forget(missing.order, missing.left);
        }
        self.late(&missing, passing, count, Reason::IpId, confidence, sender, sink);
        sender.fill(&missing, Self::sent(passing)) || kept && sender.arrived(missing.order, missing.left, passing.frame)
    }

    /// A number that was taken for one of new data, above all that has passed, is that of data from below: one segment fewer
    /// was sent. The numbers behind it are those of what lies one lower.
    fn one_fewer(&mut self, wrong: &Missing, passing: &Passing, sender: &mut Sender) -> bool {
        let Some(uncommon) = &mut self.uncommon else {
            return false;
        };
        if wrong.again || passing.right > wrong.left || !sender.only_guesses_from(wrong.left) {
            return false;
        }
        let mut place = (wrong.left, wrong.order);
        for above in uncommon.missing.iter_mut().filter(|m| !m.again && m.left > wrong.left) {
            (place, (above.left, above.order)) = ((above.left, above.order), place);
        }
        sender.retract(place.0);
        true
    }

    #[allow(clippy::too_many_arguments)] // one late segment and its evidence
    fn late(
        &mut self,
        missing: &Missing,
        passing: &Passing,
        count: u32,
        reason: Reason,
        confidence: f64,
        sender: &mut Sender,
        sink: &mut dyn Sink,
    ) {
        let (rtt_s, flight) = (sender.rtt.srtt_s, sender.flight());
        let late = Late {
            time_ns: passing.time_ns,
            order: missing.order,
            left: passing.left,
            right: passing.right,
            frame: passing.frame,
            cause_frame: Some(missing.frame),
            segments: count,
            extent: (self.arrived() - missing.arrivals) as u32,
            arrival: Some(self.arrived() + 1 - u64::from(count)),
            late_s: (passing.time_ns - missing.time_ns) as f64 / 1e9,
            reason,
            confidence,
        };
        sender.reordering.on_late(late, rtt_s, flight, sink);
    }

    /// Data below the highest byte sent: a resend, or (where no identification says so) a late original.
    pub(super) fn below(&mut self, passing: Passing, place: Place, sender: &mut Sender, sink: &mut dyn Sink) {
        if matches!(place, Place::Newest { .. }) && self.fits_no_guess(&passing, sender) {
            return;
        }
        if !self.keep_for_next(&passing, place, sender) {
            self.place_below(passing, place, sender, sink);
        }
    }

    /// The same, of which no more is to be known.
    pub(super) fn place_below(&mut self, passing: Passing, place: Place, sender: &mut Sender, sink: &mut dyn Sink) {
        let count = segments(passing.right - passing.left, sender.smss);
        let mut doubtful = false;
        let guessed = matches!(place, Place::Unknown | Place::Late { .. });
        if let Some((n, missing)) = guessed.then(|| self.original_of(&passing, sender)).flatten() {
            let late = match place {
                // the hole was older than the counter's credit
                Place::Late { .. } => Some((Reason::IpId, 0.95)),
                _ => {
                    let proven = self.came_late(&missing, &passing, sender);
                    doubtful = proven.is_none();
                    proven.or_else(|| self.unasked(&Self::sent(&passing), sender))
                }
            };
            if let Some((reason, confidence)) = late {
                self.late(&missing, &passing, count, reason, confidence, sender, sink);
                self.uncommon().late = (confidence >= PROVEN).then_some(Proven {
                    right: passing.right,
                    time_ns: passing.time_ns,
                    hole_ns: missing.hole_ns,
                    reason,
                    confidence,
                });
                let filled = sender.fill(&missing, Self::sent(&passing));
                let right_place = missing.left == passing.left;
                if !filled || right_place {
                    self.uncommon().missing.remove(n);
                } else if !sender.hole_is_open(passing.left, missing.hole_ns) {
                    // of a hole that was cut otherwise, what has not been sent again
                    let has_come = |m: &Missing| sender.board.copies(m.left).next().is_some_and(|first| first.seen());
                    let of_it = |m: &Missing| m.index.is_none() && m.hole_ns == missing.hole_ns;
                    self.uncommon().missing.retain(|m| !of_it(m) || !has_come(m));
                }
                if filled || right_place && sender.arrived(missing.order, missing.left, passing.frame) {
                    return;
                }
            }
        }
        // what lies above the highest byte is new (a resend may carry more than the original)
        let split = passing.right.min(sender.nxt);
        let again = Sent {
            right: split,
            doubtful,
            ..Self::sent(&passing)
        };
        let seen_before = sender.seen_before(passing.left, split);
        if seen_before {
            let uncommon = self.uncommon();
            (uncommon.repeated, uncommon.repeated_right, uncommon.repeated_nxt) = (passing.frame, split, sender.nxt);
        }
        if place == Place::Unknown && !seen_before && !sender.one_way {
            Self::lost_before(&again, sender, sink);
        }
        sender.send_again(&again, sink);
        self.newest_tsval = match (passing.tsval, self.newest_tsval) {
            (Some(now), Some(newest)) if before(now, newest) => Some(newest),
            (now, newest) => now.or(newest),
        };
        if seen_before || sender.vantage == Vantage::Sender {
            self.uncommon().counts.resent_segments += u64::from(segments(split - passing.left, sender.smss));
            self.uncommon().counts.resent_bytes += split - passing.left;
        }
        if passing.right > split {
            self.send_new(&Passing { left: split, ..passing }, sender, sink);
        }
    }

    /// What is missing without a number and may be this: the first transmission of these data, or else one of the same hole.
    fn original_of(&self, passing: &Passing, sender: &Sender) -> Option<(usize, Missing)> {
        let missing = self.uncommon.as_ref().filter(|uncommon| !uncommon.missing.is_empty())?;
        let missing = missing.missing.iter().enumerate();
        let mut possible = missing.filter(|(_, m)| m.index.is_none() && !passing.was_sent_since(m));
        let same = possible.clone().find(|(_, m)| m.left == passing.left);
        let of_hole = || {
            let hole_ns = sender.hole_ns(passing.left)?;
            possible.find(|(_, m)| m.hole_ns == hole_ns)
        };
        same.or_else(of_hole).map(|(n, m)| (n, *m))
    }

    /// Data that seemed to have been sent with a number that was skipped, though nothing above them has passed, pass sooner than
    /// their loss could be known, which takes a round trip: they are sent for the first time, and the number is another packet's.
    fn fits_no_guess(&self, passing: &Passing, sender: &mut Sender) -> bool {
        let Some(uncommon) = self.uncommon.as_ref().filter(|_| sender.ends_in_guesses()) else {
            return false;
        };
        let soon_ns = passing.time_ns - sender.rtt.floor().ns();
        let guessed = |m: &&Missing| m.left == passing.left && !m.again && m.hole_ns > soon_ns;
        let missing = uncommon.missing.iter().rev().find(guessed);
        missing.is_some_and(|missing| passing.right <= sender.nxt && sender.fill(missing, Self::sent(passing)))
    }

    /// Without identification: a resend of the same data was lost before this one, if the sender must have made one.
    fn lost_before(again: &Sent, sender: &mut Sender, sink: &mut dyn Sink) {
        if let Some(time_ns) = sender.lost_resend_ns(again) {
            let last_sent_ns = sender.last_sent_ns;
            sender.send_again(&Sent::unseen(again.left, again.right, time_ns), sink);
            sender.last_sent_ns = last_sent_ns.max(time_ns);
        }
    }

    /// Without identification: what proves that the segment that fills a hole was sent before the data above it.
    fn came_late(&self, missing: &Missing, passing: &Passing, sender: &Sender) -> Option<(Reason, f64)> {
        let age_ns = passing.time_ns - missing.time_ns;
        let stamps = passing.tsval.zip(self.newest_tsval);
        let older = stamps.is_some_and(|(now, newest)| before(now, newest));
        // a tick that is long over
        let tick_ns = i64::from(sender.stamp_tick_ns);
        let stamped = passing.tsval.is_some() && tick_ns > 0;
        let past = stamped && passing.tsval == missing.shown_tsval && age_ns > 2 * tick_ns;
        if older || past {
            return Some((Reason::Tsval, 0.95));
        }
        let rtt_s = if sender.rtt.min_s.is_finite() {
            sender.rtt.min_s
        } else {
            sender.rtt.srtt_s
        };
        if (age_ns as f64 / 1e9) < 0.9 * rtt_s {
            return Some((Reason::Timing, 0.8));
        }
        // what was held is let go together
        let together = |late: &Proven| {
            let next = (late.right, late.hole_ns) == (passing.left, missing.hole_ns);
            next && passing.time_ns - late.time_ns < sender.round_trips_ns(TOGETHER)
        };
        if let Some(before) = self.uncommon.as_ref()?.late.filter(together) {
            return Some((before.reason, before.confidence));
        }
        // no sender sends it again twice in a round trip, but for a timer that ran meanwhile, and a queue has brought them no nearer
        // to each other than it was long. What an ACK has asked for only a timer sends again, that has run since before
        let soon = |last: &Transmission| {
            let queue_ns = sender.drift.longest_queue_ns(last.time_ns);
            let since_ns = passing.time_ns - last.time_ns;
            let twice = queue_ns.is_some_and(|queue_ns| since_ns + queue_ns < sender.rtt.floor().ns());
            let asked_for = matches!(last.cause, Reason::FastDupthresh | Reason::PartialAck) && !sender.sack;
            (twice || asked_for) && !sender.other_timer_may_have_run(last, passing.time_ns)
        };
        let last = sender.board.last_of(passing.left, passing.right);
        let last = last.filter(|_| passing.tsval.is_none());
        last.filter(soon).map(|_| (Reason::Timing, 0.8))
    }

    /// Without identification: nothing would have made the sender send it again. Its resend may have filled the hole, and the
    /// sender know it.
    fn unasked(&self, sent: &Sent, sender: &mut Sender) -> Option<(Reason, f64)> {
        if !sender.rtt.min_s.is_finite() {
            return None;
        }
        if sender.knows_arrived(sent) {
            return Some((Reason::Unasked, 0.8));
        }
        // one that goes back sends hole after hole, and nothing new
        let goes_back = self
            .uncommon
            .as_ref()
            .is_some_and(|uncommon| uncommon.repeated_nxt == sender.nxt);
        let unasked = sender.nothing_asked_for(sent) || !goes_back && sender.is_further_unasked(sent);
        unasked.then_some((Reason::Unasked, 0.6))
    }
}

impl Passing {
    /// Its timestamp is newer than that of what showed that `missing` is missing: it is not that transmission.
    fn was_sent_since(&self, missing: &Missing) -> bool {
        let stamps = missing.shown_tsval.zip(self.tsval);
        stamps.is_some_and(|(shown, now)| before(shown, now))
    }
}
