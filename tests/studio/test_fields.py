"""The schema as a form: what is typed is written, what is wrong is said beside its field, and can be taken back."""

import html
import re

import pytest

from fixtures.studio import given_word, schema_form
from sfumato.schema.documents import parse_document
from sfumato.schema.sources import read_off
from sfumato.studio.session import StudioSession

DOCUMENT = """\
rows: 400
unit: {column: person, max_rows: 3}
columns:
  person: identifier
  age: {kind: integer, lower: 0, upper: 120, source: law}
  country: [AT, DE]
  grade: {kind: ordinal, categories: [a, b, c]}
  day: {kind: datetime, lower: 2020-01-01, upper: 2024-12-31, resolution: month}
  wage: {kind: continuous, discover: true, written: {decimal: ","}}
  money: {kind: categorical, categories: {list: iso-4217}, other: rest}
  member: boolean
  born: {kind: datetime, discover: true}
  leaves: {kind: datetime, discover: true}
rules: [{order: [born, leaves]}]
"""


@pytest.fixture
def session(tmp_path, table):
    folder = tmp_path / "studio"
    folder.mkdir()
    (folder / "schema.yaml").write_text(DOCUMENT)
    return StudioSession(folder, str(table))


def saved(session, **fields):
    assert session.save(session.form() | fields) == {}
    return parse_document(session.text(), "schema")


def refused(session, **fields):
    before = session.text()
    faults = session.save(session.form() | fields)
    assert session.text() == before
    assert not session.can_undo
    return faults


def test_a_draft_keeps_its_comments_until_it_is_none(tmp_path, table):
    session = StudioSession(tmp_path / "new", str(table))
    comments = {line for line in session.text().splitlines() if line.lstrip().startswith("#")}
    saved(session, rows="600")
    assert len(comments & set(session.text().splitlines())) > len(comments) / 2
    saved(session, public="true")
    assert "#" not in session.text(), "they count records"


def test_what_is_not_changed_stays_as_it_is_written(session):
    saved(session)
    assert session.text() == DOCUMENT
    changed, before = saved(session, lower1="18"), parse_document(DOCUMENT, "schema")
    assert changed["columns"].pop("age") == {
        "kind": "integer", "lower": 18, "upper": 120, "source": {"upper": "law"},
    }  # fmt: skip
    assert before["columns"].pop("age")
    assert changed == before


@pytest.mark.parametrize(
    ("fields", "name", "entry"),
    [
        ({"lower5": "0", "upper5": "1e5"}, "wage",
         {"kind": "continuous", "written": {"decimal": ","}, "lower": 0, "upper": 1e5, "nullable": True}),
        ({"lower4": "", "upper4": ""}, "day", {"kind": "datetime", "discover": True, "resolution": "month"}),
        ({"upper4": "2030-12-31"}, "day",
         {"kind": "datetime", "resolution": "month", "lower": "2020-01-01", "upper": "2030-12-31"}),
        ({"labels2": "AT\r\n\r\n CH "}, "country", {"kind": "categorical", "categories": ["AT", "CH"]}),
        ({"labels2": ""}, "country", {"kind": "categorical", "discover": True}),
        ({"labels2": "", "listed2": "iso-4217"}, "country",
         {"kind": "categorical", "categories": {"list": "iso-4217"}}),
        ({"listed6": "", "labels6": "EUR\nUSD"}, "money",
         {"kind": "categorical", "other": "rest", "categories": ["EUR", "USD"]}),
        ({"hidden3": "on"}, "grade", "identifier"),
        ({"kind7": "unknown"}, "member", {"kind": "unknown", "discover": True}),
        ({"nullable7": "on"}, "member", {"kind": "boolean", "nullable": True}),
    ],
)  # fmt: skip
def test_what_is_typed_is_written(session, fields, name, entry):
    assert saved(session, **fields)["columns"][name] == entry


def test_unit_rows_weight_and_missing_texts(session):
    assert saved(session, max_rows="7")["unit"] == {"column": "person", "max_rows": 7}
    assert "unit" not in saved(session, unit="")
    changed = saved(session, unit="grade", max_rows="2")
    assert (changed["unit"]["column"], changed["columns"]["grade"]) == ("grade", "identifier")
    assert saved(session, rows="1000")["rows"] == 1000
    assert "rows" not in saved(session, rows="")
    changed = saved(session, weight="wage", most_weight="150")
    assert (changed["weight"], changed["columns"]["wage"]) == ({"column": "wage", "upper": 150}, "identifier")
    assert saved(session, missing="NA, ?")["missing"] == ["", "NA", "?"]


def test_rules_are_ticked_and_those_of_hidden_columns_go(session):
    assert "rules" not in saved(session, rule0="") or saved(session)["rules"] == []
    session.undo()
    assert saved(session)["rules"] == [{"order": ["born", "leaves"]}]
    session._suggested = [{"order": ["born", "day"]}]
    changed = saved(session, rule1="on", lower8="1900-01-01", upper8="2024-12-31", resolution8="day")
    assert changed["rules"] == [{"order": ["born", "leaves"]}, {"order": ["born", "day"]}]


def test_what_was_read_off_the_records_stays_so_beside_another_change(tmp_path, table):
    folder = tmp_path / "studio"
    folder.mkdir()
    text = """\
rows: 400
columns:
  age: {kind: integer, lower: 17, upper: 90, source: data}
  day: {kind: datetime, lower: 2020-01-01, upper: 2024-12-31, source: {upper: data}}
  state: {kind: categorical, categories: [a, b], source: data}
"""
    (folder / "schema.yaml").write_text(text)
    session = StudioSession(folder, str(table))
    saved(session, nullable0="on", nullable1="on", nullable2="on")
    assert read_off(session.schema()) == (
        "'age' (lower, upper)", "'day' (upper)", "'state' (categories)",
    )  # fmt: skip
    saved(session, upper0="120")
    assert "'age' (lower)" in read_off(session.schema())


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"upper1": "old"}, "upper1", "Expected a number"),
        ({"upper1": ""}, "upper1", "Expected a bound here"),
        ({"lower1": "130"}, "lower1", "lower"),
        ({"lower4": "yesterday"}, "lower4", "lower"),
        ({"labels3": ""}, "labels3", "in their order"),
        ({"listed2": "iso-4217"}, "listed2", "got both"),
        ({"labels2": "", "listed2": "iso-nothing"}, "labels2", "list"),
        ({"labels2": "", "listed2": "gone.csv#code"}, "labels2", "gone.csv"),
        ({"max_rows": "few"}, "max_rows", "most rows"),
        ({"max_rows": "0"}, "form", "max_rows"),
        ({"rows": "many"}, "rows", "whole number"),
        ({"weight": "wage"}, "most_weight", "bound"),
        ({"kind9": "nonsense"}, "kind9", "kind"),
    ],
)
def test_what_is_wrong_is_said_of_its_field_and_nothing_is_written(session, fields, field, message):
    faults = refused(session, **fields)
    assert list(faults) == [field]
    assert message in faults[field]


def test_all_that_is_wrong_is_said_at_once(session):
    assert set(refused(session, upper1="old", rows="many", labels3="")) == {"upper1", "rows", "labels3"}


def test_a_file_that_was_changed_meanwhile_is_not_overwritten(session):
    form = session.form()
    session.schema_path.write_text(DOCUMENT.replace("400", "500"))
    assert "changed meanwhile" in session.save(form | {"rows": "600"})["form"]
    assert session.document()["rows"] == 500


def test_changes_are_taken_back_one_by_one(session):
    saved(session, rows="500")
    saved(session, rows="600")
    session.undo()
    assert session.document()["rows"] == 500
    session.undo()
    assert session.text() == DOCUMENT
    session.undo()
    assert session.text() == DOCUMENT
    assert not session.can_undo


def test_a_draft_that_comes_back_is_its_owner_s_alone(tmp_path, table):
    session = given_word(StudioSession(tmp_path / "studio", str(table)))
    assert "draft" not in session.document()
    session.undo()
    assert session.schema().draft
    assert session.schema_path.stat().st_mode & 0o077 == 0


def test_the_page_holds_the_fields_of_the_schema(holder, studio, table):
    holder.ask("POST", "/", {"data": str(table)})
    studio._session.schema_path.write_text(DOCUMENT)
    form = {key: text for key, text in schema_form(holder).items() if text}
    assert form == studio._session.form()


def test_a_wrong_answer_stays_on_the_form_beside_its_field(holder, studio, table):
    holder.ask("POST", "/", {"data": str(table)})
    before = studio._session.schema_path.read_bytes()
    typed = schema_form(holder) | {
        "hidden0": "",
        "kind0": "integer",
        "lower0": "young",
        "upper0": "90",
        "rows": "400",
        "public": "on",
    }
    answer, page = holder.ask("POST", "/questions", typed)
    assert answer.status == 400
    assert studio._session.schema_path.read_bytes() == before
    for field in ('value="young"', 'value="400"', 'id="fault-lower0"', 'aria-describedby="fault-lower0"'):
        assert field in page
    assert '<a href="#lower0">age</a>' in page


def test_rules_of_the_records_are_shown_and_not_written(holder, studio, tmp_path):
    table = tmp_path / "days.csv"
    rows = "".join(f"2024-01-{1 + i % 20:02d},2024-01-{1 + i % 20 + i % 7:02d},{i % 50}\n" for i in range(400))
    table.write_text(f"start,end,age\n{rows}")
    holder.ask("POST", "/", {"data": str(table)})
    form = {key: text for key, text in schema_form(holder).items() if not key.startswith("rule")}
    answer, text = holder.ask("POST", "/questions", form | {"act": "rules"})
    assert answer.status == 303, text
    _, page = holder.ask("GET", "/questions")
    assert "order: [start, end]" in page.split("<aside")[0]
    assert "rule0" not in schema_form(holder)
    assert "rules" not in studio._session.document() or not studio._session.document()["rules"]
    assert holder.ask("POST", "/questions", schema_form(holder) | {"rule0": "on"})[0].status == 303
    assert studio._session.document()["rules"] == [{"order": ["start", "end"]}]
    assert holder.ask("POST", "/undo")[0].status == 303
    assert not studio._session.document().get("rules")


def test_a_table_is_chosen_among_the_files_of_a_folder(holder, studio, table, tmp_path):
    (tmp_path / "notes.md").write_text("none")
    (tmp_path / ".secret.csv").write_text("a\n1\n")
    assert holder.ask("POST", "/folder", {"folder": str(tmp_path)})[0].headers["location"] == "/"
    _, page = holder.ask("GET", "/")
    assert re.findall(r'name="data" value="([^"]*)"', html.unescape(page)) == [str(table)]
    assert "notes.md" not in page
    assert ".secret" not in page
    answer, page = holder.ask("POST", "/folder", {"folder": str(tmp_path / "gone")})
    assert answer.status == 400
    assert holder.ask("POST", "/", {"data": str(table)})[0].headers["location"] == "/questions"
