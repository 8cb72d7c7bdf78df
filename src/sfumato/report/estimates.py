"""Intervals and answers on the page: what a release tells of its records, how surely, and what it does not.

All are functions of the release: nothing is read but its noisy measurements, whose noise is public.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sfumato.columns.dates import DateTime
from sfumato.columns.facts import grouped
from sfumato.columns.kind import TabularKind
from sfumato.errors import EstimateError
from sfumato.evaluate.fidelity import bin_codes
from sfumato.inference.answer_batches import bar_ends
from sfumato.inference.answers import MOST_WORK, answers
from sfumato.inference.associations import association, number_of_pairs
from sfumato.inference.question_table import BY_KIND
from sfumato.inference.questions import Questions
from sfumato.inference.result_cards import records_of
from sfumato.inference.set_questions import SetQuestions, set_answers
from sfumato.inference.times import shown
from sfumato.release.model import ReleaseValue
from sfumato.schema.set_columns import itemised, sets_alone

LEVEL = 0.95
MOST_COLUMNS = 40
"""Columns with intervals, and in the list of answers: each takes up to a second."""
LISTED_PAIRS = 60
MOST_ANSWERS = 300
_MOST_WORK = 0.25 * MOST_WORK  # each pair is asked once more how it goes together, and the page has more than the list
_TARGET = "table"


@dataclass(frozen=True, slots=True)
class PairLine:
    """A pair of columns: how they go together, and the ends of the interval, all in [-1, 1]."""

    names: tuple[str, str]
    measure: str
    value: float
    low: float
    high: float

    @property
    def stands_out(self) -> bool:
        """Whether the interval is beyond 0: more was measured than noise."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """A kind of question: how many are answered, typical errors, an example, and reasons why not."""

    question: str
    answered: str
    typical: str
    why: tuple[str, ...]


class Ends:
    """Ends of the intervals of a column's bars: what the records' own shares may have been."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        released = list(itemised(questions.measured.release.schema))
        self._names = frozenset(released[:MOST_COLUMNS]) - questions.following

    def __call__(self, name: str, kind: TabularKind, merge: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return both ends for the n bars that bins are merged to by `merge`, NaN where there is none.

        None for a column of which nothing was measured, or that is beyond the page's limit.
        """
        if name not in self._names:
            return None
        first, last = (merge[bin_codes(kind, codes)] for codes in self._codes_of_cells(name))
        return bar_ends(self._questions, name, first, last, n, target=_TARGET, level=LEVEL)

    def _codes_of_cells(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes of the first and the last value of each cell of a column."""
        column = self._questions.measured.column(name)
        if column.edges is None or column.steps is None:
            codes = np.arange(column.n_cells, dtype=np.int32)
            return codes, codes
        ends = column.steps.codes(column.edges[:-1]), column.steps.codes(column.edges[1:] - 1)
        missing = np.full(column.n_cells - (len(column.edges) - 1), np.nan)
        return np.append(ends[0], missing), np.append(ends[1], missing)


def estimates_of(release: ReleaseValue) -> dict[str, Any]:
    """Return the page's content on estimates: `ends` for its bars, `pair_lines`, `answer_lines` and `answer_rows`.

    Of sets alone only lines and rows; of a release that holds nothing to rest them on, only `no_estimates`, the reason
    in a sentence.

    Raises:
        ReleaseError: its measurements do not fit each other.
    """
    if sets_alone(release.schema):
        return _of_sets(release)
    try:
        questions = Questions(release)
    except EstimateError as error:
        return {"no_estimates": str(error)}
    kinds = {name: kind for name, kind in itemised(release.schema).items() if isinstance(kind, TabularKind)}
    names = list(kinds)
    pairs: list[PairLine] = []
    frame = answers(
        questions, target=_TARGET, most_pairs=LISTED_PAIRS, level=LEVEL, columns=names[:MOST_COLUMNS],
        beside=lambda first, second: pairs.extend(_pair_line(questions, first, second)), most_work=_MOST_WORK,
    )  # fmt: skip
    return {
        "ends": Ends(questions),
        "pair_lines": sorted(pairs, key=lambda line: -abs(line.value)),
        "answers": frame,
        "n_pairs_measured": number_of_pairs(questions),
        **_content(_with_spreads(frame, release)),
        "n_without_bars": max(0, len(names) - MOST_COLUMNS),
    }


def _of_sets(release: ReleaseValue) -> dict[str, Any]:
    try:
        return _content(set_answers(SetQuestions(release), target=_TARGET, level=LEVEL))
    except EstimateError as error:
        return {"no_estimates": str(error)}


def _with_spreads(frame: pd.DataFrame, release: ReleaseValue) -> pd.DataFrame:
    """Return answers with standard deviations of dates in place of variances, which are in squares of days."""
    frame = frame.astype({"value": object, "std_error": object})
    is_date = (frame["kind"] == "variance") & (frame["answered"] == "yes")
    for i in frame.index[is_date & frame["first"].isin(list(release.schema.of_kind(DateTime)))]:
        spread = max(float(frame.loc[i, "value"]), 0.0) ** 0.5  # type: ignore[arg-type]
        if spread:
            frame.loc[i, "std_error"] = pd.Timedelta(float(frame.loc[i, "std_error"]) / (2 * spread), "D")  # type: ignore[arg-type]
            frame.loc[i, "value"] = pd.Timedelta(spread, "D")
    return frame


def _content(frame: pd.DataFrame) -> dict[str, Any]:
    return {"answer_lines": answer_lines(frame), "answer_rows": answer_rows(frame), "n_answers": len(frame)}


def _pair_line(questions: Questions, first: str, second: str) -> Iterator[PairLine]:
    """Yield how two columns go together, unless noise hides it."""
    numeric = [questions.measured.column(name).numeric for name in (first, second)]
    try:
        if all(numeric):
            measure, estimate = "correlation", questions.correlation(first, second, _TARGET)
        else:
            measure = "correlation ratio" if any(numeric) else "Cramér’s V"
            estimate = association(questions, first, second, target=_TARGET)
    except EstimateError:
        return
    yield PairLine((first, second), measure, estimate.value, *estimate.interval(LEVEL))


def answer_lines(frame: pd.DataFrame) -> list[AnswerLine]:
    """Return a line for each kind of question in the list of a release's answers."""
    lines = []
    for kind, question in BY_KIND.items():
        rows = records_of(frame[frame["kind"] == kind])
        if rows:
            some = [row for row in rows if row["answered"] in ("yes", "some")]
            whole = [row for row in rows if row["answered"] == "yes"]
            why = tuple(dict.fromkeys(row["why"] for row in rows if row["why"]))
            lines.append(AnswerLine(question.phrase, _how_many(rows, len(whole), len(some)), _example(some), why))
    return lines


def _how_many(rows: Sequence[dict[str, Any]], whole: int, some: int) -> str:
    if rows[0]["answered"] == "not asked":
        return f"{rows[0]['numbers']} not listed"
    if len(rows) == 1:
        return {"yes": "yes", "no": "no", "some": "in part"}[rows[0]["answered"]]
    part = f", {some - whole} in part" if some > whole else ""
    return f"{whole} of {len(rows)}{part}"


def _example(rows: Sequence[dict[str, Any]]) -> str:
    """Return the first answer with a number, as an example; of shares the median error."""
    if not rows:
        return ""
    if BY_KIND[rows[0]["kind"]].share:
        return f"± {two_digits(100 * float(np.median([row['std_error'] for row in rows])))} percentage points"
    return f"{named(rows[0])}: {answer_text(rows[0])}".removeprefix(": ")


def answer_rows(frame: pd.DataFrame) -> list[tuple[str, str, str, str]]:
    """Return question, columns, whether it is answered and the answer, of the first answers of the list."""
    return [
        (BY_KIND[row["kind"]].phrase, named(row), row["answered"], answer_text(row))
        for row in records_of(frame.head(MOST_ANSWERS))
        if row["first"]
    ]


def named(row: Mapping[str, Any]) -> str:
    """Return the columns of an answer."""
    return ", ".join(name for name in (row["first"], row["second"]) if name)


def answer_text(row: Mapping[str, Any]) -> str:
    """Return a number, or a date, with its standard error; of several the error alone."""
    value, error = row["value"], row["std_error"]
    if pd.isna(error):
        return ""
    if isinstance(error, pd.Timedelta):
        prefix = "standard deviation " if isinstance(value, pd.Timedelta) else ""
        return f"{prefix}{'' if pd.isna(value) else shown(value, error=error)} ± {shown(error, 2)}".strip()
    return f"± {two_digits(error)}" if pd.isna(value) else plus_minus(value, error)


def plus_minus(value: float, error: float) -> str:
    """Return a number with as many places as its standard error has in two digits."""
    if not error > 0:
        return f"{value:.6g} ± 0"
    places = 1 - int(np.floor(np.log10(error)))
    if abs(value) >= 1e9 or places > 9:
        return f"{value:.4g} ± {error:.2g}"
    return f"{grouped(round(value, places), f'.{max(places, 0)}f')} ± {two_digits(error)}"


def two_digits(error: float) -> str:
    """Return a standard error in two digits, without an exponent where that is short."""
    if not error > 0:
        return "0"
    places = 1 - int(np.floor(np.log10(error)))
    return f"{error:.2g}" if error >= 1e9 or places > 9 else grouped(round(error, places), f".{max(places, 0)}f")
