"""What the descent adds to P3GM as its share of the budget grows, at ε = 1 and δ = 1e-5.

The decoder starts as the inverse projection, so that a share of nothing is a model in closed form. The other stages
keep their proportions. Beside it `max-entropy`. Fitted on two thirds of the training rows (50,000 training images) and
scored on the rest; held-out rows and test images are not read.

    pip install -c constraints.txt '.[papers]'
    python benchmarks/p3gm_shares.py DATA [--runs 2] [--out FILE.json] [--picture FILE.png]

None of these figures is private.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import adult
import matplotlib as mpl
import numpy as np
from images import LABELS, VALIDATION_FROM, accuracy

import sfumato
from sfumato.columns.kinds import Categorical, Image
from sfumato.evaluate.utility import classifier_scores
from sfumato.methods.p3gm.settings import Shares

mpl.use("Agg")
import matplotlib.pyplot as plt

DELTA = 1e-5
SHARES = (0.02, 0.1, 0.2, 0.3, 0.5, 0.8)
DATA = ("adult", "mnist")


def synthesizer(share: float | None, data: str) -> Any:
    """Return P3GM with this share for its decoder; `max-entropy` for None."""
    if share is None:
        return sfumato.MaxEntropy(epsilon=1.0, delta=DELTA)
    default = Shares()
    images = data == "mnist"  # no marginals: their share is nobody's
    closed = default.centre + default.moment + default.mixture + (0 if images else default.marginals)
    scale = (1 - share) / closed
    shares = Shares(
        marginals=1e-6 if images else default.marginals * scale,
        centre=default.centre * scale,
        moment=default.moment * scale,
        mixture=default.mixture * scale - 1e-5,
    )
    return sfumato.P3GM(epsilon=1.0, delta=DELTA, batch_size=300 if images else 200, noise=shares)


def adult_score(chosen: Any, folder: Path, _: int) -> float:
    """Fit once; mean AUROC of four classifiers on training rows kept out."""
    train, kept = adult.read(folder / "adult.parquet", validate=True)
    made = chosen.fit(train, schema=adult.SCHEMA, target=adult.TARGET).sample(len(train))
    return float(
        classifier_scores(made, kept, schema=adult.SCHEMA, target=adult.TARGET, positive=adult.POSITIVE)["auroc"]
    )


def mnist_score(chosen: Any, folder: Path, seed: int) -> float:
    """Fit once; accuracy of the network after three epochs on training images kept out."""
    stored = np.load(folder / "mnist.npz")
    x, y = stored["x_train"], stored["y_train"]
    columns = {"x": Image(shape=x.shape[1:], dtype="uint8", lower=0, upper=255), "y": Categorical(categories=LABELS)}
    fitted = {"x": x[:VALIDATION_FROM], "y": y[:VALIDATION_FROM].astype(str)}
    made = chosen.fit(fitted, schema=sfumato.Schema(columns=columns, rows=VALIDATION_FROM)).sample(30_000)
    kept = x[VALIDATION_FROM:], y[VALIDATION_FROM:]
    return accuracy(made["x"], made["y"].astype(int), *kept, epochs=3, batch=128, seed=seed)[-1]


SCORES = {"adult": adult_score, "mnist": mnist_score}
LABELS_OF = {"adult": ("Adult", "AUROC of four classifiers"), "mnist": ("MNIST", "accuracy of a network")}


def draw(found: dict[str, list[float]], path: Path) -> None:
    """Save score against share."""
    figure, axes = plt.subplots(1, len(DATA), figsize=(9, 3.6), layout="constrained")
    for panel, data in zip(axes, DATA, strict=True):
        cells = [found[f"{data} {share}"] for share in SHARES]
        middle = [float(np.mean(cell)) for cell in cells]
        low, high = [min(cell) for cell in cells], [max(cell) for cell in cells]
        panel.fill_between(SHARES, low, high, alpha=0.25, linewidth=0)
        panel.plot(SHARES, middle, "o-", markersize=4, label="P3GM")
        panel.axhline(float(np.mean(found[f"{data} None"])), color="black", linestyle="--", label="max-entropy")
        panel.set(title=LABELS_OF[data][0], xlabel="share of the budget for the descent", ylabel=LABELS_OF[data][1])
        panel.grid(alpha=0.3)
        panel.legend(loc="lower left")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run what is missing, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("p3gm_shares.json"))
    parser.add_argument("--picture", type=Path, default=Path("p3gm_shares.png"))
    arguments = parser.parse_args()
    found: dict[str, list[float]] = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    for run in range(arguments.runs):
        for data in DATA:
            for share in (None, *SHARES):
                cell = found.setdefault(f"{data} {share}", [])
                if len(cell) <= run:
                    cell.append(SCORES[data](synthesizer(share, data), arguments.data, run))
                    arguments.out.write_text(json.dumps(found, indent=1))
                    print(data, share, round(cell[-1], 4), flush=True)
        draw(found, arguments.picture)
    print("Made from real records without noise: these figures are NOT private.")


if __name__ == "__main__":
    main()
