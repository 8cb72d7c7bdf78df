"""Numbers and labels that follow from labels of many levels: what samples keep, and what estimates say.

    python benchmarks/label_functions.py [TABLE ...] [--fits 3] [--epsilon 1 | none]

Three made-up tables: `tariffs` (prices of 45 products, distances of 30 shops, amounts that are price times quantity),
`registry` (a region follows from a district, nearly a sector from a job), `clinic` (codes, wards, procedures and drugs
of 4,400 stays). A tenth of the rows is held out; scores as of `swift_aim.py`. *Covered*:
of 95 % intervals for a number's mean in each label, how many hold the records' own mean.

Scores read real records: NOT private.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from adult import split
from alarms import Made, kinds
from peer_tables import Table
from suite import Case
from swift_aim import scores

import sfumato
from sfumato.schema.schema import Schema

MEANS = {"tariffs": ("price", "product"), "registry": ("age", "job"), "clinic": ("stay", "code")}
SCORES = ("auroc", "tvd_2way", "tvd_3way", "strongest")


def named(letter: str, numbers: np.ndarray) -> np.ndarray:
    return np.char.add(letter, numbers.astype(str))


def answer(chances: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(chances.size) < chances, "yes", "no")


def tariffs(rng: np.random.Generator, n: int = 20_000) -> Made:
    product, shop = (rng.choice(k, n, p=rng.dirichlet(np.full(k, 2.0))) for k in (45, 30))
    price = (rng.lognormal(3, 0.8, 45)[product] * np.where(rng.random(n) < 0.2, 0.8, 1)).round(2).clip(0, 300)
    km = np.clip(rng.gamma(2, 8, 30)[shop] + rng.normal(0, 0.6, n), 0, 80).round(1)
    quantity, age = (
        np.clip(rng.poisson(2 + product % 4), 1, 12),
        np.clip(rng.normal(30 + 0.6 * shop, 12), 16, 99).round(),
    )
    frame = pd.DataFrame({"product": named("p", product), "price": price, "shop": named("s", shop), "km": km})
    frame = frame.assign(quantity=quantity * 1.0, amount=np.minimum(price * quantity, 600), age=age)
    frame = frame.assign(again=answer(1 / (1 + np.exp(1 - 0.02 * age + 0.01 * km)), rng))
    return frame, {"price": (0, 300), "km": (0, 80), "quantity": (0, 20), "amount": (0, 600), "age": (16, 100)}, "again"


def registry(rng: np.random.Generator, n: int = 20_000) -> Made:
    district, job = (rng.choice(k, n, p=rng.dirichlet(np.full(k, a))) for k, a in ((40, 1.5), (28, 1.0)))
    sector = np.where(rng.random(n) < 0.95, rng.integers(0, 7, 28)[job], rng.integers(0, 7, n))
    age, income = (
        np.clip(18 + job / 4 + rng.gamma(3, 9, n), 18, 95).round(),
        rng.lognormal(9.8 + 0.3 * (sector % 3), 0.5),
    )
    frame = pd.DataFrame(
        {"district": named("d", district), "region": named("r", np.sort(rng.integers(0, 8, 40))[district])}
    )
    frame = frame.assign(
        job=named("j", job), sector=named("s", sector), age=age, income=income.clip(0, 200_000).round()
    )
    frame = frame.assign(owner=answer(1 / (1 + np.exp(10 - np.log(income) - 0.03 * (age - 45))), rng))
    return frame, {"age": (18, 100), "income": (0, 200_000)}, "owner"


def clinic(rng: np.random.Generator, n: int = 4_400) -> Made:
    code = rng.choice(50, n, p=rng.dirichlet(np.ones(50)))
    ward = np.where(rng.random(n) < 0.85, rng.integers(0, 12, 50)[code], rng.integers(0, 12, n))
    procedure = np.where(rng.random(n) < 0.7, rng.integers(0, 30, 50)[code], rng.integers(0, 30, n))
    drug = np.where(rng.random(n) < 0.6, rng.integers(0, 20, 30)[procedure], rng.integers(0, 20, n))
    frame = pd.DataFrame({"code": named("c", code), "ward": named("w", ward), "procedure": named("p", procedure)})
    frame = frame.assign(drug=named("g", drug), stay=np.clip(rng.gamma(2, 2 + 0.3 * (ward % 5)), 0, 60).round(1))
    return frame.assign(back=answer(0.1 + 0.02 * (code % 9), rng)), {"stay": (0, 60)}, "back"


TABLES: dict[str, Callable[[np.random.Generator], Made]] = {f.__name__: f for f in (tariffs, registry, clinic)}


def run_fit(name: str, epsilon: float | sfumato.NonPrivate, seed: int) -> tuple[dict[str, float], list[bool]]:
    """Fit, sample and score once; and whether each interval holds."""
    frame, bounds, target = TABLES[name](np.random.default_rng(sorted(TABLES).index(name)))
    case = Case(
        Table(frame, Schema(columns=kinds(frame, bounds), rows=round(len(frame), -3)), target, "yes"), regression=False
    )
    fitted, test = split(frame, share=0.1, seed=0)
    release = sfumato.MaxEntropy(epsilon=epsilon, delta=1e-5).fit(fitted, schema=case.table.schema, target=target)
    number, by = MEANS[name]
    means, real = release.mean(number, by=by, target="table").to_frame(), fitted.groupby(by)[number].mean()
    inside = (means.low <= real[means.index]) & (real[means.index] <= means.high)
    return scores(case, fitted, release.sample(len(fitted), seed=seed), test), inside.tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=list(TABLES), help=f"among {', '.join(TABLES)}")
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--epsilon", default="1", help="or none: no noise")
    arguments = parser.parse_args()
    epsilon = sfumato.NonPrivate() if arguments.epsilon == "none" else float(arguments.epsilon)
    warnings.simplefilter("ignore")  # that no noise is not private
    print("| table | AUROC | 2-way | 3-way | strongest | covered |\n|---|---|---|---|---|---|")
    for name in arguments.tables:
        cells, inside = zip(*(run_fit(name, epsilon, seed) for seed in range(arguments.fits)), strict=True)
        texts = [f"{statistics.fmean(cell[key] for cell in cells):.4f}" for key in SCORES]
        hits = [hit for one in inside for hit in one]
        print(f"| {name} | {' | '.join(texts)} | {np.mean(hits):.2f} of {len(hits)} |", flush=True)
    print("\nMade from real records without noise: these figures are NOT private.")


if __name__ == "__main__":
    main()
