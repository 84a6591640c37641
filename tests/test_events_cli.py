"""Does `tcpfit events` list what the tables hold, in every format, and nothing else?"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import captures
import polars as pl
import pytest
from captures import Transfer
from test_cli import COMMAND, assert_sentence, tcpfit

import tcpfit as package
from tcpfit.report import listing, traffic
from tcpfit.schema import EVENTS, KINDS, SEGMENTS, polars_schema

ROOT = Path(__file__).parent.parent
SAMPLES = sorted((ROOT / "sample-traces").glob("*.pcap*"))
TIMEOUTS = ROOT / "sample-traces/timeouts.pcap.gz"

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")


def written(path: Path, *transfers: Transfer) -> Path:
    packets = [packet for transfer in transfers for packet in transfer.run()]
    path.write_bytes(captures.pcap(sorted(packets, key=lambda packet: packet.time_ns)))
    return path


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    """Two flows with four losses in all; the second is IPv6 and its sequence numbers wrap."""
    first = Transfer(segments=60, lost=frozenset({7, 33}))
    second = Transfer(segments=60, lost=frozenset({4, 41}), sport=40001, start_s=0.02, v6=True, isn=2**32 - 9000)
    return written(tmp_path_factory.mktemp("events") / "two.pcap", first, second)


@pytest.fixture(scope="module")
def events(capture):
    """Its events in order of time, as rows."""
    table = package.analyze(capture).events.sort(["time_ns", "flow"], maintain_order=True)
    assert {0, 1} == set(table["flow"])
    return table.to_dicts()


def run_of(*arguments, **options):
    run = tcpfit("events", *arguments, **options)
    assert (0, "") == (run.returncode, run.stderr)
    return run.stdout


def as_json(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_lines_are_the_table(capture, events):
    lines = as_json(run_of(capture, "--format", "jsonl"))
    assert [{"schema": 1, "capture": str(capture)} | event for event in events] == lines
    assert ["schema", "capture", *(column.name for column in EVENTS)] == list(lines[0])


def test_csv_is_the_table(capture, events):
    table = list(csv.DictReader(io.StringIO(run_of(capture, "--format", "csv"))))
    assert ["capture", *(column.name for column in EVENTS)] == list(table[0])
    assert [str(capture)] * len(events) == [row["capture"] for row in table]
    for name in ("flow", "time_ns", "kind", "reason", "left", "right", "segments"):
        assert [str(event[name]) for event in events] == [row[name] for row in table]
    for name, dtype in (("frame", int), ("cause_frame", int), ("value", float)):
        assert [event[name] for event in events] == [dtype(row[name]) if row[name] else None for row in table]
    words = {True: "true", False: "false", None: ""}
    assert [words[event["timeout_follows"]] for event in events] == [row["timeout_follows"] for row in table]


def test_parquet_is_the_table(capture, events, tmp_path):
    target = tmp_path / "new" / "events.parquet"
    assert "" == run_of(capture, "--format", "parquet", "--output", target)
    table = pl.read_parquet(target)
    assert polars_schema("events") == table.schema
    assert events == table.to_dicts()
    assert "1" == pl.read_parquet_metadata(target)["tcpfit_schema"]
    assert [target] == list(target.parent.iterdir())


def test_table_fits_80_columns(capture, events):
    out = run_of(capture)
    assert max(map(len, out.splitlines())) <= 80
    assert "flow 0  10.0.0.1:40000 > 10.0.0.2:80" in out
    assert "flow 1  [fd00::1]:40001 > [fd00::2]:80" in out
    rows = [line.split() for line in out.splitlines()[7:]]
    assert len(events) == len(rows[::2]) == len(rows[1::2])
    names = ("flow", "kind", "reason", "frame", "cause_frame")
    expected = [["-" if event[name] is None else str(event[name]) for name in names] for event in events]
    assert expected == [row[1:-1] for row in rows[::2]]
    assert [f"{event['left']}-{event['right']}," for event in events] == [row[0] for row in rows[1::2]]


def test_many_sack_blocks_take_further_lines():
    sample = ROOT / "sample-traces/sack-loss-receiver.pcap.gz"
    narrow, wide = (
        run_of(sample, "--segments", "--from", "30s", "--to", "31s", env={"COLUMNS": columns})
        for columns in ("60", "200")
    )
    lines = narrow.splitlines()
    assert max(map(len, lines)) <= 60
    assert 0 < sum(line.endswith(",") for line in lines)
    assert re.findall(r"SACK \d+-\d+", wide) == re.findall(r"SACK \d+-\d+", narrow)


def test_wide_table_has_a_line_an_event(capture, events):
    lines = run_of(capture, env={"COLUMNS": "160"}).splitlines()
    start = next(at for at, line in enumerate(lines) if line.lstrip().startswith("time"))
    assert len(events) == len(lines[start + 1 :])
    assert all(listing.details(event) in line for event, line in zip(events, lines[start + 1 :], strict=True))


def test_time_counts_from_the_start_of_the_capture(capture, events):
    part = run_of(capture, "--from", "0.3s", "--format", "jsonl")
    assert 0 < len(as_json(part)) < len(events)
    start_ns = package.analyze(capture).capture["start_ns"]
    first = as_json(part)[0]
    assert f"{(first['time_ns'] - start_ns) / 1e9:.6f}" in run_of(capture, "--from", "0.3s")
    assert all((event["time_ns"] - start_ns) / 1e9 >= 0.3 for event in as_json(part))


@pytest.mark.parametrize("more", [(), ("--segments", "--flow", 1)], ids=["events", "segments"])
def test_a_span_chooses_rows_and_changes_none(capture, more):
    """Labels, flows and offsets rest on what came before it, too."""
    whole, part = (
        re.findall(r"^ *(?:\d+ +)?(\d+\.\d{6}) +(.*)$", run_of(capture, *more, *span, env={"COLUMNS": "160"}), re.M)
        for span in ((), ("--from", "0.3s", "--to", "0.6s"))
    )
    assert [row for row in whole if 0.3 <= float(row[0]) <= 0.6] == part
    assert 3 < len(part) < len(whole)


def test_a_span_may_be_longer_than_any_capture(capture, events):
    assert len(events) == len(as_json(run_of(capture, "--to", "9" * 400, "--format", "jsonl")))


def test_flow_and_kind_choose(capture, events):
    lines = as_json(run_of(capture, "--format", "jsonl", "--flow", 1, "--kind", "loss", "--kind", "recovery"))
    kinds = ("loss", "recovery")
    expected = [(event["kind"], event["frame"]) for event in events if event["flow"] == 1 and event["kind"] in kinds]
    assert expected == [(line["kind"], line["frame"]) for line in lines]
    assert {"loss", "recovery"} == {kind for kind, _ in expected}
    one_flow = run_of(capture, "--flow", 1)
    assert "flow 0" not in one_flow
    assert "no event to show" in run_of(capture, "--kind", "zero_window")
    assert "" == run_of(capture, "--kind", "zero_window", "--format", "jsonl")


def test_values_have_their_meaning():
    out = run_of(TIMEOUTS, "--kind", "timeout", "--kind", "loss_event", "--to", "2.5s")
    assert "back-off 0, timer 333 ms" in out
    assert "4 lost, lasting 7.33 ms" in out
    assert "1 lost, lasting 0 s, a timeout follows" in out
    assert set(KINDS) >= set(listing.VALUES) | set(listing.COUNTS)


WRONG = {
    "kind": (["--kind", "accident"], ["'accident' is no kind of event", *KINDS]),
    "flow": (["--flow", 9], ["no flow 9", "0 to 1"]),
    "flow of segments": (["--segments", "--flow", 9], ["no flow 9", "0 to 1"]),
    "format": (["--format", "yaml"], ["--format"]),
    "parquet without a file": (["--format", "parquet"], ["--output FILE"]),
    "a file without parquet": (["--output", "events.csv", "--format", "csv"], ["parquet"]),
    "segments of a kind": (["--segments", "--kind", "loss"], ["--segments"]),
    "time": (["--from", "soon"], ["'soon' is not a time"]),
    "span": (["--from", "2", "--to", "1"], ["end must come after the start"]),
    "reader": (["--reader", "eyes"], ["--reader"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(capture, name):
    arguments, said = WRONG[name]
    run = tcpfit("events", capture, *arguments)
    assert_sentence(run, 2, *said)
    assert "" == run.stdout


def test_what_cannot_be_read_or_written(capture, tmp_path):
    assert_sentence(tcpfit("events", tmp_path / "absent.pcap"), 1, "absent.pcap", "no such file")
    (tmp_path / "file").write_text("in the way")
    target = tmp_path / "file" / "events.parquet"
    assert_sentence(tcpfit("events", capture, "--format", "parquet", "--output", target), 1, "file")
    assert_sentence(tcpfit("events"), 2, "CAPTURE")


def test_cut_capture_is_listed_with_a_warning(capture, tmp_path):
    path = tmp_path / "cut.pcap"
    path.write_bytes(capture.read_bytes()[:-30])
    assert "warning: frame" in run_of(path)
    assert_sentence(tcpfit("events", path, "--format", "jsonl"), 0, "the capture ends here")


@pytest.mark.parametrize("arguments", ["", "--format jsonl", "--format csv", "--segments", "--segments --format csv"])
def test_closed_pipe_is_not_complained_of(arguments):
    command = f"{sys.executable} -c '{COMMAND[2]}' events {TIMEOUTS} {arguments} | head -n 1"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert "" == run.stderr
    assert 1 == len(run.stdout.splitlines())


def test_segments_are_the_table(capture):
    expected = package.analyze(capture, segments=True).segments
    lines = as_json(run_of(capture, "--segments", "--format", "jsonl"))
    assert ["schema", "capture", *(column.name for column in SEGMENTS)] == list(lines[0])
    assert expected.to_dicts() == [{key: line[key] for key in expected.columns} for line in lines]
    table = list(csv.DictReader(io.StringIO(run_of(capture, "--segments", "--format", "csv"))))
    assert [" ".join(map(str, edges)) for edges in expected["sack"]] == [row["sack"] for row in table]
    assert any(row["sack"] for row in table)


def test_segments_for_people(capture):
    out = run_of(capture, "--segments", "--flow", 1)
    assert max(map(len, out.splitlines())) <= 80
    assert "[fd00::1]:40001" in out
    assert "40000" not in out
    frames = [line.split()[0] for line in out.splitlines() if line[:5].strip().isdigit()]
    v6 = package.analyze(capture, segments=True).segments.filter(pl.col("src").str.contains(":"))
    assert [str(frame) for frame in v6["frame"]] == frames
    assert "MSS 1000, scale 7, SACK permitted" in out
    assert "SACK 5001-10001" in out


READERS = ["dpkt", pytest.param("tshark", marks=needs_tshark)]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("path", [TIMEOUTS, ROOT / "sample-traces/ipv6.pcap.gz"], ids=lambda path: path.name)
def test_readers_give_the_same_segments(path, reader):
    expected = package.analyze(path, segments=True).segments
    actual = package.analyze(path, reader=reader, segments=True).segments
    assert expected.schema == actual.schema
    assert [] == [name for name in expected.columns if not expected[name].equals(actual[name])]


def test_segments_only_where_asked_for(capture):
    with pytest.raises(package.InvalidParameter, match="segments=True"):
        _ = package.analyze(capture).segments


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_offsets_are_those_of_the_events(path):
    """Flow and first byte of every frame that an event names are what the event says."""
    analysis = package.analyze(path, segments=True)
    segments = traffic.labelled(analysis)
    assert analysis.segments.equals(segments.select(analysis.segments.columns))
    of_acks = (pl.col("kind") == "zero_window") | pl.col("reason").is_in(["ece", "ace"])
    named = analysis.events.filter(pl.col("frame").is_not_null(), ~of_acks)
    both = named.join(segments.select("frame", seen_flow="flow", seen_left="left"), on="frame", how="left")
    expected = both.select("frame", "flow", pl.col("left").cast(pl.Int64))
    assert expected.equals(both.select("frame", flow="seen_flow", left="seen_left"))


def test_offsets_of_wrapped_numbers(capture):
    analysis = package.analyze(capture, segments=True)
    data = traffic.labelled(analysis, [1]).filter(pl.col("flow") == 1, pl.col("payload") > 0)
    assert set(range(1, 60_001, 1000)) == set(data["left"])
    assert data["right"].equals(data["left"] + 1000)
    acks = traffic.labelled(analysis, [1]).filter(pl.col("reverse") == 1)
    assert 60_002 == acks["acked"].max()  # the FIN counts


def test_ports_used_again_are_two_connections(tmp_path):
    first, second = Transfer(segments=30, lost=frozenset({7})), Transfer(segments=20, isn=900_000, start_s=30)
    packets = len(Transfer(segments=30, lost=frozenset({7})).run())
    path = written(tmp_path / "again.pcap", first, second)
    analysis = package.analyze(path, segments=True)
    assert [0, 1] == analysis.flows["connection"].to_list()
    table = traffic.labelled(analysis)
    assert list(range(1, packets + 1)) == table.filter(pl.col("connection") == 0)["frame"].to_list()
    assert table.filter(pl.col("connection") == 1).equals(traffic.labelled(analysis, [1]))
    assert 20_001 == table.filter(pl.col("connection") == 1, pl.col("payload") > 0)["right"].max()


def test_help_names_what_there_is():
    page = tcpfit("events", "--help").stdout
    for option in ("--flow", "--kind", "--segments", "--format", "--output", "--reader", "--vantage", "--from"):
        assert option in page
    assert "events" in tcpfit("--help").stdout


@pytest.mark.parametrize("more", [[], ["--segments"]])
def test_a_table_does_not_replace_its_capture(more, tmp_path):
    sample, capture = Path(__file__).parents[1] / "sample-traces" / "cubic.pcap.gz", tmp_path / "capture"
    capture.write_bytes(sample.read_bytes())
    run = tcpfit("events", capture, *more, "--format", "parquet", "--output", capture)
    assert_sentence(run, 2, "capture is a capture; write elsewhere")
    assert sample.read_bytes() == capture.read_bytes()
