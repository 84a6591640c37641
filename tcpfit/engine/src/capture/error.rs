//! Why a capture cannot be read at all. Damage further in is a warning (`warnings.rs`), never an error.

use std::fmt;

#[derive(Debug)]
pub enum CaptureError {
    /// One sentence: place, rule, next step.
    Rejected(String),
    /// The caller's interrupt hook asked to stop.
    Stopped,
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(sentence) => f.write_str(sentence),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for CaptureError {}
