"""Fits of neighbours with sets beside columns: whatever a record's set holds, nothing else reaches the release."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fixtures.costly import ATTACKS, slow_after
from fixtures.set_tables import people, set_schema
from harness.coupling import attack, leaves
from sfumato import EstimateCount, MaxEntropy, Schema, Unit
from sfumato.columns import Identifier

pytestmark = pytest.mark.usefixtures("coarse_accounts")
FEW = 70
LISTS = pa.list_(pa.string())
ODD = {
    "unknown items": ["?", "", "i10", "\x00"], "repeated items": ["I10"] * 9, "the empty set": [], "missing": None,
    "a missing item": [None, "F32", None], "every item": ["E11", "I50", "J45", "F32", "I10"],
    "a huge set": [*("?" * 5_000), *(["I10", "F32"] * 5_000), "E11"], "tokens of missing": ["NA", "nan", "J45"],
}  # fmt: skip


def table(n=FEW, seed=0):
    frame = people(n, seed)
    return pa.table({
        "age": frame["age"], "sex": frame["sex"], "diagnoses": pa.array(frame["diagnoses"].tolist(), LISTS),
        "p": [i // 2 for i in range(n)],
    })  # fmt: skip


def schema(unit=None, rows: int | None = FEW, **changes):
    found = set_schema(FEW, **changes)
    return Schema(columns={**found.columns, "p": Identifier()}, rows=rows, unit=unit)


def fitted(found, target=None, epsilon=2.0, n_public=None):
    def fit(data):
        method = MaxEntropy(epsilon=epsilon, delta=1e-6, calibration_rows=60)
        return leaves(method.fit(data, schema=found, target=target, n_public=n_public, seed=1))

    return fit


def with_row(rows, held, *, place=None, age=10**6, sex="?"):
    row = pa.table({"age": [age], "sex": [sex], "diagnoses": pa.array([held], LISTS), "p": [10**6]}, schema=rows.schema)
    rest = rows if place is None else pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)])
    return pa.concat_tables([rest, row])


@pytest.mark.parametrize("odd", slow_after(4, ODD, ATTACKS))
def test_a_record_more_or_another(monkeypatch, odd):
    rows = with_row(table(), ["I10", "F32"], age=40, sex="m")
    for found, target in ((schema(), None), (schema(max_length=2, other="else"), "sex")):
        fit = fitted(found, target)
        attack(monkeypatch, fit, rows, with_row(rows, ODD[odd]))
        attack(monkeypatch, fit, rows, with_row(rows, ODD[odd], place=FEW), replaced=True)


def test_all_items_or_none_are_seen_as_far_as_they_are_charged(monkeypatch):
    """The attack can fail: the odd record is there, and one whose set alone differs is seen."""
    rows = table()
    assert attack(monkeypatch, fitted(schema()), rows, with_row(rows, ODD["every item"])) > 0.5
    one = with_row(rows, [], age=40, sex="m")
    other = with_row(one, ODD["every item"], place=FEW, age=40, sex="m")
    assert attack(monkeypatch, fitted(schema()), one, other, replaced=True) > 0.5
    same = with_row(one, ["?", None], place=FEW, age=40, sex="m")
    assert attack(monkeypatch, fitted(schema()), one, same, replaced=True) == 0


def test_little_noise(monkeypatch):
    rows = with_row(table(), [])
    fit = fitted(schema(), "sex", epsilon=60.0)
    attack(monkeypatch, fit, rows, with_row(rows, ODD["every item"]))
    attack(monkeypatch, fit, rows, with_row(rows, ODD["every item"], place=FEW), replaced=True)


@pytest.mark.parametrize("n", [0, 1])
def test_few_rows_and_a_bought_number(monkeypatch, n):
    start = table()[:n]
    attack(monkeypatch, fitted(schema(rows=None), n_public=EstimateCount()), start, with_row(start, ODD["every item"]))


def test_units_of_several_sets(monkeypatch):
    rows = table()
    fit = fitted(schema(unit=Unit(column="p", max_rows=2)))
    more = with_row(with_row(with_row(rows, ODD["every item"]), None), [])
    attack(monkeypatch, fit, rows, more)
    attack(monkeypatch, fit, more, with_row(with_row(rows, ["?"]), ODD["a huge set"]), replaced=True)


def test_cells_of_objects_that_are_no_sets(monkeypatch):
    """In a pandas column of objects one cell may be anything; the others are read as before."""
    rows = people(FEW).assign(p=range(FEW))
    fit = fitted(schema())
    for odd in (
        "I10",
        3.5,
        {"F32", "I10"},
        object(),
        [[["I10"]]],
        np.zeros((2, 2)),
        [2**70],
        ["\ud800"],
        pd.NA,
        b"I10",
    ):
        row = pd.DataFrame({"age": [40], "sex": ["f"], "diagnoses": pd.Series([odd], dtype=object), "p": [10**6]})
        attack(monkeypatch, fit, rows, pd.concat([rows, row], ignore_index=True))


NAMES = ["E11", "I50", "J45", "F32", "I10", "?", "", None, "NA", "i10"]


def any_row(rng: np.random.Generator, rows: pa.Table) -> pa.Table:
    held = (
        None if rng.random() < 0.15 else [NAMES[i] for i in rng.integers(0, len(NAMES), rng.choice([0, 1, 3, 8, 40]))]
    )
    return with_row(rows, held, age=int(rng.choice([0, 40, 10**6, -5])), sex=rng.choice(["f", "m", "?", None]))


@pytest.mark.audit
@pytest.mark.parametrize("seed", slow_after(3, range(10)))
def test_any_record(monkeypatch, seed):
    rng, rows = np.random.default_rng(seed), table(seed=seed)
    found = schema() if seed % 2 else schema(max_length=int(rng.integers(1, 5)), other="else")
    fit = fitted(found, "sex" if seed % 3 == 0 else None, float(rng.choice([0.3, 2, 50])))
    one = any_row(rng, rows)
    attack(monkeypatch, fit, rows, one)
    attack(monkeypatch, fit, one, any_row(rng, rows), replaced=True)


@pytest.mark.parametrize("form", ["large", "text of 64 bits", "dictionary"])
def test_forms_of_lists(monkeypatch, form):
    types = {"large": pa.large_list(pa.string()), "text of 64 bits": pa.list_(pa.large_string())}

    def stored(rows):
        lists = rows["diagnoses"].combine_chunks()
        if form == "dictionary":
            lists = pa.ListArray.from_arrays(lists.offsets, lists.values.dictionary_encode(), mask=lists.is_null())
        return rows.set_column(2, "diagnoses", lists.cast(types[form]) if form in types else lists)

    rows, fit = table(), fitted(schema(max_length=2))
    for odd in ("a missing item", "every item", "missing"):
        attack(monkeypatch, fit, stored(rows), stored(with_row(rows, ODD[odd])))
