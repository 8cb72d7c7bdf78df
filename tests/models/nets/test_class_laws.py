"""Laws of numbers by class, in samples of decoders."""

import numpy as np
import pytest

from sfumato.columns.kinds import Boolean, Continuous, Integer
from sfumato.errors import ReleaseError
from sfumato.models.nets.class_laws import ClassLaws
from sfumato.models.nets.flat import RankVectors
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

SCHEMA = Schema(
    columns={"ill": Boolean(), "age": Integer(lower=0, upper=3, nullable=True), "share": Continuous(lower=0, upper=1)},
    rows=100,
)
GRID = Grid.of(SCHEMA, numeric_cells=4)
SHARES = tuple(np.full(c.n_cells, 1 / c.n_cells) for c in GRID.columns)
VECTORS = RankVectors(GRID, SHARES)
CELLS = [ends.size for _, ends in VECTORS.ends]
BEFORE = np.tile(np.concatenate([np.full(n, 1 / n) for n in CELLS]), (2, 1))


def laws(after):
    return ClassLaws(np.zeros((2, VECTORS.dimension)), BEFORE, after)


def test_ranks_get_the_law_of_their_class():
    rng = np.random.default_rng(0)
    wanted = np.concatenate([rng.dirichlet(np.ones(n)) for n in CELLS])
    after = np.stack([BEFORE[0], wanted])
    n = 40_000
    values = rng.random((n, VECTORS.dimension))
    classes = rng.integers(2, size=n)
    moved = laws(after).ranks(values, classes, VECTORS)
    start = 0
    for (place, ends), n_cells in zip(VECTORS.ends, CELLS, strict=True):
        chosen = np.minimum(np.searchsorted(ends, moved[classes == 1, place], side="right"), n_cells - 1)
        found = np.bincount(chosen, minlength=n_cells) / (classes == 1).sum()
        np.testing.assert_allclose(found, wanted[start : start + n_cells], atol=0.02)
        np.testing.assert_allclose(moved[classes == 0, place], values[classes == 0, place], atol=1e-6)
        # who is above whom stays
        order = np.argsort(values[classes == 1, place])
        assert (np.diff(moved[classes == 1, place][order]) >= 0).all()
        start += n_cells
    numbers = [place for place, _ in VECTORS.ends]
    others = np.setdiff1d(np.arange(VECTORS.dimension), numbers)
    assert (moved[:, others] == values[:, others]).all()


def test_a_law_of_one_cell():
    after = BEFORE.copy()
    after[0, : CELLS[0]] = np.eye(CELLS[0])[1]
    moved = laws(after).ranks(np.random.default_rng(0).random((1000, VECTORS.dimension)), np.zeros(1000, int), VECTORS)
    place, ends = VECTORS.ends[0]
    assert (np.searchsorted(ends, moved[:, place], side="right") == 1).mean() > 0.99


def test_a_strangers_laws():
    arrays = laws(BEFORE).to_arrays()
    again = ClassLaws.from_arrays(arrays, VECTORS, 2)
    np.testing.assert_array_equal(again.after, BEFORE)
    for name, array in arrays.items():
        for wrong in (array[:-1], array * np.nan, array.astype(np.float32), array + 1e9):
            with pytest.raises(ReleaseError, match=name):
                ClassLaws.from_arrays({**arrays, name: wrong}, VECTORS, 2)
