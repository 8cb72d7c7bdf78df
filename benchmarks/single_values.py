"""How many rows have one value of a number: the release's answer beside the simplest one, a noisy count of that value.

Four columns of which each has values that many rows share: hours of work, wages, prices, days. For each number of rows,
over fits with secret seeds:

    covered       part of the fits in which the 95 % interval of `count(column == value)` holds the records' count
    error         root mean square of the answer's error, in rows
    std           mean standard error of the answer
    simple        standard deviation of a count of that value alone, with a column's part of the whole budget

    python benchmarks/single_values.py [--rows 1000 10000] [--epsilon 1] [--fits 60]
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from peaks import noise_of

import sfumato
from sfumato.columns.kinds import Continuous, DateTime, Integer
from sfumato.errors import EstimateError
from sfumato.schema.schema import Schema

DELTA = 1e-5
ASKED = {"hours": (40, 38), "wage": (7.25,), "price": (9.99, 4.99), "day": ("2020-01-01",)}


def table(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Schema]:
    """Columns, and their kinds."""
    hours = np.where(rng.random(n) < 0.36, 40, np.clip(rng.normal(38, 14, n), 1, 99)).round().astype(int)
    wage = np.where(rng.random(n) < 0.12, 7.25, 7.25 + np.maximum(0, np.exp(rng.normal(2.2, 0.9, n)) - 3))
    price = np.where(
        rng.random(n) < 0.5,
        rng.choice([4.99, 9.99, 19.99], n, p=[0.2, 0.6, 0.2]),
        np.exp(rng.normal(2.5, 0.8, n)),
    )
    day = np.datetime64("2019-01-01") + rng.integers(0, 1461, n)
    day = np.where(rng.random(n) < 0.15, np.datetime64("2020-01-01"), day)
    frame = {"hours": hours, "wage": wage.round(2), "price": price.round(2), "day": day.astype("M8[ns]")}
    kinds = {
        "hours": Integer(lower=0, upper=168),
        "wage": Continuous(lower=0, upper=500, resolution=0.01),
        "price": Continuous(lower=0, upper=1000, resolution=0.01),
        "day": DateTime(lower="2019-01-01", upper="2022-12-31"),
    }
    return pd.DataFrame(frame), Schema(columns=kinds)


def main() -> None:
    """Print a line for each value."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=60)
    args = parser.parse_args()
    for n in args.rows:
        frame, schema = table(n, np.random.default_rng(11))
        simple, found = noise_of(args.epsilon, DELTA) * np.sqrt(frame.shape[1] / 2), []
        for _ in range(args.fits):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                release = sfumato.fit(frame, schema, epsilon=args.epsilon, delta=DELTA)
            for column, values in ASKED.items():
                for value in values:
                    true = int((frame[column] == value).sum())
                    entry = {"value": f"{column} {value}", "real": true, "simple": simple}
                    try:
                        answer = release.count({column: value})
                    except EstimateError:
                        found.append(entry | {"refused": 1.0})
                        continue
                    low, high = answer.interval(0.95)
                    entry |= {"refused": 0.0, "covered": float(low <= true <= high), "std": answer.std_error}
                    found.append(entry | {"error": (answer.value - true) ** 2})
        means = pd.DataFrame(found).groupby("value", sort=False).mean()
        means["error"] = np.sqrt(means["error"])
        print(f"\n{n:,} rows, epsilon {args.epsilon:g}, {args.fits} fits\n{means.round(3).to_string()}", flush=True)


if __name__ == "__main__":
    main()
