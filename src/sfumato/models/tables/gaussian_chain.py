"""A class-conditional Gaussian over the cells of a table, sampled column by column.

Within a class, a record is a vector x of blocks, one per column: indicators of groups of cells, centred at their
probabilities, and for some numeric columns a normal score. Its second moment is Σ = LLᵀ. Columns are drawn in order:
given the columns so far, the linear predictor of the next block is L[b, :b]·ε with the innovations ε of the drawn
values. For a group indicator the predictor *is* a conditional probability up to clipping at 0, so the chain has the
covariances of Σ between drawn values themselves, not between latent Gaussians that are rounded afterwards.
Clipping moves the marginals a little; factors found by simulation ("tilts", iterative proportional fitting) move
them back to the released ones.

Everything here is a function of released values.

A chain model given the cells of some columns: no rejection, whatever the columns.

The given columns are put first. Re-ordering the rows of a factor L and taking the QR decomposition of the transpose
gives the factor of the re-ordered moment. Then the innovations of the given cells are numbers, the probability of
these cells in a class is a product along the chain, Bayes' rule gives the classes, and the chain goes on from there.

Tilts and quantiles depend on the order of the columns, so they are found again by simulation, with a fixed stream.
Where nothing is clipped the order does not matter; where the chain clips, laws of two orders differ a little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.maths.arrays import require_array, require_shares, require_well_formed
from sfumato.maths.streams import public_stream
from sfumato.models.tables.gaussian_columns import ColumnModel, Step, read_column


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a record before it is drawn: the cells of its first columns, and their innovations."""

    cells: np.ndarray
    innovations: np.ndarray


@dataclass(frozen=True, slots=True)
class ChainModel:
    """The whole table.

    Attributes:
        class_shares: shape (k,), sum 1.
        columns: the columns other than the target, in drawing order.
        factors: lower Cholesky factor of the second moment in each class, shape (k, d, d).
    """

    class_shares: np.ndarray
    columns: tuple[ColumnModel, ...]
    factors: np.ndarray
    _caches: dict[tuple[int, int], Any] = field(default_factory=dict, compare=False, repr=False)

    def blocks(self) -> list[slice]:
        """Return the slice of each column's block in the vector."""
        ends = np.cumsum([column.width for column in self.columns])
        return [slice(int(end) - column.width, int(end)) for end, column in zip(ends, self.columns, strict=True)]

    def sample(
        self, n: int, rng: np.random.Generator, classes: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw records.

        Args:
            n: number of records.
            rng: source of (public) randomness.
            classes: of the records, shape (n,); drawn by their shares if not given.

        Returns:
            Classes, shape (n,), and cells, shape (n, number of columns), int64.
        """
        if classes is None:
            classes = rng.choice(self.class_shares.size, size=n, p=self.class_shares)
        cells = np.zeros((n, len(self.columns)), dtype=np.int64)
        # a stranger's factors may overflow; whatever the innovations then are, cells stay in range
        with np.errstate(all="ignore"):
            for k in np.unique(classes):
                members = np.flatnonzero(classes == k)
                cells[members] = self.draw(int(k), members.size, rng)
        return classes, cells

    def draw(self, k: int, n: int, rng: np.random.Generator, known: Known | None = None) -> np.ndarray:
        """Draw n records of class k: cells, shape (n, columns). The first columns may be known."""
        innovations = np.zeros((n, self.factors.shape[1]))
        cells = np.zeros((n, len(self.columns)), dtype=np.int64)
        first = 0
        if known is not None:
            first = known.cells.size
            cells[:, :first] = known.cells
            innovations[:, : known.innovations.size] = known.innovations
        for j, block in enumerate(self.blocks()):
            if j < first:
                continue
            step = self.step(k, j, block)
            predictor = innovations[:, : block.start] @ step.loading
            cells[:, j] = step.choose(predictor, rng)
            if block.stop > block.start:
                innovations[:, block] = (step.blocks.of(cells[:, j]) - predictor) @ step.whitener
        return cells

    def step(self, k: int, j: int, block: slice) -> Step:
        """Return what drawing column j in class k needs."""
        if (k, j) not in self._caches:
            self._caches[k, j] = Step.of(self.columns[j], k, self.factors[k], block)
        return self._caches[k, j]

    def calibrated(self, n: int, rng: np.random.Generator) -> ChainModel:
        """Return the model with tilts and quantiles set so that drawn marginals are the released ones.

        Simulates n records of every class, column by column, and fits each column's factors to the simulated
        predictors. Uses released values only.
        """
        tilts = [column.tilts.copy() for column in self.columns]
        quantiles = [None if c.quantiles is None else c.quantiles.copy() for c in self.columns]
        for k in range(self.class_shares.size):
            innovations = np.zeros((n, self.factors.shape[1]))
            for j, block in enumerate(self.blocks()):
                step = Step.of(self.columns[j], k, self.factors[k], block)
                predictor = innovations[:, : block.start] @ step.loading
                step = step.calibrated(predictor, rng)
                tilts[j][k] = step.tilts
                if (fitted := quantiles[j]) is not None:
                    fitted[k] = step.quantiles
                if block.stop > block.start:
                    drawn = step.blocks.of(step.choose(predictor, rng))
                    innovations[:, block] = (drawn - predictor) @ step.whitener
        columns = tuple(
            replace(column, tilts=tilt, quantiles=quantile)
            for column, tilt, quantile in zip(self.columns, tilts, quantiles, strict=True)
        )
        return ChainModel(self.class_shares, columns, self.factors)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the model as named float64 and int64 arrays."""
        arrays = {"class_shares": self.class_shares, "factors": self.factors}
        for j, column in enumerate(self.columns):
            arrays |= column.to_arrays(f"column.{j}")
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_cells: tuple[int, ...]) -> ChainModel:
        """Build a model from arrays that a stranger may have written.

        Args:
            arrays: as `to_arrays` gives them.
            n_cells: number of cells of each column, from the schema.

        Raises:
            ReleaseError: an array is missing, or has another shape or values than the schema allows.
        """
        shares = require_shares(arrays, "class_shares")
        columns = tuple(read_column(arrays, f"column.{j}", (shares.size, cells)) for j, cells in enumerate(n_cells))
        d = sum(column.width for column in columns)
        factors = require_array(arrays, "factors", np.float64, (shares.size, d, d))
        diagonal = np.diagonal(factors, axis1=1, axis2=2)
        require_well_formed(bool((diagonal > 0).all()) and not np.triu(factors, 1).any(), "factors")
        return cls(shares, columns, factors)


_CALIBRATION_ROWS = 20_000
_CALIBRATION_SEED = 0
_LEAST_DIAGONAL = 1e-150  # its inverse is still a number


def given_first(model: ChainModel, given: tuple[int, ...]) -> tuple[ChainModel, tuple[int, ...]]:
    """Return the model with the given columns first, calibrated anew, and its columns' places in the old one.

    Args:
        model: the chain.
        given: columns, in increasing order.
    """
    order = (*given, *(j for j in range(len(model.columns)) if j not in given))
    if order == tuple(range(len(model.columns))):
        return model, order
    blocks = model.blocks()
    entries = np.concatenate([np.arange(blocks[j].start, blocks[j].stop) for j in order])
    factors = np.stack([_lower(factor[entries]) for factor in model.factors])
    moved = ChainModel(model.class_shares, tuple(model.columns[j] for j in order), factors)
    with np.errstate(all="ignore"):
        return moved.calibrated(_CALIBRATION_ROWS, public_stream(_CALIBRATION_SEED)), order


def _lower(rows: np.ndarray) -> np.ndarray:
    """Return the lower triangular L with a positive diagonal and LLᵀ = AAᵀ, for square A."""
    # a stranger's factors may be as large as floats are: scaled, their squares are too
    scale = max(float(np.abs(rows).max(initial=0.0)), np.finfo(float).tiny)
    upper = np.linalg.qr((rows / scale).T).R
    lower = (upper * np.where(np.diagonal(upper) < 0, -1.0, 1.0)[:, None]).T
    np.fill_diagonal(lower, np.maximum(np.diagonal(lower), _LEAST_DIAGONAL))
    return lower * scale


@dataclass(frozen=True)
class ConditionalChain:
    """A chain given the cells of some columns.

    Attributes:
        model: the chain with the given columns first.
        order: place of each of its columns in the table.
        known: per class, what is given.
        probabilities: of the given cells in each class, shape (k,).
    """

    model: ChainModel
    order: tuple[int, ...]
    known: tuple[Known, ...]
    probabilities: np.ndarray

    @classmethod
    def of(cls, model: ChainModel, order: tuple[int, ...], cells: Mapping[int, int]) -> ConditionalChain:
        """Fix cells.

        Args:
            model: as `given_first` returns.
            order: as `given_first` returns.
            cells: the cell of every given column.
        """
        first = np.array([cells[j] for j in order[: len(cells)]], dtype=np.int64)
        with np.errstate(all="ignore"):
            found = [_know(model, k, first) for k in range(model.class_shares.size)]
        return cls(model, order, tuple(known for known, _ in found), np.array([p for _, p in found]))

    def posterior(self, shares: np.ndarray) -> np.ndarray | None:
        """Return P(class | given cells) for these shares of the classes; None if no class can have them."""
        weights = shares * self.probabilities
        total = weights.sum()
        return weights / total if total > 0 else None

    def sample(
        self, n: int, rng: np.random.Generator, shares: np.ndarray, classes: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw records.

        Args:
            n: number of records.
            rng: source of (public) randomness.
            shares: P(class | given cells).
            classes: of the records, shape (n,); drawn by these shares if not given.

        Returns:
            Classes, shape (n,), and cells, shape (n, columns), columns in the table's order.
        """
        if classes is None:
            classes = rng.choice(shares.size, size=n, p=shares)
        cells = np.zeros((n, len(self.order)), dtype=np.int64)
        with np.errstate(all="ignore"):
            for k in np.unique(classes):
                members = np.flatnonzero(classes == k)
                drawn = self.model.draw(int(k), members.size, rng, self.known[k])
                cells[members[:, None], np.array(self.order, dtype=np.int64)] = drawn
        return classes, cells


def _know(model: ChainModel, k: int, cells: np.ndarray) -> tuple[Known, float]:
    """Return the innovations of the first columns' cells in class k, and the probability of those cells."""
    innovations = np.zeros(0)
    probability = 1.0
    for j, (cell, block) in enumerate(zip(cells.tolist(), model.blocks()[: cells.size], strict=True)):
        step = model.step(k, j, block)
        predictor = (innovations @ step.loading)[None]
        probability *= step.probability(predictor, cell)
        residual = step.blocks.of(np.array([cell])) - predictor
        innovations = np.append(innovations, (residual @ step.whitener)[0])
    return Known(cells, innovations), probability if np.isfinite(probability) else 0.0
