"""Windows, growth and reordering from simulated and hand-made flows."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import special
from simulated_flows import Sender, Tables, event_row, flow_row, round_row, tables

from tcpfit.parameters import estimate
from tcpfit.parameters.reorder import reactions


def values(parts: Tables) -> dict[str, dict[str, Any]]:
    """The parameters of the only flow by name."""
    return {row["name"]: row for row in estimate(*parts).to_dicts()}


@pytest.mark.parametrize("b", [1.0, 2.0])
def test_b_is_the_inverse_of_the_growth(b: float) -> None:
    found = values(Sender(0.005, b=b).run(1500))["b"]
    assert b == pytest.approx(found["value"], rel=0.02)
    assert found["low"] <= b * 1.01 and b * 0.99 <= found["high"]


def test_b_where_the_window_grows_by_chance() -> None:
    """By a segment in every second round on average, up to a loss. Windows that grow slowly are hit later: with the
    least-squares weights of their stretches b was 2.16, and 82 % of the intervals held it."""
    random, held, found = np.random.default_rng(4), 0, []
    for _ in range(100):
        rounds, events, window = [], [], 6
        for i in range(1500):
            hit = random.random() < 1 - 0.97**window
            phase = "recovery" if hit else "open"
            rounds.append(round_row(i, 0.1 * i, 0.1, flight=float(window), sent_segments=window, phase=phase))
            if hit:
                events.append(event_row("loss_event", 0.1 * i, segments=1, flight=float(window)))
                events.append(event_row("recovery", 0.1 * i, segments=1, flight=float(window), value=0.1))
            window = max(window // 2, 2) if hit else window + int(random.random() < 0.5)
        row = values(tables([flow_row()], events, rounds))["b"]
        held += row["low"] <= 2.0 <= row["high"]
        found.append(row["value"])
    assert np.median(found) == pytest.approx(2.0, abs=0.06)
    assert held >= 90


def test_b_is_null_in_slow_start() -> None:
    rounds = [round_row(i, 0.1 * i, 0.1, flight=float(2**i), sent_segments=2**i) for i in range(8)]
    assert values(tables([flow_row(sent_segments=255)], [], rounds))["b"]["value"] is None


def test_b_is_null_with_too_few_clean_rounds() -> None:
    assert values(Sender(0.3).run(60))["b"]["value"] is None


def test_w_max_is_the_advertised_window_where_it_was_reached() -> None:
    found = values(Sender(0.001, w_max=24).run(400))["w_max"]
    assert (24.0, 24.0, 24.0) == (found["value"], found["low"], found["high"])


def test_w_max_of_a_sender_that_stays_flat_below_the_advertised_window() -> None:
    assert 24.0 == values(Sender(0.0, w_max=24, limit_shown=False).run(200))["w_max"]["value"]


def test_w_max_is_null_where_no_limit_was_reached() -> None:
    assert values(Sender(0.01).run(400))["w_max"]["value"] is None


def test_two_limited_rounds_are_no_limit() -> None:
    rounds = [round_row(i, 0.1 * i, 0.1, flight=20.0 + i, rwnd=22.0, limited=i < 2) for i in range(6)]
    assert values(tables([flow_row()], [], rounds))["w_max"]["value"] is None


def test_a_window_that_shrinks_in_a_recovery_is_no_limit() -> None:
    """Data behind a hole fill the receiver's buffer; what it advertises then says nothing of the flow's limit."""
    shrunk = [round_row(i, 0.1 * i, 0.1, flight=20.0, rwnd=8.0, limited=True, resent_segments=2) for i in range(4)]
    assert values(tables([flow_row()], [], shrunk))["w_max"]["value"] is None
    full = [round_row(4 + i, 0.4 + 0.1 * i, 0.1, flight=40.0, rwnd=40.0, limited=True) for i in range(3)]
    assert 40.0 == values(tables([flow_row()], [], shrunk + full))["w_max"]["value"]


def test_w_takes_recoveries_and_timeouts_but_not_the_timeout_out_of_a_recovery() -> None:
    events = [
        event_row("recovery", 1.0, flight=20.0),
        event_row("timeout", 2.0, flight=4.0, phase="recovery"),
        event_row("timeout", 5.0, flight=10.0),
    ]
    assert (15.0, 2) == (lambda w: (w["value"], w["n"]))(values(tables([flow_row()], events, []))["w"])


def test_reordering_by_hand() -> None:
    """Events at 1, 3 and 7 s with 2, 3 and 4 segments, late by 0.05, 0.15 and 0.31 s at an RTT of 0.1 s."""
    late = zip((1.0, 3.0, 7.0), (2, 3, 4), (0.05, 0.15, 0.31), strict=True)
    events = [event_row("reorder_event", at, segments=d, value=by) for at, d, by in late]
    found = values(tables([flow_row(rtt_mean_s=0.1)], events, []))
    assert (3.0, 3) == (found["d"]["value"], found["d"]["n"])
    assert (3.0, 2) == (found["a_h"]["value"], found["a_h"]["n"])
    assert ((1 + 2 + 4) / 3, 3) == (found["r"]["value"], found["r"]["n"])


def test_one_reordering_event_has_no_interval_between_events() -> None:
    found = values(tables([flow_row(rtt_mean_s=0.1)], [event_row("reorder_event", 1.0, segments=2, value=0.01)], []))
    assert (2.0, None, 1.0) == (found["d"]["value"], found["a_h"]["value"], found["r"]["value"])


def test_events_of_an_unknown_flow_are_left_out() -> None:
    flows, events, rounds = Sender(0.02).run(100)
    strange = events.with_columns(pl.lit(7, pl.UInt32).alias("flow"))
    assert values((flows, events, rounds)) == values((flows, pl.concat([events, strange]), rounds))


def reacting() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Three reordering events a second apart; the first and the last set off needless resends, one of them reported."""
    flows = [flow_row(timestamps=True, vantage="sender", rtt_mean_s=0.05)]
    events = []
    for k in range(3):
        left, frame = 10_000 * (k + 1), 100 * (k + 1)
        span = {"left": left, "right": left + 1000}
        events.append(event_row("reorder_event", 1.0 + k, segments=1, frame=frame, value=0.03, **span))
        events.append(event_row("reordering", 1.03 + k, segments=4, frame=frame, value=0.03, **span))
        if k != 1:
            events.append(event_row("recovery", 1.02 + k, frame=frame + 10, value=0.05, **span))
            reason = "dsack" if k == 0 else "too-early"
            events.append(event_row("spurious", 1.02 + k, reason=reason, frame=frame + 10, **span))
    return flows, events


def test_the_senders_reaction_to_reordering_by_hand() -> None:
    flows, events, rounds = tables(*reacting(), [])
    found = reactions(flows, events)
    assert [True, False, True] == found["reacted"].to_list()
    assert ["recovery", None, "recovery"] == found["by"].to_list()
    assert [True, None, False] == found["undone"].to_list()
    assert 2.0 == values((flows, events, rounds))["a_h_reacted"]["value"]


def test_a_recovery_of_a_loss_beside_the_late_segments_is_no_reaction() -> None:
    flows, rows = reacting()
    needed = [row for row in rows if row["kind"] != "spurious"]
    assert not reactions(*tables(flows, needed, [])[:2])["reacted"].any()


def test_away_from_the_sender_the_copy_that_came_first_tells() -> None:
    flows, rows = reacting()
    flows[0]["vantage"] = "receiver"
    rows = [row | {"reason": "seen-twice"} if row["kind"] == "spurious" else row for row in rows]
    assert [True, None, True] == reactions(*tables(flows, rows, [])[:2])["undone"].to_list()
    swapped = [row | {"frame": row["frame"] + 20} if row["kind"].startswith("reorder") else row for row in rows]
    assert [False, None, False] == reactions(*tables(flows, swapped, [])[:2])["undone"].to_list()


def limited_at(windows: list[float], flow: int = 0) -> list[dict[str, Any]]:
    """Rounds that the receiver's windows limit."""
    return [
        round_row(i, 0.1 * i, 0.1, flow=flow, flight=window, rwnd=window, limited=True, sent_segments=int(window))
        for i, window in enumerate(windows)
    ]


def w_max_of(flows: list[list[float]]) -> list[tuple[float, float, float]]:
    rows = [row for flow, windows in enumerate(flows) for row in limited_at(windows, flow)]
    found = estimate(*tables([flow_row(i, sent_segments=1000) for i in range(len(flows))], [], rows))
    return found.filter(name="w_max").sort("flow").select("value", "low", "high").rows()


def test_the_interval_of_a_median_is_that_of_its_order_statistics() -> None:
    """1 to 25: the law of heads and tails leaves at most 2.5 % below the 8th and above the 18th."""
    assert special.bdtr(7, 25, 0.5) <= 0.025 < special.bdtr(8, 25, 0.5)
    assert [(13.0, 8.0, 18.0)] == w_max_of([[1.0 + 7 * n % 25 for n in range(25)]])
    assert [(13.0, None, None)] == w_max_of([[1.0 + n for n in range(25)]])  # a window that opened, once
    assert [(3.0, None, None)] == w_max_of([[1.0, 2.0, 3.0, 4.0, 5.0]])
    assert [(3.5, 1.0, 6.0)] == w_max_of([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])


def test_the_interval_of_a_flow_does_not_depend_on_others() -> None:
    random = np.random.default_rng(3)
    flows = [np.rint(random.uniform(10, 40, size)).tolist() for size in (12, 40, 400)]
    alone = [row for flow in flows for row in w_max_of([flow])]
    assert alone == w_max_of(flows)
    assert all(low < value < high for value, low, high in alone)


def test_equal_windows_leave_doubt_of_their_mean() -> None:
    """Of ten recoveries at 12 segments three in ten others may be at less, half of it at worst, or one segment more."""
    events = [event_row("recovery", float(i), flight=12.0) for i in range(10)]
    found = values(tables([flow_row(sent_segments=5000)], events, []))["w"]
    share = 1 - 0.025**0.1
    assert (12.0, 12 - 6 * share, 12 + share) == pytest.approx((found["value"], found["low"], found["high"]))
