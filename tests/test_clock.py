"""Captures whose clock was set, or whose packets are out of order: samples with their time stamps changed.

A whole capture with the same packets is what they are held against; a step must change no count and no duration.
"""

from __future__ import annotations

from pathlib import Path

import captures
import polars as pl
import pytest

import tcpfit

COUNTS = (
    "data_segments",
    "lost_segments",
    "loss_events",
    "timeouts",
    "fast_recoveries",
    "rtt_samples",
    "reorder_events",
)
STEPPED = [
    (name, by_s)
    for name in ("sack-loss-sender", "timeouts", "sack-loss-receiver", "ipv6")
    for by_s in (60, 0.4, -0.4, -30)
]


def analysed(found: list[captures.Packet], folder: Path) -> tcpfit.Analysis:
    path = folder / "changed.pcap"
    path.write_bytes(captures.pcap(found))
    return tcpfit.analyze(path)


def durations(analysis: tcpfit.Analysis) -> pl.DataFrame:
    columns = [column for column in analysis.flows.columns if column.endswith("_s")]
    spent = (pl.col("last_ns") - pl.col("first_ns")) / 1e9
    return analysis.flows.select(*COUNTS, *columns, spent.alias("spent_s"))


@pytest.mark.parametrize(("name", "by_s"), STEPPED)
def test_a_step_changes_no_duration(name, by_s, tmp_path):
    whole = captures.of_sample(name)
    middle = len(whole) // 2
    # a clock that is set between two packets: what the path or an application did meanwhile is not to be hidden
    while whole[middle].time_ns - whole[middle - 1].time_ns > 20_000_000:
        middle += 1
    moved = [
        captures.Packet(packet.time_ns + round(by_s * 1e9) * (n >= middle), packet.data, packet.wire_len)
        for n, packet in enumerate(whole)
    ]
    expected, actual = durations(analysed(whole, tmp_path)), analysed(moved, tmp_path)
    way = "forward" if by_s > 0 else "back"
    assert [f"frame {middle + 1}: the capture's clock was set {way}"] == [
        warning.split(" by ")[0] for warning in actual.warnings
    ]
    told = float(actual.warnings[0].split(" by ")[1].split(" s")[0])
    assert abs(told - abs(by_s)) < 0.02
    for column, value in durations(actual).row(0, named=True).items():
        before = expected[column][0]
        if column in COUNTS:
            assert abs(before - value) <= 1, column
        else:
            assert abs(before - value) <= max(0.02, 0.01 * abs(before)), column


def test_no_duration_is_negative_where_packets_are_out_of_order(tmp_path):
    whole = captures.of_sample("sack-loss-sender")
    swapped = list(whole)
    for n in range(100, len(whole) - 1, 50):
        swapped[n], swapped[n + 1] = swapped[n + 1], swapped[n]
    back = sum(b.time_ns < a.time_ns for a, b in zip(swapped, swapped[1:], strict=False))
    analysis = analysed(swapped, tmp_path)
    assert len(analysis.warnings) == 1
    assert f"({back} in all, up to" in analysis.warnings[0]
    assert "reordercap" in analysis.warnings[0]
    assert (analysis.events["value"].drop_nulls() >= 0).all()
    assert (analysis.rounds["end_ns"] >= analysis.rounds["start_ns"]).all()
    assert (analysis.rounds["rtt_s"].drop_nulls() > 0).all()


@pytest.mark.parametrize("name", ["sack-loss-sender", "timeouts", "slow-reader", "short-web", "reordering-receiver"])
def test_pauses_are_no_steps(name, tmp_path):
    assert analysed(captures.of_sample(name), tmp_path).warnings == []


def test_directions_with_different_clocks_are_told(tmp_path):
    """The ACKs of another clock, 40 ms ahead of the data's where the round trip is 100 ms at the receiver."""
    receiver = tcpfit.analyze(captures.SAMPLES / "sack-loss-receiver.pcap.gz").flows.row(0, named=True)["dst"]
    address = bytes(int(part) for part in receiver.split("."))
    apart = [
        captures.Packet(packet.time_ns - 40_000_000 * (packet.data[26:30] == address), packet.data, packet.wire_len)
        for packet in captures.of_sample("sack-loss-receiver")
    ]
    analysis = analysed(sorted(apart, key=lambda packet: packet.time_ns), tmp_path)
    told = [warning for warning in analysis.warnings if "before the data they acknowledge" in warning]
    assert len(told) == 1
    assert told[0].startswith("the ACKs of 1 flow come up to ")
    assert abs(float(told[0].split(" up to ")[1].split(" s ")[0]) - 0.04) < 0.001
    assert (analysis.events["value"].drop_nulls() >= 0).all()


def test_acks_of_one_time_with_their_data_are_not_told_to_be_early_by_nothing(tmp_path):
    """At the receiver, whose ACKs are written before their data with the stamps that both had."""
    whole = captures.of_sample("sack-loss-receiver")
    swapped, n = [], 0
    while n < len(whole):
        data_then_ack = n + 1 < len(whole) and len(whole[n].data) < whole[n].wire_len == 1514 != whole[n + 1].wire_len
        swapped += [whole[n + 1], whole[n]] if data_then_ack else [whole[n]]
        n += 1 + data_then_ack
    told = [
        warning for warning in analysed(swapped, tmp_path).warnings if "before the data they acknowledge" in warning
    ]
    assert len(told) == 1
    assert "come before the data" in told[0] and "reordercap" in told[0]
