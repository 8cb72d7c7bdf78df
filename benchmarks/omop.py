"""A hospital's tables in the shape of OMOP: what samples keep within tables and between them.

    python benchmarks/omop.py [--persons 20000] [--epsilon 1 3] [--fits 1] [--long] [--out FILE.json]

The tables are made up (`examples/omop/make_tables.py`), of measurements one for each concept (`omop.yaml`), or as they
are (`omop_long.yaml`). δ = 1e-6, add or remove one person with all rows, seeds 1, 2, …
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from sfumato import MaxEntropy, Schema

OMOP = Path(__file__).parents[1] / "examples" / "omop"
sys.path.append(str(OMOP))
import make_tables as omop  # noqa: E402 - an example, beside its schema

DELTA = 1e-6


def schema(persons: int, name: str) -> Schema:
    """A schema of the example, of so many persons."""
    document = yaml.safe_load((OMOP / name).read_text(encoding="utf-8"))
    document["tables"]["person"]["rows"] = persons
    return Schema.from_dict(document)


def figures(tables: dict[str, pd.DataFrame]) -> dict[str, float]:
    """What tables say, and how they go together."""
    person, drugs = tables["person"].set_index("person_id"), tables["drug_exposure"]
    visits = tables["visit_occurrence"].merge(tables["person"], on="person_id")
    visits["stay"] = (visits["visit_end_date"] - visits["visit_start_date"]).dt.days
    values = tables["measurement"].drop(columns="person_id", errors="ignore").merge(visits, on="visit_occurrence_id")
    inpatient = visits["visit_concept_id"] == omop.INPATIENT
    found = {
        "visits a person": len(visits) / len(person),
        "persons without a visit": 1 - visits["person_id"].nunique() / len(person),
        "drugs a person": len(drugs) / len(person),
        "persons without a drug": 1 - drugs["person_id"].nunique() / len(person),
        "measurements a visit": len(values) / len(visits),
        "days of inpatients": visits.loc[inpatient, "stay"].mean(),
        "outpatients of more than a day": (visits.loc[~inpatient, "stay"] > 0).mean(),
        "correlation of stay and birth": visits.loc[inpatient, "stay"].corr(visits.loc[inpatient, "year_of_birth"]),
        "supply of 30, 60 or 90 days": drugs["days_supply"].isin([30, 60, 90]).mean(),
    }
    return found | _of_values(values, drugs, person) | _broken(tables, visits, values)


def _of_values(values: pd.DataFrame, drugs: pd.DataFrame, person: pd.DataFrame) -> dict[str, float]:
    own = {kind: values[values["measurement_concept_id"] == kind] for kind in (omop.SYSTOLIC, omop.CREATININE)}
    systolic, creatinine = own[omop.SYSTOLIC], own[omop.CREATININE]
    inpatient = creatinine["visit_concept_id"] == omop.INPATIENT
    of_person = systolic.sort_values("visit_start_date", kind="stable").groupby("person_id")["value_as_number"]
    mean = of_person.mean()
    treated = mean.index.isin(drugs.loc[drugs["drug_concept_id"] == omop.LISINOPRIL, "person_id"])
    before = of_person.shift(1).reindex(systolic.index)
    return {
        "systolic pressure": systolic["value_as_number"].mean(),
        "its deviation": systolic["value_as_number"].std(),
        "its correlation with that before": systolic["value_as_number"].corr(before),
        "its correlation with birth": systolic["value_as_number"].corr(systolic["year_of_birth"].astype(float)),
        "that of persons with lisinopril less others": mean[treated].mean() - mean[~treated].mean(),
        "creatinine of inpatients": creatinine.loc[inpatient, "value_as_number"].median(),
        "creatinine of others": creatinine.loc[~inpatient, "value_as_number"].median(),
        "birth of persons with a drug": float(person.loc[drugs["person_id"].unique(), "year_of_birth"].mean()),
    }


def _broken(tables: dict[str, pd.DataFrame], visits: pd.DataFrame, values: pd.DataFrame) -> dict[str, float]:
    ordered = visits.sort_values(["person_id", "visit_start_date"], kind="stable")
    died = (ordered["discharged_to_concept_id"] == omop.DIED).astype(int)
    outside = (values["measurement_date"] < values["visit_start_date"]) | (
        values["measurement_date"] > values["visit_end_date"]
    )
    keys = [
        tables["measurement"]["visit_occurrence_id"].isin(visits["visit_occurrence_id"]),
        tables["drug_exposure"]["person_id"].isin(tables["person"]["person_id"]),
    ]
    return {
        "deaths": float(died.sum()),
        "visits after a death": float((died.groupby(ordered["person_id"]).cumsum() - died).gt(0).sum()),
        "stays that end before they begin": float((visits["stay"] < 0).sum()),
        "measurements outside their visit": float(outside.sum()),
        "keys that do not resolve": float(sum((~key).sum() for key in keys)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--persons", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--fits", type=int, default=1)
    parser.add_argument("--long", action="store_true", help="measurements in one table")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    real, of_persons = omop.tables(args.persons), schema(args.persons, "omop_long.yaml" if args.long else "omop.yaml")
    data = real if args.long else omop.by_concept(real)
    columns, lines = {"real": figures(real)}, list[dict[str, Any]]()
    for epsilon in args.epsilon:
        for fit in range(1, args.fits + 1):
            start = time.perf_counter()
            release = MaxEntropy(epsilon=epsilon, delta=DELTA).fit(data, schema=of_persons, seed=fit)
            seconds = time.perf_counter() - start
            made = release.sample(args.persons, seed=fit)
            columns[f"ε = {epsilon:g}, {fit}"] = own = figures(made if args.long else omop.together(made))
            lines.append({"epsilon": epsilon, "fit": fit, "seconds": seconds, **{k: float(v) for k, v in own.items()}})
            print(f"ε = {epsilon:g}, fit {fit}: {seconds:.0f} s", flush=True)
    print(pd.DataFrame(columns).astype(float).round(3).to_string())
    if args.out:
        args.out.write_text(json.dumps(lines, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
