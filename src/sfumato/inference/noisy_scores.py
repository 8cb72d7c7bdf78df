"""Noisy scores of a regression that a release measured.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.inference.formulas import ReadFormula, read_formula
from sfumato.inference.totals import Totals
from sfumato.measurements.cells import BaseCells
from sfumato.measurements.measurement import Measurement
from sfumato.measurements.score_query import ONE, Link, ScoreQuery
from sfumato.schema.named_questions import mean_formula

LINKS: Mapping[str, Link] = {"ols": "identity", "logit": "logit", "poisson": "log"}
"""Of the regressions that can be named before a fit."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Noisy sums of turned, clipped scores.

    Attributes:
        measurement: of a `ScoreQuery`.
    """

    measurement: Measurement

    @property
    def query(self) -> ScoreQuery:
        """The scores."""
        query = self.measurement.query
        assert isinstance(query, ScoreQuery)
        return query

    def of_regression(self, read: ReadFormula, family: str) -> bool:
        """Whether they are of this regression: the same left side, terms and family."""
        if LINKS.get(family) != self.query.link or set(read.columns) != self.query.columns:
            return False
        return read.terms == read_formula(self.query.formula, read.columns).terms

    def of_mean(self, name: str, by: Sequence[str]) -> bool:
        """Whether they are of the mean of a column in each group of others."""
        if {name, *by} != self.query.columns:
            return False
        return self.of_regression(read_formula(mean_formula(name, by), (name, *by)), "ols")

    def totals(self, base: BaseCells) -> Totals:
        """The scores of a model's rows, and their noisy sums."""
        measurement = self.measurement
        variances = np.full(measurement.value.size, measurement.noise_std**2)
        return Totals(self.query.scores(base) / ONE, measurement.value, variances)
