"""The form of a certificate: what it states, key by key, and how each is read if a stranger wrote it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.errors import ConfigError
from sfumato.privacy.plan import Neighbours, Plan, Stage, Subset
from sfumato.privacy.reading import (
    Place,
    document,
    entry,
    many,
    mapping,
    number,
    one_of,
    optional,
    plain,
    reader,
    whole,
)
from sfumato.privacy.repetitions import LARGEST_MEAN, Repetitions
from sfumato.privacy.risk import TradeOff, trade_off

FORMAT_VERSION = 1
PLACE = Place("certificate")
_MOST_EVENTS = 100
_NOISE_RANGE = (0.01, 1e9)
_UPWARD = 1 + 1e-12

_epsilon = number(0, 1_000.0)
_delta = number(0, 1, inside=True)


@document
class Protected:
    """Whom the guarantee protects: "row", or the name of the unit's column; and how many of its rows were used."""

    name: str = entry(str)
    max_rows: int = entry(whole(1))


@document
class Weighting:
    """How rows were counted: by a column of weights, up to a public bound; the total of all, where it is public."""

    column: str = entry(str)
    upper: float = entry(number(0, 1e300, inside=True))
    total: float | None = entry(optional(number(0, 1e300, inside=True)), default=None)


@document
class Accountant:
    """The accountant of ε, by its name in `dp-accounting`; the grid of privacy-loss distributions, None of Rényi DP."""

    name: str = entry(one_of("PLDAccountant", "RdpAccountant"))
    value_discretization_interval: float | None = entry(optional(number(4e-6, 1.0)))


@document
class Point:
    """ε at a δ."""

    epsilon: float = entry(_epsilon)
    delta: float = entry(_delta)


@document
class StageCost:
    """The cost of a stage: ε of it alone, and its share of the squared budget."""

    name: str = entry(str)
    epsilon_alone: float = entry(_epsilon)
    share: float = entry(number(0, 1.001))


@document
class PlannedStage(StageCost):
    """The forecast of a stage: its cost, its statistic in words, and what its noise would mean; of a plan only."""

    measures: str = entry(str)
    forecast: str = entry(str)


@document
class Verdict:
    """The verdict of a criterion of acceptance on the chosen release: a noisy value beside the threshold.

    `noise_std` is that of the value; of an AUROC about.
    """

    criterion: str = entry(str)
    value: float = entry(number(-1e300, 1e300))
    noise_std: float = entry(number(0, 1e300))
    relation: str = entry(one_of("<=", ">="))
    threshold: float = entry(number(0, 1))
    passed: bool = entry(bool)

    @property
    def as_stated(self) -> bool:
        """Whether `passed` follows from the value."""
        over = self.value - self.threshold
        return self.passed == (over <= 0 if self.relation == "<=" else over >= 0)


@document
class Searched:
    """A search: settings of every candidate, the place of the best, its noisy distance, and verdicts."""

    candidates: tuple[str, ...] = entry(many(str))
    chosen: int = entry(whole(0))
    squared_distance: float = entry(number(-1e300, 1e300))
    verdicts: tuple[Verdict, ...] = entry(many(Verdict, _MOST_EVENTS), default=())


@document
class Bound:
    """The release of a saved certificate: hashes of its arrays as written, and of its manifest's entries."""

    arrays: str = entry(str)
    content: str = entry(str)


@document
class LedgerCharge:
    """The charge in the account of a data set: its number, and the hash of the chain up to it."""

    charge: int = entry(whole(1))
    chain: str = entry(str)


@document
class PriorRelease:
    """The release that was the prior of a fit: its hashes, as its own certificate has them, and its ε and δ."""

    arrays: str = entry(str)
    content: str = entry(str)
    epsilon: float | None = entry(optional(_epsilon), default=None)
    delta: float | None = entry(optional(_delta), default=None)


HOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
"""Of a holder of records: part of names of files."""
_HASH = re.compile("[0-9a-f]{64}")


@document
class JointFit:
    """The holders whose records a fit had, without one seeing those of another.

    Attributes:
        names: of all holders.
        colluding: how many of them may work together and learn no more than the release.
        session: SHA-256 of their cards, in 64 hexadecimal digits.
        attempts: how often the fit was begun, the last time included: its events are those of all attempts.
        without: the holders of earlier attempts who are in the last one no more.
    """

    names: tuple[str, ...] = entry(many(str))
    colluding: int = entry(whole(0))
    session: str = entry(str)
    attempts: int = entry(whole(1), default=1)
    without: tuple[str, ...] = entry(many(str), default=())

    @property
    def share(self) -> str:
        """What pads are used for once: session and attempt."""
        return f"{self.session} {self.attempts}"

    @property
    def noise_factor(self) -> float:
        """By which the noise of all holders is larger than that of those who need not work together."""
        return float((len(self.names) / max(len(self.names) - self.colluding, 1)) ** 0.5)

    def has_events(self, names: Sequence[str]) -> bool:
        """Whether stages of these names are those of all attempts: of earlier ones, with their numbers."""
        last = names[len(names) - len(names) // self.attempts :] if names else names
        return [*(f"{name}, attempt {i}" for i in range(1, self.attempts) for name in last), *last] == list(names)

    @property
    def is_sound(self) -> bool:
        """Whether there are two holders or more, of names of their own, and fewer that may collude."""
        named = [name.casefold() for name in (*self.names, *self.without) if HOLDER_NAME.fullmatch(name)]
        own = len(self.names)
        return (
            len(set(named)) == own + len(self.without)
            and max(2, self.colluding + 1) <= own
            and (self.attempts == 1) == (not self.without)
            and self.attempts <= 1 + len(self.without)
            and bool(_HASH.fullmatch(self.session))
        )


@document
class _Event:
    """One entry of `events`. What is only there at times has a default."""

    stage: str = entry(str)
    type: str = entry(one_of("gaussian", "poisson_sampled_gaussian", "subset_gaussian"))
    noise_multiplier: float = entry(number(0, 1e300, inside=True))
    sampling_probability: float | None = entry(optional(number(0, 1)))
    count: int = entry(whole(1))
    replace_distance: float = entry(number(1, 2))
    extra_delta: float = entry(number(0, 1), default=0.0)
    subset_size: int | None = entry(whole(1), default=None)
    source_size: int | None = entry(whole(1), default=None)
    repetitions: Mapping[str, float] | None = entry(mapping(number(0, LARGEST_MEAN)), default=None)


def event_to_dict(stage: Stage) -> dict[str, Any]:
    """Return a stage's event as plain values: one entry of a certificate's `events`."""
    law, subset = stage.repetitions, stage.subset
    event = _Event(
        stage=stage.name, type=stage.type, noise_multiplier=stage.noise_multiplier,
        sampling_probability=stage.sampling_probability, count=stage.count, replace_distance=stage.replace_distance,
        extra_delta=stage.extra_delta, subset_size=None if subset is None else subset.size,
        source_size=None if subset is None else subset.source_size,
        repetitions=None if law is None else {"mean": law.mean, "shape": law.shape},
    )  # fmt: skip
    return plain(event)


def stage_from_dict(event: object, place: Place = PLACE) -> Stage:
    """Return the stage that one entry of a certificate's `events`, or of a ledger's, stands for.

    Raises:
        ReleaseError: the entry is malformed.
    """
    form, stage, problem = reader(_Event)(event, place), None, "has a type that does not fit it"
    try:
        stage = Stage(
            name=form.stage, noise_multiplier=form.noise_multiplier, sampling_probability=form.sampling_probability,
            subset=None if form.subset_size is None else Subset(form.subset_size, form.source_size or 0),
            count=form.count, extra_delta=form.extra_delta, replace_distance=form.replace_distance,
            repetitions=None if form.repetitions is None else Repetitions(**form.repetitions),
        )  # fmt: skip
    except (TypeError, ConfigError) as error:
        problem = f"is impossible. {error}"
    return stage if stage is not None and stage.type == form.type else place.refuse(problem)


def _charged(event: object, place: Place) -> Stage:
    """Read an event whose account can be computed again in reasonable time."""
    stage = stage_from_dict(event, place)
    number(*_NOISE_RANGE)(stage.noise_multiplier, place.at("noise_multiplier"))
    return stage


@document
class Statement:
    """The cost of a fit, under the keys of `plan --json`: known before it runs, and stated of a release.

    Attributes:
        epsilon: ε under `neighbours` at `delta`, in nats. None without noise, as `replace_one` and `accountant` are.
        neighbours: add/remove, but replace-one where subsets are drawn without replacement.
        curve: ε at several δ, where finite.
        extra_delta: δ that is spent outside the events.
        events: the stages of the plan, each one event, without words. `stages`: what each of them costs.
        n_public: number of rows, "declared" or "estimated" by `n_public_source`; None in a plan that has yet to count.
        search: what a search tried; None without one.
        origins: where the facts of the schema come from, as its holder says: a line per source; none if not said.
        read_off: facts that were read off the records, which the guarantee does not cover; none if all are public.
        preset: the preset whose settings the method had, and how it differs from the paper; None of other settings.
        weight: how rows were weighted; None where every row counts once.
        measured_elsewhere: whether others measured what the model was made of, and drew the noise.
        prior: the release that said what to expect; None without one.
        joint: the holders whose records were summed; None of one.
        process_fit: of an estimator, which fit of its process it was, from 1; None of other fits.
    """

    format_version: int = entry(one_of(FORMAT_VERSION))
    method: str = entry(str)
    versions: Mapping[str, str] = entry(mapping(str))
    epsilon: float | None = entry(optional(_epsilon))
    delta: float | None = entry(optional(_delta))
    neighbours: Neighbours = entry(one_of(*Neighbours))
    replace_one: Point | None = entry(optional(Point))
    accountant: Accountant | None = entry(optional(Accountant))
    curve: tuple[Point, ...] = entry(
        many(Point), write=lambda points: [{"delta": point.delta, "epsilon": point.epsilon} for point in points]
    )
    extra_delta: float = entry(number(0, 1))
    events: tuple[Stage, ...] = entry(many(_charged, _MOST_EVENTS), write=lambda events: [*map(event_to_dict, events)])
    stages: tuple[StageCost, ...] = entry(many(StageCost, _MOST_EVENTS))
    unit: Protected = entry(Protected)
    n_public: int | None = entry(optional(whole(1)))
    n_public_source: str = entry(one_of("declared", "estimated"))
    sampling: str = entry(str)
    assumptions: tuple[str, ...] = entry(many(str))
    search: Searched | None = entry(Searched, default=None)
    origins: tuple[str, ...] = entry(many(str), default=())
    read_off: tuple[str, ...] = entry(many(str), default=())
    preset: str | None = entry(str, default=None)
    weight: Weighting | None = entry(Weighting, default=None)
    measured_elsewhere: bool = entry(bool, default=False)
    prior: PriorRelease | None = entry(PriorRelease, default=None)
    joint: JointFit | None = entry(JointFit, default=None)
    process_fit: int | None = entry(whole(1), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready copy."""
        return plain(self)

    @property
    def seeded(self) -> bool:
        """Whether the noise came from a seed: then the figures say what secret noise would cost."""
        return False

    @property
    def guaranteed(self) -> bool:
        """Whether anything is guaranteed: not without noise, and not with a seed."""
        return self.epsilon is not None and not self.seeded

    def trade_off(self, neighbours: Neighbours | None = None) -> TradeOff | None:
        """The best attacker's trade-off, of the events; None where nothing is guaranteed.

        Raises:
            UnsupportedEventError: the events have no account under that relation.
        """
        return None if self.plan is None or not self.guaranteed else trade_off(self.plan, neighbours)

    @property
    def plan(self) -> Plan | None:
        """The plan that was charged, without words; None without noise."""
        return Plan(self.events) if self.events else None

    @property
    def unit_name(self) -> str:
        """What one unit of privacy is: "row", or the name of the unit column."""
        return self.unit.name

    def contradiction(self) -> str | None:
        """Return how what is stated contradicts itself, or None."""
        cost = (self.delta, self.replace_one, self.accountant)
        if self.joint is not None and not (
            self.joint.is_sound and self.joint.has_events([s.name for s in self.events])
        ):
            return "names holders of a joint fit that cannot have been"
        if self.epsilon is None:
            free = all(part is None for part in cost) and not (self.curve or self.events or self.stages)
            return None if free else "states no epsilon, and yet what follows from one, or what was charged for"
        if self.measured_elsewhere:
            return "states an epsilon of noise that was drawn elsewhere"
        if self.delta is None or self.replace_one is None or self.accountant is None or not self.events:
            return "states an epsilon without its delta, replace_one, accountant or events"
        if (self.accountant.value_discretization_interval is None) != (self.accountant.name == "RdpAccountant"):
            return "has an accountant whose grid does not fit it"
        if self.replace_one.delta != self.delta:
            return "states 'replace_one' at another delta than its events were accounted at"
        if [stage.name for stage in self.events] != [stage.name for stage in self.stages]:
            return "has 'events' and 'stages' that do not belong together"
        if self.search is not None and self.search.chosen >= len(self.search.candidates):
            return "has chosen none of its candidates"
        if self.search is not None and not all(verdict.as_stated for verdict in self.search.verdicts):
            return "has verdicts that do not follow from their values"
        return self._contradicting_plan()

    def _contradicting_plan(self) -> str | None:
        try:
            plan = Plan(self.events)
        except ConfigError as error:
            return f"has events that make no plan. {error}"
        if plan.neighbours is not self.neighbours:
            return "has events without an account under its neighbours"
        return None if plan.extra_delta <= self.extra_delta * _UPWARD else "has another extra_delta than its events"
