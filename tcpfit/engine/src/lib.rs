//! The native engine of tcpfit: capture -> packets -> segments -> flows -> events.
//!
//! One pass over a capture in blocks; every stage hands a borrowed value to the next and keeps nothing
//! that it does not need later, so memory is bounded by the live flows and their outstanding data.

// denied everywhere but in `python`, `prefetch` and `capture::frames`, which say why at each block
#![deny(unsafe_code)]

pub mod analysis;
pub mod capture;
pub mod decode;
pub mod events;
pub mod filter;
pub mod flow;
pub mod memory;
pub mod nullable;
mod prefetch;
#[cfg(feature = "python")]
mod python;
pub mod quality;
pub mod rows;
pub mod segment;
pub mod tables;

/// A connection is some dozen blocks of one to a few KiB, taken and given back once in thirty packets.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
