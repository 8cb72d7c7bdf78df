"""Questions as type checkers see them: one number, or several by the labels of a column."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SNIPPET = """
import sfumato
from sfumato import Estimate, Estimates, HypothesisTest, Regression, Regressions
from typing import assert_type

def ask(release: sfumato.Release, by: str) -> None:
    assert_type(release.mean("age"), Estimate)
    assert_type(release.mean("age", by="sex"), Estimates)
    assert_type(release.share({"age": (18, 65)}, by=by)["f"], Estimate)
    assert_type(release.quantile("age", 0.9, by="sex"), Estimates)
    assert_type(release.quantile("age", 0.9, target="table"), Estimate)
    assert_type(release.variance("age"), Estimate)
    assert_type(release.missing("age"), Estimate)
    assert_type(release.set_size("items", by="sex"), Estimates)
    assert_type(release.ols("y ~ x"), Regression)
    assert_type(release.poisson("y ~ x", by="sex"), Regressions)
    assert_type(release.logit("y ~ x").predict({"x": 1.0}), Estimate)
    assert_type(release.gamma("y ~ x").predict([{"x": 1.0}]), Estimates)
    assert_type(release.anova("y", "sex"), HypothesisTest)
    print(release.mean("age").value, float(release.mean("age")), release.ols("y ~ x").params)
    release.mean("age", by="sex").difference("f", "m").interval(0.9)
"""
WRONG = "release_of_none: Estimates = sfumato.load('r').mean('age')\n"


@pytest.mark.skipif(importlib.util.find_spec("pyright") is None, reason="pyright is not installed")
def test_a_question_has_the_type_of_its_answer(tmp_path):
    settings = {"extraPaths": [str(ROOT / "src")], "typeCheckingMode": "standard", "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    (tmp_path / "snippet.py").write_text(SNIPPET + WRONG, encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    faults = json.loads(shown.stdout)["generalDiagnostics"]
    assert [fault["range"]["start"]["line"] for fault in faults] == [SNIPPET.count("\n")], faults
