"""Values that many rows share: whether whole fits keep them. Twelve made-up columns in one table.

Hours of work (40), heaped ages, a minimum wage, prices that end in .99, days off (0), marks with a pass at 50, values
without any such (heights), incomes in thousands, dates on firsts of months, ages with -9 for missing, gains (mostly 0),
children. For each column, over the seeds:

    real, samples   share of the value that most rows have, and what samples have of it
    kept            part of the mass of all shared values (1 % of the rows at least, three times their neighbours)
    tv, worst       total variation of single values: mean and worst of the fits
    raw             the same of the simplest thing: noisy counts of all steps, each column with a twelfth of the budget
    w               Wasserstein distance, in that of a tenth of the rows

    python benchmarks/columns.py [--rows 1000 10000 100000] [--epsilon 1] [--fits 5] [--adult adult.parquet]

With --adult: a thousand rows of that table as well, its ages, hours and gains.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from peaks import noise_of
from scipy import stats

import sfumato

DELTA = 1e-5
Made = dict[str, tuple[np.ndarray, dict[str, object]]]


def table(n: int, rng: np.random.Generator) -> Made:
    """Name → values in steps, and the column's entry in a schema."""
    age = np.clip(rng.normal(46, 19, n), 18, 98)
    heap = rng.random(n)
    age = np.where(heap < 0.25, np.round(age / 10) * 10, np.where(heap < 0.45, np.round(age / 5) * 5, np.round(age)))
    hours = np.where(rng.random(n) < 0.45, 40, np.clip(rng.normal(40, 13, n), 1, 99)).round()
    wage = 7.25 + np.maximum(0, np.exp(rng.normal(2.2, 0.9, n)) - 3)
    wage = np.where(rng.random(n) < 0.12, 7.25, np.minimum(wage, 60))
    price, end = np.exp(rng.normal(3.2, 0.9, n)), rng.random(n)
    price = np.clip(np.where(end < 0.6, np.floor(price) + 0.99, price), 0.05, 1000)
    off = np.where(rng.random(n) < 0.82, 0, 1 + rng.negative_binomial(0.7, 0.03, n))
    marks = np.round(100 * rng.beta(5, 2.6, n))
    marks = np.where((marks >= 46) & (marks < 50) & (rng.random(n) < 0.7), 50, marks)
    income, whole = np.exp(rng.normal(10.4, 0.8, n)), rng.random(n) < 0.5
    income = np.clip(np.where(whole, np.round(income / 1000) * 1000, np.round(income / 10) * 10), 0, 500_000)
    day = np.datetime64("2000-01-01") + rng.triangular(0, 8000, 9130, n).astype(int)
    day = np.where(rng.random(n) < 0.35, day.astype("M8[M]").astype("M8[D]"), day)
    coded = np.where(rng.random(n) < 0.08, -9, np.clip(rng.normal(52, 16, n), 18, 99).round())
    gain = np.where(rng.random(n) < 0.92, 0, np.round(np.exp(rng.normal(8.5, 1, n))))

    def whole_number(lower: int, upper: int) -> dict[str, object]:
        return {"kind": "integer", "lower": lower, "upper": upper}

    def cents(upper: int, step: float = 0.01) -> dict[str, object]:
        return {"kind": "continuous", "lower": 0, "upper": upper, "resolution": step}

    return {
        "hours": (hours, whole_number(0, 100)), "age": (age, whole_number(0, 120)), "wage": (wage.round(2), cents(60)),
        "price": (price.round(2), cents(1000)), "off": (np.minimum(off, 365), whole_number(0, 365)),
        "marks": (marks, whole_number(0, 100)), "height": (rng.normal(170, 10, n).round(1), cents(250, 0.1)),
        "income": (income, cents(500_000, 10)),
        "day": (day, {"kind": "datetime", "lower": "2000-01-01", "upper": "2024-12-31"}),
        "coded age": (coded, whole_number(-9, 120)), "gain": (np.minimum(gain, 99_999), whole_number(0, 99_999)),
        "children": (rng.poisson(1.4, n), whole_number(0, 15)),
    }  # fmt: skip


def steps(values: object, entry: dict[str, object]) -> np.ndarray:
    """Values as whole steps from the lower bound."""
    if entry["kind"] == "datetime":
        days = pd.to_datetime(pd.Series(values)).to_numpy().astype("M8[D]") - np.datetime64(str(entry["lower"]))
        return days.astype(int)
    numbers = np.asarray(values, dtype=float) - float(str(entry["lower"]))
    return np.rint(numbers / float(str(entry.get("resolution", 1)))).astype(int)


def size_of(entry: dict[str, object]) -> int:
    """How many steps a column has."""
    return int(steps([entry["upper"]], entry)[0]) + 1


def raw(real: np.ndarray, size: int, std: float, rng: np.random.Generator) -> float:
    """Total variation of noisy counts of all steps, those below 0 at 0."""
    counts = np.bincount(real, minlength=size).astype(float)
    noisy = np.maximum(counts + std * rng.standard_normal(size), 0)
    return float(np.abs(counts / counts.sum() - noisy / noisy.sum()).sum() / 2)


def scores(real: np.ndarray, drawn: np.ndarray, tenth: np.ndarray) -> dict[str, float]:
    """How far samples are from the records, both in steps."""
    size = int(max(real.max(), drawn.max())) + 6
    p, q = (np.bincount(x, minlength=size) / x.size for x in (real, drawn))
    padded = np.pad(p, 5)
    around = np.median([padded[5 + s : 5 + s + size] for s in (-5, -4, -3, -2, 2, 3, 4, 5)], axis=0)
    shared = np.flatnonzero((p >= 0.01) & (p > 3 * around))
    top = int(np.argmax(p))
    return {
        "real": float(p[top]), "samples": float(q[top]),
        "kept": float(np.minimum(p, q)[shared].sum() / p[shared].sum()) if shared.size else np.nan,
        "tv": float(np.abs(p - q).sum() / 2),
        "w": float(stats.wasserstein_distance(real, drawn) / stats.wasserstein_distance(real, tenth)),
    }  # fmt: skip


def adult(path: Path, n: int) -> Made:
    """A thousand rows of Adult: name → values, and the column's entry; other columns with the labels they have."""
    frame = pd.read_parquet(path).sample(n, random_state=0).reset_index(drop=True)
    bounds = {"age": (17, 90), "hours-per-week": (1, 99), "capital-gain": (0, 99_999), "capital-loss": (0, 4_500)}
    bounds |= {"education-num": (1, 16), "fnlwgt": (0, 1_500_000)}
    made: Made = {}
    for name in frame:
        if name in bounds:
            made[name] = (frame[name].to_numpy(), dict(zip(("lower", "upper"), bounds[name], strict=True)))
            made[name][1]["kind"] = "integer"
        else:
            labels = frame[name].astype("object").where(frame[name].notna(), "none").astype(str)
            made[name] = (labels.to_numpy(), {"kind": "categorical", "categories": sorted(labels.unique())})
    return made


def measure(title: str, made: Made, epsilon: float, fits: int) -> None:
    """Print a line for each column of a table, and their means."""
    frame = pd.DataFrame({name: values for name, (values, _) in made.items()})
    entries = {name: entry for name, (_, entry) in made.items()}
    n = len(frame)
    tenth = frame.sample(n // 10, random_state=0)
    std = noise_of(epsilon, DELTA) * np.sqrt(len(made) / 2)  # of add or remove one record
    found = []
    for seed in range(fits):
        method = sfumato.MaxEntropy(epsilon=epsilon, delta=DELTA)
        release = method.fit(frame, schema={"columns": entries, "rows": n}, seed=seed)
        rows, rng = release.sample(max(n, 20_000), seed=seed), np.random.default_rng(seed)
        for name, entry in entries.items():
            if entry["kind"] != "categorical":
                of = [steps(x[name], entry) for x in (frame, rows, tenth)]
                found.append({"column": name, **scores(*of), "raw": raw(of[0], size_of(entry), std, rng)})
    by = pd.DataFrame(found).groupby("column", sort=False)
    means = by.mean()
    means.insert(4, "worst", by["tv"].max())
    print(f"\n{title}, {n:,} rows, epsilon {epsilon:g}, {fits} fits")
    print(means.round(3).to_string())
    print("mean: " + ", ".join(f"{key} {means[key].mean():.3f}" for key in ("kept", "tv", "worst", "raw")))
    print(f"geometric mean of w {np.exp(np.log(means['w']).mean()):.2f}", flush=True)


def main() -> None:
    """Print a table for every number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--adult", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for n in args.rows:
        measure("made up", table(n, np.random.default_rng(n)), args.epsilon, args.fits)
    if args.adult is not None:
        measure("Adult", adult(args.adult, 1_000), args.epsilon, args.fits)


if __name__ == "__main__":
    main()
