"""Second moments, pooled and by class: those of the records, clipped to the norm, within the bound."""

from dataclasses import dataclass

import numpy as np
import pytest

from sfumato.columns.kinds import Boolean, Categorical, Integer
from sfumato.methods.tables.feature_moments import MomentBits, PairCounts, TableMoments
from sfumato.methods.tables.layout import TableLayout
from sfumato.records.engine import ROWS_AT_ONCE, reduce
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

SCHEMA = Schema(
    columns={
        "age": Integer(lower=0, upper=5, nullable=True),
        "city": Categorical(categories=("a", "b", "c")),
        "member": Boolean(),
    },
    rows=300,
)
BY_CLASS = 0.25


def statistic(clip_norm=50.0, by_class=BY_CLASS, target: int | None = 2, seed=0) -> TableMoments:
    layout = TableLayout(Grid.of(SCHEMA, numeric_cells=8), target)
    rng = np.random.default_rng(seed)
    vectors = [rng.standard_normal((column.n_cells, 2)) for column in layout.features]
    if target is not None:
        vectors.append(0.7 * np.eye(layout.class_cells.size, layout.n_classes))
    return TableMoments(layout, tuple(vectors), clip_norm, by_class)


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 6, n) / 5
    age[::7] = np.nan
    return {"age": age, "city": rng.integers(0, 3, n), "member": rng.integers(0, 2, n)}


def value_of(moments, data):
    total = moments.zero()
    moments.add(total, data)
    return total * moments.step


def vectors_of(moments, data):
    """The records' vectors, unclipped."""
    cells = [column.cells(data[column.name]) for column in moments.layout.features]
    if moments.layout.target is not None:
        cells.append(data["member"])
    return moments.of(cells)


@pytest.mark.parametrize("target", [None, 2])
@pytest.mark.parametrize("by_class", [0.0, BY_CLASS])
def test_moments_are_those_of_the_records(by_class, target):
    moments, data = statistic(by_class=by_class, target=target), rows()
    x, value = vectors_of(moments, data), value_of(moments, data)
    classes = np.zeros(300, int) if target is None else data["member"]
    assert len(value) == (1 + moments.layout.class_cells.size if by_class else 1)
    np.testing.assert_allclose(value[0], np.sqrt(1 - by_class) * x.T @ x, rtol=1e-5)
    for k, part in enumerate(value[1:]):
        members = x[classes == k]
        np.testing.assert_allclose(part, np.sqrt(by_class) * members.T @ members, rtol=1e-5)


def test_products_with_the_indicator_are_class_sums():
    moments, data = statistic(), rows()
    x, value = vectors_of(moments, data), value_of(moments, data)[0] / moments.weights[0]
    for k in (0, 1):
        np.testing.assert_allclose(value[4 + k, :4], 0.7 * x[data["member"] == k, :4].sum(axis=0), atol=0.1)
    assert abs(value[4, 5]) < 1e-9


def test_long_records_are_clipped():
    moments, data = statistic(clip_norm=1.0, by_class=0.0), rows()
    x = vectors_of(moments, data)
    lengths = np.linalg.norm(x, axis=1)
    clipped = x * np.minimum(1.0, 1.0 / lengths)[:, None]
    assert (lengths > 1).mean() > 0.5
    np.testing.assert_allclose(value_of(moments, data)[0], clipped.T @ clipped, atol=4)
    factors = np.floor(np.minimum(1.0, 1.0 / lengths**2) * 64) / 64  # of products, rounded down
    np.testing.assert_allclose(value_of(moments, data)[0], x.T @ (x * factors[:, None]), rtol=1e-6)


@pytest.mark.parametrize("by_class", [0.0, BY_CLASS, 0.118 * 2, 1.0])
def test_weights_are_of_norm_one_rounded_down(by_class):
    weights = statistic(by_class=by_class).weights
    squares = weights[0] ** 2 + (weights[1] ** 2 if by_class else 0.0)
    assert 1 - 1e-5 < squares <= 1
    assert (weights[1:] == weights[1:2]).all()
    np.testing.assert_array_equal(weights * 2**20, np.rint(weights * 2**20))


@pytest.mark.parametrize("by_class", [0.0, BY_CLASS])
@pytest.mark.parametrize("clip_norm", [0.3, 2.0])
def test_a_records_moments_are_within_the_bound(by_class, clip_norm):
    moments, data = statistic(clip_norm, by_class), rows()
    parts = np.array([value_of(moments, {n: v[i : i + 1] for n, v in data.items()}).ravel() for i in range(60)])
    norms = np.linalg.norm(parts, axis=1)
    assert norms.max() <= moments.norm_bound
    assert norms.max() > 0.9 * moments.norm_bound
    distances = np.linalg.norm(parts[:, None] - parts, axis=2)
    assert distances.max() <= moments.replace_bound


@dataclass(frozen=True)
class Chunks:
    """Records in chunks of any size."""

    rows: dict
    size: int
    max_rows_per_unit: int = 1

    def coded(self):
        n = len(self.rows["age"])
        for start in range(0, n, self.size):
            yield {name: column[start : start + self.size] for name, column in self.rows.items()}


@pytest.mark.parametrize("size", [1, 37, 70_000])
@pytest.mark.parametrize("clip_norm", [0.3, 1.5, 50.0])
@pytest.mark.parametrize(("target", "by_class"), [(None, 0.0), (2, 0.0), (2, BY_CLASS)])
def test_counts_of_pairs_have_the_bits_of_products(target, by_class, clip_norm, size, monkeypatch):
    moments, data = statistic(clip_norm, by_class, target), Chunks(rows(500 if size < 99 else 70_000), size)
    monkeypatch.setattr(TableMoments, "compact", property(PairCounts.of))
    counted = reduce(moments, data).whole_in_mechanism()
    monkeypatch.setattr(TableMoments, "compact", None)
    multiplied = reduce(moments, data).whole_in_mechanism()
    assert counted.dtype == multiplied.dtype == np.int64
    np.testing.assert_array_equal(counted, multiplied)


def test_they_have_them_modulo_2_to_the_64_as_well(monkeypatch):
    """Sums that run over: 2^43 records by repetition of what 2^11 add."""
    moments, data = statistic(0.3), rows(2_048)
    pairs = PairCounts.of(moments)
    counts, products = pairs.zero(), moments.zero()
    pairs.add(counts, data)
    moments.add(products, data)
    times = np.int64(2**24) * np.int64(2**8)
    expected = products.astype(np.int64) * times  # wraps
    assert np.abs(products * float(times)).max() > 2.0**63
    np.testing.assert_array_equal(pairs.expanded(counts.astype(np.int64) * times), expected)


def test_many_columns_are_multiplied():
    wide = Schema(columns={f"c{i}": Integer(lower=0, upper=31) for i in range(120)}, rows=300)
    layout = TableLayout(Grid.of(wide, numeric_cells=32), None)
    vectors = tuple(np.linspace(-1, 1, column.n_cells)[:, None] for column in layout.features)
    assert TableMoments(layout, vectors, 1.0).compact is None


@pytest.mark.parametrize("n", [1, 1000, 2**24, 2**24 + 1, 10**7, 10**9, 2**36])
def test_bits_leave_room_for_eight_times_the_rows(n):
    bits = MomentBits.of(n)
    assert 2 * bits.entries + bits.weights <= 36
    assert 8 * n * 2 ** (2 * bits.entries + bits.weights) <= 2**63
    assert bits.entries >= 10
    assert bits.weights >= 4
    assert ROWS_AT_ONCE * 2 ** (2 * bits.entries + bits.weights) <= 2**53


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e300, 1e-300])
def test_odd_entries_stay_within_the_bound(odd):
    plain = statistic(1.0)
    vectors = (np.full_like(plain.vectors[0], odd), *plain.vectors[1:])
    moments, data = TableMoments(plain.layout, vectors, 1.0, BY_CLASS), rows(60)
    for i in range(60):
        found = value_of(moments, {name: column[i : i + 1] for name, column in data.items()})
        assert np.linalg.norm(found) <= moments.norm_bound


def test_chunks_of_any_size_add_up(monkeypatch):
    data = rows(3_000)
    once = value_of(statistic(), data)
    monkeypatch.setattr("sfumato.methods.tables.feature_moments._WORK_BYTES", 1)
    np.testing.assert_array_equal(value_of(statistic(), data), once)


def with_a_constant(clip_norm: float) -> TableMoments:
    """No target, and after the features one entry √g = 0.7 that is the same for all rows."""
    plain = statistic(clip_norm, by_class=0.0, target=None)
    return TableMoments(plain.layout, (*plain.vectors, np.full((1, 1), 0.7)), clip_norm, 0.0)


def test_products_with_the_constant_are_sums_of_all_rows():
    moments, data = with_a_constant(50.0), rows()
    cells = [column.cells(data[column.name]) for column in moments.layout.features]
    x, value = moments.of([*cells, np.zeros(300, int)]), value_of(moments, data)[0]
    np.testing.assert_allclose(x[:, -1], 0.7, atol=1e-3)
    np.testing.assert_allclose(value[-1, :-1], 0.7 * x[:, :-1].sum(axis=0), atol=0.1)
    np.testing.assert_allclose(value[-1, -1], 0.49 * 300, rtol=2e-3)


@pytest.mark.parametrize("clip_norm", [0.3, 1.0, 50.0])
def test_the_constant_is_clipped_with_the_rest(clip_norm):
    """Whole numbers in arbitrary precision: the norm of n, and that the constant's square is a part of it."""
    moments, data = with_a_constant(clip_norm), rows(60)
    for i in range(60):
        total = moments.zero()
        moments.add(total, {name: column[i : i + 1] for name, column in data.items()})
        squares = [int(s) for s in np.diagonal(total[0])]
        assert (squares[-1] > 0) == (sum(squares) > 0)  # beyond eight times the norm, nothing is left
        assert sum(squares) <= 4**15 * 2**6
        # of rank 1: the norm of u·yyᵀ is u·‖y‖²
        assert sum(int(n) ** 2 for n in total.ravel()) == sum(squares) ** 2
