"""Findings: what users ask of a slow flow, one rule a module, each silent where the capture does not show it.

A module holds `find(view) -> Finding | None`; its docstring says claim, rule, evidence, remedy, limits and how the
rule was validated. `docs/diagnosis` has a page for each. Rules that look at packets need `analyze(...,
segments=True)` and are silent without: `find` asks for it, a report of saved tables says that it lacks them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings import (
    ack_loss,
    ack_thinning,
    broken_off,
    bufferbloat,
    delayed_ack,
    duplicated_capture,
    handoffs,
    policer,
    sack,
    serial_requests,
    shallow_buffer,
    slow_ack_path,
    slow_receiver,
    small_mss,
    spurious_timeouts,
    syn_loss,
    timestamps,
    window_scaling,
)
from tcpfit.diagnosis.findings.view import View

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis

RULES: dict[str, Callable[[View], Finding | None]] = {
    module.NAME: module.find
    for module in (
        syn_loss,
        broken_off,
        small_mss,
        window_scaling,
        sack,
        timestamps,
        slow_receiver,
        delayed_ack,
        serial_requests,
        policer,
        shallow_buffer,
        bufferbloat,
        spurious_timeouts,
        handoffs,
        ack_loss,
        ack_thinning,
        slow_ack_path,
        duplicated_capture,
    )
}
"""Every rule by the name of its finding."""


def find(analysis: Analysis, flow: int) -> list[Finding]:
    """What the rules find in a flow of a capture, the costliest first, then the surest.

    Of a capture that holds everything twice nothing else is said: copies look like resends and duplicate ACKs.
    Raises InvalidParameter for a flow that the capture does not have, and without the segments.
    """
    view = View(analysis, flow)
    analysis.check_segments()
    return find_in(view)


def find_in(view: View) -> list[Finding]:
    """The same of what is there: rules that look at packets say nothing where those are not."""
    if (copies := duplicated_capture.find(view)) is not None:
        return [copies]
    others = [rule for rule in RULES.values() if rule is not duplicated_capture.find]
    found = [finding for rule in others if (finding := rule(view)) is not None]
    return sorted(found, key=lambda finding: (-(finding.seconds or 0.0), -finding.confidence))
