"""Location and scale of a class's scores, from tables with and without noise."""

import numpy as np
import pytest

from sfumato.models.normal_classes import locate_classes, normal_cuts, normal_table


def test_cells_share_the_line():
    cuts = normal_cuts(np.array([0.0, 0.2, 0.5, 0.0, 0.3, 0.0]))
    table = normal_table(np.array([0.0, 9.0]), np.array([1.0, 0.1]), cuts)
    np.testing.assert_allclose(table[0], [0.0, 0.2, 0.5, 0.0, 0.3, 0.0], atol=1e-12)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert (table >= 0).all()


def test_location_and_scale_are_found():
    rng = np.random.default_rng(0)
    cuts = [normal_cuts(np.ones(16) / 16)] * 40
    means = rng.normal(0, 0.5, 40)
    tables = [1000 * normal_table(mean, 0.7, edges) for mean, edges in zip(means, cuts, strict=True)]
    noisy = [table + rng.normal(0, 5, 16) for table in tables]
    found = locate_classes(noisy, np.full(40, 1000.0), 5.0, cuts)
    np.testing.assert_allclose(found.means, means, atol=0.12)
    np.testing.assert_allclose(found.scales, 0.7, atol=0.08)
    better = found.observed(means, np.full(40, 0.01))
    assert np.abs(better.means - means).mean() < 0.05


def test_noise_alone_is_shrunk():
    """One column's noise moves its best-fitting location by about 0.9; seen beside 500 others, most of it is noise."""
    n, found = 500, []
    cuts = [normal_cuts(np.ones(8) / 8)] * n
    for seed in range(5):
        noisy = list(1000 / 8 + np.random.default_rng(seed).normal(0, 300, (n, 8)))
        located = locate_classes(noisy, np.full(n, 1000.0), 300.0, cuts)
        found.append(np.sqrt((located.means**2).mean()))
        assert located.scales.mean() == pytest.approx(1.0, abs=0.25)
    # over 20 seeds between 0.12 and 0.22; the largest of the 500 says little: it is noise that happens to be large
    assert max(found) < 0.3


def test_any_table_has_a_posterior():
    rng = np.random.default_rng(1)
    cuts = [normal_cuts(np.ones(8) / 8)] * 3
    lone = locate_classes([1e6 * rng.normal(size=8) for _ in range(3)], np.full(3, 1.0), 1e-3, cuts)
    assert np.isfinite(lone.means).all()
    assert np.isfinite(lone.scales).all()
