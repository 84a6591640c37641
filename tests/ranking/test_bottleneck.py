"""Is a flow that fills its bottleneck told from one whose window losses set?"""

from __future__ import annotations

import numpy as np
import pytest
from simulated_flows import Sender, Tables, event_row, flow_row, round_row, tables

from tcpfit.parameters import estimate
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.window import w_max
from tcpfit.ranking import rank
from tcpfit.ranking.bottleneck import FLAT, GROWTH, STANDING, Bottleneck, bottleneck
from tcpfit.ranking.steady import steady

BASE_S, CAPACITY, SMSS = 0.05, 400.0, 1000.0  # 20 segments fill the path


def sawtooth(low: int, high: int, cycles: int = 12) -> Tables:
    """A window from `low` to `high` again and again, a loss at each top, over a path of 20 segments and a queue."""
    rounds, events, now = [], [event_row("recovery", 0.0, value=0.01, flight=float(high))], 0.02
    for window in [*range(low, high + 1)] * cycles:
        lasted = max(BASE_S, window / CAPACITY)
        rounds.append(
            round_row(
                len(rounds),
                now,
                lasted,
                rtt_s=lasted,
                flight=float(window),
                sent_segments=window,
                acked_bytes=int(window * SMSS),
            )
        )
        if window == high:
            events.append(event_row("loss_event", now, segments=1, flight=float(high)))
            events.append(event_row("recovery", now + lasted, segments=1, flight=float(high), value=lasted))
        now += lasted
    sent = sum(row["sent_segments"] for row in rounds)
    flow = flow_row(
        0,
        smss_bytes=SMSS,
        sent_segments=sent,
        unique_bytes=int(sent * SMSS),
        loss_events=cycles,
        lost_segments=cycles,
        rtt_min_s=BASE_S,
        rtt_mean_s=float(np.mean([row["rtt_s"] for row in rounds])),
        last_ns=int(now * 1e9),
    )
    return tables([flow], events, rounds)


def evidence_of(parts: Tables) -> Bottleneck:
    evidence = Evidence(*parts)
    return bottleneck(evidence, steady(evidence, w_max(evidence).value))


def test_a_window_above_what_the_path_holds_is_a_full_bottleneck() -> None:
    parts = sawtooth(25, 50)
    found = evidence_of(parts)
    assert 1.0 == pytest.approx(found.flatness[0])
    assert 1.0 == pytest.approx(found.growth[0])
    assert found.standing[0] >= STANDING
    ranking, verdicts = rank(*parts, estimate(*parts))
    assert not ranking["applicable"].any()
    assert "filled its bottleneck" in verdicts["text"][0]


def test_a_window_below_it_is_not() -> None:
    found = evidence_of(sawtooth(8, 16))
    assert 0.56 == pytest.approx(found.flatness[0], abs=0.08)
    assert 0.0 == pytest.approx(found.growth[0], abs=1e-9)
    assert 1.0 == pytest.approx(found.standing[0])


def test_losses_of_a_simulated_sender_leave_the_rate_uneven() -> None:
    found = evidence_of(Sender(0.004, slow_start=False).run(3000, seed=2))
    assert found.flatness[0] < FLAT
    assert not found.growth[0] >= GROWTH


def test_few_rounds_tell_nothing() -> None:
    found = evidence_of(sawtooth(8, 16, cycles=1))
    assert np.isnan([found.flatness[0], found.growth[0], found.standing[0]]).all()
