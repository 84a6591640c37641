"""Does `tcpfit plot` write every kind of file, whole, and say in a sentence what it cannot?"""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from test_cli import assert_sentence, tcpfit

import tcpfit as package
from tcpfit.exceptions import InvalidParameter
from tcpfit.report.figures import KINDS, draw, render

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

SAMPLES = Path(__file__).parents[1] / "sample-traces"
TIMEOUTS = SAMPLES / "timeouts.pcap.gz"
HOSTILE = "</script><script>alert(1)</script>\"'&"

STARTS = {".svg": b"<svg ", ".png": b"\x89PNG", ".pdf": b"%PDF", ".html": b"<!DOCTYPE html>", ".json": b"{"}


@pytest.mark.parametrize("suffix", STARTS)
def test_every_kind_of_file_is_written_and_described(tmp_path, suffix):
    path = tmp_path / f"figure{suffix}"
    run = tcpfit("plot", "stalls", TIMEOUTS, "-o", path)
    assert (0, "") == (run.returncode, run.stderr)
    assert " ".join(run.stdout.split()).startswith(f"{path}: 26 stalls (timeout 26) took ")
    assert path.read_bytes().startswith(STARTS[suffix])
    assert [path] == list(tmp_path.iterdir())


def test_the_description_has_lines_of_the_terminal(tmp_path):
    path = tmp_path / "a  name" / f"{'long' * 20}-{'name' * 20}.svg"
    path.parent.mkdir()
    text = tcpfit("plot", "rtt", TIMEOUTS, "-o", path).stdout
    assert text.startswith(f"{path}: ")
    assert max(map(len, text.removeprefix(f"{path}: ").splitlines())) <= 80
    assert package.analyze(TIMEOUTS, segments=True).plot("rtt").description == " ".join(
        text.removeprefix(f"{path}: ").split()
    )


def test_what_fails_of_every_model_is_written_whole():
    analysis = package.analyze(SAMPLES / "slow-reader.pcap.gz")
    drawn = render(draw(analysis, "ranking"), ".svg").decode()
    for row in analysis.ranking.iter_rows(named=True):
        caveats = [f"x {name}" for name in row["failed"]] + [f"~ {name}" for name in row["weakened"]]
        assert f">{', '.join(caveats)}<" in drawn
    assert analysis.ranking["log_ratio"].null_count() == drawn.count(">no prediction<")
    assert "of which an assumption fails (bulk 11, loss-limited 10, " in draw(analysis, "ranking").description


def test_the_kinds_are_listed_and_in_the_help():
    listed = [line.split()[0] for line in tcpfit("plot", "--list").stdout.splitlines()]
    assert list(KINDS) == listed
    assert all(f"{name}  " in tcpfit("plot", "--help").stdout for name in KINDS)


def test_the_command_knows_every_kind():
    from tcpfit.cli.options import FIGURES

    assert tuple(KINDS) == FIGURES


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["pie", TIMEOUTS, "-o", "x.svg"], ["'pie' is not one of"]),
        (["rtt", TIMEOUTS, "-o", "x.gif"], ["x.gif: the name has to end in .html, .svg, .png, .pdf, .json"]),
        (["rtt", TIMEOUTS], ["Missing option"]),
        (["rtt", TIMEOUTS, "--flow", "9", "-o", "x.svg"], ["has no flow 9; its only flow is 0"]),
        (["rtt", TIMEOUTS, "-o", "no-such-folder/x.svg"], ["No such file or directory"]),
        (["stalls", SAMPLES / "window-limited.pcap.gz", "-o", "x.svg"], ["shows no stall"]),
        (["rtt", TIMEOUTS, "--from", "1h", "-o", "x.svg"], ["has no TCP flow that carried data"]),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(tmp_path, arguments, parts):
    run = tcpfit("plot", *arguments, cwd=tmp_path)
    assert_sentence(run, 2, *parts)
    assert [] == list(tmp_path.iterdir())


def test_python_has_the_same_figures():
    analysis = package.analyze(TIMEOUTS, segments=True)
    assert "Round-trip times" == analysis.plot("rtt").to_dict()["title"]["text"]
    with pytest.raises(InvalidParameter, match="'pie' is no kind of figure; the kinds are time-sequence, window"):
        analysis.plot("pie")


@pytest.fixture(scope="module")
def hostile():
    """An analysis whose addresses are markup."""
    analysis = package.analyze(TIMEOUTS, segments=True)
    tables = dict(analysis._reading.tables)
    for name in ("flows", "segments"):
        tables[name] = tables[name].with_columns(
            pl.when(pl.col(end) == "10.16.1.10").then(pl.lit(HOSTILE)).otherwise(pl.col(end)).alias(end)
            for end in ("src", "dst")
        )
    from dataclasses import replace

    return package.Analysis(HOSTILE, replace(analysis._reading, tables=tables))


@pytest.mark.parametrize("kind", KINDS)
def test_markup_in_a_capture_stays_text(hostile, kind):
    chart = draw(hostile, kind)
    chart.description = f"{chart.description} {HOSTILE}"
    html = render(chart, ".html").decode()
    assert "alert(1)" in html
    assert "<script>alert" not in html
    svg = render(chart, ".svg").decode()
    assert not [each for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("script")]
    assert HOSTILE in ElementTree.fromstring(svg).attrib["aria-label"]
    assert HOSTILE in json.dumps(json.loads(render(chart, ".json"))["title"], ensure_ascii=False).replace('\\"', '"')


def test_html_needs_no_network():
    html = render(draw(package.analyze(TIMEOUTS), "losses"), ".html").decode()
    assert "Content-Security-Policy" in html and "default-src 'none'" in html.replace("&#x27;", "'")
    assert "<script src" not in html and "<link" not in html


def test_a_figure_does_not_replace_its_capture(tmp_path):
    capture = tmp_path / "capture.json"
    capture.write_bytes(TIMEOUTS.read_bytes())
    assert_sentence(tcpfit("plot", "rtt", capture, "-o", capture), 2, "capture.json is a capture; write elsewhere")
    assert TIMEOUTS.read_bytes() == capture.read_bytes()
