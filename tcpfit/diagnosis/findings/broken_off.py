"""Broken off: a reset ended the connection while data were under way.

**Claim**: from whose address the RST came, how much data it cut off, and what kind of a reset it is.
**Rule**: the connection's first RST came before both ends had sent a FIN, and data of one end, sent before it or in
ignorance of it, were never acknowledged. A reset of a connection with nothing under way is silent: many hosts close so.
Five kinds are told apart. *Forged*: the TTL is not that of the address's other packets (three at least, all the same),
or the address went on sending. *After the end*: the address had sent a FIN, and data came to it still. *Given
up*: the sender's timer had run out three times or more since anything had come (RFC 9293, 3.8.3). *Aborted*: the RST
has an ACK, so no segment had asked for it (RFC 9293, 3.10.4 and 3.10.7.1). *Unknown connection*: it has none, so it
answers a segment for which the host had no connection.
**Evidence**: frames of the RST and of the last data that it cut off. Next to the receiver of the last data all may
have been acknowledged when the RST came; then nothing was cut off there, and the rule is silent. A forged RST with the
right TTL shows only where the address's later packets pass.
**Remedy**: by the kind: an application, a middlebox that forgets or forges, a host that was started again.
**Validation**: docs/diagnosis/broken-off.md; tests/test_findings.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.view import ACK, FIN, RST, View, duration, named, unwrapped

NAME = "broken-off"
SAME = 3
"""Packets of the address that must all have one TTL for another to say something."""
WENT_ON = 2
"""Packets with the number of the reset or a higher one that show that the address went on."""
GIVEN_UP = 3
"""Expiries of the timer after which a reset is the end of trying (RFC 9293, 3.8.3: R2 is more)."""
QUIET_S = 30.0
"""A silence worth naming: no table of connections forgets sooner."""


def find(view: View) -> Finding | None:
    if view["reset_frame"] is None or not view["ending"].startswith("reset") or not view.larger:
        return None
    ends = view.both_ways
    if ends is None:
        return None
    by = 0 if view["ending"] == "reset-by-sender" else 1
    own, other = ends[by], ends[1 - by]
    reset = own.filter(pl.col("frame") == view["reset_frame"]).to_dicts()[0]
    cut = [_cut_off(own, other, reset["frame"]), _cut_off(other, own, reset["frame"])]
    if not sum(count for count, _ in cut):
        return None
    hosts = view.host("src"), view.host("dst")
    address, peer = hosts[by], hosts[1 - by]
    under_way = " and ".join(
        f"{count:,} bytes of {whose}" for whose, (count, _) in zip(("its own", peer), cut, strict=True) if count
    )
    expiries = view.of("timeout").filter(pl.col("time_ns") > other["time_ns"][-1]).height if by == 0 else 0
    kind, remedy, confidence = _kind(own, reset, expiries, address, peer)
    return Finding(
        name=NAME,
        claim=f"A reset from {address} broke the connection off with {under_way} under way: {kind}.",
        frames=named([reset["frame"], *(frame for _, frame in cut)]),
        display_filter=view.show("tcp.flags.reset == 1"),
        remedy=remedy,
        confidence=confidence,
        seconds=None,
    )


def _cut_off(sent: pl.DataFrame, back: pl.DataFrame, frame: int) -> tuple[int, int | None]:
    """Bytes sent that no ACK before the reset covers (its own counts), and the last frame of them."""
    data = sent.filter(pl.col("payload") > 0)
    acks = back.filter((pl.col("flags") & ACK > 0) & (pl.col("frame") <= frame))
    if data.is_empty() or acks.is_empty():
        return 0, None
    base = int(data["seq"][0])
    rights = unwrapped(data["seq"].to_numpy(), base) + data["payload"].to_numpy()
    edge = int(unwrapped(acks["ack"].to_numpy(), base).max())
    beyond = rights > edge
    if not beyond.any():
        return 0, None
    return int(rights.max()) - edge, int(data["frame"].to_numpy()[np.flatnonzero(beyond)[-1]])


def _kind(own: pl.DataFrame, reset: dict[str, Any], expiries: int, address: str, peer: str) -> tuple[str, str, float]:
    """What kind of a reset it is, what would help, how sure that is; `expiries` of the timer since the last answer."""
    others = own.filter(pl.col("flags") & RST == 0)
    before = others.filter(pl.col("frame") < reset["frame"])
    # what was sent before the reset may come after it, but not what has a higher number
    newer = pl.col("seq").cast(pl.Int64) - reset["seq"]
    after = others.filter((pl.col("frame") > reset["frame"]) & ((newer % 2**32) < 2**31))
    hops = before["ttl"].unique()
    if before.height >= SAME and len(hops) == 1 and reset["ttl"] != hops[0]:
        said = f"it has a TTL of {reset['ttl']}, and all packets of that address before it had {hops[0]}"
        return f"{said}, so something on the path sent it", _FORGED, 0.9
    if after.height >= WENT_ON:
        return "that address went on sending, so something else sent it", _FORGED, 0.9
    if before.filter(pl.col("flags") & FIN > 0).height:
        return f"it had sent a FIN before, and took no more data of {peer}", _AFTER_THE_END.format(address), 0.9
    if expiries >= GIVEN_UP:
        said = f"its timer had run out {expiries} times without an answer, and it gave up"
        return said, _GIVEN_UP.format(peer), 0.9
    if reset["flags"] & ACK:
        said = "no segment had asked for it, so its application gave up or closed with data unread"
        return said, _ABORTED.format(address), 0.8
    quiet_s = (reset["time_ns"] - before["time_ns"][-1]) / 1e9 if before.height else 0.0
    silence = f" after {duration(quiet_s)} of silence" if quiet_s >= QUIET_S else ""
    return f"it answers data for which that host no longer had a connection{silence}", _UNKNOWN.format(address), 0.8


_FORGED = (
    "Find the firewall, filter or balancer between the capture and that address which resets connections; its distance "
    "in hops is in the TTL."
)
_AFTER_THE_END = (
    "Find out why {} closed before all data had come: a cancelled transfer, a limit of time or size, or a protocol in "
    "which the two ends disagree who is to speak."
)
_GIVEN_UP = "Find out why nothing came from {} any more: that host, or the path in either direction, was gone."
_ABORTED = (
    "Look at the application on {}: it crashed, was ended, ran into its own limit of time, or closed the connection "
    "without reading what had come."
)
_UNKNOWN = (
    "Find out who forgot the connection at {}: the host or its service was started again, or a translator or balancer "
    "in front of it dropped an idle entry; keep-alives below that time keep it."
)
