"""Ctrl-C, held back where it may not come in between."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeAlias

Handler: TypeAlias = Callable[[int, FrameType | None], Any]


def current_handler() -> Handler | None:
    """Return what Python calls on Ctrl-C; None where the system ignores it, or ends the process."""
    found = signal.getsignal(signal.SIGINT)
    return found if callable(found) else None


def set_handler(handler: Handler | signal.Handlers) -> bool:
    """Set what comes of Ctrl-C; return whether that is possible: in the main thread only, which alone it reaches."""
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, handler)
        return True
    return False


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold Ctrl-C back until the block has ended, well or not; then it comes."""
    before = current_handler()
    held: list[tuple[int, FrameType | None]] = []
    if before is None or not set_handler(lambda *came: held.append(came)):
        yield
        return
    try:
        yield
    finally:
        set_handler(before)
        if held:
            before(*held[0])
