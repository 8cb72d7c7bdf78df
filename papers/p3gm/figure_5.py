"""Figure 5: accuracy on MNIST against the number of axes d', ε as given by the noise of the published run.

    python papers/p3gm/figure_5.py --data FOLDER [--axes 2 10 100] [--runs 1] [--validate]

The authors' code: steps at noise 1.1, 3 epochs of batches of 300, axes at noise 10; the mixture as released. Scored by
the network of Table VII after ten epochs. With --validate it is fitted to 50,000 training images, scored on the others.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pictures
from cells import DELTA, parser, read
from jobs import Cell, Limits, Results, run_cells

from sfumato.fitting.purposes import Facts
from sfumato.methods.p3gm.recipe import P3GM
from sfumato.privacy.accounting import account
from sfumato.privacy.plan import Plan

AXES = (2, 5, 10, 50, 100, 500)


def synthesizer(axes: int, images: pictures.Pictures) -> P3GM:
    """The published run with so many axes, at the true ε of its noise."""
    published = P3GM.as_released("mnist", n_public=len(images.y), delta=DELTA)
    noise = replace(published.noise, decoder=1.1, moment=10.0)
    method = replace(published, latent_dim=axes, epochs=3.0, noise=noise)
    plan = Plan(method.stages(Facts(images.schema, None, len(images.y))))
    return replace(method, epsilon=account(plan, DELTA).epsilon)


def cell(folder: Path, axes: int, run: int, validate: bool) -> dict[str, Any]:
    """Fit once, and teach the network."""
    images = pictures.Pictures(folder, "mnist", validate=validate)
    release = synthesizer(axes, images).fit(images.records, schema=images.schema)
    return {**images.taught_by(release, seed=run), "epsilon": release.certificate.epsilon}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--axes", nargs="+", type=int, default=AXES)
    options = arguments.parse_args()
    kind = "validation" if options.validate else "test"
    results = Results(options.out / f"figure_5_{kind}.jsonl")
    limits = Limits(seconds=60 * options.minutes, gib=8)
    cells = {
        f"{axes} | {run}": Cell(cell, (read(options), axes, run, options.validate), limits)
        for run in range(options.runs)
        for axes in options.axes
    }
    points: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for key, value in run_cells(results, cells).items():
        if "accuracy" in value:
            points[int(key.split(" | ")[0])].append((value["accuracy"], value["epsilon"]))
    means = {axes: np.mean(found, axis=0).round(4).tolist() for axes, found in points.items()}
    results.note("figure 5", means)
    line = {axes: accuracy for axes, (accuracy, _) in means.items()}
    pictures.curve({"P3GM": line}, options.out / f"figure_5_{kind}.png", x="axes d'", y="accuracy", log=True)


if __name__ == "__main__":
    main()
