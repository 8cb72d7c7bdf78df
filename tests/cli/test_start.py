"""Start-up: a help, a version, a list of methods and a schema load no library that they do not need."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato import cli
from sfumato.cli.commands import COMMANDS
from sfumato.cli.example_calls import EXAMPLES
from sfumato.cli.options import DEFAULT_METHOD
from sfumato.methods.max_entropy import MaxEntropy
from sfumato.methods.registry import OWN

SOURCES = Path(cli.__file__).parents[2]
LARGE = ("numpy", "pyarrow", "pandas", "scipy", "dp_accounting", "sklearn", "statsmodels", "torch", "polars", "jinja2")
SLOW = ("pandas", "pyarrow.dataset", "scipy", "dp_accounting", "sklearn", "statsmodels", "torch", "polars", "jinja2")
WATCHED = f"""
import contextlib, io, json, sys
from sfumato.cli.app import run

def loaded(call, libraries):
    with contextlib.redirect_stdout(io.StringIO()):
        code = run(call)
    return code, [name for name in libraries if name in sys.modules]

LARGE, SLOW = {LARGE!r}, {SLOW!r}
"""


def python(code: str, **options: object) -> str:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, **options)
    return run.stdout.decode()


def test_no_help_loads_a_large_library():
    calls = [["--version"], [], ["-h"], ["--help"], *([*name.split(), "--help"] for name in EXAMPLES)]
    code = f"{WATCHED}\nprint(json.dumps([(call, *loaded(call, LARGE)) for call in {calls!r}]))"
    answers = json.loads(python(code))
    assert {call[0] for call, *_ in answers[4:]} == set(COMMANDS)
    assert [call for call, code, _ in answers if code and call] == []
    assert [(call, names) for call, _, names in answers if names] == []  # the first of them loads it


def test_a_list_and_a_schema_load_nothing_that_accounts_or_fits(tmp_path):
    (tmp_path / "schema.yaml").write_text("rows: 1000\ncolumns: {age: boolean, sex: boolean}\n", encoding="utf-8")
    calls = [["methods"], ["methods", "--json"], ["schema", "check", "schema.yaml"]]
    code = f"{WATCHED}\nprint(json.dumps([(call, *loaded(call, SLOW)) for call in {calls!r}]))"
    assert json.loads(python(code, cwd=tmp_path)) == [[call, 0, []] for call in calls]


def test_importing_is_light():
    code = "import sys; before = set(sys.modules); import sfumato; print(*(set(sys.modules) - before))"
    loaded = set(python(code).split())
    assert not {*LARGE, "typer", "rich", "matplotlib", "xgboost"} & loaded
    assert len(loaded) < 100


def test_only_the_module_of_the_command_is_loaded():
    code = f"{WATCHED}\nloaded(['ledger', '--help'], ()); print(*sys.modules)"
    loaded = set(python(code).split())
    own = {f"sfumato.cli.{entry.module}" for entry in COMMANDS.values()}
    assert own & loaded == {"sfumato.cli.ledger_commands", "sfumato.cli.data_commands"}  # whose options it has


def test_names_of_methods_are_those_of_their_classes():
    assert MaxEntropy.method == DEFAULT_METHOD
    assert {name: method.make.method for name, method in OWN.items() if method.private} == {
        name: name for name, method in OWN.items() if method.private
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({entry.module: name for name, entry in COMMANDS.items()}.values()))
def test_a_help_costs_little_more_than_pandas(name, tmp_path):
    """Processor time, of one command of each module: about 0.8 times that of `import pandas`."""
    path = Path(__file__).parents[2] / "benchmarks" / "start.py"
    spec = importlib.util.spec_from_file_location("start", path)
    start = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(start)
    own, pandas = start.measured(("-m", "sfumato", name, "--help"), 5, tmp_path)
    assert own <= 1.2 * pandas
