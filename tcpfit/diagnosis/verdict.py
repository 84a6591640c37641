"""The verdict of the accounting: what held a flow back most, who can do something about it, and what would help.

**Rule**: the cause with most time, with one exception. A limit on the window (the receiver's window, the send buffer)
or on the rate (the path's) is a ceiling: it is what holds the flow only if the flow stays near it. If losses, timeouts
or late segments kept the flow more than a tenth below the rate that it has at its ceiling, the largest of these is
named, however long the ceiling was reached: to raise it would help less than to remove what keeps the flow from it.
**Confidence**: orders verdicts, it is no probability: how directly the capture shows the cause, less for other places
than the sender's. Under half of the time given to one cause, it is halved: there is no single cause.
**Validation**: tests/diagnosis/test_verdict.py; docs/diagnosis.md has the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from tcpfit.diagnosis.causes import (
    ACK_ASTRAY,
    AFTER_MARKS,
    AHEAD,
    APPLICATION,
    AWAITING,
    BOTTLENECK,
    BY_CLOCK,
    CAUSES,
    IDLE,
    LOSS,
    MARKED,
    NEEDLESS,
    ONE_FLIGHT,
    OVERFLOWED,
    PERHAPS_FULL,
    REORDERING,
    SEND_BUFFER,
    SLOW_START,
    SMALL_WAITS,
    STALLED,
    TIMEOUT,
    TIMER_RAN,
    TURN,
    UNANSWERED,
    UNKNOWN,
    WINDOW,
)
from tcpfit.diagnosis.cost import CEILINGS, Cost, accounted
from tcpfit.parameters.intervals import Floats, Ints, summed
from tcpfit.ranking.verdict import CAPTURE_LOSS

SAMPLED = 0.25
"""Share of the data that no capture misses by accident."""

DISTURBANCES = (LOSS, TIMEOUT, REORDERING)

BELOW = 0.1
"""Share of the ceiling's rate that is lost before what keeps the flow below it is the verdict."""

LEAST_SHARE = 0.005
"""Causes with less of the time are left out of the list, unless they are all there is."""

WHO = {
    APPLICATION: "sender",
    SEND_BUFFER: "sender",
    WINDOW: "receiver",
    STALLED: "receiver",
    LOSS: "network",
    TIMEOUT: "network",
    REORDERING: "network",
    BOTTLENECK: "network",
    SLOW_START: "sender",
    UNKNOWN: "unknown",
}

SENTENCES = {
    APPLICATION: "the sending application had nothing to send",
    SEND_BUFFER: "the flight stayed flat below every window, as under a send buffer, or an application's own window",
    WINDOW: "the receiver's advertised window was full",
    STALLED: "the receiver advertised no window: its application did not read",
    LOSS: "the window was what losses had left of it",
    TIMEOUT: "the flow waited for its retransmission timer, or recovered from it",
    REORDERING: "late segments were taken for lost ones and the window was reduced",
    BOTTLENECK: "the path was full: a queue stood and the rate was the path's",
    SLOW_START: "the window was still growing",
    UNKNOWN: "the capture does not show what held the flow",
}

REMEDIES = {
    APPLICATION: "have the application write more, or sooner; the network and the receiver had room",
    SEND_BUFFER: "raise the sender's socket buffer (SO_SNDBUF, tcp_wmem) to at least the rate wanted x RTT",
    WINDOW: "raise the receiver's socket buffer (SO_RCVBUF, tcp_rmem) to at least the rate wanted x RTT",
    STALLED: "have the receiving application read faster; a larger buffer only puts the stall off",
    LOSS: "find where the path loses packets; a shorter round trip helps as well",
    TIMEOUT: "permit SACK and tail loss probes, and find where the path loses packets in a row",
    REORDERING: "find what reorders on the path; SACK with timestamps lets the sender undo its reaction",
    BOTTLENECK: "more rate, or fewer flows that share it; active queue management against the delay",
    SLOW_START: "use connections again instead of opening new ones, or start with a larger window",
    UNKNOWN: "capture both directions, whole, at the sender",
}

AWAITED = (
    "receiver",
    "the sender had sent all that it was asked for and waited for the other end's next data",
    "have the other end send it sooner, be it a request or an answer, or more at a time; the network and the sender "
    "had room",
)
"""Who, sentence and remedy of application-limited, where the sender waited for the other end most of that time."""

IN_TURN = (
    "receiver",
    "the ends took turns: each flight came only after the other end's data, which acknowledged all before",
    "ask for more at a time, or before the answer is there (pipelining, several connections), or shorten the round "
    "trip; the network and the buffers had room",
)
"""The same where it waited so round after round: a round trip each, however large the flight."""

NAGLE = (
    "sender",
    "less than a segment was held until all before it was acknowledged, as by Nagle's algorithm",
    "write a message with one call (writev, a buffer, TCP_CORK) or set TCP_NODELAY; an ACK that the receiver delays "
    "makes each wait longer",
)
"""The same of application-limited, where short segments waited for ACKs."""

IN_VAIN = (
    "the flow waited for its retransmission timer, or recovered from it, mostly though its data had arrived: the ACKs "
    "were lost or late, or the timer too short",
    "find what loses or delays ACKs on the way back, or the data; tail loss probes shorten the wait for a lost ACK, "
    "timestamps let the sender undo a needless reaction",
)
"""Sentence and remedy of timeout-limited, where most of the time of timers was that of needless ones."""

WITH_SACK = "enable tail loss probes, and find where the path loses packets in a row; SACK is permitted"
WITH_PROBES = "find where the path loses packets in a row; SACK is permitted, and tail loss probes are sent"
"""Remedies of timeout-limited, where the first half of the usual one has been taken."""

AT_ONCE = (
    "sender",
    "all that was sent was under way at once: it took as long as the path takes",
    "nothing of the window held it; a shorter round trip, and connections that are used again spare their handshakes",
)
"""The same of slow-start-limited, where one flight carried the flow."""

RECOVERING = (
    "the flow recovered from the losses of a queue that it had filled itself",
    "permit SACK, which recovers from many losses in a few round trips; active queue management, which loses fewer",
)
"""Sentence and remedy of bottleneck-limited, where most of it is such recoveries."""

BY_MARKS = (
    "congestion marks had reduced the window: a router on the path said that its queue grew (ECN)",
    "find the router that marks, and whether it marks sooner than its queue needs; more rate, or fewer flows that "
    "share it",
)
"""Sentence and remedy of bottleneck-limited, where the sender's answers to marks held it."""

OWN_CLOCK = (
    "data went by a clock of the sender's own, and neither a window nor losses held it",
    "see whether the application has more to send; a sender that paces (BBR) goes by the rate that it has measured",
)
"""Sentence and remedy of unknown, where the sender went by a clock most of that time."""

MAYBE_FULL = (
    "data came as fast as the path sends them, and nothing tells whether a queue grew: the path may have held it, "
    "or the sender",
    "capture at the sender, or turn timestamps on: either shows the round trips",
)
"""The same where round trips away from the sender could only be estimated."""

ACKS_AHEAD = (
    "the ACKs come before the data that they acknowledge, and nothing is claimed: the directions were captured by "
    "different clocks, or are out of order",
    "capture both directions at one place, by one clock; put the packets of a file in order with reordercap",
)
"""The same where the times of the two directions contradict each other."""

GONE = "look whether the receiver was switched off or out of reach, or capture there"
"""Remedy where nothing came back any more."""

DIRECTNESS = {
    APPLICATION: 0.9,
    SEND_BUFFER: 0.6,
    WINDOW: 0.95,
    STALLED: 0.95,
    LOSS: 0.85,
    TIMEOUT: 0.9,
    REORDERING: 0.8,
    BOTTLENECK: 0.75,
    SLOW_START: 0.7,
    UNKNOWN: 0.0,
}

PLACE = {"sender": 1.0, "receiver": 0.95, "middle": 0.9, "unknown": 0.8}

FRAMES = 3
"""Frames named for a cause."""

WORTH_SAYING = 0.1
"""Of the time: so much that the other end is behind, or is not, or that is known of a flow of which most is not, is
said."""


@dataclass(frozen=True)
class Cause:
    """A cause's part in a flow."""

    cause: str
    time_share: float
    seconds: float
    since_s: float
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

    @property
    def main(self) -> Cause | None:
        """The primary cause's part, if it is one of `causes`."""
        return next((cause for cause in self.causes if cause.cause == self.primary), None)


def judge(
    spans: pl.DataFrame, flow: Ints, first_ns: Ints, vantage: Sequence[str], missed: Floats
) -> dict[int, Diagnosis]:
    """The diagnosis of every flow of `flow`, numbers in order, from spans in order of flow and time.

    `first_ns` is the time of each one's first data, `vantage` where the capture was taken, seen from each, `missed` the
    share of each one's data that it missed, infinite where it has most of it twice.
    """
    parts = _Parts(spans, flow, first_ns, missed)
    costs = parts.costs()
    return {
        number: parts.judged(position, number, *given)
        for position, (number, *given) in enumerate(zip(flow.tolist(), vantage, missed.tolist(), costs, strict=True))
    }


def attempted(diagnosis: Diagnosis, syns: int, completeness: int) -> Diagnosis:
    """The diagnosis of a flow that is none but for its SYN, sent so often; `completeness` as in `tcpfit.schema`."""
    if completeness & SYN_ACK:
        text, remedy = "answered, and no data came.", "look at what the client waited for"
    elif completeness & RESET:
        text, remedy = "refused.", "look at the server: nothing listens there, or a filter resets"
    else:
        text, remedy = (
            "not answered.",
            "find out whether the host is there, and what drops SYNs on the way to it or back",
        )
    return replace(diagnosis, text=f"The SYN was sent {syns} times and was {text}", remedy=remedy)


def permitting_sack(diagnosis: Diagnosis, probes: int) -> Diagnosis:
    """The diagnosis of a flow whose ends permit SACK and whose sender sent so many tail loss probes."""
    if diagnosis.remedy == RECOVERING[1]:
        return replace(diagnosis, remedy=REMEDIES[BOTTLENECK])
    if diagnosis.remedy != REMEDIES[TIMEOUT]:
        return diagnosis
    return replace(diagnosis, remedy=WITH_PROBES if probes else WITH_SACK)


def placed(diagnosis: Diagnosis, lost: int, before: int) -> Diagnosis:
    """The diagnosis of a flow captured on the path, with the side of the capture point on which segments were lost."""
    return replace(
        diagnosis, text=f"{diagnosis.text} {before} of {lost} lost segments were lost before the capture point."
    )


def withheld(spans: pl.DataFrame, flow: Ints, missed: Floats) -> pl.DataFrame:
    """The spans with those that rest on losses unknown, and a rule that says why, in flows of whose data the capture
    missed more than `CAPTURE_LOSS`; but for silences, which no packet that it missed explains. Of a sampled capture
    nothing is left: data that it missed look like data that were not sent."""
    owner = np.searchsorted(flow, spans["flow"].to_numpy())
    rests = (missed > CAPTURE_LOSS)[owner] & np.isin(spans["cause"].to_numpy(), _RESTS) & ~spans["waited"].to_numpy()
    rests |= (missed > SAMPLED)[owner]
    if not rests.any():
        return spans
    rules = pl.Series([_missed(share) for share in missed.tolist()], dtype=pl.String).gather(owner)
    there = pl.Series(rests)
    return spans.with_columns(
        cause=pl.when(there).then(pl.lit(UNKNOWN)).otherwise("cause"), rule=pl.when(there).then(rules).otherwise("rule")
    )


def _missed(share: float) -> str:
    return (
        "the capture has most of the data twice" if np.isinf(share) else f"the capture missed {share:.1%} of the data"
    )


class _Parts:
    """Every cause's part in every flow.

    Lists have a value a part, those that begin with `flow_` a value a flow (of an array each would cost as much as what
    is done with it); arrays that begin with `span_` have a value a span.
    """

    def __init__(self, spans: pl.DataFrame, flow: Ints, first_ns: Ints, missed: Floats) -> None:
        spans = withheld(spans, flow, missed)
        self.flow_first: list[int] = first_ns.tolist()
        number = spans["flow"].to_numpy().astype(np.int64)
        self.span_start, self.span_end = spans["start_ns"].to_numpy(), spans["end_ns"].to_numpy()
        self.span_length: Floats = (self.span_end - self.span_start) / 1e9
        self.span_bytes = spans["bytes"].to_numpy()
        self.span_frame = spans["frame"].cast(pl.Int64).fill_null(-1).to_numpy()
        self.span_rule = spans["rule"].to_list()
        owner = np.searchsorted(flow, number)
        self.flow_begin: list[int] = np.searchsorted(number, flow).tolist()
        self.flow_end: list[int] = np.searchsorted(number, flow, "right").tolist()
        self.span_cause = spans["cause"].cast(pl.Enum(CAUSES)).to_physical().to_numpy().astype(np.int64)
        seconds = summed(self.span_length, owner, len(flow))
        self.flow_seconds: list[float] = seconds.tolist()
        self.flow_kernel = self._kernel(spans, owner, seconds)
        self.flow_awaited, self.flow_in_turn, self.flow_unanswered, self.flow_at_once, self.flow_by_clock = (
            self._by_rules(spans, owner, rule) for rule in (AWAITING, TURN, UNANSWERED, ONE_FLIGHT, BY_CLOCK)
        )
        self.flow_small_waits = self._by_rules(spans, owner, SMALL_WAITS)
        self.flow_timers, self.flow_in_vain = (
            self._by_rules(spans, owner, *rules) for rules in ((TIMER_RAN,), (NEEDLESS, ACK_ASTRAY))
        )
        self.flow_ahead = self._by_rules(spans, owner, AHEAD)
        self.flow_perhaps_full = self._by_rules(spans, owner, PERHAPS_FULL)
        self.flow_by_marks = self._by_rules(spans, owner, MARKED, AFTER_MARKS)
        self.flow_overflowed = self._by_rules(spans, owner, OVERFLOWED)
        # spans of a flow and cause together, in order of time
        order = np.argsort(owner * len(CAUSES) + self.span_cause, kind="stable")
        key = (owner * len(CAUSES) + self.span_cause)[order]
        opening = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
        part = np.zeros(len(key), np.int64)
        part[opening[1:]] = 1
        part = np.cumsum(part)
        self.cause: list[str] = _NAMES[key[opening] % len(CAUSES)].tolist()
        self.seconds: list[float] = summed(self.span_length[order], part, len(opening)).tolist()
        self.bytes: list[float] = summed(self.span_bytes[order], part, len(opening)).tolist()
        self.start: list[int] = self.span_start[order][opening].tolist()
        broken = self.span_start[order][1:] > self.span_end[order][:-1]
        inner = part[1:] == part[:-1]
        self.stretches: list[int] = (1 + np.bincount(part[1:][broken & inner], minlength=len(opening))).tolist()
        ranked = np.lexsort((np.arange(len(key)), -self.span_length[order], part))
        self.longest: list[int] = order[ranked[opening]].tolist()
        self._frames: list[int] = self.span_frame[order].tolist()
        self._opening: list[int] = np.append(opening, len(key)).tolist()
        self.flow_parts: list[int] = np.searchsorted(key[opening] // len(CAUSES), np.arange(len(flow) + 1)).tolist()

    def _by_rules(self, spans: pl.DataFrame, owner: Ints, *rules: str) -> list[float]:
        """Seconds of each flow that these rules explain."""
        rows = spans["rule"].is_in(rules).to_numpy()
        seconds: list[float] = summed(self.span_length[rows], owner[rows], len(self.flow_seconds)).tolist()
        return seconds

    def judged(self, position: int, number: int, vantage: str, missed: float, costs: dict[str, Cost]) -> Diagnosis:
        """The diagnosis of the flow at this position."""
        total_s = self.flow_seconds[position]
        if total_s <= 0:
            text = "There is no time to account for: data at one instant only, or none in the time asked for."
            return Diagnosis(number, UNKNOWN, "unknown", text, REMEDIES[UNKNOWN], 0.0)
        parts = self._of(position)
        begin = self.flow_first[position]
        place = PLACE.get(vantage, PLACE["unknown"])
        found = sorted(
            (self._cause(part, total_s, begin, costs, place) for part in parts),
            key=lambda c: (-c.seconds, c.cause),
        )
        primary = self._primary(found, parts)
        share = next(c.time_share for c in found if c.cause == primary)
        confidence = DIRECTNESS[primary] * place * (1.0 if share >= 0.5 else 0.5)
        shown = [c for c in found if c.time_share >= LEAST_SHARE] or found[:1]
        who, sentence, remedy, besides = WHO[primary], SENTENCES[primary], REMEDIES[primary], ""
        if primary == APPLICATION:
            who, sentence, remedy, share, besides = self._application(position, share, total_s)
        elif primary == SLOW_START and self.flow_at_once[position] > share * total_s / 2:
            who, sentence, remedy = AT_ONCE
        elif primary == TIMEOUT and self.flow_in_vain[position] > self.flow_timers[position]:
            sentence, remedy = IN_VAIN
        elif primary == BOTTLENECK and self.flow_by_marks[position] > share * total_s / 2:
            sentence, remedy = BY_MARKS
        elif primary == BOTTLENECK and self.flow_overflowed[position] >= WORTH_SAYING * total_s:
            sentence, remedy, share, besides = self._overflowed(position, share, total_s)
        elif primary == UNKNOWN and self.flow_ahead[position] > 0:
            sentence, remedy = ACKS_AHEAD
        elif primary == UNKNOWN and self.flow_by_clock[position] > share * total_s / 2:
            sentence, remedy = OWN_CLOCK
        elif primary == UNKNOWN and self.flow_perhaps_full[position] > share * total_s / 2:
            sentence, remedy = MAYBE_FULL
        if primary != (most := found[0]).cause:
            besides += f" It was {most.cause} for longer ({most.time_share:.0%}), but a tenth faster then, or more."
        if primary == UNKNOWN and len(found) > 1 and found[1].time_share >= WORTH_SAYING:
            besides = f" In {found[1].time_share:.0%} it was {found[1].cause}."
        text = f"in {share:.0%} of the time {sentence}.{besides}"
        text = f"{text[0].upper()}{text[1:]}" if primary == UNKNOWN else f"{who.capitalize()}: {text}"
        if primary == UNKNOWN and self.flow_unanswered[position] > share * total_s / 2:
            who, text, remedy = "receiver" if vantage == "receiver" else who, self._gone(position, found, vantage), GONE
        if np.isinf(missed):
            text += f" T{_missed(missed)[1:]}, and nothing is claimed."
        elif missed > SAMPLED:
            text += f" T{_missed(missed)[1:]}: it is sampled, or dropped packets, and nothing is claimed."
        elif missed > CAPTURE_LOSS:
            text += f" T{_missed(missed)[1:]}: nothing that rests on losses is claimed."
        return Diagnosis(number, primary, who, text, remedy, confidence, shown, self.flow_kernel[position])

    def _application(self, position: int, share: float, total_s: float) -> tuple[str, str, str, float, str]:
        """Who, sentence and remedy of application-limited, the share of the time that the sentence says, and what is
        to be said of the other end's part, or of the sender's.

        What was waited for the other end is the least: where its last data were acknowledged with the next data of the
        sender, the capture's tables show when their round began.
        """
        small, turn = self.flow_small_waits[position] / total_s, self.flow_in_turn[position] / total_s
        waited = self.flow_awaited[position] / total_s + turn
        own = share - small - waited
        if small > waited and small + waited > share / 2:
            return *NAGLE, small, ""
        if waited <= own:
            besides = f" In {waited:.0%} or more it waited for the other end's next data."
            said = WHO[APPLICATION], SENTENCES[APPLICATION], REMEDIES[APPLICATION]
            return *said, share, besides if waited >= WORTH_SAYING else ""
        said = IN_TURN if turn > (share - small) / 2 else AWAITED
        if own < WORTH_SAYING:
            return *said, share, ""
        return *said, share - own, f" In up to {own:.0%} the sending application had nothing to send."

    def _overflowed(self, position: int, share: float, total_s: float) -> tuple[str, str, float, str]:
        """Sentence and remedy of a flow that recovered from what its own queue had lost, the share of the time that the
        sentence says, and what is to be said of the rest: without SACK a recovery takes a round trip for each segment
        (RFC 6582, 3.2), and the path is all but idle meanwhile.
        """
        spans = slice(self.flow_begin[position], self.flow_end[position])
        overflowed = np.array([rule == OVERFLOWED for rule in self.span_rule[spans]])
        full = (self.span_cause[spans] == CAUSES.index(BOTTLENECK)) & ~overflowed
        seconds, carried = self.span_length[spans], self.span_bytes[spans]
        rate, most = (carried[rows].sum() / max(seconds[rows].sum(), 1e-9) for rows in (overflowed, full))
        part = self.flow_overflowed[position] / total_s
        if part > share / 2:
            rest = share - part
            full_too = f" In {rest:.0%} that queue stood and the rate was the path's." if rest >= WORTH_SAYING else ""
            return *RECOVERING, part, full_too
        if rate >= (1 - BELOW) * most:
            return SENTENCES[BOTTLENECK], REMEDIES[BOTTLENECK], share, ""  # the path was full meanwhile
        besides = f" In {part:.0%} it recovered from what that queue had lost, at {rate / most:.0%} of that rate."
        return SENTENCES[BOTTLENECK], REMEDIES[BOTTLENECK], share - part, besides

    def _gone(self, position: int, found: list[Cause], vantage: str) -> str:
        """What is to be said of a flow whose other end fell silent."""
        silent = next(cause for cause in found if cause.cause == UNKNOWN)
        since = (silent.longest_ns[0] - self.flow_first[position]) / 1e9
        where = "the data passed here: the receiver or its link was gone" if vantage == "receiver" else _NO_ANSWER
        before = f" Until then most of the time was {found[1].cause}." if len(found) > 1 else ""
        return f"From {since:.3g} s on nothing came back, whatever was sent again; {where}.{before}"

    def _of(self, position: int) -> range:
        """The parts of a flow."""
        return range(self.flow_parts[position], self.flow_parts[position + 1])

    def costs(self) -> list[dict[str, Cost]]:
        """What the causes of every flow cost; one cause alone has nothing to be compared with, but a ceiling."""
        compared = [
            position
            for position in range(len(self.flow_begin))
            if len(parts := self._of(position)) > 1 or (len(parts) == 1 and self.cause[parts[0]] in CEILINGS)
        ]
        rows = [slice(self.flow_begin[position], self.flow_end[position]) for position in compared]
        spans = (
            {
                "start_ns": self.span_start[own],
                "end_ns": self.span_end[own],
                "bytes": self.span_bytes[own],
                "cause": _NAMES[self.span_cause[own]],
            }
            for own in rows
        )
        found = dict(zip(compared, accounted(spans), strict=True))
        return [found.get(position, {}) for position in range(len(self.flow_begin))]

    def _cause(self, part: int, total_s: float, begin: int, costs: dict[str, Cost], place: float) -> Cause:
        name, seconds, longest = self.cause[part], self.seconds[part], self.longest[part]
        stretches = self.stretches[part]
        since = (self.start[part] - begin) / 1e9
        texts = [
            f"{seconds:.3g} s in {stretches} {'stretch' if stretches == 1 else 'stretches'}, from {since:.3g} s on; "
            f"{self.span_rule[longest]} for {self.span_length[longest]:.3g} s at most"
        ]
        own = self._frames[self._opening[part] : self._opening[part + 1]]
        frames = [n for n in dict.fromkeys(own) if n >= 0]
        if frames:
            more = f" and {len(frames) - FRAMES} more" if len(frames) > FRAMES else ""
            named = ", ".join(str(frame) for frame in frames[:FRAMES])
            texts.append(f"frame{'s' if len(frames) > 1 else ''} {named}{more}")
        where = int(self.span_start[longest]), int(self.span_end[longest])
        sure = DIRECTNESS[name] * place
        return Cause(name, seconds / total_s, seconds, since, costs.get(name), sure, frames[:FRAMES], texts, where)

    def _primary(self, found: list[Cause], parts: range) -> str:
        """The cause named, by the rule of the module."""
        first = found[0].cause
        if first not in CEILINGS:
            return first
        disturbed = [c for c in found if c.cause in DISTURBANCES]
        ceiling = self._rate(parts, (first,))
        whole = self._rate(parts, (first, *DISTURBANCES))
        if disturbed and ceiling > 0 and 1 - whole / ceiling > BELOW:
            return disturbed[0].cause
        return first

    def _rate(self, parts: range, names: tuple[str, ...]) -> float:
        """Bits per second in the time of some causes."""
        own = [part for part in parts if self.cause[part] in names]
        seconds, carried = (float(np.sum([of[part] for part in own])) for of in (self.seconds, self.bytes))
        return 8 * carried / seconds if seconds > 0 else 0.0

    def _kernel(self, spans: pl.DataFrame, owner: Ints, seconds: Floats) -> list[dict[str, float]]:
        """Each flow's time in shares as TCP_INFO counts it: tcpi_busy_time, tcpi_rwnd_limited, tcpi_sndbuf_limited.

        The kernel asks what the next segment waits for, not what has made the window small: a full window counts as the
        receiver's whatever the cause named here, unless the congestion window was smaller still (a timer's silence).
        Of a send buffer's limit it counts what follows a send that emptied the queue while the socket was marked full:
        from nothing to all, as the application writes. What is given here is all of it.
        """
        timeout, stalled, buffer = (self.span_cause == CAUSES.index(name) for name in (TIMEOUT, STALLED, SEND_BUFFER))
        idle = (self.span_cause == CAUSES.index(APPLICATION)) & spans["rule"].is_in(_IDLE).to_numpy()
        closed = spans["window_full"].to_numpy() & ~timeout & ~spans["waited"].to_numpy()
        total = np.maximum(seconds, 1e-9)
        shares = {
            name: (summed(self.span_length[rows], owner[rows], len(total)) / total).tolist()
            for name, rows in {"busy": ~idle, "rwnd_limited": closed | stalled, "sndbuf_limited": buffer}.items()
        }
        return [dict(zip(shares, of_flow, strict=True)) for of_flow in zip(*shares.values(), strict=True)]


_NAMES = np.array(CAUSES, dtype=object)

SYN_ACK, RESET = 2, 32
"""Bits of a flow's completeness."""

_NO_ANSWER = "the receiver was gone, or the path to it or from it"

_IDLE = [IDLE, AWAITING]

_RESTS = [*DISTURBANCES, BOTTLENECK]
"""Causes that rest on losses, or on what looks like them."""
