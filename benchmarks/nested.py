"""Tables below a table: how often intervals cover, and those of who takes synthetic rows for independent records.

    python benchmarks/nested.py --fits 40 --units 3000 --epsilon 1 3

The law is `tests/fixtures/alike.py`: persons, up to three visits of each, up to three measurements of a visit. Four
fifths of a measurement's variance lie between persons, and the high have more of both. The truth is that of 400,000
persons. δ = 1e-6, seeds 1, 2, … The records are made up.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato import MaxEntropy
from sfumato.errors import EstimateError

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from fixtures import alike

Z, LARGE = 1.959964, 400_000


def answers(release):
    """Each question with its estimate; None of a refused one."""
    rows = release.table("measurements")
    above = rows.units
    asks = {
        "mean": lambda: rows.mean("value"),
        "median": lambda: rows.quantile("value"),
        "variance": lambda: rows.variance("value"),
        "share": lambda: rows.share({"flag": "high"}),
        "share in a span": lambda: rows.share({"value": (11, None)}),
        "share of the visit's label": lambda: rows.share({"ward": "a"}),
        "share of the person's label": lambda: rows.share({"sex": "f"}),
        "of visits: share of a label": lambda: above.share({"ward": "a"}),
        "of visits: number of rows": lambda: above.mean("number of measurements"),
        "of visits: mean of the first row": lambda: above.mean("value"),
    }
    estimates = {}
    for name, ask in asks.items():
        try:
            estimates[name] = ask()
        except EstimateError:
            estimates[name] = None
    return estimates


def truths(tables):
    """The same of records."""
    visits = tables["visits"].merge(tables["persons"], on="person")
    rows = tables["measurements"].merge(visits, on="visit")
    numbers = rows.groupby("visit").size().reindex(visits["visit"], fill_value=0)
    return {
        "mean": rows["value"].mean(),
        "median": rows["value"].median(),
        "variance": rows["value"].var(),
        "share": (rows["flag"] == "high").mean(),
        "share in a span": (rows["value"] >= 11).mean(),
        "share of the visit's label": (rows["ward"] == "a").mean(),
        "share of the person's label": (rows["sex"] == "f").mean(),
        "of visits: share of a label": (visits["ward"] == "a").mean(),
        "of visits: number of rows": numbers.mean(),
        "of visits: mean of the first row": rows.groupby("visit")["value"].first().mean(),
    }


def naive_mean(release, units, seed):
    """Mean and standard error of synthetic rows taken for independent records."""
    values = release.sample(units, seed=seed)["measurements"]["value"]
    return float(values.mean()), float(values.std() / np.sqrt(len(values)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--units", type=int, default=3_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    true, lines = truths(alike.tables(LARGE, 7)), []
    for epsilon in args.epsilon:
        for seed in range(args.first, args.first + args.fits):
            records, schema = alike.tables(args.units, 500 + seed), alike.schema(args.units)
            release = MaxEntropy(epsilon=epsilon, delta=1e-6).fit(records, schema=schema, seed=seed)
            rows = {
                name: None if e is None else (e.value, e.std_error, *e.interval())
                for name, e in answers(release).items()
            }
            value, error = naive_mean(release, args.units, seed)
            rows["mean of synthetic rows, as if independent"] = value, error, value - Z * error, value + Z * error
            for name, figures in rows.items():
                value, error, low, high = figures or [None] * 4
                covered = None if figures is None else bool(low <= true[name.partition(" of synthetic")[0]] <= high)
                lines.append(
                    {
                        "epsilon": epsilon,
                        "seed": seed,
                        "question": name,
                        "value": value,
                        "error": error,
                        "covered": covered,
                    }
                )
            print(epsilon, seed, [line["question"] for line in lines[-len(rows) :] if not line["covered"]], flush=True)
            if args.out:
                args.out.write_text(json.dumps(lines, indent=1))
    frame = pd.DataFrame(lines)
    whole = frame.groupby(["epsilon", "question"], sort=False)
    print(
        whole.agg(
            asked=("covered", "size"),
            covered=("covered", "sum"),
            refused=("covered", lambda c: c.isna().sum()),
            error=("error", "median"),
        ).to_string()
    )
    print({name: round(float(value), 4) for name, value in true.items()})


if __name__ == "__main__":
    main()
