"""Does what a corpus says as a whole follow from its flows, and do its intervals hold?"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from html import escape

import numpy as np
import polars as pl
import pytest
from captures import ACK, PSH, START_NS, SYN, Packet, link, pcap, tcp
from corpora import SAMPLES
from rich.console import Console
from test_cli import assert_sentence, tcpfit

from tcpfit import corpus
from tcpfit.corpus.summary import overview
from tcpfit.corpus.summary.contrast import SIDE, contrast
from tcpfit.corpus.summary.fits import fits, ranked
from tcpfit.corpus.summary.flows import connections, flows
from tcpfit.corpus.summary.shares import of_sums, share
from tcpfit.corpus.summary.spread import SEEN, weighted_quantiles
from tcpfit.corpus.summary.winners import winners
from tcpfit.exceptions import InvalidParameter
from tcpfit.report import words
from tcpfit.report.corpus import page, terminal
from tcpfit.report.corpus.figures import figures


def chosen():
    """Captures of the samples."""
    paths = sorted(SAMPLES.glob("*.pcap.gz"))
    assert len(paths) >= 8
    return paths[:8]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    listed = folder / "list.csv"
    with listed.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["path", "site"])
        rows.writerows([path, "one" if i % 2 else "other"] for i, path in enumerate(chosen()))
    (folder / "broken.pcap").write_bytes(b"no capture")
    summary = corpus.run([str(listed), str(folder / "broken.pcap")], folder / "out", workers=2)
    assert summary.analysed == len(chosen())
    return corpus.open(folder / "out")


@pytest.fixture(scope="module")
def document(data):
    return overview(data, by="site").to_dict()


SAY = """
import json, sys
from tcpfit import corpus
from tcpfit.corpus.summary import overview
from tcpfit.report.corpus import page
document = overview(corpus.open(sys.argv[1]), by="site").to_dict()
print(json.dumps(document, default=str))
print(page.render(document))
"""


def test_a_report_is_the_same_from_run_to_run(data):
    """Sums and what is as frequent depend on the order of rows, which threads of polars would shuffle."""
    said = set()
    for threads in (1, 2, 4, 8):
        environment = os.environ | {"POLARS_MAX_THREADS": str(threads)}
        command = [sys.executable, "-c", SAY, str(data.folder)]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert 0 == run.returncode, run.stderr
        said.add(run.stdout)
    assert 1 == len(said)


def test_counts_are_those_of_the_tables(data, document):
    assert document["flows"]["flows"] == data.flows.select(pl.len()).collect().item()
    assert document["captures"]["captures"] == len(chosen()) + 1
    assert document["captures"]["status"] == {"analysed": len(chosen()), "rejected": 1}
    assert [row["path"].endswith("broken.pcap") for row in document["captures"]["failures"]] == [True]
    assert document["captures"]["packets"] == data.captures.select(pl.col("packets").sum()).collect().item()


def test_shares_of_causes_sum_to_one(document):
    for of in ("flows", "bytes", "time"):
        total = sum(row[of]["share"] for row in document["limits"])
        assert total == pytest.approx(1.0, abs=0.02 if of == "time" else 1e-9)
        for row in document["limits"]:
            assert row[of]["low"] <= row[of]["share"] <= row[of]["high"]


def test_every_flow_counts_once(data):
    table = flows(data)
    assert table["weight"].sum() == pytest.approx(table["group"].n_unique())
    twice = pl.concat([table, table.with_columns(capture=pl.format("copy {}", "capture"))])
    from tcpfit.corpus.summary.flows import _clustered, _grouped

    again = _clustered(_grouped(twice.drop("group", "weight", "cluster")))
    assert again["weight"].sum() == pytest.approx(table["weight"].sum())
    assert again["cluster"].n_unique() <= table["cluster"].n_unique()
    ends = {frozenset([row[:2], row[2:]]) for row in table.select("src", "src_port", "dst", "dst_port").iter_rows()}
    assert len(ends) == connections(table) == connections(again) < table.height


def test_prevalence_is_counted_by_hand(data, document):
    table = flows(data)
    for row in document["prevalence"]:
        column = SEEN[row["what"]][0]
        some = table.filter(pl.col(column).is_not_null())
        by_hand = some.filter(pl.col(column) > 0)["weight"].sum() / some["weight"].sum() if some.height else None
        assert row["flows"]["share"] == (None if by_hand is None else pytest.approx(by_hand))


def test_models_are_those_of_the_rankings(data, document):
    table = ranked(data, flows(data))
    for row in fits(table):
        on = table.filter((pl.col("model") == row["model"]) & pl.col("applicable"))
        assert row["flows"] == pytest.approx(on["weight"].sum())
        if on.height:
            assert sum(row["counts"]) == pytest.approx(row["flows"])
            assert sum(cell["flows"] for cell in row["cells"]) == pytest.approx(row["flows"])
            close = on.filter(pl.col("log_ratio").abs() <= 0.15)["weight"].sum()
            assert row["near"] == pytest.approx(close / row["flows"])
    assert {row["model"] for row in document["models"]} == set(table["model"])


def test_histograms_hold_every_flow(document):
    assert document["parameters"]
    for row in document["parameters"]:
        assert sum(row["counts"]) + row["zero"] == pytest.approx(row["flows"])
        assert len(row["edges"]) == len(row["counts"]) + 1
        assert row["edges"] == sorted(row["edges"])


def test_dearest_flows_come_first(document):
    costs = [row["gain_s"] for row in document["worst"]]
    assert costs and costs == sorted(costs, reverse=True)
    assert all(row["rate_bps"] > row["goodput_bps"] for row in document["worst"] if row["gain_bps"])


def test_quantiles_are_weighted():
    value, weight = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0])
    assert weighted_quantiles(value, weight, (0.25, 0.5, 0.75, 1.0)) == [1.0, 2.0, 3.0, 3.0]


def clustered(rng, clusters, alike):
    """Flows of captures whose own share varies, and the share over all captures."""
    own = rng.beta(0.3 * alike, 0.7 * alike, clusters)
    sizes = rng.poisson(20, clusters) + 1
    return rng.binomial(sizes, own).astype(float), sizes.astype(float)


def test_interval_of_a_share_holds_it_where_flows_of_a_capture_are_alike():
    """95 % of 600 corpora: between 92 and 98 % with a chance of 0.999; Wilson's over flows hold far fewer."""
    rng = np.random.default_rng(5)
    held = [of_sums(part, whole, whole.sum()) for part, whole in (clustered(rng, 40, 4.0) for _ in range(600))]
    assert 0.92 <= np.mean([found.low <= 0.3 <= found.high for found in held]) <= 0.98


def test_share_of_nothing_and_of_all():
    table = pl.DataFrame({"cluster": [0, 1], "a": [1.0, 1.0], "b": [1.0, 1.0]})
    assert share("a", "b", table).share == 1.0
    assert share("a", "b", table).low < 1.0
    assert share("a", "b", table.head(0)).share is None


def sides(rng, change):
    """Two sites of 30 captures each, whose flows differ by a factor and whose captures vary."""
    rows = []
    for site, factor in (("a", 1.0), ("b", change)):
        for capture in range(30):
            own = np.exp(rng.normal(0, 0.4))
            for _ in range(10):
                rows.append(
                    (site, f"{site}{capture}", 30 * (site == "b") + capture, factor * own * np.exp(rng.normal(0, 0.5)))
                )
    table = pl.DataFrame(rows, schema=[SIDE, "capture", "cluster", "goodput_bps"], orient="row")
    columns = {name: pl.lit(1.0) for name in ("transfer_time_s", "rtt", "p", "weight")}
    counts = {name: pl.lit(0) for name in ("lost_segments", "timeouts", "reordered_segments")}
    return table.with_columns(**columns, **counts, primary=pl.lit("loss-limited"))


def test_contrast_finds_a_factor_and_its_interval_holds_it():
    rng = np.random.default_rng(11)
    held = []
    for _ in range(40):
        rows = contrast(sides(rng, 2.0), "site")["rows"]
        row = next(row for row in rows if row["what"] == "median goodput" and row["side"] == "b")
        held.append(row["low"] <= 2.0 <= row["high"])
        assert row["clear"]
    assert 34 <= sum(held) <= 40  # of 40 at 95 %: fewer than 34 in 3 of 1000


def test_each_side_of_a_contrast_is_drawn_by_itself():
    """Two sides of the same flows do not differ, but what another 30 captures would show is not known any better."""
    one = sides(np.random.default_rng(3), 1.0).filter(pl.col(SIDE) == "a").with_columns(timeouts=pl.col("cluster") % 2)
    other = one.with_columns(pl.lit("b").alias(SIDE), pl.col("cluster") + 30, pl.format("b{}", "capture"))
    rows = {row["what"]: row for row in contrast(pl.concat([one, other]), "site")["rows"] if row["side"] == "b"}
    goodput, timeouts = rows["median goodput"], rows["share of flows: timeouts"]
    assert goodput["change"] == 1.0 and goodput["low"] < 0.95 and goodput["high"] > 1.05
    assert timeouts["change"] == 0.0 and timeouts["low"] < -0.15 and timeouts["high"] > 0.15


def test_few_captures_have_no_interval():
    rows = contrast(sides(np.random.default_rng(1), 2.0).filter(pl.col("cluster") % 30 < 3), "site")["rows"]
    row = next(row for row in rows if row["what"] == "median goodput" and row["side"] == "b")
    assert "change" in row and "low" not in row


def test_contrast_by_label_and_of_corpora(data, document):
    assert {side["value"] for side in document["contrast"]["sides"]} == {"one", "other"}
    same = overview(data, beside=[data]).to_dict()["contrast"]
    for row in same["rows"]:
        if "change" in row:
            assert row["change"] == pytest.approx(1.0 if row["what"].startswith("median") else 0.0)
    with pytest.raises(InvalidParameter, match="labels are: site"):
        overview(data, by="nothing")


def test_a_label_may_have_the_name_of_a_column(data, document, tmp_path):
    names = ["rtt", "p", "state", "family", "who", "rate", "capture", "cluster", "value", "corpus", "weight", SIDE]
    (tmp_path / "list.csv").write_text(
        "\n".join(
            [
                ",".join(["path", *names]),
                *(",".join([str(path), *[("other", "one")[i % 2]] * len(names)]) for i, path in enumerate(chosen())),
            ]
        )
    )
    corpus.run([tmp_path / "list.csv"], tmp_path / "out", workers=2)
    labelled = corpus.open(tmp_path / "out")
    for name in names:
        found = overview(labelled, by=name).to_dict()["contrast"]
        assert found == document["contrast"] | {"by": name}


def test_a_label_that_only_captures_without_flows_have(tmp_path):
    (tmp_path / "empty.pcap").write_bytes(pcap([]))
    corpus.run([tmp_path / "empty.pcap"], tmp_path / "out", workers=1, labels=(("site", "a"),))
    corpus.run([chosen()[0]], tmp_path / "out", workers=1)
    with pytest.raises(InvalidParameter, match="no capture with one value of the label 'site' has a flow"):
        overview(corpus.open(tmp_path / "out"), by="site")
    corpus.run([tmp_path / "empty.pcap"], tmp_path / "nothing", workers=1)
    nothing = corpus.open(tmp_path / "nothing")
    with pytest.raises(InvalidParameter, match="none of the data sets has a flow"):
        overview(nothing, beside=[nothing])


def test_terminal_fits_80_columns(document, capsys):
    out = Console(width=80, highlight=False, markup=False, emoji=False, force_terminal=False)
    terminal.show(document, out)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    for word in ("what limits them", "models", "dearest flows", "by site", "broken.pcap"):
        assert any(word in line for line in lines)
    assert not [line for line in lines if "\u2026" in line]


def segment(time_s, seq, size, flags=ACK | PSH):
    data = link(tcp("10.0.0.1", "10.9.9.9", 40000, 80, seq, 1, flags, size), 1)
    return Packet(START_NS + round(1e9 * time_s), data, len(data))


DEGENERATE = {
    "no packet": [],
    "one segment": [segment(0, 1000, 10)],
    "a segment again and again": [segment(0, 1000, 10)] * 5,
    "all in one instant": [segment(0, 1000 + 10 * n, 10) for n in range(20)],
    "SYNs only": [segment(n, 1000, 0, SYN) for n in range(3)],
    "acknowledgments only": [segment(n, 1000, 0, ACK) for n in range(5)],
    "keep-alives": [segment(n, 1000, 1) for n in range(5)],
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_what_a_corpus_of_next_to_nothing_says(tmp_path, name):
    (tmp_path / "one.pcap").write_bytes(pcap(DEGENERATE[name]))
    corpus.run([tmp_path / "one.pcap"], tmp_path / "out", workers=1)
    document = overview(corpus.open(tmp_path / "out")).to_dict()
    html = page.render(document)
    lead = page._lead(document)
    assert lead
    for sentence in lead:
        assert escape(sentence) in html
        assert words.NONE not in sentence
    terminal.show(document, Console(width=80, file=io.StringIO()))
    for figure in figures(document):
        assert "None" not in figure.text and "nan" not in figure.text


def test_page_says_what_the_document_says(document):
    html = page.render(document)
    text = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    for row in document["limits"]:
        assert row["cause"] in text
    for row in document["models"]:
        assert not row["flows"] or row["model"] in text
    assert "http://" not in text and "https://" not in text
    for figure in figures(document):
        assert f'data-kind="{figure.name}"' in text
        for theme in ("light", "dark"):
            assert figure.chart(theme).to_dict()["config"]["background"]


def test_the_page_says_how_many_captures_have_warnings(document):
    some = document | {"captures": document["captures"] | {"warned": 3}}
    assert "3 captures with warnings: see the column `warnings` of captures." in page._notes(some)
    assert not [
        note for note in page._notes(document | {"captures": some["captures"] | {"warned": 0}}) if "warn" in note
    ]


def test_no_point_lies_on_the_frame(document):
    spec = next(each for each in figures(document) if each.name == "predicted").chart("light").to_dict()
    cells = list(csv.DictReader(io.StringIO(spec["datasets"]["cells"])))
    panel = spec["vconcat"][0]["hconcat"][0]["layer"][1]["encoding"]
    for axis in ("x", "y"):
        low, high = panel[axis]["scale"]["domain"]
        values = [float(row[panel[axis]["field"]]) for row in cells]
        assert low < 0.9 * min(values) and high > 1.1 * max(values)


def test_page_escapes_what_captures_carry(document):
    hostile = json.loads(json.dumps(document, default=str))
    hostile["folder"] = "</script><img src=x onerror=alert(1)>"
    hostile["worst"][0]["path"] = "<script>alert(2)</script>.pcap"
    hostile["captures"]["failures"][0]["reason"] = "<b>bold</b>"
    html = page.render(hostile)
    for markup in ("<img", "<script>alert", "<b>bold"):
        assert markup not in html


def test_command(data, document, tmp_path):
    out = tmp_path / "corpus.html"
    run = tcpfit("report", data.folder, "-o", out, "--by", "site", "--pages", "--worst", "2")
    assert run.returncode == 0, run.stderr
    links = re.findall(r'href="(corpus\.flows/[^"]+)"', out.read_text())
    assert len(links) == len(document["worst"][:2])
    assert all((tmp_path / link).is_file() for link in links)
    printed = tcpfit("report", data.folder, "--format", "json")
    assert json.loads(printed.stdout)["flows"]["flows"] > 0
    assert tcpfit("report", data.folder, "--format", "table").returncode == 0
    assert_sentence(tcpfit("report", data.folder, "--by", "nothing", "--format", "table"), 2)
    assert_sentence(tcpfit("report", data.folder, chosen()[0]), 2)
    assert_sentence(tcpfit("report", chosen()[0], "--format", "table"), 2)


@pytest.mark.parametrize(
    "given",
    ["--models mathis", "--rule window", "--filter tcp", "--flows 3", "--data", "--flow 1", "--reader dpkt --block 5"],
)
def test_options_of_captures_are_none_of_a_data_set(data, given):
    run = tcpfit("report", data.folder, "--format", "json", *given.split())
    assert_sentence(run, 2, given.split()[0], "for captures; a data set has the settings")


@pytest.mark.parametrize("given", ["--by site", "--worst 3", "--pages", "--format json"])
def test_options_of_a_corpus_are_none_of_captures(given, tmp_path):
    run = tcpfit("report", chosen()[0], "-o", tmp_path / "a.html", *given.split())
    assert_sentence(run, 2, given.split()[0], "for a corpus")


def test_the_tree_is_grown_from_the_tables_of_a_data_set(data):
    """They have other columns than the table of residuals, from which `tcpfit.rank` grows its own."""
    table = ranked(data, flows(data))
    many = pl.concat(table.with_columns(group=pl.col("group") + 1000 * n) for n in range(4))
    found = winners(many)
    assert "reason" not in found
    assert found["groups"] >= 10 and found["nodes"]


def test_flows_whose_cost_nobody_knows_are_told_beside_the_dearest(data, document):
    judged = data.diagnoses.filter(pl.col("primary") != "unknown").collect()
    known = data.causes.filter(pl.col("gain_s").is_not_null()).collect()
    keys = ["capture", "flow", "primary"]
    without = judged.join(known, left_on=keys, right_on=["capture", "flow", "cause"], how="anti")
    assert set(document["cost_unknown"]) == set(without["primary"].cast(pl.String))
    assert 0 < sum(document["cost_unknown"].values()) <= without.height
