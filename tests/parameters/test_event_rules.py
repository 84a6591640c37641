"""Loss events by their rules, and RFC 5348's rate, by hand and step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from simulated_flows import event_row, flow_row, tables

from tcpfit.exceptions import InvalidParameter
from tcpfit.parameters import estimate, loss_events
from tcpfit.parameters.event_rules import LOSS_EVENTS, RULES
from tcpfit.parameters.tfrc import WEIGHTS, loss_event_rate


def loss(order: int, flight: float, time_s: float, **columns: Any) -> dict[str, Any]:
    return event_row("loss", time_s, order=order, flight=flight, segments=1, left=order, **columns)


def events_of(*rows: dict[str, Any], sent: int = 1000) -> tuple[pl.DataFrame, pl.DataFrame]:
    return tables([flow_row(sent_segments=sent)], list(rows), [])[:2]


def test_a_window_is_counted_in_segments() -> None:
    """W = 10 at segment 100: 109 is the last of the window, 110 opens another, of which 112 is part."""
    found = loss_events(*events_of(*(loss(n, 9.0, 1.0) for n in (100, 109, 110, 112, 300))), rule="window")
    assert [100, 110, 300] == found["order"].to_list()
    assert [2, 2, 1] == found["segments"].to_list()
    assert [10, 190, None] == found["interval"].to_list()


def test_the_rules_part_where_a_window_takes_more_than_a_round_trip() -> None:
    """Two losses three segments and two round trips apart: an event by segments, two by time."""
    rows = [loss(100, 9.0, 1.0), loss(103, 9.0, 1.2)]
    rows += [event_row("loss_event", n, order=o, flight=9.0, segments=1) for n, o in ((1.0, 100), (1.2, 103))]
    rows += [event_row("recovery", 1.1, flight=9.0), event_row("timeout", 2.0, segments=0, flight=3.0)]
    rows += [event_row("timeout", 3.0, segments=1, flight=3.0)]
    counts = {rule: loss_events(*events_of(*rows), rule=rule).height for rule in RULES}
    assert {"window": 1, "one-rtt": 2, "recovery-point": 2, "tfrc": 2} == counts


def test_a_loss_without_a_window_is_of_no_window() -> None:
    rows = [loss(100, 9.0, 1.0) | {"flight": None}, loss(101, float("nan"), 1.0), loss(200, 9.0, 2.0)]
    assert [200] == loss_events(*events_of(*rows), rule="window")["order"].to_list()


def test_flows_are_kept_apart() -> None:
    flows, events, _ = tables([flow_row(i) for i in (0, 1)], [loss(5, 9.0, 1.0), loss(6, 9.0, 1.0, flow=1)], [])
    found = loss_events(flows, events, rule="window")
    assert [(0, 5, None), (1, 6, None)] == found.select("flow", "order", "interval").rows()


@pytest.mark.parametrize("rule", RULES)
def test_the_table_is_as_declared(rule: str) -> None:
    for rows in ((), (loss(5, 9.0, 1.0), event_row("loss_event", 1.0, order=5), event_row("recovery", 1.1))):
        found = loss_events(*events_of(*rows), rule=rule)
        assert {c.name: c.dtype for c in LOSS_EVENTS} == dict(found.schema)
        assert len(rows) // 3 == found.height


def test_another_rule_is_refused_by_name() -> None:
    with pytest.raises(InvalidParameter, match="rule must be one of one-rtt, window, .*, got 'tahoe'"):
        loss_events(*events_of(), rule="tahoe")


def test_weights_are_the_formula_of_the_rfc() -> None:
    """w_i = 1 below n/2, then 2 (n - i) / (n + 2), n = 8 (RFC 5348, 5.4)."""
    assert [1.0 if i < 4 else 2 * (8 - i) / (8 + 2) for i in range(8)] == pytest.approx(WEIGHTS.tolist())


def test_rate_by_hand() -> None:
    # W_tot = 6; eight intervals of 100 mean 100
    assert 1 / 100 == pytest.approx(loss_event_rate(np.full(8, 100.0), 0))
    # an open interval of up to 100 changes nothing; one of 700 does: (700 + 100 (6 - 1)) / 6 = 200
    assert 1 / 100 == pytest.approx(loss_event_rate(np.full(8, 100.0), 100))
    assert 1 / 200 == pytest.approx(loss_event_rate(np.full(8, 100.0), 700))
    # two intervals, the newer 30: (30 + 90) / 2 closed; open 50: (50 + 30) / 2 is less; open 150: (150 + 30) / 2
    assert 1 / 60 == pytest.approx(loss_event_rate(np.array([90.0, 30.0]), 50))
    assert 1 / 90 == pytest.approx(loss_event_rate(np.array([90.0, 30.0]), 150))
    # nine intervals: the oldest has dropped out
    assert 1 / 100 == pytest.approx(loss_event_rate(np.array([5000.0] + [100.0] * 8), 0))
    assert np.isnan(loss_event_rate(np.array([]), 10))


@pytest.mark.parametrize(("events", "flows", "above"), [(10, 800, 1.14), (30, 800, 1.10), (5000, 5, 1.08)])
def test_the_mean_of_an_inverse_is_above_p(events: int, flows: int, above: float) -> None:
    """Losses of chance, one in 1000 segments: 8 % above the flow's p in long flows, 14 % in those of 10 loss events."""
    intervals = np.ceil(np.random.default_rng(events).exponential(1000.0, (flows, events)))
    order = intervals.cumsum(axis=1).astype(int)
    rows = [flow_row(i, sent_segments=int(own[-1]) + 1, loss_events=events) for i, own in enumerate(order)]
    lost = [event_row("loss_event", at / 1e4, flow=i, order=at) for i, own in enumerate(order) for at in own.tolist()]
    table = estimate(*tables(rows, lost, []))
    found, p = (table.filter(name=name)["value"].to_numpy() for name in ("p_tfrc", "p"))
    assert above == pytest.approx(np.mean(found / p), abs=0.02)


def test_mean_is_that_of_the_rule_segment_by_segment() -> None:
    """The closed form against the RFC's rule applied after every segment, a tenth of one at a time."""
    random = np.random.default_rng(5)
    start = 40 + np.concatenate(([0], np.cumsum(random.geometric(0.02, 13))))
    sent = int(start[-1]) + 150
    rows = [event_at(at) for at in start.tolist()]
    flow = flow_row(sent_segments=sent, unique_bytes=1000 * sent, loss_events=len(start))
    table = estimate(*tables([flow], rows, []))
    found = table.filter(pl.col("name") == "p_tfrc").row(0, named=True)
    rates = []
    for at in np.arange(start[1], sent, 0.1) + 0.05:
        begun = start[start <= at]
        rates.append(loss_event_rate(np.diff(begun).astype(np.float64), at - begun[-1]))
    assert np.mean(rates) == pytest.approx(found["value"], rel=1e-4)
    assert len(start) - 1 == found["n"]
    # thirteen events are 7.287 (Jeffreys) to 22.230 (Garwood); that of p is wider for the long end without a loss
    p = table.filter(pl.col("name") == "p").row(0, named=True)
    ends = [value / p["value"] for value in (p["low"], p["high"])]
    assert ends[0] < 7.287 / 13 < 22.230 / 13 < ends[1]
    assert ends == pytest.approx([found["low"] / found["value"], found["high"] / found["value"]])


def test_interval_covers_the_rate_of_chance_losses() -> None:
    """Geometric loss intervals of 100 segments on average, 40 of them: the mean of p is a few per cent above 1/100."""
    random, inside, means = np.random.default_rng(11), 0, []
    for _ in range(100):
        start = np.concatenate(([50], 50 + np.cumsum(random.geometric(0.01, 40))))
        rows, sent = [event_at(at) for at in start.tolist()], int(start[-1]) + 100
        lost = dict.fromkeys(("loss_events", "lost_segments", "lost_low", "lost_high"), 41)
        flow = flow_row(sent_segments=sent, unique_bytes=1000 * sent, **lost)
        table = estimate(*tables([flow], rows, []))
        found = table.filter(pl.col("name") == "p_tfrc").row(0, named=True)
        inside += found["low"] <= 0.01 <= found["high"]
        # forty events are 29.00 (Jeffreys) to 54.47 (Garwood)
        assert found["low"] / found["value"] <= 29.00 / 40 < 54.46 / 40 <= found["high"] / found["value"]
        means.append(found["value"])
    assert inside >= 88
    assert 1.0 <= np.mean(means) / 0.01 <= 1.15


@pytest.mark.parametrize(("events", "held"), [(20, 0.82), (100, 0.88)])
def test_interval_covers_a_loss_rate_that_changes(events: int, held: float) -> None:
    """0.25 and 2 % by turns, for five events on average; Poisson's interval held the mean in 63 and 67 % of them."""
    random, flows = np.random.default_rng(events), 300
    bad = np.logical_xor.accumulate(random.random((flows, events)) < 0.2, axis=1) ^ (random.random((flows, 1)) < 0.5)
    order = random.geometric(np.where(bad, 0.02, 0.0025)).cumsum(axis=1)
    rows = [event_at(at, flow) for flow, own in enumerate(order.tolist()) for at in own]
    sent = order[:, -1] + 1
    flow_rows = [
        flow_row(i, sent_segments=n, unique_bytes=1000 * n, loss_events=events) for i, n in enumerate(sent.tolist())
    ]
    found = estimate(*tables(flow_rows, rows, [])).filter(pl.col("name") == "p_tfrc")
    after_second = sent - order[:, 1]
    truth = float(np.average(found["value"].to_numpy(), weights=after_second))
    assert held <= ((found["low"] <= truth) & (truth <= found["high"])).mean()


def event_at(order: int, flow: int = 0) -> dict[str, Any]:
    """A loss event of one segment, after so many sent."""
    left = 1000 * order
    return event_row("loss_event", order / 1e4, flow, order=order, segments=1, left=left, right=left + 1000)


def test_one_event_is_no_interval() -> None:
    table = estimate(*tables([flow_row(sent_segments=100)], [event_row("loss_event", 1.0, order=5)], []))
    assert table.filter(pl.col("name") == "p_tfrc")["value"].to_list() == [None]
