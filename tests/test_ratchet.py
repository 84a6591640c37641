"""Does what was right stay right? `ratchet.py` says how, `ratchet.json` what."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import ratchet

RIGHT, MOST = ratchet.recorded()
ABSENT = ratchet.absent()
SAMPLE = ratchet.SAMPLES / "short-web.pcap.gz"


def test_there_is_a_record():
    assert len(RIGHT) >= 1300
    assert set(ratchet.SETS) == {cell.set for cell in RIGHT}
    truths = {path.name.removesuffix(".truth.json") for path in ratchet.SAMPLES.glob("*.truth.json")}
    assert truths == {sample.split(" at the ")[0] for sample in MOST}


@pytest.mark.skipif(ABSENT is not None, reason=str(ABSENT))
def test_cells_that_were_right_are_right():
    judged = ratchet.judge()
    lost = ratchet.lost(RIGHT, judged)
    assert len(judged) >= len(RIGHT)
    assert [] == lost, "cells that were right:\n" + "\n".join(lost)


@pytest.mark.parametrize("sample", MOST)
def test_no_more_is_wrong_in_a_sample(sample):
    name, place = sample.split(" at the ")
    found = ratchet.wrong_one_by_one(name, place)
    assert found
    assert [] == ratchet.worse({sample: MOST[sample]}, {sample: found})


def test_command_says_the_same():
    """The grader's command, answered in this process, prints what the real one prints."""
    command = ["tcpfit", "analyze", str(SAMPLE), "--format", "json"]
    program = [sys.executable, "-c", "from tcpfit.cli.main import run; run()"]
    real = subprocess.run([*program, *command[1:]], capture_output=True, check=True)
    assert json.loads(real.stdout)["captures"][0]["flows"]
    assert json.loads(real.stdout) == json.loads(ratchet.answer(command).stdout)


def test_a_cell_that_turns_wrong_is_named():
    one, other = sorted(RIGHT)[:2]
    judged = {one: ratchet.Judged(False, "expected 3, found 4"), other: ratchet.Judged(True, "expected 3, found 3")}
    assert [f"{one}: expected 3, found 4"] == ratchet.lost({one, other}, judged)
    assert 1 == len(ratchet.lost({one, other}, {one: judged[other]})), "a cell that is not judged is not right"


def test_a_sample_that_gets_worse_is_named():
    most = {"a at the sender": {"losses missed": 1, "losses invented": 0}}
    assert [] == ratchet.worse(most, {"a at the sender": {"losses missed": 0, "losses invented": 0}})
    lines = ratchet.worse(most, {"a at the sender": {"losses missed": 2}})
    assert ["losses missed: was 1, is 2", "losses invented: was 0, is not counted any more"] == [
        line.removeprefix("a at the sender: ") for line in lines
    ]


def test_tightening_adds_and_never_removes(tmp_path, monkeypatch):
    monkeypatch.setattr(ratchet, "RECORD", tmp_path / "ratchet.json")
    monkeypatch.setattr(ratchet, "absent", lambda: None)
    monkeypatch.setattr(sys, "argv", ["ratchet.py", "--tighten"])
    kept, turned, wrong = (ratchet.Cell("traces", "a", "sender", metric) for metric in ("p", "m", "rtt"))
    good, bad = ratchet.Judged(True, ""), ratchet.Judged(False, "")
    sample = "s at the sender"

    monkeypatch.setattr(ratchet, "judge", lambda: {kept: good, turned: bad, wrong: bad})
    monkeypatch.setattr(ratchet, "samples", lambda: {sample: {"losses missed": 2}})
    assert 0 == ratchet.main()
    assert ({kept}, {sample: {"losses missed": 2}}) == ratchet.recorded()

    monkeypatch.setattr(ratchet, "judge", lambda: {kept: bad, turned: good, wrong: bad})
    monkeypatch.setattr(ratchet, "samples", lambda: {sample: {"losses missed": 1}})
    assert 1 == ratchet.main()
    assert ({kept, turned}, {sample: {"losses missed": 1}}) == ratchet.recorded()

    monkeypatch.setattr(ratchet, "judge", lambda: {kept: good, turned: good, wrong: bad})
    monkeypatch.setattr(ratchet, "samples", lambda: {sample: {"losses missed": 3}})
    assert 1 == ratchet.main()
    assert ({kept, turned}, {sample: {"losses missed": 1}}) == ratchet.recorded()
