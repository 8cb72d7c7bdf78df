"""Figure 2 and Table VII: samples of MNIST (or Fashion-MNIST), and the accuracy of a network that they teach.

    python papers/p3gm/figure_2.py --data FOLDER [--images mnist] [--methods best max-entropy] [--runs 1] [--validate]

ε = 1 but for published settings, which have their own, and "VAE (no noise)". A row per label.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pictures
from cells import DELTA, NAMES, p3gm, parser, read
from jobs import Cell, Limits, Results, run_cells

import sfumato

METHODS = ("plain vae", "vae", "released", "best", "max-entropy")


def cell(folder: Path, images: str, method: str, run: int, validate: bool, shown: Path | None) -> dict[str, Any]:
    """Fit once, keep a few samples, and teach the network."""
    data = pictures.Pictures(folder, images, validate=validate)
    synthesizer = (
        sfumato.MaxEntropy(epsilon=1.0, delta=DELTA)
        if method == "max-entropy"
        else p3gm.synthesizer(method, images, len(data.y))
    )
    release = synthesizer.fit(data.records, schema=data.schema)
    if shown is not None:
        made = release.sample(500)
        np.savez_compressed(shown, x=made["x"], y=made["y"].astype(int))
    return {**data.taught_by(release, seed=run), "epsilon": release.certificate.epsilon}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--images", default="mnist", choices=p3gm.IMAGES)
    arguments.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    options = arguments.parse_args()
    name = f"figure_2_{options.images}_{'validation' if options.validate else 'test'}"
    results = Results(options.out / f"{name}.jsonl")
    limits = Limits(seconds=60 * options.minutes, gib=8)
    shown = {method: options.out / f"{name}_{method.replace(' ', '_')}.npz" for method in options.methods}
    cells = {
        f"{method} | {run}": Cell(
            cell,
            (read(options), options.images, method, run, options.validate, None if run else shown[method]),
            limits,
        )
        for run in range(options.runs)
        for method in options.methods
    }
    results.note("table VII", run_cells(results, cells))
    columns = {}
    for method, path in shown.items():
        if path.exists():
            with np.load(path) as stored:
                columns[NAMES[method]] = stored["x"], stored["y"]
    pictures.sheet(columns, options.out / f"{name}.png")


if __name__ == "__main__":
    main()
