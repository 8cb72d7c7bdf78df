"""DPMix as printed: its two samplings, and its network on what they make, MNIST.

    python papers/dpmix/as_published.py --data FOLDER [--cells unit:10:64 …] [--seeds 0 1] [--epochs 50] [--validate]
        [--images mnist] [--denoise] [--accounts]

A cell is sampling:ε:ℓ, T = n, δ = 1/n. Subsets: a mixture averages ℓ records drawn without replacement; the noise is
what Theorem 1 asks for, with the exponent of its proof, as the printed one is unsound at ℓ = 1 and vacuous above. It
fixes d_X/σ_X² + d_Y/σ_Y² alone, and the paper chooses σ_X and σ_Y, which it does not print. `subsets` has one for
both, of pixels and labels in [0, 1]; `unit` one for both where images and labels have norm at most 1, as the paper's
section II has them: images divided by the longest one's norm, so the distances are 1. Fixed: every record joins ℓ
mixtures drawn at random; the noise is what Theorem 3 asks for, which the paper claims of subsets too, where it can be
false. Beside the printed ε stands the true one, of replacing one record; two of non-negative entries and norm 1 are √2
apart, not 1.

Training is the paper's: 50 epochs of batches of 8, an hour of a core a cell. `--epochs` stops sooner. The paper reads
off the epoch that is best on real images and chooses ℓ so: its figures are NOT PRIVATE. Here all epochs are shown, and
the last is the figure. What this script makes is not private either: noise has a seed. `--accounts`: the noise and its
ε alone, nothing trained. `--denoise`: mixtures are blurred by a Gaussian of unit variance, as in a row of Table II. Its
baselines: local perturbation is ℓ = 1; `projection:ε:d` and `unit-projection:ε:d` are random projections to d values
with the printed noise, of pixels in [0, 1] and of images divided by the longest one's norm, in its fully connected
network.
"""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from baselines import printed_projection
from dp_accounting import gaussian_mechanism
from mixed import CLASSES, FEATURES, PUBLISHED, Images, arguments, published_mixtures, published_noise, score
from published import squared_distance, theorem_1, theorem_3
from scipy import ndimage, sparse

from sfumato.privacy.accounting import account
from sfumato.privacy.plan import Plan, Stage, Subset

sys.path.insert(0, str(Path(__file__).parents[1]))
from image_data import NAMES
from jobs import Results

CELLS = ("subsets:inf:64", "subsets:10:64", "subsets:20:64", "unit:10:64", "unit:20:64", "fixed:10:64")
LABEL_SQUARED = 2  # of two one-hot labels; the paper takes the number of classes
INTERVAL = 1e-3
NOT_PRIVATE = (
    "NOT PRIVATE: noise has a seed, and figures are of real images; the paper's epoch and ℓ are chosen on them."
)


def fixed_noise(epsilon: float, degree: int, n: int, delta: float, n_features: int = FEATURES) -> float:
    """Return σ at which Theorem 3 gives ε."""
    low, high = 1e-4, 100.0
    while high > 1.0005 * low:
        middle = math.sqrt(low * high)
        squared = squared_distance(n_features, CLASSES, middle, middle)
        low, high = (middle, high) if theorem_3(squared, degree, n, n, delta) > epsilon else (low, middle)
    return high


def accounts(
    sampling: str, sigma: float, degree: int, n: int, delta: float, n_features: int = FEATURES
) -> dict[str, float]:
    """Return the printed ε of a noise, and the true one, of replacing one record; σ is that of labels."""
    squared = 2 / sigma**2 if sampling == "unit" else squared_distance(n_features, CLASSES, sigma, sigma)
    distance = (2.0 if sampling == "unit" else math.sqrt(n_features + LABEL_SQUARED)) / (degree * sigma)
    if sampling == "fixed":  # a record is in ℓ mixtures: one Gaussian
        true = float(gaussian_mechanism.get_epsilon_gaussian(1 / (distance * math.sqrt(degree)), delta))
        return {"Theorem 3": theorem_3(squared, degree, n, n, delta), "true": true}
    found = {
        "Theorem 1, corrected": theorem_1(squared, degree, n, n, delta),
        "true": subsets_epsilon(distance, degree, n, delta),
    }
    if sampling == "unit":
        found["exact, the paper's distances"] = subsets_epsilon(math.sqrt(squared) / degree, degree, n, delta)
    return found


def subsets_epsilon(distance: float, degree: int, n: int, delta: float) -> float:
    """Return the exact ε of T = n mixtures of ℓ of n records, replacing one, which moves a mixture by `distance`."""
    stage = Stage(name="m", noise_multiplier=1 / distance, replace_distance=1.0, subset=Subset(degree, n), count=n)
    return account(Plan([stage]), delta, interval=INTERVAL).epsilon


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


def mixtures(
    images: Images, sampling: str, epsilon: float | None, degree: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return mixtures of images, and their labels."""
    n = len(images.x)
    if sampling != "fixed":
        return published_mixtures(images, degree, epsilon, seed=1 + seed, unit_norms=sampling == "unit")[:2]
    sigma = 0.0 if epsilon is None else fixed_noise(epsilon, degree, n, 1 / n, images.n_features)
    rows = images.x.reshape(n, -1).astype(np.float32) / 255
    x, y = fixed_mixtures(rows, np.eye(CLASSES, dtype=np.float32)[images.y], degree, sigma, 1 + seed)
    return x.reshape(n, *images.shape), y


def run(images: Images, cell: str, epochs: int, seed: int, *, denoise: bool = False) -> dict[str, object]:
    """Mix, train, and return the accuracy after each epoch, with the accounts of the noise."""
    sampling, text, degree = cell.split(":")
    begun = time.process_time()
    if sampling.endswith("projection"):
        return run_projection(images, sampling, float(text), int(degree), epochs, seed)
    x, y = mixtures(images, sampling, None if text == "inf" else float(text), int(degree), seed)
    if denoise:
        x = ndimage.gaussian_filter(x, (*(0 for _ in x.shape[:-2]), 1, 1))
    found = score(images, x, y, training=replace(PUBLISHED, epochs=epochs), watch=True, seed=seed)
    noise = noise_of(images, cell)
    seconds = round(time.process_time() - begun)
    return {"accuracy by epoch": [round(value, 4) for value in found], **noise, "processor seconds": seconds}


def noise_of(images: Images, cell: str) -> dict[str, object]:
    """Return σ of pixels and of labels of a cell, and its ε by several accounts."""
    sampling, text, degree = cell.split(":")
    n, epsilon, d = len(images.x), None if text == "inf" else float(text), images.n_features
    if sampling == "fixed":
        sigmas = (0.0, 0.0) if epsilon is None else (fixed_noise(epsilon, int(degree), n, 1 / n, d),) * 2
    else:
        sigmas = published_noise(images, int(degree), epsilon, unit_norms=sampling == "unit")
    epsilons = {} if epsilon is None else accounts(sampling, sigmas[1], int(degree), n, 1 / n, d)
    return {
        "sigma": [round(sigma, 5) for sigma in sigmas],
        "epsilon": {name: round(value, 3) for name, value in epsilons.items()},
    }


def run_projection(
    images: Images, sampling: str, epsilon: float, width: int, epochs: int, seed: int
) -> dict[str, object]:
    """Project with the printed noise, train the fully connected network, and return the accuracy after each epoch."""
    longest = images.longest_norm if sampling.startswith("unit") else 1.0
    rows, test = (np.float32(1 / (255 * longest)) * x.reshape(len(x), -1) for x in (images.x, images.test_x))
    made, matrix, sigma = printed_projection(rows, width=width, epsilon=epsilon, delta=1 / len(rows), seed=1 + seed)
    training = replace(PUBLISHED, epochs=epochs, network="fc")
    labels = np.eye(CLASSES, dtype=np.float32)[images.y]
    found = score(images, made, labels, training=training, watch=True, seed=seed, test=test @ matrix.T)
    return {"accuracy by epoch": [round(value, 4) for value in found], "sigma": [round(sigma, 5)]}


def main() -> None:
    """Run what is missing, and print."""
    parser = arguments(__doc__)
    parser.add_argument("--cells", nargs="*", default=CELLS)
    parser.add_argument("--epochs", type=int, default=PUBLISHED.epochs)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--images", default="mnist", choices=NAMES)
    parser.add_argument("--denoise", action="store_true")
    parser.add_argument("--accounts", action="store_true")
    options = parser.parse_args()
    images = Images(options.data, options.images, validate=options.validate)
    name = "as_published" + ("" if options.images == "mnist" else f"-{options.images}")
    print(NOT_PRIVATE)
    if options.accounts:
        Results(options.out / "accounts.jsonl").note(
            "accounts", {cell: noise_of(images, cell) for cell in options.cells}
        )
        return
    results = Results(options.out / f"{name}{'-validation' if options.validate else ''}.jsonl")
    how = f"{options.epochs} epochs{', denoised' if options.denoise else ''}"
    found = {
        key: results.get(key, partial(run, images, cell, options.epochs, seed, denoise=options.denoise))
        for seed in options.seeds
        for cell in options.cells
        for key in [f"{cell}, {how}, seed {seed}"]
    }
    results.note("as published", {"private": False, "found": found})


if __name__ == "__main__":
    main()
