"""The account of a data set, in a file: its budget, and every fit that charged it.

    create_ledger("people.ledger", epsilon=3, delta=1e-6)
    method.fit("people.csv", schema=schema, ledger="people.ledger")

A fit enters its plan, whole, before it reads a record, and a charge is never given back: also not when the fit fails or
is killed. The file is read and replaced under a lock beside it (`people.ledger.lock`), and a new version is on the disk
before it takes the old one's name: whenever a process dies, the file is as it was, or holds the charge.

Nothing in the file comes from a record: it holds plans, which follow from public facts, and times.

Charges are a chain: each has a number, and a hash of what it says and of all before it. A release carries number and
hash of its charge, so that whoever holds releases sees whether a ledger still knows them (`ledger_check.py`).
"""

from __future__ import annotations

import contextlib
import os
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, final

from sfumato.errors import (
    BudgetExceededError,
    ConfigError,
    OutputError,
    PrivacyWarning,
    require_instance,
)
from sfumato.fitting.ledger_file import read_ledger_file, real_path, write_ledger_file
from sfumato.fitting.ledger_state import ChargedFit, LedgerState
from sfumato.fitting.process import ProcessMark, file_lock, network_file_system
from sfumato.io.atomic import refuse_existing
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.certificate_form import event_to_dict
from sfumato.privacy.plan import Neighbours, Plan

_SLACK = 1e-9  # a fit may cost all there is, up to rounding


def create_ledger(
    path: str | os.PathLike[str],
    *,
    epsilon: float,
    delta: float,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> None:
    """Open the account of a data set: write a file that fits of these data charge.

    Args:
        path: the file to write; never replaced.
        epsilon: ε of all fits together, nats.
        delta: δ of all fits together.
        neighbours: the relation; replace-one only for data of which `DPMix` releases are made of subsets.

    Raises:
        ConfigError: ε or δ is outside its domain, or the file would lie on a network file system.
        OutputError: the file exists, or cannot be written.

    Example:
        >>> create_ledger("people.ledger", epsilon=3.0, delta=1e-6)
        >>> read_ledger("people.ledger").budget
        PrivacyBudget(epsilon=3.0, delta=1e-06)
        >>> read_ledger("people.ledger").spent()
        0.0
    """
    state = LedgerState(PrivacyBudget(epsilon, delta), neighbours)
    place = real_path(path)
    if (shared := network_file_system(place.parent)) is not None:
        raise ConfigError(
            f"Expected a ledger on a disk of this machine, got the file system {shared}: locks may not hold between "
            "machines, and two fits could be charged as one. Keep it on a local disk."
        )
    refuse_existing(place, overwrite=True)  # its folder; that it is there says the next line, and better
    taken = f"Expected no ledger yet, got {path}, which exists. Name another file."
    if os.path.lexists(place):
        raise OutputError(taken)
    with file_lock(place):
        if os.path.lexists(place):
            raise OutputError(taken)
        write_ledger_file(place, state)


def read_ledger(path: str | os.PathLike[str]) -> LedgerState:
    """Read a ledger as it stands.

    Raises:
        ConfigError: it does not exist, or is no ledger.
    """
    require_instance((str, os.PathLike), "the path of a ledger", path=path)
    return read_ledger_file(real_path(path))


@final
class Charge:
    """One fit's charge in a ledger.

    Attributes:
        id: its name in the ledger.
        number: the charges before it, and this one.
        chain: hash of what was charged and of all charges before.
        complete: whether the fit had finished before: what it released may be told again, and no noise drawn anew.
    """

    def __init__(self, path: Path, fit: ChargedFit, state: LedgerState) -> None:
        self._path = path
        self.id = fit.id
        self.number = 1 + [other.id for other in state.fits].index(fit.id)
        self.chain = state.chain[self.number - 1]
        self.complete = fit.entry == "finished"

    def end(self, entry: Literal["finished", "failed"]) -> None:
        """Note how the fit ended. The charge stands in any case.

        Raises:
            ConfigError: the ledger is gone.
            OutputError: it cannot be written.
        """
        with file_lock(self._path):
            state = read_ledger_file(self._path)
            fits = [replace(f, entry=entry, ended=_now()) if f.id == self.id else f for f in state.fits]
            write_ledger_file(self._path, replace(state, fits=tuple(fits)))


def charge(path: str | os.PathLike[str], plan: Plan, *, method: str, unit: str, resumes: str | None = None) -> Charge:
    """Charge a fit: when this returns, the charge is on the disk.

    Args:
        path: the ledger.
        plan: what the fit is going to spend, all of it.
        method: name of the method.
        unit: whom it protects: "row", or a column.
        resumes: the charge that a checkpoint was kept under: the fit goes on, and is not charged again. One that has
            finished may only be told again: see `Charge.complete`.

    Raises:
        BudgetExceededError: the ledger cannot pay for it. Nothing was charged.
        ConfigError: the file is no ledger, the fit is of another unit or relation than the ledger's, or the charge to
            resume is not there, or of a fit that runs.
        OutputError: the file cannot be written. Nothing was charged.
    """
    place = real_path(path)
    if (shared := network_file_system(place.parent)) is not None:
        warnings.warn(
            f"The ledger {path} lies on the file system {shared}, where locks may not hold between machines: let one "
            "machine alone fit these data, or move the ledger to its disk.",
            PrivacyWarning,
            stacklevel=4,
        )
    with file_lock(place):
        state = read_ledger_file(place)
        if resumes is not None:
            fits, charged = _resumed(state, plan, resumes, path)
        else:
            _refuse_unless_payable(state, plan, unit, path)
            charged = ChargedFit(uuid.uuid4().hex, method, unit, plan, _now(), None, "running", ProcessMark.own())
            fits = (*state.fits, charged)
        state = replace(state, fits=fits)
        write_ledger_file(place, state)
    return Charge(place, charged, state)


def charge_data(
    path: str | os.PathLike[str] | None,
    plan: Plan,
    *,
    method: str,
    unit: str,
    private: bool,
    resumes: str | None = None,
) -> Charge | None:
    """Charge the account of a data set, if there is one; arguments and errors as `charge`.

    Raises:
        ConfigError: also where the noise is not secret, so that no budget pays for the fit.
    """
    if path is None:
        return None
    if not private:
        raise ConfigError(
            "Expected noise that nobody can predict with a ledger, got a seed, or no noise: no budget pays for "
            "that. Leave the seed out, or the ledger."
        )
    return charge(path, plan, method=method, unit=unit, resumes=resumes)


@contextlib.contextmanager
def settled(charged: Charge | None) -> Iterator[None]:
    """Note in the ledger how the block ends; what the ledger refuses to note is no reason to lose a release."""
    try:
        yield
    except BaseException:
        if charged is not None and not charged.complete:  # what has finished has left, whatever becomes of a copy
            with contextlib.suppress(ConfigError, OutputError):
                charged.end("failed")
        raise
    problem = None
    try:
        if charged is not None and not charged.complete:
            charged.end("finished")
    except (ConfigError, OutputError) as error:
        problem = str(error)
    if problem:
        warnings.warn(f"The charge stands, but the end of this fit was not noted: {problem}", PrivacyWarning, 2)


def _refuse_unless_payable(state: LedgerState, plan: Plan, unit: str, path: object) -> None:
    if plan.neighbours is Neighbours.REPLACE_ONE and state.neighbours is not Neighbours.REPLACE_ONE:
        raise ConfigError(
            f"Expected a fit with an account under add/remove for the ledger {path}, got one of subsets without "
            "replacement. Use Poisson samples, or open the ledger under replace-one."
        )
    if plan.repetitions is not None and state.neighbours is not Neighbours.ADD_REMOVE:
        raise ConfigError(
            f"Expected a ledger under add/remove for a search, got {path}, kept under replace-one. Open another."
        )
    others = {fit.unit for fit in state.fits} - {unit}
    if others:
        raise ConfigError(
            f"Expected a fit that protects the same unit as those before it in {path}, {min(others)!r}, got {unit!r}. "
            "Guarantees for different units do not add up: keep a ledger for each."
        )
    spent = state.spent(plan)
    if spent > state.budget.epsilon * (1 + _SLACK):
        before = state.spent()
        raise BudgetExceededError(
            f"Expected a fit that the ledger {path} can pay for, got one with which all fits cost epsilon={spent:.6g} "
            f"at delta={state.budget.delta:g}, of {state.budget.epsilon:g}. Without it they cost {before:.6g}. Nothing "
            "was read or charged: ask for a smaller epsilon."
        )


def _resumed(state: LedgerState, plan: Plan, resumes: str, path: object) -> tuple[tuple[ChargedFit, ...], ChargedFit]:
    found = [fit for fit in state.fits if fit.id == resumes and _events(fit.plan) == _events(plan)]
    if not found or found[0].status == "running":
        what = "of no fit in it" if not found else "of a fit that is running"
        raise ConfigError(
            f"Expected the checkpoint of a fit that charged the ledger {path} and was stopped, got one {what}. "
            "Name another file as checkpoint: the fit then starts, and is charged, anew."
        )
    if found[0].status == "finished":
        return state.fits, found[0]
    again = replace(found[0], entry="running", ended=None, process=ProcessMark.own())
    return tuple(again if fit.id == resumes else fit for fit in state.fits), again


def _events(plan: Plan) -> list[dict[str, Any]]:
    return [event_to_dict(stage) for stage in plan.stages]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
