"""The captures made for other tests serve here as well; runs whose tasks a test steps into."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))


@pytest.fixture
def stepped(monkeypatch):
    """Has the tasks of a run done one by one in this process; the function sees, or answers, each before it is done."""
    from corpora import Here

    def step_in(before=lambda work: None):
        monkeypatch.setattr(sys.modules["tcpfit.corpus.run"], "Local", lambda *_: Here(before))

    return step_in
