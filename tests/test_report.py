"""Does the page say what the analysis says, in that order, and does nothing from a capture come through as markup?"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path

import captures
import polars as pl
import pytest
from captures import Transfer

import tcpfit
from tcpfit import analysis as saving
from tcpfit.exceptions import CaptureError, InvalidParameter
from tcpfit.readers.saved import is_saved
from tcpfit.report import filters, words
from tcpfit.report import page as report_page
from tcpfit.report.explanation import explain
from tcpfit.report.page.content import content

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "sample-traces" / "cubic.pcap.gz"
COMMAND = [sys.executable, "-c", "from tcpfit.cli.main import run; run()"]
HOSTILE = "<img src=x onerror=alert(1)> </script><script>alert(2)<!-- \u2028'\"&.pcap"


class Page(HTMLParser):
    """Elements of a page by name with their attributes, headings with their text, and what its scripts hold."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[str, str]] = []
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append((tag, ""))
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if "script" in self._open:
            self.scripts[-1] += data
            return
        self.text += data
        heading = next((tag for tag in self._open if tag in ("h1", "h2", "h3", "h4")), None)
        if heading:
            self.headings[-1] = (heading, self.headings[-1][1] + data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def unpacked(text: str) -> str:
    return zlib.decompress(base64.b64decode(text)).decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def capture(folder):
    """Two flows, in a file whose name is markup."""
    path = folder / HOSTILE.replace("/", "\u2215")
    packets = Transfer(segments=300, lost=frozenset(range(50, 300, 37))).run()
    packets += Transfer(segments=60, sport=40001, start_s=0.2, v6=True).run()
    path.write_bytes(captures.pcap(sorted(packets, key=lambda packet: packet.time_ns)))
    return path


@pytest.fixture(scope="module")
def analysis(capture):
    return tcpfit.analyze(capture, segments=True)


@pytest.fixture(scope="module")
def html(analysis):
    return report_page.render(analysis)


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def tcpfit_command(*arguments, cwd):
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False)


def test_the_order_of_the_story(page):
    assert [("h4", text) for text in ("Verdict", "How sure", "What it looks like", "Evidence")] == [
        heading for heading in page.headings if heading[0] == "h4"
    ][:4]
    assert ["h1", "h2"] == [tag for tag, _ in page.headings][:2]


def test_every_flow_says_what_the_diagnosis_and_the_ranking_say(page, analysis):
    text = " ".join(page.text.split())
    for diagnosis in (each.report.diagnosis for each in content(analysis, analysis.largest()).sections):
        assert " ".join(diagnosis.text.split()) in text
        assert words.sentence(diagnosis.remedy) in text
    for verdict in analysis.verdicts["text"]:
        assert verdict in text


def test_a_baseline_is_said_to_be_one_and_not_that_it_does_not_apply(page):
    assert "baseline: the mean rate of the other blocks" in page.text
    assert "does not apply: baseline" not in page.text
    assert "does not apply: " in page.text


def test_nothing_of_a_capture_is_markup(page, capture):
    assert not [name for name, attributes in page.elements if name in ("img", "iframe", "object", "link")]
    assert not [a for _, attributes in page.elements for a in attributes if a.startswith("on")]
    assert [("h1", capture.name)] == [heading for heading in page.headings if heading[0] == "h1"]
    assert "alert(" not in "".join(page.scripts)


def test_it_loads_nothing(page, html):
    loading = {"src", "href", "action", "data", "poster", "srcset", "background"}
    assert {"#"} == {str(a[key])[0] for _, a in page.elements for key in loading & set(a)}
    assert "url(" not in html
    policy = next(a["content"] for a in page.of("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    run = [page.scripts[-1], unpacked(page.scripts[[a.get("id") for a in page.of("script")].index("library")])]
    assert allowed == {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in run}
    assert "unsafe" not in policy.split("script-src")[1].split(";")[0]


def test_what_is_no_program_is_packed(page):
    kinds = [attributes.get("type") for attributes in page.of("script")]
    for kind, text in zip(kinds, page.scripts, strict=True):
        assert kind in (None, "text/plain")
        if kind:
            assert re.fullmatch(r"[A-Za-z0-9+/=]+", text)


def test_figures_draw_every_event(page, analysis):
    """The packed tables of marks hold a row an event; groups of events, which are no marks, apart."""
    specs = [
        json.loads(unpacked(text)) for a, text in zip(page.of("script"), page.scripts, strict=True) if a.get("class")
    ]
    assert 2 == len(specs)
    marks = [spec["time-sequence"]["datasets"]["marks"] for spec in specs]
    groups = ["loss_event", "recovery", "timeout", "tail_loss_probe", "reorder_event"]
    single = analysis.events.filter(~pl.col("kind").cast(pl.String).is_in(groups)).height
    assert single > 0
    assert single == sum(len(table["cause"]) for table in marks)


def test_ids_are_unique_and_labels_lead_somewhere(page):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        for key in ("aria-labelledby", "aria-describedby"):
            assert set(attributes.get(key, "").split()) <= set(ids)
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids


def test_flows_beyond_those_drawn_are_in_the_table(analysis):
    page = Page(report_page.render(analysis, drawn=1))
    assert 1 == len([a for a in page.of("details") if a.get("class") == "flow"])
    assert 2 == len([a for a in page.of("tr") if "data-cause" in a])


def test_saved_tables_make_the_same_page(analysis, html, folder):
    analysis.write_parquet(folder / "with", segments=True)
    assert report_page.render(tcpfit.load(folder / "with")) == html


def test_without_segments_the_page_says_what_it_lacks(analysis, folder):
    analysis.write_parquet(folder / "without")
    saved = tcpfit.load(folder / "without")
    assert saved.ranking.equals(analysis.ranking)
    text = report_page.render(saved)
    assert "The saved tables hold no segments" in text
    assert 'data-kind="ranking"' in text
    assert 'data-kind="time-sequence"' not in text


@pytest.mark.parametrize(
    "call",
    [
        lambda saved, _: explain(saved, 1),
        lambda saved, _: saved.plot("time-sequence"),
        lambda saved, _: saved.select([0]).plot("rtt"),
        lambda saved, folder: saved.write_parquet(folder / "again", segments=True),
    ],
)
def test_what_needs_the_segments_says_that_they_were_not_saved(analysis, tmp_path, call):
    analysis.write_parquet(tmp_path / "without")
    with pytest.raises(InvalidParameter) as caught:
        call(tcpfit.load(tmp_path / "without"), tmp_path)
    assert "were saved without its segments; save them with write_parquet(..., segments=True)" in str(caught.value)
    analysis.write_parquet(tmp_path / "with", segments=True)
    call(tcpfit.load(tmp_path / "with"), tmp_path)


TABLES = ("captures", "flows", "events", "rounds", "parameters", "ranking", "verdicts")


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("last", [False, True])
def test_a_cut_table_is_told_by_its_column(analysis, tmp_path, name, last):
    analysis.write_parquet(tmp_path)
    path = tmp_path / f"{name}.parquet"
    table, version = pl.read_parquet(path), pl.read_parquet_metadata(path)["tcpfit_schema"]
    column = table.columns[-1 if last else 0]
    table.drop(column).write_parquet(path, metadata={"tcpfit_schema": version})
    with pytest.raises(CaptureError, match=f"{name}.parquet lacks the column '{column}'; analyse the capture again"):
        tcpfit.load(tmp_path)
    if name != "captures" and not last:
        nobody = table.with_columns(flow=pl.lit(None, table.schema["flow"]))
        nobody.write_parquet(path, metadata={"tcpfit_schema": version})
        with pytest.raises(CaptureError, match=f"{name}.parquet has rows of no flow"):
            tcpfit.load(tmp_path)


def test_folders_that_are_no_saved_tables(analysis, tmp_path):
    analysis.write_parquet(tmp_path / "saved")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CaptureError, match="holds no saved tables: captures.parquet is missing"):
        tcpfit.load(tmp_path / "empty")
    shutil.copytree(tmp_path / "saved", tmp_path / "damaged")
    (tmp_path / "damaged" / "flows.parquet").write_text("nothing")
    with pytest.raises(CaptureError, match="flows.parquet cannot be read as a table of tcpfit"):
        tcpfit.load(tmp_path / "damaged")
    shutil.copytree(tmp_path / "saved", tmp_path / "old")
    pl.read_parquet(tmp_path / "old" / "flows.parquet").write_parquet(tmp_path / "old" / "flows.parquet")
    with pytest.raises(CaptureError, match="saved with schema unknown"):
        tcpfit.load(tmp_path / "old")


def test_a_folder_holds_tables_of_one_analysis(analysis, tmp_path):
    """Another capture of that name, or the same one cut otherwise, whose tables replace only some, is no mixture."""
    other = tcpfit.analyze(SAMPLE, segments=True)
    analysis.write_parquet(tmp_path / "out", segments=True)
    other.write_parquet(tmp_path / "out")
    saved = tcpfit.load(tmp_path / "out")
    assert saved.flows.equals(other.flows) and saved.segments.is_empty()

    other.write_parquet(tmp_path / "other")
    shutil.copytree(tmp_path / "other", tmp_path / "mixed")
    other.write_parquet(tmp_path / "again")
    shutil.copy(tmp_path / "again" / "verdicts.parquet", tmp_path / "mixed" / "verdicts.parquet")
    with pytest.raises(CaptureError, match="mixed holds tables of different analyses; analyse the capture again"):
        tcpfit.load(tmp_path / "mixed")


@pytest.mark.parametrize("name", ["flows", "verdicts", "captures"])
def test_tables_that_were_half_saved_are_none(analysis, tmp_path, monkeypatch, name):
    analysis.write_parquet(tmp_path)
    write = saving.write_table

    def full(table, target, *rest):
        if target.stem == name:
            raise OSError(28, "No space left on device")
        write(table, target, *rest)

    monkeypatch.setattr(saving, "write_table", full)
    with pytest.raises(OSError, match="No space"):
        tcpfit.analyze(SAMPLE).write_parquet(tmp_path)
    assert not is_saved(tmp_path)


def test_tables_saved_before_runs_had_names_are_read(analysis, tmp_path):
    for path in analysis.write_parquet(tmp_path, segments=True):
        version = pl.read_parquet_metadata(path)["tcpfit_schema"]
        pl.read_parquet(path).write_parquet(path, metadata={"tcpfit_schema": version})
    assert tcpfit.load(tmp_path).segments.equals(analysis.segments)


def test_a_report_of_saved_tables_saves_what_they_hold(analysis, tmp_path):
    for segments in (False, True):
        analysis.write_parquet(tmp_path / "saved", segments=segments)
        run = tcpfit_command("report", "saved", "-o", "out.html", "--data", cwd=tmp_path)
        assert (0, "") == (run.returncode, run.stderr)
        assert segments == (tmp_path / "out.tables" / "segments.parquet").exists()
        assert analysis.segments.height * segments == tcpfit.load(tmp_path / "out.tables").segments.height


def test_a_capture_without_flows(tmp_path):
    path = tmp_path / "empty.pcap"
    path.write_bytes(captures.pcap([]))
    text = report_page.render(tcpfit.analyze(path, segments=True))
    assert "No TCP flow carried data in what was analysed." in text
    assert 'id="library"' not in text


def test_command(capture, folder, tmp_path):
    run = tcpfit_command("report", capture, "-o", "out.html", "--data", cwd=tmp_path)
    assert (0, "out.html\n", "") == (run.returncode, run.stdout, run.stderr)
    assert ["out.html", "out.tables"] == sorted(path.name for path in tmp_path.iterdir())
    assert "out.tables" in (tmp_path / "out.html").read_text()
    assert tcpfit.load(tmp_path / "out.tables").segments.height > 300


def test_command_of_many(capture, tmp_path):
    shutil.copy(capture, tmp_path / "one.pcap")
    tcpfit.analyze(capture).write_parquet(tmp_path / "without")
    (tmp_path / "no.pcap").write_text("not a capture at all")
    run = tcpfit_command("report", "one.pcap", "no.pcap", "without", "-o", "pages", cwd=tmp_path)
    assert 1 == run.returncode
    assert 1 == len(run.stderr.splitlines())
    assert "no.pcap" in run.stderr
    assert ["one.html", "without.html"] == sorted(path.name for path in (tmp_path / "pages").iterdir())


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["one.pcap", "-o", "one.txt"], "names an HTML file or a folder, got 'one.txt'"),
        (["one.pcap", "one.pcap", "-o", "one.html"], "names a folder where there are several captures"),
        (["one.html", "-o", "one.html"], "one.html is a capture"),
        (["-", "-"], "can be given once"),
    ],
)
def test_arguments_that_make_no_sense(capture, tmp_path, arguments, part):
    for name in ("one.pcap", "one.html"):
        shutil.copy(capture, tmp_path / name)
    run = tcpfit_command("report", *arguments, cwd=tmp_path)
    assert (2, 1) == (run.returncode, len(run.stderr.splitlines())), run.stderr
    assert part in run.stderr


def test_analyze_html(capture, tmp_path):
    run = tcpfit_command("analyze", capture, "--html", "page.html", "--top", "0", cwd=tmp_path)
    assert (0, "") == (run.returncode, run.stderr)
    assert "What it looks like" in (tmp_path / "page.html").read_text()


def test_filters():
    flow = {"src": "fd00::1", "src_port": 1, "dst": "fd00::2", "dst_port": 2}
    assert "ipv6.addr == fd00::1 && ipv6.addr == fd00::2 && tcp.port == 1 && tcp.port == 2" == filters.of_flow(flow)
    assert "frame.number in {3, 7}" == filters.of_frames([7, None, 3, 7])
    assert "" == filters.of_frames([None])
    assert "frame.number >= 3 && frame.number <= 7" == filters.between_frames(3, 7)
    assert "frame.number in {7}" == filters.between_frames(None, 7)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        (("1.0.0.1", 9, "1.0.0.2", 8), "ip.addr == 1.0.0.1 && ip.addr == 1.0.0.2 && tcp.port == 9 && tcp.port == 8"),
        (("::1", 9, "::1", 80), "ipv6.src == ::1 && ipv6.dst == ::1 && tcp.port == 9 && tcp.port == 80"),
        (("a::", 179, "b::", 179), "ipv6.addr == a:: && ipv6.addr == b:: && tcp.srcport == 179 && tcp.dstport == 179"),
    ],
    ids=["two hosts", "the loopback", "equal ports"],
)
def test_filter_of_a_flow_names_no_end_twice(ends, expected):
    assert expected == filters.of_flow(dict(zip(("src", "src_port", "dst", "dst_port"), ends, strict=True)))
