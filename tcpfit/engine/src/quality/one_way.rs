//! Flows of which the capture has one direction only: asymmetric routes, a filter, a tap on one fibre.

use crate::rows::FlowRow;

/// A sentence on data without ACKs, and one on ACKs without data.
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
    let without_acks = count(&|row| row.data_segments > 0);
    if without_acks > 0 {
        sentences.push(format!(
            "the capture has the data but not the ACKs of {}: round trips, windows and most causes are not known there",
            named(without_acks)
        ));
    }
    let without_data = count(&|row| row.acks_seen);
    if without_data > 0 {
        sentences.push(format!(
            "the capture has the ACKs but not the data of {}: there only what the receiver showed is known",
            named(without_data)
        ));
    }
    sentences
}
