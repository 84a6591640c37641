"""Captures a little away from the sender, as of the switch before it: what passes there has yet to reach the sender."""

from __future__ import annotations

import pytest
from queue_path import QueuePath

from tcpfit.analysis import analyze


@pytest.mark.parametrize(("queue", "window"), [(20, 200), (20, 400), (100, 400)])
@pytest.mark.parametrize("many", [3, 20])
def test_duplicate_acks_on_their_way_to_the_sender_ask_for_nothing(tmp_path, many, queue, window):
    lost = frozenset(range(1500, 1500 + many))
    path = QueuePath(rate=1000.0, way_s=0.075, window=window, middle_s=0.003, queue=queue, lost=lost, seconds=9.0)
    path.run(tmp_path)
    found = [analyze(tmp_path / f"{place}.pcap").flows.row(0, named=True) for place in ("sender", "middle")]
    assert ["sender", "sender"] == [row["vantage"] for row in found]
    assert [path.recoveries] * 2 == [row["fast_recoveries"] for row in found]
