"""Losses on paths whose delay varies: the answer to a resend may take less than any round trip before."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from captures import ETHERNET, pcap
from test_scenarios import Reader

from tcpfit.analysis import analyze

SCENARIOS = Path(__file__).parent / "scenarios"
PATH_S = 0.02
WINDOW, SEGMENTS = 6, 24


def flow(lost: int, jitter_s: float, seed: int) -> str:
    """A flow of four windows without timestamps. A segment is lost, and sent again for the third duplicate ACK or after
    250 ms. Delays are exponential above the path's."""
    drawn = random.Random(seed)
    lines, events = [], []

    def delay_s() -> float:
        return PATH_S + drawn.expovariate(1 / jitter_s)

    def send(at_s: float, n: int) -> None:
        events.append((at_s, f"> . {1 + n * 1000}:{1001 + n * 1000}(1000) ack 1 win 500"))

    def answer(at_s: float, n: int, sack: str = "") -> None:
        events.append((at_s, f"< . 1:1(0) ack {1 + n * 1000} win 500{sack}"))

    opened = delay_s()
    offer = "win 64000 <mss 1000,sackOK,wscale 7>"
    lines = [(0.0, f"> S 0:0(0) {offer}"), (opened, f"< S. 0:0(0) ack 1 {offer}")]
    lines.append((opened + 5e-5, "> . 1:1(0) ack 1 win 500"))
    begin = opened + 1e-3
    for first in range(0, SEGMENTS, WINDOW):
        heard, again, duplicates = begin, None, 0
        for n in range(first, first + WINDOW):
            at_s = begin + (n - first) * 1e-4
            send(at_s, n)
            if n == lost:
                continue
            heard = max(heard + 1e-5, at_s + delay_s())
            if not first <= lost < n:
                answer(heard, n + 1)
                continue
            answer(heard, lost, f" <nop,nop,sack {1001 + lost * 1000}:{1001 + n * 1000}>")
            duplicates += 1
            again = heard + 2e-5 if duplicates == 3 else again
        if first <= lost < first + WINDOW:
            again = again or heard + 0.25
            send(again, lost)
            heard = max(again + delay_s(), heard + 1e-5)
            answer(heard, first + WINDOW)
        begin = heard + 1e-4
    last, text = 0.0, []
    for at_s, line in [*lines, *sorted(events)]:
        text.append(f"+{at_s - last:.9f} {line}")
        last = at_s
    return "\n".join(text)


@pytest.mark.parametrize("lost", [0, 2, 5, 8, 14])
@pytest.mark.parametrize("jitter_s", [50e-6, 500e-6])
def test_an_answer_that_is_a_little_sooner_is_still_the_resends(tmp_path: Path, jitter_s: float, lost: int) -> None:
    found: Counter[tuple[int, int, int]] = Counter()
    path = tmp_path / "flow.pcap"
    for seed in range(12):
        path.write_bytes(pcap(Reader().read(flow(lost, jitter_s, seed)).packets, ETHERNET))
        row = analyze(path).flows.row(0, named=True)
        found[row["lost_segments"], row["spurious_retransmissions"], row["reordered_segments"]] += 1
    assert {(1, 0, 0): 12} == found


def test_a_sender_is_not_idle_while_the_path_stands_still(tmp_path):
    scenario = Reader().read((SCENARIOS / "receiver-path-stood-still.trace").read_text())
    path = tmp_path / "still.pcap"
    path.write_bytes(pcap(scenario.packets))
    rounds = analyze(path).rounds
    assert 1.5 < (rounds["end_ns"][-1] - rounds["start_ns"][-2]) / 1e9
    assert 0.03 > rounds["idle_s"].sum()
