"""The running account of one fit: says yes before the data are touched, and ends equal to the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, final

from sfumato.errors import BudgetExceededError, LedgerError
from sfumato.privacy.accounting import account
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.plan import Plan, Stage


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
            needed = account(plan, budget.delta).epsilon
            if needed > budget.epsilon:
                raise BudgetExceededError(
                    f"Expected a plan within epsilon={budget.epsilon:g}, got one that needs epsilon={needed:.6g} at "
                    f"delta={budget.delta:g}. Nothing was released: calibrate the plan, or raise epsilon."
                )
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

    def charge(self, name: str, *, noise_multiplier: float, replace_distance: float, count: int = 1) -> Stage:
        """Charge `count` events of the stage `name`, and return the stage.

        Args:
            name: a stage of the plan: the current one, or the next one once the current is used up.
            noise_multiplier: what the mechanism is about to use; has to be the planned value.
            replace_distance: what the statistic claims; has to be at most the planned value.
            count: how many events at once; no more than the stage has left.

        Raises:
            LedgerError: not the stage that the plan has next, or not its noise. Nothing was charged.
        """
        if self._closed:
            self._refuse(f"the ledger is closed, so stage {name!r} cannot be charged")
        stage = self._next(name)
        if noise_multiplier != stage.noise_multiplier:
            self._refuse(f"stage {name!r} is planned with another noise multiplier than {noise_multiplier!r}")
        if replace_distance > stage.replace_distance * (1 + 1e-12):
            self._refuse(f"stage {name!r} is planned with a smaller replace distance than {replace_distance!r}")
        before = self._charged.pop()[1] if self._charged and self._charged[-1][0] == name else 0
        if count < 1 or before + count > stage.count:
            if before:
                self._charged.append((name, before))
            self._refuse(f"stage {name!r} has not so many events left")
        self._charged.append((name, before + count))
        if self._on_charge is not None:
            self._on_charge(name)
        return stage

    def replay(self, name: str, count: int) -> None:
        """Enter events that an interrupted fit of the same plan charged, and whose outcomes it kept.

        They are in the account once: nothing may be drawn for them again.

        Raises:
            LedgerError: as `charge`.
        """
        for _ in range(count):
            stage = self._next(name)
            self.charge(name, noise_multiplier=stage.noise_multiplier, replace_distance=stage.replace_distance)

    def close(self) -> None:
        """End the account.

        Raises:
            LedgerError: some planned event was not charged. What was charged stays charged.
        """
        planned = tuple((stage.name, stage.count) for stage in self._plan.stages)
        if self.charged != planned:
            self._refuse(f"charged {self.charged!r} instead of the planned {planned!r}")
        self._closed = True

    def _next(self, name: str) -> Stage:
        """Return the stage to charge if `name` is what the plan has next."""
        stages = self._plan.stages
        index = max(len(self._charged) - 1, 0)
        if self._charged and self._charged[-1][1] == stages[index].count:
            index += 1
        if index >= len(stages) or stages[index].name != name:
            expected = stages[index].name if index < len(stages) else None
            self._refuse(f"the plan has {expected!r} next, not {name!r}")
        return stages[index]

    def _refuse(self, reason: str) -> NoReturn:
        raise LedgerError(f"Expected charges as planned, but {reason}. This is a bug: please report it.")
