//! From what passed the capture point to what the sender sent: sending order, holes, copies.
//!
//! At a receiver, or anywhere behind a loss, three things have to be put right before the sender can be followed:
//! transmissions that never came by are put where they were sent, segments that came late are given the place at which
//! they were sent, and copies made by the path are taken out. The evidence, best first: the IP identification where it is
//! a counter of the connection, the TCP timestamp (a segment with an older TSval than the newest data was sent before
//! it), and time (an answer to a duplicate ACK needs a round trip).

use crate::events::cause::SHORTEST_TIMER_S;
use crate::events::reordering::Late;
use crate::flow::ip_id::{IpId, Place};
use crate::flow::scoreboard::segments;
use crate::flow::sender::{Sender, Sent};
use crate::flow::sequence::before;
use crate::rows::{Reason, Sink, Vantage};
use crate::segment::Segment;
use std::collections::VecDeque;

mod copies;

pub use copies::{CAPTURE_COPY_NS, COPY_NS};

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
/// Copies from which that most data came twice is no chance.
const COPIES: u64 = 20;

/// A transmission that was made and has not come by.
#[derive(Clone, Copy, Debug)]
pub struct Missing {
    /// Its IP identification (unwrapped), where known.
    pub index: Option<i64>,
    pub order: u64,
    pub left: u64,
    /// It carried data that had been sent before.
    pub again: bool,
    /// When its absence showed, the frame that showed it, and arrivals until then.
    pub time_ns: i64,
    /// When the hole that it belongs to was sent, as far as was guessed.
    pub hole_ns: i64,
    pub frame: u64,
    pub arrivals: u64,
}

/// A silence before a segment.
#[derive(Clone, Copy, Debug)]
struct Silence {
    start_ns: i64,
    /// When the timer was last started.
    timer_ns: i64,
    /// Long enough for the retransmission timer.
    timer: bool,
    /// Expiries before the one that sent the segment.
    lost_expiries: usize,
}

/// A data segment as it passed the capture point.
#[derive(Clone, Copy, Debug)]
pub struct Passing {
    pub left: u64,
    pub right: u64,
    pub time_ns: i64,
    pub frame: u64,
    pub tsval: Option<u32>,
    pub ip_id: Option<u16>,
    pub checksum: u16,
    pub ttl: u8,
}

impl Passing {
    /// The segment whose data begin at `left`.
    #[inline(always)]
    pub fn new(left: u64, segment: &Segment) -> Self {
        Self {
            left,
            right: left + u64::from(segment.payload),
            time_ns: segment.time_ns,
            frame: segment.frame,
            tsval: segment.options.timestamps.map(|(tsval, _)| tsval),
            ip_id: segment.ip_id,
            checksum: segment.checksum,
            ttl: segment.ttl,
        }
    }
}

#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Arrivals {
    /// The receiver has sent data since the sender's last packet: a skipped identification can be an acknowledgement.
    pub two_way: bool,
    /// Boxed, because most flows miss nothing, and send nothing again.
    uncommon: Option<Box<Uncommon>>,
    pub segments: u64,
    /// Packets that passed, copies included.
    packets: u64,
    pub bytes: u64,
    /// Newest data by sending order.
    newest_tsval: Option<u32>,
    /// Last segment that passed, to know a copy.
    last: Option<Passing>,
    id: IpId,
    /// Of the bytes, what had passed before.
    repeated_bytes: u64,
}

/// Transmissions that did not come by, came once more, or were sent again.
#[derive(Clone, Debug, Default)]
struct Uncommon {
    missing: VecDeque<Missing>,
    /// Identifications skipped and not yet explained by data.
    skipped: VecDeque<i64>,
    /// Transmissions that are thought to have been made and did not pass.
    guessed: u64,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub resent_segments: u64,
    pub resent_bytes: u64,
    pub copies: u64,
    /// Of the copies, those made by the network.
    pub network_copies: u64,
    /// Identifications skipped for which no data were found.
    pub unplaced: u64,
}

impl Arrivals {
    /// `counts` says that the host's identifications are known to count a connection's packets.
    pub fn new(counts: bool) -> Self {
        Self {
            id: if counts { IpId::trusted() } else { IpId::default() },
            ..Self::default()
        }
    }

    /// The identification shows that the packet was sent after everything seen so far.
    pub fn is_newest(&self, ip_id: Option<u16>) -> bool {
        ip_id.is_some_and(|id| self.id.is_newest(id))
    }

    /// It shows that something seen was sent after it.
    pub fn is_older(&self, ip_id: Option<u16>) -> bool {
        ip_id.is_some_and(|id| self.id.ordered() && !self.id.is_newest(id))
    }

    /// Segments that arrived so far, copies left out (RFC 5236 gives duplicates no place in the sequence).
    fn arrived(&self) -> u64 {
        self.segments - self.counts().network_copies
    }

    pub fn counts(&self) -> Counts {
        self.uncommon
            .as_ref()
            .map_or_else(Counts::default, |uncommon| uncommon.counts)
    }

    pub fn unique_bytes(&self) -> u64 {
        self.bytes - self.repeated_bytes
    }

    /// Segments and copies so far.
    pub fn counted(&self) -> (u64, u64) {
        (self.segments, self.counts().copies)
    }

    /// Most of the data came twice, a copy for every two packets.
    pub fn are_doubled(&self) -> bool {
        let copies = self.counts().network_copies;
        copies >= COPIES && copies * 3 >= self.segments
    }

    pub fn is_counter(&self) -> bool {
        self.id.dense()
    }

    fn uncommon(&mut self) -> &mut Uncommon {
        self.uncommon.get_or_insert_default()
    }

    /// Identifications skipped and not yet explained by data.
    #[inline]
    fn skipped(&self) -> usize {
        self.uncommon.as_ref().map_or(0, |uncommon| uncommon.skipped.len())
    }

    fn forget_skipped(&mut self) {
        if let Some(uncommon) = &mut self.uncommon {
            uncommon.skipped.clear();
        }
    }

    /// The number of the next transmission that is missing, if one is.
    fn next_skipped(&mut self) -> Option<i64> {
        self.uncommon.as_mut()?.skipped.pop_front()
    }

    /// The counter serves other connections too, or all that was sent comes by: skipped numbers mean nothing.
    pub fn share_counter(&mut self) {
        self.id.ignore_gaps();
        self.forget_skipped();
    }

    /// A packet of the sender without data: it takes an identification too.
    pub fn on_other(&mut self, ip_id: Option<u16>) {
        if let Some(Place::Newest { index, missing }) = ip_id.map(|id| self.id.observe(id, 1)) {
            self.skip(index, missing);
        }
    }

    /// The same, whose sequence number `left` is the next that the sender will send (RFC 9293, 3.10.7.4).
    pub fn on_acknowledgement(&mut self, left: u64, ip_id: Option<u16>, sender: &mut Sender) {
        let newest = self.is_newest(ip_id);
        self.on_other(ip_id);
        if newest && left == sender.nxt && sender.una == sender.nxt {
            // nothing new was sent since, and all before has arrived: what was skipped were packets without data
            self.forget_skipped();
        }
        if newest && left < sender.nxt && left >= sender.una {
            sender.retract(left);
            if let Some(uncommon) = &mut self.uncommon {
                uncommon.missing.retain(|m| m.left < sender.nxt);
            }
        }
    }

    /// The sender's FIN, at `left`: data below it that have not come by are missing.
    pub fn on_fin(&mut self, passing: Passing, sender: &mut Sender, sink: &mut dyn Sink) {
        if passing.left > sender.nxt {
            self.fill_gap(&passing, sender, sink);
        }
    }

    #[inline]
    fn skip(&mut self, index: i64, missing: u32) {
        if missing > 0 && self.believes(missing) {
            let skipped = &mut self.uncommon().skipped;
            skipped.extend(index - i64::from(missing)..index);
            while skipped.len() > REMEMBERED {
                skipped.pop_front();
            }
        }
    }

    /// Data that begin where the sender's end, while its board is not full.
    #[inline(always)]
    pub fn on_next_data(&mut self, left: u64, segment: &Segment, sender: &mut Sender, sink: &mut dyn Sink) {
        self.packets += 1;
        let count = segments(u64::from(segment.payload), sender.smss);
        // what most are: no copy, and no identification is missing before it
        let place = match segment.ip_id {
            Some(id) if !self.id.take_next(id, count) => Some(self.id.observe_any(id, count)),
            _ => None,
        };
        let newest = matches!(place, None | Some(Place::Unknown | Place::Newest { missing: 0, .. }));
        let passing = Passing::new(left, segment);
        if newest && self.skipped() == 0 && self.last.is_none_or(|last| last.left != left) {
            self.last = Some(passing);
            self.segments += u64::from(count);
            self.bytes += u64::from(segment.payload);
            if let Some(tsval) = passing.tsval {
                self.newest_tsval = Some(tsval);
            }
            sender.send_next(&Self::sent(&passing), count);
        } else {
            let taken = segment.ip_id.map_or(Place::Unknown, |_| self.id.newest());
            self.on_other_data(passing, count, place.unwrap_or(taken), sender, sink);
        }
    }

    /// Data of any kind.
    #[inline(never)]
    pub fn on_data(&mut self, left: u64, segment: &Segment, sender: &mut Sender, sink: &mut dyn Sink) {
        if left == sender.nxt && !sender.one_way && !sender.board.is_full() {
            self.on_next_data(left, segment, sender, sink);
            return;
        }
        self.packets += 1;
        let count = segments(u64::from(segment.payload), sender.smss);
        let place = segment.ip_id.map_or(Place::Unknown, |id| self.id.observe(id, count));
        self.on_other_data(Passing::new(left, segment), count, place, sender, sink);
    }

    /// The segment comes by value: one whose address is asked for is written to memory, and most are only looked at.
    #[inline(never)]
    fn on_other_data(
        &mut self,
        passing: Passing,
        count: u32,
        mut place: Place,
        sender: &mut Sender,
        sink: &mut dyn Sink,
    ) {
        let passing = &passing;
        if place == Place::Copy && !self.is_copy_by_id(passing, sender) {
            place = Place::Unknown; // a number that came again: a resend with its original's, or other data
        }
        if place == Place::Copy || self.is_copy(passing, sender) {
            self.uncommon().counts.copies += u64::from(count);
            if !self.is_capture_copy(passing, sender) {
                // the network's copy passed the capture point like any other packet
                self.segments += u64::from(count);
                self.uncommon().counts.network_copies += u64::from(count);
                self.bytes += passing.right - passing.left;
                self.repeated_bytes += passing.right - passing.left;
            }
            self.copy_event(passing, count, sender, sink);
            return;
        }
        self.last = Some(*passing);
        self.segments += u64::from(count);
        self.bytes += passing.right - passing.left;
        if passing.left < sender.nxt {
            self.repeated_bytes += passing.right - passing.left - sender.unseen_bytes(passing.left, passing.right);
        }
        if let Place::Newest { index, missing } = place {
            self.skip(index, missing);
        }
        if let Place::Late { index } = place {
            if self.late_by_id(index, passing, count, sender, sink) {
                return;
            }
        }
        if passing.left != sender.nxt || self.skipped() > 0 {
            if passing.left >= sender.nxt {
                self.fill_gap(passing, sender, sink);
            } else {
                self.lost_below(passing, sender, sink);
            }
        }
        if passing.left >= sender.nxt {
            self.send_new(passing, sender, sink);
        } else {
            self.below(*passing, place, sender, sink);
        }
    }

    #[inline]
    pub fn sent(passing: &Passing) -> Sent {
        Sent {
            left: passing.left,
            right: passing.right,
            time_ns: passing.time_ns,
            frame: passing.frame,
            tsval: passing.tsval.unwrap_or(0),
            ip_id: passing.ip_id.unwrap_or(0),
            doubtful: false,
        }
    }

    #[inline(never)]
    fn send_new(&mut self, passing: &Passing, sender: &mut Sender, sink: &mut dyn Sink) {
        self.newest_tsval = passing.tsval.or(self.newest_tsval);
        if sender.one_way {
            sender.send_new_one_way(&Self::sent(passing), sink);
        } else {
            sender.send_new(&Self::sent(passing));
        }
    }

    /// Puts the transmissions that are missing before `passing` into their place: lost resends, the new data of the hole
    /// up to it, and after a silence the tail that the timer or a probe sends again.
    fn fill_gap(&mut self, passing: &Passing, sender: &mut Sender, sink: &mut dyn Sink) {
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
        self.take_back(new, sender);
        let spare = self.skipped().saturating_sub(new as usize);
        let silence = self.silence(passing, sender);
        let enough = |s: &Silence| spare > s.lost_expiries;
        let tail = spare > 0 && !self.two_way && (new == 0 || sender.sack) && silence.as_ref().is_some_and(enough);
        if !tail && new > 0 && !self.two_way && sender.likely_resend(passing.left).is_none() {
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
            self.lost_resends(spare, passing, sender, sink);
        }
        let sent_ns = if tail { sender.last_sent_ns } else { passing.time_ns };
        self.missing_data(new, passing.left, sent_ns, passing, sender);
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
    /// that and after the newest data seen was new data then, not resends that were lost.
    fn take_back(&mut self, new: u32, sender: &mut Sender) {
        let (Some(uncommon), Some(newest)) = (&mut self.uncommon, sender.newest_order()) else {
            return;
        };
        let mut n = uncommon.missing.len();
        while n > 0 && uncommon.skipped.len() < new as usize && uncommon.missing[n - 1].order > newest {
            n -= 1;
            let Missing {
                index,
                order,
                left,
                again,
                ..
            } = uncommon.missing[n];
            if let (Some(index), true) = (index, again) {
                uncommon.missing.remove(n);
                uncommon.skipped.push_front(index);
                sender.forget(order, left);
            }
        }
        let lacking = u64::from(new).saturating_sub(uncommon.skipped.len() as u64);
        uncommon.counts.unplaced = uncommon.counts.unplaced.saturating_sub(lacking);
    }

    /// A resend passes and identifications are missing before it: earlier expiries of the timer, the tail that was lost
    /// before the timer ran out, or resends of the same recovery.
    fn lost_below(&mut self, passing: &Passing, sender: &mut Sender, sink: &mut dyn Sink) {
        let spare = self.skipped();
        if spare == 0 {
            return;
        }
        let Some(silence) = self.silence(passing, sender).filter(|s| !self.two_way && s.timer) else {
            if self.two_way || !sender.opens_recovery(passing.left) {
                let due = sender.passed_over(passing.left);
                self.id.explain(due, due);
                self.lost_resends(spare, passing, sender, sink);
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
        let expiries = silence.lost_expiries.min(spare);
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
        for k in 1..=count {
            let time_ns = silence.timer_ns + (first_ns * (2f64.powi(k as i32) - 1.0)) as i64;
            let index = self.next_skipped();
            self.remember(index, left, time_ns, passing, sender);
            sender.send_again(&Sent::unseen(left, right, time_ns), sink);
        }
    }

    /// Whether nothing happened for so long before `passing` that a probe or the timer must have sent it.
    fn silence(&self, passing: &Passing, sender: &Sender) -> Option<Silence> {
        let start_ns = sender.last_sent_ns.max(sender.last_advance_ns);
        let (length_s, srtt_s) = ((passing.time_ns - start_ns) as f64 / 1e9, sender.rtt.srtt_s);
        if sender.order == 0 || srtt_s == 0.0 {
            return None;
        }
        let timer = length_s >= SHORTEST_TIMER_S.max(TIMER_ROUND_TRIPS * srtt_s);
        let probe = sender.sack && length_s >= PROBE_ROUND_TRIPS * srtt_s;
        (timer || probe).then(|| {
            let timer_ns = sender.timer_start_ns();
            let timer_s = (passing.time_ns - timer_ns) as f64 / 1e9;
            Silence {
                start_ns,
                timer_ns,
                timer,
                lost_expiries: sender.episodes.expiries(timer_s, sender.rtt.rto_s()).saturating_sub(1),
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

    fn remember(&mut self, index: Option<i64>, left: u64, hole_ns: i64, passing: &Passing, sender: &Sender) {
        let missing = Missing {
            index,
            order: sender.order,
            left,
            again: left < sender.nxt,
            time_ns: passing.time_ns,
            hole_ns,
            frame: passing.frame,
            arrivals: self.arrived(),
        };
        let uncommon = self.uncommon();
        uncommon.guessed += 1;
        if uncommon.missing.len() >= REMEMBERED {
            uncommon.missing.pop_front();
        }
        uncommon.missing.push_back(missing);
    }

    /// `count` skipped identifications that no new data explain: resends that were lost again.
    fn lost_resends(&mut self, count: usize, passing: &Passing, sender: &mut Sender, sink: &mut dyn Sink) {
        for _ in 0..count {
            let time_ns = sender.fast_retransmit_ns(passing.time_ns);
            self.lost_resend(passing.left, time_ns, passing, sender, sink);
        }
    }

    /// A resend of data below `below`, sent at `time_ns`, that never passed.
    fn lost_resend(&mut self, below: u64, time_ns: i64, passing: &Passing, sender: &mut Sender, sink: &mut dyn Sink) {
        let index = self.next_skipped();
        let Some((left, right)) = sender.likely_resend(below) else {
            // nothing is missing that could have been sent again: a packet without data, or data not yet known to be missing
            self.uncommon().counts.unplaced += u64::from(!self.two_way);
            return;
        };
        self.remember(index, left, time_ns, passing, sender);
        sender.send_again(&Sent::unseen(left, right, time_ns), sink);
    }

    /// Identification older than the newest one: the segment was overtaken on the path.
    fn late_by_id(
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
        if !right_place {
            // the guess which data it carried was wrong: take it back, and put it where it belongs
            sender.forget(missing.order, missing.left);
        }
        self.late(&missing, passing, count, Reason::IpId, confidence, sender, sink);
        sender.fill(&missing, Self::sent(passing))
            || right_place && sender.arrived(missing.order, missing.left, passing.frame)
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
    fn below(&mut self, passing: Passing, place: Place, sender: &mut Sender, sink: &mut dyn Sink) {
        let count = segments(passing.right - passing.left, sender.smss);
        let hole_ns = sender.hole_ns(passing.left);
        let guessed = |m: &Missing| m.left == passing.left || hole_ns == Some(m.hole_ns);
        let mut missing = self.uncommon.iter().flat_map(|uncommon| &uncommon.missing).enumerate();
        let found = missing.find(|(_, m)| m.index.is_none() && guessed(m));
        let mut doubtful = false;
        if let (Some((n, &missing)), Place::Unknown | Place::Late { .. }) = (found, place) {
            let late = match place {
                // the hole was older than the counter's credit
                Place::Late { .. } => Some((Reason::IpId, 0.95)),
                _ => match self.came_late(&missing, &passing, sender) {
                    Verdict::Late(reason, confidence) => Some((reason, confidence)),
                    Verdict::Again => None,
                    Verdict::Unclear => {
                        doubtful = true;
                        let known = sender.rtt.min_s.is_finite();
                        (known && sender.nothing_asked_for(&Self::sent(&passing))).then_some((Reason::Unasked, 0.6))
                    }
                },
            };
            if let Some((reason, confidence)) = late {
                self.late(&missing, &passing, count, reason, confidence, sender, sink);
                let filled = sender.fill(&missing, Self::sent(&passing));
                let right_place = missing.left == passing.left;
                if !filled || !sender.hole_is_open(passing.left, missing.hole_ns) {
                    self.uncommon().missing.remove(n);
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
        sender.send_again(&again, sink);
        if seen_before || sender.vantage == Vantage::Sender {
            self.uncommon().counts.resent_segments += u64::from(segments(split - passing.left, sender.smss));
            self.uncommon().counts.resent_bytes += split - passing.left;
        }
        if passing.right > split {
            self.send_new(&Passing { left: split, ..passing }, sender, sink);
        }
    }

    /// Without identification: was the segment that fills a hole sent before the data above it?
    fn came_late(&self, missing: &Missing, passing: &Passing, sender: &Sender) -> Verdict {
        if let (Some(now), Some(newest)) = (passing.tsval, self.newest_tsval) {
            if before(now, newest) {
                return Verdict::Late(Reason::Tsval, 0.95);
            }
            if before(newest, now) {
                return Verdict::Again;
            }
        }
        let age_s = (passing.time_ns - missing.time_ns) as f64 / 1e9;
        let rtt_s = if sender.rtt.min_s.is_finite() {
            sender.rtt.min_s
        } else {
            sender.rtt.srtt_s
        };
        if age_s < 0.9 * rtt_s {
            Verdict::Late(Reason::Timing, 0.8)
        } else {
            Verdict::Unclear
        }
    }
}

/// Whether a segment that fills a hole came late or was sent again.
enum Verdict {
    Late(Reason, f64),
    Again,
    Unclear,
}
