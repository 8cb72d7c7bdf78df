"""Figure 6: AUROC against the number of columns, ε = 1, δ = 1e-5.

    python papers/p3gm/figure_6.py [--dimensions 5 20 100] [--methods best max-entropy] [--runs 1]

Two Gaussians of means (1, ..., 1) and (−1, ..., −1) and identity covariance, one for each label, 10,000 rows of each,
and as many to score on. Reads no data: the rows are drawn here. The mean of the four classifiers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cells import DELTA, NAMES, NO_LIMITS, mean, parser, peer_python, peer_tables, peers
from drawing import pyplot
from jobs import Cell, Limits, Results, run_cells

import sfumato
from sfumato.columns.kinds import Categorical, Continuous
from sfumato.evaluate.utility import classifier_scores
from sfumato.fitting.synthesizer import Synthesizer

DIMENSIONS = (5, 10, 20, 50, 100)
ROWS, BOUND = 10_000, 5.0
OURS: Mapping[str, Callable[..., Synthesizer]] = {
    "max-entropy": sfumato.MaxEntropy,
    "best": partial(sfumato.P3GM, batch_size=200),
    "dpgm": sfumato.DPGM,
}


def drawn(dimension: int, seed: int) -> pd.DataFrame:
    """Rows of both labels, clipped to public bounds."""
    rng = np.random.default_rng([dimension, seed])
    sign = np.repeat([1.0, -1.0], ROWS)
    points = np.clip(sign[:, None] + rng.standard_normal((2 * ROWS, dimension)), -BOUND, BOUND)
    frame = pd.DataFrame(points, columns=[f"x{j}" for j in range(dimension)])
    return frame.assign(label=np.where(sign > 0, "1", "0"))


def cell(dimension: int, method: str, run: int, peer_folder: Path) -> dict[str, Any]:
    """Fit once, and score on rows that were not fitted."""
    train, test = drawn(dimension, 2 * run), drawn(dimension, 2 * run + 1)
    columns: dict[str, Any] = {f"x{j}": Continuous(lower=-BOUND, upper=BOUND) for j in range(dimension)}
    label = Categorical(categories=("0", "1"))
    schema = sfumato.Schema(columns={**columns, "label": label}, rows=2 * ROWS)
    if method not in OURS:
        table = peer_tables.Table(train, schema, "label", "1")
        found = peers.run_cell(method, table, (train, test), peer_python(peer_folder, method), NO_LIMITS)
        return {key: found[key] for key in ("auroc", "auprc", "fit_seconds") if key in found}
    made = OURS[method](epsilon=1.0, delta=DELTA).fit(train, schema=schema, target="label").sample(2 * ROWS)
    scores = classifier_scores(made, test, schema=schema, target="label", positive="1")
    return {key: scores[key] for key in ("auroc", "auprc")}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--dimensions", nargs="+", type=int, default=DIMENSIONS)
    arguments.add_argument("--methods", nargs="+", default=["max-entropy", "best", "dpgm", "real", "mst", "privbayes"])
    options = arguments.parse_args()
    results = Results(options.out / "figure_6.jsonl")
    limits = Limits(seconds=60 * options.minutes, gib=8)
    cells = {
        f"{method} | {dimension} | {run}": Cell(cell, (dimension, method, run, options.peers), limits)
        for run in range(options.runs)
        for method in options.methods
        for dimension in options.dimensions
    }
    curves: dict[str, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for key, value in run_cells(results, cells).items():
        method, dimension, _ = key.split(" | ")
        curves[method][int(dimension)].append(value)
    points = {m: {d: mean(found, "auroc") for d, found in c.items()} for m, c in curves.items()}
    results.note("figure 6", points)
    draw(points, options.out / "figure_6.png")


def draw(curves: Mapping[str, Mapping[int, float | str]], path: Path) -> None:
    """Draw the points that were measured."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for i, (method, found) in enumerate(curves.items()):  # thinner and thinner: several lines lie on each other
        done = {d: auroc for d, auroc in found.items() if isinstance(auroc, float)}
        axis.plot(list(done), list(done.values()), "o-", lw=max(5 - i, 1), ms=max(9 - i, 4), label=NAMES[method])
    axis.set(xscale="log", xticks=DIMENSIONS, xticklabels=DIMENSIONS, xlabel="numeric columns", ylabel="AUROC")
    axis.minorticks_off()
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=90)
    plt.close(figure)


if __name__ == "__main__":
    main()
