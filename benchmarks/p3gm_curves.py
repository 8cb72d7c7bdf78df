"""How fast P3GM learns: reconstruction loss by epoch, as figure 7 of its paper, on records kept out of the fit.

P3GM, P3GM(AE), whose encoder has no variance, and DP-VAE, all of ten latents, squared error and a random start, at
ε = 1 and δ = 1e-5. A third of the training rows (the last 13,000 training images) is kept out and scored; held-out rows
and test images are not read.

    pip install -c constraints.txt '.[papers]'
    python benchmarks/p3gm_curves.py DATA [--epochs 10] [--out FILE.json] [--picture FILE.png]

None of these figures is private.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import adult
import matplotlib as mpl
import numpy as np
import torch
from images import LABELS, VALIDATION_FROM
from tables import TABLES

import sfumato
from sfumato.columns.kinds import Categorical, Image
from sfumato.data_ledger.journal import Progress
from sfumato.io.sources import open_source
from sfumato.methods.nets import sgd
from sfumato.methods.nets.autoencoder import Autoencoder
from sfumato.methods.p3gm.settings import Mixture, Random, StandardNormal
from sfumato.records.private import PrivateData

mpl.use("Agg")
import matplotlib.pyplot as plt

DELTA, LATENTS = 1e-5, 10
BATCH = {"mnist": 300, "credit": 100}
TITLES = {"mnist": "MNIST", "credit": "Credit"}


def methods(data: str, epochs: float) -> dict[str, sfumato.P3GM]:
    """Return what is compared."""
    shared: dict[str, Any] = {
        "epsilon": 1.0,
        "delta": DELTA,
        "batch_size": BATCH[data],
        "epochs": epochs,
        "latent_dim": LATENTS,
        "heads": "squared",
        "draw": False,
    }
    p3gm = {"prior": Mixture(n_components=3), "start": Random(), **shared}
    return {
        "P3GM": sfumato.P3GM(**p3gm, variance=True),
        "P3GM(AE)": sfumato.P3GM(**p3gm, variance=False),
        "DP-VAE": sfumato.P3GM(prior=StandardNormal(), **shared),
    }


def load(folder: Path, data: str) -> tuple[Any, Any, sfumato.Schema, str | None]:
    """Return records to fit, records to score, their schema and target."""
    if data != "mnist":
        frame, schema, target = TABLES[data](folder)
        train, _ = adult.split(frame, share=0.1, seed=0)
        return (*adult.split(train, share=1 / 3, seed=1), schema, target)
    stored = np.load(folder / "mnist.npz")
    x, y = stored["x_train"], stored["y_train"].astype(str)
    columns = {"x": Image(shape=x.shape[1:], dtype="uint8", lower=0, upper=255), "y": Categorical(categories=LABELS)}
    schema = sfumato.Schema(columns=columns, rows=VALIDATION_FROM)
    kept = slice(VALIDATION_FROM, None)
    return {"x": x[:VALIDATION_FROM], "y": y[:VALIDATION_FROM]}, {"x": x[kept], "y": y[kept]}, schema, None


class Watch(Progress):
    """Scores the network after every epoch."""

    def __init__(self, score: Callable[[], float], steps: int) -> None:
        self.score, self.steps = score, steps
        self.curve = [score()]

    def done(self, step: int, last: bool, state: Callable[[], dict[str, np.ndarray]]) -> None:
        """Score if an epoch is over."""
        if step % self.steps == 0 or last:
            self.curve.append(self.score())


def curve(synthesizer: sfumato.P3GM, folder: Path, data: str) -> list[float]:
    """Fit, and return the loss at the start and after each epoch."""
    train, held, schema, target = load(folder, data)
    rows = schema.rows or len(train)
    watches: list[Watch] = []
    descend = sgd.descend

    def watched(gradients: sgd.Gradients, records: Any, encoder: Any, settings: Any, **others: Any) -> None:
        coded = list(PrivateData(open_source(held), schema).coded())
        x = torch.from_numpy(np.concatenate([encoder.encode(part) for part in coded]).astype(np.float32))
        network = gradients.network
        assert isinstance(network, Autoencoder)

        @torch.no_grad()
        def score() -> float:
            return float(network.output.losses(network.decoder(network.latent_means(x)), x).mean())

        watches.append(Watch(score, max(1, round(rows / synthesizer.batch_size))))
        descend(gradients, records, encoder, settings, **{**others, "progress": watches[-1]})

    sgd.descend = watched
    try:
        synthesizer.fit(train, schema=schema, target=target)
    finally:
        sgd.descend = descend
    return watches[0].curve


def draw(found: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Save the curves."""
    figure, axes = plt.subplots(1, len(found), figsize=(9, 3.6), layout="constrained")
    for panel, (data, curves) in zip(np.atleast_1d(axes), found.items(), strict=True):
        for style, (name, losses) in zip(("o-", "s--", "^:"), curves.items(), strict=True):
            panel.plot(range(1, len(losses)), losses[1:], style, markersize=4, label=name)
        panel.set(title=TITLES[data], xlabel="epochs", ylabel="squared error of a record kept out")
        panel.grid(alpha=0.3)
        panel.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run what is missing, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("p3gm_curves.json"))
    parser.add_argument("--picture", type=Path, default=Path("p3gm_curves.png"))
    arguments = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    for data in TITLES:
        for name, synthesizer in methods(data, arguments.epochs).items():
            curves = found.setdefault(data, {})
            if name not in curves:
                curves[name] = curve(synthesizer, arguments.data, data)
                arguments.out.write_text(json.dumps(found, indent=1))
            print(data, name, [round(loss, 3) for loss in curves[name]], flush=True)
    draw(found, arguments.picture)
    print("Made from real records without noise: these figures are NOT private.")


if __name__ == "__main__":
    main()
