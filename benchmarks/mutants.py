"""Do the tests notice when a rule is changed? Mutation testing of the engine's inference and of the models.

    python benchmarks/mutants.py engine|models [--sample N] [--seed S] [--work DIRECTORY] [--again] [--only MUTANT...]

A mutant is the program with one small change: a condition that always or never holds, a comparison moved, arithmetic
turned round, a number doubled, a statement left out, a function that returns at once. It is killed when a test fails or
takes ten times as long. The engine's mutants are all compiled in at once (`tcpfit/engine/mutants`) and switched on by
TCPFIT_MUTANT; a model's module is changed when it is imported. Prints what became of each, with file and line, and the
share killed.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RULES = (
    "events/**/*.rs",
    "quality/clock.rs",
    *(
        f"flow/{name}"
        for noun in (
            "ack_delay ack_trail arrivals direction guesses ip_id rounds rtt scoreboard sender sequence stamp_clock"
            " vantage window_scale zero_windows"
        ).split()
        for name in (f"{noun}.rs", f"{noun}/*.rs")
    ),
)
RULE_TESTS = (  # those that fail fast first
    "tests/test_scenarios.py tests/test_odd_connections.py tests/test_one_way.py tests/test_reordering.py"
    " tests/test_window_scale.py tests/test_congestion_window.py tests/test_clock.py tests/test_marks.py"
    " tests/test_samples.py tests/test_findings.py tests/test_invariants.py tests/test_invariance.py"
    " tests/test_ratchet.py::test_no_more_is_wrong_in_a_sample"
    " tests/test_ratchet.py::test_cells_that_were_right_are_right"
).split()
MODELS = "tcpfit/models"
MODEL_TESTS = (  # without those of every point of a domain, which take a minute and more
    "tests/models/test_model_values.py tests/models/test_model_derivations.py tests/models/test_bohacek.py"
    " tests/models/test_sikdar_steady.py tests/models/test_hysteresis.py tests/models/test_cubic.py"
    " tests/models/test_transfer_time.py tests/models/test_bohacek_dynamics.py tests/models/test_model_api.py -k"
).split() + ["not every_time and not every_course and not arrays_give and not interpolation and not fit_finds"]
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
SWITCH = "TCPFIT_MUTANT"
PATIENCE = 10


class Mutant(NamedTuple):
    """A change; the number counts over the engine, or over one file of Python."""

    number: int
    file: str
    line: int
    kind: str
    text: str


# --- Python ----------------------------------------------------------------------------------------------------------

OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
OTHER_NAME = {"minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min", "log": "exp", "exp": "log"}


class Mutator(ast.NodeTransformer):
    """Lists the mutants of a module, and makes the one that is asked for."""

    def __init__(self, file: str, wanted: int = 0) -> None:
        self.file, self.wanted, self.listed = file, wanted, list[Mutant]()

    def here(self, node: ast.AST, kind: str) -> bool:
        number = len(self.listed) + 1
        self.listed.append(Mutant(number, self.file, getattr(node, "lineno", 0), kind, ast.unparse(node)[:100]))
        return number == self.wanted

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value:
            node.value = self.visit(node.value)
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        node.defaults = [self.visit(default) for default in node.defaults]
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.visit(node.args)
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        text = isinstance(node.left, (ast.Constant, ast.JoinedStr)) and not isinstance(
            getattr(node.left, "value", ""), (int, float)
        )
        if type(node.op) in OTHER and not text and self.here(node, OTHER[type(node.op)].__name__):
            node.op = OTHER[type(node.op)]()  # type: ignore[assignment]
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        for at, op in enumerate(node.ops):
            if type(op) in OTHER and self.here(node, OTHER[type(op)].__name__):
                node.ops[at] = OTHER[type(op)]()  # type: ignore[call-overload]
        return self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if self.here(node, OTHER[type(node.op)].__name__):
            node.op = OTHER[type(node.op)]()  # type: ignore[assignment]
        return self.generic_visit(node)

    def visit_If(self, node: ast.If | ast.IfExp | ast.While) -> ast.AST:
        for kind, value in (("always", True), ("never", False)):
            if not (isinstance(node, ast.While) and value) and self.here(node.test, kind):
                node.test = ast.copy_location(ast.Constant(value), node.test)
        return self.generic_visit(node)

    visit_IfExp = visit_While = visit_If  # noqa: N815

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if isinstance(node.op, (ast.Not, ast.USub)) and self.here(node, "sign left out"):
            return self.generic_visit(node.operand)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) in (int, float) and self.here(node, "doubled"):
            return ast.copy_location(ast.Constant(2 * node.value if node.value else 1), node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in OTHER_NAME and self.here(node, OTHER_NAME[node.id]):
            node.id = OTHER_NAME[node.id]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr in OTHER_NAME and isinstance(node.value, ast.Name) and self.here(node, OTHER_NAME[node.attr]):
            node.attr = OTHER_NAME[node.attr]
        return self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if self.here(node, "left out"):
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Call) and self.here(node, "left out"):
            return ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)


class Loader(importlib.machinery.SourceFileLoader):
    """Reads one module with its mutant in it."""

    def source_to_code(self, data: bytes, path: str, **_: object) -> CodeType:  # type: ignore[override]
        file, number = os.environ[SWITCH].split(":")
        tree = ast.fix_missing_locations(Mutator(file, int(number)).visit(ast.parse(data)))
        return compile(tree, path, "exec", dont_inherit=True)

    def get_code(self, fullname: str) -> CodeType:  # never the one that is cached
        return self.source_to_code(self.get_data(self.path), self.path)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the mutant's module; any other is found as ever."""

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        file = ROOT / os.environ[SWITCH].split(":")[0]
        if name != ".".join(file.relative_to(ROOT).with_suffix("").parts):
            return None
        return importlib.util.spec_from_file_location(name, file, loader=Loader(name, str(file)))


def of_models() -> list[Mutant]:
    found: list[Mutant] = []
    for path in sorted((ROOT / MODELS).glob("*.py")):
        mutator = Mutator(str(path.relative_to(ROOT)))
        mutator.visit(ast.parse(path.read_bytes()))
        found += mutator.listed
    return found


# --- the engine ------------------------------------------------------------------------------------------------------


def run(call: Sequence[object], **keywords: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in call], capture_output=True, text=True, **keywords)  # type: ignore[call-overload, no-any-return]


def build(work: Path) -> tuple[list[Mutant], str]:
    """The tree with all mutants compiled in, under `work`, and the binary of the crate's own tests."""
    tree, crate = work / "tree", ROOT / "tcpfit/engine"
    tree.mkdir(parents=True, exist_ok=True)
    for name in run(["git", "ls-files"], cwd=ROOT, check=True).stdout.splitlines():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    if (ROOT.parent / "shared").exists() and not (work / "shared").exists():
        (work / "shared").symlink_to((ROOT.parent / "shared").resolve())
    environment = os.environ | {"CARGO_TARGET_DIR": str(work / "target"), "CARGO_PROFILE_RELEASE_LTO": "off"}
    made = run(["cargo", "build", "--release", "--manifest-path", crate / "mutants/Cargo.toml"], env=environment)
    made.check_returncode()
    paths = (path for rule in RULES for path in sorted((crate / "src").glob(rule)) if path.name != "tests.rs")
    files = [str(path.relative_to(crate / "src")) for path in paths]
    skipped: set[str] = set()
    while True:
        call = [work / "target/release/mutants", crate / "src", tree / "tcpfit/engine/src", *sorted(skipped)]
        listed = run(call, input="\n".join(files), check=True).stdout.splitlines()
        cargo = ["cargo", "build", "--release", "--message-format=json"]
        done = run(cargo, cwd=tree / "tcpfit/engine", env=environment)
        if not done.returncode:
            break
        wrong = set()
        for message in map(json.loads, done.stdout.splitlines()):
            for span in message.get("message", {}).get("spans", ()) if message["reason"] == "compiler-message" else ():
                if message["message"]["level"] == "error" and span["is_primary"]:
                    lines = (tree / "tcpfit/engine" / span["file_name"]).read_text().splitlines()
                    for line in lines[span["line_start"] - 1 : span["line_end"]]:
                        wrong |= set(re.findall(r"^crate :: mutant :: \w+ ?\( ?(\d+)", line))
        if not wrong - skipped:
            sys.exit(done.stderr[-3000:])
        skipped |= wrong
        print(f"{len(skipped)} mutants do not compile", file=sys.stderr)
    shutil.copy2(work / "target/release/libtcpfit_engine.so", tree / "tcpfit/engine/_engine.abi3.so")
    cargo = ["cargo", "test", "--lib", "--no-run", "--no-default-features", "--message-format=json"]
    done = run(cargo, cwd=tree / "tcpfit/engine", env=environment, check=True)
    unit = next(found["executable"] for found in map(json.loads, done.stdout.splitlines()) if found.get("executable"))
    mutants = []
    for line in listed:
        number, file, at, kind, text = line.split("\t")
        mutants.append(Mutant(int(number), file, int(at), kind, text))
    return mutants, unit


# --- both ------------------------------------------------------------------------------------------------------------


def passes(calls: Sequence[Sequence[object]], where: Path, value: str, allowed_s: float | None) -> str:
    """What becomes of a mutant: `survived`, `killed` or `killed by time`."""
    path = os.pathsep.join(map(str, (where, ROOT / "benchmarks")))
    environment = os.environ | {SWITCH: value, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    for call in calls:
        with subprocess.Popen(
            [str(word) for word in call],
            cwd=where,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                out = process.communicate(timeout=allowed_s)[0]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                return "killed by time"
        if process.returncode:
            return "killed" if value not in ("", "0") else out.decode()[-2000:]
    return "survived"


def judge(mutants: list[Mutant], calls: Sequence[Sequence[object]], where: Path, name: Callable[[Mutant], str]) -> int:
    before = time.monotonic()
    usual = passes(calls, where, "0" if where != ROOT else "", None)
    if usual != "survived":
        sys.exit(f"the tests fail without a mutant:\n{usual}")
    allowed_s = PATIENCE * (time.monotonic() - before)
    print(f"{allowed_s / PATIENCE:.0f} s for the tests without a mutant", file=sys.stderr)
    fates: Counter[str] = Counter()
    for mutant in mutants:
        fate = passes(calls, where, name(mutant), allowed_s)
        fates[fate] += 1
        print(fate, *mutant, sep="\t", flush=True)
    killed = len(mutants) - fates["survived"]
    print(f"{killed} of {len(mutants)} killed ({100 * killed / max(len(mutants), 1):.0f} %), {dict(fates)}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("of", choices=["engine", "models"])
    parser.add_argument("--sample", type=int, help="so many of them, drawn by chance")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, default=ROOT / "build/mutants", help="where the engine is built")
    parser.add_argument("--again", action="store_true", help="the engine is built already")
    parser.add_argument("--only", nargs="*", help="these: numbers, or FILE:NUMBER")
    arguments = parser.parse_args()
    calls: list[list[object]] = [[*PYTEST, "-p", "mutants", *MODEL_TESTS]]
    if arguments.of == "models":
        mutants, where, name = of_models(), ROOT, lambda mutant: f"{mutant.file}:{mutant.number}"
    else:
        work = arguments.work.resolve()
        if not arguments.again:
            (work / "built.json").write_text(json.dumps(build(work)))
        made, unit = json.loads((work / "built.json").read_text())
        mutants, where, name = [Mutant(*mutant) for mutant in made], work / "tree", lambda mutant: str(mutant.number)
        calls = [[unit, "-q"], [*PYTEST, *RULE_TESTS]]
    print(f"{len(mutants)} mutants", file=sys.stderr)
    if arguments.only:
        mutants = [mutant for mutant in mutants if name(mutant) in arguments.only]
    elif arguments.sample:
        mutants = random.Random(arguments.seed).sample(mutants, arguments.sample)
    return judge(mutants, calls, where, name)


if __name__ == "__main__":
    sys.exit(main())
elif os.environ.get(SWITCH):  # as a plugin of pytest
    sys.meta_path.insert(0, Finder())
