//! Connections that carried no data, which no flow speaks of: attempts that failed, and what was opened for nothing.

/// How many there were, of those whose SYN is in the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    /// A RST answered the SYN.
    pub refused: u64,
    /// Nothing did.
    pub unanswered: u64,
    /// The handshake was answered, and neither end sent data.
    pub opened: u64,
}
