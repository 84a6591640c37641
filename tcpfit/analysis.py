"""One capture analysed: its tables, computed when they are asked for."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit import arguments, readers
from tcpfit.exceptions import InvalidParameter
from tcpfit.schema import ENDS, RUN, SCHEMA_VERSION, check_tables, polars_schema
from tcpfit.schema import TABLES as SCHEMAS

if TYPE_CHECKING:
    from tcpfit.parameters.evidence import Evidence
    from tcpfit.ranking.blocks import Blocks

TABLES = ("captures", "flows", "events", "rounds", "parameters", "ranking", "verdicts")

BESIDE = ("flows", "events", "rounds")
"""Tables of which the flows between the same ends are kept beside those that are selected."""

FLOWS_AT_A_TIME = 4096
"""Flows that are ranked and described together, which bounds the memory."""

AS_SAVED: dict[str, Any] = {"models": None, "rule": "one-rtt", "block": None, "fit": ()}
"""Arguments of `Analysis.rank` that ask for nothing in particular: saved tables of the ranking answer them."""

CAPTURES = pl.Schema(
    {
        "path": pl.String(),
        "format": pl.String(),
        "link_types": pl.List(pl.String()),
        "packets": pl.UInt64(),
        "tcp_segments": pl.UInt64(),
        "bytes": pl.UInt64(),
        "start_time": pl.Float64(),
        "duration_s": pl.Float64(),
        "skipped": pl.List(pl.Struct({"reason": pl.String(), "packets": pl.UInt64()})),
        "capture_loss_rate": pl.Float64(),
        "capture_loss_low": pl.Float64(),
        "capture_loss_high": pl.Float64(),
        "interface_drops": pl.UInt64(),
        "without_data_refused": pl.UInt64(),
        "without_data_unanswered": pl.UInt64(),
        "without_data_opened": pl.UInt64(),
        "warnings": pl.List(pl.String()),
    }
)


def analyze(
    path: str | os.PathLike[str],
    *,
    reader: str = "engine",
    vantage: str | None = None,
    filter: str | None = None,
    from_s: float | None = None,
    to_s: float | None = None,
    segments: bool | readers.Pieces = False,
    progress: readers.Progress | None = None,
    max_flows: int | None = None,
    max_memory: int | None = None,
) -> Analysis:
    """Analyse a capture; '-' is standard input.

    `reader` is one of `tcpfit.readers.READERS`; `vantage` overrides what the capture shows about where it was taken
    (sender, receiver, middle); `filter` keeps some flows ("host 10.0.0.1 and port 443"); `from_s` and `to_s` cut the
    capture, in seconds after its first packet; `segments` keeps the table of segments, a row a packet, in memory, or is
    a function that is given it in pieces, of which none is kept (`tcpfit.segment_file`);
    `progress(bytes_read, bytes_total)` is called now and then. `max_flows` and `max_memory` (bytes) bound what is held;
    a warning says where one was reached (docs/limits.md).

    Raises CaptureError where the capture cannot be read and InvalidParameter where an argument makes no sense.
    """
    settings = readers.Settings(vantage, filter, from_s, to_s, progress, segments, max_flows, max_memory)
    return Analysis(arguments.path("the capture", path), readers.read(path, reader, settings))


def load(directory: str | os.PathLike[str]) -> Analysis:
    """The analysis of a capture whose tables `Analysis.write_parquet` saved.

    Its `segments` is empty where they were not saved; what cannot do without them says so. Raises CaptureError where
    the folder holds no such tables, one of them lacks a column, or they are not of one analysis.
    """
    from tcpfit.parameters import PARAMETERS
    from tcpfit.ranking import RANKING, VERDICTS
    from tcpfit.readers import saved

    computed = {"parameters": PARAMETERS, "ranking": RANKING, "verdicts": VERDICTS}
    declared = {"captures": CAPTURES} | {name: polars_schema(name) for name in SCHEMAS}
    declared |= {name: pl.Schema({c.name: c.dtype for c in columns}) for name, columns in computed.items()}
    reading = saved.read(Path(arguments.path("directory", directory)), declared)
    empty = {"segments": pl.DataFrame(schema=polars_schema("segments"))}
    unsaved = "segments" not in reading.tables
    return Analysis(reading.capture["path"], replace(reading, tables=empty | reading.tables, unsaved=unsaved))


class Analysis:
    """A capture's tables. `flows`, `events` and `rounds` are there at once, the others when first asked for.

    Columns of `flows`, `events` and `rounds` are declared in `tcpfit.schema`; every other table is keyed by `flow`.
    """

    def __init__(self, path: str, reading: readers.Reading, choices: Mapping[str, Any] | None = None) -> None:
        self.path = path
        self._choices = dict(choices or {})
        self._reading = reading
        self._evidence: Evidence | None = None

    def of(self, reading: readers.Reading) -> Analysis:
        """Another reading under the same path and choices."""
        return Analysis(self.path, reading, self._choices)

    @property
    def capture(self) -> dict[str, Any]:
        """What is known of the capture itself: format, packets, what was skipped, warnings."""
        return self._reading.capture

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the capture, a sentence each."""
        return list(self.capture.get("warnings") or [])

    @property
    def flows(self) -> pl.DataFrame:
        """A row per direction that carried data, or whose SYN was sent again."""
        return self._reading.tables["flows"]

    @property
    def events(self) -> pl.DataFrame:
        """A row per event, each with its reason and the frames that prove it."""
        return self._reading.tables["events"]

    @property
    def rounds(self) -> pl.DataFrame:
        """A row per round trip of a flow."""
        return self._reading.tables["rounds"]

    @property
    def segments(self) -> pl.DataFrame:
        """A row per TCP segment of the capture, whatever flows were selected.

        Raises InvalidParameter where `analyze` was not asked for it.
        """
        if "segments" not in self._reading.tables:
            self.check_segments()
        return self._reading.tables["segments"]

    def check_segments(self) -> None:
        """Raise InvalidParameter where the segments were not asked for, or not saved with the other tables."""
        if "segments" not in self._reading.tables:
            raise InvalidParameter(f"{self.path} was analysed without its segments; use analyze(..., segments=True)")
        if self._reading.unsaved:
            raise InvalidParameter(
                f"the tables of {self.path} were saved without its segments; save them with "
                "write_parquet(..., segments=True) or tcpfit analyze --output DIR --segments"
            )

    @property
    def evidence(self) -> Evidence:
        """What estimates, ranking and diagnosis are made of; of few flows it is kept, with what they have in common."""
        from tcpfit.parameters.evidence import Evidence

        if self._evidence is not None:
            return self._evidence
        evidence = Evidence(self.flows, self.events, self.rounds)
        if self.flows.height <= FLOWS_AT_A_TIME:
            self._evidence = evidence
        return evidence

    @property
    def conversations(self) -> Evidence:
        """The evidence of all flows between the ends of these, whatever was selected: the other direction of a flow
        tells of its pauses, and ports can be used again."""
        from tcpfit.parameters.evidence import Evidence

        beside = self._reading.beside
        if not beside:
            return self.evidence
        return Evidence(*(pl.concat([getattr(self, name), beside[name]]) for name in BESIDE))

    @cached_property
    def parameters(self) -> pl.DataFrame:
        """A row per flow and parameter: value, 95 % interval, number of observations."""
        from tcpfit import parameters

        saved = self._reading.tables.get("parameters")
        return parameters.estimate_of(self.evidence) if saved is None else saved

    @cached_property
    def _ranked(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        tables = self._reading.tables
        if "ranking" in tables and "verdicts" in tables and self._choices in ({}, AS_SAVED):
            return tables["ranking"], tables["verdicts"]
        return self.rank(**self._choices)

    def rank(
        self,
        models: Sequence[str] | None = None,
        *,
        rule: str = "one-rtt",
        block: int | None = None,
        fit: Sequence[str] = (),
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Rank the models under other choices than those of `ranking` and `verdicts`; give back both tables.

        `models` are names of throughput models, NAME+PARAMETER being one with an extension (`ranking.variants`);
        `rule` says which losses are one event for p, m, q and p_to (`parameters.RULES`); a block has at least `block`
        events; `fit` names parameters as NAME.PARAMETER that are fitted on each flow's blocks, a row each.
        Raises InvalidParameter where one of them makes no sense.
        """
        from tcpfit import ranking
        from tcpfit.ranking.variants import chosen

        models, rule, block, fit = chosen(models, rule, block, fit).values()
        if self.flows.height > FLOWS_AT_A_TIME:
            parts = self.portions(sorted(self.flows["flow"].to_list()))
            tables = [part.rank(models, rule=rule, block=block, fit=fit) for part in parts]
            return pl.concat(ranked for ranked, _ in tables), pl.concat(judged for _, judged in tables)
        return ranking.rank(**self._under(models, rule, block), fits=fit)

    def by_block(self) -> pl.DataFrame:
        """A row per flow, block and model: how far the model is off there, predicted from the flow's other blocks.

        Columns are those of `ranking.BY_BLOCK`; models, rule and blocks those of `ranking`.
        """
        from tcpfit import ranking

        if self.flows.height > FLOWS_AT_A_TIME:
            parts = self.portions(sorted(self.flows["flow"].to_list()))
            return pl.concat(part.by_block() for part in parts)
        return ranking.by_block(**self._chosen())

    def blocks(self) -> Blocks:
        """The blocks of the flows' steady parts that `ranking` compares models by."""
        from tcpfit.parameters.evidence import Evidence
        from tcpfit.ranking.cut import cut

        under = self._chosen()
        evidence = Evidence(under["flows"], under["events"], under["rounds"])
        return cut(evidence, under["parameters"], under["per_block"], under["rule"]).blocks

    def _chosen(self) -> dict[str, Any]:
        """What `ranking` compares models on, fits apart."""
        models, rule, block = (self._choices.get(name) for name in ("models", "rule", "block"))
        return self._under(models, rule or "one-rtt", block)

    def _under(self, models: Sequence[str] | None, rule: str, block: int | None) -> dict[str, Any]:
        """What models are compared on under those choices: arguments of `ranking.rank` and `ranking.by_block`."""
        from tcpfit import parameters, ranking

        estimated, (flows, events) = self.parameters, parameters.under_rule(self.flows, self.events, rule)
        if rule == "tfrc":
            name = pl.col("name").cast(pl.String)
            weighed = estimated.filter(name == "p_tfrc").with_columns(name=pl.lit("p", estimated.schema["name"]))
            estimated = pl.concat([estimated.filter(name != "p"), weighed]).sort("flow", "name")
        elif rule != "one-rtt":
            changed = pl.col("name").cast(pl.String).is_in(parameters.OF_LOSS_EVENTS)
            ruled = parameters.estimate(flows, events, self.rounds).filter(changed)
            estimated = pl.concat([estimated.filter(~changed), ruled]).sort("flow", "name")
        own = flows is self.flows and events is self.events
        return {
            "flows": flows,
            "events": events,
            "rounds": self.rounds,
            "parameters": estimated,
            "models": None if models is None else ranking.by_name(models),
            "per_block": ranking.EVENTS if block is None else block,
            "rule": rule,
            "evidence": self.evidence if own else None,
        }

    def ranked_by(
        self,
        models: Sequence[str] | None = None,
        *,
        rule: str = "one-rtt",
        block: int | None = None,
        fit: Sequence[str] = (),
    ) -> Analysis:
        """The same capture, of which `ranking`, `verdicts` and every report follow these arguments of `rank`.

        Raises InvalidParameter where one of them makes no sense.
        """
        from tcpfit.ranking.variants import chosen

        return Analysis(self.path, self._reading, chosen(models, rule, block, fit))

    @property
    def ranking(self) -> pl.DataFrame:
        """A row per flow and model: prediction, log ratio with interval, rank, applicability and reasons."""
        return self._ranked[0]

    @property
    def verdicts(self) -> pl.DataFrame:
        """A row per flow: which models explain it, or why none is named."""
        return self._ranked[1]

    @cached_property
    def captures(self) -> pl.DataFrame:
        """One row: the capture. Reasons for skipped packets are a list of (reason, packets)."""
        from tcpfit.report.contract import capture_facts

        facts = capture_facts(self)
        skipped = [{"reason": reason, "packets": packets} for reason, packets in facts.pop("skipped").items()]
        parts = {key: facts.pop(key) for key in ("capture_loss", "without_data")}
        flat = {f"{key}_{part}": value for key, values in parts.items() for part, value in values.items()}
        row = facts | {"path": arguments.path_text(self.path), "skipped": skipped} | flat
        return pl.DataFrame([row], schema=CAPTURES)

    def largest(self) -> list[int]:
        """Numbers of the flows, the largest first."""
        order = self.flows.sort(["data_bytes", "flow"], descending=[True, False])
        return order["flow"].to_list()

    def select(self, flows: Sequence[int] | None = None, *, min_segments: int = 0) -> Analysis:
        """The same capture with fewer flows: those numbers, and only flows of at least so many data segments.

        What is said of a flow stays the same: `conversations` has the other flows between the same ends still.
        Raises InvalidParameter for a number that the capture does not have.
        """
        arguments.whole("min_segments", min_segments, least=0)
        keep = self.flows
        if flows is not None:
            keep = keep.filter(pl.col("flow").is_in(arguments.flow_numbers(self, flows)))
        if min_segments > 0:
            keep = keep.filter(pl.col("data_segments") >= min_segments)
        return self._only(keep)

    def _only(self, keep: pl.DataFrame) -> Analysis:
        """The same capture with these rows of its flows."""
        if keep.height == self.flows.height:
            return self
        among, known = _among(keep["flow"]), dict(self._reading.tables)
        if "parameters" in vars(self):  # a flow's do not depend on the other flows
            known["parameters"] = self.parameters
        tables = {name: table.filter(among) if "flow" in table.columns else table for name, table in known.items()}
        reading = replace(self._reading, tables=tables, beside=self._beside(keep))
        return self.of(reading)

    def _beside(self, keep: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Flows, events and rounds of the flows between the ends of those that are kept, these left out."""
        before = self._reading.beside
        tables = {name: pl.concat([getattr(self, name), *([before[name]] if before else [])]) for name in BESIDE}
        near = tables["flows"].join(both_ways(keep), on=ENDS, how="semi", maintain_order="left")["flow"]
        beside = near.filter(~near.is_in(keep["flow"].implode()))
        if beside.is_empty():
            return {}
        return {name: table.filter(pl.col("flow").is_in(beside.implode())) for name, table in tables.items()}

    def portions(self, flows: Sequence[int] | None = None) -> Iterator[Analysis]:
        """The same capture some thousand flows at a time, these in their order, by default all, the largest first.

        Raises InvalidParameter for a number that the capture does not have.
        """
        numbers = self.largest() if flows is None else arguments.flow_numbers(self, flows)
        for start in range(0, len(numbers), FLOWS_AT_A_TIME):
            some = pl.Series(numbers[start : start + FLOWS_AT_A_TIME], dtype=self.flows.schema["flow"])
            yield self._only(self.flows.filter(_among(some)))

    def around(self, flow: int) -> Analysis:
        """The same capture with only the segments between the ends of a flow, both ways; its other tables are whole.

        What looks at the packets of one flow need not look through those of all. Raises InvalidParameter for a number
        that the capture does not have.
        """
        ends = self.select([flow]).ends([flow])
        alone = copy(self)  # with what was computed
        segments = self.segments.join(ends, on=ends.columns, how="semi", maintain_order="left")
        tables = self._reading.tables | {"segments": segments}
        alone._reading = replace(self._reading, tables=tables)
        return alone

    def ends(self, flows: Sequence[int]) -> pl.DataFrame:
        """Ends between which these flows ran, either way: columns src, src_port, dst, dst_port, each pair once.

        Raises InvalidParameter for a number that the capture does not have.
        """
        return both_ways(self.flows.filter(pl.col("flow").is_in(arguments.flow_numbers(self, flows))))

    def with_segments(self, pieces: Sequence[pl.DataFrame]) -> Analysis:
        """The same capture with that table of segments, in pieces; its other tables are as they were.

        Raises InvalidParameter for what is no such piece.
        """
        pieces = arguments.several("pieces", pieces, "tables of segments")
        for piece in pieces:
            check_tables(segments=piece)
        segments = pl.concat([pl.DataFrame(schema=polars_schema("segments")), *pieces])
        tables = self._reading.tables | {"segments": segments}
        return self.of(replace(self._reading, tables=tables, unsaved=False))

    def anonymized(self, key: bytes) -> Analysis:
        """The same capture with pseudonyms for all addresses, in every table and report: prefix-preserving, keyed.

        Names of files stay. Raises InvalidParameter for a key of fewer than 16 bytes. See `tcpfit.anonymity`.
        """
        from tcpfit.anonymity import Pseudonyms

        pseudonyms = Pseudonyms(key)
        tables, beside = (
            {name: pseudonyms.in_table(table) for name, table in known.items()}
            for known in (self._reading.tables, self._reading.beside)
        )
        return self.of(replace(self._reading, tables=tables, beside=beside))

    def plot(self, kind: str, flow: int | None = None, *, theme: str = "light") -> Any:
        """A figure of a flow, by default of the largest, as an Altair chart, which a notebook shows.

        `kind` is one of `tcpfit.report.figures.KINDS`; `theme` is light or dark; `chart.save("x.svg")` writes a file.
        Raises InvalidParameter for a kind or flow that there is not, where the flow has nothing to show, where the
        kind needs `analyze(..., segments=True)`, and without the extra `plot`.
        """
        from tcpfit.report import figures

        return figures.draw(self, kind, flow, theme=theme)

    def to_dict(self) -> dict[str, Any]:
        """The document that ``tcpfit analyze --format json`` prints, for this capture."""
        from tcpfit.report.contract import document

        return document([self])

    def write_parquet(
        self, directory: str | os.PathLike[str], *, segments: bool = False, run: str | None = None
    ) -> list[Path]:
        """Write every table as Parquet into a directory, which is made if need be; give back the paths.

        `segments` writes the table of segments too; `run` is that of the `SegmentFile` that wrote it there already.
        What the directory has of another analysis goes first, that table included. A file is written under another name
        and renamed, so none is ever half there, and that of the captures, without which the directory holds no
        analysis, comes last. Raises InvalidParameter where the analysis has no segments to write, and OSError where the
        directory cannot be written to.
        """
        folder = Path(arguments.path_of_tables("directory", directory))
        run = None if run is None else arguments.characters("run", run)
        if arguments.flag("segments", segments):
            self.check_segments()
        tables = {name: getattr(self, name) for name in ((*TABLES, "segments") if segments else TABLES)}
        folder.mkdir(parents=True, exist_ok=True)
        for name in TABLES if run is not None and not segments else (*TABLES, "segments"):
            (folder / f"{name}.parquet").unlink(missing_ok=True)
        run = new_run() if run is None else run
        paths = {name: folder / f"{name}.parquet" for name in tables}
        for name in sorted(tables, key=lambda name: name == "captures"):
            write_table(tables[name], paths[name], run)
        return list(paths.values())

    def write_html(self, path: str | os.PathLike[str], *, drawn: int = 20, data: str = "") -> Path:
        """Write the report as one HTML file that loads nothing; the `drawn` largest flows are shown in full.

        `data` names a folder with the tables, to be said in the report. The analysis needs its segments. The file is
        whole or not there. Raises InvalidParameter where the extra `report` is missing, and OSError where the file
        cannot be written.
        """
        from tcpfit.report import page

        target = Path(arguments.path("path", path))
        drawn = arguments.whole("drawn", drawn, least=0)
        html = page.render(self, drawn=drawn, data=arguments.text("data", data))
        target.parent.mkdir(parents=True, exist_ok=True)
        with AtomicFile(target) as partial:
            partial.write_text(html, encoding="utf-8")
        return target

    def __repr__(self) -> str:
        return f"<Analysis of {self.path}: {self.flows.height} flows, {self.events.height} events>"

    def _repr_html_(self) -> str:
        from tcpfit.report.notebook import html

        return html(self)


def write_table(table: pl.DataFrame, target: Path, run: str | None = None) -> None:
    """Write a table as Parquet, with the version of the schema in its metadata; the file is whole or not there."""
    with AtomicFile(target) as partial:
        table.write_parquet(partial, metadata=metadata(run))


def new_run() -> str:
    """A name for what is saved together: the tables of two analyses, of one capture even, are not of one."""
    return os.urandom(16).hex()


def metadata(run: str | None = None) -> dict[str, str]:
    """What a Parquet file says of itself: the version of the schema and, of a folder's tables, the run they are of."""
    return {"tcpfit_schema": str(SCHEMA_VERSION)} | ({} if run is None else {RUN: run})


class AtomicFile:
    """A path to write to that becomes `target` when the block ends well, and is removed when it does not."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __enter__(self) -> Path:
        try:
            handle, name = tempfile.mkstemp(prefix=f".{self.target.name}.", suffix=".partial", dir=self.target.parent)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.target)) from error
        os.close(handle)
        self._partial = Path(name)
        return self._partial

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is None:
            umask = os.umask(0)
            os.umask(umask)
            try:
                self._partial.chmod(0o666 & ~umask)
                self._partial.replace(self.target)
                return
            except OSError as failed:
                error = failed
        if isinstance(error, pl.exceptions.ComputeError):
            error = unwritten(error, self.target)
        self._partial.unlink(missing_ok=True)
        # what is told names the file that was asked for
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror or str(error), str(self.target)) from error


def unwritten(error: pl.exceptions.ComputeError, path: Path) -> OSError:
    """What the system said when polars could not write to a path, asked while the partial file is still there: of a
    full disk polars says now one thing and now another."""
    try:
        full = os.statvfs(path.parent).f_bavail == 0
    except OSError:
        full = False
    if full or os.strerror(errno.ENOSPC) in str(error):
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    return OSError(errno.EIO, f"cannot be written ({' '.join(str(error).split())})", str(path))


def _among(flows: pl.Series) -> pl.Expr:
    """Whether a row is of one of these flows; numbers without a gap are told by the first and the last."""
    low, high = flows.min(), flows.max()
    if isinstance(low, int) and isinstance(high, int) and high - low + 1 == flows.n_unique():
        return pl.col("flow").is_between(low, high)
    return pl.col("flow").is_in(flows.implode())


def both_ways(rows: pl.DataFrame) -> pl.DataFrame:
    """Ends of the rows' flows or segments, either way: columns src, src_port, dst, dst_port, each pair once."""
    ahead = rows.select(ENDS)
    back = ahead.select(pl.col(ENDS[(i + 2) % 4]).alias(name) for i, name in enumerate(ENDS))
    return pl.concat([ahead, back]).unique(maintain_order=True)
