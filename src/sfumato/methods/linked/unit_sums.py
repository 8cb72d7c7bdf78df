"""Questions of linked rows that were named before the fit: one more stage, of units with features of all their rows.

The sums are those of tables, and a record is a unit (`sfumato.methods.tables.question_sums`). Coefficients and turns
follow from units of the model, calibrated to what the stages before released. Samples are not tilted to them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.errors import ConfigError
from sfumato.fitting.driver import Fit, FittedModel, interim_release
from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.lag_scores import aim_pairs, pair_forms, pair_place, pair_query
from sfumato.inference.score_designs import question_columns
from sfumato.inference.unit_questions import UnitMeasurements
from sfumato.measurements.score_query import ScoreQuery
from sfumato.methods.tables.question_stage import (
    NAME,
    PAIRS,
    SCORES,
    SPREAD,
    TABLE,
    PlannedPart,
    aimed_sums,
    left_of,
    pairs_of,
    regression_scores,
    spread_formula,
    table_query,
)
from sfumato.methods.tables.question_sums import QuestionQuery
from sfumato.records.feature_records import FeatureRecords
from sfumato.records.linked import LinkedData
from sfumato.release.manifest import UNITS_PART
from sfumato.schema.grid import ColumnGrid
from sfumato.schema.unit_features import Lag, features_in

_MOST_ALIKE = 0.95  # of rows of a unit


def with_units_measured(fit: Fit, fitted: FittedModel) -> FittedModel:
    """Measure the named questions by what linked rows' stages say, and return the model with their measurements.

    Args:
        fit: of which these stages are charged.
        fitted: linked rows.
    """
    data = fit.data
    if not isinstance(data, LinkedData):
        raise ConfigError("Expected records of units for linked rows, got records of rows.")
    aim = _Aim(fit, fitted)
    sums = aimed_sums(fit, aim.query_of)
    named = [cells.column for part in sums.parts for cells in part.query.cells]
    noisy = fit.measure(NAME, sums, FeatureRecords(data, features_in(named, fit.facts.schema)))
    own = tuple((f"{UNITS_PART}{name}", measured) for name, measured in sums.measurements(noisy))
    return replace(fitted, measurements=(*fitted.measurements, *own))


class _Aim:
    """Makes the queries of questions, by released values."""

    def __init__(self, fit: Fit, fitted: FittedModel) -> None:
        self._facts = fit.facts
        self._measured = UnitMeasurements(interim_release(fitted, fit.facts, fit.n_public))
        self._columns = question_columns(fit.facts.schema, fit.facts.described)

    def query_of(self, part: PlannedPart, noise_std: float) -> QuestionQuery:
        """Return the query of a part, by the noise of its sum."""
        if part.role == TABLE:
            return table_query(part, self._stored)
        if part.role == SCORES:
            return self._scores(part, part.question.regression, noise_std)
        if part.role == SPREAD:
            return self._scores(part, spread_formula(part.question, self._mean(part)), noise_std)
        return self._pairs(part, noise_std)

    @property
    def _stored(self) -> dict[str, ColumnGrid]:
        """The cells of tables: those that columns were counted in, and public ones of features."""
        return {**self._columns, **self._measured.columns}

    def _weights(self, columns: list[str]) -> np.ndarray:
        measured = self._measured
        totals = measured_functions(measured, cell_functions(measured, measured.beside(columns)))
        return np.maximum(measured.calibration(totals).weights, 0.0)

    def _scores(self, part: PlannedPart, formula: str, noise_std: float) -> ScoreQuery:
        return regression_scores(part, formula, self._measured, self._columns, "", noise_std)

    def _mean(self, part: PlannedPart) -> float:
        """The mean of a column of the model's units."""
        [name] = part.question.columns
        values = self._measured.frame[name].to_numpy(dtype=np.float64)
        present, weights = ~np.isnan(values), self._weights([name])
        whole = max(float(weights @ present), 1e-300)
        lower, upper = self._columns[name].kind.bounds  # type: ignore[attr-defined]
        return float(np.clip(weights @ np.where(present, values, 0.0) / whole, lower, upper))

    def _pairs(self, part: PlannedPart, noise_std: float) -> ScoreQuery:
        """Return scores of pairs as if a unit's rows were all alike so far.

        A chain forgets what the level of a unit is, and its units have too little correlation of rows that lie apart.
        Scores are aimed at normal rows of one correlation, that of the chain's neighbours.
        """
        lag, measured = pairs_of(part, self._facts), self._measured
        weights = self._weights([lag.column])
        centre, scale = pair_place(measured.moments(lag), weights)
        nearest = pair_forms(measured.moments(Lag(lag.column, 1)), weights)[0]
        codes = measured.even_codes(lag.column, float(np.clip(nearest, 0.0, _MOST_ALIKE)))
        moments = measured.moments(lag, centre, scale, codes)
        _, influence, spread = pair_forms(moments, weights)
        query = pair_query(lag, self._facts.schema, centre, scale, left_of(part))
        form = influence if part.role == PAIRS else spread
        return aim_pairs(query, form, moments @ form, weights, measured.size, noise_std)
