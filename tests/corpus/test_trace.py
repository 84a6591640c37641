"""Are the parts of a rotated capture one trace, and is what comes from a URL what the file holds?"""

from __future__ import annotations

import gzip
import http.server
import struct
import threading
import zipfile
from functools import partial
from pathlib import Path

import pytest
from captures import Transfer, pcap, pcapng

import tcpfit
from tcpfit import corpus
from tcpfit.corpus import trace
from tcpfit.exceptions import CaptureError, InvalidParameter

PACKETS = Transfer(segments=120, lost=frozenset({20, 21, 70})).run()
THIRDS = [PACKETS[:60], PACKETS[60:130], PACKETS[130:]]
SETTINGS = corpus.Settings()


def tables(analysis: tcpfit.Analysis) -> list:
    return [analysis.flows, analysis.events, analysis.rounds, analysis.capture["packets"], analysis.warnings]


def same(found: tcpfit.Analysis, expected: tcpfit.Analysis) -> None:
    for one, other in zip(tables(found), tables(expected), strict=True):
        assert one.equals(other) if hasattr(one, "equals") else one == other


@pytest.fixture
def whole(tmp_path) -> tcpfit.Analysis:
    path = tmp_path / "whole.pcap"
    path.write_bytes(pcap(PACKETS))
    return tcpfit.analyze(path)


def write(folder: Path, contents: list[bytes], names: list[str]) -> list[str]:
    for name, content in zip(names, contents, strict=True):
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return [str(folder / name) for name in names]


NAMES = ["x.pcap0", "x.pcap1", "x.pcap2"]

FORMATS = {
    "pcap": [pcap(part) for part in THIRDS],
    "big endian": [pcap(part, order=">") for part in THIRDS],
    "pcapng": [pcapng(part) for part in THIRDS],
    "pcapng in both orders": [pcapng(THIRDS[0], order=">"), pcapng(THIRDS[1]), pcapng(THIRDS[2], order=">")],
    "mixed headers": [pcap(THIRDS[0], order=">"), pcap(THIRDS[1]), pcap(THIRDS[2])],
    "pcap and pcapng": [pcap(THIRDS[0]), pcapng(THIRDS[1]), pcap(THIRDS[2])],
}


@pytest.mark.parametrize("reader", ["engine", "dpkt"])
@pytest.mark.parametrize("name", FORMATS)
def test_parts_are_one_trace(tmp_path, whole, name, reader):
    paths = write(tmp_path, FORMATS[name], NAMES)
    same(trace.analyse(paths, corpus.Settings(reader=reader)), whole)


def test_compressed_parts(tmp_path, whole):
    paths = write(tmp_path, FORMATS["pcap"], ["x.pcap0.gz", "x.pcap1", "x.pcap2.gz"])
    same(trace.analyse(paths, SETTINGS), whole)


def test_a_ring_is_read_in_order_of_time(tmp_path, whole):
    paths = write(tmp_path, [FORMATS["pcap"][2], FORMATS["pcap"][0], FORMATS["pcap"][1]], NAMES)
    same(trace.analyse(paths, SETTINGS), whole)


@pytest.mark.parametrize("name", ["pcap", "pcapng", "pcap and pcapng"])
def test_a_part_that_is_cut_costs_its_last_packet(tmp_path, name):
    first, *others = FORMATS[name]
    paths = write(tmp_path, [first[:-7], *others], NAMES)
    found = trace.analyse(paths, SETTINGS)
    assert len(PACKETS) - 1 == found.capture["packets"]
    assert 1 == len(found.warnings)
    assert found.warnings[0].startswith("part 1: ") and "goes on with the next part" in found.warnings[0]


def test_a_part_that_is_damaged_costs_the_packets_after_it(tmp_path):
    first, *others = FORMATS["pcap"]
    at = 24 + 16 + struct.unpack_from("<I", first, 24 + 8)[0]  # the second record
    damaged = first[: at + 8] + b"\xff\xff\xff\x7f" + first[at + 12 :]
    found = trace.analyse(write(tmp_path, [damaged, *others], NAMES), SETTINGS)
    assert 1 + len(PACKETS) - len(THIRDS[0]) == found.capture["packets"]
    assert "part 1: record length 2147483647 is beyond 1048576" in found.warnings[0]


def test_a_part_that_is_no_capture_is_left_out(tmp_path):
    first, _, last = FORMATS["pcap"]
    found = trace.analyse(write(tmp_path, [first, b"", last], NAMES), SETTINGS)
    assert len(PACKETS) - len(THIRDS[1]) == found.capture["packets"]
    assert ["part 2: empty file (0 bytes), no capture in it; capture or copy it again; the part is left out"] == [
        warning for warning in found.warnings if "part" in warning
    ]


def test_parts_that_are_no_captures(tmp_path):
    paths = write(tmp_path, [b"", b"", b""], NAMES)
    with pytest.raises(CaptureError, match="x.pcap0: empty file"):
        trace.analyse(paths, SETTINGS)


def test_other_readers_take_single_files(tmp_path):
    with pytest.raises(CaptureError, match="tshark reads single local files"):
        trace.analyse(write(tmp_path, FORMATS["pcap"], NAMES), corpus.Settings(reader="tshark"))


def test_parts_in_a_data_set(tmp_path, whole):
    folder = tmp_path / "captures"
    folder.mkdir()
    write(folder, FORMATS["pcap"], ["x.pcap", "x.pcap1", "x.pcap2"])
    write(folder, FORMATS["pcapng"][:2], ["y_00001_20261121093000.pcapng", "y_00002_20261121093100.pcapng"])
    corpus.run([folder], tmp_path / "out", workers=1)
    rows = corpus.open(tmp_path / "out").captures.sort("path").collect()
    assert [3, 2] == rows["files"].list.len().to_list()
    assert [len(PACKETS), 130] == rows["packets"].to_list()
    assert rows["file_bytes"][0] == sum(map(len, FORMATS["pcap"]))
    summary = corpus.run([folder], tmp_path / "out", workers=1, join=False)
    assert (5, 5) == (summary.captures, summary.analysed)


@pytest.fixture
def served(tmp_path):
    """A folder, and the address at which a web server of this machine has it."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "one.pcap").write_bytes(pcap(PACKETS))
    (folder / "two.pcap.gz").write_bytes(gzip.compress(pcap(PACKETS[:100])))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet.of(folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A web server that does not say what it serves."""

    @classmethod
    def of(cls, folder: Path):
        return partial(cls, directory=folder)

    def log_message(self, *_: object) -> None:
        pass


def test_urls_hold_what_their_files_hold(tmp_path, served):
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    folder, address = served
    packed = tmp_path / "captures.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in folder.iterdir():
            archive.write(path, path.name)
    sources = [f"{address}/", f"zip://*.pcap*::{packed}", f"file://{folder}", str(folder)]
    names = [f"{address}/{{}}", f"zip://{{}}::{packed}", f"file://{folder}/{{}}", f"{folder}/{{}}"]
    for source, name in zip(sources, names, strict=True):
        urls = [name.format("one.pcap"), name.format("two.pcap.gz")]
        assert urls == [each.paths[0] for each in corpus.plan([source])]
        for url, path in zip(urls, ("one.pcap", "two.pcap.gz"), strict=True):
            same(trace.analyse([url], SETTINGS), tcpfit.analyze(folder / path))
    summary = corpus.run(sources, tmp_path / "out", workers=1)
    assert (2, 6, []) == (summary.analysed, summary.copies, summary.failures)
    summary = corpus.run([*sources, f"{address}/none.pcap"], tmp_path / "out", workers=1)
    assert 0 == summary.analysed
    assert [("unreadable", f"{address}/none.pcap")] == [(each.status, each.path) for each in summary.failures]


def test_a_file_system_in_memory_is_listed():
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for name in ("/corpus/a.pcap", "/corpus/deep/b.pcapng.gz", "/corpus/notes.md"):
        memory.pipe(name, b"")
    assert ["memory:///corpus/a.pcap", "memory:///corpus/deep/b.pcapng.gz"] == [
        each.paths[0] for each in corpus.plan(["memory:///corpus"])
    ]
    with pytest.raises(InvalidParameter, match="no captures there"):
        corpus.plan(["memory:///nothing/*.pcap"])


@pytest.mark.parametrize("url", ["no-such-scheme://host/a.pcap", "http://127.0.0.1:1/"])
def test_urls_that_cannot_be_listed(url):
    pytest.importorskip("aiohttp")
    with pytest.raises(InvalidParameter, match=url):
        corpus.plan([url])
