"""Does a diagnosis say of a file, of which it keeps some packets, what it says of a pipe, of which it keeps all?"""

from __future__ import annotations

import json
from pathlib import Path

import captures
import polars as pl
import pytest
from captures import Transfer
from tcpfit.cli import reading
from tcpfit.cli.options import Source
from tcpfit.cli.reading import read, read_between, read_connection
from test_cli import tcpfit

from tcpfit.analysis import both_ways
from tcpfit.report.explanation import explain

SAMPLES = Path(__file__).resolve().parents[2] / "sample-traces"
WEB = SAMPLES / "short-web.pcap.gz"
KEY = bytes(range(32))


def said(path: str, **options) -> list[dict]:
    run = tcpfit("diagnose", path, "--format", "json", "--top", "4", **options)
    assert (0, "") == (run.returncode, run.stderr)
    (capture,) = json.loads(run.stdout)["captures"]
    return capture["flows"]


@pytest.mark.parametrize("name", ["short-web.pcap.gz", "newreno-loss.pcap.gz", "slow-reader.pcap.gz"])
def test_a_file_is_diagnosed_as_a_pipe_is(name):
    path = SAMPLES / name
    with path.open("rb") as stream:
        assert said(str(path)) == said("-", stdin=stream)


@pytest.mark.parametrize("verb", ["plot time-sequence", "report --flows 3", "xpl --flow 5 --flow 9"])
def test_figures_of_a_file_are_those_of_a_pipe(tmp_path, verb):
    name, *options = verb.split()
    made = []
    for folder, capture in (("file", str(WEB)), ("pipe", "-")):
        output = {"plot": "figure.json", "report": "short-web.html", "xpl": ""}[name]
        (tmp_path / folder).mkdir()
        with WEB.open("rb") as stream:
            run = tcpfit(name, *options, capture, "-o", tmp_path / folder / output, stdin=stream)
        assert (0, "") == (run.returncode, run.stderr)
        made.append({path.name: path.read_text() for path in (tmp_path / folder).iterdir()})
    file, pipe = made
    assert file.keys() == pipe.keys()
    assert [name for name in file if file[name] != pipe[name].replace("standard input", WEB.name)] == []


@pytest.mark.parametrize("key", [None, KEY])
def test_segments_are_those_between_the_ends_of_the_flows(key):
    source = Source(key=key)
    whole, chosen = read(str(WEB), source, segments=True), [3, 7]
    some = read_between(str(WEB), source, lambda _: chosen)
    assert whole.flows.equals(some.flows)
    assert 4 == whole.ends(chosen).height
    kept = whole.segments.join(whole.ends(chosen), on=whole.ends(chosen).columns, how="semi", maintain_order="left")
    assert 0 < kept.height < whole.segments.height / 10
    assert kept.equals(some.segments)


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("frame", [1, 700, 10**9])
def test_segments_are_those_of_the_connection_of_the_frame(key, frame):
    source = Source(key=key)
    whole, some = read(str(WEB), source, segments=True), read_connection(str(WEB), source, frame)
    assert whole.flows.equals(some.flows)
    ends = both_ways(whole.segments.filter(pl.col("frame") == frame))
    assert (2 if frame < 10**9 else 0) == ends.height
    kept = whole.segments.join(ends, on=ends.columns, how="semi", maintain_order="left")
    assert kept.height < whole.segments.height / 10
    assert kept.equals(some.segments)


@pytest.mark.parametrize("frame", [1, 700, 10**9])
def test_a_frame_of_a_file_is_explained_as_that_of_a_pipe(frame):
    runs = []
    for capture in (str(WEB), "-"):
        with WEB.open("rb") as stream:
            run = tcpfit("explain", capture, frame, "--format", "json", stdin=stream)
        runs.append((run.returncode, (run.stdout + run.stderr).replace(str(WEB), "-")))
    assert runs[0] == runs[1]
    assert (2 if frame == 10**9 else 0) == runs[0][0]


@pytest.mark.parametrize("arguments", ["report CAPTURE -o page.html --data --flows 3",
                                       "analyze CAPTURE --html page.html --flow 5",
                                       "analyze CAPTURE --html page.html --flow 9 --output tables --segments",
                                       "events CAPTURE --segments --flow 5 --format parquet --output x.parquet",
                                       "events CAPTURE --segments --format parquet --output x.parquet"])  # fmt: skip
@pytest.mark.parametrize("key", [[], ["--anonymize-key", "key"]])
def test_files_written_of_a_file_are_those_of_a_pipe(tmp_path, arguments, key):
    made = []
    for folder, capture in (("file", str(WEB)), ("pipe", "-")):
        inside = tmp_path / folder
        inside.mkdir()
        (inside / "key").write_bytes(KEY)
        with WEB.open("rb") as stream:
            words = [capture if word == "CAPTURE" else word for word in arguments.split()]
            run = tcpfit(*words, *key, stdin=stream, cwd=inside)
        assert (0, "") == (run.returncode, run.stderr)
        pages = {path.name: path.read_text() for path in inside.glob("*.html")}
        tables = {path.name: pl.read_parquet(path) for path in inside.rglob("*.parquet") if path.stem != "captures"}
        made.append((pages, tables))
    (page, tables), (piped_page, piped_tables) = made
    assert page.keys() == piped_page.keys() and tables.keys() == piped_tables.keys()
    assert len(page) + len(tables) >= 1
    assert [name for name in tables if not tables[name].equals(piped_tables[name])] == []
    assert [n for n in page if page[n] != piped_page[n].replace("standard input", WEB.name)] == []


def test_a_file_that_grows_has_the_segments_of_the_flows_that_it_has_then(tmp_path):
    path = tmp_path / "growing.pcap"
    first = captures.pcap(Transfer(segments=20).run())
    path.write_bytes(first)
    later = captures.pcap(Transfer(segments=90, sport=40001, start_s=9.0).run())

    def largest(analysis):
        path.write_bytes(first + later[24:])  # without its header
        return analysis.largest()[:1]

    found = read_between(str(path), Source(), largest)
    assert 2 == found.flows.height
    (row,) = found.select(found.largest()[:1]).flows.to_dicts()
    assert 40001 == row["src_port"]
    assert found.segments.filter(pl.col("src_port") == 40001)["payload"].sum() >= row["unique_bytes"]


def test_a_file_replaced_between_its_readings_is_explained_as_it_is_then(tmp_path, monkeypatch):
    path, again = tmp_path / "replaced.pcap", reading._read_those
    path.write_bytes(captures.pcap(Transfer(segments=20).run()))

    def replaced(*arguments):
        path.write_bytes(captures.pcap(Transfer(segments=90, sport=40001).run()))
        return again(*arguments)

    monkeypatch.setattr(reading, "_read_those", replaced)
    segment = explain(read_connection(str(path), Source(), 5), 5)["segment"]
    assert 40001 in (segment["src_port"], segment["dst_port"])


def test_what_another_program_dissects_is_read_once():
    readings = []

    def choose(_):
        readings.append(1)
        return [0]

    path = str(SAMPLES / "slow-reader.pcap.gz")
    assert read_between(path, Source(reader="dpkt"), choose).segments.height > 0
    assert [] == readings
