"""Does `tcpfit models` list every model in 80 columns, and say of one what its class and its module say?"""

from __future__ import annotations

import io
import json
import re

import pytest
from test_cli import assert_sentence, tcpfit

from tcpfit.models import Model, Parameter, catalogue, get
from tcpfit.models.plugins import load
from tcpfit.report import cards, terminal


def printed(show, *arguments, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = io.StringIO()
    show(*arguments, terminal.console(out))
    return out.getvalue()


def test_every_model_has_its_rows_in_80_columns():
    run = tcpfit("models")
    assert (0, "") == (run.returncode, run.stderr)
    assert max(map(len, run.stdout.splitlines())) <= 80
    first = [line.split()[0] for line in run.stdout.splitlines() if line[:1].strip()]
    assert ["model", *catalogue(), "bohacek-dynamics", "tcpfit"] == first
    assert "not-window-limited" in run.stdout, "no word is cut"


@pytest.mark.parametrize("model", cards.described().values(), ids=cards.described())
def test_a_card_says_what_the_class_declares(model, monkeypatch):
    text = printed(cards.show, model, monkeypatch=monkeypatch)
    assert max(map(len, text.splitlines())) <= 80
    flat = " ".join(text.split())
    for said in (model.title, *(p.name for p in model.parameters), *(a.text for a in model.assumptions)):
        assert " ".join(said.split()[:3]) in flat
    for doi in cards.card(model)["doi"]:
        assert doi in flat.replace(" ", "")
    for heading in ("law", "parameters", "assumptions", "domain", "validation"):
        assert f"\n{heading}\n" in text


def test_a_card_is_made_of_the_docstring(monkeypatch):
    text = printed(cards.show, get("mathis"), monkeypatch=monkeypatch)
    assert "B = C / (RTT sqrt(p))" in text
    assert "losses = periodic (or random)" in text
    assert re.search(r"^  b +1 +1 .* rounds per segment of window growth", text, re.MULTILINE)
    assert "**" not in text


def test_formulas_keep_a_line_of_their_own():
    (_, first, second, *_) = [line for line in cards.card(get("pftk-full"))["law"] if line.startswith(" ")] + [""] * 2
    assert "B = ((1-p)/p + Wmax" in first + second


def test_json_has_every_card():
    document = json.loads(tcpfit("models", "--format", "json").stdout)
    assert [*catalogue(), "bohacek-dynamics"] == [card["name"] for card in document["models"]]
    (card,) = json.loads(tcpfit("models", "pftk-full", "--format", "json").stdout)["models"]
    assert ["10.1145/285237.285291", "10.1109/90.842137"] == card["doi"]
    assert {"name": "w_max", "needed": False, "default": None, "unit": "segments", "range": ">= 1"}.items() <= card[
        "parameters"
    ][4].items()
    assert {"default": "send", "choices": ["send", "throughput"]} == card["conventions"]["variant"]
    assert card["departures"] and card["validation"] and card["domain"]


def test_an_unknown_name_is_a_sentence():
    assert_sentence(tcpfit("models", "vegas"), 2, "There is no model 'vegas'; known are mathis,")


@pytest.mark.parametrize(
    ("paper", "short"),
    [
        ("Mathis, Semke, Mahdavi, Ott 1997, ACM CCR", "Mathis et al. 1997"),
        ("Bohacek, Shah 2004, doi:10.1", "Bohacek and Shah 2004"),
        ("Cardwell, Savage, Anderson 2000, INFOCOM", "Cardwell et al. 2000"),
        ("Floyd 2008, RFC 5348", "Floyd 2008"),
        ("example, not published", "example"),
    ],
)
def test_papers_are_shortened(paper, short):
    assert short == cards.source(paper)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({}, ">= 0"),
        ({"positive": True}, "> 0"),
        ({"high": 1.0}, "0 to 1"),
        ({"high": 1.0, "positive": True}, "> 0, <= 1"),
        ({"low": float("-inf")}, "any"),
        ({"low": float("-inf"), "high": 2.0}, "<= 2"),
    ],
)
def test_ranges(limits, text):
    assert text == cards.span(Parameter("x", "1", "anything", **limits))


def test_a_model_without_docstring_has_a_card_too(monkeypatch):
    class Bare(Model):
        name = "bare"
        title = "nothing said"
        paper = "nobody"
        p_definition = None
        parameters = (Parameter("rtt", "s", "round-trip time"),)
        assumptions = ()
        fittable = {}
        quantity = "goodput"
        __module__ = "nowhere"

    text = printed(cards.show, Bare(), monkeypatch=monkeypatch)
    assert "predicts the goodput in segments/s" in text
    assert "law" not in text and "assumptions" not in text and "fit()" not in text


def test_no_plugins_here():
    assert [] == load({})


@pytest.mark.parametrize("words", ["tcpfit models pftk-", "tcpfit predict --model pftk-"])
def test_names_are_completed(words):
    environment = {"_TCPFIT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    assert ["plain,pftk-simple", "plain,pftk-approx", "plain,pftk-full"] == tcpfit(env=environment).stdout.split()
