"""Reports of corpora, for `tcpfit report`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcpfit.exceptions import InvalidParameter, TcpfitError

from . import pages as of_captures
from .errors import complain, tell_path
from .reading import Work, under

if TYPE_CHECKING:
    from tcpfit.corpus import Corpus


def write(
    folders: Sequence[str],
    output: Path | None,
    *,
    form: str,
    by: str | None,
    worst: int,
    pages: bool,
    key: bytes | None,
) -> int:
    """Write or print what one data set says, beside others where there are several; give back the exit status."""
    path = None
    if form == "html":
        path = of_captures.targets(folders[:1], output, "--output")[0]
    elif output is not None or pages:
        raise click.UsageError(f"--format {form} prints; --output and --pages go with html")
    with Work(folders[0]) as work:
        from tcpfit import corpus
        from tcpfit.corpus.summary import overview
        from tcpfit.report import contract

        first, *beside = (corpus.open(folder) for folder in folders)
        if pages and first.manifest.settings.anonymized is not None:
            raise InvalidParameter(f"{first.folder}: anonymized, it does not know its captures; leave out --pages")
        document = overview(first, by=by, beside=beside, most=worst).to_dict()
        if key is not None:
            _hide(document["worst"], key)
        if form == "json":
            click.echo(contract.dumps(contract.finite(json.loads(json.dumps(document, default=str)))))
        elif form == "table":
            from tcpfit.report import terminal
            from tcpfit.report.corpus import terminal as of_corpus

            of_corpus.show(document, terminal.console())
        elif path is not None:
            _page(document, path, _reports(first, document["worst"], path, key) if pages else {})
    return work.status


def _hide(rows: list[dict[str, Any]], key: bytes) -> None:
    """Put pseudonyms in the place of these flows' addresses."""
    from tcpfit.anonymity import Pseudonyms

    pseudonyms = Pseudonyms(key)
    for row in rows:
        row |= {end: pseudonyms.of(row[end]) for end in ("src", "dst")}


def _page(document: dict[str, Any], path: Path, links: dict[tuple[str, int], str]) -> None:
    from tcpfit.analysis import AtomicFile
    from tcpfit.report.corpus import page

    html = page.render(document, links)
    path.parent.mkdir(parents=True, exist_ok=True)
    with AtomicFile(path) as partial:
        partial.write_text(html, encoding="utf-8")
    tell_path(path)


def _reports(corpus: Corpus, rows: list[dict[str, Any]], path: Path, key: bytes | None) -> dict[tuple[str, int], str]:
    """Reports of these flows in a folder beside the page, as far as their captures are still there."""
    from tcpfit import readers
    from tcpfit.analysis import Analysis
    from tcpfit.corpus.files import is_url

    folder = path.with_name(f"{path.stem}.flows")
    settings = corpus.manifest.settings
    links = {}
    for row in rows:
        capture, flow = row["path"], row["flow"]
        if is_url(capture) or not Path(capture).is_file():
            complain(f"{capture}: it is not there any more; flow {flow} has no report")
            continue
        try:
            asked = readers.Settings(settings.vantage, settings.filter, settings.from_s, settings.to_s, None, True)
            whole = Analysis(capture, readers.read(capture, settings.reader, asked), settings.choices())
            target = folder / f"{row['capture'][:12]}-flow-{flow}.html"
            of_captures.write(under(key, whole).select([flow]), target, drawn=1)
        except InvalidParameter:
            complain(f"{capture}: it has changed since and has no flow {flow}; run tcpfit batch again")
        except TcpfitError as error:
            complain(str(error))
        else:
            links[row["capture"], flow] = f"{folder.name}/{target.name}"
    return links
