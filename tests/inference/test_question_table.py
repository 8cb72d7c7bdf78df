"""One table of questions: each has its method, its command, its line of the list, its phrase and its documentation."""

import inspect
from pathlib import Path

import pytest

from sfumato import Release
from sfumato.inference.answers import TableLister
from sfumato.inference.question_table import BY_KIND, BY_NAME, QUESTIONS, questions_about
from sfumato.inference.set_questions import SetLister

PAGE = Path(__file__).parents[2] / "docs" / "inference.md"


@pytest.mark.parametrize("name", BY_NAME)
def test_a_question_by_name_is_a_method_and_documented(name: str) -> None:
    question = BY_NAME[name]
    parameters = inspect.signature(getattr(Release, name)).parameters
    assert ("by" in parameters) == question.by
    assert "target" in parameters
    row = f"| `{question.form}` | `release.{name}` | {question.phrase} | {'yes' if question.by else 'no'} |"
    assert row in PAGE.read_text(encoding="utf-8")


def test_a_listed_question_has_a_phrase_and_one_way_to_its_line() -> None:
    assert len(BY_KIND) == len([question for question in QUESTIONS if question.kind])
    for question in BY_KIND.values():
        assert question.phrase
        if question.of:
            assert (question.ask is None) != (question.several == "")
        if question.several:
            lister = SetLister if "sets alone" in question.of else TableLister
            assert callable(getattr(lister, f"_{question.several}"))


def test_columns_decide_which_questions_are_listed() -> None:
    number, two = frozenset({"number", "nullable"}), frozenset({"label", "two labels"})
    assert [question.kind for question in questions_about(number)] == ["mean", "median", "variance", "missing"]
    assert [question.kind for question in questions_about(two)] == ["share"]
    assert [question.kind for question in questions_about(number, number)] == ["correlation", "ols"]
    assert [question.kind for question in questions_about(two, number)] == ["logit"]
    assert [question.kind for question in questions_about(number, two)] == ["mean by"]
    assert [question.kind for question in questions_about(frozenset({"set"}))] == ["set size"]
    alone = questions_about(frozenset({"set", "sets alone"}))
    assert [question.kind for question in alone] == ["set size", "items", "pairs of items"]
