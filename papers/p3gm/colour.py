"""Images in colour: what methods that take `Image` columns teach the network of Table VII of CIFAR-10.

    python papers/p3gm/colour.py --data FOLDER [--methods max-entropy p3gm dpgm real] [--epsilons 1 10] [--runs 1]
        [--rows 50000] [--epochs 5] [--validate]

δ = 1e-5. The network is trained on as many samples as images were fitted, and scored on real test images after the last
epoch: not private. `--rows` fits the first so many images alone: a release of fewer records, which has more noise.
`training` is max-entropy for training; `real` trains on the images themselves, without privacy. Noise is secret.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cells import DELTA, parser, read
from jobs import Cell, Limits, Results, run_cells
from pictures import Pictures, accuracy

import sfumato
from sfumato.fitting.synthesizer import Synthesizer

METHODS: dict[str, Callable[[float], Synthesizer]] = {
    "max-entropy": lambda epsilon: sfumato.MaxEntropy(epsilon=epsilon, delta=DELTA),
    "training": lambda epsilon: sfumato.MaxEntropy(epsilon=epsilon, delta=DELTA, purpose=sfumato.Training()),
    "p3gm": lambda epsilon: sfumato.P3GM(epsilon=epsilon, delta=DELTA, epochs=1.0),
    "dpgm": lambda epsilon: sfumato.DPGM(epsilon=epsilon, delta=DELTA, epochs=1.0),
}
REAL = "real"


def cell(
    folder: Path, method: str, epsilon: float, run: int, rows: int, epochs: int, validate: bool, out: Path
) -> dict[str, Any]:
    """Fit once, and score."""
    images = Pictures(folder, "cifar10", validate=validate).first(rows)
    if method == REAL:
        found = accuracy(images.x, images.y, *images.test, epochs=epochs, batch=128, seed=run)
        return {"accuracy": found[-1], "accuracy_best_epoch": max(found)}
    release = METHODS[method](epsilon).fit(images.records, schema=images.schema)
    made = release.sample(100)
    np.savez_compressed(out / f"colour_{method}_{epsilon:g}.npz", x=made["x"], y=made["y"].astype(int))
    return {**images.taught_by(release, seed=run, epochs=epochs), "epsilon": release.certificate.epsilon}


def main() -> None:
    """Run what is missing, and print."""
    arguments = parser(__doc__)
    arguments.add_argument("--methods", nargs="+", choices=[*METHODS, REAL], default=["max-entropy", REAL])
    arguments.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 10.0])
    arguments.add_argument("--rows", type=int, default=50_000)
    arguments.add_argument("--epochs", type=int, default=5)
    arguments.set_defaults(runs=1)
    options = arguments.parse_args()
    results = Results(options.out / f"colour_{'validation' if options.validate else 'test'}.jsonl")
    limits = Limits(seconds=60 * options.minutes, gib=12)
    given = (options.rows, options.epochs, options.validate, options.out)
    cells = {
        f"{method} | {epsilon:g} | {options.rows} | {options.epochs} | {run}": Cell(
            cell, (read(options), method, epsilon, run, *given), limits
        )
        for run in range(options.runs)
        for method in options.methods
        for epsilon in ([0.0] if method == REAL else options.epsilons)
    }
    found = run_cells(results, cells)
    kept = ("accuracy", "accuracy_best_epoch", "epsilon", "status", "cpu_seconds", "peak_gib", "limit", "error")
    results.note("colour", {"runs": {key: {k: run[k] for k in kept if k in run} for key, run in found.items()}})


if __name__ == "__main__":
    main()
