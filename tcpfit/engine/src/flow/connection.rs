//! A TCP connection: handshake, both directions' sequence spaces, and the flow of each direction that carries data.

use crate::flow::ack_delay::{AckDelay, OwnData};
use crate::flow::ack_trail::AckTrail;
use crate::flow::arrivals::{Arrivals, Passing};
use crate::flow::attempts::Attempts;
use crate::flow::direction::{smss_of, Flow};
use crate::flow::hosts::{Known, Least};
use crate::flow::listing::Listing;
use crate::flow::mirror::Mirror;
use crate::flow::rare::{Blank, Rare};
use crate::flow::sequence::{before, offset, Unwrap};
use crate::flow::spare::Spare;
use crate::flow::vantage::{self, Position};
use crate::flow::window_scale::WindowScale;
use crate::flow::zero_windows::ZeroWindows;
use crate::prefetch::prefetch;
use crate::rows::{EventRow, Sink, Vantage};
use crate::segment::{flags, Segment};
use end::End;

mod end;
mod handshake;
mod last_packet;
mod row;

/// Packets held back while the capture point is not known.
const HELD_BACK: usize = 96;
/// What a connection can have sent in as many packets, when its SYN comes late.
const HELD_BACK_BYTES: u32 = 1 << 20;

/// What the connection's owner provides: numbers and memory for new flows, and the user's settings.
pub struct Numbers {
    pub next_flow: u32,
    pub vantage: Option<Vantage>,
    /// Flows that had more outstanding than is followed.
    pub overfull: u64,
    /// Flows most of whose data came twice.
    pub doubled: u64,
    pub attempts: Attempts,
    pub spare: Spare,
}

impl Numbers {
    pub fn take(&mut self) -> u32 {
        self.next_flow += 1;
        self.next_flow - 1
    }
}

#[repr(C)]
pub struct Connection {
    ends: [End; 2],
    position: Option<Position>,
    /// Shift of the window field that each end sends, where the SYNs leave no other.
    shifts: [Option<u8>; 2],
    synack_seen: bool,
    reset: bool,
    /// Both ends have been seen, neither has finished, and where the capture was taken is known.
    under_way: bool,
    /// End that sent the SYN, if it was seen.
    client: Option<usize>,
    /// Segments, and the end that sent each.
    held_back: Vec<(usize, Segment)>,
    /// The last packets of each end, where those of the capturing host come twice.
    mirrors: Option<Box<[Mirror; 2]>>,
    /// Its first reset: which end sent it, and its frame.
    first_reset: Option<(usize, u64)>,
}

impl Connection {
    /// A connection without packets.
    pub fn new(known: [Known; 2]) -> Self {
        let end = |known| End {
            known,
            ..End::default()
        };
        Self {
            ends: known.map(end),
            shifts: [None, None],
            client: None,
            synack_seen: false,
            position: None,
            held_back: Vec::new(),
            mirrors: None,
            first_reset: None,
            reset: false,
            under_way: false,
        }
    }

    /// Gives back what it holds in reserve: it has closed, or was quiet for long.
    pub fn shrink(&mut self, spare: &mut Spare) {
        for flow in self.ends.iter_mut().filter_map(|end| end.direction.as_mut()) {
            if flow.sender.board.units.is_empty() {
                spare.give_board(flow.sender.shrunk());
            }
        }
    }

    /// Asks for the flow that the end's segment is of or, if it has no data, acknowledges.
    #[inline]
    pub fn prefetch(&self, end: usize, segment: &Segment) {
        if let Some(flow) = &self.ends[end ^ usize::from(segment.payload == 0)].direction {
            prefetch(&**flow);
        }
    }

    /// Initial sequence number of each end, as far as known.
    pub fn isns(&self) -> [Option<u32>; 2] {
        [0, 1].map(|end: usize| self.ends[end].unwrap.map(|unwrap| unwrap.isn()))
    }

    /// Some flow of it has begun, or waits for the capture point to be known.
    pub fn carries_data(&self) -> bool {
        let begun = |end: &End| end.direction.is_some() || end.trail.is_some();
        self.ends.iter().any(begun) || !self.held_back.is_empty()
    }

    /// The end that sent the segment, if nothing of it is in the capture yet.
    pub fn lacks(&self, listing: &Listing, segment: &Segment) -> Option<usize> {
        let one_way = listing.ends.arounds[0] == listing.ends.arounds[1];
        let end = listing.ends.between(segment).filter(|_| one_way)?;
        (!self.ends[end].seen).then_some(end)
    }

    /// Both ends have said that they are done.
    pub fn closed(&self) -> bool {
        self.reset || self.both_finished()
    }

    #[inline]
    fn both_finished(&self) -> bool {
        self.ends[0].fin.is_some() && self.ends[1].fin.is_some()
    }

    /// Each end has the other's FIN: nothing can be missing any more, and what still comes are copies.
    pub fn is_over(&self) -> bool {
        self.ends[0].fin_acknowledged && self.ends[1].fin_acknowledged
    }

    /// Packets that come after its reset count: that was forged, or its receiver did not take it (RFC 5961, 3.2).
    pub fn outlives_reset(&self) -> bool {
        !self.both_finished()
    }

    /// The segment is a SYN of that end that opens another connection: another initial sequence number.
    pub fn is_reused_by(&self, from: usize, segment: &Segment) -> bool {
        let end = &self.ends[from];
        if segment.has(flags::ACK) {
            // the SYN comes first, unless its direction is not in the capture
            let known = end.syn.is_some() && end.unwrap.is_some_and(|unwrap| unwrap.isn() != segment.seq);
            let sent = |held: &(usize, Segment)| held.1.payload > 0 && is_older(held, from, segment);
            return known && !self.ends[1 - from].seen && {
                end.direction.is_some() || end.fin.is_some() || self.held_back.iter().any(sent)
            };
        }
        match (&end.unwrap, &end.syn) {
            (Some(unwrap), Some(_)) => unwrap.isn() != segment.seq,
            // data but no SYN before: a SYN cannot belong to them
            (Some(_), None) => true,
            // data are held back until the capture point is known
            (None, _) => end.fin.is_some() || self.held_back.iter().any(|held| is_older(held, from, segment)),
        }
    }

    /// End at the capture point, once the handshake or the first packets have told.
    pub fn local_end(&self) -> Option<usize> {
        self.position?.local_end()
    }

    /// The end's identifications count the connection's packets, as far as seen.
    pub fn counts(&self, end: usize) -> bool {
        let flow = self.ends[end].direction.as_ref();
        flow.is_some_and(|flow| flow.arrivals.is_counter())
    }

    /// What the end's lost tails show of its probes: as in `Hosts::learn_tails`.
    pub fn tails(&self, end: usize) -> (u8, bool) {
        let episodes = self.ends[end]
            .direction
            .as_ref()
            .and_then(|flow| flow.sender.episodes.get());
        episodes.map_or((0, false), |episodes| (episodes.waited_out, episodes.probed))
    }

    /// The least round trip to that end, if the capture was taken at the other.
    pub fn least_to(&self, end: usize) -> Least {
        let flow = self.ends[1 - end].direction.as_ref();
        let sender = flow
            .map(|flow| &flow.sender)
            .filter(|sender| sender.vantage == Vantage::Sender);
        sender.map_or_else(Least::default, |sender| Least::of(sender.rtt.min_s))
    }

    /// The identifications of that end count packets of other connections too.
    pub fn share_counter(&mut self, end: usize) {
        let end = &mut self.ends[end];
        if !end.shared {
            end.shared = true;
            if let Some(flow) = end.direction.as_mut() {
                flow.arrivals.share_counter();
            }
        }
    }

    /// How far the capture's clock has run ahead of the sending host's since its last packet.
    pub fn ahead_ns(&self, end: usize, segment: &Segment) -> Option<i64> {
        let (tsval, _) = segment.options.timestamps?;
        self.ends[end].stamps.ahead_ns(tsval, segment.time_ns)
    }

    pub fn needs_hint(&self) -> bool {
        self.position.is_none() && self.held_back.is_empty() && self.client.is_none()
    }

    /// Another connection has shown whether the host at each end captures.
    pub fn hint(&mut self, local: [bool; 2]) {
        if local[0] != local[1] {
            self.position = Some(Position::at(usize::from(local[1]), 0.7));
        }
    }

    /// Takes the next of the segments that came packed.
    #[inline(never)]
    pub fn push_packed(&mut self, end: usize, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) {
        if !self.push_ordinary(end, segment, numbers, sink) {
            self.push_any(end, segment, numbers, sink);
        }
    }

    /// Takes the next segment, which `end` sent, if it is what most are: an ACK, with data or without, of a connection under
    /// way. False if it was not taken.
    #[inline(always)] // where segments come from, all of the way is in one place
    pub fn push_ordinary(&mut self, end: usize, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) -> bool {
        let concerns = flags::SYN | flags::FIN | flags::RST | flags::ACK;
        if !self.under_way || segment.flags & concerns != flags::ACK {
            return false;
        }
        if !self.is_copied(end, segment) {
            self.on_ack(1 - end, segment, sink);
            self.on_data(end, segment, numbers, sink);
        }
        true
    }

    /// Takes any segment.
    #[inline(never)]
    pub fn push_any(&mut self, end: usize, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) {
        self.take(end, segment, numbers, sink);
        let goes_on = |end: &End| end.seen && end.unwrap.is_some() && end.fin.is_none() && !end.last.doubled;
        self.under_way = self.position.is_some() && !self.reset && self.ends.iter().all(goes_on);
    }

    fn take(&mut self, end: usize, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) {
        self.ends[end].seen = true;
        if self.is_copied(end, segment) {
            return;
        }
        if self.ends[end].last.doubled && self.is_mirrored(end, segment) {
            self.on_mirrored(end, segment, sink);
            return;
        }
        if segment.has(flags::SYN) {
            self.on_syn(end, segment);
            if segment.payload == 0 {
                self.answer_early_data(end, segment, sink);
                return;
            }
        }
        if self.position.is_none() && !self.find_position(end, segment, numbers, sink) {
            return;
        }
        self.process(end, segment, numbers, sink);
    }

    /// The segment is the packet before once more, and nothing is to be taken of it: of data the flow counts the copies.
    #[inline(always)]
    fn is_copied(&mut self, end: usize, segment: &Segment) -> bool {
        if let Some((tsval, _)) = segment.options.timestamps {
            let End { stamps, direction, .. } = &mut self.ends[end];
            let acks = || direction.as_ref()?.acks.get();
            stamps.learn(tsval, segment.time_ns, || acks().map_or(0, AckDelay::slack_ns));
        }
        let repeated = self.ends[end].last.is_repeated_by(segment);
        repeated && segment.payload == 0 && (segment.ip_id.is_some_and(|id| id != 0) || self.may_copy(end))
    }

    /// Without an identification an ACK that comes twice may be a copy. The receiver sends one like the last for each segment that it
    /// does not take, which without SACK is any above a hole, and with it one with an old timestamp (RFC 7323, 5.3): then
    /// other packets have to come twice as well.
    #[inline(never)]
    fn may_copy(&self, end: usize) -> bool {
        let data = self.ends[1 - end].direction.as_ref();
        let twice = || data.is_some_and(|flow| flow.arrivals.counts().copies > 0);
        self.uses_sack() && (self.ends.iter().any(|end| end.last.doubled) || twice())
    }

    /// Packets of the host that captures come twice, and this one has come.
    #[cold]
    fn is_mirrored(&mut self, end: usize, segment: &Segment) -> bool {
        let local = self.local_end();
        let copies_syns = |end: usize| self.ends[end].syn.is_some_and(|syn| syn.copied);
        if segment.has(flags::SYN) || !local.is_some_and(copies_syns) {
            return false;
        }
        self.mirrors.get_or_insert_default()[end].has_seen(segment)
    }

    #[cold]
    fn on_mirrored(&mut self, end: usize, segment: &Segment, sink: &mut dyn Sink) {
        let End { direction, unwrap, .. } = &mut self.ends[end];
        if let (Some(flow), Some(unwrap), 1..) = (direction, unwrap, segment.payload) {
            let passing = Passing::new(unwrap.near(segment.seq), segment);
            flow.arrivals.on_capture_copy(&passing, &flow.sender, sink);
        }
    }

    /// Decides where the capture was taken; false while the packet is held back.
    #[cold]
    fn find_position(&mut self, end: usize, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) -> bool {
        if let (Some(client), true) = (self.client, self.synack_seen) {
            if end == client && !segment.has(flags::SYN) {
                self.position = Some(self.handshake_position(client, segment));
                // data that came with the SYN (RFC 7413) wait for the place too
                self.release(numbers, sink);
                return true;
            }
            if end != client && segment.payload == 0 {
                return true; // a SYN-ACK sender speaking first; nothing to hold back
            }
        }
        let silent = || self.held_back.iter().all(|&(sender, _)| sender != end);
        if segment.has(flags::RST) && self.client == Some(end) && !self.synack_seen && silent() {
            // the answer to an ACK of an earlier connection on these ports (RFC 9293, 3.5.2); the SYN will come again
            self.held_back.clear();
            return false;
        }
        self.held_back.push((end, *segment));
        if self.held_back.len() >= HELD_BACK || segment.has(flags::RST) {
            self.release(numbers, sink);
        }
        false
    }

    /// Processes what was held back, with what it shows.
    fn release(&mut self, numbers: &mut Numbers, sink: &mut dyn Sink) {
        let held_back = std::mem::take(&mut self.held_back);
        if self.position.is_none() {
            self.position = Some(vantage::from_packets(&held_back));
        }
        for &(end, ref segment) in &held_back {
            if segment.has(flags::SYN) && segment.payload == 0 {
                self.answer_early_data(end, segment, sink);
            } else {
                self.process(end, segment, numbers, sink);
            }
        }
    }

    #[inline(never)]
    fn process(&mut self, end: usize, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) {
        if segment.has(flags::RST) {
            self.reset = true;
            self.first_reset.get_or_insert((end, segment.frame));
            self.on_reset(end, segment);
            return;
        }
        if segment.has(flags::ACK) && !segment.has(flags::SYN) {
            if self.ends[1 - end].fin == Some(segment.ack) {
                self.ends[1 - end].fin_acknowledged = true;
            }
            self.on_ack(1 - end, segment, sink);
            if !self.ends[1 - end].seen {
                self.on_ack_alone(1 - end, segment, numbers, sink);
            }
        }
        self.on_data(end, segment, numbers, sink);
        if segment.has(flags::FIN) {
            self.ends[end].fin = Some(segment.seq.wrapping_add(segment.seq_len()));
        }
    }

    /// A host that has closed the connection answers each segment that still comes with a RST, whose number that had
    /// acknowledged (RFC 9293, 3.10.7.1): it was sent before the host's FIN came, and where only one end sends data it carried
    /// some.
    #[cold]
    fn on_reset(&mut self, end: usize, segment: &Segment) {
        let closed = self.ends.iter().all(|end| end.fin_acknowledged);
        let receiver = &self.ends[end];
        let before_fin = receiver.fin.is_some_and(|fin| before(segment.seq, fin));
        if !closed || segment.has(flags::ACK) || !before_fin || receiver.direction.is_some() {
            return;
        }
        if let Some(flow) = &mut self.ends[1 - end].direction {
            flow.sender.on_closed_answer(segment.time_ns, segment.frame);
        }
    }

    /// What the segment carries.
    #[inline(always)]
    fn on_data(&mut self, end: usize, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) {
        let unwrap = self.ends[end]
            .unwrap
            .get_or_insert_with(|| Unwrap::new(segment.seq.wrapping_sub(1)));
        let left = unwrap.advance(segment.seq) + u64::from(segment.has(flags::SYN));
        if segment.payload > 0 && self.ends[end].direction.is_none() {
            self.begin_flow(end, segment, numbers, sink);
        }
        if let Some(flow) = self.ends[end].direction.as_mut() {
            flow.on_segment(left, segment, sink);
            flow.arrivals.two_way = false;
        } else {
            self.ends[end].before_data(segment);
        }
    }

    #[cold]
    fn begin_flow(&mut self, end: usize, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) {
        self.open_flow(end, segment, numbers);
        self.syn_expiries(end, sink);
        if let Some(flow) = self.ends[end].direction.as_mut() {
            if let Some(windows) = flow.windows.changed() {
                windows.give_out(flow.sender.flow, sink);
            }
        }
    }

    /// Since when the end has had nothing to send but data: it had acknowledged all that the other had sent. `None` where that
    /// waits for its acknowledgement, or had it by the packet of `now_ns` only.
    fn turn_ns(&self, end: usize, now_ns: i64) -> Option<i64> {
        let peer = &self.ends[1 - end].direction.as_ref()?.sender;
        let all = peer.una == peer.nxt && peer.last_advance_ns < now_ns;
        all.then_some(peer.last_advance_ns)
    }

    fn open_flow(&mut self, end: usize, segment: &Segment, numbers: &mut Numbers) {
        let position = self.position.unwrap_or(Position::UNKNOWN);
        let timestamps = segment.options.timestamps.is_some();
        let vantage = numbers.vantage.unwrap_or_else(|| position.standpoint(end, timestamps));
        let (own, peer) = (self.ends[end].syn, self.ends[1 - end].syn);
        let unwrap = self.ends[end]
            .unwrap
            .unwrap_or_else(|| Unwrap::new(segment.seq.wrapping_sub(1)));
        let start = if own.is_some() {
            unwrap.near(unwrap.isn()) + 1
        } else {
            unwrap.near(segment.seq)
        };
        let options = own.zip(peer).and_then(|(a, b)| Some(u32::from(a.mss?.min(b.mss?))));
        let smss = match options {
            // the MSS option does not count TCP options, the segment has to hold them (RFC 6691)
            Some(mss) => mss.saturating_sub(if timestamps { 12 } else { 0 }).max(1),
            None => smss_of(segment),
        };
        let trail = self.ends[end].trail.take();
        let begun = trail.as_ref().and_then(|trail| trail.flow);
        let number = begun.unwrap_or_else(|| numbers.take());
        let alone = trail
            .map(|trail| trail.windows)
            .filter(|windows| windows.zero_count > 0);
        let windows = self.ends[end].early_windows.take().or(alone.map(Box::new));
        let mut arrivals = Arrivals::new(self.ends[end].known.counts);
        if self.ends[end].shared || vantage == Vantage::Sender {
            arrivals.share_counter();
        }
        for id in self.ends[end].early_ids.into_iter().flatten() {
            arrivals.on_other(Some(id));
        }
        let mut flow = numbers.spare.flow(|| Flow::new(number, start, smss, vantage));
        flow.arrivals = arrivals;
        let sender = &mut flow.sender;
        sender.sack = self.uses_sack();
        sender.begun_before = own.zip(peer).is_none_or(|(a, b)| a.incomplete || b.incomplete);
        sender.way_unknown = vantage == Vantage::Receiver && !timestamps && position.halves_s[end].is_none();
        sender.timestamps = timestamps;
        sender.waits_out = self.ends[end].known.waits_out;
        sender.known_least = self.ends[1 - end].known.least;
        sender.few_blocks = timestamps && self.is_subflow() == Some(true);
        sender.one_way = !self.ends[1 - end].seen;
        // the near half is what the sender's own host took to answer, and data do not wait for that
        let near = vantage == Vantage::Sender && !position.doubtful;
        if let Some(near_s) = position.halves_s[end].filter(|_| near) {
            sender.near_s = near_s;
        }
        let far_s = position.halves_s[1 - end].filter(|_| near);
        if let Some(rtt_s) = far_s.or(position.round_trip_s()) {
            sender.rtt.seed(rtt_s);
        }
        sender.marks.feedback = self.feedback();
        if self.ends[1 - end].direction.is_some() {
            let turn_ns = self.turn_ns(end, segment.time_ns);
            flow.arrivals.two_way = turn_ns.is_none();
            sender.last_advance_ns = turn_ns.unwrap_or(sender.last_advance_ns);
        }
        if vantage != Vantage::Sender {
            flow.acks.set_way(position.halves_s[end].unwrap_or(0.0));
            if let Some((tsval, time_ns)) = self.ends[end].stamps.first().filter(|_| timestamps) {
                flow.acks.set_soonest(tsval, time_ns);
            }
            flow.acks.place_given = numbers.vantage.is_some();
        }
        let scales = self.offered_scales(1 - end);
        flow.last_ns = segment.time_ns;
        flow.timestamps = timestamps;
        flow.smss_known = options.is_some();
        flow.windows = Rare::begun(number, windows);
        flow.scale = scales.exact().is_none().then(|| Box::new(WindowScale::new(scales)));
        self.ends[end].direction = Some(flow);
    }

    /// An ACK for the data of `data_end`.
    #[inline(always)]
    fn on_ack(&mut self, data_end: usize, segment: &Segment, sink: &mut dyn Sink) {
        let scale = self.shifts[1 - data_end];
        self.ends[1 - data_end].windows.add(segment.window);
        let [first, second] = &mut self.ends;
        let (end, other) = if data_end == 0 {
            (first, second)
        } else {
            (second, first)
        };
        if let (Some(unwrap), Some(flow)) = (&end.unwrap, &mut end.direction) {
            if segment.payload > 0 && segment.options.timestamps.is_none() {
                if let Some(peer) = &mut other.direction {
                    on_own_data(unwrap.near(segment.ack), flow, peer, segment);
                }
            }
            if flow.sender.has_repeated_the_last() && end.fin.is_none() {
                flow.sender.fates.acks_lost = other.skipped_before(segment).unwrap_or(0);
            }
            if !flow.sender.sack {
                let ended = end.fin.is_some();
                flow.sender
                    .count_skipped(ended, segment.time_ns, || other.skipped_before(segment));
            }
            flow.on_ack(unwrap, segment, scale, sink);
        } else if segment.window == 0 || end.early_windows.is_some() {
            self.on_early_window(data_end, segment);
        }
    }

    /// The window of an ACK to an end that is in the capture and has sent no data yet.
    #[cold]
    fn on_early_window(&mut self, data_end: usize, segment: &Segment) {
        let end = &mut self.ends[data_end];
        if let Some(unwrap) = end.unwrap.filter(|_| end.seen && end.direction.is_none()) {
            let at = offset(unwrap.near(segment.ack));
            let windows = end
                .early_windows
                .get_or_insert_with(|| Box::new(ZeroWindows::BLANK.clone()));
            windows.on_ack(
                segment,
                EventRow {
                    left: at,
                    right: at,
                    ..EventRow::NONE
                },
            );
        }
    }

    /// An ACK for data of an end that the capture has nothing of.
    #[cold]
    fn on_ack_alone(&mut self, data_end: usize, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) {
        let first = self.ends[1 - data_end].acknowledged.unwrap_or(segment.ack);
        let trail = self.ends[data_end]
            .trail
            .get_or_insert_with(|| Box::new(AckTrail::new(first)));
        trail.on_ack(segment, sink);
        // the one byte of a FIN is no data
        if trail.flow.is_none() && trail.acked_bytes() > 1 {
            trail.flow = Some(numbers.take());
        }
    }

    /// Gives out the flows of the connection.
    pub fn finish(&mut self, listing: &Listing, numbers: &mut Numbers, sink: &mut dyn Sink) {
        self.release(numbers, sink);
        let completeness = self.completeness();
        self.count_attempt(completeness, &mut numbers.attempts);
        for end in 0..2 {
            if let (None, Some(&(syn, ..))) = (&self.ends[end].direction, self.ends[end].repeated_syns.first()) {
                // an attempt that brought no data is a flow of expiries
                self.begin_flow(end, &syn, numbers, sink);
            }
            if let Some(mut flow) = self.ends[end].direction.take() {
                numbers.overfull += u64::from(flow.sender.overfull);
                numbers.doubled += u64::from(flow.arrivals.are_doubled());
                flow.finish(sink);
                sink.flow(self.row(listing, end, &flow, completeness));
                numbers.spare.give_flow(flow);
            }
            if let Some(trail) = self.ends[end].trail.take() {
                if let Some(number) = trail.flow {
                    let closed = self.ends[1 - end].fin.is_some() && !self.reset;
                    let known = trail.finish(number, closed, sink);
                    sink.flow(self.trail_row(listing, end, known, completeness));
                }
            }
        }
    }
}

/// Data of `peer` pass that acknowledge the `own` ones up to `at`: without timestamps these tell how long ACKs are under way to
/// the sender of the former.
#[inline(never)]
fn on_own_data(at: u64, own: &Flow, peer: &mut Flow, segment: &Segment) {
    if peer.sender.vantage == Vantage::Sender || !own.sender.is_undisturbed() {
        return;
    }
    let first = at > peer.acks.own_data_to.max(own.sender.una);
    peer.acks.own_data_to = peer.acks.own_data_to.max(at);
    let passed_ns = |byte: u64| Some(segment.time_ns - own.sender.sent_ns(byte)?);
    peer.acks.own_data = Some(OwnData {
        to: segment.ack,
        took_ns: at.checked_sub(1).filter(|_| first).and_then(passed_ns),
        beyond_ns: passed_ns(at).filter(|_| first),
    });
}

/// A packet of the SYN's sender, which is `from`, that its connection cannot have sent.
fn is_older(&(sender, ref held): &(usize, Segment), from: usize, syn: &Segment) -> bool {
    let after = held.seq.wrapping_sub(syn.seq);
    sender == from && !(1..=HELD_BACK_BYTES).contains(&after)
}
