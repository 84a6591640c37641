"""How a connection ended, and what of it is in the capture: by hand, and beside Wireshark's completeness."""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
from pathlib import Path

import captures
import polars as pl
import pytest
from click.testing import CliRunner
from tcpfit.cli.main import main
from test_scenarios import Reader

import tcpfit

SAMPLES = Path(__file__).parent.parent / "sample-traces"

HANDSHAKE = """
+0 > S 0:0(0) win 64000 <mss 1000>
+0.05 < S. 0:0(0) ack 1 win 64000 <mss 1000>
+0.0001 > . 1:1(0) ack 1
"""
DATA = """
+0.01 > P. 1:1001(1000) ack 1
+0.05 < . 1:1(0) ack 1001
"""
BOTH_WAYS = """
+0.01 > P. 1:101(100) ack 1
+0.05 < P. 1:1001(1000) ack 101
+0.0001 > . 101:101(0) ack 1001
"""


def flows(tmp_path: Path, trace: str) -> list[dict[str, object]]:
    """The rows of a trace's flows, that of the capturing host first."""
    path = tmp_path / "ending.pcap"
    path.write_bytes(captures.pcap(Reader().read(trace).packets))
    return tcpfit.analyze(path).flows.sort("src").to_dicts()


@pytest.mark.parametrize(
    ("trace", "ending", "completeness", "reset_frame"),
    [
        (HANDSHAKE + DATA, "open", 15, None),
        (DATA, "open", 12, None),
        (HANDSHAKE + DATA + "+0.01 > F. 1001:1001(0) ack 1", "half-closed", 31, None),
        (
            HANDSHAKE + DATA + "+0.01 > F. 1001:1001(0) ack 1\n+0.05 < F. 1:1(0) ack 1002\n+0.1 > . 1002:1002(0) ack 2",
            "closed",
            31,
            None,
        ),
        # a reset of what both ends have closed only clears it away
        (
            HANDSHAKE + DATA + "+0.01 > F. 1001:1001(0) ack 1\n+0.05 < F. 1:1(0) ack 1002\n+0.1 > R 1002:1002(0)",
            "closed",
            63,
            8,
        ),
        (HANDSHAKE + DATA + "+0.01 > R. 1001:1001(0) ack 1", "reset-by-sender", 47, 6),
        (HANDSHAKE + DATA + "+0.01 < R. 1:1(0) ack 1001", "reset-by-receiver", 47, 6),
        # the first counts, others answer what comes after it
        (
            HANDSHAKE + DATA + "+0.01 < R. 1:1(0) ack 1001\n+0.01 > P. 1001:2001(1000) ack 1\n+0.05 < R 1:1(0)",
            "reset-by-receiver",
            47,
            6,
        ),
        # the answer to an ACK of an earlier connection resets nothing of this one
        (
            """
            +0 > S 0:0(0) win 64000 <mss 1000>
            +0.05 < . 777:777(0) ack 888
            +0.0001 > R 888:888(0)
            +0.9499 > S 0:0(0) win 64000 <mss 1000>
            +0.05 < S. 0:0(0) ack 1 win 64000 <mss 1000>
            +0.0001 > . 1:1(0) ack 1
            """
            + DATA,
            "open",
            15,
            None,
        ),
        # nobody answered
        ("+0 > S 0:0(0) <mss 1000>\n+1 > S 0:0(0) <mss 1000>", "open", 1, None),
    ],
)
def test_endings_by_hand(tmp_path, trace, ending, completeness, reset_frame):
    (row,) = flows(tmp_path, trace)
    assert (ending, completeness, reset_frame) == (row["ending"], row["completeness"], row["reset_frame"])


def test_both_flows_of_a_connection_say_the_same(tmp_path):
    client, server = flows(tmp_path, HANDSHAKE + BOTH_WAYS + "+0.01 > R. 101:101(0) ack 1001")
    assert ("reset-by-sender", "reset-by-receiver") == (client["ending"], server["ending"])
    assert (47, 7) == (client["completeness"], client["reset_frame"])
    assert (47, 7) == (server["completeness"], server["reset_frame"])


def test_a_connection_of_which_only_acks_are_seen_has_no_data(tmp_path):
    (row,) = flows(
        tmp_path,
        """
        +0 < S. 0:0(0) ack 1 win 64000 <mss 1000>
        +0.05 < . 1:1(0) ack 1001
        +0.05 < . 1:1(0) ack 3001
        +0.05 < F. 1:1(0) ack 3001
        """,
    )
    assert ("half-closed", 22) == (row["ending"], row["completeness"])


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*.pcap.gz")), ids=lambda path: path.name)
def test_completeness_is_wiresharks(path):
    columns = ("ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport", "tcp.completeness")
    fields = [part for column in columns for part in ("-e", column)]
    # the first pass writes what was seen by then
    command = ["tshark", "-2", "-r", str(path), "-Y", "tcp", "-T", "fields", "-E", "occurrence=f", *fields]
    expected = {}
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        v4, v6, port, to_v4, to_v6, to_port, bits = line.split("\t")
        ends = frozenset({(ipaddress.ip_address(v4 or v6), port), (ipaddress.ip_address(to_v4 or to_v6), to_port)})
        expected[ends] = int(bits)
    analysis = tcpfit.analyze(path)
    connections = analysis.flows.unique("connection").filter(pl.len().over("src", "src_port", "dst", "dst_port") == 1)
    found = {
        frozenset(
            {
                (ipaddress.ip_address(row["src"]), str(row["src_port"])),
                (ipaddress.ip_address(row["dst"]), str(row["dst_port"])),
            }
        ): row["completeness"]
        for row in connections.to_dicts()
    }
    assert found
    assert found == {ends: expected[ends] for ends in found}


REFUSED = """
+0 > S 0:0(0) win 64000 <mss 1000> [port 50001]
+0.05 < R. 0:0(0) ack 1 [port 50001]
"""
UNANSWERED = "+1 > S 0:0(0) win 64000 <mss 1000> [port {port}]\n"
OPENED = """
+1 > S 0:0(0) win 64000 <mss 1000> [port 50003]
+0.05 < S. 0:0(0) ack 1 win 64000 <mss 1000> [port 50003]
+0.0001 > . 1:1(0) ack 1 [port 50003]
+0.01 > F. 1:1(0) ack 1 [port 50003]
+0.05 < F. 1:1(0) ack 2 [port 50003]
"""


@pytest.mark.parametrize(
    ("trace", "refused", "unanswered", "opened"),
    [
        (REFUSED, 1, 0, 0),
        # sent again it is a flow of expiries, and was not answered either
        (UNANSWERED.format(port=50002) * 3, 0, 1, 0),
        (OPENED, 0, 0, 1),
        (REFUSED + "".join(UNANSWERED.format(port=51000 + n) for n in range(5)) + OPENED, 1, 5, 1),
        # its own RST is no answer
        (UNANSWERED.format(port=50002) + "+0.1 > R. 1:1(0) ack 0 [port 50002]", 0, 1, 0),
        # who acknowledges was answered, in a direction that was not captured
        (UNANSWERED.format(port=50002) + "+0.1 > . 1:1(0) ack 1 [port 50002]", 0, 0, 1),
        (HANDSHAKE + DATA, 0, 0, 0),
        # the end of a connection that began before the capture
        ("+0 > F. 1:1(0) ack 1\n+0.05 < R 1:1(0)", 0, 0, 0),
    ],
)
def test_connections_without_data_are_counted(tmp_path, trace, refused, unanswered, opened):
    path = tmp_path / "attempts.pcap"
    path.write_bytes(captures.pcap(Reader().read(trace).packets))
    analysis = tcpfit.analyze(path)
    counts = {"refused": refused, "unanswered": unanswered, "opened": opened}
    assert counts == analysis.capture["without_data"]
    assert [tuple(counts.values())] == analysis.captures.select("^without_data_.*$").rows()


def test_connections_without_data_are_told_and_saved(tmp_path):
    path, folder = tmp_path / "attempts.pcap", tmp_path / "tables"
    path.write_bytes(captures.pcap(Reader().read(REFUSED + OPENED).packets))
    shown = CliRunner().invoke(main, ["analyze", str(path), "--output", str(folder)])
    assert 0 == shown.exit_code
    assert "connections without data: 1 refused, 1 opened" in shown.output
    assert {"refused": 1, "unanswered": 0, "opened": 1} == tcpfit.load(folder / "attempts").capture["without_data"]
    page = tmp_path / "page.html"
    assert 0 == CliRunner().invoke(main, ["analyze", str(path), "--html", str(page)]).exit_code
    assert "1 refused, 1 opened" in page.read_text()
