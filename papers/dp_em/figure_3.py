"""Figure 3: test log-likelihood against ε on Life Sciences (ds1.10): K = 3, J = 10, δ = 1e-4.

    python papers/dp_em/figure_3.py --data FOLDER [--splits 10] [--validate]

Columns are scaled by the public bounds of GUPT (SIGMOD 2012) and clipped to norm 1.4; log-likelihoods are in those
units, of clipped test records. Every method starts from the same Gaussian of all records, with J releases in all: ours
buys it with the first of them; the published ones and the noiseless one get theirs for nothing, and make J iterations.
The published methods are not private as printed (published.py).
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pandas as pd
from compositions import COMPOSITIONS, published_multiplier
from published import noisy_mixture
from results import Results, draw, parser, read, summary

from sfumato.data.engine import Rows
from sfumato.learners.em import em_stages, fit_mixture
from sfumato.mechanisms.clip import clip_rows
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.models.covariances import FullCovariance
from sfumato.models.mixture_starts import MomentStart
from sfumato.models.mixtures import GaussianMixture
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan

LOWER = (-13.4531, -6.4655, -7.5628, -4.7937, -6.9696, -5.0108, -4.6077, -4.9134, -5.12, -3.4201)
UPPER = (-0.010748, 5.9762, 5.6764, 5.3849, 4.7242, 6.466, 6.3295, 4.5263, 4.7116, 4.9505)
CLIP_NORM = 1.4  # chosen on validation rows
EPSILONS = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 4.0)
COMPONENTS, ITERATIONS, DELTA, DELTA_I = 3, 10, 1e-4, 1e-8
FORM = FullCovariance()


class Points:
    """Vectors as records."""

    max_rows_per_unit = 1

    def __init__(self, points: np.ndarray) -> None:
        self.points = points

    def coded(self) -> Iterator[Rows]:
        yield {"x": self.points}


def vectors(rows: Rows) -> np.ndarray:
    return rows["x"]


def load(arguments: argparse.Namespace) -> np.ndarray:
    frame = pd.read_parquet(read(arguments) / "ds1_10.parquet")
    rows = frame[[f"x{j}" for j in range(1, 11)]].to_numpy(np.float64)
    lower, upper = np.array(LOWER), np.array(UPPER)
    return clip_rows((np.clip(rows, lower, upper) - (lower + upper) / 2) / ((upper - lower) / 2), CLIP_NORM) / CLIP_NORM


def split(points: np.ndarray, seed: int, *, validate: bool) -> tuple[np.ndarray, np.ndarray]:
    """Nine tenths to train on and one to test; or, of the nine, two thirds and one."""
    order = np.random.default_rng(1000 + seed).permutation(len(points))
    tenth = len(order) // 10
    test, train = order[:tenth], order[tenth:]
    if validate:
        test, train = train[: len(train) // 3], train[len(train) // 3 :]
    return points[train], points[test]


def ours(
    points: np.ndarray, epsilon: float | None, seed: int, *, components: int = COMPONENTS, iterations: int = ITERATIONS
) -> GaussianMixture:
    stages = em_stages("em", form=FORM, n_components=components, dimension=points.shape[1], iterations=iterations)
    plan = Plan(stages) if epsilon is None else calibrate(Plan(stages), PrivacyBudget(epsilon, DELTA))
    rng = np.random.default_rng(seed)
    start = MomentStart(n_components=components, form=FORM, dimension=points.shape[1], rng=rng)
    noise = NoNoise() if epsilon is None else SeededNoise(seed)
    ledger = Ledger(plan, None)
    mixture, _ = fit_mixture(Points(points), vectors, start=start, stage="em", ledger=ledger, noise=noise)
    return mixture


def exact_start(points: np.ndarray, seed: int) -> GaussianMixture:
    """The start of `ours` without noise."""
    rng = np.random.default_rng(seed)
    start = MomentStart(n_components=COMPONENTS, form=FORM, dimension=points.shape[1], rng=rng)
    mean, second = points.mean(axis=0), points.T @ points / len(points)
    whole = GaussianMixture(np.ones(1), mean[None], (second - np.outer(mean, mean))[None])
    return start.spread(whole)


def score(mixture: GaussianMixture, test: np.ndarray) -> float:
    """Mean log density in units of the public scaling."""
    return float(mixture.log_densities(test).mean()) - test.shape[1] * float(np.log(CLIP_NORM))


def published(points: np.ndarray, composition: str, epsilon: float, seed: int) -> GaussianMixture:
    multiplier = published_multiplier(
        composition, iterations=ITERATIONS, components=COMPONENTS, epsilon=epsilon, delta=DELTA, delta_i=DELTA_I
    )
    rng = np.random.default_rng(2000 + seed)
    start = exact_start(points, seed)
    return noisy_mixture(points, start, iterations=ITERATIONS, multiplier=float(multiplier or np.inf), rng=rng)


def main() -> None:
    arguments = parser(__doc__).parse_args()
    points = load(arguments)
    kind = "validation" if arguments.validate else "test"
    results = Results(arguments.out / f"figure_3_{kind}.jsonl")
    values: dict[tuple[str, float], list[float]] = defaultdict(list)
    for seed in range(arguments.splits):
        train, test = split(points, seed, validate=arguments.validate)
        exact = {
            "single Gaussian": lambda t=train: ours(t, None, 0, components=1, iterations=2),
            "no noise, same start and J": lambda t=train, s=seed: ours(t, None, s),
            "no noise, converged": lambda t=train, s=seed: ours(t, None, s, iterations=100),
        }
        for name, fit in exact.items():
            found = results.get(f"{name} {seed}", lambda f=fit, held=test: score(f(), held))
            values[name, 0.0].append(found)
        for epsilon in EPSILONS:
            methods = {
                f"published GGG, {c}": lambda c=c, t=train, e=epsilon, s=seed: published(t, c, e, s)
                for c in COMPOSITIONS
            }
            methods["joint, ours"] = lambda t=train, e=epsilon, s=seed: ours(t, e, s)
            for name, fit in methods.items():
                found = results.get(f"{name} {epsilon} {seed}", lambda f=fit, held=test: score(f(), held))
                values[name, epsilon].append(found)
    table = summary(values)
    print(
        json.dumps(
            {"scored_on": kind, "splits": arguments.splits, "loss_of_gap_at_1": gap(values), "mean_and_error": table},
            indent=1,
        )
    )
    draw(table, arguments.out / f"figure_3_{kind}.png", label=f"{kind} log-likelihood", title="ds1.10, K = 3, J = 10")


def gap(values: dict[tuple[str, float], list[float]]) -> float:
    """Part of the gap (single Gaussian → converged mixture) that ours at ε = 1 loses beyond the noiseless run."""
    single, same, converged = (
        np.mean(values[name, 0.0]) for name in ("single Gaussian", "no noise, same start and J", "no noise, converged")
    )
    return round(float((same - np.mean(values["joint, ours", 1.0])) / (converged - single)), 4)


if __name__ == "__main__":
    main()
