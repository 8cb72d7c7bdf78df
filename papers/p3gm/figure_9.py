"""Figure 9: ε against the noise of a step, by the published accounts and by ours, at the written settings of MNIST.

    python papers/p3gm/figure_9.py [--out FOLDER]

Reads no data. Theorem 4 of the paper: Rényi divergences of all parts, added at one order; the mixture as (2K + 1)
releases per iteration; moments of a step exact, orders 2 to 256. The baseline adds up three ε of δ/3 each: axes and
mixture by zCDP, steps by their moments. Ours: the privacy-loss distribution of the same noise, an iteration of the
mixture as one release.
"""

from __future__ import annotations

import math

import numpy as np
from cells import parser
from drawing import pyplot
from jobs import Results
from scipy.special import gammaln, logsumexp

from sfumato.privacy.accounting import account
from sfumato.privacy.plan import Plan, Stage

DELTA, ROWS, BATCH, EPOCHS = 1e-5, 63_000, 300, 4
K, ITERATIONS, AXES, MIXTURE = 3, 20, 48.0893, 74.774
STEPS, RATE = EPOCHS * ROWS // BATCH, BATCH / ROWS
SIGMAS = (1.0, 1.1, 1.2, 1.4, 1.6, 1.8, 2.1, 2.5, 3.0)
ORDERS = np.arange(2, 257)


def step_moment(order: int, sigma: float) -> float:
    """ln E[(P/Q)^α] of a step, α whole: Σ_k C(α, k) (1 − q)^{α−k} q^k e^{k(k−1)/(2σ²)}."""
    k = np.arange(order + 1)
    binomials = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    terms = binomials + (order - k) * math.log1p(-RATE) + k * math.log(RATE) + k * (k - 1) / (2 * sigma**2)
    return float(logsumexp(terms))


def steps_alone(sigma: float, delta: float = DELTA) -> float:
    """ε of the steps by their moments."""
    return min(float((STEPS * step_moment(a, sigma) + math.log(1 / delta)) / (a - 1)) for a in ORDERS)


def theorem_4(sigma: float) -> float:
    """The published account of everything."""

    def at(a: int) -> float:
        mixture = ITERATIONS * (2 * K + 1) * a / (2 * MIXTURE**2)
        return a / (2 * AXES**2) + mixture + (STEPS * step_moment(a, sigma) + math.log(1 / DELTA)) / (a - 1)

    return min(float(at(a)) for a in ORDERS)


def baseline(sigma: float) -> float:
    """Three accounts of δ/3 each, added up."""

    def zcdp(rho: float) -> float:
        return rho + 2 * math.sqrt(rho * math.log(3 / DELTA))

    axes, mixture = 1 / (2 * AXES**2), ITERATIONS * (2 * K + 1) / (2 * MIXTURE**2)
    return zcdp(axes) + zcdp(mixture) + steps_alone(sigma, DELTA / 3)


def ours(sigma: float) -> float:
    """The same noise; of an iteration's statistics at equal noise one release of √3 times less."""
    stages = [
        Stage(name="axes", noise_multiplier=AXES),
        Stage(name="mixture", noise_multiplier=MIXTURE / math.sqrt(3), count=ITERATIONS),
        Stage(name="steps", noise_multiplier=sigma, sampling_probability=RATE, count=STEPS),
    ]
    return float(account(Plan(stages), DELTA).epsilon)


def main() -> None:
    options = parser(__doc__).parse_args()
    lines = {"Theorem 4": theorem_4, "baseline": baseline, "ours": ours}
    found = {name: [round(line(sigma), 4) for sigma in SIGMAS] for name, line in lines.items()}
    Results(options.out / "figure_9.jsonl").note("figure 9", {"sigma": SIGMAS, **found})
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for (name, values), style in zip(found.items(), ("--", ":", "-"), strict=True):
        axis.plot(SIGMAS, values, style, label=name)
    axis.set(xlabel="noise multiplier of a step", ylabel="ε at δ = 1e-5", ylim=(0, None))
    axis.legend()
    axis.grid(alpha=0.3)
    figure.savefig(options.out / "figure_9.png", dpi=90)


if __name__ == "__main__":
    main()
