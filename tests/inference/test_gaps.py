"""Rows without a value get the other cells of rows that have one."""

from __future__ import annotations

import numpy as np
import pytest

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
