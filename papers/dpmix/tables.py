"""Tables I and II: accuracy on single images of what is trained on mixtures.

    python papers/dpmix/tables.py --data FOLDER [--images mnist] [--network linear] [--cells ours:10:64 …] [--validate]

A cell is noise:ε:ℓ, or `baselines`. `--network discriminant` is `discriminant.py`, `unfiltered` the same without its
filter, `linear` least squares on noise-corrected moments: half a minute a cell, most of it mixing. `drawn` is the
published network on images drawn from the mixtures' moments, a minute; `cnn` the same network on the mixtures, with the
faster schedule of `mixed.py`, minutes; `published` its published schedule, most of an hour. A stopped run goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from baselines import local_perturbation, random_projection
from discriminant import Discriminant, Shrinkage
from mixed import (
    FAST,
    PUBLISHED,
    Images,
    Linear,
    arguments,
    delta_of,
    our_mixtures,
    published_mixtures,
    score,
    score_drawn,
)

sys.path.insert(0, str(Path(__file__).parents[1]))
from image_data import NAMES
from jobs import Results

# ℓ of the published noise was chosen on the held-out tenth; of ours by AutoDegree
CELLS = ("published:inf:64", "published:20:128", "published:10:128", "published:10:64", "ours:20:64", "ours:10:64",
         "ours:3:32", "ours:1:16", "baselines")  # fmt: skip
UNFILTERED = Shrinkage(cutoff=0)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", default="mnist", choices=NAMES)
    networks = ("linear", "discriminant", "unfiltered", "drawn", "cnn", "published")
    parser.add_argument("--network", default="discriminant", choices=networks)
    parser.add_argument("--cells", nargs="*", default=CELLS)
    options = parser.parse_args()
    images = Images(options.data, options.images, validate=options.validate)
    suffix = "-validation" if options.validate else ""
    results = Results(options.out / f"{options.images}-{options.network}{suffix}.jsonl")
    for cell in options.cells:
        if cell == "baselines":
            for epsilon in (20.0, 10.0):
                baselines(images, results, epsilon, options.network)
            continue
        noise, text, degree = cell.split(":")
        epsilon = None if text == "inf" else float(text)
        key = f"{noise} epsilon={text} degree={degree}"
        print(key, results.get(key, lambda: one(images, noise, epsilon, int(degree), options.network)), flush=True)  # noqa: B023


def one(images: Images, noise: str, epsilon: float | None, degree: int, network: str) -> dict[str, float]:
    n = len(images.x)
    if noise == "published":
        x, y, sigma = published_mixtures(images, degree, epsilon, seed=1)
    else:
        x, y, sigma = our_mixtures(images, degree, epsilon, 1, delta=delta_of(n, epsilon))
    if network in ("linear", "discriminant", "unfiltered"):
        found = images.accuracy(model(network, x, y, sigma, degree, poisson=noise == "ours"))
    elif network == "drawn":
        found = score_drawn(images, x, y, sigma, degree, poisson=noise == "ours")
    else:
        found = score(images, x, y, training=FAST if network == "cnn" else PUBLISHED)[-1]
    return {"accuracy": round(found, 4), "sigma": round(sigma, 5)}


def model(network: str, x: np.ndarray, y: np.ndarray, sigma: float, degree: int, *, poisson: bool):
    if network == "linear":
        return Linear(x, y, sigma)
    shrinkage = UNFILTERED if network == "unfiltered" else None
    return Discriminant(x, y, sigma, degree, poisson=poisson, shrinkage=shrinkage)


def baselines(images: Images, results: Results, epsilon: float, network: str) -> None:
    """Projections are no pictures, so no filter suits them."""
    n = len(images.x)
    rows = images.x.reshape(n, -1) / 255
    settings = {"epsilon": epsilon, "delta": 1 / n, "clip_norm": images.clip_norm, "seed": 1}

    def local() -> dict[str, float]:
        x, y, sigma = local_perturbation(rows, images.y, **settings)
        made = model(network, x.reshape(n, *images.shape), y, sigma, 1, poisson=False)
        return {"accuracy": round(images.accuracy(made), 4), "sigma": round(sigma, 4)}

    def projected(width: int) -> dict[str, float]:
        x, y, sigma, matrix = random_projection(rows, images.y, width=width, **settings)
        plain = "linear" if network == "linear" else "unfiltered"
        made = model(plain, x.reshape(n, width, 1), y, sigma, 1, poisson=False)
        guesses = made.predict(images.test_x.reshape(len(images.test_x), -1) / 255 @ matrix.T)
        return {"accuracy": round(float(np.mean(guesses == images.test_y)), 4), "sigma": round(sigma, 4)}

    print(f"local {epsilon:g}", results.get(f"local perturbation epsilon={epsilon:g}", local), flush=True)
    for width in (50, 100, 200, 400):
        key = f"random projection {width} epsilon={epsilon:g}"
        print(key, results.get(key, lambda: projected(width)), flush=True)  # noqa: B023


if __name__ == "__main__":
    main()
