"""`schema review`: asked on a terminal, answered by a file or a pipe."""

import io
import json
from pathlib import Path

import pytest
import yaml

from sfumato.cli import data_commands
from sfumato.schema.open_schema import OpenSchema

TEXT = """\
# a comment
draft: true
columns:
  age: {kind: integer, lower: 18, upper: 91}
  sex: {kind: categorical, categories: [f, m]}
"""
REVIEW = ("schema", "review", "draft.yaml")


@pytest.fixture(autouse=True)
def draft(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("draft.yaml").write_text(TEXT, encoding="utf-8")


def test_the_questions_for_a_machine(call):
    result = call(*REVIEW, "--json")
    assert [question["key"] for question in result.json["questions"]] == ["unit", "column age", "missing", "public"]
    assert [question["now"] for question in result.json["questions"][:2]] == ["row", "18 to 91"]
    assert result.json["private"] is False
    assert Path("draft.yaml").read_text(encoding="utf-8") == TEXT


@pytest.mark.parametrize("form", [yaml.safe_dump, json.dumps])
def test_answers_of_a_file(call, form):
    Path("answers").write_text(form({"column age": "0 to 120", "public": "yes"}), encoding="utf-8")
    result = call(*REVIEW, "--answers", "answers", "--out", "schema.yaml")
    assert (result.code, result.out.strip().splitlines()[-1]) == (0, "Next: sfumato schema check schema.yaml")
    schema = OpenSchema.load("schema.yaml")
    assert (schema.columns["age"].upper, schema.draft) == (120, False)


def test_answers_of_a_pipe_replace_the_draft_itself(call, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("public: true\n"))
    assert call(*REVIEW, "--answers", "-", "--out", "draft.yaml").code == 2
    assert Path("draft.yaml").read_text(encoding="utf-8") == TEXT
    monkeypatch.setattr("sys.stdin", io.StringIO("public: true\n"))
    assert call(*REVIEW, "--answers", "-", "--out", "draft.yaml", "--overwrite").code == 0
    assert OpenSchema.load("draft.yaml").draft is False


def test_answers_of_a_terminal(call, monkeypatch):
    given = iter(["row", "0 to 120", "keep", "no"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(data_commands.typer, "prompt", lambda *_, **__: next(given))
    result = call(*REVIEW, "--out", "schema.json")
    assert result.code == 0
    assert "2 of 4. Which bounds of 'age' are public?" in result.out
    assert "still a draft" in result.out
    assert OpenSchema.load("schema.json").columns["age"].lower == 0
    assert OpenSchema.load("schema.json").draft is True


@pytest.mark.parametrize(
    ("answers", "fault"),
    [
        ("column age: 120 to 0", "lower <= upper"),
        ("column sex: yes", "Expected answers to"),
        ("public: [yes]", "Put it in quotes"),
        ("- public", "map the keys of questions"),
        ("public: yes\npublic: no", "a key given twice"),
    ],
)
def test_wrong_answers_write_nothing(call, answers, fault):
    Path("answers").write_text(answers, encoding="utf-8")
    result = call(*REVIEW, "--answers", "answers", "--out", "draft.yaml", "--overwrite")
    assert result.code == 2
    assert fault in result.err
    assert Path("draft.yaml").read_text(encoding="utf-8") == TEXT


def test_calls_that_cannot_be_meant(call):
    assert "got neither" in call(*REVIEW).err
    assert "got both" in call(*REVIEW, "--json", "--out", "s.yaml").err
    assert "the answers of this call" in call(*REVIEW, "--answers", "a", "--out", "a").err


def test_without_a_terminal_answers_are_asked_for(call, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    result = call(*REVIEW, "--out", "schema.yaml")
    assert result.code == 2
    assert "Pass --answers FILE" in result.err


def test_paths_have_to_hold_from_the_new_place(call):
    Path("codes.csv").write_text("code\nA\nB\n", encoding="utf-8")
    text = "columns:\n  c: {kind: categorical, categories: {file: codes.csv, column: code}}\n"
    Path("draft.yaml").write_text(text, encoding="utf-8")
    Path("answers").write_text("missing: NA", encoding="utf-8")
    Path("there").mkdir()
    assert call(*REVIEW, "--answers", "answers", "--out", "there/schema.yaml").code == 2
    assert call(*REVIEW, "--answers", "answers", "--out", "schema.yaml").code == 0
    assert "file: codes.csv" in Path("schema.yaml").read_text(encoding="utf-8")
