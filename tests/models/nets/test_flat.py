import numpy as np
import pytest

from harness.cases import TABLE, image_rows, image_schema, table_rows
from harness.privacy import join
from sfumato.methods.nets.decoding import flat_dimension
from sfumato.models.images.coefficients import ImageLayout
from sfumato.models.nets.flat import ImageVectors, RankVectors
from sfumato.schema.grid import Grid


def ranks(cells: int = 8):
    rng = np.random.default_rng(0)
    grid = Grid.of(TABLE, numeric_cells=cells)
    return RankVectors(grid, tuple(rng.dirichlet(np.ones(c.n_cells)) for c in grid.columns))


IMAGES = ImageVectors(ImageLayout.of(image_schema(4, 4)))


@pytest.mark.parametrize(("vectors", "pool"), [(ranks(), table_rows(40)), (IMAGES, image_rows(20))], ids=str)
class TestVectors:
    def test_every_record_is_inside_the_domain_alone_and_in_company(self, vectors, pool):
        together = vectors.encode(join(pool))
        assert together.shape == (len(pool), vectors.dimension)
        assert np.isfinite(together).all()
        assert ((together >= 0) & (together <= 1)).all()
        for row, record in zip(together, pool, strict=True):
            np.testing.assert_array_equal(vectors.encode(record)[0], row)

    def test_parts_cover_a_vector_and_levels_are_one_hot(self, vectors, pool):
        encoded = vectors.encode(join(pool))
        places = np.concatenate([np.arange(vectors.dimension)[part.entries] for part in vectors.parts])
        np.testing.assert_array_equal(places, np.arange(vectors.dimension))
        for part in vectors.parts:
            if part.levels:
                np.testing.assert_array_equal(encoded[:, part.entries].sum(axis=1), 1)

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0])
    def test_any_floats_decode(self, vectors, pool, value):
        rows = vectors.decode(np.full((3, vectors.dimension), value), np.random.default_rng(0))
        assert set(rows) == set(pool[0])


def test_rows_come_back_in_their_cells():
    vectors, rows = ranks(), join(table_rows(60))
    again = vectors.decode(vectors.encode(rows), np.random.default_rng(0))
    cells = vectors.grid.cells(rows)
    positive = np.stack([s[cells[:, j]] > 1e-3 for j, s in enumerate(vectors.shares)], axis=1)
    np.testing.assert_array_equal(vectors.grid.cells(again)[positive], cells[positive])


def test_uniform_ranks_decode_to_the_marginals():
    vectors = ranks()
    rng = np.random.default_rng(1)
    made = vectors.grid.cells(vectors.decode(rng.random((40_000, vectors.dimension)), rng))
    for j, (column, shares) in enumerate(zip(vectors.grid.columns, vectors.shares, strict=True)):
        if column.numeric and not column.kind.nullable:
            found = np.bincount(made[:, j], minlength=column.n_cells) / len(made)
            assert np.abs(found - shares).max() < 0.02


def test_the_dimension_is_public():
    assert flat_dimension(TABLE) == ranks(8).dimension == ranks(3).dimension
    assert flat_dimension(image_schema(4, 4)) == 18


def test_the_typical_norm_is_that_of_rows_of_these_marginals():
    vectors = ranks()
    rng = np.random.default_rng(2)
    cells = np.stack(
        [rng.choice(c.n_cells, 20_000, p=s) for c, s in zip(vectors.grid.columns, vectors.shares, strict=True)], 1
    )
    norms = np.linalg.norm(vectors.encode(vectors.grid.rows(cells, rng)), axis=1)
    assert np.sqrt((norms**2).mean()) == pytest.approx(vectors.typical_norm, rel=0.12)
