"""Does the engine find what happened to the sample captures, and does the container not matter?"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import captures
import pytest
import zstandard

import tcpfit
from tcpfit.readers.containers import open_capture
from tcpfit.readers.files import Stream
from tcpfit.report import contract

FOLDER = Path(__file__).parent.parent / "sample-traces"
TRUTHS = {path.name.removesuffix(".truth.json"): path for path in sorted(FOLDER.glob("*.truth.json"))}
CAPTURES = [(name, end) for name in TRUTHS for end in json.loads(TRUTHS[name].read_text())["captures"]]
TABLES = ("flows", "events", "rounds")

# count -> (share of the truth, absolute) by which it may be off; the larger holds
TOLERANCE = {
    "data_segments": (0, 0),
    "retransmitted_segments": (0, 0),
    "lost_segments": (0.02, 1),
    "spurious_retransmissions": (0.05, 1),
    "loss_events": (0.05, 1),
    "fast_recoveries": (0.05, 1),
    "timeouts": (0.05, 1),
    "tail_loss_probes": (0.10, 1),
    "reorder_events": (0.05, 1),
    "reordered_segments": (0.05, 1),
    "p": (0.05, 2e-5),
    "q_tilde": (0.03, 2e-5),
    "goodput_bps": (0.02, 0),
}
SENDER_ONLY = {"retransmitted_segments", "spurious_retransmissions", "tail_loss_probes"}
RECEIVER_ONLY = {"reorder_events", "reordered_segments"}

# (sample, end, what) -> why it is not asserted
LEFT_OUT: dict[tuple[str, str, str], str] = {
    ("netstack-reordering", "sender", "fast_recoveries"): "25 for 23: the first one counts thrice, before the "
    "host shows that it does not take recoveries back",
    ("small-writes", "sender", "fast_recoveries"): "smoltcp counts every three duplicate ACKs, also within a recovery",
    ("small-writes", "receiver", "fast_recoveries"): "the same",
    ("small-writes", "receiver", "lost_segments"): "63 of 65: its packets have no identifications that count",
    ("small-writes", "receiver", "q_tilde"): "the same",
}

# samples whose losses are compared one by one with the path's own list
EXACT_LOSSES = sorted(set(TRUTHS) - {"ns2-reno"})


def truth_of(name: str) -> dict:
    return json.loads(TRUTHS[name].read_text())


def path_of(name: str, end: str) -> Path:
    return FOLDER / truth_of(name)["captures"][end]


@pytest.fixture(scope="module")
def analysis_of():
    """Analyses by sample and end, each made once."""
    made: dict[tuple[str, str], tcpfit.Analysis] = {}

    def get(name: str, end: str) -> tcpfit.Analysis:
        if (name, end) not in made:
            made[name, end] = tcpfit.analyze(path_of(name, end))
        return made[name, end]

    return get


def flows_of(truth: dict, document: dict) -> list[dict]:
    """Flows of the JSON whose data sender is the sample's."""
    return [flow for flow in document["captures"][0]["flows"] if flow["src"] == truth["flows"][0]["src"]]


def expected_values(truth: dict, end: str) -> dict[str, tuple[float, float]]:
    """What the truth says: fewest and most."""
    counts = truth["counts"]
    sent, lost = counts["data_segments_sent"], counts["lost_segments"]
    fewest, most = counts["loss_events"]
    needless = counts["retransmitted_segments"] - lost
    values = {name: (counts[name],) * 2 for name in TOLERANCE if name in counts and name != "loss_events"}
    values["data_segments"] = (sent if end == "sender" else counts["data_segments_delivered"],) * 2
    values["loss_events"] = (fewest, most)
    # a needless copy may have been dropped too
    values["spurious_retransmissions"] = (max(needless, 0), max(needless, 0) + counts["lost_retransmissions"])
    if lost:
        values["p"] = (fewest / sent, most / sent)
        values["q_tilde"] = (lost / sent,) * 2
    goodputs = [flow.get("goodput_bps") for flow in truth["flows"]]
    if len(goodputs) == 1 and goodputs[0]:
        values["goodput_bps"] = (goodputs[0],) * 2
    other = SENDER_ONLY if end == "receiver" else RECEIVER_ONLY
    return {name: value for name, value in values.items() if name not in other}


def actual_value(name: str, flows: list[dict], end: str) -> float:
    """The same from the JSON, summed over the flows."""
    if name == "goodput_bps":
        return flows[0]["observed"][name]
    if name not in ("p", "q_tilde"):
        return sum(flow["counts"][name] for flow in flows)
    if len(flows) == 1:
        return flows[0]["parameters"][name]["value"]
    losses = actual_value("lost_segments", flows, end)
    sent = actual_value("data_segments", flows, end) + (losses if end == "receiver" else 0)
    return (losses if name == "q_tilde" else actual_value("loss_events", flows, end)) / sent


def test_there_are_samples():
    assert len(TRUTHS) >= 10
    for name, end in CAPTURES:
        assert path_of(name, end).is_file()
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 8_000_000
    assert set(LEFT_OUT) <= {(name, end, what) for name, end in CAPTURES for what in TOLERANCE}


@pytest.mark.parametrize(("name", "end"), CAPTURES, ids=lambda value: value)
def test_counts_and_rates(name, end, analysis_of):
    truth = truth_of(name)
    flows = flows_of(truth, analysis_of(name, end).to_dict())
    assert len(truth["flows"]) == len(flows)
    wrong = []
    for what, (fewest, most) in expected_values(truth, end).items():
        if (name, end, what) in LEFT_OUT:
            continue
        share, absolute = TOLERANCE[what]
        actual = actual_value(what, flows, end)
        off = max(fewest - actual, 0, actual - most)
        if off > max(absolute, share * (fewest if actual < fewest else most)) + 1e-12:
            wrong.append(f"{what}: expected {fewest:g} to {most:g}, found {actual:g}")
    assert not wrong, f"{name} at the {end}: " + "; ".join(wrong)


@pytest.mark.parametrize(("name", "end"), CAPTURES, ids=lambda value: value)
def test_vantage(name, end, analysis_of):
    sender = truth_of(name)["flows"][0]["src"]
    flows = analysis_of(name, end).flows
    positions = {flow["vantage"] for flow in flows.iter_rows(named=True) if flow["src"] == sender}
    assert {end} == positions


@pytest.mark.parametrize("name", EXACT_LOSSES)
def test_losses_one_by_one(name, analysis_of):
    """At the sender every loss event names the bytes that the path dropped, as often as it dropped them."""
    truth = truth_of(name)
    analysis = analysis_of(name, "sender")
    ends = ["src", "src_port", "dst", "dst_port"]
    found: Counter[tuple] = Counter()
    flows = {row["flow"]: tuple(row[key] for key in ends) for row in analysis.flows.iter_rows(named=True)}
    for event in analysis.events.iter_rows(named=True):
        if event["kind"] == "loss":
            found[*flows[event["flow"]], event["left"]] += event["segments"]
    dropped = Counter((*(flow[key] for key in ends), drop[1]) for flow in truth["flows"] for drop in flow["drops"])
    allowed = max(1, 0.02 * dropped.total())
    assert (dropped - found).total() <= allowed, f"not found: {sorted((dropped - found).elements())[:5]}"
    assert (found - dropped).total() <= allowed, f"not lost: {sorted((found - dropped).elements())[:5]}"


def test_reordered_segments_one_by_one(analysis_of):
    """At the receiver every late arrival is one that the path held back."""
    held = {offset for flow in truth_of("reordering")["flows"] for _, offset, passed in flow["held"] if passed}
    events = analysis_of("reordering", "receiver").events
    assert held == {event["left"] for event in events.iter_rows(named=True) if event["kind"] == "reordering"}


def test_zero_windows(analysis_of):
    """The kernel counts how often it advertised no window."""
    advertised = truth_of("slow-reader")["counters"]["receiver"]["TCPToZeroWindowAdv"]
    found = analysis_of("slow-reader", "sender").flows["zero_window_episodes"].sum()
    assert abs(found - advertised) <= max(1, 0.05 * advertised)


@pytest.mark.parametrize(("name", "end"), CAPTURES, ids=lambda value: value)
def test_document_is_json_and_repeatable(name, end, analysis_of):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    expected = contract.dumps(analysis_of(name, end).to_dict())
    json.loads(expected, parse_constant=refuse)
    assert expected == contract.dumps(tcpfit.analyze(path_of(name, end)).to_dict())


def packets_of(path: Path) -> list:
    stream = Stream(str(path), None)
    try:
        return list(open_capture(stream, str(path))[1])
    finally:
        stream.close()


def in_sections(packets: list) -> bytes:
    size = -(-len(packets) // 7)
    return b"".join(captures.pcapng(packets[at : at + size]) for at in range(0, len(packets), size))


ENCODINGS = {
    "pcap": captures.pcap,
    "pcap.gz": lambda packets: gzip.compress(captures.pcap(packets), 1),
    "pcap.gz in members": lambda packets: b"".join(gzip.compress(part, 1) for part in pieces(captures.pcap(packets))),
    "pcap.zst": lambda packets: zstandard.ZstdCompressor().compress(captures.pcap(packets)),
    "pcap.zst in frames": lambda packets: b"".join(
        map(zstandard.ZstdCompressor().compress, pieces(captures.pcap(packets)))
    ),
    "pcapng": captures.pcapng,
    "pcapng in sections": in_sections,
    "pcapng.zst": lambda packets: zstandard.ZstdCompressor().compress(captures.pcapng(packets)),
}


def pieces(data: bytes, size: int = 100_003) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=str)
@pytest.mark.parametrize(
    ("name", "end"), [("timeouts", "sender"), ("newreno-small", "sender"), ("reordering", "receiver")]
)
def test_container_does_not_matter(name, end, encoding, analysis_of, tmp_path):
    path = tmp_path / "again"
    path.write_bytes(ENCODINGS[encoding](packets_of(path_of(name, end))))
    again = tcpfit.analyze(path)
    expected = analysis_of(name, end)
    assert expected.capture["packets"] == again.capture["packets"]
    for table in TABLES:
        assert getattr(expected, table).equals(getattr(again, table)), table
