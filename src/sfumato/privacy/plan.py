"""A plan: named stages, each one DP event, known before any record is read.

A plan is a constant of the public schema and the settings: the composition theorems need its noise multipliers,
sampling probabilities and counts to be fixed in advance. `sfumato.privacy.calibration.calibrate` turns a plan's
relative noise into the least noise that meets a budget; `sfumato.privacy.ledger.Ledger` holds a fit to it.

Relative noise of plans that mix releases of all records with releases of samples.

By the central limit theorem of privacy loss (Dong, Roth and Su 2022, arXiv:1905.02383), T releases of Poisson samples
at rate q and noise multiplier σ are about one Gaussian release of multiplier 1/√(T q² (e^{1/σ²} − 1)). A share of the
squared budget is turned into a noise multiplier by that rule; calibration then scales the whole plan exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from sfumato._lazy import later
from sfumato.cards import html as cards
from sfumato.cards.html import figure, sentence, shown
from sfumato.errors import ConfigError, UnsupportedEventError, require_integer, require_open_unit, require_positive
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.repetitions import Repetitions

if TYPE_CHECKING:
    from dp_accounting import dp_event, gaussian_mechanism
else:
    dp_event, gaussian_mechanism = later("dp_accounting.dp_event"), later("dp_accounting.gaussian_mechanism")


class Neighbours(Enum):
    """When two data sets count as neighbours.

    ADD_REMOVE: one has one unit more than the other. REPLACE_ONE: one unit has another value; both have one size.
    """

    ADD_REMOVE = "add_remove"
    REPLACE_ONE = "replace_one"


@dataclass(frozen=True, slots=True)
class Subset:
    """A uniform subset without replacement: `size` of the `source_size` units there are.

    Under replace-one the number of units is public; under add/remove it is not, and there is no such account.
    """

    size: int
    source_size: int

    def __post_init__(self) -> None:
        require_integer(at_least=1, size=self.size)
        if require_integer(at_least=1, source_size=self.source_size) < self.size:
            raise ConfigError(f"Expected a subset of at most {self.source_size} units, got size={self.size}.")

    @property
    def share(self) -> float:
        """Probability with which a unit is in the subset."""
        return self.size / self.source_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of a plan: a Gaussian release, possibly of a Poisson sample or a subset, made `count` times.

    The event is `Gaussian(noise_multiplier)` under add/remove. Under replace-one it is `Gaussian(2 / Δ)` with
    Δ = replace_distance / noise_multiplier, because the PLD accountant doubles the distance of a Gaussian itself; a
    Poisson-sampled release keeps its norm-based multiplier, whose worst pair the accountant knows. That of a subset
    is 1 / Δ (`sfumato.privacy.pld`), and it has no event under add/remove.

    Attributes:
        name: unique within a plan.
        noise_multiplier: noise standard deviation ÷ largest ℓ2 norm of what one unit contributes; > 0, no unit.
        replace_distance: largest ℓ2 distance between the contributions of two units ÷ that same norm; in [1, 2].
        sampling_probability: probability with which each unit is in the Poisson sample; None without sampling.
        subset: the subset without replacement that is drawn each time; None without.
        count: how many times the release is made, at least 1.
        extra_delta: δ that the stage spends outside its event, in [0, 1): the probability that it shows what one unit
            alone brought. All releases of the stage together.
        repetitions: of a search that repeats this stage with all others that it repeats, and releases one outcome: how
            often, at random. The event is then that of all repetitions.
        measures: what is measured, in words, for the printed plan.
    """

    name: str
    noise_multiplier: float
    replace_distance: float = 2.0
    sampling_probability: float | None = None
    subset: Subset | None = None
    count: int = 1
    extra_delta: float = 0.0
    repetitions: Repetitions | None = None
    measures: str = ""

    def __post_init__(self) -> None:
        require_positive(f"Stage {self.name!r}.", noise_multiplier=self.noise_multiplier)
        require_positive(f"Stage {self.name!r}.", replace_distance=self.replace_distance)
        require_integer(at_least=1, hint=f"Stage {self.name!r}.", count=self.count)
        if self.extra_delta != 0:
            require_open_unit(f"Stage {self.name!r}.", extra_delta=self.extra_delta)
        if not 1 <= self.replace_distance <= 2:
            raise ConfigError(
                f"Expected replace_distance between 1 and 2, got replace_distance={self.replace_distance!r}. "
                "Two vectors of norm 1 are never further apart; below 1, several records of a unit could be."
            )
        if self.sampling_probability is not None and self.sampling_probability != 1:
            require_open_unit(f"Stage {self.name!r}.", sampling_probability=self.sampling_probability)
        if self.sampling_probability is not None and self.subset is not None:
            raise ConfigError(f"Expected a Poisson sample or a subset, got both. Stage {self.name!r}.")
        if self.repetitions is not None and (self.subset is not None or self.extra_delta):
            raise ConfigError(
                f"Expected a repeated stage to have an account by Rényi DP under add/remove, got stage {self.name!r} "
                "with subsets without replacement or an additive part of delta."
            )

    @property
    def words(self) -> str:
        """How the stage is protected, and how often it is made."""
        if self.subset is not None:
            how = f"Gaussian noise on {self.subset.size} of {self.subset.source_size} records"
        elif self.sampling_probability is None:
            how = "Gaussian noise, all records"
        else:
            rate = figure(self.sampling_probability, 4)
            how = f"Gaussian noise on a random sample, each record with probability {rate}"
        return self._repeated("times") + how

    @property
    def brief(self) -> str:
        """The same for a narrow column."""
        if self.subset is not None:
            how = f"Gaussian of {self.subset.size} of {self.subset.source_size}, without replacement"
        elif self.sampling_probability is None:
            how = "Gaussian"
        else:
            how = f"Gaussian of a Poisson sample, q = {figure(self.sampling_probability, 4)}"
        return self._repeated("×") + how

    def _repeated(self, times: str) -> str:
        return ("" if self.repetitions is None else "* ") + ("" if self.count == 1 else f"{self.count} {times} ")

    def event(self, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> dp_event.DpEvent:
        """Return the DP event of this stage, with its count, for an accountant of the given relation.

        Raises:
            UnsupportedEventError: a subset without replacement under add/remove.
        """
        if self.repetitions is not None:
            return repeated_event([self], neighbours)
        multiplier = self.noise_multiplier
        if self.subset is not None:
            if neighbours is not Neighbours.REPLACE_ONE:
                raise UnsupportedEventError(
                    f"Expected replace-one neighbours for stage {self.name!r}, got add/remove. Subsets without "
                    "replacement have an account for a public number of units only: use Poisson samples."
                )
            single: dp_event.DpEvent = dp_event.SampledWithoutReplacementDpEvent(
                source_dataset_size=self.subset.source_size,
                sample_size=self.subset.size,
                event=dp_event.GaussianDpEvent(multiplier / self.replace_distance),
            )
        elif self.sampling_probability is not None:
            single = dp_event.PoissonSampledDpEvent(
                sampling_probability=self.sampling_probability, event=dp_event.GaussianDpEvent(multiplier)
            )
        elif neighbours is Neighbours.REPLACE_ONE:
            single = dp_event.GaussianDpEvent(2 * multiplier / self.replace_distance)
        else:
            single = dp_event.GaussianDpEvent(multiplier)
        return single if self.count == 1 else dp_event.SelfComposedDpEvent(single, self.count)

    def nearer(self, distance: float) -> Stage:
        """Return the stage with its noise in units of a distance between two contributions, not of their norm."""
        return replace(self, noise_multiplier=self.noise_multiplier / distance, replace_distance=2.0)

    @property
    def inclusion(self) -> float | None:
        """Probability with which a unit is in the sample or the subset; None without either."""
        return self.sampling_probability if self.subset is None else self.subset.share

    @property
    def type(self) -> str:
        """Name of the event: "gaussian", "poisson_sampled_gaussian" or "subset_gaussian"."""
        if self.subset is not None:
            return "subset_gaussian"
        return "gaussian" if self.sampling_probability is None else "poisson_sampled_gaussian"


_HEAD = ("stage", "event", "noise multiplier", "what is measured")


@dataclass(frozen=True, slots=True)
class Plan:
    """Stages in the order in which they run.

    Stages with `repetitions` come last, and are repeated together.

    Raises:
        ConfigError: no stage, two stages of one name, or repeated stages before others or under several laws.
    """

    stages: tuple[Stage, ...]

    def __init__(self, stages: Iterable[Stage]) -> None:
        object.__setattr__(self, "stages", tuple(stages))
        names = [stage.name for stage in self.stages]
        if not names or len(set(names)) != len(names):
            raise ConfigError(f"Expected a plan of stages with different names, got {names!r}.")
        laws = [stage.repetitions for stage in self.stages]
        repeated = [law for law in laws if law is not None]
        if len(set(repeated)) > 1 or laws[len(laws) - len(repeated) :] != repeated:
            raise ConfigError("Expected a plan that repeats its last stages, all by one law.")
        if repeated and any(stage.subset is not None for stage in self.stages):
            raise ConfigError("Expected no subsets without replacement in a plan that repeats stages, got some.")

    def __str__(self) -> str:
        lines = [_HEAD, *((s.name, s.words, f"{s.noise_multiplier:.5g}", s.measures) for s in self.stages)]
        names, events, noises = (max(map(len, column)) for column in list(zip(*lines, strict=True))[:3])
        texts = (f"{a:{names}}  {b:{events}}  {c:>{noises}}  {d}".rstrip() for a, b, c, d in lines)
        return "\n".join(["Plan: stages of a fit, in order", *texts])

    def _repr_html_(self) -> str:
        rows = [(shown(s.name), s.words, figure(s.noise_multiplier, 5), sentence(s.measures)) for s in self.stages]
        relation = {"add_remove": "adding or removing", "replace_one": "replacing"}[self.neighbours.value]
        return cards.card(
            "Plan: stages of a fit, in order",
            cards.table(_HEAD, rows, numbers=(2,)),
            cards.paragraph(f"Accounted for {relation} one unit. A constant of schema and settings.", quiet=True),
        )

    def __getitem__(self, name: str) -> Stage:
        """Return the stage of that name."""
        return {stage.name: stage for stage in self.stages}[name]

    @property
    def neighbours(self) -> Neighbours:
        """The relation of the plan's budget: add/remove, but replace-one where a stage draws subsets."""
        subsets = any(stage.subset is not None for stage in self.stages)
        return Neighbours.REPLACE_ONE if subsets else Neighbours.ADD_REMOVE

    @property
    def extra_delta(self) -> float:
        """δ that the stages spend outside their events; it adds up (docs/proofs/discovery.md)."""
        return math.fsum(stage.extra_delta for stage in self.stages)

    @property
    def repetitions(self) -> Repetitions | None:
        """How often the last stages are repeated; None for a plan that repeats none."""
        return self.stages[-1].repetitions

    @property
    def parts(self) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
        """The stages that are made once, and those that are repeated."""
        once = tuple(stage for stage in self.stages if stage.repetitions is None)
        return once, self.stages[len(once) :]

    def scaled(self, factor: float) -> Plan:
        """Return the same plan with every noise multiplier times `factor`."""
        return Plan(replace(s, noise_multiplier=s.noise_multiplier * factor) for s in self.stages)

    def events(self, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> tuple[dp_event.DpEvent, ...]:
        """Return the events of all stages, in order, for an accountant of the given relation."""
        once, repeated = self.parts
        events = tuple(stage.event(neighbours) for stage in once)
        return (*events, repeated_event(repeated, neighbours)) if repeated else events


def repeated_event(stages: Iterable[Stage], neighbours: Neighbours) -> dp_event.DpEvent:
    """Return the event of stages that are repeated together, by the law of the first."""
    stages = list(stages)
    law = stages[0].repetitions
    if law is None:
        raise ConfigError("Expected stages that are repeated, got some that are not.")
    inner = [replace(stage, repetitions=None).event(neighbours) for stage in stages]
    # a tuple, so that the event can be remembered
    event = inner[0] if len(inner) == 1 else dp_event.ComposedDpEvent(tuple(inner))  # type: ignore[arg-type]
    return dp_event.RepeatAndSelectDpEvent(event, law.mean, law.shape)


def multiplier_for_share(share: float) -> float:
    """Return the relative noise multiplier 1/√share of a stage that takes `share` of the squared budget.

    Gaussian releases with multipliers m/√f_b, Σ f_b = 1, are together one Gaussian of multiplier m.
    """
    return 1 / math.sqrt(require_positive(share=share))


def one_shot(share: float, budget: PrivacyBudget, count: int = 1) -> float:
    """Return the multiplier of each of `count` releases of all records that take this share together."""
    return _whole(budget) * float(np.sqrt(count / share))


def sampled(share: float, budget: PrivacyBudget, *, probability: float, count: int) -> float:
    """Return the multiplier of each of `count` releases of Poisson samples that take this share together."""
    squared = share / _whole(budget) ** 2
    return float(1 / np.sqrt(np.log1p(squared / (count * probability**2))))


def _whole(budget: PrivacyBudget) -> float:
    """Return the noise multiplier of one Gaussian release that takes all of the budget."""
    return float(gaussian_mechanism.get_sigma_gaussian(budget.epsilon, budget.delta))
