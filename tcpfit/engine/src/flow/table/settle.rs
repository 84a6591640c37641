//! How connections leave the table: given out when they are over, or nothing came for long, and freed.

use super::{unpacked, Tracker};
use crate::flow::listing::Listing;
use crate::flow::packed::Store;
use crate::flow::past::Past;
use crate::flow::places::{Kept, Places};
use crate::rows::Sink;
use std::collections::VecDeque;

/// Packets of a closed connection are known as such for so long (RFC 9293's 2 MSL is longer than needed here).
const LINGER_NS: i64 = 10_000_000_000;
/// Of it, how long the connection itself stays once each end has the other's FIN: its last segments sent again, by timers
/// that the lost answer let run out, and copies that were still under way come within it.
const OVER_NS: i64 = 1_000_000_000;
/// A connection without a packet for this long is settled; what comes later is followed as a new one. One that carried data
/// may be quiet between two keep-alives, which are two hours apart (RFC 9293, 3.8.4; RFC 5382, REQ-5 asks translators to
/// remember it for as long).
const IDLE_NS: i64 = (2 * 60 + 4) * 60_000_000_000;
/// The same of one that carried none.
const EMPTY_NS: i64 = 600_000_000_000;
/// Between two looks for idle connections, in time of the capture; what one has in reserve that was quiet for so long is
/// given back.
const SWEEP_NS: i64 = 60_000_000_000;
/// Of all connections so many parts are settled at a time when there is no room.
const ROOM: usize = 4;
/// Connections that are over are settled so many at a time: the instructions for it are as many as the cache for them
/// holds. Where segments come between two, each connection has to fetch them again.
pub const TOGETHER: usize = 16;
/// None waits longer for others: what it shows of its hosts is for those that begin after it.
const WAIT_NS: i64 = 10_000_000;

/// A connection that has ended, and until when it stays as it is.
#[derive(Clone, Copy)]
pub(super) struct Closing {
    due_ns: i64,
    place: u32,
    number: u32,
}

impl Tracker {
    /// What is due by the time of the capture.
    #[cold]
    pub(super) fn on_time(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        self.settle_closed(now_ns, sink);
        if self.over_due_ns() <= now_ns {
            self.settle_over(now_ns, sink);
        } else {
            self.forget_past(now_ns);
        }
        if now_ns >= self.next_sweep_ns {
            self.sweep(now_ns, sink);
        }
        let closing_ns = self.closing.front().map_or(i64::MAX, |first| first.due_ns);
        let queues = [closing_ns, self.over_due_ns(), self.past.due_ns()];
        self.next_due_ns = queues.into_iter().fold(self.next_sweep_ns, i64::min);
    }

    /// Lets a connection that has just closed wait for late packets; less long once it is over.
    #[cold]
    pub(super) fn linger(&mut self, place: u32, now_ns: i64) {
        let listing = &mut self.places.listings[place as usize];
        let (local, over) = match &mut self.places.kept[place as usize] {
            Kept::Live(connection) => {
                if !listing.lingers {
                    connection.shrink(&mut self.numbers.spare);
                }
                (connection.local_end(), connection.is_over())
            }
            Kept::Packed(packed) => (packed.local_end(), packed.is_over()),
            _ => return,
        };
        if !std::mem::replace(&mut listing.lingers, true) {
            self.hosts.learn_local(listing, local);
            if let Kept::Live(connection) = &self.places.kept[place as usize] {
                for end in 0..2 {
                    let (waited_out, probes) = connection.tails(end);
                    self.hosts.learn_tails(listing, end, waited_out, probes);
                    self.hosts.learn_least(listing, end, connection.least_to(end));
                }
            }
        }
        listing.ends_soon = over;
        let number = listing.number;
        if over {
            let due_ns = now_ns + OVER_NS;
            self.over.push_back(Closing { due_ns, place, number });
            self.next_due_ns = self.next_due_ns.min(self.over_due_ns());
        } else {
            let due_ns = now_ns + LINGER_NS;
            self.closing.push_back(Closing { due_ns, place, number });
            self.next_due_ns = self.next_due_ns.min(due_ns);
        }
    }

    /// When as many connections that are over are due as are settled together, or the first has waited for others.
    fn over_due_ns(&self) -> i64 {
        let due_ns = |n: usize, wait_ns: i64| {
            self.over
                .get(n)
                .map_or(i64::MAX, |one| one.due_ns.saturating_add(wait_ns))
        };
        due_ns(TOGETHER - 1, 0).min(due_ns(0, WAIT_NS))
    }

    /// The connection there is over and due, and waits for others only: what comes is none of it any more.
    pub(super) fn is_overdue(&self, place: u32, now_ns: i64) -> bool {
        let due = |first: &Closing| first.due_ns <= now_ns;
        self.places.listings[place as usize].ends_soon && self.over.front().is_some_and(due)
    }

    /// Gives out the connection there, and forgets it; until `late_ns` its late packets are known.
    pub(super) fn settle(&mut self, place: u32, late_ns: Option<i64>, sink: &mut dyn Sink) {
        let listing = &self.places.listings[place as usize];
        let hashes = self.seed.all(&listing.ends);
        for hash in hashes.into_iter().flatten() {
            self.index.prefetch(hash);
            self.past.prefetch(hash);
        }
        let kept = &mut self.places.kept[place as usize];
        let Some(connection) = unpacked(listing, kept, &mut self.store, &mut self.numbers, sink) else {
            return;
        };
        if listing.lingers {
            self.hosts
                .learn_counts(listing, [0, 1].map(|end| connection.counts(end)));
        }
        connection.finish(listing, &mut self.numbers, sink);
        let isns = connection.isns();
        if let Kept::Live(connection) = self.places.free(place) {
            self.numbers.spare.give_connection(connection);
        }
        self.live -= 1;
        for hash in hashes.into_iter().flatten() {
            self.index.remove(hash, place);
        }
        if let Some(late_ns) = late_ns {
            self.past.add(hashes, isns, late_ns);
        }
    }

    fn settle_closed(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        while let Some(first) = due(&mut self.closing, now_ns) {
            let Some((listing, kept)) = self.waiting(first).filter(|(listing, _)| !listing.ends_soon) else {
                continue;
            };
            let goes_on = match kept {
                Kept::Live(connection) => connection.outlives_reset() || !connection.is_over(),
                Kept::Packed(packed) => !packed.is_over(),
                Kept::Nothing => false,
            };
            if goes_on && listing.last_ns > first.due_ns - LINGER_NS {
                let due_ns = listing.last_ns.saturating_add(LINGER_NS);
                self.closing.push_back(Closing { due_ns, ..first });
            } else {
                self.settle(first.place, None, sink);
            }
        }
    }

    /// Settles the connections that are over and due.
    pub(super) fn settle_over(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        loop {
            let all = self.over.iter().take(TOGETHER);
            let count = all.take_while(|first| first.due_ns <= now_ns).count();
            if count == 0 {
                break;
            }
            for n in 0..count {
                let next = |later: usize| self.over.get(n + 1 + later).map(|next| next.place);
                self.places.prefetch_to_settle(next, &self.store);
                if let Some((listing, _)) = self.waiting(self.over[n]) {
                    self.hosts.prefetch(listing);
                    self.unpacked(self.over[n].place, sink);
                }
            }
            for _ in 0..count {
                let Some(first) = self.over.pop_front() else { break };
                if self.waiting(first).is_none() {
                    continue;
                }
                self.settle(first.place, Some(first.due_ns + (LINGER_NS - OVER_NS)), sink);
            }
        }
        self.forget_past(now_ns);
    }

    /// No more settled connections are known than connections are followed.
    fn forget_past(&mut self, now_ns: i64) {
        self.past.forget(now_ns, self.max_flows);
    }

    /// The connection that was to wait there, if it still does.
    fn waiting(&self, waits: Closing) -> Option<(&Listing, &Kept)> {
        self.places.open(waits.place, waits.number)
    }

    #[cold]
    fn sweep(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        self.next_sweep_ns = now_ns.saturating_add(SWEEP_NS);
        let mut idle: Vec<(u32, u32)> = Vec::new();
        for ((place, listing), kept) in (0..).zip(&self.places.listings).zip(&mut self.places.kept) {
            if !kept.is_open() {
                continue;
            }
            let idle_ns = if kept.carries_data() { IDLE_NS } else { EMPTY_NS };
            if listing.last_ns.saturating_add(idle_ns) < now_ns {
                idle.push((listing.number, place));
            } else if let (Kept::Live(connection), true) = (kept, listing.last_ns.saturating_add(SWEEP_NS) < now_ns) {
                connection.shrink(&mut self.numbers.spare);
            }
        }
        // in order of first packet, whatever places were free then
        idle.sort_unstable();
        for (_, place) in idle {
            self.settle(place, None, sink);
        }
    }

    /// Where as many connections are followed as may be: settles what is due and, if that is none, a part of the others, of
    /// which those without data come first, then those quiet the longest.
    #[cold]
    pub(super) fn make_room(&mut self, now_ns: i64, sink: &mut dyn Sink) {
        self.settle_over(now_ns, sink);
        if self.live < self.max_flows {
            return;
        }
        let all = self.places.all_open();
        let mut open: Vec<(bool, i64, u32, u32)> = all
            .map(|(place, listing, carries_data)| (carries_data, listing.last_ns, listing.number, place))
            .collect();
        let part = (open.len() / ROOM).max(1);
        open.select_nth_unstable(part - 1);
        open.truncate(part);
        open.sort_unstable_by_key(|&(_, _, number, _)| number);
        self.crowded_out += open.len() as u64;
        for (.., place) in open {
            self.settle(place, None, sink);
        }
    }

    /// Settles and gives out everything that is still open; the tracker is empty after it.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        self.clock.end();
        for segment in self.clock.release() {
            self.follow_late(&segment, sink);
        }
        self.store.end();
        let all = self.places.all_open();
        let mut open: Vec<(u32, u32)> = all.map(|(place, listing, _)| (listing.number, place)).collect();
        open.sort_unstable();
        for from in (0..open.len()).step_by(TOGETHER) {
            let to = open.len().min(from + TOGETHER);
            for n in from..to {
                let next = |later: usize| open.get(n + 1 + later).map(|&(_, place)| place);
                self.places.prefetch_to_settle(next, &self.store);
                self.unpacked(open[n].1, sink);
            }
            for &(_, place) in &open[from..to] {
                let listing = &self.places.listings[place as usize];
                if let Kept::Live(mut connection) =
                    std::mem::replace(&mut self.places.kept[place as usize], Kept::Nothing)
                {
                    connection.finish(listing, &mut self.numbers, sink);
                    self.numbers.spare.give_connection(connection);
                }
            }
        }
        self.places = Places::default();
        self.store = Store::default();
        self.index.clear();
        self.live = 0;
        self.closing.clear();
        self.over.clear();
        self.past = Past::default();
    }
}

/// The first of the queue, if its time has come.
fn due(queue: &mut VecDeque<Closing>, now_ns: i64) -> Option<Closing> {
    queue.front().filter(|first| first.due_ns <= now_ns)?;
    queue.pop_front()
}
