//! The last packet of an end, to tell a packet from its copy by a mirror port.

use crate::flow::arrivals::{CAPTURE_COPY_NS, COPY_NS};
use crate::flow::mirror;
use crate::segment::Segment;

/// What tells a packet from its copy by a mirror port.
#[derive(Clone, Copy, Default)]
pub(super) struct LastPacket {
    time_ns: i64,
    print: u32,
    ip_id: u16,
    ttl: u8,
    /// The end's SYN, or the other's, came twice: all packets may.
    pub(super) doubled: bool,
}

impl LastPacket {
    /// The same packet again: at once, as a mirror port gives it, or a little later behind a router. Without an
    /// identification an answer to each of two segments looks the same.
    #[inline]
    pub(super) fn is_repeated_by(&mut self, segment: &Segment) -> bool {
        let this = Self {
            time_ns: segment.time_ns,
            print: mirror::print(segment),
            ip_id: segment.ip_id.unwrap_or(0),
            ttl: segment.ttl,
            doubled: self.doubled,
        };
        let soon_ns = if this.ttl == self.ttl { CAPTURE_COPY_NS } else { COPY_NS };
        let repeated = (this.ip_id, this.print) == (self.ip_id, self.print)
            && (0..soon_ns).contains(&(this.time_ns - self.time_ns));
        *self = this;
        repeated
    }
}
