"""The easy path of a stranger, from a CSV with people's names to a release, and what a draft does on the way."""

import random
from pathlib import Path

import pytest

from sfumato import load
from sfumato.privacy import words
from sfumato.schema.open_schema import OpenSchema

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.SchemaWarning")  # 1,200 rows: noise may hide a column
PEOPLE = 600
FIT = (
    "fit",
    "people.csv",
    "--schema",
    "draft.yaml",
    "--epsilon",
    12,
    "--delta",
    1e-6,
    "--rows",
    "estimate",
    "--out",
    "r",
)
START = ("Sel", "Mar", "Tor", "Vin", "Kas", "Ros", "Bel", "Hal", "Jor", "Wil")
END = ("indra", "ikka", "ulfe", "ambo", "ettly", "owen", "ysta", "orfin", "aleth", "umiro")
NAMES = [start + end for start in START for end in END]
IDS = [f"K{7_310_000 + 13 * i}Q" for i in range(PEOPLE)]  # digits alone are in noisy numbers by chance


def last_line(result) -> str:
    return result.out.strip().splitlines()[-1]


@pytest.fixture
def people(tmp_path, monkeypatch) -> Path:
    """Two rows a person: an id, a first name, dates, labels and numbers."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(0)
    lines = ["patient,first_name,sex,visit,age,cost,smoker"]
    for person in IDS:
        name, sex, age = draw.choice(NAMES), draw.choice("fm"), draw.randint(18, 90)
        for _ in range(2):
            visit = f"2020-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
            cost, smoker = f"{draw.lognormvariate(5, 1):.2f}", draw.choice(["true", "false"])
            lines.append(f"{person},{name},{sex},{visit},{age},{cost},{smoker}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def drafted(people, call) -> Path:
    result = call("schema", "draft", "people.csv", "--out", "draft.yaml")
    assert result.code == 0
    assert last_line(result) == "Next: edit draft.yaml, then sfumato schema check draft.yaml"
    return people


def take_line_out():
    path = Path("draft.yaml")
    path.write_text(path.read_text(encoding="utf-8").replace("draft: true\n", ""), encoding="utf-8")


def shown_by(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.slow
def test_hardening_7_the_easy_path_publishes_nobody(drafted, call):
    result = call(*FIT)
    assert (result.code, Path("r").exists()) == (2, False)
    assert len(result.err.strip().splitlines()) == 1
    assert "take out its line `draft: true`" in result.err
    take_line_out()
    result = call("schema", "check", "draft.yaml", "people.csv")
    assert last_line(result).startswith("Next: sfumato fit ")
    result = call(*FIT)
    assert result.code == 0
    assert last_line(result) == "Wrote r. Next: sfumato sample r -n 1000 --out synthetic.csv"
    assert "; that 'patient' is the unit, with 5 rows at most." in result.out
    assert "one patient (up to 5 rows)" in result.out
    result = call("sample", "r", "-n", 1000, "--out", "synthetic.csv")
    assert last_line(result) == "Wrote synthetic.csv. Next: sfumato report r --out report.html"
    assert call("report", "r", "--out", "report.html").code == 0
    published = shown_by(Path("r")) + Path("synthetic.csv").read_bytes() + Path("report.html").read_bytes()
    published += call("certificate", "r").out.encode()
    assert [word for word in (*NAMES, *IDS) if word.encode() in published] == []
    assert b"first_name" in published
    days = sorted(line.split(",")[3] for line in Path("people.csv").read_text(encoding="utf-8").splitlines()[1:])
    bounds = load("r").schema.columns["visit"]
    assert bounds.lower.endswith("-01-01")
    assert bounds.upper.endswith("-12-31")
    assert (days[0], days[-1]) != (bounds.lower, bounds.upper), "else the test shows nothing"
    assert words.NOT_COVERED.encode() not in published


def test_the_draft_itself_shows_nobody(drafted):
    text = Path("draft.yaml").read_text(encoding="utf-8")
    assert [word for word in (*NAMES, *IDS) if word in text] == []
    assert OpenSchema.load("draft.yaml").unit.column == "patient"
    assert str(2 * PEOPLE) not in text


@pytest.mark.filterwarnings("always::sfumato.errors.PrivacyWarning")
def test_an_accepted_draft_says_so_everywhere(drafted, call):
    result = call(*FIT, "--accept-draft")
    assert result.code == 0
    assert last_line(result) == f"Some {words.NOT_COVERED}."
    assert result.err.count(words.NOT_COVERED) == 1
    result = call("certificate", "r")
    assert last_line(result) == f"Some {words.NOT_COVERED}."
    assert "without looking at the records" not in result.out
    assert "read off the records: the unit." in result.out
    assert call("certificate", "r", "--json").json["read_off"] == ["every fact that the draft declares"]
    assert call("report", "r", "--out", "report.html").code == 0
    assert words.NOT_COVERED in Path("report.html").read_text(encoding="utf-8")


def test_what_reads_no_records_or_shows_them_anyway_takes_drafts(drafted, call):
    assert call("plan", "--schema", "draft.yaml", "--epsilon", 1, "--rows", 1000).code == 0
    findings = call("schema", "validate", "people.csv", "--schema", "draft.yaml", "--json").json["findings"]
    assert [finding["problem"] for finding in findings] == ["nothing_declared"]
    result = call("schema", "check", "draft.yaml")
    assert result.code == 0
    assert "A DRAFT" in result.out
    assert "take out the line `draft: true`" in last_line(result)
    assert call("schema", "check", "draft.yaml", "--json").json["draft"] is True


def test_evaluate_takes_an_exact_draft(people, call):
    assert call("schema", "draft", "people.csv", "--out", "draft.yaml", "--exact").code == 0
    assert call("evaluate", "table", "people.csv", "people.csv", "--schema", "draft.yaml").code == 0


def test_tune_refuses_a_draft(people, call):
    assert call("schema", "draft", "people.csv", "--out", "draft.yaml", "--exact").code == 0
    tune = ("model", "tune", "people.csv", "--schema", "draft.yaml", "--epsilon", 4, "--grid", "marginal_share=0.3,0.5")
    result = call(*tune, "--out", "r")
    assert (result.code, Path("r").exists()) == (2, False)
    assert "--accept-draft" in result.err


def test_facts_of_the_data_are_refused_by_name(people, call):
    text = "columns:\n  age: {kind: integer, lower: 18, upper: 90, source: {upper: data, lower: law}}\n"
    Path("draft.yaml").write_text(text, encoding="utf-8")
    result = call(*FIT)
    assert result.code == 2
    assert "for 'age' (upper). " in result.err
    assert "'age' (upper)" in last_line(call("schema", "check", "draft.yaml"))


def test_hardening_7_a_headerless_file_is_refused(people, call):
    lines = Path("people.csv").read_text(encoding="utf-8").splitlines()[1:]
    Path("people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    free = ("fit", "people.csv", "--epsilon", 4, "--delta", 1e-6, "--out", "r")
    for command in (("schema", "draft", "people.csv", "--out", "draft.yaml"), free):
        result = call(*command)
        assert result.code == 1
        assert "a date or time for column 4" in result.err
        assert not any(cell in result.err for cell in lines[0].split(",") if len(cell) > 3)
        assert not Path("r").exists()
    assert call("schema", "draft", "people.csv", "--out", "draft.yaml", "--names-are-public").code == 0


def test_what_is_not_read_and_whom_to_protect_is_said(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("id;age\n" + "".join(f"{i // 3};{i % 70 + 20}\n" for i in range(600)) + "1;2;3\n")
    shown = call("schema", "draft", "t.csv", "--out", "t.yaml").out
    assert "In the file: 1 records cannot be read (record 601: 3 cells, ...)" in shown
    assert "id repeats, as in a long table" in shown
    assert "unit: {column: id, max_rows: 5}" in shown
    found = call("schema", "validate", "t.csv", "--schema", "t.yaml").out
    assert "skipped" in found
    assert "Every cell lies in its declared domain" not in found
    assert "Not compared, since the schema leaves their facts to the fit: age." in found
