"""Segments that the path held: at a receiver that no number tells the order of sending, and before they were held."""

from __future__ import annotations

import random

import captures
import pytest
from queue_path import QueuePath
from test_scenarios import Reader

from tcpfit.analysis import analyze

ROUND_TRIPS, TIMER = 0.25, 1.3
"""How long the path holds them: for round trips, or longer than the timer."""


def held(first: int, many: int, seconds: float) -> dict[int, float]:
    return dict.fromkeys(range(first, first + many), seconds)


def path(**changes) -> QueuePath:
    return QueuePath(**{"rate": 2000.0, "window": 40} | changes, way_s=0.03, numbered=False, seconds=12.0)


def counted(flow: QueuePath, folder, place: str = "receiver") -> dict:
    flow.run(folder)
    row = analyze(folder / f"{place}.pcap").flows.row(0, named=True)
    columns = ("lost_segments", "reordered_segments", "reorder_events", "fast_recoveries", "timeouts")
    return {column: row[column] for column in columns}


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("many", [1, 3, 10])
def test_originals_that_come_after_what_duplicate_acks_asked_for_were_not_lost(tmp_path, many, stamped):
    flow = path(stamped=stamped, held=held(1000, many, ROUND_TRIPS) | held(4000, many, ROUND_TRIPS))
    found = counted(flow, tmp_path)
    assert (flow.recoveries, flow.timeouts) == (2, 0)
    # five of ten have been sent again when the first of them is answered: a host that looks at the echoes takes the
    # recovery back (RFC 3522), as Linux does, and begins another with each of the rest; this one looks like it
    recoveries = 2 * (1 + 5) if stamped and many == 10 else 2
    expected = {"lost_segments": 0, "reordered_segments": 2 * many, "reorder_events": 2}
    assert expected | {"fast_recoveries": recoveries, "timeouts": 0} == found


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("many", [1, 2])
def test_originals_that_come_after_the_timers_resends_were_not_lost(tmp_path, many, stamped):
    flow = path(stamped=stamped, buffer=3, held=held(200, many, TIMER) | held(260, many, TIMER))
    found = counted(flow, tmp_path)
    assert (flow.recoveries, flow.timeouts) == (0, 2)
    expected = {"lost_segments": 0, "reordered_segments": 2 * many, "reorder_events": 2}
    assert expected | {"fast_recoveries": 0, "timeouts": 2} == found


@pytest.mark.parametrize("many", [2, 5])
def test_a_sender_without_sack_sends_no_hole_after_the_other_at_once(tmp_path, many):
    """They come together when the resend of the first is due, and it comes right behind them."""
    flow = path(held=held(1000, many, 0.06))
    found = counted(flow, tmp_path)
    assert (flow.recoveries, flow.timeouts) == (1, 0)
    assert (0, many) == (found["lost_segments"], found["reordered_segments"])


def test_a_queue_brings_what_a_short_timer_sent_again_near_to_the_resend_before(tmp_path):
    drawn = random.Random(2)
    lost = frozenset(number for number in range(5000) if drawn.random() < 0.02)
    flow = path(rate=300.0, window=400, queue=60, timer_s=0.2, lost=lost)
    found = counted(flow, tmp_path)
    assert flow.timeouts > 0
    assert (0, 0) == (found["reordered_segments"], found["reorder_events"])


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("many", [1, 3])
def test_what_comes_once_and_a_round_trip_late_was_lost(tmp_path, many, stamped):
    numbers = {1000 + n for n in range(many)} | {4000 + n for n in range(many)}
    flow = path(stamped=stamped, lost=frozenset(numbers))
    found = counted(flow, tmp_path)
    expected = {"lost_segments": 2 * many, "reordered_segments": 0, "reorder_events": 0}
    assert expected | {"fast_recoveries": flow.recoveries, "timeouts": flow.timeouts} == found


@pytest.mark.parametrize("sack", [True, False])
@pytest.mark.parametrize("seconds", [0.0012, ROUND_TRIPS])
def test_acks_tell_of_what_was_overtaken_behind_the_capture_point(tmp_path, seconds, sack):
    flow = path(sack=sack, held=held(1000, 1, seconds) | held(4000, 1, seconds))
    found = {place: counted(flow, tmp_path, place) for place in ("sender", "middle")}
    expected = {"lost_segments": 0, "reordered_segments": 2, "reorder_events": 2}
    assert expected | {"fast_recoveries": flow.recoveries, "timeouts": 0} == found["middle"]
    assert found["sender"] == found["middle"]


def full_window(window: int, holds: dict[int, int], segments: int) -> str:
    """As `test_scenarios` reads it, at the receiver: a path of 30 ms whose link takes 2 ms a segment, and a sender with
    SACK whose window is full and stands in the link's queue. Segments of `holds` are overtaken by so many.

    Each ACK lets a segment go, those that a late one brings with it several at once, which the queue spreads. The third
    duplicate has the missing segment sent again, behind all that the window had let go before it.
    """
    sent = list(range(segments))
    for held in sorted(holds, reverse=True):
        sent.insert(held + window, held)
    order = list(enumerate(sent))
    for held, behind in holds.items():
        order.insert(held + behind, order.pop(next(n for n, (_, number) in enumerate(order) if number == held)))
    lines = [
        "0 < S 0:0(0) win 64000 <mss 1000,sackOK,wscale 7>",
        "0.0001 > S. 0:0(0) ack 1 win 64000 <mss 1000,sackOK,wscale 7>",
        "0.0300 < . 1:1(0) ack 1 win 500 [id 1]",
    ]
    edge, above = 0, 0
    for slot, (number_sent, number) in enumerate(order):
        time_s, left = 0.0305 + 0.002 * slot, 1 + 1000 * number
        lines.append(f"{time_s:.4f} < . {left}:{left + 1000}(1000) ack 1 win 500 [id {2 + number_sent}]")
        twice = number < edge
        if number == edge:
            edge, above = max(edge + 1, above), 0
        elif not twice:
            above = number + 1
        known = f"{left}:{left + 1000}" if twice else f"{1 + 1000 * (edge + 1)}:{1 + 1000 * above}" if above else ""
        option = f" <nop,nop,sack {known}>" if known else ""
        lines.append(f"{time_s + 0.0001:.4f} > . 1:1(0) ack {1 + 1000 * edge} win {1000 * window >> 7}{option}")
    return "\n".join(lines)


def test_what_a_sender_sends_again_it_did_not_know_to_have_arrived(tmp_path):
    """A full window stands in the queue, and no loss empties it: the round trip is four times the handshake's. What the
    path has held comes, and its resend so long after the ACK of that that the sender seemed to know."""
    holds = {number: 15 for number in range(300, 2300, 200)}
    path = tmp_path / "window.pcap"
    path.write_bytes(captures.pcap(Reader().read(full_window(60, holds, 2500)).packets))
    row = analyze(path).flows.row(0, named=True)
    assert (0, len(holds)) == (row["lost_segments"], row["reordered_segments"])
    assert (len(holds), 0) == (row["fast_recoveries"], row["timeouts"])
    assert row["rtt_mean_s"] == pytest.approx(0.12, rel=0.15)
