//! What is around a datagram: VLANs and tunnels, whose identity belongs to the key of a flow. The same addresses inside two of
//! them may be two hosts, and the same packet before and after a tunnel's end is in the capture twice.
//!
//! Only what both directions share counts. MPLS labels (RFC 3031, 2.1), endpoint identifiers of GTP (3GPP TS 29.281, 5.1)
//! and session numbers of L2TP (RFC 2661, 3.1) are chosen by each receiver for itself.

use super::Skip;
use crate::segment::NOWHERE;

/// Tunnels followed into each other.
const DEEPEST: u8 = 8;

/// What the number beside it counts.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Vlan = 1,
    Service = 2,
    Pppoe = 3,
    IpInIp = 4,
    Gre = 5,
    GreKey = 6,
    Vxlan = 7,
    Geneve = 8,
    Gtp = 9,
    L2tp = 10,
    Teredo = 11,
    Pseudowire = 12,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Around {
    /// 0 where there is nothing around.
    pub identity: u32,
    depth: u8,
}

impl Around {
    /// A tag: whatever their number, tags are passed over in a loop.
    #[inline]
    pub fn tagged(self, kind: Kind, number: u32) -> Self {
        let identity = mixed(mixed(self.identity, kind as u32), number).min(NOWHERE - 1);
        Self { identity, ..self }
    }

    /// A tunnel that a number tells from others.
    pub fn inside(self, kind: Kind, number: u32) -> Result<Self, Skip> {
        if self.depth == DEEPEST {
            return Err(Skip::TooDeep);
        }
        let depth = self.depth + 1;
        Ok(Self { depth, ..self }.tagged(kind, number))
    }

    /// A tunnel that is told by its ends.
    pub fn between(self, kind: Kind, src: u128, dst: u128) -> Result<Self, Skip> {
        let words = |address: u128| [96, 64, 32, 0].map(|shift| (address >> shift) as u32);
        let ends = [words(src.min(dst)), words(src.max(dst))];
        let number = ends.as_flattened().iter().copied().fold(0, mixed);
        self.inside(kind, number)
    }
}

/// A step of a multiplicative hash; two identities are compared only where addresses and ports are the same.
#[inline]
fn mixed(hash: u32, word: u32) -> u32 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b1)
}
