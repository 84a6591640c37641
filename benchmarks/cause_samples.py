#!/usr/bin/env python3
"""Make sample-traces/causes: a short transfer a cause, with what its path and its kernel recorded.

    cause_samples.py LAB OUT [NAME...]     LAB as pairs.py has it; OUT keeps the whole transfers

A sample is the sender's capture, its frames cut to the longest headers. Of `unknown` the path is the one of `loss`,
and every packet is left out of the capture with `MISSED`, as by a capturing host that is too slow.
"""

from __future__ import annotations

import gzip
import json
import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pairs import FIXED, condition, kept_time, load_driver, window

SAMPLES = Path(__file__).resolve().parent.parent / "sample-traces/causes"

FIRST = 2900
"""The driver numbers hosts, ports and namespaces from here."""

LONGEST = 94
"""Bytes of Ethernet, IPv4 and TCP headers with time stamps and three SACK blocks."""

MISSED = 0.04


def samples() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Cause, the path or host in words, and the transfer in the driver's terms, by the sample's name."""
    small = {"tx": {"sndbuf": 12 * 1110, "chunk": 1448}}
    late = {"ro_every_s": 0.5, "ro_d": 3, "ro_push_us": 25_000, "ro_start_s": 1.5}
    fixed = {"sysctl": FIXED | {"tcp_timestamps": 0}}
    slow = {"rcvbuf": 32768, "slow": {"chunk": 6000, "every_s": 0.1}}
    bursts = {"app": {"chunk": 12000, "every_s": 0.15}, "nodelay": 1}
    return {
        "application": (
            "application-limited",
            "the application writes 12,000 bytes every 150 ms; 10 Mbit/s, 60 ms",
            condition("rack", 60, 6, tx=bursts),
        ),
        "window": (
            "receiver-window-limited",
            "a receive buffer that gives a window of 16 segments; 10 Mbit/s, 80 ms",
            condition("rack", 80, 5, cc="cubic", **window(16)),
        ),
        "stalled": (
            "receiver-stalled",
            "the receiving application reads 6,000 bytes every 100 ms; 10 Mbit/s, 40 ms",
            condition("rack", 40, 6, cc="cubic", rx=slow),
        ),
        "send-buffer": (
            "send-buffer-limited",
            "a send buffer (SO_SNDBUF) of 13,320 bytes; 10 Mbit/s, 100 ms",
            condition("rack", 100, 7, **small),
        ),
        "loss": (
            "loss-limited",
            "3 % of the data segments are lost, at random; Reno with SACK, 10 Mbit/s, 60 ms",
            condition("sack", 60, 13, loss=0.03),
        ),
        "timeout": (
            "timeout-limited",
            "15 % of the data segments are lost, at random; NewReno without SACK, 10 Mbit/s, 30 ms",
            condition("newreno", 30, 10, loss=0.15),
        ),
        "reordering": (
            "reordering-limited",
            "three segments are held back 25 ms twice a second, none is lost; NewReno without SACK, 50 ms, a window of "
            "20 segments",
            condition("newreno", 50, 7, **fixed, **late, **window(20)),
        ),
        "rate": (
            "bottleneck-limited",
            "2 Mbit/s, 40 ms; the receiver's window is a little larger than the path needs",
            condition("sack", 40, 6, rate_mbps=2, queue=400, **window(14)),
        ),
        "own-loss": (
            "bottleneck-limited",
            "2 Mbit/s behind a queue of 8 packets, 50 ms: the flow's window overflows it; Reno with SACK",
            condition("sack", 50, 12, rate_mbps=2, queue=8),
        ),
        "slow-start": (
            "slow-start-limited",
            "a transfer of 400,000 bytes; 50 Mbit/s, 120 ms",
            condition("rack", 120, 10, rate_mbps=50, queue=1000, tx={"bytes": 400_000}),
        ),
    }


def packets(capture: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Time stamp as it is written, length on the wire, and bytes of every packet of a little-endian pcap file."""
    at = 24
    while at + 16 <= len(capture):
        held, length = struct.unpack_from("<II", capture, at + 8)
        yield capture[at : at + 8], length, capture[at + 16 : at + 16 + held]
        at += 16 + held


def cut(source: Path, missed: float = 0.0) -> bytes:
    """A capture with its frames cut to the headers, and with a share of its packets left out."""
    whole = gzip.decompress(source.read_bytes())
    generator = random.Random(1)
    out = [whole[:16], struct.pack("<I", LONGEST), whole[20:24]]
    for number, (stamp, length, data) in enumerate(packets(whole)):
        if number >= 3 and generator.random() < missed:
            continue
        out += [stamp, struct.pack("<II", min(len(data), LONGEST), length), data[:LONGEST]]
    return b"".join(out)


def recorded(folder: Path) -> dict[str, Any]:
    """What the path and the sender's kernel recorded of a transfer."""
    truth = json.loads((folder / "truth.json").read_text())
    summary, info = truth["summary"], truth["flows"][0]["tcp_info"]
    return {
        "goodput_bps": summary["goodput_bps"],
        "data_segments": summary["data_pkts_sent"],
        "lost_segments": summary["data_pkts_dropped"],
        "segments_overtaken": summary["reorder_pkts_held_overtaken"],
        "fast_recoveries": summary["fast_recovery_episodes"],
        "timeouts": summary["timeouts"],
        "busy_s": info["busy_time_us"] / 1e6,
        "rwnd_limited_s": info["rwnd_limited_us"] / 1e6,
        "sndbuf_limited_s": info["sndbuf_limited_us"] / 1e6,
        "longest_queue_packets": truth["path"]["forward"]["max_queue"],
    }


def main(arguments: list[str]) -> int:
    """Make what is missing, and write the samples from what is there."""
    out, wanted = Path(arguments[1]).resolve(), arguments[2:]
    driver = load_driver(Path(arguments[0]))
    for number, (name, (_, _, transfer)) in enumerate(samples().items()):
        if (not wanted or name in wanted) and not kept_time(out / name):
            driver.one((transfer | {"name": name, "seed": 7919 * (FIRST + number)}, FIRST + number, str(out)))
    truths = {}
    SAMPLES.mkdir(exist_ok=True)
    for name, (cause, path, _) in samples().items():
        (SAMPLES / f"{name}.pcap.gz").write_bytes(gzip.compress(cut(out / name / "sender.pcap.gz"), 9, mtime=0))
        truths[name] = {"cause": cause, "path": path} | recorded(out / name)
    (SAMPLES / "unknown.pcap.gz").write_bytes(gzip.compress(cut(out / "loss" / "sender.pcap.gz", MISSED), 9, mtime=0))
    left_out = f"; {MISSED:.0%} of the packets are missing from the capture".replace("%", " %")
    truths["unknown"] = truths["loss"] | {"cause": "unknown", "path": "the transfer of `loss`" + left_out}
    (SAMPLES / "truth.json").write_text(json.dumps(truths, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
