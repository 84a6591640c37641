"""Timestamps absent: not offered, refused or taken out, where the flow would have used them.

**Claim**: why there are no timestamps, and what the flow had to do without: samples of the round trip from data sent
again (RFC 7323, 4) and knowing a late original from its copy (RFC 3522).
**Rule**, either of: (1) one of SYN and SYN-ACK lacks the option, and either the other has it, or ten segments at
least were sent again; (2) both have it, yet data segments without RST come without (RFC 7323, 3.2: every segment must
carry it), nine in ten at least.
**Evidence**: SYN and SYN-ACK; for (2) those segments. Whether an option was not offered, refused or taken out shows
only from some places: see `negotiation`.
**Remedy**: switch timestamps on, or stop the middlebox that removes them.
**Validation**: docs/diagnosis/timestamps-absent.md; tests/test_findings.py.
"""

from __future__ import annotations

import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.negotiation import absence, sure
from tcpfit.diagnosis.findings.view import RST, SYN, View, named

NAME = "timestamps-absent"


def find(view: View) -> Finding | None:
    handshake = view.handshake
    if handshake is None or not handshake.options_whole:
        return None
    asked, answered = handshake.syn["tsval"] is not None, handshake.syn_ack["tsval"] is not None
    why = absence(view, handshake, asked, answered, "timestamps")
    if why is None:
        return _removed(view, handshake.frames)
    # behind the loss the first copy is missing, and what was lost says how many were sent again
    again, sent = max(view["retransmitted_segments"], view["lost_segments"]), view["sent_segments"]
    resent = again >= 10
    if not asked and not resent or not sent:
        return None
    use = (
        f"{again} of {sent} sent segments were resends, and neither their round trips nor late originals can be told"
        if resent
        else "round trips are sampled only from data sent once"
    )
    return Finding(
        name=NAME,
        claim=f"There are no TCP timestamps: {why}; {use}.",
        frames=named(handshake.frames),
        display_filter=view.show("tcp.flags.syn == 1"),
        remedy="Switch timestamps (RFC 7323) on at the end that lacks them, or stop the middlebox that removes them.",
        confidence=sure(view, handshake, asked),
        seconds=None,
    )


def _removed(view: View, handshake: tuple[int, int]) -> Finding | None:
    """Timestamps were agreed, yet the data comes without."""
    if view.data is None:
        return None
    data = view.data.filter((pl.col("flags") & (SYN | RST) == 0) & ~pl.col("options_incomplete"))
    bare = data.filter(pl.col("tsval").is_null())
    if data.height < 10 or bare.height < 0.9 * data.height:
        return None
    return Finding(
        name=NAME,
        claim=f"SYN and SYN-ACK agree on TCP timestamps, yet {bare.height} of {data.height} data segments "
        "carry none: the "
        f"path takes the option out, or took it out of the SYN-ACK that {view['src']} sent or got.",
        frames=named([*handshake, *bare["frame"].head(4)]),
        display_filter=view.ahead("!tcp.options.timestamp.tsval"),
        remedy="Stop the middlebox that removes the option; a receiver may drop such segments (RFC 7323, 3.2).",
        confidence=0.9,
        seconds=None,
    )
