"""What the site has besides the pages of this folder: help of every command, reports of sample captures, mathematics.

MkDocs calls these functions (mkdocs.yml). Pages of the repository that are not in this folder become pages of the site,
links to other files text. Formulas become MathML, which browsers draw without a script.
"""

from __future__ import annotations

import os
import posixpath
import re
from html import unescape
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent

ALSO = {"CONTRIBUTING.md": "contributing.md", "sample-traces/README.md": "samples.md", "README.md": "overview.md"}
"""Pages elsewhere in the repository, and what they are called in the site."""

REPORTS = {
    "newreno-loss": "a long transfer with random losses: several models explain it",
    "timeouts": "a short window and many losses: the retransmission timer decides",
    "slow-reader": "a receiver that reads slowly: the advertised window closes, no model of losses applies",
    "reordering-sender": "late segments that are taken for losses",
    "short-web": "many short flows: the table of flows is what helps",
}
"""Sample captures whose reports the site has, with what each shows."""

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that are made; TCPFIT_SITE_REPORTS=0 leaves out the reports, which take a minute."""
    for source, name in ALSO.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    files.append(File.generated(config, "commands.md", content=commands()))
    drawn = os.environ.get("TCPFIT_SITE_REPORTS") != "0"
    files.append(File.generated(config, "reports.md", content=reports(drawn)))
    for name in REPORTS if drawn else ():
        files.append(File.generated(config, f"reports/{name}.html", content=report(name)))
    return files


def on_page_markdown(markdown: str, *, page: Any, files: Files, **_: Any) -> str:
    """Links out of this folder lead to the site's page of that file, or to nowhere."""
    uri = page.file.src_uri
    inside = {name: source for source, name in ALSO.items()}
    base = posixpath.dirname(inside[uri]) if uri in inside else posixpath.join("docs", posixpath.dirname(uri))

    def led(match: re.Match[str]) -> str:
        mark, text, target, anchor = match.groups()
        if "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(base, target))
        name = ALSO.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else "")
        if uri in ("commands.md", "reports.md"):
            return match[0]
        if not name or files.get_file_from_path(name) is None:
            return text
        there = posixpath.relpath(name, posixpath.dirname(uri) or ".")
        return f"{mark}[{text}]({there}{anchor or ''})"

    return LINK.sub(led, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """TeX becomes MathML."""
    from latex2mathml.converter import convert

    def drawn(match: re.Match[str]) -> str:
        display = "block" if match[1] == "div" else "inline"
        tex = re.sub(r"\\\\\[\w+\]", r"\\\\", unescape(match[2]))  # the space between rows is not understood
        return str(convert(tex.strip(), display=display))

    return FORMULA.sub(drawn, html)


def commands() -> str:
    """The help of every command, as the terminal prints it."""
    from tcpfit.cli.main import main

    first = "The help of every command, as `tcpfit COMMAND --help` prints it; [the command line](cli.md) says more."
    parts = [f"# Commands\n\n{first}\n"]
    with click.Context(main, info_name="tcpfit", max_content_width=80, terminal_width=80) as whole:
        for name in main.list_commands(whole):
            command = main.get_command(whole, name)
            assert command is not None
            with click.Context(command, info_name=name, parent=whole, max_content_width=80, terminal_width=80) as own:
                parts.append(f"## tcpfit {name}\n\n```text\n{command.get_help(own)}\n```\n")
    return "\n".join(parts)


def reports(drawn: bool) -> str:
    """The page that leads to the reports."""
    lines = [
        "# Reports of sample captures\n",
        "Each is the file that `tcpfit report sample-traces/NAME.pcap.gz` writes; it loads nothing, so mail it.\n",
    ]
    for name, what in REPORTS.items():
        lines.append(f"- [{name}](reports/{name}.html): {what}" if drawn else f"- {name}: {what}")
    return "\n".join(lines) + "\n"


def report(name: str) -> str:
    """The report of a sample capture."""
    import tcpfit
    from tcpfit.report import page

    os.chdir(ROOT)
    return page.render(tcpfit.analyze(f"sample-traces/{name}.pcap.gz", segments=True))
