"""Noisy k-means: golden distances and accounts, scikit-learn without noise, and robustness."""

import math
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from harness.cases import vectors_of
from harness.privacy import FakeRecords, accept_only_unit_scale
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.mechanisms.queries import noisy_sum
from sfumato.methods.mixtures.centres import CentreGrid, random_centres
from sfumato.methods.mixtures.kmeans import (
    ClusterSums,
    fit_kmeans,
    grid_stage_name,
    kmeans_replace_distance,
    kmeans_stages,
)
from sfumato.privacy.accounting import account
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Neighbours, Plan, Stage
from sfumato.records.engine import reduce


@pytest.mark.parametrize(("weights", "expected"), [((1, 1), 2.0), ((2, 1), 3.1623), ((0.3, 1), 2.0)])
def test_golden_replace_distances(weights, expected):
    assert kmeans_replace_distance(*weights) == pytest.approx(expected, rel=1e-4)


def test_golden_account():
    """Standard deviations 40√2 on counts and on unit-norm sums: multiplier 40 per iteration."""
    weights = (1 / (40 * math.sqrt(2)),) * 2
    norm = math.hypot(*weights)
    stage = Stage(
        name="kmeans", noise_multiplier=1 / norm, count=20, replace_distance=kmeans_replace_distance(*weights) / norm
    )
    assert stage.noise_multiplier == pytest.approx(40)
    assert account(Plan([stage]), 1e-5).epsilon == pytest.approx(0.384692, rel=1e-4)
    assert account(Plan([stage]), 1e-5, neighbours=Neighbours.REPLACE_ONE).epsilon == pytest.approx(0.561285, rel=1e-4)


def clusters(n=3000, k=4, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.6, 0.6, (k, 2))
    points = centres[rng.integers(0, k, n)] + 0.06 * rng.standard_normal((n, 2))
    return points[np.linalg.norm(points, axis=1) < 1]


def fitted(points, start, *, iterations=6, noise=None, multiplier=1.0, k=4, **settings):
    grid = start if isinstance(start, CentreGrid) else None
    stages = kmeans_stages("kmeans", n_clusters=k, dimension=points.shape[1], iterations=iterations, grid=grid)
    ledger = Ledger(Plan(stages).scaled(multiplier), None)
    result = fit_kmeans(
        FakeRecords([{"z": points[:500]}, {"z": points[500:]}]), vectors_of, start=start, n_clusters=k, stage="kmeans",
        ledger=ledger, noise=noise or NoNoise(), rng=np.random.default_rng(0), **settings,
    )  # fmt: skip
    ledger.close()
    return result


def test_without_noise_it_is_lloyds_algorithm_of_scikit_learn():
    points = clusters()
    start = points[:4]
    centres, sizes, _ = fitted(points, start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = KMeans(4, init=start, n_init=1, max_iter=6, tol=0, algorithm="lloyd").fit(points)
    np.testing.assert_allclose(centres, theirs.cluster_centers_, atol=2e-6)
    assert sizes.sum() == pytest.approx(len(points))


def test_a_bought_grid_and_noise_find_the_clusters():
    points = clusters()
    best = -KMeans(4, n_init=5, random_state=0).fit(points).score(points) / len(points)
    centres, _, released = fitted(points, CentreGrid.of(2), noise=SeededNoise(0), multiplier=3.0)
    error = np.mean(((points[:, None] - centres) ** 2).sum(axis=-1).min(axis=1))
    assert error < 1.1 * best
    assert len(released) == 7


@pytest.mark.parametrize("n", [0, 1, 30])
def test_noise_far_above_the_records_still_gives_centres_in_the_ball(n):
    points = clusters()[:n]
    for start in (CentreGrid.of(2), random_centres(4, 2, np.random.default_rng(1))):
        centres, _, _ = fitted(points, start, noise=SeededNoise(3), multiplier=1000.0)
        assert np.isfinite(centres).all()
        assert np.linalg.norm(centres, axis=1).max() <= 1 + 1e-9


def test_both_blocks_have_the_stated_noise():
    points, centres, repeats = clusters(), clusters()[:4], 2000
    statistic = ClusterSums(vectors_of, centres, 0.5, 0.8)
    ledger = Ledger(Plan([Stage(name="kmeans", noise_multiplier=5.0, count=repeats + 1)]), None)
    sums = reduce(statistic, FakeRecords([{"z": points}]))
    sizes, exact, _ = statistic.of(noisy_sum(sums, stage="kmeans", ledger=ledger, noise=NoNoise()))
    noise, errors = SeededNoise(3), ([], [])
    for _ in range(repeats):
        found = statistic.of(noisy_sum(sums, stage="kmeans", ledger=ledger, noise=noise))
        assert found[2] == pytest.approx(5 * math.hypot(0.5, 0.8) / 0.5, rel=1e-5)
        errors[0].append((found[0] - sizes) / found[2])
        errors[1].append((found[1] - exact).ravel() / (found[2] * 0.5 / 0.8))
    for block in errors:
        accept_only_unit_scale(np.concatenate(block))


def test_stages_of_a_grid_share_the_budget():
    stages = kmeans_stages("kmeans", n_clusters=3, dimension=2, iterations=5, grid=CentreGrid.of(2))
    assert [stage.name for stage in stages] == [grid_stage_name("kmeans"), "kmeans"]
    assert sum(stage.count / stage.noise_multiplier**2 for stage in stages) == pytest.approx(1)
