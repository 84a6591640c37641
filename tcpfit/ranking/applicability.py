"""The models' assumptions as checks on a flow: each one that fails gives a sentence with the numbers.

A check fails only on evidence. What a flow cannot show (the family of congestion control with four recoveries, SACK
without a handshake) does not fail. A model is applicable if every assumption it requires holds; the others are
reported as `weakened`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl

from tcpfit.models import Model
from tcpfit.models.cubic import mean_cubic_window, mean_friendly_window
from tcpfit.parameters.growth import LEAST
from tcpfit.ranking import bottleneck

LIMITED = 0.2
MOSTLY_LIMITED = 0.8
IDLE = 0.2
TIMEOUTS = 0.1
REORDERED = 0.1
FELT = 0.5
"""Of the reordering events: a model in which each one halves the window says little of a sender that lets more pass."""
MARKED = 0.1
SHORT = 13.0
ROUNDS = 8
"""Steady rounds before the absence of losses says something."""
CONFIDENT = 0.5
RESTART = 2.0  # segments: the window Tahoe starts again from, and one more


class Facts(NamedTuple):
    """What the checks look at, of one flow's steady part; a number that cannot be had is None."""

    rounds: float
    sent: float
    seconds: float
    idle_s: float
    limited_share: float
    loss_events: float
    indications: float
    timeouts: float
    reorder_events: float
    whole_sent: float
    sack: bool | None
    family: str
    confidence: float
    decrease: float | None
    p: float | None
    q_tilde: float | None
    m_low: float | None
    m_high: float | None
    w: float | None
    w_max: float | None
    rtt: float | None
    flatness: float | None = None
    growth: float | None = None
    standing: float | None = None
    whole_loss_events: float = 0.0
    marks: float = 0.0


NOT_RANKED = frozenset({"sikdar-tahoe", "tfrc", "sikdar-tahoe-latency", "catnip"})
"""Models that no flow is ranked by: no current system is a Tahoe, and a short flow cannot show that it is none; TFRC's
equation is pftk-approx with 4 RTT for the measured timeout; no flow shows whether routers spare segments, as CATNIP's
do.
"""

Check = Callable[[Facts], str | None]


def reno_growth(facts: Facts) -> str | None:
    """RFC 5681's growth and decrease: no BBR or Tahoe, CUBIC only in its Reno-friendly region (RFC 9438, 4.3)."""
    if facts.confidence < CONFIDENT:
        return None
    if facts.family == "bbr":
        return f"the window kept {facts.decrease or 1.0:.2f} of its size at losses, as BBR does, not the half of Reno"
    if facts.decrease is not None and facts.decrease < RESTART / LEAST:
        return (
            f"the window kept {facts.decrease:.2f} of its size at losses, as Tahoe's does that starts again from one "
            "segment, not the half of Reno"
        )
    if facts.family == "cubic" and facts.p and facts.rtt:
        p, rtt = np.asarray(facts.p), np.asarray(facts.rtt)
        cubic, reno = float(mean_cubic_window(p, rtt)), float(mean_friendly_window(p))
        if cubic > reno:
            return (
                f"the window kept {facts.decrease or 0.7:.2f} of its size at losses, as CUBIC does, and at this loss "
                f"rate and RTT CUBIC's window ({cubic:.0f} segments) is above Reno's ({reno:.0f})"
            )
    return None


def cubic_growth(facts: Facts) -> str | None:
    """CUBIC's growth and decrease (RFC 9438)."""
    if facts.confidence < CONFIDENT or facts.family not in ("reno", "bbr"):
        return None
    kept = facts.decrease or {"reno": 0.5, "bbr": 1.0}[facts.family]
    who = {"reno": "Reno", "bbr": "BBR"}[facts.family]
    return f"the window kept {kept:.2f} of its size at losses, as {who} does, not the 0.7 of CUBIC"


def no_fast_recovery(facts: Facts) -> str | None:
    """Slow start from one segment after every loss indication, as in Tahoe."""
    if facts.confidence < CONFIDENT or facts.decrease is None or facts.w is None:
        return None
    if facts.decrease * facts.w <= RESTART:
        return None
    return f"the window kept {facts.decrease:.2f} of its size at losses, where Tahoe starts again from one segment"


def loss_limited(facts: Facts) -> str | None:
    """Losses bound the rate (or let it run into the window limit now and then), not marks, the application or
    capacity.

    A sender reduces its window for a mark as for a loss (RFC 3168, 6.1.2), and no loss rate counts it.
    """
    if facts.marks > MARKED * facts.whole_loss_events:
        return (
            f"losses are not all that the sender felt: it reduced its window for {_count(facts.marks, 'window')} with "
            f"congestion marks beside {_count(facts.whole_loss_events, 'loss event')}"
        )
    if facts.loss_events == 0:
        if facts.rounds < ROUNDS and facts.whole_loss_events > 0:
            return None  # those before the steady part may have bound the rate
        return f"no loss event in {_count(facts.rounds, 'steady round')}: losses did not bound the rate"
    if facts.limited_share > MOSTLY_LIMITED:
        return f"{facts.limited_share:.0%} of the steady rounds were at the window limit: losses hardly mattered"
    return _idle(facts) or _fills_the_bottleneck(facts)


def not_window_limited(facts: Facts) -> str | None:
    """The window limit stops the growth in few rounds."""
    if facts.limited_share <= LIMITED:
        return None
    noun = "segment" if round(facts.w_max or 0) == 1 else "segments"
    limit = f" of {facts.w_max:.0f} {noun}" if facts.w_max else ""
    return f"{facts.limited_share:.0%} of the steady rounds were at the window limit{limit}"


def window_limited(facts: Facts) -> str | None:
    """A window limit was reached."""
    return None if facts.w_max else "the flow never reached a window limit"


def bulk(facts: Facts) -> str | None:
    """Always something to send, and more than slow start."""
    if facts.whole_sent < SHORT:
        sent = "1 segment was" if round(facts.whole_sent) == 1 else f"{facts.whole_sent:.0f} segments were"
        return f"only {sent} sent: slow start never ended"
    if facts.rounds == 0:
        lost = facts.whole_loss_events > 0
        return "the capture shows no steady round" if lost else "the flow never left slow start"
    return _idle(facts)


def sack(facts: Facts) -> str | None:
    """SACK in use (RFC 2018)."""
    return "SACK was not permitted" if facts.sack is False else None


def no_sack(facts: Facts) -> str | None:
    """Recovery without SACK (RFC 6582)."""
    return "SACK was in use" if facts.sack else None


def no_reordering(facts: Facts) -> str | None:
    """Reordering is rare beside loss."""
    if facts.reorder_events <= REORDERED * max(facts.loss_events, 1.0):
        return None
    return f"{_count(facts.reorder_events, 'reordering event')} beside {_count(facts.loss_events, 'loss event')}"


def reordering(facts: Facts) -> str | None:
    """Reordering, rather than loss, makes the sender react."""
    if facts.reorder_events < 2:
        return f"{_count(facts.reorder_events, 'reordering event')} in the steady part"
    if facts.loss_events >= facts.reorder_events:
        return f"{facts.loss_events:.0f} loss events outweigh {facts.reorder_events:.0f} reordering events"
    return None


def reordering_felt(facts: Facts) -> str | None:
    """Each reordering event makes the sender react; RACK and a raised threshold of duplicate ACKs let most pass.

    Recoveries and timeouts, whatever set them off, are the most that may have been reactions.
    """
    if facts.indications >= FELT * facts.reorder_events:
        return None
    felt = _count(facts.indications, "recovery or timeout", "recoveries and timeouts")
    return f"the sender let most reordering pass: {felt} beside {_count(facts.reorder_events, 'reordering event')}"


def no_timeouts(facts: Facts) -> str | None:
    """Few of the loss indications are timeouts."""
    if facts.timeouts <= TIMEOUTS * facts.indications:
        return None
    if facts.indications == 1:
        return "the only loss indication was a timeout"
    return f"{facts.timeouts:.0f} of {facts.indications:.0f} loss indications were timeouts"


def bernoulli_loss(facts: Facts) -> str | None:
    """Losses are independent: a loss event of W segments has 1 + (W - 1) q_tilde losses on average."""
    if facts.m_low is None or facts.w is None or facts.q_tilde is None:
        return None
    expected = 1 + max(facts.w - 1, 0.0) * facts.q_tilde
    if facts.m_low <= 1.5 * expected:
        return None
    return f"a loss event had at least {facts.m_low:.1f} losses on average, independent ones would make {expected:.1f}"


def correlated_loss_in_round(facts: Facts) -> str | None:
    """After the first loss of a round the rest is lost: (W + 1)/2 losses on average."""
    if facts.m_high is None or facts.w is None:
        return None
    expected = (facts.w + 1) / 2
    if facts.m_high >= 0.5 * expected:
        return None
    return f"a loss event had at most {facts.m_high:.1f} losses on average, the rest of a round makes {expected:.1f}"


CHECKS: Mapping[str, Check] = {
    "reno-growth": reno_growth,
    "cubic-growth": cubic_growth,
    "no-fast-recovery": no_fast_recovery,
    "loss-limited": loss_limited,
    "not-window-limited": not_window_limited,
    "window-limited": window_limited,
    "bulk": bulk,
    "sack": sack,
    "no-sack": no_sack,
    "no-reordering": no_reordering,
    "reordering": reordering,
    "reordering-felt": reordering_felt,
    "no-timeouts": no_timeouts,
    "bernoulli-loss": bernoulli_loss,
    "correlated-loss-in-round": correlated_loss_in_round,
}
"""Every assumption's name and its check: None, or the sentence that says why it fails."""


def check_all(facts: Facts) -> dict[str, str]:
    """The assumptions that fail on a flow, with their sentences."""
    return {name: text for name, check in CHECKS.items() if (text := check(facts)) is not None}


def table(failed: Sequence[Mapping[str, str]]) -> pl.DataFrame:
    """What `check_all` says of every flow: a column an assumption, with the sentence, null where it holds."""
    sentences = {name: [of_flow.get(name) for of_flow in failed] for name in CHECKS}
    return pl.DataFrame(sentences, schema=dict.fromkeys(CHECKS, pl.String()))


def says(model: Model) -> dict[str, pl.Expr]:
    """Whether the model applies to each flow of such a table: columns applicable, failed, weakened and reasons.

    `failed` names the assumptions that it requires and that fail, `weakened` the others; `reasons` are their sentences
    in that order, those of the others marked. An assumption that no check knows counts as holding.
    """
    known = [assumption for assumption in model.assumptions if assumption.name in CHECKS]
    return _says(tuple(a.name for a in known if a.required), tuple(a.name for a in known if not a.required))


@cache
def _says(required: tuple[str, ...], others: tuple[str, ...]) -> dict[str, pl.Expr]:
    none = pl.lit(None, pl.String)

    def those(names: tuple[str, ...]) -> pl.Expr:
        fails = [pl.when(pl.col(name).is_not_null()).then(pl.lit(name)) for name in names]
        return pl.concat_list(none, *fails).list.drop_nulls()

    marked = [pl.lit("weakened: ") + pl.col(name) for name in others]
    return {
        "applicable": pl.all_horizontal(pl.lit(True), *(pl.col(name).is_null() for name in required)),
        "failed": those(required),
        "weakened": those(others),
        "reasons": pl.concat_list(none, *required, *marked).list.drop_nulls().list.unique(maintain_order=True),
    }


def _fills_the_bottleneck(facts: Facts) -> str | None:
    if facts.flatness is None or facts.flatness < bottleneck.FLAT:
        return None
    stood, grew = facts.standing or 1.0, facts.growth or 0.0
    if stood < bottleneck.STANDING and grew < bottleneck.GROWTH:
        return None
    how = f", growing as the flight to the power of {grew:.1f}" if grew >= bottleneck.GROWTH else ""
    return (
        f"the flow filled its bottleneck: a slow round (10th percentile) had {facts.flatness:.0%} of the rate of a "
        f"fast one (90th), and the RTT stood at {stood:.1f} times its minimum{how}"
    )


def _idle(facts: Facts) -> str | None:
    whole = facts.seconds + facts.idle_s
    if whole <= 0 or facts.idle_s / whole <= IDLE:
        return None
    return f"nothing was outstanding in {facts.idle_s / whole:.0%} of the time: the sender had nothing to send"


def _count(number: float, noun: str, several: str = "") -> str:
    return f"{number:.0f} {noun if number == 1 else several or noun + 's'}"
