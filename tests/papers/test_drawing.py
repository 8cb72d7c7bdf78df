"""Scripts of papers run where pictures cannot be drawn: matplotlib is imported by what draws, when it draws."""

import ast

import pytest

from harness.papers import PAPERS

SCRIPTS = sorted(PAPERS.rglob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(PAPERS)))
def test_matplotlib_is_imported_by_drawing_alone_when_it_draws(script):
    tree = ast.parse(script.read_text(encoding="utf-8"))
    among = tree.body if script.name == "drawing.py" else ast.walk(tree)
    imports = [node for node in among if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports}
    assert not [module for module in modules if module and module.split(".")[0] == "matplotlib"]
