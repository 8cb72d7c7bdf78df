"""The picture of `dependence_tables.py`: error of the model and error of the noise, apart, for each table.

    pip install -c constraints.txt '.[papers]'
    python benchmarks/dependence_pictures.py FOLDER [--validate] [--epsilon 1] --out docs/pictures/dependence.png

FOLDER is what `dependence_tables.py --out` wrote. A bar is a mean 2-way total variation against the fitted rows, from
which the fitted rows themselves are 0; for real ones the bar is that of rows kept out. The bar without noise is the
error of the model, and what the next is higher by the error of the noise. No release has to be better than a bootstrap;
independent columns forget all dependence.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from suite import CASES

sys.path.insert(0, str(Path(__file__).parents[1] / "papers"))
from jobs import Results

mpl.use("Agg")
from matplotlib import pyplot as plt

FIGURE = "tvd_2way"
MODEL, NOISE = "no noise: error of the model", "ε = {:g}: with noise"
BARS = {
    "kept out": ("real rows kept out", "#1b3a57"),
    "bootstrap": ("bootstrap", "#5b7f9e"),
    "tenth": ("a tenth of the rows", "#a9c0d3"),
    "no-noise": (MODEL, "#e0a58f"),
    "max-entropy": (NOISE, "#c1502e"),
    "independent": ("independent columns", "#9a9a9a"),
}


def means(path: Path, epsilon: float) -> dict[str, float]:
    """Return the mean figure of each bar that the file of a table has."""
    found = Results(path).found if path.exists() else {}
    values: dict[str, list[float]] = {}
    for key, scores in found.items():
        label = key.partition("/")[0]
        bar = "max-entropy" if label == f"max-entropy, {epsilon:g}" else label
        if bar in BARS:
            values.setdefault(bar, []).append(scores[FIGURE])
    return {bar: statistics.fmean(some) for bar, some in values.items()}


def draw(tables: dict[str, dict[str, float]], epsilon: float, out: Path) -> None:
    """Draw a group of bars for each table."""
    figure, axis = plt.subplots(figsize=(1.6 * len(tables) + 2, 4))
    places, width = np.arange(len(tables)), 0.8 / len(BARS)
    for i, (bar, (label, colour)) in enumerate(BARS.items()):
        heights = [bars.get(bar, np.nan) for bars in tables.values()]
        axis.bar(places + (i - (len(BARS) - 1) / 2) * width, heights, width, label=label.format(epsilon), color=colour)
    axis.set_xticks(places, list(tables), fontsize=9)
    axis.set_ylabel("mean 2-way total variation")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=9, ncols=3, frameon=False, loc="upper left", bbox_to_anchor=(0, 1.18))
    figure.tight_layout()
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what dependence_tables.py --out wrote")
    parser.add_argument("--validate", action="store_true", help="draw figures of training rows")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    ending = "_validation.jsonl" if arguments.validate else ".jsonl"
    tables = {name: means(arguments.folder / f"{name}{ending}", arguments.epsilon) for name in CASES}
    tables = {name: bars for name, bars in tables.items() if bars}
    if not tables:
        sys.exit(f"Expected figures of tables in {arguments.folder}, got none. Run dependence_tables.py --out first.")
    draw(tables, arguments.epsilon, arguments.out)


if __name__ == "__main__":
    main()
