import json
import os
from pathlib import Path

import pytest

from sfumato.columns.kinds import Boolean, Categorical, Continuous, DateTime, Identifier, Integer
from sfumato.errors import SchemaError
from sfumato.schema.schema import Schema
from sfumato.schema.unit import Unit
from sfumato.standards.importers import from_domain_json, from_smartnoise_yaml

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


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (from_domain_json, "[]", "got a list"),
        (from_domain_json, '{"a": 0}', "Column 'a': expected a number of codes from 1"),
        (from_domain_json, '{"a": true}', "got True"),
        (from_domain_json, '{"a": 1e30}', "Column 'a'"),
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
def test_the_real_file_imports():
    data = Path(os.environ.get("SFUMATO_DATA", "../shared/data"))
    if not data.is_dir():
        pytest.skip("no shared data")
    assert len(from_domain_json(data / "adult_discrete.domain.json").released) == 14
