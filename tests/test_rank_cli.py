"""Does `tcpfit rank` show every model and caveat in 80 columns, agree with Python, and follow its options?"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from tcpfit.cli import options
from test_cli import assert_sentence, capture, tcpfit  # noqa: F401

import tcpfit as library
from tcpfit.parameters import RULES
from tcpfit.ranking.applicability import CHECKS
from tcpfit.ranking.rank import ranked_models
from tcpfit.ranking.table import BASELINES
from tcpfit.report import ranked

SAMPLES = Path(__file__).resolve().parents[1] / "sample-traces"


def test_every_assumption_has_a_column() -> None:
    assert set(CHECKS) == {name for names in ranked.CAVEATS.values() for name in names}
    assert tuple(RULES) == options.RULES


def test_the_table_has_every_model_and_fits_80_columns(capture) -> None:  # noqa: F811
    run = tcpfit("rank", capture, "--fit", "pftk-full.b", env={"COLUMNS": "80"})
    assert (0, "") == (run.returncode, run.stderr)
    assert max(len(line) for line in run.stdout.splitlines()) <= 80
    for name in (*ranked_models(), *BASELINES, "pftk-full.b"):
        assert name in run.stdout


def test_a_fitted_value_is_shown() -> None:
    sample = SAMPLES / "newreno-loss.pcap.gz"
    table, _ = library.analyze(sample).rank(["pftk-full"], fit=["pftk-full.b"])
    (value,) = table.filter(table["model"] == "pftk-full.b")["fitted"].to_list()
    assert f"pftk-full.b = {value:.3g} " in tcpfit("rank", sample, "--fit", "pftk-full.b", env={"COLUMNS": "80"}).stdout


def test_caveats_are_marked() -> None:
    row = {"failed": ["loss-limited"], "weakened": ["no-sack"]}
    assert ["", "x", "", "", "~", "", "", ""] == [ranked.caveat(row, column) for column in ranked.CAVEATS]


def test_json_has_what_python_has(capture) -> None:  # noqa: F811
    names = "pftk-full,newreno-full+p_to"
    run = tcpfit("rank", capture, "--models", names, "--rule", "window", "--block", 2, "--format", "json")
    document = json.loads(run.stdout)
    (entry,) = document["captures"]
    ranking, verdicts = library.analyze(capture).rank(names.split(","), rule="window", block=2)
    for flow in entry["flows"]:
        own = ranking.filter(ranking["flow"] == flow["id"])
        assert own["model"].to_list() == [row["model"] for row in flow["models"]]
        assert own["log_ratio"].to_list() == [row["log_ratio"] for row in flow["models"]]
        assert verdicts.filter(verdicts["flow"] == flow["id"])["text"].item() == flow["verdict"]["text"]
    assert {"pftk-full", "newreno-full+p_to", *BASELINES} == {row["model"] for row in flow["models"]}


def test_csv_has_a_row_a_flow_and_model(capture) -> None:  # noqa: F811
    run = tcpfit("rank", capture, capture, "--models", "mathis", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(run.stdout)))
    assert 2 * 2 * (1 + len(BASELINES)) == len(rows)
    assert {"mathis", *BASELINES} == {row["model"] for row in rows}
    assert all(row["applicable"] in ("true", "false") for row in rows)


def test_analyze_follows_the_same_options(capture) -> None:  # noqa: F811
    run = tcpfit("analyze", capture, "--models", "mathis", "--fit", "pftk-full.b", "--format", "jsonl")
    flow = json.loads(run.stdout.splitlines()[0])
    assert {"mathis", "pftk-full.b"} == {model["name"] for model in flow["models"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--models", "pftk"], "pftk"),
        (["--models", "mathis+b"], "no extension"),
        (["--models", "catnip"], "transfer times"),
        (["--models", ","], "at least one"),
        (["--fit", "pftk-full"], "NAME.PARAMETER"),
        (["--fit", "pftk-full.rtt"], "can fit"),
        (["--rule", "two-rtt"], "two-rtt"),
        (["--block", "0"], "--block"),
    ],
)
def test_what_makes_no_sense_ends_in_a_sentence(arguments, words) -> None:
    assert_sentence(tcpfit("rank", "missing.pcap", *arguments), 2, words)


def test_a_capture_that_is_not_there_does_not_stop_the_others(capture) -> None:  # noqa: F811
    run = tcpfit("rank", "missing.pcap", capture, "--models", "mathis")
    assert_sentence(run, 1, "missing.pcap")
    assert "mathis" in run.stdout
