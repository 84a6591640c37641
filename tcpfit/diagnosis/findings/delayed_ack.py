"""Delayed ACK and Nagle: a small segment waits for the ACK of the one before, which the receiver delays.

**Claim**: how often, how long each wait was, and their sum.
**Rule**: Nagle's algorithm (RFC 9293, 3.7.4) holds a segment smaller than the MSS while data is outstanding; the
receiver delays the ACK of a lone small segment (RFC 9293, 3.8.6.3: up to 0.5 s). A wait is: (1) a data segment below
the MSS, or below the largest that this host sends if that fills nine tenths of it, the last of what is outstanding;
(2) a bare ACK of it, 20 ms to 0.5 s later than the quickest ACK of the flow; (3) nothing else from the receiver
meanwhile; (4) the next data, again as small, as soon as that ACK can have reached the sender. Three waits at least,
and three in four of the delayed bare ACKs of small segments must release data so: an application that merely writes
now and then does not meet (4).
**Evidence**: frames of segment, ACK and released segment. Seen from every vantage, since (4) allows the distance to
the sender, which must be known: unknown vantage, silence. Silent too where the receiver's window holds the flow.
**Remedy**: write a message with one call (writev, a buffer, TCP_CORK), or set TCP_NODELAY; TCP_QUICKACK at the
receiver.
**Validation**: docs/diagnosis/delayed-ack-nagle.md; tests/test_findings.py.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.view import FIN, RST, SYN, View, duration, in_frames, named

NAME = "delayed-ack-nagle"
LEAST_S, MOST_S = 0.02, 0.5
SOON_S = 0.002
WAITS, RELEASED = 3, 0.75
FULL = 0.9
"""Share of the MSS that a flow's largest segments fill at least if they are full ones."""


def find(view: View) -> Finding | None:
    sent, back, smss = view.data, view.received, view["smss_bytes"]
    fraction, rtt = view["vantage_fraction"], view["rtt_min_s"]
    if sent is None or back is None or back.is_empty() or not smss or fraction is None or rtt is None:
        return None
    if (view["limited_share"] or 0.0) > 0.5:
        return None
    if sent.height < 2 * WAITS or view["retransmitted_segments"] > 0.1 * sent.height:
        return None
    sent = sent.sort("time_ns")
    back = back.filter(pl.col("flags") & (SYN | RST | FIN) == 0)
    time, left, right = (sent[name].to_numpy() for name in ("time_ns", "left", "right"))
    size = sent["payload"].to_numpy()
    # options, or a host that reckons with them, may leave less room in a full segment than the MSS
    full = int(size.max()) if FULL * smss <= size.max() < smss else smss
    at, edge = back["time_ns"].to_numpy(), back["edge"].to_numpy()
    if len(at) == 0:
        return None
    highest = np.maximum.accumulate(right)
    # the first packet of the receiver that acknowledges each segment whole
    answer = np.searchsorted(np.maximum.accumulate(edge), right)
    known = answer < len(at)
    answer = np.minimum(answer, len(at) - 1)
    wait = (at[answer] - time) / 1e9
    # (1) new, small, the last outstanding: the next data follows its ACK
    following = np.append(time[1:], 2**62)
    alone = known & (size < full) & (right == highest) & (following > at[answer]) & (wait > 0)
    # (2) a bare ACK of exactly that, later than the quickest
    bare = back["payload"].to_numpy()[answer] == 0
    quickest = np.min(wait[known & (wait > 0)], initial=np.inf)
    late = alone & bare & (edge[answer] == right) & (wait - quickest >= LEAST_S) & (wait - quickest <= MOST_S)
    # (3) nothing between the segment and its ACK
    late &= np.searchsorted(at, time) == answer
    # (4) the next, small and new, as soon as the ACK can have reached the sender
    reach = (following - at[answer]) / 1e9
    small = np.append(size[1:], full) < full
    fresh = np.append(left[1:], 0) == right
    to_sender = fraction * rtt
    released = late & small & fresh & (np.abs(reach - to_sender) <= SOON_S + 0.1 * to_sender)
    tail = late & (following > 2**61)
    count, delayed = int(released.sum()), int((late & ~tail).sum())
    if count < WAITS or count < RELEASED * delayed:
        return None
    held = wait[released] - quickest
    index = np.flatnonzero(released)
    frame, ack = sent["frame"].to_numpy(), back["frame"].to_numpy()
    frames = named(number for i in index[:6] for number in (frame[i], ack[answer[i]], frame[i + 1]))
    return Finding(
        name=NAME,
        claim=f"{count} small segments waited {duration(float(np.median(held)))} (median) for the delayed ACK "
        "of the one "
        f"before, {duration(float(held.sum()))} in all: Nagle's algorithm at {view['src']} met delayed ACKs "
        f"at {view['dst']}.",
        frames=frames,
        display_filter=in_frames(frames),
        remedy=f"On {view['src']}, write each message with one call (writev, a buffer, TCP_CORK) or set TCP_NODELAY.",
        confidence=0.9,
        seconds=float(held.sum()),
    )
