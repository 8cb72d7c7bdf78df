"""The form of samples: by the schema and the container alone."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import yaml

from fixtures import tables
from sfumato import MaxEntropy
from sfumato.columns import Boolean, Categorical, Continuous, DateTime, Integer, ItemSet, Open, Ordinal
from sfumato.errors import ConfigError, PrivacyWarning, SchemaError
from sfumato.fitting.contents import form_of
from sfumato.io.sources import open_source
from sfumato.schema.schema import Schema

DAYS = {"lower": "2024-01-01", "upper": "2024-12-31"}
EXPECTED = {  # kind: Arrow, pandas
    Integer(lower=0, upper=9): (pa.int64(), "int64"),
    Integer(lower=0, upper=9, nullable=True): (pa.int64(), "Int64"),
    Integer(lower=2**62, upper=2**63 - 1): (pa.int64(), "int64"),
    Continuous(lower=0, upper=9, resolution=1): (pa.float64(), "float64"),
    Boolean(): (pa.bool_(), "bool"),
    Boolean(nullable=True): (pa.bool_(), "boolean"),
    Boolean(text=("no", "yes")): (pa.string(), "str"),
    Categorical(categories=(0, 1)): (pa.int64(), "int64"),
    Categorical(categories=(0, 1), nullable=True): (pa.int64(), "Int64"),
    Categorical(categories=(0, 1), other="more"): (pa.string(), "str"),
    Categorical(categories=("0", "01")): (pa.string(), "str"),
    Categorical(categories=("0.5", "1")): (pa.float64(), "float64"),
    Categorical(categories=("0.50", "1")): (pa.string(), "str"),
    Categorical(categories=("true", "false")): (pa.string(), "str"),
    Ordinal(categories=(3, 2, 1)): (pa.int64(), "int64"),
    DateTime(**DAYS): (pa.date32(), "datetime64[us]"),
    DateTime(**DAYS, resolution="minute", nullable=True): (pa.timestamp("us"), "datetime64[us]"),
    DateTime(**DAYS, format="%d.%m.%Y"): (pa.string(), "str"),
}


@pytest.mark.parametrize("kind", EXPECTED, ids=repr)
def test_types_by_kind_and_container(kind):
    arrow, pandas = EXPECTED[kind]
    schema = Schema(columns={"v": kind}, rows=10)
    table = pa.table({"v": ["x"] * 10})
    frame = pd.DataFrame({"v": ["x"] * 10})
    assert form_of(open_source(table), schema).storage == {"v": arrow}
    for data in (table, frame, pl.from_arrow(table)):
        if isinstance(kind, DateTime | Boolean | Categorical | Integer | Continuous | Ordinal):
            release = MaxEntropy(epsilon=1).fit(data, schema=schema, seed=0)
            release.check()
            rows = release.sample(5, seed=0)
            if data is frame:
                assert str(rows["v"].dtype) == pandas
            elif data is not table:
                assert rows.schema["v"] == pl.from_arrow(pa.table({"v": pa.array([], arrow)})).schema["v"]


def test_text_files_have_text(tmp_path):
    schema = Schema.from_dict(yaml.safe_load(tables.SCHEMA_TEXT))
    path = tables.write_csv(tmp_path / "people.csv")
    storage = form_of(open_source(path), schema).storage
    assert set(storage.values()) == {pa.string()}
    assert list(storage) == list(schema.released)


def test_ids_of_long_tables_are_numbers():
    kinds = {"who": "identifier", "item": {"kind": "set", "items": [3, 5], "max_length": 2, "id": "who"}}
    schema = Schema.from_dict({"rows": 2, "columns": kinds})
    data = pa.table({"who": ["a", "b"], "item": pa.array([3, 5], pa.int8())})
    assert isinstance(schema.columns["item"], ItemSet)
    assert form_of(open_source(data), schema).storage == {"who": pa.int64(), "item": pa.list_(pa.int64())}


@pytest.mark.slow
def test_the_types_of_the_source_on_demand():
    frame = pd.DataFrame({"v": pd.Series([1, 2] * 5, dtype="int16")})
    wide = Schema(columns={"v": Integer(lower=0, upper=10**6)}, rows=10)
    method = MaxEntropy(epsilon=1)
    with pytest.raises(SchemaError, match="int16"):
        method.fit(frame, schema=wide, as_source=True)
    with pytest.raises(ConfigError, match="as_source to be True or False"):
        method.fit(frame, schema=wide, as_source="no")
    with pytest.warns(PrivacyWarning, match="published"):
        release = method.fit(frame, schema=Schema(columns={"v": Integer(lower=0, upper=9)}, rows=10), as_source=True)
    assert release.sample(3)["v"].dtype == "int16"
    assert "NOT covered by the guarantee" in release.certificate.assumptions[-1]
    text = pd.DataFrame({"v": ["1", "2"] * 500})
    with pytest.warns(PrivacyWarning):
        found = MaxEntropy(epsilon=20).fit(
            text, schema=Schema(columns={"v": Open(kind="integer")}, rows=1000), as_source=True, seed=0
        )
    assert set(found.sample(20)["v"]) <= {"1", "2"}
