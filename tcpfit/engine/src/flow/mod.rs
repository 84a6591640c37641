//! Segments -> flows: identity, sequence numbers, scoreboard, vantage.

use crate::rows::{Sink, Vantage};
use crate::segment::Segment;

/// What the user can override.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Where the capture was taken; `None` infers it.
    pub vantage: Option<Vantage>,
}

/// Follows every connection of a capture. The same tracker serves every reader.
#[derive(Default)]
pub struct Tracker {
    settings: Settings,
}

impl Tracker {
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// Takes the next segment of the capture.
    pub fn push(&mut self, _segment: &Segment, _sink: &mut impl Sink) {
        let _ = self.settings.vantage;
    }

    /// Settles and gives out everything that is still open; the tracker is empty after it.
    pub fn finish(&mut self, _sink: &mut impl Sink) {}
}
