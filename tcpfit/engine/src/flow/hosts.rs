//! What connections have shown of hosts: where the capture was taken, and which host counts its packets, and how.

use crate::events::cause::WAITED_OUT;
use crate::flow::index::Index;
use crate::flow::listing::{HostNumber, Listing};
use crate::flow::seed::Seed;
use crate::prefetch::prefetch;
use crate::segment::{Address, Segment};

/// A counter went on if at most so many packets lie between two that were seen.
const NEXT: u16 = 8;
/// Turns at which a counter must have gone on: by chance once in 8,000 each.
const TURNS_NEEDED: u32 = 3;
/// Turns after which no further one is looked at: of so many either most went on counting or hardly any, and where flows
/// take turns by chance nobody can predict the question whether it was one.
const TURNS_ENOUGH: u32 = 1024;
/// Hosts of which something is remembered.
const HOSTS: usize = HostNumber::MAX.get() as usize;

/// No connection's number.
const NONE: u32 = u32::MAX;

/// What other connections have shown of the host at an end, when one begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// It counts its packets: more than one has shown that, or it could be chance.
    pub counts: bool,
    /// It sends no tail loss probes.
    pub waits_out: bool,
    pub least: Least,
}

/// The least round trip to a host from where the capture was taken, in as few bits as tell it, rounded down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Least(u16);

impl Least {
    pub fn of(seconds: f64) -> Self {
        if seconds.is_finite() && seconds > 0.0 {
            Self(((seconds as f32).to_bits() >> 16) as u16)
        } else {
            Self::default()
        }
    }

    /// `None` while it is not known.
    pub fn seconds(self) -> Option<f64> {
        (self.0 != 0).then(|| f32::from_bits(u32::from(self.0) << 16).into())
    }

    fn learn(&mut self, other: Self) {
        // those above 0 have the order of their bits
        if other.0 != 0 && (self.0 == 0 || other.0 < self.0) {
            *self = other;
        }
    }
}

/// What connections have shown of a host.
#[derive(Clone, Copy, Debug)]
struct Host {
    address: Address,
    /// Connections at whose end the capture was taken.
    local: u32,
    /// Connections whose identifications counted their packets.
    counts: u32,
    /// Last packet with an identification: its connection, `NONE` before the first, and the identification.
    last: u32,
    last_id: u16,
    /// What shows that it sends no tail loss probes, `WAITED_OUT` in all; one that it does.
    waited_out: u8,
    probes: bool,
    least: Least,
    /// Times another connection sent the next packet, and those at which it went on counting.
    turns: u32,
    continued: u32,
}

impl Host {
    fn new(address: Address) -> Self {
        Self {
            address,
            local: 0,
            counts: 0,
            last: NONE,
            last_id: 0,
            waited_out: 0,
            probes: false,
            least: Least::default(),
            turns: 0,
            continued: 0,
        }
    }

    /// Looks whether one counter serves several connections of the host. True once it is sure.
    #[inline]
    fn shares_counter(&mut self, connection: u32, id: u16) -> bool {
        if self.turns == TURNS_ENOUGH {
            return self.goes_on();
        }
        if self.last != connection {
            if self.last != NONE {
                self.turns += 1;
                self.continued += u32::from((1..=NEXT).contains(&id.wrapping_sub(self.last_id)));
            }
            self.last = connection;
        }
        self.last_id = id;
        self.continued >= TURNS_NEEDED && self.goes_on()
    }

    #[inline]
    fn goes_on(&self) -> bool {
        self.continued * 2 > self.turns
    }
}

/// What is known of hosts, by address; connections keep the numbers of theirs.
#[derive(Default)]
pub struct Hosts {
    seed: Seed,
    /// Numbers by hash.
    index: Index,
    /// By number.
    list: Vec<Host>,
}

impl Hosts {
    /// Asks for where the numbers of the segment's hosts are looked for.
    #[inline]
    pub fn prefetch_numbers(&self, segment: &Segment) {
        for address in [&segment.src, &segment.dst] {
            self.index.prefetch(self.seed.of_host(address));
        }
    }

    /// Numbers of the hosts that the segment is from and for, new ones if need be; `None` where the table is full.
    #[inline]
    pub fn numbers(&mut self, segment: &Segment) -> [Option<HostNumber>; 2] {
        [segment.src, segment.dst].map(|address| self.number(address))
    }

    fn number(&mut self, address: Address) -> Option<HostNumber> {
        let hash = self.seed.of_host(&address);
        let known = |number: u32| Some(number).filter(|&number| self.list[number as usize].address == address);
        if let Some(number) = self.index.find(hash, known) {
            return HostNumber::new(number as u16);
        }
        if self.list.len() > HOSTS {
            return None;
        }
        if self.list.is_empty() {
            self.list.push(Host::new(Address::default())); // no host has number 0
        }
        let number = HostNumber::new(self.list.len() as u16)?;
        self.list.push(Host::new(address));
        self.index.insert(hash, u32::from(number.get()));
        Some(number)
    }

    /// Asks for what is known of the connection's hosts.
    #[inline]
    pub fn prefetch(&self, listing: &Listing) {
        for host in listing.hosts.into_iter().flatten() {
            prefetch(&self.list[usize::from(host.get())]);
        }
    }

    #[inline]
    fn of(&mut self, number: HostNumber) -> &mut Host {
        &mut self.list[usize::from(number.get())]
    }

    /// Which of the hosts the capture was taken at, as other connections showed.
    #[inline]
    pub fn are_local(&self, numbers: [Option<HostNumber>; 2]) -> [bool; 2] {
        numbers.map(|number| number.is_some_and(|number| self.list[usize::from(number.get())].local > 0))
    }

    /// What other connections showed of the hosts.
    #[inline]
    pub fn known(&self, numbers: [Option<HostNumber>; 2]) -> [Known; 2] {
        let known = |number: HostNumber| {
            let host = &self.list[usize::from(number.get())];
            Known {
                counts: host.counts > 1,
                waits_out: host.waited_out >= WAITED_OUT && !host.probes,
                least: host.least,
            }
        };
        numbers.map(|number| number.map_or_else(Known::default, known))
    }

    /// Looks at a packet of the connection whether one counter serves several connections of the host that sent it.
    #[inline]
    pub fn shares_counter(&mut self, listing: &Listing, end: usize, segment: &Segment) -> bool {
        let id = segment.ip_id.unwrap_or(0);
        let host = listing.hosts[end];
        // one that is not known has a place in the list
        let place = usize::from(host.map_or(0, HostNumber::get));
        id != 0 && self.list[place].shares_counter(listing.number, id) && host.is_some()
    }

    /// The capture was taken at this end of the connection, if it is known.
    #[inline]
    pub fn learn_local(&mut self, listing: &Listing, end: Option<usize>) {
        if let Some(host) = end.and_then(|end| listing.hosts[end]) {
            self.of(host).local += 1;
        }
    }

    /// What the end's lost tails have shown: how surely that it sends no probes, and whether it sent one. Both, where several hosts
    /// have one address.
    pub fn learn_tails(&mut self, listing: &Listing, end: usize, waited_out: u8, probes: bool) {
        if let Some(host) = listing.hosts[end] {
            let host = self.of(host);
            host.waited_out = host.waited_out.saturating_add(waited_out);
            host.probes |= probes;
        }
    }

    /// The least round trip to the end's host.
    pub fn learn_least(&mut self, listing: &Listing, end: usize, least: Least) {
        if let Some(host) = listing.hosts[end] {
            self.of(host).least.learn(least);
        }
    }

    /// Which ends' identifications counted the connection's packets.
    #[inline]
    pub fn learn_counts(&mut self, listing: &Listing, counts: [bool; 2]) {
        for (host, counts) in listing.hosts.into_iter().zip(counts) {
            if let Some(host) = host {
                self.of(host).counts += u32::from(counts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_round_trip_is_known_to_within_a_128th() {
        let mut least = Least::default();
        assert_eq!(least.seconds(), None);
        for seconds in [-0.1, 0.2, 0.046, 0.1, f64::INFINITY, 0.0] {
            least.learn(Least::of(seconds));
        }
        let seconds = least.seconds().expect("samples were learned");
        assert!((0.046 * 127.0 / 128.0..=0.046).contains(&seconds), "{seconds}");
    }

    #[test]
    fn a_host_has_one_number_and_the_table_may_be_full() {
        let mut hosts = Hosts::default();
        let between = |n: u32| {
            let mut segment = Segment::default();
            segment.src[..4].copy_from_slice(&n.to_le_bytes());
            segment.dst[12..].copy_from_slice(&n.to_le_bytes());
            segment
        };
        for n in 0..HOSTS as u32 {
            let numbers = hosts.numbers(&between(n));
            // the address of zeros is a host as others are, here at both ends
            let expected =
                [(2 * n).max(1), 2 * n + 1].map(|number| u16::try_from(number).ok().and_then(HostNumber::new));
            assert_eq!(expected, numbers, "{n}");
        }
        assert_eq!([HostNumber::new(14), HostNumber::new(15)], hosts.numbers(&between(7)));
    }

    #[test]
    fn enough_turns_have_shown_what_a_host_does() {
        // connections in turn, whose packets take the next numbers, or numbers of their own
        for shared in [true, false] {
            let mut host = Host::new(Address::default());
            let mut takes = |n: u32, shared: bool| {
                let (connection, own) = (n % 3, (n % 3) as u16 * 20_000 + (n / 3) as u16);
                host.shares_counter(connection, if shared { n as u16 } else { own })
            };
            let early = (0..TURNS_NEEDED).any(|n| takes(n, shared));
            assert!(!early);
            let later: Vec<bool> = (TURNS_NEEDED..2000).map(|n| takes(n, shared)).collect();
            assert_eq!(vec![shared; later.len()], later);
            // what comes after so many changes nothing
            assert!((2000..10_000).all(|n| takes(n, !shared) == shared));
        }
    }
}
