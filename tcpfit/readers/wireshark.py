"""What Wireshark's own TCP analysis says of each segment, from one run of tshark, to compare tcpfit's labels with.

A segment comes with what tshark knew when it passed (the highest number so far and its time), which is what its rules
go by, and with what it did not look at (identification, timestamp, which bytes had passed). The rules are those of
packet-tcp.c, Wireshark 4.0.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from tcpfit.exceptions import CaptureError
from tcpfit.readers.tshark import nanoseconds

PREFERENCES = (
    "tcp.analyze_sequence_numbers:TRUE",
    "tcp.relative_sequence_numbers:FALSE",
    "tcp.fastrt_supersedes_ooo:TRUE",
    "tcp.desegment_tcp_streams:FALSE",
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "ip.tso_support:TRUE",
    "ipv6.tso_support:TRUE",
)

FLAGS = (
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "lost_segment",
    "ack_lost_segment",
    "keep_alive",
    "zero_window_probe",
    "zero_window",
)
"""Of tshark's tcp.analysis flags, those that tcpfit has labels for."""

FILTER = "tcp && !icmp && !icmpv6"

TOPS = 1024
"""Timestamps of a flow that are remembered: a second's, where they count milliseconds."""

FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "tcp.stream",
    "ip.src",
    "ipv6.src",
    "tcp.srcport",
    "ip.dst",
    "ipv6.dst",
    "tcp.dstport",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.len",
    "tcp.flags",
    "ip.id",
    "ip.len",
    "ip.hdr_len",
    "tcp.hdr_len",
    "pppoe.payload_length",
    "tcp.options.timestamp.tsval",
    "tcp.analysis.initial_rtt",
    "_ws.short",
    *(f"tcp.analysis.{flag}" for flag in FLAGS),
)

NO_HANDSHAKE_NS = 3_000_000
"""What tshark takes for the round trip where it saw no handshake."""

CUT = "TCP truncated"
"""In `_ws.short` where the capture cut a packet off within its TCP header: tshark ends there, and flags nothing."""

COPY_NS = 500_000
"""A SYN or FIN that comes again sooner was copied: no timer is that short."""

FIN, SYN = 1, 2


class Ends(NamedTuple):
    """Who sends to whom."""

    src: str
    src_port: int
    dst: str
    dst_port: int

    def reversed(self) -> Ends:
        """The other direction."""
        return Ends(self.dst, self.dst_port, self.src, self.src_port)


@dataclass(frozen=True, slots=True)
class Seen:
    """A segment, what tshark says of it, and what had passed before it. Numbers are offsets from the initial one."""

    frame: int
    time_ns: int
    stream: int
    ends: Ends
    left: int
    length: int
    syn: bool
    fin: bool
    flags: frozenset[str]
    highest: int | None
    """Highest number that tshark had seen in this direction, and of which packet."""
    highest_frame: int
    since_highest_ns: int
    highest_by_ack: bool
    """That packet carried no data."""
    data_end: int | None
    """Highest number that data had reached."""
    soon_ns: int
    """What comes sooner after the highest number is out of order to tshark: the handshake's round trip."""
    sent_after: bool | None
    """Its timestamp or identification is later than that of the data with the highest number, or its timestamp than
    that of others above it that passed before; None: they do not say."""
    renumbered: bool
    """This stream had a SYN or SYN-ACK with another initial number before."""
    copied: bool
    """A SYN or FIN of the same number and identification passed just before."""
    hole_is_there: bool
    """The data between the highest number and it had passed: tshark counts a cut frame shorter."""
    acknowledged_is_there: bool
    """All data of the other direction that it acknowledges had passed."""
    half_open: bool
    """The other direction had sent a SYN and nothing else, and what it acknowledges is not that."""
    cut: bool
    """The capture cut it off within its TCP header."""


@dataclass
class _Way:
    """One direction of a stream as it has passed so far."""

    isn: int
    opens: bool
    """It began with a SYN."""
    last: int = 0
    highest: int | None = None
    highest_frame: int = 0
    highest_ns: int = 0
    highest_by_ack: bool = False
    newest: tuple[int | None, int | None] = (None, None)
    tops: list[tuple[int, int]] = field(default_factory=list)
    """Where the data with the highest number ended when each timestamp first passed, and that timestamp."""
    data_end: int | None = None
    renumbered: bool = False
    syn_or_fin: tuple[int, int, int | None, int] | None = None
    passed: list[tuple[int, int]] = field(default_factory=list)

    def offset(self, seq: int) -> int:
        """A sequence number as an offset from the initial one, beyond 32 bits."""
        return self.last + _signed(seq - self.isn - self.last, 32)

    def has(self, left: int, right: int) -> bool:
        """Whether data of that range have all passed."""
        at = bisect_left(self.passed, (left + 1, 0)) - 1
        return left >= right or at >= 0 and self.passed[at][0] <= left and right <= self.passed[at][1]

    def has_until(self, ack: int) -> bool:
        """Whether all data below an acknowledgement number have passed; a FIN takes a number too."""
        right, end = self.offset(ack), self.data_end or 1
        return right <= end + 1 and self.has(1, min(right, end))

    def later(self, left: int, tsval: int | None, ip_id: int | None) -> bool | None:
        """Whether what begins at `left` was sent after the newest data, or after others above it; None: not known."""
        at = bisect_right(self.tops, left, key=itemgetter(0))
        if tsval is not None and at < len(self.tops) and _signed(tsval - self.tops[at][1], 32) > 0:
            return True
        return _later(tsval, ip_id, self.newest)

    def add(self, left: int, right: int) -> None:
        """Data of that range pass."""
        passed = self.passed
        if passed and passed[-1][0] <= left <= passed[-1][1]:
            passed[-1] = (passed[-1][0], max(right, passed[-1][1]))
            return
        first = bisect_left(passed, (left, 0))
        if first and passed[first - 1][1] >= left:
            first -= 1
        last = first
        while last < len(passed) and passed[last][0] <= right:
            left, right = min(left, passed[last][0]), max(right, passed[last][1])
            last += 1
        passed[first:last] = [(left, right)]


class Pass:
    """One run of tshark over a capture; iterate once.

    Segments are given out that tshark has a flag for, that are among `frames`, or that are the first of a flow:
    `first` holds (ends, time). When all have been given out, `warning` says whether tshark gave up before the end.
    """

    def __init__(self, path: str, frames: Collection[int], first: Collection[tuple[Ends, int]]) -> None:
        self.warning: str | None = None
        self._path, self._frames, self._first = path, frames, first
        self._ways: dict[tuple[int, Ends], _Way] = {}
        self._last_ns = 0

    def __iter__(self) -> Iterator[Seen]:
        lines = 0
        for line in self._lines():
            lines += 1
            seen = self._segment(dict(zip(FIELDS, line.rstrip("\n").split("\t"), strict=True)))
            if seen is not None:
                yield seen
        if self.warning is not None and not lines:
            raise CaptureError(self.warning)

    def passed(self, stream: int, ends: Ends, left: int, right: int) -> bool:
        """Whether data of that range have passed in one direction of a stream."""
        way = self._ways.get((stream, ends))
        return way is not None and way.has(left, right)

    def _lines(self) -> Iterator[str]:
        call = [executable(), "-n", "-r", self._path, "-Y", FILTER, "-T", "fields", "-E", "occurrence=l"]
        for preference in PREFERENCES:
            call += ["-o", preference]
        for name in FIELDS:
            call += ["-e", name]
        with tempfile.TemporaryFile(mode="w+", errors="replace") as complaints:
            process = subprocess.Popen(
                call,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                errors="replace",
            )
            assert process.stdout is not None
            try:
                yield from process.stdout
                status = process.wait()
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
            if status != 0:
                complaints.seek(0)
                said = [line.strip() for line in complaints if not line.startswith("Running as user")]
                sentence = " ".join(part for part in said if part).removeprefix("tshark: ").rstrip(".")
                self.warning = f"tshark: {sentence or 'failed without saying why'}"

    def _segment(self, row: dict[str, str]) -> Seen | None:
        if not (row["tcp.stream"] and row["tcp.ack_raw"]):
            return None  # the capture cut its header off
        ends = Ends(
            row["ip.src"] or row["ipv6.src"],
            int(row["tcp.srcport"]),
            row["ip.dst"] or row["ipv6.dst"],
            int(row["tcp.dstport"]),
        )
        stream, frame = int(row["tcp.stream"]), int(row["frame.number"])
        time_ns = self._last_ns = nanoseconds(row["frame.time_epoch"], self._last_ns)
        bits, seq, ack = int(row["tcp.flags"] or "0", 0), int(row["tcp.seq_raw"]), int(row["tcp.ack_raw"])
        length = int(row["tcp.len"] or 0)
        syn, fin = bool(bits & SYN), bool(bits & FIN)
        ip_id = int(row["ip.id"], 0) if row["ip.id"] else None
        tsval = int(row["tcp.options.timestamp.tsval"]) if row["tcp.options.timestamp.tsval"] else None
        way = self._way(stream, ends, seq, syn)
        left = way.offset(seq) + syn
        copied = self._copied(way, left, (syn or fin) and not length, ip_id, time_ns)
        flags = frozenset(flag for flag in FLAGS if row[f"tcp.analysis.{flag}"])
        seen = None
        if flags or frame in self._frames or (ends, time_ns) in self._first:
            other = self._ways.get((stream, ends.reversed()))
            soon = row["tcp.analysis.initial_rtt"]
            seen = Seen(
                frame,
                time_ns,
                stream,
                ends,
                left,
                length,
                syn,
                fin,
                flags,
                way.highest,
                way.highest_frame,
                time_ns - way.highest_ns,
                way.highest_by_ack,
                way.data_end,
                nanoseconds(soon) if soon else NO_HANDSHAKE_NS,
                way.later(left, tsval, ip_id),
                way.renumbered or other is not None and other.renumbered,
                copied,
                way.highest is not None and way.has(way.highest, left),
                other is not None and other.has_until(ack),
                other is not None and other.opens and other.highest == 1 and other.offset(ack) != 1,
                CUT in row["_ws.short"],
            )
        self._pass(way, left, length, _length(row, length), fin, frame, time_ns, (tsval, ip_id), flags)
        return seen

    def _way(self, stream: int, ends: Ends, seq: int, syn: bool) -> _Way:
        way = self._ways.get((stream, ends))
        if way is None:
            way = self._ways[stream, ends] = _Way(seq if syn else (seq - 1) % 2**32, syn)
        elif syn and way.isn != seq:
            # another connection on these ports: tshark goes on with what it has, tcpfit begins anew
            way = self._ways[stream, ends] = _Way(seq, True, renumbered=True)
        return way

    def _copied(self, way: _Way, left: int, counts: bool, ip_id: int | None, time_ns: int) -> bool:
        if not counts:
            return False
        before = way.syn_or_fin
        way.syn_or_fin = left, 0, ip_id, time_ns
        return before is not None and before[:3] == way.syn_or_fin[:3] and time_ns - before[3] < COPY_NS

    def _pass(
        self,
        way: _Way,
        left: int,
        length: int,
        sent: int,
        fin: bool,
        frame: int,
        time_ns: int,
        marks: tuple[int | None, int | None],
        flags: frozenset[str],
    ) -> None:
        if "zero_window_probe" in flags:
            return
        if sent:
            way.add(left, left + sent)
            if way.data_end is None or left + sent > way.data_end:
                way.data_end, way.newest = left + sent, marks
                if marks[0] is not None and (not way.tops or way.tops[-1][1] != marks[0]):
                    way.tops.append((way.data_end, marks[0]))
                    del way.tops[:-TOPS]
        right = left + length + fin
        if way.highest is None or right > way.highest:
            way.highest, way.highest_frame, way.highest_ns, way.highest_by_ack = right, frame, time_ns, not length
            way.last = max(way.last, right)


def executable() -> str:
    """Where tshark is.

    Raises CaptureError where it is not installed.
    """
    tshark = shutil.which("tshark")
    if tshark is None:
        raise CaptureError("tshark is not installed, nothing to compare with; install Wireshark's tshark package")
    return tshark


def version() -> str:
    """tshark's version: 4.0.17."""
    said = subprocess.run([executable(), "--version"], capture_output=True, text=True, errors="replace", check=False)
    found = re.search(r"\d+(?:\.\d+)+", said.stdout)
    return found[0] if found else "of an unknown version"


def _length(row: dict[str, str], length: int) -> int:
    """Payload by the IP header: what was sent, where the frame is cut."""
    if row["ip.len"] and row["ip.len"] != "0" and row["tcp.hdr_len"] and not row["pppoe.payload_length"]:
        return int(row["ip.len"]) - int(row["ip.hdr_len"]) - int(row["tcp.hdr_len"])
    return length


def _later(tsval: int | None, ip_id: int | None, newest: tuple[int | None, int | None]) -> bool | None:
    """Whether timestamp or, where that is the same or absent, the identification is later than the newest."""
    for mark, other, bits in ((tsval, newest[0], 32), (ip_id, newest[1], 16)):
        if mark is not None and other is not None and mark != other:
            return _signed(mark - other, bits) > 0
    return None


def _signed(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half
