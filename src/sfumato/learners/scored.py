"""Tables of many numeric columns: a class shifts and stretches normal scores that are taken over all classes.

With many columns the counts of a column's cells within a class drown in noise; what survives is where the class lies
and how wide it is (`sfumato.models.normal_classes`). Scores standardised by that, and a constant beside them, go
into the second moments: the products with the constant are the class's means, seen once more and better.

Proofs: as for `sfumato.learners.marginals` and `sfumato.learners.moments`, whose statistics these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.encoders.grid import ColumnGrid
from sfumato.learners.marginals import Marginals
from sfumato.learners.moments import chain_of
from sfumato.mechanisms.queries import Noisy
from sfumato.models.chain import ChainModel
from sfumato.models.columns import ColumnModel
from sfumato.models.gaussian import shrinkage_weight
from sfumato.models.normal_classes import Locations, locate_classes, normal_cuts, normal_table

_LEAST_WEIGHT = 0.25  # of a class's clipped records, as a share of its count


@dataclass(frozen=True, slots=True)
class ScoredMarginals:
    """Marginals whose numeric columns are shifted and stretched normal scores within a class.

    Attributes:
        marginals: what they say of every column.
        noisy: the counts they were made from.
        features: the columns.
        cuts: per numeric column, normal quantiles at the edges of its ordered cells, over all classes.
        locations: per class, of the numeric columns.
    """

    marginals: Marginals
    noisy: Noisy
    features: tuple[ColumnGrid, ...]
    cuts: tuple[np.ndarray, ...]
    locations: tuple[Locations, ...]

    @classmethod
    def of(cls, noisy: Noisy, marginals: Marginals, features: Sequence[ColumnGrid]) -> ScoredMarginals:
        """Locate every class's scores from noisy counts of cells. Free: uses released values only."""
        numeric = [j for j, column in enumerate(features) if column.numeric]
        ordered = [features[j].n_cells - features[j].kind.nullable for j in numeric]
        ends = np.cumsum([column.n_cells for column in features])
        tables = np.split(noisy.value, ends[:-1], axis=1)
        cuts = tuple(normal_cuts(_positive(marginals.pooled(j)[:n])) for j, n in zip(numeric, ordered, strict=True))
        locations = []
        for k, count in enumerate(marginals.class_counts):
            counts = [tables[j][k, :n] for j, n in zip(numeric, ordered, strict=True)]
            totals = [count * marginals.tables[j][k, :n].sum() for j, n in zip(numeric, ordered, strict=True)]
            locations.append(locate_classes(counts, np.array(totals), noisy.noise_std, cuts))
        made = cls(marginals, noisy, tuple(features), cuts, tuple(locations))
        return made._with_tables()

    def _with_tables(self) -> ScoredMarginals:
        """Return the same with the numeric columns' tables made from the locations."""
        tables = list(self.marginals.tables)
        numeric = [j for j, column in enumerate(self.features) if column.numeric]
        for i, j in enumerate(numeric):
            ordered = self.cuts[i].size - 1
            table = tables[j].copy()
            for k, location in enumerate(self.locations):
                table[k, :ordered] = table[k, :ordered].sum() * normal_table(
                    location.means[i], location.scales[i], self.cuts[i]
                )
            tables[j] = table / table.sum(axis=1, keepdims=True)
        return replace(self, marginals=Marginals(self.marginals.class_counts, tuple(tables)))

    def observed(self, means: np.ndarray, deviations: np.ndarray) -> ScoredMarginals:
        """Return the same after noisy means of the classes' own scores have been seen, shapes (k, numeric)."""
        locations = tuple(
            location.observed(location.means + location.scales * mean, location.scales * deviation)
            for location, mean, deviation in zip(self.locations, means, deviations, strict=True)
        )
        return replace(self, locations=locations)._with_tables()


def _positive(shares: np.ndarray) -> np.ndarray:
    return shares if shares.sum() > 0 else np.ones_like(shares)


def fit_scored_chain(
    noisy: Noisy, scored: ScoredMarginals, columns: Sequence[ColumnModel], constant: float
) -> ChainModel:
    """Turn noisy second moments with a constant into a chain model. Free: uses released values only."""
    counts = scored.marginals.class_counts
    # clipping weighs long records down; the constant's own moment says by how much
    weights = np.clip(noisy.value[:, -1, -1] / constant**2, _LEAST_WEIGHT * counts, counts)
    means = noisy.value[:, -1, :-1] / (constant * weights[:, None])
    deviations = noisy.noise_std / (np.sqrt(2) * constant * weights)
    starts = np.cumsum([0, *(column.width for column in columns)])[:-1]
    scores = [start for start, column in zip(starts, columns, strict=True) if column.scored]
    seen = scored.observed(means[:, scores], np.tile(deviations[:, None], len(scores)))
    moments = noisy.value[:, :-1, :-1] / weights[:, None, None]
    for k, (mean, deviation) in enumerate(zip(means, deviations, strict=True)):
        # an outer product of noise is beyond any edge: taken off only where there is surely more than noise
        energy = mean.size * deviation**2 * (1 + 3 * np.sqrt(2 / mean.size))
        shrunk = mean * shrinkage_weight(float(mean @ mean), energy)
        moments[k] -= np.outer(shrunk, shrunk)
    columns = [
        replace(column, probabilities=table) for column, table in zip(columns, seen.marginals.tables, strict=True)
    ]
    return chain_of(moments, noisy.noise_std, weights, scored.marginals.class_shares, columns)
