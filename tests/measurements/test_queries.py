"""Queries: what they sum over records, and there and back as JSON and arrays, which may be a stranger's."""

import dataclasses
import json
import time
from itertools import combinations

import numpy as np
import pytest

from sfumato.columns import Categorical, Continuous
from sfumato.errors import ReleaseError
from sfumato.inference.noisy_totals import CountTable, Products, tables_of
from sfumato.measurements import CellEntries, Cells, MarginalQuery, Measurement, MomentBits, MomentQuery
from sfumato.measurements.cells import BaseCells
from sfumato.measurements.queries import MOST_AXES, UnitNorm, are_too_large, query_fault
from sfumato.measurements.query_form import QueryArrays, read_query, write_query
from sfumato.privacy.reading import Place
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

KINDS = {
    "x": Continuous(lower=0, upper=10, nullable=True), "sex": Categorical(categories=("f", "m"), other="m"),
    "grade": Categorical(categories=("a", "b", "c"), other="c"),
}  # fmt: skip
GRID = Grid.of(Schema(columns=KINDS, rows=100), numeric_cells=6)
X, SEX, GRADE = map(Cells.of, GRID.columns)
COARSE = dataclasses.replace(X, groups=np.array([0, 0, 0, 1, 1, 1, 1, 2])[: X.base])
SOME = dataclasses.replace(X, groups=np.array([-1, 0, -1, 1, -1, -1, -1, -1])[: X.base])
LAST = X.steps.last
ONE = Cells.of(GRID.columns[0].cut(np.array([0, 5, 6, LAST + 1])), np.array([-1, 0, -1, -1]))
N = 500


def rows():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(N) < 0.1, np.nan, rng.random(N))
    return {"x": x, "sex": rng.integers(0, 2, N), "grade": rng.integers(0, 3, N)}


def moments(**options):
    entries = [CellEntries(SEX, np.array([[3], [-4]])), CellEntries(GRADE, np.arange(6).reshape(3, 2))]
    return MomentQuery(tuple(entries), 2.0, MomentBits(4, 3), **options)


QUERIES = {
    "one column": MarginalQuery(((X,),)),
    "columns side by side, by class": MarginalQuery(((COARSE,), (GRADE,)), (SEX,)),
    "pairs": MarginalQuery(tuple(combinations((X, SEX, GRADE, Cells.all_rows()), 2))),
    "weights": MarginalQuery(((SEX,),), weight="x"),
    "some cells": MarginalQuery(((SOME,), (GRADE,))),
    "moments": moments(),
    "moments by class": moments(by=(GRADE,), together=True),
    "units": MarginalQuery(((SEX,), (GRADE, SEX)), norm=UnitNorm(2048, (729, 100), 36)),
}


def stored(query):
    arrays = {}
    return json.loads(json.dumps(write_query(query, arrays))), arrays


def test_tables_are_those_of_the_records():
    data = rows()
    query = QUERIES["columns side by side, by class"]
    total = np.zeros(query.shape)
    query.add(total, BaseCells(data))
    coarse, grade = query.split(total)
    cells = COARSE.grouped(GRID.columns[0].cells(data["x"]))
    for k in range(2):
        mine = data["sex"] == k
        assert (coarse[k] == np.bincount(cells[mine], minlength=COARSE.size)).all()
        assert (grade[k] == np.bincount(data["grade"][mine], minlength=3)).all()
    pairs = QUERIES["pairs"]
    total = np.zeros(pairs.shape)
    pairs.add(total, BaseCells(data))
    tables = pairs.split(total)
    assert [table.shape for table in tables] == [(X.size, 2), (X.size, 3), (X.size, 1), (2, 3), (2, 1), (3, 1)]
    assert tables[3][1, 2] == ((data["sex"] == 1) & (data["grade"] == 2)).sum()
    assert all(table.sum() == N for table in tables)


@pytest.mark.parametrize("counts", [None, np.arange(N, dtype=float)], ids=["once", "weighed"])
def test_of_some_cells_the_records_in_no_other_are_counted(counts):
    query, data = QUERIES["some cells"], rows()
    total = np.zeros(query.shape)
    query.add(total, BaseCells(data), counts)
    own = np.bincount(SOME.alone().base_cells(data), counts, SOME.base)
    some, grades = query.split(total)
    assert some.tolist() == [own[1], own[3]]
    assert grades.tolist() == np.bincount(data["grade"], counts).tolist()
    (table, _) = CountTable.all_of(Measurement("some", total, 0.0, query=query))
    assert table.partial
    functions = table.totals(BaseCells(data), N)
    assert functions.totals.tolist() == [own[1], own[3]]
    assert np.asarray(functions.functions.sum(axis=0)).tolist() == np.bincount(SOME.base_cells(data))[[1, 3]].tolist()


def test_records_are_clipped_to_the_norm():
    query, cells = moments(), [rows()["sex"], rows()["grade"]]
    vectors = np.concatenate([e.whole[c] for e, c in zip(query.features, cells, strict=True)], axis=1) * query.unit
    squares = (vectors**2).sum(axis=1) * query.clipping(cells) * 2.0**-query.bits.weights
    assert squares.max() <= query.clip_norm**2
    assert (query.clipping(cells)[(vectors**2).sum(axis=1) <= query.clip_norm**2] == 2**query.bits.weights).all()


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_there_and_back(query):
    document, arrays = stored(query)
    again = read_query(document, Place("manifest"), QueryArrays(arrays))
    assert stored(again)[0] == document
    assert again.shape == query.shape
    assert all(one.same(other) for one, other in zip(again.cells, query.cells, strict=True))
    assert again.weight == query.weight
    assert getattr(again, "norm", None) == getattr(query, "norm", None)
    assert getattr(again, "together", None) == getattr(query, "together", None)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "means"}, {"tables": []}, {"tables": [[]]}, {"tables": [[{"column": "x", "base": 0}]]},
        {"tables": [[{"column": "x", "base": 3, "edges": "queries.9"}]]}, {"weight": 3}, {"by": {}},
    ],
)  # fmt: skip
def test_documents_of_strangers_are_read_with_suspicion(change):
    document, arrays = stored(QUERIES["one column"])
    with pytest.raises(ReleaseError, match="well-formed manifest"):
        read_query({**document, **change}, Place("manifest"), QueryArrays(arrays))


def test_arrays_of_strangers_are_read_with_suspicion():
    document, arrays = stored(QUERIES["columns side by side, by class"])
    for name, array in arrays.items():
        for wrong in (array + 1, array.astype(float), array[:-1], array[:, None], array * 2**60):
            with pytest.raises(ReleaseError, match="well-formed manifest"):
                read_query(document, Place("manifest"), QueryArrays({**arrays, name: wrong}))
    document, arrays = stored(moments())
    whole = document["features"][0]["whole"]
    for wrong in (arrays[whole][:-1], arrays[whole] * 2**30, np.full_like(arrays[whole], -(2**63))):
        with pytest.raises(ReleaseError, match="well-formed manifest"):
            read_query(document, Place("manifest"), QueryArrays({**arrays, whole: wrong}))
    for change in ({"clip_norm": 0}, {"entry_bits": 40}, {"features": []}):
        with pytest.raises(ReleaseError, match="well-formed manifest"):
            read_query({**document, **change}, Place("manifest"), QueryArrays(arrays))


def test_a_query_that_does_not_fit_is_said_in_a_sentence():
    def fault(query, value=None, kinds=KINDS, symmetric=False, weight=""):
        value = np.zeros(query.shape) if value is None else value
        return Measurement("m", value, 1.0, symmetric, query=query).fault(kinds, weight)

    assert fault(QUERIES["pairs"]) is None
    assert fault(moments(), symmetric=True) is None
    assert "symmetric" in fault(moments())
    assert "shape (2,) where its query has" in fault(QUERIES["one column"], np.zeros(2))
    assert "'grade', which is no column" in fault(QUERIES["pairs"], kinds={k: KINDS[k] for k in ("x", "sex")})
    other = {**KINDS, "x": Continuous(lower=0, upper=10)}
    assert "other cells than the schema's column" in fault(QUERIES["one column"], kinds=other)
    assert "counts records by 'w', which is not the schema's weight" in fault(MarginalQuery(((SEX,),), weight="w"))
    assert "counts records by 'x'" in fault(QUERIES["weights"])
    assert "counts records by 'x'" in fault(QUERIES["weights"], weight="grade")
    assert fault(QUERIES["weights"], weight="x") is None
    assert "counts records by 'x'" in fault(moments(weight="x"), symmetric=True)
    assert fault(QUERIES["one column"], weight="grade") is None  # each record once, beside weights


def test_only_what_counts_as_rows_do_answers():
    """Counts of rows are no sums of weights, and the other way round."""
    once, weighted = (Measurement("m", np.zeros(2), 1.0, query=MarginalQuery(((SEX,),), weight=w)) for w in ("", "x"))
    assert len(CountTable.all_of(once)) == len(CountTable.all_of(weighted, "x")) == 1
    assert CountTable.all_of(weighted) == CountTable.all_of(once, "x") == CountTable.all_of(weighted, "grade") == []
    sums = [Measurement("m", np.zeros((3, 3)), 1.0, True, query=moments(weight=w)) for w in ("", "x")]
    assert [Products.of(sums, w).query.weight for w in ("", "x")] == ["", "x"]
    assert Products.of(sums, "grade") is None


def fault_of(query):
    return Measurement("m", np.zeros(1), 1.0, query=query).fault(KINDS)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        (MarginalQuery(((SEX, GRADE, SEX),)), "a table in which 'sex' stands twice"),
        (MarginalQuery(((GRADE,), (SEX,)), by=(SEX,)), "a table in which 'sex' stands twice"),
        (MarginalQuery(((X, COARSE),)), "a table in which 'x' stands twice"),
        (MarginalQuery(((Cells.all_rows(),) * (MOST_AXES + 1),)), f"more than {MOST_AXES} columns"),
        (MarginalQuery(((SEX,),), by=(Cells.all_rows(),) * MOST_AXES), f"more than {MOST_AXES} columns"),
        (MomentQuery(moments().features * 2, 1.0), "features of 'sex' twice"),
        (MarginalQuery(((SOME, SEX),)), "no single values of a number"),
        (MarginalQuery(((SOME,),), by=(SEX,)), "no single values of a number"),
        (MarginalQuery(((SEX,),), by=(SOME,)), "no single values of a number"),
        (MarginalQuery(((SOME,),)), "no single values of a number"),
        (MarginalQuery(((dataclasses.replace(SEX, groups=np.array([-1, 0])),),)), "no single values of a number"),
        (MarginalQuery(((ONE,), (ONE,))), "no single values of a number, each once"),
        (MomentQuery((CellEntries(SOME, np.ones((2, 1), int)),), 1.0), "features of some cells"),
    ],
)
def test_tables_that_nobody_can_bring_to_other_columns(query, problem):
    assert problem in fault_of(query)


def test_sizes_do_not_wrap_around():
    """2^32 by 2^32 cells are 2^64, which 64 bits take for none."""
    wide = Cells("a", 1 << 32)
    assert MarginalQuery(((wide, wide), (SEX,))).shape == ((1 << 64) + 2,)
    edges = np.array([0, 2**63 - 1, -(2**63), -1, X.edges[-1]])
    document, arrays = stored(QUERIES["one column"])
    cells = {**document["tables"][0][0], "base": 5}
    wrapped = QueryArrays({**arrays, cells["edges"]: edges})
    with pytest.raises(ReleaseError, match="well-formed manifest"):
        read_query({**document, "tables": [[cells]]}, Place("manifest"), wrapped)


def test_one_array_that_many_cells_name_is_checked_once():
    """20,000 tables of half a million cells each are read in the time of one."""
    base, n = 1 << 19, 20_000
    arrays = {"queries.0": np.arange(base)}
    tables = [[{"column": f"c{i}", "base": base, "groups": "queries.0"}] for i in range(n)]
    start = time.process_time()
    query = read_query({"kind": "marginals", "tables": tables}, Place("manifest"), QueryArrays(arrays))
    assert len(query.tables) == n
    assert query_fault(query, KINDS, "") is not None
    assert time.process_time() - start < 5.0


def test_a_column_is_asked_at_its_finest_and_its_coarsest_cells():
    """However many cuts of it somebody stored; of several columns at the coarsest alone."""
    cells = Cells("g", 40)
    cuts = [cells, *(dataclasses.replace(cells, groups=np.arange(40) * k // 40) for k in range(2, 40))]
    tables = [CountTable((cut,), np.ones(cut.size), 1.0) for cut in cuts]
    same_size = CountTable((dataclasses.replace(cells, groups=np.arange(40) % 2),), np.ones(2), 0.5)
    other = CountTable((SEX,), np.ones(2), 1.0)
    asked = tables_of([*tables, same_size, other], {"g"})
    assert sorted(table.value.size for table in asked) == [1, 2, 40]
    assert next(table for table in asked if table.value.size == 2).variance == 0.5
    pairs = [CountTable((cut, SEX), np.ones((cut.size, 2)), 1.0) for cut in cuts]
    assert sorted(table.value.size for table in tables_of([*pairs, *tables], {"g", "sex"})) == [2, 4]
    assert [table.value.size for table in tables_of([*tables, other], ())] == [1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.bool_])
def test_numbers_of_any_storage_are_compared_with_the_largest(dtype):
    values = np.ones(3, dtype=dtype)
    assert not are_too_large(values)
    if np.dtype(dtype).kind == "f":
        assert are_too_large(np.array([1.0, np.inf], dtype=dtype))
    assert are_too_large(np.array([1e101]))
