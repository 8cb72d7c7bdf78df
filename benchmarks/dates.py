"""What samples keep of the distance between two dates of a row, without a rule: eleven made-up tables, n = 20,000.

    python benchmarks/dates.py [register ...] [--epsilon 1] [--fits 3] [--rows 20000] [--rules] [--out FOLDER]

    register     admission and discharge, mostly 0 to 14 days later, some missing; ward, age, a cost tied to the stay
    capped       the same, of which the ward says whether anybody stays longer than a week
    orders       order, shipment and delivery; carrier and price; what is not shipped is not delivered
    unrelated    two dates of the same ten years that have nothing to do with each other, each tied to another column
    trend        the same, the later one on the mean later, by years
    born         a birth within 105 years and an admission within ten: bounds that hardly overlap
    equal        occurred and reported: the same day in 60 % of rows, weeks and months later in the others
    mixed        due and paid: 30 % are paid before
    minutes      beginnings and ends in minutes, at working hours, 5 minutes to 10 hours apart
    far          diagnosis and death, years apart, mostly missing
    patients     linked rows with two constants, dates of a first and a last contact

Figures of a fit: `before`, the part of the rows whose later date lies before the earlier one, real and synthetic;
`distance`, total variation over 0, 1 day, 2 to 7, 8 to 30, 31 to 365, more, and below 0 (of minutes: 0, up to 15, 60,
180, 480, more); `dates`, mean total variation of the dates alone, in 40 equal cells and missing; `others`, the same of
the other columns; `pairs`, mean total variation of all pairs of columns, numbers and dates in 16 equal cells; `tied`,
of distances, in these bins, beside each other column. `floor` is a sample of the real rows, as many, drawn anew.
With `--rules` the schema has the rule of order, where rows keep one. Made from made-up records.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sfumato

DELTA = 1e-5
DAY_BINS = (-np.inf, 0, 1, 2, 8, 31, 366, np.inf)
MINUTE_BINS = (-np.inf, 0, 1, 16, 61, 181, 481, np.inf)


@dataclass(frozen=True)
class Made:
    """A table: rows, columns of a schema document, pairs of dates and whether each is in order."""

    frame: pd.DataFrame
    columns: dict[str, dict[str, Any]]
    pairs: tuple[tuple[str, str], ...]
    ordered: bool = False
    bins: tuple[float, ...] = DAY_BINS
    unit: dict[str, Any] = field(default_factory=dict)


def _dates(first: str, last: str, resolution: str = "day", nullable: bool = False) -> dict[str, Any]:
    return {"kind": "datetime", "lower": first, "upper": last, "resolution": resolution, "nullable": nullable}


def _number(lower: float, upper: float) -> dict[str, Any]:
    return {"kind": "integer", "lower": lower, "upper": upper}


def _labels(*labels: str) -> dict[str, Any]:
    return {"kind": "categorical", "categories": list(labels)}


def _moments(first: str, steps: np.ndarray, unit: str = "D", missing: np.ndarray | None = None) -> pd.Series:
    moments = pd.Series(np.datetime64(first, unit) + steps.astype(np.int64).astype(f"timedelta64[{unit}]"))
    moments = moments.astype("datetime64[s]")
    return moments if missing is None else moments.mask(missing)


WARDS = ("surgery", "medicine", "children", "births", "ears", "eyes")
TEN_YEARS = 3652


def register(rng: np.random.Generator, n: int) -> Made:
    """Admission and discharge of a hospital."""
    ward = rng.choice(6, n, p=[0.28, 0.34, 0.14, 0.12, 0.07, 0.05])
    age = np.clip(np.where(ward == 2, rng.gamma(2, 4, n), rng.normal(62 - 28 * (ward == 3), 15, n)), 0, 104).astype(int)
    mean = np.array([5.0, 6.5, 3.0, 2.5, 1.5, 0.6])[ward] * (0.6 + age / 100)
    stay = rng.poisson(rng.gamma(1.5, mean / 1.5))
    stay = np.where(rng.random(n) < 0.01, rng.integers(30, 200, n), stay)
    day = np.sort(rng.integers(0, TEN_YEARS - 210, n))[rng.permutation(n)]
    cost = (rng.lognormal(6, 0.4, n) + 420 * stay * rng.lognormal(0, 0.2, n)).clip(0, 99_999).astype(int)
    frame = pd.DataFrame({
        "admission": _moments("2015-01-01", day),
        "discharge": _moments("2015-01-01", day + stay, missing=rng.random(n) < 0.05),
        "ward": np.array(WARDS)[ward], "age": age, "cost": cost,
    })  # fmt: skip
    bounds = ("2015-01-01", "2024-12-31")
    columns = {
        "admission": _dates(*bounds), "discharge": _dates(*bounds, nullable=True), "ward": _labels(*WARDS),
        "age": _number(0, 110), "cost": _number(0, 100_000),
    }  # fmt: skip
    return Made(frame, columns, (("admission", "discharge"),), ordered=True)


def capped(rng: np.random.Generator, n: int) -> Made:
    """Stays that a ward decides."""
    made = register(rng, n)
    long = np.isin(made.frame["ward"], WARDS[:2])
    stay = np.where(long, rng.integers(8, 29, n), rng.integers(0, 8, n))
    frame = made.frame.assign(discharge=made.frame["admission"] + pd.to_timedelta(stay, "D"))
    return Made(frame, made.columns, made.pairs, ordered=True)


def orders(rng: np.random.Generator, n: int) -> Made:
    """Orders, shipments and deliveries of a shop."""
    carrier = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    day = np.minimum(1090 * rng.beta(1.5, 1, n), 1040).astype(int)
    packing = rng.choice([0, 1, 2, 3, 5, 8], n, p=[0.25, 0.4, 0.15, 0.1, 0.07, 0.03])
    way = 1 + rng.poisson(np.array([1.0, 3.0, 7.0])[carrier])
    unshipped, lost = rng.random(n) < 0.06, rng.random(n) < 0.05
    frame = pd.DataFrame({
        "ordered": _moments("2021-01-01", day),
        "shipped": _moments("2021-01-01", day + packing, missing=unshipped),
        "delivered": _moments("2021-01-01", day + packing + way, missing=unshipped | lost),
        "carrier": np.array(["fast", "plain", "sea"])[carrier],
        "price": np.clip(rng.lognormal(3.5 + 0.4 * (carrier == 0), 0.8, n), 1, 2_000).astype(int),
    })  # fmt: skip
    bounds = ("2021-01-01", "2023-12-31")
    columns = {
        "ordered": _dates(*bounds), "shipped": _dates(*bounds, nullable=True),
        "delivered": _dates(*bounds, nullable=True), "carrier": _labels("fast", "plain", "sea"),
        "price": _number(0, 2_000),
    }  # fmt: skip
    return Made(frame, columns, (("ordered", "shipped"), ("shipped", "delivered")), ordered=True)


def unrelated(rng: np.random.Generator, n: int) -> Made:
    """Two dates that have nothing to do with each other."""
    hired = (3_600 * rng.beta(1, 1.6, n)).astype(int)
    trained = np.where(rng.random(n) < 0.5, rng.integers(2_600, 3_600, n), rng.integers(0, 3_600, n))
    pay = np.clip(4_500 - 0.5 * hired + rng.normal(0, 500, n), 500, 9_000).astype(int)
    passed = rng.random(n) < np.where(trained > 2_600, 0.85, 0.5)
    frame = pd.DataFrame({
        "hired": _moments("2014-01-01", hired),
        "trained": _moments("2014-01-01", trained, missing=rng.random(n) < 0.1),
        "pay": pay, "passed": np.where(passed, "yes", "no"),
        "team": rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1]),
    })  # fmt: skip
    bounds = ("2014-01-01", "2023-12-31")
    columns = {
        "hired": _dates(*bounds), "trained": _dates(*bounds, nullable=True), "pay": _number(0, 10_000),
        "passed": _labels("no", "yes"), "team": _labels(*"abcd"),
    }  # fmt: skip
    return Made(frame, columns, (("hired", "trained"),))


def trend(rng: np.random.Generator, n: int) -> Made:
    """Two dates of which one follows the other, by years and as often before."""
    made = unrelated(rng, n)
    days = (made.frame["hired"] - pd.Timestamp("2014-01-01")).dt.days.to_numpy()
    later = np.clip(0.6 * days + rng.normal(1_400, 600, n), 0, 3_651).astype(int)
    frame = made.frame.assign(trained=_moments("2014-01-01", later, missing=rng.random(n) < 0.1))
    return Made(frame, made.columns, made.pairs)


def born(rng: np.random.Generator, n: int) -> Made:
    """Births and admissions."""
    made = register(rng, n)
    frame = made.frame.drop(columns="discharge")
    birth = frame["admission"] - pd.to_timedelta(frame["age"] * 365.25 + rng.integers(0, 365, n), "D")
    frame.insert(0, "birth", birth.dt.floor("D").astype("datetime64[s]"))
    columns = {"birth": _dates("1909-01-01", "2024-12-31"), **made.columns}
    return Made(frame, {name: entry for name, entry in columns.items() if name in frame}, (("birth", "admission"),))


def equal(rng: np.random.Generator, n: int) -> Made:
    """Days of an event and of its report."""
    day = rng.integers(0, 1_400, n)
    way = rng.choice(3, n, p=[0.6, 0.25, 0.15])
    wait = np.where(rng.random(n) < 0.6, 0, np.minimum(rng.lognormal(3.2 + 0.5 * way, 1.0, n), 420)).astype(int)
    frame = pd.DataFrame({
        "occurred": _moments("2020-01-01", day), "reported": _moments("2020-01-01", day + wait),
        "way": np.array(["telephone", "letter", "visit"])[way],
        "loss": np.minimum(rng.lognormal(6 + 0.2 * way, 1, n), 50_000).astype(int),
    })  # fmt: skip
    bounds = ("2020-01-01", "2024-12-31")
    columns = {
        "occurred": _dates(*bounds), "reported": _dates(*bounds), "way": _labels("telephone", "letter", "visit"),
        "loss": _number(0, 50_000),
    }  # fmt: skip
    return Made(frame, columns, (("occurred", "reported"),), ordered=True)


def mixed(rng: np.random.Generator, n: int) -> Made:
    """Bills, due and paid."""
    size = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    due = rng.integers(40, 1_700, n)
    early = rng.random(n) < 0.3
    away = np.where(early, -rng.integers(1, 31, n), rng.poisson(rng.gamma(1.2, 6 + 6 * size)))
    frame = pd.DataFrame({
        "due": _moments("2020-01-01", due),
        "paid": _moments("2020-01-01", due + away, missing=rng.random(n) < 0.03),
        "firm": np.array(["small", "middle", "large"])[size],
        "amount": np.minimum(rng.lognormal(5 + size, 1, n), 100_000).astype(int),
    })  # fmt: skip
    bounds = ("2020-01-01", "2024-12-31")
    columns = {
        "due": _dates(*bounds), "paid": _dates(*bounds, nullable=True), "firm": _labels("small", "middle", "large"),
        "amount": _number(0, 100_000),
    }  # fmt: skip
    return Made(frame, columns, (("due", "paid"),))


def minutes(rng: np.random.Generator, n: int) -> Made:
    """Works on machines, by the minute."""
    machine = rng.choice(3, n)
    start = rng.integers(0, 725, n) * 1_440 + np.clip(rng.normal(600, 120, n), 360, 1_080).astype(int)
    length = np.clip(rng.lognormal(3.6 + 0.5 * machine, 0.8, n), 5, 600).astype(int)
    frame = pd.DataFrame({
        "begun": _moments("2022-01-01", start, "m"), "ended": _moments("2022-01-01", start + length, "m"),
        "machine": np.array(["saw", "drill", "press"])[machine],
        "pieces": np.minimum(rng.poisson(1 + length / 12), 200),
    })  # fmt: skip
    bounds = ("2022-01-01", "2023-12-31")
    columns = {
        "begun": _dates(*bounds, "minute"), "ended": _dates(*bounds, "minute"),
        "machine": _labels("saw", "drill", "press"), "pieces": _number(0, 200),
    }  # fmt: skip
    return Made(frame, columns, (("begun", "ended"),), ordered=True, bins=MINUTE_BINS)


def far(rng: np.random.Generator, n: int) -> Made:
    """Diagnosis and death, years apart."""
    stage = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    day = rng.integers(0, 3_650, n)
    years = rng.exponential(np.array([12.0, 7.0, 3.0, 0.8])[stage])
    death = day + (years * 365).astype(int)
    age = np.clip(rng.normal(66, 12, n), 18, 100).astype(int)
    frame = pd.DataFrame({
        "diagnosis": _moments("2014-01-01", day),
        "death": _moments("2014-01-01", np.minimum(death, 3_651), missing=death > 3_651),
        "stage": np.array(["I", "II", "III", "IV"])[stage], "age": age,
    })  # fmt: skip
    bounds = ("2014-01-01", "2023-12-31")
    columns = {
        "diagnosis": _dates(*bounds), "death": _dates(*bounds, nullable=True), "stage": _labels("I", "II", "III", "IV"),
        "age": _number(0, 110),
    }  # fmt: skip
    return Made(frame, columns, (("diagnosis", "death"),), ordered=True)


def patients(rng: np.random.Generator, n: int) -> Made:
    """Visits of patients, with the days of their first and last contact, which do not vary."""
    units = n // 3
    first = rng.integers(0, 1_300, units)
    last = np.minimum(first + rng.poisson(rng.gamma(1.2, 25, units)), 1_460)
    owner = np.repeat(np.arange(units), 1 + rng.poisson(2, units).clip(0, 7))[:n]
    frame = pd.DataFrame({
        "patient": owner, "first": _moments("2020-01-01", first)[owner].to_numpy(),
        "last": _moments("2020-01-01", last)[owner].to_numpy(),
        "step": pd.Series(owner).groupby(owner).cumcount().to_numpy(),
        "pulse": np.clip(rng.normal(75, 12, owner.size), 30, 200).astype(int),
    })  # fmt: skip
    bounds = ("2020-01-01", "2024-12-31")
    columns = {
        "patient": {"kind": "identifier"}, "first": _dates(*bounds), "last": _dates(*bounds), "step": _number(0, 9),
        "pulse": _number(30, 200),
    }  # fmt: skip
    unit = {"column": "patient", "max_rows": 8, "order": "step", "constant": ["first", "last"], "units": units}
    return Made(frame, columns, (("first", "last"),), ordered=True, unit=unit)


TABLES: dict[str, Callable[[np.random.Generator, int], Made]] = {
    "register": register, "capped": capped, "orders": orders, "unrelated": unrelated, "trend": trend, "born": born,
    "equal": equal, "mixed": mixed, "minutes": minutes, "far": far, "patients": patients,
}  # fmt: skip


def cells(name: str, made: Made, column: pd.Series, most: int) -> np.ndarray:
    """Return the cells of a column: labels, or so many of equal width, and one of what is missing."""
    entry = made.columns[name]
    if entry["kind"] == "categorical":
        return column.astype(str).map({label: i for i, label in enumerate(entry["categories"])}).to_numpy()
    lower, upper = entry["lower"], entry["upper"]
    if entry["kind"] == "datetime":
        lower, upper = pd.Timestamp(lower), pd.Timestamp(upper) + pd.Timedelta(days=1)
    position = ((column - lower) / (upper - lower)).to_numpy(dtype=np.float64)
    return np.where(np.isnan(position), most, np.minimum(np.nan_to_num(position) * most, most - 1)).astype(int)


def distance(made: Made, frame: pd.DataFrame, pair: tuple[str, str]) -> np.ndarray:
    """Return the bin of each row's distance, the last one of what is missing."""
    steps = (frame[pair[1]] - frame[pair[0]]).dt.total_seconds() / (86_400 if made.bins is DAY_BINS else 60)
    values = steps.to_numpy(dtype=np.float64)
    return np.where(np.isnan(values), len(made.bins), np.searchsorted(made.bins, values, side="right"))


def variation(*tables: tuple[np.ndarray, ...]) -> float:
    """Return the total variation of real and synthetic cells, of some columns together."""
    keys = [np.ravel_multi_index(columns, (64,) * len(columns)) for columns in tables]
    counts = [np.bincount(key, minlength=64 ** len(tables[0])) / key.size for key in keys]
    return float(np.abs(counts[0] - counts[1]).sum() / 2)


def figures(made: Made, synthetic: pd.DataFrame) -> dict[str, float]:
    """Return what samples keep."""
    frames = (made.frame.reset_index(drop=True), synthetic.reset_index(drop=True))
    dates = {name for pair in made.pairs for name in pair}
    names = [name for name, entry in made.columns.items() if entry["kind"] != "identifier"]
    fine = {name: [cells(name, made, frame[name], 40) for frame in frames] for name in names}
    coarse = {name: [cells(name, made, frame[name], 16) for frame in frames] for name in names}
    bins = {pair: [distance(made, frame, pair) for frame in frames] for pair in made.pairs}
    before = [
        statistics.fmean(float((part == 1).sum() / max((part < len(made.bins)).sum(), 1)) for part in parts)
        for parts in zip(*bins.values(), strict=True)
    ]
    alone = {name: variation(*((part,) for part in parts)) for name, parts in fine.items()}
    pairs = [variation(*zip(coarse[a], coarse[b], strict=True)) for a, b in itertools.combinations(names, 2)]
    tied = [
        variation(*zip(parts, coarse[other], strict=True)) for parts in bins.values() for other in names
        if other not in dates
    ]  # fmt: skip
    return {
        "before": before[1], "before, real": before[0],
        "distance": statistics.fmean(variation(*((part,) for part in parts)) for parts in bins.values()),
        "dates": statistics.fmean(alone[name] for name in dates),
        "others": statistics.fmean(alone[name] for name in names if name not in dates),
        "pairs": statistics.fmean(pairs), "tied": statistics.fmean(tied),
    }  # fmt: skip


def schema_of(made: Made, rules: bool) -> sfumato.Schema:
    """Return the schema, with the rule of order if asked for."""
    document: dict[str, Any] = {"columns": made.columns}
    document |= {"unit": made.unit} if made.unit else {"rows": len(made.frame)}
    if rules and made.ordered:
        document["rules"] = [{"order": list(dict.fromkeys(name for pair in made.pairs for name in pair))}]
    return sfumato.Schema.from_dict(document)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}; by default all")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rules", action="store_true", help="with the rule of order")
    parser.add_argument("--out", type=Path, help="file of the figures, JSON lines: appended to")
    arguments = parser.parse_args()
    for number, name in enumerate(TABLES):
        if arguments.tables and name not in arguments.tables:
            continue
        made = TABLES[name](np.random.default_rng(number), arguments.rows)
        again = TABLES[name](np.random.default_rng(1_000 + number), arguments.rows)
        fits, seconds = [], time.process_time()
        for seed in range(arguments.fits):
            release = sfumato.fit(
                made.frame, schema_of(made, arguments.rules), epsilon=arguments.epsilon, delta=DELTA, seed=seed
            )
            rows = made.unit.get("units", arguments.rows)
            fits.append(figures(made, release.sample(rows, seed=seed)))
        seconds = (time.process_time() - seconds) / arguments.fits
        print(f"{name} ({seconds:.1f} s a fit and its sample)")
        for label, values in {"floor": [figures(made, again.frame)], "fits": fits}.items():
            means = {figure: statistics.fmean(fit[figure] for fit in values) for figure in values[0]}
            spreads = {figure: np.ptp([fit[figure] for fit in values]) / 2 for figure in values[0]}
            texts = [f"{figure} {mean:.3f} ± {spreads[figure]:.3f}" for figure, mean in means.items()]
            print(f"    {label}: " + ", ".join(texts), flush=True)
            if arguments.out:
                entry = {"table": name, "row": label, "rules": arguments.rules, "epsilon": arguments.epsilon}
                with arguments.out.open("a") as file:
                    file.write(json.dumps({**entry, "rows": arguments.rows, "figures": values}) + "\n")


if __name__ == "__main__":
    main()
