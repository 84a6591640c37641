"""Corpora: many captures analysed into one data set.

table.py     the data set's tables and their columns
settings.py  what every capture is analysed with
plan.py      which captures there are: directories, patterns, lists, URLs; rotation.py joins the parts of one
files.py     files and what is known of them; identity.py remembers which capture a file holds
task.py      what a worker does; trace.py reads one capture, tables.py has its tables, result.py keeps them
worker.py    the program of a worker; process.py is one seen from outside, local.py some, cluster.py those of dask
part.py      a part of the data set; commit.py makes all parts at once
dataset.py   the data set on disk: manifest, lock, lazy frames
run.py       from a corpus to its data set
"""

from __future__ import annotations

import os

from tcpfit.corpus.dataset import Corpus
from tcpfit.corpus.plan import plan
from tcpfit.corpus.run import Failure, Progress, Summary, run
from tcpfit.corpus.settings import Settings

__all__ = ["Corpus", "Failure", "Progress", "Settings", "Summary", "open", "plan", "run"]


def open(folder: str | os.PathLike[str]) -> Corpus:
    """A data set that `run` wrote, its tables as lazy frames.

    Raises InvalidParameter where the folder has none, or one of which a file is gone or cut.
    """
    return Corpus(folder)
