"""Timeouts as PFTK models them: how likely a loss indication is one, and how long a series with back-off lasts.

Shared by pftk-full, newreno-full and the three steady states of Sikdar et al., whose papers take these expressions
from PFTK.

**Symbols** p: loss probability (1); w: window (segments); T0: first timeout of a series (s, column `rto`).

**Departures** Powers of 1 - p are taken through log1p and expm1, so that small p loses no digits; at p = 0, where the
ratio for Q is 0/0, its limit min(1, 3/w) is returned.

**Validation** `tests/models/test_model_values.py` (rows `q_hat`, `E_TO`); `tests/models/test_model_derivations.py`
sums both series.

**Reference** Padhye, Firoiu, Towsley, Kurose: Modeling TCP Throughput, SIGCOMM 1998, doi:10.1145/285237.285291.
"""

from __future__ import annotations

import numpy as np

from tcpfit.models.base import Array


def backoff(p: Array) -> Array:
    # f(p) = 1 + p + 2 p^2 + 4 p^3 + 8 p^4 + 16 p^5 + 32 p^6
    return 1 + p * (1 + 2 * p * (1 + 2 * p * (1 + 2 * p * (1 + 2 * p * (1 + 2 * p)))))


def backoff_second_order(p: Array) -> Array:
    # 1 + 2 p + 4 p^2, the expansion of f(p)/(1 - p) that Parvez eq. 29 prints
    return 1 + 2 * p + 4 * p**2


def timeout_duration(p: Array, T0: Array, as_printed: bool = False) -> Array:
    # E[TO] = T0 f(p) / (1 - p); the timer doubles six times and then stays at 64 T0. Equation 4 of Sikdar et al. has
    # 18 p^5 printed for 16 p^5
    return T0 * (backoff(p) + (2 * p**5 if as_printed else 0.0)) / (1 - p)


def timeout_probability(p: Array, w: Array) -> Array:
    # Q(p, w) = min(1, (1 - (1-p)^3) (1 + (1-p)^3 (1 - (1-p)^(w-3))) / (1 - (1-p)^w)); 1 for w <= 3
    def lost(k: Array | float) -> Array:  # 1 - (1-p)^k
        return np.asarray(-np.expm1(k * np.log1p(-p)))

    with np.errstate(all="ignore"):
        wide = np.maximum(w, 3.0)
        rest = np.where(wide > 3, lost(wide - 3), 0.0)
        q = lost(3.0) * (1 + (1 - p) ** 3 * rest) / lost(wide)
        q = np.where(p > 0, q, 3 / wide)
    return np.clip(np.where(w > 3, q, 1.0), 0.0, 1.0)
