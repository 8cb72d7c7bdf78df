import json
import os
from pathlib import Path

import pytest

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Identifier, Integer
from sfumato.errors import SchemaError
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit
from sfumato.standards.importers import from_domain_json, from_nist_dictionary, from_smartnoise_yaml

SMARTNOISE = """
"":
  PUMS:
    PUMS:
      row_privacy: false
      rows: 1000
      max_ids: 4
      censor_dims: true
      pid: {private_id: true, type: int}
      age: {type: int, lower: 0, upper: 120, nullable: false}
      income: {type: float, lower: 0, upper: 500000}
      married: {type: boolean, nullable: false}
      educ: {type: string, categories: [no, 1, 2]}
      seen: {type: datetime, lower: 2020-01-01, upper: 2020-12-31}
      note: {type: string, cardinality: 9}
      weight: {type: float}
"""


def _write(tmp_path, text, name="file.yaml"):
    path = tmp_path / name
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def test_smartnoise(tmp_path):
    with pytest.warns(UserWarning, match="'note', 'weight': declared as identifier"):
        schema = from_smartnoise_yaml(_write(tmp_path, SMARTNOISE))
    assert schema == Schema(
        rows=1000,
        unit=Unit(column="pid", max_rows=4),
        columns={
            "pid": Identifier(),
            "age": Integer(lower=0, upper=120),
            "income": Continuous(lower=0, upper=500_000, nullable=True),
            "married": Boolean(),
            "educ": Categorical(categories=("no", "1", "2"), nullable=True),
            "seen": DateTime(lower="2020-01-01", upper="2020-12-31", nullable=True),
            "note": Identifier(),
            "weight": Identifier(),
        },
    )


def test_smartnoise_row_privacy_has_no_unit(tmp_path):
    text = "a: {b: {c: {row_privacy: true, pid: {private_id: true}, m: {type: boolean}}}}"
    schema = from_smartnoise_yaml(_write(tmp_path, text))
    assert schema.unit is None
    assert schema.released == ("m",)


def test_smartnoise_with_two_tables_needs_a_name(tmp_path):
    path = _write(tmp_path, "a: {b: {c: {m: {type: boolean}}, d: {n: {type: boolean}}}}")
    assert from_smartnoise_yaml(path, table="d").released == ("n",)
    with pytest.raises(SchemaError, match=r"'c', 'd', got None"):
        from_smartnoise_yaml(path)


def test_private_pgm_domain(tmp_path):
    schema = from_domain_json(_write(tmp_path, {"age": 3, "sex": 2}, "domain.json"))
    assert schema.columns["age"] == Categorical(categories=("0", "1", "2"))
    assert list(schema.columns) == ["age", "sex"]


def test_nist_schema(tmp_path):
    document = {
        "schema": {
            "PUMA": {"dtype": "object", "values": ["25-00503", "25-00703"]},
            "SEX": {"dtype": "int64", "values": [1, 2]},
            "AGEP": {"dtype": "int64", "min": 0, "max": 99},
            "DENSITY": {"dtype": "float64", "min": 16, "max": 52864},
            "MSP": {"dtype": "object", "has_null": True, "null_value": "N", "values": ["N", "1"]},
            "PINCP": {
                "dtype": "object",
                "has_null": True,
                "null_value": "N",
                "min": -9000,
                "max": 1,
            },
        }
    }
    schema = from_nist_dictionary(_write(tmp_path, document, "s.json"))
    assert schema.missing[-1] == "N"
    assert dict(schema.columns) == {
        "PUMA": Categorical(categories=("25-00503", "25-00703")),
        "SEX": Categorical(categories=("1", "2")),
        "AGEP": Integer(lower=0, upper=99),
        "DENSITY": Continuous(lower=16, upper=52864),
        "MSP": Categorical(categories=("1",), nullable=True),
        "PINCP": Integer(lower=-9000, upper=1, nullable=True),
    }


def test_nist_data_dictionary(tmp_path):
    document = {
        "SEX": {"description": "", "values": {"1": "Male", "2": "Female"}},
        "NPF": {"description": "", "values": {"N": "N/A (GQ)", "min": 2, "max": 20}},
        "POVPIP": {"values": {"N": "N/A", "min": 0, "max": 500, "501": "above"}},
        "DENSITY": {"values": {"min": 16.3, "max": 52864.7}},
        "INDP": {"description": "codes", "details": "269 of them"},
    }
    with pytest.warns(UserWarning, match="'INDP'"):
        schema = from_nist_dictionary(_write(tmp_path, document, "d.json"))
    assert dict(schema.columns) == {
        "SEX": Categorical(categories=("1", "2")),
        "NPF": Integer(lower=2, upper=20, nullable=True),
        "POVPIP": Integer(lower=0, upper=501, nullable=True),
        "DENSITY": Continuous(lower=16.3, upper=52864.7),
        "INDP": Identifier(),
    }


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (from_domain_json, "[]", "got a list"),
        (from_domain_json, '{"a": 0}', "Column 'a': expected a number of codes from 1"),
        (from_domain_json, '{"a": true}', "got True"),
        (from_domain_json, '{"a": 1e30}', "Column 'a'"),
        (from_nist_dictionary, "[]", "got a list"),
        (from_nist_dictionary, '{"a": 1}', "got a dict"),
        (from_nist_dictionary, '{"a": {"dtype": "x", "min": 5, "max": 1}}', "lower=5, upper=1"),
        (from_nist_dictionary, '{"a": {"dtype": "x", "values": [[1]]}}', "Column 'a'"),
        (from_smartnoise_yaml, "a: 1", "collection, schema, table"),
        (from_smartnoise_yaml, "a: {b: {c: {d: {type: int, lower: 5, upper: 1}}}}", "Column 'd'"),
        (from_smartnoise_yaml, "a: {b: {c: {d: {type: [int]}}}}", "Column 'd'"),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, read, text, words):
    with pytest.raises(SchemaError) as caught:
        read(_write(tmp_path, text, "f.json" if text[0] in "{[" else "f.yaml"))
    assert words in str(caught.value)


@pytest.mark.real_data
def test_the_real_files_import():
    data = Path(os.environ.get("SFUMATO_DATA", "../shared/data"))
    if not data.is_dir():
        pytest.skip("no shared data")
    for place in ("ma2019", "tx2019", "national2019"):
        schema = from_nist_dictionary(data / f"sdnist_{place}.schema.json")
        assert len(schema.released) == 24
        assert schema.columns["PINCP"].nullable
    with pytest.warns(UserWarning, match="'INDP'"):
        assert len(from_nist_dictionary(data / "sdnist_data_dictionary.json").released) == 23
    assert len(from_domain_json(data / "adult_discrete.domain.json").released) == 14
