"""Check-ins of the same users, linked: places, transitions, distances and hours that samples keep, beside a baseline.

    python benchmarks/gowalla.py choose DATA_FOLDER [--fits 3] [--out FILE.json]
    python benchmarks/gowalla.py compare DATA_FOLDER [--fits 5] [--out FILE.json]

Gowalla's check-ins inside New York City (`gowalla_nyc.parquet`): unit = user, order = time, at most 20 rows a user,
of a public grid over the box around the city, and hours of Eastern Standard Time. δ = 1e-6, add or remove one user
with all check-ins.

A third of the users, by a public shuffle, is for `choose`, at ε = 2, so that n·ε is about that of `compare`: the
other two thirds at ε = 1. `choose` settles the grid, how a place is coded, and the baseline's settings (SETTINGS, by
the mean of the total variations); the grid by real users alone: the finest whose cell shares agree within 0.1
between two halves.

    linked, a label    cells of the grid as one column of labels, and the hour
    each by itself     the same, where that a cell is kept is no prior of single moments
    linked, numbers    cells as two whole numbers, row and column of the grid
    unlinked           the same columns as rows of a unit without an order, put in persons at random
    n-grams            papers/ngrams: cells, and hours apart from them
    half of the users  real ones beside the other half: what as good as real looks like for so few

Figures are made from real records without noise: they are not private.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from sfumato import MaxEntropy, NonPrivate, Schema
from sfumato.methods.tables import second_stage

sys.path.append(str(Path(__file__).parents[1] / "papers" / "ngrams"))
from ngrams import NGrams, Sequences, spent

DELTA, MOST = 1e-6, 20
SOUTH, NORTH, WEST, EAST = 40.48, 40.93, -74.27, -73.68
KM = (111.2, 84.3)  # of a degree of latitude, of longitude at 40.7
REGIONS = 4  # a side, of the coarse transitions
GRIDS = (8, 12, 16, 24, 32)
AGREE = 0.1


@dataclass(frozen=True)
class Settings:
    """What `choose` found.

    Attributes:
        grid: cells a side.
        longest: rows of a user that n-grams count.
        depth: symbols of the longest gram.
        places: of the n-grams' ε, the part for cells.
    """

    grid: int = 16
    longest: int = 10
    depth: int = 2
    places: float = 0.7


SETTINGS = Settings()


def read(folder: Path, grid: int) -> pd.DataFrame:
    """Return all check-ins: user, time, row and column of the grid, cell, hour; in order."""
    frame = pd.read_parquet(folder / "gowalla_nyc.parquet").sort_values(["user", "time"], kind="stable")
    row = np.clip((frame["lat"] - SOUTH) / (NORTH - SOUTH) * grid, 0, grid - 1).astype(int)
    column = np.clip((frame["lon"] - WEST) / (EAST - WEST) * grid, 0, grid - 1).astype(int)
    when = pd.to_datetime(frame["time"] - 5 * 3600, unit="s")
    found = pd.DataFrame({"user": frame["user"], "time": when, "row": row, "column": column, "hour": when.dt.hour})
    return found.assign(cell=row * grid + column).reset_index(drop=True)


def parts(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the third of the users to choose by, and the others."""
    users = np.sort(frame["user"].unique())
    chosen = np.random.default_rng(0).permutation(users)[: users.size // 3]
    mine = frame["user"].isin(chosen)
    return frame[mine].reset_index(drop=True), frame[~mine].reset_index(drop=True)


def first_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that count, in order."""
    return frame[frame.groupby("user").cumcount() < MOST].reset_index(drop=True)


def figures(frame: pd.DataFrame, grid: int) -> dict[str, Any]:
    """Return shares of cells, transitions, hours, distances between a user's rows, and rows a user."""
    follows = (frame["user"] == frame["user"].shift()).to_numpy()
    cell, hour = frame["cell"].to_numpy(), frame["hour"].to_numpy()
    before, after = cell[:-1][follows[1:]], cell[1:][follows[1:]]
    side = np.array([(NORTH - SOUTH) * KM[0], (EAST - WEST) * KM[1]]) / grid
    apart = np.hypot((before // grid - after // grid) * side[0], (before % grid - after % grid) * side[1])
    region = (cell // grid * REGIONS // grid) * REGIONS + cell % grid * REGIONS // grid
    coarse = region[:-1][follows[1:]] * REGIONS**2 + region[1:][follows[1:]]
    sizes = frame.groupby("user").size().to_numpy()
    return {
        "cells": _shares(cell, grid**2),
        "transitions": _shares(before * grid**2 + after, grid**4),
        "between regions": _shares(coarse, REGIONS**4),
        "distance": _shares(np.digitize(apart, [0.5, 3, 6, 10, 15, 25]), 7),
        "hour": _shares(hour, 24),
        "rows a user": _shares(sizes, MOST + 1),
        "mean distance": float(apart.mean()),
        "same cell": float((before == after).mean()),
    }


def _shares(codes: np.ndarray, n: int) -> np.ndarray:
    return np.bincount(codes, minlength=n) / max(codes.size, 1)


def errors(real: dict[str, Any], made: dict[str, Any]) -> dict[str, float]:
    """Return total variations, and differences of the numbers."""
    return {
        name: float(np.abs(value - made[name]).sum() / 2) if isinstance(value, np.ndarray) else made[name] - value
        for name, value in real.items()
    }


JUDGED = ("cells", "transitions", "between regions", "distance", "hour")


def linked(frame: pd.DataFrame, settings: Settings, epsilon: Any, seed: int, *, label: bool) -> pd.DataFrame:
    """Return as many users as there are, by our linked rows."""
    n = frame["user"].nunique()
    unit = {"column": "user", "max_rows": MOST, "order": "time", "units": n}
    when = {"kind": "datetime", "lower": "2009-01-01", "upper": "2010-12-31", "resolution": "second"}
    schema = Schema.from_dict({"unit": unit, "columns": {"time": when, **_columns(settings.grid, label=label)}})
    release = MaxEntropy(epsilon=epsilon, delta=DELTA).fit(frame, schema=schema, seed=seed)
    return _celled(release.sample(n, seed=seed), settings.grid)


def by_itself(frame: pd.DataFrame, settings: Settings, epsilon: Any, seed: int) -> pd.DataFrame:
    """Return what `linked` does of labels, where that one is kept is no prior of single moments."""
    with patch.object(second_stage, "copies", lambda columns, named, evidence: np.zeros_like(evidence.values)):
        return linked(frame, settings, epsilon, seed, label=True)


def unlinked(frame: pd.DataFrame, settings: Settings, epsilon: Any, seed: int, *, label: bool) -> pd.DataFrame:
    """Return rows of a unit without an order, put in as many users as there are at random."""
    n, rows = frame["user"].nunique(), round(len(first_rows(frame)), -3)
    unit = {"column": "user", "max_rows": MOST}
    schema = Schema.from_dict({"unit": unit, "rows": rows, "columns": _columns(settings.grid, label=label)})
    release = MaxEntropy(epsilon=epsilon, delta=DELTA).fit(frame, schema=schema, seed=seed)
    made = _celled(release.sample(rows, seed=seed), settings.grid)
    made["user"] = np.random.default_rng(seed).integers(0, n, rows)
    return first_rows(made.sort_values("user", kind="stable"))


def _columns(grid: int, *, label: bool) -> dict[str, Any]:
    number = {"kind": "integer", "lower": 0, "upper": grid - 1}
    place = {"cell": {"kind": "categorical", "categories": [str(code) for code in range(grid**2)]}}
    where = place if label else {"row": number, "column": number}
    return {"user": "identifier", **where, "hour": {"kind": "integer", "lower": 0, "upper": 23}}


def _celled(made: pd.DataFrame, grid: int) -> pd.DataFrame:
    cell = made["cell"].astype(int) if "cell" in made else made["row"] * grid + made["column"]
    return made.assign(cell=cell)


def ngrams(frame: pd.DataFrame, settings: Settings, epsilon: float, seed: int) -> pd.DataFrame:
    """Return as many users as there are, by n-grams of cells, and of hours."""
    rng, n = np.random.default_rng(seed), frame["user"].nunique()
    users, levels, trees = frame["user"].to_numpy(), [], []
    for name, m, part in (("cell", settings.grid**2, settings.places), ("hour", 24, 1 - settings.places)):
        sequences = Sequences.of(users, frame[name].to_numpy(), m, settings.longest)
        trees.append(NGrams.fit(sequences, part * epsilon, settings.depth, n, rng))
        levels += trees[-1].epsilons
    assert np.isinf(epsilon) or spent(levels, DELTA) <= epsilon + 1e-3
    persons, cells = trees[0].sample(n, rng)
    hours = trees[1].sample(n, rng, np.bincount(persons, minlength=n))[1]
    return pd.DataFrame({"user": persons, "cell": cells, "hour": hours})


def halves(frame: pd.DataFrame, settings: Settings, epsilon: Any, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the real rows of one half of the users, and of the other."""
    del settings, epsilon
    users = np.random.default_rng(seed).permutation(frame["user"].unique())
    mine = frame["user"].isin(users[: users.size // 2])
    return frame[mine].reset_index(drop=True), frame[~mine].reset_index(drop=True)


Method = Callable[[pd.DataFrame, Settings, Any, int], Any]
METHODS: dict[str, Method] = {
    "linked, a label": partial(linked, label=True),
    "linked, a label, each by itself": by_itself,
    "linked, numbers": partial(linked, label=False),
    "unlinked, a label": partial(unlinked, label=True),
    "unlinked, numbers": partial(unlinked, label=False),
    "n-grams": ngrams,
    "half of the users": halves,
}


def runs(name: str, frame: pd.DataFrame, settings: Settings, epsilon: Any, seeds: range) -> dict[str, Any]:
    """Return mean and deviation of a method's errors over seeds, and of their mean."""
    grid, found, began = settings.grid, [], time.process_time()
    real = figures(first_rows(frame), grid)
    for seed in seeds:
        made = METHODS[name](frame, settings, epsilon, seed)
        if isinstance(made, tuple):
            one, other = (figures(first_rows(half), grid) for half in made)
            found.append(errors(one, other))
        else:
            found.append(errors(real, figures(made, grid)))
    table = pd.DataFrame(found)
    table["judged"] = table[list(JUDGED)].mean(axis=1)
    summary = {
        str(k): {"mean": round(float(c.mean()), 4), "deviation": round(float(c.std(ddof=0)), 4)}
        for k, c in table.items()
    }
    seconds = round((time.process_time() - began) / len(seeds), 1)
    print(f"{name}, ε = {epsilon}, {settings}, {seconds} s:", {k: v["mean"] for k, v in summary.items()}, flush=True)
    return {**summary, "seconds": seconds}


def choose(arguments: argparse.Namespace) -> dict[str, Any]:
    """Settle the grid by real users, then the coding and the baseline's settings."""
    seeds, found, agreed = range(1, arguments.fits + 1), {}, {}
    for grid in GRIDS:
        frame = parts(read(arguments.folder, grid))[0]
        agreed[grid] = runs("half of the users", frame, Settings(grid), None, seeds)
    grid = max((g for g in GRIDS if agreed[g]["cells"]["mean"] <= AGREE), default=min(GRIDS))
    frame = parts(read(arguments.folder, grid))[0]
    found["halves"], found["grid"] = agreed, grid
    for name in ("linked, a label", "linked, numbers", "unlinked, a label", "unlinked, numbers"):
        found[name] = runs(name, frame, Settings(grid), 2.0, seeds)
    for longest in (5, 10, 20):
        for depth in (2, 3):
            for places in (0.5, 0.7, 0.9):
                settings = Settings(grid, longest, depth, places)
                found[f"n-grams {settings}"] = runs("n-grams", frame, settings, 2.0, seeds)
    return found


def compare(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run every method on the users that nothing was chosen by."""
    seeds, frame = range(1, arguments.fits + 1), parts(read(arguments.folder, SETTINGS.grid))[1]
    rows = first_rows(frame)
    real = figures(rows, SETTINGS.grid)
    found: dict[str, Any] = {
        "users": int(frame["user"].nunique()),
        "rows": len(rows),
        "delta": DELTA,
        "fits": len(seeds),
        "settings": vars(SETTINGS),
        "real": {k: round(v, 4) for k, v in real.items() if isinstance(v, float)},
    }
    for name in METHODS:
        found[name] = runs(name, frame, SETTINGS, 1.0, seeds)
    for name in ("linked, a label", "linked, numbers"):
        found[f"{name}, no noise"] = runs(name, frame, SETTINGS, NonPrivate(), range(1, 2))
    found["n-grams, no noise"] = runs("n-grams", frame, replace(SETTINGS, longest=MOST), np.inf, range(1, 2))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["choose", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    found = {"choose": choose, "compare": compare}[arguments.what](arguments)
    if arguments.out is not None:
        kept = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else {}
        arguments.out.write_text(json.dumps({**kept, arguments.what: found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
