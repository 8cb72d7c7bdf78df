"""Gaussian mathematics against numerical integration, optimisation and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import optimize

from sfumato.maths.gaussian import (
    nearest_positive,
    noise_reach,
    project_to_simplex,
    shrink_spectrum,
    shrinkage_weight,
    symmetric_noise_edge,
)


def symmetric_noise(rng, d, std=1.0):
    """Noise as the queries draw it: std on the diagonal, std/√2 off it."""
    upper = np.triu(rng.normal(0, std / np.sqrt(2), (d, d)), 1)
    return upper + upper.T + np.diag(rng.normal(0, std, d))


@given(npst.arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6)),
       st.floats(1e-3, 1e6))  # fmt: skip
@settings(deadline=None)
def test_the_projection_satisfies_its_optimality_conditions(values, total):
    projected = project_to_simplex(values, total)
    scale = np.abs(values).max() + total
    assert (projected >= 0).all()
    assert projected.sum() == pytest.approx(total, abs=1e-9 * scale)
    # nearest: kept entries are moved by one constant, dropped ones lie below it
    moved = values - projected
    shift = moved[projected > 0]
    np.testing.assert_allclose(shift, shift[0], atol=1e-9 * scale)
    assert (moved[projected == 0] <= shift[0] + 1e-9 * scale).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_projection_is_what_an_optimiser_finds(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(0.2, 0.5, 6)
    found = optimize.minimize(
        lambda x: np.sum((x - values) ** 2),
        np.full(6, 1 / 6),
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(project_to_simplex(values, 1.0), found.x, atol=1e-6)


def test_what_is_on_the_simplex_stays():
    shares = np.array([0.0, 0.25, 0.75])
    np.testing.assert_allclose(project_to_simplex(shares, 1.0), shares, atol=1e-15)


def test_shrinkage_weight_is_the_share_of_signal():
    assert shrinkage_weight(0.0, 0.0) == 0.0
    assert shrinkage_weight(1.0, 2.0) == 0.0
    assert shrinkage_weight(4.0, 1.0) == 0.75
    assert shrinkage_weight(5.0, 0.0) == 1.0


def test_shrinkage_lowers_the_error_of_a_noisy_difference():
    rng = np.random.default_rng(0)
    truth, std = rng.normal(0, 0.5, 50), 1.0
    noisy = truth + rng.normal(0, std, (500, 50))
    kept = np.array([shrinkage_weight(row @ row, 50 * std**2) for row in noisy])[:, None] * noisy
    assert ((kept - truth) ** 2).mean() < 0.5 * ((noisy - truth) ** 2).mean()


def test_nearest_positive_raises_eigenvalues_to_the_floor_and_keeps_the_rest():
    rng = np.random.default_rng(1)
    matrix = symmetric_noise(rng, 12)
    raised = nearest_positive(matrix, 0.01)
    np.testing.assert_allclose(np.linalg.eigvalsh(raised), np.maximum(np.linalg.eigvalsh(matrix), 0.01), atol=1e-12)
    np.testing.assert_allclose(nearest_positive(raised, 0.01), raised, atol=1e-12)


@pytest.mark.parametrize("std", [0.3, 4.0])
def test_the_edge_of_symmetric_noise(std):
    rng = np.random.default_rng(2)
    d = 300
    draws = [symmetric_noise(rng, d, std) for _ in range(3)]
    largest = np.mean([np.abs(np.linalg.eigvalsh(draw)).max() for draw in draws])
    assert largest == pytest.approx(symmetric_noise_edge(std, d), rel=0.05)


def test_an_edge_of_zero_keeps_the_matrix():
    matrix = symmetric_noise(np.random.default_rng(3), 20)
    np.testing.assert_allclose(shrink_spectrum(matrix, 0.0), matrix, atol=1e-12)


def test_noise_alone_is_shrunk_to_almost_nothing():
    noise = symmetric_noise(np.random.default_rng(4), 200)
    left = shrink_spectrum(noise, symmetric_noise_edge(1.0, 200))
    assert np.linalg.norm(left) < 0.1 * np.linalg.norm(noise)


@pytest.mark.parametrize("strength", [1.2, 2.0, 5.0])
def test_planted_spikes_are_recovered_as_well_as_theory_allows(strength):
    rng = np.random.default_rng(5)
    d, n_spikes = 300, 3
    axes = np.linalg.qr(rng.normal(size=(d, n_spikes)))[0]
    edge = symmetric_noise_edge(1.0, d)
    sizes = strength * edge / 2 * np.array([1.0, -1.3, 1.6])  # θ; visible above edge/2
    signal = (axes * sizes) @ axes.T
    noisy = signal + symmetric_noise(rng, d)
    error = np.linalg.norm(shrink_spectrum(noisy, edge) - signal)
    assert error < 0.5 * np.linalg.norm(noisy - signal)
    # the best loss per spike is θ²(1 − cos⁴), cos² = 1 − (edge/2)²/θ²
    cosine = 1 - (edge / 2) ** 2 / sizes**2
    best = np.sqrt(np.sum(sizes**2 * (1 - cosine**2)))
    assert error < 1.15 * best + 0.02 * edge


def test_no_other_multiple_of_the_edge_does_better():
    rng = np.random.default_rng(6)
    d = 200
    axes = np.linalg.qr(rng.normal(size=(d, 4)))[0]
    edge = symmetric_noise_edge(1.0, d)
    signal = (axes * (edge * np.array([0.8, 1.0, 1.5, -2.0]))) @ axes.T
    noisy = signal + symmetric_noise(rng, d)
    errors = {m: np.linalg.norm(shrink_spectrum(noisy, m * edge) - signal) for m in (0, 0.7, 1, 1.5)}
    assert min(errors, key=lambda m: errors[m]) == 1


@pytest.mark.parametrize("dimension", [2, 5, 30, 100])
def test_noise_seldom_goes_past_its_reach(dimension):
    rng = np.random.default_rng(0)
    past = 0
    for _ in range(200):
        noise = rng.standard_normal((dimension, dimension))
        past += np.abs(np.linalg.eigvalsh((noise + noise.T) / 2)).max() > noise_reach(1.0, dimension)
    # 2 in 100; more than 14 of 200 has probability 1e-5
    assert past <= 14
