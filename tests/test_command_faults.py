"""Full disks, closed pipes, Ctrl-C, missing files: one sentence, the right exit status, nothing half written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import captures
import pytest
from captures import Transfer

ROOT = Path(__file__).resolve().parents[1]
RUN = (sys.executable, "-c", "from cli.main import run; run()")
NO_SPACE = Path("/dev/full")
needs_full = pytest.mark.skipif(not NO_SPACE.exists(), reason="no /dev/full here")
VERBS = [
    ("analyze",),
    ("analyze", "--format", "json"),
    ("analyze", "--format", "csv"),
    ("events",),
    ("events", "--format", "jsonl"),
    ("rank",),
    ("diagnose",),
]
ALONE = [("models",), ("--help",), ("analyze", "--help"), ("predict", "--rtt", "50ms", "--p", "0.01")]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("faults") / "a.pcap"
    path.write_bytes(captures.pcap(Transfer(segments=400, lost=frozenset(range(9, 390, 20))).run()))
    return path


def run(*arguments: object, **keywords: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [*RUN, *map(str, arguments)], text=True, env=environment(), stderr=subprocess.PIPE, **keywords
    )


def said(error: str) -> str:
    """The one sentence on standard error."""
    lines = error.splitlines()
    assert 1 == len(lines), error
    assert "Traceback" not in error
    return lines[0]


@pytest.mark.parametrize("verb", [*((*verb, "CAPTURE") for verb in VERBS), *ALONE], ids=" ".join)
def test_nobody_reads(verb: tuple[str, ...], capture: Path) -> None:
    """`tcpfit ... | head -0` ends quietly."""
    reading, writing = os.pipe()
    os.close(reading)
    done = run(*(capture if word == "CAPTURE" else word for word in verb), stdout=writing)
    os.close(writing)
    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("xpl CAPTURE -o OUT", {"a2b_owin.xpl", "a2b_rtt.xpl", "a2b_tput.xpl", "a2b_tsg.xpl"}),
        ("report CAPTURE CAPTURE -o OUT", {"a.html", "a-2.html"}),
        ("analyze CAPTURE CAPTURE --output OUT", {"captures.parquet"}),
        ("analyze CAPTURE CAPTURE --html OUT --format csv", {"a.html", "a-2.html"}),
    ],
)
def test_files_are_written_where_nobody_reads_what_is_printed(
    capture: Path, tmp_path: Path, words: str, files: set[str]
) -> None:
    """`tcpfit xpl ... 2>&1 | head -1` leaves the files of `tcpfit xpl ...`, complaints of a cut capture included."""
    cut, one, other = tmp_path / "a.pcap", tmp_path / "read", tmp_path / "unread"
    cut.write_bytes(capture.read_bytes()[:-100])
    for out in (one, other):
        out.mkdir()
        reading, writing = os.pipe()
        os.close(reading)
        read = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        unread = {"stdout": writing, "stderr": writing}
        call = [*RUN, *words.replace("CAPTURE", str(cut)).replace("OUT", str(out)).split()]
        done = subprocess.run(call, env=environment(), **(read if out is one else unread))  # type: ignore[call-overload]
        os.close(writing)
        assert 0 == done.returncode
    left = [sorted(path.relative_to(out) for path in out.rglob("*")) for out in (one, other)]
    assert left[0] == left[1]
    assert files <= {path.name for path in left[0]}


@needs_full
@pytest.mark.parametrize("verb", [*((*verb, "CAPTURE") for verb in VERBS), *ALONE], ids=" ".join)
def test_no_space_for_the_output(verb: tuple[str, ...], capture: Path) -> None:
    with NO_SPACE.open("w") as full:
        done = run(*(capture if word == "CAPTURE" else word for word in verb), stdout=full)
    assert 1 == done.returncode
    assert "tcpfit: standard output: No space left on device" == said(done.stderr)


@needs_full
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb[0] in ("analyze", "rank", "diagnose")], ids=" ".join)
def test_no_space_is_said_once(verb: tuple[str, ...], capture: Path) -> None:
    """The captures after it would find none either."""
    with NO_SPACE.open("w") as full:
        done = run(*verb, *[capture] * 3, stdout=full)
    assert 1 == done.returncode
    assert "tcpfit: standard output: No space left on device" == said(done.stderr)


@pytest.mark.parametrize(
    "verb",
    [
        ("annotate", "CAPTURE", "OUT/x.pcapng"),
        ("plot", "rate", "CAPTURE", "-o", "OUT/x.svg"),
        ("xpl", "CAPTURE", "-o", "OUT"),
        ("predict", "--p", "1%", "--rtt", "1s", "--plot", "OUT/x.svg"),
    ],
    ids=lambda verb: verb[0],
)
def test_no_space_for_a_file(capture: Path, tmp_path: Path, verb: tuple[str, ...]) -> None:
    """Writing stops after some kilobytes, as on a full disk: no file is there afterwards, whole or not."""
    limited = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)); from cli.main import run; run()"
    )
    words = [word.replace("CAPTURE", str(capture)).replace("OUT", str(tmp_path)) for word in verb]
    call = [sys.executable, "-B", "-c", limited, *words]
    done = subprocess.run(call, text=True, env=environment(), capture_output=True)
    assert 1 == done.returncode
    assert "File too large" in said(done.stderr)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a2b_tsg.xpl", "xpl a2b_tsg.xpl"),
        ("a2b_tsg.xpl", "xpl LINK"),
        ("a.html", "report a.html -o a.html"),
        ("a.html", "report LINK -o a.html"),
        ("a.html", "analyze LINK --html a.html"),
        ("a.tables/flows.parquet", "report a.tables/flows.parquet -o a.html --data"),
        ("a", "analyze a --output ."),
        ("a", "analyze LINK a --output ."),
        ("a.svg", "plot rtt LINK -o a.svg"),
        ("a", "events LINK --format parquet --output a"),
        ("a", "rtt HARD --format parquet --output a"),
        ("a", "annotate LINK a --force"),
    ],
)
def test_no_capture_is_written_over(capture: Path, tmp_path: Path, name: str, words: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(capture.read_bytes())
    (tmp_path / "LINK").symlink_to(path)
    (tmp_path / "HARD").hardlink_to(path)
    before = sorted(tmp_path.rglob("*"))
    done = run(*words.split(), cwd=tmp_path, stdout=subprocess.PIPE)
    assert (2, "") == (done.returncode, done.stdout)
    assert "capture" in said(done.stderr)
    assert (before, capture.read_bytes()) == (sorted(tmp_path.rglob("*")), path.read_bytes())


@pytest.mark.parametrize("there", [True, False])
def test_a_name_cannot_move_the_cursor(capture: Path, tmp_path: Path, there: bool) -> None:
    """A capture that somebody else has named is shown as `ls` shows it."""
    path = tmp_path / "a\x1b[2Jb\nc\u202ed.pcap"
    if there:
        path.write_bytes(capture.read_bytes())
    done = run("analyze", path, stdout=subprocess.PIPE)
    text = done.stdout.splitlines()[0] if there else said(done.stderr)
    assert r"a\x1b[2Jb\nc\u202ed.pcap" in text


@pytest.mark.parametrize(
    "words",
    [
        "diagnose NAME NAME",
        "dynamics NAME",
        "batch NAME -o OUT",
        "report OUT --format table",
        "report NAME -o NAME.html",
        "annotate NAME NAME.pcapng",
        "explain NAME 10",
    ],
)
def test_no_verb_lets_a_name_move_the_cursor(words: str, named: Path) -> None:
    """Nor do tables break a name into lines."""
    parts = [word.replace("NAME", f"{named}").replace("OUT", f"{named.parent}/\x1bOUT") for word in words.split()]
    reading, writing = os.openpty()  # programs get names as they are, terminals do not
    done = subprocess.Popen([*RUN, *parts], env=environment() | {"TERM": "dumb", "COLUMNS": "200"}, stdout=writing)
    os.close(writing)
    text = b""
    while more := _more(reading):
        text += more
    os.close(reading)
    assert 0 == done.wait()
    assert b"\x1b" not in text
    assert rb"\x1b[2Jb\nc" in text or rb"\x1bOUT" in text


def _more(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nobody has the other side any more
        return b""


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("named") / "a\x1b[2Jb\nc.pcap"
    path.write_bytes(captures.pcap(Transfer(segments=400, lost=frozenset(range(9, 390, 20))).run()))
    return path


@pytest.mark.parametrize(
    "words",
    [
        "analyze CAPTURE --top N",
        "analyze CAPTURE --flow N",
        "analyze CAPTURE --from N",
        "analyze CAPTURE --max-memory NMB",
        "batch CAPTURE -o OUT --workers N",
        "dynamics CAPTURE --flow N",
        "explain CAPTURE N",
        "plot rtt CAPTURE -o a.svg --flow N",
        "predict --rtt 1s --p 1% --sweep b=1:2:lin:N",
        "predict --rtt N --p 1%",
    ],
)
@pytest.mark.parametrize("number", ["1_000", "\u0663"])
def test_numbers_are_written_in_plain_digits(capture: Path, tmp_path: Path, words: str, number: str) -> None:
    done = run(*words.replace("CAPTURE", str(capture)).replace("N", number).split(), cwd=tmp_path)
    assert 2 == done.returncode
    assert number in said(done.stderr)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words",
    [
        "analyze CAPTURE --output",
        "analyze CAPTURE --html",
        "report CAPTURE -o",
        "events CAPTURE --format parquet --output",
        "plot rtt CAPTURE -o",
        "xpl CAPTURE -o",
        "batch CAPTURE -o",
        "predict --p 1% --rtt 1s --plot",
    ],
)
def test_an_empty_name_is_not_the_folder_here(capture: Path, tmp_path: Path, words: str) -> None:
    """As of a variable of a script that is not set."""
    done = run(*(capture if word == "CAPTURE" else word for word in words.split()), "", cwd=tmp_path)
    assert 2 == done.returncode
    assert "the name is empty" in said(done.stderr)
    assert [] == list(tmp_path.iterdir())


def test_names_that_are_not_utf_8(capture: Path, tmp_path: Path) -> None:
    """A capture's name is escaped where tables have it; polars writes to no such name, and tables have no such text."""
    name, other = os.fsdecode(b"caf\xe9.pcap"), os.fsdecode(b"b\xe9")
    (tmp_path / name).write_bytes(capture.read_bytes())
    for words in (
        ["analyze", name, "--output", "tables", "--segments"],
        ["report", name, "--data"],
        ["report", name, "-o", f"{other}.html"],
        ["batch", name, "-o", "set"],
        ["report", "set", "-o", f"{other}-set.html"],
    ):
        done = run(*words, cwd=tmp_path, stdout=subprocess.PIPE)
        assert (0, "") == (done.returncode, done.stderr), words
    assert (tmp_path / "tables" / r"caf\xe9" / "segments.parquet").is_file()
    for words in (
        ["analyze", name, "--output", other],
        ["report", name, "-o", f"{other}.html", "--data"],
        ["events", name, "--format", "parquet", "--output", other],
        ["rtt", name, "--format", "parquet", "--output", other],
        ["batch", name, "-o", other],
        ["batch", name, "-o", "set", "--label", f"site={other}"],
        ["batch", name, "-o", "set", "--filter", f"host {other}"],
        ["analyze", name, "--filter", f"host {other}"],
    ):
        done = run(*words, cwd=tmp_path, stdout=subprocess.PIPE)
        assert (2, "") == (done.returncode, done.stdout), words
        assert "UTF-8" in said(done.stderr)


def test_tables_stay_below_the_folder_that_is_asked_for(capture: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "...pcap", tmp_path / "deep" / "out"
    path.write_bytes(capture.read_bytes())
    assert 0 == run("analyze", path, "--output", out, stdout=subprocess.PIPE).returncode
    assert {out / "capture"} == {each.parent for each in tmp_path.rglob("*.parquet")}


def test_one_of_ten_cannot_be_read(capture: Path, tmp_path: Path) -> None:
    names = [capture] * 10
    names[1] = tmp_path / "missing.pcap"
    done = run("analyze", *names, "--format", "csv", stdout=subprocess.PIPE)
    assert 1 == done.returncode
    assert said(done.stderr).startswith(f"tcpfit: {names[1]}: no such file")
    rows = done.stdout.splitlines()
    assert 1 + 9 == len(rows)


def test_no_file_handles_left(capture: Path) -> None:
    few = (
        "import resource, os; import cli.main, tcpfit.analysis, tcpfit.engine, tcpfit.report.terminal; "
        "opened = [os.dup(0) for _ in range(3)]; "
        "resource.setrlimit(resource.RLIMIT_NOFILE, (max(opened) + 1,) * 2); cli.main.run()"
    )
    call = [sys.executable, "-c", few, "analyze", str(capture)]
    done = subprocess.run(call, text=True, env=environment(), capture_output=True)
    assert 1 == done.returncode
    assert "Too many open files" in said(done.stderr)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_a_table_is_written(capture: Path, tmp_path: Path, number: int) -> None:
    half = (
        "import os, polars\n"
        "def write(table, path, **_):\n"
        "    path.write_text('half')\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "polars.DataFrame.write_parquet = write\n"
        "from cli.main import run; run()"
    )
    call = [sys.executable, "-c", half, "analyze", str(capture), "--output", str(tmp_path)]
    done = subprocess.run(call, text=True, env=environment(), capture_output=True)
    assert (130, "") == (done.returncode, done.stdout)
    assert "interrupted" in said(done.stderr)
    assert [] == [path for path in tmp_path.rglob("*") if path.is_file()]


def test_interrupted_while_a_pipe_has_nothing_to_read(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    with subprocess.Popen(
        [*RUN, "analyze", str(fifo)], text=True, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        with fifo.open("wb") as writer:  # opens when the reader is there
            writer.write(captures.pcap(Transfer().run())[:500])
            writer.flush()
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=60)
    assert (130, "") == (process.returncode, out)
    assert "interrupted" in said(error)
