"""Figure 8: Adult, as in the paper, or MNIST, by the encoder's share of the budget; ε = 1, the authors' settings.

    python papers/p3gm/figure_8.py --data FOLDER [--of adult] [--shares 0.1 0.3 0.5] [--runs 3]

The encoder is all before the decoder's descent: a table's marginals, the mean record, the axes and the mixture, in the
library's own proportions. Shares are of the squared budget, 1/σ², which is what adds up. Adult: fitted to two thirds of
the training rows, AUROC of four classifiers on the others. MNIST: fitted to 50,000 training images, accuracy on the
others of the network of Table VII after ten epochs. Held-out rows and test images are not read.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pictures
from cells import DELTA, p3gm, parser, read
from jobs import Cell, Limits, Results, run_cells

from sfumato.methods.p3gm.recipe import P3GM
from sfumato.methods.p3gm.settings import Shares

SHARES = (0.05, 0.1, 0.3, 0.5, 0.8)
_NOTHING = 1e-6  # of marginals, which images have none of
MEASURES = {"adult": "auroc", "mnist": "accuracy"}


def synthesizer(data: str, share: float, n_public: int) -> P3GM:
    """Return the released settings at ε = 1 with this share for the encoder."""
    default = Shares()
    marginals = default.marginals if data == "adult" else _NOTHING
    scale = (share - _NOTHING) / (marginals + default.centre + default.moment + default.mixture)
    noise = Shares(
        marginals=marginals * scale if data == "adult" else _NOTHING,
        centre=default.centre * scale,
        moment=default.moment * scale,
        mixture=default.mixture * scale,
    )
    return replace(P3GM.as_released(data, n_public=n_public, delta=DELTA), epsilon=1.0, noise=noise)


def cell(folder: Path, data: str, share: float, run: int) -> dict[str, Any]:
    """Fit once, and score."""
    if data == "adult":
        rows = p3gm.adult.SCHEMA.rows
        return p3gm.table_run(folder, data, synthesizer(data, share, rows), validate=True)
    images = pictures.Pictures(folder, data, validate=True)
    release = synthesizer(data, share, len(images.y)).fit(images.records, schema=images.schema)
    return {**images.taught_by(release, seed=run), "epsilon": release.certificate.epsilon}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--of", default="adult", choices=MEASURES)
    arguments.add_argument("--shares", nargs="+", type=float, default=SHARES)
    options = arguments.parse_args()
    data, measure = options.of, MEASURES[options.of]
    results = Results(options.out / f"figure_8{'' if data == 'mnist' else '_' + data}.jsonl")
    limits = Limits(seconds=60 * options.minutes, gib=8)
    cells = {
        f"{share:g} | {run}": Cell(cell, (read(options), data, share, run), limits)
        for run in range(options.runs)
        for share in options.shares
    }
    points: dict[str, list[float]] = defaultdict(list)
    for key, value in run_cells(results, cells).items():
        if measure in value:
            points[key.split(" | ")[0]].append(round(value[measure], 4))
    means = {share: round(float(np.mean(found)), 4) for share, found in points.items()}
    name = "figure 8" if data == "mnist" else f"figure 8 {data}"
    results.note(name, {"P3GM": means} if data == "mnist" else dict(points))
    line = {float(share): score for share, score in means.items()}
    pictures.curve({"P3GM": line}, options.out / f"figure_8_{data}.png", x="share of the encoder", y=measure)


if __name__ == "__main__":
    main()
