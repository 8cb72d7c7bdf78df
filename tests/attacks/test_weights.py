"""Weighted fits of neighbours: whatever a record's weight cell holds, nothing else reaches the release."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fixtures.costly import diagonal
from harness.coupling import attack, leaves
from sfumato import BuyCount, MaxEntropy, Schema, Unit, Weight
from sfumato.columns import Categorical, Continuous, Identifier

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


def test_little_noise_and_moments_by_class(monkeypatch):
    frame = people()
    fit = fitted(schema(), "g", epsilon=60.0)
    attack(monkeypatch, fit, frame, with_row(frame, 1e9))
    attack(monkeypatch, fit, with_row(frame, 4.0), with_row(frame, 4.0, corner=True), replaced=True)


@pytest.mark.parametrize("start", [people(), people()[:1], people()[:0]], ids=["70 rows", "1 row", "no row"])
def test_few_rows_and_a_bought_number(monkeypatch, start):
    attack(monkeypatch, fitted(schema(rows=None), None, n_public=BuyCount()), start, with_row(start, 4.0))


def test_units_of_weighted_rows(monkeypatch):
    fit = fitted(schema(unit=Unit(column="p", max_rows=2)), None)
    frame = people()
    more = with_row(with_row(with_row(frame, 4.0), np.inf, corner=True), -1.0)
    attack(monkeypatch, fit, frame, more)
    attack(monkeypatch, fit, more, with_row(with_row(frame, 1.0, corner=True), 4.0), replaced=True)
