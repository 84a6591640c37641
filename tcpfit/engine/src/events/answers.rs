//! Without SACK: whom duplicate ACKs answer. A receiver acknowledges at once what lies above a hole, and what it has
//! already (RFC 5681, 4.2); both look the same. Here is who is known to be answered: copies that were needless, and
//! those that the path makes. What is left over at the end of a stretch of resends says how many of these were needless.

use crate::events::fate::late_ns;
use crate::events::lone_answers::LoneAnswers;
use crate::flow::scoreboard::Transmission;
use crate::flow::sender::Sent;
use std::collections::VecDeque;

/// Duplicates reported of data sent once, or duplicate ACKs that nothing else explains, that show a path which makes copies.
const PATH_COPIES: u32 = 2;
/// Copies that the path makes for each that showed while nothing was sent again. Delayed ACKs hide most: the next one
/// covers two segments, as if the second had come before the first. From 4 to 8 the measured flows come out the same.
const COPIES_UNSEEN: f64 = 5.0;
/// Needless copies remembered that have not been answered.
const DUE: usize = 256;
/// Segments acknowledged while nothing was sent again, from which on it shows that each has an ACK of its own.
const ONE_BY_ONE: u64 = 20;
/// Segments an ACK, of a receiver that acknowledges each at once over a path that loses few ACKs, and of one that waits for
/// the second (RFC 5681, 4.2), where nothing joins segments on their way up to it.
const SEGMENTS_AN_ACK: f64 = 1.02;
const SEGMENTS_A_DELAYED_ACK: f64 = 2.02;

/// Round trips in which an answer comes, whatever queue it was sent into, and the share of one in which the answers follow one
/// another to what was sent at one time and was not lost.
const ANSWERED: f64 = 1.5;
const NEXT_ANSWER: f64 = 0.25;
/// Of a path without a queue the usual round trip is so many times the least at most.
const NO_QUEUE: f64 = 1.25;
/// Silences remembered of a stretch.
const SILENCES: usize = 16;

/// A resend that filled a hole, as its ACK proves, and nothing has come of the receiver since.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// The next transmission.
    behind: u64,
    sent_ns: i64,
    answered_ns: i64,
}

/// While it had a hole, and so answered at once what came (RFC 5681, 4.2), the receiver sent nothing: the transmissions from
/// `behind` on that were sent by then had no answer.
#[derive(Clone, Copy, Debug)]
struct Silence {
    behind: u64,
    sent_ns: i64,
}

impl Silence {
    fn covers(&self, order: u64, time_ns: i64) -> bool {
        order >= self.behind && time_ns <= self.sent_ns
    }
}

/// A needless copy still to be answered.
#[derive(Clone, Copy, Debug)]
struct Due {
    /// Not before.
    time_ns: i64,
    /// Its transmission, if it belongs to the stretch under way.
    order: Option<u64>,
    /// When it was sent.
    sent_ns: i64,
    /// No ACK since then may have answered it together with a segment that waited.
    alone: bool,
    /// The ACK that comes now has shown that it was needless: it has filled a hole below, and waited for nothing.
    shown_now: bool,
}

/// Whether an ACK was sent at once since a segment filled the hole below what it covers beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    No,
    /// Or two segments came, one after the other.
    Perhaps,
    Hole,
}

#[derive(Clone, Debug)]
pub struct Answers {
    due: VecDeque<Due>,
    /// Those of the stretch under way that were answered.
    answered: u32,
    /// Those that should have been and were not, and which of these no ACK can have answered.
    unanswered: Vec<u64>,
    unheard_copies: Vec<u64>,
    /// ACKs that moved the left edge between stretches, and by how many bytes.
    undisturbed: (u64, u64),
    /// Packets of the receiver that were missing between stretches, as their numbers tell.
    missing: u64,
    /// The last stretch began then or, if it is over, ended.
    since: Moment,
    /// Duplicate ACKs during the stretch under way, and of these, those that its first resend can have brought.
    duplicates: u64,
    late_duplicates: u64,
    /// Resends of the stretch under way, so far.
    resends: u64,
    /// Behind the last resend that is known to have filled a hole: the next transmission, and duplicate ACKs so far.
    filled: Option<(u64, u64)>,
    /// What was heard last, if that is known, and what was not in the stretch under way.
    heard: Option<Heard>,
    silences: Vec<Silence>,
    /// Duplicate ACKs that can only have answered what came late.
    surplus: i64,
    /// Segments that ACKs of it may have answered together with others, and when the first of these ACKs came: nothing has
    /// shown that the receiver held anything by then.
    together: u64,
    together_ns: i64,
    /// How the ACK that comes now was sent, and that some ACK of a filled hole came as late as one that had waited.
    filling: Filling,
    fills_late: bool,
    /// The last one moved the left edge by one segment that was sent once.
    of_one: bool,
    /// It moved it by more than one; or, after such a one, by an odd number of them, the last of which had waited for another.
    by_twos: bool,
    waited: bool,
    /// The ACK that comes now, if it moves the left edge: when the newest data that it acknowledges were sent; `i64::MIN` if some were
    /// sent more than once.
    newest_ns: Option<i64>,
    /// The receiver's packets of the stretch are numbered; so many of them that answered data were missing; of no stretch so far
    /// was any one.
    numbered: bool,
    unheard: u64,
    all_heard: bool,
    /// Packets of the receiver that were missing before the one that comes now; `None` where nothing numbers them.
    skipped: Option<u16>,
    /// ACKs that moved the left edge, and bytes, when the last one came.
    counted: (u64, u64),
    /// Data that came twice and were sent once.
    path_copies: u32,
    pub lone: LoneAnswers,
    /// Number of the stretch of resends that is under way, or of the next.
    stretch: u32,
    under_way: bool,
    /// Transmissions between stretches.
    calm: u64,
    last_resend_ns: i64,
    resent_to: u64,
}

/// What the sender had sent and heard at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub time_ns: i64,
    pub srtt_s: f64,
    /// No answer comes sooner.
    pub least_ns: i64,
    pub smss: u32,
    /// Transmissions so far, in segments, and segments outstanding; of these, so many have brought duplicate ACKs.
    pub order: u64,
    pub outstanding: u32,
    pub held: u32,
    /// ACKs that moved the left edge, and by how many bytes.
    pub acks: u64,
    pub bytes: u64,
    /// Packets of the receiver that were missing between stretches.
    pub missing: u64,
}

impl Moment {
    const NONE: Self = Self {
        time_ns: 0,
        srtt_s: 0.0,
        least_ns: 0,
        smss: 0,
        order: 0,
        outstanding: 0,
        held: 0,
        acks: 0,
        bytes: 0,
        missing: 0,
    };

    /// Share of the time since the end of a stretch in which originals of its resends may come late and still be known.
    fn share_after(&self, end: &Self) -> f64 {
        let since_ns = (self.time_ns - end.time_ns).max(1);
        (late_ns(end.srtt_s) / since_ns as f64).min(1.0)
    }
}

/// A stretch of resends that is over.
pub struct Stretch {
    pub number: u32,
    /// Duplicate ACKs that can only have answered what came late.
    pub surplus: i64,
    /// Its copies known to be needless that were answered.
    pub answered: u32,
    /// Those that were not when they should have been, and which of these were lost for certain.
    pub unanswered: Vec<u64>,
    pub unheard_copies: Vec<u64>,
    /// Of the transmissions outstanding at its beginning, or made since, how many had no answer: all of them where the
    /// receiver answers each segment, else as many as must have been.
    pub lost: Option<i64>,
    /// Where answers are missing, as their numbers tell: no more than so many had none, as each answers one of them at least.
    pub most_lost: Option<i64>,
    /// How many copies the path made of its transmissions at most, mostly.
    pub path_copies: i64,
}

impl Answers {
    pub const fn new() -> Self {
        Self {
            due: VecDeque::new(),
            answered: 0,
            unanswered: Vec::new(),
            unheard_copies: Vec::new(),
            undisturbed: (0, 0),
            missing: 0,
            since: Moment::NONE,
            duplicates: 0,
            late_duplicates: 0,
            resends: 0,
            filled: None,
            heard: None,
            silences: Vec::new(),
            surplus: 0,
            together: 0,
            together_ns: 0,
            filling: Filling::No,
            fills_late: false,
            of_one: false,
            by_twos: false,
            waited: false,
            newest_ns: None,
            numbered: true,
            unheard: 0,
            all_heard: true,
            skipped: None,
            counted: (0, 0),
            path_copies: 0,
            lone: LoneAnswers::new(),
            stretch: 1,
            under_way: false,
            calm: 0,
            last_resend_ns: i64::MIN / 2,
            resent_to: 0,
        }
    }

    /// Data that were sent once came twice.
    pub fn on_path_copy(&mut self) {
        self.path_copies = self.path_copies.saturating_add(1);
    }

    pub fn path_makes_copies(&self) -> bool {
        self.all_path_copies() >= PATH_COPIES
    }

    pub fn all_path_copies(&self) -> u32 {
        self.path_copies.saturating_add(self.lone.copies())
    }

    /// A duplicate ACK came while nothing was sent again, `after` a stretch, perhaps of an original that was `overtaken`. True
    /// if it is an original's, as far as all of them show.
    pub fn are_late(&mut self, after: bool, overtaken: bool, now: &Moment) -> bool {
        let sent = now.order.saturating_sub(self.since.order);
        self.lone.are_late(after, overtaken, sent, now.share_after(&self.since))
    }

    /// A needless copy that was sent at `sent_ns` is to be answered, after a least round trip; `order` is its transmission if it
    /// belongs to the stretch under way.
    pub fn expect(&mut self, sent_ns: i64, least_ns: i64, order: Option<u64>) {
        let time_ns = sent_ns + least_ns;
        if self.due.len() >= DUE {
            self.due.pop_front();
        }
        let place = self.due.iter().rposition(|due| due.time_ns <= time_ns);
        let due = Due {
            time_ns,
            order,
            sent_ns,
            alone: true,
            shown_now: true,
        };
        self.due.insert(place.map_or(0, |n| n + 1), due);
    }

    /// A duplicate ACK at `now_ns` answers a copy known to be needless, if one is due (within half a round trip). No round trip
    /// is shorter than `least_ns`.
    pub fn take(&mut self, now_ns: i64, srtt_s: f64, least_ns: i64) -> bool {
        self.duplicates += 1;
        self.late_duplicates += u64::from(now_ns >= self.since.time_ns + least_ns);
        if std::mem::take(&mut self.of_one) {
            // the segment may have waited for its ACK, until one came above a hole
            self.add_together(now_ns, 1);
        }
        self.take_answered(now_ns, srtt_s)
    }

    /// A copy known to be needless is answered now, if one is due.
    fn take_answered(&mut self, now_ns: i64, srtt_s: f64) -> bool {
        let due = self.take_due(now_ns, srtt_s);
        self.answered += u32::from(due.is_some_and(|due| due.order.is_some()));
        due.is_some()
    }

    /// With SACK: an ACK that says nothing new at `now_ns` does, of a receiver that does not report duplicates.
    pub fn take_silent(&mut self, now_ns: i64, srtt_s: f64) -> bool {
        self.take_due(now_ns, srtt_s).is_some()
    }

    fn take_due(&mut self, now_ns: i64, srtt_s: f64) -> Option<Due> {
        self.give_up(now_ns, srtt_s);
        let due = *self.due.front().filter(|due| due.time_ns <= now_ns)?;
        self.due.pop_front();
        Some(due)
    }

    /// Takes off what should have been answered before now.
    fn give_up(&mut self, now_ns: i64, srtt_s: f64) {
        while let Some(due) = self.due.front().filter(|due| due.time_ns + half_ns(srtt_s) < now_ns) {
            if self.unanswered.len() < DUE {
                self.unanswered.extend(due.order);
                self.unheard_copies.extend(due.order.filter(|_| due.alone));
            }
            self.due.pop_front();
        }
    }

    /// An ACK of the stretch under way fills a hole: by the resend `order`, of so many segments, as its echo proves (RFC 7323, 4.3), or
    /// nothing tells by what. Since the last such ACK the receiver had a hole, and so has answered at once what came (RFC
    /// 5681, 4.2): duplicate ACKs beyond the transmissions between the two resends, and those `after` the second that may have come
    /// before it, answer what came late.
    pub fn on_filled(&mut self, by: Option<&Transmission>, segments: u32, after: u64, now_ns: i64) {
        let before = std::mem::take(&mut self.filled);
        let Some(&Transmission { order, time_ns, .. }) = by else {
            return;
        };
        if let Some((behind, duplicates)) = before.filter(|_| !self.path_makes_copies()) {
            let sent = order.saturating_sub(behind) + after;
            self.surplus += (self.duplicates - duplicates).saturating_sub(sent) as i64;
        }
        let behind = order + u64::from(segments);
        self.filled = Some((behind, self.duplicates));
        // the first of its ACKs, if none was missing before it
        self.heard = (self.skipped == Some(0)).then_some(Heard {
            behind,
            sent_ns: time_ns,
            answered_ns: now_ns,
        });
    }

    /// Of a unit's copies in the stretch under way, a bit for each that was lost: a receiver that sent nothing would have
    /// answered it.
    pub fn unheard_of(&self, copies: &[Transmission]) -> u64 {
        let is_unheard = |t: &Transmission| self.silences.iter().any(|silence| silence.covers(t.order, t.time_ns));
        let resends = copies.iter().enumerate().skip(1);
        resends.fold(0, |bits, (k, t)| bits | u64::from(t.seen() && is_unheard(t)) << k)
    }

    /// The receiver's next packet comes after one that is known to have answered: none was missing between.
    fn end_silence(&mut self, heard: Heard, now_ns: i64, srtt_s: f64) {
        let round_trips_ns = |count: f64| (srtt_s * count * 1e9) as i64;
        let in_turn_ns = heard.sent_ns + (now_ns - heard.answered_ns) - round_trips_ns(NEXT_ANSWER);
        let sent_ns = in_turn_ns.min(now_ns - round_trips_ns(ANSWERED));
        if sent_ns < heard.sent_ns || self.silences.len() == SILENCES {
            return;
        }
        let behind = heard.behind;
        let silence = Silence { behind, sent_ns };
        self.silences.push(silence);
        let unheard = |due: &Due| due.order.is_some_and(|order| silence.covers(order, due.sent_ns));
        self.due.retain(|due| !unheard(due));
    }

    /// All that was sent again so far, a single segment, was needed: it has filled a hole, as the ACK that came last proves.
    pub fn first_was_needed(&self) -> bool {
        self.under_way && self.resends == 1 && self.filled.is_some()
    }

    /// The stretch of resends under way.
    pub fn under_way(&self) -> Option<u32> {
        self.under_way.then_some(self.stretch)
    }

    /// The stretch under way, or the next.
    pub fn stretch(&self) -> u32 {
        self.stretch
    }

    /// `now`: before it.
    pub fn on_resend(&mut self, sent: &Sent, now: &Moment) {
        if !std::mem::replace(&mut self.under_way, true) {
            let since = std::mem::replace(&mut self.since, *now);
            let sent = now.order.saturating_sub(since.order);
            self.calm += sent;
            self.lone.on_sent(sent, now.share_after(&since));
            self.undisturbed.0 += now.acks - since.acks;
            self.undisturbed.1 += now.bytes - since.bytes;
            self.missing += now.missing - since.missing;
            (self.duplicates, self.late_duplicates, self.resends) = (0, 0, 0);
            (self.numbered, self.unheard) = (true, 0);
            (self.filled, self.surplus, self.heard) = (None, 0, None);
            self.unheard_copies.clear();
            self.silences.clear();
            self.counted = (now.acks, now.bytes);
            (self.together, self.filling, self.of_one) = (0, Filling::No, false);
            (self.by_twos, self.waited) = (!self.have_acks_of(SEGMENTS_AN_ACK, now.smss), false);
        }
        self.resends += 1;
        self.last_resend_ns = sent.time_ns;
        self.resent_to = self.resent_to.max(sent.right);
    }

    /// All that was sent again is acknowledged up to `una`, and `quiet_s` have passed since.
    pub fn is_quiet(&self, una: u64, now_ns: i64, quiet_s: f64) -> bool {
        una >= self.resent_to && now_ns > self.last_resend_ns + (quiet_s * 1e9) as i64
    }

    /// A packet of the receiver came during the stretch under way, so many after the one before that did not come; `None` where
    /// nothing numbers them. These have answered data, unless the sender has sent its FIN.
    pub fn on_numbered(&mut self, skipped: Option<u16>, answered_data: bool, (now_ns, srtt_s): (i64, f64)) {
        if let (Some(heard), Some(0)) = (self.heard.take(), skipped) {
            self.end_silence(heard, now_ns, srtt_s);
        }
        self.skipped = skipped;
        self.numbered &= skipped.is_some();
        self.unheard += skipped.filter(|_| answered_data).map_or(0, u64::from);
        self.all_heard &= skipped.unwrap_or(0) == 0;
    }

    /// Fewer packets of the receiver were missing before the one that comes now than it would have sent for so many segments above a
    /// hole, each of which it acknowledges at once (RFC 5681, 4.2).
    pub fn are_too_few_for(&self, above: u32, smss: u32) -> bool {
        let few = self.skipped.is_some_and(|missing| u32::from(missing) < above);
        few && self.sends_acks_of(SEGMENTS_A_DELAYED_ACK, smss)
    }

    /// Of so many segments that the ACK that comes now covers, the first having been missing, only that has come since the ACK before:
    /// none came in between, and what comes while others are held above it is acknowledged at once (RFC 5681, 4.2). Of two, the second
    /// may have come in order.
    pub fn one_has_come(&self, segments: u32, smss: u32) -> bool {
        let next = segments > 2 && self.skipped == Some(0) && !self.fills_late;
        next && self.sends_acks_of(SEGMENTS_A_DELAYED_ACK, smss)
    }

    /// No duplicate ACK came that a resend of the stretch under way can have brought.
    pub fn only_originals_are_answered(&self) -> bool {
        self.late_duplicates == 0
    }

    /// None of the receiver's packets was missing during this stretch, nor during any other.
    pub fn all_are_heard(&self) -> bool {
        self.numbered && self.all_heard
    }

    /// What the ACK that comes during the stretch under way fills. A receiver that was seen to wait with it, as RFC 5681 (4.2) lets
    /// it, may have waited again.
    pub fn on_filling(&mut self, filling: Filling, late: bool) {
        self.fills_late |= late;
        self.filling = match filling {
            Filling::Hole if self.fills_late => Filling::Perhaps,
            filling => filling,
        };
    }

    /// The receiver has held data since `since_ns`, and so has sent all its ACKs at once (RFC 5681, 4.2).
    pub fn on_held(&mut self, since_ns: i64) {
        if since_ns <= self.together_ns {
            self.together = 0;
        }
    }

    /// An ACK came during the stretch under way: so many have moved the left edge, and by how many bytes.
    pub fn on_counted(&mut self, now_ns: i64, acks: u64, bytes: u64, smss: u32) {
        let (acks_before, bytes_before) = std::mem::replace(&mut self.counted, (acks, bytes));
        if acks == acks_before {
            return;
        }
        let segments = (bytes - bytes_before).div_ceil(u64::from(smss.max(1)));
        let filling = std::mem::replace(&mut self.filling, Filling::No);
        self.of_one = segments == 1 && filling == Filling::No;
        let by_twos = std::mem::replace(&mut self.by_twos, segments > 1);
        self.waited = by_twos && segments % 2 == 1 && filling == Filling::No;
        let more = segments.saturating_sub(1);
        self.add_together(
            now_ns,
            match filling {
                Filling::No => more,
                Filling::Perhaps => more.min(1),
                Filling::Hole => 0,
            },
        );
    }

    /// The ACK counted last moved the left edge by an odd number of segments, of a receiver that waits for the second one: the last
    /// of them had waited, and a copy that was needless has brought the answer to both, if one is due (RFC 5681, 4.2).
    pub fn take_together(&mut self, now_ns: i64, srtt_s: f64) {
        self.note_alone(now_ns, srtt_s);
        if std::mem::take(&mut self.waited) && self.take_answered(now_ns, srtt_s) {
            self.of_one = false;
            self.add_together(now_ns, 1);
        }
    }

    /// An ACK that moved the left edge may have answered copies too, which came behind a segment that waited: these had been sent
    /// before. What fills a hole below others is acknowledged at once (RFC 5681, 4.2).
    fn note_alone(&mut self, now_ns: i64, srtt_s: f64) {
        let Some(newest_ns) = self.newest_ns.take() else { return };
        self.give_up(now_ns, srtt_s);
        let fills = self.due.iter().any(|due| due.shown_now);
        for due in &mut self.due {
            due.shown_now = false;
            due.alone &= fills || due.time_ns > now_ns || due.sent_ns < newest_ns;
        }
    }

    /// An ACK moves the left edge during the stretch under way: when the newest data that it acknowledges were sent, if all were sent once.
    pub fn on_taken(&mut self, newest_ns: Option<i64>) {
        self.newest_ns = Some(newest_ns.unwrap_or(i64::MIN));
    }

    fn add_together(&mut self, now_ns: i64, count: u64) {
        if self.together == 0 {
            self.together_ns = now_ns;
        }
        self.together += count;
    }

    /// An ACK stands for so many segments at most while nothing is sent again, as far as was seen.
    fn have_acks_of(&self, most: f64, smss: u32) -> bool {
        let (acks, bytes) = self.undisturbed;
        stand_for(acks, bytes, most, smss)
    }

    /// The same of all that the receiver has sent.
    fn sends_acks_of(&self, most: f64, smss: u32) -> bool {
        let (acks, bytes) = self.undisturbed;
        stand_for(acks + self.missing, bytes, most, smss)
    }

    /// How many of the transmissions of the stretch under way, `sent` in all, `answered` did not answer. What comes above a
    /// hole, fills it, or has come before is acknowledged at once (RFC 5681, 4.2), other segments by twos: some ACKs may answer
    /// two.
    fn lost(&self, sent: i64, answered: i64, smss: u32) -> Option<i64> {
        if !self.under_way {
            None
        } else if self.have_acks_of(SEGMENTS_AN_ACK, smss) {
            Some(sent - answered - self.unheard as i64)
        } else if self.all_are_heard() && self.have_acks_of(SEGMENTS_A_DELAYED_ACK, smss) {
            // so may the first ACK from above the hole that the stretch began with
            Some(sent - answered - 1 - self.together as i64)
        } else {
            None
        }
    }

    /// At most how many of the transmissions of the stretch under way had no answer, if some answers were lost.
    fn most_lost(&self, sent: i64, answered: i64) -> Option<i64> {
        let some = self.under_way && self.numbered && self.unheard > 0;
        some.then(|| (sent - answered - self.unheard as i64).max(0))
    }

    /// The stretch under way is over.
    pub fn close(&mut self, now: &Moment) -> Stretch {
        self.give_up(now.time_ns, now.srtt_s);
        let since = std::mem::replace(&mut self.since, *now);
        let made = now.order.saturating_sub(since.order);
        // needless copies at the end of a capture: their answers are still under way
        let copies = self.due.iter().filter(|due| due.order.is_some()).count();
        let sent = i64::from(since.outstanding) + made as i64 - i64::from(now.outstanding) - copies as i64;
        let answered = i64::from(since.held) + (now.acks - since.acks + self.duplicates) as i64;
        let closed = Stretch {
            number: self.stretch,
            surplus: std::mem::take(&mut self.surplus),
            answered: std::mem::take(&mut self.answered),
            unanswered: std::mem::take(&mut self.unanswered),
            unheard_copies: self.unheard_copies(now),
            lost: self.lost(sent, answered, now.smss),
            most_lost: self.most_lost(sent, answered),
            path_copies: self.likely_copies(made),
        };
        self.stretch += 1;
        self.under_way = false;
        closed
    }

    /// The copies of the stretch under way that were lost for certain: what has come before is acknowledged at once (RFC 5681, 4.2),
    /// all of the receiver's packets came, and no queue has kept one for longer than it was waited for.
    fn unheard_copies(&mut self, now: &Moment) -> Vec<u64> {
        let copies = std::mem::take(&mut self.unheard_copies);
        let no_queue = now.srtt_s * 1e9 <= now.least_ns as f64 * NO_QUEUE;
        if self.all_are_heard() && !self.fills_late && no_queue && !self.path_makes_copies() {
            copies
        } else {
            Vec::new()
        }
    }

    /// How many copies the path makes of so many transmissions at most, mostly.
    fn likely_copies(&self, sent: u64) -> i64 {
        if !self.path_makes_copies() {
            return 0;
        }
        let share = COPIES_UNSEEN * f64::from(self.all_path_copies()) / self.calm.max(1) as f64;
        let likely = share.min(1.0) * sent as f64;
        (likely + 2.0 * likely.sqrt()).ceil() as i64
    }
}

/// So many ACKs stand for `most` segments each at most.
fn stand_for(acks: u64, bytes: u64, most: f64, smss: u32) -> bool {
    let segments = bytes / u64::from(smss.max(1));
    segments >= ONE_BY_ONE && segments as f64 <= acks as f64 * most
}

/// Half a round trip.
fn half_ns(srtt_s: f64) -> i64 {
    (srtt_s * 5e8) as i64
}

#[cfg(test)]
mod tests;
