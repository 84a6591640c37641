"""The sentence of a verdict says what the blocks show, and no more."""

from __future__ import annotations

import pytest

from tcpfit.ranking.verdict import Candidate, verdict


def candidate(name: str, as_good: bool = True, tied: bool = True, log_ratio: float = 0.02) -> Candidate:
    return Candidate(name, True, as_good, tied, log_ratio, log_ratio - 0.1, log_ratio + 0.1, 0.5, 0.01, [])


@pytest.mark.parametrize(
    ("others", "state", "begins"),
    [
        ([candidate("c", False, False)], "explained", "a explains the rate: it is 2 % above"),
        ([candidate("b")], "undecided", "a and b predict the 16 blocks equally well; a is 2 % above"),
        (
            [candidate("b", tied=False), candidate("c", False, False)],
            "undecided",
            "a predicts the 16 blocks best, and b is as near to the observed rate, within 5 %; a is 2 % above",
        ),
        (
            [candidate("b", tied=False), candidate("c", tied=False)],
            "undecided",
            "a predicts the 16 blocks best, and b and c are as near to the observed rate, within 5 %; a is 2 % above",
        ),
        (
            [candidate("b", tied=False), candidate("c")],
            "undecided",
            "a and c predict the 16 blocks equally well, and b is as near to the observed rate as a, within 5 %; "
            "a is 2 % above",
        ),
    ],
)
def test_models_that_the_blocks_tell_apart_are_not_said_to_predict_them_equally_well(
    others: list[Candidate], state: str, begins: str
) -> None:
    found = verdict([candidate("a"), *others], 16, 100.0, 200.0, 0.04)
    assert state == found.state
    assert found.text.startswith(begins)
    assert ["a", *(c.name for c in others if c.as_good)] == found.models


@pytest.mark.parametrize(
    ("blocks", "events", "said"),
    [(1, 7.0, "7 events, enough for 1 block of 4;"), (2, 8.0, "8 events, enough for 2 blocks of 4;")],
)
def test_blocks_that_are_too_few_are_counted(blocks: int, events: float, said: str) -> None:
    assert said in verdict([candidate("a")], blocks, events, 200.0, 0.04).text


def unscored(name: str, log_ratio: float) -> Candidate:
    """A model of which some block shows too little: it has no score, so no difference either."""
    return candidate(name, False, False, log_ratio)._replace(score=None, probability_best=None)


@pytest.mark.parametrize("models", [[unscored("a", 0.02)], [unscored("a", 0.02), unscored("b", 0.3)]])
def test_models_that_no_blocks_compare_explain_nothing(models: list[Candidate]) -> None:
    """As the ranking hands them over: the first one counts as equal to itself."""
    found = verdict([models[0]._replace(as_good=True), *models[1:]], 16, 100.0, 200.0, 0.04)
    assert ("insufficient", []) == (found.state, found.models)
    assert "16 blocks, but no model that applies can be compared by them" in found.text
    assert "Nearest is a, 2 % above the observed rate" in found.text


@pytest.mark.parametrize(
    ("best", "others", "state", "named", "said"),
    [
        (0.02, [unscored("b", -0.02)], "undecided", ["a", "b"], "a predicts the 16 blocks best; b is no further from"),
        (0.02, [unscored("b", 0.03)], "explained", ["a"], "a explains the rate"),
        (
            0.1,
            [candidate("b"), unscored("c", 0.0), unscored("d", 0.01)],
            "undecided",
            ["a", "b", "c", "d"],
            "equally well; c and d are no further from the observed rate, but do not predict every block; a is 11 %",
        ),
        (0.5, [unscored("b", 0.1)], "undecided", ["a", "b"], "b is no further from the observed rate, but does not"),
        (0.5, [unscored("b", 0.45)], "none_applies", [], "the best of them, a, is 65 % above"),
        (0.5, [unscored("b", 0.6)], "none_applies", [], "the best of them, a, is 65 % above"),
    ],
)
def test_a_model_without_a_score_that_is_as_near_leaves_it_open(
    best: float, others: list[Candidate], state: str, named: list[str], said: str
) -> None:
    found = verdict([candidate("a", log_ratio=best), *others], 16, 100.0, 200.0, 0.04)
    assert (state, named) == (found.state, found.models)
    assert said in found.text


def test_a_model_that_nothing_is_compared_with_explains_nothing() -> None:
    alone = verdict([candidate("a")], 16, 100.0, 200.0, 0.04)
    assert ("undecided", ["a"]) == (alone.state, alone.models)
    assert alone.text.startswith("No other model was compared with a: it is 2 % above")
    other = candidate("b")._replace(applicable=False, as_good=False)
    beside = verdict([candidate("a"), other], 16, 100.0, 200.0, 0.04)
    assert ("explained", ["a"]) == (beside.state, beside.models)
    assert "no other model applies" in beside.text


@pytest.mark.parametrize(("log_ratio", "state"), [(-0.14, "explained"), (0.14, "explained"), (-0.16, "undecided")])
def test_a_best_model_that_misses_the_rate_beyond_its_doubt_does_not_explain_it(log_ratio: float, state: str) -> None:
    """Its interval has to come within 5 % of the observed rate, here from 0.1 away."""
    found = verdict([candidate("a", log_ratio=log_ratio), candidate("b", False, False)], 16, 100.0, 200.0, 0.04)
    assert (state, ["a"]) == (found.state, found.models)
    assert (state == "undecided") == ("more than the doubt in its parameters explains" in found.text)


def test_what_only_weakens_a_model_is_not_why_it_does_not_apply() -> None:
    reasons = ["weakened: SACK was in use", "the flow does not show a_h_reacted"]
    found = verdict(
        [candidate("a")._replace(applicable=False, log_ratio=None, reasons=reasons)], 16, 100.0, 200.0, 0.04
    )
    assert "No model applies: the flow does not show a_h_reacted." == found.text
