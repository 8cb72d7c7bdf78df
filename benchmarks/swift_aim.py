"""MaxEntropy beside SWIFT and AIM of google's dpsynth, the strongest published peers, in one run.

    make dpsynth    # their environment, in .peers/dpsynth: Python 3.12 and GitHub, for dpsynth is in no package index
    python benchmarks/swift_aim.py [DATA] --dpsynth-python .peers/dpsynth/bin/python [--tables telco_churn indices]
        [--methods max-entropy swift aim] [--fits 1] [--epsilon 1] [--out FILE]

Tables by name: those of `suite.py`, read from DATA or SFUMATO_DATA, and the made-up ones of `alarms.py`, which need no
folder. A tenth of the rows is held out with seed 0. Releases are at (epsilon, 1e-5), add or remove one row; the schema
and a number of rows are public. The peers run with the settings they come with, on the public bins and within the
limits of `peers.py`; their budget is the ρ of the one Gaussian that is (epsilon, 1e-5)-DP, which is all of ours too.

    AUROC       four classifiers trained on samples, of a target of two classes; R² where it is a number
    2-way, 3-way    mean total variation against the fitted rows, numbers in 20 equal-width bins
    strongest   the same over the p - 1 pairs that are furthest from independence among the fitted rows
    CPU s       of the whole process: its start, the fit and a sample of as many rows; JAX compiles in it

Without `--dpsynth-python` the peers are left out, and the script says so. Scores read real records: NOT private.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from adult import split
from alarms import TABLES, Made, kinds
from peer_tables import Table
from peers import HOUSE, LIMITS, sampled
from suite import CASES, Case
from table_scores import classification, regression

import sfumato
from sfumato.columns.kinds import LevelKind
from sfumato.evaluate import total_variation
from sfumato.evaluate.coded_tables import CodedTable
from sfumato.evaluate.fidelity import read_bins, set_distance
from sfumato.io.sources import open_source
from sfumato.schema.schema import Schema

sys.path.insert(0, str(Path(__file__).parents[1] / "papers"))
from jobs import FINISHED, Results

METHODS = (HOUSE, "swift", "aim")
SCORES = {"auroc": 3, "r2": 3, "tvd_2way": 4, "tvd_3way": 4, "strongest": 4, "cpu_seconds": 0}


def case_of(name: str, folder: Path | None, made: Mapping[str, Callable[..., Made]] = TABLES) -> Case:
    """Return a table by name; of a made-up one the target is left out where it has more than two classes."""
    if name in CASES:
        if folder is None:
            sys.exit(f"Expected a folder for {name}, got none. Name it, or set SFUMATO_DATA.")
        return CASES[name](folder)
    frame, bounds, target = made[name](np.random.default_rng(sorted(made).index(name)))
    schema = Schema(columns=kinds(frame, bounds), rows=round(len(frame), -3) or round(len(frame), -2))
    number = target is not None and not isinstance(schema.columns[target], LevelKind)
    known = target if number or (target is not None and frame[target].nunique() == 2) else None
    return Case(Table(frame, schema, known, "" if number else "yes"), regression=number)


def strongest(real: CodedTable) -> list[tuple[str, str]]:
    """Return the p - 1 pairs whose joint shares differ most from the product of their own."""
    distances = {}
    for pair in itertools.combinations(real.columns, 2):
        codes = [real.columns[name].astype(np.int64) for name in pair]
        joint = np.zeros([1 + int(code.max()) for code in codes])
        np.add.at(joint, tuple(codes), 1 / real.n_rows)
        distances[pair] = np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum()
    return sorted(distances, key=lambda pair: -distances[pair])[: len(real.columns) - 1]


def scores(case: Case, fitted: pd.DataFrame, rows: pd.DataFrame, test: pd.DataFrame) -> dict[str, float]:
    """Return every figure of rows that stand for `fitted`."""
    schema = case.table.schema
    figures: dict[str, float] = {}
    if case.table.target is not None:
        figures = (regression if case.regression else classification)(case, rows, test)
    sizes = [k for k in (2, 3) if k <= fitted.shape[1]]
    figures |= {f"tvd_{k}way": total_variation(fitted, rows, schema=schema, k=k) for k in sizes or [1]}
    if not sizes:
        return figures
    real, other = (read_bins(open_source(frame), schema) for frame in (fitted, rows))
    figures["strongest"] = statistics.fmean(set_distance(real, other, pair, schema) for pair in strongest(real))
    return figures


def run_fit(method: str, case: Case, python: Path | None, epsilon: float) -> dict[str, Any]:
    """Fit, sample and score once."""
    fitted, test = split(case.table.frame, share=0.1, seed=0)
    name = method if method == HOUSE else f"dpsynth-{method}"
    cell, rows = sampled(name, case.table, fitted, python, LIMITS, epsilon)
    return cell if rows is None else {**scores(case, fitted, rows, test), **cell}


def line(table: str, method: str, cells: list[dict[str, Any]]) -> str:
    """One row of the table in Markdown: means over the fits that finished."""
    done = [cell for cell in cells if cell["status"] == FINISHED]
    if not done:
        return f"| {table} | {method} | {cells[0]['status']}: {cells[0].get('error', cells[0].get('limit'))} |"
    columns = {key: [cell[key] for cell in done if key in cell] for key in SCORES}
    texts = [f"{statistics.fmean(column):.{SCORES[key]}f}" if column else "" for key, column in columns.items()]
    return f"| {table} | {method}, {len(done)} | {' | '.join(texts)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    home = os.environ.get("SFUMATO_DATA")
    parser.add_argument("data", type=Path, nargs="?", default=home, help="folder of the tables; or SFUMATO_DATA")
    parser.add_argument("--dpsynth-python", type=Path, help="Python of an environment with dpsynth")
    parser.add_argument("--tables", nargs="+", choices=(*CASES, *TABLES), default=["telco_churn", "indices"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--out", type=Path, help="file of the figures; goes on where it stopped")
    arguments = parser.parse_args()
    methods = arguments.methods
    if arguments.dpsynth_python is None:
        methods = [HOUSE]
        print("swift, aim: skipped, no environment with dpsynth was named by --dpsynth-python", file=sys.stderr)
    results = Results(arguments.out) if arguments.out else None
    print(f"sfumato {sfumato.__version__}, ε = {arguments.epsilon:g}")
    print("| table | method, fits | AUROC | R² | 2-way | 3-way | strongest | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    for table in arguments.tables:
        case = case_of(table, arguments.data)
        for method in methods:
            cells = []
            for number in range(arguments.fits):
                key = f"{table}/{method}, {arguments.epsilon:g}/{number}"
                cell = results.found.get(key) if results else None
                if cell is None:
                    cell = run_fit(method, case, arguments.dpsynth_python, arguments.epsilon)
                    if results and cell["status"] == FINISHED:
                        results.put(key, cell)
                cells.append(cell)
            print(line(table, method, cells), flush=True)
    print("\nMade from real records without noise: these figures are NOT private.")


if __name__ == "__main__":
    main()
