//! Without SACK: duplicate ACKs that come while nothing is sent again and that no data held above a hole explain. They answer
//! what the path copied, or originals that came after their resends.
//!
//! The path copies at any time: of the answers, as many fall into the time after a stretch of resends as segments do.
//! Originals come late in that time alone, and mostly all of a stretch do. What a capture cannot show: of a single answer,
//! which of the two it is.

/// How much likelier it must be that originals come late.
const ODDS: f64 = 3.0;
/// Share of flows with late originals in which an answer comes at another time, after a longer hold; half as many have one
/// more.
const LATER: f64 = 0.1;
/// Answers at other times that leave no doubt.
const MOST_ELSEWHERE: u32 = 64;

/// A duplicate ACK that came while nothing was sent again.
#[derive(Clone, Copy, Debug)]
pub struct LoneAnswer {
    pub time_ns: i64,
    pub frame: u64,
    /// Highest byte sent by then.
    pub nxt: u64,
}

/// Segments that were sent in the time after a stretch, and at other times.
#[derive(Clone, Copy, Debug)]
struct Sendings {
    after: f64,
    elsewhere: f64,
}

#[derive(Clone, Debug)]
pub struct LoneAnswers {
    /// Answers in the time after a stretch of resends that seemed needed, and at other times.
    after: u32,
    elsewhere: u32,
    /// Of the first, those that were taken for the path's.
    kept: u32,
    /// Segments sent in that time, and at other times.
    sent: Sendings,
    /// They come after stretches, as far as the last one showed.
    after_stretches: bool,
    /// Of the last stretch: resends that seem needed, and how many of their originals came late.
    needed: u64,
    late: u64,
    /// Stretches of which all such originals came late, and others.
    late_stretches: u32,
    other_stretches: u32,
}

impl LoneAnswers {
    pub const fn new() -> Self {
        Self {
            after: 0,
            elsewhere: 0,
            kept: 0,
            sent: Sendings {
                after: 0.0,
                elsewhere: 0.0,
            },
            after_stretches: false,
            needed: 0,
            late: 0,
            late_stretches: 0,
            other_stretches: 0,
        }
    }

    /// One came, `after` a stretch, perhaps of an original that was `overtaken` as duplicate ACKs say. `count` segments were
    /// sent since the last stretch, `share` of them while answers count as those after it. True if it is an original's, as
    /// far as all of them show.
    pub fn are_late(&mut self, after: bool, overtaken: bool, count: u64, share: f64) -> bool {
        self.after += u32::from(after);
        self.elsewhere += u32::from(!after);
        self.after_stretches = self.come_after(self.sent_with(count, share));
        let late = after && (self.after_stretches || overtaken && self.may_be_late());
        self.kept += u32::from(after && !late);
        late
    }

    /// One came that can only be the path's.
    pub fn on_copy(&mut self) {
        self.elsewhere += 1;
    }

    /// So many originals of the last stretch came late.
    pub fn on_late(&mut self, count: u64) {
        self.late += count;
    }

    /// A stretch is over of which so many resends seem needed.
    pub fn on_stretch(&mut self, needed: u64) {
        if self.needed > 0 {
            if self.late >= self.needed {
                self.late_stretches += 1;
            } else {
                self.other_stretches += 1;
            }
        }
        (self.needed, self.late) = (needed, 0);
    }

    /// So many segments were sent between two stretches, a share of them while answers count as those after the first.
    pub fn on_sent(&mut self, count: u64, share: f64) {
        self.sent = self.sent_with(count, share);
    }

    fn sent_with(&self, count: u64, share: f64) -> Sendings {
        let count = count as f64;
        let after = if self.needed > 0 { share * count } else { 0.0 };
        Sendings {
            after: self.sent.after + after,
            elsewhere: self.sent.elsewhere + count - after,
        }
    }

    /// Copies that the path made.
    pub fn copies(&self) -> u32 {
        let kept = if self.after_stretches { 0 } else { self.kept };
        self.elsewhere + kept
    }

    /// An answer after a stretch may be that of an original.
    pub fn may_be_late(&self) -> bool {
        self.after_stretches || self.elsewhere == 0 && self.other_stretches <= self.late_stretches
    }

    /// They come after stretches, as answers to what the path copies would not.
    pub fn come_after_stretches(&self) -> bool {
        self.after_stretches
    }

    fn come_after(&self, sent: Sendings) -> bool {
        let (after, elsewhere) = (f64::from(self.after), f64::from(self.elsewhere));
        if self.elsewhere > MOST_ELSEWHERE || 4.0 * elsewhere > after || sent.elsewhere <= 0.0 {
            return false;
        }
        let share = sent.after / (sent.after + sent.elsewhere);
        // binomial: each at a time of its own
        let copied = (1..=self.elsewhere).fold(share.powf(after), |chance, k| {
            let k = f64::from(k);
            chance * (after + k) / k * (1.0 - share)
        });
        let late = match self.elsewhere {
            0 => 1.0 - LATER,
            n => LATER * f64::from(n).exp2().recip(),
        };
        late >= ODDS * copied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers after stretches, of which each needed one resend, so many segments between two of them.
    fn after_stretches(share: f64, answers: usize) -> (LoneAnswers, usize) {
        let (mut lone, mut late) = (LoneAnswers::new(), 0);
        for _ in 0..answers {
            // a loss, then a late original
            for came in [false, true] {
                lone.on_stretch(1);
                if came && lone.are_late(true, true, 100, share) {
                    lone.on_late(1);
                    late += 1;
                }
                lone.on_sent(100, share);
            }
        }
        (lone, late)
    }

    #[test]
    fn answers_that_come_after_stretches_only_are_those_of_originals() {
        // as likely after a stretch as not, copies would have come there three times in eight flows
        let (lone, late) = after_stretches(0.5, 20);
        assert!(lone.may_be_late() && lone.copies() == 0);
        assert!((18..20).contains(&late), "{late}");
    }

    #[test]
    fn where_it_is_nearly_always_after_a_stretch_that_shows_nothing() {
        let (lone, late) = after_stretches(0.99, 20);
        assert!(!lone.may_be_late());
        assert_eq!((lone.copies(), late), (20, 0));
    }

    #[test]
    fn an_answer_elsewhere_is_the_paths() {
        let (mut lone, _) = after_stretches(0.5, 3);
        assert!(!lone.are_late(false, false, 0, 0.0));
        assert!(!lone.may_be_late() && lone.copies() > 1);
        // unless most of many others come after stretches
        let (mut lone, _) = after_stretches(0.5, 40);
        assert!(!lone.are_late(false, false, 0, 0.0));
        assert!(lone.may_be_late() && lone.copies() == 1);
    }
}
