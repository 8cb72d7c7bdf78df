"""The model's rows where counts show records and it draws none."""

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.inference.support import ColumnCounts, with_support

N, ROWS, STD = 20_000, 16_384, 18.0
LAW = np.concatenate([np.array([0.3, 0.35, 0.2, 0.1]), np.zeros(4), np.full(16, 0.05 / 16)])


def counts(rng, law=LAW, *, ordered=LAW.size, size=N):
    exact = law * size
    cells, runs = (exact + rng.normal(0, STD, law.size) for _ in range(2))
    return ColumnCounts(cells, STD**2, runs, STD**2, np.arange(law.size), ordered)


def drawn(rng):
    """Rows of a model that has lost the group: none of its cells stands out by itself."""
    law = np.where(np.arange(LAW.size) < 8, LAW, 0.0)
    return rng.choice(LAW.size, ROWS, p=law / law.sum())[:, None]


def test_a_group_that_no_cell_shows_alone_is_there():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        column = counts(rng)
        assert column.cells[8:].max() < 8 * STD
        rows = with_support(drawn(rng), [column], N, rng)[:, 0]
        assert (rows >= 8).mean() == pytest.approx(0.05, abs=0.02)


def test_noise_is_no_group():
    """Where the model has all, and of cells that hold nothing."""
    moved = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        law = np.where(np.arange(LAW.size) < 8, LAW, 0.0)
        rows = drawn(rng)
        moved += bool((with_support(rows, [counts(rng, law / law.sum())], N, rng) != rows).any())
    assert moved <= 3


def test_labels_have_no_neighbours():
    rng = np.random.default_rng(0)
    column = counts(rng, ordered=0)
    rows = with_support(drawn(rng), [column], N, rng)[:, 0]
    single = column.cells + column.runs > 2 * 5 * STD / 2**0.5
    assert set(np.unique(rows[rows >= 8])) <= set(np.flatnonzero(single))


def test_the_model_is_kept_where_it_agrees():
    rng = np.random.default_rng(1)
    rows = rng.choice(LAW.size, ROWS, p=LAW / LAW.sum())[:, None]
    assert (with_support(rows, [counts(rng)], N, rng) == rows).all()


@pytest.mark.parametrize("seed", [4, 9])  # fits whose model has lost most of the group
def test_the_mean_of_a_column_with_a_faint_group_is_covered(seed):
    """Before, z was -16 and -10."""
    rng = np.random.default_rng([11, N, seed])
    income = np.exp(rng.normal(10, 0.9, N))
    visits = rng.poisson(1.2, N) + (rng.random(N) < 0.05) * rng.poisson(15, N)
    age, sex = rng.uniform(18, 95, N), rng.choice(["f", "m"], N)
    cost = np.where(rng.random(N) < 0.7, 0, 400 * rng.pareto(2.5, N))
    frame = pd.DataFrame({"income": income, "visits": visits, "age": age, "sex": sex, "cost": cost})
    columns = {
        "visits": {"kind": "integer", "lower": 0, "upper": 23},
        "age": {"kind": "continuous", "lower": 16, "upper": 96},
        "income": {"kind": "continuous", "lower": 1_500, "upper": 330_000},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "cost": {"kind": "continuous", "lower": 0, "upper": 2_560},
    }
    release = sfumato.fit(frame, {"rows": N, "columns": columns}, epsilon=1.0, delta=1e-6, seed=seed)
    low, high = release.mean("visits", target="table").interval(0.99)
    assert low <= frame["visits"].clip(0, 23).mean() <= high
