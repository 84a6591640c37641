"""Wireshark display filters that show what a report talks about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tcpfit.diagnosis.findings.view import in_frames


def of_frames(frames: Iterable[int | None]) -> str:
    """These frames, without those that are not in the capture; '' where none is left."""
    there = sorted({frame for frame in frames if frame is not None})
    return in_frames(there) if there else ""


def between_frames(first: int | None, last: int | None) -> str:
    """The frames from the first to the last, of whatever flow; one alone where the other is not in the capture."""
    if first is None or last is None:
        return of_frames((first, last))
    return f"frame.number >= {first} && frame.number <= {last}"


def of_flow(flow: Mapping[str, Any]) -> str:
    """Both directions of the connection of a flow, given with `src`, `src_port`, `dst` and `dst_port`."""
    addresses = _both("ipv6" if ":" in flow["src"] else "ip", ("addr", "src", "dst"), flow["src"], flow["dst"])
    return f"{addresses} && {_both('tcp', ('port', 'srcport', 'dstport'), flow['src_port'], flow['dst_port'])}"


def _both(layer: str, fields: tuple[str, str, str], source: object, target: object) -> str:
    """Packets between two ends; between an end and itself, such as the loopback's, both fields have to be that."""
    any_of_them, first, second = fields
    if source == target:
        return f"{layer}.{first} == {source} && {layer}.{second} == {source}"
    return f"{layer}.{any_of_them} == {source} && {layer}.{any_of_them} == {target}"
