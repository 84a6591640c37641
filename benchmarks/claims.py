"""What the papers behind the models say of them, measured again on simulated senders and on recorded flows."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import numpy as np
import polars as pl
from sender import Path, Sender, Tables, half_window, simulate, transfer_times

import tcpfit
from tcpfit.models import catalogue
from tcpfit.models.bohacek_sack import fraction_in_timeout
from tcpfit.models.pftk_full import time_in_timeout
from tcpfit.models.timeouts import timeout_probability
from tcpfit.parameters import estimate
from tcpfit.parameters.evidence import Evidence
from tcpfit.parameters.window import w_max
from tcpfit.ranking.blocks import SUMS, blocks
from tcpfit.ranking.blocks import parameters as of_blocks
from tcpfit.ranking.steady import steady

Row = dict[str, Any]

TAKEN = ("p", "p_indication", "q_tilde", "q", "m", "rtt", "rto", "p_to", "w", "b", "w_max")
COLUMNS = ("source", "trace", "recovery", "losses", *TAKEN, "send_rate", "in_timeout", "events")
LONG = 1000  # data segments of a flow in a steady state
FEWEST = 15  # loss events of a flow that says something about a loss model
SHORT_COLUMNS = ("trace", "bytes", "segments", "time_s", "p", "p_indication", "rtt", "rto")


def measured(tables: Tables) -> Iterator[Row]:
    """The steady part of every flow as the models see it: parameters, segments sent per second, share of time in
    timeouts (sum of the timers over the time)."""
    flows, events, _ = tables
    evidence = Evidence(*tables)
    table = estimate(*tables)
    value = {name: table.filter(pl.col("name").cast(pl.String) == name)["value"].to_list() for name in TAKEN}
    arrays = {name: np.array([np.nan if x is None else x for x in column]) for name, column in value.items()}
    fixed = {str(name): np.full(len(evidence), np.nan) for name in table["name"].cast(pl.String).unique()} | arrays
    total = blocks(evidence, steady(evidence, w_max(evidence).value), arrays["rtt"]).of_flows()
    own = of_blocks(total, fixed)
    seconds, sent = total[:, SUMS.index("seconds")], total[:, SUMS.index("sent")]
    waited = dict(events.filter(pl.col("kind") == "timeout").group_by("flow").agg(pl.col("value").sum()).iter_rows())
    length = (flows["last_ns"] - flows["first_ns"]) / 1e9
    for i, flow in enumerate(evidence.flow.tolist()):
        yield {
            "flow": flow,
            **{name: float(own[name][i]) for name in TAKEN},
            "send_rate": float(sent[i] / seconds[i]) if seconds[i] > 0 else float("nan"),
            "in_timeout": waited.get(flow, 0.0) / length[i],
            "events": int(total[i, SUMS.index("events")]),
        }


# recorded flows


def recorded(folders: Iterable[File]) -> tuple[list[Row], list[Row]]:
    """Rows of the long flows that losses alone can have bounded, and of the short transfers, of captures with truth."""
    long: list[Row] = []
    short: list[Row] = []
    for folder in folders:
        for truth in sorted(folder.glob("*/truth.json")):
            facts = json.loads(truth.read_text())
            sender = truth.parent / facts.get("captures", {}).get("sender", "sender.pcap.gz")
            if not sender.exists():
                continue
            kind = _kind(facts)
            if kind is None:
                continue
            analysis = tcpfit.analyze(sender)
            tables = analysis.flows, analysis.events, analysis.rounds
            name = str(facts["name"])
            if kind[1] == "web":
                short += _transfers(name, tables)
                continue
            sizes = dict(analysis.flows.select("flow", "data_segments").iter_rows())
            source = "ns-2" if "simulator" in facts else "Linux"
            for row in measured(tables):
                if sizes[row.pop("flow")] >= LONG and row["events"] >= FEWEST:
                    long.append({"source": source, "trace": name, "recovery": kind[0], "losses": kind[1], **row})
    return long, short


def _kind(facts: Row) -> tuple[str, str] | None:
    """Recovery and loss process of a classical flow; None where something else than losses may bound it."""
    if "simulator" in facts:
        imposed = facts["loss_imposed"] or {}
        process = {"bern": "independent", "burst": "bursts", "round": "rest of round", "gilbert": "Gilbert"}
        found = process.get(str(imposed.get("model")))
        return (str(facts["variant"]).lower(), found) if found and not facts["reordering_imposed"] else None
    given = facts["parameters"]
    forward, system = given["fwd"], given.get("sysctl", {})
    if given.get("web"):
        return "newreno" if system.get("tcp_sack") == 0 else "sack", "web"
    if given["cc"] != "reno" or facts["group"] not in "abdm":
        return None
    names = {"burst_m": "bursts", "burst_q": "share of window", "ge_p": "Gilbert", "loss": "independent"}
    process = next((text for key, text in names.items() if forward.get(key)), None)
    return ("newreno" if system.get("tcp_sack") == 0 else "sack", process) if process else None


def _transfers(name: str, tables: Tables) -> Iterator[Row]:
    """Every connection that got all its data through, with the loss rates of all together."""
    flows, events, _ = tables
    table = estimate(*tables)
    flows = flows.filter(pl.col("vantage").cast(pl.String) == "sender")  # the others are requests
    events = events.join(flows.select("flow"), on="flow", how="semi")
    sent = float(flows["sent_segments"].sum())
    kinds = events["kind"].cast(pl.String)
    series = events.filter((kinds == "timeout") & (pl.col("segments") == 0))
    seen = table.filter(pl.col("name").cast(pl.String) == "rtt").select("flow", "value")
    rto = float(series["value"].mean() or flows["rto_s"].mean())  # type: ignore[arg-type]
    for row in flows.join(seen, on="flow").iter_rows(named=True):
        if row["acked_bytes"] < row["unique_bytes"] or row["value"] is None:
            continue
        yield {
            "trace": name,
            "bytes": row["unique_bytes"],
            "segments": -(-row["unique_bytes"] // row["smss_bytes"]),
            "time_s": (row["last_ns"] - row["first_ns"]) / 1e9,
            "p": float(flows["lost_segments"].sum()) / sent,
            "p_indication": ((kinds == "recovery").sum() + series.height) / sent,
            "rtt": float(seen["value"].median()),  # type: ignore[arg-type]
            "rto": rto,
        }


def save(path: File, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Rows as CSV, four digits."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow([f"{row[c]:.5g}" if isinstance(row[c], float) else row[c] for c in columns])


def load(path: File) -> list[Row]:
    """The rows of a CSV, numbers as numbers."""
    with path.open(newline="") as file:
        return [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(file)]


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


# predictions


def off(row: Row, model: str, p: str | None = None, **options: Any) -> float:
    """ln(predicted/observed) of a flow's sending rate; `p` names the loss rate that stands in for the model's own."""
    made = type(catalogue()[model])(**options)
    values = {}
    for parameter in made.parameters:
        column = parameter.column or parameter.name
        value = row.get(column, float("nan"))
        if parameter.name == "p" and p:
            value = row[p]
        if not np.isfinite(value):
            value = 1.0 if column == "b" else parameter.default
        values[parameter.name] = value
    if any(value is None for value in values.values()):
        return float("nan")
    return float(np.log(np.asarray(made.predict(**values)) / row["send_rate"]))


def pooled(path: Path, sender: Sender, events: float, flows: int, seed: int) -> Row:
    """The mean flow of a simulation that starts in congestion avoidance."""
    window = half_window(path.p, sender)
    sender = replace(sender, first_window=window, threshold=window)
    tables = simulate(path, sender, int(events / path.p), flows, seed)
    rows = list(measured(tables))
    names = [name for name in rows[0] if name != "flow"]
    with np.errstate(all="ignore"):
        return {name: float(np.nanmean([row[name] for row in rows])) if _any(rows, name) else np.nan for name in names}


def _any(rows: list[Row], name: str) -> bool:
    return bool(np.isfinite([row[name] for row in rows]).any())


# the claims on simulated senders

RTT, RTO = 0.075, 0.5


def bursts(flows: int = 10) -> Iterator[Row]:
    """NewReno where loss events come at a fixed rate and each takes m segments in a row (Parvez et al., Fig. 6)."""
    for p, most in ((0.0005, 20), (0.01, 10)):
        for m in sorted({1, 2, 4, 6, 8, 10, most, 15 if most > 10 else 3}):
            path = Path(p, "burst", m=m, rtt_s=RTT, rto_s=RTO)
            yield {"p": p, "m": m} | three(pooled(path, Sender("newreno"), 60, flows, m))


def bernoulli(flows: int = 10) -> Iterator[Row]:
    """NewReno under independent losses (Parvez et al., Fig. 7 and 8)."""
    for p in (0.0003, 0.001, 0.003, 0.01, 0.02, 0.05, 0.1):
        path = Path(p, rtt_s=RTT, rto_s=RTO)
        yield {"loss": p} | three(pooled(path, Sender("newreno"), 100, flows, 1))


def three(row: Row) -> Row:
    """NewReno Full and PFTK with each loss rate: ln(predicted/observed), beside the rates."""
    return {
        **{name: row[name] for name in ("p", "p_indication", "q_tilde", "m", "w", "p_to", "send_rate", "in_timeout")},
        "newreno-full": off(row, "newreno-full"),
        "pftk, events": off(row, "pftk-full", "p"),
        "pftk, indications": off(row, "pftk-full"),
        "pftk, packets": off(row, "pftk-full", "q_tilde"),
        "mathis, events": off(row, "mathis", "p"),
        "mathis, packets": off(row, "mathis", "q_tilde"),
    }


SIZES = (1, 2, 4, 7, 14, 21, 36, 57, 86, 114, 143)
"""Segments of 1433 bytes: transfers of 1 to 200 KB, as in Li and Williamson's section 4."""

TRANSFERS = 1000
"""Simulated for each size and loss rate."""

TIMES = {"hysteresis": {}, "cardwell-2000": {"handshake": False}, "sikdar-reno-latency": {"handshake": False}}


def transfers(flows: int = TRANSFERS) -> Iterator[Row]:
    """Mean time of short Reno transfers and three models of it (Li and Williamson, Fig. 3 and 4, Tables 2 and 3)."""
    made = {name: type(catalogue()[name])(**options) for name, options in TIMES.items()}
    for p in (0.01, 0.03, 0.08, 0.1):
        path = Path(p, rtt_s=0.2, rto_s=1.0, jitter=0.0, delayed_ack_s=0.1)
        for size in SIZES:
            times = transfer_times(path, Sender("reno", b=2.0, w_max=24, first_window=1), size, flows, size)
            given = {"segments": float(size), "p": p, "rtt": 0.2, "rto": 1.0, "w_max": 24.0}
            yield {"p": p, "segments": size, "time_s": float(times.mean()), "spread_s": float(times.std())} | {
                name: float(np.asarray(model.predict(**given))) for name, model in made.items()
            }


def repairs(flows: int = 300) -> Iterator[Row]:
    """Share of Reno's loss events that time out in transfers of 200 KB, and PFTK's Q at the windows they began with."""
    for p in (0.01, 0.03, 0.08, 0.1):
        path = Path(p, rtt_s=0.2, rto_s=1.0)
        _, events, _ = simulate(path, Sender("reno", b=2.0, w_max=24, first_window=1), SIZES[-1], flows, 5)
        begun = events.filter((pl.col("kind") == "loss_event") & (pl.col("flight") > 0))
        window = begun["flight"].to_numpy() + 1
        q = timeout_probability(np.full(len(window), p), window)
        yield {"p": p, "p_to": float(begun["timeout_follows"].cast(pl.Float64).to_numpy().mean()), "q": float(q.mean())}


def web(rows: list[Row]) -> Iterator[Row]:
    """Recorded short transfers pooled by size, and the same three models with the windows Linux starts with."""
    made = {name: type(catalogue()[name])(**options) for name, options in TIMES.items()}
    for trace in dict.fromkeys(row["trace"] for row in rows):
        own = sorted((row for row in rows if row["trace"] == trace), key=lambda row: row["bytes"])
        for part in np.array_split(np.arange(len(own)), 5):
            group = [own[i] for i in part]
            first = group[0]
            size = np.array([row["segments"] for row in group])
            times = np.array([row["time_s"] for row in group])
            error = times.std(ddof=1) / np.sqrt(len(times))
            row = {"trace": trace, "transfers": len(group), "kb": float(np.mean([r["bytes"] for r in group])) / 1000}
            row |= {"segments": float(size.mean()), "time_s": float(times.mean()), "error_s": float(error)}
            for name, model in made.items():
                known = {p.name: p.column or p.name for p in model.parameters}
                given = {"rtt": first["rtt"], "rto": first["rto"], "b": 1.0, "w_1": 10.0, "delayed_ack": 0.04}
                given["p"] = first["p" if known["p"] == "q_tilde" else "p_indication"]
                given = {key: value for key, value in given.items() if key in known}
                row[name] = float(np.mean(np.asarray(model.predict(segments=size, **given))))
            yield row


def in_timeout(flows: int = 10) -> Iterator[Row]:
    """Share of time a SACK sender waits for timers under independent losses (Bohacek and Shah, Fig. 2: RTT 30 ms)."""
    for p in (0.003, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1):
        path = Path(p, rtt_s=0.03, rto_s=1.0)
        rows = {name: pooled(path, sender, 150, flows, 3) for name, sender in SACKS.items()}
        q = float(np.mean([row["q_tilde"] for row in rows.values()]))
        yield {"loss": p, "q_tilde": q} | {name: row["in_timeout"] for name, row in rows.items()} | shares(q, 0.03, 1.0)


SACKS = {"sack": Sender("sack", pipe=True), "rack": Sender("rack"), "newreno": Sender("newreno")}


def shares(q_tilde: float, rtt: float, rto: float) -> Row:
    """The share of time in timeouts as bohacek-sack and PFTK have it."""
    p, r, t = (np.array([x]) for x in (q_tilde, rtt, rto))
    rate = catalogue()["bohacek-sack"].timeout_rate(p, r)  # type: ignore[attr-defined]
    return {
        "bohacek-sack": float(fraction_in_timeout(rate, p, t)[0]),
        "pftk": float(time_in_timeout(p, r, t)[0]),
    }


VERSIONS = {
    "tahoe": Sender("tahoe"),
    "reno": Sender("reno"),
    "newreno": Sender("newreno"),
    "sack, pipe": Sender("sack", pipe=True),
    "sack, RFC 8985": Sender("rack"),
}


def correlated(flows: int = 10) -> Iterator[Row]:
    """Rates of the versions under the same losses, over Tahoe's (Sikdar et al., Fig. 6)."""
    for losses in ("round", "window"):
        for p in (0.003, 0.01, 0.03, 0.05):
            rows = {
                name: pooled(Path(p, losses, rtt_s=0.1, rto_s=0.5), sender, 150, flows, 4)
                for name, sender in VERSIONS.items()
            }
            goodput = {name: row["send_rate"] * (1 - row["q_tilde"]) for name, row in rows.items()}
            over = {name: rate / goodput["tahoe"] for name, rate in goodput.items()}
            timeouts = {f"p_to {name}": row["p_to"] for name, row in rows.items()}
            yield {"losses": losses, "loss": p} | over | timeouts
