"""Figure 2: ε of DPGM's MNIST run against epochs, as published, corrected, and ours. Reads no data.

    python papers/dpgm/accounts.py [--out FOLDER] [--run]

With `--run` the accounts of the MNIST run after 20 epochs alone.

Published: log-moments with half the Gaussian's in k-means (D1), a Hölder bound on the histogram and the gradient of
one batch (D4), a rate of sampling q although the chosen cluster is seen (D2), classic conversion. Corrected: the
published *schedule*, one cluster per step, sizes pretended public and equal (they are not, so even this guards nothing,
D3), at its exact cost under add/remove. Ours: one Poisson sample of all records per step, every network noisy, and one
event for histogram and gradient. All at the published noise, of standard deviation √2·σ times one record's bound.
The D's are in the README.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from functools import lru_cache
from pathlib import Path

import numpy as np
from dp_accounting.pld import pld_pmf, privacy_loss_distribution

from sfumato.privacy.accounting import account
from sfumato.privacy.plan import Plan, Stage

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import pyplot

DELTA, KMEANS_ITERATIONS, SIGMA_C, CLUSTERS = 1e-5, 20, 4.0, 10
ROOT2 = math.sqrt(2)
_ORDERS, _SPLITS, _GRID = 32, 99, 1e-4


@lru_cache(maxsize=4096)
def log_moment(order: float, sigma: float, q: float) -> float:
    """Return the published α(λ; σ): ln max of E₁ and E₂, the two mixtures' moments, by quadrature on a fine grid."""
    # the integrands are Gaussians about points of (−λ, λ + 1), of width σ
    x = np.linspace(-order - 30 * sigma, order + 1 + 30 * sigma, 20_001)
    base = -(x**2) / (2 * sigma**2)
    ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / (2 * sigma**2))  # ln μ₁/μ₀
    step = math.log(x[1] - x[0]) - math.log(sigma * math.sqrt(2 * math.pi))
    first, second = (np.logaddexp.reduce(base + power * ratio) + step for power in (-order, order + 1))
    return float(max(first, second))


def published(
    epochs: float, q: float = 0.0017, sigma_g: float = 1.0, sigma_k: float = 40.0, *, lemma_fixed: bool = False
) -> float:
    """Return the printed ε; with the lemma fixed, k-means' moments are those of the Gaussian (D1)."""
    steps = n_steps(epochs, q)
    best = math.inf
    for order in range(1, _ORDERS + 1):
        clusters = KMEANS_ITERATIONS * (order**2 + order) / (2 * sigma_k**2) * (2 if lemma_fixed else 1)
        shares = np.arange(1, _SPLITS + 1) / (_SPLITS + 1)
        step = min(
            j * log_moment(order / j, SIGMA_C, q) + (1 - j) * log_moment(order / (1 - j), sigma_g, q) for j in shares
        )
        best = min(best, (clusters + steps * step - math.log(DELTA)) / order)
    return best


def kmeans_noise(epsilon: float) -> float:
    """Return σ_K at which the printed moments give ε to k-means alone."""
    orders = np.arange(1, 1_000)
    left = epsilon * orders + math.log(DELTA)
    return float(np.sqrt(KMEANS_ITERATIONS * (orders**2 + orders)[left > 0] / (2 * left[left > 0])).min())


def kmeans_epsilon(sigma_k: float) -> float:
    """Return the exact ε of k-means at that noise, add/remove."""
    stage = Stage(name="k", noise_multiplier=sigma_k, count=KMEANS_ITERATIONS)
    return account(Plan([stage]), DELTA, interval=_GRID).epsilon


def n_steps(epochs: float, q: float) -> int:
    """Return the steps of so many epochs of ⌈1/q⌉."""
    return round(epochs * math.ceil(1 / q))


def merged(*multipliers: float) -> float:
    """Return the multiplier of several Gaussian releases of one record or sample."""
    return sum(m**-2 for m in multipliers) ** -0.5


def corrected(
    epochs: float, q: float = 0.0017, sigma_g: float = 1.0, sigma_k: float = 40.0, *, clusters: int = CLUSTERS
) -> float:
    """Return the exact ε of the published schedule, if clusters were public and equal: add/remove.

    A step shows its cluster: with probability 1 − 1/k a record is not in it and nothing is lost, else the step samples
    it at rate qk. So the distribution of the privacy loss is a mixture of the two.
    """
    noise = ROOT2 * merged(SIGMA_C, sigma_g)
    seen = privacy_loss_distribution.from_gaussian_mechanism(
        noise, sampling_prob=min(1.0, q * clusters), value_discretization_interval=_GRID
    )
    parts = [_mixed(pmf, 1 / clusters) for pmf in (seen._pmf_remove, seen._pmf_add)]
    step = privacy_loss_distribution.PrivacyLossDistribution(*parts)
    kmeans = privacy_loss_distribution.from_gaussian_mechanism(
        sigma_k / math.sqrt(KMEANS_ITERATIONS), value_discretization_interval=_GRID
    )
    return float(step.self_compose(n_steps(epochs, q)).compose(kmeans).get_epsilon_for_delta(DELTA))


def _mixed(pmf: pld_pmf.PLDPmf, share: float) -> pld_pmf.PLDPmf:
    """Return the mixture of a loss and none at all."""
    dense = pmf.to_dense_pmf()
    probs = {dense._lower_loss + i: share * p for i, p in enumerate(dense._probs)}
    probs[0] = probs.get(0, 0.0) + 1 - share
    return pld_pmf.create_pmf(probs, _GRID, share * dense._infinity_mass, pessimistic_estimate=True)


def ours(epochs: float, q: float = 0.0017, sigma_g: float = 1.0, sigma_k: float = 40.0) -> float:
    """Return ε of training all clusters at once at the published noise, add/remove."""
    return account(our_plan(epochs, q, sigma_g, sigma_k), DELTA, interval=_GRID).epsilon


def our_plan(epochs: float, q: float, sigma_g: float, sigma_k: float) -> Plan:
    """Return the stages: counts and sums at √2·σ_K each are one Gaussian of σ_K."""
    return Plan(
        [
            Stage(name="clusters", noise_multiplier=sigma_k, replace_distance=ROOT2, count=KMEANS_ITERATIONS),
            Stage(
                name="networks",
                noise_multiplier=ROOT2 * merged(SIGMA_C, sigma_g),
                sampling_probability=q,
                count=n_steps(epochs, q),
            ),
        ]
    )


LINES = {"as published": published, "published schedule, corrected": corrected, "ours": ours}
PANELS = {
    "q": ("q", (0.0005, 0.001, 0.0017, 0.005)),
    "σ_K": ("sigma_k", (20.0, 40.0, 80.0)),
    "σ_G": ("sigma_g", (0.7, 1.0, 1.5, 2.0)),
}
EPOCHS = (1, 5, 10, 20, 30, 40, 50)


def of_run() -> dict[str, object]:
    """Return ε of the MNIST run: as printed, and as it should be."""
    return {
        "as_printed": round(published(20), 3),
        "lemma_fixed": round(published(20, lemma_fixed=True), 3),
        "published_schedule_exact": {str(k): round(corrected(20, clusters=k), 3) for k in (2, 5, 10, 20)},
        "ours": round(ours(20), 4),
    }


def main() -> None:
    """Compute all curves, and draw them."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("papers/dpgm/out"))
    arguments.add_argument("--run", action="store_true")
    options = arguments.parse_args()
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    if options.run:
        (out / "accounts.json").write_text(json.dumps(of_run(), indent=1) + "\n", encoding="utf-8")
        return
    table = {
        panel: {
            f"{panel} = {value:g}": {
                line: [round(compute(epochs, **{name: value}), 4) for epochs in EPOCHS]
                for line, compute in LINES.items()
            }
            for value in values
        }
        for panel, (name, values) in PANELS.items()
    }
    text = json.dumps({"epochs": EPOCHS, "epsilon": table}, indent=1)
    (out / "figure_2.json").write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")
    plt = pyplot()
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.5))
    for axis, (panel, curves) in zip(axes, table.items(), strict=True):
        for i, (label, lines) in enumerate(curves.items()):
            for style, (line, values) in zip((":", "--", "-"), lines.items(), strict=True):
                axis.plot(EPOCHS, values, style, color=f"C{i}", label=f"{label}, {line}")
        axis.set(xlabel="epochs", ylabel="ε at δ = 1e-5", title=f"varying {panel}", yscale="log")
        axis.legend(fontsize=6)
    figure.tight_layout()
    figure.savefig(out / "figure_2.png", dpi=120)


if __name__ == "__main__":
    main()
