"""Is the verdict on the sample of each cause that cause, and are the shares what the kernel counted?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tcpfit
from tcpfit.diagnosis import causes
from tcpfit.diagnosis.table import report

SAMPLES = Path(__file__).parents[2] / "sample-traces/causes"
TRUTH = json.loads((SAMPLES / "truth.json").read_text())

KERNEL = {"busy": "busy_s", "rwnd_limited": "rwnd_limited_s", "sndbuf_limited": "sndbuf_limited_s"}

DIFFERS = {
    ("send-buffer", "sndbuf_limited"): "the kernel counted none of it",
    ("stalled", "rwnd_limited"): "the kernel counted 7 points less",
}


@pytest.fixture(scope="module")
def reports():
    found = {}
    for name in TRUTH:
        analysis = tcpfit.analyze(SAMPLES / f"{name}.pcap.gz", segments=True)
        found[name] = report(analysis.select(analysis.largest()[:1]))[0]
    return found


def test_every_cause_has_a_sample():
    assert set(causes.CAUSES) == {truth["cause"] for truth in TRUTH.values()}
    assert {path.name.split(".")[0] for path in SAMPLES.glob("*.pcap.gz")} == set(TRUTH)


@pytest.mark.parametrize("name", TRUTH)
def test_verdict_is_the_cause(name, reports):
    assert TRUTH[name]["cause"] == reports[name].diagnosis.primary


@pytest.mark.parametrize("name", TRUTH)
def test_shares_are_the_kernels(name, reports):
    """Within 5 points of TCP_INFO's times over the time of the flow."""
    diagnosis = reports[name].diagnosis
    total_s = sum(cause.seconds for cause in diagnosis.causes)
    for share, counted in KERNEL.items():
        if (name, share) not in DIFFERS:
            assert diagnosis.kernel[share] == pytest.approx(min(TRUTH[name][counted] / total_s, 1), abs=0.05), share


@pytest.mark.parametrize("name", sorted(set(TRUTH) - {"unknown"}))
def test_timeouts_are_in_the_stall_table(name, reports):
    timeouts = [stall for stall in reports[name].stalls if stall.cause == "timeout"]
    assert TRUTH[name]["timeouts"] == len(timeouts)


@pytest.mark.parametrize(("name", "share"), DIFFERS)
def test_differences_from_the_kernel_are_still_there(name, share, reports):
    total_s = sum(cause.seconds for cause in reports[name].diagnosis.causes)
    assert reports[name].diagnosis.kernel[share] - TRUTH[name][KERNEL[share]] / total_s > 0.05


def test_a_second_reaction_does_not_lower_the_flight_to_be_reached_again(reports):
    """From 1.8 s of 7.7 s on, late segments come before the flight is back at the window of 20 segments."""
    shares = {cause.cause: cause.time_share for cause in reports["reordering"].diagnosis.causes}
    assert shares["reordering-limited"] == pytest.approx(5.9 / 7.7, abs=0.02)
    assert "unknown" not in shares


def test_samples_are_small():
    assert sum(path.stat().st_size for path in SAMPLES.iterdir()) < 500_000
