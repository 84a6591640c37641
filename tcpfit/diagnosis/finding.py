"""One thing that is wrong with a flow or its path, with what proves it and what would help."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What a rule of `tcpfit.diagnosis.findings` found in one flow.

    `claim` is one sentence with the numbers; `frames` are the frames that show it (Wireshark's numbers, at most a few
    dozen); `display_filter` shows them in Wireshark; `confidence` lies in 0..1; `seconds` is the time that it cost the
    flow, None where the capture does not show it.
    """

    name: str
    claim: str
    frames: tuple[int, ...]
    display_filter: str
    remedy: str
    confidence: float
    seconds: float | None
