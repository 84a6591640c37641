"""The reader for whatever tshark can dissect: other capture formats, tunnels, any encapsulation.

tshark gives header fields only. Its TCP analysis stays off: tcpfit's own tracker labels the segments, so the labels
are the same as with every other reader. Time is taken in whole nanoseconds and sequence numbers as they were sent.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

from tcpfit.exceptions import CaptureError
from tcpfit.readers import Reading, Settings
from tcpfit.readers.around import BAD_TCP, FRAGMENTED, NOT_IP, TRUNCATED
from tcpfit.readers.batches import Batches, Segment, counts
from tcpfit.readers.containers import INBOUND, OUTBOUND, UNTIMED, format_of, of_frames
from tcpfit.readers.decode import tcp_options
from tcpfit.readers.tunnels import protocol_reason

PREFERENCES = (
    "tcp.relative_sequence_numbers:FALSE",
    "tcp.analyze_sequence_numbers:FALSE",
    "tcp.calculate_timestamps:FALSE",
    "tcp.track_bytes_in_flight:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "ip.tso_support:TRUE",
    "ipv6.tso_support:TRUE",
)

FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "frame.len",
    "frame.protocols",
    "frame.encap_type",
    "frame.packet_flags_direction",
    "sll.pkttype",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "ip.len",
    "ip.hdr_len",
    "ip.id",
    "ip.ttl",
    "ipv6.hlim",
    "ip.dsfield.ecn",
    "ipv6.tclass.ecn",
    "ip.proto",
    "ipv6.nxt",
    "ip.flags.mf",
    "ip.frag_offset",
    "ipv6.fraghdr.more",
    "ipv6.fraghdr.offset",
    "pppoe.payload_length",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.flags",
    "tcp.window_size_value",
    "tcp.hdr_len",
    "tcp.len",
    "tcp.checksum",
    "tcp.options",
)

# Wireshark's own numbers of link types (wiretap), where they have a name among pcap's
ENCAPSULATIONS = {
    1: "EN10MB",
    4: "PPP",
    7: "RAW",
    15: "NULL",
    19: "PPP_SERIAL",
    25: "LINUX_SLL",
    129: "IPV4",
    130: "IPV6",
    174: "LOOP",
    210: "LINUX_SLL2",
}


def read(path: str, settings: Settings) -> Reading:
    """Read a capture through tshark; see `tcpfit.readers.read`."""
    return Collector(settings, format_of(path)).run(_rows(path))


def command(path: str) -> list[str]:
    """The tshark call that prints a line of `FIELDS` a packet.

    Raises CaptureError where tshark is not installed.
    """
    tshark = shutil.which("tshark")
    if tshark is None:
        raise CaptureError("tshark is not installed; install Wireshark's tshark package or use another reader")
    call = [tshark, "-n", "-l", "-r", path, "-T", "fields"]
    for preference in PREFERENCES:
        call += ["-o", preference]
    call += ["-E", "occurrence=a", "-E", "aggregator=;", "-E", "separator=/t"]
    for name in FIELDS:
        call += ["-e", name]
    return call


def _rows(path: str) -> Iterator[dict[str, str]]:
    """tshark's lines; its complaint is raised, or warned of where packets came before it."""
    with tempfile.TemporaryFile(mode="w+", errors="replace") as complaints:
        process = subprocess.Popen(
            command(path),
            stdin=sys.stdin if path == "-" else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            errors="replace",
        )
        try:
            assert process.stdout is not None
            yield from _split(process.stdout)
            status = process.wait()
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if status != 0:
            raise Complaint(_sentence(complaints))


class Complaint(Exception):
    """What tshark said when it gave up."""


def _split(lines: IO[str]) -> Iterator[dict[str, str]]:
    for line in lines:
        yield dict(zip(FIELDS, line.rstrip("\n").split("\t"), strict=False))


def _sentence(complaints: IO[str]) -> str:
    complaints.seek(0)
    said = [line.strip() for line in complaints if line.strip() and not line.startswith("Running as user")]
    return " ".join(said).removeprefix("tshark: ").rstrip(".") or "tshark failed without saying why"


class Collector:
    """Turns tshark's lines into segments and into the facts about the capture."""

    def __init__(self, settings: Settings, file_format: str | None) -> None:
        self._format = file_format
        self._batches = Batches(settings)
        self._skipped: Counter[str] = Counter()
        self._packets = self._bytes = 0
        self._links: dict[str, None] = {}

    def run(self, rows: Iterator[dict[str, str]]) -> Reading:
        first: int | None = None
        start: int | None = None
        end: int | None = None
        last = 0
        warnings: list[str] = []
        untimed: list[int] = []
        try:
            for row in rows:
                if not row["frame.time_epoch"]:
                    untimed.append(self._packets + 1)
                time = last = nanoseconds(row["frame.time_epoch"], last)
                first = time if first is None else first
                start = time if start is None else min(start, time)
                end = time if end is None else max(end, time)
                self._packet(row, time, first)
                if self._batches.full:
                    break
        except Complaint as complaint:
            if not self._packets:
                raise CaptureError(str(complaint)) from None
            warnings.append(f"{complaint}; the capture ends here")
        facts: dict[str, Any] = {
            "format": self._format,
            "link_types": list(self._links),
            "packets": self._packets,
            "bytes": self._bytes,
            "start_ns": start,
            "end_ns": end,
            "skipped": counts(self._skipped),
            "warnings": [*of_frames(untimed, UNTIMED), *warnings],
        }
        return self._batches.finish(facts)

    def _packet(self, row: dict[str, str], time: int, first: int) -> None:
        self._packets += 1
        self._bytes += int(row["frame.len"])
        encapsulation = int(row["frame.encap_type"] or 0)
        self._links.setdefault(ENCAPSULATIONS.get(encapsulation, f"wiretap {encapsulation}"))
        reason = not_analysed(row)
        if reason is not None:
            self._skipped[reason] += 1
        elif self._batches.wanted(time, first):
            self._batches.add(segment(row, time))


def nanoseconds(epoch: str, before_ns: int = 0) -> int:
    """'1285862902.700271000' without going through a float; of a packet without a time that of the one before it."""
    if not epoch:
        return before_ns
    seconds, _, fraction = epoch.partition(".")
    nanos = int(fraction.ljust(9, "0")[:9]) if fraction else 0
    return int(seconds) * 1_000_000_000 + (-nanos if epoch.startswith("-") else nanos)


def not_analysed(row: dict[str, str]) -> str | None:
    """Why a packet is no segment to analyse, in the engine's words; None where it is one."""
    layers = row["frame.protocols"].split(":")
    if "arp" in layers:
        return "ARP"
    if "ip" not in layers and "ipv6" not in layers:
        return NOT_IP
    if _number(row, "ip.frag_offset") or _number(row, "ipv6.fraghdr.offset"):
        return FRAGMENTED  # of first fragments the segment is known, and no more of it
    if "icmp" in layers or "icmpv6" in layers:
        return "ICMP"
    if "tcp" not in layers:
        number = _last(row, "ip.proto") or _last(row, "ipv6.nxt")
        return protocol_reason(int(number)) if number else NOT_IP
    if not row["tcp.window_size_value"]:
        return TRUNCATED
    if not row["tcp.len"]:
        return BAD_TCP
    return None


def segment(row: dict[str, str], time: int) -> Segment:
    """A segment from tshark's fields; of tunnelled headers the innermost count."""
    area = max(0, _number(row, "tcp.hdr_len") - 20)
    shown = _last(row, "tcp.options")
    known = b"" if shown.startswith("<") else bytes.fromhex(shown)  # <MISSING>: the capture ends before them
    options = tcp_options(known[:area], area)
    inner = [layer for layer in row["frame.protocols"].split(":") if layer in ("ip", "ipv6")][-1]
    v4 = inner == "ip"
    ip_id = int(_last(row, "ip.id"), 0) if v4 else None
    direction = {"1": INBOUND, "2": OUTBOUND}.get(str(_number(row, "frame.packet_flags_direction")), 0)
    direction = {"0": INBOUND, "4": OUTBOUND}.get(_last(row, "sll.pkttype"), direction)
    return Segment(
        int(row["frame.number"]),
        time,
        _last(row, "ip.src" if v4 else "ipv6.src"),
        _last(row, "ip.dst" if v4 else "ipv6.dst"),
        _number(row, "tcp.srcport"),
        _number(row, "tcp.dstport"),
        _number(row, "tcp.seq_raw"),
        _number(row, "tcp.ack_raw"),
        _number(row, "tcp.flags") & 0x1FF,
        _number(row, "tcp.window_size_value"),
        _payload(row, v4),
        int(row["frame.len"]),
        ip_id,
        _number(row, "ip.ttl" if v4 else "ipv6.hlim"),
        _number(row, "ip.dsfield.ecn" if v4 else "ipv6.tclass.ecn"),
        _number(row, "tcp.checksum"),
        direction,
        0,  # tshark's output does not tell what is around in an order that could be followed
        options.mss,
        options.window_scale,
        options.sack_permitted,
        options.mptcp,
        options.ce_bytes,
        options.tsval,
        options.tsecr,
        options.incomplete,
        options.sack,
    )


def _payload(row: dict[str, str], v4: bool) -> int:
    """Bytes of payload by the IP header's length; tshark's own count stops at the end of the frame, and
    where PPPoE says that the packet ends (RFC 2516, 4)."""
    if v4 and _number(row, "ip.len") and not row["pppoe.payload_length"]:
        return _number(row, "ip.len") - _number(row, "ip.hdr_len") - _number(row, "tcp.hdr_len")
    return _number(row, "tcp.len")


def _last(row: dict[str, str], name: str) -> str:
    return row[name].rsplit(";", 1)[-1]


def _number(row: dict[str, str], name: str) -> int:
    return int(_last(row, name) or "0", 0)
