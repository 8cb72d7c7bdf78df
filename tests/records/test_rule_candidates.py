"""Rules that records keep, suggested: those of made-up tables are found, and what is luck is not."""

import numpy as np
import pandas as pd
import pytest

from fixtures.ruled import hospital
from sfumato.io.sources import open_source
from sfumato.records.drafting import draft_schema
from sfumato.records.rule_candidates import rule_candidates
from sfumato.schema.schema import Schema


def candidates(frame: pd.DataFrame) -> list:
    return rule_candidates(open_source(frame), draft_schema(open_source(frame), exact=True).schema)


def test_a_hospital():
    found = candidates(hospital(3_000))
    assert {"difference": {"stay": ["discharged", "admitted"]}} in found
    assert {"sum": {"total": ["drugs", "other"]}} in found
    assert {"order": ["admitted", "discharged"]} in found
    assert {"derived": "group", "from": "age", "map": {"..17": "child", "18..64": "adult", "65..": "senior"}} in found
    assert {"if": {"ward": "none"}, "then": {"bed": "none"}, "only_if": True} in found
    assert {"if": {"sex": "male"}, "then": {"pregnant": None}, "only_if": True} in found


def test_they_can_be_taken_as_they_are():
    frame = hospital(3_000)
    draft = draft_schema(open_source(frame), exact=True, suggest_rules=True)
    document = {**draft.schema.to_dict(), "rules": list(draft.candidates)}
    assert len(Schema.from_dict(document).rules) == len(draft.candidates) > 5
    assert "# rules:" in draft.to_yaml()
    assert not draft.schema.rules  # comments, until someone vouches for them


def test_one_row_that_breaks_a_rule_ends_it():
    """Also where it stands behind the rows in which candidates are looked for."""
    frame = hospital(24_000)
    frame.loc[23_999, "total"] += 5.0
    found = candidates(frame)
    assert {"sum": {"total": ["drugs", "other"]}} not in found
    assert {"difference": {"stay": ["discharged", "admitted"]}} in found


def test_columns_that_have_nothing_to_do_with_each_other():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"n{i}": rng.integers(0, 100, 2_000) for i in range(4)})
    for i in range(4):
        frame[f"c{i}"] = rng.choice(list("abcd"), 2_000)
    assert candidates(frame) == []


def test_sums_of_several_and_missing_numbers():
    rng = np.random.default_rng(0)
    parts = rng.integers(0, 50, (2_000, 4))
    frame = pd.DataFrame(parts, columns=list("abcd")).assign(total=parts.sum(axis=1))
    frame["job"] = rng.choice(["works", "none"], 2_000)
    frame["pay"] = np.where(frame["job"] == "works", rng.normal(3_000, 500, 2_000).round(), np.nan)
    found = candidates(frame)
    assert {"sum": {"total": ["a", "b", "c", "d"]}} in found
    assert {"null_if": {"pay": {"job": "none"}}} in found


@pytest.mark.parametrize("n", [0, 1, 3])
def test_hardly_any_rows(n):
    frame = hospital(10).iloc[:n]
    schema = draft_schema(open_source(hospital(10)), exact=True).schema
    assert rule_candidates(open_source(frame), schema) == []
