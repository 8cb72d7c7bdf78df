"""The answers of a release of sets alone, and its refusals.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, islice
from typing import cast

import numpy as np
import pandas as pd

from sfumato.errors import require_flag, require_open_unit
from sfumato.inference.answers import AnswerLine, Lister, all_at_once, answer_table
from sfumato.inference.calibration import Target
from sfumato.inference.question_table import BY_KIND, questions_about
from sfumato.inference.set_questions import SetQuestions

ASKED_PAIRS = 500
"""Pairs of items, of those that were counted, by which the list says how sure their shares are."""
_KINDS = frozenset({"set", "sets alone"})
_NO_THREE = "No three items were counted together."
_NO_PAIRS = "Only single items were counted: fit with latent-classes, which counts pairs of frequent ones."
_RARE = "Pairs of rarer items were not counted: noise would hide them."
_UNSAID = "Sets of many items count less, and of some pairs too little was measured."
_NO_RECORDS = "Single sets, the largest one and the order of sets were not measured."


def set_answers(
    questions: SetQuestions, *, target: str = "population", level: float = 0.95, simultaneous: bool = False
) -> pd.DataFrame:
    """Return a row for each question, with the fields of `AnswerLine` as columns; see `Release.answers`."""
    require_open_unit(level=level)
    require_flag(simultaneous=simultaneous)
    lister = SetLister(questions, cast("Target", target), level)  # which the first question checks
    lines = [lister.line(BY_KIND["rows"])]
    lines += [lister.line(question, questions.measured.column.name) for question in questions_about(_KINDS)]
    if simultaneous:
        lines = all_at_once(lines, level)
    return answer_table(lines, _NO_THREE, _NO_RECORDS)


class SetLister(Lister[SetQuestions]):
    """Lines about sets alone."""

    def _items(self, kind: str, name: str) -> AnswerLine:
        codes = range(self.questions.measured.kind.size)
        error = self._error([(code,) for code in islice(codes, ASKED_PAIRS)])
        return AnswerLine(kind, name, numbers=len(codes), std_error=error)

    def _item_pairs(self, kind: str, name: str) -> AnswerLine:
        query, m = self.questions.measured.pair_query, self.questions.measured.kind.size
        whole = m * (m - 1) // 2
        if query is None or query.watched.size < 2:
            return AnswerLine(kind, name, "", "no", whole, why=_NO_PAIRS if query is None else _RARE)
        pairs = list(islice(combinations(query.watched.tolist(), 2), ASKED_PAIRS))
        sure = [pair for pair in pairs if self.questions.knows(pair)]
        if not sure:
            return AnswerLine(kind, name, "", "no", whole, why=_UNSAID)
        every = query.watched.size == m
        why = "" if every and len(sure) == len(pairs) else _RARE if not every else _UNSAID
        return AnswerLine(kind, name, "", "some" if why else "yes", whole, std_error=self._error(sure), why=why)

    def _error(self, questions: Sequence[tuple[int, ...]]) -> float:
        """The median standard error of shares of sets that hold these items."""
        errors = (self.questions.share_of(codes, self.target).std_error for codes in questions)
        return float(np.median(np.array(list(errors), dtype=np.float64)))
