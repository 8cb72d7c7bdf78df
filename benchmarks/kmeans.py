"""Inertia of private k-means over that of scikit-learn without noise, on five data sets, and in feature space.

    python benchmarks/kmeans.py [--seeds 10] [--epsilon 1] [--validate] [--out FILE]

Rows are brought to [0, 1] by public bounds, which are all that `DPKMeans` is told; its other settings are the defaults,
so centres start at random points of the ball, and in two columns from the counts of a grid. Digits have ε = 5 unless
asked for otherwise. The reference is the best of ten runs of scikit-learn's `KMeans`, by k-means++ and until it
converges. `DPKernelKMeans` is measured in its feature space, beside `KMeans` there. Settings were chosen with
--validate: other laws, other tables and other seeds. Shown are mean, least and largest of the ratio over the seeds.

Noise is seeded, and scores are read off the records without noise: nothing printed here is private.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import statsmodels.datasets
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, make_blobs

from sfumato.estimators import DPKernelKMeans, DPKMeans

# largest cells by the tables' documentation or common knowledge, rounded outwards; the smallest are 0
RANDHIE_TOP = (100, 5, 1, 8, 10, 1, 100, 1, 1, 1)
FAIR_TOP = (5, 60, 30, 6, 4, 20, 6, 6, 60)
DELTA = 1e-5


@dataclass(frozen=True)
class Case:
    """Rows within [0, 1] by the seed of a run, and what is asked for."""

    rows: Callable[[int], np.ndarray]
    n_clusters: int
    epsilon: float | None = None
    """None: that of the command."""
    kernel: bool = False


def skewed(columns: int, law: str, n: int = 20_000, groups: int = 6) -> Callable[[int], np.ndarray]:
    """Groups of heavy-tailed amounts, cut at a public bound far above most of them."""

    def draw(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        scales = rng.uniform(0.5, 3.0, (groups, columns))[rng.choice(groups, n, p=rng.dirichlet(np.full(groups, 2.0)))]
        noise = rng.lognormal(0.0, 0.5, (n, columns)) if law == "lognormal" else rng.gamma(3.0, 1 / 3, (n, columns))
        return np.clip(scales * noise / 10.0, 0.0, 1.0)

    return draw


def blobs(columns: int, n_clusters: int, spread: float, n: int = 20_000) -> Callable[[int], np.ndarray]:
    def draw(seed: int) -> np.ndarray:
        points, _ = make_blobs(
            n, columns, centers=n_clusters, cluster_std=spread, center_box=(0.1, 0.9), random_state=seed
        )
        return np.clip(points, 0.0, 1.0)

    return draw


def table(name: str, tops: tuple[int, ...]) -> Callable[[int], np.ndarray]:
    frame = getattr(statsmodels.datasets, name).load_pandas().data
    rows = np.clip(frame.to_numpy(np.float64) / tops, 0.0, 1.0)
    return lambda _: rows


def digits(_: int) -> np.ndarray:
    return load_digits().data / 16.0


def cancer(_: int) -> np.ndarray:
    rows = load_breast_cancer().data
    return np.clip(rows / (10 ** np.ceil(np.log10(rows.max(axis=0)))), 0.0, 1.0)


def cases(*, validate: bool) -> dict[str, Case]:
    if validate:
        return {
            "skewed, 8 columns": Case(skewed(8, "gamma"), 8),
            "skewed, 30 columns": Case(skewed(30, "gamma", n=10_000), 6),
            "breast cancer": Case(cancer, 4, epsilon=5.0),
            "fair": Case(table("fair", FAIR_TOP), 6),
            "blobs, 6 columns": Case(blobs(6, 12, 0.03), 12),
            "blobs, 3 columns": Case(blobs(3, 6, 0.05, 5_000), 6),
            "kernel, blobs": Case(blobs(4, 8, 0.05), 8, kernel=True),
            "kernel, fair": Case(table("fair", FAIR_TOP), 6, kernel=True),
        }
    return {
        "skewed, 5 columns": Case(skewed(5, "lognormal"), 8),
        "skewed, 20 columns": Case(skewed(20, "lognormal"), 8),
        "digits": Case(digits, 10, epsilon=5.0),
        "RAND HIE": Case(table("randhie", RANDHIE_TOP), 8),
        "blobs, 10 columns": Case(blobs(10, 8, 0.03), 8),
        "blobs, 2 columns": Case(blobs(2, 8, 0.03), 8),
        "kernel, digits": Case(digits, 10, epsilon=5.0, kernel=True),
        "kernel, RAND HIE": Case(table("randhie", RANDHIE_TOP), 8, kernel=True),
    }


def fitted(case: Case, rows: np.ndarray, epsilon: float, seed: int) -> DPKMeans | DPKernelKMeans:
    estimator = DPKernelKMeans if case.kernel else DPKMeans
    model = estimator(case.n_clusters, epsilon=epsilon, delta=DELTA, n_public=len(rows), bounds=(0.0, 1.0), seed=seed)
    return model.fit(rows)


def ratio(case: Case, epsilon: float, seed: int, fit: Callable = fitted) -> float:
    """Return the inertia of one fit over scikit-learn's."""
    rows = case.rows(seed)
    model = fit(case, rows, case.epsilon or epsilon, seed)
    vectors = model._encoded(rows) if case.kernel else rows
    reference = KMeans(case.n_clusters, n_init=10, random_state=0).fit(vectors).inertia_
    return -model.score(rows) / reference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--validate", action="store_true")
    parser.add_argument("--only", default="", help="data sets whose names hold this")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of seeds, and of a large δ
    first = 0 if options.validate else 1000
    results = {}
    for name, case in cases(validate=options.validate).items():
        if options.only not in name:
            continue
        found = [ratio(case, options.epsilon, first + seed) for seed in range(options.seeds)]
        results[name] = {"mean": np.mean(found), "least": np.min(found), "largest": np.max(found)}
        print(f"{name:20} {np.mean(found):6.3f}  ({np.min(found):.3f} to {np.max(found):.3f})", flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
