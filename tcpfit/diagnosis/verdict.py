"""The verdict of the accounting: what held a flow back most, who can do something about it, and what would help.

**Rule**: the cause with most time, with one exception. A limit on the window (the receiver's window, the send buffer)
is a ceiling: it is what holds the flow only if the flow stays near it. If losses, timeouts or late segments kept the
flow more than a tenth below the rate that it has at its ceiling, the largest of these is named, however long the
ceiling was reached: to raise it would help less than to remove what keeps the flow from it.
**Confidence**: orders verdicts, it is no probability: how directly the capture shows the cause, less for other places
than the sender's. Under half of the time given to one cause, it is halved: there is no single cause.
**Validation**: tests/diagnosis/test_verdict.py; docs/diagnosis.md has the figures.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tcpfit.diagnosis import accounting
from tcpfit.diagnosis.accounting import Columns
from tcpfit.diagnosis.cost import Cost, accounted
from tcpfit.parameters.intervals import Floats, Ints
from tcpfit.ranking.verdict import CAPTURE_LOSS

CEILINGS = (accounting.WINDOW, accounting.SEND_BUFFER)

DISTURBANCES = (accounting.LOSS, accounting.TIMEOUT, accounting.REORDERING)

BELOW = 0.1
"""Share of the ceiling's rate that is lost before what keeps the flow below it is the verdict."""

LEAST_SHARE = 0.005
"""Causes with less of the time are left out of the list, unless they are all there is."""

WHO = {
    accounting.APPLICATION: "sender",
    accounting.SEND_BUFFER: "sender",
    accounting.WINDOW: "receiver",
    accounting.STALLED: "receiver",
    accounting.LOSS: "network",
    accounting.TIMEOUT: "network",
    accounting.REORDERING: "network",
    accounting.BOTTLENECK: "network",
    accounting.SLOW_START: "sender",
    accounting.UNKNOWN: "unknown",
}

SENTENCES = {
    accounting.APPLICATION: "the sending application had nothing to send",
    accounting.SEND_BUFFER: "the flight stayed flat below every window, as under a send buffer that is too small",
    accounting.WINDOW: "the receiver's advertised window was full",
    accounting.STALLED: "the receiver advertised no window: its application did not read",
    accounting.LOSS: "the window was what losses had left of it",
    accounting.TIMEOUT: "the flow waited for its retransmission timer, or recovered from it",
    accounting.REORDERING: "late segments were taken for lost ones and the window was reduced",
    accounting.BOTTLENECK: "the path was full: a queue stood and the rate was the path's",
    accounting.SLOW_START: "the window was still growing",
    accounting.UNKNOWN: "the capture does not show what held the flow",
}

REMEDIES = {
    accounting.APPLICATION: "have the application write more, or sooner; the network and the receiver had room",
    accounting.SEND_BUFFER: "raise the sender's socket buffer (SO_SNDBUF, tcp_wmem) to at least the rate wanted x RTT",
    accounting.WINDOW: "raise the receiver's socket buffer (SO_RCVBUF, tcp_rmem) to at least the rate wanted x RTT",
    accounting.STALLED: "have the receiving application read faster; a larger buffer only puts the stall off",
    accounting.LOSS: "find where the path loses packets; a shorter round trip helps as well",
    accounting.TIMEOUT: "permit SACK and tail loss probes, and find where the path loses packets in a row",
    accounting.REORDERING: "find what reorders on the path; SACK with timestamps lets the sender undo its reaction",
    accounting.BOTTLENECK: "more rate, or fewer flows that share it; active queue management against the delay",
    accounting.SLOW_START: "use connections again instead of opening new ones, or start with a larger window",
    accounting.UNKNOWN: "capture both directions, whole, at the sender",
}

DIRECTNESS = {
    accounting.APPLICATION: 0.9,
    accounting.SEND_BUFFER: 0.6,
    accounting.WINDOW: 0.95,
    accounting.STALLED: 0.95,
    accounting.LOSS: 0.85,
    accounting.TIMEOUT: 0.9,
    accounting.REORDERING: 0.8,
    accounting.BOTTLENECK: 0.75,
    accounting.SLOW_START: 0.7,
    accounting.UNKNOWN: 0.0,
}

PLACE = {"sender": 1.0, "receiver": 0.95, "middle": 0.9, "unknown": 0.8}

FRAMES = 3
"""Frames named for a cause."""


@dataclass(frozen=True)
class Cause:
    """A cause's part in a flow."""

    cause: str
    time_share: float
    seconds: float
    cost: Cost | None
    confidence: float
    frames: list[int]
    evidence: list[str]
    longest_ns: tuple[int, int]


@dataclass(frozen=True)
class Diagnosis:
    """What held a flow back: the verdict, and the causes by their shares, which sum to one."""

    flow: int
    primary: str
    who: str
    text: str
    remedy: str
    confidence: float
    causes: list[Cause] = field(default_factory=list)
    kernel: dict[str, float] = field(default_factory=dict)


def judge(flow: int, spans: Columns, vantage: str, missed: float) -> Diagnosis:
    """The diagnosis of one flow from its spans; `missed` is the share of its data that the capture missed."""
    spans = _withheld(spans, missed) if missed > CAPTURE_LOSS else spans
    length = (spans["end_ns"] - spans["start_ns"]) / 1e9
    total_s = float(length.sum())
    if total_s <= 0:
        text = "The flow carried data at one instant only; there is no time to account for."
        return Diagnosis(flow, accounting.UNKNOWN, "unknown", text, REMEDIES[accounting.UNKNOWN], 0.0)
    costs = accounted(spans)
    place = PLACE.get(vantage, PLACE["unknown"])
    causes = sorted(
        (_cause(name, spans, length, total_s, costs.get(name), place) for name in dict.fromkeys(spans["cause"])),
        key=lambda c: (-c.seconds, c.cause),
    )
    primary = _primary(causes, spans, length)
    share = next(c.time_share for c in causes if c.cause == primary)
    confidence = DIRECTNESS[primary] * place * (1.0 if share >= 0.5 else 0.5)
    shown = [c for c in causes if c.time_share >= LEAST_SHARE] or causes[:1]
    text = f"in {share:.0%} of the time {SENTENCES[primary]}."
    text = text.capitalize() if primary == accounting.UNKNOWN else f"{WHO[primary].capitalize()}: {text}"
    if missed > CAPTURE_LOSS:
        text += f" The capture missed {missed:.1%} of the data: nothing that rests on losses is claimed."
    kernel = _kernel(spans, length, total_s)
    return Diagnosis(flow, primary, WHO[primary], text, REMEDIES[primary], confidence, shown, kernel)


def _cause(name: str, spans: Columns, length: Floats, total_s: float, cost: Cost | None, place: float) -> Cause:
    own = np.flatnonzero(spans["cause"] == name)
    seconds = float(length[own].sum())
    frames = [n for n in dict.fromkeys(spans["frame"][own].tolist()) if n >= 0]
    longest = own[int(np.argmax(length[own]))]
    stretches = _stretches(spans, own)
    texts = [
        f"{seconds:.3g} s in {stretches} {'stretch' if stretches == 1 else 'stretches'}; "
        f"{spans['rule'][longest]} for {length[longest]:.3g} s at most"
    ]
    if frames:
        more = f" and {len(frames) - FRAMES} more" if len(frames) > FRAMES else ""
        named = ", ".join(str(frame) for frame in frames[:FRAMES])
        texts.append(f"frame{'s' if len(frames) > 1 else ''} {named}{more}")
    where = int(spans["start_ns"][longest]), int(spans["end_ns"][longest])
    return Cause(name, seconds / total_s, seconds, cost, DIRECTNESS[name] * place, frames[:FRAMES], texts, where)


def _stretches(spans: Columns, own: Ints) -> int:
    """How many stretches without a break the spans make."""
    return 1 + int((spans["start_ns"][own][1:] > spans["end_ns"][own][:-1]).sum())


def _primary(causes: list[Cause], spans: Columns, length: Floats) -> str:
    """The cause named, by the rule of the module."""
    first = causes[0].cause
    if first not in CEILINGS:
        return first
    disturbed = [c for c in causes if c.cause in DISTURBANCES]
    ceiling = _rate(spans["cause"] == first, spans, length)
    whole = _rate(np.isin(spans["cause"], (first, *DISTURBANCES)), spans, length)
    if disturbed and ceiling > 0 and 1 - whole / ceiling > BELOW:
        return disturbed[0].cause
    return first


def _rate(which: np.ndarray, spans: Columns, length: Floats) -> float:
    seconds = float(length[which].sum())
    return 8 * float(spans["bytes"][which].sum()) / seconds if seconds > 0 else 0.0


def _withheld(spans: Columns, missed: float) -> Columns:
    """Spans whose cause rests on losses, or on what looks like them, as unknown."""
    rests = np.isin(spans["cause"], (*DISTURBANCES, accounting.BOTTLENECK))
    why = f"the capture missed {missed:.1%} of the data"
    return spans | {
        "cause": np.where(rests, accounting.UNKNOWN, spans["cause"]).astype(object),
        "rule": np.where(rests, why, spans["rule"]).astype(object),
    }


def _kernel(spans: Columns, length: Floats, total_s: float) -> dict[str, float]:
    """Shares of the time as Linux's TCP_INFO counts them: tcpi_busy_time, tcpi_rwnd_limited, tcpi_sndbuf_limited.

    The kernel asks what the next segment waits for, not what has made the window small: a full window counts as the
    receiver's whatever the cause named here, unless the congestion window was smaller still (a timer's silence).
    """
    cause = spans["cause"]
    closed = spans["window_full"] & (cause != accounting.TIMEOUT) & ~spans["waited"]
    which = {
        "busy": ~((cause == accounting.APPLICATION) & (spans["rule"] == accounting.IDLE)),
        "rwnd_limited": closed | (cause == accounting.STALLED),
        "sndbuf_limited": cause == accounting.SEND_BUFFER,
    }
    return {name: float(length[rows].sum()) / total_s for name, rows in which.items()}
