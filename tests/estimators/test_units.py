"""Estimators of rows of units: noise for all rows of one, and no more rows of it than are paid for."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fixtures.costly import slow_after
from sfumato import NonPrivate, Schema, create_ledger
from sfumato.columns.cells import joined
from sfumato.errors import ConfigError, SfumatoError
from sfumato.estimators import DPFactorAnalysis, DPGaussianMixture, DPKernelKMeans, DPKMeans
from sfumato.estimators.records import SchemaRecords, open_rows
from sfumato.estimators.row_columns import of_units
from sfumato.io.sources import open_source
from sfumato.records.units import unit_names

N = 600
BOUNDS = (-4.0, 4.0)
PUBLIC = {"epsilon": 2.0, "n_public": N, "bounds": BOUNDS, "seed": 1}
RNG = np.random.default_rng(0)
ROWS = RNG.choice([-2.0, 2.0], (N, 1)) + 0.5 * RNG.standard_normal((N, 2))
UNITS = np.arange(N) // 4
ESTIMATORS = [
    DPGaussianMixture(2, **PUBLIC),
    DPFactorAnalysis(1, **PUBLIC),
    DPKMeans(2, **PUBLIC),
    DPKernelKMeans(2, n_features=20, **PUBLIC),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.method)
def test_noise_is_for_all_rows_of_a_unit(estimator):
    alone = [noisy.noise_std for noisy in estimator.fit(ROWS).releases_]
    cost = estimator.certificate.epsilon
    together = [noisy.noise_std for noisy in estimator.fit(ROWS, units=UNITS, max_rows=3).releases_]
    assert np.allclose(np.array(together) / alone, 3.0)
    assert estimator.certificate.epsilon == cost
    assert (estimator.certificate.unit.name, estimator.certificate.unit.max_rows) == ("unit", 3)


def sizes(units, rows=ROWS, **options) -> np.ndarray:
    model = DPKMeans(2, epsilon=NonPrivate(), n_public=N, bounds=BOUNDS, start=np.array([[-2.0, -2.0], [2.0, 2.0]]))
    return model.fit(rows, units=units, **options).sizes_


def test_at_most_so_many_rows_of_a_unit_count():
    assert sizes(None).sum() == N
    assert sizes(UNITS, max_rows=4).sum() == N
    assert sizes(UNITS, max_rows=3).sum() == 3 * N // 4
    assert sizes(np.zeros(N), max_rows=1).sum() == 1
    nobody = np.where(np.arange(N) < 100, None, UNITS.astype(object))
    assert sizes(nobody, max_rows=4).sum() == N - 100


def test_no_order_of_rows_changes_which_count():
    order = np.random.default_rng(1).permutation(N)
    assert (sizes(UNITS, max_rows=2) == sizes(UNITS[order], ROWS[order], max_rows=2)).all()
    frame = pd.DataFrame(ROWS, columns=["a", "b"])
    assert (sizes([f"p{u}" for u in UNITS], frame, max_rows=4) == sizes(UNITS, max_rows=4)).all()


def test_a_release_says_whom_it_protects():
    frame = pd.DataFrame(ROWS, columns=["unit", "b"])
    model = DPKMeans(2, **PUBLIC).fit(frame, units=UNITS, max_rows=2)
    release = model.release()
    release.check()
    assert release.schema.unit.column == release.certificate.unit.name == "unit'"
    assert list(release.sample(5, seed=1)) == ["unit", "b"]
    assert "unit" not in DPKMeans(2, **PUBLIC).fit(frame).release().schema.protects["name"]


def test_a_schema_names_the_unit():
    frame = pd.DataFrame({"who": UNITS, "a": ROWS[:, 0], "b": ROWS[:, 1]})
    number = {"kind": "continuous", "lower": -4, "upper": 4}
    document = {
        "rows": N,
        "unit": {"column": "who", "max_rows": 3},
        "columns": {"who": "identifier", "a": number, "b": number},
    }
    records = SchemaRecords(open_source(frame), Schema.from_dict(document))
    assert records.max_rows_per_unit == 3
    model = DPKMeans(2, **PUBLIC).fit(records, bounds=records.bounds)
    assert (model.certificate.unit.name, model.certificate.unit.max_rows) == ("who", 3)
    assert model.release().schema.unit.column == "who"
    by_names = DPKMeans(2, **PUBLIC).fit(frame[["a", "b"]], units=frame["who"], max_rows=3)
    assert [n.noise_std for n in model.releases_] == [n.noise_std for n in by_names.releases_]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"units": UNITS}, "max_rows beside units"),
        ({"max_rows": 2}, "units beside max_rows"),
        ({"units": UNITS[:-1], "max_rows": 2}, "as many units as rows"),
        ({"units": UNITS, "max_rows": 0}, "max_rows"),
        ({"units": np.zeros((N, 2)), "max_rows": 2}, "names or whole numbers"),
    ],
)
def test_refused(options, said):
    model = DPKMeans(2, **PUBLIC)
    with pytest.raises(SfumatoError, match=said):
        model.fit(ROWS, **options)
    assert not hasattr(model, "certificate_")


def test_a_file_has_its_unit_in_a_schema(tmp_path):
    pd.DataFrame(ROWS, columns=["a", "b"]).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ConfigError, match="schema"):
        DPKMeans(2, **PUBLIC).fit(str(tmp_path / "rows.parquet"), units=UNITS, max_rows=2)


CELLS = {
    "text": "anna",
    "number as text": "7",
    "whole number": 7,
    "fraction": 2.5,
    "missing": None,
    "not a number": float("nan"),
    "truth": True,
    "long number": 2**70,
    "list": [1, 2],
    "bytes": b"anna",
    "date": np.datetime64("2020-01-02"),
}


def names(units) -> list[str | None]:
    """Return the name of each row's unit, as a fit reads it."""
    records = of_units(open_rows(np.zeros((len(units), 1))), units, units, 1, in_ledger=False)
    list(records.coded())
    return unit_names(joined(records._cells), ("",)).to_pylist()


@pytest.mark.parametrize("first", slow_after(4, CELLS))
def test_no_name_changes_how_another_is_read(first):
    alone = {other: names([cell])[0] for other, cell in CELLS.items()}
    for pair in product(CELLS, repeat=2):
        assert names([CELLS[name] for name in (first, *pair)]) == [alone[name] for name in (first, *pair)]


@pytest.mark.parametrize(
    "units",
    [
        ["7", "7.0", "anna", None],
        pd.Series(["7", "7", "anna", None]),
        pd.Series(["7", 7, "anna", None], dtype=object),
        np.array(["7", "7", "anna", None], dtype=object),
        pa.array(["7", "7", "anna", None]),
        pa.chunked_array([["7", "7"], ["anna", None]]),
        pl.Series(["7", "7", "anna", None]),
        np.ma.array([7, 7, 8, 9], mask=[0, 0, 0, 1]),
        pd.Series([7.0, 7.0, 8.0, np.nan]),
        pd.Series(pd.Categorical(["7", "7", "anna", None])),
    ],
    ids=lambda units: type(units).__module__.split(".")[0] + type(units).__name__,
)
def test_forms_of_units(units):
    first, second, third, fourth = names(units)
    assert first == second == "7"
    assert third in ("anna", "8")
    assert fourth is None


@pytest.mark.parametrize(
    "units", [{0: 1, 1: 2}, {1, 2}, "ab", iter([1, 2]), np.zeros((2, 2)), np.array(3), 5, object()]
)
def test_units_without_an_order(units):
    with pytest.raises(ConfigError, match="names or whole numbers"):
        of_units(open_rows(np.zeros((2, 1))), np.zeros((2, 1)), units, 1, in_ledger=False)


def test_no_rows_at_all():
    assert names([]) == []


def test_a_ledger_knows_units_by_the_name_of_their_column(tmp_path):
    ledger = tmp_path / "people.ledger"
    create_ledger(ledger, epsilon=10, delta=1e-3)
    model = DPKMeans(2, **(PUBLIC | {"seed": None}))
    with pytest.raises(ConfigError, match="name beside a ledger"):
        model.fit(ROWS, units=UNITS, max_rows=4, ledger=ledger)
    model.fit(ROWS, units=pd.Series(UNITS, name="patient"), max_rows=4, ledger=ledger)
    assert model.certificate.unit.name == "patient"


def test_the_name_of_units_is_no_feature():
    frame = pd.DataFrame(ROWS, columns=["patient", "b"])
    with pytest.raises(ConfigError, match="'patient'"):
        DPKMeans(2, **PUBLIC).fit(frame, units=pd.Series(UNITS, name="patient"), max_rows=4)
