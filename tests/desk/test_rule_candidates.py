"""Rules that records keep, suggested: those of made-up tables are found, and what is luck is not."""

import numpy as np
import pandas as pd
import pytest
import yaml

from fixtures.ruled import hospital
from sfumato.desk.drafting import draft_schema
from sfumato.desk.review import questions, with_answers
from sfumato.desk.rule_candidates import rule_candidates
from sfumato.io.sources import open_source
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
    rules = [*draft.schema.rules, *draft.candidates]
    assert len(Schema.from_dict({**draft.schema.to_dict(), "rules": rules}).rules) > 5
    assert "#  - {if: " in draft.to_yaml()  # comments, until someone vouches for them
    assert not any("if" in rule for rule in draft.schema.rules)


def stays(n: int = 2_000) -> pd.DataFrame:
    """Stays of at least a night, as their holder has them."""
    rng = np.random.default_rng(2)
    admitted = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1_000, n), "D")
    nights = 1 + rng.poisson(6, n)
    born = admitted - pd.to_timedelta(rng.integers(0, 9_000, n), "D")
    dates = {"born": born, "admitted": admitted, "discharged": admitted + pd.to_timedelta(nights, "D")}
    return pd.DataFrame({**dates, "nights": nights, "ward": rng.choice(list("abc"), n), "pay": rng.gamma(2, 900, n)})


def test_a_draft_proposes_order_and_arithmetic():
    """Also of columns to discover; what follows by way of a third column is not told."""
    draft = draft_schema(open_source(stays()))
    rules = [
        {"difference": {"nights": ["discharged", "admitted"]}},
        {"order": ["born", "admitted"]},
        {"order": ["admitted", "discharged"]},
    ]
    assert list(draft.schema.rules) == rules
    assert {"born", "admitted", "nights"} < set(draft.schema.open)
    assert not draft.candidates
    document = yaml.safe_load(draft.to_yaml())
    assert document["rules"] == rules
    asked = questions(draft.schema, document)
    assert with_answers(document, asked, {"public": "yes"})["rules"] == rules
    assert with_answers(document, asked, {"unit": "nights to 3"})["rules"] == rules[1:]


def test_ranges_that_do_not_overlap_are_no_rule():
    rng = np.random.default_rng(3)
    low, high = rng.integers(0, 100, 2_000), rng.integers(100, 200, 2_000)
    first, last = (pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D") for days in (low, high))
    frame = pd.DataFrame({"low": low, "high": high, "first": first, "last": last})
    assert {"order": ["low", "high"]} not in draft_schema(open_source(frame)).schema.rules
    assert {"order": ["first", "last"]} not in draft_schema(open_source(frame)).schema.rules


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


def test_infinite_numbers_are_no_parts_of_a_sum():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(2_000, 5)), columns=list("abcde"))
    frame.loc[::50, "b"] = np.inf
    assert candidates(frame) == []


@pytest.mark.parametrize("n", [0, 1, 3])
def test_hardly_any_rows(n):
    frame = hospital(10).iloc[:n]
    schema = draft_schema(open_source(hospital(10)), exact=True).schema
    assert rule_candidates(open_source(frame), schema) == []
