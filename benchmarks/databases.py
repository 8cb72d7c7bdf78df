"""Databases: what samples keep of a law with known answers, within tables and between them.

    python benchmarks/databases.py [--units 20000] [--epsilon 1 3] [--fits 1] [--out FILE.json]
    python benchmarks/databases.py --folder FOLDER [--units 1000000]     # memory and time

The law is that of the tests (`tests/fixtures/database.py`): persons; up to five visits of each, whose score has a level
of the person's; up to three measurements of a visit, a tenth of its score; up to four drugs, more with more visits.
δ = 1e-6, add or remove one person with all rows, seeds 1, 2, …

With `--folder` four times the visits a person and twice the measurements a visit are written to files: ten million
visits and thirty million measurements of a million persons. Run it again: the peak is then that of fit and samples.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato import MaxEntropy

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from fixtures.database import hospital, schema

DELTA = 1e-6
PART, TIMES, TWICE = (
    50_000,
    4,
    2,
)  # persons written at a time; copies of a person's visits, and of a visit's measurements


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


def write_tables(folder: Path, units: int) -> None:
    """Write the tables of many persons, a part of them at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    writers: dict[str, pq.ParquetWriter] = {}
    for place, start in enumerate(range(0, units, PART)):
        tables = hospital(min(PART, units - start), place)
        for frame in tables.values():
            if "person" in frame:
                frame["person"] += start
        visits, values = tables["visits"], tables["measurements"]
        alive = visits.assign(state=visits["state"].replace("dead", "ill"))
        copies = [alive.assign(visit=alive["visit"] + copy * 10**9) for copy in range(1, TIMES)]
        tables["visits"] = pd.concat([*copies, visits])  # who dies does so in one of the last
        tables["visits"]["visit"] += start * 1000
        more = [values.assign(visit=values["visit"] + copy * 10**9) for copy in range(TIMES)]
        tables["measurements"] = pd.concat(more * TWICE)
        tables["measurements"]["visit"] += start * 1000
        for name, frame in tables.items():
            rows = pa.Table.from_pandas(frame, preserve_index=False)
            if name not in writers:
                writers[name] = pq.ParquetWriter(folder / f"{name}.parquet", rows.schema)
            writers[name].write_table(rows)
    for writer in writers.values():
        writer.close()


def peak() -> float:
    """Return the most memory that the process had, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def size(folder: Path, units: int) -> None:
    """Print memory and time of a fit of files, and of its samples, which are not kept."""
    paths = {name: folder / f"{name}.parquet" for name in ("persons", "visits", "measurements", "drugs")}
    if not all(path.exists() for path in paths.values()):
        write_tables(folder, units)
        print(f"wrote {folder}: run it again, so that the peak is that of fit and samples alone")
        return
    rows = {name: pq.read_metadata(path).num_rows for name, path in paths.items()}
    known = schema(units, visits={"max_rows": 5 * TIMES}, measurements={"max_rows": 3 * TWICE})
    before, began = peak(), time.process_time()
    release = MaxEntropy(epsilon=1.0, delta=1e-8).fit(paths, schema=known, seed=1)
    print(f"fit of {rows}: {time.process_time() - began:.0f} s, peak {peak():.0f} MiB, {before:.0f} before", flush=True)
    began, drawn = time.process_time(), dict.fromkeys(rows, 0)
    for part in release.table_batches(units, seed=1):
        drawn = {name: number + part[name].num_rows for name, number in drawn.items()}
    print(f"sample of {drawn}: {time.process_time() - began:.0f} s, peak {peak():.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folder", type=Path, help="of tables, which are written there if they are not")
    args = parser.parse_args()
    if args.folder:
        size(args.folder, args.units)
        return
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
