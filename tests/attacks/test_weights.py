"""Weighted fits of neighbours: whatever a record's weight cell holds, nothing else reaches the release."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fixtures.costly import diagonal
from harness.coupling import attack, leaves
from sfumato import EstimateCount, MaxEntropy, Schema, Unit, Weight
from sfumato.columns import Categorical, Continuous, Identifier
from sfumato.estimators import DPFactorAnalysis, DPGaussianMixture, DPKernelKMeans, DPKMeans

pytestmark = pytest.mark.usefixtures("coarse_accounts")
FEW = 70
WEIGHTS = {"none": 0.0, "the bound": 4.0, "above it": 1e9, "infinite": np.inf, "negative": -1e9, "missing": np.nan}


def people(n=FEW, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "y": x + rng.normal(size=n),
            "g": rng.choice(["a", "b"], n),
            "w": 4 * rng.random(n),
            "p": np.arange(n) // 2,
        }
    )


def schema(total=None, unit=None, rows: int | None = FEW):
    columns = {
        "x": Continuous(lower=-3, upper=3), "y": Continuous(lower=-5, upper=5), "g": Categorical(categories=("a", "b")),
        "w": Continuous(lower=0, upper=4), "p": Identifier(),
    }  # fmt: skip
    return Schema(columns=columns, rows=rows, weight=Weight(column="w", total=total), unit=unit)


def fitted(found, target, epsilon=2.0, n_public=None):
    def fit(data):
        method = MaxEntropy(epsilon=epsilon, delta=1e-6, calibration_rows=60)
        return leaves(method.fit(data, schema=found, target=target, n_public=n_public, seed=1))

    return fit


def with_row(frame, weight, *, corner=False, place=None):
    row = (
        {"x": 9e9, "y": -9e9, "g": "?", "w": weight, "p": 10**6}
        if corner
        else {"x": 0.3, "y": 0.1, "g": "b", "w": weight, "p": 10**6}
    )
    rest = frame if place is None else frame.drop(index=frame.index[place])
    return pd.concat([rest, pd.DataFrame([row])], ignore_index=True)


@pytest.mark.parametrize(("weight", "target"), diagonal(WEIGHTS, [None, "g"]))
def test_a_record_more_or_another(monkeypatch, target, weight):
    frame = with_row(people(), 2.0)
    for found in (schema(), schema(total=150.0)):
        fit = fitted(found, target)
        attack(monkeypatch, fit, frame, with_row(frame, WEIGHTS[weight], corner=True))
        attack(monkeypatch, fit, frame, with_row(frame, WEIGHTS[weight], corner=True, place=FEW), replaced=True)


def test_a_record_of_the_bound_is_seen_as_far_as_it_is_charged(monkeypatch):
    """The attack can fail: the odd record is there, at the distance of an unweighted one."""
    frame = people()
    assert attack(monkeypatch, fitted(schema(), None), frame, with_row(frame, 1e9)) > 0.5
    assert attack(monkeypatch, fitted(schema(), None), frame, with_row(frame, -1e9)) == 0


def test_settings_do_not_follow_from_the_true_sum_of_weights(monkeypatch):
    """Clip norms are those of a list, of which one record more chooses another only where it is much of the sum."""
    for rows in (8, 16, 32):
        frame = people()[:rows].assign(w=1e9)
        attack(monkeypatch, fitted(schema(), None, epsilon=60.0), frame, with_row(frame, 1e9))


def test_little_noise_and_moments_by_class(monkeypatch):
    frame = people()
    fit = fitted(schema(), "g", epsilon=60.0)
    attack(monkeypatch, fit, frame, with_row(frame, 1e9))
    attack(monkeypatch, fit, with_row(frame, 4.0), with_row(frame, 4.0, corner=True), replaced=True)


@pytest.mark.parametrize("start", [people(), people()[:1], people()[:0]], ids=["70 rows", "1 row", "no row"])
def test_few_rows_and_a_bought_number(monkeypatch, start):
    attack(monkeypatch, fitted(schema(rows=None), None, n_public=EstimateCount()), start, with_row(start, 4.0))


def test_units_of_weighted_rows(monkeypatch):
    fit = fitted(schema(unit=Unit(column="p", max_rows=2)), None)
    frame = people()
    more = with_row(with_row(with_row(frame, 4.0), np.inf, corner=True), -1.0)
    attack(monkeypatch, fit, frame, more)
    attack(monkeypatch, fit, more, with_row(with_row(frame, 1.0, corner=True), 4.0), replaced=True)


PUBLIC = {"epsilon": 2.0, "n_public": FEW, "bounds": (-1.0, 1.0), "seed": 1}
ESTIMATORS = {
    "mixture": DPGaussianMixture(2, iterations=3, **PUBLIC),
    "factors": DPFactorAnalysis(1, **PUBLIC),
    "k-means": DPKMeans(2, iterations=3, **PUBLIC),
    "kernel k-means": DPKernelKMeans(2, n_features=20, iterations=3, **PUBLIC),
}


def estimated(name, **units):
    """Fit columns 0 and 1, by the weights of column 2, and where `max_rows` is given by the units of column 3."""

    def fit(data):
        options = {"sample_weight": data[:, 2], "weight_upper": 4.0, **units}
        if units:
            options["units"] = data[:, 3].astype(int)
        model = ESTIMATORS[name].fit(data[:, :2], **options)
        found = {key: value for key, value in vars(model).items() if isinstance(value, np.ndarray)}
        found |= {f"release {i}": noisy.value for i, noisy in enumerate(model.releases_)}
        return found | {"certificate": model.certificate.content}

    return fit


def points(n=FEW):
    rng = np.random.default_rng(0)
    return np.column_stack([rng.uniform(-1, 1, (n, 2)), 4 * rng.random(n), np.arange(n) // 2])


def beside(data, weight, *, sign=1.0, copies=1, place=None):
    """The data with rows of one new unit at a corner, in place of the last rows or beside all."""
    row = np.tile([sign, sign, weight, 10**6], (copies, 1))
    return np.vstack([data if place is None else data[:place], row])


@pytest.mark.parametrize(("name", "weight"), diagonal(ESTIMATORS, WEIGHTS))
def test_estimators(monkeypatch, name, weight):
    fit, data = estimated(name), points()
    attack(monkeypatch, fit, data, beside(data, WEIGHTS[weight]))
    whole = beside(data, 4.0)
    attack(monkeypatch, fit, whole, beside(data, WEIGHTS[weight], sign=-1.0), replaced=True)
    attack(monkeypatch, fit, whole, beside(data, WEIGHTS[weight]), replaced=True)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_see_the_bound_as_far_as_it_is_charged(monkeypatch, name):
    """The attack can fail: the odd record is there, at the distance of one that counts once, or not at all."""
    data = points()
    assert attack(monkeypatch, estimated(name), data, beside(data, 1e9)) > 0.9
    assert attack(monkeypatch, estimated(name), data, beside(data, -1e9)) == 0


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_of_units_of_weighted_rows(monkeypatch, name):
    fit, data = estimated(name, max_rows=3), points()
    assert attack(monkeypatch, fit, data, beside(data, np.inf, copies=5)) > 0.9
    light = beside(beside(data, 1.0, copies=2), 4.0, sign=-1.0, copies=3)
    attack(monkeypatch, fit, beside(data, 4.0, copies=5), light, replaced=True)
    assert attack(monkeypatch, fit, data, beside(data, np.nan, copies=5)) == 0
