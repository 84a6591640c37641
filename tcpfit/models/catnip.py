"""Transfer time under partial CATNIP (Li and Williamson, section 5): the first and last three segments are lost less.

Routers drop segments of high priority with p' and others with p, p' <= p. Of the priorities only the first three and
the last three segments are kept, so that a transfer has three steps of the hysteresis model's cycles:

1. the first 3 segments, with p';
2. the next N - 6, with p, as if N - 3 were left: a loss of the last three does not end it;
3. the last 3 segments, with p'.

Step 2 begins with the window gamma E[W_ss] of the last cycle of step 1, step 3 with that of step 2, between 2 and Wmax.

**Symbols** N: segments of the transfer (`segments`); p, p': loss probability of a segment of low and of high priority
(1); the others as in `hysteresis`.

**Domain** that of `hysteresis`, with 0 <= p' <= 0.95; nan outside. p' > p is computed, though the paper does not mean
it.

**Departures** Those of `hysteresis`; `p_high = 0` (the paper's best case). Up to N = 6 all segments are of high
priority: one step with p'. A cycle of step 2 that would send into the last three stops before them, and its p_ss is
that of the segments left in the step. The window of the next step follows the state, not its mean: which coin ended the
last cycle plays no part in (gamma E[W_ss]), as printed.

**Validation** `tests/models/test_model_values.py::test_grid[li_catnip]`, `[li_catnip.pp]`; figures of the paper: not
validated (drawn, not printed).

**Reference** Li, Williamson: A Hysteresis Model for Web/TCP Transfer Latency, MASCOTS 2004,
doi:10.1109/MASCOT.2004.1348194.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tcpfit.models.base import Array, Assumption, Parameter
from tcpfit.models.hysteresis import BLOCK, LARGEST_P, Cycles, Path, States, carry, toss

EDGE = 3.0  # segments of high priority at either end


def three_steps(N: Array, path: Path, p_high: Array, w1: Array, stop: float) -> States:
    """The states after the three steps, for flows of more than six segments."""
    safe = replace(path, p=p_high)
    edge = np.full(N.shape, EDGE)
    states = carry(safe, edge, States.start(w1), stop, growing_on=True)
    states = carry(path, N - EDGE, states, stop, keep=EDGE, growing_on=True)
    return carry(safe, edge, states, stop)


def moments(N: Array, path: Path, p_high: Array, w1: Array, stop: float = 1.0) -> tuple[Array, Array]:
    """Exact mean (s) and variance (s^2) of the transfer time, for 1-d arrays of flows."""
    mean, variance = np.empty(len(N)), np.empty(len(N))
    short = N <= 2 * EDGE
    order = np.argsort(np.where(short, 0.0, N * path.p / (1 - path.p)))
    for rows in (order[short[order]], order[~short[order]]):
        for at in range(0, len(rows), BLOCK):
            part = rows[at : at + BLOCK]
            first = np.minimum(w1[part], path.Wmax[part])
            if short[part[0]]:
                found = carry(replace(path[part], p=p_high[part]), N[part], States.start(first), stop)
            else:
                found = three_steps(N[part], path[part], p_high[part], first, stop)
            mean[part], variance[part] = found.mean, np.maximum(found.variance, 0.0)
    return mean, variance


class Catnip(Cycles):
    """The mean of the three steps' sum; `variance` and `simulate` give more of it.

    b: fixes the rounds per segment; None takes the measured column or 2. stop: segments left below which no cycle
    follows. as_printed: (11) and (12) as printed. whole_rounds: slow starts last whole round trips. free: names of the
    parameters that `fit` fits, by default b.
    """

    name = "catnip"
    title = "partial CATNIP (Li, Williamson)"
    parameters = (
        *Cycles.parameters,
        Parameter("p_high", "1", "losses per segment of high priority", 0.0, high=LARGEST_P),
    )
    assumptions = (
        *Cycles.assumptions,
        Assumption("priority-dropping", "Routers spare the first and last three segments of a transfer."),
    )

    def _moments(self, a: dict[str, Array]) -> tuple[Array, Array]:
        return moments(a["segments"], self._path(a), a["p_high"], a["w_1"], self.stop)

    def _draw(self, flow: dict[str, float], path: Path, one: Array, generator: np.random.Generator) -> Array:
        N, safe = flow["segments"], replace(path, p=np.asarray([flow["p_high"]]))
        first = one * min(flow["w_1"], flow["w_max"])
        if N <= 2 * EDGE:
            return toss(safe, N, first, generator, self.stop)[0]
        start, w1 = toss(safe, EDGE, first, generator, self.stop, growing_on=True)
        middle, w1 = toss(path, N - EDGE, w1, generator, self.stop, keep=EDGE, growing_on=True)
        return start + middle + toss(safe, EDGE, w1, generator, self.stop)[0]
