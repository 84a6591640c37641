//! From what passed the capture point to what the sender sent: sending order, holes, copies.
//!
//! At a receiver, or anywhere behind a loss, three things have to be put right before the sender can be followed:
//! transmissions that never came by are put where they were sent, segments that came late are given the place at which
//! they were sent, and copies made by the path are taken out. The evidence, best first: the IP identification where it is
//! a counter of the connection, the TCP timestamp (a segment with an older TSval than the newest data was sent before
//! it), and time (an answer to a duplicate ACK needs a round trip).

use crate::flow::ip_id::{IpId, Place};
use crate::flow::scoreboard::segments;
use crate::flow::sender::{Sender, Sent};
use crate::rows::{Reason, Sink};
use crate::segment::Segment;
use std::collections::VecDeque;

mod alone;
mod copies;
mod gaps;
mod held;
mod late;
mod repeats;

pub use alone::Writes;
pub use copies::{CAPTURE_COPY_NS, COPY_NS};
pub use gaps::Missing;

/// Copies from which that most data came twice is no chance.
const COPIES: u64 = 20;

/// A data segment as it passed the capture point.
#[derive(Clone, Copy, Debug)]
pub struct Passing {
    pub left: u64,
    pub right: u64,
    pub time_ns: i64,
    pub frame: u64,
    pub tsval: Option<u32>,
    pub ip_id: Option<u16>,
    pub checksum: u16,
    pub ttl: u8,
}

impl Passing {
    /// The segment whose data begin at `left`.
    #[inline(always)]
    pub fn new(left: u64, segment: &Segment) -> Self {
        Self {
            left,
            right: left + u64::from(segment.payload),
            time_ns: segment.time_ns,
            frame: segment.frame,
            tsval: segment.options.timestamps.map(|(tsval, _)| tsval),
            ip_id: segment.ip_id,
            checksum: segment.checksum,
            ttl: segment.ttl,
        }
    }
}

#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Arrivals {
    /// The receiver has sent data since the sender's last packet: a skipped identification can be an acknowledgement.
    pub two_way: bool,
    /// Boxed, because most flows miss nothing, and send nothing again.
    uncommon: Option<Box<Uncommon>>,
    pub segments: u64,
    /// Packets that passed, copies included.
    packets: u64,
    pub bytes: u64,
    /// Newest data by sending order.
    newest_tsval: Option<u32>,
    /// Last segment that passed, to know a copy.
    last: Option<Passing>,
    id: IpId,
    /// Of the bytes, what had passed before.
    repeated_bytes: u64,
}

/// Transmissions that did not come by, came once more, or were sent again.
#[derive(Clone, Debug, Default)]
struct Uncommon {
    missing: VecDeque<Missing>,
    /// Identifications skipped and not yet explained by data.
    skipped: VecDeque<i64>,
    /// Transmissions that are thought to have been made and did not pass.
    guessed: u64,
    /// The lost resend that began the last recovery, with SACK, by its order, and the frame that showed it.
    began: Option<(u64, u64)>,
    /// Frame of the last resend of data that had passed before, and the end of these.
    repeated: u64,
    repeated_right: u64,
    /// Highest byte sent then.
    repeated_nxt: u64,
    /// Without identification: what came late last, as was proven.
    late: Option<Proven>,
    /// Without identification: what came after a silence, until the next segment says what ended it.
    alone: Option<alone::Alone>,
    /// Neither: what filled the beginning of a hole after one.
    held: Option<held::Held>,
    counts: Counts,
}

/// A segment that was held on its way, and what proves it.
#[derive(Clone, Copy, Debug)]
struct Proven {
    right: u64,
    time_ns: i64,
    hole_ns: i64,
    reason: Reason,
    confidence: f64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub resent_segments: u64,
    pub resent_bytes: u64,
    pub copies: u64,
    /// Of the copies, those made by the network.
    pub network_copies: u64,
    /// Those, and their bytes, that only came too soon for the network.
    at_once: u64,
    at_once_bytes: u64,
    /// Identifications skipped for which no data were found.
    pub unplaced: u64,
}

impl Arrivals {
    /// `counts` says that the host's identifications are known to count a connection's packets.
    pub fn new(counts: bool) -> Self {
        Self {
            id: if counts { IpId::trusted() } else { IpId::default() },
            ..Self::default()
        }
    }

    /// The identification shows that the packet was sent after everything seen so far.
    pub fn is_newest(&self, ip_id: Option<u16>) -> bool {
        ip_id.is_some_and(|id| self.id.is_newest(id))
    }

    /// It shows that something seen was sent after it.
    pub fn is_older(&self, ip_id: Option<u16>) -> bool {
        ip_id.is_some_and(|id| self.id.ordered() && !self.id.is_newest(id))
    }

    /// The identifications tell which packet was sent first.
    pub fn are_ordered(&self, ip_id: Option<u16>) -> bool {
        ip_id.is_some() && self.id.ordered()
    }

    /// Packets that were sent since the newest one and before this one, as far as the identification shows it.
    pub fn skipped_before(&self, ip_id: Option<u16>) -> Option<u16> {
        ip_id.and_then(|id| self.id.skipped_before(id))
    }

    /// Segments that arrived so far, copies left out (RFC 5236 gives duplicates no place in the sequence).
    fn arrived(&self) -> u64 {
        self.segments - self.counts().network_copies
    }

    pub fn counts(&self) -> Counts {
        self.uncommon
            .as_ref()
            .map_or_else(Counts::default, |uncommon| uncommon.counts)
    }

    /// Segments that passed and their bytes, the network's copies included. Of many copies some come too soon for a last link where
    /// the capture's clock is coarse or its host is busy: where the network has made more, it has made these as well.
    pub fn passed(&self) -> (u64, u64) {
        let counts = self.counts();
        if counts.at_once < counts.network_copies {
            (self.segments + counts.at_once, self.bytes + counts.at_once_bytes)
        } else {
            (self.segments, self.bytes)
        }
    }

    pub fn unique_bytes(&self) -> u64 {
        self.bytes - self.repeated_bytes
    }

    /// Segments and copies so far.
    pub fn counted(&self) -> (u64, u64) {
        (self.segments, self.counts().copies)
    }

    /// Most of the data came twice, a copy for every two packets.
    pub fn are_doubled(&self) -> bool {
        let copies = self.counts().network_copies;
        copies >= COPIES && copies * 3 >= self.segments
    }

    pub fn is_counter(&self) -> bool {
        self.id.dense()
    }

    fn uncommon(&mut self) -> &mut Uncommon {
        self.uncommon.get_or_insert_default()
    }

    /// The counter serves other connections too, or all that was sent comes by: skipped numbers mean nothing.
    pub fn share_counter(&mut self) {
        self.id.ignore_gaps();
        self.forget_skipped();
        if let Some(uncommon) = &mut self.uncommon {
            uncommon.counts.unplaced = 0;
        }
    }

    /// A packet of the sender without data: it takes an identification too.
    pub fn on_other(&mut self, ip_id: Option<u16>) {
        if let Some(Place::Newest { index, missing }) = ip_id.map(|id| self.id.observe(id, 1)) {
            self.skip(index, missing);
        }
    }

    /// The same, whose sequence number `left` is the next that the sender will send (RFC 9293, 3.10.7.4).
    pub fn on_acknowledgement(&mut self, left: u64, ip_id: Option<u16>, sender: &mut Sender) {
        let newest = self.is_newest(ip_id);
        self.on_other(ip_id);
        if newest && left == sender.nxt && sender.una == sender.nxt {
            // nothing new was sent since, and all before has arrived: what was skipped were packets without data
            self.forget_skipped();
        }
        if newest && left < sender.nxt && left >= sender.una {
            sender.retract(left);
            if let Some(uncommon) = &mut self.uncommon {
                uncommon.missing.retain(|m| m.left < sender.nxt);
            }
        }
    }

    /// The sender's FIN, at `left`: data below it that have not come by are missing.
    pub fn on_fin(&mut self, passing: Passing, sender: &mut Sender, sink: &mut dyn Sink) {
        if passing.left > sender.nxt {
            self.fill_gap(&passing, self.last, sender, sink);
        }
    }

    /// Data that begin where the sender's end, while its board is not full.
    #[inline(always)]
    pub fn on_next_data(&mut self, left: u64, segment: &Segment, sender: &mut Sender, sink: &mut dyn Sink) {
        self.packets += 1;
        let count = segments(u64::from(segment.payload), sender.smss);
        // what most are: no copy, and no identification is missing before it
        let place = match segment.ip_id {
            Some(id) if !self.id.take_next(id, count) => Some(self.id.observe_any(id, count)),
            _ => None,
        };
        let newest = matches!(place, None | Some(Place::Unknown | Place::Newest { missing: 0, .. }));
        let passing = Passing::new(left, segment);
        if newest && self.skipped() == 0 && self.last.is_none_or(|last| last.left != left) {
            self.last = Some(passing);
            self.segments += u64::from(count);
            self.bytes += u64::from(segment.payload);
            if let Some(tsval) = passing.tsval {
                self.newest_tsval = Some(tsval);
            }
            sender.send_next(&Self::sent(&passing), count, |sender| sender.on_unclocked(sink));
        } else {
            let taken = segment.ip_id.map_or(Place::Unknown, |_| self.id.newest());
            self.on_other_data(passing, count, place.unwrap_or(taken), sender, sink);
        }
    }

    /// Data of any kind.
    #[inline(never)]
    pub fn on_data(&mut self, left: u64, segment: &Segment, sender: &mut Sender, sink: &mut dyn Sink) {
        if left == sender.nxt && !sender.one_way && !sender.board.is_full() {
            self.on_next_data(left, segment, sender, sink);
            return;
        }
        self.packets += 1;
        let count = segments(u64::from(segment.payload), sender.smss);
        let place = segment.ip_id.map_or(Place::Unknown, |id| self.id.observe(id, count));
        self.on_other_data(Passing::new(left, segment), count, place, sender, sink);
    }

    /// The segment comes by value: one whose address is asked for is written to memory, and most are only looked at.
    #[inline(never)]
    fn on_other_data(
        &mut self,
        passing: Passing,
        count: u32,
        mut place: Place,
        sender: &mut Sender,
        sink: &mut dyn Sink,
    ) {
        let passing = &passing;
        if place == Place::Copy && !self.is_copy_by_id(passing, sender) {
            place = Place::Unknown; // a number that came again: a resend with its original's, or other data
        }
        if place == Place::Copy || self.is_copy(passing, sender) {
            self.uncommon().counts.copies += u64::from(count);
            if !self.is_capture_copy(passing, sender) {
                // the network's copy passed the capture point like any other packet
                self.segments += u64::from(count);
                self.uncommon().counts.network_copies += u64::from(count);
                self.bytes += passing.right - passing.left;
                self.repeated_bytes += passing.right - passing.left;
            } else if self.came_at_once(passing, sender) {
                let counts = &mut self.uncommon().counts;
                counts.at_once += u64::from(count);
                counts.at_once_bytes += passing.right - passing.left;
            }
            self.copy_event(passing, count, sender, sink);
            return;
        }
        let before = self.last.replace(*passing);
        self.segments += u64::from(count);
        self.bytes += passing.right - passing.left;
        if passing.left < sender.nxt {
            self.repeated_bytes += passing.right - passing.left - sender.unseen_bytes(passing.left, passing.right);
        }
        if let Place::Newest { index, missing } = place {
            self.skip(index, missing);
        }
        if let Place::Late { index } = place {
            if self.late_by_id(index, passing, count, sender, sink) {
                return;
            }
        }
        if passing.left != sender.nxt || self.skipped() > 0 {
            if passing.left >= sender.nxt {
                self.fill_gap(passing, before, sender, sink);
            } else {
                self.lost_below(passing, before, sender, sink);
            }
        }
        if passing.left >= sender.nxt {
            self.send_new(passing, sender, sink);
        } else {
            self.below(*passing, place, sender, sink);
        }
    }

    #[inline]
    pub fn sent(passing: &Passing) -> Sent {
        Sent {
            left: passing.left,
            right: passing.right,
            time_ns: passing.time_ns,
            frame: passing.frame,
            tsval: passing.tsval.unwrap_or(0),
            ip_id: passing.ip_id.unwrap_or(0),
            doubtful: false,
            by_timer: false,
        }
    }

    #[inline(never)]
    fn send_new(&mut self, passing: &Passing, sender: &mut Sender, sink: &mut dyn Sink) {
        self.newest_tsval = passing.tsval.or(self.newest_tsval);
        if sender.one_way {
            sender.send_new_one_way(&Self::sent(passing), sink);
        } else {
            sender.send_new(&Self::sent(passing));
        }
    }
}
