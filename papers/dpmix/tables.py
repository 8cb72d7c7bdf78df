"""Tables I and II and Fig. 2: accuracy on single images of what is trained on mixtures.

    python papers/dpmix/tables.py --data FOLDER [--images mnist] [--network linear] [--validate]

`--network linear` is least squares on noise-corrected moments, seconds a cell; `cnn` is the published network with the
faster schedule of `mixed.py`, minutes a cell; `published` is its published schedule, hours. A stopped run goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from baselines import local_perturbation, random_projection
from mixed import FAST, PUBLISHED, Images, Linear, arguments, our_mixtures, published_mixtures, score

sys.path.insert(0, str(Path(__file__).parents[1]))
from jobs import Results

DEGREES = (4, 8, 16, 32, 64, 128, 256, 512)
CLIP_NORM = 28 / 3


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", default="mnist", choices=("mnist", "fashion_mnist"))
    parser.add_argument("--network", default="linear", choices=("linear", "cnn", "published"))
    parser.add_argument("--degrees", type=int, nargs="*", default=DEGREES)
    parser.add_argument("--cells", nargs="*", default=["published:inf", "published:20", "published:10", "ours:20",
                        "ours:10", "ours:3", "ours:1", "baselines"])  # fmt: skip
    options = parser.parse_args()
    images = Images(options.data, options.images, validate=options.validate)
    suffix = "-validation" if options.validate else ""
    results = Results(options.out / f"{options.images}-{options.network}{suffix}.jsonl")
    for cell in options.cells:
        if cell == "baselines":
            for epsilon in (20.0, 10.0):
                baselines(images, results, epsilon)
            continue
        noise, _, text = cell.partition(":")
        epsilon = None if text == "inf" else float(text)
        for degree in options.degrees:
            key = f"{noise} epsilon={text} degree={degree}"
            print(key, results.get(key, lambda: one(images, noise, epsilon, degree, options.network)), flush=True)  # noqa: B023


def one(images: Images, noise: str, epsilon: float | None, degree: int, network: str) -> dict[str, float]:
    n = len(images.x)
    if noise == "published":
        x, y, sigma = published_mixtures(images, degree, epsilon, seed=1)
    else:
        # at the published ε the published δ, for comparison; elsewhere the default
        delta = 1 / n if epsilon is None or epsilon >= 10 else min(1e-5, 0.1 / n)
        x, y, sigma = our_mixtures(images, degree, epsilon, 1, delta=delta)
    if network == "linear":
        found = images.accuracy(Linear(x, y, sigma))
    else:
        found = score(images, x, y, training=FAST if network == "cnn" else PUBLISHED)[-1]
    return {"accuracy": round(found, 4), "sigma": round(sigma, 5)}


def baselines(images: Images, results: Results, epsilon: float) -> None:
    n = len(images.x)
    rows = images.x.reshape(n, -1) / 255
    settings = {"epsilon": epsilon, "delta": 1 / n, "clip_norm": CLIP_NORM, "seed": 1}

    def local() -> dict[str, float]:
        x, y, sigma = local_perturbation(rows, images.y, **settings)
        return {"accuracy": round(images.accuracy(Linear(x, y, sigma)), 4), "sigma": round(sigma, 4)}

    def projected(width: int) -> dict[str, float]:
        x, y, sigma, matrix = random_projection(rows, images.y, width=width, **settings)
        guesses = Linear(x, y, sigma).predict(images.test_x.reshape(len(images.test_x), -1) / 255 @ matrix.T)
        return {"accuracy": round(float(np.mean(guesses == images.test_y)), 4), "sigma": round(sigma, 4)}

    print(f"local {epsilon:g}", results.get(f"local perturbation epsilon={epsilon:g}", local), flush=True)
    for width in (50, 100, 200, 400):
        key = f"random projection {width} epsilon={epsilon:g}"
        print(key, results.get(key, lambda: projected(width)), flush=True)  # noqa: B023


if __name__ == "__main__":
    main()
