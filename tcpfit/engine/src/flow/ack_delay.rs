//! When an ACK seen at the capture point reached the sender, on the clock of the data passing the capture point.
//!
//! At the sender that is at once. Elsewhere the ACK has still to travel: capture point -> sender, and what the sender
//! sends because of it -> capture point. With timestamps the data say so themselves: a segment that echoes the ACK's
//! TSval (RFC 7323, 4.3) was sent after the ACK came. Without, the way is taken from the handshake and from the answers
//! to duplicate ACKs.

use crate::flow::sender::Ack;
use crate::flow::sequence::before;
use std::collections::VecDeque;

/// ACKs under way at most; beyond, the oldest is taken as arrived.
const UNDER_WAY: usize = 65_536;

/// A queue may lengthen the way by a quarter and this much between two ACKs.
const WAY_MARGIN_NS: i64 = 5_000_000;
/// An ACK that no segment answers for this long beyond the way was lost.
const LOST_ACK_NS: i64 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    ack: Ack,
    tsval: Option<u32>,
}

#[derive(Clone, Debug, Default)]
pub struct AckDelay {
    queue: VecDeque<UnderWay>,
    /// Capture point -> sender -> capture point; 0 while nothing has told.
    pub way_ns: i64,
}

impl AckDelay {
    pub fn push(&mut self, ack: Ack, tsval: Option<u32>) {
        self.queue.push_back(UnderWay { ack, tsval });
    }

    /// Next ACK that the sender had when it sent what passes at `now_ns`, echoing `tsecr`; `nxt` is the highest byte it
    /// had sent before, `resend` says that what passes lies below it, `silence_ns` for how long
    /// no data had passed.
    pub fn next(&mut self, now_ns: i64, tsecr: Option<u32>, nxt: u64, resend: bool, silence_ns: i64) -> Option<Ack> {
        let front = self.queue.front()?;
        let due_ns = front.ack.time_ns + self.way_ns;
        let arrived = match (front.tsval, tsecr) {
            // an older echo: the ACK was still under way, or lost itself if that lasts
            (Some(tsval), Some(echo)) => !before(echo, tsval) || now_ns > due_ns + self.way_ns + LOST_ACK_NS,
            _ => now_ns >= due_ns,
        };
        if !arrived && self.queue.len() <= UNDER_WAY {
            return None;
        }
        let answers = front.tsval.is_some() && front.tsval == tsecr && front.ack.ack < nxt;
        let mut ack = self.queue.pop_front()?.ack;
        let took_ns = now_ns - ack.time_ns;
        // data come one after the other: an application that pauses leaves a silence
        let streaming = silence_ns < took_ns / 4;
        let near = took_ns <= self.way_ns + self.way_ns / 4 + WAY_MARGIN_NS;
        if answers && (self.way_ns == 0 || near || streaming && !resend) {
            // this very ACK let the segment go
            self.way_ns = took_ns;
            ack.time_ns = now_ns;
        } else {
            // the timer or the application let it go
            ack.time_ns = due_ns.min(now_ns);
        }
        Some(ack)
    }

    /// What is left when the flow ends.
    pub fn drain(&mut self) -> impl Iterator<Item = Ack> + '_ {
        let way_ns = self.way_ns;
        self.queue.drain(..).map(move |mut u| {
            u.ack.time_ns += way_ns;
            u.ack
        })
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
