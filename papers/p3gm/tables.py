"""Tables V, VI and VIII: P3GM, the default method, peers and real rows on the paper's four tables.

    make peers
    python papers/p3gm/tables.py --data FOLDER [--only adult credit] [--methods mst privbayes] [--runs 3] [--validate]

A tenth is held out with seed 0, and four classifiers are trained on samples and scored on the held-out rows; total
variation is against the fitted rows. Noise is secret: runs have no seeds. A cell gets 30 minutes of CPU time and 8 GiB.
"""

from __future__ import annotations

from cells import DATA, NAMES, REAL, Limits, parser, read, table_cell
from jobs import Cell, Results, run_cells

ONCE = (*REAL, "mwem", "aim")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--only", nargs="+", choices=DATA, default=list(DATA))
    arguments.add_argument("--methods", nargs="+", choices=NAMES, default=list(NAMES))
    options = arguments.parse_args()
    limits = Limits(seconds=60 * options.minutes, gib=8)
    results = Results(options.out / f"tables_{'validation' if options.validate else 'test'}.jsonl")
    cells = {
        f"{data} | {method} | {run}": Cell(
            table_cell, (read(options), data, method, options.peers, options.validate), limits
        )
        for run in range(options.runs)
        for method in options.methods
        for data in options.only
        if not (run and method in ONCE)
    }
    for key, value in run_cells(results, cells).items():
        figures = [f"{value[name]:.3f}" for name in ("auroc", "auprc", "tvd_2way") if name in value]
        print(key, "|", " / ".join(figures) or f"{value['status']}: {value.get('limit', value.get('error'))}")
    print("Made from real records without noise: these figures are NOT private.")


if __name__ == "__main__":
    main()
