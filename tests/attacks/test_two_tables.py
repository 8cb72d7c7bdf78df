"""Two tables with a key: whole fits of neighbours that differ by all that either table holds of one key."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fixtures import two_tables
from fixtures.costly import ATTACKS, slow_after
from harness.coupling import attack, check_same, leaves
from sfumato import EstimateCount, MaxEntropy
from sfumato.schema.schema import Schema

pytestmark = pytest.mark.usefixtures("coarse_accounts")
FEW, NEW = 60, 10**6
BASE = two_tables.tables(FEW, 1)
PERSON = {"sex": "f", "born": 1950}
ODD = {"sex": "?", "born": 10**6}
ROW = {"day": 300, "score": 40.0, "state": "a"}
APART = [{"day": 20 * i, "score": 50.0 * (i % 3), "state": "abcd"[i % 4]} for i in range(12)]
UNITS = {
    "no row": ([PERSON], []),
    "one row": ([PERSON], [ROW]),
    "many rows alike": ([PERSON], [ROW] * 9),
    "many rows apart": ([ODD], APART),
    "twice among persons": ([PERSON, ODD, {**PERSON, "born": 1990}], APART[:3]),
    "corners": ([ODD], [{"day": 10**9, "score": np.inf, "state": "x"}, {"day": -5, "score": np.nan, "state": "d"}]),
}
KEPT = two_tables.schema(FEW)
FOUND = {
    "order": KEPT,
    "no order": two_tables.schema(FEW, order=None),
    "two rows": two_tables.schema(FEW, max_rows=2),
    "one row": two_tables.schema(FEW, max_rows=1),
}


def with_unit(tables: dict, persons: list[dict], rows: list[dict], name: int = NEW, seed: int = 0) -> dict:
    """Both tables with what they hold of one key more, anywhere among the others."""
    more = {"persons": persons, "visits": rows}
    found = {}
    for table, frame in tables.items():
        added = pd.DataFrame([{**row, "patient": name} for row in more[table]], columns=list(frame.columns))
        both = pd.concat([frame, added.astype(frame.dtypes)], ignore_index=True) if more[table] else frame
        found[table] = both.sample(frac=1, random_state=seed).reset_index(drop=True)
    return found


def fitted(found: Schema, n_public: int | EstimateCount = FEW, epsilon: float = 2.0, target: str | None = None):
    def fit(data):
        method = MaxEntropy(epsilon=epsilon, delta=1e-6, calibration_rows=60)
        return leaves(method.fit(data, schema=found, n_public=n_public, target=target, seed=1))

    return fit


CASES = [("order", unit) for unit in UNITS]
CASES += [(found, unit) for found in FOUND if found != "order" for unit in ("no row", "many rows apart")]


@pytest.mark.parametrize(("found", "unit"), slow_after(len(UNITS), CASES, ATTACKS))
def test_a_person_more_or_another(monkeypatch, found, unit):
    fit = fitted(FOUND[found])
    with_one = with_unit(BASE, *UNITS[unit])
    attack(monkeypatch, fit, BASE, with_one)
    other = with_unit(BASE, *UNITS["no row" if unit != "no row" else "many rows apart"], seed=3)
    attack(monkeypatch, fit, with_one, other, replaced=True)


@pytest.mark.parametrize("unit", slow_after(2, ["no row", "twice among persons", *list(UNITS)[1:4]], ATTACKS))
def test_a_person_more_or_another_where_persons_have_classes(monkeypatch, unit):
    fit = fitted(KEPT, epsilon=60.0, target="sex")
    with_one = with_unit(BASE, *UNITS[unit])
    assert attack(monkeypatch, fit, BASE, with_one) > 0
    other = with_unit(BASE, *UNITS["no row" if unit != "no row" else "corners"], seed=3)
    attack(monkeypatch, fit, with_one, other, replaced=True)


@pytest.mark.parametrize("rows", ["one row", "many rows apart"])
def test_rows_whose_person_comes_or_goes(monkeypatch, rows):
    """Orphans change no bit; a person to whom rows of no person then belong is one record more, with all of them."""
    fit = fitted(KEPT)
    orphans = with_unit(BASE, [], UNITS[rows][1])
    check_same(fit(BASE), fit(orphans))
    assert attack(monkeypatch, fit, orphans, with_unit(orphans, [PERSON], []), replaced=False) > 0


def test_rows_and_persons_without_a_key_change_nothing():
    fit = fitted(KEPT)
    nameless = {
        "persons": pd.concat([BASE["persons"], pd.DataFrame([{**PERSON, "patient": None}])]),
        "visits": pd.concat([BASE["visits"], pd.DataFrame([{**ROW, "patient": None}] * 3)]),
    }
    check_same(fit(BASE), fit(nameless))


def test_with_little_noise(monkeypatch):
    fit = fitted(KEPT, epsilon=60.0)
    attack(monkeypatch, fit, BASE, with_unit(BASE, *UNITS["no row"]))
    attack(monkeypatch, fit, BASE, with_unit(BASE, *UNITS["many rows apart"]))
    one, other = with_unit(BASE, *UNITS["many rows alike"]), with_unit(BASE, *UNITS["corners"])
    attack(monkeypatch, fit, one, other, replaced=True)


@pytest.mark.parametrize("kept", [FEW, 1, 0], ids=["60 persons", "one person", "nobody"])
def test_a_bought_number_of_persons(monkeypatch, kept):
    fit = fitted(two_tables.schema(None), EstimateCount())
    start = {"persons": BASE["persons"][:kept], "visits": BASE["visits"]}
    for unit in ("no row", "many rows alike"):
        attack(monkeypatch, fit, start, with_unit(start, *UNITS[unit]))


def test_a_person_with_all_visits_of_others_left_without(monkeypatch):
    """Where nobody else has a visit: one person brings the first steps there are."""
    fit = fitted(KEPT)
    start = {"persons": BASE["persons"], "visits": BASE["visits"][:0]}
    attack(monkeypatch, fit, start, with_unit(start, *UNITS["many rows apart"]))


NUMBERS = {
    "day": [0, 1500, -7, 1e12, np.nan, 3, 3, 3.4, np.inf, -np.inf],
    "score": [0, 100, 50, np.nan, np.inf, -1e308],
}
CONSTANTS = {"sex": ["f", "m", None, "?"], "born": [1920, 2010, np.nan, 1955.5, 1e300, -np.inf]}
STATES = ["a", "b", "c", "d", None, "?"]


def any_unit(rng: np.random.Generator, max_rows: int) -> tuple[list[dict], list[dict]]:
    """What both tables hold of one key: of either none, one or many, of any values."""
    persons, rows = rng.choice([0, 1, 1, 2, 5]), rng.choice([0, 1, 2, max_rows, max_rows + 1, 60])
    held = [{name: rng.choice(values) for name, values in CONSTANTS.items()} for _ in range(persons)]
    numbers = [{name: rng.choice(values) for name, values in NUMBERS.items()} for _ in range(rows)]
    return held, [{**row, "state": rng.choice(STATES)} for row in numbers]


@pytest.mark.audit
@pytest.mark.parametrize("seed", slow_after(3, range(12)))
def test_any_unit(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    of_numbers = {"persons": {"born": float}, "visits": {"day": float, "score": float}}
    base = {name: frame.astype(of_numbers[name]) for name, frame in BASE.items()}
    max_rows, order = int(rng.choice([1, 2, 3, 6, 40])), [None, "day", "score"][seed % 3]
    if bought := seed % 4 == 0:
        fit = fitted(two_tables.schema(None, max_rows=max_rows, order=order), EstimateCount())
    else:
        fit = fitted(two_tables.schema(FEW, max_rows=max_rows, order=order), epsilon=float(rng.choice([0.3, 2, 50])))
    one = with_unit(base, *any_unit(rng, max_rows), seed=seed)
    attack(monkeypatch, fit, base, one)
    if not bought and len(one["persons"]) > FEW:
        attack(monkeypatch, fit, one, with_unit(base, [PERSON], any_unit(rng, max_rows)[1], seed=1), replaced=True)
