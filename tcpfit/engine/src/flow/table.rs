//! The flow table: every connection of a capture by its addresses and ports, settled and freed when it is over.

use crate::flow::ahead::{self, Ahead};
use crate::flow::connection::{Connection, Numbers};
use crate::flow::index::Index;
use crate::flow::listing::{Listing, Name};
use crate::flow::packed::{Packed, Store};
use crate::prefetch::prefetch;
use crate::quality::clock::{Clock, Verdict};
use crate::rows::{Sink, Vantage};
use crate::segment::{flags, Address, Segment};
use foldhash::fast::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;

/// Packets of a closed connection are known as such for so long (RFC 9293's 2 MSL is longer than needed here).
const LINGER_NS: i64 = 10_000_000_000;
/// Of it, how long the connection itself stays once each end has the other's FIN: its last segments sent again, by timers
/// that the lost answer let run out, and copies that were still under way come within it.
const OVER_NS: i64 = 1_000_000_000;
/// A connection without a packet for this long is settled; what comes later is followed as a new one.
const IDLE_NS: i64 = 600_000_000_000;
/// Between two looks for idle connections, in time of the capture; what one has in reserve that was quiet for so long is
/// given back.
const SWEEP_NS: i64 = 60_000_000_000;
/// A counter went on if at most so many packets lie between two that were seen.
const NEXT: u16 = 8;
/// Turns at which a counter must have gone on: by chance once in 8,000 each.
const TURNS_NEEDED: u32 = 3;
/// Hosts remembered as being, or not being, the capturing one.
const HOSTS: usize = 65_536;

/// Connections that are looked for without the index.
const RECENT: usize = 64;

/// Connections open at once beyond which segments wait for what is known of theirs: of fewer a cache holds enough.
const MANY: usize = 16384;

/// Connections open at once beyond which new ones are kept packed: what is known of fewer is near enough.
pub const PACKED_FROM: usize = 2048;

/// Connections followed at once, unless the user says otherwise: some 150 MB where none carries data.
pub const MAX_FLOWS: usize = 1 << 18;
/// Of these so many parts are settled at a time when there is no room.
const ROOM: usize = 4;

/// What the user can override.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where the capture was taken; `None` infers it.
    pub vantage: Option<Vantage>,
    /// Connections followed at once; at least 1.
    pub max_flows: usize,
    /// Connections open at once beyond which new ones are kept packed; results are the same, only memory and time are not.
    pub packed_from: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            vantage: None,
            max_flows: MAX_FLOWS,
            packed_from: PACKED_FROM,
        }
    }
}

/// Identities of VLANs and tunnels remembered, to find the other direction of a connection under another one.
const AROUNDS: usize = 8;

/// Hashes the ends of a connection, seeded because captures are untrusted input: a folded multiplication an end, as in
/// foldhash, and their sum, so that both directions have one hash and nothing asks which it is.
struct Seed([u64; 3]);

impl Default for Seed {
    fn default() -> Self {
        let random = RandomState::default();
        Self([0, 1, 2].map(|n: u64| random.hash_one(n)))
    }
}

impl Seed {
    #[inline]
    fn hash(&self, a: Name, b: Name, around: u32) -> u32 {
        let sum = self
            .end(a)
            .wrapping_add(self.end(b))
            .wrapping_add(u64::from(around) << 32);
        fold(sum ^ self.0[2], self.0[0] | 1) as u32
    }

    #[inline]
    fn of(&self, segment: &Segment) -> u32 {
        self.hash(
            (segment.src, segment.sport),
            (segment.dst, segment.dport),
            segment.around,
        )
    }

    #[inline]
    fn end(&self, (address, port): Name) -> u64 {
        let address = u128::from_ne_bytes(address);
        let (low, high) = (address as u64, (address >> 64) as u64);
        fold(low ^ self.0[0] ^ u64::from(port) << 48, high ^ self.0[1])
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// What connections have shown of a host.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    /// Connections at whose end the capture was taken.
    local: u32,
    /// Connections whose identifications counted their packets.
    counts: u32,
    /// Last packet with an identification: its connection and the identification.
    last: Option<(u32, u16)>,
    /// Times another connection sent the next packet, and those at which it went on counting.
    turns: u32,
    continued: u32,
}

impl Host {
    /// Looks whether one counter serves several connections of the host. True once it is sure.
    fn shares_counter(&mut self, connection: u32, id: u16) -> bool {
        if let Some((before, last)) = self.last.filter(|&(before, _)| before != connection) {
            debug_assert_ne!(before, connection);
            self.turns = self.turns.saturating_add(1);
            self.continued += u32::from((1..=NEXT).contains(&id.wrapping_sub(last)));
        }
        self.last = Some((connection, id));
        self.continued >= TURNS_NEEDED && self.continued * 2 > self.turns
    }
}

/// Where a connection is kept.
enum Slot {
    Free,
    Live(Box<Connection>),
    Packed(Box<Packed>),
    Past(Box<Past>),
}

impl Slot {
    /// What the table goes by, also of a connection that is settled.
    #[inline]
    fn known(&self) -> Option<&Listing> {
        match self {
            Self::Live(connection) => Some(&connection.listing),
            Self::Packed(packed) => Some(&packed.listing),
            Self::Past(past) => Some(&past.listing),
            Self::Free => None,
        }
    }

    /// What the table goes by, of a connection that is followed.
    #[inline]
    fn listing(&self) -> Option<&Listing> {
        self.known().filter(|_| !matches!(self, Self::Past(_)))
    }

    #[inline]
    fn live(&self) -> Option<&Connection> {
        match self {
            Self::Live(connection) => Some(connection),
            _ => None,
        }
    }

    /// The end that sent the segment, if nothing of it is in the capture yet.
    fn lacks(&self, segment: &Segment) -> Option<usize> {
        match self {
            Self::Live(connection) => connection.lacks(segment),
            Self::Packed(packed) => packed.lacks(segment),
            _ => None,
        }
    }

    /// Some flow of it has begun.
    fn carries_data(&self) -> bool {
        match self {
            Self::Live(connection) => connection.carries_data(),
            Self::Packed(packed) => packed.carries_data(),
            _ => false,
        }
    }

    /// Asks for what is known of the connection.
    #[inline]
    fn prefetch(&self) {
        match self {
            Self::Live(connection) => prefetch(&**connection),
            Self::Packed(packed) => prefetch(&**packed),
            _ => {}
        }
    }

    /// Asks for the part of it that the segment is for.
    #[inline]
    fn prefetch_for(&self, segment: &Segment, store: &Store) {
        match self {
            Self::Live(connection) => connection.prefetch(segment),
            Self::Packed(packed) => packed.prefetch(store),
            _ => {}
        }
    }
}

/// A connection that was settled, for as long as late packets could be taken for a new one.
struct Past {
    listing: Listing,
    /// Initial sequence number of each end.
    isns: [Option<u32>; 2],
}

impl Past {
    /// The segment is a SYN that opens another connection: another initial sequence number.
    fn is_reused_by(&self, segment: &Segment) -> bool {
        let isn = self.listing.sender(segment).and_then(|end| self.isns[end]);
        segment.has(flags::SYN) && !segment.has(flags::ACK) && isn != Some(segment.seq)
    }
}

/// Follows every connection of a capture. The same tracker serves every reader.
pub struct Tracker {
    numbers: Numbers,
    next_connection: u32,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots of connections that are followed.
    live: usize,
    index: Index,
    seed: Seed,
    /// Where packed connections keep their segments.
    store: Store,
    /// Connections of the last segments, each at a place that its ports give: the next one is often of these.
    recent: [Recent; RECENT],
    /// Closed connections, those that are over, and those that are settled: each in the order in which they are due.
    closing: VecDeque<Closing>,
    over: VecDeque<Closing>,
    past: VecDeque<Closing>,
    /// When the first of them is due, or the next look for idle connections.
    next_due_ns: i64,
    hosts: Hosts,
    /// Identities of what was around the latest connections, the newest last.
    arounds: Vec<u32>,
    next_sweep_ns: i64,
    clock: Clock,
    /// Segments that are not followed yet.
    ahead: Ahead,
    max_flows: usize,
    packed_from: usize,
    /// Connections settled to make room for others.
    crowded_out: u64,
}

/// A connection that has ended, and until when it stays as it is.
#[derive(Clone, Copy)]
struct Closing {
    due_ns: i64,
    slot: u32,
    number: u32,
}

/// Where a connection is whose ports have that sum.
#[derive(Clone, Copy, Default)]
struct Recent {
    ports: u32,
    slot: u32,
}

/// What is known of hosts, by address; connections keep the numbers of theirs.
#[derive(Default)]
struct Hosts {
    index: HashMap<Address, u32, RandomState>,
    list: Vec<Host>,
}

impl Hosts {
    /// Number of the host, a new one if need be; `None` where the table is full.
    fn number(&mut self, address: Address) -> Option<u32> {
        if let Some(&number) = self.index.get(&address) {
            return Some(number);
        }
        if self.list.len() >= HOSTS {
            return None;
        }
        let number = self.list.len() as u32;
        self.list.push(Host::default());
        self.index.insert(address, number);
        Some(number)
    }

    /// Looks at a packet of the connection whether one counter serves several connections of the host that sent it.
    #[inline]
    fn shares_counter(&mut self, listing: &Listing, end: usize, segment: &Segment) -> bool {
        match (listing.hosts[end], segment.ip_id) {
            (Some(host), Some(id @ 1..)) => self.list[host as usize].shares_counter(listing.number, id),
            _ => false,
        }
    }

    fn get(&self, address: &Address) -> Option<&Host> {
        self.list.get(*self.index.get(address)? as usize)
    }
}

impl Default for Tracker {
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

impl Tracker {
    pub fn new(settings: Settings) -> Self {
        Self {
            numbers: Numbers {
                next_flow: 0,
                vantage: settings.vantage,
                overfull: 0,
            },
            next_connection: 0,
            slots: Vec::new(),
            free: Vec::new(),
            live: 0,
            index: Index::default(),
            seed: Seed::default(),
            store: Store::default(),
            recent: [Recent::default(); RECENT],
            closing: VecDeque::new(),
            over: VecDeque::new(),
            past: VecDeque::new(),
            next_due_ns: i64::MIN,
            hosts: Hosts::default(),
            arounds: Vec::new(),
            next_sweep_ns: i64::MIN,
            clock: Clock::default(),
            ahead: Ahead::default(),
            max_flows: settings.max_flows.max(1),
            packed_from: settings.packed_from,
            crowded_out: 0,
        }
    }

    /// Takes the next segment of the capture.
    #[inline(always)]
    pub fn push(&mut self, segment: &Segment, sink: &mut impl Sink) {
        match self.clock.plain_ns(segment.time_ns) {
            Some(time_ns) if time_ns == segment.time_ns => self.take(segment, sink),
            Some(time_ns) => self.take(&Segment { time_ns, ..*segment }, sink),
            None => self.push_odd(segment, sink),
        }
    }

    /// Follows the segment: at once where few connections are open, whose state is near.
    #[inline(always)]
    fn take(&mut self, segment: &Segment, sink: &mut impl Sink) {
        if self.live < MANY {
            if self.ahead.waits() {
                self.catch_up(sink);
            }
            self.follow(segment, sink);
        } else {
            self.look_ahead(segment, sink);
        }
    }

    /// Asks for what this segment and those before it will need next, and follows the one that has waited longest.
    #[inline(never)]
    fn look_ahead(&mut self, segment: &Segment, sink: &mut impl Sink) {
        let hash = self.seed.of(segment);
        self.index.prefetch(hash);
        if self.ahead.is_full() {
            self.follow_oldest(sink);
        }
        self.ahead.push(segment, hash);
        if let Some(waiting) = self.ahead.back(ahead::PLACE) {
            // some connection of this hash: whether it is the segment's shows when it is followed
            if let Some(slot) = self.index.find(waiting.hash, Some) {
                waiting.slot = slot;
                prefetch(&self.slots[slot as usize]);
            }
        }
        if let Some(waiting) = self.ahead.back(ahead::CONNECTION) {
            if let Some(slot) = self.slots.get(waiting.slot as usize) {
                slot.prefetch();
            }
        }
        if let Some(waiting) = self.ahead.back(ahead::FLOW) {
            if let Some(slot) = self.slots.get(waiting.slot as usize) {
                slot.prefetch_for(&waiting.segment, &self.store);
            }
        }
    }

    /// Follows the segment that has waited longest; false if there is none.
    #[inline]
    fn follow_oldest(&mut self, sink: &mut impl Sink) -> bool {
        let mut ahead = std::mem::take(&mut self.ahead);
        let oldest = ahead.pop();
        if let Some(waiting) = oldest {
            self.remember(waiting.slot, &waiting.segment);
            self.follow(&waiting.segment, sink);
        }
        let any = oldest.is_some();
        self.ahead = ahead;
        any
    }

    /// Follows what waits.
    #[cold]
    fn catch_up(&mut self, sink: &mut impl Sink) {
        while self.follow_oldest(sink) {}
    }

    /// A segment whose time cannot be taken as it is, or waits for others.
    #[cold]
    fn push_odd(&mut self, segment: &Segment, sink: &mut impl Sink) {
        self.catch_up(sink);
        let found = self.find(segment);
        let ahead_ns = found.and_then(|(slot, _)| self.unpacked(slot, sink)?.ahead_ns(segment));
        if self.clock.take(segment, ahead_ns) == Verdict::Release {
            for segment in self.clock.release() {
                self.follow(&segment, sink);
            }
        }
    }

    /// What was odd about the capture's clock, and bounds that were reached, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut sentences = self.clock.sentences();
        if self.numbers.overfull > 0 {
            sentences.push(format!(
                "{} flows had more than 1048576 segments outstanding, beyond any window: the oldest were taken for \
                 acknowledged",
                self.numbers.overfull
            ));
        }
        if self.crowded_out > 0 {
            sentences.push(format!(
                "more than {} connections were open at once: {} of them, those without data or quiet the longest, were \
                 settled early; --max-flows follows more",
                self.max_flows, self.crowded_out
            ));
        }
        sentences
    }

    #[inline]
    fn follow(&mut self, segment: &Segment, sink: &mut impl Sink) {
        let now_ns = segment.time_ns;
        if now_ns >= self.next_due_ns {
            self.on_time(now_ns, sink);
        }
        let handshake = segment.has(flags::SYN);
        let (slot, end) = match self.find(segment) {
            Some((slot, end)) if !handshake || !self.is_reused(slot, end, segment, sink) => (slot, end),
            Some((slot, _)) => {
                self.settle(slot, sink);
                self.remove(slot);
                (self.open(segment), 0)
            }
            None => self.other_way(segment, sink).unwrap_or_else(|| {
                if self.live >= self.max_flows {
                    self.make_room(sink);
                }
                (self.open(segment), 0)
            }),
        };
        self.remember(slot, segment);
        let place = slot as usize;
        if matches!(self.slots[place], Slot::Packed(_)) && self.keep_packed(slot, end, segment, sink) {
            return;
        }
        let Slot::Live(connection) = &mut self.slots[place] else {
            return; // late, of a connection that is settled
        };
        if !handshake && connection.needs_hint() {
            let hosts = &self.hosts;
            connection.hint(|address| hosts.get(address).is_some_and(|host| host.local > 0));
        }
        if self.hosts.shares_counter(&connection.listing, end, segment) {
            connection.share_counter(end);
        }
        connection.push(end, segment, &mut self.numbers, sink);
        let listing = &connection.listing;
        if connection.closed() && (!listing.lingers || connection.is_over() && !listing.ends_soon) {
            self.linger(slot, now_ns);
        }
    }

    /// Adds the segment to its packed connection; false if that could not be, and is no longer packed.
    #[inline(never)]
    fn keep_packed(&mut self, slot: u32, end: usize, segment: &Segment, sink: &mut dyn Sink) -> bool {
        let place = &mut self.slots[slot as usize];
        let Slot::Packed(packed) = place else { return false };
        if packed.is_unusual(end, segment) {
            unpacked(place, &mut self.store, &mut self.numbers, sink);
            return false;
        }
        let shared = self.hosts.shares_counter(&packed.listing, end, segment);
        packed.push(end, segment, shared, &mut self.numbers, &mut self.store);
        if packed.closed() && (!packed.listing.lingers || packed.is_over() && !packed.listing.ends_soon) {
            self.linger(slot, segment.time_ns);
        }
        true
    }

    /// What is due by the time of the capture.
    #[cold]
    fn on_time(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        self.settle_closed(now_ns, sink);
        if now_ns >= self.next_sweep_ns {
            self.sweep(now_ns, sink);
        }
        let first_ns = |queue: &VecDeque<Closing>| queue.front().map_or(i64::MAX, |first| first.due_ns);
        let queues = [&self.closing, &self.over, &self.past].map(first_ns);
        self.next_due_ns = queues.into_iter().fold(self.next_sweep_ns, i64::min);
    }

    /// The SYN opens another connection than the slot's.
    fn is_reused(&mut self, slot: u32, end: usize, segment: &Segment, sink: &mut dyn Sink) -> bool {
        match &self.slots[slot as usize] {
            Slot::Packed(packed) if packed.expects(end, segment) => false,
            Slot::Past(past) => past.is_reused_by(segment),
            _ => self.unpacked(slot, sink).is_some_and(|c| c.is_reused_by(segment)),
        }
    }

    /// The slot's connection, if it is followed; packed it is no longer.
    fn unpacked(&mut self, slot: u32, sink: &mut dyn Sink) -> Option<&mut Connection> {
        unpacked(&mut self.slots[slot as usize], &mut self.store, &mut self.numbers, sink)
    }

    /// Lets a connection that has just closed wait for late packets; less long once it is over.
    #[cold]
    fn linger(&mut self, slot: u32, now_ns: i64) {
        let (listing, local, over) = match &mut self.slots[slot as usize] {
            Slot::Live(connection) => {
                if !connection.listing.lingers {
                    connection.shrink();
                }
                let (local, over) = (connection.local_end(), connection.is_over());
                (&mut connection.listing, local, over)
            }
            Slot::Packed(packed) => {
                let (local, over) = (packed.local_end(), packed.is_over());
                (&mut packed.listing, local, over)
            }
            _ => return,
        };
        if !std::mem::replace(&mut listing.lingers, true) {
            if let Some(host) = local.and_then(|end| listing.hosts[end]) {
                self.hosts.list[host as usize].local += 1;
            }
        }
        listing.ends_soon = over;
        let (queue, due_ns) = if over {
            (&mut self.over, now_ns + OVER_NS)
        } else {
            (&mut self.closing, now_ns + LINGER_NS)
        };
        let number = listing.number;
        queue.push_back(Closing { due_ns, slot, number });
        self.next_due_ns = self.next_due_ns.min(due_ns);
    }

    /// A connection whose other direction comes through another VLAN or tunnel: switches tag, and paths encapsulate, one
    /// way only. It has not seen this direction yet.
    fn other_way(&mut self, segment: &Segment, sink: &mut dyn Sink) -> Option<(u32, usize)> {
        if segment.around == 0 && self.arounds.is_empty() {
            return None;
        }
        let waits = |slot: u32| Some((slot, self.slots.get(slot as usize)?.lacks(segment)?));
        let (slot, end) = self.arounds.iter().rev().chain(&[0]).find_map(|&around| {
            let hash = self
                .seed
                .hash((segment.src, segment.sport), (segment.dst, segment.dport), around);
            self.index.find(hash, waits)
        })?;
        self.unpacked(slot, sink)?.listing.arounds[1] = segment.around;
        self.enter(slot, segment);
        Some((slot, end))
    }

    /// The table's entry under the segment's name.
    fn enter(&mut self, slot: u32, segment: &Segment) {
        self.index.insert(self.seed.of(segment), slot);
    }

    /// Slot of the segment's connection, and the end that sent the segment.
    #[inline(always)]
    fn find(&self, segment: &Segment) -> Option<(u32, usize)> {
        let ports = ports(segment);
        let recent = self.recent[ports as usize % RECENT];
        let known = if recent.ports == ports {
            self.at(recent.slot, segment)
        } else {
            None
        };
        known.or_else(|| self.look_up(segment))
    }

    #[inline(never)]
    fn look_up(&self, segment: &Segment) -> Option<(u32, usize)> {
        self.index.find(self.seed.of(segment), |slot| self.at(slot, segment))
    }

    /// The slot and the end that sent the segment, if that connection is there.
    #[inline]
    fn at(&self, slot: u32, segment: &Segment) -> Option<(u32, usize)> {
        let end = self.slots.get(slot as usize)?.known()?.sender(segment)?;
        Some((slot, end))
    }

    /// The segment's connection seems to be at the slot.
    #[inline]
    fn remember(&mut self, slot: u32, segment: &Segment) {
        let ports = ports(segment);
        self.recent[ports as usize % RECENT] = Recent { ports, slot };
    }

    fn open(&mut self, segment: &Segment) -> u32 {
        if segment.around != 0 {
            self.arounds.retain(|&around| around != segment.around);
            if self.arounds.len() == AROUNDS {
                self.arounds.remove(0);
            }
            self.arounds.push(segment.around);
        }
        let hosts = [self.hosts.number(segment.src), self.hosts.number(segment.dst)];
        let counts = hosts.map(|host| host.is_some_and(|number| self.hosts.list[number as usize].counts > 1));
        let listing = Listing::new(self.next_connection, hosts, segment);
        let opened = if self.live >= self.packed_from && Packed::begins_with(segment) {
            Slot::Packed(Box::new(Packed::new(listing, segment, counts)))
        } else {
            Slot::Live(Box::new(Connection::new(listing, counts)))
        };
        self.next_connection += 1;
        self.live += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = opened;
                slot
            }
            None => {
                self.slots.push(opened);
                (self.slots.len() - 1) as u32
            }
        };
        self.enter(slot, segment);
        slot
    }

    /// Gives out the slot's connection; `Past` is what stays of it, until it is removed.
    fn settle(&mut self, slot: u32, sink: &mut dyn Sink) {
        let kept = &mut self.slots[slot as usize];
        let Some(connection) = unpacked(kept, &mut self.store, &mut self.numbers, sink) else {
            return;
        };
        if connection.listing.lingers {
            for end in 0..2 {
                if let Some(host) = connection.listing.hosts[end] {
                    self.hosts.list[host as usize].counts += u32::from(connection.counts(end));
                }
            }
        }
        connection.finish(&mut self.numbers, sink);
        let (listing, isns) = (connection.listing, connection.isns());
        *kept = Slot::Past(Box::new(Past { listing, isns }));
        self.live -= 1;
    }

    /// Forgets a connection that was settled.
    fn remove(&mut self, slot: u32) {
        let Slot::Past(past) = std::mem::replace(&mut self.slots[slot as usize], Slot::Free) else {
            return;
        };
        let ([a, b], [around, alias]) = (past.listing.names, past.listing.arounds);
        for around in [Some(around), Some(alias).filter(|&alias| alias != around)]
            .into_iter()
            .flatten()
        {
            let hash = self.seed.hash(a, b, around);
            self.index.remove(hash, slot);
        }
        self.free.push(slot);
    }

    fn settle_closed(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        while let Some(first) = due(&mut self.closing, now_ns) {
            let (due_ns, slot) = (first.due_ns, first.slot);
            let Some(&Listing { last_ns, .. }) = self.listing(first).filter(|listing| !listing.ends_soon) else {
                continue;
            };
            let live = self.slots[slot as usize].live();
            if live.is_some_and(|connection| connection.outlives_reset(due_ns - LINGER_NS)) {
                let due_ns = last_ns.saturating_add(LINGER_NS);
                self.closing.push_back(Closing { due_ns, ..first });
            } else {
                self.settle(slot, sink);
                self.remove(slot);
            }
        }
        while let Some(first) = due(&mut self.over, now_ns) {
            if self.listing(first).is_some() {
                self.settle(first.slot, sink);
                let due_ns = first.due_ns + (LINGER_NS - OVER_NS);
                self.past.push_back(Closing { due_ns, ..first });
            }
        }
        while let Some(first) = due(&mut self.past, now_ns) {
            self.forget(first);
        }
        // no more of them are kept than connections are followed
        while self.past.len() > self.max_flows {
            if let Some(first) = self.past.pop_front() {
                self.forget(first);
            }
        }
    }

    /// Of the connection that was to wait there, if it still does.
    fn listing(&self, waits: Closing) -> Option<&Listing> {
        let listing = self.slots[waits.slot as usize].listing();
        listing.filter(|listing| listing.number == waits.number)
    }

    /// Removes what stays of the connection, unless its slot has become another's.
    fn forget(&mut self, past: Closing) {
        if matches!(&self.slots[past.slot as usize], Slot::Past(kept) if kept.listing.number == past.number) {
            self.remove(past.slot);
        }
    }

    #[cold]
    fn sweep(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        self.next_sweep_ns = now_ns.saturating_add(SWEEP_NS);
        let mut idle: Vec<(u32, u32)> = Vec::new();
        for (slot, connection) in (0..).zip(&mut self.slots) {
            let Some(&Listing { last_ns, number, .. }) = connection.listing() else {
                continue;
            };
            if last_ns.saturating_add(IDLE_NS) < now_ns {
                idle.push((number, slot));
            } else if let (Slot::Live(connection), true) = (connection, last_ns.saturating_add(SWEEP_NS) < now_ns) {
                connection.shrink();
            }
        }
        // in order of first packet, whatever slots were free then
        idle.sort_unstable();
        for (_, slot) in idle {
            self.settle(slot, sink);
            self.remove(slot);
        }
    }

    /// Settles a part of the connections: those without data before others, then those quiet the longest.
    #[cold]
    fn make_room(&mut self, sink: &mut dyn Sink) {
        let mut open: Vec<(bool, i64, u32, u32)> = (0..)
            .zip(&self.slots)
            .filter_map(|(slot, c)| Some((c.carries_data(), c.listing()?.last_ns, c.listing()?.number, slot)))
            .collect();
        let part = (open.len() / ROOM).max(1);
        open.select_nth_unstable(part - 1);
        open.truncate(part);
        open.sort_unstable_by_key(|&(_, _, number, _)| number);
        self.crowded_out += open.len() as u64;
        for (.., slot) in open {
            self.settle(slot, sink);
            self.remove(slot);
        }
    }

    /// Settles and gives out everything that is still open; the tracker is empty after it.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        self.catch_up(sink);
        self.clock.end();
        for segment in self.clock.release() {
            self.follow(&segment, sink);
        }
        let number = |slot: &Slot| slot.listing().map(|listing| listing.number);
        let mut open: Vec<Slot> = self.slots.drain(..).filter(|slot| number(slot).is_some()).collect();
        open.sort_unstable_by_key(number);
        for mut slot in open {
            if let Some(connection) = unpacked(&mut slot, &mut self.store, &mut self.numbers, sink) {
                connection.finish(&mut self.numbers, sink);
            }
        }
        self.free.clear();
        self.index.clear();
        self.live = 0;
        for queue in [&mut self.closing, &mut self.over, &mut self.past] {
            queue.clear();
        }
    }
}

/// The slot's connection, if it is followed; packed it is no longer.
#[inline]
fn unpacked<'a>(
    slot: &'a mut Slot,
    store: &mut Store,
    numbers: &mut Numbers,
    sink: &mut dyn Sink,
) -> Option<&'a mut Connection> {
    if let Slot::Packed(packed) = slot {
        *slot = Slot::Live(packed.unpack(store, numbers, sink));
    }
    match slot {
        Slot::Live(connection) => Some(connection),
        _ => None,
    }
}

/// The same for both directions of a connection, and mostly not for another's.
#[inline]
fn ports(segment: &Segment) -> u32 {
    u32::from(segment.sport) + u32::from(segment.dport)
}

/// The first of the queue, if its time has come.
fn due(queue: &mut VecDeque<Closing>, now_ns: i64) -> Option<Closing> {
    queue.front().filter(|first| first.due_ns <= now_ns)?;
    queue.pop_front()
}
