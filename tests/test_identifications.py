"""What IPv4 identifications say of losses, and what they do not."""

from __future__ import annotations

import captures
import polars as pl
import pytest
from queue_path import QueuePath
from test_scenarios import Reader

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


def connection(
    start_s: float, port: int, first: int, *answer: tuple[float, int, int], more: int = 0, alone: bool = True
) -> str:
    """A request of 200 bytes and its answer, captured by the client: segments by time, first byte and number.

    Of `more` bytes of the request no acknowledgement is seen before the answer, of none where it is not acknowledged
    `alone`.
    """
    end = 201 + more
    lines = [
        (0.0, f"> S 0:0(0) win 64000 <mss 1000,sackOK,wscale 7> [port {port}]"),
        (0.016, f"< S. 0:0(0) ack 1 win 64000 <mss 1000,sackOK,wscale 7> [port {port}, id {0 if alone else first}]"),
        (0.0161, f"> . 1:1(0) ack 1 win 500 [port {port}]"),
        (0.0162, f"> P. 1:201(200) ack 1 win 500 [port {port}]"),
    ]
    if alone:
        lines.append((0.0324, f"< . 1:1(0) ack 201 win 500 [port {port}, id {first}]"))
    if more:
        lines.append((0.0163, f"> P. 201:{end}({more}) ack 1 win 500 [port {port}]"))
    for time_s, left, number in answer:
        lines.append((time_s, f"< . {left}:{left + 1000}(1000) ack {end} win 500 [port {port}, id {first + number}]"))
        lines.append((time_s + 0.0001, f"> . {end}:{end}(0) ack {left + 1000} win 500 [port {port}]"))
    time_s, left, number = answer[-1]
    done = left + 1000
    lines += [
        (time_s + 0.016, f"< F. {done}:{done}(0) ack {end} win 500 [port {port}, id {first + number + 1}]"),
        (time_s + 0.0161, f"> F. {end}:{end}(0) ack {done + 1} win 500 [port {port}]"),
        (time_s + 0.032, f"< . {done + 1}:{done + 1}(0) ack {end + 1} win 500 [port {port}, id {first + number + 2}]"),
    ]
    return "\n".join(f"{start_s + time_s:.6f} {text}" for time_s, text in sorted(lines))


@pytest.mark.parametrize(
    ("second", "time_s", "asked", "lost", "lost_high"),
    [
        (2, 0.2604, {}, 1, 1),  # the timer has sent it again
        (1, 0.2604, {}, 0, 0),  # the server has thought for as long
        (2, 0.0624, {}, 0, 1),  # too soon for a timer
        (2, 0.2604, {"more": 300}, 0, 0),  # the number may be the acknowledgement's
        (2, 0.2604, {"alone": False}, 0, 0),
    ],
)
def test_the_first_answer_to_a_request_may_have_been_lost(tmp_path, second, time_s, asked, lost, lost_high):
    three = [(0.0326 + 0.001 * n, 1 + 1000 * n, 1 + n) for n in range(3)]
    known = [connection(3.0 * n, 40001 + n, 1000 + 7000 * n, *three) for n in range(3)]
    last = connection(12.0, 40010, 30000, (time_s, 1, second), **asked)
    path = tmp_path / "short.pcap"
    path.write_bytes(captures.pcap(Reader().read("\n".join([*known, last])).packets))
    analysis = tcpfit.analyze(path)
    answers = analysis.flows.filter(dst_port=40010)
    timers = pl.col("timeouts") + pl.col("tail_loss_probes")
    assert (lost, lost, lost_high) == answers.select("lost_segments", timers, "lost_high").row(0)
    assert analysis.flows["lost_segments"].sum() == lost


def rounds_of_four(options):
    """At the receiver: a handshake with these options, and four rounds of 20 ms; the lines, and the next byte."""
    lines = [
        f"+0 < S 0:0(0) win 64000 <{options}>",
        f"+0.0001 > S. 0:0(0) ack 1 win 64000 <{options}>",
        "+0.0199 < . 1:1(0) ack 1 win 500",
    ]
    left = 1
    for _ in range(4):
        for n in range(4):
            lines.append(f"+{0.0131 if n == 0 else 0.0019:.4f} < . {left}:{left + 1000}(1000) ack 1 win 500")
            left += 1000
            lines.append(f"+0.0001 > . 1:1(0) ack {left} win 500")
    return lines, left


def test_the_number_skipped_before_a_timer_s_resend_is_that_of_data_that_turn_out_to_be_missing(tmp_path):
    """Three duplicate ACKs have come by then: it could have been a fast retransmit's. All that was there is
    acknowledged when the next data show a hole before them, and no other number was skipped."""
    lines, left = rounds_of_four("mss 1000,wscale 7")
    hole, new = left, left + 4000
    lines.append(f"+0.0131 < . {hole}:{hole + 1000}(1000) ack 1 win 500 [lost]")
    for n in range(1, 4):
        lines.append(f"+0.0019 < . {hole + 1000 * n}:{hole + 1000 * (n + 1)}(1000) ack 1 win 500")
        lines.append(f"+0.0001 > . 1:1(0) ack {hole} win 500")
    lines += [
        f"+0.0160 < . {new}:{new + 1000}(1000) ack 1 win 500 [lost]",
        f"+0.2100 < . {hole}:{hole + 1000}(1000) ack 1 win 500",
        f"+0.0001 > . 1:1(0) ack {new} win 500",
        f"+0.0200 < . {new + 1000}:{new + 2000}(1000) ack 1 win 500",
        f"+0.0001 > . 1:1(0) ack {new} win 500",
        f"+0.0300 < . {new}:{new + 1000}(1000) ack 1 win 500",
        f"+0.0001 > . 1:1(0) ack {new + 2000} win 500",
    ]
    path = tmp_path / "receiver.pcap"
    path.write_bytes(captures.pcap(Reader().read("\n".join(lines)).packets))
    losses = tcpfit.analyze(path).events.filter(kind="loss")
    assert sorted(losses["left"].to_list()) == [hole, new]


def test_what_was_skipped_with_the_resend_that_began_a_recovery_was_sent_before_it(tmp_path):
    """Two holes; of the new data that duplicate ACKs let go two are lost, and so is the resend of the first hole. That
    of the second passes, and three numbers before it are missing. The new data are known to be missing when others
    pass; with SACK a host fills holes before it sends new data (RFC 6675, 4, NextSeg), so the recovery had them
    outstanding: it is one."""
    lines, left = rounds_of_four("mss 1000,sackOK,wscale 7")

    def data(number, wait_s, lost=False):
        at = left + 1000 * number
        lines.append(f"+{wait_s:.4f} < . {at}:{at + 1000}(1000) ack 1 win 500{' [lost]' if lost else ''}")

    def ack(number, *blocks):
        sack = ",".join(f"sack {left + 1000 * first}:{left + 1000 * last}" for first, last in blocks)
        lines.append(f"+0.0001 > . 1:1(0) ack {left + 1000 * number} win 500{f' <{sack}>' if sack else ''}")

    data(0, 0.0131, lost=True)
    data(1, 0.0001)
    ack(0, (1, 2))
    data(2, 0.0019, lost=True)
    data(3, 0.0001)
    ack(0, (3, 4), (1, 2))
    for last in (5, 6, 7, 8):
        data(last - 1, 0.0019)
        ack(0, (3, last), (1, 2))
    data(8, 0.0090, lost=True)
    data(9, 0.0001, lost=True)
    data(0, 0.0010, lost=True)
    data(2, 0.0009)
    ack(0, (1, 8))
    data(10, 0.0019)
    ack(0, (10, 11), (1, 8))
    data(0, 0.0199)
    ack(8, (10, 11))
    data(8, 0.0009)
    ack(9, (10, 11))
    data(9, 0.0009)
    ack(11)
    path = tmp_path / "receiver.pcap"
    path.write_bytes(captures.pcap(Reader().read("\n".join(lines)).packets))
    events = tcpfit.analyze(path).events
    lost = [left + 1000 * number for number in (0, 0, 2, 8, 9)]
    assert lost == sorted(events.filter(kind="loss")["left"].to_list())
    recovery = events.filter(kind="recovery")
    assert [(left, left + 10_000)] == recovery.select("left", "right").rows()


@pytest.mark.parametrize(("first", "round_trip_s"), [(1, None), (1001, 0.05)])
def test_data_that_come_without_the_first_answer_the_handshake(tmp_path, first, round_trip_s):
    """The client's ACK and what it had sent before were lost: the first data may have been sent by its timer,
    others come before that runs out."""
    lines = [
        "+0 < S 0:0(0) win 64000 <mss 1000,wscale 7>",
        "+0.0001 > S. 0:0(0) ack 1 win 64000 <mss 1000,wscale 7>",
        "+0.0497 < . 1:1(0) ack 1 win 500 [lost]",
        "+0.0001 < . 1:1001(1000) ack 1 win 500 [lost]",
        f"+0.0001 < . {first}:{first + 1000}(1000) ack 1 win 500",
        f"+0.0001 > . 1:1(0) ack {1 if first > 1 else 1001} win 500",
    ]
    path = tmp_path / "receiver.pcap"
    path.write_bytes(captures.pcap(Reader().read("\n".join(lines)).packets))
    flow = tcpfit.analyze(path).flows.row(0, named=True)
    assert "receiver" == flow["vantage"]
    assert flow["handshake_rtt_s"] == (round_trip_s and pytest.approx(round_trip_s))
