"""Many flows together: how far each model is off and how much that varies, which wins where, and fitted constants.

**Groups** Captures of one connection at both ends are one observation, not two: flows with the same addresses and ports
and times that overlap form a group, and everything below counts, resamples and splits groups.

**Partial pooling** The residuals y = ln(predicted/observed) of a model on the flows whose conditions it meets vary by
the doubt in each flow's parameters (s) and between flows (tau). Mean and tau are DerSimonian and Laird's, the interval
of the mean is Hartung and Knapp's, for of few groups tau is hardly known; a flow's own value is drawn towards the mean
by s^2/(s^2 + tau^2) (`pooled`). A mean near 0 with a small tau is a model that is right; a mean away from 0 with a
small tau is a wrong constant.

**Constants** ln(rate RTT) = ln c - k ln p over the flows on which `mathis` applies: k is the median slope of all pairs
of groups (Theil and Sen: one flow that fills its bottleneck does not turn the line), c of c/p^k and of c/sqrt(p) the
median of what is left; intervals from 2000 bootstraps of groups. Once over all of these flows and once over those whose
loss events seldom end in a timeout, for a timeout's silence is not in the law.

**Tree** A decision tree of depth 2 that says from a flow's conditions which model ranks first. Its accuracy is that on
groups it has not seen, beside that of always naming the model that is first most often *among the seen ones*. Needs
scikit-learn, which is imported here and nowhere else.

**Validation** tests/ranking/test_across.py; docs/across-flows.md has the figures.

**Reference** DerSimonian, Laird: Meta-analysis in clinical trials, Controlled Clinical Trials 7, 1986,
doi:10.1016/0197-2456(86)90046-2; Hartung, Knapp, Statistics in Medicine 20, 2001, doi:10.1002/sim.1009; Röver, Knapp,
Friede, BMC Medical Research Methodology 15, 2015, doi:10.1186/s12874-015-0091-1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from tcpfit import arguments
from tcpfit.exceptions import InvalidParameter, TcpfitError
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.growth import families
from tcpfit.parameters.intervals import Z95, Floats
from tcpfit.parameters.table import NAMES
from tcpfit.ranking.blocks import SUMS, blocks
from tcpfit.ranking.blocks import parameters as of_blocks
from tcpfit.ranking.steady import steady
from tcpfit.ranking.table import BASELINES
from tcpfit.schema import BOOL, F64, STR, U32, Column, check_table

SEED, DRAWS = 1986, 2000
LEAST_SE = 0.01
"""Standard error below which a residual's own doubt is not taken seriously."""
DEPTH, LEAF, FOLDS = 2, 5, 5
FEW_TIMEOUTS = 0.1
FEW = 3
"""Groups without which no mean has an interval."""
LINE = 5
"""Groups without which no constants are fitted: bootstraps of three hold a median in 3 of 4 cases."""

CONDITIONS = ("p", "m", "p_to", "rtt", "w", "limited", "reorder_share", "sack", "cubic")
"""What the tree may ask of a flow."""

RESIDUALS = (
    Column("capture", U32, "", "position of the capture"),
    Column("flow", U32, "", "number of the flow"),
    Column("group", U32, "", "flows of one connection, seen in several captures, have one number"),
    Column("model", STR, "", "name of the model"),
    Column("rank", U32, "", "rank on the flow"),
    Column("applicable", BOOL, "", "every assumption that the model requires holds"),
    Column("named", BOOL, "", "the flow's verdict names it, alone or among others"),
    Column("log_ratio", F64, "", "ln(predicted/observed) of the steady part"),
    Column("log_ratio_se", F64, "", "its standard error from the parameters' intervals"),
    Column("p", F64, "", "loss events per segment sent, of the steady part"),
    Column("m", F64, "segments", "losses per loss event"),
    Column("p_to", F64, "", "share of loss events that ended in a timeout"),
    Column("rtt", F64, "s", "mean round-trip time"),
    Column("w", F64, "segments", "mean window when a reaction began"),
    Column("limited", F64, "", "share of rounds at the window limit"),
    Column("reorder_share", F64, "", "reordering events over reordering and loss events"),
    Column("sack", F64, "", "1 where both ends permit SACK"),
    Column("cubic", F64, "", "1 where the window grows as CUBIC's"),
    Column("rate", F64, "segments/s", "acknowledged in the steady part"),
)

ACROSS = (
    Column("model", STR, "", "name of the model"),
    Column("flows", U32, "", "groups on which it applies and has a prediction"),
    Column("first", U32, "", "groups on which it ranks first"),
    Column("named", U32, "", "groups whose verdict names it"),
    Column("log_ratio", F64, "", "mean ln(predicted/observed), partially pooled"),
    Column("low", F64, "", "lower end of its 95 % interval"),
    Column("high", F64, "", "upper end"),
    Column("tau", F64, "", "standard deviation between flows, beyond the doubt in their parameters"),
    Column("within_15", F64, "", "share of groups with |log_ratio| <= 0.15"),
)

CONSTANTS = (
    Column("where", STR, "", "over which of the flows: `all`, or those with `p_to <= 0.1`"),
    Column("name", STR, "", "`c_half`: c of c/sqrt(p); `c` and `k`: of c/p^k"),
    Column("value", F64, "", "median over the groups"),
    Column("low", F64, "", "lower end of the 95 % interval, bootstrap of groups"),
    Column("high", F64, "", "upper end"),
    Column("flows", U32, "", "groups"),
    Column("residual_sd", F64, "", "standard deviation of what is left of ln(rate)"),
)


@dataclass(frozen=True)
class Tree:
    """Which model ranks first under which conditions: the rules, and how often they are right on unseen groups."""

    rules: str
    nodes: list[dict[str, Any]]
    """The same to be drawn: `flows` of each model in the node, and where it splits its `condition`, `threshold`, the
    numbers of the nodes `below` (at most the threshold) and `above`, and `missing`, which of the two takes flows that
    do not show the condition, None where all do. Without a threshold those that show it are `below`."""
    groups: int
    accuracy: float
    accuracy_se: float
    always: str
    always_accuracy: float
    difference_se: float

    @property
    def text(self) -> str:
        """What the rules are worth."""
        worth = "better than" if self.accuracy - self.always_accuracy > 2 * self.difference_se else "no better than"
        return (
            f"On groups it has not seen the tree names the first model of {self.accuracy:.0%} "
            f"(standard error {self.accuracy_se:.0%}, {self.groups} groups), {worth} always naming the commonest one "
            f"({self.always}, {self.always_accuracy:.0%})."
        )


@dataclass(frozen=True)
class Across:
    """Many flows: `models` (columns `ACROSS`, best first), `constants` (`CONSTANTS`) and `residuals` (`RESIDUALS`)."""

    residuals: pl.DataFrame
    models: pl.DataFrame
    constants: pl.DataFrame

    def tree(self) -> Tree:
        """The decision tree; raises TcpfitError where scikit-learn is missing, InvalidParameter for too few groups."""
        return tree(self.residuals)


def rank(flows: pl.DataFrame | Sequence[Any]) -> Across:
    """Rank the models over many flows: captures (each an `Analysis`), or the table that `residuals` made of some.

    Raises InvalidParameter for a table that lacks a column, and for what is neither a table nor a list of captures.
    """
    table = flows if isinstance(flows, pl.DataFrame) else residuals(flows)
    return Across(table, models(table), constants(table))


def _check(table: object) -> None:
    check_table("the table of flows", table, RESIDUALS, "tcpfit.ranking.across.residuals")


def residuals(captures: Sequence[Any]) -> pl.DataFrame:
    """A row per flow and model of the captures: its residual and the flow's conditions, columns as in `RESIDUALS`.

    Tables of several calls can be put together only where their groups are; better call it once. Raises
    InvalidParameter for what is no list of captures.
    """
    schema = pl.Schema({c.name: c.dtype for c in RESIDUALS})
    found = enumerate(_of_capture(capture) for capture in arguments.analyses(captures))
    parts = [part.with_columns(capture=pl.lit(i)) for i, part in found if part.height]
    if not parts:
        return pl.DataFrame(schema=schema)
    table = pl.concat(parts, how="vertical_relaxed")
    return _grouped(table).select(schema.names()).cast(schema).sort("capture", "flow", "rank", "model")


def _of_capture(capture: Any) -> pl.DataFrame:
    if not capture.flows.height:
        return pl.DataFrame()
    evidence = Evidence(capture.flows, capture.events, capture.rounds)
    order = pl.DataFrame({"flow": evidence.flow}, schema={"flow": pl.UInt32})
    wide = capture.parameters.with_columns(pl.col("name").cast(pl.String)).pivot(
        on="name", index="flow", values="value"
    )
    wide = order.join(wide, on="flow", how="left", maintain_order="left")
    value = {name: wide[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in NAMES}
    part = steady(evidence, value["w_max"])
    total = blocks(evidence, part, value["rtt"]).of_flows()
    s = {name: total[:, i] for i, name in enumerate(SUMS)}
    own = of_blocks(total, value)
    family = families(evidence)["family"].cast(pl.String)
    sack = evidence.flows["sack_permitted"].cast(pl.Float64).fill_null(np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        conditions = {
            **{name: own[name] for name in ("p", "m", "p_to", "rtt", "w")},
            "limited": s["limited"] / s["rounds"],
            "reorder_share": s["reorder_events"] / (s["reorder_events"] + s["events"]),
            "rate": s["acked"] / s["seconds"],
        }
    flows = evidence.flows.select("flow", "src", "src_port", "dst", "dst_port", "first_ns", "last_ns").with_columns(
        *(pl.Series(name, x).fill_nan(None) for name, x in conditions.items()),
        sack=sack.fill_nan(None),
        cubic=(family == "cubic").cast(pl.Float64),
    )
    ranked = capture.ranking.filter(~pl.col("model").is_in(list(BASELINES)) & pl.col("log_ratio").is_not_null())
    named = capture.verdicts.select("flow", verdict="models")
    found: pl.DataFrame = (
        ranked.join(named, on="flow")
        .with_columns(
            named=pl.col("verdict").list.contains(pl.col("model")),
            log_ratio_se=pl.max_horizontal((pl.col("log_ratio_high") - pl.col("log_ratio_low")) / (2 * Z95), LEAST_SE),
        )
        .select("flow", "model", "rank", "applicable", "named", "log_ratio", "log_ratio_se")
        .join(flows, on="flow")
    )
    return found


def _grouped(table: pl.DataFrame) -> pl.DataFrame:
    """Number the groups: same addresses and ports, and times that overlap."""
    ends = ["src", "src_port", "dst", "dst_port"]
    one = (
        table.unique(["capture", "flow"])
        .sort(*ends, "first_ns")
        .select("capture", "flow", *ends, "first_ns", "last_ns")
    )
    until = pl.col("last_ns").cum_max().over(ends).shift(1).over(ends)
    fresh = (until.is_null() | (pl.col("first_ns") > until)).cast(pl.UInt32)
    numbered = one.with_columns(group=fresh.cum_sum() - 1).select("capture", "flow", "group")
    return table.join(numbered, on=["capture", "flow"])


def models(table: pl.DataFrame) -> pl.DataFrame:
    """How far each model is off over the groups on which it applies; columns as in `ACROSS`, smallest |mean| first.

    Raises InvalidParameter for another table than that of `residuals`.
    """
    _check(table)
    rows = []
    usable = table.filter(pl.col("applicable") & pl.col("log_ratio").is_finite())
    by_group = usable.group_by("model", "group").agg(
        pl.col("log_ratio").mean(),
        pl.col("log_ratio_se").fill_null(LEAST_SE).mean(),
        (pl.col("rank") == 1).any().alias("first"),
        pl.col("named").any(),
    )
    for (model,), part in (
        by_group.sort("model", "group").partition_by("model", as_dict=True, maintain_order=True).items()
    ):
        y, s = part["log_ratio"].to_numpy(), part["log_ratio_se"].to_numpy()
        mean, se, tau = pooled_mean(y, s)
        doubt = _student(y, s, mean, tau) * se
        rows.append(
            {
                "model": model,
                "flows": part.height,
                "first": int(part["first"].sum()),
                "named": int(part["named"].sum()),
                "log_ratio": mean,
                "low": mean - doubt if part.height >= FEW else None,
                "high": mean + doubt if part.height >= FEW else None,
                "tau": tau if part.height >= FEW else None,
                "within_15": float(np.mean(np.abs(y) <= 0.15)),
            }
        )
    schema = pl.Schema({c.name: c.dtype for c in ACROSS})
    found = pl.DataFrame(rows, schema={k: pl.Int64() if t == U32 else t for k, t in schema.items()}).cast(schema)
    return found.sort(pl.col("first"), -pl.col("log_ratio").abs(), descending=True)


def pooled_mean(y: Floats, s: Floats) -> tuple[float, float, float]:
    """Mean, its standard error, and the standard deviation between groups (DerSimonian and Laird 1986)."""
    w = 1 / s**2
    fixed = float(np.sum(w * y) / np.sum(w))
    Q, spare = float(np.sum(w * (y - fixed) ** 2)), float(np.sum(w) - np.sum(w**2) / np.sum(w))
    tau2 = max(0.0, (Q - (len(y) - 1)) / spare) if spare > 0 else 0.0
    w = 1 / (s**2 + tau2)
    return float(np.sum(w * y) / np.sum(w)), float(1 / np.sqrt(np.sum(w))), float(np.sqrt(tau2))


def _student(y: Floats, s: Floats, mean: float, tau: float) -> float:
    """Standard errors of a pooled mean in half its 95 % interval: Student's, and more where the residuals vary more
    than their doubt and tau say (Hartung and Knapp 2001; never less: Röver, Knapp, Friede 2015)."""
    spare = max(len(y) - 1, 1)
    left = float(np.sum((y - mean) ** 2 / (s**2 + tau**2))) / spare
    return float(special.stdtrit(spare, 0.975) * np.sqrt(max(left, 1.0)))


def pooled(table: pl.DataFrame, model: str) -> pl.DataFrame:
    """Each flow's residual of a model, drawn towards the mean of all by its own doubt: columns capture, flow,
    log_ratio, pooled.

    Raises InvalidParameter for another table than that of `residuals`, and where the model applies to no flow of it.
    """
    _check(table)
    arguments.text("model", model)
    part = table.filter((pl.col("model") == model) & pl.col("applicable") & pl.col("log_ratio").is_finite())
    if not part.height:
        raise InvalidParameter(f"no flow of the table meets the conditions of {model!r}.")
    by_group = part.group_by("group").agg(pl.col("log_ratio").mean(), pl.col("log_ratio_se").fill_null(LEAST_SE).mean())
    mean, _, tau = pooled_mean(by_group["log_ratio"].to_numpy(), by_group["log_ratio_se"].to_numpy())
    own = pl.col("log_ratio_se").fill_null(LEAST_SE) ** 2
    kept = tau**2 / (tau**2 + own)
    return part.select("capture", "flow", "log_ratio", pooled=mean + kept * (pl.col("log_ratio") - mean))


def constants(table: pl.DataFrame, model: str = "mathis") -> pl.DataFrame:
    """c and k of rate = c/(RTT p^k) over the groups on which `model` applies; columns as in `CONSTANTS`, no rows where
    there are fewer than five groups.

    Raises InvalidParameter for another table than that of `residuals`.
    """
    _check(table)
    arguments.text("model", model)
    used = table.filter((pl.col("model") == model) & pl.col("applicable") & (pl.col("p") > 0) & (pl.col("rate") > 0))
    few = used.filter(pl.col("p_to") <= FEW_TIMEOUTS)
    rows = [*_constants(used, "all"), *_constants(few, f"p_to <= {FEW_TIMEOUTS:g}")]
    schema = pl.Schema({c.name: c.dtype for c in CONSTANTS})
    return pl.DataFrame(rows, schema={k: pl.Int64() if t == U32 else t for k, t in schema.items()}).cast(schema)


def _constants(used: pl.DataFrame, where: str) -> list[dict[str, Any]]:
    rate = (pl.col("rate") * pl.col("rtt")).log().mean()
    by_group = used.group_by("group").agg(x=pl.col("p").log().mean(), y=rate).sort("group")
    x, y = by_group["x"].to_numpy(), by_group["y"].to_numpy()
    if len(x) < LINE or np.ptp(x) == 0:
        return []
    found = _line(x, y)
    picks = np.random.default_rng(SEED).integers(len(x), size=(DRAWS, len(x)))
    low, high = np.percentile([_line(x[pick], y[pick]) for pick in picks if np.ptp(x[pick]) > 0], [2.5, 97.5], axis=0)
    free = float(np.std(y - np.log(found[1]) + found[2] * x))
    spread = {"c_half": float(np.std(y - np.log(found[0]) + x / 2)), "c": free, "k": free}
    return [
        {
            "where": where,
            "name": name,
            "value": found[i],
            "low": float(low[i]),
            "high": float(high[i]),
            "flows": len(x),
            "residual_sd": spread[name],
        }
        for i, name in enumerate(spread)
    ]


def _line(x: Floats, y: Floats) -> tuple[float, float, float]:
    # y = ln c - x/2, and y = ln c - k x: Theil and Sen's slope
    i, j = np.triu_indices(len(x), 1)
    apart = x[i] != x[j]
    k = -float(np.median((y[i] - y[j])[apart] / (x[i] - x[j])[apart]))
    return float(np.exp(np.median(y + x / 2))), float(np.exp(np.median(y + k * x))), k


def tree(table: pl.DataFrame) -> Tree:
    """Which model ranks first, from a flow's conditions; tested on groups that were left out.

    Raises InvalidParameter for too few groups and for another table than that of `residuals`, TcpfitError where
    scikit-learn is missing.
    """
    _check(table)
    return grow(table)


def grow(table: pl.DataFrame) -> Tree:
    """As `tree`, of any table that has the columns capture, flow, group, model, rank, applicable and `CONDITIONS`."""
    first = table.filter((pl.col("rank") == 1) & pl.col("applicable")).sort("capture", "flow")
    groups = first["group"].to_numpy()
    count = first["group"].n_unique()
    if count < 2 * LEAF:
        raise InvalidParameter(f"a tree needs {2 * LEAF} groups of flows on which some model applies, got {count}.")
    try:
        from sklearn.model_selection import GroupKFold  # type: ignore[import-untyped]
        from sklearn.tree import DecisionTreeClassifier  # type: ignore[import-untyped]
    except ImportError as error:
        raise TcpfitError("the decision tree needs scikit-learn: pip install scikit-learn") from error
    X, y = first.select(CONDITIONS).to_numpy(), first["model"].to_numpy()

    def grown() -> Any:
        return DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=SEED)

    right, plain = np.zeros(len(y)), np.zeros(len(y))
    for seen, unseen in GroupKFold(min(FOLDS, count)).split(X, y, groups):
        right[unseen] = grown().fit(X[seen], y[seen]).predict(X[unseen]) == y[unseen]
        plain[unseen] = _commonest(y[seen]) == y[unseen]
    by_group = pl.DataFrame({"group": groups, "right": right, "plain": plain}).group_by("group").mean()
    right, plain = by_group["right"].to_numpy(), by_group["plain"].to_numpy()
    root = float(np.sqrt(count))
    nodes = _nodes(grown().fit(X, y), np.asarray(X, dtype=np.float64))
    return Tree(
        _rules(nodes),
        nodes,
        count,
        float(right.mean()),
        float(right.std(ddof=1)) / root,
        str(_commonest(y)),
        float(plain.mean()),
        float((right - plain).std(ddof=1)) / root,
    )


def _nodes(grown: Any, X: Floats) -> list[dict[str, Any]]:
    inside, nodes = grown.tree_, []
    reached = grown.decision_path(X).toarray().astype(np.bool_)
    for i in range(inside.node_count):
        shares = np.round(inside.value[i, 0] * inside.n_node_samples[i]).astype(int)
        flows = {str(model): int(n) for model, n in zip(grown.classes_, shares, strict=True) if n}
        node: dict[str, Any] = {"flows": flows}
        if inside.children_left[i] >= 0:
            threshold, unknown = float(inside.threshold[i]), np.isnan(X[reached[:, i], inside.feature[i]])
            side = "below" if inside.missing_go_to_left[i] else "above"
            node |= {"condition": CONDITIONS[inside.feature[i]]}
            node |= {"threshold": threshold if np.isfinite(threshold) else None}
            node |= {"below": int(inside.children_left[i]), "above": int(inside.children_right[i])}
            node |= {"missing": side if unknown.any() else None}
        nodes.append(node)
    return nodes


def questions(node: dict[str, Any]) -> dict[str, str]:
    """What holds of the flows `below` and `above` a node that splits, in words."""
    name, threshold = node["condition"], node["threshold"]
    if threshold is None:
        return {"below": f"{name} is known", "above": f"{name} is not known"}
    found = {"below": f"{name} <= {threshold:.3g}", "above": f"{name} > {threshold:.3g}"}
    if node["missing"]:
        found[node["missing"]] += ", or not known"
    return found


def _rules(nodes: list[dict[str, Any]], at: int = 0, depth: int = 0) -> str:
    """The nodes as text, a line a branch and a line a leaf: the model that is first most often in it."""
    node, indent = nodes[at], "|   " * depth + "|--- "
    if "condition" not in node:
        return f"{indent}{max(node['flows'], key=node['flows'].__getitem__)}\n"
    asked = questions(node)
    return "".join(f"{indent}{asked[side]}\n{_rules(nodes, node[side], depth + 1)}" for side in ("below", "above"))


def _commonest(y: np.ndarray[Any, Any]) -> Any:
    names, number = np.unique(y, return_counts=True)
    return names[np.argmax(number)]
