"""Columns of people are found by name, form and what follows from them; honest codes and quantities are none."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from sfumato.columns.kinds import Identifier
from sfumato.columns.open import Open
from sfumato.desk.drafting import draft_schema
from sfumato.io.sources import open_source

RNG = np.random.default_rng(3)
FIRST = ["Anna", "Otto", "Eva", "Max"]
LAST = ["Huber", "Maier", "Gruber", "Bauer", "Wolf", "Lang", "Fuchs"]
HASHES = [hashlib.md5(str(i).encode(), usedforsecurity=False).hexdigest() for i in range(200)]


def uneven(values):
    """Each value in a number of rows of its own: 1 to 300."""
    return RNG.permutation(
        np.repeat(np.array(values, dtype=object), RNG.lognormal(2, 1.2, len(values)).astype(int) + 1)
    )


def draft(**columns):
    return draft_schema(open_source(pd.DataFrame(columns)), names_are_public=True)


def facts_of(who, n_of_sex=2):
    """What is measured of each row; and sex, year of birth and centre, the same in all rows of one person."""
    _, person = np.unique(np.array(who, dtype=str), return_inverse=True)
    sex, born, centre = RNG.permutation(person.max() + 1) % n_of_sex, RNG.integers(1930, 2000, person.size), person % 7
    return {"lab": RNG.normal(5, 1, person.size).round(2), "sex": np.array(["f", "m"])[sex[person]],
            "birth_year": born[person], "centre": centre, "visited": RNG.integers(0, 60, person.size)}  # fmt: skip


NAMED = {
    "USUBJID": [f"01-{701 + i % 12}-{1000 + i}" for i in range(250)],
    "subjid": range(1001, 1251),
    "pid": range(60),
    "participant": [f"VP{i:02}" for i in range(12)],
    "Probandennummer": range(5000, 5280, 7),
    "nr": range(100, 300),
    "case_no": range(1, 31),
    "household_id": range(200),
    "subject": [f"S{i:03}" for i in range(40)],
    "patient_id2": ["P1", "P2", "P3"],
    "client_code": list("ABCD"),
    "user": range(15),
}
OPAQUE = {
    "codes": [f"S{i:03}" for i in range(25)],
    "hashes": HASHES,
    "short hashes": [text[:8] for text in HASHES],
    "addresses": [f"{a}.{b}@example.org".lower() for a in FIRST for b in LAST],
    "numbers to call": [f"+49 30 {1_234_567 + 3 * i}" for i in range(90)],
    "local numbers": [f"0301-{23_456 + i}" for i in range(90)],
    "words for people": [f"Patient {i}" for i in range(60)],
    "padded": [f"{i:06}" for i in range(50, 120)],
}
FOLLOWED = {
    "numbers": range(17, 467, 3),
    "seven digits": range(1_000_001, 1_004_001, 13),
    "names": [f"{a} {b}" for a in FIRST for b in LAST],
    "few": ["Red", "Blue", "Green", "Grey", "Pink", "Gold", "Teal", "Lime", "Navy", "Plum", "Rose", "Sand"],
}


@pytest.mark.parametrize("spread", [uneven, lambda values: np.repeat(np.array(values, dtype=object), 20)])
@pytest.mark.parametrize(
    ("name", "values", "facts"),
    [(name, values, False) for name, values in NAMED.items()]
    + [("x", OPAQUE[key], False) for key in OPAQUE]
    + [("x", FOLLOWED[key], True) for key in FOLLOWED],
)
def test_what_numbers_people_is_left_out_and_asked_about(name, values, facts, spread):
    who = spread(values)
    found = draft(**{name: who, "lab": RNG.normal(size=len(who)), **(facts_of(who) if facts else {})})
    assert found.schema.columns[name] == Identifier()
    assert name in found.protection.question
    distinct = len(set(values))
    assert f"{distinct:,} values of" in found.protection.question
    assert f"{distinct:,} values of" in found.notes[name]
    assert (", all with one sex" in found.notes[name].replace("birth_year, sex", "sex")) == facts


def test_the_evidence_is_exact():
    who = np.repeat(np.arange(40) * 7 + 1000, [1, *[5] * 38, 300])
    found = draft(x=who, **facts_of(who))
    assert found.notes["x"].startswith(
        "seems to name people: 40 values of 1 to 300 rows each, all with one sex, centre"
    )
    assert "#   x: " not in found.to_yaml()
    assert "# seems to name people: 40 values" in found.to_yaml()
    assert found.schema.draft
    assert found.schema.unit is None


N = 4_000
STORES, PRODUCTS = RNG.integers(0, 40, N), RNG.zipf(1.3, N) % 200
HONEST = {
    "age": RNG.integers(18, 90, N),
    "year": RNG.integers(1990, 2024, N),
    "income": RNG.lognormal(10, 0.6, N).round(-2),
    "hours": RNG.integers(0, 60, N),
    "height": RNG.integers(140, 200, N),
    "birth_year": RNG.integers(1930, 2005, N),
    "score": RNG.integers(0, 101, N),
    "occupation": RNG.integers(1000, 1080, N),
    "zip": RNG.integers(10_000, 10_300, N).astype(str),
    "store": [f"S{i:02}" for i in STORES],
    "region": STORES % 5,
    "product_code": [f"SKU-{1000 + i}" for i in PRODUCTS],
    "category": PRODUCTS % 9,
    "price": PRODUCTS * 3.5 + 1,
    "icd10": [f"{'ABCEF'[i % 5]}{i % 60:02}.{i % 3}" for i in RNG.zipf(1.5, N)],
    "ageband": [f"{5 * i}-{5 * i + 4}" for i in RNG.integers(0, 22, N)],
    "week": [f"2021-W{i + 1:02}" for i in RNG.integers(0, 52, N)],
    "pressure": [f"{i}/{i - 40}" for i in RNG.integers(100, 180, N)],
    "town": [f"Land {i}" for i in RNG.integers(0, 30, N)],
    "veteran": RNG.choice(["yes", "no"], N),
    "member": RNG.integers(0, 2, N),
    "child": RNG.poisson(1, N),
    "subject": RNG.choice(["maths", "music", "Latin"], N),
    "sex": RNG.choice(["f", "m"], N),
}


def test_codes_quantities_and_answers_are_not_asked_about():
    told = {"age_group": HONEST["age"] // 10, "adult": HONEST["age"] > 25, "retired": HONEST["age"] > 65}
    found = draft(**HONEST, **told)
    assert [name for name, note in found.notes.items() if "people" in note] == []
    assert "repeat" not in found.protection.question


def test_one_rows_number_is_left_out_and_no_unit():
    found = draft(patient_id=[f"P{i}" for i in range(300)], sex=RNG.choice(["f", "m"], 300))
    assert (found.schema.unit, found.schema.released) == (None, ("sex",))
    assert "300 values of 1 row each" in found.notes["patient_id"]


def test_who_says_that_a_column_names_nobody_is_believed():
    who = uneven(NAMED["USUBJID"])
    found = draft(USUBJID=who, lab=RNG.normal(size=len(who)))
    entry = found.notes["USUBJID"].split("write ")[-1]
    assert entry == "{kind: categorical, discover: true}"
    assert draft(x=RNG.choice(["a", "b"], 100)).schema.columns["x"] == Open(kind="categorical")
