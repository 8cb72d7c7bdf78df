"""What a second release says of how columns go together: moments of their features, as far as noise lets them be seen.

Moments are shrunk block by block by empirical Bayes with the known noise, about 0, about the Gaussian copula that makes
a block of two numbers likeliest, or about what an earlier release, a copied column, or all columns together say. What
clipping took off them is put back by simulated rows of the law that is fitted to them.

Free: uses released values only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sfumato.maths.constants import EVIDENCE, VECTORS
from sfumato.maths.gaussian import noise_reach, shrink_spectrum, shrinkage_weight
from sfumato.maths.shrinkage import shrunk
from sfumato.maths.streams import public_stream
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.features import ColumnShares, hermite_coefficients
from sfumato.methods.tables.leading import Leading
from sfumato.methods.tables.nested import sums_of
from sfumato.models.tables.product_mixture import ProductMixture


@dataclass(frozen=True)
class Contrasts:
    """What was measured by class of a column to predict.

    Attributes:
        target: place of the column.
        classes: of its cells, shape (c,).
        shares: P(class), shape (k,).
        functions: what leads each column, of its runs, shape (r, l_j) each; l is the sum of the l_j.
        values: E[1(class) φ φᵀ] of these, shape (k, l, l).
        variances: of their noise, shape (l, l).
    """

    target: int
    classes: np.ndarray
    shares: np.ndarray
    functions: tuple[np.ndarray, ...]
    values: np.ndarray
    variances: np.ndarray

    @property
    def owner(self) -> np.ndarray:
        """Column of each of what leads, shape (l,)."""
        return np.repeat(np.arange(len(self.functions)), [own.shape[1] for own in self.functions])

    @classmethod
    def of(cls, noisy: Noisy, weight: float, leading: Leading, columns: Sequence[ColumnShares], n: float) -> Contrasts:
        """Read them off a release; what clipping took is seen in the squares of the features themselves.

        Args:
            noisy: the release of `TableMoments`.
            weight: β.
            leading: what was told apart.
            columns: shares and features of each.
            n: number of records, estimated.
        """
        factor = weight * n * leading.scale**2
        values = noisy.value[1:, : leading.size, : leading.size] / factor
        squares = np.clip(np.einsum("kii->i", values), EVIDENCE.least_squares, 1.0)
        left = np.sqrt(np.outer(squares, squares))
        target = columns[leading.target].shares
        shares = np.bincount(leading.classes, target) / target.sum()
        variances = (noisy.noise_std / np.sqrt(2) / factor / left) ** 2
        led = dict(zip(leading.columns, leading.functions, strict=True))
        functions = tuple(led.get(j, column.features.leads[:, :0]) for j, column in enumerate(columns))
        return cls(leading.target, leading.classes, shares, functions, values / left, variances)


@dataclass(frozen=True)
class JointCounts:
    """Tables of two columns, as the first release counted them.

    Attributes:
        tables: P(cell, run) by the places of a column and of another one, shape (c, r), and the noise of an entry.
        whole: the places of pairs that say all there is to say of these two: moments of theirs say nothing beside.
    """

    tables: Mapping[tuple[int, int], tuple[np.ndarray, float]]
    whole: Collection[tuple[int, int]] = ()


@dataclass(frozen=True)
class Evidence:
    """E[φ φᵀ] of features of different columns as released.

    Attributes:
        values: shape (d, d); of records weighed down by clipping where there is a clip norm.
        variances: of their noise, shape (d, d); 0 without noise, ∞ of what was not measured.
        columns: shares and features of each column.
        clip_norm: C; None where nothing was clipped.
        few: whether noise leaves a number one feature: what all columns share is kept then.
        contrasts: moments by class of a column to predict; None without.
        counts: tables of two columns; None without.
        copied: places of a column of labels and of the earlier one that it may be kept from, shape (m, 2).
        centres: other moments that blocks may lie about, shape (d, d) each; 0 where they say nothing.
    """

    values: np.ndarray
    variances: np.ndarray
    columns: Sequence[ColumnShares]
    clip_norm: float | None = None
    few: bool = False
    contrasts: Contrasts | None = None
    counts: JointCounts | None = None
    copied: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    centres: Sequence[np.ndarray] = field(default_factory=tuple)

    @property
    def roots(self) -> np.ndarray:
        """Of the features' weights, shape (d,)."""
        return np.sqrt(np.concatenate([column.features.weights for column in self.columns]))

    @property
    def owner(self) -> np.ndarray:
        """Column of each feature, shape (d,)."""
        return np.repeat(np.arange(len(self.columns)), [column.features.size for column in self.columns])

    @property
    def across(self) -> np.ndarray:
        """Whether two features are of different columns that were measured together, shape (d, d)."""
        return (self.owner[:, None] != self.owner) & np.isfinite(self.variances)

    @property
    def is_noisy(self) -> bool:
        """Whether there is noise in what was measured."""
        return bool(self.variances[self.across].any())

    def guessed(self) -> tuple[np.ndarray, np.ndarray]:
        """Return moments and variances as if a column's products had lost to clipping what its own squares have.

        Clipping weighs long records down; a column's squares have a known mean. Columns differ as far as noise shows.
        """
        if self.clip_norm is None or not self.values.size:
            return self.values, self.variances
        owner, squares = self.owner, self.roots**2
        noise = float(np.median(self.variances * np.outer(squares, squares)))
        sizes = np.bincount(owner, minlength=len(self.columns))
        weights = np.maximum(np.bincount(owner, squares, sizes.size), 1e-12)
        own = np.bincount(owner, np.diagonal(self.values) * squares, sizes.size) / weights
        variances, precision = 2 * noise * sizes / weights**2, weights**2 / np.maximum(sizes, 1)
        together, present = float((own * precision).sum() / precision.sum()), sizes > 0
        apart = shrinkage_weight(float(((own - together) ** 2)[present].sum()), float(variances[present].sum()))
        roots = np.sqrt(np.clip(together + apart * (own - together), EVIDENCE.least_clipped, 1.0))[owner]
        left = np.outer(roots, roots)
        return self.values / left, self.variances / left**2

    def unclipped(self, law: ProductMixture) -> tuple[np.ndarray, np.ndarray]:
        """Return moments and variances with what clipping takes off a law's, by simulated rows: of the true law all."""
        if self.clip_norm is None or not self.is_noisy:
            return self.values, self.variances
        runs = law.draw(EVIDENCE.rows, public_stream(EVIDENCE.seed))
        vectors = [(c.features.values * np.sqrt(c.features.weights)).astype(np.float32) for c in self.columns]
        squares = sum(np.einsum("ij,ij->i", own, own)[runs[:, j]] for j, own in enumerate(vectors))
        lost = 1 - np.minimum(1.0, self.clip_norm**2 / np.maximum(squares, 1e-12))
        some = np.flatnonzero(lost > 0)
        x = np.concatenate([own[runs[some, j]] for j, own in enumerate(vectors)], axis=1)
        x *= np.sqrt(lost[some], dtype=np.float32)[:, None]
        loss = (x.T @ x).astype(np.float64) / len(runs)
        return self.values + loss / np.outer(self.roots, self.roots), self.variances

    def counted(self, values: np.ndarray, variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return moments and variances with what tables of two columns say of theirs."""
        if self.counts is None:
            return values, variances
        values, variances = values.copy(), variances.copy()
        ends = np.cumsum([0, *(column.features.size for column in self.columns)])
        of_tables = {pair: t for pair, t in self.counts.tables.items() if self.is_noisy or pair in self.counts.whole}
        for (t, j), (table, std) in of_tables.items():
            here, other = slice(ends[t], ends[t + 1]), slice(ends[j], ends[j + 1])
            own = self.columns[t].features.values[self.columns[t].drawn]
            means = self.columns[j].means_in(self.columns[j].counted, table.shape[1])
            squares, groups = (own**2).sum(axis=0), self.columns[t].features.groups
            if groups is not None:  # whose sums were counted with as much noise
                squares -= (sums_of(own, groups) ** 2 / (1 + np.bincount(groups))[:, None]).sum(axis=0)
            noise = np.maximum(std**2 * np.outer(squares, (means**2).sum(axis=0)), 1e-12)
            left = 0.0 if (t, j) in self.counts.whole else 1 / variances[here, other]
            both = 1 / (left + 1 / noise)
            values[here, other] = both * (values[here, other] * left + own.T @ table @ means / noise)
            variances[here, other] = both
            values[other, here], variances[other, here] = values[here, other].T, both.T
        return values, variances

    def shrunk(self, values: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """Return posterior means of moments of different columns, shape (d, d); 0 of what was not measured."""
        across = self.across
        if not self.is_noisy:
            return np.where(across, values, 0.0)
        numbers = np.array([column.waves for column in self.columns])[self.owner]
        shared = [self._shared(values, variances)] if self.few else []
        centres, posterior = [*self.centres, *shared], np.zeros_like(values)
        copula, upper, (kinds, blocks) = self._copula(values, variances), np.triu(across), self._blocks()
        for kind in np.unique(kinds[upper]):
            here = upper & (kinds == kind)
            both = numbers[np.argwhere(here)[0]].all() and not self.few  # of one moment any copula is likeliest
            others = [centre[here] for centre in ([copula] if both else []) + centres]
            posterior[here] = shrunk(values[here], variances[here], blocks[here], *others)[0]
        return posterior + posterior.T

    def _blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the kind and the block of each pair of features, shapes (d, d).

        A block is of two columns and two levels of weight, each half of the one before; its kind is of numbers or
        labels, and of these levels.
        """
        weights, numbers = self.roots**2, np.array([column.waves for column in self.columns])[self.owner]
        most = np.array([column.features.weights.max(initial=0.0) for column in self.columns])[self.owner]
        finer = np.concatenate([np.arange(c.features.size) >= c.features.size - c.features.finer for c in self.columns])
        level = np.where(numbers, np.floor(np.log2(most / weights) + 0.5), finer).astype(np.int64)
        single = 2 * level + numbers
        n = int(single.max(initial=0)) + 1
        kinds = np.minimum.outer(single, single) * n + np.maximum.outer(single, single)
        own = self.owner * n + single
        return kinds, own[:, None] * (len(self.columns) * n) + own

    def _copula(self, values: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """Return the moments of the Gaussian copula that makes each block of two numbers likeliest, shape (d, d)."""
        moments, ends = np.zeros_like(values), np.cumsum([0, *(column.features.size for column in self.columns)])
        hermite = {
            j: hermite_coefficients(c.pooled(), c.features.values, c.ordered < len(c.features.values))
            for j, c in enumerate(self.columns)
            if c.features.size and c.waves
        }
        tried = np.tanh(np.linspace(0, EVIDENCE.most_score, EVIDENCE.correlations))
        powers = np.concatenate([-tried[:0:-1], tried])[:, None] ** np.arange(1, VECTORS.hermite_terms + 1)
        for j, first in hermite.items():
            for i, second in hermite.items():
                here = slice(ends[j], ends[j + 1]), slice(ends[i], ends[i + 1])
                if i >= j or not np.isfinite(variances[here]).all():
                    continue
                laws = powers @ (first.T[:, :, None] * second.T[:, None, :]).reshape(powers.shape[1], -1)
                missed = (laws - values[here].ravel()) ** 2 @ (1 / np.maximum(variances[here], 1e-12)).ravel()
                best = laws[int(np.argmin(missed))].reshape(values[here].shape)
                moments[here], moments[here[::-1]] = best, best.T
        return moments

    def _shared(self, values: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """Return what all columns share: moments of low rank, completed by what a column says of itself, (d, d)."""
        across, deviations = self.across, np.sqrt(variances)
        noisy = np.where(across, values / deviations, 0.0)
        whole, together, edge = noisy, noisy, noise_reach(float(np.sqrt(2)), len(noisy))
        for _ in range(EVIDENCE.shared_rounds):
            together = shrink_spectrum(whole, edge)
            whole = np.where(across, noisy, together)
        return np.where(across, together * deviations, 0.0)


def copies(columns: Sequence[ColumnShares], copied: Mapping[int, int], evidence: Evidence) -> np.ndarray:
    """Return the moments of columns of labels that are copies in part of earlier ones, shape (d, d); else 0.

    With chance ρ the later label is the earlier one, else it is drawn apart from it. Of a hundred labels each of ten
    thousand moments is lost in noise; that a label is often kept shows in all of them together. ρ is the weighted
    least-squares fit to all moments of both columns.

    Args:
        columns: shares and features of each.
        copied: place of a column to that of the one that it may be kept from.
        evidence: of their features.
    """
    centre, ends = np.zeros_like(evidence.values), np.cumsum([0, *(column.features.size for column in columns)])
    for later, earlier in copied.items():
        first, second = columns[earlier], columns[later]
        shares = (first.shares + second.shares) / 2
        moments = (first.features.values[first.drawn] * shares[:, None]).T @ second.features.values[second.drawn]
        here = slice(ends[earlier], ends[earlier + 1]), slice(ends[later], ends[later + 1])
        weights = moments / np.maximum(evidence.variances[here], 1e-12)
        precision = float((weights * moments).sum())
        rho = float((weights * evidence.values[here]).sum()) / precision if precision > 0 else 0.0
        centre[here] = float(np.clip(rho, 0.0, 1.0)) * moments
        centre[here[::-1]] = centre[here].T
    return centre
