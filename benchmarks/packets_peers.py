"""What tshark and tcptrace say of a capture, where they are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

from packets_truth import Capture, Times

TSHARK, TCPTRACE, TCPFIT = "tshark", "tcptrace", "tcpfit"
TSHARK_LOOSE = "tshark, out of order = sent again"
FLAGS = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "lost_segment")

_flags: dict[Path, dict[int, set[str]]] = {}


def tshark(capture: Capture) -> dict[int, set[str]] | None:
    """By frame of the data sender, tshark's flags; None if it is not installed."""
    if absent(TSHARK):
        return None
    if capture.path not in _flags:
        fields = [part for flag in FLAGS for part in ("-e", f"tcp.analysis.{flag}")]
        mine = f"tcp.len > 0 && ip{'v6' if ':' in capture.src else ''}.src == {capture.src}"
        command = ["tshark", "-n", "-r", str(capture.path), "-Y", mine, "-T", "fields", "-e", "frame.number", *fields]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        flags = {}
        for line in output.splitlines():
            frame, *values = line.split("\t")
            flags[int(frame)] = {flag for flag, value in zip(FLAGS, values, strict=True) if value}
        if len(flags) != len(capture.data):
            raise SystemExit(f"{capture.path}: tshark sees {len(flags)} data segments, tcpfit {len(capture.data)}")
        _flags[capture.path] = flags
    return _flags[capture.path]


def episodes(capture: Capture, flags: dict[int, set[str]], rtt_s: float) -> Times:
    """tshark's fast retransmissions, the first of each round trip."""
    times: Times = defaultdict(list)
    for flow, frame, time_s, *_ in capture.data:
        of = times[flow.sport, flow.dport]
        if "fast_retransmission" in flags[frame] and (not of or time_s - of[-1] > rtt_s):
            of.append(time_s)
    return times


def absent(program: str) -> bool:
    """The program cannot be run here; tcptrace needs editcap, to read what is compressed or pcapng."""
    return not all(map(shutil.which, (program, "editcap") if program == TCPTRACE else (program,)))


def tcptrace(capture: Capture) -> tuple[int, int]:
    """Retransmitted and out-of-order packets of the data sender, summed over its flows."""
    with TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.pcap"
        subprocess.run(["editcap", "-F", "nsecpcap", str(capture.path), str(plain)], check=True, capture_output=True)
        command = ["tcptrace", "-n", "-l", str(plain)]
        output = subprocess.run(command, capture_output=True, text=True, check=True, errors="replace").stdout
    counts = [0, 0]
    hosts: list[str] = []
    for line in output.splitlines():
        if line.startswith("TCP connection "):
            hosts = []
        elif host := re.match(r"\s+host \S+:\s+(\S+):\d+$", line):
            hosts.append(str(ip_address(host[1])))
        for n, label in enumerate(("rexmt data pkts:", "outoforder pkts:")):
            if label in line:
                counts[n] += int(re.findall(rf"{label}\s+(\d+)", line)[hosts.index(str(ip_address(capture.src)))])
    return counts[0], counts[1]


def version(program: str) -> str:
    """The first thing that looks like a version in what it says of itself."""
    option = "-v" if program == TCPTRACE else "--version"
    said = subprocess.run([program, option], capture_output=True, text=True, check=False)
    number = re.search(r"\d+(\.\d+)+", said.stdout + said.stderr)
    return number[0] if number else "of unknown version"
