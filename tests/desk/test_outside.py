"""Which cells a schema has no place for."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Identifier, Integer
from sfumato.desk.drafting import draft_schema
from sfumato.desk.validation import CLAMPED, INSIDE, NOWHERE, outside_marks, validate
from sfumato.io.sources import open_source
from sfumato.schema.schema import Schema

LABELS = ("a", "b")
CASES = [
    (Categorical(categories=LABELS), ["a", "b", "c", None], [INSIDE, INSIDE, NOWHERE, NOWHERE]),
    (Categorical(categories=LABELS, nullable=True), ["a", "c", None, "?"], [INSIDE, NOWHERE, INSIDE, INSIDE]),
    (Categorical(categories=LABELS, other="rest"), ["a", "c", None], [INSIDE, INSIDE, INSIDE]),
    (Boolean(), [True, None], [INSIDE, NOWHERE]),
    (Integer(lower=0, upper=9), [0, 9, 10, -1, None], [INSIDE, INSIDE, CLAMPED, CLAMPED, NOWHERE]),
    (Integer(lower=0, upper=9, nullable=True), ["3", "x", "?", "12"], [INSIDE, NOWHERE, INSIDE, CLAMPED]),
    (Continuous(lower=0, upper=1), [0.5, 1.0, 1.001, float("inf"), float("nan")], [0, 0, CLAMPED, CLAMPED, NOWHERE]),
    (DateTime(lower="2020-01-01", upper="2020-12-31"), ["2020-05-01", "2021-01-01", "soon"], [0, CLAMPED, NOWHERE]),
]


@pytest.mark.parametrize(("kind", "cells", "expected"), CASES)
def test_by_hand(kind, cells, expected):
    column = pa.array(cells)
    assert outside_marks(kind, column, missing=("?",)).tolist() == expected
    chunked = pa.chunked_array([column[:1], column[1:]])
    assert outside_marks(kind, chunked, missing=("?",)).tolist() == expected
    assert outside_marks(kind, column[:0], missing=()).size == 0


@pytest.mark.parametrize(("kind", "cells", "expected"), CASES)
def test_as_many_as_validate_finds(kind, cells, expected):
    """Beside those that have a place after all: missing ones, and what goes to `other`."""
    schema = Schema(columns={"x": kind}, missing=("?",))
    found = validate(open_source(pd.DataFrame({"x": pd.Series(cells)})), schema)
    placed = {"missing", "unknown"} if getattr(kind, "other", None) else {"missing"} if kind.nullable else set()
    assert sum(f.count for f in found if f.problem not in placed) == np.count_nonzero(expected)


def test_a_bound_in_a_narrow_float_is_inside():
    kind = Continuous(lower=-0.1, upper=0.1)
    for storage in (np.float16, np.float32):
        column = pa.array(np.array([-0.1, 0.1, 0.11], dtype=storage))
        assert outside_marks(kind, column, missing=()).tolist() == [INSIDE, INSIDE, CLAMPED]


def test_cells_that_arrow_refuses_stand_alone():
    """The same cells that have no codes of their own have no place."""
    column = pa.array([["a"], None, ["b"]])
    kind = Categorical(categories=LABELS, nullable=True)
    marks = outside_marks(kind, column, missing=())
    assert len(marks) == len(kind.code(column, missing=())) == 3
    assert marks[0] == marks[2] == NOWHERE


def test_what_int64_cannot_hold_is_beyond_any_bound():
    column = pa.array([0, 2**63 - 1, 2**63, 2**64 - 1, None], pa.uint64())
    kind = Integer(lower=0, upper=2**62, nullable=True)
    assert outside_marks(kind, column, missing=()).tolist() == [INSIDE, CLAMPED, CLAMPED, CLAMPED, INSIDE]
    whole = Integer(lower=2**62, upper=2**63 - 1, nullable=True)
    assert outside_marks(whole, column, missing=()).tolist() == [CLAMPED, INSIDE, CLAMPED, CLAMPED, INSIDE]
    numbers = pa.array([2**63 + i for i in range(30)], pa.uint64())
    found = draft_schema(open_source(pa.table({"x": numbers, "y": [True] * 30})))
    assert isinstance(found.schema.columns["x"], Identifier)
    beyond = pa.DictionaryArray.from_arrays(pa.array([0, 5, 1]), pa.array(list(LABELS)), safe=False)
    for other, refused in ((None, NOWHERE), ("rest", INSIDE)):
        kind = Categorical(categories=LABELS, other=other)
        assert outside_marks(kind, beyond, missing=()).tolist() == [INSIDE, refused, INSIDE]
