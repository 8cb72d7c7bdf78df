"""A saved release means what was measured: no definition that the code changes later moves its estimates."""

import dataclasses
import sys

import numpy as np
import pytest

from sfumato import load
from sfumato.columns.bounded import Steps
from sfumato.errors import ReleaseError
from sfumato.methods.tables.cell_counts import public_runs
from sfumato.schema.grid import ColumnGrid, Grid


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


def halves(cls, name, kind, most, **_):
    """Cells of a number cut anew: two halves, and that of 0."""
    last, zero = kind.steps.last, kind.zero_code
    step = [] if zero is None else [int(kind.steps.at(np.array(zero)))]
    edges = np.unique([0, last // 2, last + 1, *step, *(s + 1 for s in step)]).astype(np.int64)
    return cls.stored(name, kind, edges)


def test_another_definition_of_the_grid_moves_no_row_nor_estimate_of_a_saved_release(release, tmp_path, monkeypatch):
    release.save(tmp_path / "before.sfm")
    rows, before = load(tmp_path / "before.sfm").sample(200, seed=0), release.mean("x")
    monkeypatch.setattr(ColumnGrid, "numbers", classmethod(halves))
    cut = Grid.of(release.schema, numeric_cells=64).columns
    assert max(column.n_cells for column in cut if column.numeric) < 6
    again = load(tmp_path / "before.sfm")
    assert again.sample(200, seed=0).equals(rows)
    assert (again.mean("x").value, again.mean("x").std_error) == (before.value, before.std_error)


def test_another_definition_of_steps_refuses_a_saved_release(release, tmp_path, monkeypatch):
    """A code would be another step, and nothing of the release could be read as it was meant."""
    release.save(tmp_path / "before.sfm")
    kind = release.schema.columns["x"]
    finer = Steps(2 * kind.steps.last + 1, 2 * kind.steps.scale + 1, kind.steps.offset)
    monkeypatch.setattr(type(kind), "steps", property(lambda self: finer))
    with pytest.raises(ReleaseError, match="cuts 'x' into other cells"):
        load(tmp_path / "before.sfm")
    bare = dataclasses.replace(release, measurements=())
    with pytest.raises(ReleaseError, match=r"values of the column .x. in the release, got others.*Fit again"):
        bare.check()
