//! Segments -> flows: identity, sequence numbers, scoreboard, vantage.

pub mod ack_delay;
pub mod ack_trail;
pub mod arrivals;
pub mod attempts;
pub mod connection;
pub mod covered;
pub mod direction;
pub mod drift;
pub mod guesses;
mod hosts;
mod index;
pub mod ip_id;
pub mod listing;
mod mirror;
mod packed;
mod past;
mod places;
pub mod rare;
pub mod ring;
pub mod rounds;
pub mod rtt;
pub mod scoreboard;
mod seed;
pub mod sender;
pub mod sequence;
mod spare;
pub mod stamp_clock;
pub mod table;
pub mod vantage;
pub mod window_scale;
pub mod zero_windows;

pub use table::{Settings, Tracker, MAX_FLOWS};
