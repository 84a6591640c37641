"""Stalls: every silence of the sender that is longer than min(2 SRTT, RTO), and why.

**Definition**: a stall begins with a data segment and ends with the flow's next one, as they passed the capture point
(TAPO, Zhou et al. 2015, takes the same threshold). Every expiry of the retransmission timer is listed, even where data
sent while it ran makes the silence shorter. `length` is the silence; a timer is beside it, as it ran.
**Causes**, the first that holds: *zero-window*, no window for more than half of it; *timeout*, the timer ran out and
ended it; *probe*, a tail loss probe ended it; *application*, everything was acknowledged before its middle, and nothing
was sent; *window*, the advertised window had no room; *capture-gap*, data is missing in the capture there; *delay*, an
ACK that came late ended it; *unknown*.
**Details of a timeout** (TAPO's classes): *needless*, nothing was lost; *back-off*, the timer had run out before for
the same data; *double-loss*, a resend of the data was lost; *small-window*, too few segments were outstanding for three
duplicate ACKs; *tail*, the last of what was outstanding was lost; *continuous-loss*, nothing outstanding arrived;
*other*.
**Validation**: tests/diagnosis/test_stalls.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tcpfit.parameters.intervals import Ints

ZERO_WINDOW, TIMEOUT, PROBE, APPLICATION, WINDOW, CAPTURE_GAP, DELAY, UNKNOWN = (
    "zero-window",
    "timeout",
    "probe",
    "application",
    "window",
    "capture-gap",
    "delay",
    "unknown",
)

FEW = 4
"""Segments outstanding below which three duplicate ACKs cannot come (RFC 5681, 3.2)."""

PROMPT_NS = 5_000_000
"""A segment that follows an ACK so soon was let go by it."""

LEAST_S = 1e-3
"""Without a measured round trip or timer, and on paths shorter than this, a silence has to be this long."""


@dataclass(frozen=True)
class Stall:
    """A silence: from `start_ns` to `end_ns`, between two frames (null where the packet is not in the capture)."""

    start_ns: int
    end_ns: int
    cause: str
    detail: str
    outstanding_bytes: int | None
    timer_s: float | None
    frame_before: int | None
    frame_after: int | None

    @property
    def length_s(self) -> float:
        """Seconds of silence."""
        return (self.end_ns - self.start_ns) / 1e9


@dataclass(frozen=True)
class _Packets:
    """Data and ACKs of a flow as they passed: times, frames and unwrapped sequence numbers."""

    time: Ints
    frame: Ints
    left: Ints
    right: Ints
    ack_time: Ints
    ack: Ints
    room: Ints  # right edge of the advertised window, at each ACK; -1 where the scale is unknown


def stalls(flow: dict[str, Any], events: pl.DataFrame, segments: pl.DataFrame) -> list[Stall]:
    """The stalls of one flow, a row of `flows`, in order of time; events and segments may be those of all flows."""
    packets = _packets(flow, segments)
    if len(packets.time) < 2:
        return []
    own = events.filter(pl.col("flow") == flow["flow"]).with_columns(pl.col("kind", "reason").cast(pl.String))
    by_frame = _at_frames(own)
    zero = own.filter(pl.col("kind") == "zero_window").select("time_ns", "value").rows()
    threshold = _threshold(flow)
    found = []
    gaps = np.diff(packets.time)
    highest = np.maximum.accumulate(packets.right)
    for k in range(len(gaps)):
        frame = int(packets.frame[k + 1])
        event = by_frame.get(frame)
        timed_out = event is not None and event["kind"] == "timeout"
        if gaps[k] <= 1e9 * threshold and not timed_out:
            continue
        start, end = int(packets.time[k]), int(packets.time[k + 1])
        seen = int(np.searchsorted(packets.ack_time, end, "right")) - 1
        acked = int(packets.ack[: seen + 1].max(initial=0)) if len(packets.ack) else None
        outstanding = None if acked is None else max(int(highest[k]) - acked, 0)
        cause, detail = _why(k, packets, event, zero, own, highest, outstanding, int(flow["smss_bytes"] or 1))
        timer = float(event["value"]) if timed_out and event and event["value"] is not None else None
        found.append(Stall(start, end, cause, detail, outstanding, timer, int(packets.frame[k]), frame))
    return found


def _threshold(flow: dict[str, Any]) -> float:
    rtt, rto = flow["rtt_mean_s"], flow["rto_s"]
    known = [2 * rtt if isinstance(rtt, float) else None, rto if isinstance(rto, float) else None]
    return max(min((value for value in known if value and value > 0), default=LEAST_S), LEAST_S)


def _at_frames(own: pl.DataFrame) -> dict[int, dict[str, Any]]:
    """Timeouts and probes by the frame of their resend."""
    ended = own.filter(pl.col("kind").is_in(["timeout", "tail_loss_probe"]) & pl.col("frame").is_not_null())
    return {int(row["frame"]): row for row in ended.sort("kind", descending=True).to_dicts()}


def _packets(flow: dict[str, Any], segments: pl.DataFrame) -> _Packets:
    ends = (flow["src"], flow["src_port"], flow["dst"], flow["dst_port"])
    time = pl.col("time_ns").is_between(flow["first_ns"], flow["last_ns"])
    there = segments.filter(time & _from(*ends)).filter(pl.col("payload") > 0).sort("time_ns", maintain_order=True)
    back = segments.filter(time & _from(*ends[2:], *ends[:2])).sort("time_ns", maintain_order=True)
    if not there.height:
        none = np.zeros(0, np.int64)
        return _Packets(none, none, none, none, none, none, none)
    first = int(there["seq"][0])
    left = _unwrapped(there["seq"].to_numpy(), first)
    acks = back.filter((pl.col("flags").cast(pl.Int64) & 16) > 0)
    ack = _unwrapped(acks["ack"].to_numpy(), first)
    shift = flow["window_scale_low"] if flow["window_scale_low"] == flow["window_scale_high"] else None
    if isinstance(shift, int):
        room = ack + (acks["window"].to_numpy().astype(np.int64) << shift)
    else:
        room = np.full(len(ack), -1)
    return _Packets(
        there["time_ns"].to_numpy(),
        there["frame"].to_numpy().astype(np.int64),
        left,
        left + there["payload"].to_numpy().astype(np.int64),
        acks["time_ns"].to_numpy(),
        ack,
        room,
    )


def _from(src: str, src_port: int, dst: str, dst_port: int) -> pl.Expr:
    ends = (pl.col("src") == src) & (pl.col("dst") == dst)
    return ends & (pl.col("src_port") == src_port) & (pl.col("dst_port") == dst_port)


def _unwrapped(numbers: np.ndarray, first: int) -> Ints:
    """32-bit numbers as offsets from `first`, each within 2^31 of the one before."""
    long = numbers.astype(np.int64)
    steps = (np.append(long[:1] - first, long[1:] - long[:-1]) + 2**31) & (2**32 - 1)
    unwrapped: Ints = np.cumsum(steps - 2**31)
    return unwrapped


def _why(
    k: int,
    packets: _Packets,
    event: dict[str, Any] | None,
    zero: list[tuple[int, float]],
    own: pl.DataFrame,
    highest: Ints,
    outstanding: int | None,
    smss: int,
) -> tuple[str, str]:
    """Cause and detail of the silence after the k-th data segment."""
    start, end = int(packets.time[k]), int(packets.time[k + 1])
    shut = sum(max(min(end, t + int(1e9 * (v or 0))) - max(start, t), 0) for t, v in zero)
    if shut > (end - start) / 2:
        return ZERO_WINDOW, "the receiver advertised no window"
    if event is not None and event["kind"] == "timeout":
        return TIMEOUT, _timeout(event, own, packets, k, highest)
    if event is not None:
        return PROBE, "a tail loss probe ended it"
    seen = int(np.searchsorted(packets.ack_time, end, "right"))
    middle = int(np.searchsorted(packets.ack_time, (start + end) // 2, "right"))
    if middle and packets.ack[:middle].max() >= highest[k]:
        return APPLICATION, "everything was acknowledged and nothing was sent"
    if packets.left[k + 1] > highest[k]:
        return CAPTURE_GAP, "data is missing in the capture"
    if seen and 0 <= packets.room[:middle].max(initial=-1) < highest[k] + smss:
        return WINDOW, "the advertised window had no room"
    if seen and packets.ack_time[seen - 1] > start and end - int(packets.ack_time[seen - 1]) <= PROMPT_NS:
        return DELAY, "an ACK came late"
    if outstanding == 0:
        return APPLICATION, "everything was acknowledged and nothing was sent"
    return UNKNOWN, "nothing in the capture shows the cause"


def _timeout(
    event: dict[str, Any],
    own: pl.DataFrame,
    packets: _Packets,
    k: int,
    highest: Ints,
) -> str:
    """Why the timer had to run out (TAPO's classes)."""
    left, when = int(event["left"]), int(event["time_ns"])
    if own.filter((pl.col("kind") == "spurious") & (pl.col("frame") == event["frame"])).height:
        return "needless"
    if int(event["segments"] or 0) > 0:
        return "back-off"
    lost = own.filter((pl.col("kind") == "loss") & (pl.col("time_ns") < when))
    if lost.filter(pl.col("left") == left).height > 1:
        return "double-loss"
    flight = event["flight"]
    if isinstance(flight, float) and flight < FEW:
        return "small-window"
    if packets.right[k + 1] >= highest[k]:
        return "tail"
    behind = lost.filter(pl.col("left") >= left).height
    if isinstance(flight, float) and behind >= flight - 1:
        return "continuous-loss"
    return "other"
