"""Is nothing blamed for which the capture has no sign?"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import polars as pl
import pytest

import tcpfit
from tcpfit.diagnosis import account, diagnose

SAMPLES = Path(__file__).resolve().parents[2] / "sample-traces"
CAPTURES = sorted(SAMPLES.glob("**/*.pcap*"))


@pytest.mark.parametrize("from_s", [None, 2.0])
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_no_loss_limits_a_flow_that_lost_nothing(path, from_s):
    analysis = tcpfit.analyze(path, from_s=from_s)
    spans = account(analysis.flows, analysis.events, analysis.rounds)
    lost = analysis.flows.filter(pl.col("lost_high") > 0)["flow"]
    blamed = spans.filter(pl.col("cause") == "loss-limited", ~pl.col("flow").is_in(lost.implode()))
    assert [] == blamed.rows()


@pytest.mark.parametrize("path", sorted((SAMPLES / "causes").glob("*.pcap*")), ids=lambda path: path.name)
def test_a_window_of_unknown_scale_is_not_said_to_have_room(path):
    analysis = tcpfit.analyze(path, from_s=1.0)
    spans = account(analysis.flows, analysis.events, analysis.rounds)
    unknown = analysis.flows.filter(pl.col("rwnd_max").is_null())["flow"]
    blamed = spans.filter(pl.col("cause") == "send-buffer-limited", pl.col("flow").is_in(unknown.implode()))
    assert [] == blamed.rows()


def test_there_are_windows_of_unknown_scale():
    analysis = tcpfit.analyze(SAMPLES / "causes" / "send-buffer.pcap.gz", from_s=1.0)
    assert [None] == analysis.flows["rwnd_max"].to_list()


@pytest.mark.parametrize("every", [2, 5, 10, 20])
def test_of_a_sampled_capture_nothing_is_claimed(tmp_path, every):
    data = gzip.decompress((SAMPLES / "newreno-loss.pcap.gz").read_bytes())
    kept, at, number = [data[:24]], 24, 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        kept += [data[at : at + 16 + length]] if number % every == 0 else []
        at, number = at + 16 + length, number + 1
    path = tmp_path / "sampled.pcap"
    path.write_bytes(b"".join(kept))
    analysis = tcpfit.analyze(path)
    (verdict,) = diagnose(analysis.flows, analysis.events, analysis.rounds).values()
    assert ("unknown", 0.0) == (verdict.primary, verdict.confidence)
