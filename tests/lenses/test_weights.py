"""Weights of records: which cell counts how much, and what `validate` tells."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import Schema, Weight
from sfumato.columns import Boolean, Continuous, Identifier, Integer
from sfumato.desk.validation import validate
from sfumato.errors import SchemaError
from sfumato.io.sources import open_source
from sfumato.records.private import PrivateData

CELLS = {"1": 0.1, "10": 1.0, "5.5": 0.55, "11": 1.0, "1e300": 1.0, "inf": 1.0, "0": 0.0, "-1": 0.0, "-inf": 0.0,
         "-0": 0.0, "nan": 0.0, "": 0.0, "x": 0.0, "NA": 0.0, "0x5": 0.0}  # fmt: skip


def weights(cells, upper=10.0, **options):
    schema = Schema(columns={"w": Continuous(lower=0, upper=upper), "m": Boolean()}, weight="w", **options)
    table = pa.table({"w": cells, "m": [True] * len(cells)})
    return np.concatenate([rows["w"] for rows in PrivateData(open_source(table, chunk_rows=3), schema).coded()])


def test_what_a_cell_counts():
    np.testing.assert_allclose(weights(list(CELLS)), list(CELLS.values()), atol=1e-15)


def test_numbers_as_they_are_stored():
    np.testing.assert_array_equal(weights([5.0, None, np.nan, np.inf, -np.inf, -3.0, 1e300]), [0.5, 0, 0, 1, 0, 0, 1])
    np.testing.assert_array_equal(weights(pa.array([5, None, 2**64 - 1], pa.uint64())), [0.5, 0, 1])


def test_a_cell_counts_by_itself():
    """No weight is scaled by the others: the map is local."""
    cells = list(CELLS)
    together = weights(cells)
    for i, cell in enumerate(cells):
        assert weights([cell]) == together[i]


def test_decimal_commas():
    document = {
        "reader": {"decimal": ","},
        "weight": {"column": "w", "upper": 10},
        "columns": {"w": "identifier", "m": "boolean"},
    }
    table = pa.table({"w": ["2,5"], "m": [True]})
    [rows] = PrivateData(open_source(table), Schema.from_dict(document)).coded()
    assert rows["w"] == 0.25


def test_a_table_without_the_column_is_refused():
    schema = Schema(columns={"w": Continuous(lower=0, upper=2), "m": Boolean()}, weight="w")
    with pytest.raises(SchemaError, match="no column 'w'"):
        PrivateData(open_source(pd.DataFrame({"m": [True]})), schema)
    with pytest.raises(SchemaError, match="'w'"):
        PrivateData(open_source(pa.table({"m": [True], "w": [[1.0]]})), schema)


def test_validate_counts_weights_that_count_otherwise():
    schema = Schema(columns={"w": Integer(lower=1, upper=10), "m": Boolean()}, weight="w")
    table = pa.table({"w": ["1", "0", "-2", "-3", "11", "", "x", "10", "12", "13", None], "m": [True] * 11})
    found = {f.problem: f for f in validate(open_source(table, chunk_rows=4), schema)}
    assert {problem: f.count for problem, f in found.items()} == {
        "missing": 2, "negative": 2, "clamped": 3, "unparseable": 1,
    }  # fmt: skip
    assert found["negative"].becomes == found["missing"].becomes == "0: the row counts for nothing"
    assert found["clamped"].becomes == "the bound"
    assert found["negative"].examples == ["'-2'", "'-3'"]


def test_validate_names_a_type_that_a_fit_refuses():
    schema = Schema(columns={"w": Identifier(), "m": Boolean()}, weight=Weight(column="w", upper=2))
    table = pa.table({"w": pa.array([0, 1], pa.timestamp("s")), "m": [True, False]})
    with pytest.raises(SchemaError, match="'w'"):
        PrivateData(open_source(table), schema)
    assert ("w", "storage") in {(f.column, f.problem) for f in validate(open_source(table), schema)}
