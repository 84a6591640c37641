"""How long the rounds of the steady part last: a connection that stays open after its last ACK adds nothing to it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import tcpfit
from tcpfit.parameters.evidence import Evidence
from tcpfit.ranking import observed, rank
from tcpfit.ranking.steady import idle_within

SAMPLES = Path(__file__).resolve().parents[2] / "sample-traces"


def kept_open(rounds: pl.DataFrame, seconds: float) -> pl.DataFrame:
    """The rounds of a capture that ends so much later: the table has that time in the last round's `idle_s`."""
    last = pl.col("round") == pl.col("round").max().over("flow")
    return rounds.with_columns(idle_s=pl.col("idle_s") + pl.when(last).then(seconds).otherwise(0.0))


@pytest.mark.parametrize("name", ["newreno-loss.pcap.gz", "sack-loss-sender.pcap.gz", "sack-loss-receiver.pcap.gz"])
def test_a_connection_closed_a_minute_later_has_the_same_ranking(name: str) -> None:
    """RFC 9293, 3.6: a FIN may come any time after the last data, as of a connection that is kept alive."""
    capture = tcpfit.analyze(SAMPLES / name)
    tables = capture.flows, capture.events, kept_open(capture.rounds, 60.0)
    ranking, verdicts = rank(*tables, capture.parameters)
    assert capture.verdicts.equals(verdicts)
    assert capture.ranking.equals(ranking)
    assert observed(capture.flows, capture.events, capture.rounds).equals(observed(*tables))


def test_pauses_before_the_last_ack_stay() -> None:
    """What was idle and what was busy fill a flow's time, up to its last ACK."""
    capture = tcpfit.analyze(SAMPLES / "findings/serial-requests.pcap.gz")
    found = Evidence(capture.flows, capture.events, kept_open(capture.rounds, 60.0))
    idle = pl.DataFrame({"flow": found.flow[found.rounds.owner], "idle": idle_within(found)})
    by_flow = idle.group_by("flow").agg(pl.col("idle").sum()).sort("flow")["idle"].to_list()
    rest = (found.column("last_ns") - found.column("first_ns")) / 1e9 - found.column("busy_s")
    assert [pytest.approx(seconds, abs=0.05) for seconds in rest.tolist()] == by_flow
    assert max(by_flow) > 0.1
