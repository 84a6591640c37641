//! Labels and timers where no scenario has what they hang on.

use super::*;
use crate::flow::rare::Blank;
use crate::flow::sender::Ack;
use crate::rows::{FlowRow, RoundRow, Vantage};

#[derive(Default)]
struct Events(Vec<EventRow>);

impl Sink for Events {
    fn flow(&mut self, _: FlowRow) {}

    fn event(&mut self, row: EventRow) {
        self.0.push(row);
    }

    fn round(&mut self, _: RoundRow) {}
}

#[test]
fn a_timer_that_ran_shorter_than_a_round_trip_is_none_to_learn() {
    let timers_s = |again_ms: i64| {
        let mut sender = Sender::new(0, 0, 1000, Vantage::Receiver);
        sender.rtt.seed(0.05);
        (0..5).for_each(|n| sender.send_new(&sent(n, 1000 * n as i64)));
        sender.duplicate_acks = DUPTHRESH;
        sender.episodes.answered_ns = 100_000_000;
        let mut events = Events::default();
        assert_eq!(Reason::FastDupthresh, sender.send_again(&sent(0, 100_000), &mut events));
        assert_eq!(Reason::Rto, sender.send_again(&sent(0, 1000 * again_ms), &mut events));
        sender.finish(&mut events);
        let timeout = events.0.iter().find(|event| event.kind == Kind::Timeout).unwrap();
        (sender.episodes.timer_s, timeout.value.get())
    };
    assert_eq!((0.0, None), timers_s(101));
    assert_eq!((0.3, Some(0.3)), timers_s(400));
}

#[test]
fn what_is_known_to_answer_a_partial_ack_goes_on_with_the_recovery_however_many_duplicates_seem_to_have_come() {
    let again = |continued: bool, by_partial: u32, timer: bool| {
        let mut events = Events::default();
        let mut sender = Sender::new(0, 0, 1000, Vantage::Receiver);
        sender.rtt.seed(0.05);
        (0..8).for_each(|n| sender.send_new(&sent(n, n as i64)));
        (0..5).for_each(|n| sender.on_ack(&ack(0, 50_000 + n), &mut events));
        assert_eq!(Reason::FastDupthresh, sender.send_again(&sent(0, 50_010), &mut events));
        sender.on_ack(&ack(1000, 100_000), &mut events);
        (1..4).for_each(|n| sender.on_ack(&ack(1000, 100_000 + 5000 * n), &mut events));
        if continued {
            sender.episodes.continued_ns = 120_000_000;
        }
        sender.episodes.by_partial = by_partial;
        sender.send_again(&sent(1, if timer { 300_000 } else { 120_000 }), &mut events)
    };
    assert_eq!(
        (Reason::FastDupthresh, Reason::PartialAck),
        (again(false, 0, false), again(true, 0, false))
    );
    // the host has gone on so before, which is known of it when it has done so three times; a timer runs out all the same
    assert_eq!(
        (Reason::FastDupthresh, Reason::PartialAck),
        (again(false, 2, false), again(false, 3, false))
    );
    assert_eq!(Reason::Rto, again(false, 3, true));
}

#[test]
fn resends_upon_partial_acks_alone_are_counted() {
    let mut events = Events::default();
    let mut sender = Sender::new(0, 0, 1000, Vantage::Receiver);
    sender.rtt.seed(0.05);
    (0..8).for_each(|n| sender.send_new(&sent(n, n as i64)));
    (0..5).for_each(|n| sender.on_ack(&ack(0, 50_000 + n), &mut events));
    sender.send_again(&sent(0, 50_010), &mut events);
    let mut counted = Vec::new();
    for (n, duplicates) in [(1, 0), (2, 1), (3, 0)] {
        let ms = 50 * (n as i64 + 1);
        sender.on_ack(&ack(1000 * n, 1000 * ms), &mut events);
        (0..duplicates).for_each(|k| sender.on_ack(&ack(1000 * n, 1000 * ms + k), &mut events));
        assert_eq!(
            Reason::PartialAck,
            sender.send_again(&sent(n, 1000 * ms + 10), &mut events)
        );
        counted.push(sender.episodes.by_partial);
    }
    // after a duplicate ACK another may have asked for it
    assert_eq!(vec![1, 1, 2], counted);
}

/// At the receiver of a flow without timestamps times may be a little off. A resend is known to have been asked for by three
/// duplicate ACKs as it came a round trip after them.
#[test]
fn what_three_duplicate_acks_asked_for_begins_a_recovery_whatever_else_is_thought_to_have_come() {
    let again = |acked: u64, asked: bool| {
        let mut events = Events::default();
        let mut sender = Sender::new(0, 0, 1000, Vantage::Receiver);
        sender.rtt.seed(0.05);
        (0..8).for_each(|n| sender.send_new(&sent(n, n as i64)));
        sender.on_ack(&ack(acked, 50_000), &mut events);
        if asked {
            sender.episodes.answered_ns = 50_010_000;
        }
        let reason = sender.send_again(&sent(2, 50_010), &mut events);
        sender.finish(&mut events);
        let begun = events.0.iter().filter(|event| event.kind == Kind::Recovery);
        (reason, begun.map(|event| event.segments).collect::<Vec<_>>())
    };
    assert_eq!((Reason::FastDupthresh, vec![1]), again(2000, true));
    assert_eq!((Reason::Unknown, vec![]), again(2000, false));
    // what followed the duplicate ACKs is thought to have come, too
    assert_eq!((Reason::FastDupthresh, vec![1]), again(5000, true));
    assert_eq!((Reason::Unneeded, vec![]), again(5000, false));
}

/// Away from the sender: the first of eight segments comes again, a timer that was started 195 ms before has not run to its end, and
/// new data have come 15 or 75 ms before.
#[test]
fn without_timestamps_what_ends_no_silence_was_asked_for_by_duplicate_acks() {
    let label_behind = |duplicates: i64, new_us: i64, gap_us: i64| {
        let mut events = Events::default();
        let mut sender = Sender::new(0, 0, 1000, Vantage::Receiver);
        (1..20).for_each(|n| {
            sender.drift.on_data(500 * gap_us * n, 1, 0, 0);
        });
        sender.rtt.seed(0.1);
        sender.rtt.least(0.1);
        (0..8).for_each(|n| sender.send_new(&sent(n, n as i64)));
        sender.on_ack(&ack(1000, 100_000), &mut events);
        (0..duplicates).for_each(|n| sender.on_ack(&ack(1000, 150_000 + n), &mut events));
        sender.send_new(&sent(8, new_us));
        sender.send_again(&sent(1, 295_000), &mut events)
    };
    let label = |duplicates: i64, new_us: i64| label_behind(duplicates, new_us, 10_000);
    // a slow link sends all the while
    assert_eq!(Reason::FastDupthresh, label_behind(3, 220_000, 100_000));
    assert_eq!(
        (Reason::FastDupthresh, Reason::Rto),
        (label(3, 280_000), label(3, 220_000))
    );
    assert_eq!(Reason::Rto, label(2, 280_000));
}

#[test]
fn a_series_of_expiries_tells_the_first_of_its_timers_where_none_was_seen() {
    let mut episodes = Episodes::BLANK.clone();
    // 3 s are four expiries of a timer of 0.2 s, or two of one of a second (RFC 6298, 2.4)
    assert_eq!(2, episodes.expiries(3.0, 0.25).count);
    episodes.saw_series(0.2);
    let expiries = episodes.expiries(3.0, 0.25);
    assert_eq!((4, true), (expiries.count, expiries.fit()));
    // what was seen from start to end is not learned anew, and what was doubled is none of it
    episodes.saw_series(0.4);
    assert_eq!(0.2, episodes.timer_s);
    let mut doubled = Episodes {
        doublings: 2,
        ..Episodes::BLANK.clone()
    };
    doubled.saw_series(0.8);
    assert_eq!(0.2, doubled.timer_s);
}

#[test]
fn before_a_timer_was_seen_the_replayed_one_is_doubled_as_often_as_it_still_is() {
    // an expiry that no sample followed: 46 s are six more of a timer of 0.36 s left doubled, and seven of it anew
    let expiries = |doublings| {
        let episodes = Episodes {
            doublings,
            ..Episodes::BLANK.clone()
        };
        episodes.expiries(46.0, 0.36).count
    };
    assert_eq!((7, 6), (expiries(0), expiries(1)));
}

fn sent(n: u64, us: i64) -> Sent {
    Sent {
        frame: 1 + n,
        ..Sent::unseen(1000 * n, 1000 * (n + 1), 1000 * us)
    }
}

fn ack(ack: u64, us: i64) -> Ack {
    Ack {
        time_ns: 1000 * us,
        frame: 1,
        ack,
        window: Some(60_000),
        field: 60_000,
        ..Ack::NONE
    }
}

#[test]
fn an_impatient_timer_may_end_just_after_a_duplicate_ack() {
    let again = |us: i64| {
        let mut events = Events::default();
        let mut sender = Sender::new(0, 0, 1000, Vantage::Sender);
        sender.rtt.seed(0.05);
        sender.episodes.timer_s = 0.2;
        (0..8).for_each(|n| sender.send_new(&sent(n, n as i64)));
        (0..5).for_each(|n| sender.on_ack(&ack(0, 50_000 + n), &mut events));
        assert_eq!(Reason::FastDupthresh, sender.send_again(&sent(0, 50_010), &mut events));
        // the timer of this variant starts with the first partial ACK
        sender.on_ack(&ack(1000, 100_000), &mut events);
        assert_eq!(Reason::PartialAck, sender.send_again(&sent(1, 100_010), &mut events));
        sender.on_ack(&ack(2000, us - 10_000), &mut events);
        assert_eq!(Reason::PartialAck, sender.send_again(&sent(2, us - 9_990), &mut events));
        sender.on_ack(&ack(2000, us - 100), &mut events);
        sender.send_again(&sent(2, us), &mut events)
    };
    assert_eq!(Reason::Rto, again(300_000));
    // shorter than was seen, but nothing can have asked for it yet
    assert_eq!(Reason::Rto, again(260_000));
    assert_eq!(Reason::LostRetransmission, again(240_000));
}

#[test]
fn a_host_that_may_wait_for_more_duplicate_acks_may_have_waited_for_its_timer() {
    let opens = |duplicates: i64, us: i64| {
        let mut events = Events::default();
        let mut sender = Sender::new(0, 0, 1000, Vantage::Receiver);
        sender.rtt.seed(0.05);
        (0..4).for_each(|n| sender.send_new(&sent(n, n as i64)));
        (0..duplicates).for_each(|n| sender.on_ack(&ack(0, 60_000 + n), &mut events));
        sender.opens_episode(0, 1000 * us)
    };
    // three of four segments can have come, not four
    assert!(opens(4, 200_000) && opens(4, 400_000));
    assert!(opens(5, 200_000) && !opens(5, 400_000));
}

#[test]
fn a_late_segment_shows_a_host_with_sack_that_it_came_late() {
    let opens = |sack: bool, late: u64| {
        let mut sender = Sender::new(0, 0, 1000, Vantage::Receiver);
        sender.sack = sack;
        sender.reordering.segments = late;
        sender.send_new(&sent(0, 0));
        (sender.opens_episode(0, 100_000_000), sender.waits_for_more())
    };
    assert_eq!([(true, false); 2], [opens(true, 0), opens(false, 1)]);
    assert_eq!((false, true), opens(true, 1));
}

/// A single segment is sent again after 225 ms and, when that was lost too, `again_ms` later; then so is another, once. Why each was.
fn of_single_segments(vantage: Vantage, again_ms: i64) -> [Reason; 3] {
    let mut events = Events::default();
    let mut sender = Sender::new(0, 0, 1000, vantage);
    sender.sack = true;
    sender.timestamps = true;
    sender.rtt.seed(0.02);
    sender.send_new(&sent(0, 0));
    sender.on_ack(&ack(1000, 20_000), &mut events);
    sender.send_new(&sent(1, 30_000));
    let first = sender.send_again(&sent(1, 255_000), &mut events);
    let again_us = 255_000 + 1000 * again_ms;
    let second = sender.send_again(&sent(1, again_us), &mut events);
    sender.on_ack(&ack(2000, again_us + 20_000), &mut events);
    sender.send_new(&sent(2, again_us + 30_000));
    let third = sender.send_again(&sent(2, again_us + 255_000), &mut events);
    sender.finish(&mut events);
    let timeout = events.0.iter().find(|event| event.kind == Kind::Timeout).unwrap();
    assert_eq!(u32::from(again_ms > 300), timeout.doublings.get().unwrap());
    [first, second, third]
}

#[test]
fn what_a_doubled_timer_follows_was_no_probe_and_the_host_sends_none() {
    use Reason::{Rto, Tlp};
    assert_eq!([Tlp, Rto, Rto], of_single_segments(Vantage::Sender, 450));
    // behind a probe the timer is not doubled (RFC 8985, 7.3)
    assert_eq!([Tlp, Rto, Tlp], of_single_segments(Vantage::Sender, 225));
    // a probe may have been lost before it could be seen
    assert_eq!([Tlp, Rto, Tlp], of_single_segments(Vantage::Receiver, 450));
}

#[test]
fn what_only_a_hidden_timer_explains_may_be_asked_for_by_an_ack_under_way() {
    let asked = |duplicates: i64, us: i64| {
        let mut events = Events::default();
        let mut sender = Sender::new(0, 0, 1000, Vantage::Receiver);
        sender.rtt.seed(0.012);
        sender.rtt.least(0.012);
        (0..8).for_each(|n| sender.send_new(&sent(n, n as i64)));
        sender.on_ack(&ack(1000, 12_000), &mut events);
        (0..duplicates).for_each(|n| sender.on_ack(&ack(1000, us - 10 + n), &mut events));
        let again = sent(1, us);
        (
            sender.is_asked_for_by_more(&again),
            sender.nothing_asked_for(&again),
            sender.send_again(&again, &mut events),
        )
    };
    // longer than a round trip, and shorter than any timer
    assert_eq!((true, false, Reason::Rto), asked(2, 26_000));
    assert_eq!((false, false, Reason::EarlyRetransmit), asked(2, 22_000));
    assert_eq!((false, false, Reason::FastDupthresh), asked(3, 26_000));
    assert_eq!((true, true, Reason::Unknown), asked(0, 26_000));
}

/// Away from the sender, with SACK and without timestamps: the first of eight segments comes again 200 ms after the SACK blocks of three
/// others, `silence_us` after new data. A round trip takes 40 ms, as far as was told.
#[test]
fn behind_a_queue_that_nothing_told_of_sacks_ask_for_what_ends_no_silence() {
    let label = |silence_us: i64, timestamps: bool| {
        let mut events = Events::default();
        let mut sender = Sender::new(0, 0, 1000, Vantage::Receiver);
        (sender.sack, sender.timestamps) = (true, timestamps);
        sender.rtt.seed(0.04);
        sender.rtt.least(0.04);
        (0..8).for_each(|n| sender.send_new(&sent(n, n as i64)));
        for right in [3000, 4000, 5000] {
            let mut told = ack(0, 50_000);
            (told.sack[0], told.sack_len) = ((1000, right), 1);
            sender.on_ack(&told, &mut events);
        }
        sender.send_new(&sent(8, 250_000 - silence_us));
        sender.send_again(&sent(0, 250_000), &mut events)
    };
    assert_eq!(Reason::FastDupthresh, label(1000, false));
    // a timer has run, and what was sent before it took no longer
    assert_eq!(Reason::Rto, label(20_000, false));
    assert_eq!(Reason::Rto, label(1000, true));
}
