"""Reordering as the capture shows it at the receiver, and as the sender's ACKs show it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import tcpfit

SAMPLES = Path(__file__).parent.parent / "sample-traces"
TRACES = Path(__file__).parent.parent.parent / "shared" / "traces"

# late originals that the receiver's capture shows, those of them that the sender's shows, and what only that has
RECORDED = {
    "f-d10-A1-push30-sack": (283, 283, 0),
    "f-d5-A2-push50-newreno": (95, 95, 0),
    "g-d1-A1-push30-sack-p1": (36, 35, 0),
    "g-jitter-sack": (187, 185, 0),
}


def late(path: Path) -> pl.DataFrame:
    return tcpfit.analyze(path).events.filter(pl.col("kind") == "reordering")


def test_the_senders_acks_show_what_the_receiver_saw():
    at_receiver, at_sender = (late(SAMPLES / f"reordering-{place}.pcap.gz") for place in ("receiver", "sender"))
    assert at_receiver["left"].sort().to_list() == at_sender["left"].sort().to_list()
    assert 24 == at_sender.height


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_late_originals(name):
    if not (TRACES / name).is_dir():
        pytest.skip(f"{TRACES / name} is not there")
    at_receiver, at_sender = (late(TRACES / name / f"{place}.pcap.gz") for place in ("receiver", "sender"))
    # a late segment of which a loss was the first copy is a resend: only originals are late at the sender
    lost = tcpfit.analyze(TRACES / name / "receiver.pcap.gz").events.filter(pl.col("kind") == "loss")["left"]
    there, here = set(at_receiver["left"]) - set(lost), set(at_sender["left"])
    assert RECORDED[name] == (len(there), len(there & here), len(here - there))
