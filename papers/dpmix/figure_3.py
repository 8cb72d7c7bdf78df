"""Fig. 3: ε against σ_X = σ_Y for several ℓ, as published (exponent corrected) and ours. Reads no data.

    python papers/dpmix/figure_3.py [--out FOLDER]

d_X = d_Y = 50, n = T = 10^6, δ = 1/n. Ours, at the same noise: subsets with the sensitivities √d of the source, and
Poisson samples under the norm of 1 that the source assumes too.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
from mixed import arguments
from published import squared_distance, theorem_1

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import pyplot

from sfumato.privacy.accounting import account
from sfumato.privacy.plan import Plan, Stage, Subset

N, D, DELTA = 10**6, 50, 1e-6
MULTIPLIERS = {1: (0.2, 0.4), 16: (0.25, 0.6), 64: (0.3, 1.0), 256: (0.5, 1.6), 1024: (0.8, 3.0)}  # z at √d
POINTS = 3
MOST = 60.0


def main() -> None:
    options = arguments(__doc__).parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    table = {}
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(7, 5))
    for colour, (degree, (low, high)) in enumerate(MULTIPLIERS.items()):
        zs = np.geomspace(low, high, POINTS)
        sigmas = [z / degree * math.sqrt(2 * D) for z in zs]
        curves = {
            "Theorem 1": [theorem_1(squared_distance(D, D, s, s), degree, N, N, DELTA) for s in sigmas],
            "subsets": [subsets(degree, 1 / z) for z in zs],
            "Poisson, norm 1": [poisson(degree, s) for s in sigmas],
        }
        table[str(degree)] = {"sigma": sigmas, **curves}
        for (name, values), style in zip(curves.items(), ("--", "-", ":"), strict=True):
            label = f"ℓ = {degree}, {name}" if degree == 64 or style == "-" else None
            axis.plot(sigmas, np.minimum(values, MOST), style, color=f"C{colour}", label=label)
        print(degree, {name: np.round(values, 4).tolist() for name, values in curves.items()}, flush=True)
    axis.set(xscale="log", yscale="log", xlabel="σ", ylabel="ε", title="n = T = 10⁶, δ = 1/n, d = 50 + 50")
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(options.out / "figure_3.png", dpi=120)
    (options.out / "figure_3.json").write_text(json.dumps(table, indent=1), encoding="utf-8")


def subsets(degree: int, distance: float) -> float:
    return _epsilon(
        Stage(name="m", noise_multiplier=1 / distance, replace_distance=1.0, subset=Subset(degree, N), count=N)
    )


def poisson(degree: int, sigma: float) -> float:
    z = degree * sigma / math.sqrt(2)
    return _epsilon(Stage(name="m", noise_multiplier=z, sampling_probability=degree / N, count=N, replace_distance=1.0))


def _epsilon(stage: Stage) -> float:
    return account(Plan([stage]), DELTA).epsilon


if __name__ == "__main__":
    main()
