"""Figure 8: accuracy on MNIST against the encoder's share of the budget, ε = 1, settings of the authors' code.

    python papers/p3gm/figure_8.py --data FOLDER [--shares 0.1 0.3 0.5] [--runs 1]

The encoder is the mean record, the axes and the mixture, in the library's own proportions; the decoder's descent has
the rest. Shares are of the squared budget, 1/σ², which is what adds up. Fitted to 50,000 training images and scored on
the others by the network of Table VII after ten epochs: test images are not read.
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

from sfumato.methods.p3gm.recipe import P3GM
from sfumato.methods.p3gm.settings import Shares

SHARES = (0.05, 0.1, 0.3, 0.5, 0.8)
_NOTHING = 1e-6  # of marginals, which images have none of


def synthesizer(share: float, n_public: int) -> P3GM:
    """Return the released settings at ε = 1 with this share for the encoder."""
    default = Shares()
    scale = (share - _NOTHING) / (default.centre + default.moment + default.mixture)
    noise = Shares(
        marginals=_NOTHING,
        centre=default.centre * scale,
        moment=default.moment * scale,
        mixture=default.mixture * scale,
    )
    return replace(P3GM.as_released("mnist", n_public=n_public, delta=DELTA), epsilon=1.0, noise=noise)


def cell(folder: Path, share: float, run: int) -> dict[str, Any]:
    """Fit once, and teach the network."""
    images = pictures.Pictures(folder, "mnist", validate=True)
    release = synthesizer(share, len(images.y)).fit(images.records, schema=images.schema)
    return {**images.taught_by(release, seed=run), "epsilon": release.certificate.epsilon}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--shares", nargs="+", type=float, default=SHARES)
    options = arguments.parse_args()
    results = Results(options.out / "figure_8.jsonl")
    limits = Limits(seconds=60 * options.minutes, gib=8)
    cells = {
        f"{share:g} | {run}": Cell(cell, (read(options), share, run), limits)
        for run in range(options.runs)
        for share in options.shares
    }
    points: dict[str, list[float]] = defaultdict(list)
    for key, value in run_cells(results, cells).items():
        if "accuracy" in value:
            points[key.split(" | ")[0]].append(value["accuracy"])
    means = {share: round(float(np.mean(found)), 4) for share, found in points.items()}
    results.note("figure 8", {"P3GM": means})
    line = {float(share): accuracy for share, accuracy in means.items()}
    pictures.curve({"P3GM": line}, options.out / "figure_8.png", x="share of the encoder", y="accuracy")


if __name__ == "__main__":
    main()
