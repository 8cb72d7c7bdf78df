"""What a release of a table measured: noisy totals of known functions of the records, and rows of its model.

Every measurement is a sum over records of a function of the record's cells, plus Gaussian noise of known size. This
reads them off a release, which may be a stranger's, and evaluates the same functions on rows that the model draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from sfumato.columns.kind import TabularKind
from sfumato.errors import EstimateError
from sfumato.inference.gaps import filled
from sfumato.inference.support import ColumnCounts, supported
from sfumato.lenses.chain import plain_schema
from sfumato.maths.arrays import require_array, require_well_formed
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.contributions import step_of
from sfumato.methods.marginals import TableLayout
from sfumato.methods.tables.cell_counts import public_runs
from sfumato.methods.tables.feature_moments import MomentBits, TableMoments
from sfumato.methods.tables.recipe import (
    CELL_COUNTS,
    MOMENTS,
    POOLED,
    RUN_COUNTS,
    VECTOR_CLIP,
    VECTOR_OFFSETS,
    VECTOR_WEIGHTS,
)
from sfumato.models.tables.softmax_chain import SoftmaxChain
from sfumato.privacy.plan import Neighbours
from sfumato.release.model import ReleaseValue
from sfumato.release.table_samplers import softmax_grid
from sfumato.schema.grid import ColumnGrid
from sfumato.schema.weighting import weight_bound

MODEL_ROWS = 1 << 14
"""Rows of the model that estimates are made on; a fixed stream draws them, so that an estimate is a function of the
release."""
_SPREAD_OF_ROWS = 0.05  # standard deviation of the number of records about a public one that may be rounded
_STREAM = 20_260
_SUPPORT_STREAM, _GAPS_STREAM = 2, 3
_STANDS_OUT = 5.0  # deviations by which a total may differ from a declared one
_NO_NOISE = 1e-6  # variance of a count
_MOST_BITS = 60
_SAME_TOTAL = 1e-3  # of a declared total: rounding of weights to steps


@dataclass(frozen=True, slots=True)
class Totals:
    """Noisy totals of functions of a record.

    Attributes:
        functions: of the model's rows, shape (N, p).
        totals: noisy, over all records, shape (p,).
        variances: of their independent noise, shape (p,).
    """

    functions: np.ndarray
    totals: np.ndarray
    variances: np.ndarray

    @classmethod
    def joined(cls, parts: list[Totals]) -> Totals:
        """Return several together."""
        return cls(
            np.concatenate([part.functions for part in parts], axis=1),
            np.concatenate([part.totals for part in parts]),
            np.concatenate([part.variances for part in parts]),
        )

    def seen(self, fewest: int) -> Totals:
        """Return those whose functions are not 0 in so many rows: of the others the model says that there are none."""
        kept = np.count_nonzero(self.functions, axis=0) >= fewest
        return Totals(self.functions[:, kept], self.totals[kept], self.variances[kept])


@dataclass(frozen=True, slots=True)
class RowWeights:
    """What weighted records weigh, for the errors of drawing them.

    Attributes:
        each: weight of a record like each of the model's rows, shape (N,). Rows are drawn by the weighted law, so the
            mean of a function times `each` is Σ w²·function ÷ Σ w of the records.
        records: the public number of records.
        fixed: whether the weights' sum is public, and no sample changes it.
    """

    each: np.ndarray
    records: float
    fixed: bool


class Measured:
    """The measurements of a release of the method gaussian, and rows of its model.

    Args:
        release: of a table.
        stream: seed and key of the model's rows.

    Raises:
        EstimateError: the release is of another method.
        ReleaseError: its arrays do not fit each other.
    """

    def __init__(self, release: ReleaseValue, stream: tuple[int, ...] = (_STREAM,)) -> None:
        if release.schema.linked:
            raise EstimateError(
                "Expected a release of single rows for estimates, got one of linked rows. Ask release.units (--units) "
                "about constants, numbers of rows and first rows; of all rows there are no estimates yet."
            )
        held = {m.name: m for m in release.measurements}
        if release.sampler.get("name") != "table_softmax" or not {RUN_COUNTS, CELL_COUNTS, POOLED} <= held.keys():
            raise EstimateError(
                "Expected a release of a table by the method gaussian, which holds measurements that estimates can "
                "rest on, got another. Fit the table with ConditionalGaussian."
            )
        # a copy of what it holds: no cycle with a release that keeps its questions, which hold hundreds of megabytes
        self.release, self._stream = replace(release), stream
        self.layout = TableLayout(*softmax_grid(plain_schema(release.schema), release.sampler))
        self.names = tuple(column.name for column in self.layout.features)
        target = self.layout.target
        self.class_column = None if target is None else self.layout.grid.columns[target].name
        self.chain = SoftmaxChain.from_arrays(release.parameters, tuple(c.n_cells for c in self.layout.features))
        self.weight, weighted = release.schema.weight, release.schema.weight is not None
        self.moments = _moments(release.parameters, self.layout, self.chain, rounded=weighted)
        self.runs = [public_runs(column) for column in self.layout.features]
        self._read_counts(held[RUN_COUNTS], held[CELL_COUNTS])
        self._read_moments(held[POOLED], held.get(MOMENTS))
        self._check_total()

    def _read_counts(self, runs: object, cells: object) -> None:
        widths = [int(r[-1]) + 1 for r in self.runs]
        sizes = [column.n_cells for column in self.layout.features]
        table, counts = np.asarray(runs.value), np.asarray(cells.value)  # type: ignore[attr-defined]
        require_well_formed(table.shape == (self.layout.n_classes, sum(widths)), RUN_COUNTS)
        require_well_formed(counts.shape == (sum(sizes),), CELL_COUNTS)
        self.run_counts = np.split(table, np.cumsum(widths)[:-1], axis=1)
        self.cell_counts = np.split(counts, np.cumsum(sizes)[:-1])
        self.run_variance = float(runs.noise_std) ** 2  # type: ignore[attr-defined]
        self.cell_variance = float(cells.noise_std) ** 2  # type: ignore[attr-defined]

    def _read_moments(self, pooled: object, by_class: object | None) -> None:
        d, k = self.moments.dimension, self.layout.n_classes
        self.pooled = np.asarray(pooled.value)  # type: ignore[attr-defined]
        self.pooled_variance = float(pooled.noise_std) ** 2  # type: ignore[attr-defined]
        require_well_formed(self.pooled.shape == (d, d), POOLED)
        self.by_class = None if by_class is None else np.asarray(by_class.value)  # type: ignore[attr-defined]
        self.class_variance = 0.0 if by_class is None else float(by_class.noise_std) ** 2  # type: ignore[attr-defined]
        require_well_formed(self.by_class is None or self.by_class.shape == (k, d, d), MOMENTS)

    @property
    def rows_of_unit(self) -> int:
        """The most rows of one unit: so many may go together."""
        unit = self.release.schema.unit
        return 1 if unit is None else unit.max_rows

    @property
    def n_public(self) -> int:
        """The public number of rows."""
        return self.release.certificate.n_public

    @cached_property
    def size(self) -> float:
        """The number of rows, public; of weighted rows the sum of their weights, public or as measured."""
        if self.weight is None:
            return self.n_public
        return self._measured_size[0] if self.weight.total is None else float(self.weight.total)

    @cached_property
    def _measured_size(self) -> tuple[float, float]:
        """The sum of all weights as all columns' counts say it, and the standard error of that."""
        precision = sum(1 / table.shape[1] for table in self.run_counts)
        total = sum(table.sum() / table.shape[1] for table in self.run_counts) / precision
        error = float(np.sqrt(self.layout.n_classes * self.run_variance / precision))
        return max(float(total), error, _NO_NOISE), error

    def _check_total(self) -> None:
        """Refuse a declared total that the measurements contradict: every estimate would lean on it.

        Raises:
            EstimateError: they do.
        """
        if self.weight is None or self.weight.total is None:
            return
        found, error = self._measured_size
        if abs(found - self.weight.total) > _STANDS_OUT * error + _SAME_TOTAL * self.weight.total:
            raise EstimateError(
                "Expected weights that add up to the schema's `total`, got measurements that are far from it. Are "
                "weights above the bound, or rows left out? Fit again without `total`: then it is measured."
            )

    @cached_property
    def weighting(self) -> RowWeights | None:
        """The weights of records like the model's rows; None of unweighted rows."""
        if self.weight is None:
            return None
        found = self.codes[self.weight.column] * weight_bound(self.release.schema)
        return RowWeights(found, self.n_public, fixed=self.weight.total is not None)

    @property
    def rows_variance(self) -> float:
        """Of the true number of rows about the public one: 0 where neighbours have one size.

        Of weighted rows: of the sum of weights; 0 of a public one, and else so much that it is what was measured.
        """
        if self.weight is not None:
            return self.size**2 if self.weight.total is None else 0.0
        if self.release.certificate.neighbours is Neighbours.REPLACE_ONE:
            return 0.0
        return (_SPREAD_OF_ROWS * self.n_public) ** 2

    @cached_property
    def _drawn(self) -> tuple[np.ndarray, np.ndarray]:
        classes, cells = self.chain.sample(MODEL_ROWS, public_stream(*self._stream))
        missing = [c.n_cells - 1 if getattr(c.kind, "nullable", False) else None for c in self.layout.features]
        rng = public_stream(*self._stream, _GAPS_STREAM)
        cells, classes = filled(cells, classes, self.moments.vectors, missing, rng)
        return classes, supported(cells, self.counts, self.size, public_stream(*self._stream, _SUPPORT_STREAM))

    @property
    def counts(self) -> list[ColumnCounts]:
        """The noisy counts of each column."""
        run_variance = self.layout.n_classes * self.run_variance
        found = []
        for j, column in enumerate(self.layout.features):
            runs = self.run_counts[j].sum(axis=0)
            ordered = 0 if column.edges is None else int(self.runs[j][column.edges.size - 2]) + 1
            found.append(
                ColumnCounts(self.cell_counts[j], self.cell_variance, runs, run_variance, self.runs[j], ordered)
            )
        return found

    @property
    def classes(self) -> np.ndarray:
        """The class of each of the model's rows, shape (N,)."""
        return self._drawn[0]

    def cells(self, j: int) -> np.ndarray:
        """The cell of each of the model's rows in feature column j, shape (N,)."""
        return self._drawn[1][:, j]

    @cached_property
    def clipping(self) -> np.ndarray:
        """By how much clipping weighs each of the model's rows down, shape (N,)."""
        cells = [self.cells(j) for j in range(len(self.names))]
        if len(self.moments.vectors) > len(cells):
            cells.append(self.classes)
        return self.moments.clipping(cells) * 2.0**-self.moments.bits.weights

    @cached_property
    def codes(self) -> dict[str, np.ndarray]:
        """The model's rows as their kinds code them, shape (N,) each. Distances are left out."""
        plan = self.release.schema.rule_plan
        gaps = {} if plan is None else plan.gaps
        return {name: codes for name, codes in self.free_codes.items() if name not in gaps}

    @cached_property
    def free_codes(self) -> dict[str, np.ndarray]:
        """The model's rows, with the codes of distances under the names of the columns that lie at their ends."""
        rng = public_stream(*self._stream, 1)
        columns = {}
        for place, column in enumerate(self.layout.grid.columns):
            is_class = place == self.layout.target
            cells = self.classes if is_class else self.cells(self.names.index(column.name))
            columns[column.name] = column.codes(cells, rng)
        return columns

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The model's rows: numbers as float64, NaN where missing; labels as categories. Not distances, nor weights."""
        hidden = None if self.weight is None else self.weight.column
        shown = {name: codes for name, codes in self.codes.items() if name != hidden}
        return pd.DataFrame({name: values(self.column(name).kind, codes) for name, codes in shown.items()})

    def column(self, name: str) -> ColumnGrid:
        """The cells of a column."""
        return next(column for column in self.layout.grid.columns if column.name == name)


def _moments(
    parameters: Mapping[str, np.ndarray], layout: TableLayout, chain: SoftmaxChain, *, rounded: bool
) -> TableMoments:
    """Return the statistic that was measured, from how its vectors were made; `rounded`: with entries as summed.

    Entries of weighted sums have fewer bits: as many less as weights have more.
    """
    d = chain.weights.shape[1]
    weights = require_array(parameters, VECTOR_WEIGHTS, np.float64, (d,))
    offsets = require_array(parameters, VECTOR_OFFSETS, np.float64, (d,))
    clip = require_array(parameters, VECTOR_CLIP, np.float64, (5,))
    clip_norm, by_class, class_weight, bits, clip_bits = map(float, clip)
    fine = bool((weights >= 0).all()) and clip_norm > 0 and 0 <= by_class < 1 and class_weight >= 0
    fine = fine and min(bits, clip_bits) >= 1 and 2 * bits + clip_bits <= _MOST_BITS
    require_well_formed(fine, VECTOR_CLIP)
    vectors = [
        ((column.values + offsets[block]) * np.sqrt(weights[block]))[column.runs]
        for column, block in zip(chain.columns, chain.blocks(), strict=True)
    ]
    if class_weight:
        vectors.append(np.sqrt(class_weight) * np.eye(layout.n_classes))
    found = TableMoments(layout, tuple(vectors), clip_norm, by_class, bits=MomentBits(int(bits), int(clip_bits)))
    if not rounded:
        return found
    return replace(found, vectors=tuple(whole * step_of(clip_norm, found.bits.entries) for whole in found.whole))


def values(kind: TabularKind, codes: np.ndarray) -> pd.Series:
    """Return the values of codes: numbers as float64, NaN where missing; labels as categories."""
    decoded = getattr(kind, "decoded", None)
    if kind.is_numeric and decoded is not None:
        found, absent = decoded(np.asarray(codes, dtype=np.float64))
        return pd.Series(np.where(absent, np.nan, np.asarray(found, dtype=np.float64)))
    labels = list(kind.labels)
    known = np.where(codes < len(labels), codes, -1)
    return pd.Series(pd.Categorical.from_codes(known, dtype=pd.CategoricalDtype(labels)))
