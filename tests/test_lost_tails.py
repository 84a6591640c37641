"""What was lost of which nothing reached the receiver, where no number tells that something was sent."""

from __future__ import annotations

import pytest
from queue_path import QueuePath

from tcpfit.analysis import analyze

COUNTS = ("lost_segments", "fast_recoveries", "timeouts")


def path(**changes) -> QueuePath:
    return QueuePath(**{"rate": 2000.0, "way_s": 0.03, "buffer": 3, "seconds": 12.0} | changes, numbered=False)


def counted(flow: QueuePath, folder) -> list[int]:
    flow.run(folder)
    row = analyze(folder / "receiver.pcap").flows.row(0, named=True)
    return [row[column] for column in COUNTS]


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("timer_s", [0.3, 1.0])
def test_what_comes_alone_after_a_silence_and_opens_the_window_anew_is_the_timers(tmp_path, timer_s, stamped):
    flow = path(lost=frozenset({200, 201, 202, 300, 301, 302}), timer_s=timer_s, stamped=stamped)
    found = counted(flow, tmp_path)
    assert (flow.recoveries, flow.timeouts) == (0, 2)
    # the lowest of each tail: of the others nothing tells whether they had been sent
    assert [2, 0, 2] == found


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("buffer", [1, 3])
@pytest.mark.parametrize("pauses", [{200: 1.0, 300: 0.3}, dict.fromkeys(range(100, 140), 0.25)])
def test_an_application_that_pauses_sends_what_its_window_holds(tmp_path, pauses, buffer, stamped):
    assert [0, 0, 0] == counted(path(pauses=pauses, buffer=buffer, stamped=stamped), tmp_path)


@pytest.mark.parametrize("patience", [3, 1000])
def test_a_host_that_sends_on_for_each_duplicate_ack_has_sent_nothing_again(tmp_path, patience):
    flow = path(lost=frozenset({2000}), buffer=400, threshold=50, stamped=True, timer_s=0.25, patience=patience)
    found = counted(flow, tmp_path)
    assert (flow.recoveries, flow.timeouts) == ((1, 0) if patience == 3 else (0, 1))
    assert [1, flow.recoveries, flow.timeouts] == found


def test_a_fast_retransmit_that_was_lost_is_known_by_the_window_that_it_leaves(tmp_path):
    flow = path(lost=frozenset({2000}), again=frozenset({2000}), buffer=400, threshold=50, stamped=True, timer_s=0.25)
    found = counted(flow, tmp_path)
    assert (flow.recoveries, flow.timeouts) == (1, 1)
    assert [2, 1, 1] == found
