"""What the tests of every engine share: a small table in several forms, and the bits of a release."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import numpy as np
import pandas as pd

from sfumato import MaxEntropy, Release, Schema
from sfumato.columns import Categorical, Continuous, Identifier, Integer
from sfumato.fitting.arguments import RowCount
from sfumato.io.sources import open_source
from sfumato.records.engine import Engine, reduce
from sfumato.records.private import PrivateData
from sfumato.schema.unit import Unit

N = 3000
SCHEMA = Schema(
    columns={
        "age": Integer(lower=0, upper=90, nullable=True),
        "place": Categorical(categories=["x", "y", "z"]),
        "income": Continuous(lower=0.0, upper=8.0),
    },
    rows=N,
)


def table() -> pd.DataFrame:
    """Return N records, dependent on each other's columns and with missing cells."""
    rng = np.random.default_rng(5)
    age = rng.integers(0, 91, N).astype(float)
    age[::17] = np.nan
    income = np.exp(rng.normal(size=N) * 0.5 + np.nan_to_num(age, nan=40.0) / 90)
    return pd.DataFrame({"age": age, "place": rng.choice(["x", "y", "z"], N), "income": income})


def counted(data: object, schema: Schema, engine: Engine | None = None) -> int:
    """Return the exact number of records that count."""
    records = PrivateData(open_source(data), schema, engine=engine)
    return int(reduce(RowCount(), records).whole_in_mechanism())


def folder_of(frame: pd.DataFrame, folder: Path, files: int = 6) -> Path:
    """Write a table as Parquet files of one folder."""
    folder.mkdir(exist_ok=True)
    bounds = np.linspace(0, len(frame), files + 1).astype(int)
    for i, (low, high) in enumerate(itertools.pairwise(bounds)):
        frame.iloc[low:high].to_parquet(folder / f"{i}.parquet", index=False)
    return folder


def fit(data: object, **options: object) -> Release:
    """Fit the default method with seeded noise."""
    return MaxEntropy(epsilon=1.0).fit(data, schema=SCHEMA, target="place", seed=3, rows_are_records=True, **options)  # type: ignore[arg-type]


def visits() -> pd.DataFrame:
    """Return records of N/6 units, whose rows are scattered over the table: some have more than three."""
    rng = np.random.default_rng(8)
    return table().assign(person=rng.integers(0, N // 6, N))


VISITS = Schema(columns={"person": Identifier(), **SCHEMA.columns}, rows=N, unit=Unit(column="person", max_rows=3))


def fit_visits(data: object, **options: object) -> Release:
    """Fit a table of units with seeded noise."""
    return MaxEntropy(epsilon=3.0).fit(data, schema=VISITS, target="place", seed=3, rows_are_records=True, **options)  # type: ignore[arg-type]


def bits(release: Release) -> str:
    """Return a digest of all that a release says, but for when it was made."""
    digest = hashlib.sha256()
    arrays = {f"p {name}": array for name, array in release.parameters.items()}
    arrays |= {f"m {i}": measured.value for i, measured in enumerate(release.measurements)}
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def fit_with_deaths(folder: Path, engine: Engine, arm: Path, victim: str = "process") -> tuple[Release, int]:
    """Fit files of which a worker dies in every pass; return how many died."""
    from harness.deadly import deadly

    deaths = 0

    def next_pass(_: str) -> None:
        nonlocal deaths
        deaths += not arm.exists()
        arm.touch()

    source = deadly(open_source(str(folder)), arm, victim)
    return fit(source, engine=engine, progress=next_pass), deaths
