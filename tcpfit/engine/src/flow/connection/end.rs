//! What is known of one end of a connection, and the flow of its data.

use super::handshake::{Half, Syn};
use super::last_packet::LastPacket;
use crate::flow::ack_trail::AckTrail;
use crate::flow::direction::Flow;
use crate::flow::hosts::Known;
use crate::flow::sequence::Unwrap;
use crate::flow::stamp_clock::StampClock;
use crate::flow::zero_windows::ZeroWindows;
use crate::segment::Segment;

/// Steps of a counter of an end's packets stay below this where few of them are lost.
const FEW_IDS: u16 = 8;

/// The first line of a cache is what a segment of either end needs, the second has the clock of its sender, and what few
/// need.
#[derive(Default)]
#[repr(C)]
pub(super) struct End {
    pub(super) unwrap: Option<Unwrap>,
    pub(super) direction: Option<Box<Flow>>,
    /// The last packet of the end.
    pub(super) last: LastPacket,
    /// Sequence number after its FIN, and whether the other end has acknowledged it.
    pub(super) fin: Option<u32>,
    pub(super) fin_acknowledged: bool,
    /// Some packet of the end is in the capture.
    pub(super) seen: bool,
    /// What other connections of the host have shown.
    pub(super) known: Known,
    /// One counter of identifications serves all connections of the host.
    pub(super) shared: bool,
    /// Least and largest window advertised after the handshake, in bytes as sent.
    pub(super) windows: Windows,
    pub(super) stamps: StampClock,
    pub(super) syn: Option<Syn>,
    /// Number that the end's SYN-ACK acknowledged.
    pub(super) acknowledged: Option<u32>,
    /// Time of the last SYN or SYN-ACK, and its frame.
    pub(super) syn_ns: i64,
    pub(super) syn_frame: u64,
    /// The SYN before that: its timestamp and its time.
    pub(super) earlier_syn: Option<(u32, i64)>,
    /// What its first SYN-ACK took.
    pub(super) answered: Option<Half>,
    /// SYNs, or SYN-ACKs, that were sent; copies by the path do not count.
    pub(super) syns: u32,
    /// SYNs that the timer sent again, how long it ran, and the frame of the one before.
    pub(super) repeated_syns: Vec<(Segment, f64, u64)>,
    /// ACKs of the end's data, while no packet of the end is in the capture.
    pub(super) trail: Option<Box<AckTrail>>,
    /// Windows that were closed to the end before its first data.
    pub(super) early_windows: Option<Box<ZeroWindows>>,
    /// Identifications of the last two packets before the first data; of the last two ACKs where there are none.
    pub(super) early_ids: [Option<u16>; 2],
}

impl End {
    /// Remembers the identification of a packet before the flow begins: the counter runs through the handshake.
    pub(super) fn before_data(&mut self, segment: &Segment) {
        // hosts that do not count say 0, mostly
        if let Some(id) = segment
            .ip_id
            .filter(|&id| id != 0 || self.early_ids[1] == Some(u16::MAX))
        {
            self.early_ids = [self.early_ids[1], Some(id)];
        }
    }

    /// Packets of the end that were sent since its last one and before this one, all of them ACKs; `None` unless its identifications
    /// count the packets of the connection, and where data are among these.
    #[cold]
    pub(super) fn skipped_before(&self, segment: &Segment) -> Option<u16> {
        if self.shared {
            return None;
        }
        if let Some(flow) = &self.direction {
            let at = self.unwrap.map(|unwrap| unwrap.near(segment.seq));
            if at != Some(flow.sender.nxt) && self.fin != Some(segment.seq) {
                return None;
            }
            return flow.arrivals.skipped_before(segment.ip_id);
        }
        let ([Some(earlier), Some(last)], Some(id)) = (self.early_ids, segment.ip_id) else {
            return None;
        };
        let counts = (1..=FEW_IDS).contains(&last.wrapping_sub(earlier));
        Some(id.wrapping_sub(last).wrapping_sub(1)).filter(|&n| counts && n < FEW_IDS)
    }
}

/// The least and the largest of the windows; of none the least is the larger.
#[derive(Clone, Copy)]
pub(super) struct Windows {
    least: u16,
    most: u16,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            least: u16::MAX,
            most: 0,
        }
    }
}

impl Windows {
    #[inline]
    pub(super) fn add(&mut self, window: u16) {
        (self.least, self.most) = (self.least.min(window), self.most.max(window));
    }

    pub(super) fn range(self) -> Option<(u16, u16)> {
        (self.least <= self.most).then_some((self.least, self.most))
    }
}
