"""The table of parameters: its columns and its vocabulary of names."""

from __future__ import annotations

import polars as pl

from tcpfit.schema import F64, U32, Column

NAMES = {
    "p": ("", "loss events per segment sent (Parvez et al., section II; RFC 5348, 5.2)"),
    "p_indication": ("", "loss indications per segment sent: fast recoveries and timeout series (Padhye et al. 1998)"),
    "q_tilde": ("", "segment losses per segment sent (Parvez et al., eq 30)"),
    "p_tfrc": ("", "loss event rate of TFRC's weighted loss intervals, mean over the segments sent (RFC 5348, 5.4)"),
    "p_mark": ("", "windows with congestion marks per segment sent (RFC 3168, 6.1.2)"),
    "q": ("", "loss probability of the other segments of a loss event (Parvez et al., section II)"),
    "m": ("segments", "losses per loss event (Parvez et al., eq 5)"),
    "p_gb": ("", "loss probability of a segment sent next after one that arrived (Gilbert 1960)"),
    "p_bg": ("", "probability that the segment sent next after a lost one arrives (Gilbert 1960)"),
    "loss_run": ("segments", "mean run of losses sent one after the other"),
    "rtt": ("s", "mean round-trip time as the sender sees it"),
    "rtt_min": ("s", "smallest round-trip time"),
    "rtt_p95": ("s", "95th percentile of the round-trip time"),
    "rto": ("s", "mean first timeout of a series (T0 of Padhye et al. 1998, undoubled); replayed where none was seen"),
    "p_to": ("", "share of loss events that ended in a timeout"),
    "w": ("segments", "mean data in flight when a recovery or a series of timeouts began (RFC 6675's pipe)"),
    "w_max": ("segments", "window limit of receiver or sender, null where none was reached"),
    "b": ("rounds/segment", "rounds per segment of window growth in congestion avoidance (Padhye et al. 1998)"),
    "d": ("segments", "segments that one reordering event delays (Sharma et al.)"),
    "a_h": ("s", "mean time between reordering events (Sharma et al.)"),
    "a_h_reacted": ("s", "mean time between reordering events that set off a recovery or a timeout"),
    "r": ("rounds", "round trips until the ACKs of the late segments arrive (Sharma et al., section III-B)"),
}
"""Every parameter: unit ('' for none) and meaning, in the table's order."""

NAME = pl.Enum(list(NAMES))

PARAMETERS = (
    Column("flow", U32, "", "number of the flow"),
    Column("name", NAME, "", "name of the parameter"),
    Column("value", F64, "", "its estimate, in the parameter's unit; null if it cannot be had"),
    Column("low", F64, "", "lower end of the 95 % interval; null if one observation or none is behind it"),
    Column("high", F64, "", "upper end of the 95 % interval; null too where the observations bound it from below only"),
    Column(
        "n",
        U32,
        "",
        "observations behind it: events of a rate or a mean, rounds of an RTT, samples of the smallest, "
        "stretches of b; 0 of a timeout reckoned from the round trips",
    ),
)
"""Columns of the table that `tcpfit.parameters.estimate` returns."""
