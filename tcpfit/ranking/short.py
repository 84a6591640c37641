"""Short flows: the times of transfers pooled by size, held against every transfer-time model.

One short flow says little: with a loss or two its time is a draw from a wide distribution. So models are judged on all
short flows of one or more captures, by size.

**A transfer** is the larger direction of a connection (the other one carries requests), of at most `MOST` segments, all
of them acknowledged, with no more than a tenth of its time idle (an application that pauses is not described by any of
the models). Its time runs from the first data segment to the ACK of the last one, as the sender saw it: a capture
elsewhere misses the part of one round trip that lies on the sender's side (`vantage_fraction`). The handshake is left
out on both sides.

**Fed values** RTT and first timeout are the flow's own. Loss rates are those of the *other* transfers between the same
two hosts, of all other transfers where these sent fewer than `KNOWN` segments: the flow's own rate is 0 in most
short flows, and known only once the time to be predicted is over. `start` tells how a transfer begins:

paper     the papers' defaults: a window of 1 segment, b = 2, a delayed ACK of 0.1 s;
measured  of the host that sends: the median first window of transfers that needed more than one round (RFC 6928: 10),
          growth from the first round to the second of those without loss (b = 1 where the window doubles), the wait for
          the ACK of single segments in other transfers; in whole round trips (`whole_rounds`).
drawn     (hysteresis only, an extension) the measured start, and the positions of the losses drawn, not their mean.

A model takes of these what it has a parameter for: Sikdar's models have their slow start built in.

**Score** of the mean time t that a model predicts for a time T: the gamma deviance 2 (T/t - 1 - ln(T/t)), averaged. It
is least for the true mean (Gneiting 2011), which |ln(t/T)| is not: times are skewed, and their median lies below the
mean that the models speak of. Differences are paired by flow. Beside the models stands a baseline, `loss-free`: as many
round trips as the measured slow start needs without any loss.

**Validation** tests/ranking/test_short.py; docs/short-flows.md has the figures.

**Reference** Gneiting: Making and Evaluating Point Forecasts, JASA 106, 2011, doi:10.1198/jasa.2011.r10138.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter
from tcpfit.models import Model, catalogue
from tcpfit.models.hysteresis import Hysteresis
from tcpfit.parameters.evidence import floats
from tcpfit.parameters.intervals import Floats, Ints
from tcpfit.ranking.table import STATE, TEXTS
from tcpfit.ranking.variants import named_models
from tcpfit.ranking.verdict import NEAR
from tcpfit.schema import BOOL, F64, STR, U32, Column, check_table

MOST = 200
"""Segments of the largest short flow."""
KNOWN = 100
"""Segments that give a loss rate of a path."""
IDLE = 0.1
ENOUGH = 20
"""Flows of a size that a comparison needs."""
TOLD = 4
"""Models that a sentence names."""
LOST = 5
"""Flows of a size with a loss that a comparison needs: without loss all models count the same rounds."""
SIZES = ((1, 3), (4, 10), (11, 30), (31, 100), (101, MOST))
LOSS_FREE = "loss-free"
DRAWN, DRAWS, SEED = "drawn", 400, 2004
EVEN = np.full(DRAWS, 1 / DRAWS)
LEVELS = (0.05, 0.1, 0.25, 0.75, 0.9, 0.95)
LAW = ("predicted_s", "variance", *(f"q{100 * level:g}" for level in LEVELS))
STARTS = {
    "paper": {"w_1": 1.0, "b": 2.0, "delayed_ack": 0.1},
    "measured": {"w_1": math.nan, "b": math.nan, "delayed_ack": math.nan},
}

TRANSFERS = (
    Column("capture", U32, "", "position of the capture"),
    Column("flow", U32, "", "number of the flow"),
    Column("segments", F64, "segments", "size of the transfer"),
    Column("time_s", F64, "s", "first data segment to the ACK of the last one, as the sender saw it"),
    Column("handshake_s", F64, "s", "SYN to SYN-ACK to ACK, not in `time_s`; null where `handshake_rtt_s` is"),
    Column("losses", F64, "segments", "segments lost, first transmissions and repeats"),
    Column("rtt", F64, "s", "mean round-trip time of the flow, of its handshake where it has no other"),
    Column("rto", F64, "s", "first timeout of a series"),
    Column("w_max", F64, "segments", "window limit; infinite where none was reached"),
    Column("q_tilde", F64, "", "segment losses per segment of the other transfers"),
    Column("p_indication", F64, "", "loss indications per segment of the other transfers"),
    Column("w_1", F64, "segments", "first window of the host's transfers"),
    Column("b", F64, "rounds/segment", "1/(growth - 1) of the host's second round over its first"),
    Column("delayed_ack", F64, "s", "wait for the ACK of a single segment"),
)

SHORT = (
    Column("low", U32, "segments", "smallest size"),
    Column("high", U32, "segments", "largest size"),
    Column("flows", U32, "", "transfers of that size that the model has a time for"),
    Column("with_loss", U32, "", "those that lost a segment"),
    Column("model", STR, "", "name of the model, or the baseline `loss-free`"),
    Column("start", STR, "", "how a transfer begins: `paper`, `measured`, or `drawn`: measured, and losses drawn"),
    Column("rank", U32, "", "1 is best, by score; null for the baseline"),
    Column("observed_mean_s", F64, "s", "mean time"),
    Column("predicted_mean_s", F64, "s", "mean of the predicted times"),
    Column("log_ratio_mean", F64, "", "ln of the predicted mean over the observed one"),
    Column("log_ratio_se", F64, "", "its standard error, from the spread of the observed times"),
    Column("log_ratio_median", F64, "", "median of ln(predicted/observed) over the flows"),
    Column("score", F64, "", "mean gamma deviance of the times; 0 is perfect"),
    Column("difference", F64, "", "score less the best one"),
    Column("difference_se", F64, "", "standard error of the difference, paired by flow"),
    Column("as_good", BOOL, "", "within two standard errors of the best, and near the observed mean"),
    Column("observed_sd_s", F64, "s", "standard deviation of observed time less predicted mean"),
    Column("predicted_sd_s", F64, "s", "root of the mean predicted variance; hysteresis"),
    Column("inside_50", F64, "", "share of times in hysteresis' central 50 %, with a quarter round trip of slack"),
    Column("inside_90", F64, "", "share within the central 90 %"),
    Column("below_10", F64, "", "share of times below the predicted 10 % quantile"),
    Column("above_90", F64, "", "share of times above the predicted 90 % quantile"),
)

SHORT_VERDICTS = (
    Column("low", U32, "segments", "smallest size"),
    Column("high", U32, "segments", "largest size"),
    Column("state", STATE, "", "explained, undecided, insufficient or none_applies"),
    Column("models", TEXTS, "", "the models it names, best first, with their start"),
    Column("text", STR, "", "the verdict in a sentence or two"),
)


def transfer_models() -> dict[str, Model]:
    """The catalogue's models of the transfer time, counted from the first data segment."""
    found = {}
    for name, model in catalogue().items():
        if model.predicts == "transfer-time" and name != "catnip":  # no flow shows whether routers spare segments
            found[name] = model.set_params(handshake=False) if "handshake" in model.get_params() else model
    return found


def transfers(captures: Sequence[Any], most: int = MOST) -> pl.DataFrame:
    """The transfers of one or more captures (`Analysis`, or anything with flows, rounds and parameters).

    Columns as in `TRANSFERS`, sorted by capture and flow. Raises InvalidParameter where `most` is below 1, and for what
    is no list of captures.
    """
    most = arguments.whole("most", most)
    parts = [
        _of_capture(capture, most).with_columns(capture=pl.lit(i, pl.UInt32))
        for i, capture in enumerate(arguments.analyses(captures))
    ]
    if not parts:
        return pl.DataFrame(schema={c.name: c.dtype for c in TRANSFERS})
    table = _with_hosts(_with_losses(pl.concat(parts)))
    schema = pl.Schema({c.name: c.dtype for c in TRANSFERS})
    return table.sort("capture", "flow").select(schema.names()).cast(schema)


def alone(capture: Any, models: Mapping[str, Model] | None = None, most: int = MOST) -> pl.DataFrame:
    """What every model says of each short flow of a capture by itself: columns flow, model, time_s, predicted_s.

    Short is what has at most so many segments. Loss rates and start are the flow's own, as of the models of a rate, so
    that other flows do not change them. The baseline is left out. One transfer ranks no model: its time is a draw from
    a wide distribution.
    """
    table = _of_capture(capture, most).with_columns(
        # a path and a host of its own each
        capture=pl.col("flow"),
        q_tilde=pl.col("losses") / pl.col("sent_segments"),
        p_indication=pl.col("indications").cast(pl.Float64) / pl.col("sent_segments"),
    )
    times = predicted(_with_hosts(table), models, starts=["measured"]).filter(pl.col("model") != LOSS_FREE)
    return times.join(table.select("flow", "time_s"), on="flow").select("flow", "model", "time_s", "predicted_s")


OWN = ("rtt", "rto", "w_max", "p_indication")
"""Parameters of a flow that its transfer takes. Of p_indication the count is taken: recoveries and series of timeouts,
whatever they back off to, but no timeout of a SYN."""


def _of_capture(capture: Any, most: int) -> pl.DataFrame:
    rounds = capture.rounds
    wide = capture.parameters.filter(pl.col("name").cast(pl.String).is_in(OWN))
    wide = wide.with_columns(pl.col("name").cast(pl.String)).pivot(on="name", index="flow", values="value")
    wide = wide.with_columns(pl.lit(None, pl.Float64).alias(n) for n in OWN if n not in wide.columns)
    first, second = (
        rounds.filter(pl.col("round") == k).select(
            "flow",
            pl.col("flight").alias(f"flight_{k}"),
            (pl.col("lost_segments") > 0).alias(f"lost_{k}"),
            (pl.col("resent_segments") > 0).alias(f"resent_{k}"),
        )
        for k in (0, 1)
    )
    # of both directions, whichever of them was selected
    both = getattr(capture, "conversations", capture).flows
    largest = both.filter(
        (pl.col("unique_bytes") == pl.col("unique_bytes").max().over("connection"))
        & (pl.col("flow").rank("ordinal").over("connection", "unique_bytes") == 1)
    )["flow"]
    beyond = pl.col("vantage_fraction").fill_null(0.0)
    path = pl.coalesce("handshake_rtt_s", "rtt_min_s")
    table = (
        capture.flows.filter(pl.col("flow").is_in(largest.implode()))
        .join(wide, on="flow", how="left")
        .join(first, on="flow", how="left")
        .join(second, on="flow", how="left")
        .with_columns(
            segments=(pl.col("unique_bytes") / pl.col("smss_bytes")).ceil(),
            # polars would multiply by the reciprocal, which is another number, where there are several flows
            seen_s=(pl.col("last_ns") - pl.col("first_ns")).map_batches(lambda ns: pl.Series(ns.to_numpy() / 1e9)),
            rtt=pl.coalesce("rtt", "handshake_rtt_s", "rtt_min_s"),
            w_max=pl.col("w_max").fill_null(math.inf),
            indications=(pl.col("p_indication").fill_null(0.0) * pl.col("sent_segments")).round(),
            losses=pl.col("lost_segments").cast(pl.Float64),
            handshake_s=pl.col("handshake_rtt_s"),
        )
        .with_columns(time_s=pl.col("seen_s") + beyond * path)
    )
    whole = (pl.col("acked_bytes") >= pl.col("unique_bytes")) & (pl.col("segments") >= 1) & (pl.col("time_s") > 0)
    known = pl.all_horizontal(pl.col("rtt", "rto").is_not_null())
    busy = pl.col("busy_s") >= (1 - IDLE) * pl.col("time_s")
    columns = ["flow", "src", "dst", "segments", "time_s", "handshake_s", "losses", "indications", "sent_segments"]
    columns += ["rtt", "rto", "w_max", *(f"{of}_{k}" for k in (0, 1) for of in ("flight", "lost", "resent"))]
    chosen: pl.DataFrame = table.filter(whole & known & busy & (pl.col("segments") <= most)).select(columns)
    return chosen


def _with_losses(table: pl.DataFrame) -> pl.DataFrame:
    """Loss rates of the other transfers of the path, or of all others."""
    path = ["capture", "src", "dst"]
    sent = pl.col("sent_segments").cast(pl.Float64)
    near = sent.sum().over(path) - sent
    far = sent.sum().over("capture") - sent

    def rate(column: str) -> pl.Expr:
        count = pl.col(column).cast(pl.Float64)
        own = (count.sum().over(path) - count) / near
        others = pl.when(far >= KNOWN).then((count.sum().over("capture") - count) / far)
        return pl.when(near >= KNOWN).then(own).otherwise(others)

    return table.with_columns(q_tilde=rate("losses"), p_indication=rate("indications"))


def _with_hosts(table: pl.DataFrame) -> pl.DataFrame:
    """First window, growth and wait for an ACK of each host that sends."""
    host = ["capture", "src"]
    clean = ~pl.col("lost_0").fill_null(True)
    full = pl.when(clean & (pl.col("segments") > pl.col("flight_0"))).then(pl.col("flight_0"))
    two = ~pl.col("lost_1").fill_null(True) & ~pl.col("resent_1").fill_null(True)
    more = pl.col("segments") > pl.col("flight_0") + pl.col("flight_1")
    growth = pl.when(clean & two & more).then(pl.col("flight_1") / pl.col("flight_0"))
    wait = pl.when((pl.col("segments") == 1) & (pl.col("losses") == 0)).then(pl.col("time_s") - pl.col("rtt"))
    # where no transfer needs a second round the window is at least the largest seen, and more makes no difference
    window = pl.coalesce(full.median().over(host), pl.col("flight_0").max().over(host))
    rise = growth.median().over(host).fill_null(2.0)
    found = table.with_columns(
        w_1=pl.max_horizontal(window, 1.0),
        b=1 / (pl.max_horizontal(rise, 1.01) - 1),
        delayed_ack=wait.median().over(host),
        wait=wait,
        host=pl.struct(host).rank("dense"),
    )
    # a transfer's own wait is part of the time that is to be predicted
    own, hosts = floats(found["wait"]), found["host"].to_numpy().astype(np.int64)
    waits, lone = np.array(floats(found["delayed_ack"])), np.isfinite(own)
    waits[lone] = _of_others(own[lone], hosts[lone])
    return found.drop("wait", "host").with_columns(delayed_ack=np.fmax(waits, 0.0))


def _of_others(values: Floats, owner: Ints) -> Floats:
    """Of every value the median of the others of its owner, NaN where there is none."""
    order, count = np.lexsort((values, owner)), np.bincount(owner)
    first, place = np.cumsum(count) - count, np.empty(len(values), np.int64)
    place[order] = np.arange(len(values)) - first[owner[order]]
    by_size, left = values[order], count[owner] - 1

    def at(rank: Ints) -> Floats:
        return np.asarray(by_size[first[owner] + np.minimum(rank + (place <= rank), left)])

    return np.where(left > 0, (at((left - 1) // 2) + at(left // 2)) / 2, np.nan)


def predicted(
    table: pl.DataFrame, models: Mapping[str, Model] | None = None, *, starts: Iterable[str] = STARTS
) -> pl.DataFrame:
    """Mean time (s) that every model predicts for every transfer: columns capture, flow, model, start, predicted_s.

    `table` is that of `transfers`, `starts` names some of `STARTS`. The baseline is in it with start `measured`; what
    is drawn is not.
    """
    chosen = transfer_models() if models is None else dict(models)
    parts = []
    for start in starts:
        for name, model in chosen.items():
            time = np.asarray(_with_start(model, start).predict(**_keywords(model, table, start)), np.float64)
            parts.append(_column(table, name, start, np.where(np.isfinite(time) & (time > 0), time, np.nan)))
    free = loss_free(table)
    return pl.concat([*parts, _column(table, LOSS_FREE, "measured", free)])


def loss_free(table: pl.DataFrame) -> Floats:
    """Time (s) of the measured slow start without a loss, in whole round trips."""
    d, w, b, rtt = (table[name].to_numpy() for name in ("segments", "w_1", "b", "rtt"))
    gamma = 1 + 1 / b
    rounds = np.ceil(np.log1p(d * (gamma - 1) / w) / np.log(gamma) - 1e-9)
    return np.asarray(rtt * rounds + np.where(d == 1, table["delayed_ack"].to_numpy(), 0.0))


def _with_start(model: Model, start: str) -> Model:
    if start == "measured" and "whole_rounds" in model.get_params():
        return type(model)(**{**model.get_params(), "whole_rounds": True})
    return model


def _keywords(model: Model, table: pl.DataFrame, start: str) -> dict[str, Floats]:
    keywords = {}
    for parameter in model.parameters:
        name = parameter.column or parameter.name
        if name in STARTS[start]:
            fixed = STARTS[start][name]
            value = table[name].to_numpy() if math.isnan(fixed) else np.full(table.height, fixed)
            if name == "delayed_ack" and start == "measured":  # two segments are acknowledged at once (RFC 5681, 4.2)
                value = np.where(table["segments"].to_numpy() == 1, value, 0.0)
        elif name in table.columns:
            value = table[name].to_numpy()
        else:
            continue
        inside = (value >= parameter.low) & (value <= parameter.high)
        keywords[parameter.name] = np.where(inside, value, np.nan)
    return keywords


def _column(table: pl.DataFrame, name: str, start: str, time: Floats) -> pl.DataFrame:
    return table.select(
        "capture", "flow", model=pl.lit(name), start=pl.lit(start), predicted_s=pl.Series(time).fill_nan(None)
    )


def rank_short(table: pl.DataFrame, models: Mapping[str, Model] | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rank the transfer-time models on the transfers by size, and judge each size.

    `table` is that of `transfers`. Gives tables with the columns `SHORT` and `SHORT_VERDICTS`; the last size is all of
    them. Sizes without a transfer are left out. Raises InvalidParameter for another table, and for one that has a flow
    of a capture twice.
    """
    check_table("the table of transfers", table, TRANSFERS, "tcpfit.transfers")
    _check_keys(table.select("capture", "flow"))
    chosen = transfer_models() if models is None else named_models(models)
    spread = _spread(table, chosen)
    drawn = spread.filter(pl.col("start") == DRAWN).select("capture", "flow", "model", "start", "predicted_s")
    times, spread = pl.concat([predicted(table, chosen), drawn]), spread.drop("predicted_s")
    top = int(table["segments"].max() or 1) if table.height else 1  # type: ignore[arg-type]
    rows: list[dict[str, Any]] = []
    verdicts: list[dict[str, Any]] = []
    sizes = [size for size in SIZES if size[0] <= top]
    sizes = [*sizes[:-1], (sizes[-1][0], max(sizes[-1][1], top))]
    for low, high in dict.fromkeys([*sizes, (1, sizes[-1][1])]):
        part = table.filter(pl.col("segments").is_between(low, high))
        if part.height:
            own = _size(part, times, spread)
            rows += [{"low": low, "high": high, **row} for row in own]
            verdicts.append({"low": low, "high": high, **_verdict(own, part)})
    schemas = [pl.Schema({c.name: c.dtype for c in columns}) for columns in (SHORT, SHORT_VERDICTS)]
    found = pl.DataFrame(rows, schema={name: pl.Int64() if t == U32 else t for name, t in schemas[0].items()})
    judged = pl.DataFrame(verdicts, schema={name: pl.Int64() if t == U32 else t for name, t in schemas[1].items()})
    return found.cast(schemas[0]), judged.cast(schemas[1])


def _check_keys(keys: pl.DataFrame) -> None:
    """Raise InvalidParameter where a transfer is there twice: each would be given the times of both."""
    if keys.n_unique() < keys.height:
        capture, flow = keys.filter(keys.is_duplicated()).row(0)
        raise InvalidParameter(
            f"flow {flow} of capture {capture} is in the table of transfers twice; make it of all captures at once, or "
            "number the captures before tables are joined"
        )


def _size(part: pl.DataFrame, times: pl.DataFrame, spread: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of one size, best first, the baseline last."""
    keys = ["capture", "flow"]
    joined = part.select(*keys, "time_s", "losses").join(times, on=keys).join(
        spread, on=[*keys, "model", "start"], how="left"
    ).sort(*keys)  # fmt: skip
    rows, deviances = [], {}
    for (model, start), group in joined.partition_by("model", "start", as_dict=True).items():
        known = group.filter(pl.col("predicted_s").is_not_null())
        if not known.height:
            continue
        T, t = known["time_s"].to_numpy(), known["predicted_s"].to_numpy()
        deviance = 2 * (T / t - 1 - np.log(T / t))
        se = float(T.std(ddof=1) / np.sqrt(len(T)) / T.mean()) if len(T) > 1 else None
        deviances[model, start] = known.select(*keys).with_columns(deviance=pl.Series(deviance))
        rows.append(
            {
                "flows": known.height,
                "with_loss": int((known["losses"] > 0).sum()),
                "model": model,
                "start": start,
                "rank": None,
                "observed_mean_s": float(T.mean()),
                "predicted_mean_s": float(t.mean()),
                "log_ratio_mean": float(np.log(t.mean() / T.mean())),
                "log_ratio_se": se,
                "log_ratio_median": float(np.median(np.log(t / T))),
                "score": float(deviance.mean()),
                "difference": None,
                "difference_se": None,
                "as_good": None,
                "observed_sd_s": float(np.sqrt(np.mean((T - t) ** 2))),
                **_coverage(known),
            }
        )
    models = sorted((row for row in rows if row["model"] != LOSS_FREE), key=_place)
    for i, row in enumerate(models):
        row["rank"] = i + 1
    for row in rows if models else []:
        best = deviances[models[0]["model"], models[0]["start"]]
        both = deviances[row["model"], row["start"]].join(best, on=keys, suffix="_best")
        d = (both["deviance"] - both["deviance_best"]).to_numpy()
        if len(d) > 1:
            row["difference"], row["difference_se"] = float(d.mean()), float(d.std(ddof=1) / np.sqrt(len(d)))
            row["as_good"] = bool(d.mean() <= 2 * row["difference_se"]) and not _misses(row)
    return [*models, *(row for row in rows if row["model"] == LOSS_FREE)]


def _place(row: Mapping[str, Any]) -> tuple[float, str, str]:
    """What the models are ranked by: the score, and of equal ones (but for a last digit, which depends on where in the
    table the transfers stand) the name."""
    return float(f"{row['score']:.12g}"), row["model"], row["start"]


def _spread(table: pl.DataFrame, models: Mapping[str, Model]) -> pl.DataFrame:
    """Hysteresis' distribution of the time of each transfer: variance and quantiles, per start; the mean of draws."""
    parts = []
    for name, model in models.items():
        for start in (*STARTS, DRAWN) if isinstance(model, Hysteresis) else ():
            of_start = "measured" if start == DRAWN else start
            own = _with_start(model, of_start)
            assert isinstance(own, Hysteresis)
            keywords = _keywords(own, table, of_start)
            usable = np.all([np.isfinite(v) | (k == "w_max") for k, v in keywords.items()], axis=0)
            found = np.full((table.height, 2 + len(LEVELS)), np.nan)
            rows = np.flatnonzero(usable)
            flows = {key: v[rows] for key, v in keywords.items()}
            laws: Iterable[tuple[Floats, Floats]] = own.distributions(atoms=512, **flows)
            if start == DRAWN:
                seeds = [_seed(table.row(row)) for row in rows.tolist()]
                drawn = own.draw_losses_of(draws=DRAWS, seeds=seeds, **flows)
                laws = ((np.sort(times), EVEN) for times in drawn)
            for i, (times, chances) in zip(rows.tolist(), laws, strict=True):
                mean = float(times @ chances)
                at = np.searchsorted(np.cumsum(chances), LEVELS)
                found[i] = [mean, float((times - mean) ** 2 @ chances), *times[np.minimum(at, len(times) - 1)]]
            columns = {name: pl.Series(found[:, k]).fill_nan(None) for k, name in enumerate(LAW)}
            parts.append(table.select("capture", "flow", "rtt", model=pl.lit(name), start=pl.lit(start), **columns))
    if parts:
        return pl.concat(parts)
    keys = {"capture": table.schema["capture"], "flow": table.schema["flow"], "rtt": pl.Float64()}
    names = {"model": pl.String(), "start": pl.String()} | dict.fromkeys(LAW, pl.Float64())
    return pl.DataFrame(schema={**keys, **names})


def _seed(transfer: tuple[object, ...]) -> int:
    """Of what is drawn of a transfer: by what it is, not by where it stands in the table."""
    return SEED + zlib.crc32(repr(transfer[2:]).encode())


def _coverage(known: pl.DataFrame) -> dict[str, float | None]:
    with_law = known.filter(pl.col("q5").is_not_null())
    if not with_law.height:
        return dict.fromkeys(("predicted_sd_s", "inside_50", "inside_90", "below_10", "above_90"))
    slack, T = pl.col("rtt") / 4, pl.col("time_s")
    row = with_law.select(
        predicted_sd_s=pl.col("variance").mean().sqrt(),
        inside_50=T.is_between(pl.col("q25") - slack, pl.col("q75") + slack).mean(),
        inside_90=T.is_between(pl.col("q5") - slack, pl.col("q95") + slack).mean(),
        below_10=(pl.col("q10") - slack > T).mean(),
        above_90=(pl.col("q90") + slack < T).mean(),
    )
    return row.to_dicts()[0]


def _verdict(rows: Sequence[Mapping[str, Any]], part: pl.DataFrame) -> dict[str, Any]:
    lossy = int((part["losses"] > 0).sum())
    ranked = [row for row in rows if row["rank"] is not None]
    if part.height < ENOUGH or lossy < LOST or not ranked:
        text = (
            f"{_count(part.height, 'transfer')}, {lossy} of them with a loss; a comparison needs {ENOUGH} and {LOST}."
        )
        return {"state": "insufficient", "models": [], "text": text}
    best, base = ranked[0], next(row for row in rows if row["model"] == LOSS_FREE)
    off = f"the mean time is {_percent(best['log_ratio_mean'])}"
    beside = f"; counting loss-free rounds is {_percent(base['log_ratio_mean'])}"
    if _misses(best):
        text = f"Every model misses the times: of the best, {_label(best)}, {off}{beside}."
        return {"state": "none_applies", "models": [], "text": text}
    names = [_label(row) for row in ranked if row["as_good"]]
    flows = f"{_count(best['flows'], 'transfer')} ({lossy} with a loss)"
    if len(names) == 1:
        text = f"{names[0]} predicts the times of {flows} best; {off}{beside}."
        return {"state": "explained", "models": names, "text": text}
    more = f"{len(names) - TOLD} others" if len(names) > TOLD + 1 else ""
    told = [*names[:TOLD], more] if more else names
    several = f"{', '.join(told[:-1])} and {told[-1]} predict the times of {flows} equally well"
    text = f"{several}; of {names[0]} {off}{beside}."
    return {"state": "undecided", "models": names, "text": text}


def _misses(row: Mapping[str, Any]) -> bool:
    """The mean time is off by more than a quarter beyond the doubt in the observed mean."""
    return bool(abs(row["log_ratio_mean"]) - 2 * (row["log_ratio_se"] or 0.0) > NEAR)


def _label(row: Mapping[str, Any]) -> str:
    return f"{row['model']} ({row['start']})"


def _percent(log_ratio: float) -> str:
    share = math.exp(log_ratio) - 1
    if abs(share) < 0.005:
        return "right within 0.5%"
    return f"{abs(share):.0%} {'too long' if share > 0 else 'too short'}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
