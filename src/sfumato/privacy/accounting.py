"""From events to ε: a thin, safe face over `dp-accounting`.

Privacy-loss distributions (PLD) with pessimistic rounding, and Rényi DP (RDP), both give upper bounds on ε. The
smaller is reported, by the name of the accountant that gave it. Replace-one goes through the PLD accountant only, but
for searches (`replacing_account`): the RDP accountant of `dp-accounting` silently returns the add/remove value for
Gaussian events under replace-one.

What several fits of the same data cost together.

The events of all their plans compose as those of one plan do, if settings that set noise, sampling or counts were not
chosen by what earlier fits released. Where all events are Gaussian releases of all records they may be, as long as the
total is checked before a fit runs (Smith and Thakurta 2022, arXiv:2210.17520). The account is that of
`sfumato.privacy.accounting`: privacy-loss distributions where every event has one (subsets through
`sfumato.privacy.pld`), else Rényi DP over everything; additive parts of δ add up.

Gaussian releases of all records are merged first: together they are one Gaussian release, exactly. What a search
repeats (`sfumato.privacy.repetitions`) stays one event of its own; its account is by Rényi DP, under add/remove only.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from sfumato._lazy import later
from sfumato.errors import ConfigError, UnsupportedEventError, require_open_unit
from sfumato.privacy.plan import Neighbours, Plan, Stage, repeated_event

if TYPE_CHECKING:
    from dp_accounting import dp_event, privacy_accountant, rdp
    from dp_accounting.privacy_accountant import PrivacyAccountant

    from sfumato.privacy import pld  # whose accountant is a class of dp-accounting's
else:
    dp_event, privacy_accountant = later("dp_accounting.dp_event"), later("dp_accounting.privacy_accountant")
    rdp, pld = later("dp_accounting.rdp"), later("sfumato.privacy.pld")

DEFAULT_INTERVAL = 1e-4
COARSE_INTERVAL = 1e-3
_FINEST_INTERVAL = 5e-6  # below this, rounding noise and memory cost more than the grid gains

_MOST_HALVINGS = 200
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class Account:
    """An ε and how it was found.

    Attributes:
        epsilon: upper bound on ε at `delta`, nats.
        delta: δ.
        accountant: "PLDAccountant" or "RdpAccountant", as `dp-accounting` names them.
        value_discretization_interval: grid step of the PLD; None for RDP.
    """

    epsilon: float
    delta: float
    accountant: str
    value_discretization_interval: float | None


def interval_for(plan: Plan) -> float:
    """Return the PLD grid step that resolves the loss of one step of every stage.

    1e-4, or 0.3·q·√(exp(1/σ²) − 1) where a sampled stage needs a finer one, but not below 5e-6. Of a subset, q is the
    share and 1/σ the replace distance.
    """
    interval = DEFAULT_INTERVAL
    for stage in plan.stages:
        if stage.inclusion is not None:
            distance = (1.0 if stage.subset is None else stage.replace_distance) / stage.noise_multiplier
            interval = min(interval, 0.3 * stage.inclusion * math.sqrt(math.expm1(min(distance**2, 700.0))))
    return max(interval, _FINEST_INTERVAL)


def with_rounding(plan: Plan, delta: float, *, extra_delta: float) -> float:
    """Return the largest δ that another machine may have accounted for as this one, in 64 bits.

    The events have δ − `extra_delta` to themselves: a tenth of that at most is added, so that no number of steps in a
    stranger's certificate makes room.
    """
    free = delta - extra_delta
    rounding = pld.LARGEST_STEP_ROUNDING * sampled_steps(plan) + pld.COMPOSITION_ROUNDING * len(plan.stages)
    return delta + min(2 * rounding, free / 10) if free > 0 else delta


def is_resolved(plan: Plan, delta: float, *, extra_delta: float) -> bool:
    """Whether the δ of this machine's sampled steps, which another may not add, is small beside that of the events."""
    return pld.STEP_ROUNDING * sampled_steps(plan) <= (delta - extra_delta) / 20


def least_delta(plan: Plan) -> float:
    """Return the least δ for which noise is calibrated: four times what the account itself may add to δ.

    Nearer to that, most of δ would go to tails and rounding; below it, no noise has a finite ε.
    """
    subsets = sum(stage.count for stage in plan.stages if stage.subset is not None)
    stages = (pld.COMPOSITION_ROUNDING + 2 * pld.TAIL) * len(plan.stages)
    return plan.extra_delta + 4 * (pld.STEP_ROUNDING * sampled_steps(plan) + pld.NEGLIGIBLE * subsets + stages)


def sampled_steps(plan: Plan) -> int:
    """Return how many steps of a plan draw samples."""
    return sum(stage.count for stage in plan.stages if stage.inclusion is not None)


def _relation(neighbours: Neighbours) -> privacy_accountant.NeighboringRelation:
    relations = privacy_accountant.NeighboringRelation
    return relations.REPLACE_ONE if neighbours is Neighbours.REPLACE_ONE else relations.ADD_OR_REMOVE_ONE


def _composed(
    accountant: PrivacyAccountant,
    events: Sequence[dp_event.DpEvent],
    merged: Callable[[Sequence[dp_event.DpEvent]], Iterable[dp_event.DpEvent]] = iter,
) -> PrivacyAccountant | None:
    """Return the accountant once it has composed the events, `merged` if so; None if it does not take one."""
    if not all(accountant.supports(event) for event in events):
        return None
    for event in merged(events):
        accountant.compose(event)
    return accountant


def fresh_accountant(neighbours: Neighbours, interval: float) -> pld.GridPLDAccountant:
    """Return a PLD accountant that has composed nothing yet."""
    return pld.GridPLDAccountant(neighboring_relation=_relation(neighbours), value_discretization_interval=interval)


def _pld(events: Sequence[dp_event.DpEvent], neighbours: Neighbours, interval: float) -> PrivacyAccountant | None:
    return _composed(fresh_accountant(neighbours, interval), events, pld.merged_gaussians)


def composed_rdp(
    events: Sequence[dp_event.DpEvent], neighbours: Neighbours = Neighbours.ADD_REMOVE
) -> PrivacyAccountant | None:
    """Return the Rényi accountant that has composed the events; None if it does not take one."""
    with _without_a_line_per_order():
        return _composed(rdp.RdpAccountant(neighboring_relation=_relation(neighbours)), events)


def composed_pld(plan: Plan, neighbours: Neighbours, interval: float, *, tail: float) -> pld.GridPLDAccountant:
    """Return the PLD accountant that has composed a plan without repetitions, on a grid of this step in nats.

    Of each stage, losses of mass `tail` at most count as infinite.

    Raises:
        UnsupportedEventError: an event has none under this relation.
    """
    accountant = fresh_accountant(neighbours, interval)
    accountant.tail = tail
    if _composed(accountant, plan.events(neighbours), pld.merged_gaussians) is None:
        raise UnsupportedEventError(f"Expected events with an account under {neighbours.value}, got others.")
    return accountant


@contextmanager
def _without_a_line_per_order() -> Iterator[None]:
    """Keep quiet which Rényi orders do not converge: those left are bounds too, and nobody can do anything about it."""

    def about_something_else(line: logging.LogRecord) -> bool:
        return "Excluding this order" not in line.getMessage()

    logger = logging.getLogger("absl")
    logger.addFilter(about_something_else)
    try:
        yield
    finally:
        logger.removeFilter(about_something_else)


def account_curve(
    events: Sequence[dp_event.DpEvent],
    deltas: Sequence[float],
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    interval: float = DEFAULT_INTERVAL,
    extra_delta: float = 0.0,
) -> list[Account]:
    """Return the account of a sequence of events at each δ.

    With an additive part p of δ the events have to meet δ − p, and ε grows by −log(1 − p): docs/proofs/discovery.md.

    Args:
        events: DP events for the given relation (see `Stage.event`).
        deltas: each in (0, 1).
        neighbours: relation of the guarantee.
        interval: grid step of the PLD, nats.
        extra_delta: δ spent outside the events; at a δ that is no larger, ε is infinite.

    Raises:
        UnsupportedEventError: no accountant takes these events under this relation.
    """
    for delta in deltas:
        require_open_unit(delta=delta)
    by_pld = _pld(events, neighbours, interval)
    by_rdp = composed_rdp(events) if neighbours is Neighbours.ADD_REMOVE else None
    if by_pld is None and by_rdp is None:
        raise UnsupportedEventError(
            f"Expected events that an accountant takes under {neighbours.value}, got {list(map(repr, events))}."
        )
    composed = ((by_pld, "PLDAccountant", interval), (by_rdp, "RdpAccountant", None))
    accounts = (
        [Account(_epsilon(by, delta, extra_delta), delta, name, step) for by, name, step in composed if by is not None]
        for delta in deltas
    )
    return [min(candidates, key=lambda account: account.epsilon) for candidates in accounts]


def _epsilon(accountant: PrivacyAccountant, delta: float, extra_delta: float) -> float:
    if extra_delta >= delta:
        return math.inf
    return float(accountant.get_epsilon(delta - extra_delta)) - math.log1p(-extra_delta)


@lru_cache(maxsize=64)
def account(
    plan: Plan, delta: float, *, neighbours: Neighbours | None = None, interval: float | None = None
) -> Account:
    """Return ε of a whole plan at δ, under the plan's own relation with the step `interval_for(plan)` unless given."""
    neighbours = plan.neighbours if neighbours is None else neighbours
    step = interval_for(plan) if interval is None else interval
    return account_curve(
        plan.events(neighbours), [delta], neighbours=neighbours, interval=step, extra_delta=plan.extra_delta
    )[0]


def replacing_account(plan: Plan, delta: float, *, interval: float = DEFAULT_INTERVAL) -> Account:
    """Return ε of a plan at δ for replacing one unit by another.

    Of a plan that repeats stages there is no privacy-loss distribution. Its Gaussian releases of all records are
    entered in Rényi DP at their replace distances. Samples have no such entry: replacing is removing and adding, and
    what is (ε′, δ′) for each is (2ε′, (1 + e^ε′) δ′) for both.

    Raises:
        UnsupportedEventError: no account, or none at this δ.
    """
    if plan.repetitions is None:
        return account(plan, delta, neighbours=Neighbours.REPLACE_ONE, interval=interval)
    if all(stage.inclusion is None and not stage.extra_delta for stage in plan.stages):
        return account(Plan(stage.nearer(stage.replace_distance) for stage in plan.stages), delta)
    deltas = [delta * 2.0**-halvings for halvings in range(1, _MOST_HALVINGS)]
    curve = account_curve(plan.events(), deltas, interval=interval, extra_delta=plan.extra_delta)
    twice = [2 * point.epsilon for point in curve if point.delta * (1 + _exp(point.epsilon)) <= delta]
    if not twice:
        raise UnsupportedEventError(f"Expected events with an account for replacing one unit at delta={delta:g}.")
    return Account(min(twice), delta, curve[0].accountant, curve[0].value_discretization_interval)


def _exp(epsilon: float) -> float:
    return math.exp(epsilon) if epsilon < _LARGEST_EXPONENT else math.inf


def rough_event(stage: Stage, neighbours: Neighbours) -> dp_event.DpEvent:
    """Return the event of a stage for `rough_epsilon`: the RDP accountant measures Gaussians by their own distance."""
    if neighbours is Neighbours.ADD_REMOVE or stage.subset is not None:
        return stage.event(neighbours)
    distance = 2.0 if stage.sampling_probability is not None else stage.replace_distance
    return stage.nearer(distance).event()


def rough_epsilon(events: Sequence[dp_event.DpEvent], delta: float) -> float:
    """Return an estimate of the ε of `rough_event`s by RDP alone, quick for any events; ∞ if unsupported."""
    subsets = [event for event in events if _innermost(event, dp_event.SampledWithoutReplacementDpEvent)]
    if subsets and len(subsets) < len(events):
        # the RDP accountant knows the two kinds under different relations: ε of compositions is at most the sum
        others = [event for event in events if event not in subsets]
        return rough_epsilon(subsets, delta / 2) + rough_epsilon(others, delta / 2)
    accountant = composed_rdp(events, Neighbours.REPLACE_ONE if subsets else Neighbours.ADD_REMOVE)
    return math.inf if accountant is None else float(accountant.get_epsilon(delta))


def _innermost(event: dp_event.DpEvent, kind: type) -> bool:
    return isinstance(event.event if isinstance(event, dp_event.SelfComposedDpEvent) else event, kind)


def recompute_epsilon(
    events: Sequence[dp_event.DpEvent],
    delta: float,
    *,
    accountant: str,
    value_discretization_interval: float | None,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    extra_delta: float = 0.0,
) -> float:
    """Return ε by the accountant that a certificate names: what an outside verifier would run.

    Raises:
        ConfigError: unknown accountant, or no interval for the PLD accountant.
        UnsupportedEventError: that accountant does not take these events.
    """
    if accountant == "PLDAccountant" and value_discretization_interval is not None:
        composition = _pld(events, neighbours, value_discretization_interval)
    elif accountant == "RdpAccountant" and neighbours is Neighbours.ADD_REMOVE:
        composition = composed_rdp(events)
    else:
        raise ConfigError(
            f"Expected PLDAccountant with an interval, or RdpAccountant under add_remove, got {accountant=}, "
            f"{value_discretization_interval=}, neighbours={neighbours.value}."
        )
    if composition is None:
        raise UnsupportedEventError(f"{accountant} does not take {list(map(repr, events))}.")
    return _epsilon(composition, delta, extra_delta)


def account_of_fits(plans: Sequence[Plan], delta: float, neighbours: Neighbours) -> Account | None:
    """Return ε at δ of all fits together; None of no fit.

    Args:
        plans: the calibrated plan of every fit, whether it ended or not.
        delta: δ of all fits together.
        neighbours: the relation of the guarantee.

    Raises:
        UnsupportedEventError: a plan has no account under that relation.
    """
    if not plans:
        return None
    if any(plan.repetitions is not None for plan in plans):
        events, extra = events_of_fits(plans, neighbours)
        joint = account_curve(events, [delta], extra_delta=extra)[0]
    else:
        joint = account(merged(plans, neighbours), delta, neighbours=neighbours)
    if len(plans) == 1:  # the fit's own certificate may have rounded less
        return min(joint, account(plans[0], delta, neighbours=neighbours), key=lambda point: point.epsilon)
    return joint


def events_of_fits(plans: Sequence[Plan], neighbours: Neighbours) -> tuple[list[dp_event.DpEvent], float]:
    """Return the events of fits of which some are searches, and their additive parts of δ together.

    Raises:
        UnsupportedEventError: under replace-one.
    """
    if neighbours is not Neighbours.ADD_REMOVE:
        raise UnsupportedEventError("Expected fits that have an account under replace-one, got a search.")
    once = [Plan(plan.parts[0]) for plan in plans if plan.parts[0]]
    events = [repeated_event(plan.parts[1], neighbours) for plan in plans if plan.repetitions is not None]
    if not once:
        return events, 0.0
    return [*events, *merged(once, neighbours).events()], math.fsum(plan.extra_delta for plan in once)


def merged(plans: Sequence[Plan], neighbours: Neighbours) -> Plan:
    """Return one plan that costs what all of them cost: its unsampled Gaussians are one, equal samples are counted.

    Gaussian releases at distances d_i in units of their noise are one at distance √Σ d_i², adaptively chosen or not.
    """
    squares = 0.0
    extra = 0.0
    sampled: dict[Stage, int] = {}
    for stage in (stage for plan in plans for stage in plan.stages):
        extra += stage.extra_delta
        if stage.subset is not None and neighbours is not Neighbours.REPLACE_ONE:
            raise UnsupportedEventError(
                "Expected events that have an account under add/remove, got subsets without replacement."
            )
        if stage.inclusion is not None:
            alike = replace(stage, name="", count=1, extra_delta=0.0, measures="")
            sampled[alike] = sampled.get(alike, 0) + stage.count
            continue
        distance = 1.0 if neighbours is Neighbours.ADD_REMOVE else stage.replace_distance
        squares += stage.count * (distance / stage.noise_multiplier) ** 2
    stages = [replace(stage, name=f"sampled {i}", count=count) for i, (stage, count) in enumerate(sampled.items())]
    if squares:
        # under replace-one the squares already hold the distances, and a stage's event divides by its own
        nearest = 1.0 if neighbours is Neighbours.REPLACE_ONE else 2.0
        stages.append(Stage(name="unsampled", noise_multiplier=1 / math.sqrt(squares), replace_distance=nearest))
    stages[0] = replace(stages[0], extra_delta=extra)
    return Plan(stages)
