//! A tail of which nothing arrived, at a receiver whose sender does not number its packets: what the timer sends again looks
//! like new data after a silence. But the timer leaves a window of one segment (RFC 5681, 3.1), so that one comes alone, and the
//! next when it has been acknowledged. An application that has paused sends what its window holds.

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

/// A full segment of new data that came after a silence, when all before it had been acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alone {
    passing: Passing,
    silence: Silence,
    last_sent_ns: i64,
}

impl Arrivals {
    /// New data pass, behind data that `ended` with less than a full segment, or did not.
    pub fn note_silence(&mut self, passing: &Passing, ended: bool, sender: &Sender) {
        let full = passing.right - passing.left == u64::from(sender.smss);
        let idle = sender.una == passing.left && sender.nxt == passing.left && sender.flight_max > 1.0;
        let behind = matches!(sender.vantage, Vantage::Receiver | Vantage::Middle);
        if !full || !idle || ended || !behind || self.two_way || self.id.dense() {
            return;
        }
        if let Some(silence) = self.silence(passing, sender).filter(|silence| silence.timer) {
            self.uncommon().alone = Some(Alone {
                passing: *passing,
                silence,
                last_sent_ns: sender.last_sent_ns,
            });
        }
    }

    #[inline]
    pub fn has_noted_silence(&self) -> bool {
        self.uncommon.as_ref().is_some_and(|uncommon| uncommon.alone.is_some())
    }

    /// What comes next after such a segment says whether the timer had sent it: before the ACKs that it shows to have arrived.
    pub fn judge_silence(&mut self, passing: &Passing, sender: &mut Sender, sink: &mut dyn Sink) {
        let Some(Alone {
            passing: first,
            silence,
            last_sent_ns,
        }) = self.uncommon.as_mut().and_then(|u| u.alone.take())
        else {
            return;
        };
        let after_s = (passing.time_ns - first.time_ns) as f64 / 1e9;
        let silence_s = (first.time_ns - silence.start_ns) as f64 / 1e9;
        let least_s = sender.rtt.floor().ns() as f64 / 1e9;
        let next = least_s..NEXT_ROUND_TRIPS * sender.rtt.srtt_s + DELAYED_ACK_S;
        let only = (sender.una, sender.nxt) == (first.left, first.right) && passing.left == first.right;
        if only && next.contains(&after_s) && silence_s >= after_s + LONGER_S {
            sender.last_sent_ns = last_sent_ns;
            sender.sent_before(silence.start_ns);
            self.lost_series(&first, sender, sink);
            sender.send_again(&Self::sent(&first), sink);
        }
    }
}
