//! What fills the beginning of a hole after a silence, where time alone tells why it comes: the timer has sent it again, or the path
//! had held it. The timer leaves a window of one segment (RFC 5681, 3.1), and nothing follows before its ACK has come back; what the
//! path has held comes together.

use super::late::{PROVEN, TOGETHER};
use super::{Arrivals, Passing, Proven};
use crate::events::cause::SHORTEST_TIMER_S;
use crate::flow::ip_id::Place;
use crate::flow::sender::Sender;
use crate::rows::{Phase, Reason, Sink, Vantage};

/// Such a segment, and when its hole was sent, as far as was guessed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    passing: Passing,
    hole_ns: i64,
}

impl Arrivals {
    /// Keeps the segment until the next has come, if that may tell; true if so. A sender that goes back already has a window for both.
    pub(super) fn keep_for_next(&mut self, passing: &Passing, place: Place, sender: &Sender) -> bool {
        let untold = place == Place::Unknown && passing.tsval.is_none() && !sender.one_way;
        let behind = matches!(sender.vantage, Vantage::Receiver | Vantage::Middle);
        let goes_back = sender.phase != Phase::Open;
        let silence_s = (passing.time_ns - sender.last_sent_ns) as f64 / 1e9;
        if !untold || !behind || goes_back || silence_s < SHORTEST_TIMER_S {
            return false;
        }
        let Some(uncommon) = &mut self.uncommon else {
            return false;
        };
        let hole_ns_at = |left: u64| {
            let mut missing = uncommon.missing.iter().filter(|m| m.index.is_none());
            missing.find(|m| m.left == left).map(|m| m.hole_ns)
        };
        let hole_ns = hole_ns_at(passing.left).filter(|&hole_ns| hole_ns_at(passing.right) == Some(hole_ns));
        uncommon.held = hole_ns.map(|hole_ns| Held {
            passing: *passing,
            hole_ns,
        });
        uncommon.held.is_some()
    }

    #[inline]
    pub fn has_kept(&self) -> bool {
        self.uncommon.as_ref().is_some_and(|uncommon| uncommon.held.is_some())
    }

    /// What has been kept, now that the `next` data pass, or the flow is over.
    #[cold]
    pub fn judge_kept(&mut self, next: Option<&Passing>, sender: &mut Sender, sink: &mut dyn Sink) {
        let Some(Held { passing, hole_ns }) = self.uncommon().held.take() else {
            return;
        };
        let soon_ns = sender.round_trips_ns(TOGETHER);
        if next.is_some_and(|next| next.left == passing.right && next.time_ns - passing.time_ns < soon_ns) {
            // as if it followed another that had been held
            self.uncommon().late = Some(Proven {
                right: passing.left,
                time_ns: passing.time_ns,
                hole_ns,
                reason: Reason::Timing,
                confidence: PROVEN,
            });
        }
        self.place_below(passing, Place::Unknown, sender, sink);
    }
}
