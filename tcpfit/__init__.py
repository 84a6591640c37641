"""tcpfit: which TCP throughput model explains a flow, and why.

>>> import tcpfit
>>> tcpfit.analyze("capture.pcap").verdicts          # doctest: +SKIP

Names are looked up when they are first used, so that ``import tcpfit.models`` needs nothing but numpy and scipy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpfit.exceptions import CaptureError, InvalidParameter, TcpfitError

if TYPE_CHECKING:
    from tcpfit.analysis import Analysis, analyze, load
    from tcpfit.ranking.across import rank
    from tcpfit.ranking.dynamics import course
    from tcpfit.ranking.short import rank_short, transfers

__version__ = "0.1.0"

__all__ = [
    "Analysis",
    "CaptureError",
    "InvalidParameter",
    "TcpfitError",
    "__version__",
    "analyze",
    "course",
    "load",
    "rank",
    "rank_short",
    "transfers",
]

_MODULES = (
    "annotation",
    "anonymity",
    "comparison",
    "corpus",
    "diagnosis",
    "models",
    "parameters",
    "ranking",
    "readers",
    "report",
    "schema",
    "segment_file",
)

_LAZY = {
    "Analysis": "tcpfit.analysis",
    "analyze": "tcpfit.analysis",
    "course": "tcpfit.ranking.dynamics",
    "load": "tcpfit.analysis",
    "rank": "tcpfit.ranking.across",
    "rank_short": "tcpfit.ranking.short",
    "transfers": "tcpfit.ranking.short",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for (PEP 562)."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"tcpfit.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'tcpfit' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
