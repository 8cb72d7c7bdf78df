"""Starting centres from noisy grids."""

import numpy as np
import pytest

from sfumato.methods.mixtures.centres import CentreGrid, nearest, random_centres


def test_every_point_of_the_ball_has_a_cell_whose_middle_is_near():
    grid = CentreGrid(2, 8)
    points = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    points = np.concatenate([points, [[1, 1], [-1, -1], [1, -1], [0, 0]]])
    cells = grid.cells(points)
    assert ((cells >= 0) & (cells < grid.n_cells)).all()
    assert np.abs(grid.middles[cells] - points).max() <= 1 / 8 + 1e-12


@pytest.mark.parametrize("noise_std", [0.0, 1.0, 10.0, 60.0])
def test_clusters_are_found_on_a_noisy_grid_however_fine(noise_std):
    """At 60 per cell a cluster's 2,500 records are lost in single cells, and stand out where cells are joined."""
    rng = np.random.default_rng(1)
    truth = np.array([[-0.45, -0.4], [0.45, 0.4], [-0.4, 0.45], [0.4, -0.45]])
    points = truth[rng.integers(0, 4, 10_000)] + 0.05 * rng.standard_normal((10_000, 2))
    grid = CentreGrid(2, 64)
    counts = np.bincount(grid.cells(points), minlength=grid.n_cells) + noise_std * rng.standard_normal(grid.n_cells)
    centres = grid.centres(counts, noise_std, 4, rng)
    assert sorted(nearest(truth, centres)) == [0, 1, 2, 3]
    assert np.linalg.norm(truth - centres[nearest(truth, centres)], axis=1).max() < 0.2


def test_noise_alone_gives_centres_in_the_ball():
    rng = np.random.default_rng(2)
    grid = CentreGrid.of(2)
    centres = grid.centres(1000 * rng.standard_normal(grid.n_cells), 1000.0, 5, rng)
    assert centres.shape == (5, 2)
    assert np.linalg.norm(centres, axis=1).max() <= 1 + 1e-12


def test_random_centres_fill_the_ball():
    centres = random_centres(20_000, 3, np.random.default_rng(3))
    norms = np.linalg.norm(centres, axis=1)
    assert norms.max() <= 1
    assert np.mean(norms**3) == pytest.approx(0.5, abs=0.02)


def test_many_dimensions_have_no_grid():
    assert CentreGrid.of(4) is None


def test_a_record_is_assigned_the_same_wherever_it_lies():
    rng = np.random.default_rng(0)
    z = np.repeat(rng.standard_normal((40, 33)), 30, axis=0)[rng.permutation(1200)]
    # centres that are mirror images leave every record on the border, up to rounding
    normal = rng.standard_normal(33)
    z -= np.outer(z @ normal, normal) / (normal @ normal)
    centres = np.stack([normal, -normal])
    whole = nearest(z, centres)
    for start in (1, 2, 3, 511, 700):
        np.testing.assert_array_equal(nearest(z[start:], centres), whole[start:])
