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
