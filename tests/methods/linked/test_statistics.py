"""Sums over steps: what each counts, that a unit's steps share one bound, and that whole numbers stay whole."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cases import STEPS_AT_MOST, step_moments, step_rows, table_grid
from harness.privacy import FakeRecords, contribution, join
from sfumato.methods.linked.statistics import WEIGHT_BITS, Sharing, StepCounts, flattened, step_bits
from sfumato.methods.tables.cell_counts import CELL_STEP, ENDING_STEP, RUN_STEP, VALUE_STEP, CellCounts
from sfumato.records.engine import ROWS_AT_ONCE, reduce
from sfumato.records.sequences import STEPS


@given(full=st.integers(1, 1000), steps=st.integers(0, 1000))
def test_the_steps_of_a_unit_count_as_k_at_most(full, steps):
    weight = int(Sharing(full).weights(np.array([steps]))[0])
    assert steps * weight <= full << WEIGHT_BITS
    assert weight == 1 << WEIGHT_BITS or steps > full


def test_a_step_counts_whole_where_a_unit_has_few():
    grid, units = table_grid(), [unit for unit in step_rows(12) if unit[STEPS][0] <= 3]
    counted = StepCounts(grid, sharing=Sharing(3))
    rows, _, _ = flattened(join(units))
    plain = CellCounts(grid)
    whole = plain.zero()
    plain.add(whole, rows)
    found = counted.split(reduce(counted, FakeRecords([join(units)])).open_in_mechanism())
    for ours, theirs in zip(found, plain.split(whole * plain.step), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other)


def test_more_steps_than_count_whole_share_their_weight():
    counted = StepCounts(table_grid(), sharing=Sharing(2))
    [unit] = [unit for unit in step_rows(12) if unit[STEPS][0] == 5][:1]
    cells = counted.split(contribution(counted, unit))[1]
    for column in cells:
        assert 2 * (1 - 2.0 ** (2 - WEIGHT_BITS)) <= column.sum() * 1.0 <= 2


def test_what_lies_beyond_the_last_step_is_not_read():
    for statistic in (StepCounts(table_grid(), sharing=Sharing(2)), step_moments(1.0, 2)):
        [unit] = [unit for unit in step_rows(12) if unit[STEPS][0] == 2][:1]
        other = {name: column.copy() for name, column in unit.items()}
        for name in other.keys() - {STEPS}:
            other[name][:, 2:] = other[name][:, :1]
        np.testing.assert_array_equal(contribution(statistic, unit), contribution(statistic, other))


def test_the_order_of_steps_and_of_units_changes_nothing():
    statistic, rng = step_moments(1.0, 3), np.random.default_rng(0)
    units = join(step_rows(12))
    order = rng.permutation(units[STEPS].size)
    turned = {name: column[order] for name, column in units.items()}
    whole, other = (reduce(statistic, FakeRecords([rows])).whole_in_mechanism() for rows in (units, turned))
    np.testing.assert_array_equal(whole, other)


@pytest.mark.parametrize("clip_norm", [0.3, 1.0, 2.0])
def test_a_unit_is_clipped_by_the_norm_of_its_sum_and_no_more(clip_norm):
    """Of clipped units the norm is C² but for the rounding of the weight, at most 1/u."""
    statistic = step_moments(clip_norm, 5)
    loose = step_moments(60.0, 5)
    clipped = 0
    for unit in step_rows(12):
        norm = np.linalg.norm(contribution(statistic, unit))
        free = np.linalg.norm(contribution(loose, unit))
        if free > 1.05 * clip_norm**2:
            weight = clip_norm**2 / free * 2**WEIGHT_BITS
            assert norm >= clip_norm**2 * (1 - 1.1 / weight)
            clipped += 1
        else:
            assert norm == pytest.approx(free, rel=0.05)
    assert clipped > 5


def test_norms_are_those_of_fractions():
    """u·F ≤ 2^m·4^b in whole numbers, F of any unit as a fraction."""
    statistic = step_moments(1.0, 3)
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
    assert ROWS_AT_ONCE * STEPS_AT_MOST * 2**WEIGHT_BITS < 2**53


def test_units_are_taken_whole_however_few_are_taken_at_once(monkeypatch):
    from sfumato.methods.linked import statistics

    statistic, units = step_moments(1.0, 3), join(step_rows(400))
    whole = statistic.zero()
    statistic.add(whole, units)
    monkeypatch.setattr(statistics, "_WORK_BYTES", 1)
    parts = statistic.zero()
    statistic.add(parts, units)
    np.testing.assert_array_equal(whole, parts)


def test_counts_are_worth_what_the_schema_of_steps_says():
    statistic = StepCounts(table_grid(), sharing=Sharing(2))
    steps = [part[0] for part in np.split(statistic.step, statistic.ends)]
    assert steps == [step / 2**WEIGHT_BITS for step in (RUN_STEP, CELL_STEP, VALUE_STEP, ENDING_STEP)]
