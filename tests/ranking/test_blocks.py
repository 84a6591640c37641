"""The steady part, its blocks, and parameters of sets of blocks."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_flows import Sender, Tables, event_row, flow_row, round_row, tables, together

from tcpfit.parameters import NAMES, estimates
from tcpfit.parameters.evidence import Evidence
from tcpfit.ranking.blocks import EVENTS, MOST, OF_SUMS, SUMS, Blocks, blocks, parameters
from tcpfit.ranking.steady import steady


def cut(parts: Tables) -> tuple[Evidence, Blocks]:
    """Evidence and blocks of the flows."""
    evidence = Evidence(*parts)
    found = estimates(evidence)
    return evidence, blocks(evidence, steady(evidence, found["w_max"].value), found["rtt"].value)


def of(sums: np.ndarray, name: str) -> np.ndarray:
    """One of the sums."""
    return sums[:, SUMS.index(name)]


def test_blocks_by_hand() -> None:
    """A first recovery, then a loss event every other of 20 rounds: ten events, two blocks of at least four."""
    rounds = [round_row(i, 0.1 * i, 0.1, sent_segments=10, acked_bytes=9000, flight=10.0) for i in range(22)]
    events = [event_row("loss_event", 0.0), event_row("recovery", 0.1, value=0.1, flight=10.0)]
    events += [event_row("loss_event", 0.1 * i + 0.05, segments=1, flight=10.0) for i in range(2, 22, 2)]
    _, found = cut(tables([flow_row(rtt_mean_s=0.1)], events, rounds))
    assert [5, 5] == of(found.sums, "events").tolist()
    assert [90, 110] == of(found.sums, "sent").tolist()
    assert [90, 110] == of(found.sums, "full_sent").tolist()
    assert [81, 99] == of(found.sums, "acked").tolist()
    assert [0.9, 1.1] == pytest.approx(of(found.sums, "seconds").tolist())


def test_every_block_has_enough_events_and_nothing_is_lost() -> None:
    evidence, found = cut(together([Sender(0.02, flow=i).run(300 + 700 * i) for i in range(3)]))
    assert (of(found.sums, "events") >= EVENTS).all()
    assert (found.count() <= MOST).all()
    part = steady(evidence, np.full(3, np.nan))
    inside = np.bincount(part.owner, evidence.rounds.floats("sent_segments") * part.inside)
    assert inside.tolist() == of(found.of_flows(), "sent").tolist()


def test_slow_start_and_its_overshoot_are_not_steady() -> None:
    evidence = Evidence(*Sender(0.01).run(200))
    first = min(evidence.of("recovery").frame["time_ns"][0] + 10**8, evidence.first_timeouts.frame["time_ns"][0])
    part = steady(evidence, np.array([np.nan]))
    assert (
        evidence.rounds.frame["start_ns"][0] < first <= evidence.rounds.frame["start_ns"].to_numpy()[part.inside].min()
    )


def test_what_timeouts_interrupt_is_not_steady_before_it_is_acknowledged() -> None:
    """Slow start overshoots to 40 segments, its recovery ends in a timeout, and on the way another timer runs out: all
    sent by then is acknowledged when the sixth round begins."""
    sent, resent = [10, 20, 40, 20, 15, 20, 10, 10], [0, 0, 0, 10, 15, 20, 0, 0]
    acked = [0, 10, 20, 5, 5, 40, 10, 10]
    rounds = [
        round_row(i, float(i), 1.0, sent_segments=n, resent_segments=again, acked_bytes=1000 * back, flight=10.0)
        for i, (n, again, back) in enumerate(zip(sent, resent, acked, strict=True))
    ]
    events = [event_row("recovery", 2.5, value=0.9), event_row("timeout", 3.4), event_row("timeout", 4.5)]
    flow = flow_row(unique_bytes=100_000)
    for some, start in ((events, 6), (events[:1], 4), (events[:2], 6), (events[1:2], 6), (events[:1] + events[2:], 4)):
        part = steady(Evidence(*tables([flow], some, rounds)), np.array([np.nan]))
        assert [n >= start for n in range(8)] == part.inside.tolist(), some
    # what is never acknowledged does not begin later than the first reaction ends
    never = [row | {"acked_bytes": 0} for row in rounds]
    part = steady(Evidence(*tables([flow], events, never)), np.array([np.nan]))
    assert [n >= 4 for n in range(8)] == part.inside.tolist()


def test_sums_of_all_blocks_give_the_parameters_of_the_steady_part() -> None:
    evidence, found = cut(Sender(0.01).run(3000))
    own = {name: estimate.value for name, estimate in estimates(evidence).items()}
    whole = parameters(found.of_flows(), own)
    for name in ("p", "p_indication", "q_tilde", "q", "m", "w", "p_to", "rtt", "rto"):
        assert own[name][0] == pytest.approx(whole[name][0], rel=0.05)


def test_parameters_without_observations_are_those_that_are_given() -> None:
    fixed = {name: np.array([0.25]) for name in NAMES}
    assert [0.25] * len(NAMES) == [parameters(np.zeros((1, len(SUMS))), fixed)[name][0] for name in NAMES]


def test_what_sums_give_is_named() -> None:
    fixed = {name: np.array([0.25]) for name in NAMES}
    own = parameters(np.ones((1, len(SUMS))), fixed)
    assert sorted(OF_SUMS) == sorted(name for name in NAMES if own[name][0] != 0.25)


def test_no_rounds_no_blocks() -> None:
    _, found = cut(tables([flow_row()], [], []))
    assert [0] == found.count().tolist()
