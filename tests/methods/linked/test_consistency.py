"""Chains of units are fitted to the context that they are drawn given: samples have the numbers that were released."""

import numpy as np
import pandas as pd
import pytest

from fixtures.database import hospital, schema
from sfumato import MaxEntropy, Schema
from sfumato.errors import ConfigError
from sfumato.fitting.driver import FittedModel
from sfumato.lenses.chain import plain_schema
from sfumato.methods.linked.recipe import number_of_rows, simulated_units
from sfumato.release.database_sampler import DatabaseTables
from sfumato.schema.branch_schemas import branch_views
from sfumato.schema.linked import linked_tables

N = 3_000


@pytest.mark.parametrize("branch", ["measurements", "drugs"])
@pytest.mark.parametrize("seed", [1, 2])
def test_rows_below_have_the_released_numbers_whatever_noise_their_context_has(release_of, branch, seed):
    release, tables = release_of(seed)
    view = branch_views(release.schema)[branch]
    part = f"{branch}.units."
    arrays = {key.removeprefix(part): a for key, a in release.parameters.items() if key.startswith(part)}
    units = FittedModel(release.sampler["branches"][branch]["units"], arrays, ())
    law = number_of_rows(linked_tables(plain_schema(view.schema)), units)
    above = view.branch.of
    key = tables[above].columns[0]
    sizes = tables[branch].groupby(key).size().reindex(tables[above][key], fill_value=0)
    np.testing.assert_allclose(np.bincount(sizes, minlength=law.size) / sizes.size, law, atol=0.02)


@pytest.fixture(scope="module")
def release_of():
    records, known = hospital(N, 1), {}

    def release(seed):
        if seed not in known:
            model = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=4_000)
            fitted = model.fit(records, schema=schema(N), seed=seed)
            known[seed] = fitted, fitted.sample(20_000, seed=3)
        return known[seed]

    return release


def test_what_is_known_is_counted_where_no_unit_keeps_the_rules(monkeypatch):
    records, model = hospital(600, 1), MaxEntropy(epsilon=8.0, delta=1e-6, calibration_rows=2_000)

    def counted(release):
        of = "measurements: units: counts of cells"
        (query,) = (m.query for m in release.measurements if m.name == of)
        return {axes[0].column for axes in query.tables}

    def none(*_):
        raise ConfigError("none")

    own = counted(model.fit(records, schema=schema(600), seed=1))
    monkeypatch.setattr(DatabaseTables, "levels", none)
    every = counted(model.fit(records, schema=schema(600), seed=1))
    assert {"sex", "age", "score", "state"} <= every - own
    assert {"at", "value"} <= own


def test_without_context_there_is_nothing_to_fit_to():
    """Persons who are keys alone, and a first table that says nothing of the second but how many rows there are."""
    persons = pd.DataFrame({"person": np.arange(300)})
    rows = pd.DataFrame({"person": np.arange(300), "a": ["u", "v"] * 150})
    label = {"kind": "categorical", "categories": ["u", "v"]}
    document = {
        "tables": {
            "persons": {"key": "person", "rows": 300, "columns": []},
            "first": {"of": "persons", "max_rows": 2, "columns": ["a"]},
            "second": {"of": "persons", "max_rows": 2, "columns": ["b"]},
        },
        "columns": {"person": "identifier", "a": label, "b": label},
    }
    method = MaxEntropy(epsilon=8.0, delta=1e-6, calibration_rows=500)
    tables = {"persons": persons, "first": rows, "second": rows.rename(columns={"a": "b"})}
    sample = method.fit(tables, schema=Schema.from_dict(document), seed=1).sample(100, seed=1)
    assert list(sample["persons"]) == ["person"]
    assert sample["persons"]["person"].tolist() == list(range(1, 101))
    assert len(sample["second"]) > 50


def test_units_are_enough_for_their_rows_and_not_too_many():
    assert [simulated_units(mean) for mean in (0.0, 1.0, 4.0, 1e6)] == [20_000, 20_000, 10_000, 2_048]


def test_rows_that_nobody_has_are_no_context():
    """Persons without visits, and what is below these: no row above is drawn, and the fit ends all the same."""
    label = {"kind": "categorical", "categories": ["u", "v"]}
    document = {
        "tables": {
            "persons": {"key": "person", "rows": 4000, "columns": ["sex"]},
            "visits": {"of": "persons", "key": "visit", "max_rows": 2, "columns": ["a"]},
            "values": {"of": "visits", "max_rows": 3, "columns": ["b"]},
        },
        "columns": {"person": "identifier", "visit": "identifier", "sex": label, "a": label, "b": label},
    }
    none = np.zeros(0, dtype=np.int64)
    text = np.zeros(0, dtype=object)
    tables = {
        "persons": pd.DataFrame({"person": np.arange(4000), "sex": ["u", "v"] * 2000}),
        "visits": pd.DataFrame({"person": none, "visit": none, "a": text}),
        "values": pd.DataFrame({"visit": none, "b": text}),
    }
    method = MaxEntropy(epsilon=100.0, delta=1e-6, calibration_rows=300)
    sample = method.fit(tables, schema=Schema.from_dict(document), seed=0).sample(100, seed=1)
    assert len(sample["persons"]) == 100
    assert len(sample["visits"]) < 20
