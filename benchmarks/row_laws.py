"""A law of rows in context, for `row_model.py`: clipped sums of pairs of columns, a mixture near them, draws.

Every person's rows are bounded together. With g_j(r, s) the product of the features of rows r and s in column j, and W
the weights of pairs of columns, what a person adds to all sums has squared norm ½ Σ_{r,s} g(r, s)ᵀ W g(r, s).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from sfumato.methods.tables.mixture_fit import MixtureEffort, PairTargets, fit_mixture, rank_bumps
from sfumato.models.tables.product_mixture import ProductMixture

Settings = Mapping[str, Any]
SETTINGS: dict[str, Any] = {
    # parts of the squared budget: of a lone table below, the root's ÷ the table's; of each table the margins'
    "lone root": 0.3, "margins": 0.25, "root margins": 0.3,
    # clip norms ÷ those of a person's mean rows, all unlike
    "margin clip": 1.5, "pair clip": 1.5, "root clip": 1.1,
    "cells": 64, "runs": 8, "date runs": 20, "mean runs": 5, "remaining": 3,
    "components": 120, "steps": 400, "independence": 100.0, "tilts": 2, "known": 0.3,
    # weights of pairs: two own columns; with the same in the row before, another there; with what is above
    "own": 1.0, "before": 1.0, "before other": 0.1, "given": 0.3, "context": 0.05,
    "date before": 0.05, "date label": 0.2, "absolute own": 0.1, "absolute given": 0.03,
    "mean base": 0.25, "mean mean": 0.15, "size power": 0.5,
    # most pairs of labels that are told by two rows before, from so many rows on; rows from which dates come first
    "nested": 128, "nested rows": 4.0, "dates first": 15.0,
}  # fmt: skip
_AT_ONCE, _PAIRS_AT_ONCE, _SCALE, _CONSTANT = 20_000, 400_000, 100, 0.1


def gaussian(epsilon: float, delta: float) -> float:
    """Return the least deviation of Gaussian noise at sensitivity 1, by its exact δ; 0 of no ε."""
    if not epsilon:
        return 0.0
    missed = lambda s: ndtr(0.5 / s - epsilon * s) - np.exp(epsilon) * ndtr(-0.5 / s - epsilon * s) - delta  # noqa: E731
    return float(brentq(missed, 0.02, 500))


@dataclass
class Column:
    """A column of rows in context.

    Attributes:
        name: of the column.
        codes: of each row.
        size: how many codes there are.
        ordered: how many, the first ones, have an order; 0 of labels.
        role: `own`, `before` (of the row before), or `given`.
        of: the own column that it is a copy of; `absolute` of the date that a distance leads to.
        groups: of each code that of a coarser label; None without.
        mean: whether it is a person's mean.
    """

    name: str
    codes: np.ndarray
    size: int
    ordered: int = 0
    role: str = "own"
    of: str = ""
    groups: np.ndarray | None = None
    mean: bool = False


def pick(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return an index for each row of weights."""
    sums = np.cumsum(weights, axis=1)
    return np.minimum((sums < rng.random((len(weights), 1)) * sums[:, -1:]).sum(axis=1), weights.shape[1] - 1)


def features(column: Column, law: np.ndarray) -> np.ndarray:
    """Return functions of a column's codes, centred under a law: indicators, of numbers of halves, quarters, … too."""
    single = np.eye(column.size) - law
    if column.groups is not None:
        coarse = np.eye(int(column.groups.max()) + 1)[column.groups]
        within = law / (law @ coarse)[column.groups]
        fine = np.eye(column.size) - (column.groups[:, None] == column.groups) * within
        return np.hstack([np.sqrt(0.7) * (coarse - law @ coarse), np.sqrt(0.3) * fine])
    n = column.ordered
    if n <= 3:
        return single
    mass = np.maximum(law[:n], 1e-9) / np.maximum(law[:n], 1e-9).sum()
    rank, parts = np.cumsum(mass) - mass / 2, [single]
    for level in (level for level in (1, 2, 3) if 2**level < n):
        cells = np.unique(np.minimum((rank * 2**level).astype(int), 2**level - 1), return_inverse=True)[1]
        coarse = np.zeros((column.size, cells.max() + 1))
        coarse[np.arange(n), cells] = 1
        parts.append(coarse - law @ coarse)
    if column.size > n:
        gone = (np.arange(column.size) >= n).astype(float)[:, None]
        parts.append(gone - law @ gone)
    return np.hstack(parts) / np.sqrt(len(parts))


def _weight(a: Column, b: Column, o: Settings) -> float:
    if a.role != "own":
        a, b = b, a
    if "absolute" in (a.of, b.of) and "own" in (a.role, b.role):
        return o["absolute own"] if a.role == b.role else o["absolute given"]
    if a.role == b.role == "own":
        return o["own"] * (o["mean mean"] if a.mean and b.mean else o["mean base"] if a.mean or b.mean else 1.0)
    if a.role == "own" and b.role == "before" and a.name.startswith("date "):
        return o["date before"] if b.ordered else o["date label"]
    if a.role == "own":
        return o["given"] if b.role == "given" else o["before"] if b.of == a.name else o["before other"]
    return 0.0 if a.role == b.role == "given" else o["context"]


def pair_weights(columns: Sequence[Column], o: Settings) -> np.ndarray:
    """Return how much each pair counts, more of more cells; 0 of two that are known of drawn rows."""
    weights = np.zeros((len(columns), len(columns)))
    for i, j in combinations(range(len(columns)), 2):
        a, b = columns[i], columns[j]
        weights[i, j] = weights[j, i] = _weight(a, b, o) * (a.size * b.size / _SCALE) ** o["size power"]
    return weights


def clipped(squares: np.ndarray, most: float) -> np.ndarray:
    """Return what persons count whose contributions have these squared norms."""
    return np.minimum(1.0, most / np.sqrt(np.maximum(squares, 1e-12)))


def row_pairs(owners: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield pairs of rows of one owner, each with itself too, and how often each counts; owners are in order."""
    counts = np.searchsorted(owners, owners, side="right") - np.arange(owners.size)
    first = 0
    while first < owners.size:
        ahead = np.cumsum(counts[first : first + _PAIRS_AT_ONCE])
        last = min(first + max(1, int(np.searchsorted(ahead, _PAIRS_AT_ONCE))), owners.size)
        some = counts[first:last]
        r = np.repeat(np.arange(first, last), some)
        s = r + np.arange(r.size) - np.repeat(np.cumsum(some) - some, some)
        yield r, s, np.where(r == s, 1.0, 2.0)
        first = last


class Pairs:
    """Sums over rows of products of the features of two columns, ÷ the number of rows, as they would be released.

    Args:
        columns: of the rows.
        laws: shares of their codes.
        owners: the person of each row, in order.
        std: of the noise at sensitivity 1; 0 without.
        clip: norm ÷ that of a person of mean rows.
        rows_each: mean rows of a person that has any, as drawn.
    """

    def __init__(
        self, columns: Sequence[Column], laws: Sequence[np.ndarray], owners: np.ndarray, o: Settings, *, std: float,
        clip: float, rows_each: float, rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.columns, self.laws = columns, laws
        self.features = [features(c, m) for c, m in zip(columns, laws, strict=True)]
        weights = pair_weights(columns, o)
        spread = np.array([float(m @ (f**2).sum(axis=1)) for m, f in zip(laws, self.features, strict=True)])
        row = float(0.5 * spread @ weights @ spread)
        most = clip * np.sqrt(row * max(rows_each, 1.0))
        counted = clipped(self._squares(owners, weights, row), most)[owners] if std else np.ones(owners.size)
        self.noise = std * most
        lost = self.noise / np.sqrt(_CONSTANT * row) * rng.normal() if std else 0.0
        self.total = max(float(counted.sum()) + lost, 1.0)
        self.effective = max(self.noise, 0.02 * np.sqrt(self.total))
        self.ends = np.cumsum([0, *(f.shape[1] for f in self.features)])
        self.values, self.precision = (np.zeros((self.ends[-1], self.ends[-1])) for _ in range(2))
        for i, j in combinations(range(len(columns)), 2):
            if weights[i, j]:
                block = self._products(i, j, columns[i].codes, columns[j].codes, counted)
                block += self.noise / np.sqrt(weights[i, j]) * rng.normal(size=block.shape)
                self._put(i, j, block / self.total, weights[i, j])

    def _squares(self, owners: np.ndarray, weights: np.ndarray, row: float) -> np.ndarray:
        grams = [(f @ f.T).astype(np.float32) for f in self.features]
        n, w = int(owners.max(initial=-1)) + 1, weights.astype(np.float32)
        squares = _CONSTANT * row * np.bincount(owners, minlength=n) ** 2.0
        for r, s, times in row_pairs(owners):
            g = np.stack([gram[c.codes[r], c.codes[s]] for gram, c in zip(grams, self.columns, strict=True)])
            squares += np.bincount(owners[r], 0.5 * np.einsum("ij,ij->j", g, w @ g) * times, n)
        return squares

    def _products(self, i: int, j: int, one: np.ndarray, other: np.ndarray, counted: np.ndarray | None) -> np.ndarray:
        sizes = self.columns[i].size, self.columns[j].size
        counts = np.bincount(one * sizes[1] + other, counted, sizes[0] * sizes[1]).reshape(sizes)
        return self.features[i].T @ counts @ self.features[j]

    def _put(self, i: int, j: int, block: np.ndarray, weight: float) -> None:
        here = slice(self.ends[i], self.ends[i + 1]), slice(self.ends[j], self.ends[j + 1])
        self.values[here], self.precision[here] = block, weight * (self.total / self.effective) ** 2
        self.values[here[::-1]], self.precision[here[::-1]] = block.T, self.precision[here].T

    def know(self, drawn: Mapping[str, np.ndarray], weight: float) -> None:
        """Put pairs of what is given of drawn rows beside what was measured."""
        given = [j for j, c in enumerate(self.columns) if c.role == "given"]
        for i, j in combinations(given, 2):
            one, other = (drawn[self.columns[place].name] for place in (i, j))
            self._put(i, j, self._products(i, j, one, other, None) / max(one.size, 1), weight)

    def law(self, share_stds: Sequence[float], o: Settings, epsilon: float) -> ProductMixture:
        """Return the mixture nearest to all of it."""
        least = 0.1 / self.total if self.noise else 1e-8
        each = zip(self.columns, self.laws, strict=True)
        targets = PairTargets(
            tuple(self.laws), tuple(self.features), self.values, self.precision,
            np.array([1 / max(std**2, least) for std in share_stds]),
            tuple(rank_bumps(m, c.ordered) if c.ordered > 3 else np.eye(c.size) for c, m in each),
        )  # fmt: skip
        effort = MixtureEffort(o["components"], o["steps"], o["independence"] * max(1.0, epsilon))
        return fit_mixture(targets, effort, np.random.default_rng(0))


class RowLaw:
    """A law of rows in context, from whose conditional laws rows are drawn.

    Args:
        names: of the columns.
        mixture: their law.
    """

    def __init__(self, names: Sequence[str], mixture: ProductMixture) -> None:
        self._place = {name: place for place, name in enumerate(names)}
        self.mixture = mixture
        self._logs = [np.log(np.maximum(table, 1e-12)) for table in mixture.tables]

    def draw(
        self, given: Mapping[str, np.ndarray], tilts: Mapping[str, np.ndarray], n: int, rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        """Return codes of columns given those of others.

        Args:
            given: codes, shape (n,) each.
            tilts: of each column that is drawn how much likelier each code is, 0 where it cannot be, shape (n, size).
            n: how many rows.
            rng: of the draw.
        """
        drawn = {name: np.empty(n, dtype=np.int64) for name in tilts}
        start = np.log(np.maximum(self.mixture.weights, 1e-300))
        for first in range(0, n, _AT_ONCE):
            some = slice(first, min(first + _AT_ONCE, n))
            logs = np.tile(start, (some.stop - first, 1))
            for name, codes in given.items():
                logs += self._logs[self._place[name]][codes[some]]
            for name, tilt in tilts.items():
                logs += np.log(np.maximum(tilt[some] @ self.mixture.tables[self._place[name]], 1e-12))
            component = pick(np.exp(logs - logs.max(axis=1, keepdims=True)), rng)
            for name, tilt in tilts.items():
                table = self.mixture.tables[self._place[name]][:, component].T
                drawn[name][some] = pick(tilt[some] * (table + 1e-200), rng)
        return drawn
