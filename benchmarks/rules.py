"""What rules cost and give: rows that break them, and the scores of a release without and with them.

    python benchmarks/rules.py DATA [telco_churn tx2019 hospital] [--fits 3] [--rows 1000000] [--out FILE.json]

    telco_churn   five rules that every real row keeps, but for one: 0.4 % of the totals are farther than 25 % from
                  months x monthly charge
    tx2019        ten structural zeros of a census survey, and a density that follows from the area
    hospital      made up: admission and discharge, days, parts and their total, an age group

A tenth of the rows is held out with seed 0. Releases are at (1, 1e-5), add or remove one row, secret noise. 2-way total
variation and the rest are of `table_scores.py`, over the columns of the table. The rules are public: they are written
down here from each table's documentation.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from adult import DELTA, split
from peer_tables import Table
from suite import CASES, Case
from table_scores import all_scores

import sfumato
from sfumato.columns.kinds import Categorical, ColumnKind, Continuous, DateTime, Integer
from sfumato.evaluate.fidelity import rule_breaks

ROWS = 5_000
NO_INTERNET = ("OnlineSecurity", "OnlineBackup", "DeviceProtection", "TechSupport", "StreamingTV", "StreamingMovies")
RULES: dict[str, list[dict[str, Any]]] = {
    "telco_churn": [
        {
            "if": {"InternetService": "No"},
            "then": dict.fromkeys(NO_INTERNET, "No internet service"),
            "only_if": True,
        },
        {"if": {"PhoneService": "No"}, "then": {"MultipleLines": "No phone service"}, "only_if": True},
        {"product": {"TotalCharges": ["tenure", "MonthlyCharges"]}, "within": "25%"},
        {"null_if": {"TotalCharges": {"tenure": 0}}},
        {"range": {"TotalCharges": ["MonthlyCharges", None]}},
    ],
    "tx2019": [
        {"null_if": {"MSP": {"AGEP": "0-14"}}},
        {"null_if": {"EDU": {"AGEP": "0-2"}}},
        {"null_if": {"DREM": {"AGEP": "0-4"}}},
        {"null_if": {"DPHY": {"AGEP": "0-4"}}},
        {"if": {"AGEP": "0-16"}, "then": {"DVET": None}},
        {"if": {"AGEP": "0-15"}, "then": {"INDP_CAT": None}},
        {"if": {"INDP": None}, "then": {"INDP_CAT": None}, "only_if": True},
        {"if": {"HOUSING_TYPE": ["2", "3"]}, "then": {"OWN_RENT": "0"}, "only_if": True},
        {"if": {"HOUSING_TYPE": ["2", "3"]}, "then": {"NPF": None, "NOC": None}},
        {"if": {"AGEP": "0-14"}, "then": {"median_income_or_more": False}},
        {"never": {"AGEP": "0-14", "EDU": ["10", "11", "12"]}},
    ],
    "hospital": [
        {"order": ["admitted", "discharged"]},
        {"difference": {"stay_days": ["discharged", "admitted"]}},
        {"range": {"intensive_days": [0, "stay_days"]}},
        {"sum": {"total": ["drugs", "procedures"]}},
        {"derived": "age_group", "from": "age", "map": {"0-17": "child", "18-64": "adult", "65-": "senior"}},
        {"null_if": {"pregnant": {"sex": "male"}}},
        {"never": {"pregnant": "yes", "age_group": ["child", "senior"]}},
    ],
}


def hospital(folder: Path) -> Case:
    """Return a made-up hospital's table, which keeps its rules in every row."""
    del folder
    rng = np.random.default_rng(0)
    age = np.clip(rng.normal(52, 24, ROWS), 0, 100).astype(int)
    stay = rng.geometric(1 / (2 + age / 20)) - 1
    admitted = np.datetime64("2024-01-01") + rng.integers(0, 366, ROWS).astype("timedelta64[D]")
    drugs = rng.gamma(2, 20 + 15 * stay).round(2)
    procedures = (rng.gamma(1, 40 + 10 * stay) * (rng.random(ROWS) < 0.7)).round(2)
    sex = rng.choice(["female", "male"], ROWS)
    fertile = (sex == "female") & (age >= 18) & (age < 65)
    pregnant = np.where(sex == "male", None, np.where(fertile & (rng.random(ROWS) < 0.1), "yes", "no"))
    back = rng.random(ROWS) < 1 / (1 + np.exp(3 - age / 40 - stay / 6))
    frame = pd.DataFrame(
        {
            "admitted": admitted,
            "discharged": admitted + stay.astype("timedelta64[D]"),
            "stay_days": stay,
            "intensive_days": np.minimum(stay, rng.poisson(0.2 + stay / 15)),
            "age": age,
            "age_group": np.where(age < 18, "child", np.where(age < 65, "adult", "senior")),
            "drugs": drugs,
            "procedures": procedures,
            "total": (drugs + procedures).round(2),
            "sex": sex,
            "pregnant": pregnant,
            "readmitted": np.where(back, "yes", "no"),
        }
    )
    cost = Continuous(lower=0, upper=5_000, resolution=0.01)
    columns: dict[str, ColumnKind] = {
        "admitted": DateTime(lower="2024-01-01", upper="2024-12-31", resolution="day"),
        "discharged": DateTime(lower="2024-01-01", upper="2025-12-31", resolution="day"),
        "stay_days": Integer(lower=0, upper=365),
        "intensive_days": Integer(lower=0, upper=365),
        "age": Integer(lower=0, upper=100),
        "age_group": Categorical(categories=("child", "adult", "senior")),
        "drugs": cost,
        "procedures": cost,
        "total": dataclasses.replace(cost, upper=10_000),
        "sex": Categorical(categories=("female", "male")),
        "pregnant": Categorical(categories=("no", "yes"), nullable=True),
        "readmitted": Categorical(categories=("no", "yes")),
    }
    return Case(Table(frame, sfumato.Schema(columns=columns, rows=4_500), "readmitted", "yes"))


def run_table(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the scores without and with rules, and the rows of a large sample that break one."""
    case = hospital(arguments.data) if name == "hospital" else CASES[name](arguments.data)
    fitted, test = split(case.table.frame, share=0.1, seed=0)
    ruled = dataclasses.replace(case.table.schema, rules=tuple(RULES[name]))
    found: dict[str, Any] = {"real rows that break one": rule_breaks(fitted, schema=ruled).any_share}
    for label, schema in (("without", case.table.schema), ("with", ruled)):
        fits = []
        for number in range(arguments.fits):
            method = sfumato.MaxEntropy(epsilon=1.0, delta=DELTA)
            release = method.fit(fitted, schema=schema, target=case.table.target)
            rows = release.sample(len(fitted))
            scores = all_scores(case, fitted, rows, test)
            fits.append({**scores, "broken": rule_breaks(rows, schema=ruled).any_share})
            if label == "with" and number == 0:
                found[f"broken of {arguments.rows}"] = sum(
                    rule_breaks(table, schema=ruled).any_rule for table in release.batches(arguments.rows)
                )
        found[label] = {key: statistics.fmean(fit[key] for fit in fits) for key in fits[0]}
        found[f"{label}, half the range"] = {
            key: (max(fit[key] for fit in fits) - min(fit[key] for fit in fits)) / 2 for key in fits[0]
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("tables", nargs="*", default=list(RULES))
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    found = {}
    for name in arguments.tables:
        found[name] = run_table(name, arguments)
        print(name, json.dumps(found[name], indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
