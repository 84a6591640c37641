//! What the flow table goes by: a connection's number, its ends, and how far it has come.

use crate::segment::{Address, Segment, NOWHERE};
use std::num::NonZeroU16;

/// Address and port.
pub type Name = (Address, u16);

/// In what bits the two differ, the halves of either put on one another. An address has just been written as two words: read
/// as one it would have to wait until these have reached the cache, behind all that was written before.
#[inline]
fn differ(address: &Address, other: &Address) -> u64 {
    let half = |address: &Address, at: usize| {
        let mut half = [0; 8];
        half.copy_from_slice(&address[at..][..8]);
        u64::from_ne_bytes(half)
    };
    half(address, 0) ^ half(other, 0) | half(address, 8) ^ half(other, 8)
}

/// What a connection is between.
#[derive(Clone, Copy)]
pub struct Ends {
    /// Address and port of each end, of which the first sent the first packet.
    pub names: [Name; 2],
    /// Identities of the VLANs and tunnels around its packets, twice the same where there is one.
    pub arounds: [u32; 2],
}

impl Ends {
    /// The end that sent the segment, if it is between the connection's two ends, in the same VLANs and tunnels.
    #[inline]
    pub fn sender(&self, segment: &Segment) -> Option<usize> {
        self.between(segment).filter(|_| self.arounds.contains(&segment.around))
    }

    /// The end that sent the segment, in whatever VLANs and tunnels.
    #[inline]
    pub fn between(&self, segment: &Segment) -> Option<usize> {
        // no branch on the direction: nobody can predict it
        let from = usize::from(self.names[0].1 != segment.sport);
        if self.is_from(from, segment) {
            return Some(from);
        }
        self.other_end(from, segment)
    }

    /// The ports tell nothing where they are the same at both ends.
    #[cold]
    fn other_end(&self, from: usize, segment: &Segment) -> Option<usize> {
        (self.names[0].1 == self.names[1].1 && self.is_from(1 - from, segment)).then_some(1 - from)
    }

    #[inline]
    fn is_from(&self, end: usize, segment: &Segment) -> bool {
        let ((src, sport), (dst, dport)) = (&self.names[end], &self.names[1 - end]);
        let ports = sport ^ segment.sport | dport ^ segment.dport;
        ports == 0 && differ(src, &segment.src) | differ(dst, &segment.dst) == 0
    }
}

/// Number of a host, from 1.
pub type HostNumber = NonZeroU16;

/// One line of a cache: to know a segment's connection nothing else is looked at.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct Listing {
    pub ends: Ends,
    pub number: u32,
    /// Numbers of the hosts at the ends.
    pub hosts: [Option<HostNumber>; 2],
    /// It has closed, and stays for late packets.
    pub lingers: bool,
    /// It is over, and stays for a short time only.
    pub ends_soon: bool,
    pub last_ns: i64,
}

const _: () = assert!(size_of::<Listing>() == 64);

impl Listing {
    /// No connection's: it is where none is.
    pub const NONE: Self = Self {
        ends: Ends {
            names: [([0; 16], 0); 2],
            arounds: [NOWHERE; 2],
        },
        number: u32::MAX,
        hosts: [None; 2],
        lingers: false,
        ends_soon: false,
        last_ns: i64::MIN,
    };

    /// A connection whose first packet is the segment.
    pub fn new(number: u32, hosts: [Option<HostNumber>; 2], first: &Segment) -> Self {
        Self {
            ends: Ends {
                names: [(first.src, first.sport), (first.dst, first.dport)],
                arounds: [first.around; 2],
            },
            number,
            hosts,
            ..Self::NONE
        }
    }
}
