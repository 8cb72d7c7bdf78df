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
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from compositions import COMPOSITIONS, published_multiplier
from published import noisy_mixture

from sfumato.mechanisms.contributions import clip_rows
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.methods.mixtures.em import em_stages, fit_mixture
from sfumato.methods.mixtures.steps import MomentStart
from sfumato.models.mixtures.covariances import FullCovariance
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.calibration import calibrate
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan
from sfumato.records.engine import Rows

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import draw, parser, read, summary
from jobs import Results

LOWER = (-13.4531, -6.4655, -7.5628, -4.7937, -6.9696, -5.0108, -4.6077, -4.9134, -5.12, -3.4201)
UPPER = (-0.010748, 5.9762, 5.6764, 5.3849, 4.7242, 6.466, 6.3295, 4.5263, 4.7116, 4.9505)
CLIP_NORM = 1.4  # chosen on validation rows
EPSILONS = (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 4.0)
FORM = FullCovariance()


@dataclass(frozen=True)
class Problem:
    """What is fitted, and the paper's δ and δᵢ; `unit` is the scale that log-likelihoods are in."""

    components: int
    iterations: int
    delta: float
    delta_i: float
    unit: float
    epsilons: tuple[float, ...] = EPSILONS


LIFE_SCIENCES = Problem(components=3, iterations=10, delta=1e-4, delta_i=1e-8, unit=CLIP_NORM)


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
    problem: Problem,
    points: np.ndarray,
    epsilon: float | None,
    seed: int,
    *,
    components: int | None = None,
    iterations: int | None = None,
) -> GaussianMixture:
    """Our mechanism; without noise for None."""
    k, rounds, q = components or problem.components, iterations or problem.iterations, points.shape[1]
    stages = em_stages("em", form=FORM, n_components=k, dimension=q, iterations=rounds)
    plan = Plan(stages) if epsilon is None else calibrate(Plan(stages), PrivacyBudget(epsilon, problem.delta))
    start = MomentStart(n_components=k, form=FORM, dimension=q, rng=np.random.default_rng(seed))
    noise = NoNoise() if epsilon is None else SeededNoise(seed)
    ledger = Ledger(plan, None)
    mixture, _ = fit_mixture(Points(points), vectors, start=start, stage="em", ledger=ledger, noise=noise)
    return mixture


def exact_start(problem: Problem, points: np.ndarray, seed: int) -> GaussianMixture:
    """The start of `ours` without noise."""
    rng = np.random.default_rng(seed)
    start = MomentStart(n_components=problem.components, form=FORM, dimension=points.shape[1], rng=rng)
    mean, second = points.mean(axis=0), points.T @ points / len(points)
    whole = GaussianMixture(np.ones(1), mean[None], (second - np.outer(mean, mean))[None])
    return start.spread(whole)


def score(problem: Problem, mixture: GaussianMixture, test: np.ndarray) -> float:
    """Mean log density in units of the public scaling."""
    return float(mixture.log_densities(test).mean()) - test.shape[1] * float(np.log(problem.unit))


def published(problem: Problem, points: np.ndarray, composition: str, epsilon: float, seed: int) -> GaussianMixture:
    """The paper's GGG with a composition."""
    multiplier = published_multiplier(
        composition,
        iterations=problem.iterations,
        components=problem.components,
        epsilon=epsilon,
        delta=problem.delta,
        delta_i=problem.delta_i,
    )
    rng = np.random.default_rng(2000 + seed)
    start = exact_start(problem, points, seed)
    return noisy_mixture(points, start, iterations=problem.iterations, multiplier=float(multiplier or np.inf), rng=rng)


def run(problem: Problem, points: np.ndarray, arguments: argparse.Namespace, *, figure: str, title: str) -> None:
    """Fit what is missing, print the table, draw."""
    kind = "validation" if arguments.validate else "test"
    results = Results(arguments.out / f"{figure}_{kind}.jsonl")
    values: dict[tuple[str, float], list[float]] = defaultdict(list)
    for seed in range(arguments.splits):
        train, test = split(points, seed, validate=arguments.validate)
        exact = {
            "single Gaussian": lambda t=train: ours(problem, t, None, 0, components=1, iterations=2),
            "no noise, same start and J": lambda t=train, s=seed: ours(problem, t, None, s),
            "no noise, converged": lambda t=train, s=seed: ours(problem, t, None, s, iterations=100),
        }
        for name, fit in exact.items():
            found = results.get(f"{name} {seed}", lambda f=fit, held=test: score(problem, f(), held))
            values[name, 0.0].append(found)
        for epsilon in problem.epsilons:
            methods = {
                f"published GGG, {c}": lambda c=c, t=train, e=epsilon, s=seed: published(problem, t, c, e, s)
                for c in COMPOSITIONS
            }
            methods["joint, ours"] = lambda t=train, e=epsilon, s=seed: ours(problem, t, e, s)
            for name, fit in methods.items():
                key = f"{name} {epsilon} {seed}"
                found = results.get(key, lambda f=fit, held=test: score(problem, f(), held))
                values[name, epsilon].append(found)
    table = summary(values)
    found = {"scored_on": kind, "splits": arguments.splits, "loss_of_gap_at_1": gap(values), "mean_and_error": table}
    print(json.dumps(found, indent=1))
    draw(table, arguments.out / f"{figure}_{kind}.png", label=f"{kind} log-likelihood", title=title)


def main() -> None:
    arguments = parser(__doc__, "dp_em", repeats=("splits", 10), validate=True).parse_args()
    run(LIFE_SCIENCES, load(arguments), arguments, figure="figure_3", title="ds1.10, K = 3, J = 10")


def gap(values: dict[tuple[str, float], list[float]]) -> float:
    """Part of the gap (single Gaussian → converged mixture) that ours at ε = 1 loses beyond the noiseless run."""
    single, same, converged = (
        np.mean(values[name, 0.0]) for name in ("single Gaussian", "no noise, same start and J", "no noise, converged")
    )
    return round(float((same - np.mean(values["joint, ours", 1.0])) / (converged - single)), 4)


if __name__ == "__main__":
    main()
