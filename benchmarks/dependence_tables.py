"""What a release keeps of a table: eleven tables, each beside rows that say what its figures mean.

    python benchmarks/dependence_tables.py DATA [telco_churn ...] [--validate] [--epsilon 1 10] [--fits 3]
        [--rows gaussian no-noise dpmm-mst privbayes] [--dpmm-python .peers/dpmm/bin/python] [--out FOLDER]

A tenth of the rows is held out with seed 0 before anything else, as in `adult.py`; with `--validate` scores are on a
third of the training rows (seed 1), releases are fitted to the other two thirds, and the held-out rows never used.
Releases are at (epsilon, 1e-5), add or remove one row, secret noise, `rows` of the schema public. Each stands for as
many rows as were fitted. Tables and schemas are in `suite.py`, scores and what total variation is against in
`table_scores.py`.

    real            the fitted rows themselves
    kept out        the rows scored on: what another sample of the population has (no classifiers)
    bootstrap       fitted rows, as many, drawn with replacement
    tenth           a tenth of the fitted rows, without noise
    independent     every column shuffled alone: marginals and nothing else
    no-noise        MaxEntropy with NonPrivate(): the error of the model
    max-entropy     MaxEntropy at --epsilon, mean of --fits
    dpmm-mst        MST and PrivBayes of dpmm, likewise, if asked for: numbers in 20 equal-width bins, 30 minutes of CPU
    privbayes       time and 8 GiB a fit, as in `peers.py`

With `--out` every figure goes to FOLDER/TABLE[_validation].jsonl as soon as it is known, and is not computed
again; without it nothing is kept, as one wants while an estimator changes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from adult import DELTA, split
from peers import LIMITS, sampled
from suite import CASES, Case
from table_scores import all_scores

import sfumato

sys.path.insert(0, str(Path(__file__).parents[1] / "papers"))
from jobs import Results

REFERENCES = ("real", "kept out", "bootstrap", "tenth", "independent")
ROWS = (*REFERENCES, "no-noise", "max-entropy")
PEERS = ("dpmm-mst", "privbayes")


def reference(name: str, fitted: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a reference; the same at every run."""
    rng = np.random.default_rng(2)
    if name == "bootstrap":
        return fitted.iloc[rng.integers(0, len(fitted), len(fitted))].reset_index(drop=True)
    if name == "tenth":
        return fitted.iloc[rng.permutation(len(fitted))[: len(fitted) // 10]].reset_index(drop=True)
    if name == "independent":
        columns = {c: fitted[c].iloc[rng.permutation(len(fitted))].reset_index(drop=True) for c in fitted}
        return pd.DataFrame(columns)
    return {"real": fitted, "kept out": test}[name]


def made(case: Case, fitted: pd.DataFrame, epsilon: float | sfumato.NonPrivate) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Fit and sample as many rows as were fitted."""
    method = sfumato.MaxEntropy(epsilon=epsilon, delta=DELTA)
    start, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that no noise is not private
        release = method.fit(fitted, schema=case.table.schema, target=case.table.target)
    seconds = {"fit_seconds": time.perf_counter() - start, "fit_cpu_seconds": time.process_time() - cpu}
    start = time.perf_counter()
    rows = release.sample(len(fitted))
    return rows, {**seconds, "sample_seconds": time.perf_counter() - start}


def peer(
    case: Case, name: str, fitted: pd.DataFrame, test: pd.DataFrame, epsilon: float, python: Path
) -> dict[str, Any]:
    """Fit and sample by a peer in its own process; how that went, and the figures if it finished."""
    cell, rows = sampled(name, case.table, fitted, python, LIMITS, epsilon)
    return cell if rows is None else {**all_scores(case, fitted, rows, test), **cell}


def one_row(
    case: Case, name: str, fitted: pd.DataFrame, test: pd.DataFrame, epsilon: float, python: Path | None
) -> dict[str, Any]:
    """Return the figures of one row of the table."""
    if name in PEERS and python is not None:
        return peer(case, name, fitted, test, epsilon, python)
    if name in REFERENCES:
        return all_scores(case, fitted, reference(name, fitted, test), test, utility=name != "kept out")
    rows, seconds = made(case, fitted, sfumato.NonPrivate() if name == "no-noise" else epsilon)
    return {**all_scores(case, fitted, rows, test), **seconds}


def keys(rows: list[str], epsilons: list[float], fits: int) -> dict[str, tuple[str, str, float]]:
    """Return key to (label of the row, its name, epsilon), in the order they are run."""
    found = {}
    for name in rows:
        if name in REFERENCES or name == "no-noise":
            found[name] = (name, name, 0.0)
            continue
        for epsilon in epsilons:
            label = f"{name}, {epsilon:g}"
            found |= {f"{label}/{number}": (label, name, epsilon) for number in range(fits)}
    return found


def run_table(name: str, arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Return the label of each row to the figures of its fits."""
    case = CASES[name](arguments.data)
    fitted, test = split(case.table.frame, share=0.1, seed=0)
    if arguments.validate:
        fitted, test = split(fitted, share=1 / 3, seed=1)
    results = Results(arguments.out / f"{name}{'_validation' * arguments.validate}.jsonl") if arguments.out else None
    found: dict[str, list[dict[str, Any]]] = {}
    for key, (label, row, epsilon) in keys(arguments.rows, arguments.epsilon, arguments.fits).items():
        scores = results.found.get(key) if results else None
        if scores is None:
            scores = one_row(case, row, fitted, test, epsilon, arguments.dpmm_python)
            if results and scores.get("status") != "failed":
                results.put(key, scores)
            print(f"{name}: {key} {scores.get('error', '')}", file=sys.stderr)
        found.setdefault(label, []).append(scores)
    return found


def show(name: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    """Print a figure per line, a column per row of the table: means over the fits that finished."""
    print(f"\n{name:<28}" + "".join(f"{label:>14}" for label in rows))
    found = {figure: value for fits in rows.values() for fit in fits for figure, value in fit.items()}
    figures = [figure for figure, value in found.items() if not isinstance(value, str)]
    for figure in figures:
        cells = [[fit[figure] for fit in fits if figure in fit] for fits in rows.values()]
        texts = [f"{statistics.fmean(cell):.4g}" if cell else "" for cell in cells]
        print(f"{figure[:28]:<28}" + "".join(f"{text:>14}" for text in texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of the Parquet files")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(CASES)}; by default all")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument(
        "--rows", nargs="+", choices=(*ROWS, *PEERS), default=list(ROWS), help="rows of the table to run"
    )
    parser.add_argument(
        "--dpmm-python", type=Path, help="Python of an environment with dpmm, for dpmm-mst and privbayes"
    )
    parser.add_argument("--validate", action="store_true", help="score on training rows instead")
    parser.add_argument("--out", type=Path, help="folder of the figures; goes on where it stopped")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.tables if name not in CASES]:
        parser.error(f"expected tables of {', '.join(CASES)}, got {', '.join(unknown)}.")
    if arguments.dpmm_python is None and set(arguments.rows) & set(PEERS):
        parser.error("--dpmm-python is needed for peers.")
    print(f"scored on {'validation' if arguments.validate else 'test'} rows; fits: {arguments.fits}")
    for name in arguments.tables or CASES:
        show(name, run_table(name, arguments))
    print("\nMade from real records without noise: these figures are NOT private.")


if __name__ == "__main__":
    main()
