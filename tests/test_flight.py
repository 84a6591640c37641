"""How much was outstanding when the sender learnt of a loss?"""

from __future__ import annotations

from pathlib import Path

import captures
import pytest
from test_scenarios import Reader

import tcpfit

PATH_S, MSS = 0.05, 1000


def stamp(time_s: float) -> int:
    """A clock of 1,000 ticks a second."""
    return 1000 + int(1000 * time_s + 1e-6)


class Capture:
    """Packets by when they pass one end of the path; times are those at which they were sent."""

    def __init__(self, at_receiver: bool, options: str = "") -> None:
        self.at_receiver, self.lines = at_receiver, []
        way_s = PATH_S / 2
        offer = f"win 64000 <mss {MSS + 12},{options}wscale 7,TS val"
        self._sent(0.0, f"> S 0:0(0) {offer} {stamp(0)} ecr 0>")
        self._answered(way_s, f"< S. 0:0(0) ack 1 {offer} {stamp(way_s)} ecr {stamp(0)}>")
        self._sent(PATH_S, f"> . 1:1(0) ack 1 win 500 <TS val {stamp(PATH_S)} ecr {stamp(way_s)}>")

    def send(self, number: int, now_s: float, heard_s: float, lost: bool = False) -> None:
        """Segment `number`, after the receiver's packet of `heard_s`."""
        left = 1 + MSS * number
        stamps = f"<TS val {stamp(now_s)} ecr {stamp(heard_s)}>"
        if not (lost and self.at_receiver):
            self._sent(now_s, f"> . {left}:{left + MSS}({MSS}) ack 1 win 500 {stamps}")

    def acknowledge(self, number: int, now_s: float, heard_s: float, sack: str = "") -> None:
        """All segments below `number` have come, the last one in order at `heard_s`."""
        stamps = f"TS val {stamp(now_s)} ecr {stamp(heard_s)}{sack}"
        self._answered(now_s, f"< . 1:1(0) ack {1 + MSS * number} win 500 <{stamps}>")

    def _sent(self, now_s: float, line: str) -> None:
        self.lines.append((now_s + (PATH_S / 2 if self.at_receiver else 0.0), line))

    def _answered(self, now_s: float, line: str) -> None:
        self.lines.append((now_s + (1e-6 if self.at_receiver else PATH_S / 2), line))

    def flights(self, path: Path) -> list[float]:
        """Of the recoveries that are found."""
        text = "\n".join(f"{time_s:.6f} {line}" for time_s, line in sorted(self.lines))
        path.write_bytes(captures.pcap(Reader().read(text).packets))
        return tcpfit.analyze(path).events.filter(kind="recovery")["flight"].to_list()


def one_acknowledgement(at_receiver: bool) -> Capture:
    """A receiver answers eight of ten segments with one ACK and, in the same tick, the tenth with a duplicate: the
    ninth is lost. Before the duplicate comes the ACK has let eight more go; the first two duplicates let one go each
    (RFC 3042)."""
    way_s, gap_s, wait_s = PATH_S / 2, 2e-5, 5e-6
    capture = Capture(at_receiver)
    send, acknowledge = capture.send, capture.acknowledge
    first_s = PATH_S + 2e-4
    for n in range(10):
        send(n, first_s + gap_s * n, way_s, lost=n == 8)
    heard_s = first_s + way_s + 10 * gap_s
    acknowledge(8, heard_s, first_s)
    acknowledge(8, heard_s + 2e-4, first_s)
    second_s = heard_s + way_s + wait_s
    for n in range(8):
        send(10 + n, second_s + gap_s * n, heard_s)
        acknowledge(8, second_s + way_s + gap_s * n + wait_s, first_s)
    send(18, second_s + 2e-4, heard_s)
    acknowledge(8, second_s + way_s + 2e-4 + wait_s, first_s)
    third_s = second_s + PATH_S + 2 * wait_s
    send(19, third_s, second_s + way_s)
    acknowledge(8, third_s + way_s + wait_s, first_s)
    send(8, third_s + gap_s, second_s + way_s)
    acknowledge(20, third_s + way_s + gap_s + wait_s, third_s)
    return capture


@pytest.mark.parametrize("at_receiver", [False, True], ids=["sender", "receiver"])
def test_flight_is_what_the_ack_before_the_first_duplicate_let_go(tmp_path, at_receiver):
    assert one_acknowledgement(at_receiver).flights(tmp_path / "flight.pcap") == [10.0]


@pytest.mark.parametrize(("duplicates", "flight"), [(3, 16.0), (10, 9.0)])
@pytest.mark.parametrize("at_receiver", [False, True], ids=["sender", "receiver"])
def test_flight_of_a_host_that_waits_for_more_duplicates_is_that_of_the_last_three(
    tmp_path, at_receiver, duplicates, flight
):
    """The first of sixteen segments is lost, and the window has no room for more."""
    way_s, gap_s = PATH_S / 2, 2e-3
    capture = Capture(at_receiver, "sackOK,")
    first_s = PATH_S + 2e-4
    for n in range(16):
        capture.send(n, first_s + gap_s * n, way_s, lost=n == 0)
    for n in range(1, 16):
        heard_s = first_s + gap_s * n + way_s
        capture.acknowledge(0, heard_s, 0.0, f",sack {1 + MSS}:{1 + MSS * (n + 1)}")
        if n == duplicates:
            again_s, asked_s = heard_s + way_s + 1e-5, heard_s
    capture.send(0, again_s, asked_s)
    capture.acknowledge(16, max(again_s, first_s + 15 * gap_s) + way_s + 1e-5, again_s)
    assert capture.flights(tmp_path / "flight.pcap") == [flight]


def test_what_duplicate_acks_had_told_is_not_in_flight_once_a_recovery_was_taken_back(tmp_path):
    # 11 outstanding and 9 duplicate ACKs; the ACK of one more takes the second recovery back and begins the third
    trace = Path(__file__).parent / "scenarios" / "eifel-within-a-tick.trace"
    path = tmp_path / "taken-back.pcap"
    path.write_bytes(captures.pcap(Reader().read(trace.read_text()).packets))
    flights = tcpfit.analyze(path).events.filter(kind="recovery").sort("time_ns")["flight"].to_list()
    assert flights[1:] == [11.0, 1.0]
