"""The constants of the estimators of tables: each has a source, stands on the page, and has no home beside."""

import ast
import dataclasses
import importlib.util
import re
import sys
from pathlib import Path

import pytest

import sfumato
from sfumato.maths import constants
from sfumato.methods.tables.chain import Effort

ROOT = Path(__file__).parents[2]
TABLES = sorted((Path(sfumato.__file__).parent / "methods" / "tables").glob("*.py"))
TABLES = [path for path in TABLES if path.stem != "duration"]  # seconds, chosen on the fits that its test records
SOURCES = re.compile(r"(theorem: .+|noise: .+|chosen on .+|not tuned(: .+)?)(; (without: )?decisions? [\d, ]+)?")

PROOF, SPEED, ROUNDING = "a proof rests on it", "speed or memory alone", "keeps floats apart"
NAMED = {  # module-level numbers of methods/tables that are no choice of an estimator
    ("cell_counts", "RUN_STEP"): PROOF,
    ("cell_counts", "CELL_STEP"): PROOF,
    ("cell_counts", "VALUE_STEP"): PROOF,
    ("cell_counts", "ENDING_STEP"): PROOF,
    ("cell_counts", "PAIR_STEP"): PROOF,
    ("feature_moments", "_FRACTIONS"): PROOF,
    ("feature_moments", "_LARGEST"): PROOF,
    ("weighted", "_MOST_BITS"): PROOF,
    ("weighted", "_ALL_BITS"): PROOF,
    ("settings", "MOST_ENTRIES"): SPEED,
    ("feature_moments", "_WORK_BYTES"): SPEED,
    ("feature_moments", "_BLOCK_ROWS"): SPEED,
    ("prior_rows", "_AT_ONCE"): SPEED,
    ("feature_moments", "_MOST_PAIRS"): SPEED,
    ("feature_moments", "_PAIR"): SPEED,
    ("feature_moments", "_PAIR_ENTRY"): SPEED,
    ("feature_moments", "_ENTRY"): SPEED,
    ("feature_moments", "_PRODUCT"): SPEED,
    ("mixture_fit", "_TINY"): ROUNDING,
    ("mixture_fit", "_FLOOR"): ROUNDING,
    ("mixture_fit", "_LEAST_LOG"): ROUNDING,
    ("softmax_fit", "_JITTER"): ROUNDING,
    ("softmax_fit", "_LEAST_LOG"): ROUNDING,
}
WRITTEN = {  # numbers within functions of methods/tables: above rounding, and more than a half, 1, 2 or 3
    ("feature_moments", 8): "bytes of a float64",
    ("feature_moments", 256): SPEED,
    ("atoms", 5): "the decimal system",
    ("atoms", 7): "days of the week",
    ("atoms", 10): "the decimal system",
    ("atoms", 100): "the decimal system",
    ("chain", 4): "the kurtosis",
    ("mixture_fit", 12): "the variance of a rank",
    ("histograms", 30.0): ROUNDING,
    ("question_stage", 12): "digits of a number in words",
    ("question_sums", 4): PROOF,
    ("tails", 40): ROUNDING,
    ("tails", 60): ROUNDING,
    ("tails", 1e-3): ROUNDING,
}


def _page():
    spec = importlib.util.spec_from_file_location("constants_page", ROOT / "benchmarks" / "constants.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["constants_page"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


page = _page()
TEXT = page.SOURCE.read_text(encoding="utf-8")
GROUPS = page.groups(TEXT)


def numbers(node: ast.AST) -> set[float]:
    """Numbers that are written in some code."""
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and type(n.value) in (int, float)}


def test_every_constant_says_what_it_is_and_where_it_comes_from():
    for group in GROUPS:
        values = getattr(constants, group.name)
        assert [c.name for c in group.constants] == [field.name for field in dataclasses.fields(values)]
        for constant in group.constants:
            assert constant.meaning, constant
            assert SOURCES.fullmatch(constant.source), constant


def test_every_group_is_frozen_and_is_read():
    used = {
        name
        for path in Path(sfumato.__file__).parent.rglob("*.py")
        for name in re.findall(r"\b[A-Z_]+\.\w+", path.read_text(encoding="utf-8"))
    }
    for group in GROUPS:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(getattr(constants, group.name), group.constants[0].name, 0)
        for constant in group.constants:
            assert f"{group.name}.{constant.name}" in used, (group.name, constant.name)


def test_the_page_says_what_the_source_says():
    """Written by `python benchmarks/constants.py > docs/constants.md`."""
    assert (ROOT / "docs" / "constants.md").read_text(encoding="utf-8") == page.page(TEXT)


def test_a_decision_that_a_constant_names_names_its_step():
    """No link of the page is dead, and none is missing: each number after `decision` is one."""
    for group in GROUPS:
        for constant in group.constants:
            for number in re.findall(r"\b\d+\b", constant.source.partition("decision")[2].partition("(")[0]):
                assert list(page.DECISIONS.glob(f"{int(number):04}-*.md")), constant


def test_tables_have_no_numbers_of_their_own():
    """Module-level numbers are in the one place, or on the list above with a reason."""
    found = {
        (path.stem, name.id)
        for path in TABLES
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        if numbers(node.value)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    assert found == NAMED.keys()


def test_functions_of_tables_have_no_numbers_of_their_own():
    """But for what arithmetic writes, what keeps floats apart, and the list above."""
    found = {
        (path.stem, number)
        for path in TABLES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        for number in numbers(node) - {0, 0.5, 1, 2, 3}
        if number >= 1e-5
    }
    assert found == WRITTEN.keys()


def test_an_experiment_reaches_every_module(monkeypatch):
    monkeypatch.setitem(vars(constants.CHAIN), "independence", 7.0)
    assert Effort.of(0.01).mixture.independence == 7.0
