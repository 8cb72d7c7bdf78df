"""Figure 4: k-means on Gowalla check-ins: normalised intra-cluster variance, K = 5, J = 10, δ = 1e-4, 10 folds.

    python papers/dp_em/figure_4.py --data FOLDER [--splits 10] [--places gowalla_nyc …] [--validate]
        [--iterations 60] [--epsilons 0.01]

K and J are not in the paper. Laplace noise under zCDP is less than under linear composition only for J > 2 ln(1/δ),
18.4 here. "Charged once" takes the K noisy means of an iteration for one mechanism, as clusters share no record, and
their sizes for another; "sizes exact" the means alone, by the exact sizes; the first form charges each mean. None is
private: all divide by exact masses. Places lie in public boxes, scaled so that the box fits into the unit ball; the
variance is in that scale. The grid has as many places as the paper, at the middles of 256 × 256 cells. The unit of
privacy is the check-in: those of one user are not protected together. The three baselines and "same start" begin at the
same random centres; ours by default buys the counts of a grid.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from compositions import zcdp_rho
from places import BOXES, PUBLISHED_ROWS, Place, fold, load, variance
from published import dp_lloyd, noisy_means

from sfumato.estimators import DPKMeans
from sfumato.methods.mixtures.centres import random_centres
from sfumato.privacy.budget import NonPrivate

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import draw, parser, read, summary
from jobs import Results

EPSILONS = (0.01, 0.1, 1.0)
CLUSTERS, ITERATIONS, DELTA = 5, 10, 1e-4
ONCE = "DP-EM as published, zCDP, charged once"
MEANS = "DP-EM as published, zCDP, charged once, sizes exact"


class Methods(Place):
    """The methods on one data set."""

    n_public = 100_000
    iterations = ITERATIONS

    def ours(self, rows: np.ndarray, epsilon: float | None, start: np.ndarray | None, seed: int) -> np.ndarray:
        model = DPKMeans(
            CLUSTERS, epsilon=NonPrivate() if epsilon is None else epsilon, delta=DELTA, n_public=self.n_public,
            bounds=(self.lower, self.upper), clip_norm=self.clip_norm, iterations=self.iterations, seed=seed,
            start="auto" if start is None else start * self.radius + self.middle,
        ).fit(rows)  # fmt: skip
        return self.inside(model.cluster_centers_)

    def baselines(self, rows: np.ndarray, epsilon: float, start: np.ndarray, seed: int) -> dict:
        points, rng = self.inside(rows), np.random.default_rng(4000 + seed)
        rho = zcdp_rho(epsilon, DELTA)
        per_iteration = np.sqrt(2 * rho / self.iterations)
        each, twice = (float(per_iteration / np.sqrt(count)) for count in (CLUSTERS + 1, 2))
        sized = {"iterations": self.iterations, "exact_sizes": True, "rng": np.random.default_rng(4100 + seed)}
        linear = 3 * self.iterations / epsilon
        common = {"iterations": self.iterations, "rng": rng}
        return {
            "DPLloyd, linear": lambda: dp_lloyd(points, start, scale=linear, **common),
            "DPLloyd, zCDP": lambda: dp_lloyd(points, start, scale=3 / per_iteration, **common),
            "DP-EM as published, zCDP": lambda: noisy_means(points, start, epsilon_i=each, **common),
            ONCE: lambda: noisy_means(points, start, epsilon_i=twice, **common),
            MEANS: lambda: noisy_means(points, start, epsilon_i=float(per_iteration), **sized),
        }


def main() -> None:
    arguments = parser(__doc__, "dp_em", repeats=("splits", 10), validate=True)
    arguments.add_argument("--places", nargs="+", default=list(BOXES), choices=BOXES)
    arguments.add_argument("--iterations", type=int, default=ITERATIONS)
    arguments.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    arguments = arguments.parse_args()
    kind = "validation" if arguments.validate else "test"
    tables, again = {}, "" if arguments.iterations == ITERATIONS else f"_J{arguments.iterations}"
    for name in arguments.places:
        rows, place = load(read(arguments), name), Methods(BOXES[name])
        if len(rows) >= PUBLISHED_ROWS:
            place.n_public = 1_000_000
        place.iterations = arguments.iterations
        results = Results(arguments.out / f"figure_4_{name}_{kind}{again}.jsonl")
        values: dict[tuple[str, float], list[float]] = defaultdict(list)
        for index in range(arguments.splits):
            train, test = fold(rows, index, validate=arguments.validate)
            held = place.inside(test)
            start = random_centres(CLUSTERS, 2, np.random.default_rng(5000 + index))
            exact = {
                "no noise, same start": lambda t=train, s=start, i=index, p=place: p.ours(t, None, s, i),
                "no noise, grid": lambda t=train, i=index, p=place: p.ours(t, None, None, i),
            }
            for method, fit in exact.items():
                values[method, 0.0].append(results.get(f"{method} {index}", lambda f=fit, h=held: variance(h, f())))
            for epsilon in arguments.epsilons:
                methods = place.baselines(train, epsilon, start, index)
                methods["joint, same start"] = lambda t=train, e=epsilon, s=start, i=index, p=place: p.ours(t, e, s, i)
                methods["joint, bought grid (ours)"] = lambda t=train, e=epsilon, i=index, p=place: p.ours(
                    t, e, None, i
                )
                for method, fit in methods.items():
                    found = results.get(f"{method} {epsilon} {index}", lambda f=fit, h=held: variance(h, f()))
                    values[method, epsilon].append(found)
        tables[name] = summary(values)
        picture = arguments.out / f"figure_4_{name}_{kind}{again}.png"
        draw(tables[name], picture, label=f"{kind} NICV", title=f"{name}, K = {CLUSTERS}, J = {place.iterations}")
    print(json.dumps({"scored_on": kind, "folds": arguments.splits, "mean_and_error": tables}, indent=1))


if __name__ == "__main__":
    main()
