"""Shares of every column's cells, against direct computation."""

import numpy as np
import pytest

from harness.cases import TABLE, table_rows
from harness.privacy import FakeRecords, join
from sfumato.columns.kinds import Integer
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.nets.decoding import cell_counts, cell_shares
from sfumato.records.engine import reduce
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema

GRID = Grid.of(TABLE, numeric_cells=8)


def counts_of(rows):
    return reduce(cell_counts(GRID), FakeRecords([rows])).open_in_mechanism()


def expected(rows):
    return [np.bincount(column.cells(rows[column.name]), minlength=column.n_cells) for column in GRID.columns]


def test_counts_are_the_tables():
    rows = join(table_rows(50))
    np.testing.assert_array_equal(counts_of(rows), [np.concatenate(expected(rows))])


def test_noiseless_shares_are_the_shares():
    rows = join(table_rows(200))
    shares = cell_shares(Noisy(counts_of(rows), 0.0), GRID.columns)
    for found, counts in zip(shares, expected(rows), strict=True):
        np.testing.assert_allclose(found, counts / counts.sum(), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise_std", [1.0, 100.0, 1e6])
def test_they_are_probabilities_whatever_the_noise(seed, noise_std):
    rng = np.random.default_rng(seed)
    noisy = Noisy(rng.standard_normal(cell_counts(GRID).zero().shape) * noise_std, noise_std)
    for column, shares in zip(GRID.columns, cell_shares(noisy, GRID.columns), strict=True):
        assert shares.shape == (column.n_cells,)
        assert (shares >= 0).all()
        assert shares.sum() == pytest.approx(1)


class TestColumnsOfOneKind:
    """Their noise is shared as far as they are alike."""

    def errors(self, truths, noise_std):
        """Mean absolute errors of the shares, with columns of one kind and with columns of different kinds."""
        n, (n_columns, cells) = 4_000, truths.shape
        found = []
        for same in (True, False):
            starts = np.zeros(n_columns, dtype=int) if same else 1 + np.arange(n_columns)
            names = {f"v{j}": Integer(lower=int(a) + 1, upper=int(a) + cells) for j, a in enumerate(starts)}
            columns = Grid.of(Schema(columns=names, rows=n), numeric_cells=cells).columns
            rng = np.random.default_rng(0)
            counts = n * truths.reshape(1, -1)
            noisy = Noisy(counts + noise_std * rng.standard_normal(counts.shape), noise_std)
            shares = np.stack(cell_shares(noisy, columns))
            found.append(np.abs(shares - truths).sum(axis=1).mean())
        return found

    def test_alike(self):
        truths = np.tile(np.random.default_rng(1).dirichlet(np.full(12, 3.0)), (50, 1))
        together, apart = self.errors(truths, 50.0)
        assert together < 0.4 * apart

    def test_unlike(self):
        truths = np.random.default_rng(1).dirichlet(np.full(12, 1.0), 50)
        together, apart = self.errors(truths, 20.0)
        assert together < 1.02 * apart

    def test_without_noise_nothing_moves(self):
        truths = np.random.default_rng(1).dirichlet(np.full(12, 1.0), 5)
        np.testing.assert_allclose(self.errors(truths, 0.0), 0, atol=1e-12)
