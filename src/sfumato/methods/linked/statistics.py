"""Sums over the steps of units: cells, and second moments, with one bound for all steps of a unit together.

A record is a unit with all its steps (`sfumato.records.linked.StepRecords`). Each of its k steps counts min(1, K/k):
K steps count whole, and a unit with more counts as K. In whole numbers of 2^-10, rounded down, so that they add up to
K·2^10 at most. The part that each step of a unit has is a function of k, which is a column of every step: what is
learned of a step given k is not moved by it. Proof: docs/proofs/linked.md.

Reference: Amin, Kulesza, Muñoz Medina and Vassilvitskii, ICML 2019, on bounding what a user contributes; there rows
beyond a bound are dropped, here all steps of a unit share it.

Sums for questions named before the fit are those of tables, and a record is a unit
(`sfumato.methods.tables.question_sums`). Coefficients and turns follow from units of the model, calibrated to what the
stages before released. Samples are not tilted to them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sfumato.errors import ConfigError
from sfumato.fitting.driver import Fit, FittedModel, interim_release
from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.lag_scores import aim_pairs, pair_forms, pair_place, pair_query
from sfumato.inference.score_designs import question_columns, score_design
from sfumato.inference.unit_questions import UnitMeasurements
from sfumato.lenses.weights import WEIGHT_BITS as UNIT_WEIGHT_BITS
from sfumato.lenses.weights import whole_weights
from sfumato.measurements.score_query import EstimatingEquation, ScoreQuery
from sfumato.methods.tables.cell_counts import CellCounts
from sfumato.methods.tables.feature_moments import MomentBits, TableMoments
from sfumato.methods.tables.question_stage import (
    NAME,
    PAIR_SPREAD,
    PAIRS,
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
from sfumato.records.engine import Rows
from sfumato.records.linked import FeatureRecords, LinkedRecords
from sfumato.records.sequences import AS_ONE, FINER_BITS, WEIGHT_BITS, Sharing, flattened, weighted_steps
from sfumato.release.manifest import UNITS_PART
from sfumato.schema.unit_features import Lag, features_in

_MOST_ALIKE = 0.95  # of rows of a unit
_MOST_BITS, _ALL_BITS = 36, 60  # as of the moments of tables
_WORK_BYTES = 1 << 22


def with_units_measured(fit: Fit, fitted: FittedModel, stage: str = NAME) -> FittedModel:
    """Measure the named questions by what linked rows' stages say, and return the model with their measurements.

    Args:
        fit: of which these stages are charged.
        fitted: linked rows.
        stage: that measures them.
    """
    data = fit.data
    if not isinstance(data, LinkedRecords):
        raise ConfigError("Expected records of units for linked rows, got records of rows.")
    aim = _Aim(fit, fitted)
    sums = aimed_sums(fit, aim.query_of, stage=stage)
    named = [cells.column for part in sums.parts for cells in part.query.cells]
    noisy = fit.measure(stage, sums, FeatureRecords(data, features_in(named, fit.facts.schema)))
    own = tuple((f"{UNITS_PART}{name}", measured) for name, measured in sums.measurements(noisy))
    return replace(fitted, measurements=(*fitted.measurements, *own))


class _Aim:
    """Makes the queries of questions, by released values."""

    def __init__(self, fit: Fit, fitted: FittedModel) -> None:
        self._facts = fit.facts
        self._measured = UnitMeasurements(interim_release(fitted, fit.facts, fit.n_public))
        self._columns = question_columns(fit.facts.schema, fit.facts.described)

    def query_of(self, group: tuple[PlannedPart, ...], query: QuestionQuery, noise_std: float) -> QuestionQuery:
        """Return the query of parts that are measured as one, by their public query and the noise of its sum."""
        if group[0].role == TABLE:
            # cells that columns were counted in, and public ones of features
            return table_query(group[0], {**self._columns, **self._measured.columns})
        if group[0].role in (PAIRS, PAIR_SPREAD):
            return self._pairs(group[0], noise_std)
        assert isinstance(query, ScoreQuery)
        equations = [
            self._spread(part) if part.role == SPREAD else equation
            for part, equation in zip(group, query.equations, strict=True)
        ]
        return regression_scores(group, equations, self._measured, noise_std)

    def _weights(self, columns: list[str]) -> np.ndarray:
        measured = self._measured
        totals = measured_functions(measured, cell_functions(measured, measured.beside(columns)))
        return np.maximum(measured.calibration(totals).weights, 0.0)

    def _spread(self, part: PlannedPart) -> EstimatingEquation:
        formula = spread_formula(part.question, self._mean(part))
        return score_design(part.question.words, formula, part.link, self._columns)

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


def step_bits(n_public: int) -> MomentBits:
    """Return how finely entries and weights of steps are whole numbers, for a public number of units."""
    together = min(_MOST_BITS, _ALL_BITS - (n_public - 1).bit_length())
    return MomentBits((together - WEIGHT_BITS) // 2, WEIGHT_BITS)


@dataclass(frozen=True)
class StepCounts(CellCounts):
    """How many steps lie in each run, cell, value and ending, as `CellCounts` has them of records, by `Sharing`.

    A unit of k steps adds w(k) times what a record does for each step, k·w(k) ≤ K. In each block of a column these add
    up to a vector whose norm is at most K times a record's, however the steps lie; so do they together. No entry is
    negative, so that two units are at most √2 times that apart. One `Gaussian` event.
    """

    shift: ClassVar[int] = WEIGHT_BITS

    sharing: Sharing = AS_ONE
    name: str = "counts of steps in runs and cells"

    @property
    def squares(self) -> float:
        """K² times a record's."""
        return self.sharing.full**2 * super().squares

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count the steps of some units."""
        flat, owners, steps = flattened(rows)
        self.add_weighted(total, flat, self.sharing.weights(steps)[owners].astype(np.float64))


@dataclass(frozen=True)
class WeightedStepCounts(StepCounts):
    """`StepCounts` of weighted units, each times its weight ÷ the bound.

    A step of a unit of k steps and weight ω/2^20 adds v = ⌊(w(k)·ω + 2^13)/2^14⌋, in steps of 2^-16. As ω ≤ 2^20 and
    w(k) is whole, v ≤ 2^6·w(k): norm and distance of two units are at most those of unweighted ones. One `Gaussian`
    event. Proof: docs/proofs/linked.md.
    """

    shift: ClassVar[int] = WEIGHT_BITS + FINER_BITS

    column: str = ""
    name: str = "weights of steps in runs and cells"

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count the steps of some units by their weights."""
        flat, owners, steps = flattened(rows)
        shared = self.sharing.weights(steps)[owners]
        self.add_weighted(total, flat, weighted_steps(shared, flat, self.column).astype(np.float64))


@dataclass(frozen=True)
class StepMoments(TableMoments):
    """The sum of outer products of steps' vectors, those of a unit clipped together.

    A unit with steps x₁ … x_k adds u·Σ xᵢxᵢᵀ. F² = Σᵢⱼ ⟨xᵢ, xⱼ⟩² is the squared Frobenius norm of the sum, and
    u = min(w(k), C²/F): norm at most C². The sum is positive semidefinite, so two units' have a non-negative inner
    product and are at most √2·C² apart. One `Gaussian` event.

    In whole numbers: x = y·C/2^b, and u of 2^-m with u·F ≤ 2^m·4^b, F rounded up.
    """

    sharing: Sharing = AS_ONE
    name: str = "second moments of steps"
    compact = None  # type: ignore[assignment] - steps of a unit are clipped together

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add the steps of some units, a few units at a time."""
        flat, owners, steps = flattened(rows)
        if not owners.size:
            return
        cells = self.cells(flat)
        entries = [whole.astype(np.float64) for whole in self.whole]
        ends, at_once = np.cumsum(steps), max(256, _WORK_BYTES // (8 * max(self.dimension, 1)))
        start, most = 0, 2.0 ** (2 * self.bits.entries + self.bits.weights)
        while start < owners.size:
            # whole units: one that has more steps than are taken at once is taken alone
            last = max(int(np.searchsorted(ends, start + at_once, side="right")), int(owners[start]) + 1)
            some = slice(start, int(ends[last - 1]))
            vectors = np.concatenate([e[c[some]] for e, c in zip(entries, cells, strict=True)], axis=1)
            mine = owners[some] - owners[start]
            units = slice(int(owners[start]), last)
            counted = self.weighed(self.sharing.clipped(vectors, mine, steps[units], most), rows, units)
            total[0] += vectors.T @ (vectors * counted[mine, None])
            start = some.stop

    def weighed(self, shared: np.ndarray, rows: Rows, units: slice) -> np.ndarray:
        """Return what units count whose clipping is `shared`: each once."""
        del rows, units
        return shared


@dataclass(frozen=True)
class WeightedStepMoments(StepMoments):
    """`StepMoments` of weighted units, each times its weight ÷ the bound.

    A unit of weight ω/2^20 adds v·Σ xᵢxᵢᵀ with v = ⌊(u·ω + 2^19)/2^20⌋. As ω ≤ 2^20 and u is whole, v ≤ u: norm at most
    C², and the sum stays positive semidefinite. One `Gaussian` event.
    """

    column: str = ""
    name: str = "weighted second moments of steps"

    def weighed(self, shared: np.ndarray, rows: Rows, units: slice) -> np.ndarray:
        """Return v of units, whole numbers in float64: by the weight of their first step, which is that of all."""
        weights = whole_weights({self.column: rows[self.column][units, 0]}, self.column)
        product = shared.astype(np.int64) * weights + (1 << (UNIT_WEIGHT_BITS - 1))
        return (product >> UNIT_WEIGHT_BITS).astype(np.float64)
