"""Named questions: how often their intervals cover, how wide they are, and what the plan forecast.

    python benchmarks/named_questions.py --law trial --fits 20
    python benchmarks/named_questions.py --law survey --fits 20 --epsilon 1

Laws with known answers: `trial` (arms with an interaction, costs with a long tail, a yes or no), and `survey` (held
out: a rare label of 2 %, a regressor with missing cells, three labels that go together only as three, tied numbers).
Two are tables of the shared folder (SFUMATO_DATA), of which rows are drawn with replacement: `adult`, and `housing` of
California. The truth is that of 4,000,000 rows of the law, or of the table. Beside each width stand that of the same
question on the records themselves (robust errors of statsmodels), of a release that spends all of its questions' part
on this one question, and of a release that names nothing, where that has an answer. Writes
results/named_questions.jsonl. The records of laws are made up.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
from parity_list import TABLES, stored

from sfumato import MaxEntropy, Schema
from sfumato.columns import Categorical, Continuous, Integer
from sfumato.errors import EstimateError

RESULTS = Path(__file__).parent / "results" / "named_questions.jsonl"
Z, LARGE = 1.959964, 4_000_000


def trial(n, rng):
    arm = rng.choice(["none", "a", "b"], n, p=[0.5, 0.3, 0.2])
    sex = rng.choice(["m", "f"], n, p=[0.55, 0.45])
    age = np.clip(rng.normal(50, 15, n), 18, 90).round()
    region = rng.choice(list("uvwxyz"), n, p=[0.3, 0.2, 0.2, 0.15, 0.1, 0.05])
    both = (arm == "a") & (sex == "f")
    cost = 200 + 3 * age + 40 * (arm == "a") - 30 * (sex == "f") + 50 * both + rng.gamma(2, 60, n)
    again = rng.random(n) < 1 / (1 + np.exp(2 - 0.03 * age - 0.5 * (arm == "b")))
    frame = {"arm": arm, "sex": sex, "age": age.astype(int), "region": region}
    return pd.DataFrame({**frame, "cost": np.clip(cost, 0, 2000).round(1), "again": np.where(again, "yes", "no")})


TRIAL = {
    "arm": Categorical(categories=["none", "a", "b"]),
    "sex": Categorical(categories=["m", "f"]),
    "age": Integer(lower=18, upper=90),
    "region": Categorical(categories=list("uvwxyz")),
    "cost": Continuous(lower=0, upper=2000, resolution=0.1),
    "again": Categorical(categories=["no", "yes"]),
}


def survey(n, rng):
    group = rng.choice(["large", "middle", "rare"], n, p=[0.7, 0.28, 0.02])
    urban, owner = rng.random(n) < 0.6, rng.random(n) < 0.5
    works = rng.random(n) < np.where(urban == owner, 0.75, 0.35)
    school = np.clip(np.rint(rng.normal(11 + 2 * urban, 3, n)), 0, 20)
    income = np.exp(rng.normal(9.5 + 0.06 * school + 0.3 * works - 0.5 * (group == "rare"), 0.6))
    income = np.where(rng.random(n) < 0.15, 0.0, np.clip(income, 0, 300_000)).round(-2)
    stress = rng.normal(5 - 0.1 * school + 0.8 * works * urban, 2, n)
    gone = rng.random(n) < 0.2
    ill = rng.random(n) < 1 / (1 + np.exp(3.2 - 0.25 * stress - 0.9 * (group == "rare")))
    frame = {
        "group": group, "urban": np.where(urban, "yes", "no"), "owner": np.where(owner, "yes", "no"),
        "works": np.where(works, "yes", "no"), "school": school.astype(int), "income": income,
        "stress": np.where(gone, np.nan, np.clip(stress, -5, 15).round(1)), "ill": np.where(ill, "yes", "no"),
    }  # fmt: skip
    return pd.DataFrame(frame)


TRUTH = ["no", "yes"]
SURVEY = {
    "group": Categorical(categories=["large", "middle", "rare"]),
    "urban": Categorical(categories=TRUTH),
    "owner": Categorical(categories=TRUTH),
    "works": Categorical(categories=TRUTH),
    "school": Integer(lower=0, upper=20),
    "income": Continuous(lower=0, upper=300_000, resolution=100),
    "stress": Continuous(lower=-5, upper=15, resolution=0.1, nullable=True),
    "ill": Categorical(categories=TRUTH),
}


@cache
def adult_table():
    return TABLES["adult"].make()


@cache
def housing_table():
    homes = stored("california_housing")
    labels = {"north": homes["latitude"] > 36, "old": homes["housingMedianAge"] >= 30}
    labels["dear"] = homes["medianHouseValue"] > 250_000
    return homes.assign(**{name: np.where(known, "yes", "no") for name, known in labels.items()})[list(HOUSING)]


HOUSING_NUMBERS = ("latitude", "housingMedianAge", "medianIncome", "medianHouseValue")
HOUSING = {name: TABLES["housing_raw"].columns[name] for name in HOUSING_NUMBERS}
HOUSING |= {name: Categorical(categories=TRUTH) for name in ("north", "old", "dear")}


def of_table(table):
    """Rows of a table as a law: drawn with replacement, or all of them."""

    def rows(n, rng):
        known = table()
        return known if n == LARGE else known.iloc[rng.integers(0, len(known), n)].reset_index(drop=True)

    return rows


LAWS = {
    "trial": (
        trial, TRIAL,
        ["ols: cost ~ age + C(arm) * C(sex)", "logit: again ~ age + C(arm)", {"table": ["arm", "sex", "region"]},
         {"mean": "cost", "by": ["arm", "sex"]}, "ols: age ~ C(region)"],
    ),
    "survey": (
        survey, SURVEY,
        ["logit: ill ~ stress + C(group)", {"table": ["urban", "owner", "works"]},
         {"mean": "income", "by": ["group", "works"]}, "ols: stress ~ school + C(works) * C(urban)",
         "ols: income ~ school + C(works) + C(group)"],
    ),
    "adult": (
        of_table(adult_table), TABLES["adult"].columns,
        ["logit: rich ~ age + education_num + C(sex) + C(married)", "ols: hours_per_week ~ age + C(sex) * C(married)",
         {"table": ["sex", "married", "rich"]}, {"mean": "hours_per_week", "by": ["sex", "rich"]},
         "ols: education_num ~ age + C(black)"],
    ),
    "housing": (
        of_table(housing_table), HOUSING,
        ["ols: medianHouseValue ~ medianIncome + C(north) * C(old)",
         "logit: dear ~ medianIncome + housingMedianAge + C(north)", {"table": ["north", "old", "dear"]},
         {"mean": "medianHouseValue", "by": ["north", "old"]},
         "ols: medianIncome ~ latitude + housingMedianAge + C(dear)"],
    ),
}  # fmt: skip


def written(question):
    return question if isinstance(question, str) else f"{next(iter(question))}: {question}"


def terms(question, frame):
    """Coefficients and robust errors of the records, under the names that a release gives its terms."""
    form, _, formula = question.partition(": ")
    data, left = frame.dropna(subset=[name for name in frame.columns if name in formula]), formula.split(" ~ ")[0]
    if form == "logit":
        data = data.assign(**{left: (data[left] == "yes").astype(float)})
    references = {}
    for name in data.columns:
        if f"C({name})" in formula:
            references[name] = f"C({name}, Treatment('{data[name].value_counts().index[0]}'))"
            formula = formula.replace(f"C({name})", references[name])
    fit = (
        smf.logit(formula, data).fit(disp=0, cov_type="HC0")
        if form == "logit"
        else smf.ols(formula, data).fit(cov_type="HC0")
    )
    names = []
    for term in fit.params.index:
        for name, reference in references.items():
            term = term.replace(reference, f"C({name})")
        names.append(term)
    return dict(zip(names, np.asarray(fit.params), strict=True)), dict(zip(names, np.asarray(fit.bse), strict=True))


def of_records(question, frame):
    """Each answer and its error, by name."""
    if isinstance(question, str):
        return terms(question, frame)
    if "table" in question:
        shares = frame.value_counts(question["table"], normalize=True)
        return shares.to_dict(), {key: (p * (1 - p) / len(frame)) ** 0.5 for key, p in shares.items()}
    groups = frame.groupby(question["by"])[question["mean"]]
    return groups.mean().to_dict(), groups.sem().to_dict()


def of_release(question, release, keys):
    """The same of a release; of what it refuses nothing."""
    answers = {}
    if isinstance(question, str):
        form, _, formula = question.partition(": ")
        fit = getattr(release, form)(formula)
        return {key: (fit.params[key], fit.bse[key]) for key in fit.params.index}
    if "mean" in question:
        means = release.mean(question["mean"], by=question["by"])
        return {key: (estimate.value, estimate.std_error) for key, estimate in means.items()}
    for key in keys:
        share = release.share(dict(zip(question["table"], key, strict=True)))
        answers[key] = share.value, share.std_error
    return answers


def tried(ask):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ask()
    except EstimateError:
        return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--law", choices=LAWS, default="trial")
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--alone", action="store_true", help="also fit with each question alone, and with none")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    law, columns, questions = LAWS[args.law]
    large = law(LARGE, np.random.default_rng(99))
    truth = {written(q): of_records(q, large)[0] for q in questions}
    schema = Schema(columns=columns, rows=args.rows)
    method = MaxEntropy(epsilon=args.epsilon, delta=1e-6)
    lines = defaultdict(list)
    for fit in range(args.first, args.first + args.fits):
        frame = law(args.rows, np.random.default_rng(1_000 + fit))
        release = method.fit(frame, schema=schema, questions=questions)
        plain = method.fit(frame, schema=schema) if args.alone else None
        for question in questions:
            name = written(question)
            real, errors = of_records(question, frame)
            answers = tried(lambda q=question, r=release, k=tuple(real): of_release(q, r, k))
            unnamed, alone = {}, {}
            if plain is not None:
                one = method.fit(frame, schema=schema, questions=[question])
                alone = tried(lambda q=question, r=one, k=tuple(real): of_release(q, r, k))
                unnamed = tried(lambda q=question, r=plain, k=tuple(real): of_release(q, r, k))
            for key, expected in truth[name].items():
                if key not in answers:
                    lines[name].append({"key": str(key), "refused": True})
                    continue
                value, error = answers[key]
                line = {"key": str(key), "z": (value - expected) / error, "records": error / errors[key]}
                line |= {
                    w: error / other[key][1] for w, other in (("alone", alone), ("unnamed", unnamed)) if key in other
                }
                lines[name].append(line)
                with args.out.open("a") as file:
                    file.write(json.dumps({"law": args.law, "fit": fit, "question": name, **line}) + "\n")
    for name, known in lines.items():
        answered = pd.DataFrame([line for line in known if "z" in line])
        refused = len(known) - len(answered)
        if answered.empty:
            print(f"{name}: refused {refused}")
            continue
        covered = (answered.z.abs() < Z).mean()
        widths = ", ".join(f"{w} {answered[w].median():.2f}" for w in ("records", "alone", "unnamed") if w in answered)
        print(f"{name}: covered {covered:.3f} of {len(answered)}, rms z {np.sqrt((answered.z**2).mean()):.2f}, "
              f"width ÷ {widths}, refused {refused}")  # fmt: skip


if __name__ == "__main__":
    main()
