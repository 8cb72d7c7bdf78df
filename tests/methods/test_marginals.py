"""Class-conditional tables, against direct computation."""

import numpy as np
import pytest

from harness.cases import TABLE, table_layout, table_rows
from harness.privacy import FakeRecords, join
from sfumato.columns.kinds import Categorical, Integer
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.marginals import TableLayout, class_cell_counts, fit_marginals
from sfumato.records.engine import reduce
from sfumato.schema.grid import Grid
from sfumato.schema.schema import Schema


def counts_of(rows, layout):
    return reduce(class_cell_counts(layout), FakeRecords([rows])).open_in_mechanism()


def test_counts_are_the_crosstabs():
    layout, rows = table_layout(), join(table_rows(50))
    counts = counts_of(rows, layout)
    classes, start = rows["member"], 0
    for column in layout.features:
        cells = column.cells(rows[column.name])
        for k in (0, 1):
            expected = np.bincount(cells[classes == k], minlength=column.n_cells)
            np.testing.assert_array_equal(counts[k, start : start + column.n_cells], expected)
        start += column.n_cells
    assert start == counts.shape[1]


def test_noiseless_marginals_are_the_shares():
    layout, rows = table_layout(), join(table_rows(200))
    marginals = fit_marginals(Noisy(counts_of(rows, layout), 0.0), layout.features)
    np.testing.assert_allclose(marginals.class_counts, np.bincount(rows["member"]))
    for column, table in zip(layout.features, marginals.tables, strict=True):
        for k in (0, 1):
            cells = column.cells(rows[column.name][rows["member"] == k])
            np.testing.assert_allclose(table[k], np.bincount(cells, minlength=column.n_cells) / cells.size, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise_std", [1.0, 100.0, 1e6])
def test_marginals_are_probabilities_whatever_the_noise(seed, noise_std):
    rng, layout = np.random.default_rng(seed), table_layout()
    shape = class_cell_counts(layout).zero().shape
    marginals = fit_marginals(Noisy(rng.standard_normal(shape) * noise_std, noise_std), layout.features)
    assert (marginals.class_counts > 0).all()
    assert marginals.class_shares.sum() == pytest.approx(1)
    for table in marginals.tables:
        assert (table >= 0).all()
        np.testing.assert_allclose(table.sum(axis=1), 1)


def test_shrinking_helps_a_small_class():
    """A class of 30 records under noise of 10 per cell is nearer the truth when drawn toward the pool."""
    rng = np.random.default_rng(0)
    schema = Schema(columns={"v": Integer(lower=0, upper=29), "y": Categorical(categories=("a", "b"))}, rows=1)
    columns = TableLayout(Grid.of(schema, numeric_cells=30), 1).features
    truth = rng.dirichlet(np.full(30, 2.0))
    errors, raw_errors = [], []
    for _ in range(50):
        counts = np.stack([3000 * truth, 30 * truth]) + 10 * rng.standard_normal((2, 30))
        errors.append(np.abs(fit_marginals(Noisy(counts, 10.0), columns).tables[0][1] - truth).sum())
        raw = np.maximum(counts[1], 0)
        raw_errors.append(np.abs(raw / raw.sum() - truth).sum())
    assert np.mean(errors) < 0.4 * np.mean(raw_errors)


def test_table_is_the_one_the_schema_says():
    assert table_layout().n_classes == 2
    assert TableLayout(Grid.of(TABLE, numeric_cells=8), None).n_classes == 1


class TestColumnsOfOneKind:
    """Their noise is shared as far as they are alike."""

    def errors(self, truths, noise_std):
        """Mean absolute errors of the pooled shares, with columns of one kind and with columns of different kinds."""
        n, (n_columns, cells) = 4_000, truths.shape
        found = []
        for same in (True, False):
            starts = np.zeros(n_columns, dtype=int) if same else 1 + np.arange(n_columns)
            names = {f"v{j}": Integer(lower=int(a) + 1, upper=int(a) + cells) for j, a in enumerate(starts)}
            schema = Schema(columns={**names, "y": Categorical(categories=("a", "b"))}, rows=n)
            columns = TableLayout(Grid.of(schema, numeric_cells=cells), n_columns).features
            rng = np.random.default_rng(0)
            counts = np.concatenate([np.stack([3_000 * p, 1_000 * p]) for p in truths], axis=1)
            noisy = Noisy(counts + noise_std * rng.standard_normal(counts.shape), noise_std)
            marginals = fit_marginals(noisy, columns)
            pooled = np.stack([marginals.pooled(j) for j in range(n_columns)])
            found.append(np.abs(pooled - truths).sum(axis=1).mean())
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
