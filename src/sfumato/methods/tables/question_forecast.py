"""How wide the answers to named questions will be, from public facts alone.

A regression's intervals are compared with those of the records themselves: noise adds to the variance of drawing them
about 7·k·σ²/(w²·n), with k terms, weight w of the question's scores, and σ the stage's noise. Terms of rare labels and
long tails take more, and what noise hides is allowed for beside. Of a table's cells the noise is known exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.fitting.facts import Facts
from sfumato.maths.constants import QUESTIONS
from sfumato.measurements.score_query import ScoreQuery
from sfumato.methods.tables.question_stage import NAME, planned_parts
from sfumato.methods.tables.recipe import TableFacts, counted_rows, entry_noise
from sfumato.methods.tables.second_stage import MOMENTS
from sfumato.privacy.plan import Plan


@dataclass(frozen=True, slots=True)
class QuestionForecast:
    """What to expect of one answer.

    Attributes:
        question: as it may be written.
        width: of its intervals ÷ those of the records themselves; 0 of tables.
        unnamed: the same if it were not named; infinite where there would be no answer.
        cell: standard error by noise of a table's cell, in records; 0 of regressions.
    """

    question: str
    width: float = 0.0
    unnamed: float = float("inf")
    cell: float = 0.0

    @property
    def words(self) -> str:
        """The forecast in a line."""
        without = "no answer" if np.isinf(self.unnamed) else f"{self.unnamed:.1f} times"
        if self.cell:
            return f"{self.question}: ±{self.cell:.2g} records in each cell"
        return f"{self.question}: intervals {self.width:.1f} times as wide as the records' own ({without} unnamed)"


def question_forecasts(plan: Plan, facts: Facts) -> list[QuestionForecast]:
    """Return what to expect of each named question."""
    noise = plan[NAME].noise_multiplier * facts.unit_rows
    n = counted_rows(facts)
    sizes = TableFacts.of(facts)
    # the second moments would have the questions' part of the budget, too
    share = 1 + (plan[MOMENTS].noise_multiplier / plan[NAME].noise_multiplier) ** 2
    entry = entry_noise(plan[MOMENTS].noise_multiplier / np.sqrt(share), sizes, n)
    forecasts: dict[str, QuestionForecast] = {}
    for words, part in planned_parts(facts):
        if isinstance(part.query, ScoreQuery):
            width = np.sqrt(1 + QUESTIONS.forecast_length * part.query.shape[0] * (noise / part.weight) ** 2 / n)
            unnamed = np.sqrt(1 + QUESTIONS.forecast_pairs * entry**2 * n) if _of_pairs(part.query) else np.inf
            forecasts[words] = QuestionForecast(words, float(width), float(unnamed))
        elif words not in forecasts:  # of a mean by groups their sizes are no more than a part
            forecasts[words] = QuestionForecast(words, cell=noise / part.weight)
    return list(forecasts.values())


def _of_pairs(query: ScoreQuery) -> bool:
    """Whether second moments answer a regression: no product of two of its terms is of three columns."""
    sources = [frozenset(np.flatnonzero(line).tolist()) for line in query.products]
    return all(len(one | other) <= 2 for one, other in itertools.combinations_with_replacement(sources, 2))


def forecast_words(plan: Plan, facts: Facts) -> Mapping[str, str]:
    """Return the stage's forecast in words; none without named questions."""
    if not facts.described.questions:
        return {}
    return {NAME: "; ".join(forecast.words for forecast in question_forecasts(plan, facts))}
