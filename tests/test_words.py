"""Do numbers read as people write them?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcpfit.report import words


@pytest.mark.parametrize(
    ("bps", "text"),
    [
        (None, "-"),
        (0, "0 b/s"),
        (950, "950 b/s"),
        (999.7, "1.00 kb/s"),
        (1_390_000, "1.39 Mb/s"),
        (2.5e10, "25.0 Gb/s"),
    ],
)
def test_rates(bps, text):
    assert text == words.rate(bps)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0 s"),
        (68.8, "68.8 s"),
        (1.0, "1.00 s"),
        (0.1014, "101 ms"),
        (2.5e-5, "25.0 us"),
        (3e-9, "3 ns"),
    ],
)
def test_times(value, text):
    assert text == words.seconds(value)


@pytest.mark.parametrize(
    ("value", "text"), [(0.00834, "0.00834"), (0.99996, "1.00"), (12.34, "12.3"), (99.96, "100"), (8.3e-6, "8.3e-06")]
)
def test_three_digits(value, text):
    assert text == words.significant(value)


@given(st.ip_addresses(), st.integers(1, 65535))
def test_endpoints_fit_their_column(address, port):
    assert len(words.short_endpoint(str(address), port)) <= 22
    assert words.endpoint(str(address), port).endswith(f":{port}")


def test_long_address_keeps_both_ends():
    assert "[2001:d..2:1111]:40000" == words.short_endpoint("2001:db8:aaaa:bbbb:cccc:dddd:2:1111", 40000)
    assert "10.0.0.1:80" == words.short_endpoint("10.0.0.1", 80)


def test_meaning_of_a_parameter_leaves_out_its_source():
    assert "loss events per segment sent" == words.meaning("p")
    assert "" == words.meaning("nothing")


def test_what_a_parameter_is():
    """Of a flow without a timeout the timer is no mean of timeouts, and w is no mean over the flow's whole time."""
    assert words.meaning("w") == "mean data in flight when a recovery or a series of timeouts began"
    assert words.meaning("rto", 9) == "mean first timeout of a series"
    assert words.meaning("rto", 0) == "timer reckoned from the round trips (RFC 6298): no timeout was seen"


@pytest.mark.parametrize(
    ("low", "high", "observations", "text"),
    [
        (None, None, 9, "-"),
        (0.0965, None, 15, "at least 96.5 ms"),
        (None, 0.0965, 15, "at most 96.5 ms"),
        (0.063, 0.0965, 2, "63.0 ms to 96.5 ms"),
        (0.063, 25859.0, 2, "too few seen"),
        (0.063, 25859.0, 3, "63.0 ms to 25859 s"),
        (0.063, 25859.0, None, "63.0 ms to 25859 s"),
        (0.0, 0.005, 0, "0 s to 5.00 ms"),
    ],
)
def test_intervals(low, high, observations, text):
    assert text == words.interval("rtt", {"low": low, "high": high, "n": observations})
