"""Evaluations per second of every model: `python benchmarks/models.py [N]`, N rows of random parameters at once.

Sikdar's steady states, whose cost is a sum over windows for each row, get N/100 rows.
So do models of the transfer time; the rounds of Sikdar et al.'s are kept from run to run, so that the first
run, which makes them, is printed apart. Last, bohacek-dynamics: 60 s in steps of 1 ms.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from tcpfit.models import BohacekDynamics, catalogue
from tcpfit.models.base import Model
from tcpfit.models.newreno_full import NewRenoFull
from tcpfit.models.newreno_noto import NewRenoNoTO
from tcpfit.models.sikdar_latency import SikdarLatency
from tcpfit.models.sikdar_steady import SikdarSteady
from tcpfit.models.transfer_time import TransferTime

VARIANTS = (
    NewRenoNoTO(window="exact"),
    NewRenoFull(q_from="self"),
    NewRenoFull(rounding="real"),
)


def table(model: Model, n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    rtt = rng.uniform(0.01, 0.3, n)
    p = 10 ** rng.uniform(-5, -0.7, n)
    columns = {
        "p": p,
        "q": rng.uniform(0, 0.5, n),
        "q_tilde": np.minimum(1, p * rng.uniform(1, 4, n)),
        "rtt": rtt,
        "rto": rng.uniform(0.2, 3, n),
        "b": rng.uniform(1, 2, n),
        "w_max": rng.integers(20, 500, n).astype(float),
        "a_h": rtt * rng.uniform(30, 600, n),
        "d": rng.integers(1, 20, n).astype(float),
        "r": rng.integers(1, 20, n).astype(float),
        "segments": rng.integers(1, 300, n).astype(float),
    }
    return {parameter.name: columns[parameter.name] for parameter in model.parameters if parameter.name in columns}


def seconds(model: Model, columns: dict[str, np.ndarray]) -> float:
    """The best of five runs, in processor time of this process."""
    runs = []
    for _ in range(5):
        start = time.process_time()
        model.predict(**columns)
        runs.append(time.process_time() - start)
    return min(runs)


def course() -> float:
    """60 s of bohacek-dynamics with five loss probabilities, in steps of 1 ms."""
    runs = []
    for _ in range(5):
        start = time.process_time()
        BohacekDynamics().trajectory([0, 1, 10, 20, 30], [0.01, 0.1, 0.01, 0.001, 0.05], rtt=0.03, rto=1.0, end=60)
        runs.append(time.process_time() - start)
    return min(runs)


def main(n: int) -> None:
    print(f"{'model':<92}{'rows at once':>13}{'seconds':>9}{'rows/s':>14}{'µs for one row':>16}")
    for model in (*catalogue().values(), *VARIANTS):
        rows = n // 100 if isinstance(model, (SikdarSteady, TransferTime)) else n
        columns = table(model, max(rows, 1))
        first = time.process_time()
        model.predict(**columns)
        first = time.process_time() - first
        many = seconds(model, columns)
        one = min(seconds(model, table(model, 1)) for _ in range(20))
        label = model.name if type(model)().get_params() == model.get_params() else repr(model)
        made = f"  first run {rows / first:,.0f}/s" if isinstance(model, SikdarLatency) else ""
        print(f"{label:<92}{rows:>13}{many:>9.2f}{rows / many:>14,.0f}{one * 1e6:>16.0f}{made}")
    print(f"bohacek-dynamics, 60 s in steps of 1 ms: {course():.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
