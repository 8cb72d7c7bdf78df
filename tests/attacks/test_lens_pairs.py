"""Fits of neighbours with two shapes at once: whatever a record of both holds, nothing else reaches the release."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from fixtures.costly import ATTACKS, slow_after
from fixtures.shape_pairs import document, people
from harness.coupling import attack, leaves
from sfumato import MaxEntropy, Schema, tune

pytestmark = pytest.mark.usefixtures("coarse_accounts")
FEW = 70
NAN = float("nan")
ODD: dict[str, dict[str, Any]] = {
    "rules+sets": {
        "order broken, unknown items": {"start": 60, "end": -9, "sex": "?", "items": ["?"] * 9, "w": 1.0},
        "no set, no number": {"start": NAN, "end": 60, "sex": "f", "items": None, "w": 1.0},
        "every item": {"start": 5, "end": 5, "sex": "m", "items": ["x", "y", "x"], "w": 1.0},
    },
    "sets+weight": {
        "beyond the bound": {"start": 60, "end": -9, "sex": "?", "items": ["x", "y"], "w": 1e9},
        "negative": {"start": 5, "end": 5, "sex": "m", "items": None, "w": -1e9},
        "missing": {"start": 5, "end": 5, "sex": "m", "items": [], "w": NAN},
    },
}
UNITS: dict[str, list[dict[str, Any]]] = {
    "one row": [{"start": 5, "end": 5, "sex": "f", "w": 4.0}],
    "rows of other weights": [{"start": s, "end": -9, "sex": "?", "w": w} for s, w in ((60, -1e9), (0, 1e9), (9, NAN))],
    "many rows of the bound": [{"start": s, "end": 60, "sex": "m", "w": 1e9} for s in range(9)],
    "no weight": [{"start": 1, "end": 2, "sex": "m", "w": NAN}] * 3,
}
CASES = [pytest.param(pair, row, id=f"{pair}: {row}") for pair, rows in ODD.items() for row in rows]


def start(n: int = FEW) -> pd.DataFrame:
    return people().head(n).astype({"start": float, "end": float})


def fitted(pair: str, epsilon: float = 2.0, **settings: Any):
    schema = Schema.from_dict(document(tuple(pair.split("+"))))
    method = MaxEntropy(epsilon=epsilon, delta=1e-6, calibration_rows=60)

    def fit(data):
        return leaves(method.fit(data, schema=schema, n_public=FEW, seed=1, **settings))

    return fit


def with_row(frame: pd.DataFrame, row: dict[str, Any]) -> pd.DataFrame:
    return pd.concat([frame, pd.DataFrame([{"who": 10**6, "state": "b", **row}])], ignore_index=True)[list(frame)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("pair", "row"), CASES)
def test_a_record_more_or_another(monkeypatch, pair, row):
    fit, more = fitted(pair, target="sex"), with_row(start(), ODD[pair][row])
    attack(monkeypatch, fit, start(), more)
    plain = {"start": 3.0, "end": 9.0, "sex": "f", "items": ["x"], "w": 4.0}
    assert attack(monkeypatch, fit, more, with_row(start(), plain), replaced=True) > 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("weight", [1e9, -1e9, NAN])
def test_a_weighted_record_of_a_search(monkeypatch, weight):
    schema = Schema.from_dict(document(("weight",)))
    method = MaxEntropy(epsilon=20.0, delta=1e-6, calibration_rows=60)

    def fit(data):
        return leaves(tune(data, method=[method], schema=schema, n_public=FEW, mean_repetitions=1, seed=1))

    row = {"start": 60.0, "end": -9.0, "sex": "?", "items": None, "w": weight}
    seen = attack(monkeypatch, fit, start(), with_row(start(), row))
    assert (seen > 0.5) == (weight > 0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("unit", slow_after(2, UNITS, ATTACKS))
def test_a_weighted_unit_more_or_another(monkeypatch, unit):
    frame, fit = people().astype({"start": float, "end": float}), fitted("linked+weight")
    rows = [{"who": 10**6, "state": "b", "items": None, **row} for row in UNITS[unit]]
    other = [{**row, **UNITS["one row"][0], "start": 30.0 + i} for i, row in enumerate([rows[0]] * 4)]
    one, two = (pd.concat([pd.DataFrame(more)[list(frame)], frame], ignore_index=True) for more in (rows, other))
    seen = attack(monkeypatch, fit, frame, one)
    assert (seen > 0.5) == (unit in ("one row", "many rows of the bound", "rows of other weights"))
    assert attack(monkeypatch, fit, one, two, replaced=True) > 0.3
    little = fitted("linked+weight", epsilon=60.0)
    attack(monkeypatch, little, frame, one)


SETS: dict[str, list[Any]] = {
    "one row": [["x"]],
    "every item in many rows": [["x", "y", "x"]] * 9,
    "no sets": [None, [], ["?"] * 9],
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("unit", SETS)
def test_a_unit_with_sets_more_or_another(monkeypatch, unit):
    frame, fit = people().astype({"start": float, "end": float}), fitted("linked+sets")

    def with_unit(cells):
        rows = [
            {"who": 10**6, "start": 5.0 * i, "end": -9.0, "sex": "f", "state": "b", "w": 1.0, "items": cell}
            for i, cell in enumerate(cells)
        ]
        return pd.concat([pd.DataFrame(rows)[list(frame)], frame], ignore_index=True)

    one = with_unit(SETS[unit])
    assert attack(monkeypatch, fit, frame, one) > 0.3
    assert attack(monkeypatch, fit, one, with_unit([["y"], ["x"], []]), replaced=True) > 0.3
