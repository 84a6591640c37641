"""Make values.json from the table of reference values: `python make_values.py TABLE.json`.

The table holds a row per value: model, inputs, expected, tolerance, status. Kept here: the rows of the models in
`tcpfit.models`, the grids as columns. Grid values were recomputed from the equations before this package was
written, under the same reading of the papers' errors: they check the code, not that reading. The printed values come
from the papers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

GRIDS = (
    "mathis pftk_approx pftk_full.send pftk_full.thr q_hat E_TO parvez_W parvez_W_exact parvez_noto parvez_pTO.floor "
    "parvez_full.floor parvez_full.real parvez_full.series_exact parvez_q.eq30 parvez_q.self sharma.G1 "
    "sharma.G1hat.timeout sharma.G1hat.notimeout sharma.G2 sharma.G2hat.timeout sharma.G2hat.notimeout sikdar_setup "
    "sikdar_w sikdar_pkt_closed sikdar_tlin sikdar_nwm sikdar_tnl_rounds sikdar_r sikdar_steady.sack"
).split()
PRINTED = ("parvez.", "sharma.", "li.Q.")


def main(table: Path) -> None:
    rows = json.loads(table.read_text())["rows"]
    grids = {}
    for model in GRIDS:
        found = [row for row in rows if row["model"] == model and row["id"].startswith("grid.")]
        inputs = sorted({name for row in found for name in row["inputs"]})
        extra = [name for name in ("expected_clamped",) if name in found[0]]
        grids[model] = {
            "columns": [*inputs, "expected", *extra],
            "rel_tol": max(row.get("rel_tol", 0.0) for row in found),
            "abs_tol": max(row.get("abs_tol", 0.0) for row in found),
            "rows": [[row["inputs"].get(n) for n in inputs] + [row[n] for n in ("expected", *extra)] for row in found],
        }
    kept = ("id", "inputs", "expected", "rel_tol", "abs_tol", "status")
    printed = [{key: row[key] for key in kept if key in row} for row in rows if row["id"].startswith(PRINTED)]
    head = f'{{"about": {json.dumps(" ".join((__doc__ or "").split()))},\n"grids": {{\n'
    text = ",\n".join(
        f'{json.dumps(name)}: {{"columns": {json.dumps(grid["columns"])}, "rel_tol": {grid["rel_tol"]}, '
        f'"abs_tol": {grid["abs_tol"]}, "rows": [\n' + ",\n".join(map(json.dumps, grid["rows"])) + "]}"
        for name, grid in grids.items()
    )
    tail = '},\n"printed": [\n' + ",\n".join(map(json.dumps, printed)) + "]}\n"
    Path(__file__).with_name("values.json").write_text(head + text + tail)
    print(sum(len(grid["rows"]) for grid in grids.values()), "grid rows,", len(printed), "printed values")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
