"""Is the table of segments whole where it is handed out in pieces, and does its file come whole or not at all?"""

from __future__ import annotations

import json
from pathlib import Path

import captures
import polars as pl
import pytest
from captures import Transfer
from test_cli import assert_sentence, tcpfit

import tcpfit as library
from tcpfit.engine import Tracker
from tcpfit.exceptions import CaptureError
from tcpfit.readers import Settings
from tcpfit.readers.batches import Batches, Segment
from tcpfit.schema import polars_schema
from tcpfit.segment_file import SegmentFile

PIECE = 8 * 16 * 1024
SAMPLE = Path(__file__).resolve().parents[1] / "sample-traces" / "cubic.pcap.gz"


@pytest.fixture(scope="module")
def long(tmp_path_factory) -> Path:
    """A capture of 300,000 packets: two pieces of the table, and a rest."""
    ack = Transfer(segments=1).run()[2]
    path = tmp_path_factory.mktemp("segments") / "long.pcap"
    one, none = captures.pcap([ack]), captures.pcap([])
    path.write_bytes(none + one[len(none) :] * 300_000)
    return path


def test_pieces_come_as_they_are_read_and_none_is_kept(long):
    pieces: list[pl.DataFrame] = []
    analysis = library.analyze(long, segments=pieces.append)
    heights = [piece.height for piece in pieces]
    assert 300_000 == sum(heights)
    assert 3 == len(heights) and all(PIECE <= height < PIECE + 16 * 1024 for height in heights[:-1])
    assert list(range(1, 300_001)) == pl.concat(pieces)["frame"].to_list()
    with pytest.raises(library.InvalidParameter, match="without its segments"):
        _ = analysis.segments


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_what_is_printed_piece_by_piece_is_one_list(long, form):
    run = tcpfit("events", long, "--segments", "--format", form)
    assert (0, "") == (run.returncode, run.stderr)
    lines = run.stdout.splitlines()
    if form == "csv":
        assert "frame" == lines[0].split(",")[1]
        frames = [int(line.split(",")[1]) for line in lines[1:]]
    else:
        frames = [json.loads(line)["frame"] for line in lines]
    assert list(range(1, 300_001)) == frames


def test_a_capture_without_segments_has_a_head_only(tmp_path):
    path = tmp_path / "none.pcap"
    path.write_bytes(captures.pcap([]))
    assert "" == tcpfit("events", path, "--segments", "--format", "jsonl").stdout
    (head,) = tcpfit("events", path, "--segments", "--format", "csv").stdout.splitlines()
    assert ["capture", *polars_schema("segments")] == head.split(",")


def test_a_reader_of_packets_hands_out_the_same_pieces():
    row = Segment(*([0] * 2), "10.0.0.1", "10.0.0.2", 1, 2, 0, 0, 16, 100, 0, 60, None, 64, *[0] * 4, *[None] * 2,
                  False, False, *[None] * 3, False, [])  # fmt: skip
    batch = pl.DataFrame([row], schema=polars_schema("segments"), orient="row")
    tracker = Tracker(segments=True)
    assert tracker.take_piece() is None
    tracker.push(batch.select(pl.all().gather([0] * PIECE)))
    piece = tracker.take_piece()
    assert piece is not None and PIECE == pl.DataFrame(piece).height
    assert tracker.take_piece() is None
    tracker.push(batch)
    assert 1 == pl.DataFrame(tracker.finish().segments).height

    pieces: list[pl.DataFrame] = []
    batches = Batches(Settings(segments=pieces.append))
    for number in range(PIECE + 5):
        batches.add(row._replace(frame=number))
    batches.finish({"warnings": []})
    assert [PIECE, 5] == [each.height for each in pieces]


@pytest.mark.parametrize("reader", ["engine", "dpkt"])
def test_the_table_is_that_held_in_memory(reader):
    pieces: list[pl.DataFrame] = []
    analysis = library.analyze(SAMPLE, reader=reader, segments=pieces.append)
    held = library.analyze(SAMPLE, reader=reader, segments=True)
    assert held.segments.equals(pl.concat(pieces)) and held.segments.schema == pieces[0].schema
    assert held.flows.equals(analysis.flows) and held.events.equals(analysis.events)


def test_what_the_function_raises_ends_the_reading(long):
    def full(_: pl.DataFrame) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        library.analyze(long, segments=full)


def test_the_file_is_whole(tmp_path, long):
    with SegmentFile(tmp_path / "a" / "segments.parquet") as file:
        library.analyze(long, segments=file.add)
        assert not (tmp_path / "a" / "segments.parquet").exists()
    assert ["segments.parquet"] == [path.name for path in (tmp_path / "a").iterdir()]
    assert library.analyze(long, segments=True).segments.equals(pl.read_parquet(tmp_path / "a" / "segments.parquet"))


def test_nothing_is_left_of_a_file_that_failed(tmp_path):
    empty = pl.DataFrame(schema=polars_schema("segments"))
    with pytest.raises(CaptureError), SegmentFile(tmp_path / "segments.parquet") as file:
        file.add(empty)
        assert list(tmp_path.iterdir())
        raise CaptureError("cut short")
    assert [] == list(tmp_path.iterdir())


def test_a_capture_without_segments_has_an_empty_table(tmp_path):
    with SegmentFile(tmp_path / "segments.parquet"):
        pass
    assert pl.read_parquet(tmp_path / "segments.parquet").schema == polars_schema("segments")


def test_the_command_writes_it_beside_the_other_tables(tmp_path):
    run = tcpfit("analyze", SAMPLE, "--output", tmp_path, "--segments")
    assert (0, "") == (run.returncode, run.stderr)
    held = library.analyze(SAMPLE, segments=True)
    saved = library.load(tmp_path / "cubic")
    assert held.segments.equals(saved.segments)
    assert 8 == len(list((tmp_path / "cubic").iterdir()))


def test_the_command_leaves_none_of_another_capture(tmp_path):
    for name, options in (("timeouts", ["--segments"]), ("cubic", [])):
        (tmp_path / "c.pcap.gz").write_bytes(SAMPLE.with_name(f"{name}.pcap.gz").read_bytes())
        assert 0 == tcpfit("analyze", "c.pcap.gz", "--output", "t", *options, cwd=tmp_path).returncode
    saved = library.load(tmp_path / "t" / "c")
    assert saved.flows.equals(library.analyze(SAMPLE).flows)
    assert saved.segments.is_empty()


def test_tables_saved_beside_it_keep_it(tmp_path):
    with SegmentFile(tmp_path / "segments.parquet") as file:
        analysis = library.analyze(SAMPLE, segments=file.add)
    analysis.write_parquet(tmp_path, run=file.run)
    assert library.load(tmp_path).segments.equals(library.analyze(SAMPLE, segments=True).segments)
    analysis.write_parquet(tmp_path)
    assert library.load(tmp_path).segments.is_empty()


def test_its_addresses_are_under_the_key(tmp_path):
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    assert 0 == tcpfit("analyze", SAMPLE, "--output", tmp_path, "--segments", "--anonymize-key", key).returncode
    saved = library.load(tmp_path / "cubic")
    ends = set(saved.segments["src"]) | set(saved.segments["dst"])
    assert ends == set(saved.flows["src"]) | set(saved.flows["dst"])
    assert ends.isdisjoint(library.analyze(SAMPLE).flows["src"])


def test_it_needs_a_folder(tmp_path):
    assert_sentence(tcpfit("analyze", SAMPLE, "--segments"), 2, "--segments", "--output")


def test_a_capture_that_cannot_be_read_leaves_no_folder(tmp_path):
    (tmp_path / "bad.pcap").write_bytes(b"no capture at all")
    run = tcpfit("analyze", tmp_path / "bad.pcap", "--output", tmp_path / "out", "--segments")
    assert_sentence(run, 1, "bad.pcap")
    assert not (tmp_path / "out" / "bad").exists()
