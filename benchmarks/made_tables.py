"""Five tables made up for the purpose, real rows beside samples: what a stranger would look at first.

    python benchmarks/made_tables.py [--epsilon 1] [--picture made_tables.png]

Bills with parts and a total; dates that follow each other; a measurement and its rounded twin; heavy tails; a rare
class of 1 %. No table here chose a setting. Each has 20,000 rows. Printed: correlations, real and in samples, and what
each table is asked; drawn: 1,500 rows of each.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sfumato
from sfumato.columns.kinds import Categorical, ColumnKind, Continuous, DateTime, Integer

ROWS, DRAWN, DELTA = 20_000, 1_500, 1e-5
Made = tuple[pd.DataFrame, dict[str, ColumnKind], str | None, tuple[str, str]]
AMOUNT = Continuous(lower=0, upper=10_000, resolution=0.01)


def bills(rng: np.random.Generator) -> Made:
    """Goods and freight, and their total."""
    goods = np.minimum(rng.lognormal(4.5, 0.8, ROWS), 9_000).round(2)
    freight = np.minimum(5 + 0.1 * goods * rng.lognormal(0, 0.5, ROWS), 900).round(2)
    frame = pd.DataFrame({"goods": goods, "freight": freight, "total": (goods + freight).round(2)})
    return frame, dict.fromkeys(frame, AMOUNT), None, ("goods", "total")


def stays(rng: np.random.Generator) -> Made:
    """Admission, and discharge some days later."""
    admitted = rng.integers(0, 700, ROWS)
    discharged = admitted + rng.geometric(0.2, ROWS)
    start = np.datetime64("2023-01-01")
    frame = pd.DataFrame({"admitted": start + admitted, "discharged": start + np.minimum(discharged, 729)})
    frame = frame.astype("datetime64[s]").assign(age=np.clip(rng.normal(60, 18, ROWS), 0, 100).astype(int))
    day = DateTime(lower="2023-01-01", upper="2024-12-31", resolution="day")
    return (
        frame,
        {"admitted": day, "discharged": day, "age": Integer(lower=0, upper=100)},
        None,
        ("admitted", "discharged"),
    )


def twins(rng: np.random.Generator) -> Made:
    """A height, the same in whole inches, and a weight."""
    height = np.clip(rng.normal(170, 10, ROWS), 120, 220).round(1)
    weight = np.clip(0.9 * height - 80 + rng.normal(0, 12, ROWS), 30, 200).round(1)
    frame = pd.DataFrame({"cm": height, "inches": np.rint(height / 2.54).astype(int), "kg": weight})
    kinds: dict[str, ColumnKind] = {
        "cm": Continuous(lower=100, upper=230, resolution=0.1),
        "inches": Integer(lower=40, upper=90),
        "kg": Continuous(lower=20, upper=250, resolution=0.1),
    }
    return frame, kinds, None, ("cm", "inches")


def tails(rng: np.random.Generator) -> Made:
    """Two Pareto-like amounts that go together, mostly 0."""
    common = rng.standard_normal(ROWS)
    amounts = np.exp(2 + 1.3 * (0.7 * common[:, None] + 0.7 * rng.standard_normal((ROWS, 2))))
    amounts[rng.random(ROWS) < 0.4] = 0
    frame = pd.DataFrame(np.minimum(amounts, 10_000).round(2), columns=["paid", "claimed"])
    return frame, dict.fromkeys(frame, AMOUNT), None, ("paid", "claimed")


def rare(rng: np.random.Generator) -> Made:
    """A class of 1 % that lies elsewhere."""
    label = rng.random(ROWS) < 0.01
    x = rng.standard_normal((ROWS, 4)) + 2.5 * label[:, None] * np.array([1, -1, 0, 0])
    frame = pd.DataFrame(x.round(4), columns=list("abcd")).assign(fraud=np.where(label, "yes", "no"))
    kinds: dict[str, ColumnKind] = dict.fromkeys("abcd", Continuous(lower=-10, upper=10))
    return frame, {**kinds, "fraud": Categorical(categories=("no", "yes"))}, "fraud", ("a", "b")


TABLES: dict[str, Callable[[np.random.Generator], Made]] = {
    "bills": bills, "stays": stays, "twins": twins, "tails": tails, "rare": rare,
}  # fmt: skip


def numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the numeric columns, dates as days."""
    days = {c: (frame[c] - pd.Timestamp("2023-01-01")).dt.days for c in frame.select_dtypes("datetime")}
    return frame.assign(**days).select_dtypes("number")


def asked(name: str, frame: pd.DataFrame) -> dict[str, float]:
    """Return what a table is asked beside correlations."""
    n = numbers(frame)
    if name == "bills":
        return {"parts within 5 % of the total": float((abs(n.goods + n.freight - n.total) < 0.05 * n.total).mean())}
    if name == "stays":
        return {"discharged before admitted": float((n.discharged < n.admitted).mean())}
    if name == "twins":
        return {"inches off by more than 1": float((abs(n.cm / 2.54 - n.inches) > 1).mean())}
    if name == "tails":
        return {
            "paid above 1,000": float((n.paid > 1_000).mean()),
            "both 0": float(((n.paid == 0) & (n.claimed == 0)).mean()),
        }
    yes = frame.fraud.astype(str) == "yes"
    return {"fraud": float(yes.mean()), "a, fraud": float(n.a[yes].mean()), "b, fraud": float(n.b[yes].mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    shown: list[tuple[str, tuple[str, str], pd.DataFrame, pd.DataFrame]] = []
    for name, make in TABLES.items():
        frame, kinds, target, pair = make(np.random.default_rng(5))
        schema = sfumato.Schema(columns=kinds, rows=ROWS)
        release = sfumato.MaxEntropy(epsilon=arguments.epsilon, delta=DELTA).fit(frame, schema=schema, target=target)
        made = release.sample(ROWS)
        real, synthetic = numbers(frame).corr().to_numpy(), numbers(made).corr().to_numpy()
        print(f"{name}: correlations differ by at most {np.abs(real - synthetic).max():.3f}")
        for question, answer in asked(name, frame).items():
            print(f"    {question}: {answer:.4f} real, {asked(name, made)[question]:.4f} synthetic")
        shown.append((name, pair, frame, made))
    if arguments.picture:
        draw(shown, arguments.picture)


def draw(shown: list[tuple[str, tuple[str, str], pd.DataFrame, pd.DataFrame]], path: Path) -> None:
    """Draw real rows above samples, a table a column."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(shown), figsize=(3 * len(shown), 6), squeeze=False)
    for column, (name, (x, y), *frames) in enumerate(shown):
        for row, (frame, label) in enumerate(zip(frames, ("real", "synthetic"), strict=True)):
            panel: Any = axes[row, column]
            points = numbers(frame).head(DRAWN)
            classes = (
                frame["fraud"].astype(str).head(DRAWN) == "yes" if "fraud" in frame else np.zeros(DRAWN, dtype=bool)
            )
            panel.scatter(points[x], points[y], s=2, c=np.where(classes, "tab:red", "tab:blue"))
            panel.set(title=f"{name}, {label}", xlabel=x, ylabel=y)
            whole = numbers(frames[0])
            for limits, values in ((panel.set_xlim, whole[x]), (panel.set_ylim, whole[y])):
                limits(float(values.min()), float(np.quantile(values, 0.999)))
    figure.tight_layout()
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    main()
