"""ln(predicted/observed): of every block from the parameters of the flow's other blocks, and of the whole steady part.

What is observed is what the model predicts: segments sent per second (send-rate), or segments that reached the
receiver (throughput, goodput: those acknowledged) per second. A block is never predicted from its own events: a block
with few events by chance is a fast block, and a model fed with its p would follow chance.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tcpfit.models import Model
from tcpfit.parameters.intervals import Floats
from tcpfit.ranking.blocks import SUMS, Blocks, parameters
from tcpfit.ranking.prediction import predict


def rate(sums: Floats, quantity: str) -> Floats:
    """Observed segments of full size per second of sets of blocks (sets by `SUMS`), NaN where there is none."""
    column = "full_sent" if quantity == "send-rate" else "acked"
    with np.errstate(divide="ignore", invalid="ignore"):
        found = sums[:, SUMS.index(column)] / sums[:, SUMS.index("seconds")]
    return np.where(np.isfinite(found) & (found > 0), found, np.nan)


def held_out(model: Model, blocks: Blocks, fixed: Mapping[str, Floats]) -> Floats:
    """ln(predicted/observed) of every block, predicted from the sums of its flow's other blocks.

    `fixed` holds what sums do not give (`cut.Cut.held_out`). NaN for the only block of a flow.
    """
    found, others = np.full(len(blocks.owner), np.nan), blocks.others
    at = np.flatnonzero(others[:, SUMS.index("rounds")] > 0)
    if not len(at):
        return found
    owner = blocks.owner[at]
    predicted = predict(model, parameters(others[at], {name: value[owner] for name, value in fixed.items()}))
    with np.errstate(divide="ignore", invalid="ignore"):
        found[at] = np.log(predicted / rate(blocks.sums[at], model.quantity))
    return found


def held_out_mean(blocks: Blocks) -> Floats:
    """The same for the baseline that predicts the rate of the other blocks together (acknowledged segments)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.log(rate(blocks.others, "goodput") / rate(blocks.sums, "goodput"))
    return found


def held_out_limit(limit: Floats, blocks: Blocks) -> Floats:
    """The same for the baseline min(W/RTT, capacity), given each flow's in segments per second."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.log(limit[blocks.owner] / rate(blocks.sums, "goodput"))
    return found
