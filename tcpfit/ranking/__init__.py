"""Ranking: which throughput model explains a flow, how well, and which assumption fails where none does.

steady.py         the part of a flow that a steady-state model speaks about
blocks.py         that part in blocks of consecutive rounds with enough events each, and parameters of any of them
prediction.py     what a model predicts from such parameters
cut.py            the flows' parameters as arrays, and their blocks
residuals.py      ln(predicted/observed), of a block from the other blocks, and of the whole flow
by_block.py       these of every block and model as a table
comparison.py     score, paired differences, block bootstrap, rank
applicability.py  the models' assumptions as checks on the flow
verdict.py        one word and one sentence a flow
bottleneck.py     whether a flow fills its bottleneck
variants.py       models beside the printed ones: extended, or with a fitted parameter
fitting.py        a parameter fitted on a flow's own blocks
halves.py         the second half of a flow predicted from the first
observed.py       what the flows achieved
short.py          short flows pooled by size, against models of the transfer time
dynamics.py       one flow over time
across.py         many flows: how far each model is off, constants, which wins where
"""

from tcpfit.ranking.blocks import EVENTS
from tcpfit.ranking.by_block import BY_BLOCK, by_block
from tcpfit.ranking.observed import OBSERVED, observed, observed_of
from tcpfit.ranking.rank import rank
from tcpfit.ranking.table import RANKING, STATES, VERDICTS
from tcpfit.ranking.variants import by_name

__all__ = [
    "BY_BLOCK",
    "EVENTS",
    "OBSERVED",
    "RANKING",
    "STATES",
    "VERDICTS",
    "by_block",
    "by_name",
    "observed",
    "observed_of",
    "rank",
]
