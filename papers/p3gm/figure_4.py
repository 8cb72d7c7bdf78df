"""Figure 4: AUROC and AUPRC on Credit against ε, δ = 1e-5.

    python papers/p3gm/figure_4.py --data FOLDER [--epsilons 0.2 1 10] [--methods best max-entropy]
        [--runs 1] [--validate]

The ε of the paper's points are not printed; these are ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cells import NAMES, mean, parser, read, table_cell
from drawing import pyplot
from jobs import Cell, Limits, Results, run_cells

EPSILONS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    methods = ["best", "dpgm", "max-entropy", "mst", "privbayes"]
    arguments.add_argument("--methods", nargs="+", choices=NAMES, default=methods)
    options = arguments.parse_args()
    kind = "validation" if options.validate else "test"
    results = Results(options.out / f"figure_4_{kind}.jsonl")
    limits = Limits(seconds=60 * options.minutes, gib=8)
    cells = {
        f"{method} | {epsilon:g} | {run}": Cell(
            table_cell, (read(options), "credit", method, options.peers, options.validate, epsilon), limits
        )
        for run in range(options.runs)
        for method in options.methods
        for epsilon in options.epsilons
    }
    curves: dict[str, dict[float, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for key, value in run_cells(results, cells).items():
        method, epsilon, _ = key.split(" | ")
        curves[method][float(epsilon)].append(value)
    points = {m: {e: [mean(found, "auroc"), mean(found, "auprc")] for e, found in c.items()} for m, c in curves.items()}
    results.note("figure 4", points)
    draw(points, options.out / f"figure_4_{kind}.png")


def draw(curves: Mapping[str, Mapping[float, Sequence[float | str]]], path: Path) -> None:
    """Draw the points that were measured."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for method, points in curves.items():
        done = {e: scores for e, scores in points.items() if all(isinstance(score, float) for score in scores)}
        for axis, column in zip(axes, (0, 1), strict=True):
            axis.plot(list(done), [scores[column] for scores in done.values()], "o-", label=NAMES[method])
    for axis, label in zip(axes, ("AUROC", "AUPRC"), strict=True):
        axis.set(xscale="log", xlabel="ε", ylabel=label)
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path, dpi=90)
    plt.close(figure)


if __name__ == "__main__":
    main()
