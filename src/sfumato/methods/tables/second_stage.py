"""The second release of a table: a class behind one protocol, its event beside its act.

A second stage says which event it is, measures queries that may rest on what the first release said, and says the
moments of features that follow. The chain of columns is fitted to these, whichever stage they come from.

`SecondMoments` is the default: second moments of features, pooled and by class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from sfumato.fitting.driver import Fit
from sfumato.measurements.queries import Query
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.tables.cross_moments import CrossMoments, cross_moments
from sfumato.methods.tables.feature_moments import TableMoments
from sfumato.methods.tables.features import ColumnShares
from sfumato.methods.tables.layout import TableLayout
from sfumato.methods.tables.moment_entries import Entries
from sfumato.methods.tables.pair_laws import Copy
from sfumato.methods.tables.prior_rows import PriorRows
from sfumato.privacy.origin import simplest
from sfumato.privacy.plan import Stage, multiplier_for_share

MOMENTS, POOLED = "second moments by class", "second moments"


@dataclass(frozen=True, slots=True)
class FirstRelease:
    """What the first release says, and how finely the table is modelled: all of it released or public.

    Attributes:
        layout: the cells of the columns.
        columns: shares and features of each column but the target.
        class_counts: estimated, shape (k,).
        class_weight: squared length of an indicator of the class, or of all rows; 0 of none.
        by_class: β², the part of the second release that tells classes apart.
        low_rank: whether noise hides all but what all columns share.
        rows: number of rows beside which the noise of the second release is seen.
        unit_rows: how many rows of a unit count whole.
        prior: rows of an earlier release's model.
        hidden: share of records without a class.
    """

    layout: TableLayout
    columns: Sequence[ColumnShares]
    class_counts: np.ndarray
    class_weight: float
    by_class: float
    low_rank: bool
    rows: float
    unit_rows: float
    prior: PriorRows | None = None
    hidden: float = 0.0


@dataclass(frozen=True, slots=True)
class SecondRelease:
    """What was measured, under its names, and the moments of features that follow from it."""

    measurements: tuple[tuple[str, Noisy], ...]
    moments: CrossMoments


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


ClipNorm = Callable[[Sequence[np.ndarray], Sequence[np.ndarray], float, float], float]
Statistic = Callable[[TableLayout, tuple[np.ndarray, ...], float, float, int], TableMoments]


@dataclass(frozen=True, slots=True)
class SecondMoments:
    """Sums of outer products of the records' clipped features, pooled and by class.

    Attributes:
        name: of the stage.
        clip_norm: the norm that noise and bias favour: see `Measuring.clip_norm`.
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
        return moment_stage(self.name, share)

    def release(self, fit: Fit, first: FirstRelease) -> SecondRelease:
        """The noisy moments, and what they say of every pair of features."""
        shares = [column.shares for column in first.columns]
        vectors = [column.vectors() for column in first.columns]
        if first.class_weight:
            k, size = first.class_counts.size, first.layout.class_cells.size
            shares.append(np.pad(first.class_counts / first.class_counts.sum(), (0, size - k)))
            vectors.append(np.sqrt(first.class_weight) * np.eye(size, k))
        multiplier = 0.0 if fit.noise.silent else fit.plan[self.name].noise_multiplier * first.unit_rows
        clip_norm = self.clip_slack * self.clip_norm(vectors, shares, multiplier, first.rows)
        moments = self.statistic(first.layout, tuple(vectors), clip_norm, first.by_class, fit.n_public)
        noisy = fit.measure(self.name, moments)
        entries = Entries.of(first.columns, _copies(first.layout, first.columns, self.copied))
        weights, low_rank = moments.weights, first.low_rank
        prior = None
        if first.prior is not None and noisy.noise_std:
            raked = first.prior.raked(first.columns, first.class_counts / first.class_counts.sum())
            prior = raked.moments(first.columns, by_class=weights.size > 1)
        pairs = cross_moments(
            of_classes(noisy, first),
            weights[: 1 + first.class_counts.size],
            entries,
            first.class_counts,
            first.class_weight,
            low_rank=low_rank,
            earlier=prior,
        )
        return SecondRelease(moment_measurements(noisy, moments, self.worth), pairs)


def of_classes(noisy: Noisy, first: FirstRelease) -> Noisy:
    """Return noisy moments as they would be of the records with a class alone: these are like all."""
    value = noisy.value[: 1 + first.class_counts.size].copy()
    value[0] *= 1 - first.hidden
    return replace(noisy, value=value)


def moment_stage(name: str, share: float) -> Stage:
    """The event of `SecondMoments`."""
    return Stage(
        name=name,
        noise_multiplier=multiplier_for_share(share),
        replace_distance=float(np.sqrt(2)),
        measures="how the columns go together, over all rows and per class",
    )


def _copies(layout: TableLayout, columns: Sequence[ColumnShares], copied: Mapping[str, str]) -> list[Copy]:
    """The columns of labels that may be kept from an earlier one."""
    places = {column.name: j for j, column in enumerate(layout.features)}
    copies = []
    for name, before in copied.items():
        if name not in places or columns[places[name]].ordered:  # what rules compute is not among them
            continue
        first, second = columns[places[before]], columns[places[name]]
        shares = (first.shares + second.shares) / 2
        values = [column.features.values[column.drawn] for column in (first, second)]
        copies.append(Copy.of((places[before], places[name]), shares, *values))
    return copies


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


def moment_measurements(noisy: Noisy, statistic: TableMoments, worth: float = 1.0) -> tuple[tuple[str, Noisy], ...]:
    """The release of `TableMoments` without its weights; in the unit of records' weights."""
    first = statistic.weights[0] / worth
    pooled = unweighted(noisy, noisy.value[0] / first, first, 0, statistic.pooled_query)
    if statistic.weights.size == 1:
        return ((POOLED, pooled),)
    weight = statistic.weights[1] / worth
    by_class = unweighted(noisy, noisy.value[1:] / weight, weight, slice(1, None), statistic.class_query)
    return ((POOLED, pooled), (MOMENTS, by_class))
