//! Whom duplicate ACKs answer, and what was lost where answers are missing.

use super::*;

#[test]
fn copies_are_expected_as_the_path_was_seen_to_make_them() {
    let mut answers = Answers {
        calm: 1000,
        ..Answers::new()
    };
    let mut likely = Vec::new();
    for _ in 0..4 {
        likely.push(answers.likely_copies(100));
        answers.on_path_copy();
    }
    // one copy shows no such path; 2 of 1000 that show are 10, of which 100 transmissions have 1, and mostly at most 3
    assert_eq!(likely, [0, 0, 3, 4]);
    assert_eq!(answers.likely_copies(0), 0);
    // no more than one each
    answers.calm = 1;
    assert_eq!(answers.likely_copies(100), 120);
}

/// What is known when a packet comes of which nothing was heard before.
const NOW: (i64, f64) = (105, 20e-9);

/// A moment at a smoothed round trip of 20 ns, when so many segments of one byte have been acknowledged by as many ACKs.
fn moment(time_ns: i64, acks: u64) -> Moment {
    Moment {
        time_ns,
        srtt_s: 20e-9,
        smss: 1,
        acks,
        bytes: acks,
        ..Moment::NONE
    }
}

#[test]
fn an_answer_is_taken_once_when_it_is_due() {
    let mut answers = Answers::new();
    answers.expect(0, 100, Some(1));
    answers.expect(0, 100, None);
    assert!(!answers.take(99, 20e-9, 10));
    assert!(answers.take(100, 20e-9, 10));
    assert!(answers.take(110, 20e-9, 10));
    assert!(!answers.take(110, 20e-9, 10));
    // of two one belonged to the stretch
    assert_eq!(answers.close(&moment(200, 0)).answered, 1);
    // what was not answered in half a round trip was lost
    answers.expect(0, 200, Some(2));
    assert!(!answers.take(211, 20e-9, 10));
    let closed = answers.close(&moment(300, 0));
    assert_eq!((closed.answered, closed.unanswered), (0, vec![2]));
}

#[test]
fn of_a_receiver_that_answers_each_segment_what_has_no_answer_was_lost() {
    let lost_at_end = |acks: u64, bytes: u64, copies: u64| {
        let mut answers = Answers::new();
        // ten are outstanding, of which three have brought duplicate ACKs
        let begin = Moment {
            outstanding: 10,
            held: 3,
            bytes,
            ..moment(100, acks)
        };
        answers.on_resend(&Sent::unseen(0, 1, 0), &begin);
        answers.on_numbered(None, true, NOW);
        assert!(!answers.take(110, 20e-9, 10));
        (0..copies).for_each(|order| answers.expect(0, 195, Some(order)));
        // seven more are sent, of which two are under way; six have answers that move the edge, one has another
        answers
            .close(&Moment {
                outstanding: 2,
                order: 7,
                ..moment(200, acks + 6)
            })
            .lost
    };
    let lost = |acks: u64, bytes: u64| lost_at_end(acks, bytes, 0);
    assert_eq!(lost(20, 20), Some(15 - 10));
    assert_eq!(lost(1000, 1020), Some(15 - 10));
    // needless copies whose answers are under way
    assert_eq!(lost_at_end(20, 20, 3), Some(15 - 3 - 10));
    // few segments, or several an ACK, show nothing
    assert_eq!(lost(19, 19), None);
    assert_eq!(lost(1000, 1021), None);
}

/// What is lost of a stretch of a receiver that sends an ACK for two segments, of which 20 of 40 moved the edge before: ten
/// were outstanding, three of them held, ten more are sent, and `acks` come, each of so many segments.
fn lost_of_twos(acks: &[(u64, Filling)], also: impl Fn(&mut Answers)) -> Option<i64> {
    let mut answers = Answers::new();
    let begin = Moment {
        outstanding: 10,
        held: 3,
        bytes: 40,
        ..moment(100, 20)
    };
    answers.on_resend(&Sent::unseen(0, 1, 0), &begin);
    let (mut count, mut bytes) = (20, 40);
    for (n, &(segments, filling)) in acks.iter().enumerate() {
        (count, bytes) = (count + 1, bytes + segments);
        answers.on_filling(filling, false);
        answers.on_counted(110 + n as i64, count, bytes, 1);
    }
    also(&mut answers);
    let end = Moment {
        order: 10,
        bytes,
        ..moment(200, count)
    };
    answers.close(&end).lost
}

#[test]
fn where_two_segments_may_have_one_ack_what_must_have_been_lost_was() {
    let lost = |acks: &[_], also: fn(&mut Answers)| lost_of_twos(acks, also);
    // 20 sent, 3 held, one more perhaps answered with data below the hole
    assert_eq!(lost(&[], |_| ()), Some(20 - 3 - 1));
    // what filled a hole came alone, other ACKs may be those of two or more
    assert_eq!(lost(&[(9, Filling::Hole)], |_| ()), Some(16 - 1));
    assert_eq!(lost(&[(2, Filling::Perhaps)], |_| ()), Some(16 - 2));
    assert_eq!(lost(&[(2, Filling::No), (7, Filling::No)], |_| ()), Some(16 - 9));
    // unless something was held, or a segment had waited when one came above a hole
    assert_eq!(lost(&[(2, Filling::No)], |answers| answers.on_held(110)), Some(16 - 1));
    assert_eq!(lost(&[(2, Filling::No)], |answers| answers.on_held(111)), Some(16 - 2));
    let duplicate = |answers: &mut Answers| assert!(!answers.take(120, 20e-9, 10));
    assert_eq!(lost(&[(1, Filling::Hole)], duplicate), Some(16 - 2));
    assert_eq!(lost(&[(1, Filling::No)], duplicate), Some(16 - 3));
}

#[test]
fn of_what_one_ack_covers_only_the_first_has_come_since_the_one_before() {
    let has_come = |acks: u64, missing: u64, skipped, segments, late| {
        let mut answers = Answers::new();
        let begin = Moment {
            bytes: 40,
            missing,
            ..moment(100, acks)
        };
        answers.on_resend(&Sent::unseen(0, 1, 0), &begin);
        answers.on_numbered(skipped, true, NOW);
        answers.on_filling(Filling::No, late);
        answers.one_has_come(segments, 1)
    };
    assert!(has_come(20, 0, Some(0), 3, false));
    // half of the ACKs are missing, as their numbers tell
    assert!(has_come(10, 10, Some(0), 3, false) && !has_come(10, 9, Some(0), 3, false));
    // another ACK may have come in between, two segments in order, or one that waited
    assert!(!has_come(20, 0, Some(1), 3, false) && !has_come(20, 0, None, 3, false));
    assert!(!has_come(20, 0, Some(0), 2, false) && !has_come(20, 0, Some(0), 3, true));
}

#[test]
fn answers_that_are_missing_count() {
    // of 20 transmissions two are acknowledged and three were held; each number that was skipped is another's answer
    let closed = |skipped, acks: u64, answered_data: bool| {
        let mut answers = Answers::new();
        let begin = Moment {
            outstanding: 10,
            held: 3,
            bytes: 40,
            ..moment(100, acks)
        };
        answers.on_resend(&Sent::unseen(0, 1, 0), &begin);
        answers.on_numbered(skipped, answered_data, NOW);
        answers.on_numbered(Some(0), answered_data, NOW);
        let end = Moment {
            order: 10,
            bytes: 42,
            ..moment(200, acks + 2)
        };
        let closed = answers.close(&end);
        (closed.most_lost, closed.lost)
    };
    // an ACK for each segment, or for two
    assert_eq!(closed(Some(4), 40, true), (Some(11), Some(11)));
    assert_eq!(closed(Some(4), 20, true), (Some(11), None));
    assert_eq!(closed(Some(40), 20, true), (Some(0), None));
    // none was missing, none is numbered, or a FIN may have been answered
    assert_eq!(closed(Some(0), 40, true), (None, Some(15)));
    assert_eq!(closed(None, 40, true), (None, Some(15)));
    assert_eq!(closed(Some(4), 40, false), (None, Some(15)));
}

#[test]
fn nothing_was_lost_for_sure_where_acks_may_have_been() {
    let lost = |skipped| lost_of_twos(&[], |answers| answers.on_numbered(skipped, true, NOW));
    assert_eq!(lost(Some(0)), Some(16));
    assert_eq!(lost(Some(1)), None);
    assert_eq!(lost(None), None);
    // of no stretch that comes after
    let mut answers = Answers::new();
    let stretch = |answers: &mut Answers, skipped| {
        answers.on_resend(
            &Sent::unseen(0, 1, 0),
            &Moment {
                bytes: 40,
                ..moment(100, 20)
            },
        );
        answers.on_numbered(skipped, true, NOW);
        answers
            .close(&Moment {
                bytes: 40,
                ..moment(200, 20)
            })
            .lost
    };
    assert_eq!(stretch(&mut answers, None), None);
    assert_eq!(stretch(&mut answers, Some(0)), Some(-1));
    assert_eq!(stretch(&mut answers, Some(1)), None);
    assert_eq!(stretch(&mut answers, Some(0)), None);
    // nor without a stretch
    assert_eq!(answers.close(&moment(300, 20)).lost, None);
}

#[test]
fn what_would_have_been_answered_at_once_was_lost_if_the_receiver_sent_nothing() {
    let all_unheard = |before: Option<u16>, skipped: Option<u16>, now_ns: i64, order: u64, time_ns: i64| {
        let mut answers = Answers::new();
        answers.on_resend(&Sent::unseen(0, 1, 0), &moment(100, 0));
        answers.on_numbered(before, true, (120, 20e-9));
        // two segments that were sent at 100 filled a hole, and the ACK came at 120
        answers.on_filled(Some(&Transmission::unseen(100, 3)), 2, 0, 120);
        answers.expect(time_ns, 10, Some(order));
        answers.on_numbered(skipped, true, (now_ns, 20e-9));
        let first = Transmission::unseen(50, 1);
        let resend = Transmission {
            frame: 7,
            ..Transmission::unseen(time_ns, order)
        };
        let unheard = answers.unheard_of(&[first, resend]) == 0b10;
        assert_eq!(
            !unheard,
            answers.take(time_ns + 10, 20e-9, 10),
            "whether it is waited for"
        );
        unheard
    };
    let unheard = |skipped, now_ns, order, time_ns| all_unheard(Some(0), skipped, now_ns, order, time_ns);
    assert!(unheard(Some(0), 130, 5, 100));
    assert!(!unheard(Some(0), 130, 4, 100), "it is what filled the hole");
    assert!(!unheard(Some(0), 130, 5, 101), "its answer may still come");
    assert!(!unheard(Some(0), 129, 5, 100));
    // later resends are answered later, in their turn
    assert!(unheard(Some(0), 200, 9, 170));
    assert!(!unheard(Some(0), 200, 9, 171));
    // an answer may have been lost
    assert!(!unheard(Some(1), 130, 5, 100));
    assert!(!unheard(None, 130, 5, 100));
    assert!(
        !all_unheard(Some(1), Some(0), 130, 5, 100),
        "it may have been answered before"
    );
}

#[test]
fn a_copy_without_an_answer_was_lost_if_all_of_the_receivers_packets_came() {
    // the copy was sent at 110, and known to be needless at 115; an ACK that moved the left edge comes at 131
    let unheard = |moved: Option<Option<i64>>, skipped: Option<u16>, srtt_s: f64, duplicate_ns: i64| {
        let mut answers = Answers::new();
        answers.on_resend(&Sent::unseen(0, 1, 0), &moment(100, 0));
        answers.expect(110, 20, Some(5));
        answers.on_taken(None);
        answers.take_together(115, 20e-9);
        answers.on_numbered(skipped, true, NOW);
        answers.take(duplicate_ns, 20e-9, 20);
        if let Some(newest_ns) = moved {
            answers.on_taken(newest_ns);
        }
        answers.take_together(131, 20e-9);
        let end = Moment {
            srtt_s,
            least_ns: 20,
            ..moment(200, 0)
        };
        answers.close(&end).unheard_copies == [5]
    };
    assert!(unheard(None, Some(0), 24e-9, 120));
    assert!(!unheard(None, Some(0), 24e-9, 130), "it was answered");
    assert!(!unheard(None, Some(0), 26e-9, 120), "a queue may keep the answer");
    assert!(!unheard(None, Some(1), 24e-9, 120), "the answer may have been lost");
    assert!(!unheard(None, None, 24e-9, 120));
    // it may have been answered together with what had been sent before it, not behind it
    assert!(!unheard(Some(Some(110)), Some(0), 24e-9, 120));
    assert!(unheard(Some(Some(111)), Some(0), 24e-9, 120));
    assert!(!unheard(Some(None), Some(0), 24e-9, 120));
}
