//! The flow table: every connection of a capture by its addresses and ports, settled and freed when it is over.

use crate::flow::attempts::Attempts;
use crate::flow::connection::{Connection, Numbers};
use crate::flow::hosts::Hosts;
use crate::flow::index::Index;
use crate::flow::listing::Listing;
use crate::flow::packed::{Packed, Store};
use crate::flow::past::Past;
use crate::flow::places::{Kept, Places};
use crate::flow::seed::Seed;
use crate::flow::spare::Spare;
use crate::quality::clock::{Clock, Verdict};
use crate::rows::{Sink, Vantage};
use crate::segment::{flags, Segment};
use settle::Closing;
use std::collections::VecDeque;

pub mod settle;

/// Connections that are looked for without the index.
const RECENT: usize = 1024;

/// Connections open at once beyond which segments wait for what is known of theirs: of fewer a cache holds enough.
const MANY: usize = 16384;

/// Connections open at once beyond which new ones are kept packed: what is known of fewer is near enough.
pub const PACKED_FROM: usize = 2048;

/// Connections followed at once, unless the user says otherwise: some 150 MB where none carries data.
pub const MAX_FLOWS: usize = 1 << 18;

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
        let waits = |place| {
            self.clock
                .last_ns()
                .is_some_and(|now_ns| self.is_overdue(place, now_ns))
        };
        let found = self
            .look_up(self.seed.of(segment), segment)
            .filter(|&(place, _)| !waits(place));
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
        let ordinary = |place: u32| !segment.has(flags::SYN) && !self.places.listings[place as usize].ends_soon;
        match found.filter(|&(place, _)| ordinary(place)) {
            Some((place, end)) => self.push_to(place, end, segment, sink),
            None => self.follow_other(found, segment, sink),
        }
    }

    /// `found`: its connection, if that was found near.
    #[inline(never)]
    fn follow_other(&mut self, found: Option<(u32, usize)>, segment: &Segment, sink: &mut dyn Sink) {
        let hash = self.seed.of(segment);
        if segment.has(flags::SYN) && found.is_none() {
            // what a new connection needs, each of which would be waited for in turn
            self.index.prefetch(hash);
            self.past.prefetch(hash);
            self.hosts.prefetch_numbers(segment);
        }
        let mut found = found.or_else(|| self.look_up(hash, segment));
        if found.is_some_and(|(place, _)| self.is_overdue(place, segment.time_ns)) {
            self.settle_over(segment.time_ns, sink);
            found = self.look_up(hash, segment);
        }
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
            self.settle(place, None, sink);
            return Some((self.open(hash, segment), 0));
        }
        if self.past.takes(hash, segment) {
            return None;
        }
        self.other_way(segment, sink).or_else(|| {
            if self.live >= self.max_flows {
                self.make_room(segment.time_ns, sink);
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
