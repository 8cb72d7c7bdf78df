"""Class-conditional second moments, against direct computation."""

import numpy as np
import pytest

from harness.cases import chain_columns, table_layout, table_rows
from harness.privacy import FakeRecords, join
from sfumato.data.engine import reduce
from sfumato.data.kinds import Categorical
from sfumato.data.schema import Schema
from sfumato.encoders.grid import Grid
from sfumato.learners.marginals import ClassCellCounts, TableLayout, fit_marginals
from sfumato.learners.moments import ClassSecondMoments, column_models, expected_norm, fit_chain
from sfumato.mechanisms.queries import Noisy


def counts_of(rows, layout):
    return reduce(ClassCellCounts(layout), FakeRecords([rows])).open_in_mechanism()


def test_moments_are_those_of_the_clipped_vectors():
    layout, rows = table_layout(), join(table_rows(50))
    columns = chain_columns(scored=True)
    statistic = ClassSecondMoments(layout, columns, clip_norm=1.2)
    total = reduce(statistic, FakeRecords([rows])).open_in_mechanism()
    expected = np.zeros_like(total)
    for i, k in enumerate(rows["member"]):
        parts = [
            model.class_blocks(int(k)).of(column.cells(rows[column.name][i : i + 1]))[0]
            for model, column in zip(columns, layout.features, strict=True)
        ]
        vector = np.concatenate(parts)
        vector *= min(1.0, 1.2 / np.linalg.norm(vector)) * (1 - 1e-6)
        expected[k] += np.outer(vector, vector)
    np.testing.assert_allclose(total, expected, rtol=2e-5, atol=4e-5)


def test_expected_norm_is_the_root_mean_square_norm():
    layout, columns = table_layout(), chain_columns(scored=False)
    rng = np.random.default_rng(0)
    statistic = ClassSecondMoments(layout, columns, clip_norm=1e9)
    roots = []
    for k in (0, 1):
        cells = [rng.choice(c.probabilities.shape[1], 40_000, p=c.probabilities[k]) for c in columns]
        roots.append(np.sqrt((statistic.vectors(k, cells) ** 2).sum(axis=1).mean()))
    assert expected_norm(columns) == pytest.approx(max(roots), rel=0.02)


def test_chain_without_noise_has_the_two_way_tables():
    """Records with strong dependence: the chain's pairs are near the real ones, where independence is far off."""
    rng = np.random.default_rng(0)
    n = 40_000
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.7, a, rng.integers(0, 3, n))
    c = np.where(rng.random(n) < 0.5, (b + 1) % 3, rng.integers(0, 3, n))
    labels = ("x", "y", "z")
    schema = Schema(columns={name: Categorical(categories=labels) for name in "abc"}, rows=n)
    layout = TableLayout(Grid.of(schema, numeric_cells=8), None)
    rows = {"a": a.astype(np.int32), "b": b.astype(np.int32), "c": c.astype(np.int32)}
    marginals = fit_marginals(Noisy(counts_of(rows, layout), 0.0), layout.features)
    columns = column_models(marginals, layout.features, level_groups=8, numeric_groups=8)
    statistic = ClassSecondMoments(layout, columns, 2 * expected_norm(columns))
    moments = Noisy(reduce(statistic, FakeRecords([rows])).open_in_mechanism(), 0.0, symmetric=True)
    chain = fit_chain(moments, marginals, columns).calibrated(20_000, rng)
    _, cells = chain.sample(n, rng)
    for i, j in ((0, 1), (1, 2), (0, 2)):
        real = np.bincount(3 * rows["abc"[i]] + rows["abc"[j]], minlength=9) / n
        drawn = np.bincount(3 * cells[:, i] + cells[:, j], minlength=9) / n
        independent = np.outer(real.reshape(3, 3).sum(1), real.reshape(3, 3).sum(0)).ravel()
        assert np.abs(real - drawn).sum() / 2 < 0.015
        assert np.abs(real - drawn).sum() < 0.25 * np.abs(real - independent).sum() or i + j == 2
