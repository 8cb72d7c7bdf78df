"""Scripts of papers/ as modules. Those of different papers have the same names, so none stays where others look."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "papers"
_NAMES = {path.stem for path in PAPERS.glob("*/*.py")}


def script(paper: str, name: str) -> ModuleType:
    """Return a script of a paper, which finds those beside it."""
    paths = [str(PAPERS / paper), str(PAPERS), str(ROOT / "benchmarks")]
    kept = {found: sys.modules.pop(found) for found in _NAMES & set(sys.modules)}
    before = list(sys.path)
    sys.path[:0] = paths
    try:
        return import_module(name)
    finally:
        sys.path[:] = before
        for found in _NAMES & set(sys.modules):
            del sys.modules[found]
        sys.modules.update(kept)
