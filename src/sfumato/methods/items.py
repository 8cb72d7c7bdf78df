"""IndependentItems: sets whose items are independent, with noisy frequencies.

    counts of items    G(σ)    → the probability of each item

The least that a model of sets can know, and the baseline for those that know more: what items go together is lost.

How many sets hold each item.

    counts of items    G(σ)    x ∈ {0, 1}^m with at most L ones

Proof: docs/proofs/gaussian_sum.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sfumato.errors import ConfigError
from sfumato.fitting.driver import Fit, FittedModel
from sfumato.fitting.purposes import Facts
from sfumato.fitting.synthesizer import Synthesizer
from sfumato.measurements.item_queries import ItemQuery, SetsOf
from sfumato.mechanisms.statistics import Counts
from sfumato.models.sets import IndependentItems as IndependentItemsSampler
from sfumato.models.sets import SetEncoder
from sfumato.privacy.plan import Plan, Stage
from sfumato.records.engine import Rows

_SQRT2 = float(np.sqrt(2))


@dataclass(frozen=True)
class ItemCounts(Counts):
    """The number of sets that hold each item.

    A record adds its binary vector, of norm at most √L, L = min(max_length, m). No entry is negative, so two records
    are at most √(2L) apart. Value: shape (m,).
    """

    encoder: SetEncoder
    name: str = "counts of items"

    @property
    def squares(self) -> float:
        """The most items of a set."""
        return self.encoder.kind.longest

    @property
    def query(self) -> ItemQuery:
        """What is summed, as data."""
        return ItemQuery(SetsOf.of(self.encoder.name, self.encoder.kind))

    def zero(self) -> np.ndarray:
        """Return zeros."""
        return np.zeros(self.query.shape)

    def add(self, total: np.ndarray, rows: Rows) -> None:
        """Count the items of some sets."""
        self.query.add(total, self.encoder.sets(rows))


COUNTS = "counts of items"


class SetMethod(Synthesizer):
    """A method of sets: it counts items first."""

    resumable: ClassVar[bool] = True

    def count_stage(self, facts: Facts, noise_multiplier: float = 1.0) -> Stage:
        """The stage that counts items.

        Raises:
            ConfigError: the schema is not of sets alone, or there is a target.
        """
        SetEncoder.of(facts.schema)
        if facts.target is not None:
            raise ConfigError(
                f"Expected no target for the method {self.method}, got target={facts.target!r}. Leave it out."
            )
        measures = "how many sets hold each item"
        return Stage(name=COUNTS, noise_multiplier=noise_multiplier, replace_distance=_SQRT2, measures=measures)

    def one_way_error(self, plan: Plan, facts: Facts) -> float:
        """The noise of an item's share of the sets."""
        norm_bound = SetEncoder.of(facts.schema).norm_bound * facts.unit_rows
        return plan[COUNTS].noise_multiplier * norm_bound / facts.rows


@final
@dataclass(frozen=True, kw_only=True)
class IndependentItems(SetMethod):
    """Sets of items drawn independently, each with its noisy frequency: a baseline.

    A count below twice its noise is taken for 0: of many rare items, most of such counts are noise.
    """

    method: ClassVar[str] = "independent-items"

    def stages(self, facts: Facts) -> list[Stage]:
        """One release."""
        return [self.count_stage(facts)]

    def forecast(self, plan: Plan, facts: Facts) -> dict[str, str]:
        """Say what the noise means at `n_public`."""
        return {COUNTS: f"standard error of an item's share ±{self.one_way_error(plan, facts):.2g}"}

    def run(self, fit: Fit) -> FittedModel:
        """Measure the counts."""
        statistic = ItemCounts(SetEncoder.of(fit.data.schema))
        counts = fit.measure(COUNTS, statistic)
        clear = np.where(counts.value >= 2 * counts.noise_std, counts.value, 0.0)
        return FittedModel(
            sampler={"name": IndependentItemsSampler.name},
            parameters={"probabilities": np.clip(clear / fit.n_public, 0.0, 1.0)},
            measurements=((ItemCounts.name, counts),),
        )
