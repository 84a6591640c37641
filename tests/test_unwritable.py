"""Is what cannot be written told by its own name, and are closed streams no reason to fail?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from test_cli import COMMAND, tcpfit

import tcpfit as package
from tcpfit.analysis import AtomicFile, write_table
from tcpfit.schema import polars_schema
from tcpfit.segment_file import SegmentFile

SAMPLE = Path(__file__).resolve().parents[1] / "sample-traces" / "cubic.pcap.gz"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), pl.exceptions.ComputeError("parquet: x")])
def test_an_error_of_writing_names_the_file_that_was_asked_for(tmp_path, error):
    target = tmp_path / "report.html"
    with pytest.raises(OSError, match="(No space|cannot be written)") as caught, AtomicFile(target):
        raise error
    assert str(target) == caught.value.filename
    assert [] == list(tmp_path.iterdir())


def test_another_error_stays_what_it_is(tmp_path):
    with pytest.raises(ZeroDivisionError), AtomicFile(tmp_path / "x"):
        raise ZeroDivisionError
    with pytest.raises(OSError) as caught:
        write_table(pl.DataFrame(), tmp_path / "absent" / "x.parquet")
    assert str(tmp_path / "absent" / "x.parquet") == caught.value.filename


def test_segments_that_cannot_be_written(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("No space left on device (os error 28)")

    monkeypatch.setattr(pl.DataFrame, "write_ipc", full)
    target = tmp_path / "segments.parquet"
    with pytest.raises(OSError, match="No space") as caught, SegmentFile(target) as file:
        package.analyze(SAMPLE, segments=file.add)
    assert str(target) == caught.value.filename


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc here")
def test_segments_of_a_folder_that_takes_nothing():
    """What is told names the file, not the folder in which pieces would have waited."""
    target = Path("/proc/segments.parquet")
    with pytest.raises(OSError) as caught, SegmentFile(target) as file:
        file.add(pl.DataFrame(schema=polars_schema("segments")))
    assert str(target) == caught.value.filename


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed):
    command = f"{sys.executable} -c '{COMMAND[2]}' analyze {SAMPLE} {closed}"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert (0, "") == (run.returncode, run.stderr)
    if ">&-" not in closed.replace("2>&-", ""):
        assert tcpfit("analyze", SAMPLE).stdout == run.stdout
