//! Flows -> events: one detector a file. Each emission carries its reason and the frames that prove it.

pub(crate) mod answers;
pub mod cause;
pub mod fate;
mod ledger;
pub(crate) mod lone_answers;
pub mod loss_event;
pub mod marks;
pub mod reordering;
