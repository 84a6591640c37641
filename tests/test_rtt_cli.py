"""Does `tcpfit rtt` list what `tcpfit.report.round_trips` holds, in every format?"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import captures
import polars as pl
import pytest
from captures import Transfer
from test_cli import assert_sentence, tcpfit
from test_events_cli import as_json, written

import tcpfit as package
from tcpfit.report.round_trips import BY_FLOW, ROUND_TRIPS, by_flow, round_trips

CUBIC = Path(__file__).parent.parent / "sample-traces/cubic.pcap.gz"


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    """Two flows of different round trips."""
    second = Transfer(segments=60, sport=40001, rtt_s=0.2, v6=True, lost=frozenset({7}))
    return written(tmp_path_factory.mktemp("rtt") / "two.pcap", Transfer(segments=40), second)


def run_of(*arguments, **options):
    run = tcpfit("rtt", *arguments, **options)
    assert (0, "") == (run.returncode, run.stderr)
    return run.stdout


def test_every_format_is_the_table(capture, tmp_path):
    samples = round_trips(package.analyze(capture, segments=True))
    assert {0, 1} == set(samples["flow"])
    for more, table, columns in (([], by_flow(samples), BY_FLOW), (["--samples"], samples, ROUND_TRIPS)):
        lines = as_json(run_of(capture, *more, "--format", "jsonl"))
        assert [{"schema": 1, "capture": str(capture)} | row for row in table.to_dicts()] == lines
        rows = list(csv.DictReader(io.StringIO(run_of(capture, *more, "--format", "csv"))))
        assert ["capture", *(column.name for column in columns)] == list(rows[0])
        assert [str(row["flow"]) for row in table.to_dicts()] == [row["flow"] for row in rows]
        target = tmp_path / "new" / "rtt.parquet"
        assert "" == run_of(capture, *more, "--format", "parquet", "--output", target)
        assert table.equals(pl.read_parquet(target))


def test_a_line_a_flow_for_people(capture):
    out = run_of(capture)
    assert max(map(len, out.splitlines())) <= 80
    lines = [line.split() for line in out.splitlines()]
    (first,) = [line for line in lines if line[:1] == ["0"]]
    assert ["50.0", "ms"] == first[4:6]
    assert ["10.0.0.1:40000", ">", "10.0.0.2:80"] in lines
    (second,) = [line for line in lines if line[:1] == ["1"]]
    assert ["200", "ms"] == second[4:6]
    assert "10.0.0.1" not in run_of(capture, "--flow", 1)


def test_what_rises_is_said(tmp_path):
    """A round trip that grows by 5 ms a second."""
    transfer = Transfer(segments=400, window=2)
    packets = sorted(transfer.run(), key=lambda packet: packet.time_ns)
    start = packets[0].time_ns
    slow = []
    for packet in packets:
        late = (packet.time_ns - start) // 200 if packet.data[26:30] == bytes([10, 0, 0, 2]) else 0
        slow.append(replace(packet, time_ns=packet.time_ns + late))
    path = tmp_path / "rising.pcap"
    path.write_bytes(captures.pcap(sorted(slow, key=lambda packet: packet.time_ns)))
    assert re.search(r", rising (299|30[01]) ms a minute", run_of(path))


def test_samples_for_people_say_what_waited():
    out = run_of(CUBIC, "--samples")
    assert max(map(len, out.splitlines())) <= 80
    assert 2 == out.count("a delayed ACK")
    assert "may have waited " in out
    assert "flow 0  10.21.1.10:46191 > 10.21.1.20:15022" in out


def test_no_round_trip_is_said(tmp_path):
    path = tmp_path / "handshake.pcap"
    path.write_bytes(captures.pcap(Transfer(segments=40).run()[:3]))
    for more in ([], ["--samples"]):
        assert "no round trip to show" in run_of(path, *more)
        assert "" == run_of(path, *more, "--format", "jsonl")


WRONG = {
    "flow": (["--flow", "9"], "flow 9"),
    "parquet": (["--format", "parquet"], "--format parquet needs --output FILE"),
    "output": (["--output", "x"], "--output goes with --format parquet only"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_one_sentence(capture, case):
    arguments, sentence = WRONG[case]
    run = tcpfit("rtt", capture, *arguments)
    assert_sentence(run, 2)
    assert sentence in run.stderr
    itself = tcpfit("rtt", capture, "--format", "parquet", "--output", capture)
    assert_sentence(itself, 2)
