"""All that a corpus says as a whole, computed from its data set without reading a capture."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tcpfit import arguments
from tcpfit.corpus.summary.captures import captures
from tcpfit.corpus.summary.contrast import SIDE, contrast
from tcpfit.corpus.summary.fits import fits, ranked
from tcpfit.corpus.summary.flows import connections, flows
from tcpfit.corpus.summary.limits import limits
from tcpfit.corpus.summary.loss_law import loss_law
from tcpfit.corpus.summary.spread import parameters, prevalence
from tcpfit.corpus.summary.winners import winners
from tcpfit.corpus.summary.worst import worst
from tcpfit.exceptions import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpfit.corpus.dataset import Corpus


@dataclass(frozen=True)
class Overview:
    """A corpus as a whole. Shares and counts of flows count each flow once, whichever captures saw it."""

    folder: str
    captures: dict[str, Any]
    flows: dict[str, Any]
    limits: list[dict[str, Any]]
    verdicts: dict[str, float]
    models: list[dict[str, Any]]
    loss_law: dict[str, Any]
    winners: dict[str, Any]
    parameters: list[dict[str, Any]]
    prevalence: list[dict[str, Any]]
    worst: list[dict[str, Any]]
    cost_unknown: dict[str, float]
    contrast: dict[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        """As the JSON has it."""
        return asdict(self)


def overview(corpus: Corpus, *, by: str | None = None, beside: Sequence[Corpus] = (), most: int = 20) -> Overview:
    """What a data set says; of `worst` flows the first `most`.

    `by` names a label whose values are compared. `beside` are data sets that are compared with this one, which is then
    all that the other parts are about. Raises InvalidParameter for a label that no capture has, or none with
    flows, for both at once, and for other arguments that make no sense.
    """
    from tcpfit.corpus.dataset import Corpus

    for each in [corpus, *arguments.several("beside", beside, "data sets")]:
        arguments.instance("a data set", each, Corpus, "a Corpus, which tcpfit.corpus.open gives")
    if by is not None:
        arguments.text("by", by)
    most = arguments.whole("most", most, least=0)
    if by is not None and beside:
        raise InvalidParameter("either one corpus is compared by a label, or several corpora are compared")
    table = flows(corpus)
    models = ranked(corpus, table)
    dearest, unknown = worst(corpus, table, most)
    return Overview(
        folder=str(corpus.folder),
        captures=captures(corpus),
        flows=_totals(table),
        limits=limits(corpus, table),
        verdicts=_verdicts(table),
        models=fits(models),
        loss_law=loss_law(table),
        winners=winners(models),
        parameters=parameters(table),
        prevalence=prevalence(table),
        worst=dearest,
        cost_unknown=unknown,
        contrast=_contrast(corpus, table, by, beside),
    )


def _verdicts(table: pl.DataFrame) -> dict[str, float]:
    flows = table.drop_nulls("state").group_by("state", maintain_order=True).agg(pl.col("weight").sum())
    return dict(flows.sort("weight", "state", descending=[True, False]).iter_rows())


def _totals(table: pl.DataFrame) -> dict[str, Any]:
    goodput = table.filter(pl.col("goodput_bps").is_finite())
    return {
        "flows": table.height,
        "different": float(table["weight"].sum()),
        "connections": connections(table),
        "clusters": table["cluster"].n_unique(),
        "data_bytes": float((table["data_bytes"] * table["weight"]).sum()),
        "seconds": float((table["transfer_time_s"] * table["weight"]).sum()),
        "goodput_bps": {str(q): goodput["goodput_bps"].quantile(q) for q in (0.05, 0.25, 0.5, 0.75, 0.95)},
    }


def _contrast(corpus: Corpus, table: pl.DataFrame, by: str | None, beside: Sequence[Corpus]) -> dict[str, Any] | None:
    if by is not None:
        labels = corpus.labels.filter(pl.col("name") == by).select("capture", "value").unique().collect()
        if not labels.height:
            known = ", ".join(corpus.labels.select("name").unique().sort("name").collect()["name"]) or "none"
            raise InvalidParameter(f"no capture has the label {by!r}; labels are: {known}")
        twice = labels.group_by("capture").len().filter(pl.col("len") > 1)
        some = labels.join(twice, on="capture", how="anti").rename({"value": SIDE})  # copies with two values tell none
        labelled = table.join(some, on="capture", maintain_order="left")
        if not labelled.height:
            raise InvalidParameter(
                f"no capture with one value of the label {by!r} has a flow; label captures with data"
            )
        return contrast(labelled, by)
    if beside:
        sides = [corpus, *beside]
        names = _names([each.folder.name for each in sides])
        parts = [table, *(flows(each) for each in beside)]
        first = 0
        numbered = []
        for name, part in zip(names, parts, strict=True):
            numbered.append(part.with_columns(pl.col("cluster") + first, pl.lit(name).alias(SIDE)))
            first += int(part["cluster"].max() or 0) + 1  # type: ignore[arg-type]
        every = pl.concat(numbered)
        if not every.height:
            raise InvalidParameter("none of the data sets has a flow to compare; analyse captures with data")
        return contrast(every, "corpus")
    return None


def _names(given: list[str]) -> list[str]:
    # folders of the same name are numbered; the order of the values is that of the corpora
    width = len(str(len(given)))
    return (
        given
        if len(set(given)) == len(given) and given == sorted(given)
        else [f"{number:0{width}} {name}" for number, name in enumerate(given, 1)]
    )
