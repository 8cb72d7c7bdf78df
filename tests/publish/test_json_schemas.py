"""The published JSON Schemas: what Sfumato writes is valid, and what it refuses by its form is not."""

import copy
import dataclasses
import json
import re
import zipfile
from pathlib import Path

import pytest

from sfumato import Schema
from sfumato.columns.kinds import KINDS
from sfumato.errors import SchemaError
from sfumato.privacy.certificate import Certificate
from sfumato.schema.documents import parse_document
from sfumato.schema.schema import _KEYS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "src" / "sfumato" / "publish" / "schemas"
DOCUMENTS = {path.name.split(".")[0]: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{i}")
    for page in PAGES
    for i, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S))
]


@pytest.fixture(scope="module")
def faults():
    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema")
    registry = (
        pytest.importorskip("referencing")
        .Registry()
        .with_contents((f"{name}.schema.json", document) for name, document in DOCUMENTS.items())
    )

    def check(name, content):
        validator = jsonschema.Draft202012Validator(DOCUMENTS[name], registry=registry)
        validator.check_schema(DOCUMENTS[name])
        return [f"{error.json_path}: {error.message}"[:300] for error in validator.iter_errors(content)]

    return check


def _manifest(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("manifest.json"))


def test_a_packed_release_is_valid(faults, folder, hostile):
    assert faults("manifest", _manifest(folder / "release.sfm")) == []
    assert faults("certificate", hostile.certificate.to_dict()) == []
    assert faults("schema", hostile.schema.to_dict()) == []


@pytest.mark.parametrize("block", BLOCKS)
def test_every_schema_in_the_documentation_is_valid(faults, block):
    assert faults("schema", parse_document(block, "a page")) == []


def test_every_kind_and_every_fact_is_described():
    said = DOCUMENTS["schema"]
    assert set(said["properties"]) == set(_KEYS)
    for name, kind in KINDS.items():
        entry = said["$defs"][name]
        facts = {fact.name: fact for fact in dataclasses.fields(kind)}
        assert set(entry["properties"]) == {"kind", "source", *facts}
        required = {key for key, fact in facts.items() if fact.default is dataclasses.MISSING}
        assert set(entry["required"]) == {"kind", *required}


def test_every_entry_of_a_certificate_is_described():
    entries = {f.name: f for f in dataclasses.fields(Certificate) if f.name != "further"}
    said = DOCUMENTS["certificate"]
    assert set(said["properties"]) == set(entries)
    required = {name for name, f in entries.items() if f.default is dataclasses.MISSING}
    assert set(said["required"]) == required


NUMBER = {"kind": "integer", "lower": 0, "upper": 9}
COLUMNS = {**dict.fromkeys("abcd", "boolean"), **dict.fromkeys("xy", NUMBER)}


@pytest.mark.parametrize(
    "question",
    [
        "ols: x ~ y", "table: a, b", "mean: x by a, b", "share: a", " quantile : x", {"poisson": "x ~ C(a)"},
        {"logit": "a ~ x", "weight": 2}, {"table": ["a", "b", "c", "d"]}, {"mean": "x", "by": "a"},
        {"mean": ["x"], "by": ["a", "b", "c"], "weight": 0.5}, {"share": "a", "by": []}, {"ols": "x ~ y", "by": []},
    ],
)  # fmt: skip
def test_a_question_is_valid(faults, question):
    content = {"rows": 10, "columns": COLUMNS, "questions": [question]}
    assert faults("schema", content) == []
    assert faults("schema", Schema.from_dict(content).to_dict()) == []


@pytest.mark.parametrize(
    "question",
    [
        "x ~ y", "ols: x", "median: x", 1, None, {}, {"by": "a"}, {"median": "x"}, {"ols": "x"}, {"ols": ["x ~ y"]},
        {"ols": "x ~ y", "by": "a"}, {"table": "a"}, {"table": ["a"]}, {"table": ["a", "a"]}, {"table": list("abcdx")},
        {"table": ["a", "b"], "by": ["c"]}, {"mean": ["x", "y"]}, {"mean": "x", "by": list("abcd")},
        {"mean": "x", "by": 1}, {"mean": "x", "share": "a"}, {"mean": "x", "weight": 0}, {"mean": "x", "weight": True},
        {"mean": "x", "weight": "2"}, {"mean": "x", "more": 1},
    ],
)  # fmt: skip
def test_a_question_that_is_refused_by_its_form_is_a_fault(faults, question):
    content = {"rows": 10, "columns": COLUMNS, "questions": [question]}
    assert faults("schema", content) != []
    with pytest.raises(SchemaError):
        Schema.from_dict(content)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("columns", "age", "lower"), None),
        (("columns", "age", "kind"), "integr"),
        (("columns", "age", "source"), "me"),
        (("columns", "age", "more"), 1),
        (("columns",), {}),
        (("rows",), 0),
        (("unit",), {"max_rows": 1}),
        (("accept",), [{"auroc": 0.8}]),
        (("accept",), [{"finding": "ols: age ~ sex", "term": "age"}]),
        (("questions",), "ols: age ~ 1"),
        (("other",), 1),
    ],
)
def test_a_fault_is_found(faults, place, value):
    content = {"rows": 10, "columns": {"age": {"kind": "integer", "lower": 0, "upper": 9}}}
    assert faults("schema", content) == []
    broken = copy.deepcopy(content)
    part = broken
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    found = faults("schema", broken)
    assert bool(found) == (place[-1:] != ("kind",))  # an unknown kind may be of another package
