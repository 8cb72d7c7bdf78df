import numpy as np
import pytest
from scipy import special

from sfumato.errors import ReleaseError
from sfumato.models.nets.decoder import Calibration, Layers, draw_levels, mean_of_heads
from sfumato.models.nets.flat import Part

PARTS = (Part(slice(0, 3), levels=True), Part(slice(3, 4), levels=False), Part(slice(4, 6), levels=True))
TARGETS = np.array([0.7, 0.29, 0.01, 0.5, 0.5, 0.5])


def outputs(n: int = 20_000):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 6)) * [1, 2, 1, 0.7, 3, 1] + [0, 1, 0, 2, 0, 1]


def test_layers_are_a_network():
    rng = np.random.default_rng(0)
    weights = tuple(rng.standard_normal(shape).astype(np.float32) for shape in ((5, 2), (3, 5)))
    biases = tuple(rng.standard_normal(n).astype(np.float32) for n in (5, 3))
    x = rng.standard_normal((7, 2))
    expected = np.maximum(x @ weights[0].T + biases[0], 0) @ weights[1].T + biases[1]
    np.testing.assert_allclose(Layers(weights, biases)(x), expected, rtol=1e-4, atol=1e-5)


def test_means_of_heads():
    means = mean_of_heads(outputs(50), PARTS)
    np.testing.assert_allclose(means[:, :3].sum(axis=1), 1)
    np.testing.assert_allclose(means[:, 3], special.expit(outputs(50)[:, 3]))


def test_drawn_levels_have_their_shares():
    shares = np.tile([0.2, 0.5, 0.3, 0.9, 0.0, 1.0], (50_000, 1))
    drawn = draw_levels(shares, PARTS, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), [0.2, 0.5, 0.3, 0.9, 0.0, 1.0], atol=0.01)
    assert set(np.unique(drawn[:, :3])) == {0.0, 1.0}


def test_calibrated_draws_have_the_marginals():
    calibration = Calibration.of(outputs(), PARTS, TARGETS, np.random.default_rng(1))
    again = Calibration.from_arrays(calibration.to_arrays(), 6)
    rng = np.random.default_rng(2)
    means = mean_of_heads(outputs() + again.shifts, PARTS)
    drawn = draw_levels(again.numbers(means, PARTS, rng), PARTS, rng)
    np.testing.assert_allclose(drawn[:, :3].mean(axis=0), TARGETS[:3], atol=0.015)
    np.testing.assert_allclose(np.quantile(drawn[:, 3], [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.02)
    uncalibrated = mean_of_heads(outputs(), PARTS)
    assert abs(uncalibrated[:, 3].mean() - 0.5) > 0.2, "the case needs calibration"


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5, 0.9])
def test_a_number_is_missing_as_often_as_released_and_where_the_network_says(share):
    parts = (Part(slice(0, 1), levels=False), Part(slice(1, 2), levels=False, missing=True))
    n = 40_000
    rng = np.random.default_rng(0)
    chance = np.clip(share + 0.05 * rng.standard_normal(n), 0.01, 0.99)
    raw = np.stack([rng.standard_normal(n), special.logit(chance)], axis=1)
    calibration = Calibration.of(raw, parts, np.array([0.5, share]), rng)
    drawn = calibration.numbers(mean_of_heads(raw, parts), parts, rng)
    missing = drawn[:, 1] > 0.5
    assert missing.mean() == pytest.approx(share, abs=0.01)
    assert np.quantile(drawn[:, 0], [0.1, 0.9]) == pytest.approx([0.1, 0.9], abs=0.02)
    if 0 < share < 1:  # a row's chance to be missing is the network's: of slope 1
        slope = np.cov(chance, missing)[0, 1] / chance.var()
        assert slope == pytest.approx(1.0, abs=0.3 if share < 0.1 else 0.15)


def test_a_strangers_calibration():
    arrays = Calibration.of(outputs(100), PARTS, TARGETS, np.random.default_rng(1)).to_arrays()
    for name in arrays:
        with pytest.raises(ReleaseError, match=name):
            Calibration.from_arrays({**arrays, name: arrays[name][:-1]}, 6)
        with pytest.raises(ReleaseError, match=name):
            Calibration.from_arrays({**arrays, name: arrays[name] * np.nan}, 6)
