"""Stalls: every silence of the sender that is longer than min(2 SRTT, RTO), and why.

**Definition**: a stall begins with a data segment and ends with the flow's next one, as they passed the capture point
(TAPO, Zhou et al. 2015, takes the same threshold). Every expiry of the retransmission timer is listed, even where data
sent while it ran makes the silence shorter. `length` is the silence; a timer is beside it, as it ran.
**Causes**, the first that holds: *zero-window*, no window for more than half of it; *timeout*, the timer ran out and
ended it; *probe*, a tail loss probe ended it; *delay*, the path held the data that ended it, by the sender's time
stamps; *application*, everything was acknowledged before its middle, and nothing was sent; *window*, the advertised
window had no room; *capture-gap*, data is missing in the capture there; *delay*, data that had been overtaken came in
it, and their ACK let the next go, or an ACK that came late ended it; *unknown*.
**Details of a timeout** (TAPO's classes, but for the first two): *unanswered*, it and at least three resends before it
or after have no answer to the end; *ack-lost*, it resends what an ACK in the capture covers, so that the sender did not
get that; *needless*, nothing was lost; *back-off*, the timer had run out before for the same data; *double-loss*, a
resend of the data was lost; *small-window*, too few segments were outstanding for three duplicate ACKs; *tail*, the
last of what was outstanding was lost; *continuous-loss*, nothing outstanding arrived; *other*.
**At the receiver** data that was lost before is not there: a silence begins with the last transmission that the losses
show, and may begin later where what was sent last left no trace. A late segment was sent before those that overtook it,
and a copy was not sent at all: neither ends a silence; old data that by their timestamp are no younger than what came
before are one or the other. A resend that was lost before has no frame, and the run of its timer is its length.
**Validation**: tests/diagnosis/test_stalls.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcpfit.diagnosis.reactions import DOUBT
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
"""On paths shorter than this a silence has to be this long."""

FINE_S = 0.011
"""Timestamps that tick more slowly do not tell when a segment was sent: hosts have 1, 4 and 10 ms."""

UNKNOWN_S = 1.0
"""Where nothing shows how long a round trip is: the timer of a sender that does not know it either (RFC 6298, 2.1)."""


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
    stamp: Ints  # when each data segment was sent by the sender's timestamps, ns since some time; empty without them
    late: Ints  # when segments came that others had overtaken
    room: Ints  # right edge of the advertised window, at each ACK; -1 where the scale is unknown
    heard_ns: int  # the last packet of the other end


@dataclass(frozen=True)
class _Evidence:
    """What the causes of a flow's stalls are found from."""

    packets: _Packets
    events: pl.DataFrame
    highest: Ints  # after each data segment
    zero: list[tuple[int, float]]  # periods without a window: time and length
    unneeded: set[int]  # frames that send again what the capture saw acknowledged
    threshold_ns: float  # silences that are no longer are no stalls
    silent_ns: float  # from here on nothing came back, and the sender had to doubt that anything would
    smss: int


def stalls(flow: dict[str, Any], events: pl.DataFrame, segments: pl.DataFrame) -> list[Stall]:
    """The stalls of one flow, a row of `flows`, in order of time; events may be those of all flows, segments are those
    of its connection (`connections.segments_of`)."""
    own = events.filter(pl.col("flow") == flow["flow"]).with_columns(pl.col("kind", "reason").cast(pl.String))
    packets = _packets(flow, segments, own)
    if len(packets.time) < 2:
        return []
    threshold_ns = 1e9 * _threshold(flow, own)
    evidence = _evidence(flow, own, packets, threshold_ns)
    by_frame, unseen = _at_frames(own), _sent_unseen(own)
    expired = [frame for frame, event in by_frame.items() if event["kind"] == "timeout"]
    long: NDArray[np.bool_] = np.diff(packets.time) > threshold_ns
    found = _resends_unseen(own, packets)
    for k in np.flatnonzero(long | np.isin(packets.frame[1:], expired)).tolist():
        frame = int(packets.frame[k + 1])
        event = by_frame.get(frame)
        start, end = int(packets.time[k]), int(packets.time[k + 1])
        seen = int(np.searchsorted(packets.ack_time, end, "right")) - 1
        acked = int(packets.ack[: seen + 1].max(initial=0)) if len(packets.ack) else None
        outstanding = None if acked is None else max(int(evidence.highest[k]) - acked, 0)
        cause, detail = _why(k, event, evidence, outstanding)
        timer = float(event["value"]) if cause == TIMEOUT and event and event["value"] is not None else None
        last = int(unseen[max(int(np.searchsorted(unseen, end)) - 1, 0)]) if len(unseen) else start
        start = last if start < last < end else start
        found.append(Stall(start, end, cause, detail, outstanding, timer, int(packets.frame[k]), frame))
    return sorted(found, key=lambda stall: stall.end_ns)


def _evidence(flow: dict[str, Any], own: pl.DataFrame, packets: _Packets, threshold_ns: float) -> _Evidence:
    unneeded = own.filter((pl.col("kind") == "spurious") & (pl.col("reason") == "unneeded"))["frame"].to_list()
    zero = own.filter(pl.col("kind") == "zero_window").select("time_ns", "value").rows()
    last = own.filter((pl.col("kind") == "timeout") & (pl.col("time_ns") > packets.heard_ns))["segments"].max()
    silent_ns = packets.heard_ns if isinstance(last, int) and last >= DOUBT else np.inf
    highest: Ints = np.maximum.accumulate(packets.right)
    smss = int(flow["smss_bytes"] or 1)
    return _Evidence(packets, own, highest, zero, set(unneeded), threshold_ns, silent_ns, smss)


def _sent_unseen(own: pl.DataFrame) -> Ints:
    """When data was sent that was lost before it passed here, as far as the losses show, in order of time."""
    lost = own.filter((pl.col("kind") == "loss") & pl.col("frame").is_null())["time_ns"].sort()
    return np.asarray(lost.to_numpy())


def _resends_unseen(own: pl.DataFrame, packets: _Packets) -> list[Stall]:
    """Stalls that a resend ended which was lost before it passed here: the timer's run is all that is known."""
    found = []
    for row in own.filter((pl.col("kind") == "timeout") & pl.col("frame").is_null()).to_dicts():
        end = int(row["time_ns"])
        before = int(np.searchsorted(packets.time, end)) - 1
        start = end - int(1e9 * (row["value"] or 0.0))
        frame = int(packets.frame[before]) if before >= 0 else None
        detail = "back-off" if int(row["segments"] or 0) > 0 else "other"
        found.append(Stall(start, end, TIMEOUT, detail, None, row["value"], frame, None))
    return found


def _threshold(flow: dict[str, Any], own: pl.DataFrame) -> float:
    """Seconds: two round trips or the timer, the shorter. Without ACKs the handshake's round trip stands in, or what is
    no shorter than one: the least time from a segment to its resend."""
    rtt, rto = flow["rtt_mean_s"], flow["rto_s"]
    known = _positive([2 * rtt if isinstance(rtt, float) else None, rto])
    if not known:
        resent = own.filter(pl.col("kind") == "retransmission")["value"].min()
        known = [2 * value for value in _positive([flow["handshake_rtt_s"], resent])[:1]]
    return max(min(known, default=UNKNOWN_S), LEAST_S)


def _positive(values: list[Any]) -> list[float]:
    return [value for value in values if isinstance(value, float) and value > 0]


def _at_frames(own: pl.DataFrame) -> dict[int, dict[str, Any]]:
    """Timeouts and probes by the frame of their resend."""
    ended = own.filter(pl.col("kind").is_in(["timeout", "tail_loss_probe"]) & pl.col("frame").is_not_null())
    return {int(row["frame"]): row for row in ended.sort("kind", descending=True).to_dicts()}


def _packets(flow: dict[str, Any], segments: pl.DataFrame, own: pl.DataFrame) -> _Packets:
    """What the flow sent, in the order in which it was sent: what was overtaken ends no silence, nor does a copy."""
    ends = (flow["src"], flow["src_port"], flow["dst"], flow["dst_port"])
    time = pl.col("time_ns").is_between(flow["first_ns"], flow["last_ns"])
    late, copies = (own.filter(pl.col("kind") == kind) for kind in ("reordering", "duplicate"))
    apart = pl.concat([late["frame"], copies["frame"]]).drop_nulls()
    there = segments.filter(time & _from(*ends) & (pl.col("payload") > 0) & ~pl.col("frame").is_in(apart.implode()))
    there = there.sort("time_ns", maintain_order=True)
    back = segments.filter(time & _from(*ends[2:], *ends[:2])).sort("time_ns", maintain_order=True)
    if not there.height:
        none = np.zeros(0, np.int64)
        return _Packets(none, none, none, none, none, none, none, none, none, 0)
    first = int(there["seq"][0])
    left = _unwrapped(there["seq"].to_numpy(), first)
    right = left + there["payload"].to_numpy().astype(np.int64)
    stamp = _stamps(flow, there)
    if len(stamp):  # old data that are no younger than what came before are a copy, or late
        highest, newest = np.maximum.accumulate(right), np.maximum.accumulate(stamp)
        kept = np.append(True, (right[1:] > highest[:-1]) | (stamp[1:] > newest[:-1]))
        there, left, right, stamp = there.filter(pl.Series(kept)), left[kept], right[kept], stamp[kept]
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
        right,
        acks["time_ns"].to_numpy(),
        ack,
        stamp,
        late["time_ns"].sort().to_numpy(),
        room,
        int(back["time_ns"].max() or 0),  # type: ignore[arg-type]
    )


def _stamps(flow: dict[str, Any], there: pl.DataFrame) -> Ints:
    """When each of these segments was sent by the sender's clock; empty where that is not in all of them, too coarse,
    or the capture was taken at the sender, where it says nothing new."""
    tick = flow["stamp_tick_s"]
    if flow["vantage"] == "sender" or not tick or tick > FINE_S or there["tsval"].null_count():
        return np.zeros(0, np.int64)
    values = there["tsval"].to_numpy()
    stamps: Ints = (1e9 * tick * _unwrapped(values, int(values[0]))).astype(np.int64)
    return stamps


def _from(src: str, src_port: int, dst: str, dst_port: int) -> pl.Expr:
    ends = (pl.col("src") == src) & (pl.col("dst") == dst)
    return ends & (pl.col("src_port") == src_port) & (pl.col("dst_port") == dst_port)


def _unwrapped(numbers: np.ndarray, first: int) -> Ints:
    """32-bit numbers as offsets from `first`, each within 2^31 of the one before."""
    long = numbers.astype(np.int64)
    steps = (np.append(long[:1] - first, long[1:] - long[:-1]) + 2**31) & (2**32 - 1)
    unwrapped: Ints = np.cumsum(steps - 2**31)
    return unwrapped


def _why(k: int, event: dict[str, Any] | None, evidence: _Evidence, outstanding: int | None) -> tuple[str, str]:
    """Cause and detail of the silence after the k-th data segment."""
    packets, highest = evidence.packets, evidence.highest
    start, end = int(packets.time[k]), int(packets.time[k + 1])
    shut = sum(max(min(end, t + int(1e9 * (v or 0))) - max(start, t), 0) for t, v in evidence.zero)
    if shut > (end - start) / 2:
        return ZERO_WINDOW, "the receiver advertised no window"
    if event is not None and event["kind"] == "timeout":
        return TIMEOUT, "unanswered" if start >= evidence.silent_ns else _timeout(k, event, evidence, outstanding)
    if event is not None:
        return PROBE, "a tail loss probe ended it"
    if int(packets.frame[k + 1]) in evidence.unneeded:
        return TIMEOUT, "ack-lost"
    if len(packets.stamp) and packets.stamp[k + 1] - packets.stamp[k] < evidence.threshold_ns:
        return DELAY, "the path held the data"
    came = packets.late[(packets.late > start) & (packets.late < end)]
    since = int(came[-1]) if len(came) else start  # what had been overtaken was not acknowledged before
    let_go = len(came) > 0 and end - since <= evidence.threshold_ns
    seen = int(np.searchsorted(packets.ack_time, end, "right"))
    middle = int(np.searchsorted(packets.ack_time, (since + end) // 2, "right"))
    if middle and packets.ack[:middle].max() >= highest[k] and not let_go:
        return APPLICATION, "everything was acknowledged and nothing was sent"
    if packets.left[k + 1] > highest[k]:
        return CAPTURE_GAP, "data is missing in the capture"
    half = int(np.searchsorted(packets.ack_time, (start + end) // 2, "right"))
    if seen and 0 <= packets.room[:half].max(initial=-1) < highest[k] + evidence.smss:
        return WINDOW, "the advertised window had no room"
    if let_go:
        return DELAY, "late data came, and their ACK let the next go"
    if seen and packets.ack_time[seen - 1] > start and end - int(packets.ack_time[seen - 1]) <= PROMPT_NS:
        return DELAY, "an ACK came late"
    if outstanding == 0:
        return APPLICATION, "everything was acknowledged and nothing was sent"
    return UNKNOWN, "nothing in the capture shows the cause"


def _acknowledged(k: int, right: int, packets: _Packets) -> bool:
    """An ACK of these bytes passed in the first half of the silence after the k-th data segment, or before."""
    middle = (int(packets.time[k]) + int(packets.time[k + 1])) // 2
    passed = int(np.searchsorted(packets.ack_time, middle, "right"))
    return bool(packets.ack[:passed].max(initial=0) >= right)


def _timeout(k: int, event: dict[str, Any], evidence: _Evidence, outstanding: int | None) -> str:
    """Why the timer had to run out (TAPO's classes)."""
    own = evidence.events
    left, when = int(event["left"]), int(event["time_ns"])
    if own.filter((pl.col("kind") == "spurious") & (pl.col("frame") == event["frame"])).height:
        return "ack-lost" if _acknowledged(k, int(event["right"]), evidence.packets) else "needless"
    if int(event["segments"] or 0) > 0:
        return "back-off"
    lost = own.filter((pl.col("kind") == "loss") & (pl.col("time_ns") < when))
    if lost.filter(pl.col("left") == left).height > 1:
        return "double-loss"
    flight = event["flight"]
    # what has brought duplicate ACKs is no part of the flight, and was outstanding
    few = flight if outstanding is None else outstanding / evidence.smss
    if isinstance(few, float) and few < FEW:
        return "small-window"
    if evidence.packets.right[k + 1] >= evidence.highest[k]:
        return "tail"
    behind = lost.filter(pl.col("left") >= left).height
    if isinstance(flight, float) and behind >= flight - 1:
        return "continuous-loss"
    return "other"
