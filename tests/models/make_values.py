"""Make values.json from the table of reference values: `python make_values.py TABLE.json`.

The table holds a row per value: model, inputs, expected, tolerance, status. Kept here: the rows of the models in
`tcpfit.models`, the grids as columns; of those in `SAMPLED` 15 rows, evenly over the grid (`test_model_values.py` takes
every row where the table is at hand). Grid values were recomputed from the equations before this package was written,
under the same reading of the papers' errors: they check the code, not that reading. The printed values come
from the papers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

GRIDS = (
    "mathis pftk_approx pftk_full.send pftk_full.thr q_hat E_TO parvez_W parvez_W_exact parvez_noto parvez_pTO.floor "
    "parvez_full.floor parvez_full.real parvez_full.series_exact parvez_q.eq30 parvez_q.self sharma.G1 "
    "sharma.G1hat.timeout sharma.G1hat.notimeout sharma.G2 sharma.G2hat.timeout sharma.G2hat.notimeout sikdar_setup "
    "sikdar_w sikdar_pkt_closed sikdar_tlin sikdar_nwm sikdar_tnl_rounds sikdar_r sikdar_steady.sack"
).split()
SAMPLED = (
    "tfrc sikdar_steady.tahoe sikdar_steady.reno bohacek.lambda1 bohacek.lambda2 bohacek.PTO bohacek.throughput "
    "bohacek.pftk_PTO bohacek.nb_q bohacek.pw bohacek.rho1 bohacek.exact_density cubic_response cubic_West cubic_W "
    "cubic_friendly cardwell2000 cardwell2000.plus0 padhye_short li_hysteresis.mean li_hysteresis.var li_catnip "
    "li_catnip.pp sikdar_tsl_rounds.tahoe sikdar_tsl_rounds.reno sikdar_tsl_rounds.sack sikdar_latency.tahoe "
    "sikdar_latency.reno sikdar_latency.sack bohacek.dynamic"
).split()
KEPT = 15
PRINTED = ("parvez.", "sharma.", "li.Q.", "boh.", "rfc8312.", "sikdar.tabI", "li.pkts.")


def grid_of(rows: list[dict[str, Any]], model: str, most: int | None = None) -> dict[str, Any]:
    """One grid of the table as columns, all of its rows or `most`."""
    found = [row for row in rows if row["model"] == model and row["id"].startswith("grid.")]
    found = found[:: max(1, len(found) // most)][:most] if most else found
    inputs = sorted({name for row in found for name in row["inputs"]})
    extra = [name for name in ("expected_clamped",) if name in found[0]]
    return {
        "columns": [*inputs, "expected", *extra],
        "rel_tol": max(row.get("rel_tol", 0.0) for row in found),
        "abs_tol": max(row.get("abs_tol", 0.0) for row in found),
        "rows": [[row["inputs"].get(n) for n in inputs] + [row[n] for n in ("expected", *extra)] for row in found],
    }


def main(table: Path) -> None:
    rows = json.loads(table.read_text())["rows"]
    grids = {model: grid_of(rows, model) for model in GRIDS}
    grids |= {model: grid_of(rows, model, KEPT) for model in SAMPLED}
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
