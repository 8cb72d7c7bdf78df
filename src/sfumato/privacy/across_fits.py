"""What several fits of the same data cost together.

The events of all their plans compose as those of one plan do, if settings that set noise, sampling or counts were not
chosen by what earlier fits released. Where all events are Gaussian releases of all records they may be, as long as the
total is checked before a fit runs (Smith and Thakurta 2022, arXiv:2210.17520). The account is that of
`sfumato.privacy.accounting`: privacy-loss distributions where every event has one (subsets through
`sfumato.privacy.subsets`), else Rényi DP over everything; additive parts of δ add up.

Gaussian releases of all records are merged first: together they are one Gaussian release, exactly. What a search
repeats (`sfumato.privacy.repetitions`) stays one event of its own; its account is by Rényi DP, under add/remove only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from sfumato.errors import UnsupportedEventError
from sfumato.privacy.accounting import Account, account, account_curve
from sfumato.privacy.plan import Neighbours, Plan, Stage, repeated_event


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
    searches = [plan.parts[1] for plan in plans if plan.repetitions is not None]
    if searches:
        joint = _with_searches(plans, searches, delta, neighbours)
    else:
        joint = account(merged(plans, neighbours), delta, neighbours=neighbours)
    if len(plans) == 1:  # the fit's own certificate may have rounded less
        return min(joint, account(plans[0], delta, neighbours=neighbours), key=lambda found: found.epsilon)
    return joint


def _with_searches(
    plans: Sequence[Plan], searches: Sequence[tuple[Stage, ...]], delta: float, neighbours: Neighbours
) -> Account:
    if neighbours is not Neighbours.ADD_REMOVE:
        raise UnsupportedEventError("Expected fits that have an account under replace-one, got a search.")
    once = [Plan(plan.parts[0]) for plan in plans if plan.parts[0]]
    events = [repeated_event(stages, neighbours) for stages in searches]
    extra = 0.0
    if once:
        events += merged(once, neighbours).events()
        extra = math.fsum(plan.extra_delta for plan in once)
    return account_curve(events, [delta], extra_delta=extra)[0]


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
            alike = replace(stage, name="", count=1, extra_delta=0.0, measures="", forecast="")
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
