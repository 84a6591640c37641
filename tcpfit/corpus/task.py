"""What a worker does: three kinds of task, each a dictionary that can be JSON, as its outcome can.

identify   hash files, which says what capture they hold
analyse    one capture, or a share of its flows, into a file of its result
compact    results and old parts of the data set into a new part

An outcome has `failed`, a status of `tcpfit.corpus.table.STATUSES`, and `reason` where the task could not be done.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from tcpfit.exceptions import CaptureError

Task = dict[str, Any]
Outcome = dict[str, Any]


def run(task: Task) -> Outcome:
    """Do a task; whatever a capture holds becomes an outcome, and only what lies in the data set's disk is raised."""
    return KINDS[task["kind"]](task)


def identify(task: Task) -> Outcome:
    """Content of each of `files`, and the time of their first packets where there are several."""
    from tcpfit.corpus.files import content_of, found

    contents = []
    for path in task["files"]:
        try:
            before = found(path)
            content = content_of(path)
            if found(path) != before:
                raise CaptureError(CHANGED)
        except CaptureError as error:
            return {"failed": "unreadable", "reason": str(error)}
        contents.append({"path": path, "size": before.size, "stamp": before.stamp, "content": content})
    return {"files": contents}


def analyse(task: Task) -> Outcome:
    """Analyse the capture in `files` (path, size, stamp) and write its result to `result`, or give it back
    in the outcome where that is None.

    `share` is (i, k): the i-th of k shares of the flows is ranked and diagnosed, which takes most of the time.
    `key`, in hexadecimal, puts pseudonyms in the place of addresses.
    """
    from tcpfit.corpus import result, settings, tables, trace
    from tcpfit.corpus.files import found

    paths = [path for path, *_ in task["files"]]
    key = None if task["key"] is None else bytes.fromhex(task["key"])
    try:
        read = trace.analyse(paths, settings.settings_of(task["settings"]), key)
        share, shares = task["share"]
        numbers = read.flows["flow"].to_list()[share::shares]
        facts = tables.facts_of(read)
        if key is not None:
            facts["warnings"] = [trace.without_path(said, paths) for said in facts["warnings"]]
        whole = result.Result(facts, tables.tables_of(read, numbers, task["capture"]))
        if any([path, (now := found(path)).size, now.stamp] != [path, *known] for path, *known in task["files"]):
            return {"failed": "unreadable", "reason": CHANGED}
    except CaptureError as error:
        whole = failure("rejected", trace.without_path(str(error), paths))
    except MemoryError:
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        said = type(error).__name__
        if key is None:  # or it may tell what the capture holds
            said += f": {' '.join(str(error).split())}"
        whole = failure("error", trace.without_path(said, paths))
    if whole.capture["status"] != "analysed" and (lost := _lost(task)) is not None:
        return {"failed": "unreadable", "reason": trace.without_path(lost, paths)}
    packed, capture = result.pack(whole), whole.capture
    outcome = {"status": capture["status"], "reason": capture.get("reason"), "weight": weight(capture)}
    if task["result"] is None:
        return outcome | {"result": base64.b85encode(packed).decode()}
    result.write(packed, Path(task["result"]))
    return outcome


def _lost(task: Task) -> str | None:
    """Why a failure says nothing of the capture: its files cannot be read to the end now, or hold something else."""
    from tcpfit.corpus.files import content_of, found, of_parts

    contents = []
    try:
        for path, *known in task["files"]:
            if [(now := found(path)).size, now.stamp] != known:
                return CHANGED
            contents.append(content_of(path))
    except CaptureError as error:
        return str(error)
    return None if of_parts(contents) == task["capture"] else CHANGED


def compact(task: Task) -> Outcome:
    """Write one part of the data set; see `tcpfit.corpus.part`."""
    from tcpfit.corpus import part

    return part.write(task)


def failure(status: str, reason: str) -> Any:
    """The result of a capture that was not analysed."""
    from tcpfit.corpus.result import Result

    return Result({"status": status, "reason": reason})


def weight(capture: dict[str, Any]) -> int:
    """About how many rows a capture has in the data set; a flow has some 40 with its parameters and models."""
    return 1 + 40 * int(capture.get("flows") or 0) + int(capture.get("events") or 0)


CHANGED = "it changed while it was read"

KINDS = {"identify": identify, "analyse": analyse, "compact": compact}
