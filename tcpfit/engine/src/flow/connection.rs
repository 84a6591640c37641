//! A TCP connection: handshake, both directions' sequence spaces, and the flow of each direction that carries data.

use crate::events::marks;
use crate::flow::ack_delay::{AckDelay, Answer};
use crate::flow::ack_trail::AckTrail;
use crate::flow::arrivals::{Arrivals, Passing, CAPTURE_COPY_NS};
use crate::flow::sender::{Ack, Sender};
use crate::flow::sequence::{offset, Unwrap};
use crate::flow::stamp_clock::StampClock;
use crate::flow::vantage::{self, Position};
use crate::flow::window_scale::{self, WindowScale};
use crate::rows::{EventRow, Feedback, FlowRow, Kind, Phase, Reason, Sink, Vantage};
use crate::segment::{flags, Address, Segment};

/// Packets held back while the capture point is not known.
const HELD_BACK: usize = 96;
/// What a connection can have sent in as many packets, when its SYN comes late.
const HELD_BACK_BYTES: u32 = 1 << 20;
/// Ethernet's largest payload with and without timestamps, and with IPv6: what super-segments are multiples of.
const COMMON_SMSS: [u32; 6] = [1448, 1460, 1428, 1440, 1388, 1400];
/// RFC 9293, 3.7.1: default MSS for IPv4.
const DEFAULT_SMSS: u32 = 536;
/// Repeated SYNs kept for the flow that begins with them; stacks give up after about six.
const REPEATED_SYNS: usize = 16;
/// The handshake's timer runs longer than this; a SYN that comes again sooner was copied on the way.
const SYN_TIMER_S: f64 = 0.1;
/// Keep-alive timers count in seconds.
const KEEP_ALIVE_NS: i64 = 1_000_000_000;
/// A FIN that comes again sooner is a copy by the path or the capture, not one that the sender sent again.
const FIN_COPY_NS: i64 = 10_000_000;

/// What the connection's owner provides: numbers for new flows and the user's settings.
pub struct Numbers {
    pub next_flow: u32,
    pub vantage: Option<Vantage>,
}

impl Numbers {
    fn next(&mut self) -> u32 {
        self.next_flow += 1;
        self.next_flow - 1
    }
}

#[derive(Default)]
struct End {
    address: Address,
    port: u16,
    unwrap: Option<Unwrap>,
    syn: Option<Syn>,
    fin: bool,
    /// Some packet of the end is in the capture.
    seen: bool,
    /// Number that the end's SYN-ACK acknowledged.
    acknowledged: Option<u32>,
    stamps: StampClock,
    /// Time of the last SYN or SYN-ACK, and its frame.
    syn_ns: i64,
    syn_frame: u64,
    /// SYNs that the timer sent again, how long it ran, and the frame of the one before.
    repeated_syns: Vec<(Segment, f64, u64)>,
    /// The last packet of the end.
    last: LastPacket,
    direction: Option<Box<Flow>>,
    /// ACKs of the end's data, while no packet of the end is in the capture.
    trail: Option<Box<AckTrail>>,
    /// Least and largest window advertised after the handshake, in bytes as sent.
    window: Option<(u16, u16)>,
    ce: bool,
    /// Other connections of the host have shown that its identifications count a connection's packets.
    counts: bool,
    /// One counter of identifications serves all connections of the host.
    shared: bool,
    /// Identifications of the last two packets before the first data.
    early_ids: [Option<u16>; 2],
}

impl End {
    /// Remembers the identification of a packet before the flow begins: the counter runs through the handshake.
    fn before_data(&mut self, segment: &Segment) {
        if let Some(id) = segment.ip_id.filter(|&id| id != 0) {
            self.early_ids = [self.early_ids[1], Some(id)];
        }
    }
}

/// What tells a packet from its copy by a mirror port.
#[derive(Clone, Copy, Default, PartialEq)]
struct LastPacket {
    time_ns: i64,
    ip_id: u16,
    checksum: u16,
    ttl: u8,
}

impl LastPacket {
    /// The capture has taken the same packet twice. Without an identification an answer to each of two segments looks
    /// the same as a copy.
    fn is_copied_by(&mut self, segment: &Segment) -> bool {
        let this = Self {
            time_ns: segment.time_ns,
            ip_id: segment.ip_id.unwrap_or(0),
            checksum: segment.checksum,
            ttl: segment.ttl,
        };
        let last = std::mem::replace(self, this);
        let same = Self {
            time_ns: this.time_ns,
            ..last
        } == this;
        same && this.ip_id != 0 && (0..CAPTURE_COPY_NS).contains(&(this.time_ns - last.time_ns))
    }
}

#[derive(Clone, Copy, Default)]
struct Syn {
    mss: Option<u16>,
    window_scale: Option<u8>,
    sack_permitted: bool,
    /// AE, CWR and ECE.
    ace: u8,
    copies: u32,
    incomplete: bool,
}

/// The data of one direction.
struct Flow {
    sender: Sender,
    arrivals: Arrivals,
    acks: AckDelay,
    first_ns: i64,
    last_ns: i64,
    offload: bool,
    timestamps: bool,
    smss_known: bool,
    acks_seen: bool,
    /// Highest ACK whose flags could echo a mark, where the capture is not at the sender.
    newest_ack: u64,
    zero_window: Option<(i64, u64)>,
    /// When the window opened again, as seen at the capture point.
    opened_ns: i64,
    /// The last FIN without data.
    fin: Option<Passing>,
    zero_windows: u64,
    early: EarlyAcks,
    /// What is known of the receiver's window scale, where the SYNs do not say it.
    scale: Option<Box<WindowScale>>,
}

/// ACKs that passed before the data they acknowledge: the directions have different clocks, or one is out of order.
#[derive(Clone, Copy, Default)]
struct EarlyAcks {
    /// Highest of them and its time.
    at: u64,
    time_ns: i64,
    /// Data that came after their ACK, and how long after at most.
    segments: u64,
    longest_ns: i64,
}

impl EarlyAcks {
    fn on_ack(&mut self, at: u64, time_ns: i64) {
        if at > self.at {
            (self.at, self.time_ns) = (at, time_ns);
        }
    }

    fn on_new_data(&mut self, right: u64, time_ns: i64) {
        if right <= self.at {
            self.segments += 1;
            self.longest_ns = self.longest_ns.max(time_ns - self.time_ns);
        }
    }
}

pub struct Connection {
    pub number: u32,
    /// Numbers of the hosts at the ends, in the owner's table.
    pub hosts: [Option<u32>; 2],
    ends: [End; 2],
    /// End that sent the SYN, if it was seen.
    client: Option<usize>,
    synack_seen: bool,
    position: Option<Position>,
    held_back: Vec<Segment>,
    pub last_ns: i64,
    reset: bool,
}

impl Connection {
    pub fn new(number: u32, first: &Segment) -> Self {
        let end = |address, port| End {
            address,
            port,
            ..End::default()
        };
        Self {
            number,
            hosts: [None, None],
            ends: [end(first.src, first.sport), end(first.dst, first.dport)],
            client: None,
            synack_seen: false,
            position: None,
            held_back: Vec::new(),
            last_ns: first.time_ns,
            reset: false,
        }
    }

    pub fn end_of(&self, segment: &Segment) -> usize {
        usize::from(!(segment.src == self.ends[0].address && segment.sport == self.ends[0].port))
    }

    /// Both ends have said that they are done.
    pub fn closed(&self) -> bool {
        self.reset || (self.ends[0].fin && self.ends[1].fin)
    }

    /// A SYN that opens another connection between the same ends: another initial sequence number.
    pub fn is_reused_by(&self, segment: &Segment) -> bool {
        if !segment.has(flags::SYN) {
            return false;
        }
        let end = &self.ends[self.end_of(segment)];
        if segment.has(flags::ACK) {
            // the SYN comes first, unless its direction is not in the capture
            let known = end.syn.is_some() && end.unwrap.is_some_and(|unwrap| unwrap.isn() != segment.seq);
            let sent = |held: &Segment| held.payload > 0 && self.is_older(held, segment);
            return known && !self.ends[1 - self.end_of(segment)].seen && {
                end.direction.is_some() || end.fin || self.held_back.iter().any(sent)
            };
        }
        match (&end.unwrap, &end.syn) {
            (Some(unwrap), Some(_)) => unwrap.isn() != segment.seq,
            // data but no SYN before: a SYN cannot belong to them
            (Some(_), None) => true,
            // data are held back until the capture point is known
            (None, _) => end.fin || self.held_back.iter().any(|held| self.is_older(held, segment)),
        }
    }

    /// A packet of the SYN's sender that its connection cannot have sent.
    fn is_older(&self, held: &Segment, syn: &Segment) -> bool {
        let after = held.seq.wrapping_sub(syn.seq);
        (held.src, held.sport) == (syn.src, syn.sport) && !(1..=HELD_BACK_BYTES).contains(&after)
    }

    /// End at the capture point, once the handshake or the first packets have told.
    pub fn local_address(&self) -> Option<Address> {
        Some(self.ends[self.position?.local_end()?].address)
    }

    /// Ends whose identifications count the connection's packets, as far as seen.
    pub fn counting(&self) -> impl Iterator<Item = Address> + '_ {
        let counts = |end: &&End| end.direction.as_ref().is_some_and(|flow| flow.arrivals.counts());
        self.ends.iter().filter(counts).map(|end| end.address)
    }

    /// What other connections have shown of the hosts.
    pub fn trust(&mut self, counts: impl Fn(&Address) -> bool) {
        for end in &mut self.ends {
            end.counts = counts(&end.address);
        }
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
    pub fn ahead_ns(&self, segment: &Segment) -> Option<i64> {
        let (tsval, _) = segment.options.timestamps?;
        self.ends[self.end_of(segment)].stamps.ahead_ns(tsval, segment.time_ns)
    }

    pub fn needs_hint(&self) -> bool {
        self.position.is_none() && self.held_back.is_empty() && self.client.is_none()
    }

    /// Another connection has shown which host captures.
    pub fn hint(&mut self, is_local: impl Fn(&Address) -> bool) {
        let local = [is_local(&self.ends[0].address), is_local(&self.ends[1].address)];
        if local[0] != local[1] {
            self.position = Some(Position::at(usize::from(local[1]), 0.7));
        }
    }

    pub fn push(&mut self, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) {
        self.last_ns = self.last_ns.max(segment.time_ns);
        let end = self.end_of(segment);
        self.ends[end].seen = true;
        if let Some((tsval, _)) = segment.options.timestamps {
            self.ends[end].stamps.learn(tsval, segment.time_ns);
        }
        let copied = self.ends[end].last.is_copied_by(segment);
        if copied && segment.payload == 0 {
            return; // of data the flow counts the copies
        }
        if segment.has(flags::SYN) {
            self.on_syn(end, segment);
            if segment.payload == 0 {
                return;
            }
        }
        if self.position.is_none() && !self.find_position(end, segment, numbers, sink) {
            return;
        }
        self.process(end, segment, numbers, sink);
    }

    fn on_syn(&mut self, end: usize, segment: &Segment) {
        let answer = segment.has(flags::ACK);
        let known = self.ends[end].syn;
        let again = known.is_some() && self.ends[end].unwrap.is_some_and(|u| u.isn() == segment.seq);
        let since_s = (segment.time_ns - self.ends[end].syn_ns) as f64 / 1e9;
        if !again {
            // also a second SYN-ACK with another number: the later one counts
            self.ends[end].unwrap = Some(Unwrap::new(segment.seq));
        }
        let o = &segment.options;
        self.ends[end].syn = Some(Syn {
            mss: o.mss,
            window_scale: o.window_scale.map(|k| k.min(window_scale::LARGEST)),
            sack_permitted: o.sack_permitted,
            ace: marks::ace(segment.flags),
            copies: known.map_or(0, |s| s.copies) + u32::from(again),
            incomplete: o.incomplete,
        });
        self.ends[end].syn_ns = segment.time_ns;
        let earlier = std::mem::replace(&mut self.ends[end].syn_frame, segment.frame);
        if answer {
            self.ends[end].acknowledged = Some(segment.ack);
            self.synack_seen = self.client == Some(1 - end);
        } else {
            self.client = Some(end);
        }
        self.ends[end].before_data(segment);
        let end = &mut self.ends[end];
        if again && since_s > SYN_TIMER_S && end.direction.is_none() && end.repeated_syns.len() < REPEATED_SYNS {
            end.repeated_syns.push((*segment, since_s, earlier));
        }
    }

    /// The handshake's timer is the sender's too (RFC 6298, 5.7): the flow begins with its expiries.
    fn syn_expiries(&mut self, end: usize, sink: &mut dyn Sink) {
        let repeated = std::mem::take(&mut self.ends[end].repeated_syns);
        let Some(flow) = self.ends[end].direction.as_mut() else {
            return;
        };
        flow.sender.episodes.timeouts += repeated.len() as u64;
        for (n, (syn, since_s, earlier)) in repeated.iter().enumerate() {
            sink.event(EventRow {
                flow: flow.sender.flow,
                time_ns: syn.time_ns,
                kind: Kind::Timeout,
                reason: Reason::Syn,
                left: 0,
                right: 1,
                frame: Some(syn.frame),
                cause_frame: Some(*earlier),
                segments: n as u32,
                flight: 0.0,
                phase: Phase::Open,
                confidence: 0.95,
                value: Some(*since_s),
                ..EventRow::NONE
            });
        }
    }

    /// Decides where the capture was taken; false while the packet is held back.
    fn find_position(&mut self, end: usize, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) -> bool {
        if let (Some(client), true) = (self.client, self.synack_seen) {
            if end == client && !segment.has(flags::SYN) {
                let server_s = (self.ends[1 - client].syn_ns - self.ends[client].syn_ns) as f64 / 1e9;
                let client_s = (segment.time_ns - self.ends[1 - client].syn_ns) as f64 / 1e9;
                let halves = if client == 0 {
                    (client_s, server_s)
                } else {
                    (server_s, client_s)
                };
                self.position = Some(Position::from_halves(halves.0, halves.1));
                return true;
            }
            if end != client && segment.payload == 0 {
                return true; // a SYN-ACK sender speaking first; nothing to hold back
            }
        }
        let silent = || self.held_back.iter().all(|held| self.end_of(held) != end);
        if segment.has(flags::RST) && self.client == Some(end) && !self.synack_seen && silent() {
            // the answer to an ACK of an earlier connection on these ports (RFC 9293, 3.5.2); the SYN will come again
            self.held_back.clear();
            return false;
        }
        self.held_back.push(*segment);
        if self.held_back.len() >= HELD_BACK || segment.has(flags::RST) {
            self.release(numbers, sink);
        }
        false
    }

    /// Processes what was held back, with what it shows.
    fn release(&mut self, numbers: &mut Numbers, sink: &mut dyn Sink) {
        let held_back = std::mem::take(&mut self.held_back);
        if self.position.is_none() {
            self.position = Some(vantage::from_packets(&held_back, |s| self.end_of(s)));
        }
        for segment in &held_back {
            self.process(self.end_of(segment), segment, numbers, sink);
        }
    }

    fn process(&mut self, end: usize, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) {
        if segment.has(flags::RST) {
            self.reset = true;
            return;
        }
        self.ends[end].ce |= segment.ecn == 3;
        if segment.has(flags::ACK) && !segment.has(flags::SYN) {
            self.on_ack(1 - end, segment, sink);
            if !self.ends[1 - end].seen {
                self.on_ack_alone(1 - end, segment, numbers, sink);
            }
        }
        let unwrap = self.ends[end]
            .unwrap
            .get_or_insert_with(|| Unwrap::new(segment.seq.wrapping_sub(1)));
        let left = unwrap.advance(segment.seq) + u64::from(segment.has(flags::SYN));
        if segment.payload > 0 && self.ends[end].direction.is_none() {
            self.open_flow(end, segment, numbers);
            self.syn_expiries(end, sink);
        }
        if let Some(flow) = self.ends[end].direction.as_mut() {
            flow.on_segment(left, segment, sink);
            flow.arrivals.two_way = false;
        } else {
            self.ends[end].before_data(segment);
        }
        self.ends[end].fin |= segment.has(flags::FIN);
    }

    fn open_flow(&mut self, end: usize, segment: &Segment, numbers: &mut Numbers) {
        let position = self.position.unwrap_or(Position::UNKNOWN);
        let vantage = numbers.vantage.unwrap_or_else(|| position.vantage(end));
        let (own, peer) = (self.ends[end].syn, self.ends[1 - end].syn);
        let unwrap = self.ends[end]
            .unwrap
            .unwrap_or_else(|| Unwrap::new(segment.seq.wrapping_sub(1)));
        let start = if own.is_some() {
            unwrap.near(unwrap.isn()) + 1
        } else {
            unwrap.near(segment.seq)
        };
        let timestamps = segment.options.timestamps.is_some();
        let options = own.zip(peer).and_then(|(a, b)| Some(u32::from(a.mss?.min(b.mss?))));
        let smss = match options {
            // the MSS option does not count TCP options, the segment has to hold them (RFC 6691)
            Some(mss) => mss.saturating_sub(if timestamps { 12 } else { 0 }).max(1),
            None => smss_of(segment.payload),
        };
        let begun = self.ends[end].trail.take().and_then(|trail| trail.flow);
        let number = begun.unwrap_or_else(|| numbers.next());
        let mut sender = Sender::new(number, start, smss, vantage);
        sender.sack = own.zip(peer).is_some_and(|(a, b)| a.sack_permitted && b.sack_permitted);
        sender.timestamps = timestamps;
        sender.one_way = !self.ends[1 - end].seen;
        if let Some(rtt_s) = position.round_trip_s() {
            sender.rtt.seed(rtt_s);
        }
        sender.marks.feedback = self.feedback();
        let mut arrivals = Arrivals::new(self.ends[end].counts);
        if self.ends[end].shared || vantage == Vantage::Sender {
            arrivals.share_counter();
        }
        for id in self.ends[end].early_ids.into_iter().flatten() {
            arrivals.on_other(Some(id));
        }
        let mut acks = AckDelay::default();
        if vantage != Vantage::Sender {
            acks.set_way(position.halves_s[end].unwrap_or(0.0));
        }
        let scales = self.offered_scales(1 - end);
        self.ends[end].direction = Some(Box::new(Flow {
            sender,
            arrivals,
            acks,
            first_ns: 0,
            last_ns: segment.time_ns,
            offload: false,
            timestamps,
            smss_known: options.is_some(),
            acks_seen: false,
            newest_ack: start,
            zero_window: None,
            opened_ns: i64::MIN / 2,
            fin: None,
            zero_windows: 0,
            early: EarlyAcks::default(),
            scale: scales.exact().is_none().then(|| Box::new(WindowScale::new(scales))),
        }));
    }

    /// Shifts of the window field that `end` sends, as far as the SYNs say.
    fn offered_scales(&self, end: usize) -> window_scale::Range {
        let offer = |syn: Option<Syn>| syn.filter(|syn| !syn.incomplete).map(|syn| syn.window_scale);
        let own = &self.ends[end];
        window_scale::offered(
            offer(own.syn),
            offer(self.ends[1 - end].syn),
            own.acknowledged.is_some(),
        )
    }

    /// The shift, where the SYNs leave no other.
    fn window_scale(&self, end: usize) -> Option<u8> {
        self.offered_scales(end).exact()
    }

    /// How marks are echoed; `None` if the handshake was not seen.
    fn feedback(&self) -> Option<Feedback> {
        let client = self.client?;
        Some(marks::feedback(
            self.ends[client].syn?.ace,
            self.ends[1 - client].syn?.ace,
        ))
    }

    /// An ACK for the data of `data_end`.
    fn on_ack(&mut self, data_end: usize, segment: &Segment, sink: &mut dyn Sink) {
        let scale = self.window_scale(1 - data_end);
        let window = &mut self.ends[1 - data_end].window;
        *window = Some(window.map_or((segment.window, segment.window), |(a, b)| {
            (a.min(segment.window), b.max(segment.window))
        }));
        let Some(unwrap) = self.ends[data_end].unwrap else {
            return;
        };
        let Some(flow) = self.ends[data_end].direction.as_mut() else {
            return;
        };
        flow.arrivals.two_way |= segment.payload > 0;
        flow.on_ack(&unwrap, segment, scale, sink);
    }

    /// An ACK for data of an end that the capture has nothing of.
    fn on_ack_alone(&mut self, data_end: usize, segment: &Segment, numbers: &mut Numbers, sink: &mut dyn Sink) {
        let first = self.ends[1 - data_end].acknowledged.unwrap_or(segment.ack);
        let trail = self.ends[data_end]
            .trail
            .get_or_insert_with(|| Box::new(AckTrail::new(first)));
        trail.on_ack(segment, sink);
        // the one byte of a FIN is no data
        if trail.flow.is_none() && trail.acked_bytes() > 1 {
            trail.flow = Some(numbers.next());
        }
    }

    /// Gives out the flows of the connection.
    pub fn finish(&mut self, numbers: &mut Numbers, sink: &mut dyn Sink) {
        self.release(numbers, sink);
        for end in 0..2 {
            if let (None, Some(&(syn, ..))) = (&self.ends[end].direction, self.ends[end].repeated_syns.first()) {
                // an attempt that brought no data is a flow of expiries
                self.open_flow(end, &syn, numbers);
                self.syn_expiries(end, sink);
            }
            if let Some(mut flow) = self.ends[end].direction.take() {
                flow.finish(sink);
                sink.flow(self.row(end, &flow));
            }
            if let Some(trail) = self.ends[end].trail.take() {
                if let Some(number) = trail.flow {
                    let known = trail.finish(number, sink);
                    sink.flow(self.trail_row(end, known));
                }
            }
        }
    }

    /// What the connection knows of a flow whose data are not in the capture.
    fn trail_row(&self, end: usize, known: FlowRow) -> FlowRow {
        let (own, peer) = (&self.ends[end], &self.ends[1 - end]);
        let scales = self.offered_scales(1 - end);
        let segments = |w: u16| {
            scales
                .exact()
                .map(|k| (u64::from(w) << k) as f64 / f64::from(known.smss_bytes))
        };
        FlowRow {
            connection: self.number,
            window_scale: scales.exact(),
            window_scale_low: scales.low,
            window_scale_high: scales.high,
            rwnd_max: peer.window.and_then(|(_, most)| segments(most)),
            rwnd_min: peer.window.and_then(|(least, _)| segments(least)),
            src: own.address,
            src_port: own.port,
            dst: peer.address,
            dst_port: peer.port,
            closed: self.closed(),
            ..known
        }
    }

    fn row(&self, end: usize, flow: &Flow) -> FlowRow {
        let (own, peer) = (&self.ends[end], &self.ends[1 - end]);
        let position = self.position.unwrap_or(Position::UNKNOWN);
        let syns = own.syn.zip(peer.syn);
        let offered = self.offered_scales(1 - end);
        let scales = flow.scale.as_ref().map_or(offered, |scale| scale.range());
        let scale = scales.exact();
        let sender = &flow.sender;
        let scaled = |w: u16| scale.map(|k| (u64::from(w) << k) as f64 / f64::from(sender.smss));
        let (arrivals, fates, totals, rtt) = (&flow.arrivals, &sender.fates, &sender.totals, &sender.rtt);
        let (lost, marks) = (fates.lost, &sender.marks);
        FlowRow {
            flow: sender.flow,
            connection: self.number,
            src: own.address,
            src_port: own.port,
            dst: peer.address,
            dst_port: peer.port,
            first_ns: if flow.first_ns == 0 {
                flow.last_ns
            } else {
                flow.first_ns
            },
            last_ns: flow.last_ns.max(flow.first_ns),
            vantage: sender.vantage,
            vantage_confidence: position.confidence,
            vantage_fraction: position.fraction(end),
            handshake_rtt_s: position.round_trip_s().filter(|_| syns.is_some()),
            mss_bytes: syns.and_then(|_| flow.smss_known.then_some(sender.smss)),
            smss_bytes: sender.smss,
            window_scale: offered.exact(),
            window_scale_low: scales.low,
            window_scale_high: scales.high,
            sack_permitted: match syns {
                Some((a, b)) => Some(a.sack_permitted && b.sack_permitted),
                None => sender.sack.then_some(true),
            },
            timestamps: flow.timestamps,
            ecn: marks.feedback.map(|feedback| feedback != Feedback::None),
            ecn_feedback: marks.feedback,
            offload: flow.offload,
            stamp_tick_s: (own.stamps.tick_ns > 0).then_some(own.stamps.tick_ns as f64 / 1e9),
            acks_seen: flow.acks_seen,
            one_way: !peer.seen,
            early_acks: (flow.early.segments, flow.early.longest_ns),
            closed: self.closed(),
            data_segments: arrivals.segments,
            sent_segments: arrivals.segments - arrivals.network_copies + fates.lost_upstream,
            data_bytes: arrivals.bytes,
            unique_bytes: arrivals.unique_bytes,
            acked_bytes: totals.acked_bytes,
            retransmitted_segments: arrivals.resent_segments,
            retransmitted_bytes: arrivals.resent_bytes,
            lost_segments: lost,
            lost_low: lost.saturating_sub(fates.doubtful + fates.unproven),
            lost_high: lost + sender.reordering.doubtful_losses,
            lost_upstream: fates.lost_upstream,
            spurious_retransmissions: fates.spurious,
            loss_events: fates.loss_events.count,
            fast_recoveries: sender.episodes.recoveries,
            timeouts: sender.episodes.timeouts,
            tail_loss_probes: sender.episodes.probes,
            reorder_events: sender.reordering.events,
            reordered_segments: sender.reordering.segments,
            reordered_low: sender.reordering.segments - sender.reordering.doubtful,
            reordered_high: sender.reordering.segments + fates.doubtful,
            duplicated_segments: arrivals.copies,
            zero_window_episodes: flow.zero_windows,
            ce_segments: marks.ce_segments,
            ece_acks: marks.feedback.map(|_| marks.ece_acks),
            ace_marks: marks.feedback.map(|_| marks.ace_marks),
            mark_events: match marks.feedback {
                Some(Feedback::None) => Some(0),
                Some(_) if flow.acks_seen => Some(marks.echoed_events),
                _ => (sender.vantage != Vantage::Sender).then_some(marks.arrived_events),
            },
            cwr_segments: marks.feedback.map(|_| marks.cwr_segments),
            missing_segments: fates.missing,
            acks: totals.acks,
            duplicate_acks: totals.duplicate_acks,
            rtt_samples: rtt.samples,
            rtt_mean_s: rtt.mean_s().map(|mean| {
                if totals.measured_s > 0.0 {
                    totals.srtt_integral / totals.measured_s
                } else {
                    mean
                }
            }),
            rtt_sd_s: rtt.sd_s(),
            rtt_min_s: rtt.min_s.is_finite().then_some(rtt.min_s),
            rtt_p95_s: rtt.quantile_s(0.95),
            rto_s: (totals.measured_s > 0.0).then(|| totals.rto_integral / totals.measured_s),
            flight_max: if sender.one_way { f64::NAN } else { totals.flight_max },
            rwnd_max: peer.window.and_then(|(_, most)| scaled(most)),
            rwnd_min: peer.window.and_then(|(least, _)| scaled(least)),
            limited_share: if sender.one_way {
                f64::NAN
            } else {
                sender.rounds.limited as f64 / sender.rounds.count.max(1) as f64
            },
            busy_s: if sender.one_way { f64::NAN } else { totals.busy_s },
        }
    }
}

/// SMSS guessed from the length of a segment, for connections whose SYNs are not in the capture.
fn smss_of(payload: u32) -> u32 {
    let multiple = COMMON_SMSS
        .iter()
        .copied()
        .find(|&m| payload > m && payload.is_multiple_of(m));
    multiple.unwrap_or(payload.max(DEFAULT_SMSS))
}

impl Flow {
    fn on_segment(&mut self, left: u64, segment: &Segment, sink: &mut dyn Sink) {
        if self.sender.vantage != Vantage::Sender {
            self.deliver_acks(left, segment, sink);
        }
        let right = left + u64::from(segment.payload);
        let passing = Passing {
            left,
            right,
            time_ns: segment.time_ns,
            frame: segment.frame,
            tsval: segment.options.timestamps.map(|(tsval, _)| tsval),
            ip_id: segment.ip_id,
            checksum: segment.checksum,
            ttl: segment.ttl,
        };
        if segment.payload == 0 {
            self.arrivals.on_acknowledgement(left, segment.ip_id, &mut self.sender);
            if self.is_empty_probe(&passing, segment) {
                self.probe_event(&passing, sink);
            } else if segment.has(flags::FIN) {
                self.on_fin(passing, sink);
            }
            return;
        }
        if self.is_probe(&passing) {
            self.arrivals.on_other(segment.ip_id);
            self.probe_event(&passing, sink);
            return;
        }
        if !self.smss_known && segment.payload > self.sender.smss {
            let guess = smss_of(segment.payload);
            if !segment.payload.is_multiple_of(self.sender.smss) || self.sender.smss < DEFAULT_SMSS * 2 {
                self.sender.smss = guess.max(self.sender.smss);
            }
        }
        self.offload |= segment.payload > self.sender.smss;
        if left >= self.sender.nxt {
            self.early.on_new_data(right, segment.time_ns);
            if let Some(scale) = &mut self.scale {
                scale.on_data(right);
            }
        }
        if self.first_ns == 0 {
            self.first_ns = segment.time_ns;
        }
        self.last_ns = self.last_ns.max(segment.time_ns);
        let before = (self.arrivals.segments, self.arrivals.copies);
        self.arrivals.on_data(passing, &mut self.sender, sink);
        if segment.ecn == marks::CE || segment.has(flags::CWR) {
            self.on_marked(&passing, segment, before, sink);
        }
    }

    /// Data that came marked, or that answers a mark; `before`: segments and copies before it.
    fn on_marked(&mut self, passing: &Passing, segment: &Segment, before: (u64, u64), sink: &mut dyn Sink) {
        let (range, state) = ((passing.left, passing.right), self.sender.state());
        let (time_ns, frame) = (passing.time_ns, passing.frame);
        let count = (self.arrivals.segments - before.0) as u32;
        let marks = &mut self.sender.marks;
        if segment.ecn == marks::CE && count > 0 {
            marks.on_ce(time_ns, frame, range, count, state, sink);
        }
        if self.arrivals.copies == before.1 {
            marks.on_data(time_ns, frame, range, marks::ace(segment.flags), state, sink);
        }
    }

    /// A FIN without data. It takes a sequence number and is sent again like data (RFC 9293, 3.4), but is no data segment.
    fn on_fin(&mut self, passing: Passing, sink: &mut dyn Sink) {
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
            frame: Some(passing.frame),
            cause_frame: Some(earlier.frame),
            segments: 0,
            flight: self.sender.flight(),
            phase: self.sender.phase(),
            confidence: 0.9,
            value: Some((passing.time_ns - earlier.time_ns) as f64 / 1e9),
            ..EventRow::NONE
        });
    }

    /// Keep-alive (RFC 9293, 3.8.4) or zero-window probe (3.8.6.1): one byte that carries nothing new or nothing wanted.
    fn is_probe(&self, passing: &Passing) -> bool {
        let one_byte = passing.right - passing.left == 1;
        let idle = self.sender.una == self.sender.nxt;
        one_byte
            && (idle && passing.left + 1 == self.sender.nxt
                || self.window_closed(passing.time_ns) && passing.left <= self.sender.nxt)
    }

    /// For the sender the window is closed until the update has come to it.
    fn window_closed(&self, time_ns: i64) -> bool {
        self.zero_window.is_some() || time_ns < self.opened_ns.saturating_add(self.acks.way_ns)
    }

    /// The same without data, as Linux does it: only the number, one below the next, calls for an answer.
    fn is_empty_probe(&self, passing: &Passing, segment: &Segment) -> bool {
        let idle_ns = passing.time_ns - self.sender.last_sent_ns;
        let below = passing.left < self.sender.nxt;
        let number_only = segment.flags & (flags::FIN | flags::SYN) == 0 && below && self.first_ns != 0;
        number_only
            && (passing.left + 1 == self.sender.nxt && idle_ns >= KEEP_ALIVE_NS
                || passing.left + 1 == self.sender.una && self.window_closed(passing.time_ns))
    }

    fn probe_event(&self, passing: &Passing, sink: &mut dyn Sink) {
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
            frame: Some(passing.frame),
            segments: u32::from(passing.right > passing.left),
            flight: self.sender.flight(),
            phase: self.sender.phase(),
            confidence: 0.9,
            ..EventRow::NONE
        });
    }

    fn on_ack(&mut self, unwrap: &Unwrap, segment: &Segment, scale: Option<u8>, sink: &mut dyn Sink) {
        self.acks_seen = true;
        let at = unwrap.near(segment.ack);
        let nxt = self.sender.nxt;
        // the FIN's number is no data; what was acknowledged but never seen is not followed
        let acknowledged = at.min(nxt);
        if at > nxt {
            self.early.on_ack(at, segment.time_ns);
        }
        let scale = match &mut self.scale {
            Some(watched) => {
                watched.on_ack(at, segment);
                watched.range().exact()
            }
            None => scale,
        };
        let mut ack = Ack {
            time_ns: segment.time_ns,
            frame: segment.frame,
            ack: acknowledged,
            window: scale.map(|k| u64::from(segment.window) << k),
            tsecr: segment.options.timestamps.map(|(_, tsecr)| tsecr),
            pure: segment.payload == 0 && !segment.has(flags::FIN),
            sack: [(0, 0); 4],
            sack_len: segment.options.sack_len,
            ace: marks::ace(segment.flags),
        };
        for (slot, &(left, right)) in ack.sack.iter_mut().zip(segment.options.sack_blocks()) {
            *slot = (unwrap.near(left), unwrap.near(right));
        }
        if acknowledged > self.sender.una {
            self.last_ns = self.last_ns.max(segment.time_ns);
        }
        self.on_window(segment, sink);
        if self.sender.vantage == Vantage::Sender {
            self.sender.on_ack(&ack, sink);
        } else {
            if self.sender.marks.listens(ack.ace) {
                // the receiver's ACKs come in its order: the echo is read where it passes
                let state = self.sender.state();
                let progress = ack.ack > self.newest_ack || ack.sack_len > 0;
                self.sender.marks.on_ack(&ack.echo(progress), state, sink);
                self.newest_ack = self.newest_ack.max(ack.ack);
            }
            self.acks.push(ack, segment.options.timestamps.map(|(tsval, _)| tsval));
        }
    }

    fn on_window(&mut self, segment: &Segment, sink: &mut dyn Sink) {
        match (segment.window, self.zero_window) {
            (0, None) => {
                self.zero_window = Some((segment.time_ns, segment.frame));
                self.zero_windows += 1;
            }
            (1.., Some(_)) => {
                self.opened_ns = segment.time_ns;
                self.end_zero_window(segment.time_ns, Some(segment.frame), sink);
            }
            _ => {}
        }
    }

    fn end_zero_window(&mut self, time_ns: i64, frame: Option<u64>, sink: &mut dyn Sink) {
        let Some((start_ns, start_frame)) = self.zero_window.take() else {
            return;
        };
        sink.event(EventRow {
            flow: self.sender.flow,
            time_ns: start_ns,
            kind: Kind::ZeroWindow,
            reason: Reason::Advertised,
            left: offset(self.sender.una),
            right: offset(self.sender.nxt),
            frame: Some(start_frame),
            cause_frame: frame,
            segments: 0,
            flight: self.sender.flight(),
            phase: self.sender.phase(),
            confidence: 1.0,
            value: Some((time_ns - start_ns) as f64 / 1e9),
            ..EventRow::NONE
        });
    }

    /// Hands the sender the ACKs that had reached it before it sent what passes now.
    fn deliver_acks(&mut self, left: u64, segment: &Segment, sink: &mut dyn Sink) {
        let mut answer = Answer {
            time_ns: segment.time_ns,
            tsecr: segment.options.timestamps.map(|(_, tsecr)| tsecr),
            left,
            nxt: self.sender.nxt,
            silence_ns: segment.time_ns - self.sender.last_sent_ns,
            data: segment.payload > 0,
            newest: self.arrivals.is_newest(segment.ip_id),
        };
        self.acks.on_resend(&answer);
        while let Some(ack) = self.acks.next(&answer) {
            self.sender.on_ack(&ack, sink);
            answer.nxt = self.sender.nxt;
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        for ack in self.acks.drain().collect::<Vec<_>>() {
            self.sender.on_ack(&ack, sink);
        }
        self.end_zero_window(self.last_ns, None, sink);
        self.sender.finish(sink);
    }
}
