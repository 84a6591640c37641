"""Does a run make a data set of a corpus, do only what is missing, and come to the same whatever way it took?"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from corpora import SAMPLES, bytes_of, capture

import tcpfit
from tcpfit import corpus
from tcpfit.corpus.table import OF_FLOWS, TABLES, schema_of
from tcpfit.corpus.tables import tables_of
from tcpfit.exceptions import InvalidParameter

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, Path, corpus.Summary]:
    """A corpus of three captures, a copy of one and two files that are none, and its data set."""
    folder = tmp_path_factory.mktemp("made")
    captures = folder / "captures"
    (captures / "deep").mkdir(parents=True)
    for number in range(3):
        capture(captures / f"{number}.pcap", number)
    shutil.copy(captures / "0.pcap", captures / "deep" / "copy.pcap")
    (captures / "text.pcap").write_text("these are words, not packets\n" * 9)
    (captures / "notes.md").write_text("not taken for a capture\n")
    os.mkfifo(captures / "pipe.pcap")
    summary = corpus.run([captures], folder / "out", workers=2)
    return captures, folder / "out", summary


def test_what_a_run_says(made):
    captures, _, summary = made
    assert (5, 3, 0, 1) == (summary.captures, summary.analysed, summary.unchanged, summary.copies)
    said = {Path(failure.path).name: (failure.status, failure.reason) for failure in summary.failures}
    assert {"text.pcap", "pipe.pcap"} == set(said)
    assert "rejected" == said["text.pcap"][0] and said["text.pcap"][1].startswith("a text file, not a capture")
    assert "unreadable" == said["pipe.pcap"][0] and "pipe" in said["pipe.pcap"][1]


def test_columns_are_those_declared(made):
    data = corpus.open(made[1])
    assert list(TABLES) == [name for name in TABLES if data.table(name).collect_schema() == schema_of(name)]


def test_captures_are_known_by_their_content(made):
    captures, out, _ = made
    rows = corpus.open(out).captures.sort("path").collect()
    first = rows.row(0, named=True)
    assert (str(captures / "0.pcap"), [str(captures / "deep" / "copy.pcap")]) == (first["path"], first["copies"])
    assert ["analysed"] * 3 + ["unreadable", "rejected"] == rows["status"].to_list()
    assert rows["capture"].n_unique() == rows.height


def test_tables_are_those_of_the_analysis(made):
    captures, out, _ = made
    data = corpus.open(out)
    row = data.captures.filter(pl.col("path") == str(captures / "1.pcap")).collect().row(0, named=True)
    analysis = tcpfit.analyze(captures / "1.pcap")
    expected = tables_of(analysis, analysis.flows["flow"].to_list(), row["capture"])
    for name in OF_FLOWS:
        found = data.table(name).filter(pl.col("capture") == row["capture"]).collect()
        assert found.equals(expected[name]), name
        assert found.height > 0, name
    assert (analysis.flows.height, analysis.events.height) == (row["flows"], row["events"])
    assert analysis.capture["packets"] == row["packets"]


def test_running_again_does_nothing(made):
    captures, out, _ = made
    before = bytes_of(out)
    summary = corpus.run([captures], out, workers=1)
    assert (0, 4) == (summary.analysed, summary.unchanged)
    assert before == bytes_of(out)


def test_force_comes_to_the_same(made):
    captures, out, _ = made
    before = bytes_of(out)
    assert 3 == corpus.run([captures], out, workers=1, force=True).analysed
    assert before == bytes_of(out)


def test_one_by_one_comes_to_the_same(made, tmp_path):
    captures, out, _ = made
    for source in ("2.pcap", "text.pcap", "deep", "0.pcap", "pipe.pcap", "1.pcap", "0.pcap"):
        corpus.run([captures / source], tmp_path / "out", workers=1)
    assert bytes_of(out) == bytes_of(tmp_path / "out")


TWO_WAYS = Path(__file__).parents[3] / "shared/captures/suricata-verify_tls-subjectaltname.pcap"


def test_shares_of_the_flows_come_to_the_same(tmp_path):
    captures = [SAMPLES / "short-web.pcap.gz", SAMPLES / "ipv6.pcap.gz"]
    captures += [TWO_WAYS] if TWO_WAYS.exists() else []  # where one direction tells of the other's pauses
    corpus.run(captures, tmp_path / "whole", workers=1)
    corpus.run(captures, tmp_path / "shares", workers=2, shard_over_bytes=50_000)
    assert bytes_of(tmp_path / "whole") == bytes_of(tmp_path / "shares")


FAILURES = {
    "timeout": lambda share: {"failed": "timeout", "reason": "it took too long"} if share == 1 else None,
    "error": lambda share: {"each": [{"status": "error", "reason": "it broke", "weight": 1}]} if share == 1 else None,
    "died": lambda share: {"failed": "died", "reason": "its worker ended"} if share == 1 else None,
}


@pytest.mark.parametrize("status", FAILURES)
def test_a_share_that_fails_costs_its_capture_and_no_other(tmp_path, stepped, status):
    asked = []

    def before(work):
        if work["kind"] != "analyse" or work["each"][0]["share"][1] == 1:
            return None
        ((share, _),) = [each["share"] for each in work["each"]]
        asked.append(share)
        return FAILURES[status](share)

    stepped(before)
    captures = [SAMPLES / "newreno-loss.pcap.gz", capture(tmp_path / "one.pcap", 1)]
    summary = corpus.run(captures, tmp_path / "out", shard_over_bytes=100_000)
    assert (1, [status]) == (summary.analysed, [failure.status for failure in summary.failures])
    assert (3 if status == "died" else 1) == asked.count(1)
    rows = corpus.open(tmp_path / "out").captures.collect()["status"].to_list()
    assert ["analysed", status] == sorted(rows)


def test_a_share_whose_worker_died_is_done_again_and_no_other(tmp_path, stepped):
    asked = []

    def before(work):
        if work["kind"] == "analyse":
            ((share, _),) = [each["share"] for each in work["each"]]
            asked.append(share)
            if asked.count(0) == 1 and share == 0:
                return {"failed": "died", "reason": "its worker ended"}
        return None

    stepped(before)
    path = SAMPLES / "newreno-loss.pcap.gz"
    assert 1 == corpus.run([path], tmp_path / "out", shard_over_bytes=100_000).analysed
    assert 2 == asked.count(0) and len(set(asked)) == len(asked) - 1 > 2
    corpus.run([path], tmp_path / "whole")
    assert bytes_of(tmp_path / "whole") == bytes_of(tmp_path / "out")


def gone(path):
    path.unlink()


def replaced(path):
    path.unlink()
    path.mkdir()


def another(path):
    path.write_text("these are words, not packets\n")


@pytest.mark.parametrize("disturb", [gone, replaced, another])
def test_a_capture_that_is_lost_before_its_analysis_is_tried_again(tmp_path, stepped, disturb):
    """The known identity, of a run with other settings, has it analysed without another look at its bytes."""
    path = capture(tmp_path / "one.pcap", 1)
    content = path.read_bytes()
    corpus.run([path], tmp_path / "out", workers=1)

    def before(work):
        if work["kind"] == "analyse":
            disturb(path)

    stepped(before)
    window = corpus.Settings(rule="window")
    summary = corpus.run([path], tmp_path / "out", settings=window)
    assert ["unreadable"] == [failure.status for failure in summary.failures]
    if path.is_dir():
        path.rmdir()
    path.write_bytes(content)
    stepped(lambda work: None)
    assert 1 == corpus.run([path], tmp_path / "out", settings=window, workers=1).analysed


def test_changes_are_taken_up(tmp_path):
    folder, out = tmp_path / "captures", tmp_path / "out"
    folder.mkdir()
    for number in range(3):
        capture(folder / f"{number}.pcap", number)
    corpus.run([folder], out, workers=1, labels=(("site", "a"),))
    capture(folder / "1.pcap", 7)
    (folder / "2.pcap").rename(folder / "moved.pcap")
    (folder / "0.pcap").unlink()
    summary = corpus.run([folder], out, workers=1, labels=(("site", "b"),))
    assert (1, 1) == (summary.analysed, summary.unchanged)
    paths = sorted(Path(path).name for path in corpus.open(out).captures.collect()["path"])
    assert ["0.pcap", "1.pcap", "2.pcap"] == paths  # what is gone stays, under its old name until it is pruned
    assert {"0.pcap": "a", "1.pcap": "b", "2.pcap": "a", "moved.pcap": "b"} == {
        Path(path).name: value for path, value in corpus.open(out).labels.select("path", "value").collect().iter_rows()
    }
    summary = corpus.run([folder], out, workers=1, prune=True)  # which gives no labels and leaves them
    assert (0, 2, 1) == (summary.analysed, summary.unchanged, summary.dropped)
    corpus.run([folder], tmp_path / "fresh", workers=1, labels=(("site", "b"),))
    assert bytes_of(tmp_path / "fresh") == bytes_of(out)


def test_other_settings_analyse_again(tmp_path):
    one, other = capture(tmp_path / "one.pcap", 1), capture(tmp_path / "other.pcap", 2)
    corpus.run([one, other], tmp_path / "out", workers=1)
    settings = corpus.Settings(models=("mathis",))
    with pytest.raises(InvalidParameter, match="other settings .* 1 captures .*other.pcap"):
        corpus.run([one], tmp_path / "out", settings=settings, workers=1)
    assert 2 == corpus.run([one, other], tmp_path / "out", settings=settings, workers=1).analysed
    data = corpus.open(tmp_path / "out")
    assert settings == data.manifest.settings
    assert {"mathis"} == set(data.rankings.filter(pl.col("rank").is_not_null()).collect()["model"])


def test_an_interrupt_under_other_settings_leaves_the_data_set_whole(tmp_path):
    captures = [capture(tmp_path / f"{number}.pcap", number) for number in range(12)]
    out, window = tmp_path / "out", corpus.Settings(rule="window")
    corpus.run(captures, out, workers=1)
    before = bytes_of(out)

    def interrupt(progress):
        if (progress.phase, progress.done) == ("analyse", 1):
            raise KeyboardInterrupt

    summary = corpus.run(captures, out, settings=window, workers=1, progress=interrupt)
    assert (True, True, 1) == (summary.interrupted, summary.kept_old, summary.analysed)
    kept = {name: (out / name).read_bytes() for name in before}
    assert before == kept
    summary = corpus.run(captures, out, settings=window, workers=1)
    assert (False, 12) == (summary.kept_old, summary.analysed + summary.unchanged)
    assert summary.unchanged >= 8  # what was done is not done again: all of the task
    corpus.run(captures, tmp_path / "undisturbed", settings=window, workers=1)
    assert bytes_of(tmp_path / "undisturbed") == bytes_of(out)


def test_what_cannot_be_read_any_more_keeps_its_result(tmp_path):
    path = capture(tmp_path / "one.pcap", 1)
    corpus.run([path], tmp_path / "out", workers=1)
    before = corpus.open(tmp_path / "out").flows.collect()
    path.unlink()
    os.mkfifo(path)
    summary = corpus.run([path], tmp_path / "out", workers=1)
    assert ["unreadable"] == [failure.status for failure in summary.failures]
    assert before.equals(corpus.open(tmp_path / "out").flows.collect())


def test_a_capture_that_is_cut_is_analysed_as_far_as_it_goes(tmp_path):
    whole = capture(tmp_path / "whole.pcap", 1)
    cut = tmp_path / "cut.pcap.gz"
    cut.write_bytes(gzip.compress(whole.read_bytes())[:-200])
    summary = corpus.run([cut], tmp_path / "out", workers=1)
    assert [] == summary.failures
    row = corpus.open(tmp_path / "out").captures.collect().row(0, named=True)
    assert ("analysed", 1) == (row["status"], row["flows"])
    assert "the capture ends here" in row["warnings"][0]


def test_names_that_are_no_text(tmp_path):
    folder = tmp_path / "captures"
    folder.mkdir()
    name = os.fsdecode(b"caf\xe9.pcap")
    capture(folder / "one.pcap", 1).rename(folder / name)
    (folder / f"not-{name}").write_text("words, words")
    summary = corpus.run([folder], tmp_path / "out", workers=1)
    assert (1, "rejected") == (summary.analysed, summary.failures[0].status)
    assert summary.failures[0].reason.startswith("a text file")
    rows = corpus.open(tmp_path / "out").captures.sort("path").collect()
    assert ["caf\\xe9.pcap", "not-caf\\xe9.pcap"] == [Path(path).name for path in rows["path"]]
    known = (tmp_path / "out" / ".state" / "identities.jsonl").read_text().splitlines()
    assert 2 == len(known)
    assert 2 == corpus.run([folder], tmp_path / "out", workers=1).unchanged


@pytest.mark.parametrize("table", TABLES)
def test_a_data_set_that_is_not_whole_is_left_alone(made, tmp_path, table):
    captures, out, _ = made
    shutil.copytree(out, tmp_path / "out")
    path = next((tmp_path / "out" / table).iterdir())
    damages = {
        "cut or damaged": lambda: path.write_bytes(path.read_bytes()[:-100]),
        "cut": lambda: path.write_bytes(b""),
        "gone from the data set": path.unlink,
    }
    for said, damage in damages.items():
        damage()
        for use in (lambda: corpus.run([captures], tmp_path / "out", workers=1), lambda: corpus.open(tmp_path / "out")):
            with pytest.raises(InvalidParameter, match=f"{table}/all.000-.*parquet: {said}; the data set is not whole"):
                use()


@pytest.mark.parametrize("table", ["captures", "events", "causes"])
def test_another_intact_file_in_the_place_of_a_part_is_noticed(made, tmp_path, table):
    """Nothing but its size and footer is read; rows may even be as many."""
    captures, out, _ = made
    shutil.copytree(out, tmp_path / "out")
    path = next((tmp_path / "out" / table).iterdir())
    pl.read_parquet(path).reverse().write_parquet(path, compression="zstd")
    said = f"{table}/all.000-.*parquet: not the file that was written"
    for use in (lambda: corpus.run([captures], tmp_path / "out", workers=1), lambda: corpus.open(tmp_path / "out")):
        with pytest.raises(InvalidParameter, match=said):
            use()


def test_a_manifest_that_knows_no_footers_is_read(made, tmp_path):
    """As those of earlier versions."""
    shutil.copytree(made[1], tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    for part in manifest["parts"]:
        assert {*TABLES} == part.pop("footers").keys()
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    assert corpus.open(made[1]).manifest.rows() == corpus.open(tmp_path / "out").manifest.rows()
    assert 0 == corpus.run([made[0]], tmp_path / "out", workers=1).analysed


def test_a_data_set_may_change_while_it_is_opened(made, monkeypatch):
    """A run that ends takes the files away that only the manifest before it names."""
    new = corpus.open(made[1]).manifest
    part = new.parts[0]
    old = replace(new, parts=[replace(part, files=part.files | {"flows": "all.000-0123456789abcdef.parquet"})])
    manifests = iter([old, new])
    monkeypatch.setattr("tcpfit.corpus.dataset.read_manifest", lambda _: next(manifests))
    assert new == corpus.open(made[1]).manifest


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    path = capture(tmp_path / "one.pcap", 1)
    with pytest.raises(InvalidParameter, match="not empty and no data set"):
        corpus.run([path], tmp_path, workers=1)
    assert ["one.pcap"] == [each.name for each in tmp_path.iterdir()]
    with pytest.raises(InvalidParameter, match="no data set"):
        corpus.open(tmp_path)


def test_captures_in_a_folder_that_is_called_as_a_table_are_left_alone(tmp_path):
    (tmp_path / "captures").mkdir()
    path = capture(tmp_path / "captures" / "one.pcap", 1)
    with pytest.raises(InvalidParameter, match="not empty and no data set"):
        corpus.run([path], tmp_path, workers=1)
    assert [path] == [each for each in tmp_path.rglob("*") if each.is_file()]


def test_files_of_others_in_the_folders_of_tables_are_left_alone(tmp_path):
    out = tmp_path / "out"
    corpus.run([capture(tmp_path / "one.pcap", 1)], out, workers=1)
    other = capture(out / "captures" / "two.pcap", 2)
    leftover = out / "flows" / "all.001-0123456789abcdef.parquet"
    leftover.write_bytes(b"")
    assert 1 == corpus.run([other], out, workers=1).analysed
    assert (True, False) == (other.exists(), leftover.exists())


def test_a_first_run_that_was_killed_while_it_wrote_the_manifest(tmp_path):
    """What it left does not make the folder one of something else, and is gone afterwards."""
    capture(tmp_path / "a.pcap", 1)
    out = tmp_path / "out"
    (out / "flows").mkdir(parents=True)
    (out / ".manifest.json.abc123.partial").write_text("{")
    assert corpus.run([tmp_path / "a.pcap"], out, workers=1).analysed == 1
    bytes_of(out)
    assert not list(out.glob(".manifest*"))


def test_a_manifest_cannot_name_files_elsewhere(made, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(made[1], out)
    manifest = json.loads((out / "manifest.json").read_text())
    named = manifest["parts"][0]["files"]["flows"]
    for elsewhere in (f"../../{named}", str(out / "flows" / named), f"../flows/{named}", "..", ""):
        manifest["parts"][0]["files"]["flows"] = elsewhere
        (out / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(InvalidParameter, match="not a file of the data set"):
            corpus.open(out)


@pytest.mark.parametrize("gone", ["parts", "settings", "key", "captures"])
def test_a_manifest_that_is_damaged(made, tmp_path, gone):
    for value in (None, 7, ["a"]):
        manifest = json.loads((made[1] / "manifest.json").read_text()) | {gone: value}
        if value is None:
            del manifest[gone]
        elif gone == "key":
            continue
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(InvalidParameter, match=r"manifest\.json: damaged"):
            corpus.open(tmp_path)


@pytest.mark.parametrize("inside", ["name", "captures", "names", "files", "rows"])
def test_a_manifest_with_a_part_that_is_damaged(made, tmp_path, inside):
    for value in (None, 7.5, [], {}, dict.fromkeys(TABLES), dict.fromkeys(TABLES, [])):
        manifest = json.loads((made[1] / "manifest.json").read_text())
        manifest["parts"][0][inside] = value
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        for use in (lambda: corpus.run([made[0]], tmp_path, workers=1), lambda: corpus.open(tmp_path)):
            with pytest.raises(InvalidParameter, match=r"manifest\.json: damaged"):
                use()


def test_what_is_no_manifest(made, tmp_path):
    whole = json.loads((made[1] / "manifest.json").read_text())
    lacking = [json.dumps({name: whole[name] for name in whole if name != gone}) for gone in ("schema", "tcpfit")]
    for text in ("", "[]", "null", "[" * 100_000, *lacking):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(InvalidParameter, match=r"manifest\.json: (cannot be read|not a manifest)"):
            corpus.open(tmp_path)


def test_a_folder_that_leads_elsewhere_is_not_cleaned(tmp_path):
    path, out, elsewhere = capture(tmp_path / "one.pcap", 1), tmp_path / "out", tmp_path / "elsewhere"
    corpus.run([path], out, workers=1)
    (out / "flows").rename(elsewhere)
    (elsewhere / "letter.txt").write_text("not ours\n")
    (out / "flows").symlink_to(elsewhere)
    with pytest.raises(InvalidParameter, match="a link to another folder"):
        corpus.run([path], out, workers=1)
    assert (elsewhere / "letter.txt").exists()


def test_workers_without_end_are_refused(tmp_path):
    with pytest.raises(InvalidParameter, match=r"workers must be .* below 2\^10"):
        corpus.run([tmp_path], tmp_path / "out", workers=10**30)


def test_files_have_the_permissions_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        corpus.run([capture(tmp_path / "one.pcap", 1)], tmp_path / "out", workers=1)
    finally:
        os.umask(before)
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert written
    assert {0o640} == {path.stat().st_mode & 0o777 for path in written}


@pytest.mark.parametrize("name", ["workers", "time_limit_s", "memory_limit_bytes", "shard_over_bytes"])
@pytest.mark.parametrize("number", [-1, 0, "x"])
def test_numbers_that_make_no_sense(tmp_path, name, number):
    with pytest.raises(InvalidParameter, match=name):
        corpus.run([], tmp_path / "out", **{name: number})
    assert not (tmp_path / "out").exists()
