"""How often intervals of weighted totals, means and shares cover: fits of drawn samples, counted.

    python benchmarks/weights.py --rows 5000 --epsilon 1 --fits 100
    python benchmarks/weights.py --rows 5000 --epsilon 1 --fits 100 --total

The population is a table of a known law. Its members are drawn with replacement and unequal chances, which go with
their columns; the weight of a drawn row is 1 ÷ (rows · chance), so that sums of weights are unbiased for the
population. Without weights the mean of x would be .45 too high. Every answer is judged by three variances of drawing
the sample: by the weight's own modelled column, which is what estimates state; by Kish's design effect, one factor for
all questions; and by the bound Σ w² ≤ upper · Σ w. Writes benchmarks/results/weights/NAME.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato import MaxEntropy, Schema, Weight
from sfumato.columns import Categorical, Continuous
from sfumato.inference.noisy_totals import RowWeights
from sfumato.inference.table_measurements import TableMeasurements

RESULTS = Path(__file__).parent / "results" / "weights"
MEMBERS, UPPER = 200_000, 4.0
LABELS = {"z": "b", "v": "yes"}


def population() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    z = rng.random(MEMBERS) < 0.3
    x = rng.normal(size=MEMBERS) + 0.5 * z
    y = 0.5 * x + 0.3 * z + rng.normal(size=MEMBERS)
    v = rng.random(MEMBERS) < 1 / (1 + np.exp(-0.8 * x))
    return pd.DataFrame(
        {
            "x": np.clip(x, -5, 6), "y": np.clip(y, -7, 7),
            "z": np.where(z, "b", "a"), "v": np.where(v, "yes", "no"),
        }
    )  # fmt: skip


def chances(people: pd.DataFrame) -> np.ndarray:
    """Return each member's chance at a draw: of one kind three times that of the other, and more with larger x."""
    size = np.clip(np.exp(0.4 * people.x), 0.5, 3.0) * np.where(people.z == "b", 2.0, 1.0)
    return (size / size.sum()).to_numpy()


def schema(rows: int, *, total: bool) -> Schema:
    bound = UPPER * MEMBERS / rows
    return Schema(
        columns={
            "x": Continuous(lower=-5, upper=6), "y": Continuous(lower=-7, upper=7),
            "z": Categorical(categories=("a", "b")), "v": Categorical(categories=("no", "yes")),
            "weight": Continuous(lower=0, upper=bound),
        },
        rows=rows,
        weight=Weight(column="weight", total=float(MEMBERS) if total else None),
    )  # fmt: skip


def truths(people: pd.DataFrame, weights: np.ndarray) -> dict[str, float]:
    def mean(values):
        return float(np.average(values, weights=weights))

    centred = people[["x", "y"]] - [mean(people.x), mean(people.y)]
    b, yes = people.z == "b", people.v == "yes"
    products = {pair: mean(centred[pair[0]] * centred[pair[1]]) for pair in ("xx", "xy", "yy")}
    return {
        "total": float(weights.sum()), "total of b": float(weights[b].sum()),
        "total of b, yes": float(weights[b & yes].sum()), "mean of x": mean(people.x),
        "mean of y": mean(people.y), "share of b": mean(b), "share of yes": mean(yes),
        "share of yes in b": float(np.average(yes[b], weights=weights[b])),
        "mean of x in b": float(np.average(people.x[b], weights=weights[b])),
        "correlation": products["xy"] / np.sqrt(products["xx"] * products["yy"]),
    }  # fmt: skip


def answers(release, target):
    return {
        "total": release.count(target=target), "total of b": release.count({"z": "b"}, target=target),
        "total of b, yes": release.count(LABELS, target=target), "mean of x": release.mean("x", target=target),
        "mean of y": release.mean("y", target=target), "share of b": release.share({"z": "b"}, target=target),
        "share of yes": release.share({"v": "yes"}, target=target),
        "share of yes in b": release.share({"v": "yes"}, by="z", target=target)["b"],
        "mean of x in b": release.mean("x", by="z", target=target)["b"],
        "correlation": release.correlation("x", "y", target=target),
    }  # fmt: skip


def judged(release, variance: str, target: str, upper: float):
    """Return the release's answers where drawing is given another variance."""
    own = TableMeasurements.weighting.func
    changed = {
        "modelled": lambda w: w.each,
        "kish": lambda w: np.full_like(w.each, w.each.mean()),
        "bound": lambda w: np.full_like(w.each, upper),
    }[variance]

    def weighting(measured):
        found = own(measured)
        return RowWeights(changed(found), found.records, found.fixed)

    release.__dict__.pop("_questions", None)
    release._questions.measured.__dict__["weighting"] = weighting(release._questions.measured)
    return answers(release, target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--total", action="store_true", help="declare the public total of the weights")
    arguments = parser.parse_args()
    people, found, start = population(), [], time.time()
    p, known = chances(people), schema(arguments.rows, total=arguments.total)
    upper = known.columns["weight"].upper
    of_all = truths(people, np.ones(MEMBERS))
    for fit in range(arguments.fits):
        rng = np.random.default_rng([20261123, arguments.rows, fit])
        drawn = rng.choice(MEMBERS, arguments.rows, p=p)
        weights = 1 / (arguments.rows * p[drawn])
        if arguments.total:
            weights *= MEMBERS / weights.sum()
        rows = people.iloc[drawn].assign(weight=weights)
        of_table = truths(rows, np.minimum(weights, upper))
        release = MaxEntropy(epsilon=arguments.epsilon).fit(rows, schema=known)
        for target, variance in (
            ("table", "modelled"), ("population", "modelled"), ("population", "kish"), ("population", "bound"),
        ):  # fmt: skip
            for name, estimate in judged(release, variance, target, upper).items():
                truth = (of_table if target == "table" else of_all)[name]
                low, high = estimate.interval()
                found.append(
                    {
                        "target": target, "variance": variance, "question": name, "covered": low <= truth <= high,
                        "z": (estimate.value - truth) / max(estimate.std_error, 1e-300), "width": high - low,
                        "relative": (estimate.value - truth) / max(abs(truth), 0.05),
                    }
                )  # fmt: skip
    table = pd.DataFrame(found).groupby(["target", "variance", "question"], sort=False)
    said = table.agg(
        covered=("covered", "mean"), width=("width", "median"), z_mean=("z", "mean"), z_std=("z", "std"),
        relative_error=("relative", lambda r: float(np.sqrt(np.mean(r**2)))),
    )  # fmt: skip
    said["covered_error"] = np.sqrt(said.covered * (1 - said.covered) / arguments.fits)
    print(said.round(3).to_string())
    RESULTS.mkdir(parents=True, exist_ok=True)
    name = f"law_{arguments.rows}_{arguments.epsilon:g}{'_total' if arguments.total else ''}"
    document = {
        "rows": arguments.rows, "epsilon": arguments.epsilon, "fits": arguments.fits, "total": arguments.total,
        "seconds": round(time.time() - start), "answers": said.round(4).reset_index().to_dict("records"),
    }  # fmt: skip
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
