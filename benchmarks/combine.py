"""Releases of disjoint people put together, beside one fit of all of them at the same ε.

    python benchmarks/combine.py [--rows 6000] [--fits 2] [--parts 3 10] [--epsilon 1]

A made-up table of four numbers and four labels that go together, cut at random into so many parts of equal size. Each
part is fitted by itself at (ε, 1e-5), add or remove one row, secret noise, and the parts are combined. Printed: mean
2-way total variation of samples against all rows, of 1 fit and of combined parts, means over the fits, their ratio; the
same of another table of that law, which is what sampling alone costs; and the standard errors of a share.
"""

from __future__ import annotations

import argparse
from statistics import fmean

import numpy as np
import pandas as pd

import sfumato
from sfumato.columns.kinds import Categorical, ColumnKind, Integer
from sfumato.evaluate.fidelity import total_variation

DELTA = 1e-5
CARE, REGION = ("none", "some", "much"), ("north", "east", "south", "west")


def table(rows: int, seed: int) -> pd.DataFrame:
    """Return people whose age says much of their care, their visits and their cost."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(50, 18, rows), 0, 99).astype(int)
    region = rng.choice(REGION, rows, p=[0.4, 0.3, 0.2, 0.1])
    sex = rng.choice(["f", "m"], rows)
    need = age / 25 + (region == "west") + rng.normal(0, 0.8, rows)
    visits = np.minimum(rng.poisson(np.maximum(need, 0.1)), 20)
    cost = np.clip(100 * visits + rng.normal(200, 80, rows), 0, 3_000).astype(int)
    care = np.array(CARE)[np.digitize(need, [1.5, 3.0])]
    works = np.where(rng.random(rows) < 1 / (1 + np.exp(age / 8 - 8)), "yes", "no")
    weight = np.clip(rng.normal(70 + 10 * (sex == "m"), 12), 30, 180).astype(int)
    frame = {"age": age, "visits": visits, "cost": cost, "weight": weight}
    return pd.DataFrame({**frame, "region": region, "sex": sex, "care": care, "works": works})


def schema(rows: int) -> sfumato.Schema:
    """Return what is public of them."""
    columns: dict[str, ColumnKind] = {
        "age": Integer(lower=0, upper=99), "visits": Integer(lower=0, upper=20), "cost": Integer(lower=0, upper=3_000),
        "weight": Integer(lower=30, upper=180), "region": Categorical(categories=REGION),
        "sex": Categorical(categories=("f", "m")), "care": Categorical(categories=CARE),
        "works": Categorical(categories=("no", "yes")),
    }  # fmt: skip
    return sfumato.Schema(columns=columns, rows=rows)


def fit(rows: pd.DataFrame, epsilon: float) -> sfumato.Release:
    return sfumato.MaxEntropy(epsilon=epsilon, delta=DELTA).fit(rows, schema=schema(len(rows)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6_000)
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--parts", type=int, nargs="+", default=[3, 10])
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args()
    records, known = table(arguments.rows, 0), schema(arguments.rows)
    error = lambda rows: total_variation(records, rows, schema=known, k=2)  # noqa: E731
    print(f"{arguments.rows} rows, epsilon {arguments.epsilon:g}; another draw: {error(table(arguments.rows, 1)):.4f}")
    whole = 0.0
    for parts in [1, *arguments.parts]:
        errors, deviations = [], []
        for _ in range(arguments.fits):
            cuts = np.array_split(np.arange(arguments.rows), parts)
            releases = [fit(records.iloc[cut].reset_index(drop=True), arguments.epsilon) for cut in cuts]
            union = releases[0] if parts == 1 else sfumato.combine_releases(releases, disjoint=True)
            share = union.share({"care": "much"}, target="table")
            assert isinstance(share, sfumato.Estimate)
            errors.append(error(union.sample(arguments.rows)))
            deviations.append(float(share.std_error))
        whole = whole or fmean(errors)
        print(
            f"{parts:3} parts: 2-way error {fmean(errors):.4f}, {fmean(errors) / whole:.2f} times that of 1; "
            f"standard error of a share {fmean(deviations):.5f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
