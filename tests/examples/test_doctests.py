"""The examples in docstrings run, and what the pages of the Python interface show first has one."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
RUN = re.compile(r">>> (?!.*doctest: \+SKIP)")  # an example that is not skipped
WITH_EXAMPLES = sorted(
    path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if RUN.search(path.read_text(encoding="utf-8"))
)
API = [ROOT / "docs" / "api.md", *(ROOT / "docs" / "api").glob("*.md")]
SHOWN = [
    name
    for page in API
    for name in re.findall(r"auto(?:class|function):: sfumato\.(\S+)", page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("path", WITH_EXAMPLES)
def test_examples(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = ".".join(["sfumato", *Path(path).with_suffix("").parts])
    failed, tried = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert tried > 0
    assert failed == 0


@pytest.mark.parametrize(
    "name",
    ["PrivacyBudget", "NonPrivate", "Schema", "Unit", "columns.ItemSet", "create_ledger",
     "evaluate.total_variation", "evaluate.nearest_rows", "evaluate.correlation_differences", "evaluate.over_runs",
     "estimators.DPGaussianMixture"],
)  # fmt: skip
def test_what_the_interface_shows_has_an_example_that_runs(name: str) -> None:
    assert name in SHOWN
    place, _, last = name.rpartition(".")
    found = getattr(importlib.import_module(f"sfumato.{place}".removesuffix(".")), last)
    assert RUN.search(found.__doc__)


@pytest.mark.parametrize("kind", ["Categorical", "Ordinal", "Boolean", "Integer", "Continuous", "DateTime", "Image"])
def test_every_kind_has_an_example(kind: str) -> None:
    assert ">>> " in (getattr(importlib.import_module("sfumato.columns"), kind).__doc__ or "")


def test_an_example_that_is_wrong_is_found() -> None:
    """The examples are compared, not merely run."""
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner(verbose=False).run(wrong, out=lambda _: None).failed == 1
