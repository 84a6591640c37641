"""Does a sample that is called prompt hold no delayed ACK, and does one that is called delayed hold one?"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tcpfit
from tcpfit.exceptions import InvalidParameter
from tcpfit.report import traffic
from tcpfit.report.round_trips import BY_FLOW, ROUND_TRIPS, between, by_flow, round_trips

SAMPLES = Path(__file__).parent.parent / "sample-traces"
MSS = 1000


@cache
def analysed(name):
    return tcpfit.analyze(SAMPLES / f"{name}.pcap.gz", segments=True)


def waits(analysis):
    """At the receiver: of every ACK, by its offset and identification, how long after the data it was sent."""
    table = traffic.labelled(analysis, [0])
    data = table.filter(pl.col("flow") == 0, pl.col("payload") > 0).select("time_ns", "left", "right").rows()
    arrived, edge, held = {}, 1, set()
    for time_ns, left, right in data:
        held.add((left, right))
        while reach := max((right for left, right in held if left <= edge < right), default=0):
            edge = reach
            arrived[edge] = time_ns
        held = {piece for piece in held if piece[1] > edge}
    acks = table.filter(pl.col("reverse") == 0).select("acked", "ip_id", "time_ns").rows()
    return {(acked, ip_id): (time_ns - arrived[acked]) / 1e9 for acked, ip_id, time_ns in acks if acked in arrived}


def test_the_receivers_capture_says_the_same():
    """At the sender, 1,854 round trips over a path of 100 ms that loses 2 %: Linux waits for 143 of the ACKs."""
    sender = analysed("sack-loss-sender")
    waited = waits(analysed("sack-loss-receiver"))
    acks = sender.segments.select("frame", "ip_id")
    seen = (
        round_trips(sender)
        .join(acks, on="frame")
        .join(traffic.labelled(sender, [0]).select("frame", "acked"), on="frame", maintain_order="left")
    )
    wait = np.array([waited.get(key, np.nan) for key in seen.select("acked", "ip_id").iter_rows()])
    known, took = np.isfinite(wait), seen["rtt_s"].to_numpy()
    assert known.mean() > 0.99
    long, delayed, prompt = wait > 0.02, seen["delayed"].to_numpy(), seen["prompt"].to_numpy()
    assert 143 == long.sum()
    assert 141 == delayed.sum() == (delayed & long).sum()
    assert 1 == (prompt & long).sum()
    assert prompt.mean() > 0.8

    path = np.quantile((took - wait)[known], 0.95)
    assert path == pytest.approx(np.quantile(took[prompt], 0.95), rel=0.03)
    assert np.quantile(took, 0.95) > 1.3 * path
    (row,) = by_flow(round_trips(sender)).to_dicts()
    assert row["p95_s"] == pytest.approx(np.quantile(took[prompt], 0.95))
    assert (1854, 1583, 141) == (row["samples"], row["prompt"], row["delayed"])
    assert row["drift_low"] < 0 < row["drift_high"] < 1e-5, "the path does not change"


def made(data, acks, flow=0):
    """Tables of segments `(ms, left, right)` and ACKs `(ms, acked)`; frames are numbered as they come."""
    sent = pl.DataFrame(
        {
            "flow": [flow] * len(data),
            "time_ns": [int(ms * 1e6) for ms, *_ in data],
            "frame": range(1, len(data) + 1),
            "left": [left for _, left, _ in data],
            "right": [right for *_, right in data],
        }
    )
    heard = pl.DataFrame(
        {
            "flow": [flow] * len(acks),
            "time_ns": [int(ms * 1e6) for ms, _ in acks],
            "frame": range(101, len(acks) + 101),
            "acked": [acked for _, acked in acks],
        }
    )
    return sent, heard


def samples(data, acks, smss=MSS):
    rows = pl.DataFrame({"flow": [0], "smss_bytes": [smss]})
    return between(*made(data, acks), rows)


def segments(*sent_ms, size=MSS):
    return [(ms, 1 + n * size, 1 + (n + 1) * size) for n, ms in enumerate(sent_ms)]


WAITS = {
    # two full segments: no wait; the third alone, with nothing behind it: half a second at most, or all of the sample
    "alone": (segments(0, 0, 0), [(50, 2001), (90, 3001)], [0, 90], [True, False]),
    # the next was sent 20 ms later and would have been acknowledged with it
    "soon": (segments(0, 20), [(50, 1001), (70, 2001)], [20, 50], [False, False]),
    "at once": (segments(0, 1, 2), [(50, 1001), (51, 2001), (52, 3001)], [1, 1, 50], [True, True, False]),
    # the second is lost, the third comes behind the hole and is answered at once
    "lost": ([*segments(0, 1, 30), (200, 1001, 2001)], [(80, 1001)], [30], [False]),
    # small segments are no full ones: only that which makes 2000 bytes ends the wait
    "small": (segments(0, 1, 2, 45, size=500), [(50, 501)], [45], [False]),
    "longest": (segments(0, 900), [(700, 1001)], [500], [False]),
}


@pytest.mark.parametrize("case", WAITS)
def test_wait_is_bounded_by_what_was_sent_behind(case):
    data, acks, wait_ms, prompt = WAITS[case]
    table = samples(data, acks)
    assert wait_ms == [pytest.approx(1e3 * wait_s) for wait_s in table["wait_s"]]
    assert prompt == table["prompt"].to_list()
    assert acks[-1][1] == 1 + table["acked_bytes"].sum()


def test_queues_and_delayed_acks_are_told_apart():
    """Both last 45 ms longer than the round trips before; behind one the sender goes on, behind the other it waits."""
    before = [(10 * n, 1 + 2000 * n, 1001 + 2000 * n) for n in range(10)]
    pairs = [piece for ms, left, right in before for piece in ((ms, left, right), (ms, right, right + 1000))]
    acks = [(ms + 50, left + 2000) for ms, left, _ in before]
    train = [(110, 20001, 21001), (111, 21001, 22001), (112, 22001, 23001)]
    queued = samples([*pairs, *train], [*acks, (205, 21001), (206, 22001)])
    assert [False] * 12 == queued["delayed"].to_list()
    waited = samples([*pairs, (110, 20001, 21001), (205, 21001, 22001)], [*acks, (205, 21001)])
    assert [*[False] * 10, True] == waited["delayed"].to_list()
    assert (111, 21) == (waited["frame"][-1], waited["of_frame"][-1]), "the frames are named"


def test_nothing_is_measured_across_what_was_sent_again():
    data = [*segments(0, 1, 2), (60, 1001, 2001)]
    assert [1001] == (1 + samples(data, [(50, 1001), (110, 3001)])["acked_bytes"]).to_list()


def test_an_ack_within_a_segment_is_no_sample():
    assert 0 == samples([(0, 1, 3001)], [(50, 1501)]).height


def test_flows_do_not_mix():
    """Together they have the samples that each has alone, whatever their offsets; so do those of a whole capture."""
    cases = [WAITS[case] for case in ("alone", "lost", "small")]
    alone = [samples(data, acks).drop("flow") for data, acks, *_ in cases]
    tables = [made(data, acks, flow) for flow, (data, acks, *_) in enumerate(cases)]
    rows = pl.DataFrame({"flow": [0, 1, 2], "smss_bytes": [MSS] * 3})
    sent, heard = (pl.concat(parts).sort("time_ns") for parts in zip(*tables, strict=True))
    together = between(sent, heard, rows)
    assert [part.to_dicts() for part in alone] == [
        together.filter(flow=flow).drop("flow").to_dicts() for flow in range(3)
    ]
    far = sent.with_columns(pl.col("left", "right") + 2**61 * (pl.col("flow") == 1))
    there = between(far, heard.with_columns(pl.col("acked") + 2**61 * (pl.col("flow") == 1)), rows)
    assert together.to_dicts() == there.to_dicts()

    analysis = analysed("short-web")
    everything = round_trips(analysis)
    assert everything["flow"].n_unique() > 100
    for flow in everything["flow"].unique().sort()[::40]:
        assert everything.filter(flow=flow).equals(round_trips(analysis, [flow]))


def test_percentiles_are_of_prompt_samples_and_drift_of_the_least():
    """A path whose round trip grows by 1 ms a second for 40 s, with a queue of up to 30 ms, and delayed ACKs."""
    ms = 0.5 * np.arange(0, 80_000, 20)
    rtt = 50 + ms / 1e3 + 30 * np.abs(np.sin(ms / 300))
    delayed = np.arange(len(ms)) % 7 == 0
    table = pl.DataFrame(
        {
            "flow": np.zeros(len(ms), np.uint32),
            "time_ns": (ms * 1e6).astype(np.int64),
            "frame": np.arange(len(ms), dtype=np.uint64),
            "of_frame": np.arange(len(ms), dtype=np.uint64),
            "rtt_s": (rtt + 60 * delayed) / 1e3,
            "acked_bytes": np.full(len(ms), 2000, np.uint64),
            "wait_s": 0.5 * delayed,
            "prompt": ~delayed,
            "delayed": delayed,
        }
    )
    (row,) = by_flow(table).to_dicts()
    assert (len(ms), (~delayed).sum(), delayed.sum()) == (row["samples"], row["prompt"], row["delayed"])
    shares = {"p05_s": 0.05, "p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99}
    for name, share in shares.items():
        assert row[name] == pytest.approx(np.quantile(rtt[~delayed], share) / 1e3)
    assert row["min_s"] == pytest.approx(rtt[~delayed].min() / 1e3)
    assert row["drift"] == pytest.approx(1e-3, rel=0.02)
    assert row["drift_low"] <= 1e-3 <= row["drift_high"]

    (short,) = by_flow(table.head(15)).to_dicts()
    assert short["p50_s"] is not None
    assert [None] * 3 == [short[name] for name in ("drift", "drift_low", "drift_high")]
    (none,) = by_flow(table.filter("delayed")).to_dicts()
    assert (0, None, None) == (none["prompt"], none["min_s"], none["p95_s"])


def test_tables_are_those_that_are_declared():
    table = round_trips(analysed("cubic"))
    assert table.schema == pl.Schema({column.name: column.dtype for column in ROUND_TRIPS})
    assert by_flow(table).schema == pl.Schema({column.name: column.dtype for column in BY_FLOW})
    assert by_flow(table.clear()).schema == by_flow(table).schema
    with pytest.raises(InvalidParameter, match="lacks the column 'time_ns'; tcpfit.report.round_trips"):
        by_flow(table.drop("time_ns"))
    with pytest.raises(InvalidParameter, match="flow 7"):
        round_trips(analysed("cubic"), [7])
    with pytest.raises(InvalidParameter, match="without its segments"):
        round_trips(tcpfit.analyze(SAMPLES / "cubic.pcap.gz"))
