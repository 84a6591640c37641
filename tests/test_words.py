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
