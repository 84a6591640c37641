"""Is everything still there where lines are too narrow for a table?"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys

import pytest
from rich.padding import Padding
from rich.table import Table

from tcpfit.report.terminal import Terminal

RUN = (sys.executable, "-c", "from cli.main import run; run()")
SAMPLE = "sample-traces/newreno-small.pcapng.zst"
VERBS = {
    "analyze": ("analyze", SAMPLE),
    "diagnose": ("diagnose", SAMPLE),
    "diagnose-several": ("diagnose", SAMPLE, "sample-traces/ns2-reno.pcap.gz"),
    "rank": ("rank", SAMPLE),
    "pool": ("pool", "sample-traces/short-web.pcap.gz"),
    "models": ("models",),
    "model": ("models", "pftk-full"),
    "predict": ("predict", "--p", "1%", "--rtt", "100ms", "--size", "64KB"),
}


def words_of(arguments: tuple[str, ...], columns: int) -> list[str]:
    environment = os.environ | {"COLUMNS": str(columns)}
    run = subprocess.run([*RUN, *arguments], capture_output=True, text=True, env=environment)
    assert (0, "") == (run.returncode, run.stderr)
    return re.findall(r"[\w./+%-]*\w[\w./+%-]*|…", run.stdout)


@pytest.mark.parametrize("columns", [20, 40, 60])
@pytest.mark.parametrize("verb", VERBS)
def test_nothing_is_cut(verb: str, columns: int) -> None:
    assert "…" not in words_of(VERBS[verb], columns)


@pytest.mark.parametrize("columns", [40, 60])
@pytest.mark.parametrize("verb", ["rank", "pool", "models", "predict"])
def test_the_words_are_those_of_wide_lines(verb: str, columns: int) -> None:
    assert set(words_of(VERBS[verb], 200)) == set(words_of(VERBS[verb], columns))


def test_flows_keep_numbers_and_verdicts() -> None:
    assert {"flow", "verdict", "RTT", "goodput"} < set(words_of(VERBS["analyze"], 40))


@pytest.mark.parametrize("verb", VERBS)
def test_no_line_ends_in_blanks(verb: str) -> None:
    run = subprocess.run([*RUN, *VERBS[verb]], capture_output=True, text=True, check=True)
    assert [] == [line for line in run.stdout.splitlines() if line != line.rstrip()]


def printed(table: Table | Padding, width: int) -> list[str]:
    out = Terminal(file=io.StringIO(), width=width)
    out.print(table)
    assert width == out.width
    return out.file.getvalue().splitlines()


def small() -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("first")
    table.add_column("second")
    table.add_row("round trip", "timeout (double-loss)", "a b c d e f g h")
    return table


def test_a_table_that_has_room_is_as_wide_as_its_cells() -> None:
    assert ["round trip  timeout (double-loss)  a b c d e f g h"] == printed(small(), 60)[1:]


def test_the_widest_cells_wrap_between_words() -> None:
    lines = ["round trip  timeout        a b c d e f g", "            (double-loss)  h"]
    assert lines == [line.rstrip() for line in printed(small(), 40)[1:]]


def test_a_table_that_has_no_room_runs_over() -> None:
    """The longest words of each cell that may wrap, and whole what may not."""
    lines = printed(Padding(small(), (0, 0, 0, 2)), 20)
    assert "  round trip  timeout        a b c" == lines[1].rstrip()
    assert "(double-loss)  d e f" in lines[2]
