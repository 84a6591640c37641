"""Do losses hold only those flows that are slower for them?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_clocks import PROBES, Talk

import tcpfit
from tcpfit.diagnosis.heed import heed
from tcpfit.diagnosis.reactions import heed_of

SAMPLES = Path(__file__).resolve().parents[2] / "sample-traces"
OFTEN = set(range(400, 3600, 70))


def heeds(path: Path) -> tuple[bool, bool]:
    """Whether the largest flow of a capture keeps its rate after its recoveries, and in them."""
    evidence = tcpfit.analyze(path).evidence
    largest = int(np.argmax(np.nan_to_num(evidence.column("data_segments"))))
    found = heed_of(evidence)
    return bool(found.heedless[largest]), bool(found.unbroken[largest])


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_losses_do_not_hold_a_pacer_that_goes_on_at_its_rate(tmp_path, end):
    """BBR under 1.4 % of losses: most rounds have one, and none changes what it sends."""
    talk = Talk(0.05, OFTEN, each_s=0.0015)
    talk.run(6.0, (1, 0.0015), gains=PROBES)
    primary, shares = talk.diagnosed(tmp_path, end)
    assert (True, True) == heeds(tmp_path / f"{end}.pcap")
    assert primary in ("unknown", "bottleneck-limited")
    assert shares.get("loss-limited", 0.0) < 0.02
    assert shares.get("application-limited", 0.0) < 0.02


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_four_losses_are_too_few_to_tell(tmp_path, end):
    talk = Talk(0.05, {500, 1700, 2900, 4100}, each_s=0.001)
    talk.run(6.0, (1, 0.001), gains=PROBES)
    talk.diagnosed(tmp_path, end)
    assert (False, False) == heeds(tmp_path / f"{end}.pcap")


@pytest.mark.parametrize(
    "name",
    ["newreno-loss.pcap.gz", "sack-loss-sender.pcap.gz", "sack-loss-receiver.pcap.gz", "bursty-loss.pcap.gz",
     "cubic.pcap.gz", "timeouts.pcap.gz", "ns2-reno.pcap.gz", "ipv6.pcap.gz", "causes/loss.pcap.gz"],
)  # fmt: skip
def test_windows_that_losses_reduce_are_heeded(name):
    assert (False, False) == heeds(SAMPLES / name)


class Course:
    """Rounds of one flow, one each second, in which so many segments were sent."""

    def __init__(self, sent: list[int], is_straight: bool = False) -> None:
        number, self.is_straight = len(sent), is_straight
        self.flow_count, self.flow_begin = np.array([number]), np.array([0])
        self.owner, self.idle = np.zeros(number, np.int64), np.zeros(number)
        self.start = 10**9 * np.arange(number)
        self.until = self.start + 10**9
        self.sent = np.array(sent, np.float64)

    def __len__(self) -> int:
        return len(self.sent)

    def straight(self, flow: int) -> bool:
        return self.is_straight


@pytest.mark.parametrize(
    ("inside", "after", "expected"),
    [(20, 20, (True, True)), (8, 20, (True, False)), (20, 14, (False, False)), (8, 10, (False, False))],
)
def test_what_is_as_fast_after_and_slower_within_waits_for_the_resend(inside, after, expected):
    """A window that is full waits for the hole to be filled, whatever the losses leave of the sender's."""
    course = [20, 20, inside, after, 20] * 6
    start = 10**9 * (np.arange(6) * 5 + 2)
    found = heed(Course(course), np.zeros(6, np.int64), start, start + 10**9)
    assert expected == (found.heedless[0], found.unbroken[0])


def test_recoveries_after_which_all_is_caught_up_cost_nothing():
    start = 10**9 * (np.arange(6) * 5 + 2)
    found = heed(Course([20, 20, 8, 20, 20] * 6, True), np.zeros(6, np.int64), start, start + 10**9)
    assert (True, True) == (found.heedless[0], found.unbroken[0])
    found = heed(Course([20, 20, 8, 10, 20] * 6, True), np.zeros(6, np.int64), start, start + 10**9)
    assert (False, False) == (found.heedless[0], found.unbroken[0])


def test_a_faster_round_elsewhere_does_not_make_recoveries_slow():
    """Under BBR and many losses the few rounds outside of recoveries are those after a probe of the round trip."""
    start = 10**9 * (np.arange(6) * 5 + 2)
    found = heed(Course([40, 20, 20, 20, 20] * 6), np.zeros(6, np.int64), start, start + 10**9)
    assert (True, True) == (found.heedless[0], found.unbroken[0])


@pytest.mark.parametrize(
    ("kept", "straight", "heedless"), [(3, True, True), (3, False, False), (2, True, False), (4, False, True)]
)
def test_fewer_recoveries_do_where_the_data_keep_to_a_line(kept, straight, heedless):
    """Writes that come about once in a round trip under BBR: some rounds have one less."""
    course = [20, 20, 20, 20, 20] * kept + [20, 20, 20, 12, 28] * (6 - kept)
    start = 10**9 * (np.arange(6) * 5 + 2)
    found = heed(Course(course, straight), np.zeros(6, np.int64), start, start + 10**9)
    assert heedless == found.heedless[0]
