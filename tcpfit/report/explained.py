"""An explanation (`tcpfit.report.explanation`) for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from tcpfit.report import words
from tcpfit.report.evidence import ordinal
from tcpfit.report.listing import details
from tcpfit.report.plain import plain

FRAMES = 8
"""Frames with the same bytes that are named; more are counted."""


def show(explanation: dict[str, Any], out: Console) -> None:
    """Print what the frame is, then every event that names it."""
    segment = explanation["segment"]
    place = f"frame {explanation['frame']} of {plain(explanation['capture'])}"
    if not explanation["events"] and segment["left"] is None:
        _say(f"{place} {_in_a_sentence(segment)}", out, 0)
        return
    _say(place, out, 0, "bold")
    ends = " > ".join(words.endpoint(segment[end], segment[f"{end}_port"]) for end in ("src", "dst"))
    _say(f"{explanation['time_s']:.6f} s after the start, {ends}", out, 2)
    for sentence in _sentences(segment):
        _say(sentence, out, 2)
    if not explanation["events"]:
        _say("no event names this frame: nothing shows that anything was wrong with it", out, 2)
    said: set[str] = set()
    for account in explanation["events"]:
        out.print()
        _event(account, segment, said, out)


def _say(sentence: str, out: Console, indent: int, style: str = "", head: str = "") -> None:
    """A sentence, below itself where it takes several lines, behind a word that stands out."""
    indent += len(head)
    for number, line in enumerate(Text(sentence, style=style).wrap(out, max(20, out.width - indent))):
        line.rstrip()
        start = f"{head:>{indent}}" if number == 0 else " " * indent
        out.print(Text(start, style="bold" if head else "").append_text(line), soft_wrap=True)


def _in_a_sentence(segment: dict[str, Any]) -> str:
    if segment["flow"] is None and segment["reverse_flow"] is None:
        return f"is a segment ({_flags(segment)}) of a connection that carried no data: it has no flow and no events"
    return f"is a segment without data ({_flags(segment)}){_ack(segment)}; no event names it"


def _sentences(segment: dict[str, Any]) -> Iterator[str]:
    if segment["left"] is None:
        yield f"{_flags(segment)} without data{_ack(segment)}"
        return
    seen = {"sender": "at the sender", "receiver": "at the receiver", "middle": "on the path"}
    place = seen.get(segment["vantage"], "at an unknown place")
    yield f"flow {segment['flow']}, captured {place}: bytes {segment['left']}-{segment['right']}{_copies(segment)}"
    yield _covered(segment)
    if segment["sack"] and segment["reverse_flow"] is not None:
        yield f"an ACK too{_ack(segment)}"


def _flags(segment: dict[str, Any]) -> str:
    return " ".join(segment["flags"]) or "no flags"


def _copies(segment: dict[str, Any]) -> str:
    named = {"first": ", here for the first time", "again": ", here again", "partly again": ", some of them here again"}
    copies = [*segment["earlier_frames"], *segment["later_frames"]]
    some = [f"frame {copy['frame']} ({_distance(copy['seconds'])})" for copy in copies[:FRAMES]]
    more = f" and {len(copies) - FRAMES} more" if len(copies) > FRAMES else ""
    return named[segment["transmission"]] + (f"; also in {', '.join(some)}{more}" if some else "")


def _covered(segment: dict[str, Any]) -> str:
    """Which ACK covers the bytes; it need not answer this frame, of which there may be copies."""
    acked = segment["acked_by"]
    if not acked:
        return "no ACK after it covers all its bytes"
    text = f"the first ACK after it that covers all its bytes is frame {acked['frame']}, {_distance(acked['seconds'])}"
    copies = [copy for copy in (*segment["earlier_frames"], *segment["later_frames"]) if copy["frame"] < acked["frame"]]
    return text + (", which may answer another frame with them" if copies else "")


def _ack(segment: dict[str, Any]) -> str:
    if segment["acked"] is None or segment["reverse_flow"] is None:
        return ""
    text = f" that acknowledges the bytes of flow {segment['reverse_flow']} below {segment['acked']}"
    if segment["duplicate_ack"]:
        text += f", for the {ordinal(segment['duplicate_ack'] + 1)} time"
    if segment["sack"]:
        text += f", SACK {', '.join(f'{left}-{right}' for left, right in segment['sack'])}"
    return text


def _distance(seconds: float) -> str:
    if not seconds:
        return "at the same time"
    return f"{words.seconds(abs(seconds))} {'later' if seconds > 0 else 'earlier'}"


def _event(account: dict[str, Any], segment: dict[str, Any], said: set[str], out: Console) -> None:
    """One event; what was said of an event before is not said again."""
    event, evidence = account["event"], account["evidence"]
    title = f"{event['kind']}, {event['reason']}"
    if account["names_it_as"] == "cause_frame":
        title = f"proof of {title}" + ("" if event["frame"] is None else f", of frame {event['frame']}")
    if event["flow"] != segment["flow"]:
        title += f", of flow {event['flow']}"
    _say(title, out, 2, "bold")

    def say_once(head: str, sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            _say(sentence, out, 4, head=head)

    say_once("", account["what"])
    _say(f"bytes {details(event)}; confidence {event['confidence']:.2f}", out, 4)
    say_once("rule: ", account["rule"] + (f" ({account['source']})" if account["source"] else ""))
    for entry in evidence["frames"]:
        place = "" if entry["frame"] is None else f"frame {entry['frame']}, {_distance(entry['seconds'])}: "
        say_once("evidence: ", place + entry["text"])
    state = _state(evidence)
    if state:
        _say(state, out, 4, head="state: ")
    for other in account["alternatives"]:
        say_once("or else: ", f"{other['instead']}. Told by: {other['told_by']}.")


def _state(evidence: dict[str, Any]) -> str:
    parts = []
    if evidence["timer_s"] is not None:
        parts.append(f"timer {words.seconds(evidence['timer_s'])}")
    if evidence["rtt_s"] is not None:
        parts.append(f"round trip {words.seconds(evidence['rtt_s'])}")
    if evidence["flight"] is not None:
        parts.append(f"flight {words.plural(round(evidence['flight']), 'segment')}")
    if evidence["phase"] is not None:
        parts.append(f"phase {evidence['phase']}")
    return ", ".join(parts)
