"""The two releases of a table: bounds of whole numbers, of units, of sums, and of what a release says of its noise."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cases import STATISTICS, moments_with_labels, table_grid, table_moments, table_rows, with_a_constant
from harness.privacy import (
    STAGE,
    FakeRecords,
    accept_only_unit_scale,
    contribution,
    free_coordinates,
    join,
    ledger_for,
)
from sfumato.mechanisms.noise import SeededNoise
from sfumato.mechanisms.queries import Noisy, noisy_histogram, noisy_second_moment
from sfumato.methods.tables.cell_counts import CELL_STEP, ENDING_STEP, RUN_STEP, VALUE_STEP, CellCounts
from sfumato.methods.tables.recipe import _count_measurements
from sfumato.methods.tables.second_stage import _measurements
from sfumato.records.engine import ROWS_AT_ONCE, reduce
from sfumato.schema.grid import Grid

ABOVE = 1 + Fraction(1, 2**50)
"""Noise is drawn with a scale that is so much above what is charged: what a bound in floats may be short by."""
TABLES = [
    "counts of runs, cells and values",
    "second moments",
    "second moments, loose",
    "second moments, a constant",
    "second moments, a constant, loose",
    "second moments, by class",
    "second moments, by class alone",
    "second moments, by class, all long",
    "second moments, by class, labels too",
    "second moments, by class, loose",
    "moments by quarters of a date, one missing",
    "weighted moments, by class",
    "counts of steps, three alike whole",
    "counts of steps and of pairs",
    "moments of steps",
    "moments of steps, loose",
]


def exact_entries(statistic, record) -> list[Fraction]:
    """What a record adds, data units, without any rounding."""
    total = statistic.zero()
    statistic.add(total, record)
    steps = np.broadcast_to(statistic.step, total.shape)
    return [Fraction(n) * Fraction(s) for n, s in zip(total[total != 0], steps[total != 0], strict=True)]


@pytest.mark.parametrize("name", TABLES)
def test_norms_are_within_the_bound_in_fractions(name):
    case = STATISTICS[name]
    bound = Fraction(case.statistic.norm_bound) * ABOVE
    for record in case.pool:
        assert sum(entry**2 for entry in exact_entries(case.statistic, record)) <= bound**2


def test_sums_of_squared_steps_are_exact():
    steps = RUN_STEP, CELL_STEP, VALUE_STEP, ENDING_STEP
    assert sum(Fraction(step) ** 2 for step in steps) == Fraction(sum(step**2 for step in steps))


@given(st.floats(2.0**-30, 1.0))
def test_squares_of_a_pooled_and_a_class_weight_are_at_most_1(part):
    pooled, *classes = map(Fraction, table_moments(1.0, "city", part=part).weights)
    assert len(classes) == 4
    assert all(pooled**2 + weight**2 <= 1 for weight in classes)


@pytest.mark.parametrize("name", TABLES)
def test_units_are_no_further_apart_than_root_2_of_their_bound(name):
    case, rng = STATISTICS[name], np.random.default_rng(0)
    added = np.array([contribution(case.statistic, record) for record in case.pool])
    added = added[:, added.any(axis=0)]
    for rows in (1, 2, 5):
        units = added[rng.integers(0, len(added), (300, rows))].sum(axis=1)
        units = np.vstack([units, rows * added])
        bound = rows * case.statistic.norm_bound
        squares = (units**2).sum(axis=1)
        apart = squares[:, None] + squares - 2 * units @ units.T
        assert squares.max() <= (bound * (1 + 1e-12)) ** 2
        # what units add has no negative inner product: so a unit of less rows is no worse
        assert apart.max() <= 2 * bound**2 * (1 + 1e-12)


@pytest.mark.parametrize("clip_norm", [0.1, 0.5, 1.0, 3.0])
def test_a_records_whole_numbers_are_within_the_bound_exactly(clip_norm):
    """Integers of any size: u·‖y‖² ≤ 2^m·4^b, and what is not clipped counts whole."""
    statistic = table_moments(clip_norm)
    most, clipped = 4**statistic.bits.entries << statistic.bits.weights, 0
    for record in table_rows(200):
        cells = statistic.cells(record)
        squares = sum(int(v) ** 2 for whole, c in zip(statistic.whole, cells, strict=True) for v in whole[c[0]])
        u = int(statistic.clipping(cells)[0])
        assert 0 <= u <= 1 << statistic.bits.weights
        assert u * squares <= most
        assert u == 1 << statistic.bits.weights or (u + 1) * squares > most
        clipped += u < 1 << statistic.bits.weights
    assert clipped or clip_norm > 1


@pytest.mark.parametrize("length", [0.2, 2.0, 40.0, 1e6])
@pytest.mark.parametrize("labels", [False, True])
def test_what_leads_is_clipped_by_itself_exactly(length, labels):
    """Integers of any size: by class a record adds g·zzᵀ to the matrix of its own class, g·‖z‖² ≤ 2^m·4^b."""
    statistic = table_moments(1.0, "member", length=length)
    if labels:
        statistic = moments_with_labels(1.0, "member", length)
    leading, most, clipped = statistic.leading, 4**statistic.bits.entries << statistic.bits.weights, 0
    for record in table_rows(100):
        total, cells = statistic.zero(), statistic.cells(record)
        statistic.add(total, record)
        own = [statistic._whole(values)[cells[j][0]] for j, values in zip(leading.columns, leading.values, strict=True)]
        z = [int(entry) for entry in np.concatenate(own)]
        squares = sum(entry**2 for entry in z)
        g = min(1 << statistic.bits.weights, most // max(squares, 1))
        expected = np.zeros((3, statistic.dimension, statistic.dimension))
        products = [[g * one * other for other in z] for one in z]
        expected[record["member"][0]][: len(z), : len(z)] = products
        np.testing.assert_array_equal(total[1:], expected)
        clipped += g < 1 << statistic.bits.weights
    assert bool(clipped) == (length > 1)


@pytest.mark.parametrize(
    "statistic",
    [
        table_moments(0.5),
        with_a_constant(table_moments(0.5)),
        table_moments(0.5, "member", length=3.0),
        table_moments(0.5, "member", part=1.0, length=0.9),
    ],
    ids=["pooled", "a constant", "by class", "by class alone"],
)
def test_the_largest_sum_of_a_piece_is_exact(statistic):
    """As many of the longest records as there are at once: one class alone, and both in turn."""
    pool = sorted(table_rows(60), key=lambda record: -np.linalg.norm(contribution(statistic, record)))
    alone = [statistic.zero() for _ in pool[:2]]
    for total, record in zip(alone, pool, strict=False):
        statistic.add(total, record)
    for first, second in ((0, 0), (0, 1)):
        pair = join([pool[first], pool[second]])
        half = ROWS_AT_ONCE // 2
        many = {name: np.tile(column, half) for name, column in pair.items()}
        total = statistic.zero()
        statistic.add(total, many)
        expected = (alone[first].astype(np.int64) + alone[second].astype(np.int64)) * half
        assert np.abs(expected).max() <= 2**53
        np.testing.assert_array_equal(total, expected)
        exact = reduce(statistic, FakeRecords([many, many, many]))
        np.testing.assert_array_equal(exact.whole_in_mechanism(), 3 * expected)


SINGLE = [1, 5, 9]
"""Steps that are made cells of their own, whatever their counts: a value that stood out was chosen."""


def with_single_values(statistic):
    columns = list(statistic.grid.columns)
    for j in statistic.valued:
        columns[j] = columns[j].cut(np.union1d(columns[j].edges, [*SINGLE, *(step + 1 for step in SINGLE)]))
    return Grid(tuple(columns))


@pytest.mark.parametrize("unit_rows", [1, 3])
@pytest.mark.parametrize(
    "statistic",
    [CellCounts(table_grid()), table_moments(1.0), table_moments(1.0, "member", part=0.25)],
    ids=["counts", "moments", "moments by class"],
)
def test_measurements_have_the_noise_that_they_state(statistic, unit_rows):
    """In records, and in products of features: what is released, less what is true, over what is said of it."""
    chunk = join(table_rows(20))
    exact = reduce(statistic, FakeRecords([chunk], unit_rows))
    true = exact.open_in_mechanism()
    found: dict[str, list[np.ndarray]] = {}
    for seed in range(400):
        ledger = ledger_for(2.0)
        if isinstance(statistic, CellCounts):
            noisy = noisy_histogram(exact, stage=STAGE, ledger=ledger, noise=SeededNoise(seed))
            measured = _count_measurements(noisy, statistic, with_single_values(statistic), 1.0)
            truths = [np.concatenate(part) for part in statistic.split(true)]
            exactly = statistic.values(Noisy(true, 0.0))
            truths.append(np.concatenate([exactly[j].counts[SINGLE] for j in statistic.valued]))
            assert truths[0].sum() == truths[1].sum() == len(chunk["age"]) * 4
        else:
            noisy = noisy_second_moment(exact, stage=STAGE, ledger=ledger, noise=SeededNoise(seed))
            measured, truths = _measurements(noisy, statistic), [true[0] / statistic.weights[0]]
            if statistic.leading is not None:
                size = statistic.leading.size
                truths.append(true[1:, :size, :size] / statistic.weights[1])
        for (name, m), truth in zip(measured, truths, strict=True):
            found.setdefault(name, []).append(free_coordinates(m.value - truth, m.noise_std, m.symmetric))
    for draws in found.values():
        accept_only_unit_scale(np.concatenate(draws))
