"""What a draft proposes in place of facts read off the records."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
import yaml

from sfumato.columns.kinds import Boolean, Identifier, Image, Integer
from sfumato.columns.open import Open
from sfumato.desk.drafting import draft_schema
from sfumato.desk.survey import MOST_DISTINCT
from sfumato.errors import DataError
from sfumato.io.sources import open_source
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.unit import Unit

N = 600
RNG = np.random.default_rng(0)
FIRST_NAMES = [f"{a}{b}" for a in "ABCDEFGHIJ" for b in ("nna", "lo", "rin", "ke", "sse", "mar", "tje", "bert")]
INTEGER, LABELS, NUMBER = Open(kind="integer"), Open(kind="categorical"), Open(kind="continuous")


def repeated(values, n=N):
    return [values[i % len(values)] for i in range(n)]


def draft(columns, **options):
    n = len(next(iter(columns.values())))
    return draft_schema(open_source(pa.table({**columns, "flag": [True, False] * (n // 2)})), **options)


def kind_of(values, name="x"):
    return draft({name: values}).schema.columns[name]


CASES = {
    "ages": ("age", repeated(range(18, 91)), INTEGER),
    "ages as text": ("age", list(map(str, repeated(range(18, 91)))), INTEGER),
    "codes as text": ("code", repeated(["1", "2", "3"]), LABELS),
    "codes as numbers": ("code", repeated([1, 2, 3]), LABELS),
    "costs": ("cost", RNG.lognormal(size=N), NUMBER),
    "labels": ("sex", repeated(["f", "m"]), LABELS),
    "regions, one of them rare": ("region", [*repeated(["N", "S", "E"], N - 1), "W"], LABELS),
    "labels as categories": ("sex", pa.array(repeated(["f", "m"])).dictionary_encode(), LABELS),
    "first names": ("first_name", repeated(FIRST_NAMES), Identifier()),
    "free text": ("note", [f"text {i}" for i in range(N)], Identifier()),
    "record numbers": ("x", range(N), Identifier()),
    "record numbers as text": ("x", [str(10_000 + i) for i in range(N)], Identifier()),
    "numbers too long to discover": ("x", RNG.integers(10**17, 10**17 + 10**6, N), Identifier()),
    "numbers too long to discover, as text": ("x", list(map(str, RNG.integers(10**17, 10**17 + 250, N))), Identifier()),
    "two rows of each": ("x", [i // 2 for i in range(N)], Identifier()),
    "a few rows of each, named so": ("patient_id", RNG.integers(0, 250, N), Identifier()),
    "a few of each, not named so": ("amount", RNG.integers(0, 250, N), INTEGER),
    "many rows of each, as text": ("x", repeated([f"person {i}" for i in range(60)], 60 * 12), Identifier()),
    "many rows of each, named so": ("patient", repeated(range(5, 905, 5), 180 * 12), Identifier()),
    "many ages": ("patient_age", repeated(range(18, 91), 73 * 12), INTEGER),
    "many labels, some frequent": ("code", [*["A"] * 900, *repeated([f"B{i}" for i in range(60)], 60 * 12)], LABELS),
    "numbers beyond the grid": ("x", repeated([2**60, *range(30)]), Integer(lower=0, upper=2**60)),
}


@pytest.mark.parametrize("case", CASES)
def test_hardening_7_what_is_proposed(case):
    name, values, kind = CASES[case]
    assert kind_of(values, name) == kind


def test_nothing_of_dates_and_truth_values_is_read_off():
    days = np.datetime64("2020-01-01") + np.arange(N) % 300
    found = draft({"day": days, "yes": repeated([True, False, None])})
    assert found.schema.columns["day"] == Open(kind="datetime")
    assert found.schema.columns["yes"] == Open(kind="boolean")
    written = draft(
        {"day": [f"{i % 28 + 1:02d}.{i % 12 + 1:02d}.2020" for i in range(N)], "yes": repeated(["TRUE", "FALSE"])}
    )
    assert written.schema.columns["day"] == Open(kind="datetime", format="%d.%m.%Y")
    assert written.schema.columns["yes"] == Open(kind="categorical")
    assert "2020" not in found.to_yaml() + written.to_yaml()


def test_images_keep_their_facts():
    images = {"x": np.zeros((60, 4, 4), np.uint8), "y": np.arange(60) % 3}
    found = draft_schema(open_source(images)).schema
    assert found.columns["x"] == Image(shape=(4, 4))
    assert (found.open, found.rows) == ({}, 60)


@pytest.mark.parametrize("per_person", [2, 3, 8])
def test_hardening_7_a_repeated_identifier_suggests_a_unit(per_person):
    columns = {"name": repeated(FIRST_NAMES), "pid": [i // per_person for i in range(N)], "age": repeated(range(70))}
    found = draft(columns)
    assert found.schema.unit == Unit(column="pid", max_rows=5), "whatever the records"
    assert "choose it from what is public" in found.to_yaml()
    assert draft(columns, exact=True).schema.unit is None


def test_people_with_many_rows_each_are_the_unit_and_no_labels():
    people = np.repeat(np.arange(300), 12)
    columns = {
        "name": [f"Anna {i}" for i in people],
        "email": [f"anna{i}@example.org" for i in people],
        "patient": people * 7 + 1000,
        "comment": ["" if i % 90 else f"called {i}" for i in range(people.size)],
    }
    found = draft(columns).schema
    assert found.unit == Unit(column="patient", max_rows=5)
    assert found.released == ("flag",)


def test_no_unit_where_nothing_repeats():
    assert draft({"pid": range(N), "age": repeated(range(70))}).schema.unit is None


def test_more_people_than_are_counted():
    n = 3 * MOST_DISTINCT
    table = pa.table({"pid": np.arange(2 * n) // 2, "sex": repeated(["f", "m"], 2 * n), "one": np.arange(2 * n)})
    found = draft_schema(open_source(table, chunk_rows=7_000)).schema
    assert found.unit == Unit(column="pid", max_rows=5)
    assert (found.columns["one"], found.columns["sex"]) == (Identifier(), LABELS)


def test_the_file_reads_back_and_needs_one_line_less(tmp_path):
    found = draft({"pid": [i // 2 for i in range(N)], "age": repeated(range(70))})
    path = tmp_path / "d.yaml"
    path.write_text(found.to_yaml())
    assert OpenSchema.load(path) == found.schema
    assert (found.schema.draft, found.schema.rows, found.schema.sources) == (True, None, {})
    path.write_text(found.to_yaml().replace("draft: true\n", ""))
    assert OpenSchema.load(path) == dataclasses.replace(found.schema, draft=False)
    assert "are estimated by the method max-entropy" in found.to_yaml()


PLACES = [f"{i * 37 % 700:05}" for i in range(N)]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("zip", PLACES),
        ("text", [f"post {i // 2}" for i in range(N)]),
        ("surname", [f"Huber {i // 3}" for i in range(N)]),
        ("diagnosis", [f"A{i // 4:03}" for i in range(N)]),
        ("order_id", [i // 3 for i in range(N)]),
        ("id", [i // 3 for i in range(N)]),
        ("customer_city", [f"city {i // 3}" for i in range(N)]),
    ],
)
def test_what_names_no_person_is_never_the_unit(name, values):
    found = draft({name: values, "age": repeated(range(70))})
    assert found.schema.unit is None
    assert "# Whom does the guarantee protect?" in found.to_yaml()
    assert (f"{name} repeats" in found.to_yaml()) == (name in ("order_id", "id"))


def test_neither_weights_nor_counts_of_persons_are_asked_about():
    counts = {"days": [i // 2 for i in range(N)], "age": repeated(range(70))}
    assert "days repeats" in draft(counts).to_yaml()
    assert "days repeats" not in draft(counts | {"patient_id": np.arange(N) * 7}).to_yaml()
    weighted = draft({"finalwgt": [i // 2 + 1 for i in range(N)], "age": repeated(range(70))})
    assert weighted.schema.weight is not None
    assert "finalwgt repeats" not in weighted.to_yaml()


def test_a_household_is_the_unit_only_where_persons_have_no_number_of_their_own():
    homes = {"hhid": [i // 3 for i in range(N)], "age": repeated(range(70))}
    assert draft(homes).schema.unit == Unit(column="hhid", max_rows=5)
    found = draft(homes | {"person_id": range(N)})
    assert found.schema.unit is None
    assert "hhid repeats" in found.to_yaml()


def test_names_addresses_and_texts_are_left_out_by_their_names():
    names = {"first_name": ["Anna", "Otto"], "Nachname": ["Huber", "Maier"]}
    found = draft({name: repeated(values) for name, values in names.items()} | {"notes": repeated(["called", "came"])})
    assert found.schema.released == ("notes", "flag")  # two answers are no free text
    texts = {"notes": [f"called {i % 40}" for i in range(N)], "Telefon": [430_000 + i % 90 for i in range(N)]}
    assert draft(texts).schema.released == ("flag",)


def test_codes_of_places_are_labels():
    assert kind_of(repeated([90210, 10001, 60601]), "zip") == LABELS
    assert kind_of([10_000 + i % 550 for i in range(N)], "PLZ") == Identifier()


@pytest.mark.parametrize(
    ("name", "others", "upper"),
    [
        ("pweight", {}, 5), ("PERWT", {"height": repeated(range(150, 200))}, 5), ("weight", {}, 5),
        ("weight", {"height": repeated(range(150, 200))}, None), ("age", {}, None),
    ],
)  # fmt: skip
def test_a_surveys_weight(name, others, upper):
    weights = np.round(np.linspace(0.2, 3.7, N), 3)
    found = draft({name: weights, "region": repeated(["N", "S"]), **others})
    weight = found.schema.weight
    assert (None if weight is None else (weight.column, weight.upper)) == (None if upper is None else (name, upper))
    assert ("how many people a row stands for" in found.to_yaml()) == (upper is not None)


def test_weights_of_bodies_are_numbers():
    assert draft({"weight": np.linspace(45.5, 120, N), "region": repeated(["N", "S"])}).schema.weight is None


def test_words_for_truth_values_are_told_as_a_schema_takes_them(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("smoker\n" + "TRUE\nFALSE\n" * 100, encoding="utf-8")
    entry = draft_schema(open_source(path)).notes["smoker"].split("or write ")[-1]
    assert OpenSchema.from_dict({"columns": yaml.safe_load(f"smoker: {entry}")}).columns["smoker"] == Boolean(
        text=("FALSE", "TRUE")
    )


def test_a_header_alone_is_no_table_to_draft(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("age,sex\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"Expected a column of r.csv with values that name nobody"):
        draft_schema(open_source(path))
