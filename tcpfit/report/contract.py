"""The machine-readable face of tcpfit: JSON and JSON lines.

Every key is always there; what cannot be had is null, never 0, NaN or infinity. Times are seconds, rates bit/s, sizes
bytes, counts segments of one MSS. docs/json.md says what each key means.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

import polars as pl

import tcpfit
from tcpfit import ranking
from tcpfit.diagnosis import facts as diagnosis_facts
from tcpfit.diagnosis.accounting import account_of
from tcpfit.diagnosis.silences import silences_of
from tcpfit.diagnosis.table import of, of_spans
from tcpfit.parameters import NAMES
from tcpfit.parameters.growth import families
from tcpfit.parameters.table import NAME
from tcpfit.ranking.short import alone
from tcpfit.ranking.table import BASELINES, TEXTS
from tcpfit.report.encoding import dumps as dumps
from tcpfit.report.encoding import joined, nan_as_null, objects, texts
from tcpfit.schema import SCHEMA_VERSION, WITHOUT_DATA

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

COUNTS = (
    "data_segments",
    "sent_segments",
    "data_bytes",
    "unique_bytes",
    "acked_bytes",
    "retransmitted_segments",
    "lost_segments",
    "lost_upstream",
    "spurious_retransmissions",
    "loss_events",
    "fast_recoveries",
    "timeouts",
    "tail_loss_probes",
    "reorder_events",
    "reordered_segments",
    "duplicated_segments",
    "zero_window_episodes",
    "ce_segments",
    "ece_acks",
    "ace_marks",
    "mark_events",
    "cwr_segments",
    "missing_segments",
)

OBSERVED = ("throughput_bps", "goodput_bps", "steady_goodput_bps", "transfer_time_s")

MODEL = (
    "rank",
    "predicted_bps",
    "predicted_time_s",
    "log_ratio",
    "log_ratio_low",
    "log_ratio_high",
    "applicable",
    "reasons",
    "probability_best",
    "score",
    "difference",
    "difference_se",
)

OF_TRANSFERS = "predicts the time of a transfer, which one transfer does not rank; `tcpfit pool` ranks it over many"
NO_TIME = "predicts the time of a transfer; the parameters are outside the model's domain"

HANDSHAKE = ("mss_bytes", "window_scale", "sack_permitted", "mptcp", "timestamps", "ecn", "ecn_feedback")

VERDICT = (
    pl.col("state").cast(pl.String).fill_null("insufficient"),
    pl.col("models").fill_null(pl.lit([], TEXTS)),
    pl.col("text").fill_null("No model was ranked on this flow."),
)

NESTED = (
    *("vantage", "handshake", "ending", "congestion_control", "counts", "count_ranges", "parameters", "observed"),
    *("models", "baselines", "verdict", "diagnosis", "stalls"),
)
"""Keys of a flow whose values are objects or lists."""

TEXTS_AT_A_TIME = 256

PIECE = 1 << 20

Z95 = 1.959963984540054


def document(analyses: Iterable[Analysis]) -> dict[str, Any]:
    """The whole document for some captures, in their order."""
    return envelope([capture(analysis) for analysis in analyses])


def envelope(captures: list[dict[str, Any]]) -> dict[str, Any]:
    """The document around captures that were described already."""
    return {"tcpfit": tcpfit.__version__, "schema": SCHEMA_VERSION, "captures": captures}


def capture(analysis: Analysis) -> dict[str, Any]:
    """One capture of the document, with its flows."""
    return capture_facts(analysis) | {"flows": list(flow_facts(analysis))}


def finite(value: Any) -> Any:
    """The same value with every NaN and infinity as None, so that it can be JSON."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Document:
    """The document as text, a line a capture and a line a flow, written capture by capture.

    It waits in `out`, a binary file that can be read again, so that a capture that fails half-way leaves nothing in it.
    """

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._captures = 0
        self._write(dumps(envelope([])).removesuffix("]}"))

    def add(self, analysis: Analysis, flows: Iterable[str] | None = None) -> None:
        """Write a capture and its flows, which can be given as their texts."""
        before = self._out.tell()
        flows = flow_texts(analysis) if flows is None else flows
        try:
            # one by one: `writelines` of a spooled file holds all in memory
            for piece in self._pieces(analysis, flows):
                self._write(piece)
        except BaseException:
            self._out.seek(before)
            self._out.truncate()
            raise
        self._captures += 1

    def close(self) -> Iterator[bytes]:
        """Write the end, and give back the whole in pieces."""
        self._write("\n]}\n")
        self._out.seek(0)
        return iter(lambda: self._out.read(PIECE), b"")

    def _write(self, text: str) -> None:
        self._out.write(text.encode("ascii"))

    def _pieces(self, analysis: Analysis, flows: Iterable[str]) -> Iterator[str]:
        facts = dumps(capture_facts(analysis) | {"flows": []})
        yield ("," if self._captures else "") + "\n " + facts.removesuffix("]}")
        for number, flow in enumerate(flows):
            yield ("," if number else "") + "\n  " + flow
        yield "\n ]}"


def lines(analysis: Analysis, flows: Iterable[str] | None = None) -> Iterator[str]:
    """A line of JSON a flow, each with its capture's path and the schema; the flows can be given as their texts."""
    start = dumps({"schema": SCHEMA_VERSION, "capture": analysis.path}).removesuffix("}")
    for flow in flow_texts(analysis) if flows is None else flows:
        yield f"{start}, {flow.removeprefix('{')}"


def capture_facts(analysis: Analysis) -> dict[str, Any]:
    """What the document says of a capture, flows apart."""
    facts = analysis.capture
    missing, seen = (facts.get(name, 0) for name in ("missing_segments", "data_segments"))
    start_ns, end_ns = facts.get("start_ns"), facts.get("end_ns")
    return {
        "path": analysis.path,
        "format": facts.get("format"),
        "link_types": list(facts.get("link_types") or []),
        "packets": facts.get("packets"),
        "tcp_segments": facts.get("tcp_segments"),
        "bytes": facts.get("bytes"),
        "start_time": None if start_ns is None else start_ns / 1e9,
        "duration_s": None if start_ns is None or end_ns is None else (end_ns - start_ns) / 1e9,
        "skipped": dict(facts.get("skipped") or {}),
        "capture_loss": facts.get("capture_loss") or share(missing, missing + seen),
        "interface_drops": facts.get("interface_drops"),
        "without_data": {what: (facts.get("without_data") or {}).get(what) for what in WITHOUT_DATA},
        "warnings": list(facts.get("warnings") or []),
    }


def share(hits: int, trials: int) -> dict[str, float | None]:
    """A share with its Wilson interval; all null where there was nothing to count."""
    if trials <= 0:
        return {"rate": None, "low": None, "high": None}
    rate, z2 = hits / trials, Z95**2
    middle = (rate + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z95 / (1 + z2 / trials) * math.sqrt(rate * (1 - rate) / trials + z2 / (4 * trials**2))
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    high = 1.0 if hits == trials else min(1.0, middle + half)
    return {"rate": rate, "low": low, "high": high}


def flow_facts(analysis: Analysis) -> Iterator[dict[str, Any]]:
    """FLOW objects, the largest flow first."""
    return map(json.loads, flow_texts(analysis))


def flow_texts(analysis: Analysis) -> Iterator[str]:
    """FLOW objects as text, the largest flow first."""
    if analysis.flows.is_empty():
        return
    evidence = analysis.conversations
    spans, stalls = account_of(evidence), silences_of(evidence)
    for portion in analysis.portions():
        yield from _encoded(_flow_table(portion, spans, stalls))


def flow_texts_of_each(several: Sequence[Analysis]) -> list[list[str]]:
    """What `flow_texts` gives for each of several captures of few flows, of which all were selected, at little more
    than the cost of one; `tcpfit.joint` says what they have in common."""
    from tcpfit.joint import Joint

    joint = Joint(several)
    found: list[list[str]] = [[] for _ in several]
    if joint.analysis.flows.height:
        evidence = joint.analysis.evidence
        table, owner = joint.own(_flow_table(joint.analysis, account_of(evidence), silences_of(evidence)), "id")
        for number, text in zip(owner, _encoded(table), strict=True):
            found[number].append(text)
    return found


def ordered(analysis: Analysis) -> pl.DataFrame:
    """The table of flows, the largest first."""
    return analysis.flows.sort(["data_bytes", "flow"], descending=[True, False])


def of_flow(flows: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """The rows of a table that has one a flow, in the order of these flows; nulls where it has none."""
    return flows.select("flow").join(table, on="flow", how="left", maintain_order="left")


def identity(flows: pl.DataFrame) -> pl.DataFrame:
    """What a FLOW begins with: number, ends and times."""
    return flows.select(
        pl.col("flow").alias("id"),
        *("connection", "src", "src_port", "dst", "dst_port"),
        start_time=_seconds(flows["first_ns"]),
        duration_s=_seconds(flows["last_ns"] - flows["first_ns"]),
    )


def groups(analysis: Analysis, flows: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Those objects of a FLOW that have the same keys in every flow and plain values: a table each, a row a flow."""
    family = families(analysis.evidence).select("flow", pl.col("family").cast(pl.String), "confidence")
    observed = ranking.observed_of(analysis.evidence)
    return {
        "vantage": flows.select(position="vantage", confidence="vantage_confidence", fraction="vantage_fraction"),
        "handshake": flows.select(pl.col("handshake_rtt_s").alias("rtt_s"), *HANDSHAKE),
        "ending": flows.select(pl.col("ending").cast(pl.String).alias("how"), "reset_frame", "completeness"),
        "congestion_control": of_flow(flows, family).select(pl.col("family").fill_null("unknown"), "confidence"),
        "counts": flows.select(*COUNTS, timeout_sequences=_sequences(analysis, flows)),
        "observed": of_flow(flows, observed).select(OBSERVED),
    }


def _flow_table(analysis: Analysis, spans: pl.DataFrame, stalls: pl.DataFrame) -> pl.DataFrame:
    """A row a flow, the largest first, and a column a key, those of `NESTED` as text."""
    flows = ordered(analysis)
    numbers = flows["flow"].to_list()
    plain = {key: objects(table) for key, table in groups(analysis, flows).items()}
    models, baselines = _models(analysis, flows)
    diagnoses = of_spans(flows, of(spans, flows))
    return identity(flows).with_columns(
        **{key: plain[key] for key in ("vantage", "handshake", "ending", "congestion_control", "counts")},
        count_ranges=_ranges(flows),
        parameters=_parameters(analysis, flows),
        observed=plain["observed"],
        models=models,
        baselines=baselines,
        verdict=objects(of_flow(flows, analysis.verdicts).select(VERDICT)),
        diagnosis=pl.Series([dumps(diagnosis_facts(diagnoses[number])) for number in numbers], dtype=pl.String),
        stalls=_stalls(of(stalls, flows), flows),
    )


def _encoded(table: pl.DataFrame) -> Iterator[str]:
    for part in texts(table, NESTED).iter_slices(TEXTS_AT_A_TIME):
        yield from joined(part).to_list()


def rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table with every NaN and infinity as None."""
    names = tuple(table.columns)
    return [dict(zip(names, row, strict=True)) for row in values(table)]


def values(table: pl.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Rows of a table as tuples, with every NaN and infinity as None."""
    return zip(*(column.to_list() for column in nan_as_null(table)), strict=True)


def timeout_sequences(events: pl.DataFrame) -> dict[int, list[int]]:
    """How many series of timeouts had length 1, 2, ... per flow.

    A timeout's `segments` is its back-off: 0 opens a series, and a series ends where the next timeout of the flow backs
    off no further.
    """
    timeouts = events.filter(pl.col("kind") == "timeout").sort(["flow", "time_ns", "segments"], maintain_order=True)
    following = pl.col("segments").shift(-1).over("flow")
    lengths = (
        timeouts.filter(following.is_null() | (following <= pl.col("segments")))
        .group_by("flow", pl.col("segments") + 1)
        .len()
        .sort(["flow", "segments"])
    )
    series: dict[int, list[int]] = defaultdict(list)
    for flow, length, number in lengths.iter_rows():
        series[flow].extend([0] * (length - 1 - len(series[flow])))
        series[flow].append(number)
    return dict(series)


def _seconds(ns: pl.Series) -> pl.Series:
    """Divided by a billion; polars would multiply by its reciprocal, which is another number."""
    return pl.Series(ns.to_numpy() / 1e9)


def _sequences(analysis: Analysis, flows: pl.DataFrame) -> pl.Series:
    series = timeout_sequences(analysis.events)
    schema = {"flow": flows.schema["flow"], "series": pl.List(pl.UInt32)}
    known = pl.DataFrame({"flow": [*series], "series": [*series.values()]}, schema=schema)
    return of_flow(flows, known)["series"].fill_null(pl.Series([[]], dtype=pl.List(pl.UInt32)))


def _ranges(flows: pl.DataFrame) -> pl.Series:
    """The counts that have a range: an object of lists."""
    stems = {"lost_segments": "lost", "reordered_segments": "reordered"}
    ends = {name: (pl.col(f"{stem}_low"), pl.col(f"{stem}_high")) for name, stem in stems.items()}
    items = [
        pl.when(low != high).then(pl.format(f"{dumps(name)}: [{{}}, {{}}]", low, high))
        for name, (low, high) in ends.items()
    ]
    return flows.select(pl.format("{{{}}}", pl.concat_str(items, separator=", ", ignore_nulls=True))).to_series()


def _stalls(stalls: pl.DataFrame, flows: pl.DataFrame) -> pl.Series:
    """The stalls of each flow in order of time: a list of objects."""
    table = stalls.join(flows.select("flow", "first_ns"), on="flow", how="left", maintain_order="left")
    frames = (pl.col(name).cast(pl.String).fill_null("null") for name in ("before", "after"))
    items = objects(
        table.select(
            _seconds(table["start_ns"] - table["first_ns"]).alias("start_s"),
            *("length_s", "cause", "detail", "outstanding_bytes"),
            pl.format("[{}, {}]", *frames).alias("frames"),
        ),
        ("frames",),
    )
    return _listed(table.select("flow", item=items), flows)


def _listed(items: pl.DataFrame, flows: pl.DataFrame, brackets: str = "[]") -> pl.Series:
    """The items of each flow, columns flow and item, in their order and in brackets."""
    found = items.group_by("flow", maintain_order=True).agg("item")
    found = found.select("flow", item=brackets[0] + pl.col("item").list.join(", ") + brackets[1])
    return of_flow(flows, found)["item"].fill_null(brackets)


def _parameters(analysis: Analysis, flows: pl.DataFrame) -> pl.Series:
    """All parameters that there are, of each flow: an object of objects."""
    names = pl.DataFrame({"name": pl.Series(list(NAMES), dtype=NAME)})
    estimates = analysis.parameters.select("flow", pl.col("name").cast(NAME), "value", "low", "high", "n")
    table = flows.select("flow").join(names, how="cross")
    table = table.join(estimates, on=["flow", "name"], how="left", maintain_order="left")
    values = objects(table.select("value", "low", "high", pl.col("n").fill_null(0)))
    return _listed(table.select("flow", item='"' + pl.col("name").cast(pl.String) + '": ' + values), flows, "{}")


def _models(analysis: Analysis, flows: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """Each flow's models and its baselines: a list of objects each.

    The best rank comes first and unranked ones last: those of a rate, then those of a short flow's time.
    """
    ranked, keys = analysis.ranking, ("flow", "rank", "model")
    says = pl.col("predicted_s").is_finite()
    short = alone(analysis).sort("flow", "model")
    # polars would multiply by the reciprocal, which is another number, where it is one flow
    ratio = pl.Series(short["predicted_s"].to_numpy() / short["time_s"].to_numpy(), dtype=pl.Float64)
    times = short.select(
        "flow",
        "model",
        predicted_time_s="predicted_s",
        log_ratio=pl.when(says).then(ratio.log()),
        applicable=says.fill_null(value=False),
        reasons=pl.when(says).then(pl.lit([OF_TRANSFERS])).otherwise(pl.lit([NO_TIME])),
    )
    items = [
        table.select(*keys, item=objects(table.select(pl.col("model").alias("name"), *MODEL)))
        for table in (ranked, pl.concat([ranked.clear(), times], how="diagonal"))
    ]
    table = pl.concat([items[0].sort(keys, nulls_last=True), items[1]])
    baseline = pl.col("model").is_in(list(BASELINES))
    of_rate, beside = (_listed(table.filter(kind).select("flow", "item"), flows) for kind in (~baseline, baseline))
    return of_rate, beside
