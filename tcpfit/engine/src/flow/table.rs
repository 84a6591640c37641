//! The flow table: every connection of a capture by its addresses and ports, settled and freed when it is over.

use crate::flow::connection::{Connection, Numbers};
use crate::quality::clock::{Clock, Verdict};
use crate::rows::{Sink, Vantage};
use crate::segment::{Address, Segment};
use hashbrown::HashMap;
use std::collections::VecDeque;

/// A closed connection stays this long for late copies of its last segments (RFC 9293's 2 MSL is longer than needed here).
const LINGER_NS: i64 = 10_000_000_000;
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

/// What the user can override.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Where the capture was taken; `None` infers it.
    pub vantage: Option<Vantage>,
}

/// Identities of VLANs and tunnels remembered, to find the other direction of a connection under another one.
const AROUNDS: usize = 8;

/// Addresses and ports, the lower end first, so that both directions have one key; and what is around them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    addresses: [Address; 2],
    ports: [u16; 2],
    around: u32,
}

impl Key {
    fn of(segment: &Segment) -> Self {
        let (a, b) = ((segment.src, segment.sport), (segment.dst, segment.dport));
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        Self {
            addresses: [low.0, high.0],
            ports: [low.1, high.1],
            around: segment.around,
        }
    }
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

/// Follows every connection of a capture. The same tracker serves every reader.
pub struct Tracker {
    numbers: Numbers,
    next_connection: u32,
    slots: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    // seeded: captures are untrusted input
    index: HashMap<Key, u32, foldhash::fast::RandomState>,
    /// Closed connections and when they may go.
    closing: VecDeque<(i64, u32, Key, u32)>,
    hosts: Hosts,
    /// Identities of what was around the latest connections, the newest last.
    arounds: Vec<u32>,
    next_sweep_ns: i64,
    clock: Clock,
}

/// What is known of hosts, by address; connections keep the numbers of theirs.
#[derive(Default)]
struct Hosts {
    index: HashMap<Address, u32, foldhash::fast::RandomState>,
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

    fn get_mut(&mut self, address: &Address) -> Option<&mut Host> {
        self.list.get_mut(*self.index.get(address)? as usize)
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
            },
            next_connection: 0,
            slots: Vec::new(),
            free: Vec::new(),
            index: HashMap::default(),
            closing: VecDeque::new(),
            hosts: Hosts::default(),
            arounds: Vec::new(),
            next_sweep_ns: i64::MIN,
            clock: Clock::default(),
        }
    }

    /// Takes the next segment of the capture.
    #[inline]
    pub fn push(&mut self, segment: &Segment, sink: &mut impl Sink) {
        match self.clock.plain_ns(segment.time_ns) {
            Some(time_ns) if time_ns == segment.time_ns => self.follow(segment, sink),
            Some(time_ns) => self.follow(&Segment { time_ns, ..*segment }, sink),
            None => self.push_odd(segment, sink),
        }
    }

    /// A segment whose time cannot be taken as it is, or waits for others.
    #[cold]
    fn push_odd(&mut self, segment: &Segment, sink: &mut impl Sink) {
        let slot = self.index.get(&Key::of(segment)).copied();
        let ahead_ns = slot.and_then(|slot| self.connection(slot)?.ahead_ns(segment));
        if self.clock.take(segment, ahead_ns) == Verdict::Release {
            for segment in self.clock.release() {
                self.follow(&segment, sink);
            }
        }
    }

    /// What was odd about the capture's clock, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        self.clock.sentences()
    }

    fn follow(&mut self, segment: &Segment, sink: &mut impl Sink) {
        let now_ns = segment.time_ns;
        self.settle_closed(now_ns, sink);
        if now_ns >= self.next_sweep_ns {
            self.sweep(now_ns, sink);
        }
        let key = Key::of(segment);
        let slot = match self.index.get(&key) {
            Some(&slot) if !self.connection(slot).is_some_and(|c| c.is_reused_by(segment)) => slot,
            Some(&slot) => {
                self.settle(slot, key, sink);
                self.open(key, segment)
            }
            None => self.other_way(key, segment).unwrap_or_else(|| self.open(key, segment)),
        };
        let Some(connection) = self.slots[slot as usize].as_mut() else {
            return;
        };
        let handshake = segment.has(crate::segment::flags::SYN);
        if !handshake && connection.needs_hint() {
            let hosts = &self.hosts;
            connection.hint(|address| hosts.get(address).is_some_and(|host| host.local > 0));
        }
        let end = connection.end_of(segment);
        if let (Some(number), Some(id)) = (connection.hosts[end], segment.ip_id.filter(|&id| id != 0)) {
            if self.hosts.list[number as usize].shares_counter(connection.number, id) {
                connection.share_counter(end);
            }
        }
        let was_closed = connection.closed();
        connection.push(segment, &mut self.numbers, sink);
        if connection.closed() && !was_closed {
            let number = connection.number;
            let local = connection.local_address();
            let counting: Vec<Address> = connection.counting().collect();
            if let Some(host) = local.and_then(|address| self.hosts.get_mut(&address)) {
                host.local += 1;
            }
            for address in counting {
                if let Some(host) = self.hosts.get_mut(&address) {
                    host.counts += 1;
                }
            }
            self.closing.push_back((now_ns + LINGER_NS, slot, key, number));
        }
    }

    fn connection(&self, slot: u32) -> Option<&Connection> {
        self.slots.get(slot as usize)?.as_deref()
    }

    /// A connection whose other direction comes through another VLAN or tunnel: switches tag, and paths encapsulate, one
    /// way only. It has not seen this direction yet.
    fn other_way(&mut self, key: Key, segment: &Segment) -> Option<u32> {
        if key.around == 0 && self.arounds.is_empty() {
            return None;
        }
        let slot = self.arounds.iter().rev().chain(&[0]).find_map(|&around| {
            let slot = *self.index.get(&Key { around, ..key })?;
            let connection = self.connection(slot)?;
            connection.lacks(segment).then_some(slot)
        })?;
        self.slots[slot as usize].as_mut()?.alias = Some(segment.around);
        self.index.insert(key, slot);
        Some(slot)
    }

    fn open(&mut self, key: Key, segment: &Segment) -> u32 {
        if key.around != 0 {
            self.arounds.retain(|&around| around != key.around);
            if self.arounds.len() == AROUNDS {
                self.arounds.remove(0);
            }
            self.arounds.push(key.around);
        }
        let mut connection = Box::new(Connection::new(self.next_connection, segment));
        connection.hosts = [self.hosts.number(segment.src), self.hosts.number(segment.dst)];
        connection.trust(|address| self.hosts.get(address).is_some_and(|host| host.counts > 1));
        self.next_connection += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(connection);
                slot
            }
            None => {
                self.slots.push(Some(connection));
                (self.slots.len() - 1) as u32
            }
        };
        self.index.insert(key, slot);
        slot
    }

    fn settle(&mut self, slot: u32, key: Key, sink: &mut dyn Sink) {
        if let Some(mut connection) = self.slots[slot as usize].take() {
            connection.finish(&mut self.numbers, sink);
            for around in [Some(connection.around), connection.alias].into_iter().flatten() {
                self.index.remove(&Key { around, ..key });
            }
            self.free.push(slot);
        }
    }

    fn settle_closed(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        while let Some(&(due_ns, slot, key, number)) = self.closing.front() {
            if due_ns > now_ns {
                break;
            }
            self.closing.pop_front();
            if self.connection(slot).is_some_and(|c| c.number == number) {
                self.settle(slot, key, sink);
            }
        }
    }

    fn sweep(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        self.next_sweep_ns = now_ns.saturating_add(SWEEP_NS);
        let mut idle: Vec<(u32, u32, Key)> = Vec::new();
        for (&key, &slot) in &self.index {
            if let Some(c) = self
                .connection(slot)
                .filter(|c| c.last_ns.saturating_add(IDLE_NS) < now_ns)
            {
                idle.push((c.number, slot, key));
            }
        }
        // in order of first packet: the hash table's own order differs from run to run
        idle.sort_unstable_by_key(|&(number, ..)| number);
        for (_, slot, key) in idle {
            self.settle(slot, key, sink);
        }
    }

    /// Settles and gives out everything that is still open; the tracker is empty after it.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        self.clock.end();
        for segment in self.clock.release() {
            self.follow(&segment, sink);
        }
        let mut open: Vec<Box<Connection>> = self.slots.drain(..).flatten().collect();
        open.sort_unstable_by_key(|c| c.number);
        for mut connection in open {
            connection.finish(&mut self.numbers, sink);
        }
        self.free.clear();
        self.index.clear();
        self.closing.clear();
    }
}
