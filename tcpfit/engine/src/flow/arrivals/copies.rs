//! Which packets are there twice, by the path's doing or the capture's, and not sent again: they come sooner than a sender
//! could know that a resend is needed, or carry what no resend carries.

use super::{Arrivals, Passing};
use crate::events::cause::SHORTEST_TIMER_S;
use crate::flow::scoreboard::{segments, Transmission};
use crate::flow::sender::Sender;
use crate::flow::sequence::{before, offset};
use crate::rows::{EventRow, Kind, Phase, Reason, Sink, Vantage};

/// A copy made by the network or the capture comes within this, where only time can tell it from a resend.
pub const COPY_NS: i64 = 500_000;
/// Least round trips in which the sender can know what became of a segment.
const SOONEST_RESEND: f64 = 0.5;
/// Round trips for which data have passed without a pause: no path stood still, behind which a timer's resend comes soon.
const STREAM: f64 = 2.0;
/// A copy made by the capture comes at once; one made on the path has to be sent on the last link after the original.
pub const CAPTURE_COPY_NS: i64 = 10_000;

impl Arrivals {
    /// A copy that the capture has made.
    pub fn on_capture_copy(&mut self, passing: &Passing, sender: &Sender, sink: &mut dyn Sink) {
        self.packets += 1;
        let count = segments(passing.right - passing.left, sender.smss);
        self.uncommon().counts.copies += u64::from(count);
        self.copy_event(passing, count, sender, sink);
    }

    /// Same range, identification and timestamp again, sooner than any resend could come.
    pub(super) fn is_copy(&self, passing: &Passing, sender: &Sender) -> bool {
        let same_as_last = self.last.is_some_and(|last| {
            last.left == passing.left
                && last.right == passing.right
                && last.tsval == passing.tsval
                && last.checksum == passing.checksum
                && last.ip_id == passing.ip_id
                && passing.time_ns - last.time_ns < COPY_NS.max(sender.round_trips_ns(0.1))
        });
        same_as_last || self.is_transmission_copied(passing, sender)
    }

    /// The transmission before, which is the same packet, if this one came too soon to be an answer to what had become of
    /// it. A copy need not follow at once: a mirror port of a busy switch has other packets in between.
    fn is_transmission_copied(&self, passing: &Passing, sender: &Sender) -> bool {
        let at_sender = sender.vantage == Vantage::Sender;
        let known = passing.ip_id.is_some_and(|id| id != 0);
        let soon_ns = match (at_sender, known) {
            // a timer may send again what had gone out just before it
            (true, false) => COPY_NS.min(sender.round_trips_ns(SOONEST_RESEND)),
            (true, true) => COPY_NS.max(sender.round_trips_ns(SOONEST_RESEND)),
            // a resend would have a newer stamp
            (false, _) if passing.tsval.is_some() && sender.stamp_tick_ns > 0 => {
                COPY_NS.max(sender.round_trips_ns(SOONEST_RESEND))
            }
            (false, true) => COPY_NS,
            // nothing has asked for what came in a stream of data; otherwise a resend can come behind its original that came late,
            // but hardly as soon as a busy mirror port's copy
            (false, false) if passing.tsval.is_none() && Self::came_in_stream(passing, sender) => {
                COPY_NS.max(sender.round_trips_ns(SOONEST_RESEND))
            }
            (false, false) => COPY_NS.min(sender.round_trips_ns(0.1)),
        };
        let Some(last) = sender.board.last_of(passing.left, passing.right) else {
            return false;
        };
        // what has come of data that were missing may have been the resend, and this is the original
        let was_missing = || {
            sender
                .board
                .copies(passing.left)
                .next()
                .is_some_and(|first| !first.seen())
        };
        if !at_sender && !known && self.counts().network_copies == 0 && was_missing() {
            return false;
        }
        let same = (last.tsval, last.ip_id) == (passing.tsval.unwrap_or(0), passing.ip_id.unwrap_or(0));
        // a resend has the time at which it is sent
        let stale = passing
            .tsval
            .zip(self.newest_tsval)
            .is_some_and(|(tsval, newest)| before(tsval, newest));
        same && (stale || passing.time_ns - last.time_ns < soon_ns)
    }

    /// Without timestamps: these data have come once, while nothing was sent again, amid others that had come without a pause for
    /// so long that no timer's resend was held with them.
    fn came_in_stream(passing: &Passing, sender: &Sender) -> bool {
        let mut copies = sender.board.copies(passing.left);
        let (first, more) = (copies.next(), copies.next());
        let came_once = first.filter(|first| first.seen() && more.is_none());
        let came_once = came_once.filter(|_| sender.phase == Phase::Open);
        let stream_ns = sender.round_trips_ns(STREAM);
        came_once.is_some_and(|first| stream_ns > 0 && sender.drift.unbroken_ns(first.time_ns) > stream_ns)
    }

    /// The identification has been seen: on the same range, and sooner than a timer could send it again?
    pub(super) fn is_copy_by_id(&self, passing: &Passing, sender: &Sender) -> bool {
        let sent = sender.board.copies(passing.left);
        let on_board = sent
            .filter(|t| t.seen() && Some(t.ip_id) == passing.ip_id)
            .map(|t| t.time_ns)
            .last();
        let last = self
            .last
            .filter(|last| last.left == passing.left && last.ip_id == passing.ip_id);
        let first_ns = match (on_board, last) {
            (Some(time_ns), _) => time_ns,
            (None, Some(last)) => last.time_ns,
            // delivered and forgotten: below the left edge nothing but a copy carries an old number
            (None, None) => return passing.right <= sender.una,
        };
        ((passing.time_ns - first_ns) as f64 / 1e9) < SHORTEST_TIMER_S
    }

    /// A mirror port, or capturing on two interfaces, repeats a packet soon and unchanged. At the sender there is no path yet
    /// that could have made a copy; elsewhere one that comes at once has not been sent on a last link after its original.
    pub(super) fn is_capture_copy(&self, passing: &Passing, sender: &Sender) -> bool {
        let since_ns = |last: &Passing| passing.time_ns - last.time_ns;
        let same = |last: &&Passing| (last.left, last.checksum) == (passing.left, passing.checksum);
        let last = self.last.as_ref().filter(same);
        if sender.vantage == Vantage::Sender {
            let known = passing.ip_id.is_some_and(|id| id != 0);
            return known || last.is_none_or(|last| since_ns(last) < COPY_NS);
        }
        last.is_some_and(|last| {
            // no path has a router that a packet passes by: another capture point saw the copy
            let soon_ns = if last.ttl == passing.ttl {
                CAPTURE_COPY_NS
            } else {
                COPY_NS
            };
            since_ns(last) < soon_ns
        })
    }

    /// Nothing but that it came at once says of a copy that the capture has made it.
    pub(super) fn came_at_once(&self, passing: &Passing, sender: &Sender) -> bool {
        sender.vantage != Vantage::Sender && self.last.is_some_and(|last| last.ttl == passing.ttl)
    }

    pub(super) fn copy_event(&self, passing: &Passing, count: u32, sender: &Sender, sink: &mut dyn Sink) {
        let mut sent = sender.board.copies(passing.left).filter(Transmission::seen);
        let copied = match passing.ip_id {
            Some(id) if id != 0 => sent.find(|t| t.ip_id == id).map(|t| t.frame),
            _ => sent.last().map(|t| t.frame),
        };
        let last = self
            .last
            .filter(|last| last.left == passing.left && last.ip_id == passing.ip_id);
        let copied = copied.or(last.map(|last| last.frame));
        sink.event(EventRow {
            flow: sender.flow,
            time_ns: passing.time_ns,
            kind: Kind::Duplicate,
            reason: Reason::Copy,
            left: offset(passing.left),
            right: offset(passing.right),
            frame: passing.frame.into(),
            cause_frame: copied.into(),
            segments: count,
            flight: sender.flight(),
            phase: sender.phase,
            confidence: 0.95,
            ..EventRow::NONE
        });
    }
}
