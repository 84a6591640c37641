"""Is nothing blamed for which the capture has no sign?"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import tcpfit
from tcpfit.diagnosis.accounting import account

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
