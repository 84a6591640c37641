"""Does a data set under a key tell nothing of addresses and names, and is it the same otherwise?"""

from __future__ import annotations

import json
import re

import polars as pl
import pytest
from corpora import SAMPLES, bytes_of, capture
from test_cli import assert_sentence, tcpfit

from tcpfit import corpus
from tcpfit.anonymity import Pseudonyms, fingerprint
from tcpfit.corpus.table import TABLES
from tcpfit.exceptions import InvalidParameter

KEY = b"a key of sixteen bytes or more"
SECRET = re.compile(r"10\.0\.0\.[12]\b|berlin|secret|host-7")


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """A corpus whose names tell something: captures, a copy, a rotated one, and two that cannot be analysed."""
    folder = tmp_path_factory.mktemp("secret") / "berlin"
    folder.mkdir()
    for number in range(3):
        capture(folder / f"host-7-{number}.pcap", number)
    capture(folder / "secret-copy.pcap", 2)
    for part in range(2):
        capture(folder / f"host-7-ring.pcap{part}", 8 + part)
    (folder / "secret.pcap").write_text("words")
    (folder / "host-7-gone.pcap").symlink_to(folder / "nothing")
    return folder


@pytest.fixture(scope="module")
def out(captures, tmp_path_factory):
    out = tmp_path_factory.mktemp("made") / "out"
    summary = corpus.run([captures], out, workers=1, key=KEY, settings=corpus.Settings(filter="net 10.0.0.0/24"))
    assert {str(captures / name) for name in ("secret.pcap", "host-7-gone.pcap")} == {
        failed.path for failed in summary.failures
    }
    return out


def said(out) -> str:
    """Everything in the folder of a data set, state included, as text."""
    texts = [repr([str(path.relative_to(out)) for path in out.rglob("*")])]
    for path in out.rglob("*"):
        if path.suffix == ".parquet":
            texts.append(json.dumps(pl.read_parquet(path).to_dicts(), default=str))
        elif path.is_file():
            texts.append(path.read_text())
    return "\n".join(texts)


def test_nothing_tells_of_addresses_and_names(out, captures, tmp_path):
    assert not SECRET.search(said(out))
    corpus.run([captures], tmp_path / "true", workers=1)
    assert {"10.0.0.1", "berlin", "secret", "host-7"} <= set(SECRET.findall(said(tmp_path / "true")))


def test_numbers_are_the_same(out, captures, tmp_path):
    corpus.run([captures], tmp_path / "true", workers=1)
    hidden, true = corpus.open(out), corpus.open(tmp_path / "true")
    for name in TABLES:
        texts = {"path", "files", "copies", "src", "dst"}
        without = [
            table.table(name)
            .select(pl.exclude(texts))
            .collect()
            .filter(pl.col("status") != "unreadable" if name == "captures" else True)
            for table in (hidden, true)
        ]
        assert without[0].equals(without[1]), name
    ends = true.flows.select("src", "dst").unique().collect()
    pseudonyms = Pseudonyms(KEY)
    expected = {(pseudonyms.of(src), pseudonyms.of(dst)) for src, dst in ends.iter_rows()}
    assert expected == set(hidden.flows.select("src", "dst").unique().collect().iter_rows())


def test_names_are_pseudonyms(out, captures):
    table = corpus.open(out).captures.collect()
    assert {len(folder) for folder in table["path"].str.split("/").list.first().unique()} == {12}
    assert table["path"].str.split("/").list.first().n_unique() == 1
    assert table["path"].str.ends_with(".pcap").all()
    assert {1, 2} == set(table["files"].list.len().drop_nulls())
    [copied] = table.filter(pl.col("copies").list.len() > 0).select("path", "copies").iter_rows()
    same = {Pseudonyms(KEY).name(str(captures / name)) for name in ("host-7-2.pcap", "secret-copy.pcap")}
    assert same == {copied[0], *copied[1]}


def test_a_run_goes_on_with_the_key_of_the_data_set(captures, tmp_path):
    out, settings = tmp_path / "out", corpus.Settings(filter="tcp")
    corpus.run([captures / "host-7-0.pcap"], out, workers=1, key=KEY, settings=settings)
    corpus.run([captures], out, workers=1, key=KEY, settings=settings)
    again = corpus.run([captures], out, workers=1, key=KEY, settings=settings)
    assert (0, 5) == (again.analysed, again.unchanged)
    corpus.run([captures], tmp_path / "once", workers=1, key=KEY, settings=settings)
    assert bytes_of(out) == bytes_of(tmp_path / "once")
    with pytest.raises(InvalidParameter, match="anonymized; give its key with --anonymize-key"):
        corpus.run([captures], out, workers=1, settings=settings)
    with pytest.raises(InvalidParameter, match="this is not its key"):
        corpus.run([captures], out, workers=1, settings=settings, key=KEY[::-1])
    corpus.run([captures / "host-7-1.pcap"], tmp_path / "true", workers=1)
    with pytest.raises(InvalidParameter, match="it has the true addresses"):
        corpus.run([captures / "host-7-1.pcap"], tmp_path / "true", workers=1, key=KEY)


def test_a_name_of_a_url_and_of_a_rotated_capture():
    pseudonyms = Pseudonyms(KEY)
    for name in ("s3://bucket/secret.PCAPNG.gz", "berlin/a.pcap3", "secret"):
        shown = pseudonyms.name(name)
        assert re.fullmatch(r"[0-9a-f]{12}/[0-9a-f]{12}(\.pcapng\.gz|\.pcap)?", shown), shown
    assert fingerprint(KEY) != fingerprint(KEY[::-1])
    assert KEY.hex() not in fingerprint(KEY)


def test_the_commands(captures, tmp_path):
    key = tmp_path / "key"
    key.write_bytes(KEY)
    out = tmp_path / "OUT"
    assert_sentence(tcpfit("batch", captures, "-o", out, "--anonymize"), 2, "give one with --anonymize-key")
    run = tcpfit("batch", captures, "-o", out, "--anonymize-key", key, "--workers", 1)
    assert 1 == run.returncode
    assert f"{captures}/secret.pcap: rejected" in run.stderr
    assert not SECRET.search(said(out))
    assert not SECRET.search(tcpfit("report", out, "--format", "json").stdout)
    assert f"anonymized={fingerprint(KEY)}" in tcpfit("batch", "--status", out).stdout
    pytest.importorskip("altair")
    assert_sentence(tcpfit("report", out, "--pages", "-o", tmp_path / "page.html"), 2, "leave out --pages")


def test_a_report_of_true_addresses_can_hide_them(tmp_path):
    out = tmp_path / "OUT"
    corpus.run([SAMPLES / "slow-reader.pcap.gz"], out, workers=1)
    (tmp_path / "key").write_bytes(KEY)
    true = tcpfit("report", out, "--format", "json").stdout
    hidden = tcpfit("report", out, "--format", "json", "--anonymize-key", tmp_path / "key").stdout
    address = json.loads(true)["worst"][0]["src"]
    assert address not in hidden
    assert Pseudonyms(KEY).of(address) == json.loads(hidden)["worst"][0]["src"]
