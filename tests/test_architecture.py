"""Do imports point one way: capture, readers, engine, parameters, models, ranking, diagnosis, report, cli?"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINE = "capture -> readers -> engine -> parameters -> models -> ranking -> diagnosis -> report -> cli"

# what each part may import of tcpfit; the foundations (schema, exceptions, the package itself) are everyone's
FOUNDATIONS = {"tcpfit", "tcpfit.schema", "tcpfit.exceptions"}
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
    "comparison": {"analysis", "readers"},
    "annotation": {"analysis", "readers", "report"},
    "corpus": {"anonymity", "analysis", "engine", "readers", "parameters", "models", "ranking", "diagnosis", "report"},
    "cli": {
        "anonymity",
        "analysis",
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
LONE = ("anonymity", "analysis", "comparison", "annotation")
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
            of_models = module.startswith(("tcpfit.models", "tcpfit.exceptions"))
            if module.split(".")[0] not in allowed or (module.startswith("tcpfit") and not of_models):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert not wrong, "models import numpy, scipy and tcpfit.exceptions, nothing else:\n" + "\n".join(wrong)


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_tcpfit_is_light():
    assert not {"polars", "numpy", "scipy", "rich", "click"} & modules_after("import tcpfit")


def test_importing_models_needs_no_polars():
    assert not {"polars", "rich", "click", "sklearn"} & modules_after("import tcpfit.models")


def test_help_needs_no_polars():
    loaded = modules_after("import tcpfit.cli.main as m; m.main(['analyze', '--help'], standalone_mode=False)")
    assert not {"polars", "numpy", "scipy"} & loaded
