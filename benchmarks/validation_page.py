"""docs/validation.md, from its tables."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import claims
import numpy as np
from calibration import COVERED, WORLDS, Row

import tcpfit

DESCRIBED = {
    "mathis": "one loss every 1/p segments, the window halves at once",
    "cubic": "one loss every 1/p segments, the window keeps 0.7 at once and grows by RFC 9438",
    "pftk-simple": "rest of the round lost, no timeouts",
    "pftk-approx": "rest of the round lost, timeouts, no slow start after them",
    "pftk-full": "as pftk-approx",
    "newreno-noto": "each other segment of the window lost with 5 %, a round trip a loss, no timeouts",
    "newreno-full": "the same, timeouts where a recovery loses anything",
    "bohacek-sack": "independent losses, the window halves at once, timeouts at half of the window or a lost resend",
    "sikdar-reno": "rest of the round lost, b = 2, Reno's recovery",
    "sikdar-sack": "rest of the round lost, b = 2, the first SACK's recovery",
}

LOW, HIGH = 0.93, 0.97

SAME = {"pftk-approx"}
"""Worlds whose flows are those of another one."""


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table in Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(ratio: float) -> str:
    """A log ratio as a difference in per cent."""
    return f"{100 * np.expm1(ratio):+.0f} %" if np.isfinite(ratio) else ""


def share(value: float) -> str:
    """A share in per cent, one digit where it is small."""
    return f"{100 * value:.1f}" if 0 < value < 0.0995 else f"{100 * value:.0f}"


def pooled(rows: list[Row]) -> float:
    """Share of all the flows behind the rows whose interval holds the truth."""
    flows = sum(row["flows"] for row in rows)
    return sum(row["held"] * row["flows"] for row in rows) / flows if flows else float("nan")


def held(rows: list[Row]) -> str:
    return f"{100 * pooled(rows):.1f}" if rows else ""


def of(rows: list[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def middle(values: Iterable[float]) -> float:
    return float(np.nanmedian(list(values)))


def size(values: Iterable[float]) -> float:
    """Median of the absolute values."""
    return middle(abs(value) for value in values)


def page(data: Mapping[str, list[Row]]) -> str:
    """The page."""
    parts: list[Callable[[Mapping[str, list[Row]]], str]] = [
        intervals,
        verdicts,
        bursts,
        rates,
        transfers,
        waiting,
        sacks,
    ]
    text = "\n\n".join([HEAD.format(version=tcpfit.__version__), *(part(data) for part in parts)])
    return "\n\n".join(_filled(paragraph) for paragraph in text.split("\n\n")) + "\n"


def _filled(paragraph: str) -> str:
    """A paragraph or list in lines of 118 characters; tables, figures and headings as they are."""
    if paragraph.startswith(("|", "#", "!")):
        return paragraph
    if paragraph.startswith("- "):
        items = paragraph.removeprefix("- ").split("\n- ")
        return "\n".join(textwrap.fill(f"- {' '.join(item.split())}", 118, subsequent_indent="  ") for item in items)
    return textwrap.fill(" ".join(paragraph.split()), 118, break_long_words=False, break_on_hyphens=False)


HEAD = """# Validation

Made by `make validate` with tcpfit {version}; do not edit. Numbers are in [validation/](validation/).

Two questions. On flows whose law is known, how often do intervals and verdicts hold the truth? And do the statements
hold that the models' papers make of them?

**Simulated flows.** `benchmarks/sender.py` lets thousands of senders go round by round: a window a round trip, loss
events
of a given process, the recovery of Tahoe, Reno, NewReno, the first SACK senders or a current one, timers with
back-off. It emits tcpfit's own tables, on which the same estimates and the same ranking run as on a capture. It knows
no timing within a round, no limited transmit and no needless resends, so it says what follows from the models'
assumptions, not how a kernel behaves. **Recorded flows** do that: captures at the sender of ns-2 and of Linux over an
emulated path, whose long Reno flows with at least {fewest} loss events are used here. In d-p0.5-* an event begins with
0.5 % at
each packet and takes m packets in a row, or a share q of those of the next 50 ms (RTT 50 ms, 20 Mbit/s, 60
s).""".replace("{fewest}", str(claims.FEWEST))


def intervals(data: Mapping[str, list[Row]]) -> str:
    rows = data["coverage"]
    models = [world.model for world in WORLDS if world.model not in SAME]
    long = of(rows, events=140)
    random = [world.model for world in WORLDS if world.losses != "periodic" and world.model not in SAME]
    body, cells = [], []
    for name in COVERED:
        own = [row for row in of(rows, parameter=name) if row["model"] in random or name == "b"]
        by_model = [held(of(of(long, parameter=name), model=model)) for model in models]
        by_length = [held(of(own, events=events)) for events in (30, 140, 300)]
        body.append([f"`{name}`", *by_length, *by_model])
        cells += [row for row in own if name != "b"]
    outside = []
    for name in COVERED:
        own = [row for row in of(rows, parameter=name) if row["model"] in random or name == "b"]
        value = pooled(own)
        if not LOW <= value <= HIGH:
            worst = min(own, key=lambda row: row["held"])
            outside.append(
                f"`{name}` {100 * value:.1f} % (least {100 * worst['held']:.0f} %: {worst['model']}, "
                f"{100 * worst['loss']:g} % loss, {worst['events']:.0f} events)"
            )
    verdict = (
        "Outside 93 to 97 % over all random losses: " + "; ".join(outside) + "."
        if outside
        else "All are within 93 to 97 % over all random losses."
    )
    flows = int(max(row["flows"] for row in long))
    below, above = (sum(row["held"] < LOW for row in cells), sum(row["held"] > HIGH for row in cells))
    common = pooled(cells)
    by_chance = [len(cells) * _beyond(gap, flows) for gap in (common - LOW, HIGH - common)]
    spread = float(np.std([row["held"] for row in cells]))
    worst = sorted(cells, key=lambda row: row["held"])[:3]
    least = "; ".join(
        f"`{row['parameter']}` {100 * row['held']:.1f} ({row['model']}, {100 * row['loss']:g} %, {row['events']:.0f})"
        for row in worst
    )
    return f"""## Intervals

Per cent of simulated flows whose 95 % interval holds the truth: what was programmed, or for rates and means the one of
all flows together. First by the loss events of a flow, over all models with random losses; then by the model whose
assumptions made the flow, 140 events, {flows} flows at each of three loss rates (0.3, 1 and 3 %). Empty where the flows
have no such parameter, or where no chance touches it; pftk-approx has the flows of pftk-full. The flows of 30 and 300
events are those at 1 % loss. Chance moves a cell by {_chance(flows * 3)}, in the first three columns by
{_chance(flows * len(random))}, {_chance(flows * 3 * len(random))} and {_chance(flows * len(random))}.

{table(["", *("30 events", "140", "300"), *models], body)}

{verdict} Where losses are periodic no interval of a loss rate can miss: it is made for chance that is not there. Not
simulated: `p_tfrc`, runs of losses and the reordering parameters; [Coverage](coverage.md) has more on `p` and
`q_tilde`.

**Cell by cell**, a parameter of one model at one loss rate and length: of {len(cells)} cells of {flows} flows each
{below} are below 93 % and {above} above 97 %. Were it {100 * common:.1f} % everywhere, chance (standard error
{_chance(flows)}) would put {by_chance[0]:.0f} and {by_chance[1]:.0f} there; the cells' standard deviation is
{100 * spread:.1f}. Least: {least}.

One is known not to keep what it promises. Where a flow has only a few timeouts, or none, `p_to` cannot tell that they
come in pairs, the first loss of a recovery that fails and the lost resend (bohacek-sack at 1 %: 3.5 of 140 events). Of
`b` no chance touches the models' flows, in which every window grows alike: its row is of flows in which a window grows
by a segment with probability 1/b a round. Where mathis' one loss in 333 segments comes like a clock, windows repeat
(29, 29, 28 and 30 segments, or another such cycle), and a flow's `w` is that of its own cycle, which differs from the
mean of all flows by a thousandth: no interval of a flow can know of that."""


def _beyond(gap: float, flows: float) -> float:
    """Chance that a share of about 95 % of that many flows is more than the gap away, on one side."""
    return 0.5 * math.erfc(gap / (0.95 * 0.05 / flows) ** 0.5 / math.sqrt(2))


def _chance(flows: float) -> str:
    """Standard error, in per cent, of a share of 95 % of that many flows."""
    return f"{100 * (0.95 * 0.05 / flows) ** 0.5:.1f}"


def verdicts(data: Mapping[str, list[Row]]) -> str:
    body = []
    for world in WORLDS:
        for row in of(data["verdicts"], model=world.model):
            body.append(
                [
                    world.model,
                    f"{100 * row['loss']:g} %",
                    share(row["named"]),
                    share(row["wrong"]),
                    share(row["none"]),
                    f"{row['set']:.1f}",
                    row["instead"],
                    percent(row["bias"]),
                    percent(row["bias_programmed"]),
                ]
            )
    rows = data["verdicts"]
    random = [world.model for world in WORLDS if world.losses != "periodic"]
    kept = [row for row in rows if row["model"] in random]
    missed = sorted((row for row in kept if row["named"] < 0.95), key=lambda row: row["named"])
    which = "; ".join(f"{row['model']} at {100 * row['loss']:g} % loss {share(row['named'])} %" for row in missed)
    what = "\n".join(f"- {world.model}: {DESCRIBED[world.model]}." for world in WORLDS)
    return f"""## Verdicts

Flows of 140 loss events, made by each model's own assumptions:

{what}

*Named*: per cent of the flows whose verdict names the model, alone or among those the blocks cannot tell apart.
*Wrong*: one other model alone is called the explanation. *None*: no model is. *Set*: models named on average.
*Instead*: what leads most often where it is missing. *Off*: predicted over observed rate of all flows together, with
the measured loss rate and with the one that was programmed.

{table(["model", "loss", "named", "wrong", "none", "set", "instead", "off", "off, programmed p"], body)}

Over the models with random losses it is named in {share(float(np.mean([row["named"] for row in kept])))} % of the
flows{f"; less than 95 %: {which}" if missed else ""}. A model that misses flows made by its own assumptions does so for
these reasons:

- **Its p is not the p that is counted.** PFTK's p is the chance of a segment that follows no loss of its round; per
  segment sent, as the paper measured it and as `p_indication` is, it is smaller by 1 + p (W - 1), since the segments
  behind a loss are sent too. The two last columns differ by that. Sikdar's is the same chance and the frequency of
  rounds with losses (section II), loss events: a fast recovery and the timeout that it ends in are one, where
  `p_indication` counts two, and fed with that sikdar-reno was 33 % too low on its own flows at 0.3 %.
- **What it looks like.** Reno halves its window for every lost segment. After two or three halvings in windows of ten
  it is as small as Tahoe's, which starts again from one segment, and the check of `reno-growth` takes some of
  sikdar-reno's flows for a Tahoe's.
- **Means of products.** The formulas put the mean window where the mean of a function of it belongs. At small windows
  (3 % loss) that, and segments being whole, is most of what is left.
- **Periodic losses leave no chance.** Blocks are then so alike that a per cent between two formulas decides: mathis
  and cubic lose to whichever happens to be nearer. A flow in which nothing varies cannot say that a model is right
  within a few per cent. So it is between near twins: pftk-approx loses to pftk-full, whose flows its own are, by one
  per cent of the rate, since paired differences make even that certain."""


def bursts(data: Mapping[str, list[Row]]) -> str:
    body = []
    for row in data["bursts"]:
        body.append([f"{100 * row['p']:.2g} %", f"{row['m']:.1f}", *_offs(row)])
    recorded = [row for row in data["flows"] if row["recovery"] == "newreno"]
    recorded.sort(key=lambda row: (row["source"], row["losses"], row["m"]))
    seen = [
        [row["source"], row["trace"], f"{100 * row['p']:.2g} %", f"{row['m']:.1f}", *_offs(claims.three(row))]
        for row in recorded
    ]
    made = [claims.three(row) for row in recorded if row["in_timeout"] < 0.5]
    low, high = ([row for row in data["bursts"] if (row["p"] < 0.003) is few] for few in (True, False))
    last = max(high, key=lambda row: row["m"])
    lone, many = ([row for row in recorded if (row["m"] >= 2) is more] for more in (False, True))

    def spread(rows: list[Row], name: str) -> str:
        return f"{size(claims.three(row)[name] for row in rows if row['in_timeout'] < 0.5):.2f}"

    linux = [claims.three(row)["newreno-full"] for row in recorded if row["source"] == "Linux" and row["m"] < 2]
    return f"""## NewReno Full and PFTK in bursts

Parvez et al. (Fig. 6): where loss events come at a fixed rate and each takes m segments, throughput falls as m grows,
PFTK
given the rate of events does not follow, NewReno Full does; given the packet loss rate PFTK is worse still.

![Error over losses per event](validation/bursts.svg)

Simulated NewReno, RTT {1000 * claims.RTT:.0f} ms, timer {claims.RTO:g} s; predicted over observed:

{table(["p", "m", *OFFS.values()], body)}

**As the paper says**: at 1 % and {last["m"]:.0f} losses an event NewReno Full is {percent(last["newreno-full"])} off,
PFTK
with the event rate {percent(last["pftk, events"])}, with the packet loss rate {percent(last["pftk, packets"])}. At
0.05 % the
same, over more losses: median errors {size(row["newreno-full"] for row in low):.2f},
{size(row["pftk, events"] for row in low):.2f}
and {size(row["pftk, packets"] for row in low):.2f} (|ln|).

Recorded NewReno flows:

{table(["source", "flow", "p", "m", *OFFS.values()], seen)}

**Not as the paper says** of single losses: on Linux NewReno Full is {percent(middle(linux))} in the median where
losses are
independent, and PFTK with b = 1 as measured is nearer on {_nearer(lone)} of {len(lone)} flows with m < 2 and on
{_nearer(many)} of
{len(many)} with more. Median |ln| is {spread(lone, "newreno-full")} against {spread(lone, "pftk, events")} with m < 2,
and
{spread(many, "newreno-full")} against {spread(many, "pftk, events")} with more; with the packet loss rate PFTK has
{spread(lone, "pftk, packets")} and {spread(many, "pftk, packets")} ({len(made)} flows that spend less than half of
their time
in timeouts). The paper takes every loss in a recovery for a timeout (eq 23); Linux repairs most of them. Its advantage
shows where timeouts are as frequent as it thinks: bursts of four in a window
of twenty, and ns-2. In bursts of eight the resends fall into the same burst, since the path drops packets in a row and
not a share of a window; the timer backs off several times and no model, which all have one loss a resend, is near."""


OFFS = {
    "newreno-full": "NewReno Full",
    "pftk, events": "PFTK, events",
    "pftk, indications": "PFTK, indications",
    "pftk, packets": "PFTK, packets",
}


def _offs(row: Row) -> list[str]:
    return [percent(row[name]) for name in OFFS]


def _nearer(rows: list[Row]) -> int:
    """Flows on which PFTK with the rate of loss events is nearer than NewReno Full."""
    made = [claims.three(row) for row in rows]
    return sum(abs(row["pftk, events"]) < abs(row["newreno-full"]) for row in made)


def rates(data: Mapping[str, list[Row]]) -> str:
    body = [
        [
            f"{100 * row['loss']:g} %",
            *(f"{100 * row[name]:.2g} %" for name in ("q_tilde", "p", "p_indication")),
            f"{row['m']:.2f}",
            *_offs(row),
            percent(row["mathis, events"]),
            percent(row["mathis, packets"]),
        ]
        for row in data["bernoulli"]
    ]
    kinds: list[list[Any]] = []
    groups = {"m < 1.5": (0.0, 1.5), "1.5 to 4": (1.5, 4.0), "4 and more": (4.0, np.inf)}
    for text, (least, most) in groups.items():
        rows = [row for row in data["flows"] if least <= row["m"] < most and row["in_timeout"] < 0.5]
        made = [claims.three(row) for row in rows]
        names = ("pftk, events", "pftk, indications", "pftk, packets", "mathis, events", "mathis, packets")
        cells = [f"{percent(middle(row[n] for row in made))} ({size(row[n] for row in made):.2f})" for n in names]
        kinds.append([text, len(rows), f"{middle(r['q_tilde'] / r['p'] for r in rows):.1f}", *cells])
    return f"""## Which loss rate is p

Parvez et al. (Fig. 8): even independent losses are fewer events than packets, the more so the higher the rate; a model
of
events given the packet loss rate predicts too little, and PFTK's neglect of timeouts may hide that.

![Error over the loss rate](validation/rates.svg)

Simulated NewReno under independent losses:

{
        table(
            ["loss", "q_tilde", "p", "p_indication", "m", *OFFS.values(), "mathis, events", "mathis, packets"],
            body,
        )
    }

Recorded flows, all recoveries, by losses per event: median off, and median |ln|:

{
        table(
            [
                "m",
                "flows",
                "q_tilde/p",
                "PFTK, events",
                "PFTK, indications",
                "PFTK, packets",
                "mathis, events",
                "mathis, packets",
            ],
            kinds,
        )
    }

**As the paper says**: the wrong rate costs little with single losses and more than anything else with bursts. Events
and
indications are the same rate but where timeouts follow a recovery. Two errors do cancel: where timeouts matter,
simulated
at 5 % and more, PFTK given packets is nearer than given events. mathis, which has no timeouts, is far off there, and
on the
recorded flows is not: Linux times out much less than the simulated sender, which has no limited transmit."""


def transfers(data: Mapping[str, list[Row]]) -> str:
    rows = data["transfers"]
    body = []
    for name in claims.TIMES:
        line: list[Any] = [name]
        for low, high in ((0, 37), (37, 1000)):
            for p in (0.01, 0.03, 0.08, 0.1):
                own = [row for row in of(rows, p=p) if low < row["segments"] < high]
                squares = np.mean([(row[name] - row["time_s"]) ** 2 for row in own])
                off = float(np.mean([abs(row[name] / row["time_s"] - 1) for row in own]))
                line.append(f"{squares:.2g} ({share(off)} %)")
        body.append(line)
    head = ["", *(f"to 50 KB, {p} %" for p in (1, 3, 8, 10)), *(f"50 to 200 KB, {p} %" for p in (1, 3, 8, 10))]
    seen = [
        [
            row["trace"],
            int(row["transfers"]),
            f"{row['kb']:.1f}",
            f"{row['time_s']:.3f} ± {row['error_s']:.3f}",
            *(percent(float(np.log(row[name] / row["time_s"]))) for name in claims.TIMES),
        ]
        for row in data["web"]
    ]

    def wins(rows: list[Row]) -> str:
        best = [min(claims.TIMES, key=lambda name: abs(np.log(row[name] / row["time_s"]))) for row in rows]
        return ", ".join(f"{name} {best.count(name)}" for name in claims.TIMES)

    bias = {name: percent(middle(np.log(r[name] / r["time_s"]) for r in data["web"])) for name in claims.TIMES}
    return f"""## Short transfers

Li and Williamson (Tables 2 and 3): for transfers of 1 to 200 KB the hysteresis model is nearer than Cardwell et al. and
Sikdar et al. at every loss rate; at 10 % all three say too much for long ones. Their numbers are mean squared errors
in s²:
Sikdar 0.15, 0.41, 0.51, 1.06, Cardwell 0.17, 0.44, 0.10, 0.15, hysteresis 0.03, 0.05, 0.05, 0.08 at 1, 3, 8 and 10 %
up to
50 KB.

![Error over the size of the transfer](validation/transfers.svg)

Simulated Reno, the paper's setting (RTT 200 ms, first timer 1 s, window limit 24, b = 2, delayed ACK 100 ms),
independent
losses, {claims.TRANSFERS} transfers a size: mean squared error in s² (mean relative error):

{table(head, body)}

**Not as the paper says**: nearest of the {len(rows)} means are {wins(rows)}. The hysteresis model is off by
{_late(rows, 0.01)} at 1 % loss (the middle of all sizes), {_late(rows, 0.03)} at 3 %, {_late(rows, 0.08)} at 8 % and
{_late(rows, 0.1)} at 10 %; Cardwell's {_late(rows, 0.1, "cardwell-2000")} at 10 %. The cause is the one that the paper
gives for long transfers at 10 %: its coin Q is PFTK's, for senders that lose the rest of
a round. At the windows of the simulated losses Q is {_coins(data, "q")} at 1, 3, 8 and 10 % loss, and
{_coins(data, "p_to")} of them
time out; a timeout restarts from one segment. The paper's own simulations are not printed, so whether ns-2 timed out
more
often than this sender is open.
Sikdar's model is too slow for long transfers at low loss: its windows grow by a segment every second round.

Recorded short connections (Linux, w_1 = 10, b = 1; the first five rows are CUBIC with SACK), in fifths by size: mean
time with its standard error, predicted
over
observed with the loss rates of all connections together:

{table(["", "transfers", "KB", "s", *claims.TIMES], seen)}

Here nearest are {wins(data["web"])}; the medians are {", ".join(f"{name} {value}" for name, value in bias.items())}.
The
formulas are of a window that grows all the time: of a transfer smaller than the first window they count less than the
one
round trip that it takes, which a first window of one segment hid. Sikdar's model has no first window to set and takes
one
segment. The larger transfers repeat what was simulated: the hysteresis model takes too long, Cardwell's is nearer."""


def _coins(data: Mapping[str, list[Row]], name: str) -> str:
    """Shares of the rows on repairs, as text."""
    return ", ".join(f"{row[name]:.2f}" for row in data["repairs"])


def _late(rows: list[Row], p: float, name: str = "hysteresis") -> str:
    """Median of a model's time over the simulated one."""
    return percent(middle(float(np.log(row[name] / row["time_s"])) for row in of(rows, p=p)))


def waiting(data: Mapping[str, list[Row]]) -> str:
    body = [
        [
            f"{100 * row['loss']:g} %",
            *(share(row[name]) for name in ("sack", "rack", "newreno", "bohacek-sack", "pftk")),
        ]
        for row in data["timeouts"]
    ]
    rows = [row for row in data["flows"] if row["recovery"] == "sack"]
    seen = []
    for row in sorted(rows, key=lambda row: (row["source"], row["losses"], row["q_tilde"])):
        made = claims.shares(row["q_tilde"], row["rtt"], row["rto"])
        seen.append(
            [
                row["source"],
                row["trace"],
                row["losses"],
                f"{100 * row['q_tilde']:.2g} %",
                share(row["in_timeout"]),
                share(made["bohacek-sack"]),
                share(made["pftk"]),
            ]
        )
    one = of(data["timeouts"], loss=0.01)[0]
    linux = [row for row in rows if row["source"] == "Linux" and row["losses"] == "independent"]
    most = max(linux, key=lambda row: row["q_tilde"])
    own = claims.shares(most["q_tilde"], most["rtt"], most["rto"])
    return f"""## Time in timeouts of a SACK sender

Bohacek and Shah (Fig. 2): with independent losses at 1 %, RTT 30 ms and a timer of 1 s a SACK sender is in timeout for
5 % of
the time; PFTK says 43 %.

![Share of time in timeouts](validation/timeouts.svg)

Simulated, per cent of the time; *SACK* times out at half of the window or a lost resend, *RFC 8985* sends lost resends
again:

{table(["loss", "SACK", "RFC 8985", "NewReno", "bohacek-sack", "PFTK"], body)}

**As the paper says**: at 1 % it is {share(one["sack"])} %, bohacek-sack says {share(one["bohacek-sack"])} %, PFTK
{share(one["pftk"])} %. At 8 % and more all agree, since windows are then too small for three duplicate ACKs.

Recorded SACK flows, with each flow's own RTT and timer:

{table(["source", "flow", "losses", "q_tilde", "in timeouts", "bohacek-sack", "PFTK"], seen)}

**Today it is less still**: a Linux sender under {100 * most["q_tilde"]:.2g} % independent losses waits
{share(most["in_timeout"])} %
of the time where bohacek-sack says {share(own["bohacek-sack"])} % and PFTK {share(own["pftk"])} %. It needs no three
duplicate ACKs
(early retransmit, RFC 8985's timer) and sends lost resends again, so both sources of timeouts that the model has are
gone. The rate that bohacek-sack
predicts is {percent(claims.off(most, "bohacek-sack"))} off there, and
{percent(middle(claims.off(row, "bohacek-sack") for row in linux))}
in the median of the {len(linux)} Linux flows with independent losses; with bursts it is far too low, since its p is
that of packets."""


def sacks(data: Mapping[str, list[Row]]) -> str:
    names = list(claims.VERSIONS)
    body = [
        [
            "rest of round" if row["losses"] == "round" else "independent",
            f"{100 * row['loss']:g} %",
            *(f"{row[name]:.2f}" for name in names),
            *(share(row[f"p_to {name}"]) for name in ("sack, pipe", "sack, RFC 8985")),
        ]
        for row in data["correlated"]
    ]
    wanted = ("share of window", "rest of round")
    rows = [row for row in data["flows"] if row["losses"] in wanted]
    seen = [
        [
            row["source"],
            row["trace"],
            row["recovery"],
            f"{row['w']:.0f}",
            f"{row['m']:.1f}",
            share(row["q"]),
            share(row["p_to"]),
            percent(claims.off(row, "sikdar-sack") if row["recovery"] == "sack" else float("nan")),
            percent(claims.off(row, "pftk-full")),
        ]
        for row in sorted(rows, key=lambda row: (row["source"], row["q"]))
    ]
    correlated = of(data["correlated"], losses="round")
    heavy = [row for row in rows if row["source"] == "Linux" and row["q"] > 0.5]
    least, most = (f(row["p_to"] for row in heavy) for f in (min, max))
    return f"""## SACK where losses are correlated

Sikdar et al. (section V): where the rest of a round is lost, over half of the window goes in half of the events, SACK
times
out and Tahoe is faster; where losses are independent SACK is the fastest and Tahoe the slowest.

![Goodput over Tahoe's](validation/correlated.svg)

Simulated, RTT 100 ms, timer 0.5 s: goodput over Tahoe's, and per cent of loss events that end in a timeout. *Pipe* is
the
rule of the first SACK senders; Tahoe is spared its needless resends, which flatters it.

{table(["losses", "loss", *names, "p_to, pipe", "p_to, RFC 8985"], body)}

**As the paper says, but little of it**: with the rest of the round lost the goodput of the first SACK is
{min(row["sack, pipe"] for row in correlated):.2f} to {max(row["sack, pipe"] for row in correlated):.2f} of Tahoe's,
less at low
loss, and Reno is the slowest. A sender that resends what is missing, whatever share that is, has
{min(row["sack, RFC 8985"] for row in correlated):.2f} to {max(row["sack, RFC 8985"] for row in correlated):.2f} of it.

Recorded flows that lose a share `q` of the window or the rest of a round; W in segments, q and p_to in per cent:

{table(["source", "flow", "recovery", "W", "m", "q", "p_to", "sikdar-sack", "pftk-full"], seen)}

**On Linux it no longer holds**: of events that take more than half of the other segments of the window, {share(least)}
to
{share(most)} % end in a timeout, where the pipe rule would make it nearly all. ns-2's SACK flow, with windows of six,
times
out in most. sikdar-sack is far too low on the former for that reason, and because its window grows by half a segment a
round."""
