"""Questions of a schema: read, written, refused with a sentence that says which."""

import pickle

import pytest

from sfumato import Schema
from sfumato.errors import SchemaError
from sfumato.lenses.chain import plain_schema
from sfumato.schema.named_questions import NamedQuestion, with_questions

QUESTIONS = [
    {"ols": "income ~ age + C(region)"},
    {"logit": "works ~ age", "weight": 2.0},
    {"table": ["region", "works", "sex"]},
    {"mean": "income", "by": ["region", "sex"]},
    {"quantile": "income", "by": ["region"]},
    {"share": "works", "by": ["region"]},
]
DOCUMENT = {
    "columns": {
        "region": {"kind": "categorical", "categories": ["u", "v"]},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "works": "boolean",
        "age": {"kind": "integer", "lower": 0, "upper": 120},
        "income": {"kind": "continuous", "lower": 0, "upper": 90_000},
    },
    "questions": QUESTIONS,
}


def test_a_schema_comes_back():
    schema = Schema.from_dict(DOCUMENT)
    assert [question.form for question in schema.questions] == ["ols", "logit", "table", "mean", "quantile", "share"]
    assert schema.to_dict()["questions"] == QUESTIONS
    assert Schema.from_dict(schema.to_dict()) == schema == pickle.loads(pickle.dumps(schema))
    assert "questions" not in Schema.from_dict({**DOCUMENT, "questions": []}).to_dict()


def test_a_line_says_the_same():
    lines = [
        "ols: income ~ age + C(region)", "logit: works ~ age", "table: region, works, sex",
        "mean: income by region, sex", "quantile: income by region", "share: works by region",
    ]  # fmt: skip
    questions = with_questions(Schema.from_dict(DOCUMENT), lines).questions
    assert [question.words for question in questions] == lines
    assert [question.weight for question in questions] == [1.0] * 6


def test_a_plain_table_has_none():
    """They are asked of columns as they are declared; the method takes them from there."""
    assert Schema.from_dict(DOCUMENT).questions
    rules = [{"order": ["age", "income"]}]
    assert plain_schema(Schema.from_dict({**DOCUMENT, "rules": rules})).questions == ()


def test_means_are_regressions_on_groups():
    assert NamedQuestion(form="mean", columns=("a b",), by=("c", "d")).regression == "`a b` ~ 0 + C(c):C(d)"
    assert NamedQuestion(form="mean", columns=("x",)).regression == "x ~ 1"


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ("ols: a ~ b", "questions to be a list"),
        ([3], "Question 1: expected a question such as"),
        (["means: income"], "Question 1: expected one of ols, logit"),
        ([{"ols": "income ~ age", "mean": "income"}], "Question 1: expected one of ols"),
        ([{"ols": "income ~ age", "wieght": 2}], "by or weight beside ols, got 'wieght'"),
        ([{"ols": "income", "weight": 2}], 'formula such as "y ~ x" for ols'),
        ([{"ols": "income ~ age", "by": "sex"}], 'formula such as "y ~ x" for ols'),
        ([{"ols": "income ~ age", "weight": 0}], "weight of a question from 0.001 to 1000"),
        (["table: region"], "two to four columns for table"),
        ([{"table": ["region", "region"]}], "name columns, each once"),
        (["table: region, nowhere"], "released columns in the question 'table: region, nowhere', got 'nowhere'"),
        (["mean: region by sex"], "a number in the question 'mean: region by sex', got 'region'"),
        (["mean: income by age"], "labels in the question 'mean: income by age', got 'age', a number"),
        (["share: age by sex"], "labels in the question 'share: age by sex', got 'age'"),
        (["ols: income ~ age", "ols: income ~ age"], "each question once, got 'ols: income ~ age' twice"),
        (["ols: income ~ age"] * 101, "at most 100 questions"),
    ],
)
def test_what_is_wrong_is_said(questions, message):
    with pytest.raises(SchemaError, match=message.replace("(", r"\(").replace(")", r"\)")):
        Schema.from_dict({**DOCUMENT, "questions": questions})


def test_of_linked_rows_they_may_name_features_of_units():
    unit = {"column": "id", "max_rows": 3, "order": "age"}
    linked = {**DOCUMENT, "columns": {**DOCUMENT["columns"], "id": "identifier"}, "unit": unit}
    named = ["ols: income ~ age", "mean: mean of income", "correlation: lag 2 of income"]
    schema = Schema.from_dict({**linked, "questions": named})
    assert [question.words for question in schema.questions] == named
    assert Schema.from_dict(schema.to_dict()) == schema
    with pytest.raises(SchemaError, match="released columns"):
        Schema.from_dict({**DOCUMENT, "questions": ["mean: mean of income"]})
