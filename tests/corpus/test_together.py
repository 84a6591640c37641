"""Do captures that are analysed together have the tables that each has by itself, whatever becomes of the others?"""

from __future__ import annotations

from pathlib import Path

import pytest
from captures import pcap
from corpora import SAMPLES, bytes_of, capture

import tcpfit
from tcpfit import corpus
from tcpfit.corpus import tables, together

pytestmark = pytest.mark.filterwarnings("ignore")

CHOICES = {
    "the defaults": {},
    "another rule": {"rule": "window"},
    "by the throughput equation's intervals": {"rule": "tfrc", "block": 9},
    "fitted": {"models": ["pftk-full", "mathis"], "fit": ["pftk-full.b"]},
}


@pytest.fixture(scope="module")
def analyses(tmp_path_factory) -> dict[str, tcpfit.Analysis]:
    """Every sample and a capture without packets, by names that stand for their hashes."""
    empty = tmp_path_factory.mktemp("empty") / "empty.pcap"
    empty.write_bytes(pcap([]))
    paths = sorted(SAMPLES.glob("*.pcap.gz"))
    paths[3:3] = [empty]
    return {path.name: tcpfit.analyze(path) for path in paths}


@pytest.mark.parametrize("choices", CHOICES)
def test_rows_are_those_of_each_by_itself(analyses, choices):
    chosen = {name: analysis.ranked_by(**CHOICES[choices]) for name, analysis in analyses.items()}
    each = list(tables.tables_of_each(chosen))
    assert len(each) == len(chosen)
    for (name, analysis), found in zip(chosen.items(), each, strict=True):
        alone = tables.tables_of(analysis, analysis.flows["flow"].to_list(), name)
        assert list(alone) == list(found)
        for table, rows in alone.items():
            assert rows.schema == found[table].schema, (name, table)
            assert rows.equals(found[table]), (name, table)


@pytest.fixture
def captures(tmp_path) -> list[Path]:
    """Five small captures and one that is none."""
    folder = tmp_path / "captures"
    folder.mkdir()
    text = folder / "text.pcap"
    text.write_text("these are words, not packets\n")
    return [*(capture(folder / f"{number}.pcap", number) for number in range(5)), text]


def asked_of(work) -> list[str]:
    """Names of the captures of a task."""
    if work["kind"] == "identify":
        return [Path(path).name for (path,) in work["each"]]
    return [Path(each["files"][0][0]).name for each in work["each"]] if work["kind"] == "analyse" else []


def test_small_captures_are_one_task(captures, tmp_path, stepped):
    asked = []
    stepped(lambda work: asked.append((work["kind"], len(asked_of(work)))))
    assert 5 == corpus.run(captures, tmp_path / "out").analysed
    assert [("identify", 6), ("analyse", 6)] == asked[:2]
    assert "compact" == asked[2][0] and 3 == len(asked)


def test_portions_of_a_task_come_to_the_same(captures, tmp_path, stepped, monkeypatch):
    stepped()
    corpus.run(captures, tmp_path / "out")
    joint = []
    monkeypatch.setattr(together, "FLOWS_AT_A_TIME", 2)
    monkeypatch.setattr(together, "tables_of_each", lambda each: joint.append(len(each)) or tables.tables_of_each(each))
    corpus.run(captures, tmp_path / "portions")
    assert [2, 2, 1] == joint
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "portions")


@pytest.mark.parametrize("kind", ["identify", "analyse"])
@pytest.mark.parametrize("status", ["died", "timeout", "memory"])
def test_what_fails_a_task_costs_one_capture(captures, tmp_path, stepped, kind, status):
    """A worker that ends, say, at one of the captures of a task: each is tried by itself, and only that one fails."""
    asked = []

    def before(work):
        if work["kind"] == kind and "2.pcap" in asked_of(work):
            asked.append(len(asked_of(work)))
            return {"failed": status, "reason": "as the test wants it"}
        return None

    stepped(before)
    summary = corpus.run(captures, tmp_path / "out")
    assert 4 == summary.analysed
    assert {"2.pcap": status, "text.pcap": "rejected"} == {
        Path(failure.path).name: failure.status for failure in summary.failures
    }
    assert [6, *[1] * (3 if status == "died" else 1)] == asked


def test_a_task_that_goes_well_by_halves_is_done_again(captures, tmp_path, stepped):
    """It needs more than it may, but none of its captures does."""
    stepped(lambda work: {"failed": "memory", "reason": "too much"} if len(asked_of(work)) > 1 else None)
    summary = corpus.run(captures, tmp_path / "out")
    assert (5, ["rejected"]) == (summary.analysed, [failure.status for failure in summary.failures])
    stepped()
    corpus.run(captures, tmp_path / "undisturbed")
    assert bytes_of(tmp_path / "undisturbed") == bytes_of(tmp_path / "out")


def test_an_error_costs_one_capture(captures, tmp_path, stepped, monkeypatch):
    wanted = corpus.files.content_of(str(captures[2]))

    def failing(each):
        if wanted in each:
            raise ValueError("as the test wants it")
        return tables.tables_of_each(each)

    monkeypatch.setattr(together, "tables_of_each", failing)
    stepped()
    summary = corpus.run(captures, tmp_path / "out")
    assert 4 == summary.analysed
    said = {Path(failure.path).name: (failure.status, failure.reason) for failure in summary.failures}
    assert ("error", "ValueError: as the test wants it") == said["2.pcap"]
    assert "rejected" == said["text.pcap"][0] and 2 == len(said)


def test_a_capture_that_changes_costs_itself(captures, tmp_path, stepped):
    def before(work):
        if work["kind"] == "analyse":
            capture(captures[1], 9)

    stepped(before)
    summary = corpus.run(captures, tmp_path / "out")
    assert 4 == summary.analysed
    assert {"1.pcap": "unreadable", "text.pcap": "rejected"} == {
        Path(failure.path).name: failure.status for failure in summary.failures
    }
