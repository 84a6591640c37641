//! The flow table: every connection of a capture by its addresses and ports, settled and freed when it is over.

use crate::flow::attempts::Attempts;
use crate::flow::connection::{Connection, Numbers};
use crate::flow::hosts::Hosts;
use crate::flow::index::Index;
use crate::flow::listing::Listing;
use crate::flow::packed::{Packed, Store};
use crate::flow::past::Past;
use crate::flow::places::{Kept, Places};
use crate::flow::seed::{Hashes, Seed};
use crate::flow::spare::Spare;
use crate::quality::clock::{Clock, Verdict};
use crate::rows::{Sink, Vantage};
use crate::segment::{flags, Segment};
use std::collections::VecDeque;

/// Packets of a closed connection are known as such for so long (RFC 9293's 2 MSL is longer than needed here).
const LINGER_NS: i64 = 10_000_000_000;
/// Of it, how long the connection itself stays once each end has the other's FIN: its last segments sent again, by timers
/// that the lost answer let run out, and copies that were still under way come within it.
const OVER_NS: i64 = 1_000_000_000;
/// A connection without a packet for this long is settled; what comes later is followed as a new one. One that carried data
/// may be quiet between two keep-alives, which are two hours apart (RFC 9293, 3.8.4; RFC 5382, REQ-5 asks translators to
/// remember it for as long).
const IDLE_NS: i64 = (2 * 60 + 4) * 60_000_000_000;
/// The same of one that carried none.
const EMPTY_NS: i64 = 600_000_000_000;
/// Between two looks for idle connections, in time of the capture; what one has in reserve that was quiet for so long is
/// given back.
const SWEEP_NS: i64 = 60_000_000_000;

/// Connections that are looked for without the index.
const RECENT: usize = 1024;

/// Connections open at once beyond which segments wait for what is known of theirs: of fewer a cache holds enough.
const MANY: usize = 16384;

/// Connections open at once beyond which new ones are kept packed: what is known of fewer is near enough.
pub const PACKED_FROM: usize = 2048;

/// Connections followed at once, unless the user says otherwise: some 150 MB where none carries data.
pub const MAX_FLOWS: usize = 1 << 18;
/// Of these so many parts are settled at a time when there is no room.
const ROOM: usize = 4;

/// Identities of VLANs and tunnels remembered, to find the other direction of a connection under another one.
const AROUNDS: usize = 8;

/// No connection's place.
const NONE: u32 = u32::MAX;

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

/// Follows every connection of a capture. The same tracker serves every reader.
pub struct Tracker {
    numbers: Numbers,
    next_connection: u32,
    places: Places,
    /// Places of connections that are followed.
    live: usize,
    index: Index,
    seed: Seed,
    /// Where packed connections keep their segments.
    store: Store,
    /// Connections of the last segments, each at a place that its ports give: the next one is often of these.
    recent: [Recent; RECENT],
    /// Closed connections, and those that are over: each in the order in which they are due.
    closing: VecDeque<Closing>,
    over: VecDeque<Closing>,
    /// Those of them that are settled.
    past: Past,
    /// When the first of them is due, or the next look for idle connections.
    next_due_ns: i64,
    hosts: Hosts,
    /// Identities of what was around the latest connections, the newest last.
    arounds: Vec<u32>,
    next_sweep_ns: i64,
    clock: Clock,
    max_flows: usize,
    packed_from: usize,
    /// Connections settled to make room for others.
    crowded_out: u64,
}

/// A connection that has ended, and until when it stays as it is.
#[derive(Clone, Copy)]
struct Closing {
    due_ns: i64,
    place: u32,
    number: u32,
}

/// Where a connection is whose ports have that sum.
#[derive(Clone, Copy, Default)]
struct Recent {
    ports: u32,
    place: u32,
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
                doubled: 0,
                attempts: Attempts::default(),
                spare: Spare::default(),
            },
            next_connection: 0,
            places: Places::default(),
            live: 0,
            index: Index::default(),
            seed: Seed::default(),
            store: Store::default(),
            recent: [Recent::default(); RECENT],
            closing: VecDeque::new(),
            over: VecDeque::new(),
            past: Past::default(),
            next_due_ns: i64::MIN,
            hosts: Hosts::default(),
            arounds: Vec::new(),
            next_sweep_ns: i64::MIN,
            clock: Clock::default(),
            max_flows: settings.max_flows.max(1),
            packed_from: settings.packed_from,
            crowded_out: 0,
        }
    }

    /// Takes the next segment of the capture; `near`: where its connection seems to be.
    #[inline(always)]
    pub fn push(&mut self, segment: &Segment, near: Option<u32>, sink: &mut impl Sink) {
        if self.clock.takes(segment.time_ns) {
            self.follow(segment, near, sink);
        } else {
            self.push_odd(segment, sink);
        }
    }

    /// So many connections are open that segments are better asked for ahead.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.live >= MANY
    }

    /// Asks for what the next segments will need: each would wait for its entry in the index, its place, its connection and
    /// its flow, one after the other. Asked for together, these come at the same time. `places`: where their connections
    /// seem to be.
    pub fn look_ahead(&self, segments: &[Segment], places: &mut [u32]) {
        let hashes = segments.iter().zip(&mut *places);
        for (segment, hash) in hashes {
            // its lower half is what the index goes by
            let full = self.seed.of(segment);
            *hash = full as u32;
            self.index.prefetch(full);
        }
        for place in &mut *places {
            // some connection of this hash: whether it is the segment's shows when it is followed
            *place = self.index.find(u64::from(*place), Some).unwrap_or(NONE);
            self.places.prefetch(*place);
        }
        for &place in &*places {
            self.places.prefetch_kept(place);
        }
        for (segment, &place) in segments.iter().zip(&*places) {
            self.places.prefetch_for(place, segment, &self.store);
            if let Some(listing) = self.places.listings.get(place as usize) {
                self.hosts.prefetch(listing);
            }
        }
    }

    /// A segment whose time may not be taken as it is, or waits for others.
    #[cold]
    fn push_odd(&mut self, segment: &Segment, sink: &mut impl Sink) {
        if let Some(time_ns) = self.clock.moved(segment.time_ns) {
            self.follow_late(&Segment { time_ns, ..*segment }, sink);
            return;
        }
        let found = self.look_up(self.seed.of(segment), segment);
        let ahead_ns = found.and_then(|(place, end)| self.unpacked(place, sink)?.1.ahead_ns(end, segment));
        if self.clock.take(segment, ahead_ns) == Verdict::Release {
            for segment in self.clock.release() {
                self.follow_late(&segment, sink);
            }
        }
    }

    /// Connections without data, of those that are settled.
    pub fn attempts(&self) -> Attempts {
        self.numbers.attempts
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
        if self.numbers.doubled > 0 {
            let who = match self.numbers.doubled {
                1 => "1 flow has most of its".to_owned(),
                many => format!("{many} flows have most of their"),
            };
            sentences.push(format!(
                "{who} data twice, too far apart for a mirror port, as where captures of two points of a path are put \
                 into one file: what was lost between them seems to have arrived; read each by itself"
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

    /// Most segments are of a connection that had one just before, or was looked for ahead.
    #[inline(always)] // all of a common segment's way is in one place
    fn follow(&mut self, segment: &Segment, near: Option<u32>, sink: &mut impl Sink) {
        if segment.time_ns >= self.next_due_ns {
            self.on_time(segment.time_ns, sink);
        }
        let found = match near {
            Some(place) => self.places.at(place, segment),
            None => self.find_recent(segment),
        };
        match found.filter(|_| !segment.has(flags::SYN)) {
            Some((place, end)) => self.push_to(place, end, segment, sink),
            None => self.follow_other(segment, sink),
        }
    }

    #[inline(never)]
    fn follow_other(&mut self, segment: &Segment, sink: &mut dyn Sink) {
        let hash = self.seed.of(segment);
        if segment.has(flags::SYN) {
            self.past.prefetch(hash);
        }
        let found = self.look_up(hash, segment);
        let ordinary = found.filter(|_| !segment.has(flags::SYN));
        let Some((place, end)) = ordinary.or_else(|| self.find_or_open(hash, found, segment, sink)) else {
            return; // late, of a connection that is settled
        };
        self.remember(place, segment);
        match self.places.kept[place as usize] {
            Kept::Packed(_) => self.push_packed(place, end, segment, sink),
            _ => self.push_other(place, end, segment, sink),
        }
    }

    /// Follows a segment that has waited.
    #[inline(never)]
    fn follow_late(&mut self, segment: &Segment, sink: &mut impl Sink) {
        self.follow(segment, None, sink);
    }

    /// The connection of a SYN, or of a segment whose connection is not there: it may have to be opened. `None` where it was
    /// settled before.
    #[inline(never)]
    fn find_or_open(
        &mut self,
        hash: u64,
        found: Option<(u32, usize)>,
        segment: &Segment,
        sink: &mut dyn Sink,
    ) -> Option<(u32, usize)> {
        if let Some((place, end)) = found {
            if !self.is_reused(place, end, segment, sink) {
                return found;
            }
            self.settle(place, sink);
            return Some((self.open(hash, segment), 0));
        }
        if self.past.takes(hash, segment) {
            return None;
        }
        self.other_way(segment, sink).or_else(|| {
            if self.live >= self.max_flows {
                self.make_room(sink);
            }
            Some((self.open(hash, segment), 0))
        })
    }

    /// Gives the segment, which the end sent, to the connection there.
    #[inline(always)] // all of a common segment's way is in one place
    fn push_to(&mut self, place: u32, end: usize, segment: &Segment, sink: &mut dyn Sink) {
        let Kept::Live(connection) = &mut self.places.kept[place as usize] else {
            self.push_packed(place, end, segment, sink);
            return;
        };
        let listing = &mut self.places.listings[place as usize];
        listing.last_ns = segment.time_ns; // the clock lets no time go back
        if self.hosts.shares_counter(listing, end, segment) {
            connection.share_counter(end);
        }
        if !connection.push_ordinary(end, segment, &mut self.numbers, sink) {
            self.push_any(place, end, segment, sink);
        }
    }

    /// Gives any segment to the connection there, which is followed.
    #[inline(never)]
    fn push_any(&mut self, place: u32, end: usize, segment: &Segment, sink: &mut dyn Sink) {
        let Kept::Live(connection) = &mut self.places.kept[place as usize] else {
            return;
        };
        let listing = &mut self.places.listings[place as usize];
        if connection.needs_hint() && !segment.has(flags::SYN) {
            connection.hint(self.hosts.are_local(listing.hosts));
        }
        connection.push_any(end, segment, &mut self.numbers, sink);
        if connection.closed() && (!listing.lingers || connection.is_over() && !listing.ends_soon) {
            self.linger(place, segment.time_ns);
        }
    }

    /// Adds the segment to its packed connection, or if that cannot be follows both.
    #[inline(never)]
    fn push_packed(&mut self, place: u32, end: usize, segment: &Segment, sink: &mut dyn Sink) {
        let listing = &mut self.places.listings[place as usize];
        let Kept::Packed(packed) = &mut self.places.kept[place as usize] else {
            return;
        };
        if packed.is_unusual(end, segment, listing.last_ns) {
            if self.unpacked(place, sink).is_some() {
                self.push_other(place, end, segment, sink);
            }
            return;
        }
        let shared = self.hosts.shares_counter(listing, end, segment);
        packed.push(
            end,
            segment,
            listing.last_ns,
            shared,
            &mut self.numbers,
            &mut self.store,
        );
        listing.last_ns = segment.time_ns;
        if packed.closed() && (!listing.lingers || packed.is_over() && !listing.ends_soon) {
            self.linger(place, segment.time_ns);
        }
    }

    #[inline(never)]
    fn push_other(&mut self, place: u32, end: usize, segment: &Segment, sink: &mut dyn Sink) {
        self.push_to(place, end, segment, sink);
    }

    /// What is due by the time of the capture.
    #[cold]
    fn on_time(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        self.settle_closed(now_ns, sink);
        if now_ns >= self.next_sweep_ns {
            self.sweep(now_ns, sink);
        }
        let first_ns = |queue: &VecDeque<Closing>| queue.front().map_or(i64::MAX, |first| first.due_ns);
        let queues = [first_ns(&self.closing), first_ns(&self.over), self.past.due_ns()];
        self.next_due_ns = queues.into_iter().fold(self.next_sweep_ns, i64::min);
    }

    /// The SYN opens another connection than the one there.
    fn is_reused(&mut self, place: u32, end: usize, segment: &Segment, sink: &mut dyn Sink) -> bool {
        match &self.places.kept[place as usize] {
            Kept::Packed(packed) if packed.expects(end, segment) => false,
            _ => self
                .unpacked(place, sink)
                .is_some_and(|(_, connection)| connection.is_reused_by(end, segment)),
        }
    }

    /// The connection there, if it is followed; packed it is no longer.
    fn unpacked(&mut self, place: u32, sink: &mut dyn Sink) -> Option<(&mut Listing, &mut Connection)> {
        let listing = &mut self.places.listings[place as usize];
        let kept = &mut self.places.kept[place as usize];
        let connection = unpacked(listing, kept, &mut self.store, &mut self.numbers, sink)?;
        Some((listing, connection))
    }

    /// Lets a connection that has just closed wait for late packets; less long once it is over.
    #[cold]
    fn linger(&mut self, place: u32, now_ns: i64) {
        let listing = &mut self.places.listings[place as usize];
        let (local, over) = match &mut self.places.kept[place as usize] {
            Kept::Live(connection) => {
                if !listing.lingers {
                    connection.shrink(&mut self.numbers.spare);
                }
                (connection.local_end(), connection.is_over())
            }
            Kept::Packed(packed) => (packed.local_end(), packed.is_over()),
            _ => return,
        };
        if !std::mem::replace(&mut listing.lingers, true) {
            self.hosts.learn_local(listing, local);
            if let Kept::Live(connection) = &self.places.kept[place as usize] {
                for end in 0..2 {
                    let (waited_out, probes) = connection.tails(end);
                    self.hosts.learn_tails(listing, end, waited_out, probes);
                    self.hosts.learn_least(listing, end, connection.least_to(end));
                }
            }
        }
        listing.ends_soon = over;
        let (queue, due_ns) = if over {
            (&mut self.over, now_ns + OVER_NS)
        } else {
            (&mut self.closing, now_ns + LINGER_NS)
        };
        let number = listing.number;
        queue.push_back(Closing { due_ns, place, number });
        self.next_due_ns = self.next_due_ns.min(due_ns);
    }

    /// A connection whose other direction comes through another VLAN or tunnel: switches tag, and paths encapsulate, one
    /// way only. It has not seen this direction yet.
    fn other_way(&mut self, segment: &Segment, sink: &mut dyn Sink) -> Option<(u32, usize)> {
        if segment.around == 0 && self.arounds.is_empty() {
            return None;
        }
        let waits = |place: u32| Some((place, self.places.lacks(place, segment)?));
        let (place, end) = self.arounds.iter().rev().chain(&[0]).find_map(|&around| {
            let hash = self.seed.hash(segment.ends(), around);
            self.index.find(hash, waits)
        })?;
        self.unpacked(place, sink)?.0.ends.arounds[1] = segment.around;
        self.index.insert(self.seed.of(segment), place);
        Some((place, end))
    }

    /// Place of the segment's connection, if that had another just before, and the end that sent the segment.
    #[inline(always)]
    fn find_recent(&self, segment: &Segment) -> Option<(u32, usize)> {
        let ports = ports(segment);
        let recent = self.recent[ports as usize % RECENT];
        if recent.ports != ports {
            return None;
        }
        self.places.at(recent.place, segment)
    }

    /// The same of any connection, by the segment's hash.
    #[inline(never)]
    fn look_up(&self, hash: u64, segment: &Segment) -> Option<(u32, usize)> {
        self.index.find(hash, |place| self.places.at(place, segment))
    }

    /// The segment's connection is there.
    #[inline]
    fn remember(&mut self, place: u32, segment: &Segment) {
        let ports = ports(segment);
        self.recent[ports as usize % RECENT] = Recent { ports, place };
    }

    fn open(&mut self, hash: u64, segment: &Segment) -> u32 {
        if segment.around != 0 {
            self.arounds.retain(|&around| around != segment.around);
            if self.arounds.len() == AROUNDS {
                self.arounds.remove(0);
            }
            self.arounds.push(segment.around);
        }
        let hosts = self.hosts.numbers(segment);
        let known = self.hosts.known(hosts);
        let listing = Listing::new(self.next_connection, hosts, segment);
        let kept = if self.live >= self.packed_from && Packed::begins_with(segment) {
            Kept::Packed(self.numbers.spare.packed(Packed::new(segment, known)))
        } else {
            Kept::Live(self.numbers.spare.connection(Connection::new(known)))
        };
        self.next_connection += 1;
        self.live += 1;
        let place = self.places.add(listing, kept);
        self.index.insert(hash, place);
        place
    }

    /// Gives out the connection there, and forgets it; the hashes that it was known by, and the initial sequence number of
    /// each end.
    fn settle(&mut self, place: u32, sink: &mut dyn Sink) -> Option<(Hashes, [Option<u32>; 2])> {
        let listing = &self.places.listings[place as usize];
        let hashes = self.seed.all(&listing.ends);
        for hash in hashes.into_iter().flatten() {
            self.index.prefetch(hash);
            self.past.prefetch(hash);
        }
        let kept = &mut self.places.kept[place as usize];
        let connection = unpacked(listing, kept, &mut self.store, &mut self.numbers, sink)?;
        if listing.lingers {
            self.hosts
                .learn_counts(listing, [0, 1].map(|end| connection.counts(end)));
        }
        connection.finish(listing, &mut self.numbers, sink);
        let isns = connection.isns();
        if let Kept::Live(connection) = self.places.free(place) {
            self.numbers.spare.give_connection(connection);
        }
        self.live -= 1;
        for hash in hashes.into_iter().flatten() {
            self.index.remove(hash, place);
        }
        Some((hashes, isns))
    }

    fn settle_closed(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        while let Some(first) = due(&mut self.closing, now_ns) {
            let Some((listing, kept)) = self.waiting(first).filter(|(listing, _)| !listing.ends_soon) else {
                continue;
            };
            let goes_on = match kept {
                Kept::Live(connection) => connection.outlives_reset() || !connection.is_over(),
                Kept::Packed(packed) => !packed.is_over(),
                Kept::Nothing => false,
            };
            if goes_on && listing.last_ns > first.due_ns - LINGER_NS {
                let due_ns = listing.last_ns.saturating_add(LINGER_NS);
                self.closing.push_back(Closing { due_ns, ..first });
            } else {
                self.settle(first.place, sink);
            }
        }
        while let Some(first) = due(&mut self.over, now_ns) {
            let next = |n: usize| self.over.get(n).map(|next| next.place);
            self.places.prefetch_to_settle(next, &self.store);
            if self.waiting(first).is_none() {
                continue;
            }
            if let Some((hashes, isns)) = self.settle(first.place, sink) {
                self.past.add(hashes, isns, first.due_ns + (LINGER_NS - OVER_NS));
            }
        }
        // no more of them are kept than connections are followed
        self.past.forget(now_ns, self.max_flows);
    }

    /// The connection that was to wait there, if it still does.
    fn waiting(&self, waits: Closing) -> Option<(&Listing, &Kept)> {
        self.places.open(waits.place, waits.number)
    }

    #[cold]
    fn sweep(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        self.next_sweep_ns = now_ns.saturating_add(SWEEP_NS);
        let mut idle: Vec<(u32, u32)> = Vec::new();
        for ((place, listing), kept) in (0..).zip(&self.places.listings).zip(&mut self.places.kept) {
            if !kept.is_open() {
                continue;
            }
            let idle_ns = if kept.carries_data() { IDLE_NS } else { EMPTY_NS };
            if listing.last_ns.saturating_add(idle_ns) < now_ns {
                idle.push((listing.number, place));
            } else if let (Kept::Live(connection), true) = (kept, listing.last_ns.saturating_add(SWEEP_NS) < now_ns) {
                connection.shrink(&mut self.numbers.spare);
            }
        }
        // in order of first packet, whatever places were free then
        idle.sort_unstable();
        for (_, place) in idle {
            self.settle(place, sink);
        }
    }

    /// Settles a part of the connections: those without data before others, then those quiet the longest.
    #[cold]
    fn make_room(&mut self, sink: &mut dyn Sink) {
        let all = self.places.all_open();
        let mut open: Vec<(bool, i64, u32, u32)> = all
            .map(|(place, listing, carries_data)| (carries_data, listing.last_ns, listing.number, place))
            .collect();
        let part = (open.len() / ROOM).max(1);
        open.select_nth_unstable(part - 1);
        open.truncate(part);
        open.sort_unstable_by_key(|&(_, _, number, _)| number);
        self.crowded_out += open.len() as u64;
        for (.., place) in open {
            self.settle(place, sink);
        }
    }

    /// Settles and gives out everything that is still open; the tracker is empty after it.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        self.clock.end();
        for segment in self.clock.release() {
            self.follow_late(&segment, sink);
        }
        self.store.end();
        let all = self.places.all_open();
        let mut open: Vec<(u32, u32)> = all.map(|(place, listing, _)| (listing.number, place)).collect();
        open.sort_unstable();
        for (n, &(_, place)) in open.iter().enumerate() {
            let next = |later: usize| open.get(n + 1 + later).map(|&(_, place)| place);
            self.places.prefetch_to_settle(next, &self.store);
            let listing = &self.places.listings[place as usize];
            let kept = &mut self.places.kept[place as usize];
            if let Some(connection) = unpacked(listing, kept, &mut self.store, &mut self.numbers, sink) {
                connection.finish(listing, &mut self.numbers, sink);
            }
            if let Kept::Live(connection) = std::mem::replace(kept, Kept::Nothing) {
                self.numbers.spare.give_connection(connection);
            }
        }
        self.places = Places::default();
        self.store = Store::default();
        self.index.clear();
        self.live = 0;
        self.closing.clear();
        self.over.clear();
        self.past = Past::default();
    }
}

/// The connection, if it is followed; packed it is no longer.
#[inline]
fn unpacked<'a>(
    listing: &Listing,
    kept: &'a mut Kept,
    store: &mut Store,
    numbers: &mut Numbers,
    sink: &mut dyn Sink,
) -> Option<&'a mut Connection> {
    if let Kept::Packed(packed) = kept {
        let live = Kept::Live(packed.unpack(listing, store, numbers, sink));
        if let Kept::Packed(packed) = std::mem::replace(kept, live) {
            numbers.spare.give_packed(packed);
        }
    }
    match kept {
        Kept::Live(connection) => Some(connection),
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
