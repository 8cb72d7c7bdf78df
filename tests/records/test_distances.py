"""Columns of a table of a database that are in order: the later as its distance, there and back."""

import numpy as np
import pytest

from fixtures.database import document
from sfumato import Schema
from sfumato.columns.numbers import Integer
from sfumato.lenses.chain import plain_records, plain_schema
from sfumato.schema.branch_schemas import branch_views


@pytest.fixture(scope="module")
def visits():
    return branch_views(Schema.from_dict(document()))["visits"]


def test_the_end_of_a_span_of_rows_below_is_its_distance(visits):
    kind = plain_schema(visits.schema).columns["end"]
    assert isinstance(kind, Integer)
    assert kind.bounds == (0, 1000)
    assert visits.schema.columns["start"].bounds == (0, 1000)


def test_codes_are_the_same_there_and_back_and_turned_ones_are_at_their_start(visits):
    rng = np.random.default_rng(1)
    start, end = rng.integers(0, 1001, 500) / 1000, rng.integers(0, 1001, 500) / 1000
    codes = {"start": start, "end": end}
    coded = plain_records(visits.schema, codes)
    assert np.allclose(coded["end"] * 1000, np.maximum(end - start, 0) * 1000)
    others = {name: np.zeros(500) for name in visits.schema.rule_plan.free}
    values = visits.schema.rule_plan.assembled({**others, **coded})["end"].values
    assert np.array_equal(values, np.rint(np.maximum(end, start) * 1000))


def test_a_row_is_coded_by_itself(visits):
    codes = {"start": np.array([0.1, 0.5, 0.9]), "end": np.array([0.2, 0.4, 0.95])}
    together = plain_records(visits.schema, codes)["end"]
    alone = [plain_records(visits.schema, {k: v[[i]] for k, v in codes.items()})["end"][0] for i in range(3)]
    assert np.array_equal(together, alone)


def test_a_rule_of_order_is_kept_in_its_table():
    rule = {"order": ["at", "until"]}
    stated = document(measurements={"within": None, "columns": ["at", "until", "value"]})
    stated["columns"] = {**stated["columns"], "until": {"kind": "integer", "lower": 0, "upper": 1000}}
    schema = Schema.from_dict({**stated, "rules": [rule]})
    view = branch_views(schema)["measurements"]
    assert view.schema.rule_plan.gaps == {"until": "at"}
    assert branch_views(schema)["drugs"].schema.rule_plan is None
    assert "until earlier" not in [feature.name for feature in view.features], "of a distance it would be no date"
    assert Schema.from_dict(schema.to_dict()).rules == schema.rules
