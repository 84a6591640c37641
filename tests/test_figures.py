"""Does every kind of figure draw every capture, or say in a sentence why not?"""

from __future__ import annotations

import json
from pathlib import Path

import captures
import pytest
from captures import Transfer

import tcpfit
from tcpfit.report.figures import KINDS, NothingToDraw, draw

pytest.importorskip("altair")

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT / "sample-traces", ROOT / "sample-traces/findings", ROOT.parent / "shared/captures")
FOUND = sorted(path for folder in FOLDERS for path in folder.glob("*.pcap*"))


def drawn(analysis: tcpfit.Analysis, flow: int) -> dict[str, str]:
    """What each kind says of a flow; '' where it draws."""
    said = {}
    for name in KINDS:
        try:
            spec = json.dumps(draw(analysis, name, flow).to_dict(validate=False))
            assert "NaN" not in spec and "Infinity" not in spec
            said[name] = ""
        except NothingToDraw as nothing:
            said[name] = str(nothing)
            assert f"flow {flow} of {analysis.path} " in said[name]
    return said


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_every_capture_is_drawn_or_a_sentence_says_why_not(path):
    analysis = tcpfit.analyze(path, segments=True)
    flows = analysis.largest()
    for flow in {*flows[:1], *flows[-1:]}:
        said = drawn(analysis, flow)
        assert "" == said["time-sequence"]


@pytest.fixture
def capture(tmp_path):
    def write(packets):
        path = tmp_path / "transfer.pcap"
        path.write_bytes(captures.pcap(packets))
        return tcpfit.analyze(path, segments=True)

    return write


def way_of(packets, port):
    """Packets that come from a port."""
    return [packet for packet in packets if int.from_bytes(packet.data[34:36], "big") == port]


@pytest.mark.parametrize(
    "which",
    ["whole", "one segment", "data only", "ACKs only", "no handshake", "one packet"],
)
def test_parts_of_a_transfer_are_drawn_or_a_sentence_says_why_not(capture, which):
    whole = list(Transfer(lost=frozenset({13})).run())
    ports = [int.from_bytes(packet.data[34:36], "big") for packet in whole]
    sizes = {port: sum(packet.wire_len for packet in way_of(whole, port)) for port in set(ports)}
    sender, receiver = max(sizes, key=sizes.get), min(sizes, key=sizes.get)
    packets = {
        "whole": whole,
        "one segment": list(Transfer(segments=1).run()),
        "data only": way_of(whole, sender),
        "ACKs only": way_of(whole, receiver),
        "no handshake": whole[3:],
        "one packet": [max(whole, key=lambda packet: packet.wire_len)],
    }[which]
    analysis = capture(packets)
    assert analysis.flows.height >= 1
    for flow in analysis.flows["flow"]:
        said = drawn(analysis, flow)
        assert any(not text for text in said.values()), said


def test_a_capture_without_flows_is_said(capture):
    analysis = capture(list(Transfer(segments=0).run())[:1])
    with pytest.raises(NothingToDraw, match="has no TCP flow that carried data"):
        draw(analysis, "rtt")
