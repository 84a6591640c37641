//! Round-trip times as the sender's estimator sees them, and the retransmission timer replayed from them.
//!
//! The estimator is RFC 6298 (2) in the form most senders run today: the variance is looked at once a round trip and
//! the timer keeps a floor above the smoothed round trip (RTO = SRTT + max(floor, 4 RTTVAR)).

mod bins;

use bins::Bin;

/// Samples kept as they are before a histogram is made.
const FEW: usize = 8;
/// Initial timer before the first sample (RFC 6298, 2.1).
const INITIAL_RTO_S: f64 = 1.0;
/// Share of the least round trip that no answer undercuts for the clock's sake.
const CLOCK: f64 = 0.002;
/// Share that an answer may undercut it where no sample lies near it; with more of them it falls as one over them.
const OPEN: f64 = 0.15;
/// Samples near it that a least round trip of several connections stands for.
const OF_MANY: u32 = 64;
/// Samples are near the least one up to so much of it; two bins are as wide on average.
const NEAR: f64 = 1.05;
/// Lower bound of the variance term where the host has not shown another one.
const VARIANCE_FLOOR_S: f64 = 0.2;

#[derive(Clone, Debug)]
#[repr(C)]
pub struct Rtt {
    kept: Kept,
    pub samples: u64,
    sum: f64,
    sum_squares: f64,
    pub min_s: f64,
    /// Smoothed round trip, 0 before the first sample.
    pub srtt_s: f64,
    /// Four times the mean deviation, as the timer uses it.
    deviation_s: f64,
    deviation_max_s: f64,
    variance_s: f64,
    /// RTTVAR as RFC 6298 (2.3) writes it, renewed with every sample.
    rfc_variance_s: f64,
    /// The variance is looked at again when this sequence number is acknowledged.
    round_end: u64,
}

/// The path's least round trip as far as samples show it.
#[derive(Clone, Copy, Debug)]
pub struct Floor {
    pub min_s: f64,
    /// Samples within some 5 % above it.
    near: u32,
}

impl Floor {
    /// The same, where other connections have had so short a round trip.
    pub fn at_most(self, least_s: f64) -> Self {
        match self.min_s {
            min_s if min_s.is_finite() && least_s < min_s => Self {
                min_s: least_s,
                near: OF_MANY,
            },
            _ => self,
        }
    }

    /// The time before which no answer can have come; 0 while it is not known. The least of n samples lies above the path's
    /// own round trip by about one over how dense they are there: by little where many are alike, by more where they vary.
    pub fn ns(self) -> i64 {
        if self.min_s.is_finite() {
            let open = CLOCK.max(OPEN / f64::from(self.near + 1));
            (self.min_s * (1.0 - open) * 1e9) as i64
        } else {
            0
        }
    }
}

#[derive(Clone, Debug)]
enum Kept {
    /// The first samples as they are, since most flows have few.
    Few([f64; FEW]),
    Many(Histogram),
}

/// Samples a bin, from the lowest bin that has any to the highest: a flow's round trips are near each other.
#[derive(Clone, Debug)]
struct Histogram {
    first: u16,
    /// The last sample's: mostly the next one falls into it too.
    last: Bin,
    counts: Vec<u32>,
}

impl Histogram {
    /// The first samples and the one after them.
    #[cold]
    #[inline(never)]
    fn of(few: &[f64], next: f64) -> Self {
        let mut histogram = Self {
            first: 0,
            last: Bin::of(next),
            counts: Vec::new(),
        };
        for &sample in few.iter().chain([&next]) {
            histogram.add(sample);
        }
        histogram
    }

    #[inline(always)]
    fn add(&mut self, rtt_s: f64) {
        if !self.last.holds(rtt_s) {
            self.last = Bin::of(rtt_s);
        }
        let bin = self.last.number;
        match self.counts.get_mut(usize::from(bin.wrapping_sub(self.first))) {
            Some(count) => *count += 1,
            None => self.add_new(bin),
        }
    }

    /// Moves samples to another bin, from the nearest ones that have some.
    fn revise(&mut self, told_s: f64, rtt_s: f64, count: u32) {
        let at = usize::from(Bin::of(told_s).number.saturating_sub(self.first));
        let mut left = count;
        for far in 0..self.counts.len() {
            for place in [at.checked_sub(far), at.checked_add(far)].into_iter().flatten() {
                if let Some(held) = self.counts.get_mut(place) {
                    let moved = left.min(*held);
                    *held -= moved;
                    left -= moved;
                }
            }
            if left == 0 {
                break;
            }
        }
        let bin = Bin::of(rtt_s).number;
        let before = |histogram: &Self| {
            histogram
                .counts
                .get(usize::from(bin.wrapping_sub(histogram.first)))
                .copied()
        };
        if before(self).is_none() {
            self.add_new(bin);
            self.counts[usize::from(bin - self.first)] -= 1;
        }
        self.counts[usize::from(bin - self.first)] += count - left;
    }

    #[cold]
    #[inline(never)]
    fn add_new(&mut self, bin: u16) {
        if self.counts.is_empty() {
            self.first = bin;
        }
        if bin < self.first {
            let below = usize::from(self.first - bin);
            self.counts.splice(0..0, std::iter::repeat_n(0, below));
            self.first = bin;
        }
        let at = usize::from(bin - self.first);
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
    }
}

impl Default for Rtt {
    fn default() -> Self {
        Self {
            samples: 0,
            sum: 0.0,
            sum_squares: 0.0,
            min_s: f64::INFINITY,
            srtt_s: 0.0,
            deviation_s: 0.0,
            deviation_max_s: 0.0,
            variance_s: 0.0,
            rfc_variance_s: 0.0,
            round_end: 0,
            kept: Kept::Few([0.0; FEW]),
        }
    }
}

impl Rtt {
    /// First guess from the handshake; it feeds the estimator but is no sample of the data path.
    pub fn seed(&mut self, rtt_s: f64) {
        if self.srtt_s == 0.0 && rtt_s > 0.0 {
            self.first(rtt_s);
            self.least(rtt_s);
        }
    }

    /// All samples and the handshake were too long by `more_s`: begins again with the shortest.
    pub fn restart(&mut self, more_s: f64) {
        let least_s = self.min_s - more_s;
        *self = Self::default();
        if least_s.is_finite() {
            self.seed(least_s);
        }
    }

    fn first(&mut self, rtt_s: f64) {
        self.srtt_s = rtt_s;
        self.deviation_s = 2.0 * rtt_s;
        self.variance_s = self.deviation_s.max(VARIANCE_FLOOR_S);
        self.rfc_variance_s = rtt_s / 2.0;
        self.deviation_max_s = self.variance_s;
    }

    /// A sample of data sent once; `una` and `nxt` delimit the sender's round.
    #[inline(always)]
    pub fn sample(&mut self, rtt_s: f64, una: u64, nxt: u64) {
        if rtt_s <= 0.0 {
            return;
        }
        self.keep(rtt_s);
        self.samples += 1;
        self.sum += rtt_s;
        self.sum_squares += rtt_s * rtt_s;
        if rtt_s < self.min_s {
            self.least(rtt_s);
        }
        self.feed(rtt_s, una, nxt);
    }

    /// An answer took less than any round trip so far.
    #[inline(always)]
    pub fn is_undercut(&self, took_ns: i64) -> bool {
        (took_ns as f64) < self.min_s * 1e9
    }

    /// No round trip is longer than that at its least.
    #[cold]
    pub fn least(&mut self, rtt_s: f64) {
        if rtt_s > 0.0 && rtt_s < self.min_s {
            self.min_s = rtt_s;
        }
    }

    /// What is known of the path's own round trip, below which no answer comes.
    #[inline]
    pub fn floor(&self) -> Floor {
        let near = match &self.kept {
            Kept::Many(histogram) => histogram.counts.iter().take(2).sum(),
            Kept::Few(few) => {
                let samples = few.iter().take(self.samples as usize);
                samples.filter(|&&sample| sample <= self.min_s * NEAR).count() as u32
            }
        };
        Floor {
            min_s: self.min_s,
            near,
        }
    }

    /// Of `count` samples that were taken for `told_s`, what they were; the estimator is left as it is.
    pub fn revise(&mut self, told_s: f64, rtt_s: f64, count: u32) {
        let more_s = rtt_s - told_s;
        if more_s == 0.0 || self.samples == 0 {
            return;
        }
        self.sum += more_s * f64::from(count);
        self.sum_squares += more_s * (rtt_s + told_s) * f64::from(count);
        match &mut self.kept {
            Kept::Many(histogram) => histogram.revise(told_s, rtt_s, count),
            Kept::Few(few) => {
                let off = |sample: &f64| (sample - told_s).abs();
                let known = few.iter_mut().take(self.samples as usize);
                if let Some(sample) = known.min_by(|a, b| off(a).total_cmp(&off(b))) {
                    *sample = rtt_s;
                }
            }
        }
    }

    #[inline(always)]
    fn keep(&mut self, rtt_s: f64) {
        match &mut self.kept {
            Kept::Many(histogram) => histogram.add(rtt_s),
            Kept::Few(few) => match few.get_mut(self.samples as usize) {
                Some(slot) => *slot = rtt_s,
                None => self.kept = Kept::Many(Histogram::of(few, rtt_s)),
            },
        }
    }

    /// Feeds the estimator alone (timestamp echoes of resent data: RFC 7323, 4.1). As of a sample, what a clock that jumped
    /// makes less than nothing is none.
    pub fn smooth(&mut self, rtt_s: f64, una: u64, nxt: u64) {
        if rtt_s > 0.0 {
            self.feed(rtt_s, una, nxt);
        }
    }

    #[inline(always)]
    fn feed(&mut self, rtt_s: f64, una: u64, nxt: u64) {
        if self.srtt_s == 0.0 {
            self.first(rtt_s);
            self.round_end = nxt;
            return;
        }
        let error = rtt_s - self.srtt_s;
        self.rfc_variance_s += (error.abs() - self.rfc_variance_s) / 4.0;
        self.srtt_s += error / 8.0;
        let mut grown = error.abs() - self.deviation_s / 4.0;
        if error < 0.0 && grown > 0.0 {
            // a falling round trip must not raise the timer as a rising one does
            grown /= 8.0;
        }
        self.deviation_s += grown;
        if self.deviation_s > self.deviation_max_s {
            self.deviation_max_s = self.deviation_s;
            self.variance_s = self.variance_s.max(self.deviation_max_s);
        }
        if una > self.round_end {
            if self.deviation_max_s < self.variance_s {
                self.variance_s -= (self.variance_s - self.deviation_max_s) / 4.0;
            }
            self.round_end = nxt;
            self.deviation_max_s = VARIANCE_FLOOR_S;
        }
    }

    pub fn rto_s(&self) -> f64 {
        if self.srtt_s == 0.0 {
            INITIAL_RTO_S
        } else {
            self.srtt_s + self.variance_s.max(VARIANCE_FLOOR_S)
        }
    }

    /// Time in which nearly everything is answered that the receiver answers at once: the timer without its floor (RFC 6298, 2.3),
    /// which before the first sample is the timer.
    pub fn answer_ns(&self) -> i64 {
        let answer_s = if self.srtt_s == 0.0 {
            INITIAL_RTO_S
        } else {
            self.srtt_s + self.deviation_s
        };
        (answer_s * 1e9) as i64
    }

    /// The timer as RFC 6298 writes it, with its floor of a second (2.4).
    pub fn rfc_rto_s(&self) -> f64 {
        (self.srtt_s + 4.0 * self.rfc_variance_s).max(INITIAL_RTO_S)
    }

    pub fn mean_s(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum / self.samples as f64)
    }

    pub fn sd_s(&self) -> Option<f64> {
        let mean = self.mean_s()?;
        (self.samples > 1).then(|| (self.sum_squares / self.samples as f64 - mean * mean).max(0.0).sqrt())
    }

    /// The quantile `share`; of many samples the upper edge of the bin that holds it.
    pub fn quantile_s(&self, share: f64) -> Option<f64> {
        let target = (share * self.samples as f64).ceil() as u64;
        let histogram = match &self.kept {
            Kept::Many(histogram) => histogram,
            Kept::Few(few) => {
                let mut few = *few;
                let few = &mut few[..self.samples as usize];
                few.sort_by(f64::total_cmp);
                return few.get((target as usize).saturating_sub(1)).copied();
            }
        };
        let mut seen = 0u64;
        for (bin, &count) in (histogram.first..).zip(&histogram.counts) {
            seen += u64::from(count);
            if seen >= target {
                return Some(bins::end_s(bin));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_due_at_once_before_the_first_sample() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.answer_ns(), 1_000_000_000);
        rtt.sample(0.5, 1, 2);
        assert_eq!(rtt.answer_ns(), 1_500_000_000);
    }

    #[test]
    fn first_sample_sets_both_estimators() {
        // RFC 6298, 2.2: SRTT = R, RTTVAR = R/2, RTO = R + 4 R/2
        let mut rtt = Rtt::default();
        assert_eq!(rtt.rto_s(), 1.0);
        rtt.sample(0.3, 1, 2);
        assert!((rtt.rto_s() - 0.9).abs() < 1e-12);
        let mut short = Rtt::default();
        short.sample(0.02, 1, 2);
        assert!((short.rto_s() - 0.22).abs() < 1e-12);
    }

    #[test]
    fn steady_round_trips_bring_the_timer_down_to_its_floor() {
        let mut rtt = Rtt::default();
        for i in 0..200u64 {
            rtt.sample(0.1, i * 10, i * 10 + 5);
        }
        assert!((rtt.rto_s() - 0.3).abs() < 1e-3);
        assert_eq!(rtt.rfc_rto_s(), 1.0);
        let p95 = rtt.quantile_s(0.95).unwrap();
        assert!((0.1..0.1031).contains(&p95));
    }

    #[test]
    fn quantiles_of_few_samples_are_samples() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.quantile_s(0.95), None);
        for k in 1..=8 {
            rtt.sample(f64::from(9 - k) / 100.0, 1, 2);
            assert_eq!(rtt.quantile_s(1.0), Some(0.08));
        }
        assert_eq!(rtt.quantile_s(0.5), Some(0.04));
        rtt.sample(0.001, 1, 2);
        assert!((0.0799..0.0825).contains(&rtt.quantile_s(1.0).unwrap()));
    }

    #[test]
    fn no_round_trip_is_less_than_nothing() {
        let mut rtt = Rtt::default();
        rtt.sample(0.1, 1, 2);
        let before = (rtt.srtt_s, rtt.rto_s());
        for less_s in [-3.0, 0.0, f64::NAN] {
            rtt.smooth(less_s, 1, 2);
        }
        assert_eq!(before, (rtt.srtt_s, rtt.rto_s()));
        rtt.smooth(0.2, 1, 2);
        assert!(rtt.srtt_s > before.0);
    }

    #[test]
    fn quantiles_of_many_samples_are_upper_edges_of_bins() {
        let mut rtt = Rtt::default();
        for k in 0..1000u64 {
            // 1 to 1000 ms, each once, up and down
            rtt.sample((1 + k * 617 % 1000) as f64 / 1e3, 1, 2);
        }
        for share in [0.01, 0.1, 0.5, 0.95, 1.0] {
            let ratio = rtt.quantile_s(share).unwrap() / share;
            assert!((1.0 - 1e-9..1.03 + 1e-9).contains(&ratio), "{share}: {ratio}");
        }
        assert!((rtt.mean_s().unwrap() - 0.5005).abs() < 1e-12);
        assert!((rtt.sd_s().unwrap() - (999_999.0f64 / 12.0).sqrt() / 1e3).abs() < 1e-9);
    }

    #[test]
    fn samples_are_revised_in_all_that_is_told_of_them() {
        for samples in [5u32, 40] {
            let mut rtt = Rtt::default();
            for _ in 0..samples {
                rtt.sample(0.05, 1, 2);
            }
            let revised = samples / 5;
            for _ in 0..revised {
                rtt.revise(0.05, 0.1, 1);
            }
            assert_eq!(rtt.samples, u64::from(samples));
            assert!((rtt.mean_s().unwrap() - 0.06).abs() < 1e-12);
            let spread = (f64::from(samples) / f64::from(samples - 1)).sqrt();
            assert!((rtt.sd_s().unwrap() / spread - 0.02).abs() < 2.5e-3);
            assert!((0.05..0.0516).contains(&rtt.quantile_s(0.8).unwrap()));
            assert!((0.1..0.1031).contains(&rtt.quantile_s(0.81).unwrap()));
            // the estimator has had what it had
            assert!((rtt.srtt_s - 0.05).abs() < 1e-12);
        }
    }

    #[test]
    fn a_mean_of_samples_is_revised_in_the_nearest_bins() {
        let mut rtt = Rtt::default();
        for n in 0..20 {
            rtt.sample(if n % 2 == 0 { 0.05 } else { 0.06 }, 1, 2);
        }
        rtt.revise(0.055, 0.1, 4);
        let quantiles = [0.3, 0.8, 0.81].map(|share| rtt.quantile_s(share).unwrap());
        for (quantile, least) in quantiles.into_iter().zip([0.05, 0.06, 0.1]) {
            assert!((least..least * 1.032).contains(&quantile), "{quantiles:?}");
        }
    }

    #[test]
    fn a_round_trip_that_falls_raises_the_timer_less_than_one_that_rises() {
        let mut rtt = Rtt::default();
        let mut after = |rtt_s, una| {
            rtt.sample(rtt_s, una, una + 10);
            rtt.rto_s()
        };
        // deviation 0.2; + 0.1 - 0.2/4; + (0.1 - 0.25/4)/8; and a quarter of the way to the floor with the next round
        let timers = [after(0.1, 1), after(0.2, 2), after(0.0125, 3), after(0.1, 12)];
        for (timer, expected) in timers.into_iter().zip([0.3, 0.3625, 0.354_687_5, 0.354_687_5]) {
            assert!((timer - expected).abs() < 1e-9, "{timer} {expected}");
        }
        assert!((after(0.1, 23) - (0.1 + 0.254_687_5 - 0.054_687_5 / 4.0)).abs() < 1e-9);
    }
}
