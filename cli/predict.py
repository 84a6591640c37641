"""`tcpfit predict`: what the models say of a path, without a capture."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpfit.exceptions import InvalidParameter

from . import options
from .errors import unwritable
from .quantities import quantity

if TYPE_CHECKING:
    from tcpfit.models import Model
    from tcpfit.report.predicted import Predictions, Sweep

MSS = 1460.0  # of Ethernet and IPv4 without options
POINTS, MOST = 20, 10_000


@click.command(short_help="Predict rates and transfer times from parameters, with every model.")
@click.option(
    "--model",
    "names",
    metavar="NAME",
    multiple=True,
    default=("all",),
    show_default=True,
    shell_complete=options.model_names,
    help="A model. Repeatable.",
)
@click.option("--p", metavar="P", help="Loss rate, as each model counts it: 0.01 or 1%.")
@click.option("--rtt", metavar="TIME", help="Round-trip time: 100ms.")
@click.option("--rto", metavar="TIME", help="First timeout; by default max(200ms, 4 RTT).")
@click.option("--b", metavar="N", help="Rounds per segment of window growth; by default the paper's.")
@click.option("--w-max", metavar="SIZE", help="Window limit: 40 (segments) or 64KiB; by default none.")
@click.option("--q", metavar="P", help="Loss probability of the other segments of a loss event; by default p.")
@click.option("--size", metavar="SIZE", help="Size of a transfer: 64KB, 1MiB, 45segments.")
@click.option("--mss", metavar="BYTES", help=f"Payload of a full segment; by default {MSS:g}B.")
@click.option(
    "--set", "settings", metavar="NAME=VALUE", multiple=True, help="Any other parameter or convention. Repeatable."
)
@click.option("--sweep", metavar="NAME=FROM:TO[:log|lin][:N]", help="Vary a parameter: p=1e-4:0.1:log:50.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="What to print.",
)
@click.option(
    "--plot",
    type=options.Place(dir_okay=False),
    metavar="FILE",
    help="Also draw: .html, .svg, .png, .pdf, .json.",
)
def predict(
    names: tuple[str, ...],
    size: str | None,
    mss: str | None,
    settings: tuple[str, ...],
    sweep: str | None,
    form: str,
    plot: Path | None,
    **named: str | None,
) -> None:
    """Predict the rate of a path, or the time of a transfer, with one model or with all side by side.

    \b
    tcpfit predict --p 0.01 --rtt 100ms
    tcpfit predict --model pftk-full --p 1% --rtt 80ms --rto 400ms --set variant=throughput
    tcpfit predict --p 0.5% --rtt 50ms --size 64KB
    tcpfit predict --rtt 100ms --sweep p=1e-4:0.1:log:50 --plot rates.html

    What is not given takes a default, which the output names; a model that needs more says what. Bytes are counted in
    segments of the MSS.
    """
    from tcpfit.report import contract, figures, predicted, terminal

    if plot is not None and plot.suffix.lower() not in figures.SUFFIXES:
        raise click.UsageError(f"--plot {plot}: the name has to end in {', '.join(figures.SUFFIXES)}")

    try:
        models = _models(names)
        segment = _mss(mss)
        given = {name: text for name, text in named.items() if text is not None}
        conventions: dict[str, Any] = {}
        for setting in settings:
            name, _, value = setting.partition("=")
            if not (name and value):
                raise click.UsageError(f"--set {setting}: write NAME=VALUE")
            if name in given or name in conventions:
                raise click.UsageError(f"--set {setting}: {name} is given already")
            if _unit(models, name) is None and any(name in model.get_params() for model in models):
                conventions[name] = _convention(models, name, value)
            else:
                given[name] = value
        if not given and sweep is None and size is None:
            raise click.UsageError("give what is known of the path, for example --p 0.01 --rtt 100ms")
        swept = _sweep(sweep, models, segment) if sweep is not None else None
        if swept is not None and swept.name in given | ({"size": size} if size else {}):
            raise click.UsageError(f"{swept.name} is swept, so it cannot be given as well")
        answer = predicted.predict(
            models,
            {name: _quantity(name, text, models, segment) for name, text in given.items()},
            sweep=swept,
            size=_size(size, segment),
            mss=segment,
            mss_given=mss is not None,
            conventions=conventions,
        )
        if plot is not None:
            _draw(answer, plot)
    except InvalidParameter as error:
        raise click.UsageError(str(error)) from error
    if form == "json":
        click.echo(contract.dumps(predicted.document(answer)))
    elif form == "csv":
        click.echo(predicted.csv(answer), nl=False)
    else:
        predicted.show(answer, terminal.console())


def _quantity(name: str, text: str, models: list[Model], mss: float) -> float:
    """The value of a parameter in its unit, as the models count it.

    Raises UsageError with its name for a text that is none, and InvalidParameter where no model takes it.
    """
    from tcpfit.report.predicted import check_names

    try:
        return quantity(text, _unit(models, name) or "1", mss)
    except click.UsageError as error:
        check_names(models, [name])
        raise click.UsageError(f"{name}: {error.message}") from None


def _draw(answer: Predictions, path: Path) -> None:
    from tcpfit.analysis import AtomicFile
    from tcpfit.report import figures

    content = figures.render(figures.predictions(answer), path.suffix.lower())
    try:
        with AtomicFile(path) as partial:
            partial.write_bytes(content)
    except OSError as error:
        raise unwritable(path, error, "--plot") from error


def _models(names: tuple[str, ...]) -> list[Model]:
    from tcpfit.models import catalogue, get

    if "all" in names:
        return list(catalogue().values())
    return [get(name) for name in dict.fromkeys(names)]


def _mss(text: str | None) -> float:
    if text is None:
        return MSS
    value = quantity(text, "bytes", 1.0)
    if not 1 <= value <= 65535 or value != int(value):
        raise click.UsageError(f"--mss {text}: a segment has 1 to 65535 bytes")
    return value


def _size(text: str | None, mss: float) -> float | None:
    if text is None:
        return None
    value = quantity(text, "segments", mss, plain=False)
    if not 0 < value < math.inf:
        raise click.UsageError(f"--size {text}: a transfer has at least a byte, and an end")
    return float(math.ceil(value))


def _unit(models: list[Model], name: str) -> str | None:
    """The unit of a parameter that one of the models takes."""
    found = (p.unit for model in models for p in (*model.parameters, *model.extensions) if p.name == name)
    return next(found, None)


def _convention(models: list[Model], name: str, text: str) -> Any:
    """The value of a convention, of the kind that its default has; one of the models has to know it."""
    known: list[str] = []
    for model in models:
        if name == "free" or name not in model.get_params():
            continue
        default, choices = model.get_params()[name], model.choices.get(name)
        if isinstance(default, bool):
            choices = (False, True)
        if choices is None:
            return quantity(text, "1", 1.0)
        for choice in choices:
            if str(choice).lower() == text.lower():
                return choice
        known += [str(choice).lower() for choice in choices]
    if not known:
        raise click.UsageError(f"--set {name}={text}: no model has a convention {name!r}")
    raise click.UsageError(f"--set {name}={text}: {name} is one of {', '.join(dict.fromkeys(known))}")


def _sweep(text: str, models: list[Model], mss: float) -> Sweep:
    import numpy as np

    from tcpfit.report.predicted import Sweep

    match = re.fullmatch(r"(?a)(\w+)=([^:]+):([^:]+)(?::(log|lin))?(?::(\d+))?", text)
    if match is None:
        raise click.UsageError(f"--sweep {text}: write NAME=FROM:TO, with :log or :lin and :N behind it if you like")
    name, ends, scale, count = match[1], match.group(2, 3), match[4], int(match[5] or POINTS)
    unit = "segments" if name == "size" else _unit(models, name)
    if unit is None:
        known = sorted({"size"} | {p.name for model in models for p in model.parameters})
        raise click.UsageError(f"--sweep {text}: no model takes {name!r}; known are {', '.join(known)}")
    low, high = (quantity(end, unit, mss, plain=name != "size") for end in ends)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise click.UsageError(f"--sweep {text}: FROM has to be below TO")
    if not 2 <= count <= MOST:
        raise click.UsageError(f"--sweep {text}: N has to be 2 to {MOST}")
    scale = scale or ("log" if low > 0 and high / low >= 20 else "lin")
    if scale == "log" and low <= 0:
        raise click.UsageError(f"--sweep {text}: a logarithmic sweep starts above 0")
    values = np.geomspace(low, high, count) if scale == "log" else np.linspace(low, high, count)
    return Sweep(name, np.unique(np.ceil(values)) if name == "size" else values)
