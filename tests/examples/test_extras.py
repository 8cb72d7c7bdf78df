"""The core needs thirteen packages: without those of extras it fits, samples and saves, and says what to install."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sfumato.extras import EXTRAS

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

_BLOCKED = """
import sys
for name in {blocked}:
    sys.modules[name] = None  # as if it were not installed
import pandas as pd
import sfumato
from sfumato.columns import Boolean, Integer
from sfumato.errors import ConfigError
frame = pd.DataFrame({{"age": [30, 40, 50, 60] * 250, "member": [True, False] * 500}})
schema = sfumato.Schema(columns={{"age": Integer(lower=0, upper=120), "member": Boolean()}}, rows=1_000)
method = sfumato.MaxEntropy(epsilon=1.0)
"""
_CORE = """
sfumato.create_ledger("people.ledger", epsilon=1.0, delta=1e-4)
release = method.fit(frame, schema=schema, target="member", ledger="people.ledger")
release.save("people.sfm")
print(len(sfumato.load("people.sfm").sample(5)), release.mean("age").std_error > 0)
print(sfumato.read_ledger("people.ledger").fits[0].status)
"""
_CALLS = {
    "evaluate": 'sfumato.evaluate.evaluate("nothing.csv", "nothing.csv", schema=schema)',
    "estimators": "sfumato.estimators",
    "report": 'sfumato.report.write_report("nothing.sfm", "page.html", real=frame)',
}


def _run(code: str, folder: Path) -> str:
    blocked = sorted({module for modules in EXTRAS.values() for module in modules})
    text = _BLOCKED.format(blocked=blocked) + code
    done = subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_core_fits_samples_and_saves_without_extras(tmp_path: Path) -> None:
    assert _run(_CORE, tmp_path).split() == ["5", "True", "finished"]


def test_what_needs_an_extra_says_so_before_any_work(tmp_path: Path) -> None:
    calls = "\n".join(
        f"try:\n    {call}\nexcept ConfigError as error:\n    print({name!r}, error)" for name, call in _CALLS.items()
    )
    lines = dict(line.split(" ", 1) for line in _run(calls, tmp_path).splitlines())
    assert set(lines) == set(_CALLS)
    assert all(line.endswith("Run pip install 'sfumato[evaluate]'.") for line in lines.values())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_formulas_need_their_extra(tmp_path: Path) -> None:
    code = _CORE + "try:\n    release.ols('age ~ member')\nexcept ConfigError as error:\n    print(error)"
    assert "Run pip install 'sfumato[regression]'." in _run(code, tmp_path)


_NAMED = """
from sfumato.cli.app import run
open("s.json", "w").write('{"rows": 1000, "columns": {"age": {"kind": "integer", "lower": 0, "upper": 99},'
    '"member": "boolean"}, "questions": [{"ols": "age ~ C(member)"}, {"mean": "age", "by": "member"}]}')
frame.to_csv("d.csv", index=False)
print("exit", run(["schema", "check", "s.json"]), run(["plan", "--schema", "s.json", "--epsilon", "1"]))
sfumato.create_ledger("people.ledger", epsilon=1.0, delta=1e-4)
for fit in (method.fit, lambda *args, **more: sfumato.tune(*args, epsilon=1.0, **more)):
    try:
        fit(frame, schema="s.json", ledger="people.ledger")
    except ConfigError as error:
        print(error)
print("charged", len(sfumato.read_ledger("people.ledger").fits))
"""


def test_a_plan_of_named_regressions_needs_no_extra_and_a_fit_says_so_before_the_charge(tmp_path: Path) -> None:
    said = _run(_NAMED, tmp_path)
    assert "exit 0 0" in said
    assert "charged 0" in said
    assert "ols: age ~ C(member): intervals" in " ".join(said.split())
    assert said.count("to measure the named questions, got no such package. Run pip install 'sfumato[regress") == 2


@pytest.mark.slow
def test_the_command_line_says_it_too(tmp_path: Path) -> None:
    code = "from sfumato.cli.app import run\nprint(run(['evaluate', 'table', 'a.csv', 'b.csv']))"
    assert _run(code, tmp_path).split() == ["2"]


def test_at_most_thirteen_requirements_each_justified() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    names = [requirement.split(">")[0].split("~")[0] for requirement in PROJECT["dependencies"]]
    assert len(names) <= 13
    assert [name for name in names if f"\n| {name} | " not in page] == []


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_what_the_error_names(extra: str) -> None:
    brought = " ".join(PROJECT["optional-dependencies"][extra])
    assert all(package in brought for package in EXTRAS[extra].values())


def test_help_and_version_import_nothing_heavy() -> None:
    """Counted, not timed: what starts the command line is the command line's library."""
    for call in ("--version", "--help"):
        code = f"import sys\nfrom sfumato.cli.app import run\nrun([{call!r}])\nprint(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
        heavy = {"numpy", "scipy", "pandas", "pyarrow", "dp_accounting", "cryptography", "sklearn", "xgboost", "torch"}
        assert loaded & heavy == set()
