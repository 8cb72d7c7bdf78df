"""IndependentItems from any form of sets to samples in that form."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato
from sfumato.errors import ConfigError, ReleaseError, SchemaError
from sfumato.evaluate import evaluate
from sfumato.io.sources import open_source
from sfumato.models.sets import IndependentItems as Sampler
from sfumato.records.private import PrivateData
from sfumato.schema.schema import Schema

RNG = np.random.default_rng(0)
SHARES = np.array([0.9, 0.5, 0.2, 0.05, 0.0])
SETS = [np.flatnonzero(RNG.random(5) < SHARES).tolist() for _ in range(4000)]
KIND = {"kind": "set", "n_items": 5, "max_length": 4}
CELLS = Schema.from_dict({"rows": 4000, "columns": {"items": KIND}})
LONG = Schema.from_dict({"rows": 4000, "columns": {"who": "identifier", "items": {**KIND, "id": "who"}}})
OWNERS = np.repeat(np.arange(4000), [len(items) for items in SETS])
FLAT = np.concatenate([np.array(items, int) for items in SETS])
METHOD = sfumato.IndependentItems(epsilon=2.0)

FORMS = {
    "pyarrow": (pa.table({"items": SETS}), CELLS),
    "polars": (pl.DataFrame({"items": SETS}), CELLS),
    "pandas": (pd.DataFrame({"items": pd.Series(SETS, dtype=pd.ArrowDtype(pa.list_(pa.int64())))}), CELLS),
    "arrays": (
        {"indptr": np.cumsum([0, *map(len, SETS)]), "indices": FLAT.astype(np.int32), "n_items": np.array(5)},
        CELLS,
    ),
    "long pandas": (pd.DataFrame({"who": OWNERS, "items": FLAT}), LONG),
    "long polars": (pl.DataFrame({"items": FLAT, "who": OWNERS.astype(str)}), LONG),
    "long pyarrow": (pa.table({"who": OWNERS, "items": pa.array(FLAT.astype(str)).dictionary_encode()}), LONG),
}


@pytest.mark.filterwarnings("ignore:The storage types:sfumato.errors.PrivacyWarning")
@pytest.mark.parametrize("name", FORMS)
def test_samples_come_back_in_the_form_that_came_in(name, tmp_path):
    data, schema = FORMS[name]
    METHOD.fit(data, schema=schema, seed=0, as_source=True).save(tmp_path / "r.sfm")
    release = sfumato.load(tmp_path / "r.sfm")
    sample = release.sample(4000, seed=1)
    assert type(sample) is type(data)
    expected = open_source(data).storage
    assert {c: str(t) for c, t in open_source(sample).storage.items()} == {c: str(t) for c, t in expected.items()}
    records = PrivateData(open_source(sample), schema)
    codes = np.concatenate([rows["items"].codes for rows in records.coded()])
    np.testing.assert_allclose(np.bincount(codes, minlength=5) / 4000, SHARES, atol=0.04)
    if isinstance(sample, dict):
        assert sample["n_items"] == 5


def test_first_rows_do_not_depend_on_how_many_there_are():
    for name in ("pyarrow", "long pyarrow"):
        data, schema = FORMS[name]
        release = METHOD.fit(data, schema=schema, seed=0)
        many, few = release.sample(40_000, seed=3), release.sample(30, seed=3)
        assert many.slice(0, few.num_rows).to_pydict() == few.to_pydict()
    ids = many["who"].to_pylist()
    assert ids == sorted(ids)
    assert max(ids) == 40_000


@pytest.mark.parametrize("name", FORMS)
def test_no_sets_at_all(name):
    data, schema = FORMS[name]
    none = METHOD.fit(data, schema=schema, seed=0).sample(0, seed=0)
    assert type(none) is type(data)
    assert not sum(len(rows["items"]) for rows in PrivateData(open_source(none), schema).coded())


def test_noise_and_cost_are_those_of_the_plan():
    release = METHOD.fit(FORMS["pyarrow"][0], schema=CELLS, seed=0)
    (counts,) = release.measurements
    plan = METHOD.plan(CELLS)
    assert counts.noise_std == pytest.approx(2 * plan["counts of items"].noise_multiplier)  # √max_length = 2
    assert release.certificate.epsilon == pytest.approx(2.0, rel=1e-3)
    true = np.bincount(FLAT, minlength=5)
    assert np.abs(counts.value - true).max() < 6 * counts.noise_std


def test_samples_stay_within_the_longest_set():
    schema = Schema.from_dict({"columns": {"items": {"kind": "set", "n_items": 50, "max_length": 2}}})
    sampler = Sampler(schema, {}, {"probabilities": np.full(50, 0.2)})
    sets = sampler.rows(2000, np.random.default_rng(0))["items"]
    assert sets.lengths.max() == 2
    # which items are left out is random: all are equally frequent
    counts = np.bincount(sets.codes, minlength=50)
    assert counts.min() > 0.5 * counts.mean()


@pytest.mark.parametrize("wrong", [np.zeros(4), np.full(5, 2.0), np.full(5, -0.1), np.zeros(5, int)])
def test_a_stranger_writes_wrong_probabilities(wrong):
    with pytest.raises(ReleaseError):
        Sampler(CELLS, {}, {"probabilities": wrong})


def test_methods_that_take_no_sets_say_so_before_anything_is_read():

    gaussian = sfumato.MaxEntropy(epsilon=1.0)
    with pytest.raises(SchemaError, match="sets of items in column 'items'"):
        gaussian.plan(CELLS)
    with pytest.raises(SchemaError, match="sets of items in column 'items'"):
        gaussian.fit(FORMS["pyarrow"][0], schema=CELLS)
    with pytest.raises(ConfigError, match="got sets in column 'items'"):
        evaluate(FORMS["pyarrow"][0], FORMS["pyarrow"][0], schema=CELLS)


def test_what_it_does_not_take_is_refused():
    with pytest.raises(ConfigError, match="one column of kind set"):
        METHOD.plan(Schema.from_dict({"rows": 10, "columns": {"a": "boolean"}}))
    with pytest.raises(ConfigError, match="no target"):
        METHOD.plan(CELLS, target="items")
    release = METHOD.fit(FORMS["pyarrow"][0], schema=CELLS, seed=0)
    with pytest.raises(ConfigError, match="given columns of labels"):
        release.sample(3, given={"items": "1"})
    with pytest.raises(ConfigError, match="class_counts"):
        release.sample(class_counts={"1": 2})


def test_an_error_while_fitting_shows_no_item():
    data = {"indptr": np.array([0, 9, 3]), "indices": np.array([987654321] * 9), "n_items": np.array(5)}
    with pytest.raises(sfumato.errors.DataError) as caught:
        METHOD.fit(data, schema=CELLS)
    assert "987654321" not in str(caught.value)
    assert caught.value.__context__ is None


def test_of_a_long_table_the_id_is_what_is_protected(tmp_path):
    """In certificates and ledgers: rows and people are not one account."""
    plan = sfumato.IndependentItems(epsilon=1.0, delta=1e-5).describe_plan(LONG)
    assert plan["unit"] == {"name": "who", "max_rows": 1}
    sfumato.create_ledger(tmp_path / "l", epsilon=9.0, delta=1e-4)
    table = pa.table({"who": OWNERS, "items": pa.array(FLAT)})
    sfumato.IndependentItems(epsilon=1.0, delta=1e-5).fit(table, schema=LONG, ledger=tmp_path / "l")
    rows = Schema.from_dict({"rows": 4000, "columns": {"who": {"kind": "boolean"}}})
    with pytest.raises(ConfigError, match="'who', got 'row'"):
        sfumato.MaxEntropy(epsilon=1.0, delta=1e-5).fit(table, schema=rows, ledger=tmp_path / "l")
