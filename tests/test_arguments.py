"""Is what makes no sense to a public function of Python told in one clear sentence, never by the error of a library?"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import tcpfit
from tcpfit import annotation, anonymity, arguments, comparison, corpus, diagnosis, parameters, ranking
from tcpfit.corpus import summary
from tcpfit.diagnosis import findings
from tcpfit.diagnosis.table import report
from tcpfit.exceptions import InvalidParameter
from tcpfit.models import BohacekDynamics, BohacekSack, Catnip, Cubic, Hysteresis, Mathis, PFTKFull, get
from tcpfit.parameters import burst, displacement, reorder, tfrc
from tcpfit.ranking import across
from tcpfit.report import figures
from tcpfit.report.explanation import explain
from tcpfit.segment_file import SegmentFile

SAMPLE = Path(__file__).resolve().parents[1] / "sample-traces" / "newreno-loss.pcap.gz"

Case = tuple[Callable[[Any], Any], str]


@pytest.fixture(scope="module")
def a() -> SimpleNamespace:
    """An analysis with its segments, and its tables."""
    whole = tcpfit.analyze(SAMPLE, segments=True)
    return SimpleNamespace(
        whole=whole, flows=whole.flows, events=whole.events, rounds=whole.rounds, estimates=whole.parameters
    )


def _twice(table: pl.DataFrame) -> pl.DataFrame:
    """As tables of two captures are that were joined as they are."""
    return pl.concat([table, table])


def analyzed(**settings: Any) -> Callable[[Any], Any]:
    return lambda _: tcpfit.analyze(SAMPLE, **settings)


NO_FLOW = "a flow is named by its number in the table of flows, got "

FLOWS: list[Case] = [
    (lambda a: a.whole.plot("rtt", "0"), f"{NO_FLOW}'0'"),
    (lambda a: a.whole.plot("time-sequence", 0.0), f"{NO_FLOW}0.0"),
    (lambda a: a.whole.plot("rtt", [0]), f"{NO_FLOW}[0]"),
    (lambda a: a.whole.plot("rtt", True), f"{NO_FLOW}True"),
    (lambda a: a.whole.plot("rtt", a.whole), f"{NO_FLOW}an Analysis"),
    (lambda a: a.whole.plot("rtt", -1), "has no flow -1; its only flow is 0"),
    (lambda a: a.whole.plot("rtt", 2**70), "has no flow 1180591620717411303424; its only flow is 0"),
    (lambda a: figures.draw([a.whole], "rtt"), "the capture must be an Analysis"),
    (lambda a: a.whole.plot(["rtt"]), "['rtt'] is no kind of figure; the kinds are time-sequence"),
    (lambda a: a.whole.plot("rtt", theme=["dark"]), "theme must be one of light, dark, got ['dark']"),
    (lambda a: tcpfit.course(a.whole, "0"), f"{NO_FLOW}'0'"),
    (lambda a: tcpfit.course(a.whole, None), f"{NO_FLOW}None"),
    (lambda a: tcpfit.course(a.whole, 0, bin_s="1"), "bin_s must be a number, got '1'"),
    (lambda a: tcpfit.course(a.whole, 0, bin_s=math.nan), "bin_s must be a number, got nan"),
    (lambda a: tcpfit.course(a.whole, 0, losses=["events"]), "losses must be one of segments, events, got ['events']"),
    (lambda a: tcpfit.course([a.whole], 0), "the capture must be an Analysis, which tcpfit.analyze and tcpfit.load"),
    (lambda a: tcpfit.course(a.flows, 0), "tcpfit.load give, got a DataFrame"),
    (lambda a: a.whole.select([0.0]), f"{NO_FLOW}0.0"),
    (lambda a: a.whole.select(np.array([0.0])), f"{NO_FLOW}np.float64(0.0)"),
    (lambda a: a.whole.select([[0]]), f"{NO_FLOW}[0]"),
    (lambda a: a.whole.select(0), "flows must be a list of numbers of flows, got 0"),
    (lambda a: a.whole.select("0"), "flows must be a list of numbers of flows, got '0'"),
    (lambda a: a.whole.select(a.whole), "flows must be a list of numbers of flows, got an Analysis"),
    (lambda a: a.whole.select([7]), "has no flow 7; its only flow is 0"),
    (lambda a: a.whole.select([]).select([7]), "has no flow 7; no flow of it carried data"),
    (lambda a: a.whole.select(min_segments="5"), "min_segments must be a whole number of at least 0, got '5'"),
    (lambda a: a.whole.select(min_segments=-1), "min_segments must be a whole number of at least 0, got -1"),
    (lambda a: a.whole.around("0"), f"{NO_FLOW}'0'"),
    (lambda a: a.whole.ends(["0"]), f"{NO_FLOW}'0'"),
    (lambda a: a.whole.ends([9]), "has no flow 9"),
    (lambda a: list(a.whole.portions([0.0])), f"{NO_FLOW}0.0"),
    (lambda a: findings.find(a.whole, "0"), f"{NO_FLOW}'0'"),
    (lambda a: findings.find(a.flows, 0), "the capture must be an Analysis"),
    (lambda a: explain(a.whole, "1"), "frame must be a whole number of at least 1, got '1'"),
    (lambda a: explain(a.whole, 1.0), "frame must be a whole number of at least 1, got 1.0"),
    (lambda a: explain(a.whole, 2**70), "has no frame 1180591620717411303424"),
    (lambda a: explain([a.whole], 1), "the capture must be an Analysis"),
    (lambda a: comparison.compare(a.whole, SAMPLE, flows=["0"]), f"{NO_FLOW}'0'"),
    (lambda a: comparison.compare(a.whole, SAMPLE, flows=[9]), "has no flow 9"),
    (lambda a: comparison.compare(SAMPLE, SAMPLE), "the capture must be an Analysis"),
    (lambda a: comparison.compare(a.whole, 5), "path must be a path, got 5"),
    (lambda a: annotation.annotate(None, SAMPLE, "x.pcapng"), "the capture must be an Analysis"),
    (lambda a: annotation.annotate(a.whole, [SAMPLE], "x.pcapng"), "path must be a path, got [PosixPath("),
    (lambda a: annotation.annotate(a.whole, SAMPLE, None), "out must be a path, got None"),
]

CAPTURES: list[Case] = [
    (lambda _: tcpfit.analyze(None), "the capture must be a path, got None"),
    (lambda _: tcpfit.analyze(b"x.pcap"), "the capture must be a path, got b'x.pcap'"),
    (lambda _: tcpfit.analyze(""), "the capture must be a path, got ''"),
    (lambda a: tcpfit.analyze(SAMPLE, segments=a.flows), "segments must be True, False or a function that takes a"),
    (lambda _: tcpfit.analyze(SAMPLE, filter="\udce9"), r"filter must be a text that UTF-8 can hold, got '\udce9'"),
    (lambda a: tcpfit.analyze(a.whole), "the capture must be a path, got an Analysis"),
    (analyzed(reader=["engine"]), "reader must be one of engine, dpkt, tshark, pyshark, got ['engine']"),
    (analyzed(vantage=3), "vantage must be one of sender, receiver, middle, got 3"),
    (analyzed(filter=3), "filter must be a text, got 3"),
    (analyzed(from_s="10s"), "from_s must be a number, got '10s'"),
    (analyzed(from_s=-5), "from_s must be 0 s or later, got -5"),
    (analyzed(from_s=math.nan, reader="dpkt"), "from_s must be a number, got nan"),
    (analyzed(to_s=[1]), "to_s must be a number, got [1]"),
    (analyzed(to_s=10**400), "to_s must be a number, got 1000"),
    (analyzed(to_s=10**5000), "to_s must be a number, got a number of thousands of digits"),
    (analyzed(from_s=2, to_s=1), "the end must come after the start, got 2 s to 1 s"),
    (analyzed(max_flows="5"), "max_flows must be a whole number of at least 1 and below 2^63, got '5'"),
    (analyzed(max_memory=1.5), "max_memory must be a whole number of at least 1 and below 2^63, got 1.5"),
    (analyzed(max_memory=2**63), "max_memory must be a whole number of at least 1 and below 2^63, got 9223"),
    (analyzed(segments="yes"), "segments must be True, False or a function that takes a table, got 'yes'"),
    (analyzed(progress=5), "progress must be a function, got 5"),
    (lambda _: tcpfit.load(5), "directory must be a path, got 5"),
    (lambda a: a.whole.write_parquet(None), "directory must be a path, got None"),
    (lambda a: a.whole.write_html(5), "path must be a path, got 5"),
    (lambda a: a.whole.write_html(""), "path must be a path, got ''"),
    (lambda a: a.whole.write_html("a\0b"), r"path must be a path, got 'a\x00b'"),
    (lambda a: a.whole.write_html("\ud800"), r"path must be a path, got '\ud800'"),
    (lambda a: a.whole.write_parquet("x", segments=a.flows), "segments must be True or False, got a DataFrame"),
    (lambda a: a.whole.write_parquet("x", run="\ud800"), r"run must be a text that UTF-8 can hold, got '\ud800'"),
    (lambda a: a.whole.plot("rtt", theme=a.flows), "theme must be one of light, dark, got a DataFrame"),
    (lambda a: a.whole.write_html("x.html", drawn="2"), "drawn must be a whole number of at least 0, got '2'"),
    (lambda a: a.whole.write_html("x.html", data=2), "data must be a text, got 2"),
    (lambda a: a.whole.with_segments([a.flows]), "the table segments lacks the column 'frame'"),
    (lambda a: a.whole.with_segments(None), "pieces must be a list of tables of segments, got None"),
    (lambda _: SegmentFile(5), "target must be a path, got 5"),
    (lambda a: a.whole.anonymized("x" * 20), "a key is bytes, of the class bytes, got one of the class str"),
    (lambda a: a.whole.anonymized(None), "a key is bytes, of the class bytes, got one of the class NoneType"),
    (lambda _: anonymity.Pseudonyms(b"x" * 16).of(5), "an address must be a text, got 5"),
    (lambda _: anonymity.Pseudonyms(b"x" * 16).name(5), "path must be a path, got 5"),
    (lambda _: anonymity.Pseudonyms(b"x" * 16).in_table(5), "the table must be a polars DataFrame"),
]

RANKS: list[Case] = [
    (lambda a: a.whole.rank("mathis"), "models must be a list of names, got 'mathis'"),
    (lambda a: a.whole.rank(5), "models must be a list of names, got 5"),
    (lambda a: a.whole.rank([5]), "each of models must be a text, got 5"),
    (
        lambda a: a.whole.rank(rule=["window"]),
        "rule must be one of one-rtt, window, recovery-point, tfrc, got ['window']",
    ),
    (lambda a: a.whole.rank(block="5"), "block must be a whole number of at least 1, got '5'"),
    (lambda a: a.whole.rank(block=math.nan), "block must be a whole number of at least 1, got nan"),
    (lambda a: a.whole.rank(block=2.5), "block must be a whole number of at least 1, got 2.5"),
    (lambda a: a.whole.rank(fit="pftk-full.b"), "fit must be a list of names, got 'pftk-full.b'"),
    (lambda a: a.whole.rank(fit=[5]), "each of fit must be a text, got 5"),
    (lambda a: a.whole.rank(fit=None), "fit must be a list of names, got None"),
    (lambda a: a.whole.ranked_by(block="5"), "block must be a whole number of at least 1, got '5'"),
    (lambda a: a.whole.ranked_by(["bogus"]), "There is no model 'bogus'"),
    (lambda a: tcpfit.rank(a.whole), "the captures must be a list of Analysis, got one alone; write [analysis]"),
    (lambda a: tcpfit.rank(5), "the captures must be a list of Analysis, got 5"),
    (lambda a: tcpfit.rank("x.pcap"), "the captures must be a list of Analysis, got 'x.pcap'"),
    (lambda a: tcpfit.rank(["x.pcap"]), "each of the captures must be an Analysis, which tcpfit.analyze and"),
    (lambda a: tcpfit.rank(a.flows), "the table of flows lacks the column 'capture'; tcpfit.ranking.across.residuals"),
    (lambda a: tcpfit.rank(_with(a, p=pl.lit("x"))), "the table of flows has a column 'p' of String, which should be"),
    (lambda a: across.pooled(_with(a), ["mathis"]), "model must be a text, got ['mathis']"),
    (lambda a: across.constants(_with(a), 5), "model must be a text, got 5"),
    (lambda a: across.tree(a.flows), "the table of flows lacks the column 'capture'"),
    (lambda a: tcpfit.transfers(a.whole), "the captures must be a list of Analysis, got one alone"),
    (lambda a: tcpfit.transfers([a.whole], "5"), "most must be a whole number of at least 1, got '5'"),
    (lambda a: tcpfit.transfers([a.whole], math.nan), "most must be a whole number of at least 1, got nan"),
    (
        lambda a: tcpfit.rank_short([a.whole]),
        "the table of transfers must be a polars DataFrame, as tcpfit.transfers makes",
    ),
    (
        lambda a: tcpfit.rank_short(a.flows),
        "the table of transfers lacks the column 'capture'; tcpfit.transfers makes it",
    ),
    (lambda a: tcpfit.rank_short(tcpfit.transfers([]), ["catnip"]), "models must be a dict of models by name"),
    (lambda a: ranking.by_name("mathis"), "models must be a list of names, got 'mathis'"),
    (lambda a: _ranked(a, models={"mathis": 5}), "each of models must be a tcpfit.models.Model, got 5"),
    (lambda a: _ranked(a, per_block="4"), "per_block must be a whole number of at least 1, got '4'"),
    (lambda a: _ranked(a, rule="tahoe"), "rule must be one of one-rtt, window, recovery-point, tfrc, got 'tahoe'"),
    (lambda a: _ranked(a, fits=5), "fits must be a list of names, got 5"),
]


def _with(a: SimpleNamespace, **columns: pl.Expr) -> pl.DataFrame:
    """The table of residuals, with other columns."""
    return across.residuals([a.whole]).with_columns(**columns)


def _ranked(a: SimpleNamespace, **choices: Any) -> Any:
    return ranking.rank(a.flows, a.events, a.rounds, a.estimates, **choices)


TABLES: list[Case] = [
    (lambda a: parameters.estimate(a.whole, a.events, a.rounds), "the table flows must be a polars DataFrame, as"),
    (
        lambda a: parameters.estimate(a.flows.drop("flow"), a.events, a.rounds),
        "the table flows lacks the column 'flow'",
    ),
    (lambda a: parameters.estimate(a.flows.lazy(), a.events, a.rounds), "got a LazyFrame"),
    (lambda a: parameters.families(a.flows, a.events, None), "the table rounds must be a polars DataFrame, as"),
    (lambda a: parameters.estimates(a.whole), "evidence must be an Evidence; tcpfit.parameters.estimate takes tables"),
    (lambda a: parameters.episodes(a.flows, a.flows), "the table events lacks the column 'time_ns'"),
    (lambda a: parameters.independence(None, a.events), "the table flows must be a polars DataFrame"),
    (lambda a: parameters.hosts(a.flows, a.rounds), "the table events lacks the column 'time_ns'"),
    (lambda a: parameters.loss_events(a.flows, a.events, ["window"]), "rule must be one of one-rtt, window,"),
    (lambda a: parameters.loss_events(a.whole, a.events), "the table flows must be a polars DataFrame"),
    (lambda a: parameters.under_rule(a.flows, None, "window"), "the table events must be a polars DataFrame"),
    (lambda a: displacement.density(a.flows, a.events, "3"), "threshold must be a whole number of at least 1, got '3'"),
    (lambda a: displacement.occupancy(a.flows, a.events, 1.5), "threshold must be a whole number of at least 1"),
    (lambda a: displacement.density(a.flows, a.events.drop("arrival")), "the table events lacks the column 'arrival'"),
    (lambda a: displacement.past_dupthresh(a.flows), "the table events lacks the column 'time_ns'"),
    (lambda a: ranking.observed(a.flows.drop("smss_bytes"), a.events, a.rounds), "lacks the column 'smss_bytes'"),
    (lambda a: ranking.rank(a.flows, a.events, a.rounds, a.flows), "the table of parameters lacks the column 'name'"),
    (
        lambda a: parameters.estimate(_twice(a.flows), a.events, a.rounds),
        "flow 0 is in the table flows twice; renumber the flows before tables of several captures are joined",
    ),
    (lambda a: ranking.observed(_twice(a.flows), a.events, a.rounds), "flow 0 is in the table flows twice"),
    (
        lambda a: ranking.rank(a.flows, a.events, a.rounds, _twice(a.estimates)),
        "the table of parameters has p of flow 0 twice; renumber the flows before tables of several captures are",
    ),
    (
        lambda a: ranking.by_block(a.flows, a.events, a.rounds, _twice(a.estimates.filter(pl.col("name") == "rtt"))),
        "the table of parameters has rtt of flow 0 twice",
    ),
    (lambda a: reorder.reactions(None, a.events), "the table flows must be a polars DataFrame"),
    (lambda a: reorder.reactions(a.events, a.flows), "the table flows lacks the column 'connection'"),
    (
        lambda a: ranking.rank(a.flows, a.events, a.rounds, a.estimates, evidence=3),
        "evidence must be the Evidence of the tables, got 3",
    ),
    (
        lambda a: ranking.by_block(a.flows, a.events, a.rounds, a.estimates, evidence=a.flows),
        "evidence must be the Evidence of the tables, got a DataFrame",
    ),
    (lambda _: burst.q_eq30("a", 0.1), "p must be a number or an array of numbers, got 'a'"),
    (lambda _: burst.q_eq30([0.01], [[0.02], 1]), "q_tilde must be a number or an array of numbers, got [[0.02], 1]"),
    (lambda _: burst.window_eq14(0.01, None), "q must be a number or an array of numbers, got None"),
    (lambda _: tfrc.loss_event_rate("x", 3), "intervals must be a list of numbers, got 'x'"),
    (lambda _: tfrc.loss_event_rate([1j], 3), "intervals must be a number or an array of numbers, got [1j]"),
    (lambda _: tfrc.loss_event_rate([100.0], "3"), "since must be a number, got '3'"),
    (lambda a: diagnosis.diagnose(a.whole, a.events, a.rounds), "the table flows must be a polars DataFrame"),
    (lambda a: diagnosis.account(a.flows, a.events, a.flows), "the table rounds lacks the column 'round'"),
    (lambda a: diagnosis.silences(None, a.events, a.rounds), "the table flows must be a polars DataFrame"),
    (
        lambda a: diagnosis.facts(a.whole),
        "the diagnosis must be one of those that tcpfit.diagnosis.diagnose gives, got",
    ),
    (lambda a: report([a.whole]), "the capture must be an Analysis"),
    (lambda a: report(a.whole, 5), "span_ns must be a list of two times, got 5"),
    (lambda a: report(a.whole, (1,)), "span_ns must be a list of two times, got (1,)"),
    (lambda a: report(a.whole, (5, 1)), "the end must come after the start, got 5 ns to 1 ns"),
    (lambda a: report(a.whole, ("a", "b")), "each of span_ns must be a whole number of at least 0, got 'a'"),
]

FLOW = {"segments": 10, "p": 0.01, "rtt": 0.1, "rto": 0.5}
TABLE = {"p": [0.1, 0.01, 0.02], "rtt": [0.1] * 3, "rto": [0.5] * 3}
SERIES: dict[str, Any] = {"times": [0, 5], "losses": [0.01, 0.02], "rtt": 0.1, "rto": 0.5, "end": 10}


def drawn(**given: Any) -> Callable[[Any], Any]:
    return lambda _: Hysteresis().simulate(**({"draws": 3, "seed": 1} | FLOW | given))


def of_flows(method: str, **given: Any) -> Callable[[Any], Any]:
    return lambda _: list(getattr(Hysteresis(), method)(**(FLOW | {"segments": [10, 20]} | given)))


def course(**given: Any) -> Callable[[Any], Any]:
    return lambda _: BohacekDynamics().trajectory(**(SERIES | given))


MODELS: list[Case] = [
    (lambda _: get(["mathis"]), "There is no model ['mathis']; known are mathis"),
    (lambda _: get("mathis").predict(p="0.1", rtt=1), "p of mathis must be a number or an array of numbers, got '0.1'"),
    (lambda _: get("mathis").predict(pl.LazyFrame(TABLE)), "mathis does not take lazy frames; give it X.collect()"),
    (lambda _: Mathis(b="x").predict(p=0.1, rtt=1), "b of mathis must be a number or an array of numbers, got 'x'"),
    (lambda _: Cubic(as_printed="x").predict(p=0.1, rtt=1), "as_printed of cubic must be one of True, False, got 'x'"),
    (lambda _: BohacekSack(c1="x").predict(p=0.1, rtt=1, rto=1), "c1 of bohacek-sack must be a number, got 'x'"),
    (
        lambda _: BohacekSack().timeout_rate("x", 0.1),
        "p of bohacek-sack must be a number or an array of numbers, got 'x'",
    ),
    (lambda _: Hysteresis(stop="x").predict(**FLOW), "stop of hysteresis must be a number, got 'x'"),
    (lambda _: Catnip(stop=None).predict(**FLOW), "stop of catnip must be a number, got None"),
    (lambda _: PFTKFull(free=5).fit(TABLE, [1, 2, 3]), "free of pftk-full must be a list of names, got 5"),
    (lambda _: Mathis().score(TABLE, [1, 2]), "mathis got 3 values of p, but 2 of y"),
    (lambda _: Mathis().score(TABLE, 5), "mathis got 3 values of p, but 1 of y"),
    (lambda _: Mathis().score(TABLE, ["a", "b", "c"]), "y of mathis must be a number or an array of numbers"),
    (lambda _: Mathis().score(TABLE, None), "mathis requires y to be passed"),
    (lambda _: Mathis().domain(p=0.1, rtt=1, z=1), "mathis has no parameter 'z'; it takes p, rtt, b"),
    (lambda _: Hysteresis().variance(**FLOW, z=1), "hysteresis has no parameter 'z'"),
    (lambda _: Hysteresis().variance(**(FLOW | {"p": {}})), "p of hysteresis must be a number or an array of numbers"),
    (drawn(draws="x"), "draws must be a whole number of at least 0, got 'x'"),
    (drawn(draws=-1), "draws must be a whole number of at least 0, got -1"),
    (drawn(seed=1.5), "seed must be a whole number of at least 0, got 1.5"),
    (drawn(seed=-1), "seed must be a whole number of at least 0, got -1"),
    (drawn(z=1), "hysteresis has no parameter 'z'"),
    (drawn(p="x"), "p of hysteresis must be a number or an array of numbers, got 'x'"),
    (lambda _: Hysteresis().distribution(atoms=0, **FLOW), "atoms must be a whole number of at least 1, got 0"),
    (
        lambda _: Hysteresis().draw_losses(draws=1.5, seed=1, **FLOW),
        "draws must be a whole number of at least 0, got 1.5",
    ),
    (of_flows("distributions", segments=[[10, 20]]), "hysteresis takes flows as 1-d arrays here, got 2 dimensions"),
    (of_flows("distributions", atoms=0), "atoms must be a whole number of at least 1, got 0"),
    (of_flows("draw_losses_of", draws=2, seeds=[1]), "seeds must be as many as the flows, 2, got 1"),
    (of_flows("draw_losses_of", draws=2, seeds=[1, -1]), "each of seeds must be a whole number of at least 0, got -1"),
    (of_flows("draw_losses_of", draws="2", seeds=[1, 2]), "draws must be a whole number of at least 0, got '2'"),
    (lambda _: BohacekDynamics(c1="x"), "c1 of bohacek-dynamics must be a number, got 'x'"),
    (lambda _: BohacekDynamics(mean=["12"]), "mean of bohacek-dynamics must be one of 12, 13, got ['12']"),
    (course(times="x"), "times of bohacek-dynamics must be a number or an array of numbers, got 'x'"),
    (course(losses=1j), "Complex data not supported: losses of bohacek-dynamics must be real"),
    (course(rtt="x"), "rtt of bohacek-dynamics must be a number, got 'x'"),
    (course(rto=[1, 2]), "rto of bohacek-dynamics must be a number, got [1, 2]"),
    (course(end=None), "end of bohacek-dynamics must be a number, got None"),
    (course(end=1e-12), "end of bohacek-dynamics must come after the first time, 0 s, got 1e-12"),
    (course(step=(5,)), "step of bohacek-dynamics must be a number, got (5,)"),
    (course(start=5), "start of bohacek-dynamics must be a list of two numbers, got 5"),
    (course(start=(5,)), "start of bohacek-dynamics must be a mean of at least 1 and a second moment not below its"),
    (course(start=("a", "b")), "each of start of bohacek-dynamics must be a number, got 'a'"),
]


def settled(**settings: Any) -> Callable[[Any], Any]:
    return lambda _: corpus.Settings(**settings).checked()


def planned(**given: Any) -> Callable[[Any], Any]:
    return lambda _: corpus.plan([SAMPLE], **given)


CORPORA: list[Case] = [
    (lambda _: corpus.plan("captures"), "sources must be a list of paths, got 'captures'"),
    (lambda _: corpus.plan([5]), "each of sources must be a path, got 5"),
    (lambda a: corpus.plan(a.whole), "sources must be a list of paths, got an Analysis"),
    (planned(include="*.pcap"), "include must be a list of patterns, got '*.pcap'"),
    (planned(exclude=[5]), "each of exclude must be a text, got 5"),
    (planned(labels={"a": "b"}), "each of labels must be a pair of a name and a value, got 'a'"),
    (planned(labels=[("a", 5)]), "the value of a label must be a text, got 5"),
    (settled(from_s="x"), "from_s must be a number, got 'x'"),
    (settled(filter=3), "filter must be a text, got 3"),
    (settled(filter="hots 10.0.0.1"), "filter"),
    (settled(vantage=3), "vantage must be one of sender, receiver, middle, got 3"),
    (settled(max_memory=-1), "max_memory must be a whole number of at least 1"),
    (settled(models="mathis"), "models must be a list of names, got 'mathis'"),
    (settled(fit=5), "fit must be a list of names, got 5"),
    (settled(rule=["x"]), "rule must be one of one-rtt, window, recovery-point, tfrc, got ['x']"),
    (
        lambda _: corpus.run([SAMPLE], "out", settings={"rule": "window"}),
        "settings must be a tcpfit.corpus.Settings, got",
    ),
    (lambda _: corpus.run([SAMPLE], "out", workers=1.5), "whole number of at least 1 and below 2^10, got 1.5"),
    (lambda _: corpus.run([SAMPLE], "out", scheduler=5), "scheduler must be a text, got 5"),
    (lambda _: corpus.run([SAMPLE], "out", progress=5), "progress must be a function, got 5"),
    (
        lambda _: corpus.run([SAMPLE], "out", key="x" * 20),
        "a key is bytes, of the class bytes, got one of the class str",
    ),
    (lambda _: corpus.run([SAMPLE], 5), "out must be a path, got 5"),
    (lambda _: corpus.run([SAMPLE], SAMPLE), "not a folder; give the name of another"),
    (lambda _: corpus.open(5), "folder must be a path, got 5"),
    (
        lambda a: summary.overview(a.whole),
        "a data set must be a Corpus, which tcpfit.corpus.open gives, got an Analysis",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), [*FLOWS, *CAPTURES, *RANKS, *TABLES, *MODELS, *CORPORA])
def test_misuse_is_one_sentence(a: SimpleNamespace, call: Callable[[Any], Any], sentence: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        call(a)
    said = str(caught.value)
    assert sentence in said
    assert "\n" not in said and len(said) < 400


def test_a_data_set_is_asked_for_what_it_has(tmp_path: Path) -> None:
    corpus.run([SAMPLE.with_name("cubic.pcap.gz")], tmp_path / "out", workers=1)
    found = corpus.open(tmp_path / "out")
    for call, sentence in (
        (lambda: found.table(["flows"]), "a data set has the tables captures,"),
        (lambda: summary.overview(found, most="5"), "most must be a whole number of at least 0, got '5'"),
        (lambda: summary.overview(found, by=["site"]), "by must be a text, got ['site']"),
        (lambda: summary.overview(found, beside=found), "beside must be a list of data sets, got a Corpus"),
    ):
        with pytest.raises(InvalidParameter) as caught:
            call()
        assert sentence in str(caught.value)


def test_captures_are_taken_one_at_a_time(a: SimpleNamespace) -> None:
    """They may be many, each made when the one before is done with."""
    begun: list[str] = []

    def made(name: str) -> SimpleNamespace:
        begun.append(name)
        return a.whole

    for take in (tcpfit.rank, tcpfit.transfers):
        with pytest.raises(InvalidParameter, match="each of the captures must be an Analysis"):
            take(each if each else made("x") for each in (0, 5, 0))
        assert ["x"] == begun
        begun.clear()


def test_what_makes_sense_is_taken_as_before(a: SimpleNamespace) -> None:
    assert [0] == a.whole.select(np.array([0])).largest() == a.whole.select({0}).largest()
    assert [0] == a.whole.select(pl.Series([0])).largest() == a.whole.select(range(1)).largest()
    assert a.whole.plot("rtt", np.int64(0)).to_dict() == a.whole.plot("rtt", 0).to_dict()
    for span in ({"to_s": math.inf}, {"to_s": 1e300}, {"from_s": 0, "to_s": np.float64(1e9)}):
        assert a.events.equals(tcpfit.analyze(SAMPLE, **span).events)
        assert a.events.height == tcpfit.analyze(SAMPLE, reader="dpkt", **span).events.height
    assert tcpfit.analyze(SAMPLE, max_flows=np.int64(5)).events.equals(a.events)
    in_csv = pl.read_csv(a.flows.write_csv().encode())
    assert parameters.estimate(in_csv, a.events, a.rounds).equals(a.estimates)
    assert BohacekSack().timeout_rate(0.01, 0.1) == BohacekSack().timeout_rate(np.array([0.01]), np.array([0.1]))[0]
    assert burst.q_eq30([0.01], 0.02) == burst.q_eq30(np.array([0.01]), np.array([0.02])) > 0
    assert 1 / 60 == pytest.approx(tfrc.loss_event_rate([90, 30], 50))
    as_printed = Hysteresis(as_printed=True).variance(**FLOW)
    assert as_printed == Hysteresis().variance(as_printed=True, **FLOW) != Hysteresis().variance(**FLOW)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a\nb", r"'a\nb'"), (5, "5"), (None, "None"), ([1] * 99, "[" + "1, " * 18 + "1,..."), (Path("x"), "a PosixPath")],
)
def test_a_value_is_shown_on_one_line(value: object, expected: str) -> None:
    assert expected == arguments.shown(value)
