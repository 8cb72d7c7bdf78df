"""Rows without a value get the other cells of rows that have one."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.inference import support
from sfumato.inference.support import fill_gaps
from sfumato.maths.streams import public_stream

N = 4_000


def rows(linked: bool) -> tuple[np.ndarray, list[tuple[int, np.ndarray, np.ndarray]]]:
    """Column 0 has a missing cell 4; column 1 is column 0 where that is there, else 0 to 3 alike, or always 3.

    Column 2 is a class of all rows.
    """
    rng = np.random.default_rng(0)
    first = rng.integers(0, 5, N)
    second = np.where(first < 4, np.minimum(first, 3 if not linked else 2), 3 if linked else 1)
    features = [(0, np.eye(5), first), (1, np.eye(4), second), (-1, np.ones((1, 1)), np.zeros(N, dtype=np.int64))]
    return np.stack([first, second, np.zeros(N, dtype=np.int64)], axis=1), features


def test_other_cells_come_from_rows_with_a_value() -> None:
    cells, features = rows(linked=False)
    features[1] = 1, np.zeros((4, 1)), features[1][2]  # says nothing of what is missing: any row with a value will do
    cells[cells[:, 0] == 4, 1] = 0
    found = fill_gaps(cells, features, [4, None, None], public_stream(1))
    gap = cells[:, 0] == 4
    assert (found[:, 0] == cells[:, 0]).all()
    assert (found[~gap] == cells[~gap]).all()
    shares = np.bincount(found[gap, 1], minlength=4) / gap.sum()
    assert shares == pytest.approx(np.full(4, 0.25), abs=0.06)


def test_rows_stay_where_another_column_says_what_is_missing() -> None:
    cells, features = rows(linked=True)
    found = fill_gaps(cells, features, [4, None, None], public_stream(1))
    assert (found == cells).all()


def test_without_missing_cells_nothing_changes() -> None:
    cells, features = rows(linked=False)
    found = fill_gaps(cells, features, [None, None, None], public_stream(1))
    assert found is cells
    unread = (1 / 0 for _ in features)  # they hold hundreds of megabytes of a wide table
    assert fill_gaps(cells, unread, [None, None, None], public_stream(1)) is cells


def test_chances_are_those_of_a_regression_on_the_other_columns() -> None:
    """One inverse for all columns gives what solving for each of them does."""
    rng = np.random.default_rng(1)
    latent = rng.standard_normal(N)
    cells = np.stack([np.clip(latent + rng.standard_normal(N) + 3, 0, 5).astype(int) for _ in range(4)], axis=1)
    features = [(j, rng.standard_normal((6, 3)), cells[:, j]) for j in range(4)]
    features.append((-1, np.ones((1, 1)), np.zeros(N, dtype=np.int64)))
    gaps = cells[:, [0, 2]] == 5
    rows = np.concatenate([vectors[own] for _, vectors, own in features], axis=1)
    rows -= rows.mean(axis=0)
    owner = np.array([0] * 3 + [1] * 3 + [2] * 3 + [3] * 3 + [-1])
    moments = rows.T @ rows
    moments += support._RIDGE * np.trace(moments) / len(moments) * np.eye(len(moments))
    for place, j in enumerate((0, 2)):
        others = owner != j
        slopes = np.linalg.solve(moments[np.ix_(others, others)], rows[:, others].T @ gaps[:, place])
        expected = gaps[:, place].mean() + rows[:, others] @ slopes
        assert expected.std() > 0.05
        np.testing.assert_allclose(support._chances(features, [0, 2], gaps)[:, place], expected, atol=1e-9)
