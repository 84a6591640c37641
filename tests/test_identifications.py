"""What IPv4 identifications say of losses, and what they do not."""

from __future__ import annotations

import pytest
from queue_path import QueuePath

import tcpfit

LOST = frozenset(range(300, 3000, 150))


@pytest.mark.parametrize("others", [0, 1, 9, 40])
def test_numbers_of_the_hosts_other_connections_are_no_losses(tmp_path, others):
    QueuePath(rate=2000, way_s=0.025, window=60, threshold=30, lost=LOST, others=others).run(tmp_path)
    flow = tcpfit.analyze(tmp_path / "receiver.pcap").flows.row(0, named=True)
    assert flow["data_segments"] > 3000
    assert (flow["lost_segments"], flow["lost_high"]) == (len(LOST), len(LOST))


@pytest.mark.parametrize("first", [1, 2**16 - 320])
def test_acks_are_numbered_on_behind_the_largest_number(tmp_path, first):
    # the capture ends in the recovery, of which the duplicate ACKs say how much is missing if all of them came
    lost = frozenset((300, 302, 304))
    path = QueuePath(rate=2000, way_s=0.025, window=60, threshold=30, lost=lost, first_answer=first, seconds=0.76)
    path.run(tmp_path)
    captured = tcpfit.analyze(tmp_path / "sender.pcap")
    assert captured.flows["lost_segments"][0] == len(lost)
    assert "not-held" in captured.events["reason"].to_list()
