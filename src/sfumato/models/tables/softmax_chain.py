"""A table drawn column by column: each by a softmax over its runs of cells, whose logits are linear in features.

    p(run | class k, columns before) ∝ exp(t_k(run) + φ(run)ᵀ W_k φ(before))

φ are features of cells, fixed numbers of a release. With normal scores alone this is the Gaussian copula, exactly: the
logits of a normal variable given others are linear in it, up to a quadratic that t takes. Within a run, a cell is drawn
by its share.

Draws are systematic: rows of like predictors share out the unit interval, so that a block of rows has the shares that
the model says, up to one row, and each row has its own law.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.maths.arrays import add_to_one, require_array, require_shares, require_well_formed

_LARGEST_LOGIT = 1e30
_RAKING_ROUNDS, _RAKING_ROWS, _LARGEST_RATIO, _SMALLEST = 3, 2, 4.0, 1e-30
SYSTEMATIC_ROWS = 16_384
"""Rows that share out the unit interval: rows of a larger number do not depend on how many there are."""


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
        """Return a run for each row: see `choose`."""
        return choose(predictor, self.values, self.tilts, classes, rng, self.tables)

    def cells(self, runs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a cell for each run, drawn by the shares within it, shape (n,)."""
        order = np.argsort(self.runs, kind="stable")
        cumulative = np.cumsum(self.shares[order])
        ends = np.searchsorted(self.runs[order], np.arange(self.tilts.shape[1]), side="right") - 1
        bounds = np.concatenate([[0.0], cumulative[ends]])
        low, high = bounds[runs], bounds[runs + 1]
        place = np.searchsorted(cumulative, low + systematic(runs, rng) * (high - low), side="right")
        first = np.searchsorted(self.runs[order], runs, side="left")
        return order[np.clip(place, first, ends[runs])]


@dataclass(frozen=True, slots=True)
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

    def blocks(self) -> list[slice]:
        """Return the slice of each column's features."""
        ends = np.cumsum([column.values.shape[1] for column in self.columns])
        return [slice(int(e) - c.values.shape[1], int(e)) for e, c in zip(ends, self.columns, strict=True)]

    def draw(self, classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return cells for rows of some classes, shape (n, columns)."""
        cells = np.zeros((classes.size, len(self.columns)), dtype=np.int64)
        features = np.zeros((classes.size, self.weights.shape[1]), dtype=np.float32)
        blocks = self.blocks()
        with np.errstate(all="ignore"):
            for j in self.order:
                column, block = self.columns[j], blocks[j]
                predictor = self.predictor(features, classes, block)
                runs = column.choose(predictor, classes, rng)
                cells[:, j] = column.cells(runs, rng)
                features[:, block] = column.values[runs]
        return cells

    def followed(self, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return cells of rows whose first drawn columns are known, shape (n, columns): the law given these, exactly.

        Blocks of rows are not raked to the columns' shares: those given what is known differ.

        Args:
            known: cells of the columns 0 … m − 1, which come first in the chain's order, shape (n, m).
            rng: source of (public) randomness.
        """
        n, m = known.shape
        cells = np.zeros((n, len(self.columns)), dtype=np.int64)
        cells[:, :m] = known
        features = np.zeros((n, self.weights.shape[1]), dtype=np.float32)
        classes, blocks = np.zeros(n, dtype=np.int64), self.blocks()
        with np.errstate(all="ignore"):
            for j in range(m):
                column = self.columns[j]
                features[:, blocks[j]] = column.values[column.runs[known[:, j]]]
            for j in self.order[m:]:
                column, block = self.columns[j], blocks[j]
                runs = choose(self.predictor(features, classes, block), column.values, column.tilts, classes, rng)
                cells[:, j] = column.cells(runs, rng)
                features[:, block] = column.values[runs]
        return cells

    def sample(
        self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return classes, shape (n,), and cells, shape (n, columns), of n rows; classes are drawn if not given."""
        if classes is None:
            classes = self.draw_classes(n, rng)
        return classes, self.draw(classes, rng)

    def draw_classes(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return n classes, drawn systematically by their shares."""
        numbers = systematic(np.arange(n) // SYSTEMATIC_ROWS, rng)
        return np.minimum(
            np.searchsorted(np.cumsum(self.class_shares), numbers, side="right"), self.class_shares.size - 1
        )

    def predictor(self, features: np.ndarray, classes: np.ndarray, block: slice) -> np.ndarray:
        """Return W φ(before) of a column's features, shape (n, q), float32."""
        return predicted(features, classes, self.weights[:, block])

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


def predicted(features: np.ndarray, classes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return W φ of each row, with the weights of its class, shape (n, q), float32.

    Args:
        features: φ, shape (n, m), float32.
        classes: shape (n,).
        weights: W, shape (k, q, m), or (1, q, m) for all classes.
    """
    if len(weights) == 1:
        return features @ weights[0].T.astype(np.float32)
    found = np.empty((classes.size, weights.shape[1]), dtype=np.float32)
    for k in np.unique(classes):
        members = classes == k
        with np.errstate(invalid="ignore"):  # some linear algebra libraries say so of finite numbers
            found[members] = features[members] @ weights[k].T.astype(np.float32)
    return found


def probabilities(predictor: np.ndarray, values: np.ndarray, tilts: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return P(run) for each row, shape (n, r), float32.

    Args:
        predictor: W φ(before), shape (n, q).
        values: features of each run, shape (r, q).
        tilts: shape (k, r).
        classes: shape (n,).
    """
    logits = predictor @ values.T.astype(np.float32)
    logits += tilts.astype(np.float32)[classes]
    # a stranger's arrays may overflow: what is no number counts as no logit at all
    np.nan_to_num(logits, copy=False, nan=0.0, posinf=_LARGEST_LOGIT, neginf=-_LARGEST_LOGIT)
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def choose(
    predictor: np.ndarray,
    values: np.ndarray,
    tilts: np.ndarray,
    classes: np.ndarray,
    rng: np.random.Generator,
    tables: np.ndarray | None = None,
) -> np.ndarray:
    """Return a run for each row, drawn systematically among rows of like predictors, shape (n,).

    Args:
        predictor: shape (n, q).
        values: features of each run, shape (r, q).
        tilts: shape (k, r).
        classes: shape (n,).
        rng: source of (public) randomness.
        tables: P(run | class) that blocks of rows are raked to, shape (k, r); by default they are not.
    """
    runs = np.empty(classes.size, dtype=np.int64)
    for start in range(0, classes.size, SYSTEMATIC_ROWS):
        rows = slice(start, start + SYSTEMATIC_ROWS)
        chances = probabilities(predictor[rows], values, tilts, classes[rows])
        if tables is not None:
            _rake(chances, classes[rows], tables)
        cumulative = np.cumsum(chances, axis=1, dtype=np.float64)
        likely = predictor[rows, _widest(predictor[rows])] if predictor.shape[1] else np.zeros(len(chances))
        draws = systematic(classes[rows], rng, likely) * cumulative[:, -1]
        runs[rows] = np.minimum((cumulative <= draws[:, None]).sum(axis=1), values.shape[0] - 1)
    return runs


_GOLDEN = (np.sqrt(5) - 1) / 2
_UINT16 = np.iinfo(np.uint16).max


def _rake(chances: np.ndarray, classes: np.ndarray, tables: np.ndarray) -> None:
    """Bring the rows of each class to its shares, in place: the more of them there are, the nearer.

    What earlier columns happen to be in a block moves this column's shares from the law's; one step of iterative
    proportional fitting and another take most of that out, which halves the error of samples' 1-way tables.
    """
    for k in np.unique(classes):
        members = np.flatnonzero(classes == k)
        damping = members.size / (members.size + _RAKING_ROWS * tables.shape[1])
        part = chances[members]
        for _ in range(_RAKING_ROUNDS):
            ratio = tables[k] / np.maximum(part.mean(axis=0, dtype=np.float64), _SMALLEST)
            part *= np.clip(ratio, 1 / _LARGEST_RATIO, _LARGEST_RATIO).astype(np.float32) ** damping
            part /= np.maximum(part.sum(axis=1, keepdims=True), _SMALLEST)
        chances[members] = part


def _widest(predictor: np.ndarray) -> int:
    return int(np.argmax(np.nan_to_num(predictor).var(axis=0)))


def _order(keys: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """Return the order by keys and, where these are equal, by ties: `np.lexsort((ties, keys))`, several times faster.

    Most keys differ: a plain sort puts them in order, and only those that are equal are sorted by both.
    """
    order = np.argsort(keys)
    ordered = keys[order]
    equal = ordered[1:] == ordered[:-1]
    if not equal.any():
        return order
    places = np.flatnonzero(np.concatenate([equal, [False]]) | np.concatenate([[False], equal]))
    rows = order[places]
    rows = rows[np.argsort(ties[rows])]
    order[places] = rows[np.argsort(keys[rows], kind="stable")]
    return order


def systematic(groups: np.ndarray, rng: np.random.Generator, keys: np.ndarray | None = None) -> np.ndarray:
    """Return a uniform number for each row; rows of one group share out [0, 1), and so do neighbours by their key.

    The rows of a group, in order of their keys, get the places of a Kronecker sequence with the golden ratio from a
    random start: each number is uniform, and any stretch of rows fills the interval as evenly as there is room.

    Args:
        groups: shape (n,), whole numbers ≥ 0.
        keys: of rows, shape (n,); by default the order is random.
        rng: source of (public) randomness.
    """
    n = groups.size
    ties = rng.random(n)
    most = int(groups.max(initial=0))
    order = np.argsort(ties) if keys is None else _order(keys, ties)
    if most:
        narrow = groups[order].astype(np.uint16) if most <= _UINT16 else groups[order]  # sorted by radix
        order = order[np.argsort(narrow, kind="stable")]
    starts = rng.random(most + 1)
    numbers = np.empty(n)
    numbers[order] = (starts[groups[order]] + _GOLDEN * np.arange(n)) % 1.0
    return numbers
