"""Observed rates by hand."""

from __future__ import annotations

import pytest
from simulated_flows import Sender, event_row, flow_row, round_row, tables

from tcpfit.ranking import OBSERVED, observed


def test_rates_by_hand() -> None:
    """100 000 bytes sent and 80 000 of them new in 2 s; three segments of 1000 bytes never passed the capture point."""
    flow = flow_row(
        first_ns=5 * 10**9,
        last_ns=7 * 10**9,
        data_bytes=100_000,
        unique_bytes=80_000,
        data_segments=100,
        sent_segments=103,
        smss_bytes=1000,
    )
    rounds = [
        round_row(i, 5.0 + 0.5 * i, 0.5, flight=20.0, acked_bytes=bytes_)
        for i, bytes_ in enumerate((5000, 20_000, 25_000, 30_000))
    ]
    events = [event_row("recovery", 5.2, value=0.2)]  # steady from 5.4 s: the last three rounds
    found = observed(*tables([flow], events, rounds)).to_dicts()[0]
    assert [c.name for c in OBSERVED] == list(found)
    assert 8 * 103_000 / 2 == found["throughput_bps"]
    assert 8 * 80_000 / 2 == found["goodput_bps"]
    assert 8 * 75_000 / 1.5 == pytest.approx(found["steady_goodput_bps"])
    assert 2.0 == found["transfer_time_s"]


@pytest.mark.parametrize(
    ("vantage", "acks", "arrived"),
    [("sender", True, 60_000), ("middle", True, 60_000), ("receiver", True, 80_000), ("sender", False, 80_000)],
)
def test_what_is_under_way_when_the_capture_ends_is_no_goodput(vantage: str, acks: bool, arrived: int) -> None:
    flow = flow_row(
        vantage=vantage, acks_seen=acks, last_ns=10**9, data_segments=80, unique_bytes=80_000, acked_bytes=60_000
    )
    assert 8 * arrived == observed(*tables([flow], [], []))["goodput_bps"][0]


def test_a_single_packet_has_no_rate() -> None:
    found = observed(*tables([flow_row(data_bytes=100, unique_bytes=100)], [], [])).to_dicts()[0]
    assert [None] * 4 == list(found.values())[1:]


def test_idle_time_is_not_steady_time() -> None:
    rounds = [round_row(i, float(i), 0.1, flight=10.0, acked_bytes=10_000, idle_s=0.9) for i in range(5)]
    found = observed(*tables([flow_row(last_ns=5 * 10**9)], [], rounds)).to_dicts()[0]
    # four rounds of 1 s, 0.9 s of it idle, and the last, which ends when its ACK comes
    assert 8 * 50_000 / 0.4 == pytest.approx(found["steady_goodput_bps"])


def test_half_the_round_trip_doubles_the_rates() -> None:
    fast, slow = (observed(*Sender(0.01, rtt_s=rtt, rto_s=4 * rtt).run(300)).to_dicts()[0] for rtt in (0.1, 0.2))
    for name in ("throughput_bps", "goodput_bps", "steady_goodput_bps"):
        assert fast[name] == pytest.approx(2 * slow[name])


def test_the_digits_of_a_flow_do_not_depend_on_how_many_there_are() -> None:
    """A duration that is no multiple of what a double divides exactly."""
    flows = [flow_row(flow=n, last_ns=41_207_000 + 7 * n, acked_bytes=5000, unique_bytes=5000) for n in range(50)]
    together = observed(*tables(flows, [], [])).rows()
    assert together == [observed(*tables([flow], [], [])).row(0) for flow in flows]
