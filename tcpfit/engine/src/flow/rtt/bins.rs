//! Bins of the histogram of round trips, each 3 % wide, found without a logarithm: a sample's exponent and the first bits
//! of its fraction leave two of them at most.

/// From 1 us to above 1000 s.
const BINS: usize = 720;
const RATIO: f64 = 1.03;
/// Smallest value told apart, in seconds.
const FLOOR_S: f64 = 1e-6;

/// Bits of the fraction that are looked at: so many values in each power of two are 0.8 to 1.6 % apart, less than a bin.
const FRACTION_BITS: u32 = 6;
const SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - FRACTION_BITS;
/// The cell that holds `FLOOR_S`, and how many there are up to the last bin's.
const FIRST_CELL: u64 = FLOOR_S.to_bits() >> SHIFT;
const CELLS: usize = ((EDGES_S[BINS - 1].to_bits() >> SHIFT) - FIRST_CELL) as usize + 1;

/// Where each bin begins; nothing reaches the end of the last one.
static EDGES_S: [f64; BINS + 1] = {
    let mut edges = [FLOOR_S; BINS + 1];
    let mut bin = 1;
    while bin < BINS {
        edges[bin] = edges[bin - 1] * RATIO;
        bin += 1;
    }
    edges[BINS] = f64::INFINITY;
    edges
};

/// The bin in which each cell begins.
static CELL_BEGINS: [u16; CELLS] = {
    let mut begins = [0; CELLS];
    let (mut cell, mut bin) = (1, 0);
    while cell < CELLS {
        let begin = f64::from_bits((FIRST_CELL + cell as u64) << SHIFT);
        while EDGES_S[bin + 1] <= begin {
            bin += 1;
        }
        begins[cell] = bin as u16;
        cell += 1;
    }
    begins
};

/// A bin, with what falls into it.
#[derive(Clone, Copy, Debug)]
pub struct Bin {
    pub number: u16,
    begin_s: f64,
    end_s: f64,
}

impl Bin {
    /// That of a sample above zero; the first and the last take what lies beyond.
    #[inline(never)] // few are asked for
    pub fn of(rtt_s: f64) -> Self {
        let cell = (rtt_s.to_bits() >> SHIFT).saturating_sub(FIRST_CELL);
        let begin = CELL_BEGINS
            .get(cell as usize)
            .map_or(BINS - 1, |&begin| usize::from(begin));
        let number = begin + usize::from(rtt_s >= EDGES_S[begin + 1]);
        Self {
            number: number as u16,
            begin_s: if number == 0 { 0.0 } else { EDGES_S[number] },
            end_s: EDGES_S[number + 1],
        }
    }

    #[inline]
    pub fn holds(&self, rtt_s: f64) -> bool {
        self.begin_s <= rtt_s && rtt_s < self.end_s
    }
}

/// Where the bin ends, in seconds.
pub fn end_s(bin: u16) -> f64 {
    FLOOR_S * RATIO.powi(i32::from(bin) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bin's number; the bin holds the sample.
    fn number(rtt_s: f64) -> u16 {
        let bin = Bin::of(rtt_s);
        assert!(bin.holds(rtt_s), "{rtt_s} {bin:?}");
        bin.number
    }

    #[test]
    fn a_bin_is_what_its_logarithm_says() {
        let by_logarithm = |rtt_s: f64| {
            let bin = (rtt_s / FLOOR_S).ln() / RATIO.ln();
            bin.clamp(0.0, (BINS - 1) as f64) as u16
        };
        // the nanoseconds on both sides of each edge, and what lies beyond
        let near = EDGES_S[..BINS].iter().map(|edge_s| (edge_s * 1e9) as i64);
        for ns in near.flat_map(|ns| [ns - 1, ns, ns + 1]) {
            let rtt_s = ns as f64 / 1e9;
            assert_eq!((by_logarithm(rtt_s), ns), (number(rtt_s), ns));
        }
        for rtt_s in [1e-9, 1e-6, 1.0, 1700.0, 2000.0, 1e9] {
            assert_eq!((by_logarithm(rtt_s), rtt_s), (number(rtt_s), rtt_s));
        }
        assert_eq!((0, 719), (number(f64::MIN_POSITIVE), number(f64::MAX)));
    }

    #[test]
    fn a_bin_ends_where_the_next_one_begins() {
        for below in 0..BINS as u16 - 1 {
            let edge_s = end_s(below);
            let near = [edge_s * (1.0 - 1e-12), edge_s * (1.0 + 1e-12)];
            assert_eq!([below, below + 1], near.map(number));
            assert!(!Bin::of(near[0]).holds(near[1]) && !Bin::of(near[1]).holds(near[0]));
        }
    }
}
