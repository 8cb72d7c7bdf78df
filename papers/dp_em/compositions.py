"""Noise that each composition allows DP-EM (Park et al. 2017), beside the joint release of this package.

J iterations, K components, M = J(2K + 1) mechanisms, total (ε, δ). Scenario GGG: all Gaussian; LLG: Laplace for weights
and means, Gaussian for covariances. A Gaussian of (εᵢ, δᵢ) has noise multiplier c(εᵢ) = √(2 ln(1.25/δᵢ))/εᵢ.

    python papers/dp_em/compositions.py [--picture compositions.png]

What is here accounts for the published algorithm and stays outside the package.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

from dp_accounting import dp_event, gaussian_mechanism
from dp_accounting.pld import PLDAccountant
from scipy.optimize import brentq

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import pyplot

COMPOSITIONS = ("linear", "advanced", "zcdp", "moments", "pld")
_MOST_MOMENTS = 100
_PLD_INTERVAL = 1e-3


def gaussian_multiplier(epsilon_i: float, delta_i: float) -> float:
    """Noise standard deviation ÷ sensitivity of the classical Gaussian mechanism."""
    return math.sqrt(2 * math.log(1.25 / delta_i)) / epsilon_i


def zcdp_rho(epsilon: float, delta: float) -> float:
    """ρ with ρ + 2√(ρ ln(1/δ)) = ε."""
    log = math.log(1 / delta)
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def laplace_log_moment(order: float, epsilon_i: float) -> float:
    """α_L(λ) of a pure εᵢ mechanism: Laplace noise of scale 1/εᵢ."""
    high = (order + 1) / (2 * order + 1) * math.exp(order * epsilon_i)
    return math.log(high + order / (2 * order + 1) * math.exp(-(order + 1) * epsilon_i))


def gaussian_log_moment(order: float, multiplier: float) -> float:
    """α_G(λ)."""
    return (order**2 + order) / (2 * multiplier**2)


def _root(excess: Callable[[float], float]) -> float:
    """εᵢ at which an increasing function crosses zero."""
    low = high = 1e-3
    while excess(low) > 0:
        low /= 4
    while excess(high) < 0:
        high *= 2
    return float(brentq(excess, low, high, xtol=1e-14, rtol=1e-10))


def per_mechanism_epsilon(
    composition: str, scenario: str, *, iterations: int, components: int, epsilon: float, delta: float, delta_i: float
) -> float | None:
    """εᵢ of every mechanism; None if the δᵢ alone exceed δ, so that the composition cannot be used.

    Args:
        composition: one of `COMPOSITIONS`.
        scenario: "GGG" or "LLG".
        iterations: J.
        components: K.
        epsilon: total ε.
        delta: total δ.
        delta_i: δ of each Gaussian; it only names the noise for zCDP, moments and PLD.
    """
    mechanisms = iterations * (2 * components + 1)
    gaussians = mechanisms if scenario == "GGG" else iterations * components
    laplaces = mechanisms - gaussians
    rest = delta - gaussians * delta_i

    def multiplier(epsilon_i: float) -> float:
        return gaussian_multiplier(epsilon_i, delta_i)

    if composition == "linear":
        return epsilon / mechanisms if rest >= 0 else None
    if composition == "advanced":
        if rest <= 0:
            return None
        wide = math.sqrt(2 * mechanisms * math.log(1 / rest))
        return _root(lambda e: mechanisms * e * math.expm1(e) + wide * e - epsilon)
    if composition == "zcdp":
        rho = zcdp_rho(epsilon, delta)
        return _root(lambda e: laplaces * e**2 / 2 + gaussians / (2 * multiplier(e) ** 2) - rho)
    if composition == "moments":

        def log_delta(e: float) -> float:
            return min(
                laplaces * laplace_log_moment(order, e)
                + gaussians * gaussian_log_moment(order, multiplier(e))
                - order * epsilon
                for order in range(1, _MOST_MOMENTS + 1)
            )

        return _root(lambda e: log_delta(e) - math.log(delta))
    if not laplaces:
        merged = float(gaussian_mechanism.get_sigma_gaussian(epsilon, delta)) * math.sqrt(gaussians)
        return gaussian_multiplier(1.0, delta_i) / merged
    return _mixed_by_pld(laplaces, gaussians, multiplier, epsilon, delta)


def _mixed_by_pld(
    laplaces: int, gaussians: int, multiplier: Callable[[float], float], epsilon: float, delta: float
) -> float:
    def total(e: float) -> float:
        accountant = PLDAccountant(value_discretization_interval=min(_PLD_INTERVAL, epsilon / 200))
        accountant.compose(dp_event.SelfComposedDpEvent(dp_event.LaplaceDpEvent(1 / e), laplaces))
        accountant.compose(dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(multiplier(e)), gaussians))
        return accountant.get_epsilon(delta)

    low = high = epsilon / (laplaces + gaussians)
    while total(high) < epsilon:
        low, high = high, high * 2
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if total(middle) <= epsilon else (low, middle)
    return low


def joint_sum_std(*, iterations: int, epsilon: float, delta: float, replace_one: bool) -> float:
    """Noise on every sum of the joint release with equal shares: one Gaussian of distance √3, or √6, per iteration."""
    merged = float(gaussian_mechanism.get_sigma_gaussian(epsilon, delta))
    return merged * math.sqrt(iterations * (6 if replace_one else 3))


def published_multiplier(composition: str, scenario: str = "GGG", **setting: float) -> float | None:
    """Noise standard deviation ÷ printed sensitivity of each Gaussian."""
    epsilon_i = per_mechanism_epsilon(composition, scenario, **setting)  # type: ignore[arg-type]
    return None if epsilon_i is None else gaussian_multiplier(epsilon_i, setting["delta_i"])


def table(iterations: int, components: int, delta_i: float, delta: float = 1e-4) -> list[dict[str, float | str | None]]:
    """Rows of the table: per ε, the multipliers, and what they mean on the sums (printed sensitivity 2)."""
    rows = []
    for epsilon in (0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 4.0):
        row: dict[str, float | str | None] = {"epsilon": epsilon}
        setting = {"iterations": iterations, "components": components, "delta": delta, "epsilon": epsilon}
        for scenario in ("GGG", "LLG"):
            for composition in COMPOSITIONS:
                mechanisms = iterations * (2 * components + 1)
                # the published δᵢ may exceed δ in sum: then these two take δ/(2M)
                exceeded = composition in ("linear", "advanced") and mechanisms * delta_i > delta
                own = delta / (2 * mechanisms) if exceeded else delta_i
                row[f"{scenario} {composition}"] = published_multiplier(composition, scenario, delta_i=own, **setting)
        row["sums, GGG zcdp"] = 2 * float(row["GGG zcdp"])  # type: ignore[arg-type]
        for name, replace_one in (("sums, joint add/remove", False), ("sums, joint replace-one", True)):
            row[name] = joint_sum_std(iterations=iterations, epsilon=epsilon, delta=delta, replace_one=replace_one)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", help="write the curves to this file; needs matplotlib")
    options = parser.parse_args()
    tables = {"figure 3 (J=10, K=3)": table(10, 3, 1e-8), "figure 2 (J=20, K=10)": table(20, 10, 1e-6)}
    print(json.dumps(tables, indent=1))
    if options.picture:
        draw(tables, options.picture)


def draw(tables: dict[str, list[dict[str, float | str | None]]], path: str) -> None:
    plt = pyplot()
    figure, axes = plt.subplots(1, len(tables), figsize=(11, 4.5), sharey=True)
    for axis, (title, rows) in zip(axes, tables.items(), strict=True):
        epsilons = [row["epsilon"] for row in rows]
        for composition in COMPOSITIONS:
            values = [row[f"GGG {composition}"] for row in rows]
            axis.loglog(epsilons, [None if v is None else 2 * v for v in values], label=f"published, {composition}")
        axis.loglog(epsilons, [row["sums, joint replace-one"] for row in rows], "k--", label="joint, replace-one")
        axis.loglog(epsilons, [row["sums, joint add/remove"] for row in rows], "k-", label="joint, add/remove")
        axis.set(title=title, xlabel="ε")
    axes[0].set_ylabel("standard deviation of the noise on a sum")
    axes[0].legend()
    figure.tight_layout()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
