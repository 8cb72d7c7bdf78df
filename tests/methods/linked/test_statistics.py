"""Sums over steps: what each counts, that a unit's steps share one bound, and that whole numbers stay whole."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cases import STEPS_AT_MOST, step_moments, step_nested, step_pairs, step_rows, table_grid
from harness.privacy import FakeRecords, contribution, join
from sfumato import Schema
from sfumato.measurements.cells import BaseCells, Cells
from sfumato.measurements.queries import MarginalQuery, UnitNorm, unit_weights
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.linked.statistics import StepCounts, step_bits
from sfumato.methods.tables.cell_counts import CELL_STEP, ENDING_STEP, PAIR_STEP, RUN_STEP, VALUE_STEP, CellCounts
from sfumato.methods.tables.features import Waves
from sfumato.methods.tables.nested import sums_of
from sfumato.methods.tables.shares import Resolution, column_shares, released_total
from sfumato.records.engine import ROWS_AT_ONCE, reduce
from sfumato.records.sequences import FINER_BITS, STEPS, UNIT_BITS, flattened
from sfumato.schema.grid import Grid


def norm_of(counted: StepCounts, unit) -> float:
    """N of a unit, from the counts of its cells."""
    flat, _, steps = flattened(unit)
    whole = counted.with_room(10.0**6)
    queries = [query for query in whole._queries if query.tables]
    tables = [table for query in queries for table in query.split(contribution_in(query, flat))]
    squares = [square for query in queries for square in query.norm.tables]
    beside = queries[0].norm.beside
    return math.sqrt(
        (sum(s * (t**2).sum() for s, t in zip(squares, tables, strict=True)) + beside * steps[0] ** 2) / 1024
    )


def contribution_in(query, flat):
    total = np.zeros(query.shape)
    query.add(total, BaseCells(flat))
    return total


@pytest.mark.parametrize("room", [1.0, 2.5, 9.0, 25.0])
@pytest.mark.parametrize("make", [StepCounts, step_pairs, step_nested])
def test_a_unit_counts_as_its_norm_allows(make, room):
    counted = make(table_grid()).with_room(room)
    shared = 0
    for unit in step_rows(12):
        if unit[STEPS][0]:
            flat, owners, _ = flattened(unit)
            (weight,) = counted.weights(flat, owners, 1).tolist()
            bound, norm = math.sqrt(counted.squares), norm_of(counted, unit)
            assert weight * norm <= bound * 1024 * (1 + 1e-12)
            assert weight == 1024 or (weight + 1) * norm > bound * 1024 * (1 - 1e-12)
            assert np.linalg.norm(contribution(counted, unit)) <= norm * weight / 1024 * (1 + 1e-12)
            shared += weight < 1024
    assert shared == 0 if room == STEPS_AT_MOST**2 else shared > 10


@given(total=st.integers(0, 10**9), square=st.integers(1, 10**13))
def test_roots_of_whole_numbers_are_whole(total, square):
    """w²·N² ≤ C² and (w + 1)²·N² > C², exactly, of one row in one cell."""
    query = MarginalQuery(((Cells("a", 1),),), norm=UnitNorm(square, (total,), 0))
    (weight,) = unit_weights([query], BaseCells({"a": np.zeros(1)}), np.zeros(1, dtype=np.int64), 1).tolist()
    assert weight**2 * total <= square << 20
    assert weight == 1024 or (weight + 1) ** 2 * total > square << 20


def test_a_step_counts_whole_where_a_unit_has_few():
    grid, units = table_grid(), [unit for unit in step_rows(12) if unit[STEPS][0] <= 3]
    counted = StepCounts(grid).with_room(9)
    rows, _, _ = flattened(join(units))
    plain = CellCounts(grid)
    whole = plain.zero()
    plain.add(whole, rows)
    found = counted.split(reduce(counted, FakeRecords([join(units)])).open_in_mechanism())
    for ours, theirs in zip(found, plain.split(whole * plain.step), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other)


def test_pairs_say_the_first_column_and_what_is_known_is_not_counted():
    grid, counted = table_grid(), step_pairs(table_grid()).with_room(25)
    ((first, second),), (known,) = counted.pairs, counted.known
    units = join(step_rows(12))
    value = reduce(counted, FakeRecords([units])).open_in_mechanism()
    rows, _, _ = flattened(units)
    codes = [grid.columns[j].cells(rows[grid.columns[j].name]) for j in range(len(grid.columns))]
    table = counted.tables_of_pairs(value)[first, second]
    expected = np.zeros(table.shape)
    np.add.at(expected, (codes[first], codes[second]), 1)
    np.testing.assert_allclose(table, expected)
    runs, cells = counted.split(value)
    np.testing.assert_allclose(cells[first], np.bincount(codes[first], minlength=grid.columns[first].n_cells))
    np.testing.assert_allclose(runs[first], cells[first])
    np.testing.assert_allclose(cells[known], counted.known[known] * codes[0].size)
    assert all(axes[0].column != grid.columns[known].name for axes in counted.cell_query.tables)


def test_pairs_of_labels_are_counted_twice_and_told_once():
    """Without noise as counted; the label alone has the noise of its own table, and a pair little more than its own."""
    counted = step_nested(table_grid()).with_room(25)
    ((first, second),) = counted.pairs
    groups, axes = counted.grid.columns[first].groups, [len(query.tables) for query in counted._queries]
    assert axes[-1] == 2
    assert counted.squares == pytest.approx(25 * (step_nested(table_grid()).with_room(1).squares), rel=1e-3)
    value = reduce(counted, FakeRecords([join(step_rows(12))])).open_in_mechanism()
    exact = counted.tables_of_pairs(value)[first, second]
    rng, draws = np.random.default_rng(0), []
    for _ in range(400):
        noisy = value + rng.normal(0, PAIR_STEP, value.size)
        draws.append(counted.tables_of_pairs(noisy)[first, second] - exact)
    single = np.std(draws, axis=0)
    together = np.std([sums_of(table, groups) for table in draws], axis=0)
    sizes = np.bincount(groups)
    np.testing.assert_allclose(single.mean(axis=1), np.sqrt(1 - 1 / (1 + sizes))[groups], rtol=0.1)
    np.testing.assert_allclose(together.mean(axis=1), np.sqrt(sizes / (1 + sizes)), rtol=0.1)


def test_a_column_may_be_taken_for_another_one():
    number = {"kind": "integer", "lower": 0, "upper": 3}
    grid = Grid.of(Schema.from_dict({"columns": {"a": number, "b": number}}), numeric_cells=4)
    counted = StepCounts(grid, alike={0: 1}).with_room(1)
    rows = {"a": np.zeros((4, 1)), "b": np.linspace(0, 1, 4)[:, None], STEPS: np.ones(4, dtype=np.int64)}
    cells = counted.split(reduce(counted, FakeRecords([rows])).open_in_mechanism())[1]
    assert cells[0].tolist() == cells[1].tolist() == [1, 1, 1, 1]


def test_what_is_not_counted_says_nothing_of_what_is():
    """Known columns and twins leave totals, their noise, and what is shrunk together as they are without them."""
    kinds = {"a": {"kind": "integer", "lower": 0, "upper": 7}, "b": {"kind": "integer", "lower": 0, "upper": 7}}
    label = {"kind": "categorical", "categories": ["x", "y", "z"]}
    grid = Grid.of(Schema.from_dict({"columns": {**kinds, "c": label, "d": label, "e": label}}), numeric_cells=8)
    counted = StepCounts(grid, pairs=((3, 2),), known={4: np.array([0.2, 0.3, 0.5, 0])}, alike={1: 0}).with_room(4)
    plain = StepCounts(Grid((grid.columns[0], grid.columns[2]))).with_room(4)
    rng, n = np.random.default_rng(0), 300
    rows = {name: rng.integers(0, 8, (n, 1)) / 7 for name in kinds}
    rows |= {name: rng.integers(0, 3, (n, 1)) for name in "cde"} | {STEPS: np.ones(n, dtype=np.int64)}
    std = 40.0
    whole, part = (reduce(one, FakeRecords([rows])).open_in_mechanism() for one in (counted, plain))
    noise = rng.normal(0, std, whole.size)
    noisy, beside = Noisy(whole + noise, std), Noisy(part + noise[: part.size], std)
    total = released_total(noisy, counted)
    assert total == released_total(beside, plain)
    settings = Resolution(8, Waves(2, 0.5), 8, {})
    (_, columns), (_, alone) = (
        column_shares(noisy, counted, total, settings),
        column_shares(beside, plain, total, settings),
    )
    for j, i in ((0, 0), (1, 0), (2, 1)):
        np.testing.assert_array_equal(columns[j].shares, alone[i].shares)
    assert counted.split(noisy.value)[1][4].sum() == pytest.approx(total)
    deviations = counted.deviations(std)
    assert deviations[3] == pytest.approx(std / PAIR_STEP * np.sqrt(grid.columns[2].n_cells))
    assert deviations[4] == 0.0


def test_what_lies_beyond_the_last_step_is_not_read():
    for statistic in (StepCounts(table_grid()).with_room(2), step_moments(1.0, 2)):
        [unit] = [unit for unit in step_rows(12) if unit[STEPS][0] == 2][:1]
        other = {name: column.copy() for name, column in unit.items()}
        for name in other.keys() - {STEPS}:
            other[name][:, 2:] = other[name][:, :1]
        np.testing.assert_array_equal(contribution(statistic, unit), contribution(statistic, other))


def test_the_order_of_steps_and_of_units_changes_nothing():
    statistic, rng = step_moments(1.0, 9), np.random.default_rng(0)
    units = join(step_rows(12))
    order = rng.permutation(units[STEPS].size)
    turned = {name: column[order] for name, column in units.items()}
    whole, other = (reduce(statistic, FakeRecords([rows])).whole_in_mechanism() for rows in (units, turned))
    np.testing.assert_array_equal(whole, other)


@pytest.mark.parametrize("clip_norm", [0.3, 1.0, 2.0])
def test_a_unit_is_clipped_by_the_norm_of_its_sum_and_no_more(clip_norm):
    """Of clipped units the norm is C² but for the rounding of the weight, at most 1/u."""
    statistic = step_moments(clip_norm, 25)
    loose = step_moments(60.0, 25)
    clipped = 0
    for unit in step_rows(12):
        norm = np.linalg.norm(contribution(statistic, unit))
        free = np.linalg.norm(contribution(loose, unit))
        if free > 1.05 * clip_norm**2:
            weight = clip_norm**2 / free * 2**UNIT_BITS
            assert norm >= clip_norm**2 * (1 - 1.1 / weight)
            clipped += 1
        else:
            assert norm == pytest.approx(free, rel=0.05)
    assert clipped > 5


def test_norms_are_those_of_fractions():
    """u·F ≤ 2^m·4^b in whole numbers, F of any unit as a fraction."""
    statistic = step_moments(1.0, 9)
    bound = Fraction(2) ** (2 * statistic.bits.entries + statistic.bits.weights)
    for unit in step_rows(12):
        total = statistic.zero()
        statistic.add(total, unit)
        assert sum(Fraction(int(entry)) ** 2 for entry in total.ravel()) <= bound**2


def test_sums_of_whole_numbers_are_exact_in_floats():
    for n in (1, 10**6, 2**30):
        bits = step_bits(n)
        together = 2 * bits.entries + bits.weights
        assert ROWS_AT_ONCE * 2**together <= 2**53
        assert 8 * n * 2**together <= 2**63
    assert ROWS_AT_ONCE * STEPS_AT_MOST * 2 ** (UNIT_BITS + FINER_BITS) < 2**53


def test_units_are_taken_whole_however_few_are_taken_at_once(monkeypatch):
    from sfumato.methods.linked import statistics

    statistic, units = step_moments(1.0, 9), join(step_rows(400))
    whole = statistic.zero()
    statistic.add(whole, units)
    monkeypatch.setattr(statistics, "_WORK_BYTES", 1)
    parts = statistic.zero()
    statistic.add(parts, units)
    np.testing.assert_array_equal(whole, parts)


def test_counts_are_worth_what_the_schema_of_steps_says():
    statistic = StepCounts(table_grid()).with_room(2)
    steps = [part[0] for part in np.split(statistic.step, statistic.ends) if part.size]
    assert steps == [step / 2 ** (UNIT_BITS + FINER_BITS) for step in (RUN_STEP, CELL_STEP, VALUE_STEP, ENDING_STEP)]
