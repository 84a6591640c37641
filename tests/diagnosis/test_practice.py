"""Conversations written packet by packet: is the verdict the one that somebody who reads the packets would give?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import tcpfit
from tcpfit.diagnosis.stalls import stalls
from tcpfit.diagnosis.table import Report, accounted, report

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from captures import ACK, ETHERNET, PSH, START_NS, SYN, Packet, link, pcap, tcp

SERVER, CLIENT = ("10.0.0.1", 80), ("10.0.0.2", 40000)
MSS = 1000
MSS_OPTION = bytes([2, 4, MSS >> 8, MSS & 255])


class Conversation:
    """A capture written down packet by packet, at the server or at the client: offsets in bytes, times in seconds."""

    def __init__(self, rtt: float = 0.1, window: int = 60000, at_client: bool = False) -> None:
        self._packets: list[Packet] = []
        self.window = window
        self._add(0.0, CLIENT, SERVER, 0, 0, SYN, options=MSS_OPTION)
        self._add(rtt if at_client else 1e-4, SERVER, CLIENT, 0, 1, SYN | ACK, options=MSS_OPTION)
        self._add(rtt + 1e-4, CLIENT, SERVER, 1, 1, ACK)

    def data(self, at: float, sender: tuple[str, int], start: int, end: int, acked: int = 0) -> Conversation:
        """Bytes `start` to `end` of a sender in segments, 10 us apart, that acknowledge `acked` of the other's."""
        for n, left in enumerate(range(start, end, MSS)):
            size = min(MSS, end - left)
            self._add(at + 1e-5 * n, sender, _other(sender), left + 1, acked + 1, ACK | PSH, size)
        return self

    def ack(self, at: float, receiver: tuple[str, int], acked: int, sent: int = 0) -> Conversation:
        """A pure ACK of the receiver, which has sent `sent` bytes itself."""
        self._add(at, receiver, _other(receiver), sent + 1, acked + 1, ACK)
        return self

    def report(self, folder: Path, src: str = SERVER[0]) -> tuple[tcpfit.Analysis, Report]:
        """The analysis of the capture and the diagnosis of the flow from `src`."""
        path = folder / "conversation.pcap"
        path.write_bytes(pcap(sorted(self._packets, key=lambda packet: packet.time_ns)))
        analysis = tcpfit.analyze(path, segments=True)
        return analysis, next(each for each in report(analysis) if each.flow["src"] == src)

    def _add(
        self,
        at: float,
        source: tuple[str, int],
        target: tuple[str, int],
        seq: int,
        ack: int,
        flags: int,
        payload: int = 0,
        options: bytes = b"",
    ) -> None:
        datagram = tcp(source[0], target[0], source[1], target[1], seq, ack, flags, payload, options, self.window)
        frame = link(datagram, ETHERNET)
        self._packets.append(Packet(START_NS + round(at * 1e9), frame, len(frame)))


def _other(end: tuple[str, int]) -> tuple[str, int]:
    return CLIENT if end == SERVER else SERVER


def rounds(conversation: Conversation, at: float, number: int, size: int = 4, rtt: float = 0.1) -> int:
    """Rounds of `size` segments from the server, captured there, and their ACKs; the bytes sent."""
    for n in range(number):
        sent = n * size * MSS
        conversation.data(at + n * rtt, SERVER, sent, sent + size * MSS)
        conversation.ack(at + (n + 1) * rtt - 1e-3, CLIENT, sent + size * MSS)
    return number * size * MSS


def seconds(found: Report, cause: str) -> float:
    return sum(each.seconds for each in found.diagnosis.causes if each.cause == cause)


def test_a_receiver_that_falls_silent_is_no_loss(tmp_path):
    """Ten rounds, then no packet of the client's any more; the server sends the same segment again five times."""
    talk = Conversation()
    sent = rounds(talk, 0.2, 10)
    talk.data(1.2, SERVER, sent, sent + 4 * MSS)
    for n in range(5):
        talk.data(1.2 + 0.3 * (2 ** (n + 1) - 1), SERVER, sent, sent + MSS)
    _, found = talk.report(tmp_path)
    assert found.diagnosis.primary == "unknown"
    assert "nothing came back" in found.diagnosis.text
    assert seconds(found, "timeout-limited") == 0
    start_ns, end_ns = found.diagnosis.causes[0].longest_ns
    assert (end_ns - start_ns) / 1e9 == pytest.approx(9.3, rel=0.03)
    assert {stall.detail for stall in found.stalls if stall.cause == "timeout"} == {"unanswered"}


def test_two_resends_without_an_answer_are_timeouts(tmp_path):
    """RFC 1122, 4.2.3.5: only the third resend of a segment puts the other end in doubt."""
    talk = Conversation()
    sent = rounds(talk, 0.2, 10)
    talk.data(1.2, SERVER, sent, sent + 4 * MSS)
    for n in range(2):
        talk.data(1.2 + 0.3 * (2 ** (n + 1) - 1), SERVER, sent, sent + MSS)
    _, found = talk.report(tmp_path)
    assert "nothing came back" not in found.diagnosis.text
    assert seconds(found, "timeout-limited") > 0.8


def test_a_receiver_that_still_talks_is_there(tmp_path):
    """The client sends data while what the server sends again stays without an answer: the way to it is broken."""
    talk = Conversation()
    sent = rounds(talk, 0.2, 10)
    talk.data(1.2, SERVER, sent, sent + 4 * MSS)
    for n in range(5):
        talk.data(1.2 + 0.3 * (2 ** (n + 1) - 1), SERVER, sent, sent + MSS)
    talk.data(8.0, CLIENT, 0, 100, acked=sent)
    talk.ack(8.0001, SERVER, 100, sent=sent)
    _, found = talk.report(tmp_path)
    assert "nothing came back" not in found.diagnosis.text
    assert found.diagnosis.primary == "timeout-limited"


def test_a_server_that_waits_for_the_next_request_is_not_to_blame(tmp_path):
    """A request every second, answered within 100 ms: the pauses are the client's."""
    talk = Conversation(at_client=True)
    for n in range(6):
        talk.data(0.2 + n, CLIENT, 100 * n, 100 * (n + 1), acked=4000 * n)
        talk.data(0.3 + n, SERVER, 4000 * n, 4000 * (n + 1), acked=100 * (n + 1))
        talk.ack(0.3005 + n, CLIENT, 4000 * (n + 1), sent=100 * (n + 1))
    analysis, server = talk.report(tmp_path)
    assert (server.diagnosis.primary, server.diagnosis.who) == ("application-limited", "receiver")
    assert "waited for the other end" in server.diagnosis.text
    (asked_for_alone,) = report(analysis.select([server.flow["flow"]]))
    assert server.diagnosis == asked_for_alone.diagnosis
    _, client = talk.report(tmp_path, CLIENT[0])
    assert (client.diagnosis.primary, client.diagnosis.who) == ("application-limited", "sender")


def test_a_lost_ack_is_a_wait_and_no_pause(tmp_path):
    """Captured at the client: all is acknowledged at once, and yet the server sends again after 0.3 s, then goes on."""
    talk = Conversation(at_client=True)
    for n in range(3):
        talk.data(0.2 + 0.1 * n, SERVER, 4000 * n, 4000 * (n + 1))
        talk.ack(0.2002 + 0.1 * n, CLIENT, 4000 * (n + 1))
    talk.data(0.7, SERVER, 8000, 9000)
    talk.ack(0.7002, CLIENT, 12000)
    talk.data(0.8, SERVER, 12000, 16000)
    talk.ack(0.8002, CLIENT, 16000)
    analysis, found = talk.report(tmp_path)
    assert found.diagnosis.primary == "timeout-limited"
    assert seconds(found, "timeout-limited") == pytest.approx(0.3, abs=0.12)
    kinds = {(stall.cause, stall.detail) for stall in stalls(found.flow, analysis.events, analysis.segments)}
    assert ("timeout", "ack-lost") in kinds


def test_a_window_below_two_segments_holds_only_what_fills_half_of_it(tmp_path):
    """A window of one segment, of which 100 bytes are used: the sender may send them at once (RFC 9293, 3.8.6.2.1)."""
    talk = Conversation(window=MSS)
    for n in range(10):
        talk.data(0.2 + 0.1 * n, SERVER, 100 * n, 100 * (n + 1))
        talk.ack(0.299 + 0.1 * n, CLIENT, 100 * (n + 1))
    _, found = talk.report(tmp_path)
    assert seconds(found, "receiver-window-limited") == 0


@pytest.mark.parametrize(("size", "held"), [(150, False), (65, True)])
def test_a_sender_that_overruns_the_window_is_not_held_by_it(tmp_path, size, held):
    """A window of 65 segments without window scaling, and yet 150 go in every round trip."""
    talk = Conversation(window=65535)
    rounds(talk, 0.2, 30, size=size)
    _, found = talk.report(tmp_path)
    assert (seconds(found, "receiver-window-limited") > 2) == held
    assert ("window-scaling-absent" in {finding.name for finding in found.findings}) == held


@pytest.mark.parametrize("step", [4, 40], ids=["a slow reader", "a quick reader"])
def test_a_pacer_that_uses_up_every_window_is_held_by_it(tmp_path, step):
    """A segment every 20 ms as long as the window has room, which opens by some segments every 90 ms: with four the
    sender, which has measured that rate, sends them in the greater part of the time and then finds it full."""
    talk = Conversation()
    sent, edge, due = 0, 8, 0.2
    passed: list[float] = []
    for n in range(60):
        heard = 0.3 + 0.09 * n
        while due < heard:
            if sent < edge:
                talk.data(due, SERVER, MSS * sent, MSS * (sent + 1))
                passed.append(due)
                sent += 1
            due += 0.02
        acked = sum(time <= heard - 0.1 for time in passed)
        edge += step
        talk.window = min(MSS * (edge - acked), 65535)
        talk.ack(heard, CLIENT, MSS * acked)
        due = max(due, heard + 0.003)
    _, found = talk.report(tmp_path)
    assert (found.diagnosis.primary == "receiver-window-limited") == (step == 4)
    if step == 4:
        assert seconds(found, "receiver-window-limited") > 0.8 * found.accounted_s
        assert (found.diagnosis.kernel["rwnd_limited"]) < 0.5


def test_a_flat_flight_that_acks_let_go_is_held_by_the_sender(tmp_path):
    """Eight segments a round trip for forty round trips, each round 1 ms after the ACK, and room in the window."""
    talk = Conversation()
    rounds(talk, 0.2, 40, size=8)
    _, found = talk.report(tmp_path)
    assert found.diagnosis.primary == "send-buffer-limited"


def test_a_flat_flight_by_a_clock_is_no_send_buffer(tmp_path):
    """Four segments every 30 ms, whatever has come back after a round trip of 100 ms: no ACK lets them go."""
    talk = Conversation()
    for n in range(130):
        talk.data(0.2 + 0.03 * n, SERVER, 4000 * n, 4000 * (n + 1))
        talk.ack(0.3 + 0.03 * n, CLIENT, 4000 * (n + 1))
    _, found = talk.report(tmp_path)
    assert found.diagnosis.primary == "unknown"
    assert seconds(found, "send-buffer-limited") == 0
    assert "the sender's clock" in found.diagnosis.causes[0].evidence[0]


@pytest.mark.parametrize(
    ("sizes", "primary"),
    [([MSS, MSS, 400], "unknown"), ([860, 860, 860], "unknown"), ([400], "application-limited")],
    ids=["records", "a path MTU below the MSS option", "small writes"],
)
def test_short_segments_show_that_nothing_is_left_only_where_most_are(tmp_path, sizes, primary):
    """Segments every 33 ms of a clock, over a round trip of 100 ms: who fills segments but for the end of a record,
    or has shorter ones to fill, may have more to send."""
    talk = Conversation()
    sent = 0
    for n in range(130):
        at = 0.2 + 0.033 * n
        for size in sizes:
            talk.data(at, SERVER, sent, sent + size)
            sent, at = sent + size, at + 1e-4
        talk.ack(at + 0.1, CLIENT, sent)
    _, found = talk.report(tmp_path)
    assert found.diagnosis.primary == primary


@pytest.mark.parametrize("at_client", [False, True], ids=["sender", "receiver"])
@pytest.mark.parametrize(
    ("written", "every", "primary"),
    [(8300, 0.08, "application-limited"), (9000, 0.08, "unknown"), (2300, 0.025, "unknown")],
    ids=["records", "full segments", "records so close that they may be paced"],
)
def test_a_writer_whose_last_segment_is_short_rests_until_it_writes_again(tmp_path, written, every, primary, at_client):
    """Records of a clock, over a round trip of 90 ms, the next before the ACK of the one before: the path is never
    empty. Who sends at once what he has, the last segment short, and lets ACKs wait then, has no more."""
    talk = Conversation(rtt=0.09, at_client=at_client)
    for n in range(130):
        at = 0.2 + every * n + (0.045 if at_client else 0.0)
        talk.data(at, SERVER, written * n, written * (n + 1))
        talk.ack(at + (2e-4 if at_client else 0.09), CLIENT, written * (n + 1))
    _, found = talk.report(tmp_path)
    assert found.diagnosis.primary == primary


def test_even_steps_behind_a_shaper_are_no_send_buffer(tmp_path):
    """Two segments every 3.03 ms, as a shaper before the capture point lets them pass: the flight is 14 segments in a
    round trip of 20.4 ms, and each round begins 0.8 ms after the ACK, less than a host may take."""
    talk = Conversation(rtt=0.0204)
    for n in range(400):
        talk.data(0.1 + 0.00303 * n, SERVER, 2 * MSS * n, 2 * MSS * (n + 1))
        talk.ack(0.1204 + 0.00303 * n, CLIENT, 2 * MSS * (n + 1))
    _, found = talk.report(tmp_path)
    assert found.diagnosis.primary == "unknown"
    assert seconds(found, "send-buffer-limited") == 0


def in_turn(size: int, think: float, at_client: bool, number: int = 40, rtt: float = 0.1) -> Conversation:
    """Requests of 300 bytes, each sent when the whole answer before is there, which it acknowledges."""
    talk = Conversation(rtt, at_client=at_client)
    for n in range(number):
        asked = 0.2 + n * (rtt + think + 1e-3)
        answered = asked + think + (rtt if at_client else 1e-4)
        talk.data(asked, CLIENT, 300 * n, 300 * (n + 1), acked=size * n)
        talk.data(answered, SERVER, size * n, size * (n + 1), acked=300 * (n + 1))
    return talk


@pytest.mark.parametrize("at_client", [False, True], ids=["at the server", "at the client"])
@pytest.mark.parametrize("think", [2e-4, 0.005, 0.03], ids=str)
@pytest.mark.parametrize("size", [200, 2 * MSS, 3 * MSS + 104, 20 * MSS], ids=str)
def test_answers_of_one_size_are_no_send_buffer(tmp_path, size, think, at_client):
    """The flight is flat because the answers are of one size: each waits for its request."""
    _, server = in_turn(size, think, at_client).report(tmp_path)
    assert (server.diagnosis.primary, server.diagnosis.who) == ("application-limited", "receiver")
    assert seconds(server, "application-limited") > 0.9 * sum(each.seconds for each in server.diagnosis.causes)


def test_a_sender_that_a_buffer_holds_does_not_take_turns(tmp_path):
    """The reader says something a round trip; the server's data flow on, with some of them always outstanding."""
    talk = Conversation()
    window, sent, asked = 8 * MSS, 8 * MSS, 0
    talk.data(0.2, SERVER, 0, window)
    for n in range(60 * 4):
        at = 0.3 + n * 0.025
        acked = 2 * MSS * (n + 1)
        if n % 4 == 0:
            talk.data(at, CLIENT, asked, asked + 50, acked=acked)
            asked += 50
        else:
            talk.ack(at, CLIENT, acked, sent=asked)
        talk.data(at + 1e-4, SERVER, sent, sent + 2 * MSS, acked=asked)
        sent += 2 * MSS
    _, server = talk.report(tmp_path)
    assert server.diagnosis.primary == "send-buffer-limited"


@pytest.mark.parametrize(("pause", "held"), [(1e-4, True), (0.012, False)], ids=["with the ACK", "by a clock"])
def test_a_second_write_that_waits_for_the_ack_of_the_first_is_nagle_s(tmp_path, pause, held):
    """A header of 20 bytes, its ACK 40 ms later than the round trip, and with it the body of 300, which is answered."""
    talk = Conversation()
    for n in range(20):
        at, sent = 0.2 + 0.26 * n, 320 * n
        talk.data(at, SERVER, sent, sent + 20, acked=100 * n)
        talk.ack(at + 0.14, CLIENT, sent + 20, sent=100 * n)
        talk.data(at + 0.14 + pause, SERVER, sent + 20, sent + 320, acked=100 * n)
        talk.data(at + 0.2598, CLIENT, 100 * n, 100 * (n + 1), acked=sent + 320)
    _, found = talk.report(tmp_path)
    assert found.diagnosis.primary == "application-limited"
    assert ("Nagle's algorithm" in found.diagnosis.text) == held
    assert ("TCP_NODELAY" in found.diagnosis.remedy) == held
    assert ("delayed-ack-nagle" in {finding.name for finding in found.findings}) == held


def test_a_pause_before_the_last_data_hides_no_packets(tmp_path):
    """The last round begins with a resend of what was acknowledged, 30 s before the last data, and the connection stays
    open for four minutes more: nothing was outstanding in that time, and no packet is missing."""
    talk = Conversation()
    sent = rounds(talk, 0.2, 10)
    talk.data(1.25, SERVER, sent - MSS, sent)
    talk.ack(1.35, CLIENT, sent)
    talk.data(31.25, SERVER, sent, sent + 31)
    talk.ack(31.35, CLIENT, sent + 31)
    talk.data(271.0, CLIENT, 0, 31, acked=sent + 31)
    analysis, found = talk.report(tmp_path)
    assert found.diagnosis.primary == "application-limited"
    assert not [rule for rule in accounted(analysis.conversations)["rule"] if "misses" in rule]
    assert 30.0 == pytest.approx(seconds(found, "application-limited"), abs=0.01)
    assert 31.15 == pytest.approx(found.accounted_s, abs=0.01)
