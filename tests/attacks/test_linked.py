"""Linked rows: whole fits of neighbours that differ by a unit, with no, one, or many rows, wherever they lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fixtures import linked_rules
from fixtures.costly import ATTACKS, diagonal, slow_after
from fixtures.linked import schema, visits
from harness.coupling import attack, check_same, leaves
from sfumato import EstimateCount, MaxEntropy, tune
from sfumato.schema.schema import Schema
from sfumato.search import pair_scores, tuning

pytestmark = pytest.mark.usefixtures("coarse_accounts")
FEW = 60
BASE = visits(FEW, 1)
ROW = {"day": 300, "sex": "f", "born": 1950, "score": 40.0, "state": "a"}
UNITS = {
    "one row": [ROW],
    "many rows alike": [ROW] * 9,
    "corners": [
        {"day": day, "sex": "?", "born": 10**6, "score": score, "state": state}
        for day, score, state in ((10**9, np.nan, "d"), (-5, np.inf, "x"), (0, -np.inf, "d"), (700, 100.0, "a"))
    ],
    "many rows apart": [{**ROW, "day": 20 * i, "score": 50.0 * (i % 3), "state": "abcd"[i % 4]} for i in range(12)],
    "ties": [{**ROW, "state": state} for state in "abcdabcd"],
}
KEPT = schema(units=FEW)
QUESTIONS = [
    "ols: `change of score` ~ born + C(sex)", "mean: mean of score by sex", "share: ever of state=d by sex",
    "correlation: lag 2 of score",
]  # fmt: skip
FOUND = {
    "order and constants": KEPT,
    "no order": schema(units=FEW, order=None),
    "two rows": schema(units=FEW, max_rows=2),
    "questions": replace(KEPT, questions=QUESTIONS),
}


def with_unit(frame: pd.DataFrame, rows: list[dict], name: int = 10**6, seed: int = 0) -> pd.DataFrame:
    """The frame with one unit more, its rows anywhere among the others."""
    more = pd.DataFrame([{**row, "patient": name} for row in rows])[list(frame.columns)]
    both = pd.concat([frame, more], ignore_index=True)
    return both.sample(frac=1, random_state=seed).reset_index(drop=True).astype({"score": float, "day": np.int64})


def fitted(found: Schema, n_public: int | EstimateCount = FEW, epsilon: float = 2.0, target: str | None = None):
    def fit(data):
        method = MaxEntropy(epsilon=epsilon, delta=1e-6, calibration_rows=60)
        return leaves(method.fit(data, schema=found, n_public=n_public, target=target, seed=1))

    return fit


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("found", "unit"), diagonal(FOUND, UNITS))
def test_a_unit_more_or_another(monkeypatch, found, unit):
    fit = fitted(FOUND[found])
    with_one = with_unit(BASE, UNITS[unit])
    attack(monkeypatch, fit, BASE, with_one)
    other = with_unit(BASE, UNITS["one row" if unit != "one row" else "many rows apart"], seed=3)
    assert attack(monkeypatch, fit, with_one, other, replaced=True) > 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("epsilon", "unit"), slow_after(2, [(e, unit) for unit in UNITS for e in (60.0, 2.0)], ATTACKS)
)
def test_a_unit_more_or_another_where_units_have_classes(monkeypatch, epsilon, unit):
    fit = fitted(KEPT, epsilon=epsilon, target="sex")
    with_one = with_unit(BASE, UNITS[unit])
    assert attack(monkeypatch, fit, BASE, with_one) > 0
    other = with_unit(BASE, [{**row, "sex": "m"} for row in UNITS["one row" if unit != "one row" else "ties"]], seed=3)
    assert attack(monkeypatch, fit, with_one, other, replaced=True) > 0


@pytest.mark.parametrize("unit", slow_after(1, ["one row", "many rows apart"], ATTACKS))
def test_the_only_unit_of_its_class(monkeypatch, unit):
    """That there is one of this class leaves by noisy counts alone: which classes are told apart is of the schema."""
    fit = fitted(KEPT, epsilon=60.0, target="sex")
    men = BASE.assign(sex="m")
    attack(monkeypatch, fit, men, with_unit(men, UNITS[unit]))


def test_the_longest_units_with_little_noise(monkeypatch):
    fit = fitted(KEPT, epsilon=100.0)  # at 60 the steps of so few units say nothing
    attack(monkeypatch, fit, BASE, with_unit(BASE, UNITS["many rows apart"]))
    attack(
        monkeypatch, fit, with_unit(BASE, UNITS["many rows alike"]), with_unit(BASE, UNITS["corners"]), replaced=True
    )


@pytest.mark.parametrize(("found", "unit"), diagonal(FOUND, UNITS))
def test_a_search(monkeypatch, found, unit):
    """Beyond its scores of units and of steps, and its fits, nothing of a unit reaches a search."""
    monkeypatch.setattr(tuning, "drawn_repetitions", lambda law, noise: 2)
    monkeypatch.setattr(tuning, "drawn_candidate", lambda n, noise: 0)
    monkeypatch.setattr(pair_scores, "_SAMPLES", 64)
    monkeypatch.setattr(pair_scores, "_BLOCK", 64)
    method = MaxEntropy(epsilon=3.0, delta=1e-6, calibration_rows=60)

    def fit(data):
        release = tune(data, method=[method], schema=FOUND[found], n_public=FEW, seed=1)
        assert {"units: counts of pairs of cells", "steps: counts of pairs of cells"} <= {
            measurement.name for measurement in release.measurements
        }
        return leaves(release)

    with_one = with_unit(BASE, UNITS[unit])
    attack(monkeypatch, fit, BASE, with_one)
    other = with_unit(BASE, UNITS["one row" if unit != "one row" else "many rows apart"], seed=3)
    assert attack(monkeypatch, fit, with_one, other, replaced=True) > 0


@pytest.mark.parametrize("start", [BASE, BASE[:1], BASE[:0]], ids=["60 units", "one row", "none"])
def test_a_bought_number_of_units(monkeypatch, start):
    fit = fitted(schema(units=None), EstimateCount())
    start = start.astype({"score": float, "day": np.int64})
    attack(monkeypatch, fit, start, with_unit(start, UNITS["many rows alike"]))


def test_rows_beyond_those_that_count_change_nothing():
    """More rows behind the last that counts: no exact value moves, so the release is the same."""
    rows = [{**ROW, "day": 10 * i, "score": 10.0 * i} for i in range(6)]
    fit = fitted(KEPT)
    one = fit(with_unit(BASE, rows))
    more = fit(with_unit(BASE, [*rows, {**ROW, "day": 1400, "score": 0.0}, {**ROW, "day": 1500, "state": "d"}]))
    check_same(one, more)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_unit_whose_rows_break_rules(monkeypatch):
    base = linked_rules.visits().head(120)
    row = {"sex": "m", "age": 3, "discharged": 10, "stay": 5, "pregnant": "yes", "ward": "a"}
    more = pd.DataFrame([{**row, "who": 10**6, "admitted": 900 - i} for i in range(6)])[list(base.columns)]
    fit = fitted(Schema.from_dict(linked_rules.DOCUMENT))
    attack(monkeypatch, fit, base, pd.concat([more, base], ignore_index=True))
