"""Questions about persons of a database, named before the fit: how often intervals cover, and how wide they are.

    python benchmarks/database_questions.py [--law hospital shop] [--fits 40] [--units 10000] [--epsilon 1]

Two made-up laws of three tables below that of persons: `hospital` is that of the tests (`tests/fixtures/database.py`),
`shop` has customers with orders, returns of orders, and calls, whose numbers and amounts have long tails. Questions are
about the rows of one table, and about those of two. Truth is the mean of four tables of 100,000 persons; `width` is the
median standard error ÷ that of as many records without noise. The records are made up.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

from sfumato import MaxEntropy, Schema
from sfumato.errors import EstimateError

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from fixtures import database

Z, LARGE, PARTS = 1.959964, 100_000, 4
REGIONS, TOPICS = ["north", "east", "south", "west"], ["bill", "delivery", "complaint"]
SHOP = {
    "tables": {
        "customers": {"key": "customer", "columns": ["region", "since"]},
        "orders": {
            "of": "customers", "key": "order", "max_rows": 8, "order": "day", "columns": ["day", "amount", "channel"],
        },
        "returns": {"of": "orders", "max_rows": 2, "columns": ["refund"]},
        "calls": {"of": "customers", "max_rows": 3, "columns": ["topic"]},
    },
    "columns": {
        "customer": "identifier",
        "order": "identifier",
        "region": {"kind": "categorical", "categories": REGIONS},
        "since": {"kind": "integer", "lower": 0, "upper": 30},
        "day": {"kind": "integer", "lower": 0, "upper": 365},
        "amount": {"kind": "continuous", "lower": 0, "upper": 500, "resolution": 0.5},
        "channel": {"kind": "categorical", "categories": ["web", "shop"]},
        "refund": {"kind": "continuous", "lower": 0, "upper": 500, "resolution": 0.5},
        "topic": {"kind": "categorical", "categories": TOPICS},
    },
}  # fmt: skip
QUESTIONS = {
    "hospital": {
        "visits": ["mean: mean of score by sex", "mean: change of score", "ols: `last of score` ~ age + sex"],
        "drugs": ["ols: `number of drugs` ~ `number of visits`", "ols: `number of drugs` ~ sex + `mean of value`"],
    },
    "shop": {
        "orders": ["mean: mean of amount by region", "ols: `number of orders` ~ since + region"],
        "calls": [
            "logit: `ever of topic=complaint` ~ `number of returns` + since",
            "ols: `number of calls` ~ `mean of amount` + `number of orders`",
            "mean: number of calls by region",
        ],
    },
}


def shop(n: int, seed: int) -> dict[str, pd.DataFrame]:
    """Return tables: customers of long standing order more; who sends back complains; amounts are lognormal."""
    rng = np.random.default_rng(seed)
    region, since = rng.choice(REGIONS, n, p=[0.5, 0.3, 0.15, 0.05]), np.minimum(rng.geometric(0.12, n), 30)
    orders = np.minimum(rng.negative_binomial(1.2, 1.2 / (1.2 + 0.8 + 0.08 * since)), 8)
    who = np.repeat(np.arange(n), orders)
    level = rng.normal(3.2, 0.5, n) + 0.3 * (region == "west")
    amount = np.minimum(np.exp(level[who] + rng.normal(0, 0.6, who.size)), 500)
    table = pd.DataFrame({"order": rng.permutation(who.size), "customer": who, "day": rng.integers(0, 366, who.size)})
    table["amount"] = (2 * amount).round() / 2
    table["channel"] = np.where(rng.random(who.size) < 0.1 + 0.01 * since[who], "shop", "web")
    back = rng.random(who.size) < 0.05 + 0.1 * (amount > 60)
    returns = pd.DataFrame({"order": table["order"][back], "refund": table["amount"][back]})
    n_back = np.bincount(who[back], minlength=n)
    calls = np.minimum(rng.poisson(0.2 + 0.1 * orders + 0.5 * n_back), 3)
    caller = np.repeat(np.arange(n), calls)
    topic = np.where(
        rng.random(caller.size) < 0.15 + 0.3 * (n_back[caller] > 0), "complaint", rng.choice(TOPICS[:2], caller.size)
    )
    persons = pd.DataFrame({"customer": np.arange(n), "region": region, "since": since})
    rows = pd.DataFrame({"customer": caller, "topic": topic})
    return {"customers": persons, "orders": table, "returns": returns.reset_index(drop=True), "calls": rows}


LAWS = {"hospital": (database.document(), database.hospital), "shop": (SHOP, shop)}


def persons_of(tables: dict[str, pd.DataFrame], document: dict) -> pd.DataFrame:
    """Return persons with all features of their rows that questions name."""
    (root, of_units), *below = document["tables"].items()
    frame, key, keys = tables[root].set_index(of_units["key"]), of_units["key"], {}
    for name, entry in below:
        rows, above = tables[name], entry["of"]
        if above != root:
            rows = rows.merge(keys[above], on=document["tables"][above]["key"])
        rows = rows.sort_values(entry["order"], kind="stable") if "order" in entry and above == root else rows
        if "key" in entry:
            keys[name] = rows[[entry["key"], key]]
        groups = rows.groupby(key)
        frame[f"number of {name}"] = groups.size().reindex(frame.index, fill_value=0)
        for column in entry["columns"]:
            if document["columns"][column]["kind"] == "categorical":
                for label in document["columns"][column]["categories"]:
                    ever = (rows[column] == label).groupby(rows[key]).any()
                    frame[f"ever of {column}={label}"] = ever.reindex(frame.index, fill_value=False).astype(int)
                continue
            frame[f"mean of {column}"], frame[f"last of {column}"] = groups[column].mean(), groups[column].last()
            frame[f"change of {column}"] = (groups[column].last() - groups[column].first()).where(groups.size() > 1)
    return frame


def of_records(persons: pd.DataFrame, question: str) -> dict[str, float]:
    """Each number of an answer, of the records."""
    form, rest = question.split(": ", 1)
    if form == "mean":
        column, _, by = rest.partition(" by ")
        values = persons.groupby(by)[column].mean() if by else pd.Series({"": persons[column].mean()})
        return {f"{question} {key}".strip(): value for key, value in values.items()}
    names = {name: f"v{place}" for place, name in enumerate(persons.columns)}
    formula = re.sub(r"`([^`]+)`", lambda match: names[match[1]], _compared(rest))
    frame = pd.concat([persons, persons.rename(columns=names)], axis=1)
    fit = (smf.ols if form == "ols" else smf.logit)(formula, frame).fit(**({} if form == "ols" else {"disp": False}))
    back = {name: f"`{old}`" for old, name in names.items()}
    return {f"{question} | {_term(back.get(term, term))}": value for term, value in fit.params.items()}


def _compared(formula: str) -> str:
    """Name the label that others are compared with, which is the commonest one by default."""
    for column, label in (("sex", "f"), ("region", "north")):
        formula = re.sub(rf"\b{column}\b", f"C({column}, Treatment('{label}'))", formula)
    return formula


def _term(term: str) -> str:
    return term.split("[T.")[1].rstrip("]") if "[T." in term else term.strip("`")


def of_release(units, question: str) -> dict[str, tuple[float, float]]:
    """The same of a release, with standard errors."""
    form, rest = question.split(": ", 1)
    if form == "mean":
        column, _, by = rest.partition(" by ")
        answer = units.mean(column, by=by) if by else {"": units.mean(column)}
        return {f"{question} {key}".strip(): (value.value, value.std_error) for key, value in answer.items()}
    rest = _compared(rest).replace("Treatment(", "contr.treatment(")
    fit = getattr(units, form)(rest)
    return {f"{question} | {_term(term)}": (fit.params[term], fit.bse[term]) for term in fit.params.index}


def main() -> None:
    """Print how often intervals cover, and how wide they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--law", nargs="+", choices=LAWS, default=list(LAWS))
    parser.add_argument("--fits", type=int, default=40)
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    args = parser.parse_args()
    for law in args.law:
        document, draw = LAWS[law]
        of_tables = QUESTIONS[law]
        large = [persons_of(draw(LARGE, 10_000 + part), document) for part in range(PARTS)]
        asked = [question for questions in of_tables.values() for question in questions]
        truths = pd.DataFrame([{k: v for q in asked for k, v in of_records(one, q).items()} for one in large])
        root = next(iter(document["tables"]))
        tables = {**document["tables"], root: {**document["tables"][root], "rows": args.units}}
        schema = Schema.from_dict({**document, "tables": tables, "questions": [_named(q) for q in asked]})
        lines, refused = [], 0
        for fit in range(args.fits):
            release = MaxEntropy(epsilon=args.epsilon, delta=1e-6).fit(draw(args.units, fit), schema=schema)
            for table, questions in of_tables.items():
                for question in questions:
                    try:
                        answers = of_release(release.table(table).units, question)
                    except EstimateError:  # noise hides all groups
                        refused += 1
                        continue
                    lines += [{"key": key, "value": v, "error": e} for key, (v, e) in answers.items()]
        results = pd.DataFrame(lines)
        truth, spread = results["key"].map(truths.mean()), truths.std() * (LARGE / args.units) ** 0.5
        results["covered"] = (results["value"] - truth).abs() < Z * results["error"]
        results["width"] = results["error"] / results["key"].map(spread)
        print(f"{law}, {args.units} persons, epsilon = {args.epsilon:g}, {args.fits} fits")
        print(results.groupby("key").agg(covered=("covered", "mean"), width=("width", "median")).round(2).to_string())
        print(f"all: {results['covered'].mean():.3f}; refused: {refused}", flush=True)


def _named(question: str) -> str:
    form, rest = question.split(": ", 1)
    return question if form == "mean" else f"{form}: {_compared(rest).replace('Treatment(', 'contr.treatment(')}"


if __name__ == "__main__":
    main()
