"""Measurements of items in a release of sets alone: noisy totals, and what a total leaves open.

Items were counted by themselves, and pairs of frequent ones with weights: a set of many watched items counts less. How
much less the sets that hold a pair count on average, and how much that varies, is read off the model's sets.

Free: uses released values only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.columns.sets import CodedSets, ItemSet
from sfumato.errors import EstimateError
from sfumato.lenses.chain import plain_schema
from sfumato.lenses.lens import DataSet
from sfumato.maths.streams import public_stream
from sfumato.measurements.item_queries import WEIGHT_PARTS, ItemPairQuery, ItemQuery
from sfumato.measurements.queries import Measurement
from sfumato.release.model import ReleaseValue
from sfumato.release.samplers import build_sampler
from sfumato.schema.set_columns import SetColumn, sets_alone

MODEL_SETS = 1 << 16
"""Sets of the model that weights of pairs are read off; a fixed stream draws them."""
_STREAM = 20_261
_AS_ALL = 20.0  # sets of the model by which a pair's mean weight is drawn to that of all pairs
_ALLOWED = 0.25  # part of what long sets lack, that the model may be off by: one standard deviation
_UPPER = 2.0  # deviations of noise that a bound is raised by
_COUNT = "number of rows"


@dataclass(frozen=True, slots=True)
class ItemTotal:
    """A noisy number of sets.

    Attributes:
        value: number of sets, of a pair with what long sets lack put back.
        noise: variance of its privacy noise.
        unmeasured: variance of what is put back, where it was not measured.
        known: part of it that was measured.
    """

    value: float
    noise: float
    unmeasured: float = 0.0
    known: float = 1.0


class MeasuredItems:
    """The measurements of a release of sets alone.

    Args:
        release: of sets, and of nothing beside them.

    Attributes:
        column: of the sets, and its kind.
        n_public: the public number of sets, declared or measured.
        items: noisy numbers of sets that hold each item, with the query.
        pairs: weighted ones of pairs; None where these were not counted.

    Raises:
        EstimateError: it measured nothing about items.
    """

    def __init__(self, release: ReleaseValue) -> None:
        # a copy of what it holds: no cycle with a release that keeps its questions
        self.release, self._owners_of = replace(release), dict[int, np.ndarray]()
        items = [m for m in release.measurements if isinstance(m.query, ItemQuery)]
        if not sets_alone(release.schema) or not items:
            raise EstimateError(
                "Expected a release that measured how many sets hold each item, which estimates can rest on, got "
                "another. Fit the sets with latent-classes or independent-items."
            )
        self.items: Measurement = min(items, key=lambda m: m.noise_std)
        name = release.schema.released[0]
        kind = release.schema.columns[name]
        assert isinstance(kind, ItemSet)
        self.kind, self.column, self.n_public = kind, SetColumn(name, kind, ()), release.certificate.n_public
        pairs = [m for m in release.measurements if isinstance(m.query, ItemPairQuery)]
        self.pairs: Measurement | None = min(pairs, key=lambda m: m.noise_std, default=None)

    @property
    def pair_query(self) -> ItemPairQuery | None:
        """How pairs were counted."""
        query = None if self.pairs is None else self.pairs.query
        return query if isinstance(query, ItemPairQuery) else None

    @property
    def sets_of_unit(self) -> int:
        """The most sets of one unit: so many may go together."""
        unit = self.release.schema.unit
        return 1 if unit is None else unit.max_rows

    @cached_property
    def count_variance(self) -> float | None:
        """Variance of the noise of a measured number of sets; None of a declared one."""
        if self.release.certificate.n_public_source == "declared":
            return None
        return sum(m.noise_std**2 for m in self.release.measurements if m.name == _COUNT)

    def item(self, code: int) -> ItemTotal:
        """How many sets hold an item."""
        return ItemTotal(float(self.items.value[code]), self.items.noise_std**2)

    def watched(self, code: int) -> bool:
        """Whether pairs of an item were counted."""
        query = self.pair_query
        return query is not None and bool(query.places[code] >= 0)

    def pair(self, first: int, second: int) -> ItemTotal:
        """How many sets hold both of two watched items."""
        query, pairs = self.pair_query, self.pairs
        assert query is not None
        assert pairs is not None
        low, high = sorted((int(query.places[first]), int(query.places[second])))
        weighted = float(query.split(pairs.value)[1][query.pair_of(low, high)])
        known, spread = self._weights(query, int(query.watched[low]), int(query.watched[high]))
        value = weighted / known
        lacking = (1 - known) * max(value, 0.0)
        unmeasured = (_ALLOWED * lacking) ** 2 + max(value, 0.0) * (spread - 1)
        return ItemTotal(value, (pairs.noise_std / known) ** 2, unmeasured, known)

    @cached_property
    def model_sets(self) -> CodedSets:
        """Sets of the model, drawn by a fixed stream."""
        sampler = build_sampler(plain_schema(self.release.schema), self.release.sampler, self.release.parameters)
        assert not isinstance(sampler, DataSet)
        return sampler.rows(MODEL_SETS, public_stream(_STREAM))[self.column.name]

    @cached_property
    def _set_weights(self) -> np.ndarray:
        """By how much each of the model's sets counts among pairs, shape (MODEL_SETS,)."""
        query = self.pair_query
        assert query is not None
        return query.weights[query.watched_of(self.model_sets)] / WEIGHT_PARTS

    def _owners(self, code: int) -> np.ndarray:
        """The model's sets that hold an item, ascending."""
        if code not in self._owners_of:
            self._owners_of[code] = self.model_sets.owners[self.model_sets.codes == code]
        return self._owners_of[code]

    @cached_property
    def _weights_of_all(self) -> tuple[float, float]:
        """Mean of the weight, and of its square, over all pairs of the model's sets."""
        query = self.pair_query
        assert query is not None
        numbers = query.watched_of(self.model_sets)
        pairs = numbers * (numbers - 1) / 2
        weights, whole = self._set_weights, max(float(pairs.sum()), 1.0)
        if not pairs.any():
            return 1.0, 1.0
        return float(pairs @ weights) / whole, float(pairs @ weights**2) / whole

    def _weights(self, query: ItemPairQuery, first: int, second: int) -> tuple[float, float]:
        """Mean weight of the sets that hold both items, and the mean square ÷ its square."""
        if (query.weights == WEIGHT_PARTS).all():
            return 1.0, 1.0
        both = np.intersect1d(self._owners(first), self._owners(second), assume_unique=True)
        weights, (mean, square) = self._set_weights[both], self._weights_of_all
        n = both.size + _AS_ALL
        known = (float(weights.sum()) + _AS_ALL * mean) / n
        return known, max((float((weights**2).sum()) + _AS_ALL * square) / n / known**2, 1.0)

    @cached_property
    def mean_size(self) -> tuple[float, float]:
        """Mean number of items of a set, and the variance of its privacy noise."""
        value = float(self.items.value.sum()) / self.n_public
        return value, self.items.value.size * self.items.noise_std**2 / self.n_public**2

    @cached_property
    def size_variance(self) -> tuple[float, bool]:
        """Variance of the number of items of a set, and whether that is the model's; else the most that it can be.

        The most that it can be between 0 and L with a mean μ is μ(L − μ) (Bhatia and Davis 2000).
        """
        mean = min(max(self.mean_size[0], 0.0), float(self.kind.longest))
        most = mean * (self.kind.longest - mean)
        return (most, False) if self.pairs is None else (min(float(self.model_sets.lengths.var()), most), True)

    @cached_property
    def full_share(self) -> float:
        """Upper bound of the share of sets that hold as many items as one may: whole sets may hold more.

        By Markov's inequality, or by the counts of sizes; each is raised by two deviations of its noise.
        """
        longest = self.kind.longest
        mean, noise = self.mean_size
        bounds = [1.0, (mean + _UPPER * noise**0.5) / longest]
        query, pairs = self.pair_query, self.pairs
        if query is not None and pairs is not None and longest > 1:
            sizes = query.split(pairs.value)[3]
            rest = query.sets.n_items - query.watched.size
            last = [_last(query.bins, min(longest, rest)), _last(query.held_bins, query.weights.size - 1)]
            full = last[0][:, None] + last[1] >= longest
            least = np.array(
                [query.weights[low : high + 1].min() for low, high in zip(query.held_bins, last[1], strict=True)]
            )
            each = np.broadcast_to(WEIGHT_PARTS / least, full.shape)[full]
            bounds.append(float(each @ sizes[full] + _UPPER * pairs.noise_std * np.sqrt(each @ each)) / self.n_public)
        return float(np.clip(min(bounds), 0.0, 1.0))


def _last(starts: np.ndarray, end: int) -> np.ndarray:
    """Where bins end, the last number of each."""
    return np.maximum(np.append(starts[1:] - 1, end), starts)
