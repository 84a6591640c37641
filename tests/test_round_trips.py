"""Are round trips at the receiver those that the sender has?"""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import captures
import polars as pl
import pytest
from captures import ACK, START_NS, SYN, Packet
from queue_path import QueuePath

import tcpfit

SENDER, RECEIVER = "10.0.0.1", "10.0.0.2"
ONE_WAY_S, SPACING_S, PAUSE_S = 0.025, 0.002, 0.3
BURST, BURSTS, MSS = 10, 30, 1000


def bursts(path, tick_s):
    """A capture at the receiver of an application that writes ten segments at once, and a slow link spaces them."""
    packets = []

    def add(time_s, src, seq, ack, flags, stamps, payload=0):
        dst = RECEIVER if src == SENDER else SENDER
        options = b"\x02\x04" + struct.pack(">H", MSS + 12) if flags & SYN else b""
        options += b"\x01\x01\x08\x0a" + struct.pack(">II", *(1000 + int(at / tick_s) for at in stamps))
        ports = (40000, 80) if src == SENDER else (80, 40000)
        ip_id = len(packets) if src == SENDER else 0
        datagram = captures.tcp(src, dst, *ports, seq, ack, flags, payload, options, ip_id=ip_id)
        frame = captures.link(datagram, captures.ETHERNET)
        packets.append(Packet(START_NS + round(time_s * 1e9), frame, len(frame)))

    way = ONE_WAY_S
    add(way, SENDER, 0, 0, SYN, (0.0, 0.0))
    add(way, RECEIVER, 0, 1, SYN | ACK, (way, 0.0))
    add(3 * way, SENDER, 1, 1, ACK, (2 * way, way))
    seq, heard_s = 1, way
    for burst in range(BURSTS):
        written_s = 0.1 + PAUSE_S * burst + 0.0003 * (burst % 7)
        for place in range(BURST):
            arrived_s = written_s + way + SPACING_S * place
            add(arrived_s, SENDER, seq, 1, ACK, (written_s, heard_s), payload=MSS)
            seq += MSS
            add(arrived_s + 1e-5, RECEIVER, 1, seq, ACK, (arrived_s, written_s))
        heard_s = arrived_s
    path.write_bytes(captures.pcap(packets))


@pytest.mark.parametrize(
    ("tick_s", "mean_s", "p95_s"),
    [
        # the sender's clock says that all were sent at once: the last has waited for the nine before it
        (0.001, 0.059, 0.068),
        (0.004, 0.059, 0.068),
        # a clock of ten ticks a second says nothing of it
        (0.1, 0.050, 0.050),
    ],
)
def test_queue_before_the_receiver_is_told_by_the_senders_clock(tmp_path, tick_s, mean_s, p95_s):
    path = tmp_path / "bursts.pcap"
    bursts(path, tick_s)
    (flow,) = tcpfit.analyze(path).flows.to_dicts()
    assert flow["vantage"] == "receiver"
    assert flow["rtt_samples"] == BURST * BURSTS
    # within two ticks nothing is put right, and in its first half second the clock is learnt
    assert flow["rtt_mean_s"] == pytest.approx(mean_s, abs=0.0025)
    assert flow["rtt_p95_s"] == pytest.approx(p95_s, abs=0.005)
    assert flow["rtt_min_s"] == pytest.approx(2 * ONE_WAY_S, abs=0.001)


def at_both_ends(path: QueuePath, folder: Path) -> list[tcpfit.Analysis]:
    """What the captures at the sender and at the receiver show, each known to be there."""
    path.run(folder)
    ends = [tcpfit.analyze(folder / f"{end}.pcap") for end in ("sender", "receiver")]
    assert [end.flows["vantage"][0] for end in ends] == ["sender", "receiver"]
    return ends


# a path of 50 ms that holds 40 segments
LINK = {"rate": 800, "way_s": 0.025}


@pytest.mark.parametrize("apart", [0.0, 5e-5, -5e-5])
@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_round_trip_of_an_application_that_pauses_has_what_its_link_takes(tmp_path, at_once, apart):
    # no ACK lets anything go: a segment takes 5 ms on the link, the path's own round trip 16, and more are sent at once
    written = range(at_once, 20_000, at_once)
    sender, receiver = at_both_ends(
        QueuePath(
            rate=200.0,
            way_s=0.008,
            stamped=True,
            apart=apart,
            pauses={number: 0.0503 + 0.0007 * (number % 5) for number in written},
            seconds=150.0,
        ),
        tmp_path,
    )
    told, seen = (end.flows["rtt_mean_s"][0] for end in (receiver, sender))
    assert seen == pytest.approx(0.016 + 0.0025 * (1 + at_once), rel=0.03)
    # but for a tick
    assert told == pytest.approx(seen, abs=0.001)


@pytest.mark.parametrize(("at_once", "less_s"), [(1, 0.004), (2, 0.0), (6, 0.0), (10, 0.0), (20, 0.0)])
def test_without_timestamps_what_is_sent_at_once_after_a_rest_has_waited_for_each_other(tmp_path, at_once, less_s):
    # of single segments nothing tells how long the link takes for each: 4 ms
    path = QueuePath(
        rate=250.0,
        way_s=0.01,
        window=40,
        pushes=True,
        pauses={number: 0.151 + 0.003 * (number % 7) for number in range(at_once, 20_000, at_once)},
        seconds=60.0,
    )
    told, seen = (end.flows["rtt_mean_s"][0] for end in reversed(at_both_ends(path, tmp_path)))
    assert seen == pytest.approx(0.02 + 0.002 * (1 + at_once), rel=0.15)
    assert told == pytest.approx(seen - less_s, rel=0.01)


@pytest.mark.parametrize(
    "path",
    [
        # a queue that overflows, again and again, told by third duplicates, with SACK and without
        QueuePath(**LINK, queue=40, threshold=50, seconds=40),
        QueuePath(**LINK, queue=40, threshold=50, seconds=40, sack=True),
        # slow start that goes on until the queue overflows
        QueuePath(**LINK, queue=120, seconds=6),
        # a queue that empties after each loss
        QueuePath(**LINK, threshold=60, lost=frozenset(range(300, 20_000, 900)), seconds=25),
        # nothing is lost, the receiver's window fills the queue
        QueuePath(**LINK, window=90),
        # losses on a path that is never full, and senders that have no more to send: no queue
        QueuePath(rate=8000, way_s=0.025, threshold=50, lost=frozenset(range(300, 20_000, 400))),
        QueuePath(**LINK, buffer=30),
        QueuePath(**LINK, buffer=6),
    ],
    ids=["overflow", "sack", "slow-start", "emptied", "window", "losses", "buffer", "small-buffer"],
)
def test_queue_of_a_flow_without_timestamps_is_told_by_what_it_lost(tmp_path, path):
    ends = at_both_ends(path, tmp_path)
    sender, receiver = (end.flows.row(0, named=True) for end in ends)
    assert receiver["rtt_samples"] == pytest.approx(sender["rtt_samples"], rel=0.1)
    assert receiver["rtt_mean_s"] == pytest.approx(sender["rtt_mean_s"], rel=0.07)
    assert receiver["rtt_p95_s"] == pytest.approx(sender["rtt_p95_s"], rel=0.07)
    assert receiver["rtt_min_s"] == pytest.approx(2 * path.way_s, rel=0.02)
    longest = [end.rounds["rtt_s"].max() for end in ends]
    assert longest[1] == pytest.approx(longest[0], rel=0.2)


@pytest.mark.parametrize(
    "path",
    [
        # slow start goes on until the queue overflows: in the recovery from that it empties, and half a window of ACKs
        # lets nothing go
        QueuePath(**LINK, queue=120, seconds=6, sack=True, stamped=True),
        QueuePath(**LINK, queue=40, threshold=50, seconds=40, sack=True, stamped=True),
        QueuePath(**LINK, threshold=60, lost=frozenset(range(300, 20_000, 900)), seconds=25, sack=True, stamped=True),
        QueuePath(**LINK, queue=40, threshold=50, seconds=40, stamped=True),
    ],
    ids=["slow-start", "overflow", "emptied", "no-sack"],
)
def test_round_trip_in_a_recovery_is_that_of_what_is_acknowledged(tmp_path, path):
    sender, receiver = (end.flows.row(0, named=True) for end in at_both_ends(path, tmp_path))
    assert receiver["rtt_mean_s"] == pytest.approx(sender["rtt_mean_s"], rel=0.015)
    assert receiver["rto_s"] == pytest.approx(sender["rto_s"], rel=0.01)


@pytest.mark.parametrize(
    "path",
    [
        QueuePath(**LINK, queue=40, threshold=50, seconds=38),
        QueuePath(**LINK, queue=40, threshold=50, seconds=38, sack=True),
        # losses in slow start, while it fills the queue
        QueuePath(**LINK, lost=frozenset([250, 300, 350, 480]), seconds=12),
    ],
    ids=["overflow", "sack", "slow-start"],
)
def test_windows_and_loss_events_of_a_flow_without_timestamps_are_the_senders(tmp_path, path):
    path.run(tmp_path)
    found = []
    for end in ("sender", "receiver"):
        events = tcpfit.analyze(tmp_path / f"{end}.pcap").events
        rows = {kind: events.filter(pl.col("kind") == kind) for kind in ("recovery", "loss", "loss_event")}
        found.append((rows["recovery"], rows["loss"], rows["loss_event"].height))
    (near, lost_near, events_near), (far, lost_far, events_far) = found
    assert near["left"].to_list() == far["left"].to_list()
    # other senders let a segment go for each of the first two duplicates (RFC 3042)
    assert far["flight"].to_numpy() == pytest.approx(near["flight"].to_numpy(), abs=2.5)
    assert lost_far["left"].to_list() == lost_near["left"].to_list()
    first = pl.col("left").is_in(near["left"].to_list())
    flight = lost_near.filter(first)["flight"].to_numpy()
    assert lost_far.filter(first)["flight"].to_numpy() == pytest.approx(flight, rel=0.15)
    # what was outstanding had to pass the link before the segment that was lost
    assert lost_far.filter(first)["value"].to_numpy() == pytest.approx(flight / path.rate, rel=0.15)
    assert events_far == events_near


LOSSES = frozenset(range(300, 6000, 150))


@pytest.mark.parametrize("slow_s", [0.002, 0.005, 0.01, 0.02])
@pytest.mark.parametrize(
    ("path", "unknown"),
    [
        # the second resend shows it; for a host that waits for more than three duplicates the first may have
        (QueuePath(rate=8000, way_s=0.025, threshold=50, lost=LOSSES), 1),
        (QueuePath(rate=8000, way_s=0.025, threshold=50, lost=LOSSES, sack=True), 1),
        # what the window lets go shows it
        (QueuePath(rate=8000, way_s=0.025, window=24, lost=LOSSES), 0),
        (QueuePath(rate=8000, way_s=0.025, window=24, lost=LOSSES, numbered=False), 0),
    ],
    ids=["losses", "sack", "window", "not-numbered"],
)
def test_a_slow_handshake_does_not_hide_what_asked_for_resends(tmp_path, path, unknown, slow_s):
    path = replace(path, slow_s=slow_s)
    path.run(tmp_path)
    near, far = (tcpfit.analyze(tmp_path / f"{end}.pcap") for end in ("sender", "receiver"))
    recoveries, found = (end.events.filter(kind="recovery")["left"].to_list() for end in (near, far))
    assert len(recoveries) >= 30
    assert recoveries[unknown:] == found[-len(recoveries) + unknown :]
    assert abs(far.flows["lost_segments"][0] - near.flows["lost_segments"][0]) <= unknown
    assert far.flows["rtt_mean_s"][0] == pytest.approx(near.flows["rtt_mean_s"][0], rel=0.03)


@pytest.mark.parametrize("sack", [False, True])
def test_a_handshake_that_takes_five_times_as_long_hides_it_until_three_resends_have_come(tmp_path, sack):
    path = QueuePath(rate=8000, way_s=0.025, threshold=50, lost=LOSSES, sack=sack, slow_s=0.2)
    path.run(tmp_path)
    near, far = (tcpfit.analyze(tmp_path / f"{end}.pcap") for end in ("sender", "receiver"))
    recoveries, found = (end.events.filter(kind="recovery")["left"].to_list() for end in (near, far))
    assert len(recoveries) >= 30
    assert recoveries[2:] == found
    assert far.rounds["rtt_s"].median() == pytest.approx(near.rounds["rtt_s"].median(), rel=0.03)


def test_round_trip_of_a_loss_is_that_of_when_the_segment_was_sent(tmp_path):
    path = QueuePath(**LINK, queue=40, threshold=50, seconds=38)
    path.run(tmp_path)
    events = tcpfit.analyze(tmp_path / "sender.pcap").events
    recoveries = events.filter(pl.col("kind") == "recovery")["left"].to_list()
    losses = events.filter((pl.col("kind") == "loss") & pl.col("left").is_in(recoveries))
    # once its fate is known the queue has emptied, and round trips are half as long
    assert losses["value"][1:].to_numpy() == pytest.approx(losses["flight"][1:].to_numpy() / path.rate, rel=0.1)


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        (QueuePath(**LINK, queue=40, threshold=50, seconds=40, sack=True), "bottleneck-limited"),
        (QueuePath(**LINK, window=90), "bottleneck-limited"),
        (QueuePath(**LINK, window=30), "receiver-window-limited"),
        (QueuePath(rate=8000, way_s=0.025, threshold=50, lost=frozenset(range(300, 20_000, 400))), "loss-limited"),
    ],
    ids=["overflow", "window", "small-window", "losses"],
)
def test_cause_of_a_flow_without_timestamps_is_the_same_at_both_ends(tmp_path, path, cause):
    path.run(tmp_path)
    for end in ("sender", "receiver"):
        (flow,) = tcpfit.analyze(tmp_path / f"{end}.pcap").to_dict()["captures"][0]["flows"]
        assert (end, flow["diagnosis"]["primary"]) == (end, cause)


@pytest.mark.parametrize(("buffer", "full"), [(20, False), (30, False), (60, True), (90, True)])
def test_full_link_of_which_nothing_tells_the_queue_is_named_as_that(tmp_path, buffer, full):
    QueuePath(**LINK, buffer=buffer).run(tmp_path)
    estimated, texts = [], []
    for end in ("sender", "receiver"):
        analysis = tcpfit.analyze(tmp_path / f"{end}.pcap")
        estimated.append(analysis.rounds["estimated"].mean() > 0.9)
        assert estimated[-1] or not analysis.rounds["estimated"].any()
        (flow,) = analysis.to_dict()["captures"][0]["flows"]
        texts.append("nothing tells whether a queue grew" in flow["diagnosis"]["text"])
        mean, late = (flow["parameters"][name] for name in ("rtt", "rtt_p95"))
        assert (mean["high"] is None) == estimated[-1]
        assert late["high"] is None or not estimated[-1]
    assert estimated == texts == [False, full]
