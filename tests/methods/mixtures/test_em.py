"""Noisy EM: sensitivities against golden values and search, scikit-learn without noise, and what noise does."""

import functools
import math
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as ScikitMixture

from fixtures.moments import weighted_seconds
from harness.cases import vector_rows, vectors_of
from harness.privacy import FakeRecords, accept_only_unit_scale
from sfumato.errors import ConfigError, LedgerError
from sfumato.mechanisms.noise import NoNoise, SeededNoise
from sfumato.mechanisms.queries import noisy_sum
from sfumato.methods.mixtures.em import em_stage, em_stages, fit_mixture, pooled_stage_name
from sfumato.methods.mixtures.em_moments import EmMoments, default_weights, em_replace_distance
from sfumato.methods.mixtures.steps import MomentStart, MStep, random_start
from sfumato.models.mixtures.covariances import (
    FORMS,
    DiagonalCovariance,
    FullCovariance,
    SphericalCovariance,
    TiedCovariance,
)
from sfumato.models.mixtures.mixture import GaussianMixture
from sfumato.privacy.accounting import account
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Neighbours, Plan, Stage
from sfumato.records.engine import reduce

FULL_EFFORT = True  # costs are held to exact figures

FULL, DIAGONAL, SPHERICAL, TIED = FullCovariance(), DiagonalCovariance(), SphericalCovariance(), TiedCovariance()


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ((1, 1, 1), math.sqrt(6)), ((0.2, 1, 1), 2.1213), ((0.3, 1, 0.5), 2.0), ((1, 0.5, 2), 3.2404),
        ((0, 1, 1), 2.1213), ((1, 1, 0), 2), ((2, 1, 0), 3.1623), ((0.3, 1, 0), 2),
    ],
)  # fmt: skip
def test_golden_replace_distances(weights, expected):
    assert em_replace_distance(weights) == pytest.approx(expected, rel=1e-4)


def test_golden_distances_of_single_blocks():
    single = [em_replace_distance(tuple(float(b == block) for b in range(3))) for block in range(3)]
    assert single == pytest.approx([math.sqrt(2), 2, math.sqrt(2)])
    statistic = EmMoments(vectors_of, random_start(2, np.ones(2), form=FULL, rng=np.random.default_rng(0)), (1, 1, 1))
    assert statistic.norm_bound == pytest.approx(math.sqrt(3))


def pairs_on_the_boundary(form, rng, n=4000):
    """Contributions of pairs of unit or shorter vectors to one component, and to two."""
    pairs = rng.standard_normal((2, n, 2))
    pairs /= np.linalg.norm(pairs, axis=-1, keepdims=True)
    pairs[:, n // 2 :] *= rng.random((2, n - n // 2, 1))
    pairs[1, : n // 4] = -pairs[0, : n // 4][:, ::-1]
    pairs[1, n // 2 : 3 * n // 4] = -pairs[0, n // 2 : 3 * n // 4] * rng.random((n // 4, 1))
    return [[weighted_seconds(form, v[None], np.ones((1, 1)))[0] for v in side] for side in pairs], pairs


@functools.cache
def boundary(form):
    """The pairs of a form, which are the same for all weights."""
    return pairs_on_the_boundary(form, np.random.default_rng(0))


@pytest.mark.parametrize("form", [FULL, DIAGONAL, SPHERICAL], ids=lambda form: form.name)
@pytest.mark.parametrize("weights", [(1, 1, 1), (0.2, 1, 1), (0.3, 1, 0.5), (1, 0.5, 2), (0.1, 0.3, 1), (0.1, 1, 0.1)])
@pytest.mark.parametrize("n_components", [1, 2])
def test_no_pair_of_vertices_is_further_apart_and_some_is_as_far(form, weights, n_components):
    w0, w1, w2 = weights
    (first, second), (x, y) = boundary(form)
    first, second = np.array(first), np.array(second)
    same = w1**2 * ((x - y) ** 2).sum(axis=1) + w2**2 * ((first - second) ** 2).sum(axis=1)
    other = [w0**2 + w1**2 * (v**2).sum(axis=1) + w2**2 * (s**2).sum(axis=1) for v, s in ((x, first), (y, second))]
    largest = max(same.max(), (other[0] + other[1]).max() if n_components > 1 else 0)
    bound = em_replace_distance(weights, n_components=n_components, form=form)
    assert 0.99 * bound <= math.sqrt(largest) <= bound * (1 + 1e-9)


@pytest.mark.parametrize(
    ("form", "dimension", "expected"),
    [(DIAGONAL, 10, (0.18, 0.41, 0.41)), (FULL, 10, (0.12, 0.26, 0.62)), (TIED, 2, (0.5, 0.5, 0.0))],
)
def test_default_weights(form, dimension, expected):
    assert [weight**2 for weight in default_weights(form, dimension)] == pytest.approx(expected, abs=0.005)


def test_golden_account_of_em_alone():
    """Equal shares at σ = 74.7737 on every block, 20 iterations: one event per iteration, not 2k + 1."""
    stage = em_stage(
        "em", form=DIAGONAL, n_components=3, dimension=10, iterations=20, noise_multiplier=74.7737 / math.sqrt(3)
    )
    assert account(Plan([stage]), 1e-5).epsilon == pytest.approx(0.35402, rel=1e-4)
    assert stage.replace_distance == pytest.approx(math.sqrt(2))
    pca = Stage(name="pca", noise_multiplier=48.0893, replace_distance=math.sqrt(2))
    sgd = Stage(name="sgd", noise_multiplier=1.4, sampling_probability=300 / 63_000, count=840)
    plan = Plan([pca, stage, sgd])
    assert account(plan, 1e-5).epsilon == pytest.approx(0.561134, rel=1e-4)
    assert account(plan, 1e-5, neighbours=Neighbours.REPLACE_ONE).epsilon == pytest.approx(0.929605, rel=1e-4)


def clusters(n=2000, k=4, q=3, seed=0):
    """Records of k clusters inside the unit ball."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-0.35, 0.35, (k, q))
    points = centres[rng.integers(0, k, n)] + rng.standard_normal((n, q)) * rng.uniform(0.04, 0.1, q)
    return points[np.linalg.norm(points, axis=1) < 1]


def fitted(points, form, *, start, iterations, noise=None, multiplier=None, **settings):
    stages = em_stages(
        "em", form=form, n_components=start.n_components, dimension=points.shape[1], iterations=iterations
    )
    plan = Plan(stages) if multiplier is None else Plan(stages).scaled(multiplier)
    ledger = Ledger(plan, None)
    records = FakeRecords([{"z": points[:700]}, {"z": points[700:]}])
    result = fit_mixture(
        records, vectors_of, start=start, stage="em", ledger=ledger, noise=noise or NoNoise(), **settings
    )
    ledger.close()
    return result


def likelihood(mixture, points):
    return float(mixture.log_densities(points).mean())


def scikit(points, form, start, iterations):
    stored = {"diagonal": "diag"}.get(form.name, form.name)
    precisions = np.linalg.inv(start.covariances) if form.name in ("full", "tied") else 1 / start.covariances
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ScikitMixture(
            start.n_components, covariance_type=stored, tol=0, reg_covar=0, max_iter=iterations,
            weights_init=start.weights, means_init=start.means, precisions_init=precisions,
        ).fit(points)  # fmt: skip


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_without_noise_it_is_scikit_learns_mixture(form):
    points = clusters()
    start = random_start(4, np.full(3, 0.3), form=form, rng=np.random.default_rng(1))
    ours, released = fitted(points, form, start=start, iterations=7)
    theirs = scikit(points, form, start, 7)
    # contributions are rounded to 2^-18
    np.testing.assert_allclose(ours.weights, theirs.weights_, atol=5e-6)
    np.testing.assert_allclose(ours.means, theirs.means_, atol=5e-6)
    np.testing.assert_allclose(ours.covariances, theirs.covariances_, atol=1.5e-6)
    assert len(released) == 7 + (form is FORMS["tied"])


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_bought_start_and_little_noise_find_the_clusters(form):
    points = clusters(6000)
    start = MomentStart(n_components=4, form=form, dimension=3, rng=np.random.default_rng(5))
    ours, _ = fitted(points, form, start=start, iterations=12, noise=SeededNoise(0), multiplier=0.3)
    single, _ = fitted(
        points, form, start=random_start(1, np.ones(3), form=form, rng=np.random.default_rng(0)), iterations=1
    )
    assert likelihood(ours, points) > likelihood(single, points) + 0.1


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("n", [0, 1, 50])
def test_noise_far_above_the_records_still_gives_a_mixture(form, n):
    points = clusters()[:n]
    start = MomentStart(n_components=4, form=form, dimension=3, rng=np.random.default_rng(1))
    for seed in range(5):
        mixture, _ = fitted(points, form, start=start, iterations=6, noise=SeededNoise(seed), multiplier=300.0)
        assert np.isfinite(mixture.log_densities(clusters())).all()
        assert np.linalg.norm(mixture.means, axis=1).max() <= 1 + 1e-9


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_block_has_the_stated_noise(form):
    """What is released less the exact moments, ÷ the stated deviation, block by block; accepted at that scale only."""
    points = clusters()
    mixture = random_start(4, np.full(3, 0.3), form=form, rng=np.random.default_rng(1))
    weights = (0.4, 0.6, 0.7 if form.per_component else 0.0)
    statistic = EmMoments(vectors_of, mixture, weights)
    records = FakeRecords([{"z": points}])
    repeats = 1300
    ledger = Ledger(Plan([Stage(name="em", noise_multiplier=5.0, count=repeats + 1)]), None)
    exact = statistic.moments(noisy_sum(reduce(statistic, records), stage="em", ledger=ledger, noise=NoNoise()))
    noise, sums = SeededNoise(3), reduce(statistic, records)
    blocks = [[], [], []]
    for _ in range(repeats):
        found = statistic.moments(noisy_sum(sums, stage="em", ledger=ledger, noise=noise))
        for block, noisy, value, std, weight in zip(
            blocks, (found.masses, found.sums, found.seconds), (exact.masses, exact.sums, exact.seconds),
            found.noise_stds, weights, strict=True,
        ):  # fmt: skip
            if weight:
                assert std == pytest.approx(5 * statistic.norm_bound / (statistic.margin * weight))
                block.append((noisy - value).ravel() / std)
    for block, weight in zip(blocks, weights, strict=True):
        if weight:
            accept_only_unit_scale(np.concatenate(block))


@pytest.mark.slow
def test_averaging_the_last_releases_lessens_the_noise():
    points = clusters(6000)
    start = random_start(4, np.full(3, 0.3), form=DIAGONAL, rng=np.random.default_rng(2))
    exact, _ = fitted(points, DIAGONAL, start=start, iterations=30)
    errors = []
    for last in (1, 15):
        found = [
            fitted(
                points, DIAGONAL, start=start, iterations=30, noise=SeededNoise(s), multiplier=1.0, average_last=last
            )
            for s in range(8)
        ]
        errors.append(np.mean([np.abs(mixture.means - exact.means).mean() for mixture, _ in found]))
    assert errors[1] < 0.6 * errors[0]


def test_the_fit_is_the_same_however_records_are_chunked():
    points = clusters()
    start = random_start(4, np.full(3, 0.3), form=FULL, rng=np.random.default_rng(1))
    statistic = EmMoments(vectors_of, start, (1, 1, 1))
    whole = reduce(statistic, FakeRecords([{"z": points}])).open_in_mechanism()
    parts = [{"z": part} for part in np.array_split(points, 17)]
    np.testing.assert_array_equal(reduce(statistic, FakeRecords(parts)).open_in_mechanism(), whole)


def test_a_record_of_vectors_outside_the_ball_counts_as_the_nearest_inside():
    start = random_start(2, np.full(3, 0.3), form=FULL, rng=np.random.default_rng(1))
    statistic = EmMoments(vectors_of, start, (1, 1, 1))
    far, near = ({"z": np.array([[0.0, 3.0 * scale, 4.0 * scale]])} for scale in (1e9, 0.2))
    found = [reduce(statistic, FakeRecords([rows])).open_in_mechanism() for rows in (far, near)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_stages_of_tied_covariances_share_the_budget():
    stages = em_stages("em", form=TIED, n_components=3, dimension=5, iterations=4)
    assert [stage.name for stage in stages] == [pooled_stage_name("em"), "em"]
    assert sum(stage.count / stage.noise_multiplier**2 for stage in stages) == pytest.approx(1.0)


def test_a_plan_with_another_stage_is_refused_before_anything_is_released():
    ledger = Ledger(Plan([Stage(name="other", noise_multiplier=1.0), Stage(name="em", noise_multiplier=1.0)]), None)
    start = random_start(2, np.ones(3), form=FULL, rng=np.random.default_rng(0))
    with pytest.raises(LedgerError):
        fit_mixture(
            FakeRecords([{"z": clusters()}]), vectors_of, start=start, stage="em", ledger=ledger, noise=NoNoise()
        )
    assert not ledger.charged


def test_settings_outside_their_domain_are_refused_before_anything_is_charged():
    ledger = Ledger(Plan([Stage(name="em", noise_multiplier=1.0)]), None)
    records = FakeRecords([{"z": clusters()}])
    arguments = {"stage": "em", "ledger": ledger, "noise": NoNoise()}
    bought = MomentStart(n_components=2, form=FULL, dimension=3, rng=np.random.default_rng(0))
    with pytest.raises(ConfigError, match="at least 2 iterations"):
        fit_mixture(records, vectors_of, start=bought, **arguments)
    assert not ledger.charged


def test_dead_components_stay_or_split_the_heaviest():
    points = clusters()
    base = random_start(2, np.full(3, 0.2), form=FULL, rng=np.random.default_rng(3))
    # the second component is far from every record
    start = GaussianMixture(
        np.array([0.5, 0.5]), np.array([[0.0, 0, 0], [-1, 0, 0]]), np.stack([0.05 * np.eye(3), 1e-4 * np.eye(3)])
    )
    kept, _ = fitted(points, FULL, start=start, iterations=1, step=MStep(split_dead=False))
    np.testing.assert_array_equal(kept.means[1], [-1, 0, 0])
    split, _ = fitted(points, FULL, start=start, iterations=1)
    assert split.weights == pytest.approx([0.5, 0.5])
    assert np.linalg.norm(split.means[1] - kept.means[0]) < 0.5
    assert base.n_components == 2


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_contributions_are_within_the_bound_under_extreme_mixtures(form):
    """Weights of 0, variances from 1e-200 to 1e200, means far away."""
    rng = np.random.default_rng(7)
    pool = [record["z"] for record in vector_rows(20)]
    weights = (1.0, 1.0, 1.0) if form.per_component else (1.0, 1.0, 0.0)
    for _ in range(10):
        scale = 10.0 ** rng.uniform(-200, 200)
        unit = form.project(np.zeros(form.shape(3, 3)), np.ones(3), 1.0)
        means = rng.standard_normal((3, 3)) * 10.0 ** rng.uniform(-3, 150)
        mixture = GaussianMixture(rng.dirichlet([0.01, 0.5, 0.5]), means, unit * scale, form)
        statistic = EmMoments(vectors_of, mixture, weights)
        for vector in pool:
            alone = reduce(statistic, FakeRecords([{"z": vector}])).open_in_mechanism()
            assert np.linalg.norm(alone) <= statistic.norm_bound
            masses = statistic.split(alone)[0]
            assert (masses >= 0).all()
            assert masses.sum() == pytest.approx(statistic.margin, abs=3 * 2.0**-18)
