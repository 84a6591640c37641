"""What is said of a flow in sentences, the same for a terminal and for a page; a flow is one of the document's."""

from __future__ import annotations

from typing import Any

from tcpfit.ranking.verdict import CAPTURE_LOSS
from tcpfit.report import words

DOUBTFUL = f"?: the capture missed more than {CAPTURE_LOSS:.0%} of the flow's data; p is not to be trusted"
"""What stands below a table in which `loss_rate` marked a flow."""


def how_seen(flow: dict[str, Any]) -> str:
    """Where the flow was captured, what its handshake agreed on, and how its window grows."""
    vantage, handshake, control = flow["vantage"], flow["handshake"], flow["congestion_control"]
    seen = {"middle": "captured on the path", "unknown": "captured at an unknown place"}
    parts = [seen.get(vantage["position"], f"captured at the {vantage['position']}")]
    if vantage["position"] == "middle" and vantage["fraction"] is not None:
        parts.append(f"{vantage['fraction']:.0%} of the round trip between there and the sender")
    if handshake["mss_bytes"] is not None:
        parts.append(f"MSS {handshake['mss_bytes']}")
    if handshake["rtt_s"] is not None:
        parts.append(f"handshake {words.seconds(handshake['rtt_s'])}")
    parts += [
        word
        for key, word in (("mptcp", "MPTCP"), ("sack_permitted", "SACK"), ("timestamps", "timestamps"), ("ecn", "ECN"))
        if handshake[key]
    ]
    if control["family"] != "unknown":
        parts.append(f"grows like {control['family']}")
    return ", ".join(parts)


def _of_segments(flow: dict[str, Any]) -> str:
    """Of what was sent: a capture behind the place of a loss has the lost segments not among those that it saw."""
    counts = flow["counts"]
    if counts["lost_segments"] > counts["data_segments"]:  # nearly all of a sampled capture
        return f"{lost(flow)} segments lost beside {counts['data_segments']} that were seen"
    text = f"{lost(flow)} of {counts['sent_segments']} sent segments lost"
    where = lost_before(flow["vantage"]["position"], counts["lost_segments"], counts["lost_upstream"])
    return f"{text} ({where})" if where else text


def lost_before(position: str, lost: int | None, before: int | None) -> str:
    """On which side of a capture point on the path segments were lost; empty elsewhere, or where none was."""
    return f"{before} of them before the capture point" if position == "middle" and lost and before is not None else ""


def what_happened(flow: dict[str, Any]) -> str:
    """How much was sent at which rate, and how often something happened to it."""
    counts = flow["counts"]
    lasted = words.seconds(flow["duration_s"])
    if one_flight(flow):
        moved = f"{words.size(counts['unique_bytes'])} in one flight of {lasted} at the receiver, no transfer's time"
    else:
        moved = f"{volume(counts)} in {lasted}, goodput {goodput(flow)}"
    parts = [moved, _of_segments(flow)]
    for key, noun in (
        ("loss_events", "loss event"),
        ("fast_recoveries", "fast recovery"),
        ("timeouts", "timeout"),
        ("tail_loss_probes", "tail loss probe"),
        ("spurious_retransmissions", "needless retransmission"),
        ("reorder_events", "reordering event"),
        ("duplicated_segments", "copy"),
        ("zero_window_episodes", "zero window"),
        ("mark_events", "window with congestion marks"),
    ):
        if counts[key]:
            plural = {
                "fast recovery": "fast recoveries",
                "copy": "copies",
                "window with congestion marks": "windows with congestion marks",
            }.get(noun, noun + "s")
            parts.append(f"{counts[key]} {noun if counts[key] == 1 else plural}")
    if flow["ending"]["how"].startswith("reset"):
        by = flow["ending"]["how"].removeprefix("reset-by-")
        parts.append(f"reset by the {by} in frame {flow['ending']['reset_frame']}")
    return ", ".join(parts)


def volume(counts: dict[str, Any]) -> str:
    """The bytes that the goodput is of: where the capture missed some of what was acknowledged, those too."""
    seen, acknowledged = (words.size(counts[name]) for name in ("unique_bytes", "acked_bytes"))
    if not counts["data_segments"]:
        return f"{acknowledged} acknowledged"
    if (counts["acked_bytes"] or 0) > counts["unique_bytes"] and seen != acknowledged:
        return f"{acknowledged} acknowledged, {seen} of them seen,"
    return seen


def one_flight(flow: dict[str, Any]) -> bool:
    """Did the flow's data pass the receiver within a round trip? The time between them is none of a transfer."""
    trip = flow["parameters"]["rtt_min"]["value"] or flow["handshake"]["rtt_s"] or 0.0
    return bool(flow["vantage"]["position"] == "receiver" and flow["duration_s"] < trip)


def goodput(flow: dict[str, Any]) -> str:
    """The rate of what arrived; none where one flight passed the receiver."""
    return words.NONE if one_flight(flow) else words.rate(flow["observed"]["goodput_bps"])


def lost(flow: dict[str, Any]) -> str:
    """How many segments were lost, or from how few to how many where the capture does not tell."""
    interval = flow["count_ranges"].get("lost_segments")
    if interval:
        return f"{interval[0]} to {interval[1]}"
    lost = flow["counts"]["lost_segments"]
    return words.NONE if lost is None else str(lost)


def missed(flow: dict[str, Any]) -> float:
    """Share of the flow's data segments that the capture missed."""
    missing = flow["counts"]["missing_segments"] or 0
    return float(missing / max(flow["counts"]["data_segments"] + missing, 1))


def loss_rate(flow: dict[str, Any]) -> str:
    """p, marked where the capture missed too much for it."""
    p = flow["parameters"]["p"]["value"]
    return words.number(p) + ("?" if p is not None and missed(flow) > CAPTURE_LOSS else "")


def distrusted(flow: dict[str, Any]) -> str | None:
    """What not to trust where the capture missed too much; None where it did not."""
    share = missed(flow)
    if share <= CAPTURE_LOSS:
        return None
    return (
        f"the capture missed {words.significant(100 * share)}% of the data segments: p, m, q and what else rests on "
        "losses are not to be trusted"
    )


def doubts(models: list[dict[str, Any]]) -> list[str]:
    """What speaks against models, a sentence a reason: of a model that does not apply, the first reason."""
    against: dict[str, list[str]] = {}
    weaker: dict[str, list[str]] = {}
    unranked: dict[str, list[str]] = {}
    for model in models:
        for reason in model["reasons"] if model["applicable"] else model["reasons"][:1]:
            group = against if not model["applicable"] else unranked if model["rank"] is None else weaker
            group.setdefault(reason.removeprefix("weakened: "), []).append(model["name"])
    sentences = [f"does not apply: {', '.join(names)} ({reason})" for reason, names in against.items()]
    sentences += [f"weakened: {', '.join(names)} ({reason})" for reason, names in weaker.items()]
    return sentences + [f"not ranked: {', '.join(names)} ({reason})" for reason, names in unranked.items()]
