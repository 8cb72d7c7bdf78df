"""DP-EM's k-means as printed: its noise by form, and when zCDP helps DPLloyd."""

import math

import numpy as np
import pytest

from harness.papers import script

published, figure_4 = script("dp_em", "published"), script("dp_em", "figure_4")


@pytest.mark.parametrize("exact_sizes", [False, True])
def test_without_noise_means_are_lloyd_s(exact_sizes):
    points = np.array([[-0.5, 0.0], [-0.3, 0.0], [0.4, 0.1], [0.6, 0.1]])
    start = np.array([[-0.1, 0.0], [0.1, 0.0]])
    rng = np.random.default_rng(0)
    found = published.noisy_means(points, start, iterations=2, epsilon_i=1e9, rng=rng, exact_sizes=exact_sizes)
    assert found == pytest.approx(np.array([[-0.4, 0.0], [0.5, 0.1]]), abs=1e-6)


def test_noise_of_a_mean_with_its_exact_size_has_the_printed_scale():
    points, rng = np.full((100, 2), 0.1), np.random.default_rng(0)
    start = np.full((1, 2), 0.1)
    drawn = [
        published.noisy_means(points, start, iterations=1, epsilon_i=2.0, rng=rng, exact_sizes=True) - 0.1
        for _ in range(3_000)
    ]
    assert np.abs(drawn).mean() == pytest.approx(2 * math.sqrt(2) / (100 * 2.0), rel=0.05)


def test_zcdp_helps_laplace_noise_beyond_18_iterations():
    rho = figure_4.zcdp_rho(0.01, figure_4.DELTA)
    linear, zcdp = (lambda j: 0.01 / j), (lambda j: math.sqrt(2 * rho / j))
    assert zcdp(18) < linear(18)
    assert zcdp(19) > linear(19)
