"""Criteria in a schema: how they are read and written, and what is refused."""

import pickle
from dataclasses import replace

import pytest

from fixtures import tables
from sfumato.errors import ConfigError, SchemaError
from sfumato.schema.accept import Criterion, read_criteria
from sfumato.schema.schema import Schema, release_schema
from sfumato.search.acceptance import with_criteria

ENTRIES = [
    {"marginal_error": 0.01},
    {"marginal_error": 0.005, "columns": ["age", "sex"]},
    {"pair_error": 0.03, "columns": ["age", "sex"]},
    {"auroc": 0.8, "target": "income", "positive": ">50K"},
    {"auroc": 0.7, "target": "member"},
    {"finding": "ols: age ~ C(sex)", "term": "C(sex)[T.male]", "sign": "positive"},
    {"finding": "logit: member ~ age", "term": "age", "sign": "negative", "significance": 0.05},
]
SCHEMA = tables.schema()


def with_entries(entries):
    return Schema.from_dict({**SCHEMA.to_dict(), "accept": entries})


def test_they_come_back_as_written(tmp_path):
    schema = with_entries(ENTRIES)
    assert schema.to_dict()["accept"] == ENTRIES
    assert "accept" not in SCHEMA.to_dict()
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert release_schema(schema.to_dict()) == schema
    for name in ("schema.yaml", "schema.json"):
        schema.save(tmp_path / name)
        assert Schema.load(tmp_path / name) == schema
    assert replace(SCHEMA, accept=read_criteria(ENTRIES)) == schema


def test_their_words():
    assert [criterion.words for criterion in read_criteria(ENTRIES)] == [
        "marginal_error <= 0.01",
        "marginal_error of age, sex <= 0.005",
        "pair_error of age, sex <= 0.03",
        "auroc for income = >50K >= 0.8",
        "auroc for member >= 0.7",
        "finding ols: age ~ C(sex), C(sex)[T.male] positive >= 0.5",
        "finding logit: member ~ age, age negative >= 0.975",
    ]


@pytest.mark.parametrize(
    ("kind", "beside", "passing", "failing"),
    [
        ("marginal_error", {}, (0.01, 0.0, -0.5), (0.011, 1.0)),
        ("pair_error", {}, (0.01,), (0.02,)),
        ("auroc", {"target": "member"}, (0.01, 1.0), (0.009, 0.0)),
    ],
)
def test_what_passes(kind, beside, passing, failing):
    criterion = Criterion(kind=kind, threshold=0.01, **beside)
    assert all(map(criterion.passed_by, passing))
    assert not any(map(criterion.passed_by, failing))


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"marginal_error": 0.1}, "to be a list of criteria"),
        ("marginal_error", "to be a list of criteria"),
        (["marginal_error"], "Criterion 1 of accept: expected a mapping"),
        ([{"marginal": 0.1}], "got 0 of them"),
        ([{"marginal_error": 0.1, "auroc": 0.8}], "got 2 of them"),
        ([{"marginal_error": 0.1}, {"marginal_error": 0.0}], "Criterion 2 of accept: Expected marginal_error between"),
        ([{"marginal_error": 1}], "between 0 and 1"),
        ([{"pair_error": True}], "pair_error to be a number"),
        ([{"pair_error": float("nan")}], "pair_error to be a number"),
        ([{"pair_error": 0.1, "columns": ["age"]}], "2 columns at least"),
        ([{"marginal_error": 0.1, "columns": "age"}], "list of names"),
        ([{"marginal_error": 0.1, "columns": []}], "list of names"),
        ([{"marginal_error": 0.1, "columns": ["age", "age"]}], "one twice"),
        ([{"marginal_error": 0.1, "columns": ["id"]}], "got 'id'"),
        ([{"marginal_error": 0.1, "target": "income"}], "expected columns beside marginal_error"),
        ([{"auroc": 0.8}], "Expected target beside auroc"),
        ([{"auroc": 0.8, "target": "age"}], "categorical, ordinal or boolean"),
        ([{"auroc": 0.8, "target": "grade"}], "other than two classes"),
        ([{"auroc": 0.8, "target": "grade", "positive": "top"}], "a label of the target"),
        ([{"auroc": 0.8, "target": "grade", "positive": 3}], "to be text"),
        ([{"rules_broken": 0}], "Expected rules in the schema"),
        ([{"rules_broken": 0.5}], "rules_broken to be 0"),
        ([{"finding": 3, "term": "age", "sign": "positive"}], "to be a regression"),
        ([{"finding": "age on sex", "term": "age", "sign": "positive"}], "to be a regression"),
        ([{"finding": "probit: age ~ sex", "term": "sex", "sign": "positive"}], "expected one of ols"),
        ([{"finding": "ols: age ~ sex", "sign": "positive"}], "Expected term beside finding"),
        ([{"finding": "ols: age ~ sex", "term": 2, "sign": "positive"}], "term of finding to be text"),
        ([{"finding": "ols: age ~ sex", "term": "sex"}], "positive or negative"),
        ([{"finding": "ols: age ~ sex", "term": "sex", "sign": "both"}], "positive or negative"),
        ([{"finding": "ols: age ~ x", "term": "x", "sign": "positive", "significance": 5}], "significance between 0"),
        ([{"finding": "ols: age ~ x", "term": "x", "sign": "positive", "target": "age"}], "expected term or sign or"),
        ([{"auroc": 0.8, "target": "income", "sign": "positive"}], "expected target or positive beside auroc"),
        ([{"marginal_error": 0.1}] * 2, "once, got one twice"),
        ([{"marginal_error": i / 30} for i in range(1, 22)], "at most 20"),
    ],
)
def test_faults_are_named(entries, said):
    with pytest.raises(SchemaError, match=said):
        with_entries(entries)


def test_criteria_beside_a_schema_are_its_own_or_those():
    schema = with_criteria(SCHEMA, ENTRIES)
    assert schema == with_entries(ENTRIES)
    assert with_criteria(schema, None) is schema
    with pytest.raises(ConfigError, match="got both"):
        with_criteria(schema, ENTRIES)
