"""Columns that end at their peak: does a fit lose the last value?

Single columns of whole numbers whose most frequent value is their last, or their first: ages of 21 to 35 that rise to a
hard end, rows that rise evenly from 1 to 10 in bounds of 0 to 20, marks of 1 to 6 whose worst is commonest in bounds of
0 to 10, a steep fall from 18 on. A fit fails where its samples' total variation from the records is above .02 and above
five times that of the raw noisy histogram with all of the budget.

    python benchmarks/peaks.py [--rows 5000 20000 200000 1000000] [--fits 16] [--epsilon 1]
"""

from __future__ import annotations

import argparse
import math

import numpy as np
import pandas as pd
from scipy import optimize, stats

import sfumato

SAMPLES = 400_000
DELTA = 1e-7


def laws() -> dict[str, tuple[int, int, np.ndarray]]:
    """Name → bounds and the law of the whole numbers within."""
    ages = np.zeros(101)
    ages[21:36] = np.linspace(1, 6, 15)
    ten = np.zeros(21)
    ten[1:11] = np.arange(1, 11)
    marks = np.zeros(11)
    marks[1:7] = (4, 6, 9, 12, 20, 35)
    fall = np.zeros(101)
    fall[18:] = np.exp(-np.arange(83) / 4)
    found = {"ages 21-35": (0, 100, ages), "1-10 evenly": (0, 20, ten), "marks": (0, 10, marks), "fall": (0, 100, fall)}
    return {name: (low, high, law / law.sum()) for name, (low, high, law) in found.items()}


def noise_of(epsilon: float, delta: float) -> float:
    """The deviation of a count's noise (Balle and Wang 2018, replace-one: two cells change)."""

    def excess(sigma: float) -> float:
        shift = math.sqrt(2) / sigma
        low = stats.norm.cdf(shift / 2 - epsilon / shift)
        return low - math.exp(epsilon) * stats.norm.cdf(-shift / 2 - epsilon / shift) - delta

    return float(optimize.brentq(excess, 0.05, 1e4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[5_000, 20_000, 200_000, 1_000_000])
    parser.add_argument("--fits", type=int, default=16)
    parser.add_argument("--epsilon", type=float, default=1.0)
    asked = parser.parse_args()
    sigma = noise_of(asked.epsilon, DELTA)
    failures = 0
    for name, (low, high, law) in laws().items():
        for n in asked.rows:
            raw = 0.5 * law.size * sigma * math.sqrt(2 / math.pi) / n
            off = []
            for seed in range(asked.fits):
                rng = np.random.default_rng([seed, n])
                values = rng.choice(law.size, n, p=law) + low
                schema = {"rows": n, "columns": {"value": {"kind": "integer", "lower": low, "upper": high}}}
                method = sfumato.MaxEntropy(epsilon=asked.epsilon, delta=DELTA)
                release = method.fit(pd.DataFrame({"value": values}), schema=schema, seed=seed)
                drawn = release.sample(SAMPLES, seed=seed)["value"].to_numpy()
                shares = [np.bincount(some - low, minlength=law.size) / some.size for some in (values, drawn)]
                off.append(0.5 * float(np.abs(shares[0] - shares[1]).sum()))
            failed = sum(each > max(0.02, 5 * raw) for each in off)
            failures += failed
            print(
                f"{name:12} {n:9,} rows: total variation {np.mean(off):.4f} on the mean, {max(off):.4f} at worst, raw "
                f"{raw:.4f}; {failed} of {asked.fits} fail",
                flush=True,
            )
    print(f"{failures} failures")


if __name__ == "__main__":
    main()
