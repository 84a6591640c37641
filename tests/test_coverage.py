"""Intervals of 95 % hold the truth in 93 to 97 % of simulated flows; docs/coverage.md has the whole table."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from intervals import RATES, coverage, sample
from loss_process import PROCESSES

FLOWS = 1500
CHANCE = 3 * (0.95 * 0.05 / FLOWS) ** 0.5
LOSS_RATES, EVENTS = (0.001, 0.01, 0.1), (5, 20, 200)
RENEWAL = [name for name in PROCESSES if name not in ("overflowing queue", "path that changes")]


@cache
def covered(process: str, p: float, events: int) -> dict[str, float]:
    return coverage(sample(PROCESSES[process], p, events, FLOWS))


@pytest.mark.parametrize("events", EVENTS)
@pytest.mark.parametrize("p", LOSS_RATES)
@pytest.mark.parametrize("process", RENEWAL)
def test_intervals_hold_the_rate_of_the_process(process: str, p: float, events: int) -> None:
    for name, share in covered(process, p, events).items():
        assert 0.93 - CHANCE <= share <= 0.98 + CHANCE, name


@pytest.mark.parametrize("name", RATES)
def test_intervals_hold_it_in_93_to_97_per_cent_over_all(name: str) -> None:
    shares = [covered(process, p, events)[name] for process in RENEWAL for p in LOSS_RATES for events in EVENTS]
    assert 0.93 <= np.mean(shares) <= 0.97


@pytest.mark.parametrize("events", EVENTS)
def test_losses_of_a_queue_are_more_regular_than_the_intervals_allow_for(events: int) -> None:
    assert all(share >= 0.95 - CHANCE for share in covered("overflowing queue", 0.01, events).values())
