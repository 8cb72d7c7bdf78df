"""Names of a package that are imported when they are first asked for (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module


def lazy_names(
    package: str, homes: Mapping[str, str], rooms: Collection[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package.

    Args:
        package: its name.
        homes: public name → the module that has it.
        rooms: public modules in the package.
    """

    def find(name: str) -> object:
        if name in homes:
            value: object = getattr(import_module(homes[name]), name)
        elif name in rooms:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)  # asked once
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes, *rooms})

    return find, names
