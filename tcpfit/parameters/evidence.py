"""What the estimates are made of: the three tables, sorted, with every row's flow found once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tcpfit.parameters.intervals import Floats, Ints, summed

T = TypeVar("T")


@dataclass(frozen=True)
class Rows:
    """Rows of one kind in the order of flow and time, as arrays; `owner` is the position of a row's flow."""

    frame: pl.DataFrame
    owner: Ints

    def floats(self, column: str) -> Floats:
        """A column as float64, NaN for null."""
        return floats(self.frame[column])

    def times(self, column: str = "time_ns") -> Ints:
        """A column of times, ns."""
        return self.frame[column].cast(pl.Int64).to_numpy()

    def where(self, condition: NDArray[np.bool_]) -> Rows:
        """The rows for which the condition holds."""
        return Rows(self.frame.filter(pl.Series(condition)), self.owner[condition])

    def __len__(self) -> int:
        return len(self.owner)


class Evidence:
    """The tables of `tcpfit.schema` made ready for vectorised estimates.

    A row of `events` or `rounds` whose flow is not in `flows` is left out.
    """

    def __init__(self, flows: pl.DataFrame, events: pl.DataFrame, rounds: pl.DataFrame) -> None:
        self.flows = flows.sort("flow")
        self.flow: Ints = self.flows["flow"].to_numpy().astype(np.int64)
        self._events = events
        self._rounds = rounds
        self.known: dict[Callable[[Evidence], Any], Any] = {}

    def __len__(self) -> int:
        return len(self.flow)

    def column(self, name: str) -> Floats:
        """A column of the flows as float64, NaN for null."""
        return floats(self.flows[name])

    @property
    def two_way(self) -> NDArray[np.bool_]:
        """Which flows have both their data and the ACKs of it in the capture: a flight is known of them."""
        known: NDArray[np.bool_] = np.isfinite(self.column("flight_max"))
        return known

    @property
    def full_size(self) -> Floats:
        """Mean payload of each flow's segments, in units of its SMSS; 1 where none is known. Models speak of full
        segments, an application that writes little sends others."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self.column("data_bytes") / (self.column("data_segments") * self.column("smss_bytes"))
        return np.where(np.isfinite(share) & (share > 0), share, 1.0)

    @cached_property
    def rounds(self) -> Rows:
        """The rounds, by flow and number."""
        return self._rows(self._rounds.sort("flow", "round"))

    @cached_property
    def _by_kind(self) -> dict[str, Rows]:
        events = self._events.sort("flow", "time_ns", maintain_order=True)
        return {str(kind): self._rows(part) for (kind,), part in events.partition_by("kind", as_dict=True).items()}

    def of(self, kind: str) -> Rows:
        """The events of a kind, by flow and time."""
        return self._by_kind.get(kind, Rows(self._events.clear(), np.zeros(0, np.int64)))

    @cached_property
    def first_timeouts(self) -> Rows:
        """The first timeout of every series, but for the handshake's: no data were outstanding, and its timer is the
        initial one, not the flow's (RFC 6298, 2.1)."""
        timeouts = self.data_timeouts
        return timeouts.where(timeouts.floats("segments") == 0)

    @cached_property
    def data_timeouts(self) -> Rows:
        """All timeouts but the handshake's."""
        timeouts = self.of("timeout")
        return timeouts.where(np.asarray(timeouts.frame["reason"].cast(pl.String) != "syn", dtype=np.bool_))

    @cached_property
    def felt_recoveries(self) -> Rows:
        """The fast recoveries that are a loss indication of their own: none begins before what was outstanding at the
        start of the one before is acknowledged (`recover` of RFC 6582, 3.2). Linux without SACK begins another at every
        ACK that follows upon one that it took back; the window halves once."""
        recoveries = self.of("recovery")
        owner = recoveries.owner
        left, recover = recoveries.floats("left"), recoveries.floats("right")
        if not np.any((owner[1:] == owner[:-1]) & (left[1:] < recover[:-1])):
            return recoveries
        felt = np.ones(len(recoveries), np.bool_)
        first = 0
        for i in range(1, len(recoveries)):
            felt[i] = owner[i] != owner[first] or not left[i] < recover[first]
            if felt[i]:
                first = i
        return recoveries.where(felt)

    @cached_property
    def loss_indications(self) -> Rows:
        """What the congestion window felt: fast recoveries and the first timeouts of every series, by flow and time."""
        felt = pl.concat([self.felt_recoveries.frame, self.first_timeouts.frame])
        return self._rows(felt.sort("flow", "time_ns", maintain_order=True))

    @cached_property
    def mark_responses(self) -> Rows:
        """Reductions of the window for congestion marks: CWR that answers an echo (RFC 3168, 6.1.2). Accurate feedback
        (RFC 9768) has no CWR: each of its windows of marks."""
        responses, marks = self.of("ecn_response"), self.of("ecn_mark")
        answers = responses.where(np.isfinite(responses.floats("cause_frame")))
        told = marks.where(np.asarray(marks.frame["reason"].cast(pl.String) == "ace", dtype=np.bool_))
        both = pl.concat([answers.frame, told.frame])
        return self._rows(both.sort("flow", "time_ns", maintain_order=True))

    def count(self, rows: Rows) -> Floats:
        """How many of the rows each flow has."""
        return np.bincount(rows.owner, minlength=len(self)).astype(np.float64)

    def total(self, rows: Rows, column: str) -> Floats:
        """Sum of a column over each flow's rows."""
        return summed(np.nan_to_num(rows.floats(column)), rows.owner, len(self))

    def _rows(self, frame: pl.DataFrame) -> Rows:
        number = frame["flow"].to_numpy().astype(np.int64)
        if not len(self) or not len(number):
            return Rows(frame.clear(), np.zeros(0, np.int64))
        owner = np.minimum(np.searchsorted(self.flow, number), len(self) - 1)
        known = self.flow[owner] == number
        return Rows(frame, owner) if known.all() else Rows(frame.filter(pl.Series(known)), owner[known])


def once(function: Callable[[Evidence], T]) -> Callable[[Evidence], T]:
    """Computed once for an evidence, whoever asks again; what it gives is not to be changed."""

    @wraps(function)
    def found(evidence: Evidence) -> T:
        if function not in evidence.known:
            evidence.known[function] = function(evidence)
        known: T = evidence.known[function]
        return known

    return found


def floats(series: pl.Series) -> Floats:
    """A series of numbers as float64, NaN for null."""
    values = series.cast(pl.Float64)
    return (values.fill_null(float("nan")) if values.has_nulls() else values).to_numpy()
