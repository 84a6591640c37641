"""Round trips one by one, which of them a delayed ACK may have made longer, and their percentiles without those.

**Samples**: one a cumulative ACK, from the data segment that it covers last. None where the ACK covers bytes that were
sent more than once (Karn; RFC 6298, 3): such an ACK may have waited for the resend. Away from the sender a sample is
the receiver's side of the round trip only.
**Delayed ACKs**: a receiver may wait with an ACK until two full segments have come, half a second at most (RFC 9293,
3.8.6.3; RFC 5681, 4.2; Linux waits 40 ms and more). What comes behind a hole it acknowledges at once. So an ACK waited
no longer than the sender took, after the segment answered, to send the first that arrived of those with which two full
ones were there: `wait_s`, 0 for an ACK of two. A sample is prompt if that is within 1 ms or a twentieth of it;
percentiles and drift are of the prompt ones.
**Drift**: Sen's slope through the least prompt samples of twenty equal stretches of the flow's time, with his interval
(Sen 1968). The path's own round trip may change, and so may a queue that never empties.
**Departures**: Linux also waits where its reader leaves no room to open the window further, however many segments came:
round trips to a slow reader hold such waits.
**Validation**: tests/test_delayed_acks.py; figures in docs/inference.md.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tcpfit.report import traffic
from tcpfit.schema import BOOL, F64, I64, U32, U64, Column, check_table

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ROUND_TRIPS = (
    Column("flow", U32, "", "number of the flow"),
    Column("time_ns", I64, "ns", "when the ACK passed"),
    Column("frame", U64, "", "the ACK"),
    Column("of_frame", U64, "", "the data segment that it covers last"),
    Column(
        "rtt_s", F64, "s", "from that segment to the ACK: away from the sender the receiver's side of the round trip"
    ),
    Column("acked_bytes", U64, "bytes", "what the ACK covers and none before it did"),
    Column("wait_s", F64, "s", "longest that the receiver may have waited with the ACK"),
    Column("prompt", BOOL, "", "wait_s is within 1 ms or a twentieth of rtt_s: a sample without a delayed ACK"),
    Column(
        "delayed",
        BOOL,
        "",
        "the receiver waited: rtt_s is 30 to 500 ms above the least prompt sample near it, and wait_s is as long",
    ),
)

BY_FLOW = (
    Column("flow", U32, "", "number of the flow"),
    Column("samples", U32, "", "round trips, one a cumulative ACK of data sent once"),
    Column("prompt", U32, "", "those without a delayed ACK, which all that follows is of"),
    Column("delayed", U32, "", "those that a delayed ACK made long"),
    Column("min_s", F64, "s", "the least; null where none is prompt, as below"),
    Column("p05_s", F64, "s", "5th percentile"),
    Column("p50_s", F64, "s", "median"),
    Column("p95_s", F64, "s", "95th percentile"),
    Column("p99_s", F64, "s", "99th percentile"),
    Column("drift", F64, "s/s", "slope of the least of twenty stretches of time; null where fewer than six have three"),
    Column("drift_low", F64, "s/s", "lower end of its 95 % interval"),
    Column("drift_high", F64, "s/s", "upper end"),
)

SCHEMA = {column.name: column.dtype for column in ROUND_TRIPS}

QUANTILES = {"p05_s": 0.05, "p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99}

NS = 10**9
LONGEST_WAIT_NS = 500_000_000
"""No receiver waits longer (RFC 9293, 3.8.6.3)."""
PROMPT_NS, PROMPT_SHARE = 1_000_000, 0.05
DELAY_NS = (30_000_000, LONGEST_WAIT_NS)
"""What a delayed ACK adds where it shows."""
TREMBLE_NS = 2_000_000
"""By so much a wait may seem longer than it can be: segments do not travel equally fast."""
MOST = 2**62
"""Bytes that are told apart."""
NEAR = 16
"""Samples either side among which the least is sought."""
STRETCHES, LEAST_STRETCHES, LEAST_SAMPLES = 20, 6, 3


def round_trips(analysis: Analysis, flows: Collection[int] | None = None) -> pl.DataFrame:
    """A row per sample with the columns `ROUND_TRIPS`, by flow and time, of these flows or of all.

    Raises InvalidParameter for a flow that the capture does not have, and for an analysis without segments.
    """
    rows = (analysis if flows is None else analysis.select(list(flows))).flows.sort("flow")
    table = traffic.labelled(analysis, rows["flow"].to_list())
    heard = table.filter(pl.col("acked").is_not_null(), (pl.col("flags") & traffic.RST) == 0)
    return between(table.filter(pl.col("payload") > 0), heard.with_columns(flow="reverse"), rows)


def between(sent: pl.DataFrame, heard: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The samples of flows: the columns `ROUND_TRIPS`.

    `sent` has `flow`, `time_ns`, `frame`, `left` and `right` of their data segments, `heard` `flow`, `time_ns`, `frame`
    and `acked` of the ACKs, each in the capture's order, offsets as those of `tcpfit.report.traffic`; `rows` has `flow`
    and `smss_bytes`, by flow.
    """
    number = rows["flow"].to_numpy()
    data = _by_flow(sent, number, ("time_ns", "frame", "left", "right"))
    acks = _by_flow(heard, number, ("time_ns", "frame", "acked"))
    if not len(data["flow"]) or not len(acks["flow"]):
        return pl.DataFrame(schema=SCHEMA)
    # one flow's offsets lie above another's, so that none is found among another's
    edges = (data["left"], data["right"], acks["acked"])
    least, most = min(x.min() for x in edges), max(x.max() for x in edges)
    smss = rows["smss_bytes"].cast(pl.Int64).to_numpy()
    room = most - least + 2 * int(smss.max()) + 1
    if rows.height > 1 and room * rows.height > MOST:
        halves = (rows[: rows.height // 2], rows[rows.height // 2 :])
        return pl.concat([between(sent, heard, half) for half in halves])
    for table, names in ((data, ("left", "right")), (acks, ("acked",))):
        for name in names:
            table[name] = table[name] - least + table["flow"] * room
    samples = _samples(data, acks, smss)
    return pl.DataFrame(samples | {"flow": number[samples["flow"]]}, schema=SCHEMA)


def by_flow(samples: pl.DataFrame) -> pl.DataFrame:
    """A row per flow with the columns `BY_FLOW`, of a table of `round_trips`.

    Raises InvalidParameter for another table.
    """
    check_table("the table of round trips", samples, ROUND_TRIPS, "tcpfit.report.round_trips.round_trips")
    prompt = pl.col("rtt_s").filter("prompt")
    quantiles = {name: prompt.quantile(share, "linear") for name, share in QUANTILES.items()}
    counts = {"samples": pl.len(), "prompt": pl.col("prompt").sum(), "delayed": pl.col("delayed").sum()}
    rows = samples.group_by("flow").agg(**counts, min_s=prompt.min(), **quantiles)
    drifts = _drifts(samples.filter("prompt"))
    return (
        rows.join(drifts, on="flow", how="left")
        .sort("flow")
        .select(pl.col(column.name).cast(column.dtype) for column in BY_FLOW)
    )


def _by_flow(table: pl.DataFrame, number: Integers, columns: tuple[str, ...]) -> dict[str, Integers]:
    """The columns of the segments of those flows, by flow; `flow` is its place among them."""
    ours = table.filter(pl.col("flow").is_in(number)).sort("flow", maintain_order=True)
    arrays = {name: ours[name].cast(pl.Int64).to_numpy() for name in columns}
    return arrays | {"flow": np.searchsorted(number, ours["flow"].to_numpy())}


def _samples(data: dict[str, Integers], acks: dict[str, Integers], smss: Integers) -> dict[str, Any]:
    """The columns `ROUND_TRIPS`, `flow` being a flow's place; no flow's offsets lie among another's."""
    new = data["left"] >= np.concatenate(([-1], np.maximum.accumulate(data["right"])[:-1]))
    resent = np.sort(data["left"][~new])
    sent = {name: column[new] for name, column in data.items()}
    first = np.searchsorted(sent["flow"], acks["flow"], "left")  # of the flow's data
    begun = np.append(sent["left"], -1)[first]

    covered = np.maximum.accumulate(acks["acked"])
    of_flow = np.concatenate(([True], acks["flow"][1:] != acks["flow"][:-1]))
    moved = of_flow | np.concatenate(([True], covered[1:] > covered[:-1]))
    heard = {name: column[moved] for name, column in (acks | {"acked": covered}).items()}
    edge = heard["acked"]
    before = np.where(of_flow[moved], np.minimum(edge, begun[moved]), np.concatenate(([0], edge[:-1])))
    answered = np.maximum(np.searchsorted(sent["right"], edge, "right") - 1, 0)  # the last segment that the ACK covers
    right = sent["right"][answered]
    karn = np.searchsorted(resent, edge, "left") == np.searchsorted(resent, before, "left")
    took = heard["time_ns"] - sent["time_ns"][answered]
    good = (right == edge) & (right > before) & karn & (took >= 0)
    heard = {name: column[good] for name, column in heard.items()}
    before, answered, took = before[good], answered[good], took[good]

    full = before + 2 * smss[heard["flow"]]
    wait = np.minimum(_longest_wait(sent, resent, answered, full), took)
    prompt = wait <= np.maximum(PROMPT_NS, PROMPT_SHARE * took)
    excess = took - _least_near(took, prompt, heard["flow"])
    return {
        "flow": heard["flow"],
        "time_ns": heard["time_ns"],
        "frame": heard["frame"],
        "of_frame": sent["frame"][answered],
        "rtt_s": took / NS,
        "acked_bytes": heard["acked"] - before,
        "wait_s": wait / NS,
        "prompt": prompt,
        "delayed": (excess >= DELAY_NS[0]) & (excess <= DELAY_NS[1]) & (wait + TREMBLE_NS >= excess),
    }


def _longest_wait(sent: dict[str, Integers], resent: Integers, answered: Integers, full: Integers) -> Integers:
    """How long after the segment answered the first was sent that made the receiver answer: of those with which bytes
    up to `full` were there, one that came, behind a hole or not. `resent`: where what was sent again begins."""
    count = len(sent["right"])
    came = np.searchsorted(resent, sent["right"], "left") == np.searchsorted(resent, sent["left"], "left")
    next_to_come = np.minimum.accumulate(np.where(came, np.arange(count), count)[::-1])[::-1]
    enough = np.searchsorted(sent["right"], full, "left")
    second = np.where(enough <= answered, answered, np.append(next_to_come, count)[enough])
    sure = np.minimum(second, count - 1)
    never = (second == count) | (sent["flow"][sure] != sent["flow"][answered])
    wait = sent["time_ns"][sure] - sent["time_ns"][answered]
    return np.where(never, LONGEST_WAIT_NS, np.minimum(wait, LONGEST_WAIT_NS))


def _least_near(took: Integers, prompt: npt.NDArray[np.bool_], flow: Integers) -> Floats:
    """The least prompt sample among the neighbours of each in its flow, or the least of any where none is prompt."""
    if not len(took):
        return took.astype(np.float64)
    # room between flows, so that no window reaches into another
    turn = np.concatenate(([0], np.cumsum(flow[1:] != flow[:-1])))
    place = np.arange(len(took)) + NEAR * (turn + 1)
    spread = np.full(place[-1] + 1 + NEAR, np.inf)
    least = []
    for values in (np.where(prompt, took, np.inf), took):
        spread[place] = values
        windows = np.lib.stride_tricks.sliding_window_view(spread, 2 * NEAR + 1)
        least.append(windows.min(axis=1)[place - NEAR])
    nearest: Floats = np.where(np.isfinite(least[0]), *least)
    return nearest


def _drifts(prompt: pl.DataFrame) -> pl.DataFrame:
    """Sen's slope of the stretches' least samples and its interval, of flows that have enough of them."""
    since = pl.col("time_ns") - pl.col("time_ns").min().over("flow")
    stretch = (since * STRETCHES / (since.max().over("flow") + 1)).floor().cast(pl.Int64)
    stretches = (
        prompt.with_columns(since=since / NS, stretch=stretch)
        .group_by("flow", "stretch")
        .agg(pl.len().alias("samples"), pl.col("rtt_s").min(), pl.col("since").get(pl.col("rtt_s").arg_min()))
        .filter(pl.col("samples") >= LEAST_SAMPLES)
        .filter(pl.len().over("flow") >= LEAST_STRETCHES)
        .sort("flow", "stretch")
    )
    rows = []
    for (flow,), least in stretches.group_by("flow", maintain_order=True):
        from scipy.stats import theilslopes  # not before it is needed: it takes a while to load

        slope = theilslopes(least["rtt_s"].to_numpy(), least["since"].to_numpy())
        rows.append((flow, slope.slope, slope.low_slope, slope.high_slope))
    columns = {column.name: column.dtype for column in BY_FLOW}
    schema = {name: columns[name] for name in ("flow", "drift", "drift_low", "drift_high")}
    return pl.DataFrame(rows, schema=schema, orient="row")
