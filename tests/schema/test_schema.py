import copy
import pickle
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.columns.kinds import Boolean, Categorical, DateTime, Identifier, Image, Integer
from sfumato.errors import SchemaError
from sfumato.schema.schema import MISSING_TOKENS, Schema
from sfumato.schema.unit import Unit

FULL = {
    "rows": 1000,
    "unit": {"column": "person", "max_rows": 3},
    "missing": ["", "-9"],
    "columns": {
        "person": {"kind": "identifier"},
        "sex": {"kind": "categorical", "categories": ["f", "m"], "other": "x", "nullable": True},
        "size": {"kind": "ordinal", "categories": ["s", "m", "l"]},
        "member": {"kind": "boolean"},
        "age": {"kind": "integer", "lower": 0, "upper": 120},
        "height": {"kind": "continuous", "lower": 0.5, "upper": 2.5, "resolution": 0.01},
        "born": {
            "kind": "datetime",
            "lower": "1900-01-01",
            "upper": "2020-12-31",
            "format": "%d/%m/%Y",
        },
        "face": {"kind": "image", "shape": [8, 8], "upper": 1.0},
    },
}


def test_from_dict_and_to_dict_are_inverse():
    schema = Schema.from_dict(FULL)
    assert schema.to_dict() == FULL
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.columns["face"] == Image(shape=(8, 8), upper=1)


@pytest.mark.parametrize("name", ["schema.yaml", "schema.json"])
def test_save_and_load_are_inverse(tmp_path, name):
    schema = Schema.from_dict(FULL)
    schema.save(tmp_path / name)
    assert Schema.load(tmp_path / name) == schema
    assert list(Schema.load(tmp_path / name).columns) == list(FULL["columns"])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_any_labels_survive_a_file(tmp_path_factory, labels):
    labels = tuple(dict.fromkeys(label.strip() for label in labels))
    schema = Schema(columns={"a\tb: #": Categorical.of_text(labels)})
    for suffix in ("yaml", "json"):
        path = tmp_path_factory.getbasetemp() / f"labels.{suffix}"
        schema.save(path, overwrite=True)
        assert Schema.load(path) == schema


def test_yaml_quirks_become_text(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "columns:\n  a: {kind: categorical, categories: [no, true, 1, 1.0e+0, 2020-01-01, 010]}\n  7: boolean\n"
    )
    with pytest.raises(SchemaError, match="'1' twice"):
        Schema.load(path)
    path.write_text(path.read_text().replace("1.0e+0, ", ""))
    schema = Schema.load(path)
    assert schema.columns["a"] == Categorical(categories=("no", "true", "1", "2020-01-01", "010"))
    assert schema.columns["7"] == Boolean()


def test_released_leaves_out_identifiers_and_the_unit():
    columns = {"a": Integer(lower=0, upper=1), "b": Boolean(), "c": Identifier()}
    assert Schema(columns=columns).released == ("a", "b")
    assert Schema(columns=columns, unit=Unit(column="a", max_rows=2)).released == ("b",)


def test_every_fault_is_named_with_its_column():
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict(
            {
                "row": 5,
                "rows": 0,
                "missing": "NA",
                "unit": {"column": "p"},
                "columns": {
                    "a": {"kind": "intger", "lower": 0, "upper": 1},
                    "b": {"kind": "integer", "lower": 1, "upper": 0},
                    "c": {"kind": "integer", "lower": 1},
                    "d": {"kind": "categorical", "categories": ["x"], "levels": 3},
                    "e": 12,
                    "f": {"lower": 1},
                },
            }
        )
    message = str(caught.value)
    for words in (
        "got 'row'",
        "rows to be a whole number of at least 1, got 0",
        "missing to be a list",
        "unit to hold column and max_rows",
        "Column 'a': expected kind to be one of",
        "got kind='intger'",
        "Column 'b': Expected lower <= upper, got lower=1, upper=0",
        "Column 'c': Expected upper for kind integer, got none",
        "Column 'd': Expected the keys",
        "Column 'e': expected kind",
        "Column 'f': expected kind",
    ):
        assert words in message


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (None, "a mapping with `columns`"),
        ("SECRET,a,b", "a mapping with `columns`"),
        ({"columns": []}, "a mapping with `columns`"),
        ({"columns": {}}, "at least one column to release"),
        ({"columns": {"a": "identifier"}}, "at least one column to release"),
        ({"columns": {"": "boolean"}}, "column names to be text"),
        ({"columns": {"a": "boolean"}, "unit": {"column": "b", "max_rows": 1}}, "got 'b'"),
        ({"columns": {"a": "boolean"}, "rows": True}, "got True"),
        ({"columns": {1: "boolean", "1": "boolean"}}, "'1' twice"),
        ({"columns": {"a": {"kind": ["integer"]}}}, "got kind=a list"),
    ],
)
def test_a_document_that_is_no_schema_is_refused(document, words):
    with pytest.raises(SchemaError) as caught:
        Schema.from_dict(document)
    assert words in str(caught.value)
    assert "SECRET" not in str(caught.value)


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=12,
)
_KINDS = st.sampled_from(sorted(k["kind"] for k in FULL["columns"].values()))
_FACTS = st.sampled_from(
    ["lower", "upper", "categories", "other", "nullable", "resolution", "format", "shape", "dtype"]
)
_ENTRIES = st.builds(lambda kind, facts: {"kind": kind, **facts}, _KINDS, st.dictionaries(_FACTS, _VALUES))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["rows", "unit", "missing", "columns", "x"]),
        _VALUES | st.dictionaries(st.text(), _ENTRIES | _VALUES),
    )
)
def test_any_document_is_a_schema_or_a_schema_error(document):
    try:
        schema = Schema.from_dict(document)
    except SchemaError:
        return
    assert Schema.from_dict(schema.to_dict()) == schema


def test_a_schema_can_be_copied_and_pickled_but_not_changed_or_hashed():
    schema = Schema.from_dict(FULL)
    assert copy.deepcopy(schema) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    with pytest.raises(TypeError):
        schema.columns["a"] = Boolean()
    with pytest.raises(TypeError):
        hash(schema)


def test_schemas_compare_by_value():
    assert Schema(columns={"a": Boolean()}) != Schema(columns={"a": Boolean(nullable=True)})
    assert Schema(columns={"a": Boolean()}).missing == MISSING_TOKENS


def test_missing_tokens_are_trimmed_and_unique():
    assert Schema(columns={"a": Boolean()}, missing=(" NA ", "NA", -9)).missing == ("NA", "-9")


def test_a_hundred_thousand_categories_load_quickly(tmp_path):
    labels = tuple(f"label {i}" for i in range(100_000))
    schema = Schema(columns={"a": Categorical(categories=labels), "b": Boolean()})
    schema.save(tmp_path / "s.json")
    start = time.process_time()
    assert Schema.load(tmp_path / "s.json") == schema
    assert time.process_time() - start < 5


def test_dates_given_as_objects_become_iso_text():
    from datetime import date

    kind = DateTime(lower=date(2020, 1, 1), upper="2020-12-31")
    assert kind.lower == "2020-01-01"
