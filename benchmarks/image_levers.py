"""Levers on the images of purpose Training(), each in its full protocol on validation images.

- Texture and contrast: each sample's texture times a number drawn from [0.5, 1.5], and its picture to the power
  exp(0.25·z), z normal. It costs no budget.
- Clusters, cut not charged: every class is cut in four by k-means on the leading axes, and what is released of classes
  is released of clusters instead: counts, means, and covariances, which are the pooled one with corrections above the
  edge of the noise. Same budget as without, but for the cut: better than a private form with such a cut could be.
- Clusters, all charged: the same, and the cut is bought. Centres start from released moments and move by three rounds
  of noisy k-means; the budget of the class moments buys rounds (15 %), counts and means (15 %) and second moments.

A run is one release at (1, 1e-5), as many samples as it was fitted to, ten epochs of P3GM's network; the levers of a
run share its release's classifier. Fitted on the first 50,000 training images, scored on the other 10,000: test images
are not read. Noise has a seed: no figure is private.

    python benchmarks/image_levers.py DATA {mnist,fashion_mnist} --out FILE [--runs 3]
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting import gaussian_mechanism
from images import DELTA, LABELS, VALIDATION_FROM, accuracy
from sklearn.cluster import KMeans

import sfumato
from sfumato.columns.kinds import Categorical, Image
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.images.model import class_factors
from sfumato.models.images.coefficients import ImageEncoder, ImageLayout
from sfumato.models.images.sampler import ImagePortrait

EPSILON, EPOCHS, BATCH = 1.0, 10, 128
CLUSTERS, BLOCK = 4, 4096
CELLS = tuple(f"{cell:02d}" for cell in range(len(LABELS) * CLUSTERS))
NO_LEVER, VARIED = "as it is", "texture and contrast"
CLUSTERED, CHARGED = "clusters, cut not charged", "clusters, all charged"
LEVERS = (NO_LEVER, VARIED, CLUSTERED, CHARGED)
ROUNDS, CUT_PART, MEANS_PART = 3, 0.15, 0.15
MOMENTS_SHARE, SLACK, CONSTANT = 0.55, 1.3, 0.1  # the method's own
AMPLITUDES, EXPONENT = (0.5, 1.5), 0.25


class Varied(ImagePortrait):
    """Samples whose texture and contrast vary."""

    def _pictures(self, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self._amplitudes = rng.uniform(*AMPLITUDES, size=(len(classes), 1)).astype(np.float32)
        exponents = np.exp(EXPONENT * rng.standard_normal((len(classes), 1, 1, 1), dtype=np.float32))
        return super()._pictures(classes, rng) ** exponents

    def _texture(self, rest: np.ndarray, pictures: np.ndarray) -> np.ndarray:
        return super()._texture(rest * self._amplitudes, pictures)


class Clustered(ImagePortrait):
    """Samples of clusters, of which those are kept whose class a classifier agrees with."""

    def taught_by(self, of_classes: ImagePortrait) -> Clustered:
        self._of_classes = self._teacher = of_classes
        return self

    def _taught(self, pictures: np.ndarray) -> np.ndarray:
        """Return cluster 0 of the label that the classifier gives."""
        return self._of_classes._taught(pictures)

    def _agree(self, pictures: np.ndarray, classes: np.ndarray, rng: np.random.Generator) -> None:
        for _ in range(8):
            other = np.flatnonzero(self._taught(pictures) != classes // CLUSTERS)
            if not other.size:
                return
            pictures[other] = self._pictures(classes[other], rng)


def schema_of(labels: tuple[str, ...], rows: int) -> sfumato.Schema:
    return sfumato.Schema(columns={"x": Image(shape=(28, 28)), "y": Categorical(categories=labels)}, rows=rows)


def cells(x: np.ndarray, y: np.ndarray, release: sfumato.Release, seed: int) -> np.ndarray:
    """Return label · clusters + cluster of each image."""
    layout = ImageLayout.of(release.schema)
    encoder = ImageEncoder(layout, release.parameters.get("reference"))
    axes, found = release.parameters["axes"], y * CLUSTERS
    for label in range(len(LABELS)):
        members = np.flatnonzero(y == label)
        low = encoder.encode(layout.pictures(x[members]))[:, : encoder.n_low]
        found[members] += KMeans(CLUSTERS, n_init=3, random_state=seed).fit_predict(low @ axes)
    return found


def by_k_means(
    x: np.ndarray, y: np.ndarray, release: sfumato.Release, method: sfumato.MaxEntropy, seed: int
) -> tuple[sfumato.Schema, dict[str, np.ndarray]]:
    """Fit clusters as the library fits classes, with what the classifier leaves of the budget."""
    sigma = gaussian_mechanism.get_sigma_gaussian(EPSILON, DELTA) / np.sqrt(1 - sfumato.Training().teacher_share)
    epsilon = float(gaussian_mechanism.get_epsilon_gaussian(sigma, DELTA))
    wide = schema_of(CELLS, len(x))
    labels = np.array(CELLS)[cells(x, y, release, seed)]
    rest = replace(method, epsilon=epsilon, purpose=sfumato.Fidelity())
    return wide, dict(rest.fit((x, labels), schema=wide, seed=seed + 100).parameters)


class Cells:
    """Records along the axes and in their columns, about their class mean, clipped; what is released of quarters."""

    def __init__(self, x: np.ndarray, y: np.ndarray, release: sfumato.Release, seed: int) -> None:
        layout, known = ImageLayout.of(release.schema), release.parameters
        encoder, axes = ImageEncoder(layout, known.get("reference")), known["axes"]
        low, d = encoder.n_low, layout.dimension
        parts = []
        for start in range(0, len(x), BLOCK):
            away = encoder.encode(layout.pictures(x[start : start + BLOCK])) - known["means"][y[start : start + BLOCK]]
            parts.append(np.concatenate([away[:, :low] @ axes, away[:, d:]], axis=1))
        rows = np.concatenate(parts)
        # what the library takes from the pooled moment, read here off the classes' own
        self._pooled = np.mean([factor @ factor.T for factor in known["factors"]], axis=0)
        self._bound = SLACK * float(np.sqrt(np.trace(self._pooled)))
        rows *= np.minimum(1, self._bound / np.maximum(np.linalg.norm(rows, axis=1), 1e-9))[:, None]
        self._rows, self._y, self._rng = rows, y, np.random.default_rng(seed)
        budget = MOMENTS_SHARE * (1 - sfumato.Training().teacher_share)
        self._sigma = gaussian_mechanism.get_sigma_gaussian(EPSILON, DELTA) / np.sqrt(budget)
        self.cell = np.zeros(len(y), dtype=int)

    def cut(self) -> None:
        """Assign records to the quarters of their class; centres start as those of draws without structure."""
        drawn = self._rng.multivariate_normal(np.zeros(len(self._pooled)), self._pooled, BLOCK)
        start = KMeans(CLUSTERS, n_init=3, random_state=0).fit(drawn).cluster_centers_
        centres = np.tile(start, (len(LABELS), 1))
        for _ in range(ROUNDS):
            self._assign(centres)
            centres = self.means(CUT_PART / ROUNDS)[1]
        self._assign(centres)

    def _assign(self, centres: np.ndarray) -> None:
        own = centres.reshape(len(LABELS), CLUSTERS, -1)
        for label in range(len(LABELS)):
            members = np.flatnonzero(self._y == label)
            apart = ((self._rows[members, None] - own[label]) ** 2).sum(axis=2)
            self.cell[members] = CLUSTERS * label + apart.argmin(axis=1)

    def means(self, part: float) -> tuple[np.ndarray, np.ndarray]:
        """Return noisy counts and means of cells."""
        constant = CONSTANT * self._bound
        members = [self._rows[self.cell == j] for j in range(len(CELLS))]
        sums = np.stack([np.append(rows.sum(axis=0), constant * len(rows)) for rows in members])
        norm = self._bound * np.sqrt(1 + CONSTANT**2)
        sums += self._sigma / np.sqrt(part) * norm * self._rng.standard_normal(sums.shape)
        counts = np.maximum(sums[:, -1] / constant, 50.0)
        return counts, sums[:, :-1] / counts[:, None]

    def moments(self, part: float) -> Noisy:
        """Return noisy sums of outer products about the class mean."""
        size, std = self._rows.shape[1], self._sigma / np.sqrt(part) * self._bound**2
        noise = std * self._rng.standard_normal((len(CELLS), size, size))
        members = [self._rows[self.cell == j] for j in range(len(CELLS))]
        value = np.stack([rows.T @ rows for rows in members]) + (noise + noise.transpose(0, 2, 1)) / 2
        return Noisy(value, std, symmetric=True)


def charged(
    x: np.ndarray, y: np.ndarray, release: sfumato.Release, seed: int
) -> tuple[sfumato.Schema, dict[str, np.ndarray]]:
    """Cut classes, and release counts, means and second moments of quarters in place of the class moments."""
    known, quarters = dict(release.parameters), Cells(x, y, release, seed)
    quarters.cut()
    counts, means = quarters.means(MEANS_PART)
    noisy = quarters.moments(1 - CUT_PART - MEANS_PART)
    value = noisy.value - counts[:, None, None] * np.einsum("ki,kj->kij", means, means)
    axes, d = known["axes"], ImageLayout.of(release.schema).dimension
    found = np.repeat(known["means"], CLUSTERS, axis=0)
    found[:, : len(axes)] += means[:, : axes.shape[1]] @ axes.T
    found[:, d:] += means[:, axes.shape[1] :]
    factors = class_factors(replace(noisy, value=value), counts)
    made = {"class_shares": counts / counts.sum(), "means": found, "factors": factors}
    return schema_of(CELLS, len(x)), known | made


def samplers(x: np.ndarray, y: np.ndarray, seed: int, wanted: list[str]) -> dict[str, ImagePortrait]:
    """Fit, and return a sampler for each lever."""
    method = sfumato.MaxEntropy(epsilon=EPSILON, delta=DELTA, purpose=sfumato.Training())
    schema = schema_of(LABELS, len(x))
    release = method.fit((x, y.astype(str)), schema=schema, seed=seed)
    plain = ImagePortrait(schema, release.sampler, release.parameters)
    found = {NO_LEVER: plain, VARIED: Varied(schema, release.sampler, release.parameters)}
    for name in {CLUSTERED, CHARGED}.intersection(wanted):
        wide, arrays = charged(x, y, release, seed) if name == CHARGED else by_k_means(x, y, release, method, seed)
        arrays = {key: value for key, value in arrays.items() if not key.startswith("teacher")}
        found[name] = Clustered(wide, release.sampler, arrays).taught_by(plain)
    return {name: found[name] for name in wanted}


def made_by(sampler: ImagePortrait, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n samples and their labels."""
    rng = np.random.default_rng(seed)
    blocks = [sampler.rows(min(BLOCK, n - start), rng) for start in range(0, n, BLOCK)]
    labels = np.concatenate([block["y"] for block in blocks])
    return np.concatenate([block["x"] for block in blocks]), labels // (
        CLUSTERS if isinstance(sampler, Clustered) else 1
    )


def summary(runs: dict[str, dict[str, list[float]]]) -> dict[str, Any]:
    """Return mean, and standard deviation, of the last epoch's accuracy by lever, and of its gain within runs."""
    found = {}
    for name in LEVERS:
        shared = [run for run in runs.values() if name in run and NO_LEVER in run]
        if shared:
            last = np.array([run[name][-1] for run in shared])
            gain = last - [run[NO_LEVER][-1] for run in shared]
            found[name] = {
                "runs": len(shared),
                "accuracy": round(float(last.mean()), 4),
                "accuracy_sd": round(float(last.std(ddof=1)), 4) if len(shared) > 1 else None,
                "gain": round(float(gain.mean()), 4),
                "gain_sd": round(float(gain.std(ddof=1)), 4) if len(shared) > 1 else None,
            }
    return found


def main() -> None:
    """Run what is missing, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the .npz files")
    parser.add_argument("images", choices=("mnist", "fashion_mnist"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--levers", nargs="*", default=LEVERS, choices=LEVERS)
    parser.add_argument("--out", type=Path, required=True, help="figures as JSON; goes on from the runs in it")
    options = parser.parse_args()
    with np.load(options.data / f"{options.images}.npz") as stored:
        x, y = stored["x_train"], stored["y_train"].astype(int)
    fitted, held = (x[:VALIDATION_FROM], y[:VALIDATION_FROM]), (x[VALIDATION_FROM:], y[VALIDATION_FROM:])
    runs = json.loads(options.out.read_text())["runs"] if options.out.exists() else {}
    for seed in range(options.runs):
        wanted = [name for name in options.levers if name not in runs.get(str(seed), {})]
        for name, sampler in (samplers(*fitted, seed, wanted) if wanted else {}).items():
            made = made_by(sampler, len(fitted[0]), seed)
            scores = accuracy(*made, *held, epochs=EPOCHS, batch=BATCH, seed=seed)
            runs.setdefault(str(seed), {})[name] = [round(score, 4) for score in scores]
            print(seed, name, runs[str(seed)][name], flush=True)
            write(options.out, options.images, runs)
    print(json.dumps(summary(runs), indent=1))


def write(out: Path, images: str, runs: dict[str, dict[str, list[float]]]) -> None:
    result = {
        "command": f"python benchmarks/image_levers.py DATA {images} --out FILE",
        "what": "accuracy on validation images after each epoch, by run and lever; mean is of the last epoch",
        "mean": summary(runs),
        "runs": runs,
    }
    out.with_suffix(".new").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    out.with_suffix(".new").replace(out)


if __name__ == "__main__":
    main()
