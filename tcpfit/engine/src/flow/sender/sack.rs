//! What SACK blocks say (RFC 2018): which of the data above the left edge have come.

use super::{Ack, Sender};
use crate::rows::Vantage;

/// SACK blocks, and how many there are.
pub(super) type Blocks = ([(u64, u64); 4], u8);

/// The first block reports a duplicate (RFC 2883, 4): it lies below the ACK, or inside the second block.
#[inline(always)]
pub fn is_dsack(blocks: &[(u64, u64)], ack: u64) -> bool {
    let (left, right) = blocks[0];
    right <= ack || blocks.get(1).is_some_and(|b| b.0 <= left && right <= b.1)
}

impl Sender {
    /// The ACK has the SACK blocks of the one before. A duplicate is reported once (RFC 2883, 4), and with it there may be a
    /// block less.
    #[inline]
    pub(super) fn repeats_sack(&mut self, ack: &Ack) -> bool {
        if ack.sack_len == 0 {
            let last = self.last_sack.take();
            return last.is_none_or(|last| last.1 == 1 && is_dsack(&last.0[..1], ack.ack));
        }
        let (blocks, count) = &mut **self.last_sack.get_or_insert_with(|| Box::new(([(0, 0); 4], 0)));
        // most often the first block differs
        let same = if blocks[0] == ack.sack[0] {
            *count == ack.sack_len && *blocks == ack.sack
        } else {
            let last = &blocks[..usize::from(*count)];
            last.len() > 1 && is_dsack(last, ack.ack) && ack.sack.starts_with(&last[1..])
        };
        (*blocks, *count) = (ack.sack, ack.sack_len);
        same
    }

    /// Gives what came twice of what was sent twice, if it reports that (RFC 2883, 4).
    #[inline]
    pub(super) fn on_sack(&mut self, ack: &Ack) -> Option<(u64, u64)> {
        let blocks = &ack.sack[..ack.sack_len as usize];
        self.sack = true;
        let mut reported = None;
        let mut first_sample: Option<(i64, u32)> = None;
        let (heard, mut covered) = (self.heard, self.covered.take().unwrap_or_default());
        for (i, &(left, right)) in blocks.iter().enumerate() {
            if i == 0 && right == ack.ack && right == left + 1 && self.is_idle(ack.time_ns) {
                continue; // it answers a keep-alive of a byte
            }
            if i == 0 && is_dsack(blocks, ack.ack) {
                let resent = self
                    .fates
                    .on_dsack(left, right, ack, self.order, self.rtt.floor(), &mut self.board);
                reported = (resent && left < right).then_some((left, right));
                continue;
            }
            // a FIN has a number too (RFC 9293, 3.4)
            let right = if right == self.nxt + 1 { self.nxt } else { right };
            if left >= right || left < self.una || right > self.nxt {
                continue;
            }
            if let Some((left, right)) = covered.grow(left, right) {
                if left < right {
                    self.on_first_covered(left, right, ack, heard, &mut first_sample);
                }
                continue;
            }
            for &(left, right) in covered.add(left, right) {
                self.on_first_covered(left, right, ack, heard, &mut first_sample);
            }
        }
        self.covered = Some(covered);
        if let Some((sent_ns, tsval)) = first_sample.filter(|_| ack.ack <= self.una) {
            let rtt_s = ack.round_trip_s(sent_ns, tsval);
            if self.vantage == Vantage::Sender {
                self.rtt.least(rtt_s);
            }
            self.rtt.smooth(rtt_s, self.una, self.nxt);
        }
        reported
    }

    /// SACK blocks cover [left, right), of which nothing was covered. They are held against `heard`; `first_sample` is when
    /// the first of the units was sent that was sent once, and its timestamp.
    #[inline(never)]
    fn on_first_covered(
        &mut self,
        left: u64,
        right: u64,
        ack: &Ack,
        heard: u64,
        first_sample: &mut Option<(i64, u32)>,
    ) {
        let covered = self.board.cut(left, right);
        self.outstanding += self.board.take_more();
        for n in covered {
            let unit = &mut self.board.units[n];
            unit.sacked_ns = ack.time_ns;
            self.sacked += unit.segments(self.smss);
            if unit.is_resent() {
                self.on_resent_covered(n, ack.time_ns);
            } else {
                self.heard = self.heard.max(unit.right());
                self.delivered_order = self.delivered_order.max(unit.order);
                if unit.first_seen() && first_sample.is_none() {
                    *first_sample = Some((unit.time_ns, unit.tsval));
                }
            }
            if self.board.units[n].left < heard {
                let unit = self.board.units[n];
                self.on_overtaken(&unit, ack, heard);
            }
        }
    }

    /// The n-th unit, which was sent again, is covered: if time allows, by the last of its copies.
    #[inline(never)]
    fn on_resent_covered(&mut self, n: usize, now_ns: i64) {
        let last = self.board.last(&self.board.units[n]);
        if now_ns - last.time_ns >= (self.rtt.min_s * 1e9) as i64 {
            self.delivered_order = self.delivered_order.max(last.order);
        }
    }
}
