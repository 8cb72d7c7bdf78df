"""Libraries that only part of Sfumato needs, in extras: `pip install 'sfumato[evaluate]'`.

What needs one asks for it here first, before any work, and before any budget is spent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sfumato.errors import ConfigError

EXTRAS: Mapping[str, Mapping[str, str]] = {
    "evaluate": {"sklearn": "scikit-learn", "xgboost": "xgboost"},
    "regression": {"formulaic": "formulaic"},
    "studio": {"starlette": "starlette", "uvicorn": "uvicorn"},
}
"""Extra → the modules that it brings, with the names of their packages."""


def require_extra(extra: str, purpose: str) -> None:
    """Refuse to go on without the libraries of an extra; none of them is imported.

    Args:
        extra: its name, one of `EXTRAS`.
        purpose: what it is needed for, after "to".

    Raises:
        ConfigError: a library is not installed; says what to run.
    """
    for module, package in EXTRAS[extra].items():
        if not installed(module):
            raise ConfigError(
                f"Expected {package} to be installed, to {purpose}, got no such package. "
                f"Run pip install 'sfumato[{extra}]'."
            )


def import_extra(name: str, extra: str) -> Any:  # noqa: ANN401 - a module of another package
    """Return a module of an extra.

    Raises:
        ConfigError: it is not installed; says what to run.
    """
    with contextlib.suppress(ImportError):
        return import_module(name)
    raise ConfigError(
        f"Expected {name.partition('.')[0]} to be installed, got no such package. Run pip install 'sfumato[{extra}]'."
    )


def installed(module: str) -> bool:
    """Whether a library can be imported, which it is not."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # a module that is blocked, or has no specification
        return False
