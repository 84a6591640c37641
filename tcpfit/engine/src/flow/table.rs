//! The flow table: every connection of a capture by its addresses and ports, settled and freed when it is over.

use crate::flow::ahead::{self, Ahead};
use crate::flow::connection::{Connection, Name, Numbers};
use crate::flow::index::Index;
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
/// Between two looks for idle connections, in time of the capture.
const SWEEP_NS: i64 = 60_000_000_000;
/// A counter went on if at most so many packets lie between two that were seen.
const NEXT: u16 = 8;
/// Turns at which a counter must have gone on: by chance once in 8,000 each.
const TURNS_NEEDED: u32 = 3;
/// Hosts remembered as being, or not being, the capturing one.
const HOSTS: usize = 65_536;

/// Connections open at once beyond which segments wait for what is known of theirs: of fewer a cache of a few MB holds it.
const MANY: usize = 2048;

/// Connections followed at once, unless the user says otherwise: some 250 MB where none carries data.
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
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            vantage: None,
            max_flows: MAX_FLOWS,
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
    Past(Box<Past>),
}

impl Slot {
    #[inline]
    fn live(&self) -> Option<&Connection> {
        match self {
            Self::Live(connection) => Some(connection),
            _ => None,
        }
    }

    #[inline]
    fn live_mut(&mut self) -> Option<&mut Connection> {
        match self {
            Self::Live(connection) => Some(connection),
            _ => None,
        }
    }

    /// The end that sent the segment, if it is of this connection.
    #[inline]
    fn sender(&self, segment: &Segment) -> Option<usize> {
        match self {
            Self::Live(connection) => connection.sender(segment),
            Self::Past(past) => past.sender(segment),
            Self::Free => None,
        }
    }
}

/// A connection that was settled, for as long as late packets could be taken for a new one.
struct Past {
    number: u32,
    ends: [Name; 2],
    arounds: [u32; 2],
    /// Initial sequence number of each end.
    isns: [Option<u32>; 2],
}

impl Past {
    fn of(connection: &Connection) -> Self {
        Self {
            number: connection.number,
            ends: connection.names(),
            arounds: connection.arounds(),
            isns: connection.isns(),
        }
    }

    #[cold]
    fn sender(&self, segment: &Segment) -> Option<usize> {
        let (src, dst) = ((segment.src, segment.sport), (segment.dst, segment.dport));
        let end = (0..2).find(|&end| self.ends[end] == src && self.ends[1 - end] == dst)?;
        self.arounds.contains(&segment.around).then_some(end)
    }

    /// The segment is a SYN that opens another connection: another initial sequence number.
    fn is_reused_by(&self, segment: &Segment) -> bool {
        let isn = self.sender(segment).and_then(|end| self.isns[end]);
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
    /// Slot of the last segment's connection: segments come in trains.
    latest: u32,
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
            latest: 0,
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
            crowded_out: 0,
        }
    }

    /// Takes the next segment of the capture.
    #[inline]
    pub fn push(&mut self, segment: &Segment, sink: &mut impl Sink) {
        match self.clock.plain_ns(segment.time_ns) {
            Some(time_ns) if time_ns == segment.time_ns => self.take(segment, sink),
            Some(time_ns) => self.take(&Segment { time_ns, ..*segment }, sink),
            None => self.push_odd(segment, sink),
        }
    }

    /// Follows the segment: at once where few connections are open, whose state is near.
    #[inline]
    fn take(&mut self, segment: &Segment, sink: &mut impl Sink) {
        if self.live < MANY {
            self.catch_up(sink);
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
        let oldest = self.ahead.push(segment, hash);
        if let Some(waiting) = self.ahead.back(ahead::PLACE) {
            // some connection of this hash: whether it is the segment's shows when it is followed
            if let Some(slot) = self.index.find(waiting.hash, Some) {
                waiting.slot = slot;
                prefetch(&self.slots[slot as usize]);
            }
        }
        if let Some(waiting) = self.ahead.back(ahead::CONNECTION) {
            if let Some(connection) = self.slots.get(waiting.slot as usize).and_then(Slot::live) {
                prefetch(connection);
            }
        }
        if let Some(waiting) = self.ahead.back(ahead::FLOW) {
            if let Some(connection) = self.slots.get(waiting.slot as usize).and_then(Slot::live) {
                connection.prefetch(&waiting.segment);
            }
        }
        if let Some(waiting) = oldest {
            self.latest = waiting.slot;
            self.follow(&waiting.segment, sink);
        }
    }

    /// Follows what waits.
    #[inline]
    fn catch_up(&mut self, sink: &mut impl Sink) {
        while let Some(waiting) = self.ahead.pop() {
            self.follow(&waiting.segment, sink);
        }
    }

    /// A segment whose time cannot be taken as it is, or waits for others.
    #[cold]
    fn push_odd(&mut self, segment: &Segment, sink: &mut impl Sink) {
        self.catch_up(sink);
        let found = self.find(segment);
        let ahead_ns = found.and_then(|(slot, _)| self.connection(slot)?.ahead_ns(segment));
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
            Some((slot, end)) if !handshake || !self.is_reused(slot, segment) => (slot, end),
            Some((slot, _)) => {
                self.settle(slot, sink);
                self.remove(slot);
                (self.open(segment), 0)
            }
            None => self.other_way(segment).unwrap_or_else(|| {
                if self.live >= self.max_flows {
                    self.make_room(sink);
                }
                (self.open(segment), 0)
            }),
        };
        self.latest = slot;
        let Some(connection) = self.slots[slot as usize].live_mut() else {
            return; // late, of a connection that is settled
        };
        if !handshake && connection.needs_hint() {
            let hosts = &self.hosts;
            connection.hint(|address| hosts.get(address).is_some_and(|host| host.local > 0));
        }
        if let (Some(number), Some(id)) = (connection.hosts[end], segment.ip_id.filter(|&id| id != 0)) {
            if self.hosts.list[number as usize].shares_counter(connection.number, id) {
                connection.share_counter(end);
            }
        }
        connection.push(end, segment, &mut self.numbers, sink);
        if connection.closed() && (!connection.lingers || connection.is_over() && !connection.ends_soon) {
            self.linger(slot, now_ns);
        }
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
    fn is_reused(&self, slot: u32, segment: &Segment) -> bool {
        match &self.slots[slot as usize] {
            Slot::Live(connection) => connection.is_reused_by(segment),
            Slot::Past(past) => past.is_reused_by(segment),
            Slot::Free => false,
        }
    }

    /// Takes from a connection that has just closed what it shows of its hosts, and lets it wait for late packets; less
    /// long once it is over.
    #[cold]
    fn linger(&mut self, slot: u32, now_ns: i64) {
        let Some(connection) = self.slots[slot as usize].live_mut() else {
            return;
        };
        if !connection.lingers {
            connection.linger();
            for end in 0..2 {
                if let Some(host) = connection.hosts[end].map(|number| &mut self.hosts.list[number as usize]) {
                    host.local += u32::from(connection.local_end() == Some(end));
                    host.counts += u32::from(connection.counts(end));
                }
            }
        }
        let number = connection.number;
        let (queue, due_ns) = if connection.is_over() {
            connection.ends_soon = true;
            (&mut self.over, now_ns + OVER_NS)
        } else {
            (&mut self.closing, now_ns + LINGER_NS)
        };
        queue.push_back(Closing { due_ns, slot, number });
        self.next_due_ns = self.next_due_ns.min(due_ns);
    }

    #[inline]
    fn connection(&self, slot: u32) -> Option<&Connection> {
        self.slots.get(slot as usize)?.live()
    }

    /// A connection whose other direction comes through another VLAN or tunnel: switches tag, and paths encapsulate, one
    /// way only. It has not seen this direction yet.
    fn other_way(&mut self, segment: &Segment) -> Option<(u32, usize)> {
        if segment.around == 0 && self.arounds.is_empty() {
            return None;
        }
        let waits = |slot: u32| Some((slot, self.connection(slot)?.lacks(segment)?));
        let (slot, end) = self.arounds.iter().rev().chain(&[0]).find_map(|&around| {
            let hash = self
                .seed
                .hash((segment.src, segment.sport), (segment.dst, segment.dport), around);
            self.index.find(hash, waits)
        })?;
        self.slots[slot as usize].live_mut()?.alias = Some(segment.around);
        self.enter(slot, segment);
        Some((slot, end))
    }

    /// The table's entry under the segment's name.
    fn enter(&mut self, slot: u32, segment: &Segment) {
        self.index.insert(self.seed.of(segment), slot);
    }

    /// Slot of the segment's connection, and the end that sent the segment.
    #[inline]
    fn find(&self, segment: &Segment) -> Option<(u32, usize)> {
        let at = |slot: u32| {
            let end = self.slots.get(slot as usize)?.sender(segment)?;
            Some((slot, end))
        };
        at(self.latest).or_else(|| self.index.find(self.seed.of(segment), at))
    }

    fn open(&mut self, segment: &Segment) -> u32 {
        if segment.around != 0 {
            self.arounds.retain(|&around| around != segment.around);
            if self.arounds.len() == AROUNDS {
                self.arounds.remove(0);
            }
            self.arounds.push(segment.around);
        }
        let mut connection = Box::new(Connection::new(self.next_connection, segment));
        connection.hosts = [self.hosts.number(segment.src), self.hosts.number(segment.dst)];
        for end in 0..2 {
            if connection.hosts[end].is_some_and(|number| self.hosts.list[number as usize].counts > 1) {
                connection.trust(end);
            }
        }
        self.next_connection += 1;
        self.live += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Slot::Live(connection);
                slot
            }
            None => {
                self.slots.push(Slot::Live(connection));
                (self.slots.len() - 1) as u32
            }
        };
        self.enter(slot, segment);
        slot
    }

    /// Gives out the slot's connection; `Past` is what stays of it, until it is removed.
    fn settle(&mut self, slot: u32, sink: &mut dyn Sink) {
        let kept = &mut self.slots[slot as usize];
        if let Slot::Live(connection) = kept {
            connection.finish(&mut self.numbers, sink);
            *kept = Slot::Past(Box::new(Past::of(connection)));
            self.live -= 1;
        }
    }

    /// Forgets a connection that was settled.
    fn remove(&mut self, slot: u32) {
        let Slot::Past(past) = std::mem::replace(&mut self.slots[slot as usize], Slot::Free) else {
            return;
        };
        let [a, b] = past.ends;
        let [around, alias] = past.arounds;
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
            let Some(connection) = self
                .connection(slot)
                .filter(|c| c.number == first.number && !c.ends_soon)
            else {
                continue;
            };
            if connection.outlives_reset(due_ns - LINGER_NS) {
                let due_ns = connection.last_ns.saturating_add(LINGER_NS);
                self.closing.push_back(Closing { due_ns, ..first });
            } else {
                self.settle(slot, sink);
                self.remove(slot);
            }
        }
        while let Some(first) = due(&mut self.over, now_ns) {
            if self.connection(first.slot).is_some_and(|c| c.number == first.number) {
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

    /// Removes what stays of the connection, unless its slot has become another's.
    fn forget(&mut self, past: Closing) {
        if matches!(&self.slots[past.slot as usize], Slot::Past(kept) if kept.number == past.number) {
            self.remove(past.slot);
        }
    }

    #[cold]
    fn sweep(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        self.next_sweep_ns = now_ns.saturating_add(SWEEP_NS);
        let mut idle: Vec<(u32, u32)> = Vec::new();
        for (slot, connection) in (0..).zip(&self.slots) {
            let is_idle = |c: &&Connection| c.last_ns.saturating_add(IDLE_NS) < now_ns;
            if let Some(connection) = connection.live().filter(is_idle) {
                idle.push((connection.number, slot));
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
            .filter_map(|(slot, c)| c.live().map(|c| (c.carries_data(), c.last_ns, c.number, slot)))
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
        let live = |slot| match slot {
            Slot::Live(connection) => Some(connection),
            _ => None,
        };
        let mut open: Vec<Box<Connection>> = self.slots.drain(..).filter_map(live).collect();
        open.sort_unstable_by_key(|c| c.number);
        for mut connection in open {
            connection.finish(&mut self.numbers, sink);
        }
        self.free.clear();
        self.index.clear();
        self.live = 0;
        for queue in [&mut self.closing, &mut self.over, &mut self.past] {
            queue.clear();
        }
    }
}

/// The first of the queue, if its time has come.
fn due(queue: &mut VecDeque<Closing>, now_ns: i64) -> Option<Closing> {
    queue.front().filter(|first| first.due_ns <= now_ns)?;
    queue.pop_front()
}
