"""The grid's law: a cell for any code, and a code of that cell for any cell."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Identifier, Image, Integer, Ordinal
from sfumato.errors import ConfigError, ReleaseError
from sfumato.methods.tables.cell_counts import public_runs
from sfumato.schema.grid import MOST_NUMERIC_CELLS, ColumnGrid, Grid
from sfumato.schema.schema import Schema

LEVELS = [
    Categorical(categories=("a", "b"), other="rest", nullable=True),
    Ordinal(categories=("low",)),
    Boolean(),
]
NUMBERS = [
    Integer(lower=0, upper=3),
    Integer(lower=-7, upper=1000, nullable=True),
    Integer(lower=5, upper=5),
    Integer(lower=5, upper=5, nullable=True),
    Integer(lower=0, upper=2**51 - 2),
    Integer(lower=-1, upper=2**52 - 3),
    Integer(lower=-(2**61), upper=2**61),
    Integer(lower=1 - 3 * 2**59, upper=2**60 + 12345, nullable=True),
    Continuous(lower=-1000.0, upper=5000.0),
    Continuous(lower=0.0, upper=1e-300),
    Continuous(lower=-1e308, upper=7e307),
    Continuous(lower=2.5, upper=2.5, nullable=True),
    Continuous(lower=0.0, upper=1.0, resolution=0.1),
    Continuous(lower=0.03, upper=0.27, resolution=0.1),
    Continuous(lower=0.5, upper=99.5, resolution=1),
    Continuous(lower=-0.25, upper=0.3, resolution=0.01, nullable=True),
    Continuous(lower=0, upper=2.0**52, resolution=1.0),
    DateTime(lower="2000-01-01", upper="2000-01-01"),
    DateTime(lower="0001-01-01", upper="9999-12-31", resolution="microsecond", nullable=True),
    DateTime(lower="1999-12-31", upper="2024-02-29", resolution="day"),
]


def column(kind, most=16):
    return Grid.of(Schema(columns={"c": kind}), numeric_cells=most).columns[0]


def rng(seed=0):
    return np.random.default_rng(seed)


@given(
    st.sampled_from(NUMBERS),
    st.integers(2, 300),
    st.lists(st.floats(0, 1) | st.just(np.nan), min_size=1, max_size=40),
)
@settings(deadline=None)
def test_every_code_has_a_cell(kind, most, codes):
    grid = column(kind, most)
    cells = grid.cells(np.array(codes))
    assert cells.dtype == np.int64
    assert ((cells >= 0) & (cells < grid.n_cells)).all()
    if kind.nullable:
        np.testing.assert_array_equal(cells == grid.n_cells - 1, np.isnan(codes))
    # the map keeps the order
    order = np.argsort(codes)
    present = ~np.isnan(np.array(codes)[order])
    assert (np.diff(cells[order][present]) >= 0).all()


@pytest.mark.parametrize("most", [2, 3, 16, 128, MOST_NUMERIC_CELLS])
@pytest.mark.parametrize("kind", [*LEVELS, *NUMBERS], ids=str)
def test_a_cells_codes_are_in_the_cell(kind, most):
    grid = column(kind, most)
    cells = np.repeat(np.arange(grid.n_cells), max(4, 2000 // grid.n_cells))
    codes = grid.codes(cells, rng())
    np.testing.assert_array_equal(grid.cells(codes), cells)
    inside = codes[~np.isnan(codes)] if grid.numeric else codes
    assert (inside >= 0).all()
    assert (inside <= (1 if grid.numeric else grid.n_cells - 1)).all()


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_at_most_the_cells_that_were_asked_for_and_those_of_zero_and_missing(kind):
    grid = column(kind, 16)
    assert 1 + kind.nullable <= grid.n_cells <= 18 + kind.nullable
    assert (np.diff(grid.edges) > 0).all()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Integer(lower=-3, upper=9), range(-3, 10)),
        (Integer(lower=1, upper=16), range(1, 17)),
        (Continuous(lower=0, upper=1, resolution=0.1), [i / 10 for i in range(11)]),
        (Continuous(lower=0.03, upper=0.27, resolution=0.1), [0.1, 0.2]),
        (Continuous(lower=0.05, upper=1.05, resolution=0.1), [i / 10 for i in range(1, 11)]),
        (Continuous(lower=-0.5, upper=9.5, resolution=1), range(10)),
        (Continuous(lower=0.12, upper=0.19, resolution=0.15), [0.15]),
        (Continuous(lower=7, upper=7), [7]),
        (Boolean(), [False, True]),
    ],
    ids=str,
)
def test_few_values_have_one_cell_each_and_come_back(kind, values):
    grid = column(kind, 16)
    stored = pa.array(list(values))
    cells = grid.cells(kind.code(stored, missing=()))
    np.testing.assert_array_equal(cells, np.arange(len(stored)))
    assert grid.shown == len(stored)
    assert kind.decode(grid.codes(cells, rng()), stored.type).equals(stored)


@pytest.mark.parametrize("most", [2, 7, 16, 100])
@pytest.mark.parametrize(
    "kind",
    [
        Integer(lower=0, upper=10_000),
        Integer(lower=-(2**61) + 1, upper=2**60),
        Integer(lower=-5000, upper=0, nullable=True),
        Continuous(lower=-1000, upper=5000),
        Continuous(lower=0, upper=1e9),
        Continuous(lower=-3.3, upper=7.7),
        Continuous(lower=-20.2, upper=30, resolution=0.01),
    ],
    ids=str,
)
def test_zero_has_a_cell_of_its_own_and_comes_back_as_zero(kind, most):
    grid = column(kind, most)
    (code,) = kind.code(pa.array([0.0]), missing=())
    cell = grid.cells(np.array([code]))
    cells = np.repeat(cell, 100)
    values = kind.decode(grid.codes(cells, rng()), pa.float64()).to_numpy()
    assert np.abs(values).max() <= 2**10 * isinstance(kind, Integer) * (kind.lower < -(2**53))
    near = (kind.upper - kind.lower) / 1000
    around = np.array([v for v in (-near, near) if kind.lower <= v <= kind.upper])
    beside = grid.cells(kind.code(pa.array(around), missing=()))
    assert not np.isin(cell, beside).any()


@pytest.mark.parametrize("kind", [Integer(lower=1, upper=9999), NUMBERS[-1]], ids=str)
def test_without_zero_there_is_no_cell_for_it(kind):
    assert column(kind, 16).n_cells == 16


def test_cells_are_filled_evenly():
    grid = column(Integer(lower=1, upper=1000), 10)
    codes = grid.codes(np.full(20_000, 3), rng())
    values = np.rint(codes * 999).astype(int) + 1
    assert set(values) == set(range(301, 401))
    counts = np.bincount(values - 301, minlength=100)
    assert np.abs(counts - 200).max() < 6 * np.sqrt(200)


def test_a_hundred_thousand_categories():
    kind = Categorical(categories=tuple(f"c{i}" for i in range(100_000)), nullable=True)
    grid = column(kind)
    assert grid.n_cells == 100_001
    codes = np.array([0, 99_999, 100_000], dtype=np.int32)
    np.testing.assert_array_equal(grid.codes(grid.cells(codes), rng()), codes)


def test_a_grid_maps_whole_rows():
    columns = {"id": Identifier(), "a": LEVELS[0], "n": NUMBERS[1], "t": NUMBERS[-1]}
    grid = Grid.of(Schema(columns=columns), numeric_cells=16)
    assert [c.name for c in grid.columns] == ["a", "n", "t"]
    n = 500
    rows = {
        "a": rng().integers(0, 4, n).astype(np.int32),
        "n": np.where(rng(1).random(n) < 0.2, np.nan, rng(2).random(n)),
        "t": rng(3).random(n),
    }
    cells = grid.cells(rows)
    assert cells.shape == (n, 3)
    back = grid.rows(cells, rng(4))
    assert list(back) == ["a", "n", "t"]
    np.testing.assert_array_equal(grid.cells(back), cells)
    np.testing.assert_array_equal(grid.rows(cells, rng(4))["n"], back["n"])


@pytest.mark.parametrize("most", [1, 0, -3, MOST_NUMERIC_CELLS + 1, 10**9, 2.5, True, "8"])
def test_a_number_of_cells_out_of_range_is_refused(most):
    with pytest.raises(ConfigError, match="numeric_cells"):
        Grid.of(Schema(columns={"c": Boolean()}), numeric_cells=most)


def test_images_are_refused():
    with pytest.raises(ConfigError, match="'x' of kind image"):
        Grid.of(Schema(columns={"x": Image(shape=(2, 2))}), numeric_cells=8)


def test_widening_cells_are_finest_around_zero_and_only_there():
    column = ColumnGrid.numbers("c", Continuous(lower=-50, upper=50), 64)
    widths = np.diff(column.edges)
    middle = np.searchsorted(column.edges, column.edges[-1] // 2)
    assert widths[0] > 50 * np.median(widths[middle - 3 : middle + 3])
    assert column.edges[0] == 0
    assert column.edges[-1] == column.steps.last + 1
    for kind in (Continuous(lower=0, upper=50), Continuous(lower=-50, upper=0), Integer(lower=-5, upper=5)):
        column = ColumnGrid.numbers("c", kind, 64)
        assert np.ptp(np.diff(column.edges)[2:-2]) <= 1


@pytest.mark.parametrize(
    "kind",
    [
        Integer(lower=0, upper=501),
        Integer(lower=-7, upper=10_000, nullable=True),
        Continuous(lower=16, upper=52_864),
        Continuous(lower=0, upper=1, resolution=0.0003),
    ],
)
@pytest.mark.parametrize("narrow", [False, True])
def test_bounds_have_cells_of_their_own_and_come_back_as_bounds(kind, narrow):
    column = ColumnGrid.numbers("x", kind, 64, narrow=narrow, ends=True)
    plain = ColumnGrid.numbers("x", kind, 64, narrow=narrow)
    assert plain.n_cells <= column.n_cells <= plain.n_cells + 2
    ordered = column.n_cells - kind.nullable
    assert {0, ordered - 1} <= set(column.alone)
    assert set(plain.alone.values()) == {code for code in [kind.zero_code] if code is not None}
    np.testing.assert_array_equal(np.diff(column.edges)[[0, -1]], 1)
    ends = column.codes(np.array([0, ordered - 1]), np.random.default_rng(0))
    np.testing.assert_allclose(ends, column.steps.codes(np.array([0, column.steps.last])))
    np.testing.assert_array_equal(column.cells(ends), [0, ordered - 1])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Integer(lower=-200, upper=9_000, atoms=(-99, "<5", 777, 9_000)), [-99, 0, 777, 9_000]),
        (Continuous(lower=1, upper=500, resolution=0.01, atoms=(7.25, 40)), [7.25, 40]),
        (DateTime(lower="1990-01-01", upper="2020-12-31", atoms=("unknown",)), []),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_declared_single_values_are_cells_and_runs_of_their_own(kind, values):
    kind = kind.wordless
    column = ColumnGrid.numbers("x", kind, 16, narrow=True)
    lower, upper = kind.bounds
    codes = (np.array(values, dtype=float) - lower) / (upper - lower)
    cells = column.cells(codes)
    assert sorted(column.alone) == sorted(cells.tolist())
    assert (np.diff(column.edges)[cells] == 1).all()
    assert np.array_equal(column.codes(cells, np.random.default_rng(0)), codes)
    assert (np.bincount(public_runs(column))[public_runs(column)[cells]] == 1).all()
    assert ColumnGrid.stored("x", kind, column.edges).alone == column.alone


@pytest.mark.parametrize("nullable", [False, True])
def test_values_of_a_cell_are_drawn_by_their_weights(nullable):
    kind = Integer(lower=-3, upper=96, nullable=nullable)
    column = ColumnGrid.numbers("x", kind, 4)
    edges = np.array([0, 3, 4, 50, 51, 100])
    weights = np.random.default_rng(0).random(100).astype(np.float32)
    weights[[7, 99]] = 0.0
    weights[10] = 40.0
    cut = column.cut(edges, weights)
    assert cut.n_cells == 5 + nullable
    assert cut.alone == {1: 3 / 99}
    cells = np.repeat(np.arange(cut.n_cells), 40_000)
    codes = cut.codes(cells, np.random.default_rng(1))
    np.testing.assert_array_equal(cut.cells(codes), cells)
    for cell, (first, end) in enumerate(pairwise(edges)):
        found = np.bincount(column.steps.at(codes[cells == cell]), minlength=100)[first:end]
        parts = weights[first:end] / weights[first:end].sum()
        assert (found[parts == 0] == 0).all()
        off = found[parts > 0] - 40_000 * parts[parts > 0]
        assert (off**2 / (40_000 * parts[parts > 0])).sum() < stats.chi2.isf(1e-6, off.size)
    masses = np.arange(1.0, cut.n_cells + 1)
    np.testing.assert_allclose(np.add.reduceat(cut.of_values(masses), edges[:-1]), masses[:5])
    assert cut.of_values(masses)[10] == pytest.approx(3 * 40 / weights[4:50].sum())
    empty = column.cut(edges, np.zeros(100, dtype=np.float32))
    np.testing.assert_allclose(empty.of_values(masses), column.cut(edges).of_values(masses))
    np.testing.assert_array_equal(empty.cells(empty.codes(cells, np.random.default_rng(2))), cells)
    whole = column.whole()
    np.testing.assert_array_equal(np.diff(whole.edges), 1)
    assert whole.n_cells == 100 + nullable


def test_weights_are_stored_with_cells():
    schema = Schema(columns={"a": Boolean(), "x": Integer(lower=0, upper=9), "y": Integer(lower=0, upper=9)})
    grid = Grid.of(schema, numeric_cells=2)
    weights = np.linspace(0, 1, 10, dtype=np.float32)
    cut = Grid((*grid.columns[:2], grid.columns[2].cut(np.array([0, 4, 10]), weights)))
    stored = Grid.stored(schema, cut.arrays())
    assert [column.weights is None for column in stored.columns] == [True, True, False]
    np.testing.assert_array_equal(stored.columns[2].weights, weights)
    for wrong in (
        weights[:9],
        weights.astype(np.float64),
        -weights,
        *(np.full(10, no, dtype=np.float32) for no in (np.nan, np.inf)),
    ):
        with pytest.raises(ReleaseError, match="weights"):
            Grid.stored(schema, {**cut.arrays(), "weights.2": wrong})


def test_few_values_need_no_cells_for_bounds():
    kind = Integer(lower=0, upper=52)
    np.testing.assert_array_equal(
        ColumnGrid.numbers("x", kind, 64, ends=True).edges, ColumnGrid.numbers("x", kind, 64).edges
    )
    assert set(ColumnGrid.numbers("x", kind, 64, ends=True).alone) == {0}


@pytest.mark.parametrize("most", [1, 5, 300])
@pytest.mark.parametrize("kind", NUMBERS, ids=repr)
def test_cells_are_those_that_their_edges_say(kind, most):
    """Looked up where steps are few, searched where they are many."""
    codes = np.random.default_rng(0).random(500)
    codes[:3] = 0.0, 1.0, 0.5
    for narrow in (False, True):
        column = ColumnGrid.numbers("x", kind, most, narrow=narrow, ends=True)
        assert column.edges[0] == 0
        expected = np.searchsorted(column.edges, column.steps.at(codes), side="right") - 1
        np.testing.assert_array_equal(column.cells(codes), expected)
