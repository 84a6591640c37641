"""Options that several verbs share, and the kinds of their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d*)?|\.\d+)(ms|s)?)?")

READERS = ("engine", "dpkt", "tshark", "pyshark")

VANTAGES = ("sender", "receiver", "middle")

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
