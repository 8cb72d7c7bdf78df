"""Levels and trends of linked rows: what samples keep where persons have them, and where they have none.

    python benchmarks/levels.py [levels|plain ...] [--units 8000] [--epsilon 1 3 0] [--fits 2] [--out FILE.json]

Two laws, δ = 1e-6, add or remove one person with all rows, seeds 1, 2, …; an ε of 0 is no noise:

    levels   a score with a level (deviation 8) and a slope (1.5, 1 more with the new drug) of the person, noise of 4,
             and a state after which nothing follows
    plain    numbers that have nothing to do with each other: one apart, one mostly 0, and a count

Figures: correlations with rows before, the deviation of persons' slopes, what the drug does to these; of `plain` also
the share of 0 and the mean. What a sample of `plain` has between rows far apart and the records have not is made up.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from sfumato import MaxEntropy, NonPrivate, Schema

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from fixtures.levels import LAWS, levels, schema

DELTA = 1e-6
LAGS = (1, 2, 3, 5)
NUMBERS = {"levels": ("score",), "plain": ("apart", "cost", "count")}


def figures(law: str, frame: pd.DataFrame) -> dict[str, float]:
    """What rows of a person have to do with each other."""
    frame = frame.sort_values(["person", "day"], kind="stable")
    persons, found = frame.groupby("person"), {"rows a person": len(frame) / frame["person"].nunique()}
    for name in NUMBERS[law]:
        for lag in LAGS:
            found[f"{name} {lag} before"] = frame[name].astype(float).corr(persons[name].shift(lag).astype(float))
        found[f"{name} mean"] = frame[name].mean()
        found[f"{name} 0"] = (frame[name] == 0).mean()
    return found | (slopes(frame) if law == "levels" else {})


def slopes(frame: pd.DataFrame) -> dict[str, float]:
    """Slopes of persons of four rows or more, and rows after an end."""
    several = frame[frame.groupby("person")["score"].transform("size") >= 4]
    persons = several.groupby("person")
    place = persons.cumcount() - (persons["score"].transform("size") - 1) / 2
    slope = (place * several["score"]).groupby(several["person"]).sum() / (place**2).groupby(several["person"]).sum()
    drug, ended = persons["drug"].first(), (frame["state"] == "ended").astype(int)
    after = ended.groupby(frame["person"]).cumsum() - ended
    return {
        "deviation of slopes": slope.std(),
        "effect of the drug": slope[drug == "new"].mean() - slope[drug == "old"].mean(),
        "rows after an end": float((after > 0).sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("laws", nargs="*", default=list(LAWS))
    parser.add_argument("--units", type=int, default=8_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0, 0.0])
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    lines: list[dict[str, Any]] = []
    for law in args.laws:
        real = levels(law, args.units)
        print(law, "real", {name: round(float(value), 3) for name, value in figures(law, real).items()}, flush=True)
        for epsilon in args.epsilon:
            method = MaxEntropy(epsilon=epsilon, delta=DELTA) if epsilon else MaxEntropy(epsilon=NonPrivate())
            for fit in range(1, args.fits + 1):
                start = time.perf_counter()
                release = method.fit(real, schema=Schema.from_dict(schema(law, args.units)), seed=fit)
                seconds = time.perf_counter() - start
                made = {k: float(v) for k, v in figures(law, release.sample(args.units, seed=fit)).items()}
                lines.append({"law": law, "epsilon": epsilon, "fit": fit, "seconds": seconds, **made})
                shown = {name: round(value, 3) for name, value in made.items()}
                print(law, epsilon, fit, shown, f"{seconds:.0f} s", flush=True)
    if args.out:
        args.out.write_text(json.dumps(lines, indent=1))


if __name__ == "__main__":
    main()
