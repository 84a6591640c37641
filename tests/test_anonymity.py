"""Do pseudonyms keep common prefixes exactly, one to one, and does no output show an address?"""

from __future__ import annotations

import ipaddress
import json
import re
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cli import assert_sentence, tcpfit

import tcpfit as package
from tcpfit.anonymity import UNREADABLE, Pseudonyms
from tcpfit.exceptions import InvalidParameter

SAMPLES = Path(__file__).parent.parent / "sample-traces"
TIMEOUTS, IPV6 = SAMPLES / "timeouts.pcap.gz", SAMPLES / "ipv6.pcap.gz"
KEY = b"a key of sixteen bytes or more"
KINDS = {4: (ipaddress.IPv4Address, 32), 6: (ipaddress.IPv6Address, 128)}


@st.composite
def pairs(draw):
    """Two addresses of one kind that share a prefix of a length that is drawn."""
    kind, length = KINDS[draw(st.sampled_from([4, 6]))]
    one = draw(st.integers(0, 2**length - 1))
    shared = draw(st.integers(0, length))
    rest = draw(st.integers(0, 2**length - 1)) & (2 ** (length - shared) - 1)
    return kind(one), kind(one >> (length - shared) << (length - shared) | rest)


def common(one, other):
    """Bits of the common prefix."""
    return one.max_prefixlen - (int(one) ^ int(other)).bit_length()


@settings(max_examples=150, deadline=None)
@given(pairs(), st.binary(min_size=16, max_size=40))
def test_common_prefixes_are_kept_exactly(pair, key):
    pseudonyms = Pseudonyms(key)
    shown = [ipaddress.ip_address(pseudonyms.of(str(address))) for address in pair]
    assert [address.version for address in pair] == [address.version for address in shown]
    assert common(*pair) == common(*shown)
    assert [Pseudonyms(key).of(str(address)) for address in pair] == [str(address) for address in shown]


def test_a_network_is_mapped_one_to_one():
    pseudonyms = Pseudonyms(KEY)
    shown = {pseudonyms.of(str(address)) for address in ipaddress.ip_network("192.0.2.0/24")}
    assert 256 == len(shown)
    assert 1 == len({address.rpartition(".")[0] for address in shown})


def test_another_key_gives_other_addresses():
    hosts = [f"10.{n}.{n}.{n}" for n in range(64)]
    one, other = ([Pseudonyms(key).of(host) for host in hosts] for key in (KEY, KEY[::-1]))
    assert one != other
    assert one != hosts


def test_a_text_that_is_no_address_is_hidden():
    assert UNREADABLE == Pseudonyms(KEY).of("host.example")


def test_a_short_key_is_said():
    with pytest.raises(InvalidParameter, match="at least 16 bytes, got 5"):
        Pseudonyms(b"short")


def test_numbers_stay_as_they_are():
    analysis = package.analyze(TIMEOUTS, segments=True)
    hidden = analysis.anonymized(KEY)
    assert analysis.flows.drop("src", "dst").equals(hidden.flows.drop("src", "dst"))
    assert analysis.segments.drop("src", "dst").equals(hidden.segments.drop("src", "dst"))
    assert analysis.events.equals(hidden.events)
    assert analysis.verdicts.equals(hidden.verdicts)
    assert not {"10.16.1.10", "10.16.1.20"} & {*hidden.flows["src"], *hidden.flows["dst"], *hidden.segments["src"]}


OUTPUTS = [
    ["analyze", "CAPTURE"],
    ["analyze", "CAPTURE", "--format", "json"],
    ["analyze", "CAPTURE", "--format", "jsonl"],
    ["analyze", "CAPTURE", "--format", "csv"],
    ["analyze", "CAPTURE", "--output", "OUT"],
    ["rank", "CAPTURE", "--format", "csv"],
    ["diagnose", "CAPTURE"],
    ["diagnose", "CAPTURE", "--format", "json"],
    ["events", "CAPTURE"],
    ["events", "CAPTURE", "--segments", "--format", "csv"],
    ["explain", "CAPTURE", "100"],
    ["explain", "CAPTURE", "100", "--format", "json"],
    ["plot", "time-sequence", "CAPTURE", "-o", "OUT.json"],
    ["report", "CAPTURE", "-o", "OUT.html"],
    ["pool", "CAPTURE", "--format", "json"],
    ["compare", "CAPTURE"],
    ["compare", "CAPTURE", "--format", "json"],
    ["compare", "CAPTURE", "--format", "csv"],
]


@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
def test_no_output_shows_an_address(tmp_path, arguments):
    if arguments[0] in ("plot", "report"):
        pytest.importorskip("altair")
    if arguments[0] == "compare" and shutil.which("tshark") is None:
        pytest.skip("tshark is not installed: nothing to compare with")
    key = tmp_path / "key"
    key.write_bytes(KEY)
    run = tcpfit(*(TIMEOUTS if each == "CAPTURE" else each for each in arguments), "--anonymize-key", key, cwd=tmp_path)
    assert (0, "") == (run.returncode, run.stderr)
    key.unlink()
    said = [run.stdout.encode(), *(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())]
    assert not [text for text in said if re.search(rb"10\.16\.1\.[12]0", text)]


def test_ipv6_is_hidden_too():
    analysis = package.analyze(IPV6)
    addresses = {*analysis.flows["src"], *analysis.flows["dst"]}
    hidden = analysis.anonymized(KEY)
    assert not addresses & {*hidden.flows["src"], *hidden.flows["dst"]}
    assert all(":" in address for address in hidden.flows["src"])


def flows_of(run):
    return [(flow["src"], flow["dst"]) for flow in json.loads(run.stdout)["captures"][0]["flows"]]


def test_a_key_of_the_run_is_said_and_one_from_the_environment_is_kept():
    runs = [tcpfit("analyze", TIMEOUTS, "--format", "json", "--anonymize") for _ in range(2)]
    assert all("addresses are anonymized with a key of this run" in run.stderr for run in runs)
    assert flows_of(runs[0]) != flows_of(runs[1])
    kept = [
        tcpfit("analyze", TIMEOUTS, "--format", "json", "--anonymize", env={"TCPFIT_ANONYMIZE_KEY": KEY.decode()})
        for _ in range(2)
    ]
    assert ["", ""] == [run.stderr for run in kept]
    assert flows_of(kept[0]) == flows_of(kept[1])
    assert [Pseudonyms(KEY).of("10.16.1.10")] == [src for src, _ in flows_of(kept[0])]


def test_a_key_that_is_none_is_a_sentence(tmp_path):
    (tmp_path / "key").write_text("short\n")
    assert_sentence(tcpfit("rank", TIMEOUTS, "--anonymize-key", tmp_path / "key"), 2, "16 bytes, got 5")
    assert_sentence(tcpfit("rank", TIMEOUTS, "--anonymize-key", tmp_path / "no"), 2, "No such file")
    batch = tcpfit("batch", TIMEOUTS, "-o", tmp_path / "set", env={"TCPFIT_ANONYMIZE_KEY": "x" * 20})
    assert 0 == batch.returncode  # the variable alone asks for nothing
    refused = tcpfit("batch", TIMEOUTS, "-o", tmp_path / "other", "--anonymize")
    assert_sentence(refused, 2, "later runs will need the same key: give one with --anonymize-key FILE")
