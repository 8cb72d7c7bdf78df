"""Private k-means: its account, its rule, and what it does without noise."""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.cluster import KMeans

from harness.cases import STATISTICS, cluster_sums, feature_rows
from harness.privacy import FakeRecords, check_locality, check_norm_property, join, search_neighbours
from sfumato.errors import ConfigError, LedgerError
from sfumato.mechanisms.contributions import clip_rows
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.methods.mixtures.feature_kmeans import (
    ClusterSums,
    Weights,
    fit_kmeans,
    kmeans_stage,
    moved,
    nearest_centre,
    random_centres,
    reach_of,
)
from sfumato.privacy.accounting import account
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Neighbours, Plan, Stage

VECTORS = operator.itemgetter("z")
RNG = np.random.default_rng(0)


def blobs(n=1500, d=6, k=4, seed=0):
    rng = np.random.default_rng(seed)
    centres = random_centres(k, d, rng) * 0.8
    z = centres[rng.integers(0, k, n)] + 0.05 * rng.standard_normal((n, d))
    return z / np.maximum(1, np.linalg.norm(z, axis=1))[:, None], centres


def fitted(z, start, iterations, noise, multiplier=1.0, chunks=1, **options):
    ledger = Ledger(
        Plan([kmeans_stage("k", dimension=z.shape[1], n_iterations=iterations, noise_multiplier=multiplier)]), None
    )
    records = FakeRecords([{"z": part} for part in np.array_split(z, chunks)])
    clusters = fit_kmeans(records, VECTORS, start, stage="k", ledger=ledger, noise=noise, **options)
    ledger.close()
    return clusters


@pytest.mark.parametrize(("count", "total", "distance"), [(1, 1, 2.0), (2, 1, 3.1623), (0.3, 1, 2.0)])
def test_golden_replace_distances(count, total, distance):
    assert Weights(count, total).replace_distance == pytest.approx(distance, abs=5e-5)


def test_golden_cost_of_twenty_iterations():
    # standard deviations 40√2 on counts and on sums of unit norm: w₀ = w₁ = 1/√2, joint multiplier 40
    half = Weights(np.sqrt(0.5), np.sqrt(0.5))
    stage = Stage(name="k", noise_multiplier=40.0, replace_distance=half.replace_distance, count=20)
    assert account(Plan([stage]), 1e-5).epsilon == pytest.approx(0.384692, rel=1e-3)
    assert account(Plan([stage]), 1e-5, neighbours=Neighbours.REPLACE_ONE).epsilon == pytest.approx(0.561285, rel=1e-3)


@pytest.mark.parametrize("dimension", [1, 4, 200])
def test_weights_share_one_unit_in_proportion_to_one_and_root_d(dimension):
    weights = Weights.of(dimension)
    assert weights.count**2 + weights.sum**2 == pytest.approx(1)
    assert weights.sum**2 / weights.count**2 == pytest.approx(np.sqrt(dimension))
    # no other division of the same budget has a smaller variance in all, 1/w₀² + d/w₁²
    best = 1 / weights.count**2 + dimension / weights.sum**2
    for share in np.linspace(0.01, 0.99, 99):
        assert 1 / share + dimension / (1 - share) >= best - 1e-9


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
            members = z[nearest_centre(z, centres) == k]
            total[k, 0] += self.weights.count * len(members)
            total[k, 1:] += self.weights.sum * members.sum(axis=0)
            if len(members):
                # moved far out, so that later clusters find the same records again
                centres[k] = 3 * members.mean(axis=0) - 2


def test_interleaved_assignment_fails_the_harness():
    case = STATISTICS["feature sums"]
    wrong = replace(case, statistic=Interleaved(VECTORS, case.statistic.centres))
    with pytest.raises(AssertionError):
        check_norm_property(wrong)
    with pytest.raises(AssertionError):
        check_locality(wrong, np.random.default_rng(0))


@pytest.mark.parametrize("iterations", [1, 2, 5])
@pytest.mark.parametrize("chunks", [1, 7])
def test_without_noise_it_is_lloyds_algorithm(iterations, chunks):
    z, _ = blobs()
    start = z[RNG.choice(len(z), 5, replace=False)]
    ours = fitted(z, start, iterations, NoNoise(), chunks=chunks)
    theirs = KMeans(5, init=start, n_init=1, max_iter=iterations, tol=0, algorithm="lloyd")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        theirs.fit(z)
    np.testing.assert_allclose(ours.centres, theirs.cluster_centers_, atol=1e-5)
    assert ours.count_std == 0
    assert ours.counts.sum() == pytest.approx(len(z))


def features_near(centres, n, spread, rng):
    """Vectors of norm 1 about as far from their centre as the centre's norm leaves room for."""
    z = centres[rng.integers(0, len(centres), n)] + spread * rng.standard_normal((n, centres.shape[1]))
    return z / np.linalg.norm(z, axis=1)[:, None]


def test_distances_from_centres_need_less_noise_than_vectors():
    rng = np.random.default_rng(3)
    directions = random_centres(3, 40, rng)
    z = features_near(directions, 6000, 0.08, rng)
    means = np.stack([z[nearest_centre(z, directions) == k].mean(axis=0) for k in range(3)])
    errors = {}
    for recentred in (False, True):
        found = [fitted(z, means, 4, SeededNoise(s), multiplier=30.0, recentred=recentred) for s in range(8)]
        errors[recentred] = np.mean([np.linalg.norm(clusters.centres - means) for clusters in found])
    assert errors[True] < 0.75 * errors[False]


def test_reach_is_how_far_records_of_norm_one_are_from_their_centres():
    rng = np.random.default_rng(4)
    z = features_near(random_centres(3, 40, rng), 9000, 0.1, rng)
    nearest = nearest_centre(z, random_centres(3, 40, np.random.default_rng(4)))
    counts = np.bincount(nearest, minlength=3).astype(float)
    means = np.stack([z[nearest == k].mean(axis=0) for k in range(3)])
    far = np.sqrt(np.mean(np.sum((z - means[nearest]) ** 2, axis=1)))
    assert reach_of(means, counts, 1.0, 0.0) == pytest.approx(far)
    # with noise on the centres, records are further from them by as much as the noise is long
    noisy = means + 20.0 * rng.standard_normal(means.shape) / counts[:, None]
    far = np.sqrt(np.mean(np.sum((z - noisy[nearest]) ** 2, axis=1)))
    assert reach_of(noisy, counts, 1.0, 20.0) == pytest.approx(far, rel=0.03)
    assert reach_of(noisy, np.zeros(3), 1.0, 20.0) == 1.0


def test_little_noise_finds_the_clusters():
    z, centres = blobs(n=20_000)
    start = centres + 0.2 * random_centres(4, 6, np.random.default_rng(1))
    clusters = fitted(z, start, 5, SeededNoise(0), multiplier=20.0)
    assert np.linalg.norm(clusters.centres - centres, axis=1).max() < 0.1
    true = np.bincount(nearest_centre(z, centres))
    assert np.abs(clusters.counts - true).max() < 6 * clusters.count_std
    assert clusters.shares.sum() == pytest.approx(1)


def test_noise_of_counts_and_sums_is_that_of_the_shares():
    z, centres = blobs()
    clusters = fitted(z, centres, 1, SeededNoise(0), multiplier=7.0)
    weights = Weights.of(6)
    assert clusters.count_std == pytest.approx(7 / weights.count)
    (released,) = clusters.releases
    assert released.noise_std == 7.0
    assert released.value.shape == (4, 7)


def test_only_noise_still_gives_centres_in_the_ball():
    z = np.zeros((0, 6))
    for seed in range(5):
        clusters = fitted(z, random_centres(5, 6, np.random.default_rng(seed)), 4, SeededNoise(seed), multiplier=1e4)
        assert np.isfinite(clusters.centres).all()
        assert np.linalg.norm(clusters.centres, axis=1).max() <= 1 + 1e-12
        assert np.isfinite(clusters.shares).all()
        assert clusters.shares.sum() == pytest.approx(1)


def test_dead_clusters_split_the_largest_ones():
    centres = np.eye(4)
    counts = np.array([100.0, 1.0, 60.0, -5.0])
    sums = counts[:, None] * centres * 0.5
    new = moved(counts, sums, centres, 10.0, np.random.default_rng(0))
    np.testing.assert_allclose(new[[0, 2]], 0.5 * centres[[0, 2]])
    # the first dead one halves cluster 0, of 100; the second halves cluster 2, of 60
    assert np.linalg.norm(new[1] - new[0]) == pytest.approx(0.1)
    assert np.linalg.norm(new[3] - new[2]) == pytest.approx(0.1)


def test_no_living_cluster_starts_again_at_random():
    new = moved(np.zeros(3), np.ones((3, 4)), np.zeros((3, 4)), 1.0, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(new, axis=1), 1)


def test_a_record_is_assigned_the_same_wherever_it_lies():
    z = np.repeat(RNG.standard_normal((40, 33)), 30, axis=0)[RNG.permutation(1200)]
    # centres that are mirror images leave every record on the border, up to rounding
    normal = RNG.standard_normal(33)
    z -= np.outer(z @ normal, normal) / (normal @ normal)
    centres = np.stack([normal, -normal])
    whole = nearest_centre(z, centres)
    for start in (1, 2, 3, 511, 700):
        np.testing.assert_array_equal(nearest_centre(z[start:], centres), whole[start:])


def test_the_stage_is_charged_as_often_as_planned_and_no_more():
    z, centres = blobs(n=50)
    ledger = Ledger(Plan([kmeans_stage("k", dimension=6, n_iterations=3)]), None)
    records = FakeRecords([{"z": z}])
    fit_kmeans(records, VECTORS, centres, stage="k", ledger=ledger, noise=SeededNoise(0))
    assert ledger.charged == (("k", 3),)
    with pytest.raises(LedgerError):
        fit_kmeans(records, VECTORS, centres, stage="k", ledger=ledger, noise=SeededNoise(0))


@pytest.mark.parametrize("start", [np.zeros(3), np.full((2, 6), np.nan), np.zeros((0, 6))])
def test_a_wrong_start_is_refused_before_anything_is_charged(start):
    ledger = Ledger(Plan([kmeans_stage("k", dimension=6, n_iterations=3)]), None)
    with pytest.raises(ConfigError, match="centres of shape"):
        fit_kmeans(FakeRecords([join(feature_rows(3, 6))]), VECTORS, start, stage="k", ledger=ledger, noise=NoNoise())
    assert not ledger.charged
