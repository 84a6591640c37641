//! The two directions of the flows: one is missing (asymmetric routes, a filter, a tap on one fibre), they do not fit
//! together (files of two capture points put into one), or their options are cut off (a snapshot length of 54).

use crate::rows::FlowRow;

/// Segments that a sender may send before the first ACK comes (RFC 6928): a capture may end there.
const INITIAL_WINDOW: u64 = 10;
/// Data after their ACK in a flow that are no chance: a segment the capture missed may be sent again for nothing.
const EARLY: u64 = 3;
/// By how much ACKs come early is told from so much on: less is as much as the stamps show, or packets out of order have
/// one time.
const TOLD_NS: i64 = 1000;

/// What the flows so far have shown.
#[derive(Debug, Default)]
pub struct Directions {
    without_acks: usize,
    without_data: usize,
    early: usize,
    longest_ns: i64,
    options_cut: usize,
}

impl Directions {
    pub fn add(&mut self, row: &FlowRow) {
        if row.one_way {
            let acked = row.acks_seen && row.acked_bytes > INITIAL_WINDOW * u64::from(row.smss_bytes);
            self.without_acks += usize::from(row.data_segments > INITIAL_WINDOW);
            self.without_data += usize::from(acked);
        }
        self.options_cut += usize::from(row.options_cut);
        if row.early_acks.0 >= EARLY {
            self.early += 1;
            self.longest_ns = self.longest_ns.max(row.early_acks.1);
        }
    }

    /// A sentence on data without ACKs, one on ACKs without data, and one on ACKs before data, and one on options.
    pub fn sentences(&self) -> Vec<String> {
        let named = |n: usize| {
            if n == 1 {
                "1 flow".to_string()
            } else {
                format!("{n} flows")
            }
        };
        let mut sentences = Vec::new();
        if self.without_acks > 0 {
            sentences.push(format!(
                "the capture has the data but not the ACKs of {}: round trips, windows and most causes are not known \
                 there",
                named(self.without_acks)
            ));
        }
        if self.without_data > 0 {
            sentences.push(format!(
                "the capture has the ACKs but not the data of {}: there only what the receiver showed is known",
                named(self.without_data)
            ));
        }
        if self.early > 0 {
            let told = self.longest_ns >= TOLD_NS;
            let by = if told {
                format!("up to {:.6} s ", self.longest_ns as f64 / 1e9)
            } else {
                String::new()
            };
            sentences.push(format!(
                "the ACKs of {} come {by}before the data they acknowledge: the directions were captured by different \
                 clocks, or are out of order (reordercap puts them in order); round trips and places are not to be \
                 trusted there",
                named(self.early),
            ));
        }
        if self.options_cut > 0 {
            sentences.push(format!(
                "the capture cuts off the TCP options of {}: SACK and time stamps are not seen there, and causes are less \
                 certain",
                named(self.options_cut)
            ));
        }
        sentences
    }
}
