//! The two directions of the flows: one is missing (asymmetric routes, a filter, a tap on one fibre), or they do not fit
//! together (files of two capture points put into one).

use crate::rows::FlowRow;

/// Segments that a sender may send before the first ACK comes (RFC 6928): a capture may end there.
const INITIAL_WINDOW: u64 = 10;
/// Data after their ACK in a flow that are no chance: a segment the capture missed may be sent again for nothing.
const EARLY: u64 = 3;

/// A sentence on data without ACKs, one on ACKs without data, and one on ACKs before data.
pub fn sentences(flows: &[FlowRow]) -> Vec<String> {
    let count = |wanted: &dyn Fn(&&FlowRow) -> bool| flows.iter().filter(|row| row.one_way).filter(wanted).count();
    let named = |n: usize| {
        if n == 1 {
            "1 flow".to_string()
        } else {
            format!("{n} flows")
        }
    };
    let mut sentences = Vec::new();
    let without_acks = count(&|row| row.data_segments > INITIAL_WINDOW);
    if without_acks > 0 {
        sentences.push(format!(
            "the capture has the data but not the ACKs of {}: round trips, windows and most causes are not known there",
            named(without_acks)
        ));
    }
    let without_data = count(&|row| row.acks_seen && row.acked_bytes > INITIAL_WINDOW * u64::from(row.smss_bytes));
    if without_data > 0 {
        sentences.push(format!(
            "the capture has the ACKs but not the data of {}: there only what the receiver showed is known",
            named(without_data)
        ));
    }
    let early = flows.iter().filter(|row| row.early_acks.0 >= EARLY);
    let longest_ns = early.clone().map(|row| row.early_acks.1).max().unwrap_or(0);
    let n = early.count();
    if n > 0 {
        sentences.push(format!(
            "the ACKs of {} come up to {:.6} s before the data they acknowledge: the directions were captured by \
             different clocks, or are out of order; round trips and places are not to be trusted there",
            named(n),
            longest_ns as f64 / 1e9
        ));
    }
    sentences
}
