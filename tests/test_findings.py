"""Does each rule find what its sample shows, say it with the right numbers, and keep silent elsewhere?"""

from __future__ import annotations

import gzip
import ipaddress
import json
import re
from pathlib import Path
from types import SimpleNamespace

import captures
import numpy as np
import polars as pl
import pytest
from test_scenarios import TRACES, Reader
from test_timers import MSS, RTT_S, Conversation, stamps, stop_and_go

import tcpfit
from tcpfit.diagnosis import findings
from tcpfit.diagnosis.findings import handoffs, token_bucket
from tcpfit.diagnosis.findings.view import View, in_frames, unwrapped
from tcpfit.exceptions import InvalidParameter

SAMPLES = Path(__file__).parent.parent / "sample-traces"
TRUTH = json.loads((SAMPLES / "findings/truth.json").read_text())


def found(path: Path) -> dict[tuple[int, str], findings.Finding]:
    analysis = tcpfit.analyze(path, segments=True)
    return {(flow, one.name): one for flow in analysis.flows["flow"] for one in findings.find(analysis, flow)}


@pytest.mark.parametrize("name", TRUTH)
def test_sample_shows_its_finding_and_no_other(name):
    assert {tuple(one) for one in TRUTH[name]["findings"]} == set(found(SAMPLES / "findings" / name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ipv6", set()),
        ("window-limited", set()),
        ("sack-loss-sender", set()),
        ("sack-loss-receiver", set()),
        ("cubic", set()),
        # 3 % of the ACKs are lost, which the receiver's capture does not show
        ("ecn-marks-sender", {(0, "ack-loss")}),
        ("ecn-marks-receiver", set()),
        ("timeouts", {(0, "sack-absent")}),
        ("slow-reader", {(0, "slow-receiver")}),
        ("reordering-sender", {(0, "handoffs"), (0, "timestamps-absent")}),
        ("reordering-receiver", {(0, "handoffs"), (0, "timestamps-absent")}),
    ],
)
def test_other_samples(name, expected):
    assert expected == set(found(SAMPLES / f"{name}.pcap.gz"))


@pytest.mark.parametrize("name", TRUTH)
def test_frames_are_of_the_capture(name):
    analysis = tcpfit.analyze(SAMPLES / "findings" / name, segments=True)
    frames = set(analysis.segments["frame"])
    for flow in analysis.flows["flow"]:
        for one in findings.find(analysis, flow):
            assert one.frames
            assert set(one.frames) <= frames
            assert 0 < one.confidence <= 1
            assert one.name in findings.RULES


def test_policer_is_measured():
    analysis = tcpfit.analyze(SAMPLES / "findings/policer.pcap.gz", segments=True)
    bucket = token_bucket.fit(View(analysis, 0))
    # the path dropped what exceeded 2 Mbit/s beyond 30 kB
    assert 2e6 == pytest.approx(8 * bucket.rate, rel=0.01)
    assert 30000 == pytest.approx(bucket.depth, rel=0.05)


def test_shallow_queue_is_measured():
    analysis = tcpfit.analyze(SAMPLES / "findings/shallow-buffer.pcap.gz", segments=True)
    bucket = token_bucket.fit(View(analysis, 0))
    # four packets wait and one is served at 3 Mbit/s, of which 24 of 1,538 bytes are not in the capture
    assert 3e6 * 1514 / 1538 == pytest.approx(8 * bucket.rate, rel=0.01)
    assert 5 * 1514 == pytest.approx(bucket.depth, abs=1514)


@pytest.mark.parametrize("seed", range(5))
def test_bucket_separates_its_own_losses_and_no_random_ones(seed):
    random = np.random.default_rng(seed)
    # offered 1.5 times the rate on average, in waves as a window makes them
    time = np.cumsum(random.exponential(1500 / 1.5e6, 4000) * (1 + 0.8 * np.sin(np.arange(4000) / 150)))
    size = np.full(4000, 1500.0)
    lost, tokens, last = np.zeros(4000, bool), 40000.0, time[0]
    for at in range(4000):
        tokens = min(40000.0, tokens + (time[at] - last) * 1e6)
        last = time[at]
        lost[at] = tokens < 1500
        tokens -= 0 if lost[at] else 1500
    random.shuffle(shuffled := lost.copy())
    for which, low, high in ((lost, 0.99, 1.0), (shuffled, 0.0, 0.5)):
        taken = np.concatenate(([0.0], np.cumsum(np.where(which, 0.0, size))[:-1]))
        score, *_ = token_bucket._separate(time - time[0], size, taken, which, 1e6)
        assert low <= score <= high


def test_packets_behind_a_hole_do_not_tell_the_delay():
    """BBR goes on through its losses: what precedes the next one waits for the last one's resend."""
    number = np.arange(200)
    lost = (number % 40 == 10) | (number % 40 == 20)
    data = pl.DataFrame({"time_ns": number * 1_000_000, "right": (number + 1) * 1000})
    # a round trip of 20 ms; what is above a hole is acknowledged with its resend, 45 ms after the loss
    arrives = number * 1_000_000 + 20_000_000
    holes = [k * 1_000_000 + 65_000_000 for k in np.flatnonzero(lost)]
    acked = np.array(
        [
            max([own, *(h for k, h in zip(np.flatnonzero(lost), holes, strict=True) if k <= n)])
            for n, own in zip(number, arrives, strict=True)
        ]
    )
    received = pl.DataFrame({"time_ns": acked, "edge": (number + 1) * 1000})
    rise = token_bucket._rise(SimpleNamespace(received=received), data, lost, lost)
    assert 0.0 == pytest.approx(rise, abs=1e-3)


def test_clock_of_handoffs():
    ticks = np.array([0, 1, 2, 4, 5, 6, 7.0])
    jitter = np.array([0, 0.05, -0.05, 0.02, 0.1, -0.1, 0])
    assert 15 == pytest.approx(handoffs._period(15 * (ticks + jitter)), rel=0.02)
    for seed in range(200):
        assert handoffs._period(np.cumsum(np.random.default_rng(seed).exponential(15, 8))) is None


def test_sequence_numbers_do_not_wrap():
    seen = np.array([2**32 - 100, 50, 2**32 - 50, 2**31 - 200], dtype=np.uint32)
    assert [0, 150, 50, 2**31 - 100] == unwrapped(seen, 2**32 - 100).tolist()


def test_window_scaling_says_what_each_end_can_know():
    folder = SAMPLES / "findings"
    sender = found(folder / "window-scaling-sender.pcap.gz")[0, "window-scaling-absent"].claim
    receiver = found(folder / "window-scaling-receiver.pcap.gz")[0, "window-scaling-absent"].claim
    # the option was taken out of the SYN on the way: neither end alone can tell
    assert "does not support it or the path took it out" in sender
    assert "was not offered or the path took it out" in receiver


def test_costs_of_waits():
    folder = SAMPLES / "findings"
    # 40 ms for each of the held segments (Linux's delayed ACK), a second for the SYN
    held = found(folder / "delayed-ack.pcap.gz")[0, "delayed-ack-nagle"]
    assert 0.035 <= held.seconds / int(held.claim.split()[0]) <= 0.045
    assert 1.0 == pytest.approx(found(folder / "syn-loss.pcap.gz")[0, "syn-loss"].seconds, abs=0.1)


def test_data_both_ways_at_once_is_no_dialogue(tmp_path):
    """Both ends send 100 bytes every 10 ms over a path of 50 ms: their data alternates, and nobody waits."""
    ends, back = ("10.0.0.1", "10.0.0.2", 40000, 80), ("10.0.0.2", "10.0.0.1", 80, 40000)
    mss = b"\x02\x04\x05\xb4"
    timed = [
        (0, captures.tcp(*ends, 0, 0, captures.SYN, options=mss)),
        (0.05, captures.tcp(*back, 0, 1, captures.SYN | captures.ACK, options=mss)),
        (0.0501, captures.tcp(*ends, 1, 1, captures.ACK)),
    ]
    for number in range(100):
        at, seen = 0.06 + 0.01 * number, 1 + 100 * max(0, number - 5)
        timed.append((at, captures.tcp(*ends, 1 + 100 * number, 1 + 100 * number, captures.ACK, 100)))
        timed.append((at + 0.005, captures.tcp(*back, 1 + 100 * number, seen, captures.ACK, 100)))
    frames = [captures.link(datagram, captures.ETHERNET) for _, datagram in timed]
    packets = [
        captures.Packet(captures.START_NS + round(at * 1e9), frame, len(frame))
        for (at, _), frame in zip(timed, frames, strict=True)
    ]
    path = tmp_path / "both.pcap"
    path.write_bytes(captures.pcap(packets))
    assert {} == found(path)


@pytest.mark.parametrize(("mss", "said"), [(1000, set()), (1020, set()), (1460, {"delayed-ack-nagle"})])
def test_a_full_segment_may_be_a_little_shorter_than_the_mss(tmp_path, mss, said):
    """Segments of 1,000 bytes wait 40 ms each for the ACK of the one before. If they are as full as this host's are,
    they do not wait because they are small (BSD's slirp sends 1,440 of an MSS of 1,460)."""
    talk = Conversation(sack=False, mss=mss, window=60000)
    at_s, seq = stop_and_go(talk, 0.1, 8)
    for _ in range(16):
        talk.sent(at_s, seq, payload=MSS)
        seq += MSS
        at_s += RTT_S + 0.04
        talk.heard(at_s, seq)
        at_s += 2e-5
    path = tmp_path / "waits.pcap"
    talk.analysed(path)
    assert said == {name for _, name in found(path)} & {"delayed-ack-nagle"}


@pytest.mark.parametrize(("answer_s", "said"), [(RTT_S, set()), (8 * RTT_S, {"spurious-timeouts"})])
def test_an_old_stamp_may_answer_the_last_copy(tmp_path, answer_s, said):
    """The ACK after two expiries of the timer echoes the original. A round trip after the last copy it may be that
    one's answer, whose stamp the receiver did not take (RFC 7323, 4.3), and that of the original was lost."""
    talk = Conversation(sack=False, options=stamps(0, 0))
    seq = 1
    for number in range(15):
        at_s = 0.1 + 2 * RTT_S * number + (2.5 if number > 11 else 0.0)
        copies = (0.0, 0.3, 0.9) if number == 11 else (0.0,)
        for wait_s in copies:
            talk.sent(at_s + wait_s, seq, payload=MSS, options=stamps(at_s + wait_s, at_s - RTT_S))
        seq += MSS
        answered_s = at_s + copies[-1] + (answer_s if number == 11 else RTT_S)
        talk.heard(answered_s, seq, options=stamps(answered_s, at_s))
    path = tmp_path / "old.pcap"
    talk.analysed(path)
    assert said == {name for _, name in found(path)} & {"spurious-timeouts"}


def test_rules_of_packets_are_silent_without_segments(tmp_path):
    analysis = tcpfit.analyze(SAMPLES / "findings/policer.pcap.gz")
    analysis.write_parquet(tmp_path)
    for without in (analysis, tcpfit.load(tmp_path)):
        assert [] == findings.find_in(View(without, 0))
        with pytest.raises(InvalidParameter, match="without its segments; (use|save them with)"):
            findings.find(without, 0)


def test_scenarios_show_what_they_were_written_for_and_no_more(tmp_path):
    """Flows of a few segments, imperfect captures, used ports: the MSS is 1,000 in all."""
    said = {}
    for trace in TRACES:
        path = tmp_path / f"{trace.stem}.pcap"
        path.write_bytes(captures.pcap(Reader().read(trace.read_text()).packets))
        said[trace.stem] = sorted({name for _, name in found(path)} - {"small-mss"})
    expected = {
        "acks-lost-of-a-needless-copy": ["sack-absent"],
        "fast-after-timeout": ["sack-absent"],
        "fast-open-lost": ["syn-loss"],
        "end-after-timeout": ["sack-absent"],
        "end-go-back-unanswered": ["sack-absent"],
        "end-held-and-resent": ["sack-absent"],
        "end-in-recovery": ["sack-absent"],
        "end-one-duplicate": ["sack-absent"],
        "end-window-closed": ["slow-receiver"],
        "filler-answered-late": ["sack-absent"],
        "go-back-copies-unheard": ["sack-absent"],
        "impatient-timer": ["sack-absent", "spurious-timeouts"],
        "impatient-timer-clocked": ["sack-absent"],
        "mirror-duplicate": ["duplicated-capture"],
        "needless-copy-lost": ["sack-absent"],
        "needless-copy-lost-alone": ["sack-absent"],
        "needless-copy-lost-delayed-acks": ["sack-absent"],
        "needless-of-the-last": ["sack-absent"],
        "one-has-come": ["sack-absent"],
        "partial-ack": ["sack-absent"],
        "probe-accepted": ["slow-receiver"],
        "receivers-data-missing": ["sack-absent"],
        "probe-acknowledged": ["slow-receiver"],
        "receiver-go-back-together": ["sack-absent"],
        "receiver-held-together": ["sack-absent"],
        "receiver-partial-ack-behind-duplicates": ["sack-absent"],
        "receiver-partial-ack-behind-others": ["sack-absent"],
        "receiver-lost-after-partial-ack": ["sack-absent"],
        "receiver-lost-needless-copy": ["sack-absent"],
        "receiver-lost-partial-ack-resend": ["sack-absent"],
        "receiver-lost-tail": ["sack-absent"],
        "receiver-lost-window": ["sack-absent"],
        "receiver-partial-ack-queued": ["sack-absent"],
        "receiver-timeout-again": ["sack-absent"],
        "reno-recovery-again": ["sack-absent"],
        "resend-held-between": ["sack-absent"],
        "round-trip-fell": ["sack-absent"],
        "router-two-interfaces": ["duplicated-capture"],
        "syn-ack-again": ["syn-loss"],
        "syn-ack-again-first-answered": ["syn-loss"],
        "syn-ack-again-no-stamps": ["syn-loss"],
        "syn-ack-answers-syn": ["syn-loss"],
        "syn-again": ["syn-loss"],
        "syn-again-first-answered": ["syn-loss"],
        "syn-again-vantage": ["syn-loss"],
        "timeout-go-back": ["sack-absent"],
        "waits-for-more-receiver": ["sack-absent"],
        "zero-window": ["slow-receiver"],
        "zero-window-before-data": ["slow-receiver"],
        "zero-window-empty": ["slow-receiver"],
        "zero-window-receiver": ["slow-receiver"],
    }
    assert expected == {name: names for name, names in said.items() if names}


@pytest.mark.parametrize(
    ("trace", "remedy"), [("mirror-duplicate", "`editcap -w 0.005`"), ("router-two-interfaces", "a filter for its TTL")]
)
def test_the_remedy_takes_the_copies_out(tmp_path, trace, remedy):
    """editcap compares whole frames: what a router has passed on is no copy to it."""
    source = next(path for path in TRACES if path.stem == trace)
    path = tmp_path / "twice.pcap"
    path.write_bytes(captures.pcap(Reader().read(source.read_text()).packets))
    remedies = [one.remedy for (_, name), one in found(path).items() if name == "duplicated-capture"]
    assert len(remedies) == 1
    assert remedy in remedies[0]


OPENED = """
+0 > S 0:0(0) win 64000 <mss 1012>
+0.05 < S. 0:0(0) ack 1 win 64000 <mss 1012> [ttl 57]
+0.0001 > . 1:1(0) ack 1
+0.001 > P. 1:101(100) ack 1
+0.05 < . 1:1(0) ack 101 [ttl 57]
+0.001 < . 1:1001(1000) ack 101 [ttl 57]
+0.0001 > . 101:101(0) ack 1001
+0.05 < . 1001:2001(1000) ack 101 [ttl 57]
"""
"""A request and two segments of its answer, the second not acknowledged yet."""


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("+0.001 > R. 101:101(0) ack 1001", ["1,000 bytes of 10.0.0.2 under way", "no segment had asked for it"]),
        # it covers what has come: nothing is cut off but what comes after it
        ("+0.001 > R. 101:101(0) ack 2001", None),
        (
            "+0.001 > R. 101:101(0) ack 2001\n+0.001 < . 2001:3001(1000) ack 101 [ttl 57]\n+0.0001 > R 101:101(0)",
            ["1,000 bytes of 10.0.0.2 under way", "no segment had asked for it"],
        ),
        ("+0.001 < R. 2001:2001(0) ack 101 [ttl 57]", ["1,000 bytes of its own", "no segment had asked for it"]),
        ("+0.001 < R 2001:2001(0) [ttl 51]", ["A reset from 10.0.0.2", "TTL of 51", "it had 57", "on the path"]),
        (
            "+0.001 < R 2001:2001(0) [ttl 57]\n+0.001 < . 2001:3001(1000) ack 101 [ttl 57]\n"
            "+0.001 < . 3001:4001(1000) ack 101 [ttl 57]",
            ["A reset from 10.0.0.2", "went on sending"],
        ),
        # what the reset overtook proves nothing
        (
            "+0.001 < R. 4001:4001(0) ack 101 [ttl 57]\n+0.001 < . 2001:3001(1000) ack 101 [ttl 57]\n"
            "+0.001 < . 3001:4001(1000) ack 101 [ttl 57]",
            ["A reset from 10.0.0.2", "no segment had asked for it"],
        ),
        (
            "+0.001 > F. 101:101(0) ack 2001\n+0.05 < . 2001:3001(1000) ack 102 [ttl 57]\n+0.0001 > R 102:102(0)",
            ["1,000 bytes of 10.0.0.2", "had sent a FIN before"],
        ),
        (
            "+0.001 > . 101:101(0) ack 2001\n+400 > P. 101:201(100) ack 2001\n+0.05 < R 2001:2001(0) [ttl 57]",
            ["100 bytes of 10.0.0.1", "no longer had a connection after 400 s of silence"],
        ),
        (
            "".join(f"+{wait} < . 1001:2001(1000) ack 101 [ttl 57]\n" for wait in (0.4, 0.8, 1.6))
            + "+3.2 < R. 2001:2001(0) ack 101 [ttl 57]",
            ["1,000 bytes of its own", "timer had run out 3 times", "gave up"],
        ),
        # closed by both, and cleared away
        (
            "+0.001 > F. 101:101(0) ack 2001\n+0.05 < F. 2001:2001(0) ack 102 [ttl 57]\n"
            "+0.0001 > R. 102:102(0) ack 2002",
            None,
        ),
    ],
)
def test_resets_by_hand(tmp_path, rest, said):
    path = tmp_path / "reset.pcap"
    path.write_bytes(captures.pcap(Reader().read(OPENED + rest).packets))
    claims = [one.claim for (_, name), one in found(path).items() if name == "broken-off"]
    assert (said is not None) == len(claims)
    for words in said or []:
        assert words in claims[0]


@pytest.mark.parametrize("name", ["broken-off", "sack-refused", "serial-requests", "small-mss"])
def test_ends_of_one_address_differ_by_their_ports(name, tmp_path):
    """Between a host and itself an address names no end; the same is found, and filters name no address twice."""
    sample, path = SAMPLES / "findings" / f"{name}.pcap.gz", tmp_path / "loopback.pcap"
    flow = tcpfit.analyze(sample).flows.row(0, named=True)
    data = gzip.decompress(sample.read_bytes())
    for end in ("src", "dst"):
        data = data.replace(ipaddress.ip_address(flow[end]).packed, ipaddress.ip_address("127.0.0.1").packed)
    path.write_bytes(data)
    here, there = found(path), found(sample)
    assert set(there) == set(here)
    named = [port for one in here.values() for port in re.findall(r"127\.0\.0\.1(?::(\d+))?", one.claim + one.remedy)]
    assert named
    assert set(named) <= {str(flow["src_port"]), str(flow["dst_port"])}
    assert not any("ip.addr" in one.display_filter for one in here.values())


def test_unknown_flow():
    analysis = tcpfit.analyze(SAMPLES / "findings/syn-loss.pcap.gz", segments=True)
    with pytest.raises(InvalidParameter, match="has no flow 99"):
        findings.find(analysis, 99)


def test_display_filter_of_frames():
    assert "frame.number in {3, 7}" == in_frames((3, 7))


def test_a_flight_near_a_window_with_room_is_not_held_by_it():
    """A receiver without window scaling, a sender in slow start that is done before the window is full."""
    path = SAMPLES.parent / "../shared/captures/zeek_http_206_example_b.pcap"
    if not path.exists():
        pytest.skip("the third-party captures are not there")
    assert "window-scaling-absent" not in {name for _, name in found(path)}
