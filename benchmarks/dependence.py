"""Correlations that a release keeps: pairs of normal columns, beside one noisy matrix and a copula of the same budget.

    python benchmarks/dependence.py [--columns 6 20 42] [--rows 50000] [--epsilon 1 none] [--rho .55] [--target no yes]
        [--methods max-entropy matrix copula] [--fits 1] [--whole] [--out FILE.jsonl]

Columns come in independent pairs of correlation rho, standard normal, cut off at ±6; with a target, a label true of
three rows in ten that shifts the first column of every second pair by one. Of each cell:

    kept      mean over the pairs of correlation in the samples ÷ correlation in the real rows
    false     root mean square, over columns not paired, of what samples' correlations differ from the real ones
    cpu       CPU seconds of fit and sample

    max-entropy  MaxEntropy at (epsilon, 1e-5) with secret noise, the number of rows public; `none`: NonPrivate()
    matrix    the correlations in one noisy second moment of clipped normal scores (exact ranks), at the noise
              multiplier of the last stage of the method's own plan: what that release bought, not private by itself
    copula    a Gaussian copula: marginals at the multiplier of the plan's first stage, scores by them, that matrix made
              positive definite, and samples: all of the budget, two releases, no estimator to speak of

With `--out` a cell that is in the file is not run again; without it nothing is kept. A cell has 30 minutes of CPU time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from adult import DELTA
from scipy.stats import norm, rankdata

import sfumato
from sfumato.columns.kinds import Boolean, ColumnKind, Continuous

sys.path.insert(0, str(Path(__file__).parents[1] / "papers"))
from jobs import Cell, Limits, Results, run_cells

COLUMNS = (2, 6, 12, 20, 42, 60, 100, 200, 500)
ROWS = (10_000, 50_000)
EPSILONS = ("0.3", "1", "3", "10", "none")
RHOS = (0.3, 0.55, 0.97)
BOUND = 6.0
CELLS = 120
LABEL = "label"


def pairs_table(d: int, n: int, rho: float, *, target: bool, seed: int = 0) -> tuple[pd.DataFrame, sfumato.Schema]:
    """Return rows and their schema; columns 2i and 2i + 1 are a pair."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    x[:, 1::2] = rho * x[:, ::2] + np.sqrt(1 - rho**2) * x[:, 1::2]
    label = rng.random(n) < 0.3
    if target:
        x[:, ::4] += label[:, None]
    frame = pd.DataFrame(np.clip(x, -BOUND, BOUND), columns=[f"x{i}" for i in range(d)])
    columns: dict[str, ColumnKind] = {name: Continuous(lower=-BOUND, upper=BOUND) for name in frame}
    if target:
        frame[LABEL] = label
        columns[LABEL] = Boolean()
    return frame, sfumato.Schema(columns=columns, rows=n)


def kept(real: np.ndarray, found: np.ndarray) -> dict[str, float | None]:
    """Return the part of the pairs' correlations that is kept, and the size of false ones, of two matrices."""
    d = len(real)
    even = np.arange(0, d, 2)
    unpaired = np.triu(np.ones((d, d), dtype=bool), 1)
    unpaired[even, even + 1] = False
    false = np.sqrt(np.mean((found - real)[unpaired] ** 2)) if unpaired.any() else None
    return {
        "kept": float(np.mean(found[even, even + 1] / real[even, even + 1])),
        "false": None if false is None else float(false),
    }


def correlations(frame: pd.DataFrame, d: int) -> np.ndarray:
    """Pearson's correlations of the first d columns; of a constant column 0."""
    with np.errstate(all="ignore"):
        return np.nan_to_num(np.corrcoef(frame.iloc[:, :d].to_numpy(np.float64), rowvar=False))


def noisy_correlations(scores: np.ndarray, multiplier: float, rng: np.random.Generator) -> np.ndarray:
    """Return the correlation matrix in a noisy second moment of clipped vectors, shape (d, d), not yet definite.

    Squared norms are clipped at d + 4√d: twice the deviation that pairs of correlation 1 have. A record's matrix has
    at most that Frobenius norm, in which an entry off the diagonal counts twice.
    """
    n, d = scores.shape
    most = d + 4 * np.sqrt(d)
    squares = np.sum(scores**2, axis=1)
    clipped = scores * np.sqrt(np.minimum(1, most / np.maximum(squares, 1e-12)))[:, None]
    noise = multiplier * most * rng.standard_normal((d, d))
    moment = clipped.T @ clipped + (np.triu(noise, 1) + np.triu(noise, 1).T) / np.sqrt(2) + np.diag(np.diag(noise))
    scale = 1 / np.sqrt(np.maximum(np.diag(moment), 0.1 * n))
    return moment * scale[:, None] * scale


def definite(matrix: np.ndarray) -> np.ndarray:
    """Return a correlation matrix near a symmetric one: eigenvalues of at least .01, then a diagonal of ones."""
    values, vectors = np.linalg.eigh(matrix)
    raised = (vectors * np.maximum(values, 0.01)) @ vectors.T
    scale = 1 / np.sqrt(np.diag(raised))
    return raised * scale[:, None] * scale


def copula_samples(x: np.ndarray, multipliers: tuple[float, float], rng: np.random.Generator) -> np.ndarray:
    """Fit a Gaussian copula to columns in [-6, 6] and draw as many rows."""
    n, d = x.shape
    edges = np.linspace(-BOUND, BOUND, CELLS + 1)
    counts = np.stack([np.histogram(column, edges)[0] for column in x.T]).astype(np.float64)
    counts = np.maximum(counts + multipliers[0] * np.sqrt(d) * rng.standard_normal(counts.shape), 0) + 1e-9
    shares = counts / counts.sum(axis=1, keepdims=True)
    ends = np.concatenate([np.zeros((d, 1)), np.cumsum(shares, axis=1)], axis=1)
    cells = np.clip(np.digitize(x, edges) - 1, 0, CELLS - 1)
    middles = norm.ppf(np.clip(ends[:, :-1] + shares / 2, 1e-6, 1 - 1e-6))
    scores = np.take_along_axis(middles.T, cells, axis=0)
    root = np.linalg.cholesky(definite(noisy_correlations(scores, multipliers[1], rng)))
    drawn = norm.cdf(rng.standard_normal((n, d)) @ root.T)
    return np.stack([np.interp(drawn[:, i], ends[i], edges) for i in range(d)], axis=1)


def one_cell(method: str, d: int, n: int, epsilon: str, rho: float, target: bool, number: int) -> dict[str, Any]:
    """Make rows, release them by one method, and say what was kept."""
    frame, schema = pairs_table(d, n, rho, target=target, seed=number)
    real, rng = correlations(frame, d), np.random.default_rng(1000 + number)
    named = LABEL if target else None
    ours = sfumato.MaxEntropy(epsilon=sfumato.NonPrivate() if epsilon == "none" else float(epsilon), delta=DELTA)
    stages = ours.plan(schema, target=named).stages
    first, last = (0.0 if epsilon == "none" else stages[i].noise_multiplier for i in (0, -1))
    start = time.process_time()
    if method == "max-entropy":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that no noise is not private
            made = ours.fit(frame, schema=schema, target=named).sample(n)
    elif method == "matrix":
        scores = norm.ppf((rankdata(frame.to_numpy(np.float64), axis=0) - 0.5) / n)
        matrix = noisy_correlations(scores, last, rng)
        return {**kept(real, matrix[:d, :d]), "cpu": time.process_time() - start}
    else:
        made = pd.DataFrame(copula_samples(frame.to_numpy(np.float64), (first, last), rng))
    seconds = time.process_time() - start
    return {**kept(real, correlations(made, d)), "cpu": seconds}


def cells_of(arguments: argparse.Namespace) -> dict[str, Cell]:
    """Return the cells chosen, by key."""
    found = {}
    chosen = (arguments.target, arguments.rho, arguments.rows, arguments.epsilon, arguments.columns)
    for target, rho, n, epsilon, d in product(*chosen):
        for method, number in product(arguments.methods, range(arguments.fits)):
            key = f"target={target} rho={rho:g} n={n} epsilon={epsilon} d={d} {method}/{number}"
            cell = (method, d, n, epsilon, rho, target == "yes", number)
            found[key] = Cell(one_cell, cell, Limits(seconds=30 * 60, gib=8))
    return found


def show(found: dict[str, Any], methods: list[str]) -> None:
    """Print a line for each setting: kept, false and CPU seconds, means over the fits."""
    lines: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for key, cell in found.items():
        setting, _, method = key.rpartition(" ")
        lines.setdefault(setting, {}).setdefault(method.partition("/")[0], []).append(cell)
    width = max(map(len, lines))
    print(f"{'':<{width}}" + "".join(f"{method + ': kept, false, cpu':>30}" for method in methods))
    for setting, cells in lines.items():
        print(f"{setting:<{width}}" + "".join(f"{summary(cells[method]):>30}" for method in methods))
    print("\nOf made-up rows.")


def summary(fits: list[dict[str, Any]]) -> str:
    """Return the three figures of a cell, or how it ended."""
    done = [fit for fit in fits if fit["status"] == "finished"]
    if not done:
        return f"{fits[0]['status']} ({fits[0].get('limit', 'error')})"
    means = {name: [fit[name] for fit in done if fit[name] is not None] for name in ("kept", "false", "cpu")}
    texts = [f"{statistics.fmean(v):.3f}" if v else "-" for v in (means["kept"], means["false"])]
    return f"{texts[0]} {texts[1]} {statistics.fmean(means['cpu']):7.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="+", default=list(COLUMNS), help="even numbers")
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000])
    parser.add_argument("--epsilon", nargs="+", default=["1", "none"], help="numbers, or none for no noise")
    parser.add_argument("--rho", type=float, nargs="+", default=[0.55])
    parser.add_argument("--target", nargs="+", choices=("no", "yes"), default=["no", "yes"])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--whole", action="store_true", help="every number of rows, epsilon and correlation: hours")
    parser.add_argument("--out", type=Path, help="figures, a JSON line each; goes on where it stopped")
    arguments = parser.parse_args()
    if any(d % 2 or d < 2 for d in arguments.columns):
        parser.error("expected even numbers of columns: they come in pairs.")
    if arguments.whole:
        arguments.rows, arguments.epsilon, arguments.rho = ROWS, EPSILONS, RHOS
    with tempfile.TemporaryDirectory() as folder:
        results = Results(arguments.out or Path(folder) / "cells.jsonl")
        show(run_cells(results, cells_of(arguments)), arguments.methods)


METHODS = ("max-entropy", "matrix", "copula")

if __name__ == "__main__":
    main()
