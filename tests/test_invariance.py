"""What must not matter: where sequence numbers and clocks start, how a capture is handed over, packets it missed."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from tcpfit import engine, parameters, ranking
from tcpfit.schema import polars_schema

SAMPLES = sorted((Path(__file__).parent.parent / "sample-traces").glob("*.pcap*"))
LONG = [path for path in SAMPLES if path.name.startswith(("newreno-loss", "sack-loss", "cubic", "bursty-loss", "ipv6"))]
MODULUS = 1 << 32
TIMES = {"flows": ["first_ns", "last_ns"], "events": ["time_ns", "end_ns"], "rounds": ["start_ns", "end_ns"]}


@cache
def segments_of(path: Path) -> pl.DataFrame:
    return engine.frames(engine.analyze(str(path), segments=True))["segments"]


def tracked(*batches: pl.DataFrame) -> dict[str, pl.DataFrame]:
    tracker = engine.Tracker()
    for batch in batches:
        tracker.push(batch.cast(polars_schema("segments")))
    return engine.frames(tracker.finish())


def moved(segments: pl.DataFrame, by: int) -> pl.DataFrame:
    """Every host's sequence numbers `by` further on; the other's ACKs and SACK blocks with them."""
    number = pl.col("seq", "ack").cast(pl.Int64)
    edges = pl.col("sack").cast(pl.List(pl.Int64)).list.eval((pl.element() + by) % MODULUS)
    acknowledges = pl.col("flags") & 16 > 0
    return segments.with_columns((number + by) % MODULUS, edges.alias("sack")).with_columns(
        pl.when(acknowledges).then("ack").otherwise(0).alias("ack")
    )


def assert_same(expected: dict[str, pl.DataFrame], actual: dict[str, pl.DataFrame], shift_ns: int = 0) -> None:
    for name, columns in TIMES.items():
        table = actual[name].with_columns(pl.col(columns) - shift_ns)
        different = [c for c in table.columns if not table[c].equals(expected[name][c])]
        assert [] == different, name


@pytest.mark.parametrize("by", [1, 1 << 31, MODULUS - 70_000])
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_where_sequence_numbers_start(path, by):
    segments = segments_of(path)
    assert_same(tracked(segments), tracked(moved(segments, by)))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_when_it_was_captured(path):
    segments = segments_of(path)
    day_ns = 86_400_000_000_000
    shifted = segments.with_columns(pl.col("time_ns") + day_ns)
    assert_same(tracked(segments), tracked(shifted), day_ns)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_how_it_is_handed_over(path):
    segments = segments_of(path)
    cuts = [0, *sorted(random.Random(3).sample(range(1, segments.height), 5)), segments.height]
    parts = [segments[start:end] for start, end in zip(cuts, cuts[1:], strict=False)]
    assert_same(tracked(segments), tracked(*parts))


@cache
def rates_of(path: Path) -> dict[str, dict]:
    return rates(tracked(segments_of(path)))


def rates(tables: dict[str, pl.DataFrame]) -> dict[str, dict]:
    """The parameters of the largest flow by name."""
    flow = tables["flows"].sort("data_bytes")[-1]["flow"].item()
    estimates = parameters.estimate(tables["flows"], tables["events"], tables["rounds"])
    return {str(row["name"]): row for row in estimates.filter(pl.col("flow") == flow).to_dicts()}


@pytest.mark.parametrize("seed", [5, 6])
@pytest.mark.parametrize("run", [1, 10])
@pytest.mark.parametrize("share", [0.002, 0.01, 0.05])
@pytest.mark.parametrize("path", LONG, ids=lambda path: path.name)
def test_packets_that_the_capture_missed(path, share, run, seed):
    """The loss rates of the network stay what they were, within their intervals, and what is missing is said. `run`
    packets in a row are missed."""
    segments = segments_of(path)
    generator, gone = random.Random(seed), set()
    for at in range(segments.height):
        if generator.random() < share / run:
            gone.update(range(at, at + run))
    less = tracked(segments.filter(pl.Series([at not in gone for at in range(segments.height)])))
    after = rates(less)
    for name in ("p", "q_tilde", "p_indication"):
        before = rates_of(path)[name]
        assert after[name]["low"] <= before["value"] <= after[name]["high"], name
        # and an interval that says something: it is not one loss wider for each packet missed
        assert before["low"] / 2 < after[name]["low"] and after[name]["high"] < 2 * before["high"], name
    data = segments.filter(pl.col("payload") > 0).height
    taken = (
        data
        - segments.filter(pl.Series([at not in gone for at in range(segments.height)]))
        .filter(pl.col("payload") > 0)
        .height
    )
    missing = less["flows"]["missing_segments"].sum()
    assert missing == pytest.approx(taken, rel=0.3, abs=5)


@pytest.mark.parametrize(("share", "withheld"), [(0.002, False), (0.05, True)])
@pytest.mark.parametrize("path", LONG, ids=lambda path: path.name)
def test_no_verdict_where_the_capture_missed_more_than_one_per_cent(path, share, withheld):
    segments, generator = segments_of(path), random.Random(7)
    less = tracked(segments.filter(pl.Series([generator.random() >= share for _ in range(segments.height)])))
    tables = [less[name] for name in ("flows", "events", "rounds")]
    _, verdicts = ranking.rank(*tables, parameters.estimate(*tables))
    flow = less["flows"].sort("data_bytes")[-1]["flow"].item()
    verdict = verdicts.row(by_predicate=pl.col("flow") == flow, named=True)
    assert withheld == verdict["text"].startswith("The capture missed")
    assert not withheld or ("insufficient", []) == (verdict["state"], verdict["models"])


def test_samples_are_long_enough_for_this():
    assert len(LONG) >= 4
    assert all(segments_of(path).height > 4000 for path in LONG)
