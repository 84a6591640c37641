"""Traits of hosts that send data: what their timers and timestamp clocks show, over all flows of a host.

**Rule**: every first timeout that was seen has the timer replayed beside it, once as Linux sets it (`replayed_s`) and
once as RFC 6298 writes it, with its floor of a second (`replayed_rfc_s`). With at least 3 of them, the rule is the one
whose median ratio (seen over replayed) lies within 0.95 to 1.15 while the other's does not; else it is `unknown`: too
few timeouts, another floor, or round trips so long that both rules agree.
**Departures**: a timer is never seen early but often late, by a tick of the host and, in Linux, by up to an eighth (the
timer wheel), so the range is not centred on 1.
**Validation**: tests/parameters/test_hosts.py; figures in docs/inference.md.
"""

from __future__ import annotations

import polars as pl

from tcpfit.schema import check_tables

TIMERS = {
    "linux": "SRTT + max(200 ms, 4 RTTVAR), the variance renewed once a round trip",
    "rfc6298": "max(1 s, SRTT + 4 RTTVAR)",
    "unknown": "the capture does not show it",
}

TIMEOUTS = 3
LEAST, MOST = 0.95, 1.15


def hosts(flows: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """A row a host that sends data, sorted by it.

    Columns host, flows, timeouts (first ones seen), timer (Enum of `TIMERS`), timer_over_linux and timer_over_rfc
    (median ratios), rto_least_s (the shortest first timeout) and stamp_tick_s (tick of its timestamp clock), null where
    not known. Raises InvalidParameter for a table that is none of `tcpfit.schema`.
    """
    check_tables(flows=flows, events=events)
    sending = flows.filter(pl.col("data_segments") > 0)
    first = events.filter(
        (pl.col("kind") == "timeout") & (pl.col("segments") == 0) & pl.col("replayed_s").is_not_null()
    ).join(sending.select("flow", pl.col("src").alias("host")), on="flow")
    seen = first.group_by("host").agg(
        pl.len().cast(pl.UInt32).alias("timeouts"),
        (pl.col("value") / pl.col("replayed_s")).median().alias("timer_over_linux"),
        (pl.col("value") / pl.col("replayed_rfc_s")).median().alias("timer_over_rfc"),
        pl.col("value").min().alias("rto_least_s"),
    )
    table = sending.group_by(pl.col("src").alias("host")).agg(
        pl.len().cast(pl.UInt32).alias("flows"), pl.col("stamp_tick_s").median()
    )
    table = table.join(seen, on="host", how="left").with_columns(pl.col("timeouts").fill_null(0))
    enough = pl.col("timeouts") >= TIMEOUTS
    linux = pl.col("timer_over_linux").is_between(LEAST, MOST).fill_null(False)
    rfc = pl.col("timer_over_rfc").is_between(LEAST, MOST).fill_null(False)
    timer = (
        pl.when(enough & linux & ~rfc)
        .then(pl.lit("linux"))
        .when(enough & rfc & ~linux)
        .then(pl.lit("rfc6298"))
        .otherwise(pl.lit("unknown"))
    )
    columns = (
        "host",
        "flows",
        "timeouts",
        "timer",
        "timer_over_linux",
        "timer_over_rfc",
        "rto_least_s",
        "stamp_tick_s",
    )
    return table.with_columns(timer.cast(pl.Enum(list(TIMERS))).alias("timer")).select(columns).sort("host")
