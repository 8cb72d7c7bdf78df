"""The account of a search: charged whole before the first repetition, and open for as many as were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn, final

from sfumato.errors import BudgetExceededError, LedgerError
from sfumato.privacy.accounting import account
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage

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

    Raises:
        BudgetExceededError: a plan costs more than the budget. Nothing was charged.
        LedgerError: the plans do not cost the same, or repeat nothing.
    """

    def __init__(self, plans: Sequence[Plan], budget: PrivacyBudget) -> None:
        self._plans = tuple(plans)
        self._left: int | None = None
        self._opened = False
        if len({plan.repetitions for plan in self._plans}) != 1 or self._plans[0].repetitions is None:
            self._refuse("the candidates are not repeated by one law")
        if len({plan.parts[0] for plan in self._plans}) != 1 or not alike([plan.parts[1] for plan in self._plans]):
            self._refuse("the candidates do not cost the same")
        for plan in self._plans:
            needed = account(plan, budget.delta).epsilon
            if needed > budget.epsilon:
                raise BudgetExceededError(
                    f"Expected a search within epsilon={budget.epsilon:g}, got one that needs epsilon={needed:.6g} at "
                    f"delta={budget.delta:g}. Nothing was released: calibrate the plan, or raise epsilon."
                )

    def charge(self, repetitions: int) -> None:
        """Charge the whole search, and open it for so many repetitions, drawn by the law of the plan.

        Raises:
            LedgerError: it has been charged.
        """
        if self._left is not None:
            self._refuse("the search has been charged before")
        self._left = repetitions

    def once(self) -> Ledger:
        """Return the ledger of the stages that are made once.

        Raises:
            LedgerError: the search has not been charged, or this has been handed out.
        """
        if self._left is None or self._opened:
            self._refuse("the stages that are made once are open after the charge, and once")
        self._opened = True
        return Ledger(Plan(self._plans[0].parts[0]), None)

    def repetition(self, candidate: int) -> Ledger:
        """Return the ledger of one repetition that fits this candidate.

        Raises:
            LedgerError: the search has not been charged, or no repetition is left.
        """
        if not self._left:
            self._refuse("no repetition is open")
        self._left -= 1
        return Ledger(Plan(replace(stage, repetitions=None) for stage in self._plans[candidate].parts[1]), None)

    def close(self) -> None:
        """End the account. A search that stops before its last repetition is another mechanism than the one charged.

        Raises:
            LedgerError: a repetition is left, or the stages that are made once have not been opened.
        """
        if self._left != 0 or not self._opened:
            self._refuse("the search ends before its last repetition, or without its score")

    def _refuse(self, reason: str) -> NoReturn:
        raise LedgerError(f"Expected charges as planned, but {reason}. This is a bug: please report it.")


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
