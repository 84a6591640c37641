"""What the engine depends on: from the registry, locked, under licences that deny.toml allows; and pip's are at peace.

Known vulnerabilities are not looked up: their lists are elsewhere (`cargo deny check advisories`, `pip-audit`).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

CRATE = Path(__file__).resolve().parents[1] / "tcpfit" / "engine"
DENY = tomllib.loads((CRATE / "deny.toml").read_text())


def allowed(expression: str) -> bool:
    """Does an SPDX expression hold with the licences that are allowed?"""
    words = re.findall(r"[()]|[\w.+-]+(?: WITH [\w.+-]+)?", expression.replace("/", " OR "))
    said = [
        word.lower() if word in ("AND", "OR") else word if word in "()" else str(word in DENY["licenses"]["allow"])
        for word in words
    ]
    return bool(eval(" ".join(said)))  # nothing but True, False, and, or, parentheses


@pytest.fixture(scope="module")
def packages() -> list[dict[str, Any]]:
    call = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1", "--all-features"]
    host = re.search(r"host: (\S+)", run("rustc", "-vV")) if shutil.which("cargo") else None
    if host is None:
        pytest.skip("cargo is not installed")
    done = subprocess.run([*call, "--filter-platform", host[1]], cwd=CRATE, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the engine's dependencies are not on this machine: {done.stderr.strip().splitlines()[-1]}")
    found: list[dict[str, Any]] = json.loads(done.stdout)["packages"]
    return found


def run(*call: str) -> str:
    return subprocess.run(call, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("MIT", True), ("MIT/Apache-2.0", True), ("GPL-3.0", False), ("GPL-3.0 OR MIT", True), ("GPL-3.0 AND MIT", False)],
)
def test_expressions(expression: str, expected: bool) -> None:
    assert expected == allowed(expression)


def test_licences_are_allowed(packages: list[dict[str, Any]]) -> None:
    assert len(packages) > 10
    assert {} == {each["name"]: each["license"] for each in packages if not allowed(each["license"] or "none")}


def test_sources_are_the_registry(packages: list[dict[str, Any]]) -> None:
    assert {"tcpfit-engine"} == {each["name"] for each in packages if each["source"] is None}
    sources = {each["source"] for each in packages} - {None}
    assert 1 == len(sources)
    assert all(source.startswith("registry+") for source in sources)


def test_the_lock_has_every_checksum() -> None:
    locked = tomllib.loads((CRATE / "Cargo.lock").read_text())["package"]
    assert ["tcpfit-engine"] == [each["name"] for each in locked if "checksum" not in each]


def test_what_is_installed_fits_together() -> None:
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    assert "" == "".join(line for line in done.stdout.splitlines(True) if line.startswith("tcpfit "))
