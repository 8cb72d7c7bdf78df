"""The file of a ledger: read strictly, its chain checked link by link, and replaced whole."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from sfumato.data_ledger.journal import ProcessMark, network_file_system
from sfumato.data_ledger.ledger_state import LEDGER_FORMAT, ChargedFit, Entry, LedgerState
from sfumato.errors import ConfigError, OutputError, SfumatoError
from sfumato.io.atomic import atomic_path, refuse_existing, write_or_refuse
from sfumato.io.strict_json import parse_object
from sfumato.io.untrusted import read_bounded
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.certificate_form import Bound, stage_from_dict
from sfumato.privacy.plan import Neighbours, Plan
from sfumato.privacy.reading import Place, optional, reader

_MOST_BYTES = 64 << 20
_FAR = 1e12  # noise multipliers beyond it, or below its inverse, are of no fit
_PLACE = Place("ledger")


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return the file itself: two names of one ledger share its lock."""
    return Path(os.path.realpath(path))


def refuse_ledger(place: Path, path: str | os.PathLike[str]) -> None:
    """Raise unless a new ledger may be written.

    Raises:
        ConfigError: it would lie on a network file system.
        OutputError: the file exists, or its folder does not, or may not be written.
    """
    if (shared := network_file_system(place.parent)) is not None:
        raise ConfigError(
            f"Expected a ledger on a disk of this machine, got the file system {shared}: locks may not hold between "
            "machines, and two fits could be charged as one. Keep it on a local disk."
        )
    refuse_existing(place, overwrite=True)
    if os.path.lexists(place):
        raise OutputError(f"Expected no ledger yet, got {path}, which exists. Name another file.")


def write_ledger_file(path: Path, state: LedgerState, *, failing: str = "") -> None:
    """Replace the file: the new one is on the disk before it takes the old one's name.

    Args:
        path: the file itself.
        state: what it is to say.
        failing: what follows if it cannot be written, a sentence.

    Raises:
        OutputError: it cannot be written; the old one stands.
    """
    content = {
        "format": LEDGER_FORMAT,
        "budget": {"epsilon": state.budget.epsilon, "delta": state.budget.delta},
        "neighbours": state.neighbours.value,
        "fits": [{**fit.to_dict(), "chain": link} for fit, link in zip(state.fits, state.chain, strict=True)],
    }
    text = json.dumps({**content, "seal": _seal(content)}, indent=1, allow_nan=False)
    with atomic_path(path, overwrite=True, secret=True) as partial:
        write_or_refuse(f"the ledger {path}", lambda: partial.write_text(text + "\n", encoding="utf-8"), failing)


def read_ledger_file(path: Path) -> LedgerState:
    """Read the file.

    Raises:
        ConfigError: it does not exist, is no ledger, has a second name, has no whole chain, or was changed by hand.
    """
    content = ledger_content(path)
    state = parsed(content, path)
    for number, (fit, link) in enumerate(zip(content["fits"], state.chain, strict=True), 1):
        if fit.get("chain") != link:
            raise _changed(path, f"whose charge {number}, or one before it, was changed or taken out")
    if content.get("seal") != _seal(content):
        raise _changed(path, "in which was changed how a fit ended, or what it released")
    return state


def ledger_content(path: Path) -> dict[str, Any]:
    """Return the content of a file that has the format of a ledger, and a list of fits.

    Raises:
        ConfigError: it does not exist, is no ledger, is one of another version, or has a second name.
    """
    if not path.is_file():
        raise ConfigError(f"Expected a ledger, got no file {path}. `sfumato ledger create` opens one.")
    if path.stat().st_nlink > 1:
        raise ConfigError(
            f"Expected a ledger of one name, got {path}, which has several (hard links). Keep one: the other would "
            "not see what is charged."
        )
    content = None
    with contextlib.suppress(ValueError):
        content = parse_object(read_bounded(path, _MOST_BYTES))
    form, fits = (None, None) if content is None else (content.get("format"), content.get("fits"))
    if form != LEDGER_FORMAT and str(form).startswith(LEDGER_FORMAT.rstrip("0123456789")):
        raise ConfigError(
            f"Expected the ledger {path} to be of this version's format, got one made by another version. What it was "
            "charged stays spent: open a new one with what is left of the budget."
        )
    is_list = isinstance(fits, list) and all(isinstance(fit, dict) for fit in fits)
    if content is None or form != LEDGER_FORMAT or not is_list:
        raise ConfigError(_no_ledger(path))
    return content


def _changed(path: object, what: str) -> ConfigError:
    return ConfigError(
        f"Expected the ledger {path} as Sfumato wrote it, got one {what}. Find out who did, and restore the file from "
        "the newest copy."
    )


def parsed(content: Mapping[str, Any], path: object) -> LedgerState:
    """Return the state of a ledger.

    Raises:
        ConfigError: an entry is missing, of another form, or of no fit.
    """
    state = None
    with contextlib.suppress(ValueError, TypeError, AttributeError, ArithmeticError, LookupError, SfumatoError):
        state = _state(content)
    if state is None or not _sound(state):
        raise ConfigError(_no_ledger(path))
    return state


def _sound(state: LedgerState) -> bool:
    multipliers = [stage.noise_multiplier for fit in state.fits for stage in fit.plan.stages]
    ids = {fit.id for fit in state.fits}
    return len(ids) == len(state.fits) and all(1 / _FAR < m < _FAR for m in multipliers)


def _state(content: Mapping[str, Any]) -> LedgerState:
    budget = PrivacyBudget(content["budget"]["epsilon"], content["budget"]["delta"])
    fits = tuple(map(_fit, content["fits"]))
    return LedgerState(budget, Neighbours(content["neighbours"]), fits)


def _fit(entry: Mapping[str, Any]) -> ChargedFit:
    if entry["entry"] not in get_args(Entry):
        raise ValueError(entry["entry"])
    fit = ChargedFit(
        id=str(entry["id"]),
        method=str(entry["method"]),
        unit=str(entry["unit"]),
        plan=Plan(map(stage_from_dict, entry["events"])),
        started=str(entry["started"]),
        ended=None if entry["ended"] is None else str(entry["ended"]),
        entry=entry["entry"],
        process=ProcessMark.from_dict(entry["process"]),
        run=str(entry["run"]),
        release=optional(reader(Bound))(entry["release"], _PLACE),
        share=None if entry["share"] is None else str(entry["share"]),
    )
    if fit.runs < 1:
        raise ValueError(fit.run)
    return fit


def _no_ledger(path: object) -> str:
    return f"Expected {path} to be a ledger of Sfumato, got something else, or a damaged one."


def _seal(content: Mapping[str, Any]) -> str:
    """Return the hash of all that a ledger's file says."""
    entries = {key: entry for key, entry in content.items() if key != "seal"}
    return hashlib.sha256(json.dumps(entries, sort_keys=True, allow_nan=False).encode()).hexdigest()
