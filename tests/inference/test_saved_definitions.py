"""A saved release means what was measured: no definition that the code changes later moves its estimates."""

import sys

import numpy as np

from sfumato import load
from sfumato.methods.tables.cell_counts import public_runs


def one_cell_later(column):
    """The runs of a number's cells, each begun one cell later."""
    runs = public_runs(column)
    return runs if column.edges is None else np.concatenate([runs[:1], runs[:-1]])


def redefine(monkeypatch, name, changed):
    """Change a definition wherever the package holds it."""
    modules = [m for key, m in list(sys.modules.items()) if key.startswith("sfumato") and hasattr(m, name)]
    assert modules
    for module in modules:
        monkeypatch.setattr(module, name, changed)


def test_another_definition_of_a_run_moves_no_estimate_of_a_saved_release(release, tmp_path, monkeypatch):
    release.save(tmp_path / "before.sfm")
    known = load(tmp_path / "before.sfm")
    before = known.mean("x"), known.quantile("y"), known.correlation("x", "u")
    redefine(monkeypatch, "public_runs", one_cell_later)
    again = load(tmp_path / "before.sfm")
    after = again.mean("x"), again.quantile("y"), again.correlation("x", "u")
    assert [(e.value, e.std_error) for e in after] == [(e.value, e.std_error) for e in before]
