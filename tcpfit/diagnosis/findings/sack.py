"""SACK absent: several losses of one window were repaired one a round trip, or by the timer.

**Claim**: why there was no SACK, and the loss events of two or more losses that had to do without.
**Rule**, either of: (1) one of SYN and SYN-ACK lacks SACK-permitted (RFC 2018, 2) and the flow had a loss event with
two or more losses, the case where SACK helps (with one loss NewReno repairs as fast); (2) both have it, the receiver
sent ten duplicate ACKs at least, and not one ACK of the connection carries a SACK block: a receiver that agreed must
send one with every ACK of out-of-order data (RFC 2018, 4), so the blocks were taken out, or the SYN-ACK's option was.
**Evidence**: SYN and SYN-ACK; for (2) the duplicate ACKs. (2) shows at the sender when the path removes the blocks;
next to the receiver it shows only where the receiver never learned of the agreement.
**Remedy**: switch SACK on, or stop the middlebox that removes it.
**Validation**: docs/diagnosis/sack-absent.md; tests/test_findings.py.
"""

from __future__ import annotations

import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.negotiation import absence, sure
from tcpfit.diagnosis.findings.view import ACK, FIN, SYN, View, named, times

NAME = "sack-absent"
DUPLICATES, COPIES = 10, 0.1


def find(view: View) -> Finding | None:
    handshake = view.handshake
    if handshake is None or not handshake.options_whole:
        return None
    asked, answered = handshake.syn["sack_permitted"], handshake.syn_ack["sack_permitted"]
    bursts = view.of("loss_event").filter(pl.col("segments") >= 2)
    why = absence(view, handshake, asked, answered, "SACK")
    if why is None:
        return _blocks_missing(view, handshake.frames)
    if bursts.is_empty():
        return None
    broken = int(bursts["timeout_follows"].fill_null(False).sum())
    after = f", {broken} of them ending in a timeout" if broken else ""
    return Finding(
        name=NAME,
        claim=f"{times(bursts.height, 'time')} two or more segments of a window were lost{after}, and the "
        "sender had no "
        f"SACK to see which: {why}.",
        frames=named([*handshake.frames, *bursts["frame"]]),
        display_filter=view.show("(tcp.flags.syn == 1 || tcp.analysis.retransmission)"),
        remedy="Switch SACK (RFC 2018) on at the end that lacks it, or stop the middlebox that removes it.",
        confidence=sure(view, handshake, asked),
        seconds=None,
    )


def _blocks_missing(view: View, handshake: tuple[int, int]) -> Finding | None:
    """SACK was agreed, yet duplicate ACKs came without blocks."""
    if view["duplicated_segments"] > COPIES * view["data_segments"]:
        return None  # copies of ACKs made by the capture look like duplicate ACKs
    packets, sent = view.received, view.data
    if packets is None or packets.is_empty() or sent is None:
        return None
    if packets["options_incomplete"].any() or packets["sack"].list.len().sum() > 0:
        return None
    pure = packets.filter((pl.col("payload") == 0) & (pl.col("flags") & (SYN | FIN) == 0))
    same = (pl.col("ack") == pl.col("ack").shift()) & (pl.col("window") == pl.col("window").shift())
    again = pure.filter(same & (pl.col("flags") & ACK > 0))
    losses = view["loss_events"] + view["reorder_events"]
    if again.height < DUPLICATES or not losses:
        return None
    return Finding(
        name=NAME,
        claim=f"SYN and SYN-ACK agree on SACK, yet none of {again.height} duplicate ACKs carries a SACK "
        "block: the path "
        "takes the blocks out, or took the option out of the SYN-ACK, and every hole is repaired as if without SACK.",
        frames=named([*handshake, *again["frame"].head(6)]),
        display_filter=view.back("tcp.len == 0"),
        remedy="Stop the middlebox (firewall, TCP normaliser) that removes SACK options.",
        confidence=0.9,
        seconds=None,
    )
