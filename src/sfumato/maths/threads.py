"""Threads of linear algebra: one, unless the environment variable SFUMATO_THREADS says how many.

Products here are mostly small: threads that wait for each other beside a busy neighbour made seconds of a fit minutes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from sfumato.errors import ConfigError, named_arguments

VARIABLE = "SFUMATO_THREADS"

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


_limit = threading.local()  # `inside`: whether this thread is inside a function that is limited already


def few_threads(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Keep linear algebra to few threads while a function runs; afterwards it is as it was."""

    @named_arguments
    @wraps(function)
    def limited(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        if getattr(_limit, "inside", False):
            return function(*args, **kwargs)
        from threadpoolctl import threadpool_limits

        _limit.inside = True
        try:
            with threadpool_limits(thread_count(), user_api="blas"):
                return function(*args, **kwargs)
        finally:
            _limit.inside = False

    return limited


def thread_count() -> int:
    """Return how many threads linear algebra may have.

    Raises:
        ConfigError: SFUMATO_THREADS is no whole number from 1 on.
    """
    text = os.environ.get(VARIABLE, "1")
    if not (text.isascii() and text.isdigit()) or not int(text):
        raise ConfigError(f"Expected {VARIABLE} to be a whole number of at least 1, got {text!r}. Unset it for 1.")
    return int(text)
