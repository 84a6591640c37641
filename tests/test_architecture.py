"""Do imports point one way: capture, readers, engine, parameters, models, ranking, diagnosis, report, cli?"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINE = "capture -> readers -> engine -> parameters -> models -> ranking -> diagnosis -> report -> cli"

# what each part may import of tcpfit; the foundations are everyone's
FOUNDATIONS = {"tcpfit", "tcpfit.arguments", "tcpfit.schema", "tcpfit.exceptions"}
ALLOWED = {
    "engine": set(),
    "readers": {"engine"},
    "parameters": set(),
    "models": set(),
    "ranking": {"parameters", "models"},
    "diagnosis": {"parameters", "models", "ranking"},
    "report": {"parameters", "models", "ranking", "diagnosis"},
    "anonymity": set(),
    "analysis": {"anonymity", "readers", "engine", "parameters", "models", "ranking", "diagnosis", "report"},
    "segment_file": {"analysis"},
    "comparison": {"analysis", "readers"},
    "annotation": {"analysis", "readers", "report"},
    "corpus": {"anonymity", "analysis", "engine", "readers", "parameters", "models", "ranking", "diagnosis", "report"},
    "cli": {
        "anonymity",
        "analysis",
        "segment_file",
        "corpus",
        "comparison",
        "annotation",
        "readers",
        "parameters",
        "models",
        "ranking",
        "diagnosis",
        "report",
    },
}
LONE = ("anonymity", "analysis", "segment_file", "comparison", "annotation")
FILES = {
    part: [ROOT / f"tcpfit/{part}.py"] if part in LONE else sorted((ROOT / "tcpfit" / part).rglob("*.py"))
    for part in ALLOWED
} | {"cli": sorted((ROOT / "cli").glob("*.py"))}


def imports(path: Path) -> list[tuple[int, str]]:
    """Line and module of every import that runs; those under `if TYPE_CHECKING` only name types."""
    found: list[tuple[int, str]] = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.extend((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "tcpfit":
                found.extend((node.lineno, f"tcpfit.{alias.name}") for alias in node.names)
            else:
                found.append((node.lineno, node.module))
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text()))
    return found


def test_imports_point_left():
    wrong = []
    for part, files in FILES.items():
        assert files, f"no files found of {part}"
        for path in files:
            for line, module in imports(path):
                if not module.startswith("tcpfit.") or module in FOUNDATIONS:
                    continue
                target = module.split(".")[1]
                if target in ALLOWED and target != part and target not in ALLOWED[part]:
                    wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert not wrong, f"dependencies point left along {LINE}, and never back:\n" + "\n".join(wrong)


def test_models_need_only_numpy_and_scipy():
    allowed = {"numpy", "scipy", "tcpfit"} | set(sys.stdlib_module_names)
    wrong = []
    for path in FILES["models"]:
        for line, module in imports(path):
            of_models = module.startswith(("tcpfit.models", "tcpfit.arguments", "tcpfit.exceptions"))
            if module.split(".")[0] not in allowed or (module.startswith("tcpfit") and not of_models):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert not wrong, "models import numpy, scipy and what says what is wrong, nothing else:\n" + "\n".join(wrong)


def output(code: str, **environment: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    return run.stdout


def modules_after(statement: str) -> set[str]:
    return set(output(f"import sys; {statement}\nprint(' '.join(sys.modules))").split())


def command(*arguments: str) -> str:
    """Statements that run the installed command, to be followed by others."""
    return (
        f"import contextlib, io, sys; sys.argv = {['tcpfit', *arguments]}\n"
        "import tcpfit.cli.main as m\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): m.run()\n"
    )


def test_importing_tcpfit_is_light():
    assert not {"polars", "numpy", "scipy", "rich", "click"} & modules_after("import tcpfit")


def test_importing_models_needs_no_polars():
    assert not {"polars", "rich", "click", "sklearn"} & modules_after("import tcpfit.models")


def test_help_needs_no_polars():
    loaded = modules_after("import tcpfit.cli.main as m; m.main(['analyze', '--help'], standalone_mode=False)")
    assert not {"polars", "numpy", "scipy"} & loaded


UNUSED = {
    "aiohttp",
    "altair",
    "asyncio",
    "dask",
    "dpkt",
    "duckdb",
    "fsspec",
    "jinja2",
    "multiprocessing",
    "pandas",
    "pyarrow",
    "scipy.integrate",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.stats",
    "sklearn",
    "tcpfit.comparison",
    "tcpfit.corpus",
    "tcpfit.diagnosis.findings",
    "tcpfit.readers.dpkt",
    "tcpfit.readers.tshark",
    "tcpfit.report.figures",
    "tcpfit.report.page",
}
"""Modules that cost start-up time and that an analysis has no use for."""


@pytest.mark.parametrize(
    ("form", "unused"),
    [("table", UNUSED), ("json", UNUSED | {"rich", "tcpfit.report.terminal"})],
    ids=["table", "json"],
)
def test_analyze_imports_what_it_uses(form, unused):
    sample = str(ROOT / "sample-traces" / "cubic.pcap.gz")
    loaded = modules_after(command("analyze", "--format", form, sample))
    assert {"polars", "tcpfit.ranking.rank", "tcpfit.diagnosis.accounting"} <= loaded
    assert set() == unused & loaded


def test_the_command_starts_no_threads_of_numpy_unless_asked_to():
    said = command("--version") + "import os; print(os.environ['OPENBLAS_NUM_THREADS'])"
    assert "1" == output(f"import os; os.environ.pop('OPENBLAS_NUM_THREADS', None)\n{said}").strip()
    assert "7" == output(said, OPENBLAS_NUM_THREADS="7").strip()


def test_the_command_does_not_look_for_garbage_in_what_it_made():
    sample = str(ROOT / "sample-traces" / "cubic.pcap.gz")
    watched = "import gc, tcpfit.cli.main; gc.collect(); seen = []; gc.callbacks.append(lambda *at: seen.append(at))\n"
    said = watched + command("analyze", sample) + "print(len(seen), gc.get_freeze_count())"
    seen, frozen = map(int, output(said).split())
    assert (seen, frozen > 10_000) == (0, True)


def test_unsafe_code_is_where_it_is_named() -> None:
    source = ROOT / "tcpfit/engine/src"
    assert "#![deny(unsafe_code)]" in (source / "lib.rs").read_text()
    blocks = {
        str(path.relative_to(source)): path.read_text().count("unsafe {")
        for path in sorted(source.rglob("*.rs"))
        if "allow(unsafe_code)" in path.read_text()
    }
    capture = {"capture/block.rs": 1, "capture/frames.rs": 5, "capture/mapped.rs": 6, "capture/view.rs": 1}
    assert capture | {"prefetch.rs": 1, "python.rs": 1} == blocks


def test_modules_that_the_documentation_names_are_there_after_an_import():
    code = "import tcpfit; print(*(getattr(tcpfit, n).__name__ for n in tcpfit.__dir__() if n in tcpfit._MODULES))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    named = set(re.findall(r"tcpfit\.(\w+)\.\w+\(", "".join(p.read_text() for p in sorted(ROOT.glob("docs/**/*.md")))))
    there = {name.removeprefix("tcpfit.") for name in run.stdout.split()}
    assert {"models", "corpus"} <= named & there
    assert named - there <= {"analyze", "pcap"}, named - there
