"""Rules as schema files write them: what is read, and what is refused with a reason."""

import numpy as np
import pandas as pd
import pytest

from fixtures.ruled import RULES, hospital, hospital_columns, hospital_schema
from sfumato.errors import SchemaError
from sfumato.evaluate import rule_breaks
from sfumato.schema.schema import Schema

GOOD = hospital(200)
BREAKS = {  # rule: a row that breaks it and, as far as may be, no other
    0: {"discharged": "2023-12-31", "stay": 0},
    1: {"stay": 300},
    2: {"intensive": 364},
    3: {"total": 1999.0},
    4: {"age": 17, "group": "senior", "pregnant": None, "sex": "male"},
    5: {"sex": "male", "pregnant": "no"},
    6: {"sex": "female", "pregnant": "yes", "age": 10, "group": "child"},
    7: {"ward": "none", "bed": "day"},
}


def test_real_rows_keep_all():
    found = rule_breaks(GOOD, schema=hospital_schema())
    assert (found.any_rule, found.n_rows, len(found.counts)) == (0, 200, len(RULES))


@pytest.mark.parametrize("number", BREAKS)
def test_a_row_breaks_its_rule(number):
    frame = GOOD.copy()
    for name, value in BREAKS[number].items():
        frame.loc[0, name] = np.datetime64(value) if name == "discharged" else value
    counts = list(rule_breaks(frame, schema=hospital_schema()).counts.values())
    assert counts[number] == 1


def test_only_if_reads_both_ways():
    frame = GOOD.copy()
    row = int(np.flatnonzero(frame["ward"] == "east")[0])
    frame.loc[row, "bed"] = "none"
    assert rule_breaks(frame, schema=hospital_schema()).any_rule == 1
    one_way = {"if": {"ward": "none"}, "then": {"bed": "none"}}
    assert rule_breaks(frame, schema=hospital_schema([one_way])).any_rule == 0


SPANS = {
    "17": (17, 17), "0-17": (0, 17), "65-": (65, 100), "..17": (0, 17), "18..64": (18, 64), "18 to 64": (18, 64),
    "90-200": (90, 100),
}  # fmt: skip


@pytest.mark.parametrize("text", SPANS)
def test_spans(text):
    frame = hospital(101).assign(age=np.arange(101))
    low, high = SPANS[text]
    found = rule_breaks(frame, schema=hospital_schema([{"never": {"age": text}}]))
    assert found.any_rule == high - low + 1


def test_negative_numbers_are_numbers():
    columns = {"x": {"kind": "integer", "lower": -9, "upper": 9}, "y": {"kind": "integer", "lower": 0, "upper": 1}}
    frame = {"x": np.arange(-9, 10), "y": np.zeros(19, dtype=int)}
    for text, expected in {"-5": 1, "-5..": 15, "..-5": 5, "-5--3": 3, -5: 1}.items():
        schema = Schema.from_dict({"columns": columns, "rules": [{"never": {"x": text}}]})
        assert rule_breaks(pd.DataFrame(frame), schema=schema).any_rule == expected, text


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("order", "rule 1 to be one of"),
        ({"before": ["admitted", "discharged"]}, "rule 1 to be one of"),
        ({"order": ["admitted"]}, "at least two different columns"),
        ({"order": ["admitted", "admitted"]}, "at least two different columns"),
        ({"order": ["admitted", "gone"]}, "'gone'"),
        ({"order": ["admitted", "age"]}, "dates with dates"),
        ({"order": ["sex", "age"]}, "numbers or dates, got 'sex'"),
        ({"sum": {"total": ["drugs"]}}, "at least two other columns"),
        ({"sum": {"total": ["drugs", "total"]}}, "at least two other columns"),
        ({"sum": ["total", "drugs"]}, "to be such as"),
        ({"sum": {"total": ["drugs", "other"]}, "within": -1}, "within of rule 1"),
        ({"sum": {"total": ["drugs", "other"]}, "within": "wide"}, "within of rule 1"),
        ({"sum": {"stay": ["admitted", "discharged"]}}, "compute with numbers"),
        ({"if": {"sex": "male"}}, "`then`"),
        ({"if": {"sex": "male"}, "then": {"sex": "female"}}, "other columns in `then`"),
        ({"if": {"sex": "man"}, "then": {"ward": "east"}}, "'man'"),
        ({"if": {"sex": None}, "then": {"ward": "east"}}, "not nullable"),
        ({"if": {}, "then": {"ward": "east"}}, "map columns to values"),
        ({"if": {"sex": "male"}, "then": {"ward": "east"}, "only_if": "yes"}, "true or false"),
        ({"if": {"sex": "male"}, "then": {"ward": "east"}, "unless": 1}, "to have the keys"),
        ({"never": {"age": "20-10"}}, "spans that go up"),
        ({"range": {"age": [0]}}, "two ends"),
        ({"range": {"age": [None, None]}}, "two ends"),
        ({"range": {"age": [50, 10]}}, "ends that go up"),
        ({"null_if": {"ward": {"sex": "male"}}}, "nullable: true"),
        ({"null_if": {"pregnant": {"pregnant": "yes"}}}, "other columns"),
        ({"derived": "age", "from": "group", "map": {"child": 1}}, "column of labels"),
        ({"derived": "group", "from": "age", "map": {"0-17": "child"}}, "map every value"),
        ({"derived": "group", "from": "age", "map": {"0-50": "child", "40-": "adult"}}, "do not overlap"),
        ({"derived": "bed", "from": "ward", "map": {"east": "day"}}, "map every label"),
        ({"derived": "bed", "from": "ward"}, "to have a map"),
        ({"never": {"age": {"a": 1}}}, "age"),
        ({"never": {"age": float("inf")}}, "rules of text, numbers"),
        ({"never": {"age": {1, 2}}}, "rules of text, numbers"),
    ],
)  # fmt: skip
def test_wrong_rules_are_named(rule, message):
    with pytest.raises(SchemaError, match=message):
        hospital_schema([rule])


def test_all_faults_are_told_at_once():
    with pytest.raises(SchemaError) as raised:
        hospital_schema([{"order": ["sex", "age"]}, {"never": {"gone": 1}}])
    assert "rule 1 (order)" in str(raised.value)
    assert "rule 2 (never)" in str(raised.value)


@pytest.mark.parametrize("rules", ["order: [a, b]", {"order": ["admitted", "discharged"]}, 3])
def test_rules_are_a_list(rules):
    with pytest.raises(SchemaError, match="list"):
        Schema.from_dict({"columns": hospital_columns(), "rules": rules})


def test_open_columns_cannot_be_named():
    columns = {**hospital_columns(), "age": {"kind": "integer", "discover": True}}
    with pytest.raises(SchemaError, match="whose facts are declared, got 'age'"):
        Schema.from_dict({"columns": columns, "rules": [{"never": {"age": 3}}]})


def test_written_and_read_back(tmp_path):
    schema = hospital_schema()
    for name in ("schema.yaml", "schema.json"):
        schema.save(tmp_path / name)
        assert Schema.load(tmp_path / name) == schema
        assert len(Schema.load(tmp_path / name).rules) == len(RULES)
    assert "rules" not in hospital_schema([]).to_dict()
