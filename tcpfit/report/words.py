"""Numbers as people read them, for the terminal and for notebooks; `-` is what cannot be had."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from tcpfit.parameters import NAMES

NONE = "-"

FEW, WIDE = 3, 100
"""Fewer observations whose interval spans more than such a factor are too few for one that a reader could use."""

REPLAYED = "timer reckoned from the round trips (RFC 6298): no timeout was seen"


def rate(bps: float | None) -> str:
    """A rate: 1.85 Mb/s."""
    if bps is None:
        return NONE
    value = bps
    for unit in ("b/s", "kb/s", "Mb/s", "Gb/s"):
        if value < 999.5 or unit == "Gb/s":
            return f"{significant(value)} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def without_data(counts: dict[str, int | None]) -> str:
    """Connections that carried no data: 3 refused, 12 unanswered; empty if there are none."""
    return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)


def dropped(drops: int | None) -> str:
    """What the capturing interfaces say that they could not keep up with; empty where it is nothing, or not said."""
    if not drops:
        return ""
    return f"the capturing interfaces say that they dropped {drops:,} more packet{'' if drops == 1 else 's'}"


def size(count: float | None) -> str:
    """A number of bytes: 14.2 MB."""
    if count is None:
        return NONE
    value = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 999.5 or unit == "TB":
            return f"{value:.0f} B" if unit == "B" else f"{significant(value)} {unit}"
        value /= 1000
    raise AssertionError("unreachable")


def seconds(value: float | None) -> str:
    """A time: 101 ms, 60.1 s."""
    if value is None:
        return NONE
    if value == 0:
        return "0 s"
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if abs(value) * factor >= 0.9995:
            return f"{significant(value * factor)} {unit}"
    return f"{value * 1e9:.0f} ns"


def number(value: float | None) -> str:
    """A bare number, three significant digits."""
    return NONE if value is None else significant(value)


def significant(value: float) -> str:
    """Three significant digits, more only in front of the point: 0.00958, 12.3, 45678."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    if size >= 0.9995:
        return f"{value:.2f}"
    if size >= 0.0001:
        return f"{value:.3g}"
    return f"{value:.1e}"


def off(log_ratio: float | None) -> str:
    """How far a prediction is off what was observed, of ln(predicted/observed): +12 %, x35."""
    if log_ratio is None:
        return NONE
    return f"{100 * math.expm1(log_ratio):+.0f} %" if log_ratio < math.log(11) else f"x{math.exp(log_ratio):.0f}"


def quantity(name: str, value: float | None) -> str:
    """The value of a parameter with its unit, where that is a time."""
    unit, _ = NAMES.get(name, ("", ""))
    return seconds(value) if unit == "s" else number(value)


def interval(name: str, estimate: Mapping[str, Any]) -> str:
    """The 95 % interval of a parameter, of which one end may not be known; too few observations say no more than so."""
    low, high, observations = estimate["low"], estimate["high"], estimate["n"]
    if low is None or high is None:
        known = f"at least {quantity(name, low)}" if high is None else f"at most {quantity(name, high)}"
        return NONE if low is high else known
    if observations is not None and observations < FEW and low > 0 and high > WIDE * low:
        return "too few seen"
    return f"{quantity(name, low)} to {quantity(name, high)}"


def meaning(name: str, observations: int | None = None) -> str:
    """What a parameter is, without its source; of so many observations."""
    if name == "rto" and observations == 0:
        return REPLAYED
    _, text = NAMES.get(name, ("", ""))
    return re.split(r" \(|;|, null", text)[0]


def endpoint(address: str, port: int) -> str:
    """10.0.0.1:443, [fd00::1]:443."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def short_endpoint(address: str, port: int, width: int = 22) -> str:
    """An endpoint that fits a column: a long address loses its middle."""
    whole = endpoint(address, port)
    room = width - (len(whole) - len(address))
    if len(address) <= room:
        return whole
    tail = (room - 2) // 2
    return endpoint(f"{address[: room - 2 - tail]}..{address[-tail:]}", port)


def sentence(text: str) -> str:
    """The text with a capital first; the rest stays as it is."""
    return text[:1].upper() + text[1:]


def plural(count: int, noun: str) -> str:
    """1 flow, 2 flows."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
