"""A candidate for the model of tables, put in place of the present one: `model.py` measures it as `candidate`.

Not private by itself and in no release: it is fitted here by the product's own stages, whose sums and noise stay.

    statistic   second moments of all columns, the target among them with twice the weight, of one Gaussian; a number
                is √2 cos(πku) of its rank u, k = 1 … 10, 4 and 16 intervals of equal mass, and its runs, as orthonormal
                functions of weights that fall; a record is clipped at 1.2 times the mean of squared norms
    shrinkage   blocks of two columns and two levels of weight, about 0 or, of two numbers, about the Gaussian copula
                that their block makes likeliest, by empirical Bayes
    law         a mixture of products fitted to the shrunk moments (`candidate_mixture.py`)
    samples     a chain of softmaxes with the mixture's moments of leading functions, in closed form

Missing: moments by class of the target, areas, linked rows, priors, rules. Figures of a first trial are in
`docs/decisions/0096-a-lawful-model-of-tables.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from candidate_mixture import MixtureEffort, PairTargets, ProductMixture, fit_mixture, rank_bumps
from scipy.optimize import minimize

from sfumato.maths.shrinkage import shrunk
from sfumato.methods.tables import recipe, second_stage, settings, shares
from sfumato.methods.tables.clip_norms import clip_norm_of, mean_square
from sfumato.methods.tables.cross_moments import _pooled, _unclipped
from sfumato.methods.tables.features import SHAPE, ColumnShares, Features, level_features
from sfumato.methods.tables.moment_entries import Entries
from sfumato.models.tables.softmax_chain import SoftmaxChain, SoftmaxColumn

ORDERS, DECAY = 10, 0.85
PARTS = {"orders": 0.7, "4 intervals": 0.1, "16 intervals": 0.1, "runs": 0.1}
CLIP, MARGINALS = 1.2, 0.3
LEADING, FITTED_ROWS, RIDGE, STEPS, RARE = 16, 12_000, 1e-3, 60, 100.0
CORRELATIONS = np.unique(np.concatenate([sign * np.tanh(np.linspace(0, 3.2, 48)) for sign in (-1, 1)]))


def number_features(masses: np.ndarray, missing: bool, orders: int, weight: float = 1.0) -> Features:
    """Return the functions of a number's runs: eigenfunctions of what it counts for, the heaviest first."""
    del orders
    runs = masses.size
    ordered = runs - missing
    if ordered <= 2:
        return level_features(masses, weight)
    mass = np.maximum(masses, 1e-9) / np.maximum(masses, 1e-9).sum()
    inside = mass[:ordered] / mass[:ordered].sum()
    ranks = np.cumsum(inside) - inside / 2
    parts = []
    if missing:
        last = np.eye(runs)[:, -1:]
        parts.append(last - mass @ last)
    waves = np.sqrt(2) * np.cos(np.pi * np.outer(ranks, np.arange(1, min(ORDERS, ordered - 1) + 1)))
    falling = DECAY ** np.arange(waves.shape[1])
    padded = np.zeros((runs, waves.shape[1]))
    padded[:ordered] = waves - inside @ waves
    parts.append(padded * np.sqrt(PARTS["orders"] * falling / falling.sum()))
    for intervals in (4, 16):
        place = np.unique(np.minimum((ranks * intervals).astype(int), intervals - 1), return_inverse=True)[1]
        table = np.zeros((runs, place.max() + 1))
        table[np.arange(ordered), place] = 1.0
        parts.append(np.sqrt(PARTS[f"{intervals} intervals"]) * (table - mass @ table))
    parts.append(np.sqrt(PARTS["runs"]) * (np.eye(runs) - mass))
    functions, root = np.concatenate(parts, axis=1), np.sqrt(mass)
    kernel = root[:, None] * (functions @ functions.T) * root
    centre = np.eye(runs) - np.outer(root, root)
    weights, vectors = np.linalg.eigh(centre @ kernel @ centre)
    kept = np.flatnonzero(weights > 1e-7 * weights.max())[::-1]
    return Features(vectors[:, kept] / root[:, None], weight * weights[kept], np.full(kept.size, SHAPE))


@dataclass(frozen=True)
class Evidence:
    """What the second stage released.

    Attributes:
        moments: E[φ φᵀ] of features of variance 1, shape (d, d).
        variances: of their noise.
        noise: variance of the noise of weighted features' moments.
        entries: of the features.
    """

    moments: np.ndarray
    variances: np.ndarray
    noise: float
    entries: Entries


def evidence(noisy: Any, weights: np.ndarray, entries: Entries, class_counts: np.ndarray, *_: Any, **__: Any) -> Any:
    """Stand in for `cross_moments`."""
    (whole, variance), d, n = _pooled(noisy, weights), entries.owner.size, class_counts.sum()
    scale = np.outer(entries.roots, entries.roots) * _unclipped(whole[:d, :d], variance, entries, n)
    return Evidence(whole[:d, :d] / n / scale, variance / n**2 / scale**2, variance / n**2, entries)


def copula_moments(found: Evidence, columns: Sequence[ColumnShares]) -> np.ndarray:
    """Return the moments of the Gaussian copula that makes each block of two numbers likeliest, shape (d, d)."""
    moments = np.zeros_like(found.moments)
    hermite = [column.hermite() if column.ordered > 2 else None for column in columns]
    powers = CORRELATIONS[:, None] ** np.arange(1, 41)
    for j, first in enumerate(hermite):
        for i, second in enumerate(hermite[:j]):
            if first is None or second is None:
                continue
            here = found.entries.block(j), found.entries.block(i)
            value, precision = found.moments[here], 1 / found.variances[here]
            laws = [(first * power) @ second.T for power in powers]
            best = min(laws, key=lambda law: float((precision * (value - law) ** 2).sum()))
            moments[here], moments[here[::-1]] = best, best.T
    return moments


def shrunk_moments(found: Evidence, columns: Sequence[ColumnShares]) -> np.ndarray:
    """Return posterior means of the moments of different columns, shape (d, d)."""
    numbers = np.array([column.ordered > 2 for column in columns])
    levels = [np.zeros(column.features.size, dtype=int) for column in columns]
    for own, column in zip(levels, columns, strict=True):
        if column.ordered > 2:
            own += np.floor(np.log2(column.features.weights.max() / column.features.weights) + 0.5).astype(int)
    centre, means = copula_moments(found, columns), np.zeros_like(found.moments)
    blocks: dict[tuple[Any, ...], list[tuple[np.ndarray, np.ndarray]]] = {}
    for j in range(len(columns)):
        for i in range(j):
            for a in np.unique(levels[j]):
                for b in np.unique(levels[i]):
                    rows = found.entries.block(j).start + np.flatnonzero(levels[j] == a)
                    others = found.entries.block(i).start + np.flatnonzero(levels[i] == b)
                    kind = tuple(sorted([(bool(numbers[j]), int(a)), (bool(numbers[i]), int(b))]))
                    blocks.setdefault(kind, []).append(np.ix_(rows, others))  # type: ignore[arg-type]
    for kind, places in blocks.items():
        values, variances, near = (
            np.concatenate([array[here].ravel() for here in places])
            for array in (found.moments, found.variances, centre)
        )
        block = np.repeat(np.arange(len(places)), [found.moments[here].size for here in places])
        others = (near,) if all(number for number, _ in kind) else ()
        posterior, start = shrunk(values, variances, block, *others)[0], 0
        for here in places:
            size = means[here].size
            means[here] = posterior[start : start + size].reshape(means[here].shape)
            start += size
    return means + means.T


def targets_of(found: Evidence, columns: Sequence[ColumnShares]) -> PairTargets:
    """Return what the mixture is fitted to."""
    roots, owner = found.entries.roots, found.entries.owner
    n = sum(float(column.counts.sum()) for column in columns) / len(columns)
    laws = [np.maximum(column.pooled(), 1e-9) for column in columns]
    laws = [law / law.sum() for law in laws]
    moments = shrunk_moments(found, columns) if found.noise else found.moments
    across = owner[:, None] != owner
    return PairTargets(
        shares=tuple(laws),
        features=tuple(column.features.values * np.sqrt(column.features.weights) for column in columns),
        values=np.where(across, moments * np.outer(roots, roots), 0.0),
        precision=np.where(across, 1 / max(found.noise, 1e-10), 0.0),
        share_precision=np.array([n**2 / max(column.counts_std**2, 1.0) for column in columns]),
        bases=tuple(
            rank_bumps(law, column.ordered) if column.ordered > 2 else np.eye(law.size)
            for law, column in zip(laws, columns, strict=True)
        ),
    )


class Chain:
    """A chain of softmaxes that has the moments of a mixture, while it is fitted column by column."""

    def __init__(self, columns: Sequence[ColumnShares], law: ProductMixture, entries: Entries, n: int) -> None:
        self._columns, self._law, self._n = columns, law, n
        self._starts = [entries.block(j).start for j in range(len(columns))]
        self._laws = [np.maximum(column.pooled(), 1e-9) for column in columns]
        self._laws = [own / own.sum() for own in self._laws]
        self._leading = [self._chosen(j) for j in range(len(columns))]
        self._functions = [c.features.values[:, own] for c, own in zip(columns, self._leading, strict=True)]
        self._means = [f.T @ table for f, table in zip(self._functions, law.tables, strict=True)]
        self.weights = np.zeros((1, entries.owner.size, entries.owner.size))
        self.fitted: list[SoftmaxColumn | None] = [None] * len(columns)
        self._runs = np.zeros((n, len(columns)), dtype=np.int64)

    def _chosen(self, column: int) -> list[int]:
        """Leading functions, but those of rare values: fitted rows would be learnt by heart through them."""
        values = self._columns[column].features.values
        heavy = (self._laws[column][:, None] * values**4).sum(axis=0) <= RARE
        most = LEADING if self._columns[column].ordered > 2 else values.shape[1]
        return np.flatnonzero(heavy)[:most].tolist()

    def order(self) -> list[int]:
        """Columns that say most of others first."""
        size = len(self._columns)
        strength = np.zeros((size, size))
        for j in range(size):
            for i in range(j):
                strength[i, j] = strength[j, i] = min(float((self._moments(i, j) ** 2).sum()), 1e3)
        return np.argsort(-strength.sum(axis=0), kind="stable").tolist()

    def _moments(self, i: int, j: int) -> np.ndarray:
        return (self._means[i] * self._law.weights) @ self._means[j].T

    def fit(self, order: Sequence[int]) -> SoftmaxChain:
        """Fit every column to rows of those before it."""
        rng = np.random.default_rng(0)
        for place, j in enumerate(order):
            self._fit_column(j, order[:place], rng)
        fitted = tuple(column for column in self.fitted if column is not None)
        return SoftmaxChain(np.ones(1), fitted, np.array(order, dtype=np.int64), self.weights)

    def _fit_column(self, j: int, before: Sequence[int], rng: np.random.Generator) -> None:
        column, law = self._columns[j], self._laws[j]
        own = self._starts[j] + np.array(self._leading[j], dtype=int)
        tilts = np.log(law)
        if before and own.size:
            rows = np.concatenate([self._functions[i][self._runs[:, i]] for i in before], axis=1)
            middle = rows.mean(axis=0)
            wanted = np.concatenate([self._moments(i, j) for i in before])
            wanted = wanted - np.outer(middle, law @ self._functions[j])
            weights, shift = softmax_weights(rows - middle, self._functions[j], law, wanted)
            tilts = tilts + shift - self._functions[j] @ (weights.T @ middle)
            start = 0
            for i in before:
                places = self._starts[i] + np.array(self._leading[i], dtype=int)
                self.weights[0][np.ix_(own, places)] = weights[start : start + places.size].T
                start += places.size
        values = column.features.values
        self.fitted[j] = SoftmaxColumn(column.shares, column.drawn, values, tilts[None], law[None])
        predictor = np.zeros((self._n, values.shape[1]), dtype=np.float32)
        for i in before:
            block = slice(self._starts[i], self._starts[i] + self._columns[i].features.size)
            drawn = self._columns[i].features.values[self._runs[:, i]]
            of_column = self.weights[0][self._starts[j] : self._starts[j] + values.shape[1], block]
            predictor += (drawn @ of_column.T).astype(np.float32)
        self._runs[:, j] = self.fitted[j].choose(predictor, np.zeros(self._n, dtype=np.int64), rng)  # type: ignore[union-attr]


def softmax_weights(
    rows: np.ndarray, functions: np.ndarray, law: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return W, shape (d, b), and a, shape (r,): min mean log Σ m exp(a + φ Wᵀ g) − ⟨W, C⟩ − a·m + ½ ridge |W|²."""
    n, size = len(rows), wanted.size
    covariance = rows.T @ rows / n + (RIDGE + 1e-6) * np.eye(rows.shape[1])
    whitening = np.linalg.inv(np.linalg.cholesky(covariance))
    narrow, basis, logs, root = rows.astype(np.float32), functions.astype(np.float32), np.log(law), np.sqrt(law)

    def value(v: np.ndarray) -> tuple[float, np.ndarray]:
        weights, shift = whitening.T @ v[:size].reshape(wanted.shape), v[size:] / root
        x = (narrow @ weights.astype(np.float32)) @ basis.T + (logs + shift).astype(np.float32)
        largest = x.max(axis=1, keepdims=True)
        np.exp(np.maximum(x - largest, np.float32(-30)), out=x)
        sums = x.sum(axis=1, keepdims=True)
        x /= sums
        total = float((np.log(sums) + largest).mean(dtype=float)) - float((weights * wanted).sum() + shift @ law)
        slope = (narrow.T @ (x @ basis)).astype(float) / n - wanted + RIDGE * weights
        of_shift = (x.mean(axis=0, dtype=float) - law) / root
        square = RIDGE / 2 * float((weights**2).sum())
        return total + square, np.concatenate([(whitening @ slope).ravel(), of_shift])

    start = np.zeros(size + law.size)
    options = {"maxiter": STEPS, "gtol": 2e-4, "ftol": 1e-7, "maxcor": 10}
    found = minimize(value, start, jac=True, method="L-BFGS-B", options=options).x
    return whitening.T @ found[:size].reshape(wanted.shape), found[size:] / root


def fit_chain(columns: Sequence[ColumnShares], class_counts: Any, found: Evidence, *_: Any) -> SoftmaxChain:
    """Stand in for `fit_table_chain`."""
    del class_counts
    law = fit_mixture(targets_of(found, columns), MixtureEffort(), np.random.default_rng(0))
    chain = Chain(columns, law, found.entries, FITTED_ROWS)
    return chain.fit(chain.order())


def clip_norm(vectors: Sequence[np.ndarray], masses: Sequence[np.ndarray], noise: float) -> float:
    """Return the clip norm by the mean of squared norms; without noise that of the longest record."""
    return float(np.sqrt(CLIP * mean_square(vectors, masses))) if noise else clip_norm_of(vectors, masses, noise)


@contextmanager
def installed() -> Iterator[dict[str, float]]:
    """Put the candidate in place of the product's model of tables; yield the settings that a fit of it needs."""
    table_facts = settings.TableFacts.of.__func__  # type: ignore[attr-defined]

    def without_classes(kind: Any, facts: Any, level_groups: int | None = None) -> Any:
        return table_facts(kind, replace(facts, target=None), level_groups)

    with ExitStack() as stack:
        for owner, name, other in (
            (shares, "number_features", number_features),
            (second_stage, "cross_moments", evidence),
            (recipe, "clip_norm_of", clip_norm),
            (recipe, "fit_table_chain", fit_chain),
            (settings.TableFacts, "of", classmethod(without_classes)),
        ):
            stack.enter_context(patch.object(owner, name, other))
        yield {"marginal_share": MARGINALS, "pair_share": 0.0}
