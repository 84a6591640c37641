"""What a corpus is analysed with. Content and settings together say which result a capture has."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import tcpfit
from tcpfit import readers
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

    def asked(self) -> readers.Settings:
        """The arguments of `tcpfit.readers.read`."""
        return readers.Settings(
            self.vantage, self.filter, self.from_s, self.to_s, max_flows=self.max_flows, max_memory=self.max_memory
        )

    def checked(self) -> Settings:
        """The same with numbers of Python; raises InvalidParameter for what no capture could be analysed with."""
        from tcpfit import engine
        from tcpfit.ranking.variants import chosen

        asked = readers.checked(self.reader, self.asked())
        engine.Tracker(vantage=asked.vantage, filter=asked.filter, from_s=asked.from_s, to_s=asked.to_s)
        choices = chosen(**self.choices())
        models = None if self.models is None else tuple(choices["models"])
        return replace(
            self,
            max_flows=asked.max_flows,
            max_memory=asked.max_memory,
            models=models,
            block=choices["block"],
            fit=choices["fit"],
        )

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
