"""Is what is said of a flow the same whichever flows were selected beside it?"""

from __future__ import annotations

from pathlib import Path

import pytest

import tcpfit
from tcpfit.diagnosis import findings
from tcpfit.diagnosis.table import report, report_facts
from tcpfit.report.contract import flow_facts
from tcpfit.report.figures import KINDS

SAMPLES = Path(__file__).resolve().parents[2] / "sample-traces"
NAMES = ("findings/delayed-ack", "findings/broken-off", "findings/serial-requests", "sack-loss-sender")


@pytest.fixture(scope="module", params=NAMES)
def whole(request) -> tcpfit.Analysis:
    return tcpfit.analyze(SAMPLES / f"{request.param}.pcap.gz", segments=True)


def test_alone_a_flow_is_described_as_among_all(whole):
    among_all = {facts["id"]: facts for facts in flow_facts(whole)}
    assert among_all == {
        flow: facts for flow in among_all for facts in flow_facts(whole.select([flow])) if facts["id"] == flow
    }


def test_alone_a_flow_is_diagnosed_as_among_all(whole):
    among_all = {each.flow["flow"]: report_facts(each) for each in report(whole)}
    assert among_all == {flow: report_facts(report(whole.select([flow]))[0]) for flow in among_all}


def test_a_selection_of_a_selection_still_knows_the_other_direction(whole):
    flows = whole.flows["flow"].to_list()
    twice = whole.select(flows[:2]).select(flows[:1])
    assert whole.select(flows[:1]).conversations.flows.equals(twice.conversations.flows)
    assert 1 == twice.flows.height


def test_alone_a_flow_has_its_findings_and_figures(whole):
    for flow in whole.flows["flow"].to_list():
        alone = whole.select([flow])
        assert findings.find(whole, flow) == findings.find(alone, flow)
        drawn = [KINDS["shares"].data(each, flow)["causes"].rows() for each in (whole, alone)]
        assert drawn[0] == drawn[1]


def test_pseudonyms_hide_the_other_direction_too(whole):
    hidden = whole.select([0]).anonymized(b"0123456789abcdef").conversations.flows
    assert not set(whole.flows["src"]) & (set(hidden["src"]) | set(hidden["dst"]))
