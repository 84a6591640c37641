"""Kinds of option values that several verbs share."""

from __future__ import annotations

import re

import click

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d*)?|\.\d+)(ms|s)?)?")


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
