//! What is odd about the packets of a capture as a whole: directions that are missing, clocks that jump.

pub mod clock;
pub mod directions;
