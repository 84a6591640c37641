"""Is each event found where it must be, for the reason it must have? One `scenarios/*.trace` a question.

A trace is written as packetdrill writes it, one segment a line, the capturing host on the left:

    +0.05 > P. 1:1001(1000) ack 1 win 500 <TS val 7 ecr 3> [id 12] #name

that is: seconds since the segment before (without `+`: since the start), `>` out of the capturing host or `<` into
it, flags (S, F, R, P, U, E, W, A for AE; `.` is ACK), sequence numbers counted from the initial ones, ACK, window
field, options (mss, sackOK, wscale, nop, TS, sack, mp_capable, dss dack8), and a name that expectations use for its
frame. In brackets: `id N`, the IP identification (otherwise each host counts up); `copy`, the identification of the
host's packet before; `lost`, the segment was sent but did not reach the capture point; `ect` or `ce`, the ECN field of
the IP header; `ttl N`; `port N`, the port of the capturing host.

Lines that set something for those that follow: `isn > N`, an initial sequence number; `id > N`, a constant
identification.

Expectations start with `=`: the flow (`>` or `<` names its data sender, `>2` the second of that host) and either
`kind reason frame cause`, where frames are names of lines, `-` for none, or `?` for one that is another trace's
question, or columns of the flows table with their values (`-` for null, `yes` or `no`). A flow's events must be those
listed and no others.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import captures
import pytest

import tcpfit
from tcpfit.schema import KINDS

FOLDER = Path(__file__).parent / "scenarios"
TRACES = sorted(FOLDER.glob("*.trace"))
READERS = ("engine", "dpkt")

HOSTS = {">": ("10.0.0.1", "10.0.0.2"), "<": ("10.0.0.2", "10.0.0.1")}
PEER = {">": "<", "<": ">"}
PORT, SERVICE = 40000, 80
FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, ".": 16, "U": 32, "E": 64, "W": 128, "A": 256}
ECN = {"ect": 2, "ce": 3}
SEGMENT = re.compile(
    r"(?P<plus>\+?)(?P<time>\d+(\.\d+)?) (?P<way>[<>]) (?P<flags>[FSRPUEWA.]+) "
    r"(?P<left>\d+):(?P<right>\d+)\((?P<size>\d+)\)"
    r"( ack (?P<ack>\d+))?( win (?P<window>\d+))?( <(?P<options>[^>]+)>)?( \[(?P<notes>[^\]]+)\])?( #(?P<name>[\w-]+))?"
)
SETTING = re.compile(r"(isn|id) ([<>]) (\d+)")
EXPECTED = re.compile(r"= (?P<way>[<>])(?P<number>\d*) (?P<rest>.+)")


@dataclass
class Scenario:
    """Packets of a trace, frame numbers by name, and what must be found: (direction, number) -> events and columns."""

    packets: list[captures.Packet] = field(default_factory=list)
    frames: dict[str, int] = field(default_factory=dict)
    events: dict[tuple[str, int], list[tuple]] = field(default_factory=dict)
    columns: dict[tuple[str, int], dict[str, float | str]] = field(default_factory=dict)


class Reader:
    """Reads a trace line by line."""

    def __init__(self) -> None:
        self.scenario = Scenario()
        self.isn = {">": 1_000_000, "<": 5_000_000}
        self.ids = {">": 100, "<": 7000}
        self.constant: dict[str, int] = {}
        self.now_ns = 0

    def read(self, text: str) -> Scenario:
        for number, line in enumerate(text.splitlines(), 1):
            line = " ".join(line.split("//")[0].split())
            if not line:
                continue
            if match := SEGMENT.fullmatch(line):
                self.segment(match)
            elif match := SETTING.fullmatch(line):
                (self.isn if match[1] == "isn" else self.constant)[match[2]] = int(match[3])
            elif match := EXPECTED.fullmatch(line):
                self.expected(match)
            else:
                raise ValueError(f"line {number} is no segment, setting or expectation: {line}")
        return self.scenario

    def segment(self, line: re.Match[str]) -> None:
        way, size = line["way"], int(line["size"])
        left, right = int(line["left"]), int(line["right"])
        if right - left != size:
            raise ValueError(f"{left}:{right} is not {size} long")
        time_ns = round(float(line["time"]) * 1e9)
        self.now_ns = self.now_ns + time_ns if line["plus"] else time_ns
        notes = dict((note.split() + [""])[:2] for note in (line["notes"] or "").split(", ") if note)
        ip_id = self.identification(way, notes)
        if "lost" in notes:
            return
        ports = (int(notes.get("port", PORT)), SERVICE)
        ports = ports if way == ">" else ports[::-1]
        ack = self.isn[PEER[way]] + int(line["ack"]) if line["ack"] else 0
        flags = sum(FLAGS[flag] for flag in line["flags"])
        options = self.options(line["options"], PEER[way])
        datagram = captures.tcp(
            *HOSTS[way],
            *ports,
            self.isn[way] + left,
            ack,
            flags,
            size,
            options,
            window=int(line["window"] or 500),
            ip_id=ip_id,
        )
        if "ttl" in notes:
            datagram = datagram[:8] + bytes([int(notes["ttl"])]) + datagram[9:]
        for name in ECN.keys() & notes.keys():
            datagram = datagram[:1] + bytes([ECN[name]]) + datagram[2:]
        frame = captures.link(datagram, captures.ETHERNET)
        self.scenario.packets.append(captures.Packet(captures.START_NS + self.now_ns, frame[:128], len(frame)))
        if line["name"]:
            self.scenario.frames[line["name"]] = len(self.scenario.packets)

    def identification(self, way: str, notes: dict[str, str]) -> int:
        if way in self.constant:
            return self.constant[way]
        if "id" in notes:
            self.ids[way] = max(self.ids[way], int(notes["id"]))
            return int(notes["id"])
        self.ids[way] += "copy" not in notes
        return self.ids[way]

    def options(self, text: str | None, peer: str) -> bytes:
        out = b""
        for option in (text or "").split(","):
            match option.split():
                case ["mss", value]:
                    out += struct.pack(">BBH", 2, 4, int(value))
                case ["wscale", value]:
                    out += struct.pack(">BBB", 3, 3, int(value))
                case ["sackOK"]:
                    out += b"\x04\x02"
                case ["TS", "val", value, "ecr", echo]:
                    out += struct.pack(">BBII", 8, 10, int(value), int(echo))
                case ["sack", *blocks]:
                    edges = [int(edge) + self.isn[peer] & 0xFFFFFFFF for block in blocks for edge in block.split(":")]
                    out += struct.pack(f">BB{len(edges)}I", 5, 2 + 4 * len(edges), *edges)
                case ["mp_capable", *key]:  # RFC 8684, 3.1: version 1; the answer has a key
                    out += struct.pack(">BBBB", 30, 4 + 8 * len(key), 1, 1) + b"".join(int(k).to_bytes(8) for k in key)
                case ["dss", "dack8", value]:  # RFC 8684, 3.3: what has come of all subflows' data
                    out += struct.pack(">BBBBQ", 30, 12, 0x20, 3, int(value))
                case ["nop"]:
                    out += b"\x01"
                case []:
                    pass
                case _:
                    raise ValueError(f"no such option: {option}")
        return out + b"\x01" * (-len(out) % 4)

    def frame(self, name: str) -> int | str | None:
        return {"-": None, "?": "?"}.get(name, self.scenario.frames.get(name, name))

    @staticmethod
    def value(word: str) -> float | str | bool | None:
        """Of a column: a number, a word, `yes` or `no`, or `-` for null."""
        named = {"-": None, "yes": True, "no": False}
        return named[word] if word in named else float(word) if word[0].isdigit() else word

    def expected(self, line: re.Match[str]) -> None:
        flow = (line["way"], int(line["number"] or 1))
        words = line["rest"].split()
        if words[0] in KINDS:
            kind, reason, *frames = words
            found = (kind, reason, *(self.frame(name) for name in frames))
            self.scenario.events.setdefault(flow, []).append(found)
        else:
            values = (self.value(word) for word in words[1::2])
            pairs = zip(words[::2], values, strict=True)
            self.scenario.columns.setdefault(flow, {}).update(pairs)


def ordered(events: list[tuple]) -> list[tuple]:
    return sorted(events, key=lambda event: [str(value) for value in event])


def asked(expected: list[tuple], actual: list[tuple]) -> list[tuple]:
    """The actual events, with `?` where the expected ones have it."""
    open_ended = {event[:3] for event in expected if event[3] == "?"}
    return [(*event[:3], "?") if event[:3] in open_ended else event for event in actual]


@pytest.fixture(params=TRACES, ids=lambda path: path.stem)
def trace(request):
    return request.param


@pytest.mark.parametrize("reader", READERS)
def test_scenario(trace, reader, tmp_path):
    scenario = Reader().read(trace.read_text())
    path = tmp_path / f"{trace.stem}.pcap"
    path.write_bytes(captures.pcap(scenario.packets))
    analysis = tcpfit.analyze(path, reader=reader)
    assert scenario.events or scenario.columns, "the trace expects nothing"
    seen: Counter[str] = Counter()
    for row in analysis.flows.sort("flow").iter_rows(named=True):
        way = ">" if row["src"] == HOSTS[">"][0] else "<"
        seen[way] += 1
        flow = (way, seen[way])
        of_flow = analysis.events.filter(flow=row["flow"])
        actual = of_flow.select("kind", "reason", "frame", "cause_frame").rows()
        events = scenario.events.pop(flow, [])
        assert ordered(events) == ordered(asked(events, actual)), f"events of flow {way}{seen[way]}"
        expected = scenario.columns.pop(flow, {})
        assert expected == {name: row[name] for name in expected}, f"columns of flow {way}{seen[way]}"
    assert not scenario.events, "flows that are not there"
    assert not scenario.columns, "flows that are not there"


def test_every_trace_says_what_it_proves():
    assert len(TRACES) >= 20
    for path in TRACES:
        assert path.read_text().startswith("// "), f"{path.name} starts with a comment that says what it proves"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("+0 > . 1:1001(999) ack 1", "is not 999 long"),
        ("+0 ? . 1:1(0)", "line 1 is no segment"),
        ("+0 > . 1:1(0) <bogus>", "no such option"),
    ],
)
def test_mistakes_in_a_trace_are_named(line, why):
    with pytest.raises(ValueError, match=why):
        Reader().read(line)
