"""Does a result come back from its file as it went in, in whatever pieces, and only if the file is whole?"""

from __future__ import annotations

import pytest
from corpora import capture

import tcpfit
from tcpfit.corpus import result
from tcpfit.corpus.tables import facts_of, tables_of


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> result.Result:
    analysis = tcpfit.analyze(capture(tmp_path_factory.mktemp("result") / "0.pcap", 0))
    return result.Result(facts_of(analysis), tables_of(analysis, analysis.flows["flow"].to_list(), "a"))


@pytest.mark.parametrize("many", [1, 1 << 16])
@pytest.mark.parametrize("rows", [1, 7, 1 << 16])
def test_result_comes_back(whole, tmp_path, monkeypatch, rows, many):
    monkeypatch.setattr(result, "ROWS", rows)
    monkeypatch.setattr(result, "MANY", many)
    path = tmp_path / "result"
    result.write(result.pack(whole), path)
    back = result.read(path)
    assert back is not None
    assert whole.capture == result.facts(path) == back.capture
    assert whole.rows == back.rows
    assert max(whole.rows.values()) > 7
    assert [name for name, table in whole.tables.items() if not table.equals(back.tables[name])] == []


def test_damaged_result_is_not_taken(whole, tmp_path):
    packed = bytearray(result.pack(whole))
    path = tmp_path / "result"
    for damaged in (packed[:-1], packed[: len(packed) // 2], b"", bytes([packed[0] ^ 1]) + packed[1:]):
        path.write_bytes(damaged)
        assert (None, None) == (result.read(path), result.facts(path))
    packed[-1] ^= 1
    path.write_bytes(packed)
    assert (None, None) == (result.read(path), result.facts(path))
