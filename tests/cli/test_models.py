"""mixture, factors and cluster: a release that loads and samples, and errors before any budget."""

import json

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.estimators import DPGaussianMixture
from sfumato.release_front import load

SCHEMA = (
    "rows: 2000\ncolumns:\n  a: {kind: continuous, lower: -4, upper: 4}\n  b: {kind: integer, lower: 0, upper: 50}\n"
)
COMMANDS = [("mixture", "--components", 2), ("factors", "--factors", 1), ("cluster", "--clusters", 2)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, 2000)
    table = pd.DataFrame(
        {"a": rng.normal(4 * side - 2, 0.3), "b": np.clip(rng.normal(10 + 30 * side, 2), 0, 50).round()}
    )
    table.loc[0, "a"] = None
    table.assign(b=table["b"].astype(int)).to_csv("rows.csv", index=False)
    (tmp_path / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
    return tmp_path


def _arguments(command, out="r.sfm"):
    name, *options = command
    return ("model", name, "rows.csv", "--schema", "schema.yaml", "--epsilon", 2, "--out", out, *options)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_a_release_loads_and_samples(folder, call, command):
    done = call(*_arguments(command), "--json")
    assert (done.code, done.json["written"]) == (0, "r.sfm"), done.err
    release = load("r.sfm")
    assert done.json["epsilon"] == release.certificate.epsilon
    release.certificate.verify()
    assert release.certificate.private
    assert 1.9 < release.certificate.epsilon <= 2
    assert list(release.schema.columns) == ["a", "b"]
    drawn = release.sample(500, seed=0)
    assert drawn["a"].between(-4, 4).all()
    assert drawn["b"].between(0, 50).all()
    assert call("certificate", "r.sfm").code == 0
    if command[0] != "factors":
        assert np.corrcoef(drawn["a"], drawn["b"])[0, 1] > 0.8


def test_it_is_the_estimator_of_python(folder, call):
    """Codes give the numbers back but for rounding; noise is the seed's."""
    pd.read_csv("rows.csv").dropna().to_csv("rows.csv", index=False)
    assert call(*_arguments(COMMANDS[0]), "--seed", 3).code == 0
    rows = pd.read_csv("rows.csv").to_numpy(dtype=float)
    model = DPGaussianMixture(2, epsilon=2.0, n_public=2000, bounds=([-4, 0], [4, 50]), seed=3).fit(rows)
    found = load("r.sfm")
    assert not found.certificate.private
    for name, value in model.release().parameters.items():
        np.testing.assert_allclose(found.parameters[name], value, rtol=1e-6)


@pytest.mark.parametrize("cell", ["", "much", "nan", "1e400"])
def test_no_cell_stops_a_fit(folder, call, cell):
    lines = (folder / "rows.csv").read_text(encoding="utf-8").splitlines()
    lines[5] = f"{cell},{cell}"
    (folder / "rows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert call(*_arguments(COMMANDS[2])).code == 0


def test_a_unit_of_the_schema_is_protected(folder, call):
    (folder / "schema.yaml").write_text(SCHEMA.replace("rows: 2000", "rows: 2000\nunit: {column: b, max_rows: 2}"))
    assert call(*_arguments(COMMANDS[2])).code == 0
    unit = sfumato.load("r.sfm").certificate.unit
    assert (unit.name, unit.max_rows) == ("b", 2)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_a_ledger_is_charged(folder, call, command):
    assert call("ledger", "create", "l.json", "--epsilon", 2.5, "--delta", 1e-4).code == 0
    assert call(*_arguments(command), "--ledger", "l.json").code == 0
    done = call(*_arguments(command, "again.sfm"), "--ledger", "l.json")
    assert done.code != 0
    assert not (folder / "again.sfm").exists()
    (fit,) = call("ledger", "show", "l.json", "--json").json["fits"]
    assert fit["status"] == "finished"


@pytest.mark.parametrize(
    ("old", "new", "options", "said"),
    [
        ("kind: integer, lower: 0, upper: 50", "kind: boolean", (), "columns of numbers"),
        ("rows: 2000\n", "", (), "n_public"),
        ("rows: 2000", "rows: 2000", ("--iterations", 0), "iterations"),
        ("rows: 2000", "rows: 2000", ("--components", 0), "n_components"),
        ("rows: 2000", "rows: 2000", ("--clip-norm", -1), "clip_norm"),
        ("rows: 2000", "rows: 2000", ("--epsilon", 0), "epsilon"),
        ("rows: 2000\n", "unit: {column: b, max_rows: 2, order: a, units: 2000}\n", (), "linked rows for estimators"),
    ],
)
def test_refused_before_the_ledger_is_charged(folder, call, old, new, options, said):
    (folder / "schema.yaml").write_text(SCHEMA.replace(old, new), encoding="utf-8")
    assert call("ledger", "create", "l.json", "--epsilon", 2.5, "--delta", 1e-4).code == 0
    done = call(
        "model",
        "mixture",
        "rows.csv",
        "--schema",
        "schema.yaml",
        "--epsilon",
        2,
        "--out",
        "r.sfm",
        "--ledger",
        "l.json",
        *options,
    )
    assert (done.code, said in done.err) == (2, True), done.err
    assert call("ledger", "show", "l.json", "--json").json["fits"] == []
    assert not (folder / "r.sfm").exists()


def test_an_existing_release_stays(folder, call):
    assert call(*_arguments(COMMANDS[2])).code == 0
    before = (folder / "r.sfm").read_bytes()
    assert call(*_arguments(COMMANDS[2])).code == 2
    assert (folder / "r.sfm").read_bytes() == before
    assert json.dumps(load("r.sfm").certificate.to_dict())
