#!/usr/bin/env python3
"""Transfers in pairs that differ in one thing, over real hosts and an emulated path.

    pairs.py LAB OUT [-j N] [NAME...]

LAB is the folder of the path emulator (pathemu.c) and its driver (lab.py, flow.py, scenarios.py): two Linux hosts in
network namespaces, bulk transfers of kernel TCP, captures at both ends and the emulator's own record. It needs root.
OUT gets a folder a transfer, as `counterfactuals.py` reads it. Every condition is run `REPLICAS` times with other
seeds; a transfer that is there already, and in which the emulator kept its time, is not made again.

Each condition is named once, below, in the driver's terms; `counterfactuals.py` says which two make a pair and what
tcpfit says of the change.
"""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

REPLICAS = 6

FIRST = 2000
"""The driver numbers hosts, ports and namespaces from here, out of the way of its own sets."""

LATE_US = 5000
"""The emulator kept its time if 99 % of the packets left it no later than this."""

SACK_ALONE = {"tcp_recovery": 0, "tcp_early_retrans": 0}
NEWRENO = {"tcp_sack": 0, **SACK_ALONE}
RACK: dict[str, int] = {}
FIXED = {"tcp_max_reordering": 3}
"""The threshold of duplicate ACKs stays 3."""

STACKS = {"newreno": NEWRENO, "sack": SACK_ALONE, "rack": RACK}


def window(segments: float) -> dict[str, Any]:
    """A receive buffer, without autotuning, whose window is about so many full segments."""
    more = 1.25 if segments > 13 else 1.16  # the kernel takes more of a small buffer for itself
    return {"rx": {"rcvbuf": int(segments * 1448 / more)}}


def condition(
    stack: str,
    rtt_ms: float,
    duration_s: float,
    *,
    cc: str = "reno",
    rate_mbps: float = 10,
    queue: int = 200,
    sysctl: dict[str, int] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """One bulk transfer in the driver's terms; keywords it does not know are settings of the forward direction."""
    own = {key: more.pop(key) for key in ("rx", "tx", "cross", "rev") if key in more}
    delay = {"delay_us": 500 * rtt_ms}
    return {
        "duration_s": duration_s,
        "max_s": duration_s + 75,
        "cc": cc,
        "fwd": delay | {"rate_bps": 1e6 * rate_mbps, "queue": queue} | more,
        "rev": dict(delay),
        "sysctl": STACKS[stack] | (sysctl or {}),
        "title": "",
        "group": "pair",
    } | own


def conditions() -> dict[str, dict[str, Any]]:
    """Every condition by its name."""
    made: dict[str, dict[str, Any]] = {}
    # wide enough for what losses leave of the window, and no more: the first slow start does not fill the queue
    free = {"rate_mbps": 20} | window(64)
    for stack in ("newreno", "sack"):
        for length in (1, 2, 4):
            made[f"burst{length}-{stack}"] = condition(stack, 50, 40, burst_p=0.004, burst_m=length, **free)
    for stack, percents in (("newreno", (0.5, 1, 2, 4)), ("sack", (0.5, 1, 2, 4)), ("rack", (1, 2, 4))):
        for percent in percents:
            made[f"loss{percent:g}-{stack}"] = condition(stack, 50, 40, loss=percent / 100, **free)
    for percent in (0.5, 1, 2):
        made[f"loss{percent:g}-cubic"] = condition("rack", 50, 40, cc="cubic", loss=percent / 100, **free)

    late = {"ro_every_s": 0.5, "ro_exp": 1, "ro_d": 3, "ro_push_us": 60_000, "ro_start_s": 1.5}
    off = {"tcp_timestamps": 0}
    stacks = {
        "newreno-fixed": ("newreno", FIXED | off),
        "newreno-adapts": ("newreno", {}),
        "sack-fixed": ("sack", FIXED),
        "sack-adapts": ("sack", {}),
        "rack": ("rack", {}),
    }
    for name, (stack, sysctl) in stacks.items():
        made[f"late-{name}"] = condition(stack, 50, 30, sysctl=sysctl, **late, **window(24))
        made[f"prompt-{name}"] = condition(stack, 50, 30, sysctl=sysctl, **window(24))
    both = {"sysctl": FIXED | off, "loss": 0.005}
    made["late-lossy-newreno"] = condition("newreno", 50, 40, **both, **late, **free)
    made["prompt-lossy-newreno"] = condition("newreno", 50, 40, **both, **free)

    for segments in (12, 24, 48):
        made[f"window{segments}"] = condition("rack", 80, 20, cc="cubic", **window(segments))
        made[f"window{segments}-lossy"] = condition("sack", 80, 40, loss=0.001, **window(segments))
    for segments in (12, 24):
        made[f"window{segments}-narrow"] = condition("rack", 80, 20, cc="cubic", rate_mbps=2.5, **window(segments))

    for percent in (6, 8):
        for stack in ("newreno", "sack", "rack"):
            made[f"loss{percent}-{stack}"] = condition(stack, 60, 60, loss=percent / 100, **free)
    cut = {"loss": 1.0, "loss_start_s": 6.0}
    for seconds in (0.5, 1.5):
        made[f"outage{seconds:g}"] = condition("sack", 60, 20, **cut, loss_end_s=6 + seconds, **window(24))
    made["outage0"] = condition("sack", 60, 20, **window(24))

    for stack in ("newreno", "sack"):
        crossed = {"packets": 80, "gap_s": (0.1, 0.2)}
        made[f"crossed-{stack}"] = condition(stack, 50, 60, loss=0.02, cross=crossed)
        made[f"loss2-long-{stack}"] = condition(stack, 50, 60, loss=0.02)
    for queue in (15, 100):
        made[f"queue{queue}"] = condition("sack", 40, 40, rate_mbps=3, queue=queue)
    for segments in (20, 60):
        made[f"standing{segments}"] = condition("sack", 40, 20, rate_mbps=3, queue=400, **window(segments))
    return made


def cross(address: str, packets: int, low_s: float, high_s: float, seed: int) -> None:
    """Other people's traffic: bursts of full UDP datagrams, at random intervals, until ended."""
    generator = random.Random(seed)
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect((address, 9))
    while True:
        for _ in range(packets):
            try:
                out.send(bytes(1472))
            except OSError:  # nobody listens: the host says so, which is of no interest
                continue
        time.sleep(generator.uniform(low_s, high_s))


def kept_time(folder: Path) -> bool:
    """The transfer is there, its captures are whole, and the emulator kept its time."""
    if not (folder / "truth.json").exists():
        return False
    checks = json.loads((folder / "truth.json").read_text())["checks"]
    whole = checks["counts_match"] and not checks["sender_capture_dropped"] + checks["receiver_capture_dropped"]
    return bool(whole) and checks["emulator_late_us"]["p99"] <= LATE_US


def load_driver(folder: Path) -> Any:
    """The driver, from a copy in which the emulator is built; with cross traffic, which it does not know itself."""
    copy = Path(tempfile.mkdtemp(prefix="pairs-lab-"))
    for name in ("pathemu.c", "flow.py", "lab.py"):
        shutil.copy(folder / name, copy / name)
    subprocess.run(["gcc", "-O2", "-o", copy / "pathemu", copy / "pathemu.c", "-lm"], check=True)
    sys.path.insert(0, str(copy))
    import lab  # type: ignore[import-not-found]

    class Run(lab.Run):  # type: ignore[misc,name-defined]
        def trace_on(self) -> None:
            super().trace_on()
            crossed = self.sc.get("cross")
            if crossed:
                me = (lab.PY, Path(__file__).resolve(), "--cross", self.b, crossed["packets"], *crossed["gap_s"])
                self.nx(self.snd, *me, self.sc["seed"])

    lab.Run = Run
    return lab


def main(arguments: list[str]) -> int:
    """Make what is missing."""
    if arguments[0] == "--cross":
        cross(arguments[1], int(arguments[2]), float(arguments[3]), float(arguments[4]), int(arguments[5]))
    driver, out = load_driver(Path(arguments[0])), Path(arguments[1]).resolve()
    rest = arguments[2:]
    jobs = int(rest[rest.index("-j") + 1]) if "-j" in rest else 2
    wanted = [name for name in rest if not name.isdigit() and name != "-j"]
    todo = []
    for number, (name, scenario) in enumerate(conditions().items()):
        for replica in range(REPLICAS):
            index = number * REPLICAS + replica
            full = f"{name}-{replica + 1}"
            if (wanted and name not in wanted) or kept_time(out / full):
                continue
            seed = 7919 * (FIRST + index)
            todo.append((scenario | {"name": full, "seed": seed}, FIRST + index, str(out)))
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(driver.one, todo))
    late = [name for _, _, name in ((0, 0, job[0]["name"]) for job in todo) if not kept_time(out / name)]
    print(f"{len(todo) - len(late)} of {len(todo)} made; to be made again: {', '.join(late) or 'none'}")
    return bool(late)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
