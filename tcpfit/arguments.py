"""What users hand to public functions, checked where it comes in: one function a kind of argument, one sentence each.

Each takes the argument's name and what was given, and gives back what to go on with. It raises InvalidParameter where
that makes no sense. Nothing is imported here that is not in Python, so whatever uses it stays as light as it was.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from tcpfit.exceptions import InvalidParameter

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")

LONGEST = 60
"""Characters of a value that a sentence shows."""

PLAIN = ("builtins", "numpy")
"""Modules whose values are shown as they are; of others the name of their class says more."""


def shown(value: object) -> str:
    """A value as a sentence shows it, on one line and cut to some length."""
    kind = type(value)
    if kind.__module__ not in PLAIN:
        return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no whole numbers of more than some thousand digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def whole(name: str, value: Any, least: int = 1, below: int | None = None) -> int:
    """A whole number, of numpy too; True and False are none."""
    number = _index(value)
    if number is None or number < least or (below is not None and number >= below):
        limit = "" if below is None else f" and below 2^{below.bit_length() - 1}"
        raise InvalidParameter(f"{name} must be a whole number of at least {least}{limit}, got {shown(value)}")
    return number


def number(name: str, value: Any) -> float:
    """A number that is one: neither text nor NaN, but perhaps infinite."""
    if hasattr(value, "__float__") and not isinstance(value, bool) and getattr(value, "ndim", 0) == 0:
        try:
            found = float(value)
        except (TypeError, ValueError, OverflowError):
            found = float("nan")
        if found == found:
            return found
    raise InvalidParameter(f"{name} must be a number, got {shown(value)}")


def seconds(name: str, value: Any) -> float:
    """A time in seconds that is not negative."""
    found = number(name, value)
    if found < 0:
        raise InvalidParameter(f"{name} must be 0 s or later, got {shown(value)}")
    return found


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """One of the names that there are."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        raise InvalidParameter(f"{name} must be one of {', '.join(names)}, got {shown(value)}")
    return value


def text(name: str, value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise InvalidParameter(f"{name} must be a text, got {shown(value)}")
    return value


def several(name: str, value: Any, of: str) -> list[Any]:
    """A list, or anything else that holds some; a text or one thing alone is none."""
    return list(_held(name, value, of))


def _held(name: str, value: Any, of: str) -> Iterable[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise InvalidParameter(f"{name} must be a list of {of}, got {shown(value)}")
    return value


def texts(name: str, value: Any, of: str = "names") -> list[str]:
    """Some texts."""
    return [text(f"each of {name}", each) for each in several(name, value, of)]


def characters(name: str, value: Any) -> str:
    """A text that UTF-8 can hold, as tables and the engine have it."""
    try:
        text(name, value).encode()
    except UnicodeEncodeError:
        raise InvalidParameter(f"{name} must be a text that UTF-8 can hold, got {shown(value)}") from None
    return str(value)


def path(name: str, value: Any) -> str:
    """A path as text."""
    if not isinstance(value, (str, os.PathLike)) or not _can_be_a_path(os.fspath(value)):
        raise InvalidParameter(f"{name} must be a path, got {shown(value)}")
    return os.fspath(value)


def _can_be_a_path(value: Any) -> bool:
    """Whether the system could have a file of that name; bytes that are no text are surrogates in it."""
    try:
        return isinstance(value, str) and 0 not in os.fsencode(value) and value != ""
    except UnicodeEncodeError:
        return False


def path_of_tables(name: str, value: Any) -> str:
    """A path as text, of a folder or file that polars writes: it takes only UTF-8."""
    return characters(name, path(name, value))


def path_text(path: str) -> str:
    """A path as UTF-8 can hold it: bytes that are no text are shown as escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidParameter(f"{name} must be True or False, got {shown(value)}")
    return value


def instance(name: str, value: Any, kind: type[T], how: str) -> T:
    """An object of a class; `how` says where one comes from."""
    if not isinstance(value, kind):
        raise InvalidParameter(f"{name} must be {how}, got {shown(value)}")
    return value


ANALYSIS = "an Analysis, which tcpfit.analyze and tcpfit.load give"


def analysis(value: Any, name: str = "the capture") -> Any:
    """An `Analysis`, or what has tables as it has."""
    if not is_analysis(value):
        raise InvalidParameter(f"{name} must be {ANALYSIS}, got {shown(value)}")
    return value


def analyses(value: Any, name: str = "the captures") -> Iterator[Any]:
    """Some of them, each looked at when it is its turn: they may be made one after the other."""
    if is_analysis(value):
        raise InvalidParameter(f"{name} must be a list of Analysis, got one alone; write [analysis]")
    return (analysis(each, f"each of {name}") for each in _held(name, value, "Analysis"))


def is_analysis(value: Any) -> bool:
    """Whether it has the tables that every `Analysis` has."""
    return hasattr(value, "flows") and hasattr(value, "rounds")


def flow_rows(capture: Any, flow: Any) -> pl.DataFrame:
    """The row of a flow in the table of the flows of an `Analysis`."""
    flows: pl.DataFrame = analysis(capture).flows
    number = _flow(flow)
    found = flows.filter(flows["flow"] == number) if 0 <= number < 2**32 else flows.clear()
    if found.is_empty():
        raise InvalidParameter(f"{capture.path} has no flow {number}; {_known(flows)}")
    return found


def flow_number(capture: Any, flow: Any) -> int:
    """The number of a flow that an `Analysis` has."""
    return int(flow_rows(capture, flow)["flow"][0])


def flow_numbers(capture: Any, flows: Any) -> list[int]:
    """Numbers of flows that an `Analysis` has."""
    numbers = [_flow(each) for each in several("flows", flows, "numbers of flows")]
    there: pl.DataFrame = capture.flows
    unknown = sorted(set(numbers) - set(there["flow"].to_list()))
    if unknown:
        raise InvalidParameter(f"{capture.path} has no flow {unknown[0]}; {_known(there)}")
    return numbers


def _flow(value: Any) -> int:
    number = _index(value)
    if number is None:
        raise InvalidParameter(f"a flow is named by its number in the table of flows, got {shown(value)}")
    return number


def _known(flows: pl.DataFrame) -> str:
    """Which flows there are."""
    numbers: list[int] = sorted(flows["flow"].to_list())
    if len(numbers) < 2:
        return f"its only flow is {numbers[0]}" if numbers else "no flow of it carried data"
    some = "" if numbers[-1] - numbers[0] < len(numbers) else f"{len(numbers)} from "
    return f"its flows are {some}{numbers[0]} to {numbers[-1]}"


def _index(value: Any) -> int | None:
    """A whole number of Python or numpy as an int; None for everything else."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
