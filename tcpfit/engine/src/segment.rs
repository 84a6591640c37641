//! A decoded TCP segment: all that later stages know of a packet. Payload bytes never come this far.

use crate::nullable::Nullable;

/// An IPv4 address is kept in its IPv4-mapped form (`::ffff:a.b.c.d`), so one key type serves both.
pub type Address = [u8; 16];

/// An identity of VLANs and tunnels that no segment has.
pub const NOWHERE: u32 = u32::MAX;

/// First 12 bytes of an IPv4-mapped address (RFC 4291, 2.5.5.2).
pub const V4_MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// TCP flags (RFC 9293, 3.1; AE from RFC 9768).
pub mod flags {
    pub const FIN: u16 = 0x001;
    pub const SYN: u16 = 0x002;
    pub const RST: u16 = 0x004;
    pub const PSH: u16 = 0x008;
    pub const ACK: u16 = 0x010;
    pub const URG: u16 = 0x020;
    pub const ECE: u16 = 0x040;
    pub const CWR: u16 = 0x080;
    pub const AE: u16 = 0x100;
}

/// Which way the packet passed the capturing host, where the capture says so (SLL packet type, pcapng `epb_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    #[default]
    Unknown,
    Inbound,
    Outbound,
}

/// TCP options that matter to inference. Absent options are `None` or empty. Their order here is the one in which the
/// absence of all but timestamps is written in the fewest words.
#[derive(Clone, Copy, Debug, Default, Eq)]
#[repr(C)]
pub struct Options {
    /// (TSval, TSecr), RFC 7323, 3.2.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks in the order sent (RFC 2018, 3); `sack[..sack_len]` are valid, the others may be an earlier segment's.
    pub sack: [(u32, u32); 4],
    pub sack_permitted: bool,
    /// Some option of Multipath TCP (RFC 8684, 3).
    pub mptcp: bool,
    /// The option area was cut by the snapshot length or malformed: absent options may have been there.
    pub incomplete: bool,
    pub mss: Option<u16>,
    pub sack_len: u8,
    /// Window scale shift as sent (RFC 7323, 2.3: values above 14 are used as 14 by the reader of this field).
    pub window_scale: Option<u8>,
    /// Payload bytes that came marked, as the receiver counts them modulo 2^24 (RFC 9768, 3.2.3: ECEB).
    pub ce_bytes: Nullable<u32>,
}

impl PartialEq for Options {
    fn eq(&self, other: &Self) -> bool {
        let flags = |of: &Self| (of.sack_permitted, of.mptcp, of.incomplete);
        let fields = |of: &Self| (of.timestamps, flags(of), of.mss, of.window_scale, of.ce_bytes);
        fields(self) == fields(other) && self.sack_blocks() == other.sack_blocks()
    }
}

impl Options {
    pub fn sack_blocks(&self) -> &[(u32, u32)] {
        &self.sack[..self.sack_len as usize]
    }
}

/// One TCP segment as it passed the capture point. In the order of its fields here, neighbours of the packet are written as
/// one word: ports and sequence number are, backwards, those of the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// Number of the packet in its capture, from 1, as Wireshark counts (packets of every protocol count).
    pub frame: u64,
    /// Nanoseconds since the epoch.
    pub time_ns: i64,
    pub src: Address,
    pub dst: Address,
    pub seq: u32,
    pub dport: u16,
    pub sport: u16,
    pub ack: u32,
    pub flags: u16,
    /// Window field as sent, not scaled.
    pub window: u16,
    /// TCP payload bytes on the wire (from the IP length, never from the captured length).
    pub payload: u32,
    /// Bytes of the frame on the wire.
    pub wire_bytes: u32,
    /// IPv4 identification; `None` for IPv6.
    pub ip_id: Option<u16>,
    /// IPv4 TTL or IPv6 hop limit.
    pub ttl: u8,
    /// The two ECN bits of the IP header (RFC 3168, 5).
    pub ecn: u8,
    /// TCP checksum as sent (0 when cut off).
    pub checksum: u16,
    pub direction: Direction,
    /// Identity of the VLANs and tunnels around the datagram; 0 for none.
    pub around: u32,
    pub options: Options,
}

impl Segment {
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Address and port of its sender, and of its receiver.
    #[inline]
    pub fn ends(&self) -> [(&Address, u16); 2] {
        [(&self.src, self.sport), (&self.dst, self.dport)]
    }

    pub fn is_v4(&self) -> bool {
        self.src[..12] == V4_MAPPED
    }

    /// Sequence space the segment takes: payload plus one each for SYN and FIN (RFC 9293, 3.4).
    pub fn seq_len(&self) -> u32 {
        self.payload + u32::from(self.has(flags::SYN)) + u32::from(self.has(flags::FIN))
    }
}
