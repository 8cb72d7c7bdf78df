"""What tables say of each other: by hand, by a law, and beside tables dealt anew."""

import numpy as np
import pandas as pd
import pytest

from fixtures.command_line import call
from fixtures.database import hospital
from sfumato import Schema
from sfumato.columns.kinds import Boolean
from sfumato.evaluate import evaluate
from sfumato.evaluate.between_tables import between_tables, pairs_between
from sfumato.records.context import Level
from sfumato.schema.database import Branch, Database
from sfumato.schema.documents import yaml_text

__all__ = ["call"]

KINDS = {"sick": Boolean(), "a": Boolean(), "b": Boolean()}
TREE = Database(
    units="persons",
    branches=(
        Branch(name="visits", of="persons", max_rows=3, columns=("a",), by="person", key="visit"),
        Branch(name="values", of="visits", max_rows=3, columns=("c",), by="visit"),
        Branch(name="drugs", of="persons", max_rows=3, columns=("b",), by="person"),
    ),
)
TWO = Database(units="persons", branches=(TREE.branches[0], TREE.branches[2]))


def level(owners, codes):
    own = np.asarray(owners)
    return Level(own, own, {name: np.asarray(column) for name, column in codes.items()})


def tables(sick, visits, drugs):
    persons = level(range(len(sick)), {"sick": sick})
    return {"persons": persons, "visits": level(*visits), "drugs": level(*drugs)}


def test_pairs_are_those_that_are_beside_each_other_and_those_with_units():
    assert pairs_between(TREE) == [
        ("persons", "visits"), ("persons", "values"), ("persons", "drugs"), ("visits", "drugs"), ("values", "drugs"),
    ]  # fmt: skip


def test_a_table_by_hand():
    """Of two persons the first has visits with a and without, and a drug with b; the second has nothing."""
    real = tables([1, 0], ([0, 0], {"a": [0, 1]}), ([0], {"b": [1]}))
    made = tables([1, 0], ([0, 0], {"a": [1, 1]}), ([0], {"b": [1]}))
    # a and b: real (½ of a person each: no a with b, a with b; a half person: nothing of both); made: a with b alone
    # numbers are the same; a and the number of drugs, and the reverse, as a and b
    scores = between_tables(real, made, TWO, KINDS)["visits, drugs"]
    assert scores["synthetic"] == pytest.approx((0.25 + 0.25 + 0 + 0) / 4)
    assert between_tables(real, real, TWO, KINDS)["visits, drugs"]["synthetic"] == 0


def test_units_of_a_key_alone_are_compared_with_nothing():
    real = {**tables([1, 0], ([0], {"a": [0]}), ([0], {"b": [1]})), "persons": level([0, 1], {})}
    assert list(between_tables(real, real, TWO, KINDS)) == ["visits, drugs"]


def test_what_dealing_loses_is_seen():
    """Whoever has a has b: samples of the law are near, and far once rows are dealt."""
    rng = np.random.default_rng(0)

    def drawn(n):
        sick = rng.random(n) < 0.5
        return tables(sick * 1, (range(n), {"a": sick * 1}), (range(n), {"b": sick * 1}))

    scores = between_tables(drawn(4_000), drawn(4_000), TWO, KINDS)
    for own in scores.values():
        assert own["synthetic"] < 0.03
        assert own["dealt"] > 0.2
        assert own["tenth"] < 0.1


def test_databases_are_compared_so(call, tmp_path):
    persons = hospital(300, 1)
    columns = {
        "person": "identifier", "visit": "identifier", "sex": {"kind": "categorical", "categories": ["f", "m"]},
        "score": {"kind": "continuous", "lower": 0, "upper": 100},
        "drug": {"kind": "categorical", "categories": sorted(persons["drugs"]["drug"].unique())},
    }  # fmt: skip
    document = {
        "tables": {
            "persons": {"key": "person", "rows": 300, "columns": ["sex"]},
            "visits": {"of": "persons", "key": "visit", "max_rows": 6, "columns": ["score"]},
            "drugs": {"of": "persons", "max_rows": 6, "columns": ["drug"]},
        },
        "columns": columns,
    }
    some = {name: persons[name] for name in document["tables"]}
    scores = evaluate(
        some, {name: pd.DataFrame(table) for name, table in some.items()}, schema=Schema.from_dict(document)
    )
    assert list(scores["between"]) == ["persons, visits", "persons, drugs", "visits, drugs"]
    assert all(own["synthetic"] == 0 < own["dealt"] for own in scores["between"].values())
    (folder := tmp_path / "hospital").mkdir()
    for name, table in some.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    (path := tmp_path / "schema.yaml").write_text(yaml_text(document), "utf-8")
    told = call("evaluate", "table", folder, folder, "--schema", path).out
    assert "Between tables: how far two-way tables by person are off" in " ".join(told.split())
    assert "visits, drugs" in told
