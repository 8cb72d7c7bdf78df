"""Table I whole: accuracy on single test images at every ℓ, with the published noise and with ours.

    python papers/dpmix/table_1.py --data FOLDER [--images mnist] [--degrees 64 128] [--validate]

Mixtures of every ℓ are drawn once, subsets for the published noise and Poisson samples for ours, and each ε adds its
own noise to them: the law of a release, and several times as quick. The model is `discriminant.py`. A stopped run goes
on. No ℓ is chosen here: that of the published noise was on a held-out tenth, ours is what `AutoDegree` picks.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from discriminant import Discriminant
from mixed import Images, arguments, delta_of, our_mixtures, our_noise, published_mixtures, published_noise

sys.path.insert(0, str(Path(__file__).parents[1]))
from image_data import NAMES
from jobs import Results

DEGREES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
PUBLISHED, OURS = (None, 20.0, 10.0), (20.0, 10.0, 3.0, 1.0)
IN_COLOUR = (None, 30.0, 20.0), (30.0, 20.0, 10.0, 1.0)  # of CIFAR-10
Noises = dict[float | None, tuple[float, float]]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--images", default="mnist", choices=NAMES)
    parser.add_argument("--degrees", type=int, nargs="*", default=DEGREES)
    options = parser.parse_args()
    images = Images(options.data, options.images, validate=options.validate)
    suffix = "-validation" if options.validate else ""
    results = Results(options.out / f"{options.images}-table-1{suffix}.jsonl")
    for degree in options.degrees:
        print(degree, results.get(f"degree={degree}", lambda: row(images, degree)), flush=True)  # noqa: B023


def row(images: Images, degree: int) -> dict[str, dict[str, list[float]]]:
    """Accuracy and σ of a pixel, of each noise at each ε."""
    n, (theirs, ours) = len(images.x), IN_COLOUR if images.name == "cifar10" else (PUBLISHED, OURS)
    subsets = published_mixtures(images, degree, None, seed=1)[:2]
    noises: Noises = {e: published_noise(images, degree, e) for e in theirs}
    found = {"published": scores(images, *subsets, degree, noises, poisson=False)}
    samples = our_mixtures(images, degree, None, 1, delta=1 / n)[:2]
    noises = {e: our_noise(n, degree, e, delta_of(n, e), images.n_features) for e in ours}
    return found | {"ours": scores(images, *samples, degree, noises, poisson=True)}


def scores(
    images: Images, x: np.ndarray, y: np.ndarray, degree: int, noises: Noises, *, poisson: bool
) -> dict[str, list[float]]:
    """Accuracy and σ of a pixel by ε, from σ of pixels and of labels by ε."""
    found = {}
    for epsilon, (sigma_x, sigma_y) in noises.items():
        rng = np.random.default_rng(2)
        noisy = [
            clean + np.float32(sigma) * rng.standard_normal(clean.shape, np.float32) if sigma else clean
            for clean, sigma in ((x, sigma_x), (y, sigma_y))
        ]
        model = Discriminant(noisy[0], noisy[1], sigma_x, degree, poisson=poisson)
        found["inf" if epsilon is None else f"{epsilon:g}"] = [round(images.accuracy(model), 4), round(sigma_x, 5)]
    return found


if __name__ == "__main__":
    main()
