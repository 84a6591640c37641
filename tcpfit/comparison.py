"""tcpfit's labels beside tshark's, packet by packet, and why they differ.

`MAPPING` says which flags of tshark say the same as a label; `NOT_COMPARED` which of tshark's flags have no label
beside them, and where tcpfit keeps what they say; `CLASSES` why a packet can be labelled differently. A class is named
only where the packets show it: what no rule explains is `unexplained`. docs/compare.md is made from these tables.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from tcpfit import arguments
from tcpfit.analysis import Analysis
from tcpfit.exceptions import CaptureError, InvalidParameter
from tcpfit.readers import wireshark
from tcpfit.readers.files import DIRECTORY
from tcpfit.readers.wireshark import Ends, Seen

ANY = "*"

RESENT = ("retransmission", "fast_retransmission")

MAPPING: dict[tuple[str, str], tuple[str, ...]] = {
    ("retransmission", "rto"): ("retransmission",),
    ("retransmission", "rto-recovery"): ("retransmission",),
    ("retransmission", "tlp"): ("retransmission",),
    ("retransmission", "unneeded"): ("spurious_retransmission",),
    ("retransmission", ANY): RESENT,
    ("timeout", "syn"): ("retransmission",),
    ("spurious", ANY): ("spurious_retransmission",),
    ("reordering", "ip-id"): ("out_of_order",),
    ("reordering", "tsval"): ("out_of_order",),
    ("reordering", "timing"): ("out_of_order",),
    ("reordering", "unasked"): ("out_of_order",),
    ("duplicate", ANY): (),
    ("probe", "keep-alive"): ("keep_alive",),
    ("probe", "window-probe"): ("zero_window_probe",),
    ("zero_window", ANY): ("zero_window",),
    ("loss", "hole"): ("lost_segment",),
    ("loss", "ip-id-gap"): ("lost_segment",),
    ("loss", "never-arrived"): ("lost_segment",),
}
"""Kind and reason of an event (`ANY` of the others) and the flags of tshark that say the same. A packet whose resend
was needless has the label `spurious` in the place of `retransmission`; a loss stands beside the packet that showed the
hole, and where its packet is in the capture it is not compared, since tshark never says which packet was lost. Nor does
it say of a packet at the sender that it will be overtaken, so reordering that the ACKs show is not compared."""

NOT_OF_PACKETS = {
    "loss_event": "losses together",
    "recovery": "an episode; its resends are compared",
    "timeout": "but for SYNs: its resend is compared",
    "tail_loss_probe": "its resend is compared",
    "reorder_event": "late segments together",
    "ecn_mark": "marks together",
    "ecn_response": "tshark has fields for the flags, no word for what they mean",
}
"""Kinds of tcpfit's events that tshark has no flag for."""

NOT_COMPARED = {
    "duplicate_ack": "counted, not labelled: `duplicate_acks` of the flow (RFC 5681; with SACK by RFC 6675)",
    "window_full": "not labelled: `limited` of a round says whether the window held the flow back",
    "window_update": "not labelled: it means nothing by itself",
    "keep_alive_ack": "not labelled: the `probe` it answers is",
    "zero_window_probe_ack": "not labelled: the `probe` it answers is",
    "reused_ports": "not labelled: the new connection has flows of its own",
    "tfo_syn, tfo_ack, tfo_ignored": "not labelled",
}

CLASSES = {
    "too-soon": "tshark takes what comes sooner after the highest number than the handshake's round trip (3 ms without "
    "one) for out of order; it was sent again all the same: an earlier copy is in the capture, or its timestamp or "
    "identification is the later one",
    "overtaken": "tshark takes what comes later than the handshake's round trip, or within 20 ms of a second duplicate "
    "ACK, for sent again; identification, timestamp or timing show that it was sent before what it came after, or "
    "nothing had asked for it again",
    "copy": "the network or the capture made a copy: same range, identification and timestamp; tshark has no word for "
    "it and says that it was sent again",
    "proved-later": "the proof that the resend was needless came after it; tshark calls a resend spurious only where "
    "its data had been acknowledged before, and does not go back",
    "sacked-before": "its data had been SACKed before it was sent again; tshark looks at the cumulative ACK alone",
    "fast-by-time": "tshark calls fast what begins at the acknowledged number within 20 ms of a second duplicate ACK; "
    "the timer sent it",
    "window-probe": "a zero-window probe whose number is one below the next, as Linux sends it; to tshark that is a "
    "keep-alive, whatever the window",
    "filled-late": "the segments before it were not lost: they came later, out of order",
    "capture-loss": "the capture missed data: they were acknowledged and are nowhere in it (`missing_segments`)",
    "all-there": "the data below it are all in the capture; tshark lost count, where a segment did not begin at the "
    "end of the one before or a frame was cut",
    "first-copy-unseen": "the first copy was lost before the capture point, so this is the first that tshark sees",
    "one-below": "tshark never calls a segment resent that begins one below the highest number: it could be a "
    "keep-alive",
    "number-of-an-ack": "a packet without data had a number beyond all data seen, so what lies below had been sent "
    "before; tshark counts that number, tcpfit goes by data alone",
    "renumbered": "a SYN or SYN-ACK with another initial number came on these ports; tshark goes on from the old "
    "number, tcpfit begins anew",
    "old-connection": "it answers a SYN with an ACK of an earlier connection on these ports, which is not in the "
    "capture (RFC 9293, 3.5.2)",
    "cut-off": "the capture cuts the packet off within its TCP options; tshark ends there and flags no such packet",
    "no-data": "a SYN or FIN without data: tcpfit labels data, and of SYNs only those that a timer sent again",
    "no-flow": "this direction carried no data, so tcpfit has no flow of it",
    "unexplained": "no rule explains it",
}

PACKETS = pl.Schema(
    {
        "flow": pl.UInt32(),
        "frame": pl.UInt64(),
        "time_ns": pl.Int64(),
        "label": pl.String(),
        "tshark": pl.String(),
        "agrees": pl.Boolean(),
        "class": pl.Enum(list(CLASSES)),
        "why": pl.String(),
    }
)
FLOWS = pl.Schema({"flow": pl.UInt32(), "class": pl.Enum(["agrees", *CLASSES]), "packets": pl.UInt64()})

ABOUT_ACKNOWLEDGED = frozenset({"zero_window", "ack_lost_segment"})
"""Flags that are about the flow that the packet acknowledges, not about the one that it belongs to."""


@dataclass(frozen=True)
class Comparison:
    """`packets`: a row per flow and packet that either labels; `flows`: how many agree, and how many differ why.

    `tshark` is its version, `warning` what it said when it gave up before the end of the capture.
    """

    packets: pl.DataFrame
    flows: pl.DataFrame
    tshark: str
    warning: str | None


class _Event(NamedTuple):
    """An event of a flow, as far as it labels a packet."""

    kind: str
    reason: str
    left: int
    right: int
    cause_frame: int | None
    time_ns: int
    until_ns: int

    def __str__(self) -> str:
        return f"{self.kind} ({self.reason})"


@dataclass(frozen=True)
class _Packet:
    """A packet of a flow with what either says of it."""

    seen: Seen | None
    events: tuple[_Event, ...]
    """As they are shown."""
    labels: tuple[_Event, ...]
    """As they are compared."""
    flags: frozenset[str]
    missing_segments: int
    late: tuple[_Event, ...]
    """Reordering of the flow within the hole that the packet shows."""
    hole_passed: bool

    def is_labelled(self, *kinds: str) -> bool:
        return any(event.kind in kinds for event in self.labels)

    def reasons(self) -> set[str]:
        return {event.reason for event in self.events}


def check(path: str) -> None:
    """Whether there is something to compare a capture with.

    Raises CaptureError where tshark is not installed, or where the capture is standard input or a pipe.
    """
    if os.path.isdir(path):
        raise CaptureError(f"{path}: {DIRECTORY}")
    if path == "-":
        raise CaptureError("standard input can be read once only, and tshark reads the capture too; give a file")
    if os.path.exists(path) and not os.path.isfile(path):
        raise CaptureError(f"{path}: not a file, it can be read once only; give a file")
    wireshark.executable()


def compare(analysis: Analysis, path: str | os.PathLike[str], *, flows: Collection[int] | None = None) -> Comparison:
    """Compare the labels of a whole capture with those of tshark, which reads it once; give back all flows or some.

    Raises CaptureError where tshark is not installed or cannot read the capture, or where that is standard input, and
    InvalidParameter for a flow that the capture does not have and for another capture than that of `analysis`.
    """
    arguments.analysis(analysis)
    path = arguments.path("path", path)
    chosen = None if flows is None else arguments.flow_numbers(analysis, flows)
    check(path)
    version = wireshark.version()
    known = _Flows(analysis)
    tshark = wireshark.Pass(path, known.frames(), known.first_segments())
    packets: list[Seen] = []
    for seen in tshark:
        known.place(seen)
        packets.append(seen)
    if tshark.warning is None and not known.placed:
        raise InvalidParameter(f"{path}: tshark finds no flow in it that was analysed; give the capture that was")
    rows = sorted(_rows(packets, known, tshark), key=lambda row: (row[0] is None, row[0] or 0, row[1]))
    table = pl.DataFrame(rows, schema=PACKETS, orient="row")
    if chosen is not None:
        table = table.filter(pl.col("flow").is_in(chosen))
    return Comparison(table, _counts(table), version, tshark.warning)


def _counts(packets: pl.DataFrame) -> pl.DataFrame:
    of = pl.col("class").cast(pl.String).fill_null("agrees").cast(FLOWS["class"])
    counts = packets.group_by("flow", of.alias("class")).agg(pl.len().cast(pl.UInt64).alias("packets"))
    return counts.select(list(FLOWS)).sort("flow", "packets", "class", descending=[False, True, False], nulls_last=True)


Row = tuple[int | None, int, int, str, str, bool, str | None, str | None]


def _rows(packets: list[Seen], flows: _Flows, tshark: wireshark.Pass) -> Iterator[Row]:
    at_frame: dict[int, Seen] = {}
    for seen in packets:
        at_frame[seen.frame] = seen
        for own, flags in ((True, seen.flags - ABOUT_ACKNOWLEDGED), (False, seen.flags & ABOUT_ACKNOWLEDGED)):
            flow = flows.of(seen, own)
            if flags and (flow is None or not flows.has_label(flow, seen.frame)):
                yield _row(flow, seen.frame, seen.time_ns, flows.packet(flow, seen, flags, (), tshark))
    for (flow, frame), events in flows.labels():
        labelled = at_frame.get(frame)
        flags = frozenset[str]()
        if labelled is not None:
            flags = labelled.flags & ABOUT_ACKNOWLEDGED if flows.of(labelled, False) == flow else frozenset()
            flags |= labelled.flags - ABOUT_ACKNOWLEDGED if flows.of(labelled, True) == flow else frozenset()
        yield _row(flow, frame, events[0].time_ns, flows.packet(flow, labelled, flags, events, tshark))


def _row(flow: int | None, frame: int, time_ns: int, packet: _Packet) -> Row:
    shown = ", ".join(str(event) for event in packet.events), ", ".join(words(packet.flags))
    if _agrees(packet):
        return (flow, frame, time_ns, *shown, True, None, None)
    name = explain(packet)
    if flow is None and name not in ("copy", "renumbered"):
        name = "no-flow"
    return (flow, frame, time_ns, *shown, False, name, _why(name, packet))


def words(flags: Iterable[str]) -> list[str]:
    """tshark's flags without those that another one implies: a fast or spurious resend is also a retransmission."""
    flags = set(flags)
    if flags & {"fast_retransmission", "spurious_retransmission"}:
        flags.discard("retransmission")
    return [flag for flag in wireshark.FLAGS if flag in flags]


def same(event: tuple[str, str]) -> tuple[str, ...] | None:
    """The flags that say the same as an event of that kind and reason; None where it is not compared."""
    kind, reason = event
    return MAPPING.get((kind, reason), MAPPING.get((kind, ANY)))


def _agrees(packet: _Packet) -> bool:
    flags = words(packet.flags)
    allowed = [same(event[:2]) or () for event in packet.labels]
    return all(any(flag in some for some in allowed) for flag in flags) and all(
        any(flag in some for flag in flags) for some in allowed
    )


class _Flows:
    """The flows of an analysis with their labels, and which of tshark's streams they are."""

    def __init__(self, analysis: Analysis) -> None:
        self._span: dict[int, tuple[int, int]] = {}
        self._missing: dict[int, int] = {}
        self._first: dict[tuple[Ends, int], tuple[int, Ends]] = {}
        self._in_stream: defaultdict[tuple[int, Ends], list[int]] = defaultdict(list)
        columns = ("flow", "first_ns", "last_ns", "missing_segments", "data_segments", *Ends._fields)
        for flow, first, last, missing, data, *own in analysis.flows.select(columns).iter_rows():
            self._span[flow], self._missing[flow] = (first, last), missing
            ends = Ends(*own)
            self._first[ends, first] = flow, ends
            if not data:  # its ACKs alone are in the capture
                self._first.setdefault((ends.reversed(), first), (flow, ends))
        self._events: dict[tuple[int, int], list[_Event]] = defaultdict(list)
        self._losses: defaultdict[int, list[_Event]] = defaultdict(list)
        self._late: defaultdict[int, list[_Event]] = defaultdict(list)
        self._periods: defaultdict[int, list[_Event]] = defaultdict(list)
        names = ("flow", "frame", "kind", "reason", "left", "right", "cause_frame", "time_ns", "value")
        for row in analysis.events.select(names).iter_rows():
            flow, frame, kind, reason, left, right, cause_frame, time_ns, value = row
            if same((kind, reason)) is not None:
                until_ns = time_ns + round((value or 0.0) * 1e9)
                self._add(flow, frame, _Event(kind, reason, left, right, cause_frame, time_ns, until_ns))

    def _add(self, flow: int, frame: int | None, event: _Event) -> None:
        if event.kind == "loss":
            self._losses[flow].append(event)
            return
        if event.kind == "reordering":
            self._late[flow].append(event)
        elif event.kind == "zero_window":
            self._periods[flow].append(event)
        if frame is not None:
            self._events[flow, frame].append(event)

    def frames(self) -> set[int]:
        """Frames that tcpfit labels."""
        return {frame for _, frame in self._events}

    def first_segments(self) -> set[tuple[Ends, int]]:
        """Ends and time of each flow's first segment: data, a SYN that a timer sent again or, without data, an ACK."""
        return set(self._first)

    def place(self, seen: Seen) -> None:
        """Note which stream a flow is, if this is its first segment."""
        found = self._first.pop((seen.ends, seen.time_ns), None)
        if found is not None:
            flow, ends = found
            self._in_stream[seen.stream, ends].append(flow)

    @property
    def placed(self) -> bool:
        """Whether one of the flows is there, if there are any."""
        return bool(self._in_stream) or not self._span

    def of(self, seen: Seen, own: bool) -> int | None:
        """The flow that a packet belongs to, or the one that it acknowledges; of several the one nearest in time."""
        flows = self._in_stream.get((seen.stream, seen.ends if own else seen.ends.reversed()), [])
        return min(flows, key=lambda flow: self._distance(flow, seen.time_ns), default=None)

    def _distance(self, flow: int, time_ns: int) -> int:
        first, last = self._span[flow]
        return max(first - time_ns, time_ns - last, 0)

    def has_label(self, flow: int, frame: int) -> bool:
        """Whether tcpfit labels that packet."""
        return (flow, frame) in self._events

    def labels(self) -> Iterator[tuple[tuple[int, int], tuple[_Event, ...]]]:
        """Flow, frame and events of every packet that tcpfit labels."""
        for key, events in self._events.items():
            yield key, tuple(events)

    def packet(
        self,
        flow: int | None,
        seen: Seen | None,
        flags: frozenset[str],
        events: tuple[_Event, ...],
        tshark: wireshark.Pass,
    ) -> _Packet:
        """Put together what is known of a packet; `events` are those with its frame."""
        late: tuple[_Event, ...] = ()
        passed = False
        if seen is not None and flow is not None:
            if "zero_window" in flags and not events:
                periods = self._periods.get(flow, ())
                events += tuple(p for p in periods if p.time_ns <= seen.time_ns <= p.until_ns)
            if "lost_segment" in flags:
                left, right = seen.highest or 1, seen.left
                events += tuple(_within(self._losses.get(flow, ()), left, right))[:1]
                late = tuple(_within(self._late.get(flow, ()), left, right))
                passed = tshark.passed(seen.stream, seen.ends, left, right)
        needless = any(event.kind == "spurious" for event in events)
        labels = tuple(event for event in events if not (needless and event.kind == "retransmission"))
        missing = self._missing[flow] if flow is not None else 0
        return _Packet(seen, events, labels, flags, missing, late, passed)


def _within(events: Iterable[_Event], left: int, right: int) -> Iterator[_Event]:
    """Those that overlap a range."""
    return (event for event in events if event.left < right and left < event.right)


def explain(packet: _Packet) -> str:
    """The class of a difference: the first whose rule the packet meets."""
    if packet.seen is None:
        return "unexplained"
    return next((name for name, rule in RULES if rule(packet, packet.seen)), "unexplained")


def _sent_again(packet: _Packet, seen: Seen) -> bool:
    earlier = any(e.cause_frame is not None and e.cause_frame < seen.frame for e in packet.events)
    return earlier or seen.sent_after is True


def _too_soon(packet: _Packet, seen: Seen) -> bool:
    resent = any(event.kind in ("retransmission", "spurious") for event in packet.events)
    return packet.flags == {"out_of_order"} and resent and _sent_again(packet, seen)


SENT_EARLIER = {
    "ip-id": "sent earlier by its ip-id",
    "tsval": "sent earlier by its tsval",
    "timing": "sent earlier by its timing",
    "unasked": "nothing had asked for it again",
}
"""Reasons of reordering that `MAPPING` compares, and what they show, the strongest first."""


def _overtaken(packet: _Packet, seen: Seen) -> bool:
    shown = packet.reasons() & SENT_EARLIER.keys()
    return packet.is_labelled("reordering") and bool(shown) and bool(packet.flags & set(RESENT))


def _copy(packet: _Packet, seen: Seen) -> bool:
    return packet.is_labelled("duplicate") or not packet.labels and seen.copied and "retransmission" in packet.flags


def _proved_later(packet: _Packet, seen: Seen) -> bool:
    return _needless_but_resent(packet) and "unneeded" not in packet.reasons()


def _sacked_before(packet: _Packet, seen: Seen) -> bool:
    return _needless_but_resent(packet) and "unneeded" in packet.reasons()


def _needless_but_resent(packet: _Packet) -> bool:
    return packet.is_labelled("spurious") and bool(packet.flags) and packet.flags <= set(RESENT)


def _fast_by_time(packet: _Packet, seen: Seen) -> bool:
    by_timer = bool(packet.reasons() & {"rto", "rto-recovery", "tlp"})
    return packet.is_labelled("retransmission") and by_timer and "fast_retransmission" in packet.flags


def _filled_late(packet: _Packet, seen: Seen) -> bool:
    return packet.flags == {"lost_segment"} and not packet.labels and bool(packet.late)


def _capture_loss(packet: _Packet, seen: Seen) -> bool:
    hole = packet.flags == {"lost_segment"} and not packet.labels and not packet.hole_passed
    unseen = packet.flags == {"ack_lost_segment"} and not seen.acknowledged_is_there
    return packet.missing_segments > 0 and (hole or unseen)


def _all_there(packet: _Packet, seen: Seen) -> bool:
    hole = packet.flags == {"lost_segment"} and not packet.labels and seen.hole_is_there
    return hole or packet.flags == {"ack_lost_segment"} and seen.acknowledged_is_there


def _silent(packet: _Packet) -> bool:
    return not packet.flags and packet.is_labelled("retransmission", "spurious")


def _first_copy_unseen(packet: _Packet, seen: Seen) -> bool:
    resent = packet.is_labelled("retransmission", "spurious") and packet.flags <= {"lost_segment"}
    return resent and (seen.highest is None or seen.left >= seen.highest)


def _number_of_an_ack(packet: _Packet, seen: Seen) -> bool:
    if packet.labels or seen.data_end is None:
        return False
    if packet.flags == {"lost_segment"}:
        return not seen.length and not seen.syn and not seen.fin
    beyond = seen.highest_by_ack and seen.length > 0 and seen.left >= seen.data_end
    return beyond and packet.flags <= {*RESENT, "out_of_order"}


RULES: tuple[tuple[str, Callable[[_Packet, Seen], bool]], ...] = (
    ("copy", _copy),
    ("too-soon", _too_soon),
    ("overtaken", _overtaken),
    ("proved-later", _proved_later),
    ("sacked-before", _sacked_before),
    ("fast-by-time", _fast_by_time),
    ("window-probe", lambda p, seen: "window-probe" in p.reasons() and p.flags == {"keep_alive"} and seen.length <= 1),
    ("renumbered", lambda p, seen: not p.labels and seen.renumbered),
    ("all-there", _all_there),
    ("filled-late", _filled_late),
    ("number-of-an-ack", _number_of_an_ack),
    ("capture-loss", _capture_loss),
    ("old-connection", lambda p, seen: p.flags == {"ack_lost_segment"} and seen.half_open),
    ("one-below", lambda p, seen: _silent(p) and seen.length > 1 and seen.highest == seen.left + 1),
    ("first-copy-unseen", _first_copy_unseen),
    ("cut-off", lambda p, seen: seen.cut and not p.flags),
    ("no-data", lambda p, seen: not p.labels and (seen.syn or seen.fin) and not seen.length),
)
"""The rule of each class, in the order in which they are tried."""


def _why(name: str, packet: _Packet) -> str:
    """What the packets show, with numbers."""
    seen = packet.seen
    if seen is None:
        return "tshark does not take it for a TCP segment"
    earlier = [e.cause_frame for e in packet.events if e.cause_frame is not None and e.cause_frame < seen.frame]
    since = f"{seen.since_highest_ns / 1e6:.3g} ms after frame {seen.highest_frame}"
    match name:
        case "too-soon":
            proof = f"also sent in frame {earlier[0]}" if earlier else "sent after the data before it"
            return f"{since}, less than {seen.soon_ns / 1e6:.3g} ms; {proof}"
        case "overtaken":
            return f"{since}; {next(shown for reason, shown in SENT_EARLIER.items() if reason in packet.reasons())}"
        case "copy":
            return f"copy of frame {earlier[0]}" if earlier else "copy of the packet before"
        case "proved-later":
            reason = next(event.reason for event in packet.events if event.kind == "spurious")
            later = [e.cause_frame for e in packet.events if e.cause_frame is not None and e.cause_frame > seen.frame]
            return f"by {reason}" + (f" in frame {later[0]}" if later else "")
        case "fast-by-time":
            again = next(event for event in packet.events if event.kind == "retransmission")
            return f"{(again.until_ns - again.time_ns) / 1e6:.3g} ms after it was last sent" if earlier else ""
        case "filled-late":
            return f"frame {seen.highest_frame} ended {seen.left - (seen.highest or 0)} bytes before it"
        case "number-of-an-ack" | "one-below" | "first-copy-unseen":
            return since
        case "capture-loss":
            return f"{packet.missing_segments} missing in this flow"
        case _:
            return ""
