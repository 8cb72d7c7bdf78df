"""Without the holder's word no column that names people is released as labels, and charged counts alone decide."""

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.coupling import attack, coupled, leaves
from sfumato import MaxEntropy
from sfumato.errors import SchemaWarning
from sfumato.fitting.discovery import DOMAINS
from sfumato.io.sources import open_source
from sfumato.schema.open_schema import OpenSchema

RNG = np.random.default_rng(0)
METHOD = MaxEntropy(epsilon=8.0, delta=1e-6)
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")


def found(columns, **options) -> tuple[Any, list[str]]:
    """The schema of a fit without one, and what it said."""
    frame = pd.DataFrame(columns)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        schema = OpenSchema.of(frame, rows=len(frame))
        release = MaxEntropy(**{"epsilon": 4.0, "delta": 1e-6, **options}).fit(frame, schema=schema, seed=1)
    return release.schema, [str(one.message) for one in said if one.category is SchemaWarning]


def each(values, times):
    return np.repeat(values, times)


SEX = RNG.choice(["f", "m"], 4_000)
SUBJECTS = [f"01-{700 + i % 12}-{1000 + i}" for i in range(20)]
NAMED = {
    "patient_id": SUBJECTS,
    "USUBJID": SUBJECTS,
    "Probandennummer": range(100, 120),
    "hhid": range(5, 105, 5),
    "email": [f"anna{i}@example.org" for i in range(20)],
    "first_name": [f"{a}nna" for a in "ABCDEFGHIJKLMNOPQRST"],
    "participant": [f"S{i:03}" for i in range(20)],
    "case_no": np.arange(20) + 0.5,
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("shown", [20, 2])
def test_a_column_of_people_is_left_out_by_its_name(name, shown):
    """However often each occurs."""
    cells = each(list(NAMED[name])[:shown], 4_000 // shown)
    schema, said = found({name: cells, "sex": SEX})
    assert schema.released == ("sex",)
    assert any(f"The name of {name!r} says that it names people" in one for one in said)


def test_what_only_sounds_like_people_stays():
    """Yes and no, sizes, and what people have."""
    some = {"veteran": ["no", "yes"], "member": [0, 1], "phone": ["Yes", "No"]}
    columns = {name: each(values, 2_000) for name, values in some.items()} | {"patient_age": RNG.integers(0, 90, 4_000)}
    schema, _ = found(columns)
    assert schema.released == tuple(columns)


def codes_with_a_tail(share, n=4_000, codes=tuple("ABCD")):
    """Four codes, and a share of others of which each occurs once."""
    tail = round(share * n)
    return [*(f"{codes[i % 4]}{i % 4}1" for i in range(n - tail)), *(f"Z{i}9" for i in range(tail))]


@pytest.mark.parametrize(("share", "released"), [(0.0, True), (0.02, True), (0.2, False), (0.7, False)])
def test_codes_with_a_long_tail_are_left_out(share, released):
    schema, said = found({"x": codes_with_a_tail(share), "sex": SEX})
    assert ("x" in schema.released) == released
    assert any("codes that can be told from the noise" in one and "'x'" in one for one in said) == (not released)
    numbers = [*each([101, 102], 1_000), *each(["none"], 1_000), *range(10_000, 11_000)]
    assert "x" not in found({"x": numbers, "sex": SEX})[0].released


def test_words_with_a_long_tail_are_labels_with_a_rest():
    words = [
        *each(["Austria", "Turkey"], 1_600),
        *(f"{a}{b}land" for a in "abcdefghijklmnopqrst" for b in "abcdefghij"),
    ]
    schema, _ = found({"born_in": [*words, *words[3_200:], *words[3_200:], *words[3_200:]], "sex": SEX})
    assert {"Austria", "Turkey", "other"} <= set(schema.columns["born_in"].labels)


def test_where_nothing_else_is_left_no_code_is_shown():
    schema, _ = found({"patient_id": each(SUBJECTS, 200)})
    assert schema.columns["patient_id"].labels == ("other",)


@pytest.mark.filterwarnings("ignore::sfumato.errors.SchemaWarning")
@pytest.mark.parametrize("per_person", [1, 3])
def test_coupled_fits_at_the_bound_of_the_share_are_the_same(monkeypatch, per_person):
    """One person more, with whom the exact share reaches what the noisy one has to."""

    def table(frequent, rare=30):
        codes = [*["A1"] * frequent, *(f"Z{i}9" for i in range(rare))]
        who = np.repeat(np.arange(len(codes)), per_person)
        return pd.DataFrame({"who": who, "x": each(codes, per_person), "age": np.arange(len(who)) % 70})

    unit = {"column": "who", "max_rows": per_person} if per_person > 1 else None
    columns = {"age": (0, 70), **({} if unit else {"who": "identifier"})}
    opened = OpenSchema.of(open_source(table(1)), columns, rows=400, unit=unit)

    def fit(data):
        return leaves(METHOD.fit(data, schema=opened, seed=1))

    frequent = 370
    for _ in range(3):  # the number of units is noisy: the bound moves with what was released
        tape = coupled(monkeypatch, fit, table(frequent), table(frequent), more=0)[2]
        (stage,) = (one for one in tape.releases if one.stage.name == DOMAINS)
        listed, std = stage.handed.listed.value, stage.handed.listed.noise_std
        n = 400 if unit is None else round(float(listed[-1]))
        missing = float(listed[0])
        frequent = math.ceil(0.95 * (n - missing) - std * math.sqrt(2))
    one = pd.DataFrame({"who": [9_999] * per_person, "x": "A1", "age": 1})
    attack(monkeypatch, fit, table(frequent - 1), pd.concat([table(frequent - 1), one], ignore_index=True))
