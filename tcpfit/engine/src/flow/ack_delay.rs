//! When an ACK seen at the capture point reached the sender, on the clock of the data passing the capture point.
//!
//! At the sender that is at once. Elsewhere the ACK has still to travel: capture point -> sender, and what the sender
//! sends because of it -> capture point. With timestamps the data say so themselves: a segment that echoes the ACK's
//! TSval (RFC 7323, 4.3) was sent after the ACK came. Without, the way is taken from the handshake and from resends,
//! which answer the ACK that names them: the third duplicate (RFC 5681, 3.2) or a partial one (RFC 6582, 3.2). One that could
//! be the timer's, which waits at least a round trip (RFC 6298, 2.3), shows no way; what comes without a silence is none.
//! A handshake may take longer than the path: `slow_handshake` has what shows it; `own_data` what a receiver's data tell. What
//! timestamps say of segments that no ACK let go is in `soonest`.
//!
//! What a queue adds between two resends that tell the way, `drift` says afterwards.

use crate::flow::drift::By;
use crate::flow::rare::Blank;
use crate::flow::sender::Ack;
use crate::flow::sequence::before;
use crate::flow::stamp_clock::StampClock;
use crate::flow::vantage::HOST_S;
use std::collections::VecDeque;

mod own_data;
mod slow_handshake;
mod soonest;
mod told;

pub use own_data::OwnData;
use own_data::Shortest;
use slow_handshake::Sooner;
use soonest::Soonest;
use told::Stamped;
pub use told::Told;

/// No path is longer.
const LONGEST_WAY_S: f64 = 60.0;
/// ACKs under way at most; beyond, the oldest is taken as arrived.
const UNDER_WAY: usize = 65_536;
/// Edges remembered.
const EARLIER: usize = 32;
/// A queue may lengthen the way by a quarter and this much between two ACKs.
const WAY_MARGIN_NS: i64 = 5_000_000;
/// Without timestamps a resend may show a way longer by this share; more can be the timer's doing.
const GROWTH: f64 = 1.15;
/// Two ways that differ by one in so many are the same.
const SAME: i64 = 256;
/// What was under way so much longer than the segment before it was held by a path that stood still. No timer of a sender
/// runs out sooner, but in data centres.
const STALL_NS: i64 = 200_000_000;
/// What two resends took is alike if it differs by one in so many.
const ALIKE: i64 = 8;
/// A window that a loss halves (RFC 5681, eq. 4) leaves half of a queue's way at least.
const HALVED: i64 = 2;
/// A host that waits for more duplicate ACKs than three seldom waits for what come in so many times `gap_ns`, which is two
/// segments'.
const MANY: i64 = 4;
/// An ACK that no segment answers for this long beyond the way was lost.
const LOST_ACK_NS: i64 = 1_000_000_000;
/// One ACK may seem to have been answered too soon, where the capture lacks another of the same tick, or a timer ran out.
const PROMPT: i8 = 2;

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    ack: Ack,
    tsval: Option<u32>,
    /// Its own sequence number.
    number: u32,
}

/// How a segment came to the capture point, by the sender's timestamps; 0 where they do not tell.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// How much longer it was under way than the one before it.
    pub longer_ns: i64,
    /// How much longer than those before the path stood still, if it did.
    pub held_ns: i64,
    /// Since the sender sent the one before it.
    pub quiet_ns: i64,
}

impl Passage {
    pub const NONE: Self = Self {
        longer_ns: 0,
        held_ns: 0,
        quiet_ns: 0,
    };
}

/// What passes the capture point from the sender.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub time_ns: i64,
    pub tsval: Option<u32>,
    pub tsecr: Option<u32>,
    pub left: u64,
    pub right: u64,
    /// Highest byte sent before.
    pub nxt: u64,
    /// Without SACK: the left edge, if three duplicate ACKs have come and what they ask for has not been sent again.
    pub due: Option<u64>,
    /// For how long no data had passed.
    pub silence_ns: i64,
    /// The data before it ended with less than a full segment: the sender had no more (RFC 9293, 3.8.6.2.1).
    pub ended: bool,
    pub data: bool,
    /// Its IP identification says that it was sent after everything seen so far.
    pub newest: bool,
    /// It says that it was sent before something seen.
    pub older: bool,
    /// It says nothing.
    pub unnumbered: bool,
    /// What the sender knew when it sent the segment before, in the same tick, has asked for it: other ACKs of the tick that
    /// it echoes may have come later.
    pub asked: bool,
    /// Data sent for the second time, while no recovery was under way.
    pub opens: bool,
    /// The host is known to wait for more than three duplicate ACKs.
    pub waits: bool,
    /// The path has held segments back.
    pub overtaken: bool,
    /// Data sent for the second time, while no recovery was under way, however many duplicate ACKs the host waits for.
    pub may_open: bool,
    /// Data sent for the second time in a recovery that is under way, without SACK.
    pub goes_on: bool,
    /// A recovery is under way.
    pub in_recovery: bool,
    /// The sender is thought to know that these data have arrived, while no recovery is under way.
    pub acked: bool,
    /// Without timestamps: for how long the link had been busy, and since when, at the latest, nothing had passed before.
    pub busy_ns: i64,
    pub idle_since_ns: i64,
    /// And for how long none passes while it sends.
    pub gap_ns: i64,
    /// What it acknowledges of the data that pass the other way.
    pub own_data: Option<OwnData>,
}

impl Answer {
    /// What the third duplicate ACK asked for, `third_ns` ago, passes now behind data that a gap precedes: on a path without a
    /// queue it had come before that, unless it was held. Nor have duplicate ACKs since the gap asked for it, of a host that
    /// waits for more: there was not the time, or it had many before the gap.
    fn was_asked_before_gap(&self, third_ns: i64, least_ns: i64) -> bool {
        let before_ns = self.time_ns - self.idle_since_ns;
        let gap = self.idle_since_ns > 0 && before_ns > least_ns + WAY_MARGIN_NS;
        let many = !self.waits && self.gap_ns > 0 && third_ns - before_ns >= MANY * self.gap_ns;
        gap && !self.overtaken && (self.busy_ns < least_ns || many)
    }

    /// No data had passed for half of the least round trip, `least_ns`, and for longer than while a slow link sends.
    fn ends_silence(&self, least_ns: i64) -> bool {
        self.silence_ns >= (least_ns / 2).max(self.gap_ns)
    }
}

/// What a resend tells of the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    pub way_ns: i64,
    pub by: By,
    /// What is certain to have asked for it.
    pub asked: Option<Asked>,
}

/// What asks for a resend, but SACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Asked {
    /// Duplicate ACKs (RFC 5681, 3.2).
    Duplicates,
    /// A partial ACK (RFC 6582, 3.2).
    Partial,
}

impl Answer {
    pub fn resend(&self) -> bool {
        self.data && self.left < self.nxt
    }

    fn stamped(&self) -> Option<Stamped> {
        let time_ns = self.time_ns;
        self.tsval.map(|tsval| Stamped { tsval, time_ns })
    }

    /// It is not a late first copy.
    pub fn is_sure_resend(&self) -> bool {
        self.resend() && self.newest
    }
}

/// The receiver's left edge as it leaves the capture point.
#[derive(Clone, Copy, Debug)]
struct Edge {
    at: u64,
    first_ns: i64,
    copies: u32,
    third_ns: Option<i64>,
    /// Nothing was held above it when it came.
    clean: bool,
    /// If so: when the first ACK came that may have asked for what is missing, the third duplicate or, with SACK, the first (RFC
    /// 8985, 6.2).
    asked_ns: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct AckDelay {
    queue: VecDeque<UnderWay>,
    edge: Edge,
    /// Earlier edges that were acknowledged more than once: what asked for a resend may be filled when it comes.
    earlier: VecDeque<Edge>,
    /// Capture point -> sender -> capture point; 0 while nothing has told.
    pub way_ns: i64,
    /// The same at the handshake: no way is shorter.
    pub least_ns: i64,
    /// The handshake's own; 0 without one.
    pub path_ns: i64,
    /// The answer that told the way.
    told_by: Option<Stamped>,
    /// The soonest of the sender's packets.
    soonest: Option<Soonest>,
    /// Timestamp of the last ACK that came to the sender.
    came: Option<u32>,
    sooner: Sooner,
    /// The windows of the ACKs that came have room up to here; 0 while none is known.
    room_to: u64,
    clock: StampClock,
    /// How much longer the last segment was under way than the one before it, by its timestamp.
    longer_ns: i64,
    /// How much longer the last segment was under way than those before the path stood still, and when the first came after
    /// that. What was held comes within a round trip or two; then the path is a longer one.
    held_ns: i64,
    stalled_until_ns: i64,
    /// What the last resend took that came later than the flow's own queue allows; 0 without one.
    took_ns: i64,
    /// A queue that other flows fill was told last.
    of_others: bool,
    /// A resend that went on with a recovery has answered the partial ACK (RFC 6582, 3.2): the third duplicate came too late.
    goes_by_partial: bool,
    /// Without timestamps: what the data that pass now acknowledge of the other direction's, up to where these were acknowledged so
    /// far, and what that has told.
    pub own_data: Option<OwnData>,
    pub own_data_to: u64,
    own: Shortest,
    /// ACKs in a row that were answered within `HOST_S`, or, less than 0, that were not.
    prompt: i8,
    /// The user said where the capture was taken.
    pub place_given: bool,
}

impl Blank for AckDelay {
    const BLANK: &'static Self = &Self::NONE;

    fn new(_flow: u32) -> Self {
        Self::NONE
    }
}

impl AckDelay {
    const NONE: Self = Self {
        queue: VecDeque::new(),
        edge: Edge {
            at: 0,
            first_ns: 0,
            copies: 0,
            third_ns: None,
            asked_ns: None,
            clean: true,
        },
        earlier: VecDeque::new(),
        way_ns: 0,
        least_ns: 0,
        path_ns: 0,
        told_by: None,
        soonest: None,
        came: None,
        sooner: Sooner::NONE,
        room_to: 0,
        clock: StampClock::NEW,
        longer_ns: 0,
        held_ns: 0,
        stalled_until_ns: 0,
        took_ns: 0,
        of_others: false,
        goes_by_partial: false,
        own_data: None,
        own_data_to: 0,
        own: Shortest::NONE,
        prompt: 0,
        place_given: false,
    };

    /// The way as the handshake showed it; a clock that jumped shows none.
    pub fn set_way(&mut self, way_s: f64) {
        if way_s < LONGEST_WAY_S {
            self.way_ns = (way_s * 1e9) as i64;
            self.path_ns = self.way_ns;
            self.least_ns = (way_s * 0.98e9) as i64;
        }
    }

    /// A packet of the sender's handshake passed at `time_ns`, which showed the way.
    pub fn set_soonest(&mut self, tsval: u32, time_ns: i64) {
        self.soonest = Soonest::of_handshake(Stamped { tsval, time_ns }, self.path_ns);
    }

    /// A queue as long as that is another flow's, if what was asked for took as long before. A host that waits for more
    /// duplicate ACKs does so for as many, but they seldom take as long.
    fn took_as_long(&mut self, answer: &Answer, took_ns: i64) -> bool {
        if answer.waits || answer.overtaken {
            return false;
        }
        let before_ns = std::mem::replace(&mut self.took_ns, took_ns);
        (took_ns - before_ns).abs() <= took_ns / ALIKE
    }

    /// The sender has answered the last ACKs as soon as a host at the capture point does, unless that is known to be elsewhere.
    pub fn is_prompt(&self) -> bool {
        self.prompt >= PROMPT && !self.place_given
    }

    /// The last ACKs were answered later than a host at the capture point does.
    pub fn is_late(&self) -> bool {
        self.prompt <= -PROMPT
    }

    /// An ACK, and what it let go or asked for, were so long apart.
    fn count_prompt(&mut self, took_ns: i64) {
        let prompt = took_ns < (HOST_S * 1e9) as i64;
        self.prompt = match prompt {
            true => self.prompt.max(0).saturating_add(1),
            false => self.prompt.min(0).saturating_sub(1),
        };
    }

    /// By how much the ways of two segments may differ: the way was told by an earlier one, and doubles in a round trip of slow
    /// start that fills a queue.
    pub fn slack_ns(&self) -> i64 {
        2 * self.way_ns
    }

    /// Highest number of an ACK so far.
    pub fn newest(&self) -> u64 {
        self.edge.at
    }

    /// Lets an ACK go its way; gives the oldest where more are under way than is followed. `number`: its own.
    pub fn push(&mut self, ack: Ack, tsval: Option<u32>, number: u32) -> Option<Ack> {
        if ack.ack > self.edge.at {
            if self.edge.third_ns.is_some() {
                if self.earlier.len() >= EARLIER {
                    self.earlier.pop_front();
                }
                self.earlier.push_back(self.edge);
            }
            self.edge = Edge {
                at: ack.ack,
                first_ns: ack.time_ns,
                copies: 0,
                third_ns: None,
                asked_ns: None,
                clean: ack.sack_len == 0,
            };
        } else if ack.ack == self.edge.at && ack.pure {
            self.edge.copies += 1;
            if self.edge.copies == 3 {
                self.edge.third_ns = Some(ack.time_ns);
            }
            if self.edge.clean && self.edge.asked_ns.is_none() && (self.edge.copies == 3 || ack.sack_len > 0) {
                self.edge.asked_ns = Some(ack.time_ns);
            }
        }
        self.queue.push_back(UnderWay { ack, tsval, number });
        if self.queue.len() <= UNDER_WAY {
            return None;
        }
        let mut oldest = self.queue.pop_front()?.ack;
        oldest.time_ns = (oldest.time_ns + self.way_ns).min(ack.time_ns);
        Some(oldest)
    }

    /// Without timestamps: a resend shows how long the ACK that asked for it took.
    pub fn on_resend(&mut self, answer: &Answer) -> Option<Shown> {
        if answer.tsecr.is_some() || !answer.resend() || answer.older {
            return None;
        }
        let by = if answer.opens || answer.acked {
            By::Loss
        } else {
            By::Recovery
        };
        if self.way_ns == 0 {
            // nothing has told the way yet: a resend that the third duplicate ACK asked for does
            let asked = Some(&self.edge).filter(|edge| edge.at == answer.left);
            let third_ns = asked
                .and_then(|edge| edge.third_ns)
                .map(|third_ns| answer.time_ns - third_ns);
            self.way_ns = third_ns.filter(|&took_ns| took_ns < LOST_ACK_NS).unwrap_or(0);
            self.least_ns = self.way_ns / 2;
            let way_ns = self.way_ns;
            return (way_ns > 0).then_some(Shown {
                way_ns,
                by,
                asked: None,
            });
        }
        let mut edges = std::iter::once(&self.edge).chain(self.earlier.iter().rev());
        let &edge = edges.find(|edge| edge.at == answer.left)?;
        let partial_ns = answer.time_ns - edge.first_ns;
        let third_ns = edge.third_ns.map(|third_ns| answer.time_ns - third_ns);
        let asked_ns = edge.asked_ns.map(|asked_ns| answer.time_ns - asked_ns);
        // the third is not before the first that may have asked for it
        if let Some(took_ns) = third_ns.or(asked_ns).filter(|_| answer.opens) {
            self.count_prompt(took_ns);
        }
        if let Some(took_ns) = asked_ns.filter(|&took_ns| self.is_shorter(answer, took_ns, partial_ns)) {
            self.shorten(took_ns);
            return Some(Shown {
                way_ns: took_ns,
                by,
                asked: Some(Asked::Duplicates),
            });
        }
        if !(answer.newest || answer.unnumbered && (answer.opens || answer.goes_on)) {
            return None;
        }
        // after half a round trip of silence the flow's own queue is empty: what takes longer waited for the timer
        let usual_ns = if answer.silence_ns > self.way_ns / 2 {
            self.way_ns.min(self.least_ns)
        } else {
            self.way_ns
        };
        let longest_ns = (usual_ns as f64 * GROWTH) as i64 + WAY_MARGIN_NS;
        // what comes together behind a queue of others may seem to have been asked for by what came just before
        let shortest_ns = if answer.in_recovery && self.of_others {
            self.least_ns.max(self.way_ns / HALVED - WAY_MARGIN_NS)
        } else {
            self.least_ns
        };
        let possible = |&took_ns: &i64| took_ns >= shortest_ns && took_ns < longest_ns;
        // no timer is shorter than a round trip (RFC 6298, 2.3), and a queue takes no more of the silence before it than
        // what the round trip has grown by: without the silence duplicate ACKs have asked for the resend
        // nor is a queue longer than the link has been busy: a host may wait for more than three duplicate ACKs
        let most_ns = (LONGEST_WAY_S * 1e9) as i64;
        let most_ns = most_ns.min(answer.busy_ns.saturating_add(self.least_ns + WAY_MARGIN_NS));
        // unless it is another flow's
        let least_ns = self.least_ns;
        let shown = |took_ns: i64| took_ns < most_ns || answer.was_asked_before_gap(took_ns, least_ns);
        // and no sender sends again what it knows to have arrived: the way was longer than thought
        let asked = (answer.opens || answer.acked && answer.newest) && !answer.ends_silence(least_ns);
        let asked_ns = third_ns.filter(|&took_ns| asked && took_ns >= least_ns);
        if let Some(took_ns) = asked_ns.filter(|&took_ns| shown(took_ns) || self.took_as_long(answer, took_ns)) {
            self.of_others = took_ns >= most_ns;
            // without identifications it may still be an original that was held for longer than a round trip: other ACKs are not taken
            // to come as late
            if !answer.unnumbered {
                self.way_ns = took_ns;
            }
            return Some(Shown {
                way_ns: took_ns,
                by,
                asked: Some(Asked::Duplicates),
            });
        }
        // nothing else than the partial ACK has asked a host for it that goes by these; new data that come all the while leave no
        // timer, and the queue may have grown by more than usual
        if answer.goes_on {
            let partial = partial_ns >= self.least_ns;
            if partial && third_ns.is_none_or(|took_ns| took_ns < self.least_ns) {
                self.goes_by_partial = true;
            } else if self.goes_by_partial && partial && !answer.ends_silence(self.least_ns) {
                if !answer.unnumbered {
                    self.way_ns = partial_ns;
                }
                return Some(Shown {
                    way_ns: partial_ns,
                    by,
                    asked: Some(Asked::Partial),
                });
            }
        }
        if answer.unnumbered {
            return None;
        }
        // after as long a way as the last the third has asked for it, a timer runs since an earlier ACK
        let same = |took_ns: &i64| (took_ns - self.way_ns).abs() <= self.way_ns / SAME;
        // of a host that waits for more, a later one may have
        let third_ns = third_ns.filter(|took_ns| !answer.waits || *took_ns <= self.way_ns);
        let took_ns = [Some(partial_ns), third_ns].into_iter().flatten().filter(possible);
        let nearest = || took_ns.min_by_key(|took_ns| (took_ns - self.way_ns).abs());
        self.way_ns = third_ns.filter(same).or_else(nearest)?;
        let way_ns = self.way_ns;
        Some(Shown {
            way_ns,
            by,
            asked: None,
        })
    }

    /// A tick of the sender's timestamps, if it is known and fine enough for round trips.
    pub fn tick_ns(&self) -> Option<i64> {
        self.clock.fine_tick_ns()
    }

    /// Learns the sender's clock, and what it says of how the answer came.
    pub fn learn(&mut self, answer: &Answer) -> Passage {
        let Some(stamped) = answer.stamped() else {
            return Passage::NONE;
        };
        let ahead_ns = self.clock.ahead_ns(stamped.tsval, stamped.time_ns);
        let longer_ns = self.clock.fine_tick_ns().and(ahead_ns).unwrap_or(0);
        self.longer_ns = longer_ns;
        let slack_ns = self.slack_ns();
        self.clock.learn(stamped.tsval, stamped.time_ns, || slack_ns);
        self.told_by = self.told_by.or(Some(stamped));
        if let Some((soonest, tick_ns)) = self.soonest.zip(self.tick_ns()) {
            self.soonest = soonest.after(stamped, tick_ns);
        }
        // longer than the silence: something sent after it has overtaken it, so it was held alone
        if longer_ns > STALL_NS && longer_ns <= answer.silence_ns {
            self.stalled_until_ns = stamped.time_ns;
            self.held_ns += longer_ns;
        } else if self.held_ns > 0 {
            let over = stamped.time_ns - self.stalled_until_ns > 2 * self.way_ns;
            self.held_ns = if over { 0 } else { (self.held_ns + longer_ns).max(0) };
        }
        Passage {
            longer_ns,
            held_ns: self.held_ns,
            quiet_ns: (answer.silence_ns - longer_ns).max(0),
        }
    }

    /// The segment before it has the same timestamp.
    pub fn is_of_last_tick(&self, answer: &Answer) -> bool {
        answer.tsval.is_some() && answer.tsval == self.clock.last_stamp()
    }

    /// Next ACK that the sender had when it sent `answer`.
    pub fn next(&mut self, answer: &Answer) -> Option<Ack> {
        let front = self.queue.front()?;
        let due_ns = front.ack.time_ns + self.way_ns;
        let overdue = answer.time_ns - self.held_ns > due_ns + self.way_ns + LOST_ACK_NS;
        // a sender does not send again what it knows to be acknowledged
        let beyond = answer.resend() && front.ack.ack > answer.left;
        // of several ACKs with one timestamp the first has come where it is echoed, however slow the handshake was; others
        // have come at least the shortest way, or made the sender send again
        let went_ns = answer.time_ns - front.ack.time_ns;
        let first = self.came != front.tsval;
        let echoed = first
            || !answer.asked
                && (answer.resend() || went_ns >= self.least_ns && !self.is_behind_due(answer, &front.ack));
        let own = Self::came_with_own_data(front.number, due_ns, answer);
        let arrived = match (front.tsval, answer.tsecr) {
            // an older echo: the ACK was still under way, or lost itself if that lasts; what is sent again, and it acknowledges,
            // shows that it had not come
            (Some(tsval), Some(echo)) => {
                before(tsval, echo) || tsval == echo && !beyond && echoed || overdue && !beyond
            }
            _ if own.is_some() => own == Some(true) && !beyond,
            // what a silence ended and it acknowledges was not sent again for it: the ACK was lost
            _ if beyond && answer.silence_ns > self.way_ns => overdue,
            _ => answer.time_ns >= due_ns + if beyond { WAY_MARGIN_NS } else { 0 },
        };
        if !arrived {
            return None;
        }
        let echo = front.tsval.is_some() && front.tsval == answer.tsecr;
        let answers = echo && front.ack.ack < answer.nxt;
        if echo && first {
            self.least_ns = self.least_ns.min(went_ns);
            self.count_prompt(went_ns);
            if let Some((soonest, tick_ns)) = self.soonest.zip(self.tick_ns()) {
                let by = answer.stamped();
                self.soonest = by.and_then(|by| soonest.at_most(went_ns, by, tick_ns));
            }
        }
        let mut ack = self.pop()?;
        let took_ns = answer.time_ns - ack.time_ns;
        // data come one after the other: an application that pauses leaves a silence
        let streaming = answer.silence_ns < took_ns / 4;
        // but for what a queue has added since the segment before, which its timestamp tells
        let usual_ns = took_ns - self.longer_ns.max(0);
        let near = usual_ns <= self.way_ns + self.way_ns / 4 + WAY_MARGIN_NS && !answer.ended;
        let let_go = (near || streaming && !answer.resend()) && !self.has_waited(answer, took_ns);
        let answers_now = answers && (self.way_ns == 0 || let_go);
        if answers_now {
            // this very ACK let the segment go
            self.way_ns = took_ns.clamp(0, (LONGEST_WAY_S * 1e9) as i64);
            self.told_by = answer.stamped();
        }
        // else the timer, the application or an ACK after it let it go
        let came_ns = if answers_now { answer.time_ns } else { due_ns };
        ack.told = self.told(ack.time_ns, came_ns, answer.time_ns);
        ack.time_ns = came_ns.min(answer.time_ns);
        Some(ack)
    }

    /// The ACK had come before, by the sender's clock, and no data since: an application had not written them yet, or a pacer had to wait.
    fn has_waited(&self, answer: &Answer, took_ns: i64) -> bool {
        let (Some((soonest, tick_ns)), Some(by)) = (self.soonest.zip(self.tick_ns()), answer.stamped()) else {
            return false;
        };
        let waited_ns = took_ns - soonest.way_of_ns(by, tick_ns);
        waited_ns > tick_ns && waited_ns <= answer.silence_ns
    }

    /// New data that the window had room for pass, and what the third duplicate ACK asked for is still to come: before that nothing
    /// is let go by an ACK that moved the edge (RFC 5681, 3.2).
    fn is_behind_due(&self, answer: &Answer, ack: &Ack) -> bool {
        !answer.resend() && answer.right <= self.room_to && answer.due.is_some_and(|edge| ack.ack > edge)
    }

    /// Next ACK that the sender can have had on the shortest way, when one after those it is thought to have had asked for
    /// `answer`.
    pub fn next_possible(&mut self, answer: &Answer) -> Option<Ack> {
        let front = self.queue.front()?;
        let took_ns = answer.time_ns - front.ack.time_ns;
        let least_ns = if answer.newest {
            self.least_ns
        } else {
            self.least_of_own_data_ns()
        };
        if took_ns < least_ns {
            return None;
        }
        self.way_ns = self.way_ns.min(took_ns);
        let mut ack = self.pop()?;
        ack.time_ns = answer.time_ns;
        Some(ack)
    }

    /// The first of those under way has come.
    fn pop(&mut self) -> Option<Ack> {
        let UnderWay { ack, tsval, .. } = self.queue.pop_front()?;
        self.came = tsval;
        self.room_to = self.room_to.max(ack.room_to());
        Some(ack)
    }

    /// How it is known at `time_ns` when an ACK came to the sender that passed at `passed_ns`, and came at `came_ns` if its way was that
    /// of the one before: by what an ACK let go within two round trips, else by the soonest.
    fn told(&self, passed_ns: i64, came_ns: i64, time_ns: i64) -> Option<Told> {
        let (by, tick_ns) = (self.told_by?, self.tick_ns()?);
        let long_ago = time_ns - by.time_ns > 2 * self.way_ns;
        match self.soonest.filter(|_| long_ago) {
            Some(soonest) => Some(soonest.told(passed_ns, tick_ns)),
            None => Some(Told::by_answer(by, tick_ns, came_ns)),
        }
    }

    /// What is left when the flow ends.
    pub fn drain(&mut self) -> impl Iterator<Item = Ack> + '_ {
        let way_ns = self.way_ns;
        self.queue.drain(..).map(move |mut u| {
            u.ack.time_ns += way_ns;
            u.ack
        })
    }
}

#[cfg(test)]
mod tests;
