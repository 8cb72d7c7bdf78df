"""Calls to a cluster: whatever it raises becomes one sentence, for its own words may hold what a worker printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sfumato.errors import EngineError, SfumatoError

T = TypeVar("T")


def called(call: Callable[[], T], message: str) -> T:
    """Return the result of a call.

    Raises:
        EngineError: with the message, if the cluster fails; nothing of the failure is carried along.
    """
    failure = EngineError(message)
    try:
        return call()
    except SfumatoError:
        raise
    except Exception:  # noqa: BLE001
        pass
    raise failure
