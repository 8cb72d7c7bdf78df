"""Distances that two dates say by themselves are left idle, and ties are not."""

import numpy as np
import pytest

from sfumato.lenses.chain import plain_schema
from sfumato.lenses.date_columns import idle_distances, without_idle_distances
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

DAYS = 3_653
DATE = {"kind": "datetime", "lower": "2014-01-01", "upper": "2023-12-31", "nullable": True}
SCHEMA = Schema.from_dict({"rows": 10_000, "columns": {"a": DATE, "b": DATE}})
COLUMN = "b: time since a"


def shares(a, b, noise=0.0, n=20_000):
    """Shares of cells of two dates, in days, and of their distance, with noise on the counts."""
    distance, rng = SCHEMA.distances["b"], np.random.default_rng(9)
    codes = {"a": a / (DAYS - 1), "b": b / (DAYS - 1)}
    codes[COLUMN] = distance.read(codes["a"], codes["b"])
    grid = Grid.of(plain_schema(SCHEMA), numeric_cells=128, narrow=True)
    laws = []
    for column in grid.columns:
        counts = np.bincount(column.cells(codes[column.name]), minlength=column.n_cells) * n / len(a)
        counts = np.maximum(counts + noise * rng.standard_normal(column.n_cells), 0)
        laws.append(counts / counts.sum())
    return grid.columns, laws


def dates(name, n=40_000):
    rng = np.random.default_rng(4)
    a = rng.integers(0, DAYS - 400, n).astype(float)
    if name == "unrelated":
        return a, np.minimum(DAYS - 1, rng.gamma(2, 900, n) // 1)
    if name == "correlated":
        z = rng.standard_normal((2, n))
        z[1] = 0.6 * z[0] + 0.8 * z[1]
        return tuple(np.clip(1_800 + 500 * z, 0, DAYS - 1) // 1)
    if name == "stays":
        return a, a + rng.poisson(5, n)
    if name == "a tenth on the same day":
        return a, np.where(rng.random(n) < 0.1, a, rng.integers(0, DAYS, n))
    return a, np.minimum(DAYS - 1, a + rng.exponential(1_500, n) // 1)  # "in order, by years"


IDLE = ["unrelated", "correlated"]
TIED = ["stays", "a tenth on the same day", "in order, by years"]


@pytest.mark.parametrize("noise", [0.0, 30.0])
@pytest.mark.parametrize("name", IDLE + TIED)
def test_what_a_copula_says_is_idle(name, noise):
    columns, laws = shares(*dates(name), noise)
    idle = idle_distances(SCHEMA.distances, columns, laws, noise**2, 20_000)
    assert (COLUMN in idle) == (name in IDLE)


def test_an_idle_distance_is_missing_and_nothing_else_is_changed():
    for name in ("unrelated", "stays"):
        columns, laws = shares(*dates(name))
        new = without_idle_distances(SCHEMA, columns, laws, 0.0, 20_000)
        for column, before, after in zip(columns, laws, new, strict=True):
            if column.name == COLUMN and name == "unrelated":
                assert after[-1] == after.sum() == 1
            else:
                np.testing.assert_array_equal(before, after)


def test_without_rows_a_distance_is_idle():
    columns, laws = shares(*dates("stays"))
    laws[2] = np.arange(laws[2].size) == laws[2].size - 1
    assert idle_distances(SCHEMA.distances, columns, laws, 0.0, 20_000) == {COLUMN}
