"""What `tcpfit models` prints: every model in a table, or all there is to say of one, from its class and its module."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import tcpfit
from tcpfit.arguments import shown
from tcpfit.exceptions import InvalidParameter
from tcpfit.models import BohacekDynamics, Model, Parameter, catalogue

Described = Model | BohacekDynamics
"""What has a card: the models that predict a number a flow, and one that predicts a course."""

COUNTS = {"loss_event": "loss events", "loss_indication": "loss indications", "packet": "lost packets"}
"""What p counts, by `p_definition`."""

QUANTITIES = {"send-rate": "send rate", "throughput": "throughput", "goodput": "goodput"}

HEADINGS = {"Domain": "domain", "Departures": "departures from the paper", "Validation": "validation"}
"""Headings of a model's module, and of its card; its symbols and reference are in the class."""


def described() -> dict[str, Described]:
    """Everything that has a card, by name."""
    return {**catalogue(), BohacekDynamics.name: BohacekDynamics()}


def named(name: str) -> Described:
    """What has a card of that name. Raises InvalidParameter where nothing has."""
    known = described()
    if name not in known:
        raise InvalidParameter(f"There is no model {shown(name)}; known are {', '.join(known)}.")
    return known[name]


def predicts(model: Described) -> str:
    """The quantity that a model predicts, in words."""
    if model.predicts == "transfer-time":
        return "transfer time"
    return QUANTITIES[model.quantity] + (" over time" if model.predicts == "course" else "")


def needed(model: Described) -> list[str]:
    """Names of the parameters without default."""
    return [parameter.name for parameter in model.parameters if parameter.default is None]


def source(paper: str) -> str:
    """Authors and year, shortened: Mathis et al. 1997."""
    found = re.match(r"(.*?),? (\d{4})\b", paper)
    if found is None:
        return paper.partition(",")[0]
    authors = re.split(r", | and ", found[1])
    short = f"{authors[0]} et al." if len(authors) > 2 else " and ".join(authors)
    return f"{short} {found[2]}"


def text(value: float | None) -> str:
    """A default as people write it."""
    if value is None:
        return "-"
    return "none" if np.isinf(value) else f"{value:g}"


def span(parameter: Parameter) -> str:
    """The range of a parameter: > 0, 0 to 1, >= 1."""
    low = f"{'>' if parameter.positive else '>='} {parameter.low:g}"
    if np.isinf(parameter.low):
        return f"<= {parameter.high:g}" if np.isfinite(parameter.high) else "any"
    if np.isinf(parameter.high):
        return low
    return f"{low}, <= {parameter.high:.6g}" if parameter.positive else f"{parameter.low:g} to {parameter.high:.6g}"


def card(model: Described) -> dict[str, Any]:
    """Everything that a model declares, and what its module says of it, as a JSON object."""
    law, sections = _sections(model)
    own = {parameter.name for parameter in model.parameters}
    conventions = {
        name: {"default": value, "choices": list(model.choices.get(name, ()))}
        for name, value in model.get_params().items()
        if name != "free" and name not in own
    }
    return {
        "name": model.name,
        "title": model.title,
        "paper": model.paper,
        "doi": re.findall(r"doi:(10\.[^\s;,]+)", model.paper),
        "package": model.plugin or "tcpfit",
        "predicts": model.predicts,
        "quantity": model.quantity,
        "unit": "s" if model.predicts == "transfer-time" else "segments/s",
        "p_definition": model.p_definition,
        "law": law,
        "parameters": [_parameter(parameter) for parameter in model.parameters],
        "extensions": [_parameter(parameter) for parameter in model.extensions],
        "conventions": conventions,
        "about_conventions": _paragraphs(type(model).__doc__ or "")[1:],
        "assumptions": [{"name": a.name, "required": a.required, "text": a.text} for a in model.assumptions],
        "fits": {name: {"low": low, "high": high} for name, (low, high, _) in model.fittable.items()},
        **{heading.lower(): sections.get(heading, []) for heading in HEADINGS},
    }


def document(models: Iterable[Described]) -> dict[str, Any]:
    """The JSON document: a card a model."""
    return {"tcpfit": tcpfit.__version__, "models": [card(model) for model in models]}


def show_all(models: Iterable[Described], out: Console) -> None:
    """Print the table of all models."""
    table = _table(gap=1)
    for heading, width in (("model", None), ("paper", 14), ("predicts", 10), ("needs", 13), ("assumes", None)):
        table.add_column(heading, no_wrap=heading == "model", max_width=width, min_width=width)
    for model in models:
        required = [assumption.name for assumption in model.assumptions if assumption.required]
        quantity = predicts(model).replace(" ", "\n")
        table.add_row(model.name, source(model.paper), quantity, " ".join(needed(model)), ", ".join(required))
    out.print(table)
    out.print()
    out.print(Text("tcpfit models NAME: law, parameters, domain and validation of one", "dim"))


def show(model: Described, out: Console) -> None:
    """Print the card of one model."""
    facts = card(model)
    out.print(Text(f"{model.name}: {model.title}", style="bold"))
    out.print(Padding(Text(model.paper), (0, 0, 0, 2)))
    counts = f"; p counts {COUNTS[model.p_definition]}" if model.p_definition else ""
    out.print(Text(f"  predicts the {predicts(model)} in {facts['unit']}{counts}"))
    if model.plugin:
        out.print(Text(f"  from the package {model.plugin}"))
    _section("law", facts["law"], out)
    _parameters("parameters", model.parameters, out)
    _parameters("extensions, not in the paper; used only when given", model.extensions, out)
    if facts["conventions"]:
        _heading("conventions", out)
        for name, convention in facts["conventions"].items():
            others = [str(choice) for choice in convention["choices"] if choice != convention["default"]]
            or_else = f" (or {', '.join(others)})" if others else ""
            out.print(Text(f"  {name} = {convention['default']}{or_else}"))
        for paragraph in facts["about_conventions"]:
            out.print(Padding(Text(paragraph, style="dim"), (0, 0, 0, 2)))
    if model.assumptions:
        _heading("assumptions", out)
        table = _table(header=False)
        for wraps in (False, False, True):
            table.add_column(no_wrap=not wraps)
        for assumption in model.assumptions:
            table.add_row(f"  {assumption.name}", "required" if assumption.required else "weaker", assumption.text)
        out.print(table)
    fits = [f"{name} ({ends['low']:g} to {ends['high']:g})" for name, ends in facts["fits"].items()]
    _section("fit() can fit", [", ".join(fits)], out)
    for heading, words in HEADINGS.items():
        _section(words, facts[heading.lower()], out)


def _parameter(parameter: Parameter) -> dict[str, Any]:
    default = parameter.default
    return {
        "name": parameter.name,
        "unit": parameter.unit,
        "meaning": parameter.meaning,
        "needed": default is None,
        "default": default if default is not None and np.isfinite(default) else None,
        "column": parameter.column or None,
        "range": span(parameter),
    }


def _parameters(heading: str, parameters: Iterable[Parameter], out: Console) -> None:
    rows = list(parameters)
    if not rows:
        return
    _heading(heading, out)
    table = _table()
    for name in ("  name", "unit", "default", "range", "meaning"):
        table.add_column(name, no_wrap=name != "meaning")
    for one in rows:
        table.add_row(f"  {one.name}", one.unit, text(one.default), span(one), one.meaning)
    out.print(table)


def _heading(heading: str, out: Console) -> None:
    out.print()
    out.print(Text(heading, style="bold"))


def _section(heading: str, paragraphs: list[str], out: Console) -> None:
    """A heading with paragraphs, a formula set in deeper; nothing where there are none."""
    if any(paragraphs):
        _heading(heading, out)
    for paragraph in filter(None, paragraphs):
        out.print(Padding(Text(paragraph.strip()), (0, 0, 0, 6 if paragraph.startswith(" ") else 2)))


def _table(header: bool = True, gap: int = 2) -> Table:
    return Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold", show_header=header)


def _sections(model: Described) -> tuple[list[str], dict[str, list[str]]]:
    """The paragraphs of the module's docstring before its first heading, and those under each heading; a heading that
    it does not have comes from the module of the class that it derives from."""
    law: list[str] = []
    sections: dict[str, list[str]] = {}
    bases = type(model).__mro__
    for cls in bases[: bases.index(Model if isinstance(model, Model) else object)]:
        doc = getattr(sys.modules.get(cls.__module__), "__doc__", None) or ""
        head, *parts = re.split(r"^\*\*(\w+)\*\*", doc, flags=re.MULTILINE)
        law = law or _paragraphs(head)
        sections = {parts[i]: _paragraphs(parts[i + 1]) for i in range(0, len(parts), 2)} | sections
    return law, sections


def _paragraphs(doc: str) -> list[str]:
    """Paragraphs, each on one line; a line that is set in, a formula, is one of its own and begins with a space."""
    found: list[str] = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(doc)):
        begin = True
        for line in block.splitlines():
            formula = line.startswith("    ")
            words = " ".join(line.split())
            if formula or begin or found[-1].startswith(" "):
                found.append(f" {words}" if formula else words)
            elif words:
                found[-1] += f" {words}"
            begin = False
    return [paragraph for paragraph in found if paragraph.strip()]
