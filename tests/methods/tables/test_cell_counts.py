"""Counts of runs and of cells: those of the records, and runs that keep 0 and missing apart."""

import pickle

import numpy as np
import pytest

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Integer
from sfumato.maths.constants import SIZES
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.atoms import endings_of
from sfumato.methods.tables.cell_counts import (
    CELL_STEP,
    ENDING_STEP,
    RUN_STEP,
    VALUE_STEP,
    CellCounts,
    counted_values,
    public_runs,
)
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

SCHEMA = Schema(
    columns={
        "age": Integer(lower=0, upper=99, nullable=True),
        "city": Categorical(categories=("a", "b", "c")),
        "paid": Continuous(lower=-100, upper=1000),
        "member": Boolean(),
    },
    rows=300,
)


def grid_of(cells: int = 80, ends: bool = False) -> Grid:
    return Grid.of(SCHEMA, numeric_cells=cells, ends=ends)


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.random(n)
    age[rng.random(n) < 0.2] = np.nan
    paid = np.where(rng.random(n) < 0.5, 100 / 1100, rng.random(n))
    return {"age": age, "city": rng.integers(0, 3, n), "paid": paid, "member": rng.integers(0, 2, n)}


def total_of(statistic, *chunks):
    total = statistic.zero()
    for chunk in chunks:
        statistic.add(total, chunk)
    return total * statistic.step


def test_counts_are_those_of_the_records():
    statistic, data = CellCounts(grid_of()), rows()
    of_runs, of_cells = statistic.split(total_of(statistic, data))
    assert len(of_runs) == len(of_cells) == 4
    for column, runs, counts, cells in zip(statistic.grid.columns, statistic.runs, of_runs, of_cells, strict=True):
        places = column.cells(data[column.name])
        np.testing.assert_allclose(cells, np.bincount(places, minlength=column.n_cells), atol=1e-9)
        np.testing.assert_allclose(counts, np.bincount(runs[places], minlength=runs[-1] + 1), atol=1e-9)


def test_chunks_add_up():
    statistic, data = CellCounts(grid_of()), rows()
    parts = [{name: values[half] for name, values in data.items()} for half in (slice(0, 100), slice(100, None))]
    np.testing.assert_array_equal(total_of(statistic, *parts), total_of(statistic, data))


def test_a_records_norm_is_the_bound():
    statistic = CellCounts(grid_of())
    one = {name: values[:1] for name, values in rows().items()}
    assert np.linalg.norm(total_of(statistic, one)) == pytest.approx(statistic.norm_bound, rel=1e-12)
    squares = 4 * (RUN_STEP**2 + CELL_STEP**2) + VALUE_STEP**2 + ENDING_STEP**2
    assert statistic.norm_bound**2 == pytest.approx(squares, rel=1e-12)
    assert statistic.replace_bound == pytest.approx(np.sqrt(2) * statistic.norm_bound)
    assert 0.99 < RUN_STEP**2 + CELL_STEP**2 < 1.01


@pytest.mark.parametrize(("resolution", "endings"), [("week", 1), ("day", 2), ("hour", 3)])
def test_a_records_norm_holds_all_endings_of_its_dates(resolution, endings):
    kind = DateTime(lower="2019-01-01", upper="2020-12-31", resolution=resolution, nullable=True)
    statistic = CellCounts(Grid.of(Schema(columns={"x": kind}, rows=9), numeric_cells=32))
    assert statistic.valued == [0]
    for code in (0.0, 0.31, 1.0, np.nan):
        norm = np.linalg.norm(total_of(statistic, {"x": np.array([code])}))
        assert norm == pytest.approx(statistic.norm_bound, rel=1e-12)
    squares = RUN_STEP**2 + CELL_STEP**2 + VALUE_STEP**2 + endings * ENDING_STEP**2
    assert statistic.norm_bound**2 == pytest.approx(squares, rel=1e-12)


def test_values_and_endings_are_those_of_the_records():
    statistic, data = CellCounts(grid_of()), rows()
    assert statistic.valued == [0]
    age = np.rint(99 * data["age"][~np.isnan(data["age"])]).astype(int)
    found = statistic.values(Noisy(total_of(statistic, data), 2.0))
    assert found.keys() == {0}
    np.testing.assert_allclose(found[0].counts, np.bincount(age, minlength=100), atol=1e-9)
    [endings], [counted] = endings_of(SCHEMA.columns["age"]), found[0].endings
    np.testing.assert_allclose(counted, np.bincount(endings[age], minlength=endings.max() + 1), atol=1e-9)
    assert (found[0].std, found[0].endings_std) == (2 / VALUE_STEP, 2 / ENDING_STEP)


def test_a_statistic_that_was_used_travels_without_what_it_looked_up():
    statistic = CellCounts(Grid.of(Schema(columns={"x": Integer(lower=0, upper=100_000)}, rows=9), numeric_cells=32))
    fresh = len(pickle.dumps(statistic))
    assert statistic.zero().size > 100_000
    assert len(pickle.dumps(statistic)) == fresh < 20_000
    again = pickle.loads(pickle.dumps(statistic))
    np.testing.assert_array_equal(again.step, statistic.step)


def test_values_are_counted_where_cells_hold_several_and_memory_allows():
    few, many = Integer(lower=0, upper=31), Integer(lower=0, upper=SIZES.most_values - 1)
    more, cents = Integer(lower=0, upper=SIZES.most_values), Continuous(lower=0, upper=1)
    label = Categorical(categories=tuple(map(str, range(40))))
    kinds = [few, many, more, label, cents, *[many] * (SIZES.all_values // SIZES.most_values)]
    counted = list(counted_values((kind, 32) for kind in kinds))
    assert counted == [False, True, False, False, False, *[True] * (len(kinds) - 6), False]
    assert list(counted_values([(few, 31), (few, 32)])) == [True, False]


def test_runs_are_even_and_keep_zero_and_missing_apart():
    age, city, paid, member = grid_of(200).columns
    for column in (age, paid):
        runs = public_runs(column)
        assert runs[0] == 0
        assert (np.diff(runs) >= 0).all()
        assert (np.diff(runs) <= 1).all()
        assert runs[-1] + 1 <= SIZES.public_runs + 3
        assert all((runs == runs[cell]).sum() == 1 for cell in column.alone)
        assert np.bincount(runs).max() <= -(-column.n_cells // SIZES.public_runs)
    assert (public_runs(age) == public_runs(age)[-1]).sum() == 1
    np.testing.assert_array_equal(public_runs(city), np.arange(4))  # the last one of no label
    np.testing.assert_array_equal(public_runs(member), np.arange(3))


def test_bounds_with_cells_of_their_own_are_runs():
    paid = grid_of(ends=True).columns[2]
    runs = public_runs(paid)
    np.testing.assert_array_equal(np.bincount(runs)[[0, -1]], 1)
    assert list(paid.alone.values()) == [0.0, 1.0, paid.kind.zero_code]
    assert all((runs == runs[cell]).sum() == 1 for cell in paid.alone)
    assert runs[-1] + 1 <= SIZES.public_runs + 4


@pytest.mark.parametrize("lower", [0, 3])
@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize("span", [0, 1, 5, 40])
def test_few_cells_are_runs_of_their_own(lower, span, nullable):
    schema = Schema(columns={"x": Integer(lower=lower, upper=lower + span, nullable=nullable)}, rows=10)
    column = Grid.of(schema, numeric_cells=64).columns[0]
    runs = public_runs(column)
    assert runs.size == column.n_cells
    if span < SIZES.public_runs:
        np.testing.assert_array_equal(runs, np.arange(column.n_cells))
    np.testing.assert_array_equal(np.unique(runs), np.arange(runs[-1] + 1))
