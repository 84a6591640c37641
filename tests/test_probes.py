"""Tail loss probes that send new data: what else can have sent them when no ACK came?"""

from __future__ import annotations

from pathlib import Path

import pytest
from captures import ETHERNET, pcap
from test_scenarios import Reader

from tcpfit.analysis import analyze

PATH_S, MSS = 0.05, 1000


def flow(
    last: int = MSS,
    waits_s: float = 0.102,
    probe: int = MSS,
    outstanding: int = 4,
    again: bool = False,
    sack: bool = True,
) -> str:
    """Two flights of four segments are acknowledged. Of the next no ACK comes, until one segment more follows after
    `waits_s` (and another, as much later again): the flight's last and this one have so many bytes."""
    offer = f"win 64000 <mss {MSS}{',sackOK' if sack else ''},wscale 7>"
    events = [
        (0.0, f"> S 0:0(0) {offer}"),
        (PATH_S, f"< S. 0:0(0) ack 1 {offer}"),
        (PATH_S + 1e-4, "> . 1:1(0) ack 1 win 500"),
    ]
    now_s, at = 2 * PATH_S, 1

    def send(at_s: float, length: int) -> None:
        nonlocal at
        events.append((at_s, f"> . {at}:{at + length}({length}) ack 1 win 500"))
        at += length

    for _ in range(2):
        for n in range(4):
            send(now_s + n * 5e-4, MSS)
            events.append((now_s + PATH_S + n * 5e-4, f"< . 1:1(0) ack {at} win 500"))
        now_s += PATH_S + 0.005
    for n in range(outstanding):
        send(now_s + n * 5e-4, last if n == outstanding - 1 else MSS)
    now_s += (outstanding - 1) * 5e-4
    for _ in range(2 if again else 1):
        now_s += waits_s
        send(now_s, probe)
    events.append((now_s + PATH_S, f"< . 1:1(0) ack {at} win 500"))
    before_s, lines = 0.0, []
    for at_s, line in sorted(events):
        lines.append(f"+{at_s - before_s:.6f} {line}")
        before_s = at_s
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("changed", "probes"),
    [
        ({}, 1),
        # the application's: it had ended with less than a full segment, or does now
        ({"last": 600}, 0),
        ({"probe": 600}, 0),
        # the timer is two round trips long
        ({"waits_s": 0.08}, 0),
        ({"waits_s": 0.17}, 0),
        # and longer by what an ACK may be delayed, behind a single segment
        ({"outstanding": 1}, 0),
        ({"outstanding": 1, "waits_s": 0.3}, 1),
        # one for a tail; what follows waits for the retransmission timer
        ({"again": True}, 1),
        # no stack probes without SACK
        ({"sack": False}, 0),
    ],
    ids=str,
)
def test_new_data_that_no_ack_let_go(tmp_path: Path, changed, probes) -> None:
    path = tmp_path / "flow.pcap"
    path.write_bytes(pcap(Reader().read(flow(**changed)).packets, ETHERNET))
    row = analyze(path).flows.row(0, named=True)
    assert (row["tail_loss_probes"], row["timeouts"], row["lost_segments"]) == (probes, 0, 0)
