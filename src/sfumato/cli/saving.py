"""A fit's release is written: the one output of its call, and what became of the charge if it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sfumato._lazy import later
from sfumato.cli.ending import last_output

if TYPE_CHECKING:
    from sfumato.data_ledger import data_ledger
    from sfumato.release_front import Release
else:
    data_ledger = later("sfumato.data_ledger.data_ledger")


def save_release(
    release: Release,
    out: Path,
    *,
    overwrite: bool,
    ledger: Path | None,
    checkpoint: Path | None = None,
    resumable: bool = False,
) -> None:
    """Write a release; arguments as `final_write`.

    Raises:
        OutputError: it cannot be written; says what was spent, what is kept and what to do.
    """
    if not release.certificate.private:  # nothing was spent
        with last_output(out):
            release.save(out, overwrite=overwrite)
        return
    with data_ledger.final_write(ledger, checkpoint=checkpoint, resumable=resumable), last_output(out, ledger=ledger):
        release.save(out, overwrite=overwrite)
