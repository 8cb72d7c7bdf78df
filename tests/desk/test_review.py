"""What a review asks, of the schema alone, and what answers change."""

import copy

import pytest

from sfumato.desk.review import MOST_QUESTIONS, questions, with_answers
from sfumato.errors import SchemaError
from sfumato.schema.open_schema import OpenSchema

LABELS = [f"L{i}" for i in range(40)]
DOCUMENT = {
    "draft": True,
    "unit": {"column": "person", "max_rows": 4},
    "source": {"unit": "data"},
    "columns": {
        "person": "identifier",
        "age": {"kind": "integer", "lower": 18, "upper": 91, "source": "data"},
        "weight": {"kind": "continuous", "lower": 41.5, "upper": 120.25, "resolution": 0.1, "nullable": True},
        "seen": {"kind": "datetime", "lower": "2020-01-03", "upper": "2020-12-30"},
        "doctor_id": {"kind": "integer", "lower": 1, "upper": 9},
        "country": {"kind": "categorical", "categories": LABELS, "nullable": True},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "income": {"kind": "integer", "discover": True},
        "day": {"kind": "categorical", "categories": {"list": "days"}},
        "q1..q40": {"kind": "integer", "lower": 0, "upper": 4},
    },
}


def _review(answers, document=DOCUMENT):
    before = copy.deepcopy(document)
    asked = questions(OpenSchema.from_dict(document), document)
    changed = with_answers(document, asked, answers)
    assert document == before
    OpenSchema.from_dict(changed)
    return changed


def _asked(document):
    return [question.key for question in questions(OpenSchema.from_dict(document), document)]


def test_what_is_most_worth_checking_comes_first():
    assert _asked(DOCUMENT) == [
        "unit", "column doctor_id", "column country", "column age", "column weight", "column seen", "column income",
        "missing", "public",
    ]  # fmt: skip


def test_no_more_than_ten_are_asked_and_of_a_draft_always_the_last():
    columns = {f"n {i}": {"kind": "integer", "lower": 0, "upper": 9} for i in range(30)}
    keys = _asked({"draft": True, "columns": columns})
    assert len(keys) == MOST_QUESTIONS
    assert keys[-2:] == ["missing", "public"]
    keys = _asked({"columns": columns})
    assert len(keys) == MOST_QUESTIONS
    assert keys[-1] == "missing"


def test_no_answer_changes_nothing():
    assert _review({}) == DOCUMENT
    keys = _asked(DOCUMENT)
    assert _review(dict.fromkeys(keys, "keep")) == DOCUMENT
    now = {q.key: q.now for q in questions(OpenSchema.from_dict(DOCUMENT), DOCUMENT)}
    changed = OpenSchema.from_dict(_review(now))
    assert changed.columns == OpenSchema.from_dict(DOCUMENT).columns
    assert changed.unit == OpenSchema.from_dict(DOCUMENT).unit
    assert changed.draft


def test_only_the_holders_word_takes_the_mark_out():
    assert _review({"public": "yes"}) == {key: value for key, value in DOCUMENT.items() if key != "draft"}
    every = {"unit": "row", "column age": "0 to 120", "missing": "NA", "column doctor_id": "yes"}
    assert _review(every)["draft"] is True
    assert _review({"public": "no"})["draft"] is True


@pytest.mark.parametrize(
    ("key", "answer", "entry"),
    [
        ("age", "0 to 120", {"kind": "integer", "lower": 0, "upper": 120}),
        (
            "weight",
            "20 to 250.5",
            {"kind": "continuous", "lower": 20, "upper": 250.5, "resolution": 0.1, "nullable": True},
        ),
        ("seen", "2019-01-01 to 2021-12-31", {"kind": "datetime", "lower": "2019-01-01", "upper": "2021-12-31"}),
        ("doctor_id", "yes", "identifier"),
        ("country", "identifier", "identifier"),
        ("country", "discover", {"kind": "categorical", "discover": True}),
        (
            "country",
            "list iso-4217",
            {"kind": "categorical", "nullable": True, "categories": {"list": "iso-4217"}},
        ),
    ],
)
def test_an_answer_changes_its_column(key, answer, entry):
    changed = _review({f"column {key}": answer})
    assert changed["columns"] == DOCUMENT["columns"] | {key: entry}
    assert changed["draft"] is True


def test_a_code_book_is_a_file_and_a_column():
    asked = questions(OpenSchema.from_dict(DOCUMENT), DOCUMENT)
    changed = with_answers(DOCUMENT, asked, {"column country": "file code book.csv#code"})
    assert changed["columns"]["country"]["categories"] == {"file": "code book.csv", "column": "code"}


def test_the_unit_is_a_row_or_a_column():
    changed = _review({"unit": "row"})
    assert "unit" not in changed
    assert "source" not in changed
    assert _review({"unit": "person to 2"})["unit"] == {"column": "person", "max_rows": 2}


def test_texts_for_no_value_are_a_list():
    assert _review({"missing": "?, NA"})["missing"] == ["", "?", "NA"]


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("unit", "age to 2"),
        ("unit", "person"),
        ("column age", "0-120"),
        ("column age", "120 to 0"),
        ("column age", "a to b"),
        ("column doctor_id", "perhaps"),
        ("column country", "list"),
        ("column country", "list weeks"),
        ("column country", "file codes.csv"),
        ("public", "maybe"),
        ("column sex", "identifier"),
    ],
)
def test_other_answers_are_refused(key, answer):
    with pytest.raises(SchemaError, match="Expected"):
        _review({key: answer})


OPEN = {
    "draft": True,
    "columns": {
        "house": {"kind": "categorical", "discover": True},
        "income": {"kind": "integer", "discover": True},
        "score": {"kind": "continuous", "discover": True},
        "city": {"kind": "categorical", "discover": True},
        "seen": {"kind": "datetime", "discover": True, "resolution": "day"},
        "note": {"kind": "unknown", "discover": True},
    },
}


def test_what_would_be_bought_may_be_declared_instead():
    assert _asked(OPEN) == [
        "unit",
        *(f"column {c}" for c in ("house", "income", "score", "city", "seen")),
        "missing",
        "public",
    ]
    answers = {"column income": "0 to 500000", "column score": "0 to 1.5", "column city": "Rome, Turin , Bari"}
    answers["column seen"] = "2020-01-01 to 2021-12-31"
    changed = _review(answers, OPEN)["columns"]
    assert changed["income"] == {"kind": "integer", "lower": 0, "upper": 500_000, "nullable": True}
    assert changed["score"] == {"kind": "continuous", "lower": 0, "upper": 1.5, "nullable": True}
    assert changed["city"] == {"kind": "categorical", "categories": ["Rome", "Turin", "Bari"], "nullable": True}
    seen = {"kind": "datetime", "resolution": "day", "lower": "2020-01-01", "upper": "2021-12-31", "nullable": True}
    assert changed["seen"] == seen
    assert changed["note"] == OPEN["columns"]["note"]
    assert _review({"column city": "list iso-3166-1-alpha-2"}, OPEN)["columns"]["city"]["categories"] == {
        "list": "iso-3166-1-alpha-2"
    }
    assert _review({"column house": "identifier"}, OPEN)["columns"]["house"] == "identifier"


@pytest.mark.parametrize(
    ("key", "answer"), [("column city", "Rome"), ("column income", "500000"), ("unit", "nobody to 3")]
)
def test_an_answer_that_says_too_little_is_refused(key, answer):
    with pytest.raises(SchemaError, match=key.removeprefix("column ")):
        _review({key: answer}, OPEN)


def test_any_column_may_turn_out_to_name_persons():
    changed = _review({"unit": "house to 12"}, OPEN)
    assert changed["unit"] == {"column": "house", "max_rows": 12}
    assert changed["columns"]["house"] == "identifier"
    assert OpenSchema.from_dict(changed).unit.max_rows == 12
    assert "unit" not in _review({"unit": "row"}, OPEN)


def test_of_several_tables_the_most_rows_are_asked_and_no_unit():
    document = {
        "tables": {"persons": {"key": "person", "columns": ["age"]}, "visits": {"of": "persons", "max_rows": 5}},
        "columns": {name: DOCUMENT["columns"][name] for name in ("person", "age", "sex")},
    }
    assert "unit" not in _asked(document)
    assert _review({"table visits": "8"}, document)["tables"]["visits"] == {"of": "persons", "max_rows": 8}
    with pytest.raises(SchemaError, match="'table visits' to be a number"):
        _review({"table visits": "many"}, document)
