"""Is every silence in the table, with its length and its cause?"""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from test_timers import MSS, RTT_S, Conversation, stamps

import tcpfit
from tcpfit.diagnosis import silences
from tcpfit.diagnosis.silences import _outside
from tcpfit.diagnosis.stalls import stalls

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "sample-traces"
TRACES = ROOT / ".." / "shared" / "traces"


def of_largest(path: Path, src: str | None = None):
    analysis = tcpfit.analyze(path, segments=True)
    flows = analysis.flows if src is None else analysis.flows.filter(pl.col("src") == src)
    row = flows.sort("data_bytes").tail(1).row(0, named=True)
    return analysis, row, stalls(row, analysis.events, analysis.segments)


def kernel_timeouts(folder: Path, truth: dict) -> list[float]:
    """When the sender's kernel entered Loss, seconds."""
    with gzip.open(folder / "kernel_events.csv.gz", "rt") as file:
        return [
            float(row["time"])
            for row in csv.DictReader(file)
            if (row["event"], row["value"]) == ("tcp_cong_state_set", "4")
            and int(row["sport"]) == truth["flows"][0]["sport"]
        ]


def times_of_data(path: Path, src: str) -> np.ndarray:
    """When data segments of `src` passed, seconds."""
    segments = tcpfit.analyze(path, segments=True).segments
    return segments.filter((pl.col("src") == src) & (pl.col("payload") > 0))["time_ns"].to_numpy() / 1e9


def test_a_reader_that_stops_makes_stalls_of_its_zero_windows():
    analysis, row, found = of_largest(SAMPLES / "slow-reader.pcap.gz")
    shut = [stall for stall in found if stall.cause == "zero-window"]
    assert len(shut) == row["zero_window_episodes"]
    lasted = analysis.events.filter(pl.col("kind") == "zero_window")["value"].to_numpy()
    # the silence begins with the data that filled the window, up to two round trips before the window was seen closed
    silent = sum(stall.length_s for stall in shut)
    assert lasted.sum() < silent < lasted.sum() + len(shut) * 2 * row["rtt_mean_s"]


def test_every_timeout_is_a_stall_with_its_timer():
    analysis, row, found = of_largest(SAMPLES / "timeouts.pcap.gz")
    timeouts = [stall for stall in found if stall.cause == "timeout"]
    assert len(timeouts) == row["timeouts"]
    assert all(stall.timer_s and stall.timer_s > 0.2 for stall in timeouts)
    assert {stall.detail for stall in timeouts} <= {
        "unanswered",
        "ack-lost",
        "needless",
        "back-off",
        "double-loss",
        "small-window",
        "tail",
        "continuous-loss",
        "other",
    }


def test_what_duplicate_acks_told_of_was_outstanding(tmp_path):
    """Five segments were sent, three duplicate ACKs came, and the host waited for its timer: no small window."""
    talk = Conversation(sack=False)
    for number in range(5):
        talk.sent(0.1 + 1e-4 * number, 1 + MSS * number, payload=MSS)
    for number in range(3):
        talk.heard(0.1 + RTT_S + 1e-4 * (number + 1), 1)
    talk.sent(1.3, 1, payload=MSS)
    talk.heard(1.3 + RTT_S, 1 + 5 * MSS)
    talk.sent(2.5, 1 + 5 * MSS, payload=MSS)
    talk.heard(2.5 + RTT_S, 1 + 6 * MSS)
    path = tmp_path / "unheeded.pcap"
    talk.analysed(path)
    _, row, found = of_largest(path)
    assert row["timeouts"] == 1
    assert ["other"] == [stall.detail for stall in found if stall.cause == "timeout"]


def test_stalls_are_longer_than_two_round_trips_or_the_timer():
    _, row, found = of_largest(SAMPLES / "slow-reader.pcap.gz")
    least = min(2 * row["rtt_mean_s"], row["rto_s"])
    assert all(stall.length_s > least for stall in found if stall.cause != "timeout")


@pytest.mark.skipif(not TRACES.is_dir(), reason="the traces with truth are not here")
def test_kernel_timeouts_are_in_the_table_with_their_length():
    """A stall ends at every entry of the kernel into Loss, and is as long as the sender was silent before it."""
    missed, off, all_of_them = [], [], 0
    for path in sorted(TRACES.glob("*/truth.json")):
        truth = json.loads(path.read_text())
        if len(truth["flows"]) != 1:
            continue
        flow = truth["flows"][0]
        kernel = kernel_timeouts(path.parent, truth)
        if not kernel:
            continue
        sender = next(path.parent.glob("sender.pcap*"))
        _, _, found = of_largest(sender, flow["src"])
        timeouts = {stall.end_ns / 1e9: stall for stall in found if stall.cause == "timeout"}
        sent = times_of_data(sender, flow["src"])
        for time in kernel:
            all_of_them += 1
            after = int(np.searchsorted(sent, time - 1e-3))
            near = [stall for end, stall in timeouts.items() if abs(end - time) < 0.02]
            if not near:
                missed.append((path.parent.name, time))
            elif abs(near[0].length_s / (sent[after] - sent[after - 1]) - 1) > 0.1:
                off.append((path.parent.name, time))
    assert all_of_them > 90
    assert missed == []
    assert off == []


@pytest.mark.parametrize(
    "name", ["timeouts.pcap.gz", "slow-reader.pcap.gz", "bursty-loss.pcap.gz", "short-web.pcap.gz"]
)
def test_events_show_the_stalls_that_packets_show(name):
    """Every timeout, probe and zero window that the packets tell is there without them, as long as the timer ran."""
    analysis = tcpfit.analyze(SAMPLES / name, segments=True)
    shown = silences(analysis.flows, analysis.events, analysis.rounds)
    for row in analysis.flows.to_dicts():
        own = shown.filter(pl.col("flow") == row["flow"])
        for stall in stalls(row, analysis.events, analysis.segments):
            if stall.cause not in ("timeout", "probe") or stall.detail == "ack-lost" or stall.frame_after is None:
                continue
            same = own.filter((pl.col("after") == stall.frame_after) & (pl.col("cause") == stall.cause))
            assert same.height == 1
            if stall.timer_s is not None:
                assert same["length_s"][0] == pytest.approx(stall.timer_s)
    expiries = analysis.events.filter((pl.col("kind") == "timeout") & (pl.col("reason") != "syn")).height
    lost = (shown["detail"] == "ack-lost").fill_null(False).sum()
    assert shown.filter(pl.col("cause") == "timeout").height == expiries + lost
    assert shown.filter(pl.col("cause") == "zero-window").height == analysis.flows["zero_window_episodes"].sum()


@pytest.mark.parametrize("name", ["slow-reader", "causes/stalled", "timeouts", "causes/application"])
def test_no_time_is_in_two_stalls(name):
    """A pause while the window is closed, or a timer runs, is that stall and no other."""
    analysis = tcpfit.analyze(SAMPLES / f"{name}.pcap.gz")
    shown = silences(analysis.flows, analysis.events, analysis.rounds).sort("flow", "start_ns")
    end = pl.col("start_ns") + (1e9 * pl.col("length_s")).round().cast(pl.Int64)
    overlap = (end.shift(1) - pl.col("start_ns")).over("flow")
    assert shown.filter(overlap > 1000).height == 0


def test_a_pause_is_what_is_left_between_other_stalls():
    def outside(spans, covers):
        return [
            x.tolist()
            for x in _outside(
                *(tuple(np.array(part, np.int64) for part in zip(*some, strict=True)) for some in (spans, covers))
            )
        ]

    spans = [(0, 10, 50), (0, 60, 70), (1, 10, 20), (3, 0, 5)]
    covers = [(0, 20, 30), (0, 25, 35), (0, 60, 70), (2, 10, 20), (3, 5, 9)]
    assert [[0, 0, 1, 3], [10, 35, 10, 0], [20, 50, 20, 5]] == outside(spans, covers)
    # pauses that touch are one
    assert [[0], [10], [30]] == outside([(0, 10, 20), (0, 20, 30)], [(1, 0, 99)])


def test_the_json_has_the_stalls_of_a_flow():
    flow = tcpfit.analyze(SAMPLES / "slow-reader.pcap.gz").to_dict()["captures"][0]["flows"][0]
    assert flow["stalls"][0].keys() == {"start_s", "length_s", "cause", "detail", "outstanding_bytes", "frames"}
    assert len([stall for stall in flow["stalls"] if stall["cause"] == "zero-window"]) == 91
    assert [stall["start_s"] for stall in flow["stalls"]] == sorted(stall["start_s"] for stall in flow["stalls"])
    assert all(0 <= stall["start_s"] <= flow["duration_s"] for stall in flow["stalls"])


@pytest.mark.skipif(not TRACES.is_dir(), reason="the traces with truth are not here")
def test_kernel_timeouts_are_found_at_the_receiver_but_for_few():
    """What was sent last and lost leaves no trace there, so that not every silence has the sender's length."""
    timeouts = found = same = 0
    for path in sorted(TRACES.glob("*/truth.json")):
        truth = json.loads(path.read_text())
        kernel = kernel_timeouts(path.parent, truth)
        if len(truth["flows"]) != 1 or not kernel:
            continue
        sent = times_of_data(next(path.parent.glob("sender.pcap*")), truth["flows"][0]["src"])
        _, _, table = of_largest(next(path.parent.glob("receiver.pcap*")), truth["flows"][0]["src"])
        for time in kernel:
            after = int(np.searchsorted(sent, time - 1e-3))
            there = time + truth["summary"]["base_rtt_ms"] / 2e3
            near = [stall for stall in table if stall.cause == "timeout" and abs(stall.end_ns / 1e9 - there) < 0.04]
            silent = sent[after] - sent[after - 1]
            timeouts += 1
            found += bool(near)
            same += any(abs(stall.length_s / silent - 1) <= 0.1 for stall in near)
    assert timeouts > 90
    assert found >= 0.98 * timeouts
    assert same >= 0.85 * timeouts


AT_RECEIVER = (1e-5, RTT_S)
SCALE_7 = b"\1\3\3\7"


class Arrivals(Conversation):
    """At the receiver: segments that come half a round trip after they were sent, or later, and their ACKs."""

    def __init__(self, stamped: bool = True) -> None:
        self.stamped, self.edge, self.above = stamped, 1, set[int]()
        super().__init__(sack=False, halves_s=AT_RECEIVER, options=SCALE_7 + self.options(0.0, 0.0))

    def options(self, sent_s: float, echoed_s: float) -> bytes:
        return stamps(sent_s, echoed_s) if self.stamped else b""

    def comes(self, sent_s: float, number: int, late_s: float = 0.0, again: bool = False) -> None:
        """Segment `number`, sent then; it comes so much later than others. `again`: a copy that the network made."""
        at_s = sent_s + RTT_S / 2 + late_s
        self.sent(at_s, 1 + number * MSS, payload=MSS, options=self.options(sent_s, sent_s), ip_id=10 + number)
        if not again:
            self.above.add(1 + number * MSS)
        while self.edge in self.above:
            self.edge += MSS
        self.heard(at_s + 1e-5, self.edge, options=self.options(at_s, sent_s))

    def rounds(self, at_s: float, first: int, count: int, size: int = 8) -> tuple[float, int]:
        """So many rounds of a window; when the next could begin, and with which segment."""
        for _ in range(count):
            for n in range(size):
                self.comes(at_s + 1e-3 * n, first + n)
            at_s, first = at_s + RTT_S, first + size
        return at_s, first

    def stalls(self, folder: Path) -> list[tuple[str, float]]:
        analysis = self.analysed(folder / "receiver.pcap")
        row = analysis.flows.row(0, named=True)
        assert "receiver" == row["vantage"]
        found = stalls(row, analysis.events, tcpfit.analyze(folder / "receiver.pcap", segments=True).segments)
        return [(stall.cause, round(stall.length_s, 2)) for stall in found]


@pytest.mark.parametrize("late_s", [0.15, 0.3])
def test_a_copy_in_a_pause_does_not_end_it(tmp_path, late_s):
    """The network's copies of some segments come while the application pauses for 0.6 s."""
    talk = Arrivals()
    at_s, number = talk.rounds(0.2, 0, 20)
    for n in (number - 6, number - 4, number - 1):
        talk.comes(at_s - RTT_S + 1e-3 * (n % 8), n, late_s, again=True)
    talk.rounds(at_s + 0.6, number, 20)
    assert [("application", 0.64)] == talk.stalls(tmp_path)


def test_data_that_the_path_held_were_no_pause(tmp_path):
    """All segments of a round come 0.3 s late, in order; their timestamps say when they were sent."""
    talk = Arrivals()
    at_s, number = talk.rounds(0.2, 0, 20)
    for n in range(8):
        talk.comes(at_s + 1e-3 * n, number + n, 0.3)
    talk.rounds(at_s + 0.3 + RTT_S, number + 8, 20)
    assert [("delay", 0.34)] == talk.stalls(tmp_path)


def test_data_that_were_overtaken_and_came_late_were_no_pause(tmp_path):
    """Without timestamps: of a round two come 0.08 s after the rest, and the next round a round trip after these."""
    talk = Arrivals(stamped=False)
    at_s, number = talk.rounds(0.2, 0, 20)
    for n in (2, 3):
        talk.comes(at_s + 1e-3 * n, number + n)
    for n in (0, 1):
        talk.comes(at_s + 1e-3 * n, number + n, 0.08)
    talk.rounds(at_s + 0.08 + RTT_S, number + 4, 20)
    assert [("delay", 0.13)] == talk.stalls(tmp_path)
