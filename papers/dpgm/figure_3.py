"""Figure 3: clustering accuracy against ε on binarised MNIST, kernel and plain private k-means.

    python papers/dpgm/figure_3.py --data FOLDER [--runs 20] [--printed] [--out FOLDER]

Kernel k-means on d random Fourier features; plain k-means on the pixels, clipped at 28 = √784 as published and at 11,
about the norm of an image, with sums of distances from centres as ours and, not recentred, with sums of records. Two
starts: random directions, which need no data, and ten records that are taken to be public: the last 5,000 training
images, which are then not clustered. δ = 1e-5, our account. Accuracy is that of the best one-to-one map from clusters
to digits, on the clustered training images themselves; test images are not read.

With `--printed` Algorithm 2 alone, as `as_published.py` has it: 200 random features, 20 iterations from ten public
records, noise by the printed moments; and plain k-means in the same way, of pixels. Their exact ε, of adding or
removing a record, is printed beside. There no dead cluster is parted, as ours are.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from sfumato.maths.fourier import FourierFeatures
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.methods.mixtures.centres import nearest, random_directions
from sfumato.methods.mixtures.kmeans import fit_kmeans, kmeans_stage
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import draw, parser, read, summary
from jobs import Results

CLUSTERS, DELTA, PUBLIC, CHUNK = 10, 1e-5, 5_000, 4096
GAMMA = 1 / 150  # a typical squared distance of two binary images
PRINTED = ("Algorithm 2, d = 200", "plain, clip 28")
PLAIN = ["plain, clip 28, not recentred", "plain, clip 11, not recentred", "plain, clip 11"]


class Held:
    """Vectors in memory, as records."""

    max_rows_per_unit = 1

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors = vectors

    def coded(self):
        for start in range(0, len(self.vectors), CHUNK):
            yield {"z": self.vectors[start : start + CHUNK]}


def accuracy(clusters: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of records in the cluster that the best one-to-one map gives to their label."""
    table = np.zeros((CLUSTERS, CLUSTERS))
    np.add.at(table, (clusters, labels), 1)
    return float(table[linear_sum_assignment(-table)].sum() / table.sum())


@lru_cache(maxsize=64)
def plan_of(dimension: int, iterations: int, epsilon: float) -> Plan:
    plan = Plan([kmeans_stage("k", dimension=dimension, iterations=iterations)])
    return plan if not epsilon else calibrate(plan, PrivacyBudget(epsilon, DELTA))


def clustered(
    vectors: np.ndarray, start: np.ndarray, epsilon: float, iterations: int, seed: int, *, recentred: bool
) -> np.ndarray:
    """Return the cluster of each vector; ε = 0 stands for no noise."""
    noise = SeededNoise(seed) if epsilon else NoNoise(seed)
    ledger = Ledger(plan_of(vectors.shape[1], iterations, epsilon), None)
    found = fit_kmeans(
        Held(vectors),
        lambda rows: rows["z"],
        start,
        stage="k",
        ledger=ledger,
        noise=noise,
        rng=public_stream(seed, 3),
        recentred=recentred,
    )
    return nearest(vectors, found.centres)


def main() -> None:
    """Measure what is missing, and draw."""
    arguments = parser(__doc__, "dpgm", repeats=("runs", 20))
    arguments.add_argument("--features", type=int, nargs="*", default=[50, 200, 1000])
    arguments.add_argument("--plain", nargs="*", default=PLAIN)
    arguments.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.3, 0.5, 1.0, 0.0])
    arguments.add_argument("--iterations", type=int, default=8)
    arguments.add_argument("--printed", action="store_true")
    options = arguments.parse_args()
    with np.load(read(options) / "mnist.npz") as arrays:
        images = (arrays["x_train"].reshape(-1, 784) >= 128).astype(np.float32)
        labels = arrays["y_train"].astype(int)[:-PUBLIC]
    results = Results(options.out / "figure_3.jsonl")
    if options.printed:
        as_printed(images, labels, results, options.runs, [epsilon for epsilon in options.epsilons if epsilon])
        return
    tables: dict[str, dict[tuple[str, float], list[float]]] = {"data-free": {}, "public records": {}}
    for run in range(options.runs):
        for name in [*(f"kernel, d = {d}" for d in options.features), *options.plain]:
            vectors: np.ndarray | None = None
            for start_name, found in tables.items():
                for epsilon in options.epsilons:
                    key = f"{start_name} | {name} | {epsilon:g} | T {options.iterations} | run {run}"

                    def compute(name=name, start_name=start_name, epsilon=epsilon, run=run) -> float:
                        nonlocal vectors
                        if vectors is None:
                            vectors = mapped(images, name, run)
                        private, rng = vectors[:-PUBLIC], public_stream(run, 1)
                        public = vectors[-PUBLIC:][rng.choice(PUBLIC, CLUSTERS, replace=False)]
                        start = (
                            random_directions(CLUSTERS, vectors.shape[1], rng) if start_name == "data-free" else public
                        )
                        recentred = "not recentred" not in name
                        found = clustered(private, start, epsilon, options.iterations, run, recentred=recentred)
                        return accuracy(found, labels)

                    found.setdefault((name, epsilon), []).append(results.get(key, compute))
    for start_name, found in tables.items():
        table = summary({(n if e else f"{n}, no noise", e): v for (n, e), v in found.items()})
        results.note(f"{start_name}, T {options.iterations}, {options.runs} runs", table)
        draw(
            {n: e for n, e in table.items() if "no noise" not in n},
            Path(options.out) / f"figure_3_{start_name.replace(' ', '_')}.png",
            label="clustering accuracy",
            title=f"Binarised MNIST, start: {start_name}",
        )


def as_printed(images: np.ndarray, labels: np.ndarray, results: Results, runs: int, epsilons: list[float]) -> None:
    """Measure Algorithm 2 and plain k-means, and note them with their exact ε."""
    import accounts
    import as_published

    def compute(name: str, epsilon: float, run: int) -> float:
        features = mapped(images, name, run) if name in PRINTED[1:] else as_published.phase_features(images, run)
        start = features[-PUBLIC:][public_stream(run, 1).choice(PUBLIC, CLUSTERS, replace=False)]
        scale = as_published.Scale(accounts.kmeans_noise(epsilon) / as_published.SIGMA_K)
        rng = np.random.default_rng(100 + run)
        return accuracy(as_published.kernel_kmeans(features[:-PUBLIC], start, rng, scale), labels)

    found = {
        (name, epsilon): [
            results.get(f"{name} | {epsilon:g} | run {run}", lambda n=name, e=epsilon, r=run: compute(n, e, r))
            for run in range(runs)
        ]
        for name in PRINTED
        for epsilon in epsilons
    }
    exact = {f"{epsilon:g}": round(accounts.kmeans_epsilon(accounts.kmeans_noise(epsilon)), 3) for epsilon in epsilons}
    results.note("as printed", {**summary(found), "exact epsilon": exact})


def mapped(images: np.ndarray, name: str, run: int) -> np.ndarray:
    """Return the vectors that a method clusters, of norm at most 1."""
    kind, _, size = name.partition(", ")
    if kind == "plain":
        scaled = images / float(size.split()[1].rstrip(","))
        return scaled / np.maximum(1, np.linalg.norm(scaled, axis=1, keepdims=True))
    features = FourierFeatures.of(784, n_features=int(size.split()[2]), gamma=GAMMA, seed=run)
    return np.concatenate(
        [features.encode(images[i : i + CHUNK]).astype(np.float32) for i in range(0, len(images), CHUNK)]
    )


if __name__ == "__main__":
    main()
