"""docs/paper_words.md names classes, arguments, stages and scripts that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
PAGE = (ROOT / "docs" / "paper_words.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")]
ROWS = [row for row in ROWS if row[0].strip() != "the paper"]


def _ticked(text):
    return re.findall(r"`([^`]+)`", text)


def _members(node):
    """Names that a class defines itself."""
    named = [child.name for child in node.body if isinstance(child, ast.FunctionDef)]
    return {
        *named,
        *(c.target.id for c in node.body if isinstance(c, ast.AnnAssign) and isinstance(c.target, ast.Name)),
    }


def _definitions(files):
    """Classes and functions by name, with the members of classes; and the text constants of the files."""
    names, texts = {}, set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                names.setdefault(node.name, set()).update(_members(node))
            elif isinstance(node, ast.FunctionDef):
                names.setdefault(node.name, set())
            elif isinstance(node, ast.Assign):
                names.update({target.id: set() for target in node.targets if isinstance(target, ast.Name)})
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
    return names, texts


NAMES, TEXTS = _definitions(SOURCE.rglob("*.py"))


def test_all_four_papers_have_a_table():
    assert re.findall(r"^## (\S+)", PAGE, flags=re.M) == ["P3GM", "DP-EM", "DPGM", "DPMix"]
    assert len(ROWS) > 50
    assert {len(row) for row in ROWS} == {4}


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in _ticked(row[1])}))
def test_a_name_of_the_code_exists(name):
    owner, _, member = name.partition(".")
    assert owner in NAMES
    assert not member or member in NAMES[owner]


@pytest.mark.parametrize("stage", sorted({stage for row in ROWS for stage in _ticked(row[2])}))
def test_a_stage_exists(stage):
    assert stage in TEXTS


@pytest.mark.parametrize("place", sorted({place for row in ROWS for place in _ticked(row[3])}))
def test_a_script_and_its_function_exist(place):
    path, _, name = place.partition(": ")
    script = ROOT / "papers" / path
    assert script.exists()
    assert not name or name in _definitions([script])[0]
