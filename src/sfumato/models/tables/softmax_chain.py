"""A table drawn column by column: each by a softmax over its runs of cells, whose logits are linear in features.

    p(run | class k, columns before) ∝ exp(t_k(run) + φ(run)ᵀ W_k φ(before))

φ are features of cells, fixed numbers of a release. With normal scores alone this is the Gaussian copula, exactly: the
logits of a normal variable given others are linear in it, up to a quadratic that t takes. Within a run, a cell is drawn
by its share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.maths.arrays import add_to_one, require_array, require_shares, require_well_formed
from sfumato.maths.constants import SAMPLING
from sfumato.models.tables.softmax_draws import chosen, systematic

_NEVER = -1e30  # logit of what no row has
_FEW = 0.7  # of the features before, so many that weights are not 0 at that the others are left out


@dataclass(frozen=True, slots=True)
class SoftmaxColumn:
    """One column.

    Attributes:
        shares: P(cell) over all classes, shape (c,).
        runs: run of each cell, shape (c,), 0 … r − 1.
        values: features of each run, shape (r, q).
        tilts: logits of the runs in each class, shape (k, r).
        tables: P(run | class) that a block of rows is raked to, shape (k, r).
    """

    shares: np.ndarray
    runs: np.ndarray
    values: np.ndarray
    tilts: np.ndarray
    tables: np.ndarray

    def to_arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return the column as arrays whose names begin with `name`."""
        arrays = {"shares": self.shares, "runs": self.runs, "values": self.values}
        arrays |= {"tilts": self.tilts, "tables": self.tables}
        return {f"{name}.{part}": array for part, array in arrays.items()}

    def choose(self, predictor: np.ndarray, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a run for each row, raked to the column's shares, shape (n,).

        Args:
            predictor: W φ(before), shape (n, q), float32.
            classes: shape (n,).
            rng: source of (public) randomness.
        """
        runs = np.empty(classes.size, dtype=np.int64)
        for start in range(0, classes.size, SAMPLING.block_rows):
            some = classes[start : start + SAMPLING.block_rows]
            for k in np.unique(some):
                rows = start + np.flatnonzero(some == k)
                runs[rows] = chosen(predictor[rows].T, self.values, self.tilts[k], rng, self.tables[k])
        return runs

    def without(self, cell: int) -> SoftmaxColumn:
        """Return the column given that rows have not a cell, nor the run that holds it alone."""
        rest = np.arange(self.shares.size) != cell
        others = ~np.isin(np.arange(self.tilts.shape[1]), self.runs_of(np.array([cell])))
        tilts = np.where(others, self.tilts, _NEVER)
        return replace(self, shares=_among(self.shares, rest), tilts=tilts, tables=_among(self.tables, others))

    def runs_of(self, cells: np.ndarray) -> np.ndarray:
        """Return the runs that hold these cells alone, shape (m,)."""
        others = np.delete(self.runs, cells)
        return np.setdiff1d(self.runs[cells], others)

    def cells(self, runs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a cell for each run, drawn by the shares within it, shape (n,)."""
        order = np.argsort(self.runs, kind="stable")
        if order.size == self.tilts.shape[1]:
            return order[runs]
        cumulative = np.cumsum(self.shares[order])
        ends = np.searchsorted(self.runs[order], np.arange(self.tilts.shape[1]), side="right")
        firsts = np.concatenate([[0], ends[:-1]])
        bounds = np.concatenate([[0.0], cumulative])
        numbers = bounds[firsts][runs] + systematic(runs, rng) * (bounds[ends] - bounds[firsts])[runs]
        numbers = np.minimum(numbers, np.nextafter(bounds[ends], 0)[runs])  # rounded, it may be the next run's
        place = np.searchsorted(cumulative, numbers, side="right")
        return order[np.clip(place, firsts[runs], ends[runs] - 1)]


@dataclass(frozen=True)
class SoftmaxChain:
    """The whole table.

    Attributes:
        class_shares: shape (k,), sum 1.
        columns: the columns other than the target.
        order: places of the columns in the order in which they are drawn.
        weights: W, shape (k or 1, d, d): a row for each feature of a column, entries at features of those before it.
    """

    class_shares: np.ndarray
    columns: tuple[SoftmaxColumn, ...]
    order: np.ndarray
    weights: np.ndarray

    def without(self, cells: Mapping[int, int], hidden: int | None) -> SoftmaxChain:
        """Return the chain given that rows have not a cell of some columns, by their places, and not a class."""
        columns = tuple(c.without(cells[j]) if j in cells else c for j, c in enumerate(self.columns))
        shares = self.class_shares
        shares = shares if hidden is None else _among(shares, np.arange(shares.size) != hidden)
        return replace(self, class_shares=shares, columns=columns)

    def with_class(self, share: float) -> SoftmaxChain:
        """Return the chain with a class more, the last, of this share, whose rows are about as those of all classes."""

        def more(of_classes: np.ndarray) -> np.ndarray:
            return np.concatenate([of_classes, np.tensordot(self.class_shares, of_classes, 1)[None]])

        columns = tuple(replace(c, tilts=more(c.tilts), tables=more(c.tables)) for c in self.columns)
        weights = more(self.weights) if len(self.weights) > 1 else self.weights
        return SoftmaxChain(np.append((1 - share) * self.class_shares, share), columns, self.order, weights)

    def blocks(self) -> list[slice]:
        """Return the slice of each column's features."""
        ends = np.cumsum([column.values.shape[1] for column in self.columns])
        return [slice(int(e) - c.values.shape[1], int(e)) for e, c in zip(ends, self.columns, strict=True)]

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The columns in their order, with what each is predicted by."""
        blocks, steps = self.blocks(), []
        positions = np.concatenate([np.zeros(0, dtype=np.int64), *(np.r_[blocks[j]] for j in self.order)])
        start = 0
        for j in self.order:
            size = self.columns[j].values.shape[1]
            weights = self.weights[:, blocks[j]][:, :, positions[:start]].astype(np.float32)
            places = np.flatnonzero(weights.any(axis=(0, 1)))
            if places.size < _FEW * start:
                weights = weights[:, :, places]
            else:
                places = None
            values = np.ascontiguousarray(self.columns[j].values.T, dtype=np.float32)
            steps.append(
                Step(int(j), slice(start, start := start + size), np.ascontiguousarray(weights), places, values)
            )
        return tuple(steps)

    def draw(self, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return cells for rows of some classes, shape (n, columns)."""
        return self.followed(np.empty((classes.size, 0), dtype=np.int64), rng, classes, raked=True)

    def followed(
        self,
        known: np.ndarray,
        rng: np.random.Generator,
        classes: np.ndarray | None = None,
        *,
        rough: int = 0,
        never: Mapping[int, np.ndarray] | None = None,
        raked: bool = False,
    ) -> np.ndarray:
        """Return cells of rows whose first drawn columns are known, shape (n, columns): the law given these, exactly.

        Args:
            known: cells of the columns 0 … m − 1, which come first in the chain's order, shape (n, m).
            rng: source of (public) randomness.
            classes: of the rows, shape (n,); by default the first, which is that of a chain of one.
            rough: of how many of these, the last ones, only the run is known, in which a cell is drawn.
            never: place of a column to cells that rows have not: its run is drawn given that it is none that holds
                such cells alone, if a row's law leaves any other.
            raked: whether blocks of rows are raked to the columns' shares; those given what is known differ.
        """
        n, m = known.shape
        barred = {j: self.columns[j].runs_of(cells) for j, cells in (never or {}).items()}
        classes = np.zeros(n, dtype=np.int64) if classes is None else classes
        cells = np.empty((len(self.columns), n), dtype=np.int64)
        with np.errstate(all="ignore"):
            for start in range(0, n, SAMPLING.block_rows):
                some = known[start : start + SAMPLING.block_rows]
                rows = RowsByClass.of(self, classes[start : start + SAMPLING.block_rows])
                for step in self.steps[:m]:
                    rows.put(step, self.columns[step.column].runs[some[:, step.column]])
                for step in self.steps[m:]:
                    rows.draw(step, rng, raked=raked, never=barred.get(step.column))
                cells[:, start : start + SAMPLING.block_rows] = rows.cells(rng, dict(enumerate(some[:, : m - rough].T)))
        return cells.T

    def sample(
        self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return classes, shape (n,), and cells, shape (n, columns), of n rows; classes are drawn if not given."""
        if classes is None:
            classes = self.draw_classes(n, rng)
        return classes, self.draw(classes, rng)

    def draw_classes(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n classes, drawn systematically by their shares."""
        numbers = systematic(np.arange(n) // SAMPLING.block_rows, rng)
        places = np.searchsorted(np.cumsum(self.class_shares), numbers, side="right")
        return np.minimum(places, np.flatnonzero(self.class_shares).max())

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the model as named float64 and int64 arrays."""
        arrays = {"class_shares": self.class_shares, "order": self.order, "weights": self.weights}
        for j, column in enumerate(self.columns):
            arrays |= column.to_arrays(f"column.{j}")
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_cells: tuple[int, ...]) -> SoftmaxChain:
        """Build a model from arrays that a stranger may have written.

        Args:
            arrays: as `to_arrays` gives them.
            n_cells: number of cells of each column, from the schema.

        Raises:
            ReleaseError: an array is missing, or has another shape or values than the schema allows.
        """
        shares = require_shares(arrays, "class_shares")
        columns = tuple(_read_column(arrays, f"column.{j}", shares.size, cells) for j, cells in enumerate(n_cells))
        order = require_array(arrays, "order", np.int64, (len(n_cells),))
        require_well_formed(np.array_equal(np.sort(order), np.arange(len(n_cells))), "order")
        d = sum(column.values.shape[1] for column in columns)
        weights = require_array(arrays, "weights", np.float64, (None, d, d))
        require_well_formed(len(weights) in (1, shares.size), "weights")
        return cls(shares, columns, order, weights)


@dataclass(frozen=True, slots=True)
class Step:
    """One column's turn.

    Attributes:
        column: its place among the columns.
        block: of its features, in drawing order.
        weights: W at features before it, shape (k or 1, q, m), float32.
        places: which of the features before it these are, shape (m,); None for all.
        values: features of its runs, shape (q, r), float32.
    """

    column: int
    block: slice
    weights: np.ndarray
    places: np.ndarray | None
    values: np.ndarray


@dataclass(frozen=True, slots=True)
class RowsByClass:
    """Rows while they are drawn, those of a class together.

    Attributes:
        chain: that draws them.
        order: place among the rows that were asked for of each, shape (n,).
        parts: each class and its rows.
        features: in drawing order, shape (d, n), float32; those of columns that are not drawn yet hold nothing.
        runs: of each column, shape (columns, n), int32.
    """

    chain: SoftmaxChain
    order: np.ndarray
    parts: tuple[tuple[int, slice], ...]
    features: np.ndarray
    runs: np.ndarray

    @classmethod
    def of(cls, chain: SoftmaxChain, classes: np.ndarray) -> RowsByClass:
        """Return rows of some classes, none of whose columns is drawn; shape (n,)."""
        order = np.argsort(classes, kind="stable")
        present, starts = np.unique(classes[order], return_index=True)
        ends = [*starts[1:].tolist(), classes.size]
        parts = tuple((int(k), slice(int(a), b)) for k, a, b in zip(present, starts, ends, strict=True))
        features = np.empty((chain.weights.shape[1], classes.size), dtype=np.float32)
        return cls(chain, order, parts, features, np.zeros((len(chain.columns), classes.size), dtype=np.int32))

    def predictor(self, step: Step, k: int, rows: slice) -> np.ndarray:
        """Return W φ(before) of the rows of a class, shape (q, rows), float32."""
        weights = step.weights[k if len(step.weights) > 1 else 0]
        return weights @ self.features[slice(step.block.start) if step.places is None else step.places, rows]

    def draw(
        self, step: Step, rng: np.random.Generator, *, raked: bool = False, never: np.ndarray | None = None
    ) -> None:
        """Draw a column, its runs raked to its shares or not, and some of them left out."""
        column, runs = self.chain.columns[step.column], np.empty(self.order.size, dtype=np.int64)
        for k, rows in self.parts:
            shares = column.tables[k] if raked else None
            runs[rows] = chosen(self.predictor(step, k, rows), column.values, column.tilts[k], rng, shares, never)
        self.keep(step, runs)

    def put(self, step: Step, runs: np.ndarray) -> None:
        """Put in a column's runs, in the order that was asked for."""
        self.keep(step, runs[self.order])

    def keep(self, step: Step, runs: np.ndarray) -> None:
        """Keep a column's runs, in the order of these rows."""
        self.runs[step.column] = runs
        self.features[step.block] = np.take(step.values, runs, axis=1)

    def cells(self, rng: np.random.Generator, known: Mapping[int, np.ndarray | int]) -> np.ndarray:
        """Return cells in the order that was asked for, shape (columns, n): those known, others drawn for the runs."""
        cells = np.empty_like(self.runs)
        for j, column in enumerate(self.chain.columns):
            if j in known:
                cells[j] = known[j]
            else:
                cells[j, self.order] = column.cells(self.runs[j].astype(np.int64), rng)
        return cells


def _among(shares: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return shares among some cells, along the last axis; even ones where these have none."""
    own = np.where(some, shares, 0.0)
    total = own.sum(axis=-1, keepdims=True)
    return np.where(total > 0, own / np.where(total > 0, total, 1.0), some / some.sum())


def _read_column(arrays: Mapping[str, np.ndarray], name: str, k: int, cells: int) -> SoftmaxColumn:
    shares = require_array(arrays, f"{name}.shares", np.float64, (cells,))
    require_well_formed(add_to_one(shares), f"{name}.shares")
    tilts = require_array(arrays, f"{name}.tilts", np.float64, (k, None))
    runs = require_array(arrays, f"{name}.runs", np.int64, (cells,))
    require_well_formed(np.array_equal(np.unique(runs), np.arange(tilts.shape[1])), f"{name}.runs")
    values = require_array(arrays, f"{name}.values", np.float64, (tilts.shape[1], None))
    tables = require_array(arrays, f"{name}.tables", np.float64, tilts.shape)
    require_well_formed(add_to_one(tables), f"{name}.tables")
    return SoftmaxColumn(shares, runs, values, tilts, tables)
