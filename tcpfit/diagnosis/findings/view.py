"""One flow as the rules see it: its rows of the tables, its packets both ways, its handshake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcpfit import arguments
from tcpfit.diagnosis.connections import segments_of
from tcpfit.exceptions import InvalidParameter
from tcpfit.parameters.evidence import Evidence

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

FIN, SYN, RST, ACK = 1, 2, 4, 16
FRAMES = 20
"""Frames that a finding names at most."""


@dataclass(frozen=True)
class Handshake:
    """The last SYN before the first SYN-ACK, and that SYN-ACK: rows of the segments table."""

    syn: dict[str, Any]
    syn_ack: dict[str, Any]

    @property
    def frames(self) -> tuple[int, int]:
        return self.syn["frame"], self.syn_ack["frame"]

    @property
    def options_whole(self) -> bool:
        """No option was cut by the snapshot length: what is not there was not sent."""
        return not (self.syn["options_incomplete"] or self.syn_ack["options_incomplete"])


class View:
    """A flow of an analysis. Packets are there only if the analysis has its segments.

    Raises InvalidParameter for a flow that the capture does not have.
    """

    def __init__(self, analysis: Analysis, flow: int) -> None:
        self.flow: dict[str, Any] = arguments.flow_rows(analysis, flow).to_dicts()[0]
        self.analysis = analysis

    def __getitem__(self, column: str) -> Any:
        """A column of the flow's row."""
        return self.flow[column]

    @cached_property
    def other(self) -> dict[str, Any] | None:
        """The row of the opposite direction; None if it carried nothing."""
        same = pl.col("connection") == self["connection"]
        rows = self.analysis.conversations.flows.filter(same & (pl.col("flow") != self["flow"])).to_dicts()
        return rows[0] if rows else None

    @property
    def larger(self) -> bool:
        """This direction carried more data than the opposite one: what is said of a connection is said here."""
        other = self.other
        if other is None:
            return True
        return (self["data_bytes"], -self["flow"]) > (other["data_bytes"], -other["flow"])

    @property
    def duration_s(self) -> float:
        return float(self["last_ns"] - self["first_ns"]) / 1e9

    @cached_property
    def events(self) -> pl.DataFrame:
        return self.analysis.events.filter(pl.col("flow") == self["flow"])

    @cached_property
    def alone(self) -> Evidence:
        """The evidence of this flow."""
        flows = self.analysis.flows.filter(pl.col("flow") == self["flow"])
        return Evidence(flows, self.events, self.rounds)

    def of(self, kind: str) -> pl.DataFrame:
        """The flow's events of a kind, by time."""
        return self.events.filter(pl.col("kind") == kind).sort("time_ns")

    @cached_property
    def rounds(self) -> pl.DataFrame:
        return self.analysis.rounds.filter(pl.col("flow") == self["flow"]).sort("round")

    @cached_property
    def sent(self) -> pl.DataFrame | None:
        """Packets of the data sender, by time; None without segments. Sequence numbers do not wrap: `left`, `right`."""
        packets = self._from("src")
        if packets is None:
            return None
        left = unwrapped(packets["seq"].to_numpy(), int(packets["seq"][0]))
        return packets.with_columns(left=left, right=left + packets["payload"].to_numpy())

    @cached_property
    def received(self) -> pl.DataFrame | None:
        """Packets of its peer, by time; None without segments. `edge` is the ACK on the scale of `sent.left`."""
        packets, sent = self._from("dst"), self.sent
        if packets is None or sent is None:
            return packets
        flags = packets["flags"].to_numpy()
        packets = packets.filter((flags & ACK > 0) & (flags & RST == 0))
        if packets.is_empty():
            return packets
        return packets.with_columns(edge=unwrapped(packets["ack"].to_numpy(), int(sent["seq"][0])))

    @cached_property
    def data(self) -> pl.DataFrame | None:
        """Packets of the data sender with payload, copies made by the capture or the network left out."""
        if self.sent is None:
            return None
        copies = self.of("duplicate")["frame"].drop_nulls()
        return self.sent.filter((pl.col("payload") > 0) & ~pl.col("frame").is_in(copies.implode()))

    @cached_property
    def packets(self) -> pl.DataFrame | None:
        """Packets of the connection, both ways, by frame; None without segments."""
        try:
            found = segments_of(self.analysis, self.flow)
        except InvalidParameter:
            return None
        return None if found.is_empty() else found

    def _from(self, end: str) -> pl.DataFrame | None:
        """Packets of the connection that one end sent, `src` or `dst`; None without segments, or without those."""
        if self.packets is None:
            return None
        sent = self.packets.filter((pl.col("src") == self[end]) & (pl.col("src_port") == self[f"{end}_port"]))
        return None if sent.is_empty() else sent

    @cached_property
    def both_ways(self) -> tuple[pl.DataFrame, pl.DataFrame] | None:
        """All packets of the data sender, and all of its peer; None without segments, or without those of one."""
        ahead, back = self.sent, self._from("dst")
        return None if ahead is None or back is None else (ahead, back)

    @cached_property
    def syns(self) -> pl.DataFrame | None:
        """SYNs and SYN-ACKs of the connection, by time; None without segments."""
        return None if self.packets is None else self.packets.filter(pl.col("flags") & SYN > 0)

    @cached_property
    def handshake(self) -> Handshake | None:
        """SYN and SYN-ACK; None if the capture lacks one."""
        if self.syns is None:
            return None
        answers = self.syns.filter(pl.col("flags") & ACK > 0)
        if answers.is_empty():
            return None
        answer = answers.row(0, named=True)
        asked = self.syns.filter(
            (pl.col("flags") & ACK == 0) & (pl.col("frame") < answer["frame"]) & (pl.col("seq") == answer["ack"] - 1)
        )
        return Handshake(asked.row(-1, named=True), answer) if asked.height else None

    def end_of(self, segment: Mapping[str, Any]) -> str:
        """Which end of the flow sent a segment of its connection: `src` or `dst`."""
        sender = segment["src"] == self["src"] and segment["src_port"] == self["src_port"]
        return "src" if sender else "dst"

    def host(self, end: str) -> str:
        """The address of an end, `src` or `dst`; with its port where both ends have that address."""
        address: str = self[end]
        if self["src"] != self["dst"]:
            return address
        return f"[{address}]:{self[f'{end}_port']}" if ":" in address else f"{address}:{self[f'{end}_port']}"

    def at(self, end: str) -> bool | None:
        """The capture was taken next to the host at that end of the flow; None if it does not show where."""
        if self["vantage"] == "sender":
            return bool(self[end] == self["src"])
        if self["vantage"] == "receiver":
            return bool(self[end] == self["dst"])
        return False if self["vantage"] == "middle" else None

    def show(self, condition: str = "") -> str:
        """Wireshark's display filter for the connection, with a further condition."""
        return of_flow(self.flow) + (f" && {condition}" if condition else "")

    def ahead(self, condition: str) -> str:
        """Wireshark's display filter for packets of the data sender that meet a condition."""
        ip = "ipv6" if ":" in self["src"] else "ip"
        return self.show(f"{ip}.src == {self['src']} && tcp.srcport == {self['src_port']} && {condition}")

    def back(self, condition: str) -> str:
        """Wireshark's display filter for packets of its peer that meet a condition."""
        ip = "ipv6" if ":" in self["src"] else "ip"
        return self.show(f"{ip}.src == {self['dst']} && tcp.srcport == {self['dst_port']} && {condition}")


def unwrapped(numbers: np.ndarray, base: int) -> np.ndarray:
    """32-bit sequence numbers as offsets from `base` that do not wrap (RFC 9293, 3.4)."""
    numbers = numbers.astype(np.uint32)
    steps = np.diff(numbers).astype(np.int32).astype(np.int64)
    first = int(np.int32(np.uint32((int(numbers[0]) - base) % 2**32)))
    return first + np.concatenate(([0], np.cumsum(steps)))


def named(frames: Iterable[int | None]) -> tuple[int, ...]:
    """The first few frames that are known, in order, each once."""
    return tuple(sorted({int(frame) for frame in frames if frame is not None}))[:FRAMES]


def of_flow(flow: Mapping[str, Any]) -> str:
    """Wireshark's display filter for both directions of the connection of a flow."""
    addresses = _both("ipv6" if ":" in flow["src"] else "ip", ("addr", "src", "dst"), flow["src"], flow["dst"])
    return f"{addresses} && {_both('tcp', ('port', 'srcport', 'dstport'), flow['src_port'], flow['dst_port'])}"


def _both(layer: str, fields: tuple[str, str, str], source: object, target: object) -> str:
    """Packets between two ends; between an end and itself, such as the loopback's, both fields have to be that."""
    any_of_them, first, second = fields
    if source == target:
        return f"{layer}.{first} == {source} && {layer}.{second} == {source}"
    return f"{layer}.{any_of_them} == {source} && {layer}.{any_of_them} == {target}"


def in_frames(frames: Iterable[int]) -> str:
    """Wireshark's display filter for these frames."""
    return "frame.number in {" + ", ".join(str(frame) for frame in frames) + "}"


def duration(seconds: float) -> str:
    """A time in words: 1.25 s, 40 ms, 0.2 ms."""
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"
    return f"{seconds * 1e3:.3g} ms"


def rate(bits_per_s: float) -> str:
    """A rate in words: 3.1 Mbit/s."""
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bits_per_s >= size:
            return f"{bits_per_s / size:.3g} {unit}"
    return f"{bits_per_s:.3g} bit/s"


def times(count: int, what: str) -> str:
    """A count with its noun: 1 period, 3 periods."""
    return f"{count} {what}" + ("" if count == 1 else "s")
