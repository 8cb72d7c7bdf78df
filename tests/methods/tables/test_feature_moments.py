"""Second moments, pooled and by class: those of the records, clipped to the norm, within the bound."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from sfumato.columns.kinds import Boolean, Categorical, Integer
from sfumato.methods.tables.feature_moments import MomentBits, PairCounts, TableMoments
from sfumato.methods.tables.leading import Leading
from sfumato.records.engine import ROWS_AT_ONCE, reduce
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

SCHEMA = Schema(
    columns={
        "age": Integer(lower=0, upper=5, nullable=True),
        "city": Categorical(categories=("a", "b", "c")),
        "paid": Integer(lower=0, upper=3),
        "member": Boolean(),
    },
    rows=300,
)
PART = 0.25


def statistic(clip_norm=50.0, by_class=False, seed=0, constant=False) -> TableMoments:
    """Made-up entries of any length; by class of the last column, of age and city, those that are twice as long."""
    grid, rng = Grid.of(SCHEMA, numeric_cells=8), np.random.default_rng(seed)
    vectors = [rng.standard_normal((column.n_cells, 2)) for column in grid.columns]
    leading = None
    if by_class:
        values = (2 * vectors[0][:, 1:], 2 * vectors[1])
        functions = tuple(np.zeros((2, v.shape[1])) for v in values)
        leading = Leading(3, np.arange(2), (0, 1), functions, values, scale=2.0, part=PART)
    if constant:
        vectors.append(np.full((1, 1), 0.7))
    return TableMoments(grid, tuple(vectors), clip_norm, leading)


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 6, n) / 5
    age[::7] = np.nan
    return {
        "age": age,
        "city": rng.integers(0, 3, n),
        "paid": rng.integers(0, 4, n) / 3,
        "member": rng.integers(0, 2, n),
    }


def value_of(moments, data):
    total = moments.zero()
    moments.add(total, data)
    return total * moments.step


def vectors_of(moments, data):
    """The records' vectors, unclipped."""
    return moments.of(moments.cells(data))


def led(moments, data):
    """What is told apart by class, unclipped, before zeros."""
    cells, z = moments.cells(data), np.zeros((len(data["age"]), moments.dimension))
    own = zip(moments.leading.columns, moments.leading.values, strict=True)
    z[:, : moments.leading.size] = np.concatenate([values[cells[j]] for j, values in own], axis=1)
    return z


@pytest.mark.parametrize("by_class", [False, True])
def test_moments_are_those_of_the_records(by_class):
    moments, data = statistic(by_class=by_class), rows()
    x, value = vectors_of(moments, data), value_of(moments, data)
    assert value.shape == (3 if by_class else 1, 8, 8)
    np.testing.assert_allclose(value[0], np.sqrt(1 - PART if by_class else 1.0) * x.T @ x, rtol=1e-5)
    for k, part in enumerate(value[1:]):
        members = led(moments, data)[data["member"] == k]
        # entries are whole numbers of C/2^b, of which each record's products have half of one at most
        np.testing.assert_allclose(part, np.sqrt(PART) * members.T @ members, rtol=1e-4, atol=0.5)


def test_by_class_nothing_but_what_leads_is_read():
    """Other features, and their clipping, are of no matrix of a class; the target's own column is not among these."""
    moments, data = statistic(1.0, by_class=True), rows()
    value = value_of(moments, data)
    size = moments.leading.size
    assert not value[1:, size:].any()
    assert not value[1:, :, size:].any()
    assert value[1:, :size, :size].all()
    longer = (*moments.vectors[:2], 100 * moments.vectors[2], moments.vectors[3])
    again = value_of(replace(moments, vectors=longer), data)
    np.testing.assert_array_equal(again[1:], value[1:])
    assert not np.array_equal(again[0], value[0])


def test_what_leads_is_clipped_by_itself():
    moments, data = statistic(1.5, by_class=True), rows()
    z, value = led(moments, data), value_of(moments, data)
    factors = np.floor(np.minimum(1.0, 1.5**2 / (z**2).sum(axis=1)) * 64) / 64  # of products, rounded down
    assert 0.3 < (factors < 1).mean() < 1
    for k, part in enumerate(value[1:]):
        own, counted = z[data["member"] == k], factors[data["member"] == k, None]
        np.testing.assert_allclose(part, np.sqrt(PART) * own.T @ (own * counted), rtol=1e-3, atol=0.02)


def test_a_class_without_records_has_a_matrix_of_nothing():
    moments, data = statistic(1.5, by_class=True), rows()
    total = moments.zero()
    moments.add(total, {**data, "member": np.zeros(300, dtype=int)})
    assert total[1].any()
    assert not total[2].any()


def test_long_records_are_clipped():
    moments, data = statistic(clip_norm=1.0), rows()
    x = vectors_of(moments, data)
    lengths = np.linalg.norm(x, axis=1)
    clipped = x * np.minimum(1.0, 1.0 / lengths)[:, None]
    assert (lengths > 1).mean() > 0.5
    np.testing.assert_allclose(value_of(moments, data)[0], clipped.T @ clipped, atol=4)
    factors = np.floor(np.minimum(1.0, 1.0 / lengths**2) * 64) / 64  # of products, rounded down
    np.testing.assert_allclose(value_of(moments, data)[0], x.T @ (x * factors[:, None]), rtol=1e-6)


@pytest.mark.parametrize("part", [0.1, PART, 0.118 * 2, 1.0])
def test_weights_are_of_norm_one_rounded_down(part):
    plain = statistic(by_class=True)
    weights = replace(plain, leading=replace(plain.leading, part=part)).weights
    assert 1 - 1e-5 < weights[0] ** 2 + weights[1] ** 2 <= 1
    assert weights.shape == (3,)
    assert weights[1] == weights[2] == pytest.approx(np.sqrt(part), abs=1e-5)
    np.testing.assert_array_equal(weights * 2**20, np.rint(weights * 2**20))
    assert statistic().weights.tolist() == [1.0]


@pytest.mark.parametrize("by_class", [False, True])
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
@pytest.mark.parametrize("constant", [False, True])
def test_counts_of_pairs_have_the_bits_of_products(constant, clip_norm, size, monkeypatch):
    moments, data = statistic(clip_norm, constant=constant), Chunks(rows(500 if size < 99 else 70_000), size)
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
    grid = Grid.of(wide, numeric_cells=32)
    vectors = tuple(np.linspace(-1, 1, column.n_cells)[:, None] for column in grid.columns)
    assert TableMoments(grid, vectors, 1.0).compact is None


def test_moments_by_class_are_never_counts_of_pairs():
    """Of few columns with many entries counts are faster; but they have no matrices of classes."""
    for moments, counted in ((statistic(), True), (statistic(by_class=True), False)):
        long = replace(moments, vectors=tuple(np.tile(entries, 15) for entries in moments.vectors))
        assert (long.compact is not None) == counted


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
    plain, data = statistic(1.0, by_class=True), rows(60)
    vectors = (np.full_like(plain.vectors[0], odd), *plain.vectors[1:])
    leading = replace(plain.leading, values=(np.full_like(plain.leading.values[0], odd), plain.leading.values[1]))
    moments = replace(plain, vectors=vectors, leading=leading)
    for i in range(60):
        found = value_of(moments, {name: column[i : i + 1] for name, column in data.items()})
        assert np.isfinite(found).all()
        assert np.linalg.norm(found) <= moments.norm_bound


@pytest.mark.parametrize("by_class", [False, True])
def test_chunks_of_any_size_add_up(monkeypatch, by_class):
    data, moments = rows(3_000), statistic(2.0, by_class)
    once = value_of(moments, data)
    monkeypatch.setattr("sfumato.methods.tables.feature_moments._WORK_BYTES", 1)
    np.testing.assert_array_equal(value_of(moments, data), once)


def test_products_with_the_constant_are_sums_of_all_rows():
    moments, data = statistic(constant=True), rows()
    x, value = vectors_of(moments, data), value_of(moments, data)[0]
    np.testing.assert_allclose(x[:, -1], 0.7, atol=1e-3)
    np.testing.assert_allclose(value[-1, :-1], 0.7 * x[:, :-1].sum(axis=0), atol=0.1)
    np.testing.assert_allclose(value[-1, -1], 0.49 * 300, rtol=2e-3)


@pytest.mark.parametrize("clip_norm", [0.3, 1.0, 50.0])
def test_the_constant_is_clipped_with_the_rest(clip_norm):
    """Whole numbers in arbitrary precision: the norm of n, and that the constant's square is a part of it."""
    moments, data = statistic(clip_norm, constant=True), rows(60)
    for i in range(60):
        total = moments.zero()
        moments.add(total, {name: column[i : i + 1] for name, column in data.items()})
        squares = [int(s) for s in np.diagonal(total[0])]
        assert (squares[-1] > 0) == (sum(squares) > 0)  # beyond eight times the norm, nothing is left
        assert sum(squares) <= 4**15 * 2**6
        # of rank 1: the norm of u·yyᵀ is u·‖y‖²
        assert sum(int(n) ** 2 for n in total.ravel()) == sum(squares) ** 2
