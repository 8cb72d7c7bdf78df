"""A table drawn column by column: each by a softmax over its runs of cells, whose logits are linear in features.

    p(run | columns before) ∝ exp(t(run) + φ(run)ᵀ (W φ(before) + V π(before)))

φ are features of cells, fixed numbers of a release, and π the products of what leads two columns, which only a column
to predict is drawn given. Within a run, a cell is drawn by its share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.maths.arrays import add_to_one, require_array, require_well_formed, shares_among
from sfumato.maths.constants import SAMPLING
from sfumato.models.tables.softmax_draws import chosen, systematic

_NEVER = -1e30  # logit of what no row has
_FEW = 0.7  # of the features before, so many that weights are not 0 at that the others are left out
_AT_ONCE = 256  # products, however many a stranger's arrays have: of all rows in one block


@dataclass(frozen=True, slots=True)
class Interactions:
    """Interactions of what leads two columns, which a column is drawn given beside features.

    Attributes:
        first: place of one among what leads all columns, shape (m,).
        second: of the other.
        weights: V, shape (q, m).
    """

    first: np.ndarray
    second: np.ndarray
    weights: np.ndarray

    @classmethod
    def none(cls, q: int) -> Interactions:
        """Return those of a column of q features that is drawn given none."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros((q, 0)))


@dataclass(frozen=True, slots=True)
class SoftmaxColumn:
    """One column.

    Attributes:
        shares: P(cell), shape (c,).
        runs: run of each cell, shape (c,), 0 … r − 1.
        values: features of each run, shape (r, q).
        leads: what products are made of, of each run, shape (r, l).
        tilts: logits of the runs, shape (r,).
        table: P(run) that a block of rows is raked to, shape (r,).
        products: what it is drawn given beside features.
    """

    shares: np.ndarray
    runs: np.ndarray
    values: np.ndarray
    leads: np.ndarray
    tilts: np.ndarray
    table: np.ndarray
    products: Interactions

    def to_arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return the column as arrays whose names begin with `name`."""
        arrays = {"shares": self.shares, "runs": self.runs, "values": self.values}
        arrays |= {"tilts": self.tilts, "table": self.table}
        if self.leads.size:
            arrays["leads"] = self.leads
        if self.products.first.size:
            own = self.products
            arrays |= {"products.first": own.first, "products.second": own.second, "products.weights": own.weights}
        return {f"{name}.{part}": array for part, array in arrays.items()}

    def choose(self, predictor: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a run for each row, raked to the column's shares, shape (n,).

        Args:
            predictor: W φ(before) + V π(before), shape (n, q), float32.
            rng: source of (public) randomness.
        """
        runs = np.empty(len(predictor), dtype=np.int64)
        for start in range(0, runs.size, SAMPLING.block_rows):
            some = slice(start, start + SAMPLING.block_rows)
            runs[some] = chosen(predictor[some].T, self.values, self.tilts, rng, self.table)
        return runs

    def without(self, cell: int) -> SoftmaxColumn:
        """Return the column given that rows have not a cell, nor the run that holds it alone."""
        rest = np.arange(self.shares.size) != cell
        others = ~np.isin(np.arange(self.tilts.size), self.runs_of(np.array([cell])))
        shares, table = shares_among(self.shares, rest), shares_among(self.table, others)
        return replace(self, shares=shares, table=table, tilts=np.where(others, self.tilts, _NEVER))

    def runs_of(self, cells: np.ndarray) -> np.ndarray:
        """Return the runs that hold these cells alone, shape (m,)."""
        others = np.delete(self.runs, cells)
        return np.setdiff1d(self.runs[cells], others)

    def cells(self, runs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a cell for each run, drawn by the shares within it, shape (n,)."""
        order = np.argsort(self.runs, kind="stable")
        if order.size == self.tilts.size:
            return order[runs]
        cumulative = np.cumsum(self.shares[order])
        ends = np.searchsorted(self.runs[order], np.arange(self.tilts.size), side="right")
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
        columns: all columns.
        order: places of the columns in the order in which they are drawn.
        weights: W, shape (d, d): a row for each feature of a column, entries at features of those before it.
    """

    columns: tuple[SoftmaxColumn, ...]
    order: np.ndarray
    weights: np.ndarray

    def blocks(self) -> list[slice]:
        """Return the slice of each column's features."""
        ends = np.cumsum([column.values.shape[1] for column in self.columns])
        return [slice(int(e) - c.values.shape[1], int(e)) for e, c in zip(ends, self.columns, strict=True)]

    @property
    def owner(self) -> np.ndarray:
        """Column of each of what leads, shape (l,)."""
        return np.repeat(np.arange(len(self.columns)), [column.leads.shape[1] for column in self.columns])

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The columns in their order, with what each is predicted by."""
        blocks, steps, owner = self.blocks(), [], self.owner
        positions = np.concatenate([np.zeros(0, dtype=np.int64), *(np.r_[blocks[j]] for j in self.order)])
        start = 0
        for j in self.order:
            column = self.columns[j]
            size, own = column.values.shape[1], column.products
            weights = self.weights[blocks[j]][:, positions[:start]].astype(np.float32)
            places = np.flatnonzero(weights.any(axis=0))
            if places.size < _FEW * start:
                weights = weights[:, places]
            else:
                places = None
            values = np.ascontiguousarray(column.values.T, dtype=np.float32)
            leads = np.flatnonzero(owner == j), np.ascontiguousarray(column.leads.T, dtype=np.float32)
            products = replace(own, weights=own.weights.astype(np.float32))
            block, weights = slice(start, start := start + size), np.ascontiguousarray(weights)
            steps.append(Step(int(j), block, weights, places, values, *leads, products))
        return tuple(steps)

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return cells of n rows, shape (n, columns)."""
        return self.followed(np.empty((n, 0), dtype=np.int64), rng, raked=True)

    def followed(
        self,
        known: np.ndarray,
        rng: np.random.Generator,
        *,
        rough: int = 0,
        never: Mapping[int, np.ndarray] | None = None,
        raked: bool = False,
    ) -> np.ndarray:
        """Return cells of rows whose first drawn columns are known, shape (n, columns): the law given these, exactly.

        Args:
            known: cells of the columns 0 … m − 1, which come first in the chain's order, shape (n, m).
            rng: source of (public) randomness.
            rough: of how many of these, the last ones, only the run is known, in which a cell is drawn.
            never: place of a column to cells that rows have not: its run is drawn given that it is none that holds
                such cells alone, if a row's law leaves any other.
            raked: whether blocks of rows are raked to the columns' shares; those given what is known differ.
        """
        n, m = known.shape
        barred = {j: self.columns[j].runs_of(cells) for j, cells in (never or {}).items()}
        cells = np.empty((len(self.columns), n), dtype=np.int32)
        with np.errstate(all="ignore"):
            for start in range(0, n, SAMPLING.block_rows):
                some = known[start : start + SAMPLING.block_rows]
                rows = DrawnRows.of(self, len(some))
                for step in self.steps[:m]:
                    rows.keep(step, self.columns[step.column].runs[some[:, step.column]])
                for step in self.steps[m:]:
                    rows.draw(step, rng, raked=raked, never=barred.get(step.column))
                runs = rows.runs
                del rows  # whose features are far more
                cells[:, start : start + len(some)] = self.cells(runs, rng, dict(enumerate(some[:, : m - rough].T)))
        return cells.T

    def cells(self, runs: np.ndarray, rng: np.random.Generator, known: Mapping[int, np.ndarray | int]) -> np.ndarray:
        """Return cells, shape (columns, n): those known, others drawn for the runs."""
        cells = np.empty_like(runs)
        for j, column in enumerate(self.columns):
            cells[j] = known[j] if j in known else column.cells(runs[j].astype(np.int64), rng)
        return cells

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the model as named float64 and int64 arrays."""
        arrays = {"order": self.order, "weights": self.weights}
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
        order = require_array(arrays, "order", np.int64, (len(n_cells),))
        require_well_formed(np.array_equal(np.sort(order), np.arange(len(n_cells))), "order")
        columns = tuple(_read_column(arrays, f"column.{j}", cells) for j, cells in enumerate(n_cells))
        d = sum(column.values.shape[1] for column in columns)
        chain = cls(columns, order, require_array(arrays, "weights", np.float64, (d, d)))
        owner, turn = chain.owner, np.argsort(order)
        for j, column in enumerate(columns):
            places = np.concatenate([column.products.first, column.products.second])
            inside = bool(((places >= 0) & (places < owner.size)).all())
            require_well_formed(inside and bool((turn[owner[places]] < turn[j]).all()), f"column.{j}.products.first")
        return chain


@dataclass(frozen=True, slots=True)
class Step:
    """One column's turn.

    Attributes:
        column: its place among the columns.
        block: of its features, in drawing order.
        weights: W at features before it, shape (q, m), float32.
        places: which of the features before it these are, shape (m,); None for all.
        values: features of its runs, shape (q, r), float32.
        led: places of what leads it among what leads all columns, shape (l,).
        leads: what leads it, of its runs, shape (l, r), float32.
        products: that it is drawn given, float32.
    """

    column: int
    block: slice
    weights: np.ndarray
    places: np.ndarray | None
    values: np.ndarray
    led: np.ndarray
    leads: np.ndarray
    products: Interactions


@dataclass(frozen=True, slots=True)
class DrawnRows:
    """Rows while they are drawn.

    Attributes:
        chain: that draws them.
        features: in drawing order, shape (d, n), float32; those of columns that are not drawn yet hold nothing.
        leads: of all columns, shape (l, n), float32, likewise.
        runs: of each column, shape (columns, n), int32.
    """

    chain: SoftmaxChain
    features: np.ndarray
    leads: np.ndarray
    runs: np.ndarray

    @classmethod
    def of(cls, chain: SoftmaxChain, n: int) -> DrawnRows:
        """Return n rows, none of whose columns is drawn."""
        features = np.empty((len(chain.weights), n), dtype=np.float32)
        leads = np.empty((chain.owner.size, n), dtype=np.float32)
        return cls(chain, features, leads, np.zeros((len(chain.columns), n), dtype=np.int32))

    def predictor(self, step: Step) -> np.ndarray:
        """Return W φ(before) + V π(before) of the rows, shape (q, n), float32."""
        own = step.products
        predictor = step.weights @ self.features[slice(step.block.start) if step.places is None else step.places]
        for start in range(0, own.first.size, _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            predictor += own.weights[:, some] @ (self.leads[own.first[some]] * self.leads[own.second[some]])
        return predictor

    def draw(
        self, step: Step, rng: np.random.Generator, *, raked: bool = False, never: np.ndarray | None = None
    ) -> None:
        """Draw a column, its runs raked to its shares or not, and some of them left out."""
        column = self.chain.columns[step.column]
        table = column.table if raked else None
        self.keep(step, chosen(self.predictor(step), column.values, column.tilts, rng, table, never))

    def keep(self, step: Step, runs: np.ndarray) -> None:
        """Keep a column's runs."""
        self.runs[step.column] = runs
        self.features[step.block] = np.take(step.values, runs, axis=1)
        if step.led.size:
            self.leads[step.led] = np.take(step.leads, runs, axis=1)


def _read_column(arrays: Mapping[str, np.ndarray], name: str, cells: int) -> SoftmaxColumn:
    shares = require_array(arrays, f"{name}.shares", np.float64, (cells,))
    require_well_formed(add_to_one(shares), f"{name}.shares")
    tilts = require_array(arrays, f"{name}.tilts", np.float64, (None,))
    runs = require_array(arrays, f"{name}.runs", np.int64, (cells,))
    require_well_formed(np.array_equal(np.unique(runs), np.arange(tilts.size)), f"{name}.runs")
    values = require_array(arrays, f"{name}.values", np.float64, (tilts.size, None))
    leads = np.zeros((tilts.size, 0))
    if f"{name}.leads" in arrays:
        leads = require_array(arrays, f"{name}.leads", np.float64, (tilts.size, None))
    table = require_array(arrays, f"{name}.table", np.float64, tilts.shape)
    require_well_formed(add_to_one(table), f"{name}.table")
    products = _read_products(arrays, f"{name}.products", values.shape[1])
    return SoftmaxColumn(shares, runs, values, leads, tilts, table, products)


def _read_products(arrays: Mapping[str, np.ndarray], name: str, q: int) -> Interactions:
    if arrays.keys().isdisjoint(f"{name}.{part}" for part in ("first", "second", "weights")):
        return Interactions.none(q)
    first = require_array(arrays, f"{name}.first", np.int64, (None,))
    second = require_array(arrays, f"{name}.second", np.int64, first.shape)
    return Interactions(first, second, require_array(arrays, f"{name}.weights", np.float64, (q, first.size)))
