"""Processor time of the engine beside other programs: `python benchmarks/engine.py [--markdown docs/performance.md]`.

Captures are generated and every program reads them in turn, round after round, so that a busy machine slows all of
them alike. Ratios are taken inside a round. Programs that are not installed are left out and named; two yardsticks in C
are compiled on the spot where a compiler and libpcap's headers are.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import version as distribution
from operator import truediv
from pathlib import Path
from statistics import median
from typing import NoReturn

SEED = 1
SAMPLE = 200_000  # packets of the capture for programs that take microseconds a packet
MANY_PACKETS = 270_000  # of some 10,000 short flows
TOUCHED_BYTES = 1 << 30  # more than any of the programs needs
LONG_S = 30.0  # of processor time: a program that takes longer is run once
# in huge pages where there are some: what is given back in small ones is put together, and taken last
TOUCH = """
import mmap, sys
memory = mmap.mmap(-1, int(sys.argv[1]), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
if hasattr(mmap, "MADV_HUGEPAGE"):
    memory.madvise(mmap.MADV_HUGEPAGE)
for page in range(0, len(memory), mmap.PAGESIZE):
    memory[page] = 1
"""

ENGINE = "tcpfit, engine alone"
ENGINE_COMMAND = (sys.executable, __file__, "--engine")
YARDSTICK = "cat"

COUNT, FLOWS = "libpcap, count", "libpcap, count by flow"  # benchmarks/count.c and flows.c


@dataclass(frozen=True)
class Scenario:
    """A capture to measure on."""

    kind: str  # as `generate.py` names it
    what: str
    share: float = 1.0  # of the packets asked for
    command: bool = False  # the whole command is run too, not the engine alone
    packed: str | None = None  # the program that compresses it
    path: Path | None = None  # of a capture that is not generated


CAPTURES = {
    "Few large flows": Scenario(
        "large", "up to 500 segments under way, cut off by the end of the capture", command=True
    ),
    "Many short flows": Scenario("short", "transfers of 4 to 24 segments, 27 packets on average", command=True),
    "Many tiny flows": Scenario("tiny", "transfers of 1 to 7 segments, ten packets on average"),
    "Many flows at once": Scenario("open", "the short transfers, all open at the same time"),
    "Heavy loss": Scenario("lossy", "5 % of the segments lost, three SACK blocks in most ACKs"),
    "Full packets": Scenario("full", "packets as they were on the wire", share=0.2),
    "Few large flows, gzip": Scenario("large", "compressed by gzip -6", packed="gzip"),
    "Few large flows, zstd": Scenario("large", "compressed by zstd -3", packed="zstd"),
}

HEAD = """# Performance

Made by `python benchmarks/engine.py --markdown docs/performance.md` with tcpfit {tcpfit}; do not edit.

{machine}

## What is measured

Processor time, user and system, of a whole process as the kernel counts it, over the packets of the capture.
"tcpfit, engine alone" is the call of the native engine from Python: read, decode, follow every flow, give the tables of
flows, events and rounds. The start of the interpreter and the imports are left out. `tcpfit analyze` is the whole
command as a user runs it: start, engine, parameters with intervals, ranking of the models, verdicts, JSON.

- The programs run in turn, {rounds}, after one that is not counted. Output goes to `/dev/null`.
- *ns/packet* is the median of the rounds. *Start-up* is the same command on a capture without packets; it is contained
  in ns/packet.
- *x cat* and *x engine* are medians of the ratios inside a round. `cat` is the least that reading the file costs.
- *Peak* is the process's largest resident memory. A process begins with the peak of the one that started it, so what is
  not above the benchmark's own is only known to be less. The engine's row contains Python and its libraries; *start-up*
  says how much they are.
- `tshark` reads the first {sample} packets only; its time is scaled to the whole capture, start-up counted once. Its
  memory is that of the part, not scaled.
- Before each run another process takes {touched} GiB of memory and gives it back. On a virtual machine memory that no
  process had for a while may have gone back to the host; to touch 2 MiB of it first costs a program 0.2 to 6 ms by
  chance then, 12 to 360 ns a packet where a million packets need 120 MiB. So every program finds it at hand.
- The captures are in the page cache, as they were read from the disk once. Just written they would lie there in small
  pieces, of which `cat` reads 9 GB/s, not 13, and whoever reads 1 MiB at a time 10, not 20.
- tcpfit does not copy these files but maps them, 2 MiB at a time ([which files](limits.md#files-that-are-mapped)): of
  full packets it looks at the headers. So it can take less than `cat`, which copies all of them.
- A program that takes more than {long:.0f} s of processor time is run once; its ratios are to the others' medians.

The programs do not do the same work. The two libpcap loops (`benchmarks/count.c`, `benchmarks/flows.c`) are the least
that a program does which reads with libpcap: one counts packets, the other packets and bytes of every connection in a
hash table. `capinfos -c` counts packets. `tcptrace` follows every connection and prints
statistics; `-l` prints all of them, `-r` adds round-trip times. `tshark -z conv,tcp` dissects every packet and prints
the conversations. tcpfit follows every connection, and says of every loss what shows it.
"""

PYTHON = """## The command

Processor time of the whole command, {rounds}, output to `/dev/null`: Python and its libraries are started each time,
from compiled modules. The small capture is `{sample}`; the many flows are short ones as above:
{flows}.
Most of what they cost is ranking, diagnosis and JSON, which `benchmarks/analyze.py` has apart.

{table}
"""

TAIL = """
## What is not measured

- Elapsed time, and disks.
- Captures of the Internet. These are generated: no tunnels, no captures from the receiver or with packets missing.
  Reordering happens behind the capture point and shows in the ACKs only. Their payload is random, their clock trembles,
  and large flows have windows as long as those of fast paths: a compressor leaves as much of them as of a kernel's
  captures, nearly half, and a program that walks through what is outstanding has as far to go.
- pcapng, standard input, filters, other readers than the engine.
- Other machines. Ratios carry over better than nanoseconds; neither is a promise. On virtual machines of two makes, as
  busy as their hosts were, they came out as follows: nine tables of the one, made in the same week of engines nearly
  like this, and three of the other, where the kernel copies a file's pages at 8 GB/s instead of 22 and the engine takes
  half as long again, but tcptrace only a tenth. All of them are from when files were still copied: an Intel Xeon had
  4.4 times tcptrace before on few large flows, and 5.7 on the same day when files were mapped; at heavy loss 2.3 and
  3.0; full packets took 1.4 and 0.7 of `cat`.

  | the engine                                       |     AMD EPYC | Intel Xeon |
  | ------------------------------------------------ | -----------: | ---------: |
  | few large flows, x faster than tcptrace -n -lr   |   4.4 to 5.9 | 3.7 to 4.2 |
  | few large flows, x faster than tshark            |   100 to 125 |   78 to 94 |
  | few large flows, x libpcap, count                |   0.6 to 1.0 |        0.9 |
  | many short flows, x faster than tcptrace -n -lr  |      9 to 14 |    9 to 10 |
  | many short flows, x libpcap, count by flow       |   1.1 to 2.0 | 1.5 to 1.7 |
  | many flows at once, x libpcap, count by flow     |   1.2 to 1.8 | 1.5 to 1.6 |
  | heavy loss, x faster than tcptrace -n -lr        |   2.5 to 3.1 | 2.2 to 2.4 |
  | full packets, x cat                              |   0.8 to 1.6 | 1.2 to 1.5 |
  | gzip, x gzip -dc                                 |   0.5 to 0.6 |        0.5 |
  | zstd, x zstd -dc                                 |   1.2 to 1.3 | 1.2 to 1.3 |

## Measure it yourself

    make tools
    .venv/bin/python benchmarks/engine.py

`--packets N` and `--rounds N` change the size, `--markdown FILE` writes this page. The captures are made by
`benchmarks/generate.py`, the same bytes every time, in a temporary directory. `--capture FILE` measures on a
capture of your own instead.
"""


@dataclass(frozen=True)
class Run:
    """What one run of a program cost."""

    cpu_s: float
    peak_kib: int


@dataclass
class Tool:
    """A program and its runs, one a round, the first for warming up; `start_up` are its runs on the empty capture."""

    name: str
    command: tuple[str, ...]
    sampled: bool = False
    reports: bool = False  # the program says itself what a part of it cost
    slow: bool = False  # left out where it is in a hurry
    runs: list[Run] = field(default_factory=list)
    start_up: list[Run] = field(default_factory=list)

    @property
    def once(self) -> bool:
        """It takes so long that it is not repeated."""
        return len(self.runs) == 1 and self.runs[0].cpu_s > LONG_S


@dataclass(frozen=True)
class Captures:
    """The same capture whole, and without packets."""

    whole: Path
    empty: Path
    packets: int
    content: str

    @property
    def scale(self) -> float:
        """Packets of the whole for one of those that a slow program reads."""
        return self.packets / min(self.packets, SAMPLE)


def tools(scenario: Scenario, compiled: dict[str, Path]) -> list[Tool]:
    """Every program of the comparison; the capture's name follows as the last argument."""
    tcpfit = Path(sys.executable).with_name("tcpfit")
    own = [Tool(YARDSTICK, ("cat",)), Tool(ENGINE, ENGINE_COMMAND, reports=True)]
    if scenario.packed:
        return [*own, Tool(f"{scenario.packed} -dc", (scenario.packed, "-dc"))]
    if scenario.command:
        own.append(Tool("tcpfit analyze --format json", (str(tcpfit), "analyze", "--format", "json"), slow=True))
    return [
        *own,
        *(Tool(name, (str(path),)) for name, path in compiled.items()),
        Tool("capinfos -c", ("capinfos", "-c")),
        Tool("tcptrace -n", ("tcptrace", "-n")),
        Tool("tcptrace -l -n", ("tcptrace", "-l", "-n")),
        Tool("tcptrace -n -lr", ("tcptrace", "-n", "-lr")),
        Tool("tshark -q -z conv,tcp", ("tshark", "-nqz", "conv,tcp", "-c", str(SAMPLE), "-r"), sampled=True, slow=True),
    ]


def main() -> int:
    """Measure, print the tables, and write the page if asked to."""
    arguments = parse()
    if arguments.engine:
        engine(arguments.engine)
        return 0
    try:
        text = measure(arguments.packets, arguments.rounds, arguments.quick, arguments.capture)
    except subprocess.CalledProcessError as error:
        print(f"{Path(error.cmd[0]).name} failed with status {error.returncode}; nothing was written", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if arguments.markdown:
        from tcpfit.analysis import AtomicFile  # not above: this process stays small, see `peak_mib`

        with AtomicFile(arguments.markdown) as partial:
            partial.write_text(text)
    return 0


def parse() -> argparse.Namespace:
    """The command line; what makes no sense is said in one sentence."""

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            self.exit(2, f"engine.py: {message}\n")

    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=at_least(1000), default=1_000_000, help="of each capture (1000000)")
    parser.add_argument("--rounds", type=at_least(1), default=5, help="that count (5)")
    parser.add_argument("--capture", type=capture, action="append", metavar="FILE", help="measure on it; repeatable")
    parser.add_argument("--quick", action="store_true", help="without the slow ones, the whole command and tshark")
    parser.add_argument("--markdown", type=page, metavar="FILE", help="write the page too")
    parser.add_argument("--engine", metavar="CAPTURE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.capture and arguments.markdown:
        parser.error("--markdown writes the page on the captures that are generated, not on those of --capture")
    return arguments


def at_least(least: int) -> Callable[[str], int]:
    """A whole number not below `least`."""

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, got {text!r}")
        return int(text)

    return number


def capture(text: str) -> Path:
    """A capture to measure on."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"must be a file, got {text!r}")
    return path


def page(text: str) -> Path:
    """A file that can be written later, when everything has been measured."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"must be a file in a directory that exists, got {text!r}")
    return path


def engine(path: str) -> None:
    """In a process of its own: what the engine's call costs and what it found, as JSON."""
    import tcpfit.engine
    from tcpfit.exceptions import CaptureError

    def cpu_s() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    # here once more: Python's start takes so long that the host may have taken it back
    touch_memory()
    before = cpu_s()
    try:
        result = tcpfit.engine.analyze(path)
    except CaptureError as error:
        raise SystemExit(str(error)) from None
    cost = cpu_s() - before
    flows = tcpfit.engine.frames(result)["flows"]
    found = {"packets": result.capture["packets"], "flows": flows.height}
    # not what `wait4` says, which counts the process that touched memory
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0])
    print(json.dumps({"cpu_s": cost, "peak_kib": peak, "resent": flows["retransmitted_segments"].sum(), **found}))


def measure(packets: int, rounds: int, quick: bool, given: Sequence[Path] | None) -> str:
    """Generate, run and print; gives the whole page. Captures that are given are read where they are."""
    sections = []
    scenarios = CAPTURES if given is None else {str(path): scenario_of(path) for path in given}
    load = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory(prefix="tcpfit-benchmark-") as folder:
        compiled = yardsticks(Path(folder))
        commands = {tool.command[0] for scenario in scenarios.values() for tool in tools(scenario, compiled)}
        missing = {command for command in commands if not shutil.which(command)}
        said = machine(sorted(Path(name).name for name in missing))
        if quick:
            said += "\nThe whole command and `tshark` were left out of this run."
        if not compiled:
            said += "\nThe libpcap loops could not be compiled and are left out."
        print(said)
        for title, scenario in scenarios.items():
            if scenario.packed in missing:
                continue
            captures = generated(Path(folder), scenario, max(int(packets * scenario.share), 1000))
            installed = [tool for tool in tools(scenario, compiled) if tool.command[0] not in missing]
            installed = [tool for tool in installed if not (quick and tool.slow)]
            if scenario.path:
                installed = [tool for tool in installed if reads(tool, captures)]
            checked = check(captures, any(tool.command[0] == "tcptrace" for tool in installed))
            for number in range(rounds + 1):
                print(f"{title}: round {number} of {rounds}", file=sys.stderr)
                for tool in installed:
                    if not tool.once:
                        tool.start_up.append(run(tool, captures.empty))
                        touch_memory()
                        tool.runs.append(run(tool, captures.whole))
            sections.append(
                f"## {title}\n\n{captures.content}; {scenario.what}.\n{checked}\n\n{table(installed, captures)}\n"
            )
            print(f"\n{sections[-1]}", end="", flush=True)
            if not scenario.path:
                captures.whole.unlink()  # the next one needs the room
        if given is None:
            sections.append(whole_command(Path(folder), rounds, quick))
            print(f"\n{sections[-1]}", end="", flush=True)
    load.append(os.getloadavg()[0])
    said += (
        f"\nThe load average was {load[0]:.1f} before the measurement and {load[1]:.1f} at its end, itself included."
    )
    head = HEAD.format(
        tcpfit=distribution("tcpfit"),
        machine=said,
        rounds="one round" if rounds == 1 else f"{rounds} rounds",
        sample=f"{SAMPLE:,}",
        long=LONG_S,
        touched=TOUCHED_BYTES >> 30,
    )
    return "\n".join([head, *sections]) + TAIL


def whole_command(folder: Path, rounds: int, quick: bool) -> str:
    """What the command costs beside the engine: its start, a small capture, many flows; the section of the page."""
    tcpfit = str(Path(sys.executable).with_name("tcpfit"))
    sample = Path(__file__).parent.parent / "sample-traces" / "cubic.pcap.gz"
    many = generated(folder, Scenario("short", ""), MANY_PACKETS)
    tools = {
        "tcpfit --help": (Tool("help", (tcpfit, "--help")), None),
        "tcpfit analyze, a small capture": (Tool("small", (tcpfit, "analyze")), sample),
        "tcpfit analyze --format json, many flows": (Tool("many", (tcpfit, "analyze", "--format", "json")), many.whole),
    }
    if quick:
        del tools["tcpfit analyze --format json, many flows"]
    rows: list[tuple[str, ...]] = [("command", "ms", "least to largest", "peak MiB")]
    for name, (tool, capture) in tools.items():
        print(f"{name}: {rounds + 1} runs", file=sys.stderr)
        tool.runs = [run(tool, capture, folder / "compiled") for _ in range(rounds + 1)]
        ms = [1e3 * one.cpu_s for one in tool.runs[1:]]
        ends = f"{figures(min(ms))} to {figures(max(ms))}" if rounds > 1 else "one run"
        rows.append((name, figures(median(ms)), ends, peak_mib(tool.runs[1:])))
    many.whole.unlink()
    return PYTHON.format(
        rounds="one round" if rounds == 1 else f"median of {rounds} rounds after one that is not counted",
        sample=f"sample-traces/{sample.name}",
        flows=many.content,
        table=aligned(rows),
    )


def yardsticks(folder: Path) -> dict[str, Path]:
    """The libpcap loops, compiled; none where that cannot be done."""
    compiled = {}
    for name, source in ((COUNT, "count.c"), (FLOWS, "flows.c")):
        program = folder / Path(source).stem
        command = ["cc", "-O2", "-o", str(program), str(Path(__file__).with_name(source)), "-lpcap"]
        if not shutil.which("cc") or subprocess.run(command, capture_output=True, check=False).returncode:
            return {}
        compiled[name] = program
    return compiled


def scenario_of(path: Path) -> Scenario:
    """A capture that is not generated, whose first bytes say how it is compressed."""
    with path.open("rb") as file:
        head = file.read(4)
    packed = "gzip" if head[:2] == b"\x1f\x8b" else "zstd" if head == b"\x28\xb5\x2f\xfd" else None
    return Scenario("large", f"{path.stat().st_size / 1e6:,.1f} MB", command=True, packed=packed, path=path)


def generated(folder: Path, scenario: Scenario, packets: int) -> Captures:
    """The capture whole and empty, made by a process of its own: this one stays small."""

    def generate(name: str, count: int) -> tuple[Path, str]:
        path = folder / name
        script = Path(__file__).with_name("generate.py")
        arguments = [str(script), str(path), str(count), scenario.kind, str(SEED)]
        content = subprocess.check_output([sys.executable, *arguments], text=True).strip()
        if scenario.packed:
            packed = path.with_suffix(".packed")
            with packed.open("wb") as file:
                subprocess.run([scenario.packed, "-c", path], stdout=file, check=True)
            path.unlink()
            path = packed
        reread(path)
        return path, content

    empty, _ = generate("empty.pcap", 0)
    if scenario.path:
        found = json.loads(subprocess.check_output([*ENGINE_COMMAND, scenario.path]))
        if not found["packets"]:
            raise SystemExit(f"{scenario.path}: has no packets")
        return Captures(scenario.path, empty, found["packets"], f"{found['packets']:,} packets")
    whole, content = generate("whole.pcap", packets)
    return Captures(whole, empty, packets, content)


def reread(path: Path) -> None:
    """Has the page cache hold the file as it was read, where the system can be asked to, not as it was written."""
    if not hasattr(os, "posix_fadvise"):
        return
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(1 << 20):
            pass


def reads(tool: Tool, captures: Captures) -> bool:
    """The program can read the capture; what cannot is said, and left out."""
    try:
        run(tool, captures.whole)
    except subprocess.CalledProcessError as error:
        print(f"{captures.whole}: {tool.name} cannot read it, it fails with status {error.returncode}")
        return False
    return True


def check(captures: Captures, tcptrace: bool) -> str:
    """That the engine saw every packet, and whether tcptrace counts as many retransmissions; a sentence."""
    found = json.loads(subprocess.check_output([*ENGINE_COMMAND, captures.whole]))
    if found["packets"] != captures.packets:
        raise SystemExit(f"the engine read {found['packets']} packets of {captures.packets}: nothing was measured")
    sentence = f"tcpfit finds {found['flows']:,} flows with data and {found['resent']:,} segments sent again"
    if not tcptrace:
        return f"{sentence}."
    counted = 0
    with subprocess.Popen(
        ["tcptrace", "-l", "-n", captures.whole], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        for line in process.stdout or ():
            if "rexmt data pkts:" in line or "outoforder pkts:" in line:
                counted += sum(int(number) for number in re.findall(r": +(\d+)", line))
    return f"{sentence}; tcptrace counts {counted:,}."


def run(tool: Tool, capture: Path | None, compiled: Path | None = None) -> Run:
    """Run it to its end; Python keeps its compiled modules in the folder `compiled`, where there is one."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [*tool.command, *([] if capture is None else [str(capture)])]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if tool.reports else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=None if compiled is None else own | {"PYTHONPYCACHEPREFIX": str(compiled)},
    )
    with process:
        output = process.stdout.read() if process.stdout else b""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    if tool.reports:
        said = json.loads(output)
        return Run(said["cpu_s"], said["peak_kib"])
    return Run(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def touch_memory() -> None:
    """Another process takes memory and gives it back, see the page; not where there is little."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    subprocess.run([sys.executable, "-S", "-c", TOUCH, str(min(TOUCHED_BYTES, free // 2))], check=True)


def costs_s(tool: Tool, scale: float) -> list[float]:
    """Seconds for the whole capture, a round each."""
    if not tool.sampled:
        return [one.cpu_s for one in tool.runs]
    pairs = zip(tool.runs, tool.start_up, strict=True)
    return [start.cpu_s + (one.cpu_s - start.cpu_s) * scale for one, start in pairs]


def table(tools: list[Tool], captures: Captures) -> str:
    """A row a program, as a Markdown table that reads well in a terminal too."""
    costs = {tool.name: costs_s(tool, captures.scale) for tool in tools}
    rows: list[tuple[str, ...]] = [
        ("program", "ns/packet", "least to largest", "packets/s", "x cat", "x engine", "peak MiB", "start-up ms", "MiB")
    ]
    for tool in tools:
        first = 0 if tool.once else 1
        ns = [cost_s / captures.packets * 1e9 for cost_s in costs[tool.name][first:]]
        beside = [costs[name][1:] if not tool.once else [median(costs[name][1:])] for name in (YARDSTICK, ENGINE)]
        rows.append(
            (
                tool.name,
                figures(median(ns)),
                f"{figures(min(ns))} to {figures(max(ns))}" if len(ns) > 1 else "one run",
                rate(1e9 / median(ns)),
                *(figures(median(map(truediv, costs[tool.name][first:], others))) for others in beside),
                peak_mib(tool.runs[first:]),
                f"{median(one.cpu_s for one in tool.start_up[first:]) * 1e3:.0f}",
                peak_mib(tool.start_up[first:]),
            )
        )
    return aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Markdown: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) + " |" for row in rows]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([lines[0], "| " + " | ".join(rule) + " |", *lines[1:]])


def figures(value: float) -> str:
    """Three significant figures, no exponent."""
    decimals = 2 - math.floor(math.log10(value)) if value > 0 else 0
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


def rate(per_s: float) -> str:
    return f"{figures(per_s / 1e6)} M" if per_s >= 1e6 else f"{figures(per_s / 1e3)} k"


def peak_mib(runs: list[Run]) -> str:
    """The largest; a process begins with the peak of the one that started it, so nothing below this one's is known."""
    own_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    largest_kib = max(run.peak_kib for run in runs)
    return f"<{math.ceil(own_kib / 1024)}" if largest_kib <= own_kib else f"{largest_kib / 1024:,.0f}"


def machine(missing: Iterable[str]) -> str:
    """The machine and the programs' versions; nothing that names it."""
    processor = platform.processor() or platform.machine()
    if (cpuinfo := Path("/proc/cpuinfo")).exists():
        model = re.search(r"^model name\s*: (.*)", cpuinfo.read_text(), re.MULTILINE)
        processor = model[1].strip() if model else processor
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kernel = re.match(r"[\d.]+", platform.release())
    versions = [f"Python {platform.python_version()}", f"polars {distribution('polars')}"]
    versions += [f"{name} {found}" for name in ("cat", "capinfos", "tcptrace", "tshark") if (found := version(name))]
    lines = [
        f"Measured on {date.today()}: {processor}, {os.cpu_count()} processors, {memory_gib:.0f} GiB of memory, "
        f"{platform.system()} {kernel[0] if kernel else ''};",
        f"{', '.join(versions)}.",
        *(f"`{name}` is not installed and left out." for name in missing),
    ]
    return "\n".join(lines)


def version(program: str) -> str | None:
    """The first thing that looks like a version in what it says of itself."""
    if not shutil.which(program):
        return None
    option = "-v" if program == "tcptrace" else "--version"
    said = subprocess.run([program, option], capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)+", said.stdout + said.stderr)
    return found[0] if found else "of unknown version"


if __name__ == "__main__":
    sys.exit(main())
