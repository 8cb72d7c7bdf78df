"""Names of features of units: what they mean, within which bounds, and what is refused."""

import pytest

from fixtures import linked, two_tables
from sfumato.columns import Continuous
from sfumato.columns.booleans import Truth
from sfumato.errors import SchemaError
from sfumato.schema.named_questions import with_questions
from sfumato.schema.schema import Schema
from sfumato.schema.unit_features import Lag, feature_of, lag_of

SCHEMA = linked.schema()


def test_their_kinds_follow_from_the_schema():
    assert feature_of("mean of score", SCHEMA).kind == Continuous(lower=0, upper=100)
    assert feature_of("change of score", SCHEMA).kind == Continuous(lower=-100, upper=100, nullable=True)
    assert feature_of("ever of state=b", SCHEMA).kind == Truth()
    assert feature_of("ever of state=b", SCHEMA).label == 1
    assert feature_of("last of state", SCHEMA).kind == SCHEMA.columns["state"]
    for name in ("score", "sex", "lag 2 of score", "number of rows of patient", "means of score"):
        assert feature_of(name, SCHEMA) is None
    assert lag_of("lag 5 of score", SCHEMA) == Lag("score", 5)
    assert SCHEMA.unit.count_name == "number of rows of patient"


def test_of_two_tables_they_may_be_missing():
    schema = two_tables.schema(100)
    assert feature_of("mean of score", schema).kind.nullable
    assert not feature_of("ever of state=a", schema).kind.nullable


def test_a_column_of_that_name_comes_first():
    document = {**linked.DOCUMENT, "columns": {**linked.DOCUMENT["columns"], "mean of score": "boolean"}}
    assert feature_of("mean of score", Schema.from_dict(document)) is None


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("mean: mean of nothing", "a column of the rows"),
        ("mean: mean of born", "a column of the rows"),
        ("mean: change of state", "a column of numbers"),
        ("share: ever of state", "a column of the rows"),
        ("share: ever of state=z", "a label of a column"),
        ("share: mean of score", "labels"),
        ("mean: last of state", "a number"),
        ("mean: score by mean of score", "labels"),
        ("correlation: lag 6 of score", "from 1 to 5"),
        ("correlation: lag 0 of score", "from 1 to 5"),
        ("correlation: lag 1 of state", "a column of numbers"),
        ("correlation: score", "pairs of rows"),
        ("mean: lag 2 of score", "released columns"),
        ("ols: `change of nothing` ~ sex", "a column of the rows"),
        ({"correlation": "lag 1 of score", "by": "sex"}, "no `by`"),
    ],
)
def test_what_is_refused(question, words):
    with pytest.raises(SchemaError, match=words):
        with_questions(SCHEMA, [question])


def test_pairs_of_rows_are_of_linked_ones():
    plain = Schema.from_dict({"columns": {"score": {"kind": "integer", "lower": 0, "upper": 9}}, "rows": 10})
    with pytest.raises(SchemaError, match="linked units"):
        with_questions(plain, ["correlation: lag 1 of score"])
