"""Serial requests: the application asks, waits for the whole answer, and asks again, one round trip each.

**Claim**: how many answers waited for their request, and where the waiting went: the round trip, the server, the
client.
**Rule**: the flow is split into messages: runs of data of one side with no data of the other between. Ten turns at
least, of which nine in ten begin with a packet that acknowledges all that the other side has sent: the message before
was there whole, so nothing overlapped (data that flows both ways at once alternates too, but does not meet this). A
turn of the answering side lasts from the request's last packet to the answer's first; next to either end that splits
into the round trip (its minimum) and the server's own time. Said where waiting for the round trip or the server took
a quarter of the connection's time at least. The side that speaks first is the client. Silent where a tenth of the
segments was sent again: waits are then losses.
**Evidence**: first packets of requests and answers.
**Remedy**: send requests without waiting (pipelining, HTTP/2), several connections, or fewer and larger requests;
where the server's time dominates, the server.
**Limits**: request and answer are known by direction alone; a chat of two people looks the same, which is why the
client's own waits are not counted as cost.
**Validation**: docs/diagnosis/serial-requests.md; tests/test_findings.py.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.view import View, duration, in_frames, named, unwrapped

NAME = "serial-requests"
TURNS, SERIAL, SHARE, RESENT = 10, 0.9, 0.25, 0.1
FIRST = 12
"""Messages whose first packets a finding names."""


def find(view: View) -> Finding | None:
    sent, back, rtt = view.data, view.received, view["rtt_min_s"]
    if sent is None or back is None or back.is_empty() or not rtt or not view.larger or view.other is None:
        return None
    if view["retransmitted_segments"] + view["lost_segments"] > RESENT * sent.height:
        return None
    theirs = back.filter(pl.col("payload") > 0)
    if theirs.height < TURNS:
        return None
    start = int(theirs["seq"][0])
    end = unwrapped(theirs["seq"].to_numpy(), start) + theirs["payload"].to_numpy()
    ours = sent.select(
        "time_ns", "frame", pl.Series("seen", unwrapped(sent["ack"].to_numpy(), start)), end="right", way=pl.lit(0)
    )
    theirs = theirs.select("time_ns", "frame", "edge", end=pl.Series(end), way=pl.lit(1)).rename({"edge": "seen"})
    spoken = pl.concat([ours.select(theirs.columns), theirs]).sort("time_ns", "frame")
    way = spoken["way"].to_numpy()
    starts = np.flatnonzero(np.diff(way, prepend=-1))
    if len(starts) < 2 * TURNS:
        return None
    # what the other side had sent up to each message, which its first packet must acknowledge
    highest = np.zeros(len(way), np.int64)
    for side in (0, 1):
        sent_by = np.maximum.accumulate(np.where(way == side, spoken["end"].to_numpy(), 0))
        highest[way != side] = sent_by[way != side]
    if np.mean(spoken["seen"].to_numpy()[starts[1:]] >= highest[starts[1:]]) < SERIAL:
        return None
    time = spoken["time_ns"].to_numpy() / 1e9
    ends = np.append(starts[1:], len(way)) - 1
    client = way[0]
    # the wait of an answer: from the request's last packet to its first
    answers = np.arange(1, len(starts), 2)
    wait = time[starts[answers]] - time[ends[answers - 1]]
    # seen next to the client the wait has the round trip in it, next to the server the client's turn has
    asking, answering = ("dst", "src") if client else ("src", "dst")
    near, far = view.at(asking), view.at(answering)
    if not near and not far:
        return None
    turns = len(answers)
    # the round trip is paid once a turn wherever it shows
    trips = turns * rtt
    server = float(np.sum(np.maximum(wait - (rtt if near else 0.0), 0.0)))
    total = time[-1] - time[0]
    think = float(np.sum(np.maximum(time[starts[2::2]] - time[ends[1:-1:2]] - (0.0 if near else rtt), 0.0)))
    if turns < TURNS or total <= 0 or trips + server < SHARE * total:
        return None
    frames = named(spoken["frame"].to_numpy()[starts[:FIRST]])
    host = view.host(answering)
    return Finding(
        name=NAME,
        claim=f"{turns} requests, each sent only after the answer before: {duration(trips)} went into their "
        "round trips of "
        f"{duration(rtt)}, {duration(server)} into {host} answering, {duration(think)} into its peer asking again, of "
        f"{duration(total)}.",
        frames=frames,
        display_filter=in_frames(frames),
        remedy="Ask without waiting for the answer (pipelining, HTTP/2, several connections) or in fewer, "
        "larger requests" + (f"; most of the wait is {host} itself." if server > trips else "."),
        confidence=0.85,
        seconds=float(trips + server),
    )
