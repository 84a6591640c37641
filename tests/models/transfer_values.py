"""Reference values of transfer times and of the time-varying model, and how each is computed with tcpfit.models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tcpfit.models.bohacek_dynamics import BohacekDynamics, Trajectory
from tcpfit.models.cardwell_2000 import Cardwell2000
from tcpfit.models.catnip import Catnip
from tcpfit.models.hysteresis import Hysteresis
from tcpfit.models.padhye_short import PadhyeShort
from tcpfit.models.sikdar_latency import (
    Reading,
    SikdarLatency,
    SikdarRenoLatency,
    SikdarSackLatency,
    SikdarTahoeLatency,
    single_loss_rounds,
)

VERSIONS = {"tahoe": SikdarTahoeLatency(), "reno": SikdarRenoLatency(), "sack": SikdarSackLatency()}
FIRST, LONGEST, STEP = -1.0, 6.0, 0.05  # s: when the courses below begin and end, and their step


def short(model: Cardwell2000 | PadhyeShort) -> Callable[..., Any]:
    return lambda d, p, RTT, T0, Wmax: model.predict(segments=d, p=p, rtt=RTT, rto=T0, w_max=Wmax)


def li(N: Any, p: Any, RTT: Any, T0: Any, Wmax: Any) -> dict[str, Any]:
    return {"segments": N, "p": p, "rtt": RTT, "rto": T0, "w_max": Wmax}


def catnip(pp: Any, **flow: Any) -> Any:
    return Catnip().predict(p_high=pp, **li(**flow))


def latency(model: SikdarLatency) -> Callable[..., Any]:
    return lambda N, p, RTT, To, Wmax, Ts, tdack: model.predict(
        segments=N, p=p, rtt=RTT, rto=To, w_max=Wmax, syn_rto=Ts, delayed_ack=tdack
    )


def single_loss(model: SikdarLatency) -> Callable[..., Any]:
    def rounds(N: Any, i: Any, Wmax: Any, eto_rounds: Any) -> Any:
        found = []
        for packets, lost, limit, eto in np.broadcast(N, i, Wmax, eto_rounds):
            how = Reading(model._indication, float(limit), False, False)
            before, times_out = single_loss_rounds(how, np.asarray(packets), np.asarray(lost))
            found.append(float(before) + float(times_out) * eto)
        return np.asarray(found)

    return rounds


def course(delta0: float, delta1: float, R: float, RTO: float) -> Trajectory:
    """The flows where delta0 jumps to delta1 at time 0."""
    return BohacekDynamics().trajectory([FIRST, 0.0], [delta0, delta1], rtt=R, rto=RTO, end=LONGEST, step=STEP)


def jump(
    delta0: Any, delta1: Any, R: Any, RTO: Any, t: Any, delta_lag_in_ode: Any = 1, delta_lag_in_lambda: Any = 0
) -> Any:
    found = np.empty(t.shape)
    keys = np.stack([delta0, delta1, R, RTO], axis=1)
    for key in np.unique(keys, axis=0):
        rows = (keys == key).all(axis=1)
        found[rows] = course(*key).in_timeout[np.rint((t[rows] - FIRST) / STEP).astype(int)]
    return found


GRIDS: dict[str, Callable[..., Any]] = {
    "cardwell2000": short(Cardwell2000()),
    "cardwell2000.plus0": short(Cardwell2000(count_lost=False)),
    "padhye_short": short(PadhyeShort()),
    "li_hysteresis.mean": lambda **flow: Hysteresis().predict(**li(**flow)),
    "li_hysteresis.var": lambda **flow: Hysteresis().variance(**li(**flow)),
    "li_catnip": catnip,
    "li_catnip.pp": catnip,
    **{f"sikdar_tsl_rounds.{name}": single_loss(model) for name, model in VERSIONS.items()},
    **{f"sikdar_latency.{name}": latency(model) for name, model in VERSIONS.items()},
    "bohacek.dynamic": jump,
}
TABLES = {"tabI": "tahoe", "tabII": "reno", "tabIII": "sack"}


def printed(row: dict[str, Any]) -> float:
    """What we get for a value that a paper prints."""
    key, x = row["id"], row["inputs"]
    if key.startswith("li.pkts."):
        return float(np.ceil(x["KB"] * 1024 / x["MSS"]))
    model = VERSIONS[TABLES[key.split(".")[1]]]
    flow = {"segments": x["N"], "p": x["p"], "rtt": x["RTT_s"], "rto": x["To_s"], "w_max": x["Wmax"]}
    setup = {"syn_rto": x["Ts_s"], "delayed_ack": x["tdack_s"]}
    return float(model.predict(**flow, **setup)) - x["RTT_s"]  # the tables leave the handshake's round trip out
