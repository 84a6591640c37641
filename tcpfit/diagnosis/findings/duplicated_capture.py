"""Duplicated capture: the capture holds its packets twice.

**Claim**: how many of the flow's packets are there twice, how far apart, and whether a router lies between the
copies.
**Rule**: nine in ten of the data segments, ten at least, have an exact copy (same sequence number, length, flags, IP
identification, TCP checksum and options) within 5 ms. No network duplicates nearly everything, and a resend has
another IP identification or timestamp. Both are needed to say so where timestamps are off and the identification is
constant.
**Evidence**: the pairs. TTL equal: one packet seen on two interfaces or in both directions of a mirror port; TTL one
less: before and after a router.
**Remedy**: capture one interface or one direction of the mirror, or drop the copies with `editcap -w`, which goes by
time (`-d` compares five packets, and what a router has passed on is another packet to it), and analyse again: copies
look like resends and duplicate ACKs, so nothing else is said of such a flow.
**Validation**: docs/diagnosis/duplicated-capture.md; tests/test_findings.py.
"""

from __future__ import annotations

import polars as pl

from tcpfit.diagnosis.finding import Finding
from tcpfit.diagnosis.findings.view import View, duration, named

NAME = "duplicated-capture"
SHARE, LEAST = 0.9, 10
APART_NS = 5_000_000
SAME = ["seq", "ack", "payload", "flags", "checksum", "tsval"]

AT_ONE_PLACE = "Capture one interface or one direction only, or drop the copies with `editcap -w 0.005`"
AT_ROUTER = (
    "Capture on one side of the router only, or keep one of the two with a filter for its TTL or its MAC addresses"
)


def find(view: View) -> Finding | None:
    if view.sent is None or view.sent.is_empty():
        return None
    data = view.sent.filter(pl.col("payload") > 0)
    if data.height < 2 * LEAST or (data["tsval"].is_null().any() and _constant(data["ip_id"])):
        return None
    numbers = data["seq"].n_unique()  # all but so many may be copies: mostly that settles it
    if data.height - numbers < max(LEAST, SHARE * numbers):
        return None
    names = [*SAME, "ip_id"]
    apart = pl.col("time_ns").diff().over(names)
    copies = data.with_columns(
        apart=apart, first=pl.col("frame").shift().over(names), hops=pl.col("ttl").cast(pl.Int16).diff().over(names)
    ).filter(pl.col("apart").is_between(0, APART_NS))
    distinct = data.height - copies.height
    if copies.height < LEAST or copies.height < SHARE * distinct:
        return None
    hops = copies["hops"].drop_nulls().median()
    where = (
        "with the same TTL: two interfaces, or both directions of a mirror"
        if not hops
        else (f"with the TTL {abs(int(float(str(hops))))} apart: before and after a router")
    )
    gap = float(str(copies["apart"].median())) / 1e9
    pairs = copies.head(4)
    return Finding(
        name=NAME,
        claim=f"{copies.height} of {distinct} data segments are in the capture twice, {duration(gap)} apart, {where}.",
        frames=named([*pairs["first"], *pairs["frame"]]),
        display_filter=view.ahead("tcp.analysis.retransmission && frame.time_delta < 0.005"),
        remedy=f"{AT_ROUTER if hops else AT_ONE_PLACE}, and analyse again: copies look like resends and duplicate "
        "ACKs.",
        confidence=0.95,
        seconds=None,
    )


def _constant(identification: pl.Series) -> bool:
    """There is no identification, or a constant one: it does not tell a resend from a copy."""
    return identification.n_unique() <= 1
