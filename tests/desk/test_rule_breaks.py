"""Rows that break rules, counted by what is written and not by codes."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fixtures.ruled import RULES, hospital, hospital_schema
from sfumato.desk.rule_breaks import count_breaks
from sfumato.errors import ConfigError
from sfumato.evaluate import evaluate, rule_breaks
from sfumato.io.sources import open_source
from sfumato.rules import rule_text
from sfumato.schema.schema import Schema


def test_counts_and_shares():
    frame = hospital(100)
    frame.loc[:9, "total"] += 1
    frame.loc[5:14, "group"] = frame.loc[5:14, "group"].map({"child": "senior", "adult": "child", "senior": "adult"})
    frame.loc[5:14, "pregnant"] = np.where(frame.loc[5:14, "sex"] == "male", None, "no")
    found = rule_breaks(frame, schema=hospital_schema())
    assert found.counts[rule_text(RULES[3])] == 10
    assert found.counts[rule_text(RULES[4])] == 10
    assert (found.any_rule, found.any_share) == (15, 0.15)
    assert found.shares[rule_text(RULES[3])] == 0.1


def test_numbers_beyond_the_bounds_are_as_they_are():
    """A code would be clamped: the sum of clamped parts is another."""
    columns = {name: {"kind": "integer", "lower": 0, "upper": 10} for name in ("a", "b", "c")}
    schema = Schema.from_dict({"columns": columns, "rules": [{"sum": {"c": ["a", "b"]}}]})
    frame = pd.DataFrame({"a": [100, 5], "b": [1, 1], "c": [101, 7]})
    assert rule_breaks(frame, schema=schema).any_rule == 1


def test_text_and_chunks(tmp_path):
    frame = hospital(50)
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema = hospital_schema()
    assert count_breaks(open_source(tmp_path / "t.csv"), schema).any_rule == 0
    table = pa.Table.from_pandas(frame, preserve_index=False)
    several = pa.concat_tables([table.slice(0, 7), table.slice(7, 0), table.slice(7)])
    assert count_breaks(open_source(several), schema).n_rows == 50


def test_without_rules():
    assert count_breaks(open_source(hospital(10)), hospital_schema([])) is None
    with pytest.raises(ConfigError, match="schema with rules"):
        rule_breaks(hospital(10), schema=hospital_schema([]))


def test_the_score_of_evaluate():
    real, made = hospital(300), hospital(300, seed=1)
    made["stay"] = made["stay"].to_numpy()[::-1]
    scores = evaluate(real, made, schema=hospital_schema())["fidelity"]["rules"]
    assert scores["broken"]["real"] == 0
    assert scores["broken"]["synthetic"] > 0.5
    assert scores["by_rule"][rule_text(RULES[3])] == {"real": 0, "synthetic": 0}
    assert evaluate(real, made, schema=hospital_schema([]))["fidelity"]["rules"] is None
