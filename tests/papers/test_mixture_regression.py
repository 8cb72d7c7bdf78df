"""Least squares from mixtures: it recovers the optimum as they grow in number, and only with the correction."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from sfumato.errors import ConfigError

DEGREE, NOISE = 4, 0.3


def sgd_on_mixtures(*mixtures, **settings):
    """The function of papers/dpmix, which is no package."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "papers" / "dpmix"))
    try:
        return import_module("mixture_regression").sgd_on_mixtures(*mixtures, **settings)
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def records():
    """Age, sex, body mass and blood pressure of 442 patients, and how the disease went on; centred, of variance 1."""
    data = load_diabetes()
    x, y = data.data[:, :4], data.target[:, None]
    return (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()


def mixtures(records, count, seed, *, shift=0.0):
    x, y = records
    rng = np.random.default_rng(seed)
    members = (rng.random((count, len(x))) < DEGREE / len(x)) / DEGREE
    noise = rng.normal(0, NOISE, (count, x.shape[1]))
    return members @ (x + shift) + noise, members @ (y + shift) + rng.normal(0, NOISE, (count, 1))


def gaps(records, counts, **settings):
    """Mean of J(W) − J* over some seeds, per number of mixtures."""
    x, y = records
    best = np.linalg.lstsq(x, y, rcond=None)[0].T
    curvature = 0.9 * np.linalg.eigvalsh(x.T @ x / len(x))[0]
    found = []
    for count in counts:
        excess = []
        for seed in range(8):
            made = mixtures(records, count, seed)
            options = {"degree": DEGREE, "noise_std": NOISE, "curvature": curvature, "radius": 2.0, **settings}
            moved = sgd_on_mixtures(*made, **options) - best
            excess.append(float(((moved @ x.T) ** 2).sum() / (2 * len(x))))
        found.append(np.mean(excess))
    return np.array(found)


@pytest.mark.slow
def test_the_gap_shrinks_as_the_theorem_says_and_without_the_correction_it_does_not(records):
    counts = np.array([1_000, 4_000, 16_000])
    found = gaps(records, counts)
    rate = (1 + np.log(counts)) / counts
    constants = found / rate
    assert constants.max() < 3 * constants.min()
    assert found[-1] < found[0] / 6
    biased = gaps(records, counts[1:], corrected=False)
    assert biased[-1] > 5 * found[-1]
    assert biased[-1] > 0.7 * biased[0]


def test_the_limit_without_the_correction_is_a_ridge(records):
    """E[g]·ℓ = ∇J + ℓσ²W."""
    x, y = records
    made = [mixtures(records, 16_000, seed) for seed in range(4)]
    found = np.mean([sgd_on_mixtures(*m, degree=4, noise_std=0.0, curvature=0.8, radius=2.0) for m in made], axis=0)
    p = DEGREE / len(x)
    moment = (1 - p) * x.T @ x / len(x)
    ridge = np.linalg.solve(moment + DEGREE * NOISE**2 * np.eye(4), (1 - p) * x.T @ y / len(x)).T
    np.testing.assert_allclose(found, ridge, atol=0.06)


def test_records_that_are_not_centred_pull_it_away(records):
    """The term (Wx̄ − ȳ)x̄ᵀ of the expected gradient, which the printed theorem leaves out."""
    x, y = records
    best = np.linalg.lstsq(x, y, rcond=None)[0].T
    plain, shifted = (
        sgd_on_mixtures(*mixtures(records, 16_000, 0, shift=s), degree=4, noise_std=NOISE, curvature=0.5, radius=2.0)
        for s in (0.0, 1.0)
    )
    assert np.linalg.norm(shifted - best) > 3 * np.linalg.norm(plain - best)


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"degree": 0}, "degree"), ({"curvature": 0.0}, "curvature"), ({"radius": -1.0}, "radius"),
        ({"noise_std": -1.0}, "noise_std"), ({"labels": np.zeros((2, 1))}, "labels"),
    ],
)  # fmt: skip
def test_wrong_settings(bad, named):
    options = {
        "features": np.zeros((3, 2)), "labels": np.zeros((3, 1)), "degree": 1, "noise_std": 0.1, "curvature": 1.0,
        "radius": 1.0,
    }  # fmt: skip
    with pytest.raises(ConfigError, match=named):
        sgd_on_mixtures(**{**options, **bad})
