//! A tail of which nothing arrived, at a receiver whose sender does not number its packets: what the timer sends again looks
//! like new data after a silence. But the timer leaves a window of one segment (RFC 5681, 3.1), so that one comes alone, and the
//! next when it has been acknowledged. An application that has paused sends what its window holds.
//!
//! A segment that ends what was written has PSH (RFC 9293, 3.9.1.2: a host sets it when it has no more to send). Where one
//! without it was the last before the silence, more had been written, and was sent if the window had room for it.

use super::gaps::Silence;
use super::{Arrivals, Passing};
use crate::flow::sender::Sender;
use crate::rows::{Sink, Vantage};

/// Round trips after which the next segment has come but for a delayed ACK (40 ms: Linux).
const NEXT_ROUND_TRIPS: f64 = 1.5;
const DELAYED_ACK_S: f64 = 0.05;
/// The timer runs so much longer than a round trip (RFC 6298, 2.3; most hosts have 0.2 s) that what an application writes every
/// so often does not look like it.
const LONGER_S: f64 = 0.15;

/// What PSH has said of the sender's writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writes {
    /// The newest data had it, any data had it so far, and some that were less than a full segment had not: that host sets it
    /// as it likes.
    ended: bool,
    told: bool,
    untold: bool,
    /// The other end has sent data since then.
    turned: bool,
}

impl Writes {
    /// The other end sends data.
    #[inline]
    pub fn on_turn(&mut self) {
        self.turned = true;
    }

    /// The newest data pass, with PSH or not, a `full` segment or less. True if more had been written than what had passed before.
    #[inline]
    pub fn on_data(&mut self, push: bool, full: bool) -> bool {
        self.told |= push;
        self.untold |= !push && !full;
        let more = self.told && !self.untold && !self.ended && !self.turned;
        (self.ended, self.turned) = (push, false);
        more
    }
}

/// A segment of new data that came after a silence, when all before it had been acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone {
    passing: Passing,
    silence: Silence,
    last_sent_ns: i64,
    /// More had been written before the silence.
    written: bool,
}

impl Arrivals {
    /// New data pass, behind data that `ended` with less than a full segment, or did not; they had been `written` before the
    /// silence, as far as PSH tells.
    pub fn note_silence(&mut self, passing: &Passing, ended: bool, written: bool, sender: &Sender) {
        let full = passing.right - passing.left == u64::from(sender.smss);
        let idle = sender.una == passing.left && sender.nxt == passing.left;
        let behind = matches!(sender.vantage, Vantage::Receiver | Vantage::Middle);
        let alone = full && !ended && !self.two_way && sender.flight_max > 1.0;
        let room = sender
            .window
            .is_none_or(|window| u64::from(window) >= passing.right - passing.left);
        let written = written && room;
        if !idle || !behind || self.id.dense() || !(alone || written) {
            return;
        }
        let long = |silence: &Silence| silence.timer || written;
        if let Some(silence) = self.silence(passing, sender).filter(long) {
            self.uncommon().alone = Some(Alone {
                passing: *passing,
                silence,
                last_sent_ns: sender.last_sent_ns,
                written,
            });
        }
    }

    #[inline]
    pub fn has_noted_silence(&self) -> bool {
        self.uncommon.as_ref().is_some_and(|uncommon| uncommon.alone.is_some())
    }

    /// What comes next after such a segment, data or the FIN, says whether the timer had sent it: before the ACKs that it shows
    /// to have arrived.
    pub fn judge_silence(&mut self, passing: &Passing, sender: &mut Sender, sink: &mut dyn Sink) {
        let Some(Alone {
            passing: first,
            silence,
            last_sent_ns,
            written,
        }) = self.uncommon.as_mut().and_then(|u| u.alone.take())
        else {
            return;
        };
        let after_s = (passing.time_ns - first.time_ns) as f64 / 1e9;
        let silence_s = (first.time_ns - silence.start_ns) as f64 / 1e9;
        let least_s = sender.rtt.floor().ns() as f64 / 1e9;
        let next = least_s..NEXT_ROUND_TRIPS * sender.rtt.srtt_s + DELAYED_ACK_S;
        let only = (sender.una, sender.nxt) == (first.left, first.right) && passing.left == first.right;
        let judged = if written {
            after_s >= least_s
        } else {
            next.contains(&after_s) && silence_s >= after_s + LONGER_S
        };
        if only && judged {
            sender.last_sent_ns = last_sent_ns;
            sender.sent_before(silence.start_ns);
            self.lost_series(&first, sender, sink);
            sender.send_again(&Self::sent(&first), sink);
        }
    }
}
