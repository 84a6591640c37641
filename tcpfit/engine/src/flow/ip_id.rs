//! The IPv4 identification as a send counter.
//!
//! Many hosts count it up by one for every packet of a connection (or of the host). Where they do, it tells in which
//! order packets were sent and, where the counter belongs to the connection alone, how many are missing. Random, zero
//! and rewritten identifications fail the test below and are not used (RFC 6864 allows all of them).

/// A step forwards of at most this is one of a counter.
const LARGEST_STEP: i64 = 1000;
/// Steps needed before the counter is believed: two steps of exactly one, as a connection's own counter makes, happen by
/// chance once in 2^32, two that only lie forwards, as a host's makes, once in some 4000.
const STEPS_NEEDED: u32 = 2;
/// Steps counted; then old ones count half.
const MOST_STEPS: u32 = 1 << 20;
/// Steps that skip numbers while no data are missing, from which the counter is not the connection's own, if they are more
/// than those that data explain. A needless resend that was lost makes one, and these are rare.
const STRANGE: u8 = 4;
/// Identifications remembered behind the highest one, to know a copy when it comes.
const REMEMBERED: i64 = 512;

/// Number of strange steps that stands for any: other packets are known to take numbers.
const IGNORED: u8 = u8::MAX;

/// What an identification says of the packet that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The counter is not usable (or not yet).
    Unknown,
    /// Sent after everything seen so far; `missing` numbers were skipped (0 unless the counter is the connection's own).
    Newest { index: i64, missing: u32 },
    /// Sent before something that was seen earlier.
    Late { index: i64 },
    /// This very packet has been seen.
    Copy,
}

#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct IpId {
    highest: i64,
    /// Numbers the newest packet took: one a segment (a super-segment of k takes k).
    width: u32,
    steps: u32,
    /// Of the steps, those that were not of one, and those that no counter makes.
    others: u32,
    jumps: u32,
    /// Of the others, those that skipped as many numbers as data were missing.
    explained: u32,
    /// Numbers skipped by the last of the others, until data that are missing explain it.
    skipped: u16,
    started: bool,
    /// Steps that skipped numbers while nothing was missing; `IGNORED` where skipped numbers say nothing of the connection.
    strange: u8,
    /// Whether the last `REMEMBERED` numbers have been seen, each in the bit that it is modulo their number.
    seen: [u64; (REMEMBERED / 64) as usize],
}

impl IpId {
    pub fn ordered(&self) -> bool {
        self.ordered_in(self.steps)
    }

    /// At most one step in twenty was none of a counter.
    #[inline]
    fn ordered_in(&self, steps: u32) -> bool {
        steps >= STEPS_NEEDED && u64::from(steps) >= 20 * u64::from(self.jumps)
    }

    /// The counter is the connection's own: a skipped number is a packet that did not come by. Few steps are not of one,
    /// or most of them skip just what is missing, as they do where much is lost.
    pub fn dense(&self) -> bool {
        let unexplained = self.others - self.explained;
        let few = u64::from(self.steps) >= 5 * u64::from(unexplained);
        self.strange < IGNORED && self.ordered() && (few || unexplained <= self.explained)
    }

    /// Between `least` and `most` segments are missing, as many as the last of the other steps skipped: a step of the
    /// connection's own counter. What was skipped before a resend may be new data that only the next new data show to be
    /// missing.
    pub fn explain(&mut self, least: u32, most: u32) {
        let skipped = u32::from(self.skipped);
        if skipped > 0 && (least..=most).contains(&skipped) {
            self.skipped = 0;
            self.explained += 1;
        }
    }

    /// The last step skipped numbers while no data were missing that could have taken them.
    pub fn count_strange(&mut self) {
        if self.strange < IGNORED - 1 {
            self.strange += 1;
        }
    }

    /// So many steps did that other packets must take numbers: those of the host's other connections.
    pub fn is_shared(&self) -> bool {
        self.strange >= STRANGE && u32::from(self.strange) > self.explained
    }

    /// Numbers that the last of the other steps skipped and nothing has explained.
    pub fn unexplained(&self) -> u32 {
        u32::from(self.skipped)
    }

    /// Numbers between the newest packet and this one, which is newer, where every second packet or more takes the next.
    pub fn skipped_before(&self, id: u16) -> Option<u16> {
        let few = self.ordered() && self.steps >= 2 * self.others && self.strange < IGNORED;
        let next = (self.highest as u16).wrapping_add(self.width as u16);
        few.then(|| id.wrapping_sub(next))
            .filter(|&skipped| skipped < i16::MAX as u16)
    }

    /// Other packets take numbers too, or none is missing where the packets are sent: only the order is left.
    pub fn ignore_gaps(&mut self) {
        self.strange = IGNORED;
    }

    /// A counter already known to be the connection's own, from other connections of the host.
    pub fn trusted() -> Self {
        Self {
            steps: STEPS_NEEDED,
            ..Self::default()
        }
    }

    /// `id` belongs to a packet sent after everything seen so far.
    pub fn is_newest(&self, id: u16) -> bool {
        self.ordered() && (id.wrapping_sub(self.highest as u16) as i16) > 0
    }

    /// Takes the next packet of the direction; `segments` is 1 but for super-segments.
    pub fn observe(&mut self, id: u16, segments: u32) -> Place {
        if self.take_next(id, segments) {
            self.newest()
        } else {
            self.observe_any(id, segments)
        }
    }

    /// Takes the packet if it is what most are, the next one; the count of steps stays below 2^20 by what is done with
    /// the others.
    #[inline]
    pub fn take_next(&mut self, id: u16, segments: u32) -> bool {
        let index = self.highest + 1;
        let next = self.width == 1 && segments == 1 && id == index as u16 && self.steps < MOST_STEPS - 1;
        if next {
            self.steps += 1;
            self.mark(index);
            self.highest = index;
        }
        next
    }

    /// Place of the packet that `take_next` took.
    pub fn newest(&self) -> Place {
        // the counter could be used before that step
        if self.ordered_in(self.steps - 1) {
            Place::Newest {
                index: self.highest,
                missing: 0,
            }
        } else {
            Place::Unknown
        }
    }

    /// Takes any other packet.
    pub fn observe_any(&mut self, id: u16, segments: u32) -> Place {
        let width = segments.max(1);
        if !self.started {
            self.started = true;
            self.highest = i64::from(id);
            self.width = width;
            self.mark(self.highest);
            return Place::Unknown;
        }
        let index = self.highest + i64::from(id.wrapping_sub(self.highest as u16) as i16);
        let step = index - self.highest - i64::from(self.width - 1);
        if index <= self.highest {
            let back = self.highest - index;
            if back < REMEMBERED && self.has_seen(index) {
                return if self.ordered() {
                    Place::Copy
                } else {
                    self.restart(index, width)
                };
            }
            if back >= REMEMBERED || !self.ordered() {
                return self.restart(index, width);
            }
            self.mark(index);
            return Place::Late { index };
        }
        let usable = self.ordered();
        let dense = self.dense();
        let plausible = (1..=LARGEST_STEP).contains(&step);
        self.steps += 1;
        self.others += u32::from(step != 1);
        self.jumps += u32::from(!plausible);
        if step != 1 {
            self.skipped = if plausible { (step - 1) as u16 } else { 0 };
        }
        if self.steps == MOST_STEPS {
            let (ones, forwards) = (self.steps - self.others, self.steps - self.jumps);
            self.steps /= 2;
            self.others = self.steps - ones / 2;
            self.explained = (self.explained / 2).min(self.others);
            self.jumps = self.steps - forwards / 2;
        }
        if index > self.highest + 1 {
            self.forget_between(index);
        }
        self.mark(index);
        self.highest = index;
        self.width = width;
        match (usable && plausible, dense) {
            (false, _) => Place::Unknown,
            (true, false) => Place::Newest { index, missing: 0 },
            (true, true) => Place::Newest {
                index,
                missing: (step - 1) as u32,
            },
        }
    }

    /// A jump that no counter makes: start again from here, and count it against the counter.
    fn restart(&mut self, index: i64, width: u32) -> Place {
        self.steps += 1;
        self.others += 1;
        self.jumps += 1;
        self.skipped = 0;
        self.seen = Default::default();
        self.mark(index);
        self.highest = index;
        self.width = width;
        Place::Unknown
    }

    fn bit(index: i64) -> (usize, u64) {
        let at = index.rem_euclid(REMEMBERED) as usize;
        (at / 64, 1 << (at % 64))
    }

    fn has_seen(&self, index: i64) -> bool {
        let (word, bit) = Self::bit(index);
        self.seen[word] & bit != 0
    }

    fn mark(&mut self, index: i64) {
        let (word, bit) = Self::bit(index);
        self.seen[word] |= bit;
    }

    /// The bits of the numbers skipped before `index` were those of numbers that are too old now.
    fn forget_between(&mut self, index: i64) {
        if index - self.highest >= REMEMBERED {
            self.seen = Default::default();
        } else {
            for skipped in self.highest + 1..index {
                let (word, bit) = Self::bit(skipped);
                self.seen[word] &= !bit;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_tells_gaps_late_packets_and_copies() {
        let mut id = IpId::default();
        for i in 0..3u16 {
            assert_eq!(id.observe(65534u16.wrapping_add(i), 1), Place::Unknown);
        }
        let at = |p| match p {
            Place::Newest { index, missing } => (index, missing),
            other => panic!("{other:?}"),
        };
        assert_eq!(at(id.observe(3, 1)), (65539, 2));
        assert_eq!(id.observe(2, 1), Place::Late { index: 65538 });
        assert_eq!(id.observe(2, 1), Place::Copy);
        assert_eq!(at(id.observe(4, 4)), (65540, 0));
        assert_eq!(at(id.observe(8, 1)), (65544, 0));
    }

    /// A counter that has made ten steps of one.
    fn counted() -> IpId {
        let mut id = IpId::default();
        for i in 0..10 {
            id.observe(i, 1);
        }
        id
    }

    #[test]
    fn numbers_skipped_where_as_much_is_missing_are_the_connections_own() {
        let (mut own, mut shared) = (counted(), counted());
        for i in (12..300).step_by(3) {
            own.observe(i, 1);
            own.explain(1, 1);
            own.observe(i + 1, 1);
            shared.observe(i, 1);
            shared.observe(i + 1, 1);
        }
        assert!(own.dense());
        assert!(shared.ordered() && !shared.dense());
    }

    #[test]
    fn numbers_skipped_again_and_again_while_nothing_is_missing_are_other_packets() {
        let mut id = counted();
        (1..STRANGE).for_each(|_| id.count_strange());
        assert!(!id.is_shared());
        id.count_strange();
        assert!(id.is_shared());
        id.explained = u32::from(STRANGE);
        assert!(!id.is_shared());
    }

    #[test]
    fn a_step_is_explained_once_by_what_it_skipped() {
        let mut id = counted();
        id.observe(12, 1);
        assert_eq!(id.unexplained(), 2);
        id.explain(1, 1);
        assert_eq!(id.unexplained(), 2);
        id.explain(1, 2);
        assert_eq!((id.unexplained(), id.explained), (0, 1));
        id.explain(0, 2);
        assert_eq!(id.explained, 1);
    }

    #[test]
    fn random_identifications_are_not_used() {
        let mut id = IpId::default();
        let mut x = 1u32;
        for _ in 0..1000 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            id.observe((x >> 16) as u16, 1);
        }
        assert!(!id.ordered());
        let mut zero = IpId::default();
        for _ in 0..100 {
            assert_eq!(zero.observe(0, 1), Place::Unknown);
        }
    }
}
