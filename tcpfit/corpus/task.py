"""What a worker does: three kinds of task, each a dictionary that can be JSON, as its outcome can.

identify   hash the files of traces, which says what captures they hold
analyse    captures, or a share of the flows of one, into a file of its result each
compact    results and old parts of the data set into a new part

The first two are of several at once, `each` of which has an outcome in `each`: captures of a few flows take together
hardly longer than one. An outcome has `failed`, a status of `tcpfit.corpus.table.STATUSES`, and `reason` where the task
could not be done.
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
    """Content of each of the files of each trace, and the time of their first packets where there are several."""
    return {"each": [_identified(paths) for paths in task["each"]]}


def _identified(paths: list[str]) -> Outcome:
    from tcpfit.corpus.files import content_of, found

    contents = []
    for path in paths:
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
    """Analyse the captures in `each`: `capture`, its hash; `files` (path, size, stamp); `result`, the file to write.

    `share` is (i, k): the i-th of k shares of the flows is ranked and diagnosed, which takes most of the time.
    `key`, in hexadecimal, puts pseudonyms in the place of addresses. With `bring` results are given back in the
    outcome, and no file is written.
    """
    from tcpfit.corpus import result
    from tcpfit.corpus.together import paths_of, results
    from tcpfit.corpus.trace import without_path

    outcomes: dict[str, Outcome] = {}
    for asked, whole in results(task):
        capture, status = whole.capture, whole.capture["status"]
        if (lost := _lost(asked, analysed=status == "analysed")) is not None:
            outcomes[asked["capture"]] = {"failed": "unreadable", "reason": without_path(lost, paths_of(asked))}
            continue
        outcome: Outcome = {"status": status, "reason": capture.get("reason"), "weight": weight(capture)}
        packed = result.pack(whole)
        if task["bring"]:
            outcome["result"] = base64.b85encode(packed).decode()
        else:
            result.write(packed, Path(asked["result"]))
        outcomes[asked["capture"]] = outcome
    return {"each": [outcomes[asked["capture"]] for asked in task["each"]]}


def _lost(asked: dict[str, Any], analysed: bool) -> str | None:
    """Why a result says nothing of the capture: its files are gone or others now. One that was not analysed is looked
    at again: its files may not be read to the end any more, or hold something else.
    """
    from tcpfit.corpus.files import content_of, found, of_parts

    contents = []
    try:
        for path, *known in asked["files"]:
            if [(now := found(path)).size, now.stamp] != known:
                return CHANGED
            if not analysed:
                contents.append(content_of(path))
    except CaptureError as error:
        return str(error)
    return None if analysed or of_parts(contents) == asked["capture"] else CHANGED


def compact(task: Task) -> Outcome:
    """Write one part of the data set; see `tcpfit.corpus.part`."""
    from tcpfit.corpus import part

    return part.write(task)


def weight(capture: dict[str, Any]) -> int:
    """About how many rows a capture has in the data set; a flow has some 40 with its parameters and models."""
    return 1 + 40 * int(capture.get("flows") or 0) + int(capture.get("events") or 0)


CHANGED = "it changed while it was read"

KINDS = {"identify": identify, "analyse": analyse, "compact": compact}
