"""Figure 1, an illustration: a mixture of three Gaussians in the plane, fitted without noise, as printed, and by ours.

    python papers/dp_em/figure_1.py [--points 10000] [--epsilon 1] [--seed 0] [--out FOLDER]

The caption's "104 points" may be 10⁴ where the power is lost; --points 104 draws the other reading. The points are
drawn here, in the unit disc. δ = 1e-4 as in Figure 3; J = 30: ten from this start do not part the three without noise
either. The printed form, GGG with zCDP, divides by exact masses and is not private; ours buys a start as well.
Lines are of two standard deviations.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from figure_3 import Problem, ours, published

from sfumato.mechanisms.contributions import clip_rows
from sfumato.models.mixtures.mixture import GaussianMixture

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import parser, pyplot

WEIGHTS = np.array([0.3, 0.4, 0.3])
MEANS = np.array([[-0.5, -0.2], [0.1, 0.45], [0.45, -0.35]])
STDS = np.array([[0.10, 0.16], [0.18, 0.08], [0.12, 0.12]])
PLANE = Problem(components=3, iterations=30, delta=1e-4, delta_i=1e-8, unit=1.0)
SHOWN = 2_000


def drawn(n: int, seed: int) -> np.ndarray:
    """Return points of the mixture, clipped to the unit disc, shape (n, 2)."""
    rng = np.random.default_rng(seed)
    which = rng.choice(len(WEIGHTS), size=n, p=WEIGHTS)
    return clip_rows(MEANS[which] + STDS[which] * rng.standard_normal((n, 2)), 1.0)


def fitted(points: np.ndarray, epsilon: float, seed: int) -> dict[str, GaussianMixture]:
    """Return the mixture of each method by its name."""
    return {
        "EM, no noise": ours(PLANE, points, None, seed, iterations=100),
        f"EM, no noise, J = {PLANE.iterations}": ours(PLANE, points, None, seed),
        f"as printed, zCDP, ε = {epsilon:g}: not private": published(PLANE, points, "zcdp", epsilon, seed),
        f"ours, ε = {epsilon:g}": ours(PLANE, points, epsilon, seed),
    }


def scores(mixtures: dict[str, GaussianMixture], held: np.ndarray) -> dict[str, float]:
    """Return the mean log density of points that were not fitted."""
    return {name: round(float(mixture.log_densities(held).mean()), 4) for name, mixture in mixtures.items()}


def picture(points: np.ndarray, mixtures: dict[str, GaussianMixture], path: Path) -> None:
    """Draw the points and every mixture's Gaussians, a panel a method."""
    plt = pyplot()
    figure, axes = plt.subplots(1, len(mixtures), figsize=(4 * len(mixtures), 4), layout="constrained")
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    for axis, (title, mixture) in zip(axes, mixtures.items(), strict=True):
        axis.scatter(*points[:SHOWN].T, s=3, color="0.7")
        for mean, covariance in zip(mixture.means, mixture.covariances, strict=True):
            axis.plot(*(mean[:, None] + 2 * np.linalg.cholesky(covariance) @ circle), lw=2)
        axis.set(title=title, aspect="equal", xlim=(-1, 1), ylim=(-1, 1))
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    arguments = parser(__doc__, "dp_em")
    arguments.add_argument("--points", type=int, default=10_000)
    arguments.add_argument("--epsilon", type=float, default=1.0)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()
    points = drawn(options.points, options.seed)
    mixtures = fitted(points, options.epsilon, options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    picture(points, mixtures, options.out / "figure_1.png")
    print(scores(mixtures, drawn(10_000, options.seed + 1)))


if __name__ == "__main__":
    main()
