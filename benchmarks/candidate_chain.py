"""The candidate's samples: a chain of softmaxes with the moments of a mixture, the target last, given products too.

    min over a, W   mean log Σ_x m(x) exp(a(x) + φ(x)ᵀ Wᵀ g) − ⟨W, C⟩ − a·m + ½ ridge |W|²

column by column on rows drawn so far; g are the functions of earlier columns, C their moments by the mixture. A target
of few classes comes last, and also gets products of two numbers' leading functions, of which moments by class were
measured: first the chain's own are taken, then these moved as far as what was measured stands above its noise.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from candidate_mixture import ProductMixture
from candidate_moments import run_shares
from candidate_statistic import Contrasts, class_of_cells
from scipy.optimize import minimize

from sfumato.maths.shrinkage import shrunk
from sfumato.methods.tables.features import ColumnShares
from sfumato.methods.tables.moment_entries import Entries
from sfumato.models.tables.softmax_chain import SoftmaxChain, SoftmaxColumn

ROWS, RIDGE, STEPS, RARE, HEARD = 12_000, 1e-3, 60, 1_000.0, 0.015
MOST_PRODUCTS, PRODUCT_RIDGE, LEAST_PRODUCT = 400, 3e-2, 1e-5


@dataclass(frozen=True)
class Products:
    """What a target is drawn given beside the functions of other columns.

    Attributes:
        column: its place.
        first: places of functions, shape (m,).
        second: places of those that these are multiplied by.
        weights: of the products, shape (q, m).
    """

    column: int
    first: np.ndarray
    second: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Part:
    """Some of what a column is drawn given.

    Attributes:
        rows: g, shape (n, d).
        functions: of the column's runs, shape (r, b).
        moments: C, shape (d, b).
        ridge: of the weights.
    """

    rows: np.ndarray
    functions: np.ndarray
    moments: np.ndarray
    ridge: float


def softmax_weights(parts: Sequence[Part], law: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Return W of each part, shapes (d, b), and a, shape (r,); parts are whitened by their rows' covariance."""
    n, root, logs = len(parts[0].rows), np.sqrt(law), np.log(law)
    whitenings = [
        np.linalg.inv(np.linalg.cholesky(p.rows.T @ p.rows / n + (p.ridge + 1e-6) * np.eye(p.rows.shape[1])))
        for p in parts
    ]
    ends = np.cumsum([0, *(p.moments.size for p in parts)])
    narrow = [(p.rows.astype(np.float32), p.functions.astype(np.float32)) for p in parts]

    def unpacked(v: np.ndarray) -> list[np.ndarray]:
        each = zip(parts, whitenings, ends, strict=False)
        return [w.T @ v[start : start + p.moments.size].reshape(p.moments.shape) for p, w, start in each]

    def value(v: np.ndarray) -> tuple[float, np.ndarray]:
        weights, shift = unpacked(v), v[ends[-1] :] / root
        x = np.tile((logs + shift).astype(np.float32), (n, 1))
        for (rows, functions), own in zip(narrow, weights, strict=True):
            x += (rows @ own.astype(np.float32)) @ functions.T
        largest = x.max(axis=1, keepdims=True)
        np.exp(np.maximum(x - largest, np.float32(-30)), out=x)
        sums = x.sum(axis=1, keepdims=True)
        x /= sums
        total, slopes = float((np.log(sums) + largest).mean(dtype=float)) - float(shift @ law), []
        for p, (rows, functions), white, own in zip(parts, narrow, whitenings, weights, strict=True):
            total += p.ridge / 2 * float((own**2).sum()) - float((own * p.moments).sum())
            slope = (rows.T @ (x @ functions)).astype(float) / n - p.moments + p.ridge * own
            slopes.append((white @ slope).ravel())
        return total, np.concatenate([*slopes, (x.mean(axis=0, dtype=float) - law) / root])

    options = {"maxiter": STEPS, "gtol": 2e-4, "ftol": 1e-7, "maxcor": 10}
    found = minimize(value, np.zeros(ends[-1] + law.size), jac=True, method="L-BFGS-B", options=options).x
    return unpacked(found), found[ends[-1] :] / root


class Chain:
    """A chain while it is fitted column by column."""

    def __init__(
        self,
        columns: Sequence[ColumnShares],
        law: ProductMixture,
        entries: Entries,
        target: int | None,
        contrasts: Contrasts | None,
    ) -> None:
        self._columns, self._law, self._contrasts = columns, law, contrasts
        few = target is not None and class_of_cells(columns[target]) is not None
        self._target = target if few else None
        self._starts = [entries.block(j).start for j in range(len(columns))]
        self._laws = [run_shares(column) for column in columns]
        common = [self._common(j) for j in range(len(columns))]
        self._places = [start + own for start, own in zip(self._starts, common, strict=True)]
        self._functions = [c.features.values[:, own] for c, own in zip(columns, common, strict=True)]
        self._means = [f.T @ table for f, table in zip(self._functions, law.tables, strict=True)]
        self._weights = np.zeros((1, entries.owner.size, entries.owner.size))
        self._runs = np.zeros((ROWS, len(columns)), dtype=np.int64)
        self._fitted: dict[int, SoftmaxColumn] = {}
        self.products: Products | None = None

    def _common(self, column: int) -> np.ndarray:
        """Functions, but those of rare values: fitted rows would be learnt by heart through them."""
        values = self._columns[column].features.values
        heavy = (self._laws[column][:, None] * values**4).sum(axis=0) <= RARE
        return np.flatnonzero(heavy)

    def _order(self) -> list[int]:
        """Columns that say most of others first; a target of few classes, or a number, last."""
        strength = np.zeros((len(self._columns), len(self._columns)))
        for j in range(len(self._columns)):
            for i in range(j):
                strength[i, j] = strength[j, i] = float((self._moments(i, j) ** 2).sum())
        order = np.argsort(-strength.sum(axis=0), kind="stable").tolist()
        if self._target is not None:
            order.remove(self._target)
            order.append(self._target)
        return order

    def _moments(self, i: int, j: int) -> np.ndarray:
        return (self._means[i] * self._law.weights) @ self._means[j].T

    def fit(self) -> SoftmaxChain:
        """Fit every column to rows of those before it."""
        rng, order = np.random.default_rng(0), self._order()
        for place, j in enumerate(order):
            self._fit_column(j, order[:place], rng)
        fitted = tuple(self._fitted[j] for j in range(len(self._columns)))
        return SoftmaxChain(np.ones(1), fitted, np.array(order, dtype=np.int64), self._weights)

    def _fit_column(self, j: int, before: Sequence[int], rng: np.random.Generator) -> None:
        column, law, tilts = self._columns[j], self._laws[j], np.log(self._laws[j])
        if before and self._places[j].size:
            places = np.concatenate([self._places[i] for i in before])
            wanted, last = np.concatenate([self._moments(i, j) for i in before]), j == self._target
            heard = np.abs(wanted).max(axis=1) > (0.0 if last else HEARD)
            rows = np.concatenate([self._functions[i][self._runs[:, i]] for i in before], axis=1)[:, heard]
            middle = rows.mean(axis=0)
            wanted = wanted[heard] - np.outer(middle, law @ self._functions[j])
            part = Part(rows - middle, self._functions[j], wanted, RIDGE)
            (weights, *_), shift = softmax_weights([part], law)
            if last and self._contrasts is not None:
                weights, shift = self._with_products(part, weights, shift, self._contrasts)
            tilts = tilts + shift - self._functions[j] @ (weights.T @ middle)
            self._weights[0][np.ix_(self._places[j], places[heard])] = weights.T
        values = column.features.values
        self._fitted[j] = SoftmaxColumn(column.shares, column.drawn, values, tilts[None], law[None])
        predictor = np.zeros((ROWS, values.shape[1]), dtype=np.float32)
        for i in before:
            block = slice(self._starts[i], self._starts[i] + self._columns[i].features.size)
            of_column = self._weights[0][self._starts[j] : self._starts[j] + values.shape[1], block]
            predictor += (self._drawn(i) @ of_column.T).astype(np.float32)
        self._runs[:, j] = self._fitted[j].choose(predictor, np.zeros(ROWS, dtype=np.int64), rng)

    def _drawn(self, column: int) -> np.ndarray:
        return self._columns[column].features.values[self._runs[:, column]]

    def _with_products(
        self, part: Part, weights: np.ndarray, shift: np.ndarray, found: Contrasts
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and shift of the target given products too, whose own weights are kept."""
        column, law = self._columns[found.target], self._laws[found.target]
        classes = np.zeros((found.shares.size, law.size))
        np.add.at(classes, (found.classes, column.drawn), column.shares)
        told = (classes / np.maximum(classes.sum(axis=0), 1e-300) - found.shares[:, None]).T  # runs, classes
        logits = np.log(law) + shift + (part.rows @ weights) @ part.functions.T
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances = chances / chances.sum(axis=1, keepdims=True) @ told
        drawn = np.concatenate([self._drawn(j) for j in range(len(self._columns))], axis=1)
        first, second, wanted = _measured_products(found, drawn[:, found.places], chances)
        if not first.size:
            return weights, shift
        first, second = found.places[first], found.places[second]
        products = drawn[:, first] * drawn[:, second]
        middle = products.mean(axis=0)
        parts = [part, Part(products - middle, told, wanted, PRODUCT_RIDGE)]
        (weights, own), shift = softmax_weights(parts, law)
        onto = column.features.values.T @ (law[:, None] * told)
        self.products = Products(found.target, first, second, (onto @ own.T).astype(np.float32))
        return weights, shift - told @ (own.T @ middle)


def _measured_products(
    found: Contrasts, drawn: np.ndarray, chances: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which products of leading functions go with the class otherwise than a chain says, and how.

    Args:
        found: moments by class.
        drawn: leading functions of simulated rows, shape (n, l).
        chances: of each class of the rows less its share, shape (n, k).

    Returns:
        Places of both functions, shapes (m,), and E[(1(class) − P(class)) φ φ'], shape (m, k).
    """
    first, second = np.nonzero(np.triu(found.owner[:, None] != found.owner, 1))
    shares = found.shares[:, None]
    measured = (found.values - shares[:, :, None] * found.values.sum(axis=0))[:, first, second]
    said = np.stack([(drawn * one[:, None]).T @ drawn / len(drawn) for one in chances.T])[:, first, second]
    parts = (1 - shares) ** 2 + (shares.size - 1) * shares**2
    noise = np.broadcast_to(found.variances[first, second] * np.maximum(parts, 1e-6), measured.shape)
    blocks = np.broadcast_to(found.owner[first] * len(found.owner) + found.owner[second], measured.shape)
    moved = shrunk((measured - said).ravel(), noise.ravel(), blocks.ravel())[0].reshape(measured.shape)
    strength = (moved**2).sum(axis=0)
    kept = np.argsort(-strength, kind="stable")[:MOST_PRODUCTS]
    kept = kept[strength[kept] > LEAST_PRODUCT]
    return first[kept], second[kept], (said + moved)[:, kept].T
