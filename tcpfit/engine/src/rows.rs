//! What the tracker gives out: one struct a table row, in the order of `tcpfit/schema.py`, where each column's unit and
//! meaning stand. Vocabularies are enums whose discriminant is the position in the schema's vocabulary.

use crate::nullable::Nullable;
use crate::segment::Address;

macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($variant),+ }

        impl $name {
            /// The words of the schema, in its order.
            pub const WORDS: &'static [&'static str] = &[$($text),+];
            /// What the words stand for, by their positions.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub fn word(self) -> &'static str {
                Self::WORDS[self as usize]
            }
        }
    };
}

vocabulary! {
    /// Where the capture was taken, seen from the data sender's flow.
    Vantage { Sender = "sender", Receiver = "receiver", Middle = "middle", Unknown = "unknown" }
}

#[allow(clippy::derivable_impls)] // the macro takes no attributes
impl Default for Vantage {
    fn default() -> Self {
        Self::Unknown
    }
}

vocabulary! {
    /// How the receiver says that segments came marked, by the flags of SYN and SYN-ACK.
    Feedback { None = "none", Classic = "classic", Accurate = "accurate" }
}

vocabulary! {
    /// How a connection ended, seen from the data sender's flow.
    Ending {
        Open = "open",
        HalfClosed = "half-closed",
        Closed = "closed",
        ResetBySender = "reset-by-sender",
        ResetByReceiver = "reset-by-receiver",
    }
}

#[allow(clippy::derivable_impls)] // the macro takes no attributes
impl Default for Ending {
    fn default() -> Self {
        Self::Open
    }
}

vocabulary! {
    Kind {
        Retransmission = "retransmission",
        Loss = "loss",
        LossEvent = "loss_event",
        Recovery = "recovery",
        Timeout = "timeout",
        TailLossProbe = "tail_loss_probe",
        Spurious = "spurious",
        Reordering = "reordering",
        ReorderEvent = "reorder_event",
        Duplicate = "duplicate",
        ZeroWindow = "zero_window",
        Probe = "probe",
        EcnMark = "ecn_mark",
        EcnResponse = "ecn_response",
    }
}

vocabulary! {
    /// Why a label was given; the sources stand in the schema.
    Reason {
        FastDupthresh = "fast-dupthresh",
        FastRack = "fast-rack",
        EarlyRetransmit = "early-retransmit",
        PartialAck = "partial-ack",
        Recovery = "recovery",
        Rto = "rto",
        RtoRecovery = "rto-recovery",
        Tlp = "tlp",
        LostRetransmission = "lost-retransmission",
        Unneeded = "unneeded",
        Syn = "syn",
        Fin = "fin",
        Resent = "resent",
        Hole = "hole",
        IpIdGap = "ip-id-gap",
        NeverArrived = "never-arrived",
        Unanswered = "unanswered",
        NotResent = "not-resent",
        NotHeld = "not-held",
        Dsack = "dsack",
        Discarded = "discarded",
        Eifel = "eifel",
        TooEarly = "too-early",
        SeenTwice = "seen-twice",
        AckJump = "ack-jump",
        AcksLost = "acks-lost",
        Answered = "answered",
        IpId = "ip-id",
        Tsval = "tsval",
        Timing = "timing",
        Unasked = "unasked",
        SackOrder = "sack-order",
        DupAcks = "dup-acks",
        Copy = "copy",
        OneRtt = "one-rtt",
        KeepAlive = "keep-alive",
        WindowProbe = "window-probe",
        Advertised = "advertised",
        Ce = "ce",
        Ece = "ece",
        Ace = "ace",
        Cwr = "cwr",
        Unknown = "unknown",
    }
}

vocabulary! {
    /// State of the sender, inferred (RFC 5681, 3).
    Phase { Open = "open", Recovery = "recovery", Loss = "loss" }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventRow {
    pub flow: u32,
    pub time_ns: i64,
    pub kind: Kind,
    pub reason: Reason,
    pub left: u64,
    pub right: u64,
    pub frame: Nullable<u64>,
    pub cause_frame: Nullable<u64>,
    pub segments: u32,
    pub doublings: Nullable<u32>,
    pub flight: f64,
    pub phase: Phase,
    pub confidence: f64,
    pub value: Nullable<f64>,
    pub timeout_follows: Option<bool>,
    pub replayed_s: Nullable<f64>,
    pub replayed_rfc_s: Nullable<f64>,
    pub order: Nullable<u64>,
    pub arrival: Nullable<u64>,
    pub end_ns: Nullable<i64>,
    pub flight_after: Nullable<f64>,
}

impl EventRow {
    /// What an event has of the columns that are not its own: `EventRow { flow, time_ns, ..EventRow::NONE }`.
    pub const NONE: Self = Self {
        flow: 0,
        time_ns: 0,
        kind: Kind::Retransmission,
        reason: Reason::Unknown,
        left: 0,
        right: 0,
        frame: Nullable::NONE,
        cause_frame: Nullable::NONE,
        segments: 0,
        doublings: Nullable::NONE,
        flight: 0.0,
        phase: Phase::Open,
        confidence: 0.0,
        value: Nullable::NONE,
        timeout_follows: None,
        replayed_s: Nullable::NONE,
        replayed_rfc_s: Nullable::NONE,
        order: Nullable::NONE,
        arrival: Nullable::NONE,
        end_ns: Nullable::NONE,
        flight_after: Nullable::NONE,
    };
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundRow {
    pub flow: u32,
    pub round: u32,
    pub start_ns: i64,
    pub end_ns: i64,
    pub sent_segments: u32,
    pub resent_segments: u32,
    pub lost_segments: u32,
    pub acked_bytes: u64,
    pub acks: u32,
    pub rtt_s: Nullable<f64>,
    pub flight: f64,
    pub rwnd: Nullable<f64>,
    pub phase: Phase,
    pub limited: bool,
    pub idle_s: f64,
    pub window_full_s: f64,
    /// Nothing tells the round trip, nor the flight.
    pub estimated: bool,
    pub cwnd_low: Nullable<f64>,
    pub cwnd_high: Nullable<f64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRow {
    pub flow: u32,
    pub connection: u32,
    pub src: Address,
    pub src_port: u16,
    pub dst: Address,
    pub dst_port: u16,
    pub first_ns: i64,
    pub last_ns: i64,
    pub vantage: Vantage,
    pub vantage_confidence: f64,
    pub vantage_fraction: Nullable<f64>,
    pub handshake_rtt_s: Nullable<f64>,
    pub mss_bytes: Nullable<u32>,
    pub smss_bytes: u32,
    pub window_scale: Option<u8>,
    pub window_scale_low: u8,
    pub window_scale_high: u8,
    pub sack_permitted: Option<bool>,
    pub mptcp: Option<bool>,
    pub timestamps: bool,
    pub ecn: Option<bool>,
    pub ecn_feedback: Option<Feedback>,
    pub offload: bool,
    pub stamp_tick_s: Nullable<f64>,
    pub acks_seen: bool,
    /// Nothing of one end is in the capture; no column.
    pub one_way: bool,
    /// The capture cuts off the options of its SYNs; no column.
    pub options_cut: bool,
    /// Data that passed after their ACK, and by how many nanoseconds at most; no column.
    pub early_acks: (u64, i64),
    pub closed: bool,
    pub ending: Ending,
    pub reset_frame: Nullable<u64>,
    pub completeness: u8,
    pub data_segments: u64,
    pub sent_segments: u64,
    pub data_bytes: u64,
    pub unique_bytes: u64,
    pub acked_bytes: u64,
    pub retransmitted_segments: u64,
    pub retransmitted_bytes: u64,
    pub lost_segments: u64,
    pub lost_low: u64,
    pub lost_high: u64,
    pub lost_upstream: u64,
    pub spurious_retransmissions: u64,
    pub loss_events: u64,
    pub fast_recoveries: u64,
    pub timeouts: u64,
    pub tail_loss_probes: u64,
    pub reorder_events: u64,
    pub reordered_segments: u64,
    pub reordered_low: u64,
    pub reordered_high: u64,
    pub duplicated_segments: u64,
    pub zero_window_episodes: u64,
    pub ce_segments: u64,
    pub ece_acks: Nullable<u64>,
    pub ace_marks: Nullable<u64>,
    pub mark_events: Nullable<u64>,
    pub cwr_segments: Nullable<u64>,
    pub missing_segments: u64,
    pub acks: u64,
    pub duplicate_acks: u64,
    pub rtt_samples: u64,
    pub rtt_mean_s: Nullable<f64>,
    pub rtt_sd_s: Nullable<f64>,
    pub rtt_min_s: Nullable<f64>,
    pub rtt_p95_s: Nullable<f64>,
    pub rto_s: Nullable<f64>,
    pub flight_max: f64,
    pub rwnd_max: Nullable<f64>,
    pub rwnd_min: Nullable<f64>,
    pub limited_share: f64,
    pub busy_s: f64,
}

/// Where rows go. The tracker settles rows with hindsight, so they come in no particular order; tables sort them.
pub trait Sink {
    fn flow(&mut self, row: FlowRow);
    fn event(&mut self, row: EventRow);
    fn round(&mut self, row: RoundRow);
}
