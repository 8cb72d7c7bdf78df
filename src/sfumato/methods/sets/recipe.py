"""LatentClasses: sets of items by latent classes, from noisy counts of pairs of frequent items.

    counts of items    G(σ)    → shares of items, and which are watched
    counts of pairs    G(σ)    → classes of sets, each with its own shares of watched items and its own sizes

What goes together is measured directly, in one release, where networks have to learn it step by step. All else is made
of what was released.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from sfumato.errors import require_integer, require_open_unit
from sfumato.fitting.driver import Fit, FittedModel
from sfumato.fitting.purposes import Facts
from sfumato.maths.shrinkage import denoised
from sfumato.mechanisms.queries import Noisy
from sfumato.methods.items import COUNTS, ItemCounts, SetMethod
from sfumato.methods.sets.latent import Classes, CountedItems, fit_classes
from sfumato.methods.sets.pairs import ItemPairCounts, most_in_full, squared_length
from sfumato.models.item_classes import ItemClasses, drawn_shares, reach
from sfumato.models.sets import SetEncoder
from sfumato.privacy.budget import NonPrivate
from sfumato.privacy.plan import Plan, Stage, multiplier_for_share

PAIRS = "counts of pairs"
_SQRT2 = float(np.sqrt(2))
_NOISE_TO_SAMPLING = 0.1
_SEEN = 2.0  # times the noise of a pair's count: no pair of a rarer item can be seen
_LEAST = 0.5  # sets, that an item's count stands for at least


@final
@dataclass(frozen=True, kw_only=True)
class LatentClasses(SetMethod):
    """Sets of items by latent classes: given its class, a set's items are independent.

    Attributes:
        n_classes: K, at most; those that explain nothing get a share of next to nothing.
        most_items: at most so many items are watched: those whose pairs are counted, the most frequent ones.
        pairs: share of the squared budget that the counts of pairs take; those of items take the rest.

    Example:
        >>> import numpy as np, pyarrow as pa, sfumato
        >>> rng = np.random.default_rng(0)
        >>> baskets = [[0, 1] if with_both else [2] for with_both in rng.random(3000) < 0.4]
        >>> schema = {"rows": 3000, "columns": {"items": {"kind": "set", "n_items": 3, "max_length": 3}}}
        >>> release = sfumato.LatentClasses(epsilon=1.0).fit(pa.table({"items": baskets}), schema=schema, seed=0)
        >>> sample = release.sample(1000, seed=0)["items"].to_pylist()
        >>> bool(abs(np.mean([{0, 1} <= set(items) for items in sample]) - 0.4) < 0.05)
        True
    """

    method: ClassVar[str] = "latent-classes"

    n_classes: int = 40
    most_items: int = 200
    pairs: float = 0.5

    def __post_init__(self) -> None:
        for name in ("n_classes", "most_items"):
            require_integer(at_least=1, **{name: getattr(self, name)})
        require_open_unit(pairs=self.pairs)

    def stages(self, facts: Facts) -> list[Stage]:
        """Two releases of all sets."""
        return [
            self.count_stage(facts, multiplier_for_share(1 - self.pairs)),
            Stage(
                name=PAIRS,
                noise_multiplier=multiplier_for_share(self.pairs),
                replace_distance=_SQRT2,
                measures="how many sets hold each pair of frequent items, and each of them beside how many others",
            ),
        ]

    def forecast(self, plan: Plan, facts: Facts) -> dict[str, str]:
        """Say what the noise means at `n_public`."""
        in_full = self._in_full(plan, facts)
        noise_std = plan[PAIRS].noise_multiplier * float(np.sqrt(squared_length(in_full))) * facts.unit_rows
        return {
            COUNTS: f"standard error of an item's share ±{self.one_way_error(plan, facts):.2g}",
            PAIRS: f"standard error of a pair's share ±{noise_std / facts.rows:.2g}; sets of more than {in_full} "
            "frequent items count less",
        }

    def run(self, fit: Fit) -> FittedModel:
        """Measure both counts, and fit the classes."""
        encoder = SetEncoder.of(fit.data.schema)
        counts = fit.measure(COUNTS, ItemCounts(encoder))
        totals = np.clip(denoised(counts.value, counts.noise_std), _LEAST, fit.n_public)
        in_full = self._in_full(fit.plan, fit.facts)
        pair_std = fit.plan[PAIRS].noise_multiplier * float(np.sqrt(squared_length(in_full))) * fit.facts.unit_rows
        statistic = ItemPairCounts(encoder, self._watched(totals, _SEEN * pair_std), in_full)
        noisy = fit.measure(PAIRS, statistic)
        few, classes = self._law(statistic, totals, counts, noisy, fit.n_public)
        rest = totals.copy()
        rest[statistic.watched] = 0.0
        arrays = {
            "few_shares": few,
            "class_shares": classes.shares,
            "watched": statistic.watched,
            "item_shares": classes.items,
            "rest_weights": rest,
            "size_starts": _edges(statistic),
            "size_shares": classes.sizes,
        }
        return FittedModel(
            {"name": ItemClasses.name}, arrays, ((ItemCounts.name, counts), (ItemPairCounts.name, noisy))
        )

    def _in_full(self, plan: Plan, facts: Facts) -> int:
        """Return how many frequent items a set may hold and count in full; from public facts."""
        longest = SetEncoder.of(facts.schema).kind.longest
        if isinstance(self.epsilon, NonPrivate):
            return longest
        multiplier = plan[PAIRS].noise_multiplier * facts.unit_rows
        return most_in_full(multiplier, facts.rows, longest, noise_to_sampling=_NOISE_TO_SAMPLING)

    def _watched(self, totals: np.ndarray, least: float) -> np.ndarray:
        """Return the codes of the items whose pairs can be seen, ascending; at least one. Free."""
        order = np.argsort(-totals, kind="stable")[: self.most_items]
        return np.sort(order[: max(1, int((totals[order] >= least).sum()))])

    def _law(
        self, statistic: ItemPairCounts, totals: np.ndarray, counts: Noisy, noisy: Noisy, n_public: int
    ) -> tuple[np.ndarray, Classes]:
        """Return the shares of the empty set and of each item alone, and the classes of longer sets. Free."""
        reading = statistic.read(noisy)
        few = denoised(reading.few, reading.few_std)
        few = np.maximum(few, 0.0) * min(1.0, n_public / max(float(few.sum()), 1.0))
        single_std = float(np.hypot(counts.noise_std, reading.few_std))
        paired = np.maximum(totals - few[1:], _LEAST)
        others = np.setdiff1d(np.arange(totals.size), statistic.watched)
        items = CountedItems(
            n=float(n_public),
            watched=paired[statistic.watched],
            watched_std=single_std,
            rest=float(paired[others].sum()) / n_public,
            rest_std=float(np.sqrt(others.size)) * single_std / n_public,
        )
        edges = _edges(statistic)
        middles = (edges[:-1] + edges[1:] - 1) / 2
        classes = fit_classes(items, reading, middles, n_classes=self.n_classes)
        share_of_long = float(drawn_shares(classes.shares, classes.sizes, reach(classes.items)).sum())
        many = max(n_public - float(few.sum()), 0.0) / n_public  # what is not short is long: better known than classes
        return few / n_public, replace(classes, shares=classes.shares * many / max(share_of_long, 1e-12))


def _edges(statistic: ItemPairCounts) -> np.ndarray:
    """Return where bins of the rest's sizes start, and the end of the last, shape (B + 1,)."""
    rest = statistic.encoder.dimension - statistic.watched.size
    return np.append(statistic.bins, min(statistic.encoder.kind.longest, rest) + 1).astype(np.int64)
