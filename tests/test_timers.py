"""Is a resend the timer's where a timer has run, and only there; and are skipped identifications losses only where
they can be?"""

from __future__ import annotations

import struct

import captures
import polars as pl
import pytest
from captures import ACK, START_NS, SYN, Packet

import tcpfit
from tcpfit.parameters import estimate
from tcpfit.report import listing

SENDER, RECEIVER = "10.0.0.1", "10.0.0.2"
MSS, RTT_S = 1000, 0.05


class Conversation:
    """Packets at a capture point, in any order; sequence numbers count from the SYN."""

    def __init__(
        self,
        *,
        sack: bool,
        halves_s: tuple[float, float] = (RTT_S, 1e-5),
        options: bytes = b"",
        mss: int = MSS,
        window: int = 1000,
    ) -> None:
        self.packets: list[Packet] = []
        self.window = window
        options += struct.pack(">BBH", 2, 4, mss + 12 * bool(options)) + (b"\x04\x02\x01\x01" if sack else b"")
        self.sent(0, 0, SYN, options=options)
        self.heard(halves_s[0], 1, flags=SYN | ACK, options=options)
        self.sent(sum(halves_s), 1)

    def sent(self, at_s, seq, flags=ACK, payload=0, options=b"", ip_id=0):
        self._add(at_s, SENDER, seq, 0 if flags & SYN else 1, flags, payload, options, ip_id)

    def heard(self, at_s, ack, *blocks, flags=ACK, options=b""):
        if blocks:
            edges = [edge for block in blocks for edge in block]
            options = b"\x01\x01\x05" + struct.pack(f">B{len(edges)}I", 2 + 4 * len(edges), *edges)
        self._add(at_s, RECEIVER, 0 if flags & SYN else 1, ack, flags, 0, options, 0)

    def _add(self, at_s, src, seq, ack, flags, payload, options, ip_id):
        ends = (SENDER, RECEIVER, 40000, 80) if src == SENDER else (RECEIVER, SENDER, 80, 40000)
        datagram = captures.tcp(*ends, seq, ack, flags, payload, options, self.window, ip_id=ip_id)
        frame = captures.link(datagram, captures.ETHERNET)
        self.packets.append(Packet(START_NS + round(at_s * 1e9), frame, len(frame)))

    def analysed(self, path):
        path.write_bytes(captures.pcap(sorted(self.packets, key=lambda packet: packet.time_ns)))
        return tcpfit.analyze(path)


def stop_and_go(talk, start_s, rounds, seq=1):
    """Rounds of one segment, the next sent 20 us after the ACK; the time and the number after them."""
    at_s = start_s
    for _ in range(rounds):
        talk.sent(at_s, seq, payload=MSS)
        seq += MSS
        talk.heard(at_s + RTT_S, seq)
        at_s += RTT_S + 2e-5
    return at_s, seq


def late_resend(tmp_path, pause_s):
    """Twenty segments of which the first is lost; SACKs come for 200 ms after the left edge moved last, and `pause_s`
    after the last of them the first is sent again."""
    talk = Conversation(sack=True)
    start_s, head = stop_and_go(talk, 0.1, 20)
    first = head + MSS
    talk.sent(start_s, head, payload=MSS)
    for n in range(20):
        talk.sent(start_s + 1e-4 * n, first + n * MSS, payload=MSS)
    moved_s = start_s + RTT_S
    talk.heard(moved_s, first)
    for n in range(1, 20):
        last_s = moved_s + 0.2 * n / 19
        talk.heard(last_s, first, (first + MSS, first + (n + 1) * MSS))
    talk.sent(last_s + pause_s, first, payload=MSS)
    talk.heard(last_s + pause_s + RTT_S, first + 20 * MSS)
    return talk.analysed(tmp_path / "late.pcap")


def test_a_host_that_answers_at_once_waited_for_its_timer(tmp_path):
    """250 ms after the segment was sent, the replayed timer's length, and 212 ms after the left edge moved. What three
    SACKed segments ask for this host sends within 20 us."""
    asked = late_resend(tmp_path, 2e-5)
    assert (1, 0) == tuple(asked.flows.row(0, named=True)[name] for name in ("fast_recoveries", "timeouts"))
    waited = late_resend(tmp_path, 0.012)
    assert (0, 1) == tuple(waited.flows.row(0, named=True)[name] for name in ("fast_recoveries", "timeouts"))


def stamps(sent_s, echoed_s):
    """Timestamps of a millisecond: when the segment was sent, and when what it echoes was."""
    return struct.pack(">BBBBII", 1, 1, 8, 10, *(1000 + int(1000 * at_s) for at_s in (sent_s, echoed_s)))


def held_resend(tmp_path, late_s, count=8, timer_s=None):
    """At the receiver, without SACK: rounds of `count` segments over 100 ms, of the last the first is lost. Its resend,
    which the third duplicate ACK asked for, or the timer that has run since it was sent, comes `late_s` after a round
    trip."""
    way_s, rounds = 0.05, 30
    talk = Conversation(sack=False, halves_s=(1e-5, 2 * way_s), options=stamps(0, 0))
    head = 1 + (rounds - 1) * count * MSS
    seq, heard_s = 1, 0.0
    for n in range(rounds):
        sent_s = 0.2 + 2 * way_s * n
        for k in range(count):
            at_s = sent_s + way_s + 5e-4 * k
            if seq != head:
                talk.sent(at_s, seq, payload=MSS, options=stamps(at_s - way_s, heard_s), ip_id=1 + count * n + k)
                talk.heard(at_s + 1e-5, min(seq + MSS, head), options=stamps(at_s, at_s - way_s))
            seq += MSS
        heard_s = sent_s + way_s
    third_s = sent_s + way_s + 3 * 5e-4 + 1e-5
    resent_s = third_s + way_s if timer_s is None else sent_s + timer_s
    came_s = resent_s + way_s + late_s
    talk.sent(came_s, head, payload=MSS, options=stamps(resent_s, third_s), ip_id=1 + count * rounds)
    talk.heard(came_s + 1e-5, seq, options=stamps(came_s, resent_s))
    return talk.analysed(tmp_path / "held.pcap")


def test_a_resend_that_the_path_held_is_not_the_timers(tmp_path):
    """A short timer could have run for the 150 ms and more that the left edge stood; three duplicates had asked."""
    for late_s in (0.003, 0.06, 0.1):
        flow = held_resend(tmp_path, late_s).flows.row(0, named=True)
        assert "receiver" == flow["vantage"]
        assert (1, 0) == (flow["fast_recoveries"], flow["timeouts"]), late_s


@pytest.mark.parametrize("late_s", [0.0, 0.03, 0.1])
def test_by_the_senders_clock_a_timer_ran_no_longer_for_what_held_its_resend(tmp_path, late_s):
    captured = held_resend(tmp_path, late_s, count=3, timer_s=0.35)
    assert captured.flows["vantage"][0] == "receiver"
    assert captured.events.filter(kind="timeout")["value"].to_list() == pytest.approx([0.35], abs=0.002)


def test_no_timer_runs_for_a_millisecond(tmp_path):
    """Without SACK a resend that comes again is the timer's, unless it comes at once."""
    timeouts = {}
    for again_s in (0.0007, 0.3):
        talk = Conversation(sack=False)
        start_s, head = stop_and_go(talk, 0.1, 20)
        for n in range(6):
            talk.sent(start_s + 1e-4 * n, head + n * MSS, payload=MSS)
        for n in range(5):
            talk.heard(start_s + RTT_S + 1e-4 * n, head)
        resent_s = start_s + RTT_S + 3e-4
        talk.sent(resent_s, head, payload=MSS, ip_id=7)
        talk.sent(resent_s + again_s, head, payload=MSS, ip_id=8)
        talk.heard(resent_s + again_s + RTT_S, head + 6 * MSS)
        flow = talk.analysed(tmp_path / "again.pcap").flows.row(0, named=True)
        assert 1 == flow["fast_recoveries"]
        timeouts[again_s] = flow["timeouts"]
    assert {0.0007: 0, 0.3: 1} == timeouts


def test_more_numbers_than_segments_can_be_under_way_are_other_packets(tmp_path):
    """A host that counts all its packets: flights of ten, a step of one each, and others between two: hundreds, or a
    few time and again. Rarely a few may be resends that were lost."""
    for between, often, high in ((600, 1, 0), (3, 1, 0), (3, 10, 3 * 2)):
        talk = Conversation(sack=True, halves_s=(1e-5, RTT_S))
        at_s, seq, ip_id = 0.1, 1, 100
        for flight in range(1, 31):
            for n in range(10):
                talk.sent(at_s + 1e-4 * n, seq, payload=MSS, ip_id=ip_id)
                talk.heard(at_s + 1e-4 * n + 1e-5, seq + MSS)
                seq, ip_id = seq + MSS, ip_id + 1
            at_s, ip_id = at_s + RTT_S, ip_id + (between if flight % often == 0 else 0)
        flow = talk.analysed(tmp_path / "counter.pcap").flows.row(0, named=True)
        assert "receiver" == flow["vantage"]
        assert (0, 0, high) == (flow["lost_segments"], flow["lost_low"], flow["lost_high"]), between


def test_without_a_sample_the_timer_stays_doubled(tmp_path):
    """Two segments are lost, and no timestamps tell which copy an ACK answers: that of the first one's resend gives no
    sample, so the second's timer runs twice as long (RFC 6298, 5, the note on 5.5)."""
    talk = Conversation(sack=False)
    at_s, seq = stop_and_go(talk, 1.0, 20)
    for n in range(2):
        talk.sent(at_s + n * 2e-5, seq + n * MSS, payload=MSS)
    first_s = at_s + 0.25
    talk.sent(first_s, seq, payload=MSS)
    talk.heard(first_s + RTT_S, seq + MSS)
    talk.sent(first_s + RTT_S + 0.5, seq + MSS, payload=MSS)
    talk.heard(first_s + RTT_S + 0.5 + RTT_S, seq + 2 * MSS)
    analysis = talk.analysed(tmp_path / "doubled.pcap")
    timeouts = analysis.events.filter(pl.col("kind") == "timeout")
    assert timeouts["segments"].to_list() == [0, 0]
    assert timeouts["doublings"].to_list() == [0, 1]
    assert pytest.approx([0.25, 0.5], abs=1e-4) == timeouts["value"].to_list()
    said = [listing.details(timeout) for timeout in timeouts.iter_rows(named=True)]
    assert said[0].endswith("timer 250 ms") and said[1].endswith("timer 500 ms, doubled by a series before")
    parameters = estimate(analysis.flows, analysis.events, analysis.rounds)
    assert pytest.approx(0.25, abs=1e-4) == parameters.filter(name="rto")["value"].item()
    for column in ("replayed_s", "replayed_rfc_s"):
        first, second = timeouts[column]
        assert second == pytest.approx(2 * first)


@pytest.mark.parametrize(("silence_s", "expiries"), [(1.0, 1), (3.0, 1), (7.0, 3), (15.0, 4), (10.0, 1)])
def test_series_of_expiries_is_told_by_its_length_where_nothing_is_numbered(tmp_path, silence_s, expiries):
    """At the receiver a hole is filled after a silence: that of three expiries of a timer of a second and more is as
    long as no single one. Three seconds may be one timer's; ten seconds are no number of expiries."""
    talk = Conversation(sack=False, halves_s=(1e-5, RTT_S))
    at_s, seq = 0.1, 1
    for _ in range(20):
        for n in range(4):
            talk.sent(at_s + 1e-4 * n, seq, payload=MSS)
            talk.heard(at_s + 1e-4 * n + 1e-5, seq + MSS)
            seq += MSS
        at_s += RTT_S
    talk.sent(at_s, seq + MSS, payload=MSS)
    talk.heard(at_s + 1e-5, seq)
    at_s += silence_s
    for n in range(2, 7):
        talk.sent(at_s, seq, payload=MSS)
        talk.heard(at_s + 1e-5, seq + n * MSS)
        seq, at_s = seq + n * MSS, at_s + RTT_S
    found = talk.analysed(tmp_path / "series.pcap")
    assert found.flows["timeouts"][0] == expiries
    losses = found.events.filter(pl.col("kind") == "loss").sort("time_ns")
    assert losses["reason"].to_list() == ["hole"] * expiries
    assert losses["confidence"].to_list()[1:] == [0.6] * (expiries - 1)


def test_a_long_timer_at_the_sender_is_one_expiry(tmp_path):
    """All that is sent passes here: a silence of seven times the timer that RFC 6298 asks for is one long timer's."""
    talk = Conversation(sack=False)
    at_s, seq = stop_and_go(talk, 1.0, 20)
    talk.sent(at_s, seq, payload=MSS)
    talk.sent(at_s + 7.0, seq, payload=MSS)
    talk.heard(at_s + 7.0 + RTT_S, seq + MSS)
    flow = talk.analysed(tmp_path / "long.pcap").flows.row(0, named=True)
    assert ("sender", 1, 1) == (flow["vantage"], flow["timeouts"], flow["lost_segments"])
