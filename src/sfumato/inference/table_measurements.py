"""Measurements of a release of a table, and rows of its model on which the same queries are evaluated.

Every measurement is a query, a sum over records of a function of the record's columns, and its noisy value. This takes
them as the release holds them, which may be a stranger's, and knows of no method.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from sfumato.columns.kind import TabularKind
from sfumato.columns.kinds import Categorical, NumericKind
from sfumato.errors import EstimateError
from sfumato.inference.calibration import FITTED, Calibration, Places
from sfumato.inference.noisy_totals import (
    FEWEST_ROWS,
    MOST_APART,
    CountTable,
    Products,
    RowWeights,
    Scores,
    Totals,
    UnitSums,
    pool_tables,
    seen,
    tables_of,
)
from sfumato.inference.support import ColumnCounts, fill_gaps, with_support
from sfumato.lenses.chain import plain_schema
from sfumato.lenses.lens import DataSet
from sfumato.maths.streams import public_stream
from sfumato.measurements.cells import ALL_ROWS, BaseCells, Cells
from sfumato.measurements.score_query import ScoreQuery
from sfumato.privacy.plan import Neighbours
from sfumato.release.model import ReleaseValue
from sfumato.release.samplers import build_sampler
from sfumato.schema.grid import ColumnGrid
from sfumato.schema.schema_facts import weight_bound
from sfumato.schema.set_columns import sets_alone
from sfumato.schema.sources import DISCOVERED

MODEL_ROWS = 1 << 14
"""Rows of the model that estimates are made on; a fixed stream draws them, so that an estimate is a function of the
release."""
_SPREAD_OF_ROWS = 0.05  # standard deviation of the number of records about a public one that may be rounded
_STREAM = 20_260
_CODES_STREAM, _SUPPORT_STREAM, _GAPS_STREAM = 1, 2, 3
_STANDS_OUT = 5.0  # deviations by which a total may differ from a declared one
_SEEN = 2.0  # deviations of its noise from which a label is seen
_NO_NOISE = 1e-6  # variance of a count
_SAME_TOTAL = 1e-3  # of a declared total: rounding of weights to steps


class TableMeasurements:
    """The measurements of a release, and rows of its model.

    Args:
        release: of a table.
        stream: seed and key of the model's rows.
        n_rows: of the model.

    Attributes:
        tables: every noisy table of counts.
        values: those of single values of a number alone, by its name.
        products: noisy second moments; None where there are none.
        scores: noisy scores of regressions that were named before the fit.
        columns: the columns that something was measured of, by name, in the schema's order, in their finest cells.
        target: the column of labels that the table was fitted for, if it is one of them.
        area: the column of areas, that all others are counted by, if there is one.

    Raises:
        EstimateError: the release measured nothing about columns of a table.
        ReleaseError: its model does not fit its schema.
    """

    def __init__(self, release: ReleaseValue, stream: tuple[int, ...] = (_STREAM,), n_rows: int = MODEL_ROWS) -> None:
        if release.schema.linked:
            raise EstimateError(
                "Expected a release of single rows for replicates, got one of linked rows. Ask it itself, about all "
                "rows, or release.units (--units), about constants, numbers of rows and first rows."
            )
        if sets_alone(release.schema):
            raise EstimateError(
                "Expected a question about sets of items, share, count or set_size, got another: the release has "
                "sets and nothing beside them."
            )
        measurements = release.measurements
        weight = "" if release.schema.weight is None else release.schema.weight.column
        tables = [table for m in measurements for table in CountTable.all_of(m, weight)]
        self.tables = [table for table in tables if not table.partial]
        self.values = {axis.column: table for table in tables if table.partial for axis in table.axes}
        self._sampler = build_sampler(plain_schema(release.schema), release.sampler, release.parameters)
        if not self.tables or isinstance(self._sampler, DataSet):
            raise EstimateError(
                "Expected a release that measured how many rows lie in the cells of columns, which estimates can rest "
                "on, got another: sums by components of a mixture and steps of training are none. Fit the table with "
                "MaxEntropy."
            )
        # a copy of what it holds: no cycle with a release that keeps its questions, which hold hundreds of megabytes
        self.release, self._stream, self._n_rows = replace(release), stream, n_rows
        self._counts: dict[str, ColumnCounts | None] = {}
        self.products = Products.of(measurements, weight)
        self.scores = [Scores(m) for m in measurements if isinstance(m.query, ScoreQuery) and m.query.weight == weight]
        self.columns = self._finest()
        self.target = self._sampler.class_column if self._sampler.class_column in self.columns else None
        self.area = next(iter(release.schema.areas), None)
        self.weight = release.schema.weight
        if self.products is not None:
            of_questions = {frozenset(question.axes) for question in release.schema.questions}
            self.tables = [t if t.columns in of_questions else _without_runs(t, self.area) for t in self.tables]
        self._check_total()

    def _finest(self) -> dict[str, ColumnGrid]:
        """The finest cells in which each column was counted one by one, or else in groups, or those of its features."""
        features = [] if self.products is None else [entries.cells for entries in self.products.query.features]
        axes = [axis for table in self.tables for axis in table.axes if axis.column != ALL_ROWS]
        axes.sort(key=lambda axis: (axis.groups is None, axis.base))
        finest = {cells.column: cells for cells in (*features, *axes)}
        kinds = plain_schema(self.release.schema).of_kind(TabularKind)
        known = {name: finest[name] for name in kinds if name in finest}
        return {name: column_grid(name, kinds[name], cells.edges, cells.base) for name, cells in known.items()}

    def calibration(
        self, totals: Totals, fitted: float = FITTED, parts: UnitSums | None = None, columns: Iterable[str] = ()
    ) -> Calibration:
        """Return weights of the model's rows that follow noisy totals; `fitted` and `parts` as in `Calibration`.

        Of `columns` the place of values within cells is unsure.
        """
        numbers = [name for name in columns if self.columns[name].numeric]
        return Calibration(
            totals, self.size, self.rows_variance, self.weighting, self.rows_of_unit, fitted=fitted, parts=parts,
            places=[Places(self.pieces(name), np.nan_to_num(self.free_codes[name])) for name in numbers],
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """The measured columns."""
        return tuple(self.columns)

    @property
    def n_rows(self) -> int:
        """How many rows of the model there are."""
        return self._n_rows

    @cached_property
    def row_counts(self) -> np.ndarray | None:
        """How much each of the model's rows adds to counts, shape (N,); None where each adds once."""
        return None

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
        whole = tables_of(self.tables, ())[0]
        error = float(np.sqrt(whole.variance))
        return max(float(whole.value), error, _NO_NOISE), error

    def _check_total(self) -> None:
        """Refuse a declared total that the measurements contradict: every estimate would lean on it."""
        if self.weight is None or self.weight.total is None:
            return
        total, error = self._measured_size
        if abs(total - self.weight.total) > _STANDS_OUT * error + _SAME_TOTAL * self.weight.total:
            raise EstimateError(
                "Expected weights that add up to the schema's `total`, got measurements that are far from it. Are "
                "weights above the bound, or rows left out? Fit again without `total`: then it is measured."
            )

    @cached_property
    def weighting(self) -> RowWeights | None:
        """The weights of records like the model's rows; None of unweighted rows."""
        if self.weight is None:
            return None
        weights = self.codes[self.weight.column] * weight_bound(self.release.schema)
        return RowWeights(weights, self.n_public, fixed=self.weight.total is not None)

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
    def _model_rows(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The model's rows, and the cell of each in every measured column; one that moved has a code of its cell."""
        codes, names = dict(self.simulated(self._n_rows, public_stream(*self._stream))), self.names
        cells = np.stack([self.columns[name].cells(codes[name]) for name in names], axis=1, dtype=np.int32)
        if self.products is not None:
            base = BaseCells(codes)
            features = (  # of which none is looked up where no row has a gap
                (names.index(entries.cells.column) if entries.cells.column in names else -1,
                 self.products.vectors(place), base.of(entries.cells))
                for place, entries in enumerate(self.products.query.features)
            )  # fmt: skip
            missing = [self._missing_cell(name) for name in names]
            cells = fill_gaps(cells, features, missing, public_stream(*self._stream, _GAPS_STREAM))
        counts = [self.counts(name) for name in self.names]
        cells = with_support(cells, counts, self.size, public_stream(*self._stream, _SUPPORT_STREAM))
        rng = public_stream(*self._stream, _CODES_STREAM)
        for (name, column), own in zip(self.columns.items(), cells.T, strict=True):
            again, moved = column.codes(own, rng), column.cells(codes[name]) != own
            codes[name] = np.where(moved, again, codes[name])
        return codes, dict(zip(names, cells.T, strict=True))

    def simulated(self, n: int, rng: np.random.Generator) -> Mapping[str, Any]:
        """Return n coded rows of the model as it draws them."""
        assert not isinstance(self._sampler, DataSet)
        return self._sampler.rows(n, rng)

    def labelled(self, codes: Mapping[str, np.ndarray], names: Iterable[str]) -> np.ndarray:
        """Return which rows have a label in the columns where samples have one, shape (n,); all, if none has."""
        known = np.ones(len(next(iter(codes.values()))), dtype=bool)
        for name in names:
            known &= codes[name] < self.column(name).shown if self.column(name).kind.hides_blank else True
        return known | ~known.any()

    def _missing_cell(self, name: str) -> int | None:
        """The cell of missing values of a column, if it has one."""
        column = self.columns[name]
        return column.n_cells - 1 if column.kind.has_blank else None

    def apart(self, name: str) -> np.ndarray:
        """The cells of a column that are told apart, in order: of numbers and of few labels all that samples may have.

        Of many labels those that stand out of noise, the commonest `MOST_APART`: all others are one.
        """
        column = self.column(name)
        if column.numeric or column.shown <= MOST_APART:
            return np.arange(column.shown)
        rows, counts = np.bincount(self.cells(name), minlength=column.n_cells), self.counts(name)
        cells = np.flatnonzero(rows[: column.shown] >= FEWEST_ROWS)
        if counts is not None:
            cells = seen(cells, counts.cells, counts.cell_variance, rows)
        return np.sort(cells[np.argsort(-rows[cells], kind="stable")[:MOST_APART]])

    def counts(self, name: str) -> ColumnCounts | None:
        """The noisy counts of a column's cells; None where some of these were only counted together."""
        if name not in self._counts:
            self._counts[name] = self._counts_of(name)
        return self._counts[name]

    def _counts_of(self, name: str) -> ColumnCounts | None:
        column = self.columns[name]
        tables = pool_tables(table.over({name}) for table in self.tables if name in table.columns)
        own = Cells.of(column)
        fine = next((table for table in tables if table.axes[0].same(own)), None)
        if fine is None:
            return None
        nested = [table for table in tables if table is not fine and table.axes[0].same_base(own)]
        coarse = min(nested, key=lambda table: table.value.size, default=None)
        inside = 0 if column.edges is None else column.edges.size - 1  # cells in order, before that of missing
        if coarse is None:
            places = np.arange(column.n_cells)
            return ColumnCounts(fine.value, fine.variance, fine.value, np.inf, places, inside)
        runs = coarse.axes[0].grouped(np.arange(column.n_cells))
        ordered = int(runs[inside - 1]) + 1 if inside else 0
        return ColumnCounts(fine.value, fine.variance, coarse.value, coarse.variance, runs, ordered)

    def cells(self, name: str) -> np.ndarray:
        """The cell of each of the model's rows in a measured column, shape (N,)."""
        return self._model_rows[1][name]

    def pieces(self, name: str) -> np.ndarray:
        """The piece of a cell that each of the model's rows lies in, shape (N,): a single value, or what is beside."""
        own = self.single(name)
        return np.unique(self.cells(name) * (own.max() + 1) + own, return_inverse=True)[1].reshape(-1)

    def values_of(self, names: Iterable[str]) -> list[CountTable]:
        """Counts of single values of some columns."""
        return [self.values[name] for name in names if name in self.values]

    def counted(self, name: str) -> tuple[np.ndarray, np.ndarray, float]:
        """The single values of a number that were counted, in steps, their noisy counts, and the noise of one."""
        table, column, cells = self.values.get(name), self.columns.get(name), self.counts(name)
        if table is not None:
            (axis,) = table.axes
            assert axis.edges is not None
            assert axis.groups is not None
            places = np.flatnonzero(axis.groups >= 0)
            return axis.edges[places], table.value[axis.groups[places]], table.variance**0.5
        if column is None or column.edges is None or cells is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0), 0.0
        places = np.flatnonzero(np.diff(column.edges) == 1)
        return column.edges[places], cells.cells[places], cells.cell_variance**0.5

    def single(self, name: str) -> np.ndarray:
        """Which single value, numbered from 1, each of the model's rows has, shape (N,); 0 of none that was counted."""
        table = self.values.get(name)
        return np.zeros(self.n_rows, dtype=np.int64) if table is None else self.base.of(table.axes[0]) + 1

    @cached_property
    def base(self) -> BaseCells:
        """The model's rows, for queries."""
        return BaseCells(self.free_codes)

    @cached_property
    def drawn(self) -> BaseCells:
        """The model's rows as it draws them, for queries."""
        return BaseCells(self.simulated(self._n_rows, public_stream(*self._stream)))

    @cached_property
    def clipping(self) -> np.ndarray:
        """By how much clipping weighs each of the model's rows down, shape (N,)."""
        assert self.products is not None
        return self.products.clipping(self.base)

    @cached_property
    def codes(self) -> dict[str, np.ndarray]:
        """The model's rows in measured columns as their kinds code them, shape (N,) each. Distances are left out."""
        plan = self.release.schema.rule_plan
        gaps = {} if plan is None else plan.gaps
        return {name: self.free_codes[name] for name in self.columns if name not in gaps}

    @property
    def free_codes(self) -> dict[str, np.ndarray]:
        """The model's rows, with the codes of distances under the names of the columns that lie at their ends."""
        return self._model_rows[0]

    def drawn_again(self, name: str, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The codes of some of the model's rows, each drawn anew within the cell that the model has it in."""
        cells = next((c for c in getattr(self._sampler, "columns", ()) if c.name == name), self.columns[name])
        return cells.codes(cells.cells(self.free_codes[name][rows]), rng)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The model's rows: numbers as float64, NaN where missing; labels as categories. Not distances, nor weights."""
        hidden = None if self.weight is None else self.weight.column
        shown = {name: codes for name, codes in self.codes.items() if name != hidden}
        return pd.DataFrame({name: values(self.column(name).kind, codes) for name, codes in shown.items()})

    @cached_property
    def told_apart(self) -> pd.DataFrame:
        """`frame` for regressions: an `other` that a fit added to the labels it found is missing where noise hides it.

        Nobody declared it, and a coefficient of hardly a row would be noise, and with it the others'.
        """
        hidden = filter(self._hides_other, self.columns)
        return self.frame.assign(**{name: self.frame[name].cat.remove_categories("other") for name in hidden})

    def _hides_other(self, name: str) -> bool:
        kind, is_open = self.column(name).kind, self.release.schema.sources.get(name) == DISCOVERED
        if not (is_open and isinstance(kind, Categorical) and kind.other is not None):
            return False
        counted = [table for table in tables_of(self.tables, {name}) if table.columns == {name}]
        return all(t.value[kind.labels.index(kind.other)] <= _SEEN * np.sqrt(t.variance) for t in counted)

    def column(self, name: str) -> ColumnGrid:
        """The cells of a column."""
        return self.columns[name]


class OnGivenRows(TableMeasurements):
    """Measurements on rows of a model that are drawn elsewhere."""

    _rows: dict[str, np.ndarray]

    @property
    def n_rows(self) -> int:
        """How many rows of the model there are."""
        return next(iter(self._rows.values())).size

    @cached_property
    def _model_rows(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        return self._rows, {name: column.cells(self._rows[name]) for name, column in self.columns.items()}

    @cached_property
    def drawn(self) -> BaseCells:
        """The rows as they were drawn."""
        return self.base


def column_grid(name: str, kind: TabularKind, edges: np.ndarray | None, n_cells: int) -> ColumnGrid:
    """Return a column's cells, by their edges if they are of numbers."""
    if isinstance(kind, NumericKind) and edges is not None:
        return ColumnGrid.stored(name, kind, edges)
    return ColumnGrid(name, kind, n_cells)


def values(kind: TabularKind, codes: np.ndarray) -> pd.Series:
    """Return the values of codes: numbers as float64, NaN where missing; labels as categories."""
    decoded = getattr(kind, "decoded", None)
    if kind.is_numeric and decoded is not None:
        numbers, absent = decoded(np.asarray(codes, dtype=np.float64))
        return pd.Series(np.where(absent, np.nan, np.asarray(numbers, dtype=np.float64)))
    labels = list(kind.labels)
    known = np.where(codes < len(labels), codes, -1)
    return pd.Series(pd.Categorical.from_codes(known, dtype=pd.CategoricalDtype(labels)))


def _without_runs(table: CountTable, area: str | None) -> CountTable:
    """The table without numbers whose cells are put together, where it has other columns than these and the area.

    Where in such a run the rows of a label lie was not measured, and may be far from where all of the run do.
    """
    runs = {axis.column for axis in table.axes if axis.edges is not None and axis.groups is not None}
    rest = table.columns - runs
    return table.over(rest) if runs and rest - {area} else table
