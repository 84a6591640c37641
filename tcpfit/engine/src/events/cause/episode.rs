//! An episode of loss recovery: where it begins, and what ends it or takes it back.

use super::{frame, RESENDS, SHORTEST_TIMER_S};
use crate::flow::ack_delay::Passage;
use crate::flow::rare::Blank;
use crate::flow::scoreboard::{segments, Unit};
use crate::flow::sender::{Ack, Sender, LOOKED_AT};
use crate::flow::sequence::{before, offset};
use crate::rows::{EventRow, Kind, Phase, Reason, Sink, Vantage};

/// Resends that show a host to go on with recoveries whose originals had come, where the path may have brought these
/// together with the ACKs; at the sender one shows it.
const GONE_ON_AWAY: u32 = 3;

/// Tails that show a host to send no probes, where a probe may be lost before it is seen.
pub const WAITED_OUT: u8 = 2;

/// What a sender's recoveries and timers have been, and the one that is under way.
#[derive(Clone, Debug)]
pub struct Episodes {
    /// RFC 6582's recover: highest byte sent when the episode began.
    pub recover: u64,
    /// The recovery or timeout under way, given out when it ends.
    pub(super) opened: Option<Box<EventRow>>,
    /// Transmission order when the episode began.
    pub(super) order: u64,
    /// When the last one ended.
    pub(super) ended_ns: i64,
    /// Timestamp of the resend that began it (RFC 3522, 3.2: RetransmitTS); 0 where there is none.
    pub(super) tsval: u32,
    /// Left edge when it began, and segments sent again since then of which no DSACK has said that they came twice.
    pub(super) begun_una: u64,
    pub(super) unreported: u32,
    /// Left edge at the last expiry, and how many expiries it has seen.
    pub(super) timer_una: u64,
    pub(super) backoff: u32,
    /// Left edge when the last tail loss probe was sent.
    pub(super) probe_una: u64,
    /// When that was.
    pub probe_ns: i64,
    /// How long its timer had run, if it may have been the retransmission timer; else 0.
    pub(super) probe_s: f64,
    /// One was sent for certain; what shows that none are, `WAITED_OUT` in all.
    pub probed: bool,
    pub waited_out: u8,
    /// A recovery was taken back: the host takes late segments for possible.
    pub(super) taken_back: bool,
    /// When the last such ACK came in the middle of a recovery, without SACK.
    pub(super) undone_ns: i64,
    /// Resends that followed upon such ACKs all the same.
    pub(super) gone_on: u32,
    /// Recoveries that RACK has begun, as fewer SACKed segments than `DUPTHRESH` had asked for them.
    pub(super) begun_by_rack: u32,
    /// Doublings of the timer (RFC 6298, 5.5), that last until data sent once are acknowledged (5, the note on 5.5; Karn).
    pub doublings: u32,
    /// Smoothed length of the timers seen from start to end, undoubled, the host's own floor included; 0 while none was.
    pub(super) timer_s: f64,
    /// What runs shorter is no timer of this host.
    pub(super) least_timer_s: f64,
    /// When the first partial ACK of the recovery under way came; 0 before it.
    pub(super) partial_ns: i64,
    /// How the segment that passes now came, as far as a path stood still.
    pub(super) passage: Passage,
    /// Duplicate ACKs that had asked for the last fast retransmit that was seen; 0 before one was.
    pub asked_by: u32,
    /// A timer has ended a silence since then in which a fast retransmit must have been lost, if the host made one.
    pub(super) unseen: bool,
    /// When a resend passed that duplicate ACKs had asked for, as no silence came before it.
    pub answered_ns: i64,
    /// When one passed that is known to go on with the recovery upon a partial ACK.
    pub continued_ns: i64,
    /// Recoveries' resends that nothing but a partial ACK can have asked for (RFC 6582, 3.2).
    pub(super) by_partial: u32,
    pub recoveries: u64,
    pub timeouts: u64,
    pub probes: u64,
}

impl Blank for Episodes {
    const BLANK: &'static Self = &Self {
        recover: 0,
        opened: None,
        order: 0,
        ended_ns: i64::MIN,
        tsval: 0,
        begun_una: 0,
        unreported: 0,
        timer_una: u64::MAX,
        backoff: 0,
        probe_una: u64::MAX,
        probe_ns: i64::MIN / 2,
        probe_s: 0.0,
        probed: false,
        waited_out: 0,
        taken_back: false,
        undone_ns: 0,
        gone_on: 0,
        begun_by_rack: 0,
        doublings: 0,
        timer_s: 0.0,
        least_timer_s: SHORTEST_TIMER_S,
        partial_ns: 0,
        passage: Passage::NONE,
        asked_by: 0,
        unseen: false,
        answered_ns: i64::MIN,
        continued_ns: i64::MIN,
        by_partial: 0,
        recoveries: 0,
        timeouts: 0,
        probes: 0,
    };

    fn new(_flow: u32) -> Self {
        Self::BLANK.clone()
    }
}

impl Episodes {
    /// A lost tail has waited for the timer when a probe was due. Away from the sender that may have been lost.
    pub(super) fn on_waited_out(&mut self, vantage: Vantage) {
        let shown = if vantage == Vantage::Sender { WAITED_OUT } else { 1 };
        self.waited_out = self.waited_out.saturating_add(shown);
    }
}

impl Sender {
    /// The unit was sent again since the episode began.
    pub fn has_resent(&self, unit: &Unit) -> bool {
        unit.is_resent() && self.board.last(unit).order >= self.episodes.order
    }

    /// `tsval` is the timestamp of the resend that begins it.
    pub(super) fn open_episode(&mut self, phase: Phase, tsval: u32, row: EventRow) {
        self.phase = phase;
        self.episodes.begun_una = self.una;
        // a timer takes what was sent again before for lost as well
        let looks = self.sack && phase == Phase::Recovery;
        let under_way = self.board.missing_resends(self.una, if looks { RESENDS } else { 0 });
        self.episodes.unreported = under_way.map(|unit| unit.segments(self.smss)).sum();
        self.episodes.recover = self.nxt;
        self.episodes.order = self.order;
        self.episodes.tsval = tsval;
        self.episodes.partial_ns = 0;
        self.episodes.opened = Some(Box::new(row));
    }

    /// The left edge has moved: a full ACK ends the episode (RFC 6582, 3.2; RFC 6675, 5).
    pub fn on_advance(&mut self, time_ns: i64, sink: &mut dyn Sink) {
        if !self.sack {
            self.keep_reno(self.una);
        }
        if self.phase == Phase::Recovery && self.episodes.partial_ns == 0 {
            self.episodes.partial_ns = time_ns;
        }
        if self.phase != Phase::Open && self.una >= self.episodes.recover {
            let again = self.phase == Phase::Recovery && self.sack;
            let hole = again.then(|| self.board.first_missing(LOOKED_AT)).flatten();
            self.close_episode(time_ns, false, sink);
            if let Some(hole) = hole {
                self.recover_again(time_ns, hole);
            }
        }
    }

    /// The transmission that began the recovery under way, with SACK.
    pub fn began_recovery(&self) -> Option<u64> {
        (self.sack && self.phase == Phase::Recovery).then(|| self.episodes.order)
    }

    /// All that is outstanding had been sent when the recovery began.
    pub fn extend_recovery(&mut self) {
        self.episodes.recover = self.nxt;
    }

    /// Data sent during a recovery were lost and sent again, and are still missing at its end: the loss that they show
    /// begins another (RFC 6675, 5).
    fn recover_again(&mut self, time_ns: i64, hole: u64) {
        let copies = self.board.copies(hole);
        let (earlier, last) = copies.fold((0, 0), |(_, earlier), copy| (earlier, copy.frame));
        let (order, tsval) = (self.episodes.order, self.episodes.tsval);
        let row = EventRow {
            flow: self.flow,
            time_ns,
            kind: Kind::Recovery,
            reason: Reason::Recovery,
            left: offset(hole),
            frame: frame(last).into(),
            cause_frame: frame(earlier).into(),
            flight: self.flight(),
            phase: Phase::Recovery,
            confidence: 0.8,
            ..EventRow::NONE
        };
        self.open_episode(Phase::Recovery, tsval, row);
        // what is missing was sent again before, and is this recovery's
        self.episodes.order = order;
        self.episodes.recoveries += 1;
    }

    /// The ACK shows that the original had arrived: a sender that looks takes its reduction back, if the echo is older than the
    /// first resend of the episode (RFC 3522, 3.2). What was sent with that, before it or behind it, may bear the same tick.
    pub fn on_eifel(&mut self, ack: &Ack, sink: &mut dyn Sink) {
        let recovery = self.phase == Phase::Recovery;
        let partial = recovery && !self.sack && ack.ack < self.episodes.recover;
        let shown = match self.vantage {
            Vantage::Sender => 1,
            _ => GONE_ON_AWAY,
        };
        let first = self.episodes.tsval;
        let older = first == 0 || ack.tsecr.is_none_or(|echo| before(echo, first));
        if self.phase == Phase::Open || !older || partial && self.episodes.gone_on >= shown {
            return;
        }
        // Linux waits for what else was sent again in the recovery
        let waits = recovery && self.sack && ack.ack < self.episodes.recover;
        if waits && self.board.missing_resends(ack.ack, RESENDS).next().is_some() {
            return;
        }
        if partial {
            self.episodes.undone_ns = ack.time_ns;
        }
        self.episodes.taken_back |= recovery;
        if !self.sack {
            self.keep_reno(ack.ack);
        }
        self.close_episode(ack.time_ns, false, sink);
    }

    /// The receiver reports that [left, right) came twice (RFC 2883, 4). Where nothing is left that was sent again since the
    /// episode began, none of it was needed (RFC 3708, 3.3): the host takes its reduction back, as Linux does.
    pub fn on_reported(&mut self, left: u64, right: u64, time_ns: i64, sink: &mut dyn Sink) {
        if self.phase == Phase::Open || right <= self.episodes.begun_una || self.episodes.unreported == 0 {
            return;
        }
        let episodes = &mut self.episodes;
        episodes.unreported = episodes.unreported.saturating_sub(segments(right - left, self.smss));
        if episodes.unreported == 0 {
            episodes.taken_back |= self.phase == Phase::Recovery;
            self.close_episode(time_ns, false, sink);
        }
    }

    /// Ends the episode under way and gives it out; `broken` says that a timeout ended it.
    pub fn close_episode(&mut self, time_ns: i64, broken: bool, sink: &mut dyn Sink) {
        self.phase = Phase::Open;
        let Some(mut row) = self.episodes.changed().and_then(|episodes| episodes.opened.take()) else {
            return;
        };
        let end_ns = time_ns.max(row.time_ns);
        self.episodes.ended_ns = end_ns;
        row.end_ns = end_ns.into();
        row.flight_after = self.flight().into();
        if row.kind == Kind::Recovery {
            row.right = offset(self.episodes.recover);
            row.value = ((end_ns - row.time_ns) as f64 / 1e9).into();
            row.timeout_follows = Some(broken);
        }
        sink.event(*row);
    }
}
