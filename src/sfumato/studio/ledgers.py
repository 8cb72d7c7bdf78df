"""The ledger that the studio's fits charge: its place, what is left in it, and its opening."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sfumato.data_ledger.data_ledger import create_ledger, read_ledger, refuse_unless_payable
from sfumato.data_ledger.ledger_state import LedgerState
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.plan import Neighbours, Plan

_PACKED = (".gz", ".zst", ".bz2", ".xz")


def ledger_beside(data: str, folder: Path) -> Path:
    """Return the usual place of a table's account: `people.ledger` beside `people.csv`.

    A table has one account, whatever folder a studio works in. Where the table is in no folder of this machine that may
    be written, it is in the studio's own.

    Args:
        data: the table, a path or a URL.
        folder: the studio's.
    """
    table = Path(data)
    beside = table.exists() and os.access(table.resolve().parent, os.W_OK | os.X_OK)
    if not beside:
        return folder / "data.ledger"
    stem = Path(table.stem).stem if table.suffix in _PACKED else table.stem
    return table.resolve().parent / f"{stem}.ledger"


@dataclass(frozen=True, slots=True)
class LedgerAccount:
    """A ledger, and a fit that it is to pay for.

    Attributes:
        path: its place.
        state: what it says; of one that is not there, what it would say.
        opened: whether it is there.
        plan: of the fit.
        unit: whom the fit protects.
    """

    path: Path
    state: LedgerState
    opened: bool
    plan: Plan
    unit: str

    @classmethod
    def of(cls, path: Path, total: PrivacyBudget, plan: Plan, unit: str) -> LedgerAccount:
        """Read a ledger; one that is not there has this budget.

        Raises:
            ConfigError: the file is no ledger, or was changed by hand.
        """
        opened = os.path.lexists(path)
        return cls(path, read_ledger(path) if opened else LedgerState(total, Neighbours.ADD_REMOVE), opened, plan, unit)

    def open(self) -> None:
        """Refuse a fit that it cannot pay for; else make the file, if it is not there.

        Raises:
            BudgetExceededError, ConfigError: as the fit would, before it starts.
            OutputError: the file cannot be written.
        """
        refuse_unless_payable(self.state, self.plan, self.unit, self.path)
        if not self.opened:
            budget = self.state.budget
            create_ledger(self.path, epsilon=budget.epsilon, delta=budget.delta)
