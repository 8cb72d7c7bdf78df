"""Tables in the shape of the OMOP common data model, of persons who never were.

    python examples/omop/make_tables.py FOLDER [--persons 20000] [--seed 1] [--long]

Four tables, or with one of measurements for each concept six, as `omop.yaml` describes them: `--long` leaves them four.

Blood pressure has a level of the person's, rises with age, and falls with lisinopril; who is old has more visits and
stays longer; creatinine is three times as high after an inpatient stay; nobody has a visit after dying.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

FIRST, DAYS = pd.Timestamp("2020-01-01"), 1826
SYSTOLIC, DIASTOLIC, CREATININE = 3004249, 3012888, 3016723
HOME, NURSING, DIED = 581476, 8863, 4216643
INPATIENT, OUTPATIENT, EMERGENCY = 9201, 9202, 9203
LISINOPRIL, METFORMIN, ATORVASTATIN = 1308216, 1503297, 1545958
CONCEPTS = {"systolic": SYSTOLIC, "diastolic": DIASTOLIC, "creatinine": CREATININE}


def tables(persons: int, seed: int = 1) -> dict[str, pd.DataFrame]:
    """Return the tables by their names."""
    rng = np.random.default_rng(seed)
    birth = np.clip(rng.normal(1962, 19, persons), 1920, 2020).astype(int)
    age, pressure = 2022 - birth, rng.normal(0, 11, persons)
    person = pd.DataFrame(
        {
            "person_id": np.arange(1, persons + 1),
            "gender_concept_id": rng.choice([8507, 8532], persons),
            "year_of_birth": birth,
            "race_concept_id": rng.choice([0, 8515, 8516, 8527], persons, p=[0.08, 0.06, 0.13, 0.73]),
        }
    )
    drugs, treated = _drugs(rng, age, pressure)
    visits = _visits(rng, age)
    who = visits["person_id"].to_numpy() - 1
    level = 105 + 0.35 * age[who] + pressure[who] - 9 * treated[who]
    return {
        "person": person,
        "visit_occurrence": visits,
        "measurement": _measurements(rng, visits, level),
        "drug_exposure": drugs,
    }


def by_concept(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return tables with one for each concept in place of that of measurements."""
    whole = tables["measurement"]
    parts = {
        name: whole[whole["measurement_concept_id"] == concept]
        .drop(columns="measurement_concept_id")
        .rename(columns={"measurement_date": f"{name}_date", "value_as_number": name})
        for name, concept in CONCEPTS.items()
    }
    return {name: frame for name, frame in tables.items() if name != "measurement"} | parts


def together(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return tables with one of measurements in place of those of concepts."""
    parts = [
        tables[name]
        .rename(columns={f"{name}_date": "measurement_date", name: "value_as_number"})
        .assign(measurement_concept_id=concept)
        for name, concept in CONCEPTS.items()
    ]
    return {name: frame for name, frame in tables.items() if name not in CONCEPTS} | {"measurement": pd.concat(parts)}


def _visits(rng: np.random.Generator, age: np.ndarray) -> pd.DataFrame:
    number = np.minimum(rng.poisson(0.6 + age / 40), 6)
    who = np.repeat(np.arange(age.size), number)
    kind = rng.choice([INPATIENT, OUTPATIENT, EMERGENCY], who.size, p=[0.25, 0.6, 0.15])
    start = np.sort(rng.random((age.size, 6)) * (DAYS - 60), axis=1).astype(int)
    place = np.arange(who.size) - np.repeat(np.cumsum(number) - number, number)
    begins = start[who, place]
    stay = np.where(kind == INPATIENT, np.minimum(rng.geometric(1 / (3 + age[who] / 15)), 45), 0)
    chance = rng.random(who.size)
    died = (kind == INPATIENT) & (chance < age[who] / 1_500)
    to = np.where(died, DIED, np.where((kind == INPATIENT) & (chance > 1 - age[who] / 500), NURSING, HOME))
    frame = pd.DataFrame(
        {
            "visit_occurrence_id": np.arange(1, who.size + 1),
            "person_id": who + 1,
            "visit_concept_id": kind,
            "visit_start_date": FIRST + pd.to_timedelta(begins, unit="D"),
            "visit_end_date": FIRST + pd.to_timedelta(begins + stay, unit="D"),
            "discharged_to_concept_id": to,
        }
    )
    after = pd.Series(died.astype(int)).groupby(who).cumsum().to_numpy() - died
    return frame[after == 0].reset_index(drop=True)


def _measurements(rng: np.random.Generator, visits: pd.DataFrame, level: np.ndarray) -> pd.DataFrame:
    at = np.repeat(np.arange(len(visits)), rng.integers(0, 5, len(visits)))
    of = visits.iloc[at]
    kind = rng.choice([SYSTOLIC, DIASTOLIC, CREATININE], at.size, p=[0.4, 0.35, 0.25])
    systolic = level[at] + rng.normal(0, 8, at.size)
    creatinine = rng.lognormal(0, 0.3, at.size) * np.where(of["visit_concept_id"] == INPATIENT, 3.0, 1.0)
    value = np.where(kind == CREATININE, creatinine, np.where(kind == SYSTOLIC, systolic, 0.5 * systolic + 18))
    days = (of["visit_end_date"] - of["visit_start_date"]).dt.days.to_numpy()
    return pd.DataFrame(
        {
            "measurement_id": np.arange(1, at.size + 1),
            "person_id": of["person_id"].to_numpy(),
            "visit_occurrence_id": of["visit_occurrence_id"].to_numpy(),
            "measurement_concept_id": kind,
            "measurement_date": of["visit_start_date"].to_numpy()
            + pd.to_timedelta((rng.random(at.size) * (days + 1)).astype(int), unit="D").to_numpy(),
            "value_as_number": value.clip(0, 300).round(1),
        }
    )


def _drugs(rng: np.random.Generator, age: np.ndarray, pressure: np.ndarray) -> tuple[pd.DataFrame, np.ndarray]:
    """The prescriptions, and of each person whether there was one of lisinopril."""
    needs = 1 / (1 + np.exp(-(age - 60) / 10 - pressure / 6))
    number = rng.binomial(4, 0.1 + 0.5 * needs)
    who = np.repeat(np.arange(age.size), number)
    against = rng.random(who.size) < 0.2 + 0.6 * needs[who]
    drug = np.where(against, LISINOPRIL, rng.choice([METFORMIN, ATORVASTATIN], who.size))
    frame = pd.DataFrame(
        {
            "drug_exposure_id": np.arange(1, who.size + 1),
            "person_id": who + 1,
            "drug_concept_id": drug,
            "drug_exposure_start_date": FIRST + pd.to_timedelta(rng.integers(0, DAYS, who.size), unit="D"),
            "days_supply": rng.choice([30, 60, 90], who.size, p=[0.5, 0.2, 0.3]),
        }
    )
    return frame, np.bincount(who, drug == LISINOPRIL, age.size) > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--persons", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true")
    args = parser.parse_args()
    made = tables(args.persons, args.seed)
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, frame in (made if args.long else by_concept(made)).items():
        frame.to_csv(args.folder / f"{name}.csv", index=False)


if __name__ == "__main__":
    main()
