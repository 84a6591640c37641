"""What the flows achieved: rates and times that predictions are held against.

**Definitions**: the duration runs from the first data segment to the last one or the ACK that covers it (`first_ns`,
`last_ns`). `throughput_bps` counts every payload byte sent, repeats and losses included (a segment that did not pass
the capture point counts one SMSS); `goodput_bps` the bytes that arrived: at the receiver those of distinct sequence
numbers, elsewhere those acknowledged (sent, where no ACK is in the capture); `steady_goodput_bps` the acknowledged
bytes of the steady rounds over their time (`steady.py`); `transfer_time_s` is the duration.
**Validation**: tests/ranking/test_observed.py.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.intervals import summed
from tcpfit.parameters.window import w_max
from tcpfit.ranking.steady import steady
from tcpfit.schema import F64, U32, Column, check_tables

OBSERVED = (
    Column("flow", U32, "", "number of the flow"),
    Column("throughput_bps", F64, "bit/s", "payload bits sent per second, repeats included; null without a duration"),
    Column("goodput_bps", F64, "bit/s", "payload bits per second that arrived, repeats left out"),
    Column("steady_goodput_bps", F64, "bit/s", "payload bits acknowledged per second of the steady part, or null"),
    Column("transfer_time_s", F64, "s", "first data segment to the last one or the ACK that covers it"),
)


def observed(flows: pl.DataFrame, events: pl.DataFrame, rounds: pl.DataFrame) -> pl.DataFrame:
    """Rates and times of every flow, columns as in `OBSERVED`, sorted by flow.

    Raises InvalidParameter for a table that is none of `tcpfit.schema`.
    """
    check_tables(flows=flows, events=events, rounds=rounds)
    return observed_of(Evidence(flows, events, rounds))


def observed_of(evidence: Evidence) -> pl.DataFrame:
    """The same of an evidence."""
    part = steady(evidence, w_max(evidence).value)
    acked = summed(np.where(part.inside, evidence.rounds.floats("acked_bytes"), 0.0), part.owner, len(evidence))
    seconds = summed(np.where(part.inside, part.duration_s, 0.0), part.owner, len(evidence))
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(seconds > 0, 8.0 * acked / seconds, np.nan)
    # polars would multiply by the reciprocal, which is another number, where there are several flows
    duration = pl.lit(pl.Series((evidence.column("last_ns") - evidence.column("first_ns")) / 1e9))
    unseen = pl.col("sent_segments").cast(pl.Int64) - pl.col("data_segments").cast(pl.Int64)
    sent = pl.col("data_bytes") + pl.max_horizontal(unseen, 0) * pl.col("smss_bytes")
    distinct = (pl.col("vantage").cast(pl.String) == "receiver") | ~pl.col("acks_seen")
    distinct &= pl.col("data_segments") > 0
    arrived = pl.when(distinct).then(pl.col("unique_bytes")).otherwise(pl.col("acked_bytes"))
    known = duration > 0
    table = evidence.flows.select(
        "flow",
        pl.when(known).then(8.0 * sent / duration).alias("throughput_bps"),
        pl.when(known).then(8.0 * arrived / duration).alias("goodput_bps"),
        pl.Series("steady_goodput_bps", rate).fill_nan(None),
        pl.when(known).then(duration).alias("transfer_time_s"),
    )
    return table.cast({c.name: c.dtype for c in OBSERVED})
