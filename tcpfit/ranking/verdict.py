"""The verdict on a flow: explained, undecided, insufficient or none_applies, and a sentence with the numbers.

Before all else `insufficient`: most of the flow's data is in the capture twice, or it missed more than 1 %, so that
what is made of its losses, or of their absence, may be the capture's doing. `none_applies`: no model's assumptions
hold, or the best of those whose do misses the observed rate by more than a quarter beyond the doubt in its parameters.
`insufficient`: fewer than 8 steady rounds and no model that applies, fewer than 8 blocks of 4 events, or no model that
applies has a score. `undecided`: the blocks cannot tell the best model from others (difference within two standard
errors, or 5 % of the rate), or one without a score, which nothing is known against, is as near to the rate of the
whole; or one is left, but no other was compared with it, or it misses the rate by more than 5 % beyond the doubt in its
parameters. `explained`: one is left, and is right about the rate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tcpfit.ranking.applicability import ROUNDS
from tcpfit.ranking.blocks import ENOUGH, EVENTS
from tcpfit.ranking.comparison import SAME

NEAR = math.log(1.25)

WEAKENED = "weakened: "
"""Before the reasons that do not keep a model from applying."""


class Candidate(NamedTuple):
    """A model as the verdict sees it, in the order of the ranking; `as_good` as the best: `tied` with it by the blocks,
    or of the same rate."""

    name: str
    applicable: bool
    as_good: bool
    tied: bool
    log_ratio: float | None
    low: float | None
    high: float | None
    probability_best: float | None
    score: float | None
    reasons: Sequence[str]


CAPTURE_LOSS = 0.01
"""Share of a flow's data segments missed by the capture above which nothing is said that rests on losses."""


@dataclass(frozen=True)
class Verdict:
    """State, models (best first) and text."""

    state: str
    models: list[str]
    text: str


def verdict(
    candidates: Sequence[Candidate],
    blocks: int,
    events: float,
    rounds: float,
    baseline: float | None,
    missed: float = 0.0,
    per_block: int = EVENTS,
) -> Verdict:
    """Judge a flow from its ranked models, its numbers of blocks, events and steady rounds, the score of the mean of
    the other blocks, the share of its data segments that the capture missed, and the fewest events of a block."""
    predicted = [c for c in candidates if c.log_ratio is not None]
    fit = [c for c in predicted if c.applicable]
    told = too_little(bool(fit), rounds, missed)
    if told is not None:
        return told
    if not fit:
        return _none(candidates, predicted)
    best = fit[0]
    if blocks < ENOUGH:
        whole = blocks if events >= per_block else 0
        return Verdict(
            "insufficient",
            [],
            f"The steady part has {_events(events)}, enough for {whole} block{'' if whole == 1 else 's'} of "
            f"{per_block}; a comparison needs {ENOUGH}. Nearest is {best.name}, {_off(best)}.",
        )
    if best.score is None:
        return Verdict(
            "insufficient",
            [],
            f"The steady part has {blocks} blocks, but no model that applies can be compared by them: none predicts "
            f"each from what the others show. Nearest is {best.name}, {_off(best)}.",
        )
    open_ = _open(best, fit)
    if _misses(best) and not open_:
        return Verdict(
            "none_applies",
            [],
            f"The models whose assumptions hold miss the rate: the best of them, {best.name}, is {_off(best)}"
            f"{_weak(best)}.",
        )
    equals = [c for c in fit if c.as_good]
    beside = _beside(best, baseline)
    if len(equals) == 1 and not open_:
        if len(candidates) == 1:
            text = f"No other model was compared with {best.name}: it is {_off(best)}{beside}{_weak(best)}."
            return Verdict("undecided", [best.name], text)
        if _misses(best, SAME):
            text = (
                f"{best.name} comes nearest to the rate, and {_preferred(best, fit)}, but it is {_off(best)}, more "
                f"than the doubt in its parameters explains{beside}{_weak(best)}."
            )
            return Verdict("undecided", [best.name], text)
        return Verdict(
            "explained",
            [best.name],
            f"{best.name} explains the rate: it is {_off(best)}, and {_preferred(best, fit)}{beside}{_weak(best)}.",
        )
    return Verdict(
        "undecided",
        [c.name for c in (*equals, *open_)],
        f"{_equals(best, equals, blocks)}{_uncompared(open_)}; {best.name} is {_off(best)}{beside}{_weak(best)}.",
    )


def too_little(applies: bool, rounds: float, missed: float, twice: bool = False) -> Verdict | None:
    """The verdict on a flow that shows too little, whatever the models say; `applies`: one of them applies, `twice`:
    most of its data is in the capture twice."""
    if twice:
        text = (
            "Most of the flow's data is in the capture twice: what was lost between two points seems to have arrived."
        )
        return Verdict("insufficient", [], text)
    if missed > CAPTURE_LOSS:
        return Verdict(
            "insufficient",
            [],
            f"The capture missed {100 * missed:.1f} % of the flow's data segments. Above {100 * CAPTURE_LOSS:.0f} % "
            "it does not show well enough which losses the sender felt, and no verdict rests on them.",
        )
    if not applies and rounds < ROUNDS:
        steady = f"{rounds:.0f} steady round{'' if rounds == 1 else 's'}"
        return Verdict("insufficient", [], f"The flow has {steady}; what bounds a rate shows in {ROUNDS} or more.")
    return None


def _equals(best: Candidate, equals: Sequence[Candidate], blocks: int) -> str:
    """Which models the blocks leave open, and which only are as near to the rate as the best, each to the one that it
    predicts: what was sent, or what arrived."""
    tied = [c.name for c in equals if c.tied or c is best]
    others = [c.name for c in equals if c.name not in tied]
    near = f"{_list(others)} {'is' if len(others) == 1 else 'are'} as near to the observed rate" if others else ""
    if len(tied) == 1:
        first = f"{best.name} predicts the {blocks} blocks best"
        return f"{first}, and {near}, within {100 * SAME:.0f} %" if others else first
    equal = f"{_list(tied)} predict the {blocks} blocks equally well"
    return f"{equal}, and {near} as {best.name}, within {100 * SAME:.0f} %" if others else equal


def _open(best: Candidate, fit: Sequence[Candidate]) -> list[Candidate]:
    """The models without a score, so not told from the best by the blocks, that are as near to the rate of the whole
    as the best, and near it."""
    without = [c for c in fit if c.score is None and not _misses(c)]
    return [c for c in without if abs(c.log_ratio or 0.0) <= abs(best.log_ratio or 0.0)]


def _uncompared(open_: Sequence[Candidate]) -> str:
    if not open_:
        return ""
    verbs = ("is", "does") if len(open_) == 1 else ("are", "do")
    names = _list([c.name for c in open_])
    return f"; {names} {verbs[0]} no further from the observed rate, but {verbs[1]} not predict every block"


def _none(candidates: Sequence[Candidate], predicted: Sequence[Candidate]) -> Verdict:
    against = ([r for r in c.reasons if not r.startswith(WEAKENED)] for c in candidates if not c.applicable)
    reasons = [of_model[0] for of_model in against if of_model]
    if not reasons:
        return Verdict("insufficient", [], "The flow shows too little for any model: no parameters could be estimated.")
    common = max(dict.fromkeys(reasons), key=reasons.count)
    nearest = f"; {predicted[0].name} would be {_off(predicted[0])}" if predicted else ""
    return Verdict("none_applies", [], f"No model applies: {common}{nearest}.")


def _misses(best: Candidate, near: float = NEAR) -> bool:
    """The model is further from the rate than `near`, beyond the doubt in its parameters."""
    ratio = best.log_ratio or 0.0
    low = ratio if best.low is None else best.low
    high = ratio if best.high is None else best.high
    return abs(ratio) > near and (low > near or high < -near)


def _off(candidate: Candidate) -> str:
    ratio = candidate.log_ratio
    if ratio is None:
        return "without a prediction"
    percent = 100 * (math.exp(ratio) - 1)
    text = (
        "within 0.5 % of the observed rate"
        if abs(percent) < 0.5
        else (f"{abs(percent):.0f} % {'above' if percent > 0 else 'below'} the observed rate")
    )
    if candidate.low is None or candidate.high is None:
        return text
    return f"{text} ({100 * math.expm1(candidate.low):+.0f} to {100 * math.expm1(candidate.high):+.0f} %)"


def _preferred(best: Candidate, fit: Sequence[Candidate]) -> str:
    if len(fit) == 1:
        return "no other model applies"
    share = "none" if best.probability_best is None else f"{best.probability_best:.0%}"
    return f"{share} of the block samples prefer it"


def _beside(best: Candidate, baseline: float | None) -> str:
    if best.score is None or baseline is None:
        return ""
    ours, theirs = math.sqrt(best.score), math.sqrt(baseline)
    return f"; it misses a block's rate by {_share(ours)}, and the mean of the other blocks does by {_share(theirs)}"


def _share(error: float) -> str:
    return f"{100 * math.expm1(error):.0f} %"


def _weak(best: Candidate) -> str:
    weak = [reason.removeprefix(WEAKENED) for reason in best.reasons if reason.startswith(WEAKENED)]
    return f"; an assumption that matters less to it fails: {weak[0]}" if weak else ""


def _events(events: float) -> str:
    return f"{events:.0f} event{'' if events == 1 else 's'}"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
