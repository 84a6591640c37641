"""Write printed-values.md: every value the papers print for these models beside what tcpfit gives.

python docs/models/make_values.py           write the page
python docs/models/make_values.py --check   exit 1 if the page is out of date
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TESTS = HERE.parents[1] / "tests" / "models"

HEAD = """# Printed values

Made by `docs/models/make_values.py` from `tests/models/values.json`; do not edit. The last column is computed when the
page is made. Values of the first two kinds are tests (`tests/models/test_model_values.py::test_printed_value`):

- *reproduced*: no free choice is left. Of these 13 only the two `li.Q` rows run a model (PFTK's P(TO)); the other
  eleven are arithmetic on the papers' own tables, which fixes units, segment size and the order of damaged rows;
- *approximate*: the seven `single` rows. The paper prints no RTO; 1.5 s for all rows, and rounding W up, were chosen
  because they come near these very rows. They guard the code against change and are no evidence for the model. With the
  default rounding (`floor`) and the same RTO the largest difference is 4.8 %;
- *fitted (RTO)*: an RTO was fitted to the values, one each in Table IV. No evidence, not a test;
- *post-hoc match*: RTO fitted to another row, then 96 combinations of conventions tried, of which 4 match; with
  equation 30, as the text prescribes, the value is 391 instead of 382. Not a test;
- *not reproduced*: 6.21/0.98 is 6.34, which the paper prints as 6.4.

No printed figure therefore confirms newreno-full's absolute rate without a fitted RTO; none is printed at all for
mathis, pftk-simple, pftk-approx, pftk-full, newreno-noto, sikdar-sack and reordering-goodput in the papers read here.

| value | inputs | printed | tolerance | tcpfit | status |
| --- | --- | ---: | ---: | ---: | --- |
"""

GRIDS = """
## Grids

Values recomputed from the equations over random parameters, before this package was written and not with its code, but
under the same list of corrections to the papers. Agreement shows that the equations are coded as read; it does not show
that they are read as the authors meant, nor that they predict real flows. Each row is a test within the tolerance.

| equations | rows | relative tolerance | largest difference |
| --- | ---: | ---: | ---: |
"""

NAMES = {
    "mathis": "mathis",
    "pftk_approx": "pftk-approx",
    "pftk_full.send": "pftk-full, sent",
    "pftk_full.thr": "pftk-full, received",
    "q_hat": "PFTK's P(TO)",
    "E_TO": "duration of a timeout series",
    "parvez_W": "NewReno W, eq 14",
    "parvez_W_exact": "NewReno W, root of 7 = 13",
    "parvez_noto": "newreno-noto",
    "parvez_pTO.floor": "NewReno p_TO, eq 24, whole W",
    "parvez_full.floor": "newreno-full",
    "parvez_full.real": "newreno-full, real W in eq 24",
    "parvez_full.series_exact": "newreno-full, exact back-off",
    "parvez_q.eq30": "q, eq 30",
    "parvez_q.self": "q, self-consistent",
    "sikdar_setup": "Sikdar eq 1",
    "sikdar_w": "Sikdar eq 2",
    "sikdar_pkt_closed": "Sikdar eq 3",
    "sikdar_tlin": "Sikdar eq 5",
    "sikdar_nwm": "Sikdar eq 6",
    "sikdar_tnl_rounds": "Sikdar eq 8",
    "sikdar_r": "Sikdar eq 9",
    "sikdar_steady.sack": "sikdar-sack",
}


def values_module() -> Any:
    spec = importlib.util.spec_from_file_location("model_values", TESTS / "model_values.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(values: Any) -> str:
    import numpy as np

    lines, notes = [], []
    for row in values.VALUES["printed"]:
        inputs = ", ".join(f"{key} {value}" for key, value in row["inputs"].items())
        tolerance = f"{row['rel_tol']:.2%}" if "rel_tol" in row else f"±{row['abs_tol']:g}"
        cells = (
            row["id"],
            inputs or "-",
            f"{row['expected']:g}",
            tolerance,
            f"{values.printed(row):.5g}",
            row["status"],
        )
        lines.append("| " + " | ".join(cells) + " |")
    for name in values.GRIDS:
        inputs, expected, rel_tol, _ = values.grid(name)
        with np.errstate(all="ignore"):
            rates = values.GRIDS[name](**inputs)
        gap = float(np.max(np.abs(rates / expected["expected"] - 1)))
        label = NAMES.get(name, "reordering-goodput, " + name.removeprefix("sharma."))
        shown = "0" if gap == 0 else f"below 1e{int(np.ceil(np.log10(gap))):d}"
        notes.append(f"| {label} | {len(rates)} | {rel_tol:g} | {shown} |")
    return HEAD + "\n".join(lines) + "\n" + GRIDS + "\n".join(notes) + "\n"


def main(arguments: list[str]) -> int:
    target, text = HERE / "printed-values.md", page(values_module())
    if "--check" in arguments:
        return int(not target.exists() or target.read_text() != text)
    target.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
