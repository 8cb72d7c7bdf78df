"""Linked rows: what samples keep of a law with known answers, how a unit is bounded, and what memory and time it takes.

    python benchmarks/linked.py law [--fits 5] [--units 20000] [--out FILE.json]
    python benchmarks/linked.py rows [--fits 5] [--units 20000] [--out FILE.json]
    python benchmarks/linked.py tables [--fits 5] [--units 20000]
    python benchmarks/linked.py target [--fits 5] [--units 20000]
    python benchmarks/linked.py alike [--units 2000]
    python benchmarks/linked.py size [--units 1000000] [--times 3] [--two-tables]

The law is that of the tests (`tests/fixtures/linked.py`): one to six visits of a patient, a score whose deviations from
a mean with a drift have a correlation of .9 from one visit to the next, a state of four labels by a Markov chain, gaps
of 30 days in the mean, sex and year of birth. δ = 1e-6, add or remove one patient with all visits, seeds 1, 2, …

`law` fits at several ε, and at ε = 1 with other bounds of a unit:

    room 1, 2, 5, 25   so many steps of a patient count whole where they lie apart; at 25 all do wherever they lie

`rows` has a plain release of rows beside linked ones, with the same guarantee for a patient (ε = 1):

    max_rows           a unit of six rows without an order, as many rows as there are, rounded
    group privacy      each row a record, at ε = 1/6 and a δ by which six of them together have ε = 1, δ = 1e-6

Their rows have no patient: each is given to one at random, and then sorted by day.

`tables` fits the same law in two tables with a key, where 30 % of the women and 10 % of the men have no visit
(`tests/fixtures/two_tables.py`). `target` fits it with and without sex as target. `alike` counts the real units that
stay where each of a unit's rows has to be like one of another unit, by their number of rows. `size` takes time and
memory; run it twice, as the first time it writes the tables.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.methods.linked import recipe
from sfumato.release.unique_rows import kept_records

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from fixtures import two_tables
from fixtures.linked import apart, figures, in_order, schema, visits

DELTA = 1e-6
WHOLE = 5  # steps of six visits
SIX = 6  # rows of a patient, at most


def errors(real: dict[str, Any], made: dict[str, Any]) -> dict[str, float]:
    """Differences of the figures, and the total variation of transitions."""
    found = {name: made[name] - real[name] for name in ("rows", "correlation", "gap", "drift")}
    return {**found, "transitions": apart(real, made), "constants": made["constants"], "least gap": made["least gap"]}


@contextmanager
def changed(**names: Any) -> Iterator[None]:
    """The recipe with other functions or settings, for a while."""
    before = {name: getattr(recipe, name) for name in names}
    try:
        for name, value in names.items():
            setattr(recipe, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(recipe, name, value)


def room(steps: float) -> Callable[..., tuple[float, float]]:
    """In place of `recipe.room_of`: so many steps of a unit count whole where they lie apart."""

    def found(fit, names, schema, law: np.ndarray, n: float) -> tuple[float, float]:
        k = np.arange(law.size)
        return steps, float(law @ np.minimum(k, np.sqrt(steps * k)))

    return found


def variants() -> dict[str, dict[str, Any]]:
    """Other bounds of a unit; at the square of its steps they count whole in whatever cells they lie."""
    return {f"room {steps}": {"room_of": room(steps)} for steps in (1, 2, WHOLE, WHOLE**2)}


def fits(frame: pd.DataFrame, epsilon: float | NonPrivate, seeds: range, n: int) -> dict[str, dict[str, float]]:
    """Mean and deviation of the errors over fits."""
    real = figures(in_order(frame))
    found = []
    for seed in seeds:
        method = MaxEntropy(epsilon=epsilon, delta=DELTA)
        release = method.fit(frame, schema=schema(units=n), seed=seed)
        found.append(errors(real, figures(release.sample(n, seed=seed))))
    return summed(pd.DataFrame(found))


def summed(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Mean, deviation and largest of each column."""
    return {
        name: {
            "mean": round(float(column.mean()), 4),
            "deviation": round(float(column.std(ddof=0)), 4),
            "largest": round(float(column.abs().max()), 4),
        }
        for name, column in table.items()
    }


def law(arguments: argparse.Namespace) -> None:
    n, seeds = arguments.units, range(1, arguments.fits + 1)
    frame = visits(n)
    found: dict[str, Any] = {"units": n, "fits": len(seeds), "delta": DELTA, "real": plain(figures(in_order(frame)))}
    for epsilon in (0.5, 1.0, 3.0, 10.0):
        found[f"epsilon {epsilon:g}"] = show(f"epsilon {epsilon:g}", fits(frame, epsilon, seeds, n))
    found["no noise"] = show("no noise", fits(frame, NonPrivate(), range(1, 2), n))
    for name, change in variants().items():
        with changed(**change):
            found[f"epsilon 1, {name}"] = show(f"epsilon 1, {name}", fits(frame, 1.0, seeds, n))
    keep(arguments.out, found)


def keep(path: Path | None, found: dict[str, Any]) -> None:
    """Write what was found into the file of results, beside what other commands found."""
    if path is not None:
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        path.write_text(json.dumps({**kept, **found}, indent=1) + "\n", encoding="utf-8")


def as_rows(frame: pd.DataFrame, n: int, seed: int, *, group: bool) -> pd.DataFrame:
    """Return rows of a plain release, given to patients at random."""
    found, rows = schema().to_dict(), round(len(frame), -3)
    epsilon, delta = (1 / SIX, DELTA * np.expm1(1 / SIX) / np.expm1(1)) if group else (1.0, DELTA)
    unit = {} if group else {"unit": {"column": "patient", "max_rows": SIX}}
    plain_schema = Schema.from_dict({"columns": found["columns"], "rows": rows, **unit})
    made = MaxEntropy(epsilon=epsilon, delta=delta).fit(frame, schema=plain_schema, seed=seed)
    given = np.random.default_rng(seed).integers(0, n, rows)
    return in_order(made.sample(rows, seed=seed).assign(patient=given))


def of_rows(frame: pd.DataFrame) -> dict[str, Any]:
    """What is asked of rows without their patients: shares of states, and how born goes with score and with sex."""
    return {
        "state": frame["state"].value_counts(normalize=True).reindex(list("abcd")).fillna(0).to_numpy(),
        "score by born": float(np.corrcoef(frame["score"], frame["born"])[0, 1]),
        "score by sex": float(frame.groupby("sex")["score"].mean().diff().iloc[-1]),
    }


def beside_rows(arguments: argparse.Namespace) -> None:
    """Linked rows beside plain ones with the same guarantee for a patient."""
    n, frame = arguments.units, in_order(visits(arguments.units))
    real, alone = figures(frame), of_rows(frame)
    found: dict[str, Any] = {"real": plain(real | alone)}
    ways: dict[str, Callable[[int], pd.DataFrame]] = {
        "linked": lambda seed: linked(frame, n, seed),
        "max_rows": lambda seed: as_rows(frame, n, seed, group=False),
        "group privacy": lambda seed: as_rows(frame, n, seed, group=True),
    }
    for name, way in ways.items():
        table = []
        for seed in range(1, arguments.fits + 1):
            made = way(seed)
            own, same = of_rows(made), made.groupby("patient")[["sex", "born"]].nunique().max(axis=1) == 1
            states = float(np.abs(own["state"] - alone["state"]).sum() / 2)
            numbers = {key: own[key] - alone[key] for key in ("score by born", "score by sex")}
            constant = float(same[made.groupby("patient").size() > 1].mean())
            table.append(errors(real, figures(made)) | numbers | {"state": states, "constants": constant})
        found[name] = show(name, summed(pd.DataFrame(table)))
    keep(arguments.out, {"plain rows": found})


def linked(frame: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """Return the rows of as many patients, linked."""
    method = MaxEntropy(epsilon=1.0, delta=DELTA)
    return method.fit(frame, schema=schema(units=n), seed=seed).sample(n, seed=seed)


def tables(arguments: argparse.Namespace) -> None:
    """Fit two tables with a key, in which some have no visit."""
    n, frames = arguments.units, two_tables.tables(arguments.units)
    real, shares = figures(two_tables.joined(frames)), two_tables.with_visits(frames)
    print("real", plain(real), shares)
    for epsilon in (0.5, 1.0, 3.0, 10.0, NonPrivate()):
        found = []
        for seed in range(1, 2 if isinstance(epsilon, NonPrivate) else arguments.fits + 1):
            method = MaxEntropy(epsilon=epsilon, delta=DELTA)
            made = method.fit(frames, schema=two_tables.schema(n), seed=seed).sample(n, seed=seed)
            share = {f"with visits, {sex}": s - shares[sex] for sex, s in two_tables.with_visits(made).items()}
            found.append(errors(real, figures(two_tables.joined(made))) | share)
        table = pd.DataFrame(found)
        said = {name: (round(float(c.mean()), 3), round(float(c.abs().max()), 3)) for name, c in table.items()}
        print(epsilon, said, flush=True)


def of_sexes(frame: pd.DataFrame) -> dict[str, float]:
    """What is asked of classes: their share of units, and how the score differs, in all rows and in later ones."""
    later = frame[frame.groupby("patient").cumcount() > 0]
    gaps = {
        name: rows.groupby("sex")["score"].mean().diff().iloc[-1] for name, rows in (("all", frame), ("later", later))
    }
    return {"women": float((frame.drop_duplicates("patient")["sex"] == "f").mean()), **gaps}


def target(arguments: argparse.Namespace) -> None:
    """Fit with and without a target."""
    n, frame = arguments.units, in_order(visits(arguments.units))
    real, classes = figures(frame), pd.Series(of_sexes(frame))
    print("real", plain(real), classes.to_dict())
    for epsilon in (1.0, 3.0):
        for name in (None, "sex"):
            found = []
            for seed in range(1, arguments.fits + 1):
                method = MaxEntropy(epsilon=epsilon, delta=DELTA)
                made = method.fit(frame, schema=schema(units=n), target=name, seed=seed).sample(n, seed=seed)
                found.append(errors(real, figures(made)) | (pd.Series(of_sexes(made)) - classes).to_dict())
            print(epsilon, name, summed(pd.DataFrame(found)), flush=True)


def alike(arguments: argparse.Namespace) -> None:
    """Count the units each of whose rows is like one of another unit."""
    frame = in_order(visits(arguments.units))
    coarse = frame.assign(tens=frame["score"] // 10, decade=frame["born"] // 10)
    rows = frame.groupby("patient").size()
    names = [["day", "sex", "born", "score", "state"], ["sex", "state", "score"], ["sex", "state", "tens", "decade"]]
    for columns in [*names, ["sex", "born", "state"], ["sex", "state"]]:
        keys = coarse.groupby(columns).ngroup().to_numpy()
        stays = np.zeros(rows.size, dtype=bool)
        kept = kept_records(np.repeat(np.arange(rows.size), rows), keys, rows.size)
        stays[: kept.size] = kept
        by_rows = pd.Series(stays, index=rows.index).groupby(rows).mean().round(3).to_dict()
        left = frame[frame["patient"].map(pd.Series(stays, index=rows.index))]
        print(columns, round(float(stays.mean()), 3), by_rows, plain(figures(left)) if len(left) > SIX else "none")


def plain(found: dict[str, Any]) -> dict[str, Any]:
    return {k: v.round(4).tolist() if isinstance(v, np.ndarray) else round(v, 4) for k, v in found.items()}


def show(name: str, found: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    print(name, {key: (part["mean"], part["deviation"]) for key, part in found.items()}, flush=True)
    return found


def size_of_tables(arguments: argparse.Namespace) -> None:
    """Time and memory of a fit of two tables and of its samples, to files."""
    n = arguments.units
    paths = {name: arguments.parquet.with_name(f"{name}.parquet") for name in ("persons", "visits")}
    if not paths["visits"].exists():
        frames = two_tables.tables(n)
        frames["persons"].to_parquet(paths["persons"], index=False)
        rows = frames["visits"]
        with pq.ParquetWriter(paths["visits"], pa.Schema.from_pandas(rows, preserve_index=False)) as writer:
            for copy in range(arguments.times):
                later = rows.assign(day=rows["day"] + 200 * copy)
                writer.write_table(pa.Table.from_pandas(later, preserve_index=False))
        print("wrote", *paths.values(), "- run it again: the peak below is then that of the fit alone")
        return
    rows = pq.read_metadata(paths["visits"]).num_rows
    start, began = peak(), time.process_time()
    method = MaxEntropy(epsilon=1.0, delta=1e-8)
    release = method.fit(paths, schema=two_tables.schema(n, max_rows=6 * arguments.times), seed=1)
    took = time.process_time() - began
    print(f"fit of {n} units, {rows} rows: {took:.1f} s, peak {peak() - start:.0f} MiB above {start:.0f}")
    after, began, rows = peak(), time.process_time(), 0
    for part in release.table_batches(n, seed=1):
        rows += part["visits"].num_rows
    took = time.process_time() - began
    print(f"sample of {n} units, {rows} rows: {took:.1f} s, peak {peak() - after:.0f} MiB above that of the fit")


def size(arguments: argparse.Namespace) -> None:
    if arguments.two_tables:
        size_of_tables(arguments)
        return
    n, path = arguments.units, arguments.parquet
    if not path.exists():
        frame = visits(n)
        with pq.ParquetWriter(path, pa.Schema.from_pandas(frame, preserve_index=False)) as writer:
            for copy in range(arguments.times):  # later visits of the same patients
                later = frame.assign(day=frame["day"] + 200 * copy)
                writer.write_table(pa.Table.from_pandas(later, preserve_index=False))
        print("wrote", path, "- run it again: the peak below is then that of the fit alone")
        return
    start = peak()
    began = time.process_time()
    found = schema(units=n, max_rows=6 * arguments.times)
    release = MaxEntropy(epsilon=1.0, delta=1e-8).fit(path, schema=found, seed=1)
    print(f"fit {time.process_time() - began:.1f} s, peak {peak() - start:.0f} MiB above {start:.0f}")
    began, rows = time.process_time(), 0
    for batch in release.batches(n, seed=1):
        rows += batch.num_rows
    print(f"sample of {n} units, {rows} rows: {time.process_time() - began:.1f} s, peak {peak() - start:.0f} MiB")


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["law", "rows", "tables", "target", "alike", "size"])
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--units", type=int, default=20_000)
    parser.add_argument("--times", type=int, default=3, help="of size: times the law's visits a patient")
    parser.add_argument("--parquet", type=Path, default=Path("linked.parquet"))
    parser.add_argument("--two-tables", action="store_true", help="of size: of persons and visits in two files")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    commands = {"law": law, "rows": beside_rows, "tables": tables, "target": target, "alike": alike, "size": size}
    commands[arguments.what](arguments)


if __name__ == "__main__":
    main()
