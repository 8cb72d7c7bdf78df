"""The questions to a release, in one table: methods, list of answers, command and page follow from it.

Imports nothing that computes, so that the help of the command needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Kinds = tuple[str, ...]
"""Columns of a question: of each "number", "label", "two labels", "nullable", "set" or "sets alone"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionKind:
    """One kind of question.

    Attributes:
        name: of the method of a release, and of the command; "" where it has none of its own.
        arguments: of the command, in order: COL is a column, [Q] a number or nothing, COL=LABEL ... labels by column.
        note: of the command's help.
        by: whether it can be asked by the labels of a column.
        kind: in the list of answers; "" for none.
        of: columns that it is listed of.
        phrase: on the page about a release.
        ask: the call that the list makes for one number: of `Questions`, the columns, and the target.
        several: the part of the list that makes its line, where that has several numbers.
        share: whether errors are shown in percentage points.
    """

    name: str = ""
    arguments: str = ""
    note: str = ""
    by: bool = False
    kind: str = ""
    of: Kinds = ()
    phrase: str = ""
    ask: Callable[..., Any] | None = None
    several: str = ""
    share: bool = False

    @property
    def form(self) -> str:
        """The question as the command takes it: `quantile COL [Q]`."""
        return f"{self.name} {self.arguments}"


QUESTIONS: tuple[QuestionKind, ...] = (
    QuestionKind(
        name="count", arguments="[COL=LABEL ...]", kind="rows", phrase="the number of rows",
        ask=lambda asked, target: asked.count({}, target),
    ),
    QuestionKind(
        name="mean", arguments="COL", by=True, kind="mean", of=("number",), phrase="mean of a number",
        ask=lambda asked, name, target: asked.mean(name, None, target),
    ),
    QuestionKind(
        name="quantile", arguments="COL [Q]", by=True, kind="median", of=("number",),
        phrase="median, and other quantiles, of a number",
        ask=lambda asked, name, target: asked.quantile(name, 0.5, None, target),
    ),
    QuestionKind(
        name="variance", arguments="COL", by=True, kind="variance", of=("number",), phrase="variance of a number",
        ask=lambda asked, name, target: asked.variance(name, None, target),
    ),
    QuestionKind(
        name="share", arguments="COL=LABEL ...", by=True, kind="share", of=("label",), phrase="share of each label",
        note="of numbers COL=LOW..HIGH", several="shares", share=True,
    ),
    QuestionKind(
        name="missing", arguments="COL", note="the share of missing cells", by=True, kind="missing", of=("nullable",),
        phrase="share of missing cells", ask=lambda asked, name, target: asked.share({name: None}, None, target),
        share=True,
    ),
    QuestionKind(
        name="set_size", arguments="COL", note="of a column of sets", by=True, kind="set size", of=("set",),
        phrase="mean number of items of a set", ask=lambda asked, name, target: asked.set_size(name, None, target),
    ),
    QuestionKind(
        kind="items", of=("sets alone",), phrase="share of the sets that hold an item", several="items", share=True
    ),
    QuestionKind(
        kind="pairs of items", of=("sets alone",), phrase="share of the sets that hold two items", several="item_pairs",
        share=True,
    ),
    QuestionKind(kind="mean by", of=("number", "label"), phrase="mean of a number by labels", several="means"),
    QuestionKind(
        name="crosstab", arguments="COL COL", kind="crosstab", of=("label", "label"),
        phrase="cross-table of two columns of labels, shares of cells", several="crosstab", share=True,
    ),
    QuestionKind(
        name="correlation", arguments="COL COL", kind="correlation", of=("number", "number"),
        phrase="correlation of two numbers",
        ask=lambda asked, first, second, target: asked.correlation(first, second, target),
    ),
    QuestionKind(name="correlations", arguments="COL COL ...", phrase="correlations of each two of some numbers"),
    QuestionKind(name="anova", arguments="COL COL", phrase="test that a number has the same mean for all labels"),
    QuestionKind(name="independence", arguments="COL COL", phrase="test that two columns of labels are independent"),
    QuestionKind(kind="ols", of=("number", "number"), phrase="least squares of one number on another", several="slope"),
    QuestionKind(
        kind="logit", of=("two labels", "number"), phrase="logistic regression of a label on a number", several="slope"
    ),
    QuestionKind(kind="ols by class", phrase="regressions by the target of the fit"),
    QuestionKind(kind="column", phrase="columns that follow from others"),
    QuestionKind(kind="other columns", phrase="the other columns"),
    QuestionKind(kind="other pairs", phrase="the other pairs"),
    QuestionKind(kind="three columns", phrase="three columns together"),
    QuestionKind(kind="single records", phrase="single records, extremes"),
)  # fmt: skip
"""In the order of the page."""

BY_NAME: Mapping[str, QuestionKind] = {question.name: question for question in QUESTIONS if question.name}
BY_KIND: Mapping[str, QuestionKind] = {question.kind: question for question in QUESTIONS if question.kind}


def forms() -> str:
    """The questions as the command takes them, after a formula."""
    notes = [f"{question.form}{f' ({question.note})' if question.note else ''}" for question in BY_NAME.values()]
    return "; ".join(notes)


def questions_about(*kinds: frozenset[str]) -> list[QuestionKind]:
    """The questions that are listed of columns of such kinds, in this order."""
    return [
        question
        for question in QUESTIONS
        if len(question.of) == len(kinds) and all(one in have for one, have in zip(question.of, kinds, strict=True))
    ]
