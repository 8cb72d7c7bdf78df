"""Private k-means: its account, its rule, and what it does without noise."""

from __future__ import annotations

import math
import operator
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from harness.cases import STATISTICS, cluster_sums, feature_rows
from harness.privacy import (
    FakeRecords,
    accept_only_unit_scale,
    check_locality,
    check_norm_property,
    join,
    search_neighbours,
)
from sfumato.errors import ConfigError, LedgerError
from sfumato.mechanisms.contributions import clip_rows
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.mechanisms.queries import noisy_sum
from sfumato.methods.mixtures.centres import CentreGrid, nearest, random_centres, random_directions
from sfumato.methods.mixtures.kmeans import (
    ClusterSums,
    ReadSums,
    Weights,
    fit_kmeans,
    grid_stage_name,
    kmeans_stage,
    kmeans_stages,
    moved,
    reach_of,
)
from sfumato.privacy.accounting import account
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Neighbours, Plan, Stage
from sfumato.records.engine import reduce

FULL_EFFORT = True  # costs are held to exact figures

VECTORS = operator.itemgetter("z")
RNG = np.random.default_rng(0)


def blobs(n=1500, d=6, k=4, seed=0):
    rng = np.random.default_rng(seed)
    centres = random_directions(k, d, rng) * 0.8
    z = centres[rng.integers(0, k, n)] + 0.05 * rng.standard_normal((n, d))
    return z / np.maximum(1, np.linalg.norm(z, axis=1))[:, None], centres


def fitted(z, start, iterations, noise, multiplier=1.0, chunks=1, **options):
    """Fit with noise of a multiplier per release."""
    grid = start if isinstance(start, CentreGrid) else None
    stages = kmeans_stages("k", dimension=z.shape[1], iterations=iterations, grid=grid)
    ledger = Ledger(Plan([replace(stage, noise_multiplier=multiplier) for stage in stages]), None)
    records = FakeRecords([{"z": part} for part in np.array_split(z, chunks)])
    clusters = fit_kmeans(records, VECTORS, start, stage="k", ledger=ledger, noise=noise, **options)
    ledger.close()
    return clusters


@pytest.mark.parametrize(("count", "total", "distance"), [(1, 1, 2.0), (2, 1, 3.1623), (0.3, 1, 2.0)])
def test_golden_replace_distances(count, total, distance):
    assert Weights(count, total).replace_distance == pytest.approx(distance, abs=5e-5)


def test_golden_cost_of_twenty_iterations():
    # standard deviations 40√2 on counts and on sums of unit norm: w₀ = w₁, joint multiplier 40
    both = Weights(*(1 / (40 * math.sqrt(2)),) * 2)
    stage = Stage(
        name="k", noise_multiplier=1 / both.norm, replace_distance=both.replace_distance / both.norm, count=20
    )
    assert stage.noise_multiplier == pytest.approx(40)
    assert account(Plan([stage]), 1e-5).epsilon == pytest.approx(0.384692, rel=1e-4)
    assert account(Plan([stage]), 1e-5, neighbours=Neighbours.REPLACE_ONE).epsilon == pytest.approx(0.561285, rel=1e-4)


@pytest.mark.parametrize("dimension", [1, 4, 200])
def test_weights_share_one_unit_in_proportion_to_one_and_root_d(dimension):
    weights = Weights.of(dimension)
    assert weights.norm == pytest.approx(1)
    assert weights.sum**2 / weights.count**2 == pytest.approx(np.sqrt(dimension))
    # no other division of the same budget has a smaller variance in all, 1/w₀² + d/w₁²
    best = 1 / weights.count**2 + dimension / weights.sum**2
    for share in np.linspace(0.01, 0.99, 99):
        assert 1 / share + dimension / (1 - share) >= best - 1e-9


@pytest.mark.parametrize("grid", [None, CentreGrid.of(2)])
def test_stages_spend_one_budget_and_state_the_distance_of_the_statistic(grid):
    stages = kmeans_stages("k", dimension=2, iterations=5, grid=grid)
    assert [stage.name for stage in stages] == [grid_stage_name("k"), "k"][grid is None :]
    assert sum(stage.count / stage.noise_multiplier**2 for stage in stages) == pytest.approx(1)
    statistic = cluster_sums(3, 2)
    assert stages[-1].replace_distance == statistic.replace_bound / statistic.norm_bound
    assert replace(stages[-1], noise_multiplier=1.0) == kmeans_stage("k", dimension=2, iterations=5)


def test_search_for_neighbours_reaches_the_bound_within_and_between_clusters():
    assert search_neighbours(STATISTICS["feature sums, one cluster"]) == pytest.approx(2 * Weights.of(4).sum, rel=1e-5)
    recentred = search_neighbours(STATISTICS["feature sums, one cluster, recentred"])
    assert 1.9 * Weights.of(4).sum < recentred <= 2 * Weights.of(4).sum
    far = replace(STATISTICS["feature sums"], statistic=cluster_sums(3, 1), pool=feature_rows(20, 1))
    assert search_neighbours(far) <= Weights.of(1).replace_distance


@dataclass(frozen=True, eq=False)
class Interleaved(ClusterSums):
    """The published algorithm, read literally: each cluster moves before the records of the next are found (D7)."""

    def add(self, total, rows):
        z, centres = clip_rows(VECTORS(rows), 1.0), self.centres.copy()
        for k in range(len(centres)):
            members = z[nearest(z, centres) == k]
            total[k, 0] += self.weights.count * len(members)
            total[k, 1:] += self.weights.sum * members.sum(axis=0)
            if len(members):
                # moved far out, so that later clusters find the same records again
                centres[k] = 3 * members.mean(axis=0) - 2


def test_interleaved_assignment_fails_the_harness():
    case = STATISTICS["feature sums"]
    wrong = replace(case, statistic=Interleaved(VECTORS, case.statistic.centres, case.statistic.weights))
    with pytest.raises(AssertionError):
        check_norm_property(wrong)
    with pytest.raises(AssertionError):
        check_locality(wrong, np.random.default_rng(0))


@pytest.mark.parametrize("recentred", [False, True])
@pytest.mark.parametrize("iterations", [1, 2, 5])
@pytest.mark.parametrize("chunks", [1, 7])
def test_without_noise_it_is_lloyds_algorithm(iterations, chunks, recentred):
    z, _ = blobs()
    start = z[RNG.choice(len(z), 5, replace=False)]
    ours = fitted(z, start, iterations, NoNoise(), chunks=chunks, recentred=recentred)
    theirs = KMeans(5, init=start, n_init=1, max_iter=iterations, tol=0, algorithm="lloyd")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs.fit(z)
    np.testing.assert_allclose(ours.centres, theirs.cluster_centers_, atol=2e-6)
    assert ours.counts.sum() == pytest.approx(len(z))


@pytest.mark.parametrize("n", [3, 40_000])
def test_sums_are_those_of_clipped_distances_by_cluster(n):
    z = RNG.uniform(-0.5, 0.5, (n, 3))
    statistic = ClusterSums(VECTORS, z[:3], Weights.of(3), 0.1 * z[:3], 0.5)
    sums = reduce(statistic, FakeRecords([{"z": z}])).open_in_mechanism()
    clusters, weights = nearest(z, z[:3]), Weights.of(3)
    far = clip_rows(z - 0.1 * z[clusters], 0.5) * weights.sum / 0.5
    expected = np.stack([far[clusters == k].sum(axis=0) for k in range(3)])
    np.testing.assert_allclose(sums[:, 1:], expected, atol=n * 1e-7)
    np.testing.assert_allclose(sums[:, 0], weights.count * np.bincount(clusters, minlength=3))


def features_near(centres, n, spread, rng):
    """Vectors of norm 1 about as far from their centre as the centre's norm leaves room for."""
    z = centres[rng.integers(0, len(centres), n)] + spread * rng.standard_normal((n, centres.shape[1]))
    return z / np.linalg.norm(z, axis=1)[:, None]


def test_distances_from_centres_need_less_noise_than_vectors():
    rng = np.random.default_rng(3)
    directions = random_directions(3, 40, rng)
    z = features_near(directions, 6000, 0.08, rng)
    means = np.stack([z[nearest(z, directions) == k].mean(axis=0) for k in range(3)])
    errors = {}
    for recentred in (False, True):
        found = [fitted(z, means, 4, SeededNoise(s), multiplier=30.0, recentred=recentred) for s in range(8)]
        errors[recentred] = np.mean([np.linalg.norm(clusters.centres - means) for clusters in found])
    assert errors[True] < 0.75 * errors[False]


def read_sums(counts, sums, count_std=0.0, sum_std=0.0):
    return ReadSums(np.asarray(counts, dtype=float), np.asarray(sums, dtype=float), count_std, sum_std)


def test_reach_is_how_far_records_of_norm_one_are_from_their_centres():
    rng = np.random.default_rng(4)
    z = features_near(random_directions(3, 40, rng), 9000, 0.1, rng)
    clusters = nearest(z, random_directions(3, 40, np.random.default_rng(4)))
    counts = np.bincount(clusters, minlength=3).astype(float)
    means = np.stack([z[clusters == k].mean(axis=0) for k in range(3)])
    far = np.sqrt(np.mean(np.sum((z - means[clusters]) ** 2, axis=1)))
    assert reach_of(means, read_sums(counts, means)) == pytest.approx(far)
    # with noise on the centres, records are further from them by as much as the noise is long
    noisy = means + 20.0 * rng.standard_normal(means.shape) / counts[:, None]
    far = np.sqrt(np.mean(np.sum((z - noisy[clusters]) ** 2, axis=1)))
    assert reach_of(noisy, read_sums(counts, means, sum_std=20.0)) == pytest.approx(far, rel=0.03)
    assert reach_of(noisy, read_sums(np.zeros(3), means, sum_std=20.0)) == 1.0


def test_little_noise_finds_the_clusters():
    z, centres = blobs(n=20_000)
    start = centres + 0.2 * random_directions(4, 6, np.random.default_rng(1))
    clusters = fitted(z, start, 5, SeededNoise(0), multiplier=20.0)
    assert np.linalg.norm(clusters.centres - centres, axis=1).max() < 0.1
    true = np.bincount(nearest(z, centres))
    assert np.abs(clusters.counts - true).max() < 6 * clusters.releases[-1].noise_std / Weights.of(6).count


def test_a_bought_grid_and_noise_find_the_clusters():
    rng = np.random.default_rng(0)
    centres = rng.uniform(-0.6, 0.6, (4, 2))
    z = centres[rng.integers(0, 4, 3000)] + 0.06 * rng.standard_normal((3000, 2))
    z = z[np.linalg.norm(z, axis=1) < 1]
    best = -KMeans(4, n_init=5, random_state=0).fit(z).score(z) / len(z)
    clusters = fitted(z, CentreGrid.of(2), 6, SeededNoise(0), multiplier=8.0, n_clusters=4, chunks=2)
    error = np.mean(((z[:, None] - clusters.centres) ** 2).sum(axis=-1).min(axis=1))
    assert error < 1.1 * best
    assert len(clusters.releases) == 7


def test_both_blocks_have_the_stated_noise():
    z, centres = blobs()
    origins, reach, weights, repeats = centres / 2, 0.6, Weights(0.5, 0.8), 2000
    statistic = ClusterSums(VECTORS, centres, weights, origins, reach)
    ledger = Ledger(Plan([Stage(name="k", noise_multiplier=5.0, count=repeats + 1)]), None)
    sums = reduce(statistic, FakeRecords([{"z": z}]))
    exact = statistic.of(noisy_sum(sums, stage="k", ledger=ledger, noise=NoNoise()))
    noise, errors = SeededNoise(3), ([], [])
    for _ in range(repeats):
        found = statistic.of(noisy_sum(sums, stage="k", ledger=ledger, noise=noise))
        assert found.count_std == pytest.approx(5 * weights.norm / 0.5, rel=1e-5)
        assert found.sum_std == pytest.approx(5 * weights.norm * reach / 0.8, rel=1e-5)
        errors[0].append((found.counts - exact.counts) / found.count_std)
        errors[1].append((found.sums - exact.sums).ravel() / found.sum_std)
    for block in errors:
        accept_only_unit_scale(np.concatenate(block))


def test_noise_of_counts_and_sums_is_that_of_the_shares():
    z, centres = blobs()
    clusters = fitted(z, centres, 1, SeededNoise(0), multiplier=7.0)
    (released,) = clusters.releases
    assert released.noise_std == pytest.approx(7.0)
    assert released.value.shape == (4, 7)


@pytest.mark.parametrize("n", [0, 1, 30])
def test_only_noise_still_gives_centres_in_the_ball(n):
    z = blobs(d=2)[0][:n]
    for seed in range(5):
        for start in (CentreGrid.of(2), random_centres(5, 2, np.random.default_rng(seed))):
            clusters = fitted(z, start, 4, SeededNoise(seed), multiplier=1e4, n_clusters=5)
            assert np.isfinite(clusters.centres).all()
            assert np.linalg.norm(clusters.centres, axis=1).max() <= 1 + 1e-12


def test_dead_clusters_split_the_largest_ones():
    centres = np.eye(4)
    counts = np.array([100.0, 1.0, 60.0, -5.0])
    sums = counts[:, None] * centres * 0.5
    new = moved(read_sums(counts, sums, count_std=10 / 3), np.zeros((4, 4)), np.random.default_rng(0))
    # the first dead one halves cluster 0, of 100; the second halves cluster 2, of 60
    for dead, split in ((1, 0), (3, 2)):
        np.testing.assert_allclose((new[dead] + new[split]) / 2, 0.5 * centres[split], atol=1e-12)
        assert np.linalg.norm(new[dead] - new[split]) == pytest.approx(0.06)


def test_a_split_cluster_parts_its_records_however_narrow_it_is():
    rng = np.random.default_rng(2)
    z = 0.3 + 1e-3 * rng.standard_normal((2000, 5))
    start = np.stack([np.full(5, 0.3), np.full(5, -0.4)])
    clusters = fitted(z, start, 2, NoNoise())
    assert clusters.counts.min() > 700
    assert np.linalg.norm(clusters.centres[0] - clusters.centres[1]) > 5e-4


def test_no_living_cluster_starts_again_at_random():
    new = moved(read_sums(np.zeros(3), np.ones((3, 4))), np.zeros((3, 4)), np.random.default_rng(0))
    np.testing.assert_array_equal(new, random_centres(3, 4, np.random.default_rng(0)))


def test_the_stage_is_charged_as_often_as_planned_and_no_more():
    z, centres = blobs(n=50)
    ledger = Ledger(Plan([kmeans_stage("k", dimension=6, iterations=3)]), None)
    records = FakeRecords([{"z": z}])
    fit_kmeans(records, VECTORS, centres, stage="k", ledger=ledger, noise=SeededNoise(0))
    assert ledger.charged == (("k", 3),)
    with pytest.raises(LedgerError):
        fit_kmeans(records, VECTORS, centres, stage="k", ledger=ledger, noise=SeededNoise(0))


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        (np.zeros(3), "centres of shape"),
        (np.full((2, 6), np.nan), "centres of shape"),
        (np.zeros((0, 6)), "centres of shape"),
        (CentreGrid(6, 2), "n_clusters"),
    ],
)
def test_a_wrong_start_is_refused_before_anything_is_charged(start, problem):
    ledger = Ledger(Plan([kmeans_stage("k", dimension=6, iterations=3)]), None)
    with pytest.raises(ConfigError, match=problem):
        fit_kmeans(FakeRecords([join(feature_rows(3, 6))]), VECTORS, start, stage="k", ledger=ledger, noise=NoNoise())
    assert not ledger.charged
