"""Scores of regressions at stated coefficients, as data: the sums that they set to 0, away from their zero.

A regression of y on terms x solves Σ x·(y − μ(xᵀb)) = 0. A record's score at coefficients b that are no record's doing
is s = x·(y − μ(xᵀb)): the sum over records says how far b is from the solution, and takes no more numbers than there
are terms. The scores of several regressions are one vector, turned by a public matrix and clipped, so that the sum has
a bounded part of each record: one that is far out in one regression is seldom so in all.

Each column's part in a term is a function of its cell, and a term the product of these: an interaction is a term too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from scipy import special

from sfumato.measurements.cells import BaseCells, Cells

ONE = 1 << 20
"""What functions of cells, coefficients and clipped scores are whole numbers of: 1 is 2^20 of them."""
MOST_TERMS, MOST_COLUMNS = 64, 32
MOST_TOGETHER = 128
"""Terms of the regressions whose scores are one vector."""
LARGEST_NUMBER = 1 << 50
Link = Literal["identity", "logit", "log"]
LINKS: tuple[Link, ...] = ("identity", "logit", "log")
_RADIUS = ONE * (1 - 2.0**-40)  # what scores are scaled to: rounding of the factor cannot take them beyond ONE
_REACH, _PARTS = 30, 1 << 8  # of a linear predictor, whose means are looked up in steps: equal on every machine


@dataclass(frozen=True, eq=False)
class EstimatingEquation:
    """Whose zero a regression's coefficients are, Σ x·(y − μ(xᵀb)), at stated coefficients.

    A record with a missing cell in one of the columns has terms of 0.

    Attributes:
        formula: of the regression.
        axes: cells of the columns, each cell by itself.
        functions: by column, whole numbers of 2^-20, int64, shape (cells, m): the first is 1 where the cell counts, and
            0 where it is missing; all are at most 1 in size.
        products: the functions of each column whose product is the left side (first line) and each term, int64, shape
            (1 + k, columns).
        coefficients: b, whole numbers of 2^-20, int64, shape (k,).
        link: μ is the identity, the logistic function, or the exponential.
        offset: added to xᵀb, in 2^-20.
    """

    formula: str
    axes: tuple[Cells, ...]
    functions: tuple[np.ndarray, ...]
    products: np.ndarray
    coefficients: np.ndarray
    link: Link = "identity"
    offset: int = 0

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it is about."""
        return frozenset(axis.column for axis in self.axes)

    def sides(self, base: BaseCells) -> tuple[np.ndarray, list[np.ndarray]]:
        """The left side of rows, and each term, shape (n,): 0 where a cell is missing."""
        cells = [base.of(axis) for axis in self.axes]
        left, *terms = (self._product(line, cells) for line in self.products)
        return left, terms

    def present(self, base: BaseCells) -> np.ndarray:
        """1 for rows without a missing cell in its columns, else 0, shape (n,)."""
        return self._product(np.zeros(len(self.axes), dtype=np.int64), [base.of(axis) for axis in self.axes])

    def _product(self, line: np.ndarray, cells: list[np.ndarray]) -> np.ndarray:
        product = np.ones(cells[0].size)
        for table, function, column in zip(self._tables, line, cells, strict=True):
            product *= table[function][column]
        return product

    @cached_property
    def _tables(self) -> list[np.ndarray]:
        return [np.ascontiguousarray(functions.T) / ONE for functions in self.functions]

    def residual(self, left: np.ndarray, terms: list[np.ndarray]) -> np.ndarray:
        """Y − μ(xᵀb) of rows, shape (n,)."""
        predictor = np.full(left.size, self.offset / ONE)
        for coefficient, term in zip(self.coefficients, terms, strict=True):
            predictor += coefficient / ONE * term
        return left - mean_of(self.link, predictor)

    def fits(self) -> bool:
        """Whether sizes and shapes are as they have to be."""
        k, axes = self.coefficients.size, len(self.axes)
        if not (0 < k <= MOST_TERMS and 0 < axes <= MOST_COLUMNS and len(self.columns) == axes == len(self.functions)):
            return False
        if any(axis.groups is not None for axis in self.axes) or self.link not in LINKS:
            return False
        if any(f.ndim != 2 or len(f) != axis.size for f, axis in zip(self.functions, self.axes, strict=True)):
            return False
        if self.products.shape != (1 + k, axes) or abs(self.offset) > LARGEST_NUMBER:
            return False
        known = np.array([functions.shape[1] for functions in self.functions])
        inside = bool((self.products >= 0).all() and (self.products < known).all())
        inside = inside and all(_within(functions, ONE) for functions in self.functions)
        return inside and _within(self.coefficients, LARGEST_NUMBER)


@dataclass(frozen=True, eq=False)
class ScoreQuery:
    """Sums of the scores of one or several regressions, turned and clipped as one vector.

    With whole numbers z of a record, value: Σ z/2^20, shape (K,). z = ⌊y·min(1, 2^20/‖y‖)⌋ toward 0 for y = ⌊T s⌋ and
    s the parts of the record in all equations side by side, so that ‖z‖ ≤ 2^20: a record adds a vector of norm at most
    1, however many regressions there are. One of weight w/2^20 adds z·w/2^20, toward 0.

    Attributes:
        equations: of the regressions, of K terms together.
        turn: T, whole numbers, int64, shape (K, K).
        weight: as in `MarginalQuery`.
    """

    kind: ClassVar[str] = "scores"
    whole_rows: ClassVar[int] = 0

    equations: tuple[EstimatingEquation, ...]
    turn: np.ndarray
    weight: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return (sum(equation.coefficients.size for equation in self.equations),)

    @property
    def cells(self) -> list[Cells]:
        """Every column's cells, in each equation."""
        return [axis for equation in self.equations for axis in equation.axes]

    def scores(self, base: BaseCells) -> np.ndarray:
        """Z of rows, whole numbers in float64, shape (n, K).

        Every step is one operation on each row by itself: no product of matrices, whose rounding may depend on how many
        rows there are.
        """
        parts = []
        for equation in self.equations:
            left, terms = equation.sides(base)
            residual = equation.residual(left, terms)
            parts += [term * residual for term in terms]
        turned = np.empty((parts[0].size, len(parts)))
        for i, line in enumerate(self.turn.astype(np.float64)):
            total = np.zeros(parts[0].size)
            for number, part in zip(line, parts, strict=True):
                total += number * part
            turned[:, i] = np.trunc(total)
        squares = np.zeros(parts[0].size)
        for i in range(turned.shape[1]):
            squares += turned[:, i] ** 2
        long = squares > float(ONE) ** 2
        factors = np.ones(parts[0].size)
        factors[long] = _RADIUS / np.sqrt(squares[long])
        return np.where(long[:, None], np.trunc(turned * factors[:, None]), turned)

    def fault(self, kinds: Mapping[str, object], weight: str) -> str | None:
        """The fault for columns of these kinds and their weight, or of parts that do not fit; None without."""
        if self.weight not in ("", weight):
            return f"counts records by {self.weight!r}, which is not the schema's weight"
        if fault := next((fault for axis in self.cells if (fault := axis.fault(kinds))), None):
            return fault
        (size,) = self.shape
        fits = 0 < size <= MOST_TOGETHER and self.turn.shape == (size, size) and _within(self.turn, LARGEST_NUMBER)
        if fits and all(equation.fits() for equation in self.equations):
            return None
        return f"has scores of {', '.join(sorted({repr(axis.column) for axis in self.cells}))} in no order"


def _within(numbers: np.ndarray, most: int) -> bool:
    return bool((numbers >= -most).all() and (numbers <= most).all())


def mean_of(link: Link, predictor: np.ndarray) -> np.ndarray:
    """μ of linear predictors, in steps of 1/256 from -30 to 30 but for the identity, shape (n,)."""
    if link == "identity":
        return predictor
    steps = np.rint(np.clip(np.nan_to_num(predictor), -_REACH, _REACH) * _PARTS).astype(np.int64)
    return _MEANS[link][steps + _REACH * _PARTS]


_PLACES = np.arange(-_REACH * _PARTS, _REACH * _PARTS + 1) / _PARTS
_EXACT: dict[Link, np.ndarray] = {"logit": special.expit(_PLACES), "log": np.exp(np.minimum(_PLACES, 1.0))}
_MEANS = {link: np.rint(means * 2.0**30) / 2.0**30 for link, means in _EXACT.items()}
