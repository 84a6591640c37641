"""What a corpus is analysed with. Content and settings together say which result a capture has."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import tcpfit
from tcpfit.exceptions import InvalidParameter
from tcpfit.schema import SCHEMA_VERSION

LAYOUT = 1
"""Version of the data set's layout and of the tables in `tcpfit.corpus.table`; raised when one changes its meaning."""


@dataclass(frozen=True)
class Settings:
    """Arguments of `tcpfit.analyze` and `Analysis.rank`, the same for every capture."""

    reader: str = "engine"
    vantage: str | None = None
    filter: str | None = None
    from_s: float | None = None
    to_s: float | None = None
    max_flows: int | None = None
    max_memory: int | None = None
    models: tuple[str, ...] | None = None
    rule: str = "one-rtt"
    block: int | None = None
    fit: tuple[str, ...] = ()
    anonymized: str | None = None
    """Fingerprint of the key that addresses and names are under (`tcpfit.anonymity`)."""

    def choices(self) -> dict[str, Any]:
        """The arguments of `Analysis.rank`."""
        return {"models": self.models, "rule": self.rule, "block": self.block, "fit": self.fit}

    def check(self) -> None:
        """Raise InvalidParameter for what no capture could be analysed with."""
        from tcpfit import engine, parameters, readers
        from tcpfit.ranking.variants import by_name, fitted_parameter

        if self.reader not in readers.READERS:
            raise InvalidParameter(f"reader must be one of {', '.join(readers.READERS)}, got {self.reader!r}")
        if self.from_s is not None and self.to_s is not None and self.to_s <= self.from_s:
            raise InvalidParameter(f"the end must come after the start, got {self.from_s:g} s to {self.to_s:g} s")
        if self.rule not in parameters.RULES:
            raise InvalidParameter(f"rule must be one of {', '.join(parameters.RULES)}, got {self.rule!r}")
        if self.block is not None and self.block < 1:
            raise InvalidParameter(f"a block has at least 1 event, got {self.block}")
        engine.Tracker(vantage=self.vantage, filter=self.filter, from_s=self.from_s, to_s=self.to_s)
        if self.models is not None:
            by_name(self.models)
        for text in self.fit:
            fitted_parameter(text)

    def key(self) -> str:
        """A name for all that a result depends on besides the capture: settings, models, versions."""
        from tcpfit.models import catalogue

        models = sorted(catalogue()) if self.models is None else None
        facts = [LAYOUT, SCHEMA_VERSION, tcpfit.__version__, asdict(self), models]
        return hashlib.blake2b(json.dumps(facts).encode(), digest_size=8).hexdigest()

    def public(self) -> Settings:
        """What a manifest says of them: a filter may name addresses."""
        return self if self.anonymized is None or self.filter is None else replace(self, filter="not shown")

    def given(self) -> dict[str, Any]:
        """The settings that are not the default."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}


def settings_of(facts: dict[str, Any]) -> Settings:
    """Settings from their form in JSON, which has lists for tuples."""
    given: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in facts.items()}
    return Settings(**given)
