"""Figure 7 (c, d): score against epochs, of MNIST (accuracy) and Credit (AUROC), for P3GM, P3GM(AE) and DP-VAE.

    python papers/p3gm/figure_7.py --data FOLDER [--only credit] [--epochs 1 3 10] [--runs 1]

Noise of a step as in the authors' code (MNIST 1.27, DP-VAE 1.2; Credit 2.7, DP-VAE 2.5; random start on Credit), so
that ε grows with the epochs; each point is a fit of its own. A third of the training rows (the last 10,000 training
images) is scored: held-out rows and test images are not read. Losses (a, b) are in benchmarks/p3gm_curves.py.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pictures
from cells import DELTA, parser, peer_tables, read, split
from jobs import Cell, Limits, Results, run_cells

import sfumato
from sfumato.evaluate.utility import classifier_scores
from sfumato.fitting.purposes import Facts
from sfumato.methods.p3gm.recipe import P3GM
from sfumato.methods.p3gm.settings import Random, StandardNormal
from sfumato.privacy.accounting import account
from sfumato.privacy.plan import Plan

EPOCHS = {"mnist": (1, 2, 4, 7, 10), "credit": (1, 3, 10, 20, 30)}
NOISE = {"mnist": (1.27, 1.2, 300), "credit": (2.7, 2.5, 100)}
METHODS = ("P3GM", "P3GM(AE)", "DP-VAE")


def synthesizer(method: str, data: str, epochs: int, schema: sfumato.Schema, target: str | None) -> Any:
    """The published noise for so many epochs, at its true ε."""
    rows = schema.rows
    assert rows is not None
    step, vae_step, batch = NOISE[data]
    shared: dict[str, Any] = {"delta": DELTA, "epochs": float(epochs), "batch_size": batch}
    if method == "DP-VAE":
        low, high = 0.02, 50.0  # its noise follows from ε: the ε of this noise, by bisection
        for _ in range(12):
            middle = (low * high) ** 0.5
            made = P3GM(epsilon=middle, prior=StandardNormal(), heads="squared", draw=False, **shared)
            plan = made.plan(schema, target=target, n_public=rows)
            low, high = (middle, high) if plan.stages[-1].noise_multiplier > vae_step else (low, middle)
        return P3GM(epsilon=high, prior=StandardNormal(), heads="squared", draw=False, **shared)
    published = P3GM.as_released(data, n_public=rows, delta=DELTA)
    made = replace(published, noise=replace(published.noise, decoder=step, moment=10.0), **shared)
    made = replace(made, variance=method == "P3GM", start=published.start if data == "mnist" else Random())
    plan = Plan(made.stages(Facts(schema, target, rows)))
    return replace(made, epsilon=account(plan, DELTA).epsilon)


def cell(folder: Path, data: str, method: str, epochs: int, run: int) -> dict[str, Any]:
    """Fit once, and score."""
    if data == "mnist":
        images = pictures.Pictures(folder, data, validate=True)
        release = synthesizer(method, data, epochs, images.schema, None).fit(images.records, schema=images.schema)
        return {"score": images.taught_by(release, seed=run)["accuracy"], "epsilon": release.certificate.epsilon}
    table = peer_tables.TABLES[data](folder)
    train, kept = split(split(table.frame, share=0.1, seed=0)[0], share=1 / 3, seed=1)
    release = synthesizer(method, data, epochs, table.schema, table.target).fit(
        train, schema=table.schema, target=table.target
    )
    made = release.sample(len(train))
    scores = classifier_scores(made, kept, schema=table.schema, target=table.target, positive=table.positive)
    return {"score": scores["auroc"], "auprc": scores["auprc"], "epsilon": release.certificate.epsilon}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--only", nargs="+", choices=EPOCHS, default=list(EPOCHS))
    arguments.add_argument("--epochs", nargs="+", type=int)
    options = arguments.parse_args()
    results = Results(options.out / "figure_7.jsonl")
    limits = Limits(seconds=60 * options.minutes, gib=8)
    for data in options.only:
        cells = {
            f"{data} | {method} | {epochs} | {run}": Cell(cell, (read(options), data, method, epochs, run), limits)
            for run in range(options.runs)
            for method in METHODS
            for epochs in options.epochs or EPOCHS[data]
        }
        found: dict[str, dict[int, list[tuple[float, float]]]] = {method: defaultdict(list) for method in METHODS}
        for key, value in run_cells(results, cells).items():
            _, method, epochs, _ = key.split(" | ")
            if "score" in value:
                found[method][int(epochs)].append((value["score"], value["epsilon"]))
        means = {
            m: {e: np.mean(pairs, axis=0).round(4).tolist() for e, pairs in line.items()} for m, line in found.items()
        }
        results.note(f"figure 7 {data}", means)
        lines = {method: {e: pair[0] for e, pair in line.items()} for method, line in means.items()}
        score = "accuracy" if data == "mnist" else "AUROC"
        pictures.curve(lines, options.out / f"figure_7_{data}.png", x="epochs", y=score)


if __name__ == "__main__":
    main()
