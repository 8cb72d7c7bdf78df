"""The account of a data set, in a file: its budget, and every fit that charged it.

    create_ledger("people.ledger", epsilon=3, delta=1e-6)
    method.fit("people.csv", schema=schema, ledger="people.ledger")

A fit enters its plan, whole, before it reads a record, and a charge is never given back: also not when the fit fails or
is killed. The file is read and replaced under a lock beside it (`people.ledger.lock`), and a new version is on the disk
before it takes the old one's name: whenever a process dies, the file is as it was, or holds the charge.

Nothing in the file comes from a record: it holds plans, which follow from public facts, and times.

Charges are a chain: each has a number, and a hash of what it says and of all before it. A release carries number and
hash of its charge, so that whoever holds releases sees whether a ledger still knows them (`ledger_check.py`).

A charge pays for one release, whose hashes it keeps before that leaves. A fit that goes on from a checkpoint begins
another run: its mark is written to the checkpoint, then to the ledger, before anything is drawn. So of all copies of a
checkpoint one goes on, and a process that is killed at any moment can.
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
from typing import Any, final

from sfumato.data_ledger.journal import Journal, ProcessMark, file_lock, network_file_system
from sfumato.data_ledger.ledger_file import read_ledger_file, real_path, refuse_ledger, write_ledger_file
from sfumato.data_ledger.ledger_state import SLACK, ChargedFit, Entry, LedgerState
from sfumato.errors import (
    BudgetExceededError,
    ConfigError,
    OutputError,
    PrivacyWarning,
    RoundPendingError,
    require_instance,
)
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.certificate_form import Bound, event_to_dict
from sfumato.privacy.plan import Neighbours, Plan

_running: set[str] = set()  # marks of this process's runs that have not ended, whatever a ledger could note


def create_ledger(
    path: str | os.PathLike[str], *, epsilon: float, delta: float, neighbours: Neighbours = Neighbours.ADD_REMOVE
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
    refuse_ledger(place, path)
    with file_lock(place):
        refuse_ledger(place, path)
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
        run: the mark of the run that it was made for.
        number: the charges before it, and this one.
        chain: hash of what was charged and of all charges before.
        complete: whether the fit had finished before: what it released may be told again, and no noise drawn anew.
        release: hashes of the release that is about to leave.
    """

    def __init__(self, path: Path, fit: ChargedFit, state: LedgerState) -> None:
        self._path, self._released = path, fit.release
        self.id, self.run = fit.id, fit.run
        self.number = 1 + [other.id for other in state.fits].index(fit.id)
        self.chain = state.chain[self.number - 1]
        self.complete = fit.entry == "finished"
        self.release: Bound | None = None

    def finish(self) -> None:
        """Note that the fit has ended, and what it released. The charge stands in any case.

        Raises:
            ConfigError: the charge paid for another release, another run went on with the fit, or the ledger is gone.
            OutputError: it cannot be written.
        """
        if not self.complete:
            self._end("finished")
        elif self.release != self._released:
            raise ConfigError(
                f"Expected the release that charge {self.number} paid for to be told again, got another one: it would "
                "be a second release for one charge. Name another checkpoint: the fit then starts, charged anew."
            )

    def stop(self, entry: Entry) -> None:
        """Note that the fit failed, or waits for other holders, without a release; errors as `finish`."""
        if not self.complete:  # what has finished has left, whatever becomes of a copy
            self._end(entry)

    def _end(self, entry: Entry) -> None:
        _running.discard(self.run)
        with file_lock(self._path):
            state = read_ledger_file(self._path)
            own = [fit for fit in state.fits if fit.id == self.id]
            if not own or own[0].run != self.run or own[0].entry != "running":
                why = "a copy of the fit went on meanwhile, or the ledger was put back. Nothing leaves this run."
                raise ConfigError(f"Expected charge {self.number} to be of this run, got another: {why}")
            ended = None if entry == "waiting" else _now()
            fit = replace(own[0], entry=entry, ended=ended, release=self.release if entry == "finished" else None)
            write_ledger_file(self._path, _with(state, fit))


def charge(
    path: str | os.PathLike[str],
    plan: Plan,
    *,
    method: str,
    unit: str,
    checkpoint: Journal | None = None,
    share: str | None = None,
) -> Charge:
    """Charge a fit: when this returns, the charge is on the disk, and the checkpoint knows it.

    Args:
        path: the ledger.
        plan: what the fit is going to spend, all of it.
        method: name of the method.
        unit: whom it protects: "row", or a column.
        checkpoint: what is kept of the fit. If it began under a charge, the fit goes on and is not charged again. One
            that has finished may only be told again: see `Charge.complete`.
        share: session and attempt of a fit of several holders: they are charged once.

    Raises:
        BudgetExceededError: the ledger cannot pay for it. Nothing was charged.
        ConfigError: the file is no ledger, the fit is of another unit or relation than the ledger's, or the charge to
            go on under is not there, of a fit that runs, or of a checkpoint of which this is an older copy; or a copy
            of a holder's folder was charged for the session and attempt.
        OutputError: a file cannot be written. Nothing was charged.
    """
    place = real_path(path)
    if (shared := network_file_system(place.parent)) is not None:
        warnings.warn(
            f"The ledger {path} lies on the file system {shared}, where locks may not hold between machines: let one "
            "machine alone fit these data, or move the ledger to its disk.",
            PrivacyWarning,
            stacklevel=4,
        )
    checkpoint = Journal(None, {}) if checkpoint is None else checkpoint
    with file_lock(place):
        state = read_ledger_file(place)
        known = _charge_before(state, plan, checkpoint, path)
        if known is not None and known.entry == "finished":
            return Charge(place, known, state)
        if known is None:
            _refuse_second_share(state, share, path)
            refuse_unless_payable(state, plan, unit, path)
            charged = ChargedFit(
                uuid.uuid4().hex, method, unit, plan, _now(), None, "running", ProcessMark.own(), _mark(1), share=share
            )
            state = replace(state, fits=(*state.fits, charged))
        else:
            charged = replace(known, entry="running", ended=None, process=ProcessMark.own(), run=_mark(known.runs + 1))
            state = _with(state, charged)
        # the checkpoint first: killed in between, it holds the mark that the ledger has, and the new one
        checkpoint.begin(charged.id, charged.run, before="" if known is None else known.run)
        write_ledger_file(place, state, failing="Nothing was charged.")
        _running.add(charged.run)
    return Charge(place, charged, state)


def give_up(path: str | os.PathLike[str], charged: str) -> None:
    """Note that a fit that waits for other holders does not go on; its charge stands. Errors as `Charge.finish`."""
    place = real_path(path)
    with file_lock(place):
        state = read_ledger_file(place)
        for fit in state.fits:
            if fit.id == charged and fit.entry == "waiting":
                write_ledger_file(place, _with(state, replace(fit, entry="failed", ended=_now())))


def _with(state: LedgerState, charged: ChargedFit) -> LedgerState:
    """Return a ledger in which a charge stands in place of the one of its name."""
    return replace(state, fits=tuple(charged if fit.id == charged.id else fit for fit in state.fits))


def _mark(number: int) -> str:
    """Return the mark of a run: its number, and what tells it from a run of that number that went on from a copy."""
    return f"{number} {uuid.uuid4().hex}"


def charge_data(
    path: str | os.PathLike[str] | None,
    plan: Plan,
    *,
    method: str,
    unit: str,
    private: bool,
    checkpoint: Journal | None = None,
    share: str | None = None,
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
    return charge(path, plan, method=method, unit=unit, checkpoint=checkpoint, share=share)


@contextlib.contextmanager
def settled(charged: Charge | None, *, has_checkpoint: bool = False) -> Iterator[None]:
    """Note in the ledger how the block ends, and which release is about to leave: `Charge.release`.

    Args:
        charged: the charge, if there is one.
        has_checkpoint: whether one keeps what was drawn. Then nothing leaves that the ledger does not note: a copy of
            the checkpoint could make a second release, and the same call makes this one again. Else what the ledger
            cannot note is no reason to lose the release, the only one that can be made.

    Raises:
        ConfigError: as `Charge.finish`, with a checkpoint.
        OutputError: so, too.
    """
    try:
        yield
    except BaseException as error:
        if charged is not None:
            with contextlib.suppress(ConfigError, OutputError):
                charged.stop("waiting" if isinstance(error, RoundPendingError) else "failed")
        raise
    if charged is None:
        return
    problem: ConfigError | OutputError | None = None
    try:
        charged.finish()
    except (ConfigError, OutputError) as error:
        problem = error.with_traceback(None)
    if problem is None:
        return
    if not has_checkpoint:
        warnings.warn(f"The charge stands, but the end of this fit was not noted: {problem}", PrivacyWarning, 2)
        return
    if isinstance(problem, OutputError):
        raise OutputError(
            f"{problem} The charge stands. The release does not leave before the ledger notes it: the same call makes "
            "it again from the checkpoint."
        )
    raise problem


@contextlib.contextmanager
def final_write(
    ledger: str | os.PathLike[str] | None, *, checkpoint: str | os.PathLike[str] | None = None, resumable: bool = False
) -> Iterator[None]:
    """Say what becomes of a release that the block cannot write: what it cost is spent.

    Args:
        ledger: what was charged for it; None of a fit that named none.
        checkpoint: what keeps it, if anything does.
        resumable: whether a checkpoint could have been named.

    Raises:
        OutputError: as the block, with what was spent, what is kept, and what to do.
    """
    problem = None
    try:
        yield
    except OutputError as error:
        problem = str(error)
    if problem is None:
        return
    spent = "Its budget is spent" if ledger is None else f"The ledger {ledger} says finished, and its charge stands"
    if checkpoint is not None:
        note = (
            f"The checkpoint {checkpoint} keeps what was drawn: the same command writes the release, at no new charge."
        )
    else:
        note = "nothing of the release is kept."
        note += " With --checkpoint the same command would have written it, at no new charge." if resumable else ""
    raise OutputError(f"{problem} {spent}{'. ' if checkpoint is not None else '; '}{note}")


def refuse_unless_payable(state: LedgerState, plan: Plan, unit: str, path: object) -> None:
    """Raise unless a ledger can pay for a plan; errors as `charge`."""
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
    if spent > state.budget.epsilon * (1 + SLACK):
        before = state.spent()
        raise BudgetExceededError(
            f"Expected a fit that the ledger {path} can pay for, got one with which all fits cost epsilon={spent:.6g} "
            f"at delta={state.budget.delta:g}, of {state.budget.epsilon:g}. Without it they cost {before:.6g}. Nothing "
            "was read or charged: ask for a smaller epsilon."
        )


def _refuse_second_share(state: LedgerState, share: str | None, path: object) -> None:
    if share is not None and any(fit.share == share for fit in state.fits):
        raise ConfigError(
            f"Expected one charge of {path} for this session and attempt of the holders, got a second one, of a copy "
            "of the holder's folder or of one that was put back: its share under the same pads would show more than "
            "one. Go on with the folder that was charged, or begin anew with `sfumato model join`."
        )


def _charge_before(state: LedgerState, plan: Plan, checkpoint: Journal, path: object) -> ChargedFit | None:
    """Return the charge that a checkpoint goes on under; None if the fit was not charged."""
    known = next((fit for fit in state.fits if fit.id == checkpoint.charge), None)
    if checkpoint.charge is None or (known is None and checkpoint.goes_on(None)):
        return None
    problem = None
    if known is None or _events(known.plan) != _events(plan):
        problem = "one of no fit in it"
    elif known.status == "running" and (known.process != ProcessMark.own() or known.run in _running):
        problem = "one of a fit that is running"
    elif not checkpoint.goes_on(known.run):
        problem = "an older copy, beside which the fit went on"
    if problem is not None:
        raise ConfigError(
            f"Expected the checkpoint of a fit that charged the ledger {path} and was stopped, as its last run left "
            f"it, got {problem}. Name another file as checkpoint: the fit then starts, and is charged, anew."
        )
    return known


def _events(plan: Plan) -> list[dict[str, Any]]:
    return [event_to_dict(stage) for stage in plan.stages]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
