"""DPMix as printed: its two samplings, and its network on what they make, MNIST.

    python papers/dpmix/as_published.py --data FOLDER [--cells subsets:10:64 …] [--epochs 50] [--validate]

A cell is sampling:ε:ℓ, T = n, δ = 1/n, one standard deviation of noise on pixels and labels. Subsets: a mixture
averages ℓ records drawn without replacement; the noise is what Theorem 1 asks for, with the exponent of its proof, as
the printed one is unsound at ℓ = 1 and vacuous above. Fixed: every record joins ℓ mixtures drawn at random; the noise
is what Theorem 3 asks for, which the paper claims of subsets too, where it can be false. Beside the printed ε stands
the true one, of replacing one record.

Training is the paper's: 50 epochs of batches of 8, an hour of a core a cell. `--epochs` stops sooner. The paper reads
off the epoch that is best on real images and chooses ℓ so: its figures are NOT PRIVATE. Here all epochs are shown, and
the last is the figure. What this script makes is not private either: noise has a seed.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from dp_accounting import gaussian_mechanism
from mixed import CLASSES, FEATURES, PUBLISHED, Images, arguments, published_mixtures, score
from published import squared_distance, theorem_1, theorem_3
from scipy import sparse

from sfumato.privacy.accounting import account
from sfumato.privacy.plan import Plan, Stage, Subset

sys.path.insert(0, str(Path(__file__).parents[1]))
from jobs import Results

CELLS = ("subsets:inf:64", "subsets:10:64", "subsets:20:64", "fixed:10:64")
LABEL_SQUARED = 2  # of two one-hot labels; the paper takes the number of classes
INTERVAL = 1e-3
NOT_PRIVATE = (
    "NOT PRIVATE: noise has a seed, and figures are of real images; the paper's epoch and ℓ are chosen on them."
)


def fixed_noise(epsilon: float, degree: int, n: int, delta: float) -> float:
    """Return σ at which Theorem 3 gives ε."""
    low, high = 1e-4, 100.0
    while high > 1.0005 * low:
        middle = math.sqrt(low * high)
        squared = squared_distance(FEATURES, CLASSES, middle, middle)
        low, high = (middle, high) if theorem_3(squared, degree, n, n, delta) > epsilon else (low, middle)
    return high


def accounts(sampling: str, sigma: float, degree: int, n: int, delta: float) -> dict[str, float]:
    """Return the printed ε of a noise, and the true one, of replacing one record."""
    squared = squared_distance(FEATURES, CLASSES, sigma, sigma)
    distance = math.sqrt(FEATURES + LABEL_SQUARED) / (degree * sigma)
    if sampling == "fixed":  # a record is in ℓ mixtures: one Gaussian
        true = float(gaussian_mechanism.get_epsilon_gaussian(1 / (distance * math.sqrt(degree)), delta))
        return {"Theorem 3": theorem_3(squared, degree, n, n, delta), "true": true}
    stage = Stage(name="m", noise_multiplier=1 / distance, replace_distance=1.0, subset=Subset(degree, n), count=n)
    return {
        "Theorem 1, corrected": theorem_1(squared, degree, n, n, delta),
        "true": account(Plan([stage]), delta, interval=INTERVAL).epsilon,
    }


def fixed_mixtures(
    rows: np.ndarray, labels: np.ndarray, degree: int, sigma: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return T = n mixtures: every record joins ℓ of them, drawn without replacement; the divisor is ℓ."""
    n, rng = len(rows), np.random.default_rng(seed)
    joined = np.concatenate([rng.choice(n, degree, replace=False, shuffle=False) for _ in range(n)])
    members = np.repeat(np.arange(n), degree)
    matrix = sparse.csr_array((np.full(len(joined), 1 / degree, np.float32), (joined, members)), (n, n))
    made = [matrix @ values for values in (rows, labels)]
    return tuple(values + sigma * rng.standard_normal(values.shape, np.float32) for values in made)


def mixtures(images: Images, sampling: str, epsilon: float | None, degree: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return mixtures of images, their labels, and σ."""
    n = len(images.x)
    if sampling == "subsets":
        return published_mixtures(images, degree, epsilon, seed=1)
    sigma = 0.0 if epsilon is None else fixed_noise(epsilon, degree, n, 1 / n)
    rows = images.x.reshape(n, -1).astype(np.float32) / 255
    x, y = fixed_mixtures(rows, np.eye(CLASSES, dtype=np.float32)[images.y], degree, sigma, 1)
    return x.reshape(n, 28, 28), y, sigma


def run(images: Images, sampling: str, epsilon: float | None, degree: int, epochs: int) -> dict[str, object]:
    """Mix, train, and return the accuracy after each epoch, with the accounts of the noise."""
    n = len(images.x)
    x, y, sigma = mixtures(images, sampling, epsilon, degree)
    found = score(images, x, y, training=replace(PUBLISHED, epochs=epochs), watch=True)
    epsilons = {} if epsilon is None else accounts(sampling, sigma, degree, n, 1 / n)
    return {
        "accuracy by epoch": [round(value, 4) for value in found],
        "sigma": round(sigma, 5),
        "epsilon": {name: round(value, 3) for name, value in epsilons.items()},
    }


def main() -> None:
    """Run what is missing, and print."""
    parser = arguments(__doc__)
    parser.add_argument("--cells", nargs="*", default=CELLS)
    parser.add_argument("--epochs", type=int, default=PUBLISHED.epochs)
    options = parser.parse_args()
    images = Images(options.data, "mnist", validate=options.validate)
    results = Results(options.out / f"as_published{'-validation' if options.validate else ''}.jsonl")
    found = {}
    for cell in options.cells:
        sampling, text, degree = cell.split(":")
        epsilon = None if text == "inf" else float(text)
        found[cell] = results.get(
            f"{cell}, {options.epochs} epochs",
            lambda s=sampling, e=epsilon, d=int(degree): run(images, s, e, d, options.epochs),
        )
    print(NOT_PRIVATE)
    results.note("as published", {"private": False, "found": found})


if __name__ == "__main__":
    main()
