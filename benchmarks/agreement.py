"""Does a release say so where its model is not what was measured? Made-up tables that break fits, five fits each.

Twenty registers, each of a seed: labels, numbers that are functions of a label and of each other (sums, squares,
shares, steps, copies with a little noise), heaped ages, amounts that are mostly 0, ids that rise, an answer. Nothing
was chosen on them. For each, of all fits:

    off        columns whose samples' mean or shares are off the release's own measurements at the level of the check
    of real    columns whose samples' mean is off that of the records by more than a quarter of a deviation and
               four standard errors of the release's answer
    unsaid     such columns that the release does not name
    pairs      pairs of columns that it names
    auroc      of the answer, as a model learns it from samples and is scored on records: least and most

    python benchmarks/agreement.py [--fits 5] [--epsilon 1] [--tables 20] [--first 0]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import sfumato
from sfumato.inference.agreement import disagreements

DELTA, MOST, OFF = 1e-6, 20_000, 0.25
ROWS = (5_000, 10_000, 20_000, 50_000)


def register(seed: int) -> tuple[pd.DataFrame, dict[str, object]]:
    """Records and what is public of them."""
    rng = np.random.default_rng([7, seed])
    n = int(rng.choice(ROWS))
    levels = int(rng.integers(2, 25))
    group = rng.choice(levels, n, p=rng.dirichlet(np.full(levels, 0.7)))
    base = rng.normal(size=n)
    columns: dict[str, np.ndarray] = {"group": np.char.add("g", group.astype(str)).astype(object)}
    numbers: dict[str, np.ndarray] = {"x": base}
    effects = rng.normal(0, 2, (4, levels))
    for place in range(int(rng.integers(2, 5))):
        numbers[f"of_group{place}"] = effects[place % 4, group] + rng.choice([0.0, 0.02, 0.3]) * rng.normal(size=n)
    for place in range(int(rng.integers(3, 8))):
        one, other = (numbers[name] for name in rng.choice(list(numbers), 2))
        noise = rng.choice([0.0, 0.01, 0.1]) * rng.normal(size=n)
        made = {
            "sum": one + other, "square": one**2, "copy": one * rng.choice([-1, 3]), "step": np.floor(one),
            "share": one / (1 + np.abs(other)), "larger": np.maximum(one, other), "none": np.where(other > 1, one, 0.0),
        }  # fmt: skip
        kind = str(rng.choice(list(made)))
        numbers[f"{kind}{place}"] = made[kind] + noise * max(float(made[kind].std()), 0.1)
    numbers["age"] = np.where(
        rng.random(n) < 0.3, 5 * rng.integers(4, 18, n), np.clip(rng.normal(50, 15, n), 18, 90)
    ).round()
    numbers["amount"] = np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(6, 1, n)).round()
    numbers["year"] = np.sort(rng.integers(0, 40, n)) + 1980.0
    for place in range(int(rng.integers(1, 5))):
        cuts = rng.choice(list(numbers))
        edges = np.quantile(numbers[cuts], [0.2, 0.5, 0.9])
        columns[f"band{place}"] = np.array(["low", "mid", "high", "top"], dtype=object)[
            np.searchsorted(edges, numbers[cuts])
        ]
    chance = 1 / (1 + np.exp(-2 * base - effects[0, group] + 1))
    columns["answer"] = np.where(rng.random(n) < chance, "yes", "no").astype(object)
    bounds: dict[str, object] = {}
    for name, value in numbers.items():
        low, high = float(value.min()), float(value.max())
        room = rng.choice([0.0, 0.2, 3.0]) * (high - low)
        columns[name] = value.round(2)
        bounds[name] = (float(np.floor(low - room)), float(np.ceil(high + room)) + 1)
    frame = pd.DataFrame(columns)
    facts = {name: bounds.get(name, sorted(set(frame[name]))) for name in frame}
    return frame, {"columns": facts, "rows": n}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=5)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--epsilon", type=float, default=1.0)
    asked = parser.parse_args()
    sums = np.zeros(3)
    for seed in range(asked.first, asked.first + asked.tables):
        frame, schema = register(seed)
        numbers = list(frame.select_dtypes("number"))
        off, wrong, unsaid, pairs, scores, seconds = [], [], [], [], [], 0.0
        for fit in range(asked.fits):
            begun = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                release = sfumato.fit(frame, schema, epsilon=asked.epsilon, delta=DELTA, target="answer", seed=fit)
            seconds += time.process_time() - begun
            said = disagreements(release)
            columns = {one.columns[0] for one in said if len(one.columns) == 1}
            drawn = release.sample(min(len(frame), MOST), seed=fit)
            far = (drawn[numbers].mean() - frame[numbers].mean()).abs()
            room = {name: OFF * float(frame[name].std()) + 4 * _noise(release, name) for name in numbers}
            broken = {name for name in numbers if far[name] > room[name]}
            off.append(len(columns))
            wrong.append(len(broken))
            unsaid.append(len(broken - columns))
            pairs.append(sum(len(one.columns) == 2 for one in said))
            scores.append(_auroc(drawn, frame, numbers))
        sums += (sum(off), sum(wrong), sum(unsaid))
        print(
            f"{seed:3} n {len(frame):6,} {frame.shape[1]:2} columns: off {off}, of real {wrong}, unsaid {unsaid}, "
            f"pairs {pairs}, auroc {min(scores):.3f} to {max(scores):.3f}, {seconds / asked.fits:.1f} s a fit",
            flush=True,
        )
    print(f"columns off {sums[0]:.0f}, of real {sums[1]:.0f}, unsaid {sums[2]:.0f}")


def _noise(release: sfumato.Release, name: str) -> float:
    """The standard error of a mean, infinite where noise hides it."""
    try:
        return float(release.mean(name).std_error)
    except sfumato.errors.EstimateError:
        return np.inf


def _auroc(drawn: pd.DataFrame, frame: pd.DataFrame, numbers: list[str]) -> float:
    def features(of: pd.DataFrame) -> np.ndarray:
        labels = [name for name in of if name not in numbers]
        codes = {name: pd.Categorical(of[name], sorted(set(frame[name]))).codes for name in labels}
        return of.assign(**codes).drop(columns="answer").to_numpy(float)

    if drawn["answer"].nunique() < 2:
        return 0.5
    model = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(features(drawn), drawn["answer"] == "yes")
    return float(roc_auc_score(frame["answer"] == "yes", model.predict_proba(features(frame))[:, 1]))


if __name__ == "__main__":
    main()
