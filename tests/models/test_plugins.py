"""Models of other packages: the documented example, and packages that are broken in every way we thought of."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/models/plugin.md").read_text()
EXAMPLE, TOML = re.search(r"```python\n(.*?)```.*?```toml\n(.*?)```", PAGE, re.DOTALL).groups()
SAMPLE = ROOT / "sample-traces/newreno-small.pcapng.zst"


def install(folder, code, point="power-law = power_law:PowerLaw", package="example"):
    """What an installed package leaves in site-packages: a module and a folder of metadata."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tcpfit.models]\n{point}\n")
    (folder / f"{point.split()[-1].partition(':')[0]}.py").write_text(code)


def python(folder, code):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        timeout=120,
        check=False,
    )


def tcpfit(folder, *arguments):
    return python(folder, f"import sys; sys.argv[1:] = {list(arguments)!r}; from tcpfit.cli.main import run; run()")


def test_the_page_registers_the_example():
    assert 'power-law = "power_law:PowerLaw"' in TOML


def test_an_installed_example_is_a_model_like_the_others(tmp_path):
    install(tmp_path, EXAMPLE)
    run = python(
        tmp_path, "import tcpfit.models as m; print(*m.catalogue(), m.get('power-law').predict(p=0.01, rtt=0.1))"
    )
    assert (0, "") == (run.returncode, run.stderr)
    *names, rate = run.stdout.split()
    assert names[0] == "mathis" and names[-1] == "power-law"
    assert float(rate.strip("[]")) == pytest.approx(122)


def test_an_installed_example_is_ranked(tmp_path):
    install(tmp_path, EXAMPLE)
    run = tcpfit(tmp_path, "analyze", str(SAMPLE))
    assert (0, "") == (run.returncode, run.stderr)
    assert re.search(r"^ +\d +power-law +[\d.]+ [MGk]b/s", run.stdout, re.MULTILINE)


BROKEN = {
    "cannot be imported": ("import nothing_of_that_name", "ModuleNotFoundError"),
    "stops the program": ("raise SystemExit(3)", "SystemExit: 3"),
    "has no such class": ("x = 1", "has no attribute 'PowerLaw'"),
    "is no model": ("class PowerLaw: pass", "it is no class derived from tcpfit.models.Model"),
    "declares nothing": (
        "from tcpfit.models import Model\nclass PowerLaw(Model): pass",
        "name must be a text",
    ),
    "takes a name": (EXAMPLE.replace('name = "power-law"', 'name = "mathis"'), "the name 'mathis' is taken"),
    "predicts something else": (EXAMPLE.replace("p_definition", 'predicts = "weather"; p_definition', 1), "'weather'"),
    "has parameters of its own kind": (EXAMPLE.replace("parameters = (", "parameters = (1,", 1), "tuple of Parameter"),
    "needs arguments": (EXAMPLE.replace("*, free=None", "free"), "missing 1 required positional argument"),
    "divides by zero": (EXAMPLE.replace('return x["k"]', "1 / 0"), "ZeroDivisionError"),
    "forgets the law": (EXAMPLE.replace("_rate", "_rates"), "NotImplementedError"),
    "returns another shape": (EXAMPLE.replace('return x["k"]', "return [1, 2, 3]; x"), "ValueError"),
}


@pytest.mark.parametrize(("code", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_plugin_costs_one_sentence(tmp_path, code, reason):
    install(tmp_path, code)
    code = "import tcpfit.models as m; print(len(m.catalogue())); m.catalogue()"
    run = python(tmp_path, f"import warnings; warnings.simplefilter('always'); {code}")
    own = python(tmp_path, "import tcpfit.models as m; print(len(m._CLASSES))").stdout
    assert (0, own) == (run.returncode, run.stdout), run.stderr
    said = [line for line in run.stderr.splitlines() if "PluginWarning" in line]
    assert 1 == len(said)
    assert reason in said[0]
    assert "model power-law of the package example failed and is left out (" in said[0]


def test_the_command_says_it_in_a_sentence(tmp_path):
    install(tmp_path, "import nothing_of_that_name")
    run = tcpfit(tmp_path, "analyze", str(SAMPLE), "--format", "csv")
    assert 0 == run.returncode
    assert 1 == len(run.stderr.splitlines())
    assert run.stderr.startswith("tcpfit: model power-law of the package example failed and is left out (ModuleNotFou")


def test_a_law_that_fails_on_a_flow_is_left_out_and_said(tmp_path):
    install(
        tmp_path, EXAMPLE.replace("        return x[", "        assert x['p'][0] == 0.01, 'no p'\n        return x[")
    )
    run = tcpfit(tmp_path, "analyze", str(SAMPLE), "--format", "csv")
    assert 0 == run.returncode
    assert "tcpfit: model power-law of the package example failed and is left out (AssertionError: no p)." in run.stderr
    assert "Traceback" not in run.stderr
    assert 2 == len(run.stdout.splitlines())
