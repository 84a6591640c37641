"""Does the command do what its help says, and fail in a sentence?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import captures
import pytest
from captures import Transfer
from test_formats import drops
from test_json import assert_contract

ROOT = Path(__file__).parent.parent
COMMAND = [sys.executable, "-c", "from tcpfit.cli.main import run; run()"]


def tcpfit(*arguments, **options):
    environment = {k: v for k, v in os.environ.items() if k not in ("TCPFIT_DEBUG", "COLUMNS", "FORCE_COLOR")}
    environment |= options.pop("env", {})
    options.setdefault("text", True)
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, env=environment, timeout=120, check=False, **options
    )


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "transfer.pcap"
    packets = Transfer(segments=400, lost=frozenset(range(50, 400, 37))).run()
    packets += Transfer(segments=60, sport=40001, start_s=0.2, v6=True).run()
    path.write_bytes(captures.pcap(sorted(packets, key=lambda packet: packet.time_ns)))
    return path


def assert_sentence(run, status, *parts):
    """One sentence on standard error, no traceback, that exit status."""
    assert status == run.returncode, run.stderr
    assert "Traceback" not in run.stderr
    assert 1 == len(run.stderr.strip().splitlines()), run.stderr
    for part in parts:
        assert str(part) in run.stderr


def test_json(capture):
    run = tcpfit("analyze", capture, "--format", "json")
    assert (0, "") == (run.returncode, run.stderr)
    document = json.loads(run.stdout)
    assert_contract(document)
    assert [str(capture)] == [entry["path"] for entry in document["captures"]]


def test_jsonl_and_csv(capture):
    lines = tcpfit("analyze", capture, capture, "--format", "jsonl").stdout.splitlines()
    assert 4 == len([json.loads(line) for line in lines])
    table = tcpfit("analyze", capture, capture, "--format", "csv").stdout.splitlines()
    assert 5 == len(table)
    assert table[0].startswith("capture,id,connection,src,")
    assert table[1] == table[3]


def test_table_fits_80_columns(capture):
    run = tcpfit("analyze", capture)
    assert (0, "") == (run.returncode, run.stderr)
    assert max(map(len, run.stdout.splitlines())) <= 80
    assert "\x1b" not in run.stdout
    assert "10.0.0.1:40000" in run.stdout
    assert "verdict" in run.stdout


def test_overview_counts_the_segments_of_which_some_were_lost(capture):
    """At the receiver fewer pass than were sent; each of the two numbers stands in a sentence, too."""
    text = tcpfit("analyze", ROOT / "sample-traces/sack-loss-receiver.pcap.gz").stdout
    assert " 102 of 4429 sent segments lost" in " ".join(text.split())
    first, second = (line.split() for line in text.splitlines()[6:8])
    assert ("4429", "102") == (first[4], second[3])


@pytest.mark.parametrize(("dropped", "said"), [(0, None), (1, "1 more packet"), (5037, "5,037 more packets")])
def test_what_the_interface_dropped_is_told(dropped, said, tmp_path):
    """dumpcap counts in a block at the end what came too fast for it."""
    path, page = tmp_path / "drops.pcapng", tmp_path / "drops.html"
    path.write_bytes(captures.pcapng(Transfer(segments=60).run()) + drops("<", 0, dropped, 0))
    shown = " ".join(tcpfit("analyze", path, "--html", page).stdout.split())
    for text in (shown, tcpfit("events", path).stdout, page.read_text()):
        assert (said is not None) == ("interfaces say that they dropped" in text)
        assert (said or "") in text


def test_p_is_not_to_be_trusted_where_the_capture_missed_much(tmp_path):
    """Every twentieth data packet is missing: the receiver acknowledged it, and nobody sent it again."""
    path, page = tmp_path / "missed.pcap", tmp_path / "missed.html"
    packets = Transfer(segments=400).run()
    missed = [packet for packet in packets if packet.wire_len > 1000][10::20]
    packets = [packet for packet in packets if packet not in missed]
    packets += Transfer(segments=30, sport=40001, start_s=0.2).run()
    path.write_bytes(captures.pcap(sorted(packets, key=lambda packet: packet.time_ns)))
    shown = tcpfit("analyze", path, "--html", page).stdout
    rows = {line.split()[1]: line.split("  ") for line in shown.splitlines()[5:10] if "10.0.0.1:" in line}
    assert {"10.0.0.1:40000": True, "10.0.0.1:40001": False} == {
        end: any(cell.endswith("?") for cell in row) for end, row in rows.items()
    }
    for text in (shown, page.read_text()):
        assert "p is not to be trusted" in text
        assert "of the data segments: p, m, q" in " ".join(text.split())


@pytest.mark.parametrize("columns", ["0", "-3", "wide", ""])
def test_columns_that_are_no_width_are_80(capture, columns):
    expected = tcpfit("analyze", capture)
    run = tcpfit("analyze", capture, env={"COLUMNS": columns})
    assert (0, "", expected.stdout) == (run.returncode, run.stderr, run.stdout)


@pytest.mark.parametrize("verb", ["analyze", "events", "diagnose", "rank"])
def test_one_column_is_too_few(capture, verb):
    run = tcpfit(verb, capture, env={"COLUMNS": "1"})
    assert (0, "") == (run.returncode, run.stderr)
    assert 20 in map(len, run.stdout.splitlines())


def test_no_color_is_honoured(capture):
    coloured = tcpfit("analyze", capture, env={"FORCE_COLOR": "1"}).stdout
    assert "\x1b[" in coloured
    plain = tcpfit("analyze", capture, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout
    assert "\x1b[3" not in plain


def test_one_flow_in_full(capture):
    run = tcpfit("analyze", capture, "--flow", 1)
    assert "flow 1 " in run.stdout
    assert "flow 0 " not in run.stdout
    assert_sentence(tcpfit("analyze", capture, "--flow", 9), 2, "no flow 9", "0 to 1")


def test_top_and_min_segments(capture):
    assert "1 smaller flow not shown" in tcpfit("analyze", capture, "--top", 1).stdout
    document = json.loads(tcpfit("analyze", capture, "--format", "json", "--min-segments", 100).stdout)
    assert 1 == len(document["captures"][0]["flows"])


@pytest.mark.parametrize("reader", ["engine", "dpkt"])
def test_standard_input(capture, reader):
    with capture.open("rb") as stream:
        run = tcpfit("analyze", "-", "--format", "json", "--reader", reader, stdin=stream)
    assert (0, "") == (run.returncode, run.stderr)
    assert "-" == json.loads(run.stdout)["captures"][0]["path"]
    assert_sentence(tcpfit("analyze", "-", "-"), 2, "standard input")


def test_output_writes_a_folder_a_capture(capture, tmp_path):
    out = tmp_path / "tables"
    assert 0 == tcpfit("analyze", capture, capture, "--output", out).returncode
    assert ["transfer", "transfer-2"] == sorted(path.name for path in out.iterdir())
    names = "captures events flows parameters ranking rounds verdicts".split()
    assert names == sorted(path.stem for path in (out / "transfer").iterdir())


def test_output_that_cannot_be_written(capture, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert_sentence(tcpfit("analyze", capture, "--output", tmp_path / "file"), 2, "file")


def test_span(capture):
    part = json.loads(tcpfit("analyze", capture, "--format", "json", "--from", "0.5s", "--to", "1500ms").stdout)
    whole = json.loads(tcpfit("analyze", capture, "--format", "json").stdout)
    counts = [document["captures"][0]["flows"][0]["counts"]["data_segments"] for document in (part, whole)]
    assert 0 < counts[0] < counts[1]


BAD = {
    "empty": (b"", "empty file"),
    "text": (b"these are words, not packets\n" * 9, "text file"),
    "header": (b"\xd4\xc3\xb2\xa1\x02\x00", "header"),
    "xz": (b"\xfd7zXZ\x00" + bytes(40), "xz"),
    "gzip-of-text": (None, "text file"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_capture(tmp_path, name):
    import gzip

    content, said = BAD[name]
    path = tmp_path / "bad.pcap"
    path.write_bytes(gzip.compress(b"words, words, words\n" * 9) if content is None else content)
    assert_sentence(tcpfit("analyze", path), 1, path, said)


def test_missing_file_and_directory(tmp_path):
    assert_sentence(tcpfit("analyze", tmp_path / "absent.pcap"), 1, "absent.pcap", "no such file")
    assert_sentence(tcpfit("analyze", tmp_path), 1, tmp_path, "directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_file_without_permission(capture, tmp_path):
    path = tmp_path / "secret.pcap"
    path.write_bytes(capture.read_bytes())
    path.chmod(0)
    assert_sentence(tcpfit("analyze", path), 1, path, "permission")


def test_path_that_is_no_text(capture, tmp_path):
    path = tmp_path / os.fsdecode(b"n\xffme.pcap")
    path.write_bytes(capture.read_bytes())
    document = json.loads(tcpfit("analyze", path, "--format", "json").stdout)
    assert [str(path)] == [entry["path"] for entry in document["captures"]]
    assert_sentence(tcpfit("analyze", f"{path}x"), 1, "no such file")


def test_others_are_analysed_all_the_same(capture, tmp_path):
    run = tcpfit("analyze", tmp_path / "absent.pcap", capture, "--format", "json")
    assert_sentence(run, 1, "absent.pcap")
    assert [str(capture)] == [entry["path"] for entry in json.loads(run.stdout)["captures"]]


def test_cut_capture_is_analysed_with_a_warning(capture, tmp_path):
    path = tmp_path / "cut.pcap"
    path.write_bytes(capture.read_bytes()[:-30])
    run = tcpfit("analyze", path)
    assert (0, "") == (run.returncode, run.stderr)
    assert "warning: frame" in run.stdout
    assert_sentence(tcpfit("analyze", path, "--format", "csv"), 0, "cut.pcap", "the capture ends here")


def test_capture_without_flows(tmp_path):
    path = tmp_path / "none.pcap"
    path.write_bytes(captures.pcap([]))
    run = tcpfit("analyze", path)
    assert (0, "") == (run.returncode, run.stderr)
    assert "no TCP flow carried data" in run.stdout
    document = json.loads(tcpfit("analyze", path, "--format", "json").stdout)
    assert_contract(document)
    assert [] == document["captures"][0]["flows"]
    assert 1 == len(tcpfit("analyze", path, path, "--format", "csv").stdout.splitlines())
    assert "no TCP flow" in tcpfit("analyze", path, "--reader", "dpkt").stdout


WRONG = {
    "format": (["--format", "yaml"], "--format"),
    "reader": (["--reader", "eyes"], "--reader"),
    "vantage": (["--vantage", "moon"], "--vantage"),
    "time": (["--from", "soon"], "'soon' is not a time"),
    "span": (["--from", "2", "--to", "1"], "end must come after the start"),
    "filter": (["--filter", "colour red"], "colour"),
    "top": (["--top", "-1"], "--top"),
    "option": (["--frobnicate"], "--frobnicate"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(capture, name):
    arguments, said = WRONG[name]
    run = tcpfit("analyze", capture, *arguments)
    assert_sentence(run, 2, said)
    assert "" == run.stdout


def test_no_arguments_and_unknown_verb():
    assert_sentence(tcpfit("analyze"), 2, "CAPTURE")
    assert_sentence(tcpfit("analyse"), 2, "analyse")


def test_help_and_version():
    help_page = tcpfit("analyze", "--help")
    assert 0 == help_page.returncode
    for option in ("--format", "--output", "--flow", "--reader", "--vantage", "--filter", "--from", "--to"):
        assert option in help_page.stdout
    assert tcpfit("--version").stdout.startswith("tcpfit ")
    assert "analyze" in tcpfit("--help").stdout


def test_reader_of_a_closed_pipe_is_not_complained_of(capture):
    code = f"{sys.executable} -c 'from tcpfit.cli.main import run; run()' analyze {capture} --format jsonl | true"
    run = subprocess.run(
        ["bash", "-o", "pipefail", "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert "" == run.stderr


def test_unexpected_errors_are_a_sentence(capture, tmp_path):
    broken = tmp_path / "sitecustomize.py"
    broken.write_text(
        "import tcpfit.readers as r\ndef f(*args, **more): raise RuntimeError('two\\nlines')\nr.read = f\n"
    )
    environment = {"PYTHONPATH": str(tmp_path)}
    assert_sentence(tcpfit("analyze", capture, env=environment), 1, "unexpected", "two lines", "TCPFIT_DEBUG")
    assert "Traceback" in tcpfit("analyze", capture, env=environment | {"TCPFIT_DEBUG": "1"}).stderr


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10", 10), ("2.5s", 2.5), (".5", 0.5), ("250ms", 0.25), ("1m30s", 90), ("1h", 3600), ("2m", 120)],
)
def test_times(text, seconds):
    from tcpfit.cli.options import Duration

    assert seconds == Duration().convert(text, None, None)


def test_interrupt_is_a_sentence(capture):
    run = subprocess.Popen(
        [*COMMAND, "analyze", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert run.stdin is not None
    try:
        run.stdin.write(capture.read_bytes())
        run.stdin.flush()
        # the command is waiting for more once it has taken all that was written
        while run.poll() is None and not _waits(run.pid):
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    finally:
        run.kill()
    assert (130, b"") == (run.returncode, out)
    assert 1 == len(err.strip().splitlines())
    assert b"interrupted" in err


def _waits(pid: int) -> bool:
    """Whether the process has imported what it needs and sleeps."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return "_engine.abi3" in maps and state == "S"
