"""What a corpus says as a whole, in numbers; reports show them.

flows.py       a row a flow with what all questions need, each counted once
shares.py      shares of flows with an interval that knows that flows of one capture are alike
limits.py      what holds flows back: shares of flows, bytes and time
fits.py        every model's prediction beside the observed rate
loss_law.py    rate times round-trip time against loss, and the curves of models
winners.py     which model ranks first under which conditions
spread.py      distributions of parameters; how many flows see losses, timeouts, reordering
worst.py       flows by what the cause of their verdict costs
contrast.py    two or more corpora or labels side by side
captures.py    what became of the captures, what was skipped
overview.py    all of it

The same data set says the same, to the last digit, whatever threads polars has: rows are in a known order before they
are added up, and what is as frequent is sorted by its name.
"""

from tcpfit.corpus.summary.overview import Overview, overview

__all__ = ["Overview", "overview"]
