"""Databases: whole fits of neighbours that differ by one person with rows in every table."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from fixtures.costly import ATTACKS, slow_after
from fixtures.database import hospital, ruled_document, ruled_hospital, schema
from harness.coupling import attack, check_same, leaves
from sfumato import MaxEntropy, Schema

pytestmark = pytest.mark.usefixtures("coarse_accounts")
FEW, NEW = 60, 10**7
BASE, SCHEMA = hospital(FEW, 1), schema(FEW)
VISIT = {"visit": NEW, "start": 300, "end": 310, "score": 40.0, "state": "well"}
LATER = [{**VISIT, "visit": NEW + i, "start": 100 * i, "end": 100 * i + 5, "score": 25.0 * (i % 4)} for i in range(8)]
UNITS: dict[str, dict[str, list[dict]]] = {
    "no row": {},
    "a row in every table": {
        "visits": [VISIT], "measurements": [{"visit": NEW, "at": 305, "value": 3.0}], "drugs": [{"drug": "a"}],
    },
    "many rows": {
        "visits": LATER,
        "measurements": [{"visit": NEW + i % 8, "at": 10**9, "value": float(i % 11)} for i in range(50)],
        "drugs": [{"drug": "abc"[i % 3]} for i in range(9)],
    },
    "dead at once, and again": {"visits": [{**v, "state": "dead"} for v in LATER]},
    "orphans": {"visits": [{**VISIT, "visit": None}], "measurements": [{"visit": NEW + 99, "at": 0, "value": 0.0}]},
}  # fmt: skip

QUESTIONS = ["mean: mean of score by sex", "correlation: lag 1 of score", "ols: `number of drugs` ~ `mean of value`"]
ASKED = replace(SCHEMA, questions=QUESTIONS)


def with_person(tables: dict, rows: dict[str, list[dict]], seed: int = 0) -> dict:
    """The tables with a person more, whose rows lie anywhere among the others."""
    more = {"persons": [{"person": NEW, "sex": "m", "age": 10**6}], **rows}
    found = {}
    for table, frame in tables.items():
        own = more.get(table, [])
        added = pd.DataFrame(
            [{**row, **({"person": NEW} if "person" in frame else {})} for row in own], columns=list(frame)
        )
        both = (
            pd.concat([frame.astype(object), added.astype(object)], ignore_index=True) if own else frame.astype(object)
        )
        found[table] = both.sample(frac=1, random_state=seed).reset_index(drop=True)
    return found


def fitted(data, known=SCHEMA, target=None):
    method = MaxEntropy(epsilon=2.0, delta=1e-6, calibration_rows=60)
    return leaves(method.fit(data, schema=known, target=target, n_public=FEW, seed=1))


@pytest.mark.parametrize("unit", slow_after(2, dict.fromkeys(["a row in every table", "many rows", *UNITS]), ATTACKS))
def test_a_person_more_or_another(monkeypatch, unit):
    with_one = with_person(BASE, UNITS[unit])
    attack(monkeypatch, fitted, BASE, with_one)
    other = with_person(BASE, UNITS["no row" if unit != "no row" else "many rows"], seed=3)
    attack(monkeypatch, fitted, with_one, other, replaced=True)


def test_a_person_more_where_rows_are_at_distances_from_those_above(monkeypatch):
    base, known = ruled_hospital(FEW, 1), Schema.from_dict(ruled_document(FEW))
    attack(monkeypatch, lambda data: fitted(data, known), base, with_person(base, UNITS["many rows"]))


@pytest.mark.parametrize("unit", slow_after(2, ["many rows", "a row in every table", "no row"], ATTACKS))
def test_a_person_more_where_questions_are_named(monkeypatch, unit):
    """With little noise, so that questions are aimed by what rows say."""
    method = MaxEntropy(epsilon=60.0, delta=1e-6, calibration_rows=60)

    def fit(data):
        return leaves(method.fit(data, schema=ASKED, n_public=FEW, seed=1))

    with_one = with_person(BASE, UNITS[unit])
    assert attack(monkeypatch, fit, BASE, with_one) > 0
    other = with_person(BASE, UNITS["dead at once, and again"], seed=3)
    assert attack(monkeypatch, fit, with_one, other, replaced=True) > 0


def test_a_person_more_where_units_have_classes(monkeypatch):
    attack(monkeypatch, lambda data: fitted(data, target="sex"), BASE, with_person(BASE, UNITS["many rows"]))


def test_orphans_and_the_order_of_rows_move_nothing():
    lost = with_person(BASE, UNITS["orphans"])
    lost["persons"] = BASE["persons"].sample(frac=1, random_state=3)
    check_same(fitted(BASE), fitted(lost))
