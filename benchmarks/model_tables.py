"""Made-up tables on which models of tables differ, for `model.py`: near-functions, and where little is known.

Nothing was chosen on them. Each is of a generator with a seed of its own; `alarms.py` has others, of which `model.py`
takes some.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from alarms import TABLES, Made, indices, letters, mixed, rare_levels


def _words(prefix: str, codes: np.ndarray) -> np.ndarray:
    return np.char.add(prefix, codes.astype(str))


def clocks(rng: np.random.Generator, n: int = 15_000) -> Made:
    """Numbers that are near-functions of time: prices that drift, a season, a counter, beside an answer."""
    day = rng.integers(0, 1_000, n)
    drift = np.cumsum(rng.normal(0, 1, 1_000))
    columns = {"day": day, "counter": day * 40 + rng.integers(0, 40, n)}
    for j in range(3):
        columns[f"price{j}"] = (60 + (j - 1) * drift[day] + rng.normal(0, 0.5, n)).clip(0, 200).round(2)
    columns["season"] = (10 * np.sin(day / 58) + rng.normal(0, 1, n)).round(1)
    columns["volume"] = np.minimum(rng.lognormal(3 + 0.1 * columns["season"], 0.5), 999).round()
    frame = pd.DataFrame(columns)
    frame["up"] = np.where(columns["season"] + 0.1 * drift[day] + rng.normal(0, 3, n) > 0, "yes", "no")
    bounds = {"day": (0, 1_000), "counter": (0, 40_000), "season": (-20, 20), "volume": (0, 1_000)}
    return frame, bounds | {f"price{j}": (0, 200) for j in range(3)}, "up"


def arrears(rng: np.random.Generator, n: int = 25_000) -> Made:
    """Six months of a payment state of eleven levels, each nearly the one before, beside bills and sums paid."""
    risk, limit = rng.normal(0, 1, n), np.clip(rng.lognormal(11.5, 0.8, n), 1e4, 1e6).round(-4)
    use = 1 / (1 + np.exp(-rng.normal(-1, 1.5, n) - 0.8 * risk))
    state = np.where(use < 0.05, 0, np.where(rng.random(n) < 0.3, 1, 2))
    columns: dict[str, np.ndarray] = {"limit": limit, "age": (21 + rng.gamma(3, 5, n)).clip(18, 90).round()}
    for month in range(6):
        late = (rng.random(n) < 0.05 * np.exp(0.7 * risk)).astype(int)
        state = np.where(
            rng.random(n) < 0.15, np.where(late > 0, np.minimum(np.maximum(state, 2) + 2, 10), state), state
        )
        state = np.where((state > 2) & (rng.random(n) < 0.3), 2, state)
        bill = limit * use * rng.lognormal(0, 0.08, n)
        columns[f"state{month}"] = _words("s", state)
        columns[f"bill{month}"] = bill.clip(0, 1.2e6).round()
        columns[f"paid{month}"] = np.where(rng.random(n) < 0.25, 0, bill * rng.beta(1, 9, n)).round(-1)
    columns["default"] = np.where((state > 2) + 0.5 * risk + rng.normal(0, 1, n) > 1.3, "yes", "no")
    bounds = {"limit": (0, 1e6), "age": (18, 100)}
    return (
        pd.DataFrame(columns),
        bounds | {f"{k}{m}": (0, 1.2e6) for k in ("bill", "paid") for m in range(6)},
        "default",
    )


def copies(rng: np.random.Generator, n: int = 12_000) -> Made:
    """A label of twelve levels, its translation, a column that repeats it nine times in ten, two of its own."""
    code = rng.choice(12, n, p=rng.dirichlet(np.full(12, 0.8)))
    frame = pd.DataFrame({"code": _words("c", code), "name": _words("n", (5 * code) % 12)})
    frame["again"] = _words("c", np.where(rng.random(n) < 0.9, code, rng.integers(0, 12, n)))
    frame["half"] = _words("h", code // 2)
    frame["own"] = _words("o", rng.integers(0, 5, n))
    frame["size"] = rng.normal(10 + code, 3, n).clip(0, 40).round(1)
    frame["bad"] = np.where(rng.random(n) < 0.05 + 0.05 * (code % 4), "yes", "no")
    return frame, {"size": (0, 40)}, "bad"


def chapters(rng: np.random.Generator, n: int = 20_000) -> Made:
    """A code of 120 levels, its chapter of nine, cost and stay by code, age by chapter, ward."""
    code = rng.choice(120, n, p=rng.dirichlet(np.full(120, 0.5)))
    chapter = np.sort(rng.integers(0, 9, 120))[code]
    cost = rng.lognormal(rng.normal(7, 0.7, 120)[code], 0.4).clip(0, 50_000).round()
    frame = pd.DataFrame({"code": _words("d", code), "chapter": _words("k", chapter), "cost": cost})
    frame["stay"] = np.minimum(rng.poisson(1 + cost / 900), 60)
    frame["age"] = rng.normal(35 + 5 * chapter, 12, n).clip(0, 100).round()
    frame["ward"] = _words("w", (chapter + (rng.random(n) < 0.2)) % 6)
    frame["back"] = np.where(rng.random(n) < 0.05 + 0.04 * (chapter > 4) + 0.1 * (cost > 3_000), "yes", "no")
    return frame, {"cost": (0, 50_000), "stay": (0, 60), "age": (0, 110)}, "back"


def ordered(rng: np.random.Generator, n: int = 10_000) -> Made:
    """A begin, an end after it, two parts and their sum, a share."""
    begin = rng.integers(0, 700, n)
    end = begin + rng.geometric(0.03, n)
    one, other = rng.lognormal(4, 0.8, n).clip(0, 2_000).round(), rng.lognormal(3.5, 1, n).clip(0, 2_000).round()
    frame = pd.DataFrame({"begin": begin, "end": end.clip(0, 1_000), "one": one, "other": other, "sum": one + other})
    frame["share"] = (one / (one + other + 1)).round(3)
    frame["long"] = np.where(end - begin + rng.normal(0, 20, n) > 40, "yes", "no")
    return frame, dict.fromkeys(["begin", "end"], (0, 1_000)) | dict.fromkeys(["one", "other"], (0, 2_000)) | {
        "sum": (0, 4_000), "share": (0, 1)}, "long"  # fmt: skip


def customers(rng: np.random.Generator, n: int = 20_000) -> Made:
    """A line, and months as a customer, that have nothing to do with each other but for a total that both make."""
    line = rng.choice(["none", "slow", "fast"], n, p=[0.2, 0.35, 0.45])
    extras = {f"extra{i}": np.where(line == "none", "none", np.where(rng.random(n) < 0.4, "yes", "no")) for i in (0, 1)}
    contract = rng.choice(["month", "year"], n, p=[0.6, 0.4])
    months = 72 * rng.beta(np.where(contract == "year", 3, 1), 1.5)
    price = (np.select([line == "none", line == "slow"], [20, 60], 90) + rng.normal(0, 5, n)).clip(0, 150)
    leaves = rng.random(n) < np.where((contract == "month") & (line == "fast"), 0.5, 0.1)
    frame = pd.DataFrame({"line": line, **extras, "contract": contract, "months": months, "price": price})
    frame["total"], frame["leaves"] = (months * price).clip(0, 10_000), np.where(leaves, "yes", "no")
    return frame, {"months": (0, 72), "price": (0, 150), "total": (0, 10_000)}, "leaves"


def squares(rng: np.random.Generator, n: int = 10_000) -> Made:
    """Numbers that go together without being correlated: a square, a circle, a size of both signs."""
    x, angle = rng.normal(0, 1, n), rng.uniform(0, 2 * np.pi, n)
    frame = pd.DataFrame({"x": x.round(2), "square": (x**2 + rng.normal(0, 0.1, n)).clip(-1, 16).round(2)})
    frame["east"], frame["north"] = np.cos(angle).round(3), (np.sin(angle) + rng.normal(0, 0.05, n)).round(3)
    frame["error"] = (rng.normal(0, 1, n) * (0.2 + np.abs(x))).clip(-9, 9).round(2)
    frame["far"] = np.where(np.abs(x) + rng.normal(0, 0.4, n) > 1, "yes", "no")
    return frame, {"x": (-5, 5), "square": (-1, 16), "east": (-1, 1), "north": (-2, 2), "error": (-10, 10)}, "far"


def heaps(rng: np.random.Generator, n: int = 12_000) -> Made:
    """Hours, sums and ages that come at round values, with a smooth rest."""
    skill = rng.normal(0, 1, n)
    hours = np.where(rng.random(n) < 0.4, 40, rng.normal(34, 9, n).clip(1, 80)).round()
    pay = np.minimum(rng.lognormal(7.5 + 0.4 * skill, 0.5), 30_000)
    frame = pd.DataFrame({"hours": hours, "pay": np.where(rng.random(n) < 0.6, pay.round(-3), pay.round())})
    frame["age"] = np.where(rng.random(n) < 0.3, rng.integers(4, 16, n) * 5, rng.normal(45, 14, n).clip(18, 90)).round()
    frame["limit"] = rng.choice([500, 1_000, 2_000, 5_000, 10_000], n, p=[0.1, 0.4, 0.2, 0.2, 0.1])
    frame["price"] = (np.floor(rng.lognormal(2.5, 0.8, n).clip(0, 400)) + rng.choice([0.99, 0.95, 0.5, 0], n)).round(2)
    frame["good"] = np.where(skill + 0.02 * (hours - 35) + rng.normal(0, 1, n) > 0, "yes", "no")
    bounds = {"hours": (0, 100), "pay": (0, 40_000), "age": (0, 110), "limit": (0, 10_000), "price": (0, 500)}
    return frame, bounds, "good"


def wide_labels(rng: np.random.Generator, n: int = 30_000) -> Made:
    """Three labels of 300 levels by blocks, a number and an answer by block."""
    block = rng.integers(0, 12, n)
    frame = pd.DataFrame({f"label{j}": _words("l", 25 * block + rng.geometric(0.2, n) % 25) for j in range(3)})
    frame["level"] = rng.normal(block, 2, n).clip(-10, 25).round(1)
    frame["hit"] = np.where(rng.random(n) < 0.05 + 0.06 * (block % 5), "yes", "no")
    return frame, {"level": (-10, 25)}, "hit"


def apart(rng: np.random.Generator, n: int = 8_000) -> Made:
    """Sixteen columns that have nothing to do with each other, and a target that has not either."""
    columns: dict[str, np.ndarray] = {f"x{j}": rng.gamma(1 + j, 1, n).clip(0, 40).round(1) for j in range(8)}
    columns |= {f"l{j}": _words("v", rng.choice(2 + j, n, p=rng.dirichlet(np.ones(2 + j)))) for j in range(7)}
    return pd.DataFrame(columns | {"y": rng.choice(["no", "yes"], n)}), {f"x{j}": (0, 40) for j in range(8)}, "y"


def alone(rng: np.random.Generator, n: int = 5_000) -> Made:
    """One column of numbers."""
    return pd.DataFrame({"x": rng.gamma(2, 10, n).clip(0, 200).round()}), {"x": (0, 200)}, None


def wide(rng: np.random.Generator, n: int = 10_000) -> Made:
    """A hundred labels of 2 to 37 levels and a hundred numbers, all with one factor in common, and an answer."""
    common = rng.normal(0, 1, n)
    columns, sizes = dict[str, np.ndarray](), (37, 25, 18, 7, 5, 2) * 17
    for j in range(100):
        own = np.argsort(np.argsort(0.6 * common + 0.8 * rng.normal(0, 1, n))) / n
        columns[f"label{j}"] = _words("l", np.floor(sizes[j] * own**2).astype(int))
        columns[f"number{j}"] = np.floor(100 * np.argsort(np.argsort(0.6 * common + 0.8 * rng.normal(0, 1, n))) / n)
    frame = pd.DataFrame(columns | {"up": np.where(common + rng.normal(0, 1, n) > 0, "yes", "no")})
    return frame, {f"number{j}": (0, 100) for j in range(100)}, "up"


MODEL_TABLES: dict[str, Callable[[np.random.Generator], Made]] = {
    f.__name__: f
    for f in (clocks, arrears, copies, chapters, ordered, customers, squares, heaps, wide_labels, apart, alone, wide)
} | {
    "letters": letters, "rare_levels": rare_levels, "indices": indices, "deciles": TABLES["deciles"],
    "thirty": partial(mixed, n=1_000, columns=29), "eight": partial(mixed, n=500, columns=7),
    "fifty": partial(mixed, n=100_000, columns=49),
}  # fmt: skip
"""Those of which the acceptance of a model is made; `alarms.py` has the rest."""
