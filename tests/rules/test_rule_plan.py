"""What rules leave free, and how rows are made of it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fixtures.ruled import hospital, hospital_columns, hospital_schema
from sfumato.errors import SchemaError
from sfumato.lenses.chain import plain_schema
from sfumato.methods.max_entropy import MaxEntropy
from sfumato.rules.cells import from_codes
from sfumato.schema.schema import Schema


def coded(schema, frame):
    """Records as codes of the declared columns."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return {name: kind.code(table.column(name), missing=schema.missing) for name, kind in schema.columns.items()}


def test_what_is_modelled():
    schema = hospital_schema()
    assert set(schema.columns) - set(plain_schema(schema).columns) == {"stay", "total", "group"}
    assert schema.rule_plan.gaps == {"discharged": "admitted"}  # intensive is behind what is not modelled
    gap = plain_schema(schema).columns["discharged"]
    assert (gap.name, gap.lower, gap.upper) == ("integer", 0, 546)
    assert plain_schema(plain_schema(schema)) is plain_schema(schema) or plain_schema(
        plain_schema(schema)
    ) == plain_schema(schema)
    free = hospital_schema([])
    assert plain_schema(free).released == (*free.released, "discharged: time since admitted")
    plain = replace(free, columns={name: kind for name, kind in free.columns.items() if name != "discharged"})
    assert plain_schema(plain) is plain


@pytest.mark.parametrize(("first", "is_distance"), [(0, False), (9_000, True)])
def test_a_visit_of_few_years_is_no_distance_from_a_birth(first, is_distance):
    """A distance as wide as lives has cells of years, and ended outside the bounds of half of the visits."""
    bounds = {"born": (first, 10_000), "visit": (9_000, 10_000)}
    columns = {name: {"kind": "integer", "lower": low, "upper": high} for name, (low, high) in bounds.items()}
    schema = Schema.from_dict({"rows": 4_000, "columns": columns, "rules": [{"order": ["born", "visit"]}]})
    assert schema.rule_plan.gaps == ({"visit": "born"} if is_distance else {})
    rng = np.random.default_rng(0)
    visit = rng.integers(9_100, 9_900, 4_000)
    born = np.minimum(rng.integers(first, 9_500, 4_000), visit)
    release = MaxEntropy(epsilon=8.0).fit(pd.DataFrame({"born": born, "visit": visit}), schema=schema)
    sample = release.sample(2_000)
    assert (sample["visit"] < sample["born"]).sum() == 0
    assert np.isin(sample["visit"], (9_000, 10_000)).mean() < 0.05


def test_records_that_keep_rules_come_back():
    schema, frame = hospital_schema(), hospital(300)
    plan = schema.rule_plan
    rows = coded(schema, frame)
    table = plan.assembled(plan.to_free(rows))
    for name, kind in schema.columns.items():
        before = from_codes(kind, rows[name])
        if isinstance(before, np.ndarray):
            np.testing.assert_array_equal(table[name], before, err_msg=name)
        else:
            np.testing.assert_array_equal(table[name].absent, before.absent, err_msg=name)
            np.testing.assert_allclose(table[name].values, before.values, atol=1e-9, err_msg=name)


def test_each_record_is_mapped_by_itself():
    """Whatever the others hold: the codes of a record do not move when the others do, or when it moves."""
    schema = hospital_schema()
    rng = np.random.default_rng(0)
    frame = hospital(64)
    for name in ("stay", "intensive", "age"):
        frame[name] = rng.integers(-(10**6), 10**6, len(frame))
    frame["discharged"] = frame["admitted"].to_numpy()[rng.permutation(len(frame))]
    together = schema.rule_plan.to_free(coded(schema, frame))
    for i in (0, 17, 63):
        alone = schema.rule_plan.to_free(coded(schema, frame.iloc[[i]]))
        for name, codes in alone.items():
            np.testing.assert_array_equal(codes[0], together[name][i], err_msg=name)
            assert np.isnan(codes[0]) or 0 <= codes[0] <= max(1, plain_schema(schema).columns[name].n_levels)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([{"sum": {"stay": ["age", "intensive"]}}, {"sum": {"age": ["stay", "intensive"]}}], r"cycle.*rule 1.*rule 2"),
        ([{"sum": {"stay": ["age", "intensive"]}}, {"difference": {"stay": ["age", "intensive"]}}], "one rule that"),
        ([{"never": {"sex": "male"}}, {"never": {"age": "0-100"}}, {"never": {"sex": "female"}}], "some row keeps"),
        ([{"if": {"sex": "male"}, "then": {"ward": "east"}}, {"never": {"sex": "female"}},
          {"never": {"ward": "east"}}], "rule 1 .*rule 2 .*rule 3"),
    ],
)  # fmt: skip
def test_contradictions_name_their_rules(rules, message):
    with pytest.raises(SchemaError, match=message):
        hospital_schema(rules)


def test_rules_without_part_in_a_contradiction_are_not_named():
    both = [{"never": {"sex": "male"}}, {"never": {"sex": "female"}}]
    with pytest.raises(SchemaError) as raised:
        hospital_schema([{"if": {"sex": "male"}, "then": {"ward": "east"}}, *both])
    assert "rule 2 (never), rule 3 (never)" in str(raised.value)
    assert "rule 1" not in str(raised.value)


def test_an_order_that_bounds_forbid():
    columns = {name: {"kind": "integer", "lower": low, "upper": low + 1} for name, low in (("a", 10), ("b", 0))}
    with pytest.raises(SchemaError, match=r"all values of 'b' are below all of 'a'"):
        Schema.from_dict({"columns": columns, "rules": [{"order": ["a", "b"]}]})


def test_numbers_too_large_to_tell_apart():
    columns = {**hospital_columns(), "age": {"kind": "integer", "lower": 0, "upper": 2**60}}
    with pytest.raises(SchemaError, match=r"below 2\^53"):
        Schema.from_dict({"columns": columns, "rules": [{"order": ["stay", "age"]}]})
