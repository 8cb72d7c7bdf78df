"""Short forms of facts: what each stands for, and what is refused because it could mean two things."""

from datetime import date

import pandas as pd
import pytest

import sfumato
from sfumato import Schema
from sfumato.columns import Categorical, Integer
from sfumato.errors import SchemaError
from sfumato.schema.references import column_entry

WRITTEN = {
    "bounds of whole numbers": ((0, 120), {"kind": "integer", "lower": 0, "upper": 120}),
    "bounds of numbers": ((0, 1.5), {"kind": "continuous", "lower": 0.0, "upper": 1.5}),
    "days as text": (("2024-01-01", "2024-12-31"), {"kind": "datetime", "lower": "2024-01-01", "upper": "2024-12-31"}),
    "days": (
        (date(2024, 1, 1), date(2024, 12, 31)),
        {"kind": "datetime", "lower": "2024-01-01", "upper": "2024-12-31"},
    ),
    "a range": (range(10), {"kind": "integer", "lower": 0, "upper": 9}),
    "labels": (["AT", "DE"], {"kind": "categorical", "categories": ["AT", "DE"]}),
    "three numbers": ([1, 2, 3], {"kind": "categorical", "categories": ["1", "2", "3"]}),
    "a kind's name": ("boolean", {"kind": "boolean"}),
    "a kind": (Integer(lower=0, upper=9), {"kind": "integer", "lower": 0, "upper": 9}),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_short_form_is_the_entry_that_it_stands_for(name):
    facts, entry = WRITTEN[name]
    assert Schema.from_dict({"columns": {"x": facts}}) == Schema.from_dict({"columns": {"x": entry}})
    assert Schema.from_dict({"columns": {"x": facts}}).to_dict()["columns"]["x"] == entry
    frame = pd.DataFrame({"x": [0]})
    assert sfumato.describe(frame, {"x": facts}) == Schema.from_dict({"columns": {"x": entry}})


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ([0, 120], "bounds as a tuple"),
        ((0, 1, 2), "two bounds in a tuple"),
        ((0, "a"), "0 and 'a'"),
        (("2024-01-01", date(2024, 12, 31)), "two bounds"),
        ((False, True), "two bounds"),
        ((5, 1), "lower <= upper"),
        (range(0), "range of whole numbers"),
        (range(0, 10, 2), "range of whole numbers"),
        (120, "expected kind"),
    ],
)
def test_what_could_be_two_things_or_none_is_refused_by_name(facts, said):
    with pytest.raises(SchemaError, match=r"(?i)column 'x': expected") as refused:
        Schema.from_dict({"columns": {"x": facts, "y": (0, 1)}})
    assert said in str(refused.value)


def test_an_array_of_labels_is_no_short_form():
    """Whoever passes the values of a column has the records say what is public."""
    assert column_entry(pd.Series(["a", "b"])) is not None
    with pytest.raises(SchemaError, match="Column 'x'"):
        Schema.from_dict({"columns": {"x": pd.Series(["a", "b"])}})


class TestUnits:
    def test_a_name_is_a_unit_of_one_row(self):
        long = {"columns": {"age": (0, 120), "customer": "identifier"}, "unit": {"column": "customer", "max_rows": 1}}
        for columns in ({"age": (0, 120)}, {"age": (0, 120), "customer": "identifier"}):
            assert Schema.from_dict({"columns": columns, "unit": "customer"}) == Schema.from_dict(long)
        frame = pd.DataFrame({"age": [1], "customer": [1]})
        assert sfumato.describe(frame, {"age": (0, 120)}, unit="customer") == Schema.from_dict(long)

    def test_its_column_can_be_no_column_of_numbers_to_release(self):
        schema = Schema.from_dict({"columns": {"age": (0, 120), "customer": (0, 9)}, "unit": "customer"})
        assert list(schema.released) == ["age"]


def test_a_fit_takes_them():
    frame = pd.DataFrame({"age": [20, 60] * 200, "country": ["AT", "DE"] * 200, "returned": [True, False] * 200})
    facts = {"age": (0, 120), "country": ["AT", "DE"], "returned": "boolean"}
    release = sfumato.fit(frame, {"columns": facts, "rows": 400}, epsilon=1.0, seed=0)
    assert release.schema.columns["country"] == Categorical(categories=("AT", "DE"))
    assert not release.schema.open
    assert [stage.name for stage in release.certificate.stages] == ["marginals", "second moments"]


def test_a_file_of_yaml_may_hold_labels_alone(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("columns:\n  country: [AT, DE]\n  returned: boolean\nunit: customer\n", encoding="utf-8")
    schema = Schema.load(path)
    assert schema.columns["country"] == Categorical(categories=("AT", "DE"))
    assert schema.unit is not None
    assert schema.unit.column == "customer"
    path.write_text("columns:\n  age: [0, 120]\n", encoding="utf-8")
    with pytest.raises(SchemaError, match="may be either"):
        Schema.load(path)
