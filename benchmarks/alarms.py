"""Signs that a table's model went wrong, on made-up tables of the kinds that once broke it.

    python benchmarks/alarms.py [NAME ...] [--epsilon 1] [--fits 1]

Tables of kind A have many strongly tied numbers, B rare and tied levels, C numbers that end before their bounds, D
numbers that follow from others, E few rows, F many classes. Nothing was chosen on them. For each:

    1-way       released counts beside those of samples, in deviations of their noise, root of the mean square over a
                column's cells: the mean column and the worst one; of noise alone it is 1
    outside     per mille of sampled numbers beyond the smallest and largest real one
    spread      mean standard deviation of sampled numbers in that of the real ones
    rare        largest share, in per cent of rows, by which a sample overstates a level
    2-way       mean total variation over all pairs, numbers in 16 equal-width bins, beside the real rows, and what a
                tenth of these has
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

import sfumato
from sfumato.columns.kinds import Categorical, Continuous, Integer
from sfumato.inference.table_measurements import TableMeasurements

DELTA, BINS, SAMPLED = 1e-5, 16, 10
Made = tuple[pd.DataFrame, dict[str, tuple[float, float]], str | None]


def repayments(rng: np.random.Generator, months: int = 6, n: int = 15_000) -> Made:
    """A: bills of months that nearly repeat, what was paid of each, and ordered delays."""
    level = rng.lognormal(9, 1.2, n)
    delay = np.clip(rng.poisson(0.3, n) - 1, -1, 6)
    columns: dict[str, np.ndarray] = {"limit": np.minimum(level * rng.lognormal(0.8, 0.5, n), 8e5).round(-4)}
    for month in range(months):
        level = np.maximum(level * rng.lognormal(0, 0.1, n) + rng.normal(0, 500, n), 0)
        delay = np.where(rng.random(n) < 0.8, delay, np.clip(rng.poisson(0.3, n) - 1, -1, 6))
        columns[f"bill{month}"] = np.minimum(level, 9e5).round()
        columns[f"paid{month}"] = np.where(rng.random(n) < 0.3, 0, np.minimum(level * rng.beta(1, 8, n), 4e5)).round()
        columns[f"delay{month}"] = np.char.add("d", delay.astype(int).astype(str))
    risk = (delay > 0) + rng.normal(0, 1, n) > 1.2
    columns["default"] = np.where(risk, "yes", "no")
    bounds = (
        {"limit": (0, 1e6)}
        | {f"bill{m}": (0, 1e6) for m in range(months)}
        | {f"paid{m}": (0, 5e5) for m in range(months)}
    )
    return pd.DataFrame(columns), bounds, "default"


def indices(rng: np.random.Generator, n: int = 10_000) -> Made:
    """A: eight economic indices that move together, a day's number of calls, an answer."""
    factor = rng.normal(0, 1, n)
    tied = factor[:, None] + 0.05 * rng.normal(0, 1, (n, 8))
    frame = pd.DataFrame({f"index{i}": (100 + 5 * tied[:, i]).round(2) for i in range(8)})
    frame["calls"] = rng.geometric(0.3, n)
    frame["answer"] = np.where(factor + rng.normal(0, 1, n) > 1, "yes", "no")
    return frame, {f"index{i}": (50, 150) for i in range(8)} | {"calls": (0, 60)}, "answer"


def visits(rng: np.random.Generator, n: int = 12_000) -> Made:
    """A: pages and seconds by kind of page, most of them 0; rates between 0 and .2 that mirror each other."""
    eager = rng.gamma(1, 1, n)
    columns: dict[str, np.ndarray] = {}
    for kind in ("info", "admin", "product"):
        pages = rng.poisson(eager * {"info": 0.5, "admin": 2, "product": 20}[kind])
        columns[f"{kind}_pages"] = np.minimum(pages, 700)
        columns[f"{kind}_seconds"] = np.minimum(pages * rng.lognormal(3, 0.8, n), 60_000).round(1)
    exits = np.clip(rng.beta(1, 20, n) + 0.05 / (1 + columns["product_pages"]), 0, 0.2)
    columns["exits"], columns["bounces"] = exits.round(4), np.clip(exits * rng.beta(3, 3, n), 0, 0.2).round(4)
    columns["sale"] = np.where(rng.random(n) < 0.05 + 0.2 * (eager > 2), "yes", "no")
    bounds = {
        c: (0, 1_000) if "pages" in c else (0, 100_000) if "seconds" in c else (0, 0.2) for c in columns if c != "sale"
    }
    return pd.DataFrame(columns), bounds, "sale"


def rare_levels(rng: np.random.Generator, n: int = 20_000) -> Made:
    """B: levels from half of the rows to one in a thousand, in three columns that copy each other nine times in ten."""
    shares = np.array([0.5, 0.25, 0.12, 0.06, 0.03, 0.02, 0.01, 0.005, 0.003, 0.002])
    first = rng.choice(10, n, p=shares)
    columns = {"first": first}
    for name in ("second", "third"):
        columns[name] = np.where(rng.random(n) < 0.9, first, rng.choice(10, n, p=shares))
    frame = pd.DataFrame({k: np.char.add("l", v.astype(str)) for k, v in columns.items()})
    frame["amount"] = np.minimum(rng.lognormal(first * 0.3, 0.5), 100).round(2)
    frame["hit"] = np.where(rng.random(n) < 0.1 + 0.05 * first, "yes", "no")
    return frame, {"amount": (0, 100)}, "hit"


def deciles(rng: np.random.Generator, n: int = 6_000) -> Made:
    """B: two scores of ten levels from near-copies, their words, counts of before."""
    score = rng.normal(0, 1, n)
    other = score + 0.4 * rng.normal(0, 1, n)
    ranks = [np.clip((10 * pd.Series(x).rank(pct=True)).to_numpy().astype(int), 0, 9) for x in (score, other)]
    words = np.array(["low"] * 4 + ["medium"] * 3 + ["high"] * 3)
    frame = pd.DataFrame(
        {"decile": np.char.add("", ranks[0].astype(str)), "v_decile": np.char.add("", ranks[1].astype(str))}
    )
    frame["score_text"], frame["v_score_text"] = words[ranks[0]], words[ranks[1]]
    frame["before"] = np.minimum(rng.poisson(np.exp(0.5 * score)), 38)
    frame["again"] = np.where(score + rng.normal(0, 1.5, n) > 0, "yes", "no")
    return frame, {"before": (0, 40)}, "again"


def rare_cases(rng: np.random.Generator, n: int = 20_000) -> Made:
    """B: a target of half a per cent, with numbers that tell of it."""
    sick = rng.random(n) < 0.005
    frame = pd.DataFrame({f"lab{i}": (rng.normal(10, 2, n) + (2 * sick if i < 3 else 0)).round(2) for i in range(8)})
    frame["ward"] = rng.choice(list("abcdef"), n, p=[0.5, 0.3, 0.1, 0.06, 0.03, 0.01])
    frame["sick"] = np.where(sick, "yes", "no")
    return frame, {f"lab{i}": (0, 30) for i in range(8)}, "sick"


def ages(
    rng: np.random.Generator, n: int = 10_000, low: int = 25, high: int = 64, bounds: tuple[int, int] = (20, 70)
) -> Made:
    """C: ages that stop before their bounds, pay from a minimum, hours that peak."""
    age = rng.integers(low, high + 1, n)
    pay = np.maximum(rng.lognormal(7.5 + 0.01 * age, 0.5), 900).round()
    hours = np.where(rng.random(n) < 0.6, 40, np.clip(rng.normal(30, 8, n), 8, 60)).round()
    frame = pd.DataFrame({"age": age, "pay": np.minimum(pay, 40_000), "hours": hours})
    frame["union"] = np.where(rng.random(n) < age / 130, "yes", "no")
    return frame, {"age": bounds, "pay": (0, 50_000), "hours": (0, 100)}, None


def adults(rng: np.random.Generator) -> Made:
    """C: working ages in bounds from 0 to 120."""
    return ages(rng, low=18, high=65, bounds=(0, 120))


def grades(rng: np.random.Generator, n: int = 8_000) -> Made:
    """C: marks of 0 to 20 by halves with a gap below 10, a uniform share, a number of courses."""
    mark = np.clip(rng.normal(12, 3, n), 4, 20).round()
    mark = np.where((mark > 8) & (mark < 10), 10, mark)
    frame = pd.DataFrame({"mark": mark, "share": rng.uniform(0.2, 0.8, n).round(3), "courses": rng.integers(3, 9, n)})
    frame["passed"] = np.where(mark >= 10, "yes", "no")
    return frame, {"mark": (0, 20), "share": (0, 1), "courses": (0, 30)}, "passed"


def flights(rng: np.random.Generator, n: int = 20_000) -> Made:
    """D: the distance to each of sixty airports, the time it takes, a carrier."""
    far = rng.uniform(150, 2_600, 60).round()
    airport = rng.choice(60, n, p=rng.dirichlet(np.full(60, 1.0)))
    minutes = far[airport] / 7.5 + 20 + rng.normal(0, 8, n)
    frame = pd.DataFrame(
        {"airport": np.char.add("a", airport.astype(str)), "distance": far[airport], "minutes": minutes.round()}
    )
    frame["carrier"] = np.array(list("ABCDEFG"))[(airport + rng.integers(0, 3, n)) % 7]
    frame["late"] = np.where(rng.random(n) < 0.15 + 0.1 * (airport % 3 == 0), "yes", "no")
    return frame, {"distance": (0, 5_000), "minutes": (0, 700)}, "late"


def loans(rng: np.random.Generator, n: int = 12_000) -> Made:
    """D: a balance that is the loan less what was repaid, a grade by the rate."""
    loan = np.minimum(rng.lognormal(9.3, 0.6, n), 40_000).round(-2)
    repaid = (loan * rng.beta(1, 2, n)).round()
    rate = np.clip(rng.gamma(6, 2.1, n), 5, 31).round(2)
    grade = np.array(list("ABCDEFG"))[np.digitize(rate, [8, 11, 14, 18, 22, 26])]
    frame = pd.DataFrame({"loan": loan, "repaid": repaid, "balance": loan - repaid, "rate": rate, "grade": grade})
    return frame, {"loan": (0, 50_000), "repaid": (0, 50_000), "balance": (0, 50_000), "rate": (0, 35)}, "rate"


def stays(rng: np.random.Generator, n: int = 15_000) -> Made:
    """D: days of admission and discharge, length of stay, ward, age."""
    admitted = rng.integers(0, 360, n)
    ward = rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    days = np.minimum(rng.geometric(1 / (2 + 2 * ward)), 60)
    frame = pd.DataFrame({"admitted": admitted, "discharged": admitted + days, "days": days})
    frame["ward"] = np.array(["general", "surgery", "heart", "intensive"])[ward]
    frame["age"] = np.clip(rng.normal(50 + 6 * ward, 18, n), 0, 100).round()
    return frame, {"admitted": (0, 365), "discharged": (0, 430), "days": (0, 100), "age": (0, 110)}, None


def mixed(rng: np.random.Generator, n: int, columns: int) -> Made:
    """E: numbers of a few factors and labels cut from them."""
    factors = rng.normal(0, 1, (n, 3))
    frame, bounds = pd.DataFrame(index=range(n)), {}
    for j in range(columns):
        score = factors @ rng.normal(0, 0.6, 3) + rng.normal(0, 1, n)
        if j % 2:
            frame[f"x{j}"], bounds[f"x{j}"] = (50 + 10 * score).round(1), (0, 100)
        else:
            frame[f"l{j}"] = np.array(list("abcd"))[np.digitize(score, [-0.5, 0.7, 1.6])]
    frame["y"] = np.where(factors[:, 0] + rng.normal(0, 1, n) > 0.5, "yes", "no")
    return frame.copy(), bounds, "y"


def small_14(rng: np.random.Generator) -> Made:
    return mixed(rng, 3_500, 13)


def small_20(rng: np.random.Generator) -> Made:
    return mixed(rng, 7_000, 19)


def wide_100(rng: np.random.Generator, n: int = 1_000) -> Made:
    """E: a hundred normal numbers of a thousand persons."""
    frame = pd.DataFrame({f"x{j}": rng.normal(50, 10, n).round(1) for j in range(100)})
    return frame, dict.fromkeys(frame, (0.0, 100.0)), None


def small_heavy(rng: np.random.Generator, n: int = 2_000) -> Made:
    """E: incomes and wealth with tails, few rows."""
    skill = rng.normal(0, 1, n)
    frame = pd.DataFrame({"income": np.minimum(rng.lognormal(10 + 0.5 * skill, 0.4), 9e5).round(-2)})
    frame["wealth"] = np.where(rng.random(n) < 0.3, 0, np.minimum(rng.lognormal(11 + skill, 1.2), 9e6)).round(-3)
    frame["children"] = rng.choice(5, n, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    frame["region"] = rng.choice(list("nesw"), n)
    frame["owner"] = np.where(skill + rng.normal(0, 1, n) > 0, "yes", "no")
    return frame, {"income": (0, 1e6), "wealth": (0, 1e7), "children": (0, 12)}, "owner"


def letters(rng: np.random.Generator, classes: int = 26, n: int = 18_000) -> Made:
    """F: many classes, each with its own means of sixteen whole numbers."""
    kind = rng.integers(0, classes, n)
    means = rng.uniform(3, 12, (classes, 16))
    frame = pd.DataFrame({f"x{j}": np.clip(rng.normal(means[kind, j], 1.8), 0, 15).round() for j in range(16)})
    frame["letter"] = np.char.add("k", kind.astype(str))
    return frame, dict.fromkeys([f"x{j}" for j in range(16)], (0, 15)), "letter"


def soils(rng: np.random.Generator) -> Made:
    """F: nine classes of unequal size."""
    frame, bounds, target = letters(rng, 9, 9_000)
    keep = rng.random(len(frame)) < 1 / (1 + frame["letter"].str[1:].astype(int))
    return frame[keep].reset_index(drop=True), bounds, target


TABLES: dict[str, Callable[[np.random.Generator], Made]] = {
    f.__name__: f
    for f in (
        repayments, indices, visits, rare_levels, deciles, rare_cases, ages, adults, grades, flights, loans, stays,
        small_14, small_20, wide_100, small_heavy, letters, soils,
    )
}  # fmt: skip


def kinds(frame: pd.DataFrame, bounds: dict[str, tuple[float, float]]) -> dict[str, object]:
    """Public facts: bounds as given, levels of labels as written."""
    made: dict[str, object] = {}
    for name, column in frame.items():
        if name not in bounds:
            made[str(name)] = Categorical(categories=tuple(sorted(column.unique())))
        elif (column == column.round()).all():
            made[str(name)] = Integer(lower=int(bounds[name][0]), upper=int(bounds[name][1]))
        else:
            made[str(name)] = Continuous(lower=bounds[name][0], upper=bounds[name][1])
    return made


def one_way(release: sfumato.Release) -> dict[str, float]:
    """Return each column's distance of model rows from released counts, in deviations of their noise."""
    measured, made = TableMeasurements(release), {}
    for name in measured.columns:
        counts = measured.counts(name)
        if counts is None:
            continue
        drawn = np.bincount(measured.cells(name), minlength=counts.cells.size) / measured.n_rows * measured.size
        distances = [(drawn - counts.cells) / np.sqrt(counts.cell_variance)]
        if np.isfinite(counts.run_variance):
            together = np.bincount(counts.run_of, drawn, counts.runs.size)
            distances.append((together - counts.runs) / np.sqrt(counts.run_variance))
        made[name] = max(float(np.sqrt(np.mean(d**2))) for d in distances)
    return made


def cut(frame: pd.DataFrame, bounds: dict[str, tuple[float, float]]) -> dict[str, np.ndarray]:
    """Columns as whole numbers."""
    made = {}
    for name, column in frame.items():
        if name in bounds:
            low, high = bounds[str(name)]
            made[str(name)] = np.clip(((column.to_numpy(float) - low) / (high - low) * BINS).astype(int), 0, BINS - 1)
        else:
            made[str(name)] = column.astype(str).to_numpy()
    return made


def two_way(real: pd.DataFrame, other: pd.DataFrame, bounds: dict[str, tuple[float, float]]) -> float:
    first, second = (pd.DataFrame(cut(frame, bounds)) for frame in (real, other))
    distances = []
    for pair in itertools.combinations(first.columns, 2):
        tables = [frame.groupby(list(pair)).size() / len(frame) for frame in (first, second)]
        distances.append(tables[0].sub(tables[1], fill_value=0).abs().sum() / 2)
    return float(np.mean(distances))


def scores(name: str, made: Made, epsilon: float, seed: int) -> dict[str, float]:
    """Fit a table once, and return its signs."""
    frame, bounds, target = made
    schema = sfumato.Schema(columns=kinds(frame, bounds), rows=len(frame))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = sfumato.MaxEntropy(epsilon=epsilon, delta=DELTA).fit(frame, schema=schema, target=target, seed=seed)
    seconds = time.process_time() - start
    sample = release.sample(SAMPLED * len(frame), seed=seed)
    distances = one_way(release)
    outside = [float(((sample[c] < frame[c].min()) | (sample[c] > frame[c].max())).mean()) for c in bounds]
    rare = [
        float(
            sample[c]
            .astype(str)
            .value_counts(normalize=True)
            .sub(frame[c].astype(str).value_counts(normalize=True), fill_value=0)
            .max()
        )
        for c in frame
        if c not in bounds
    ]
    spreads = [float(sample[c].std() / frame[c].std()) for c in bounds]
    tenth = frame.sample(frac=0.1, random_state=0)
    worst = max(distances, key=lambda c: distances[c])
    return {
        "1-way": float(np.mean(list(distances.values()))),
        "worst": distances[worst],
        "of": worst,
        "outside": 1_000 * max(outside, default=0.0),
        "spread": float(np.mean(spreads)),
        "rare": 100 * max(rare, default=0.0),
        "2-way": two_way(frame, sample, bounds),
        "tenth": two_way(frame, tenth, bounds),
        "CPU s": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=1)
    options = parser.parse_args()
    for name in options.names or TABLES:
        for seed in range(options.fits):
            made = TABLES[name](np.random.default_rng(sorted(TABLES).index(name)))
            row = scores(name, made, options.epsilon, seed)
            print(
                f"{name:<14}",
                *(f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()),
                flush=True,
            )


if __name__ == "__main__":
    main()
