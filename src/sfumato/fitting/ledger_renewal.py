"""A ledger without a whole chain, carried over into one that has it, and says so for ever.

Of such a file nobody can tell whether a charge was changed or taken out. So what is carried over is never stated as
proven: the new chain begins with the hash of the file, `ledger show` and every certificate charged later name the
number of carried charges, and nothing goes on under them. What a release of before states still shows whether the
charges up to its own are those that were charged: see `LedgerState.chain_before`.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sfumato.errors import ConfigError
from sfumato.fitting.ledger_file import (
    lacks_chain,
    ledger_content,
    parsed,
    read_ledger_file,
    real_path,
    refuse_ledger,
    refuse_wrong_links,
    write_ledger_file,
)
from sfumato.fitting.ledger_state import ChargedFit, LedgerState, Renewal
from sfumato.fitting.process import file_lock


def renew_ledger(path: str | os.PathLike[str], to: str | os.PathLike[str]) -> LedgerState:
    """Write a ledger with a chain that carries over the budget and the charges of one without. Reads no record.

    Args:
        path: a ledger of an older version, or one whose charges have no chain; it stays as it is.
        to: the file to write; never replaced.

    Returns:
        The new ledger, whose `renewal` says what it was renewed from.

    Raises:
        ConfigError: the file is no ledger, has a chain already, was changed by hand, or has a fit that runs.
        OutputError: `to` exists, or cannot be written.
    """
    old, new = real_path(path), real_path(to)
    refuse_ledger(new, to)
    with file_lock(old), file_lock(new):
        refuse_ledger(new, to)
        renewed = _renewed(path, old)
        write_ledger_file(new, renewed)
    return renewed


def _renewed(path: str | os.PathLike[str], place: Path) -> LedgerState:
    content = ledger_content(place)
    if not lacks_chain(content):
        read_ledger_file(place)  # says what was changed, if something was
        raise ConfigError(f"Expected a ledger without a chain, got {path}, which has one: there is nothing to renew.")
    state = parsed(content, path)
    digest = hashlib.sha256(place.read_bytes()).hexdigest()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    renewal = Renewal(format=content["format"], sha256=digest, charges=len(state.fits), renewed=now)
    renewed = replace(state, fits=tuple(map(_carried, state.fits)), renewal=renewal)
    refuse_wrong_links(content, renewed.chain_before, path)
    if any(fit.status == "running" for fit in state.fits):
        raise ConfigError(f"Expected a ledger of fits that have ended, got {path}, one of which runs. Wait for it.")
    return renewed


def _carried(fit: ChargedFit) -> ChargedFit:
    """Return a charge under which nothing goes on."""
    return replace(fit, run="", entry=fit.entry if fit.entry == "finished" else "failed")
