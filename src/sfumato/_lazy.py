"""Modules that are imported when they are first asked for: names of a package (PEP 562), and libraries slow to load."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

from sfumato.errors import named_arguments


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of a package, whose stub says where its public names are.

    Args:
        package: its name; beside its `__init__.py` lies the stub, of lines `from module import name as name`.
    """
    module = sys.modules[package]
    stub = Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {name: home for home, name in re.findall(r"^from (\S+) import (\w+)", stub, re.MULTILINE)}

    def find(name: str) -> object:
        if name not in homes:  # Python says what was meant
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        is_room, home = homes[name] == package, homes[name]
        value = import_module(f"{package}.{name}") if is_room else explained(getattr(import_module(home), name))
        setattr(module, name, value)  # asked once
        return value

    public = sorted(name for name, home in homes.items() if home != package)
    return find, lambda: sorted({*vars(module), *homes}), public


def explained(value: object) -> object:
    """A public class or function that refuses calls as `named_arguments` does, in the module that defines it too."""
    of = vars(value).get("__init__") if isinstance(value, type) else value
    if isinstance(of, FunctionType) and not hasattr(of, "__wrapped__"):
        home, name = (value, "__init__") if isinstance(value, type) else (sys.modules[of.__module__], of.__name__)
        setattr(home, name, named_arguments(of))
        return value if isinstance(value, type) else getattr(home, name)
    return value


class _Later(ModuleType):
    """A module that is imported at its first attribute."""

    def __getattr__(self, name: str) -> object:
        return getattr(import_module(self.__name__), name)


def later(module: str) -> ModuleType:
    """Return a stand-in for a module, which imports it when an attribute is first asked for.

    It is for libraries that take longer to load than most calls take to run, in modules that mostly need none of them:
    a schema names the event of its weights, and dp-accounting alone loads for longer than pandas. What only runs after
    a charge is imported as usual: an import that fails then would cost the budget.

    An import for type checkers stands beside each use.

    >>> special = later("scipy.special")
    >>> float(special.expit(0.0))
    0.5
    """
    return _Later(module)
