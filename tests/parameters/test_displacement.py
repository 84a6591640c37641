"""RFC 4737's n-reordering and RFC 5236's densities, from late segments alone, against the definitions on sequences."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_flows import event_row, flow_row, tables

import tcpfit
from tcpfit.exceptions import InvalidParameter
from tcpfit.parameters.displacement import density, late_segments, occupancy, past_dupthresh

SAMPLES = Path(__file__).parent.parent.parent / "sample-traces"
SMSS = 1000


# the definitions, on a sequence of sending numbers in the order of arrival


def extent(s: list[int], i: int) -> int:
    """RFC 4737, 4.2.1: distance to the earliest arrival that was sent later."""
    return i - next(j for j in range(i) if s[j] > s[i])


def n_reordered(s: list[int], i: int) -> int:
    """RFC 4737, 5.3: the largest n for which the n arrivals before were all sent later."""
    n = 0
    while n < i and s[i - n - 1] > s[i]:
        n += 1
    return n


def displacements(s: list[int]) -> Counter[int]:
    """RFC 5236: receive index less number; an index is given in the order of arrival, lost numbers left out."""
    return Counter(index - number for index, number in zip(sorted(s), s, strict=True))


def occupancies(s: list[int]) -> Counter[int]:
    """RFC 5236: segments in the buffer after each arrival, above the lowest that is still to come."""
    found: Counter[int] = Counter()
    for i in range(len(s)):
        expected = min(s[i + 1 :], default=max(s) + 1)
        found[sum(number > expected for number in s[: i + 1])] += 1
    return found


def made(s: list[int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Flows and events of the sequence: what the engine says of its late segments."""
    late = [i for i in range(len(s)) if any(number > s[i] for number in s[:i])]
    events = [
        event_row(
            "reordering",
            0.001 * i,
            segments=extent(s, i),
            arrival=i + 1,
            left=s[i] * SMSS,
            right=(s[i] + 1) * SMSS,
            value=0.01,
        )
        for i in late
    ]
    flow = flow_row(sent_segments=len(s) + 5, lost_upstream=5, smss_bytes=SMSS)
    return tables([flow], events, [])[:2]


def shares(counted: Counter[int]) -> dict[int, float]:
    total = counted.total()
    return {value: pytest.approx(count / total) for value, count in sorted(counted.items())}


@st.composite
def sequences(draw: st.DrawFn) -> list[int]:
    """Numbers 0 ... n - 1, some of them held back."""
    sequence = list(range(draw(st.integers(1, 60))))
    held = draw(st.lists(st.tuples(st.integers(0, 59), st.integers(1, 20)), max_size=12))
    order = sorted(sequence, key=lambda k: (k + sum(by + 0.5 for at, by in held if at == k), k))
    return order


@settings(deadline=None)
@given(sequences())
def test_metrics_are_those_of_the_definitions(s):
    flows, events = made(s)
    found = late_segments(events)
    assert [n_reordered(s, int(row["arrival"]) - 1) for row in found.rows(named=True)] == found["n"].to_list()
    if found.height:
        assert shares(displacements(s)) == dict(density(flows, events, 100).select("displacement", "share").iter_rows())
        assert shares(occupancies(s)) == dict(occupancy(flows, events, 100).select("occupancy", "share").iter_rows())


@settings(deadline=None)
@given(sequences(), st.integers(1, 6))
def test_what_is_displaced_by_more_than_the_threshold_counts_as_lost(s, threshold):
    flows, events = made(s)
    place = {number: index for index, number in enumerate(sorted(s))}
    kept = [number for i, number in enumerate(s) if i - place[number] <= threshold]
    if events.height and len(kept) < len(s):
        numbered = [sorted(kept).index(number) for number in kept]
        found = density(flows, events, threshold)
        assert shares(displacements(numbered)) == dict(found.select("displacement", "share").iter_rows())


def test_an_example_by_hand():
    s = [1, 3, 4, 2, 6, 7, 8, 9, 5]  # 2 two places late, 5 four places
    flows, events = made(s)
    assert [2, 4] == late_segments(events)["n"].to_list()
    assert [(0, 2, 1, 0.5)] == past_dupthresh(events).rows()
    found = density(flows, events)
    assert [-1, 0, 2, 4] == found["displacement"].to_list()
    assert [6 / 9, 1 / 9, 1 / 9, 1 / 9] == pytest.approx(found["share"].to_list())
    assert [0, 1, 2, 3, 4] == occupancy(flows, events)["occupancy"].to_list()


def test_nothing_late_gives_empty_tables():
    flows, events = made([0, 1, 2])
    for table in (late_segments(events), past_dupthresh(events), density(flows, events), occupancy(flows, events)):
        assert 0 == table.height


def test_a_threshold_below_one_is_refused():
    flows, events = made([1, 0])
    with pytest.raises(InvalidParameter, match="threshold must be a whole number of at least 1, got 0"):
        density(flows, events, 0)


def sending_order(place: str) -> tuple[pl.DataFrame, tcpfit.Analysis]:
    analysis = tcpfit.analyze(SAMPLES / f"reordering-{place}.pcap.gz", segments=True)
    flow = analysis.flows.row(0, named=True)
    data = analysis.segments.filter(pl.col("src") == flow["src"], pl.col("payload") > 0)
    return data.select("seq", "ip_id"), analysis


def test_a_recorded_flow_has_the_densities_of_both_ends():
    """The order of sending from the capture at the sender, that of arrival from the one at the receiver."""
    sent, _ = sending_order("sender")
    came, analysis = sending_order("receiver")
    number = {key: n for n, key in enumerate(sent.iter_rows())}
    s = [number[key] for key in came.iter_rows()]
    found = late_segments(analysis.events)
    assert [n_reordered(s, int(row["arrival"]) - 1) for row in found.rows(named=True)] == found["n"].to_list()
    ours = density(analysis.flows, analysis.events)
    assert shares(displacements(s)) == dict(ours.select("displacement", "share").iter_rows())
    assert np.isclose(1.0, ours["share"].sum())
