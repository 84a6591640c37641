"""Do all readers give the same tables?"""

from __future__ import annotations

import gzip
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import captures
import pytest
import zstandard
from captures import Transfer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tcpfit
from tcpfit import CaptureError, InvalidParameter
from tcpfit.readers.decode import tcp_options

ROOT = Path(__file__).parent.parent
SAMPLES = sorted((ROOT / "sample-traces").glob("*.pcap*"))
THIRD_PARTY = sorted((ROOT.parent / "shared" / "captures").glob("*.pcap*"))
TABLES = ("flows", "events", "rounds")
FACTS = ("format", "link_types", "packets", "tcp_segments", "bytes", "start_ns", "end_ns", "skipped", "without_data")

needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed: the tshark reader is not compared"
)


def assert_same(path: Path, reader: str, **arguments):
    expected = tcpfit.analyze(path, **arguments)
    actual = tcpfit.analyze(path, reader=reader, **arguments)
    for name in TABLES:
        left, right = getattr(expected, name), getattr(actual, name)
        assert left.schema == right.schema
        different = [c for c in left.columns if left.height != right.height or not left[c].equals(right[c])]
        assert [] == different, f"{name} of {reader}, {left.height} rows and {right.height}"
    assert {key: expected.capture[key] for key in FACTS} == {key: actual.capture[key] for key in FACTS}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_dpkt_on_samples(path):
    assert_same(path, "dpkt")


@needs_tshark
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_tshark_on_samples(path):
    assert_same(path, "tshark")


@needs_tshark
@pytest.mark.skipif(not THIRD_PARTY, reason="captures of others are not here")
@pytest.mark.parametrize("reader", ["dpkt", "tshark"])
@pytest.mark.parametrize("path", THIRD_PARTY, ids=lambda path: path.stem)
def test_readers_on_captures_of_others(path, reader):
    assert_same(path, reader)


CASES = {
    "plain": Transfer(lost=frozenset({13})),
    "ipv6": Transfer(lost=frozenset({4, 30}), v6=True),
    "wrap": Transfer(lost=frozenset({7}), isn=2**32 - 9000),
    "vlan": Transfer(lost=frozenset({9}), tags=(0x8100,)),
    "qinq": Transfer(lost=frozenset({9}), tags=(0x88A8, 0x8100)),
    "null": Transfer(lost=frozenset({9}), link_type=captures.NULL),
    "null-ipv6": Transfer(v6=True, link_type=captures.NULL),
    "loop": Transfer(link_type=captures.LOOP),
    "raw": Transfer(lost=frozenset({9}), link_type=captures.RAW),
    "ipv4": Transfer(link_type=captures.IPV4),
    "ipv6-link": Transfer(v6=True, link_type=captures.IPV6),
    "cooked": Transfer(lost=frozenset({9}), link_type=captures.SLL),
    "cooked-2": Transfer(lost=frozenset({9}), link_type=captures.SLL2),
    "headers-only": Transfer(lost=frozenset({9}), snaplen=96),
    "options-cut": Transfer(lost=frozenset({9}), snaplen=60),
    "no-options": Transfer(lost=frozenset({9}), snaplen=54),
}


@pytest.fixture(params=CASES, ids=str)
def case(request, tmp_path):
    """A capture and the segments that were lost in it."""
    transfer = replace(CASES[request.param], packets=[])
    path = tmp_path / "case.pcap"
    path.write_bytes(captures.pcap(transfer.run(), transfer.link_type))
    return path, transfer.lost


def test_engine_counts_what_was_sent(case):
    path, lost = case
    flow = tcpfit.analyze(path).flows.row(0, named=True)
    assert 40_000 == flow["unique_bytes"]
    assert 40 + len(lost) == flow["data_segments"]
    assert len(lost) == flow["retransmitted_segments"]


def test_dpkt_on_link_layers(case):
    assert_same(case[0], "dpkt")


@needs_tshark
def test_tshark_on_link_layers(case):
    assert_same(case[0], "tshark")


@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
@pytest.mark.parametrize("container", ["pcap-us", "pcap-ns", "pcapng-us", "pcapng-ns", "gz", "two-gz", "zst"])
def test_containers(tmp_path, container, order):
    packets = Transfer(lost=frozenset({13})).run()
    data = {
        "pcap-us": lambda: captures.pcap(packets, order=order, nanoseconds=False),
        "pcapng-us": lambda: captures.pcapng(packets, order=order, resolution=6),
        "pcapng-ns": lambda: captures.pcapng(packets, order=order),
    }.get(container, lambda: captures.pcap(packets, order=order))()
    if container == "gz":
        data = gzip.compress(data)
    elif container == "two-gz":
        data = gzip.compress(data[:700]) + gzip.compress(data[700:])
    elif container == "zst":
        data = zstandard.ZstdCompressor().compress(data)
    path = tmp_path / "capture"
    path.write_bytes(data)
    assert 1 == tcpfit.analyze(path).flows.height
    assert_same(path, "dpkt")


@pytest.mark.parametrize("reader", ["dpkt", pytest.param("tshark", marks=needs_tshark)])
def test_packets_without_a_time_have_that_of_the_packet_before(tmp_path, reader):
    path = tmp_path / "simple.pcapng"
    path.write_bytes(captures.pcapng(Transfer(lost=frozenset({13})).run(), simple=(1, 2, 14)))
    assert_same(path, reader)
    (warning,) = tcpfit.analyze(path, reader=reader).warnings
    assert [warning] == tcpfit.analyze(path).warnings
    assert "frame 1: a simple packet block has no time" in warning and "(3 times)" in warning


@given(
    lost=st.frozensets(st.integers(0, 59), max_size=8),
    isn=st.integers(0, 2**32 - 1),
    window=st.integers(2, 20),
    v6=st.booleans(),
    cut=st.integers(0, 300),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_dpkt_equals_engine_on_any_transfer(tmp_path, lost, isn, window, v6, cut):
    data = captures.pcap(Transfer(segments=60, lost=lost, isn=isn, window=window, v6=v6).run())
    path = tmp_path / "any.pcap"
    path.write_bytes(data[: len(data) - cut])
    assert_same(path, "dpkt")


def test_span_counts_from_the_first_packet(tmp_path):
    path = tmp_path / "span.pcap"
    path.write_bytes(captures.pcap(Transfer(segments=200, lost=frozenset({50})).run()))
    whole = tcpfit.analyze(path).flows["data_segments"][0]
    part = tcpfit.analyze(path, from_s=0.3, to_s=0.8).flows["data_segments"][0]
    assert 0 < part < whole
    assert_same(path, "dpkt", from_s=0.3, to_s=0.8)


def test_filter_and_vantage_reach_every_reader(tmp_path):
    path = tmp_path / "two.pcap"
    packets = Transfer().run() + Transfer(sport=40001, start_s=0.01).run()
    path.write_bytes(captures.pcap(sorted(packets, key=lambda packet: packet.time_ns)))
    assert 2 == tcpfit.analyze(path).flows.height
    assert 1 == tcpfit.analyze(path, filter="port 40001", vantage="sender").flows.height
    assert_same(path, "dpkt", filter="port 40001", vantage="sender")


def test_what_is_no_tcp_is_named(tmp_path):
    udp = bytearray(captures.tcp("10.0.0.1", "10.0.0.2", 1, 2, 0, 0, 0))
    udp[9] = 17
    fragment = bytearray(captures.tcp("10.0.0.1", "10.0.0.2", 1, 2, 0, 0, 0))
    fragment[6:8] = struct.pack(">H", 0x2001)
    frames = [
        captures.link(bytes(udp), 1),
        captures.link(bytes(fragment), 1),
        bytes(12) + b"\x08\x06" + bytes(28),
        bytes(12) + b"\x88\xcc" + bytes(28),
    ]
    path = tmp_path / "other.pcap"
    packets = [captures.Packet(captures.START_NS + at, frame, len(frame)) for at, frame in enumerate(frames)]
    path.write_bytes(captures.pcap(packets))
    assert {"ARP": 1, "IP fragment": 1, "UDP": 1, "not IP": 1} == tcpfit.analyze(path).capture["skipped"]
    assert_same(path, "dpkt")
    if shutil.which("tshark"):
        assert_same(path, "tshark")


@pytest.mark.parametrize("reader", ["engine", "dpkt"])
def test_cut_capture_warns_and_keeps_what_came_before(tmp_path, reader):
    path = tmp_path / "cut.pcap"
    path.write_bytes(captures.pcap(Transfer().run())[:-7])
    analysis = tcpfit.analyze(path, reader=reader)
    assert 40 == analysis.flows["data_segments"][0]
    assert 1 == len(analysis.warnings)
    assert "the capture ends here" in analysis.warnings[0]


@pytest.mark.parametrize("reader", ["engine", "dpkt"])
@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "empty file"), (b"hello, this is no capture\n" * 4, "capture"), (b"\xd4\xc3\xb2\xa1", "header cut")],
    ids=["empty", "text", "header"],
)
def test_what_is_no_capture(tmp_path, reader, content, said):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(CaptureError, match=said) as error:
        tcpfit.analyze(path, reader=reader)
    assert str(path) in str(error.value)


def test_arguments_that_make_no_sense(tmp_path):
    path = tmp_path / "case.pcap"
    path.write_bytes(captures.pcap(Transfer().run()))
    for arguments in ({"reader": "eyes"}, {"vantage": "moon"}, {"filter": "nonsense ("}, {"from_s": 3, "to_s": 2}):
        with pytest.raises(InvalidParameter):
            tcpfit.analyze(path, **arguments)


@given(st.binary(max_size=60))
def test_options_never_fail(area):
    options = tcp_options(area, len(area) + 1)
    assert len(options.sack) % 2 == 0
    assert options.incomplete or 0 in area


@pytest.mark.parametrize("reader", ["engine", "dpkt"])
def test_options_that_are_cut_off_are_not_known(tmp_path, reader):
    path = tmp_path / "cut.pcap"
    path.write_bytes(captures.pcap(Transfer(lost=frozenset({9}), snaplen=54).run()))
    analysis = tcpfit.analyze(path, reader=reader)
    assert [None] == analysis.flows["sack_permitted"].to_list()
    assert ["cuts off the TCP options of 1 flow" in warning for warning in analysis.warnings] == [True]
    whole = tmp_path / "whole.pcap"
    whole.write_bytes(captures.pcap(Transfer(lost=frozenset({9})).run()))
    assert [] == tcpfit.analyze(whole, reader=reader).warnings
