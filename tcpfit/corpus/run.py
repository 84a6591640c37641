"""A run: what is missing from the data set is analysed, then all of it is committed at once.

    plan -> identify -> analyse -> commit

A capture is identified, by a hash of its bytes, before it is analysed: copies are analysed once, and what the data set
has already is not analysed again. Every result lies in a file of its own until the commit, so a run that was killed
goes on where it was.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tcpfit import arguments
from tcpfit.anonymity import Pseudonyms, fingerprint
from tcpfit.arguments import path_text
from tcpfit.corpus import dataset, result
from tcpfit.corpus.commit import Entry, commit
from tcpfit.corpus.dataset import Corpus, Manifest, State
from tcpfit.corpus.files import File, found, is_url, of_parts, of_path
from tcpfit.corpus.identity import Identities
from tcpfit.corpus.local import Executor, Local, Token
from tcpfit.corpus.plan import Labels, Trace, plan
from tcpfit.corpus.process import Limits
from tcpfit.corpus.settings import Settings
from tcpfit.corpus.table import FOR_NOW, STATUSES
from tcpfit.corpus.task import Outcome, Task, weight
from tcpfit.corpus.trace import without_path
from tcpfit.corpus.waiting import Waiting
from tcpfit.exceptions import CaptureError, InvalidParameter

ATTEMPTS = 3
"""Workers that may die on a capture, and times it may change while it is read."""

MOST_WORKERS = 1 << 10
"""More are refused: each is a process and a thread."""

TIME_LIMIT_S = 3600.0

MEMORY_SHARE = 0.8
"""Of the machine's memory, for all workers together, where no limit is given."""

MOST_SHARES = 64

FIRST = 20
"""Captures from which on the time left is told, or a twentieth of the work."""


@dataclass
class Progress:
    """How far a run is. `work` counts bytes, and some for every capture: what is left of it takes the time it took."""

    captures: int = 0
    done: int = 0
    failed: int = 0
    work: int = 0
    work_done: int = 0
    phase: str = "analyse"
    started: float = field(default_factory=time.monotonic)

    @property
    def rate_per_s(self) -> float:
        """Captures per second so far."""
        return self.done / max(time.monotonic() - self.started, 1e-9)

    @property
    def left_s(self) -> float | None:
        """Seconds left at this rate; None where nothing was to be done, or starting workers is most of the time."""
        if not self.work_done or (self.done < FIRST and self.work_done < self.work / 20):
            return None
        return (time.monotonic() - self.started) * (self.work - self.work_done) / self.work_done


@dataclass(frozen=True)
class Failure:
    """A capture of the corpus that was not analysed."""

    path: str
    status: str
    reason: str


@dataclass
class Summary:
    """What a run did. `captures` counts contents: copies are one; `failed_before` of those that are unchanged."""

    captures: int = 0
    copies: int = 0
    analysed: int = 0
    unchanged: int = 0
    failed_before: int = 0
    dropped: int = 0
    failures: list[Failure] = field(default_factory=list)
    interrupted: bool = False
    kept_old: bool = False
    """Interrupted under other settings than those of the data set, which is as it was."""
    seconds: float = 0.0


def run(
    sources: Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    time_limit_s: float | None = TIME_LIMIT_S,
    memory_limit_bytes: int | None = None,
    shard_over_bytes: int | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    labels: Labels = (),
    join: bool = True,
    force: bool = False,
    prune: bool = False,
    key: bytes | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Analyse a corpus into a data set; only what is missing from it, or has changed, unless `force` is given.

    `sources` are directories, files, patterns, lists of captures (.txt, .csv, .jsonl) and URLs; see `plan`. `workers`
    is a number of processes, as many as there are processors if not given; `scheduler` the address of a dask scheduler,
    or "local" for one of this run. `time_limit_s` and `memory_limit_bytes` are a worker's, for one capture;
    `shard_over_bytes` splits the flows of a larger capture between workers. `prune` drops captures that are no longer
    in the corpus. `key` puts pseudonyms in the place of addresses and of the captures' names (`tcpfit.anonymity`); the
    data set knows its fingerprint, and later runs have to give it again. An interrupt commits what is there, but for
    settings other than the data set's: then that stays as it was, until a run ends. A second one commits nothing.
    Raises InvalidParameter for arguments that make no sense, OSError where the data set cannot be written.
    """
    settings = Settings() if settings is None else settings
    settings = arguments.instance("settings", settings, Settings, "a tcpfit.corpus.Settings").checked()
    settings = replace(settings, anonymized=None if key is None else fingerprint(key))
    workers = None if workers is None else arguments.whole("workers", workers, below=MOST_WORKERS)
    if scheduler is not None:
        arguments.text("scheduler", scheduler)
    if progress is not None and not callable(progress):
        raise InvalidParameter(f"progress must be a function, got {arguments.shown(progress)}")
    _check_numbers(
        time_limit_s=time_limit_s,
        memory_limit_bytes=memory_limit_bytes,
        shard_over_bytes=shard_over_bytes,
    )
    folder = Path(arguments.path_of_tables("out", out))
    if folder.exists() and not folder.is_dir():
        raise InvalidParameter(f"{folder}: not a folder; give the name of another")
    traces = plan(
        sources, include=include, exclude=exclude, labels=labels, join=join, leave_out=os.path.abspath(folder)
    )
    workers = workers or processors()
    limits = Limits(time_limit_s, memory_limit_bytes or default_memory(workers))
    if (folder / "manifest.json").exists():
        _same_key(folder, dataset.read_manifest(folder), settings)  # a folder of something else is left alone
    elif folder.exists() and not all(map(_of_a_run, folder.iterdir())):
        raise InvalidParameter(f"{folder}: not empty and no data set; give another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidParameter(f"{folder}: cannot be made ({error.strerror})") from None
    with dataset.locked(folder) as lock:
        work = _Run(
            folder,
            settings,
            traces,
            force=force,
            prune=prune,
            shard_over=shard_over_bytes,
            key=key,
            progress=progress,
        )
        lock.write(f"process {os.getpid()}, {len(traces)} captures")
        lock.flush()
        local = Local(workers, limits, (lock.fileno(),))
        try:
            if scheduler is None:
                return work.run(local, local)
            from tcpfit.corpus.cluster import Cluster

            with Cluster(scheduler, workers, limits) as cluster:
                return work.run(cluster, local)
        finally:
            local.close()
            work.identities.close()
            lock.truncate(0)


def _check_numbers(**numbers: object) -> None:
    for name, number in numbers.items():
        if number is not None and not (isinstance(number, (int, float)) and number > 0):
            raise InvalidParameter(f"{name} is a number above 0, or None, got {number!r}")


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_memory(workers: int) -> int:
    """A worker's share of the machine's memory."""
    return int(MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / workers)


def _same_key(out: Path, manifest: Manifest, settings: Settings) -> None:
    """Refuse to have true addresses, or pseudonyms under two keys, in one data set."""
    before = manifest.settings.anonymized
    if before == settings.anonymized:
        return
    if before is None:
        raise InvalidParameter(f"{out}: it has the true addresses; anonymize into another folder, or give no key")
    said = "give its key" if settings.anonymized is None else "this is not its key; give that"
    raise InvalidParameter(f"{out}: its addresses are anonymized; {said} with --anonymize-key, or another folder")


def _of_a_run(path: Path) -> bool:
    """Whether a run makes it, one that was killed while it wrote its first manifest included."""
    from tcpfit.corpus.table import TABLES

    if path.name in TABLES and path.is_dir():
        return all(dataset.PART.fullmatch(file.name) for file in path.iterdir())
    return path.name == ".state" or path.match(".manifest.json.*.partial")


CAPTURE_WORK = 200_000
"""Bytes of a capture that take as long as everything about it that does not depend on its size."""


class _Run:
    """The state of a run: what every trace is, and what is still to be done."""

    def __init__(
        self,
        out: Path,
        settings: Settings,
        traces: list[Trace],
        *,
        force: bool,
        prune: bool,
        shard_over: int | None,
        key: bytes | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.settings, self.traces = settings, traces
        self.secret = None if key is None else key.hex()
        self.called: Callable[[str], str] = path_text if key is None else Pseudonyms(key).name
        self.key = settings.key()
        self.force, self.prune, self.shard_over = force, prune, shard_over
        self.state = State(out, self.key)
        self.manifest, self.rows, self.old_labels = _read(out)
        self.fresh = self.manifest is None or self.manifest.key != self.key
        self.replaces = self.fresh and bool(self.rows)
        """Whether results of other settings make room for those of this run: all of them at once, or none."""
        if self.fresh:
            self._refuse_mixture(out)
        if force:
            self.state.discard()
        named = Corpus(out).named() if self.manifest else set()
        self.state.clean(named)
        self.identities = Identities(self.state.identities, str if key is None else self.called)
        self.entries: dict[str, Entry] = {}
        self.files: dict[str, tuple[File, ...]] = {}
        self.reasons: dict[str, str] = {}
        self.true: dict[str, str] = {}
        """Names of this run's captures by what the data set calls them."""
        self.lost: list[Failure] = []
        self.to_identify: Waiting[int] = Waiting(self._size_of_trace)
        self.sizes: dict[int, int] = {}
        """Bytes of the traces that are to be identified."""
        self.ready: Waiting[tuple[str, int]] = Waiting(self._size_of_share)
        """Captures and shares of them that are to be analysed."""
        self.shares: dict[str, int] = {}
        self.missing: dict[str, set[int]] = {}
        """Shares of captures that have no result yet."""
        self.attempts: Counter[str] = Counter()
        self.summary = Summary()
        self.progress = Progress(captures=len(traces))
        self.tell = progress or (lambda _: None)
        self.of_path = {path: row for row in self.rows.values() for path in (row["path"], *row["copies"])}

    def _refuse_mixture(self, out: Path) -> None:
        """Results under other settings cannot stay beside those of this run."""
        planned = {self.called(trace.paths[0]) for trace in self.traces}
        others = [row["path"] for row in self.rows.values() if not {row["path"], *row["copies"]} & planned]
        if others and not self.prune:
            raise InvalidParameter(
                f"{out}: made with other settings or another version, and has {len(others)} captures that are not in "
                f"this corpus ({others[0]}); give them too, or drop them with --prune"
            )
        self.rows = {}

    def run(self, executor: Executor, local: Local) -> Summary:
        """Identify, analyse, commit."""
        try:
            self._look()
            self._work(executor)
        except KeyboardInterrupt:
            executor.abandon()
            self.summary.interrupted = True
        self._tell_what_was_done()
        if self.summary.interrupted and self.replaces:
            self.summary.kept_old = True  # half a data set would replace a whole one; the results wait for the next run
        else:
            self.progress.phase = "commit"
            self.tell(self.progress)
            self._commit(local)
        self.summary.seconds = time.monotonic() - self.progress.started
        return self.summary

    # what there is

    def _look(self) -> None:
        """Tell the traces that are known from those that have to be read to know them."""
        for number, trace in enumerate(self.traces):
            try:
                files = tuple(found(path) for path in trace.paths)
            except CaptureError as error:
                self._unreadable(number, "unreadable", str(error))
                continue
            contents = [None if self.force else self.identities.content(file) for file in files]
            if all(contents):
                self._arrive(number, files, [content for content in contents if content])
            else:
                self.sizes[number] = sum(file.size for file in files)
        # the largest first: a long task that begins last would leave the other workers idle
        self.to_identify.add(sorted(self.sizes, key=lambda number: (-self.sizes[number], number)))
        self.progress.work += sum(size + CAPTURE_WORK for size in self.sizes.values())

    def _arrive(self, number: int, files: tuple[File, ...], contents: list[str]) -> None:
        """The content of a trace is known: it is a copy, or has a result, or has to be analysed."""
        capture = of_parts(contents)
        size = sum(file.size for file in files)
        entry = self.entries.get(capture)
        known = entry is not None
        if entry is None:
            entry = self.entries[capture] = Entry(capture, "", 0)
        trace = self.traces[number]
        self._name(entry, trace, size)
        if known:
            self.summary.copies += 1
            self.progress.captures -= 1
            return
        row = self.rows.get(capture)
        if not self.force and row is not None and row["status"] not in FOR_NOW:
            entry.status, entry.weight = row["status"], weight(row)
            self.reasons[capture] = row["reason"]
            self._known(entry)
            return
        shares = min(-(-size // self.shard_over), MOST_SHARES) if self.shard_over else 1
        paths = self._results(capture, max(shares, 1))
        facts = [result.facts(path) if path.exists() else None for path in paths]
        # what a share fails at is said of the whole capture, once the share has been tried in this run
        enough = ("analysed",) if len(paths) > 1 else tuple(STATUSES.keys() - set(FOR_NOW))
        missing = {share for share, fact in enumerate(facts) if fact is None or fact["status"] not in enough}
        if not missing:
            whole = facts[0]
            assert whole is not None
            entry.status, entry.weight, entry.results = whole["status"], weight(whole), [str(path) for path in paths]
            self.reasons[capture] = whole.get("reason") or ""
            self._known(entry)
            return
        self.files[capture] = files
        self.shares[capture] = len(paths)
        self.missing[capture] = missing
        self.ready.add((capture, share) for share in sorted(missing))

    def _name(self, entry: Entry, trace: Trace, size: int | None) -> None:
        """Say what a capture is called here; labels stay if the file is given none."""
        name = self.called(trace.paths[0])
        self.true[name] = path_text(trace.paths[0])
        entry.names.append((name, tuple(map(self.called, trace.paths)), size))
        labels = [(name, *label) for label in trace.labels]
        entry.labels += labels or self.old_labels.get(name, [])

    def _results(self, capture: str, shares: int) -> list[Path]:
        """The files of a capture's result."""
        if shares == 1:
            return [self.state.results / capture]
        return [self.state.results / f"{capture}.{share}-{shares}" for share in range(shares)]

    def _unreadable(self, number: int, status: str, reason: str) -> None:
        """A trace whose content cannot be known. What is known of it from an earlier run stays."""
        trace = self.traces[number]
        name = self.called(trace.paths[0])
        old = self.of_path.get(name)
        if old is not None and self.rows and old["status"] not in FOR_NOW:
            self.lost.append(Failure(path_text(trace.paths[0]), status, reason))
            self._count(failed=True)
            return
        if self.secret is not None:
            reason = without_path(reason, trace.paths)
        capture = of_path(trace.paths[0] if self.secret is None else name)
        entry = self.entries.setdefault(capture, Entry(capture, "", 0))
        self._name(entry, trace, None)
        self._fail(entry, status, reason)

    def _fail(self, entry: Entry, status: str, reason: str) -> None:
        path = self._results(entry.capture, 1)[0]
        failed = result.failure(status, reason)
        result.write(result.pack(failed), path)
        entry.status, entry.weight, entry.results = status, weight(failed.capture), [str(path)]
        self.reasons[entry.capture] = reason
        if self.shares.get(entry.capture, 1) > 1:  # its other shares are for nothing now
            self.ready.drop(lambda each: each[0] == entry.capture)
        self._settled(entry)

    def _known(self, entry: Entry) -> None:
        """A capture has a result, if only that it cannot be read."""
        self.summary.unchanged += 1
        self.summary.failed_before += entry.status != "analysed"
        self._settled(entry)

    def _settled(self, entry: Entry) -> None:
        files = self.files.pop(entry.capture, ())
        if files:
            self.progress.work_done += sum(file.size for file in files) + CAPTURE_WORK
        self._count(failed=entry.status != "analysed")

    def _count(self, failed: bool) -> None:
        self.progress.done += 1
        self.progress.failed += failed
        self.tell(self.progress)

    # what is to be done

    def _work(self, executor: Executor) -> None:
        """Give out tasks until all captures have a result."""
        under_way = 0
        while self.ready or self.to_identify or under_way:
            while (self.ready or self.to_identify) and under_way < executor.slots:
                executor.submit(*self._task(executor.slots))
                under_way += 1
            done = executor.next(0.5)
            if done is None:
                self.tell(self.progress)
                continue
            under_way -= 1
            (kind, asked), outcome = done
            if "broken" in outcome:
                raise OSError(outcome["broken"])
            if "failed" in outcome and len(asked) > 1:  # for one of them: each by itself tells which
                (self.ready if kind == "analyse" else self.to_identify).add_alone(asked)
                continue
            for one, own in zip(asked, outcome.get("each", [outcome]), strict=True):
                if kind == "analyse":
                    self._analysed(one, own)
                else:
                    self._identified(one, own)

    def _task(self, slots: int) -> tuple[Token, Task]:
        """The next task. What is large is analysed as soon as it is identified, small captures once they are many."""
        if self.ready.full or not self.to_identify:
            shares = self.ready.take(slots)
            common = {"settings": asdict(self.settings), "key": self.secret, "bring": False}
            return ("analyse", shares), {"kind": "analyse", "each": [self._analysis(*one) for one in shares], **common}
        numbers = self.to_identify.take(slots)
        return ("identify", numbers), {"kind": "identify", "each": [list(self.traces[n].paths) for n in numbers]}

    def _analysis(self, capture: str, share: int) -> dict[str, Any]:
        paths = self._results(capture, self.shares[capture])
        return {
            "capture": capture,
            "files": [[file.path, file.size, file.stamp] for file in self.files[capture]],
            "share": [share, len(paths)],
            "result": str(paths[share]),
        }

    def _size_of_trace(self, number: int) -> int | None:
        """Its bytes; what comes over a network takes the time that it takes."""
        return None if any(map(is_url, self.traces[number].paths)) else self.sizes[number]

    def _size_of_share(self, share: tuple[str, int]) -> int | None:
        files = self.files[share[0]]
        if self.shares[share[0]] > 1 or any(is_url(file.path) for file in files):
            return None
        return sum(file.size for file in files)

    def _identified(self, number: int, outcome: Outcome) -> None:
        if "failed" in outcome:
            if self._again(str(number), outcome):
                self.to_identify.add_alone([number])
            else:
                self._unreadable(number, outcome["failed"], outcome["reason"])
            return
        files = []
        for each in outcome["files"]:
            file = File(each["path"], each["size"], each["stamp"])
            files.append(file)
            if file.stamp:
                self.identities.learn(file, each["content"])
        self._arrive(number, tuple(files), [each["content"] for each in outcome["files"]])

    def _analysed(self, asked: tuple[str, int], outcome: Outcome) -> None:
        capture, share = asked
        entry = self.entries[capture]
        if entry.status:  # another share of it has failed
            return
        if "failed" in outcome:
            if self._again(capture, outcome):
                self.ready.add_alone([asked])
            else:
                self._fail(entry, outcome["failed"], outcome["reason"])
            return
        if outcome["status"] != "analysed" and self.shares[capture] > 1:  # no capture is analysed in part
            self._fail(entry, outcome["status"], outcome["reason"])
            return
        self.missing[capture].discard(share)
        if not self.missing[capture]:
            paths = self._results(capture, self.shares[capture])
            entry.status, entry.weight, entry.results = outcome["status"], outcome["weight"], [str(p) for p in paths]
            self.reasons[capture] = outcome["reason"] or ""
            self.summary.analysed += entry.status == "analysed"
            self._settled(entry)

    def _again(self, what: str, outcome: Outcome) -> bool:
        """Whether a task is worth another attempt."""
        self.attempts[what] += 1
        return outcome["failed"] == "died" and self.attempts[what] < ATTEMPTS

    # what comes of it

    def _tell_what_was_done(self) -> None:
        self.summary.captures = len(self.entries)
        self.summary.failures = sorted(
            [
                Failure(min(self.true.get(name, name) for name, *_ in entry.names), entry.status, self.reasons[capture])
                for capture, entry in self.entries.items()
                if entry.status not in ("", "analysed")
            ]
            + self.lost,
            key=lambda failed: failed.path,
        )

    def _commit(self, executor: Executor) -> None:
        settled = {capture: entry for capture, entry in self.entries.items() if entry.status}
        claimed = {name for entry in settled.values() for name, *_ in entry.names}
        planned = {self.called(trace.paths[0]) for trace in self.traces}
        for capture, row in self.rows.items():
            names = [(row["path"], tuple(row["files"]), row["file_bytes"])]
            names += [(copy, (copy,), row["file_bytes"]) for copy in row["copies"]]
            left = [name for name in names if name[0] not in claimed and not (self.prune and name[0] not in planned)]
            if not left:
                self.summary.dropped += capture not in settled
                continue
            entry = settled.setdefault(capture, Entry(capture, row["status"], weight(row)))
            entry.names += left
            entry.labels += [label for name, *_ in left for label in self.old_labels.get(name, [])]
        places = {capture: row["part"] for capture, row in self.rows.items()}
        old = None if self.fresh and not self.manifest else self.manifest
        made = commit(self.state, old, places, settled, self.settings.public(), self.key, executor)
        assert made.key == self.key
        if not self.summary.interrupted:
            self.identities.keep({path for entry in settled.values() for _, paths, _ in entry.names for path in paths})
        self.state.tidy()


def _read(out: Path) -> tuple[Manifest | None, dict[str, dict[str, Any]], dict[str, list[tuple[str, str, str]]]]:
    """The manifest of a data set, its captures with the number of their part, and the labels of files."""
    if not (out / "manifest.json").exists():
        return None, {}, {}
    import polars as pl

    corpus = Corpus(out)
    columns = ["capture", "path", "files", "copies", "status", "reason", "file_bytes", "flows", "events"]
    rows = {}
    for number, file in enumerate(corpus.files("captures")):
        for row in pl.read_parquet(file, columns=columns).iter_rows(named=True):
            rows[row["capture"]] = row | {"part": number}
    labels: dict[str, list[tuple[str, str, str]]] = {}
    for path, name, value in corpus.labels.select("path", "name", "value").collect().iter_rows():
        labels.setdefault(path, []).append((path, name, value))
    return corpus.manifest, rows, labels
