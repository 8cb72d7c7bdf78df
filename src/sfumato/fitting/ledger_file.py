"""The file of a ledger: read strictly, its chain checked link by link, and replaced whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import ConfigError, OutputError, SfumatoError
from sfumato.fitting.ledger_state import ENDED, LEDGER_FORMAT, ChargedFit, LedgerState
from sfumato.fitting.process import ProcessMark
from sfumato.io.atomic import atomic_path
from sfumato.io.strict_json import parse_object
from sfumato.privacy.budget import PrivacyBudget
from sfumato.privacy.certificate_form import stage_from_dict
from sfumato.privacy.plan import Neighbours, Plan

_MOST_BYTES = 64 << 20
_FAR = 1e12  # noise multipliers beyond it, or below its inverse, are of no fit


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return the file itself: two names of one ledger share its lock."""
    return Path(os.path.realpath(path))


def write_ledger_file(path: Path, state: LedgerState) -> None:
    """Replace the file: the new one is on the disk before it takes the old one's name.

    Raises:
        OutputError: it cannot be written; the old one stands.
    """
    content = {
        "format": LEDGER_FORMAT,
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


def read_ledger_file(path: Path) -> LedgerState:
    """Read the file.

    Raises:
        ConfigError: it does not exist, is no ledger, has a second name, or was changed by hand.
    """
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
    if content["format"] != LEDGER_FORMAT:
        return None
    budget = PrivacyBudget(content["budget"]["epsilon"], content["budget"]["delta"])
    state = LedgerState(budget, Neighbours(content["neighbours"]), tuple(map(_parsed_fit, content["fits"])))
    multipliers = [stage.noise_multiplier for fit in state.fits for stage in fit.plan.stages]
    if len({fit.id for fit in state.fits}) < len(state.fits) or not all(1 / _FAR < m < _FAR for m in multipliers):
        return None
    return state


def _parsed_fit(entry: Mapping[str, Any]) -> ChargedFit:
    if entry["entry"] not in ("running", *ENDED):
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
