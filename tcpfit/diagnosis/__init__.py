"""What held a flow back: time given to causes, stalls, what each cause cost, and a verdict."""

from tcpfit.diagnosis.accounting import account
from tcpfit.diagnosis.causes import CAUSES
from tcpfit.diagnosis.silences import silences
from tcpfit.diagnosis.table import diagnose, facts
from tcpfit.diagnosis.verdict import Cause, Diagnosis

__all__ = ["CAUSES", "Cause", "Diagnosis", "account", "diagnose", "facts", "silences"]
