"""DP-EM as printed, in every form, on Life Sciences; and factor analysis. NOT PRIVATE, but for factor analysis.

    python papers/dp_em/as_published.py --data FOLDER [--splits 5] [--figure 3] [--validate]

Mixtures: scenarios GGG and LLG, maximum likelihood and MAP, full and diagonal covariances, under linear, advanced, zCDP
and moments composition; all else as in `figure_3.py`. The printed updates add noise to quotients by exact masses, so no
ε holds for them. `if on sums` is ε of the same noise on sums of records, add/remove: what a private form would state.

With `--figure 2` scenario LLG alone, maximum likelihood, full covariances, on that figure's stand-in, beside GGG there.

Factor analysis: the second moment of images of norm at most 1 gets one Gaussian, drawn for a triangle and copied. ε is
true if n is public and records have a public bound. The paper divides by the largest norm in the data: not private.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import figure_2
import figure_3
import numpy as np
from compositions import COMPOSITIONS, gaussian_multiplier, per_mechanism_epsilon
from dp_accounting import dp_event, gaussian_mechanism
from dp_accounting.pld import PLDAccountant
from figure_3 import LIFE_SCIENCES, Problem, exact_start, score, split
from published import Printed, Prior

from sfumato.mechanisms.contributions import clip_rows
from sfumato.models.mixtures.covariances import DiagonalCovariance
from sfumato.models.mixtures.factors import CentredMoment, FactorModel
from sfumato.models.mixtures.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import parser, read, summary
from jobs import Results

EPSILONS = (0.1, 0.3, 1.0, 4.0)
PUBLISHED = [name for name in COMPOSITIONS if name != "pld"]
FORMS = {
    f"{scenario}, {estimate}, {shape}": Printed(scenario, shape == "diagonal", Prior() if estimate == "MAP" else None)
    for scenario in ("GGG", "LLG")
    for estimate in ("MLE", "MAP")
    for shape in ("full", "diagonal")
}
FACTORS, IMAGE_NORM, FACTOR_DELTA = 10, 22.0, 1e-4
NOT_PRIVATE = "NOT PRIVATE: the printed updates divide by exact masses, and no ε holds for them."


def epsilon_i_of(problem: Problem, form: Printed, composition: str, epsilon: float) -> float:
    """Return ε of every mechanism, as the composition solves it for the printed total.

    Raises:
        ValueError: the δᵢ alone are above δ.
    """
    found = per_mechanism_epsilon(
        composition, form.scenario, iterations=problem.iterations, components=problem.components,
        epsilon=epsilon, delta=problem.delta, delta_i=problem.delta_i,
    )  # fmt: skip
    if found is None:
        raise ValueError(f"{composition} composition cannot be used: the δᵢ alone are above δ.")
    return found


def on_sums(problem: Problem, scenario: str, epsilon_i: float) -> float:
    """Return ε of the same noise on sums of records of all components together, add/remove, by PLD.

    The printed sensitivities of sums are 2, or 2√d in absolute values; a record moves masses, means and
    covariances by 1, and means by √d in absolute values, over all components together.
    """
    gaussian = 2 * gaussian_multiplier(epsilon_i, problem.delta_i)
    n_gaussians = problem.iterations * (3 if scenario == "GGG" else 1)
    if scenario == "GGG":
        return float(gaussian_mechanism.get_epsilon_gaussian(gaussian / math.sqrt(n_gaussians), problem.delta))
    accountant = PLDAccountant(value_discretization_interval=min(1e-3, epsilon_i / 20))
    laplace = dp_event.LaplaceDpEvent(2 / epsilon_i)
    accountant.compose(dp_event.SelfComposedDpEvent(laplace, 2 * problem.iterations))
    accountant.compose(dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(gaussian), n_gaussians))
    return float(accountant.get_epsilon(problem.delta))


def fit(problem: Problem, form: Printed, points: np.ndarray, epsilon_i: float, seed: int) -> GaussianMixture:
    """Fit one form from the start that `figure_3.py` gives for nothing."""
    start = exact_start(problem, points, seed)
    if form.diagonal:
        variances = np.einsum("kii->ki", start.covariances).copy()
        start = GaussianMixture(start.weights, start.means, variances, DiagonalCovariance())
    return form.fit(
        points, start, iterations=problem.iterations, epsilon_i=epsilon_i,
        multiplier=gaussian_multiplier(epsilon_i, problem.delta_i), rng=np.random.default_rng(2000 + seed),
    )  # fmt: skip


def factor_noise(epsilon: float, n: int, *, delta: float = FACTOR_DELTA) -> tuple[float, float, float]:
    """Return the printed noise on Λ, and its true ε: add/remove, and replacing one record."""
    multiplier = gaussian_multiplier(epsilon, delta)
    true = (gaussian_mechanism.get_epsilon_gaussian(multiplier / distance, delta) for distance in (1, math.sqrt(2)))
    return (multiplier / n, *map(float, true))


def factors(points: np.ndarray, std: float, seed: int, *, iterations: int = 100) -> np.ndarray:
    """Return loadings by EM on a second moment with noise on its triangle, shape (d, factors)."""
    rng, (n, d) = np.random.default_rng(6000 + seed), points.shape
    triangle = np.triu(std * rng.standard_normal((d, d)))
    values, vectors = np.linalg.eigh(points.T @ points / n + triangle + np.triu(triangle, 1).T)
    moment = (vectors * np.maximum(values, 1e-6)) @ vectors.T  # EM diverges on a moment with negative eigenvalues
    model = FactorModel(np.zeros(d), rng.standard_normal((d, FACTORS)) / d, np.full(d, np.trace(moment) / d))
    held = CentredMoment(moment, 1.0, np.zeros(d))
    for _ in range(iterations):
        model = model.step(held, 1e-6)
    return model.loadings


def factor_analysis(folder: Path, results: Results, runs: int) -> dict[str, dict[str, float]]:
    """Measure how much of the subspace of loadings without noise is found, by number of images and ε."""
    with np.load(folder / "mnist.npz") as archive:
        images = archive["x_train"].reshape(-1, 784)
    points = clip_rows((images - 127.5) / 127.5, IMAGE_NORM) / IMAGE_NORM
    found = {}
    for n in (400, len(points)):
        for epsilon in (0.2, 0.3):
            std, added, replaced = factor_noise(epsilon, n)

            def overlap(n: int = n, std: float = std) -> list[float]:
                exact = np.linalg.qr(factors(points[:n], 0.0, 0))[0]
                noisy = (np.linalg.qr(factors(points[:n], std, seed))[0] for seed in range(runs))
                return [round(float(np.sum((loadings.T @ exact) ** 2)) / FACTORS, 4) for loadings in noisy]

            done = results.get(f"factor analysis {n} {epsilon:g} {runs}", overlap)
            shown = {"overlap": done, "true epsilon, add/remove": added, "true epsilon, replace one": replaced}
            found[f"{n} images, printed ε = {epsilon:g}"] = shown
    return found


def log_likelihoods(
    problem: Problem, points: np.ndarray, forms: Mapping[str, Printed], results: Results, splits: int, *, validate: bool
) -> dict[tuple[str, float], list[float]]:
    """Fit what is missing of some forms; of each split by form, composition and printed ε."""
    values: dict[tuple[str, float], list[float]] = defaultdict(list)
    for seed in range(splits):
        train, test = split(points, seed, validate=validate)
        for name, form in forms.items():
            for composition in PUBLISHED:
                for epsilon in EPSILONS:
                    epsilon_i = epsilon_i_of(problem, form, composition, epsilon)
                    label = f"{name}, {composition}"

                    def compute(form=form, epsilon_i=epsilon_i, seed=seed, train=train, test=test) -> float:
                        return score(problem, fit(problem, form, train, epsilon_i, seed), test)

                    values[label, epsilon].append(results.get(f"{label} {epsilon} {seed}", compute))
    return values


def main() -> None:
    """Fit what is missing, and print."""
    found = parser(__doc__, "dp_em", repeats=("splits", 5), validate=True)
    found.add_argument("--figure", type=int, default=3, choices=(2, 3))
    arguments = found.parse_args()
    kind = "validation" if arguments.validate else "test"
    shown = {"scored_on": kind, "splits": arguments.splits, "private": False}
    print(NOT_PRIVATE)
    if arguments.figure == 2:
        results = Results(arguments.out / f"as_published_figure_2_{kind}.jsonl")
        forms = {name: form for name, form in FORMS.items() if name == "LLG, MLE, full"}
        points = figure_2.load(arguments)
        of = log_likelihoods(figure_2.STAND_IN, points, forms, results, arguments.splits, validate=arguments.validate)
        results.note("as published, figure 2", {**shown, "mean_and_error": summary(of)})
        return
    problem, results = LIFE_SCIENCES, Results(arguments.out / f"as_published_{kind}.jsonl")
    of = log_likelihoods(
        problem, figure_3.load(arguments), FORMS, results, arguments.splits, validate=arguments.validate
    )
    private = {
        f"{scenario}, {composition}": {
            f"{epsilon:g}": round(
                on_sums(problem, scenario, epsilon_i_of(problem, Printed(scenario), composition, epsilon)), 3
            )
            for epsilon in EPSILONS
        }
        for scenario in ("GGG", "LLG")
        for composition in PUBLISHED
    }
    shown |= {
        "mean_and_error": summary(of),
        "epsilon_if_on_sums": private,
        "factor_analysis": factor_analysis(read(arguments), results, 3),
    }
    results.note("as published", shown)


if __name__ == "__main__":
    main()
