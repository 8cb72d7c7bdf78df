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
import hashlib
import json
import math
import os
import uuid
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias, final

from sfumato.errors import (
    BudgetExceededError,
    ConfigError,
    OutputError,
    PrivacyWarning,
    SfumatoError,
    require_instance,
)
from sfumato.fitting.process import ProcessMark, file_lock, network_file_system
from sfumato.io.atomic import atomic_path, refuse_existing
from sfumato.io.strict_json import parse_object
from sfumato.privacy.accounting import account_of_fits
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.certificate_form import event_to_dict, stage_from_dict
from sfumato.privacy.plan import Neighbours, Plan

Status: TypeAlias = Literal["running", "finished", "failed", "killed", "unknown"]
_FORMAT = "sfumato ledger 1"
_ENDED = ("finished", "failed")
_MOST_BYTES = 64 << 20
_FAR = 1e12  # noise multipliers beyond it, or below its inverse, are of no fit
_SLACK = 1e-9  # a fit may cost all there is, up to rounding


@final
@dataclass(frozen=True, slots=True)
class ChargedFit:
    """A fit that charged a ledger.

    Attributes:
        id: its name in the ledger.
        method: its method.
        unit: whom it protects: "row", or a column.
        plan: what it was charged.
        started: when it was charged, UTC, ISO 8601.
        ended: when it finished or failed; None if it has not, or was killed.
        entry: what the file says of its end: "running" until it ends.
        process: the process that fits.
    """

    id: str
    method: str
    unit: str
    plan: Plan
    started: str
    ended: str | None
    entry: Literal["running", "finished", "failed"]
    process: ProcessMark

    @property
    def status(self) -> Status:
        """How it ended; "killed" if its process is gone, "unknown" if that is on another machine."""
        if self.entry in _ENDED:
            return self.entry
        alive = self.process.alive()
        return "unknown" if alive is None else "running" if alive else "killed"

    def charged(self) -> dict[str, Any]:
        """Return what is charged, which no end of the fit changes."""
        return {
            "id": self.id, "method": self.method, "unit": self.unit,
            "events": [event_to_dict(stage) for stage in self.plan.stages], "started": self.started,
        }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return it as the file holds it, but for its place in the chain."""
        return {**self.charged(), "ended": self.ended, "entry": self.entry, "process": self.process.to_dict()}


@final
@dataclass(frozen=True, slots=True)
class LedgerState:
    """What a ledger says at one moment.

    Attributes:
        budget: what all fits together may cost.
        neighbours: the relation of the budget.
        fits: every fit that charged it, oldest first.
    """

    budget: PrivacyBudget
    neighbours: Neighbours
    fits: tuple[ChargedFit, ...] = ()

    def spent(self, *more: Plan) -> float:
        """Return ε of all fits at the budget's δ, and of further plans; 0 of none.

        Raises:
            UnsupportedEventError: a plan has no account under the ledger's relation.
        """
        plans = [*(fit.plan for fit in self.fits), *more]
        found = account_of_fits(plans, self.budget.delta, self.neighbours)
        return 0.0 if found is None else found.epsilon

    @property
    def chain(self) -> tuple[str, ...]:
        """Of each charge the hash of what it says and of all before it, SHA-256 in hexadecimal digits."""
        link = _hash([_FORMAT, self.budget.epsilon, self.budget.delta, self.neighbours.value])
        links = []
        for number, fit in enumerate(self.fits, 1):
            link = _hash([link, number, fit.charged()])
            links.append(link)
        return tuple(links)

    def describe(self) -> dict[str, Any]:
        """Return what `ledger show --json` prints."""
        return {
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "neighbours": self.neighbours.value,
            "spent": {"epsilon": _finite(self.spent()), "delta": self.budget.delta},
            "fits": [
                {
                    "charge": number,
                    "chain": link,
                    "id": fit.id,
                    "method": fit.method,
                    "unit": fit.unit,
                    "status": fit.status,
                    "started": fit.started,
                    "ended": fit.ended,
                    "epsilon_alone": _finite(LedgerState(self.budget, self.neighbours).spent(fit.plan)),
                    "events": [event_to_dict(stage) for stage in fit.plan.stages],
                }
                for number, (fit, link) in enumerate(zip(self.fits, self.chain, strict=True), 1)
            ],
        }


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
    place = _real(path)
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
        _write(place, state)


def read_ledger(path: str | os.PathLike[str]) -> LedgerState:
    """Read a ledger as it stands.

    Raises:
        ConfigError: it does not exist, or is no ledger.
    """
    require_instance((str, os.PathLike), "the path of a ledger", path=path)
    return _read(_real(path))


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
            state = _read(self._path)
            fits = [replace(f, entry=entry, ended=_now()) if f.id == self.id else f for f in state.fits]
            _write(self._path, replace(state, fits=tuple(fits)))


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
    place = _real(path)
    if (shared := network_file_system(place.parent)) is not None:
        warnings.warn(
            f"The ledger {path} lies on the file system {shared}, where locks may not hold between machines: let one "
            "machine alone fit these data, or move the ledger to its disk.",
            PrivacyWarning,
            stacklevel=4,
        )
    with file_lock(place):
        state = _read(place)
        if resumes is not None:
            fits, charged = _resumed(state, plan, resumes, path)
        else:
            _refuse_unless_payable(state, plan, unit, path)
            charged = ChargedFit(uuid.uuid4().hex, method, unit, plan, _now(), None, "running", ProcessMark.own())
            fits = (*state.fits, charged)
        state = replace(state, fits=fits)
        _write(place, state)
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


def _real(path: str | os.PathLike[str]) -> Path:
    """Return the file itself: two names of one ledger share its lock."""
    return Path(os.path.realpath(path))


def _write(path: Path, state: LedgerState) -> None:
    content = {
        "format": _FORMAT,
        "budget": {"epsilon": state.budget.epsilon, "delta": state.budget.delta},
        "neighbours": state.neighbours.value,
        "fits": [{**fit.to_dict(), "chain": link} for fit, link in zip(state.fits, state.chain, strict=True)],
    }
    text = json.dumps(content, indent=1, allow_nan=False)
    failure = None
    with atomic_path(path, overwrite=True, secret=True) as partial:
        try:
            partial.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            failure = error.strerror or "the system refused"
        if failure:
            raise OutputError(f"Cannot write the ledger {path}: {failure}. Nothing was charged.")


def _read(path: Path) -> LedgerState:
    if not path.is_file():
        raise ConfigError(f"Expected a ledger, got no file {path}. `sfumato ledger create` opens one.")
    if path.stat().st_nlink > 1:
        raise ConfigError(
            f"Expected a ledger of one name, got {path}, which has several (hard links). Keep one: the other would "
            "not see what is charged."
        )
    state, links = None, ()
    try:
        if path.stat().st_size <= _MOST_BYTES:
            content = parse_object(path.read_bytes())
            state = _parsed(content)
            links = [fit.get("chain") for fit in content["fits"]]  # None in those of older versions
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, LookupError, SfumatoError):
        pass
    if state is None:
        raise ConfigError(f"Expected {path} to be a ledger of Sfumato, got something else, or a damaged one.")
    wrong = [i for i, (said, link) in enumerate(zip(links, state.chain, strict=True), 1) if said not in (None, link)]
    if wrong:
        raise ConfigError(
            f"Expected the ledger {path} as Sfumato wrote it, got one whose charge {wrong[0]}, or one before it, was "
            "changed or taken out. Find out who did, and restore the file from the newest copy."
        )
    return state


def _parsed(content: Mapping[str, Any]) -> LedgerState | None:
    if content["format"] != _FORMAT:
        return None
    budget = PrivacyBudget(content["budget"]["epsilon"], content["budget"]["delta"])
    state = LedgerState(budget, Neighbours(content["neighbours"]), tuple(map(_parsed_fit, content["fits"])))
    multipliers = [stage.noise_multiplier for fit in state.fits for stage in fit.plan.stages]
    if len({fit.id for fit in state.fits}) < len(state.fits) or not all(1 / _FAR < m < _FAR for m in multipliers):
        return None
    return state


def _hash(said: object) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _parsed_fit(entry: Mapping[str, Any]) -> ChargedFit:
    if entry["entry"] not in ("running", *_ENDED):
        raise ValueError(entry["entry"])
    return ChargedFit(
        id=str(entry["id"]),
        method=str(entry["method"]),
        unit=str(entry["unit"]),
        plan=Plan(map(stage_from_dict, entry["events"])),
        started=str(entry["started"]),
        ended=None if entry["ended"] is None else str(entry["ended"]),
        entry=entry["entry"],
        process=ProcessMark.from_dict(entry["process"]),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None
