"""A column's softmax has the moments that are asked for, and the shares."""

import numpy as np
import pytest

from sfumato.methods.tables.features import level_features
from sfumato.methods.tables.softmax_fit import Predictors, _Objective, softmax_weights


def rng(seed=0):
    return np.random.default_rng(seed)


def chances(parts, law, weights, shift):
    logits = np.log(law) + shift + sum((p.rows @ w) @ p.functions.T for p, w in zip(parts, weights, strict=True))
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def a_part(n=4_000, d=3, ridge=1e-3, seed=0):
    """Rows, and the moments that a softmax of known weights has with them."""
    law = rng(seed).dirichlet(np.full(4, 5.0))
    rows = rng(seed + 1).standard_normal((n, d))
    rows -= rows.mean(axis=0)
    functions = level_features(law).values
    true = 0.5 * rng(seed + 2).standard_normal((d, functions.shape[1]))
    found = chances([Predictors(rows, functions, true, 0.0)], law, [true], np.zeros(4))
    return Predictors(rows, functions, rows.T @ found @ functions / n, ridge), found.mean(axis=0), true


def test_moments_and_shares_are_met():
    part, law, true = a_part()
    (weights,), shift = softmax_weights([part], law, 60)
    found = chances([part], law, [weights], shift)
    np.testing.assert_allclose(found.mean(axis=0), law, atol=1e-3)
    np.testing.assert_allclose(part.rows.T @ found @ part.functions / len(part.rows), part.moments, atol=3e-3)
    np.testing.assert_allclose(weights, true, atol=0.05)


def test_a_part_of_its_own_takes_what_is_left():
    part, law, _ = a_part()
    products = (part.rows[:, :1] * part.rows[:, 1:2]) - (part.rows[:, 0] * part.rows[:, 1]).mean()
    more = Predictors(products, part.functions, np.full((1, part.functions.shape[1]), 0.05), 1e-3)
    weights, shift = softmax_weights([part, more], law, 60)
    found = chances([part, more], law, weights, shift)
    np.testing.assert_allclose(products.T @ found @ part.functions / len(products), more.moments, atol=3e-3)
    np.testing.assert_allclose(part.rows.T @ found @ part.functions / len(part.rows), part.moments, atol=3e-3)


def test_a_ridge_holds_weights_back():
    sizes = []
    for ridge in (1e-4, 1e-1, 10.0):
        part, law, _ = a_part(ridge=ridge)
        sizes.append(float(np.abs(softmax_weights([part], law, 60)[0][0]).sum()))
    assert sizes[0] > sizes[1] > sizes[2]


def test_moments_that_no_row_has_leave_finite_weights():
    part, law, _ = a_part()
    wild = Predictors(part.rows, part.functions, 50 * np.ones_like(part.moments), 1e-3)
    (weights,), shift = softmax_weights([wild], law, 60)
    assert np.isfinite(weights).all()
    assert np.isfinite(shift).all()


def test_slopes_are_those_of_the_value():
    part, law, _ = a_part(n=300)
    objective = _Objective([part], law)
    v = 0.1 * rng(3).standard_normal(part.moments.size + law.size)
    slope = objective(v)[1]
    for place in range(0, v.size, 3):
        step = np.zeros(v.size)
        step[place] = 1e-2
        numeric = (objective(v + step)[0] - objective(v - step)[0]) / 2e-2
        assert slope[place] == pytest.approx(numeric, rel=1e-2, abs=1e-3)


def test_a_run_that_hardly_a_row_has_moves_nothing():
    """Beside a fifth run of a share of 1e-9 weights and shifts are what they are without."""
    part, law, _ = a_part()
    (alone,), _ = softmax_weights([part], law, 60)
    more = Predictors(part.rows, np.append(part.functions, np.zeros((1, 3)), axis=0), part.moments, part.ridge)
    (beside,), shift = softmax_weights([more], np.append((1 - 1e-9) * law, 1e-9), 60)
    np.testing.assert_allclose(beside, alone, atol=2e-3)
    assert abs(shift[-1]) < 1e-3
