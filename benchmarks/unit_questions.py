"""Named questions of linked rows: how often their intervals cover, and how wide they are.

    python benchmarks/unit_questions.py --fits 40 --units 3000

A law of persons with a level and a slope of their own, measured two to six times, whose rows that lie two apart have a
correlation of .79. Six questions are named together. The truth is that of 400,000 persons; widths are in the deviation
of the answers of 200 tables of records. Writes results/unit_questions.jsonl. The records are made up.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato import MaxEntropy, Schema

RESULTS = Path(__file__).parent / "results" / "unit_questions.jsonl"
Z, LARGE, TABLES = 1.959964, 100_000, 200
MOST = 6
DOCUMENT = {
    "unit": {"column": "patient", "max_rows": MOST, "order": "day", "constant": ["sex", "age"]},
    "columns": {
        "patient": "identifier",
        "day": {"kind": "integer", "lower": 0, "upper": 1000},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "age": {"kind": "integer", "lower": 18, "upper": 90},
        "score": {"kind": "continuous", "lower": 0, "upper": 100, "resolution": 0.1},
        "state": {"kind": "categorical", "categories": ["well", "ill"]},
    },
    "questions": [
        "mean: mean of score by sex",
        "mean: change of score by sex",
        "share: ever of state=ill by sex",
        "correlation: lag 2 of score",
        "ols: `change of score` ~ age + C(sex, contr.treatment('f'))",
        "mean: number of rows of patient",
    ],
}


def law(n, rng):
    sex, age = rng.choice(["f", "m"], n), rng.integers(18, 91, n)
    sizes = rng.integers(2, MOST + 1, n)
    level = 50 + 5 * (sex == "m") + rng.normal(0, 8, n)
    slope = 1 + (sex == "f") - 0.02 * (age - 50) + rng.normal(0, 1, n)
    frail, day, parts = rng.random(n) < np.where(sex == "f", 0.3, 0.5), rng.integers(0, 100, n), []
    for place in range(MOST):
        on = np.flatnonzero(sizes > place)
        score = np.clip(level + slope * place + rng.normal(0, 4, n), 0, 100).round(1)
        ill = np.where(rng.random(n) < np.where(frail, 0.5, 0.02), "ill", "well")
        columns = {"patient": on, "day": day[on], "sex": sex[on], "age": age[on], "score": score[on], "state": ill[on]}
        parts.append(pd.DataFrame(columns))
        day = day + rng.integers(1, 60, n)
    return pd.concat(parts).sample(frac=1, random_state=0).reset_index(drop=True)


def of_records(frame):
    """Each answer of the records."""
    frame = frame.sort_values(["patient", "day"])
    groups, scores = frame.groupby("patient"), frame.groupby("patient")["score"]
    persons = groups.agg(sex=("sex", "first"), age=("age", "first"), mean=("score", "mean"), rows=("score", "size"))
    persons["change"] = scores.last() - scores.first()
    persons["ever"] = (frame["state"] == "ill").groupby(frame["patient"]).any()
    means = persons.groupby("sex")[["mean", "change", "ever"]].mean()
    answers = {f"{name}, {sex}": means.loc[sex, name] for name in means for sex in means.index}
    earlier = scores.shift(2)
    answers["lag 2"] = np.corrcoef(earlier[earlier.notna()], frame["score"][earlier.notna()])[0, 1]
    design = np.column_stack([np.ones(len(persons)), persons["age"], persons["sex"] == "m"])
    solution = np.linalg.lstsq(design, persons["change"], rcond=None)[0]
    return {**answers, "ols, age": solution[1], "ols, m": solution[2], "rows": persons["rows"].mean()}


def of_release(units):
    """The same of a release, with standard errors."""
    by = {
        "mean": units.mean("mean of score", by="sex"),
        "change": units.mean("change of score", by="sex"),
        "ever": units.share({"ever of state=ill": True}, by="sex"),
    }
    answers = {f"{name}, {sex}": estimate for name, group in by.items() for sex, estimate in group.items()}
    answers["lag 2"] = units.correlation("score", "lag 2 of score")
    answers["rows"] = units.mean("number of rows of patient")
    answers = {key: (estimate.value, estimate.std_error) for key, estimate in answers.items()}
    fit = units.ols("`change of score` ~ age + C(sex, contr.treatment('f'))")
    of_men = next(term for term in fit.params.index if "[T.m]" in term)
    return answers | {f"ols, {key}": (fit.params[t], fit.bse[t]) for key, t in (("age", "age"), ("m", of_men))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--units", type=int, default=3_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--large", type=int, default=LARGE)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    truth = pd.DataFrame([of_records(law(args.large, np.random.default_rng(10_000 + i))) for i in range(4)]).mean()
    tables = [law(args.units, np.random.default_rng(20_000 + i)) for i in range(TABLES)]
    errors = pd.DataFrame([of_records(table) for table in tables]).std()
    document = {**DOCUMENT, "unit": {**DOCUMENT["unit"], "units": args.units}}
    method, lines = MaxEntropy(epsilon=args.epsilon, delta=1e-6), []
    for fit in range(args.first, args.first + args.fits):
        frame = law(args.units, np.random.default_rng(fit))
        answers = of_release(method.fit(frame, schema=Schema.from_dict(document)).units)
        lines += [
            {"fit": fit, "key": key, "z": (value - truth[key]) / error, "records": error / errors[key]}
            for key, (value, error) in answers.items()
        ]
        with args.out.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines[-len(answers) :])
    table = pd.DataFrame(lines).groupby("key")
    print(
        pd.DataFrame({"covered": table["z"].apply(lambda z: (z.abs() < Z).mean()), "width": table["records"].median()})
    )


if __name__ == "__main__":
    main()
