"""Options that several verbs share, and the kinds of their values."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from .errors import complain

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d*)?|\.\d+)(ms|s)?)?", re.ASCII)

READERS = ("engine", "dpkt", "tshark", "pyshark")

VANTAGES = ("sender", "receiver", "middle")

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

RULES = ("one-rtt", "window", "recovery-point", "tfrc")  # of tcpfit.parameters.RULES, which a help page does not load

FIGURES = ("time-sequence", "window", "rtt", "rate", "ranking", "residuals", "losses", "intervals", "shares", "stalls")
"""Those of tcpfit.report.figures.KINDS, which a help page does not load."""

KEY_VARIABLE = "TCPFIT_ANONYMIZE_KEY"

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Source:
    """How captures are read, as `tcpfit.analyze` has it: the decoder, the vantage point, and which packets count."""

    reader: str = READERS[0]
    vantage: str | None = None
    filter: str | None = None
    from_s: float | None = None
    to_s: float | None = None
    max_flows: int | None = None
    max_memory: int | None = None
    key: bytes | None = None
    """Under which addresses are shown; None shows them as they are."""


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


class Whole(click.IntRange):
    """A whole number, in plain digits: Python would take others, and 1_000 too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Give back the number."""
        if isinstance(value, str) and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", value):
            self.fail(f"{value!r} is not a whole number; write digits alone, such as 1000", param, ctx)
        number: int = super().convert(value, param, ctx)
        return number


class Place(click.Path):
    """A file or a folder; an empty name, as of a shell's variable that is not set, is none and not the folder here."""

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Give back the path."""
        if value == "":
            self.fail("the name is empty", param, ctx)
        return super().convert(value, param, ctx)


class Size(click.ParamType[int]):
    """A number of bytes: 500MB, 4GB, 2GiB."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Give back bytes."""
        match = re.fullmatch(r"(?a)(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?", str(value).strip().lower())
        if match is None or match[2] not in UNITS or float(match[1]) == 0:
            self.fail(f"{str(value)!r} is not a size; write 500MB, 4GB or 2GiB", param, ctx)
        return int(float(match[1]) * UNITS[match[2]])


class Kind(click.ParamType[str]):
    """A kind of event, one of `tcpfit.schema.KINDS`."""

    name = "kind"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Give back the kind; the schema is read only now, since a help page does not need it."""
        from tcpfit.schema import KINDS

        if value not in KINDS:
            self.fail(f"{str(value)!r} is no kind of event; the kinds are {', '.join(KINDS)}", param, ctx)
        return str(value)


class Joined(str):
    """A capture that was written to several files: the name of the first, and all of them."""

    def __new__(cls, parts: tuple[str, ...]) -> Joined:
        """The capture in these files."""
        return super().__new__(cls, parts[0])

    def __init__(self, parts: tuple[str, ...]) -> None:
        self.parts = parts


def model_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of models for the shell to complete."""
    from tcpfit.models import catalogue

    return [name for name in catalogue() if name.startswith(incomplete)]


def captures(command: F) -> F:
    """The argument CAPTURE..., standard input at most once among them, and `--join`, which makes one of them."""
    return captures_called("CAPTURE...")(command)


def captures_called(metavar: str) -> Callable[[F], F]:
    """The same where an argument may be something else, too."""
    argument = click.argument("captures", metavar=metavar, nargs=-1, required=True, callback=_one_stdin)
    join = click.option(
        "--join",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_remember,
        help="The captures are the files of one, as dumpcap -b and tcpdump -C write them; in any order.",
    )
    return lambda command: argument(join(command))


def _remember(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Callback of an option that a later one's asks for."""
    ctx.meta[f"tcpfit.{param.name}"] = value


def _one_stdin(ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Callback of an argument: standard input can be read once, and is no part of a capture."""
    if value.count("-") > 1:
        raise click.UsageError("standard input ('-') can be given once")
    if not ctx.meta.get("tcpfit.join") or len(value) < 2:
        return value
    if "-" in value:
        raise click.UsageError("--join reads its captures twice, and standard input ('-') cannot be; give files")
    if folders := [part for part in value if os.path.isdir(part)]:
        raise click.UsageError(f"--join joins files, and {folders[0]} is a folder; give the files in it")
    return (Joined(value),)


def form(*choices: str, help: str = "What to print.") -> Callable[[F], F]:
    """`--format`, given to the command as `form`; the first choice is the default."""
    return click.option(
        "--format", "form", type=click.Choice(choices), default=choices[0], show_default=True, help=help
    )


def top(default: int, help: str, least: int = 1) -> Callable[[F], F]:
    """`--top N`: how many flows are shown."""
    kind = Whole(min=least)
    return click.option("--top", type=kind, default=default, show_default=True, metavar="N", help=help)


def min_segments(command: F) -> F:
    """`--min-segments N`: which flows are large enough."""
    option = click.option(
        "--min-segments",
        type=Whole(min=0),
        default=0,
        metavar="N",
        help="Only flows with at least N data segments.",
    )
    return option(command)


def flow(help: str) -> Callable[[F], F]:
    """`--flow ID`, repeatable."""
    return click.option("--flow", "flows", type=Whole(min=0), metavar="ID", multiple=True, help=help)


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


def ranking(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--models`, `--rule`, `--block` and `--fit`: how flows are ranked, given to the command as `choices`, which
    `Analysis.ranked_by` takes."""

    @wraps(command)
    def chosen(*args: Any, models: str | None, rule: str, block: int | None, fits: tuple[str, ...], **rest: Any) -> Any:
        return command(*args, choices=_ranking_choices(models, rule, block, fits), **rest)

    return _with_options(
        chosen,
        click.option(
            "--fit",
            "fits",
            metavar="NAME.PARAM",
            multiple=True,
            help="Also rank this model with a parameter fitted on the flow's blocks, e.g. pftk-full.b. Repeatable.",
        ),
        click.option(
            "--block",
            type=Whole(min=1),
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
    )


def _ranking_choices(models: str | None, rule: str, block: int | None, fits: tuple[str, ...]) -> dict[str, Any]:
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


ANONYMITY = (
    click.option(
        "--anonymize-key",
        type=Place(dir_okay=False),
        metavar="FILE",
        help="The key of --anonymize, 16 bytes at least, so that every run shows the same addresses.",
    ),
    click.option(
        "--anonymize",
        is_flag=True,
        help=f"Show other addresses with the same common prefixes; the key is random, or in {KEY_VARIABLE}.",
    ),
)


def anonymity(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--anonymize` and `--anonymize-key`, given to the command as `key`."""

    @wraps(command)
    def with_key(*args: Any, anonymize: bool, anonymize_key: Path | None, **rest: Any) -> Any:
        return command(*args, key=_anonymity_key(anonymize, anonymize_key), **rest)

    return _with_options(with_key, *ANONYMITY)


def _anonymity_key(wanted: bool, file: Path | None, *, lasting: bool = False) -> bytes | None:
    """The key of the file, of the environment, or a new one, which is said; None where nobody wants one.

    A new one does not do for what is `lasting`, to be gone on with by other runs.
    """
    if file is None and not wanted:
        return None
    from tcpfit.anonymity import LEAST, new_key

    if file is not None:
        try:
            key, place = file.read_bytes().rstrip(b"\r\n"), f"--anonymize-key {file}"
        except OSError as error:
            raise click.UsageError(f"--anonymize-key {file}: {error.strerror or error}") from error
    elif KEY_VARIABLE in os.environ:
        key, place = os.environb[KEY_VARIABLE.encode()], KEY_VARIABLE
    elif lasting:
        raise click.UsageError("later runs will need the same key: give one with --anonymize-key FILE")
    else:
        complain("addresses are anonymized with a key of this run; --anonymize-key FILE shows the same ones every time")
        return new_key()
    if len(key) < LEAST:
        raise click.UsageError(f"{place}: a key has at least {LEAST} bytes, got {len(key)}")
    return key


def source(command: Callable[..., Any], *, lasting: bool = False) -> Callable[..., Any]:
    """How captures are read: `--reader`, `--vantage`, which packets count, bounds, and the addresses that are shown;
    given to the command as one `Source`."""

    @wraps(command)
    def read_so(
        *args: Any,
        reader: str,
        vantage: str | None,
        filter_: str | None,
        from_s: float | None,
        to_s: float | None,
        max_flows: int | None,
        max_memory: int | None,
        **rest: Any,
    ) -> Any:
        key = _anonymity_key(rest.pop("anonymize"), rest.pop("anonymize_key"), lasting=lasting)
        source = Source(reader, vantage, filter_, from_s, to_s, max_flows, max_memory, key)
        return command(*args, source=source, **rest)

    return _with_options(
        read_so,
        *ANONYMITY,
        click.option(
            "--max-memory",
            type=Size(),
            metavar="SIZE",
            help="Stop reading a capture where the process has come to this, e.g. 2G.",
        ),
        click.option(
            "--max-flows",
            type=Whole(min=1),
            metavar="N",
            help="Connections followed at once; by default 262144.",
        ),
        click.option("--to", "to_s", type=Duration(), metavar="T", help="Leave out what is later than T."),
        click.option("--from", "from_s", type=Duration(), metavar="T", help="Leave out what is earlier than T."),
        click.option(
            "--filter", "filter_", metavar="EXPR", help="Only these flows, e.g. 'host 10.0.0.1 and port 443'."
        ),
        vantage,
        reader,
    )


lasting_source = partial(source, lasting=True)
"""The same for a verb whose output other runs go on with: a key has to be given."""


def _with_options(command: Callable[..., Any], *options: Callable[..., Any]) -> Callable[..., Any]:
    for option in options:
        command = option(command)
    return command
