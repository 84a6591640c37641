#!/usr/bin/env python3
"""Bring the pages of the models up to date: `python docs/models/make_pages.py`, or `--check` to see whether they are.

Made from the classes: each page's table of symbols (a row's symbol is the page's own) and what its figure says of
measured flows; comparison.md as a whole. The rest of a page is written by hand. Run make_figures.py before.
"""

from __future__ import annotations

import re
import runpy
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tcpfit.models import Model, Parameter, catalogue
from tcpfit.report import cards

HERE = Path(__file__).resolve().parent
HEAD = "| symbol | parameter | unit | default | range | meaning |\n| --- | --- | --- | --- | --- | --- |\n"
TABLE = re.compile(r"^\| symbol \|.*\n\|[ -|]*\n((?:\|.*\n)*)", re.MULTILINE)
FLOWS = re.compile(r"^\*\*Flows\.\*\*.*?(?=^\*\*)", re.MULTILINE | re.DOTALL)

UNTRIED = re.compile(r"\s+Not\s+validated\s+against\s+measured\s+flows\s+here\.")

SYMBOLS = {"rtt": "R", "rto": "T_0", "w_max": "W_{max}", "segments": "N", "q_tilde": r"\tilde q", "a_h": "A_h"}
"""Symbols for pages that do not name one; otherwise the parameter's name."""

COMPARISON = """# All models side by side

Made by `docs/models/make_pages.py`; do not edit. The like for any path:
`tcpfit predict --rtt 100ms --rto 400ms --b 1 --sweep p=1e-4:0.3:log:40 --plot FILE`.

![Rate of every model over the loss rate](figures/comparison.svg)

p is what each model counts: loss events, loss indications or lost packets. They are equal only where a loss event is
one loss and is repaired without a timeout, so at one p the curves answer different questions; on flows each model gets
its own. A model that needs more than p, the round-trip time, the timeout and b is not drawn.

{times}## On measured flows

Flows with a known truth, captured at the sender: transfers between Linux hosts over an emulated path, and ns-2. Each
model gets the parameters that tcpfit estimates from the flow it predicts, as in [the ranking](../ranking.md); one of
transfer times gets its losses, round trip and first window. The numbers are ln(predicted/observed) of the flows on
which the model's required assumptions hold. The flows differ from model to model, so rows are not a contest: `tcpfit
analyze` compares models on the same flow.

| model | predicts | flows with a value | assumptions hold | median | median of absolute values | three of four within |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
{rows}"""

TIMES = """![Time of every model over the size](figures/comparison-times.svg)

"""


def page(model: Model, text: str, figures: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """The page of a model with its made parts made anew."""
    text = TABLE.sub(lambda found: HEAD + "".join(symbols(model, found[1])), text, count=1)
    text = FLOWS.sub("", text)
    if rows:
        text = UNTRIED.sub("", text)
    block = textwrap.fill(f"**Flows.** {figures['caption'](rows)}", 120) + "\n\n"
    if (HERE / "figures" / f"{model.name}.svg").exists():
        block += f"![{model.name}: predicted and observed](figures/{model.name}.svg)\n\n"
    head, reference, tail = text.partition("**Reference.**")
    return head + block + reference + tail


def symbols(model: Model, rows: str) -> Iterator[str]:
    """The table's rows: every parameter and extension, then the page's own rows of other symbols."""
    own: dict[str, str] = {}
    others = []
    known = {parameter.name for parameter in (*model.parameters, *model.extensions)}
    for line in rows.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        name = cells[1].strip("`")
        if name in known:
            own[name] = cells[0]
        else:
            others.append((cells[0], cells[1], cells[2], *(cells[3:5] if len(cells) == 6 else ("", "")), cells[-1]))
    for parameter in (*model.parameters, *model.extensions):
        symbol = own.get(parameter.name, f"${SYMBOLS.get(parameter.name, parameter.name)}$")
        yield row(symbol, f"`{parameter.name}`", *facts(parameter, parameter in model.extensions))
    for other in others:
        yield row(*other)


def facts(parameter: Parameter, extension: bool) -> tuple[str, str, str, str]:
    default = "needed" if parameter.default is None else cards.text(parameter.default)
    meaning = f"extension: {parameter.meaning}" if extension else parameter.meaning
    return parameter.unit, "-" if extension else default, cards.span(parameter), meaning


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |\n"


def comparison(figures: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """The page that sets the models side by side."""
    lines = []
    for model in catalogue().values():
        own = [one for one in rows if one["model"] == model.name]
        ratios = np.log([one["predicted"] / one["observed"] for one in own if one["applicable"]])
        numbers = ["-"] * 3
        if ratios.size:
            size = abs(ratios)
            numbers = [f"{np.median(ratios):+.2f}", f"{np.median(size):.2f}", f"{np.quantile(size, 0.75):.2f}"]
        name = f"[{model.name}]({model.name}.md)"
        lines.append(row(name, cards.predicts(model), str(len(own)), str(ratios.size), *numbers))
    times = TIMES if (HERE / "figures" / "comparison-times.svg").exists() else ""
    return COMPARISON.format(times=times, rows="".join(lines))


def pages() -> Iterator[tuple[Path, str]]:
    """Every page that is made, in part or as a whole, and what it has to be."""
    figures = runpy.run_path(str(HERE / "make_figures.py"))
    rows = figures["flows"]()
    for model in catalogue().values():
        path = HERE / f"{model.name}.md"
        if path.exists():
            yield path, page(model, path.read_text(), figures, [one for one in rows if one["model"] == model.name])
    yield HERE / "comparison.md", comparison(figures, rows)


def main() -> int:
    """Write the pages, or say which are not current."""
    status = 0
    for path, text in pages():
        if not path.exists() or path.read_text() != text:
            if "--check" in sys.argv[1:]:
                print(f"{path.name} is not current; run docs/models/make_pages.py", file=sys.stderr)
                status = 1
            else:
                path.write_text(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
