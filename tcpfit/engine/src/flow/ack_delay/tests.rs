//! When ACKs came to the sender, on packets a few milliseconds apart.

use super::*;

const WAY_NS: i64 = 10_000_000;

fn ack(time_ns: i64, ack: u64) -> Ack {
    Ack {
        time_ns,
        frame: 1,
        ack,
        ..Ack::NONE
    }
}

/// Data from 100 on that are sent again after such a silence, without timestamps.
pub(super) fn resend(time_ns: i64, silence_ns: i64) -> Answer {
    Answer {
        time_ns,
        tsval: None,
        tsecr: None,
        left: 100,
        right: 200,
        nxt: 1000,
        due: None,
        silence_ns,
        ended: false,
        data: true,
        newest: true,
        older: false,
        unnumbered: false,
        asked: false,
        opens: false,
        acked: false,
        waits: false,
        may_open: false,
        goes_on: false,
        in_recovery: false,
        overtaken: false,
        busy_ns: i64::MAX,
        idle_since_ns: 0,
        gap_ns: 0,
        own_data: None,
    }
}

/// New data with timestamps.
fn new_data(time_ns: i64, silence_ns: i64, tsecr: u32) -> Answer {
    Answer {
        tsval: Some(5),
        tsecr: Some(tsecr),
        left: 1000,
        right: 1100,
        ..resend(time_ns, silence_ns)
    }
}

/// The way that a resend of `left` shows, which came 12 ms after the third duplicate ACK of it, where `later` higher
/// edges have had three duplicates since.
fn way_ns(later: u64) -> i64 {
    let mut acks = AckDelay::NONE;
    acks.set_way(WAY_NS as f64 / 1e9);
    for edge in 0..=later {
        for copy in 0..4 {
            acks.push(ack(1000 * (4 * edge + copy) as i64, 100 + edge), None, 0);
        }
    }
    acks.on_resend(&resend(12_003_000, 0));
    acks.way_ns
}

#[test]
fn a_resend_shows_the_way_of_one_of_the_last_edges() {
    assert_eq!(way_ns(0), 12_000_000);
    assert_eq!(way_ns(32), 12_000_000);
    assert_eq!(way_ns(33), WAY_NS);
}

/// Where the first resend has told the way, and no handshake, half of it is all that is known to be the least.
#[test]
fn a_resend_after_the_same_way_as_the_last_was_asked_for_whatever_silence_there_was() {
    let way_ns = |took_ns: i64| {
        let mut acks = AckDelay::NONE;
        (acks.way_ns, acks.least_ns) = (10 * WAY_NS, 5 * WAY_NS);
        (0..4).for_each(|copy| assert!(acks.push(ack(copy, 100), None, 0).is_none()));
        acks.on_resend(&resend(3 + took_ns, 10 * WAY_NS));
        acks.way_ns
    };
    assert_eq!((99_700_000, 100_300_000), (way_ns(99_700_000), way_ns(100_300_000)));
    // what comes sooner or later may be a timer's
    assert_eq!((100_000_000, 100_000_000), (way_ns(99_000_000), way_ns(101_000_000)));
}

/// The way after resends that came so long after the third duplicate ACK each, where the handshake took 60 ms.
fn way_after(took_ns: &[i64], change: impl Fn(&mut Answer), edge_ns: i64) -> i64 {
    let mut acks = AckDelay::NONE;
    acks.set_way(6.0 * WAY_NS as f64 / 1e9);
    for (n, took_ns) in took_ns.iter().enumerate() {
        let (at, start_ns) = (100 + n as u64, SECOND_NS * n as i64);
        let times_ns = [0, edge_ns - 3, edge_ns - 2, edge_ns - 1];
        for ns in times_ns {
            assert!(acks.push(ack(start_ns + ns, at), None, 0).is_none());
        }
        let mut answer = resend(start_ns + edge_ns - 1 + took_ns, 5 * WAY_NS);
        (answer.left, answer.may_open) = (at, true);
        change(&mut answer);
        acks.on_resend(&answer);
    }
    acks.way_ns / 1_000_000
}

const SECOND_NS: i64 = 1_000_000_000;
pub(super) const MS: i64 = 1_000_000;

#[test]
fn two_resends_that_come_sooner_than_the_handshake_allows_show_the_way() {
    let shown = |took_ns: &[i64]| way_after(took_ns, |_| (), 4);
    assert_eq!((60, 50), (shown(&[50 * MS]), shown(&[50 * MS, 50 * MS])));
    // one by chance is none, nor are two that differ; the last two count
    assert_eq!(
        (60, 40),
        (
            shown(&[40 * MS, 50 * MS]),
            shown(&[50 * MS, 40 * MS, 40 * MS + 500_000])
        )
    );
    // of less than half of the handshake's, three; one that waited for more takes one off, and less than a sixteenth is none
    assert_eq!(60, shown(&[29 * MS, 29 * MS]));
    assert_eq!((4, 60), (shown(&[4 * MS; 3]), shown(&[3 * MS; 3])));
    assert_eq!(60, shown(&[10 * MS, 10 * MS]));
    assert_eq!(10, shown(&[10 * MS, 10 * MS, 10 * MS]));
    assert_eq!(60, shown(&[10 * MS, 10 * MS, 14 * MS, 10 * MS]));
    assert_eq!(10, shown(&[10 * MS, 10 * MS, 14 * MS, 10 * MS, 10 * MS]));
    // no resend of a recovery, nor one that a timer may have sent
    assert_eq!(60, way_after(&[50 * MS, 50 * MS], |answer| answer.may_open = false, 4));
    assert_eq!(60, way_after(&[50 * MS, 50 * MS], |_| (), 151 * MS));
    assert_eq!(50, way_after(&[50 * MS, 50 * MS], |_| (), 149 * MS));
}

/// The way after resends that came so long after the third duplicate ACK each, where the handshake took 10 ms, a segment takes 1 ms
/// and the link was idle from 10 ms after the first of these ACKs.
fn way_behind_others(took_ns: &[i64], change: impl Fn(&mut Answer)) -> i64 {
    let mut acks = AckDelay::NONE;
    acks.set_way(WAY_NS as f64 / 1e9);
    for (n, took_ns) in took_ns.iter().enumerate() {
        let (at, start_ns) = (100 + n as u64, SECOND_NS * (1 + n as i64));
        (0..4).for_each(|copy| assert!(acks.push(ack(start_ns + copy, at), None, 0).is_none()));
        let mut answer = Answer {
            left: at,
            opens: true,
            gap_ns: 2 * MS,
            idle_since_ns: start_ns + 10 * MS,
            busy_ns: 20 * MS,
            ..resend(start_ns + 3 + took_ns, MS)
        };
        change(&mut answer);
        acks.on_resend(&answer);
    }
    acks.way_ns / MS
}

#[test]
fn behind_the_queue_of_others_a_resend_shows_the_way_where_it_was_asked_for_before_a_gap() {
    let shown = |change: fn(&mut Answer)| way_behind_others(&[60 * MS], change);
    // ten segments above the hole came before the gap: a host that waits for more would have sent it again for these
    assert_eq!(60, shown(|_| ()));
    assert_eq!(10, shown(|answer| answer.idle_since_ns -= 3 * MS));
    // or nothing that came after it can have asked for it
    assert_eq!(
        60,
        shown(|answer| (answer.idle_since_ns, answer.busy_ns) = (SECOND_NS + 3 * MS, 9 * MS))
    );
    // the path may have held it, the host waits for more, it ends the gap, or there was none
    assert_eq!(10, shown(|answer| answer.overtaken = true));
    assert_eq!(10, shown(|answer| answer.waits = true));
    assert_eq!(10, shown(|answer| answer.silence_ns = 50 * MS));
    assert_eq!(10, shown(|answer| answer.idle_since_ns = 0));
}

#[test]
fn behind_the_queue_of_others_a_second_resend_shows_the_way_that_took_as_long() {
    let shown = |took_ns: &[i64]| way_behind_others(took_ns, |answer| answer.idle_since_ns = 0);
    assert_eq!((10, 10), (shown(&[60 * MS]), shown(&[60 * MS, 80 * MS])));
    assert_eq!(66, shown(&[60 * MS, 66 * MS]));
    let waits = |answer: &mut Answer| (answer.idle_since_ns, answer.waits) = (0, true);
    assert_eq!(10, way_behind_others(&[60 * MS, 60 * MS], waits));
}

#[test]
fn behind_the_queue_of_others_no_way_of_a_recovery_is_much_shorter_than_half_of_that_before() {
    let way_ns = |took_ns: i64, of_others: bool| {
        let mut acks = AckDelay::NONE;
        (acks.way_ns, acks.least_ns, acks.of_others) = (100 * MS, 10 * MS, of_others);
        assert!(acks.push(ack(0, 100), None, 0).is_none());
        acks.on_resend(&Answer {
            in_recovery: true,
            ..resend(took_ns, 0)
        });
        acks.way_ns / MS
    };
    assert_eq!((100, 40), (way_ns(40 * MS, true), way_ns(40 * MS, false)));
    assert_eq!(46, way_ns(46 * MS, true));
}

/// With SACK a host may send again at the first (RFC 8985, 6.2), and what was held before the edge came may have asked.
#[test]
fn with_sack_the_way_is_no_longer_than_since_the_first_duplicate() {
    let way_ns = |held: u8| {
        let mut acks = AckDelay::NONE;
        acks.set_way(6.0 * WAY_NS as f64 / 1e9);
        for at in [100, 101] {
            let start_ns = SECOND_NS * at as i64;
            for (n, sack_len) in [held, 1, 1, 1].into_iter().enumerate() {
                let ack = Ack {
                    sack_len,
                    ..ack(start_ns + 10 * MS * n as i64, at)
                };
                assert!(acks.push(ack, None, 0).is_none());
            }
            let mut answer = resend(start_ns + 60 * MS, 5 * WAY_NS);
            (answer.left, answer.may_open) = (at, true);
            acks.on_resend(&answer);
        }
        acks.way_ns / MS
    };
    assert_eq!((50, 60), (way_ns(0), way_ns(1)));
}

#[test]
fn without_identifications_only_what_comes_after_nearly_the_same_way_does() {
    let shown = |took_ns: &[i64]| way_after(took_ns, |answer| answer.newest = false, 4);
    assert_eq!((60, 53), (shown(&[50 * MS, 50 * MS]), shown(&[53 * MS, 53 * MS])));
    assert_eq!(
        (60, 53),
        (shown(&[53 * MS, 54 * MS]), shown(&[53 * MS + 100_000, 53 * MS]))
    );
    let older = |answer: &mut Answer| (answer.newest, answer.older) = (false, true);
    assert_eq!(60, way_after(&[53 * MS, 53 * MS], older, 4));
}

#[test]
fn without_identifications_one_that_takes_as_long_as_the_handshake_but_for_a_little_is_enough() {
    let shown = |took_ns: i64| way_after(&[took_ns], |answer| answer.newest = false, 4);
    assert_eq!((59, 60), (shown(59 * MS), shown(58 * MS)));
    let of_a_recovery = |answer: &mut Answer| (answer.newest, answer.may_open) = (false, false);
    assert_eq!(60, way_after(&[59 * MS], of_a_recovery, 4));
}

/// ACKs that came by data beyond the window, and the ways, in ms, that are known then. In each round the first of two ACKs
/// has no room for the data.
fn rounds_beyond_the_window(took_ns: &[i64], apart_ns: i64, right: u64, window: Option<u32>) -> (usize, i64, i64) {
    let mut acks = AckDelay::NONE;
    acks.set_way(6.0 * WAY_NS as f64 / 1e9);
    let first = Ack { window, ..ack(0, 100) };
    assert!(acks.push(first, None, 0).is_none());
    assert!(acks.next(&resend(6 * WAY_NS, 0)).is_some());
    let mut came = 0;
    for (n, took_ns) in took_ns.iter().enumerate() {
        let (start_ns, moved) = (7 * WAY_NS + apart_ns * n as i64, 10_000 * n as u64);
        for (at, window) in [(200, 900), (300, 1900)] {
            let window = Some(window);
            let next = Ack {
                window,
                ..ack(start_ns, moved + at)
            };
            assert!(acks.push(next, None, 0).is_none());
        }
        let data = resend(start_ns + took_ns, 0);
        came += std::iter::from_fn(|| {
            acks.next_with_room(&Answer {
                right: moved + right,
                ..data
            })
        })
        .count();
    }
    (came, acks.way_ns / MS, acks.least_ns / MS)
}

#[test]
fn data_beyond_the_window_show_that_the_ack_which_has_room_has_come() {
    let ways = |took_ns: &[i64]| rounds_beyond_the_window(took_ns, SECOND_NS, 2000, Some(1000));
    assert_eq!((6, 50, 50), ways(&[50 * MS, 50 * MS + 500_000, 50 * MS]));
    // a sender may break the window once, or at any time
    for took_ns in [
        &[50 * MS][..],
        &[50 * MS, 40 * MS],
        &[29 * MS, 29 * MS],
        &[59 * MS, 59 * MS],
    ] {
        assert_eq!((0, 60, 58), ways(took_ns));
    }
    // in one round it is the same
    let once = rounds_beyond_the_window(&[50 * MS, 50 * MS], 49 * MS, 2000, Some(1000));
    assert_eq!((0, 60, 58), once);
    // an ACK that came before has room, none has, or no window is known
    for (right, window) in [(1100, 20_000), (2201, 1000)] {
        let none = rounds_beyond_the_window(&[50 * MS, 50 * MS], SECOND_NS, right, Some(window));
        assert_eq!((0, 60, 58), none);
    }
    let unknown = rounds_beyond_the_window(&[50 * MS, 50 * MS], SECOND_NS, 2000, None);
    assert_eq!((0, 60, 58), unknown);
}

#[test]
fn an_echo_shows_that_its_ack_has_come_however_slow_the_handshake_was() {
    let mut acks = AckDelay::NONE;
    acks.set_way(1.3 * WAY_NS as f64 / 1e9);
    for (n, tsval) in [(0, 1), (1, 1), (2, 2)] {
        acks.push(ack(1_000_000 * n, 100 + n as u64), Some(tsval), 0);
    }
    let answer = |time_ns: i64, tsecr: u32| new_data(time_ns, 0, tsecr);
    // of two with one stamp the second may still be under way: its own way shows when the next stamp comes back
    let mut came = |time_ns: i64, tsecr: u32| {
        let answer = answer(time_ns, tsecr);
        std::iter::from_fn(|| acks.next(&answer))
            .map(|ack| ack.ack)
            .collect::<Vec<u64>>()
    };
    assert_eq!(came(WAY_NS, 1), [100]);
    assert!(came(WAY_NS + 500_000, 1).is_empty());
    assert_eq!(came(WAY_NS + 2_000_000, 2), [101, 102]);
    assert_eq!(acks.least_ns, WAY_NS);
}

/// Of two ACKs with one stamp, the second of which moves the edge, that which came when data up to `right` pass with their echo
/// and three duplicates ask for what is to be sent again from `due` on.
fn came_before(right: u64, due: Option<u64>) -> usize {
    let mut acks = AckDelay::NONE;
    acks.set_way(WAY_NS as f64 / 1e9);
    for at in [100, 200] {
        let window = Some(1000);
        assert!(acks.push(Ack { window, ..ack(0, at) }, Some(1), 0).is_none());
    }
    let data = Answer {
        right,
        due,
        ..new_data(WAY_NS, 0, 1)
    };
    std::iter::from_fn(|| acks.next(&data)).count()
}

#[test]
fn what_the_third_duplicate_asked_for_goes_out_before_what_a_later_ack_lets_go() {
    assert_eq!((2, 1), (came_before(1100, None), came_before(1100, Some(100))));
    // the second ACK let the data go, which the window had no room for before, or is another duplicate
    assert_eq!((2, 2), (came_before(1101, Some(100)), came_before(1100, Some(200))));
}

/// The way, in ms, after resends of a recovery that came so long after each partial ACK, which three duplicates followed in 20 ms,
/// where new data had come after `silence_ns`. The handshake took 60 ms.
fn way_of_a_recovery(took_ns: &[i64], silence_ns: i64) -> i64 {
    let mut acks = AckDelay::NONE;
    acks.set_way(6.0 * WAY_NS as f64 / 1e9);
    let mut at_ns = 0;
    for (at, took_ns) in (100..).zip(took_ns) {
        for ns in [0, 18 * MS, 19 * MS, 20 * MS] {
            assert!(acks.push(ack(at_ns + ns, at), None, 0).is_none());
        }
        at_ns += took_ns;
        let mut answer = resend(at_ns, silence_ns);
        (answer.left, answer.goes_on) = (at, true);
        acks.on_resend(&answer);
    }
    acks.way_ns / MS
}

#[test]
fn a_host_that_goes_on_at_partial_acks_does_so_behind_a_queue_that_grows() {
    // the third duplicate of the first came too late to have asked
    assert_eq!(110, way_of_a_recovery(&[70 * MS, 90 * MS, 110 * MS], 0));
    // where it did not, nothing tells which it was, nor after a silence
    assert_eq!(70, way_of_a_recovery(&[85 * MS, 90 * MS], 0));
    assert_eq!(70, way_of_a_recovery(&[70 * MS, 90 * MS], 30 * MS));
}

/// What the first resend of a recovery tells, 80 ms after the third duplicate ACK, and the way that is taken from then on. The handshake
/// took 50 ms, no data had passed for 30.
fn told_by(answer: Answer) -> (Option<i64>, i64) {
    let mut acks = AckDelay::NONE;
    acks.set_way(5.0 * WAY_NS as f64 / 1e9);
    for ns in [0, 1, 2, 3] {
        assert!(acks.push(ack(ns, 100), None, 0).is_none());
    }
    let shown = acks.on_resend(&answer);
    (shown.map(|shown| shown.way_ns / MS), acks.way_ns / MS)
}

#[test]
fn a_resend_is_no_silences_end_while_a_slow_link_sends() {
    let told = |gap_ns: i64| {
        told_by(Answer {
            opens: true,
            gap_ns,
            ..resend(80 * MS + 3, 30 * MS)
        })
    };
    assert_eq!((Some(80), 80), told(31 * MS));
    // a timer's, after a silence
    assert_eq!((None, 50), told(30 * MS));
}

#[test]
fn without_identifications_a_resend_tells_the_way_but_not_that_of_other_acks() {
    let told = |opens: bool| {
        told_by(Answer {
            opens,
            newest: false,
            unnumbered: true,
            ..resend(80 * MS + 3, 0)
        })
    };
    assert_eq!((Some(80), 50), told(true));
    assert_eq!((None, 50), told(false));
    // nor what a partial ACK has asked for, of a host that goes on at these
    let mut acks = AckDelay::NONE;
    acks.set_way(5.0 * WAY_NS as f64 / 1e9);
    let shown = [(100, 0, 60), (101, 60, 140)].map(|(at, ack_ms, resent_ms)| {
        for ms in [0, 18, 19, 20] {
            assert!(acks.push(ack((ack_ms + ms) * MS, at), None, 0).is_none());
        }
        let answer = Answer {
            left: at,
            newest: false,
            unnumbered: true,
            goes_on: true,
            ..resend(resent_ms * MS, 0)
        };
        acks.on_resend(&answer).map(|shown| (shown.way_ns / MS, shown.asked))
    });
    assert_eq!([None, Some((80, Some(Asked::Partial)))], shown);
    assert_eq!(50, acks.way_ns / MS);
}

#[test]
fn what_a_host_that_waits_for_more_duplicates_sends_again_was_not_asked_for_by_the_third() {
    let told = |waits: bool, third_ms: i64| {
        let mut acks = AckDelay::NONE;
        acks.set_way(5.0 * WAY_NS as f64 / 1e9);
        for ns in [0, 18 * MS, 19 * MS, 20 * MS] {
            assert!(acks.push(ack(ns, 100), None, 0).is_none());
        }
        let answer = Answer {
            waits,
            ..resend((20 + third_ms) * MS, 30 * MS)
        };
        acks.on_resend(&answer).map(|shown| shown.way_ns / MS)
    };
    assert_eq!((Some(55), None), (told(false, 55), told(true, 55)));
    // it is no shorter
    assert_eq!((Some(50), Some(50)), (told(false, 50), told(true, 50)));
}

#[test]
fn what_the_application_let_go_does_not_lengthen_the_way() {
    let way_ns = |ended: bool| {
        let mut acks = AckDelay::NONE;
        acks.set_way(WAY_NS as f64 / 1e9);
        acks.push(ack(0, 100), Some(1), 0);
        let answer = Answer {
            ended,
            ..new_data(WAY_NS + 2_000_000, WAY_NS + 1_000_000, 1)
        };
        let came_ns = acks.next(&answer).map(|ack| ack.time_ns);
        (came_ns, acks.way_ns)
    };
    // after a full segment the ACK is what it had waited for
    assert_eq!(way_ns(false), (Some(WAY_NS + 2_000_000), WAY_NS + 2_000_000));
    assert_eq!(way_ns(true), (Some(WAY_NS), WAY_NS));
}

#[test]
fn without_an_answer_the_oldest_arrive_in_the_end() {
    let mut acks = AckDelay::NONE;
    acks.set_way(WAY_NS as f64 / 1e9);
    let sent = UNDER_WAY as i64 + 20_000;
    let arrived: Vec<Ack> = (0..sent)
        .filter_map(|n| acks.push(ack(1000 * n, n as u64), None, 0))
        .collect();
    assert_eq!((20_000, UNDER_WAY), (arrived.len(), acks.queue.len()));
    let expected = (0..20_000).map(|n| (1000 * n + WAY_NS, n as u64));
    assert!(arrived.iter().map(|ack| (ack.time_ns, ack.ack)).eq(expected));
}

#[test]
fn what_had_waited_for_the_application_answers_no_ack() {
    let way_after = |silence_ns: i64| {
        let mut acks = AckDelay::NONE;
        acks.set_way(10.0 * WAY_NS as f64 / 1e9);
        acks.set_soonest(1000, 0);
        let stamped = |time_ns: i64, tsval: u32, tsecr: u32| Answer {
            tsval: Some(tsval),
            ..new_data(time_ns, silence_ns, tsecr)
        };
        // the clock is known after half a second
        for (ms, tsval) in [(1, 1001), (600, 1600)] {
            acks.learn(&stamped(ms * MS, tsval, 1));
        }
        assert!(acks.push(ack(600 * MS, 500), Some(9), 0).is_none());
        let answer = stamped(715 * MS, 1715, 9);
        acks.learn(&answer);
        assert!(acks.next(&answer).is_some());
        acks.way_ns / MS
    };
    // ACKs may have come later than the handshake's, but the data 15 ms before did not wait for the application
    assert_eq!([115, 100], [10 * MS, 20 * MS].map(way_after));
}
