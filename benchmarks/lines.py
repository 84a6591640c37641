"""Which lines the tests run: of the engine and of the Python, by directory.

    python benchmarks/lines.py [--work DIRECTORY] [--missing PART] [--again] [PYTEST ARGUMENT...]

Copies the tree, builds the engine there with LLVM's counters, and runs `cargo test` and pytest, this under coverage.py
with the processes that it starts. Tests themselves do not count. Needs coverage.py 7.10 and the llvm-profdata and
llvm-cov of rustc's version (Debian's llvm-22, say, or rustup's llvm-tools). `--missing` lists the lines that no test
runs in the files whose path has PART in it; `--again` only reports what was measured before.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = """[run]
source = tcpfit, cli
data_file = {work}/python/data
parallel = true
patch = subprocess, _exit
concurrency = thread, multiprocessing
[report]
exclude_also =
    if TYPE_CHECKING:
    ^\\s*\\.\\.\\.$
"""
DISTURBED = (  # counters cost instructions, and need files themselves
    "tests/test_instructions.py",
    "tests/test_command_faults.py::test_no_space_for_a_file",
    "tests/test_command_faults.py::test_no_file_handles_left",
)
Lines = dict[str, dict[int, bool]]  # of each file: was it run?


def run(*call: object, **keywords: object) -> str:
    done = subprocess.run([str(word) for word in call], stdout=subprocess.PIPE, text=True, **keywords)  # type: ignore[call-overload]
    return str(done.stdout)


def llvm(tool: str) -> str:
    """The tool of the version that rustc was built with."""
    version = re.search(r"LLVM version: (\d+)", run("rustc", "-vV"))
    sysroot = Path(run("rustc", "--print", "sysroot").strip())
    names = [f"{tool}-{version[1] if version else ''}", *map(str, sysroot.glob(f"lib/rustlib/*/bin/{tool}"))]
    found = next(filter(shutil.which, names), None)
    return found or sys.exit(f"{names[0]} was not found: apt-get install llvm-{version[1] if version else 'N'}")


def measure(work: Path, arguments: list[str]) -> None:
    """Builds and runs the tests; raw data are under `work`."""
    tree, crate = work / "tree", work / "tree/tcpfit/engine"
    for folder in (work / "rust", work / "python"):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for name in run("git", "ls-files", cwd=ROOT).splitlines():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    if (ROOT.parent / "shared").exists() and not (work / "shared").exists():
        (work / "shared").symlink_to((ROOT.parent / "shared").resolve())
    if not (tree / "tcpfit/cli").exists():  # what is installed as tcpfit.cli is this tree's
        (tree / "tcpfit/cli").symlink_to("../cli")
    (work / "coveragerc").write_text(SETTINGS.format(work=work))
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(work / "target"),
        "RUSTFLAGS": "-C instrument-coverage",
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_STRIP": "none",
        "LLVM_PROFILE_FILE": str(work / "rust/%4m.profraw"),
        "PYTHONPATH": str(tree),
    }
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=crate, env=environment, check=True)
    shutil.copy2(work / "target/release/libtcpfit_engine.so", crate / "_engine.abi3.so")
    test = ["cargo", "test", "--quiet", "--no-default-features", "--lib", "--tests"]
    subprocess.run(test, cwd=crate, env=environment, check=True)
    pytest = [sys.executable, "-m", "coverage", "run", f"--rcfile={work}/coveragerc", "-m", "pytest"]
    pytest += [*(word for name in DISTURBED for word in ("--deselect", name)), *arguments]
    subprocess.run(pytest, cwd=tree, env=environment)


def of_engine(work: Path) -> Lines:
    crate, profile = work / "tree/tcpfit/engine", work / "rust/all.profdata"
    run(llvm("llvm-profdata"), "merge", "-sparse", "-o", profile, *(work / "rust").glob("*.profraw"))
    binaries = [crate / "_engine.abi3.so"]
    binaries += [path for path in (work / "target/debug/deps").iterdir() if path.stat().st_mode & 1 and not path.suffix]
    objects = [word for path in binaries[1:] for word in ("--object", path)]
    call = ["export", "-format=lcov", f"--instr-profile={profile}", binaries[0], *objects, "--sources", crate / "src"]
    text = run(llvm("llvm-cov"), *call)
    found: Lines = {}
    for record in text.split("end_of_record"):
        path = re.search(r"^SF:(.*)$", record, re.MULTILINE)
        if path is None or path[1].endswith("/tests.rs"):
            continue
        source = Path(path[1]).read_text().splitlines()
        tests = next((number for number, line in enumerate(source, 1) if "#[cfg(test)]" in line), len(source) + 1)
        counts = ((int(line), int(count) > 0) for line, count in re.findall(r"^DA:(\d+),(\d+)", record, re.MULTILINE))
        found[str(Path(path[1]).relative_to(work / "tree"))] = {line: seen for line, seen in counts if line < tests}
    return found


def of_python(work: Path) -> Lines:
    def coverage(*words: object) -> str:
        return run(sys.executable, "-m", "coverage", *words, f"--rcfile={work}/coveragerc", cwd=work / "tree")

    coverage("combine", "--keep", "-q")
    coverage("json", "-q", "-o", work / "python.json")
    files = json.loads((work / "python.json").read_text())["files"]
    return {
        name: dict.fromkeys(file["executed_lines"], True) | dict.fromkeys(file["missing_lines"], False)
        for name, file in files.items()
    }


def ranges(lines: Iterator[int]) -> str:
    """1-3, 7"""
    spans: list[list[int]] = []
    for line in lines:
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    return ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in spans)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "build/lines")
    parser.add_argument("--missing", default=None)
    parser.add_argument("--again", action="store_true")
    arguments, rest = parser.parse_known_args()
    work = arguments.work.resolve()
    if not arguments.again:
        measure(work, rest)
    print("| | lines | run | % |\n| --- | --- | --- | --- |")
    for name, found in (("engine", of_engine(work)), ("Python", of_python(work))):
        totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for file, lines in found.items():
            for group in (name, str(Path(file).parent)):
                totals[group][0] += len(lines)
                totals[group][1] += sum(lines.values())
        for group, (lines_of, seen) in sorted(totals.items(), key=lambda item: (item[0] != name, item[0])):
            print(f"| {group} | {lines_of} | {seen} | {100 * seen / max(lines_of, 1):.1f} |")
        for file, lines in sorted(found.items()):
            missing = ranges(line for line in sorted(lines) if not lines[line])
            if missing and arguments.missing is not None and arguments.missing in file:
                print(f"{file}: {missing}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
