"""The second release of a table: a class behind one protocol, its event beside its act.

A second stage says which event it is, measures queries that may rest on what the first release said, and says what
follows of how columns go together. The table's model is fitted to this, whichever stage it comes from.

`SecondMoments` is the default: second moments of features, pooled and by class of a column to predict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from sfumato.fitting.driver import Fit
from sfumato.measurements.queries import Query
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.cell_counts import CellCounts
from sfumato.methods.tables.evidence import Contrasts, Evidence, copies
from sfumato.methods.tables.feature_moments import TableMoments
from sfumato.methods.tables.features import ColumnShares
from sfumato.methods.tables.leading import Leading
from sfumato.methods.tables.offsets import constant_weight, moved, offsets_of
from sfumato.methods.tables.prior_rows import PriorRows
from sfumato.privacy.origin import simplest
from sfumato.privacy.plan import Stage, multiplier_for_share
from sfumato.schema.grid import Grid

POOLED, BY_CLASS = "second moments", "second moments by class"


@dataclass(frozen=True, slots=True)
class FirstRelease:
    """What the first release says, and how finely the table is modelled: all of it released or public.

    Attributes:
        grid: the cells of the columns.
        columns: shares and features of each column.
        total: number of records, estimated.
        target: place of the column to predict; None without.
        few: whether noise leaves a number one feature.
        entry: noise of an entry.
        counting: its statistic.
        prior: rows of an earlier release's model.
    """

    grid: Grid
    columns: Sequence[ColumnShares]
    total: float
    target: int | None
    few: bool
    entry: float
    counting: CellCounts
    prior: PriorRows | None = None


@dataclass(frozen=True, slots=True)
class SecondRelease:
    """What was measured, under its names, and what follows of how columns go together."""

    measurements: tuple[tuple[str, Noisy], ...]
    evidence: Evidence


class SecondStage(Protocol):
    """One event of all records, and what it measures."""

    @property
    def name(self) -> str:
        """Of the stage."""
        ...

    def stage(self, share: float) -> Stage:
        """The event, at a part of the table's squared budget; from public facts alone."""
        ...

    def release(self, fit: Fit, first: FirstRelease) -> SecondRelease:
        """The act: measure, by `fit.measure` under the stage's name."""
        ...


ClipNorm = Callable[[Sequence[np.ndarray], Sequence[np.ndarray], bool], float]
Statistic = Callable[[Grid, tuple[np.ndarray, ...], float, Leading | None, int, CellCounts], TableMoments]


@dataclass(frozen=True, slots=True)
class SecondMoments:
    """Sums of outer products of the records' clipped features, pooled and by class of a column to predict.

    Attributes:
        name: of the stage.
        clip_norm: see `Measuring.clip_norm`.
        statistic: see `Measuring.moments`.
        clip_slack: clip norm ÷ that one.
        copied: columns of labels, and the earlier column that each may be kept from.
        worth: what 1 is in a release's measurements.
    """

    name: str
    clip_norm: ClipNorm
    statistic: Statistic
    clip_slack: float = 1.0
    copied: Mapping[str, str] = field(default_factory=dict)
    worth: float = 1.0

    def stage(self, share: float) -> Stage:
        """One Gaussian event; no inner product of two records' matrices is negative, so they are √2 norms apart."""
        return Stage(
            name=self.name,
            noise_multiplier=multiplier_for_share(share),
            replace_distance=float(np.sqrt(2)),
            measures="how the columns go together, and how numbers do per class of a column to predict",
        )

    def release(self, fit: Fit, first: FirstRelease) -> SecondRelease:
        """The noisy moments, and what they say of every pair of features."""
        vectors, shares = [c.vectors() for c in first.columns], [c.shares for c in first.columns]
        if first.few:
            vectors.append(np.full((1, 1), np.sqrt(constant_weight(first.entry, len(first.columns)))))
            shares.append(np.ones(1))
        with_noise = not fit.noise.silent
        clip_norm = self.clip_slack * self.clip_norm(vectors, shares, with_noise)
        leading = None if first.few else Leading.of(first.columns, first.target, clip_norm, noisy=with_noise)
        moments = self.statistic(first.grid, tuple(vectors), clip_norm, leading, fit.n_public, first.counting)
        noisy = fit.measure(self.name, moments)
        return SecondRelease(_measurements(noisy, moments, self.worth), self._evidence(noisy, moments, first))

    def _evidence(self, noisy: Noisy, moments: TableMoments, first: FirstRelease) -> Evidence:
        """What the moments say; of features of variance 1."""
        factor, columns, contrasts = moments.weights[0] * first.total, first.columns, None
        whole, noise = noisy.value[0] / factor, (noisy.noise_std / np.sqrt(2) / factor) ** 2
        roots = np.sqrt(np.concatenate([column.features.weights for column in columns]))
        scale, d = np.outer(roots, roots), roots.size
        offsets = np.zeros(d)
        if first.few and noise:
            offsets = offsets_of(whole, noise, float(moments.vectors[-1][0, 0] ** 2), columns)
            columns = moved(columns, offsets)
        if moments.leading is not None:
            contrasts = Contrasts.of(noisy, moments.weights[1], moments.leading, columns, first.total)
        values = whole[:d, :d] / scale - np.outer(offsets, offsets)
        evidence = Evidence(values, noise / scale**2, columns, moments.clip_norm, first.few, contrasts)
        return self._centred(evidence, first) if noise else evidence

    def _centred(self, evidence: Evidence, first: FirstRelease) -> Evidence:
        """What the moments say with what their blocks may lie about: copied labels, and an earlier release."""
        centres, places = [], {column.name: j for j, column in enumerate(first.grid.columns)}
        named = {places[name]: places[before] for name, before in self.copied.items() if name in places}
        # what rules compute is no copy
        columns = evidence.columns
        copied = {j: i for j, i in named.items() if not columns[j].ordered and columns[i].features.groups is None}
        if copied:
            centres.append(copies(evidence.columns, copied, evidence))
        if first.prior is not None:
            centres.append(first.prior.raked(evidence.columns).moments(evidence.columns))
        return replace(evidence, centres=centres, copied=np.array([*copied.items()], dtype=np.int64).reshape(-1, 2))


def unweighted(noisy: Noisy, value: np.ndarray, weight: float, part: int | slice, query: Query) -> Noisy:
    """A part of a release that was divided by its weight; `part` of the first axis has its grid."""
    origin = noisy.origin
    if origin is not None:
        own = {
            name: simplest(grid[part])
            for name in ("grid", "off_diagonal_grid")
            if isinstance(grid := getattr(origin, name), np.ndarray)
        }
        origin = replace(origin, **own).divided(float(weight))
    return Noisy(value, noisy.noise_std / weight, noisy.symmetric, origin, query)


def _measurements(noisy: Noisy, statistic: TableMoments, worth: float = 1.0) -> tuple[tuple[str, Noisy], ...]:
    """The release of `TableMoments` without its weights, by class of what leads; in the unit of records' weights."""
    first = statistic.weights[0] / worth
    pooled = POOLED, unweighted(noisy, noisy.value[0] / first, first, 0, statistic.pooled_query)
    if statistic.leading is None or statistic.class_query is None:
        return (pooled,)
    weight, size = statistic.weights[1] / worth, statistic.leading.size
    value = noisy.value[1:, :size, :size] / weight
    return pooled, (BY_CLASS, unweighted(noisy, value, weight, slice(1, None), statistic.class_query))
