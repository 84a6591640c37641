"""A row a flow: identity, size, rate, verdict, diagnosis and parameters, from the tables of a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from tcpfit.parameters import NAMES
from tcpfit.schema import ENDS

if TYPE_CHECKING:
    from tcpfit.corpus.dataset import Corpus

COUNTS = (
    "data_segments",
    "sent_segments",
    "lost_segments",
    "loss_events",
    "timeouts",
    "fast_recoveries",
    "tail_loss_probes",
    "spurious_retransmissions",
    "reorder_events",
    "reordered_segments",
    "duplicated_segments",
    "zero_window_episodes",
    "mark_events",
)


def flows(corpus: Corpus) -> pl.DataFrame:
    """A row a flow of the data set, sorted by capture and flow.

    Beside columns of its tables: `group` numbers flows, which captures at both ends show twice; `weight` is 1 over the
    rows of the group, so that each flow counts once; `cluster` numbers sets of captures that share no flow with others,
    within which flows are alike; `rate` is the steady goodput in segments a second.
    """
    base = corpus.flows.select(
        "capture",
        "flow",
        "connection",
        *ENDS,
        "first_ns",
        "last_ns",
        "data_bytes",
        "unique_bytes",
        *COUNTS,
        "goodput_bps",
        "steady_goodput_bps",
        "transfer_time_s",
        "smss_bytes",
        "rtt_min_s",
        "limited_share",
        "family",
        sack="sack_permitted",
    )
    wide = (
        corpus.parameters.select("capture", "flow", pl.col("name").cast(pl.String), "value")
        .collect(engine="streaming")
        .pivot(on="name", on_columns=list(NAMES), index=["capture", "flow"], values="value")
    )
    verdicts = corpus.verdicts.select("capture", "flow", pl.col("state").cast(pl.String), named="models")
    diagnoses = corpus.diagnoses.select(
        "capture", "flow", pl.col("primary").cast(pl.String), pl.col("who").cast(pl.String), "remedy", "confidence"
    )
    paths = corpus.captures.select("capture", "path")
    table: pl.DataFrame = (
        base.join(verdicts, on=["capture", "flow"], how="left")
        .join(diagnoses, on=["capture", "flow"], how="left")
        .join(paths, on="capture", how="left")
        .collect(engine="streaming")
    )
    lossy = pl.col("reorder_events") + pl.col("loss_events")
    table = table.join(wide, on=["capture", "flow"], how="left").with_columns(
        rate=pl.col("steady_goodput_bps") / (8 * pl.col("smss_bytes")),
        reorder_share=pl.when(lossy > 0).then(pl.col("reorder_events") / lossy),
    )
    return _clustered(_grouped(table)).sort("capture", "flow")


def _grouped(table: pl.DataFrame) -> pl.DataFrame:
    # the same addresses and ports, and times that overlap: one flow that two captures saw
    sorted_ = table.sort(*ENDS, "first_ns", "capture", "flow")
    until = pl.col("last_ns").cum_max().over(ENDS).shift(1).over(ENDS)
    fresh = (until.is_null() | (pl.col("first_ns") > until)).cast(pl.UInt32)
    numbered = sorted_.with_columns(group=fresh.cum_sum() - 1)
    return numbered.with_columns(weight=1.0 / pl.len().over("group"))


def connections(flows: pl.DataFrame) -> int:
    """How many connections the flows are of: one has up to two, in every capture that saw it."""
    return len(np.unique(_joined(flows, pl.struct("capture", "connection"))))


def _clustered(table: pl.DataFrame) -> pl.DataFrame:
    # captures that share a flow are one cluster
    return table.with_columns(cluster=pl.Series(_joined(table, pl.col("capture")), dtype=pl.UInt32))


def _joined(table: pl.DataFrame, of: pl.Expr) -> np.ndarray:
    """The connected part that each row lies in, in the graph of some sets of rows and of groups."""
    sets = table.select(of.rank("dense")).to_series().to_numpy().astype(np.int64) - 1
    groups = table["group"].to_numpy().astype(np.int64)
    if not len(sets):
        return sets
    size = int(sets.max()) + 1
    ones = np.ones(len(sets), np.int8)
    shape = (size + int(groups.max()) + 1,) * 2
    _, part = connected_components(coo_matrix((ones, (sets, size + groups)), shape=shape), directed=False)
    return np.asarray(part[sets], np.int64)
