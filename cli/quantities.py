"""Quantities as people write them on a command line: 100ms, 64KiB, 20segments, 10Mbit/s, 1%."""

from __future__ import annotations

import math
import re

import click

QUANTITY = r"(?ai)([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|none)\s*([a-zµ%/]*)"  # compiled at first use

SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
BYTES = {"B": 1.0, "byte": 1.0, "bytes": 1.0} | {
    f"{prefix}{unit}": factor
    for powers, unit in (({"k": 1e3, "M": 1e6, "G": 1e9}, "B"), ({"K": 2.0**10, "M": 2.0**20, "G": 2.0**30}, "iB"))
    for prefix, factor in powers.items()
}
BITS_PER_S = {
    f"{prefix}{unit}": factor
    for prefix, factor in {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}.items()
    for unit in ("bit/s", "b/s", "bps")
}
SEGMENTS = ("segment", "segments")

KINDS = {  # unit of a parameter: what it is, and how one is written
    "s": ("a time", "100ms, 0.1s or 100us"),
    "segments": ("a number of segments", "20, 20segments or 64KiB"),
    "segments/s": ("a rate", "100segments/s or 10Mbit/s"),
    "1": ("a number", "0.01 or 1%"),
    "bytes": ("a number of bytes", "1460 or 1460B"),
}


def quantity(text: str, unit: str, mss: float, *, plain: bool = True) -> float:
    """The value in `unit` of a text such as 100ms; bytes and bits are counted in segments of `mss` bytes.

    Without `plain` the text has to name its unit. Raises `click.UsageError` for what is no such quantity.
    """
    match = re.fullmatch(QUANTITY, text.strip())
    kind, examples = KINDS.get(unit, (f"a number of {unit}", "0.4"))
    if match is None:
        raise click.UsageError(f"{text!r} is not {kind}; write {examples}")
    number, suffix = math.inf if match[1].lower() == "none" else float(match[1]), match[2]
    if not suffix and (plain or math.isinf(number)):
        return number
    if not suffix:
        raise click.UsageError(f"{text!r} has no unit; write {text.strip()}B for bytes or {text.strip()}segments")
    factor = _factor(suffix, unit, mss)
    if factor is None:
        raise click.UsageError(f"{text!r} is not {kind}; write {examples}")
    return number * factor


def _factor(suffix: str, unit: str, mss: float) -> float | None:
    """What the number before the suffix is multiplied with, or None where the suffix is of another kind."""
    if unit == "s":
        return SECONDS.get(suffix)
    if unit == "1":
        return 0.01 if suffix == "%" else None
    if unit == "bytes":
        return _bytes(suffix)
    if unit == "segments":
        return 1.0 if suffix in SEGMENTS else _divided(_bytes(suffix), mss)
    if unit == "segments/s":
        return 1.0 if suffix.removesuffix("/s") in SEGMENTS else _divided(BITS_PER_S.get(suffix), 8 * mss)
    return 1.0 if suffix == unit else None


def _bytes(suffix: str) -> float | None:
    return BYTES.get(suffix, BYTES.get("k" + suffix[1:]) if suffix == "KB" else None)


def _divided(factor: float | None, by: float) -> float | None:
    return None if factor is None else factor / by
