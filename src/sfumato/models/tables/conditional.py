"""A chain model given the cells of some columns: no rejection, whatever the columns.

The given columns are put first. Re-ordering the rows of a factor L and taking the QR decomposition of the transpose
gives the factor of the re-ordered moment. Then the innovations of the given cells are numbers, the probability of
these cells in a class is a product along the chain, Bayes' rule gives the classes, and the chain goes on from there.

Tilts and quantiles depend on the order of the columns, so they are found again by simulation, with a fixed stream.
Where nothing is clipped the order does not matter; where the chain clips, laws of two orders differ a little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sfumato.maths.streams import public_stream
from sfumato.models.tables.gaussian_chain import ChainModel, Known

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
