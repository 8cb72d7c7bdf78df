"""What the candidate's moments say: shrunk block by block, and what clipping took off them put back.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from candidate_mixture import PairTargets, ProductMixture, rank_bumps
from candidate_statistic import Contrasts

from sfumato.maths.gaussian import noise_reach, shrink_spectrum
from sfumato.maths.shrinkage import shrunk
from sfumato.methods.tables.cross_moments import _unclipped
from sfumato.methods.tables.features import ColumnShares
from sfumato.methods.tables.moment_entries import Entries

CORRELATIONS = np.unique(np.concatenate([sign * np.tanh(np.linspace(0, 3.2, 48)) for sign in (-1, 1)]))
LOSS_ROWS, SHARED_ROUNDS, MOST_PRECISE = 40_000, 8, 100.0


@dataclass(frozen=True)
class Evidence:
    """What the second stage released.

    Attributes:
        clipped: E[f φ φᵀ] of functions of variance 1 of records clipped by f, shape (d, d).
        noise: variance of the noise of weighted functions' moments.
        entries: of the functions.
        clip_norm: C.
        contrasts: moments by class of the target; None without.
        target: its place among the columns; None without.
        few: whether noise leaves each number one function: what all columns share is then another centre.
        tables: P(a, b) of runs and its variances, by the places of two columns whose whole table was counted.
    """

    clipped: np.ndarray
    noise: float
    entries: Entries
    clip_norm: float
    contrasts: Contrasts | None
    target: int | None
    few: bool
    tables: Mapping[tuple[int, int], tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @property
    def variances(self) -> np.ndarray:
        """Of the noise of each moment, shape (d, d)."""
        return self.noise / np.outer(self.entries.roots, self.entries.roots) ** 2

    def guessed(self, n: float) -> Moments:
        """Return the moments as if each column's products had lost what its own squares have."""
        weighted = self.clipped * np.outer(self.entries.roots, self.entries.roots) * n
        parts = _unclipped(weighted, self.noise * n**2, self.entries, n)
        return Moments(self.clipped / parts, self.variances / parts**2)

    def unclipped(self, columns: Sequence[ColumnShares], law: ProductMixture) -> Moments:
        """Return the moments with what clipping takes off a law's, by simulated rows: of the true law it is all."""
        if not self.noise:
            return Moments(self.clipped, self.variances)
        codes = law.draw(LOSS_ROWS, np.random.default_rng(1))
        vectors = [(c.features.values * np.sqrt(c.features.weights))[codes[:, j]] for j, c in enumerate(columns)]
        x = np.concatenate(vectors, axis=1).astype(np.float32)
        lost = 1 - np.minimum(1.0, self.clip_norm**2 / np.maximum((x.astype(float) ** 2).sum(axis=1), 1e-12))
        some = lost > 0
        loss = (x[some].T @ (x[some] * lost[some, None].astype(np.float32))).astype(float) / LOSS_ROWS
        return Moments(self.clipped + loss / np.outer(self.entries.roots, self.entries.roots), self.variances)


@dataclass(frozen=True)
class Moments:
    """E[φ φᵀ] of functions of variance 1, and the variances of their noise, shapes (d, d).

    Those of tables are known by a posterior law: they are not shrunk once more.
    """

    values: np.ndarray
    variances: np.ndarray
    tables: frozenset[tuple[int, int]] = frozenset()

    def tabled(self, found: Evidence, columns: Sequence[ColumnShares]) -> Moments:
        """Return them with those of the tables that were counted."""
        values, variances = self.values.copy(), self.variances.copy()
        for (i, j), (law, errors) in found.tables.items():
            here, there = found.entries.block(i), found.entries.block(j)
            first, second = columns[i].features.values, columns[j].features.values
            values[here, there] = first.T @ law @ second
            variances[here, there] = np.maximum((first**2).T @ errors @ second**2, 1e-6)
            values[there, here], variances[there, here] = values[here, there].T, variances[here, there].T
        return replace(self, values=values, variances=variances, tables=frozenset(found.tables))

    def counted(self, found: Evidence, columns: Sequence[ColumnShares]) -> Moments:
        """Return them with what the first release counted by class of the target."""
        t = found.target
        if t is None or len(columns[0].counts) == 1 or not found.noise:
            return self
        values, variances, here = self.values.copy(), self.variances.copy(), found.entries.block(t)
        own, n = columns[t].features.values[columns[t].drawn], float(columns[t].counts.sum())
        for j, column in enumerate(columns):
            if j == t or not column.features.size:
                continue
            means, there = _means_of_runs(column), found.entries.block(j)
            counted = own.T @ column.counts @ means / n
            noise = (column.counts_std / n) ** 2 * np.outer((own**2).sum(axis=0), (means**2).sum(axis=0))
            both = 1 / (1 / variances[here, there] + 1 / noise)
            values[here, there] = both * (values[here, there] / variances[here, there] + counted / noise)
            variances[here, there] = both
            values[there, here], variances[there, here] = values[here, there].T, both.T
        return replace(self, values=values, variances=variances)


def _means_of_runs(column: ColumnShares) -> np.ndarray:
    """Return the means of a column's functions in the runs that are counted by class, shape (runs, q)."""
    values, shares = column.features.values[column.drawn], np.maximum(column.shares, 1e-12)
    runs = column.counts.shape[1]
    sums = np.stack([np.bincount(column.counted, shares * v, runs) for v in values.T], axis=1)
    return sums / np.maximum(np.bincount(column.counted, shares, runs), 1e-300)[:, None]


def copula_moments(found: Moments, entries: Entries, columns: Sequence[ColumnShares]) -> np.ndarray:
    """Return the moments of the Gaussian copula that makes each block of two numbers likeliest, shape (d, d)."""
    moments = np.zeros_like(found.values)
    hermite = [column.hermite() if column.ordered > 2 else None for column in columns]
    powers = CORRELATIONS[:, None] ** np.arange(1, 41)
    for j, first in enumerate(hermite):
        for i, second in enumerate(hermite[:j]):
            if first is None or second is None:
                continue
            here = entries.block(j), entries.block(i)
            value, precision = found.values[here], 1 / found.variances[here]
            laws = [(first * power) @ second.T for power in powers]
            best = min(laws, key=lambda law: float((precision * (value - law) ** 2).sum()))
            moments[here], moments[here[::-1]] = best, best.T
    return moments


def shared_moments(found: Moments, noise: float, owner: np.ndarray) -> np.ndarray:
    """Return what all columns share: moments of low rank, completed by what a column says of itself, shape (d, d)."""
    across, scale = owner[:, None] != owner, np.sqrt(noise / found.variances)
    noisy = np.where(across, found.values * scale, 0.0)
    whole, together, edge = noisy, noisy, noise_reach(np.sqrt(2 * noise), len(owner))
    for _ in range(SHARED_ROUNDS):
        together = shrink_spectrum(whole, edge)
        whole = np.where(across, noisy, together)
    return np.where(across, together / scale, 0.0)


def shrunk_moments(moments: Moments, found: Evidence, columns: Sequence[ColumnShares]) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior means of the moments of different columns, and variances, shapes (d, d)."""
    entries, posterior = found.entries, np.zeros((2, *moments.values.shape))
    copula = copula_moments(moments, entries, columns)
    together = [shared_moments(moments, found.noise, entries.owner)] if found.few else []
    for kind, places in _blocks(columns, entries, moments.tables).items():
        centres = [copula, *together] if all(number for number, _ in kind) else together
        values, variances, *others = (
            np.concatenate([array[here].ravel() for here in places])
            for array in (moments.values, moments.variances, *centres)
        )
        block = np.repeat(np.arange(len(places)), [moments.values[here].size for here in places])
        both, start = np.stack(shrunk(values, variances, block, *others)), 0
        for here in places:
            shape = moments.values[here].shape
            size = int(np.prod(shape))
            posterior[(slice(None), *here)] = both[:, start : start + size].reshape(2, *shape)
            start += size
    for i, j in moments.tables:
        here = entries.block(max(i, j)), entries.block(min(i, j))
        posterior[(slice(None), *here)] = moments.values[here], moments.variances[here]
    means, variances = posterior + posterior.transpose(0, 2, 1)
    return means, variances


def _blocks(
    columns: Sequence[ColumnShares], entries: Entries, tables: frozenset[tuple[int, int]]
) -> dict[tuple[Any, ...], list[Any]]:
    """Return places of blocks by kind: numbers or labels, and levels of weight, each half of the one before."""
    numbers = [column.ordered > 2 for column in columns]
    levels = [
        np.floor(np.log2(f.weights.max(initial=0) / f.weights) + 0.5).astype(int) * number
        for f, number in zip((column.features for column in columns), numbers, strict=True)
    ]
    blocks: dict[tuple[Any, ...], list[Any]] = {}
    for j in range(len(columns)):
        for i in (i for i in range(j) if (i, j) not in tables):
            for a in np.unique(levels[j]):
                for b in np.unique(levels[i]):
                    rows = entries.block(j).start + np.flatnonzero(levels[j] == a)
                    others = entries.block(i).start + np.flatnonzero(levels[i] == b)
                    kind = tuple(sorted([(numbers[j], int(a)), (numbers[i], int(b))]))
                    blocks.setdefault(kind, []).append(np.ix_(rows, others))
    return blocks


def pair_targets(moments: Moments, found: Evidence, columns: Sequence[ColumnShares]) -> PairTargets:
    """Return what the mixture is fitted to."""
    entries, roots, owner = found.entries, found.entries.roots, found.entries.owner
    n = sum(float(column.counts.sum()) for column in columns) / len(columns)
    laws = [run_shares(column) for column in columns]
    values = shrunk_moments(moments, found, columns)[0] if found.noise else moments.values
    across, noise = owner[:, None] != owner, np.full(values.shape, max(found.noise, 1e-10))
    for i, j in moments.tables:
        for here in ((entries.block(i), entries.block(j)), (entries.block(j), entries.block(i))):
            scale = np.outer(roots[here[0]], roots[here[1]]) ** 2
            noise[here] = np.clip(moments.variances[here] * scale, found.noise / MOST_PRECISE, found.noise)
    return PairTargets(
        shares=tuple(laws),
        features=tuple(column.features.values * np.sqrt(column.features.weights) for column in columns),
        values=np.where(across, values * np.outer(roots, roots), 0.0),
        precision=np.where(across, 1 / noise, 0.0),
        share_precision=np.array([n**2 / max(column.counts_std**2, 1.0) for column in columns]),
        bases=tuple(
            rank_bumps(law, column.ordered) if column.ordered > 2 else np.eye(law.size)
            for law, column in zip(laws, columns, strict=True)
        ),
    )


def run_shares(column: ColumnShares) -> np.ndarray:
    """Return P(run), above 0, shape (r,)."""
    law = np.maximum(column.pooled(), 1e-9)
    return law / law.sum()
