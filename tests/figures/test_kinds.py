"""Does every kind of figure draw what the tables say, all of it?"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import tcpfit
from tcpfit.diagnosis import diagnose
from tcpfit.diagnosis.accounting import account
from tcpfit.diagnosis.stalls import stalls
from tcpfit.diagnosis.verdict import LEAST_SHARE
from tcpfit.exceptions import InvalidParameter
from tcpfit.report import traffic
from tcpfit.report.figures import KINDS, THEMES, NothingToDraw, config, thinning
from tcpfit.report.figures.causes import CAUSES
from tcpfit.report.figures.packets import packets
from tcpfit.report.figures.window import REACTIONS

pytest.importorskip("altair")

SAMPLES = Path(__file__).parents[2] / "sample-traces"
SEVERAL = ("newreno-loss", "timeouts", "sack-loss-sender", "reordering-receiver", "slow-reader", "ecn-marks-sender")


@cache
def analysed(name: str) -> tcpfit.Analysis:
    return tcpfit.analyze(SAMPLES / f"{name}.pcap.gz", segments=True)


def of_kinds(analysis: tcpfit.Analysis, kinds: set[str]) -> pl.DataFrame:
    return analysis.events.filter(pl.col("kind").cast(pl.String).is_in(list(kinds)))


def frames(table: pl.DataFrame) -> list[int]:
    return table["frame"].drop_nulls().sort().to_list()


@pytest.mark.parametrize("name", SEVERAL)
def test_every_event_of_the_time_sequence_graph_is_drawn(name):
    analysis = analysed(name)
    drawn = KINDS["time-sequence"].data(analysis, 0)["marks"]
    events = of_kinds(analysis, {cause.kind for cause in CAUSES})
    assert events.height > 0
    assert events.height == drawn.height
    assert frames(events) == frames(drawn)


@pytest.mark.parametrize("name", SEVERAL)
def test_every_event_of_every_kind_is_on_the_timeline(name):
    analysis = analysed(name)
    drawn = KINDS["losses"].data(analysis, 0)["events"]
    expected = analysis.events.group_by(pl.col("kind").cast(pl.String)).len().sort("kind").rows()
    assert expected == drawn.group_by("kind").len().sort("kind").rows()
    assert frames(analysis.events) == frames(drawn)


@pytest.mark.parametrize("name", SEVERAL)
def test_every_reaction_is_on_the_window(name):
    analysis = analysed(name)
    drawn = KINDS["window"].data(analysis, 0)["marks"]
    assert frames(of_kinds(analysis, set(REACTIONS))) == frames(drawn)
    assert of_kinds(analysis, set(REACTIONS)).height == drawn.height


@pytest.mark.parametrize("name", SEVERAL)
def test_a_lower_bound_alone_is_no_window(name):
    """Bars are of rounds with both bounds, a triangle stands where rounds begin that have the lower one only."""
    analysis = analysed(name)
    rounds = analysis.rounds.sort("round")
    drawn = KINDS["window"].data(analysis, 0)["rounds"]
    alone = drawn.filter(pl.col("high").is_null(), pl.col("low").is_not_null())
    known = rounds.filter(pl.col("cwnd_high").is_null(), pl.col("cwnd_low").is_not_null())
    assert (known.height > 0) == (drawn["least"].null_count() < drawn.height)
    assert set(drawn.drop_nulls("least")["round"]) <= set(alone["round"]) <= set(known["round"])
    assert alone.filter(pl.col("least").is_not_null(), pl.col("least") != pl.col("low")).is_empty()
    said = f"only from below, by the flight, in {known.height} round" if known.height else ""
    assert said in KINDS["window"].describe(analysis, 0)
    bars = json.dumps(
        [layer for layer in KINDS["window"].chart(analysis, 0).to_dict()["layer"] if mark(layer) == "rect"]
    )
    assert "datum.low != null" not in bars


def mark(layer: dict) -> str:
    return layer["mark"]["type"]


@pytest.mark.parametrize("kind", ["window", "time-sequence", "rate"])
@pytest.mark.parametrize("name", ["slow-reader", "window-limited", "sack-loss-sender"])
def test_the_legend_tells_series_apart_by_shape(name, kind):
    spec = KINDS[kind].chart(analysed(name), 0).to_dict()
    layers = spec["layer"] if "layer" in spec else spec["hconcat"][0]["layer"]
    (key,) = [layer for layer in layers if mark(layer) == "point" and "x" not in layer["encoding"]]
    shapes = key["encoding"]["shape"]["scale"]
    assert shapes["domain"] == key["encoding"]["color"]["scale"]["domain"]
    assert len(set(shapes["range"])) == len(shapes["domain"]) > 1


@pytest.mark.parametrize("name", SEVERAL)
def test_every_row_of_the_ranking_is_drawn(name):
    analysis = analysed(name)
    drawn = KINDS["ranking"].data(analysis, 0)["models"]
    assert analysis.ranking["model"].to_list() == drawn["model"].to_list()
    ratios = zip(analysis.ranking["log_ratio"], drawn["ratio"], strict=True)
    assert all((a is None and b is None) or b == pytest.approx(a, abs=1e-4) for a, b in ratios)
    predicted = analysis.ranking.filter(pl.col("predicted_bps") > 0)["model"].to_list()
    assert predicted == KINDS["rate"].data(analysis, 0)["models"]["model"].to_list()


@pytest.mark.parametrize("name", SEVERAL)
def test_errors_of_blocks_are_those_of_the_table_nearest_model_first(name):
    analysis = analysed(name)
    table = analysis.by_block()
    if not table.height:
        with pytest.raises(NothingToDraw, match="too little data to be cut into blocks"):
            KINDS["residuals"].data(analysis, 0)
        return
    drawn = KINDS["residuals"].data(analysis, 0)["blocks"]
    ranked = analysis.ranking.filter(pl.col("rank").is_not_null()).sort("rank")["model"].to_list()
    assert [*ranked[:6], "mean-of-blocks"] == drawn["model"].unique(maintain_order=True).to_list()
    for (model,), own in drawn.group_by("model"):
        expected = table.filter(pl.col("model") == model)["log_ratio"].to_list()
        assert expected == pytest.approx(own["ratio"].to_list(), abs=1e-4)


def test_blocks_of_the_rate_are_those_that_were_chosen_for_the_ranking():
    usual = analysed("newreno-loss")
    chosen = usual.ranked_by(block=30)
    counts = [KINDS["rate"].data(each, 0)["blocks"].height for each in (usual, chosen)]
    assert [each.by_block()["block"].n_unique() for each in (usual, chosen)] == counts
    assert counts[0] > counts[1]


@pytest.mark.parametrize("name", SEVERAL)
def test_every_stall_is_drawn_and_shares_are_those_of_the_accounting(name):
    analysis = analysed(name)
    found = stalls(analysis.flows.row(0, named=True), analysis.events, analysis.segments)
    if found:
        drawn = KINDS["stalls"].data(analysis, 0)["stalls"]
        assert [stall.frame_after for stall in found] == drawn["frame"].to_list()
    else:
        with pytest.raises(NothingToDraw, match="shows no stall"):
            KINDS["stalls"].data(analysis, 0)
    spans = account(analysis.flows, analysis.events, analysis.rounds)
    seconds = (spans["end_ns"] - spans["start_ns"]).sum() / 1e9
    causes = KINDS["shares"].data(analysis, 0)["causes"]
    assert causes["seconds"].sum() == pytest.approx(seconds, abs=1e-4)
    assert causes["share"].sum() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("missing", [0.009, 0.05])
@pytest.mark.parametrize("name", SEVERAL)
def test_shares_are_those_of_the_diagnosis_whatever_the_capture_missed(name, missing):
    analysis = analysed(name)
    much = (missing / (1 - missing) * pl.col("data_segments")).cast(analysis.flows.schema["missing_segments"])
    tables = analysis._reading.tables | {"flows": analysis.flows.with_columns(missing_segments=much)}
    less = tcpfit.Analysis(analysis.path, replace(analysis._reading, tables=tables), {})
    found = diagnose(less.flows, less.events, less.rounds)[0]
    causes = KINDS["shares"].data(less, 0)["causes"]
    shares = {cause.cause: pytest.approx(cause.time_share, abs=1e-4) for cause in found.causes}
    assert shares == dict(causes.filter(pl.col("share") >= LEAST_SHARE).select("cause", "share").iter_rows())
    assert missing <= 0.01 or "loss-limited" not in shares


@pytest.mark.parametrize("name", ["newreno-loss", "timeouts", "sack-loss-sender", "bursty-loss"])
def test_gaps_are_those_between_loss_events(name):
    analysis = analysed(name)
    order = of_kinds(analysis, {"loss_event"})["order"].cast(pl.Int64).sort()
    expected = sorted(gap for gap in order.diff().drop_nulls().to_list() if gap > 0)
    gaps = KINDS["intervals"].data(analysis, 0)["gaps"]
    assert expected == gaps["segments"].to_list()
    assert gaps["share"].to_list() == sorted(gaps["share"].to_list(), reverse=True)
    assert gaps["share"][-1] == 0


# each with the time from its SYN to the SYN-ACK, as tshark prints it
@pytest.mark.parametrize(
    ("name", "syn_s"),
    [("sack-loss-sender", 0.100227232), ("newreno-loss", 0.050267109), ("window-limited", 0.080191927)],
)
def test_round_trips_are_those_of_the_engine(name, syn_s):
    analysis = analysed(name)
    flow = analysis.flows.row(0, named=True)
    text = KINDS["rtt"].describe(analysis, 0)
    number = int(text.split()[2])
    assert number == pytest.approx(flow["rtt_samples"], rel=0.05)
    assert analysis.rounds["rtt_s"].min() >= 0.999 * flow["rtt_min_s"]
    samples = KINDS["rtt"].data(analysis, 0)["samples"]
    assert min(samples["ms"].min(), 1e3 * syn_s) == pytest.approx(1e3 * flow["rtt_min_s"], rel=1e-4)


def test_delayed_acks_are_marked():
    samples = KINDS["rtt"].data(analysed("sack-loss-sender"), 0)["samples"]
    delayed = samples.filter(pl.col("what") == "the ACK was delayed")["ms"]
    others = samples.filter(pl.col("what") == "data to ACK")["ms"]
    assert delayed.len() > 0 and delayed.min() >= others.min() + 30
    assert "141 of them made long by a delayed ACK" in KINDS["rtt"].describe(analysed("sack-loss-sender"), 0)


def test_the_rate_over_time_holds_every_acknowledged_byte():
    analysis = analysed("newreno-loss")
    observed = KINDS["rate"].data(analysis, 0)["observed"]
    bits = ((observed["end"] - observed["begin"]) * observed["rate"]).sum()
    assert bits == pytest.approx(8 * analysis.rounds["acked_bytes"].sum(), rel=1e-3)


@pytest.mark.parametrize("name", SEVERAL)
def test_the_rate_of_the_steady_part_is_what_models_are_compared_with(name):
    analysis = analysed(name)
    (part,) = KINDS["rate"].data(analysis, 0)["steady"].iter_rows(named=True)
    compared = analysis.ranking.filter(pl.col("model") == "mean-of-blocks")["predicted_bps"].item()
    assert part["rate"] == pytest.approx(compared, rel=1e-4)
    chart = KINDS["rate"].chart(analysis, 0).to_dict()
    assert all('"name": "steady"' in json.dumps(panel) for panel in chart["hconcat"])


def test_pauses_that_models_leave_out_are_told():
    text = KINDS["rate"].describe(analysed("slow-reader"), 0)
    compared = (
        "the steady part without its pauses of 17.7 s, with which models are compared, was acknowledged at 1.29 Mb/s"
    )
    assert f"; {compared}." in text
    assert text.startswith("Rate: 589 kb/s acknowledged on average, ")


@pytest.mark.parametrize("name", ["newreno-loss", "sack-loss-sender"])
def test_what_is_thinned_out_covers_the_same_bytes(name):
    analysis = analysed(name)
    tables = KINDS["time-sequence"].data(analysis, 0)
    marked = set(tables["marks"]["frame"].drop_nulls())
    whole = traffic.labelled(analysis, [0]).filter(
        pl.col("flow") == 0, pl.col("payload") > 0, ~pl.col("frame").is_in(list(marked))
    )
    data = tables["data"]
    assert data["segments"].sum() == whole.height
    assert data.height <= 700
    covered = data.select((pl.col("right") - pl.col("left")).sum()).item()
    assert covered >= whole["payload"].sum()
    assert (whole["left"].min(), whole["right"].max()) == (data["left"].min(), data["right"].max())


@pytest.mark.parametrize("name", ["newreno-loss", "reordering-receiver"])
def test_lines_are_near_what_they_stand_for(name):
    """ACKs and the window's edge at every ACK: within a hundredth of what is drawn, two or three pixels."""
    tables = KINDS["time-sequence"].data(analysed(name), 0)
    acks = packets(analysed(name), 0).acks.with_columns(pl.col("acked").cum_max())
    edge = acks["acked"] + acks["window"]
    for line, field, whole in (("acks", "acked", acks["acked"]), ("window", "edge", edge)):
        kept = tables[line]
        assert kept.height < acks.height / 4
        drawn = np.interp(acks["t"], kept["t"], kept[field])
        assert np.abs(drawn - whole.to_numpy()).max() <= 0.01 * whole.max()


def test_a_line_keeps_what_it_turns_at():
    """Teeth of a saw, ten rounds each: with a point for each turn the line is the whole."""
    table = pl.DataFrame({"t": [float(n) for n in range(1000)], "y": [float(n % 10) for n in range(1000)]})
    kept = thinning.line(table, "t", "y", 200)
    assert kept.height == 200
    assert np.interp(table["t"], kept["t"], kept["y"]).tolist() == pytest.approx(table["y"].to_list())
    assert table.head(200).equals(thinning.line(table.head(200), "t", "y", 200))


def test_a_cloud_keeps_the_ends_and_the_extremes():
    table = pl.DataFrame({"t": [float(n) for n in range(1000)], "y": [n * 37 % 101 for n in range(1000)]})
    kept = thinning.cloud(table, "t", "y", 80)
    assert kept.height <= 80
    assert table.row(0) == kept.row(0)
    assert table.row(-1) == kept.row(-1)
    assert (table["y"].min(), table["y"].max()) == (kept["y"].min(), kept["y"].max())
    assert kept["t"].is_sorted()
    assert table.head(80).equals(thinning.cloud(table.head(80), "t", "y", 80))


def drawable(name: str, kind: str) -> bool:
    try:
        KINDS[kind].data(analysed(name), 0)
    except NothingToDraw:
        return False
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_themes_differ_in_their_config_alone(kind):
    specs = {theme: KINDS[kind].chart(analysed("timeouts"), 0, theme=theme).to_dict() for theme in THEMES}
    configs = [spec.pop("config") for spec in specs.values()]
    assert configs[0] != configs[1]
    assert specs["light"] == specs["dark"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_flow_that_is_not_there_is_said(kind):
    with pytest.raises(InvalidParameter, match="has no flow 7; its only flow is 0"):
        KINDS[kind].chart(analysed("timeouts"), 7)


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS.values() if kind.needs_segments])
def test_without_segments_a_sentence_says_how_to_get_them(kind):
    analysis = tcpfit.analyze(SAMPLES / "window-limited.pcap.gz")
    with pytest.raises(InvalidParameter, match="segments=True"):
        KINDS[kind].chart(analysis, 0)


def test_an_unknown_theme_is_said():
    with pytest.raises(InvalidParameter, match="theme must be one of light, dark, got 'sepia'"):
        config("sepia")


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_described_in_words_with_figures(kind):
    name = "sack-loss-sender" if drawable("sack-loss-sender", kind) else "timeouts"
    text = KINDS[kind].describe(analysed(name), 0)
    assert text.endswith(".") and "None" not in text and "nan" not in text
    assert any(character.isdigit() for character in text)


@pytest.mark.parametrize("name", ["sack-loss-sender", "newreno-loss"])
def test_the_figures_of_a_flow_are_small(name):
    drawn = [kind.chart(analysed(name), 0).to_dict() for kind in KINDS.values() if drawable(name, kind.name)]
    events = analysed(name).events.height
    assert sum(len(json.dumps(spec, separators=(",", ":"))) for spec in drawn) < 12_200 * len(KINDS) + 90 * events


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def colours_of(part: object) -> set[str]:
    if isinstance(part, dict):
        return set().union(
            *(colours_of(value) for key, value in part.items() if key not in ("config", "datasets")), set()
        )
    if isinstance(part, list):
        return set().union(*(colours_of(value) for value in part), set())
    return {part} if isinstance(part, str) and len(part) == 7 and part.startswith("#") else set()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", KINDS)
def test_contrast_is_enough(kind, theme):
    look = config(theme)
    text = [look["axis"]["labelColor"], look["title"]["subtitleColor"], look["style"]["note"]["color"]]
    assert all(contrast(colour, look["background"]) >= 4.5 for colour in text)
    marks = colours_of(KINDS[kind].chart(analysed("timeouts"), 0, theme=theme).to_dict())
    assert marks
    assert {} == {colour: found for colour in marks if (found := contrast(colour, look["background"])) < 3}


def test_no_two_causes_look_alike():
    assert len(CAUSES) == len({(cause.colour, cause.shape) for cause in CAUSES})
    often = [cause for cause in CAUSES if cause.kind in ("loss", "retransmission")]
    assert len(often) == len({cause.shape for cause in often}) == len({cause.colour for cause in often})
