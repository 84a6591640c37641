"""The tables of the ranking: their columns and the vocabulary of verdicts."""

from __future__ import annotations

import polars as pl

from tcpfit.schema import BOOL, F64, STR, U32, Column

STATES = {
    "explained": "one applicable model predicts the flow better than every other, and is right about its rate",
    "undecided": "several applicable models predict it equally well, or one as near cannot be compared with the best; "
    "or the best alone is off by more than its parameters' doubt, or was compared with no other",
    "insufficient": "too few events to tell models apart, or too many packets that the capture missed",
    "none_applies": "no model's assumptions hold, or none of those that apply comes near the rate",
}

BASELINES = {
    "mean-of-blocks": "baseline: the mean rate of the other blocks",
    "window-or-capacity": "baseline: min(window limit / RTT, highest rate of a tenth of the rounds)",
}
"""Rows of the ranking that are no models; they have no rank."""

STATE = pl.Enum(list(STATES))
TEXTS = pl.List(pl.String())

RANKING = (
    Column("flow", U32, "", "number of the flow"),
    Column("model", STR, "", "name of the model, or of a baseline"),
    Column("rank", U32, "", "1 is best; applicable models first; null for a baseline or where nothing was predicted"),
    Column("score", F64, "", "weighted mean square of ln(predicted/observed) over blocks, each from the others' sums"),
    Column("predicted_bps", F64, "bit/s", "predicted rate of the steady part, payload bits"),
    Column("predicted_time_s", F64, "s", "time the whole transfer takes at that rate"),
    Column("log_ratio", F64, "", "ln(predicted/observed) of the steady part, in the quantity the model predicts"),
    Column("log_ratio_low", F64, "", "lower end of its 95 % interval, from the parameters' intervals"),
    Column("log_ratio_high", F64, "", "upper end"),
    Column("fitted", F64, "", "value of the parameter that was fitted on the flow's blocks; null where none was"),
    Column("difference", F64, "", "score less the score of the best applicable model; 0 for that one"),
    Column("difference_se", F64, "", "standard error of the difference, paired by blocks"),
    Column("probability_best", F64, "", "share of block bootstraps in which it has the lowest score of the applicable"),
    Column("applicable", BOOL, "", "every assumption that the model requires holds"),
    Column("failed", TEXTS, "", "names of the assumptions that it requires and that fail"),
    Column("weakened", TEXTS, "", "names of the others that fail"),
    Column("reasons", TEXTS, "", "what failed, a sentence each; of assumptions not required, marked `weakened`"),
)

VERDICTS = (
    Column("flow", U32, "", "number of the flow"),
    Column("state", STATE, "", "explained, undecided, insufficient or none_applies"),
    Column("models", TEXTS, "", "the models it names, best first"),
    Column("text", STR, "", "the verdict in a sentence or two"),
)
