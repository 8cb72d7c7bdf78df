"""Databases: what samples keep of a law with known answers, within tables and between them.

    python benchmarks/databases.py [--units 20000] [--epsilon 1 3] [--fits 1] [--out FILE.json]

The law is that of the tests (`tests/fixtures/database.py`): persons; up to five visits of each, whose score has a level
of the person's; up to three measurements of a visit, a tenth of its score; up to four drugs, more with more visits.
δ = 1e-6, add or remove one person with all rows, seeds 1, 2, …
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato import MaxEntropy

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from fixtures.database import hospital, schema

DELTA = 1e-6


def figures(tables: dict[str, pd.DataFrame]) -> dict[str, float]:
    """What tables say, and how they go together."""
    persons = tables["persons"]["person"]
    visits = tables["visits"].merge(tables["persons"], on="person").sort_values(["person", "start"])
    values = tables["measurements"].merge(visits, on="visit")
    counts = [
        tables[name].groupby("person").size().reindex(persons, fill_value=0).to_numpy() for name in ("visits", "drugs")
    ]
    score = visits.groupby("person")["score"]
    lags = {
        f"score {lag} visits before": visits["score"].astype(float).corr(score.shift(lag).astype(float))
        for lag in (1, 2, 3)
    }
    by_sex = visits.groupby("sex")["score"].mean()
    dead = (visits["state"] == "dead").astype(int)
    return {
        "visits a person": counts[0].mean(),
        "measurements a visit": len(values) / len(visits),
        "drugs a person": counts[1].mean(),
        "persons without a visit": (counts[0] == 0).mean(),
        "persons without a drug": (counts[1] == 0).mean(),
        "numbers of visits and drugs": np.corrcoef(*counts)[0, 1],
        "value and score of its visit": np.corrcoef(values["value"], values["score"])[0, 1],
        "score of men less of women": by_sex["m"] - by_sex["f"],
        **lags,
        "visits after a death": float((dead.groupby(visits["person"]).cumsum() - dead).gt(0).sum()),
        "measurements outside their visit": float(
            ((values["at"] < values["start"]) | (values["at"] > values["end"].clip(lower=values["start"]))).sum()
        ),
        "keys that resolve": float(tables["measurements"]["visit"].isin(tables["visits"]["visit"]).mean()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    real, lines = hospital(args.units, 1), []
    print("real", {name: round(float(value), 3) for name, value in figures(real).items()}, flush=True)
    for epsilon in args.epsilon:
        for fit in range(1, args.fits + 1):
            start = time.perf_counter()
            release = MaxEntropy(epsilon=epsilon, delta=DELTA).fit(real, schema=schema(args.units), seed=fit)
            seconds = time.perf_counter() - start
            made = figures(release.sample(args.units, seed=fit))
            lines.append({"epsilon": epsilon, "fit": fit, "seconds": seconds, **{k: float(v) for k, v in made.items()}})
            print(
                epsilon,
                fit,
                {name: round(float(value), 3) for name, value in made.items()},
                f"{seconds:.0f} s",
                flush=True,
            )
    if args.out:
        args.out.write_text(json.dumps(lines, indent=1))


if __name__ == "__main__":
    main()
