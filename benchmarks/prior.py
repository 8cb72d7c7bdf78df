"""A release as the prior of the next one: error of two-way tables with and without, with wrong priors, and coverage.

    python benchmarks/prior.py adult [--epsilon 0.3] [--fits 3]
    python benchmarks/prior.py made
    python benchmarks/prior.py coverage --fits 20

Year 1 is a half of Adult (SFUMATO_DATA), year 2 the other half, of which a third of those of small income is left out.
`made` is a made-up register, which no setting was chosen on. Wrong priors are fitted to year 1 with its columns
permuted apart (`apart`), and with labels permuted and numbers reversed (`reversed`). Beside them: the prior's own error
in year 2, half of the rows from either release (`mixed`), and fits whose ε is √(ε₁² + ε₂²), about what both years could
say together of the same law (`both`). `coverage` counts how often 95 % intervals of the made-up law hold. All read real
records without noise: these figures are NOT private.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from adult import SCHEMA

import sfumato
from sfumato.columns.kinds import Categorical, Integer
from sfumato.evaluate import total_variation

DELTA, ROWS, TRUTH_ROWS = 1e-5, 12_000, 1_000_000
JOBS = ("farm", "shop", "school", "office", "plant", "none")
MADE = sfumato.Schema(
    columns={
        "age": Integer(lower=18, upper=90), "region": Categorical(categories=tuple("abcdefgh")),
        "job": Categorical(categories=JOBS), "pay": Integer(lower=0, upper=20_000),
        "rent": Integer(lower=0, upper=5_000), "owner": Categorical(categories=("no", "yes")),
        "health": Categorical(categories=("bad", "fair", "good")),
    },
    rows=ROWS,
)  # fmt: skip


def made(n, rng, year):
    age = np.clip(rng.gamma(6, 7.5, n) + 18 + year, 18, 90).astype(int)
    region = rng.choice(8, n, p=np.array([6, 5, 4, 3, 2, 2, 1, 1]) / 24)
    chances = np.exp(np.sin(np.outer(np.arange(8), np.arange(6)) + 0.2 * year))
    chances = chances[region] * np.where((age > 66)[:, None], [1, 1, 1, 1, 1, 25], [1, 3, 2, 4, 3, 1])
    job = (chances.cumsum(axis=1) < rng.random((n, 1)) * chances.sum(axis=1, keepdims=True)).sum(axis=1)
    base = np.array([1_900, 2_100, 3_200, 3_900, 2_800, 1_300])[job] * (1 + 0.03 * year)
    pay = np.clip(base * np.exp(rng.normal(0, 0.35, n)) * (1 + (age - 45) / 150), 0, 20_000).astype(int)
    owner = rng.random(n) < 1 / (1 + np.exp(3 - age / 25 - pay / 4_000))
    rent = np.where(owner, 0, np.clip(300 + 0.22 * pay + rng.normal(0, 150, n), 0, 5_000)).astype(int)
    health = np.clip((2.6 - age / 60 + pay / 9_000 + rng.normal(0, 0.5, n)).astype(int), 0, 2)
    return pd.DataFrame(
        {"age": age, "region": np.array(list("abcdefgh"))[region], "job": np.array(JOBS)[job], "pay": pay,
         "rent": rent, "owner": np.where(owner, "yes", "no"), "health": np.array(["bad", "fair", "good"])[health]}
    )  # fmt: skip


def adult():
    table = pd.read_parquet(Path(os.environ.get("SFUMATO_DATA", "../shared/data")) / "adult.parquet")
    rng = np.random.default_rng(0)
    places = rng.permutation(len(table))
    first, second = (table.iloc[part] for part in np.array_split(places, 2))
    kept = (second["income"].astype(str) == ">50K") | (rng.random(len(second)) < 2 / 3)
    return first.reset_index(drop=True), second[kept].reset_index(drop=True), SCHEMA


def wrong(frame, schema, how):
    """Year 1 as it was not."""
    rng, frame = np.random.default_rng(5), frame.copy()
    for name in frame:
        kind = schema.columns[name]
        if how == "apart":
            frame[name] = frame[name].to_numpy()[rng.permutation(len(frame))]
        elif hasattr(kind, "categories"):
            labels = [str(label) for label in kind.categories]
            frame[name] = frame[name].astype(str).replace(dict(zip(labels, rng.permutation(labels), strict=True)))
        else:
            frame[name] = kind.lower + kind.upper - frame[name]
    return frame


def fitted(frame, schema, epsilon, prior=None):
    return sfumato.MaxEntropy(epsilon=epsilon, delta=DELTA).fit(
        frame, schema=replace(schema, rows=round(len(frame), -3) or len(frame)), prior=prior
    )


def compare(first, second, schema, epsilon, fits):
    """Print mean two-way errors of everything that could be done."""

    def error(rows):
        return total_variation(second, rows, schema=schema, k=2)

    errors, n = defaultdict(list), len(second)
    for _ in range(fits):
        alone = fitted(second, schema, epsilon).sample(n)
        errors["without"].append(error(alone))
        for before in (0.3, 1.0, 3.0):
            prior = fitted(first, schema, before)
            old = prior.sample(n)
            errors[f"prior of {before:g}: its own"].append(error(old))
            mixed = pd.concat([old.head(n // 2), alone.tail(n - n // 2)])
            errors[f"prior of {before:g}: mixed"].append(error(mixed))
            errors[f"prior of {before:g}: with"].append(error(fitted(second, schema, epsilon, prior).sample(n)))
            both = fitted(second, schema, float(np.hypot(epsilon, before)))
            errors[f"prior of {before:g}: both"].append(error(both.sample(n)))
        for how in ("apart", "reversed"):
            prior = fitted(wrong(first, schema, how), schema, 1.0)
            errors[f"wrong, {how}: with"].append(error(fitted(second, schema, epsilon, prior).sample(n)))
    without = np.mean(errors["without"])
    for name, values in errors.items():
        spread = (max(values) - min(values)) / 2
        print(f"{name:<28} {np.mean(values):.4f} ± {spread:.4f}  {np.mean(values) / without:.2f} of without")


def questions(ask, truth):
    """Pairs of an estimate and what it is of; `truth` is a frame of the law."""
    yield ask.mean("pay"), truth["pay"].mean()
    yield ask.mean("rent"), truth["rent"].mean()
    yield ask.share({"job": "school"}), (truth["job"] == "school").mean()
    yield ask.correlation("age", "pay"), np.corrcoef(truth["age"], truth["pay"])[0, 1]
    for group, of in truth.groupby("owner"):
        yield ask.mean("pay", by="owner")[str(group)], of["pay"].mean()
    for group, of in truth.groupby("health"):
        yield ask.share({"owner": "yes"}, by="health")[str(group)], (of["owner"] == "yes").mean()
    for name, other in (("job", "region"), ("job", "health")):
        both = pd.crosstab(truth[name], truth[other], normalize=True)
        for pair, estimate in ask.crosstab(name, other, normalize=True, target="population").items():
            yield estimate, both.loc[pair]


def coverage(epsilon, fits):
    truth, counts = made(TRUTH_ROWS, np.random.default_rng(99), 1), defaultdict(list)
    for seed in range(fits):
        rng = np.random.default_rng(seed)
        first, second = made(ROWS, rng, 0), made(ROWS, rng, 1)
        priors = {"none": None, "last year's": fitted(first, MADE, 1.0)}
        priors |= {how: fitted(wrong(first, MADE, how), MADE, 1.0) for how in ("apart", "reversed")}
        for name, prior in priors.items():
            for estimate, value in questions(fitted(second, MADE, epsilon, prior), truth):
                low, high = estimate.interval(0.95)
                counts[name].append((low <= value <= high, high - low))
    for name, found in counts.items():
        print(f"prior {name:<12} covered {np.mean([c for c, _ in found]):.3f} of {len(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=("adult", "made", "coverage"))
    parser.add_argument("--epsilon", type=float, default=0.3)
    parser.add_argument("--fits", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.case == "coverage":
        coverage(arguments.epsilon, arguments.fits)
    elif arguments.case == "adult":
        compare(*adult(), arguments.epsilon, arguments.fits)
    else:
        rng = np.random.default_rng(0)
        compare(made(ROWS, rng, 0), made(ROWS, rng, 1), MADE, arguments.epsilon, arguments.fits)


if __name__ == "__main__":
    main()
