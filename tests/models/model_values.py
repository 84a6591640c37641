"""Reference values and how each is computed with tcpfit.models; used by the tests and by docs/models/make_values.py."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import transfer_values

from tcpfit.models import bohacek_sack, cubic, newreno_full, newreno_window, pftk_full, sikdar_rounds, tfrc, timeouts
from tcpfit.models import newreno_noto as noto
from tcpfit.models.bohacek_sack import BohacekSack
from tcpfit.models.mathis import Mathis
from tcpfit.models.pftk_approx import PFTKApprox
from tcpfit.models.pftk_full import PFTKFull
from tcpfit.models.reordering_goodput import ReorderingGoodput
from tcpfit.models.sikdar_reno import SikdarReno
from tcpfit.models.sikdar_sack import SikdarSack
from tcpfit.models.sikdar_steady import SikdarSteady
from tcpfit.models.sikdar_tahoe import SikdarTahoe

VALUES: dict[str, Any] = json.loads(Path(__file__).with_name("values.json").read_text())
NO_EVIDENCE = ("not reproduced", "post-hoc match", "fitted (RTO)")
ROUNDING = {"floor": "floor", "ceil": "ceil"}


def pftk(model: PFTKApprox | PFTKFull) -> Callable[..., Any]:
    return lambda p, R, T0, b, Wmax: model.predict(p=p, rtt=R, rto=T0, b=b, w_max=Wmax)


def newreno(**conventions: str) -> Callable[..., Any]:
    model = newreno_full.NewRenoFull(**conventions)
    return lambda p, q, R, RTO: model.predict(p=p, q=q, rtt=R, rto=RTO)


def reordering(clamp: bool) -> Callable[..., Any]:
    model = ReorderingGoodput(clamp=clamp)
    return lambda W, RTT, Ah, d, b, r=np.inf: model.predict(w_max=W, rtt=RTT, a_h=Ah, d=d, b=b, r=r)


def steady(model: SikdarSteady) -> Callable[..., Any]:
    return lambda p, RTT, To, Wmax: model.predict(p=p, rtt=RTT, rto=To, w_max=Wmax)


def timeouts_begun(delta: Any, R: Any) -> Any:
    """lambda' + lambda''."""
    lost = bohacek_sack.losses_timeout_rate(delta, R)
    return lost + bohacek_sack.lost_retransmission_timeout_rate(delta, R)


def window_probability(delta: Any, w: Any) -> Any:
    return bohacek_sack.window_probability(w, bohacek_sack.mean_window(delta), bohacek_sack.binomial_q_of(delta))


SHARMA = ("G1", "G1hat.timeout", "G1hat.notimeout", "G2", "G2hat.timeout", "G2hat.notimeout")
GRIDS: dict[str, Callable[..., Any]] = {
    "mathis": lambda p, R, b: Mathis().predict(p=p, rtt=R, b=b),
    "pftk_approx": pftk(PFTKApprox()),
    "pftk_full.send": pftk(PFTKFull()),
    "pftk_full.thr": pftk(PFTKFull(variant="throughput")),
    "q_hat": lambda p, w: timeouts.timeout_probability(p, w),
    "E_TO": lambda p, T0: timeouts.timeout_duration(p, T0),
    "parvez_W": newreno_window.printed_window,
    "parvez_W_exact": newreno_window.exact_window,
    "parvez_noto": lambda p, q, R: noto.NewRenoNoTO().predict(p=p, q=q, rtt=R),
    "parvez_pTO.floor": lambda p, q: newreno_full.NewRenoFull().timeout_share(
        p, q, newreno_window.printed_window(p, q)
    ),
    "parvez_full.floor": newreno(),
    "parvez_full.real": newreno(rounding="real"),
    "parvez_full.series_exact": newreno(series="exact"),
    "parvez_q.eq30": lambda qt, p: newreno_window.q_from_rates(qt, p),
    "parvez_q.self": lambda qt, p: newreno_window.q_self_consistent(qt, p),
    **{f"sharma.{name}": reordering(clamp=False) for name in SHARMA},
    "sikdar_setup": lambda RTT, Ts, p: sikdar_rounds.setup_time(RTT, Ts, p),
    "sikdar_w": lambda arg: sikdar_rounds.slow_start_window(arg),
    "sikdar_pkt_closed": lambda arg: sikdar_rounds.slow_start_packets(arg),
    "sikdar_tlin": lambda a, b, Wmax: sikdar_rounds.linear_rounds(a, b, Wmax),
    "sikdar_nwm": lambda arg: sikdar_rounds.rounds_to_window(arg),
    "sikdar_tnl_rounds": lambda N, Wmax: sikdar_rounds.loss_free_rounds(N, Wmax),
    "sikdar_r": lambda arg: sikdar_rounds.rounds_to_packet(arg),
    "sikdar_steady.sack": steady(SikdarSack()),
    "sikdar_steady.tahoe": steady(SikdarTahoe()),
    "sikdar_steady.reno": steady(SikdarReno()),
    "tfrc": lambda p, R, T0, b, s: tfrc.bytes_per_second(s, R, p, T0, b),
    "bohacek.lambda1": lambda delta, R: bohacek_sack.losses_timeout_rate(delta, R),
    "bohacek.lambda2": lambda delta, R: bohacek_sack.lost_retransmission_timeout_rate(delta, R),
    "bohacek.PTO": lambda delta, R, RTO: bohacek_sack.fraction_in_timeout(timeouts_begun(delta, R), delta, RTO),
    "bohacek.throughput": lambda delta, R, RTO: BohacekSack().predict(p=delta, rtt=R, rto=RTO),
    "bohacek.pftk_PTO": lambda delta, R, T0: pftk_full.time_in_timeout(delta, R, T0),
    "bohacek.nb_q": lambda delta: bohacek_sack.binomial_q_of(delta),
    "bohacek.pw": window_probability,
    "bohacek.rho1": lambda delta, w, R: bohacek_sack.losses_rate(w, delta, R),
    "bohacek.exact_density": lambda delta, w: bohacek_sack.exact_density(w, delta),
    "cubic_response": lambda p, RTT, C: cubic.mean_cubic_window(p, RTT, C),
    "cubic_West": lambda t, Wmax, RTT: cubic.friendly_window(t, Wmax, RTT),
    "cubic_W": lambda t, Wmax: cubic.cubic_window(t, Wmax),
    "cubic_friendly": lambda t, Wmax, RTT: cubic.is_friendly(t, Wmax, RTT),
    **transfer_values.GRIDS,
}


def grid(name: str, table: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any], float, float]:
    """The inputs of one grid as arrays (an absent Wmax is inf), its expected columns, and its tolerances."""
    table = VALUES["grids"][name] if table is None else table
    rows = [[np.inf if cell is None else cell for cell in row] for row in table["rows"]]
    columns = dict(zip(table["columns"], np.array(rows, dtype=float).T, strict=True))
    expected = {key: columns.pop(key) for key in list(columns) if key.startswith("expected")}
    return columns, expected, table["rel_tol"], table["abs_tol"]


# Values that the papers print

SEGMENT_BITS = 1448 * 8
TABLE_3 = [  # imposed loss: timeouts, fast recoveries, RTT, duration, bytes; the timeouts at 1.0 % are lost, 15 assumed
    (5, 556, 0.05556, 500.54, 169942625),
    (15, 765, 0.05731, 502.33, 116768593),
    (38, 841, 0.05848, 502.62, 89441537),
    (68, 864, 0.05906, 501.92, 72544825),
    (113, 775, 0.05965, 502.11, 55202129),
    (129, 777, 0.06023, 502.92, 47554586),
]
TABLE_4 = [(379, 497), (335, 394), (299, 297), (206, 202), (145, 147), (133, 173), (139, 141)]  # measured, model


def model_bps(p: float, q: float, rtt: float, rto: float, rounding: str = "floor") -> float:
    model = newreno_full.NewRenoFull(rounding=rounding)
    return float(model.predict(p=p, q=q, rtt=rtt, rto=rto)) * SEGMENT_BITS


def table_3_errors(rto: list[float]) -> list[float]:
    errors = []
    for (timeouts_, recoveries, rtt, duration, size), t0 in zip(TABLE_3, rto, strict=True):
        p = (timeouts_ + recoveries) * 1448 / size
        errors.append(abs(model_bps(p, p, rtt, t0) * duration / (8 * size) - 1))
    return errors


def printed(row: dict[str, Any]) -> float:
    """What we get for a value that a paper prints."""
    key, x = row["id"], row["inputs"]
    if key.startswith(("sikdar.tab", "li.pkts.")):
        return transfer_values.printed(row)
    if key.startswith("li.Q."):
        return float(timeouts.timeout_probability(np.asarray(x["p"]), np.asarray(x["w"])))
    if key.startswith("rfc8312.tab3"):
        return float(cubic.loss_rate_for(x["W"], x["RTT_s"]))
    if key.startswith("rfc8312."):
        return float(cubic.mean_window(x["p"], x["RTT_s"], x["C"], as_printed=True))
    if key.startswith("boh."):
        return bohacek(key, x)
    if key == "sharma.ber":
        return 1500 * 8 / (5 * 100e6)
    if re.match(r"parvez\.tab4\.(row|single)", key):
        return model_bps(x["p"], x["q"], x["R_s"], x["RTO_s"], ROUNDING[x["mode"]]) / 1000
    if re.match(r"parvez\.tab4\.expt|parvez\.tab3\.1\.5pct\.expt", key):
        return float(x["bytes"] * 8 / x["duration_s"] / (1e6 if "tab3" in key else 1e3))
    if key in ("parvez.tab4.starred", "parvez.tab4.starred_error"):
        q = float(newreno_window.q_self_consistent(np.asarray(6.4 * 0.0098), np.asarray(0.0098)))
        bps = model_bps(0.0098, q, 0.229, 1.007)
        return bps / 1000 if key.endswith("starred") else bps / (5034696 * 8 / 106.34) - 1
    if key == "parvez.tab3.1.5pct.model":
        p = (x["TO"] + x["FR"]) * 1448 / x["bytes"]
        return model_bps(p, p, x["RTT_s"], x["RTO_s"]) / 1e6
    if key == "parvez.tab3.max_error":
        return table_3_errors([x["RTO_s"]] * 6)[-1]
    if key == "parvez.tab3.avg_error":
        return float(np.mean(table_3_errors(x["RTO_s"])))
    if key == "parvez.tab4.avg_error":
        return float(np.mean([abs(model - measured) / measured for measured, model in TABLE_4]))
    if key == "parvez.tab4.first_row_error":
        return (TABLE_4[0][1] - TABLE_4[0][0]) / TABLE_4[0][0]
    if key == "parvez.m":
        return float(x["qtilde"] / x["p"])
    raise KeyError(key)


def bohacek(key: str, x: dict[str, Any]) -> float:
    """The figures in Bohacek and Shah's text."""
    delta = {"boh.eq10.1pct": 0.01, "boh.PTO.1pct": 0.01, "boh.PTO.5pct": 0.05}.get(key, 0.09)
    p = np.asarray(delta)
    if key == "boh.eq10.1pct":
        return float(pftk_full.time_in_timeout(p, x["R_s"], x["RTO_s"]))
    if key.startswith("boh.PTO"):
        return float(bohacek_sack.fraction_in_timeout(timeouts_begun(p, x["R_s"]), p, x["RTO_s"]))
    if key == "boh.mean.009":
        return float(bohacek_sack.mean_window(p))
    if key == "boh.c1.exact":
        return bohacek_sack.exact_moment(1)
    if key == "boh.lambda1.009":
        return float(bohacek_sack.losses_timeout_rate(p, x["R_s"]))
    if key == "boh.rho1.mean.009":
        return float(bohacek_sack.losses_rate(np.asarray(float(x["w"])), p, x["R_s"]))
    raise KeyError(key)
