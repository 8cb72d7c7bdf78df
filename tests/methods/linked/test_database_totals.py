"""Columns of a table that are totals of rows below: never measured, and exact in samples."""

import numpy as np
import pytest

import sfumato
from fixtures.database import document, hospital
from harness.coupling import check_same, leaves
from sfumato import MaxEntropy, Schema
from sfumato.errors import ConfigError, SchemaError

N = 400


def totals_document(n=N, **changes):
    tables = {
        "persons": {"columns": ["sex", "age", "spent"]},
        "visits": {"columns": ["start", "end", "score", "state", "cost"], "totals": {"spent": "cost"}},
        "measurements": {"totals": {"cost": "value"}},
    }
    found = document(n, **{name: {**entry, **changes.get(name, {})} for name, entry in tables.items()})
    amounts = {
        name: {"kind": "continuous", "lower": 0, "upper": 30 * k, "resolution": 0.01}
        for name, k in (("cost", 1), ("spent", 5))
    }
    return {**found, "columns": {**found["columns"], **amounts, **changes.get("kinds", {})}}


def with_totals(tables):
    costs = tables["measurements"].groupby("visit")["value"].sum()
    tables["visits"]["cost"] = tables["visits"]["visit"].map(costs).fillna(0).round(2)
    spent = tables["visits"].groupby("person")["cost"].sum()
    tables["persons"]["spent"] = tables["persons"]["person"].map(spent).fillna(0).round(2)
    return tables


def fit(tables):
    method = MaxEntropy(epsilon=8.0, delta=1e-6, calibration_rows=150)
    return method.fit(tables, schema=Schema.from_dict(totals_document()), seed=1)


@pytest.fixture(scope="module")
def tables():
    return with_totals(hospital(N, 1))


@pytest.fixture(scope="module")
def release(tables):
    return fit(tables)


def test_of_two_tables_too(tables):
    """A lone table with totals is not joined to that of persons, with or without them."""
    two = {"persons": tables["persons"], "visits": tables["visits"].drop(columns=["visit", "start", "end"])}
    amount = {"kind": "continuous", "lower": 0, "upper": 150, "resolution": 0.01}
    entries = {
        "persons": {"key": "person", "rows": N, "columns": ["sex", "spent"]},
        "visits": {"of": "persons", "max_rows": 5, "columns": ["score", "cost"], "totals": {"spent": "cost"}},
    }
    columns = {"person": "identifier", "sex": totals_document()["columns"]["sex"], "spent": amount, "cost": amount}
    columns["score"] = totals_document()["columns"]["score"]
    columns["cost"] = {**amount, "upper": 30}
    method = MaxEntropy(epsilon=8.0, delta=1e-6, calibration_rows=150)
    made = method.fit(two, schema=Schema.from_dict({"tables": entries, "columns": columns}), seed=1).sample(300, seed=1)
    sums = made["visits"].groupby("person")["cost"].sum().reindex(made["persons"]["person"]).fillna(0)
    assert np.allclose(made["persons"]["spent"], sums, atol=1e-9)


def test_totals_are_those_of_the_rows_below(release, tables, tmp_path):
    release.save(tmp_path / "r.sfm")
    sample = sfumato.load(tmp_path / "r.sfm").sample(1500, seed=2)
    assert {name: set(frame) for name, frame in sample.items()} == {name: set(f) for name, f in tables.items()}
    exact = with_totals({name: frame.copy() for name, frame in sample.items()})
    for table, name in (("visits", "cost"), ("persons", "spent")):
        assert np.allclose(sample[table][name], exact[table][name], atol=1e-9)
        assert (sample[table][name] == 0).any()
    assert sample["persons"]["spent"].mean() == pytest.approx(tables["persons"]["spent"].mean(), rel=0.2)
    with pytest.raises(ConfigError, match="got 'spent', which is of another one or a total"):
        release.sample(3, given={"spent": 3.0})
    assert "spent" in set(release.columns()["column"])


def test_what_a_total_says_is_not_looked_at(release, tables):
    others = {name: frame.copy() for name, frame in tables.items()}
    others["persons"]["spent"], others["visits"]["cost"] = 7.0, np.arange(len(others["visits"])) % 30
    check_same(leaves(release), leaves(fit(others)))


def test_totals_that_are_none_are_counted(release, tables):
    wrong = {name: frame.copy() for name, frame in tables.items()}
    wrong["persons"].loc[:9, "spent"] = 149.0
    scores = sfumato.evaluate.evaluate(wrong, release.sample(200, seed=1), schema=Schema.from_dict(totals_document()))
    shares = scores["rules"]["by_rule"]
    assert shares["{total: {spent: cost}}"] == {"real": 10 / N, "synthetic": 0}
    assert shares["{total: {cost: value}}"] == {"real": 0, "synthetic": 0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measurements": {"totals": {"price": "value"}}}, "to map columns of 'visits', each once, to its own"),
        ({"measurements": {"totals": {"cost": "score"}}}, "to map columns of 'visits', each once, to its own"),
        ({"measurements": {"totals": {"cost": "at"}}}, "to be numbers of one kind, got 'cost': 'at'"),
        ({"measurements": {"totals": ["cost"]}}, "totals of the table 'measurements' to map columns"),
        ({"measurements": {"max_rows": 4}}, "bounds of 'cost' that hold 0 and the sum of 4 of 'value'"),
        ({"kinds": {"spent": {"kind": "continuous", "lower": 1, "upper": 150}}}, "bounds of 'spent' that hold 0"),
        (
            {"persons": {"columns": ["spent", "sex", "age"]}, "visits": {"totals": {"spent": "cost", "sex": "score"}}},
            "to be numbers of one kind, got 'sex'",
        ),
    ],
)
def test_totals_that_cannot_be_are_refused(change, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict(totals_document(**change))


def test_rules_order_and_spans_are_of_other_columns():
    with pytest.raises(SchemaError, match="Expected rule 1 without totals of rows below, got 'cost'"):
        Schema.from_dict({**totals_document(), "rules": [{"never": {"cost": 3, "state": "ill"}}]})
    own = {"order": "cost", "columns": ["start", "end", "score", "state", "cost"]}
    with pytest.raises(SchemaError, match="to be no order and no end of a span, got 'cost'"):
        Schema.from_dict(totals_document(visits=own))
    found = Schema.from_dict(totals_document())
    assert Schema.from_dict(found.to_dict()) == found
