"""What a fit without a schema reads columns as, and which of their values samples have.

Twenty-four made-up columns in one table: codes, money, dates, heaps, words beside numbers, subjects' numbers. For each
its kind in the release, and over the seeds:

    distinct      values that the records have
    cover         part of the samples (of those with a value) that is a value of the records
    tv            total variation of single values, missing one of them
    raw           the same of the simplest thing: words counted with a 24th of the budget, kept above the threshold
    kinds         what the columns were read as, by seed

    python benchmarks/no_schema.py [--rows 5000] [--epsilon 1] [--fits 3]
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter

import numpy as np
import pandas as pd
from peaks import noise_of
from scipy import special

import sfumato

DELTA = 1e-5


def table(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Columns as they lie in a file: texts and numbers."""
    cpt = ["99213", "99214", "99203", "36415", "80053", "85025", "93000", "71046", "97110", "90471", "99232", "99285"]
    icd = np.array([f"{letter}{number}" for letter in "EIJMZ" for number in (10, 11, 20, 45, 54)] + ["788", "250"])
    areas = 10_000 + rng.permutation(80_000)[:200]
    zipf = 1 / np.arange(1, 201)
    age = np.clip(rng.normal(46, 19, n), 18, 98)
    age = np.where(rng.random(n) < 0.3, np.round(age / 10) * 10, np.round(age)).astype(int)
    price = np.exp(rng.normal(3.2, 0.9, n))
    price = np.where(rng.random(n) < 0.6, np.floor(price) + 0.99, price).clip(0.05, 999).round(2)
    income = np.exp(rng.normal(10.4, 0.8, n))
    income = np.where(rng.random(n) < 0.5, np.round(income, -3), np.round(income, -1)).astype(int)
    wage = np.where(rng.random(n) < 0.12, 7.25, 7.25 + np.maximum(0, np.exp(rng.normal(2.2, 0.9, n)) - 3)).round(2)
    day = np.datetime64("2000-01-01") + rng.triangular(0, 8000, 9130, n).astype(int)
    day = np.where(rng.random(n) < 0.35, day.astype("M8[M]").astype("M8[D]"), day)
    score = np.where(rng.random(n) < 0.1, -99, np.clip(rng.normal(60, 15, n), 0, 100).round()).astype(int)
    few = rng.negative_binomial(1.2, 0.03, n)
    levels = np.array([19282.931640625, 61102.97265625, 85985.78125, 167844.53125])
    hour, minute = rng.integers(6, 22, n), np.where(rng.random(n) < 0.5, 0, rng.integers(0, 60, n))
    amount = np.exp(rng.normal(2, 1.5, n)) * rng.choice([-1, 1], n, p=[0.3, 0.7])
    frame = {
        "cpt": rng.choice(cpt, n, p=special.softmax(np.linspace(0, 2, 12))),
        "icd": rng.choice(icd, n, p=special.softmax(np.linspace(0, 3, icd.size))),
        "area": rng.choice(areas, n, p=zipf / zipf.sum()),
        "status": rng.choice([200, 301, 404, 500], n, p=[0.8, 0.05, 0.1, 0.05]),
        "grade": rng.integers(1, 6, n),
        "answer": rng.choice(["yes", "no"], n, p=[0.3, 0.7]),
        "town": rng.choice([f"town {k}" for k in range(40)], n, p=zipf[:40] / zipf[:40].sum()),
        "age": age,
        "price": price,
        "income": income,
        "wage": wage,
        "born": rng.integers(1930, 2010, n),
        "visit": day.astype(str),
        "seen on": pd.Series(day).dt.strftime("%d/%m/%Y"),
        "start": [f"{h:02d}:{m:02d}" for h, m in zip(hour, minute, strict=True)],
        "score": score,
        "cases": np.where(few < 5, "<5", few.astype(str)),
        "weight": np.where(rng.random(n) < 0.06, "unknown", rng.normal(75, 14, n).round(1).astype(str)),
        "bracket": rng.choice(levels, n, p=[0.4, 0.3, 0.2, 0.1]),
        "share": (rng.beta(2, 3, n) * 200).round() / 2,
        "balance": amount.round(2),
        "ratio": rng.gamma(3, 0.2, n),
        "subject": rng.permutation(n) + 100_000,
        "surname": ["".join(rng.choice(list("abcdefghij"), 7)) for _ in range(n)],
    }
    return pd.DataFrame(frame)


def words(column: pd.Series) -> pd.Series:
    """Values as texts that compare: numbers by their value."""
    if pd.api.types.is_datetime64_any_dtype(column):
        column = column.dt.strftime("%Y-%m-%d")
    numbers = pd.to_numeric(column, errors="coerce")
    texts = np.where(numbers.notna(), numbers.map("{:.7g}".format), column.astype(str))
    return pd.Series(np.where(column.isna(), "", texts))


def distance(real: pd.Series, drawn: pd.Series) -> float:
    """Total variation of single values."""
    both = pd.concat([real.value_counts(normalize=True), drawn.value_counts(normalize=True)], axis=1).fillna(0)
    return float((both.iloc[:, 0] - both.iloc[:, 1]).abs().sum() / 2)


def raw(real: pd.Series, std: float, rng: np.random.Generator) -> float:
    """Total variation of noisy counts of words, those above a threshold kept; what is not is one word more."""
    counts = real.value_counts()
    noisy = counts + std * rng.standard_normal(len(counts))
    noisy = noisy[noisy > std * special.ndtri(1 - DELTA / 24) + 1]
    noisy["…"] = max(len(real) - noisy.sum(), 0)
    both = pd.concat([counts / counts.sum(), noisy / noisy.sum()], axis=1).fillna(0)
    return float((both.iloc[:, 0] - both.iloc[:, 1]).abs().sum() / 2)


def said(kind: object) -> str:
    """A kind and what it holds, short."""
    labels = getattr(kind, "categories", None)
    if labels is not None:
        return f"{len(labels)} labels"
    bounds = [getattr(kind, side, None) for side in ("lower", "upper")]
    step = getattr(kind, "resolution", None)
    text = type(kind).__name__.lower()
    text += "" if bounds == [None, None] else f" {bounds[0]}..{bounds[1]}"
    return text + (f" by {step}" if step else "") + (" or missing" if getattr(kind, "nullable", False) else "")


def main() -> None:
    """Print a line for each column."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[5000])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=3)
    args = parser.parse_args()
    for n in args.rows:
        frame = table(n, np.random.default_rng(7))
        std = noise_of(args.epsilon, DELTA) * np.sqrt(frame.shape[1] / 2)
        found, kinds = [], {name: Counter[str]() for name in frame}
        for seed in range(args.fits):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                release = sfumato.fit(frame, epsilon=args.epsilon, delta=DELTA, seed=seed)
            rows = release.sample(20_000, seed=seed)
            for name in frame:
                real, rng = words(frame[name]), np.random.default_rng(seed)
                entry = {"column": name, "distinct": real.nunique(), "tv": 1.0, "raw": raw(real, std, rng)}
                if name in rows:
                    drawn = words(rows[name])
                    shown = drawn[drawn != ""]
                    entry |= {"cover": shown.isin(set(real)).mean(), "tv": distance(real, drawn)}
                kinds[name][said(release.schema.columns[name])] += 1
                found.append(entry)
        means = pd.DataFrame(found).groupby("column", sort=False).mean()[["distinct", "cover", "tv", "raw"]].round(3)
        means["kinds"] = [
            "; ".join(f"{k} ({c})" if c < args.fits else k for k, c in kinds[name].items()) for name in means.index
        ]
        named = means.drop(["subject", "surname"])["tv"]
        print(f"mean tv of all but persons' names and numbers {named.mean():.4f}")
        print(f"\n{n:,} rows, epsilon {args.epsilon:g}, {args.fits} fits\n{means.to_string()}", flush=True)


if __name__ == "__main__":
    main()
