"""What leads each column by class of a target: of numbers the value, at a length that clipping leaves alone."""

from dataclasses import replace

import numpy as np
import pytest

from harness.cases import released_columns, table_grid
from sfumato.columns.kinds import Boolean, Categorical, Continuous
from sfumato.maths.constants import LEADING
from sfumato.methods.tables.features import mean_square
from sfumato.methods.tables.leading import Leading, class_of_cells
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

SCHEMA = Schema(
    columns={
        "age": Continuous(lower=0, upper=99, nullable=True),
        "city": Categorical(categories=tuple("abcdef")),
        "paid": Continuous(lower=-5, upper=100),
        "town": Categorical(categories=tuple("abcdefg")),
        "seen": Continuous(lower=0, upper=1),
        "member": Boolean(),
    },
    rows=100,
)
AGE, CITY, PAID, TOWN, SEEN, MEMBER = range(6)
COLUMNS = released_columns(Grid.of(SCHEMA, numeric_cells=40))


def leading(target, clip_norm=2.0, columns=COLUMNS, **how) -> Leading:
    found = Leading.of(columns, target, clip_norm, **how)
    assert found is not None
    return found


@pytest.mark.parametrize("target", [CITY, MEMBER])
def test_of_each_number_the_value_leads(target):
    found = leading(target)
    assert found.columns == (AGE, PAID, SEEN)
    assert found.size == 3
    for j, values, own in zip(found.columns, found.values, found.functions, strict=True):
        column = COLUMNS[j]
        np.testing.assert_allclose(values, found.scale * own[column.drawn])
        inside, law = column.drawn < column.ordered, column.law()
        middles = np.arange(column.shares.size) + 0.5
        # ranks, which middles are nearly
        assert np.corrcoef(values[inside, 0], middles[inside])[0, 1] > 0.95
        assert (own[column.ordered :] == 0).all(), "missing ones have no value"
        assert law @ own[:, 0] == pytest.approx(0, abs=1e-6)
        assert law @ own[:, 0] ** 2 == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("target", range(6))
@pytest.mark.parametrize("noisy", [False, True])
def test_the_column_to_predict_is_not_among_them(target, noisy):
    found = Leading.of(COLUMNS, target, 2.0, noisy=noisy)
    if target == TOWN:
        assert found is None  # of more labels than are told apart
        return
    assert found is not None
    assert target not in found.columns
    assert found.size == sum(v.shape[1] for v in found.values)


def test_without_noise_few_labels_have_leading_features_too():
    found = leading(MEMBER, noisy=False)
    assert found.columns == (AGE, CITY, PAID, SEEN)
    assert [own.shape[1] for own in found.functions] == [1, 5, 1, 1]


def test_records_of_the_mean_length_are_far_below_the_norm():
    found = leading(MEMBER, 3.0)
    mean = mean_square(found.values, [COLUMNS[j].shares for j in found.columns])
    assert mean == pytest.approx(3.0**2 / LEADING.length)
    assert leading(MEMBER, 6.0).scale == pytest.approx(2 * found.scale)


def test_without_noise_nothing_is_clipped():
    found = leading(MEMBER, 3.0, noisy=False)
    longest = sum(float((values**2).sum(axis=1).max()) for values in found.values)
    assert longest == pytest.approx(3.0**2)


def test_few_columns_have_none():
    assert Leading.of(COLUMNS, None, 2.0) is None
    assert Leading.of(COLUMNS[:3], PAID, 2.0) is None  # one number beside it
    assert Leading.of(COLUMNS[:3], CITY, 2.0) is not None
    nothing = [column.idle() if j == AGE else column for j, column in enumerate(COLUMNS[:3])]
    assert Leading.of(nothing, CITY, 2.0) is None


def test_labels_are_their_own_classes():
    for j, cells in ((CITY, 7), (MEMBER, 3)):
        np.testing.assert_array_equal(class_of_cells(COLUMNS[j]), np.arange(cells))
    assert class_of_cells(COLUMNS[TOWN]) is None
    assert leading(CITY).n_classes == 7


def test_numbers_are_told_apart_in_quarters_of_even_shares():
    column = COLUMNS[SEEN]
    shares = np.full(column.shares.size, 1 / column.shares.size)
    classes = class_of_cells(replace(column, shares=shares))
    assert (np.diff(classes) >= 0).all()
    assert np.bincount(classes, shares) == pytest.approx(np.full(LEADING.parts, 1 / LEADING.parts), abs=1 / shares.size)


def test_a_missing_number_is_a_class_of_its_own():
    column = COLUMNS[AGE]
    n = column.shares.size - 1
    shares = np.append(np.full(n, 0.7 / n), 0.3)
    classes = class_of_cells(replace(column, shares=shares))
    assert (classes == classes[-1]).sum() == 1
    # others hold a quarter of all records at most, missing ones among these
    assert (np.bincount(classes, shares)[:-1] < 1 / LEADING.parts + 2 / n).all()


@pytest.mark.parametrize("place", [0, 17, 38])
@pytest.mark.parametrize("missing", [0.0, 0.5, 1.0])
def test_classes_are_numbered_without_gaps(place, missing):
    """A number that is one value, or missing, in nearly every row has fewer."""
    column = COLUMNS[AGE]
    shares = np.zeros(column.shares.size)
    shares[place], shares[-1] = 1 - missing, missing
    classes = class_of_cells(replace(column, shares=shares))
    assert classes is not None
    assert classes.shape == column.shares.shape
    np.testing.assert_array_equal(np.unique(classes), np.arange(classes.max() + 1))


def test_every_cell_of_the_harness_has_a_class():
    """Also one that no record was counted in: cells that a record may have are all that there are."""
    grid, columns = table_grid(), released_columns(table_grid())
    for column, made in zip(grid.columns, columns, strict=True):
        classes = class_of_cells(made)
        assert classes is not None
        assert classes.shape == (column.n_cells,)
