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
from sfumato.errors import ConfigError, EstimateError, SchemaError, require_choice
from sfumato.inference.calibration import TOGETHER, Calibration
from sfumato.inference.estimate import Estimate
from sfumato.inference.estimator import Estimator, rests_on
from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.intervals import of_correlation, size_of
from sfumato.inference.lag_scores import PairTotals
from sfumato.inference.linked_rows import model_units
from sfumato.inference.questions import Questions
from sfumato.inference.table_measurements import OnGivenRows
from sfumato.lenses.chain import plain_schema
from sfumato.lenses.lens import UnitSampler
from sfumato.maths.constants import QUESTIONS
from sfumato.maths.streams import public_stream
from sfumato.measurements.queries import MarginalQuery
from sfumato.measurements.score_query import ScoreQuery
from sfumato.records.linked import feature_records, with_features
from sfumato.records.sequences import Sequences
from sfumato.release.model import ReleaseValue
from sfumato.release.samplers import build_sampler
from sfumato.release.unit_releases import units_of
from sfumato.schema.grid import Grid
from sfumato.schema.linked import linked_tables
from sfumato.schema.unit_features import MOMENTS, ONE, Lag, UnitFeature, features_in, lag_of

_STREAM = 20_262
_NEAREST = 0.9999  # to 1 that an estimated correlation may be
_CLIPPED_ROUNDS = 2  # of what clipping takes off at the correlation that is estimated


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
        self._sequences = Sequences.of(
            model_units(sampler, stream, fewest=1),
            self.linked.constants,  # at a fit, what is charged is measured
        )
        names = [name for question in release.schema.questions for name in question.names]
        queries = [m.query for m in part.measurements if isinstance(m.query, MarginalQuery | ScoreQuery)]
        self.features = features_in([*names, *(cells.column for query in queries for cells in query.cells)], plain)
        super().__init__(part)
        self._rows = self._units(self.features, self._sequences)
        grid = Grid.of(with_features(self.linked, self.features), numeric_cells=QUESTIONS.cells, narrow=True)
        added = {feature.name for feature in self.features}
        self.columns = {**self.columns, **{column.name: column for column in grid.columns if column.name in added}}

    def _units(self, features: Sequence[UnitFeature], sequences: Sequences) -> dict[str, np.ndarray]:
        """The model's units with features, coded."""
        kinds = self.plain.of_kind(TabularKind)
        chunks = list(feature_records(self.linked, sequences, features, kinds))
        return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}

    def moments(
        self, lag: Lag, centre: int = ONE // 2, scale: int = ONE // 2, codes: np.ndarray | None = None
    ) -> np.ndarray:
        """The `MOMENTS` of pairs of the model's units, shape (N, 6), or of other `codes` of their rows."""
        features, sequences = features_in(lag.moments(centre, scale), self.plain), self._sequences
        if codes is not None:
            sequences = Sequences.joined(sequences.sizes, {**sequences.codes, lag.column: codes}, self.linked.constants)
        units = self._units(features, sequences)
        bounds = [feature.kind.bounds for feature in features]  # type: ignore[attr-defined]
        return np.column_stack(
            [low + (high - low) * units[f.name] for f, (low, high) in zip(features, bounds, strict=True)]
        )

    def even_codes(self, column: str, correlation: float) -> np.ndarray:
        """Normal codes of the rows of the model's units, all of one unit alike so far, shape (rows,).

        At each place in a unit they have the mean and the spread that the model's rows have there.
        """
        rng, sequences, codes = public_stream(_STREAM, 1), self._sequences, self._sequences.codes[column]
        lengths = np.maximum(sequences.sizes, 1)
        places = np.arange(codes.size) - np.repeat(sequences.starts, lengths)
        known, most = ~np.isnan(codes), int(lengths.max(initial=1))
        rows = np.maximum(np.bincount(places[known], minlength=most), 1)
        middle = np.bincount(places[known], codes[known], most) / rows
        spread = np.sqrt(np.bincount(places[known], (codes - middle[places])[known] ** 2, most) / rows)
        alike = np.repeat(rng.standard_normal(lengths.size), lengths)
        normal = np.sqrt(correlation) * alike + np.sqrt(1 - correlation) * rng.standard_normal(alike.size)
        return np.where(known, np.clip(middle[places] + spread[places] * normal, 0.0, 1.0), np.nan)

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

    def estimator(self, columns: tuple[str, ...], target: str, *, free: bool = False) -> Estimator:
        """Return units calibrated to what was measured of some columns: as `Questions.estimator`.

        Raises:
            EstimateError: also of a feature beside columns that it was not named with.
        """
        if self._features_among(columns):
            if not self._named_with(columns):
                names = " and ".join(map(repr, dict.fromkeys(columns)))
                raise EstimateError(
                    f"Expected features of units that were named together before the fit, got {names}. Name the "
                    "question: the chain of rows says too little of them."
                )
            free = True
        return super().estimator(columns, target, free=free)

    def _features_among(self, columns: Iterable[str]) -> set[str]:
        return {feature.name for feature in self.measured.features} & set(columns)

    def _named_with(self, columns: Iterable[str]) -> frozenset[str]:
        """The columns of the two nearest questions that name these and more: the first may be of squares alone."""
        measured, wanted = self.measured, set(columns)
        equations = [equation for scores in measured.scores for equation in scores.query.equations]
        named = {*(equation.columns for equation in equations), *(table.columns for table in measured.tables)}
        nearest = sorted((one for one in named if wanted <= one), key=lambda one: (len(one), sorted(one)))
        return frozenset().union(*nearest[:2])

    def _calibration(self, columns: Sequence[str]) -> Calibration:
        measured = self.measured
        named = self._named_with(columns) if self._features_among(columns) else frozenset(columns)
        totals = measured_functions(measured, cell_functions(measured, measured.beside(sorted(named))))
        return measured.calibration(totals, self._fitted(columns), columns=columns)

    def _fitted(self, columns: Sequence[str]) -> float:
        return TOGETHER if self._features_among(columns) else super()._fitted(columns)

    def correlation(self, first: str, second: str, target: str) -> Estimate:
        """Return Pearson's correlation of two columns, or of a number with itself so many rows of a unit later.

        Raises:
            ConfigError: there are no such rows; also as `Questions.correlation`.
        """
        for column, other in ((first, second), (second, first)):
            try:
                pairs = lag_of(other, self.measured.plain) if isinstance(other, str) else None
            except SchemaError as error:
                raise ConfigError(str(error)) from None
            if pairs is not None and pairs.column == column:
                return self._of_pairs(pairs, target)
        return super().correlation(first, second, target)

    def _of_pairs(self, pairs: Lag, target: str) -> Estimate:
        """The correlation over all pairs of rows of units, by the sums that were measured of them."""
        require_choice(("population", "table"), target=target)
        column, lag, what = pairs.column, pairs.lag, f"lag {pairs.lag} of {pairs.column!r}"
        totals = PairTotals.of(pairs, self.measured.scores)
        if totals is None:
            raise EstimateError(
                f"Expected a question that was named before the fit, got {what}. Name it: "
                f'questions=["correlation: lag {lag} of {column}"].'
            )
        known = {feature.name: feature for feature in self.measured.features}
        feature = known[totals.place[0]]
        cells = measured_functions(self.measured, cell_functions(self.measured, [column]))
        calibration = self.measured.calibration(cells, TOGETHER, columns=[column])
        estimator = Estimator(calibration, (f"lag {lag} of {column}",), target, products=False).named()  # type: ignore[arg-type]
        own = self.measured.moments(pairs, feature.centre, feature.scale)
        n, size = estimator.positive(own[:, 0], what), calibration.size
        (value, parts), even = totals.correlation(n), own
        for _ in range(_CLIPPED_ROUNDS):
            alike = float(np.clip(value, 0.0, _NEAREST))
            codes = self.measured.even_codes(column, alike)
            even = self.measured.moments(pairs, feature.centre, feature.scale, codes)
            value, parts = totals.correlation(n, totals.clipped(even, size))
        value = float(np.clip(value, -_NEAREST, _NEAREST))
        if target == "population":
            parts["sampling"] = totals.sampling(even, n, size)
        error = size_of(parts)
        if error > 1:
            raise EstimateError(f"Expected {column!r} to vary, got a column that does not stand out of noise.")
        rests = estimator.preface + rests_on(estimator, parts)
        return Estimate(value, error, estimator.target, rests, parts, of_correlation(value, parts))
