"""How a call ends: well as soon as its output is in place, unless what comes after fails.

A Ctrl-C that comes too late, or a terminal that takes no more text, changes nothing of the code: the output is there,
and whoever reads standard error is told. Any other error is an error, with its code, although the output is whole.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, final

from sfumato._lazy import later
from sfumato.io.atomic import Handler, current_handler, set_handler, telling

if TYPE_CHECKING:
    from sfumato.data_ledger import data_ledger
    from sfumato.release_front import Release
else:
    data_ledger = later("sfumato.data_ledger.data_ledger")


@final
class Ending:
    """The end of a call; a context in which Ctrl-C stops the call until its output is in place.

    Attributes:
        output: the output, once it is in place.
        ledger: what was charged for it.
        interrupted: whether Ctrl-C came after that.
    """

    def __init__(self, *, of_process: bool = False) -> None:
        """Begin.

        Args:
            of_process: the process ends with the call: after an output Ctrl-C has no effect any more.
        """
        self.output: Path | None = None
        self.ledger: Path | None = None
        self.interrupted = False
        self._of_process = of_process
        self._handler: Handler | None = None

    def __enter__(self) -> Ending:
        self._token = _ending.set(self)
        self._handler = current_handler()
        if self._handler is not None and not set_handler(self._interrupt):
            self._handler = None
        return self

    def __exit__(self, *_: object) -> None:
        _ending.reset(self._token)
        if self._handler is not None:
            set_handler(signal.SIG_IGN if self._of_process and self.output is not None else self._handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.output is not None:
            self.interrupted = True
        elif self._handler is not None:
            self._handler(number, frame)


_ending: ContextVar[Ending] = ContextVar("ending")


@contextlib.contextmanager
def last_output(out: Path, *, ledger: Path | None = None) -> Iterator[None]:
    """Have the call end well from the moment when the block puts its one output in place.

    Args:
        out: the output.
        ledger: what was charged for it.
    """
    ending = _ending.get(None) or Ending()  # a command that was called by itself

    def written() -> None:
        ending.output, ending.ledger = out, ledger

    with telling(out, written):
        yield


def save_release(
    release: Release,
    out: Path,
    *,
    overwrite: bool,
    ledger: Path | None,
    checkpoint: Path | None = None,
    resumable: bool = False,
) -> None:
    """Write a fit's release, the one output of its call; arguments as `final_write`.

    Raises:
        OutputError: it cannot be written; says what was spent, what is kept and what to do.
    """
    if not release.certificate.private:  # nothing was spent
        with last_output(out):
            release.save(out, overwrite=overwrite)
        return
    with data_ledger.final_write(ledger, checkpoint=checkpoint, resumable=resumable), last_output(out, ledger=ledger):
        release.save(out, overwrite=overwrite)
