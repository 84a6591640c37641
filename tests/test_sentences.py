"""Are the sentences on a flow true, wherever it was captured?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tcpfit
from tcpfit.diagnosis import diagnose
from tcpfit.report import sentences

SAMPLES = Path(__file__).parent.parent / "sample-traces"


def facts(path: Path) -> dict[str, Any]:
    """The largest flow of a capture, as the document has it."""
    return tcpfit.analyze(path).to_dict()["captures"][0]["flows"][0]


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_losses_are_of_what_was_sent(end):
    """4327 segments arrived; the 102 that were lost are not among them."""
    flow = facts(SAMPLES / f"sack-loss-{end}.pcap.gz")
    assert "102 of 4429 sent segments lost" in sentences.what_happened(flow)
    assert 102 / 4429 == pytest.approx(flow["parameters"]["q_tilde"]["value"], rel=1e-3)


@pytest.mark.parametrize(("lost", "before", "position"), [(246, 232, "middle"), (102, 0, "middle"), (9, 9, "receiver")])
def test_the_side_of_a_capture_on_the_path_is_said(lost, before, position):
    """At an end there is one side alone."""
    said = sentences.lost_before(position, lost, before)
    assert said == (f"{before} of them before the capture point" if position == "middle" else "")


def test_loss_rates_are_marked_where_the_capture_missed_too_much():
    """From the 1 % on above which no verdict rests on losses."""
    path = SAMPLES / "sack-loss-sender.pcap.gz"
    whole = facts(path)
    assert (None, "0.019") == (sentences.distrusted(whole), sentences.loss_rate(whole))
    for missing, said in ((0, None), (40, None), (200, "the capture missed 4.32% of the data segments: p, m, q and")):
        whole["counts"]["missing_segments"] = missing
        assert (said is not None) == sentences.loss_rate(whole).endswith("?")
        assert (said or "") in (sentences.distrusted(whole) or "")


def test_a_subflow_is_said():
    flow = facts(SAMPLES / "sack-loss-sender.pcap.gz")
    assert "MPTCP" not in sentences.how_seen(flow)
    flow["handshake"]["mptcp"] = True
    assert "MPTCP" in sentences.how_seen(flow)


def test_the_place_on_the_path_is_said():
    flow = facts(SAMPLES / "sack-loss-sender.pcap.gz")
    flow["vantage"] |= {"position": "middle", "fraction": 0.4005}
    flow["counts"] |= {"lost_upstream": 60}
    assert "captured on the path, 40% of the round trip between there and the sender" in sentences.how_seen(flow)
    assert "102 of 4429 sent segments lost (60 of them before the capture point)" in sentences.what_happened(flow)


def test_a_verdict_of_losses_says_on_which_side_they_were():
    found = tcpfit.analyze(SAMPLES / "sack-loss-sender.pcap.gz")
    lost = found.flows["lost_segments"][0]
    for before in (0, lost):
        flows = found.flows.with_columns(
            vantage=pl.lit("middle", found.flows.schema["vantage"]), lost_upstream=pl.lit(before, pl.UInt64)
        )
        (diagnosis,) = diagnose(flows, found.events, found.rounds).values()
        assert diagnosis.primary == "loss-limited"
        assert f"{before} of {lost} lost segments were lost before the capture point" in diagnosis.text


def test_one_flight_at_the_receiver_has_no_goodput():
    """1.8 kB within 146 us, of a round trip of 18 ms: what arrives back to back is the path's rate, or the host's."""
    flow = facts(SAMPLES / "sack-loss-receiver.pcap.gz")
    assert "goodput" in sentences.what_happened(flow)
    flow["duration_s"] = flow["parameters"]["rtt_min"]["value"] / 100
    assert "goodput" not in sentences.what_happened(flow)
    assert "in one flight of" in sentences.what_happened(flow)
    assert sentences.goodput(flow) == "-"


def test_acks_alone_say_what_was_acknowledged():
    flow = facts(SAMPLES / "sack-loss-sender.pcap.gz")
    flow["counts"] |= {"data_segments": 0, "unique_bytes": 0, "acked_bytes": 6_250_000}
    assert sentences.what_happened(flow).startswith("6.25 MB acknowledged in ")


def test_a_capture_that_missed_data_says_of_what_the_goodput_is():
    """The rate of 8 MB a minute beside 6 MB in a minute would be a riddle."""
    flow = facts(SAMPLES / "sack-loss-sender.pcap.gz")
    flow["counts"] |= {"unique_bytes": 6_250_000, "acked_bytes": 8_250_000}
    assert sentences.what_happened(flow).startswith("8.25 MB acknowledged, 6.25 MB of them seen, in ")
