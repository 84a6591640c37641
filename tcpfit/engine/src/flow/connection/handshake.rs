//! The handshake: what the SYNs offer, how often they were sent, and what the SYN-ACK answers.

use super::{Connection, End};
use crate::events::marks;
use crate::flow::sequence::Unwrap;
use crate::flow::vantage::Position;
use crate::flow::window_scale;
use crate::rows::{EventRow, Feedback, Kind, Phase, Reason, Sink};
use crate::segment::{flags, Segment};

/// Repeated SYNs kept for the flow that begins with them; stacks give up after about six.
const REPEATED_SYNS: usize = 16;
/// The handshake's timer runs longer than this; a SYN that comes again sooner was copied on the way.
const SYN_TIMER_S: f64 = 0.1;
/// A client that waits so long for the answer to its SYN sends it again (RFC 6298, 2.1: 1 s; RFC 1122, 4.2.3.1: 3 s).
const LONGEST_ANSWER_S: f64 = 3.0;
/// Packets that a client may send of its first window, with its timer's, before any of them arrives.
const FIRST_PACKETS: u16 = 32;

#[derive(Clone, Copy, Default)]
pub(super) struct Syn {
    pub(super) mss: Option<u16>,
    pub(super) window_scale: Option<u8>,
    pub(super) sack_permitted: bool,
    pub(super) mptcp: bool,
    /// AE, CWR and ECE.
    pub(super) ace: u8,
    /// It came again sooner than the timer could send it.
    pub(super) copied: bool,
    /// It was sent before.
    again: bool,
    pub(super) incomplete: bool,
    pub(super) tsval: Option<u32>,
    ip_id: Option<u16>,
    /// It had data (RFC 7413), or the one before it; a client leaves them out when it sends the SYN again.
    pub(super) data: bool,
}

/// Time from a SYN to its SYN-ACK, or from a SYN-ACK to the client's next packet.
#[derive(Clone, Copy, Default)]
pub(super) struct Half {
    time_ns: i64,
    /// It is known which copy was answered (Karn); otherwise this is the shortest that it can be.
    sure: bool,
}

impl End {
    /// What it took to answer the end's SYN, or SYN-ACK. Of two the answer echoes the timestamp of one (RFC 7323, 3.2).
    fn half(&self, answer: &Segment) -> Half {
        let since = |sent_ns: i64, sure: bool| Half {
            time_ns: answer.time_ns - sent_ns,
            sure,
        };
        let syn = self.syn.unwrap_or_default();
        let echo = answer.options.timestamps.map(|(_, tsecr)| tsecr);
        match (echo, self.earlier_syn) {
            _ if !syn.again => since(self.syn_ns, true),
            (Some(echo), Some((earlier, _))) if Some(echo) == syn.tsval => since(self.syn_ns, echo != earlier),
            // a client that has answered the first of two SYN-ACKs goes on to echo that one: it does not take the second
            // (RFC 5961, 4.2), and its ACK may have been lost
            (Some(echo), Some((earlier, sent_ns))) if echo == earlier && answer.has(flags::SYN) => since(sent_ns, true),
            _ => since(self.syn_ns, false),
        }
    }
}

impl End {
    /// By its identification the end has sent packets between its SYN and this one, as far as it counts a connection's.
    fn has_sent_between(&self, segment: &Segment) -> bool {
        let syn = self.syn.and_then(|syn| syn.ip_id);
        let step = syn.zip(segment.ip_id).map(|(syn, id)| id.wrapping_sub(syn));
        step.is_some_and(|step| (2..=FIRST_PACKETS).contains(&step))
    }
}

impl Connection {
    /// Where the capture was taken, by the handshake that ends with `segment` of the client. A SYN-ACK that the timer sends
    /// again says nothing of the way to the server: that is in the first. A client that sends its SYN once, and whose answer to
    /// the SYN-ACK comes later than it would have waited itself, has answered before: that was lost. So it was where data come
    /// first, and their identification is not the one after the SYN's, but a little above; not where they are others than the
    /// first, which no timer sends before those.
    pub(super) fn handshake_position(&self, client: usize, segment: &Segment) -> Position {
        let server = &self.ends[1 - client];
        let mut halves = [server.half(segment), server.answered.unwrap_or_default()];
        let sure = halves.iter().all(|half| half.sure);
        let total_s = halves.iter().map(|half| half.time_ns as f64 / 1e9).sum::<f64>();
        let late = sure && self.ends[client].syns == 1 && total_s > LONGEST_ANSWER_S;
        let first = || {
            let isn = self.ends[client].unwrap.map(|unwrap| unwrap.isn());
            segment.payload > 0 && isn.is_some_and(|isn| segment.seq == isn.wrapping_add(1))
        };
        if late || first() && self.ends[client].has_sent_between(segment) {
            return Position::of_answer(1 - client, halves[1].time_ns as f64 / 1e9);
        }
        if client == 1 {
            halves.reverse();
        }
        let [first_s, second_s] = halves.map(|half| half.time_ns as f64 / 1e9);
        let position = Position::from_halves(first_s, second_s);
        if sure {
            position
        } else {
            position.in_doubt()
        }
    }

    /// SACK says of each ACK why it was sent: two that look the same are one.
    pub(super) fn uses_sack(&self) -> bool {
        let permits = |end: &End| end.syn.is_some_and(|syn| syn.sack_permitted);
        self.ends.iter().all(permits)
    }

    #[cold]
    pub(super) fn on_syn(&mut self, end: usize, segment: &Segment) {
        let answer = segment.has(flags::ACK);
        let known = self.ends[end].syn;
        let same_number = known.is_some() && self.ends[end].unwrap.is_some_and(|u| u.isn() == segment.seq);
        // where both ends open at once each sends a SYN-ACK after its SYN (RFC 9293, 3.5)
        let again = same_number && self.ends[end].acknowledged.is_some() == answer;
        let since_s = (segment.time_ns - self.ends[end].syn_ns) as f64 / 1e9;
        if let Some(syn) = self.ends[end].syn.as_mut().filter(|_| again && since_s < SYN_TIMER_S) {
            syn.copied = true;
            self.ends.iter_mut().for_each(|end| end.last.doubled = true);
            return;
        }
        if !same_number {
            // also a second SYN-ACK with another number: the later one counts
            self.ends[end].unwrap = Some(Unwrap::new(segment.seq));
        }
        let o = &segment.options;
        self.ends[end].syn = Some(Syn {
            mss: o.mss,
            window_scale: o.window_scale.map(|k| k.min(window_scale::LARGEST)),
            sack_permitted: o.sack_permitted,
            mptcp: o.mptcp,
            ace: marks::ace(segment.flags),
            copied: known.is_some_and(|syn| syn.copied && again),
            again,
            incomplete: o.incomplete,
            tsval: o.timestamps.map(|(tsval, _)| tsval),
            ip_id: segment.ip_id.filter(|&id| id != 0),
            data: segment.payload > 0 || known.is_some_and(|syn| syn.data && again),
        });
        let stamped = known.and_then(|syn| syn.tsval).filter(|_| again);
        self.ends[end].earlier_syn = stamped.map(|tsval| (tsval, self.ends[end].syn_ns));
        self.ends[end].syn_ns = segment.time_ns;
        if answer && (!again || self.ends[end].answered.is_none()) {
            let asker = &self.ends[1 - end];
            self.ends[end].answered = asker.syn.map(|_| asker.half(segment));
        }
        // a SYN asked for it, one that came since the last answer or one of several before; a reset has answered it
        let (own, peer) = (&self.ends[end], &self.ends[1 - end]);
        let asked = answer && (peer.syn_frame > own.syn_frame || peer.syns > own.syns) || self.reset;
        self.ends[end].syns += 1;
        let earlier = std::mem::replace(&mut self.ends[end].syn_frame, segment.frame);
        if answer {
            self.ends[end].acknowledged = Some(segment.ack);
            self.synack_seen = self.client == Some(1 - end);
            if segment.window == 0 {
                self.on_early_window(1 - end, segment);
            }
        } else {
            self.client = Some(end);
        }
        self.shifts = [0, 1].map(|end| self.offered_scales(end).exact());
        // with data (RFC 7413) it is the flow's own, whose identification would make a copy of it
        if segment.payload == 0 {
            self.ends[end].before_data(segment);
        }
        let end = &mut self.ends[end];
        if again && !asked && end.direction.is_none() && end.repeated_syns.len() < REPEATED_SYNS {
            end.repeated_syns.push((*segment, since_s, earlier));
        }
    }

    /// A SYN-ACK says whether the data of the SYN were taken (RFC 7413, 4.2.2).
    #[cold]
    pub(super) fn answer_early_data(&mut self, end: usize, segment: &Segment, sink: &mut dyn Sink) {
        let Some(syn) = self.ends[1 - end].syn.filter(|syn| syn.data && segment.has(flags::ACK)) else {
            return;
        };
        if !self.held_back.is_empty() {
            self.held_back.push((end, *segment));
            return;
        }
        if let (Some(unwrap), Some(flow)) = (&self.ends[1 - end].unwrap, &mut self.ends[1 - end].direction) {
            if segment.ack == unwrap.isn().wrapping_add(1) {
                // they will come again (4.2.2); of a SYN that came once they were not lost
                flow.sender.on_syn_alone(segment.time_ns);
                if !syn.again {
                    flow.sender.refuse();
                }
            } else {
                // its window is as sent (RFC 7323, 2.2)
                flow.on_ack(unwrap, segment, Some(0), sink);
            }
        }
    }

    /// The handshake's timer is the sender's too (RFC 6298, 5.7): the flow begins with its expiries.
    pub(super) fn syn_expiries(&mut self, end: usize, sink: &mut dyn Sink) {
        let repeated = std::mem::take(&mut self.ends[end].repeated_syns);
        // mostly there are none, and then the flow needs no room for episodes
        let Some(flow) = self.ends[end].direction.as_mut().filter(|_| !repeated.is_empty()) else {
            return;
        };
        flow.sender.episodes.timeouts += repeated.len() as u64;
        for (n, (syn, since_s, earlier)) in repeated.iter().enumerate() {
            sink.event(EventRow {
                flow: flow.sender.flow,
                time_ns: syn.time_ns,
                kind: Kind::Timeout,
                reason: Reason::Syn,
                left: 0,
                right: 1,
                frame: syn.frame.into(),
                cause_frame: (*earlier).into(),
                segments: n as u32,
                flight: 0.0,
                phase: Phase::Open,
                confidence: 0.95,
                value: (*since_s).into(),
                ..EventRow::NONE
            });
        }
    }

    /// Shifts of the window field that `end` sends, as far as the SYNs say.
    pub(super) fn offered_scales(&self, end: usize) -> window_scale::Range {
        let offer = |syn: Option<Syn>| syn.filter(|syn| !syn.incomplete).map(|syn| syn.window_scale);
        let own = &self.ends[end];
        window_scale::offered(
            offer(own.syn),
            offer(self.ends[1 - end].syn),
            own.acknowledged.is_some(),
        )
    }

    /// How marks are echoed; `None` if the handshake was not seen.
    pub(super) fn feedback(&self) -> Option<Feedback> {
        let client = self.client?;
        Some(marks::feedback(
            self.ends[client].syn?.ace,
            self.ends[1 - client].syn?.ace,
        ))
    }
}
