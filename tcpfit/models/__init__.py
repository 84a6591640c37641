"""Throughput models of TCP: one paper's law a file, as functions of measured parameters and as regressors.

>>> import tcpfit.models
>>> float(tcpfit.models.get("mathis").predict(p=0.01, rtt=0.1).round(2))
122.47

Rates are segments/s, times seconds, windows segments. Models whose `predicts` is "transfer-time" predict seconds;
`BohacekDynamics` predicts a course over time and is not in the catalogue. Only numpy is imported; scipy where a model
or a fit needs it.
"""

from __future__ import annotations

from functools import cache

from tcpfit.arguments import shown
from tcpfit.exceptions import InvalidParameter
from tcpfit.models.base import Assumption, Model, Parameter
from tcpfit.models.bohacek_dynamics import BohacekDynamics, Trajectory
from tcpfit.models.bohacek_sack import BohacekSack
from tcpfit.models.cardwell_2000 import Cardwell2000
from tcpfit.models.catnip import Catnip
from tcpfit.models.cubic import Cubic
from tcpfit.models.hysteresis import Hysteresis
from tcpfit.models.mathis import Mathis
from tcpfit.models.newreno_full import NewRenoFull
from tcpfit.models.newreno_noto import NewRenoNoTO
from tcpfit.models.padhye_short import PadhyeShort
from tcpfit.models.pftk_approx import PFTKApprox
from tcpfit.models.pftk_full import PFTKFull
from tcpfit.models.pftk_simple import PFTKSimple
from tcpfit.models.plugins import load
from tcpfit.models.reordering_goodput import ReorderingGoodput
from tcpfit.models.sikdar_latency import SikdarRenoLatency, SikdarSackLatency, SikdarTahoeLatency
from tcpfit.models.sikdar_reno import SikdarReno
from tcpfit.models.sikdar_sack import SikdarSack
from tcpfit.models.sikdar_tahoe import SikdarTahoe
from tcpfit.models.tfrc import TFRC

_CLASSES: tuple[type[Model], ...] = (  # in the order of the JSON contract
    Mathis,
    PFTKSimple,
    PFTKApprox,
    PFTKFull,
    TFRC,
    NewRenoNoTO,
    NewRenoFull,
    SikdarTahoe,
    SikdarReno,
    SikdarSack,
    ReorderingGoodput,
    BohacekSack,
    Cubic,
    Hysteresis,
    Catnip,
    Cardwell2000,
    SikdarTahoeLatency,
    SikdarRenoLatency,
    SikdarSackLatency,
    PadhyeShort,
)

__all__ = [
    "Assumption",
    "BohacekDynamics",
    "Model",
    "Parameter",
    "Trajectory",
    "catalogue",
    "get",
    *(cls.__name__ for cls in _CLASSES),
]


@cache
def _known() -> dict[str, type[Model]]:
    """tcpfit's own models, then those of other packages."""
    own = {cls.name: cls for cls in _CLASSES}
    return own | {cls.name: cls for cls in load(own)}


def catalogue() -> dict[str, Model]:
    """Every model under its name, with its default conventions; new objects at each call.

    Models of other packages (entry points of the group `tcpfit.models`) come last; one that cannot be used is left out
    with a `tcpfit.exceptions.PluginWarning`, once.
    """
    return {name: cls() for name, cls in _known().items()}


def get(name: str) -> Model:
    """The model of that name, with its default conventions.

    Raises InvalidParameter for a name that is none.
    """
    for cls in _CLASSES:  # without a look at other packages, where that is not needed
        if cls.name == name:
            return cls()
    if isinstance(name, str) and name in _known():
        return _known()[name]()
    raise InvalidParameter(f"There is no model {shown(name)}; known are {', '.join(_known())}.")
