"""Every table of tcpfit: its columns, their dtypes, units and meanings, and the closed vocabularies.

The engine builds its Arrow batches in this order with these types, the readers and the parameters use these names, and
``docs/tables.md`` is generated from this file. A column that is not declared here does not exist.

Times are integer nanoseconds since the epoch where the name ends in ``_ns`` and float seconds where it ends in ``_s``.
Windows and counts are in segments of one SMSS: a super-segment of k SMSS counts k.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import polars as pl

from tcpfit.arguments import shown
from tcpfit.exceptions import InvalidParameter

SCHEMA_VERSION = 1
"""Version of the tables and of the JSON; it is raised when a column changes its meaning."""

RUN = "tcpfit_run"
"""What the metadata of a saved table calls the run that saved it; tables of one folder have the same."""

ENDS = ("src", "src_port", "dst", "dst_port")
"""Columns of flows and segments that say between which ends, and which way."""

VANTAGE = {
    "sender": "the capture was taken at, or next to, the data sender",
    "receiver": "the capture was taken at, or next to, the data receiver",
    "middle": "the capture was taken on the path; `vantage_fraction` says where",
    "unknown": "the capture does not show where it was taken",
}

KINDS = {
    "retransmission": "data sent again, as seen at the vantage point (RFC 9293, 3.8.1)",
    "loss": "a transmission inferred lost; a lost retransmission is a loss of its own",
    "loss_event": "the losses within one round trip of the first (RFC 5348, 5.2; Parvez et al., window of W)",
    "recovery": "a fast-recovery episode (RFC 5681, 3.2; RFC 6582; RFC 6675)",
    "timeout": "an expiry of the retransmission timer (RFC 6298, 5)",
    "tail_loss_probe": "a tail loss probe (RFC 8985, 7)",
    "spurious": "a retransmission whose original was not lost (RFC 3522; RFC 3708; RFC 5682)",
    "reordering": "a segment that arrived after a later-sent one (RFC 4737, 3)",
    "reorder_event": "late segments that one cause on the path delayed together",
    "duplicate": "a copy made by the network or by the capture",
    "zero_window": "a period in which the receiver advertised no window (RFC 9293, 3.8.6.1)",
    "probe": "a keep-alive or zero-window probe, kept out of loss and RTT (RFC 9293, 3.8.4 and 3.8.6.1)",
    "ecn_mark": "the congestion marks of one window; they are no losses (RFC 3168, 6.1.2; RFC 9768)",
    "ecn_response": "the sender says that it has reduced its window (RFC 3168, 6.1.2)",
}

REASONS = {
    "fast-dupthresh": "third duplicate ACK, or more than two SMSS SACKed above (RFC 5681, 3.2; RFC 6675, IsLost)",
    "fast-rack": "a segment sent later was SACKed a reordering window earlier (RFC 8985, 6.2)",
    "early-retransmit": "fewer than three duplicate ACKs were possible (RFC 5827)",
    "partial-ack": "a partial ACK in fast recovery (RFC 6582, 3.2 step 3)",
    "recovery": "a further hole of a recovery episode (RFC 6675, 5)",
    "rto": "retransmission timer expired (RFC 6298, 5.4)",
    "rto-recovery": "go-back resend after a timeout (RFC 5681, 3.1)",
    "tlp": "probe timer expired with the tail outstanding (RFC 8985, 7.3)",
    "lost-retransmission": "an earlier retransmission of the same data was lost",
    "unneeded": "the data had been acknowledged or SACKed before it was sent again",
    "syn": "SYN or SYN-ACK sent again (RFC 9293, 3.8.1)",
    "fin": "FIN sent again",
    "resent": "the data was sent again and nothing shows that the earlier copy arrived",
    "hole": "a hole at the vantage point that a later transmission filled",
    "ip-id-gap": "the sender's IP identification skips a number that never arrived",
    "never-arrived": "a hole at the vantage point that was never filled",
    "unanswered": "a needless copy that no ACK answered, where the receiver answers each such copy (RFC 5681, 4.2) and its ACKs were seen to come",
    "not-resent": "outstanding at the end of the capture, and not among what the receiver had of the data sent after it (RFC 6675, 4: IsLost), or not answered for as long as the timer runs",
    "not-held": "one of the segments outstanding at the end of the capture for which no duplicate ACK came (RFC 5681, 4.2): which of them, they do not say, and the lowest are named",
    "dsack": "the receiver reported the duplicate (RFC 2883)",
    "discarded": "the receiver answered the late original, which its older timestamp made it drop (RFC 7323, 5.3), or did not take what came with the SYN (RFC 7413, 4.2.2)",
    "eifel": "the covering ACK echoes the original's timestamp (RFC 3522)",
    "too-early": "the covering ACK came sooner than any round trip",
    "seen-twice": "both copies arrived at the vantage point",
    "ack-jump": "the covering ACK shows that later data had arrived before",
    "acks-lost": "the receiver's IP identification skips an ACK for each earlier copy (RFC 5681, 4.2)",
    "answered": "after the resend's ACK another one answered a copy (RFC 5681, 4.2)",
    "ip-id": "the IP identification shows the sending order (usable sequence)",
    "tsval": "the TCP timestamp shows the sending order (RFC 7323)",
    "timing": "it came too early to be an answer to a duplicate ACK, or right before others of its hole, as no timer sends it",
    "unasked": "nothing had asked for it again, and no timer had run out (RFC 5681, 3.2; RFC 6298, 5)",
    "sack-order": "an earlier ACK had SACKed data sent later, and it was sent once (RFC 2018, 3)",
    "dup-acks": "duplicate ACKs ended and nothing had been sent again (RFC 5681, 2)",
    "copy": "same range, same IP identification and same timestamp",
    "one-rtt": "losses within one round trip of the first",
    "keep-alive": "a keep-alive (RFC 9293, 3.8.4)",
    "window-probe": "a zero-window probe (RFC 9293, 3.8.6.1)",
    "advertised": "the receiver advertised it",
    "ce": "data passed marked CE; marks within one round trip of the first (RFC 3168, 5; RFC 5348, 5.2)",
    "ece": "ACKs with ECE, up to the data outstanding at the first of them (RFC 3168, 6.1.2 and 6.1.3)",
    "ace": "the counter in the ACKs moved, up to the data outstanding at the first of them (RFC 9768, 3.2.2)",
    "cwr": "data with the CWR flag (RFC 3168, 6.1.2)",
    "unknown": "nothing in the capture shows the cause",
}

FEEDBACK = {
    "none": "ECN was not negotiated",
    "classic": "ECE until CWR comes (RFC 3168, 6.1)",
    "accurate": "a counter of marked packets in AE, CWR and ECE (RFC 9768, 3.2.2)",
}

ENDING = {
    "open": "neither end was seen to send a FIN or a RST",
    "half-closed": "one end sent a FIN",
    "closed": "both ends sent a FIN",
    "reset-by-sender": "the data sender's RST came first, or a RST with its address, and not both ends had sent a FIN",
    "reset-by-receiver": "the same of the receiver",
}

WITHOUT_DATA = {
    "refused": "a RST answered the SYN",
    "unanswered": "nothing answered the SYN",
    "opened": "the handshake was answered, and neither end sent data",
}
"""What became of connections that no flow speaks of, since they carried no data; of those whose SYN was seen."""

PHASES = {
    "open": "no loss recovery under way",
    "recovery": "fast recovery",
    "loss": "after a timeout, until the data outstanding then is acknowledged",
}


@dataclass(frozen=True)
class Column:
    """One column: name, polars dtype, unit ('' for none) and meaning."""

    name: str
    dtype: pl.DataType
    unit: str
    meaning: str


def _vocabulary(values: dict[str, str]) -> pl.Enum:
    return pl.Enum(list(values))


U16, U32, U64, I64, F64, BOOL, STR = (
    pl.UInt16(),
    pl.UInt32(),
    pl.UInt64(),
    pl.Int64(),
    pl.Float64(),
    pl.Boolean(),
    pl.String(),
)

FLOWS = (
    Column(
        "flow", U32, "", "number of the flow: one direction of a connection that carried data or was acknowledged, in order of first packet"
    ),
    Column("connection", U32, "", "number of the connection; both directions share it"),
    Column("src", STR, "", "address of the data sender"),
    Column("src_port", U16, "", "port of the data sender"),
    Column("dst", STR, "", "address of the data receiver"),
    Column("dst_port", U16, "", "port of the data receiver"),
    Column("first_ns", I64, "ns", "time of the first data segment"),
    Column("last_ns", I64, "ns", "time of the last data segment or of the ACK that covers it, whichever is later"),
    Column("vantage", _vocabulary(VANTAGE), "", "where the capture was taken, seen from this flow"),
    Column("vantage_confidence", F64, "", "0 to 1"),
    Column(
        "vantage_fraction", F64, "", "share of the round trip between the capture point and the sender; null if unknown"
    ),
    Column("handshake_rtt_s", F64, "s", "SYN to SYN-ACK to ACK, both halves; null if not seen whole, or if nothing says which of two was answered"),
    Column(
        "mss_bytes", U32, "bytes", "SMSS from the MSS options less the timestamp option; null if no handshake was seen"
    ),
    Column(
        "smss_bytes", U32, "bytes", "SMSS used to count segments: from the options or inferred from segment lengths"
    ),
    Column("window_scale", pl.UInt8(), "bits", "shift of the receiver's window field; null if the SYNs do not say it"),
    Column(
        "window_scale_low", pl.UInt8(), "bits", "smallest shift that the SYNs and the windows allow (RFC 7323, 2.3: 0 to 14)"
    ),
    Column("window_scale_high", pl.UInt8(), "bits", "largest shift that they allow; where both are equal it is used"),
    Column("sack_permitted", BOOL, "", "both ends permitted SACK, or SACK blocks were seen; null if not known"),
    Column("mptcp", BOOL, "", "a subflow of Multipath TCP (RFC 8684): both SYNs have its option; null if not both were seen"),
    Column("timestamps", BOOL, "", "TCP timestamps in use"),
    Column("stamp_tick_s", F64, "s", "tick of the data sender's timestamp clock (RFC 7323, 5.4); null if not known"),
    Column("ecn", BOOL, "", "ECN negotiated; null if the SYNs were not seen"),
    Column(
        "ecn_feedback",
        _vocabulary(FEEDBACK),
        "",
        "how the receiver echoes marks, by the flags of SYN and SYN-ACK; null if they were not seen",
    ),
    Column("offload", BOOL, "", "super-segments longer than the SMSS were seen"),
    Column("acks_seen", BOOL, "", "ACKs of the data are in the capture"),
    Column("closed", BOOL, "", "both ends sent a FIN, or one a RST"),
    Column("ending", _vocabulary(ENDING), "", "how the connection ended"),
    Column("reset_frame", U64, "", "frame of the connection's first RST; null if there is none"),
    Column(
        "completeness",
        pl.UInt8(),
        "",
        "what of the connection is in the capture, a sum of bits as Wireshark's tcp.completeness: SYN 1, SYN-ACK 2, ACK 4, data 8, FIN 16, RST 32",
    ),
    Column(
        "data_segments",
        U64,
        "segments",
        "segments with payload that passed; copies made by the network count, by the capture not: away from the sender those within 10 us, where no more come later",
    ),
    Column(
        "sent_segments",
        U64,
        "segments",
        "data segments the sender sent: those seen plus those lost before the capture point; without the data, those acknowledged plus those lost",
    ),
    Column("data_bytes", U64, "bytes", "payload bytes that passed the capture point, in these segments"),
    Column("unique_bytes", U64, "bytes", "payload bytes of distinct sequence numbers"),
    Column("acked_bytes", U64, "bytes", "payload bytes cumulatively acknowledged"),
    Column("retransmitted_segments", U64, "segments", "data sent again, as seen at this vantage"),
    Column("retransmitted_bytes", U64, "bytes", "payload bytes sent again, as seen at this vantage"),
    Column("lost_segments", U64, "segments", "transmissions inferred lost"),
    Column("lost_low", U64, "segments", "fewest losses that the evidence allows"),
    Column("lost_high", U64, "segments", "most losses that the evidence allows"),
    Column("lost_upstream", U64, "segments", "of the lost, those lost between the sender and the capture point"),
    Column("spurious_retransmissions", U64, "segments", "sent again although the original was not lost"),
    Column("loss_events", U64, "", "loss events, one-round-trip rule"),
    Column("fast_recoveries", U64, "", "fast-recovery episodes"),
    Column("timeouts", U64, "", "expiries of the retransmission timer, each back-off counted"),
    Column("tail_loss_probes", U64, "", "tail loss probes"),
    Column("reorder_events", U64, "", "reordering events"),
    Column("reordered_segments", U64, "segments", "segments that arrived after a later-sent one"),
    Column("reordered_low", U64, "segments", "fewest late segments that the evidence allows"),
    Column("reordered_high", U64, "segments", "most late segments that the evidence allows"),
    Column("duplicated_segments", U64, "segments", "copies made by the network or the capture"),
    Column("zero_window_episodes", U64, "", "periods with no window advertised"),
    Column("ce_segments", U64, "segments", "data segments that passed marked CE; marks behind the capture do not show"),
    Column("ece_acks", U64, "", "ACKs with ECE where feedback is classic; null if the SYNs were not seen"),
    Column(
        "ace_marks", U64, "", "marked packets by the ACKs' counter where feedback is accurate; null if not known"
    ),
    Column(
        "mark_events",
        U64,
        "",
        "windows with marks, as the sender was told; without ACKs or SYNs as they passed; null if neither shows",
    ),
    Column("cwr_segments", U64, "segments", "data with CWR where feedback is classic; null if not known"),
    Column("missing_segments", U64, "segments", "acknowledged but never seen: lost by the capture, not by the network"),
    Column("acks", U64, "", "ACKs that advanced the left edge"),
    Column("duplicate_acks", U64, "", "duplicate ACKs (RFC 5681, 2)"),
    Column("rtt_samples", U64, "", "round-trip samples, one an ACK: from the oldest segment it covers, delayed ACKs and all (Karn's rule applied)"),
    Column(
        "rtt_mean_s",
        F64,
        "s",
        "mean round-trip time as the sender's estimator sees it, averaged over the time data was outstanding",
    ),
    Column("rtt_sd_s", F64, "s", "standard deviation of the samples"),
    Column("rtt_min_s", F64, "s", "least round trip that was seen: of the samples, of a SYN and its answer"),
    Column("rtt_p95_s", F64, "s", "95th percentile of the samples: the upper edge of its bin, 3 % wide"),
    Column("rto_s", F64, "s", "mean replayed retransmission timeout (RFC 6298, Linux floor where the host shows it)"),
    Column("flight_max", F64, "segments", "largest amount of data outstanding; null if one direction is missing"),
    Column("rwnd_max", F64, "segments", "largest window advertised, scaled; null if the scale is unknown"),
    Column(
        "rwnd_min",
        F64,
        "segments",
        "smallest window advertised after the handshake, scaled; null if the scale is unknown",
    ),
    Column(
        "limited_share", F64, "", "share of rounds in which the flight came within 3 segments of the advertised window; null if one direction is missing"
    ),
    Column("busy_s", F64, "s", "time with data outstanding; null if one direction is missing"),
)

EVENTS = (
    Column("flow", U32, "", "flow the event belongs to"),
    Column("time_ns", I64, "ns", "when it happened at the capture point; for a loss the (inferred) time of sending"),
    Column("kind", _vocabulary(KINDS), "", "what happened"),
    Column("reason", _vocabulary(REASONS), "", "the rule that says so"),
    Column("left", U64, "bytes", "first byte, as an offset from the initial sequence number"),
    Column("right", U64, "bytes", "byte after the last"),
    Column("frame", U64, "", "frame of the event (Wireshark's number); null if the packet is not in the capture"),
    Column(
        "cause_frame", U64, "", "frame that proves it: an earlier transmission, the ACK, the later copy; null if none"
    ),
    Column(
        "segments",
        U32,
        "segments",
        "segments concerned: of a loss_event its losses, of a recovery its resends, of a timeout the back-off (0 first), of a reordering its extent, of a reorder_event its depth d, of an ecn_mark its marks (ece: at least one)",
    ),
    Column(
        "doublings",
        U32,
        "",
        "of a timeout: how often its timer had been doubled (RFC 6298, 5.5), by expiries since the last sample of the round trip, of this series or of one before; null otherwise",
    ),
    Column(
        "flight",
        F64,
        "segments",
        "data outstanding at the sender (RFC 6675's pipe) when it happened; 0 for spurious and reorder_event; null if one direction is missing",
    ),
    Column(
        "phase",
        _vocabulary(PHASES),
        "",
        "state of the sender, inferred; of losses, spurious and reordering always open",
    ),
    Column("confidence", F64, "", "0 to 1"),
    Column(
        "value",
        F64,
        "s",
        "retransmission: since the previous transmission; loss: the RTT then; loss_event, recovery, zero_window: length; timeout, tail_loss_probe: the timer; reordering: late time; reorder_event: late time of its last segment; ecn_mark: length",
    ),
    Column(
        "timeout_follows",
        BOOL,
        "",
        "of a loss_event: it ended in a timeout (null without ACKs); of a recovery: a timeout broke it off; null otherwise",
    ),
    Column("replayed_s", F64, "s", "timeout: the timer as Linux would have set it (see rto_s), backed off; null otherwise"),
    Column("replayed_rfc_s", F64, "s", "timeout: the timer as RFC 6298 would have set it, backed off; null otherwise"),
    Column(
        "order",
        U64,
        "segments",
        "of a loss or loss_event: segments the flow had sent before this transmission; pieces of a super-segment share it",
    ),
    Column(
        "arrival",
        U64,
        "",
        "of a reordering: its number among the data segments that arrived, from 1, copies left out; null otherwise and at the sender",
    ),
    Column(
        "end_ns",
        I64,
        "ns",
        "of a recovery or timeout: when its episode ended, by the ACK of all that was outstanding at its start, by a timeout, or by an ACK that took it back; null otherwise",
    ),
    Column(
        "flight_after",
        F64,
        "segments",
        "of a recovery or timeout: data outstanding at the end of its episode; `flight` is that at its start",
    ),
)

ROUNDS = (
    Column("flow", U32, "", "flow the round belongs to"),
    Column("round", U32, "", "number of the round, from 0"),
    Column("start_ns", I64, "ns", "first transmission of the round"),
    Column("end_ns", I64, "ns", "when that transmission was acknowledged"),
    Column("sent_segments", U32, "segments", "data segments sent in the round, lost ones included"),
    Column("resent_segments", U32, "segments", "of these, sent again"),
    Column("lost_segments", U32, "segments", "losses whose transmission lies in the round"),
    Column("acked_bytes", U64, "bytes", "advance of the cumulative ACK until the next round starts"),
    Column("acks", U32, "", "ACKs that advanced the left edge until the next round starts"),
    Column("rtt_s", F64, "s", "mean of the round's samples; null if there is none"),
    Column("flight", F64, "segments", "largest pipe in the round"),
    Column("rwnd", F64, "segments", "smallest window advertised in the round; null if the scale is unknown"),
    Column("phase", _vocabulary(PHASES), "", "state of the sender at the end of the round"),
    Column("limited", BOOL, "", "the flight came within 3 segments of the advertised window"),
    Column("idle_s", F64, "s", "time until the next round starts with nothing outstanding"),
    Column(
        "window_full_s",
        F64,
        "s",
        "time until the next round starts in which the advertised window had no room for another segment; 0 where the scale is unknown",
    ),
    Column(
        "estimated",
        BOOL,
        "",
        "the path was full, and nothing tells how long ACKs were under way: round trip and flight may have been longer; only away from the sender, without timestamps",
    ),
    Column(
        "cwnd_low", F64, "segments", "the congestion window reached this in the round; null in and around loss recovery"
    ),
    Column(
        "cwnd_high",
        F64,
        "segments",
        "it was no larger before the ACK that ended the round, since data waited for that; null where the application, the receiver or a flight that does not grow may have held the sender",
    ),
)

SEGMENTS = (
    Column("frame", U64, "", "number of the packet in its capture, from 1"),
    Column("time_ns", I64, "ns", "capture time"),
    Column("src", STR, "", "source address"),
    Column("dst", STR, "", "destination address"),
    Column("src_port", U16, "", "source port"),
    Column("dst_port", U16, "", "destination port"),
    Column("seq", U32, "", "sequence number as sent"),
    Column("ack", U32, "", "acknowledgement number as sent"),
    Column("flags", U16, "", "TCP flags, FIN = 1 ... CWR = 128, AE = 256"),
    Column("window", U16, "", "window field as sent"),
    Column("payload", U32, "bytes", "TCP payload on the wire"),
    Column("wire_bytes", U32, "bytes", "frame on the wire"),
    Column("ip_id", U16, "", "IPv4 identification; null for IPv6"),
    Column("ttl", pl.UInt8(), "", "TTL or hop limit"),
    Column("ecn", pl.UInt8(), "", "ECN bits of the IP header"),
    Column("checksum", U16, "", "TCP checksum as sent"),
    Column("direction", pl.UInt8(), "", "0 unknown, 1 into the capturing host, 2 out of it"),
    Column("around", U32, "", "identity of the VLANs and tunnels around the packet, part of the flow's key; 0 for none"),
    Column("mss", U16, "bytes", "MSS option; null if absent"),
    Column("window_scale", pl.UInt8(), "bits", "window scale option; null if absent"),
    Column("sack_permitted", BOOL, "", "SACK-permitted option"),
    Column("mptcp", BOOL, "", "an option of Multipath TCP (RFC 8684)"),
    Column("ce_bytes", U32, "bytes", "payload that came marked, modulo 2^24 (AccECN option, RFC 9768, 3.2.3); null if absent"),
    Column("tsval", U32, "", "TSval; null if absent"),
    Column("tsecr", U32, "", "TSecr; null if absent"),
    Column("options_incomplete", BOOL, "", "options cut by the snapshot length or malformed: some may be unknown"),
    Column("sack", pl.List(pl.UInt32()), "", "edges of the SACK blocks: left, right, left, right, ..."),
)

TABLES = {"flows": FLOWS, "events": EVENTS, "rounds": ROUNDS, "segments": SEGMENTS}


@cache
def polars_schema(table: str) -> pl.Schema:
    """Schema of a table by its name, the same one every time: it is for reading.

    Raises KeyError for a name that is not in `TABLES`.
    """
    return pl.Schema({column.name: column.dtype for column in TABLES[table]})


def check_tables(**tables: object) -> None:
    """Raise InvalidParameter where one of these, under their names in `TABLES`, is not such a table, or where one of
    flows has a number twice: events and rounds of either would be taken for those of both."""
    for name, table in tables.items():
        check_table(f"the table {name}", table, TABLES[name])
        if name == "flows" and isinstance(table, pl.DataFrame):
            _check_numbers(table["flow"])


def _check_numbers(numbers: pl.Series) -> None:
    if numbers.n_unique() < len(numbers):
        twice = numbers.filter(numbers.is_duplicated())[0]
        raise InvalidParameter(
            f"flow {twice} is in the table flows twice; renumber the flows before tables of several captures are joined"
        )


def check_table(name: str, table: object, columns: Iterable[Column], origin: str = "tcpfit.analyze") -> None:
    """Raise InvalidParameter for what is no table with at least these columns; `origin` says what makes one."""
    if not isinstance(table, pl.DataFrame):
        raise InvalidParameter(f"{name} must be a polars DataFrame, as {origin} makes it, got {shown(table)}")
    schema = table.schema  # made anew each time it is asked for
    for column in columns:
        given = schema.get(column.name)
        if given is None:
            raise InvalidParameter(f"{name} lacks the column {column.name!r}; {origin} makes it")
        # a column without a value says nothing of its dtype: read from CSV it is text
        if not _serves(given, column.dtype) and table[column.name].null_count() < table.height:
            raise InvalidParameter(f"{name} has a column {column.name!r} of {given}, which should be {column.dtype}")


def _serves(given: pl.DataType, declared: pl.DataType) -> bool:
    """Whether a column of a table that was made elsewhere, read from CSV for one, can stand for the declared one."""
    texts = (pl.String, pl.Enum, pl.Categorical)
    if declared.is_numeric():
        return given.is_numeric() or given == pl.Null
    return given in (declared, pl.Null) or (declared in texts and given in texts) or given.is_nested()
