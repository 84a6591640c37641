"""Is a flow whose window congestion marks hold down said to be so? No packet is lost, and no window is full."""

from __future__ import annotations

import struct

import captures
import pytest
from captures import ACK, PSH, START_NS, SYN, Packet

import tcpfit
from tcpfit.diagnosis import account, diagnose
from tcpfit.diagnosis.causes import RULE_OF, Reason

SENDER, RECEIVER = "10.0.0.1", "10.0.0.2"
MSS, RTT_S = 1000, 0.05
ECE, CWR = 64, 128
OF_SYN = struct.pack(">BBHBBBB", 2, 4, MSS, 1, 3, 3, 7)


class Marked:
    """At the sender: rounds of a window that grows by a segment, and that an answer to a mark halves at its most.

    `agreed` is whether the ends agreed to ECN: without it the same flags say nothing.
    """

    def __init__(self, most: int, agreed: bool = True) -> None:
        self.most, self.packets, self.ids = most, list[Packet](), 0
        self._sent(0.0, 0, SYN | (ECE | CWR) * agreed, OF_SYN)
        self._heard(RTT_S, 1, SYN | ECE * agreed, OF_SYN)
        self._sent(RTT_S + 1e-5, 1, ACK)

    def run(self, rounds: int) -> list[Packet]:
        at_s, sequence, window, answers = 0.1, 1, self.most // 2, False
        for _ in range(rounds):
            marked = window >= self.most
            for n in range(window):
                self._sent(at_s + 2e-5 * n, sequence, ACK | PSH | CWR * (answers and n == 0), payload=MSS)
                sequence += MSS
                self._heard(at_s + RTT_S + 2e-5 * n, sequence, ACK | ECE * marked)
            at_s += RTT_S + 2e-5 * window
            answers, window = marked, window // 2 if marked else window + 1
        return sorted(self.packets, key=lambda packet: packet.time_ns)

    def _sent(self, at_s: float, sequence: int, flags: int, options: bytes = b"", payload: int = 0) -> None:
        self.ids += 1
        ends = (SENDER, RECEIVER, 40000, 80)
        self._add(at_s, captures.tcp(*ends, sequence, 1, flags, payload, options, ip_id=self.ids))

    def _heard(self, at_s: float, ack: int, flags: int, options: bytes = b"") -> None:
        ends = (RECEIVER, SENDER, 80, 40000)
        self._add(at_s, captures.tcp(*ends, 0 if flags & SYN else 1, ack, flags | ACK, 0, options, ip_id=0))

    def _add(self, at_s: float, datagram: bytes) -> None:
        frame = captures.link(datagram, captures.ETHERNET)
        self.packets.append(Packet(START_NS + round(at_s * 1e9), frame, len(frame)))


def analysed(path, agreed: bool = True) -> tcpfit.Analysis:
    path.write_bytes(captures.pcap(Marked(12, agreed).run(120)))
    return tcpfit.analyze(path)


def test_a_flow_held_down_by_marks_is_at_a_bottleneck(tmp_path):
    analysis = analysed(tmp_path / "marked.pcap")
    assert 10 < analysis.flows["mark_events"][0] and 0 == analysis.flows["lost_segments"][0]
    (verdict,) = diagnose(analysis.flows, analysis.events, analysis.rounds).values()
    assert "bottleneck-limited" == verdict.primary
    assert 0.9 < verdict.causes[0].time_share
    assert "marks" in verdict.text and "marks" in verdict.remedy


def test_each_answer_takes_a_round_trip_and_leaves_its_window(tmp_path):
    analysis = analysed(tmp_path / "marked.pcap")
    spans = account(analysis.flows, analysis.events, analysis.rounds)
    answers = spans.filter(rule=RULE_OF[Reason.MARKED])
    assert analysis.flows["mark_events"][0] == answers.height
    lasted = ((answers["end_ns"] - answers["start_ns"]) / 1e9).to_list()
    assert [pytest.approx(RTT_S, rel=0.02)] * answers.height == lasted
    after = spans.filter(rule=RULE_OF[Reason.AFTER_MARKS])
    assert set(answers["end_ns"]) - {spans["end_ns"][-1]} == set(after["start_ns"])


def test_without_ecn_the_flags_say_nothing(tmp_path):
    analysis = analysed(tmp_path / "none.pcap", agreed=False)
    (verdict,) = diagnose(analysis.flows, analysis.events, analysis.rounds).values()
    assert "bottleneck-limited" != verdict.primary
