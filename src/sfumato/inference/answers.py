"""The answers of a release, and its refusals: every kind of question, of every column and of the strongest pairs.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from math import inf
from typing import Any, Generic, Literal, TypeVar, cast

import numpy as np
import pandas as pd

from sfumato.columns.kinds import DateTime
from sfumato.errors import EstimateError, require_flag, require_open_unit
from sfumato.inference.answer_batches import Batch, of_labelled, ratios, shares
from sfumato.inference.associations import number_of_pairs, ranked_pairs, strongest
from sfumato.inference.calibrated_rows import AS_CLIPPED
from sfumato.inference.calibration import Target
from sfumato.inference.estimate import Estimate
from sfumato.inference.families import FAMILIES, LINEAR
from sfumato.inference.formulas import Design
from sfumato.inference.joint_errors import each_level
from sfumato.inference.noisy_totals import FEWEST_ROWS
from sfumato.inference.question_table import QUESTIONS, QuestionKind, questions_about
from sfumato.inference.questions import Questions
from sfumato.inference.regression import fit_design
from sfumato.inference.regression_results import Regression, Regressions
from sfumato.inference.times import Value, length
from sfumato.maths.arrays import sparse_indicators
from sfumato.schema.set_columns import itemised

MOST_PAIRS = 60
MOST_WORK = 2_500_000
"""Work on columns and pairs that are asked of: a second or two."""
_OF_COLUMNS = 0.5  # of it, after which no further column is asked of by itself
_DRAWS = 250_000  # work of a regression that is no straight line
_MOST_CELLS = 400  # of a cross-table of so many labels that some are one
_SET = frozenset({"set"})
_BY_CLASS = 3  # pairs that regressions by class are listed of: each takes a second
_NO_CLASS = "The fit had no target: fit again with target= (--target) to ask for regressions by it."
_HIDDEN = "Noise hides how many rows there are."
_UNSAID = "The measurements say too little of it."
_NO_THREE = (
    "No three columns were measured together, but two numbers and a target of few labels: products such as y ~ x * u "
    "are refused. Replicates have them as the model guesses."
)
_NO_RECORDS = "Single records, the largest and the smallest value, and the order of rows were not measured."
_FOLLOWS = "It follows from others by a rule: ask of its mean, or of the share of a label, by itself."
_CLIPPED = frozenset({"median", "variance", "correlation", "ols", "logit"})
_LATER = "The list is kept short: ask of one by itself."
_WEAKER = "Under the model they go together less than those above; ask of one by itself, or list more pairs."

Answered = Literal["yes", "some", "no", "not asked"]
Q = TypeVar("Q")


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """A line of the list: one kind of question, of one column or pair.

    Attributes:
        kind: of the question, of `QUESTIONS`.
        first: the column; of a regression the left side.
        second: the other one of a pair.
        answered: "yes", "no", or "some" of its numbers; "not asked" of what was left out of the list.
        numbers: how many numbers the answer has.
        value: the number if it is one; of dates a moment, and its error a time.
        std_error: its standard error; of several the median of those that are answered.
        low: end of its interval, if it is one.
        high: the other end.
        why: where the answer is no; or of what it is, if not of the columns as they are.
        interval: of another level, if it is one number.
    """

    kind: str
    first: str = ""
    second: str = ""
    answered: Answered = "yes"
    numbers: int = 1
    value: Value = np.nan
    std_error: Value = np.nan
    low: Value = np.nan
    high: Value = np.nan
    why: str = ""
    interval: Callable[[float], Sequence[Value]] | None = None

    def row(self) -> dict[str, Any]:
        """Return the line as the list shows it."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "interval"}


class Answers(pd.DataFrame):
    """The frame that `answers` returns: it shows itself as a card; what is made of it is a plain frame."""

    def _repr_html_(self) -> str:
        from sfumato.inference.result_cards import answers_card

        return answers_card(self)


def answers(
    questions: Questions, *, target: str = "population", most_pairs: int | None = MOST_PAIRS, level: float = 0.95,
    columns: Sequence[str] | None = None, simultaneous: bool = False,
    beside: Callable[[str, str], object] | None = None, most_work: float = MOST_WORK,
) -> pd.DataFrame:  # fmt: skip
    """Return a row for each question, with the fields of `AnswerLine` as columns; see `Release.answers`.

    Args:
        questions: to a release.
        target: as `Release.answers`.
        most_pairs: likewise.
        level: likewise.
        columns: those that are asked of by themselves, by default all.
        simultaneous: as `Release.answers`.
        beside: what else is asked of each pair, while its rows are calibrated.
        most_work: on columns and pairs, as `Calibration.work` counts it.
    """
    lister = TableLister(questions, target, level, simultaneous=simultaneous)
    schema, ranked = questions.measured.release.schema, ranked_pairs(questions)
    lines = [lister.line(question) for question in questions_about() if question.ask]
    names = list(itemised(schema) if columns is None else columns)
    own, n_columns, left = lister.within(_OF_COLUMNS * most_work, lister.column, [(name,) for name in names])
    lines += own
    if len(names) > n_columns:
        lines.append(AnswerLine("other columns", answered="not asked", numbers=len(names) - n_columns, why=_LATER))
    for name in schema.set_columns:
        lines += [lister.line(question, name) for question in questions_about(_SET)]

    def pair(first: str, second: str) -> list[AnswerLine]:
        own = list(lister.pair(first, second))
        if beside is not None:
            beside(first, second)
        return own

    pairs = strongest(ranked, most_pairs)
    work = inf if most_pairs is None else left + (1 - _OF_COLUMNS) * most_work
    of_pairs, n_pairs, _ = lister.within(work, pair, pairs)
    lines += of_pairs
    if number_of_pairs(questions) > n_pairs:
        left = number_of_pairs(questions) - n_pairs
        lines.append(AnswerLine("other pairs", answered="not asked", numbers=left, why=_WEAKER))
    lines += lister.by_class(pairs[:n_pairs])
    return lister.table(lines, _NO_THREE, _NO_RECORDS)


class Lister(Generic[Q]):
    """Lines about questions with one number, of any release."""

    def __init__(self, questions: Q, target: str, level: float, *, simultaneous: bool) -> None:
        self.target: Target = cast("Target", target)  # which the first question checks
        self.questions, self.level, self.simultaneous = questions, require_open_unit(level=level), simultaneous
        require_flag(simultaneous=simultaneous)

    def table(self, lines: list[AnswerLine], no_three: str, no_records: str) -> Answers:
        """Return lines, after them that no release answers three columns together, or single records.

        If `simultaneous`, their intervals all hold at once with the chance of the level, whatever their joint law.
        """
        if self.simultaneous:
            own = each_level(self.level, sum(line.interval is not None for line in lines))
            ends = [(line.low, line.high) if line.interval is None else line.interval(own) for line in lines]
            lines = [replace(line, low=low, high=high) for line, (low, high) in zip(lines, ends, strict=True)]
        refused = [("three columns", no_three), ("single records", no_records)]
        lines = [*lines, *(AnswerLine(question, answered="no", numbers=0, why=why) for question, why in refused)]
        return Answers([line.row() for line in lines])

    def line(self, question: QuestionKind, *columns: str) -> AnswerLine:
        """Return the line of a question about columns in its own order."""
        part = getattr(self, f"_{question.several}") if question.several else partial(self._one, question)
        return self.answer(question.kind, part, *columns)

    def answer(self, kind: str, part: Callable[..., AnswerLine], *columns: str) -> AnswerLine:
        """Return a line; where the measurements do not answer, one that says why."""
        try:
            return part(kind, *columns)
        except EstimateError as error:
            return AnswerLine(kind, *columns, answered="no", why=str(error))

    def _one(self, question: QuestionKind, kind: str, *columns: str) -> AnswerLine:
        assert question.ask is not None
        estimate: Estimate = question.ask(self.questions, *columns, self.target)
        low, high = estimate.interval(self.level)
        return AnswerLine(
            kind, *columns, answered="yes", numbers=1, value=estimate.value, std_error=estimate.std_error,
            low=low, high=high, interval=estimate.interval,
        )  # fmt: skip


class TableLister(Lister[Questions]):
    """Lines about columns and pairs of columns of a table."""

    def answer(self, kind: str, part: Callable[..., AnswerLine], *columns: str) -> AnswerLine:
        """Return a line, which says where it is of columns as they were clipped to estimated bounds."""
        line = super().answer(kind, part, *columns)
        if line.answered == "no" or kind not in _CLIPPED or not self.questions.clipped(columns):
            return line
        return replace(line, why=f"{line.why} {AS_CLIPPED}.".lstrip())

    def within(
        self, most: float, ask: Callable[..., Iterable[AnswerLine]], subjects: Sequence[tuple[str, ...]]
    ) -> tuple[list[AnswerLine], int, float]:
        """Return lines about the first of some columns or pairs, how many that are, and the work that is left."""
        lines: list[AnswerLine] = []
        for place, subject in enumerate(subjects):
            if most <= 0:
                return lines, place, 0.0
            own = list(ask(*subject))
            most -= self._work(subject, own)
            lines += own
        return lines, len(subjects), most

    def _work(self, columns: tuple[str, ...], lines: Sequence[AnswerLine]) -> float:
        """Return how much the lines about some columns took, as `Calibration.work`."""
        work = float(_DRAWS * sum(not FAMILIES.get(line.kind, LINEAR).linear for line in lines))
        with suppress(EstimateError):
            work += self.questions.estimator(columns, self.target).calibration.work(sum(line.numbers for line in lines))
        return work

    def several(self, kind: str, batch: Batch, first: str, second: str = "") -> AnswerLine:
        """Return the line of a question with several numbers."""
        n, n_answers = batch.value.size, int(batch.answered.sum())
        why = "" if n_answers == n else (_UNSAID if batch.significant.all() else _HIDDEN)
        error: Value = float(np.median(batch.std_error[batch.answered])) if n_answers else np.nan
        column = self.questions.measured.column(first).kind
        if n_answers and isinstance(column, DateTime):
            error = length(error, column.microseconds)
        answered: Answered = "yes" if n_answers == n else "some" if n_answers else "no"
        return AnswerLine(kind, first, second, answered, n, std_error=error, why=why)

    def _kinds(self, name: str) -> frozenset[str]:
        """Return the kinds of a column, as `QuestionKind.of` has them."""
        kinds = {"nullable"} if self.questions.nullable(name) else set()
        if self.questions.measured.column(name).numeric:
            return frozenset(kinds | {"number"})
        two = len(self.questions.measured.told_apart[name].cat.categories) == 2
        return frozenset(kinds | {"label"} | ({"two labels"} if two else set()))

    def column(self, name: str) -> Iterator[AnswerLine]:
        """Yield what can be asked of one column."""
        if name in self.questions.following:
            yield AnswerLine("column", name, answered="not asked", why=_FOLLOWS)
            return
        for question in questions_about(self._kinds(name)):
            yield self.line(question, name)

    def pair(self, first: str, second: str) -> Iterator[AnswerLine]:
        """Yield what can be asked of two columns together."""
        kinds = {name: self._kinds(name) for name in (first, second)}
        for question in QUESTIONS:
            for one, other in ((first, second), (second, first)):
                if question in questions_about(kinds[one], kinds[other]):
                    yield self.line(question, one, other)
                    break

    def by_class(self, pairs: Sequence[tuple[str, str]]) -> list[AnswerLine]:
        """Return regressions by the target of the fit, of the strongest pairs of numbers."""
        measured = self.questions.measured
        if measured.target is None:
            return [AnswerLine("ols by class", answered="no", numbers=0, why=_NO_CLASS)]
        numbers = [pair for pair in pairs if all(measured.column(name).numeric for name in pair)][:_BY_CLASS]
        return [self.answer("ols by class", partial(self._slope, by=measured.target), *pair) for pair in numbers]

    def _labels(self, name: str) -> tuple[int, np.ndarray]:
        """Return how many levels samples may have, missing last, and the rows' codes: that number of none."""
        codes = self.questions.measured.codes[name].astype(np.int64)
        return self.questions.measured.column(name).shown, codes

    def _shares(self, kind: str, name: str) -> AnswerLine:
        labels, codes = self._labels(name)
        return self.several(kind, shares(self.questions, name, codes, labels, target=self.target), name)

    def _crosstab(self, kind: str, first: str, second: str) -> AnswerLine:
        (n, one), (k, other) = self._labels(first), self._labels(second)
        estimator = self.questions.estimator((first, second), self.target)
        cells = np.where((one < n) & (other < k), one * k + other, n * k)
        # of others the model has hardly a row: nothing above noise was measured of them
        frequent, rows = np.unique(cells, return_counts=True)
        enough = (rows >= FEWEST_ROWS) & (frequent < n * k)
        frequent, rows = frequent[enough], rows[enough]
        apart = [self.questions.measured.apart(name) for name in (first, second)]
        if apart[0].size * apart[1].size < n * k:
            both = np.isin(frequent // k, apart[0]) & np.isin(frequent % k, apart[1])
            commonest = np.argsort(-rows[both], kind="stable")[:_MOST_CELLS]
            frequent = np.sort(frequent[both][commonest])
        wholes = of_labelled(self.questions, (first, second), frequent.size)
        return self.several(kind, ratios(estimator, sparse_indicators(cells, frequent), wholes), first, second)

    def _means(self, kind: str, number: str, label: str) -> AnswerLine:
        n, codes = self._labels(label)
        estimator = self.questions.estimator((number, label), self.target)
        bounds = self.questions.bounds(number)
        values, present = self.questions.numbers(number)
        labels = self.questions.measured.apart(label)
        wholes = sparse_indicators(codes, labels, present)
        means = ratios(estimator, sparse_indicators(codes, labels, values * present), wholes)
        if bounds is not None:
            rows = np.maximum(estimator.calibration.total(wholes), 1.0)
            beyond = [bounds.of_mean(share, groups=True).std_error for share in rows / rows.sum()]
            means = replace(means, std_error=np.hypot(means.std_error, beyond))
        return self.several(kind, means.at(labels, n), number, label)

    def _slope(self, kind: str, left: str, right: str, by: str | None = None) -> AnswerLine:
        """Return the line of a regression of one column on another number."""
        design, formula = self._design(left, right), f"{left} ~ {right}"
        family = FAMILIES.get(kind, LINEAR)
        regression = fit_design(self.questions, design, (left, right), by, self.target, formula, family)
        if isinstance(regression, Regressions):
            whole = len(regression) + len(regression.left_out)
            error = float(np.median([one.bse.iloc[1] for one in regression.values()]))
            answered, why = ("some", _HIDDEN) if regression.left_out else ("yes", "")
            return AnswerLine(kind, left, right, answered, whole, std_error=error, why=why)
        assert isinstance(regression, Regression)
        low, high = regression.conf_int(self.level).iloc[1]
        value, error = float(regression.params.iloc[1]), float(regression.bse.iloc[1])
        ends = lambda level: regression.conf_int(level).iloc[1].tolist()  # noqa: E731
        return AnswerLine(kind, left, right, "yes", 1, value, error, low, high, interval=ends)

    def _design(self, left: str, right: str) -> Design:
        ask = self.questions
        values, right_present = ask.numbers(right)
        if ask.measured.column(left).numeric:
            side, also = ask.numbers(left)
        else:
            codes = ask.measured.codes[left].astype(np.int64)
            side, also = (codes == 1).astype(np.float64), (codes < 2).astype(np.float64)
        both = right_present * also
        design = np.column_stack([both, values * both])
        return Design(side * both, design, ("Intercept", right), both, frozenset({left}), (frozenset({right}),))
