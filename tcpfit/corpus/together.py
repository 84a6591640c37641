"""Captures that a worker analyses together: what an analysis costs however few its flows are is paid once for all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tcpfit.analysis import FLOWS_AT_A_TIME, Analysis
from tcpfit.corpus import settings, trace
from tcpfit.corpus.result import Result, failure
from tcpfit.corpus.tables import facts_of, tables_of, tables_of_each
from tcpfit.exceptions import CaptureError

Asked = dict[str, Any]
"""A capture of a task, see `tcpfit.corpus.task.analyse`."""

Opened = list[tuple[Asked, Analysis]]


def results(task: dict[str, Any]) -> Iterator[tuple[Asked, Result]]:
    """The captures of a task with the result of each; whatever a capture holds becomes a result.

    Raises MemoryError.
    """
    chosen = settings.settings_of(task["settings"])
    key = None if task["key"] is None else bytes.fromhex(task["key"])
    opened: Opened = []
    flows = 0
    for asked in task["each"]:
        try:
            analysis = trace.analyse(paths_of(asked), chosen, key)
        except MemoryError:
            raise
        except BaseException as error:  # a panic in Rust is no Exception
            yield asked, _failed(asked, error, key)
            continue
        if flows + analysis.flows.height > FLOWS_AT_A_TIME:
            yield from _in_one(opened, key)
            opened, flows = [], 0
        opened.append((asked, analysis))
        flows += analysis.flows.height
    yield from _in_one(opened, key)


def paths_of(asked: Asked) -> list[str]:
    """The files of a capture."""
    return [path for path, *_ in asked["files"]]


def _in_one(opened: Opened, key: bytes | None) -> list[tuple[Asked, Result]]:
    try:
        return list(_tabled(opened, key))
    except MemoryError:
        raise
    except BaseException as error:
        if len(opened) == 1:
            ((asked, _),) = opened
            return [(asked, _failed(asked, error, key))]
    return [found for one in opened for found in _in_one([one], key)]  # which of them it is, each by itself tells


def _tabled(opened: Opened, key: bytes | None) -> Iterator[tuple[Asked, Result]]:
    if not opened:
        return
    asked, analysis = opened[0]
    share, shares = asked["share"]
    if shares > 1:
        numbers = analysis.flows["flow"].to_list()[share::shares]
        tables = iter([tables_of(analysis, numbers, asked["capture"])])
    else:
        tables = tables_of_each({asked["capture"]: analysis for asked, analysis in opened})
    for (asked, analysis), own in zip(opened, tables, strict=True):
        facts = facts_of(analysis)
        if key is not None:
            facts["warnings"] = [trace.without_path(said, paths_of(asked)) for said in facts["warnings"]]
        yield asked, Result(facts, own)


def _failed(asked: Asked, error: BaseException, key: bytes | None) -> Result:
    if isinstance(error, CaptureError):
        return failure("rejected", trace.without_path(str(error), paths_of(asked)))
    said = type(error).__name__
    if key is None:  # or it may tell what the capture holds
        said += f": {' '.join(str(error).split())}"
    return failure("error", trace.without_path(said, paths_of(asked)))
