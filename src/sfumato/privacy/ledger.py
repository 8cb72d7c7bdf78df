"""The running account of one fit: says yes before the data are touched, and ends equal to the plan.

The account of a search: charged whole before the first repetition, and open for as many as were drawn.

The event of a mechanism's next release follows from its noise and bounds, and is compared with the plan:

    σ = (Σ_b (B_b/s_b)²)^(-1/2),   replace distance = σ (Σ_b (R_b/s_b)²)^(1/2)

of normal noise of standard deviation s_b in part b of a release, of whose contributions B_b bounds the norm and R_b the
distance: in units of the noise the parts are one vector, and one Gaussian event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Protocol, final

from sfumato.errors import BudgetExceededError, LedgerError
from sfumato.privacy.accounting import account
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.plan import Plan, Stage, Subset

_ROUNDING = 1e-12
"""Of a multiplier: a mechanism's is within some ten roundings of 2^-53, 1e-15, of the planned one, and 1e-12 less noise
raises ε by less than 3e-12 ε, far below what calibration leaves free."""


class StatedBounds(Protocol):
    """An exact statistic, as far as its event goes: what one unit contributes, and how its records were chosen."""

    norm_bound: float
    replace_distance: float
    sampling_probability: float | None


@final
@dataclass(frozen=True, slots=True)
class Noised:
    """One part of a release, and the noise to be drawn for it; all in data units.

    Attributes:
        noise_std: standard deviation of the noise.
        norm_bound: largest ℓ2 norm of what one unit contributes.
        replace_bound: largest ℓ2 distance between two units' contributions.
    """

    noise_std: float
    norm_bound: float
    replace_bound: float

    def __post_init__(self) -> None:
        if not all(0 < number < math.inf for number in (self.noise_std, self.norm_bound, self.replace_bound)):
            raise LedgerError("Expected noise and bounds above 0 in every part of a release. This is a bug.")


@final
@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """Normal noise on a statistic. The noise that is drawn is that of `parts`, and of no other object.

    Attributes:
        parts: what is released, and its noise.
        sampling_probability: of the Poisson sample that the statistic is of; None for one of all units.
        subset: the subset without replacement that it is of; None without.
        count: how many such releases are charged at once.
        extra_delta: δ spent outside the event, for all events of the stage.
    """

    parts: tuple[Noised, ...]
    sampling_probability: float | None = None
    subset: Subset | None = None
    count: int = 1
    extra_delta: float = 0.0

    @classmethod
    def of(cls, statistic: StatedBounds, noise_std: float, *, extra_delta: float = 0.0) -> GaussianEvent:
        """Return the event of noise on an exact statistic, whose bounds are the statistic's own."""
        bound = statistic.norm_bound
        part = Noised(noise_std, bound, bound * statistic.replace_distance)
        return cls((part,), statistic.sampling_probability, extra_delta=extra_delta)

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise of a release of one part."""
        (part,) = self.parts
        return part.noise_std

    @property
    def noise_multiplier(self) -> float:
        """σ: noise ÷ largest contribution of one unit."""
        return 1 / math.hypot(*(part.norm_bound / part.noise_std for part in self.parts))

    @property
    def replace_distance(self) -> float:
        """Largest distance between two units' contributions ÷ largest contribution of one."""
        return self.noise_multiplier * math.hypot(*(part.replace_bound / part.noise_std for part in self.parts))


@final
class Ledger:
    """Holds a fit to its plan.

    Every mechanism charges a stage before it draws noise; a charge is never refunded. Stages are charged in the
    plan's order, each as often as planned; anything else raises before noise is drawn. `close` raises unless all of
    the plan was charged.

    Args:
        plan: the calibrated plan.
        budget: what the plan may cost; None only for a fit without noise, and for a part of a search whose whole
            account was checked.
        on_charge: called with the stage's name after each charge, for showing progress.

    Raises:
        BudgetExceededError: the plan costs more than the budget. Nothing was charged.
    """

    def __init__(
        self, plan: Plan, budget: PrivacyBudget | None, on_charge: Callable[[str], None] | None = None
    ) -> None:
        if budget is not None:
            _require_within(plan, budget, "a plan")
        self._plan = plan
        self._on_charge = on_charge
        self._charged: list[tuple[str, int]] = []
        self._closed = False

    @property
    def plan(self) -> Plan:
        """The plan this ledger holds a fit to."""
        return self._plan

    @property
    def charged(self) -> tuple[tuple[str, int], ...]:
        """Names of the stages charged so far, each with how often, in order."""
        return tuple(self._charged)

    def charge(self, name: str, event: GaussianEvent) -> None:
        """Charge the stage `name` with what a mechanism is about to do. Noise is then drawn as `event` says.

        Args:
            name: a stage of the plan: the current one, or the next one once the current is used up.
            event: what follows from the mechanism's own noise and its statistic's own bounds: the planned event, up to
                the rounding of a few products. A replace distance may be smaller than planned; a count is at most what
                the stage has left.

        Raises:
            LedgerError: not the stage that the plan has next, or not its event. Nothing was charged.
        """
        stage = self._next(name)
        if not abs(event.noise_multiplier - stage.noise_multiplier) <= _ROUNDING * stage.noise_multiplier:
            _refuse(f"stage {name!r} is planned with another noise multiplier than {event.noise_multiplier!r}")
        if not event.replace_distance <= stage.replace_distance * (1 + _ROUNDING):
            _refuse(f"stage {name!r} is planned with a smaller replace distance than {event.replace_distance!r}")
        if (event.sampling_probability, event.subset) != (stage.sampling_probability, stage.subset):
            _refuse(f"stage {name!r} is planned for records that are chosen otherwise")
        if event.extra_delta != stage.extra_delta:
            _refuse(f"stage {name!r} is planned with another additive part of delta")
        self._enter(stage, event.count)

    def replay(self, name: str, count: int) -> None:
        """Enter events that an interrupted fit of the same plan charged, and whose outcomes it kept.

        They are in the account once: nothing may be drawn for them again.

        Raises:
            LedgerError: as `charge`.
        """
        for _ in range(count):
            self._enter(self._next(name), 1)

    def close(self) -> None:
        """End the account.

        Raises:
            LedgerError: some planned event was not charged. What was charged stays charged.
        """
        planned = tuple((stage.name, stage.count) for stage in self._plan.stages)
        if self.charged != planned:
            _refuse(f"charged {self.charged!r} instead of the planned {planned!r}")
        self._closed = True

    def _enter(self, stage: Stage, count: int) -> None:
        """Enter events of the current stage, or of the next one."""
        name = stage.name
        going_on = bool(self._charged) and self._charged[-1][0] == name
        before = self._charged[-1][1] if going_on else 0
        if count < 1 or before + count > stage.count:
            _refuse(f"stage {name!r} has not so many events left")
        self._charged[len(self._charged) - going_on :] = [(name, before + count)]
        if self._on_charge is not None:
            self._on_charge(name)

    def _next(self, name: str) -> Stage:
        """Return the stage to charge if `name` is what the plan has next."""
        if self._closed:
            _refuse(f"the ledger is closed, so stage {name!r} cannot be charged")
        stages = self._plan.stages
        index = max(len(self._charged) - 1, 0)
        if self._charged and self._charged[-1][1] == stages[index].count:
            index += 1
        if index >= len(stages) or stages[index].name != name:
            expected = stages[index].name if index < len(stages) else None
            _refuse(f"the plan has {expected!r} next, not {name!r}")
        return stages[index]


def _require_within(plan: Plan, budget: PrivacyBudget, what: str) -> None:
    needed = account(plan, budget.delta).epsilon
    if needed > budget.epsilon:
        raise BudgetExceededError(
            f"Expected {what} within epsilon={budget.epsilon:g}, got one that needs epsilon={needed:.6g} at "
            f"delta={budget.delta:g}. Nothing was released: calibrate the plan, or raise epsilon."
        )


def _refuse(reason: str) -> NoReturn:
    raise LedgerError(f"Expected charges as planned, but {reason}. This is a bug: please report it.")


_SLACK = 1e-9  # rounding of the noise multipliers


@final
class SearchLedger:
    """Holds a search to its plans.

    The theorem (docs/proofs/tune.md) needs every repetition to be within one Rényi curve, and the number of repetitions
    to be drawn before. So all candidates have the same sampled stages, and unsampled ones that are together one
    Gaussian release of the same noise; nothing is handed out before the whole is charged, and no repetition after the
    last.

    Args:
        plans: of every candidate, the whole search as if each repetition fitted it.
        budget: what the search may cost.
        judged: how many stages at the end of every plan judge the fit of their repetition.

    Raises:
        BudgetExceededError: a plan costs more than the budget. Nothing was charged.
        LedgerError: the plans do not cost the same, or repeat nothing.
    """

    def __init__(self, plans: Sequence[Plan], budget: PrivacyBudget, *, judged: int = 0) -> None:
        self._plans = tuple(plans)
        self._judged = judged
        self._unjudged: int | None = None  # the candidate whose fit is not judged yet
        self._left: int | None = None
        self._opened = False
        if len({plan.repetitions for plan in self._plans}) != 1 or self._plans[0].repetitions is None:
            _refuse("the candidates are not repeated by one law")
        if len({plan.parts[0] for plan in self._plans}) != 1 or not alike([plan.parts[1] for plan in self._plans]):
            _refuse("the candidates do not cost the same")
        for plan in self._plans:
            _require_within(plan, budget, "a search")

    def charge(self, repetitions: int) -> None:
        """Charge the whole search, and open it for so many repetitions, drawn by the law of the plan.

        Raises:
            LedgerError: it has been charged.
        """
        if self._left is not None:
            _refuse("the search has been charged before")
        self._left = repetitions

    def once(self) -> Ledger:
        """Return the ledger of the stages that are made once.

        Raises:
            LedgerError: the search has not been charged, or this has been handed out.
        """
        if self._left is None or self._opened:
            _refuse("the stages that are made once are open after the charge, and once")
        self._opened = True
        return Ledger(Plan(self._plans[0].parts[0]), None)

    def repetition(self, candidate: int) -> Ledger:
        """Return the ledger of one repetition that fits this candidate.

        Raises:
            LedgerError: the search has not been charged, or no repetition is left.
        """
        if not self._left:
            _refuse("no repetition is open")
        if self._unjudged is not None:
            _refuse("the fit of the last repetition has not been judged")
        self._left -= 1
        self._unjudged = candidate if self._judged else None
        fit = self._plans[candidate].parts[1]
        return _once_of(fit[: len(fit) - self._judged])

    def verdicts(self) -> Ledger:
        """Return the ledger of the verdicts on the fit of the last repetition.

        Raises:
            LedgerError: no fit is to be judged, or it has been.
        """
        if self._unjudged is None:
            _refuse("no fit is open to be judged")
        stages, self._unjudged = self._plans[self._unjudged].parts[1], None
        return _once_of(stages[len(stages) - self._judged :])

    def close(self) -> None:
        """End the account. A search that stops before its last repetition is another mechanism than the one charged.

        Raises:
            LedgerError: a repetition is left, or the stages that are made once have not been opened.
        """
        if self._left != 0 or not self._opened:
            _refuse("the search ends before its last repetition, or without its score")
        if self._unjudged is not None:
            _refuse("the search ends before its last fit has been judged")


def _once_of(stages: Sequence[Stage]) -> Ledger:
    """Return the ledger of one of the repetitions of some stages."""
    return Ledger(Plan(replace(stage, repetitions=None) for stage in stages), None)


def alike(fits: Sequence[Sequence[Stage]]) -> bool:
    """Whether these fits, each a list of stages, cost the same at every Rényi order."""
    first = _outline(fits[0])
    return all(
        sampled == first[1] and abs(squares - first[0]) <= _SLACK * first[0]
        for squares, sampled in map(_outline, fits[1:])
    )


def _outline(stages: Sequence[Stage]) -> tuple[float, list[tuple[float, float, int]]]:
    """Return the squared budget of the unsampled stages, and the sampled ones."""
    squares, sampled = 0.0, []
    for stage in stages:
        if stage.sampling_probability is None:
            squares += stage.count / stage.noise_multiplier**2
        else:
            sampled.append((stage.sampling_probability, stage.noise_multiplier, stage.count))
    return squares, sorted(sampled)
