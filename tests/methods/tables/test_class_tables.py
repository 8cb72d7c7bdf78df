"""Laws in every class: those of the counts without noise, raked to the pooled law, and found again in noise."""

import numpy as np
import pytest
from scipy import stats

from sfumato.methods.tables.class_tables import ClassEvidence, class_tables, normal_cuts, normal_table
from sfumato.methods.tables.features import Features, level_features, number_features

N = 10_000


def rng(seed=0):
    return np.random.default_rng(seed)


def evidence(tables, class_counts, std=0.0, *, mean_std=None, ordered=True, drawn=None, counted=None, seed=0):
    """What is released of a column whose cells have these laws in every class, shape (k, c)."""
    shares = class_counts @ tables / class_counts.sum()
    cells = np.arange(shares.size)
    drawn = cells if drawn is None else drawn
    counted = cells if counted is None else counted
    pooled = np.bincount(drawn, shares)
    features = number_features(pooled, False, 3) if ordered else level_features(pooled)
    counts = np.array([np.bincount(counted, row) for row in tables]) * class_counts[:, None]
    mean_std = std if mean_std is None else mean_std
    deviations = np.repeat(mean_std / class_counts[:, None], features.size, axis=1)
    means = tables @ features.values[drawn]
    return ClassEvidence(
        shares,
        counted,
        drawn,
        features,
        counts + std * rng(seed).standard_normal(counts.shape),
        std,
        pooled.size if ordered else 0,
        means + deviations * rng(seed + 1).standard_normal(means.shape),
        deviations**2,
    )


def shifted(pooled, means, scale=1.0):
    """Classes that shift a column's normal scores."""
    return normal_table(np.array(means), np.full(len(means), scale), normal_cuts(pooled))


def assert_raked(column, table, class_counts):
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    np.testing.assert_allclose(class_counts @ table / class_counts.sum(), column.pooled(), atol=1e-3)


COUNTS = np.array([0.2, 0.5, 0.3]) * N


@pytest.mark.parametrize("ordered", [True, False])
def test_without_noise_laws_are_those_of_the_counts(ordered):
    tables = rng().dirichlet(np.full(12, 2.0), 3)
    column = evidence(tables, COUNTS, ordered=ordered)
    (found,) = class_tables([column], COUNTS)
    np.testing.assert_allclose(found, tables, atol=2e-4)


def test_what_only_runs_were_counted_of_is_told_by_features():
    """Cells are drawn one by one and were counted in pairs: a slope within the pairs shows in the means of scores."""
    tables = shifted(np.full(24, 1 / 24), [-0.8, 0.0, 0.9])
    column = evidence(tables, COUNTS, counted=np.arange(24) // 2)
    (found,) = class_tables([column], COUNTS)
    assert np.abs(found - tables).sum(axis=1).max() / 2 < 0.02


def test_cells_are_drawn_in_runs():
    tables = rng().dirichlet(np.full(12, 2.0), 3)
    drawn = np.arange(12) // 3
    column = evidence(tables, COUNTS, drawn=drawn)
    (found,) = class_tables([column], COUNTS)
    np.testing.assert_allclose(found, [np.bincount(drawn, row) for row in tables], atol=1e-3)


@pytest.mark.parametrize("std", [0.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("ordered", [True, False])
def test_the_mean_over_classes_is_the_pooled_law(std, ordered):
    columns = [evidence(rng(j).dirichlet(np.full(16, 2.0), 3), COUNTS, std, ordered=ordered, seed=j) for j in range(3)]
    for column, table in zip(columns, class_tables(columns, COUNTS), strict=True):
        assert_raked(column, table, COUNTS)


def test_a_shifted_class_is_found_in_noise():
    """Counts of a class that noise swamps: 30 cells of 67 records each, and noise of 60."""
    pooled, counts = stats.norm(15, 5).pdf(np.arange(30)), np.array([0.2, 0.8]) * N
    tables = shifted(pooled / pooled.sum(), [1.0, -0.25], 0.9)
    ours, raw = [], []
    for seed in range(5):
        column = evidence(tables, counts, 60.0, mean_std=100.0, seed=seed)
        (found,) = class_tables([column], counts)
        assert_raked(column, found, counts)
        ours.append(np.abs(found[0] - tables[0]).sum() / 2)
        clipped = np.maximum(column.counts[0], 0)
        raw.append(np.abs(clipped / clipped.sum() - tables[0]).sum() / 2)
    apart = np.abs(tables[0] - counts @ tables / counts.sum()).sum() / 2
    assert np.mean(ours) < 0.06 < 0.2 < np.mean(raw)
    assert np.mean(ours) < apart / 4


def test_means_of_features_alone_tell_of_a_shift():
    tables = shifted(np.full(20, 0.05), [0.7, -0.7])
    counts = np.full(2, N / 2)
    column = evidence(tables, counts, 1e5, mean_std=50.0)
    (found,) = class_tables([column], counts)
    assert np.abs(found - tables).sum(axis=1).max() / 2 < 0.06


def test_a_label_that_a_class_likes_is_found_in_noise():
    tables = np.array([[0.5, 0.2, 0.2, 0.1], [0.1, 0.3, 0.3, 0.3]])
    counts = np.full(2, N / 2)
    errors = []
    for seed in range(5):
        (found,) = class_tables([evidence(tables, counts, 100.0, ordered=False, seed=seed)], counts)
        errors.append(np.abs(found - tables).max())
    assert np.mean(errors) < 0.03


@pytest.mark.parametrize("ordered", [True, False])
def test_noise_alone_tells_classes_little_apart(ordered):
    tables = np.tile(rng(3).dirichlet(np.full(16, 3.0)), (3, 1))
    ours, raw = [], []
    for seed in range(5):
        columns = [evidence(tables, COUNTS, 300.0, ordered=ordered, seed=10 * seed + j) for j in range(3)]
        for column, found in zip(columns, class_tables(columns, COUNTS), strict=True):
            ours.append(np.abs(found - tables).sum() / 2)
            raw.append(np.abs(column.counts / COUNTS[:, None] - tables).sum() / 2)
    assert np.mean(ours) < np.mean(raw) / 3


def test_many_classes():
    """A hundred classes of 100 records each, shifted every one; noise of 10."""
    k = 100
    counts = np.full(k, 100.0)
    means = np.linspace(-1, 1, k)
    tables = shifted(np.full(16, 1 / 16), means, 0.8)
    labels = rng(1).dirichlet(np.full(5, 2.0), k)
    columns = [evidence(tables, counts, 10.0), evidence(labels, counts, 10.0, ordered=False)]
    found = class_tables(columns, counts)
    for column, table in zip(columns, found, strict=True):
        assert table.shape == (k, len(column.pooled()))
        assert_raked(column, table, counts)
    places = found[0] @ np.arange(16), tables @ np.arange(16)
    assert np.corrcoef(*places)[0, 1] > 0.97
    assert np.corrcoef(found[1].ravel(), labels.ravel())[0, 1] > 0.9


@pytest.mark.parametrize("std", [0.0, 10.0, 1e4])
def test_constant_and_missing_columns_and_empty_classes(std):
    counts = np.array([1.0, 1.0, float(N)])
    constant = Features(np.zeros((1, 0)), np.zeros(0), np.zeros(0, int))
    one = ClassEvidence(
        np.ones(1), np.zeros(1, int), np.zeros(1, int), constant, counts[:, None], std, 1,
        np.zeros((3, 0)), np.zeros((3, 0)),
    )  # fmt: skip
    pooled = np.append(np.zeros(6), 1.0)
    features = number_features(pooled, True, 3)
    missing = ClassEvidence(
        pooled, np.arange(7), np.arange(7), features, counts[:, None] * pooled, std, 6,
        np.zeros((3, features.size)), np.full((3, features.size), std**2),
    )  # fmt: skip
    for column, table in zip((one, missing), class_tables([one, missing], counts), strict=True):
        np.testing.assert_allclose(table, np.tile(column.pooled(), (3, 1)), atol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_any_evidence_has_tables(seed):
    """Exact counts beside absurd means, one record beside a million: by then the budget is spent."""
    draw = rng(seed)
    counts = 10.0 ** draw.uniform(0, 6, int(draw.choice([2, 3, 30])))
    columns = []
    for _ in range(12):
        size, ordered = int(draw.choice([1, 2, 5, 40])), bool(draw.random() < 0.5)
        shares = draw.dirichlet(np.full(size, 0.1)) if draw.random() < 0.7 else np.eye(size)[0]
        features = number_features(shares, False, int(draw.choice([1, 3, 14]))) if ordered else level_features(shares)
        std, cells = float(draw.choice([0.0, 1e-9, 1.0, 1e6])), np.arange(size)
        columns.append(
            ClassEvidence(
                shares, cells, cells, features,
                draw.standard_normal((counts.size, size)) * std + shares * counts[:, None],
                std, size if ordered else 0,
                draw.standard_normal((counts.size, features.size)) * draw.choice([0, 1e-6, 1, 1e4]),
                np.full((counts.size, features.size), draw.choice([0.0, 1e-12, 1.0, 1e8])),
            )
        )  # fmt: skip
    for table in class_tables(columns, counts):
        assert (table >= 0).all()
        np.testing.assert_allclose(table.sum(axis=1), 1.0)
