"""What the scripts share: images, mixtures as published and as the package makes them, training, results on disk."""

from __future__ import annotations

import argparse
import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from drawn import ImageModel
from published import noise_by_theorem_1, unit_norm_noise
from scipy import sparse

from sfumato.mechanisms.mixing import MixableRecords, MixtureSettings, PoissonMixing, label_share, noisy_mixtures
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.models.mixed_training import MixtureTraining, train_on_mixtures
from sfumato.privacy.accounting import account, interval_for
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage, sampled

sys.path.insert(0, str(Path(__file__).parents[1]))
from image_data import images_of

FEATURES, CLASSES = 784, 10
CLIP_NORM = 28 / 3
# Chosen on the held-out tenth of MNIST's training images, before a test image was read.
FAST = MixtureTraining(epochs=4, batch_size=64, learning_rate=1e-3, halve_every=2)
PUBLISHED = MixtureTraining()
# of images drawn from the release's moments, and how many
DRAWN, N_DRAWN = MixtureTraining(epochs=4, batch_size=64, learning_rate=1e-3, halve_every=1), 16_000


def arguments(text: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SFUMATO_DATA"), help="folder of the .npz files")
    parser.add_argument("--out", type=Path, default=Path("papers/dpmix/out"), help="folder of results and pictures")
    parser.add_argument(
        "--validate", action="store_true", help="train on nine tenths of the training images, score on the other"
    )
    return parser


class Images:
    """Images as bytes to train on, and others to score on; with `validate` no test image is read.

    Grey ones have the shape (n, 28, 28), those of CIFAR-10, which are JPEG here, (n, 3, 32, 32).
    """

    def __init__(self, folder: Path | None, name: str, *, validate: bool) -> None:
        if folder is None:
            raise SystemExit("Expected the folder of the data: --data FOLDER, or SFUMATO_DATA=FOLDER.")
        self.name = name
        x, y, test_x, test_y = images_of(Path(folder), name)
        if x.ndim == 4:
            x, test_x = (pixels.transpose(0, 3, 1, 2) for pixels in (x, test_x))
        if validate:
            order = np.random.default_rng(2019).permutation(len(x))
            held, kept = order[: len(x) // 10], order[len(x) // 10 :]
            x, y, test_x, test_y = x[kept], y[kept], x[held], y[held]
        self.x, self.y, self.test_x, self.test_y = x, y, test_x, test_y

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one image."""
        return self.x.shape[1:]

    @property
    def n_features(self) -> int:
        """Values of an image."""
        return math.prod(self.shape)

    @property
    def clip_norm(self) -> float:
        """The public bound that ours has: a third of the largest norm of an image."""
        return math.sqrt(self.n_features) / 3

    @property
    def longest_norm(self) -> float:
        """The largest norm of an image to train on: not private."""
        return max(float(np.linalg.norm(image / 255)) for image in self.x)

    def accuracy(self, classifier: Any) -> float:
        return float((classifier.predict(self.test_x.astype(np.float32) / 255) == self.test_y).mean())


def published_noise(
    images: Images, degree: int, epsilon: float | None, *, unit_norms: bool = False
) -> tuple[float, float]:
    """Return σ_X and σ_Y of T = n mixtures at δ = 1/n by Theorem 1, which fixes d_X/σ_X² + d_Y/σ_Y² alone.

    One σ for both; with `unit_norms` for pixels divided by the longest image's norm, of which σ_X here is a multiple:
    that norm is read off the records, so it is not private.
    """
    n = len(images.x)
    if epsilon is None:
        return 0.0, 0.0
    solve = unit_norm_noise if unit_norms else noise_by_theorem_1
    sigma = solve(epsilon, degree, n, n, 1 / n, n_features=images.n_features, n_labels=CLASSES)
    return (sigma * images.longest_norm if unit_norms else sigma), sigma


def published_mixtures(
    images: Images, degree: int, epsilon: float | None, seed: int, *, unit_norms: bool = False
) -> tuple[np.ndarray, np.ndarray, float]:
    """T = n mixtures of ℓ images, drawn without replacement, with the noise of Theorem 1 at δ = 1/n, and σ_X."""
    n, d, rng = len(images.x), images.n_features, np.random.default_rng(seed)
    sigma_x, sigma_y = published_noise(images, degree, epsilon, unit_norms=unit_norms)
    x, y = np.empty((n, d), np.float32), np.empty((n, CLASSES), np.float32)
    records = images.x.reshape(n, -1).astype(np.float32) / 255
    for start in range(0, n, 5000):
        stop = min(start + 5000, n)
        members = np.concatenate([_subset(rng, n, degree) for _ in range(stop - start)])
        rows = np.arange(stop - start + 1) * degree
        matrix = sparse.csr_array((np.full(len(members), 1 / degree, np.float32), members, rows), (stop - start, n))
        x[start:stop] = matrix @ records + sigma_x * rng.standard_normal((stop - start, d), np.float32)
        y[start:stop] = matrix @ np.eye(CLASSES, dtype=np.float32)[images.y]
        y[start:stop] += sigma_y * rng.standard_normal((stop - start, CLASSES), np.float32)
    return x.reshape(n, *images.shape), y, sigma_x


def _subset(rng: np.random.Generator, n: int, degree: int) -> np.ndarray:
    while True:
        found = np.unique(rng.integers(n, size=degree + 8))
        if len(found) >= degree:
            return rng.permutation(found)[:degree]


def our_mixtures(
    images: Images, degree: int, epsilon: float | None, seed: int, *, delta: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """T = n Poisson mixtures of clipped images as the package makes them, and σ_X."""
    n, norm, d = len(images.x), images.clip_norm, images.n_features
    stage, settings = _our_plan(n, degree, epsilon, delta, d)
    noise = NoNoise(seed) if epsilon is None else SeededNoise(seed)
    x, y = images.x.reshape(n, -1), np.eye(CLASSES)[images.y]
    records = MixableRecords.of_chunks(
        ((x[start : start + 5000] / 255, y[start : start + 5000]) for start in range(0, n, 5000)),
        n_features=d, n_labels=CLASSES, feature_norm=norm, label_norm=1.0,
    )  # fmt: skip
    ledger = Ledger(Plan([stage]), None)
    blocks = list(noisy_mixtures(records, settings, stage="mixtures", ledger=ledger, noise=noise))
    made = np.concatenate([b.features.astype(np.float32) for b in blocks])
    labels = np.concatenate([b.labels.astype(np.float32) for b in blocks])
    return made.reshape(-1, *images.shape), labels, 0.0 if epsilon is None else settings.noise_stds(stage, norm, 1.0)[0]


def delta_of(n: int, epsilon: float | None) -> float:
    """Return the published δ at the published ε, for comparison; elsewhere the default."""
    return 1 / n if epsilon is None or epsilon >= 10 else min(1e-5, 0.1 / n)


def our_noise(n: int, degree: int, epsilon: float, delta: float, n_features: int = FEATURES) -> tuple[float, float]:
    """Return σ_X and σ_Y of n Poisson mixtures of n images."""
    stage, settings = _our_plan(n, degree, epsilon, delta, n_features)
    return settings.noise_stds(stage, math.sqrt(n_features) / 3, 1.0)


def _our_plan(
    n: int, degree: int, epsilon: float | None, delta: float, n_features: int
) -> tuple[Stage, MixtureSettings]:
    stage = PoissonMixing().stage("mixtures", degree=degree, n_mixtures=n, n_public=n)
    if epsilon is not None:
        stage = replace(stage, noise_multiplier=our_multiplier(stage, epsilon, delta))
    share = label_share(multiplier=stage.noise_multiplier, degree=degree, n_features=n_features, n_labels=CLASSES)
    return stage, MixtureSettings(mixing=PoissonMixing(), degree=degree, n_mixtures=n, n_public=n, label_share=share)


def our_multiplier(stage: Stage, epsilon: float, delta: float) -> float:
    """A noise multiplier that meets the budget, within 1 % of the least: on a coarse grid, which is pessimistic."""
    assert stage.inclusion is not None
    rough = sampled(1.0, PrivacyBudget(epsilon, delta), probability=stage.inclusion, count=stage.count)

    def meets(z: float) -> bool:
        trial = Plan([replace(stage, noise_multiplier=z)])
        return account(trial, delta, interval=max(1e-3, interval_for(trial))).epsilon <= epsilon

    low, high = 0.9 * rough, 1.05 * rough
    while not meets(high):
        low, high = high, 1.1 * high
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


class Linear:
    """Least squares on moments of mixtures from which the noise's part is taken away: it needs σ and nothing else."""

    def __init__(self, x: np.ndarray, y: np.ndarray, sigma: float) -> None:
        rows = x.reshape(len(x), -1)
        self._mean, self._label = rows.mean(0), y.mean(0)
        centred = rows - self._mean
        values, vectors = np.linalg.eigh((centred.T @ centred / len(rows)).astype(np.float64))
        values = np.maximum(values - sigma**2, 0)
        # how far noise moves an eigenvalue; chosen on the held-out tenth among 0.1, 0.3, 1 and 3 times this
        least = sigma**2 * math.sqrt(rows.shape[1] / len(rows)) + 1e-5
        inverse = values / (values**2 + least**2)
        self._weights = vectors @ (inverse[:, None] * (vectors.T @ (centred.T @ (y - self._label) / len(rows))))

    def predict(self, x: np.ndarray) -> np.ndarray:
        return ((x.reshape(len(x), -1) - self._mean) @ self._weights + self._label).argmax(1)


def score_drawn(images: Images, x: np.ndarray, y: np.ndarray, sigma: float, degree: int, *, poisson: bool) -> float:
    """Accuracy on single images of the published network trained on images drawn from the mixtures' moments."""
    model = ImageModel(x, y, sigma, degree, poisson=poisson)
    network = train_on_mixtures(*model.draw(N_DRAWN, seed=3), training=DRAWN)
    guesses = network.predict(model.images(images.test_x.astype(np.float32) / 255))
    return float((guesses == images.test_y).mean())


def score(
    images: Images,
    x: np.ndarray,
    y: np.ndarray,
    *,
    training: MixtureTraining = FAST,
    seed: int = 0,
    watch: bool = False,
    test: np.ndarray | None = None,
) -> list[float]:
    """Accuracy on single images after the last epoch; with `watch` after each; `test` is what is seen of them."""
    seen: list[float] = []
    test = images.test_x.astype(np.float32) / 255 if test is None else test

    def each(epoch: int, classifier: Any) -> None:
        if watch or epoch == training.epochs:
            seen.append(float((classifier.predict(test) == images.test_y).mean()))
            print(f"  epoch {epoch}: {seen[-1]:.4f}", flush=True)

    train_on_mixtures(x, y, training=training, seed=seed, progress=each)
    return seen
