"""Location and scale of a class's scores, from tables with and without noise."""

import numpy as np
import pytest

from sfumato.methods.tables.class_tables import Locations, grid_tables, locate, normal_cuts, normal_table


def located(tables, total, noise_std, cuts):
    """What is known of every column from its noisy table."""
    return Locations.of(np.array([locate(total * grid_tables(cuts), table, noise_std) for table in tables]))


def test_cells_share_the_line():
    cuts = normal_cuts(np.array([0.0, 0.2, 0.5, 0.0, 0.3, 0.0]))
    table = normal_table(np.array([0.0, 9.0]), np.array([1.0, 0.1]), cuts)
    np.testing.assert_allclose(table[0], [0.0, 0.2, 0.5, 0.0, 0.3, 0.0], atol=1e-12)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert (table >= 0).all()


def test_the_grid_holds_the_pooled_law_and_laws_on_either_side():
    pooled = np.array([0.1, 0.2, 0.4, 0.3])
    tables = grid_tables(normal_cuts(pooled))
    np.testing.assert_allclose(tables.sum(axis=1), 1.0)
    assert np.abs(tables - pooled).sum(axis=1).min() < 0.1
    assert tables[:, 0].max() > 0.99
    assert tables[:, -1].max() > 0.99


def test_location_and_scale_are_found():
    rng = np.random.default_rng(0)
    cuts = normal_cuts(np.ones(16) / 16)
    means = rng.normal(0, 0.5, 40)
    noisy = [1000 * normal_table(mean, 0.7, cuts) + rng.normal(0, 5, 16) for mean in means]
    found = located(noisy, 1000, 5.0, cuts)
    np.testing.assert_allclose(found.means, means, atol=0.12)
    np.testing.assert_allclose(found.scales, 0.7, atol=0.08)


def test_the_likelihood_is_that_of_normal_noise():
    expected = np.array([[3.0, 4.0], [0.0, 1.0]])
    counts = np.array([2.0, 5.0])
    found = locate(expected, counts, 2.0)
    direct = -((counts - expected) ** 2).sum(axis=1) / 2 / 2.0**2
    assert found[0] - found[1] == pytest.approx(direct[0] - direct[1])
    # counts of records vary by 1 or so even without noise
    np.testing.assert_array_equal(locate(expected, counts, 0.0), locate(expected, counts, 1.0))


def test_noise_alone_is_shrunk():
    """One column's noise moves its best-fitting location by about 0.9; seen beside 500 others, most of it is noise."""
    n, sizes = 500, []
    cuts = normal_cuts(np.ones(8) / 8)
    for seed in range(5):
        noisy = 1000 / 8 + np.random.default_rng(seed).normal(0, 300, (n, 8))
        found = located(noisy, 1000, 300.0, cuts)
        sizes.append(np.sqrt((found.means**2).mean()))
        assert found.scales.mean() == pytest.approx(1.0, abs=0.25)
    # over 20 seeds between 0.12 and 0.22; the largest of the 500 says little: it is noise that happens to be large
    assert max(sizes) < 0.3


def test_any_table_has_a_posterior():
    rng = np.random.default_rng(1)
    cuts = normal_cuts(np.ones(8) / 8)
    lone = located([1e6 * rng.normal(size=8) for _ in range(3)], 1.0, 1e-3, cuts)
    assert np.isfinite(lone.means).all()
    assert np.isfinite(lone.scales).all()
