"""Options that several verbs share, and the kinds of their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d*)?|\.\d+)(ms|s)?)?")

READERS = ("engine", "dpkt", "tshark", "pyshark")

VANTAGES = ("sender", "receiver", "middle")

RULES = ("one-rtt", "window", "recovery-point")  # of tcpfit.parameters.RULES, which a help page does not load

F = TypeVar("F", bound=Callable[..., Any])


class Duration(click.ParamType[float]):
    """A length of time: 10, 2.5s, 250ms, 1m30s, 1h."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Give back seconds."""
        if isinstance(value, (int, float)):
            return float(value)
        text = str(value).strip()
        match = _DURATION.fullmatch(text)
        if not text or match is None:
            self.fail(f"{text!r} is not a time; write 10, 2.5s, 250ms or 1m30s", param, ctx)
        hours, minutes, number, unit = match.groups()
        seconds = float(number or 0) / (1000 if unit == "ms" else 1)
        return int(hours or 0) * 3600 + int(minutes or 0) * 60 + seconds


class Kind(click.ParamType[str]):
    """A kind of event, one of `tcpfit.schema.KINDS`."""

    name = "kind"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Give back the kind; the schema is read only now, since a help page does not need it."""
        from tcpfit.schema import KINDS

        if value not in KINDS:
            self.fail(f"{str(value)!r} is no kind of event; the kinds are {', '.join(KINDS)}", param, ctx)
        return str(value)


def model_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of models for the shell to complete."""
    from tcpfit.models import catalogue

    return [name for name in catalogue() if name.startswith(incomplete)]


def flow(help: str) -> Callable[[F], F]:
    """`--flow ID`, repeatable."""
    return click.option("--flow", "flows", type=int, metavar="ID", multiple=True, help=help)


def reader(command: F) -> F:
    """`--reader`: what decodes the capture."""
    option = click.option(
        "--reader", type=click.Choice(READERS), default="engine", show_default=True, help="What decodes the capture."
    )
    return option(command)


def vantage(command: F) -> F:
    """`--vantage`: where the capture was taken."""
    option = click.option(
        "--vantage",
        type=click.Choice(VANTAGES),
        help="Where the captures were taken, seen from the data sender; inferred if not given.",
    )
    return option(command)


def ranking(command: F) -> F:
    """`--models`, `--rule`, `--block` and `--fit`: how flows are ranked."""
    for option in (
        click.option(
            "--fit",
            "fits",
            metavar="NAME.PARAM",
            multiple=True,
            help="Also rank this model with a parameter fitted on the flow's blocks, e.g. pftk-full.b. Repeatable.",
        ),
        click.option(
            "--block",
            type=click.IntRange(min=1),
            metavar="N",
            help="Fewest loss or reordering events of a block; by default 4.",
        ),
        click.option(
            "--rule",
            type=click.Choice(RULES),
            default=RULES[0],
            show_default=True,
            help="Which losses are one event, for p, m, q and the share of timeouts.",
        ),
        click.option(
            "--models",
            metavar="NAME,...",
            shell_complete=model_names,
            help="Only these; NAME+PARAM has a measured parameter for a derived one, e.g. newreno-full+p_to.",
        ),
    ):
        command = option(command)
    return command


def ranking_choices(models: str | None, rule: str, block: int | None, fits: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of `Analysis.ranked_by`; names that are none end the command before a capture is read."""
    names = None if models is None else [name for name in (part.strip() for part in models.split(",")) if name]
    if names is not None or fits:
        from tcpfit.exceptions import InvalidParameter
        from tcpfit.ranking.variants import by_name, fitted_parameter

        try:
            if names is not None:
                by_name(names)
            for text in fits:
                fitted_parameter(text)
        except InvalidParameter as error:
            raise click.UsageError(str(error)) from error
    return {"models": names, "rule": rule, "block": block, "fit": fits}


def selection(command: F) -> F:
    """`--filter`, `--from` and `--to`: which packets count."""
    for option in (
        click.option("--to", "to_s", type=Duration(), metavar="T", help="Leave out what is later than T."),
        click.option("--from", "from_s", type=Duration(), metavar="T", help="Leave out what is earlier than T."),
        click.option(
            "--filter", "filter_", metavar="EXPR", help="Only these flows, e.g. 'host 10.0.0.1 and port 443'."
        ),
    ):
        command = option(command)
    return command
