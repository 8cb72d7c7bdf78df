"""The tables of `dependence_tables.py`: complete records, a public schema, a target or a number to predict.

    adult, credit, esr, isolet      as in `adult.py` and `tables.py`
    ma2019, tx2019, national2019    as in `peer_tables.py`, whose target is an income at or above the state's median
    telco_churn                     customers of a telephone company; target Churn
    california_housing              block groups of 1990; regression on medianHouseValue
    magic04                         showers seen by a gamma-ray telescope; target class
    ds1_10                          ten principal components of a drug screen; target label

Bounds are round numbers from each table's documentation or common knowledge, not from the records: telco, months up
to the 72 that its code book has and charges in dollars; housing, the caps that the census set on age, income and value
and round totals of a block group; magic, millimetres, degrees and the logarithm of a number of photons; ds1_10, the
published input bounds of GUPT (Mohan et al. 2012), rounded outwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import peer_tables
from peer_tables import Table

import sfumato
from sfumato.columns.kinds import Categorical, ColumnKind, Continuous, Integer

YES_NO = Categorical(categories=("No", "Yes"))
SERVICE = Categorical(categories=("No", "Yes", "No internet service"))


@dataclass(frozen=True)
class Case:
    """A table, and what is asked of it beyond the scores that all get."""

    table: Table
    regression: bool = False
    """Whether the target is a number, scored by R²; `fit` is told it like any other."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Pairs of numeric columns whose correlation is shown by name."""
    k_marginal_without: tuple[str, ...] | None = None
    """Columns that NIST's k-marginal score leaves out; None where it is not asked for."""


def telco_churn(folder: Path) -> Case:
    frame = pd.read_parquet(folder / "telco_churn.parquet")
    frame["TotalCharges"] = pd.to_numeric(frame["TotalCharges"], errors="coerce")
    services = ("OnlineSecurity", "OnlineBackup", "DeviceProtection", "TechSupport", "StreamingTV", "StreamingMovies")
    payments = ("Electronic check", "Mailed check", "Bank transfer (automatic)", "Credit card (automatic)")
    columns: dict[str, ColumnKind] = {
        "gender": Categorical(categories=("Female", "Male")),
        "SeniorCitizen": Categorical(categories=("0", "1")),
        "Partner": YES_NO,
        "Dependents": YES_NO,
        "tenure": Integer(lower=0, upper=72),
        "PhoneService": YES_NO,
        "MultipleLines": Categorical(categories=("No", "Yes", "No phone service")),
        "InternetService": Categorical(categories=("DSL", "Fiber optic", "No")),
        **dict.fromkeys(services, SERVICE),
        "Contract": Categorical(categories=("Month-to-month", "One year", "Two year")),
        "PaperlessBilling": YES_NO,
        "PaymentMethod": Categorical(categories=payments),
        "MonthlyCharges": Continuous(lower=0, upper=150, resolution=0.05),
        "TotalCharges": Continuous(lower=0, upper=10_000, resolution=0.05, nullable=True),
        "Churn": YES_NO,
    }
    table = Table(frame, sfumato.Schema(columns=columns, rows=6_000), "Churn", "Yes")
    return Case(table, pairs=(("tenure", "TotalCharges"),))


def california_housing(folder: Path) -> Case:
    frame = pd.read_parquet(folder / "california_housing.parquet")
    columns: dict[str, ColumnKind] = {
        "longitude": Continuous(lower=-125, upper=-114, resolution=0.01),
        "latitude": Continuous(lower=32, upper=42.5, resolution=0.01),
        "housingMedianAge": Integer(lower=0, upper=52),
        "totalRooms": Integer(lower=0, upper=40_000),
        "totalBedrooms": Integer(lower=0, upper=7_000),
        "population": Integer(lower=0, upper=40_000),
        "households": Integer(lower=0, upper=7_000),
        "medianIncome": Continuous(lower=0, upper=15.0001, resolution=0.0001),
        "medianHouseValue": Integer(lower=0, upper=500_001),
    }
    pairs = (
        ("totalBedrooms", "households"),
        ("totalRooms", "totalBedrooms"),
        ("medianIncome", "medianHouseValue"),
        ("longitude", "latitude"),
    )
    table = Table(frame, sfumato.Schema(columns=columns, rows=18_000), "medianHouseValue", "")
    return Case(table, regression=True, pairs=pairs)


def magic04(folder: Path) -> Case:
    frame = pd.read_parquet(folder / "magic04.parquet")
    columns: dict[str, ColumnKind] = {
        "fLength": Continuous(lower=0, upper=400, resolution=0.0001),
        "fWidth": Continuous(lower=0, upper=300, resolution=0.0001),
        "fSize": Continuous(lower=1, upper=6, resolution=0.0001),
        "fConc": Continuous(lower=0, upper=1, resolution=0.0001),
        "fConc1": Continuous(lower=0, upper=1, resolution=0.0001),
        "fAsym": Continuous(lower=-600, upper=600, resolution=0.0001),
        "fM3Long": Continuous(lower=-400, upper=400, resolution=0.0001),
        "fM3Trans": Continuous(lower=-300, upper=300, resolution=0.0001),
        "fAlpha": Continuous(lower=0, upper=90, resolution=0.0001),
        "fDist": Continuous(lower=0, upper=500, resolution=0.0001),
        "class": Categorical(categories=("h", "g")),
    }
    return Case(Table(frame, sfumato.Schema(columns=columns, rows=17_000), "class", "g"))


def ds1_10(folder: Path) -> Case:
    frame = pd.read_parquet(folder / "ds1_10.parquet")
    frame["label"] = frame["label"].astype(str)
    columns: dict[str, ColumnKind] = {f"x{i}": Continuous(lower=-8, upper=8) for i in range(2, 11)}
    columns = {"x1": Continuous(lower=-14, upper=0), **columns, "label": Categorical(categories=("0", "1"))}
    return Case(Table(frame, sfumato.Schema(columns=columns, rows=24_000), "label", "1"))


def known(name: str) -> Callable[[Path], Case]:
    """A table of `peer_tables.py`; NIST's score leaves PUMA and INDP out, as in `k_marginal.py`."""
    without = ("PUMA", "INDP") if name.endswith("2019") else None
    return lambda folder: Case(replace(peer_tables.TABLES[name](folder), warped=False), k_marginal_without=without)


CASES: dict[str, Callable[[Path], Case]] = {
    "adult": known("adult"),
    "telco_churn": telco_churn,
    "california_housing": california_housing,
    "magic04": magic04,
    "ma2019": known("ma2019"),
    "tx2019": known("tx2019"),
    "national2019": known("national2019"),
    "ds1_10": ds1_10,
    "credit": known("credit"),
    "esr": known("esr"),
    "isolet": known("isolet"),
}
