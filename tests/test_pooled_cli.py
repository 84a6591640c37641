"""`tcpfit pool` and `tcpfit dynamics`: what they print, their JSON, and a sentence for what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_cli import assert_sentence, tcpfit

SAMPLES = Path(__file__).parent.parent / "sample-traces"
WEB, LOSS = str(SAMPLES / "short-web.pcap.gz"), str(SAMPLES / "sack-loss-sender.pcap.gz")


@pytest.fixture(scope="module")
def pooled():
    run = tcpfit("pool", WEB, LOSS, "--format", "json")
    assert run.returncode == 0
    return json.loads(run.stdout)


def test_pool_separates_short_flows_from_the_others(pooled):
    sizes = {(size["low"], size["high"]): size for size in pooled["short"]}
    assert {"insufficient", "undecided", "explained", "none_applies"} >= {
        s["verdict"]["state"] for s in pooled["short"]
    }
    assert 200 == max(model["flows"] for model in sizes[1, 100]["models"])
    assert {"paper", "measured", "drawn"} == {model["start"] for model in sizes[4, 10]["models"]}
    assert 1 == pooled["across"]["flows"]
    assert "pftk-full" in [model["model"] for model in pooled["across"]["models"]]
    assert pooled["across"]["tree"]["rules"] is None
    assert "needs 10 groups" in pooled["across"]["tree"]["text"]


def test_pool_prints_a_line_a_model():
    shown = tcpfit("pool", WEB).stdout
    assert "short flows, by size" in shown
    assert "loss-free      measured" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    headings = ("short flows, by size", "models over ", "which model ranks first", "model ", "\u2500")
    assert [] == [line for line in shown.splitlines() if line[:1].strip() and not line.startswith(headings)]


def test_dynamics_json():
    found = json.loads(tcpfit("dynamics", LOSS, "--bin", "1s", "--format", "json").stdout)
    assert 1.0 == found["bin_s"]
    assert "bohacek-dynamics" in [row["model"] for row in found["scores"]]
    steps = [b["time_s"] - a["time_s"] for a, b in zip(found["course"], found["course"][1:], strict=False)]
    assert all(step == pytest.approx(1.0) for step in steps)
    assert "bohacek-sack" in found["course"][0]


def test_dynamics_prints_bars_and_scores():
    shown = tcpfit("dynamics", LOSS, "--losses", "events").stdout
    assert "==" in shown
    assert "mean-of-flow" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("dynamics", LOSS, "--flow", "77"), "has no flow 77"),
        (("dynamics", LOSS, "--bin", "1h"), "a bin must last between"),
        (("dynamics", WEB), "a loss rate that changes needs 2 blocks"),
        (("pool", WEB, "--most", "0"), "--most"),
        (("pool",), "CAPTURE"),
    ],
)
def test_bad_arguments(arguments, says):
    run = tcpfit(*arguments)
    assert_sentence(run, 2, says)


def test_a_capture_that_cannot_be_read_costs_one_sentence(tmp_path):
    run = tcpfit("pool", str(tmp_path / "none.pcap"), WEB, "--format", "json")
    assert run.returncode == 1
    assert len(run.stderr.splitlines()) == 1
    assert json.loads(run.stdout)["short"]
