"""How wide the answers to named questions will be, from public facts alone.

A regression's intervals are compared with those of the records themselves: noise adds to the variance of drawing them
about 7·k·σ²/(w²·n·m^¼), with k terms, w² the question's share, σ the stage's noise, and m regressions whose scores are
clipped as one vector; n rows with weights are as n·(mean ÷ bound)². Terms of rare labels and long tails take more, and
what noise hides is allowed for beside. Of a table's cells the noise is known exactly. A correlation of pairs of rows of
a unit has the forecast of its seven terms, as units are aimed at that are less alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.errors import ConfigError
from sfumato.fitting.purposes import Facts
from sfumato.maths.constants import QUESTIONS
from sfumato.measurements.score_query import EstimatingEquation, ScoreQuery
from sfumato.methods.tables.question_stage import NAME, planned_parts
from sfumato.methods.tables.second_stage import POOLED
from sfumato.methods.tables.settings import TableFacts, entry_noise, forecast_rows, forecast_weights
from sfumato.privacy.plan import Plan
from sfumato.schema.named_questions import read_question


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


def noise_for_answer(forecasts: Sequence[QuestionForecast], question: str, target_error: float) -> float:
    """How many times the noise of some forecasts gives a question's answer the error `target_error`.

    Args:
        forecasts: of a plan.
        question: as it may be written.
        target_error: width ÷ that of the records' own, or records of a cell.

    Raises:
        ConfigError: the question is none of these, or no noise makes so small an interval.
    """
    wanted = read_question(question)
    forecast = next((one for one in forecasts if one.question == wanted.words), None)
    if forecast is None:
        named = ", ".join(repr(one.question) for one in forecasts) or "none"
        raise ConfigError(f"Expected one of the named questions, {named}, got {wanted.words!r}. Name it.")
    if forecast.cell:
        return target_error / forecast.cell
    if target_error <= 1:
        raise ConfigError(
            f"Expected a width above 1, times that of the records' own intervals, for {wanted.words!r}, got "
            f"{target_error=}."
        )
    return float(np.sqrt((target_error**2 - 1) / (forecast.width**2 - 1)))


def question_forecasts(plan: Plan, facts: Facts, stage: str = NAME) -> list[QuestionForecast]:
    """Return what to expect of each named question, which a stage measures."""
    if not facts.described.questions:
        return []
    noise = plan[stage].noise_multiplier * facts.unit_rows
    bound = forecast_weights(facts)[1]
    alone = forecast_rows(facts) ** 2 / facts.rows  # rows without weights that are beside as much noise
    entry = np.inf
    if not facts.schema.linked:  # noise of an entry, had the second moments the questions' part of the budget, too
        share = 1 + (plan[POOLED].noise_multiplier / plan[NAME].noise_multiplier) ** 2
        entry = entry_noise(plan[POOLED].noise_multiplier / np.sqrt(share), TableFacts.of(facts), forecast_rows(facts))
    forecasts: dict[str, QuestionForecast] = {}
    for group, part in planned_parts(facts):
        if not isinstance(part.query, ScoreQuery):  # of a mean by groups their sizes are no more than a part
            words = group[0].question.words
            forecasts.setdefault(words, QuestionForecast(words, cell=noise * bound / part.weight))
            continue
        whole = sum(one.share for one in group)
        length = QUESTIONS.forecast_length / len(group) ** QUESTIONS.forecast_together
        for one, equation in zip(group, part.query.equations, strict=True):
            words, terms = one.question.words, equation.coefficients.size
            if words in forecasts and not forecasts[words].cell:
                continue  # a second part of scores, as the spread of units, is for the interval
            width = np.sqrt(1 + length * terms * whole / one.share * (noise / part.weight) ** 2 / alone)
            unnamed = np.sqrt(1 + QUESTIONS.forecast_pairs * entry**2 * facts.rows) if _of_pairs(equation) else np.inf
            forecasts[words] = QuestionForecast(words, float(width), float(unnamed))
    return [forecasts[words] for words in dict.fromkeys(question.words for question in facts.described.questions)]


def _of_pairs(equation: EstimatingEquation) -> bool:
    """Whether second moments answer a regression: no product of two of its terms is of three columns."""
    sources = [frozenset(np.flatnonzero(line).tolist()) for line in equation.products]
    return all(len(one | other) <= 2 for one, other in itertools.combinations_with_replacement(sources, 2))


def forecast_words(plan: Plan, facts: Facts, stage: str = NAME) -> Mapping[str, str]:
    """Return the stage's forecast in words; none without named questions."""
    words = "; ".join(forecast.words for forecast in question_forecasts(plan, facts, stage))
    return {stage: words + forecast_weights(facts)[2]} if words else {}
