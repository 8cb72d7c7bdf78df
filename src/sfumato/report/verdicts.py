"""Verdicts on a release of a table, use by use, and its ε among those of others: from public figures alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from sfumato.inference.times import figure
from sfumato.report.estimates import PairLine

Word = Literal["good", "with care", "poor", "not measured"]

TABLES, REGRESSIONS = "tables of counts, shares and means", "correlations and regressions"
CLASSIFIER, SOFTWARE = "training a classifier", "testing software"
_FINE_SHARE, _ROUGH_SHARE = 0.01, 0.05  # standard error of a share, or of a mean ÷ the column's deviation
_FINE_CORRELATION, _ROUGH_CORRELATION = 0.02, 0.1
_MOST, _SOME = 0.8, 0.4  # of the questions that have to be answered
_FINE_RATIO = 0.5  # half the interval ÷ value, of what the target goes together with


@dataclass(frozen=True, slots=True)
class UseVerdict:
    """A use, a word on it, and the figures that the word rests on."""

    use: str
    word: Word
    why: str


@dataclass(frozen=True, slots=True)
class Deployment:
    """A data set that was published: what, at which ε, and whom that protects."""

    what: str
    epsilon: float
    unit: str


DEPLOYMENTS = (
    Deployment("Facebook, URLs shared, 2020", 1.45, "most users"),
    Deployment("Google, mobility in the pandemic, 2020", 2.64, "a day of a user"),
    Deployment("LinkedIn, hiring reports, 2020", 4.8, "an event in a month"),
    Deployment("Israel, live births of 2014, synthetic, 2024", 9.98, "a birth"),
    Deployment("IOM and Microsoft, victims of trafficking, synthetic, 2022", 12.0, "a victim"),
    Deployment("US Census 2020, redistricting, persons", 17.14, "a person"),
)
"""From the registry of OpenDP and the papers that docs/choosing_epsilon.md names."""


def verdicts(answers: pd.DataFrame, pairs: Sequence[PairLine], target: str | None, *, rules: bool) -> list[UseVerdict]:
    """Return a verdict for each use.

    Args:
        answers: the answers of the release, as `Release.answers` lists them.
        pairs: of columns that go together, with intervals.
        target: of the fit, if it had one.
        rules: whether the schema has some.
    """
    facts = "types, bounds, labels" + (" and rules" if rules else "")
    return [
        tables_of(answers),
        regressions_of(answers),
        _classifier(pairs, target),
        UseVerdict(SOFTWARE, "good", f"Every row keeps the schema: {facts}."),
    ]


def _word(part: float, error: float, fine: float, rough: float) -> Word:
    if part >= _MOST and error <= fine:
        return "good"
    return "with care" if part >= _SOME and error <= rough else "poor"


def _of(answers: pd.DataFrame, *kinds: str) -> tuple[pd.DataFrame, float]:
    """Return the answers of some kinds, and the part of the questions that have one."""
    rows = answers[answers["kind"].isin(kinds)]
    known = rows[rows["answered"].isin(["yes", "some"])]
    return known, len(known) / max(len(rows), 1)


def tables_of(answers: pd.DataFrame, use: str = TABLES) -> UseVerdict:
    """Return the verdict on shares, counts and means, from the answers of a release."""
    shares, part = _of(answers, "share", "crosstab", "mean")
    errors = shares.loc[shares["kind"] != "mean", "std_error"].astype(float).tolist()
    variance = answers[(answers["kind"] == "variance") & (answers["answered"] == "yes")].set_index("first")["value"]
    for _, row in shares[shares["kind"] == "mean"].iterrows():
        spread = float(variance.get(row["first"], 0.0))
        if spread > 0:
            errors.append(figure(row["std_error"]) / spread**0.5)
    if not errors:
        return UseVerdict(use, "poor", "No share and no mean stands out of the noise.")
    error = float(np.median(errors))
    why = f"The median standard error of a share, or of a mean in deviations of its column, is {error:.2g}"
    return UseVerdict(use, _word(part, error, _FINE_SHARE, _ROUGH_SHARE), f"{why}; {_percent(part)} are answered.")


def regressions_of(answers: pd.DataFrame) -> UseVerdict:
    """Return the verdict on correlations, from the answers of a release."""
    correlations, part = _of(answers, "correlation")
    if not (answers["kind"] == "correlation").any():
        return UseVerdict(REGRESSIONS, "not measured", "There are no two columns of numbers.")
    if correlations.empty:
        return UseVerdict(REGRESSIONS, "poor", "The measurements answer for no correlation.")
    error = float(correlations["std_error"].astype(float).median())
    word = _word(part, error, _FINE_CORRELATION, _ROUGH_CORRELATION)
    why = f"The median standard error of a correlation is {error:.2g}; {_percent(part)} are answered"
    return UseVerdict(
        REGRESSIONS, word, f"{why}. Three columns together were not measured, but for the target of the fit."
    )


def _classifier(pairs: Sequence[PairLine], target: str | None) -> UseVerdict:
    if target is None:
        why = "The fit had no target. Name the column to predict, and fit again."
        return UseVerdict(CLASSIFIER, "not measured", why)
    mine = [pair for pair in pairs if target in pair.names and abs(pair.value) > 0]
    clear = [pair for pair in mine if (pair.high - pair.low) / 2 <= _FINE_RATIO * abs(pair.value)]
    word: Word = "good" if len(clear) >= 3 else "with care" if clear else "poor"
    why = f"Of the columns, {len(clear)} go together with {target} so strongly that noise is small."
    return UseVerdict(CLASSIFIER, word, why)


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def among_others(epsilon: float | None) -> list[tuple[str, float, str, bool]]:
    """Return published ε and this one, smallest first: what, ε, whom it protects, whether it is this one."""
    if epsilon is None:
        return []
    rows: list[tuple[str, float, str, bool]] = [(d.what, d.epsilon, d.unit, False) for d in DEPLOYMENTS]
    return sorted([*rows, ("this release", epsilon, "", True)], key=lambda row: (row[1], not row[3]))
