"""Documented names of before: their modules import still, and a name taken from one warns and says the new one.

Python asks the finder below only for modules that are nowhere else, so that names of today cost nothing.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

# a documented module of before → the public module with its documented names; a package that only held some → None
MOVED: Mapping[str, str | None] = {
    "sfumato.data": None,
    "sfumato.data.kinds": "sfumato.columns",
    "sfumato.data.schema": "sfumato",
    "sfumato.data.set_kind": "sfumato.columns",
    "sfumato.learners": None,
    "sfumato.learners.clip_norms": "sfumato.settings",
    "sfumato.learners.mixture_training": "sfumato",
    "sfumato.synthesizers": None,
    "sfumato.synthesizers.data_ledger": "sfumato",
    "sfumato.synthesizers.dpgm_settings": "sfumato.settings",
    "sfumato.synthesizers.p3gm": "sfumato.settings",
}
REMOVED: Mapping[str, str] = {
    "sfumato.models.mixture_regression": "it left the package for papers/dpmix of the repository, with its paper",
}


class MovedModules:
    """Finds and makes modules of before, for `sys.meta_path`."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return how a module of before is made; None for any other.

        Raises:
            ModuleNotFoundError: it was removed on purpose.
        """
        if name in REMOVED:
            raise ModuleNotFoundError(f"No module named {name!r}: {REMOVED[name]}.", name=name)
        if name not in MOVED:
            return None
        loader = MovedModules()
        return ModuleSpec(name, loader, is_package=MOVED[name] is None)  # type: ignore[arg-type] - it has what a Loader has

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave making it to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Give it its one function: what looks names up."""
        name, home = module.__name__, MOVED[module.__name__]

        def find(attribute: str) -> object:
            if home is None and f"{name}.{attribute}" in MOVED:
                return import_module(f"{name}.{attribute}")
            if home is None or attribute not in import_module(home).__all__:
                raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
            said = f"{name}.{attribute} is now {home}.{attribute}. The old name will go with a later version."
            warnings.warn(said, DeprecationWarning, stacklevel=2)
            return getattr(sys.modules[home], attribute)

        module.__getattr__ = find  # type: ignore[method-assign] - PEP 562


def install() -> None:
    """Have Python find the modules of before."""
    if not any(finder is MovedModules for finder in sys.meta_path):
        sys.meta_path.append(MovedModules)
