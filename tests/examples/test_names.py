"""Public names: each resolves, is documented once, and nothing below them is named where people read."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sfumato

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
API = ROOT / "docs" / "api.md"
PAGES = [
    ROOT / "README.md",
    *(page for page in (ROOT / "docs").glob("*.md") if page.name != "architecture.md"),
    *(ROOT / "docs" / "api").glob("*.md"),
]
ROOMS = (
    "audit", "columns", "demo", "engines", "errors", "estimators", "evaluate", "holders", "plugins", "report",
    "settings", "two_stages",
)  # fmt: skip
HOMES = {"sfumato": sfumato, **{f"sfumato.{room}": importlib.import_module(f"sfumato.{room}") for room in ROOMS}}
PUBLIC = {f"{home}.{name}": getattr(module, name) for home, module in HOMES.items() for name in module.__all__}
UNDOCUMENTED = {
    "sfumato.__version__", "sfumato.demo.demo_schema", "sfumato.demo.run_demo",
    # those are in docs/plugins.md
    *(name for name in PUBLIC if name.startswith(("sfumato.plugins.", "sfumato.two_stages."))),
}  # fmt: skip
GROUPS = {"sfumato.methods", "sfumato.samplers", "sfumato.formats", "sfumato.kinds"}  # of entry points


def _documented() -> list[str]:
    """Names of the directives on the page of the Python interface, those of listed members included."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in [API, *sorted(API.with_suffix("").glob("*.md"))])
    names = re.findall(r"^\.\. auto(?:class|function|exception|data):: (\S+)", text, re.M)
    for module, listed in re.findall(r"^\.\. automodule:: (\S+)\n   :members:((?:.|\n(?=      ))*)", text, re.M):
        names += [f"{module}.{name.strip()}" for name in listed.split(",")]
    return names


def _named(text: str) -> set[str]:
    """Dotted names of the package in a text, and what it imports from it."""
    found = {name.rstrip(".") for name in re.findall(r"(?<![\w/.-])sfumato(?:\.\w+)+", text)}
    for home, names in re.findall(r"from (sfumato[\w.]*) import (?:\()?([\w, ]+)", text):
        found |= {f"{home}.{name.split(' as ')[0].strip()}" for name in names.split(",") if name.strip()}
    return {name for name in found if not name.endswith((".sfm", ".md", ".py", ".toml"))}


def _is_public(name: str) -> bool:
    """Whether it is a public name, a public module, or an attribute of a public name."""
    if name in HOMES:
        return True
    parts = name.split(".")
    stem = next((".".join(parts[:n]) for n in (2, 3) if ".".join(parts[:n]) in PUBLIC), None)
    if stem is None:
        return False
    value = PUBLIC[stem]
    for part in parts[stem.count(".") + 1 :]:
        value = getattr(value, part)
    return True


def test_every_public_name_resolves_and_is_listed() -> None:
    for home, module in HOMES.items():
        assert len(set(module.__all__)) == len(module.__all__)
        assert set(module.__all__) <= set(dir(module)), home
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        sfumato.Nonsense  # type: ignore[attr-defined]  # noqa: B018
    assert {f"sfumato.{room}" for room in ROOMS} <= {f"sfumato.{name}" for name in dir(sfumato)}


def test_the_stub_gives_every_name_to_type_checkers() -> None:
    """`as name` says to type checkers that a name is given on; the rooms are those named here."""
    tree = ast.parse((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [(node.module, alias) for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert {alias.name for home, alias in imports if home == "sfumato"} == set(ROOMS)
    assert {alias.name for home, alias in imports if home != "sfumato"} == set(sfumato.__all__)
    assert all(alias.asname == alias.name for _, alias in imports)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_every_public_module_is_there_after_one_import() -> None:
    """Each in a process that has imported the package, and no other room of it."""
    code = f"""
import os, numpy, pandas, pyarrow.parquet, scipy.optimize, scipy.stats, sklearn, dp_accounting  # for all, once
import sfumato
for room in {ROOMS}:
    child = os.fork()
    if child == 0:
        m = getattr(sfumato, room)
        print(m.__name__, *(getattr(m, n) is None for n in m.__all__), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == [f"sfumato.{room}" for room in ROOMS]
    assert "True" not in done.stdout


@pytest.mark.slow
def test_a_star_import_needs_no_torch() -> None:
    code = "import sys\nfrom sfumato import *\nprint(MixtureTraining(), DPGM, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MixtureTraining(")
    assert done.stdout.split()[-1] == "False"


def test_every_public_name_is_documented_once() -> None:
    documented = _documented()
    assert sorted(documented) == sorted(PUBLIC.keys() - UNDOCUMENTED)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_what_is_private(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = _named(text) - (GROUPS if page.name == "plugins.md" else set())
    assert [name for name in sorted(named) if not _is_public(name)] == []


def test_the_pages_are_read() -> None:
    assert {"sfumato.demo.demo_schema", "sfumato.load"} <= _named((ROOT / "README.md").read_text(encoding="utf-8"))
    assert not _is_public("sfumato.privacy.certificate.Certificate")
    assert not _is_public("sfumato.columns.kinds.Integer")
    with pytest.raises(AttributeError):
        _is_public("sfumato.P3GM.nonsense")


def test_examples_name_only_what_is_public() -> None:
    shown = 0
    for path in sorted(SOURCE.rglob("*.py")):
        lines = re.findall(r"^\s*(?:>>>|\.\.\.) (.*)$", path.read_text(encoding="utf-8"), re.M)
        names = _named("\n".join(lines))
        shown += len(names)
        assert [name for name in sorted(names) if not _is_public(name)] == [], path
    assert shown


@pytest.mark.parametrize("name", sorted(PUBLIC.keys() - UNDOCUMENTED))
def test_what_is_shown_of_a_public_object_names_only_what_is_public(name: str) -> None:
    value = PUBLIC[name]
    texts = [inspect.getdoc(value) or ""]
    if isinstance(value, type):
        texts += [inspect.getdoc(found) or "" for part, found in vars(value).items() if not part.startswith("_")]
    assert [named for named in sorted(_named("\n".join(texts))) if not _is_public(named)] == []
