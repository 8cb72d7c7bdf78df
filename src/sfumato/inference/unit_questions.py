"""Questions about units of linked rows and features of all their rows, where a fit measured some by name.

Units of the release's model have all their rows, so that any function of a unit is one of the model's, and its total is
compared with the one that was measured. Errors are those of independent units.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from sfumato.columns.kind import TabularKind
from sfumato.errors import ConfigError, EstimateError, require_choice, require_integer
from sfumato.inference.calibration import FITTED, STRONG, Calibration
from sfumato.inference.estimate import Estimate
from sfumato.inference.estimator import Estimator
from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.intervals import of_correlation
from sfumato.inference.linked_rows import OnGivenRows, model_units
from sfumato.inference.pair_scores import pair_columns, pair_forms
from sfumato.inference.questions import Questions
from sfumato.lenses.chain import plain_schema
from sfumato.lenses.lens import UnitSampler
from sfumato.maths.constants import QUESTIONS
from sfumato.measurements.queries import MarginalQuery
from sfumato.measurements.score_query import ScoreQuery
from sfumato.records.linked import Sequences
from sfumato.records.unit_features import feature_records, with_features
from sfumato.release.model import ReleaseValue
from sfumato.release.samplers import build_sampler
from sfumato.release.unit_releases import units_of
from sfumato.schema.grid import Grid
from sfumato.schema.linked import linked_tables
from sfumato.schema.unit_features import MOMENTS, ONE, Lag, UnitFeature, features_in, named_in

_STREAM = 20_262
_NEAREST = 0.9999  # to 1 that an estimated correlation may be


class UnitMeasurements(OnGivenRows):
    """The measurements of units of a release of linked rows, and units of its model with features of all their rows.

    Args:
        release: of linked rows.
        stream: seed and key of the model's units.

    Raises:
        EstimateError: units have too many rows for it, or the release measured nothing about columns.
        ReleaseError: its model does not fit its schema.
    """

    def __init__(self, release: ReleaseValue, stream: tuple[int, ...] = (_STREAM,)) -> None:
        plain, part = plain_schema(release.schema), units_of(release, plain=True, features=True)
        self.linked, self.plain = linked_tables(plain, release.schema.weight), plain
        sampler = build_sampler(plain, release.sampler, release.parameters)
        assert isinstance(sampler, UnitSampler)
        self._sequences = Sequences.of(model_units(sampler, stream, fewest=1))  # at a fit, what is charged is measured
        asked = [name for q in release.schema.questions for name in named_in(q.named, q.formula)]
        queries = [m.query for m in part.measurements if isinstance(m.query, MarginalQuery | ScoreQuery)]
        self.features = features_in([*asked, *(cells.column for query in queries for cells in query.cells)], plain)
        super().__init__(part)
        self._rows = self._units(self.features)
        grid = Grid.of(with_features(self.linked, self.features), numeric_cells=QUESTIONS.cells, narrow=True)
        added = {feature.name for feature in self.features}
        self.columns = {**self.columns, **{column.name: column for column in grid.columns if column.name in added}}

    def _units(self, features: Sequence[UnitFeature]) -> dict[str, np.ndarray]:
        """The model's units with features, coded."""
        kinds = self.plain.of_kind(TabularKind)
        chunks = list(feature_records(self.linked, self._sequences, features, kinds))
        return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}

    def moments(self, lag: Lag, centre: int = ONE // 2, scale: int = ONE // 2) -> np.ndarray:
        """The `MOMENTS` of pairs of the model's units, shape (N, 6)."""
        features = features_in(lag.moments(centre, scale), self.plain)
        units = self._units(features)
        bounds = [feature.kind.bounds for feature in features]  # type: ignore[attr-defined]
        return np.column_stack(
            [low + (high - low) * units[f.name] for f, (low, high) in zip(features, bounds, strict=True)]
        )

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The model's units, without sums over pairs."""
        shown = super().frame
        return shown.drop(columns=[feature.name for feature in self.features if feature.form in MOMENTS])

    def beside(self, columns: Iterable[str]) -> list[str]:
        """Columns of units, and with features among them first rows and the number of rows, which say some of these."""
        columns, known = list(columns), {feature.name: feature for feature in self.features}
        features = [known[name] for name in columns if name in known]
        more = [self.linked.count, *(feature.column for feature in features)] if features else []
        return [name for name in dict.fromkeys([*columns, *more]) if name in self.columns]


class UnitQuestions(Questions):
    """Answers about units and features of all their rows, from one release."""

    measured: UnitMeasurements
    measurements = UnitMeasurements  # type: ignore[assignment] - of linked rows

    def estimator(
        self, columns: tuple[str, ...], target: str, fitted: float = FITTED, *, free: bool = False
    ) -> Estimator:
        """Return units calibrated to what was measured of some columns: as `Questions.estimator`."""
        if {feature.name for feature in self.measured.features} & set(columns):
            fitted = max(fitted, STRONG)
            free = free or any(set(columns) == scores.query.columns for scores in self.measured.scores)
        return super().estimator(columns, target, fitted, free=free)

    def _calibration(self, columns: Sequence[str], fitted: float) -> Calibration:
        measured = self.measured
        totals = measured_functions(measured, cell_functions(measured, measured.beside(columns)))
        return measured.calibration(totals, fitted)

    def lag_correlation(self, column: str, lag: int, target: str) -> Estimate:
        """Return the correlation of a number with itself, so many rows of a unit later, over all pairs of rows."""
        require_choice(("population", "table"), target=target)
        pairs, what = Lag(column, require_integer(at_least=1, lag=lag)), f"lag {lag} of {column!r}"
        names = pair_columns(pairs, [scores.query for scores in self.measured.scores])
        if not names:
            raise EstimateError(
                f"Expected a question that was named before the fit, got {what}. Name it: "
                f'questions=["correlation: lag {lag} of {column}"].'
            )
        calibration = self._calibration(sorted(names), STRONG)
        estimator = Estimator(calibration, (f"lag {lag} of {column}",), target).named()  # type: ignore[arg-type]
        moments = self.measured.moments(pairs)
        n = estimator.positive(moments[:, 0], what)
        value, influence, _ = pair_forms(moments, calibration.weights)
        value = float(np.clip(value, -_NEAREST, _NEAREST))
        estimate = estimator.estimate(value, moments @ influence / n, what, lambda parts: of_correlation(value, parts))
        if estimate.std_error > 1:
            raise EstimateError(f"Expected {column!r} to vary, got a column that does not stand out of noise.")
        return estimate


def unit_questions_of(release: ReleaseValue) -> UnitQuestions:
    """The questions to the units of a release of linked rows, made once and kept in it.

    Raises:
        ConfigError: it has no features that were named before the fit.
    """
    if not release.schema.questions:
        raise ConfigError("Expected a release of linked rows with named questions, got one without. Name them.")
    if "_unit_questions" not in release.__dict__:
        release.__dict__["_unit_questions"] = UnitQuestions(release)
    return release.__dict__["_unit_questions"]
