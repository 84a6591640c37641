//! Duplicate ACKs without SACK as Linux counts them: as segments that have been received above the left edge.

use super::{Duplicates, Sender};
use crate::flow::scoreboard::segments;
use crate::rows::Phase;

impl Sender {
    /// Without SACK a duplicate ACK is for Linux a segment that was received above the left edge. In the phases open and loss
    /// the count begins anew when the edge moves.
    pub fn count_reno(&mut self) {
        let (una, phase) = (self.una, self.phase);
        let duplicates = &mut *self.duplicates;
        if duplicates.reno_una != una && phase != Phase::Recovery {
            duplicates.reno = 0;
        }
        duplicates.reno_una = una;
        duplicates.reno += 1;
        // more than can have been received with a hole: segments have overtaken others, and it waits for more from now on
        self.duplicates.beyond |= self.duplicates.reno >= self.outstanding;
    }

    /// The left edge moves to `to`: one segment filled the hole, the others are taken off the count, which only a recovery
    /// that goes on, or is taken back, keeps.
    pub fn keep_reno(&mut self, to: u64) {
        if let Some(duplicates) = self.duplicates.changed() {
            let released = segments(to.saturating_sub(duplicates.reno_una), self.smss).saturating_sub(1);
            let partial = self.phase == Phase::Recovery && to < self.episodes.recover;
            duplicates.reno = if partial {
                duplicates.reno.saturating_sub(released)
            } else {
                0
            };
            duplicates.reno_una = to;
        }
    }

    pub fn reno_received(&self) -> u32 {
        let here = |duplicates: &&Duplicates| !self.sack && duplicates.reno_una == self.una;
        self.duplicates
            .get()
            .filter(here)
            .map_or(0, |duplicates| duplicates.reno)
    }
}
