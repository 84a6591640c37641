"""Is of several captures said, to the letter, what is said of each by itself?"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import polars as pl
import pytest
from captures import Transfer, pcap
from click.testing import CliRunner
from tcpfit.cli import printer
from tcpfit.cli.main import main

import tcpfit
from tcpfit.joint import Joint
from tcpfit.report import contract, csv

SAMPLES = Path(__file__).parent.parent / "sample-traces"


def said(*arguments: object) -> tuple[int, str, str]:
    """Status, output and complaints of `tcpfit analyze`."""
    done = CliRunner().invoke(main, ["analyze", *map(str, arguments)], standalone_mode=False)
    assert done.exception is None, done.exception
    return done.return_value, done.stdout, done.stderr


@pytest.fixture(scope="module")
def captures(tmp_path_factory) -> list[Path]:
    """Samples, two of them of many flows and of both directions, one without packets and one that is no capture."""
    folder = tmp_path_factory.mktemp("captures")
    empty, text, made = folder / "empty.pcap", folder / "text.pcap", folder / "made.pcap"
    empty.write_bytes(pcap([]))
    text.write_text("these are words, not packets\n")
    made.write_bytes(pcap(Transfer(segments=40, lost=frozenset({5, 23})).run()))
    names = ("cubic", "short-web", "timeouts", "ipv6", "netstack-reordering", "window-limited")
    return [empty, *(SAMPLES / f"{name}.pcap.gz" for name in names), text, made, empty]


@pytest.fixture(scope="module")
def analyses(captures) -> list[tcpfit.Analysis]:
    return [tcpfit.analyze(path) for path in captures if path.name != "text.pcap"]


@pytest.mark.parametrize("form", ["table", "csv", "json", "jsonl"])
@pytest.mark.parametrize("choices", [(), ("--rule", "window", "--models", "mathis,pftk-full", "--top", "3")])
def test_output_is_that_of_each(captures, form, choices, monkeypatch):
    monkeypatch.setattr(printer, "PATIENCE_S", 1e9)
    status, together, complaints = said(*captures, "--format", form, *choices)
    monkeypatch.setattr(printer, "FEW", -1)  # no capture waits for another
    assert (status, together, complaints) == said(*captures, "--format", form, *choices)
    assert 1 == status
    assert 1 == complaints.count("text.pcap: a text file, not a capture")
    each = [said(path, "--format", form, *choices)[1] for path in captures if path.name != "text.pcap"]
    if form == "json":
        assert [json.loads(one)["captures"][0] for one in each] == json.loads(together)["captures"]
    elif form == "csv":
        lines = [one.splitlines(keepends=True) for one in each]
        assert together == "".join([lines[0][0], *(line for one in lines for line in one[1:])])
    else:
        assert together == ("\n" if form == "table" else "").join(each)


def test_captures_of_few_flows_are_told_together(captures, monkeypatch):
    asked = []
    told = contract.flow_texts_of_each
    monkeypatch.setattr(contract, "flow_texts_of_each", lambda each: asked.append(len(each)) or told(each))
    monkeypatch.setattr(contract, "flow_texts", lambda analysis: pytest.fail(f"{analysis.path} is told by itself"))
    monkeypatch.setattr(printer, "PATIENCE_S", 1e9)
    monkeypatch.setattr(printer, "MOST", 3)
    few = [path for path in captures if not path.name.startswith("short-web")]
    assert 1 == said(*few[:-2], "--format", "jsonl")[0]
    assert [3, 3] == asked


@pytest.mark.parametrize("form", ["table", "csv", "json", "jsonl"])
def test_an_error_is_said_of_the_capture_that_has_it(captures, form, monkeypatch):
    """What fails for all of them is tried for each."""
    first, made, last = captures[1], captures[8], captures[5]
    alone = said(first, "--format", form)[1]
    monkeypatch.setattr(printer, "PATIENCE_S", 1e9)
    module, name = (csv, "flow_rows") if form == "csv" else (contract, "_flow_table")
    before = getattr(module, name)
    port = tcpfit.analyze(made).flows["src_port"][0]

    def failing(analysis, *arguments):
        if port in analysis.flows["src_port"]:
            raise ValueError("as the test wants it")
        return before(analysis, *arguments)

    monkeypatch.setattr(module, name, failing)
    status, out, complaints = said(first, made, last, "--format", form)
    assert (1, 1) == (status, complaints.count("as the test wants it"))
    assert f"{made}: " in complaints
    assert first.name in out and last.name in out
    assert made.name not in out
    assert alone[:-10] == out[: len(alone) - 10]  # the end of the document apart


def test_what_waits_is_printed_before_a_capture_that_may_take_long(captures, monkeypatch, tmp_path):
    """A pipe, say, or a large file: the captures before it are printed when it is opened."""
    path = tmp_path / "pipe.pcap"
    os.mkfifo(path)
    monkeypatch.setattr(printer, "PATIENCE_S", 1e9)
    flushed = []
    flush = printer.Printer.flush
    monkeypatch.setattr(printer.Printer, "flush", lambda self: flushed.append(len(self._waiting)) or flush(self))
    monkeypatch.setattr(tcpfit.cli.analyze, "read", lambda capture, source: tcpfit.analyze(captures[1]))
    said(captures[1], captures[3], path, captures[4], "--format", "jsonl")
    assert [2, 2] == flushed  # the pipe's flows wait with those of the next one


def test_none_waits_for_long(captures, monkeypatch):
    monkeypatch.setattr(printer, "PATIENCE_S", 0.0)
    sizes = []
    flush = printer.Printer.flush
    monkeypatch.setattr(printer.Printer, "flush", lambda self: sizes.append(len(self._waiting)) or flush(self))
    said(captures[1], captures[3], captures[4], "--format", "jsonl")
    assert [1, 1, 1, 0] == sizes


def test_a_capture_of_many_flows_is_printed_at_once(captures, analyses, monkeypatch):
    few = printer.Printer("table", top=3, in_full=False)
    assert [each.flows.height <= 3 for each in analyses] == [few.waits_for(each) for each in analyses]
    assert not all(map(few.waits_for, analyses))
    all_of_them = printer.Printer("csv", top=3, in_full=False)
    assert [each.flows.height <= printer.FEW for each in analyses] == [all_of_them.waits_for(each) for each in analyses]
    assert not all(map(all_of_them.waits_for, analyses))


def test_flows_and_connections_are_numbered_through(analyses):
    joint = Joint(analyses)
    assert joint.analysis.flows["flow"].is_unique().all()
    assert joint.analysis.flows["connection"].n_unique() == sum(
        each.flows["connection"].n_unique() for each in analyses
    )
    for name in ("flows", "events", "rounds"):
        own, owner = joint.own(getattr(joint.analysis, name))
        for number, each in enumerate(analyses):
            assert own.filter(pl.Series(owner == number)).equals(getattr(each, name)), (name, each.path)


def test_a_number_without_room_is_refused(analyses):
    one = analyses[1]
    highest = one.flows.with_columns(flow=pl.lit(2**32 - 1, pl.UInt32))
    last = one.of(tcpfit.readers.Reading({}, {"flows": highest, "events": one.events, "rounds": one.rounds}))
    with pytest.raises(pl.exceptions.InvalidOperationError):
        Joint([one, last])


def test_numbers_are_those_of_each_to_the_last_digit(tmp_path):
    """Of short transfers, several of a size, whose times are compared with those that models say."""
    paths = [tmp_path / f"{number}.pcap" for number in range(40)]
    for number, path in enumerate(paths):
        path.write_bytes(pcap(Transfer(segments=20 + number // 5, lost=frozenset(range(number % 5))).run()))
    each = [tcpfit.analyze(path) for path in paths]
    assert [list(contract.flow_texts(one)) for one in each] == contract.flow_texts_of_each(each)


def test_rows_are_those_of_each(analyses):
    for each, rows in zip(analyses, csv.flow_rows_of_each(analyses), strict=True):
        text = "".join(csv.texts(rows, each.path))
        assert text == "".join(csv.flow_texts(each))
        assert pl.read_csv(io.StringIO(text)).height == each.flows.height
