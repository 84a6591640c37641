//! One direction of a connection that carries data: its segments, the ACKs of them, probes, FIN and the window.

use crate::events::cause::{DUPTHRESH, SHORTEST_TIMER_S};
use crate::events::marks;
use crate::flow::ack_delay::{AckDelay, Answer, Asked};
use crate::flow::arrivals::{Arrivals, Passing, Writes};
use crate::flow::drift::{By, Newest};
use crate::flow::rare::Rare;
use crate::flow::scoreboard::segments;
use crate::flow::sender::{Ack, Sender};
use crate::flow::sequence::{offset, Unwrap};
use crate::flow::vantage::tells_host;
use crate::flow::window_scale::WindowScale;
use crate::flow::zero_windows::ZeroWindows;
use crate::rows::{EventRow, Kind, Phase, Reason, Sink, Vantage};
use crate::segment::{flags, Segment, V4_MAPPED};

/// Ethernet's largest payload with and without timestamps, and with IPv6: what super-segments, and what ACKs cover, are
/// multiples of.
pub const COMMON_SMSS: [u32; 6] = [1448, 1460, 1428, 1440, 1388, 1400];
/// RFC 9293, 3.7.1: default MSS for IPv4.
const DEFAULT_SMSS: u32 = 536;
/// MTU of Ethernet, and that of its jumbo frames.
const ETHERNET: u32 = 1500;
const JUMBO: u32 = 9000;
/// A FIN that comes again sooner is a copy by the path or the capture, not one that the sender sent again.
const FIN_COPY_NS: i64 = 10_000_000;

/// The data of one direction. With more flows than a cache holds, each line of it that a segment touches is waited for; so
/// here and in its parts, fields are in the order in which they are needed together: `Sender` has first what ACKs need, last
/// what data need too, `Arrivals` what data need.
#[repr(C)]
pub struct Flow {
    pub sender: Sender,
    pub last_ns: i64,
    /// What is known of the receiver's window scale, where the SYNs do not say it.
    pub scale: Option<Box<WindowScale>>,
    pub windows: Rare<ZeroWindows>,
    pub acks_seen: bool,
    /// Of new data there is more to see than that they were sent: the first, early ACKs, or what the window holds.
    pub watched: bool,
    pub smss_known: bool,
    pub offload: bool,
    pub timestamps: bool,
    /// Away from the sender.
    writes: Writes,
    /// SACK blocks were cut off, and SACK is taken for none since.
    pub sack_cut: bool,
    pub arrivals: Arrivals,
    /// At the sender an ACK is there as it passes.
    pub acks: Rare<AckDelay>,
    pub first_ns: i64,
    /// Highest ACK whose flags could echo a mark, where the capture is not at the sender.
    pub newest_ack: u64,
    /// The last FIN without data.
    pub fin: Option<Passing>,
    /// It has been acknowledged.
    fin_taken: bool,
    pub early: Option<Box<EarlyAcks>>,
    /// The last probe of a byte.
    pub probed: Option<Box<Passing>>,
}

/// ACKs that passed before the data they acknowledge: the directions have different clocks, or one is out of order.
#[derive(Clone, Copy, Default)]
pub struct EarlyAcks {
    /// Highest of them and its time.
    pub at: u64,
    pub time_ns: i64,
    /// Data that came after their ACK, and how long after at most.
    pub segments: u64,
    pub longest_ns: i64,
}

impl EarlyAcks {
    pub fn on_ack(&mut self, at: u64, time_ns: i64) {
        if at > self.at {
            (self.at, self.time_ns) = (at, time_ns);
        }
    }

    pub fn on_new_data(&mut self, right: u64, time_ns: i64) {
        if right <= self.at {
            self.segments += 1;
            self.longest_ns = self.longest_ns.max(time_ns - self.time_ns);
        }
    }
}

/// SMSS guessed from the length of a segment, for connections whose SYNs are not in the capture. What a frame of Ethernet
/// holds is taken as it is, and so is what stays within a host. More is a super-segment of the network card: a multiple of
/// the SMSS if it is full, and else its length says nothing.
pub fn smss_of(segment: &Segment) -> u32 {
    let payload = segment.payload;
    let full = |&m: &u32| payload > m && payload.is_multiple_of(m);
    if let Some(multiple) = COMMON_SMSS.into_iter().find(full) {
        return multiple;
    }
    let (v6, stamped) = (
        !segment.src.starts_with(&V4_MAPPED),
        segment.options.timestamps.is_some(),
    );
    let headers = if v6 { 60 } else { 40 } + if stamped { 12 } else { 0 };
    if payload + headers <= ETHERNET || payload + headers == JUMBO || segment.src == segment.dst {
        payload.max(DEFAULT_SMSS)
    } else {
        ETHERNET - headers
    }
}

impl Flow {
    /// Of a sender whose data begin at `start`, in segments of `smss` bytes.
    #[inline]
    pub fn new(number: u32, start: u64, smss: u32, vantage: Vantage) -> Self {
        Self {
            sender: Sender::new(number, start, smss, vantage),
            last_ns: 0,
            scale: None,
            windows: Rare::new(number),
            acks_seen: false,
            watched: true,
            smss_known: false,
            offload: false,
            timestamps: false,
            sack_cut: false,
            writes: Writes::default(),
            arrivals: Arrivals::default(),
            acks: Rare::new(number),
            first_ns: 0,
            newest_ack: start,
            fin: None,
            fin_taken: false,
            early: None,
            probed: None,
        }
    }

    pub fn early(&self) -> EarlyAcks {
        self.early.as_deref().copied().unwrap_or_default()
    }

    /// Takes a segment of the flow's sender whose data begin at `left`. What most are has the short way: new data in order,
    /// unmarked, of which nothing has to be watched.
    #[inline]
    pub fn on_segment(&mut self, left: u64, segment: &Segment, sink: &mut dyn Sink) {
        if self.sender.vantage != Vantage::Sender {
            self.deliver_acks(left, segment, sink);
        }
        let whole = segment.payload <= self.sender.smss || self.smss_known && self.offload;
        let marked = segment.ecn == marks::CE || segment.has(flags::CWR);
        let next = left == self.sender.nxt && !self.sender.one_way && !self.sender.board.is_full();
        if next && segment.payload > 1 && whole && !marked && !self.watched {
            self.last_ns = segment.time_ns;
            self.arrivals.on_next_data(left, segment, &mut self.sender, sink);
        } else {
            self.on_other_segment(left, segment, sink);
        }
    }

    /// A segment of any kind.
    #[inline(never)]
    fn on_other_segment(&mut self, left: u64, segment: &Segment, sink: &mut dyn Sink) {
        let passing = Passing::new(left, segment);
        if segment.payload == 0 {
            self.on_empty(passing, segment, sink);
            return;
        }
        if self.is_probe(&passing) {
            self.arrivals.on_other(segment.ip_id);
            self.probe_event(passing, sink);
            self.probed = Some(Box::new(passing));
            return;
        }
        let probed = self.probed.take();
        if let Some(probed) = probed.filter(|probed| (probed.left, probed.right) == (self.sender.nxt, left)) {
            // the sender goes on behind the byte: it was taken (RFC 9293, 3.8.6.1)
            self.sender.send_new(&Arrivals::sent(&probed));
            self.take_acknowledged(probed.left, probed.right, passing.time_ns, sink);
        }
        if !self.smss_known && segment.payload > self.sender.smss {
            let guess = smss_of(segment);
            let other = !segment.payload.is_multiple_of(self.sender.smss) || self.sender.smss < DEFAULT_SMSS * 2;
            if guess > self.sender.smss && other {
                self.sender.count_by(guess);
            }
        }
        self.offload |= segment.payload > self.sender.smss;
        if left >= self.sender.nxt {
            if let Some(early) = &mut self.early {
                early.on_new_data(passing.right, segment.time_ns);
            }
            if let Some(scale) = &mut self.scale {
                scale.on_data(passing.right);
            }
        }
        if self.first_ns == 0 {
            self.first_ns = segment.time_ns;
        }
        self.watched = self.early.is_some() || self.scale.is_some() || self.first_ns == 0;
        self.last_ns = segment.time_ns;
        let marked = segment.ecn == marks::CE || segment.has(flags::CWR);
        let before = if marked { self.arrivals.counted() } else { (0, 0) };
        if left < self.sender.nxt {
            self.sender.stamp_tick_ns = self.acks.tick_ns().unwrap_or(0) as u32;
        }
        self.arrivals.on_data(left, segment, &mut self.sender, sink);
        self.take_acknowledged(left, passing.right, segment.time_ns, sink);
        if marked {
            self.on_marked(passing, segment, before, sink);
        }
    }

    /// Data whose ACK has passed before them are not outstanding, and show no round trip.
    fn take_acknowledged(&mut self, left: u64, right: u64, time_ns: i64, sink: &mut dyn Sink) {
        let acknowledged = self.early.as_ref().is_some_and(|early| right <= early.at);
        // older data that wait for an ACK on its way are that one's
        if acknowledged && left == self.sender.una && right == self.sender.nxt {
            self.sender.on_early_ack(time_ns, sink);
        }
    }

    /// A segment of the flow's sender without data.
    #[inline(never)]
    fn on_empty(&mut self, passing: Passing, segment: &Segment, sink: &mut dyn Sink) {
        self.arrivals
            .on_acknowledgement(passing.left, segment.ip_id, &mut self.sender);
        if self.is_empty_probe(&passing, segment) {
            self.probe_event(passing, sink);
        } else if segment.has(flags::FIN) {
            self.on_fin(passing, sink);
        }
    }

    /// Data that came marked, or that answers a mark; `before`: segments and copies before it.
    #[inline(never)]
    pub fn on_marked(&mut self, passing: Passing, segment: &Segment, before: (u64, u64), sink: &mut dyn Sink) {
        let (range, state) = ((passing.left, passing.right), self.sender.state());
        let (time_ns, frame) = (passing.time_ns, passing.frame);
        let count = (self.arrivals.counted().0 - before.0) as u32;
        let marks = &mut self.sender.marks;
        if segment.ecn == marks::CE && count > 0 {
            marks.on_ce(time_ns, frame, range, count, state, sink);
        }
        if self.arrivals.counted().1 == before.1 {
            marks.on_data(time_ns, frame, range, marks::ace(segment.flags), state, sink);
        }
    }

    /// A FIN without data. It takes a sequence number and is sent again like data (RFC 9293, 3.4), but is no data segment.
    pub fn on_fin(&mut self, passing: Passing, sink: &mut dyn Sink) {
        self.arrivals.on_fin(passing, &mut self.sender, sink);
        let earlier = self.fin.replace(passing).filter(|fin| fin.left == passing.left);
        let Some(earlier) = earlier.filter(|fin| passing.time_ns - fin.time_ns > FIN_COPY_NS) else {
            return;
        };
        sink.event(EventRow {
            flow: self.sender.flow,
            time_ns: passing.time_ns,
            kind: Kind::Retransmission,
            reason: Reason::Fin,
            left: offset(passing.left),
            right: offset(passing.right),
            frame: passing.frame.into(),
            cause_frame: earlier.frame.into(),
            segments: 0,
            flight: self.sender.flight(),
            phase: self.sender.phase,
            confidence: 0.9,
            value: ((passing.time_ns - earlier.time_ns) as f64 / 1e9).into(),
            ..EventRow::NONE
        });
    }

    /// Keep-alive (RFC 9293, 3.8.4) or zero-window probe (3.8.6.1): one byte that carries nothing new or nothing wanted.
    #[inline]
    pub fn is_probe(&self, passing: &Passing) -> bool {
        let one_byte = passing.right - passing.left == 1;
        one_byte
            && (self.sender.is_idle(passing.time_ns) && passing.left + 1 == self.sender.nxt
                || self.window_closed(passing.time_ns) && passing.left <= self.sender.nxt)
    }

    /// For the sender the window is closed until the update has come to it.
    pub fn window_closed(&self, time_ns: i64) -> bool {
        self.windows.is_closed() || time_ns < self.windows.opened_ns.saturating_add(self.acks.way_ns)
    }

    /// The same without data, as Linux does it: only the number, one below the next, calls for an answer.
    pub fn is_empty_probe(&self, passing: &Passing, segment: &Segment) -> bool {
        let below = passing.left < self.sender.nxt;
        let number_only = segment.flags & (flags::FIN | flags::SYN) == 0 && below && self.first_ns != 0;
        number_only
            && (passing.left + 1 == self.sender.nxt && self.sender.is_quiet(passing.time_ns)
                || passing.left + 1 == self.sender.una && self.window_closed(passing.time_ns))
    }

    #[inline(never)]
    pub fn probe_event(&self, passing: Passing, sink: &mut dyn Sink) {
        sink.event(EventRow {
            flow: self.sender.flow,
            time_ns: passing.time_ns,
            kind: Kind::Probe,
            reason: if self.window_closed(passing.time_ns) {
                Reason::WindowProbe
            } else {
                Reason::KeepAlive
            },
            left: offset(passing.left),
            right: offset(passing.right),
            frame: passing.frame.into(),
            segments: u32::from(passing.right > passing.left),
            flight: self.sender.flight(),
            phase: self.sender.phase,
            confidence: 0.9,
            ..EventRow::NONE
        });
    }

    /// Takes an ACK of the flow's data. What most are has the short way: at the sender it moves the left edge over data
    /// that were seen, and says nothing of segments out of order, of marks, or of a closed window.
    pub fn on_ack(&mut self, unwrap: &Unwrap, segment: &Segment, scale: Option<u8>, sink: &mut dyn Sink) {
        let at = unwrap.near(segment.ack);
        if segment.payload > 0 {
            self.arrivals.two_way = true;
            self.writes.on_turn();
        }
        self.acks_seen = true;
        let near = self.sender.vantage == Vantage::Sender && self.scale.is_none();
        let moves = self.sender.una < at && at <= self.sender.nxt;
        let says = segment.options.sack_len > 0 || self.sender.marks.listens(marks::ace(segment.flags));
        let closed = segment.window == 0 || self.windows.get().is_some_and(ZeroWindows::is_closed);
        if near && moves && !says && !closed {
            self.last_ns = segment.time_ns;
            let whole = || Self::ack(at, segment, scale);
            let window = scale.map(|k| u32::from(segment.window) << k);
            self.sender.on_next_ack(segment.time_ns, at, window, whole, sink);
        } else {
            self.on_other_ack(at, unwrap, segment, scale, sink);
        }
    }

    /// The ACK that a segment is, its SACK blocks left aside.
    #[inline(always)]
    fn ack(at: u64, segment: &Segment, scale: Option<u8>) -> Ack {
        Ack {
            time_ns: segment.time_ns,
            frame: segment.frame,
            ack: at,
            window: scale.map(|k| u32::from(segment.window) << k),
            field: segment.window,
            tsecr: segment.options.timestamps.map(|(_, tsecr)| tsecr),
            pure: segment.payload == 0 && !segment.has(flags::FIN),
            sack: [(0, 0); 4],
            sack_len: 0,
            ace: marks::ace(segment.flags),
            ce_bytes: segment.options.ce_bytes,
            told: None,
        }
    }

    /// Any ACK.
    #[inline(never)]
    fn on_other_ack(&mut self, at: u64, unwrap: &Unwrap, segment: &Segment, scale: Option<u8>, sink: &mut dyn Sink) {
        if segment.options.incomplete && segment.options.sack_len == 0 && self.sender.sack {
            // what SACK blocks it may have had is cut off: that none came says nothing
            (self.sender.sack, self.sack_cut) = (false, true);
        }
        // the FIN's number is no data; what was acknowledged but never seen is not followed
        let acknowledged = at.min(self.sender.nxt);
        // the number of a FIN that has passed is not early
        let of_fin = self
            .fin
            .as_ref()
            .is_some_and(|fin| fin.left == acknowledged && at == fin.left + 1);
        if at > acknowledged && !of_fin {
            self.early.get_or_insert_default().on_ack(at, segment.time_ns);
            self.watched = true;
        }
        let scale = match &mut self.scale {
            Some(watched) => {
                watched.on_ack(at, segment);
                watched.range().exact()
            }
            None => scale,
        };
        let mut ack = Self::ack(acknowledged, segment, scale);
        // the first that acknowledges the FIN repeats nothing
        ack.pure &= !of_fin || std::mem::replace(&mut self.fin_taken, true);
        ack.sack_len = segment.options.sack_len;
        for (slot, &(left, right)) in ack.sack.iter_mut().zip(segment.options.sack_blocks()) {
            *slot = (unwrap.near(left), unwrap.near(right));
        }
        if acknowledged > self.sender.una {
            self.last_ns = segment.time_ns;
        }
        if self.sender.vantage == Vantage::Sender {
            self.sender.on_ack(&ack, sink);
            self.on_window(acknowledged, segment, sink);
            return;
        }
        if self.sender.marks.listens(ack.ace) {
            // the receiver's ACKs come in its order: the echo is read where it passes
            self.sender.note_room(&ack);
            let state = self.sender.state();
            let progress = ack.ack > self.newest_ack || ack.sack_len > 0;
            self.sender.marks.on_ack(&ack.echo(progress), state, sink);
            self.newest_ack = self.newest_ack.max(ack.ack);
        }
        let tsval = segment.options.timestamps.map(|(tsval, _)| tsval);
        let oldest = self.acks.push(ack, tsval, segment.seq);
        if let Some(oldest) = oldest {
            self.sender.on_late_ack(&oldest, sink);
        }
        self.on_window(acknowledged, segment, sink);
    }

    /// The window of an ACK up to `at`. Most are open, as the one before was.
    #[inline(always)]
    fn on_window(&mut self, at: u64, segment: &Segment, sink: &mut dyn Sink) {
        let closed = self.windows.get().is_some_and(ZeroWindows::is_closed);
        if segment.window == 0 || closed {
            self.on_closed_window(at, segment, sink);
        }
    }

    /// A window that closes, stays closed or opens, unless a newer one has overtaken it (RFC 9293, 3.10.7.4).
    #[inline(never)]
    fn on_closed_window(&mut self, at: u64, segment: &Segment, sink: &mut dyn Sink) {
        if at < self.sender.una.max(self.acks.newest()) {
            return;
        }
        let state = EventRow {
            left: offset(at),
            right: offset(self.sender.nxt),
            flight: self.sender.flight(),
            phase: self.sender.phase,
            ..EventRow::NONE
        };
        self.windows.on_ack(segment, state);
        self.windows.give_out(self.sender.flow, sink);
    }

    /// Hands the sender the ACKs that had reached it before it sent what passes now.
    #[inline(never)]
    fn deliver_acks(&mut self, left: u64, segment: &Segment, sink: &mut dyn Sink) {
        if self.arrivals.has_kept() && (segment.payload > 0 || segment.has(flags::FIN)) {
            let passing = Passing::new(left, segment);
            self.arrivals.judge_kept(Some(&passing), &mut self.sender, sink);
        }
        let mut answer = Answer {
            time_ns: segment.time_ns,
            tsval: segment.options.timestamps.map(|(tsval, _)| tsval),
            tsecr: segment.options.timestamps.map(|(_, tsecr)| tsecr),
            left,
            right: left + u64::from(segment.payload),
            nxt: self.sender.nxt,
            due: self.sender.due_edge(),
            silence_ns: segment.time_ns - self.sender.last_sent_ns,
            ended: self.sender.has_ended(),
            data: segment.payload > 0,
            newest: self.arrivals.is_newest(segment.ip_id),
            older: self.arrivals.is_older(segment.ip_id),
            unnumbered: !self.arrivals.are_ordered(segment.ip_id),
            asked: false,
            opens: self.sender.opens_episode(left, segment.time_ns),
            waits: self.sender.waits_for_more(),
            overtaken: self
                .sender
                .reordering
                .get()
                .is_some_and(|reordering| reordering.segments > 0),
            may_open: self.sender.may_open_episode(left),
            goes_on: self.sender.goes_on_by(left),
            in_recovery: self.sender.phase == Phase::Recovery,
            acked: self.sender.is_thought_to_know(left),
            busy_ns: i64::MAX,
            idle_since_ns: 0,
            gap_ns: 0,
            own_data: self.acks.own_data.take(),
        };
        let full = segment.payload >= self.sender.smss;
        let newest = answer.data && answer.right > answer.nxt;
        let written = newest && self.writes.on_data(segment.has(flags::PSH), full);
        if (answer.data || segment.has(flags::FIN)) && self.arrivals.has_noted_silence() {
            let passing = Passing::new(left, segment);
            self.arrivals.judge_silence(&passing, &mut self.sender, sink);
            answer.silence_ns = segment.time_ns - self.sender.last_sent_ns;
        }
        answer.asked = self.is_further_resend(&answer, segment);
        if self.sender.way_unknown && segment.payload > 0 {
            self.sender.way_unknown = self.acks.way_ns == 0;
        }
        let passage = self.acks.learn(&answer);
        self.sender.passes(passage);
        if answer.tsecr.is_none() && answer.data {
            let AckDelay { way_ns, path_ns, .. } = *self.acks;
            let segments = segments(segment.payload.into(), self.sender.smss);
            answer.busy_ns = self.sender.drift.on_data(segment.time_ns, segments, way_ns, path_ns);
            self.note_flight(&answer, segment);
            answer.gap_ns = self.sender.drift.gap_ns();
            answer.idle_since_ns = self.sender.drift.idle_since_ns();
            self.learn_from_resend(&answer);
            if answer.own_data.is_some() {
                self.learn_from_own_data(&answer);
            }
        }
        while let Some(ack) = self.acks.next(&answer) {
            self.sender.on_late_ack(&ack, sink);
            (answer.nxt, answer.due) = (self.sender.nxt, self.sender.due_edge());
        }
        let least_ns = if written {
            self.sender.round_trips_ns(1.0)
        } else {
            (SHORTEST_TIMER_S * 1e9) as i64
        };
        if answer.data && answer.silence_ns >= least_ns {
            let passing = Passing::new(left, segment);
            self.arrivals
                .note_silence(&passing, answer.ended, written, &self.sender);
        }
        if self.is_at_sender() {
            self.come_to_sender(segment.time_ns, sink);
            return;
        }
        if passage.held_ns > 0 && answer.data && !answer.resend() {
            self.sender.was_not_idle(passage.longer_ns, segment.time_ns);
        }
        if answer.tsecr.is_some() || !answer.data {
            return;
        }
        let told = answer.unnumbered && answer.resend() && self.acks.is_told_by_own_data();
        if answer.is_sure_resend() || told {
            self.deliver_asking_acks(&answer, segment, sink);
        } else if left >= self.sender.nxt {
            while let Some(ack) = self.acks.next_with_room(&answer) {
                self.sender.on_late_ack(&ack, sink);
            }
        }
    }

    /// Without timestamps: whether new data are sent with what passed before, after a rest.
    fn note_flight(&mut self, answer: &Answer, segment: &Segment) {
        let way_ns = self.acks.way_ns;
        if answer.left != answer.nxt {
            self.sender.drift.flights.interrupt();
            return;
        }
        let rests = self.acks.newest() >= answer.nxt && answer.silence_ns >= way_ns;
        let newest = Newest {
            time_ns: segment.time_ns,
            payload: segment.payload,
            push: segment.has(flags::PSH),
            rested_ns: rests.then_some(answer.silence_ns),
        };
        self.sender.drift.flights.on_data(newest, way_ns);
    }

    /// The sender answers as soon as only a host at the capture point does, though the handshake took longer.
    fn is_at_sender(&self) -> bool {
        let on_path = self.sender.vantage == Vantage::Middle;
        on_path && self.acks.is_prompt() && tells_host(self.sender.rtt.srtt_s)
    }

    /// The capture was taken at the sender, as it turns out: no ACK has a way to go, nor had those before, whose round trips without
    /// timestamps were taken to be as much longer.
    #[inline(never)]
    fn come_to_sender(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        self.sender.vantage = Vantage::Sender;
        self.arrivals.share_counter();
        for mut ack in self.acks.drain() {
            ack.time_ns = ack.time_ns.min(now_ns);
            self.sender.on_late_ack(&ack, sink);
        }
        if !self.timestamps {
            self.sender.rtt.restart(self.acks.way_ns as f64 / 1e9);
        }
    }

    /// Without timestamps: what a resend tells of the way.
    #[inline(never)]
    fn learn_from_resend(&mut self, answer: &Answer) {
        if let Some(shown) = self.acks.on_resend(answer) {
            match shown.asked {
                Some(Asked::Duplicates) => {
                    self.sender.episodes.answered_ns = answer.time_ns;
                    self.sender.on_asked(answer.nxt - answer.left);
                }
                Some(Asked::Partial) => self.sender.episodes.continued_ns = answer.time_ns,
                None => {}
            }
            // the first two duplicate ACKs let new data go (RFC 3042) if the receiver's window has room
            let unasked = shown.by == By::Loss && self.sender.fills_window(answer.nxt - answer.left);
            let unsent = if unasked { DUPTHRESH - 1 } else { 0 };
            self.sender.on_way_told(answer.time_ns, shown.way_ns, unsent, shown.by);
        }
    }

    /// Without timestamps: what data tell of the way that acknowledge those of the other direction.
    #[inline(never)]
    fn learn_from_own_data(&mut self, answer: &Answer) {
        if let Some(way_ns) = self.acks.on_own_data(answer) {
            self.sender.on_way_told(answer.time_ns, way_ns, 0, By::OwnData);
        }
    }

    /// With SACK: a resend of the tick of the data before it, which the recovery under way has asked for.
    fn is_further_resend(&mut self, answer: &Answer, segment: &Segment) -> bool {
        let sent = || Arrivals::sent(&Passing::new(answer.left, segment));
        let in_recovery = self.sender.sack && self.sender.phase == Phase::Recovery;
        in_recovery && answer.resend() && self.acks.is_of_last_tick(answer) && self.sender.is_further_hole(&sent())
    }

    /// Without timestamps: an ACK that asked for a resend has arrived, however long the way was before.
    #[inline(never)]
    fn deliver_asking_acks(&mut self, answer: &Answer, segment: &Segment, sink: &mut dyn Sink) {
        let sent = Arrivals::sent(&Passing::new(answer.left, segment));
        let before_ns = self.acks.way_ns;
        while self.sender.is_asked_for_by_more(&sent) {
            let Some(ack) = self.acks.next_possible(answer) else {
                break;
            };
            self.sender.on_late_ack(&ack, sink);
        }
        if self.acks.way_ns < before_ns {
            self.sender
                .on_way_told(answer.time_ns, self.acks.way_ns, 0, By::Recovery);
        }
    }

    /// Nothing unusual has happened that takes much memory.
    pub fn is_plain(&self) -> bool {
        self.scale.is_none() && self.sender.board.is_plain()
    }

    pub fn finish(&mut self, sink: &mut dyn Sink) {
        if self.arrivals.has_kept() {
            self.arrivals.judge_kept(None, &mut self.sender, sink);
        }
        if let Some(acks) = self.acks.changed() {
            for ack in acks.drain() {
                self.sender.on_late_ack(&ack, sink);
            }
        }
        if let Some(windows) = self.windows.changed() {
            windows.finish(self.sender.flow, self.last_ns, sink);
        }
        self.sender.finish(sink);
    }
}

#[cfg(test)]
mod tests;
