"""Sums over the steps of units: cells, and second moments, with one bound for all steps of a unit together.

A record is a unit with all its steps (`sfumato.records.linked.StepRecords`). Each of these counts as the norm of what
they add together allows, in whole numbers of 2^-10, rounded down. Proof: docs/proofs/linked.md.

Reference: Amin, Kulesza, Muñoz Medina and Vassilvitskii, ICML 2019, on bounding what a user contributes; there rows
beyond a bound are dropped, here all steps of a unit share it.

Sums for questions named before the fit are those of tables, and a record is a unit
(`sfumato.methods.tables.question_sums`). Coefficients and turns follow from units of the model, calibrated to what the
stages before released. Samples are not tilted to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.errors import ConfigError
from sfumato.fitting.driver import Fit, FittedModel, interim_release
from sfumato.inference.functions import cell_functions, measured_functions
from sfumato.inference.lag_scores import aim_pairs, pair_forms, pair_place, pair_query
from sfumato.inference.score_designs import question_columns, score_design
from sfumato.inference.unit_questions import UnitMeasurements
from sfumato.lenses.weights import WEIGHT_BITS as UNIT_WEIGHT_BITS
from sfumato.lenses.weights import whole_weights
from sfumato.measurements.cells import BaseCells
from sfumato.measurements.queries import UnitNorm, unit_weights
from sfumato.measurements.score_query import EstimatingEquation, ScoreQuery
from sfumato.methods.tables.atoms import n_endings
from sfumato.methods.tables.cell_counts import ENDING_STEP, CellCounts, counting
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
from sfumato.records.sequences import FINER_BITS, UNIT_BITS, clipped, flattened, weighted_steps
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
    return MomentBits((together - UNIT_BITS) // 2, UNIT_BITS)


@dataclass(frozen=True)
class StepCounts(CellCounts):
    """How many steps lie in each run, cell, value, ending and pair, as `CellCounts` has them of records, by norm.

    A unit adds w times what a record does for each step, w = min(1, C/N) in 2^-10, rounded down (`UnitNorm`), where N
    is at least the norm of what its k steps add whole: N² = Σ (a² Σ c² + (b² + s²) Σ c²) + p² Σ c² + l e² k² over
    columns and pairs, of c steps in a run, a cell, a pair. Values lie within cells, and of each of l lists no ending
    has more than k steps. So it adds a vector of norm at most C. No entry is negative, so that two units are at most
    √2 C apart. One `Gaussian` event.

    In steps of 2^-16: v = 2^6 w; of a unit of weight ω/2^20 of the bound v = ⌊(w·ω + 2^13)/2^14⌋, which is no more.

    Attributes:
        square: C², in 2^-10.
        column: of the units' weights; "" where each counts once.
    """

    shift: ClassVar[int] = UNIT_BITS + FINER_BITS

    square: int = 0
    column: str = ""
    name: str = "counts of steps in runs and cells"

    @property
    def squares(self) -> float:
        """C²."""
        return self.square * 2.0**-UNIT_BITS

    def with_room(self, steps: float) -> Self:
        """The same of the bound that so many steps have where no two of them lie in one cell; of one at least."""
        norms = [query.norm for query in self._queries if query.norm is not None]
        least = sum(sum(norm.tables) for norm in norms) + norms[0].beside
        return replace(self, square=int(least * max(1.0, steps)))

    def how_counted(self, squares: Sequence[float]) -> dict[str, Any]:
        """By the norm of units."""
        lists = sum(n_endings(self.grid.columns[j].kind) for j in self.valued)  # type: ignore[arg-type] - of numbers
        whole = tuple(int(square * 2**UNIT_BITS) for square in squares)
        norm = UnitNorm(self.square, whole, int(lists * ENDING_STEP**2 * 2**UNIT_BITS))
        return {**counting(self), "norm": norm}

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count the steps of some units."""
        flat, owners, steps = flattened(rows)
        shared = self.weights(flat, owners, steps.size)[owners]
        self.add_weighted(total, flat, weighted_steps(shared, flat, self.column).astype(np.float64))

    def weights(self, flat: Rows, owners: np.ndarray, n: int) -> np.ndarray:
        """Return w of n units with these steps, in 2^-10, int64."""
        return unit_weights([query for query in self._queries if query.tables], BaseCells(flat), owners, n)


@dataclass(frozen=True)
class StepMoments(TableMoments):
    """The sum of outer products of steps' vectors, those of a unit clipped together.

    A unit with steps x₁ … x_k adds u·Σ xᵢxᵢᵀ. F² = Σᵢⱼ ⟨xᵢ, xⱼ⟩² is the squared Frobenius norm of the sum, and
    u = min(w, C²/F), w that of `StepCounts`: norm at most C². The sum is positive semidefinite, so two units' have a
    non-negative inner product and are at most √2·C² apart. One `Gaussian` event.

    In whole numbers: x = y·C/2^b, and u of 2^-m with u·F ≤ 2^m·4^b, F rounded up; of a unit of weight ω/2^20 of the
    bound ⌊(u·ω + 2^19)/2^20⌋, which is no more.

    Attributes:
        counting: the counts of the same steps.
    """

    counting: StepCounts = field(kw_only=True)
    name: str = "second moments of steps"
    compact = None  # type: ignore[assignment] - steps of a unit are clipped together

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Add the steps of some units, a few units at a time."""
        flat, owners, steps = flattened(rows)
        if not owners.size:
            return
        cells, weights = self.cells(flat), self.counting.weights(flat, owners, steps.size)
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
            counted = clipped(vectors, mine, weights[units], most)
            if self.counting.column:
                counted = self._weighed(counted, rows, units)
            total[0] += vectors.T @ (vectors * counted[mine, None])
            start = some.stop

    @property
    def how_counted(self) -> dict[str, Any]:
        """Rows of a unit together."""
        return {**counting(self.counting), "together": True}

    def _weighed(self, shared: np.ndarray, rows: Rows, units: slice) -> np.ndarray:
        """Return v of units, whole numbers in float64: by the weight of their first step, which is that of all."""
        column = self.counting.column
        product = shared.astype(np.int64) * whole_weights({column: rows[column][units, 0]}, column)
        return (product + (1 << (UNIT_WEIGHT_BITS - 1)) >> UNIT_WEIGHT_BITS).astype(np.float64)
