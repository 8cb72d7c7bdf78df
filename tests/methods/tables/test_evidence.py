"""Noisy moments are shrunk by what they show, and what clipping took is put back."""

import numpy as np
import pytest

from sfumato.methods.tables.evidence import Evidence, copies
from sfumato.methods.tables.features import ColumnShares, Waves, level_features, number_features


def rng(seed=0):
    return np.random.default_rng(seed)


def number(runs=20, waves=6):
    shares, cells = np.full(runs, 1 / runs), np.arange(runs)
    return ColumnShares(shares, cells, cells, number_features(shares, False, Waves(waves, 0.8)), 0.0, runs)


def labels(*shares):
    law, cells = np.array(shares), np.arange(len(shares))
    return ColumnShares(law, cells, cells, level_features(law), 0.0, 0)


def runs_of(columns, n, rho, seed=0):
    """Rows of a Gaussian copula of one correlation, as runs."""
    common = rng(seed).standard_normal(n)
    made = []
    for j, column in enumerate(columns):
        z = np.sqrt(rho) * common + np.sqrt(1 - rho) * rng(seed + 1 + j).standard_normal(n)
        ranks = np.argsort(np.argsort(z)) / n
        made.append(np.minimum(np.searchsorted(np.cumsum(column.shares), ranks, side="right"), column.shares.size - 1))
    return np.stack(made, axis=1)


def functions(columns, runs, *, weighted=False):
    parts = [
        column.features.values[runs[:, j]] * (np.sqrt(column.features.weights) if weighted else 1.0)
        for j, column in enumerate(columns)
    ]
    return np.concatenate(parts, axis=1)


def evidence(columns, runs, noise=0.0, seed=9, **more):
    x = functions(columns, runs)
    roots = np.sqrt(np.concatenate([column.features.weights for column in columns]))
    spread = noise / np.outer(roots, roots)
    drawn = rng(seed).standard_normal(spread.shape)
    drawn = np.triu(drawn) + np.triu(drawn, 1).T
    return Evidence(x.T @ x / len(x) + spread * drawn, spread**2, columns, **more)


def error(found, truth, across):
    return float(((found - truth)[across] ** 2).mean())


def test_without_noise_moments_are_what_was_measured():
    columns = [number(), labels(0.5, 0.3, 0.2)]
    found = evidence(columns, runs_of(columns, 5_000, 0.5))
    np.testing.assert_array_equal(found.shrunk(found.values, found.variances)[found.across], found.values[found.across])
    assert not found.is_noisy


@pytest.mark.parametrize("noise", [0.002, 0.01, 0.05])
def test_shrunk_moments_are_nearer_to_the_truth_than_noisy_ones(noise):
    columns = [number() for _ in range(5)] + [labels(0.5, 0.3, 0.2), labels(0.9, 0.1)]
    runs = runs_of(columns, 40_000, 0.4)
    truth, noisy = evidence(columns, runs).values, evidence(columns, runs, noise)
    found = noisy.shrunk(noisy.values, noisy.variances)
    before, after = (error(m, truth, noisy.across) for m in (noisy.values, found))
    assert after < 0.4 * before
    np.testing.assert_allclose(found, found.T)
    assert not found[~noisy.across].any()


def test_noise_alone_is_shrunk_to_nothing():
    columns = [number() for _ in range(6)]
    noisy = evidence(columns, runs_of(columns, 40_000, 0.0), 0.02)
    found = noisy.shrunk(noisy.values, noisy.variances)
    assert error(found, 0.0, noisy.across) < 0.01 * error(noisy.values, 0.0, noisy.across)


def test_two_numbers_lie_about_their_copula():
    """Of a strong correlation all orders are known by the first ones."""
    columns = [number(waves=10) for _ in range(8)]
    runs = runs_of(columns, 60_000, 0.9)
    truth, noisy = evidence(columns, runs).values, evidence(columns, runs, 0.02)
    copula = noisy._copula(noisy.values, noisy.variances)
    assert error(copula, truth, noisy.across) < 0.01
    found = noisy.shrunk(noisy.values, noisy.variances)
    assert error(found, truth, noisy.across) < 0.02 * error(noisy.values, truth, noisy.across)


def test_pairs_that_were_not_measured_are_left_out():
    columns = [number(waves=3) for _ in range(3)]
    noisy = evidence(columns, runs_of(columns, 5_000, 0.5), 0.01)
    variances = noisy.variances.copy()
    variances[:3, 3:6] = variances[3:6, :3] = np.inf
    found = Evidence(noisy.values, variances, columns).shrunk(noisy.values, variances)
    assert not found[:3, 3:6].any()
    assert np.abs(found[:3, 6:]).max() > 0.1


def test_what_all_columns_share_is_kept_where_each_has_one_feature():
    columns = [number(waves=1) for _ in range(40)]
    runs = runs_of(columns, 20_000, 0.3)
    truth = evidence(columns, runs).values
    alone, together = (evidence(columns, runs, 0.2, few=few) for few in (False, True))
    errors = [error(e.shrunk(e.values, e.variances), truth, e.across) for e in (alone, together)]
    assert errors[1] < 0.5 * errors[0]


class Rows:
    def __init__(self, runs):
        self.runs = runs

    def draw(self, n, generator):
        return self.runs[generator.integers(0, len(self.runs), n)]


def test_what_clipping_took_is_put_back_by_the_law():
    columns = [number(waves=4) for _ in range(4)] + [labels(0.97, 0.03)]
    runs = runs_of(columns, 40_000, 0.6)
    x = functions(columns, runs, weighted=True)
    norm = float(np.sqrt((x**2).sum(axis=1).mean()))
    factors = np.minimum(1.0, norm**2 / (x**2).sum(axis=1))
    roots = np.sqrt(np.concatenate([column.features.weights for column in columns]))
    clipped, truth = (x.T @ (x * f[:, None]) / len(x) / np.outer(roots, roots) for f in (factors, np.ones(len(x))))
    found = Evidence(clipped, np.full(clipped.shape, 1e-9), columns, clip_norm=norm)
    lost = error(clipped, truth, found.across)
    assert error(found.unclipped(Rows(runs))[0], truth, found.across) < 0.02 * lost
    assert error(found.guessed()[0], truth, found.across) < 0.5 * lost


def test_labels_that_are_kept_show_in_all_moments_together():
    law = rng(1).dirichlet(np.full(20, 2.0))
    columns = [labels(*law), labels(*law)]
    first = rng(2).choice(20, 30_000, p=law)
    runs = np.stack([first, np.where(rng(3).random(30_000) < 0.7, first, rng(4).choice(20, 30_000, p=law))], axis=1)
    truth, noisy = evidence(columns, runs).values, evidence(columns, runs, 0.01)
    centre = copies(columns, {1: 0}, noisy)
    assert error(centre, truth, noisy.across) < 0.1 * error(noisy.values, truth, noisy.across)
    whole = Evidence(noisy.values, noisy.variances, columns, centres=[centre])
    errors = [error(e.shrunk(e.values, e.variances), truth, e.across) for e in (noisy, whole)]
    assert errors[1] < errors[0]
