"""The front door: describe, fit, and frames of the caller's kind."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato
from sfumato.errors import ConfigError, SchemaError, SchemaWarning, SfumatoError

FRAME = pd.DataFrame({"age": [30, 40, 50, 60] * 500, "member": ["yes", "no"] * 1000})
AGE = {"age": {"kind": "integer", "lower": 0, "upper": 120}}


def test_describe_says_what_the_caller_says_and_nothing_of_the_records() -> None:
    other = pd.DataFrame({"age": [1.5, None], "member": [True, False]})
    assert sfumato.describe(FRAME, AGE, rows=500) == sfumato.describe(other, AGE, rows=500)
    assert sfumato.describe(FRAME).open == {"age": "unknown", "member": "unknown"}


def test_describe_completes_kinds_and_takes_a_unit() -> None:
    schema = sfumato.describe(FRAME, {**AGE, "member": "categorical"}, unit={"column": "age", "max_rows": 2})
    assert schema.open == {"member": "categorical"}
    assert schema.protects == {"name": "age", "max_rows": 2}
    with pytest.raises(SchemaError, match="no column 'nonsense'"):
        sfumato.describe(FRAME, {"nonsense": {"kind": "boolean"}})


def test_a_schema_shows_as_its_file(tmp_path) -> None:
    schema = sfumato.describe(FRAME, AGE, rows=500)
    (tmp_path / "schema.yaml").write_text(str(schema), encoding="utf-8")
    assert sfumato.OpenSchema.load(tmp_path / "schema.yaml") == schema


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (FRAME, pd.DataFrame),
        (pl.DataFrame(FRAME.to_dict("list")), pl.DataFrame),
        (pa.Table.from_pandas(FRAME), pa.Table),
        (pa.RecordBatch.from_pandas(FRAME), pa.Table),
    ],
    ids=["pandas", "polars", "table", "batch"],
)
def test_without_a_schema_all_is_bought_and_frames_come_back(data: object, kind: type) -> None:
    release = sfumato.fit(data, epsilon=8.0, delta=1e-6)
    assert release.certificate.n_public_source == "estimated"
    assert release.certificate.epsilon == pytest.approx(8.0, rel=1e-3)
    assert isinstance(release.sample(5), kind)


def test_a_mapping_is_a_schema_and_settings_are_one_too() -> None:
    document = {"rows": 2_000, "columns": {**AGE, "member": {"kind": "categorical", "categories": ["yes", "no"]}}}
    release = sfumato.fit(FRAME, document, epsilon=1.0, target="member", settings={"marginal_share": 0.6}, seed=3)
    method = sfumato.MaxEntropy(epsilon=1.0, marginal_share=0.6)
    again = sfumato.fit(FRAME, sfumato.Schema.from_dict(document), method=method, target="member", seed=3)
    assert all(np.array_equal(release.parameters[name], again.parameters[name]) for name in again.parameters)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Expected epsilon"),
        ({"epsilon": 1.0, "nonsense": 2}, "got 'nonsense'"),
        ({"epsilon": 1.0, "settings": {"nonsense": 2}}, "got nonsense="),
        ({"epsilon": 1.0, "method": "nonsense"}, "got 'nonsense'"),
        ({"epsilon": 1.0, "method": 3}, "Expected method to be a name"),
        ({"epsilon": 1.0, "method": sfumato.MaxEntropy(epsilon=1.0)}, "Expected epsilon in the method itself"),
        ({"epsilon": 1.0}, "Expected delta"),
    ],
)
def test_bad_calls_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        sfumato.fit(FRAME, **arguments)


def test_a_release_writes_its_page_and_scores_itself(tmp_path) -> None:
    document = {"rows": 2_000, "columns": {**AGE, "member": {"kind": "categorical", "categories": ["yes", "no"]}}}
    release = sfumato.fit(FRAME, document, epsilon=1.0, target="member")
    release.report(tmp_path / "page.html")
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")
    scores = release.evaluate(FRAME)
    assert scores["rows"] == {"real": 2_000, "synthetic": 2_000}
    assert scores["utility"] is not None
    assert scores["private"] is False


def test_describe_gives_back_what_is_all_declared() -> None:
    said = {**AGE, "member": {"kind": "categorical", "categories": ["yes", "no"]}}
    schema = sfumato.describe(FRAME, said, rows=2_000)
    assert schema == sfumato.Schema.from_dict({"rows": 2_000, "columns": said})
    objects = {name: schema.columns[name] for name in schema.columns}
    assert sfumato.describe(FRAME, objects, rows=2_000) == schema
    whole = sfumato.describe(FRAME, said, unit={"column": "age", "max_rows": 2}, target="member")
    assert whole.released == ("member",)


@pytest.mark.parametrize(
    "data",
    [
        {"persons": FRAME, "visits": FRAME},
        [FRAME, FRAME],
        (FRAME, FRAME),
        {"a": pl.DataFrame({"x": [1]}).lazy(), "b": pa.table({"x": [1]})},
        {"a": "persons.csv", "b": "visits.csv"},
        {"x": FRAME},
    ],
)
def test_several_tables_are_no_images(data: object) -> None:
    for ask in (sfumato.describe, lambda tables: sfumato.fit(tables, epsilon=1.0, delta=1e-6)):
        with pytest.raises(ConfigError, match="Expected one table") as caught:
            ask(data)
        assert "images" not in str(caught.value)


def test_columns_of_python_objects_are_pointed_to_a_frame() -> None:
    with pytest.raises(ConfigError, match="Make a data frame"):
        sfumato.describe({"age": [31, 46], "sex": ["f", "m"]})


def test_no_type_of_a_column_leaves_it_out_of_a_schema() -> None:
    ages = pa.array(np.arange(100) % 5)
    waits = pa.array([datetime.timedelta(seconds=i) for i in range(100)])
    table = pa.table({"age": ages, "wait": waits, "place": pa.array([{"x": 1.0}] * 100), "stops": [[1, 2]] * 100})
    schema = sfumato.describe(table)
    assert schema.released == ("age", "wait", "place", "stops")
    with pytest.warns(SchemaWarning, match="'place', 'stops'"):  # by noisy counts: a list is no single value
        release = sfumato.fit(table, schema, epsilon=20.0, delta=1e-6, seed=1)
    assert release.schema.released == ("age",)


@pytest.mark.parametrize(
    ("data", "way"),
    [
        (np.zeros(5, dtype=[("a", "i4"), ("b", "f8")]), "named fields. Make a data frame of them"),
        (pd.Series([1, 2, 3], name="a"), "series.to_frame()"),
    ],
)
def test_what_is_no_table_but_could_be_one(data: object, way: str) -> None:
    with pytest.raises(SfumatoError) as raised:
        sfumato.fit(data, epsilon=1.0, delta=1e-6)
    assert way in str(raised.value)
