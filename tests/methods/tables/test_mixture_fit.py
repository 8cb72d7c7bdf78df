"""A mixture of products goes to the law whose moments it is given, and to a law where these are none's."""

import itertools

import numpy as np
import pytest

from sfumato.maths.constants import DESCENT
from sfumato.methods.tables.features import Waves, level_features, number_features
from sfumato.methods.tables.mixture_fit import MixtureEffort, PairTargets, _Descent, fit_mixture, rank_bumps

EFFORT = MixtureEffort(components=60, steps=500, independence=1.0)


def rng(seed=0):
    return np.random.default_rng(seed)


def targets(law: np.ndarray, n: float = 1e5, noise=0.0, seed=0) -> PairTargets:
    """Moments of a law of label columns, with noise of these deviations."""
    p = law.ndim
    shares = [law.sum(axis=tuple(a for a in range(p) if a != j)) for j in range(p)]
    made = [level_features(own) for own in shares]
    features = [f.values * np.sqrt(f.weights) for f in made]
    ends = np.cumsum([0, *(f.shape[1] for f in features)])
    values, precision = np.zeros((ends[-1], ends[-1])), np.zeros((ends[-1], ends[-1]))
    for i, j in itertools.combinations(range(p), 2):
        pair = law.sum(axis=tuple(a for a in range(p) if a not in (i, j)))
        block = features[i].T @ pair @ features[j]
        block = block + noise * rng(seed).standard_normal(block.shape)
        here = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        values[here], values[here[::-1]] = block, block.T
        precision[here] = precision[here[::-1]] = 1 / max(noise**2, 1e-8)
    bases = tuple(np.eye(own.size) for own in shares)
    return PairTargets(tuple(shares), tuple(features), values, precision, np.full(p, n), bases)


def joint(seed, *shape, strength=1.0):
    law = np.exp(strength * rng(seed).standard_normal(shape))
    return law / law.sum()


@pytest.mark.parametrize("shape", [(2, 2), (3, 4), (3, 2, 4)], ids=str)
def test_moments_and_shares_of_a_law_come_back(shape):
    aim = targets(joint(1, *shape))
    law = fit_mixture(aim, EFFORT, rng())
    for table, shares in zip(law.tables, aim.shares, strict=True):
        np.testing.assert_allclose(table.sum(axis=0), 1.0)
        np.testing.assert_allclose(table @ law.weights, shares, atol=1e-4)
    across = aim.precision > 0
    np.testing.assert_allclose(law.moments(aim.features)[across], aim.values[across], atol=3e-3)


def test_moments_that_no_law_has_leave_a_residual():
    """Three labels of which each two are opposite: no law has it, and the fit ends at one all the same."""
    aim = targets(np.full((2, 2, 2), 1 / 8))
    aim.values[:] = np.where(aim.precision > 0, -0.25, 0.0)
    law = fit_mixture(aim, EFFORT, rng())
    assert all(np.isfinite(table).all() and (table >= 0).all() for table in law.tables)
    found = law.moments(aim.features)[aim.precision > 0]
    np.testing.assert_allclose(found, -0.25 / 3, atol=0.01)  # the nearest: each pair agrees in a third of the rows


def test_independence_costs_what_is_said():
    """The dearer what a component says, the less the law has to say."""
    aim = targets(joint(3, 4, 4), noise=0.02)
    across = aim.precision > 0
    sizes = []
    for price in (1.0, 100.0, 1e5):
        law = fit_mixture(aim, MixtureEffort(60, 400, price), rng())
        sizes.append(float(np.abs(law.moments(aim.features)[across]).sum()))
    assert sizes[0] > sizes[1] > sizes[2]
    assert sizes[2] < 0.01 * sizes[0]


def test_renewed_targets_are_those_of_the_end():
    aim, other = targets(joint(1, 3, 3)), targets(joint(1, 3, 3))
    other.values[:] = 0.0
    law = fit_mixture(aim, EFFORT, rng(), lambda _: other)
    assert np.abs(law.moments(aim.features)[aim.precision > 0]).max() < 5e-3


def test_slopes_are_those_of_the_value():
    """By finite differences, of the sum that the docstring says."""
    aim = targets(joint(5, 3, 4), noise=0.05)
    numbers = number_features(np.full(6, 1 / 6), False, Waves(3, 0.8))
    assert rank_bumps(np.full(6, 1 / 6), 6).shape[0] == len(numbers.values)
    descent = _Descent(aim, MixtureEffort(components=3, steps=10, independence=2.0), rng(2))

    def value():
        law = descent.law()
        missed = (law.moments(aim.features) - aim.values) ** 2 * aim.precision
        total = np.triu(missed, 1).sum() / 2
        for table, shares, w in zip(law.tables, aim.shares, aim.share_precision, strict=True):
            total += w / 2 * ((table @ law.weights - shares) ** 2).sum()
            total += 2.0 * (law.weights * (table * np.log(table / shares[:, None])).sum(axis=0)).sum()
        return float(total)

    descent._slope()
    slopes = descent._slopes.astype(float).copy()
    for place in [(0, 0), (2, 1), (4, 2), (6, 0), (7, 0), (7, 2)]:
        before, step = descent._logits[place].copy(), np.float32(1e-2)
        values = []
        for sign in (1, -1):
            descent._logits[place] = before + sign * step
            values.append(value())
        descent._logits[place] = before
        assert slopes[place] == pytest.approx((values[0] - values[1]) / (2 * float(step)), rel=2e-2, abs=2e-2)


def test_bumps_are_smooth_functions_of_rank_and_single_ones_of_the_rest():
    basis = rank_bumps(np.append(np.full(30, 0.03), 0.1), 30)
    assert not basis[30, :-1].any()
    assert basis[30, -1] == 1
    assert not basis[:30, -1].any()
    roughness = np.abs(np.diff(basis[:30, :-1], axis=0)).max(axis=0)
    assert (roughness < 0.6).all()


def test_targets_are_renewed_a_few_times_on_the_way():
    aim, laws = targets(joint(1, 3, 3)), []

    def renewed(law):
        laws.append(law)
        return aim

    fit_mixture(aim, EFFORT, rng(), renewed)
    assert len(laws) == DESCENT.renewals
    assert not np.allclose(laws[0].tables[0], laws[-1].tables[0])


def test_targets_that_need_no_renewal_stay():
    aim = targets(joint(1, 3, 3))
    kept, renewed = (fit_mixture(aim, EFFORT, rng(), answer) for answer in (lambda _: None, lambda _: aim))
    for one, other in zip(kept.tables, renewed.tables, strict=True):
        np.testing.assert_array_equal(one, other)
