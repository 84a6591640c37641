#!/usr/bin/env python3
"""Transfers of kinds that nobody chose, over real hosts and an emulated path.

    drawn.py LAB OUT [--count N] [--seed S] [-j N] [--inside]

Each transfer is drawn at random: the stack and its congestion control, the path and what it loses, reorders and
duplicates, the windows, the application. LAB is the path emulator and its driver, as for `pairs.py`; it needs root.
OUT gets a folder a transfer, which `packets.py` compares event by event (`packets.py OUT --misses FILE`) and the grader
grades. The same seed draws the same transfers, but what happens in them is another sample each time.

With `--inside` each is captured inside the path as well, somewhere between its ends, before or behind what is lost
at random.

A rule is found and tried on transfers of some seeds, and then measured on those of others.
"""

from __future__ import annotations

import argparse
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pairs

FIRST = 3000
"""The driver numbers hosts, ports and namespaces from here, out of the way of other sets."""

Scenario = dict[str, Any]


def draw(generator: random.Random, name: str) -> Scenario:
    """One transfer in the driver's terms."""
    choose, chance = generator.choice, generator.random
    stack = choose(["newreno", "newreno", "sack", "sack", "rack"])
    control = choose(["cubic", "cubic", "cubic", "reno", "bbr"]) if stack == "rack" else "reno"
    rtt_ms = choose([12, 20, 30, 45, 60, 80, 100, 140, 200])
    rate_mbps = choose([2, 4, 6, 10, 10, 20])
    forward: dict[str, float] = {"queue": choose([15, 30, 60, 100, 200, 400])}
    reverse: dict[str, float] = {}
    scenario: Scenario = {"duration_s": choose([20, 25, 30, 40]), "group": "a", "sysctl": {}}
    scenario |= choose(KINDS)(generator, forward)
    if chance() < 0.25:
        reverse["ackloss"] = choose([0.03, 0.08, 0.15])
    if chance() < 0.12:
        forward |= {"dup": 0.01, "dup_delay_us": choose([80, 400, 3000])}
    if chance() < 0.3:
        scenario["sysctl"]["tcp_timestamps"] = 0
    if chance() < 0.2:
        scenario["ip"] = 6
    if chance() < 0.15:
        scenario["rcv_route"] = "quickack 1"
    if chance() < 0.1:
        scenario["mtu"] = choose([576, 1280, 4000])
    if chance() < 0.2:
        scenario["sysctl"]["tcp_max_reordering"] = 3
    ahead = choose([0.5, 0.5, 0.3, 0.7])
    forward |= {"delay_us": 1000 * rtt_ms * ahead, "rate_bps": 1e6 * rate_mbps}
    reverse["delay_us"] = 1000 * rtt_ms * (1 - ahead)
    if chance() < 0.2:
        scenario.setdefault("rx", {}).setdefault("rcvbuf", int(choose([8, 12, 24, 40]) * 1448 / 1.16))
    scenario["sysctl"] = pairs.STACKS[stack] | scenario["sysctl"]
    told = " ".join(f"{key}={value:g}" for key, value in forward.items())
    scenario["title"] = f"{stack} {control}, round trip {rtt_ms} ms, {told}"
    return scenario | {
        "name": name,
        "seed": generator.randrange(1, 10**6),
        "max_s": scenario["duration_s"] + (200 if "web" in scenario else 75),
        "cc": control,
        "fwd": forward,
        "rev": reverse,
    }


def random_losses(generator: random.Random, forward: dict[str, float]) -> Scenario:
    """Each data segment with the same probability."""
    forward["loss"] = generator.choice([0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08])
    return {}


def bursts(generator: random.Random, forward: dict[str, float]) -> Scenario:
    """Several in a row, or a large part of what comes within some time."""
    forward |= generator.choice(
        [
            {"burst_p": 0.004, "burst_m": 2},
            {"burst_p": 0.002, "burst_m": 5},
            {"burst_p": 0.001, "burst_m": 12},
            {"burst_p": 0.003, "burst_q": 0.4, "burst_win_us": 40000},
            {"ge_p": 0.004, "ge_r": 0.3, "ge_h": 0.7},
        ]
    )
    return {"group": "d"}


def full_queue(generator: random.Random, forward: dict[str, float]) -> Scenario:
    """Nothing is lost but what finds the queue full."""
    forward["queue"] = generator.choice([12, 25, 50, 120])
    return {"group": "e"}


def held(generator: random.Random, forward: dict[str, float]) -> Scenario:
    """Every now and then some segments in a row are held and come late; some are lost as well."""
    forward |= {
        "ro_every_s": generator.choice([0.5, 1, 2]),
        "ro_exp": generator.choice([0, 1]),
        "ro_d": generator.choice([1, 2, 4, 8]),
        "ro_push_us": generator.choice([10, 30, 60, 120, 300]) * 1000,
        "ro_start_s": 1,
    }
    if generator.random() < 0.6:
        forward["loss"] = generator.choice([0.003, 0.01, 0.02])
    return {"group": "g", "rx": {"rcvbuf": int(generator.choice([16, 24, 40, 80]) * 1448 / 1.25)}}


def jitter(generator: random.Random, forward: dict[str, float]) -> Scenario:
    """Some segments take longer, each by a time of its own; some are lost as well."""
    forward |= {"jit_p": generator.choice([0.01, 0.05]), "jit_us": generator.choice([3, 10, 40]) * 1000}
    if generator.random() < 0.6:
        forward["loss"] = generator.choice([0.005, 0.02])
    return {"group": "g", "rx": {"rcvbuf": int(generator.choice([16, 32]) * 1448 / 1.25)}}


def application(generator: random.Random, forward: dict[str, float]) -> Scenario:
    """An application that writes at intervals, or reads slowly."""
    forward["loss"] = generator.choice([0, 0.005, 0.02])
    if generator.random() < 0.5:
        pace = {"chunk": generator.choice([4000, 20000, 60000]), "every_s": generator.choice([0.05, 0.2, 0.5])}
        return {"group": "i", "tx": {"app": pace, "nodelay": generator.choice([0, 1])}}
    slow = {"chunk": generator.choice([6000, 30000]), "every_s": generator.choice([0.03, 0.1])}
    return {"group": "i", "rx": {"rcvbuf": 32768, "slow": slow}}


def short(generator: random.Random, forward: dict[str, float]) -> Scenario:
    """Many connections of some kilobytes each."""
    forward["loss"] = generator.choice([0.01, 0.03, 0.06])
    large = generator.choice([30000, 150000])
    asked = {"conns": 80, "bytes": [1000, large], "think_s": [0.05, 0.3], "parallel": 3}
    return {"group": "h", "duration_s": 60, "web": asked}


KINDS = (
    random_losses,
    random_losses,
    bursts,
    bursts,
    full_queue,
    held,
    jitter,
    application,
    short,
)


def somewhere(generator: random.Random) -> Scenario:
    """Where inside the path it is captured: the share of the way from the sender, and on which side of the losses."""
    share = generator.choice([0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
    return {"mid": {"mid_frac": share, "loss_after_mid": generator.choice([0, 1])}}


def make(lab: Path, out: Path, count: int, seed: int, jobs: int, inside: bool) -> int:
    """Run the transfers that are not there yet; how many of all are missing or came out late."""
    driver = pairs.load_driver(lab)
    generator, places = random.Random(seed), random.Random(f"inside {seed}")
    drawn = [draw(generator, f"drawn-{seed}-{number:02d}") for number in range(count)]
    if inside:
        drawn = [scenario | somewhere(places) for scenario in drawn]
    todo = [
        (scenario, FIRST + number, str(out.resolve()))
        for number, scenario in enumerate(drawn)
        if not (out / scenario["name"] / "truth.json").exists()
    ]
    todo.sort(key=lambda job: -job[0]["max_s"])
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(driver.one, todo))
    return sum(not pairs.kept_time(out / scenario["name"]) for scenario in drawn)


def main() -> int:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lab", type=Path, metavar="LAB")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--count", type=int, default=70)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inside", action="store_true", help="capture each inside the path as well")
    parser.add_argument("--jobs", "-j", type=int, default=4)
    arguments = parser.parse_args()
    return bool(make(arguments.lab, arguments.out, arguments.count, arguments.seed, arguments.jobs, arguments.inside))


if __name__ == "__main__":
    sys.exit(main())
