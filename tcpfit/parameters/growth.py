"""Family of congestion control, from how the window falls at loss and how it grows between losses.

**Rule**: at each fast recovery of a real loss that no timeout broke off and that began with at least 8 segments in
flight, the decrease factor is the largest flight of the first open round after it (less half a segment, the growth
within the round) over the largest flight of the round in which it began. Reno keeps 0.5 (RFC 5681, 3.1); CUBIC keeps
0.7 and grows by 0.53 segments a round where it is not faster (RFC 9438, 4.3 and 4.6); BBR does not react to single
losses and keeps its flight. With at least 5 clean episodes the median factor decides, and for the latter two the
growth must agree (b, rounds a segment):

    below 0.60 reno        0.60 to 0.82 and b above 1.4 cubic        above 0.82 and b above 3 bbr

Confidence is the share of the bootstrap medians (over the episodes) that fall in the same class, times n/(n + 2);
where less than 0.8 of them do, or with fewer episodes, the family is `unknown`. So is one that would be bbr away from
the sender without timestamps, where the flight is an estimate that may miss a fall.
**Departures**: the flight is a lower bound of the window; a sender that had nothing to send shows a deeper fall. With
a delayed ACK counted per ACK (b = 2) and few segments in flight, Reno can look like CUBIC. A CUBIC window well above
the friendly region grows faster than b = 1.4 and stays `unknown`.
**Validation**: tests/parameters/test_growth.py; the matrix over the traces with truth is in docs/parameters.md.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special

from tcpfit.parameters.evidence import Evidence, once
from tcpfit.parameters.growth_rate import slope
from tcpfit.parameters.intervals import Floats, Ints
from tcpfit.parameters.nearest import earliest, latest

FAMILIES = {
    "reno": "adds one segment a round, halves at loss (RFC 5681)",
    "cubic": "grows by a cubic of time, keeps 0.7 at loss (RFC 9438)",
    "bbr": "follows a model of the path, not single losses",
    "unknown": "the capture does not show it",
}

EPISODES = 5
LEAST = 8.0
RENO_BELOW, CUBIC_BELOW = 0.60, 0.82
SURE = 0.8
FLAT, SLOW = 1 / 3, 1 / 1.4  # segments of growth a round


CUBIC_AS_RENO = 3 * (1 - 0.7) / (1 + 0.7)
"""A window that grows by 1/b a round and keeps beta at loss has the mean rate of one that halves and has b times
3 (1 - beta)/(1 + beta) (RFC 9438, 4.3): what a Reno model is given as b for a CUBIC flow."""


@once
def families(evidence: Evidence) -> pl.DataFrame:
    """Columns flow, family (Enum), confidence (0 to 1), decrease (median factor, null without episodes), episodes."""
    owner, factor = decreases(evidence)
    growth = slope(evidence).value
    n = np.bincount(owner, minlength=len(evidence))
    middle = np.full(len(evidence), np.nan)
    table = pl.DataFrame({"owner": owner, "factor": factor}).group_by("owner").agg(pl.col("factor").median())
    middle[table["owner"].to_numpy()] = table["factor"].to_numpy()
    reno = _median_below(owner, factor, RENO_BELOW, n)
    cubic = _median_below(owner, factor, CUBIC_BELOW, n) - reno
    share = np.stack([reno, cubic, 1 - reno - cubic])
    family = np.where(middle < RENO_BELOW, 0, np.where(middle < CUBIC_BELOW, 1, 2))
    # a flight that does not fall can be the capture point's error where nothing dates the ACKs that the sender had
    dated = np.asarray(evidence.flows["vantage"].cast(pl.String) == "sender") | (evidence.column("timestamps") > 0)
    agrees = np.stack([np.ones(len(n), np.bool_), growth <= SLOW, (growth <= FLAT) & dated])
    at = family, np.arange(len(n))
    known = (n >= EPISODES) & (share[at] >= SURE) & agrees[at]
    names = np.where(known, np.array(["reno", "cubic", "bbr"])[family], "unknown").tolist()
    confidence = np.where(known, share[at] * n / (n + 2.0), 0.0)
    return pl.DataFrame(
        {
            "flow": evidence.flow,
            "family": names,
            "confidence": confidence,
            "decrease": middle,
            "episodes": n,
        },
        schema_overrides={"flow": pl.UInt32, "family": pl.Enum(list(FAMILIES)), "episodes": pl.UInt32},
    ).with_columns(pl.col("decrease").fill_nan(None))


def as_reno(family: pl.DataFrame, b: Floats) -> Floats:
    """The b that a Reno model is given: of a CUBIC flow that of the Reno flow with the same mean rate."""
    return np.asarray(b * np.where(family["family"].cast(pl.String) == "cubic", CUBIC_AS_RENO, 1.0))


def decreases(evidence: Evidence) -> tuple[Ints, Floats]:
    """Decrease factor of each clean recovery, and the position of its flow; in the order of flow and time."""
    recoveries, rounds = evidence.of("recovery"), evidence.rounds
    if not len(recoveries) or not len(rounds):
        return np.zeros(0, np.int64), np.zeros(0)
    begins, flight = rounds.times("start_ns"), rounds.floats("flight")
    clean = np.asarray(rounds.frame["phase"].cast(pl.String) == "open", dtype=np.bool_)
    clean &= (rounds.floats("lost_segments") == 0) & (rounds.floats("resent_segments") == 0)
    began = latest(recoveries.owner, recoveries.times(), rounds.owner, begins)
    before = np.fmax(recoveries.floats("flight"), np.where(began >= 0, flight[began], 0.0))
    end = recoveries.times() + (np.nan_to_num(recoveries.floats("value")) * 1e9).astype(np.int64)
    after = earliest(recoveries.owner, end, rounds.owner, begins)
    whole = ~np.asarray(recoveries.frame["timeout_follows"].fill_null(False), dtype=np.bool_)
    whole &= _follows_loss(evidence) & (before >= LEAST) & (after >= 0) & clean[after]
    whole &= ~(begins[after] - end > 1.5 * (rounds.floats("rtt_s") * 1e9)[after])  # a round without RTT may be later
    return recoveries.owner[whole], (flight[after[whole]] - 0.5) / before[whole]


def _follows_loss(evidence: Evidence) -> NDArray[np.bool_]:
    """Which recoveries began within two round trips of the first loss of a loss event (the others are spurious)."""
    recoveries, losses = evidence.of("recovery"), evidence.of("loss_event")
    loss = latest(recoveries.owner, recoveries.times(), losses.owner, losses.times())
    waited = (recoveries.times() - np.append(losses.times(), 0)[loss]) / 1e9
    real: NDArray[np.bool_] = (loss >= 0) & (waited <= 2 * evidence.column("rtt_p95_s")[recoveries.owner])
    return real


def _median_below(owner: Ints, factor: Floats, limit: float, n: Ints) -> Floats:
    """Share of the bootstrap samples of each flow's factors whose median is below the limit (a binomial
    probability)."""
    below = np.bincount(owner, factor < limit, len(n))
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(n > 0, below / n, 0.0)
    return np.asarray(special.bdtrc(np.ceil((n + 1) / 2) - 1, n, chance))
