//! What resends tell of the queue before them, on packets a millisecond apart.

use super::*;

const WAY_NS: i64 = 50_000_000;

fn seen<'a>(rtt: &'a mut Rtt, rounds: &'a mut Rounds, window: Option<f64>) -> Seen<'a> {
    let flight_max = Box::leak(Box::new(0.0));
    Seen {
        rtt,
        rounds,
        flight_max,
        window,
    }
}

/// A packet every millisecond, from the first on, and a sample of each after a way.
fn steady(drift: &mut Drift, rtt: &mut Rtt, first: i64, packets: i64, way_ns: i64) {
    for n in first..first + packets {
        let time_ns = n * 1_000_000;
        drift.on_data(time_ns, 1, way_ns, WAY_NS);
        let rtt_s = way_ns as f64 / 1e9;
        rtt.sample(rtt_s, n as u64, n as u64 + 1);
        drift.on_sample(time_ns + way_ns, n as f64 / 1e3, rtt_s);
    }
}

#[test]
fn the_rate_is_that_of_the_link_and_the_link_is_busy_since_it_was_idle() {
    let (mut drift, mut rtt) = (Drift::BLANK.clone(), Rtt::default());
    steady(&mut drift, &mut rtt, 1, 500, WAY_NS);
    assert!((990.0..1030.0).contains(&drift.rate), "{}", drift.rate);
    // a quarter of the way without a packet, and a little more
    assert_eq!(drift.on_data(512_500_000, 1, WAY_NS, WAY_NS), 511_500_000);
    assert_eq!(drift.on_data(525_100_000, 1, WAY_NS, WAY_NS), 0);
    assert_eq!(drift.on_data(526_100_000, 1, WAY_NS, WAY_NS), 1_000_000);
    let queue_ns = [526_000_000, 525_000_000, 512_500_000, 2_000_000, 0].map(|time_ns| drift.longest_queue_ns(time_ns));
    // not known: while nothing passed, and before it was busy the last time
    assert_eq!(
        queue_ns,
        [Some(900_000), None, Some(511_500_000), Some(1_000_000), None]
    );
}

/// A link of which a packet came every millisecond sends one every 16 from the last on, or two every 32.
fn slowed(packets: i64, together: i64) -> (f64, i64) {
    let (mut drift, mut rtt) = (Drift::BLANK.clone(), Rtt::default());
    steady(&mut drift, &mut rtt, 1, 500, WAY_NS);
    let mut busy_ns = 0;
    for n in 1..=packets {
        let time_ns = 500 + 16 * together * (n / together) + n % together;
        busy_ns = drift.on_data(1_000_000 * time_ns, 1, WAY_NS, WAY_NS);
    }
    (drift.rate, busy_ns)
}

#[test]
fn a_link_that_sends_evenly_and_slower_is_known_soon() {
    let (rate, busy_ns) = slowed(7, 1);
    assert!(rate > 900.0 && busy_ns == 0, "{rate} {busy_ns}");
    let (rate, busy_ns) = slowed(12, 1);
    assert!((60.0..65.0).contains(&rate), "{rate}");
    // since the first that came so
    assert_eq!(12 * 16_000_000, busy_ns);
    // what comes in pairs was let go by ACKs
    let (rate, busy_ns) = slowed(40, 2);
    assert!(rate > 500.0 && busy_ns < 32_000_000, "{rate} {busy_ns}");
}

#[test]
fn joined_samples_keep_their_sum() {
    let mut drift = Drift::BLANK.clone();
    for n in 0..10_000u64 {
        drift.on_sample(n as i64, 0.0, n as f64);
    }
    let count: u32 = drift.points.iter().map(|point| point.weight).sum();
    let sum: f64 = drift
        .points
        .iter()
        .map(|point| point.rtt_s * f64::from(point.weight))
        .sum();
    assert!(drift.points.len() <= KEPT);
    assert_eq!(count, 10_000);
    assert!((sum - 49_995_000.0).abs() < 1e-3, "{sum}");
}

#[test]
fn what_is_told_after_a_loss_corrects_the_samples_before_it() {
    let (mut drift, mut rtt, mut rounds) = (Drift::BLANK.clone(), Rtt::default(), Rounds::new(0));
    steady(&mut drift, &mut rtt, 1, 2000, WAY_NS);
    // in slow start 2000 segments would have come to a second
    drift.on_told(2_000_000_000, 0.15, 0, By::Loss, seen(&mut rtt, &mut rounds, None));
    let first_s = rtt.mean_s().unwrap();
    assert!((0.095..0.105).contains(&first_s), "{first_s}");
    assert!((0.145..0.155).contains(&rtt.quantile_s(1.0).unwrap()));
    // then from three fifths of it to the same again
    let (samples, sum) = (rtt.samples as f64, rtt.mean_s().unwrap() * rtt.samples as f64);
    steady(&mut drift, &mut rtt, 2001, 2000, 150_000_000);
    drift.on_told(2_000_000_000, 0.15, 0, By::Loss, seen(&mut rtt, &mut rounds, None));
    let second_s = (rtt.mean_s().unwrap() * rtt.samples as f64 - sum) / samples;
    assert!((0.115..0.125).contains(&second_s), "{second_s}");
    assert_eq!(rtt.samples, 4000);
}

#[test]
fn without_a_queue_of_its_own_the_way_is_what_was_told() {
    let (mut drift, mut rtt, mut rounds) = (Drift::BLANK.clone(), Rtt::default(), Rounds::new(0));
    // bursts of ten in a millisecond, one every way
    for n in 0..2000i64 {
        let time_ns = n / 10 * WAY_NS + n % 10 * 100_000 + 1;
        drift.on_data(time_ns, 1, WAY_NS, WAY_NS);
        rtt.sample(0.05, n as u64, n as u64 + 1);
        drift.on_sample(time_ns + WAY_NS, n as f64 / 1e3, 0.05);
    }
    drift.on_told(2_000_000_000, 0.05, 0, By::Loss, seen(&mut rtt, &mut rounds, None));
    drift.on_end(2.0, seen(&mut rtt, &mut rounds, Some(400.0)));
    assert!((rtt.mean_s().unwrap() - 0.05).abs() < 1e-9);
    assert!(drift.lag_integral.abs() < 1e-9);
}

#[test]
fn a_full_window_is_as_long_a_way_as_the_link_takes_for_it() {
    let way_s = |window: Option<f64>| {
        let (mut drift, mut rtt, mut rounds) = (Drift::BLANK.clone(), Rtt::default(), Rounds::new(0));
        steady(&mut drift, &mut rtt, 1, 20_000, WAY_NS);
        drift.on_end(20.0, seen(&mut rtt, &mut rounds, window));
        rtt.quantile_s(0.5).unwrap()
    };
    assert!((0.078..0.083).contains(&way_s(Some(80.0))));
    // there was no time to fill another
    assert!((0.049..0.052).contains(&way_s(Some(400.0))));
    assert!((0.049..0.052).contains(&way_s(None)));
}

#[test]
fn a_window_below_what_the_queue_was_told_to_hold_is_none_that_was_filled() {
    let way_s = |window: f64| {
        let (mut drift, mut rtt, mut rounds) = (Drift::BLANK.clone(), Rtt::default(), Rounds::new(0));
        steady(&mut drift, &mut rtt, 1, 2000, WAY_NS);
        drift.on_told(2_000_000_000, 0.15, 0, By::Loss, seen(&mut rtt, &mut rounds, None));
        steady(&mut drift, &mut rtt, 2001, 20_000, 150_000_000);
        drift.on_end(30.0, seen(&mut rtt, &mut rounds, Some(window)));
        rtt.quantile_s(0.9).unwrap()
    };
    assert!((0.118..0.124).contains(&way_s(120.0)));
    // the last window of a receiver that reads no more
    assert!((0.148..0.155).contains(&way_s(2.0)));
}

#[test]
fn what_is_told_after_losses_is_what_the_lost_segments_had_seen() {
    let (mut drift, mut rtt, mut rounds) = (Drift::BLANK.clone(), Rtt::default(), Rounds::new(0));
    assert!(drift.then(0).is_none());
    steady(&mut drift, &mut rtt, 1, 2000, WAY_NS);
    drift.on_told(
        2_200_000_000,
        0.15,
        0,
        By::Loss,
        seen(&mut rtt, &mut rounds, Some(80.0)),
    );
    // in a straight line from 50 to 150 ms
    for (passes_ns, ratio) in [(100_000_000, 1.0), (1_050_000_000, 2.0), (2_049_000_000, 3.0)] {
        let then = drift.then(passes_ns).unwrap();
        assert!((ratio - then.flight(1.0)).abs() < 0.1, "{then:?}");
        assert!((ratio * 0.05 - then.srtt_s).abs() < 0.005, "{then:?}");
    }
    // no more than the window, unless there seemed to be
    let then = drift.then(2_049_000_000).unwrap();
    assert_eq!((80.0, 90.0), (then.flight(60.0), then.flight(90.0)));
    // before the first sample and after the resend nothing is known
    assert!(drift.then(50_000_000).is_none() && drift.then(2_200_000_001).is_none());
    // what a recovery's further resends tell leaves that as it is
    drift.on_told(
        2_300_000_000,
        0.15,
        0,
        By::Recovery,
        seen(&mut rtt, &mut rounds, Some(80.0)),
    );
    assert!(drift.then(2_049_000_000).is_some());
}

#[test]
fn samples_that_nothing_corrects_let_the_lag_decay() {
    let (mut drift, mut rtt, mut rounds) = (Drift::BLANK.clone(), Rtt::default(), Rounds::new(0));
    steady(&mut drift, &mut rtt, 1, 100, WAY_NS);
    drift.lag_s = 0.1;
    drift.on_end(10.0, seen(&mut rtt, &mut rounds, None));
    assert!(drift.lag_s < 1e-5 && drift.lag_integral < 0.1 * 0.02, "{drift:?}");
}

#[test]
fn after_a_timeout_the_window_begins_anew() {
    let (mut drift, mut rtt, mut rounds) = (Drift::BLANK.clone(), Rtt::default(), Rounds::new(0));
    steady(&mut drift, &mut rtt, 1, 400, WAY_NS);
    drift.on_told(2_000_000_000, 0.15, 0, By::Loss, seen(&mut rtt, &mut rounds, None));
    drift.on_timeout(2_000_000_000, seen(&mut rtt, &mut rounds, None));
    steady(&mut drift, &mut rtt, 2000, 20, 150_000_000);
    let before_s = rtt.mean_s().unwrap();
    drift.on_end(3.0, seen(&mut rtt, &mut rounds, None));
    // twenty samples of 150 ms were some of 50 ms
    let less_s = (before_s - rtt.mean_s().unwrap()) * rtt.samples as f64 / 20.0;
    assert!((0.08..0.1001).contains(&less_s), "{less_s}");
}

/// The mean round trip of the first 2,000 samples, when it is told that the way is 0.15 s long.
fn first_mean_s(unsent: u32) -> f64 {
    let (mut drift, mut rtt, mut rounds) = (Drift::BLANK.clone(), Rtt::default(), Rounds::new(0));
    steady(&mut drift, &mut rtt, 1, 2000, WAY_NS);
    let seen = seen(&mut rtt, &mut rounds, Some(150.0));
    drift.on_told(2_000_000_000, 0.15, unsent, By::Loss, seen);
    rtt.mean_s().unwrap()
}

#[test]
fn slow_start_comes_to_the_receivers_window_at_once_and_a_resend_misses_what_that_had_no_room_for() {
    // half of it in a straight line; at the window all but the first 200 packets have the way, and two packets more
    assert!((0.095..0.105).contains(&first_mean_s(0)), "{}", first_mean_s(0));
    assert!((0.144..0.152).contains(&first_mean_s(2)), "{}", first_mean_s(2));
    // a queue is no shorter than what would be missing of it
    assert!((0.095..0.105).contains(&first_mean_s(101)), "{}", first_mean_s(101));
}

#[test]
fn after_a_recovery_whose_end_found_no_queue_there_is_one_of_what_is_left_of_the_window() {
    let (mut drift, mut rtt, mut rounds) = (Drift::BLANK.clone(), Rtt::default(), Rounds::new(0));
    steady(&mut drift, &mut rtt, 1, 2000, WAY_NS);
    let mut told = |at_ms: i64, way_s: f64, by: By, drift: &mut Drift, rtt: &mut Rtt| {
        drift.on_told(1_000_000 * at_ms, way_s, 0, by, seen(rtt, &mut rounds, None));
    };
    told(2000, 0.15, By::Loss, &mut drift, &mut rtt);
    told(2001, 0.05, By::Recovery, &mut drift, &mut rtt);
    let (samples, sum) = (rtt.samples as f64, rtt.mean_s().unwrap() * rtt.samples as f64);
    steady(&mut drift, &mut rtt, 2001, 2000, 50_000_000);
    drift.on_end(4.0, seen(&mut rtt, &mut Rounds::new(0), None));
    // three fifths of what the loss told, and a packet more each round trip
    let mean_s = (rtt.mean_s().unwrap() * rtt.samples as f64 - sum) / samples;
    assert!((0.09..0.105).contains(&mean_s), "{mean_s}");
}

#[test]
fn a_short_path_has_a_full_window_where_a_queue_was_told() {
    let way_s = |told: bool| {
        let (mut drift, mut rtt, mut rounds) = (Drift::BLANK.clone(), Rtt::default(), Rounds::new(0));
        // a packet every 10 ms: the path holds five
        for n in 1..2000i64 {
            if told && n == 300 {
                drift.on_told(3_000_000_000, 0.2, 0, By::Loss, seen(&mut rtt, &mut rounds, Some(30.0)));
            }
            drift.on_data(10_000_000 * n, 1, WAY_NS, WAY_NS);
            rtt.sample(0.05, n as u64, n as u64 + 1);
            drift.on_sample(10_000_000 * n + WAY_NS, n as f64 / 100.0, 0.05);
        }
        drift.on_end(20.0, seen(&mut rtt, &mut rounds, Some(30.0)));
        rtt.quantile_s(0.5).unwrap()
    };
    assert!((0.28..0.31).contains(&way_s(true)), "{}", way_s(true));
    assert!((0.049..0.052).contains(&way_s(false)));
}

#[test]
fn where_the_link_was_not_full_the_queue_has_run_empty() {
    let (mut drift, mut rtt, mut rounds) = (Drift::BLANK.clone(), Rtt::default(), Rounds::new(0));
    steady(&mut drift, &mut rtt, 1, 500, WAY_NS);
    drift.on_told(500_000_000, 0.2, 0, By::Loss, seen(&mut rtt, &mut rounds, None));
    // nothing tells any more: the queue that is left grows for a second and a half, data come half as fast, then as before
    let mut way_at = |slow: bool| {
        let mut drift = drift.clone();
        steady(&mut drift, &mut rtt, 501, 1500, WAY_NS);
        for n in (0..600).step_by(if slow { 2 } else { 1 }) {
            let time_ns = 2_001_000_000 + n * 1_000_000;
            drift.on_data(time_ns, 1, WAY_NS, WAY_NS);
            drift.on_sample(time_ns + WAY_NS, time_ns as f64 / 1e9, 0.05);
        }
        steady(&mut drift, &mut rtt, 2610, 400, WAY_NS);
        drift.on_end(3.0, seen(&mut rtt, &mut rounds, None));
        let then = |ms: i64| drift.then(ms * 1_000_000).map_or(0.0, |then| then.srtt_s);
        (then(1_900), then(3_000))
    };
    let ((grown_s, fuller_s), (same_s, emptied_s)) = (way_at(false), way_at(true));
    assert!((grown_s - same_s).abs() < 0.005, "{grown_s} {same_s}");
    assert!(grown_s > 0.12 && fuller_s > grown_s, "{grown_s} {fuller_s}");
    assert!((0.05..0.1).contains(&emptied_s), "{emptied_s}");
}
