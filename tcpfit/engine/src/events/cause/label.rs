//! What a segment was sent again for, as far as the rules tell: one label for each resend, in each phase.

use super::timer::{SHORTEST_TIMER_S, TIMER_SHARE};
use super::{Question, DUPTHRESH};
use crate::flow::scoreboard::Transmission;
use crate::flow::sender::{Sender, LOOKED_AT};
use crate::rows::{Kind, Phase, Reason, Vantage};

/// Smoothed round trips that a timer runs at least.
const TIMER_ROUND_TRIPS: f64 = 1.02;
/// Data centres set it to some milliseconds. Nothing but a timer is left if it was started so many smoothed round trips
/// ago, and nothing came or was sent for so many, and each so long.
const SHORT_TIMER_ROUND_TRIPS: f64 = 1.5;
const SILENT_ROUND_TRIPS: f64 = 0.75;
const LEAST_SILENCE_S: f64 = 0.004;
/// Away from the sender losses make silences too; there all of it must be so many times as long.
const AWAY: f64 = 2.0;
/// RACK measures the newest round trip, which may be longer than the smoothed one, and its timer comes late.
const RACK_MARGIN: f64 = 1.05;
const RACK_TIMER_S: f64 = 0.01;
/// In recovery a resend without an ACK for this long was not answered to one.
const RECOVERY_SILENCE_S: f64 = 0.05;
/// Resends upon nothing but a partial ACK that show a host to stay in recovery (RFC 6582, 3.2), where times may be a little off.
const GOES_BY_PARTIAL: u32 = 3;

impl Sender {
    pub(super) fn label(&self, q: &Question) -> Reason {
        if q.sacked {
            return Reason::Unneeded;
        }
        // no ACK let it go, and the timer (always above the round trip: RFC 6298, 2.3) can have run out
        let timer = !q.clocked && (q.timer_s >= self.least_run_s() || self.is_silent(q));
        let full_timer = q.timer_s >= self.full_timer_s();
        match self.phase {
            Phase::Open => self.label_open(q, timer, full_timer),
            Phase::Recovery => self.label_recovery(q, timer, full_timer),
            Phase::Loss => self.label_loss(q, timer, full_timer),
        }
    }

    fn label_open(&self, q: &Question, timer: bool, full_timer: bool) -> Reason {
        if self.sack && q.sacked_above > 0 {
            let waited_s = || (q.time_ns - self.waited_for_ns(q)) as f64 / 1e9;
            let rack = timer && !full_timer && waited_s() <= self.longest_rack_s() && !self.is_past_rack(q);
            let enough = q.sacked_above >= DUPTHRESH;
            let told = enough && self.is_just_told(q);
            // data that come all the while leave no timer, however long the way was
            let asked = enough && (self.way_unknown || self.is_far() && !self.ends_silence(q));
            let expired = timer && !rack && (full_timer || !told) && !asked;
            return if q.head && expired {
                Reason::Rto
            } else if enough && !rack {
                Reason::FastDupthresh
            } else {
                Reason::FastRack
            };
        }
        // RFC 8985, 7: a probe repeats the last segment; without SACK no stack sends one
        let can_probe =
            (self.sack || self.begun_before) && q.tail && q.copies == 1 && self.episodes.probe_una != self.una;
        // what is the head too may have been sent by either timer, which end together where round trips are short
        let due = q.silence_s >= (2.0 * self.rtt.srtt_s).min(self.rtt.rto_s()) * TIMER_SHARE
            && !(q.head && q.silence_s > self.longest_probe_s());
        if can_probe && !q.clocked && due && !(q.head && self.sends_no_probes()) {
            return Reason::Tlp;
        }
        if q.head && (!full_timer && self.is_passed_by(q) || self.is_left_over(q)) {
            return Reason::FastRack;
        }
        if q.head && self.episodes.answered_ns == q.time_ns {
            return Reason::FastDupthresh;
        }
        // away from the sender what duplicate ACKs asked for may have been held on its way for as long as a short timer; without
        // timestamps it may be their time that is not known, but a timer's resend ends a silence
        let sure = self.timestamps || !self.ends_silence(q);
        let held = self.vantage != Vantage::Sender && sure && self.duplicate_acks >= DUPTHRESH;
        if q.head && timer && (full_timer || !held || self.is_silent(q)) {
            return Reason::Rto;
        }
        // hosts that have seen reordering wait for more than three; the timer runs on meanwhile (RFC 6298, 5.3). What an ACK
        // asks for comes promptly, and before the new data that it lets go; elsewhere than at the sender the segment
        // echoes it (RFC 7323, 4.3), or else only the time since the third is sure
        let passed_over = if self.vantage == Vantage::Sender || self.timestamps {
            !self.is_prompt(q.since_ack_s) || self.has_sent_new()
        } else {
            (q.time_ns - self.duplicates.third_ns) as f64 / 1e9 >= SHORTEST_TIMER_S
        };
        if q.head && full_timer && self.duplicate_acks > 2 * DUPTHRESH && passed_over {
            return Reason::Rto;
        }
        // Linux keeps counting where a recovery was taken back, as if the receiver had SACKed
        let counted = self.duplicate_acks.max(self.unexplained_acks).max(self.reno_received());
        if q.head && counted >= DUPTHRESH {
            return Reason::FastDupthresh;
        }
        if q.head && q.clocked && self.goes_on() {
            return Reason::PartialAck;
        }
        if q.head && full_timer {
            return Reason::Rto;
        }
        if q.head && self.duplicate_acks > 0 {
            return if self.is_hidden_timer(q) {
                Reason::Rto
            } else {
                Reason::EarlyRetransmit
            };
        }
        if q.silence_s >= SHORTEST_TIMER_S {
            Reason::Rto
        } else {
            Reason::Unknown
        }
    }

    /// Where as much is outstanding that three duplicate ACKs could come, fewer ask for nothing (RFC 5827, 3.1); away from the sender a
    /// queue may have taken part of the timer's silence.
    pub(super) fn is_hidden_timer(&self, q: &Question) -> bool {
        let few = self.duplicate_acks < DUPTHRESH && self.outstanding > DUPTHRESH;
        let away = self.vantage != Vantage::Sender && self.phase == Phase::Open;
        away && few && !self.sack && q.head && self.duplicate_acks > 0 && q.timer_s >= self.least_round_trip_s()
    }

    /// The last ACK has shown that an original had arrived, in the middle of a recovery without SACK, and no duplicate ACK has
    /// come since: what follows upon it is sent by a host that does not look at the echo, to which it is a partial ACK (RFC
    /// 6582, 3.2).
    fn goes_on(&self) -> bool {
        let episodes = &self.episodes;
        let undone = episodes.undone_ns > 0 && episodes.undone_ns == self.last_advance_ns;
        undone && !self.sack && self.duplicate_acks == 0 && self.una < episodes.recover
    }

    /// Where it is not known to a part of a round trip when a partial ACK came, the recovery under way has had more resends
    /// than that which began it: the host stays in it (RFC 6582, 3.2).
    fn has_gone_on_afar(&self) -> bool {
        let row = || self.episodes.get()?.opened.as_ref();
        self.is_far() && row().is_some_and(|row| row.kind == Kind::Recovery && row.segments > 1)
    }

    /// Away from the sender nothing but resends tells how long ACKs are under way.
    fn is_far(&self) -> bool {
        self.vantage != Vantage::Sender && !self.timestamps
    }

    /// Without timestamps: no data had passed for half of the least round trip, and for longer than while a slow link sends.
    fn ends_silence(&self, q: &Question) -> bool {
        let gap_s = self.drift.get().map_or(0.0, |drift| drift.gap_ns() as f64 / 1e9);
        q.silence_s >= (self.least_round_trip_s() / 2.0).max(gap_s)
    }

    /// Nothing came for so long, and nothing was sent, that only a timer is left, however short it is.
    pub(super) fn is_silent(&self, q: &Question) -> bool {
        let times = match self.vantage {
            Vantage::Sender => 1.0,
            _ if self.timestamps => AWAY,
            _ => return false,
        };
        let at_least = |round_trips: f64| times * (round_trips * self.rtt.srtt_s).max(LEAST_SILENCE_S);
        self.rtt.srtt_s > 0.0
            && q.timer_s >= at_least(SHORT_TIMER_ROUND_TRIPS)
            && q.silence_s >= at_least(SILENT_ROUND_TRIPS)
    }

    /// RACK waits a quarter of a round trip for late segments, and after resends that were not needed longer, up to a round
    /// trip; a timer of its own ends that (RFC 8985, 6.2 and 6.3).
    pub(super) fn longest_rack_s(&self) -> f64 {
        let window = match (self.fates.has_seen_dsack(), self.reordering.get()) {
            (true, _) => 1.0,
            // a segment that was held on its way may be the newest, and its round trip is what RACK measures
            (_, Some(reordering)) if reordering.segments > 0 => 0.5,
            _ => 0.25,
        };
        RACK_MARGIN * (1.0 + window) * self.rtt.srtt_s + RACK_TIMER_S
    }

    /// With SACK: something sent after the last copy has arrived, where it may be nothing above it that did. RACK goes by when
    /// segments were sent, not by where they are (RFC 8985, 6.2), and waits no longer.
    fn is_passed_by(&self, q: &Question) -> bool {
        let waited_s = (q.time_ns - q.last.time_ns) as f64 / 1e9;
        self.is_passed(q) && waited_s <= self.longest_rack_s()
    }

    /// With SACK: something sent after the last copy has arrived.
    pub(super) fn is_passed(&self, q: &Question) -> bool {
        self.sack && self.delivered_order > q.last.order
    }

    /// An ACK has just ended an episode, and something sent after these data has come: RACK takes them for lost, however long ago they
    /// were sent (RFC 8985, 6.2), and if a DSACK has taken a timeout back, with what that had said of them.
    fn is_left_over(&self, q: &Question) -> bool {
        let ended = self
            .episodes
            .get()
            .is_some_and(|episodes| episodes.ended_ns == self.last_ack_ns);
        ended && q.clocked && self.is_passed(q)
    }

    /// When the segment was sent that RACK waits for longest: its timer is that of the last, of all that were sent before one
    /// that has come (RFC 8985, 6.2, step 5).
    fn waited_for_ns(&self, q: &Question) -> i64 {
        let highest = self.covered.as_ref().and_then(|covered| covered.highest());
        let below = highest.and_then(|left| self.board.units.get(self.board.find(left.saturating_sub(1))));
        below.map_or(q.last.time_ns, |unit| self.board.last(unit).time_ns.max(q.last.time_ns))
    }

    /// When something was SACKed, the last copy had been under way for longer than RACK waits, which would have sent it again
    /// with that ACK (RFC 8985, 6.2, step 5): its timer is for what is not as old.
    fn is_past_rack(&self, q: &Question) -> bool {
        let due_ns = q.last.time_ns + (self.longest_rack_s() * 1e9) as i64;
        let mut units = self.board.units.iter().take(LOOKED_AT);
        units.any(|unit| unit.sacked_ns > due_ns)
    }

    /// ACKs have shown for so long that the last copy was lost that RACK would have sent it again (RFC 8985, 6.2): the host
    /// does not look, and what it sends now was not asked for by the ACK that happened to come before.
    fn is_overlooked(&self, q: &Question) -> bool {
        let waited_s = (q.time_ns - q.last.time_ns) as f64 / 1e9;
        if self.vantage != Vantage::Sender || waited_s <= self.longest_rack_s() {
            return false;
        }
        let by_ns = q.time_ns - (self.rtt.srtt_s * 1e9 / 2.0) as i64;
        let least_ns = (self.rtt.min_s * 1e9) as i64;
        self.board.units.iter().take(LOOKED_AT).any(|unit| {
            let last = self.board.last(unit);
            let sacked_ns = unit.sacked_ns;
            last.order > q.last.order && (1..by_ns).contains(&sacked_ns) && sacked_ns - last.time_ns >= least_ns
        })
    }

    /// Nothing can have been heard yet of the last copy, and no ACK comes just before: only a timer sends it again, which runs
    /// on from the last ACK that moved the left edge (RFC 6298, 5.3) where a resend does not start it.
    fn is_too_early(&self, q: &Question) -> bool {
        let runs = q.since_advance_s >= self.least_run_s();
        self.vantage == Vantage::Sender && !q.clocked && self.is_unheard(q) && runs
    }

    /// The last copy was sent too late to be answered yet.
    fn is_unheard(&self, q: &Question) -> bool {
        q.time_ns - q.last.time_ns < self.rtt.floor().ns()
    }

    /// Why the first segment outstanding was sent last, if it was too late to be answered yet.
    pub(super) fn unheard_head(&self, q: &Question) -> Option<Reason> {
        let last = self.board.units.front().map(|head| self.board.last(head));
        let unheard = |last: &Transmission| q.time_ns - last.time_ns < self.rtt.floor().ns();
        last.filter(unheard).map(|last| last.cause)
    }

    /// A timer runs at least as long.
    fn least_run_s(&self) -> f64 {
        (TIMER_ROUND_TRIPS * self.rtt.srtt_s).max(self.episodes.least_timer_s)
    }

    fn label_recovery(&self, q: &Question, timer: bool, full_timer: bool) -> Reason {
        let resent_before = q.copies > 1 && q.last.order >= self.episodes.order;
        if self.sack {
            let runs = q.timer_s >= self.episodes.least_timer_s;
            // a resend shows itself lost when something sent after it arrives (RFC 8985, 6.2); before, only the timer knows
            // at the sender nothing else is unseen, so that a timer shorter than the replayed one is left
            let ran_out = full_timer || self.is_silent(q) || self.vantage == Vantage::Sender && runs;
            let untold = resent_before && ran_out && self.delivered_order <= q.last.order;
            let passed_by = resent_before && self.is_passed(q);
            let rack = resent_before && self.is_passed_by(q);
            let told = passed_by && (rack || self.is_just_told(q));
            let expired = timer && (full_timer || !told) || untold || resent_before && self.is_too_early(q);
            let expired = q.head && (expired || resent_before && runs && self.is_overlooked(q));
            return match (expired, resent_before) {
                (true, _) => Reason::Rto,
                (false, true) => Reason::LostRetransmission,
                (false, false) => Reason::Recovery,
            };
        }
        if !q.head {
            return if resent_before {
                Reason::LostRetransmission
            } else {
                Reason::Recovery
            };
        }
        if resent_before {
            // without SACK nothing but the timer repeats a resend, and that is above the round trip (RFC 6298, 2.3); it may
            // have run since the first partial ACK (RFC 6582, 4: the impatient variant) and then end just after a duplicate
            // ACK, or before the resend can have been answered
            let partial_ns = self.episodes.partial_ns;
            let ran_s = (q.time_ns - partial_ns) as f64 / 1e9;
            let full = ran_s >= self.full_timer_s() || self.is_unheard(q) && ran_s >= self.least_run_s();
            let since_partial = self.vantage == Vantage::Sender && (!q.clocked || partial_ns > 0 && full);
            // behind a queue the timer's comes as close as it was sent after the resend before it
            let queued = self.is_far() && q.last.seen();
            return if timer || since_partial || queued || q.timer_s >= RECOVERY_SILENCE_S.min(self.rtt.srtt_s / 2.0) {
                Reason::Rto
            } else {
                Reason::LostRetransmission
            };
        }
        if self.episodes.continued_ns == q.time_ns {
            return Reason::PartialAck;
        }
        // away from the sender a queue may have taken as long since the ACK, but no timer runs out sooner
        let least_s = if self.is_far() {
            SHORTEST_TIMER_S
        } else {
            RECOVERY_SILENCE_S
        };
        if q.since_ack_s >= least_s.max(self.rtt.srtt_s / 2.0) {
            return Reason::Rto;
        }
        // duplicate ACKs that came behind the partial one have not reached the sender where the capture is a little away from it
        let heard_s = q.since_ack_s.max(0.0).max(self.near_s);
        let answered = q.since_advance_s <= heard_s + 1e-9;
        let goes_by_partial = self.is_far() && self.episodes.by_partial >= GOES_BY_PARTIAL && !timer;
        if self.duplicate_acks >= DUPTHRESH && !answered && !goes_by_partial && !self.has_gone_on_afar() {
            // Reno leaves recovery at a partial ACK and needs three duplicate ACKs again
            return if timer { Reason::Rto } else { Reason::FastDupthresh };
        }
        if !answered && full_timer {
            // the partial ACK came long ago, and duplicate ACKs since: too few to let anything go
            return Reason::Rto;
        }
        Reason::PartialAck
    }

    fn label_loss(&self, q: &Question, timer: bool, full_timer: bool) -> Reason {
        let since_expiry = q.copies > 1 && q.last.order >= self.episodes.order;
        // hosts that do not remember `recover` (RFC 6582, 3.2) take duplicate ACKs of their copies for those of a loss
        let third = self.vantage == Vantage::Sender && !self.sack && self.duplicate_acks == DUPTHRESH;
        if q.head && since_expiry && third && self.is_prompt(q.since_ack_s) {
            return Reason::FastDupthresh;
        }
        match (since_expiry, q.head) {
            // an ACK would have let it go at once; the timer ran out again
            (false, true) if full_timer && !q.clocked => Reason::Rto,
            (false, _) => Reason::RtoRecovery,
            (true, false) => Reason::LostRetransmission,
            (true, true) if !timer && (self.sack || q.timer_s < RECOVERY_SILENCE_S) => Reason::LostRetransmission,
            (true, true) => Reason::Rto,
        }
    }
}
