"""Does `tcpfit xpl` write what xplot reads, with the marks that tcptrace draws?"""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from test_cli import assert_sentence, tcpfit

import tcpfit as package
from tcpfit.report import xplot

SAMPLES = Path(__file__).parent.parent / "sample-traces"
NAMES = ["a2b_owin.xpl", "a2b_rtt.xpl", "a2b_tput.xpl", "a2b_tsg.xpl"]

COLOURS = "white|green|red|blue|yellow|purple|orange|magenta|pink"
TIME, NUMBER = r"\d+\.\d{6}", r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
GRAMMAR = {
    "point": rf"(?:x|dot|plus|box|diamond|[udlr]tick|[hv]tick|[udlr]arrow) {TIME} {NUMBER}(?: (?:{COLOURS}))?",
    "line": rf"d?line {TIME} {NUMBER} {TIME} {NUMBER}(?: (?:{COLOURS}))?",
    "colour": COLOURS,
    "text": rf"[calrb]text {TIME} {NUMBER}(?: (?:{COLOURS}))?",
}
"""Commands of xplot 0.90 (its demo.0): the next line of a text is its letters."""


def commands(text: str) -> Counter[str]:
    """How often each command comes, texts as `text LETTERS`; fails for a line that xplot would not read."""
    lines = text.splitlines()
    assert re.fullmatch(r"timeval (?:double|signed|unsigned)", lines[0])
    assert ["title", "xlabel", "ylabel"] == lines[1:7:2]
    assert "go" == lines[-1]
    found: Counter[str] = Counter()
    rest = iter(lines[7:-1])
    for line in rest:
        kind = next((name for name, rule in GRAMMAR.items() if re.fullmatch(rule, line)), None)
        assert kind is not None, line
        found[f"text {next(rest)}" if kind == "text" else line.split()[0]] += 1
    return found


@pytest.mark.parametrize("name", ["sack-loss-sender", "timeouts", "reordering-receiver", "ipv6"])
def test_the_files_are_xplots_and_show_every_event(tmp_path, name):
    run = tcpfit("xpl", SAMPLES / f"{name}.pcap.gz", "-o", tmp_path / "graphs")
    assert (0, "") == (run.returncode, run.stderr)
    assert NAMES == sorted(path.name for path in (tmp_path / "graphs").iterdir())
    found = {path.name: commands(path.read_text()) for path in (tmp_path / "graphs").iterdir()}
    analysis = package.analyze(SAMPLES / f"{name}.pcap.gz", segments=True)
    events = dict(analysis.events.group_by(pl.col("kind").cast(pl.String)).len().iter_rows())
    for kind, letter in (("retransmission", "R"), ("loss", "L"), ("reordering", "O")):
        assert events.get(kind, 0) == found["a2b_tsg.xpl"][f"text {letter}"]
    data = analysis.segments.filter(pl.col("payload") > 0, pl.col("src") == analysis.flows["src"][0]).height
    assert data == found["a2b_tsg.xpl"]["uarrow"]


@pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not installed")
@pytest.mark.parametrize("name", ["sack-loss-sender", "timeouts"])
def test_tcptrace_draws_the_same(tmp_path, name):
    capture = tmp_path / "capture.pcap"
    capture.write_bytes(gzip.decompress((SAMPLES / f"{name}.pcap.gz").read_bytes()))
    subprocess.run(["tcptrace", "-S", "-N", "-R", "-T", capture], cwd=tmp_path, check=True, capture_output=True)
    ours = xplot.graphs(package.analyze(capture, segments=True), 0)
    assert NAMES == sorted(ours)
    theirs = {each: commands((tmp_path / each).read_text()) for each in NAMES}
    mine = {each: commands(text) for each, text in ours.items()}
    for command in ("text R", "dtick", "htick"):
        assert theirs["a2b_tsg.xpl"][command] == mine["a2b_tsg.xpl"][command], command
    assert theirs["a2b_rtt.xpl"]["dot"] == pytest.approx(
        mine["a2b_rtt.xpl"]["dot"], abs=0.02 * theirs["a2b_rtt.xpl"]["dot"]
    )
    titles = [(tmp_path / each).read_text().splitlines()[2] for each in NAMES]
    assert titles == [ours[each].splitlines()[2] for each in NAMES]


def test_names_go_on_as_tcptrace_has_them():
    assert ["a", "b", "z", "aa", "ab", "ba"] == [xplot._letters(n) for n in (0, 1, 25, 26, 27, 52)]


@pytest.mark.parametrize("verb", [["xpl"], ["plot", "rate"]])
def test_damage_is_told(tmp_path, verb):
    path = tmp_path / "cut.pcap.gz"
    path.write_bytes((SAMPLES / "timeouts.pcap.gz").read_bytes()[:-1000])
    run = tcpfit(*verb, path, "-o", tmp_path / ("graphs" if verb == ["xpl"] else "rate.svg"))
    assert_sentence(run, 0, "the capture ends here")


def test_what_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    run = tcpfit("xpl", SAMPLES / "timeouts.pcap.gz", "-o", tmp_path / "file" / "graphs")
    assert_sentence(run, 2, "Not a directory")
    assert_sentence(tcpfit("xpl", SAMPLES / "timeouts.pcap.gz", "--flow", "9", "-o", tmp_path), 2, "has no flow 9")
    assert_sentence(tcpfit("xpl", SAMPLES / "timeouts.pcap.gz", "--from", "1h"), 2, "no TCP flow that carried data")
