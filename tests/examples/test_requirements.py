"""Whatever the project imports is a declared requirement: of the core, of an extra, or brought by one on purpose."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL = PROJECT["optional-dependencies"]
DEVELOPMENT = {"test", "lint", "docs", "bench", "papers"}
BROUGHT = {  # a package that is imported → the requirement that requires it
    "markupsafe": "jinja2", "mpmath": "dp-accounting", "nbformat": "nbclient", "rich": "typer",
}  # fmt: skip
PEERS = {
    "diffprivlib",
    "dp-recorder",
    "dpmm",
    "dpsynth",
    "mbi",
    "snsynth",
}  # of others, each in an environment of its own
DISTRIBUTIONS = packages_distributions()


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=~!; ]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def _names(*extras: str) -> set[str]:
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in OPTIONAL[extra])]
    return {_name(line) for line in lines}


def _imported(node: ast.AST) -> Iterator[str]:
    """Modules that are imported, wherever it stands, but for type checkers alone."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        yield from (str(word.value) for word in node.args[:1] if isinstance(word, ast.Constant))
    for child in ast.iter_child_nodes(node):
        yield from _imported(child)


def _packages(folder: str) -> dict[str, set[str]]:
    """Packages of others that the files of a folder import, with the files."""
    found: dict[str, set[str]] = defaultdict(set)
    own = {path.stem for room in ("benchmarks", "examples", "papers", "tests") for path in (ROOT / room).rglob("*.py")}
    own |= {path.name for path in (ROOT / "tests").iterdir()} | {"sfumato"}
    for path in (ROOT / folder).rglob("*.py"):
        for module in _imported(ast.parse(path.read_text(encoding="utf-8"))):
            top = module.partition(".")[0]
            if top not in own and top not in sys.stdlib_module_names:
                names = {name.lower().replace("_", "-") for name in DISTRIBUTIONS.get(top, [top])}
                found["/".join(sorted(names))].add(str(path.relative_to(ROOT)))
    return found


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("src", set(OPTIONAL) - DEVELOPMENT),
        ("benchmarks", {"bench"}),
        ("papers", {"papers"}),
        ("tests", {"test"}),
    ],
)
def test_what_is_imported_is_declared(folder: str, extras: set[str]) -> None:
    declared = _names(*extras)
    allowed = declared | {name for name, by in BROUGHT.items() if by in declared} | PEERS
    undeclared = {name: files for name, files in _packages(folder).items() if not allowed & set(name.split("/"))}
    assert undeclared == {}


@pytest.mark.parametrize("package", BROUGHT)
def test_what_is_brought_is_required_by_what_brings_it(package: str) -> None:
    lines = requires(BROUGHT[package]) or []
    assert package in {_name(line) for line in lines if "extra ==" not in line}
